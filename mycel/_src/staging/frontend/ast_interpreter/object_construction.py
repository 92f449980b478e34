"""Interprets construction of objects of the user's classes; all others are made natively.

Interpreted are `__new__`, `__init__` and generated methods of dataclasses.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any

from mycel._src.staging.frontend.ast_interpreter.builtin_calls import SPECIAL
from mycel._src.staging.frontend.calls.frames import Closure, call
from mycel._src.staging.frontend.calls.native_calls import call_natively
from mycel._src.staging.frontend.calls.user_code import is_native, is_users
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.specialization import guards
from mycel._src.staging.frontend.specialization.snapshots import PLAIN_SET
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["construct"]


def construct(stage: Stage, kind: type, args: Any, kwargs: dict[str, Any]) -> Any:
    special = SPECIAL.get(kind)
    if special is not None:
        return special(stage, args, kwargs)
    initialize = guards.lookup(kind, "__init__")
    if (
        type(kind).__call__ is type.__call__
        and type(initialize) in (types.FunctionType, Closure)
        and not is_native(initialize)
        and not issubclass(kind, Tensor)
    ):
        new = guards.lookup(kind, "__new__")
        new = getattr(new, "__func__", new)
        if type(new) is types.FunctionType and not is_native(new):
            made = call(stage, new, (kind, *args), kwargs)
        elif new is object.__new__ or isinstance(new, types.BuiltinFunctionType) and new.__self__ is object:
            made = kind.__new__(kind)
        else:
            made = kind.__new__(kind, *args, **kwargs)
        stage.created(made)
        if isinstance(made, kind):
            call(stage, initialize, (made, *args), kwargs)
        return made
    if dataclasses.is_dataclass(kind) and _runs_users_code(kind):
        return _construct_dataclass(stage, kind, args, kwargs)
    made = call_natively(stage, kind, args, kwargs)
    if type(made) in PLAIN_SET or isinstance(made, type):
        return made
    if isinstance(made, Tensor) and made._buf is None:
        return made
    return stage.created(made)


def _runs_users_code(kind: Any) -> bool:
    """Return whether the generated `__init__` of a dataclass calls code that the user wrote."""
    if getattr(kind.__init__, "__code__", None) is None or kind.__init__.__code__.co_filename != "<string>":
        return False
    return is_users(guards.lookup(kind, "__post_init__")) or any(
        is_users(f.default_factory) for f in dataclasses.fields(kind)
    )


def _construct_dataclass(stage: Stage, kind: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return an object of a dataclass, made as its generated `__init__` does, with the user's
    functions interpreted.
    """
    bound = inspect.signature(kind).bind(*args, **kwargs).arguments
    new = guards.lookup(kind, "__new__")
    new = getattr(new, "__func__", new)
    made = stage.created(call(stage, new, (kind, *args), kwargs) if is_users(new) else kind.__new__(kind))
    setter = guards.lookup(kind, "__setattr__")
    own_setter = is_users(setter) and not kind.__dataclass_params__.frozen
    known = {f.name: f for f in dataclasses.fields(kind)}
    late = []
    for name, field in kind.__dataclass_fields__.items():
        if name not in known and name not in inspect.signature(kind).parameters:
            continue
        if name in bound:
            value = bound[name]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = call(stage, field.default_factory, (), {})
        else:
            continue
        if name in known and own_setter:
            call(stage, setter, (made, name, value), {})
        elif name in known:
            object.__setattr__(made, name, value)
        else:
            late.append(value)
    finish = guards.lookup(kind, "__post_init__")
    if finish is not guards.MISSING:
        call(stage, finish, (made, *late), {})
    return made
