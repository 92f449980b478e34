"""Programs drawn at random: the native engine against NumPy, derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.loops.evaluation import run
from mycel._src.compiler.prims.base import REGISTRY
from mycel._src.compiler.prims.loops import loops
from mycel._src.tensors.core import eager
from tests.te.random_programs import SIZE, drawn

STEP = 1e-6
SEEDS = [*range(24), 70, 108, 282, 297, 317]


def evaluated(program: Any, arrays: list[Any]) -> Any:
    return run(program, arrays, lambda name: REGISTRY[name].reference)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn(seed: int) -> None:
    program, rng = drawn(seed), np.random.default_rng(seed)
    arrays = [rng.standard_normal((SIZE, SIZE)), rng.standard_normal(SIZE)]
    expected = evaluated(program, arrays)
    tensors = [ms.Tensor(a) for a in arrays]
    for found, value in zip(eager.apply(loops, *tensors, program=program), expected):
        np.testing.assert_allclose(found.asnumpy(), value, rtol=1e-9, atol=1e-9)
    weights = [rng.standard_normal(e.shape) for e in expected]

    def total(*tensors: Any) -> Any:
        return sum((ms.Tensor(w) * f).sum() for w, f in zip(weights, eager.apply(loops, *tensors, program=program)))

    for k, gradient in enumerate(ms.grad(total, (0, 1))(*tensors)):
        step = rng.standard_normal(arrays[k].shape)

        def at(distance: float, k: int = k, step: Any = step) -> float:
            moved = list(arrays)
            moved[k] = arrays[k] + distance * step
            return float(sum((w * e).sum() for w, e in zip(weights, evaluated(program, moved))))

        above, below = (at(STEP) - at(0)) / STEP, (at(0) - at(-STEP)) / STEP
        if abs(above - below) < 1e-3 * max(1, abs(above)):  # else a condition changes right here
            along = float((gradient.asnumpy() * step).sum())
            assert along == pytest.approx((above + below) / 2, rel=1e-4, abs=1e-4)
