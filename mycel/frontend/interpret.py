"""Running a user's function over abstract values: plain Python values stay what they are, tensors become nodes.

A function's syntax tree is turned once into closures of Python (`expressions`, `statements`), which a `Frame` is then passed through. Every call goes
through `call`, which decides how: functions of the user are interpreted, everything else (the library, which is written for staged
tensors, builtins, other packages, functions without source) runs natively. Functions and lambdas that interpreted code
defines are `Closure`s: real callables that remember their frame, so that native code can call them.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import os
import sys
import sysconfig
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Optional
from weakref import WeakKeyDictionary

import numpy as np

from mycel.base.errors import CompileError
from mycel.core import eager
from mycel.frontend import arguments
from mycel.frontend import guards as G
from mycel.frontend.native_calls import see_call, see_library, see_result
from mycel.frontend.scopes import NameScope, contains_yield, scope_of
from mycel.frontend.source import NoSource, definition_of
from mycel.frontend.stage import Activation, Stage
from mycel.frontend.tracebacks import note_place
from mycel.ir.graph import current_where, set_where

__all__ = ["Closure", "Code", "Frame", "call", "is_native"]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO = os.path.join(PACKAGE, "demo") + os.sep
STANDARD = tuple({os.path.dirname(os.__file__) + os.sep, sysconfig.get_path("stdlib") + os.sep})
SITE = tuple({sysconfig.get_path(n) + os.sep for n in ("purelib", "platlib")})
MUTATED = (list, dict, set, deque, OrderedDict, defaultdict, bytearray, np.ndarray)
# Up to Python 3.10 each call of Python's own takes a piece of the thread's stack.
_DEEPEST = 12_000 if sys.version_info >= (3, 11) else 400


class Frame:
    """The variables of one activation of a function."""

    __slots__ = ("vars", "outer", "globals", "cells", "stage", "code", "undefined", "owner", "__weakref__")

    def __init__(
        self,
        variables: dict[str, Any],
        outer: Optional[Frame],
        globals_: Any,
        cells: Any,
        stage: Optional[Stage],
        code: Code,
    ) -> None:
        self.vars, self.outer, self.globals, self.cells, self.stage, self.code = (
            variables,
            outer,
            globals_,
            cells,
            stage,
            code,
        )
        self.undefined: Optional[dict[str, str]] = None
        self.owner: Any = None


class Code:
    """A function's syntax tree as closures, with how it takes its arguments."""

    def __init__(
        self, node: Any, file: str, name: str, scope: NameScope, free: tuple[str, ...], class_name: str
    ) -> None:
        from mycel.frontend.statements import build_body

        a = node.args
        self.node, self.file, self.name, self.scope, self.free, self.class_name = (
            node,
            file,
            name,
            scope,
            free,
            class_name,
        )
        self.line, self.qualname = node.lineno, name
        self.is_generator = contains_yield(node)
        self.positional_only = len(a.posonlyargs)
        self.positional = tuple(mangled(p.arg, class_name) for p in [*a.posonlyargs, *a.args])
        self.keyword_only = tuple(mangled(p.arg, class_name) for p in a.kwonlyargs)
        self.variadic = a.vararg.arg if a.vararg else None
        self.keywords = a.kwarg.arg if a.kwarg else None
        self.simple = not (self.keyword_only or self.variadic or self.keywords)
        self.run: Callable[[Frame], Any] = build_body(node, self)

    def bind(
        self, stage: Optional[Stage], args: Any, kwargs: Any, defaults: Any, keyword_defaults: Any
    ) -> dict[str, Any]:
        """The variables that a call begins with; TypeError for arguments that do not fit, in Python's words."""
        names = self.positional
        if self.simple and not kwargs and len(args) == len(names):
            return dict(zip(names, args))
        variables = dict(zip(names, args))
        rest: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in names[self.positional_only :] or name in self.keyword_only:
                if name in variables:
                    raise TypeError(f"{self.qualname}() got multiple values for argument {name!r}")
                variables[name] = value
            elif self.keywords is None:
                if name in names:
                    wrong = ", ".join(n for n in names[: self.positional_only] if n in kwargs)
                    raise TypeError(
                        f"{self.qualname}() got some positional-only arguments passed as keyword arguments: {wrong!r}"
                    )
                raise TypeError(f"{self.qualname}() got an unexpected keyword argument {name!r}")
            else:
                rest[name] = value
        if len(args) > len(names) and self.variadic is None:
            by_keyword = sum(n in variables for n in self.keyword_only)
            raise arguments.too_many(self.qualname, len(names), len(defaults or ()), len(args), by_keyword)
        first = len(names) - len(defaults or ())
        for i in range(max(first, 0), len(names)):
            variables.setdefault(names[i], defaults[i - first])
        missing = [n for n in names if n not in variables]
        if missing:
            raise arguments.missing(self.qualname, "positional", missing)
        for name in self.keyword_only:
            if name not in variables:
                if keyword_defaults and name in keyword_defaults:
                    variables[name] = keyword_defaults[name]
                else:
                    missing.append(name)
        if missing:
            raise arguments.missing(self.qualname, "keyword-only", missing)
        if self.variadic is not None:
            variables[self.variadic] = tuple(args[len(names) :])
        if self.keywords is not None:
            variables[self.keywords] = rest if stage is None else stage.created(rest)
        return variables


