"""Rematerialisation: regions whose values the backward pass recomputes instead of keeping them.

    recompute(*operands; graph, fresh)      the outputs of a graph
    after(x, token)                         x, available only when `token` is

The derivative of `recompute` is a graph of the operands and the cotangents that computes the values
of `graph` again. The operands in `fresh` enter it through `after` a cotangent. So the recomputed
values are not the same expressions as in the forward graph, which would be kept instead, and they
are not computed before the backward pass gets there. Gradients of loops inside keep about as many
states as the square root of the number of iterations (`while_gradient`). After Chen, Xu, Zhang and
Guestrin, "Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType, Type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, get_item, register
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.factors import named
from mycel._src.foundation.bounded_caches import MANY, RememberedOf

__all__ = ["after", "recompute", "with_root_tapes"]


def _after_infer(x: TensorType, token: TensorType) -> TensorType:
    if token.shape != ():
        raise TypeError(f"after: the token must be one element, not {token}")
    return x


def _after_batch(size: DimLike, values: Sequence[Node], axes: Sequence[int | None]) -> Any:
    x, token = values
    if axes[1] is not None:
        token = S.reshape(S.slice_axis(token, 0, 0, 1), ())
    return after(x, token), axes[0]


after: Primitive = register(
    Primitive(
        "after",
        _after_infer,
        lambda x, token: x,
        lambda ct, out, x, token: (ct, None),
        _after_batch,
        expand=lambda x, token: E.identity(x),
        samples=(Sample(((3,), ())),),
        dtypes=("float64", "float32", "int32", "bool"),
        rounding=Rounding.EXACT,
        factors=lambda node: named(node, [range(node.type.rank), ()], [range(node.type.rank)]),
        doc="The first operand, available only when the second is.",
    )
)


def _infer(*operands: Type, graph: Graph, fresh: tuple[int, ...]) -> tuple[Type, ...]:
    if graph.input_types != operands:
        raise TypeError(f"recompute: {graph.name} takes {graph.input_types}, the operands are {operands}")
    return graph.output_types


def with_root_tapes(graph: Graph) -> Graph:
    """Return a graph in which gradients of loops keep few states."""
    image: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple([image.get(i, i) for i in node.inputs])
        params = {k: with_root_tapes(v) if isinstance(v, Graph) else v for k, v in node.params.items()}
        if node.prim is while_grad:
            params["keep"] = "root"
        changed = any(params[k] is not v for k, v in node.params.items())
        if changed or any(a is not b for a, b in zip(inputs, node.inputs)):
            image[node] = Node(node.prim, inputs, params, node.type, node.where)
    return Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name) if image else graph


def _element(x: Node) -> Node:
    """Return one element of a tensor, to use as a token."""
    rank = len(x.shape)
    return S.reshape(S.slice_(x, (0,) * rank, (1,) * rank), ()) if rank else x


_known = RememberedOf[dict[Any, tuple[Graph, list[int]]]]("derivatives of regions", MANY)


def _backward(graph: Graph, present: tuple[bool, ...]) -> tuple[Graph, list[int]]:
    """Return the derivative of a region, and the positions of the inputs it has cotangents for.

    `present` says which outputs have cotangents. The result is remembered as long as the graph
    lives.
    """
    found = _known.of(graph, dict)
    if present not in found:
        seeds = [input_node(o.type, "cotangent") if p else None for o, p in zip(graph.outputs, present)]
        grads = control.inner_gradient(graph, seeds)
        inputs = (*graph.inputs, *[s for s in seeds if s is not None])
        outputs = [g for g in grads if g is not None]
        wanted = [i for i, g in enumerate(grads) if g is not None]
        found[present] = with_root_tapes(Graph(inputs, outputs, f"grad_{graph.name}")), wanted
    return found[present]


def _vjp(
    ct: Sequence[Node | None], out: Any, *operands: Node, graph: Graph, fresh: tuple[int, ...]
) -> list[Node | None]:
    result: list[Node | None] = [None] * len(operands)
    given = [c for c in ct if c is not None]
    backward, wanted = _backward(graph, tuple([c is not None for c in ct]))
    if not wanted:
        return result
    sized = [c for c in given if c.type.size != 0]
    token = _element(sized[0]) if sized else None
    late = [after(x, token) if token is not None and i in fresh else x for i, x in enumerate(operands)]
    whole = control.call.node(*late, *given, graph=backward)
    for position, i in enumerate(wanted):
        result[i] = get_item(whole, position)
    return result


recompute: Primitive = register(
    Primitive(
        "recompute",
        _infer,
        lambda *arrays, graph, fresh: control.run_graph(graph, arrays),
        _vjp,
        expand=lambda *operands, graph, fresh: control.inline(graph, operands),
        samples=(Sample(((3,), (3,)), {"graph": control._TRUE, "fresh": (0,)}),),
        dtypes=("float64",),
        doc="The outputs of a graph, whose derivative computes the graph's values anew.",
    )
)
