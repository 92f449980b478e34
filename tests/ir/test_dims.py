"""Symbolic dimensions against integers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.dims import Dim, InconclusiveDimension, maximum, product, symbol

N, M = symbol("n"), symbol("m", 2, 100)


def test_equal_polynomials_are_one_dimension() -> None:
    assert (N + M) * (N + M) == N * N + 2 * (N * M) + M * M
    assert hash(N * M + 1) == hash(1 + M * N)
    assert N != M and N != 3


def test_constants_are_integers() -> None:
    assert N - N == 0 and isinstance(N - N, int)
    assert (2 * N) // N == 2 and (N * M) % M == 0
    assert product(()) == 1 and product((2, 3)) == 6


def test_division_takes_out_what_is_whole() -> None:
    assert (6 * N + 4) // 2 == 3 * N + 2
    assert (6 * N + 4) % 2 == 0
    assert (4 * N + 3) // 4 == N and (4 * N + 3) % 4 == 3
    assert (N * M + M) // M == N + 1
    with pytest.raises(ZeroDivisionError, match="dimension n divided by zero"):
        N // 0


def test_bounds_decide_comparisons() -> None:
    assert M >= 2 and M <= 100 and M > 1 and M < 101
    assert N * M > 1 and bool(N)
    assert (N // 3).bounds()[0] == 0 and (N % 3).bounds() == (0, 2)
    for open_question in (lambda: N > 1, lambda: N < M, lambda: N - 1 <= 0, lambda: bool(N - M)):
        with pytest.raises(InconclusiveDimension, match="not known while compiling|depends on sizes"):
            open_question()


def test_a_symbol_is_no_python_integer() -> None:
    with pytest.raises(InconclusiveDimension, match="the size n is not known while compiling"):
        range(N)


def test_text() -> None:
    assert str(2 * N + 1) == "2*n + 1"
    assert str(N - 1) == "n - 1"
    assert str((N + 1) // 2) == "((n + 1) // 2)"
    assert str(maximum(N, M)) == "max(n, m)"


def test_maximum_is_known_where_bounds_are_apart() -> None:
    assert maximum(M, 1) is M
    assert maximum(1, M) is M
    assert maximum(3, 5) == 5
    assert evaluate(maximum(N, M), {"n": 7, "m": 5}) == 7
    assert evaluate(maximum(N, M), {"n": 3, "m": 5}) == 5


def test_evaluate_names_the_missing_size() -> None:
    with pytest.raises(KeyError, match="m"):
        evaluate(N + M, {"n": 1})


SIZES = {"n": st.integers(1, 60), "m": st.integers(2, 100)}


def expressions() -> Any:
    """Pairs of a dimension and the same arithmetic on integers."""
    leaves = st.one_of(
        st.integers(-4, 6).map(lambda c: (c, lambda s: c)),
        st.sampled_from([(N, lambda s: s["n"]), (M, lambda s: s["m"])]),
    )

    def join(children: Any) -> Any:
        def combine(args: Any) -> Any:
            operator, (a, fa), (b, fb), divisor = args
            if operator == "+":
                return a + b, lambda s: fa(s) + fb(s)
            if operator == "-":
                return a - b, lambda s: fa(s) - fb(s)
            if operator == "*":
                return a * b, lambda s: fa(s) * fb(s)
            if operator == "max":
                return maximum(a, b), lambda s: max(fa(s), fb(s))
            if operator == "//":
                return a // divisor, lambda s: fa(s) // divisor
            return a % divisor, lambda s: fa(s) % divisor

        divisors = st.integers(-7, 7).filter(bool)
        return st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "max"]), children, children, divisors).map(combine)

    return st.recursive(leaves, join, max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(expressions(), st.fixed_dictionaries(SIZES))
def test_arithmetic_agrees_with_integers(pair: Any, sizes: dict[str, int]) -> None:
    dim, function = pair
    value = function(sizes)
    assert evaluate(dim, sizes) == value
    if isinstance(dim, Dim):
        low, high = dim.bounds()
        assert low <= value <= high


@settings(max_examples=200, deadline=None)
@given(expressions(), expressions(), st.fixed_dictionaries(SIZES))
def test_decided_comparisons_are_true(a: Any, b: Any, sizes: dict[str, int]) -> None:
    x, y = a[1](sizes), b[1](sizes)
    for symbolic, concrete in ((lambda: a[0] < b[0], x < y), (lambda: a[0] >= b[0], x >= y)):
        try:
            assert symbolic() == concrete
        except InconclusiveDimension:
            assert isinstance(a[0], Dim) or isinstance(b[0], Dim)
    if isinstance(a[0], Dim) and a[0] == b[0]:
        assert x == y


@settings(max_examples=300, deadline=None)
@given(expressions(), expressions(), st.fixed_dictionaries(SIZES))
def test_quotient_and_remainder_stay_in_their_bounds(a: Any, b: Any, sizes: dict[str, int]) -> None:
    x, y = a[1](sizes), b[1](sizes)
    assume(y and not (isinstance(b[0], int) and b[0] == 0))
    for dim, value in ((a[0] // b[0], x // y), (a[0] % b[0], x % y)):
        assert evaluate(dim, sizes) == value
        if isinstance(dim, Dim):
            low, high = dim.bounds()
            assert low <= value <= high


def test_a_divisor_of_zero_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        evaluate(N // (M - 2), {"n": 3, "m": 2})


def test_an_even_power_of_a_mixed_sign_is_not_below_zero() -> None:
    third = (N - 10) // 3
    low, _ = (third * third).bounds()
    assert low == 0


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.integers(1, 30))
def test_division_by_a_symbol(n: int, m: int) -> None:
    a, b = symbol("a"), symbol("b")
    sizes = {"a": n, "b": m}
    assert evaluate((a + 3) // b, sizes) == (n + 3) // m
    assert evaluate((a * b + a) % b, sizes) == (n * m + n) % m
    assert evaluate(7 // b, sizes) == 7 // m
    assert evaluate(7 % b, sizes) == 7 % m
