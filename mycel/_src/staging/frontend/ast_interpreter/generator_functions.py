"""Interprets generator functions: a body with `yield` becomes a Python generator over a frame.

Statements without a `yield` in them run as elsewhere. Those with one are built here a second time
as generators, so that they can stop in the middle. Their control flow must not depend on a tensor:
the rest of the generator would have to be run in both branches, so such functions are refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from mycel._src.compiler.ir.graph import Where, set_where
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.calls import operator_methods
from mycel._src.staging.frontend.calls.frames import Frame, call
from mycel._src.staging.frontend.control_flow import conditionals, loop_unrolling
from mycel._src.staging.frontend.control_flow.conditionals import BREAK, CONTINUE, Dynamic, Return
from mycel._src.staging.frontend.source_code.scope_analysis import contains_yield
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Managed", "build_generator", "holds_yield"]

Steps = Callable[[Frame], Iterator[Any]]


def holds_yield(node: Any) -> bool:
    """Return whether a statement or expression itself yields, not counting functions inside it."""
    return contains_yield(ast.Module(body=[node], type_ignores=[]))


def build_generator(builder: Any, body: list[ast.stmt]) -> Callable[[Frame], Any]:
    """Return a function from a frame with the arguments to the generator of a function's body."""
    run = _Builder(builder).block(body)

    def make(f: Frame) -> Any:
        def steps() -> Any:
            signal = yield from run(f)
            return signal.value if type(signal) is Return else None

        made = steps()
        if f.stage is None:
            return made
        f.stage.generators.append(made)
        return f.stage.created(made)

    return make


class Managed:
    """The context manager that `contextlib.contextmanager` makes of a generator: it is entered by
    running to the yield, and left by running on from there.
    """

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __enter__(self) -> Any:
        for entered in self.generator:
            return entered
        raise RuntimeError("generator didn't yield")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        try:
            if error is None:
                next(self.generator)
            else:
                self.generator.throw(error)
        except StopIteration as end:
            return error is not None and end is not error
        except BaseException as raised:
            if raised is error:
                return False
            raise
        raise RuntimeError("generator didn't stop")


def _plain(signal: Any, where: Where) -> Any:
    if type(signal) is Dynamic:
        raise CompileError(f"{where}: a tensor decides how this generator goes on; collect its items in a list instead")
    return signal


