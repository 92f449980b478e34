"""Blocks of rows stored by column, the unit of data between the nodes of a pipeline.

A block is `count` consecutive rows, stored by column. A column is either one array whose first axis
is the rows (*stacked*) or a list with one array for each row. Stacked columns let one NumPy call do
the work of a whole batch. A dictionary in a row is an array of no dimensions and type object, which
`plain` opens where users see it. Invariants: the arrays of a block belong to it alone, so whoever
receives a block may write into it; and a block has at least one row.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Column = Array | list[Array]
Row = tuple[Array, ...]


def is_picture(value: Any) -> bool:
    """Return whether a value is an image of Pillow."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def as_array(value: Any) -> Array:
    """Convert a value from a user's function or source into an array.

    The value is an array, scalar, list, text, bytes, tensor, picture or dictionary. Raises
    TypeError for others.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.char == "O" and (value.ndim or not isinstance(value.item(), dict)):
            raise TypeError(
                "a column must be a number, text, bytes or a rectangular array of them, not an array of objects, "
                f"{repr(value)[:80]}; convert it with astype"
            )
        return value
    if isinstance(value, dict):
        return of_dictionary(value)
    if isinstance(value, bytes):
        return np.array(value, dtype=f"S{max(1, len(value))}")
    if isinstance(value, (np.number, np.bool_)):
        return np.asarray(value)
    convert = getattr(value, "asnumpy", None)
    if convert is not None:
        return np.asarray(convert())
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(
            "a column must be a number, text, bytes or a rectangular array of them, "
            f"not {repr(value)[:80]} of type {type(value).__name__}"
        )
    return array


def of_dictionary(value: dict[Any, Any]) -> Array:
    """Return the array that holds a dictionary."""
    holder = np.empty((), object)
    holder[()] = value
    return holder


def plain(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of a row or column as users' functions receive them: dictionaries as
    themselves.
    """
    if "O" not in {value.dtype.char for value in values if type(value) is np.ndarray}:
        return tuple(values)
    return tuple(v.item() if isinstance(v, np.ndarray) and v.dtype.char == "O" and not v.ndim else v for v in values)


def user_rows(column: Column, count: int) -> Sequence[Any]:
    """Return the rows of one column as users' functions receive them."""
    rows = column_rows(column, count)
    return rows if isinstance(column, np.ndarray) and column.dtype.char != "O" else plain(rows)


def _stack_dictionaries(rows: Sequence[Any], where: str) -> Array:
    """Return the dictionary of stacked values of dictionaries with the same keys."""
    if any(not isinstance(row, dict) or row.keys() != rows[0].keys() for row in rows):
        raise ValueError(f"{where}: the dictionaries of a batch must have the same keys")
    result: dict[Any, Any] = {}
    for key in rows[0]:
        parts = [row[key] for row in rows]
        if any(isinstance(part, dict) for part in parts):
            raise ValueError(
                f"{where}: key {key!r} holds dictionaries, which cannot be stacked; make the batch with per_batch_map"
            )
        result[key] = stack([as_array(part) for part in parts], f"{where}: key {key!r}")
    return of_dictionary(result)


def stack(arrays: Sequence[Array], where: str) -> Array:
    """Stack arrays of equal shape and type; raise ValueError if they differ.

    `where` is what messages call the operation and column.
    """
    first = arrays[0]
    shape, dtype = first.shape, first.dtype
    if dtype.kind == "O":
        return _stack_dictionaries(plain(arrays), where)
    if not _are_alike(arrays, shape, dtype):
        _check_alike(arrays, shape, dtype, where)
    if not shape:
        return np.array(arrays, dtype=None if dtype.kind in "US" else dtype)
    if dtype.kind in _NUMBERS and first.nbytes < _FEW and all([a.flags.c_contiguous for a in arrays]):
        # For few bytes a tenth of the time that `concatenate` takes.
        return np.frombuffer(bytearray().join(arrays), dtype).reshape((len(arrays), *shape))  # type: ignore[arg-type]
    parts = [array[None] for array in arrays]
    if dtype.kind not in _NUMBERS:
        return np.concatenate(parts)
    return np.concatenate(parts, out=aligned((len(arrays), *shape), dtype))


def aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return a new array of numbers, without values, whose memory begins where kernels like it."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _LINE - 1, np.uint8)
    start = -memory.__array_interface__["data"][0] % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)


_NUMBERS = "biufc"
_FEW = 1 << 13
# The bytes of a line of the cache.
_LINE = 64


