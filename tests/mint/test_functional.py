"""The functions of layers against values and derivatives that PyTorch gave."""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import mint
from mycel._src.foundation.pytree import flatten
from mycel.mint.nn import functional
from tests.mint import cases

EXPECTED = json.loads((pathlib.Path(__file__).parent / "expected.json").read_text())
ALIASES = {
    "elu": "elu_ elu_ext inplace_elu",
    "hardtanh": "hardtanh_ hardtanh_op",
    "silu": "silu_func inplace_silu",
    "relu": "relu_",
    "sigmoid": "sigmoid_",
    "threshold": "threshold_ threshold_op",
    "adaptive_avg_pool3d": "adaptive_avg_pool3d_ext",
}
CHECKED = {f"mint.nn.functional.{name}": "PyTorch" for name, _, _ in cases.CASES}
CHECKED.update({f"mint.nn.functional.{name}": "PyTorch" for names in ALIASES.values() for name in names.split()})
CHECKED.update({f"mint.nn.functional.{name}": "NumPy" for name in ("broadcast_to", "clamp", "flatten", "norm_ext")})
CHECKED["mint.nn.functional.max_unpool2d"] = "PyTorch"
CHECKED.update({f"mint.nn.{n}": "PyTorch" for n in ("cross_entropy", "kl_div_ext", "mse_loss_ext", "nllloss")})
CHECKED.update({f"mint.nn.upsample_{n}2d_op": "PyTorch" for n in ("nearest", "bilinear")})
CHECKED.update(
    {
        f"mint.{n}": "NumPy"
        for n in (
            "cdist_",
            "equal_ext_op",
            "flatten_ext",
            "npu_gelu",
            "softmax_ext",
            "squeeze_impl",
            "jit_forbidden_register",
            "jit_view_unsupported",
        )
    }
)
CHECKED["mint.special.round_op"] = CHECKED["mint.Tensor"] = "NumPy"


def operands(number: int, real: str) -> list[Any]:
    found = []
    for which, spec in enumerate(cases.CASES[number][1]):
        made = cases.operand(spec, which)
        if made is None:
            found.append(None)
            continue
        kind, shape, values = made
        found.append(ms.Tensor(np.array(values, np.int32 if kind == "i" else real).reshape(shape)))
    return found


def compared(got: Any, wanted: dict[str, Any], near: float) -> None:
    results = flatten(got)[0]
    assert [list(r.shape) for r in results] == wanted["shapes"]
    for result, values in zip(results, wanted["values"]):
        array = result.asnumpy().reshape(-1)
        assert (array.dtype.kind == "i") == (bool(values) and all(isinstance(v, int) for v in values))
        np.testing.assert_allclose(array, values, rtol=near, atol=near)


NUMBERS = [pytest.param(n, id=f"{n}-{name}") for n, (name, _, _) in enumerate(cases.CASES)]


@pytest.mark.parametrize("number", NUMBERS)
def test_values(number: int) -> None:
    name, _, more = cases.CASES[number]
    wanted = EXPECTED[cases.key(number)]
    function = getattr(functional, name)
    compared(function(*operands(number, "float64"), **more), wanted, 2e-6)
    given = operands(number, "float32")
    compared(function(*given, **more), wanted, 3e-5)
    first = next(k for k, case in enumerate(cases.CASES) if case[0] == name)
    if number == first:
        compared(ms.jit(lambda *xs: function(*xs, **more))(*given), wanted, 3e-5)
    for also in ALIASES.get(name, "").split():
        if set(more) <= set(inspect.signature(getattr(functional, also)).parameters):
            given = operands(number, "float64")
            result = getattr(functional, also)(*given, **more)
            compared(result, wanted, 2e-6)
            assert (result is given[0]) == (also.endswith("_") or also.startswith("inplace"))


