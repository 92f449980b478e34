"""Operators as users write them."""

from __future__ import annotations

import math

import mycel as ms
from mycel import te

# mypy: disable-error-code="name-defined"
# ruff: noqa: B007, F821


@te.operator
def product(a, b):
    c = te.zeros((a.shape[0], b.shape[1]))
    c[i, j] += a[i, k] * b[k, j]
    return c


@te.operator
def products(a, b):
    c = te.zeros((a.shape[0], a.shape[1], b.shape[2]))
    for n, i, j, k in te.grid(a.shape[0], a.shape[1], b.shape[2], a.shape[2]):
        c[n, i, j] += a[n, i, k] * b[n, k, j]
    return c


@te.operator
def outer(a, b):
    c = te.empty((a.shape[0], b.shape[0]))
    c[i, j] = a[i] * b[j]
    return c


@te.operator
def bilinear(a, w, b):
    y = te.zeros((a.shape[0], w.shape[2]))
    y[n, o] += a[n, i] * w[i, j, o] * b[n, j]
    return y


@te.operator
def transposed(a):
    b = te.empty((a.shape[1], a.shape[0]))
    b[j, i] = a[i, j]
    return b


@te.operator
def trace(a):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i, i]
    return total


@te.operator
def convolution(x, w, stride):
    y = te.zeros(((x.shape[0] - w.shape[0]) // stride + 1,))
    for i in range(y.shape[0]):
        for k in te.reduce(w.shape[0]):
            y[i] += x[i * stride + k] * w[k]
    return y


@te.operator
def dilated(x, w, step):
    y = te.zeros((x.shape[0] - (w.shape[0] - 1) * step,))
    for i in range(y.shape[0]):
        for k in range(w.shape[0]):
            y[i] += x[i + k * step] * w[k]
    return y


@te.operator
def padded(x, w):
    y = te.zeros(x.shape)
    half = w.shape[0] // 2
    for i in range(x.shape[0]):
        for k in range(w.shape[0]):
            if i + k - half >= 0 and i + k - half < x.shape[0]:
                y[i] += x[i + k - half] * w[k]
    return y


@te.operator
def convolution_2d(x, w):
    y = te.zeros((x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1))
    y[n, o, h, v] += x[n, c, h + a, v + b] * w[o, c, a, b]
    return y


@te.operator
def convolution_2d_strided(x, w):
    high, wide = (x.shape[2] - w.shape[2]) // 2 + 1, (x.shape[3] - w.shape[3]) // 2 + 1
    y = te.zeros((x.shape[0], w.shape[0], high, wide))
    for n, o, h, v in te.grid(y.shape):
        for c, a, b in te.grid(w.shape[1:]):
            y[n, o, h, v] += x[n, c, 2 * h + a, 2 * v + b] * w[o, c, a, b]
    return y


@te.operator
def transposed_convolution(x, w, stride):
    y = te.zeros(((x.shape[0] - 1) * stride + w.shape[0],))
    for i in range(x.shape[0]):
        for k in range(w.shape[0]):
            y[i * stride + k] += x[i] * w[k]
    return y


@te.operator
def depthwise(x, w):
    y = te.zeros((x.shape[0], x.shape[1] - w.shape[1] + 1))
    y[c, i] += x[c, i + k] * w[c, k]
    return y


@te.operator
def mean_pool(x, size):
    y = te.zeros((x.shape[0] // size,))
    for i in range(x.shape[0] // size):
        for k in range(size):
            y[i] += x[i * size + k] / size
    return y


@te.operator
def max_pool(x, size, stride):
    y = te.full(((x.shape[0] - size) // stride + 1,), -math.inf)
    for i in range(y.shape[0]):
        for k in range(size):
            y[i] = max(y[i], x[i * stride + k])
    return y


@te.operator
def softmax(x):
    y = te.empty(x.shape)
    for i in te.parallel(x.shape[0]):
        most = -math.inf
        for j in range(x.shape[1]):
            most = max(most, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += te.exp(x[i, j] - most)
        for j in range(x.shape[1]):
            y[i, j] = te.exp(x[i, j] - most) / total
    return y


@te.operator
def layer_norm(x, gain, shift):
    y = te.empty(x.shape)
    size = x.shape[1]
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(size):
            mean += x[i, j] / size
        variance = 0.0
        for j in range(size):
            variance += (x[i, j] - mean) ** 2 / size
        for j in range(size):
            y[i, j] = (x[i, j] - mean) / te.sqrt(variance + 1e-5) * gain[j] + shift[j]
    return y


@te.operator
def sliding_mean(x, width):
    y = te.empty((x.shape[0] - width + 1,))
    total = 0.0
    for k in range(width):
        total += x[k]
    y[0] = total / width
    for i in range(1, y.shape[0]):
        total += x[i + width - 1] - x[i - 1]
        y[i] = total / width
    return y


@te.operator
def running_sum(x):
    y = te.empty(x.shape)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


@te.operator
def recurrence(x, a):
    y = te.empty(x.shape)
    state = 0.0
    for i in range(x.shape[0]):
        state = te.tanh(a[0] * state + x[i])
        y[i] = state
    return y


@te.operator
def forward_substitution(l, b):
    x = te.empty(b.shape)
    for i in range(b.shape[0]):
        left = b[i]
        for j in range(i):
            left -= l[i, j] * x[j]
        x[i] = left / l[i, i]
    return x


@te.operator
def backward_substitution(u, b):
    x = te.empty(b.shape)
    n = b.shape[0]
    for r in range(n):
        left = b[n - 1 - r]
        for j in range(n - r, n):
            left -= u[n - 1 - r, j] * x[j]
        x[n - 1 - r] = left / u[n - 1 - r, n - 1 - r]
    return x


@te.operator
def tridiagonal(low, middle, high, b):
    n = b.shape[0]
    c, d, x = te.allocate(n), te.allocate(n), te.empty(n)
    c[0] = high[0] / middle[0]
    d[0] = b[0] / middle[0]
    for i in range(1, n):
        c[i] = high[i] / (middle[i] - low[i] * c[i - 1])
        d[i] = (b[i] - low[i] * d[i - 1]) / (middle[i] - low[i] * c[i - 1])
    x[n - 1] = d[n - 1]
    for r in range(1, n):
        x[n - 1 - r] = d[n - 1 - r] - c[n - 1 - r] * x[n - r]
    return x


@te.operator
def cholesky(a):
    n = a.shape[0]
    l = te.zeros((n, n))
    for j in range(n):
        pivot = a[j, j]
        for k in range(j):
            pivot -= l[j, k] * l[j, k]
        l[j, j] = te.sqrt(pivot)
        for i in range(j + 1, n):
            value = a[i, j]
            for k in range(j):
                value -= l[i, k] * l[j, k]
            l[i, j] = value / l[j, j]
    return l


@te.operator
def heat(u, steps):
    n = u.shape[0]
    v = te.empty((steps + 1, n))
    for i in range(n):
        v[0, i] = u[i]
    for t in range(1, steps + 1):
        v[t, 0] = v[t - 1, 0]
        v[t, n - 1] = v[t - 1, n - 1]
        for i in range(1, n - 1):
            v[t, i] = v[t - 1, i] + 0.2 * (v[t - 1, i - 1] - 2 * v[t - 1, i] + v[t - 1, i + 1])
    return v


@te.operator
def gauss_seidel(u, steps):
    n = u.shape[0]
    v = te.empty(n)
    for i in range(n):
        v[i] = u[i]
    for t in range(steps):
        for i in range(1, n - 1):
            v[i] = (v[i - 1] * v[i] + v[i + 1]) / 2
    return v


@te.operator
def horner(c, x):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        value = 0.0
        for k in range(c.shape[0]):
            value = value * x[i] + c[c.shape[0] - 1 - k]
        y[i] = value
    return y


@te.operator
def geometric_mean(x):
    y = te.full((x.shape[0],), 1.0)
    for i, j in te.grid(x.shape):
        y[i] *= x[i, j]
    for i in range(x.shape[0]):
        y[i] = y[i] ** (1 / x.shape[1])
    return y


@te.operator
def leaky(x, slope):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i] = slope * x[i]
    return y


@te.operator
def clipped(x, low, high):
    y = te.empty(x.shape)
    y[i] = min(max(x[i], low), high)
    return y


@te.operator
def gelu(x):
    y = te.empty(x.shape)
    y[i] = 0.5 * x[i] * (1 + te.erf(x[i] / math.sqrt(2)))
    return y


def logistic(v):
    return 1 / (1 + te.exp(-v))


@te.operator
def gated(x, g):
    y = te.empty(x.shape)
    y[i] = x[i] * logistic(g[i])
    return y


@te.operator
def distances(a, b):
    d = te.empty((a.shape[0], b.shape[0]))
    for i, j in te.grid(d.shape):
        total = 0.0
        for k in range(a.shape[1]):
            total += (a[i, k] - b[j, k]) ** 2
        d[i, j] = te.sqrt(total)
    return d


@te.operator
def reversed_rows(x):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i] = x[i]
    return y


@te.operator
def rolled(x, by):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        y[i] = x[(i + by) % x.shape[0]]
    return y


@te.operator
def upsampled(x, by):
    y = te.empty((x.shape[0] * by,))
    for i in range(y.shape[0]):
        y[i] = x[i // by]
    return y


@te.operator
def interleaved(a, b):
    y = te.empty((2 * a.shape[0],))
    for i in range(a.shape[0]):
        y[2 * i] = a[i]
        y[2 * i + 1] = b[i]
    return y


@te.operator
def prefix_products(x):
    y = te.empty(x.shape)
    held = 1.0
    for i in range(x.shape[0]):
        held = held * x[i]
        y[i] = held
    return y


@te.operator
def upper(a):
    b = te.zeros(a.shape)
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            b[i, j] = a[i, j]
    return b


@te.operator
def banded(a, x, width):
    y = te.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if j - i <= width and i - j <= width:
                y[i] += a[i, j] * x[j]
    return y


@te.operator
def complex_product(a, b):
    c = te.empty(a.shape)
    for i in range(a.shape[0]):
        c[i, 0] = a[i, 0] * b[i, 0] - a[i, 1] * b[i, 1]
        c[i, 1] = a[i, 0] * b[i, 1] + a[i, 1] * b[i, 0]
    return c


@te.operator
def butterflies(x):
    y = te.empty(x.shape)
    half = x.shape[0] // 2
    for i in range(half):
        y[i] = x[i] + x[i + half]
        y[i + half] = (x[i] - x[i + half]) * te.cos(i * (math.pi / half))
    return y


@te.operator
def gathered(x, places):
    y = te.empty((places.shape[0], x.shape[1]))
    y[n, j] = x[places[n], j]
    return y


@te.operator
def scattered(x, places, size):
    y = te.zeros((size, x.shape[1]))
    y[places[n], j] += x[n, j]
    return y


@te.operator
def moments(x):
    mean, square = 0.0, 0.0
    for i in range(x.shape[0]):
        mean += x[i] / x.shape[0]
        square += x[i] ** 2 / x.shape[0]
    return mean, square


@te.operator
def sorting_network(x):
    y = te.empty(x.shape)
    n = x.shape[0]
    for i in range(n):
        y[i] = x[i]
    for t in range(n):
        for k in range((n - t % 2) // 2):
            low = min(y[2 * k + t % 2], y[2 * k + t % 2 + 1])
            high = max(y[2 * k + t % 2], y[2 * k + t % 2 + 1])
            y[2 * k + t % 2] = low
            y[2 * k + t % 2 + 1] = high
    return y


@te.operator
def distance_transform(x):
    n = x.shape[0]
    y = te.empty(n)
    for i in range(n):
        y[i] = 1e6 if x[i] < 0.5 else 0.0
    for i in range(1, n):
        y[i] = min(y[i], y[i - 1] + 1)
    for r in range(1, n):
        y[n - 1 - r] = min(y[n - 1 - r], y[n - r] + 1)
    return y


@te.operator
def ray_march(origin, steps):
    depth = te.empty(origin.shape)
    for i in range(origin.shape[0]):
        t = 0.0
        for k in range(steps):
            distance = te.sqrt(origin[i] ** 2 + (t - 2) ** 2) - 1
            if distance > 1e-3:
                t += distance
        depth[i] = t
    return depth


@te.operator
def histogram(x, bins):
    h = te.zeros((bins,))
    for i in range(x.shape[0]):
        h[int(min(max(x[i] * bins, 0.0), bins - 1.0))] += 1
    return h


@te.operator
def edit_distance(a, b):
    n, m = a.shape[0], b.shape[0]
    d = te.empty((n + 1, m + 1), ms.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(1, m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            same = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + same)
    return d
