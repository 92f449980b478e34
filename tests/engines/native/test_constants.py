"""Numbers give the same whether a program has them as constants, which are computed while it is
compiled, or is given them as arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

Array = Any
TYPES: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# What a few roundings of each type may change.
CLOSE = {"float32": 5e-6, "float16": 4e-3, "bfloat16": 3e-2}
# A difference from a mean has the rounding of the mean.
DIFFERENCES = ("layer normalisation", "groups")
# Well-conditioned functions of numbers around the first and of such around 0; what they give is of
# the size of 1.
BLOCKS: dict[str, Callable[[Any, Any], Any]] = {
    "variance of columns": lambda x, y: ops.var(x, 0) + y,
    "spread of rows": lambda x, y: ops.std(x, 1, keepdims=True) * y,
    "layer normalisation": lambda x, y: ops.layer_norm(x, (x.shape[-1],)) + y,
    "mean of columns": lambda x, y: ops.mean(x, 0) * 0.03 + y,
    "mean of all": lambda x, y: y * ops.mean(x) * 0.03,
    "sum of columns": lambda x, y: ops.sum(x, 0) / 30.0 / x.shape[0] + y,
    "running sums": lambda x, y: ops.cumsum(x / 30.0 / x.shape[0], 0) + y,
    "norm": lambda x, y: y / (ops.norm(x * 0.01) + 1.0),
    "soft-max": lambda x, y: ops.softmax(x - ops.amax(x), 0) + y,
    "logarithm of a sum": lambda x, y: ops.logsumexp(x - ops.amax(x), 0) * 0.1 + y,
    "functions": lambda x, y: ops.exp(ops.sin(y)) + ops.tanh(x) * ops.sqrt(ops.abs(x)) * 0.1,
    "product": lambda x, y: ops.matmul(x * 0.01, y[:1].T / x.shape[1]) + y,
    "groups": lambda x, y: ops.group_norm(x.reshape((1, 1, *x.shape)), 1).reshape(x.shape) + y,
}
# Longer than a sum of float32 can be without losing digits; wide; and such that values element by
# element are computed, too.
SHAPES = [(200_000, 4), (3, 3000), (1500, 40), (40, 60)]


def variants(function: Callable[..., Any], arrays: list[Array]) -> dict[tuple[bool, ...], Array]:
    """The results by which of the arrays are constants."""
    found = {}
    for which in itertools.product((False, True), repeat=len(arrays)):

        def run(*given: Any, which: tuple[bool, ...] = which) -> Any:
            rest = iter(given)
            return function(*[Tensor(a) if constant else next(rest) for a, constant in zip(arrays, which)])

        arguments = [Tensor(a) for a, constant in zip(arrays, which) if not constant]
        found[which] = ms.jit(run)(*arguments).asnumpy().astype(np.float64)
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_constants_are_what_arguments_are(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(shape)
    centre = 1000.0 if dtype == "float32" else 3.0
    shape = shape if dtype == "float32" else (min(shape[0], 10000), shape[1])
    x, y = ((rng.normal(size=shape) + at).astype(TYPES[dtype]) for at in (centre, 0.0))
    for name in rng.permutation([*BLOCKS])[:3]:
        found = variants(BLOCKS[name], [x, y])
        want = found[False, False]
        for which, got in found.items():
            apart = np.abs(got - want).max() / max(1.0, np.abs(want).max())
            assert apart <= CLOSE[dtype] * (20 if name in DIFFERENCES else 1), (name, which, apart)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_constants_and_arguments(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    arrays = [(rng.normal(size=shape) + at).astype(np.float32) for at in (100.0, 0.0, 30.0)]
    chosen = rng.choice([*BLOCKS], 3)

    def program(x: Any, y: Any, z: Any) -> Any:
        for name in chosen:
            y = ops.tanh(BLOCKS[name](z if rng_like[name] else x, y))
        return y

    rng_like = {name: bool(rng.integers(2)) for name in chosen}
    found = variants(program, arrays)
    want = found[False, False, False]
    for which, got in found.items():
        assert np.abs(got - want).max() <= 1e-4, (list(chosen), which)


def test_long_columns_of_constants_are_added_exactly() -> None:
    x = (np.random.default_rng(0).normal(size=(20000, 8)) + 1000).astype(np.float32)
    exact = x.astype(np.float64)
    constant = ms.jit(lambda t: ops.var(Tensor(x), 0) + t * 0)(Tensor(np.float32(0))).asnumpy()
    np.testing.assert_allclose(constant, exact.var(0), rtol=2e-6)
    constant = ms.jit(lambda t: ops.mean(Tensor(x), 0) + t * 0)(Tensor(np.float32(0))).asnumpy()
    np.testing.assert_allclose(constant, exact.mean(0), rtol=1e-7)
    narrow = np.full(5000, 0.1, np.float16)
    constant = ms.jit(lambda t: ops.sum(Tensor(narrow)) + t)(Tensor(np.float16(0)))
    assert constant.item() == np.float16(5000 * float(np.float16(0.1)))


def test_sums_in_place_round_alike() -> None:
    values, places = np.full((3000, 2), 0.1, np.float16), np.zeros(3000, np.int32)

    def added(base: Any, values: Any) -> Any:
        return ops.index_add(base, Tensor(places), values, 0)

    found = variants(added, [np.ones((2, 2), np.float16), values])
    for got in found.values():
        np.testing.assert_array_equal(got, found[False, False])
