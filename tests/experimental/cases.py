"""The optimizers and schedulers whose values PyTorch 2.13 gave: names, options, and functions of
the step that both sides read alike.

`expected.json` has for each optimizer, by name and options, the parameters after 3 and after 10
steps, and for each scheduler the rates of both groups at 14 steps.
"""

from __future__ import annotations

import math
from typing import Any

SHAPES = ((2, 3), (2,))
STEPS = (3, 10)
EPOCHS = 14
RATES = (0.05, 0.2)

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.6, "t0": 4, "weight_decay": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "eps": 1e-3}),
    ("Adam", {}),
    ("Adam", {"betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"betas": (0.7, 0.95), "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-2}),
    ("RMSprop", {}),
    ("RMSprop", {"alpha": 0.8, "momentum": 0.5, "centered": True, "weight_decay": 0.1, "eps": 1e-2}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (0.02, 0.1), "maximize": True}),
]

SCHEDULERS: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}),
    ("LambdaLR", {"lr_lambda": "power"}),
    ("LambdaLR", {"lr_lambda": ["power", "shrink"]}),
    ("MultiplicativeLR", {"lr_lambda": "shrink"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3}),
    (
        "CyclicLR",
        {"base_lr": [0.01, 0.02], "max_lr": [0.1, 0.3], "step_size_up": 2, "step_size_down": 3, "mode": "triangular2"},
    ),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9}),
    ("SequentialLR", {"schedulers": [0, 2], "milestones": [5]}),
    ("SequentialLR", {"schedulers": [3, 7, 5], "milestones": [3, 8]}),
    ("ReduceLROnPlateau", {"patience": 1, "factor": 0.5, "min_lr": [0.02, 0.01]}),
    (
        "ReduceLROnPlateau",
        {"patience": 0, "factor": 0.5, "mode": "max", "threshold_mode": "abs", "threshold": 0.1, "cooldown": 2},
    ),
]

FUNCTIONS = {"power": lambda epoch: 0.95**epoch, "shrink": lambda epoch: 1 / (1 + 0.1 * epoch)}
METRICS = [3.0, 2.5, 2.6, 2.55, 2.5, 2.4, 2.45, 2.45, 2.45, 2.45, 2.0, 2.0, 2.1, 2.2]


def start(which: int) -> list[Any]:
    """The first values of a parameter, in row-major order."""
    return [math.sin(0.7 * i + which) for i in range(math.prod(SHAPES[which]))]


def gradient(which: int, step: int) -> list[Any]:
    """The gradient of a parameter at a step."""
    return [math.cos(1.3 * step + 0.9 * i + which) + 0.25 for i in range(math.prod(SHAPES[which]))]


def key(name: str, options: dict[str, Any]) -> str:
    """The entry of a case."""
    return f"{name} {sorted(options.items())}"


def scheduler(module: Any, optimizer: Any, name: str, options: dict[str, Any]) -> Any:
    """A scheduler of a library's module."""
    given = dict(options)
    if "lr_lambda" in given:
        chosen = given["lr_lambda"]
        given["lr_lambda"] = FUNCTIONS[chosen] if isinstance(chosen, str) else [FUNCTIONS[f] for f in chosen]
    if name == "SequentialLR":
        given["schedulers"] = [scheduler(module, optimizer, *SCHEDULERS[i]) for i in given["schedulers"]]
    return getattr(module, name)(optimizer, **given)
