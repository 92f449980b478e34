"""Weights of few bits alone, values rounded as they come, and GPTQ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.quantisation import quantise_weights
from mycel.quantisation.weight_rounding import gptq

RNG = np.random.default_rng(0)


def network() -> Any:
    ms.set_seed(2)
    return nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(64, 32), nn.GELU(), nn.Dense(32, 10))


X = RNG.normal(size=(9, 2, 4, 4)).astype(np.float32)


@pytest.mark.parametrize("bits", [8, 4, 3])
@pytest.mark.parametrize("group_size", [None, 16])
@pytest.mark.parametrize("method", ["nearest", "gptq"])
def test_weights_are_near_and_small(bits: int, group_size: int | None, method: str) -> None:
    net = network().set_train(False)
    made = quantise_weights(net, [X[:5], X[5:]], bits=bits, group_size=group_size, method=method)
    wanted = net(ms.Tensor(X)).asnumpy()
    for rows in (9, 1):
        found = made(ms.Tensor(X[:rows])).asnumpy()
        assert np.abs(found - wanted[:rows]).max() < {8: 0.02, 4: 0.3, 3: 0.7}[bits] * np.abs(wanted).max()
    assert made.report.bytes < made.report.float_bytes * (0.45 if bits == 8 else 0.35)


def test_values_are_rounded_as_they_come() -> None:
    net = network().set_train(False)
    made = quantise_weights(net, X, values="dynamic")
    # Rows of any size keep their precision.
    scaled = X * np.float32([10.0**k for k in range(-4, 5)])[:, None, None, None]
    wanted, found = net(ms.Tensor(scaled)).asnumpy(), made(ms.Tensor(scaled)).asnumpy()
    assert (np.abs(found - wanted).max(1) <= 0.05 * np.abs(wanted).max(1)).all()
    assert np.isfinite(made(ms.Tensor(np.zeros_like(X))).asnumpy()).all()


def test_gptq_is_nearer_in_results() -> None:
    x = RNG.normal(size=(400, 8)) @ RNG.normal(size=(8, 32)) + 0.1 * RNG.normal(size=(400, 32))
    w = RNG.normal(size=(32, 12)).astype(np.float32)

    def error(levels: Any, scales: Any, size: int) -> float:
        real = levels.reshape(-1, size, 12) * scales[:, None].astype(np.float64)
        return float(((x @ (real.reshape(32, 12) - w)) ** 2).mean())

    for bits, size in ((4, 32), (3, 8), (2, 32)):
        found = error(*gptq(w, x.T @ x, bits, size), size)
        nearest = error(*gptq(w, np.eye(32), bits, size), size)
        assert found < 0.7 * nearest


def test_inputs_that_are_never_there() -> None:
    h = np.diag([1.0, 0.0, 2.0])
    levels, scales = gptq(np.ones((3, 2), np.float32), h, 8, 3)
    assert (levels[1] == 0).all() and np.isfinite(scales).all()


def test_what_cannot_be_is_refused() -> None:
    for arguments, text in (
        ({"bits": 16}, "bits must be an int from 2 to 8, not 16"),
        ({"group_size": 0}, "group_size must be None or an int"),
        ({"group_size": 7}, "groups of 7 do not divide the 64 inputs"),
        ({"method": "best"}, "method must be"),
        ({"values": "static"}, "values must be"),
        ({"values": "dynamic", "group_size": 8}, "leave group_size out"),
    ):
        with pytest.raises(ValueError, match=text):
            quantise_weights(network(), X, **arguments)
    with pytest.raises(
        ms.errors.Unsupported if hasattr(ms.errors, "Unsupported") else Exception, match="has no product"
    ):
        quantise_weights(nn.ReLU(), X)
