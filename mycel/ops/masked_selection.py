"""Choices by masks: elements where a condition holds, and the positions of those that are not 0.

`masked_select` and `nonzero` have shapes that depend on values (`core.mask_indices`).
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.mask_indices import flat_positions, positions_in
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    broadcast,
    flat,
    operand,
    reshaped,
    run,
    take_slice,
    term,
    terms,
)
from mycel.ops._operands import (
    select as choose,
)
from mycel.ops.gather_scatter import write

__all__ = [
    "argwhere",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "select",
    "where",
]


@fused
def where(condition: Any, input: Any, other: Any) -> Tensor:
    """Return `input` where the condition holds, else `other`.

    All three broadcast, and the two values are converted to their common type.

    >>> import mycel as ms
    >>> ms.ops.where(ms.Tensor([True, False]), ms.Tensor([1, 2]), 0).tolist()
    [1, 0]
    """
    return choose(operand("where", condition, D.bool_), *terms("where", input, other))


def select(condition: Any, input: Any, other: Any) -> Tensor:
    """Return the same as `where`.

    >>> import mycel as ms
    >>> ms.ops.select(ms.Tensor([True, False]), ms.Tensor([1, 2]), ms.Tensor([3, 4])).tolist()
    [1, 4]
    """
    return where(condition, input, other)


@fused
def masked_fill(input_x: Any, mask: Any, value: Any) -> Tensor:
    """Return `input_x` with `value` where the mask holds, in the type of `input_x`; the mask
    broadcasts.

    >>> import mycel as ms
    >>> ms.ops.masked_fill(ms.Tensor([1.0, 2.0]), ms.Tensor([True, False]), 9).tolist()
    [9.0, 2.0]
    """
    x = operand("masked_fill", input_x)
    return choose(_mask("masked_fill", mask), term("masked_fill", value, x.dtype), x)


def _mask(name: str, mask: Any) -> Tensor:
    found = operand(name, mask)
    if found.dtype is not D.bool_:
        raise TypeError(f"{name}: the mask must be boolean, not {found.dtype.name}; compare it with 0")
    return found


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Return the int64 positions of the elements that are not 0, one row for each.

    With `as_tuple` they are returned as one vector for each axis.

    >>> import mycel as ms
    >>> ms.ops.nonzero(ms.Tensor([0, 5, 6])).tolist()
    [[1], [2]]
    """
    arguments.flag("nonzero", "as_tuple", as_tuple)
    x = operand("nonzero", input)
    found = positions_in(cast(x if x.ndim else reshaped(x, (1,)), D.bool_))
    if as_tuple:
        return tuple(found)
    columns = [reshaped(v, (*v.shape, 1)) for v in found]
    joined = run(S.CONCAT, *columns, axis=1)
    return joined if x.ndim else take_slice(joined, 1, 0, 0)


def argwhere(input: Any) -> Tensor:
    """Return the int64 positions of the elements that are not 0, one row for each.

    >>> import mycel as ms
    >>> ms.ops.argwhere(ms.Tensor([0, 5, 6])).tolist()
    [[1], [2]]
    """
    return nonzero(input)


def _mask_positions(name: str, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return `x` broadcast and flattened, and the positions in it where the mask, broadcast as
    well, holds.
    """
    shape = broadcast_shapes(x.shape, mask.shape)
    return flat(broadcast(x, shape)), flat_positions(broadcast(mask, shape))


def masked_select(input: Any, mask: Any) -> Tensor:
    """Return the elements where the mask holds, in order; the tensor and the mask broadcast.

    >>> import mycel as ms
    >>> ms.ops.masked_select(ms.Tensor([1, 2, 3]), ms.Tensor([True, False, True])).tolist()
    [1, 3]
    """
    x, positions = _mask_positions("masked_select", operand("masked_select", input), _mask("masked_select", mask))
    return run(I.take, x, positions, axis=0)


def masked_scatter(input: Any, mask: Any, source: Any) -> Tensor:
    """Return `input` with the elements of `source`, in order, where the mask holds.

    The mask broadcasts to the shape of `input`, and its value is needed.

    >>> import mycel as ms
    >>> x, mask = ms.Tensor([1, 2, 3]), ms.Tensor([True, False, True])
    >>> ms.ops.masked_scatter(x, mask, ms.Tensor([8, 9])).tolist()
    [8, 2, 9]
    """
    x = operand("masked_scatter", input)
    line, positions = _mask_positions("masked_scatter", x, operand("masked_scatter", mask, D.bool_))
    values = flat(operand("masked_scatter", source, x.dtype))
    if line.shape[0] != x.size or values.size < positions.size:
        raise ShapeError(
            f"masked_scatter: the mask must fit {x._type} and hold at most {values.size} places, not {positions.size}"
        )
    index = reshaped(positions, (positions.size, 1))
    return reshaped(write("masked_scatter", line, index, take_slice(values, 0, 0, positions.size), "set"), x.shape)