class _Builder:
    """The builder of statements that yield, which uses the builder of all others."""

    def __init__(self, ordinary: Any) -> None:
        self.ordinary = ordinary

    def block(self, body: list[ast.stmt]) -> Any:
        parts = []
        for s in body:
            yields = holds_yield(s)
            parts.append((self.ordinary.where(s), yields, self.statement(s) if yields else self.ordinary.block([s])))

        def run(f: Frame) -> Any:
            for where, yields, part in parts:
                set_where(where)
                signal = (yield from part(f)) if yields else _plain(part(f), where)
                if signal is not None:
                    return signal
            return None

        return run

    def statement(self, node: Any) -> Any:
        build = getattr(self, f"_{type(node).__name__}", None)
        return build(node) if build is not None else self.unsupported(node)

    def unsupported(self, node: Any) -> Any:
        where = self.ordinary.where(node)

        def fail(f: Frame) -> Any:
            yield from ()
            raise CompileError(f"{where}: a yield inside of this is not compiled; give it a line of its own")

        return fail

    # Yields.

    def value(self, node: Any) -> Any:
        """Return the steps of a `yield` that is a whole expression; they end with its value."""
        if isinstance(node, ast.Yield) and (node.value is None or not holds_yield(node.value)):
            given = self.ordinary.expression(node.value) if node.value is not None else (lambda f: None)

            def one(f: Frame) -> Any:
                return (yield given(f))

            return one
        if isinstance(node, ast.YieldFrom) and not holds_yield(node.value):
            source = self.ordinary.expression(node.value)

            def all_of(f: Frame) -> Any:
                return (yield from operator_methods.iterate(f.stage, source(f)))

            return all_of
        return None

    def _Expr(self, node: ast.Expr) -> Any:
        steps = self.value(node.value)
        if steps is None:
            return self.unsupported(node)

        def run(f: Frame) -> Any:
            yield from steps(f)

        return run

    def _Assign(self, node: ast.Assign) -> Any:
        steps = self.value(node.value)
        if steps is None or any(holds_yield(t) for t in node.targets):
            return self.unsupported(node)
        stores = [self.ordinary.target(t) for t in node.targets]

        def run(f: Frame) -> Any:
            found = yield from steps(f)
            for store in stores:
                store(f, found)

        return run

    def _Return(self, node: ast.Return) -> Any:
        steps = self.value(node.value)
        if steps is None:
            return self.unsupported(node)

        def run(f: Frame) -> Any:
            return Return((yield from steps(f)))

        return run

    # Control flow.

    def _decided(self, node: ast.expr) -> Callable[[Frame], bool]:
        test, where = self.ordinary.expression(node), self.ordinary.where(node)

        def run(f: Frame) -> bool:
            found = conditionals.truth(f, test(f), where)
            if isinstance(found, Tensor):
                _plain(Dynamic(found, frozenset()), where)
            return bool(found)

        return run

    def _If(self, node: ast.If) -> Any:
        if holds_yield(node.test):
            return self.unsupported(node)
        test, body, orelse = self._decided(node.test), self.block(node.body), self.block(node.orelse)

        def run(f: Frame) -> Any:
            return (yield from (body if test(f) else orelse)(f))

        return run

    def _While(self, node: ast.While) -> Any:
        if holds_yield(node.test):
            return self.unsupported(node)
        test, body, orelse = self._decided(node.test), self.block(node.body), self.block(node.orelse)

        def run(f: Frame) -> Any:
            while test(f):
                signal = yield from body(f)
                if signal is BREAK:
                    return None
                if signal is not None and signal is not CONTINUE:
                    return signal
            return (yield from orelse(f))

        return run

    def _For(self, node: ast.For) -> Any:
        if holds_yield(node.iter):
            return self.unsupported(node)
        source, store, where = (
            self.ordinary.expression(node.iter),
            self.ordinary.target(node.target),
            self.ordinary.where(node),
        )
        body, orelse = self.block(node.body), self.block(node.orelse)

        def run(f: Frame) -> Any:
            items = source(f)
            for item in items if f.stage is None else loop_unrolling.static_items(f, items, where):
                store(f, item)
                signal = yield from body(f)
                if signal is BREAK:
                    return None
                if signal is not None and signal is not CONTINUE:
                    return signal
            return (yield from orelse(f))

        return run

    def _With(self, node: ast.With) -> Any:
        if any(holds_yield(i.context_expr) for i in node.items):
            return self.unsupported(node)
        items = [
            (
                self.ordinary.expression(i.context_expr),
                self.ordinary.target(i.optional_vars) if i.optional_vars is not None else None,
            )
            for i in node.items
        ]
        body = self.block(node.body)

        def enter(f: Frame, level: int) -> Any:
            if level == len(items):
                return (yield from body(f))
            source, store = items[level]
            manager = source(f)
            entered = call(f.stage, self.ordinary.special(f, manager, "__enter__"), (), {})
            leave = self.ordinary.special(f, manager, "__exit__")
            try:
                if store is not None:
                    store(f, entered)
                signal = yield from enter(f, level + 1)
            except BaseException as error:
                if self.ordinary.internal(error) or not call(
                    f.stage, leave, (type(error), error, error.__traceback__), {}
                ):
                    raise
                return None
            call(f.stage, leave, (None, None, None), {})
            return signal

        return lambda f: enter(f, 0)

    def _Try(self, node: ast.Try) -> Any:
        body, orelse, final = self.block(node.body), self.block(node.orelse), self.block(node.finalbody)
        handlers = [
            (self.ordinary.expression(h.type) if h.type is not None else None, h.name, self.block(h.body))
            for h in node.handlers
        ]

        def handled(f: Frame) -> Any:
            try:
                signal = yield from body(f)
            except Exception as error:
                if self.ordinary.internal(error):
                    raise
                for kind, name, action in handlers:
                    if kind is None or isinstance(error, kind(f)):
                        if name is not None:
                            f.vars[name] = error
                        try:
                            return (yield from action(f))
                        finally:
                            if name is not None:
                                f.vars.pop(name, None)
                raise
            return signal if signal is not None else (yield from orelse(f))

        def run(f: Frame) -> Any:
            try:
                signal = yield from handled(f)
            except BaseException as error:
                if not self.ordinary.internal(error):
                    left = yield from final(f)
                    if left is not None:
                        return left
                raise
            left = yield from final(f)
            return signal if left is None else left

        return run
