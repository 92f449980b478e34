"""Every program gives the same eagerly, compiled, compiled a second time, and under a gradient."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel.jit import Jit
from mycel.tree import flatten
from tests.frontend.programs import PROGRAMS

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
        elif isinstance(b, (int, float)) and isinstance(a, ms.Tensor):
            # A number that a tensor decides is a tensor in compiled code.
            assert float(a) == pytest.approx(float(b), rel=1e-5)
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
    assert not jitted.fallbacks
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
    assert_same(compiled(ms.grad(total, position)._run)(*given), expected)  # type: ignore[attr-defined]
    jitted = compiled(total)
    assert_same(ms.grad(jitted, position)(*given), expected)


@pytest.mark.parametrize("fn", [p[0] for p in PROGRAMS], ids=[p[0].__name__ for p in PROGRAMS])
def test_graphs_obey_their_invariants(fn: Any) -> None:
    from mycel.ir.verify import verify

    calls = next(p[1] for p in PROGRAMS if p[0] is fn)
    version = compiled(fn).compile(*tensors(calls[0]))
    assert version is not None
    verify(version.graph)
