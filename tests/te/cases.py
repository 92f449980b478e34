"""The arguments of operators, and what NumPy gives for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, special

from tests.te import definitions as d
from tests.te.case import Case
from tests.te.further_cases import FURTHER

rng = np.random.default_rng(7)


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape)


# What NumPy says.


def _valid(x: Any, w: Any, stride: int = 1) -> Any:
    return np.correlate(x, w, "valid")[::stride]


def _conv(x: Any, w: Any, stride: int = 1) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchvab,ocab->nohv", windows, w)


def _upsampled_conv(x: Any, w: Any, stride: int) -> Any:
    y = np.zeros((len(x) - 1) * stride + len(w))
    for i, v in enumerate(x):
        y[i * stride : i * stride + len(w)] += v * w
    return y


def _norm(x: Any, gain: Any, shift: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gain + shift


def _recurrence(x: Any, a: Any) -> Any:
    y, state = [], 0.0
    for v in x:
        state = np.tanh(a[0] * state + v)
        y.append(state)
    return np.array(y)


def _tridiagonal(low: Any, middle: Any, high: Any, b: Any) -> Any:
    return np.linalg.solve(np.diag(middle) + np.diag(low[1:], -1) + np.diag(high[:-1], 1), b)


def _heat(u: Any, steps: int) -> Any:
    rows = [u]
    for _ in range(steps):
        v = rows[-1].copy()
        v[1:-1] += 0.2 * (rows[-1][:-2] - 2 * rows[-1][1:-1] + rows[-1][2:])
        rows.append(v)
    return np.array(rows)


def _gauss_seidel(u: Any, steps: int) -> Any:
    v = u.copy()
    for _ in range(steps):
        for i in range(1, len(v) - 1):
            v[i] = (v[i - 1] * v[i] + v[i + 1]) / 2
    return v


def _scattered(x: Any, places: Any, size: int) -> Any:
    y = np.zeros((size, x.shape[1]))
    np.add.at(y, places, x)
    return y


def _ray_march(origin: Any, steps: int) -> Any:
    t = np.zeros_like(origin)
    for _ in range(steps):
        d = np.sqrt(origin**2 + (t - 2) ** 2) - 1
        t = np.where(d > 1e-3, t + d, t)
    return t


def _edit_distance(a: Any, b: Any) -> Any:
    d = np.zeros((len(a) + 1, len(b) + 1), int)
    d[:, 0], d[0] = range(len(a) + 1), range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return d


def _pooled(x: Any, size: int, stride: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, size)[::stride].max(1)


LOWER = np.tril(normal(5, 5)) + 4 * np.eye(5)
POSITIVE = LOWER @ LOWER.T
MIDDLE = np.arange(5.0) + 4
PLACES = np.array([3, 0, 3, 1])

CASES = {
    "product": Case(d.product, (normal(3, 4), normal(4, 5)), np.matmul),
    "products": Case(d.products, (normal(2, 3, 4), normal(2, 4, 2)), np.matmul),
    "outer": Case(d.outer, (normal(3), normal(4)), np.outer),
    "bilinear": Case(
        d.bilinear, (normal(2, 3), normal(3, 4, 2), normal(2, 4)), lambda a, w, b: np.einsum("ni,ijo,nj->no", a, w, b)
    ),
    "transposed": Case(d.transposed, (normal(3, 4),), np.transpose),
    "trace": Case(d.trace, (normal(4, 4),), np.trace),
    "convolution": Case(d.convolution, (normal(11), normal(3), 1), _valid),
    "convolution by 2": Case(d.convolution, (normal(12), normal(3), 2), _valid),
    "convolution by 3": Case(d.convolution, (normal(13), normal(2), 3), _valid),
    "dilated": Case(d.dilated, (normal(11), normal(3), 2), lambda x, w, s: _valid(x, np.kron(w, [1, 0])[:-1])),
    "padded": Case(d.padded, (normal(7), normal(3)), lambda x, w: _valid(np.pad(x, 1), w)),
    "convolution_2d": Case(d.convolution_2d, (normal(2, 3, 6, 5), normal(4, 3, 3, 2)), _conv),
    "convolution_2d by 2": Case(
        d.convolution_2d_strided, (normal(2, 3, 7, 6), normal(4, 3, 3, 2)), lambda x, w: _conv(x, w, 2)
    ),
    "transposed_convolution": Case(d.transposed_convolution, (normal(5), normal(3), 2), _upsampled_conv),
    "depthwise": Case(d.depthwise, (normal(3, 8), normal(3, 3)), lambda x, w: np.array(list(map(_valid, x, w)))),
    "mean_pool": Case(d.mean_pool, (normal(12), 3), lambda x, s: x.reshape(-1, s).mean(1)),
    "max_pool": Case(d.max_pool, (normal(11), 3, 2), _pooled),
    "softmax": Case(d.softmax, (normal(3, 5),), lambda x: special.softmax(x, 1)),
    "layer_norm": Case(d.layer_norm, (normal(3, 5), normal(5), normal(5)), _norm),
    "sliding_mean": Case(d.sliding_mean, (normal(9), 3), lambda x, w: _valid(x, np.full(w, 1 / w))),
    "running_sum": Case(d.running_sum, (normal(6),), np.cumsum),
    "recurrence": Case(d.recurrence, (normal(6), normal(1)), _recurrence),
    "forward_substitution": Case(
        d.forward_substitution, (LOWER, normal(5)), lambda l, b: linalg.solve_triangular(l, b, lower=True)
    ),
    "backward_substitution": Case(d.backward_substitution, (LOWER.T.copy(), normal(5)), linalg.solve_triangular),
    "tridiagonal": Case(d.tridiagonal, (normal(5), MIDDLE, normal(5), normal(5)), _tridiagonal),
    "cholesky": Case(d.cholesky, (POSITIVE,), np.linalg.cholesky),
    "heat": Case(d.heat, (normal(7), 4), _heat),
    "gauss_seidel": Case(d.gauss_seidel, (normal(7), 3), _gauss_seidel),
    "horner": Case(d.horner, (normal(4), normal(3)), lambda c, x: np.polyval(c[::-1], x)),
    "geometric_mean": Case(d.geometric_mean, (np.abs(normal(3, 4)) + 0.5,), lambda x: x.prod(1) ** (1 / x.shape[1])),
    "leaky": Case(d.leaky, (normal(6), 0.1), lambda x, s: np.where(x > 0, x, s * x)),
    "clipped": Case(d.clipped, (normal(8), -0.5, 0.5), np.clip),
    "gelu": Case(d.gelu, (normal(6),), lambda x: x * special.ndtr(x)),
    "gated": Case(d.gated, (normal(6), normal(6)), lambda x, g: x * special.expit(g)),
    "distances": Case(
        d.distances, (normal(3, 4), normal(5, 4)), lambda a, b: np.linalg.norm(a[:, None] - b[None], axis=2)
    ),
    "reversed_rows": Case(d.reversed_rows, (normal(5),), lambda x: x[::-1]),
    "rolled": Case(d.rolled, (normal(5), 2), lambda x, by: np.roll(x, -by)),
    "upsampled": Case(d.upsampled, (normal(4), 3), np.repeat),
    "interleaved": Case(d.interleaved, (normal(4), normal(4)), lambda a, b: np.stack([a, b], 1).ravel()),
    "prefix_products": Case(d.prefix_products, (normal(5),), np.cumprod),
    "upper": Case(d.upper, (normal(4, 5),), np.triu),
    "banded": Case(d.banded, (normal(6, 6), normal(6), 1), lambda a, x, w: np.triu(np.tril(a, w), -w) @ x),
    "complex_product": Case(
        d.complex_product,
        (normal(4, 2), normal(4, 2)),
        lambda a, b: ((a @ [1, 1j]) * (b @ [1, 1j])).view(float).reshape(-1, 2),
    ),
    "butterflies": Case(
        d.butterflies,
        (normal(8),),
        lambda x: np.concatenate([x[:4] + x[4:], (x[:4] - x[4:]) * np.cos(np.arange(4) * np.pi / 4)]),
    ),
    "gathered": Case(d.gathered, (normal(5, 3), PLACES), lambda x, p: x[p]),
    "scattered": Case(d.scattered, (normal(4, 3), PLACES, 5), _scattered),
    "moments": Case(d.moments, (normal(6),), lambda x: (x.mean(), (x**2).mean())),
    "sorting_network": Case(d.sorting_network, (normal(7),), np.sort),
    "distance_transform": Case(
        d.distance_transform,
        (np.array([0.0, 0, 1, 0, 0, 0, 1, 0]),),
        lambda x: np.array([2, 1, 0, 1, 2, 1, 0, 1]),
        False,
    ),
    "ray_march": Case(d.ray_march, (normal(5), 8), _ray_march),
    "histogram": Case(
        d.histogram, (rng.random(20), 4), lambda x, n: np.histogram(x, n, (0, 1))[0].astype(float), False
    ),
    "edit_distance": Case(d.edit_distance, (np.array([1, 2, 3, 4, 2]), np.array([2, 3, 5, 2])), _edit_distance, False),
    **FURTHER,
}
