"""Attention and its derivative, computed in blocks, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.prims.neural.attention import attention, attention_grad
from mycel._src.tensors.core.eager import apply

SIZES = (1, 5, 12, 16, 17, 33, 64, 65, 97, 130)
FEATURES = (1, 3, 8, 16, 20, 64, 80)


def exact(
    q: Any, k: Any, v: Any, ct: Any, masks: dict[str, Any], scale: float, band: Any, fill: float, keep: float
) -> list[Any]:
    """The attention, its statistics, and the gradients of (ct * attention).sum(), in float64."""
    s = np.einsum("...id,...jd->...ij", q, np.broadcast_to(k, (*q.shape[:-2], *k.shape[-2:]))) * scale
    s = s + masks.get("bias", 0.0)
    i, j = np.indices(s.shape[-2:])
    low, high = (None, None) if band is None else band
    dropped = np.broadcast_to(masks.get("drop", False), s.shape).copy()
    dropped |= (j - i < low) if low is not None else False
    dropped |= (j - i > high) if high is not None else False
    s = np.where(dropped, fill, s)
    peak = s.max(-1, keepdims=True)
    e = np.exp(s - peak)
    total = e.sum(-1, keepdims=True)
    thin = masks.get("kept", True) / keep
    p = e / total
    wide_v = np.broadcast_to(v, (*q.shape[:-2], *v.shape[-2:]))
    out = (p * thin) @ wide_v
    dp = (ct @ np.swapaxes(wide_v, -1, -2)) * thin
    ds = np.where(dropped, 0.0, p * (dp - (p * dp).sum(-1, keepdims=True))) * scale
    dk, dv = np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p * thin, -1, -2) @ ct
    shared = tuple(a for a in range(k.ndim - 2) if k.shape[a] == 1)
    dk, dv = (x.sum(shared, keepdims=True) if shared else x for x in (dk, dv))
    return [out, peak, total, ds @ k, dk, dv]


def some(rng: np.random.Generator, lead: tuple[int, ...], s: int, t: int) -> tuple[int, ...]:
    """A random shape that broadcasts to scores."""
    shape = [1 if rng.random() < 0.35 else d for d in (*lead, s, t)]
    return tuple(shape[len(lead) :] if rng.random() < 0.4 else shape)


def close(got: Any, want: Any, tolerance: float) -> bool:
    return bool(np.max(np.abs(got.asnumpy() - want) / (1 + np.abs(want).max())) < tolerance)


@pytest.mark.parametrize("seed", range(24))
def test_random_sizes_and_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype, tolerance = (np.float64, 1e-12) if seed % 3 == 0 else (np.float32, 1e-5)
    lead = tuple(int(x) for x in rng.choice((1, 2, 3), int(rng.integers(0, 4))))
    keys = tuple(1 if rng.random() < 0.3 else d for d in lead)
    s, t = (int(x) for x in rng.choice(SIZES, 2))
    d, e = (int(x) for x in rng.choice(FEATURES, 2))
    shapes = ((*lead, s, d), (*keys, t, d), (*keys, t, e), (*lead, s, e))
    q, k, v, ct = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    masks: dict[str, Any] = {}
    if rng.random() < 0.4:
        masks["bias"] = rng.standard_normal(some(rng, lead, s, t)).astype(dtype)
    if rng.random() < 0.4:
        masks["drop"] = rng.random(some(rng, lead, s, t)) < rng.choice((0.2, 0.9))
    if rng.random() < 0.4:
        masks["kept"] = rng.random(some(rng, lead, s, t)) < 0.7
    band = None
    if rng.random() < 0.5:
        ends = (int(rng.integers(-60, 20)), int(rng.integers(-20, 60)))
        band = tuple(None if rng.random() < 0.3 else x for x in ends)
    keep, fill = 0.7 if "kept" in masks else 1.0, float(rng.choice((-1e9, -3.4e38, -5.0)))
    params: dict[str, Any] = {"scale": d**-0.5, "band": band, "fill": fill, "keep": keep}
    want = exact(*(x.astype(np.float64) for x in (q, k, v, ct)), masks, **params)
    params["operands"] = tuple(masks)
    given = [ms.Tensor(x) for x in (q, k, v)]
    others = [ms.Tensor(x) for x in masks.values()]
    found: Any = apply(attention, *given, *others, **params)
    delta = ms.Tensor((ct * want[0]).sum(-1, keepdims=True).astype(dtype))
    grads: Any = apply(attention_grad, ms.Tensor(ct), *given, found[1], found[2], delta, *others, **params)
    for name, got, expected in zip(("out", "peak", "total", "dq", "dk", "dv"), (*found, *grads), want):
        assert close(got, expected, tolerance), name


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_16_bit_floats_are_rounded_once(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (ms.Tensor(rng.standard_normal((2, 70, 24)).astype(np.float32)).astype(dtype) for _ in range(3))
    params = {"scale": 0.2, "operands": (), "band": (None, 0), "fill": -1e9, "keep": 1.0}
    narrow: Any = apply(attention, q, k, v, **params)
    wide: Any = apply(attention, *(x.astype(ms.float32) for x in (q, k, v)), **params)
    assert narrow[0].dtype == dtype and narrow[1].dtype == ms.float32
    assert (narrow[0] == wide[0].astype(dtype)).all()


def test_rows_without_scores_give_nan() -> None:
    """All scores are -inf in the first row, and those of the first block of keys in the second."""
    t = 230
    drop = np.zeros((12, t), bool)
    drop[0], drop[1, :200] = True, True
    q, k = np.ones((12, 4), np.float32), np.ones((t, 4), np.float32)
    v = np.arange(t, dtype=np.float32)[:, None]
    params = {"scale": 1.0, "operands": ("drop",), "band": None, "fill": -np.inf, "keep": 1.0}
    found: Any = apply(attention, *map(ms.Tensor, (q, k, v, drop)), **params)
    out = found[0].asnumpy()
    assert np.isnan(out[0, 0]) and abs(out[1, 0] - 214.5) < 1e-3


def test_strides_of_operands_are_taken_as_they_are() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 40, 3, 3, 16)).astype(np.float32)

    @ms.jit
    def both(x: Any) -> Any:
        q, k, v = (x[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        return ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * 0.25, -1), v).transpose(0, 2, 1, 3)

    q, k, v = (np.moveaxis(x[:, :, i].astype(np.float64), 2, 1) for i in range(3))
    p = np.exp(q @ np.swapaxes(k, -1, -2) * 0.25)
    want = np.moveaxis(p / p.sum(-1, keepdims=True) @ v, 1, 2)
    np.testing.assert_allclose(both(ms.Tensor(x)).asnumpy(), want, atol=1e-5)


def test_second_derivatives_and_batches() -> None:
    rng = np.random.default_rng(2)
    q, k, v = (ms.Tensor(rng.standard_normal((3, 2, 5, 4))) for _ in range(3))
    bias = ms.Tensor(rng.standard_normal((5, 5)))
    params = {"scale": 0.5, "operands": ("bias",), "band": (None, 0), "fill": -1e9, "keep": 1.0}

    def blocks(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return apply(attention, q, k, v, bias, **params)[0]

    def plain(q: Any, k: Any, v: Any, bias: Any) -> Any:
        s = ops.matmul(q, k.swapaxes(-1, -2)) * 0.5 + bias
        return ops.matmul(ops.softmax(ops.where(ops.triu(ops.ones((5, 5)), 1) > 0, -1e9, s), -1), v)

    def squared(f: Any) -> Any:
        first = ms.grad(lambda *x: (f(*x) ** 2).sum(), (0, 1, 2, 3))
        return ms.grad(lambda *x: sum((g**2).sum() for g in first(*x)), (0, 1, 2, 3))

    for a, b in zip(squared(blocks)(q, k, v, bias), squared(plain)(q, k, v, bias)):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-9, atol=1e-9)
    for axes in ((0, 0, 0, None), (0, None, None, None), (None, 0, 0, None)):
        given = [x if a == 0 or x is bias else x[0] for x, a in zip((q, k, v, bias), axes)]
        got = ms.vmap(blocks, axes)(*given)
        np.testing.assert_allclose(got.asnumpy(), ms.vmap(plain, axes)(*given).asnumpy(), atol=1e-12)
