"""Functions that MindSpore registers for operators, by the types of operands.

A module ``NAME_impl`` has one function for each pair of types; here an operator looks at its
operands itself, so that all of them, and the function graph that chooses among them, are that
operator. Of indexing, ``getitem`` and ``setitem`` of `_compile_utils` belong to the same rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["GRAPHS", "work_of"]

Work = Callable[..., Any]


def setitem(data: Any, index: Any, value: Any) -> Any:
    """Assign to a part of `data` and return it; a tuple gives a new one."""
    if isinstance(data, tuple):
        parts = list(data)
        parts[index] = value
        return tuple(parts)
    data[index] = value
    return data


def like(fill: Callable[[Any], Any], number: int) -> Work:
    """Return a function that replaces the leaves of nested values by zeros or ones."""

    def filled(value: Any) -> Any:
        if isinstance(value, Tensor):
            return fill(value)
        if isinstance(value, (tuple, list)):
            return type(value)(filled(v) for v in value)
        if isinstance(value, dict):
            return {k: filled(v) for k, v in value.items()}
        return type(value)(number) if isinstance(value, (bool, int, float)) else value

    return filled


def _contains(part: Any, whole: Any) -> bool:
    """Return whether a sequence has an element; tensors are compared by identity of value."""
    if isinstance(part, Tensor):
        return any(isinstance(v, Tensor) and v.shape == part.shape and bool((v == part).all()) for v in whole)
    return part in whole


def _and(x: Any, y: Any) -> Any:
    return ops.logical_and(x, y) if isinstance(x, Tensor) and isinstance(y, Tensor) else x and y


def _or(x: Any, y: Any) -> Any:
    return ops.logical_or(x, y) if isinstance(x, Tensor) and isinstance(y, Tensor) else x or y


def _not(x: Any) -> Any:
    return ops.logical_not(x) if isinstance(x, Tensor) else not x


_ones_like, _zeros_like = like(ops.ones_like, 1), like(ops.zeros_like, 0)

# What each module computes, and the names of its function graphs.
_OPERATORS: dict[str, tuple[Work, int]] = {
    "add_impl": (operator.add, 2),
    "bitwise_and_impl": (operator.and_, 2),
    "bitwise_or_impl": (operator.or_, 2),
    "bitwise_xor_impl": (operator.xor, 2),
    "div_impl": (operator.truediv, 2),
    "equal_impl": (operator.eq, 2),
    "floordiv_impl": (operator.floordiv, 2),
    "getitem_impl": (operator.getitem, 2),
    "greater_equal_impl": (operator.ge, 2),
    "greater_impl": (operator.gt, 2),
    "in_impl": (_contains, 2),
    "invert_impl": (operator.invert, 1),
    "left_shift_impl": (operator.lshift, 2),
    "less_equal_impl": (operator.le, 2),
    "less_impl": (operator.lt, 2),
    "logical_and_impl": (_and, 2),
    "logical_not_impl": (_not, 1),
    "logical_or_impl": (_or, 2),
    "mod_impl": (operator.mod, 2),
    "mul_impl": (operator.mul, 2),
    "negative_impl": (operator.neg, 1),
    "not_equal_impl": (operator.ne, 2),
    "not_in_impl": (lambda part, whole: not _contains(part, whole), 2),
    "ones_like_impl": (_ones_like, 1),
    "pow_impl": (operator.pow, 2),
    "right_shift_impl": (operator.rshift, 2),
    "setitem_impl": (setitem, 3),
    "sub_impl": (operator.sub, 2),
    "uadd_impl": (operator.pos, 1),
    "zeros_like_impl": (_zeros_like, 1),
}
GRAPHS = frozenset(
    """
    _add_backward _list_add _tuple_add _list_slice _tuple_get_item_tensor _tuple_slice
    _list_slice_set_item _dict_setitem _ones_like_for_grad _ones_like_leaf_for_grad ones_like_leaf
    zeros_like_leaf
    """.split()
    + ["in_", "not_in_", "pow_"]
    + [module.removesuffix("_impl") for module in _OPERATORS]
)
_TENSOR_OPERATORS: dict[str, Work] = {
    "_tensor_add": operator.add,
    "_tensor_div": operator.truediv,
    "_tensor_floordiv": operator.floordiv,
    "_tensor_matmul": operator.matmul,
    "_tensor_mod": operator.mod,
    "_tensor_mul": operator.mul,
    "_tensor_pow": operator.pow,
    "_tensor_rpow": lambda x, other: other**x,
    "_tensor_sub": operator.sub,
}


def work_of(module: str, name: str, parameters: list[str]) -> Work | None:
    """Return the work of a function or a function graph of a module; None where no rule says.

    >>> work_of("sub_impl", "_tensor_sub_scalar", ["x", "y"])(5, 3)
    2
    """
    if module == "_compile_utils":
        return _TENSOR_OPERATORS.get(name) or _of_indexing(name, len(parameters))
    work, count = _OPERATORS.get(module, (None, 0))
    if name.startswith("_create") or (parameters and len(parameters) != count):
        return None
    return work if parameters or name in GRAPHS else None


def _of_indexing(name: str, count: int) -> Work | None:
    if name.startswith(("_tensor_getitem", "tensor_index_by_", "_tensor_index_by_")) and count == 2:
        return operator.getitem
    if name.startswith(("_tensor_setitem", "tensor_setitem_by_", "tensor_itemset")) and count == 3:
        return setitem
    return None
