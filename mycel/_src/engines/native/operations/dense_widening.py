"""Computes 16-bit products and convolutions in float32 where the processor lacks instructions.

On such processors the dense library would convert one element after another. So such a node is
replaced by one of float32 between casts. The casts are fused with the kernels around them: operands
are widened where they are computed, sums are float32 in any case, and results are rounded once,
where they are first used.
"""

from __future__ import annotations

from mycel._src.compiler.ir.graph import Node, at
from mycel._src.compiler.prims import elementwise as E
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation.dtype import DType, bfloat16, float16, float32

__all__ = ["is_native", "widened"]

_FEATURES = {float16: ("avx512fp16", "amx-fp16"), bfloat16: ("avx512bf16", "amx-bf16")}


def is_native(dtype: DType) -> bool:
    """Return whether this processor has instructions to multiply elements of a type.

    Families other than x86-64 are assumed to have them.
    """
    if dtype not in _FEATURES or not target().is_family("x86_64"):
        return True
    return not target().feature_set.isdisjoint(_FEATURES[dtype])


def widened(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return a product or convolution of 16-bit floats, computed in float32."""
    with at(node.where):
        wide = node.prim(*[E.cast(i, dtype=float32) for i in inputs], **node.params)  # type: ignore[misc]
        return E.cast(wide, dtype=node.dtype)
