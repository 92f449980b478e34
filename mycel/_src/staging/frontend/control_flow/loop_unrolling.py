"""Staging of loops: unrolled while Python's values decide, else a `while_loop` (`tensor_loops`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Where, set_where
from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import CompileError, NeedsValue
from mycel._src.foundation.log import logger
from mycel._src.staging.frontend.calls import operator_methods
from mycel._src.staging.frontend.control_flow.conditionals import (
    BREAK,
    CONTINUE,
    Dynamic,
    Return,
    after,
    code_equals,
    settled,
    truth,
)
from mycel._src.staging.frontend.control_flow.tensor_loops import Loop, Run, next_test, staged_loop, without
from mycel._src.staging.frontend.graph_building.stage import Stage, Unfinished
from mycel._src.staging.frontend.graph_building.symbolic_sizes import SizeRange, giving_up, number_of, open_test
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["Loop", "TensorRange", "run_for", "run_while", "static_items"]

_UNROLLED_ROWS = 16
_FEW_ROUNDS = 8
_LONG_UNROLLED = 2048
_MUCH_UNROLLED = 4096
_MOST_UNROLLED = 200_000


class TensorRange:
    """A ``range`` whose ends or step are tensors."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step


def static_items(f: Any, items: Any, where: Where) -> Any:
    """Return the items of an object over which Python itself iterates."""
    if isinstance(items, TensorRange) and f.stage.may_decide:
        return python_range(f.stage, items)
    if isinstance(items, TensorRange):
        raise CompileError(
            f"{where}: the number of items of a comprehension over range() of a tensor is not known; use a for "
            "statement or ops.arange"
        )
    return operator_methods.iterate(f.stage, items)


def python_range(stage: Stage, items: TensorRange) -> range:
    """Return Python's range for the values of the tensors of a `TensorRange`."""
    ends = (items.start, items.stop, items.step)
    return range(*[int(stage.need_value(v, "").reshape(())) if isinstance(v, Tensor) else v for v in ends])


def run_for(f: Any, loop: Loop, items: Any, store: Any) -> Any:
    """Run the `for` statement `loop` over `items` in the frame `f`, and return its signal.

    `store` assigns an item to the loop's target. The rounds are unrolled, or are one loop if a
    tensor decides their number or if `items` is a tensor with many rows.
    """
    stage = f.stage
    if stage is not None:
        if isinstance(items, SizeRange):
            return _sized(f, loop, items, store)
        if isinstance(items, TensorRange):
            staged = lambda: _for_range(f, loop, items, store)
            return stage.attempt(loop.where, staged, lambda: _rounds(f, loop, iter(python_range(stage, items)), store))
        if (
            isinstance(items, Tensor)
            and items.ndim
            and (isinstance(items.shape[0], Dim) or items.shape[0] > _UNROLLED_ROWS)
        ):

            def counted() -> Any:
                return _sized(f, loop, SizeRange(0, items.shape[0], 1), lambda g, i: store(g, items[i]))

            return stage.attempt(loop.where, counted, lambda: _rounds(f, loop, iter(items), store))
        stage.need_own_iterator(items)
        if isinstance(items, Cell):
            stage.guards.cell(items)
        if type(items) is range and not stage.may_decide and len(items) > _FEW_ROUNDS:
            return _range_rounds(f, loop, items, store)
    return _rounds(f, loop, iter(operator_methods.iterate(stage, items)), store)


