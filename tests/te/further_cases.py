"""Arguments of further operators, and what NumPy and SciPy give for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, ndimage, signal, special

from tests.te import further_definitions as d
from tests.te.case import Case

__all__ = ["FURTHER"]

rng = np.random.default_rng(11)


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape)


def _banded(bands: Any, b: Any) -> Any:
    full = sum(np.diag(bands[k, k:], -k) for k in range(3))
    return linalg.solve(full, b)


def _viterbi(emissions: Any, transitions: Any) -> Any:
    best = emissions[0]
    for e in emissions[1:]:
        best = (best[:, None] + transitions).max(0) + e
    return best.max()


def _alignments(p: Any, labels: Any) -> Any:
    """All paths, of which those count that give the labels."""
    total = 0.0
    for path in np.ndindex(*[p.shape[1]] * len(p)):
        kept = [v for k, v in enumerate(path) if (k == 0 or path[k - 1] != v) and v]
        if kept == list(labels):
            total += np.prod(p[np.arange(len(p)), path])
    return total


def _sampled(image: Any, at: Any) -> Any:
    return ndimage.map_coordinates(np.pad(image, 1), (at + 1).T, order=1)


def _medians(x: Any, width: int) -> Any:
    return np.median(np.lib.stride_tricks.sliding_window_view(x, width), 1)


def _runs(x: Any) -> Any:
    starts = np.r_[0, np.flatnonzero(np.diff(x)) + 1]
    own = np.repeat(starts, np.diff(np.r_[starts, len(x)]))
    length = np.arange(len(x)) - own + 1
    return length, length * x


def _forces(p: Any, cutoff: float) -> Any:
    apart = p[None] - p[:, None]
    square = (apart**2).sum(-1)
    scale = np.where((square > 0) & (square < cutoff**2), np.maximum(square, 1e-30) ** -1.5, 0)
    return (scale[..., None] * apart).sum(1)


def _lifting(x: Any) -> Any:
    even, odd = x[::2], x[1::2]
    detail = odd - (even + np.r_[even[1:], even[-1]]) / 2
    return even + (np.r_[detail[0], detail[:-1]] + detail) / 4, detail


def _warping(a: Any, b: Any) -> Any:
    d = np.full((len(a) + 1, len(b) + 1), np.inf)
    d[0, 0] = 0
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            d[i + 1, j + 1] = (x - y) ** 2 + min(d[i, j + 1], d[i + 1, j], d[i, j])
    return d[-1, -1]


def _power(a: Any, v: Any, rounds: int) -> Any:
    for _ in range(rounds):
        y = a @ v
        size = np.linalg.norm(y)
        v = y / size
    return size


BANDS = normal(3, 9)
BANDS[0] += 4
MATRIX = normal(5, 5)
FURTHER: dict[str, Case] = {
    "banded_solve": Case(d.banded_solve, (BANDS, normal(9)), _banded),
    "bitonic_sort": Case(d.bitonic_sort, (normal(8), 3), lambda x, _: np.sort(x)),
    "viterbi": Case(d.viterbi, (normal(5, 3), normal(3, 3)), _viterbi),
    "alignments": Case(d.alignments, (special.softmax(normal(5, 3), 1), np.array([1, 1])), _alignments),
    "sampled": Case(d.sampled, (normal(5, 6), rng.uniform(-1.2, 5.4, (12, 2))), _sampled),
    "sliding_median": Case(d.sliding_median, (normal(11), 5), _medians),
    "runs": Case(d.runs, (np.array([1.5, 1.5, 2.0, 2.0, 2.0, -1.0, 1.5]),), _runs, False),
    "weighted_histogram": Case(
        d.weighted_histogram,
        (rng.uniform(-0.1, 1.1, 20), normal(20), 4),
        lambda x, w, n: np.histogram(x, n, (0, 1), weights=w)[0],
    ),
    "forces": Case(d.forces, (normal(6, 3), 1.7), _forces),
    "lifting": Case(d.lifting, (normal(12),), _lifting),
    "levinson": Case(d.levinson, (np.r_[3.0, 0.3 * normal(6)], normal(7)), linalg.solve_toeplitz),
    "dynamic_time_warping": Case(d.dynamic_time_warping, (normal(6), normal(8)), _warping),
    "power_iteration": Case(d.power_iteration, (MATRIX @ MATRIX.T, normal(5), 4), _power),
    "biquad": Case(
        d.biquad,
        (normal(15), np.array([0.4, 0.3, 0.2, -0.5, 0.25])),
        lambda x, c: signal.lfilter(c[:3], np.r_[1, c[3:]], x),
    ),
}
