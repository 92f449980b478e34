"""Claims of requantisation: the nodes computed by `vector_requantisation` instead of expanded."""

from __future__ import annotations

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.neural.quantisation import requantize
from mycel._src.engines.native.kernels.dot_product_instructions import FAMILIES
from mycel._src.engines.native.kernels.loop_nest import Builder, Expr
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.operations.requantisation.vector_requantisation import HIGH, WHOLE
from mycel._src.foundation import dtype as D

__all__ = ["is_rescaled", "rescaled", "settled"]

# Shifts with which the zero point fits beside the upper half of a product, with a bit to spare.
LOWEST, HIGHEST = -23, -2
MOST_ZERO = 128


def is_rescaled(node: Node) -> bool:
    """Return whether kernels compute a node, levels of another scale, without its definition."""
    if node.prim is not requantize or target().scalar:
        return False
    family = any(map(target().is_family, FAMILIES))
    return family and node.params["rounding"] == "single" and _operation(node) is not None


def _operation(node: Node) -> str | None:
    """Return the operation of kernels by what is known of the shifts; None where none will do."""
    _, multiplier, shift = node.inputs
    if not (multiplier.is_constant and shift.is_constant and multiplier.type.size and shift.type.size):
        return None
    shifts = settled(node).value
    p = node.params
    if abs(p["zero"]) <= MOST_ZERO and shifts.min() >= LOWEST and shifts.max() <= HIGHEST:
        return HIGH
    # A sum with the zero point has to fit in 32 bits.
    return WHOLE if shifts.min() >= -31 and shifts.max() <= (0 if not p["zero"] else -1) else None


def settled(node: Node) -> Node:
    """Return the shifts of a node, those of multipliers that are 0 being any that occur."""
    _, multiplier, shift = node.inputs
    used = np.broadcast_to(multiplier.value, np.broadcast_shapes(multiplier.shape, shift.shape)) != 0
    shifts = np.broadcast_to(shift.value, used.shape)
    if used.all():
        return shift
    least = int(shifts[used].min()) if used.any() else HIGHEST
    return constant(np.where(used, shifts, least).astype(np.int32))


def rescaled(b: Builder, node: Node, total: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """Return the expression of a node for which `is_rescaled` holds.

    `b` makes it of the expressions of its operands, `total`, `multiplier` and `shift`, the shifts
    being those that are `settled`.
    """
    operation, p = _operation(node), node.params
    assert operation is not None
    ends = [b.const(p[name], D.int32) for name in ("zero", "low", "high")]
    return b.op(operation, node.dtype, total, multiplier, shift, *ends)
