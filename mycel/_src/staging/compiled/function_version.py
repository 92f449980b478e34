"""Versions of a compiled function: one graph for one key, with its guards, tensors and effects.

A version takes the call's tensors and the captured ones, writes new values to the tensors that the
function writes to, repeats its effects on Python's objects after each run, and builds the result in
the form that the function returned.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.graph import Graph, Node, toposort
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.custom_derivatives import refusal as refusal_of
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.compiler.prims.nonzero_positions import positions
from mycel._src.compiler.prims.parameter_assignment import assigned
from mycel._src.compiler.transforms.specialize import inner_sizes, specialize
from mycel._src.engines.error_messages import out_of_memory, told
from mycel._src.engines.select import compile_graph
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.settings import config
from mycel._src.foundation.settings.parallel_settings import plan
from mycel._src.staging.compiled.call_signature import Arguments
from mycel._src.staging.compiled.recursion_limit import deep_stack
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.graph_building.stage_state import Capture, Effect
from mycel._src.staging.frontend.outputs import Outputs
from mycel._src.staging.frontend.source_code.tracebacks import note_origin, note_place_of
from mycel._src.staging.frontend.specialization.dynamic_shapes import compiled, is_open
from mycel._src.staging.frontend.specialization.snapshots import reach
from mycel._src.tensors.core.execution_context import Context
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make
from mycel._src.tensors.core.views import is_plain, root_of

__all__ = ["Version"]


class _Change:
    """A change to an object from outside, which is repeated after each call while the object
    exists.
    """

    def __init__(self, effect: Effect, get: Callable[[], Any]) -> None:
        self.effect, self.get, self.text = copy.copy(effect), get, str(effect)
        self.effect.target = self.effect.before = None

    def __str__(self) -> str:
        return self.text

    def write(self, value: Any) -> None:
        target = self.get()
        if target is not None:
            effect = copy.copy(self.effect)
            effect.target = target
            effect.put(value)


class Version:
    """One compiled graph with its guards, captured tensors, written tensors and the form of its
    result.

    It is made of the `stage` that interpreted a call, of the call's `arguments` and of its
    `result`; `name` is that of the graph.
    """

    def __init__(self, stage: Stage, arguments: Arguments, result: Any, name: str) -> None:
        self.guards = stage.guards
        self.plan = plan()
        self.strategies = tuple(stage.strategies)
        # what `distributed.cell_partition` keeps of it
        self.divided: Any = None
        positions: dict[int, int] = {}
        for i, t in enumerate(arguments.staged):
            positions.setdefault(id(t), i)
        outputs = Outputs(stage, positions, frozenset(arguments.outside), arguments.places)
        self.build = outputs.of(result)
        changes = stage.scopes[0].take_back(stage)
        self.effects: list[tuple[_Change, Any]] = []
        for effect, value in changes.values():
            if id(effect.target) in arguments.containers:
                refusal = CompileError(
                    f"a compiled function cannot change {effect} that was passed to it; return the new value instead"
                )
                if effect.where is not None:
                    note_place_of(refusal, effect.where)
                raise refusal
            self.effects.append((_Change(effect, self.guards.way_to(effect.target)), outputs.of(value)))
        self.deferred = [(fn, outputs.of(args), outputs.of(kwargs)) for fn, args, kwargs in stage.deferred]
        self.argument_writes = []
        for i, (t, node) in enumerate(zip(arguments.staged, arguments.nodes)):
            now = t._node
            if positions[id(t)] == i and now is not None and now is not node:
                self.argument_writes.append((i, outputs.place(now, ("argument", i))))
        written = stage.written()
        writes = [(c, outputs.place(_value(stage.current[id(c.tensor)]), ("state", id(c.tensor)))) for c in written]
        captures = self._needed(stage, outputs.nodes, arguments.nodes, written)
        self.ways = [reach(c.tensor) for c in captures]
        self.kept: list[Tensor] | None = [c.tensor for c in captures]
        self.types = [c.type for c in captures]
        self.sources = self._sources(stage, captures)
        self.shares = bool(written) or bool(self.argument_writes)
        inputs = [*arguments.nodes, *[c.node for c in captures]]
        self.graph = _with_counts(stage, Graph(inputs, _distinct(outputs.nodes, inputs), name))
        positions_of = {id(c.tensor): i for i, c in enumerate(captures)}
        self.writes = [(positions_of[id(c.tensor)], place) for c, place in writes]
        numbers = {node: i for i, node in enumerate(inputs)}
        self.aliases = {place: numbers[c.node] for c, place in writes if isinstance(c.tensor, Parameter)}
        self.result_types = self.graph.output_types
        self.refusal = refusal_of(self.graph) or ("data decide sizes in it" if is_open(self.graph) else "")
        self.program: Callable[..., Any] | None = None
        self.symbolic: Any = None
        self.phases: Any = None
        self.is_open = is_open(self.graph)
        self.sizes: dict[str, int] = {}
        self.pinned = outputs.pinned
        self.returns_given = outputs.returns_given
        outputs.close()
        self.guards.close()

    @property
    def tensors(self) -> list[Tensor]:
        """The captured tensors."""
        return [get() for get in self.ways]

    def hold(self) -> None:
        """Keep all captured tensors alive.

        Otherwise they are until the first run is over, and then only as long as the program has
        them: what it makes anew in each call is not what an earlier call has written into.
        """
        for i, t in enumerate(self.kept or ()):
            self.ways[i] = partial(_same, t)

    def _sources(self, stage: Stage, captures: list[Capture]) -> list[tuple[int, Callable[[], Any], str]]:
        """Return the captured tensors that are read from an attribute at each call.

        The attributes of the others are guarded.
        """
        captured = {id(c.tensor): i for i, c in enumerate(captures)}
        found = []
        for number, (target, name, t) in stage.sources.items():
            source = stage.source_of(t)
            if number in captured and source is not None:
                found.append((captured[number], reach(source[0]), source[1]))
            else:
                stage.guards.attribute(target, name, t)
        return found

    @staticmethod
    def _needed(stage: Stage, outputs: list[Node], given: list[Node], written: list[Capture]) -> list[Capture]:
        known = set(given)
        by_node = {c.node: c for c in stage.captures.values()}
        needed = {c.node: None for c in written}
        for node in toposort(outputs):
            if node.prim is None and node not in known:
                if node not in by_node:
                    raise CompileError(
                        "a tensor of another compiled function is used here; it has no value outside that function"
                    )
                needed[node] = None
        return [by_node[n] for n in needed]

    def holds(self) -> bool:
        """Return whether this version still does what the function does."""
        now = plan()
        if self.plan is not now and self.plan != now:
            return False
        ways = self.ways
        for i, get, name in self.sources:
            owner = get()
            found = None if owner is None else owner.__dict__.get(name)
            if not is_plain(found) or found._view is not None:
                return False
            if ways[i]() is not found:
                ways[i] = weakref.ref(found)
        for get, kind in zip(ways, self.types):
            t = get()
            if t is None or t._type is not kind:
                return False
        if self.shares and self.sources and len({id(root_of(t)) for t in self.tensors}) != len(ways):
            return False
        for get in self.pinned:
            if get() is None:
                return False
        return self.guards.hold()

    def is_over(self) -> bool:
        """Return whether an object that this was compiled for is gone."""
        dynamic = {i for i, _, _ in self.sources}
        return any(get() is None for i, get in enumerate(self.ways) if i not in dynamic) or self.guards.is_over()

    def overlaps(self, tensors: list[Any]) -> bool:
        """Return whether an argument shares its elements with another argument or a captured
        tensor, so that a write to one would have to change the other.
        """
        known: dict[int, Any] = {id(root_of(t)): None for t in self.tensors}
        return any(known.setdefault(id(root_of(t)), t) is not t for t in tensors)

    def run(self, tensors: list[Any], call: Any = None) -> Any:
        """Run on a call's tensors and return the call's result.

        `call` is the call's arguments, with those by name after the others; only a version that
        `returns_given` needs them.
        """
        if self.result_types:
            given = [t._buf for t in tensors]
            given += [get()._buf for get in self.ways]
            if None in given:
                given = [_buffer(t) for t in (*tensors, *self.tensors)]
            program = self.program or self.compile()
            try:
                values = program(*given)
            except MemoryError:
                raise out_of_memory(self.graph) from None
            types = self.result_types
            if self.is_open:
                values, types = values
            elif len(types) == 1 and not isinstance(values, tuple):
                values = (values,)
            out = [make(t, v) for t, v in zip(types, values)]  # type: ignore[arg-type]
        else:
            out = []
        for i, place in self.writes:
            t = self.ways[i]()
            if t._views is None:
                t._buf = out[place]._buf
            else:
                t._replace(out[place])
        for i, place in self.argument_writes:
            tensors[i]._replace(out[place])
        self.kept = None
        return self._finish(out, tensors, call)

    def record(self, context: Context, tensors: list[Any], call: Any) -> Any:
        """Run on the `tensors` of a `call` as one operation that a gradient in `context` can go
        back through.
        """
        if not self.result_types:
            return self._finish([], tensors, call)
        if not context.is_staging:
            for t in (*tensors, *self.tensors):
                _buffer(t)
        graph = specialize(self.graph, self.sizes) if self.sizes and context.is_staging else self.graph
        out = context.emit(control.call, [*tensors, *self.tensors], {"graph": graph})
        for i, place in self.writes:
            self.ways[i]()._replace(out[place])
        for i, place in self.argument_writes:
            tensors[i]._replace(out[place])
        self.kept = None
        return self._finish(out, tensors, call)

    def _finish(self, out: Any, tensors: list[Any], call: Any) -> Any:
        if self.returns_given:
            tensors = [*tensors, call]
        for fn, args, kwargs in self.deferred:
            fn(*args(out, tensors), **kwargs(out, tensors))
        for effect, build in self.effects:
            effect.write(build(out, tensors))
        return self.build(out, tensors)

    def compile(self) -> Callable[..., Any]:
        """Return the native program of the graph."""
        _with_program.add(self)
        try:
            with deep_stack():
                self.program = (
                    compiled(self) if self.symbolic or self.is_open else compile_graph(self.graph, self.aliases)
                )
        except MemoryError as error:
            raise told(error, f"compiling {self.graph.name}")  # noqa: B904
        except Exception as error:
            raise note_origin(error)  # noqa: B904
        return self.program


_with_program: finalization.Living[Version] = finalization.Living()


def _same(value: Any) -> Any:
    return value


def _on_settings(options: Any) -> None:
    if not config.COMPILED_ANEW.isdisjoint(options):
        for version in list(_with_program):
            version.program = None
            version.phases = None
            if version.symbolic is not None:
                version.symbolic.phases = version.symbolic.programs = None


config.listeners.append(_on_settings)


def _value(node: Node) -> Node:
    """Return what was assigned last to a parameter, without the derivative that reading it has."""
    return node.inputs[0] if node.prim is assigned else node


def _distinct(outputs: list[Node], inputs: list[Node]) -> list[Node]:
    """Return the outputs as distinct nodes, none of which is an input."""
    seen = set(inputs)
    result = []
    for node in outputs:
        if node in seen:
            node = Node(identity, (node,), {}, node.type)
        seen.add(node)
        result.append(node)
    return result


def _with_counts(stage: Stage, graph: Graph) -> Graph:
    """Return the graph with further outputs for positions of which it uses only the number, as a
    size.
    """
    counted = {
        name: node
        for node in stage.literals.values()
        if node.prim is positions
        for name in symbols_in(node.params["count"])
    }
    while counted:
        names = set(symbols_in(*inner_sizes(graph)))
        found = {n for n in graph.nodes if n.prim is positions}
        missing = [node for name, node in counted.items() if name in names and node not in found]
        if not missing:
            break
        graph = Graph(graph.inputs, (*graph.outputs, *missing), graph.name)
    return graph


def _buffer(t: Tensor) -> Any:
    if t._buf is None:
        t._need_value("a compiled function")
    return t._buf
