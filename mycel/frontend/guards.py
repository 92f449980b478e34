"""What staging read from Python and may change: checked before compiled code is used again.

Each guard keeps the place that was read and what was found there. Plain data is compared by value, containers and NumPy arrays by their
contents, everything else by identity. Attributes of Cells are behind `state_epoch`: while it has not moved none of them needs a
look, and when it has, they are compared once and the new epoch is remembered. Containers and arrays that a Cell holds are looked at each time,
as they change without the epoch's notice.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from mycel.engines import buffers

__all__ = ["Guards", "frozen"]

MISSING: Any = object()
_UNSET: Any = object()
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))
_PLAIN_SET = frozenset(_PLAIN)
_CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict, np.ndarray)
_UNSEEN_IN_CELLS = frozenset({"_compiled_call", "_param_prefix", "_inputs_declared"})


class _Same:
    """An object compared by identity, kept alive so that its identity stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def frozen(value: Any, depth: int = 0) -> Any:
    """What a value is compared by."""
    kind = type(value)
    if kind in _PLAIN_SET:
        return (kind, value.hex()) if kind is float else (kind, value)
    if depth > 20:
        return _Same(value)
    if kind is tuple or kind is list or kind is deque or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return (kind, tuple([frozen(v, depth + 1) for v in value]))
    if isinstance(value, dict):
        return (kind, tuple([(frozen(k, depth + 1), frozen(v, depth + 1)) for k, v in value.items()]))
    if kind is set or kind is frozenset:
        return (kind, frozenset(frozen(v, depth + 1) for v in value))
    if kind is np.ndarray and value.dtype.kind != "O":
        return (kind, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, types.MethodType):
        return (kind, _Same(value.__func__), _Same(value.__self__))
    return _Same(value)


def _is_immutable(value: Any) -> bool:
    """Whether finding the same object again means finding the same value."""
    return type(value) in _PLAIN_SET or not isinstance(value, (tuple, *_CONTAINERS))


