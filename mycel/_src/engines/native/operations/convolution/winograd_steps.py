"""Winograd convolution F(4 x 4, 3 x 3): kernels of 3 x 3, and their gradients.

Images are cut into tiles of 6 x 6 that overlap by 2. Tiles and kernels are transformed by small
matrices, so that what was a convolution becomes one product of matrices, (tiles, channels) by
(channels, outputs), for each of the 36 places of a tile; a second transform of the products gives 4
x 4 results a tile. That is 36 multiplications where the definition has 144. The gradient by the
image is the convolution of the cotangent with the kernel turned round; the gradient by the kernel
multiplies transformed tiles of image and cotangent.

The transforms are kernels of the general kind, over lanes of channels. Images are taken in groups
whose transformed tiles fit into a near cache, which also bounds the memory. In float32 the result's
error is up to some 30 times that of adding products one by one (`ERROR`), so
`set_context(winograd=False)`, or MYCEL_WINOGRAD=0, turns it off.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mycel._src.compiler.ir.dims import is_one, is_zero, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Buffer, Builder, Expr, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.operations.convolution.strided_pointwise import channels_last
from mycel._src.engines.native.operations.matmul.batch_axes import Axis
from mycel._src.engines.native.operations.matmul.register_tile import tile_for
from mycel._src.engines.native.operations.matmul.tiled_product_steps import product_kernel
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.foundation import dtype as D
from mycel._src.foundation.settings import config

__all__ = ["setting", "winograd_step"]

# Results and places of a tile along each axis, and places in all.
SIZE, PLACES = 4, 6
BLOCK = PLACES * PLACES
# Bytes of the transformed tiles of a group of images.
GROUP_BYTES = 24 << 20
# What one core does in a second: operations of a convolution by the definition and of the products
# here, and bytes that it moves. This way is chosen where it takes less than `GAIN` of the time.
DIRECT_RATE, PRODUCT_RATE, BYTE_RATE = 180e9, 150e9, 25e9
GAIN = 0.85
# Where the shapes of image, weights and result are found among those of operands and result.
_ROLES: dict[Primitive | None, tuple[int, int, int]] = {
    conv: (0, 1, 2),
    conv_grad_input: (2, 1, 0),
    conv_grad_weight: (0, 2, 1),
}

Transform = Callable[["_Numbers", Sequence[Expr]], list[Expr]]


class _Numbers:
    """Arithmetic on expressions."""

    def __init__(self, builder: Builder) -> None:
        self.b = builder

    def sum(self, *parts: tuple[float, Expr]) -> Expr:
        """Return the sum of expressions times numbers."""
        total: Expr | None = None
        for factor, value in parts:
            dtype = value.dtype
            if total is not None and factor in (1, -1):
                total = self.b.op("add" if factor > 0 else "sub", dtype, total, value)
                continue
            term = value if factor == 1 else self.b.op("mul", dtype, value, self.b.const(factor, dtype))
            total = term if total is None else self.b.op("add", dtype, total, term)
        assert total is not None
        return total


def image_tile(n: _Numbers, d: Sequence[Expr]) -> list[Expr]:
    """Transform 6 values of an image."""
    a, b = n.sum((1, d[4]), (-4, d[2])), n.sum((1, d[3]), (-4, d[1]))
    e, f = n.sum((1, d[4]), (-1, d[2])), n.sum((2, d[3]), (-2, d[1]))
    return [
        n.sum((4, d[0]), (-5, d[2]), (1, d[4])),
        n.sum((1, a), (1, b)),
        n.sum((1, a), (-1, b)),
        n.sum((1, e), (1, f)),
        n.sum((1, e), (-1, f)),
        n.sum((4, d[1]), (-5, d[3]), (1, d[5])),
    ]


def kernel_tile(n: _Numbers, g: Sequence[Expr]) -> list[Expr]:
    """Transform 3 values of a kernel to 6."""
    a = n.sum((1, g[0]), (1, g[2]))
    b = n.sum((1 / 24, g[0]), (1 / 6, g[2]))
    return [
        n.sum((1 / 4, g[0])),
        n.sum((-1 / 6, a), (-1 / 6, g[1])),
        n.sum((-1 / 6, a), (1 / 6, g[1])),
        n.sum((1, b), (1 / 12, g[1])),
        n.sum((1, b), (-1 / 12, g[1])),
        g[2],
    ]


def result_tile(n: _Numbers, m: Sequence[Expr]) -> list[Expr]:
    """Transform 6 products to 4 results."""
    p, q = n.sum((1, m[1]), (1, m[2])), n.sum((1, m[1]), (-1, m[2]))
    r, s = n.sum((1, m[3]), (1, m[4])), n.sum((1, m[3]), (-1, m[4]))
    return [
        n.sum((1, m[0]), (1, p), (1, r)),
        n.sum((1, q), (2, s)),
        n.sum((1, p), (4, r)),
        n.sum((1, q), (8, s), (1, m[5])),
    ]


def cotangent_tile(n: _Numbers, y: Sequence[Expr]) -> list[Expr]:
    """Transform 4 cotangents of results to 6: the transpose of `result_tile`."""
    e, o = n.sum((1, y[0]), (1, y[2])), n.sum((1, y[1]), (1, y[3]))
    f, p = n.sum((1, y[0]), (4, y[2])), n.sum((2, y[1]), (8, y[3]))
    return [
        y[0],
        n.sum((1, e), (1, o)),
        n.sum((1, e), (-1, o)),
        n.sum((1, f), (1, p)),
        n.sum((1, f), (-1, p)),
        y[3],
    ]


def gradient_tile(n: _Numbers, t: Sequence[Expr]) -> list[Expr]:
    """Transform 6 sums to 3 gradients of a kernel: the transpose of `kernel_tile`."""
    s, d = n.sum((1, t[1]), (1, t[2])), n.sum((1, t[2]), (-1, t[1]))
    r, e = n.sum((1, t[3]), (1, t[4])), n.sum((1, t[3]), (-1, t[4]))
    return [
        n.sum((1 / 4, t[0]), (-1 / 6, s), (1 / 24, r)),
        n.sum((1 / 6, d), (1 / 12, e)),
        n.sum((1 / 6, r), (-1 / 6, s), (1, t[5])),
    ]


def both_ways(b: Builder, along: Transform, values: Sequence[Sequence[Expr]]) -> list[list[Expr]]:
    """Apply a transform to the rows and to the columns of a square of values."""
    n = _Numbers(b)
    half = [along(n, row) for row in values]
    columns = [along(n, [row[k] for row in half]) for k in range(len(half[0]))]
    return [[column[k] for column in columns] for k in range(len(columns[0]))]


class _Work(NamedTuple):
    """A convolution: images, channels, outputs, results' height and width, and padding before them.

    For the gradient by the image, the cotangent is the image.
    """

    images: int
    channels: int
    outputs: int
    height: int
    width: int
    low: tuple[int, int]

    @property
    def down(self) -> int:
        """Tiles of an image from top to bottom."""
        return -(-self.height // SIZE)

    @property
    def across(self) -> int:
        """Tiles of an image from left to right."""
        return -(-self.width // SIZE)

    @property
    def tiles(self) -> int:
        """Tiles of all images."""
        return self.images * self.down * self.across

    def pays(self) -> bool:
        """Return whether this way is faster than multiplying as the definition does."""
        direct = 18 * self.images * self.height * self.width * self.channels * self.outputs / DIRECT_RATE
        moved = self.channels * self.outputs + self.tiles * (self.channels + self.outputs)
        product = 2 * BLOCK * self.tiles * self.channels * self.outputs / PRODUCT_RATE
        return product + 8 * BLOCK * moved / BYTE_RATE < GAIN * direct

    def groups(self) -> list[tuple[int, _Work]]:
        """Return groups of images, each with the number of its first one."""
        each = 4 * BLOCK * self.down * self.across * (self.channels + self.outputs)
        size = max(GROUP_BYTES // each, 1)
        return [(k, self._replace(images=min(size, self.images - k))) for k in range(0, self.images, size)]


def setting() -> str:
    """Return whether convolutions may be done this way, as a part of programs' digests."""
    return "winograd" if config._context["winograd"] else "by definition"


