"""Every rule where it applies and where it must not: the structure it gives, and the same values
with NaN, infinities and both zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Where, at, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.optimisation.arithmetic_rules import is_lossless
from mycel._src.compiler.transforms.optimisation.rewrite_rules import RULES, Context
from mycel._src.compiler.transforms.optimisation.simplify import simplify, simplify_counted
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
)
from tests.transforms.simplify_cases import EXACT, FACTORED, KEPT, ROUNDED, F, T, big, sum_
from tests.transforms.support import (
    assert_same_structure,
    assert_same_values,
    graph_of,
    random_inputs,
    special_inputs,
)


@pytest.mark.parametrize("name", EXACT)
def test_a_rule_gives_its_form_and_the_same_values(name: str) -> None:
    before, after, kinds = EXACT[name]
    graph = graph_of(before, *kinds)
    result = simplify(graph)
    wanted = graph_of(after, *kinds)
    assert_same_structure(result, wanted)
    tolerance = 3e-16 if "** 0.5" in name or "** -" in name else 0.0
    for shift in range(0 if name == "any x ** 0.5" else 4):
        assert_same_values(graph, result, special_inputs(graph, shift), tolerance)
    # NumPy's own power is not exact to the last bit in every release.
    assert_same_values(graph, result, random_inputs(graph), 3e-7 if name == "x ** 2" else tolerance)


def test_the_square_root_of_minus_infinity_as_a_power_is_infinite() -> None:
    # Exponents as an array: NumPy takes sqrt for a scalar one, which differs here.
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0, -2.0])
    (value,) = evaluate(simplify(graph_of(lambda x: E.pow_(x, 0.5), T(7, dtype=float64))), [x])
    with np.errstate(invalid="ignore"):
        wanted = np.power(x, np.full(7, 0.5))
    np.testing.assert_allclose(value, wanted, rtol=3e-16)
    assert value[2] == np.inf


@pytest.mark.parametrize("name", ROUNDED)
def test_a_rule_that_rounds_differently_stays_close(name: str) -> None:
    before, after, kinds = ROUNDED[name]
    graph = graph_of(before, *kinds)
    result = simplify(graph)
    assert_same_structure(result, graph_of(after, *kinds))
    assert_same_values(graph, result, random_inputs(graph), 1e-15 if kinds[0].dtype is float64 else 2e-6)
    assert_same_values(graph, result, special_inputs(graph), 2e-6)


@pytest.mark.parametrize("name", KEPT)
def test_what_a_rule_must_not_touch_stays(name: str) -> None:
    function, kinds = KEPT[name]
    graph = graph_of(function, *kinds)
    assert simplify(graph) is graph


@pytest.mark.parametrize("name", FACTORED)
def test_factors_of_rows_leave_sums(name: str) -> None:
    before, after, kinds = FACTORED[name]
    graph = graph_of(before, *kinds)
    result = simplify(graph)
    assert_same_structure(result, graph_of(after, *kinds))
    assert_same_values(graph, result, random_inputs(graph), 2e-6)


def test_every_rule_is_exercised(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: set[str] = set()

    def step(self: Context, node: Any) -> Any:
        for apply in RULES.get(node.prim, ()):
            result = apply(node, self)
            if result is not None:
                fired.add(f"{apply.__module__}.{apply.__name__}")
                return result
        return None

    monkeypatch.setattr(Context, "step", step)
    for before, _, kinds in (*EXACT.values(), *ROUNDED.values(), *FACTORED.values()):
        simplify(graph_of(before, *kinds))
    assert fired == {f"{r.__module__}.{r.__name__}" for rules in RULES.values() for r in rules}


def test_a_chain_of_conversions_loses_nothing_only_where_every_value_survives() -> None:
    kinds = [bool_, int8, uint8, int16, uint16, int32, int64, float16, bfloat16, float32, float64]
    for a in kinds:
        for b in kinds:
            if a.itemsize <= 2:
                raw = np.arange(256**a.itemsize, dtype=np.uint32).astype(f"u{a.itemsize}")
                values = raw.view(a.numpy) if a is not bool_ else np.array([False, True])
                with np.errstate(all="ignore"):
                    there = values.astype(b.numpy)
                    back = there.astype(a.numpy)
                if a.is_floating:
                    usable = np.isfinite(values.astype(np.float32))
                    values, there, back = values[usable], there[usable], back[usable]
                same = np.array_equal(there.astype(np.float64), values.astype(np.float64)) and np.array_equal(
                    back, values
                )
                assert is_lossless(a, b) == (same and (b is not bool_ or a is bool_)), (a, b)


def test_symbolic_sizes_survive() -> None:
    n = symbol("n")
    m = symbol("m")
    graph = graph_of(
        lambda x: (
            S.reshape(S.reshape(x * 1.0, (n * m,)), (m, n)),
            sum_(big(x, (5, n, m)), 0, 1),
            E.exp(big(sum_(x, 0), (n, m))),
            R.reduce_max(S.reshape(x, (n, 1, m)), axes=(2,), keepdims=True),
            S.SLICE(x, starts=(0, 0), stops=(n, m), steps=(1, 1)),
        ),
        tensor_type((n, m), float64),
    )
    result = simplify(graph)
    wanted = graph_of(
        lambda x: (
            S.reshape(x, (m, n)),
            sum_(x, 0) * 5.0,
            big(E.exp(sum_(x, 0)), (n, m)),
            S.reshape(R.reduce_max(x, axes=(1,), keepdims=False), (n, 1, 1)),
            x,
        ),
        tensor_type((n, m), float64),
    )
    assert_same_structure(result, wanted)
    assert_same_values(graph, result, [np.random.default_rng(0).normal(size=(3, 4))], 1e-15)


def test_a_sum_over_a_symbolic_broadcast_is_a_multiple_of_the_size() -> None:
    n = symbol("n")
    graph = graph_of(
        lambda x, y: sum_(big(y, (n,)), 0) + sum_(x, 0),
        tensor_type((n,), float32),
        T(),
    )
    result = simplify(graph)
    verify(result)
    assert "broadcast_to" not in [k.prim.name for k in result.nodes if k.prim is not None]
    (value,) = evaluate(result, [np.zeros(7, np.float32), np.float32(1.5)])
    assert value == 10.5


def test_positions_are_kept() -> None:
    x = input_node(F, "x")
    with at(Where("model.py", 7)):
        y = E.pow_(x, 2.0)
    with at(Where("model.py", 8)):
        z = E.exp(S.BROADCAST_TO(sum_(y, 0), shape=(2, 13)))
    with at(Where("elsewhere.py", 1)):
        result = simplify(Graph([x], [z]))
    lines = {k.prim.name: str(k.where) for k in result.nodes if k.prim is not None}
    assert lines == {"mul": "model.py:7", "reduce_sum": "model.py:8", "exp": "model.py:8", "broadcast_to": "model.py:8"}


@pytest.mark.parametrize(
    "step",
    [
        lambda x: E.neg(E.neg(x)) * 1.0 + 0.0,
        lambda x: x * 1.01 * 0.99,
        lambda x: x * 3.0 / 7.0,
        lambda x: S.reshape(S.reshape(x, (26,)), (2, 13)),
        lambda x: S.transpose(E.exp(S.transpose(x, (1, 0))), (1, 0)),
        lambda x: E.tanh(x) - E.neg(x),
        lambda x: big(sum_(x, 0) * 0.5, (2, 13)) + x,
    ],
)
def test_the_number_of_applications_is_linear(step: Callable[[Any], Any]) -> None:
    def applications(length: int) -> int:
        def chain(x: Any) -> Any:
            for _ in range(length):
                x = step(x)
            return sum_(x, 0, 1)

        return simplify_counted(graph_of(chain, F))[1]

    short, long = applications(200), applications(800)
    assert long <= 4 * short + 16
    assert long <= 12 * 800


@pytest.mark.parametrize(("a", "b"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5))])
def test_a_transposed_product_is_the_product_of_transposes_in_turn(a: Any, b: Any) -> None:
    x, y = input_node(T(*a)), input_node(T(*b))
    product = matmul(x, y)
    rank = product.type.rank
    swap = (*range(rank - 2), rank - 1, rank - 2)
    before = Graph([x, y], [S.transpose(product, swap)])
    after = simplify(before)
    assert after.outputs[0].prim is matmul
    arrays = [np.random.default_rng(0).normal(size=s).astype(np.float32) for s in (a, b)]
    np.testing.assert_allclose(evaluate(after, arrays)[0], evaluate(before, arrays)[0], rtol=1e-5, atol=1e-6)


def test_a_product_that_is_also_used_as_it_is_stays() -> None:
    x, y = input_node(T(3, 4)), input_node(T(4, 5))
    product = matmul(x, y)
    after = simplify(Graph([x, y], [S.transpose(product, (1, 0)), product]))
    assert after.outputs[0].prim is S.TRANSPOSE


def test_axes_are_not_joined_before_reads_of_parts_and_in_reverse() -> None:
    x = input_node(tensor_type((4, 3, 2, 5), float32), "x")
    for read in (
        lambda: S.reverse(x, axes=(2,)),
        lambda: E.mul(S.reverse(x, axes=(1,)), 2.0),
        lambda: S.slice_axis(input_node(tensor_type((4, 3, 6, 5), float32), "wide"), 2, 1, 3),
    ):
        graph = Graph([x], [S.reshape(E.add(E.exp(x), read()), (4, 6, 5))], "f")
        assert simplify(graph).outputs[0].prim is S.RESHAPE
    assert simplify(Graph([x], [S.reshape(E.exp(S.reverse(x, axes=(3,))), (4, 6, 5))], "f")).outputs[0].prim is E.exp