class Guards:
    """The guards of one compiled version."""

    def __init__(self) -> None:
        self._items: dict[Any, tuple[dict[str, Any], str, Any, Any]] = {}
        self._attributes: dict[Any, tuple[Any, str, Any, Any]] = {}
        self._types: dict[Any, tuple[type, str, Any]] = {}
        self._cells: dict[Any, tuple[Any, str, Any, Any]] = {}
        self._natives: dict[int, tuple[Any, Any]] = {}
        self._visited: dict[int, Any] = {}
        self._values: dict[int, tuple[Any, bytes]] = {}
        self._epoch = -1

    # Recording.

    def item(self, mapping: dict[str, Any], name: str, value: Any) -> None:
        """An entry of a namespace (MISSING: its absence)."""
        key = (id(mapping), name)
        if key not in self._items:
            self._items[key] = (mapping, name, value, None if _is_immutable(value) else frozen(value))

    def attribute(self, target: Any, name: str, value: Any) -> None:
        """An attribute of an object."""
        key = (id(target), name)
        if key not in self._attributes:
            self._attributes[key] = (target, name, value, None if _is_immutable(value) else frozen(value))

    def has_attribute(self, target: Any, name: str) -> bool:
        """Whether an attribute is guarded by itself."""
        return (id(target), name) in self._attributes

    def of_type(self, kind: type, name: str, value: Any) -> None:
        """What a class says about a name, such as a method."""
        self._types.setdefault((kind, name), (kind, name, value))

    def unset(self, target: Any, name: str) -> None:
        """That an object has no attribute of its own in place of its class's."""
        own = getattr(target, "__dict__", None)
        if isinstance(own, dict):
            if _is_cell(target):
                self._cells.setdefault((id(target), name), (target, name, MISSING, _UNSET))
            else:
                self.item(own, name, MISSING)

    def cell_attribute(self, cell: Any, name: str, value: Any) -> None:
        """An attribute of a Cell."""
        if type(value) in _CONTAINERS or type(value) is tuple:
            self.attribute(cell, name, value)
            return
        self.cell(cell)
        self._cells.setdefault((id(cell), name), (cell, name, value, None))

    def cell(self, cell: Any) -> None:
        """A Cell that was called or walked: its hooks, its cast and its children."""
        if id(cell) not in self._visited:
            self._visited[id(cell)] = cell
            own = cell.__dict__
            for name in ("_pre_hooks", "_hooks", "_cells", "_cast_to"):
                value = own.get(name)
                self._cells[(id(cell), name)] = (cell, name, MISSING, frozen(value))

    def native_cell(self, cell: Any) -> None:
        """A Cell of the library, which reads its attributes itself."""
        if id(cell) not in self._natives:
            self._natives[id(cell)] = (cell, _snapshot(cell))

    def value(self, tensor: Any, array: np.ndarray[Any, Any]) -> None:
        """The contents of a tensor."""
        self._values.setdefault(id(tensor), (tensor, array.tobytes()))

    def reads_any(self, captures: Any) -> bool:
        """Whether the contents of one of some captured tensors are guarded."""
        return bool(self._values) and any(id(c.tensor) in self._values for c in captures)

    def close(self) -> None:
        """End recording: from here on the present epoch is the one that is known to hold."""
        self._epoch = _epoch().value

    # Checking.

    def hold(self) -> bool:
        """Whether everything that was read is as it was."""
        for mapping, name, value, content in self._items.values():
            now = mapping.get(name, MISSING)
            if (now is not value or content is not None) and not _matches(now, value, content):
                return False
        for target, name, value, content in self._attributes.values():
            now = getattr(target, name, MISSING)
            if (now is not value or content is not None) and not _matches(now, value, content):
                return False
        for kind, name, value in self._types.values():
            if lookup(kind, name) is not value:
                return False
        for tensor, data in self._values.values():
            tensor._settle()
            if tensor._buf is None or buffers.to_array(tensor._buf, tensor._type).tobytes() != data:
                return False
        epoch = _epoch().value
        return epoch == self._epoch or self._cells_hold(epoch)

    def _cells_hold(self, epoch: int) -> bool:
        for cell, name, value, content in self._cells.values():
            now = cell.__dict__.get(name, MISSING)
            if content is _UNSET:
                if now is not MISSING:
                    return False
                continue
            if now is MISSING:
                now = getattr(cell, name, MISSING)
            if value is MISSING or now is not value:
                if not _matches(now, value, content):
                    return False
        for cell, snapshot in self._natives.values():
            if _snapshot(cell) != snapshot:
                return False
        self._epoch = epoch
        return True

    def describe(self) -> list[str]:
        """One line for each guard."""
        lines = [f"{_module(m)}{name} is {_show(v)}" for m, name, v, _ in self._items.values()]
        lines += [f"{type(t).__name__}.{name} is {_show(v)}" for t, name, v, _ in self._attributes.values()]
        lines += [f"{k.__qualname__}.{name} is {_show(v)}" for k, name, v in self._types.values()]
        lines += [
            f"{type(c).__name__}.{name} is {_show(v)}" for c, name, v, _ in self._cells.values() if v is not MISSING
        ]
        lines += [f"all attributes of a {type(c).__name__}" for c, _ in self._natives.values()]
        lines += [f"the contents of a tensor {t._type}" for t, _ in self._values.values()]
        return lines


def _matches(now: Any, value: Any, content: Any) -> bool:
    if now is MISSING:
        return value is MISSING and content is None
    if content is not None:
        return bool(frozen(now) == content)
    return value is not MISSING and bool(frozen(now) == frozen(value))


def _module(mapping: dict[str, Any]) -> str:
    name = mapping.get("__name__")
    return f"{name}." if isinstance(name, str) else ""


def _show(value: Any) -> str:
    if value is MISSING:
        return "not there"
    if isinstance(value, (types.FunctionType, type, types.ModuleType)):
        return getattr(value, "__qualname__", value.__name__)
    text = repr(value) if isinstance(value, (*_PLAIN, tuple, list, dict)) else f"this {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def lookup(kind: type, name: str) -> Any:
    """What the classes of a type say about a name, without calling any descriptor."""
    for base in kind.__mro__:
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def _snapshot(cell: Any) -> Any:
    return tuple([(name, frozen(v)) for name, v in cell.__dict__.items() if name not in _UNSEEN_IN_CELLS])


def _is_cell(value: Any) -> bool:
    from mycel.cell import Cell

    return isinstance(value, Cell)


def _epoch() -> Any:
    from mycel.cell import state_epoch

    return state_epoch
