"""Lowering of gradients of loops: the forward loop records states on a tape for the backward loop.

The forward loop is `while_loop` with a `push` before each iteration; the backward loop has a `pop`
as its test, which restores a state, and one iteration of the derivative as its body. Where the
graph also has the loop itself, that loop records (`loop_pairs`), so that nothing is computed twice.
With ``keep="root"`` each state on the tape begins a stretch of iterations: these are run again,
recording on a second tape, before the backward loop goes through them. The tape holds only the
carried values that the derivative reads, or all of them where iterations are run again.

Programs without a runtime cannot let a tape grow. Theirs has room for the rounds that the loop's
form allows at most (`transforms/trip_count_bounds.py`), behind its header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node, input_node, toposort
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.transforms.trip_count_bounds import most_rounds
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.llvm.target import target as processor
from mycel._src.engines.native.operations.control_flow.loop_steps import body_steps, forward_loop, loop_step
from mycel._src.engines.native.steps.fill_and_copy import fill_zeros
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views
from mycel._src.engines.native.steps.step_types import Step, Tape
from mycel._src.foundation import dtype as D

__all__ = ["HEADER", "entry_bytes", "record", "while_grad_step"]

# Words of a tape's header; see `runtime.tape_ir`.
HEADER = 8


def _tape_step(tape: Tape, node: Node | None = None) -> Step:
    reads, writes = [tape.header], [tape.header]
    if tape.operation == "push":
        reads += tape.states
    elif tape.operation == "pop":
        writes += tape.states
    if tape.predicate is not None:
        writes.append(tape.predicate)
    return Step(tape, reads, writes, None if processor().runtime else node)


def _used(node: Node) -> list[int]:
    """Return the numbers of the carried values that the derivative reads."""
    backward = node.params["backward"]
    reached = set(toposort(backward.outputs))
    return [i for i in range(node.params["carried"]) if backward.inputs[i] in reached]


def record(steps: StepBuilder, node: Node, carried: Sequence[View]) -> list[Step]:
    """Return the steps that record a loop's state before each iteration.

    The list is empty where no gradient of the loop needs them.
    """
    gradient = steps.pairs.get(node)
    if gradient is None:
        return []
    states = [carried[i].buffer for i in _used(gradient)]
    tape = _begin(steps, gradient, states, False)
    steps.tapes[node] = tape
    return [_tape_step(replace(tape, operation="push"), gradient)]


def _begin(steps: StepBuilder, node: Node, states: Sequence[Buffer], root: bool) -> Tape:
    """Add the step that makes an empty tape of `states` for the gradient `node`, and return it."""
    size: DimLike = HEADER
    entry: DimLike | None = None
    if not processor().runtime and not root:
        rounds = most_rounds(node)
        if rounds is not None:
            entry = sum(entry_bytes(state) for state in states)
            size = HEADER + rounds * (entry // 8)
    tape = Tape("begin", Buffer(D.int64, size, "tape"), states, root, entry=entry)
    steps.add(_tape_step(tape, node))
    return tape


def entry_bytes(state: Buffer) -> DimLike:
    """Return what a state takes on a tape behind its header: whole multiples of 16 bytes."""
    found: DimLike = -(-(state.size * state.dtype.itemsize) // 16) * 16
    return found


def while_grad_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps that compute the cotangents of a loop's values and operands."""
    params = node.params
    count, body = params["carried"], params["body"]
    root = params["keep"] == "root"
    operands = [steps.view(i) for i in node.inputs]
    fixed, cts = operands[count : len(body.inputs)], operands[len(body.inputs) :]
    types = [i.type for i in node.inputs]
    state = new_views(types[:count], "state")
    used = list(range(count)) if root else _used(node)
    loop = steps.pairs.get(node)
    tape = _forwards(steps, node, used, root) if loop is None else steps.tapes[loop]
    header = tape.header
    changing = new_views(types[len(body.inputs) :], "cotangent")
    for source, target in zip(cts, changing):
        steps.copy_into(source, target)
    sums = new_views([types[count + i] for i in params["free"]], "sum")
    for target in sums:
        fill_zeros(steps, target)
    inside = [*state, *fixed, *changing, *sums]
    back = body_steps(steps, _accumulating(params["backward"], len(changing)), inside, [*changing, *sums])
    states = [state[i].buffer for i in used]
    if root:
        forwards = body_steps(steps, body, [*state, *fixed], state)
        back = _stretch(node, header, states, forwards, back)
    again = Tape("pop", header, states, False, Buffer(D.bool_, 1, "again"), tape.entry)
    steps.add(_popping(again, back, node))
    steps.bind(node, [*changing, *sums])


def _stretch(
    node: Node, header: Buffer, states: Sequence[Buffer], forwards: list[Step], back: list[Step]
) -> list[Step]:
    """Return the steps that run a stretch of iterations again and then go back through them.

    The states are recorded on a second tape.
    """
    inner = Buffer(D.int64, HEADER, "tape")
    more, left = Buffer(D.bool_, 1, "more"), Buffer(D.bool_, 1, "left")
    push = _tape_step(Tape("push", inner, states))
    return [
        _tape_step(Tape("begin", inner)),
        _popping(Tape("count", header, (), False, more), [push, *forwards], node),
        _popping(Tape("pop", inner, states, False, left), back, node),
    ]


def _popping(tape: Tape, body: list[Step], node: Node) -> Step:
    """Return the loop over `body` whose test is the operation `tape`."""
    assert tape.predicate is not None
    return loop_step(row_major(tape.predicate, ()), [_tape_step(tape, node)], body, [tape.predicate], node)


def _forwards(steps: StepBuilder, node: Node, used: list[int], root: bool) -> Tape:
    """Add the forward loop of a gradient, which records; return the tape."""
    tapes: list[Tape] = []

    def push(carried: list[View]) -> list[Step]:
        tapes.append(_begin(steps, node, [carried[i].buffer for i in used], root))
        return [_tape_step(replace(tapes[0], operation="push"), node)]

    forward_loop(steps, node, push)
    return tapes[0]


def _accumulating(backward: Graph, states: int) -> Graph:
    """Return one iteration of the derivative that also sums the fixed operands' cotangents."""
    addends = backward.outputs[states:]
    sums = [input_node(a.type, "sum") for a in addends]
    outputs = [*backward.outputs[:states], *[_plus(s, a) for s, a in zip(sums, addends)]]
    return Graph((*backward.inputs, *sums), outputs, backward.name)


def _plus(total: Node, addend: Node) -> Node:
    """Return a sum; what belongs to parts of it, as to one time of a sequence, is added to these
    parts alone.
    """
    if addend.prim is E.add and any(i.prim in (E.add, I.take_add) for i in addend.inputs):
        if all(i.shape == total.shape for i in addend.inputs):
            return _plus(_plus(total, addend.inputs[0]), addend.inputs[1])
    if addend.prim is not I.take_add or addend.inputs[1].type.rank > 1 or addend.dtype.itemsize < 4:
        return E.add(total, addend)
    (part, indices), axis = addend.inputs, addend.params["axis"]
    shape = part.shape if indices.type.rank else (*part.shape[:axis], 1, *part.shape[axis:])
    count = shape[axis]
    line = S.reshape(indices, (*(1,) * axis, count, *(1,) * (len(shape) - axis - 1)))
    places, bounds = S.broadcast_to(line, shape), addend.params.get("bounds", "wrap")
    return I.put_along(total, places, S.reshape(part, shape), axis=axis, mode="add", bounds=bounds)
