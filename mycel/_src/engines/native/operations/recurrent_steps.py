"""Lowering of recurrent layers and their derivatives (`operations.recurrent_kernel`).

The weights of the state are packed into panels once. Then one kernel goes through all times, and
threads share the rows of the batch; where few rows meet many weights, a loop goes through the times
and threads share the panels of each. What only the derivative reads is written where the graph has
that derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.neural.recurrence import GATES, KEPT, given_to_grad
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Buffer, Builder, Expr, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View, element_count, row_major
from mycel._src.engines.native.operations.control_flow.loop_steps import rounds_step
from mycel._src.engines.native.operations.recurrent_kernel import (
    Form,
    backward_text,
    forward_text,
    lanes_of,
    names_of_words,
)
from mycel._src.engines.native.steps.fill_and_copy import fill_zeros
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views
from mycel._src.engines.native.steps.step_types import Step
from mycel._src.foundation import dtype as D

__all__ = ["recurrence_grad_step", "recurrence_step"]

# Multiplications, and bytes of weights, for each operation by which the work of kernels is counted,
# and the operations of a gate.
PRODUCTS, BYTES, GATE = 24, 16, 40
# Threads share panels where the rows of the batch are fewer than this for each megabyte of weights,
# and one time is worth a second thread.
FEW, MEGABYTE, WORTH = 12, 1 << 20, 1 << 17
# Operations after which signals are looked for: some milliseconds of one core.
LISTENS = 1 << 24


def recurrence_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of a recurrence."""
    mode, masked = node.params["mode"], node.params["masked"]
    p, w, b, h, *rest = (steps.view(i) for i in node.inputs)
    time, batch, hidden = node.type[0].shape
    dtype, gates = p.buffer.dtype, GATES[mode]
    if p.strides[2] != 1:
        p = steps.contiguous(p)
    keeps = any(steps.is_read(node, k) for k in KEPT[mode])
    form = Form(mode, dtype, masked, _whole(hidden, lanes_of(dtype)), gates, False, keeps=keeps)
    results = new_views(node.type, "recurrence")
    places = {"p": p, "weights": _packed(steps, w, gates), "h0": steps.contiguous(h), "states": results[0]}
    places |= {"h": results[1], "bias": steps.contiguous(b)}
    if mode in ("lstm", "gru"):
        places["gates"] = results[-1]
    if mode == "lstm":
        places |= {"c0": steps.contiguous(rest[0]), "c": results[2], "cells": results[3]}
    if masked:
        places["mask"] = steps.contiguous(rest[-1])
    written = ["states", "h", "c"] + (["cells", "gates"] if keeps else [])
    _run(steps, node, form, places, written, (time, batch, hidden), node.params["reverse"])
    steps.bind(node, results)


def recurrence_grad_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of a recurrence's derivative."""
    mode, masked, given = (node.params[k] for k in ("mode", "masked", "given"))
    x = given_to_grad([steps.view(i) for i in node.inputs], mode, masked, given)
    time, batch, hidden = x.states.shape
    dtype = x.states.buffer.dtype
    vectors = _side_by_side(hidden, lanes_of(dtype))
    form = Form(mode, dtype, masked, _whole(hidden, vectors * lanes_of(dtype)), vectors, False, True, given=given)
    results = new_views(node.type, "recurrence_grad")
    named = {"h0": x.h, "c0": x.c, "mask": x.mask, "states": x.states, "cells": x.cells, "gates": x.gates}
    named |= {"ct_states": x.ct_states, "ct_h": x.ct_h, "ct_c": x.ct_c}
    places = {name: steps.contiguous(v) for name, v in named.items() if v is not None}
    places |= {"weights": _packed_back(steps, x.w, mode, vectors), "parts": results[0], "dh": results[1]}
    if mode == "lstm":
        places["dc"] = results[2]
    _run(steps, node, form, places, ["parts", "dh", "dc"], (time, batch, hidden), not node.params["reverse"])
    steps.bind(node, results)


def _whole(hidden: DimLike, size: int) -> bool:
    return isinstance(hidden, int) and hidden % size == 0


