"""Optimizer runs whose results with MindSpore 2.10 are recorded in ``expected.json``.

Each case makes an optimizer for two parameters; `run` takes five steps with fixed gradients and
gives the parameters after each step. The modules `ms` and `nn` are arguments, so the same code ran
with MindSpore to record the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 5


def _parameters(ms: Any) -> list[Any]:
    w = np.cos(np.arange(6, dtype=np.float32)).reshape(2, 3).astype(np.float32)
    b = np.sin(1 + np.arange(3, dtype=np.float32)).astype(np.float32)
    return [ms.Parameter(ms.Tensor(w), name="fc.weight"), ms.Parameter(ms.Tensor(b), name="bn.beta")]


def _gradients(ms: Any, step: int) -> dict[str, Any]:
    w = np.sin(1.7 * np.arange(6) + step).reshape(2, 3).astype(np.float32)
    b = (0.5 * np.cos(2.3 * np.arange(3) - step)).astype(np.float32)
    return {"fc.weight": ms.Tensor(w), "bn.beta": ms.Tensor(b)}


def _grouped(p: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"params": [p[1]], "lr": 0.3, **more}, {"params": [p[0]], "weight_decay": 0.1}, {"order_params": p}]


CASES: dict[str, Any] = {
    "momentum": lambda nn, p: nn.Momentum(p, 0.1, 0.9),
    "momentum_decay_scale": lambda nn, p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.1, loss_scale=4.0),
    "momentum_list": lambda nn, p: nn.Momentum(p, [0.1, 0.2, 0.05, 0.1, 0.3], 0.9),
    "momentum_groups": lambda nn, p: nn.Momentum(_grouped(p), 0.1, 0.9, weight_decay=0.01),
    "momentum_group_list": lambda nn, p: nn.Momentum(
        [{"params": [p[1]], "lr": [0.3, 0.2, 0.1, 0.05, 0.01]}, {"params": [p[0]]}], [0.1, 0.1, 0.1, 0.2, 0.2], 0.9
    ),
    "momentum_group_schedule": lambda nn, p: nn.Momentum(
        [{"params": [p[1]], "lr": nn.ExponentialDecayLR(0.3, 0.5, 2)}, {"params": [p[0]]}], 0.1, 0.9
    ),
    "momentum_schedule": lambda nn, p: nn.Momentum(p, nn.CosineDecayLR(0.01, 0.2, 4), 0.9),
    "sgd": lambda nn, p: nn.SGD(p, 0.1),
    "sgd_momentum": lambda nn, p: nn.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    "sgd_dampening": lambda nn, p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.3),
    "sgd_nesterov": lambda nn, p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.05, loss_scale=2.0),
    "sgd_groups": lambda nn, p: nn.SGD(_grouped(p), 0.1, momentum=0.5, weight_decay=0.01),
    "adam": lambda nn, p: nn.Adam(p, 0.1),
    "adam_decay": lambda nn, p: nn.Adam(p, 0.1, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.1, loss_scale=2.0),
    "adam_nesterov": lambda nn, p: nn.Adam(p, 0.1, use_nesterov=True),
    "adam_amsgrad": lambda nn, p: nn.Adam(p, 0.1, beta2=0.5, use_amsgrad=True),
    "adam_groups": lambda nn, p: nn.Adam(_grouped(p), 0.1),
    "lazy_adam": lambda nn, p: nn.LazyAdam(p, 0.1),
    "adam_weight_decay": lambda nn, p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.1),
    "adam_weight_decay_groups": lambda nn, p: nn.AdamWeightDecay(_grouped(p), 0.1, weight_decay=0.05),
    "adagrad": lambda nn, p: nn.Adagrad(p, learning_rate=0.1),
    "rmsprop": lambda nn, p: nn.RMSProp(p, 0.01),
    "rmsprop_momentum": lambda nn, p: nn.RMSProp(p, 0.01, 0.8, 0.7, 1e-3),
    "rmsprop_centered": lambda nn, p: nn.RMSProp(p, 0.01, 0.8, 0.7, 1e-3, centered=True),
    "proximal_adagrad": lambda nn, p: nn.ProximalAdagrad(p, learning_rate=0.1, l1=0.1, l2=0.2),
    "ftrl": lambda nn, p: nn.FTRL(p, learning_rate=0.1, l2=0.2),
    "ftrl_power": lambda nn, p: nn.FTRL(p, learning_rate=0.1, lr_power=-0.7, weight_decay=0.1),
    "adamax": lambda nn, p: nn.AdaMax(p, 0.1),
    "adadelta": lambda nn, p: nn.Adadelta(p, rho=0.8, epsilon=1e-3),
    "rprop": lambda nn, p: nn.Rprop(p, 0.1),
    "asgd": lambda nn, p: nn.ASGD(p, 0.1, lambd=0.01, t0=2.0, weight_decay=0.1),
    "adam_list": lambda nn, p: nn.Adam(p, [0.1, 0.2, 0.05, 0.1, 0.3], weight_decay=0.02),
    "adam_group_schedules": lambda nn, p: nn.Adam(
        [
            {"params": [p[0]], "lr": nn.PolynomialDecayLR(0.3, 0.1, 4, 0.5), "weight_decay": 0.2},
            {"params": [p[1]], "lr": nn.NaturalExpDecayLR(0.2, 0.5, 2)},
        ],
        nn.WarmUpLR(0.1, 3),
    ),
    "adam_weight_decay_schedule": lambda nn, p: nn.AdamWeightDecay(p, nn.InverseDecayLR(0.3, 0.5, 2), weight_decay=0.3),
    "rmsprop_groups": lambda nn, p: nn.RMSProp(_grouped(p), 0.01, 0.8, 0.5, 1e-3, loss_scale=2.0),
    "adagrad_groups": lambda nn, p: nn.Adagrad(_grouped(p), 0.2, 0.1, weight_decay=0.3, loss_scale=4.0),
    "proximal_adagrad_decay": lambda nn, p: nn.ProximalAdagrad(
        p, 0.3, 0.1, 0.01, 0.1, weight_decay=0.2, loss_scale=2.0
    ),
    "ftrl_decay_groups": lambda nn, p: nn.FTRL(
        [{"params": [p[1]], "weight_decay": 0.3}, {"params": [p[0]]}], learning_rate=0.1, weight_decay=0.1
    ),
    "adamax_groups": lambda nn, p: nn.AdaMax(_grouped(p), [0.1, 0.2, 0.05, 0.1, 0.3], 0.8, 0.9, 1e-3, loss_scale=2.0),
    "adadelta_groups": lambda nn, p: nn.Adadelta(_grouped(p), 0.5, 0.7, 1e-2, weight_decay=0.2),
    "rprop_groups": lambda nn, p: nn.Rprop(_grouped(p), 0.1, (0.3, 1.5), (0.01, 0.2), weight_decay=0.3),
    "asgd_groups": lambda nn, p: nn.ASGD(_grouped(p), [0.1, 0.2, 0.05, 0.1, 0.3], 0.1, 0.5, 1.0),
    "adafactor": lambda nn, p: nn.AdaFactor(p),
    "adafactor_warm": lambda nn, p: nn.AdaFactor(p, eps=(1e-3, 0.9), clip_threshold=0.5, warmup_init=True, beta1=None),
    "adafactor_rate": lambda nn, p: nn.AdaFactor(
        p, 0.1, decay_rate=0.5, scale_parameter=False, relative_step=False, beta1=None, weight_decay=0.1
    ),
    "adafactor_scaled": lambda nn, p: nn.AdaFactor(
        p, 0.1, relative_step=False, weight_decay=0.1, beta1=0.5, loss_scale=2.0
    ),
}


def run(ms: Any, case: str) -> list[list[float]]:
    """The parameters after each step, flat."""
    parameters = _parameters(ms)
    optimizer = CASES[case](ms.nn, parameters)
    found = []
    for step in range(STEPS):
        gradients = _gradients(ms, step)
        optimizer(tuple(gradients[p.name] for p in optimizer.parameters))
        found.append([float(v) for p in parameters for v in p.asnumpy().ravel()])
    return found
