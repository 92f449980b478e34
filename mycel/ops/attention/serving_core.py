"""The computation that calls of models in service have in common.

It is `mycel.ops.attention.scaled_dot_product.attend` with a mask of which rows and columns hold
anything: lengths of the examples of a batch, counted from the left, or from the right where a
padding size is given. Rows without a query are zeros. Keys and values of 8 bits are restored as (x
+ offset) * scale; results of 8 bits are round(x * scale + offset).

A cache is blocks of tokens: (blocks, tokens, heads * size), (blocks, heads, tokens, size), or with
`PagedAttention` (blocks, tokens, heads, size). The table of an example names its blocks in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import elementwise, gather_scatter
from mycel.ops._operands import (
    constant_like,
    numbers_of,
    operand,
    permuted,
    reshaped,
    run,
    select,
    take_slice,
)
from mycel.ops.attention.masks import MOST, SparseMask, either, positions, truth
from mycel.ops.attention.qkv_layouts import check_heads, from_heads, same_types, to_heads
from mycel.ops.attention.scaled_dot_product import attend, attend_with_statistics


@dataclass(frozen=True)
class Extent:
    """Where the rows or columns of each example lie: `length` of them from `start`.

    Both are numbers or tensors (batch, 1, 1, 1). `whole` says that they are the whole axis.
    """

    start: Any
    length: Any
    whole: bool

    def own(self, place: Tensor) -> Tensor:
        """Return positions counted from the first one of each example."""
        return place if self.whole or isinstance(self.start, int) else place - self.start

    def outside(self, place: Tensor) -> Tensor | None:
        """Return True at positions that hold nothing, or None where all hold something."""
        if self.whole:
            return None
        own = self.own(place)
        late = run(E.ge, own, self.length)
        return late if isinstance(self.start, int) else either(late, run(E.lt, own, constant_like(0, own)))

    def count(self, like: Tensor) -> Tensor:
        """Return the length as a tensor, of the type of `like` where it is a number."""
        return constant_like(self.length, like) if self.whole else self.length


@dataclass(frozen=True)
class Lengths:
    """How many rows or columns of each example hold something: the first ones, or, with `padding`,
    the last ones before that many places.

    `lengths` has a number for each example, or one for all; None means all rows or columns.
    """

    lengths: Any = None
    padding: Any = None

    def extent(self, name: str, parameter: str, batch: Any, size: Any) -> Extent:
        """Return the extent of the examples of a batch in an axis of `size`.

        `name` and `parameter` say for errors whose lengths they are.
        """
        if self.lengths is None:
            return Extent(0, size, True)
        x = _numbers(name, parameter, self.lengths)
        if x.shape not in ((batch,), (1,), ()):
            raise ValueError(f"{name}: {parameter} must have {batch} numbers or one, not {x.shape}")
        length = reshaped(x, (x.size, 1, 1, 1))
        if self.padding is None:
            return Extent(0, length, False)
        pad = _numbers(name, "the padding size", self.padding)
        pad = run(E.maximum, reshaped(pad, (1, 1, 1, 1)), constant_like(0, pad))
        return Extent(constant_like(size, length) - pad - length, length, False)


def _numbers(name: str, parameter: str, value: Any) -> Tensor:
    """Return whole numbers of an argument that is a tensor or a sequence."""
    x = numbers_of(name, parameter, value)
    if x.ndim > 1:
        raise ShapeError(f"{name}: {parameter} must have one number for each example, not the shape {x.shape}")
    return x


@dataclass(frozen=True)
class Stored:
    """How keys and values of 8 bits are restored: as (x + offset) * scale.

    `scales` and `offsets` are those of keys and of values; `parts` says which part along the first
    axis is meant, or None for all. In `mode` 1 there is a number for each token, else one number,
    or one for each channel.
    """

    scales: tuple[Any, Any] = (None, None)
    offsets: tuple[Any, Any] = (None, None)
    parts: tuple[int | None, int | None] = (0, 1)
    mode: int = 0

    @classmethod
    def together(cls, scale: Any, offset: Any, mode: int = 0) -> Stored:
        """Return scales and offsets that have a part for keys and one for values."""
        return cls((scale, scale), (offset, offset), (0, 1), mode)

    def restored(self, name: str, k: Tensor, v: Tensor, kind: DType) -> tuple[Tensor, Tensor]:
        """Return keys `k` and values `v` (batch, heads, tokens, size) as numbers of the type
        `kind`.

        `name` is the operation, for errors.
        """
        if (k.dtype is D.int8) != (self.scales[0] is not None):
            raise TypeError(f"{name}: keys of int8, and those alone, go with an antiquant_scale; key is {k.dtype.name}")
        k, v = (self._restored(name, x, which, kind) for which, x in enumerate((k, v)))
        return k, v

    def _restored(self, name: str, x: Tensor, which: int, kind: DType) -> Tensor:
        """Return keys (`which` is 0) or values (1) as numbers of the type `kind`."""
        part = self.parts[which]
        scale = _factor(name, self.scales[which], part, self.mode, x)
        if scale is None:
            return x
        offset = _factor(name, self.offsets[which], part, self.mode, x)
        wider = cast(x, scale.dtype)
        return cast((wider if offset is None else wider + cast(offset, scale.dtype)) * scale, kind)


def _factor(name: str, value: Any, part: int | None, mode: int, x: Tensor) -> Tensor | None:
    """Return a scale or an offset shaped for `x` (batch, heads, tokens, size): one number, one for
    each channel, or, in mode 1, one for each token.
    """
    if value is None:
        return None
    f = operand(name, value)
    if part is not None:
        if f.ndim < 1 or f.shape[0] != 2:
            raise ShapeError(
                f"{name}: antiquant_scale and antiquant_offset have a part for keys and one for values, not the shape "
                f"{f.shape}"
            )
        f = reshaped(take_slice(f, 0, part, part + 1), f.shape[1:])
    b, n, s, d = x.shape
    if mode == 1:
        wanted, shape = b * s, (b, 1, s, 1)
    else:
        wanted, shape = (1, (1, 1, 1, 1)) if f.size == 1 else (n * d, (1, n, 1, d))
    if f.size != wanted:
        raise ShapeError(
            f"{name}: a scale or offset of shape {f.shape} does not fit {n} heads of size {d} and {s} tokens in mode "
            f"{mode}"
        )
    return reshaped(f, shape)


def narrowed(name: str, x: Tensor, scale: Any, offset: Any) -> Tensor:
    """Return `x` (batch, heads, length, size) as round(x * scale + offset) in 8 bits.

    `scale` and `offset` are one number, or one for each channel. `name` is the operation, for
    errors.
    """
    factor, shift = _factor(name, scale, None, 0, x), _factor(name, offset, None, 0, x)
    assert factor is not None
    y = cast(x, D.float32) * cast(factor, D.float32)
    y = elementwise.round(y if shift is None else y + cast(shift, D.float32))
    return cast(run(E.minimum, run(E.maximum, y, constant_like(-128.0, y)), constant_like(127.0, y)), D.int8)


def from_blocks(name: str, cache: Tensor, table: Tensor, heads: int) -> Tensor:
    """Return the tokens of each example, as (batch, heads, tokens, size).

    `cache` is (blocks, tokens, heads * size) or (blocks, heads, tokens, size), and `table` (batch,
    blocks) names the blocks of each example; negative numbers stand for any block. `heads` is the
    number of heads where they are joined. `name` is the operation, for errors.
    """
    if table.ndim != 2 or cache.ndim not in (3, 4):
        raise ShapeError(
            f"{name}: takes a cache of 3 or 4 dimensions and a table (batch, blocks), not {cache._type} and "
            f"{table._type}"
        )
    blocks = run(E.maximum, table, constant_like(0, table))
    found = gather_scatter.gather(cache, blocks, 0)
    b, m = table.shape
    if cache.ndim == 3:
        return to_heads(name, reshaped(found, (b, m * cache.shape[1], cache.shape[2])), "BSH", heads)
    found = permuted(found, (0, 2, 1, 3, 4))
    return reshaped(found, (b, cache.shape[1], m * cache.shape[2], cache.shape[3]))


@dataclass(frozen=True)
class Served:
    """The arguments that calls in service have in common, beyond queries, keys and values.

    `name` is the operation, for errors. `heads` is the number of heads of queries, `shared` that of
    keys. `rows` and `columns` say which queries and keys hold anything, `stored` how keys and
    values of 8 bits are restored. With a `table` of blocks keys and values are caches of blocks of
    `block_size` tokens. `mask`, `mode`, `before` and `after` are those of `SparseMask`, `bias` is
    added to scores. Results of 8 bits have a `result_scale`, and perhaps a `result_offset`;
    `statistics` asks for the sums of exponentials. `one` says that each example has one query, so
    that masks have no axis for queries.
    """

    name: str
    heads: int
    shared: int
    layout: str
    scale: float
    rows: Lengths = Lengths()
    columns: Lengths = Lengths()
    mask: Any = None
    bias: Any = None
    mode: int = 0
    before: int = MOST
    after: int = MOST
    stored: Stored = Stored()
    table: Any = None
    block_size: int = 0
    result_scale: Any = None
    result_offset: Any = None
    statistics: bool = False
    one: bool = False

    def of_example(self, i: int, batch: Any) -> Served:
        """Return the arguments of example `i` of a batch alone."""
        return replace(
            self,
            rows=replace(self.rows, lengths=_part(self.rows.lengths, i, batch)),
            columns=replace(self.columns, lengths=_part(self.columns.lengths, i, batch)),
            mask=self.mask if self._is_for_all(self.mask) else _part(self.mask, i, batch),
            bias=_part(self.bias, i, batch),
        )

    def _is_for_all(self, mask: Any) -> bool:
        """Return whether a mask is (queries, keys), of all examples."""
        return not self.one and np.ndim(mask) == 2

    def __call__(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention in its layout, and the logarithm of each row's sum of exponentials,
        or one 0 without `statistics`.
        """
        name = self.name
        q, k, v = self._operands(query, key, value)
        rows, columns = q.shape[2], k.shape[2]
        row_extent = self.rows.extent(name, "actual_seq_lengths", q.shape[0], rows)
        column_extent = self.columns.extent(name, "actual_seq_lengths_kv", q.shape[0], columns)
        row, column = positions(rows, 2), positions(columns, 3)
        no_row, no_column = row_extent.outside(row), column_extent.outside(column)
        whole = row_extent.whole and column_extent.whole
        more = columns - rows if whole else column_extent.count(row) - row_extent.count(row)
        mask = SparseMask(name, self.mode, self._mask(), self.before, self.after)
        drop = mask.dropped(row_extent.own(row), column_extent.own(column), more)
        if no_column is not None:
            hole = permuted(no_column, (0, 1, 3, 2))
            v = select(hole, constant_like(0.0, v), v)
        drop, bias = either(drop, no_column), self._bias(q, columns)
        lse = Tensor(np.zeros((1,), np.float32))
        if self.statistics:
            out, peak, total = attend_with_statistics(q, k, v, self.scale, bias=bias, drop=drop)
            lse = cast(peak + run(E.log, total), D.float32)
        else:
            out = attend(q, k, v, self.scale, bias=bias, drop=drop)
        if no_row is not None:
            out = select(no_row, constant_like(0.0, out), out)
        if self.result_scale is not None:
            out = narrowed(name, out, self.result_scale, self.result_offset)
        return from_heads(out, "BSND" if self.layout == "BNSD_BSND" else self.layout), lse

    def _operands(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values as (batch, heads, length, size) of one floating type."""
        name = self.name
        if query.dtype is D.int8:
            raise TypeError(f"{name}: queries of int8 are not supported; restore them, as (x + offset) * scale, before")
        q = self._heads(query, self.heads)
        if q.shape[1] != self.heads:
            raise ShapeError(f"{name}: num_heads is {self.heads}, but query has {q.shape[1]} heads")
        if self.table is None:
            k, v = self._heads(key, self.shared), self._heads(value, self.shared)
        else:
            if self.columns.lengths is None or self.columns.padding is not None:
                raise ValueError(f"{name}: with a block_table the lengths of keys must be given, and no padding size")
            size = key.shape[1] if key.ndim == 3 else key.shape[2]
            if self.block_size != size:
                raise ValueError(
                    f"{name}: block_size is {self.block_size}, but the blocks of the cache hold {size} tokens"
                )
            table = operand(name, self.table, D.int64)
            k, v = (from_blocks(name, x, table, self.shared) for x in (key, value))
        if k.shape[1] != self.shared:
            raise ShapeError(f"{name}: num_key_value_heads is {self.shared}, but key has {k.shape[1]} heads")
        k, v = self.stored.restored(name, k, v, q.dtype)
        same_types(name, q, k, v)
        check_heads(name, q, k, v)
        return q, k, v

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        """Return `x` as (batch, heads, length, size)."""
        return to_heads(self.name, x, self.layout.partition("_")[0], heads)

    def _mask(self) -> Tensor | None:
        """Return the mask as (batch or 1, 1, queries, keys)."""
        if self.mask is None:
            return None
        m = truth(self.name, "the mask", self.mask)
        if self.one:
            return reshaped(m, (m.shape[0], 1, 1, m.shape[-1]))
        return reshaped(m, (m.shape[0], 1, *m.shape[1:])) if m.ndim == 3 else m

    def _bias(self, q: Tensor, keys: Any) -> Tensor | None:
        """Return the part of the bias for the queries and keys that there are."""
        if self.bias is None:
            return None
        x = operand(self.name, self.bias)
        b, n, s, _ = q.shape
        if x.ndim != 4 or x.shape[0] not in (1, b) or x.shape[1] != n or x.shape[2] < s or x.shape[3] < keys:
            raise ShapeError(
                f"{self.name}: pse_shift must be of shape ({b} or 1, {n}, {s}, {keys}) or longer, not {x.shape}"
            )
        return take_slice(take_slice(x, 2, 0, s), 3, 0, keys)


def _part(value: Any, i: int, batch: Any) -> Any:
    """Return the part of example `i` of an argument that has one for each; all of any other."""
    if isinstance(value, (tuple, list)):
        return value[i : i + 1] if len(value) == batch else value
    if isinstance(value, Tensor) and value.ndim and value.shape[0] == batch and batch != 1:
        return take_slice(value, 0, i, i + 1)
    return value
