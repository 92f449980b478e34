"""Marks inputs and results of each operator during staging, for strategies of parallel training.

Marks are nodes (`prims.distributed.sharding_constraint`).

While operators are divided among devices (`ParallelSettings.dividing`), each call of one has its
inputs and its results marked. The call itself sees its own tensors: an input's node is replaced by
its mark for the time of the call, and afterwards it has its former node, unless the call wrote to
it. A view, whose node follows from another tensor's, and a tensor that is passed again, are passed
as marked tensors, and what the call wrote to these is written to the others. A result that is a
view of something stays one, without a mark, unless the operator has a strategy: then it is a value
of its own.

A function that is not one graph has no marks. An operator called by another one is part of it.
Operators are the objects of `ops`, its functions where the user calls them, and Python's operators
of tensors. Names are MindSpore's: the attributes and classes of the Cells on the way, the
operator's kind, and a number, which counts operators as they are staged.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

from mycel._src.compiler.ir.graph import Node, current_where, toposort
from mycel._src.compiler.ir.sharding.division import Division
from mycel._src.compiler.ir.sharding.strategies import Divisions, Strategy
from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.compiler.prims.distributed.sharding_constraint import INPUT, RESULT, VALUE, Mark, Operator, constrain
from mycel._src.compiler.prims.factors import factors_of
from mycel._src.foundation.log import logger
from mycel._src.foundation.pytree import map_leaves
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import plan
from mycel._src.staging.frontend.calls.user_code import is_native
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.parallelism.cell_path import micro_batch, pipeline_stage, scope_name
from mycel._src.staging.frontend.parallelism.operator_strategies import fitted
from mycel._src.tensors.core.tensor import Tensor, make_staged
from mycel._src.tensors.core.views import root_of

__all__ = [
    "KINDS",
    "construct_by_operators",
    "is_staged_whole",
    "marked_call",
    "marked_cell",
    "marked_function",
    "marked_operator",
    "marks_operator",
    "marked_value",
]


class _Local(threading.local):
    inside = False


_local = _Local()
_OPEN = Strategy()
_PYTHON = {
    operator.add: "Add",
    operator.sub: "Sub",
    operator.mul: "Mul",
    operator.truediv: "Div",
    operator.floordiv: "FloorDiv",
    operator.mod: "FloorMod",
    operator.pow: "Pow",
    operator.matmul: "MatMul",
}
_FUNCTIONS, _OTHERS = ("mycel.ops.", "mycel.mint"), ("mycel.ops.operations", "mycel.ops.resharding")
# The names of operators as objects, by those names in small letters; `mycel.ops` puts them here.
KINDS: dict[str, str] = {}


def marked_call(
    stage: Stage, kind: str, holder: Any, run: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Return ``run(*args, **kwargs)`` with marks around it, where operators are divided in a stage.

    `kind` is the operator's name, and `holder` the object with its `_strategy`; None for an
    operator that has none. Raises ValueError for a strategy that does not fit the tensors.
    """
    devices = _dividing(stage)
    if devices is None or _local.inside:
        return run(*args, **kwargs)
    if holder is not None:
        stage.guard_attribute(holder, "_strategy", holder._strategy)
    wanted = _OPEN if holder is None or holder._strategy is None else holder._strategy
    wanted = fitted(kind, holder, wanted, (args, kwargs))
    pipeline = wanted.stage if wanted.stage >= 0 else pipeline_stage()
    given = wanted.inputs is not None or wanted.results is not None
    name = f"{scope_name()}/{kind}-op{stage.operators}"
    called = Operator(name, kind, current_where(), given, pipeline, micro_batch())
    stage.operators += 1
    marks = _Marks(stage, called, devices)
    _local.inside = True
    try:
        marked, named = marks.enter((args, kwargs), wanted.inputs)
        result = run(*marked, **named)
        if given or not marks.shares(result):
            return marks.leave(result, wanted.results)
    finally:
        _local.inside = False
        marks.restore()
    # The result shares elements with a view that was passed, which only the call itself can keep.
    return run(*args, **kwargs)


