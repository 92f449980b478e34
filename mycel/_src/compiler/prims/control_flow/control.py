"""Control flow (`cond`, `while_loop`, `call`) as primitives that hold graphs.

    cond(pred, *operands; true, false)              the outputs of one of two graphs of the operands
    while_loop(*operands; test, body, carried)      the final values of the first `carried` operands
    call(*operands; graph)                          the outputs of a graph

All three give a tuple. A loop replaces the carried values by the outputs of `body` while `test`
holds; the other operands stay the same in every iteration. The graph of a `call` may have symbolic
sizes, which the operands' types bind. The graphs are closed: what they use from outside is among
the operands. The derivative of `cond` is a `cond` of the derivatives of its branches, which
recompute the values that they need; that of `while_loop` is in `while_gradient`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType, Type, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import SERVICES, Primitive, Sample, get_item, register
from mycel._src.compiler.prims.control_flow.while_gradient import loop_vjp
from mycel._src.compiler.prims.shape import zeros_like
from mycel._src.foundation.bounded_caches import MANY, RememberedOf
from mycel._src.foundation.dtype import bool_, float64, int64

__all__ = ["call", "cond", "graph_for_call", "inline", "results_of_call", "sizes_in_call", "while_loop"]


def inline(graph: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the outputs of a graph with operands in place of its inputs."""
    return tuple(substitute(graph.outputs, dict(zip(graph.inputs, operands))))


def _check_operands(name: str, graph: Graph, types: Sequence[Type]) -> None:
    if graph.input_types != tuple(types):
        raise TypeError(f"{name}: {graph.name} takes {graph.input_types}, the operands are {tuple(types)}")


def run_graph(graph: Graph, arrays: Sequence[Any]) -> tuple[Any, ...]:
    return SERVICES.evaluate(graph, arrays)


def inner_gradient(graph: Graph, given: Sequence[Node | None]) -> list[Node | None]:
    """Return the cotangents of a graph's inputs, given those of its outputs."""
    pairs = [(o, c) for o, c in zip(graph.outputs, given) if c is not None]
    return SERVICES.differentiate([o for o, _ in pairs], [c for _, c in pairs], graph.inputs)


# cond


def _cond_infer(pred: TensorType, *operands: Type, true: Graph, false: Graph) -> tuple[Type, ...]:
    if pred.dtype is not bool_ or pred.shape != ():
        raise TypeError(f"cond: the condition must be one boolean, not {pred}")
    _check_operands("cond", true, operands)
    _check_operands("cond", false, operands)
    if true.output_types != false.output_types:
        raise TypeError(f"cond: the branches give {true.output_types} and {false.output_types}")
    return true.output_types


def _cond_vjp(ct: Sequence[Node | None], out: Any, pred: Node, *operands: Node, true: Graph, false: Graph) -> Any:
    seeds = [None if c is None else input_node(c.type, "cotangent") for c in ct]
    present = [s for s in seeds if s is not None]
    both = [inner_gradient(g, seeds) for g in (true, false)]
    wanted = [i for i, pair in enumerate(zip(*both)) if any(g is not None for g in pair)]
    if not wanted:
        return (None,) * (1 + len(operands))
    branches = []
    for graph, grads in zip((true, false), both):
        results = []
        for i in wanted:
            g = grads[i]
            results.append(zeros_like(graph.inputs[i]) if g is None else g)
        branches.append(Graph((*graph.inputs, *present), results, f"grad_{graph.name}"))
    given = [c for c in ct if c is not None]
    whole = cond.node(pred, *operands, *given, true=branches[0], false=branches[1])
    result: list[Node | None] = [None] * (1 + len(operands))
    for position, i in enumerate(wanted):
        result[i + 1] = get_item(whole, position)
    return tuple(result)


def _cond_expand(pred: Node, *operands: Node, true: Graph, false: Graph) -> tuple[Node, ...]:
    pairs = zip(inline(true, operands), inline(false, operands))
    return tuple(a if a is b else E.SELECT(pred, a, b) for a, b in pairs)


def _cond_reference(pred: Any, *operands: Any, true: Graph, false: Graph) -> tuple[Any, ...]:
    return run_graph(true if bool(pred) else false, operands)


def _sample_branches() -> tuple[Graph, Graph]:
    t = tensor_type((3,), float64)
    branches = []
    for i in range(2):
        x, y = input_node(t, "x"), input_node(t, "y")
        outputs = (E.mul(E.sin(x), y), x) if i == 0 else (E.add(x, 1.0), E.exp(x))
        branches.append(Graph((x, y), outputs, ("true", "false")[i]))
    return branches[0], branches[1]


_TRUE, _FALSE = _sample_branches()