_codes: dict[int, tuple[types.CodeType, Optional[Code], str]] = {}


def code_of(function: types.FunctionType) -> Optional[Code]:
    """The closures of a real function; None where it has to run natively."""
    found = _codes.get(id(function.__code__))
    if found is None:
        code, reason = None, ""
        try:
            node, class_name = definition_of(function)
            if fn_flags(function) & ~inspect.CO_GENERATOR:
                reason = "it is a coroutine"
            else:
                raw = function.__code__
                code = Code(node, raw.co_filename, raw.co_name, scope_of(node, None), raw.co_freevars, class_name)
                code.qualname = function.__qualname__
        except NoSource as error:
            reason = str(error)
        found = _codes[id(function.__code__)] = (function.__code__, code, reason)
    return found[1]


def why_native(function: Any) -> str:
    """Why a user's function was not interpreted; empty where it was."""
    found = _codes.get(id(getattr(function, "__code__", None)))
    return found[2] if found is not None else ""


def mangled(name: str, class_name: str) -> str:
    """A name as Python stores it: ``__x`` inside a class is private to it."""
    if class_name and name.startswith("__") and not name.endswith("__") and class_name.strip("_"):
        return f"_{class_name.lstrip('_')}{name}"
    return name


class Closure:
    """A function that interpreted code defined."""

    __slots__ = ("_code", "_frame", "_owner", "_defaults", "_keyword_defaults", "__dict__", "__weakref__")

    def __init__(
        self, code: Code, frame: Frame, defaults: tuple[Any, ...], keyword_defaults: Optional[dict[str, Any]], name: str
    ) -> None:
        self._code, self._frame = code, frame
        self._defaults, self._keyword_defaults = defaults, keyword_defaults
        self.__name__ = name
        self.__qualname__ = code.qualname = f"{frame.code.qualname}.<locals>.{name}"
        self.__module__ = frame.globals.get("__name__", "")
        self.__doc__ = ast.get_docstring(code.node) if not isinstance(code.node, ast.Lambda) else None
        self._owner: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        context = eager.local.context if eager.active else None
        return self.run(context if isinstance(context, Stage) else None, args, kwargs)

    def run(self, stage: Optional[Stage], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code = self._code
        variables = code.bind(stage, args, kwargs, self._defaults, self._keyword_defaults)
        outer = self._frame
        frame = Frame(variables, outer, outer.globals, outer.cells, stage, code)
        frame.owner = self._owner
        return activate(stage, frame)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__}>"