def is_staged_whole(cell: Any) -> bool:
    """Return whether a Cell of the library is marked as one operator, for a pipeline."""
    settings = plan()
    if settings is None or settings.pipeline_stages == 1 or not is_native(type(cell).construct):
        return False
    if cell._micro_batch is not None or cell._is_opened:
        return False
    if any(hasattr(v, "attrs") and getattr(v, "_strategy", None) is not None for v in cell.__dict__.values()):
        return False
    inner = [c for _, c in cell.cells_and_names() if c is not cell]
    return not any(c._params or c._pipeline_stage is not None for c in inner)


def marked_function(stage: Stage, fn: Any, run: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``run(*args, **kwargs)``, the call of a function `fn` that the user made in a stage.

    A function of tensors of `ops` is marked as the operator of its name.
    """
    home = fn.__module__
    is_operator = home.startswith(_FUNCTIONS) and not home.startswith(_OTHERS)
    if _dividing(stage) is None or not is_operator or next(_tensors((args, kwargs)), None) is None:
        return run(*args, **kwargs)
    words = fn.__name__.strip("_").split("_")
    kind = KINDS.get("".join(words).lower()) or "".join([w[:1].upper() + w[1:] for w in words])
    return marked_call(stage, kind, None, run, args, kwargs)


def marks_operator(stage: Stage, x: Any, y: Any) -> bool:
    """Return whether a binary operator of Python in a stage is one for `marked_operator`."""
    return _dividing(stage) is not None and (isinstance(x, Tensor) or isinstance(y, Tensor))


def marked_operator(stage: Stage, apply: Any, x: Any, y: Any) -> Any:
    """Return ``apply(x, y)``, a binary operator of Python on tensors in a stage, with marks."""
    return marked_call(stage, _PYTHON.get(apply, apply.__name__), None, apply, (x, y), {})


def marked_cell(
    stage: Stage, cell: Any, strategy: Strategy, run: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Return ``run(*args, **kwargs)``, the call in a stage of a cell or function with a strategy of
    its own.

    Its inputs, its results and the parameters of its plan are marked, and so are the operators that
    it calls. Raises ValueError for a strategy that does not fit.
    """
    devices = _dividing(stage)
    if devices is None:
        return run(*args, **kwargs)
    name = getattr(cell, "__name__", type(cell).__name__)
    called = Operator(
        f"{scope_name()}/{name}-op{stage.operators}", name, current_where(), True, pipeline_stage(), micro_batch()
    )
    stage.operators += 1
    marks = _Marks(stage, called, devices)
    try:
        args, kwargs = marks.enter((args, kwargs), strategy.inputs)
        if strategy.plan:
            marks.parameters(_parameters_of(cell), strategy.plan)
        return marks.leave(run(*args, **kwargs), strategy.results)
    finally:
        marks.restore()


def _parameters_of(cell: Any) -> dict[str, Tensor]:
    """Return the parameters of a cell by their names, and by their paths in it."""
    known = dict(cell.parameters_and_names())
    return {**known, **{p.name: p for p in cell.get_parameters()}}


def marked_value(stage: Stage, value: Tensor, division: Division, kind: str) -> Tensor:
    """Return a value, a tensor of a stage, with a division of its own, while operators are divided.

    `kind` is the name of the function that says so. Raises ValueError for one that does not fit.
    """
    devices = _dividing(stage)
    if devices is None:
        return value
    name = f"{scope_name()}/{kind}-op{stage.operators}"
    called = Operator(name, kind, current_where(), True, pipeline_stage(), micro_batch())
    stage.operators += 1
    _check(called, "the tensor", division, value, devices)
    made: Tensor = stage.emit(constrain, (value,), {"mark": Mark(called, VALUE, 0, division)})
    return made


def construct_by_operators(stage: Stage, cell: Any, construct: Callable[..., Any]) -> Callable[..., Any]:
    """Return how a layer of the library is computed in a stage: by `construct`, or by the
    operations that are its attributes, where a program divides one of these.

    Raises ValueError where the layer has no such operation in what it computes.
    """
    if _dividing(stage) is None:
        return construct
    held = [(name, v) for name, v in cell.__dict__.items() if hasattr(v, "_strategy") and hasattr(v, "attrs")]
    for _, v in held:
        stage.guard_attribute(v, "_strategy", v._strategy)
    given = [name for name, v in held if v._strategy is not None]
    if not given:
        return construct
    owner: Any = next((c for c in type(cell).__mro__ if vars(c).get("_by_operators") is not None), None)
    if owner is None or owner.construct is not type(cell).construct:
        raise ValueError(
            f"{scope_name()}: {type(cell).__name__} does not compute by its operation {given[0]!r}, which has a "
            "strategy; give the layer one by shard()"
        )
    return functools.partial(vars(owner)["_by_operators"], cell)


def _dividing(stage: Stage) -> int | None:
    """Return the number of devices among which a stage divides operators; None if it does not.

    A function that is not one graph runs whole, and says so once.
    """
    settings = plan()
    if settings is None:
        return None
    if stage.runs_each_time:
        without_effect(f"parallel_mode={settings.parallel_mode!r} for functions in segments", "one graph is divided")
        return None
    return settings.dividing


class _Marks:
    """The marks of one call, and what it takes to undo them."""

    def __init__(self, stage: Stage, called: Operator, devices: int) -> None:
        self.stage, self.called, self.devices = stage, called, devices
        self.kept: list[tuple[Tensor, Node, Node]] = []
        self.copies: list[tuple[Tensor, Tensor, Node]] = []
        self.marked: dict[int, Tensor] = {}
        self.inputs: list[Node] = []

    def enter(self, given: Any, divisions: Divisions | None) -> Any:
        """Mark the tensors in arguments, and return the arguments of the call."""
        tensors = [t for t in _tensors(given) if id(t) not in self.stage.numbers]
        self._count("in_strategy", "inputs", divisions, len(tensors))
        if divisions is not None:
            self.stage.strategies.append((self.called, divisions))
        made = [self._mark(INPUT, k, divisions[k] if divisions else None, t) for k, t in enumerate(tensors)]
        self.inputs = [self.stage.plain_node_of(m) for m in made]
        passed: list[Tensor] = []
        for t, mark, node in zip(tensors, made, self.inputs):
            if t._view is None and id(t) not in self.marked:
                self.kept.append((t, self.stage.plain_node_of(t), node))
                self.stage.set_node(t, node)
                passed.append(t)
            else:
                self.copies.append((t, mark, node))
                passed.append(mark)
            self.marked[id(t)] = mark
        order = iter(passed)
        return _replaced(given, lambda t: t if id(t) in self.stage.numbers else next(order)) if self.copies else given

    def parameters(self, known: dict[str, Tensor], plan: tuple[tuple[str, Division], ...]) -> None:
        """Mark parameters for the time of the call."""
        for given, division in plan:
            name = given.removeprefix("self.")
            if name not in known:
                logger.warning("%s: parameter_plan names %r, which is no parameter of it", self.called.name, name)
                continue
            t = known[name]
            _check(self.called, f"the parameter {name!r}", division, t, self.devices)
            before = self.stage.node_of(t)
            made = self.stage.emit(constrain, (t,), {"mark": Mark(self.called, VALUE, 0, division)})
            self.stage.set_node(t, self.stage.plain_node_of(made))
            self.kept.append((t, before, self.stage.plain_node_of(made)))

    def leave(self, result: Any, divisions: Divisions | None) -> Any:
        """Return the results of the call with their marks."""
        # What was written, and without a strategy each input that is returned, stays itself.
        strategy = self.called.strategy
        written = {id(t) for t, _, m in self.kept if not strategy or self.stage.plain_node_of(t) is not m}
        tensors = [t for t in _tensors(result) if id(t) not in self.stage.numbers]
        self._agree([self.stage.node_of(t) for t in tensors])
        self._count("out_strategy", "results", divisions, len(tensors))
        made = {id(copy): t for t, copy, m in self.copies if self.stage.plain_node_of(copy) is not m}
        for index, t in enumerate(tensors):
            if id(t) in written or id(t) in made or t._view is not None and not strategy:
                continue
            made[id(t)] = self._mark(RESULT, index, divisions[index] if divisions else None, self.marked.get(id(t), t))
        return map_leaves(lambda v: made.get(id(v), v), result)

    def shares(self, result: Any) -> bool:
        """Return whether a result is, or is a view of, a tensor that was passed for another."""
        copies = {id(made) for _, made, m in self.copies if self.stage.plain_node_of(made) is m}
        return bool(copies) and any(id(root_of(t)) in copies for t in _tensors(result))

    def restore(self) -> None:
        """Give the inputs their nodes back, and write what the call wrote to them, so that it is
        entered in the journals of branches as a change of the former node.
        """
        for t, before, marked in reversed(self.kept):
            now = self.stage.plain_node_of(t)
            self.stage.set_node(t, before)
            if now is not marked:
                self.stage.write(t, make_staged(now))
        for t, made, marked in self.copies:
            if self.stage.plain_node_of(made) is not marked:
                self.stage.write(t, made)

    def _mark(self, role: str, index: int, division: Division | None, t: Tensor) -> Tensor:
        if division is not None:
            _check(self.called, f"{role} {index}", division, t, self.devices)
        mark = Mark(self.called, role, index, division)
        made: Tensor = self.stage.emit(constrain, (t,), {"mark": mark})
        return made

    def _agree(self, results: list[Node]) -> None:
        """Raise ValueError where inputs that a primitive iterates over together are cut into
        different numbers of parts.
        """
        divided = {
            n: n.params["mark"] for n in self.inputs if n.prim is constrain and n.params["mark"].division is not None
        }
        if len(divided) < 2:
            return
        for node in toposort(results, stop=divided):
            if node in divided or sum(i in divided for i in node.inputs) < 2:
                continue
            for factor in factors_of(node):
                cuts = {}
                for i, place in zip(node.inputs, factor.operands):
                    if i in divided and place is not None and place.before == 1 and place.after == 1:
                        cuts[f"axis {place.axis} of input {divided[i].index}"] = divided[i].division.cuts[place.axis]
                if len(set(cuts.values())) > 1:
                    said = ", ".join(f"{where} into {cut} parts" for where, cut in cuts.items())
                    raise ValueError(
                        f"{self.called.name}: {self.called.kind} iterates over these axes of size {factor.size} "
                        f"together, and the strategy cuts {said}; cut them alike{_line(self.called)}"
                    )

    def _count(self, name: str, what: str, divisions: Divisions | None, count: int) -> None:
        if divisions is not None and len(divisions) != count:
            raise ValueError(
                f"{self.called.name}: {name} has {len(divisions)} entries, and {self.called.kind} has {count} "
                f"{what} that are tensors; give one entry for each{_line(self.called)}"
            )


def _check(called: Operator, what: str, division: Division, t: Tensor, devices: int) -> None:
    reason = division.misfit(t._type.shape, devices)
    if reason:
        raise ValueError(
            f"{called.name}: {division} does not fit {what} of {called.kind}, of shape "
            f"{tuple(t._type.shape)}: {reason}{_line(called)}"
        )


def _line(called: Operator) -> str:
    return "" if called.where is None else f"\n{excerpt(called.where)}"


def _replaced(value: Any, of: Callable[[Tensor], Tensor]) -> Any:
    """Return arguments with other tensors, which `of` gives in the order of `_tensors`."""
    if isinstance(value, Tensor):
        return of(value)
    if type(value) in (tuple, list):
        return type(value)([_replaced(v, of) for v in value])
    if type(value) is dict:
        return {k: _replaced(v, of) for k, v in value.items()}
    return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif type(value) in (tuple, list):
        for v in value:
            yield from _tensors(v)
    elif type(value) is dict:
        for v in value.values():
            yield from _tensors(v)
