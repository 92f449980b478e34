"""Initializers: distributions of the first values of parameters.

An initializer fills a NumPy array in place. Random ones take a fresh stream from
`mycel.common.seed` for each array, so that the values depend only on the global seed and on the
number of arrays drawn before, not on their sizes. A part of an array, as a rank has it, is drawn by
itself where values are independent of each other (`mycel.common.block_draws`); of others the whole
array is made and cut. For a weight of shape (out, in, *kernel) the fans
are ``fan_in = in * prod(kernel)`` and ``fan_out = out * prod(kernel)``.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.core.parameter import initializers
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.block_draws import Law, fill, fill_part
from mycel.common.seed import drawing_with, get_seed, initializer_rng, next_stream

__all__ = [
    "Constant",
    "Dirac",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "Normal",
    "One",
    "Orthogonal",
    "Sparse",
    "Tensor",
    "TruncatedNormal",
    "Uniform",
    "VarianceScaling",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "get_seed",
    "initializer",
]

Array = np.ndarray[Any, Any]


class Initializer:
    """The base of initializers; a subclass defines ``_initialize(arr)``, which fills a NumPy array
    in place.

    >>> import numpy as np
    >>> from mycel.common.initializer import Constant
    >>> a = np.zeros(2); Constant(3.0)(a); a
    array([3., 3.])
    """

    fills: ClassVar[bool]
    # Whether it takes a stream for each array; None where that is not known.
    draws: bool | None = None

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    @property
    def init_kwargs(self) -> dict[str, Any]:
        """The arguments of the initializer."""
        return dict(self._kwargs)

    def _initialize(self, arr: Array) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _initialize(arr)")

    def _initialize_part(self, part: Array, shape: Sequence[int], places: Sequence[Array | None]) -> None:
        whole = np.zeros(shape, part.dtype)
        self._initialize(whole)
        for axis, own in enumerate(places):
            whole = whole if own is None else whole.take(own, axis)
        part[...] = whole

    def __call__(self, arr: Array) -> None:
        arguments.instance(type(self).__name__, "arr", arr, np.ndarray)
        self._initialize(arr)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._kwargs.items())})"


def _numbers(owner: str, *values: Any) -> None:
    for value in values:
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"{owner}: takes numbers, not {type(value).__name__}")
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ValueError(f"{owner}: takes numbers that a float can be, not {value!r:.80}")


_ALIASES: dict[str, type[Initializer]] = {}


def _alias(*names: str, draws: bool = True) -> Any:
    def enter(kind: type[Initializer]) -> type[Initializer]:
        for name in (kind.__name__.lower(), *names):
            _ALIASES[name] = kind
        # Every one here writes each element, so that nothing need be there before, and takes one
        # stream or none; its subclasses need not.
        kind.fills, kind.draws = True, draws
        return kind

    return enter


def _fans(name: str, shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2:
        raise ValueError(f"{name}: fan_in and fan_out need a shape of at least 2 dimensions, not {tuple(shape)}")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2)}


def _gain(name: str, nonlinearity: str, slope: float) -> float:
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope * slope))
    if not isinstance(nonlinearity, str) or nonlinearity not in _GAINS:
        raise ValueError(
            f"{name}: nonlinearity must be one of 'leaky_relu', {', '.join(map(repr, _GAINS))}, not {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def _normal(mean: float, sigma: float) -> Law:
    def draw(rng: np.random.Generator, out: Any) -> None:
        rng.standard_normal(dtype=out.dtype, out=out)
        out *= sigma
        out += mean

    return draw


def _uniform(bound: float) -> Law:
    def draw(rng: np.random.Generator, out: Any) -> None:
        rng.random(dtype=out.dtype, out=out)
        out *= 2 * bound
        out -= bound

    return draw


class _Independent(Initializer):
    """An initializer whose values are independent of each other: `_law` draws some of them."""

    def _law(self, shape: Sequence[int]) -> Law:
        raise NotImplementedError

    def _initialize(self, arr: Array) -> None:
        fill(self._law(arr.shape), arr, next_stream())

    def _initialize_part(self, part: Array, shape: Sequence[int], places: Sequence[Array | None]) -> None:
        fill_part(self._law(shape), part, shape, places, next_stream())


def _truncated(rng: np.random.Generator, count: int, low: float, high: float) -> Array:
    """Return standard normal variates within [low, high], by rejection (Robert, "Simulation of
    truncated normal variables", 1995).
    """
    if high < 0:
        return -_truncated(rng, count, -high, -low)
    likely = 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    nearest = max(low, 0.0)
    found: list[Array] = []
    missing = count
    while missing:
        size = max(2 * missing, 16)
        if likely > 0.25:
            draws = rng.standard_normal(size)
            keep = (draws >= low) & (draws <= high)
        elif nearest > 0 and (high - low) * nearest > 1:
            draws = low + rng.exponential(1 / low, size)
            keep = (rng.random(size) <= np.exp(-0.5 * (draws - low) ** 2)) & (draws <= high)
        else:
            draws = rng.uniform(low, high, size)
            keep = rng.random(size) <= np.exp(0.5 * (nearest * nearest - draws * draws))
        part = draws[keep][:missing]
        found.append(part)
        missing -= len(part)
    return np.concatenate(found) if found else np.zeros(0)


@_alias("zeros", draws=False)
class Zero(Initializer):
    """All zeros.

    >>> from mycel.common.initializer import Zero, initializer
    >>> initializer(Zero(), [2]).init_data().asnumpy()
    array([0., 0.], dtype=float32)
    """

    def _initialize(self, arr: Array) -> None:
        arr[...] = 0

    def _initialize_part(self, part: Array, shape: Sequence[int], places: Sequence[Array | None]) -> None:
        part[...] = 0


@_alias("ones", draws=False)
class One(Initializer):
    """All ones.

    >>> from mycel.common.initializer import One, initializer
    >>> initializer(One(), [2]).init_data().asnumpy()
    array([1., 1.], dtype=float32)
    """

    def _initialize(self, arr: Array) -> None:
        arr[...] = 1

    def _initialize_part(self, part: Array, shape: Sequence[int], places: Sequence[Array | None]) -> None:
        part[...] = 1


class Constant(Initializer):
    """One number, or an array that broadcasts to the shape.

    >>> from mycel.common.initializer import Constant, initializer
    >>> initializer(Constant(3), [2]).init_data().asnumpy()
    array([3., 3.], dtype=float32)
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: Array) -> None:
        try:
            arr[...] = self.value
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"Constant: {self.value!r:.200} does not fill {arr.dtype}{list(arr.shape)}: {error}"
            ) from None

    def _initialize_part(self, part: Array, shape: Sequence[int], places: Sequence[Array | None]) -> None:
        if np.ndim(self.value):
            super()._initialize_part(part, shape, places)
        else:
            self._initialize(part)


