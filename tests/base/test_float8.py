"""Eight-bit floats: made, moved, saved and cast, every code against what its bits say.

Nothing is computed in them.
"""

import copy
import pickle

import numpy as np
import pytest

import mycel as ms
from mycel import ops

TYPES = ("float8_e4m3fn", "float8_e5m2")


def meant(code: int, name: str) -> float:
    """The number that eight bits stand for: sign, exponent, fraction (Micikevicius and others,
    2022).
    """
    fraction_bits, bias = (3, 7) if name == "float8_e4m3fn" else (2, 15)
    sign = -1.0 if code & 128 else 1.0
    exponent, fraction = (code & 127) >> fraction_bits, code & ((1 << fraction_bits) - 1)
    if name == "float8_e4m3fn" and code & 127 == 127:
        return float("nan")
    if name == "float8_e5m2" and exponent == 31:
        return sign * float("inf") if fraction == 0 else float("nan")
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - fraction_bits)
    return sign * (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)


def every_code(name: str) -> ms.Tensor:
    return ms.Tensor(np.arange(256, dtype=np.uint8).view(getattr(ms, name).numpy))


@pytest.mark.parametrize("name", TYPES)
def test_every_code_means_what_its_bits_say(name):
    x = every_code(name)
    wanted = np.array([meant(c, name) for c in range(256)])
    assert x.dtype is getattr(ms, name) and x.itemsize == 1
    for target in (ms.float16, ms.float32, ms.float64):
        np.testing.assert_array_equal(x.astype(target).asnumpy().astype(np.float64), wanted)
        np.testing.assert_array_equal(ms.jit(lambda v, t=target: v.astype(t))(x).asnumpy().astype(np.float64), wanted)


@pytest.mark.parametrize("name", TYPES)
def test_casts_round_to_the_nearest_and_ties_to_even(name):
    dtype = getattr(ms, name)
    finite = np.sort([v for v in (meant(c, name) for c in range(128)) if np.isfinite(v)])
    between = (finite[1:] + finite[:-1]) / 2
    values = np.concatenate([finite, between, np.nextafter(between, 0), np.nextafter(between, 1e9)])
    steps = np.abs(values[:, None] - finite[None])
    nearest = steps.min(axis=1)
    # Of two that are as near, the one with the even code.
    wanted = [
        finite[[i for i in np.flatnonzero(row == least) if (row == least).sum() == 1 or i % 2 == 0][0]]
        for row, least in zip(steps, nearest)
    ]
    for sign in (1.0, -1.0):
        x = ms.Tensor(sign * values)
        for cast in (lambda v: v.astype(dtype), ms.jit(lambda v: v.astype(dtype))):
            np.testing.assert_array_equal(cast(x).astype(ms.float64).asnumpy(), sign * np.array(wanted))


def test_what_is_too_large():
    x = ms.Tensor([500.0, 1e6, float("inf"), float("nan")])
    assert np.isnan(x.astype(ms.float8_e4m3fn).astype(ms.float32).asnumpy()).all()
    np.testing.assert_array_equal(x.astype(ms.float8_e5m2).astype(ms.float32).asnumpy(), [512, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("name", TYPES)
def test_moving(name):
    dtype = getattr(ms, name)
    values = np.array([[1.0, -2.5, 0.0], [0.5, 4.0, -0.25]])
    x = ms.Tensor(values, dtype)
    same = lambda t, w: np.testing.assert_array_equal(t.astype(ms.float64).asnumpy(), w)
    for run in (lambda f: f(x), lambda f: ms.jit(f)(x)):
        same(run(lambda v: v.T), values.T)
        same(run(lambda v: v.reshape(3, 2)), values.reshape(3, 2))
        same(run(lambda v: v[1]), values[1])
        same(run(lambda v: ops.flip(v, (1,))), values[:, ::-1])
        same(run(lambda v: ops.concat([v, v])), np.concatenate([values, values]))
        same(run(lambda v: ops.gather(v, ms.Tensor([1, 0, 1]), 0)), values[[1, 0, 1]])
        same(run(lambda v: ops.pad(v, (1, 2))), np.pad(values, [(0, 0), (1, 2)]))
    same(copy.deepcopy(x), values)
    same(pickle.loads(pickle.dumps(x)), values)
    same(ms.vmap(lambda v: v.astype(ms.float64) * 2)(x), values * 2)
    same(ops.zeros((2,), dtype=dtype), [0, 0])
    x[0] = 1
    same(x, [[1, 1, 1], [0.5, 4.0, -0.25]])
    assert ms.Tensor(x.asnumpy()).dtype is dtype and ms.dtype_to_nptype(dtype) is dtype.numpy.type


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_saving(name, form, tmp_path):
    x = every_code(name)
    path = str(tmp_path / f"x.{form}")
    ms.save_checkpoint([{"name": "a", "data": x}, {"name": "b", "data": ms.Tensor([1.0])}], path, format=form)
    found = ms.load_checkpoint(path, format=form)
    assert found["a"].dtype is getattr(ms, name)
    assert found["a"].asnumpy().tobytes() == x.asnumpy().tobytes() and found["b"].tolist() == [1.0]


@pytest.mark.parametrize("name", TYPES)
def test_nothing_is_computed(name):
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]], getattr(ms, name))
    for f in (
        ops.exp,
        ops.neg,
        ops.sum,
        ops.argmax,
        ops.sort,
        ops.floor,
        ops.round,
        ops.isnan,
        ops.nan_to_num,
        ops.relu,
        lambda v: v + v,
        lambda v: v @ v,
        lambda v: v > v,
    ):
        with pytest.raises(TypeError, match=f"not {name}"):
            f(x)
    with pytest.raises(TypeError, match="no common type"):
        x + ms.Tensor([1.0, 2.0])
