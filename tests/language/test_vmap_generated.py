"""Random programs, vectorised: values and gradients for a batch of inputs are those of plain Python
for one input after another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation.pytree import flatten
from tests.language.generate import INPUTS, Case, define, source, weighted
from tests.language.harness import same

SHARED = tuple((*given[:2], INPUTS[0][2], given[3]) for given in INPUTS)


def check_vectorised(text: str, gradients: bool = True) -> int:
    """Compare a program with its oracle, with all arguments mapped and with the vector shared; the
    number of inputs checked.
    """
    fn = define(text)

    def value(*args: Any) -> Any:
        return weighted(fn(*args))

    return sum(
        _check_batch(fn, value, inputs, axes, gradients)
        for inputs, axes in ((INPUTS, (0,) * 4), (SHARED, (0, 0, None, 0)))
    )


def _check_batch(fn: Any, value: Any, inputs: Any, axes: tuple[Any, ...], gradients: bool) -> int:
    cases = [c for c in (Case(fn, given) for given in inputs) if c.usable]
    if not cases:
        return 0
    arrays = [np.stack([c.arrays[i] for c in cases]) if a == 0 else cases[0].arrays[i] for i, a in enumerate(axes)]
    args = [ms.Tensor(np.asarray(a)) for a in arrays]
    found, structure = flatten(ms.vmap(fn, axes)(*args))
    for i, c in enumerate(cases):
        wanted, form = flatten(c.expected)
        assert form == structure
        for leaf, expected in zip(found, wanted):
            same(leaf[i], np.asarray(expected), 1e-6, f"example {i}")
    if not gradients:
        return len(cases)
    for k, g in enumerate(ms.vmap(ms.grad(value, (0, 1, 2)), axes)(*args)):
        for i, c in enumerate(cases):
            same(g[i], c.gradients[k], 1e-4, f"the gradient of example {i} by argument {k}")
    total = lambda *given: ms.vmap(value, axes)(*given).sum()
    for k, g in enumerate(ms.grad(total, (0, 1, 2))(*args)):
        rows = [c.gradients[k] for c in cases]
        same(
            g,
            np.sum(rows, 0) if axes[k] is None else np.stack(rows),
            1e-4,
            f"the gradient of the batch by argument {k}",
        )
    return len(cases)


@pytest.mark.parametrize("seed", (1, 8, 9, 10, 11, 13, 15, 16, 19, 20))
def test_random_programs(seed: int) -> None:
    assert check_vectorised(source(seed)) >= 6
