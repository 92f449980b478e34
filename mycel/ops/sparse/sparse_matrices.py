"""Sparse matrices: conversions, products and sums.

The row of each value of a CSR tensor is the number of rows that begin up to it, a running count
over the pointers. Products gather the dense operand at the columns and add up by rows, so their
work is that of the stored values alone, and both derivatives are gathers and sums of the same size.
Functions that join equal places (`coalesce`, sums, products of two sparse matrices) sort the places
as numbers row * columns + column; how many remain is decided by data, as `nonzero` decides it
(`core.mask_indices`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.mask_indices import flat_positions, is_open, positions_in
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import elementwise, sorting
from mycel.ops._operands import (
    axis_of,
    cast_index,
    flat,
    iota,
    operand,
    operands,
    permuted,
    reshaped,
    run,
    shape_of,
    size_of,
    take_slice,
    wide,
)
from mycel.ops.complex_numbers import conj
from mycel.ops.gather_scatter import scatter_nd, tensor_scatter_add
from mycel.ops.sparse.tensors import COOTensor, CSRTensor, differ

__all__ = [
    "coalesce",
    "coo2csr",
    "coo_add",
    "coo_concat",
    "csr2coo",
    "csr_add",
    "csr_mm",
    "csr_mv",
    "csr_reduce_sum",
    "csr_to_coo",
    "csr_to_dense",
    "dense_to_sparse_coo",
    "dense_to_sparse_csr",
]


def matrix(name: str, x: Any) -> CSRTensor:
    """Return `x` after checking that it is a CSR tensor of two dimensions."""
    found = arguments.instance(name, "the sparse operand", x, CSRTensor)
    if found.ndim != 2:
        raise ShapeError(f"{name}: takes a CSRTensor of 2 dimensions, not of shape {found.shape}")
    return found


def column_of(indices: Tensor, axis: int) -> Tensor:
    """Return one column of (N, 2) indices as int64."""
    return cast(flat(take_slice(indices, 1, axis, axis + 1)), D.int64)


def _pairs(rows: Tensor, columns: Tensor, kind: DType) -> Tensor:
    """Return rows and columns as (N, 2) indices of a type."""
    return run(S.CONCAT, *[reshaped(cast(v, kind), (*v.shape, 1)) for v in (rows, columns)], axis=1)


def rows_of(indptr: Tensor, count: Any) -> Tensor:
    """Return the row of each of `count` stored values, int64.

    It is the number of rows, apart from the first, that begin up to the position of the value.
    """
    starts = cast(take_slice(indptr, 0, 1, indptr.shape[0] - 1), D.int64)
    begun = run(I.take_add, starts * 0 + 1, starts, axis=0, size=count + 1)
    return sorting.cumsum(take_slice(begun, 0, 0, count), 0)


def pointers_of(rows: Tensor, height: Any, kind: DType) -> Tensor:
    """Return row pointers from sorted rows: the start of each row, and last their number."""
    return cast(sorting.searchsorted(rows, iota((height + 1,), 0, rows.dtype)), kind)


def summed(values: Tensor, numbers: Tensor, count: Any) -> Tensor:
    """Return for each number below `count` the sum of the values that have this number.

    16-bit floats are added in float32.
    """
    if values.dtype.kind == "b":
        raise TypeError("sparse sums: values of bool cannot be added; convert with .astype(ms.int32)")
    return cast(run(I.take_add, wide(values), cast(numbers, D.int64), axis=0, size=count), values.dtype)


def _joined(
    places: Tensor, values: Tensor, keep: Callable[[Tensor, Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return places (int64 numbers) in increasing order without repetition, and the sum of the
    values at each.

    `keep` gets, for each of the sorted elements, the sum at its place and whether several elements
    stand there; it returns which elements stay.
    """
    count = places.shape[0]
    order = sorting.argsort(places)
    ordered = run(I.take, places, order, axis=0)
    before = take_slice(run(S.CONCAT, Tensor(np.full(1, -1, np.int64)), ordered, axis=0), 0, 0, count)
    first = run(E.ne, ordered, before)
    numbers = sorting.cumsum(cast(first, D.int64), 0) - 1
    sums = run(I.take, summed(run(I.take, values, order, axis=0), numbers, count), numbers, axis=0)
    if keep is not None:
        share = run(I.take, run(I.take_add, numbers * 0 + 1, numbers, axis=0, size=count), numbers, axis=0)
        first = run(E.logical_and, first, keep(sums, share > 1))
    kept = flat_positions(first)
    return run(I.take, ordered, kept, axis=0), run(I.take, sums, kept, axis=0)


