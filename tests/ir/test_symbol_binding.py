"""Binding symbols to sizes, decisions by hints, and dimensions with sizes put in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycel._src.compiler.ir.dim_values import evaluate, hint, substitute, symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions, deciding, evaluator
from mycel._src.compiler.ir.dims import InconclusiveDimension, is_one, maximum, same, symbol
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.foundation.dtype import float32, int32

N, M = symbol("rows", 2), symbol("columns", 2)


def kind(*shape: object) -> object:
    return tensor_type(shape, float32)


def test_binding() -> None:
    bind = Binder([kind(N, 3), kind(2 * M + 1, N), kind(N * M)])
    assert bind.names == ("rows", "columns")
    assert bind([kind(4, 3), kind(7, 4), kind(12)]) == {"rows": 4, "columns": 3}
    wrong = (
        [kind(4, 3), kind(7, 4)],
        [kind(4, 2), kind(7, 4), kind(12)],
        [kind(4, 3), kind(8, 4), kind(12)],
        [kind(4, 3), kind(7, 5), kind(12)],
        [kind(4, 3), kind(7, 4), kind(11)],
        [kind(1, 3), kind(7, 1), kind(3)],
        [kind(4), kind(7, 4), kind(12)],
        [tensor_type((4, 3), int32), kind(7, 4), kind(12)],
    )
    for types in wrong:
        assert bind(types) is None


def test_decisions_are_remembered_as_guards() -> None:
    decisions = Decisions({"rows": 5, "columns": 7})
    with deciding(decisions):
        assert N < M and N != M and N > 4 and not N == 6 and bool(N - 3)
        assert list(range(N - 3)) == [0, 1] and int(N // 2) == 2 and N + 1 > N and N >= 2
        assert not N < 4.5 and N <= 5.0 and N < math.inf
    holds = decisions.condition()
    assert (
        holds({"rows": 5, "columns": 7}) and holds({"rows": 5, "columns": 8}) and not holds({"rows": 6, "columns": 8})
    )
    assert "rows - 5 == 0" in decisions.describe()
    with pytest.raises(InconclusiveDimension):
        bool(N < M)


def test_bounds_decide_without_guards() -> None:
    decisions = Decisions({"rows": 5, "columns": 7})
    with deciding(decisions):
        assert N * M > M and N * M >= N + M - 1 and N != 1 and N * N - N > 0 and not N == 0 and N // 2 >= 1
    assert not decisions.guards and decisions.condition()({"rows": 2, "columns": 2})


def test_what_depends_on_an_unknown_size_is_not_decided() -> None:
    with (
        deciding(Decisions({"rows": 5})),
        pytest.raises(InconclusiveDimension, match="columns, which the program computes"),
    ):
        bool(M < 5)


def test_decisions_can_be_given_up() -> None:
    decisions = Decisions({"rows": 5})
    with deciding(decisions):
        assert N < 9
        before = len(decisions.guards)
        assert N == 5
        decisions.rewind(before)
        assert decisions.condition()({"rows": 6})
        assert N == 5
    assert not decisions.condition()({"rows": 6})


def test_hints_leave_no_guard() -> None:
    decisions = Decisions({"rows": 5})
    with deciding(decisions):
        assert hint(N * 2 + 1) == 11 and hint(3) == 3 and hint(M) == 2
    assert not decisions.guards
    assert is_one(1) and not is_one(N) and same((N, 2), (N, 2)) and not same((N,), (M,)) and not same(N, 5)


dims = st.recursive(
    st.sampled_from([N, M, 1, 2, 3]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] // p[1]),
        st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] % p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
        st.tuples(inner, inner).map(lambda p: maximum(p[0], p[1])),
    ),
    max_leaves=6,
)


@given(dims, st.integers(2, 40), st.integers(2, 40))
def test_evaluators_substitution_and_bounds_agree(value: object, n: int, m: int) -> None:
    sizes = {"rows": n, "columns": m}
    expected = evaluate(value, sizes)
    assert evaluator([value, 1], ["rows", "columns"])(n, m) == (expected, 1)
    partly = substitute(value, {"rows": n})
    assert set(symbols_in(partly)) <= {"columns"} and evaluate(partly, {"columns": m}) == expected
    assert substitute(value, sizes) == expected
    if not isinstance(value, int):
        low, high = value.bounds()
        assert low <= expected <= high
