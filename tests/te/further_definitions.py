"""Operators as users write them: solvers, recursions, sampling and sorting."""

from __future__ import annotations

import math

import mycel as ms
from mycel import te

# mypy: disable-error-code="name-defined"
# ruff: noqa: B007


@te.operator
def banded_solve(bands, b):
    """Solve with a lower matrix of three diagonals: `bands[k, i]` stands at row i, column i - k."""
    x = te.empty(b.shape)
    for i in range(b.shape[0]):
        left = b[i]
        for k in range(1, 3):
            if i - k >= 0:
                left -= bands[k, i] * x[i - k]
        x[i] = left / bands[0, i]
    return x


@te.operator
def bitonic_sort(x, stages):
    """Sort 2**stages numbers by a network of comparisons."""
    n = 2**stages
    y = te.empty((n,))
    for i in range(n):
        y[i] = x[i]
    for s in range(stages):
        for j in range(s + 1):
            apart = 2 ** (s - j)
            for i in range(n):
                if i % (2 * apart) < apart:
                    low, high = min(y[i], y[i + apart]), max(y[i], y[i + apart])
                    if i // 2 ** (s + 1) % 2 == 0:
                        y[i] = low
                        y[i + apart] = high
                    else:
                        y[i] = high
                        y[i + apart] = low
    return y


@te.operator
def viterbi(emissions, transitions):
    """Score of the best path through states."""
    steps, states = emissions.shape
    best = te.empty((steps, states))
    for j in range(states):
        best[0, j] = emissions[0, j]
    for t in range(1, steps):
        for j in range(states):
            top = best[t - 1, 0] + transitions[0, j]
            for i in range(1, states):
                top = max(top, best[t - 1, i] + transitions[i, j])
            best[t, j] = top + emissions[t, j]
    result = best[steps - 1, 0]
    for j in range(1, states):
        result = max(result, best[steps - 1, j])
    return result