def _are_alike(arrays: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    for array in arrays:
        if array.shape != shape or array.dtype is not dtype and array.dtype != dtype:
            return False
    return True


def _check_alike(arrays: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    for position, array in enumerate(arrays):
        if array.shape != shape:
            raise ValueError(
                f"{where}: row {position} has shape {array.shape} but the first row of the batch has shape {shape}; "
                "make the rows equal with a map, or use padded_batch"
            )
        if array.dtype != dtype and not (array.dtype.kind == dtype.kind and dtype.kind in "US"):
            raise ValueError(
                f"{where}: row {position} has type {array.dtype} but the first row of the batch has type {dtype}; "
                "convert with transforms.TypeCast"
            )


class Block:
    """`count` rows by column, each of which is a stacked array or a list of arrays."""

    __slots__ = ("columns", "count")

    def __init__(self, columns: list[Column], count: int) -> None:
        self.columns = columns
        self.count = count

    @staticmethod
    def from_rows(rows: Sequence[Row]) -> Block:
        """Make a block of these rows."""
        return Block([list(column) for column in zip(*rows)], len(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, ([_packed(column) for column in self.columns], self.count)

    def row(self, index: int) -> Row:
        """Return one row; its scalars are arrays of no dimensions."""
        return tuple(c[index] if isinstance(c, list) else c[index, ...] for c in self.columns)

    def rows(self) -> Iterator[Row]:
        """Return the rows in order."""
        return (self.row(index) for index in range(self.count))

    def slice(self, start: int, stop: int) -> Block:
        """Return rows `start` .. `stop - 1`, which share memory with this block."""
        if start == 0 and stop >= self.count:
            return self
        return Block([c[start:stop] for c in self.columns], min(stop, self.count) - start)

    def select(self, indices: Sequence[int] | Array) -> Block:
        """Return the rows at these positions."""
        return Block(
            [[c[i] for i in indices] if isinstance(c, list) else c[indices] for c in self.columns], len(indices)
        )

    def pick(self, positions: Sequence[int]) -> Block:
        """Return the columns at these positions."""
        return Block([self.columns[p] for p in positions], self.count)


class _Packed(NamedTuple):
    """A column of small arrays as one: `kinds` are their types and shapes, `which` those of each
    row (None: all have the first), `content` their bytes.
    """

    kinds: list[tuple[str, tuple[int, ...]]]
    which: list[int] | None
    content: Array


def _packed(column: Column) -> Any:
    """Return what is pickled of a column: pickle takes ten times as long for a list of arrays."""
    if isinstance(column, np.ndarray) or len(column) < 2 or type(column[0]) is not np.ndarray:
        return column
    first = column[0].dtype
    kind, alignment = first.kind, first.alignment
    if kind not in _NUMBERS + "US":
        return column
    for array in column:
        # Rows follow each other: with one alignment each begins where its type may.
        if type(array) is not np.ndarray or array.dtype.kind != kind or array.dtype.alignment != alignment:
            return column
        if array.nbytes > _FEW or not array.flags.c_contiguous:
            return column
    numbers: dict[tuple[str, tuple[int, ...]], int] = {}
    which = [numbers.setdefault((array.dtype.str, array.shape), len(numbers)) for array in column]
    content = np.frombuffer(bytearray().join(column), np.uint8)  # type: ignore[arg-type]
    return _Packed(list(numbers), which if len(numbers) > 1 else None, content)


def _unpacked(columns: list[Any], count: int) -> Block:
    """Make the block whose columns were pickled so."""
    return Block([_rows_of(c, count) if isinstance(c, _Packed) else c for c in columns], count)


def _rows_of(packed: _Packed, count: int) -> list[Array]:
    kinds = [(shape, np.dtype(name)) for name, shape in packed.kinds]
    sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in kinds]
    rows: list[Array] = []
    place = 0
    for number in packed.which or [0] * count:
        shape, dtype = kinds[number]
        rows.append(np.ndarray(shape, dtype, packed.content, place))
        place += sizes[number]
    return rows


def join(blocks: Sequence[Block]) -> Block:
    """Join the rows of several blocks into one block."""
    if len(blocks) == 1:
        return blocks[0]
    columns: list[Column] = []
    for parts in zip(*(block.columns for block in blocks)):
        stacked = all(isinstance(p, np.ndarray) for p in parts)
        if stacked and len({(p.shape[1:], p.dtype) for p in parts if isinstance(p, np.ndarray)}) == 1:
            columns.append(np.concatenate(parts))
        else:
            columns.append([row for part, block in zip(parts, blocks) for row in column_rows(part, block.count)])
    return Block(columns, sum(block.count for block in blocks))


def column_rows(column: Column, count: int) -> list[Array]:
    """Return the rows of one column as a list."""
    return column if isinstance(column, list) else [column[i, ...] for i in range(count)]


def try_stack(column: Column) -> Array | None:
    """Return the column as one array; None where its rows differ in shape or type, or are
    dictionaries.
    """
    if isinstance(column, np.ndarray):
        return column if column.dtype.kind != "O" else None
    first = column[0]
    if first.dtype.kind == "O":
        return None
    if not _are_alike(column, first.shape, first.dtype):
        return None
    return stack(column, "stack")


class Reader:
    """A reader of rows, in pieces of any size, from an iterator of blocks."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = iter(blocks)
        self.left: Block | None = None

    def read(self, count: int) -> Block | None:
        """Return the next `count` rows, fewer at the end, or None after it."""
        parts: list[Block] = []
        wanted = count
        while wanted:
            block = self.left if self.left is not None else next(self.blocks, None)
            self.left = None
            if block is None:
                break
            if block.count > wanted:
                self.left = block.slice(wanted, block.count)
                block = block.slice(0, wanted)
            parts.append(block)
            wanted -= block.count
        return join(parts) if parts else None

    def groups(self, size: int, most: int) -> Block | None:
        """Return the next rows in groups of `size`: as many groups as are there, up to `most`.

        Only at the end the last group has fewer rows; None comes after it.
        """
        left = self.left if self.left is not None else next(self.blocks, None)
        self.left = left
        if left is None or left.count < size:
            return self.read(size)
        self.left = None
        return self._first(left, size * min(most, left.count // size))

    def some(self, most: int) -> Block | None:
        """Return the next rows that are there, `most` or fewer, or None after the end."""
        left = self.left if self.left is not None else next(self.blocks, None)
        self.left = None
        return None if left is None else self._first(left, most)

    def _first(self, block: Block, most: int) -> Block:
        if block.count > most:
            self.left = block.slice(most, block.count)
        return block.slice(0, most)


def drain(blocks: Iterable[Block]) -> None:
    """Run through the blocks, for what is done on the way."""
    for _ in blocks:
        pass


def drop(blocks: Iterable[Block], count: int) -> Iterator[Block]:
    """Yield the blocks without their first `count` rows."""
    for block in blocks:
        if count >= block.count:
            count -= block.count
            continue
        yield block.slice(count, block.count)
        count = 0
