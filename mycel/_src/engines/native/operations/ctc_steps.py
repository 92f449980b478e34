"""Lowering of the CTC loss and its derivative (`operations.ctc_kernel`).

Threads share the sequences of the batch, each of which has rows of scratch memory.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.kernels.vector_writer import lanes_of
from mycel._src.engines.native.operations.ctc_kernel import NAMES, NUMBERS, ROWS, backward_text, forward_text
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views

__all__ = ["ctc_grad_step", "ctc_step"]

# The work of a state, in operations by which the work of kernels is counted; how many states a time
# may have for signals to be looked for at every 16th one alone.
STATE, MANY = 40, 1 << 13


def ctc_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that gives labellings' log-probabilities."""
    results = new_views(node.type, "ctc")
    keeps = steps.is_read(node, 1)
    places = dict(zip(NAMES["forward"], [*_given(steps, node.inputs), *results]))
    text = forward_text(results[0].buffer.dtype, node.params["merge"], keeps)
    if not keeps:
        del places["alpha"]
    _run(steps, node, text, places, ["total", "alpha"])
    steps.bind(node, results)


def ctc_grad_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that gives the cotangents of logarithms of probabilities."""
    (result,) = new_views((node.type,), "ctc_grad")
    ct, log_probs, *others, total, alpha = node.inputs
    given = [steps.contiguous(steps.view(ct)), *_given(steps, (log_probs, *others))]
    given += [steps.contiguous(steps.view(i)) for i in (total, alpha)]
    places = dict(zip(NAMES["backward"], [*given, result]))
    _run(steps, node, backward_text(result.buffer.dtype, node.params["merge"]), places, ["made"])
    steps.bind(node, [result])


def _given(steps: StepBuilder, inputs: tuple[Node, ...]) -> list[View]:
    """Return the places of logarithms of probabilities, targets and lengths."""
    first, *others = (steps.view(i) for i in inputs)
    if first.strides[2] != 1:
        first = steps.contiguous(first)
    return [first, *[steps.contiguous(v) for v in others]]


def _run(steps: StepBuilder, node: Node, text: str, places: dict[str, View], written: list[str]) -> None:
    """Add the step of a kernel.

    `node` is what it computes, `places` are its operands by name, and `written` are the names of
    those that it writes.
    """
    probs = places["log_probs"]
    (time, batch, classes), labels = probs.shape, places["targets"].shape[1]
    lanes = lanes_of(probs.buffer.dtype)
    padded = (labels + lanes) // lanes * lanes
    size = batch * (padded + 2 * lanes) * ROWS
    places["scratch"] = row_major(Buffer(probs.buffer.dtype, size, "scratch"), (size,))
    ticks = 15 if isinstance(padded, int) and padded < MANY else 0
    numbers: tuple[DimLike, ...] = (time, batch, classes, labels, padded, node.params["blank"], probs.offset)
    numbers = (*numbers, *probs.strides[:2], ticks)
    assert len(numbers) == len(NUMBERS)
    words: list[Word] = [("int", v) for v in numbers]
    words += [("listen", 0), ("status", 0), *[("pointer", v.buffer) for v in places.values()]]
    reads = [v.buffer for n, v in places.items() if n not in written and n != "scratch"]
    writes = [places[n].buffer for n in (*written, "scratch") if n in places]
    work = batch * time * (padded * STATE + classes)
    steps.step(Kernel(text, words, batch, work), reads, writes, node)