class _Unrolling:
    """The count of the operations that the rounds of a loop have become."""

    def __init__(self, f: Any, where: Where) -> None:
        self.scope = None if f.stage is None or f.stage.is_live else f.stage.scope
        self.before = len(self.scope.own) if self.scope is not None else 0
        self.where, self.told = where, False

    def count(self) -> int:
        return len(self.scope.own) - self.before if self.scope is not None else 0

    def check(self) -> None:
        """Warn once about many operations.

        Raises CompileError for more operations than can be compiled in reasonable time.
        """
        count = self.count()
        if count > _MUCH_UNROLLED and not self.told:
            self.told = True
            logger.warning(
                "%s: this loop has been unrolled into more than %d operations, as Python's own values decide its "
                "rounds; range() of a tensor "
                "compiles as one loop, whatever the number of rounds",
                self.where,
                _MUCH_UNROLLED,
            )
        if count > _MOST_UNROLLED:
            raise CompileError(
                f"{self.where}: this loop has been unrolled into more than {_MOST_UNROLLED} operations, as Python's "
                "own values decide its rounds; "
                "let range() of a tensor decide, or compute with whole tensors"
            )


def _range_rounds(f: Any, loop: Loop, items: range, store: Any) -> Any:
    """Run the rounds over a long range of Python numbers, and return their signal.

    They are unrolled until a tensor decides about a break or there are many operations; the
    remaining rounds are one loop if they can be.
    """
    unrolling = _Unrolling(f, loop.where)
    tried = False
    for k, item in enumerate(items):
        store(f, item)
        signal = loop.body(f)
        if signal is BREAK:
            return None
        if type(signal) is Return:
            return signal
        signal = without(f, signal, 2) if signal is not None else None
        rest = items[k + 1 :]
        if not tried and len(rest) > _FEW_ROUNDS and (signal is not None or unrolling.count() > _LONG_UNROLLED):
            tried = True
            with giving_up() as forget:
                try:
                    return _remaining(f, loop, rest, store, signal)
                except (CompileError, NeedsValue) as error:
                    if isinstance(error, Unfinished):
                        raise
                    forget()
        if type(signal) is Dynamic:

            def go_on(g: Any, left: range = rest) -> Any:
                return _rounds(g, loop, iter(left), store)

            return without(f, after(f, signal, go_on), 1)
        unrolling.check()
    return loop.orelse(f) if loop.orelse is not None else None


def _remaining(f: Any, loop: Loop, rest: range, store: Any, signal: Any) -> Any:
    """Run further rounds over Python numbers as one loop, and return its signal.

    `signal` is that of the round before them.
    """
    begin, stop = [f.stage.mark_number(f.stage.literal(v, D.int64)) for v in (rest.start, rest.stop)]
    return _counted(f, loop, begin, stop, rest.step, store, signal)


def _rounds(f: Any, loop: Loop, items: Any, store: Any) -> Any:
    unrolling = _Unrolling(f, loop.where)
    for item in items:
        unrolling.check()
        store(f, item)
        signal = loop.body(f)
        if signal is None or signal is CONTINUE:
            continue
        if signal is BREAK:
            return None
        if type(signal) is Return:
            return signal
        signal = without(f, signal, 2)
        if type(signal) is Dynamic:
            if not f.stage.may_decide:
                return without(f, after(f, signal, lambda g: _rounds(g, loop, items, store)), 1)
            # An attempt to stage the other rounds would consume the items that Python needs.
            signal = settled(f.stage, signal)
        if signal is not None:
            return None if signal is BREAK else signal
    return loop.orelse(f) if loop.orelse is not None else None


def _for_range(f: Any, loop: Loop, items: TensorRange, store: Any) -> Any:
    if isinstance(items.step, Tensor):
        raise CompileError(f"{loop.where}: the step of range() must be a Python number where a tensor is its end")
    if items.step == 0:
        raise ValueError("range() arg 3 must not be zero")
    dtype = (items.stop if isinstance(items.stop, Tensor) else items.start).dtype
    ends = []
    for v in (items.start, items.stop):
        t = v if isinstance(v, Tensor) else f.stage.mark_number(f.stage.literal(v, dtype))
        ends.append(t if t.dtype is dtype else eager.apply(E.cast, t, dtype=dtype))
    return _counted(f, loop, ends[0], ends[1], items.step, store)