def activate(stage: Optional[Stage], frame: Frame) -> Any:
    """Run a frame's body; the user's position is put back behind it."""
    before = current_where()
    if frame.code.is_generator:
        return frame.code.run(frame)
    if stage is None:
        try:
            return frame.code.run(frame)
        finally:
            set_where(before)
    if stage.levels:
        stage.created(frame.vars)
    active = stage.active.get(frame.code)
    if active is None:
        active = stage.active[frame.code] = []
    elif active:
        from mycel.frontend.recursion import recursive_call

        found = recursive_call(stage, frame)
        if found is not None:
            return found[0]
    stage.calls += 1
    if stage.calls > _DEEPEST:
        stage.calls -= 1
        raise CompileError(f"{before}: calls nest more than {_DEEPEST} deep while {frame.code.name} is compiled; "
                           "a recursion must end by plain Python values, or be written as a loop")  # fmt: skip
    active.append(Activation(dict(frame.vars), len(stage.scopes)))
    try:
        result = frame.code.run(frame)
        if stage.calls == 1:
            stage.ended = frame.code.name, current_where()
        return result
    except Exception as error:
        note_place(error, frame.code.file, frame.code.line, frame.code.name, frame.vars)
        raise
    finally:
        active.pop()
        stage.calls -= 1
        set_where(before)


# Calls.


def call(stage: Optional[Stage], fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call anything from interpreted code."""
    kind = type(fn)
    if kind is types.FunctionType:
        return call_function(stage, fn, args, kwargs)
    if kind is types.MethodType:
        inner = fn.__func__
        if stage is not None and type(inner) is types.FunctionType and is_native(inner):
            _guard_receiver(stage, fn.__self__)
        if type(inner) is types.FunctionType or type(inner) is Closure or _is_jit(inner):
            return call(stage, inner, (fn.__self__, *args), kwargs)
        return call_natively(stage, fn, args, kwargs)
    if kind is Closure:
        return fn.run(stage, args, kwargs)
    if stage is None:
        return fn(*args, **kwargs)
    if kind is types.BuiltinFunctionType or kind is types.BuiltinMethodType:
        return _call_builtin(stage, fn, args, kwargs)
    if isinstance(fn, type):
        from mycel.frontend.construct import construct

        return construct(stage, fn, args, kwargs)
    if kind is functools.partial:
        if not stage.is_fresh(fn):
            stage.guards.attribute(fn, "args", fn.args)
            stage.guards.attribute(fn, "keywords", fn.keywords)
        return call(stage, fn.func, (*fn.args, *args), {**fn.keywords, **kwargs})
    if _is_jit(fn):
        return call(stage, fn.__wrapped__, args, kwargs)
    if kind is functools._lru_cache_wrapper:
        return call(stage, fn.__wrapped__, args, kwargs)
    method = G.lookup(kind, "__call__")
    if type(method) is types.FunctionType and not is_native(method):
        return call_function(stage, method, (fn, *args), kwargs)
    special = getattr(fn, "call_staged", None) if kind.__module__.startswith("mycel.frontend") else None
    if special is not None:
        return special(stage, args, kwargs)
    if kind.__module__.startswith("mycel.derivatives"):
        return stage.as_unit(fn, lambda: call_natively(stage, fn, args, kwargs), args, kwargs)
    return call_natively(stage, fn, args, kwargs)


def _guard_receiver(stage: Stage, target: Any) -> None:
    """Guard what a method of the library may read of a Cell, such as which of its parameters are trained."""
    from mycel.cells.cell import Cell

    # A Cell whose constructor is running has nothing yet.
    if isinstance(target, Cell) and "_cells" in target.__dict__:
        for _, cell in target.cells_and_names():
            stage.guards.native_cell(cell)
        for parameter in target.get_parameters():
            stage.guards.attribute(parameter, "requires_grad", parameter.requires_grad)


def _is_jit(fn: Any) -> bool:
    return bool(getattr(type(fn), "is_compiled_function", False))


def call_function(stage: Optional[Stage], fn: types.FunctionType, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a real Python function: interpreted if it is the user's and has source."""
    if is_native(fn):
        if stage is not None and fn is dataclasses.replace and len(args) == 1:
            from mycel.frontend.access import load_attribute

            fields = [f.name for f in dataclasses.fields(args[0]) if f.init]
            given = {n: kwargs[n] if n in kwargs else load_attribute(stage, args[0], n) for n in fields}
            return call(stage, type(args[0]), (), {**given, **kwargs})
        if stage is not None and "__wrapped__" in fn.__dict__ and fn.__globals__.get("__name__") == "contextlib":
            inner = fn.__dict__["__wrapped__"]
            if type(inner) is types.FunctionType and fn_flags(inner) == inspect.CO_GENERATOR and not is_native(inner):
                from mycel.frontend.generators import Managed

                return stage.created(Managed(call(stage, inner, args, kwargs)))
        if stage is not None and hasattr(fn, "dispatch") and hasattr(fn, "registry") and args:
            stage.guards.content(fn.registry)
            return call(stage, fn.dispatch(type(args[0])), args, kwargs)
        if stage is not None and not fn.__module__.startswith(_INVOKING):
            args = [callback(v) for v in args]
            kwargs = {k: callback(v) for k, v in kwargs.items()}
        return call_natively(stage, fn, args, kwargs)
    if stage is None:
        return interpret(stage, fn, args, kwargs)
    if code_of(fn) is None and not stage.runs_each_time:
        place = f"{current_where()}: " if current_where() else ""
        raise CompileError(f"{place}{fn.__qualname__} cannot be followed ({why_native(fn)}), so that it must run at each call; "
                           "define it where its source can be read")  # fmt: skip
    return stage.as_unit(fn, lambda: interpret(stage, fn, args, kwargs), args, kwargs)


def fn_flags(fn: types.FunctionType) -> int:
    """Which flags of generators and coroutines a function's code has."""
    return fn.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)


