"""Guards: values that staging read from Python's objects, compared before compiled code runs again.

Each guard has the place that was read and the value that was found there. Plain data is compared by
value, containers and NumPy arrays by their contents, everything else by identity; objects that
native code may have read are compared by a snapshot of their whole state. Attributes of Cells are
guarded by `state_epoch`: while it has not changed none of them is compared, and when it has, they
are compared once and the new epoch is remembered. Containers and arrays in a Cell are compared each
time, as their changes do not change the epoch.

While a function is staged a guard is a tuple (target, name, value, content). It holds if the same
object `value` is found again, or if there is a `content`, a value with equal contents. `close`
turns these tuples into tables that keep no object of the program alive: they have weak references,
and a guard of an object that is gone does not hold. Objects without weak references are found
through others: a container through the attribute that it was read from, a variable of a closure
through its function.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.engines import buffers
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.specialization.snapshots import CONTAINERS, PLAIN, PLAIN_SET, frozen, reach, snapshot
from mycel._src.tensors.cells.cell import Cell, state_epoch

__all__ = ["Guards", "frozen", "lookup"]

MISSING: Any = object()
_UNSEEN_IN_CELLS = frozenset(
    {"_compiled_call", "_param_prefix", "_inputs_declared", "_parameters_known", "_recorded_call", "_taken"}
)
_CALLED = ("_pre_hooks", "_hooks", "_cells", "_cast_to", "_strategy", "_pipeline_stage", "_pipeline_segment")
_OF_BUILTINS = frozenset((types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType))
_Guard = tuple[Any, str, Any, Any]
_Reach = Callable[[], Any]


class _Empty:
    """The contents of an empty container."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def differs(self, now: Any) -> bool:
        return type(now) is not self.kind or bool(now)


class _Frozen:
    """The contents of a value in the form of `frozen`."""

    __slots__ = ("content",)

    def __init__(self, value: Any) -> None:
        self.content = frozen(value)

    def differs(self, now: Any) -> bool:
        return now is MISSING or bool(frozen(now) != self.content)


class _Flat:
    """The contents of a list, tuple or dict without containers inside: its items by identity, and
    the form that is compared if they are not identical.
    """

    __slots__ = ("kind", "keys", "items", "content")

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        self.keys = tuple(value) if isinstance(value, dict) else None
        self.items = tuple([reach(v) for v in (value.values() if isinstance(value, dict) else value)])
        self.content = frozen(value)

    def differs(self, now: Any) -> bool:
        return not self.holds(now) and (now is MISSING or bool(frozen(now) != self.content))

    def holds(self, now: Any) -> bool:
        """Return whether a value holds the identical items."""
        if type(now) is not self.kind or len(now) != len(self.items):
            return False
        items = now if self.keys is None else now.values()
        if any(v is not get() or v is None for v, get in zip(items, self.items)):
            return False
        return self.keys is None or all(k is known for k, known in zip(now, self.keys))


def _content(value: Any) -> Any:
    """Return the form in which the contents of a value are compared.

    Returns None for an object that has the same value as long as it is the same object.
    """
    kind = type(value)
    if kind in PLAIN_SET or not isinstance(value, (tuple, *CONTAINERS)):
        return None
    if isinstance(value, tuple):
        return None if all(_content(v) is None for v in value) else _Frozen(value)
    if isinstance(value, (list, dict)):
        if not value:
            return _Empty(kind)
        if all(_content(v) is None for v in (value.values() if isinstance(value, dict) else value)):
            return _Flat(value) if not isinstance(value, dict) or all(type(k) is str for k in value) else _Frozen(value)
    return _Frozen(value)


class _Expected(NamedTuple):
    """The expectation of a guard: a `value`, a value by weak reference (`get`), or a `content`."""

    value: Any
    get: _Reach | None
    content: Any

    def differs(self, now: Any) -> bool:
        """Return whether `now`, the value that is found now, is another one."""
        if self.content is not None:
            return bool(self.content.differs(now))
        if self.get is not None:
            return now is None or now is not self.get()
        if now is self.value:
            return False
        return now is MISSING or self.value is MISSING or bool(frozen(now) != frozen(self.value))

    def now(self) -> Any:
        """Return the expected value, for a message; MISSING if only its contents are known."""
        return self.value if self.get is None else self.get()


