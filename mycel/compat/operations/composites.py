"""MindSpore's operations on lists and dicts while a function is compiled, which here are plain
Python, and the derivatives behind `GradOperation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.foundation.log import logger
from mycel._src.staging.compiled.vmap import vmap
from mycel._src.staging.derivatives import grad, value_and_grad
from mycel.compat.operations.multitype import setitem

__all__ = ["NAMES"]

_said: set[str] = set()


def _core(fn: Callable[..., Any] | None = None, **flags: Any) -> Any:
    """Return a function unchanged; flags of its compilation have no effect here."""
    if flags and "core" not in _said:
        _said.add("core")
        logger.info("core: flags of compilation (%s) have no effect here", ", ".join(flags))
    return fn if fn is not None else (lambda decorated: decorated)


class _Grad:
    """The derivative of a function, as `GradOperation` has it, or by positions of operands.

    `get_all`, `get_by_list` and `sens_param` are those of `GradOperation`; with `get_by_position`
    the call names operands and parameters. `has_aux` says that the function has results besides the
    first that are passed on, `get_value` asks for its value too, and `return_ids` names each
    gradient; `merge_forward` has no effect.
    """

    def __init__(
        self,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
        get_by_position: bool = False,
        has_aux: bool = False,
        get_value: bool = False,
        return_ids: bool = False,
        merge_forward: bool = False,
    ) -> None:
        self.get_by_position, self.has_aux, self.get_value = get_by_position, has_aux, get_value
        self.return_ids = return_ids
        self.plain = ops.GradOperation(get_all, get_by_list, sens_param)

    def __call__(self, fn: Callable[..., Any], weights: Any = None, grad_position: Any = 0) -> Callable[..., Any]:
        if not self.get_by_position:
            return self.plain(fn) if weights is None else self.plain(fn, weights)
        make = value_and_grad if self.get_value else grad
        return make(fn, grad_position, weights, self.has_aux, self.return_ids)


class _Vmap:
    """The transformation of a function to one of batches, as an object."""

    def __call__(self, fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
        return vmap(fn, in_axes, out_axes)


def _appended(sequence: list[Any], value: Any) -> list[Any]:
    sequence.append(value)
    return sequence


def _extended(sequence: list[Any], values: Any) -> list[Any]:
    sequence.extend(values)
    return sequence


def _inserted(sequence: list[Any], index: int, value: Any) -> list[Any]:
    sequence.insert(index, value)
    return sequence


def _popped(sequence: list[Any], index: int = -1) -> Any:
    value = sequence.pop(index)
    return sequence, value


def _reversed(sequence: list[Any]) -> list[Any]:
    sequence.reverse()
    return sequence


def _cleared(values: Any) -> Any:
    values.clear()
    return values


def _updated(values: dict[Any, Any], others: Any) -> dict[Any, Any]:
    values.update(others)
    return values


def _object(work: Callable[..., Any]) -> type:
    """Return a class whose objects have a name and do some work when they are called."""

    def start(self: Any, name: str = "") -> None:
        self.name = name

    return type("Operation", (), {"__init__": start, "__call__": lambda self, *given: work(*given)})


_CLASSES: dict[str, Callable[..., Any]] = {
    "_DictClear": _cleared,
    "_DictFromKeys": lambda keys, value=None: dict.fromkeys(keys, value),
    "_DictHasKey": lambda values, key: key in values,
    "_DictSetItem": setitem,
    "_DictUpdate": _updated,
    "_ListAppend": _appended,
    "_ListClear": _cleared,
    "_ListExtend": _extended,
    "_ListInsert": _inserted,
    "_ListPop": _popped,
    "_ListReverse": _reversed,
    "_Tail": lambda sequence: sequence[1:],
    "_ZipOperation": lambda *sequences: tuple(zip(*sequences)),
}
NAMES: dict[str, Any] = {
    **{name: _object(work) for name, work in _CLASSES.items()},
    "_Grad": _Grad,
    "_Vmap": _Vmap,
    "_append": _appended,
    "_dict_clear": _cleared,
    "_extend": _extended,
    "_fromkeys": lambda keys, value=None: dict.fromkeys(keys, value),
    "_haskey": lambda values, key: key in values,
    "_insert": _inserted,
    "_list_clear": _cleared,
    "_pop": _popped,
    "_reverse": _reversed,
    "_update": _updated,
    "core": _core,
    "matmul": ops.matmul,
}
