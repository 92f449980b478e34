"""Calls of the operations that update parameters, whose results with MindSpore 2.10 are recorded in
``expected_updates.json``.

A case is an operation's name, the arguments of its constructor, and the inputs of its call: a name
for a parameter or tensor, a number, or ``T(number)`` for a tensor of one element. `run` calls it
twice, with two gradients, and gives what the last call returned and every parameter after it. The
module `ms` is an argument, so the same code ran with MindSpore to record the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CALLS = 2


class T(NamedTuple):
    """A tensor of a number; of shape (1,) where `one`."""

    value: float
    one: bool = False
    dtype: str = "float32"


class Case(NamedTuple):
    """One operation with its arguments and inputs."""

    operation: str
    init: dict[str, Any]
    inputs: tuple[Any, ...]


def O(value: float) -> T:  # noqa: E743
    """A tensor of shape (1,)."""
    return T(value, True)


VALUES = {
    "p": np.cos(np.arange(12)).reshape(4, 3),
    "m": 0.3 * np.sin(1 + np.arange(12)).reshape(4, 3),
    "n": 0.2 * np.cos(2 + 0.5 * np.arange(12)).reshape(4, 3),
    "v": 0.1 + 0.5 * np.abs(np.sin(2 + np.arange(12))).reshape(4, 3),
    "w": 0.7 + 0.2 * np.cos(3 + np.arange(12)).reshape(4, 3),
    "s": np.ones((4, 3)),
    "row": 0.4 + 0.1 * np.arange(4.0),
    "col": 0.5 + 0.1 * np.arange(3.0),
}
NESTEROV = {"use_nesterov": True}
ADAM = ("p", "m", "v", 0.9, 0.999, 0.1, 0.9, 0.999, 1e-3, "g")
SPARSE_ADAM = ("p", "m", "v", O(0.9), O(0.999), O(0.1), O(0.9), O(0.999), O(1e-3), "r", "i")
FTRL = {"lr": 0.1, "l1": 0.05, "l2": 0.2, "lr_power": -0.5}
LARS = ("p", "g", T(6.0), T(2.0), T(0.1), T(0.5))
SGD = ("p", "g", T(0.1), "m", T(0.9), "s")

CASES: dict[str, Case] = {
    "Adam": Case("Adam", {}, ADAM),
    "Adam_nesterov": Case("Adam", NESTEROV, ADAM),
    "AdamNoUpdateParam": Case(
        "AdamNoUpdateParam", {}, ("m", "v", T(0.9), T(0.999), T(0.1), T(0.9), T(0.999), T(1e-3), "g")
    ),
    "AdamNoUpdateParam_nesterov": Case(
        "AdamNoUpdateParam", NESTEROV, ("m", "v", T(0.9), T(0.999), T(0.1), T(0.9), T(0.999), T(1e-3), "g")
    ),
    "AdamWeightDecay": Case("AdamWeightDecay", {}, ("p", "m", "v", 0.1, 0.9, 0.999, 1e-3, 0.2, "g")),
    "ApplyAdaMax": Case("ApplyAdaMax", {}, ("p", "m", "v", 0.9, 0.1, 0.9, 0.99, 1e-3, "g")),
    "ApplyAdadelta": Case("ApplyAdadelta", {}, ("p", "v", "w", 0.1, 0.8, 1e-3, "g")),
    "ApplyAdagrad": Case("ApplyAdagrad", {}, ("p", "v", 0.1, "g")),
    "ApplyAdagrad_fixed": Case("ApplyAdagrad", {"update_slots": False}, ("p", "v", 0.1, "g")),
    "ApplyAdagradDA": Case("ApplyAdagradDA", {}, ("p", "m", "v", "g", 0.1, 0.05, 0.2, 2)),
    "ApplyAdagradDA_without_l1": Case("ApplyAdagradDA", {}, ("p", "m", "v", "g", 0.1, 0.0, 0.2, 2)),
    "ApplyAdagradV2": Case("ApplyAdagradV2", {"epsilon": 0.1}, ("p", "v", 0.1, "g")),
    "ApplyAdagradV2_fixed": Case("ApplyAdagradV2", {"epsilon": 0.1, "update_slots": False}, ("p", "v", 0.1, "g")),
    "ApplyAdamWithAmsgrad": Case(
        "ApplyAdamWithAmsgrad",
        {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3},
        ("p", "m", "v", "w", T(0.9), T(0.95), T(0.1), "g"),
    ),
    "ApplyAdamWithAmsgradV2": Case(
        "ApplyAdamWithAmsgradV2", {}, ("p", "m", "v", "w", T(0.9), T(0.95), T(0.1), T(0.8), T(0.9), T(1e-3), "g")
    ),
    "ApplyAddSign": Case("ApplyAddSign", {}, ("p", "m", 0.1, 1.2, 0.9, 0.8, "g")),
    "ApplyCenteredRMSProp": Case("ApplyCenteredRMSProp", {}, ("p", "n", "w", "m", "g", 0.1, 0.9, 0.8, 1e-2)),
    "ApplyFtrl": Case("ApplyFtrl", {}, ("p", "v", "m", "g", 0.1, 0.05, 0.2, -0.5)),
    "ApplyFtrl_power": Case("ApplyFtrl", {}, ("p", "v", "m", "g", 0.1, 0.05, 0.2, -0.7)),
    "ApplyGradientDescent": Case("ApplyGradientDescent", {}, ("p", 0.1, "g")),
    "ApplyKerasMomentum": Case("ApplyKerasMomentum", {}, ("p", "m", T(0.1), "g", T(0.9))),
    "ApplyKerasMomentum_nesterov": Case("ApplyKerasMomentum", NESTEROV, ("p", "m", T(0.1), "g", T(0.9))),
    "ApplyMomentum": Case("ApplyMomentum", {}, ("p", "m", 0.1, "g", 0.9)),
    "ApplyMomentum_nesterov": Case("ApplyMomentum", NESTEROV, ("p", "m", 0.1, "g", 0.9)),
    "ApplyMomentum_scaled": Case("ApplyMomentum", {"gradient_scale": 0.5}, ("p", "m", 0.1, "g", 0.9)),
    "ApplyPowerSign": Case("ApplyPowerSign", {}, ("p", "m", 0.1, 1.1, 0.9, 0.8, "g")),
    "ApplyProximalAdagrad": Case("ApplyProximalAdagrad", {}, ("p", "v", 0.1, 0.2, 0.3, "g")),
    "ApplyProximalGradientDescent": Case("ApplyProximalGradientDescent", {}, ("p", 0.1, 0.5, 0.3, "g")),
    "ApplyRMSProp": Case("ApplyRMSProp", {}, ("p", "v", "m", 0.1, "g", 0.9, 0.8, 1e-2)),
    "FusedAdaFactor": Case(
        "FusedAdaFactor",
        {"enable_scale_parameter": True, "enable_weight_decay": True},
        ("e", 1.0, 0.9, 0.8, 1e-2, 0.03, "g", "p", "m", "row", "col", "v"),
    ),
    "FusedAdaFactor_moment": Case(
        "FusedAdaFactor",
        {"enable_first_moment": True},
        ("e", 1.0, 0.9, 0.8, 1e-2, 0.03, "g", "p", "m", "row", "col", "v"),
    ),
    "FusedAdaFactorWithGlobalNorm": Case(
        "FusedAdaFactorWithGlobalNorm", {}, ("e", 1.0, 0.9, 0.8, 1e-2, 0.03, "g", "p", "m", "row", "col", "v", T(2.0))
    ),
    "FusedCastAdamWeightDecay": Case(
        "FusedCastAdamWeightDecay", {}, ("p", "m", "v", 0.1, 0.9, 0.999, 1e-3, 0.2, "h", T(2.0))
    ),
    "FusedSparseAdam": Case("FusedSparseAdam", {}, SPARSE_ADAM),
    "FusedSparseAdam_nesterov": Case("FusedSparseAdam", NESTEROV, SPARSE_ADAM),
    "FusedSparseFtrl": Case("FusedSparseFtrl", FTRL, ("p", "v", "m", "r", "i")),
    "FusedSparseLazyAdam": Case("FusedSparseLazyAdam", {}, SPARSE_ADAM),
    "FusedSparseLazyAdam_nesterov": Case("FusedSparseLazyAdam", NESTEROV, SPARSE_ADAM),
    "FusedSparseProximalAdagrad": Case("FusedSparseProximalAdagrad", {}, ("p", "v", T(0.1), T(0.2), T(0.3), "r", "i")),
    "FusedWeightScaleApplyMomentum": Case(
        "FusedWeightScaleApplyMomentum", {}, (T(0.1), T(0.5), "p", "m", 0.1, "g", 0.9)
    ),
    "LARSUpdate": Case("LARSUpdate", {"hyperpara": 0.2}, LARS),
    "LARSUpdate_clipped": Case("LARSUpdate", {"hyperpara": 0.2, "use_clip": True}, LARS),
    "SGD": Case("SGD", {}, SGD),
    "SGD_dampening": Case("SGD", {"dampening": 0.3, "weight_decay": 0.1}, SGD),
    "SGD_nesterov": Case("SGD", {"nesterov": True}, SGD),
    "SparseApplyAdadelta": Case("SparseApplyAdadelta", {"epsilon": 1e-3}, ("p", "v", "w", 0.1, 0.8, "g", "k")),
    "SparseApplyAdagrad": Case("SparseApplyAdagrad", {"lr": 0.1}, ("p", "v", "q", "j")),
    "SparseApplyAdagrad_fixed": Case("SparseApplyAdagrad", {"lr": 0.1, "update_slots": False}, ("p", "v", "q", "j")),
    "SparseApplyAdagradV2": Case("SparseApplyAdagradV2", {"lr": 0.1, "epsilon": 0.1}, ("p", "v", "q", "j")),
    "SparseApplyAdagradV2_fixed": Case(
        "SparseApplyAdagradV2", {"lr": 0.1, "epsilon": 0.1, "update_slots": False}, ("p", "v", "q", "j")
    ),
    "SparseApplyFtrl": Case("SparseApplyFtrl", FTRL, ("p", "v", "m", "q", "j")),
    "SparseApplyFtrlV2": Case("SparseApplyFtrlV2", {**FTRL, "l2_shrinkage": 0.3}, ("p", "v", "m", "q", "j")),
    "SparseApplyProximalAdagrad": Case("SparseApplyProximalAdagrad", {}, ("p", "v", T(0.1), T(0.2), T(0.3), "g", "k")),
    "SparseApplyRMSProp": Case(
        "SparseApplyRMSProp", {"rho": 0.9, "momentum": 0.8, "epsilon": 1e-2}, ("p", "v", "m", T(0.1), "g", "k")
    ),
}


def _input(ms: Any, given: str | float | T, parameters: dict[str, Any], call: int) -> Any:
    if isinstance(given, T):
        return ms.Tensor(np.full((1,) if given.one else (), given.value, given.dtype))
    if not isinstance(given, str):
        return given
    if given in VALUES:
        if given not in parameters:
            parameters[given] = ms.Parameter(ms.Tensor(VALUES[given].astype(np.float32)), name=given)
        return parameters[given]
    gradient = np.sin(1.7 * np.arange(12) + call + 0.3).reshape(4, 3)
    return ms.Tensor(
        {
            "e": lambda: np.array([1e-3, 1e-2], np.float32),
            "g": lambda: gradient.astype(np.float32),
            "h": lambda: gradient.astype(np.float16),
            "i": lambda: np.array([2, 0, 2], np.int32),
            "j": lambda: np.array([3, 0], np.int32),
            "k": lambda: np.array([3, 0, 2, 1], np.int32),
            "q": lambda: gradient[:2].astype(np.float32),
            "r": lambda: gradient[:3].astype(np.float32),
        }[given]()
    )


def run(ms: Any, case: Case, wrapped: Callable[[Any], Any] = lambda operation: operation) -> dict[str, Any]:
    """What the last call returned, and the parameters after it by their names, flat."""
    operation = wrapped(getattr(ms.ops, case.operation)(**case.init))
    parameters: dict[str, Any] = {}
    for call in range(CALLS):
        found = operation(*(_input(ms, given, parameters, call) for given in case.inputs))
    listed = list(found) if isinstance(found, tuple) else [found]
    return {
        "returned": [[float(v) for v in np.ravel(r.asnumpy())] for r in listed],
        "tuple": isinstance(found, tuple),
        "parameters": {name: [float(v) for v in np.ravel(p.asnumpy())] for name, p in parameters.items()},
    }
