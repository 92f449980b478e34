"""The operation that gives a value another layout, as an object."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.sharding.layout import Layout
from mycel._src.compiler.ir.sharding.strategies import note_unused, strategy_of
from mycel._src.foundation import arguments
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.parallelism.operator_marks import marked_call
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.operations.primitive import Primitive

__all__ = ["Reshard"]


class Reshard(Primitive):
    """A change of layout: ``Reshard(in_layout, out_layout, in_strategy)(tensor)`` is `tensor`,
    divided over devices as `out_layout` says, where it was divided as `in_layout` says.

    Layouts are `mycel.Layout`s of the tensor; `in_strategy` is None, or a tuple with the numbers of
    parts that `in_layout` makes. While parallel_mode is "semi_auto_parallel" or "auto_parallel",
    compiled functions have the layouts in their graphs; otherwise they have no effect, which is
    logged once. Raises TypeError for other arguments, and ValueError for an `in_strategy` that
    differs from `in_layout`.

    >>> import mycel as ms
    >>> grid = ms.Layout((2, 2), ("dp", "mp"))
    >>> change = ms.ops.Reshard(grid("dp", "mp"), grid("dp", "None"), None)
    >>> change(ms.Tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, in_layout: Layout, out_layout: Layout, in_strategy: Any) -> None:
        super().__init__("Reshard")
        for name, layout in (("in_layout", in_layout), ("out_layout", out_layout)):
            arguments.instance("Reshard", name, layout, Layout)
            self.add_prim_attr(name, layout.to_dict())
        arguments.optional("Reshard", "in_strategy", in_strategy, tuple)
        self.add_prim_attr("in_strategy", in_strategy)
        self._strategy = strategy_of("Reshard", (in_layout,), (out_layout,))
        known = self._strategy.inputs[0] if self._strategy is not None and self._strategy.inputs else None
        if in_strategy is not None and known is not None and in_strategy not in (known.cuts, (known.cuts,)):
            raise ValueError(f"Reshard: in_strategy is {in_strategy!r}, and in_layout divides into {known.cuts} parts")

    def __call__(self, tensor: Tensor) -> Tensor:
        """Return the tensor."""
        arguments.instance("Reshard", "tensor", tensor, Tensor)
        note_unused("Reshard")
        if isinstance(eager.local.staging, Stage):
            made: Tensor = marked_call(eager.local.staging, "Reshard", self, _same, (tensor,), {})
            return made
        return tensor


def _same(tensor: Tensor) -> Tensor:
    return tensor
