"""Gradients of loops as steps: a loop that records its states on a tape, and one that goes back through it.

Going forwards is the steps of `while_loop` with a `push` before each round's; going backwards is a loop whose test is a `pop`, which puts a state back, and whose body is one
round of the derivative. Where the graph also has the loop itself, it records at the same time (`pair`), so that nothing is computed twice.
With ``keep="root"`` what is popped is the state before a stretch of rounds: they are run again, recording on a second tape, and gone back through.
Only the carried values that the derivative reads are on the tape; all are, where rounds are run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from mycel.base import dtype as D
from mycel.engines.native.kernels.nest import Buffer
from mycel.engines.native.kernels.views import View, row_major
from mycel.engines.native.lowering.control_steps import Nested, _copy_into, _inside, _new, _touched
from mycel.engines.native.runtime.door import runtime
from mycel.ir.graph import Graph, Node, input_node, toposort
from mycel.ir.hash import structural_hash
from mycel.prims import elementwise as E

if TYPE_CHECKING:
    from mycel.engines.native.lowering.lower import Step

__all__ = ["Tape", "encode_tape", "pair", "record", "while_grad_step"]

HEADER = 8


@dataclass
class Tape:
    """An operation on a tape: "begin", "push", "pop" or "count"; with the buffers of the state, and a place for the answer."""

    operation: str
    header: Buffer
    states: Sequence[Buffer] = ()
    root: bool = False
    predicate: Optional[Buffer] = None


def encode_tape(program: Any, tape: Tape) -> Any:
    """The words and the table entry of a step."""
    import ctypes

    start = len(program.words)
    sizes = [program.number(b.size) * b.dtype.itemsize for b in tape.states]
    program.pointer(tape.header)
    # Memory of no bytes cannot be told from none; where the derivative reads no state, rounds are counted by a byte each.
    program.words += [max(sum(sizes), 1), int(tape.root), ctypes.addressof(program.status)]
    if tape.predicate is None:
        program.words.append(0)
    else:
        program.pointer(tape.predicate)
    program.words.append(len(sizes))
    for buffer, size in zip(tape.states, sizes):
        program.pointer(buffer)
        program.words.append(size)
    return [(start, runtime().address[f"mycel_tape_{tape.operation}"], 1, 0)]


def _step(tape: Tape) -> Step:
    from mycel.engines.native.lowering.lower import Step

    reads, writes = [tape.header], [tape.header]
    if tape.operation == "push":
        reads += tape.states
    elif tape.operation == "pop":
        writes += tape.states
    if tape.predicate is not None:
        writes.append(tape.predicate)
    return Step("tape", reads, writes, tape)


def _key(node: Node) -> Any:
    body = node.params["body"]
    operands = node.inputs[: len(body.inputs)]
    return tuple(map(id, operands)), structural_hash(node.params["test"]), structural_hash(body)


def _used(node: Node) -> list[int]:
    """The carried values that the derivative reads."""
    backward = node.params["backward"]
    reached = set(toposort(backward.outputs))
    return [i for i in range(node.params["carried"]) if backward.inputs[i] in reached]


def pair(lowering: Any, node: Node) -> None:
    """Let the gradient of a loop come after the loop itself, which then records for it; called for each of both when it is placed."""
    if lowering.pairs is None:
        gradients: dict[Any, Node] = {}
        lowering.pairs = {}
        for n in lowering.graph.nodes:
            if n.op == "while_grad" and n.params["keep"] == "all":
                gradients.setdefault(_key(n), n)
        for n in lowering.graph.nodes if gradients else ():
            if n.op == "while_loop" and (other := gradients.pop(_key(n), None)) is not None:
                lowering.pairs[n], lowering.pairs[other] = other, n
    other = lowering.pairs.get(node)
    if other is not None and other in lowering.unit_of:
        gradient, loop = (node, other) if node.op == "while_grad" else (other, node)
        lowering.depend(lowering.unit_of[gradient], loop)


def record(lowering: Any, node: Node, carried: Sequence[View]) -> list[Step]:
    """What a loop does before each round where its gradient goes back through what it records."""
    gradient = (lowering.pairs or {}).get(node)
    if gradient is None:
        return []
    header = _begin(lowering)
    lowering.tapes[node] = header
    return [_step(Tape("push", header, [carried[i].buffer for i in _used(gradient)]))]


def _begin(lowering: Any) -> Buffer:
    header = Buffer(D.int64, HEADER, "tape")
    begin = _step(Tape("begin", header))
    lowering.step("tape", begin.reads, begin.writes, begin.data)
    return header


def _loop(
    lowering: Any, predicate: Buffer, test: list[Step], body: list[Step], node: Node, into: Optional[list[Step]] = None
) -> None:
    from mycel.engines.native.lowering.lower import Step

    view = row_major(predicate, ())
    reads, writes = _touched([*test, *body])
    step = Step("while", [predicate, *reads], [predicate, *writes], Nested(view, test, body, True), node)
    (lowering.result.steps if into is None else into).append(step)


def _body_steps(lowering: Any, graph: Graph, inside: list[View], targets: list[View]) -> list[Step]:
    """The steps of one round, whose results replace `targets`, which are among what it reads."""
    inner = _inside(lowering, graph, inside)
    lowered = inner.run()
    held = {id(v.buffer) for v in inside}
    results = [inner.copy(v) if id(v.buffer) in held else v for v in lowered.outputs]
    for source, target in zip(results, targets):
        _copy_into(inner, source, target)
    return lowered.steps  # type: ignore[no-any-return]


def while_grad_step(lowering: Any, node: Node) -> None:
    """The cotangents of a loop's values and operands."""
    from mycel.engines.native.lowering.multi_kernel import fill_zeros

    params = node.params
    count, body = params["carried"], params["body"]
    root = params["keep"] == "root"
    operands = [lowering.view(i) for i in node.inputs]
    values, fixed, cts = operands[:count], operands[count : len(body.inputs)], operands[len(body.inputs) :]
    types = [i.type for i in node.inputs]
    state = _new(tuple(types[:count]), "state")
    used = list(range(count)) if root else _used(node)
    header = lowering.tapes.get((lowering.pairs or {}).get(node))
    if header is None:
        header = _forwards(lowering, node, values, fixed, used, root)
    changing = _new(tuple(types[len(body.inputs) :]), "cotangent")
    for source, target in zip(cts, changing):
        _copy_into(lowering, source, target)
    sums = _new(tuple(types[count + i] for i in params["free"]), "sum")
    for target in sums:
        fill_zeros(lowering, target)
    inside = [*state, *fixed, *changing, *sums]
    back = _body_steps(lowering, _accumulating(params["backward"], len(changing)), inside, [*changing, *sums])
    states = [state[i].buffer for i in used]
    again = Buffer(D.bool_, 1, "again")
    pop = _step(Tape("pop", header, states, False, again))
    if not root:
        _loop(lowering, again, [pop], back, node)
    else:
        inner = Buffer(D.int64, HEADER, "tape")
        more, left = Buffer(D.bool_, 1, "more"), Buffer(D.bool_, 1, "left")
        forwards = _body_steps(lowering, body, [*state, *fixed], state)
        stretch: list[Step] = [_step(Tape("begin", inner))]
        push = _step(Tape("push", inner, states))
        _loop(lowering, more, [_step(Tape("count", header, (), False, more))], [push, *forwards], node, stretch)
        _loop(lowering, left, [_step(Tape("pop", inner, states, False, left))], back, node, stretch)
        _loop(lowering, again, [pop], stretch, node)
    lowering.bind(node, [*changing, *sums])


