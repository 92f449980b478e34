"""Lowering of scatters: writes at positions that are data.

The target is filled or copied first; then the updates are written at the indices. Where nothing
else needs the operand, as that of a loop whose iterations write one element each, they are written
over it.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.loops.programs import COMBINES
from mycel._src.engines.native.kernels.loop_nest import ZERO, Access, Affine, Builder, Expr, Loop, Nest, Store
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides
from mycel._src.engines.native.steps.fill_and_copy import copy_part, fill_zeros, positions
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_target
from mycel._src.engines.native.steps.view_rules import Position

__all__ = ["put_along_step", "scatter_nd_step", "take_add_step"]


def take_add_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels that add slices at the indices they were taken from (`take_add`)."""
    ct, indices = node.inputs
    axis, rank = node.params["axis"], indices.type.rank
    target = new_target(node)
    fill_zeros(steps, target)
    b = Builder()
    at = positions(ct.type.shape)
    index = b.load(steps.view(indices).access(at[axis : axis + rank]))
    fixed = (*at[:axis], ZERO, *at[axis + rank :])
    _scatter(steps, node, target, b, [(index, axis)], fixed, range(axis, axis + rank))


def put_along_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels that write or add elements at indices along one axis (`put_along`)."""
    target = _copied(steps, node)
    if target is None:
        return
    _, indices, updates = node.inputs
    axis = node.params["axis"]
    b = Builder()
    at = positions(updates.type.shape)
    index = b.load(steps.view(indices).access(at))
    fixed = tuple(ZERO if k == axis else p for k, p in enumerate(at))
    _scatter(steps, node, target, b, [(index, axis)], fixed, range(axis, axis + 1))


def scatter_nd_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels that write or add slices at indices of the leading axes (`scatter_nd`)."""
    target = _copied(steps, node)
    if target is None:
        return
    _, indices, updates = node.inputs
    b = Builder()
    lead, depth = indices.type.rank - 1, indices.type.shape[-1]
    at = positions(updates.type.shape)
    view = steps.view(indices)
    found = [(b.load(view.access((*at[:lead], Affine((), axis)))), axis) for axis in range(depth)]
    _scatter(steps, node, target, b, found, (*([ZERO] * depth), *at[lead:]), range(lead))


def _copied(steps: StepBuilder, node: Node) -> View | None:
    """Return a place with the value of a node's first operand, for updates to be written there.

    It is the operand's own where that is not needed afterwards, else a copy. Returns None where
    kernels have no code for the node's mode, and it runs in the reference engine.
    """
    mode = node.params["mode"]
    if mode not in ("set", *COMBINES):
        steps.host(node, f"{node.op} with mode {mode!r}")
        return None
    target = steps.overwritten(node)
    if target is None:
        target = new_target(node)
        copy_part(steps, steps.view(node.inputs[0]), target)
    steps.own.add(node)
    return target


def _scatter(
    steps: StepBuilder,
    node: Node,
    target: View,
    b: Builder,
    found: list[tuple[Expr, int]],
    fixed: Position,
    sequential: range,
) -> None:
    """Add the kernel that writes the updates of a node to `target`.

    They are the last operand or, for `take_add`, the first. `b` makes expressions. `found` are the
    indices with their axes, `fixed` is the position on the other axes; along the axes `sequential`
    of the updates, two may meet at one place.
    """
    indices = node.inputs[1]
    updates = node.inputs[2] if len(node.inputs) > 2 else node.inputs[0]
    shape, sizes, strides = updates.type.shape, target.shape, target.strides
    where = tuple([(index, strides[k], sizes[k], steps.site(node, indices, k, sizes[k])) for index, k in found])
    place = Access(target.buffer, target.access(fixed).offset, (), where)
    value = b.load(steps.view(updates).access(positions(shape)))
    loops = [Loop(d, "s" if k in sequential else "p") for k, d in enumerate(shape)]
    # Lanes that would each write to another row are slower than one element after the other.
    lanes = [k for k, d in enumerate(shape) if k not in sequential and not is_one(d)]
    apart = not lanes or not is_one(place.offset.coefficient(lanes[-1]))
    store = Store(place, value, True, node.params.get("mode", "add"))
    steps.kernel(Nest(loops, [], [store], node.op, apart), contiguous_strides(shape))
    steps.bind(node, [target])
