"""Operations that update parameters, against values of MindSpore 2.10 and, where its CPU has no
kernel or one that departs from what it documents, the formulas in NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from tests.ops import update_cases as cases

EXPECTED = json.loads((Path(__file__).parent / "expected_updates.json").read_text())
State = dict[str, Any]


def compiled(operation: Any) -> Any:
    """The operation in a Cell that is compiled."""

    class Net(ms.nn.Cell):
        @ms.jit
        def construct(self, *inputs: Any) -> Any:
            return operation(*inputs)

    return Net()


WAYS = pytest.mark.parametrize("way", [lambda operation: operation, compiled], ids=["eager", "jit"])


def gradient(call: int) -> Any:
    return np.sin(1.7 * np.arange(12) + call + 0.3).reshape(4, 3)


def adagrad_fixed(s: State, g: Any) -> None:
    s["p"] -= 0.1 * g / np.sqrt(s["v"])


def adagrad_da(s: State, g: Any) -> None:
    s["m"], s["v"] = s["m"] + g, s["v"] + g**2
    pulled = np.sign(s["m"]) * np.maximum(abs(s["m"]) - 0.05 * 2, 0)
    s["p"] = -0.1 * pulled / (0.2 * 2 * 0.1 + np.sqrt(s["v"]))


def ftrl(s: State, g: Any, power: float = 0.5, shrink: float = 0.0, rows: Any = slice(None)) -> None:
    p, n, z = s["p"][rows], s["v"][rows], s["m"][rows]
    after = n + g**2
    z = z + g + 2 * shrink * p - (after**power - n**power) / 0.1 * p
    s["p"][rows] = np.where(abs(z) <= 0.05, 0, (np.sign(z) * 0.05 - z) / (after**power / 0.1 + 2 * 0.2))
    s["v"][rows], s["m"][rows] = after, z


def keras(s: State, g: Any, nesterov: bool) -> None:
    s["m"] = 0.9 * s["m"] - 0.1 * g
    s["p"] += 0.9 * s["m"] - 0.1 * g if nesterov else s["m"]


def momentum(s: State, g: Any, nesterov: bool = False) -> None:
    s["m"] = 0.9 * s["m"] + g
    s["p"] -= 0.1 * (g + 0.9 * s["m"] if nesterov else s["m"])


def rmsprop(s: State, g: Any) -> None:
    s["v"] = 0.9 * s["v"] + 0.1 * g**2
    s["m"] = 0.8 * s["m"] + 0.1 * g / np.sqrt(s["v"] + 1e-2)
    s["p"] -= s["m"]


def sparse_adam_nesterov(s: State, g: Any) -> None:
    whole = np.zeros((4, 3))
    for row, i in zip(g[:3], (2, 0, 2)):
        whole[i] += row
    s["m"], s["v"] = 0.9 * s["m"] + 0.1 * whole, 0.999 * s["v"] + 0.001 * whole**2
    rate = 0.1 * np.sqrt(1 - 0.999) / (1 - 0.9)
    s["p"] -= rate * (0.9 * s["m"] + 0.1 * whole) / (np.sqrt(s["v"]) + 1e-3)


def decayed_momentum(s: State, g: Any) -> None:
    momentum(s, (g + 0.1 * s["p"]) * 0.5)


def sparse_adadelta(s: State, g: Any) -> None:
    for row, i in zip(g, (3, 0, 2, 1)):
        s["v"][i] = 0.8 * s["v"][i] + 0.2 * row**2
        step = np.sqrt(s["w"][i] + 1e-3) * row / np.sqrt(s["v"][i] + 1e-3)
        s["w"][i] = 0.8 * s["w"][i] + 0.2 * step**2
        s["p"][i] -= 0.1 * step


def sparse_adagrad(s: State, g: Any, updated: bool) -> None:
    for row, i in zip(g, (3, 0)):
        s["v"][i] += row**2 if updated else 0
        s["p"][i] -= 0.1 * row / (np.sqrt(s["v"][i]) + 0.1)


def sparse_proximal(s: State, g: Any) -> None:
    for row, i in zip(g, (3, 0, 2, 1)):
        s["v"][i] += row**2
        rate = 0.1 / np.sqrt(s["v"][i])
        q = s["p"][i] - rate * row
        s["p"][i] = np.sign(q) * np.maximum(abs(q) - rate * 0.2, 0) / (1 + rate * 0.3)


# What MindSpore's CPU has no kernel for, or computes otherwise than it documents: AdaGrad without
# updated slots updates them; momentum knows neither Nesterov's form nor the scale; FTRL and dual
# averaging take the penalty from the wrong side of negative numbers; RMSProp's root is an
# approximation; ...
FORMULAS: dict[str, Callable[[State, Any], None]] = {
    "ApplyAdagrad_fixed": adagrad_fixed,
    "ApplyAdagradDA": adagrad_da,
    "ApplyFtrl": ftrl,
    "ApplyFtrl_power": lambda s, g: ftrl(s, g, 0.7),
    "ApplyKerasMomentum": lambda s, g: keras(s, g, False),
    "ApplyKerasMomentum_nesterov": lambda s, g: keras(s, g, True),
    "ApplyMomentum_nesterov": lambda s, g: momentum(s, g, True),
    "ApplyMomentum_scaled": lambda s, g: momentum(s, 0.5 * g),
    "ApplyRMSProp": rmsprop,
    "FusedSparseAdam_nesterov": sparse_adam_nesterov,
    "FusedWeightScaleApplyMomentum": decayed_momentum,
    "SparseApplyAdadelta": sparse_adadelta,
    "SparseApplyAdagradV2": lambda s, g: sparse_adagrad(s, g, True),
    "SparseApplyAdagradV2_fixed": lambda s, g: sparse_adagrad(s, g, False),
    "SparseApplyFtrlV2": lambda s, g: ftrl(s, g[:2], shrink=0.3, rows=[3, 0]),
    "SparseApplyProximalAdagrad": sparse_proximal,
}
LARS = ("LARSUpdate", "LARSUpdate_clipped")
CHECKED = {
    f"ops.{case.operation}": "MindSpore 2.10" if name in EXPECTED else "NumPy" for name, case in cases.CASES.items()
}


def expected(name: str) -> dict[str, Any]:
    """The parameters after the calls."""
    if name in EXPECTED:
        return dict(EXPECTED[name]["parameters"])
    state = {k: v.astype(np.float32).astype(np.float64) for k, v in cases.VALUES.items()}
    for call in range(cases.CALLS):
        FORMULAS[name](state, gradient(call))
    return state


def test_every_case_has_an_oracle() -> None:
    assert {*EXPECTED, *FORMULAS, *LARS} == set(cases.CASES) and not set(EXPECTED) & set(FORMULAS)


@WAYS
@pytest.mark.parametrize("name", [n for n in cases.CASES if n not in LARS])
def test_updates(name: str, way: Any) -> None:
    found, wanted = cases.run(ms, cases.CASES[name], way), expected(name)
    assert found["parameters"]
    for key, value in found["parameters"].items():
        np.testing.assert_allclose(value, np.ravel(wanted[key]), rtol=2e-5, atol=2e-6, err_msg=key)
    written = [k for k in found["parameters"] if cases.CASES[name].operation != "AdamNoUpdateParam"]
    if not written:
        np.testing.assert_allclose(found["returned"][0], EXPECTED[name]["returned"], rtol=2e-5, atol=1e-7)
    for key, value in zip(written, found["returned"]):
        assert value == found["parameters"][key], "what is returned are the updated parameters"


@WAYS
@pytest.mark.parametrize("clip", [False, True])
def test_lars(clip: bool, way: Any) -> None:
    case = cases.CASES["LARSUpdate_clipped" if clip else "LARSUpdate"]
    rate = 0.2 * np.sqrt(6.0) / (np.sqrt(2.0) + 0.1 * np.sqrt(6.0) + 1e-5)
    rate = min(rate / 0.5, 1.0) if clip else rate
    wanted = rate * (gradient(1) + 0.1 * cases.VALUES["p"])
    found = cases.run(ms, case, way)
    np.testing.assert_allclose(found["returned"][0], wanted.ravel(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found["parameters"]["p"], cases.VALUES["p"].ravel(), rtol=1e-6)


def test_lars_of_a_zero_norm_keeps_the_gradient() -> None:
    p, g = ms.Tensor([0.0, 0.0]), ms.Tensor([1.0, -2.0])
    assert ops.LARSUpdate()(p, g, ms.Tensor(0.0), ms.Tensor(5.0), 0.1, 0.5).tolist() == [1.0, -2.0]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_parameters_keep_their_type(dtype: Any) -> None:
    p, m, v = (ms.Parameter(ms.Tensor(np.array([1.0, -2.0], dtype)), name=n) for n in "pmv")
    v.set_data(ms.Tensor(np.array([0.5, 0.25], dtype)))
    ops.Adam()(p, m, v, 0.9, 0.999, 0.1, 0.9, 0.999, 1e-3, ms.Tensor(np.array([0.5, 1.0], dtype)))
    mean, square = (
        0.9 * np.array([1.0, -2.0]) + 0.1 * np.array([0.5, 1.0]),
        np.array([0.4995 + 0.00025, 0.24975 + 0.001]),
    )
    wanted = np.array([1.0, -2.0]) - 0.1 * np.sqrt(0.001) / 0.1 * mean / (np.sqrt(square) + 1e-3)
    assert p.asnumpy().dtype == dtype
    np.testing.assert_allclose(p.asnumpy(), wanted, rtol=2e-3 if dtype is np.float16 else 1e-12)


def test_rows_named_twice_add_up_and_a_matrix_without_rows_stays() -> None:
    p, a = (ms.Parameter(ms.Tensor(np.ones((3, 2), np.float32)), name=n) for n in "pa")
    rows = ms.Tensor(np.full((2, 2), 0.5, np.float32))
    ops.SparseApplyAdagrad(0.5)(p, a, rows, ms.Tensor([1, 1], ms.int32))
    np.testing.assert_allclose(p.asnumpy(), [[1, 1], [1 - 0.5 / np.sqrt(2)] * 2, [1, 1]], rtol=1e-6)
    before = p.asnumpy().copy()
    ops.SparseApplyAdagrad(0.5)(p, a, ms.Tensor(np.zeros((0, 2), np.float32)), ms.Tensor(np.zeros(0, np.int32)))
    np.testing.assert_array_equal(p.asnumpy(), before)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda w: ops.ApplyGradientDescent()(w, 0.1), TypeError, r"takes 3 inputs \(var, alpha, delta\), not 2"),
        (
            lambda w: ops.ApplyGradientDescent()(1.0, 0.1, w),
            TypeError,
            "var must be a Tensor, not float",
        ),
        (
            lambda w: ops.ApplyAdagrad()(w, w, 0.1, ms.Tensor([1.0])),
            ValueError,
            r"grad has shape \(1,\), but var has \(2,\)",
        ),
        (lambda w: ops.SparseApplyFtrl(0.1, 0.0, 0.0), TypeError, "lr_power"),
    ],
)
def test_bad_calls(call: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(ms.Parameter(ms.Tensor([1.0, 2.0]), name="w"))


def _row_updates() -> dict[str, tuple[Any, Any, Any]]:
    """Operations, and the values of MindSpore 2.10 on a CPU: for row 1, and for no row."""
    rate = [ms.Tensor(v, ms.float32) for v in (0.9, 0.999, 0.001, 0.9, 0.999, 1e-8)]
    ftrl = ([[0.2, 0.17198148], [0.1, 0.78999996], [0.6, -15.454842]], [[0.2, 0.5], [0.1, 0.3], [0.6, 0.9]])
    lazy = ([[0.2, 0.49988663], [0.1, 0.34], [0.6, 0.89959]], [[0.2, 0.5], [0.1, 0.3], [0.6, 0.9]])
    others = [0.19996324, 0.09, 0.59940004]
    adam = (
        [[others[0], 0.49988663], [others[1], 0.34], [others[2], 0.89959]],
        [[others[0], 0.49990997], [others[1], 0.27], [others[2], 0.8991]],
    )
    return {
        "SparseApplyFtrl": (lambda g, i: lambda *w: ops.SparseApplyFtrl(0.01, 0.1, 0.2, -0.5)(*w, g, i), *ftrl),
        "FusedSparseFtrl": (lambda g, i: lambda *w: ops.FusedSparseFtrl(0.01, 0.1, 0.2, -0.5)(*w, g, i), *ftrl),
        "FusedSparseLazyAdam": (lambda g, i: lambda *w: ops.FusedSparseLazyAdam()(*w, *rate, g, i), *lazy),
        "FusedSparseAdam": (lambda g, i: lambda *w: ops.FusedSparseAdam()(*w, *rate, g, i), *adam),
    }


@pytest.mark.parametrize("name", _row_updates())
def test_rows_that_are_not_there_are_left_out(name: str) -> None:
    call, of_row, of_none = _row_updates()[name]
    for index, want in ((1, of_row), (5, of_none), (-1, of_none)):
        start = ([[0.2], [0.5]], [[0.1], [0.3]], [[0.6], [0.9]])
        written = [ms.Parameter(ms.Tensor(v, ms.float32), name=n) for v, n in zip(start, "vml")]
        call(ms.Tensor([[0.7]], ms.float32), ms.Tensor([index], ms.int32))(*written)
        np.testing.assert_allclose([w.asnumpy().ravel() for w in written], want, rtol=1e-6)
