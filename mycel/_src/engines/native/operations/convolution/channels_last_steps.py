"""Lowering of NHWC convolutions and products with prepacked constant weights and fused epilogues.

The group's stores are expressions of the sum, so what a group would compute behind its reduction is
computed from the sums in registers. Values lie with their channels last, so that neighbours read
what they write; an image in another order is copied first. Weights are packed into panels when the
step is made.

Bytes are taken as the instruction wants them, and zero points out of the first sums:

    sum (x - Z) w  =  sum (x + M) w  -  (M + Z) sum w        (M: what the instruction wants added)

What lies in the padding is Z + M. Which sums go this way says `is_channelled`
(`channels_last_rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul
from mycel._src.engines.native.kernels.dot_product_instructions import Unit, unit_for
from mycel._src.engines.native.kernels.loop_nest import (
    Access,
    Affine,
    Buffer,
    Builder,
    Expr,
    Guard,
    Loop,
    Nest,
    Reduce,
    Store,
    affine,
)
from mycel._src.engines.native.kernels.loop_order import merges, positions_of, rewritten
from mycel._src.engines.native.kernels.strided_view import View, element_count, like_order
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.operations.convolution.channels_last_kernel import (
    NEAR,
    Image,
    Tile,
    channel_kernel,
    is_read_in_place,
)
from mycel._src.engines.native.operations.convolution.channels_last_rules import is_depthwise
from mycel._src.engines.native.operations.convolution.depthwise_channels_last_float_kernel import (
    Line,
    depthwise_channel_kernel,
)
from mycel._src.engines.native.operations.convolution.depthwise_channels_last_int8_kernel import (
    Bytes,
    depthwise_bytes_kernel,
    order,
)
from mycel._src.engines.native.operations.convolution_index_maps import may_exceed
from mycel._src.engines.native.operations.fusion_rules import Domain, Members
from mycel._src.engines.native.operations.requantisation.vector_requantisation import HIGH
from mycel._src.engines.native.steps.step_builder import StepBuilder, buffers_of
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["ChannelDomain", "channel_step"]

Array = np.ndarray[Any, Any]
# The most positions of a tile of depthwise convolutions.
DEPTHWISE = 8
# The most positions of other tiles, and bytes of the stack beside what they copy.
MOST_HEIGHT, SPARE = 14, 512


class ChannelDomain(Domain):
    """The positions of a group whose sum of products is not written by the group itself."""

    @staticmethod
    def of(domain: Domain) -> ChannelDomain:
        """Return the positions of a group in this form."""
        return ChannelDomain(domain.shape, domain.axes, domain.kind, domain.keepdims, domain.node)

    def reduce(self, group: Members, node: Node) -> Reduce:
        """Return a statement that stands for the sum."""
        return group.builder.reduce("sum", group.builder.const(0, node.dtype), node.dtype)

    @property
    def channel(self) -> int:
        """The loop of the result's channels."""
        return len(self.shape) - 2 if self.kind in ("product", "matmul") else 1

    @property
    def order(self) -> list[int]:
        """The loops of the result, with that of channels last."""
        axes = self.axes or ()
        return [*[k for k in range(len(self.shape)) if k not in axes and k != self.channel], self.channel]

    def like(self) -> tuple[int, ...]:
        """Return strides by loop, of a value with channels last."""
        strides, step = [0] * len(self.shape), 1
        for k in reversed(self.order):
            strides[k] = step
            step *= max(hint(self.shape[k]), 1)
        return tuple(strides)


@dataclass
class Read:
    """What a node reads: the view of its image, the first element of a position, and the image."""

    access: Access
    guards: tuple[int, ...]
    image: Image


