"""The base of distributions.

A subclass lists its parameters in `_names` and defines some of these functions of a value x and of
the parameters p: `_log_prob(x, *p)`, `_cdf`, `_mean`, `_var`, `_mode`, `_entropy`,
`_kl_loss(*other, *p)`, `_sample(shape, *p)`. The rest follows from them: a probability is the
exponential of its logarithm, survival is one minus `_cdf`, a cross entropy is an entropy plus a
divergence. A parameter may be left out when the distribution is made; then every call must give it.
Parameters given to a call come in their order after the value (after the other distribution's, for
divergences), or by name.

A distribution with a seed draws from its own generator, so that equal seeds give equal numbers;
without a seed (None or 0) it draws from the default generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import NeedsValue
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import Generator, default_generator
from mycel.ops._operands import operand, sizes_of, term

__all__ = ["Distribution"]

_METHODS = (
    "prob",
    "log_prob",
    "cdf",
    "log_cdf",
    "survival_function",
    "log_survival",
    "mean",
    "sd",
    "var",
    "mode",
    "entropy",
    "kl_loss",
    "cross_entropy",
    "sample",
    "get_dist_args",
    "get_dist_type",
)


# The element types of samples of continuous and of discrete distributions.
FLOATS = (D.float16, D.float32, D.float64, D.bfloat16)
NUMBERS = (*FLOATS, *D.int_type, *D.uint_type)


def values_of(value: Any) -> Any:
    """Return a parameter, or the array of a tensor's values; None where there are none."""
    if not isinstance(value, Tensor):
        return value
    try:
        return value.asnumpy()
    except NeedsValue:
        return None


