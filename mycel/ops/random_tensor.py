"""The methods of tensors that return new tensors of random numbers."""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import default_generator, seeded_generator
from mycel.ops._operands import number_of, run
from mycel.ops.random import draw, random_categorical

__all__: list[str] = []


def _kind(x: Tensor) -> Any:
    return x.dtype if x.dtype.is_floating else D.float32


def _cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Return numbers from the Cauchy distribution with median `median` and scale `sigma`, which is
    positive.

    They have the tensor's shape and type; float32 for integers.
    """
    number_of("cauchy", "median", median)
    if not number_of("cauchy", "sigma", sigma) > 0:
        raise ValueError(f"cauchy: sigma must be positive, not {sigma}")
    # The middles of equal parts of (-pi / 2, pi / 2), at whose ends the tangent is infinite.
    unit = draw(random.uniform, self.shape, default_generator, dtype=D.float64) * (1 - 2.0**-53) + (2.0**-54 - 0.5)
    return cast(run(E.tan, unit * math.pi) * float(sigma) + float(median), _kind(self))


def _log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Return exp(x) for x from the normal distribution with mean `mean` and standard deviation
    `std`, which is positive.

    The result has the tensor's shape and type; float32 for integers.
    """
    number_of("log_normal", "mean", mean)
    if not number_of("log_normal", "std", std) > 0:
        raise ValueError(f"log_normal: std must be positive, not {std}")
    drawn = draw(random.normal, self.shape, default_generator, dtype=_kind(self))
    return run(E.exp, drawn * float(std) + float(mean))


def _random_categorical(self: Tensor, num_sample: int, seed: int = 0, dtype: Any = D.int64) -> Tensor:
    """See `mycel.ops.random_categorical`."""
    return random_categorical(self, num_sample, seed, dtype)


def _uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> Tensor:
    """Return uniform numbers in [`from_`, `to`), in the tensor's shape and type.

    Raises ValueError where `from_` is larger than `to`.
    """
    if number_of("uniform", "from_", from_) > number_of("uniform", "to", to):
        raise ValueError(f"uniform: from_ must not be larger than to, but {from_} > {to}")
    unit = draw(random.uniform, self.shape, seeded_generator(generator), dtype=_kind(self))
    return cast(unit * float(to - from_) + float(from_), self.dtype)


for _method in (_cauchy, _log_normal, _random_categorical, _uniform):
    _method.__name__ = _method.__name__[1:]
    _method.__qualname__ = f"Tensor.{_method.__name__}"
    setattr(Tensor, _method.__name__, _method)
