"""Calibration: value ranges from sample data (minmax, percentile, mse, kl).

Two passes over the data: the first finds the least and the greatest of each value, the second
counts values in `BINS` bins between them where the method asks for more. The range is then

    minmax       all values
    percentile   all but the outermost shares
    mse          the range whose levels are nearest to the values, by mean square
    kl           the range whose levels keep the distribution, by relative entropy (Migacz, 2017)

where the last two shrink both ends alike. Everything is counted in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["BINS", "METHODS", "Observer"]

Array = np.ndarray[Any, Any]
METHODS = ("minmax", "percentile", "mse", "kl")
BINS = 2048
_SHRINKS = np.linspace(0.2, 1.0, 65)


class Observer:
    """Statistics of one value: its range, its count, and a histogram.

    >>> seen = Observer()
    >>> for values in (np.array([0.0, 2.0]), np.array([-1.0, 1.0])):
    ...     seen.extend(values)
    >>> seen.range("minmax", 8)
    (-1.0, 2.0)
    """

    def __init__(self) -> None:
        self.low, self.high, self.count = np.inf, -np.inf, 0
        self.bins = np.zeros(BINS)

    def extend(self, values: Array) -> None:
        """Take values into the ends."""
        if values.size:
            self.low = min(self.low, float(values.min()))
            self.high = max(self.high, float(values.max()))
            self.count += values.size

    def tally(self, values: Array) -> None:
        """Take values into the bins, which lie between the ends that were found before."""
        # Values that are nearly the same have no bins: float32 has no numbers between them.
        finest = np.spacing(np.float32(max(abs(self.low), abs(self.high))))
        if np.isfinite(self.high - self.low) and (self.high - self.low) / BINS > finest:
            self.bins += np.histogram(values, BINS, (self.low, self.high))[0]

    def range(self, method: str, bits: int, percentile: float = 99.99) -> tuple[float, float]:
        """Return the ends of the range by a method, for levels of `bits` bits.

        `percentile` is the share of values, in hundredths, that its method keeps. Raises ValueError
        where no value was seen.
        """
        if not self.count:
            raise ValueError("quantise: the data have no values to observe; give at least one batch")
        if method == "minmax" or not self.bins.any():
            return self.low, self.high
        edges = np.linspace(self.low, self.high, BINS + 1)
        if method == "percentile":
            share = np.cumsum(self.bins) / self.bins.sum()
            cut = (100.0 - percentile) / 200.0
            first, last = np.searchsorted(share, cut), np.searchsorted(share, 1.0 - cut)
            return float(edges[first]), float(edges[min(last + 1, BINS)])
        centres = (edges[1:] + edges[:-1]) / 2
        costs = [self._cost(method, shrink, centres, bits) for shrink in _SHRINKS]
        best = _SHRINKS[int(np.argmin(costs))]
        return float(min(self.low, 0.0) * best), float(max(self.high, 0.0) * best)

    def _cost(self, method: str, shrink: float, centres: Array, bits: int) -> float:
        low, high = min(self.low, 0.0) * shrink, max(self.high, 0.0) * shrink
        size = (high - low) / ((1 << bits) - 1)
        level = np.rint((np.clip(centres, low, high) - low) / size)
        if method == "mse":
            return float((self.bins * (level * size + low - centres) ** 2).sum())
        inside = (centres >= low) & (centres <= high)
        # Zeros, of which rectifiers and padding make most values, are exact with any range.
        width = centres[1] - centres[0]
        bins = np.where(np.abs(centres) <= width, 0.0, self.bins)
        if not bins[inside].any():
            return np.inf
        kept = np.where(inside, bins, 0.0)
        # What lies outside counts at the ends.
        wanted = kept.copy()
        first, last = np.flatnonzero(inside)[[0, -1]]
        wanted[first] += bins[:first].sum()
        wanted[last] += bins[last + 1 :].sum()
        level = level.astype(np.int64)
        sums = np.bincount(level, kept, 1 << bits)
        filled = np.bincount(level, kept > 0, 1 << bits)
        found = np.where(kept > 0, sums[level] / np.maximum(filled[level], 1), 0.0)
        p, q = wanted / wanted.sum(), (found + 1e-12) / (found + 1e-12).sum()
        return float((p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum())
