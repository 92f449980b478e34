"""Lowering of loops.

Each carried value has a buffer; the body reads them, and its results replace them when all are
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views
from mycel._src.engines.native.steps.step_types import Nested, Step, touched
from mycel._src.foundation import dtype as D

__all__ = ["body_steps", "forward_loop", "loop_step", "rounds_step"]


def loop_step(predicate: View, test: list[Step], body: list[Step], written: Sequence[Buffer], node: Node) -> Step:
    """Return the step that repeats `body` while `test` leaves true in `predicate`.

    `written` are the buffers of the final values; `node` is the loop.
    """
    reads, writes = touched([*test, *body])
    return Step(Nested(predicate, test, body, True), [predicate.buffer, *reads], [*written, *writes], node)


def rounds_step(
    steps: StepBuilder, number: View, rounds: int, body: list[Step], written: Sequence[Buffer], node: Node
) -> None:
    """Add the step that runs `body` so many `rounds`, which `number` counts from 0, to `steps`.

    `number` holds an int64 and is zero before. `written` are the buffers that the body writes, and
    `node` is what it computes.
    """
    made = []
    for name in ("test", "body"):
        count = input_node(tensor_type((), D.int64), "number")
        made.append(Graph((count,), (E.lt(count, rounds) if name == "test" else E.add(count, 1),), name))
    inner = steps.nested(made[0], [number]).lowered
    counting = body_steps(steps, made[1], [number], [number])
    steps.add(loop_step(inner.outputs[0], inner.steps, [*body, *counting], [number.buffer, *written], node))


def body_steps(steps: StepBuilder, graph: Graph, inside: list[View], targets: list[View]) -> list[Step]:
    """Return the steps of one iteration of the loop body `graph`.

    `steps` builds the graph around it. `inside` are the places that the body reads; its results
    replace `targets`, which are among these.
    """
    inner = steps.nested(graph, inside, targets)
    held = {id(v.buffer) for v in inside}
    moving = [
        (v, t) for v, t in zip(inner.lowered.outputs, targets) if v.buffer is not t.buffer or not v.is_row_major()
    ]
    # A result may lie where another one is about to be copied.
    apart = [(inner.copy(v) if id(v.buffer) in held else v, t) for v, t in moving]
    for source, target in apart:
        inner.copy_into(source, target)
    return inner.lowered.steps


def forward_loop(steps: StepBuilder, node: Node, before_round: Callable[[list[View]], list[Step]]) -> list[View]:
    """Add the step of a loop and return the places of its carried values.

    `node` is a `while_loop`, or a `while_grad` whose loop is run; `before_round` returns the steps
    that each iteration begins with, given those places.
    """
    count, body = node.params["carried"], node.params["body"]
    operands = [steps.view(i) for i in node.inputs[: len(body.inputs)]]
    carried = new_views([i.type for i in node.inputs[:count]], "carried")
    for source, target in zip(operands, carried):
        steps.copy_into(source, target)
    beginning = before_round(carried)
    inside = [*carried, *operands[count:]]
    test = steps.nested(node.params["test"], inside).lowered
    rounds = [*beginning, *body_steps(steps, body, inside, carried)]
    steps.add(loop_step(test.outputs[0], test.steps, rounds, [t.buffer for t in carried], node))
    return carried