Constant.fills, Constant.draws = True, False


@_alias()
class Normal(_Independent):
    """Normal variates of standard deviation `sigma` around `mean`.

    >>> from mycel.common.initializer import Normal, initializer
    >>> initializer(Normal(0.5, 10.0), [4, 3]).shape
    (4, 3)
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        _numbers(type(self).__name__, sigma, mean)
        self.sigma, self.mean = sigma, mean

    def _law(self, shape: Sequence[int]) -> Law:
        return _normal(self.mean, self.sigma)


@_alias()
class TruncatedNormal(_Independent):
    """Normal variates that are redrawn until they lie within an interval.

    Args:
        sigma (float): The standard deviation. Default: 0.01.
        mean (float): The mean. Default: 0.0.
        a (float): The lower bound, a value and not a multiple of `sigma`. Default: -2.0.
        b (float): The upper bound. Default: 2.0.

    Raises:
        ValueError: If the interval is empty or `sigma` is not positive.

    Examples:
        >>> from mycel.common.initializer import TruncatedNormal, initializer
        >>> drawn = initializer(TruncatedNormal(1.0, a=-0.5, b=0.5), [100]).init_data()
        >>> bool((abs(drawn.asnumpy()) <= 0.5).all())
        True
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        _numbers(type(self).__name__, sigma, mean, a, b)
        if not a < b:
            raise ValueError(f"TruncatedNormal: a must be below b, but a is {a} and b is {b}")
        if not 0 < sigma < math.inf or not math.isfinite(mean):
            raise ValueError(
                f"TruncatedNormal: sigma must be positive, and mean and sigma finite, not {mean} and {sigma}"
            )
        if (a - mean) / sigma == math.inf or (b - mean) / sigma == -math.inf:
            raise ValueError(f"TruncatedNormal: [{a}, {b}] is too far away from {mean} for sigma {sigma}")
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _law(self, shape: Sequence[int]) -> Law:
        low, high = (self.a - self.mean) / self.sigma, (self.b - self.mean) / self.sigma

        def draw(rng: np.random.Generator, out: Any) -> None:
            out[...] = np.clip(_truncated(rng, out.size, low, high) * self.sigma + self.mean, self.a, self.b)

        return draw


