"""Lowering of matrix products to the engine's own register-tile kernels.

The right factor is packed into panels of a tile's width by a kernel of its own, unless the left one
has so few rows that reading it where it lies costs less; the left one is read where it lies if its
rows are contiguous, and copied otherwise. Batches are axes over which matrices repeat at fixed
distances: at most two, after those that lie one behind the other were joined, and those over which
the right factor does not change became rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Access, Buffer, Builder, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.operations.matmul.batch_axes import Axis, batch_axes, broadcast
from mycel._src.engines.native.operations.matmul.register_tile import Tile, tile_for
from mycel._src.engines.native.operations.matmul.tiled_product_kernel import NEAR, product_text
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_target
from mycel._src.foundation import dtype as D

__all__ = ["product_kernel", "product_step"]

# Bytes of the right factor that stay in the cache next to a core while rows pass by.
BLOCK_BYTES = 768 << 10
# Steps of the common axis whose sums stay in registers.
DEPTH = 512
# Rows that a gathered panel serves.
GATHERED = 384
# What is a unit of work, in multiply-adds: some 5 microseconds of one core.
UNIT = 1 << 19
# Multiply-adds that take as long as one operation of a kernel without them.
DENSITY = 32


def product_step(steps: StepBuilder, node: Node) -> bool:
    """Add the steps of a product of float64; return whether the node is one."""
    if node.dtype is not D.float64 or any(i.dtype is not D.float64 for i in node.inputs):
        return False
    out = new_target(node)
    a, b = map(steps.view, node.inputs)
    if len(batch_axes(a, b, out)) > 3:
        a, b = (steps.copy(broadcast(v, out.shape[:-2])) for v in (a, b))
    if not is_one(a.strides[-1]) and not is_one(a.strides[-2]):
        a = steps.copy(a)
    *batch, rows = batch_axes(a, b, out)
    count, width = a.shape[-1], out.shape[-1]
    height, breadth = (d if isinstance(d, int) else None for d in (rows.size, width))
    tile = tile_for(height, breadth, "double")
    right, source = "panels", b
    if is_one(b.strides[-1]):
        few = type(rows.size) is int and rows.size <= 2 * tile.height
        right = "lines" if few else "gathered"
    else:
        changing = [axis for axis in batch if not is_zero(axis.b)]
        source = _packed(steps, b, tile, changing)
        strides = iter(source.strides)
        batch = [axis if is_zero(axis.b) else axis._replace(b=next(strides)) for axis in batch]
    kernel = product_kernel(tile, batch, rows, (a, source, out), count, right)
    steps.step(kernel, [a.buffer, source.buffer], [out.buffer], node)
    steps.bind(node, [out])
    return True


def _packed(steps: StepBuilder, b: View, tile: Tile, batch: list[Axis]) -> View:
    """Return the right factor in panels, (batch, panel, step, column), with zeros at its end.

    `batch` are the axes over which it changes.
    """
    steps_along, width = b.shape[-2:]
    panels = -(-width // tile.width)
    shape = (*[axis.size for axis in batch], panels, steps_along, tile.width)
    source = View(
        b.buffer,
        shape,
        (*[axis.b for axis in batch], b.strides[-1] * tile.width, *b.strides[-2:]),
        b.offset,
    )
    target = row_major(Buffer(b.buffer.dtype, product(shape), "panels"), shape)
    position = tuple(affine(k) for k in range(len(shape)))
    column = position[-1] + position[-3].scale(tile.width)
    inside = () if type(width) is int and width % tile.width == 0 else ((column, width),)
    builder = Builder()
    value = builder.load(Access(b.buffer, source.access(position).offset, inside))
    store = Store(target.access(position), value, True)
    steps.kernel(Nest([Loop(d, "p") for d in shape], [], [store], "panels"), target.strides)
    return target


def _unit(tile: Tile, rows: int, panels: int, depth: int, right: str) -> tuple[int, int]:
    """Return how many tiles high and wide a unit of work is.

    `tile` is the register tile, `rows` and `panels` are the sizes of the result, `depth` the steps
    of a block, and `right` says how the right factor is read. A panel that is gathered has to serve
    many rows.
    """
    tiles = -(-rows // tile.height)
    if right == "gathered":
        return min(tiles, max(GATHERED // tile.height, 1)), 1
    most = max(BLOCK_BYTES // (tile.bytes * depth * tile.width), 1)
    wide = min(most, panels)
    one = depth * tile.height * tile.width
    tall = min(max(UNIT // (one * wide), 1), tiles)
    return tall, wide if tall > 1 else max(min(wide, UNIT // one), 1)


def product_kernel(
    tile: Tile,
    batch: Sequence[Axis],
    rows: Axis,
    places: tuple[View, View, View],
    count: DimLike,
    right: str,
    added: bool = False,
) -> Kernel:
    """Return the kernel of a product.

    `tile` is its register tile, `batch` and `rows` are the axes of the result, `places` those of
    the factors and the result, `count` is the length of the common axis, `right` says how the right
    factor is read (see `product_text`), and with `added` the product is added to the result.
    """
    a, b, out = places
    width = out.shape[-1]
    turned = not is_one(a.strides[-1])
    exact = type(rows.size) is int and rows.size % tile.height == 0
    even = type(width) is int and width % tile.width == 0
    most = NEAR if right == "gathered" else DEPTH // 2 if turned else DEPTH
    short = type(count) is int and count <= most and not added
    depth = min(hint(count), most)
    panels = -(-width // tile.width)
    tall, wide = _unit(tile, hint(rows.size), hint(panels), depth, right)
    down, over = -(-rows.size // (tall * tile.height)), -(-panels // wide)
    outer, inner = [Axis(1, 0, 0, 0), Axis(1, 0, 0, 0), *batch][-2:]
    matrices = product([axis.size for axis in batch])
    numbers: list[DimLike] = [
        rows.size,
        width,
        count,
        a.strides[-1] if turned else rows.a,
        b.strides[-2],
        rows.c,
        inner.size,
        *inner[1:],
        *outer[1:],
        a.offset,
        b.offset,
        out.offset,
        down,
        over,
        tall * tile.height,
        wide * tile.width,
        depth,
        int(added),
    ]
    words: list[Word] = [*[("int", n) for n in numbers], *[("pointer", v.buffer) for v in (a, b, out)]]
    work = matrices * rows.size * width * count // DENSITY
    said = f"tiles of {tile.height} x {tile.width}, {right}"
    return Kernel(product_text(tile, turned, right, exact, even, short), words, matrices * down * over, work, said)