def _forwards(lowering: Any, node: Node, values: list[View], fixed: list[View], used: list[int], root: bool) -> Buffer:
    """Run the loop and record; the tape's header."""
    params = node.params
    carried = _new(tuple(i.type for i in node.inputs[: params["carried"]]), "carried")
    for source, target in zip(values, carried):
        _copy_into(lowering, source, target)
    header = _begin(lowering)
    inside = [*carried, *fixed]
    test = _inside(lowering, params["test"], inside).run()
    steps = _body_steps(lowering, params["body"], inside, carried)
    push = _step(Tape("push", header, [carried[i].buffer for i in used], root))
    nested = Nested(test.outputs[0], test.steps, [push, *steps], True)
    reads, writes = _touched([*test.steps, push, *steps])
    lowering.step("while", [nested.predicate.buffer, *reads], [*[t.buffer for t in carried], *writes], nested, node)
    return header


def _accumulating(backward: Graph, states: int) -> Graph:
    """One round backwards that also adds up the cotangents of the fixed operands."""
    addends = backward.outputs[states:]
    sums = [input_node(a.type, "sum") for a in addends]
    outputs = [*backward.outputs[:states], *[E.add(s, a) for s, a in zip(sums, addends)]]
    return Graph((*backward.inputs, *sums), outputs, backward.name)
