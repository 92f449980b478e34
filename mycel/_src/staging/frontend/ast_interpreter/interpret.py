"""The AST interpreter, which runs a user's function over abstract values.

Plain Python values stay as they are, and tensors become nodes.

A function's syntax tree is turned once into closures of Python (`expressions`, `statements`), which
are called with a `Frame`. Every call goes through `Interpreter.invoke`, which decides how it is
made: functions of the user are interpreted; everything else (the library, which is written for
staged tensors, builtins, other packages, functions without source) runs natively. Functions and
lambdas that interpreted code defines are `Closure`s: real callables that remember their frame, so
that native code can call them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.graph import current_where, set_where
from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.calls.frames import Closure, Code, Frame
from mycel._src.staging.frontend.calls.native_calls import call_natively, callback
from mycel._src.staging.frontend.calls.user_code import MUTATED, flags_of, follows_users, is_jit, is_native
from mycel._src.staging.frontend.control_flow.branch_join import Choice
from mycel._src.staging.frontend.control_flow.conditionals import call_chosen
from mycel._src.staging.frontend.graph_building.forward_reuse import remember
from mycel._src.staging.frontend.graph_building.stage import Activation, Stage
from mycel._src.staging.frontend.parallelism.cell_path import inside_cell
from mycel._src.staging.frontend.parallelism.operator_marks import (
    construct_by_operators,
    is_staged_whole,
    marked_call,
    marked_cell,
    marked_function,
)
from mycel._src.staging.frontend.source_code.function_source import NoSource, definition_of
from mycel._src.staging.frontend.source_code.scope_analysis import scope_of
from mycel._src.staging.frontend.source_code.tracebacks import note_place
from mycel._src.staging.frontend.specialization import guards
from mycel._src.staging.frontend.specialization.guards import lookup
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Interpreter"]

# Up to Python 3.10 each call of Python's own takes a piece of the thread's stack.
_DEEPEST = 12_000 if sys.version_info >= (3, 11) else 400


# By the number of a code object, which stays alive with it: equal ones may be of different files.
_codes = Remembered[int, tuple[types.CodeType, Code | None, str]]("functions read", MANY)


def code_of(function: types.FunctionType) -> Code | None:
    """Return the code of a real function as closures; None for one that has to run natively."""
    return _codes.recall(id(function.__code__), lambda: _read(function))[1]


def _read(function: types.FunctionType) -> tuple[types.CodeType, Code | None, str]:
    """Return the code object of a function, its closures, and the reason if it runs natively."""
    from mycel._src.staging.frontend.ast_interpreter.statements import build_body

    raw = function.__code__
    try:
        node, class_name = definition_of(function)
        if flags_of(function) & ~inspect.CO_GENERATOR:
            return raw, None, "it is a coroutine"
        scope = scope_of(node, None)
        code = Code(node, raw.co_filename, raw.co_name, scope, raw.co_freevars, class_name, build_body)
    except NoSource as error:
        return raw, None, str(error)
    code.qualname = function.__qualname__
    return raw, code, ""


def why_native(function: Any) -> str:
    """Return why a user's function was not interpreted; "" if it was."""
    found = _codes.get(id(getattr(function, "__code__", None)))
    return found[2] if found is not None else ""


