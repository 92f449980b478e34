"""Attribute and name access of interpreted code: reads are guarded, writes are journaled.

Attributes and objects that the program itself has set or made while it is being staged need no
guard. A tensor in an attribute is not guarded by identity: compiled code reads the attribute again
(`Stage.read_tensor`).
"""

from __future__ import annotations

import builtins
import functools
import types
from collections import OrderedDict, deque
from typing import Any

from mycel._src.compiler.ir.graph import current_where
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.calls.frames import Closure, Frame, call
from mycel._src.staging.frontend.calls.user_code import is_native
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.graph_building.stage_state import MISSING
from mycel._src.staging.frontend.specialization import guards
from mycel._src.staging.frontend.specialization.snapshots import CONTAINERS
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel._src.tensors.core.views import is_plain

__all__ = ["load_attribute", "load_cell", "load_from_module", "load_global", "store_attribute"]

_UNGUARDED = frozenset(
    (
        int,
        float,
        complex,
        str,
        bytes,
        bool,
        type(None),
        tuple,
        list,
        dict,
        set,
        frozenset,
        slice,
        range,
        deque,
        OrderedDict,
    )
)


def load_global(frame: Frame, name: str) -> Any:
    namespace = frame.globals
    value = namespace.get(name, MISSING)
    stage = frame.stage
    if value is MISSING:
        value = getattr(builtins, name, MISSING)
        if value is MISSING:
            raise NameError(f"name {name!r} is not defined")
        if stage is not None:
            stage.guards.item(namespace, name, guards.MISSING)
            stage.guards.item(builtins.__dict__, name, value)
        return value
    if stage is not None and not stage.was_changed(("item", id(namespace), name)):
        if is_plain(value) and value._buf is not None:
            stage.read_tensor(_namespace(stage, namespace), name, value)
        else:
            stage.guards.item(namespace, name, value)
    return value


class _Namespace:
    """A module's globals as attributes."""

    __slots__ = ("__dict__",)


def _namespace(stage: Stage, mapping: dict[str, Any]) -> _Namespace:
    found = stage.namespaces.get(id(mapping))
    if found is None:
        found = stage.namespaces[id(mapping)] = _Namespace()
        found.__dict__ = mapping
    return found


def load_cell(frame: Frame, name: str) -> Any:
    cell = frame.cells[name]
    try:
        value = cell.cell_contents
    except ValueError:
        raise NameError(f"free variable {name!r} referenced before assignment in enclosing scope") from None
    stage = frame.stage
    if stage is not None and not stage.was_changed(("attribute", id(cell), "cell_contents")):
        stage.guards.attribute(cell, "cell_contents", value)
    return value


def load_attribute(stage: Stage, target: Any, name: str) -> Any:
    """Return `target.name` and guard it."""
    kind = type(target)
    if kind in _UNGUARDED:
        # Compiled functions of MindSpore know this method, which Python 3 dropped.
        return target.__contains__ if name == "has_key" and isinstance(target, dict) else getattr(target, name)
    if isinstance(target, Tensor):
        value = getattr(target, name)
        if target._buf is not None and name in target.__dict__ and not stage.is_fresh(target):
            stage.guards.attribute(target, name, value)
        elif type(value) is types.MethodType:
            stage.guards.of_type(kind, name, guards.lookup(kind, name))
        return value
    if kind is types.ModuleType:
        return load_from_module(stage, target, name)
    if isinstance(target, type):
        return _of_class(stage, target, name)
    if kind is super:
        return _beyond(stage, target, name)
    every = guards.lookup(kind, "__getattribute__")
    if _is_users(every):
        stage.guards.of_type(kind, "__getattribute__", every)
        stage.guards.kind(target)
        return call(stage, every, (target, name), {})
    own = getattr(target, "__dict__", None)
    if own is None or name not in own or _is_data_descriptor(guards.lookup(kind, name)):
        return _from_class(stage, target, kind, name)
    value = own[name]
    if stage.was_changed(("attribute", id(target), name)) or stage.is_fresh(target):
        return value
    if is_plain(value) and (value._buf is not None or value.has_init):
        stage.read_tensor(target, name, value)
    elif isinstance(target, Cell):
        stage.guards.cell_attribute(target, name, value)
        if isinstance(value, Cell):
            stage.guards.cell(value)
    else:
        stage.guards.attribute(target, name, value)
    return value


def load_from_module(stage: Stage, target: Any, name: str) -> Any:
    """Return a module's attribute."""
    value = getattr(target, name)
    if not stage.was_changed(("attribute", id(target), name)):
        if name in target.__dict__:
            stage.guards.item(target.__dict__, name, value)
        else:
            stage.guards.attribute(target, name, value)
    return value


def _of_class(stage: Stage, target: Any, name: str) -> Any:
    """Return an attribute of a class."""
    meta = type(target)
    found = guards.lookup(target, name)
    above = guards.lookup(meta, name) if meta is not type else guards.MISSING
    if _is_users(above) and (found is guards.MISSING or _is_data_descriptor(above)):
        stage.guards.of_type(meta, name, above)
        if type(above) is property:
            return call(stage, above.fget, (target,), {})
        return types.MethodType(above, target)
    if found is guards.MISSING and above is guards.MISSING and not hasattr(type, name):
        return _by_getattr(stage, target, meta, name)
    value = getattr(target, name)
    if stage.was_changed(("attribute", id(target), name)) or stage.is_fresh(target):
        return value
    if isinstance(found, (tuple, *CONTAINERS)) or found is guards.MISSING or hasattr(type, name):
        if type(value) not in (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType):
            stage.guards.attribute(target, name, value)
    elif not target.__module__.startswith(("builtins", "numpy")):
        stage.guards.of_type(target, name, found)
    return value


