"""Reading and writing names and attributes from interpreted code, with guards for what is read and a journal of what is written.

What the program itself has set, or made, while it is being staged needs no guard. A tensor in an attribute is not guarded by identity: compiled code reads
the attribute again (`Stage.read_tensor`).
"""

from __future__ import annotations

import builtins
import types
from collections import OrderedDict, deque
from typing import Any

from mycel.errors import CompileError
from mycel.frontend import guards as G
from mycel.frontend.interpret import PACKAGE, SITE, STANDARD, Closure, Frame, call, is_native
from mycel.frontend.stage import MISSING, Stage
from mycel.ir.graph import current_where
from mycel.tensor import Tensor

__all__ = ["load_attribute", "load_cell", "load_global", "store_attribute"]

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
        type,
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
            stage.guards.item(namespace, name, G.MISSING)
        return value
    if stage is not None and not stage.was_changed(("item", id(namespace), name)):
        stage.guards.item(namespace, name, value)
    return value


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
    """`target.name` with its guard."""
    from mycel.cell import Cell

    kind = type(target)
    if kind in _UNGUARDED:
        return getattr(target, name)
    if isinstance(target, Tensor):
        value = getattr(target, name)
        if target._buf is not None and name in target.__dict__ and not stage.is_fresh(target):
            stage.guards.attribute(target, name, value)
        return value
    if kind is types.ModuleType:
        value = getattr(target, name)
        file = getattr(target, "__file__", None)
        if file is not None and not file.startswith((*STANDARD, *SITE, PACKAGE)):
            stage.guards.item(target.__dict__, name, value)
        return value
    own = getattr(target, "__dict__", None)
    if own is not None and not isinstance(target, type) and name in own:
        value = own[name]
        if stage.was_changed(("attribute", id(target), name)) or stage.is_fresh(target):
            return value
        if type(value) is Tensor and (value._buf is not None or value.has_init):
            stage.read_tensor(target, name, value)
        elif isinstance(target, Cell):
            stage.guards.cell_attribute(target, name, value)
            if isinstance(value, Cell):
                stage.guards.cell(value)
        else:
            stage.guards.attribute(target, name, value)
        return value
    if not isinstance(target, type):
        return _class_attribute(stage, target, kind, name)
    value = getattr(target, name)
    if own is not None and name in own and not target.__module__.startswith(("mycel.", "builtins", "numpy")):
        if not stage.was_changed(("attribute", id(target), name)) and not stage.is_fresh(target):
            stage.guards.of_type(target, name, own[name])
    return value


def _class_attribute(stage: Stage, target: Any, kind: type, name: str) -> Any:
    """An attribute that an object has from its class."""
    found = G.lookup(kind, name)
    guarded = found is not G.MISSING and not kind.__module__.startswith(("mycel.", "builtins", "numpy"))
    fresh = stage.is_fresh(target)
    if guarded and not fresh and type(found) is not types.MemberDescriptorType:
        stage.guards.unset(target, name)
    if type(found) is property and type(found.fget) in (types.FunctionType, Closure) and not is_native(found.fget):
        stage.guards.of_type(kind, name, found)
        return call(stage, found.fget, (target,), {})
    if type(found) is types.FunctionType and not is_native(found):
        stage.guards.of_type(kind, name, found)
        return types.MethodType(found, target)
    value = getattr(target, name)
    if type(found) is types.MemberDescriptorType:
        if not fresh and not stage.was_changed(("attribute", id(target), name)):
            stage.guards.attribute(target, name, value)
    elif guarded and not hasattr(type(found), "__get__"):
        if type(found) in (list, dict, set, tuple):
            stage.guards.attribute(kind, name, found)
        else:
            stage.guards.of_type(kind, name, found)
    return value


def store_attribute(stage: Stage, target: Any, name: str, value: Any) -> None:
    """``target.name = value``, journaled."""
    from mycel.cell import Cell

    if isinstance(target, Cell) and not stage.is_fresh(target):
        own = target.__dict__
        if name in own["_params"] and isinstance(value, Tensor):
            setattr(target, name, value)
            return
        if not stage.may_decide and (
            name in own["_params"]
            or name in own["_cells"]
            or isinstance(value, Cell)
            or type(value).__name__ == "Parameter"
        ):
            raise CompileError(f"{current_where()}: a compiled function cannot exchange the parameter or cell {name!r} of {type(target).__name__}; "
                               "do it outside")  # fmt: skip
    found = G.lookup(type(target), name)
    if type(found) is property and found.fset is not None and not is_native(found.fset):
        call(stage, found.fset, (target, value), {})
        return
    stage.note_attribute(target, name)
    setattr(target, name, value)
