"""Graph breaks: functions that need values midway run in compiled segments, with Python in between.

A `LiveStage` interprets a function at each call. Operations still become nodes, and control flow
that depends on tensors is still staged as `cond` and `while_loop` where that is possible. But where
Python needs a value, the graph so far, a *segment*, is compiled and run, its tensors become
concrete, and interpretation goes on with a new segment. So effects happen in the order of the
program, no value that was read can be stale, and every segment is made for the values of this call.
Segments are cached by structure; numbers that differ from call to call become their inputs.

Invariants: a segment ends only outside of every branch (`Stage.scope.is_branch`); when it ends,
every tensor that is still in use has a value. While a gradient is being taken (`depth`), nodes keep
their place in the graph, and `values` holds those of their values that were computed. Results that
escape are made concrete when the call ends, also when it ends with an exception, and tensors from
outside then have the values that were written to them. A construct that could not be staged once is
not tried again (`LivePlan.python`). Functions and Cells that made many nodes and needed no value
are compiled by themselves (`units`) and appear in a segment as one `call`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, Where, current_where, input_node, substitute, toposort
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.prims.base import GET_ITEM, Cost, Primitive
from mycel._src.compiler.prims.control_flow import control
from mycel._src.engines import buffers, nonfinite
from mycel._src.engines.error_messages import out_of_memory
from mycel._src.engines.select import compile_graph
from mycel._src.foundation.bounded_caches import MANY, SOME, Remembered, RememberedOf
from mycel._src.foundation.errors import CompileError, NeedsValue, Unsupported
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.pytree import flatten, map_leaves
from mycel._src.foundation.settings import config
from mycel._src.staging.frontend.ast_interpreter.interpret import Interpreter
from mycel._src.staging.frontend.control_flow.conditionals import closed
from mycel._src.staging.frontend.graph_building.stage import is_constant, mend_of
from mycel._src.staging.frontend.graph_building.stage_state import MISSING, Capture
from mycel._src.staging.frontend.graph_building.staged_views import is_open, is_unchanged, resolve_all, tidy
from mycel._src.staging.frontend.source_code.tracebacks import describe_place
from mycel._src.staging.frontend.specialization.guards import Guards
from mycel._src.tensors.cells.cell import Cell, compiler
from mycel._src.tensors.core.execution_context import Context
from mycel._src.tensors.core.tensor import Tensor, make
from mycel._src.tensors.core.views import View, outdate

__all__ = ["Break", "LivePlan", "LiveStage"]

V = TypeVar("V")
REFUSALS = (CompileError, NeedsValue, Unsupported)
_HEAVY = 48
_SHOWN = 256


class Break:
    """A place where a function goes back to Python: the user's position, the reason, and what to
    write instead.
    """

    __slots__ = ("where", "reason")

    def __init__(self, where: Where | None, reason: str) -> None:
        self.where, self.reason = where, reason.removeprefix(f"{where}: ")

    def __str__(self) -> str:
        return f"break: {self.reason}" + (f"\n{describe_place(self.where)}" if self.where else "")


class LivePlan:
    """The facts about a function that runs in segments, which are kept from call to call.

    `refusal` says why it is not one graph; `breaks` and `segments` are those of the last call.
    """

    def __init__(self, refusal: Any) -> None:
        self.refusal = refusal
        self.python: dict[Any, str] = {}
        self.heavy: finalization.Living[Any] = finalization.Living()
        self.breaks: list[Break] = []
        self.segments: list[Graph] = []

    def __str__(self) -> str:
        return str(self.refusal)


class _NoGuards(Guards):
    """Guards that record nothing, for code that is interpreted at each call."""

    def _ignore(self, *read: Any) -> None:
        pass

    item = attribute = of_type = unset = cell_attribute = cell = native_cell = value = closure = _ignore  # type: ignore[assignment]

    def has_attribute(self, target: Any, name: str) -> bool:
        return False


class LiveStage(Interpreter):
    """One call of a function that runs in segments; see the module's description."""

    is_live = True

    def __init__(self, plan: LivePlan, outer: Context | None) -> None:
        super().__init__()
        self.guards = _NoGuards()
        self.plan, self.outer = plan, outer
        self.values: dict[Node, Tensor] = {}
        self.alive: list[weakref.ref[Tensor]] = []
        self.exposed: dict[int, weakref.ref[Tensor]] = {}
        self.segments_run = 0
        plan.breaks, plan.segments = [], []

    # Nodes.

    @property
    def may_decide(self) -> bool:
        """Whether Python can have values here, which it can outside of branches that depend on a
        tensor.
        """
        return not self.scope.is_branch

    @property
    def runs_each_time(self) -> bool:
        """Whether code runs here at each call, which it does outside of branches that depend on a
        tensor.
        """
        return not self.is_conditional

    def track(self, t: Tensor) -> None:
        """Remember a tensor without a value, so that it gets one at the end of the segment."""
        self.alive.append(weakref.ref(t))

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        made = super().emit(primitive, inputs, params)
        # The program holds an array over this tensor's memory and may write into it at any time.
        if self.exposed and not self.scope.is_branch and any(id(t) in self.exposed for t in inputs):
            self.end_segment(())
        return made

    def _capture(self, t: Tensor) -> Node:
        node = input_node(t._type, t.__dict__.get("name") or "captured")
        self.scopes[0].own.add(node)
        self.captures[id(t)] = Capture(t, node)
        self.current[id(t)] = node
        self.values[node] = t
        return node

    def read_tensor(self, target: Any, name: str, t: Tensor) -> None:
        pass

    # Values.

    def need_value(self, t: Tensor, what: str) -> np.ndarray[Any, Any]:
        """Return the array of a tensor.

        If it is not known yet, the segment ends here, which is a break unless `what` is empty.
        """
        if self.scope.is_branch:
            if self.levels and not self.is_conditional:
                return self._shared_value(t, what)
            return super().need_value(t, what or "a decision of the program")
        if t._buf is None and t._node is None and t.__dict__.get("init") is not None:
            t._need_value(what)
        has_value = t._buf is not None and id(t) not in self.current
        if has_value and t._view is not None:
            has_value = is_unchanged(self, t)
        if not has_value:
            node = self.node_of(t)
            if is_constant(node):
                return np.array(node.value)
            if node not in self.values:
                if what:
                    text = f"{what} needs the value of a tensor ({t._type}); {mend_of(what)}"
                    self.note_break(current_where(), text)
                self.end_segment((node,))
            value = self.values[node]
        else:
            value = t
        if what in ("asnumpy()", "numpy()", "conversion to a NumPy array", "DLPack export"):
            if what != "conversion to a NumPy array":
                self._expose(t)
            self.end_segment(())
        return buffers.to_array(value._buf, value._type)

    def _shared_value(self, t: Tensor, what: str) -> np.ndarray[Any, Any]:
        """Return the array of a tensor that is the same for all examples of a `vmap` being staged,
        without ending the segment.
        """
        node = self.node_of(t)
        if is_constant(node):
            return np.array(node.value)
        self.levels[-1].refuse(self, node, what)
        self.note_break(current_where(), f"{what} needs the value of a tensor ({t._type}); {mend_of(what)}")
        for known, value in zip(*self._run({node: None})):
            self.values[known] = value
        return buffers.to_array(self.values[node]._buf, t._type)

    def _expose(self, t: Tensor) -> None:
        key = id(t)
        self.exposed[key] = weakref.ref(t, functools.partial(self.exposed.pop, key))

    def attempt(self, where: Where | None, staged: Callable[[], Any], live: Callable[[], Any]) -> Any:
        """Stage a construct that depends on a tensor; if that fails, let Python run it by the
        tensor's value.
        """
        if where not in self.plan.python:
            before = len(self.alive)
            try:
                return staged()
            except REFUSALS as error:
                self.plan.python[where] = str(error)
                error.__traceback__ = None
            del self.alive[before:]
        self.note_break(where, self.plan.python[where])
        return live()

    def note_break(self, where: Where | None, reason: str) -> None:
        found = Break(where, reason)
        if not any(b.where == where and b.reason == found.reason for b in self.plan.breaks):
            self.plan.breaks.append(found)

    # Effects happen at once.

    def note(self, key: Any, kind: str, target: Any, name: Any, before: Any) -> None:
        """Journal a change in a branch, as `Stage.note` does for `key`, `kind`, `target`, `name`
        and `before`.
        """
        if self.scope.is_branch:
            super().note(key, kind, target, name, before)

    def created(self, value: V) -> V:
        """Return an object that the program made; it is remembered only in a branch, whose effects
        may have to be undone.
        """
        return super().created(value) if self.scope.is_branch else value

    def note_container(self, target: Any) -> None:
        if self.scope.is_branch:
            super().note_container(target)

    def defer(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.scope.is_branch:
            super().defer(fn, args, kwargs)
        else:
            fn(*args, **kwargs)

    # Segments.

    def settle(self, what: str) -> None:
        """Run what was staged so far, which is a break."""
        if not self.may_decide:
            super().settle(what)
        self.note_break(current_where(), f"{what} cannot be part of a graph; {mend_of(what)}")
        self.end_segment(())

    def end_segment(self, wanted: Sequence[Node]) -> None:
        """Compute `wanted` and all tensors in use; they become concrete unless a gradient is being
        taken.
        """
        held = [t for t in (r() for r in self.alive) if t is not None and t._buf is None]
        for t in held:
            if is_open(t):
                t._node = None
        held = [t for t in held if t._node is not None or t._view is None]
        nodes = [self.node_of(t) if type(t._view) is View else self.plain_node_of(t) for t in held]
        written = self.written()
        roots = dict.fromkeys([*wanted, *nodes, *[self.current[id(c.tensor)] for c in written]])
        for node, value in zip(*self._run(roots)):
            self.values[node] = value
        if self.depth or self.taken:
            self.alive = [weakref.ref(t) for t in held]
            return
        self.alive = []
        self._make_concrete(list(zip(held, nodes)), written)
        kept = {n: self.values[n] for n in wanted if n in self.values}
        self.values, self.current, self.captures, self.literals = kept, {}, {}, {}
        self.literal_nodes.clear()
        self.scopes[0].own = set(kept)
        self.derived.clear()
        tidy(self)

    def _make_concrete(self, held: list[tuple[Tensor, Node]], written: list[Capture]) -> None:
        for c in written:
            outdate(c.tensor)
        given = {id(c.tensor._buf) for c in self.captures.values()}
        pairs = [(t, n) for t, n in held if n in self.values or is_constant(n)]
        values = [(t, self._own(n, t, given)) for t, n in pairs]
        values += [(c.tensor, self._own(self.current[id(c.tensor)], c.tensor, given)) for c in written]
        for t, value in values:
            if self.outer is not None and t._buf is not None:
                self.outer.write(t, value)
            else:
                t._buf, t._node = value._buf, value._node

    def _own(self, node: Node, t: Tensor, given: set[int]) -> Tensor:
        """Return a node's value in a buffer that belongs to no other tensor."""
        if is_constant(node):
            return make(t._type, buffers.from_array(np.array(node.value)))
        value = self.values[node]
        if id(value._buf) in given:
            copy = make(value._type, buffers.copy(value._buf, value._type))
            copy._node = value._node
            value = copy
        given.add(id(value._buf))
        return value

    def _run(self, roots: dict[Node, None]) -> tuple[list[Node], Sequence[Tensor]]:
        """Run a segment that computes those of `roots` that can be computed; return these nodes
        and their values.
        """
        known = self.values
        order = toposort(list(roots), stop=known)
        able = set(known)
        for node in order:
            if node.prim is not None and all(i in able for i in node.inputs):
                able.add(node)
        outputs = [n for n in roots if n in able and n not in known and not is_constant(n)]
        if not outputs:
            return [], []
        if self.depth or self.taken:
            outputs += [n for n in order if n in able and n not in known and n not in roots and _costly(n)]
        if len(able) < len(order):
            order = toposort(outputs, stop=known)
        inputs = [n for n in order if n in known]
        name = "segment"
        plain = all(n.prim is None for n in inputs)
        graph, extra = _settled(Graph(inputs, outputs, name) if plain else closed(outputs, inputs, name))
        if len(self.plan.segments) < _SHOWN:
            self.plan.segments.append(graph)
        self.segments_run += 1
        return outputs, self._call(graph, [known[n] for n in inputs] + extra)

    def _call(self, graph: Graph, tensors: list[Tensor]) -> Sequence[Tensor]:
        for t in tensors:
            if t._buf is None:
                t._need_value("a compiled function")
        if self.outer is not None:
            found: Sequence[Tensor] = self.outer.emit(control.call, tensors, {"graph": graph})
            return found
        try:
            values = _program(graph)(*[t._buf for t in tensors])
        except MemoryError:
            raise out_of_memory(graph) from None
        if not isinstance(values, tuple):
            values = (values,)
        return [make(t, v) for t, v in zip(graph.output_types, values)]  # type: ignore[arg-type]

    def close(self) -> None:
        """End the call: tensors that escaped or were written to get their values."""
        self.depth = 0
        self.taken.clear()
        self.end_segment(())
        resolve_all(self)

    def numbers_of(self, result: Any) -> Any:
        """Return the result of the call, in which tensors that stand for numbers are numbers."""
        held = any(isinstance(t, Tensor) and id(t) in self.numbers for t in flatten(result)[0])
        plain = lambda v: v.item() if isinstance(v, Tensor) and id(v) in self.numbers else v
        return map_leaves(plain, result) if held else result

    # Units.

    def call_cell(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a Cell as one operation if it is one graph of some size; else interpret its
        construct.
        """
        return self.as_unit(cell, lambda: super(LiveStage, self).call_cell(cell, args, kwargs), args, kwargs)

    def as_unit(self, fn: Any, inline: Callable[[], Any], args: Any, kwargs: Any) -> Any:
        """Call `fn` with `args` and `kwargs`, compiled by itself if earlier calls made many nodes
        and needed no value; else by `inline`, which interprets it.
        """
        if self.scope.is_branch:
            return inline()
        if fn in self.plan.heavy:
            result = _unit_of(fn).unit(self, args, kwargs)
            if result is not MISSING:
                return result
        own, segments = self.scopes[0].own, self.segments_run
        before = len(own)
        result = inline()
        if self.segments_run == segments and own is self.scopes[0].own and len(own) - before >= _HEAVY:
            self.plan.heavy.add(fn)
        return result


def _unit_of(fn: Any) -> Any:
    if isinstance(fn, Cell):
        return fn._compiled()
    return _units.of(fn, lambda: compiler.unit(getattr(fn, "_run", fn)))


_units = RememberedOf[Any]("functions within segments", MANY)


def _costly(node: Node) -> bool:
    """Return whether a node's value is kept for the gradient rather than computed again."""
    if node.prim is GET_ITEM:
        return True
    assert node.prim is not None
    return not node.prim.elementwise and type(node.type) is not tuple and node.prim.cost is not Cost.LIGHT


class _Segment:
    """A segment, and its program once it has run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.program: Callable[..., Any] | None = None


_programs = Remembered[str, _Segment]("segments", SOME, config.COMPILED_ANEW)
_numbers = Remembered[str, tuple[Any, ...]]("numbers in segments", SOME)


def _program(graph: Graph) -> Callable[..., Any]:
    """Return the program of a segment that `_settled` returned."""
    key = structural_hash(graph)
    if nonfinite.is_on():
        return nonfinite.program_of(key, graph)
    found = _programs.recall(key, lambda: _Segment(graph))
    if found.program is None:
        found.program = compile_graph(found.graph)
    return found.program


def _settled(graph: Graph) -> tuple[Graph, list[Tensor]]:
    """Return the known segment of this structure, and the values of its numbers that differ from
    call to call.
    """
    if nonfinite.is_on():
        return graph, []
    key = structural_hash(graph)
    found = _programs.get(key)
    if found is not None:
        return found.graph, []
    numbers = [n for n in graph.nodes if is_constant(n) and n.shape == ()]
    if numbers:
        values = tuple([np.array(n.value).item() for n in numbers])
        before = _numbers.enter(structural_hash(_lifted(graph, numbers)), values)
        differing = [n for n, old, new in zip(numbers, before, values) if repr(old) != repr(new)]
        if differing:
            general = _lifted(graph, differing)
            extra = [make(n.type, buffers.from_array(np.array(n.value))) for n in differing]
            return _programs.enter(structural_hash(general), _Segment(general)).graph, extra
    return _programs.enter(key, _Segment(graph)).graph, []


def _lifted(graph: Graph, numbers: Sequence[Node]) -> Graph:
    """Return a graph in which some constants are further inputs."""
    stand_in = {n: input_node(n.type, "number") for n in numbers}
    return Graph((*graph.inputs, *stand_in.values()), substitute(graph.outputs, stand_in), graph.name)
