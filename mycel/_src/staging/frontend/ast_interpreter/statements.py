"""Interprets statements: each becomes a closure from a frame to a signal.

A signal is None to go on, or says how the block is left.

A block stops at the first signal. If it depends on a tensor whether the block was left
(`conditionals.Dynamic`), its rest runs under that condition. If one branch of an `if` always leaves
the block, the rest of the block becomes part of the other branch, so that nothing is staged twice.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from mycel._src.compiler.ir.graph import set_where
from mycel._src.foundation.errors import CompileError, NeedsValue, Unsupported
from mycel._src.staging.frontend.ast_interpreter.assignments import AssignmentBuilder
from mycel._src.staging.frontend.ast_interpreter.generator_functions import build_generator
from mycel._src.staging.frontend.ast_interpreter.match_patterns import PatternBuilder
from mycel._src.staging.frontend.calls.attribute_access import load_attribute, load_from_module
from mycel._src.staging.frontend.calls.frames import Closure, Code, Frame, call, mangled
from mycel._src.staging.frontend.control_flow import conditionals, loop_unrolling
from mycel._src.staging.frontend.control_flow.conditionals import BREAK, CONTINUE, Dynamic, Return
from mycel._src.staging.frontend.source_code.scope_analysis import assigned_names, scope_of, terminates
from mycel._src.staging.frontend.source_code.tracebacks import Caught, keep_position
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["StatementBuilder", "build_body"]

Run = Callable[[Frame], Any]
Store = Callable[[Frame, Any], None]


def build_body(node: Any, code: Code) -> Run:
    """Return the closure of a function's body, from a frame with the arguments to the result."""
    builder = StatementBuilder(code, code.scope)
    if isinstance(node, ast.Lambda):
        value = builder.expression(node.body)
        where = builder.where(node.body)

        def evaluate(f: Frame) -> Any:
            set_where(where)
            return value(f)

        return evaluate
    if code.is_generator:
        return build_generator(builder, node.body)
    body = builder.block(node.body)

    def run(f: Frame) -> Any:
        signal = body(f)
        if signal is None:
            return None
        return signal.value if type(signal) is Return else conditionals.result_of(f, signal)

    return run