def _expect(value: Any, content: Any = None) -> _Expected:
    if content is None and isinstance(value, (tuple, types.MethodType)):
        content = _Frozen(value)
    if content is not None:
        return _Expected(None, None, content)
    if value is MISSING or type(value) in PLAIN_SET or type(value) is types.ModuleType:
        return _Expected(value, None, None)
    get = reach(value)
    return _Expected(None, get, None) if isinstance(get, weakref.ref) else _Expected(value, None, None)


class _Variable:
    """The way to a variable of a closure, through the function that has it."""

    __slots__ = ("function", "index")

    def __init__(self, function: Any, index: int) -> None:
        self.function, self.index = reach(function), index

    def __call__(self) -> Any:
        function = self.function()
        return None if function is None else function.__closure__[self.index]


class _Placed:
    """The way to a container, through the attribute or the entry of a namespace that holds it."""

    __slots__ = ("target", "name", "is_entry")

    def __init__(self, target: _Reach, name: str, is_entry: bool) -> None:
        self.target, self.name, self.is_entry = target, name, is_entry

    def __call__(self) -> Any:
        target = self.target()
        if target is None:
            return None
        return target.get(self.name) if self.is_entry else getattr(target, self.name, None)


def _members(value: Any) -> tuple[Any, ...]:
    """Return the functions of a descriptor, such as a property.

    They identify it, as they have weak references and it has not.
    """
    if type(value) is property:
        return (value.fget, value.fset, value.fdel)
    if type(value) in (types.MemberDescriptorType, types.GetSetDescriptorType):
        return (value.__objclass__, value.__name__)
    return (value.__func__,) if isinstance(value, (staticmethod, classmethod)) else ()