cond: Primitive = register(
    Primitive(
        "cond",
        _cond_infer,
        _cond_reference,
        _cond_vjp,
        expand=_cond_expand,
        samples=tuple(
            Sample((np.array(p), (3,), (3,)), {"true": _TRUE, "false": _FALSE}, dtypes=("*", "float64", "float64"))
            for p in (True, False)
        ),
        dtypes=("bool",),
        doc="The outputs of the graph `true` or of the graph `false`, both functions of the operands.",
    )
)


# while_loop


def _loop_infer(*operands: Type, test: Graph, body: Graph, carried: int) -> tuple[Type, ...]:
    _check_operands("while_loop", body, operands)
    _check_operands("while_loop", test, operands)
    if body.output_types != tuple(operands[:carried]):
        raise TypeError(
            f"while_loop: the body turns {tuple(operands[:carried])} into {body.output_types}; the types must stay"
        )
    if test.output_types != (tensor_type((), bool_),):
        raise TypeError(f"while_loop: the test must give one boolean, not {test.output_types}")
    return tuple(operands[:carried])


def _loop_reference(*operands: Any, test: Graph, body: Graph, carried: int) -> tuple[Any, ...]:
    values, fixed = tuple(operands[:carried]), operands[carried:]
    while bool(run_graph(test, (*values, *fixed))[0]):
        values = run_graph(body, (*values, *fixed))
    return values


def _loop_vjp(ct: Any, out: Any, *operands: Node, **params: Any) -> Any:
    return loop_vjp(ct, out, *operands, **params)


def _sample_loop() -> dict[str, Any]:
    i, x, step = (
        input_node(tensor_type((), int64), "i"),
        input_node(tensor_type((3,), float64), "x"),
        input_node(tensor_type((), int64), "step"),
    )
    test = Graph((i, x, step), (E.lt(i, 5),), "test")
    return {"test": test, "body": Graph((i, x, step), (E.add(i, step), E.mul(x, 1.5)), "body"), "carried": 2}


while_loop: Primitive = register(
    Primitive(
        "while_loop",
        _loop_infer,
        _loop_reference,
        _loop_vjp,
        samples=(
            Sample((np.array(0), (3,), np.array(2)), _sample_loop(), dtypes=("*", "float64", "*")),
            Sample((np.array(9), (3,), np.array(2)), _sample_loop(), dtypes=("*", "float64", "*")),
        ),
        dtypes=("int64",),
        doc="The first `carried` operands, replaced by the outputs of the graph `body` as long as the graph `test` "
        "gives true.",
    )
)


# call


_binders = RememberedOf[Binder]("sizes of called graphs", MANY)


def sizes_in_call(graph: Graph, types: Sequence[Type]) -> dict[str, int]:
    """Return the sizes of a called graph's symbols, read from the types of the operands.

    Returns an empty dict where the types are the graph's own.
    """
    if graph.input_types == tuple(types):
        return {}
    binder = _binders.of(graph, lambda: Binder(graph.input_types))
    sizes = binder(types) if binder.names else None
    if sizes is None:
        _check_operands("call", graph, types)
    return sizes or {}


def results_of_call(graph: Graph, types: Sequence[Type]) -> tuple[Type, ...]:
    """Return the types of a called graph's outputs for operands of these types."""
    sizes = sizes_in_call(graph, types)
    return SERVICES.concrete(graph.output_types, sizes) if sizes else graph.output_types


def graph_for_call(graph: Graph, types: Sequence[Type]) -> Graph:
    """Return a called graph specialised to the sizes in the types of its operands."""
    sizes = sizes_in_call(graph, types)
    return SERVICES.specialize(graph, sizes) if sizes else graph


def _call_infer(*operands: Type, graph: Graph) -> tuple[Type, ...]:
    return results_of_call(graph, operands)


def _call_vjp(ct: Sequence[Node | None], out: Any, *operands: Node, graph: Graph) -> Any:
    graph = graph_for_call(graph, [o.type for o in operands])
    seeds = [None if c is None else input_node(c.type, "cotangent") for c in ct]
    grads = inner_gradient(graph, seeds)
    wanted = [i for i, g in enumerate(grads) if g is not None]
    if not wanted:
        return (None,) * len(operands)
    inputs = (*graph.inputs, *[s for s in seeds if s is not None])
    backward = Graph(inputs, [g for g in grads if g is not None], f"grad_{graph.name}")
    whole = call.node(*operands, *[c for c in ct if c is not None], graph=backward)
    result: list[Node | None] = [None] * len(operands)
    for position, i in enumerate(wanted):
        result[i] = get_item(whole, position)
    return tuple(result)


call: Primitive = register(
    Primitive(
        "call",
        _call_infer,
        lambda *operands, graph: run_graph(graph, operands),
        _call_vjp,
        expand=lambda *operands, graph: inline(graph_for_call(graph, [o.type for o in operands]), operands),
        samples=(Sample(((3,), (3,)), {"graph": _TRUE}),),
        dtypes=("float64",),
        doc="The outputs of a graph of the operands.",
    )
)
