"""Optimizers in PYNATIVE_MODE: the calls that are compiled do what those before do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.nn.optim import compiled_step as shared

OURS: dict[str, Any] = {
    "Adam": lambda p: nn.Adam(p, 1e-2, weight_decay=0.01),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 1e-2, weight_decay=0.1),
    "Momentum": lambda p: nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9),
    "SGD": lambda p: nn.SGD(p, 0.1, momentum=0.5, nesterov=True),
    "RMSProp": lambda p: nn.RMSProp(p, [0.1, 0.05, 0.02]),
    "Adagrad": lambda p: nn.Adagrad(p, learning_rate=0.1),
    "Lamb": lambda p: nn.Lamb(p, 0.1),
}


def parameters(seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    shapes = ((5, 4), (4,), (2, 3, 3))
    return [
        ms.Parameter(ms.Tensor(random.normal(size=s).astype(np.float32)), name=f"p{k}") for k, s in enumerate(shapes)
    ]


def gradients(step: int, given: list[Any]) -> tuple[Any, ...]:
    random = np.random.default_rng(100 + step)
    return tuple(ms.Tensor(random.normal(size=p.shape).astype(np.float32)) for p in given)


def trained(make: Any, steps: int = 9) -> tuple[list[Any], Any]:
    given = parameters()
    optimizer = make(given)
    for step in range(steps):
        optimizer(gradients(step, given))
    return [p.asnumpy() for p in given], optimizer


@pytest.mark.parametrize("name", OURS)
def test_compiled_steps_are_those_of_operations_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, optimizer = trained(OURS[name])
    assert optimizer._compiled_call is not None
    monkeypatch.setattr(shared, "COMPILED_FROM", 1000)
    eager, other = trained(OURS[name])
    assert other._compiled_call is None
    for a, b in zip(compiled, eager):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert int(optimizer.global_step.asnumpy()[0]) == int(other.global_step.asnumpy()[0]) == 9


def test_a_rate_that_is_set_between_calls_is_used() -> None:
    given = [ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")]
    optimizer = nn.SGD(given, 0.5)
    for _ in range(5):
        optimizer((ms.Tensor([0.0, 0.0]),))
    optimizer.learning_rate.set_data(ms.Tensor(0.25))
    optimizer((ms.Tensor([1.0, 4.0]),))
    np.testing.assert_allclose(given[0].asnumpy(), [0.75, 1.0])


def test_a_rate_of_the_users_own_is_called_at_each_step() -> None:
    seen: list[int] = []

    class Rate(nn.learning_rate_schedule.LearningRateSchedule):
        def construct(self, global_step: Any) -> Any:
            seen.append(int(global_step.asnumpy()[0]))
            return ms.Tensor(0.5) / (global_step + 1)

    given = [ms.Parameter(ms.Tensor([1.0]), name="w")]
    optimizer = nn.SGD(given, Rate())
    for _ in range(6):
        optimizer((ms.Tensor([1.0]),))
    assert seen == list(range(6))
    np.testing.assert_allclose(given[0].asnumpy(), [1 - sum(0.5 / k for k in range(1, 7))], rtol=1e-6)


def test_an_optimizer_of_the_users_own_runs_as_python_does() -> None:
    calls: list[int] = []

    class Descent(nn.Optimizer):
        def construct(self, gradients: Any) -> bool:
            calls.append(len(calls))
            for p, g in zip(self.parameters, gradients):
                p.set_data(p - self.get_lr() * g)
            return True

    given = [ms.Parameter(ms.Tensor([1.0]), name="w")]
    optimizer = Descent(0.1, given)
    for _ in range(6):
        optimizer((ms.Tensor([1.0]),))
    assert calls == list(range(6)) and optimizer._compiled_call is None
    np.testing.assert_allclose(given[0].asnumpy(), [0.4], rtol=1e-5)


def test_hooks_are_called_at_each_step() -> None:
    calls: list[int] = []
    given = [ms.Parameter(ms.Tensor([1.0]), name="w")]
    optimizer = nn.SGD(given, 0.1)
    optimizer.register_forward_pre_hook(lambda cell, args: calls.append(1))
    for _ in range(6):
        optimizer((ms.Tensor([1.0]),))
    assert len(calls) == 6
