"""The library functions that may not be called in compiled functions, found without compiling.

The functions of some modules belong to the process (seeds, settings, files, data), so that a graph
cannot stand for them; `native_calls.see_library` refuses them while a function is staged, and the
function then runs in segments.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.staging.frontend.calls.native_calls import PROCESS_MODULES

__all__ = ["get_obj_module_and_name_info", "is_invalid_or_jit_forbidden_method", "is_jit_forbidden_module"]

_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def is_jit_forbidden_module(obj_module: str | None) -> bool:
    """Return whether the functions of the module with this name belong to the process, so that they
    cannot be part of a graph.

    >>> import mycel as ms
    >>> [ms.is_jit_forbidden_module(m) for m in ("mycel.dataset.pipeline", "mycel.ops.math")]
    [True, False]
    """
    if obj_module is None:
        return False
    name = str(obj_module)
    name = "mycel" + name.removeprefix("mindspore") if name.split(".")[0] == "mindspore" else name
    return any(name == m or name.startswith(m + ".") for m in PROCESS_MODULES)


def get_obj_module_and_name_info(obj: Any) -> tuple[str, str, str] | None:
    """Return the module, the qualified name and the kind ("class", or "method or function") of a
    class or function; None for other objects.

    >>> import mycel as ms
    >>> ms.get_obj_module_and_name_info(ms.nn.ReLU)[1:]
    ('ReLU', 'class')
    """
    kind = "class" if inspect.isclass(obj) else "method or function" if isinstance(obj, _FUNCTIONS) else None
    if kind is None:
        return None
    owner = getattr(obj, "__self__", None)
    module = getattr(obj, "__module__", None) or type(owner).__module__
    return module, obj.__qualname__, kind


def is_invalid_or_jit_forbidden_method(obj: Any, obj_type: Any, attr: str) -> bool:
    """Return whether the method `attr` of an object belongs to the process, so that it cannot be
    part of a graph.

    Raises AttributeError if the object has no such method.

    >>> import mycel as ms
    >>> ms.is_invalid_or_jit_forbidden_method(ms.nn.ReLU(), ms.nn.ReLU, "construct")
    False
    """
    arguments.text("is_invalid_or_jit_forbidden_method", "attr", attr)
    if not hasattr(obj, attr):
        raise AttributeError(f"{obj_type!r} has no attribute {attr!r}")
    found = get_obj_module_and_name_info(getattr(obj, attr))
    return found is not None and is_jit_forbidden_module(found[0])
