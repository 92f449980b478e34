"""Lowering of grid sampling (`operations.grid_sampling_kernel`).

Threads share blocks of positions where these are read, and groups of channels where images are
added up.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides
from mycel._src.engines.native.kernels.vector_writer import lanes_of
from mycel._src.engines.native.operations.grid_sampling_kernel import (
    CHANNELS,
    Form,
    block_of,
    names_of_words,
    sampling_text,
)
from mycel._src.engines.native.steps.fill_and_copy import fill_zeros
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views, result_types

__all__ = ["sample_add_step", "sample_slopes_step", "sample_step"]

# The work of a corner that is gathered, and of one that is added, in operations by which the work
# of kernels is counted.
READ, ADDED = 2, 4


def sample_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that reads images at positions."""
    image, *places = (steps.view(i) for i in node.inputs)
    form = Form("sample", image.buffer.dtype, len(places), node.params["linear"])
    _run(steps, node, form, places, {"image": _planes(steps, image)}, READ)


def sample_slopes_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that gives the derivatives by positions."""
    ct, image, *places = (steps.view(i) for i in node.inputs)
    form = Form("slopes", image.buffer.dtype, len(places), node.params["linear"])
    if not form.linear:
        results = new_views(result_types(node), "sample_slopes")
        for view in results:
            fill_zeros(steps, view)
        steps.bind(node, results)
        return
    _run(steps, node, form, places, {"image": _planes(steps, image), "ct": steps.contiguous(ct)}, READ)


def sample_add_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that adds elements at positions up into images."""
    ct, *places = (steps.view(i) for i in node.inputs)
    form = Form("add", ct.buffer.dtype, len(places), node.params["linear"])
    _run(steps, node, form, places, {"ct": steps.contiguous(ct)}, ADDED)


def _planes(steps: StepBuilder, image: View) -> View:
    """Return images whose planes are contiguous."""
    inner = contiguous_strides(tuple(image.shape[2:]))
    return image if tuple(image.strides[2:]) == tuple(inner) else steps.contiguous(image)


def _run(steps: StepBuilder, node: Node, form: Form, places: Sequence[View], given: dict[str, View], each: int) -> None:
    """Add the step of a kernel.

    `node` is what it computes, `form` its form, `places` are the positions, `given` its other
    operands by name, and `each` is the work of a corner.
    """
    results = new_views(result_types(node), node.op)
    values = results[0] if form.what == "sample" else given["ct"]
    images = given["image"] if "image" in given else results[0]
    (count, channels, points), sizes = values.shape, tuple(images.shape[2:])
    if any(type(d) is int and d == 0 for d in (count, channels, points, *sizes)):
        for view in results:
            fill_zeros(steps, view)
        steps.bind(node, results)
        return
    named = {f"at{k}": steps.contiguous(v) for k, v in enumerate(places)} | given
    written = ["made"] if form.what != "slopes" else [f"slope{k}" for k in range(form.rank)]
    named |= dict(zip(written, results))
    parts: DimLike = -(-channels // CHANNELS)
    if form.what != "add":
        parts = -(-points // (block_of(form) * lanes_of(form.dtype)))
    numbers: tuple[DimLike, ...] = (channels, points, product(sizes), parts, *sizes, images.offset, *images.strides[:2])
    words: list[Word] = [("int", v) for v in numbers]
    words += [("listen", 0), ("status", 0)]
    words += [("pointer", named[n].buffer) for n in names_of_words(form)[1][2:]]
    reads = [v.buffer for n, v in named.items() if n not in written]
    writes = [named[n].buffer for n in written]
    corners = 2**form.rank if form.linear else 1
    work = count * channels * points * (corners * each)
    if form.what == "add":
        work = work + count * channels * product(sizes) // 8
    steps.step(Kernel(sampling_text(form), words, count * parts, work), reads, writes, node)
    steps.bind(node, results)
