"""Mathematical functions as layers, which MindSpore keeps for older programs.

``LBeta`` avoids the difference of large numbers in lgamma(a) + lgamma(b) - lgamma(a + b). With
Stirling's formula for z >= 8,

    lgamma(z) = (z - 1/2) log z - z + log(2 pi) / 2 + c(z),
    c(z) = 1 / (12 z) - 1 / (360 z**3) + ...

the large terms of the arguments that are at least 8 cancel by algebra (DiDonato and Morris, 1992),
and logarithms of quotients remain.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.layer.argument_free import Plain
from mycel.ops._operands import input_of, wide

__all__ = [
    "DiGamma",
    "IGamma",
    "LBeta",
    "LGamma",
    "MatDet",
    "MatInverse",
    "MatMul",
    "Moments",
    "Range",
    "ReduceLogSumExp",
]

# The coefficients of z**-1, z**-3, ... in c(z): B(2 k) / (2 k (2 k - 1)) with Bernoulli's numbers.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_LARGE = 8.0


def _floating(owner: str, *operands: Any) -> None:
    for x in operands:
        arguments.instance(owner, "the input", x, Tensor)
        if not x.dtype.is_floating or x.dtype is not operands[0].dtype:
            raise TypeError(
                f"{owner}: the input must be floating, and of one type; its type is "
                f"{' and '.join(t.dtype.name for t in operands)}"
            )


class LGamma(Plain):
    """The logarithm of the absolute value of the gamma function, inf at 0 and negative whole
    numbers.

    Raises TypeError for integers.

    >>> import mycel as ms
    >>> ms.nn.LGamma()(ms.Tensor([1.0, 4.0])).asnumpy().round(4).tolist()
    [0.0, 1.7918000221252441]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Return log |gamma(x)|."""
        _floating("LGamma", x)
        return ops.lgamma(x)


class DiGamma(Plain):
    """The derivative of the logarithm of the gamma function.

    Raises TypeError for integers.

    >>> import mycel as ms
    >>> round(float(ms.nn.DiGamma()(ms.Tensor([1.0]))), 4)
    -0.5772
    """

    def construct(self, x: Tensor) -> Tensor:
        """Return the function of each element."""
        _floating("DiGamma", x)
        return ops.digamma(x)


class IGamma(Plain):
    """The lower regularised incomplete gamma function: the integral of ``t**(a - 1) exp(-t)`` from
    0 to x over gamma(a).

    a and x broadcast. Raises TypeError for integers or operands of two types.

    >>> import mycel as ms
    >>> round(float(ms.nn.IGamma()(ms.Tensor([1.0]), ms.Tensor([1.0]))), 4)
    0.6321
    """

    def construct(self, a: Tensor, x: Tensor) -> Tensor:
        """Return the function of each pair."""
        _floating("IGamma", a, x)
        return ops.igamma(a, x)


def _correction(z: Tensor) -> Tensor:
    """Return c(z) of the module's docstring, for z of 8 and more."""
    inverse = 1 / z
    square = inverse * inverse
    total: Any = _STIRLING[-1]
    for coefficient in reversed(_STIRLING[:-1]):
        total = total * square + coefficient
    return total * inverse


class LBeta(Plain):
    """The logarithm of the beta function, lgamma(x) + lgamma(y) - lgamma(x + y), without the
    cancellation of large terms.

    x and y are positive and broadcast. Raises TypeError for integers or operands of two types.

    >>> import mycel as ms
    >>> ms.nn.LBeta()(ms.Tensor([2.0]), ms.Tensor([2.0])).asnumpy().round(4).tolist()
    [-1.7918000221252441]
    """

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the function of each pair."""
        _floating("LBeta", x, y)
        kind, x, y = x.dtype, wide(x), wide(y)
        a, b = ops.minimum(x, y), ops.maximum(x, y)
        # Each formula gets arguments in its own range, so that the derivative of the one that is
        # not selected is finite.
        low, high = ops.maximum(a, _LARGE), ops.maximum(b, _LARGE)
        small = ops.minimum(a, _LARGE)
        both = low + high
        large = (low - 0.5) * ops.log(low / both) - high * ops.log1p(low / high) - 0.5 * ops.log(high)
        large = large + 0.5 * math.log(2 * math.pi) + _correction(low) + _correction(high) - _correction(both)
        mixed = ops.lgamma(small) + small - (high - 0.5) * ops.log1p(small / high) - small * ops.log(small + high)
        mixed = mixed + _correction(high) - _correction(small + high)
        under = ops.minimum(b, _LARGE)
        plain = ops.lgamma(small) + ops.lgamma(under) - ops.lgamma(small + under)
        return cast(ops.where(a >= _LARGE, large, ops.where(b >= _LARGE, mixed, plain)), kind)


def _factor(a: Tensor) -> Tensor:
    """Return Cholesky's factor of the symmetric part, so that the derivative is symmetric."""
    value = wide(a)
    return ops.cholesky(0.5 * (value + ops.swapaxes(value, -1, -2)))


