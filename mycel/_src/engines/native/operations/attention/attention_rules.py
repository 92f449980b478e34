"""Claims of attention: nodes with a kernel (`attention_steps`), and widening of 16-bit floats."""

from __future__ import annotations

from mycel._src.compiler.ir.dims import is_zero
from mycel._src.compiler.ir.graph import Node, at
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.neural.attention import attention, attention_grad
from mycel._src.foundation import dtype as D

__all__ = ["ATTENTION", "has_kernel", "widened_attention"]

ATTENTION = (attention, attention_grad)
# The most features of a head, for which a kernel has room.
MOST = 256
# The fewest queries for which lanes are full enough.
FEWEST = 12


def has_kernel(node: Node) -> bool:
    """Return whether an attention or its derivative has a kernel.

    With few queries most lanes would be empty, and products read keys and values once as well.
    """
    shift = 0 if node.prim is attention else 1
    q, k, v = (i.type for i in node.inputs[shift : shift + 3])
    return (
        all(type(d) is int and 0 < d <= MOST for d in (q.shape[-1], v.shape[-1]))
        and not (type(q.shape[-2]) is int and q.shape[-2] < FEWEST)
        and not any(is_zero(d) for t in (q, k, v) for d in t.shape)
        and q.dtype in (D.float32, D.float64)
    )


def widened_attention(node: Node, inputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the results of an attention of 16-bit floats, or of its derivative, computed in
    float32.
    """
    narrow = (D.float16, D.bfloat16)
    with at(node.where):
        wide = [E.cast(i, dtype=D.float32) if i.dtype in narrow else i for i in inputs]
        assert node.prim is not None
        results = node.prim.outputs(*wide, **node.params)
        return tuple(r if r.type is t else E.cast(r, dtype=t.dtype) for r, t in zip(results, node.type))
