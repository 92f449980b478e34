"""Pipeline programs: several groups of one process's devices that send each other messages.

Each group, a mesh, has a graph of its own, as the stages of a pipeline have
(`transforms.pipeline_parallel`). The messages of a graph are in one order, by their tokens. They
cut it into *segments*: a node belongs to the segment after the last message that it depends on. A
segment is a program on the devices of its mesh, and segments of equal graphs on one mesh share
theirs, as those of the micro-batches of a stage do.

One process begins all segments, in an order that is found once: each mesh goes on until it awaits a
value that no other has sent. jax does not wait for what it begins, so meshes compute at the same
time. What is sent is copied from devices to devices, without the host.

A segment that may stop (see `interpret`) gives a note. New values are given to inputs when all
notes are known to be none. Memory of inputs is donated to results in segments that begin after the
last that may stop, in front of which the notes are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, constant
from mycel._src.compiler.prims.distributed.point_to_point import messages
from mycel._src.engines import base
from mycel._src.engines.xla.binding import jax, jnp
from mycel._src.engines.xla.interpret import may_stop
from mycel._src.engines.xla.preparing import EXCHANGES, prepared
from mycel._src.engines.xla.spmd_programs import DeviceSpread, Mapped, check_inputs, check_static, placement
from mycel._src.foundation.dtype import int32

__all__ = ["DeviceStages"]


class Segment(NamedTuple):
    """A program between messages: the nodes whose values it takes, and those that it gives."""

    program: Mapped
    takes: tuple[Node, ...]
    gives: tuple[Node, ...]


def sent_by(message: Node) -> tuple[Node, ...]:
    """Return the values that a node of messages sends, without its tokens."""
    return message.inputs[: len(message.params["sent"])]


class Group:
    """The graph of one mesh, cut at its messages.

    Segment k comes in front of message k; there is one segment more than messages. `aliases` maps
    outputs to the inputs whose memory they take.
    """

    def __init__(self, graph: Graph, mesh: Mesh, aliases: Mapping[int, int]) -> None:
        check_static(graph)
        self.mesh, self.aliases, self.types = mesh, dict(aliases), list(graph.input_types)
        self.sharding = placement(mesh)
        self.graph = prepared(graph, (*EXCHANGES, messages))
        nodes = self.graph.nodes
        self.messages = [n for n in nodes if n.prim is messages]
        self.arrived = {n for n in nodes if n.prim is GET_ITEM and n.inputs[0].prim is messages}
        self.level: dict[Node, int] = dict.fromkeys(self.graph.inputs, 0)
        for node in nodes:
            self.level[node] = max([self.level[i] + (i.prim is messages) for i in node.inputs], default=0)
        assert [self.level[m] for m in self.messages] == list(range(len(self.messages))), "messages have one order"
        needed = set(self.graph.outputs)
        for node in nodes:
            for i in sent_by(node) if node.prim is messages else node.inputs:
                if node.prim is messages or self.level[i] < self.level[node]:
                    needed.add(i)
        # What has the same value in every call: constants, and tokens, which nobody looks at.
        self.fixed = {n: self._row(n) for n in needed if n.prim is CONSTANT or self._is_token(n)}
        given = {*self.graph.inputs, *self.arrived, *self.fixed, *self.messages}
        own = [n for n in nodes if n in needed and n not in given]
        self.gives = [[n for n in own if self.level[n] == k] for k in range(len(self.messages) + 1)]
        self._kept: dict[Any, Mapped] = {}

    def _is_token(self, node: Node) -> bool:
        return node in self.arrived and node.params["index"] == len(node.inputs[0].type) - 1

    def _row(self, node: Node) -> Any:
        value = node.params["value"].array if node.prim is CONSTANT else np.zeros((), np.int32)
        return jax.device_put(np.array(np.broadcast_to(value, (self.mesh.size, *value.shape))), self.sharding)

    def may_stop(self, k: int) -> bool:
        """Return whether segment `k` may stop the program."""
        return may_stop(self._cut(k)[0])

    def segment(self, k: int, donates: bool) -> Segment | None:
        """Return segment `k`, None where it computes nothing; with `donates` outputs take the
        memory of the inputs that they replace.
        """
        gives = self.gives[k]
        if not gives:
            return None
        graph, takes = self._cut(k)
        aliases = self._aliases(k, takes) if donates else {}
        try:
            key: Any = (structural_hash(graph), tuple(aliases.items()))
        except TypeError:  # a parameter without lasting identity
            key = graph
        if key not in self._kept:
            self._kept[key] = Mapped(graph, self.mesh, aliases)
        return Segment(self._kept[key], takes, tuple(gives))

    def _cut(self, k: int) -> tuple[Graph, tuple[Node, ...]]:
        gives, given = self.gives[k], {*self.graph.inputs, *self.arrived}
        given |= {n for earlier in self.gives[:k] for n in earlier}
        takes: dict[Node, Node] = {}
        image: dict[Node, Node] = {}
        stack, seen = list(reversed(gives)), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in given:
                token = self._is_token(node)
                image[node] = constant(0, int32) if token else input_node(node.type, "given")
                if not token:
                    takes[node] = image[node]
            else:
                stack.extend(reversed(node.inputs))
        return Graph(list(takes.values()), substitute(gives, image), self.graph.name), tuple(takes)

    def _aliases(self, k: int, takes: Sequence[Node]) -> dict[int, int]:
        """Return which results of segment `k` take the memory of which of its operands."""
        later = {i for n in self.graph.nodes if self.level[n] > k or n in self.messages[k:] for i in n.inputs}
        found: dict[int, int] = {}
        for j, i in self.aliases.items():
            source, output = self.graph.inputs[i], self.graph.outputs[j]
            passed = any(o is source for o in self.graph.outputs)
            if output in self.gives[k] and source in takes and source not in later and not passed:
                place = self.gives[k].index(output)
                if place not in found:
                    found[place] = takes.index(source)
        return found


class Step(NamedTuple):
    """One step of the walk: mesh `group` runs `segment`, or sends or receives in `message`.

    Before it, with `looks`, the notes of all segments so far are looked at; after it the values
    `ends` of the group are used no more.
    """

    group: int
    segment: Segment | None
    message: Node | None
    sends: bool
    looks: bool
    ends: tuple[Node, ...]


class DeviceStages(base.Stages):
    """The programs of several meshes, each with its graph, which exchange messages.

    `stages` has the graph of a rank, the mesh and the aliases of each. Raises Unsupported for what
    XLA cannot have, host steps included, and ValueError where there are fewer devices than the
    meshes have.
    """

    def __init__(self, stages: Sequence[tuple[Graph, Mesh, Mapping[int, int]]]) -> None:
        self.groups = [Group(graph, mesh, aliases) for graph, mesh, aliases in stages]
        self.shardings = {group.mesh: group.sharding for group in self.groups}
        self.steps = self._walk()

    def _order(self) -> list[tuple[int, int, Node | None, bool]]:
        """Return group, segment, message and whether it is sent, in the order of all steps."""
        found: list[tuple[int, int, Node | None, bool]] = []
        at, half, sent = [0] * len(self.groups), [False] * len(self.groups), set[int]()
        while True:
            before = len(found)
            for g, group in enumerate(self.groups):
                while at[g] <= len(group.messages):
                    if not half[g]:
                        found.append((g, at[g], None, False))
                        if at[g] < len(group.messages):
                            message = group.messages[at[g]]
                            found.append((g, at[g], message, True))
                            sent |= {tag for _, tag in message.params["sent"]}
                        half[g] = True
                    if at[g] < len(group.messages):
                        message = group.messages[at[g]]
                        if any(r[1] not in sent for r in message.params["received"]):
                            break
                        found.append((g, at[g], message, False))
                    at[g], half[g] = at[g] + 1, False
            if len(found) == before:
                break
        assert all(at[g] > len(group.messages) for g, group in enumerate(self.groups)), "stages wait in a circle"
        return found

    def _walk(self) -> list[Step]:
        order = self._order()
        stops = [k for k, (g, s, m, _) in enumerate(order) if m is None and self.groups[g].may_stop(s)]
        first = stops[-1] + 1 if stops else 0  # steps from here on may write over inputs
        steps: list[Step] = []
        looked = not stops
        for k, (g, s, message, sends) in enumerate(order):
            segment = self.groups[g].segment(s, k >= first) if message is None else None
            if message is None and segment is None:
                continue
            looks = not looked and segment is not None and bool(segment.program.donated)
            looked = looked or looks
            steps.append(Step(g, segment, message, sends, looks, ()))
        # A value ends with the last step that uses it.
        left = [set(group.graph.outputs) for group in self.groups]
        for k in range(len(steps) - 1, -1, -1):
            step = steps[k]
            used = _uses(step)
            ends = tuple([n for n in used if n not in left[step.group]])
            left[step.group] |= set(ends)
            steps[k] = step._replace(ends=ends)
        return steps

    def entry(self, *given: Sequence[base.Spread]) -> list[tuple[DeviceSpread, ...]]:
        """Return for each mesh the outputs of its ranks, given their inputs.

        Raises what the program of one rank raises, and TypeError for inputs of other types.
        """
        values: list[dict[Node, Any]] = []
        for group, pieces in zip(self.groups, given):
            arrays = [p.found for p in pieces]  # type: ignore[attr-defined]
            check_inputs(group.graph.name, group.types, group.mesh, arrays)
            for i in set(group.aliases.values()):
                if sum(a is arrays[i] for a in arrays) > 1:
                    arrays[i] = jnp.copy(arrays[i])
            values.append({**group.fixed, **dict(zip(group.graph.inputs, arrays))})
        notes: list[tuple[Mapped, Any]] = []
        mail: dict[int, Any] = {}
        for step in self.steps:
            own = values[step.group]
            if step.segment is not None:
                if step.looks:
                    _look(notes)
                found, note = step.segment.program.run([own[n] for n in step.segment.takes])
                own.update(zip(step.segment.gives, found))
                if note is not None:
                    notes.append((step.segment.program, note))
            elif step.message is not None:
                self._pass_on(step, own, mail)
            for node in step.ends:
                own.pop(node, None)
        _look(notes)
        return [self._results(k, given[k], values[k]) for k in range(len(self.groups))]

    def _pass_on(self, step: Step, own: dict[Node, Any], mail: dict[int, Any]) -> None:
        message = step.message
        assert message is not None
        if step.sends:
            for value, (mesh, tag) in zip(sent_by(message), message.params["sent"]):
                mail[tag] = jax.device_put(own[value], self.shardings[mesh])
            return
        places = {n.params["index"]: n for n in self.groups[step.group].arrived if n.inputs[0] is message}
        for k, (_, tag, *_) in enumerate(message.params["received"]):
            array = mail.pop(tag)
            if k in places:
                own[places[k]] = array

    def _results(self, k: int, given: Sequence[base.Spread], own: dict[Node, Any]) -> tuple[DeviceSpread, ...]:
        group, results = self.groups[k], []
        seen = {id(p.found) for p in given} | {id(f) for f in group.fixed.values()}  # type: ignore[attr-defined]
        for j, output in enumerate(group.graph.outputs):
            value = own[output]
            if id(value) in seen:
                value = jnp.copy(value)
            seen.add(id(value))
            if j in group.aliases:
                piece: Any = given[group.aliases[j]]
                piece.found = value
                results.append(piece)
            else:
                results.append(DeviceSpread(group.mesh, value))
        return tuple(results)


def _look(notes: list[tuple[Mapped, Any]]) -> None:
    """Raise the error of the first note that is one, and forget the others."""
    for program, note in notes:
        program.look(note)
    notes.clear()


def _uses(step: Step) -> list[Node]:
    if step.segment is not None:
        return list(dict.fromkeys((*step.segment.takes, *step.segment.gives)))
    assert step.message is not None
    return list(sent_by(step.message)) if step.sends else []