class MatInverse(Plain):
    """The inverses of symmetric positive definite matrices (..., n, n) by Cholesky's decomposition
    of the symmetric part.

    >>> import mycel as ms
    >>> ms.nn.MatInverse()(ms.Tensor([[4.0, 0.0], [0.0, 2.0]])).asnumpy().round(4).tolist()
    [[0.25, 0.0], [0.0, 0.5]]
    """

    def construct(self, a: Tensor) -> Tensor:
        """Return the inverses."""
        a = input_of(self, a)
        _floating("MatInverse", a)
        factor = ops.inverse(_factor(a))
        return cast(ops.matmul(ops.swapaxes(factor, -1, -2), factor), a.dtype)


class MatDet(Plain):
    """The determinants of symmetric positive definite matrices (..., n, n) by Cholesky's
    decomposition of the symmetric part.

    >>> import mycel as ms
    >>> float(ms.nn.MatDet()(ms.Tensor([[4.0, 0.0], [0.0, 4.0]])))
    16.0
    """

    def construct(self, a: Tensor) -> Tensor:
        """Return the determinants."""
        a = input_of(self, a)
        _floating("MatDet", a)
        roots = ops.diagonal(_factor(a), 0, -2, -1)
        return cast(ops.square(ops.prod(roots, -1)), a.dtype)


class MatMul(Cell):
    """The product ``x1 @ x2`` of `ops.matmul`, with the last two axes of one or both transposed.

    Vectors are not transposed.

    >>> import mycel as ms
    >>> ms.nn.MatMul(transpose_x2=True)(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0, 4.0]])).tolist()
    [[11.0]]
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1 = arguments.flag("MatMul", "transpose_x1", transpose_x1)
        self.transpose_x2 = arguments.flag("MatMul", "transpose_x2", transpose_x2)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the product."""
        x1 = input_of(self, x1)
        x2 = input_of(self, x2)
        if self.transpose_x1 and x1.ndim > 1:
            x1 = ops.swapaxes(x1, -1, -2)
        if self.transpose_x2 and x2.ndim > 1:
            x2 = ops.swapaxes(x2, -1, -2)
        return ops.matmul(x1, x2)


class Moments(Cell):
    """The mean and the biased variance over `axis`, an int or several (by default all).

    Raises TypeError for integers.

    >>> import mycel as ms
    >>> mean, variance = ms.nn.Moments()(ms.Tensor([1.0, 3.0]))
    >>> float(mean), float(variance)
    (2.0, 1.0)
    """

    def __init__(self, axis: Any = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        given = () if axis is None else axis
        if isinstance(given, (tuple, list)):
            self.axis: Any = tuple(arguments.integer("Moments", "each of axis", a) for a in given)
        else:
            self.axis = arguments.integer("Moments", "axis", given)
        self.keep_dims = False if keep_dims is None else arguments.flag("Moments", "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance."""
        x = input_of(self, x)
        _floating("Moments", x)
        axis = None if self.axis == () else self.axis
        value = wide(x)
        mean = ops.mean(value, axis, True)
        variance = ops.mean(ops.square(value - mean), axis, self.keep_dims)
        mean = mean if self.keep_dims else ops.mean(value, axis)
        return cast(mean, x.dtype), cast(variance, x.dtype)


class Range(Cell):
    """The numbers from `start` to `limit`, excluded, in steps of `delta`; with `start` alone, the
    numbers from 0 to it.

    The result is int32 where all three are whole numbers, else float32. Raises TypeError for
    arguments that are no numbers, ValueError for a `delta` of 0.

    >>> import mycel as ms
    >>> ms.nn.Range(1, 8, 3)().tolist()
    [1, 4, 7]
    """

    def __init__(self, start: Any, limit: Any = None, delta: Any = 1) -> None:
        super().__init__()
        for name, value in (("start", start), ("limit", 0 if limit is None else limit), ("delta", delta)):
            if not isinstance(value, numbers.Real):
                raise arguments.wrong_type("Range", name, "a number", value)
        if delta == 0:
            raise ValueError("Range: delta must not be 0")
        self.start: Any = 0 if limit is None else start
        self.limit = start if limit is None else limit
        self.delta = delta

    def construct(self) -> Tensor:
        """Return the numbers."""
        bounds = (self.start, self.limit, self.delta)
        kind = D.int32 if all(isinstance(v, numbers.Integral) for v in bounds) else D.float32
        return ops.arange(*bounds, dtype=kind)


class ReduceLogSumExp(Cell):
    """The logarithm of the sum of exp(x) over `axis`, an int or several; () stands for all axes.

    No exponential overflows.

    >>> import mycel as ms
    >>> float(ms.nn.ReduceLogSumExp(0)(ms.Tensor([1000.0])))
    1000.0
    """

    def __init__(self, axis: Any, keep_dims: bool = False) -> None:
        super().__init__()
        if isinstance(axis, (tuple, list)):
            self.axis: Any = tuple(arguments.integer("ReduceLogSumExp", "each of axis", a) for a in axis)
        else:
            self.axis = arguments.integer("ReduceLogSumExp", "axis", axis)
        self.keep_dims = arguments.flag("ReduceLogSumExp", "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        """Return the logarithm."""
        x = input_of(self, x)
        axis = tuple(range(x.ndim)) if self.axis == () else self.axis
        return ops.logsumexp(x, axis, self.keep_dims)
