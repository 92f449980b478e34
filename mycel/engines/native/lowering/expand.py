"""Expansion of the primitives that the native engine has no code for, and inlining of calls."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Optional

from mycel.engines.native.kernels import emit
from mycel.engines.native.lowering.attention_rules import ATTENTION, has_kernel, widened_attention
from mycel.engines.native.lowering.dense_rules import is_dense
from mycel.engines.native.lowering.group_rules import FULL_RULES, GROUP_RULES
from mycel.engines.native.lowering.step_rules import STEP_RULES
from mycel.engines.native.lowering.view_rules import VIEWS
from mycel.engines.native.lowering.widening import is_native, widened
from mycel.ir.dims import Dim
from mycel.ir.graph import Graph, Node, at, substitute, toposort
from mycel.prims.base import CONSTANT, GET_ITEM
from mycel.prims.control import call
from mycel.prims.conv import conv, conv_grad_input, conv_grad_weight
from mycel.prims.fourier import fourier_from_half, fourier_half
from mycel.prims.index import checked
from mycel.prims.shape import SIZE, iota

__all__ = ["expand", "is_claimed"]

# Transforms of real numbers are opened as such with the complex ones, in `complex_pairs`.
_OTHERS = (CONSTANT, iota, GET_ITEM, checked, fourier_half, fourier_from_half)


def is_claimed(node: Node) -> bool:
    """Return whether the native engine has code for a node."""
    name, prim = node.op, node.prim
    if prim in (conv, conv_grad_input, conv_grad_weight):
        return is_dense(node) or (prim is conv and node.params["groups"] == 1 and bool(node.type.size))
    if prim in ATTENTION:
        return has_kernel(node)
    if prim is SIZE:
        return isinstance(node.params["dim"], Dim)
    return (
        prim in _OTHERS
        or emit.is_cast(node)
        or name in VIEWS
        or name in FULL_RULES
        or name in GROUP_RULES
        or name in STEP_RULES
        or emit.is_supported(name)
    )


def expand(graph: Graph) -> Graph:
    """Return the graph with each unclaimed primitive replaced by its definition, if it has one."""
    image: dict[Node, Node] = {}
    outs: dict[Node, tuple[Node, ...]] = {}
    given = set(graph.inputs)
    # What lies behind the inputs of an opened primitive is opened already.
    for node in toposort((*graph.inputs, *graph.outputs), stop=given):
        if node.prim is None or node in given:
            image[node] = node
            continue
        inputs = tuple(image[i] if not isinstance(i.type, tuple) or i in image else i for i in node.inputs)
        if node.prim is GET_ITEM and node.inputs[0] in outs:
            image[node] = outs[node.inputs[0]][node.params["index"]]
            continue
        if is_dense(node) and not is_native(node.dtype):
            image[node] = widened(node, inputs)
            continue
        if node.prim in ATTENTION and node.inputs[0].dtype.itemsize == 2:
            outs[node], image[node] = expand(Graph(inputs, widened_attention(node, inputs))).outputs, node
            continue
        opened = None if node.prim.expand is None or is_claimed(node) and not node.prim.opens else _open(node, inputs)
        if opened is not None:
            if isinstance(node.type, tuple):
                outs[node] = opened
                image[node] = node
            else:
                image[node] = opened[0]
            continue
        if node.prim is call:
            inner = expand(node.params["graph"])
            # Nodes of graphs that were made without positions, as those of eager operations, get
            # the call's.
            with nullcontext() if node.where is None else at(node.where):
                opened = tuple(substitute(inner.outputs, dict(zip(inner.inputs, inputs))))
            if isinstance(node.type, tuple):
                outs[node] = opened
                image[node] = node
            else:
                image[node] = opened[0]
            continue
        params = node.params
        if any(isinstance(v, Graph) for v in params.values()):
            params = {k: expand(v) if isinstance(v, Graph) else v for k, v in params.items()}
        same = params is node.params and all(a is b for a, b in zip(inputs, node.inputs))
        image[node] = node if same else Node(node.prim, inputs, params, node.type, node.where)
    return Graph(graph.inputs, [image[o] for o in graph.outputs], graph.name)


def _open(node: Node, inputs: tuple[Node, ...]) -> Optional[tuple[Node, ...]]:
    """Return the outputs of a node by its definition; None where it has none."""
    with at(node.where):
        result = node.prim.expand(*inputs, **node.params)  # type: ignore[union-attr,misc]
    if result is None:
        return None
    results = result if isinstance(result, tuple) else (result,)
    return expand(Graph(inputs, results)).outputs