class Interpreter(Stage):
    """A stage that interprets the code of the function that it stages."""

    def invoke(self, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return ``fn(*args, **kwargs)``, called in the way that fits `fn`."""
        kind = type(fn)
        if kind is types.FunctionType:
            return call_function(self, fn, args, kwargs)
        if kind is types.MethodType:
            inner = fn.__func__
            if type(inner) is types.FunctionType and is_native(inner):
                _guard_receiver(self, fn.__self__)
            if type(inner) is types.FunctionType or type(inner) is Closure or is_jit(inner):
                return self.invoke(inner, (fn.__self__, *args), kwargs)
            return call_natively(self, fn, args, kwargs)
        if kind is Closure:
            return fn.run(self, args, kwargs)
        if kind is types.BuiltinFunctionType or kind is types.BuiltinMethodType:
            return _call_builtin(self, fn, args, kwargs)
        if isinstance(fn, type):
            from mycel._src.staging.frontend.ast_interpreter.object_construction import construct

            return construct(self, fn, args, kwargs)
        if kind is functools.partial:
            if not self.is_fresh(fn):
                self.guards.attribute(fn, "args", fn.args)
                self.guards.attribute(fn, "keywords", fn.keywords)
            return self.invoke(fn.func, (*fn.args, *args), {**fn.keywords, **kwargs})
        if is_jit(fn):
            return self.invoke(fn.__wrapped__, args, kwargs)
        if kind is functools._lru_cache_wrapper:
            return self.invoke(fn.__wrapped__, args, kwargs)
        method = guards.lookup(kind, "__call__")
        if type(method) is types.FunctionType and not is_native(method):
            return call_function(self, method, (fn, *args), kwargs)
        if kind is Choice:
            return call_chosen(self, fn, args, kwargs)
        if kind.__module__.startswith("mycel._src.staging.derivatives"):
            return self.as_unit(fn, lambda: call_natively(self, fn, args, kwargs), args, kwargs)
        return call_natively(self, fn, args, kwargs)

    def activate(self, frame: Frame) -> Any:
        """Run a frame's body, and restore the user's position afterwards."""
        before = current_where()
        if frame.code.is_generator:
            return frame.code.run(frame)
        if self.levels:
            self.created(frame.vars)
        active = self.active.get(frame.code)
        if active is None:
            active = self.active[frame.code] = []
        elif active:
            from mycel._src.staging.frontend.control_flow.recursion import recursive_call

            self.recurses = True

            found = recursive_call(self, frame)
            if found is not None:
                return found[0]
        self.calls += 1
        if self.calls > _DEEPEST:
            self.calls -= 1
            raise CompileError(
                f"{before}: calls nest more than {_DEEPEST} deep while {frame.code.name} is compiled; "
                "a recursion must end by plain Python values, or be written as a loop"
            )
        active.append(Activation(dict(frame.vars), len(self.scopes)))
        try:
            result = frame.code.run(frame)
            if self.calls == 1:
                self.ended = frame.code.name, current_where()
            return result
        except Exception as error:
            note_place(error, frame.code.file, frame.code.line, frame.code.name, frame.vars)
            raise
        finally:
            active.pop()
            self.calls -= 1
            set_where(before)

    def follow(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Interpret a function of the library as if the user had written it, so that conditions
        in it may depend on tensors.
        """
        assert isinstance(fn, types.FunctionType)
        return interpret(self, fn, args, {})

    def call_cell(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a Cell, interpreting its construct."""
        with inside_cell(cell):
            if kwargs:
                return self._call_cell(cell, args, kwargs)
            return remember(self, cell, lambda: self._call_cell(cell, args, kwargs), args)

    def _call_cell(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if cell._strategy is None and is_staged_whole(cell):
            return marked_call(
                self, type(cell).__name__, None, lambda *a, **k: self._call_whole(cell, a, k), args, kwargs
            )
        if cell._strategy is None:
            return self._call_whole(cell, args, kwargs)
        return marked_cell(self, cell, cell._strategy, lambda *a, **k: self._call_whole(cell, a, k), args, kwargs)

    def _call_whole(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        construct = cell.construct
        invoke = lambda fn, *a: self.invoke(fn, a, {})
        function = getattr(construct, "__func__", construct)
        for name in ("construct", "bprop"):
            self.guards.of_type(type(cell), name, lookup(type(cell), name))
        if not is_native(function):
            if "construct" in cell.__dict__:
                self.guards.cell_attribute(cell, "construct", cell.__dict__["construct"])
            else:
                self.guards.unset(cell, "construct")
            self.guards.cell(cell)
            return cell.run_with_hooks(lambda *a, **k: self.invoke(construct, a, k), args, kwargs, invoke)
        self.guards.native_cell(cell)
        construct = construct_by_operators(self, cell, construct)
        if follows_users(cell):
            run = lambda *a, **k: interpret(self, function, (cell, *a), k)
            return cell.run_with_hooks(run, args, kwargs, invoke)
        return cell.run_with_hooks(construct, args, kwargs, invoke)

    def with_rule(self, values: Sequence[Tensor], operands: Sequence[Tensor], rule: Rule) -> Sequence[Tensor]:
        """Return copies of `values` whose derivative by `operands` is `rule`, the program's own."""
        from mycel._src.staging.frontend.custom_derivatives import attach

        return attach(self, values, operands, rule)


def _guard_receiver(stage: Stage, target: Any) -> None:
    """Guard the attributes of a Cell that a method of the library may read, and which of its
    parameters are trained.
    """
    # A Cell whose constructor is running has nothing yet.
    if isinstance(target, Cell) and "_cells" in target.__dict__:
        for _, cell in target.cells_and_names():
            stage.guards.native_cell(cell)
        for parameter in target.get_parameters():
            stage.guards.attribute(parameter, "requires_grad", parameter.requires_grad)


def call_function(stage: Stage, fn: types.FunctionType, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``fn(*args, **kwargs)`` for a real Python function.

    `stage` interprets it if the user wrote it and it has source; else it runs natively.
    """
    if is_native(fn):
        if fn is dataclasses.replace and len(args) == 1:
            from mycel._src.staging.frontend.calls.attribute_access import load_attribute

            fields = [f.name for f in dataclasses.fields(args[0]) if f.init]
            given = {n: kwargs[n] if n in kwargs else load_attribute(stage, args[0], n) for n in fields}
            return stage.invoke(type(args[0]), (), {**given, **kwargs})
        if "__wrapped__" in fn.__dict__ and fn.__globals__.get("__name__") == "contextlib":
            inner = fn.__dict__["__wrapped__"]
            if type(inner) is types.FunctionType and flags_of(inner) == inspect.CO_GENERATOR and not is_native(inner):
                from mycel._src.staging.frontend.ast_interpreter.generator_functions import Managed

                return stage.created(Managed(stage.invoke(inner, args, kwargs)))
        if hasattr(fn, "dispatch") and hasattr(fn, "registry") and args:
            stage.guards.content(fn.registry)
            return stage.invoke(fn.dispatch(type(args[0])), args, kwargs)
        if not fn.__module__.startswith(_INVOKING):
            args = [callback(v) for v in args]
            kwargs = {k: callback(v) for k, v in kwargs.items()}
        return marked_function(stage, fn, lambda *a, **k: call_natively(stage, fn, a, k), args, kwargs)
    if code_of(fn) is None and not stage.runs_each_time:
        place = f"{current_where()}: " if current_where() else ""
        raise CompileError(
            f"{place}{fn.__qualname__} cannot be followed ({why_native(fn)}), so that it must run at each call; "
            "define it where its source can be read"
        )
    return stage.as_unit(fn, lambda: interpret(stage, fn, args, kwargs), args, kwargs)


def interpret(stage: Stage, fn: types.FunctionType, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``fn(*args, **kwargs)``, which `stage` interprets if `fn` has source, whoever wrote
    it.
    """
    code = code_of(fn)
    if code is None or code.is_generator and stage.runs_each_time:
        return call_natively(stage, fn, args, kwargs)
    stage.guards.attribute(fn, "__code__", fn.__code__)
    if fn.__defaults__:
        stage.guards.attribute(fn, "__defaults__", fn.__defaults__)
    if fn.__kwdefaults__:
        stage.guards.attribute(fn, "__kwdefaults__", fn.__kwdefaults__)
    stage.guards.closure(fn)
    variables = code.bind(stage, args, kwargs, fn.__defaults__, fn.__kwdefaults__)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__)) if fn.__closure__ else None
    return stage.activate(Frame(variables, None, fn.__globals__, cells, stage, code))


_INVOKING = ("mycel._src.staging.derivatives", "mycel._src.staging.compiled.jit", "mycel._src.staging.compiled.vmap")


def _call_builtin(stage: Stage, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    from mycel._src.staging.frontend.ast_interpreter.builtin_calls import SPECIAL

    special = SPECIAL.get(fn)
    if special is not None:
        return special(stage, args, kwargs)
    owner = fn.__self__
    if owner is not None and type(owner) in MUTATED:
        stage.note_container(owner)
        result = fn(*args, **kwargs)
        return stage.created(result) if fn.__name__ == "copy" else result
    return call_natively(stage, fn, args, kwargs)