def _side_by_side(hidden: DimLike, lanes: int) -> int:
    """Return how many vectors of a state make a panel: the most that leave few lanes unused."""
    if not isinstance(hidden, int):
        return 4
    vectors = -(-hidden // lanes)
    return min((4, 3, 2, 1), key=lambda v: (-(-vectors // v) * v * (1 + 0.04 * (4 - v)), -v))


# Weights in panels.


def _packed(steps: StepBuilder, w: View, gates: int) -> View:
    """Add the kernel that packs weights for the way forward; return their place.

    Its axes are the panels, the elements of the state, the gates, and the lanes.
    """
    hidden, lanes = w.shape[1], lanes_of(w.buffer.dtype)
    panels = -(-hidden // lanes)
    shape = (panels, hidden, gates, lanes)
    target = row_major(Buffer(w.buffer.dtype, element_count(shape), "panels"), shape)
    strides = (w.strides[0] * lanes, w.strides[1], w.strides[0] * hidden, w.strides[0])
    _pack(steps, View(w.buffer, shape, strides, w.offset), target, hidden, (lanes, 1))
    return target


def _packed_back(steps: StepBuilder, w: View, mode: str, vectors: int) -> View:
    """Add the kernels that pack weights for the way back; return their place.

    Its axes are the panels, the rows in the order of the cotangents that they meet, the vectors and
    the lanes.
    """
    (rows, hidden), lanes = w.shape, lanes_of(w.buffer.dtype)
    across = vectors * lanes
    shape = (-(-hidden // across), rows, across)
    target = row_major(Buffer(w.buffer.dtype, element_count(shape), "panels"), shape)
    parts = [(2 * hidden, hidden, 0), (0, 2 * hidden, hidden)] if mode == "gru" else [(0, rows, 0)]
    for start, count, place in parts:
        part = (shape[0], count, across)
        strides = (w.strides[1] * across, w.strides[0], w.strides[1])
        source = View(w.buffer, part, strides, w.offset + w.strides[0] * start)
        into = View(target.buffer, part, target.strides, target.strides[1] * place)
        _pack(steps, source, into, hidden, (across, 1))
    return target


def _pack(steps: StepBuilder, source: View, target: View, hidden: DimLike, steps_of: tuple[int, int]) -> None:
    """Add the kernel that copies weights into panels, with zeros beyond the state.

    `steps_of` are the elements of the state from panel to panel and from lane to lane; those from
    `hidden` on are not there.
    """
    position = tuple(affine(k) for k in range(len(target.shape)))
    access = source.access(position)
    guards: tuple[tuple[Affine, DimLike], ...] = ()
    if not _whole(hidden, steps_of[0]):
        guards = ((position[0].scale(steps_of[0]) + position[-1].scale(steps_of[1]), hidden),)
    b = Builder()
    value: Expr = b.load(Access(access.buffer, access.offset, guards), 0)
    store = Store(target.access(position), value, True)
    steps.kernel(Nest([Loop(d, "p") for d in target.shape], [], [store], "panels"), target.strides)


# Kernels.


def _run(
    steps: StepBuilder,
    node: Node,
    form: Form,
    places: dict[str, View],
    written: Sequence[str],
    sizes: tuple[DimLike, DimLike, DimLike],
    reverse: bool,
) -> None:
    """Add the steps that run a kernel through all times.

    `node` is what it computes, `form` its form, `places` have its operands by name, and `written`
    are the names of those that it writes. `sizes` are those of time, batch and state, and `reverse`
    tells whether it begins with the last time.
    """
    time, batch, hidden = sizes
    across = form.vectors * lanes_of(form.dtype) if form.backward else lanes_of(form.dtype)
    panels = -(-hidden // across)
    each = _of_one_time(batch, hidden, GATES[form.mode], form.dtype.itemsize)
    by_columns = _shares_panels(sizes, GATES[form.mode], form.dtype.itemsize, each)
    if by_columns:
        form = Form(**{**form.__dict__, "by_columns": True})
    first, step = (time - 1, -1) if reverse else (0, 1)
    ticks = 15 if isinstance(each, int) and each < LISTENS else 0
    offset, strides = (places["p"].offset, places["p"].strides[:2]) if "p" in places else (0, (0, 0))
    words: list[Word] = [("int", v) for v in (time, batch, hidden, first, step, ticks, panels, offset, *strides)]
    words += [] if by_columns else [("listen", 0), ("status", 0)]
    text = (backward_text if form.backward else forward_text)(form)
    names = names_of_words(form)[1]
    if not by_columns:
        words += [("pointer", places[n].buffer) for n in names]
        reads, writes = _touched(names, places, written)
        steps.step(Kernel(text, words, batch, each * time), reads, writes, node)
        return
    number = row_major(Buffer(D.int64, 1, "number"), ())
    fill_zeros(steps, number)
    places["number"] = number
    words += [("pointer", places[n].buffer) for n in names]
    reads, writes = _touched(names, places, written)
    kernel = Step(Kernel(text, words, panels, each), reads, writes, node)
    rounds = time + 1 if form.backward else time
    assert isinstance(rounds, int)
    rounds_step(steps, number, rounds, [kernel], writes, node)


def _touched(
    names: Sequence[str], places: dict[str, View], written: Sequence[str]
) -> tuple[list[Buffer], list[Buffer]]:
    reads = [places[n].buffer for n in names if n not in written]
    return reads, [places[n].buffer for n in names if n in written]


def _of_one_time(batch: DimLike, hidden: DimLike, gates: int, itemsize: int) -> DimLike:
    """Return the work of one time, which reads all weights: `gates` of `itemsize` bytes each."""
    counted = batch * hidden * (hidden * gates // PRODUCTS + gates * GATE)
    read = hidden * hidden * (gates * itemsize) // BYTES
    return max(counted, read) if isinstance(counted, int) and isinstance(read, int) else counted


def _shares_panels(sizes: tuple[DimLike, ...], gates: int, itemsize: int, each: DimLike) -> bool:
    time, batch, hidden = sizes
    if not (isinstance(time, int) and isinstance(batch, int) and isinstance(hidden, int) and time and batch):
        return False
    weights = product((hidden, hidden, gates, itemsize))
    return isinstance(each, int) and each >= WORTH and batch * MEGABYTE < FEW * weights
