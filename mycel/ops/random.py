"""Random numbers.

Every function draws from a generator's state and advances it, eagerly and in compiled code alike.
Without `seed` the default generator (`mycel.common.generator`) is used. Functions that are given
the same seed continue one sequence; `bernoulli`, `randperm`, `random_categorical` and the samplers
of candidates give the same numbers in every call with one seed. Shapes may be symbolic. Gradients
flow through means, bounds and rates by ordinary arithmetic, and through `dropout` and the like as
through a fixed mask.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

from mycel._src.compiler.ir.dims import Dim, DimLike, product
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random, sort_and_scan
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import Generator, repeated_generator, seeded_generator
from mycel.ops._compose import compose
from mycel.ops._operands import (
    axis_of,
    check_sizes,
    constant_like,
    floating,
    operand,
    run,
    select,
    shape_of,
    size_of,
    take_slice,
    term,
    wide,
)
from mycel.ops.activation import softmax
from mycel.ops.creation import one_hot

__all__ = [
    "bernoulli",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "gumbel_softmax",
    "laplace",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_categorical",
    "randperm",
    "rrelu",
    "shuffle",
    "standard_laplace",
    "standard_normal",
    "uniform",
]

Shape = tuple[Any, ...]


def draw(function: Any, shape: Shape, generator: Generator, **params: Any) -> Tensor:
    """Return a tensor of `shape` of numbers from a distribution of `prims.random`."""
    arguments.instance(function.__name__, "generator", generator, Generator, "a Generator or None")
    count = product(shape)
    if not isinstance(count, (int, Dim)):
        shape = check_sizes(function.__name__, tuple([size_of(function.__name__, d) for d in shape]))
        count = product(shape)
    if isinstance(count, int):
        tensor_type(shape, D.int8)
    return compose(function, generator.take(count), shape=shape, **params)


def _permutation(state: Any, *, shape: Shape) -> Any:
    return random.permutation(state, shape[0])


def _shape(name: str, size: Any, single: bool = False) -> Shape:
    return check_sizes(name, shape_of(name, size, single))


def _size_arguments(name: str, size: tuple[Any, ...]) -> Shape:
    """Return the shape of separate sizes or of one sequence; no sizes at all mean one number."""
    return _shape(
        name, (1,) if not size else size[0] if len(size) == 1 and isinstance(size[0], (tuple, list, Tensor)) else size
    )


def _float(name: str, dtype: Any, default: DType = D.float32) -> DType:
    kind = default if dtype is None else D.from_any(dtype)
    if not kind.is_floating:
        raise TypeError(f"{name}: dtype must be floating, not {kind.name}")
    return kind


def rand(*size: Any, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Return uniform numbers in [0, 1), of shape `size` and floating type `dtype` (float32).

    >>> import mycel as ms
    >>> ms.ops.rand(2, 3).shape
    (2, 3)
    """
    return draw(random.uniform, _size_arguments("rand", size), seeded_generator(seed), dtype=_float("rand", dtype))


