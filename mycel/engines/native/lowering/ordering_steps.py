"""Sorting, selecting and searching as steps of a program (`ordering_ir`).

Rows are what the kernels take: where another axis is ordered, its elements are moved next to each other first, and
the results lie so as well, as views. Rows are gathered in parts, of which a thread takes some; where the scratch
memory is too large for the stack, each part has its own in the arena.
"""

from __future__ import annotations

from typing import Any

from mycel.base import dtype as D
from mycel.base.dtype import DType
from mycel.engines.native.kernels.codegen import Kernel
from mycel.engines.native.kernels.nest import Buffer
from mycel.engines.native.kernels.ordering_ir import PAD, record_bytes, search_text, sort_text, top_text
from mycel.engines.native.kernels.values import Word
from mycel.engines.native.kernels.views import View, room, row_major
from mycel.ir.dims import DimLike, product, same
from mycel.ir.graph import Node

__all__ = ["search_step", "sort_step", "top_step"]

STACK = 1 << 16
PARTS = 32
# What an element costs, in elements of a plain kernel.
SORTED, SEEN, FOUND = 30, 3, 40


def sort_step(lowering: Any, node: Node) -> None:
    """The sorted values along an axis, and where they were."""
    n = node.inputs[0].type.shape[node.params["axis"]]
    _ordered(lowering, node, n, n + PAD, node.params["descending"], "sort")


def top_step(lowering: Any, node: Node) -> None:
    """The largest or smallest values along an axis, in order, and where they were."""
    k = node.params["k"]
    _ordered(lowering, node, k, 2 * k + 80, node.params["largest"], "top")


def _ordered(lowering: Any, node: Node, m: DimLike, half: DimLike, descending: bool, what: str) -> None:
    x, axis = node.inputs[0], node.params["axis"]
    dtype, rank = x.type.dtype, x.type.rank
    axes = [a for a in range(rank) if a != axis] + [axis]
    shapes = [tuple(t.shape[a] for a in axes) for t in node.type]
    lying = [row_major(Buffer(t.dtype, room(t.shape), node.op), s) for t, s in zip(node.type, shapes)]
    back = [axes.index(a) for a in range(rank)]
    results = [View(v.buffer, tuple(t.shape), tuple(v.strides[b] for b in back)) for v, t in zip(lying, node.type)]
    size = product(shapes[0])
    if type(size) is not int or size:
        view = lowering.view(x)
        rows = View(
            view.buffer, tuple(x.type.shape[a] for a in axes), tuple(view.strides[a] for a in axes), view.offset
        )
        _run(lowering, node, lowering.contiguous(rows), lying, m, half, dtype, descending, what)
    lowering.bind(node, results)


def _run(
    lowering: Any, node: Node, rows: View, results: list[View], m: DimLike, half: DimLike, dtype: DType, descending: bool,
    what: str,
) -> None:  # fmt: skip
    n = rows.shape[-1]
    count = product(rows.shape[:-1])
    parts: DimLike = min(count, PARTS) if type(count) is int else count
    scratch = half * (2 * record_bytes(dtype))
    stack = type(scratch) is int and scratch <= STACK
    writes = [v.buffer for v in results]
    words: list[Word] = [("int", count), ("int", parts), ("int", n), ("int", m), ("int", half)]
    words += [("pointer", rows.buffer), *[("pointer", b) for b in writes]]
    if not stack:
        memory = Buffer(D.uint8, scratch * parts, "scratch")
        writes.append(memory)
        words.append(("pointer", memory))
    text = (sort_text if what == "sort" else top_text)(dtype, descending, scratch if stack else 0)
    work = product(rows.shape) * (SORTED if what == "sort" else SEEN)
    lowering.step("kernel", [rows.buffer], writes, Kernel(text, words, parts, work), node)


def search_step(lowering: Any, node: Node) -> None:
    """Where values belong in sorted rows."""
    rows, values = (lowering.contiguous(lowering.view(i)) for i in node.inputs)
    target = row_major(Buffer(node.type.dtype, room(node.type.shape), "search"), node.type.shape)
    n, m = rows.shape[-1], values.shape[-1]
    if type(n) is int and n == 0:
        from mycel.engines.native.lowering.multi_kernel import fill_zeros

        fill_zeros(lowering, target)
    else:
        words: list[Word] = [("int", n), ("int", m)]
        words += [("pointer", v.buffer) for v in (rows, values, target)]
        count = product(values.shape)
        text = search_text(
            rows.buffer.dtype, node.params["side"], same(product(rows.shape[:-1]), 1), target.buffer.dtype
        )
        kernel = Kernel(text, words, count, count * FOUND)
        lowering.step("kernel", [rows.buffer, values.buffer], [target.buffer], kernel, node)
    lowering.bind(node, [target])