@_alias()
class Uniform(_Independent):
    """Uniform variates in [-`scale`, `scale`).

    >>> from mycel.common.initializer import Uniform, initializer
    >>> bool((abs(initializer(Uniform(0.5), [100]).init_data().asnumpy()) <= 0.5).all())
    True
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        _numbers(type(self).__name__, scale)
        self.scale = scale

    def _law(self, shape: Sequence[int]) -> Law:
        return _uniform(self.scale)


@_alias("xavier_uniform")
class XavierUniform(_Independent):
    """Uniform variates within ``gain * sqrt(6 / (fan_in + fan_out))`` of zero (Glorot and Bengio,
    2010).

    >>> from mycel.common.initializer import XavierUniform, initializer
    >>> bool((abs(initializer(XavierUniform(), [3, 3]).init_data().asnumpy()) <= 1).all())
    True
    """

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        _numbers(type(self).__name__, gain)
        self.gain = gain

    def _law(self, shape: Sequence[int]) -> Law:
        fan_in, fan_out = _fans("XavierUniform", shape)
        return _uniform(self.gain * math.sqrt(6 / (fan_in + fan_out)))


@_alias("xavier_normal")
class XavierNormal(_Independent):
    """Normal variates of standard deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and
    Bengio, 2010).

    >>> from mycel.common.initializer import XavierNormal, initializer
    >>> initializer(XavierNormal(), [3, 3]).shape
    (3, 3)
    """

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        _numbers(type(self).__name__, gain)
        self.gain = gain

    def _law(self, shape: Sequence[int]) -> Law:
        fan_in, fan_out = _fans("XavierNormal", shape)
        return _normal(0.0, self.gain * math.sqrt(2 / (fan_in + fan_out)))


class _He(_Independent):
    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        arguments.one_of(type(self).__name__, "mode", mode, ("fan_in", "fan_out"))
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity
        _gain(type(self).__name__, nonlinearity, 0)

    def _deviation(self, shape: Sequence[int]) -> float:
        _numbers(type(self).__name__, self.negative_slope)
        fan_in, fan_out = _fans(type(self).__name__, shape)
        gain = _gain(type(self).__name__, self.nonlinearity, self.negative_slope)
        return gain / math.sqrt(fan_in if self.mode == "fan_in" else fan_out)


@_alias("he_uniform")
class HeUniform(_He):
    """Uniform variates within ``gain * sqrt(3 / fan)`` of zero (He et al., "Delving deep into
    rectifiers", 2015).

    `mode` chooses the fan, 'fan_in' or 'fan_out'. The gain is that of `nonlinearity`: 5/3 for
    'tanh', sqrt(2) for 'relu', sqrt(2 / (1 + slope**2)) for 'leaky_relu', of slope
    `negative_slope`, and 1 for 'linear' and 'sigmoid'.

    >>> from mycel.common.initializer import HeUniform, initializer
    >>> bool((abs(initializer(HeUniform(), [3, 6]).init_data().asnumpy()) <= 1).all())
    True
    """

    def _law(self, shape: Sequence[int]) -> Law:
        return _uniform(math.sqrt(3) * self._deviation(shape))


@_alias("he_normal")
class HeNormal(_He):
    """Normal variates of standard deviation ``gain / sqrt(fan)`` (He et al., 2015).

    The arguments are those of `HeUniform`.

    >>> from mycel.common.initializer import HeNormal, initializer
    >>> initializer(HeNormal(mode="fan_out"), [3, 6]).shape
    (3, 6)
    """

    def _law(self, shape: Sequence[int]) -> Law:
        return _normal(0.0, self._deviation(shape))


@_alias()
class Orthogonal(Initializer):
    """A (semi-)orthogonal matrix times `gain`; its rows are the first dimension, its columns all
    others (Saxe et al., 2013).

    >>> from mycel.common.initializer import Orthogonal, initializer
    >>> q = initializer(Orthogonal(), [3, 3]).init_data().asnumpy()
    >>> bool(abs(q @ q.T - np.eye(3)).max() < 1e-6)
    True
    """

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain=gain)
        _numbers(type(self).__name__, gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        if arr.ndim < 2:
            raise ValueError(f"Orthogonal: a shape of at least 2 dimensions is needed, not {arr.shape}")
        rows, columns = arr.shape[0], arr.size // arr.shape[0]
        q, r = np.linalg.qr(initializer_rng().standard_normal((max(rows, columns), min(rows, columns))))
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)
        arr[...] = (self.gain * (q if rows >= columns else q.T)).reshape(arr.shape)


@_alias(draws=False)
class Identity(Initializer):
    """The identity matrix.

    Raises ValueError unless the shape has 2 dimensions.

    >>> from mycel.common.initializer import Identity, initializer
    >>> initializer(Identity(), [2, 2]).init_data().asnumpy()
    array([[1., 0.], [0., 1.]], dtype=float32)
    """

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ValueError(f"Identity: the shape must have 2 dimensions, not {arr.shape}")
        arr[...] = np.eye(*arr.shape)


@_alias(draws=False)
class Dirac(Initializer):
    """A convolution weight (out, in / groups, *kernel) that passes channels through unchanged; the
    kernel has 1 to 3 dimensions.

    Raises ValueError for other numbers of dimensions, and if `groups` does not divide the first
    one.

    >>> from mycel.common.initializer import Dirac, initializer
    >>> initializer(Dirac(), [1, 1, 3]).init_data().asnumpy()
    array([[[0., 1., 0.]]], dtype=float32)
    """

    def __init__(self, groups: int = 1) -> None:
        super().__init__(groups=groups)
        _numbers(type(self).__name__, groups)
        if groups < 1:
            raise ValueError(f"Dirac: groups must be at least 1, not {groups}")
        self.groups = groups

    def _initialize(self, arr: Array) -> None:
        if not 3 <= arr.ndim <= 5:
            raise ValueError(f"Dirac: the shape must have 3, 4 or 5 dimensions, not {arr.shape}")
        if arr.shape[0] % self.groups:
            raise ValueError(f"Dirac: the first dimension of {arr.shape} is not divisible by {self.groups} groups")
        arr[...] = 0
        outputs = arr.shape[0] // self.groups
        centre = tuple(k // 2 for k in arr.shape[2:])
        for group in range(self.groups):
            for i in range(min(outputs, arr.shape[1])):
                place = (group * outputs + i, i, *centre)
                arr[place] = 1


@_alias()
class Sparse(Initializer):
    """A matrix whose columns have a share `sparsity` of zeros, and normal variates of standard
    deviation `sigma` elsewhere (Martens, 2010).

    >>> from mycel.common.initializer import Sparse, initializer
    >>> (initializer(Sparse(0.5), [4, 3]).init_data().asnumpy() == 0).sum(axis=0)
    array([2, 2, 2])
    """

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        super().__init__(sparsity=sparsity, sigma=sigma)
        _numbers(type(self).__name__, sparsity, sigma)
        if not 0 <= sparsity <= 1:
            raise ValueError(f"Sparse: sparsity must be in [0, 1], not {sparsity}")
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ValueError(f"Sparse: the shape must have 2 dimensions, not {arr.shape}")
        rows, columns = arr.shape
        rng = initializer_rng()
        values = np.asarray(self.sigma * rng.standard_normal(arr.shape))
        zeros = math.ceil(self.sparsity * rows)
        for column in range(columns):
            values[rng.permutation(rows)[:zeros], column] = 0
        arr[...] = values


# The standard deviation of a standard normal variate that is kept within two of its deviations.
_TRUNCATED_DEVIATION = 0.87962566103423978


@_alias()
class VarianceScaling(_Independent):
    """Random values of variance ``scale / fan``, with the fan named by `mode`: 'fan_in', 'fan_out'
    or 'fan_avg'.

    `distribution` is 'uniform', 'untruncated_normal', or 'truncated_normal', which stays within two
    standard deviations. Raises ValueError for other names.

    >>> from mycel.common.initializer import VarianceScaling, initializer
    >>> initializer(VarianceScaling(2.0, "fan_out", "untruncated_normal"), [3, 6]).shape
    (3, 6)
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if not scale > 0:
            raise ValueError(f"VarianceScaling: scale must be positive, not {scale}")
        arguments.one_of("VarianceScaling", "mode", mode, ("fan_in", "fan_out", "fan_avg"))
        arguments.one_of(
            "VarianceScaling", "distribution", distribution, ("uniform", "truncated_normal", "untruncated_normal")
        )
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def _law(self, shape: Sequence[int]) -> Law:
        fan_in, fan_out = _fans("VarianceScaling", shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        deviation = math.sqrt(self.scale / fan)
        if self.distribution == "uniform":
            return _uniform(math.sqrt(3) * deviation)
        if self.distribution == "untruncated_normal":
            return _normal(0.0, deviation)

        def draw(rng: np.random.Generator, out: Any) -> None:
            out[...] = _truncated(rng, out.size, -2.0, 2.0) * (deviation / _TRUNCATED_DEVIATION)

        return draw


InitLike = Tensor | str | float | Initializer


def initializer(init: InitLike, shape: Any = None, dtype: Any = D.float32) -> Tensor:
    """Return a tensor of `shape` and `dtype` whose values are drawn by `init` when they are first
    needed.

    `init` is an `Initializer`, the name of one ('normal', 'zeros', 'ones', 'xavier_uniform',
    'he_normal', ...), or a number; a tensor of the right shape is returned as it is. Raises
    ValueError for an unknown name, for sizes that are not positive and for the element type None,
    and TypeError for other kinds.

    >>> from mycel.common.initializer import initializer
    >>> initializer("ones", [2, 2]).init_data().asnumpy()
    array([[1., 1.], [1., 1.]], dtype=float32)
    """
    if isinstance(init, Tensor):
        wanted = None if shape is None else _checked_shape(shape)
        if wanted is not None and init.shape != wanted:
            raise ValueError(f"initializer: the tensor given has shape {init.shape}, not {wanted}")
        return init
    if isinstance(init, str):
        kind = _ALIASES.get(init.lower())
        if kind is None:
            raise ValueError(f"initializer: {init!r} is not an initializer; use one of {', '.join(sorted(_ALIASES))}")
        made = kind()
    elif isinstance(init, numbers.Number):
        made = Constant(init)
    elif isinstance(init, Initializer):
        made = init
    else:
        raise TypeError(
            f"initializer: init must be a Tensor, a number, a name or an Initializer, not {type(init).__name__}"
        )
    if isinstance(shape, dict):
        raise arguments.wrong_type("initializer", "shape", "an int or a sequence of ints", shape)
    if dtype is None:
        raise ValueError("initializer: dtype must be an element type, not None")
    return Tensor(shape=_checked_shape(() if shape is None else shape), dtype=dtype, init=made)


def _checked_shape(shape: Any) -> tuple[Any, ...]:
    sizes: tuple[Any, ...] | None = (shape,) if isinstance(shape, (int, np.integer, Dim)) else tuple(shape)
    for size in sizes or ():
        if isinstance(size, Dim):
            continue
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size <= 0:
            raise ValueError(f"initializer: shape must hold positive integers, not {tuple(sizes or ())}")
    return tuple(int(s) if isinstance(s, np.integer) else s for s in sizes or ())


@dataclass(frozen=True)
class _Reserved:
    """An initializer with the stream that it draws with, if it draws."""

    init: Initializer
    stream: np.random.SeedSequence | None

    def fill(self, array: Array) -> None:
        with drawing_with(self.stream):
            self.init(array)

    def fill_part(self, part: Array, shape: Sequence[int], places: Sequence[Array | None]) -> None:
        with drawing_with(self.stream):
            self.init._initialize_part(part, shape, places)

    def as_type(self, old: D.DType, new: D.DType) -> _Reserved | None:
        # Values are drawn as float32 for each of these types.
        return self if all(d.is_floating and d is not D.float64 for d in (old, new)) else None


def _reserve(init: Any) -> _Reserved | None:
    """Return the values of a tensor declared with `init`, to be drawn later; None for an
    initializer of the program's, which may draw from anywhere.
    """
    draws = draws_of(init)
    return None if draws is None else _Reserved(init, next_stream() if draws else None)


def draws_of(init: Any) -> bool | None:
    """Return whether an initializer takes a stream for each array, None where that is not known: a
    subclass of the program's is another one, even of a class that is known.
    """
    found = vars(init).get("draws", vars(type(init)).get("draws"))
    assert found is None or isinstance(found, bool)
    return found


initializers.make, initializers.reserve = initializer, _reserve

__dir__ = _listing(__name__)