class Distribution(Cell):
    """A probability distribution.

    Called with the name of a method and its arguments it returns that method's result.

    Args:
        seed (int | None): The seed of its generator; None or 0 for the default one.
        dtype (DType | None): The element type of samples.
        name (str): Its name in messages.
        param (dict[str, Any] | None): The arguments that it was made with.

    Examples:
        >>> import mycel as ms
        >>> normal = ms.nn.probability.distribution.Normal(0.0, 1.0)
        >>> f"{normal('log_prob', ms.Tensor(0.0)).item():.4f}"
        '-0.9189'
    """

    _names: tuple[str, ...] = ()
    # The element types of samples; none for all.
    _types: tuple[D.DType, ...] = ()
    # Whether single numbers are taken for parameters, besides lists, arrays and tensors.
    _single = True
    # What `repr` calls the parameters.
    _shown: tuple[str, ...] = ()

    def __init__(self, seed: int | None, dtype: Any, name: str, param: dict[str, Any] | None) -> None:
        super().__init__()
        arguments.text(type(self).__name__, "name", name)
        if seed is not None:
            arguments.integer(name, "seed", seed, 0)
        self.seed = seed or 0
        self.name = name
        self.dtype = D.from_any(dtype)
        if self._types and self.dtype not in self._types:
            raise TypeError(
                f"{name}: dtype must be one of {', '.join(t.name for t in self._types)}, not {self.dtype.name}"
            )
        # Parameters and probabilities are floats, also where samples are integers.
        self.parameter_type = self.dtype if self.dtype.is_floating else D.float32
        self.parameters: dict[str, Any] = dict(param or {})
        self._generator = default_generator if not seed else Generator().manual_seed(seed)
        self._held: list[Tensor | None] = []
        self.broadcast_shape: tuple[Any, ...] = ()

    def extend_repr(self) -> str:
        """Return the parameters, or where they are tensors the shape that they have in common."""
        if not self._shown:
            return ""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        held = self._held or [None] * len(self._shown)
        return ", ".join(f"{word} = {value}" for word, value in zip(self._shown, held))

    @property
    def batch_shape(self) -> tuple[Any, ...]:
        """The common shape of the parameters."""
        return self.broadcast_shape

    @property
    def is_scalar_batch(self) -> bool:
        """Whether the parameters are single numbers."""
        return self.broadcast_shape == ()

    def _hold(self, **values: Any) -> None:
        """Keep the parameters that the distribution is made with."""
        for name, value in values.items():
            self._of_numbers(name, value)
            held = None
            if value is not None:
                held = value if isinstance(value, Tensor) else Tensor(np.asarray(value), self.parameter_type)
            self._held.append(held)
            if held is not None:
                self.broadcast_shape = broadcast_shapes(self.broadcast_shape, held.shape)
            if not callable(getattr(type(self), name, None)):
                setattr(self, name, held)

    def _of_numbers(self, what: str, value: Any) -> None:
        """Raise TypeError unless a parameter is a list, an array, a tensor, a number or None."""
        kinds = (list, np.ndarray, Tensor, *((int, float) if self._single else ()))
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            numbers = "a number, " if self._single else ""
            raise arguments.wrong_type(self.name, what, f"{numbers}a list, an array or a tensor", value)

    def _check(self, what: str, value: Any, low: float = 0.0, high: float = np.inf, closed: bool = False) -> None:
        """Raise ValueError for numbers outside of bounds; tensors whose values are not known, as
        while a function is staged, are not checked.

        `low` and `high` are the bounds; with `closed` they are allowed too.
        """
        self._of_numbers(what, value)
        known = values_of(value)
        if known is None:
            return
        try:
            found = np.asarray(known, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{type(self).__name__}: {what} must be numbers, not {value!r:.80}") from None
        if not np.all((found >= low if closed else found > low) & (found <= high if closed else found < high)):
            raise ValueError(
                f"{self.name}: {what} must be {'at least' if closed else 'greater than'} {low:g} and "
                f"{'at most' if closed else 'less than'} {high:g}, not {value!r}"
            )

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any], suffix: str = "") -> list[Tensor]:
        """Return the parameters: those given to a call, else those that the distribution was made
        with.
        """
        if not self._names:
            return list(args)
        given = list(args) + [None] * (len(self._names) - len(args))
        if len(given) > len(self._names):
            raise TypeError(f"{self.name} takes the parameters {', '.join(self._names)}, not {len(given)} of them")
        held = self._held if self._held and not suffix else [None] * len(self._names)
        found = []
        for name, value, own in zip(self._names, given, held):
            for spelling in (name + suffix, f"{name}1{suffix}"):
                value = kwargs.pop(spelling, value)
            value = own if value is None else value
            if value is None:
                raise TypeError(
                    f"{self.name}: the parameter {name + suffix} is needed, in the call or where the distribution is "
                    "made"
                )
            found.append(cast(term(self.name, value), self.parameter_type))
        if kwargs and not suffix:
            raise TypeError(f"{self.name} has no parameters {', '.join(kwargs)}; they are {', '.join(self._names)}")
        return found

    def _both(self, dist: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
        """Return the parameters of another distribution of the same kind, and of this one."""
        if dist != type(self).__name__:
            raise ValueError(f"{self.name}: the other distribution must be {type(self).__name__}, not {dist}")
        count = len(self._names)
        return self._given(args[:count], kwargs, "_b"), self._given(args[count:], kwargs)

    def _value(self, name: str, value: Any) -> Tensor:
        return cast(operand(f"{self.name}.{name}", value), self.parameter_type)

    def _undefined(self, name: str) -> NotImplementedError:
        known = ", ".join(
            n for n in _METHODS[:-2] if getattr(type(self), f"_{n}", None) is not getattr(Distribution, f"_{n}", None)
        )
        return NotImplementedError(f"{name} is not implemented for the {self.name} distribution; defined are {known}")

    def prob(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the density, or for discrete distributions the probability, of a value."""
        return self._prob(self._value("prob", value), *self._given(args, kwargs))

    def log_prob(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logarithm of `prob`."""
        return self._log_prob(self._value("log_prob", value), *self._given(args, kwargs))

    def cdf(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the probability of a number that is at most the value."""
        return self._cdf(self._value("cdf", value), *self._given(args, kwargs))

    def log_cdf(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logarithm of `cdf`."""
        return self._log_cdf(self._value("log_cdf", value), *self._given(args, kwargs))

    def survival_function(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the probability of a number that is greater than the value."""
        return self._survival_function(self._value("survival_function", value), *self._given(args, kwargs))

    def log_survival(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logarithm of `survival_function`."""
        return self._log_survival(self._value("log_survival", value), *self._given(args, kwargs))

    def mean(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the expected value."""
        return self._full(self._mean, args, kwargs)

    def sd(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the standard deviation."""
        return self._full(self._sd, args, kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the variance."""
        return self._full(self._var, args, kwargs)

    def mode(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the value of the highest density or probability, in the distribution's element
        type.
        """
        return cast(self._full(self._mode, args, kwargs), self.dtype)

    def entropy(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the expected value of -log_prob."""
        return self._full(self._entropy, args, kwargs)

    def kl_loss(self, dist: str, *args: Any, **kwargs: Any) -> Tensor:
        """Return the divergence KL(this || other) to another distribution (Kullback and Leibler,
        1951).

        `dist` names its kind, which must be that of this one, and its parameters come first.
        """
        other, own = self._both(dist, args, kwargs)
        return self._kl_loss(*other, *own)

    def cross_entropy(self, dist: str, *args: Any, **kwargs: Any) -> Tensor:
        """Return the expected value, under this distribution, of the other one's -log_prob.

        It is the entropy plus the divergence `kl_loss`, whose arguments it takes.
        """
        other, own = self._both(dist, args, kwargs)
        return self._entropy(*own) + self._kl_loss(*other, *own)

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Tensor:
        """Return random values, of shape `shape` followed by that of the parameters."""
        own, sizes = self._given(args, kwargs), sizes_of(f"{self.name}.sample", "shape", shape)
        batch = self._batch(own)
        return cast(self._sample((*sizes, *batch), *own), self.dtype)

    def get_dist_args(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Return all parameters: those given to the call, and else those of the distribution."""
        return tuple(self._given(args, kwargs))

    def get_dist_type(self) -> str:
        """Return the kind of the distribution, as `kl_loss` names it."""
        return type(self).__name__

    def construct(self, name: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the method with this name."""
        if name not in _METHODS:
            raise ValueError(f"{self.name}: there is no method {name!r} to call; there are {', '.join(_METHODS)}")
        return getattr(self, name)(*args, **kwargs)

    def _batch(self, own: list[Tensor]) -> tuple[Any, ...]:
        return broadcast_shapes(*[p.shape for p in own]) if own else ()

    def _full(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        own = self._given(args, kwargs)
        return ops.broadcast_to(function(*own), self._batch(own))

    def _prob(self, value: Tensor, *own: Any) -> Tensor:
        return ops.exp(self._log_prob(value, *own))

    def _log_prob(self, value: Tensor, *own: Any) -> Tensor:
        if type(self)._prob is Distribution._prob:
            raise self._undefined("prob")
        return ops.log(self._prob(value, *own))

    def _cdf(self, value: Tensor, *own: Any) -> Tensor:
        raise self._undefined("cdf")

    def _log_cdf(self, value: Tensor, *own: Any) -> Tensor:
        return ops.log(self._cdf(value, *own))

    def _survival_function(self, value: Tensor, *own: Any) -> Tensor:
        return 1.0 - self._cdf(value, *own)

    def _log_survival(self, value: Tensor, *own: Any) -> Tensor:
        return ops.log(self._survival_function(value, *own))

    def _mean(self, *own: Any) -> Tensor:
        raise self._undefined("mean")

    def _var(self, *own: Any) -> Tensor:
        if type(self)._sd is Distribution._sd:
            raise self._undefined("var")
        return ops.square(self._sd(*own))

    def _sd(self, *own: Any) -> Tensor:
        if type(self)._var is Distribution._var:
            raise self._undefined("sd")
        return ops.sqrt(self._var(*own))

    def _mode(self, *own: Any) -> Tensor:
        raise self._undefined("mode")

    def _entropy(self, *own: Any) -> Tensor:
        raise self._undefined("entropy")

    def _kl_loss(self, *both: Any) -> Tensor:
        raise self._undefined("kl_loss")

    def _sample(self, shape: Any, *own: Any) -> Tensor:
        raise self._undefined("sample")
