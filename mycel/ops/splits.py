"""Tensors cut into parts along an axis.

Parts are found from types alone, are views of the tensor where that is possible, and may have
symbolic sizes.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel._src.tensors.core.view_cache import viewing
from mycel._src.tensors.core.views import slice_step, take_slice, through
from mycel.ops._operands import axis_of, one_by_one, operand, size_of, sizes_of

__all__ = [
    "chunk",
    "dsplit",
    "hsplit",
    "split",
    "tensor_split",
    "unbind",
    "unstack",
    "vsplit",
]


@viewing
def unstack(input_x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of a tensor along an axis, each without that axis.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.unstack(ms.Tensor([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """
    x = operand("unstack", input_x)
    where = axis_of("unstack", axis, x.ndim)
    shape = x.shape[:where] + x.shape[where + 1 :]
    drop = (S.RESHAPE, {"shape": shape}, ())
    one_by_one("unstack", "parts", x.shape[where])
    parts = [slice_step(x.shape, where, i, i + 1) for i in builtins.range(x.shape[where])]
    return tuple(through(x, drop) if part is None else through(x, part, drop) for part in parts)


def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the same as `unstack`.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.unbind(ms.Tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return unstack(input, dim)


@viewing
def split(tensor: Any, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into parts of one size (the last may be smaller), or of the
    sizes in a sequence, which must add up to the size of the axis.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.split(ms.ops.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    x = operand("split", tensor)
    where = axis_of("split", axis, x.ndim)
    length = x.shape[where]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = [size_of("split", d) for d in split_size_or_sections]
        if builtins.sum(sizes) != length or builtins.any(isinstance(d, int) and d < 0 for d in sizes):
            raise ShapeError(f"split: the sizes {sizes} do not add up to {length}, the size of axis {axis}")
    else:
        size = size_of("split", split_size_or_sections)
        if size < 1:
            raise ValueError(f"split: the size of a part must be at least 1, not {size}")
        one_by_one("split", "parts", -(-length // size))
        sizes = [builtins.min(size, length - i) for i in builtins.range(0, length, size)] or [0]
    return _cut(x, where, sizes)


def _cut(x: Tensor, axis: int, sizes: Sequence[Any]) -> tuple[Tensor, ...]:
    parts, start = [], 0
    for size in sizes:
        parts.append(take_slice(x, axis, start, start + size))
        start = start + size
    return tuple(parts)


def _sections(name: str, value: Any) -> None:
    """Refuse a bool as the number of parts."""
    if isinstance(value, bool):
        raise arguments.wrong_type(name, "indices_or_sections", "an int or a sequence of ints", value)


@viewing
def tensor_split(input: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into a number of parts, or at the positions in a sequence.

    Where the size does not divide by the number of parts, the first parts are longer by one.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.tensor_split(ms.ops.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    _sections("tensor_split", indices_or_sections)
    x = operand("tensor_split", input)
    where = axis_of("tensor_split", axis, x.ndim)
    length = operator.index(x.shape[where])
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ValueError(f"tensor_split: the number of parts must be at least 1, not {count}")
        one_by_one("tensor_split", "parts", count)
        return _cut(x, where, [length // count + (i < length % count) for i in builtins.range(count)])
    given = sizes_of("tensor_split", "indices_or_sections", indices_or_sections)
    cuts = [builtins.min(builtins.max(c + length if c < 0 else c, 0), length) for c in given]
    return tuple(take_slice(x, where, a, builtins.max(a, b)) for a, b in zip([0, *cuts], [*cuts, length]))


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split a tensor along axis 1, or a vector along axis 0, as `tensor_split` does.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.hsplit(ms.Tensor([[1, 2]]), 2)]
    [[[1]], [[2]]]
    """
    _sections("hsplit", indices_or_sections)
    x = operand("hsplit", input)
    return tensor_split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split a tensor along axis 0, as `tensor_split` does.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.vsplit(ms.Tensor([[1], [2]]), 2)]
    [[[1]], [[2]]]
    """
    _sections("vsplit", indices_or_sections)
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split a tensor along axis 2, as `tensor_split` does.

    >>> import mycel as ms
    >>> len(ms.ops.dsplit(ms.ops.ones((1, 1, 4)), 2))
    2
    """
    _sections("dsplit", indices_or_sections)
    return tensor_split(input, indices_or_sections, 2)


@viewing
def chunk(input: Any, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into at most `chunks` parts, all of one size but the last.

    >>> import mycel as ms
    >>> [p.tolist() for p in ms.ops.chunk(ms.ops.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    arguments.integer("chunk", "chunks", chunks)
    x = operand("chunk", input)
    try:
        chunks = operator.index(chunks)
    except TypeError:
        raise TypeError(f"chunk: the number of parts must be a whole number, not {chunks!r:.80}") from None
    if chunks < 1:
        raise ValueError(f"chunk: the number of parts must be at least 1, not {chunks}")
    length = x.shape[axis_of("chunk", axis, x.ndim)]
    return split(x, builtins.max(-(-length // chunks), 1), axis)