def channel_step(
    steps: StepBuilder, domain: ChannelDomain, stores: list[Store], members: tuple[Node, ...], name: str
) -> None:
    """Add the kernel that computes `stores` of the sum of the node of `domain`.

    `steps` gets the kernel, `members` are the nodes that it computes, and `name` is that of the
    nest.
    """
    node = domain.node
    assert node is not None
    unit = unit_for(node.inputs[0].dtype)
    assert unit is not None
    read = _read_of(steps, node, domain, unit)
    if is_depthwise(node):
        step = _depthwise_step if unit.is_plain else depthwise_bytes_step
        step(steps, domain, stores, read, members, name)
        return
    if unit.is_plain and read.guards and read.image.count * 4 * MOST_HEIGHT > NEAR:
        read = _with_padding(steps, node, domain, unit)
    nest, access = nest_of(domain, stores, read.access, name)
    weights = _weights(node)
    if unit.careful:
        unit = replace(unit, careful=bool(weights.min() == -128))
    tile = _tile(nest, weights.shape[1], read, unit)
    panels = constant(steps, _panels(weights, tile, unit), D.float32 if unit.is_plain else D.int8)
    first = _first(steps, node, weights, tile, unit)
    kernel = channel_kernel(nest, access, read.guards, read.image, tile, unit, panels, first)
    kernel_step(steps, kernel, nest, [access.buffer, panels, *([first] if first else [])], members)


