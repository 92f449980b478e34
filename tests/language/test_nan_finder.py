"""set_context(check_nan=True) names the first operation that gives a NaN or an infinity, and the
user's line, in every mode and in derivatives.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.foundation.python_runtime.tracebacks import PACKAGE
from tests.language.not_finite import check, failure, graph_mode, logarithm, t

BIG = np.float32(3e38)


@pytest.fixture(autouse=True)
def checking() -> Iterator[None]:
    ms.set_context(check_nan=True)
    try:
        yield
    finally:
        ms.set_context(check_nan=False, mode=ms.PYNATIVE_MODE)


MODES = {"eager": lambda fn: fn, "jit": ms.jit, "graph": graph_mode}
modes = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def quotient(x: Any) -> Any:
    y = x - x
    return (x / y).sum()  # here


def exponential(x: Any) -> Any:
    z = 100 * x
    return ops.tanh(ops.exp(z) * 0)  # here


def difference(x: Any) -> Any:
    y = ops.full_like(x, float("inf"))
    return (y - y) + x  # here


def root(x: Any) -> Any:
    return 1 + ops.sqrt(-x)  # here


def power(x: Any) -> Any:
    return (x - 5) ** 0.5 + 1  # here


def narrow(x: Any) -> Any:
    return (x * 1e6).astype(ms.float16).sum()  # here


def product(x: Any) -> Any:
    y = x * 1e38
    return y @ y.T  # here


def total(x: Any) -> Any:
    return (x * BIG / 3).sum()  # here


def over_two_lines(x: Any) -> Any:
    return x + (
        1 / (x - x)  # here
    )


OPERATIONS = [
    (logarithm, t(2, 1, 3), "log", "infinity", "ops.log"),
    (logarithm, t(2, 0.5, 3), "log", "NaN", "ops.log"),
    (quotient, t(1, 2), "div", "infinity", "x / y"),
    (quotient, t(0, 2), "div", "NaN", "x / y"),
    (exponential, t(1, 2), "exp", "infinity", "ops.exp(z)"),
    (difference, t(1, 2), "sub", "NaN", "y - y"),
    (root, t(1, 2), "sqrt", "NaN", "ops.sqrt"),
    (power, t(1, 2), "pow", "NaN", "(x - 5) **"),
    (narrow, t(1, 2), "cast", "infinity", "(x * 1e6).astype"),
    (product, ms.Tensor(np.ones((2, 2), np.float32)), "matmul", "infinity", "y @ y.T"),
    (total, t(1, 1, 1, 1), "reduce_sum", "infinity", "(x * BIG / 3).sum()"),
    (over_two_lines, t(1), "div", "infinity", "1 / (x - x)"),
]


@modes
@pytest.mark.parametrize("fn, x, operation, kind, at", OPERATIONS, ids=[f"{c[0].__name__}-{c[3]}" for c in OPERATIONS])
def test_operations(mode: Any, fn: Any, x: Any, operation: str, kind: str, at: str) -> None:
    error = failure(mode(fn), x)
    if operation == "pow" and error.operation == "sqrt":
        operation = "sqrt"  # the power 1/2
    check(error, fn, operation, kind, at)
    assert error.gradient_of == "" and error.rounds == ()
    assert isinstance(error, FloatingPointError)


@modes
def test_the_message_shows_operands_and_a_mend(mode: Any) -> None:
    error = failure(mode(logarithm), t(2, 1, 0.5))
    assert str(error).startswith("log gives 1 NaN and 1 infinite value among 3: log(float32[3] in [-0.5, 1])")
    assert "keep the operand above 0" in str(error)


@modes
def test_what_is_finite_passes(mode: Any) -> None:
    assert float(mode(logarithm)(t(2, 3))) == pytest.approx(10 + np.log(2))


@modes
def test_integers(mode: Any) -> None:
    assert mode(lambda x: x // (x - x))(t(1, 2, dtype=np.int32)).asnumpy().tolist() == [0, 0]


# What is looked for.


@modes
def test_only_nan(mode: Any) -> None:
    ms.set_context(check_nan="nan")
    run = mode(logarithm)
    assert run(t(1, 2)).asnumpy() == -np.inf
    check(failure(run, t(0.5, 2)), logarithm, "log", "NaN", "ops.log")


@modes
def test_only_nan_from_an_infinity(mode: Any) -> None:
    ms.set_context(check_nan="nan")

    def fn(x: Any) -> Any:
        y = ops.exp(x * 1000)
        return y - y  # here

    check(failure(mode(fn), t(1, 2)), fn, "sub", "NaN", "y - y")


def test_the_setting_can_be_changed_at_any_time() -> None:
    run = ms.jit(logarithm)
    error = failure(run, t(1, 2))
    ms.set_context(check_nan=False)
    assert run(t(1, 2)).asnumpy() == -np.inf and logarithm(t(1, 2)).asnumpy() == -np.inf
    ms.set_context(check_nan=True)
    assert str(failure(run, t(1, 2))) == str(error)
    failure(logarithm, t(1, 2))


def test_values_of_the_setting() -> None:
    assert ms.get_context("check_nan") is True
    for wrong in ("inf", 1, None):
        with pytest.raises(ValueError, match=r"check_nan must be False, True, or 'nan'"):
            ms.set_context(check_nan=wrong)


@modes
def test_infinite_constants_are_no_failure(mode: Any) -> None:
    """Masks are made of infinities.

    What is infinite from the start is not found, what becomes NaN of it is.
    """

    def attention(scores: Any, mask: Any) -> Any:
        hidden = ops.masked_fill(scores, mask, float("-inf"))
        return ops.softmax(hidden)  # here

    scores = ms.Tensor(np.ones((2, 2), np.float32))
    some = ms.Tensor(np.array([[True, False], [False, False]]))
    np.testing.assert_allclose(mode(attention)(scores, some).asnumpy(), [[0, 1], [0.5, 0.5]])
    every = ms.Tensor(np.array([[True, True], [False, False]]))
    error = failure(mode(attention), scores, every)
    assert error.kind == "NaN" and "ops.softmax" in str(error)


def test_inputs_that_are_not_finite_are_told_and_pass(caplog: pytest.LogCaptureFixture) -> None:
    def doubled(values: Any) -> Any:
        return values * 2

    run = ms.jit(doubled)
    with caplog.at_level("WARNING", logger="mycel"):
        assert np.isnan(run(t(1, np.nan)).asnumpy()[1])
        assert np.isnan(doubled(t(1, np.nan)).asnumpy()[1])
    assert caplog.text.count("values float32[2] of doubled already holds a NaN") == 1


def test_compiled_code_may_mask_what_is_not_finite() -> None:
    """Only what reaches a result counts there; eagerly every function's result is one."""

    def masked(x: Any) -> Any:
        return ops.where(x > 0, ops.log(x), x)  # here

    np.testing.assert_array_equal(ms.jit(masked)(t(1, -1)).asnumpy(), [0, -1])
    check(failure(masked, t(1, -1)), masked, "log", "NaN", "ops.log")


