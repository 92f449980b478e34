"""Forward mode: every primitive's tangent against finite differences, control flow with its
tangents, and what must not be in the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node, static_type, toposort
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.jvp import jvp, tangent_graph
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import bool_, float64, int64
from tests.prims.cases import Case, apply_node, float64_cases, nodes_for, reference_results, run


@pytest.mark.parametrize("case", float64_cases(), ids=lambda c: c.label)
def test_tangents_are_the_numeric_derivative(case: Case) -> None:
    arrays = case.draw()
    free = nodes_for(arrays)
    positions = [i for i, d in enumerate(case.dtypes) if d.name == "float64"]
    rng = np.random.default_rng(5)
    steps = {i: rng.normal(size=arrays[i].shape) for i in positions}
    moves = [input_node(static_type(steps[i])) for i in positions]
    outputs = apply_node(case.primitive, free, case.sample.params)
    values, tangents = jvp(outputs, [free[i] for i in positions], moves)
    ends = []
    for sign in (1, -1):
        moved = [a + sign * 1e-5 * steps[i] if i in steps else a for i, a in enumerate(arrays)]
        ends.append(reference_results(case, moved))
    given, inputs = [*arrays, *[steps[i] for i in positions]], [*free, *moves]
    for old, value, tangent, above, below in zip(outputs, values, tangents, *ends):
        assert value.type is old.type
        if tangent is None:
            assert old.dtype.name != "float64" or np.allclose(above, below, atol=1e-9)
            continue
        assert tangent.type is value.type
        assert {n for n in toposort([tangent]) if n.prim is None} <= set(inputs), "a dummy cotangent is left"
        actual = run([tangent], inputs, given)[0]
        # The largest of nothing is infinite, and stays so.
        finite = np.isfinite(above)
        np.testing.assert_allclose(actual[finite], (above[finite] - below[finite]) / 2e-5, rtol=1e-5, atol=1e-6)


VECTOR, NUMBER, FLAG = tensor_type((3,), float64), tensor_type((), int64), tensor_type((), bool_)
X, V = np.array([0.3, -0.7, 1.1]), np.array([1.0, 2.0, -0.5])


def powers() -> tuple[list[Node], Node]:
    """x -> sin(a x) repeated n times, as a loop over a counter."""
    i, x, n, a = (input_node(t) for t in (NUMBER, VECTOR, NUMBER, VECTOR))
    test = Graph((i, x, n, a), (E.lt(i, n),), "test")
    body = Graph((i, x, n, a), (E.add(i, 1), E.sin(E.mul(a, x))), "body")
    inputs = [input_node(t, s) for t, s in ((NUMBER, "i"), (VECTOR, "x"), (NUMBER, "n"), (VECTOR, "a"))]
    return inputs, outputs_of(control.while_loop.node(*inputs, test=test, body=body, carried=2))[1]


def plain(x: Any, a: Any, n: int) -> Any:
    for _ in range(n):
        x = np.sin(a * x)
    return x


def differences(function: Any, x: Any, v: Any, step: float = 1e-6) -> Any:
    return (function(x + step * v) - function(x - step * v)) / (2 * step)


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_loops_carry_tangents(rounds: int) -> None:
    inputs, out = powers()
    moves = [input_node(VECTOR), input_node(VECTOR)]
    values, tangents = jvp([out], [inputs[1], inputs[3]], moves)
    loops = [n for n in toposort([*values, *tangents]) if n.prim is not None and n.prim.name.startswith("while")]
    assert [n.prim.name for n in loops] == ["while_loop"] and loops[0].params["carried"] == 3
    arrays = [np.int64(0), X, np.int64(rounds), V]
    value, tangent = evaluate([*values, *tangents], dict(zip([*inputs, *moves], [*arrays, V, X])))
    np.testing.assert_allclose(value, plain(X, V, rounds))
    expected = differences(lambda x: plain(x, V, rounds), X, V) + differences(lambda a: plain(X, a, rounds), V, X)
    np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-9)


def test_a_loop_whose_values_do_not_move_stays() -> None:
    inputs, out = powers()
    limit = input_node(VECTOR)
    values, tangents = jvp([out, E.add(out, limit)], [limit], [limit])
    assert tangents[0] is None and tangents[1] is limit and values[0] is out


def test_a_tangent_that_starts_inside_the_loop() -> None:
    """Only the fixed operand moves; the carried value's tangent begins at zero."""
    inputs, out = powers()
    move = input_node(VECTOR)
    _, (tangent,) = jvp([out], [inputs[3]], [move])
    arrays = [np.int64(0), X, np.int64(4), V]
    (actual,) = evaluate([tangent], dict(zip([*inputs, move], [*arrays, X])))
    np.testing.assert_allclose(actual, differences(lambda a: plain(X, a, 4), V, X), rtol=1e-6)


