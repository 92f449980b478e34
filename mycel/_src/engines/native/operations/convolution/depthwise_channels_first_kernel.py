"""Depthwise NCHW convolutions of images and sequences, and both gradients, as special kernels.

There is so little work for each element that the time is that of reading it once, while the dense
library would reorder the images first. The convolution kernel of one channel is held in registers.
Rows are read in the order of memory, so that the processor can prefetch them; lanes and kernel rows
that meet only padding are left out. The gradient by the image is the convolution of the cotangent
with the flipped kernel, which requires a stride of 1. For the gradient by the kernel, a channel's
sums over all images stay in registers; each thread takes whole channels, so that threads share no
sum and results do not depend on their number. A sequence is an image of one row.

The stride along the rows must be 1; other convolutions go to the library. It has fast code for
images and large kernels, but none for their gradients.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.ir.dims import DimLike, is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.engines.native.kernels.codegen import NAME, Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D

__all__ = ["depthwise_kernel", "prefers_rows"]

# Taps that leave registers for the images, and those with which gradients by images and convolved
# sequences are still faster than the library's.
MOST_TAPS, MANY_TAPS = 25, 64
# Elements from where is read to what is fetched meanwhile.
AHEAD = 512
NUMBERS = (
    "channels",
    "height",
    "width",
    "rows",
    "columns",
    "stride",
    "above",
    "left",
    "skip_y",
    "skip_x",
    "x_image",
    "x_channel",
    "x_row",
    "y_image",
    "y_channel",
    "y_row",
    "w_channel",
    "w_row",
    "w_column",
    "w_first",
    "x_first",
    "y_first",
    "images",
)
# Which operands are the image, the weights and the convolved image; None for the result.
_OPERANDS = {conv: (0, 1, None), conv_grad_input: (None, 1, 0), conv_grad_weight: (0, None, 1)}


def depthwise_kernel(node: Node, inputs: list[View], out: View) -> Kernel | None:
    """Return the kernel of a convolution, or of a gradient of one.

    `inputs` are the places of its operands, `out` that of its result, all in row-major order.
    Returns None for convolutions that go to the library.
    """
    prim, p = node.prim, node.params
    assert prim is not None
    if not _has_kernel(node) or any(v.buffer.dtype is not D.float32 for v in inputs):
        return None
    images = inputs if prim is conv_grad_weight else inputs[:1]
    if any(not is_one(v.strides[-1]) for v in images):
        return None
    shapes = _shapes(node)
    views = [out if i is None else inputs[i] for i in _OPERANDS[prim]]
    if len(shapes[0]) == 3:
        views = [View(v.buffer, _with_row(v.shape, 1), _with_row(v.strides, 0), v.offset) for v in views]
        shapes = [_with_row(shape, 1) for shape in shapes]
        p = {**p, "strides": (1, *p["strides"]), "padding": ((0, 0), *p["padding"]), "dilation": (1, *p["dilation"])}
    return _kernel(prim, p, views, shapes)


def prefers_rows(node: Node) -> bool:
    """Return whether a convolution, or a gradient of one, has a kernel that is worth copying images
    in another order for, as the library has no fast code for it.
    """
    if not _has_kernel(node):
        return False
    image, weights, _ = _shapes(node)
    return len(image) == 3 or (node.prim is not conv and math.prod(weights[2:]) > MOST_TAPS)


def _shapes(node: Node) -> list[tuple[DimLike, ...]]:
    """Return the shapes of the image, the weights and the convolved image."""
    assert node.prim is not None
    return [node.type.shape if i is None else node.inputs[i].type.shape for i in _OPERANDS[node.prim]]


def _has_kernel(node: Node) -> bool:
    """Return whether there is a kernel for images in row-major order."""
    prim, p = node.prim, node.params
    image, weights, result = _shapes(node)
    if len(image) not in (3, 4) or node.type.dtype is not D.float32:
        return False
    most = MOST_TAPS if prim is conv and len(image) == 4 else MANY_TAPS
    if not _is_depthwise(p["groups"], weights, most) or not is_one(p["strides"][-1]):
        return False
    if prim is conv_grad_input and not is_one(p["strides"][0]):
        return False
    read = (image, result) if prim is conv_grad_weight else (result,) if prim is conv_grad_input else (image,)
    return not any(is_one(shape[-1]) for shape in read)


def _with_row(numbers: tuple[DimLike, ...], number: int) -> tuple[DimLike, ...]:
    """Return sizes or strides of sequences as those of images of one row."""
    return (*numbers[:2], number, *numbers[2:])


def _is_depthwise(groups: Any, weights: tuple[DimLike, ...], most: int) -> bool:
    outputs, channels, *kernel = weights
    fixed = all(isinstance(d, int) for d in (groups, outputs, channels, *kernel))
    return fixed and groups == outputs > 1 and channels == 1 and math.prod(kernel) <= most


def _kernel(prim: Primitive, p: Any, views: list[View], shapes: list[tuple[DimLike, ...]]) -> Kernel:
    (x, w, y), (image, weights, result) = views, shapes
    (low_y, _), (low_x, _) = p["padding"]
    (skip_y, skip_x), (kernel_y, kernel_x) = p["dilation"], weights[2:]
    turn = prim is conv_grad_input
    if turn:
        # The cotangent takes the image's place.
        x, y, image, result = y, x, result, image
        low_y, low_x = skip_y * (kernel_y - 1) - low_y, skip_x * (kernel_x - 1) - low_x
    sign = -1 if turn else 1
    first = (kernel_y - 1) * w.strides[2] + (kernel_x - 1) * w.strides[3] if turn else 0
    numbers: list[Any] = [
        image[1],
        image[2],
        image[3],
        result[2],
        result[3],
        p["strides"][0],
        low_y,
        low_x,
        skip_y,
        skip_x,
        *x.strides[:3],
        *y.strides[:3],
        w.strides[0],
        sign * w.strides[2],
        sign * w.strides[3],
        w.offset + first,
        x.offset,
        y.offset,
        image[0],
    ]
    words: list[Word] = [*[("int", n) for n in numbers], *[("pointer", v.buffer) for v in (x, w, y)]]
    taps: Any = kernel_y * kernel_x
    gradient = prim is conv_grad_weight
    extent = image[1] if gradient else image[0] * image[1]
    work = image[0] * image[1] * result[2] * result[3] * (1 + taps // 8)
    return Kernel(_text(int(kernel_y), int(kernel_x), gradient), words, extent, work)


class _Writer:
    """A writer of the kernel's text."""

    def __init__(self, kernel_y: int, kernel_x: int) -> None:
        self.code = Code()
        self.taps_y, self.taps_x = kernel_y, kernel_x
        self.lanes = target().vector_bytes // 4
        self.vector, self.mask = f"<{self.lanes} x float>", f"<{self.lanes} x i1>"
        self.number = {n: self.code.load("i64", "%words", str(k)) for k, n in enumerate(NUMBERS)}
        self.base = {}
        for k, n in enumerate("xwy"):
            pointer = self.code.load("ptr", "%words", str(len(NUMBERS) + k), "i64")
            self.base[n] = self.code.at("float", pointer, self.number[f"{n}_first"])

    def splat(self, value: str, kind: str = "float") -> str:
        vector = f"<{self.lanes} x {kind}>"
        first = self.code.put(f"insertelement {vector} undef, {kind} {value}, i32 0")
        return self.code.put(f"shufflevector {vector} {first}, {vector} undef, <{self.lanes} x i32> zeroinitializer")

    def below(self, start: str, limit: str) -> str:
        """Return the mask of lanes whose numbers, counted from `start`, lie in [0, limit)."""
        kind = f"<{self.lanes} x i32>"
        steps = ", ".join(f"i32 {k}" for k in range(self.lanes))
        first, end = (self.splat(self.code.put(f"trunc i64 {v} to i32"), "i32") for v in (start, limit))
        return self.code.put(f"icmp ult {kind} {self.code.put(f'add {kind} {first}, <{steps}>')}, {end}")

    def offset(self, *parts: tuple[str, str]) -> str:
        total = "0"
        for count, step in parts:
            total = self.code.op("add i64", total, self.code.op("mul i64", count, step))
        return total

    def masked(self, base: str, index: str, mask: str) -> str:
        place = self.code.at("float", base, index)
        return self.code.put(
            f"call {self.vector} @llvm.masked.load(ptr {place}, i32 4, {self.mask} {mask}, {self.vector} "
            "zeroinitializer)"
        )

    def ahead(self, base: str, index: str) -> None:
        """Prefetch elements that will be read soon, as processors do not predict masked reads."""
        place = self.code.at("float", base, self.code.op("add i64", index, AHEAD))
        self.code.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

    def added(self, total: str, a: str, b: str) -> str:
        part = self.code.put(f"fmul contract {self.vector} {a}, {b}")
        return self.code.put(f"fadd contract {self.vector} {total}, {part}")

    def columns(self, column: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the lanes of a column of vectors that exist.

        For each kernel column, its position in the image and the lanes that meet the image follow.
        """
        c, n = self.code, self.number
        inside = self.below(column, n["columns"])
        found = []
        for k in range(self.taps_x):
            shift = c.op("sub i64", c.op("mul i64", n["skip_x"], str(k)), n["left"])
            at = c.op("add i64", column, shift)
            found.append((at, c.put(f"and {self.mask} {inside}, {self.below(at, n['width'])}")))
        return inside, found

    def lines(self, source: str, y: str) -> list[tuple[str, str]]:
        """Return, for each kernel row, the address of the image row it meets.

        Whether that row exists follows.
        """
        c, n = self.code, self.number
        found = []
        for k in range(self.taps_y):
            shift = c.op("sub i64", c.op("mul i64", n["skip_y"], str(k)), n["above"])
            row = c.op("add i64", c.op("mul i64", y, n["stride"]), shift)
            there = c.put(f"icmp ult i64 {row}, {n['height']}")
            found.append((c.at("float", source, c.op("mul i64", row, n["x_row"])), there))
        return found

    def text(self) -> str:
        c = self.code
        c.do("ret void")
        kind = f"v{self.lanes}f32"
        body = c.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "").replace(
            "@llvm.masked.load(", f"@llvm.masked.load.{kind}.p0("
        )
        bits = self.lanes * 32
        head, _, rest = body.partition(") {")
        declares = (
            f"declare {self.vector} @llvm.masked.load.{kind}.p0(ptr, i32, {self.mask}, {self.vector})\n"
            f"declare void @llvm.masked.store.{kind}.p0({self.vector}, ptr, i32, {self.mask})\n"
            f"declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
            f"declare float @llvm.vector.reduce.fadd.{kind}(float, {self.vector})\n"
        )
        widths = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        return f"{head}) #0 {{{rest}\n{declares}{widths}"


def _text(kernel_y: int, kernel_x: int, gradient: bool) -> str:
    """Return the text of the kernel for a window of `kernel_y` by `kernel_x`.

    Its range is over the channels of all images; for the `gradient` by the kernel, over the
    channels.
    """
    w = _Writer(kernel_y, kernel_x)
    (_sums if gradient else _images)(w)
    return w.text()


def _images(w: _Writer) -> None:
    c, n = w.code, w.number
    with c.loop("%begin", "%end") as plane:
        image, channel = c.op("udiv i64", plane, n["channels"]), c.op("urem i64", plane, n["channels"])
        source = c.at("float", w.base["x"], w.offset((image, n["x_image"]), (channel, n["x_channel"])))
        target = c.at("float", w.base["y"], w.offset((image, n["y_image"]), (channel, n["y_channel"])))
        weights = {}
        for ky in range(w.taps_y):
            for kx in range(w.taps_x):
                at = w.offset((channel, n["w_channel"]), (str(ky), n["w_row"]), (str(kx), n["w_column"]))
                weights[ky, kx] = w.splat(c.load("float", w.base["w"], at))
        with c.loop("0", n["rows"]) as y:
            lines = w.lines(source, y)
            place = c.at("float", target, c.op("mul i64", y, n["y_row"]))
            with c.loop("0", n["columns"], w.lanes) as column:
                w.ahead(lines[-1][0], column)
                inside, meets = w.columns(column)
                total = c.variable(w.vector, "zeroinitializer")
                for ky, (line, there) in enumerate(lines):
                    with c.when(there):
                        value = c.load(w.vector, total)
                        for kx, (at, mask) in enumerate(meets):
                            value = w.added(value, w.masked(line, at, mask), weights[ky, kx])
                        c.store(w.vector, value, total)
                value = c.load(w.vector, total)
                end = c.at("float", place, column)
                c.do(
                    f"call void @llvm.masked.store.v{w.lanes}f32.p0({w.vector} {value}, ptr {end}, i32 4, {w.mask} "
                    f"{inside})"
                )


def _sums(w: _Writer) -> None:
    c, n = w.code, w.number
    taps = [(ky, kx) for ky in range(w.taps_y) for kx in range(w.taps_x)]
    slots = {tap: c.slot(w.vector) for tap in taps}
    with c.loop("%begin", "%end") as channel:
        for tap in taps:
            c.store(w.vector, "zeroinitializer", slots[tap])
        with c.loop("0", n["images"]) as image:
            source = c.at("float", w.base["x"], w.offset((image, n["x_image"]), (channel, n["x_channel"])))
            given = c.at("float", w.base["y"], w.offset((image, n["y_image"]), (channel, n["y_channel"])))
            with c.loop("0", n["rows"]) as y:
                lines = w.lines(source, y)
                place = c.at("float", given, c.op("mul i64", y, n["y_row"]))
                with c.loop("0", n["columns"], w.lanes) as column:
                    w.ahead(lines[-1][0], column)
                    w.ahead(place, column)
                    inside, meets = w.columns(column)
                    ct = w.masked(place, column, inside)
                    for ky, (line, there) in enumerate(lines):
                        with c.when(there):
                            for kx, (at, mask) in enumerate(meets):
                                slot = slots[ky, kx]
                                c.store(w.vector, w.added(c.load(w.vector, slot), w.masked(line, at, mask), ct), slot)
        for ky, kx in taps:
            total = c.load(w.vector, slots[ky, kx])
            value = c.put(f"call float @llvm.vector.reduce.fadd.v{w.lanes}f32(float -0.0, {w.vector} {total})")
            at = w.offset((channel, n["w_channel"]), (str(ky), n["w_row"]), (str(kx), n["w_column"]))
            c.store("float", value, w.base["w"], at)
