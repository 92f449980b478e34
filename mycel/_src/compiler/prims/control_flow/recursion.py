"""Recursive functions as primitives.

    recursion(*operands; graph, label)     the outputs of `graph` for the operands
    recur(*operands; label, types)         a recursive call of `label`, with outputs of these types

Both give a tuple. A `recur` calls the nearest `recursion` of its label whose graph encloses it. A
label is bound where the program's text would bind a name, so that graphs stay trees: a mutually
recursive function is a `recursion` inside the graph of another, which both may call. The derivative
of a recursion is a recursion under a label of its own; it takes the operands and a cotangent for
each differentiable output and gives a cotangent for each differentiable operand. It recomputes the
values of the function that it needs, through `bind`, which puts the whole `recursion` in place of a
`recur` that has left its graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import Type, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import SERVICES, Primitive, Sample, get_item, register
from mycel._src.compiler.prims.control_flow.control import cond
from mycel._src.compiler.prims.shape import zeros_like
from mycel._src.foundation.dtype import float64, int64

__all__ = ["bind", "derived_label", "differentiable", "recur", "recursion"]


def bind(graph: Graph, label: str, definition: Graph) -> Graph:
    """Return `graph` with a whole `recursion` in place of each unbound `recur` of a label.

    `definition` is the graph of the recursion.
    """
    return _Binder(label, definition).graph(graph)


class _Binder:
    def __init__(self, label: str, definition: Graph) -> None:
        self.label, self.definition = label, definition
        self.done: dict[Graph, Graph] = {}

    def graph(self, graph: Graph) -> Graph:
        if graph not in self.done:
            self.done[graph] = self._graph(graph)
        return self.done[graph]

    def _graph(self, graph: Graph) -> Graph:
        image: dict[Node, Node] = {}
        for node in graph.nodes:
            inputs = tuple([image.get(i, i) for i in node.inputs])
            prim, params = node.prim, node.params
            if prim is recur and params["label"] == self.label:
                prim, params = recursion, {"graph": self.definition, "label": self.label}
            elif not (prim is recursion and params["label"] == self.label):
                params = {k: self.value(v) for k, v in params.items()}
            if (
                prim is not node.prim
                or any(a is not b for a, b in zip(inputs, node.inputs))
                or any(params[k] is not node.params[k] for k in params)
            ):
                image[node] = Node(prim, inputs, params, node.type, node.where)
        return Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name) if image else graph

    def value(self, value: Any) -> Any:
        if isinstance(value, Graph):
            return self.graph(value)
        if type(value) is tuple and any(isinstance(v, Graph) for v in value):
            return tuple([self.value(v) for v in value])
        return value


def differentiable(types: Sequence[Any]) -> list[int]:
    """Return the positions of the types that have derivatives."""
    return [i for i, t in enumerate(types) if t.dtype.is_inexact]


def derived_label(kind: str, label: str) -> str:
    """Return the label of a derivative of a recursion.

    `kind` tells derivatives apart, `label` is that of the recursion.
    """
    return f"{kind} {label}"


# recursion


def _infer(*operands: Type, graph: Graph, label: str) -> tuple[Type, ...]:
    if graph.input_types != tuple(operands):
        raise TypeError(f"recursion: {graph.name} takes {graph.input_types}, the operands are {tuple(operands)}")
    return graph.output_types


def _reference(*operands: Any, graph: Graph, label: str) -> tuple[Any, ...]:
    return SERVICES.evaluate(bind(graph, label, graph), operands)


def _seeds(ct: Sequence[Node | None], types: Sequence[Any], like: Any) -> list[Node]:
    """Return a cotangent for each differentiable output."""
    return [zeros_like(like(i)) if (given := ct[i]) is None else given for i in differentiable(types)]


def _spread(whole: Node, operands: Sequence[Node]) -> tuple[Node | None, ...]:
    """Return the outputs of a derivative, each as the cotangent of its operand."""
    result: list[Node | None] = [None] * len(operands)
    for place, i in enumerate(differentiable([o.type for o in operands])):
        result[i] = get_item(whole, place)
    return tuple(result)


def _vjp(ct: Sequence[Node | None], out: Any, *operands: Node, graph: Graph, label: str) -> Any:
    active = differentiable(graph.input_types)
    if not active:
        return (None,) * len(operands)
    given = [input_node(graph.output_types[i], "cotangent") for i in differentiable(graph.output_types)]
    pairs = zip([graph.outputs[i] for i in differentiable(graph.output_types)], given)
    outputs, seeds = zip(*pairs)
    found = SERVICES.differentiate(list(outputs), list(seeds), [graph.inputs[i] for i in active])
    results = [zeros_like(graph.inputs[i]) if g is None else g for i, g in zip(active, found)]
    backward = bind(Graph((*graph.inputs, *given), results, f"grad_{graph.name}"), label, graph)
    whole = recursion.node(
        *operands, *_seeds(ct, graph.output_types, lambda i: out[i]), graph=backward, label=derived_label("grad", label)
    )
    return _spread(whole, operands)


def _sample() -> dict[str, Any]:
    """Return the parameters of a recursion for tests: x ** n as x * x ** (n - 1)."""
    n, x = input_node(tensor_type((), int64), "n"), input_node(tensor_type((3,), float64), "x")
    stop = [input_node(t, "operand") for t in (n.type, x.type)]
    go = [input_node(t, "operand") for t in (n.type, x.type)]
    again = get_item(recur.node(E.sub(go[0], 1), go[1], label="power", types=(x.type,)), 0)
    branches = {"true": Graph(go, [E.mul(go[1], again)], "true"), "false": Graph(stop, [E.add(stop[1], 1.5)], "false")}
    return {"graph": Graph((n, x), [get_item(cond.node(E.gt(n, 0), n, x, **branches), 0)], "power"), "label": "power"}


def _recur_infer(*operands: Type, label: str, types: tuple[Type, ...]) -> tuple[Type, ...]:
    return types


def _recur_reference(*operands: Any, label: str, types: Any) -> Any:
    raise ValueError(f"recur: {label!r} is used outside of the recursion that it names")


def _recur_vjp(
    ct: Sequence[Node | None], out: Any, *operands: Node, label: str, types: tuple[Type, ...]
) -> tuple[Node | None, ...]:
    kinds = tuple([operands[i].type for i in differentiable([o.type for o in operands])])
    if not kinds:
        return (None,) * len(operands)
    seeds = _seeds(ct, types, lambda i: out[i])
    return _spread(recur.node(*operands, *seeds, label=derived_label("grad", label), types=kinds), operands)


recur: Primitive = register(
    Primitive(
        "recur",
        _recur_infer,
        _recur_reference,
        _recur_vjp,
        doc="The outputs, of the given types, of the recursion around it that has this label.",
    )
)

recursion: Primitive = register(
    Primitive(
        "recursion",
        _infer,
        _reference,
        _vjp,
        samples=tuple(Sample((np.array(n), (3,)), _sample(), dtypes=("*", "float64")) for n in (0, 3)),
        dtypes=("int64",),
        doc="The outputs of a graph of the operands, in which `recur` stands for the outputs of that graph for others.",
    )
)
