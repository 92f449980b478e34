"""What records of primitives are made of: samples, costs, roundings, and factors of the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

from mycel._src.compiler.ir.dims import DimLike

__all__ = ["Cost", "Factor", "Filling", "Place", "Rounding", "Sample", "Sizes"]

Sizes = tuple[tuple[str, int], ...]
Filling = float | str | None


@dataclass(frozen=True)
class Sample:
    """One case for the contract test: input shapes (or arrays) and parameters.

    Random floats lie in the interval `domain`, random integers in ``range(*integers)``. `dtypes`
    names each input's type; "*", the default of all, stands for each of the primitive's `dtypes` in
    turn. An array in `shapes` is passed as it is.
    """

    shapes: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    domain: tuple[float, float] = (-2.0, 2.0)
    integers: tuple[int, int] = (-5, 6)
    dtypes: tuple[str, ...] | None = None
    differentiable: bool = True


class Cost(IntEnum):
    """The cost of one application, which decides whether it may be computed twice.

    LIGHT: a view, a number, or arithmetic that takes no longer than reading its operands. PASS: one
    pass over the elements, as elementary functions, copies and reductions take. HEAVY: anything
    else.
    """

    LIGHT = 0
    PASS = 1
    HEAVY = 2


class Rounding(Enum):
    """How a floating-point result is rounded.

    This decides the type in which a constant is computed. OWN: in the way of the operation, in the
    type of its operands. EXACT: not at all; the result has elements of the operands, or functions
    of them that their type represents exactly. ONCE: after a computation in a wider type. SUM:
    likewise, of so many terms that float64 needs a wider type as well. IN_PLACE: at each addition
    into memory.
    """

    OWN = "own"
    EXACT = "exact"
    ONCE = "once"
    SUM = "sum"
    IN_PLACE = "in place"


@dataclass(frozen=True)
class Place:
    """Where a factor lies in a tensor: in `axis`, of `before` times the factor times `after`."""

    axis: int
    before: DimLike = 1
    after: DimLike = 1


@dataclass(frozen=True)
class Factor:
    """One size over which a primitive iterates.

    `operands` and `results` have the place of the factor in each, None where it is not in it. For
    results without it `combine` says how those of the parts become the whole: "sum", "max", "min",
    "prod", "any" or "all"; where it is empty all parts have the same. `sizes` names the entries of
    parameters, by name and index, that are multiples of the factor and shrink with it; the index is
    -1 for a parameter that is a size itself. `padding` has, for each operand, the value by which it
    is filled up, None where `combine` decides, and `ANYTHING` where any will do although it is
    combined; it is empty where `combine` decides for all. A factor that is `even` is divided into
    equal parts only.
    """

    size: DimLike
    operands: tuple[Place | None, ...]
    results: tuple[Place | None, ...]
    combine: str = ""
    sizes: Sizes = ()
    padding: tuple[Filling, ...] = ()
    even: bool = False
