"""Activation layers against formulas in float64: values in every floating type, eagerly and
compiled, and derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import mycel as ms
from mycel import nn
from tests.meaning import A, Checks
from tests.nn.cases import wave

checks = Checks("NumPy")
CHECKED = {"nn.PReLU": "NumPy", "nn.RReLU": "NumPy", "nn.get_activation": "NumPy"}

KINDS = "float64 float32 float16"
SHAPES = ((A(3, 5, low=-4.0, high=4.0),), (A(2, 1, 7, low=-8.0, high=8.0),), (A(0, 3),), (A(1),))


def sigmoid(x: Any) -> Any:
    return scipy.special.expit(x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x))


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def glu(x: Any, axis: int = -1) -> Any:
    a, b = np.split(x, 2, axis)
    return a * sigmoid(b)


def add(name: str, expected: Any, shapes: Any = SHAPES, tolerance: float = 2.0, **init: Any) -> None:
    checks.add(f"nn.{name}", expected, *shapes, init=init, dtypes=KINDS, tolerance=tolerance)


add("ReLU", lambda x: np.maximum(x, 0))
add("ReLU6", lambda x: np.clip(x, 0, 6))
add("ELU", elu)
add("CELU", elu)
add("CELU", lambda x: np.maximum(x, 0) + np.minimum(0.7 * np.expm1(x / 0.7), 0), alpha=0.7)
add("SeLU", lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772))
add("GELU", tanh_gelu)
add("GELU", lambda x: x * scipy.special.ndtr(x), approximate=False)
add("FastGelu", lambda x: x / (1 + np.exp(-1.702 * np.abs(x))) * np.exp(0.851 * (x - np.abs(x))))
add("SiLU", lambda x: x * sigmoid(x))
add("Sigmoid", sigmoid)
add("LogSigmoid", lambda x: -np.logaddexp(0, -x))
add("Tanh", np.tanh)
add("Tanhshrink", lambda x: x - np.tanh(x))
add("Mish", lambda x: x * np.tanh(np.logaddexp(0, x)))
add("Softsign", lambda x: x / (1 + np.abs(x)))
add("HSwish", lambda x: x * np.clip(x + 3, 0, 6) / 6)
add("HSigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1))
add("HShrink", lambda x: np.where(np.abs(x) > 0.5, x, 0))
add("HShrink", lambda x: np.where(np.abs(x) > 1.25, x, 0), lambd=1.25)
add("SoftShrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0))
add("SoftShrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 1.25, 0), lambd=1.25)
add("Hardtanh", lambda x: np.clip(x, -1, 1))
add("Hardtanh", lambda x: np.clip(x, -0.3, 2.1), min_val=-0.3, max_val=2.1)
add("LeakyReLU", lambda x: np.where(x > 0, x, 0.2 * x))
add("LeakyReLU", lambda x: np.where(x > 0, x, 0.05 * x), alpha=0.05)
add("Threshold", lambda x: np.where(x > 0.5, x, 7.0), threshold=0.5, value=7.0)

ROWS = ((A(3, 5, low=-4.0, high=4.0),), (A(2, 1, 4, low=-30.0, high=30.0),), (A(2, 1),))
for axis in (-1, 0):
    add("Softmax", lambda x, a=axis: scipy.special.softmax(x, a), ROWS, axis=axis)
    add("Softmin", lambda x, a=axis: scipy.special.softmax(-x, a), ROWS, axis=axis)
    add("LogSoftmax", lambda x, a=axis: scipy.special.log_softmax(x, a), ROWS, axis=axis)
add("Softmax2d", lambda x: scipy.special.softmax(x, -3), ((A(2, 3, 4, 5),), (A(3, 2, 2),), (A(1, 1, 2, 3),)))
add("GLU", glu, ((A(3, 4),), (A(2, 3, 6),), (A(2),), (A(0, 2),)))
add("GLU", lambda x: glu(x, 0), ((A(4, 3),), (A(2, 1),), (A(6, 2, 2),)), axis=0)

NAMED = {
    "softmin": lambda x: scipy.special.softmax(-x, -1),
    "softmax": lambda x: scipy.special.softmax(x, -1),
    "logsoftmax": lambda x: scipy.special.log_softmax(x, -1),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "silu": lambda x: x * sigmoid(x),
    "tanh": np.tanh,
    "tanhshrink": lambda x: x - np.tanh(x),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "gelu": tanh_gelu,
    "elu": elu,
    "sigmoid": sigmoid,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "prelu": lambda x: np.where(x > 0, x, 0.25 * x),
    "leakyrelu": lambda x: np.where(x > 0, x, 0.2 * x),
    "hswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "logsigmoid": lambda x: -np.logaddexp(0, -x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "hshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
}
test_values, test_gradients = checks.tests()


@pytest.mark.parametrize("name", list(NAMED))
def test_functions_by_name(name: str) -> None:
    x = wave(3, 4, scale=3.0)
    np.testing.assert_allclose(
        nn.get_activation(name)(ms.Tensor(x)).asnumpy(), NAMED[name](x.astype(np.float64)), rtol=2e-5, atol=2e-6
    )


@pytest.mark.parametrize("dtype", [ms.float32, ms.float16])
@pytest.mark.parametrize("shape, channel", [((3, 4), 4), ((2, 3, 4, 5), 3), ((2, 3), 1), ((5,), 1), ((0, 2), 2)])
def test_trained_slopes(shape: tuple[int, ...], channel: int, dtype: Any) -> None:
    layer = nn.PReLU(channel, [0.1 * (k + 1) for k in range(channel)])
    x = ms.Tensor(wave(*shape, scale=3.0)).astype(dtype)
    value = x.asnumpy().astype(np.float64)
    slopes = layer.w.asnumpy().astype(np.float64)
    slope = slopes.reshape(channel, *(1,) * (len(shape) - 2)) if len(shape) > 1 else slopes
    found = layer(x)
    assert found.dtype is dtype
    near = 2e-3 if dtype is ms.float16 else 1e-6
    np.testing.assert_allclose(found.asnumpy(), np.where(value > 0, value, slope * value), rtol=near, atol=1e-7)
    np.testing.assert_allclose(ms.jit(lambda a: layer(a))(x).asnumpy(), found.asnumpy(), rtol=near)
    weights = np.cos(np.arange(value.size)).reshape(shape)
    by_x, by_w = ms.grad(
        lambda a: ms.ops.sum(layer(a) * ms.Tensor(weights).astype(dtype)), 0, layer.trainable_params()
    )(x)
    near = 2e-2 if dtype is ms.float16 else 1e-5
    np.testing.assert_allclose(
        by_x.asnumpy(), weights * np.where(value > 0, 1, slope * np.ones(shape)), rtol=near, atol=near
    )
    part = weights * np.minimum(value, 0)
    wanted = part.sum(tuple(a for a in range(len(shape)) if a != 1)) if channel > 1 else part.sum().reshape(1)
    np.testing.assert_allclose(by_w[0].asnumpy(), wanted, rtol=near, atol=near)


@pytest.mark.parametrize("shape", [(400,), (20, 30), (2, 3, 100)])
def test_random_slopes_in_training_and_their_mean_otherwise(shape: tuple[int, ...]) -> None:
    ms.set_seed(5)
    x = wave(*shape, scale=3.0).astype(np.float64)
    layer = nn.RReLU(0.2, 0.6)
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), np.where(x > 0, x, 0.4 * x), rtol=1e-6)
    layer.set_train()
    slopes = layer(ms.Tensor(x)).asnumpy() / x
    assert (slopes[x > 0] == 1).all()
    random = slopes[x < 0]
    assert random.min() >= 0.2 - 1e-6 and random.max() <= 0.6 + 1e-6
    assert abs(random.mean() - 0.4) < 0.03 and abs(random.std() - 0.4 / np.sqrt(12)) < 0.03
    again = layer(ms.Tensor(x)).asnumpy() / x
    assert not np.allclose(again[x < 0], random)
