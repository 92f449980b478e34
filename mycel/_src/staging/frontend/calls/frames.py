"""Frames of interpreted code, functions compiled to closures, and the functions that they define.

Every call by interpreted code goes through `call`: to the stage, which decides how it is done, or
to Python where nothing is staged.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import Where, current_where, set_where
from mycel._src.staging.frontend.calls import argument_errors
from mycel._src.staging.frontend.graph_building.stage import Stage, current_stage
from mycel._src.staging.frontend.source_code.scope_analysis import NameScope, contains_yield

__all__ = ["Closure", "Code", "Frame", "call", "mangled"]


class Undefined:
    """A variable that is set where a tensor decides, and not everywhere.

    `text` says so, and `where` is the place of the condition or the loop. Where Python can have
    values, `value` is the variable's where `flag`, a bool or a tensor, says that it is set.
    """

    __slots__ = ("text", "where", "value", "flag")

    def __init__(self, text: str, where: Where | None, value: Any = None, flag: Any = None) -> None:
        self.text, self.where, self.value, self.flag = text, where, value, flag


class Frame:
    """The variables of one activation of the function `code`.

    `outer` is the frame of the function in which it was defined by interpreted code, `globals_` are
    its global variables, `cells` the variables of the real function's closure, and `stage` is the
    stage that runs it, if any.
    """

    __slots__ = ("vars", "outer", "globals", "cells", "stage", "code", "undefined", "owner", "__weakref__")

    def __init__(
        self,
        variables: dict[str, Any],
        outer: Frame | None,
        globals_: Any,
        cells: Any,
        stage: Stage | None,
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
        self.undefined: dict[str, Undefined] | None = None
        self.owner: Any = None


class Code:
    """A function as closures, which `build` makes of its syntax tree `node`, with its parameters.

    `file` and `name` are the function's, `scope` has the names that it binds, `free` are the
    variables of its closure, and `class_name` is the class that it is written in, or "".
    """

    def __init__(
        self,
        node: Any,
        file: str,
        name: str,
        scope: NameScope,
        free: tuple[str, ...],
        class_name: str,
        build: Callable[[Any, Code], Callable[[Frame], Any]],
    ) -> None:
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
        self.build = build
        self.run = build(node, self)

    def bind(self, stage: Stage | None, args: Any, kwargs: Any, defaults: Any, keyword_defaults: Any) -> dict[str, Any]:
        """Return the variables with which a call with `args` and `kwargs` begins.

        `defaults` and `keyword_defaults` are those of the function; `stage` is told of the
        dictionary that is made for further named arguments. Raises TypeError, in Python's words,
        for arguments that do not fit.
        """
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
            raise argument_errors.too_many(self.qualname, len(names), len(defaults or ()), len(args), by_keyword)
        first = len(names) - len(defaults or ())
        for i in range(max(first, 0), len(names)):
            variables.setdefault(names[i], defaults[i - first])
        missing = [n for n in names if n not in variables]
        if missing:
            raise argument_errors.missing(self.qualname, "positional", missing)
        for name in self.keyword_only:
            if name not in variables:
                if keyword_defaults and name in keyword_defaults:
                    variables[name] = keyword_defaults[name]
                else:
                    missing.append(name)
        if missing:
            raise argument_errors.missing(self.qualname, "keyword-only", missing)
        if self.variadic is not None:
            variables[self.variadic] = tuple(args[len(names) :])
        if self.keywords is not None:
            variables[self.keywords] = rest if stage is None else stage.created(rest)
        return variables


def mangled(name: str, class_name: str) -> str:
    """Return a name as Python stores it: ``__x`` inside a class is private to it."""
    if class_name and name.startswith("__") and not name.endswith("__") and class_name.strip("_"):
        return f"_{class_name.lstrip('_')}{name}"
    return name


class Closure:
    """A function that interpreted code defined: `code` with the `frame` in which it was defined.

    `defaults` and `keyword_defaults` are those of its parameters, and `name` is its name.
    """

    __slots__ = ("_code", "_frame", "_owner", "_defaults", "_keyword_defaults", "__dict__", "__weakref__")

    def __init__(
        self, code: Code, frame: Frame, defaults: tuple[Any, ...], keyword_defaults: dict[str, Any] | None, name: str
    ) -> None:
        self._code, self._frame = code, frame
        self._defaults, self._keyword_defaults = defaults, keyword_defaults
        self.__name__ = name
        self.__qualname__ = code.qualname = f"{frame.code.qualname}.<locals>.{name}"
        self.__module__ = frame.globals.get("__name__", "")
        self.__doc__ = ast.get_docstring(code.node) if not isinstance(code.node, ast.Lambda) else None
        self._owner: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(current_stage(), args, kwargs)

    def run(self, stage: Stage | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code = self._code
        variables = code.bind(stage, args, kwargs, self._defaults, self._keyword_defaults)
        outer = self._frame
        frame = Frame(variables, outer, outer.globals, outer.cells, stage, code)
        frame.owner = self._owner
        return _run(frame) if stage is None else stage.activate(frame)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__}>"


def _run(frame: Frame) -> Any:
    """Run a frame's body where nothing is staged, and restore the user's position afterwards."""
    before = current_where()
    if frame.code.is_generator:
        return frame.code.run(frame)
    try:
        return frame.code.run(frame)
    finally:
        set_where(before)


def call(stage: Stage | None, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``fn(*args, **kwargs)`` for interpreted code, by way of `stage` if there is one."""
    return fn(*args, **kwargs) if stage is None else stage.invoke(fn, args, kwargs)
