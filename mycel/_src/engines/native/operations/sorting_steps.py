"""Lowering of sorting, selecting and searching (`sorting_kernel`).

The kernels work on contiguous rows: where another axis is ordered, its elements are first moved
next to each other, and the results, which have the same layout, are views. Rows are divided into
parts, which threads share; where the scratch memory is too large for the stack, each part has its
own in the arena.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import DimLike, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, element_count, row_major
from mycel._src.engines.native.llvm.target import target as in_force
from mycel._src.engines.native.operations.sorting_kernel import PAD, record_bytes, search_text, sort_text, top_text
from mycel._src.engines.native.steps.fill_and_copy import fill_zeros
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.foundation import dtype as D

__all__ = ["search_step", "sort_step", "top_step"]

STACK = 1 << 16
PARTS = 32
# What an element costs, in elements of a plain kernel.
SORTED, SEEN, FOUND = 30, 3, 40


def sort_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps that sort values along an axis and return their positions."""
    n = node.inputs[0].type.shape[node.params["axis"]]
    _ordered(steps, node, n, n + PAD, node.params["descending"], "sort")


def top_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps that find the largest or smallest values along an axis, in order.

    They also give the positions of these values.
    """
    k = node.params["k"]
    _ordered(steps, node, k, 2 * k + 80, node.params["largest"], "top")


def _ordered(steps: StepBuilder, node: Node, m: DimLike, half: DimLike, descending: bool, what: str) -> None:
    x, axis = node.inputs[0], node.params["axis"]
    rank = x.type.rank
    axes = [a for a in range(rank) if a != axis] + [axis]
    shapes = [tuple(t.shape[a] for a in axes) for t in node.type]
    lying = [row_major(Buffer(t.dtype, element_count(t.shape), node.op), s) for t, s in zip(node.type, shapes)]
    back = [axes.index(a) for a in range(rank)]
    results = [View(v.buffer, tuple(t.shape), tuple(v.strides[b] for b in back)) for v, t in zip(lying, node.type)]
    size = product(shapes[0])
    if type(size) is not int or size:
        view = steps.view(x)
        rows = View(
            view.buffer, tuple(x.type.shape[a] for a in axes), tuple(view.strides[a] for a in axes), view.offset
        )
        _run(steps, node, steps.contiguous(rows), lying, m, half, descending, what)
    steps.bind(node, results)


def _run(
    steps: StepBuilder,
    node: Node,
    rows: View,
    results: list[View],
    m: DimLike,
    half: DimLike,
    descending: bool,
    what: str,
) -> None:
    dtype, n = rows.buffer.dtype, rows.shape[-1]
    count = product(rows.shape[:-1])
    here = in_force()
    parts: DimLike = min(count, PARTS if here.threads else 1) if type(count) is int else count
    scratch = half * (2 * record_bytes(dtype))
    stack = type(scratch) is int and scratch <= min(STACK, here.stack)
    writes = [v.buffer for v in results]
    words: list[Word] = [("int", count), ("int", parts), ("int", n), ("int", m), ("int", half)]
    words += [("pointer", rows.buffer), *[("pointer", b) for b in writes]]
    if not stack:
        memory = Buffer(D.uint8, scratch * parts, "scratch")
        writes.append(memory)
        words.append(("pointer", memory))
    text = (sort_text if what == "sort" else top_text)(dtype, descending, scratch if stack else 0)
    work = product(rows.shape) * (SORTED if what == "sort" else SEEN)
    steps.step(Kernel(text, words, parts, work), [rows.buffer], writes, node)


def search_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps that find where values belong in sorted rows."""
    rows, values = (steps.contiguous(steps.view(i)) for i in node.inputs)
    target = row_major(Buffer(node.type.dtype, element_count(node.type.shape), "search"), node.type.shape)
    n, m = rows.shape[-1], values.shape[-1]
    if type(n) is int and n == 0:
        fill_zeros(steps, target)
    else:
        words: list[Word] = [("int", n), ("int", m)]
        words += [("pointer", v.buffer) for v in (rows, values, target)]
        count = product(values.shape)
        text = search_text(
            rows.buffer.dtype, node.params["side"], same(product(rows.shape[:-1]), 1), target.buffer.dtype
        )
        kernel = Kernel(text, words, count, count * FOUND)
        steps.step(kernel, [rows.buffer, values.buffer], [target.buffer], node)
    steps.bind(node, [target])