def winograd_step(steps: StepBuilder, node: Node, inputs: list[View]) -> bool:
    """Add the steps of a convolution or gradient; return whether it is done this way."""
    work = _work(node) if config._context["winograd"] else None
    if work is None or not work.pays():
        return False
    if node.prim is conv_grad_weight:
        _weights_gradient(steps, node, [_channels_last(steps, v) for v in inputs], work)
    else:
        _convolution(steps, node, _channels_last(steps, inputs[0]), inputs[1], work)
    return True


def _work(node: Node) -> _Work | None:
    """Return the work of a convolution that this algorithm can do; else None."""
    p = node.params
    shapes = [tuple(t.shape) for t in (node.inputs[0].type, node.inputs[1].type, node.type)]
    image, weights, result = [shapes[k] for k in _ROLES[node.prim]]
    if len(image) != 4 or any(t.dtype is not D.float32 for t in (node, *node.inputs)) or weights[2:] != (3, 3):
        return None
    numbers = [*p["strides"], *p["dilation"], p["groups"], *[k for pair in p["padding"] for k in pair]]
    if any(type(d) is not int for d in (*image, *weights, *result, *numbers)):
        return None
    if any(k != 1 for k in numbers[:5]) or any(not 0 <= k <= 2 for k in numbers[5:]):
        return None
    outputs, channels = weights[:2]
    first, second = (low for low, _ in p["padding"])
    if node.prim is conv_grad_input:
        return _Work(image[0], outputs, channels, image[2], image[3], (2 - first, 2 - second))
    return _Work(image[0], channels, outputs, result[2], result[3], (first, second))


