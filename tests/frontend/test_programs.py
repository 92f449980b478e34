"""Every program gives the same eagerly, compiled, compiled a second time, and under a gradient."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.foundation.pytree import flatten
from mycel._src.staging.compiled.jit import Jit
from tests.frontend import programs_of_python, programs_of_tensors
from tests.frontend.programs import PROGRAMS

assert programs_of_python and programs_of_tensors  # which declare the programs
CASES = [(fn, args, grad) for fn, calls, grad in PROGRAMS for args in calls]
IDS = [f"{fn.__name__}-{i}" for fn, calls, _ in PROGRAMS for i in range(len(calls))]


def tensors(args: Any) -> list[Any]:
    return [ms.Tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in args]


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, OrderedDict):
        assert type(actual) is OrderedDict
        actual, expected = dict(actual), dict(expected)
    found, form = flatten(actual)
    wanted, wanted_form = flatten(expected)
    assert form == wanted_form
    for a, b in zip(found, wanted):
        if isinstance(b, ms.Tensor):
            assert isinstance(a, ms.Tensor) and a.dtype is b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-5)
        elif isinstance(b, float):
            # Where tensors decide it, it has the precision of float32.
            assert a == pytest.approx(b, rel=1e-5)
        elif isinstance(b, OrderedDict):
            assert_same(a, b)
        else:
            assert a == b


def compiled(fn: Any) -> Jit:
    return Jit(fn, fullgraph=True)


@pytest.mark.parametrize(("fn", "args", "grad"), CASES, ids=IDS)
def test_compiled_agrees_with_eager(fn: Any, args: Any, grad: bool) -> None:
    expected = fn(*tensors(args))
    jitted = compiled(fn)
    for _ in range(2):
        assert_same(jitted(*tensors(args)), expected)
    assert not jitted.lives
    assert sum(map(len, jitted.versions.values())) == 1


@pytest.mark.parametrize(
    ("fn", "args"), [(f, a) for f, a, g in CASES if g], ids=[i for i, c in zip(IDS, CASES) if c[2]]
)
def test_gradients_agree(fn: Any, args: Any) -> None:
    position = next(i for i, a in enumerate(args) if np.asarray(a).dtype.kind == "f")

    def total(*values: Any) -> Any:
        return ops.sum(fn(*values))

    given = tensors(args)
    expected = ms.grad(total, position)(*given)
    assert_same(compiled(ms.grad(total, position)._run)(*given), expected)
    jitted = compiled(total)
    assert_same(ms.grad(jitted, position)(*given), expected)


@pytest.mark.parametrize("fn", [p[0] for p in PROGRAMS], ids=[p[0].__name__ for p in PROGRAMS])
def test_graphs_obey_their_invariants(fn: Any) -> None:
    from mycel._src.compiler.ir.verify import verify

    calls = next(p[1] for p in PROGRAMS if p[0] is fn)
    version = compiled(fn).compile(*tensors(calls[0]))
    assert version is not None
    verify(version.graph)


@pytest.mark.parametrize("rounds", [0, 1, 63, 64, 65, 129, 260])
def test_gradients_of_long_loops(rounds: int) -> None:
    """Beyond the tape's length states are computed anew.

    The oracle is the recurrence of the derivative in float64.
    """

    def f(x: Any, n: Any) -> Any:
        y = x
        for i in range(n):
            y = ops.sin(y) * 1.01 + 0.1 * x + i * 0.001
        return ops.sum(y)

    x = np.array([0.5, -0.2])
    y, slope = x.copy(), np.ones_like(x)
    for i in range(rounds):
        y, slope = np.sin(y) * 1.01 + 0.1 * x + i * 0.001, np.cos(y) * slope * 1.01 + 0.1
    jitted = compiled(ms.grad(f)._run)
    given = (ms.Tensor(x.astype(np.float32)), ms.Tensor(rounds))
    np.testing.assert_allclose(jitted(*given).asnumpy(), slope, rtol=1e-4)
    assert "while_grad" in str(ms.explain(jitted, *given))


def test_long_unrolled_loops_compile() -> None:
    f = compiled(lambda x: functools.reduce(lambda a, i: ops.sin(a) + i, range(400), x))
    y = np.float64(0.3)
    for i in range(400):
        y = np.sin(y) + i
    assert float(f(ms.Tensor(0.3))) == pytest.approx(float(y), rel=1e-4)


def test_second_derivative_of_a_loop() -> None:
    def f(x: Any, n: Any) -> Any:
        y = x
        for _ in range(n):
            y = y * y * 0.7
        return y

    twice = lambda n: compiled(lambda t: ms.grad(lambda s: ms.grad(f)(s, n))(t))(ms.Tensor(1.1))
    # f = 0.7 ** 7 * x ** 8 after three rounds.
    assert float(twice(ms.Tensor(3))) == pytest.approx(56 * 0.7**7 * 1.1**6, rel=1e-5)
    assert float(twice(3)) == pytest.approx(56 * 0.7**7 * 1.1**6, rel=1e-5)
