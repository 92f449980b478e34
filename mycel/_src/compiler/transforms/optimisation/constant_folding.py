"""Constant folding: nodes that depend on constants alone are computed during compilation.

The primitives' references compute them. A constant here is a literal, or a literal broadcast to at
most `LIMIT` elements; a result of more than `LIMIT` elements is not computed, nor is one from more
than `INPUT_LIMIT`. A literal whose elements all have the same bytes becomes a broadcast scalar, so
that it takes no memory and the rules for scalars apply. `broadcast_to` is therefore never computed
itself. Effects, random numbers, collectives, control flow and nodes that depend on a symbolic size
stay as they are.

A folded constant equals the result for the same numbers as arguments, up to the rounding of the
result. NumPy sums a long float32 column with an error that grows with its length, which engines do
not; so sums, products and element-wise functions are computed in float64 (sums of float64 in the
widest type there is) and rounded once. Sums written in place round each time in 16 bits, and are
left to the engine. A primitive's `rounding` says which case it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, Literal, Primitive, Rounding
from mycel._src.compiler.prims.control_flow.recursion import recur
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES
from mycel._src.compiler.prims.elementwise import to_odd
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.graph_rewriting import Visit, holds_graphs, rewrite, sizes_in
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import IndexRangeError, VerifyError

__all__ = ["INPUT_LIMIT", "LIMIT", "fold_constants"]

LIMIT = 4096
INPUT_LIMIT = 1 << 20
Array = np.ndarray[Any, Any]


def fold_constants(graph: Graph) -> Graph:
    """Return `graph` with nodes that depend on constants alone replaced by their values.

    Returns the graph itself where there are none.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> from mycel._src.compiler.prims.base import constant
    >>> x = input_node(tensor_type((2,), float32), "x")
    >>> folded = fold_constants(Graph([x], [x + E.exp(constant(0.0, float32))]))
    >>> folded.outputs[0].inputs[1].value
    array(1., dtype=float32)
    """
    return rewrite(graph, _start)


def _start(graph: Graph) -> Visit:
    tuples: dict[Node, tuple[Array, ...]] = {}

    def visit(old: Node, new: Node) -> Node:
        if new.prim is CONSTANT:
            return _scalar_broadcast(new)
        if new.prim is GET_ITEM:
            values = tuples.get(new.inputs[0])
            return new if values is None else literal(values[new.params["index"]], new)
        arrays = _arguments(new)
        if arrays is None:
            return new
        try:
            result = _compute(new, arrays)
        except IndexRangeError:
            # The program says so if it comes to that.
            return new
        if isinstance(result, tuple):
            tuples[new] = result
            return new
        return literal(result, new)

    return visit


def literal(array: Array, node: Node) -> Node:
    """Return the constant that replaces `node`: a broadcast scalar where all elements are equal."""
    return _scalar_broadcast(Node(CONSTANT, (), {"value": Literal(array)}, node.type, node.where))


def _scalar_broadcast(node: Node) -> Node:
    array = node.value
    if array.ndim == 0 or not _is_uniform(array):
        return node
    first = np.asarray(array.reshape(-1)[0])
    scalar = Node(CONSTANT, (), {"value": Literal(first)}, node.type.with_shape(()), node.where)
    return Node(S.BROADCAST_TO, (scalar,), {"shape": node.shape}, node.type, node.where)


def _is_uniform(array: Array) -> bool:
    if not array.size:
        return False
    raw = array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize)
    return bool((raw[:64] == raw[0]).all()) and bool((raw == raw[0]).all())


def known_value(node: Node) -> Array | None:
    """Return the array of a literal, or of one broadcast to at most `LIMIT` elements; else None."""
    if node.prim is CONSTANT:
        return node.value
    if node.prim is S.BROADCAST_TO and node.inputs[0].prim is CONSTANT and _is_small(node.type):
        return np.broadcast_to(node.inputs[0].value, node.shape)
    return None


_LEFT = (random_bits, recur, S.BROADCAST_TO, *COLLECTIVES)


def _is_small(type: Any) -> bool:
    if isinstance(type, tuple):
        return all(map(_is_small, type))
    return isinstance(type, TensorType) and type.is_static and type.size <= LIMIT


def _arguments(node: Node) -> list[Array] | None:
    """Return the arrays of a node's operands; None where the node is not to be computed."""
    prim = node.prim
    assert prim is not None
    arrays = []
    for i in node.inputs:
        array = known_value(i)
        if array is None:
            return None
        arrays.append(array)
    if not arrays or prim.reference is None or prim.effect or prim in _LEFT:
        return None
    if prim.rounding is Rounding.IN_PLACE and node.type.dtype.is_floating and node.type.dtype.itemsize == 2:
        return None
    if not _is_small(node.type) or sum(a.size for a in arrays) > INPUT_LIMIT:
        return None
    if any(sizes_in(v) or holds_graphs(v) for v in node.params.values()):
        return None
    return arrays


def _compute(node: Node, arrays: list[Array]) -> Any:
    prim = node.prim
    assert prim is not None and prim.reference is not None
    with np.errstate(all="ignore"):
        result = prim.reference(*[_widened(prim, a) for a in arrays], **node.params)
    if isinstance(node.type, tuple):
        return tuple([_checked(prim.name, r, t) for r, t in zip(result, node.type)])
    return _checked(prim.name, result, node.type)


def _widened(prim: Primitive, array: Array) -> Array:
    """Return an operand in the type in which its operation is computed."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if prim.rounding not in (Rounding.ONCE, Rounding.SUM):
        return array
    if kind == "f" and size == 8:
        return array.astype(np.longdouble) if prim.rounding is Rounding.SUM else array
    if array.dtype == np.complex64:
        return array.astype(np.complex128)
    return array.astype(np.float64) if from_any(array.dtype).is_floating else array


def _rounded(array: Array, wanted: Any) -> Array:
    """Return a result in the type that the node has, rounded once."""
    if array.dtype == wanted or array.dtype.kind not in "fc" or from_any(wanted).kind not in "fc":
        return array
    with np.errstate(all="ignore"):
        # 16-bit floats of ml_dtypes are made by way of float32, of which the last bit may not be a
        # rounded one.
        narrow = wanted.itemsize == 2 and array.dtype == np.float64
        return (to_odd(array) if narrow else array).astype(wanted)


def _checked(name: str, result: Any, type: TensorType) -> Array:
    array = _rounded(np.asarray(result, order="C"), type.dtype.numpy)
    if array.dtype != type.dtype.numpy or array.shape != type.shape:
        raise VerifyError(f"{name}: infer promises {type}, the reference gave {array.dtype}{list(array.shape)}")
    return array