def _beyond(stage: Stage, target: Any, name: str) -> Any:
    """Return an attribute of `super()`."""
    value = getattr(target, name)
    mro = list(target.__self_class__.__mro__)
    for base in mro[mro.index(target.__thisclass__) + 1 :]:
        if name in base.__dict__:
            if base is not object:
                stage.guards.of_type(base, name, base.__dict__[name])
            break
    return value


def _is_users(value: Any) -> bool:
    """Return whether a member of a class is a function or property that the user wrote."""
    inner = value.fget if type(value) is property else value
    return type(inner) in (types.FunctionType, Closure) and not is_native(inner)


def _is_data_descriptor(found: Any) -> bool:
    return found is not guards.MISSING and hasattr(type(found), "__set__")


def _by_getattr(stage: Stage, target: Any, kind: type, name: str) -> Any:
    """Return an attribute that was not found, by `__getattr__` of the class if the user
    wrote one.
    """
    hook = guards.lookup(kind, "__getattr__")
    if not _is_users(hook):
        return getattr(target, name)
    if not stage.is_fresh(target):
        stage.guards.kind(target)
        stage.guards.unset(target, name)
    stage.guards.of_type(kind, name, guards.MISSING)
    stage.guards.of_type(kind, "__getattr__", hook)
    return call(stage, hook, (target, name), {})


def _from_class(stage: Stage, target: Any, kind: type, name: str) -> Any:
    """Return an attribute that an object has from its class."""
    found = guards.lookup(kind, name)
    own = getattr(target, "__dict__", None)
    fresh = stage.is_fresh(target)
    ours = kind is Tensor or kind.__module__.startswith(("mycel.", "builtins", "numpy"))
    if not fresh and not ours and type(found) is not types.MemberDescriptorType:
        stage.guards.kind(target)
        if found is not guards.MISSING and not _is_data_descriptor(found):
            stage.guards.unset(target, name)
    if name == "__dict__" and own is not None:
        if not fresh:
            stage.guards.attribute(target, "__dict__", own)
        return own
    if name == "__class__":
        return kind
    if found is guards.MISSING:
        return _by_getattr(stage, target, kind, name)
    if type(found) is property and _is_users(found):
        stage.guards.of_type(kind, name, found)
        return call(stage, found.fget, (target,), {})
    if type(found) in (types.FunctionType, Closure) and not is_native(found):
        stage.guards.of_type(kind, name, found)
        return types.MethodType(found, target)
    if type(found) is functools.cached_property and own is not None:
        stage.guards.of_type(kind, name, found)
        value = call(stage, found.func, (target,), {})
        stage.note_attribute(target, name)
        own[name] = value
        return value
    getter = guards.lookup(type(found), "__get__")
    if _is_users(getter):
        stage.guards.of_type(kind, name, found)
        return call(stage, getter, (found, target, kind), {})
    value = getattr(target, name)
    if type(found) is types.MemberDescriptorType:
        if not fresh and not stage.was_changed(("attribute", id(target), name)):
            stage.guards.attribute(target, name, value)
    elif isinstance(found, (tuple, *CONTAINERS)):
        stage.guards.attribute(kind, name, found)
    elif not kind.__module__.startswith(("builtins", "numpy")):
        stage.guards.of_type(kind, name, found)
    return value


def store_attribute(stage: Stage, target: Any, name: str, value: Any) -> None:
    """Set ``target.name = value`` and enter the change in the journal of `stage`."""
    if isinstance(target, Cell) and not stage.is_fresh(target):
        own = target.__dict__
        if name in own["_params"] and isinstance(value, Tensor):
            setattr(target, name, value)
            return
        if name in own["_params"] and isinstance(value, (int, float)):
            own["_params"][name].set_data(value)
            return
        if not stage.may_decide and (
            name in own["_params"]
            or name in own["_cells"]
            or isinstance(value, Cell)
            or type(value).__name__ == "Parameter"
        ):
            raise CompileError(
                f"{current_where()}: a compiled function cannot exchange the parameter or cell {name!r} of "
                f"{type(target).__name__}; "
                "do it outside"
            )
    found = guards.lookup(type(target), name)
    if type(found) is property and found.fset is not None and not is_native(found.fset):
        call(stage, found.fset, (target, value), {})
        return
    setter = guards.lookup(type(target), "__setattr__")
    if _is_users(setter):
        stage.guards.of_type(type(target), "__setattr__", setter)
        call(stage, setter, (target, name, value), {})
        return
    descriptor = guards.lookup(type(found), "__set__") if found is not guards.MISSING else guards.MISSING
    if _is_users(descriptor):
        stage.guards.of_type(type(target), name, found)
        call(stage, descriptor, (found, target, value), {})
        return
    stage.note_attribute(target, name)
    setattr(target, name, value)