def interpret(stage: Optional[Stage], fn: types.FunctionType, args: Any, kwargs: dict[str, Any]) -> Any:
    """Interpret a function if it has source, whoever wrote it."""
    code = code_of(fn)
    if code is None or code.is_generator and (stage is None or stage.runs_each_time):
        return call_natively(stage, fn, args, kwargs)
    if stage is not None:
        stage.guards.attribute(fn, "__code__", fn.__code__)
        if fn.__defaults__:
            stage.guards.attribute(fn, "__defaults__", fn.__defaults__)
        if fn.__kwdefaults__:
            stage.guards.attribute(fn, "__kwdefaults__", fn.__kwdefaults__)
        stage.guards.closure(fn)
    variables = code.bind(stage, args, kwargs, fn.__defaults__, fn.__kwdefaults__)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__)) if fn.__closure__ else None
    return activate(stage, Frame(variables, None, fn.__globals__, cells, stage, code))


_INVOKING = ("mycel.derivatives", "mycel.compiled.jit", "mycel.compiled.vmap")


def is_users(value: Any) -> bool:
    """Whether a value is a function or method that the user wrote."""
    inner = value.__func__ if type(value) is types.MethodType else value
    return type(inner) is types.FunctionType and not is_native(inner)


def callback(value: Any) -> Any:
    """A user's function for native code to call back: interpreted while a function is staged."""
    if not is_users(value):
        return value

    @functools.wraps(value)
    def run(*args: Any, **kwargs: Any) -> Any:
        context = eager.local.context if eager.active else None
        return call(context if isinstance(context, Stage) else None, value, args, kwargs)

    return run


def follows_users(cell: Any) -> bool:
    """Whether a Cell of the library runs code of the user's: an overridden method, or a function that it was given."""
    return _overrides(type(cell)) or any(is_users(v) for v in cell.__dict__.values())


_overriding: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def _overrides(kind: type) -> bool:
    found = _overriding.get(kind)
    if found is None:
        found = _overriding[kind] = _has_users_methods(kind)
    return found


def _has_users_methods(kind: type) -> bool:
    methods = [f for base in kind.__mro__ for f in base.__dict__.values() if type(f) is types.FunctionType]
    return any(not is_native(f) for f in methods if f.__name__ != "__init__")


