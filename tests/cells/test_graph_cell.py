"""Cells around functions: what they give, their gradients and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops

CHECKED = {"nn.GraphCell": "NumPy"}
X = np.cos(np.arange(6)).reshape(2, 3)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_and_its_gradient(compiled: bool) -> None:
    def f(x: Any) -> Any:
        return ops.sum(ops.exp(x) * x)

    net = nn.GraphCell(ms.jit(f) if compiled else f)
    assert float(net(ms.Tensor(X))) == pytest.approx((np.exp(X) * X).sum())
    np.testing.assert_allclose(ms.grad(net)(ms.Tensor(X)).asnumpy(), np.exp(X) * (1 + X), rtol=1e-6)


def test_a_cell_with_new_parameters() -> None:
    w, b = np.sin(np.arange(12)).reshape(4, 3).astype(np.float32), np.arange(4, dtype=np.float32)
    net = nn.GraphCell(nn.Dense(3, 4), {"weight": ms.Tensor(w), "bias": ms.Tensor(b)})
    assert [p.name for p in net.trainable_params()] == ["weight", "bias"]
    np.testing.assert_allclose(net(ms.Tensor(X.astype(np.float32))).asnumpy(), X @ w.T + b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((3,), TypeError, "graph must be a function of tensors or a Cell, not int"),
        ((ops.exp, {"w": ms.Tensor(1.0)}), ValueError, "no parameter 'w'; it has none"),
        ((ops.exp, None, 7), ValueError, "obfuscated graphs are not supported"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        nn.GraphCell(*arguments)
