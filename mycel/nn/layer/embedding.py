"""Embedding layers, which look up rows of a table by number."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.initializer import Initializer, draws_of, initializer
from mycel.nn.layer.clipping import clipped
from mycel.ops._operands import input_of
from mycel.ops.gather_scatter import inside

__all__ = ["Embedding", "EmbeddingLookup", "MultiFieldEmbeddingLookup"]


class _PaddedRow(Initializer):
    """An initializer with one row of another initializer's values set to zeros."""

    def __init__(self, inner: Initializer, row: int) -> None:
        super().__init__(inner=inner, row=row)
        self.inner, self.row, self.draws = inner, row, draws_of(inner)

    def _initialize(self, arr: Any) -> None:
        self.inner(arr)
        arr[self.row] = 0

    def _initialize_part(self, part: Any, shape: Any, places: Any) -> None:
        self.inner._initialize_part(part, shape, places)
        part[self.row if places[0] is None else places[0] == self.row] = 0


class Embedding(Cell):
    """The rows of a table of shape (vocab_size, embedding_size) at integer inputs, as a new last
    axis.

    Args:
        vocab_size (int): The number of rows.
        embedding_size (int): The length of a row.
        use_one_hot (bool): Whether the look-up is computed as a product. Default: False.
        embedding_table (Tensor | str | Initializer | float): The initializer of the table. Default:
            "normal".
        dtype (DType | None): The element type of the table. Default: float32.
        padding_idx (int | None): The row that starts as zeros; None for none. Default: None.

    Raises:
        ValueError: For a `padding_idx` out of range.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Embedding(10, 4)(ms.Tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: Any = D.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = arguments.integer("Embedding", "vocab_size", vocab_size, 1)
        self.embedding_size = arguments.integer("Embedding", "embedding_size", embedding_size, 1)
        self.use_one_hot = arguments.flag("Embedding", "use_one_hot", use_one_hot)
        self.dtype = D.from_any(dtype)
        self.padding_idx = padding_idx
        table = embedding_table
        if padding_idx is not None:
            arguments.integer("Embedding", "padding_idx", padding_idx, 0)
            if padding_idx >= vocab_size:
                raise ValueError(
                    f"Embedding: padding_idx {padding_idx} is out of range for a vocabulary of {vocab_size}"
                )
            if not isinstance(table, Tensor):
                shape = (vocab_size, embedding_size)
                table = _PaddedRow(initializer(table, shape, dtype).init, padding_idx)
        self.embedding_table = Parameter(
            initializer(table, (vocab_size, embedding_size), dtype), name="embedding_table"
        )

    def construct(self, ids: Tensor) -> Tensor:
        """Return the rows."""
        if not self.use_one_hot:
            return ops.gather(self.embedding_table, ids, 0)
        table = self.embedding_table
        ids = inside("Embedding", ids, self.vocab_size)
        rows = ops.one_hot(ids, self.vocab_size, Tensor(1, table.dtype), Tensor(0, table.dtype))
        return ops.matmul(rows, table)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class EmbeddingLookup(Cell):
    """The rows of a table of shape (vocab_size, embedding_size) at integer inputs, zeros for
    numbers out of range.

    Args:
        vocab_size (int): The number of rows.
        embedding_size (int): The length of a row.
        param_init (Tensor | str | Initializer | float): The initializer of the table. Default:
            "normal".
        target (str): "CPU" or "DEVICE"; has no effect on one CPU. Default: "CPU".
        slice_mode (str): How the table is divided over devices; has no effect on one CPU. Default:
            "batch_slice".
        manual_shapes (tuple[int, ...] | None): The parts of the table on devices; has no effect on
            one CPU. Default: None.
        max_norm (float | None): The norm to which longer rows are scaled; None for no limit.
            Default: None.
        sparse (bool): Has no effect on one CPU. Default: True.
        dtype (DType | None): The element type of the table. Default: float32.

    Raises:
        TypeError, ValueError: For arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.EmbeddingLookup(4, 2, "ones")(ms.Tensor([1, 7])).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """

    BATCH_SLICE, FIELD_SLICE = "batch_slice", "field_slice"
    TABLE_ROW_SLICE, TABLE_COLUMN_SLICE = "table_row_slice", "table_column_slice"

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.vocab_size = arguments.integer(owner, "vocab_size", vocab_size, 1)
        self.embedding_size = arguments.integer(owner, "embedding_size", embedding_size, 1)
        self.target = arguments.one_of(owner, "target", target, ("CPU", "DEVICE"))
        self.sparse = arguments.flag(owner, "sparse", sparse)
        self.max_norm = None if max_norm is None else arguments.real(owner, "max_norm", max_norm, above=0)
        self.slice_mode, self.manual_shapes = slice_mode, manual_shapes
        table = initializer(param_init, (vocab_size, embedding_size), dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, indices: Tensor) -> Tensor:
        """Return the rows."""
        indices = input_of(self, indices)
        known = ops.logical_and(indices >= 0, indices < self.vocab_size)
        rows = ops.gather(self.embedding_table, ops.where(known, indices, ops.zeros_like(indices)), 0)
        rows = ops.where(ops.expand_dims(known, -1), rows, ops.zeros_like(rows))
        return rows if self.max_norm is None else clipped(rows, (indices.ndim,), self.max_norm)


_SLICES = ("batch_slice", "field_slice", "table_row_slice", "table_column_slice")


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """The rows of a table at integer inputs, times weights, combined within each field.

    (N, S) indices, weights and field numbers give (N, field_size, embedding_size). Only entries
    whose weight is not 0 count; a field without any is zeros, and entries whose field is not in 0
    .. field_size - 1 are left out.

    Args:
        vocab_size (int): The number of rows.
        embedding_size (int): The length of a row.
        field_size (int): The number of fields.
        param_init (Tensor | str | Initializer | float): The initializer of the table. Default:
            "normal".
        target (str): "CPU" or "DEVICE"; has no effect on one CPU. Default: "CPU".
        slice_mode (str): How the table is divided over devices; has no effect on one CPU. Default:
            "batch_slice".
        feature_num_list (tuple[int, ...] | None): The parts of the table on devices; has no effect
            on one CPU. Default: None.
        max_norm (float | None): The norm to which longer rows are scaled; None for no limit.
            Default: None.
        sparse (bool): Has no effect on one CPU. Default: True.
        operator (str): "SUM", "MEAN" (the sum over the sum of the weights' absolute values) or
            "MAX". Default: "SUM".
        dtype (DType | None): The element type of the table. Default: float32.

    Raises:
        TypeError, ValueError: For arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> layer = ms.nn.MultiFieldEmbeddingLookup(4, 1, 2, "ones")
        >>> layer(ms.Tensor([[1, 2, 3]]), ms.Tensor([[1.0, 2.0, 0.5]]), ms.Tensor([[0, 0,
        ...     1]])).tolist()
        [[[3.0], [0.5]]]
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        field_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        feature_num_list: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        operator: str = "SUM",
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(vocab_size, embedding_size, param_init, target, slice_mode, None, max_norm, sparse, dtype)
        owner = "MultiFieldEmbeddingLookup"
        arguments.choice(owner, "slice_mode", slice_mode, _SLICES)
        if target == "CPU" and not sparse:
            raise ValueError(f"{owner}: sparse must be True where target is 'CPU'")
        arguments.optional(owner, "feature_num_list", feature_num_list, tuple)
        self.feature_num_list = feature_num_list
        self.field_size = arguments.integer(owner, "field_size", field_size, 1)
        self.operator = arguments.one_of(owner, "operator", operator, ("SUM", "MAX", "MEAN"))

    def construct(self, input_indices: Tensor, input_values: Tensor, field_ids: Tensor) -> Tensor:  # type: ignore[override]
        """Return the combined rows of every field."""
        input_indices = input_of(self, input_indices)
        input_values = input_of(self, input_values)
        field_ids = input_of(self, field_ids)
        owner, shape = "MultiFieldEmbeddingLookup", input_indices.shape
        if len(shape) != 2 or input_values.shape != shape or field_ids.shape != shape:
            raise ValueError(
                f"{owner}: indices, values and field numbers must be (N, S), of one shape, not {shape}, "
                f"{input_values.shape} and {field_ids.shape}"
            )
        rows = super().construct(input_indices)
        weights = cast(input_values, rows.dtype)
        rows = rows * ops.expand_dims(weights, -1)
        fields = ops.reshape(ops.arange(self.field_size, dtype=field_ids.dtype), (-1, 1))
        # (N, field_size, S): which entries are of which field.
        member = ops.logical_and(ops.expand_dims(field_ids, 1) == fields, ops.expand_dims(weights, 1) != 0)
        if self.operator == "MAX":
            chosen = ops.expand_dims(member, -1)
            every = ops.broadcast_to(
                ops.expand_dims(rows, 1), (shape[0], self.field_size, shape[1], self.embedding_size)
            )
            most = ops.amax(ops.where(chosen, every, ops.full_like(every, float("-inf"))), 2)
            return ops.where(ops.any(chosen, 2), most, ops.zeros_like(most))
        total = ops.matmul(cast(member, rows.dtype), rows)
        if self.operator == "SUM":
            return total
        share = ops.sum(
            ops.where(member, ops.expand_dims(ops.abs(weights), 1), ops.zeros_like(member, dtype=rows.dtype)), -1
        )
        share = ops.expand_dims(share, -1)
        return total / ops.where(share > 0, share, ops.ones_like(share))
