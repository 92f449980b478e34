"""Sharding constraints: marks by which a program says how its values are divided.

    constrain(x; mark)      x itself, of which `mark` says something

A program divides *operators*, which are composed of primitives here. So staging puts a mark on each
input and each result of an operator: what lies between them is the operator's *region*
(`transforms.operator_regions`). A mark may also stand by itself, on a value with a layout of its
own.

A mark is the identity. Its cotangent has the same mark, as the gradient of what is marked; a batch
of marked values has one more axis, which is whole. Engines open marks to their operands, so they
cost nothing; whoever divides a graph reads them before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node, Where
from mycel._src.compiler.ir.sharding.division import Division
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Cost, Primitive, Rounding, Sample, register
from mycel._src.compiler.prims.factors import elementwise_factors

__all__ = ["INPUT", "RESULT", "VALUE", "Mark", "Operator", "constrain"]

INPUT, RESULT, VALUE = "input", "result", "value"


@dataclass(frozen=True)
class Operator:
    """One call of an operator in a program.

    `name` is its path as MindSpore writes it, "Default/network-Net/MatMul-op0", `kind` the
    operator's own name, `where` the user's line. `strategy` says whether the user gave a division
    of some of its inputs or results; `stage` is the stage of a pipeline that the user chose, or -1,
    and `micro` the number of the micro-batch that it works on, or -1 for all of them.
    """

    name: str
    kind: str
    where: Where | None = dataclasses.field(default=None, compare=False)
    strategy: bool = False
    stage: int = -1
    micro: int = -1


@dataclass(frozen=True)
class Mark:
    """What is said of a value.

    `role` is `INPUT` or `RESULT` number `index` of `operator`, or `VALUE` for a mark that stands by
    itself. `division` is what the user asked for, None where that is open. `gradient` says that the
    value is the gradient of what is marked.
    """

    operator: Operator
    role: str
    index: int = 0
    division: Division | None = None
    gradient: bool = False

    @property
    def lasting_text(self) -> str:
        """The text that stands for the mark in digests of graphs."""
        o = self.operator
        return repr((o.name, o.kind, o.strategy, o.stage, o.micro, self.role, self.index, self.division, self.gradient))

    def __repr__(self) -> str:
        said = "" if self.division is None else f" {self.division}"
        of = "gradient of " if self.gradient else ""
        return f"<{of}{self.role} {self.index} of {self.operator.name}{said}>"


def _infer(x: TensorType, *, mark: Mark) -> TensorType:
    return x


def _vjp(ct: Node, out: Node, x: Node, *, mark: Mark) -> tuple[Node]:
    return (constrain(ct, mark=dataclasses.replace(mark, gradient=not mark.gradient)),)


def _batch(size: DimLike, values: Sequence[Node], axes: Sequence[int | None], *, mark: Mark) -> Any:
    axis = axes[0]
    if axis is not None and mark.division is not None:
        mark = dataclasses.replace(mark, division=mark.division.with_axis(axis))
    return constrain(values[0], mark=mark), axis


_SAMPLE = Mark(Operator("Default/MatMul-op0", "MatMul"), INPUT, 0, Division((2, 1)))

constrain: Primitive = register(
    Primitive(
        "constrain",
        _infer,
        lambda x, *, mark: x,
        _vjp,
        _batch,
        expand=lambda x, *, mark: E.identity(x),
        samples=(Sample(((2, 3),), {"mark": _SAMPLE}),),
        dtypes=("float64", "float32", "float16", "int32", "bool", "complex64"),
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        rounding=Rounding.EXACT,
        factors=elementwise_factors,
        doc="The value itself, of which a mark says how it is divided.",
    )
)
