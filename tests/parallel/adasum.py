"""AdaSum on one device: the gradients of all ranks one after the other, combined by the formula.

Of two gradients a and b that is (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b, and of more that of
neighbours first. Each rank has a copy of the network, its rows, and the same random bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import mycel as ms
from tests.parallel.networks import Task


def adasum(values: list[np.ndarray]) -> np.ndarray:
    """Combine arrays of one shape, as many as a power of two."""
    if len(values) == 1:
        return values[0]
    pairs = []
    for a, b in zip(values[0::2], values[1::2]):
        x, y = a.astype(np.float64), b.astype(np.float64)
        dot, least = (x * y).sum(), 1e-30
        one, two = (1 - dot / max(2 * (v * v).sum(), least) for v in (x, y))
        pairs.append((one * x + two * y).astype(a.dtype))
    return adasum(pairs)


def alone_by_adasum(make: Callable[[], Task], count: int, rank: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the losses of the rows of one rank among `count`, and the parameters of its copy."""
    copies = [make() for _ in range(count)]
    derive = [ms.jit(c.derive) for c in copies]
    update = [ms.jit(c.update) for c in copies]
    make()  # as ranks have it when they begin
    losses = []
    for batch in copies[0].batches:
        state, gradients = ms.get_rng_state(), []
        for k in range(count):
            ms.set_rng_state(state)
            loss, found = derive[k](*[ms.Tensor(np.split(a, count)[k]) for a in batch])
            gradients.append([g.asnumpy() for g in found])
            if k == rank:
                losses.append(float(loss))
        combined = [ms.Tensor(adasum(list(values))) for values in zip(*gradients)]
        for k in range(count):
            update[k](tuple(combined))
    return np.array(losses), copies[rank].values()
