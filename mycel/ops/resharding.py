"""Values that are divided over devices by a layout of their own."""

from __future__ import annotations

from mycel._src.compiler.ir.sharding.division import division_of
from mycel._src.compiler.ir.sharding.layout import Layout
from mycel._src.compiler.ir.sharding.strategies import note_unused
from mycel._src.foundation import arguments
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.parallelism.operator_marks import marked_value
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["reshard"]


def reshard(tensor: Tensor, layout: Layout) -> Tensor:
    """Return the tensor, divided over devices by another layout.

    While parallel_mode is "semi_auto_parallel" or "auto_parallel", compiled functions have the
    layout in their graphs; otherwise it has no effect, which is logged once. Values never change.
    Raises TypeError for other arguments, ValueError for a layout that does not fit the tensor.

    >>> import mycel as ms
    >>> x = ms.Tensor([1.0, 2.0])
    >>> ms.reshard(x, ms.Layout((1,), ("dp",))("dp")) is x
    True
    """
    arguments.instance("reshard", "tensor", tensor, Tensor)
    arguments.instance("reshard", "layout", layout, Layout)
    division = division_of(layout)
    context = eager.current_context()
    note_unused("reshard")
    return marked_value(context, tensor, division, "Reshard") if isinstance(context, Stage) else tensor