def _sized(f: Any, loop: Loop, items: SizeRange, store: Any) -> Any:
    """Run the rounds over a range of sizes as one loop, and return its signal.

    The first round is staged before the loop if it changes the form of a variable that the loop
    carries.
    """
    stage = f.stage
    ends: Callable[[Any], tuple[Tensor, Tensor]] = lambda start: (number_of(stage, start), number_of(stage, items.stop))
    with giving_up() as forget:
        try:
            return _counted(f, loop, *ends(items.start), items.step, store)
        except CompileError:
            # What the first round does could not be undone where effects happen at once.
            if stage.scope.is_branch or stage.is_live:
                raise
            if not (items.start < items.stop if items.step > 0 else items.start > items.stop):
                raise
            forget()
    store(f, items.start)
    signal = loop.body(f)
    if signal is not None and signal is not CONTINUE:
        raise CompileError(
            f"{loop.where}: the first round of this loop leaves it, and the others are staged as one loop"
        )
    return _counted(f, loop, *ends(items.start + items.step), items.step, store)


def _counted(f: Any, loop: Loop, begin: Tensor, stop: Tensor, step: int, assign: Any, signal: Any = None) -> Any:
    compare = E.lt if step > 0 else E.gt
    name = loop.counter

    def alike(t: Tensor) -> Tensor:
        made = make_staged(f.stage.node_of(t))
        return f.stage.mark_number(made) if f.stage.is_number(begin) and f.stage.is_number(stop) else made

    f.vars[name] = alike(begin)

    def body(g: Any) -> Any:
        assign(g, alike(g.vars[name]))
        return loop.body(g)

    def test(g: Any) -> Any:
        g.vars[name] = g.vars[name] + step
        return eager.apply(compare, g.vars[name], stop)

    counted = Loop(body, loop.orelse, loop.where, sorted({*loop.assigned, name}))
    try:
        alive = eager.apply(compare, begin, stop) if signal is None else code_equals(f, signal.code, 0)
        return staged_loop(f, counted, alive, signal, test)
    finally:
        f.vars.pop(name, None)


def run_while(f: Any, loop: Loop, test: Run) -> Any:
    """Run a `while` statement, round by round as long as its test is no tensor, and return its
    signal.
    """
    test = open_test(test) if f.stage is not None else test
    unrolling = _Unrolling(f, loop.where)
    while True:
        unrolling.check()
        decided = truth(f, test(f), loop.where)
        if isinstance(decided, Tensor):
            return _tensor_loop(f, loop, decided, None, test)
        if not decided:
            return loop.orelse(f) if loop.orelse is not None else None
        signal = loop.body(f)
        signal = without(f, signal, 2) if signal is not None else None
        if signal is None:
            continue
        if type(signal) is not Dynamic:
            return None if signal is BREAK else signal
        return _tensor_loop(f, loop, next_test(f, loop, signal, test), signal, test)


def _tensor_loop(f: Any, loop: Loop, alive: Any, signal: Any, test: Run) -> Any:
    """Run the rounds from the state in `f` on, and return their signal.

    `signal` is that of the round before them.
    """
    staged = lambda: staged_loop(f, loop, alive, signal, test)
    return f.stage.attempt(loop.where, staged, lambda: _python_rounds(f, loop, alive, signal, test))


def _python_rounds(f: Any, loop: Loop, alive: Any, signal: Any, test: Run) -> Any:
    """Run the rounds of a `while` statement while the values of its test hold, and return their
    signal.
    """
    stage = f.stage
    decide: Callable[[Any], Any] = lambda t: stage.decide(t, "") if isinstance(t, Tensor) else t
    signal = settled(stage, signal)
    while decide(alive):
        signal = settled(stage, loop.body(f))
        if signal is BREAK:
            return None
        if type(signal) is Return:
            return signal
        set_where(loop.where)
        signal, alive = None, truth(f, test(f), loop.where)
    if signal is not None:
        return signal if type(signal) is Return else None
    return loop.orelse(f) if loop.orelse is not None else None
