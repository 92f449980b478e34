"""Workloads that are functions of tensors, written once for every framework.

`functions(T)` gives them over a module or object `T` whose functions bear PyTorch's names and take
axes by position. The programs are what users write: nothing is said twice for a framework's sake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["PLAIN", "functions"]

# Functions that frameworks with PyTorch's names have alike.
PLAIN = (
    "tanh sigmoid exp log log1p sqrt relu sin cos logaddexp matmul einsum cat stack where complex clamp unsqueeze "
    "squeeze ones_like zeros_like full_like transpose permute reshape argmin amax maximum minimum eye diagonal mean "
    "cumsum cumprod softmax chunk roll triu"
).split()


def _waves(T: Any) -> Mapping[str, Callable[..., Any]]:
    def chain(x, y):
        return T.tanh(x * y + 1.0) * T.sigmoid(x - y) + T.exp(-x * x) * T.log1p(y * y)

    def rfft_rows(x):
        return T.abs2(T.rfft(x))

    def spectral_convolution(x, real, imaginary):
        modes = 12
        spectrum = T.rfft2(x)[:, :, :modes, :modes]
        a, b = T.re(spectrum), T.im(spectrum)
        out_real = T.einsum("bixy,ioxy->boxy", a, real) - T.einsum("bixy,ioxy->boxy", b, imaginary)
        out_imaginary = T.einsum("bixy,ioxy->boxy", a, imaginary) + T.einsum("bixy,ioxy->boxy", b, real)
        pads = (0, 33 - modes, 0, 64 - modes)
        return T.gelu(T.irfft2(T.complex(T.pad(out_real, pads, 0.0), T.pad(out_imaginary, pads, 0.0))) + x)

    def ode_rk4(x, w1, b1, w2, b2):
        def field(y):
            return T.matmul(T.tanh(T.matmul(y, w1) + b1), w2) + b2

        h = 0.05
        for _ in range(20):
            k1 = field(x)
            k2 = field(x + 0.5 * h * k1)
            k3 = field(x + 0.5 * h * k2)
            k4 = field(x + h * k3)
            x = x + (h / 6.0) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x

    return {"wl_chain": chain, "wl_rfft": rfft_rows, "wl_fno": spectral_convolution, "wl_ode": ode_rk4}


def _statistics(T: Any) -> Mapping[str, Callable[..., Any]]:
    def particles(position, velocity, cells):
        n = 128
        for _ in range(10):
            at = T.to_int(T.clamp(position * n, 0.0, n - 1.0))
            index = at[:, 0] * n + at[:, 1]
            density = T.index_add(cells, index, T.ones_like(position[:, 0]))
            force = T.take(density, index) * 1e-3
            velocity = velocity * (1.0 - T.unsqueeze(force, 1))
            position = T.clamp(position + 0.01 * velocity, 0.0, 1.0)
        return position

    def hmc(x, label, w, momentum):
        step = 0.01

        def slope(v):
            p = T.sigmoid(T.matmul(x, v))
            return T.matmul(T.transpose(x, 0, 1), p - label) + v

        momentum = momentum - 0.5 * step * slope(w)
        for _ in range(20):
            w = w + step * momentum
            momentum = momentum - step * slope(w)
        return w

    def k_means(x, centres):
        one = T.ones_like(x[:, 0])
        for _ in range(10):
            distance = (centres * centres).sum(1) - 2.0 * T.matmul(x, T.transpose(centres, 0, 1))
            nearest = T.argmin(distance, 1)
            sums = T.index_add(T.zeros_like(centres), nearest, x)
            counts = T.index_add(T.zeros_like(centres[:, 0]), nearest, one)
            centres = sums / T.unsqueeze(T.maximum(counts, T.ones_like(counts)), 1)
        return centres

    def gaussian_process(x, y, scale):
        z = x / scale
        norms = (z * z).sum(1)
        distance = T.unsqueeze(norms, 1) + norms - 2.0 * T.matmul(z, T.transpose(z, 0, 1))
        factor = T.cholesky(T.exp(-0.5 * distance) + 0.1 * T.eye(1000))
        white = T.solve_lower(factor, T.unsqueeze(y, 1))
        return 0.5 * (white * white).sum() + T.log(T.diagonal(factor)).sum()

    def whitening(x):
        centred = x - x.mean(0)
        values, vectors = T.eigh(T.matmul(T.transpose(centred, 0, 1), centred) / 4000.0)
        return T.matmul(T.matmul(centred, vectors / T.sqrt(values + 1e-3)), T.transpose(vectors, 0, 1))

    def singular_values(x):
        return T.singular_values(x)

    return {
        "wl_particles": particles,
        "wl_hmc": hmc,
        "wl_kmeans": k_means,
        "wl_gp": gaussian_process,
        "wl_whitening": whitening,
        "wl_svd": singular_values,
    }


def _structures(T: Any) -> Mapping[str, Callable[..., Any]]:
    def graph_convolution(x, w1, w2, source, target):
        def layer(h, w):
            h = T.matmul(h, w)
            return T.index_add(T.zeros_like(h), target, T.take(h, source))

        return layer(T.relu(layer(x, w1)), w2)

    def nerf(points, w1, w2, w3, w4):
        bands = [points]
        for k in range(6):
            bands += [T.sin(points * 2.0**k), T.cos(points * 2.0**k)]
        h = T.relu(T.matmul(T.cat(bands, -1), w1))
        h = T.relu(T.matmul(h, w2))
        h = T.matmul(T.relu(T.matmul(h, w3)), w4)
        colour, density = T.sigmoid(h[..., :3]), T.relu(h[..., 3])
        alpha = 1.0 - T.exp(-density * 0.05)
        through = T.cumprod(1.0 - alpha + 1e-6, 1)
        return (T.unsqueeze(alpha * through, 2) * colour).sum(1)

    def augment(images, matrices):
        return T.grid_sample(images, T.affine_grid(matrices, 128, 128))

    def quantiles(x):
        ordered = T.sort_values(x)
        return T.cat((ordered[:, 1000:1001], ordered[:, 9000:9001], T.topk_values(x, 100)), 1)

    def matrix_factors(user, item, rating, users, items):
        return T.mean(((T.take(users, user) * T.take(items, item)).sum(1) - rating) ** 2)

    return {
        "wl_gcn": graph_convolution,
        "wl_nerf": nerf,
        "wl_augment": augment,
        "wl_quantiles": quantiles,
        "wl_mf": matrix_factors,
    }


def _losses(T: Any) -> Mapping[str, Callable[..., Any]]:
    def soft_rank(x, y):
        pairs = T.sigmoid((T.unsqueeze(x, 2) - T.unsqueeze(x, 1)) * 4.0)
        return T.mean((pairs.sum(1) - y) ** 2)

    def lovasz(logits, labels):
        errors = 1.0 - logits * (2.0 * labels - 1.0)
        errors, order = T.sort_down(errors)
        truth = T.take_along(labels, order)
        total = T.unsqueeze(truth.sum(1), 1)
        intersection = total - T.cumsum(truth, 1)
        union = total + T.cumsum(1.0 - truth, 1)
        jaccard = 1.0 - intersection / union
        jaccard = T.cat((jaccard[:, :1], jaccard[:, 1:] - jaccard[:, :-1]), 1)
        return T.mean((T.relu(errors) * jaccard).sum(1))

    def soft_dtw(x, y):
        # A row of the skewed table is an antidiagonal; what lies outside of the table is far.
        n, far = 32, 1e4
        distance = (T.unsqueeze(x, 2) - T.unsqueeze(y, 1)) ** 2
        wide = T.reshape(T.pad(distance, (0, n), far), (-1, 2 * n * n))
        skewed = T.reshape(wide[:, : n * (2 * n - 1)], (-1, n, 2 * n - 1))
        edge = T.full_like(x[:, :1], far)
        before, row = T.full_like(x, far), skewed[:, :, 0]
        for d in range(1, 2 * n - 1):
            above, across = T.cat((edge, row[:, :-1]), 1), T.cat((edge, before[:, :-1]), 1)
            nearest = -T.logaddexp(T.logaddexp(-above, -row), -across)
            before, row = row, skewed[:, :, d] + nearest
        return T.mean(row[:, n - 1])

    def ctc(logits, labels):
        return T.ctc(T.log_softmax(logits), labels)

    def ppo(reward, value, new, old):
        advantages = []
        gae = T.zeros_like(reward[0])
        for t in range(127, -1, -1):
            gae = reward[t] + 0.99 * value[t + 1] - value[t] + 0.95 * 0.99 * gae
            advantages.append(gae)
        advantage = T.detach(T.flip(T.stack(advantages, 0), 0))
        ratio = T.exp(0.1 * (new - old))
        policy = -T.mean(T.minimum(ratio * advantage, T.clamp(ratio, 0.8, 1.2) * advantage))
        return policy + 0.5 * T.mean((value[:-1] - T.detach(advantage + value[:-1]) + 0.1) ** 2)

    return {"wl_soft_rank": soft_rank, "wl_lovasz": lovasz, "wl_soft_dtw": soft_dtw, "wl_ctc": ctc, "wl_ppo": ppo}


def functions(T: Any) -> Mapping[str, Callable[..., Any]]:
    """Return the functions by their cases' names."""
    return {**_waves(T), **_statistics(T), **_structures(T), **_losses(T)}
