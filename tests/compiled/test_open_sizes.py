"""Programs in which data decide several sizes: combinations of whatever asks for one, compiled
against eager, in any order, with symbols and gradients.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

PARTS = {
    "mask": lambda x: x[x > 0.5],
    "mask sum": lambda x: x[x > 0].sum(),
    "mask of mask": lambda x: (lambda y: y[y > 1.5].sum())(x[x > 0]),
    "mask outer": lambda x: (x[x > 0][:, None] * x[x < 3][None]).sum(),
    "selected": lambda x: ops.masked_select(x, x < 2),
    "selected size": lambda x: ops.masked_select(x, x < 2).size,
    "nonzero": lambda x: ops.nonzero(x),
    "nonzero size": lambda x: ops.nonzero(x).shape[0],
    "nonzero of nonzero": lambda x: ops.nonzero(ops.nonzero(x)[:, 0]).shape[0],
    "unique": lambda x: ops.unique(x)[0].sum(),
    "unique size": lambda x: ops.unique(x)[0].shape[0],
    "argwhere": lambda x: ops.argwhere(x).sum(),
    "argwhere size": lambda x: ops.argwhere(x).shape[0],
    "zeros": lambda x: ops.zeros(ops.nonzero(x).shape[0]) + 1,
    "full": lambda x: ops.full((ops.nonzero(x > 1).shape[0], 2), 2.0),
    "slice": lambda x: x[: ops.nonzero(x > 1).shape[0]],
    "slice sum": lambda x: x[ops.nonzero(x > 2).shape[0] :].sum(),
    "mean": lambda x: x.sum() / ops.nonzero(x).shape[0],
    "factor": lambda x: x * (ops.nonzero(x).shape[0] * 2 + 1),
    "difference": lambda x: ops.nonzero(x).shape[0] - x[x > 1].shape[0],
    "where": lambda x: ops.where(x > ops.nonzero(x).shape[0] - 4, x, x * 0),
}
DIFFERENTIABLE = ["mask sum", "mask of mask", "mask outer", "slice sum", "mean", "factor", "where", "selected"]
VALUES = ([1.0, -2, 3, 0, 5, 3, 1], [0, 0, 2, 4, -1, 1, 1], [5, 1, 0, 3, 3, 2, -4, 1, 1, 6, 0])


def combinations():
    names = sorted(PARTS)
    pairs = list(itertools.permutations(names, 2))
    draw = random.Random(0)
    chosen = [("mask sum", "nonzero size"), ("nonzero size", "mask sum"), *[(n,) for n in names]]
    return chosen + draw.sample(pairs, 30) + [tuple(draw.choices(names, k=draw.choice((3, 4)))) for _ in range(15)]


def leaves(value):
    return [np.asarray(v.asnumpy() if isinstance(v, Tensor) else v) for v in value]


def assert_same(function, compiled, values):
    given = np.array(values, np.float32)
    wanted, found = leaves(function(Tensor(given))), leaves(compiled(Tensor(given)))
    for a, b in zip(wanted, found, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("names", combinations(), ids=", ".join)
def test_several_sizes_in_one_function(names):
    def function(x):
        return tuple([PARTS[name](x) for name in names])

    # A slice up to a size clips it, so that it is compared with the length: that ends the graph.
    compiled = ms.jit(function, fullgraph="slice" not in names, dynamic=len(names) % 2)
    for values in VALUES[: 3 if len(names) % 2 else 2]:
        assert_same(function, compiled, values)


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_several_sizes(seed):
    draw = random.Random(seed)
    names = [*draw.choices(sorted(PARTS), k=2), draw.choice(DIFFERENTIABLE)]

    def function(x):
        total = Tensor(0.0)
        for name in names:
            part = PARTS[name](x)
            total = total + (part.sum() if isinstance(part, Tensor) else part)
        return total

    gradient = ms.grad(function)
    for compiled in (ms.jit(gradient), ms.grad(ms.jit(function))):
        assert_same(lambda x: [gradient(x)], lambda x, run=compiled: [run(x)], VALUES[0])
