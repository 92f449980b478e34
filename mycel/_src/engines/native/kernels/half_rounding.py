"""Rounding of 16-bit floats after every operation, so that fused operations give the same results.

Values of 16-bit types are float32 in registers. A result that may not be a number of the type is
rounded as it would be on its way through memory: a sum is, the larger of two values is not.
Intermediate values inside one operation, such as the terms of a product of matrices or the running
total of a sum, stay float32 and are rounded at the end; so are those that the library computes in
float32 between casts.

With ``set_context(wide_intermediates=True)`` or MYCEL_WIDE_INTERMEDIATES=1 values are rounded only
where they are stored; then results depend on which operations are fused.
"""

from __future__ import annotations

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import REGISTRY
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import Rounding
from mycel._src.engines.native.kernels.loop_nest import Builder, Expr
from mycel._src.foundation.dtype import DType, bfloat16, float16
from mycel._src.foundation.settings import config

__all__ = ["is_narrow", "is_rounded", "rounded", "setting"]

# Expressions have the names of the primitives that they are made of.
_EXACT = frozenset(p.name for p in REGISTRY.values() if p.rounding is Rounding.EXACT)
_ROUNDS = frozenset(("round_16", "round_sum_16"))
_ARITHMETIC = (E.add, E.sub, E.mul, E.div, E.sqrt, R.reduce_sum)


def is_narrow(dtype: DType) -> bool:
    """Return whether values of a type are computed in a wider one."""
    return dtype is float16 or dtype is bfloat16


def setting() -> str:
    """Return the setting as a part of the keys of stored programs."""
    return "wide intermediates" if config._context["wide_intermediates"] else "rounded"


def rounded(builder: Builder, node: Node, value: Expr) -> Expr:
    """Return the value of a node, rounded to a number of its type."""
    if not is_narrow(value.dtype) or config._context["wide_intermediates"] or is_rounded(value):
        return value
    plain = node.prim in _ARITHMETIC
    return builder.op("round_sum_16" if plain else "round_16", value.dtype, value)


def is_rounded(value: Expr) -> bool:
    """Return whether the value of an expression is certainly a number of its type."""
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