@te.operator
def alignments(probabilities, labels):
    """Probability of labels with blanks (index 0) between them, as connectionist models have it."""
    steps, long = probabilities.shape[0], 2 * labels.shape[0] + 1
    alpha = te.zeros((steps, long))
    alpha[0, 0] = probabilities[0, 0]
    alpha[0, 1] = probabilities[0, labels[0]]
    for t in range(1, steps):
        for s in range(long):
            total = alpha[t - 1, s]
            if s >= 1:
                total += alpha[t - 1, s - 1]
            if s % 2 == 1:
                if s >= 2:
                    if labels[s // 2] != labels[s // 2 - 1]:
                        total += alpha[t - 1, s - 2]
                alpha[t, s] = total * probabilities[t, labels[s // 2]]
            else:
                alpha[t, s] = total * probabilities[t, 0]
    return alpha[steps - 1, long - 1] + alpha[steps - 1, long - 2]


@te.operator
def sampled(image, at):
    """Sample an image between its pixels; what lies outside is zero."""
    h, w = image.shape
    y = te.zeros((at.shape[0],))
    for n in range(at.shape[0]):
        top, left = te.floor(at[n, 0]), te.floor(at[n, 1])
        for a in range(2):
            for b in range(2):
                r, c = ms.int64(top) + a, ms.int64(left) + b
                if 0 <= r and r < h and 0 <= c and c < w:
                    y[n] += image[r, c] * (1 - abs(at[n, 0] - top - a)) * (1 - abs(at[n, 1] - left - b))
    return y


@te.operator
def sliding_median(x, width):
    """Median of each window, by counting how many of its elements are smaller."""
    y = te.empty((x.shape[0] - width + 1,))
    for i in range(y.shape[0]):
        middle = 0.0
        for a in range(width):
            rank = 0
            for b in range(width):
                if x[i + b] < x[i + a]:
                    rank += 1
            if rank == width // 2:
                middle = x[i + a]
        y[i] = middle
    return y


@te.operator
def runs(x):
    """Length of the run of equal elements up to each element, and the sum of `x` over it."""
    length, total = te.empty(x.shape, ms.int64), te.empty(x.shape)
    length[0] = 1
    total[0] = x[0]
    for i in range(1, x.shape[0]):
        if x[i] == x[i - 1]:
            length[i] = length[i - 1] + 1
            total[i] = total[i - 1] + x[i]
        else:
            length[i] = 1
            total[i] = x[i]
    return length, total


@te.operator
def weighted_histogram(x, weights, count):
    """Sums of weights by the bin of each element; elements outside of [0, 1) take no part."""
    h = te.zeros((count,))
    for i in range(x.shape[0]):
        place = ms.int64(te.floor(x[i] * count))
        if 0 <= place and place < count:
            h[place] += weights[i]
    return h


@te.operator
def forces(p, cutoff):
    """Forces between bodies that are closer than the cut-off."""
    n, dim = p.shape
    f = te.zeros((n, dim))
    for i in range(n):
        for j in range(n):
            if i != j:
                square = 0.0
                for d in range(dim):
                    square += (p[j, d] - p[i, d]) ** 2
                if square < cutoff * cutoff:
                    scale = 1 / (square * te.sqrt(square))
                    for d in range(dim):
                        f[i, d] += scale * (p[j, d] - p[i, d])
    return f


@te.operator
def lifting(x):
    """Wavelet of Le Gall and Tabatabai (5/3) by lifting: the smooth part and the details."""
    half = x.shape[0] // 2
    smooth, detail = te.empty((half,)), te.empty((half,))
    for i in range(half):
        right = x[2 * i + 2] if 2 * i + 2 < 2 * half else x[2 * i]
        detail[i] = x[2 * i + 1] - (x[2 * i] + right) / 2
    for k in range(half):
        before = detail[k - 1] if k > 0 else detail[0]
        smooth[k] = x[2 * k] + (before + detail[k]) / 4
    return smooth, detail


@te.operator
def levinson(r, b):
    """Solve a symmetric Toeplitz system by Levinson's recursion; r has the first row."""
    n = b.shape[0]
    forward, swap, x = te.zeros((n,)), te.zeros((n,)), te.zeros((n,))
    forward[0] = 1 / r[0]
    x[0] = b[0] / r[0]
    for m in range(1, n):
        error, missing = 0.0, 0.0
        for i in range(m):
            error += r[m - i] * forward[i]
            missing += r[m - i] * x[i]
        scale = 1 / (1 - error * error)
        for i in range(m + 1):
            mine = forward[i] if i < m else 0.0
            other = forward[m - i] if i > 0 else 0.0
            swap[i] = scale * (mine - error * other)
        for i in range(m + 1):
            forward[i] = swap[i]
        rest = b[m] - missing
        for i in range(m + 1):
            x[i] += rest * forward[m - i]
    return x


@te.operator
def dynamic_time_warping(a, b):
    """Cost of the best alignment of two series."""
    n, m = a.shape[0], b.shape[0]
    d = te.full((n + 1, m + 1), math.inf)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n, m]


@te.operator
def power_iteration(a, v, rounds):
    """Largest eigenvalue of a matrix by so many multiplications."""
    n = v.shape[0]
    x, y = te.empty((n,)), te.zeros((n,))
    for i in range(n):
        x[i] = v[i]
    size = 0.0
    for t in range(rounds):
        size = 0.0
        for i in range(n):
            y[i] = 0.0
            for j in range(n):
                y[i] += a[i, j] * x[j]
            size += y[i] * y[i]
        size = te.sqrt(size)
        for i in range(n):
            x[i] = y[i] / size
    return size


@te.operator
def biquad(x, c):
    """Filter of second order with feedback, as sound has it."""
    y = te.empty(x.shape)
    x1, x2, y1, y2 = 0.0, 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        now = c[0] * x[i] + c[1] * x1 + c[2] * x2 - c[3] * y1 - c[4] * y2
        y[i] = now
        x2 = x1
        x1 = x[i]
        y2 = y1
        y1 = now
    return y