def depthwise_bytes_step(
    steps: StepBuilder, domain: ChannelDomain, stores: list[Store], read: Read, members: tuple[Node, ...], name: str
) -> None:
    """Add the kernel of a depthwise convolution of bytes.

    * `steps`, `domain`, `stores`, `members`, `name`: as for `channel_step`.
    * `read`: what its positions read.
    """
    node = domain.node
    assert node is not None
    x, weights = node.inputs[0], node.inputs[1].value[:, 0]
    channels = weights.shape[0]
    unit, lanes = _block(x.dtype, channels)
    if unit.careful:
        unit = replace(unit, careful=bool(weights.min() == -128))
    block = lanes * unit.elements
    places = np.array(order(lanes, unit.elements))
    # Each place of each block has a channel, or none.
    at = (np.arange(0, channels, block)[:, None] + places).reshape(-1)
    known = at < channels
    ordered = _ordered(steps, domain, stores, at)
    nest, access, guards, line = _lines(domain, ordered or stores, read, name)
    words = _taps(weights, at, block, 1 if unit.halved else unit.elements, unit)
    packed = constant(steps, np.ascontiguousarray(words).reshape(-1).view(np.int8), D.int8)
    zero = node.params["zero"]
    begins = np.zeros(at.size, np.int64)
    begins[known] = -(zero + unit.moved(x.dtype)) * weights[at[known]].astype(np.int64).sum((1, 2))
    first = constant(steps, begins.astype(np.int32), D.int32)
    most = DEPTHWISE if not unit.halved else 3
    height = -(-line.count // -(-line.count // most))
    how = Bytes(unit, lanes, height, ordered is not None)
    image = replace(read.image, zero=zero)
    kernel = depthwise_bytes_kernel(nest, access, guards.get(0), image, line, how, packed, first)
    kernel_step(steps, kernel, nest, [access.buffer, packed, first], members)


def _taps(weights: Array, at: Array, block: int, together: int, unit: Unit) -> Array:
    """Return weights (channel, row, tap) by blocks of channels in the order `at`.

    Each block has so many channels, and words have the elements of so many rows `together`; the
    axes are (block, words of rows, tap, channel, element), or with `unit.halved` (block, tap, row,
    channel, 1).
    """
    (_, rows, taps), known = weights.shape, at < len(weights)
    groups = -(-rows // together)
    kind = np.int8 if unit.halved else unit.weights
    padded = np.zeros((at.size, groups * together, taps), kind)
    padded[known, :rows] = weights[at[known]]
    words = padded.reshape(-1, block, groups, together, taps)
    return np.asarray(words.transpose((0, 4, 2, 1, 3) if unit.halved else (0, 2, 4, 1, 3)))


def _block(dtype: DType, channels: int) -> tuple[Unit, int]:
    """Return the products and the lanes with which a number of channels takes the fewest blocks."""
    found = []
    wide = target().vector_bytes
    unit = unit_for(dtype)
    if unit is not None and unit.halved:
        # Sixteen channels, or eight where that wastes fewer or there are few registers.
        few = 1 <= channels % 16 <= 8 or target().is_family("armv7")
        return replace(unit, elements=2 if few else 4), 4
    while wide >= 16:
        unit = unit_for(dtype, wide)
        if unit is not None:
            found.append((-(-channels // (wide // 4 * unit.elements)), wide, unit))
        wide //= 2
    _, wide, unit = min(found, key=lambda f: f[:2])
    return unit, wide // 4


def _ordered(steps: StepBuilder, domain: ChannelDomain, stores: list[Store], at: Array) -> list[Store] | None:
    """Return `stores` with constants of channels in the order `at`.

    Returns None where they are more than steps of the sum and of such constants. `domain` has the
    loop of channels, `steps` the constants.
    """
    if len(stores) != 1 or stores[0].value.data != HIGH or stores[0].value.dtype.itemsize != 1:
        return None
    image: dict[int, Expr | None] = {}
    builder = Builder()

    def moved(x: Expr) -> Expr | None:
        if id(x) not in image:
            image[id(x)] = made(x)
        return image[id(x)]

    def made(x: Expr) -> Expr | None:
        if x.kind == "const" or x.kind == "reduced":
            return x
        if x.kind == "load":
            access = x.data[0]
            if access.guards or access.dynamic or id(access.buffer) not in steps.lowered.constants:
                return None
            if not access.offset.terms:
                return x
            if access.offset.terms != ((domain.channel, 1),):
                return None
            values = steps.lowered.constants[id(access.buffer)][1].reshape(-1)
            here = np.minimum(at, domain.shape[domain.channel] - 1) + access.offset.const
            buffer = constant(steps, np.ascontiguousarray(values[here]), access.buffer.dtype)
            return builder.load(Access(buffer, affine(domain.channel)))
        args = [moved(a) for a in x.args]
        known = [a for a in args if a is not None]
        if x.kind != "op" or len(known) < len(args):
            return None
        return builder.op(x.data, x.dtype, *known)

    value = moved(stores[0].value)
    return None if value is None else [Store(stores[0].target, value, stores[0].full)]


def _depthwise_step(
    steps: StepBuilder, domain: ChannelDomain, stores: list[Store], read: Read, members: tuple[Node, ...], name: str
) -> None:
    """Add the kernel of a depthwise convolution.

    * `steps`, `domain`, `stores`, `members`, `name`: as for `channel_step`.
    * `read`: what its positions read.
    """
    node = domain.node
    assert node is not None
    nest, access, guards, line = _lines(domain, stores, read, name)
    image = read.image
    height = -(-line.count // -(-line.count // DEPTHWISE))
    lanes = target().vector_bytes // 4
    w = node.inputs[1].value[:, 0]
    padded = np.zeros((-(-w.shape[0] // lanes) * lanes, *w.shape[1:]), np.float32)
    padded[: w.shape[0]] = w
    packed = np.moveaxis(padded.reshape(-1, lanes, *w.shape[1:]), 1, -1)
    weights = constant(steps, np.ascontiguousarray(packed).reshape(-1), D.float32)
    kernel = depthwise_channel_kernel(nest, access, guards.get(0), image, line, height, weights)
    kernel_step(steps, kernel, nest, [access.buffer, weights], members)


def _lines(
    domain: ChannelDomain, stores: list[Store], read: Read, name: str
) -> tuple[Nest, Access, dict[int, Guard], Line]:
    """Return the nest of a depthwise convolution over lines, and what a line reads.

    * `domain`, `stores`, `name`: as for `channel_step`; `read`: what its positions read.
    """
    node = domain.node
    assert node is not None
    nest, access = nest_of(domain, stores, read.access, name, lines=True)
    p, guards = node.params, dict(zip(read.guards, access.guards))
    width, taps = int(node.inputs[0].shape[3]), read.image.taps[1]
    line = Line(int(node.type.shape[3]), p["strides"][1], p["padding"][1][0], width, taps, p["dilation"][1])
    return nest, Access(access.buffer, access.offset), guards, line


def kernel_step(steps: StepBuilder, kernel: Any, nest: Nest, more: Sequence[Buffer], members: tuple[Node, ...]) -> None:
    """Add a kernel to `steps` that computes the stores of a nest, and reads `more` buffers.

    `members` are the nodes that it computes.
    """
    reads, writes = buffers_of(nest)
    known = {id(b): b for b in (*reads, *more)}
    steps.step(kernel, list(known.values()), writes, members[-1], members)


def constant(steps: StepBuilder, array: Array, dtype: DType) -> Buffer:
    """Return a buffer with the values of an array of a type, or of bytes."""
    buffer = Buffer(dtype, array.size, "constant")
    steps.lowered.constants[id(buffer)] = (buffer, array)
    return buffer


def channels_last(steps: StepBuilder, view: View) -> View:
    """Return an image with its channels last, copied where they are not."""
    if is_one(view.strides[1]) or is_one(view.shape[1]):
        return view
    n, c, h, w = view.shape
    strides = like_order((h * w * c, 1, w * c, c), view.shape)
    key = ("channels", id(view.buffer), view.shape, view.strides, view.offset)
    if key not in steps.relaid:
        made = View(Buffer(view.buffer.dtype, element_count(view.shape), "copy"), view.shape, strides, 0)
        steps.copy(view, made)
        steps.relaid[key] = view, made
    return steps.relaid[key][1]


def _read_of(steps: StepBuilder, node: Node, domain: ChannelDomain, unit: Unit, padded: View | None = None) -> Read:
    """Return what a node reads, of a copy with its padding (`padded`) where there is one.

    * `steps`: the places of values; `node`, `domain`, `unit`: as for `channel_step`.
    """
    x, p = node.inputs[0], node.params
    view = padded or steps.view(x)
    zero = p.get("zero", p.get("a_zero", 0)) + unit.moved(x.dtype)
    if domain.channel != 1 or "padding" not in p:
        if not is_one(view.strides[-1]) and not is_one(view.shape[-1]):
            view = steps.contiguous(view)
        rank = len(x.shape)
        at = [*[affine(k) for k in range(rank - 1)], Affine((), 0)]
        at = [Affine((), 0) if is_one(d) else q for d, q in zip(x.shape, at)]
        return Read(view.access(at), (), Image((1, 1), int(x.shape[-1]), (0, 0), (1, 1), zero))
    view = channels_last(steps, view)
    padding = ((0, 0), (0, 0)) if padded else p["padding"]
    places = [affine(k).scale(s).shift(-low) for k, s, (low, _) in zip((2, 3), p["strides"], padding)]
    places = [q if not is_one(domain.shape[k]) else Affine((), q.const) for k, q in zip((2, 3), places)]
    guarded = tuple(k for k, ends in enumerate(padding) if any(map(may_exceed, ends)))
    guards = tuple((places[k], x.shape[2 + k]) for k in guarded)
    row: Affine = Affine((), 0) if is_one(domain.shape[0]) else affine(0)
    access = view.access([row, Affine((), 0), *places])
    taps = node.inputs[1].shape[2:]
    image = Image(
        (int(taps[0]), int(taps[1])),
        int(x.shape[1]),
        (int(view.strides[2]), int(view.strides[3])),
        (int(p["dilation"][0]), int(p["dilation"][1])),
        zero,
    )
    return Read(Access(access.buffer, access.offset, guards), guarded, image)


def _with_padding(steps: StepBuilder, node: Node, domain: ChannelDomain, unit: Unit) -> Read:
    """Return what a convolution of floats reads, of a copy of its image with the padding around."""
    x, p = node.inputs[0], node.params
    view = steps.view(x)
    shape = (*x.shape[:2], *[d + low + high for d, (low, high) in zip(x.shape[2:], p["padding"])])
    n, c, h, w = shape
    made = View(Buffer(x.dtype, element_count(shape), "padded"), shape, (h * w * c, 1, w * c, c), 0)
    key = ("padded", id(view.buffer), view.shape, view.strides, view.offset, p["padding"])
    if key not in steps.relaid:
        at = [affine(k) for k in range(4)]
        places = [*at[:2], *[q.shift(-low) for q, (low, _) in zip(at[2:], p["padding"])]]
        guards = tuple(zip(places[2:], x.shape[2:]))
        access = Access(view.buffer, view.access(places).offset, guards)
        steps.fill(made, lambda b: b.load(access), "padded")
        steps.relaid[key] = view, made
    made = steps.relaid[key][1]
    return _read_of(steps, node, domain, unit, made)


def nest_of(
    domain: ChannelDomain, stores: list[Store], access: Access, name: str, lines: bool = False
) -> tuple[Nest, Access]:
    """Return the nest of `stores` with the loop of channels last, and an `access` by its loops.

    The loops are those of a `domain`. Loops of one iteration are left out, and others joined where
    all positions allow it; with `lines` the loop over the positions of a line stays as it is.
    `name` is that of the nest.
    """
    builder = Builder()
    (r,) = _reductions(stores)
    r.value = builder.load(access)
    r.result.args = (r.value,)
    nest = Nest([Loop(d, "p") for d in domain.shape], [r], stores, name)
    *outer, channel = domain.order
    outer = [k for k in outer if not is_one(domain.shape[k]) or (lines and k == outer[-1])]
    positions = list(positions_of(nest))
    loops: list[Loop] = []
    mapping: dict[int, int] = {}
    for n, k in enumerate(outer):
        if n and not (lines and n == len(outer) - 1) and merges(positions, outer[n - 1], k, domain.shape[k]):
            loops[-1] = Loop(loops[-1].extent * domain.shape[k], "p")
            del mapping[outer[n - 1]]
        else:
            loops.append(Loop(domain.shape[k], "p"))
        mapping[k] = len(loops) - 1
    loops = loops or [Loop(1, "p")]
    mapping[channel] = len(loops)
    loops.append(Loop(domain.shape[channel], "p"))

    def move(place: Affine) -> Affine:
        terms = [(mapping[k], c) for k, c in place.terms if k in mapping]
        return Affine(tuple(sorted(terms, key=lambda t: t[0])), place.const)

    made = rewritten(nest, move, True)
    made.loops = loops
    return made, made.reduces[0].value.data[0]


def _reductions(stores: list[Store]) -> list[Reduce]:
    """Return the reductions that stores use, each once."""
    found: dict[int, Reduce] = {}
    seen: set[int] = set()
    pending = [s.value for s in stores]
    while pending:
        x = pending.pop()
        if id(x) not in seen:
            seen.add(id(x))
            pending += x.args
            if x.kind == "reduced":
                found[id(x.data)] = x.data
    return list(found.values())


def _weights(node: Node) -> Array:
    """Return weights as (elements of a position, channels)."""
    w = node.inputs[1].value
    if w.ndim == 2:
        return np.asarray(w)
    return np.asarray(np.moveaxis(w, (0, 1), (-1, -2)).reshape(-1, w.shape[0]))


def _tile(nest: Nest, channels: int, read: Read, unit: Unit) -> Tile:
    """Return the tile for a nest: as much as registers hold, and the stack what it copies."""
    lanes = target().vector_bytes // 4
    many = target().vector_bytes == 64 or target().is_family("aarch64") or target().is_family("arm64")
    registers = 32 if many else 16
    vectors = -(-channels // lanes)
    line = max(hint(nest.loops[-2].extent), 1)
    wide = 1 if vectors == 1 else 2
    if line <= 4:
        wide = min(vectors, 4)
    most = min((registers - 2 - wide) // wide, MOST_HEIGHT)
    if target().is_family("armv7"):
        # Numbers that all lanes share take registers.
        most = min(most, 3)
    if unit.halved:
        # Positions' words and what is multiplied are in registers as well.
        wide = min(vectors, 4 if many else 2)
        most = 3 if wide > 2 else 4
    height = -(-line // -(-line // most))
    if not is_read_in_place(read.image, unit, bool(read.guards), height):
        height = max(min(height, (target().stack - SPARE) // (read.image.count * unit.bytes + 4)), 1)
    return Tile(height, wide, channels)


def _panels(weights: Array, tile: Tile, unit: Unit) -> Array:
    """Return weights (elements, channels) in panels, as the kernel reads them."""
    count, channels = weights.shape
    lanes = target().vector_bytes // 4
    steps, wide = -(-count // unit.elements), tile.vectors * lanes
    padded = np.zeros((steps * unit.elements, -(-channels // lanes) * lanes), unit.weights)
    padded[:count, :channels] = weights
    words = unit.placed(padded.reshape(steps, unit.elements, -1).transpose(0, 2, 1))
    parts = [words[:, k : k + wide].reshape(-1) for k in range(0, words.shape[1], wide)]
    made = np.concatenate(parts)
    return made if unit.is_plain else made.view(np.int8)


def _first(steps: StepBuilder, node: Node, weights: Array, tile: Tile, unit: Unit) -> Buffer | None:
    if node.prim not in (int_conv, int_matmul):
        return None
    p = node.params
    offset = p.get("zero", p.get("a_zero", 0)) + unit.moved(node.inputs[0].dtype)
    lanes = target().vector_bytes // 4
    padded = np.zeros(-(-tile.channels // lanes) * lanes, np.int64)
    padded[: tile.channels] = -offset * weights.astype(np.int64).sum(0)
    return constant(steps, padded.astype(np.int32), D.int32)
