"""What staging read from Python and may change: checked before compiled code is used again.

Each guard keeps the place that was read and what was found there. Plain data is compared by value, containers and NumPy arrays by their
contents, everything else by identity; what native code may have read of an object is compared by a snapshot of its whole state. Attributes of Cells are
behind `state_epoch`: while it has not moved none of them needs a look, and when it has, they are compared once and the new epoch is remembered.
Containers and arrays that a Cell holds are looked at each time, as they change without the epoch's notice.

A guard is a tuple (target, name, value, content): found again is the very `value`, or with a `content`, something whose contents are equal to it.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import numpy as np

from mycel.engines import buffers
from mycel.errors import CompileError
from mycel.frontend.snapshots import CONTAINERS, PLAIN, PLAIN_SET, frozen, snapshot

__all__ = ["Guards", "frozen", "lookup"]

MISSING: Any = object()
_EMPTY: Any = object()
_UNSEEN_IN_CELLS = frozenset({"_compiled_call", "_param_prefix", "_inputs_declared", "_taken"})
_CALLED = ("_pre_hooks", "_hooks", "_cells", "_cast_to")
_Guard = tuple[Any, str, Any, Any]


class _Flat:
    """The contents of a list, tuple or dict without containers inside: the very items that it held, and what they are compared by otherwise."""

    __slots__ = ("kind", "keys", "items", "content")

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        self.keys = tuple(value) if isinstance(value, dict) else None
        self.items = tuple(value.values()) if isinstance(value, dict) else tuple(value)
        self.content = frozen(value)

    def holds(self, now: Any) -> bool:
        """Whether a value holds the very same items."""
        if type(now) is not self.kind or len(now) != len(self.items):
            return False
        if self.keys is None:
            return all(map(operator.is_, now, self.items))
        return all(map(operator.is_, now, self.keys)) and all(map(operator.is_, now.values(), self.items))


def _content(value: Any) -> Any:
    """What to compare the contents of a value by; None where finding the same object again means finding the same value."""
    kind = type(value)
    if kind in PLAIN_SET or not isinstance(value, (tuple, *CONTAINERS)):
        return None
    if isinstance(value, tuple):
        return None if all(_content(v) is None for v in value) else frozen(value)
    if isinstance(value, (list, dict)):
        if not value:
            return _EMPTY
        if all(_content(v) is None for v in (value.values() if isinstance(value, dict) else value)):
            return _Flat(value)
    return frozen(value)


def _differs(now: Any, value: Any, content: Any) -> bool:
    """Whether what is found now is not what a guard expects."""
    if now is value and content is None:
        return False
    if now is MISSING or value is MISSING:
        return now is not value
    if content is _EMPTY:
        return type(now) is not type(value) or len(now) != 0
    if type(content) is _Flat:
        if content.holds(now):
            return False
        content = content.content
    return bool(frozen(now) != (frozen(value) if content is None else content))


class Guards:
    """The guards of one compiled version."""

    def __init__(self) -> None:
        self._items: dict[Any, _Guard] = {}
        self._attributes: dict[Any, _Guard] = {}
        self._unset: dict[Any, tuple[Any, str]] = {}
        self._kinds: dict[int, tuple[Any, type]] = {}
        self._types: dict[Any, tuple[type, str, Any]] = {}
        self._cells: dict[Any, _Guard] = {}
        self._natives: dict[int, tuple[Any, type, int, list[_Guard]]] = {}
        self._visited: dict[int, tuple[Any, type]] = {}
        self._values: dict[int, tuple[Any, bytes]] = {}
        self._contents: dict[int, tuple[Any, Any]] = {}
        self._states: dict[int, tuple[Any, Any]] = {}
        self._by_identity: list[_Guard] = []
        self._by_content: list[_Guard] = []
        self._of_types: list[tuple[type, str, Any]] = []
        self._of_types_raw: list[tuple[type, str, Any]] = []
        self._epoch = -1

    # Recording.

    def item(self, mapping: dict[str, Any], name: str, value: Any) -> None:
        """An entry of a namespace (MISSING: its absence)."""
        key = (id(mapping), name)
        if key not in self._items:
            self._items[key] = (mapping, name, value, _content(value))

    def attribute(self, target: Any, name: str, value: Any) -> None:
        """An attribute of an object (MISSING: its absence)."""
        key = (id(target), name)
        if key not in self._attributes:
            self._attributes[key] = (target, name, value, _content(value))

    def has_attribute(self, target: Any, name: str) -> bool:
        """Whether an attribute is guarded by itself."""
        return (id(target), name) in self._attributes

    def of_type(self, kind: type, name: str, value: Any) -> None:
        """What a class says about a name, such as a method (MISSING: nothing)."""
        self._types.setdefault((kind, name), (kind, name, value))

    def kind(self, target: Any) -> None:
        """The class of an object."""
        if _is_cell(target):
            self.cell(target)
        else:
            self._kinds.setdefault(id(target), (target, type(target)))

    def unset(self, target: Any, name: str) -> None:
        """That an object has no attribute of its own in place of its class's."""
        if isinstance(getattr(target, "__dict__", None), dict):
            if _is_cell(target):
                self._cells.setdefault((id(target), name), (target, name, MISSING, None))
            else:
                self._unset.setdefault((id(target), name), (target, name))

    def cell_attribute(self, cell: Any, name: str, value: Any) -> None:
        """An attribute of a Cell."""
        if _content(value) is not None:
            self.attribute(cell, name, value)
            return
        self.cell(cell)
        self._cells.setdefault((id(cell), name), (cell, name, value, None))

    def cell(self, cell: Any) -> None:
        """A Cell that was called or walked: its hooks, its cast and its children."""
        if id(cell) not in self._visited:
            self._visited[id(cell)] = (cell, type(cell))
            own = cell.__dict__
            for name in _CALLED:
                value = own.get(name)
                self._cells[(id(cell), name)] = (cell, name, value, _content(value))

    def native_cell(self, cell: Any) -> None:
        """A Cell of the library, which reads its attributes itself."""
        if id(cell) not in self._natives:
            own = cell.__dict__
            seen = [(cell, n, v, _content(v)) for n, v in own.items() if n not in _UNSEEN_IN_CELLS]
            self._natives[id(cell)] = (cell, type(cell), len(own), seen)
            for _, name, value, content in seen:
                if content is not None and not name.startswith("_") and type(value) is not tuple:
                    self.attribute(cell, name, value)

    def value(self, tensor: Any, array: np.ndarray[Any, Any]) -> None:
        """The contents of a tensor."""
        self._values.setdefault(id(tensor), (tensor, array.tobytes()))

    def content(self, container: Any) -> None:
        """The contents of a container, wherever it was found."""
        if id(container) not in self._contents:
            self._contents[id(container)] = (container, _content(container))

    def state(self, value: Any) -> None:
        """The whole state of an object, with everything that can be reached from it."""
        if id(value) not in self._states:
            self._states[id(value)] = (value, snapshot(value))

    def reads_any(self, captures: Any) -> bool:
        """Whether the contents of one of some captured tensors are guarded."""
        return bool(self._values) and any(id(c.tensor) in self._values for c in captures)

    def close(self) -> None:
        """End recording: from here on the present epoch is the one that is known to hold."""
        self._epoch = _epoch().value
        self._by_identity = [g for g in self._items.values() if g[3] is None]
        self._by_content = [g for g in self._items.values() if g[3] is not None]
        # What a class gives as it is stored; `getattr` finds that in the interpreter's own cache.
        self._of_types = [g for g in self._types.values() if getattr(g[0], g[1], MISSING) is g[2]]
        known = {id(g) for g in self._of_types}
        self._of_types_raw = [g for g in self._types.values() if id(g) not in known]

    # Checking.

    def hold(self) -> bool:
        """Whether everything that was read is as it was."""
        for mapping, name, value, _ in self._by_identity:
            if mapping.get(name, MISSING) is not value and _differs(mapping.get(name, MISSING), value, None):
                return False
        for mapping, name, value, content in self._by_content:
            if _differs(mapping.get(name, MISSING), value, content):
                return False
        for target, name, value, content in self._attributes.values():
            now = getattr(target, name, MISSING)
            if (now is not value or content is not None) and _differs(now, value, content):
                return False
        for kind, name, value in self._of_types:
            if getattr(kind, name, MISSING) is not value:
                return False
        for kind, name, value in self._of_types_raw:
            if lookup(kind, name) is not value:
                return False
        for target, name in self._unset.values():
            if name in target.__dict__:
                return False
        for target, kind in self._kinds.values():
            if type(target) is not kind:
                return False
        for tensor, data in self._values.values():
            tensor._settle()
            if tensor._buf is None or buffers.to_array(tensor._buf, tensor._type).tobytes() != data:
                return False
        for container, content in self._contents.values():
            if _differs(container, container, content):
                return False
        for target, state in self._states.values():
            if not _is_state(target, state):
                return False
        epoch = _epoch().value
        return epoch == self._epoch or self._cells_hold(epoch)

    def _cells_hold(self, epoch: int) -> bool:
        for cell, kind in self._visited.values():
            if type(cell) is not kind:
                return False
        for cell, name, value, content in self._cells.values():
            now = cell.__dict__.get(name, MISSING)
            if now is value and (content is None or content is _EMPTY and not now):
                continue
            if now is MISSING and value is not MISSING:
                now = getattr(cell, name, MISSING)
            if _differs(now, value, content):
                return False
        for cell, kind, count, seen in self._natives.values():
            own = cell.__dict__
            if type(cell) is not kind or len(own) != count:
                return False
            for _, name, value, content in seen:
                now = own.get(name, MISSING)
                if now is value and (content is None or content is _EMPTY and not now):
                    continue
                if _differs(now, value, content):
                    return False
        self._epoch = epoch
        return True

    def describe(self) -> list[str]:
        """One line for each guard."""
        lines = [f"{_module(m)}{name} is {_show(v)}" for m, name, v, _ in self._items.values()]
        lines += [f"{_title(t)}.{name} is {_show(v)}" for t, name, v, _ in self._attributes.values()]
        lines += [f"{k.__qualname__}.{name} is {_show(v)}" for k, name, v in self._types.values()]
        lines += [
            f"{type(c).__name__}.{name} is {_show(v)}" for c, name, v, _ in self._cells.values() if name not in _CALLED
        ]
        lines += [f"all attributes of a {type(c).__name__}" for c, _, _, _ in self._natives.values()]
        lines += [f"the contents of a tensor {t._type}" for t, _ in self._values.values()]
        lines += [f"the contents of a {type(c).__name__}" for c, _ in self._contents.values()]
        lines += [f"everything in a {type(v).__name__}" for v, _ in self._states.values()]
        return lines


def _is_state(target: Any, state: Any) -> bool:
    try:
        return bool(snapshot(target) == state)
    except CompileError:
        return False


def _title(target: Any) -> str:
    return getattr(target, "__qualname__", None) or type(target).__name__


def _module(mapping: dict[str, Any]) -> str:
    name = mapping.get("__name__")
    return f"{name}." if isinstance(name, str) else ""


def _show(value: Any) -> str:
    if value is MISSING:
        return "not there"
    if isinstance(value, (types.FunctionType, type, types.ModuleType)):
        return getattr(value, "__qualname__", value.__name__)
    text = repr(value) if isinstance(value, (*PLAIN, tuple, list, dict)) else f"this {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def lookup(kind: type, name: str) -> Any:
    """What the classes of a type say about a name, without calling any descriptor."""
    for base in kind.__mro__:
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def _is_cell(value: Any) -> bool:
    from mycel.cell import Cell

    return isinstance(value, Cell)


def _epoch() -> Any:
    from mycel.cell import state_epoch

    return state_epoch
