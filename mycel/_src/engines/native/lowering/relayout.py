"""Copies a reduction's operands into loop order where they are not contiguous along its lanes.

A nest without reductions transposes tiles of such operands in registers. A nest with reductions
would gather every element, one cache line for each lane. So a nest without reductions first copies
the operand, which moves it twice more through memory and is still several times faster. Small
operands stay in a near cache and are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import is_one
from mycel._src.engines.native.kernels.loop_nest import Affine, Buffer
from mycel._src.engines.native.kernels.loop_schedule import pays_to_copy
from mycel._src.engines.native.kernels.strided_view import View, element_count, like_order
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.steps.step_builder import StepBuilder

__all__ = ["along_lanes"]


def along_lanes(steps: StepBuilder, view: View, position: Sequence[Affine], like: Sequence[int]) -> View:
    """Return a view, or a copy of it in the order of the loops' strides `like`.

    It is copied by `steps` if it is read at `position` across the innermost of the loops, a copy
    pays, and the processor has the memory.
    """
    loops = [k for k, s in enumerate(like) if s]
    if not loops or not target().copies:
        return view
    inner = min(loops, key=lambda k: like[k])
    axes = [p.terms[0][0] for p in position if p.terms]
    plain = all(len(p.terms) == 1 and is_one(p.terms[0][1]) for p in position if p.terms)
    if not plain or len(set(axes)) < len(axes) or inner not in axes or not all(like[k] for k in axes):
        return view
    if any(not p.terms and not is_one(d) for p, d in zip(position, view.shape)):
        return view
    if any(hint(s) == 0 for s, d in zip(view.strides, view.shape) if not is_one(d)):
        return view
    strides_of = {p.terms[0][0]: s for p, s in zip(position, view.strides) if p.terms}
    sizes = {p.terms[0][0]: d for p, d in zip(position, view.shape) if p.terms}
    if not pays_to_copy(strides_of, sizes, inner):
        return view
    order = tuple(like[p.terms[0][0]] if p.terms else max(like) + 1 for p in position)
    strides = like_order(order, view.shape)
    key = (id(view.buffer), view.shape, view.strides, view.offset, strides)
    if key not in steps.relaid:
        made = View(Buffer(view.buffer.dtype, element_count(view.shape), "copy"), view.shape, strides, 0)
        steps.copy(view, made)
        steps.relaid[key] = view, made
    return steps.relaid[key][1]
