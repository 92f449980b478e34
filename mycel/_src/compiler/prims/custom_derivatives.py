"""Derivatives defined by the user's program, and calls that keep values for their derivative.

    custom(*values, *operands; count, backward, rule)

returns its `count` values with another derivative. Whatever they were computed from, their
cotangents become cotangents of the operands: the graph ``backward(*operands, *values,
*cotangents)`` computes one for each operand in `wanted`, from the cotangents of the values of
differentiable type. `rule` is the program's own function. Where it could not become a graph,
`backward` is None and ``rule.refusal`` says why; then it can be called only where the function's
variables have values, by the caller's `own` in `transforms.grad.vjp`.

    kept_call(*operands; graph, count, link)

calls a graph. Its first `count` outputs are the function's; the others are values that the
derivative, `link.backward(present)`, takes besides the operands, so that nothing is computed twice.
Both primitives give a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import Type, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive, Sample, get_item, register
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.shape import zeros_like
from mycel._src.foundation.bounded_caches import MANY, RememberedOf
from mycel._src.foundation.dtype import float64
from mycel._src.foundation.errors import Unsupported

__all__ = ["Rule", "all_nodes", "cotangents_of", "custom", "kept_call", "refusal"]


class Rule:
    """A derivative defined by the program.

    ``function(values, cotangents)`` returns a cotangent, or None, for each of the first operands.
    The rule of a hook leaves the values unchanged, so that tangents pass through. Where `fills`,
    missing cotangents are zeros; else a rule that is called with values gets None for them.
    """

    __slots__ = ("fills", "function", "is_hook", "refusal", "removed")
    lasting_name = "rule"

    def __init__(self, function: Callable[..., Any], is_hook: bool = False) -> None:
        self.function, self.is_hook = function, is_hook
        self.refusal = ""
        self.removed = False
        self.fills = True

    def __repr__(self) -> str:
        return "<a hook>" if self.is_hook else "<the program's own>"


def _infer(*types: Type, count: int, **params: Any) -> tuple[Type, ...]:
    return types[:count]


def cotangents_of(values: Sequence[Node], ct: Sequence[Node | None]) -> list[Node]:
    """Return the cotangents of the values of differentiable type; zeros where one is missing."""
    return [zeros_like(v) if c is None else c for v, c in zip(values, ct) if v.dtype.is_differentiable]


def _vjp(
    ct: Sequence[Node | None], out: Any, *inputs: Node, count: int, backward: Graph | None, wanted: Any, rule: Any
) -> list[Node | None]:
    if rule is not None and rule.removed:
        return [None] * count + list(ct) + [None] * (len(inputs) - 2 * count)
    if backward is None:
        raise Unsupported(f"a derivative that the program gives itself is needed as a graph: {rule.refusal}")
    given = cotangents_of(inputs[:count], ct)
    result: list[Node | None] = [None] * len(inputs)
    if backward.outputs:
        whole = control.call.node(*inputs[count:], *out, *given, graph=backward)
        for place, i in enumerate(wanted):
            result[count + i] = get_item(whole, place)
    return result


def _sample() -> dict[str, Any]:
    x, v, ct = (input_node(tensor_type((3,), float64), name) for name in ("x", "v", "ct"))
    backward = Graph((x, v, ct), (E.mul(E.mul(ct, x), v),), "backward")
    return {"count": 1, "backward": backward, "wanted": (0,), "rule": None}


custom: Primitive = register(
    Primitive(
        "custom",
        _infer,
        lambda *arrays, count, **params: tuple(arrays[:count]),
        _vjp,
        expand=lambda *inputs, count, **params: tuple([E.identity(i) for i in inputs[:count]]),
        samples=(Sample(((3,), (3,)), _sample(), differentiable=False),),
        dtypes=("float64",),
        doc="Values with a derivative that the program gives.",
    )
)


def refusal(graph: Graph) -> str:
    """Return why a graph cannot be differentiated as a graph; empty where it can.

    The reason is a rule in it that could not become a graph.
    """
    return _refusals.of(graph, lambda: _refusal(graph))


def _refusal(graph: Graph) -> str:
    found = ""
    for node in all_nodes(graph):
        if node.prim is custom and node.params["backward"] is None:
            found = node.params["rule"].refusal or "it has a derivative that is not compiled"
    return found


_refusals = RememberedOf[str]("graphs without derivatives", MANY)


def all_nodes(graph: Graph) -> Iterator[Node]:
    """Go through the nodes of a graph and of the graphs in it, each graph once."""
    seen: set[Graph] = set()
    stack = [graph]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        for node in top.nodes:
            yield node
            stack.extend(v for v in node.params.values() if isinstance(v, Graph))


# Calls that keep what their derivative needs.


def _kept_infer(*types: Type, graph: Graph, **params: Any) -> tuple[Type, ...]:
    return control.results_of_call(graph, types)


def _kept_vjp(ct: Sequence[Node | None], out: Any, *operands: Node, graph: Graph, count: int, link: Any) -> Any:
    if any(c is not None for c in ct[count:]):
        assert control.call.vjp is not None
        return control.call.vjp(ct, out, *operands, graph=graph)
    present = tuple([c is not None for c in ct[:count]])
    backward, wanted = link.backward(present)
    result: list[Node | None] = [None] * len(operands)
    if backward is not None:
        whole = control.call.node(
            *operands, *[out[i] for i in link.places], *[c for c in ct[:count] if c is not None], graph=backward
        )
        for place, i in enumerate(wanted):
            result[i] = get_item(whole, place)
    return result


kept_call: Primitive = register(
    Primitive(
        "kept_call",
        _kept_infer,
        lambda *arrays, graph, **params: control.run_graph(graph, arrays),
        _kept_vjp,
        expand=lambda *operands, graph, **params: control.inline(
            control.graph_for_call(graph, [o.type for o in operands]), operands
        ),
        samples=(Sample(((3,), (3,)), {"graph": control._TRUE, "count": 1, "link": None}, differentiable=False),),
        dtypes=("float64",),
        doc="The outputs of a graph, with what its derivative needs.",
    )
)
