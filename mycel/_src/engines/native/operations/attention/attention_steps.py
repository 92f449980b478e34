"""Lowering of attention and its derivative, to one kernel each (`attention_kernel`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, element_count, like_order, row_major
from mycel._src.engines.native.operations.attention.attention_kernel import backward_text, forward_text
from mycel._src.engines.native.operations.attention.attention_parameters import Form, Mask, block_of, padded
from mycel._src.engines.native.steps.step_builder import StepBuilder

__all__ = ["attention_grad_step", "attention_step"]

# No sequence is as long.
FAR = 1 << 30


class _Operands:
    """The operands of a kernel as words: numbers first, then addresses, then the scale.

    `steps` is the builder, `node` the attention or its derivative, with queries `q` and keys `k`;
    `values` is the number of features of values.
    """

    def __init__(self, steps: StepBuilder, node: Node, q: Node, k: Node, values: int) -> None:
        p = node.params
        low, high = p["band"] or (None, None)
        self.steps, self.axes = steps, q.type.rank - 2
        self.lead: tuple[DimLike, ...] = tuple(q.shape[:-2])
        self.shared = tuple(a for a in range(self.axes) if is_one(k.shape[a]) and not is_one(q.shape[a]))
        self.numbers: list[Any] = [q.shape[-2], k.shape[-2], _within(low), _within(high), *self.lead]
        self.buffers: list[Buffer] = []
        self.form = Form(
            q.dtype,
            int(q.shape[-1]),
            values,
            self.axes,
            self.shared,
            (),
            low is not None,
            high is not None,
            float(p["fill"]),
            float(p["keep"]),
        )

    def add(self, view: View, column: bool = False) -> None:
        """Add an operand, whose axes in front may be 1 in place of any size.

        Its columns are next to each other unless `column` says that there are steps between them.
        """
        strides = [
            0 if is_one(d) and not is_one(whole) else s
            for d, s, whole in zip(view.shape, view.strides, (*self.lead, *view.shape[-2:]))
        ]
        self.numbers += [view.offset, strides[-2], strides[-1] if column else 1, *strides[:-2]]
        self.buffers.append(view.buffer)

    def read(self, node: Node) -> None:
        """Add an operand that is read along its rows."""
        view = self.steps.view(node)
        if not is_one(view.strides[-1]) and not is_one(view.shape[-1]):
            view = self.steps.contiguous(view)
        self.add(view)

    def rows(self, node: Node) -> None:
        """Add one number for each query."""
        view = self.steps.view(node)
        if not is_one(view.strides[-2]):
            view = self.steps.contiguous(view)
        self.add(view)

    def masks(self, names: Sequence[str], nodes: Sequence[Node], scores: tuple[DimLike, ...]) -> None:
        """Add the operands that change scores, which broadcast to the shape `scores`."""
        found, draws = [], False
        for name, node in zip(names, nodes):
            view = self.steps.view(node)
            if name == "state":
                draws, view = True, self.steps.contiguous(view)
                self.add(View(view.buffer, (*(1,) * (len(scores) - 1), 2), (*(0,) * (len(scores) - 1), 1), view.offset))
                continue
            more = len(scores) - len(view.shape)
            view = View(view.buffer, (*(1,) * more, *view.shape), (*(0,) * more, *view.strides), view.offset)
            view = _unrepeated(view)
            same_rows = is_one(view.shape[-2])
            if not same_rows and (is_one(view.shape[-1]) or not is_one(view.strides[-1])):
                shape = (*view.shape[:-1], scores[-1])
                columns = 0 if is_one(view.shape[-1]) else view.strides[-1]
                view = View(view.buffer, shape, (*view.strides[:-1], columns), view.offset)
                view = self.steps.copy(view)
            if same_rows:
                shape, strides = (*view.shape[:-2], 1, view.shape[-1]), list(view.strides)
                strides[-2] = 0
                strides[-1] = 0 if is_one(view.shape[-1]) else strides[-1]
                view = View(view.buffer, shape, tuple(strides), view.offset)
            found.append(Mask(name, same_rows))
            self.add(view, True)
        self.form = Form(**{**self.form.__dict__, "masks": tuple(found), "draws": draws})

    def words(self, scale: float) -> list[Word]:
        bits = struct.unpack("<q", struct.pack("<d", scale))[0]
        return [*[("int", x) for x in self.numbers], *[("pointer", b) for b in self.buffers], ("int", bits)]


def _within(end: DimLike | None) -> DimLike:
    """Return an end of a band as kernels take it: beyond `FAR` all ends are alike."""
    return max(-FAR, min(FAR, end)) if type(end) is int else end or 0


def _unrepeated(view: View) -> View:
    """Return a view with 1 in place of axes along which all elements are the same."""
    shape = tuple(1 if is_zero(s) else d for d, s in zip(view.shape, view.strides))
    return View(view.buffer, shape, view.strides, view.offset)


def _result(like: View, shape: Sequence[DimLike], node: Node, width: int) -> View:
    """Return a new place for a result with axes in the order of `like`.

    Its rows have room for `width` elements.
    """
    wide = (*shape[:-1], width)
    strides = like_order((*like.strides[:-1], 0), wide)
    return View(Buffer(node.inputs[0].dtype, element_count(wide), node.op), tuple(shape), strides)


def attention_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernel of an attention."""
    q, k, v, *masks = node.inputs
    p, (result, statistic, _) = node.params, node.type
    given = _Operands(steps, node, q, k, int(v.shape[-1]))
    for x in (q, k, v):
        given.read(x)
    given.masks(p["operands"], masks, (*q.shape[:-1], k.shape[-2]))
    out = _result(steps.view(q), result.shape, node, int(v.shape[-1]))
    statistics = [row_major(Buffer(statistic.dtype, statistic.size, node.op), statistic.shape) for _ in range(2)]
    reads = list(given.buffers)
    for view in (out, *statistics):
        given.add(view)
    size = block_of(q.dtype)
    extent = product(given.lead) * -(-q.shape[-2] // size)
    work = product(given.lead) * q.shape[-2] * k.shape[-2] * (1 + (q.shape[-1] + v.shape[-1]) // 16)
    kernel = Kernel(forward_text(given.form), given.words(p["scale"]), extent, work)
    steps.step(kernel, reads, [v.buffer for v in (out, *statistics)], node)
    steps.bind(node, [out, *statistics])


def attention_grad_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernel of the derivative of an attention."""
    ct, q, k, v, peak, total, delta, *masks = node.inputs
    p = node.params
    given = _Operands(steps, node, q, k, int(v.shape[-1]))
    for x in (ct, q, k, v):
        given.read(x)
    for x in (peak, total, delta):
        given.rows(x)
    given.masks(p["operands"], masks, (*q.shape[:-1], k.shape[-2]))
    results = []
    for x in (q, k, v):
        wide = int(x.shape[-1]) if x is q else padded(int(x.shape[-1]), q.dtype)
        results.append(_result(steps.view(x), x.shape, node, wide))
    reads = list(given.buffers)
    for view in results:
        given.add(view)
    extent = product(d for a, d in enumerate(given.lead) if a not in given.shared)
    work = product(given.lead) * q.shape[-2] * k.shape[-2] * (1 + (3 * q.shape[-1] + 2 * v.shape[-1]) // 16)
    words = [*given.words(p["scale"]), ("status", 0), ("listen", 0)]
    kernel = Kernel(backward_text(given.form), words, extent, work)
    steps.step(kernel, reads, [v.buffer for v in results], node)
    steps.bind(node, results)