def _channels_last(steps: StepBuilder, view: View) -> View:
    """Return images with contiguous channels, copied if they are in another order."""
    if is_one(view.strides[1]):
        return view
    return steps.copy(view, channels_last(Buffer(view.buffer.dtype, product(view.shape), "copy"), view.shape))


def _matrix(view: View) -> View:
    """Return the first matrix of a view (places, rows, columns)."""
    return View(view.buffer, view.shape[1:], view.strides[1:], view.offset)


def _matrices(rows: int, columns: int) -> View:
    """Return new memory for a matrix at each place of a tile."""
    return row_major(Buffer(D.float32, BLOCK * rows * columns, "winograd"), (BLOCK, rows, columns))


def _convolution(steps: StepBuilder, node: Node, source: View, weights: View, work: _Work) -> None:
    target = channels_last(Buffer(node.dtype, node.type.size, node.op), tuple(node.type.shape))
    channels, outputs = work.channels, work.outputs
    tile = tile_for(work.groups()[0][1].tiles, outputs)
    panels = -(-outputs // tile.width)
    shape = (BLOCK, panels, channels, tile.width)
    factors = row_major(Buffer(D.float32, product(shape), "winograd"), shape)
    _transform_weights(steps, node, weights, factors, outputs)
    for first, group in work.groups():
        moved, products = _matrices(group.tiles, channels), _matrices(group.tiles, outputs)
        _transform_images(steps, node, _images(source, first, group), moved, group, image_tile)
        matrix = Axis(BLOCK, moved.strides[0], factors.strides[0], products.strides[0])
        factor = View(factors.buffer, (channels, outputs), (tile.width, 1))
        places = (_matrix(moved), factor, _matrix(products))
        kernel = product_kernel(tile, [matrix], Axis(group.tiles, channels, 0, outputs), places, channels, "panels")
        steps.step(kernel, [moved.buffer, factors.buffer], [products.buffer], node)
        _transform_results(steps, node, products, _images(target, first, group), group)
    steps.bind(node, [target])


def _weights_gradient(steps: StepBuilder, node: Node, inputs: list[View], work: _Work) -> None:
    image, given = inputs
    channels, outputs = work.channels, work.outputs
    tile = tile_for(outputs, channels)
    sums = _matrices(outputs, channels)
    for first, group in work.groups():
        moved, cotangents = _matrices(group.tiles, channels), _matrices(group.tiles, outputs)
        _transform_images(steps, node, _images(image, first, group), moved, group, image_tile)
        _transform_images(steps, node, _images(given, first, group), cotangents, group, cotangent_tile)
        matrix = Axis(BLOCK, cotangents.strides[0], moved.strides[0], sums.strides[0])
        left = View(cotangents.buffer, (outputs, group.tiles), (1, outputs))
        places = (left, _matrix(moved), _matrix(sums))
        rows = Axis(outputs, 1, 0, channels)
        kernel = product_kernel(tile, [matrix], rows, places, group.tiles, "gathered", added=first > 0)
        reads = [cotangents.buffer, moved.buffer, *([sums.buffer] if first else [])]
        steps.step(kernel, reads, [sums.buffer], node)
    target = row_major(Buffer(node.dtype, node.type.size, node.op), tuple(node.type.shape))
    b, position = Builder(), (affine(0), affine(1))
    found = both_ways(b, gradient_tile, _loaded(b, sums, position))
    stores = [
        Store(target.access((*position, Affine((), y), Affine((), x))), found[y][x], True)
        for y, x in itertools.product(range(3), repeat=2)
    ]
    steps.kernel(Nest([Loop(outputs, "p"), Loop(channels, "p")], [], stores, "winograd"), (channels, 1), node)
    steps.bind(node, [target])


def _images(view: View, first: int, group: _Work) -> View:
    """Return the images of a group, the first of which has the number `first`."""
    return View(view.buffer, (group.images, *view.shape[1:]), view.strides, view.offset + view.strides[0] * first)


def _at(view: View, place: int, position: Sequence[Affine]) -> Access:
    """Return the access of a position in the matrix of a place."""
    return view.access((Affine((), place), *position))


def _loaded(b: Builder, view: View, position: Sequence[Affine]) -> list[list[Expr]]:
    """Return the values of all places at a position."""
    return [[b.load(_at(view, PLACES * y + x, position)) for x in range(PLACES)] for y in range(PLACES)]


def _stored(view: View, position: Sequence[Affine], values: Sequence[Sequence[Expr]]) -> list[Store]:
    """Return the statements that write the values of all places at a position."""
    each = itertools.product(range(PLACES), repeat=2)
    return [Store(_at(view, PLACES * y + x, position), values[y][x], True) for y, x in each]


def _transform_weights(steps: StepBuilder, node: Node, weights: View, target: View, outputs: int) -> None:
    """Write the transformed kernels, (places, panels, channels, width), with zeros at the end.

    `steps` gets the kernel for `node`, and `target` is its result; `weights` are (outputs,
    channels, 3, 3), or for the gradient by the image (channels, `outputs`, 3, 3), turned round.
    """
    b, turned = Builder(), node.prim is conv_grad_input
    _, panels, channels, width = target.shape
    panel, channel, lane = position = tuple(affine(k) for k in range(3))
    output = lane + panel.scale(width)
    guards = () if is_zero(outputs % width) else ((output, outputs),)
    ends = (channel, output) if turned else (output, channel)
    values = []
    for y in range(3):
        spots = [(*ends, Affine((), 2 - y if turned else y), Affine((), 2 - x if turned else x)) for x in range(3)]
        values.append([b.load(Access(weights.buffer, weights.access(spot).offset, guards)) for spot in spots])
    stores = _stored(target, position, both_ways(b, kernel_tile, values))
    nest = Nest([Loop(panels, "p"), Loop(channels, "p"), Loop(width, "p")], [], stores, "winograd")
    steps.kernel(nest, target.strides[1:], node)


def _walk(work: _Work, channels: int) -> tuple[list[Loop], tuple[Affine, ...], Affine]:
    """Return loops over images, tiles and channels, their positions, and the number of the tile."""
    loops = [Loop(d, "p") for d in (work.images, work.down, work.across, channels)]
    n, down, across, channel = position = tuple(affine(k) for k in range(4))
    return loops, position, n.scale(work.down * work.across) + down.scale(work.across) + across


def _transform_images(
    steps: StepBuilder, node: Node, source: View, target: View, work: _Work, along: Transform
) -> None:
    """Write the transformed tiles of images.

    `steps` gets the kernel for `node`; `source` are images (N, C, H, W), `target` is (places,
    tiles, channels), `work` is that of the group, and `along` the transform.
    """
    b, channels = Builder(), int(target.shape[2])
    loops, (n, down, across, channel), number = _walk(work, channels)
    (size, low) = (PLACES, work.low) if along is image_tile else (SIZE, (0, 0))
    values = []
    for y in range(size):
        row = down.scale(SIZE).shift(y - low[0])
        line = []
        for x in range(size):
            column = across.scale(SIZE).shift(x - low[1])
            guards = ((row, source.shape[2]), (column, source.shape[3]))
            line.append(b.load(Access(source.buffer, source.access((n, channel, row, column)).offset, guards)))
        values.append(line)
    stores = _stored(target, (number, channel), both_ways(b, along, values))
    like = (work.down * work.across * channels, work.across * channels, channels, 1)
    steps.kernel(Nest(loops, [], stores, "winograd"), like, node)


def _transform_results(steps: StepBuilder, node: Node, source: View, target: View, work: _Work) -> None:
    """Write the transformed products to the images of a group, which the last tiles may overhang.

    `steps` gets the kernel for `node`; `source` is (places, tiles, outputs), `target` are images
    (N, C, H, W) and `work` is that of the group.
    """
    b = Builder()
    loops, (n, down, across, channel), number = _walk(work, work.outputs)
    found = both_ways(b, result_tile, _loaded(b, source, (number, channel)))
    stores = []
    for y, x in itertools.product(range(SIZE), repeat=2):
        row, column = down.scale(SIZE).shift(y), across.scale(SIZE).shift(x)
        guards = []
        if work.height % SIZE:
            guards.append((row, work.height))
        if work.width % SIZE:
            guards.append((column, work.width))
        place = Access(target.buffer, target.access((n, channel, row, column)).offset, tuple(guards))
        stores.append(Store(place, found[y][x], True))
    steps.kernel(Nest(loops, [], stores, "winograd"), (target.strides[0], *target.strides[2:], 1), node)