class _Descriptor:
    """A property, a slot, a static or class method in a class."""

    __slots__ = ("kind", "members")

    def __init__(self, value: Any) -> None:
        self.kind, self.members = type(value), tuple([_expect(m) for m in _members(value)])

    def differs(self, now: Any) -> bool:
        return type(now) is not self.kind or any(e.differs(m) for e, m in zip(self.members, _members(now)))


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
        self._functions: dict[int, tuple[Any, int]] = {}
        self._places: dict[int, tuple[Any, str, bool]] = {}
        self._covered: set[int] = set()
        self._kept: list[Any] = []
        self._closed = _Tables()

    # Recording.

    def item(self, mapping: dict[str, Any], name: str, value: Any) -> None:
        """Guard an entry of a namespace; a `value` of MISSING guards its absence."""
        key = (id(mapping), name)
        if key not in self._items:
            self._items[key] = (mapping, name, value, self._content_at(value, mapping, name, True))

    def attribute(self, target: Any, name: str, value: Any) -> None:
        """Guard an attribute of an object; a `value` of MISSING guards its absence."""
        key = (id(target), name)
        if key not in self._attributes:
            self._attributes[key] = (target, name, value, self._content_at(value, target, name))

    def _content_at(self, value: Any, target: Any, name: str, is_entry: bool = False) -> Any:
        """Return the contents of a value, and remember the place where it can be found again."""
        content = _content(value)
        if content is not None and id(value) not in self._places:
            self._kept.append(value)
            self._places[id(value)] = target, name, is_entry
            self._cover(value)
        return content

    def _cover(self, value: Any) -> None:
        """Note that the contents of a container and of the containers in it are compared."""
        if id(value) in self._covered or not isinstance(value, (tuple, *CONTAINERS)):
            return
        self._covered.add(id(value))
        if isinstance(value, (list, tuple, dict)):
            for v in value.values() if isinstance(value, dict) else value:
                self._cover(v)

    def has_attribute(self, target: Any, name: str) -> bool:
        """Return whether an attribute has a guard of its own."""
        return (id(target), name) in self._attributes

    def of_type(self, kind: type, name: str, value: Any) -> None:
        """Guard the entry for a name in a class and its bases, such as a method; MISSING guards its
        absence.
        """
        self._types.setdefault((kind, name), (kind, name, value))

    def kind(self, target: Any) -> None:
        """Guard the class of an object."""
        if _is_cell(target):
            self.cell(target)
        else:
            self._kinds.setdefault(id(target), (target, type(target)))

    def unset(self, target: Any, name: str) -> None:
        """Guard that an object has no attribute of its own that would hide its class's."""
        if isinstance(getattr(target, "__dict__", None), dict):
            if _is_cell(target):
                self._cells.setdefault((id(target), name), (target, name, MISSING, None))
            else:
                self._unset.setdefault((id(target), name), (target, name))

    def cell_attribute(self, cell: Any, name: str, value: Any) -> None:
        """Guard an attribute of a Cell."""
        if _content(value) is not None:
            self.attribute(cell, name, value)
            return
        self.cell(cell)
        self._cells.setdefault((id(cell), name), (cell, name, value, None))

    def cell(self, cell: Any) -> None:
        """Guard the hooks, cast, division and children of a Cell that was called or walked."""
        if id(cell) not in self._visited:
            self._visited[id(cell)] = (cell, type(cell))
            own = cell.__dict__
            for name in _CALLED:
                value = own.get(name)
                self._cells[(id(cell), name)] = (cell, name, value, _content(value))

    def native_cell(self, cell: Any) -> None:
        """Guard all attributes of a Cell of the library, whose code runs natively."""
        if id(cell) not in self._natives:
            own = cell.__dict__
            seen = [(cell, n, v, _content(v)) for n, v in own.items() if n not in _UNSEEN_IN_CELLS]
            self._natives[id(cell)] = (cell, type(cell), len(own), seen)
            for _, name, value, content in seen:
                if content is not None and not name.startswith("_") and type(value) is not tuple:
                    self.attribute(cell, name, value)

    def value(self, tensor: Any, array: np.ndarray[Any, Any]) -> None:
        """Guard the contents of a tensor."""
        self._values.setdefault(id(tensor), (tensor, array.tobytes()))

    def content(self, container: Any) -> None:
        """Guard the contents of a container, wherever it was found."""
        if id(container) not in self._contents and id(container) not in self._covered:
            self._contents[id(container)] = (container, _content(container))

    def closure(self, function: Any) -> None:
        """Note a function through which the variables of its closure can be found."""
        for i, cell in enumerate(function.__closure__ or ()):
            self._functions.setdefault(id(cell), (function, i))

    def knows(self, value: Any) -> bool:
        """Return whether these guards hold only as long as an object exists."""
        number = id(value)
        if number in self._visited or number in self._natives or number in self._kinds or number in self._states:
            return True
        tables: list[Any] = [self._items, self._attributes, self._cells]
        return any(g[0] is value or g[2] is value for table in tables for g in table.values())

    def way_to(self, target: Any) -> _Reach:
        """Return a function that gives an object from outside without keeping it alive.

        The function returns None once the object is gone.
        """
        found = self._functions.get(id(target))
        if found is not None:
            return _Variable(*found)
        get = reach(target)
        place = self._places.get(id(target))
        if place is None or isinstance(get, weakref.ref):
            return get
        owner, name, is_entry = place
        return _Placed((lambda: owner) if is_entry else self.way_to(owner), name, is_entry)

    def state(self, value: Any) -> None:
        """Guard the whole state of an object, with everything that can be reached from it."""
        if id(value) not in self._states:
            self._states[id(value)] = (value, snapshot(value))

    def close(self) -> None:
        """End recording: from here on the guards hold for the present epoch, and they keep no
        object alive.
        """
        tables = self._closed
        tables.epoch = _epoch().value
        for mapping, name, value, content in self._items.values():
            tables.item(mapping, name, _expect(value, content))
        for target, name, value, content in self._attributes.values():
            tables.attributes.append((self.way_to(target), name, _expect(value, content)))
        for kind, name, value in self._types.values():
            tables.of_type(kind, name, value)
        tables.unset = [(self.way_to(target), name) for target, name in self._unset.values()]
        tables.kinds = [(self.way_to(target), reach(kind)) for target, kind in self._kinds.values()]
        tables.values = [(reach(tensor), data) for tensor, data in self._values.values()]
        for container, content in self._contents.values():
            tables.contents.append((self.way_to(container), _expect(container, content)))
        tables.states = [(self.way_to(target), state) for target, state in self._states.values()]
        tables.visited = [(reach(cell), reach(kind)) for cell, kind in self._visited.values()]
        for cell, name, value, content in self._cells.values():
            tables.cells.append((reach(cell), name, _expect(value, content)))
        for cell, kind, count, seen in self._natives.values():
            expected = [(name, _expect(value, content)) for _, name, value, content in seen]
            tables.natives.append((reach(cell), reach(kind), count, expected))
        self.__init__()  # type: ignore[misc]
        self._closed = tables

    def hold(self) -> bool:
        """Return whether everything that was read is unchanged."""
        return self._closed.hold()

    def is_over(self) -> bool:
        """Return whether an object that was read is gone, so that the guards never hold again."""
        return self._closed.is_over()

    def reads_any(self, captures: Any) -> bool:
        """Return whether the contents of one of these captured tensors are guarded."""
        return any(get() is c.tensor for get, _ in self._closed.values for c in captures)

    def describe(self) -> list[str]:
        """Return one line for each guard."""
        return self._closed.describe()