def derivative_graphs(order: str) -> tuple[list[Node], Node, list[Node]]:
    """The derivative of a loop's sum by x and a, derived once more along directions: forward over
    reverse, or reverse over reverse.
    """
    inputs, out = powers()
    wrt = [inputs[1], inputs[3]]
    total = reduce_sum(out, axes=(0,), keepdims=False)
    grads = vjp([total], [constant(1.0)], wrt)
    moves = [input_node(VECTOR), input_node(VECTOR)]
    if order == "forward":
        _, found = jvp(grads, wrt, moves)
        assert all(n.prim is not while_grad or n.params["carried"] == 3 for n in toposort(found))
    else:
        found = vjp(grads, moves, wrt)
    return [*inputs, *moves], out, found


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("rounds", [0, 1, 6, 150])
def test_second_derivatives_of_loops(order: str, rounds: int) -> None:
    """The Hessian is symmetric, so that both orders give the product with the directions."""
    inputs, _, found = derivative_graphs(order)

    def gradient(x: Any, a: Any) -> Any:
        states = [x]
        for _ in range(rounds):
            states.append(np.sin(a * states[-1]))
        by_x, by_a = np.ones(3), np.zeros(3)
        for s in reversed(states[:-1]):
            slope = by_x * np.cos(a * s)
            by_a, by_x = by_a + slope * s, slope * a
        return np.stack([by_x, by_a])

    expected = differences(lambda m: gradient(X + m * V, V + m * X), 0.0, 1.0)
    actual = evaluate(found, dict(zip(inputs, [np.int64(0), X, np.int64(rounds), V, V, X])))
    np.testing.assert_allclose(np.stack(actual), expected, rtol=1e-5, atol=1e-7)


def test_third_derivative_of_a_loop() -> None:
    inputs, out = powers()
    x = inputs[1]
    move = input_node(VECTOR)
    first = vjp([reduce_sum(out, axes=(0,), keepdims=False)], [constant(1.0)], [x])
    second = jvp(first, [x], [move])[1]
    third = vjp(second, [move], [x])
    arrays = dict(zip([*inputs, move], [np.int64(0), X, np.int64(3), V, X]))
    below, above = (evaluate(second, {**arrays, x: X + s * 1e-5 * V})[0] for s in (-1, 1))
    (actual,) = evaluate(third, arrays)
    # <second(x), X> along V is <third, V>.
    assert float(actual @ V) == pytest.approx(float(((above - below) / 2e-5) @ X), rel=1e-6)


def test_branches_give_values_and_tangents_together() -> None:
    p, x, y = input_node(FLAG), input_node(VECTOR), input_node(VECTOR)
    a, b = input_node(VECTOR), input_node(VECTOR)
    true, false = Graph((a, b), (E.sin(a), b), "t"), Graph((a, b), (E.mul(a, b), E.exp(a)), "f")
    move = input_node(VECTOR)
    outs = outputs_of(control.cond.node(p, x, y, true=true, false=false))
    values, tangents = jvp(outs, [x], [move])
    whole = {n for n in toposort([*values, *tangents]) if n.prim is control.cond}
    assert len(whole) == 1
    for flag, want in ((True, (np.cos(X) * V, 0 * X)), (False, (V * V, np.exp(X) * V))):
        found = evaluate(tangents, {p: np.bool_(flag), x: X, y: V, move: V})
        np.testing.assert_allclose(np.stack(found), np.stack(want))


def test_calls_push_their_graph() -> None:
    a, b = input_node(VECTOR), input_node(VECTOR)
    graph = Graph((a, b), (E.mul(a, b), b), "g")
    x, y, move = (input_node(VECTOR) for _ in range(3))
    values, tangents = jvp(outputs_of(control.call.node(x, y, graph=graph)), [x], [move])
    assert tangents[1] is None
    np.testing.assert_allclose(evaluate([values[0], tangents[0]], {x: X, y: V, move: X})[1], X * V)


def test_the_graph_of_tangents() -> None:
    a, b = input_node(VECTOR), input_node(VECTOR)
    pushed, kept = tangent_graph(Graph((a, b), (E.mul(a, b), E.exp(b)), "g"), [0])
    assert kept == [0] and len(pushed.inputs) == len(pushed.outputs) == 3
    value, other, tangent = evaluate(pushed, (X, V, V))
    np.testing.assert_allclose((value, other, tangent), (X * V, np.exp(V), V * V))
