"""Sparse tensors: matrices as the values that are stored and their places.

Each class is a dataclass of tensors and a shape, so that compiled functions take and give it as any
container. For gradients and `vmap` the values alone are leaves (`mycel.tree`); positions and shape
go along unchanged. Checks look at types alone, never at positions: an index outside of the shape is
the caller's mistake and has no defined meaning. Methods compute by the functions of
`mycel.ops.sparse`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.log import logger
from mycel._src.tensors.core.array_conversion import is_scipy_sparse, value_text
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import certainly, term

__all__ = ["COOTensor", "CSRTensor", "RowTensor", "SparseTensor"]

INDEX_TYPES = (D.int16, D.int32, D.int64)


def _positions(name: str, word: str, value: Any, rank: int) -> Tensor:
    """Return positions after checking their type and number of dimensions."""
    found = arguments.instance(name, word, value, Tensor)
    if found.dtype not in INDEX_TYPES:
        raise TypeError(f"{name}: {word} must be int16, int32 or int64, not {found.dtype.name}; convert with .astype()")
    if found.ndim != rank:
        raise ShapeError(f"{name}: {word} must have {rank} dimension{'s' * (rank > 1)}, not shape {found.shape}")
    return found


def _sizes(name: str, shape: Any, least: int, most: int | None) -> tuple[Any, ...]:
    """Return a shape after checking its sizes and their number."""
    arguments.instance(name, "shape", shape, tuple, "a tuple of ints")
    for d in shape:
        if isinstance(d, bool) or not isinstance(d, (int, Dim)):
            raise TypeError(f"{name}: shape must be a tuple of ints, but {shape} holds a {type(d).__name__}")
        if isinstance(d, int) and d <= 0:
            raise ShapeError(f"{name}: the sizes of shape must be positive, not {shape}")
    if len(shape) < least or (most is not None and len(shape) > most):
        wanted = f"{least} dimensions" if most == least else f"at least {least} dimension{'s' * (least > 1)}"
        raise ShapeError(f"{name}: shape must have {wanted}, not {shape}")
    return shape


def differ(x: Any, y: Any) -> bool:
    """Return whether two sizes or shapes differ for certain; sizes still open may be equal."""
    return certainly(lambda: x != y)


class Sparse:
    """A base of sparse tensors: `values`, the `shape` of the dense tensor, and their properties."""

    values: Tensor
    shape: tuple[Any, ...]
    TREE_LEAVES: ClassVar[tuple[str, ...]] = ("values",)
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def _become(self, given: Any, kind: type, word: str, others: tuple[Any, ...]) -> bool:
        """Return whether another object of the class is given instead of the parts, after taking
        its fields.
        """
        if given is None:
            return False
        name = type(self).__name__
        if not is_scipy_sparse(given):
            arguments.instance(name, word, given, kind)
        if any(o is not None for o in others):
            raise TypeError(f"{name}: give either {word} or the parts, not both")
        self._hold(
            **(_parts_of(given, word) if is_scipy_sparse(given) else {k: getattr(given, k) for k in self._parts()})
        )
        return True

    @classmethod
    def _parts(cls) -> tuple[str, ...]:
        """Return the names of the fields; every class is a dataclass."""
        return tuple(cls.__dataclass_fields__)

    def _hold(self, **fields: Any) -> None:
        """Set fields of the frozen dataclass."""
        for k, v in fields.items():
            object.__setattr__(self, k, v)

    def _with(self, values: Tensor) -> Any:
        """Return a sparse tensor with the same positions and other values."""
        made = object.__new__(type(self))
        made._hold(**{**{name: getattr(self, name) for name in self._parts()}, "values": values})
        return made

    @property
    def dtype(self) -> DType:
        """The element type of the values."""
        return self.values.dtype

    @property
    def size(self) -> Any:
        """The number of stored values."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """The number of bytes of one value."""
        return self.values.itemsize

    @property
    def ndim(self) -> int:
        """The number of dimensions of the dense tensor."""
        return len(self.shape)

    def astype(self, dtype: Any) -> Any:
        """Return a sparse tensor with values of another element type.

        >>> import mycel as ms
        >>> ms.Tensor([[0.0, 2.0]]).to_coo().astype(ms.int32).values.tolist()
        [2]
        """
        return self._with(cast(self.values, D.from_any(dtype)))

    def abs(self) -> Any:
        """Return a sparse tensor with the magnitudes of the values.

        >>> import mycel as ms
        >>> ms.Tensor([[0.0, -2.0]]).to_csr().abs().values.tolist()
        [2.0]
        """
        return self._with(abs(self.values))

    def __neg__(self) -> Any:
        return self._with(-self.values)

    def __repr__(self) -> str:
        parts = [f"{name}={_text(getattr(self, name))}" for name in self._parts() if name != "shape"]
        return f"{type(self).__name__}(shape={list(self.shape)}, dtype={self.dtype}, {', '.join(parts)})"


def _text(part: Any) -> str:
    """Return a part as MindSpore shows those of sparse tensors: values without commas."""
    if not isinstance(part, Tensor) or part._shown() is None:
        return repr(part)
    text = value_text(part.asnumpy(), part.dtype, " ").removeprefix(" ")
    return f"Tensor(shape={list(part.shape)}, dtype={part.dtype}, value={text})"


class _Coordinates(Sparse):
    indices: Tensor

    def _fill(self, indices: Any, values: Any, shape: Any, rank: int | None) -> None:
        name = type(self).__name__
        places = _positions(name, "indices", indices, 2)
        held = arguments.instance(name, "values", values, Tensor)
        sizes = _sizes(name, shape, rank or 1, rank)
        if held.ndim != 1:
            raise ShapeError(f"{name}: values must have 1 dimension, not shape {held.shape}")
        if differ(places.shape[0], held.shape[0]):
            raise ShapeError(
                f"{name}: indices {places.shape} and values {held.shape} must have the same first size, one row for "
                "each value"
            )
        if differ(places.shape[1], len(sizes)):
            raise ShapeError(
                f"{name}: rows of indices must have {len(sizes)} numbers for shape {sizes}, not {places.shape[1]}"
            )
        self._hold(indices=places, values=held, shape=sizes)


def _parts_of(matrix: Any, word: str) -> dict[str, Any]:
    """Return the fields of a COO or, for the `word` "csr_tensor", CSR tensor of SciPy's matrix."""
    shape = tuple(int(n) for n in matrix.shape)
    if len(shape) != 2:
        raise ShapeError(f"{word}: a sparse array of SciPy must be a matrix, not of shape {shape}")
    if word == "csr_tensor":
        rows = matrix.tocsr()
        parts = {"indptr": rows.indptr, "indices": rows.indices, "values": rows.data}
    else:
        places = matrix.tocoo()
        parts = {"indices": np.stack([places.row, places.col], 1), "values": places.data}
    return {**{k: Tensor(v) for k, v in parts.items()}, "shape": shape}


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class COOTensor(_Coordinates):
    """A sparse matrix by coordinates: `values[i]` stands at row and column `indices[i]`; values at
    one place add up.

    Args:
        indices (Tensor | None): (N, 2) of int16, int32 or int64. Default: None.
        values (Tensor | None): (N,) of any type. Default: None.
        shape (tuple[int, ...] | None): A tuple of two sizes. Positions are not looked at: one
            outside of `shape` has no defined meaning. Default: None.
        coo_tensor (COOTensor | None): In their place another COOTensor or a sparse matrix of SciPy
            may be given, as `coo_tensor` or alone. Default: None.

    Raises:
        TypeError, ShapeError: (a ValueError) for arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> x = ms.COOTensor(ms.Tensor([[0, 1], [1, 2]]), ms.Tensor([1.0, 2.0]), (2, 3))
        >>> x.to_dense().tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    """

    indices: Tensor
    values: Tensor
    shape: tuple[Any, ...]

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: Any = None) -> None:
        if is_scipy_sparse(indices):
            indices, coo_tensor = None, indices
        if not self._become(coo_tensor, COOTensor, "coo_tensor", (indices, values, shape)):
            self._fill(indices, values, shape, 2)

    def to_tuple(self) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
        """Return indices, values and shape."""
        return self.indices, self.values, self.shape

    def coalesce(self) -> COOTensor:
        """Return the same matrix with one value for each place, in row-major order.

        How many there are is decided by data.

        >>> import mycel as ms
        >>> x = ms.COOTensor(ms.Tensor([[0, 1], [0, 1]]), ms.Tensor([1.0, 2.0]), (2, 3))
        >>> x.coalesce().values.tolist()
        [3.0]
        """
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.coalesced(self)

    def to_csr(self) -> CSRTensor:
        """Return the same matrix as a CSR tensor, sorted in row-major order.

        Values at the same place stay apart.

        >>> import mycel as ms
        >>> x = ms.COOTensor(ms.Tensor([[1, 2], [0, 1]]), ms.Tensor([1.0, 2.0]), (2, 3))
        >>> x.to_csr().indptr.tolist()
        [0, 1, 2]
        """
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.coo_to_csr(self)

    def to_dense(self) -> Tensor:
        """Return the matrix as a tensor; values at one place add up.

        >>> import mycel as ms
        >>> ms.COOTensor(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2)).to_dense().tolist()
        [[0.0, 3.0]]
        """
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.coo_to_dense(self)

    def add(self, other: COOTensor, thresh: Any) -> COOTensor:
        """Return the sum with another COOTensor; see `mycel.ops.coo_add`."""
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.coo_add(self, other, term("COOTensor.add", thresh))

    def __add__(self, other: Any) -> Any:
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.coo_plus(self, other, 1)

    def __sub__(self, other: Any) -> Any:
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.coo_plus(self, other, -1)

    def __mul__(self, other: Any) -> COOTensor:
        from mycel.ops.sparse import values as sparse_values

        return sparse_values.coo_scaled("COOTensor * y", self, other, False)

    def __truediv__(self, other: Any) -> COOTensor:
        from mycel.ops.sparse import values as sparse_values

        return sparse_values.coo_scaled("COOTensor / y", self, other, True)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class SparseTensor(_Coordinates):
    """A tensor by coordinates and values, as `COOTensor`, of any number of dimensions and without
    arithmetic.

    Deprecated: use `COOTensor`.

    >>> import mycel as ms
    >>> ms.SparseTensor(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2)).shape
    (1, 2)
    """

    indices: Tensor
    values: Tensor
    shape: tuple[Any, ...]

    def __init__(self, indices: Any, values: Any, shape: Any) -> None:
        logger.warning("SparseTensor is deprecated; use COOTensor instead")
        self._fill(indices, values, shape, None)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class CSRTensor(Sparse):
    """A sparse matrix by rows: row i holds `values[indptr[i]:indptr[i + 1]]`, in the columns
    `indices` of the same positions.

    Args:
        indptr (Tensor | None): (rows + 1,). Must begin with 0, not decrease and end with N, which
            is not checked. Default: None.
        indices (Tensor | None): (N,), of int16, int32 or int64. Default: None.
        values (Tensor | None): (N, ...) of any type. Default: None.
        shape (tuple[int, ...] | None): A tuple of ints with one size more than `values` has:
            further dimensions of the values are those of the dense tensor after rows and columns.
            Default: None.
        csr_tensor (CSRTensor | None): In their place another CSRTensor or a sparse matrix of SciPy
            may be given, as `csr_tensor` or alone. Default: None.

    Raises:
        TypeError, ShapeError: (a ValueError) for arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([1, 2]), ms.Tensor([1.0, 2.0]), (2, 3))
        >>> x.mv(ms.Tensor([[1.0], [1.0], [5.0]])).tolist()
        [[1.0], [10.0]]
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[Any, ...]

    def __init__(
        self, indptr: Any = None, indices: Any = None, values: Any = None, shape: Any = None, csr_tensor: Any = None
    ) -> None:
        if is_scipy_sparse(indptr):
            indptr, csr_tensor = None, indptr
        if self._become(csr_tensor, CSRTensor, "csr_tensor", (indptr, indices, values, shape)):
            return
        rows, columns = _positions("CSRTensor", "indptr", indptr, 1), _positions("CSRTensor", "indices", indices, 1)
        held = arguments.instance("CSRTensor", "values", values, Tensor)
        sizes = _sizes("CSRTensor", shape, 2, None)
        if held.ndim != len(sizes) - 1:
            raise ShapeError(
                f"CSRTensor: values of shape {held.shape} must have one dimension less than shape {sizes}: one for the "
                "stored elements, then those behind rows and columns"
            )
        if differ(rows.shape[0], sizes[0] + 1):
            raise ShapeError(f"CSRTensor: indptr must have shape[0] + 1 = {sizes[0] + 1} elements, not {rows.shape[0]}")
        if differ(columns.shape[0], held.shape[0]):
            raise ShapeError(
                f"CSRTensor: indices {columns.shape} and values {held.shape} must have the same first size, one column "
                "for each value"
            )
        if not all(not differ(a, b) for a, b in zip(held.shape[1:], sizes[2:])):
            raise ShapeError(
                f"CSRTensor: the sizes of values {held.shape} behind the first must be those of shape {sizes} from the "
                "third on"
            )
        self._hold(indptr=rows, indices=columns, values=held, shape=sizes)

    def to_tuple(self) -> tuple[Tensor, Tensor, Tensor, tuple[Any, ...]]:
        """Return row pointers, column indices, values and shape."""
        return self.indptr, self.indices, self.values, self.shape

    def to_coo(self) -> COOTensor:
        """Return the same matrix as a COO tensor; see `mycel.ops.csr_to_coo`."""
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_to_coo(self)

    def to_dense(self) -> Tensor:
        """Return the matrix as a tensor; see `mycel.ops.csr_to_dense`."""
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_to_dense(self)

    def mv(self, dense_vector: Any) -> Tensor:
        """Return the product with a column (N, 1); see `mycel.ops.csr_mv`."""
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_mv(self, dense_vector)

    def mm(self, matrix: Any) -> Any:
        """Return the product with a dense matrix (a Tensor) or with a CSRTensor (a CSRTensor); see
        `mycel.ops.csr_mm`.
        """
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_mm(self, matrix)

    def sum(self, axis: int) -> Tensor:
        """Return the sums along an axis, which stays with size 1.

        See `mycel.ops.csr_reduce_sum`.
        """
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_reduce_sum(self, axis)

    def add(self, b: CSRTensor, alpha: Any, beta: Any) -> CSRTensor:
        """Return alpha times this matrix plus beta times `b`; see `mycel.ops.csr_add`."""
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_add(self, b, alpha, beta)

    def __add__(self, other: Any) -> CSRTensor:
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_plus(self, other, 1)

    def __sub__(self, other: Any) -> CSRTensor:
        from mycel.ops.sparse import sparse_matrices as sparse

        return sparse.csr_plus(self, other, -1)

    def __mul__(self, other: Any) -> CSRTensor:
        from mycel.ops.sparse import values as sparse_values

        return sparse_values.csr_mul(self, other)

    def __truediv__(self, other: Any) -> CSRTensor:
        from mycel.ops.sparse import values as sparse_values

        return sparse_values.csr_div(self, other)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class RowTensor(Sparse):
    """Some rows of a large tensor: row `indices[i]` is `values[i]`, as in gradients of embeddings.

    Deprecated; it is here for programs that use it.

    Args:
        indices (Tensor | None): (N,) of int16, int32 or int64. Default: None.
        values (Tensor | None): (N, ...). Default: None.
        shape (tuple[int, ...] | None): That of the dense tensor. Default: None.
        row_tensor (RowTensor | None): In their place another RowTensor may be given as
            `row_tensor`. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.RowTensor(ms.Tensor([0]), ms.Tensor([[1.0, 2.0]]), (3, 2)).dense_shape
        (3, 2)
    """

    indices: Tensor
    values: Tensor
    shape: tuple[Any, ...]

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: Any = None) -> None:
        logger.warning("RowTensor is deprecated; use a Tensor, or COOTensor for a sparse matrix")
        if not self._become(row_tensor, RowTensor, "row_tensor", (indices, values, shape)):
            self._fill(indices, values, shape)

    def _fill(self, indices: Any, values: Any, shape: Any) -> None:
        rows = _positions("RowTensor", "indices", indices, 1)
        held = arguments.instance("RowTensor", "values", values, Tensor)
        sizes = _sizes("RowTensor", shape, 1, None)
        fits = len(sizes) == held.ndim and all(not differ(a, b) for a, b in zip(sizes[1:], held.shape[1:]))
        if not fits or differ(rows.shape[0], held.shape[0]):
            raise ShapeError(
                f"RowTensor: values {held.shape} must be a row of shape {sizes} for each of the {rows.shape[0]} indices"
            )
        self._hold(indices=rows, values=held, shape=sizes)

    @property
    def dense_shape(self) -> tuple[Any, ...]:
        """The shape of the dense tensor."""
        return self.shape