def call_natively(stage: Optional[Stage], fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if stage is not None:
        if not stage.runs_each_time:
            module, name = _origin(fn)
            if module in ("logging", "warnings") and name in _REPORTS:
                stage.defer(fn, tuple(args), kwargs)
                return None
            _refuse_impure(fn)
        if stage.runs_each_time:
            unseen = False
        else:
            module = _origin(fn)[0]
            unseen = not module.startswith("mycel.")
            if not unseen:
                see_library(stage, fn, args)
        if unseen:
            see_call(stage, fn, args, kwargs)
        for value in itertools.chain(args, kwargs.values()):
            if type(value) in MUTATED:
                stage.note_container(value)
            else:
                stage.need_own_iterator(value)
        result = fn(*args, **kwargs)
        if unseen:
            see_result(stage, result, sys.getrefcount(result) - 1)
        if hasattr(type(result), "__next__") or _is_new_array(fn, result):
            if not any(result is value for value in args):
                stage.created(result)
        return result
    return fn(*args, **kwargs)


def _is_new_array(fn: Any, result: Any) -> bool:
    module = getattr(fn, "__module__", None) or ""
    return type(result) is np.ndarray and module.startswith("numpy") and result.flags.owndata


_native: dict[types.CodeType, bool] = {}


def is_native(fn: Any) -> bool:
    """Whether a function runs as it is: the library's own, the standard library's, and other packages' that do not use this one."""
    if type(fn) is not types.FunctionType:
        return not isinstance(fn, Closure) and not _is_jit(fn)
    return is_native_code(fn.__code__, fn.__globals__)


def is_native_code(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    """`is_native` of the function that has this code."""
    found = _native.get(code)
    if found is None:
        file = code.co_filename
        if file.startswith(PACKAGE):
            found = not file.startswith(_DEMO)
        elif file.startswith(SITE):
            found = not _uses_this_package(namespace)
        else:
            found = (
                file.startswith(STANDARD)
                or file.startswith("<frozen ")
                or file == "<string>"
                and code.co_name.startswith("__")
            )
        _native[code] = found
    return found


def _uses_this_package(namespace: dict[str, Any]) -> bool:
    for value in list(namespace.values()):
        name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and name.split(".")[0] in ("mycel", "mindspore"):
            return True
    return False


# What gives the same result for the same arguments and changes nothing but them.
_PURE = frozenset(
    "builtins math cmath operator _operator functools _functools itertools collections _collections _collections_abc copy copyreg numpy scipy re _sre "
    "string _string typing types dataclasses enum abc _abc numbers fractions decimal _decimal statistics inspect textwrap bisect _bisect heapq _heapq "
    "contextlib weakref _weakref _weakrefset json hashlib _hashlib struct _struct array ml_dtypes posixpath ntpath mycel mindspore".split()
)
_IMPURE = ("numpy.random", "scipy.io", "numpy.lib.npyio", "numpy.lib._npyio_impl", "numpy._core.multiarray.fromfile")
_REPORTS = frozenset(("debug", "info", "warning", "error", "critical", "exception", "log", "warn"))


def _origin(fn: Any) -> tuple[str, str]:
    """The module and the name of something that runs natively."""
    module = getattr(fn, "__module__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    if module is None or type(fn) is types.BuiltinMethodType and not isinstance(fn.__self__, types.ModuleType):
        owner = getattr(fn, "__self__", None)
        module = (
            getattr(owner if isinstance(owner, type) else type(owner), "__module__", "") if owner is not None else ""
        )
    return module or "", name


def _refuse_impure(fn: Any) -> None:
    """CompileError for what has to run at each call: its result may change by itself, or it does something outside."""
    module, name = _origin(fn)
    if not module or module.split(".")[0] in _PURE and not module.startswith(_IMPURE) or _is_users_module(module):
        return
    raise CompileError(f"{current_where()}: {module}.{name}() has to run at each call, as its result or effect may differ; "
                       "do it outside, pass its result as an argument, or use the functions of ops")  # fmt: skip


def _is_users_module(name: str) -> bool:
    """Whether a module is neither the standard library's nor an installed package's."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return name == "__main__"
    return not file.startswith((*STANDARD, *SITE))


def _call_builtin(stage: Stage, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    from mycel.frontend.builtin_calls import SPECIAL

    special = SPECIAL.get(fn)
    if special is not None:
        return special(stage, args, kwargs)
    owner = fn.__self__
    if owner is not None and type(owner) in MUTATED:
        stage.note_container(owner)
        result = fn(*args, **kwargs)
        return stage.created(result) if fn.__name__ == "copy" else result
    return call_natively(stage, fn, args, kwargs)
