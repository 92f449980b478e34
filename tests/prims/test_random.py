"""Philox against the published vectors, and the distributions against theory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.random import (
    advance,
    bernoulli,
    normal,
    permutation,
    randint,
    random_bits,
    seed_state,
    uniform,
)
from mycel._src.engines.reference import apply
from mycel._src.foundation.dtype import bfloat16, float16, float32, float64, int8, int32, int64, uint8, uint32, uint64
from mycel._src.foundation.errors import ShapeError
from tests.prims.cases import nodes_for, run

MASK = 2**64 - 1


def draw(function: Any, seed: int = 3, state: Any = None) -> Any:
    state = seed_state(seed) if state is None else state
    (free,) = nodes_for([state])
    return run([function(free)], [free], [state])[0]


def unmixed(key: int) -> int:
    """The key that the finaliser of SplitMix64 turns into `key`."""

    def unshift(v: int, by: int) -> int:
        result = v
        for _ in range(64 // by):
            result = v ^ (result >> by)
        return result

    key = unshift(key, 31) * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    key = unshift(key, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    return unshift(key, 30)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0x00000000, 0x00000000), 0x00000000, (0xFF1DAE59, 0x6CD10DF2)),
        ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
        ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
    ],
)
def test_known_answers_of_philox(counter: Any, key: int, expected: Any) -> None:
    """The vectors that its authors publish with Random123 for philox2x32-10."""
    state = np.array([unmixed(key), counter[0] | counter[1] << 32], np.uint64)
    assert apply(random_bits, [state], {"shape": (), "dtype": uint64}) == expected[0] << 32 | expected[1]
    assert apply(random_bits, [state], {"shape": (), "dtype": uint32}) == expected[0]


def test_elements_depend_on_their_number_alone() -> None:
    flat = draw(lambda s: random_bits(s, shape=(12,), dtype=uint32))
    np.testing.assert_array_equal(draw(lambda s: random_bits(s, shape=(3, 4), dtype=uint32)), flat.reshape(3, 4))
    later = draw(lambda s: advance(s, 5))
    assert later.tolist() == [3, 5]
    np.testing.assert_array_equal(draw(lambda s: random_bits(s, shape=(7,), dtype=uint32), state=later), flat[5:])
    assert draw(lambda s: advance(s, constant(2, int32)), state=np.array([1, MASK], np.uint64)).tolist() == [1, 1]


def test_keys_that_differ_above_the_lower_half_differ() -> None:
    bits = {
        draw(lambda s: random_bits(s, shape=(), dtype=uint64), seed=s).item() for s in (1, 1 + 2**32, 2, -1, 2**64 - 2)
    }
    assert len(bits) == 5
    assert seed_state(-1).tolist() == [MASK, 0]


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=lambda d: d.name)
def test_uniform(dtype: Any) -> None:
    x = draw(lambda s: uniform(s, (4, 5000), dtype))
    assert x.dtype == dtype.numpy and x.shape == (4, 5000)
    wide = x.astype(np.float64).ravel()
    assert wide.min() >= 0 and wide.max() < 1
    assert stats.kstest(wide + (2.0**-9 if dtype is bfloat16 else 0), "uniform").pvalue > 1e-3
    y = draw(lambda s: uniform(s, (20000,), dtype, -3.0, 2.0)).astype(np.float64)
    assert y.min() >= -3 and y.max() < 2
    assert y.mean() == pytest.approx(-0.5, abs=0.05)


def test_uniform_with_tensors_for_bounds() -> None:
    low, high = constant([0.0, 10.0], float32), constant([1.0, 20.0], float32)
    x = draw(lambda s: uniform(s, (500, 2), float32, low, high))
    assert (x[:, 0] < 1).all() and (x[:, 1] >= 10).all() and (x[:, 1] <= 20).all()


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=lambda d: d.name)
def test_normal(dtype: Any) -> None:
    x = draw(lambda s: normal(s, (20000,), dtype), seed=11)
    assert x.dtype == dtype.numpy
    wide = x.astype(np.float64)
    assert np.isfinite(wide).all()
    assert abs(wide.mean()) < 0.03 and abs(wide.std() - 1) < 0.03
    if dtype in (float32, float64):
        assert stats.kstest(wide, "norm").pvalue > 1e-3
    shifted = draw(lambda s: normal(s, (20000,), dtype, 4.0, 0.5), seed=11).astype(np.float64)
    assert shifted.mean() == pytest.approx(4, abs=0.03) and shifted.std() == pytest.approx(0.5, abs=0.03)


def test_neighbouring_elements_are_uncorrelated() -> None:
    x = draw(lambda s: normal(s, (20001,), float64), seed=5)
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.03


def test_randint() -> None:
    x = draw(lambda s: randint(s, (30000,), -5, 6))
    assert x.dtype == np.int32
    assert stats.chisquare(np.bincount(x + 5, minlength=11)).pvalue > 1e-3
    assert draw(lambda s: randint(s, (2000,), 0, 256, uint8)).max() == 255
    assert set(draw(lambda s: randint(s, (2000,), -128, -126, int8)).tolist()) == {-128, -127}
    wide = draw(lambda s: randint(s, (4000,), -(2**63), 2**63, int64)).astype(np.float64)
    assert stats.kstest(wide / 2.0**64 + 0.5, "uniform").pvalue > 1e-3
    odd = draw(lambda s: randint(s, (4000,), -10, 3 * 2**40, int64))
    assert odd.min() >= -10 and odd.max() < 3 * 2**40 and odd.max() > 2.9 * 2**40


def test_bernoulli() -> None:
    assert draw(lambda s: bernoulli(s, (20000,), 0.3)).mean() == pytest.approx(0.3, abs=0.015)
    assert not draw(lambda s: bernoulli(s, (1000,), 0.0)).any()
    assert draw(lambda s: bernoulli(s, (1000,), 1.0)).all()
    rows = draw(lambda s: bernoulli(s, (4000, 3), constant([0.0, 0.5, 1.0], float32))).mean(axis=0)
    np.testing.assert_allclose(rows, [0, 0.5, 1], atol=0.05)


def test_permutation() -> None:
    x = draw(lambda s: permutation(s, 500))
    assert x.dtype == np.int32
    np.testing.assert_array_equal(np.sort(x), np.arange(500))
    assert (x != np.arange(500)).sum() > 450
    firsts = [draw(lambda s: permutation(s, 4), seed=seed)[0] for seed in range(200)]
    assert stats.chisquare(np.bincount(firsts, minlength=4)).pvalue > 1e-3


def test_symbolic_shapes() -> None:
    n = symbol("n")
    state = input_node(tensor_type((2,), uint64), "state")
    x = input_node(tensor_type((n, 2), float32), "x")
    drawn = normal(state, (n, 2))
    assert drawn.type is x.type
    (values,) = run([drawn + x], [state, x], [seed_state(1), np.zeros((3, 2), np.float32)])
    np.testing.assert_array_equal(values, draw(lambda s: normal(s, (3, 2)), seed=1))
    assert run([advance(state, n), x], [state, x], [seed_state(1), np.zeros((3, 2), np.float32)])[0].tolist() == [1, 3]


def test_errors() -> None:
    state = input_node(tensor_type((2,), uint64), "state")
    with pytest.raises(
        ShapeError, match=r"random_bits: the state must be uint64\[2\], a key and a counter, not float32\[2\]"
    ):
        random_bits(input_node(tensor_type((2,), float32)), shape=(1,), dtype=uint32)
    with pytest.raises(TypeError, match="random_bits: bits come as uint32 or uint64, not int32"):
        random_bits(state, shape=(1,), dtype=int32)
    with pytest.raises(TypeError, match="uniform and normal draw .* not int32; use randint for integers"):
        uniform(state, (1,), int32)
    with pytest.raises(ValueError, match="uniform: low 2.0 must be below high 1.0"):
        uniform(state, (1,), float32, 2.0, 1.0)
    with pytest.raises(TypeError, match="normal draws .* not int32"):
        normal(state, (1,), int32)
    with pytest.raises(ValueError, match=r"randint: \[0, 300\) must hold a value and lie within uint8"):
        randint(state, (1,), 0, 300, uint8)
    with pytest.raises(ValueError, match=r"randint: \[3, 3\)"):
        randint(state, (1,), 3, 3)
    with pytest.raises(TypeError, match="randint draws integers, not float32"):
        randint(state, (1,), 0, 2, float32)
    with pytest.raises(ValueError, match=r"bernoulli: the probability 1.5 is not in \[0, 1\]"):
        bernoulli(state, (1,), 1.5)
