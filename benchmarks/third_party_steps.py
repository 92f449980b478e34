"""Steps of training for third-party cases: losses are compared, and further steps timed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["classify", "descend", "stepper", "taken"]

_SECONDS: list[float] = []


def descend(step: Callable[..., Any], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return the losses that a step gives for rows of data, in order; then time it."""
    losses = np.array([_number(step(*row)) for row in rows])
    took = []
    for k in range(12):
        began = time.perf_counter()
        _number(step(*rows[k % len(rows)]))
        took.append(time.perf_counter() - began)
    _SECONDS[:] = [statistics.median(took[2:])]
    return {"losses": losses}


def taken() -> float | None:
    """Return the seconds of a step in the last `descend`, once."""
    return _SECONDS.pop() if _SECONDS else None


def _number(loss: Any) -> float:
    while isinstance(loss, (tuple, list)):
        loss = loss[0]
    return float(loss.asnumpy().reshape(-1)[0])


def stepper(loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """Return the step of an optimizer on a loss, compiled in graph mode."""
    import mindspore as ms

    differentiate = ms.value_and_grad(loss, None, optimizer.parameters)

    def step(*data: Any) -> Any:
        value, gradients = differentiate(*data)
        return ms.ops.depend(value, optimizer(gradients))

    return ms.jit(step) if ms.get_context("mode") == ms.GRAPH_MODE else step


def classify(network: Any, optimizer: Any) -> Callable[..., Any]:
    """Return a training step of a classifier, by the Cells that MindSpore has for it."""
    from mindspore import nn

    loss = nn.WithLossCell(network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    return nn.TrainOneStepCell(loss, optimizer).set_train()
