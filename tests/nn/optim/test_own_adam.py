"""Optimizers of the user's own on top of Adam, which prepare its step and let it apply it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn


class Clipped(nn.Adam):
    """Adam of gradients that are cut off."""

    def construct(self, gradients: Any) -> Any:
        gradients = self.flatten_gradients(gradients)
        gradients = tuple(ms.ops.clip_by_value(g, -0.5, 0.5) for g in gradients)
        if not self.use_offload:
            gradients = self.gradients_centralization(gradients)
        gradients = self._grad_sparse_indices_deduplicate(self.scale_grad(gradients))
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        self.beta1_power *= self.beta1
        self.beta2_power *= self.beta2
        return self._apply_adam(
            self._parameters, self.beta1_power, self.beta2_power, self.moment1, self.moment2, lr, gradients
        )


@pytest.mark.parametrize("options", [{}, {"use_nesterov": True}, {"use_amsgrad": True}])
def test_it_steps_as_adam(options: dict[str, bool]) -> None:
    found = []
    for kind in (Clipped, nn.Adam):
        weights = [ms.Parameter(ms.Tensor([1.0, 2.0]), name="v"), ms.Parameter(ms.Tensor([[3.0]]), name="w")]
        optimizer = kind(weights, 0.1, **options)
        assert (optimizer.use_lazy, optimizer.use_offload, optimizer.use_locking) == (False, False, False)
        for k in range(3):
            optimizer((ms.Tensor([0.1 * k, -0.3]), ms.Tensor([[0.2]])))
        found.append([w.asnumpy() for w in weights] + [optimizer.beta1_power.asnumpy()])
    for own, known in zip(*found):
        np.testing.assert_allclose(own, known, rtol=1e-6)


def test_a_rate_for_each_parameter() -> None:
    v, w = (ms.Parameter(ms.Tensor([1.0]), name=name) for name in "vw")
    optimizer = Clipped([{"params": [v], "lr": 0.1}, {"params": [w], "lr": 0.2}], 0.3)
    optimizer((ms.Tensor([0.4]), ms.Tensor([0.4])))
    np.testing.assert_allclose([v.asnumpy()[0], w.asnumpy()[0]], [0.9, 0.8], rtol=1e-5)