class _Tables:
    """The guards of a version in the form of tables, after `close`."""

    def __init__(self) -> None:
        self.named: list[tuple[dict[str, Any], str, Any]] = []
        self.named_weakly: list[tuple[dict[str, Any], str, _Reach]] = []
        self.named_otherwise: list[tuple[dict[str, Any], str, _Expected]] = []
        self.attributes: list[tuple[_Reach, str, _Expected]] = []
        self.types: list[tuple[_Reach, str, _Reach]] = []
        self.types_fixed: list[tuple[_Reach, str, Any]] = []
        self.types_raw: list[tuple[_Reach, str, Any]] = []
        self.unset: list[tuple[_Reach, str]] = []
        self.kinds: list[tuple[_Reach, _Reach]] = []
        self.values: list[tuple[_Reach, bytes]] = []
        self.contents: list[tuple[_Reach, _Expected]] = []
        self.states: list[tuple[_Reach, Any]] = []
        self.visited: list[tuple[_Reach, _Reach]] = []
        self.cells: list[tuple[_Reach, str, _Expected]] = []
        self.natives: list[tuple[_Reach, _Reach, int, list[tuple[str, _Expected]]]] = []
        self.epoch = -1

    def item(self, mapping: dict[str, Any], name: str, expected: _Expected) -> None:
        if expected.content is not None:
            self.named_otherwise.append((mapping, name, expected))
        elif expected.get is not None:
            self.named_weakly.append((mapping, name, expected.get))
        else:
            self.named.append((mapping, name, expected.value))

    def of_type(self, kind: type, name: str, value: Any) -> None:
        # A plain entry of a class: `getattr` finds it in the cache of Python's interpreter.
        get = reach(value)
        if getattr(kind, name, MISSING) is not value:
            self.types_raw.append((reach(kind), name, _Descriptor(value) if _members(value) else _expect(value)))
        elif isinstance(get, weakref.ref):
            self.types.append((reach(kind), name, get))
        elif value is MISSING or type(value) in _OF_BUILTINS:
            self.types_fixed.append((reach(kind), name, value))
        else:
            self.types_raw.append((reach(kind), name, _Descriptor(value) if _members(value) else _expect(value)))

    def hold(self) -> bool:
        for mapping, name, value in self.named:
            now = mapping.get(name, MISSING)
            if now is not value and _Expected(value, None, None).differs(now):
                return False
        for mapping, name, get in self.named_weakly:
            now = mapping.get(name)
            if now is None or now is not get():
                return False
        for mapping, name, expected in self.named_otherwise:
            if expected.differs(mapping.get(name, MISSING)):
                return False
        for get, name, expected in self.attributes:
            target = get()
            if target is None or expected.differs(getattr(target, name, MISSING)):
                return False
        for get, name, value in self.types:
            now = getattr(get(), name, None)
            if now is None or now is not value():
                return False
        for get, name, value in self.types_fixed:
            kind = get()
            if kind is None or getattr(kind, name, MISSING) is not value:
                return False
        for get, name, expected in self.types_raw:
            kind = get()
            if kind is None or expected.differs(lookup(kind, name)):
                return False
        for get, name in self.unset:
            target = get()
            if target is None or name in target.__dict__:
                return False
        for get, kind in self.kinds:
            target = get()
            if target is None or type(target) is not kind():
                return False
        for get, data in self.values:
            tensor = get()
            if tensor is None:
                return False
            tensor._settle()
            if tensor._buf is None or buffers.to_array(tensor._buf, tensor._type).tobytes() != data:
                return False
        for get, expected in self.contents:
            container = get()
            if container is None or expected.differs(container):
                return False
        for get, state in self.states:
            target = get()
            if target is None or not _is_state(target, state):
                return False
        epoch = _epoch().value
        return epoch == self.epoch or self._cells_hold(epoch)

    def _cells_hold(self, epoch: int) -> bool:
        for get, kind in self.visited:
            cell = get()
            if cell is None or type(cell) is not kind():
                return False
        for get, name, expected in self.cells:
            cell = get()
            if cell is None:
                return False
            now = cell.__dict__.get(name, MISSING)
            if now is MISSING and expected.value is not MISSING:
                now = getattr(cell, name, MISSING)
            if expected.differs(now):
                return False
        for get, kind, count, seen in self.natives:
            cell = get()
            if cell is None or type(cell) is not kind() or len(cell.__dict__) != count:
                return False
            own = cell.__dict__
            if any(expected.differs(own.get(name, MISSING)) for name, expected in seen):
                return False
        self.epoch = epoch
        return True

    def is_over(self) -> bool:
        tables: tuple[Any, ...] = (
            self.attributes,
            self.types,
            self.types_fixed,
            self.types_raw,
            self.unset,
            self.kinds,
            self.values,
            self.contents,
            self.states,
            self.visited,
            self.cells,
            self.natives,
        )
        if any(guard[0]() is None for table in tables for guard in table):
            return True
        return any(get() is None for _, _, get in self.named_weakly)

    def describe(self) -> list[str]:
        """Return one line for each guard."""
        named = [(m, n, v) for m, n, v in self.named]
        named += [(m, n, get()) for m, n, get in self.named_weakly]
        named += [(m, n, m.get(n, MISSING)) for m, n, _ in self.named_otherwise]
        lines = [f"{_module(m)}{name} is {_show(v)}" for m, name, v in named]
        lines += [f"{_title(t())}.{name} is {_show(e.now())}" for t, name, e in self.attributes if e.content is None]
        lines += [
            f"{_title(t())}.{name} is {_show(getattr(t(), name, MISSING))}"
            for t, name, e in self.attributes
            if e.content is not None
        ]
        kinds = [(k(), name) for table in (self.types, self.types_fixed, self.types_raw) for k, name, _ in table]
        lines += [f"{_title(k)}.{name} is {_show(lookup(k, name))}" for k, name in kinds if k is not None]
        for get, name, expected in self.cells:
            if name not in _CALLED:
                value = expected.now() if expected.content is None else getattr(get(), name, MISSING)
                lines.append(f"{type(get()).__name__}.{name} is {_show(value)}")
        lines += [f"all attributes of a {type(get()).__name__}" for get, _, _, _ in self.natives]
        lines += [f"the contents of a tensor {get()._type}" for get, _ in self.values if get() is not None]
        lines += [f"the contents of a {type(get()).__name__}" for get, _ in self.contents]
        lines += [f"everything in a {type(get()).__name__}" for get, _ in self.states]
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
    """Return the entry for a name in a class and its bases, without calling a descriptor."""
    for base in kind.__mro__:
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def _is_cell(value: Any) -> bool:
    return isinstance(value, Cell)


def _epoch() -> Any:
    return state_epoch
