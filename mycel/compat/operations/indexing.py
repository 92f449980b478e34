"""The helpers of MindSpore's indexing of tensors that programs use: reading and writing of parts,
reductions by a function, and conversions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.multitype import setitem

__all__ = ["NAMES"]


def _is_basic(index: Any) -> bool:
    """Return whether an index is made of numbers and slices alone, and gives a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or isinstance(part, (int, slice)) for part in parts)


def _setitem_origin(self: Any, index: Any, value: Any) -> Any:
    """Assign to a part of a tensor.

    With an index of numbers and slices the tensor itself changes, and is returned in a tuple; with
    tensors or lists in the index the result is a new tensor.
    """
    if _is_basic(index):
        return (setitem(self, index, value),)
    return setitem(self.copy(), index, value)


def _reduced(
    a: Any,
    reduce_fn: Callable[..., Any],
    cmp_fn: Callable[..., Any] | None = None,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    dtype: Any = None,
) -> Any:
    """Return a reduction of a tensor.

    `reduce_fn` is a function of a tensor, axes and `keepdims`; `cmp_fn` of a tensor and `initial`,
    or None; `axis` is one axis, several, or None for all; `keepdims` keeps axes of size one;
    `where` chooses elements, of which the others take `initial`; `dtype` is the type of the result.
    """
    dtype = a.dtype if dtype is None else dtype
    axes = tuple(range(a.ndim)) if axis is None else axis
    if where is not True:
        a = ops.where(where, a, ops.zeros_like(a) + initial)
    found = reduce_fn(a, axes, keepdims)
    if cmp_fn is not None and initial is not None:
        found = cmp_fn(found, ops.zeros_like(found) + initial)
    return found.astype(dtype)


def _sequence(value: Any, dtype: Any) -> Any:
    return ops.stack([v if isinstance(v, Tensor) else Tensor(v) for v in value]).astype(dtype)


NAMES: dict[str, Any] = {
    "_broadcast": lambda shape, x: ops.broadcast_to(x, tuple(shape)),
    "_scalar_to_tensor": lambda input_x: Tensor(input_x),
    "_tensor_getitem": operator.getitem,
    "_tensor_getitem_origin": operator.getitem,
    "_tensor_setitem": setitem,
    "_tensor_setitem_origin": _setitem_origin,
    "reduce_": _reduced,
    "reshape_with_check": lambda x, new_shape: ops.reshape(x, tuple(new_shape)),
    "sequence_to_tensor": _sequence,
    "strided_slice": lambda data, begin, end, strides, *masks: ops.StridedSlice(*masks)(data, begin, end, strides),
    "tensor_in_sequence": lambda x, y: any(v is x or (isinstance(v, Tensor) and bool((v == x).all())) for v in y),
    "tensor_item": lambda data, *index: data.item(*index),
}
