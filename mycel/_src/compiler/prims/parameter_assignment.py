"""The `assigned` primitive: a value assigned to a parameter, with the parameter's derivative.

    assigned(value, parameter)     value, whose derivative is that of the parameter

A parameter is a variable of the derivative wherever it is read, as in MindSpore: the gradient by it
adds up over all readings, before and after assignments, and none goes back through an assignment to
what was assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Cost, Primitive, Rounding, Sample, register
from mycel._src.compiler.prims.elementwise_records import NUMBERS
from mycel._src.compiler.prims.factors import elementwise_factors

__all__ = ["assigned"]


def _infer(value: TensorType, parameter: TensorType) -> TensorType:
    if value is not parameter:
        raise TypeError(f"assigned: a parameter of type {parameter} cannot have a value of type {value}")
    return value


def _batch(size: DimLike, values: Sequence[Node], axes: Sequence[int | None]) -> Any:
    batched = [
        S.broadcast_to(v, (size, *v.shape)) if axis is None else S.move_axis(v, axis, 0)
        for v, axis in zip(values, axes)
    ]
    return assigned(*batched), 0


assigned: Primitive = register(
    Primitive(
        "assigned",
        _infer,
        lambda value, parameter: value,
        lambda ct, out, value, parameter: (None, ct),
        _batch,
        expand=lambda value, parameter: E.identity(value),
        samples=(Sample(((2, 3), (2, 3)), differentiable=False),),
        dtypes=(*NUMBERS, "bool"),
        factors=elementwise_factors,
        cost=Cost.LIGHT,
        rounding=Rounding.EXACT,
        doc="The value assigned to a parameter, with the derivative of the parameter.",
    )
)