def in_the_library(source: str, name: str) -> Any:
    """A function as if it were one of the library's operations."""
    module = types.ModuleType("mycel.ops.for_a_test")
    exec(compile(source, f"{PACKAGE}ops/for_a_test.py", "exec"), module.__dict__)
    return module.__dict__[name]


HIDES = "from mycel import ops\ndef hides(x):\n    y = ops.log(x)\n    return ops.where(x > 0, y, x)\n"
SHOWS = "from mycel import ops\ndef shows(x):\n    y = ops.log(x)\n    z = y + 1\n    return [z, x]\n"


def test_an_eager_operation_counts_by_its_result() -> None:
    """What an operation of several steps hides inside is no failure, and what it shows is one when
    it returns.
    """
    hides, shows = in_the_library(HIDES, "hides"), in_the_library(SHOWS, "shows")
    before = sys.getprofile()
    np.testing.assert_array_equal(hides(t(1, -1)).asnumpy(), [0, -1])
    reached = []

    def uses(x: Any) -> Any:
        y = shows(x)  # here
        reached.append(1)
        return y

    check(failure(uses, t(1, -1)), uses, "log", "NaN", "shows(x)")
    assert not reached and sys.getprofile() is before
    np.testing.assert_array_equal(hides(t(1, -1)).asnumpy(), [0, -1])


# Branches and loops.


def branch(x: Any) -> Any:
    y = x * 2
    if x.sum() > 0:
        y = y / (x - x)  # here
    else:
        y = y + 1
    return y


@modes
def test_branches(mode: Any) -> None:
    run = mode(branch)
    assert run(t(-1, -2)).asnumpy().tolist() == [-1, -3]
    check(failure(run, t(1, 2)), branch, "div", "infinity", "y / (x - x)")


def loop(x: Any) -> Any:
    n = ms.Tensor(0)
    while n < 10:
        x = x + ops.exp(x * x)  # here
        n = n + 1
    return x


@modes
def test_loops(mode: Any) -> None:
    """x -> x + exp(x * x) from 0.5 overflows in the fourth round."""
    x, rounds = np.float32(0.5), 0
    with np.errstate(over="ignore"):
        while np.isfinite(x):
            x, rounds = x + np.exp(x * x), rounds + 1
    error = failure(mode(loop), t(0.5))
    check(error, loop, "exp", "infinity", "ops.exp(x * x)")
    if mode is not MODES["eager"]:
        assert error.rounds == (rounds,)
        assert re.search(rf"in round {rounds} of the loop at .*test_nan_finder.py:\d+", str(error))


def nested(x: Any) -> Any:
    n = ms.Tensor(0)
    while n < 5:
        k = ms.Tensor(0)
        while k < 3:
            if n * 3 + k > 6:
                x = x + 1 / (n * 3 + k - 7)  # here
            k = k + 1
        n = n + 1
    return x


@pytest.mark.parametrize("mode", [ms.jit, graph_mode], ids=["jit", "graph"])
def test_nested_loops(mode: Any) -> None:
    error = failure(mode(nested), t(0.5))
    check(error, nested, "div", "infinity", "1 / (n * 3")
    assert error.rounds == (3, 2)


def counted(x: Any, n: Any) -> Any:
    y = x
    for i in range(n):
        y = y + ops.log(x - i)  # here
    return y


@modes
def test_loops_over_a_range(mode: Any) -> None:
    error = failure(mode(counted), t(5, 6), ms.Tensor(20))
    check(error, counted, "log", "infinity", "ops.log")
    if mode is not MODES["eager"]:
        assert error.rounds == (6,)


# Functions that go back to Python.


def segments(x: Any) -> Any:
    n = float(x.sum())
    y = x * n
    return ops.log(y - n)  # here


def other_segments(x: Any) -> Any:
    n = float(x.sum())

    y = x * n
    return ops.log(y - n)  # here


def test_functions_in_segments() -> None:
    """Segments of one structure are compiled once; each failure still shows its own line."""
    for fn in (segments, other_segments, segments):
        check(failure(ms.jit(fn), t(2, 1)), fn, "log", "infinity", "ops.log")
