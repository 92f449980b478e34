"""Products of matrices and vectors, and functions composed of them.

Every product comes down to the `matmul` primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.shape import CONCAT
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import precision
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import (
    axis_of,
    broadcast,
    iota,
    matched,
    need_matched,
    operand,
    operands,
    permuted,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
    term,
)

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "batch_dot",
    "bmm",
    "cross",
    "dense",
    "dot",
    "einsum",
    "ger",
    "inner",
    "kron",
    "matmul",
    "matrix_power",
    "mm",
    "mv",
    "outer",
    "tensor_dot",
    "trace",
    "vecdot",
]


def _swap(x: Tensor) -> Tensor:
    """Return `x` with its last two axes exchanged."""
    return permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@fused
def matmul(input: Any, other: Any) -> Tensor:
    """Return the matrix product over the last two axes; the axes before broadcast.

    A vector on the left is a row, on the right a column, and its axis is dropped from the result.
    Types meet in their common type, but float64 does not meet shorter floats (TypeError).

    Raises ValueError where the inner sizes differ or an operand has no dimensions.

    >>> import mycel as ms
    >>> ms.ops.matmul(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    a, b = matched("matmul", input, other)
    if a.ndim >= 2 and b.ndim >= 2:
        return _product(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul: operands need at least 1 dimension: {a._type} @ {b._type}; use * for a scalar")
    left = reshaped(a, (1, *a.shape)) if a.ndim == 1 else a
    right = reshaped(b, (*b.shape, 1)) if b.ndim == 1 else b
    out = _product(left, right)
    shape = out.shape[:-1] if b.ndim == 1 else out.shape
    if a.ndim == 1:
        shape = (*shape[:-2], shape[-1]) if b.ndim > 1 else shape[:-1]
    return reshaped(out, shape)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of matrices of one type; small integers and booleans add up in int64."""
    kind = a.dtype
    if kind.kind in "bu" or (kind.kind == "i" and kind.itemsize < 4):
        return cast(run(matrix_product.matmul, cast(a, D.int64), cast(b, D.int64)), kind)
    if precision.active:
        return precision.narrowed(("MatMul", "BatchMatMul"), lambda x, y: run(matrix_product.matmul, x, y), a, b)
    return run(matrix_product.matmul, a, b)


def _ranked(name: str, rank: int, *tensors: Tensor) -> None:
    """Raise ShapeError unless all tensors have `rank` dimensions."""
    for t in tensors:
        if t.ndim != rank:
            raise ShapeError(f"{name}: operands need {rank} dimensions, not {t.ndim} ({t._type})")


@fused
def mm(input: Any, mat2: Any) -> Tensor:
    """Return the product of two matrices.

    Raises ValueError for other ranks.

    >>> import mycel as ms
    >>> ms.ops.mm(ms.Tensor([[2.0]]), ms.Tensor([[3.0]])).tolist()
    [[6.0]]
    """
    a, b = matched("mm", input, mat2, second="mat2")
    _ranked("mm", 2, a, b)
    return _product(a, b)


@fused
def bmm(input_x: Any, mat2: Any) -> Tensor:
    """Return the products of two equally long stacks of matrices, over the last two axes.

    Raises ValueError where the stacks differ.

    >>> import mycel as ms
    >>> ms.ops.bmm(ms.ops.ones((2, 1, 3)), ms.ops.ones((2, 3, 1))).tolist()
    [[[3.0]], [[3.0]]]
    """
    a, b = matched("bmm", input_x, mat2, "input_x", "mat2")
    if a.ndim < 3 or b.ndim != a.ndim or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(f"bmm: operands need at least 3 dimensions and equal leading sizes: {a._type} and {b._type}")
    return _product(a, b)


def mv(mat: Any, vec: Any) -> Tensor:
    """Return the product of a matrix and a vector.

    Raises ValueError for other ranks.

    >>> import mycel as ms
    >>> ms.ops.mv(ms.Tensor([[1.0, 2.0]]), ms.Tensor([3.0, 4.0])).tolist()
    [11.0]
    """
    a, b = matched("mv", mat, vec, "mat", "vec")
    _ranked("mv", 2, a)
    _ranked("mv", 1, b)
    return matmul(a, b)


@fused
def dot(input: Any, other: Any) -> Tensor:
    """Return the sum of products over the last axis of `input` and the second last (or only) of
    `other`.

    >>> import mycel as ms
    >>> float(ms.ops.dot(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
    11.0
    """
    a, b = matched("dot", input, other)
    if a.ndim == 0 or b.ndim == 0:
        return run(E.mul, a, b)
    return tensor_dot(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


@fused
def inner(input: Any, other: Any) -> Tensor:
    """Return the sum of products over the last axes of both.

    >>> import mycel as ms
    >>> float(ms.ops.inner(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
    11.0
    """
    a, b = matched("inner", input, other)
    if a.ndim == 0 or b.ndim == 0:
        return run(E.mul, a, b)
    return tensor_dot(a, b, ((a.ndim - 1,), (b.ndim - 1,)))


@fused
def outer(input: Any, vec2: Any) -> Tensor:
    """Return the products of every element of one vector with every element of another.

    Raises ValueError for other ranks.

    >>> import mycel as ms
    >>> ms.ops.outer(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    a, b = operands("outer", input, vec2)
    _ranked("outer", 1, a, b)
    return run(E.mul, reshaped(a, (*a.shape, 1)), b)


@fused
def ger(input: Any, vec2: Any) -> Tensor:
    """Return the products of every element of one vector with every element of another, as `outer`.

    >>> import mycel as ms
    >>> ms.ops.ger(ms.Tensor([1.0]), ms.Tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0]]
    """
    return outer(input, vec2)


def _axis_pair(name: str, axes: Any, a: Tensor, b: Tensor) -> tuple[list[int], list[int]]:
    """Return the axes of the first and of the second operand that are summed over together."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ShapeError(f"{name}: cannot contract {axes} axes of {a._type} and {b._type}")
        return list(range(a.ndim - axes, a.ndim)), list(range(axes))
    if len(axes) != 2:
        raise ValueError(f"{name}: axes must be an int or a pair, not {axes!r}")
    left, right = ([v] if isinstance(v, int) else list(v) for v in axes)
    if len(left) != len(right):
        raise ValueError(f"{name}: {len(left)} axes of the first operand cannot meet {len(right)} of the second")
    return [axis_of(name, v, a.ndim) for v in left], [axis_of(name, v, b.ndim) for v in right]


def tensor_dot(x1: Any, x2: Any, axes: int | Sequence[Any]) -> Tensor:
    """Return the sum of products over pairs of axes.

    `axes` is a number of axes, the last of `x1` with the first of `x2`, or a pair of lists. The
    axes of `x1` that are not summed over come before those of `x2`.

    Raises ValueError where paired sizes differ.

    >>> import mycel as ms
    >>> ms.ops.tensor_dot(ms.ops.ones((2, 3)), ms.ops.ones((3, 4)), 1).shape
    (2, 4)
    """
    arguments.instance("tensor_dot", "axes", axes, (int, tuple, list))
    a, b = matched("tensor_dot", x1, x2, "x1", "x2")
    left, right = _axis_pair("tensor_dot", axes, a, b)
    sizes = [a.shape[i] for i in left]
    if sizes != [b.shape[i] for i in right]:
        raise ShapeError(f"tensor_dot: axes {left} of {a._type} and {right} of {b._type} have different sizes")
    kept_a = [i for i in range(a.ndim) if i not in left]
    kept_b = [i for i in range(b.ndim) if i not in right]
    rows, columns = [a.shape[i] for i in kept_a], [b.shape[i] for i in kept_b]
    first = reshaped(permuted(a, (*kept_a, *left)), (product(rows), product(sizes)))
    second = reshaped(permuted(b, (*right, *kept_b)), (product(sizes), product(columns)))
    return reshaped(_product(first, second), (*rows, *columns))


def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Return the sum of products over one axis of each operand, for every index of the first axis,
    which both share.

    `axes` is one axis, or a pair; it defaults to the last axis of `x1` and the second last of `x2`
    (for a matrix its last).

    >>> import mycel as ms
    >>> ms.ops.batch_dot(ms.ops.ones((2, 3, 4)), ms.ops.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    a, b = matched("batch_dot", x1, x2, "x1", "x2")
    if a.ndim < 2 or b.ndim < 2 or a.shape[0] != b.shape[0]:
        raise ShapeError(f"batch_dot: operands need at least 2 dimensions and one batch size: {a._type} and {b._type}")
    if axes is None:
        axes = (a.ndim - 1, b.ndim - 1 if b.ndim == 2 else b.ndim - 2)
    if not isinstance(axes, int) and len(arguments.sequence("batch_dot", "axes", axes, "an int or two")) != 2:
        raise arguments.wrong_value("batch_dot", "axes", "an int or two", axes)
    left, right = (axes, axes) if isinstance(axes, int) else axes
    i, j = axis_of("batch_dot", left, a.ndim), axis_of("batch_dot", right, b.ndim)
    if i == 0 or j == 0 or a.shape[i] != b.shape[j]:
        raise ShapeError(f"batch_dot: axis {left} of {a._type} does not meet axis {right} of {b._type}")
    rows = [d for n, d in enumerate(a.shape) if n not in (0, i)]
    columns = [d for n, d in enumerate(b.shape) if n not in (0, j)]
    first = permuted(a, (0, *[n for n in range(1, a.ndim) if n != i], i))
    second = permuted(b, (0, j, *[n for n in range(1, b.ndim) if n != j]))
    batch, inside = a.shape[0], a.shape[i]
    out = _product(reshaped(first, (batch, product(rows), inside)), reshaped(second, (batch, inside, product(columns))))
    return reshaped(out, (batch, *(rows + columns or [1])))


def vecdot(x: Any, y: Any, *, axis: int = -1) -> Tensor:
    """Return the sum of products along one axis; the others broadcast.

    >>> import mycel as ms
    >>> ms.ops.vecdot(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0, 4.0]])).tolist()
    [11.0]
    """
    a, b = operands("vecdot", x, y)
    both = run(E.mul, a, b)
    return run(R.reduce_sum, both, axes=(axis_of("vecdot", axis, both.ndim),), keepdims=False)


def _scaled(input: Any, beta: Any, out: Tensor, alpha: Any) -> Tensor:
    """Return beta * input + alpha * out."""
    return input * beta + out * alpha


@fused
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``.

    Args:
        input (Tensor): What is added, broadcast to (n, p).
        mat1 (Tensor): The left matrix, (n, m).
        mat2 (Tensor): The right matrix, (m, p).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: (n, p).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.addmm(ms.ops.ones((1, 1)), ms.ops.ones((1, 3)), ms.ops.ones((3, 1))).tolist()
        [[4.0]]
    """
    arguments.instance("addmm", "beta", beta, (int, float))
    arguments.instance("addmm", "alpha", alpha, (int, float))
    added = as_tensor(input) if isinstance(input, (list, tuple)) else term("addmm", input)
    return _scaled(added, beta, mm(mat1, mat2), alpha)


@fused
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat @ vec)``.

    Args:
        input (Tensor): What is added, broadcast to (n,).
        mat (Tensor): The matrix, (n, m).
        vec (Tensor): The vector, (m,).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: (n,).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.addmv(ms.ops.ones(1), ms.ops.ones((1, 3)), ms.ops.ones(3)).tolist()
        [4.0]
    """
    arguments.instance("addmv", "beta", beta, (int, float))
    arguments.instance("addmv", "alpha", alpha, (int, float))
    return _scaled(operand("addmv", input), beta, mv(mat, vec), alpha)


@fused
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * x + alpha * outer(vec1, vec2)``.

    Args:
        x (Tensor): What is added, broadcast to (n, m).
        vec1 (Tensor): The vector of the rows, (n,).
        vec2 (Tensor): The vector of the columns, (m,).
        beta (Tensor | float): The factor of `x`. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: (n, m).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.addr(ms.ops.ones((1, 2)), ms.ops.ones(1), ms.Tensor([2.0, 3.0])).tolist()
        [[3.0, 4.0]]
    """
    arguments.instance("addr", "beta", beta, (int, float))
    arguments.instance("addr", "alpha", alpha, (int, float))
    return _scaled(operand("addr", x), beta, outer(vec1, vec2), alpha)


@fused
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``.

    Args:
        input (Tensor): What is added, broadcast to (n, p).
        batch1 (Tensor): Matrices (b, n, m).
        batch2 (Tensor): Matrices (b, m, p).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the sum of products. Default: 1.

    Returns:
        Tensor: (n, p).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.addbmm(ms.ops.ones((1, 1)), ms.ops.ones((2, 1, 3)), ms.ops.ones((2, 3,
        ...     1))).tolist()
        [[7.0]]
    """
    arguments.instance("addbmm", "beta", beta, (int, float))
    arguments.instance("addbmm", "alpha", alpha, (int, float))
    total = run(R.reduce_sum, bmm(batch1, batch2), axes=(0,), keepdims=False)
    return _scaled(term("addbmm", input), beta, total, alpha)


@fused
def baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * input + alpha * batch1 @ batch2``, for stacks of matrices or for two
    matrices.

    Args:
        input (Tensor): What is added, broadcast to the product.
        batch1 (Tensor): Matrices (b, n, m), or one (n, m).
        batch2 (Tensor): Matrices (b, m, p), or one (m, p).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the products. Default: 1.

    Returns:
        Tensor: (b, n, p) or (n, p).

    Examples:
        >>> import mycel as ms
        >>> row, column = ms.ops.ones((1, 1, 3)), ms.ops.ones((1, 3, 1))
        >>> ms.ops.baddbmm(ms.ops.ones((1, 1, 1)), row, column).tolist()
        [[[4.0]]]
    """
    arguments.instance("baddbmm", "beta", beta, (int, float))
    arguments.instance("baddbmm", "alpha", alpha, (int, float))
    flat = isinstance(batch1, Tensor) and batch1.ndim == 2
    return _scaled(operand("baddbmm", input), beta, mm(batch1, batch2) if flat else bmm(batch1, batch2), alpha)


@fused
def dense(input: Any, weight: Any, bias: Any | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``: a fully connected layer.

    `weight` is (out, in), or (in,) for one output without an axis.

    >>> import mycel as ms
    >>> ms.ops.dense(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0, 4.0]]), ms.Tensor([1.0])).tolist()
    [[12.0]]
    """
    x, w = matched("dense", input, weight, second="weight")
    if w.ndim not in (1, 2) or x.ndim < 1:
        raise ShapeError(
            f"dense: the weight must be (out, in) or (in,), not {w._type}; the input {x._type} needs at least 1 "
            "dimension"
        )
    out = matmul(x, _swap(w) if w.ndim == 2 else w)
    if bias is None:
        return out
    need_matched("dense", x, bias, second="bias")
    return out + operand("dense", bias)


def trace(input: Any) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    Raises ValueError for other ranks.

    >>> import mycel as ms
    >>> float(ms.ops.trace(ms.Tensor([[1.0, 2.0], [3.0, 4.0]])))
    5.0
    """
    x = operand("trace", input)
    _ranked("trace", 2, x)
    here = run(E.eq, iota(x.shape, 0, D.int32), iota(x.shape, 1, D.int32))
    return run(R.reduce_sum, select(here, x, 0), axes=(0, 1), keepdims=False)


@fused
def kron(input: Any, other: Any) -> Tensor:
    """Return the Kronecker product: every element of `input` times all of `other`, in blocks.

    >>> import mycel as ms
    >>> ms.ops.kron(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 10.0])).tolist()
    [1.0, 10.0, 2.0, 20.0]
    """
    a, b = operands("kron", input, other)
    rank = max(a.ndim, b.ndim)
    rows, columns = ((1,) * (rank - t.ndim) + t.shape for t in (a, b))
    spread_a = tuple(v for d in rows for v in (d, 1))
    spread_b = tuple(v for d in columns for v in (1, d))
    both = run(E.mul, reshaped(a, spread_a), reshaped(b, spread_b))
    return reshaped(both, tuple(m * n for m, n in zip(rows, columns)))


def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """Return the vector product along an axis of size 3; the others broadcast.

    The axis is `dim`, or the first one of size 3.

    >>> import mycel as ms
    >>> ms.ops.cross(ms.Tensor([1.0, 0.0, 0.0]), ms.Tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    a, b = operands("cross", input, other)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = broadcast(a, shape), broadcast(b, shape)
    axis = next((i for i, d in enumerate(shape) if d == 3), None) if dim is None else axis_of("cross", dim, len(shape))
    if axis is None or shape[axis] != 3:
        raise ShapeError(f"cross: there is no axis of size 3 to multiply along in shape {shape} (dim={dim})")
    u, v = ([take_slice(t, axis, i, i + 1) for i in range(3)] for t in (a, b))
    parts = [u[(i + 1) % 3] * v[(i + 2) % 3] - u[(i + 2) % 3] * v[(i + 1) % 3] for i in range(3)]
    return run(CONCAT, *parts, axis=axis)


def matrix_power(input: Any, n: int) -> Tensor:
    """Return the product of `n` factors `input`, by repeated squaring; the identity for 0, and for
    a negative `n` the product of factors of the inverse.

    Raises ShapeError for matrices that are not square.

    >>> import mycel as ms
    >>> ms.ops.matrix_power(ms.Tensor([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    x = operand("matrix_power", input)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: the matrices must be square, not {x._type}")
    if size_of("matrix_power", n) < 0:
        from mycel.ops.algebra.linear_systems import inverse

        found = matrix_power(inverse(x), -n)
        return cast(found, x.dtype) if x.dtype.is_floating else found
    size = x.shape[-1]
    unit = cast(run(E.eq, iota((size, size), 0, D.int32), iota((size, size), 1, D.int32)), x.dtype)
    result: Tensor | None = None
    while n:
        if n & 1:
            result = x if result is None else _product(result, x)
        n >>= 1
        if n:
            x = _product(x, x)
    return broadcast(unit, x.shape) if result is None else result


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Return the sum of products that an equation in Einstein's notation describes:
    ``"ij,jk->ik"``.

    Without an arrow the result has the labels that occur once, in alphabetical order. A label that
    repeats within an operand takes its diagonal; "..." stands for leading axes that broadcast.
    Operands are joined from left to right by matrix products. Instead of an equation each tensor
    may be followed by a list of labels (whole numbers below 52, or ...), and the last argument may
    be the labels of the result.

    Raises ValueError for labels that do not match the operands.

    >>> import mycel as ms
    >>> ms.ops.einsum("ij,kj->ik", ms.ops.ones((2, 3)), ms.ops.ones((4, 3))).shape
    (2, 4)
    >>> ms.ops.einsum(ms.Tensor([1.0, 2.0]), [0], ms.Tensor([3.0]), [1], [0, 1]).tolist()
    [[3.0], [6.0]]
    """
    from mycel.ops.algebra.contraction import contract, equation_of

    if not isinstance(equation, str):
        arguments.instance("einsum", "equation", equation, Tensor, "a string, or a tensor with lists of labels")
        equation, operands = equation_of((equation, *operands))
    return contract(equation, operands)
