"""Factors: how a primitive's work is divided.

A *factor* is one size that a primitive iterates over, and says along which axis each operand and
each result has it. Divided among n parts, a part is the primitive applied to slices of the operands
that have the factor and to the others as a whole. Results with the factor are joined along their
axis; those without it are `combine`d, or are the same in each part. So a product of matrices has
the factors of its rows, its columns, each batch axis, and of what it sums over, which no result
has.

An axis may be a product of factors, as rows of words are batches times positions after a reshape:
a `Place` says which stretch of an axis is meant. The record's `factors(node)` gives a node's
factors. Parameters that are sizes follow the factor by `sizes`. Where a part's result depends on
its place, as for positions and random numbers, the record's `part` says how it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from mycel.ir.dims import DimLike

if TYPE_CHECKING:
    from mycel.ir.graph import Node

__all__ = ["Factor", "Place", "factors_of"]


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
    parameters, by name and index, that are multiples of the factor and shrink with it.
    """

    size: DimLike
    operands: tuple[Optional[Place], ...]
    results: tuple[Optional[Place], ...]
    combine: str = ""
    sizes: tuple[tuple[str, int], ...] = ()


def factors_of(node: Node) -> Sequence[Factor]:
    """Return the factors of a node; none where its primitive names none."""
    rule = None if node.prim is None else node.prim.factors
    return () if rule is None else rule(node)
