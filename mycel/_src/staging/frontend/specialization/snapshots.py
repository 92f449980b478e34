"""Snapshots for comparison: contents of containers, and the reachable state of objects.

`frozen` includes the items of containers and takes everything else by identity (plain data by
value), as further reads of interpreted code have guards of their own. `snapshot` also includes the
attributes of objects, as native code may read them.
"""

from __future__ import annotations

import array
import collections.abc
import enum
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import current_where
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import CompileError
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["CONTAINERS", "IMMUTABLE", "PLAIN_SET", "Same", "frozen", "is_closed", "reach", "snapshot"]

PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))
PLAIN_SET = frozenset(PLAIN)
_BYTES = (bytearray, array.array, memoryview)
_VIEWS = (collections.abc.KeysView, collections.abc.ValuesView, collections.abc.ItemsView)
CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict, np.ndarray, types.MappingProxyType, *_BYTES, *_VIEWS)


def reach(value: Any) -> Callable[[], Any]:
    """Return a function that gives an object without keeping it alive, or None once it is gone.

    An object without weak references is kept alive.
    """
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


class Same:
    """An object compared by identity.

    The object is not kept alive, and once it is gone this is equal to nothing.
    """

    __slots__ = ("number", "get")

    def __init__(self, value: Any) -> None:
        self.number = id(value)
        self.get = reach(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same) or other.number != self.number:
            return False
        mine = self.get()
        return mine is not None and mine is other.get()

    def __hash__(self) -> int:
        return self.number


def frozen(value: Any, depth: int = 0) -> Any:
    """Return the form by which a value is compared."""
    kind = type(value)
    if kind in PLAIN_SET:
        return (kind, value.hex()) if kind is float else (kind, value)
    if depth > 20:
        return Same(value)
    if isinstance(value, (tuple, list, deque, *_VIEWS)):
        return (kind, tuple([frozen(v, depth + 1) for v in value]))
    if isinstance(value, (dict, types.MappingProxyType)):
        return (kind, tuple([(frozen(k, depth + 1), frozen(v, depth + 1)) for k, v in value.items()]))
    if isinstance(value, (set, frozenset)):
        return (kind, frozenset([frozen(v, depth + 1) for v in value]))
    if isinstance(value, np.ndarray):
        objects = value.dtype.kind == "O"
        content = tuple([frozen(v, depth + 1) for v in value.ravel()]) if objects else value.tobytes()
        return (kind, value.dtype.str, value.shape, content)
    if isinstance(value, _BYTES):
        return (kind, bytes(value))
    if isinstance(value, types.MethodType):
        return (kind, Same(value.__func__), Same(value.__self__))
    return Same(value)


IMMUTABLE = frozenset(
    (
        int,
        float,
        complex,
        str,
        bytes,
        bool,
        type(None),
        type(...),
        type(NotImplemented),
        range,
        slice,
        Tensor,
        Parameter,
        type,
        types.ModuleType,
        types.FunctionType,
        types.BuiltinFunctionType,
        types.MethodWrapperType,
        types.WrapperDescriptorType,
        types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        types.CodeType,
        property,
        staticmethod,
        classmethod,
        np.dtype,
        np.ufunc,
        DType,
    )
)
_CLOSED = (
    "datetime",
    "decimal",
    "fractions",
    "re",
    "uuid",
    "pathlib",
    "ipaddress",
    "numpy",
    "operator",
    "_operator",
    "enum",
    "typing",
    "mycel",
)
_LARGEST = 20000


class Snapshot:
    """The state of an object and of all that can be reached from it, for comparison.

    The objects in `kept` stay alive while the snapshot is made, so that no `id` is used twice.
    """

    __slots__ = ("known", "kept")

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        self.kept: list[Any] = []

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind in IMMUTABLE or isinstance(value, (Tensor, type, np.generic)):
            if kind is float:
                return (kind, value.hex())
            return (kind, value) if kind in (int, str, bytes, bool, type(None)) else Same(value)
        number = self.known.get(id(value))
        if number is not None:
            return ("again", number)
        if len(self.known) > _LARGEST:
            raise CompileError(
                f"{current_where()}: a {type(value).__name__} holds too much to be watched for changes; pass only what "
                "is needed"
            )
        self.known[id(value)] = len(self.known)
        self.kept.append(value)
        return self._of(value, kind)

    def _of(self, value: Any, kind: Any) -> Any:
        if isinstance(value, (tuple, list, set, frozenset, deque, *_VIEWS)):
            items = [self.of(v) for v in value]
            return (kind, frozenset(items) if isinstance(value, (set, frozenset)) else tuple(items), self._own(value))
        if isinstance(value, (dict, types.MappingProxyType)):
            return (kind, tuple([(self.of(k), self.of(v)) for k, v in value.items()]), self._own(value))
        if isinstance(value, np.ndarray):
            content = tuple([self.of(v) for v in value.ravel()]) if value.dtype.kind == "O" else value.tobytes()
            return (kind, value.dtype.str, value.shape, content)
        if isinstance(value, _BYTES):
            return (kind, bytes(value))
        if isinstance(value, types.MethodType):
            return (kind, Same(value.__func__), self.of(value.__self__))
        if kind.__name__ == "partial":
            return (kind, Same(value.func), self.of(value.args), self.of(value.keywords))
        if isinstance(value, Cell) or is_closed(value, kind):
            return Same(value)
        own = self._own(value)
        if own is None:
            raise CompileError(
                f"{current_where()}: a {kind.__module__}.{kind.__qualname__} cannot be looked into, so that it would "
                "have to be read "
                "at each call; read it outside and pass what is needed"
            )
        return (kind, Same(value), own)

    def _own(self, value: Any) -> Any:
        """Return the attributes of an object by name; None if it has none."""
        own = getattr(value, "__dict__", None)
        slots = [n for base in type(value).__mro__ for n in _names(base.__dict__.get("__slots__", ()))]
        if own is None and not slots:
            return None
        found = [] if own is None else [(k, self.of(v)) for k, v in list(own.items())]
        for name in slots:
            try:
                found.append((name, self.of(getattr(value, name))))
            except AttributeError:
                found.append((name, None))
        return tuple(found)


def _names(slots: Any) -> list[str]:
    names = [slots] if isinstance(slots, str) else list(slots)
    return [
        n for n in names if n not in ("__dict__", "__weakref__") and not (n.startswith("__") and not n.endswith("__"))
    ]


def is_closed(value: Any, kind: type) -> bool:
    """Return whether an object is known not to change without inspecting it, because its class is
    immutable or has no state.
    """
    if kind.__module__.split(".")[0] in _CLOSED:
        return True
    if kind.__module__ == "builtins":
        return kind is object or hasattr(kind, "__next__") or kind.__name__ in ("super", "weakref")
    return isinstance(value, enum.Enum)


def snapshot(value: Any) -> Any:
    """Return the state of an object and of all that can be reached from it.

    A later snapshot is equal to it if nothing has changed.
    """
    return Snapshot().of(value)