def randn(*size: Any, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Return numbers from the standard normal distribution, of shape `size` and floating type
    `dtype` (float32).

    >>> import mycel as ms
    >>> ms.ops.randn(2, 3).shape
    (2, 3)
    """
    return draw(random.normal, _size_arguments("randn", size), seeded_generator(seed), dtype=_float("randn", dtype))


def rand_like(input: Any, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return `rand` with the shape of `input`, and with its type unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.rand_like(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    x = operand("rand_like", input)
    return draw(random.uniform, x.shape, seeded_generator(seed), dtype=_float("rand_like", dtype, x.dtype))


def randn_like(input: Any, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return `randn` with the shape of `input`, and with its type unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.randn_like(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    x = operand("randn_like", input)
    return draw(random.normal, x.shape, seeded_generator(seed), dtype=_float("randn_like", dtype, x.dtype))


def _bound(name: str, value: Any) -> int:
    value = arguments.index(name, "each bound", value) if isinstance(value, Tensor) else value
    return arguments.integer(name, "each bound", value, numpy=False)


def randint(low: int, high: int, size: Any, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return uniform integers in [`low`, `high`).

    Args:
        low (int): The lower bound.
        high (int): The upper bound, which is not among them.
        size (tuple[int, ...]): The shape.
        seed (int | None): The seed; None for the default generator. Default: None.
        dtype (DType | None): An integer type; None for int64. Default: None.

    Returns:
        Tensor: The integers.

    Raises:
        ValueError: Unless low < high.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.randint(0, 5, (2, 3)).shape
        (2, 3)
    """
    kind = D.int64 if dtype is None else D.from_any(dtype)
    bounds = {"low": _bound("randint", low), "high": _bound("randint", high)}
    return draw(random.randint, _shape("randint", size), seeded_generator(seed), dtype=kind, **bounds)


def randint_like(input: Any, low: int, high: int, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return uniform integers in [`low`, `high`) with the shape of a tensor.

    Args:
        input (Tensor): The tensor.
        low (int): The lower bound.
        high (int): The upper bound, which is not among them.
        seed (int | None): The seed; None for the default generator. Default: None.
        dtype (DType | None): An integer type; None for that of `input`. Default: None.

    Returns:
        Tensor: The integers.

    Raises:
        TypeError: For a type that is not integer.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.randint_like(ms.Tensor([1, 2]), 0, 5).shape
        (2,)
    """
    x = operand("randint_like", input)
    return randint(low, high, x.shape, seed, dtype=x.dtype if dtype is None else dtype)


def standard_normal(shape: Any, seed: int | None = None) -> Tensor:
    """Return float32 numbers from the standard normal distribution.

    >>> import mycel as ms
    >>> ms.ops.standard_normal((2, 3)).shape
    (2, 3)
    """
    return draw(random.normal, _shape("standard_normal", shape), seeded_generator(seed), dtype=D.float32)


def normal(shape: Any, mean: Any, stddev: Any, seed: int | None = None) -> Tensor:
    """Return numbers from normal distributions.

    Args:
        shape (tuple[int, ...]): The shape, against which parameters broadcast.
        mean (Tensor): The means.
        stddev (Tensor): The standard deviations.
        seed (int | None): The seed; None for the default generator. Default: None.

    Returns:
        Tensor: The numbers, float32.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.normal((3, 2), 0.0, ms.Tensor([1.0, 2.0])).shape
        (3, 2)
    """
    centre, spread = floating("normal", term("normal", mean)), floating("normal", term("normal", stddev))
    kind = D.promote(centre.dtype, spread.dtype)
    full = broadcast_shapes(_shape("normal", shape), centre.shape, spread.shape)
    drawn = draw(random.normal, full, seeded_generator(seed), dtype=kind)
    return drawn * cast(spread, kind) + cast(centre, kind)


def uniform(shape: Any, minval: Any, maxval: Any, seed: int | None = None, dtype: Any = D.float32) -> Tensor:
    """Return uniform numbers between bounds.

    Args:
        shape (tuple[int, ...]): The shape, against which the bounds broadcast.
        minval (Tensor): The lower bounds.
        maxval (Tensor): The upper bounds, which are not among them.
        seed (int | None): The seed; None for the default generator. Default: None.
        dtype (DType | None): float32 or another floating type, int32 or int64. Default: float32.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.uniform((2, 3), ms.Tensor(0.0), ms.Tensor(1.0)).shape
        (2, 3)
    """
    kind = D.from_any(dtype)
    generator = seeded_generator(seed)
    low, high = operand("uniform", minval), operand("uniform", maxval)
    full = broadcast_shapes(_shape("uniform", shape, True), low.shape, high.shape)
    if kind.is_floating:
        low, high = cast(low, kind), cast(high, kind)
        return draw(random.uniform, full, generator, dtype=kind) * (high - low) + low
    if kind not in (D.int32, D.int64):
        raise TypeError(f"uniform: dtype must be floating, int32 or int64, not {kind.name}")
    low, high = cast(low, D.int64), cast(high, D.int64)
    unit = draw(random.uniform, full, generator, dtype=D.float64)
    step = cast(run(E.floor, unit * cast(high - low, D.float64)), D.int64)
    return cast(step + low, kind)


def standard_laplace(shape: Any, seed: int | None = None) -> Tensor:
    """Return float32 numbers from the Laplace distribution with mean 0 and scale 1.

    >>> import mycel as ms
    >>> ms.ops.standard_laplace((2, 3)).shape
    (2, 3)
    """
    return _laplace(_shape("standard_laplace", shape), D.float32, seed)


def _laplace(shape: Shape, kind: DType, seed: int | None) -> Tensor:
    # A sign and an exponential number: log of 1 - u, which is never 0.
    u = draw(random.uniform, shape, seeded_generator(seed), dtype=D.float64) * 2.0 - 1.0
    return cast(run(E.neg, run(E.sign, u) * run(E.log1p, -run(E.abs_, u) * (1 - 2.0**-53))), kind)


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: int | None = None) -> Tensor:
    """Return numbers from Laplace distributions.

    Args:
        shape (tuple[int, ...]): The shape, against which parameters broadcast.
        mean (Tensor): The means.
        lambda_param (Tensor): The scales.
        seed (int | None): The seed; None for the default generator. Default: None.

    Returns:
        Tensor: The numbers, float32.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.laplace((2, 3), ms.Tensor(0.0), ms.Tensor(1.0)).shape
        (2, 3)
    """
    centre, spread = floating("laplace", mean), floating("laplace", lambda_param)
    kind = D.promote(centre.dtype, spread.dtype)
    full = broadcast_shapes(_shape("laplace", shape), centre.shape, spread.shape)
    return _laplace(full, kind, seed) * cast(spread, kind) + cast(centre, kind)


def chance(name: str, p: Any) -> float:
    """Check that `p` is a probability, and return it. Raises ValueError outside [0, 1]."""
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise TypeError(f"{name}: p must be a float, not {type(p).__name__}")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: p must lie in [0, 1], not {p}")
    return float(p)


def bernoulli(input: Any, p: Any = 0.5, seed: int | None = None) -> Tensor:
    """Return 1 with probability `p` and else 0, in the shape and type of `input`.

    `p` is a number, or a tensor that broadcasts to the shape of `input`.

    >>> import mycel as ms
    >>> ms.ops.bernoulli(ms.ops.zeros((2, 3)), 1.0).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    x, generator = operand("bernoulli", input), repeated_generator(seed)
    if isinstance(p, Tensor):
        rate = wide(floating("bernoulli", p))
        return cast(run(E.lt, draw(random.uniform, x.shape, generator, dtype=rate.dtype), rate), x.dtype)
    hit = draw(random.bernoulli, x.shape, generator, probability=chance("bernoulli", p))
    return cast(hit, x.dtype)


def randperm(n: Any, seed: int = 0, offset: int = 0, dtype: Any = D.int64) -> Tensor:
    """Return the numbers from 0 to n - 1 in random order.

    Args:
        n (int): How many numbers.
        seed (int): The seed, to which `offset` is added; where both are 0 the default generator is
            used. Default: 0.
        offset (int): What is added to the seed. Default: 0.
        dtype (DType | None): The element type. Default: int64.

    Returns:
        Tensor: (n,).

    Examples:
        >>> import mycel as ms
        >>> sorted(ms.ops.randperm(4).tolist())
        [0, 1, 2, 3]
    """
    arguments.integer("randperm", "seed", seed)
    arguments.integer("randperm", "offset", offset)
    count = size_of("randperm", n)
    generator = repeated_generator(None if seed == 0 and offset == 0 else seed + offset)
    return cast(draw(_permutation, check_sizes("randperm", (count,)), generator), D.from_any(dtype))


def shuffle(x: Any, seed: int | None = None) -> Tensor:
    """Return the slices along axis 0 in random order.

    >>> import mycel as ms
    >>> sorted(ms.ops.shuffle(ms.ops.arange(4)).tolist())
    [0, 1, 2, 3]
    """
    value = operand("shuffle", x)
    if value.ndim == 0:
        return value
    return run(I.take, value, draw(_permutation, (value.shape[0],), seeded_generator(seed)), axis=0)


def _categories(weights: Tensor, count: DimLike, seed: None | int | Generator) -> Tensor:
    """Return `count` int32 positions for each row of weights, which need not sum to 1."""
    running = run(sort_and_scan.cumsum, weights, axis=weights.ndim - 1, reverse=False)
    total = take_slice(running, running.ndim - 1, running.shape[-1] - 1, running.shape[-1])
    point = draw(random.uniform, (*weights.shape[:-1], count), seeded_generator(seed), dtype=weights.dtype) * total
    found = run(sort_and_scan.search_sorted, running, point, side="right")
    # Rounding of point may reach the total itself: the last position with a weight is the answer
    # then.
    last = weights.shape[-1] - 1
    return run(E.minimum, found, constant_like(last, found))


def multinomial(input: Any, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Return positions along the last axis, drawn with probabilities in proportion to weights.

    Args:
        input (Tensor): The weights, (C,) or (N, C), not negative; they need not sum to 1.
        num_samples (int): How many positions.
        replacement (bool): Whether a position may come twice. Default: True.
        seed (int | None): The seed; None for the default generator. Default: None.

    Returns:
        Tensor: (num_samples,) or (N, num_samples), int32.

    Raises:
        ValueError: For more samples than positions without replacement.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.multinomial(ms.Tensor([0.0, 1.0, 0.0]), 2).tolist()
        [1, 1]
    """
    weights = wide(floating("multinomial", input))
    if weights.ndim not in (1, 2):
        raise ShapeError(f"multinomial: the weights must be (C,) or (N, C), not {weights._type}")
    num_samples = operator.index(size_of("multinomial", num_samples))
    if num_samples < 1:
        raise ValueError(f"multinomial: num_samples must be at least 1, not {num_samples}")
    if replacement:
        return _categories(weights, num_samples, seed)
    classes = weights.shape[-1]
    if isinstance(classes, int) and num_samples > classes:
        raise ValueError(
            f"multinomial: {num_samples} samples without replacement need as many positions, not {classes}"
        )
    # The smallest of exponential numbers divided by their weights: Efraimidis and Spirakis, 2006.
    unit = draw(random.uniform, weights.shape, seeded_generator(seed), dtype=weights.dtype)
    score = -run(E.log1p, -unit) / weights
    order: Tensor = run(sort_and_scan.sort, score, axis=weights.ndim - 1, descending=False)[1]
    return take_slice(order, order.ndim - 1, 0, num_samples)


def random_categorical(logits: Any, num_sample: int, seed: Any = 0, dtype: Any = D.int64) -> Tensor:
    """Return positions along the last axis, drawn with the probabilities softmax(logits).

    Args:
        logits (Tensor): (N, C).
        num_sample (int): How many positions.
        seed (int | None): The seed; 0 for the default generator. Default: 0.
        dtype (DType | None): The element type of the positions. Default: int64.

    Returns:
        Tensor: (N, num_sample).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.random_categorical(ms.Tensor([[0.0, 100.0]]), 2).tolist()
        [[1, 1]]
    """
    x = wide(floating("random_categorical", logits))
    if x.ndim != 2:
        raise ShapeError(f"random_categorical: the logits must be (N, C), not {x._type}")
    count = size_of("random_categorical", num_sample)
    if isinstance(count, int) and count < 0:
        raise arguments.wrong_value("random_categorical", "num_sample", "at least 0", count)
    return cast(_categories(softmax(x), count, repeated_generator(seed or None)), D.from_any(dtype))


def _drop(name: str, x: Tensor, p: Any, mask_shape: Shape, seed: int | None) -> Tensor:
    rate = chance(name, p)
    if rate == 0.0:
        return x
    if rate == 1.0:
        return x * 0.0
    kept = draw(random.bernoulli, mask_shape, seeded_generator(seed), probability=1.0 - rate)
    return select(kept, x * (1.0 / (1.0 - rate)), 0.0)


def dropout(input: Any, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Set each element to 0 with probability `p` and multiply the others by 1 / (1 - p) (Srivastava
    et al., 2014).

    Args:
        input (Tensor): The tensor.
        p (float): The probability of 0. Default: 0.5.
        training (bool): Whether anything is done. Default: True.
        seed (int | None): The seed; None for the default generator. Default: None.

    Returns:
        Tensor: The shape and type of the input.

    Raises:
        ValueError: For `p` outside [0, 1].

    Examples:
        >>> import mycel as ms
        >>> ms.ops.dropout(ms.Tensor([1.0, 2.0]), training=False).tolist()
        [1.0, 2.0]
    """
    arguments.flag("dropout", "training", training)
    x = floating("dropout", input)
    rate = chance("dropout", p)
    return _drop("dropout", x, rate, x.shape, seed) if training else x


def _channel_dropout(name: str, input: Any, p: float, training: bool, ranks: tuple[int, ...]) -> Tensor:
    x = floating(name, input)
    rate = chance(name, p)
    if x.ndim not in ranks:
        raise ShapeError(f"{name}: the input must have {' or '.join(map(str, ranks))} dimensions, not {x._type}")
    if not training:
        return x
    lead = x.ndim - builtins.max(ranks) + 2
    return _drop(name, x, rate, (*x.shape[:lead], *(1,) * (x.ndim - lead)), None)


def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, L) or (C, L).

    >>> import mycel as ms
    >>> ms.ops.dropout1d(ms.ops.ones((1, 2, 3)), training=False).shape
    (1, 2, 3)
    """
    return _channel_dropout("dropout1d", input, p, training, (2, 3))


def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, H, W) or (C, H, W).

    >>> import mycel as ms
    >>> ms.ops.dropout2d(ms.ops.ones((1, 2, 3, 3)), training=False).shape
    (1, 2, 3, 3)
    """
    arguments.flag("dropout2d", "training", training)
    return _channel_dropout("dropout2d", input, p, training, (3, 4))


def dropout3d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, D, H, W) or (C, D, H, W).

    >>> import mycel as ms
    >>> ms.ops.dropout3d(ms.ops.ones((1, 2, 3, 3, 3)), training=False).shape
    (1, 2, 3, 3, 3)
    """
    arguments.flag("dropout3d", "training", training)
    return _channel_dropout("dropout3d", input, p, training, (4, 5))


def rrelu(input: Any, lower: float = 0.125, upper: float = 1 / 3) -> Tensor:
    """Return x where it is positive, else a * x, where each element's a is drawn uniformly from
    [`lower`, `upper`). Xu et al., 2015.

    >>> import mycel as ms
    >>> ms.ops.rrelu(ms.Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    lower, upper = arguments.number("rrelu", "lower", lower), arguments.number("rrelu", "upper", upper)
    if not 0.0 <= lower <= upper <= 1.0:
        raise ValueError(f"rrelu: lower {lower} and upper {upper} must satisfy 0 <= lower <= upper <= 1")
    x = floating("rrelu", input)
    slope = rand(*x.shape, dtype=x.dtype) * (upper - lower) + lower
    return select(run(E.le, x, constant_like(0.0, x)), x * slope, x)


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """Return softmax((logits + g) / tau) along an axis, with Gumbel noise g (Jang et al., 2017).

    Args:
        logits (Tensor): The logarithms of probabilities, not normalised.
        tau (float): The temperature. Default: 1.0.
        hard (bool): Whether the result is one-hot at the largest element, with the derivative of
            the softmax. Default: False.
        dim (int): The axis. Default: -1.

    Returns:
        Tensor: The shape and type of `logits`.

    Raises:
        ValueError: Unless `tau` is positive.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.sum(ms.ops.gumbel_softmax(ms.ops.zeros((2, 3)), hard=True), -1).tolist()
        [1.0, 1.0]
    """
    arguments.instance("gumbel_softmax", "tau", tau, float)
    arguments.flag("gumbel_softmax", "hard", hard)
    if tau <= 0:
        raise arguments.wrong_value("gumbel_softmax", "tau", "positive", tau)
    x = floating("gumbel_softmax", logits)
    axis = axis_of("gumbel_softmax", dim, x.ndim)
    unit = draw(random.uniform, x.shape, seeded_generator(None), dtype=D.float32)
    exponential = -run(E.log1p, -unit)
    noise = cast(-run(E.log, run(E.maximum, exponential, constant_like(1e-30, exponential))), x.dtype)
    soft = softmax((x + noise) / tau, axis)
    if not hard:
        return soft
    best = cast(one_hot(run(R.argmax, soft, axis=axis), x.shape[axis], axis=axis), x.dtype)
    return best + (soft - run(E.stop_gradient, soft))
