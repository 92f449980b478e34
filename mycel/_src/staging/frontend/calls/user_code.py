"""Tells interpreted code (the user's) from native code.

Native is code of the library, of the standard library, and of packages that do not use the library.
"""

from __future__ import annotations

import inspect
import os
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from mycel._src.foundation.bounded_caches import MANY, Remembered, RememberedOf
from mycel._src.foundation.package import FOLDER
from mycel._src.foundation.python_runtime.code_origins import is_installed, is_standard
from mycel._src.staging.frontend.calls.frames import Closure

__all__ = [
    "MUTATED",
    "PACKAGE",
    "flags_of",
    "follows_users",
    "is_jit",
    "is_native",
    "is_native_code",
    "is_users",
]

PACKAGE = FOLDER + os.sep
_DEMO = os.path.join(PACKAGE, "demo") + os.sep
MUTATED = (list, dict, set, deque, OrderedDict, defaultdict, bytearray, np.ndarray)


def is_users(value: Any) -> bool:
    """Return whether a value is a function or method that the user wrote."""
    inner = value.__func__ if type(value) is types.MethodType else value
    return type(inner) is types.FunctionType and not is_native(inner)


def is_jit(fn: Any) -> bool:
    """Return whether `fn` is a function that `jit` returned."""
    return bool(getattr(type(fn), "is_compiled_function", False))


def flags_of(fn: types.FunctionType) -> int:
    """Return the flags of a function's code that mark generators and coroutines."""
    return fn.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)


def follows_users(cell: Any) -> bool:
    """Return whether a Cell of the library runs code of the user: an overridden method, or a
    function that it was given.
    """
    return _overrides(type(cell)) or any(is_users(v) for v in cell.__dict__.values())


_overriding = RememberedOf[bool]("classes with methods of the program's own", MANY)


def _overrides(kind: type) -> bool:
    return _overriding.of(kind, lambda: _has_users_methods(kind))


def _has_users_methods(kind: type) -> bool:
    methods = [f for base in kind.__mro__ for f in base.__dict__.values() if type(f) is types.FunctionType]
    return any(not is_native(f) for f in methods if f.__name__ != "__init__")


_native = Remembered[types.CodeType, bool]("functions that run as they are", MANY)


def is_native(fn: Any) -> bool:
    """Return whether a function runs natively: one of the library, of the standard library, or of a
    package that does not use the library.
    """
    if type(fn) is not types.FunctionType:
        return not isinstance(fn, Closure) and not is_jit(fn)
    return is_native_code(fn.__code__, fn.__globals__)


def is_native_code(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    """Return whether a function with this code and these globals runs natively."""
    found = _native.recent.get(code)
    if found is None and (found := _native.get(code)) is None:
        file = code.co_filename
        if file.startswith(PACKAGE):
            found = not file.startswith(_DEMO)
        elif is_installed(file):
            found = not _uses_this_package(namespace)
        else:
            found = (
                is_standard(file) or file.startswith("<frozen ") or file == "<string>" and code.co_name.startswith("__")
            )
        _native.enter(code, found)
    return found


def _uses_this_package(namespace: dict[str, Any]) -> bool:
    for value in list(namespace.values()):
        name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and name.split(".")[0] in ("mycel", "mindspore"):
            return True
    return False
