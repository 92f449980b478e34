"""Lowering of Fourier transforms along one axis (`operations.fourier.fourier_batch_kernel`).

What lies before the axis, and what lies behind it, are one axis each. Where there is something
behind, its elements are the sequences side by side; otherwise, or where these are too few to fill a
vector, the transformed axis is made contiguous. Threads share blocks of sequences.
"""

from __future__ import annotations

from typing import NamedTuple

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike, is_one, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.llvm.target import target as in_force
from mycel._src.engines.native.operations.fourier.fourier_batch_kernel import (
    Form,
    fourier_text,
    pointers_of,
    scratch_elements,
    tables,
)
from mycel._src.engines.native.operations.fourier.fourier_four_step_kernel import TableForm, table_numbers, table_text
from mycel._src.engines.native.operations.fourier.fourier_passes import vector_lanes
from mycel._src.engines.native.operations.fourier.fourier_plan import radices_of, sides_of
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.foundation import dtype as D

__all__ = ["fourier_step"]

# Bytes of scratch memory on the stack, and of all parts that have their own in the arena.
ARENA, PARTS = 16 << 20, 32
# Numbers for each lane of a vector that tables on the stack hold.
IN_TABLES = 256
# What a complex number costs, in elements of a plain kernel.
WORK = 6


class _Axes(NamedTuple):
    """How sequences lie: sizes and strides of the axes before and behind, and of the sequences."""

    before: DimLike
    behind: DimLike
    outer: DimLike
    inner: DimLike
    element: DimLike


