"""Factors: independent loops of a primitive's work, along which it may be divided.

A *factor* is one size that a primitive iterates over, and says along which axis each operand and
each result has it. Divided among n parts, a part is the primitive applied to slices of the operands
that have the factor and to the others as a whole. Results with the factor are joined along their
axis; those without it are `combine`d, or are the same in each part. So a product of matrices has
the factors of its rows, its columns, each batch axis, and of what it sums over, which no result
has. Any of a node's factors may be divided at the same time.

An axis may be a product of factors, as rows of words are batches times positions after a reshape:
a `Place` says which stretch of an axis is meant. The record's `factors(node)` gives a node's
factors. Parameters that are sizes follow the factor by `sizes`. Where a part's result depends on
its place, as for positions and random numbers, the record's `part` says how it is computed.

Parts of equal size may be wanted of a factor that does not divide into them. Then slices are filled
up at the end of the factor (in each of the `before` times `after` stretches), and what results have
there has no meaning, and may be NaN. What it is filled with matters in three cases. Where results
are combined it is the neutral element of `combine`. `padding` names other values for single
operands, as indices that are checked have to be valid and divisors of integers not 0. And a factor
that is `even` is not filled up at all. A factor that would need anything at the beginning, as of an
axis that is reversed, is not named.

`named` makes most factors from labels of the axes, and the functions after it from less.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from mycel._src.compiler.ir.dims import DimLike, is_one, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.primitive_properties import Factor, Filling, Place, Sizes

__all__ = [
    "ANYTHING",
    "Factor",
    "Place",
    "elementwise_factors",
    "factors_of",
    "leading_factors",
    "named",
    "other_axes_factors",
    "result_types",
    "starts_by_axis",
]

Label = Hashable | None
ANYTHING = "anything"
# How booleans are combined.
_BOOLEAN = {"sum": "any", "max": "any", "min": "all", "prod": "all"}


def factors_of(node: Node) -> Sequence[Factor]:
    """Return the factors of a node; none where its primitive names none."""
    rule = None if node.prim is None else node.prim.factors
    return () if rule is None else rule(node)


def result_types(node: Node) -> tuple[Any, ...]:
    """Return the types of a node's results, also where there is only one."""
    return node.type if isinstance(node.type, tuple) else (node.type,)


def named(
    node: Node,
    operands: Sequence[Sequence[Label]],
    results: Sequence[Sequence[Label]],
    combine: Mapping[Any, str] | None = None,
    sizes: Mapping[Any, Sizes] | None = None,
    padding: Mapping[Any, tuple[Filling, ...]] | None = None,
    even: Sequence[Label] = (),
) -> tuple[Factor, ...]:
    """Return a factor of `node` for each label, in the order of the axes of results and operands.

    `operands` and `results` have the labels of the axes of each; None, and the lack of a label
    behind the last, is an axis that is not divided. An axis of size 1 whose factor is larger is
    broadcast, and has no place. `combine`, `sizes` and `padding` have those of factors by label,
    `even` the labels of those that are. Booleans have "any" and "all" for the other words, and a
    factor that all results have has none.
    """
    shapes = [[i.type.shape for i in node.inputs], [t.shape for t in result_types(node)]]
    found: dict[Label, DimLike] = {}
    for labels, known in ((results, shapes[1]), (operands, shapes[0])):
        for axes, shape in zip(labels, known):
            for label, size in zip(axes, shape):
                if label is not None and (label not in found or is_one(found[label])):
                    found[label] = size
    boolean = all(t.dtype.kind == "b" for t in result_types(node))
    made = []
    for label, size in found.items():
        if is_one(size):
            continue
        inside, outside = (
            tuple([_place(axes, shape, label, size) for axes, shape in zip(labels, known)])
            for labels, known in zip((operands, results), shapes)
        )
        combined = (combine or {}).get(label, "") if None in outside else ""
        made.append(
            Factor(
                size,
                inside,
                outside,
                _BOOLEAN.get(combined, combined) if boolean else combined,
                (sizes or {}).get(label, ()),
                (padding or {}).get(label, ()),
                label in even,
            )
        )
    return tuple(made)


def _place(axes: Sequence[Label], shape: Sequence[DimLike], label: Label, size: DimLike) -> Place | None:
    for axis, (own, d) in enumerate(zip(axes, shape)):
        if own == label:
            return Place(axis) if same(d, size) or d != 1 else None
    return None


def elementwise_factors(node: Node) -> tuple[Factor, ...]:
    """Return the factors of operands that broadcast by NumPy's rule: the axes of the result.

    Where operands may stop the program, as divisors that are 0 do, all are filled up by 1.
    """
    rank = node.type.rank
    stops = node.prim is not None and node.prim.traps is not None and node.prim.traps(node)
    labels = [range(rank - i.type.rank, rank) for i in node.inputs]
    padding = {a: (1.0,) * len(node.inputs) for a in range(rank)} if stops else None
    return named(node, labels, [range(rank)], padding=padding)


def leading_factors(node: Node, count: int) -> tuple[Factor, ...]:
    """Return the factors of the first `count` axes, which all operands and results share."""
    return named(node, [range(count)] * len(node.inputs), [range(count)] * len(result_types(node)))


def other_axes_factors(node: Node, axes: Sequence[int]) -> tuple[Factor, ...]:
    """Return the factors of all axes of the first operand but `axes`.

    Results of its rank have the others at the same axes, those of a lower rank lack `axes`.
    """
    labels = [None if a in axes else a for a in range(node.inputs[0].type.rank)]
    kept = [a for a in labels if a is not None]
    outs = [labels if t.rank == len(labels) else kept for t in result_types(node)]
    return named(node, [labels], outs)


def starts_by_axis(node: Node, starts: Sequence[Node | None], operand: int | None = None) -> dict[int, Node]:
    """Return where a part of a node begins, by the axes of its first result, or of an operand.

    `starts` has the position for each factor of the node, None where it is not divided; `operand`
    is the number of an operand, None for the result.
    """
    found = {}
    for factor, start in zip(factors_of(node), starts):
        place = factor.results[0] if operand is None else factor.operands[operand]
        if start is not None and place is not None:
            found[place.axis] = start
    return found
