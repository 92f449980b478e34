"""Distances between rows, covariances, and combinations of elements."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import (
    floating,
    matched,
    move_axis,
    need_room,
    operand,
    operands,
    reshaped,
    run,
    size_of,
    take_slice,
)
from mycel.ops.algebra.linalg import matmul
from mycel.ops.arrange import meshgrid
from mycel.ops.array import concat, ravel, stack, swapaxes
from mycel.ops.creation import ones_like, zeros
from mycel.ops.vector_norms import vector_norm

__all__ = ["cartesian_prod", "cdist", "combinations", "cov", "dist", "pdist", "vander"]

# Up to so many rows differences are added up along a row.
FEW = 16


@fused
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """Return the p-norm distances between the rows of two (stacks of) matrices: (..., P, M) and
    (..., R, M) give (..., P, R).

    >>> import mycel as ms
    >>> ms.ops.cdist(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])).tolist()
    [[5.0]]
    """
    arguments.instance("cdist", "p", p, float)
    a, b = matched("cdist", x1, x2, "x1", "x2")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: the operands must be matrices with rows of one length: {a._type} and {b._type}")
    if isinstance(b.shape[-2], int) and b.shape[-2] < FEW:
        a = reshaped(a, (*a.shape[:-1], 1, a.shape[-1]))
        b = reshaped(b, (*b.shape[:-2], 1, *b.shape[-2:]))
        return vector_norm(a - b, p, -1)
    # Neighbouring results are computed side by side.
    a, b = reshaped(a, (*a.shape, 1)), move_axis(b, b.ndim - 1, b.ndim - 2)
    return vector_norm(a - reshaped(b, (*b.shape[:-2], 1, *b.shape[-2:])), p, -2)


def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Return the p-norm distances between the rows of a matrix, for every pair i < j.

    >>> import mycel as ms
    >>> ms.ops.pdist(ms.Tensor([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [5.0]
    """
    arguments.instance("pdist", "p", p, float)
    x = floating("pdist", input)
    if x.ndim != 2:
        raise ShapeError(f"pdist: the input must be a matrix, not {x._type}")
    if x.shape[0] < 2:
        return zeros((0,), x.dtype)
    return concat([vector_norm(x[i + 1 :] - x[i : i + 1], p, -1) for i in builtins.range(x.shape[0] - 1)])


def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """Return the p-norm of the difference of two tensors.

    >>> import mycel as ms
    >>> ms.ops.dist(ms.Tensor([0.0, 0.0]), ms.Tensor([3.0, 4.0])).item()
    5.0
    """
    arguments.integer("dist", "p", p)
    a, b = operands("dist", input, other)
    return vector_norm(a - b, p)


def vander(x: Any, N: int | None = None) -> Tensor:
    """Return the matrix of decreasing powers x**(N-1), ..., x**1, x**0 of a vector.

    >>> import mycel as ms
    >>> ms.ops.vander(ms.Tensor([2.0, 3.0])).tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    value = operand("vander", x)
    if value.ndim != 1:
        raise ShapeError(f"vander: takes a vector, not {value._type}")
    count = operator.index(size_of("vander", value.shape[0] if N is None else N))
    if count < 0:
        raise arguments.wrong_value("vander", "N", "at least 0", count)
    if count == 0:
        return zeros((value.shape[0], 0), value.dtype)
    need_room("vander", (value.shape[0], count), value.dtype)
    # Twice as many powers a step: those there are, and they times the next one.
    base = reshaped(value, (value.shape[0], 1))
    powers, width = ones_like(base), 1
    while width < count:
        step = builtins.min(width, count - width)
        above = run(E.mul, take_slice(powers, 1, width - 1, width), base)
        powers = concat((powers, run(E.mul, take_slice(powers, 1, 0, step), above)), 1)
        width += step
    return run(S.reverse, powers, axes=(1,))


def _over_observations(v: Tensor) -> Tensor:
    """Return the sum over the last axis, which is kept for a matrix."""
    return run(R.reduce_sum, v, axes=(v.ndim - 1,), keepdims=v.ndim == 2)


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Return the covariances of the variables (rows) of `input` over the observations (columns),
    divided by their number minus `correction`.

    Args:
        input (Tensor): (variables, observations).
        correction (int): What is subtracted from the number of observations. Default: 1.
        fweights (Tensor | None): How many times each observation counts. Default: None.
        aweights (Tensor | None): How much each observation weighs. Default: None.

    Returns:
        Tensor: (variables, variables).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.cov(ms.Tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    x, correction = floating("cov", input), arguments.int64("cov", "correction", correction)
    if x.ndim > 2:
        raise ShapeError(f"cov: takes at most 2 dimensions, not {x._type}")
    x = reshaped(x, (1, x.size)) if x.ndim < 2 else x
    weight: Tensor | None = None
    for given in (fweights, aweights):
        if given is not None:
            w = operand("cov", given, x.dtype)
            weight = w if weight is None else weight * w
    count: Any = x.shape[1] if weight is None else _over_observations(weight)
    scaled = x if weight is None else x * weight
    centred = x - _over_observations(scaled) / count
    if aweights is None or correction == 0 or weight is None:
        factor = count - correction
    else:
        factor = count - correction * _over_observations(weight * operand("cov", aweights, x.dtype)) / count
    product = matmul(centred if weight is None else centred * weight, swapaxes(centred, 0, 1)) / factor
    return reshaped(product, ()) if x.shape[0] == 1 else product


def cartesian_prod(*inputs: Any) -> Tensor:
    """Return all combinations of one element from each vector, as rows. The last vector changes
    fastest.

    >>> import mycel as ms
    >>> ms.ops.cartesian_prod(ms.Tensor([1, 2]), ms.Tensor([5])).tolist()
    [[1, 5], [2, 5]]
    """
    if len(inputs) == 1:
        return operand("cartesian_prod", inputs[0])
    return stack([ravel(g) for g in meshgrid(*inputs, indexing="ij")], -1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all choices of `r` elements of a vector, in order, as rows.

    With `with_replacement` an element may be chosen more than once.

    >>> import mycel as ms
    >>> ms.ops.combinations(ms.Tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    x = operand("combinations", input)
    if x.ndim != 1 or size_of("combinations", r) < 0:
        raise ShapeError(f"combinations: takes a vector and r >= 0, not {x._type} and {r}")
    n = operator.index(x.shape[0])
    count = math.comb(n + r - 1, r) if with_replacement and n else math.comb(n, r)
    need_room("combinations", (size_of("combinations", count), size_of("combinations", r)), D.int64)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    # Python makes room for one choice before it finds that there is none.
    rows = list(choose(builtins.range(n), r)) if count else []
    index = Tensor([list(row) for row in rows], D.int32) if rows and r else Tensor(shape=(len(rows), r), dtype=D.int32)
    return run(I.take, x, index, axis=0)
