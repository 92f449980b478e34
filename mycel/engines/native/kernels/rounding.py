"""Where 16-bit floats are rounded: after every operation, so that a program computes what its
operations compute one by one.

Values of 16-bit types are float32 in registers. What an operation cannot be sure to give exactly (a
sum is not a number of the type, the larger of two is) is rounded as it would be on its way through
memory. What one operation computes inside of itself, as the terms of a product of matrices or the
running total of a sum, is float32 as ever and rounded at the end, and so is what the library
computes in float32 between casts.

With ``set_context(wide_intermediates=True)`` or MYCEL_WIDE_INTERMEDIATES=1 values are rounded only
where they are stored: then their digits depend on what is computed together.
"""

from __future__ import annotations

from mycel.base import config
from mycel.base.dtype import DType, bfloat16, float16
from mycel.engines.native.kernels.nest import Builder, Expr
from mycel.ir.graph import Node
from mycel.prims import REGISTRY
from mycel.prims import elementwise as E
from mycel.prims import reduce as R
from mycel.prims.base import Rounding

__all__ = ["is_narrow", "is_rounded", "rounded", "setting"]

# Expressions have the names of the primitives that they are made of.
_EXACT = frozenset(p.name for p in REGISTRY.values() if p.rounding is Rounding.EXACT)
_ROUNDS = frozenset(("round_16", "round_sum_16"))
_ARITHMETIC = (E.add, E.sub, E.mul, E.div, E.sqrt, R.reduce_sum)


def is_narrow(dtype: DType) -> bool:
    """Return whether values of a type are computed in a wider one."""
    return dtype is float16 or dtype is bfloat16


def setting() -> str:
    """Return what is entered in the keys of kept programs."""
    return "wide intermediates" if config._context["wide_intermediates"] else "rounded"


def rounded(builder: Builder, node: Node, value: Expr) -> Expr:
    """Return the value of a node as a number of its type."""
    if not is_narrow(value.dtype) or config._context["wide_intermediates"] or is_rounded(value):
        return value
    plain = node.prim in _ARITHMETIC
    return builder.op("round_sum_16" if plain else "round_16", value.dtype, value)


def is_rounded(value: Expr) -> bool:
    """Return whether what code computes for an expression is a number of its type."""
    pending, seen = [value], set()
    while pending:
        x = pending.pop()
        if id(x) in seen or not is_narrow(x.dtype) or x.kind in ("load", "const", "index"):
            continue
        seen.add(id(x))
        if x.kind == "reduced" and x.data.kind in ("max", "min"):
            pending += x.args
        elif x.kind == "op" and (x.data in _EXACT or x.data == "cast" and x.args[0].dtype is x.dtype):
            pending += x.args
        elif x.kind != "op" or x.data not in _ROUNDS and x.data != "cast":
            return False
    return True