class StatementBuilder(PatternBuilder, AssignmentBuilder):
    """The builder of the closures of the statements in one scope of a function."""

    def special(self, f: Frame, target: Any, name: str) -> Any:
        """Return a special method of an object."""
        return _special(f, target, name)

    def internal(self, error: BaseException) -> bool:
        """Return whether an error is the compiler's own."""
        return _internal(error)

    def block(self, body: list[ast.stmt]) -> Callable[..., Any]:
        """Return the closure of a sequence of statements, which can start at any of them."""
        parts = [(self.where(s), self.statement(s), isinstance(s, ast.If) and self._absorbs(s)) for s in body]
        count = len(parts)

        def run(f: Frame, start: int = 0) -> Any:
            for i in range(start, count):
                where, statement, absorbs = parts[i]
                set_where(where)
                if absorbs:
                    done, signal = statement(f, partial(run, start=i + 1))
                    if done:
                        return signal
                else:
                    signal = statement(f)
                if signal is not None:
                    if type(signal) is Dynamic and i + 1 < count:
                        return conditionals.after(f, signal, partial(run, start=i + 1))
                    return signal
            return None

        return run

    def statement(self, node: ast.stmt) -> Any:
        build = getattr(self, f"_{type(node).__name__}", None)
        if build is None:
            return self.unsupported(node, f"{type(node).__name__} statements")
        return build(node)

    # Simple statements.

    def _Expr(self, node: ast.Expr) -> Run:
        value = self.expression(node.value)

        def run(f: Frame) -> None:
            value(f)

        return run

    def _Pass(self, node: ast.Pass) -> Run:
        return lambda f: None

    _Global = _Nonlocal = _Pass

    def _Return(self, node: ast.Return) -> Run:
        if node.value is None:
            return lambda f: Return(None)
        value = self.expression(node.value)
        return lambda f: Return(value(f))

    def _Break(self, node: ast.Break) -> Run:
        return lambda f: BREAK

    def _Continue(self, node: ast.Continue) -> Run:
        return lambda f: CONTINUE

    def _Assert(self, node: ast.Assert) -> Run:
        test = self.expression(node.test)
        message = self.expression(node.msg) if node.msg is not None else None
        where, whole = self.where(node.test), self.where(node)

        def run(f: Frame) -> None:
            if not conditionals.static_truth(f, test(f), where, "an assertion"):
                set_where(whole)
                raise AssertionError(*([message(f)] if message is not None else []))

        return run

    def _Raise(self, node: ast.Raise) -> Run:
        error = self.expression(node.exc) if node.exc is not None else None
        cause = self.expression(node.cause) if node.cause is not None else None
        where = self.where(node)

        def run(f: Frame) -> None:
            if f.stage is not None and f.stage.is_conditional:
                raise CompileError(
                    f"{where}: whether this is raised is decided by a tensor; check the condition outside the compiled "
                    "function"
                )
            if error is None:
                raise  # noqa: PLE0704
            value = error(f)
            if isinstance(value, type):
                value = value()
            origin = cause(f) if cause is not None else None
            set_where(where)
            if cause is not None:
                raise value from origin
            raise value

        return run

    def _Import(self, node: ast.Import) -> Run:
        stores = [(a.name, a.asname, self.store_name(a.asname or a.name.split(".")[0], self.scope)) for a in node.names]

        def run(f: Frame) -> None:
            for name, alias, store in stores:
                module = importlib.import_module(name)
                found = module if alias else importlib.import_module(name.split(".")[0])
                if f.stage is not None:
                    f.stage.guards.item(sys.modules, found.__name__, found)
                store(f, found)

        return run

    def _ImportFrom(self, node: ast.ImportFrom) -> Run:
        names = [(a.name, self.store_name(a.asname or a.name, self.scope)) for a in node.names]
        level, origin = node.level, node.module or ""

        def run(f: Frame) -> None:
            module = builtins.__import__(origin, f.globals, None, [n for n, _ in names], level)
            for name, store in names:
                if not hasattr(module, name):
                    importlib.import_module(f"{module.__name__}.{name}")
                store(f, getattr(module, name) if f.stage is None else load_from_module(f.stage, module, name))

        return run

    # Definitions.

    def _FunctionDef(self, node: ast.FunctionDef) -> Run:
        make = self.function(node, node.name)
        decorators = [self.expression(d) for d in node.decorator_list]
        store = self.store_name(node.name, self.scope)

        def run(f: Frame) -> None:
            chosen = [d(f) for d in decorators]
            value = make(f)
            for decorate in reversed(chosen):
                value = call(f.stage, decorate, (value,), {})
            store(f, value)

        return run

    def _ClassDef(self, node: ast.ClassDef) -> Run:
        bases, decorators = self._items(node.bases), [self.expression(d) for d in node.decorator_list]
        keywords = [(k.arg, self.expression(k.value)) for k in node.keywords]
        inner = StatementBuilder(_in_class(self.code, node.name), scope_of(node, self.scope))
        body, store = inner.block(node.body), self.store_name(node.name, self.scope)

        def run(f: Frame) -> None:
            frame = Frame({}, f, f.globals, f.cells, f.stage, f.code)

            def fill(namespace: dict[str, Any]) -> None:
                frame.vars = namespace
                namespace["__module__"] = f.globals.get("__name__")
                namespace["__qualname__"] = node.name
                body(frame)

            chosen = [d(f) for d in decorators]
            made: Any = types.new_class(
                node.name, tuple(bases(f)), {k: v(f) for k, v in keywords if k is not None}, fill
            )
            for value in list(vars(made).values()):
                member = getattr(value, "__func__", getattr(value, "fget", value))
                if type(member) is Closure:
                    member._owner = made
            for decorate in reversed(chosen):
                made = call(f.stage, decorate, (made,), {})
            if f.stage is not None:
                f.stage.created(made)
            store(f, made)

        return run

    # Control flow.

    def _absorbs(self, node: ast.If) -> bool:
        return terminates(node.body) != terminates(node.orelse)

    def _If(self, node: ast.If) -> Any:
        test, body = self.expression(node.test), self.block(node.body)
        orelse = self.block(node.orelse) if node.orelse else (lambda f: None)
        where = self.where(node.test)
        if not self._absorbs(node):

            def run(f: Frame) -> Any:
                truth = conditionals.truth(f, test(f), where)
                if isinstance(truth, Tensor):
                    return conditionals.fork(f, truth, body, orelse, where)
                return body(f) if truth else orelse(f)

            return run

        def absorb(f: Frame, rest: Run) -> tuple[bool, Any]:
            truth = conditionals.truth(f, test(f), where)
            if not isinstance(truth, Tensor):
                return False, body(f) if truth else orelse(f)
            return True, conditionals.fork(
                f, truth, conditionals.then(body, rest), conditionals.then(orelse, rest), where
            )

        return absorb

    def _While(self, node: ast.While) -> Run:
        loop = loop_unrolling.Loop(
            self.block(node.body),
            self.block(node.orelse) if node.orelse else None,
            self.where(node),
            sorted(self._mangled(assigned_names([node.test, *node.body]))),
        )
        test = self.expression(node.test)
        return lambda f: loop_unrolling.run_while(f, loop, test)

    def _For(self, node: ast.For) -> Run:
        loop = loop_unrolling.Loop(
            self.block(node.body),
            self.block(node.orelse) if node.orelse else None,
            self.where(node),
            sorted(self._mangled(assigned_names([node.target, *node.body]))),
        )
        source, store = self.expression(node.iter), self.target(node.target)
        return lambda f: loop_unrolling.run_for(f, loop, source(f), store)

    def _mangled(self, names: set[str]) -> set[str]:
        return {mangled(n, self.code.class_name) for n in names}

    def _With(self, node: ast.With) -> Run:
        items = [
            (self.expression(i.context_expr), self.target(i.optional_vars) if i.optional_vars is not None else None)
            for i in node.items
        ]
        body = self.block(node.body)

        def enter(f: Frame, level: int) -> Any:
            if level == len(items):
                return body(f)
            source, store = items[level]
            manager = source(f)
            entered = call(f.stage, _special(f, manager, "__enter__"), (), {})
            leave = _special(f, manager, "__exit__")
            try:
                if store is not None:
                    store(f, entered)
                signal = enter(f, level + 1)
            except Exception as error:
                keep_position(error)
                if f.stage is not None:
                    for made in (error, error.__traceback__):
                        f.stage.created(made)
                if _internal(error) or not call(f.stage, leave, (type(error), error, error.__traceback__), {}):
                    raise
                return None
            call(f.stage, leave, (None, None, None), {})
            return signal

        return lambda f: enter(f, 0)

    def _Try(self, node: ast.Try) -> Run:
        body, orelse, final = self.block(node.body), self.block(node.orelse), self.block(node.finalbody)
        handlers = [
            (self.expression(h.type) if h.type is not None else None, h.name, self.block(h.body)) for h in node.handlers
        ]

        def handled(f: Frame) -> Any:
            try:
                signal = body(f)
            except Exception as error:
                keep_position(error)
                if _internal(error):
                    raise
                for kind, name, action in handlers:
                    if kind is None or isinstance(error, kind(f)):
                        caught = Caught(error)
                        if name is not None:
                            f.vars[name] = error
                        try:
                            return action(f)
                        except Exception as again:
                            caught.leave(again, f)
                            raise
                        finally:
                            if name is not None:
                                f.vars.pop(name, None)
                raise
            if signal is None and node.orelse:
                return orelse(f)
            if type(signal) is Dynamic and node.orelse:
                return conditionals.after(f, signal, orelse)
            return signal

        if not node.finalbody:
            return handled

        def finished(f: Frame) -> Any:
            try:
                signal = handled(f)
            except Exception as error:
                keep_position(error)
                if not _internal(error):
                    left = final(f)
                    if left is not None:
                        return left
                raise
            left = final(f)
            return signal if left is None else left

        return finished

    def _Match(self, node: ast.Match) -> Run:
        subject = self.expression(node.subject)
        cases = [
            (
                self.pattern(c.pattern),
                self.expression(c.guard) if c.guard is not None else None,
                self.block(c.body),
                self.where(c.pattern),
            )
            for c in node.cases
        ]

        def attempt(f: Frame, value: Any, start: int) -> Any:
            for i in range(start, len(cases)):
                matches, guard, body, where = cases[i]
                truth = matches(f, value)
                if isinstance(truth, Tensor) and f.stage is not None and f.stage.may_decide:
                    truth = f.stage.decide(truth)
                if truth is not True and isinstance(truth, Tensor):
                    set_where(where)
                    raise CompileError(f"{where}: a tensor cannot be matched with values; use if")
                if not truth:
                    continue
                if guard is not None:
                    chosen = conditionals.truth(f, guard(f), where)
                    if isinstance(chosen, Tensor):
                        return conditionals.fork(f, chosen, body, partial(attempt, value=value, start=i + 1), where)
                    if not chosen:
                        continue
                return body(f)
            return None

        return lambda f: attempt(f, subject(f), 0)


def _in_class(code: Code, name: str) -> Code:
    """Return a copy of the code for the statements of a class body."""
    made = object.__new__(Code)
    made.__dict__.update(code.__dict__)
    made.class_name = name
    return made


def _internal(error: BaseException) -> bool:
    """Return whether an error is the compiler's, which handlers of the program must not catch."""
    return isinstance(error, (CompileError, NeedsValue, Unsupported))


def _special(f: Frame, target: Any, name: str) -> Any:
    return getattr(target, name) if f.stage is None else load_attribute(f.stage, target, name)