@pytest.mark.parametrize("number", [n for n in NUMBERS if EXPECTED[cases.key(n.values[0])]["grads"]])
def test_derivatives(number: int) -> None:
    name, specs, more = cases.CASES[number]
    wrt = tuple(k for k, s in enumerate(specs) if s is not None and isinstance(s[0], int))

    def loss(*xs: Any) -> Any:
        total: Any = 0.0
        for result in flatten(getattr(functional, name)(*xs, **more))[0]:
            if result.dtype.is_floating:
                weight = np.array(cases.weight(result.size)).reshape(result.shape)
                total = total + ms.ops.sum(result * ms.Tensor(weight))
        return total

    found = ms.grad(loss, wrt)(*operands(number, "float64"))
    found = found if isinstance(found, tuple) else (found,)
    for gradient, want in zip(found, EXPECTED[cases.key(number)]["grads"]):
        np.testing.assert_allclose(gradient.asnumpy().reshape(-1), want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("which", range(len(cases.UNPOOLED)))
def test_unpooling(which: int) -> None:
    shape, more = cases.UNPOOLED[which]
    x = ms.Tensor(np.array(cases.operand(shape, which)[2]).reshape(shape))
    values, places = functional.max_pool2d(x, 2, return_indices=True)
    compared(functional.max_unpool2d(values, places, **more), EXPECTED[f"unpool {which}"], 1e-6)
    gradient = ms.grad(lambda v: ms.ops.sum(functional.max_unpool2d(v, places, **more) * 2.0))(values)
    np.testing.assert_array_equal(gradient.asnumpy(), np.full(values.shape, 2.0))


def test_other_names() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5.5
    t = mint.Tensor(x)
    assert t.shape == (3, 4) and t.dtype is ms.float32
    np.testing.assert_array_equal(t.asnumpy(), x)
    np.testing.assert_array_equal(functional.broadcast_to(t, (2, 3, 4)).asnumpy(), np.broadcast_to(x, (2, 3, 4)))
    np.testing.assert_array_equal(functional.clamp(t, -1.0, 2.0).asnumpy(), np.clip(x, -1, 2))
    np.testing.assert_array_equal(functional.flatten(t).asnumpy(), x.reshape(-1))
    np.testing.assert_array_equal(mint.flatten_ext(t).asnumpy(), x.reshape(-1))
    np.testing.assert_allclose(functional.norm_ext(t).asnumpy(), np.linalg.norm(x), rtol=1e-6)
    np.testing.assert_allclose(functional.norm_ext(t, 2, 1).asnumpy(), np.linalg.norm(x, axis=1), rtol=1e-6)
    np.testing.assert_allclose(mint.cdist_(t, t).asnumpy()[0], [0, 8, 16], rtol=1e-5, atol=1e-4)
    assert mint.equal_ext_op(t, t).item() is True and mint.equal_ext_op(t, t + 1).item() is False
    assert mint.equal_ext_op(t, t[0]).item() is False
    exponential = np.exp(x - x.max(0))
    np.testing.assert_allclose(mint.softmax_ext(t, 0).asnumpy(), exponential / exponential.sum(0), rtol=1e-5)
    np.testing.assert_allclose(mint.npu_gelu(t, "tanh").asnumpy(), functional.gelu(t, approximate="tanh").asnumpy())
    assert mint.squeeze_impl(ms.ops.ones((1, 2, 1)), (0, 2)).shape == (2,)
    assert mint.jit_forbidden_register(len) is len and mint.jit_view_unsupported(len) is len
    with pytest.raises(TypeError, match="function"):
        mint.jit_view_unsupported(3)
    np.testing.assert_array_equal(mint.special.round_op(ms.Tensor([2.25, 3.75]), 1).asnumpy(), np.float32([2.2, 3.8]))
    image = ms.Tensor(x.reshape(1, 1, 3, 4))
    for function, mode in ((mint.nn.upsample_nearest2d_op, "nearest"), (mint.nn.upsample_bilinear2d_op, "bilinear")):
        for more in ({"output_size": (5, 6)}, {"output_size": None, "scales": (2.0, 1.5)}):
            wanted = functional.interpolate(image, more["output_size"], more.get("scales"), mode)
            np.testing.assert_array_equal(function(image, **more).asnumpy(), wanted.asnumpy())


def test_dropout_in_training() -> None:
    ms.set_seed(3)
    x = ms.ops.ones((40, 50))
    kept = functional.dropout(x, 0.25).asnumpy()
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)} and abs((kept == 0).mean() - 0.25) < 0.05
    channels = functional.dropout2d(ms.ops.ones((20, 10, 2, 2)), 0.5, inplace=True).asnumpy()
    assert (channels.min((2, 3)) == channels.max((2, 3))).all() and 60 < (channels[:, :, 0, 0] == 0).sum() < 140


def test_embedding_of_limited_norm() -> None:
    table = ms.Tensor([[3.0, 4.0], [0.3, 0.4]])
    index = ms.Tensor([0, 1, 0])
    np.testing.assert_allclose(
        functional.embedding(index, table, max_norm=1.0).asnumpy(), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], rtol=1e-5
    )
    gradient = ms.grad(lambda w: ms.ops.sum(functional.embedding(index, w, max_norm=1.0)))(table)
    np.testing.assert_allclose(gradient.asnumpy(), [[2, 2], [1, 1]], rtol=1e-6)


def test_errors() -> None:
    x = ms.ops.ones((1, 1, 4, 4))
    for error, match, call in (
        (
            ValueError,
            "stride 1",
            lambda: functional.conv1d(ms.ops.ones((1, 1, 4)), ms.ops.ones((1, 1, 2)), stride=2, padding="same"),
        ),
        (ValueError, "divisor_override", lambda: functional.avg_pool2d(x, 2, divisor_override=0)),
        (ValueError, "output_size", lambda: functional.adaptive_max_pool2d(x, (0, 1), True)),
        (ValueError, "num_classes", lambda: functional.one_hot(ms.Tensor([1]), 0)),
        (TypeError, "whole numbers", lambda: functional.one_hot(ms.Tensor([1.0]), 2)),
        (
            ValueError,
            "kernel_size",
            lambda: functional.max_unpool2d(x, ms.ops.zeros(x.shape, dtype=ms.int64), (1, 2, 3)),
        ),
        (ValueError, "mode", lambda: functional.interpolate(x, 3, mode="quintic")),
        (TypeError, "elu: an operand", lambda: functional.elu(1.0, inplace=True)),
        (ValueError, "reduction", lambda: functional.kl_div(x, x, "total", True)),
    ):
        with pytest.raises(error, match=match):
            call()