def fourier_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of a transform along one axis."""
    p, axis = node.params, node.params["axis"]
    parts = [steps.view(i) for i in node.inputs]
    shape, lanes = parts[0].shape, vector_lanes(parts[0].buffer.dtype)
    rank = len(shape)
    behind = product(shape[axis + 1 :])
    out_shape = tuple(node.type.shape)
    back = tuple(range(rank + 1))
    if not is_one(behind) and not (type(behind) is int and behind >= lanes):
        # Too few side by side: the axis is moved behind the others, and back in the result.
        order = (*range(axis), *range(axis + 1, rank), axis)
        parts = [_permuted(v, order) for v in parts]
        back = (*range(axis), rank - 1, *range(axis, rank - 1), rank)
        out_shape = tuple(out_shape[k] for k in (*order, rank))
        axis, behind = rank - 1, 1
    axes = _axes_of(parts, axis, lanes, bool(p["turn"]))
    if axes is None:
        parts = [steps.copy(v) for v in parts]
        axes = _axes_of(parts, axis, lanes, bool(p["turn"]))
        assert axes is not None
    target = row_major(Buffer(node.type.dtype, product(out_shape), "fourier"), out_shape)
    if p["turn"]:
        target = View(target.buffer, out_shape, _turned_strides(out_shape, axis), 0)
    _run(steps, node, parts, axes, target, axis)
    steps.bind(node, [_permuted(target, back)])


def _permuted(view: View, order: tuple[int, ...]) -> View:
    return View(view.buffer, tuple(view.shape[k] for k in order), tuple(view.strides[k] for k in order), view.offset)


def _turned_strides(shape: tuple[DimLike, ...], axis: int) -> tuple[DimLike, ...]:
    """Return the strides of a value whose axes `axis - 1` and `axis` lie in the other order."""
    order = (*range(axis - 1), axis, axis - 1, *range(axis + 1, len(shape)))
    lying = row_major(Buffer(D.float32, 1, ""), tuple(shape[k] for k in order)).strides
    return tuple(lying[order.index(k)] for k in range(len(shape)))


def _pairs(parts: list[View]) -> bool:
    """Return whether the parts lie in pairs."""
    if len(parts) < 2:
        return False
    re, im = parts
    near = re.buffer is im.buffer and all(same(a, b) for a, b in zip(re.strides, im.strides))
    return near and same(im.offset - re.offset, 1)


def _axes_of(parts: list[View], axis: int, lanes: int, turned: bool) -> _Axes | None:
    """Return how sequences lie; None where they have to be copied."""
    shape = parts[0].shape
    unit = 2 if _pairs(parts) else 1
    found: list[_Axes] = []
    for view in parts:
        strides = view.strides
        # The sequences of a table are those of its rows alone.
        middle = axis - 1 if turned else axis
        before, behind = (_joined(shape[a:b], strides[a:b]) for a, b in ((0, middle), (axis + 1, len(shape))))
        if turned:
            behind = (shape[middle], strides[middle])
        if before is None or behind is None:
            return None
        found.append(_Axes(before[0], behind[0], before[1], behind[1], strides[axis]))
    first = found[0]
    if any(not same(a, b) for other in found for a, b in zip(first, other)):
        return None
    columns = not is_one(first.behind) and not turned
    near = first.inner if columns else first.element
    return first if same(near, unit) or (is_one(shape[axis]) and not columns) else None


def _joined(shape: tuple[DimLike, ...], strides: tuple[DimLike, ...]) -> tuple[DimLike, DimLike] | None:
    """Return the size and stride of neighbouring axes as one; None where they do not join."""
    size: DimLike = 1
    step: DimLike = 0
    for d, s in zip(reversed(shape), reversed(strides)):
        if is_one(d):
            continue
        if is_one(size):
            size, step = d, s
        elif same(s, size * step):
            size = size * d
        else:
            return None
    return size, step


def _run(steps: StepBuilder, node: Node, parts: list[View], axes: _Axes, target: View, axis: int) -> None:
    """Add the kernel that writes the transform of `parts`, along `axis`, to `target`."""
    p, dtype = node.params, parts[0].buffer.dtype
    lanes = vector_lanes(dtype)
    given = parts[0].shape[axis]
    size = given - 1 if p["kind"] == "from_half" else given
    assert isinstance(size, int)
    columns = not is_one(axes.behind) and not p["turn"]
    table = bool(p["turn"])
    if not columns and not table:
        sides = sides_of(size, lanes, hint(axes.before)) if size <= IN_TABLES * lanes else None
        if sides is not None:
            _run_table(steps, node, parts, axes, target, sides)
            return
    form = Form(
        dtype,
        p["kind"],
        size,
        radices_of(size),
        "columns" if columns else "lines",
        "columns" if columns or table else "lines",
        "real" if len(parts) == 1 else "pairs" if _pairs(parts) else "apart",
        swapped=p["inverse"],
        scaled=p["factor"] != 1.0,
        turned=table,
        stack=True,
    )
    scratch = scratch_elements(form) * dtype.itemsize
    if scratch > in_force().stack:
        form = Form(**{**form.__dict__, "stack": False})
    # Lines of one batch are the sequences; else those behind, once for each before.
    outer, count = (axes.before, axes.behind) if columns or table else (1, axes.before)
    blocks = -(-count // lanes)
    units = outer * blocks
    extent: DimLike = units
    if not form.stack:
        most = max(2, min(PARTS, ARENA // scratch))
        extent = min(units, most) if type(units) is int else units
    out = target.strides
    numbers: dict[str, DimLike] = {
        "units": units,
        "parts": extent,
        "blocks": blocks,
        "lanes": count,
        "in_outer": axes.outer if columns or table else 0,
        "in_lane": axes.inner if columns or table else axes.outer,
        "in_element": axes.element,
        "re_first": parts[0].offset,
        "im_first": parts[-1].offset,
        "out_outer": _step_before(target, axis - 1 if table else axis) if columns or table else 0,
        "out_lane": out[axis - 1] if table else 2 if columns else _step_before(target, axis),
        "out_element": out[axis],
        "out_first": 0,
    }
    values = tables(form, p["factor"], count if isinstance(count, int) and table else 0)
    constant = Buffer(dtype, values.size, "constant")
    steps.lowered.constants[id(constant)] = (constant, values)
    places = {"re": parts[0].buffer, "im": parts[-1].buffer, "turns": constant, "out": target.buffer}
    writes = [target.buffer]
    if not form.stack:
        places["scratch"] = Buffer(dtype, extent * scratch_elements(form), "scratch")
        writes.append(places["scratch"])
    words: list[Word] = [("int", v) for v in numbers.values()]
    words += [("pointer", places[n]) for n in pointers_of(form)]
    reads = list({id(v.buffer): v.buffer for v in parts}.values())
    work = outer * count * (size * WORK)
    said = f"{size} = {' x '.join(map(str, form.radices))}, {lanes} {form.source} to {form.target}"
    steps.step(Kernel(fourier_text(form), words, extent, work, said), [*reads, constant], writes, node)


def _run_table(
    steps: StepBuilder, node: Node, parts: list[View], axes: _Axes, target: View, sides: tuple[int, int]
) -> None:
    """Add the kernel that writes the transforms of contiguous sequences, by tables with `sides`."""
    p, dtype = node.params, parts[0].buffer.dtype
    given = "real" if len(parts) == 1 else "pairs" if _pairs(parts) else "apart"
    first, second = map(radices_of, sides)
    form = TableForm(dtype, p["kind"], first, second, given, p["inverse"], p["factor"] != 1.0)
    values = table_numbers(form, p["factor"])
    constant = Buffer(dtype, values.size, "constant")
    steps.lowered.constants[id(constant)] = (constant, values)
    numbers = (axes.outer, parts[0].offset, parts[-1].offset, _step_before(target, len(target.shape) - 2))
    places = [parts[0].buffer, parts[-1].buffer, constant, target.buffer]
    words: list[Word] = [*[("int", v) for v in numbers], *[("pointer", b) for b in places]]
    reads = list({id(b): b for b in places[:-1]}.values())
    size = sides[0] * sides[1]
    said = f"{sides[0]} x {sides[1]} by {' x '.join(map(str, (*first, *second)))}"
    kernel = Kernel(table_text(form), words, axes.before, axes.before * (size * WORK), said)
    steps.step(kernel, reads, [target.buffer], node)


def _step_before(target: View, axis: int) -> DimLike:
    """Return the stride of the axes before `axis` as one."""
    joined = _joined(target.shape[:axis], target.strides[:axis])
    assert joined is not None
    return joined[1]
