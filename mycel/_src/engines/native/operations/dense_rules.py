"""Claims of dense work: the matrix products, convolutions and gradients with steps of their own."""

from __future__ import annotations

from mycel._src.compiler.ir.dims import is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.llvm.target import host, target
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.foundation import dtype as D

__all__ = ["DENSE", "has_library", "is_dense"]

DENSE = frozenset(("matmul", "conv", "conv_grad_input", "conv_grad_weight"))


def has_library() -> bool:
    """Return whether code may call the dense library: it is there, and the host runs the code."""
    return target() is host() and dense.available()


def is_dense(node: Node) -> bool:
    """Return whether a node goes to the dense library, or is a product of our own tiles."""
    if node.op not in DENSE or (node.op == "matmul" and _is_vector_product(node)):
        return False
    if not node.type.size or not all(i.type.size for i in node.inputs):
        return False
    if node.op == "matmul" and node.type.dtype is D.float64:
        return True
    return has_library() and node.type.dtype in (D.float32, D.bfloat16, D.float16) and _is_countable(node)


def _is_countable(node: Node) -> bool:
    """Return whether no known size or parameter of a window is too large for the library."""
    shapes = (node.type.shape, *[i.type.shape for i in node.inputs])
    numbers = [node.params[k] for k in ("strides", "dilation") if k in node.params]
    numbers += node.params.get("padding", ())
    return all(d <= dense.MOST_SIZE for sizes in (*shapes, *numbers) for d in sizes if type(d) is int)


def _is_vector_product(node: Node) -> bool:
    """Return whether a product has a vector as an operand.

    Each element is then used once, so memory bandwidth limits it and a kernel is as fast as the
    library.
    """
    a, b = (i.type.shape for i in node.inputs)
    return is_one(a[-2]) or is_one(a[-1]) or is_one(b[-1])
