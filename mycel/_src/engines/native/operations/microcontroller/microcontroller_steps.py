"""Lowering of quantised layers to int8 kernels for microcontrollers.

Weights are put in the order in which the kernel reads them, and biases, multipliers and shifts
become its table. A result has its channels last, as kernels read images; the first image of a
network mostly has them first, and is gathered from there. Which layers go this way says
`has_byte_kernel`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_pool, rescaled_sum
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of
from mycel._src.engines.native.kernels.codegen import PLACE, Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides
from mycel._src.engines.native.operations.microcontroller.int8_addition_kernel import NUMBERS as SUM_NUMBERS
from mycel._src.engines.native.operations.microcontroller.int8_addition_kernel import SumForm, sum_text
from mycel._src.engines.native.operations.microcontroller.int8_average_pool_kernel import NARROW, PoolForm, pool_text
from mycel._src.engines.native.operations.microcontroller.int8_average_pool_kernel import NUMBERS as POOL_NUMBERS
from mycel._src.engines.native.operations.microcontroller.int8_convolution_kernel import NUMBERS as PRODUCT_NUMBERS
from mycel._src.engines.native.operations.microcontroller.int8_convolution_kernel import ByteForm, products_text
from mycel._src.engines.native.operations.microcontroller.int8_depthwise_kernel import NUMBERS as DEPTHWISE_NUMBERS
from mycel._src.engines.native.operations.microcontroller.int8_depthwise_kernel import DepthwiseForm, depthwise_text
from mycel._src.engines.native.operations.microcontroller.int8_instructions import (
    PAIRS,
    PLAIN,
    VECTORS,
    byte_machine,
    has_many_registers,
)
from mycel._src.engines.native.operations.microcontroller.microcontroller_rules import (
    by_count,
    gives_sums,
    is_depthwise,
)
from mycel._src.engines.native.operations.requantisation.microcontroller_requantisation import (
    HIGH,
    SUMS,
    Rescaling,
    rescaling,
)
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.foundation import dtype as D

__all__ = ["byte_step"]

Array = np.ndarray[Any, Any]
# Places and channels of a tile where there are many places, and where there is one.
TILES = {VECTORS: ((2, 4), (1, 4)), **dict.fromkeys((PAIRS, PLAIN), ((2, 2), (1, 4)))}
# The same with thirty registers.
MANY = ((3, 4), (1, 4))


def _held(node: Node) -> Array:
    array = array_of(node)
    assert array is not None, "weights are constants"
    return array


def _constant(steps: StepBuilder, array: Array, dtype: D.DType) -> Buffer:
    buffer = Buffer(dtype, array.size, "constant")
    steps.lowered.constants[id(buffer)] = (buffer, array)
    return buffer


def _readable(steps: StepBuilder, x: View) -> tuple[View, bool]:
    """Return an image in an order that kernels read, and whether its channels are last."""
    _, channels, _, width = x.shape
    plane, row, column = x.strides[1:]
    if channels == 1 or plane == 1:
        if column == channels or width == 1:
            return x, True
    if (column == 1 or width == 1) and channels > 1:
        return x, False
    return steps.contiguous(x), channels == 1


def byte_step(steps: StepBuilder, node: Node) -> None:
    """Add the step of a layer for which `has_byte_kernel` holds."""
    if node.prim is rescaled_pool:
        _pool_step(steps, node)
    elif node.prim is rescaled_sum:
        _sum_step(steps, node)
    else:
        (_depthwise_step if is_depthwise(node) else _product_step)(steps, node)


def _rescaling(node: Node, matrix: Array) -> Rescaling:
    """Return how the sums of a layer are rescaled; a row of `matrix` has a channel's weights."""
    _, first, multiplier, shift = (_held(i) for i in node.inputs[1:])
    p, wide = node.params, matrix.astype(np.int64)
    whole = first.astype(np.int64) - p["zero"] * wide.sum(1)
    if gives_sums(node):
        return Rescaling(SUMS, False, whole[:, None].astype(np.int32))
    # The image may have any bytes.
    reach = np.abs(wide).sum(1) * 128 + np.abs(whole)
    return rescaling(whole, reach, multiplier, shift, p["result_zero"], p["rounding"] == "double")