def places_of(rows: Tensor, columns: Tensor, width: Any, height: Any = None) -> Tensor:
    """Return the numbers of places in row-major order: row * width + column.

    `rows` and `columns` are int64. Raises IndexRangeError for a column outside of `width`, which
    would be a place in another row, and, if `height` is given, for a row outside of it.
    """
    columns = run(I.checked, columns, axis=1, size=width, bounds="front")
    rows = rows if height is None else run(I.checked, rows, axis=0, size=height, bounds="front")
    return rows * width + columns


# Conversions.


def coalesced(x: COOTensor) -> COOTensor:
    """Return a COO tensor with one value for each place, in row-major order."""
    places, values = _joined(
        places_of(column_of(x.indices, 0), column_of(x.indices, 1), x.shape[1], x.shape[0]), x.values
    )
    return COOTensor(_pairs(places // x.shape[1], places % x.shape[1], x.indices.dtype), values, x.shape)


def coalesce(x_indices: Any, x_values: Any, x_shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return a sparse tensor with the values at equal places added, in row-major order: indices
    (dimensions, count), values and shape.

    `x_indices` is (dimensions, N) of integers, `x_values` (N,), and `x_shape` (dimensions,), whose
    values are needed.

    >>> import mycel as ms
    >>> indices, shape = ms.Tensor([[0, 0, 1], [1, 1, 2]]), ms.Tensor([3, 3])
    >>> [t.tolist() for t in ms.ops.coalesce(indices, ms.Tensor([1.0, 5.0, 4.0]), shape)]
    [[[0, 1], [1, 2]], [6.0, 4.0], [3, 3]]
    """
    indices, values = cast_index("coalesce", x_indices), operand("coalesce", x_values)
    shape = operand("coalesce", x_shape)
    sizes = shape_of("coalesce", x_shape)
    if indices.ndim != 2 or values.ndim != 1 or differ(indices.shape, (len(sizes), values.shape[0])):
        raise ShapeError(
            f"coalesce: takes indices (dimensions, N), values (N,) and a shape of as many sizes, not {indices._type}, "
            f"{values._type} and {sizes}"
        )
    parts = [
        run(I.checked, cast(flat(take_slice(indices, 0, a, a + 1)), D.int64), axis=a, size=size, bounds="front")
        for a, size in enumerate(sizes)
    ]
    places = parts[0]
    for size, part in zip(sizes[1:], parts[1:]):
        places = places * size + part
    places, values = _joined(places, values)
    found: list[Tensor] = []
    for size in reversed(sizes[1:]):
        found.insert(0, places % size)
        places = places // size
    lines = [reshaped(cast(v, indices.dtype), (1, v.shape[0])) for v in (places, *found)]
    return run(S.CONCAT, *lines, axis=0), values, shape


def coo_to_csr(x: COOTensor) -> CSRTensor:
    """Return a COO tensor as a CSR tensor, sorted in row-major order."""
    order = sorting.argsort(places_of(column_of(x.indices, 0), column_of(x.indices, 1), x.shape[1], x.shape[0]))
    ordered, kind = run(I.take, x.indices, order, axis=0), x.indices.dtype
    columns = flat(take_slice(ordered, 1, 1, 2))
    return CSRTensor(
        pointers_of(column_of(ordered, 0), x.shape[0], kind), columns, run(I.take, x.values, order, axis=0), x.shape
    )


def coo_to_dense(x: COOTensor) -> Tensor:
    """Return a COO tensor as a dense tensor; values at one place add up."""
    return scatter_nd(x.indices, x.values, x.shape)


def csr_to_coo(tensor: Any) -> COOTensor:
    """Return a CSR tensor of two dimensions as a COO tensor with the values in the same order.

    >>> import mycel as ms
    >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), ms.Tensor([2.0, 1.0]), (2, 4))
    >>> ms.ops.csr_to_coo(x).indices.tolist()
    [[0, 0], [1, 1]]
    """
    x = matrix("csr_to_coo", tensor)
    return COOTensor(_pairs(rows_of(x.indptr, x.values.shape[0]), x.indices, x.indices.dtype), x.values, x.shape)


def csr_to_dense(csr_tensor: Any) -> Tensor:
    """Return a CSR tensor as a dense tensor; values at one place add up.

    >>> import mycel as ms
    >>> indptr, indices = ms.Tensor([0, 1, 2]), ms.Tensor([0, 1])
    >>> ms.ops.csr_to_dense(ms.CSRTensor(indptr, indices, ms.Tensor([2.0, 1.0]), (2, 3))).tolist()
    [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    x = arguments.instance("csr_to_dense", "csr_tensor", csr_tensor, CSRTensor)
    return scatter_nd(_pairs(rows_of(x.indptr, x.values.shape[0]), x.indices, D.int64), x.values, x.shape)


def _found(name: str, tensor: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, columns and values of the elements of a matrix that are not 0."""
    x = arguments.instance(name, "tensor", tensor, Tensor)
    if x.ndim != 2:
        raise ShapeError(f"{name}: takes a tensor of 2 dimensions, not {x._type}")
    rows, columns = positions_in(cast(x, D.bool_))
    return rows, columns, run(I.take, flat(x), places_of(rows, columns, x.shape[1]), axis=0)


def dense_to_sparse_coo(tensor: Any) -> COOTensor:
    """Return the elements of a matrix that are not 0 as a COO tensor with int32 indices, in
    row-major order.

    How many there are is decided by data.

    >>> import mycel as ms
    >>> x = ms.ops.dense_to_sparse_coo(ms.Tensor([[1.0, 0.0], [-5.0, 0.0]]))
    >>> x.indices.tolist(), x.values.tolist()
    ([[0, 0], [1, 0]], [1.0, -5.0])
    """
    rows, columns, values = _found("dense_to_sparse_coo", tensor)
    return COOTensor(_pairs(rows, columns, D.int32), values, tensor.shape)


def dense_to_sparse_csr(tensor: Any) -> CSRTensor:
    """Return the elements of a matrix that are not 0 as a CSR tensor with int32 indices.

    How many there are is decided by data.

    >>> import mycel as ms
    >>> x = ms.ops.dense_to_sparse_csr(ms.Tensor([[1.0, 0.0], [-5.0, 0.0]]))
    >>> x.indptr.tolist(), x.indices.tolist()
    ([0, 1, 2], [0, 0])
    """
    rows, columns, values = _found("dense_to_sparse_csr", tensor)
    return CSRTensor(pointers_of(rows, tensor.shape[0], D.int32), cast(columns, D.int32), values, tensor.shape)


def csr2coo(indptr: Any, nnz: Any) -> Tensor:
    """Return the row of each of `nnz` stored values, from the row pointers and in the type of
    these.

    >>> import mycel as ms
    >>> ms.ops.csr2coo(ms.Tensor([0, 2, 2, 3]), 3).tolist()
    [0, 0, 2]
    """
    pointers = arguments.instance("csr2coo", "indptr", indptr, Tensor)
    return cast(rows_of(cast_index("csr2coo", pointers), size_of("csr2coo", nnz)), pointers.dtype)


def coo2csr(row_indices: Any, height: Any) -> Tensor:
    """Return row pointers (height + 1,) from the sorted rows of stored values, in the type of
    these.

    >>> import mycel as ms
    >>> ms.ops.coo2csr(ms.Tensor([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    rows = arguments.instance("coo2csr", "row_indices", row_indices, Tensor)
    return pointers_of(cast_index("coo2csr", rows), size_of("coo2csr", height), rows.dtype)


# Products.


@fused
def _multiplied(values: Tensor, rows: Tensor, columns: Tensor, dense: Tensor, count: Any) -> Tensor:
    """Return the product of a sparse matrix of `count` rows with a dense (N, K) matrix."""
    parts = run(I.take, dense, cast(columns, D.int64), axis=0)
    return summed(parts * reshaped(values, (*values.shape, 1)), rows, count)


def product(
    name: str,
    shape: tuple[Any, ...],
    values: Tensor,
    rows: Tensor,
    columns: Tensor,
    dense: Any,
    transposed: bool = False,
    adjoint: bool = False,
) -> Tensor:
    """Return a sparse matrix times a dense (N, K) matrix.

    The sparse matrix has the `shape`, and `values` at `rows` and `columns`. It is `transposed` if
    asked for, and with `adjoint` conjugated as well. `name` is the operation, for errors.
    """
    height, width = shape
    if transposed or adjoint:
        rows, columns, height, width = columns, rows, width, height
    y = operand(name, dense)
    if y.ndim != 2 or differ(y.shape[0], width):
        raise ShapeError(
            f"{name}: a sparse matrix ({height}, {width}) takes a dense matrix ({width}, K), not {y._type}"
        )
    x, y = operands(name, conj(values) if adjoint else values, y)
    return _multiplied(x, rows, columns, y, height)


def csr_mv(csr_tensor: Any, dense: Any) -> Tensor:
    """Return a sparse matrix (M, N) times a column (N, 1), which is (M, 1).

    A vector (N,) gives (M,). The work is that of the stored values.

    >>> import mycel as ms
    >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), ms.Tensor([2.0, 1.0]), (2, 3))
    >>> ms.ops.csr_mv(x, ms.Tensor([[1.0], [2.0], [3.0]])).tolist()
    [[2.0], [2.0]]
    """
    x, y = matrix("csr_mv", csr_tensor), operand("csr_mv", dense)
    if y.ndim not in (1, 2) or (y.ndim == 2 and differ(y.shape[1], 1)):
        raise ShapeError(
            f"csr_mv: takes a column ({x.shape[1]}, 1) or a vector ({x.shape[1]},), not {y._type}; use csr_mm for a "
            "matrix"
        )
    column = reshaped(y, (*y.shape, 1)) if y.ndim == 1 else y
    found = product("csr_mv", x.shape, x.values, rows_of(x.indptr, x.values.shape[0]), x.indices, column)
    return flat(found) if y.ndim == 1 else found


def csr_mm(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False
) -> Any:
    """Return the product of a sparse matrix (M, N) and a matrix (N, K).

    The product of two sparse matrices has a place wherever stored values meet, even where they
    cancel. Where positions are known its work is that of the products of values; while positions
    are open in a compiled function, and with a dense `b`, it is that of `a` times a dense matrix.

    Args:
        a (CSRTensor): (M, N).
        b (CSRTensor | Tensor): (N, K).
        trans_a (bool): Whether the operand is transposed. Default: False.
        trans_b (bool): Whether the operand is transposed. Default: False.
        adjoint_a (bool): Whether the operand is transposed and conjugated. Default: False.
        adjoint_b (bool): Whether the operand is transposed and conjugated. Default: False.

    Returns:
        CSRTensor | Tensor: (M, K), of the kind of `b`.

    Examples:
        >>> import mycel as ms
        >>> a = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), ms.Tensor([2.0, 1.0]), (2, 2))
        >>> ms.ops.csr_mm(a, a).to_dense().tolist()
        [[4.0, 0.0], [0.0, 1.0]]
        >>> ms.ops.csr_mm(a, ms.Tensor([[1.0], [3.0]])).tolist()
        [[2.0], [3.0]]
    """
    arguments.flag("csr_mm", "trans_a", trans_a)
    arguments.flag("csr_mm", "trans_b", trans_b)
    arguments.flag("csr_mm", "adjoint_b", adjoint_b)
    x = matrix("csr_mm", a)
    if isinstance(b, Tensor):
        if b.ndim == 2 and (trans_b or adjoint_b):
            b = permuted(conj(b) if adjoint_b else b, (1, 0))
        return product(
            "csr_mm", x.shape, x.values, rows_of(x.indptr, x.values.shape[0]), x.indices, b, trans_a, adjoint_a
        )
    y = matrix("csr_mm", b)
    x, y = _turned(x, trans_a, adjoint_a), _turned(y, trans_b, adjoint_b)
    if differ(x.shape[1], y.shape[0]):
        raise ShapeError(f"csr_mm: the columns of {x.shape} must be as many as the rows of {y.shape}")
    v, w = operands("csr_mm", x.values, y.values)
    known = not any(is_open(t) for t in (x.indptr, x.indices, y.indptr, y.indices))
    return (_product_of_known if known else _product_of_open)(x._with(v), y._with(w))


def _turned(x: CSRTensor, transposed: bool, adjoint: bool) -> CSRTensor:
    """Return a CSR tensor transposed, and with `adjoint` conjugated as well."""
    if not transposed and not adjoint:
        return x
    rows, (height, width) = rows_of(x.indptr, x.values.shape[0]), x.shape
    columns = cast(x.indices, D.int64)
    order = sorting.argsort(places_of(columns, rows, height, width))
    values = run(I.take, conj(x.values) if adjoint else x.values, order, axis=0)
    pointers = pointers_of(run(I.take, columns, order, axis=0), width, x.indptr.dtype)
    return CSRTensor(pointers, cast(run(I.take, rows, order, axis=0), x.indices.dtype), values, (width, height))


def _product_of_known(x: CSRTensor, y: CSRTensor) -> CSRTensor:
    """Return the product of matrices whose positions are known.

    NumPy lists the pairs of values that meet, from positions alone; their products are added up by
    places.
    """
    starts, columns = y.indptr.asnumpy().astype(np.int64), x.indices.asnumpy().astype(np.int64)
    counts = np.diff(starts)[columns]
    left = np.repeat(np.arange(len(columns)), counts)
    right = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts[columns], counts)
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr.asnumpy()))
    width = y.shape[1]
    places, numbers = np.unique(rows[left] * width + y.indices.asnumpy()[right], return_inverse=True)
    parts = run(I.take, x.values, Tensor(left), axis=0) * run(I.take, y.values, Tensor(right), axis=0)
    values = summed(parts, Tensor(numbers.reshape(-1).astype(np.int64)), len(places))
    pointers = np.searchsorted(places // width, np.arange(x.shape[0] + 1))
    return CSRTensor(
        cast(Tensor(pointers.astype(np.int64)), x.indptr.dtype),
        cast(Tensor(places % width), x.indices.dtype),
        values,
        (x.shape[0], width),
    )


def _product_of_open(x: CSRTensor, y: CSRTensor) -> CSRTensor:
    """Return the product of matrices whose positions are open, by dense rows.

    A second product, of ones, says which places are met.
    """
    rows, shape = rows_of(x.indptr, x.values.shape[0]), (x.shape[0], y.shape[1])

    def dense(v: Tensor, w: Tensor) -> Tensor:
        return _multiplied(v, rows, x.indices, csr_to_dense(y._with(w)), shape[0])

    def ones(v: Tensor) -> Tensor:
        return cast(iota(v.shape, 0, D.int32) * 0 + 1, D.float32)

    found = flat_positions(flat(dense(ones(x.values), ones(y.values)) > 0))
    values = run(I.take, flat(dense(x.values, y.values)), found, axis=0)
    return CSRTensor(
        pointers_of(found // shape[1], shape[0], x.indptr.dtype), cast(found % shape[1], x.indices.dtype), values, shape
    )


# Sums.


def check_shapes(name: str, x: Any, y: Any) -> None:
    """Raise ShapeError where two shapes differ for certain."""
    if differ(x.shape, y.shape):
        raise ShapeError(f"{name}: shapes {x.shape} and {y.shape} must be the same")


def coo_add(x1: Any, x2: Any, thresh: Any) -> COOTensor:
    """Return the sum of two COO tensors of one shape, one value for each place, in row-major order.

    Where several values stand at one place their sum stays if its magnitude is at least `thresh`; a
    value alone stays in any case, as in MindSpore.

    >>> import mycel as ms
    >>> x = ms.COOTensor(ms.Tensor([[0, 1], [1, 1]]), ms.Tensor([1.0, 2.0]), (2, 2))
    >>> y = ms.COOTensor(ms.Tensor([[0, 0], [0, 1]]), ms.Tensor([4.0, 5.0]), (2, 2))
    >>> ms.ops.coo_add(x, y, ms.Tensor(0.0)).values.tolist()
    [4.0, 6.0, 2.0]
    """
    a = arguments.instance("coo_add", "x1", x1, COOTensor)
    b = arguments.instance("coo_add", "x2", x2, COOTensor)
    check_shapes("coo_add", a, b)
    v, w = operands("coo_add", a.values, b.values)
    least = operand("coo_add", thresh)
    if least.ndim:
        raise ShapeError(f"coo_add: thresh must be a number or a tensor without dimensions, not {least._type}")
    if v.dtype.kind != "c":
        least = cast(least, v.dtype)
    kind = a.indices.dtype if a.indices.dtype.itemsize >= b.indices.dtype.itemsize else b.indices.dtype
    rows, columns = [run(S.CONCAT, column_of(a.indices, i), column_of(b.indices, i), axis=0) for i in (0, 1)]

    def keep(sums: Tensor, several: Tensor) -> Tensor:
        return run(E.logical_or, run(E.logical_not, several), elementwise.abs(sums) >= least)

    places, values = _joined(places_of(rows, columns, a.shape[1], a.shape[0]), run(S.CONCAT, v, w, axis=0), keep)
    return COOTensor(_pairs(places // a.shape[1], places % a.shape[1], kind), values, a.shape)


def coo_plus(x: COOTensor, other: Any, sign: int) -> Any:
    """Return x + other, or x - other where `sign` is negative: a COO tensor for a COO tensor, a
    tensor for a tensor.
    """
    word = "COOTensor " + ("+" if sign > 0 else "-")
    arguments.instance(word, "other", other, (Tensor, COOTensor), "a COOTensor or a Tensor")
    check_shapes(word, x, other)
    if isinstance(other, COOTensor):
        return coo_add(x, other if sign > 0 else -other, Tensor(0, x.dtype) if x.dtype.kind != "c" else Tensor(0.0))
    values, y = operands(word, x.values, other if sign > 0 else -other)
    return tensor_scatter_add(y, x.indices, values)


def csr_add(a: Any, b: Any, alpha: Any, beta: Any) -> CSRTensor:
    """Return alpha * a + beta * b for two CSR tensors.

    Args:
        a (CSRTensor): A matrix.
        b (CSRTensor): A matrix.
        alpha (Tensor): The factor of `a`, of one element.
        beta (Tensor): The factor of `b`, of one element.

    Returns:
        CSRTensor: The sum, with a place wherever one of them has one, in row-major order.

    Examples:
        >>> import mycel as ms
        >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), ms.Tensor([2.0, 1.0]), (2, 2))
        >>> ms.ops.csr_add(x, x, ms.Tensor(1.0), ms.Tensor(3.0)).values.tolist()
        [8.0, 4.0]
    """
    x, y = matrix("csr_add", a), matrix("csr_add", b)
    check_shapes("csr_add", x, y)
    for word, factor in (("alpha", alpha), ("beta", beta)):
        arguments.instance("csr_add", word, factor, Tensor)
        if factor.ndim and differ(factor.size, 1):
            raise ShapeError(f"csr_add: {word} must be a tensor of one element, not {factor._type}")
    v, w = operands("csr_add", x.values, y.values)
    v, w = v * cast(reshaped(alpha, ()), v.dtype), w * cast(reshaped(beta, ()), w.dtype)
    width, kind = (
        x.shape[1],
        x.indices.dtype if x.indices.dtype.itemsize >= y.indices.dtype.itemsize else y.indices.dtype,
    )
    places = [places_of(rows_of(t.indptr, t.values.shape[0]), cast(t.indices, D.int64), width) for t in (x, y)]
    joined, values = _joined(run(S.CONCAT, *places, axis=0), run(S.CONCAT, v, w, axis=0))
    return CSRTensor(
        pointers_of(joined // width, x.shape[0], x.indptr.dtype), cast(joined % width, kind), values, x.shape
    )


def csr_plus(x: CSRTensor, other: Any, sign: int) -> CSRTensor:
    """Return x + other, or x - other where `sign` is negative, for two CSR tensors."""
    if not isinstance(other, CSRTensor):
        raise TypeError(
            f"CSRTensor {'+' if sign > 0 else '-'}: takes a CSRTensor, not {type(other).__name__}; use x.to_dense() "
            "for a dense result"
        )
    return csr_add(x, other, Tensor(1, x.dtype), Tensor(sign, other.dtype))


def csr_reduce_sum(csr_tensor: Any, axis: int) -> Tensor:
    """Return the sums along an axis as a tensor, in which the axis has size 1.

    `axis` 1 gives the sum of each row, 0 that of each column.

    >>> import mycel as ms
    >>> values = ms.Tensor([2.0, 1.0, 5.0])
    >>> x = ms.CSRTensor(ms.Tensor([0, 2, 3]), ms.Tensor([0, 1, 1]), values, (2, 2))
    >>> ms.ops.csr_reduce_sum(x, 1).tolist(), ms.ops.csr_reduce_sum(x, 0).tolist()
    ([[3.0], [5.0]], [[2.0, 6.0]])
    """
    x = arguments.instance("csr_reduce_sum", "csr_tensor", csr_tensor, CSRTensor)
    where = axis_of("csr_reduce_sum", axis, x.ndim)
    if where > 1:
        raise ShapeError(f"csr_reduce_sum: axis must be 0 or 1, the rows or the columns, not {axis} of shape {x.shape}")
    numbers = rows_of(x.indptr, x.values.shape[0]) if where else x.indices
    sums = summed(x.values, cast(numbers, D.int64), x.shape[1 - where])
    return reshaped(sums, (*x.shape[:where], 1, *x.shape[where + 1 :]))


def coo_concat(sp_input: Any, concat_dim: int = 0) -> COOTensor:
    """Return COO tensors joined along the axis `concat_dim`, in row-major order.

    Raises ValueError for less than two, ShapeError where the other axis differs.

    >>> import mycel as ms
    >>> x = ms.COOTensor(ms.Tensor([[0, 1], [1, 0]]), ms.Tensor([1.0, 2.0]), (2, 2))
    >>> ms.ops.coo_concat((x, x), 1).to_dense().tolist()
    [[0.0, 1.0, 0.0, 1.0], [2.0, 0.0, 2.0, 0.0]]
    """
    if not isinstance(sp_input, (tuple, list)) or len(sp_input) < 2:
        raise ValueError("coo_concat: takes a tuple or list of at least two COOTensors")
    parts: list[COOTensor] = [
        COOTensor(*v) if isinstance(v, tuple) else arguments.instance("coo_concat", "each of sp_input", v, COOTensor)
        for v in sp_input
    ]
    axis = axis_of("coo_concat", concat_dim, 2)
    for p in parts[1:]:
        if differ(p.shape[1 - axis], parts[0].shape[1 - axis]):
            raise ShapeError(f"coo_concat: shapes {[p.shape for p in parts]} must agree but along axis {axis}")
    start: Any = 0
    rows, columns = [], []
    for p in parts:
        rows.append(column_of(p.indices, 0) + (0 if axis else start))
        columns.append(column_of(p.indices, 1) + (start if axis else 0))
        start = start + p.shape[axis]
    shape = (parts[0].shape[0], start) if axis else (start, parts[0].shape[1])
    places = places_of(_end_to_end(rows), _end_to_end(columns), shape[1], shape[0])
    kind = max((p.indices.dtype for p in parts), key=lambda d: d.itemsize)
    order = sorting.argsort(places)
    places, values = (
        run(I.take, places, order, axis=0),
        run(I.take, _end_to_end([p.values for p in parts]), order, axis=0),
    )
    return COOTensor(_pairs(places // shape[1], places % shape[1], kind), values, shape)


def _end_to_end(parts: list[Tensor]) -> Tensor:
    """Return the concatenation of vectors, in their common type."""
    found = parts[0]
    for p in parts[1:]:
        found = run(S.CONCAT, *operands("coo_concat", found, p), axis=0)
    return found