def _add(
    steps: StepBuilder, node: Node, kernel: Kernel, x: Buffer, constants: list[Buffer], scratch: Buffer | None
) -> None:
    """Add a step whose result has its channels last.

    `kernel` has no words for addresses yet: those of `x`, of the `constants`, of `scratch` memory
    where it needs some, and of the result.
    """
    images, channels, lines, columns = node.shape
    strides = (lines * columns * channels, 1, columns * channels, channels)
    view = View(Buffer(node.dtype, node.type.size, node.op), tuple(node.shape), strides)
    # Lines of one image are one behind the other inside of a concatenation of lines as well.
    part = steps.part(node, strides)
    if part is not None and images == 1 and tuple(part.strides[1:]) == strides[1:]:
        view = part
    out = view.buffer
    kernel.words += [("pointer", b) for b in (x, *constants, scratch or out)]
    kernel.words.append((PLACE, view))
    steps.step(kernel, [x, *constants], [scratch, out] if scratch else [out], node)
    steps.bind(node, [view])


def _product_step(steps: StepBuilder, node: Node) -> None:
    weights, p, machine = _held(node.inputs[1]), node.params, byte_machine()
    x, last, groups = steps.view(node.inputs[0]), True, p["groups"]
    # Columns of the kernel are runs of their own where they are apart, or have a group's channels.
    apart = groups > 1 or p["dilation"][1] > 1
    x, last = (_with_channels_last(steps, x), True) if apart else _readable(steps, x)
    n, channels, height, width = x.shape
    outputs, depth_channels, rows, columns = weights.shape
    unit = channels if last else 1
    strides = dict(zip(("image", "plane", "row", "column"), x.strides))
    total = int(np.prod((n, *node.shape[2:])))
    depth, run = depth_channels * rows * columns, depth_channels if apart else columns * unit
    # A patch that is one run, and those of all places one behind the other.
    plain = (rows, columns, *p["strides"]) == (1, 1, 1, 1) and not any(map(any, p["padding"])) and last
    flat = plain and groups == 1 and (height == 1 or strides["row"] == width * unit)
    flat = flat and (n == 1 or strides["image"] == height * width * unit)
    tall, wide = (MANY if has_many_registers() else TILES[machine])[total == 1]
    # (outputs, what is summed over in the order of the image)
    turned = (0, 3, 2, 1) if apart else (0, 2, 3, 1)
    matrix = (weights.transpose(turned) if last else weights).reshape(outputs, depth)
    scales, each = _rescaling(node, matrix), outputs // groups
    form = ByteForm(
        machine,
        tall,
        wide,
        not flat,
        each % wide != 0,
        depth % (16 if machine == VECTORS else 4) == 0,
        run % 4 == 0 and unit % 4 == 0,
        run >= 16,
        scales.way,
        scales.moves,
        apart,
        groups > 1,
    )
    parts = [slice(k, k + each) for k in range(0, outputs, each)]
    blocks = [_packed(matrix[part], form) for part in parts]
    tables = [_table(scales._replace(table=scales.table[part]), form.lanes, wide) for part in parts]
    packed = _constant(steps, np.concatenate(blocks), D.int8)
    table = _constant(steps, np.concatenate(tables), D.int32)
    tiles = -(-total // tall)
    numbers = {
        "total": total,
        "lines": node.shape[2],
        "columns": node.shape[3],
        "channels": each,
        "depth": depth,
        "x_first": x.offset,
        "x_image": strides["image"],
        "x_plane": p["dilation"][1] * unit if apart else strides["plane"],
        "x_row": strides["row"],
        "step_y": p["strides"][0],
        "step_x": p["strides"][1] * unit,
        "skip_y": p["dilation"][0],
        "skip_x": p["dilation"][1] * unit if apart else 0,
        "above": p["padding"][0][0],
        "left": p["padding"][1][0] * unit,
        "height": height,
        "width": width * unit,
        "planes": columns if apart else 1 if last else channels,
        "rows": rows,
        "run": run,
        **_ends(node),
        "all_channels": outputs * node.dtype.itemsize,
        "tiles": tiles,
        "x_group": depth_channels,
        "weights_group": blocks[0].size,
        "table_group": tables[0].size * 4,
    }
    words: list[Word] = [("int", numbers[name]) for name in PRODUCT_NUMBERS]
    work = math.prod(node.shape) * depth
    kernel = Kernel(products_text(form), words, tiles * groups, work, f"tiles of {tall} x {wide} bytes")
    padded = -(-depth // 16) * 16
    # Pairs take two bytes each, and what is gathered lies behind them.
    size = tall * padded * (2 if machine == PAIRS else 0) + (0 if flat else (1 if machine == PAIRS else tall) * padded)
    scratch = Buffer(D.int8, size + 16, "scratch")
    _add(steps, node, kernel, x.buffer, [packed, table], None if form.direct or not size else scratch)


def _ends(node: Node) -> dict[str, int]:
    return {name: node.params[name] for name in ("zero", "result_zero", "low", "high")}


def _repeated(steps: StepBuilder, x: View, times: int) -> View:
    """Return an image with its channels last, each channel so many times."""
    if times == 1:
        return _with_channels_last(steps, x)
    n, channels, height, width = x.shape
    wide = channels * times
    buffer = Buffer(D.int8, math.prod(x.shape) * times, "repeated")
    image, plane, *lines = x.strides
    source = View(x.buffer, (n, channels, times, height, width), (image, plane, 0, *lines), x.offset)
    strides = (height * width * wide, times, 1, width * wide, wide)
    steps.copy(source, View(buffer, source.shape, strides))
    return View(buffer, (n, wide, height, width), (strides[0], *strides[2:]))


def _depthwise_step(steps: StepBuilder, node: Node) -> None:
    weights, p, machine = _held(node.inputs[1]), node.params, byte_machine()
    x = _repeated(steps, steps.view(node.inputs[0]), len(weights) // p["groups"])
    n, channels, _, width = x.shape
    _, _, rows, columns = weights.shape
    matrix = weights.reshape(channels, rows * columns)
    scales = _rescaling(node, matrix)
    count = 8 if machine == VECTORS and channels % 8 == 0 else 4
    form = DepthwiseForm(machine, rows, columns, count, channels % 4 != 0, scales.way, scales.moves)
    lines, line = node.shape[2:]
    left = p["padding"][1][0]
    slots, across = ((k - 1) * d + 1 for k, d in zip((rows, columns), p["dilation"]))
    row = max(left + width, (line - 1) * p["strides"][1] + across) * channels
    numbers = {
        **_windows(node, x),
        "left": left * channels,
        "width": width * channels,
        "rows": slots,
        "skip_y": p["dilation"][0],
        "skip_x": p["dilation"][1] * channels,
        "ring_row": row,
        **_ends(node),
    }
    words: list[Word] = [("int", numbers[name]) for name in DEPTHWISE_NUMBERS]
    # For each four or eight channels, tap by tap.
    fours = _padded(matrix, 4).reshape(-1, count, rows * columns).transpose(0, 2, 1)
    if machine == PAIRS:
        packed = _constant(steps, fours[..., [0, 2, 1, 3]].astype(np.int16).reshape(-1), D.int16)
    else:
        packed = _constant(steps, np.ascontiguousarray(fours).reshape(-1), D.int8)
    if count == 8:
        # Those of even number lie before those of odd number.
        order = np.arange(len(weights)).reshape(-1, 4, 2).transpose(0, 2, 1).reshape(-1)
        scales = scales._replace(table=scales.table[order])
    table = _constant(steps, _table(scales, machine == VECTORS, 4), D.int32)
    said = f"{count} channels of {rows} x {columns} places"
    kernel = Kernel(depthwise_text(form), words, n, math.prod(node.shape) * rows * columns, said)
    scratch = Buffer(D.int8, slots * row + 4, "scratch")
    _add(steps, node, kernel, x.buffer, [packed, table], scratch)


def _windows(node: Node, x: View) -> dict[str, Any]:
    """Return the words that kernels over windows of an image `x`, channels last, have alike."""
    p = node.params
    return {
        "lines": node.shape[2],
        "columns": node.shape[3],
        "channels": x.shape[1],
        "x_first": x.offset,
        "x_image": x.strides[0],
        "x_row": x.strides[2],
        "step_y": p["strides"][0],
        "step_x": p["strides"][1],
        "above": p["padding"][0][0],
        "height": x.shape[2],
    }


def _pool_step(steps: StepBuilder, node: Node) -> None:
    x = _with_channels_last(steps, steps.view(node.inputs[0]))
    p, machine = node.params, byte_machine()
    n, channels, _, width = x.shape
    window = p["window"]
    several = node.inputs[1].type.rank > 0
    found = by_count(node) if several else np.stack([_held(i).reshape(1) for i in node.inputs[1:]], 1)
    assert found is not None
    # Those of a count are all that a sum of so many bytes meets.
    reach = 256 * (np.arange(len(found)) if several else np.full(1, math.prod(window)))
    begin, double = np.zeros(len(found)), p["rounding"] == "double"
    scales = rescaling(begin, reach, found[:, 0], found[:, 1], p["result_zero"], double)
    narrow = machine == PAIRS and math.prod(window) <= NARROW
    form = PoolForm(machine, channels % 4 != 0, narrow, scales.way, scales.moves, several)
    table = _turned(scales, machine)
    constants = [_constant(steps, table[:, 1:].reshape(-1), D.int32)] if several else []
    row = table[0].tolist()
    numbers = {
        **_windows(node, x),
        "left": p["padding"][1][0],
        "width": width,
        "rows": window[0],
        "taps": window[1],
        **_ends(node),
        **{f"field_{k}": row[k] if k < len(row) else 0 for k in range(1, 5)},
    }
    words: list[Word] = [("int", numbers[name]) for name in POOL_NUMBERS]
    kernel = Kernel(pool_text(form), words, n, math.prod(node.shape) * math.prod(window), "averages of bytes")
    _add(steps, node, kernel, x.buffer, constants, None)


def _sum_step(steps: StepBuilder, node: Node) -> None:
    views = [steps.view(i) for i in node.inputs]
    count, p, machine = math.prod(node.shape), node.params, byte_machine()
    # One order for all; the first that has no gaps.
    like = next((v.strides for v in views if _is_dense(v)), contiguous_strides(node.shape))
    read = []
    for view in views:
        if tuple(view.strides) != tuple(like):
            view = steps.copy(view, View(Buffer(D.int8, count, "copy"), tuple(node.shape), tuple(like)))
        read.append(view)
    most = 256 << p["room"]
    double = p["rounding"] == "double"
    # The sum is that of two numbers, each of which has become smaller.
    scales = [_scalars(p["left"][1:], most, 0, double), _scalars(p["right"][1:], most, 0, double)]
    bound = sum(most * abs(p[name][1]) / 2.0 ** (31 - p[name][2]) + 1 for name in ("left", "right"))
    scales.append(_scalars(p["last"], int(bound) + 1, p["result_zero"], double))
    form = SumForm(machine, count % 4 != 0, tuple((s.way, s.moves) for s in scales))
    numbers = {
        "channels": count,
        "x_first": read[0].offset,
        "second_first": read[1].offset,
        "room": p["room"],
        "a_zero": p["left"][0],
        "b_zero": p["right"][0],
        **{name: p[name] for name in ("result_zero", "low", "high")},
        **dict.fromkeys((f"{part}_{k}" for part in ("a", "b", "last") for k in range(1, 5)), 0),
    }
    for part, scale in zip(("a", "b", "last"), scales):
        row = _table(scale, machine == VECTORS, 4)[:: 4 if machine == VECTORS else 1].tolist()
        numbers.update({f"{part}_{k}": row[k] for k in range(1, scale.table.shape[1])})
    words: list[Word] = [("int", numbers[name]) for name in SUM_NUMBERS]
    target = View(Buffer(D.int8, count, node.op), tuple(node.shape), tuple(like))
    # Lines of one image are one behind the other inside of a concatenation of lines as well.
    inside = steps.part(node, like)
    if inside is not None and node.shape[0] == 1 and tuple(inside.strides[1:]) == tuple(like[1:]):
        target = inside
    out = target.buffer
    words += [("pointer", b) for b in (read[0].buffer, read[1].buffer)]
    words.append((PLACE, target))
    kernel = Kernel(sum_text(form), words, 1, count, "sums of bytes")
    steps.step(kernel, [read[0].buffer, read[1].buffer], [out], node)
    steps.bind(node, [target])


def _scalars(numbers: tuple[int, int], reach: int, zero: int, double: bool) -> Rescaling:
    multiplier, shift = (np.array([v]) for v in numbers)
    return rescaling(np.zeros(1), np.array([reach]), multiplier, shift, zero, double)


def _is_dense(view: View) -> bool:
    """Return whether the elements of a view lie one behind the other, in any order of its axes."""
    step = 1
    for stride, size in sorted((s, d) for s, d in zip(view.strides, view.shape) if d != 1):
        if stride != step:
            return False
        step *= size
    return True


def _with_channels_last(steps: StepBuilder, x: View) -> View:
    """Return an image whose channels and columns lie one behind the other."""
    n, channels, height, width = x.shape
    if x.strides[1] == 1 and (x.strides[3] == channels or width == 1):
        return x
    buffer = Buffer(x.buffer.dtype, math.prod(x.shape), "channels last")
    strides = (height * width * channels, 1, width * channels, channels)
    return steps.copy(x, View(buffer, tuple(x.shape), strides))


def _table(scales: Rescaling, lanes: bool, count: int) -> Array:
    """Return the numbers of channels in their order in memory.

    With `lanes` each number is that of four channels, and shifts are to the left.
    """
    rows = _padded(scales.table, count)
    if not lanes:
        return rows.reshape(-1)
    rows = _turned(scales._replace(table=rows), VECTORS)
    return np.ascontiguousarray(rows.reshape(-1, 4, rows.shape[1]).transpose(0, 2, 1)).reshape(-1)


def _turned(scales: Rescaling, machine: str) -> Array:
    """Return the table of `scales`; lanes of vectors move by the negative of a shift right."""
    if machine != VECTORS or scales.way != HIGH:
        return scales.table
    return scales.table * np.where(np.arange(scales.table.shape[1]) == 3, -1, 1).astype(np.int32)


def _padded(rows: Array, count: int) -> Array:
    """Return rows with rows of zeros behind them, so that there is a multiple of `count`."""
    return np.pad(rows, ((0, -len(rows) % count), (0, 0)))


def _packed(matrix: Array, form: ByteForm) -> Array:
    """Return weights (channels, bytes of a patch) in the order in which the kernel reads them."""
    wide = form.channels
    rows = _padded(matrix, wide)
    unit = {VECTORS: 16, PAIRS: 4, PLAIN: 1}[form.machine]
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % unit)))
    groups = rows.reshape(len(rows) // wide, wide, -1, unit)
    return np.ascontiguousarray(groups.transpose(0, 2, 1, 3)).reshape(-1)
