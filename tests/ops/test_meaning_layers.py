"""Activations, losses, norms, products and pooling under all of their names against NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as special

from tests.meaning import A, Checks, I

from .checks import add_everywhere

checks = Checks("NumPy")


def add(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    add_everywhere(checks, names, expected, *cases, **{"dtypes": "float32", **more})


def plain(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    """Compiled in the first case only."""
    checks.add(names, expected, cases[0], **{"dtypes": "float32", **more})
    checks.add(names, expected, *cases[1:], **{"dtypes": "float32", "jit": False, **more})


# fmt: off
# Activations.
WIDE = ((A(3, 4, low=-5, high=5),), (A(2, 3, 2),), (A(0, 3),))


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(x * beta, 0) / beta)


def tanh_gelu(x: Any) -> Any:
    return x * special.expit(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


add("relu ReLU", lambda x: np.maximum(x, 0), *WIDE)
add("relu6 ReLU6", lambda x: np.clip(x, 0, 6), (A(3, 4, low=-9, high=9),), *WIDE[1:])
add("leaky_relu", lambda x, alpha=0.2: np.where(x > 0, x, alpha * x), *WIDE, (A(5), 0.7))
add("elu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), *WIDE)
add("Elu", lambda x: np.where(x > 0, x, np.expm1(x)), *WIDE)
add("celu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)), *WIDE, (A(5), 0.7))
plain("ops.CeLU", lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)), *WIDE, init={"alpha": 0.7})
add("selu SeLU", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), *WIDE)
add("gelu", lambda x: x * special.ndtr(x), *WIDE, oracle="SciPy")
add("GeLU Gelu", tanh_gelu, *WIDE)
plain("ops.gelu", lambda x, approximate: tanh_gelu(x), *WIDE, kwargs={"approximate": "tanh"})
add("fast_gelu FastGeLU FastGelu", lambda x: x / (1 + np.exp(-1.702 * np.abs(x))) * np.exp(0.851 * (x - np.abs(x))), *WIDE)
add("silu", lambda x: x * special.expit(x), *WIDE, oracle="SciPy")
add("mish Mish", lambda x: x * np.tanh(softplus(x)), *WIDE)
add("softplus Softplus", softplus, *WIDE, (A(3, 4, low=15, high=25),))
plain("ops.softplus", softplus, *WIDE, kwargs={"beta": 2, "threshold": 3})
add("logsigmoid", lambda x: -softplus(-x), *WIDE)
add("softsign Softsign", lambda x: x / (1 + np.abs(x)), *WIDE)
add("hardsigmoid HSigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, *WIDE)
add("hardswish HSwish", lambda x: x * np.clip(x + 3, 0, 6) / 6, *WIDE)
add("hardtanh", lambda x, low=-1, high=1: np.clip(x, low, high), *WIDE, (A(5), -0.3, 1.2))
add("hardshrink", lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0), *WIDE, (A(5), 1.2))
plain("ops.HShrink", lambda x: np.where(np.abs(x) > 1.2, x, 0), *WIDE, init={"lambd": 1.2})
add("softshrink soft_shrink", lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0), *WIDE, (A(5), 1.2))
plain("ops.SoftShrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 1.2, 0), *WIDE, init={"lambd": 1.2})
add("tanhshrink", lambda x: x - np.tanh(x), *WIDE)
add("threshold", lambda x, t, v: np.where(x > t, x, v), (A(3, 4), 0.3, -1.5), (A(5), -1.0, 2.0), (A(0, 2), 0.0, 1.0))
add("softmax", special.softmax, (A(3, 4), -1), (A(2, 3, 4), 1), (A(1, 5), 0), oracle="SciPy")
add("log_softmax", special.log_softmax, (A(3, 4), -1), (A(2, 3, 4), 1), (A(1, 5), 0), oracle="SciPy")
add("softmin", lambda x, axis: special.softmax(-x, axis), (A(3, 4), -1), (A(2, 3, 4), 1), (A(1, 5), 0), oracle="SciPy")
def halves(x: Any, axis: int, function: Any) -> Any:
    return function(*np.split(x, 2, axis))


for axis in (-1, 0):
    plain("ops.Softmax", lambda x, a=axis: special.softmax(x, a), (A(3, 4),), (A(2, 3, 4),), (A(1, 5),), init={"axis": axis}, oracle="SciPy")
    plain("ops.LogSoftmax", lambda x, a=axis: special.log_softmax(x, a), (A(3, 4),), (A(2, 3, 4),), (A(1, 5),), init={"axis": axis}, oracle="SciPy")
    plain("ops.GLU", lambda x, a=axis: halves(x, a, lambda u, v: u * special.expit(v)), (A(4, 4),), (A(2, 3, 2),), (A(2, 6),), init={"axis": axis})


add("glu", lambda x, axis=-1: halves(x, axis, lambda u, v: u * special.expit(v)), (A(3, 4),), (A(2, 4, 3), 1), (A(1, 2),))
add("swiglu", lambda x, dim=-1: halves(x, dim, lambda u, v: u * special.expit(u) * v), (A(3, 4),), (A(2, 4, 3), 1), (A(1, 2),))
add("prelu PReLU", lambda x, w: np.where(x > 0, x, x * w.reshape(-1, *(1,) * (x.ndim - 2))), (A(3, 4), A(4)), (A(2, 3, 2), A(3)), (A(1, 5), A(1)))

# Losses.


def reduced(values: Any, reduction: str, n: Any = None) -> Any:
    return values if reduction == "none" else values.sum() if reduction == "sum" else values.sum() / (values.size if n is None else n)


def loss(name: str, values: Any, *cases: Any, default: str = "mean", **more: Any) -> None:
    """A loss with its three reductions, from its values one by one."""
    plain(f"ops.{name}", lambda *a, **k: reduced(values(*a, **k), default), *cases, **more)
    for reduction in {"none", "sum", "mean"} - {default}:
        plain(f"ops.{name}", lambda *a, reduction, **k: reduced(values(*a, **k), reduction), cases[0], **{**more, "kwargs": {**more.get("kwargs", {}), "reduction": reduction}})


TWO = ((A(3, 4), A(3, 4)), (A(5), A(5)), (A(2, 1, 2), A(2, 1, 2)))
SIGNS = ((A(3, 4), A(3, 4, values=np.where(np.arange(12) % 3, 1.0, -1.0).reshape(3, 4))), (A(5), A(5, values=np.array([1.0, -1, -1, 1, 1]))), (A(1, 2), A(1, 2, values=np.array([[1.0, -1]]))))
CHANCES = ((A(3, 4, low=0.1, high=0.9), A(3, 4, low=0, high=1)), (A(5, low=0.1, high=0.9), A(5, low=0, high=1)), (A(1, 2, low=0.1, high=0.9), A(1, 2, low=0, high=1)))


def huber(x: Any, y: Any, delta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def smooth(x: Any, y: Any, beta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


def divergence(x: Any, y: Any) -> Any:
    return special.xlogy(y, y) - y * x


def crossed(p: Any, y: Any, weight: Any = 1.0) -> Any:
    return -weight * (y * np.log(p) + (1 - y) * np.log1p(-p))


def crossed_logits(x: Any, y: Any, weight: Any = None, pos: Any = None) -> Any:
    found = -(y * -softplus(-x) * (1 if pos is None else pos) + (1 - y) * -softplus(x))
    return found if weight is None else found * weight


loss("l1_loss", lambda x, y: np.abs(x - y), *TWO)
loss("mse_loss", lambda x, y: (x - y) ** 2, *TWO)
loss("huber_loss", huber, *TWO)
loss("huber_loss", huber, *TWO, kwargs={"delta": 0.6})
loss("smooth_l1_loss", smooth, *TWO, default="none")
loss("smooth_l1_loss", smooth, *TWO, default="none", kwargs={"beta": 0.4})
plain("ops.SmoothL1Loss", smooth, *TWO)
plain("ops.SmoothL1Loss", lambda x, y: smooth(x, y, 0.4).mean(), *TWO, init={"beta": 0.4, "reduction": "mean"})
loss("soft_margin_loss", lambda x, y: softplus(-x * y), *SIGNS, grad=(0,))
for reduction in ("mean", "sum", "none"):
    init = {"reduction": reduction}
    plain("ops.SoftMarginLoss", lambda x, y, r=reduction: reduced(softplus(-x * y), r), *SIGNS, grad=(0,), init=init)
    plain("ops.KLDivLoss", lambda x, y, r=reduction: reduced(divergence(x, y), r), *CHANCES, init=init)
    plain("ops.BinaryCrossEntropy", lambda x, y, w, r=reduction: reduced(crossed(x, y, w), r), *[(*c, c[0]) for c in CHANCES], grad=(0,), init=init)
    plain("ops.BCEWithLogitsLoss", lambda x, y, w, q, r=reduction: reduced(crossed_logits(x, y, w, q), r), *[(*c, c[0], c[0]) for c in CHANCES], grad=(0,), init=init)
loss("hinge_embedding_loss", lambda x, y, margin=1.0: np.where(y > 0, x, np.maximum(margin - x, 0)), *SIGNS, grad=(0,))
loss("hinge_embedding_loss", lambda x, y, margin=1.0: np.where(y > 0, x, np.maximum(margin - x, 0)), *SIGNS, kwargs={"margin": 0.4}, grad=(0,))
loss("margin_ranking_loss", lambda x, y, t, margin=0.0: np.maximum(-t * (x - y) + margin, 0), *[(*a, b[1]) for a, b in zip(TWO[:2], SIGNS)], (A(1, 2), A(1, 2), SIGNS[2][1]), grad=(0, 1))
loss("margin_ranking_loss", lambda x, y, t, margin=0.0: np.maximum(-t * (x - y) + margin, 0), *[(*a, b[1]) for a, b in zip(TWO[:2], SIGNS)], kwargs={"margin": 0.7}, grad=(0, 1))
loss("kl_div", divergence, *CHANCES)
plain("ops.kl_div", lambda x, y, r: divergence(x, y).sum() / len(x), *[(*c, "batchmean") for c in CHANCES])
loss("binary_cross_entropy", crossed, *CHANCES)
loss("binary_cross_entropy", crossed, *[(*c, c[1]) for c in CHANCES], grad=(0,))
loss("binary_cross_entropy_with_logits", crossed_logits, *TWO)
loss("binary_cross_entropy_with_logits", crossed_logits, *[(a[0], b[1], b[0], b[0]) for a, b in zip(TWO[:2], CHANCES)], (A(1, 2), A(1, 2), A(1, 2), A(2)), grad=(0,))
plain("ops.SigmoidCrossEntropyWithLogits", crossed_logits, *TWO)


def gaussian(x: Any, y: Any, v: Any, full: bool = False, eps: float = 1e-6) -> Any:
    v = np.maximum(v, eps)
    return (np.log(v) + (x - y) ** 2 / v) / 2 + (math.log(2 * math.pi) / 2 if full else 0)


for full in (False, True):
    loss("gaussian_nll_loss", gaussian, *[(*a, b[0]) for a, b in zip(TWO[:2], CHANCES)], (A(1, 2), A(1, 2), A(1, 2, low=0.3, high=2)), kwargs={"full": full}, tolerance=3)


def cosine(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    return (x * y).sum(dim) / np.maximum(np.linalg.norm(x, axis=dim), eps) / np.maximum(np.linalg.norm(y, axis=dim), eps)


plain("ops.cosine_similarity", cosine, (A(3, 4), A(3, 4)), (A(2, 3, 2), A(2, 3, 2), -1), (A(5), A(5), 0))
loss("cosine_embedding_loss", lambda x, y, t, margin=0.0: np.where(t > 0, 1 - cosine(x, y), np.maximum(cosine(x, y) - margin, 0)), (A(3, 4), A(3, 4), I(3, low=-1, high=0)), (A(2, 5), A(2, 5), I(2, low=1, high=2)), (A(1, 2), A(1, 2), I(1, low=-1, high=0)))
loss("multilabel_soft_margin_loss", lambda x, y: crossed_logits(x, y).mean(1), (A(3, 4), CHANCES[0][1]), (A(2, 5), A(2, 5, low=0, high=1)), (A(1, 2), CHANCES[2][1]), grad=(0,))
LABELS = ((A(3, 4), I(3, high=4, dtype="int64")), (A(5, 2), I(5, high=2, dtype="int64")), (A(1, 3), I(1, high=3, dtype="int64")))


def margins(x: Any, y: Any, p: int = 1, margin: float = 1) -> Any:
    own = np.take_along_axis(x, y[:, None], 1)
    found = np.maximum(margin - own + x, 0) ** p
    return (found * (np.arange(x.shape[1]) != y[:, None])).sum(1) / x.shape[1]


loss("multi_margin_loss", margins, *LABELS)
loss("multi_margin_loss", margins, *LABELS, kwargs={"p": 2, "margin": 0.7})


def triplet(a: Any, p: Any, n: Any, margin: float = 1.0, order: float = 2, eps: float = 1e-6, swap: bool = False) -> Any:
    def far(x: Any, y: Any) -> Any:
        return (np.abs(x - y + eps) ** order).sum(-1) ** (1 / order)

    return np.maximum(far(a, p) - (np.minimum(far(a, n), far(p, n)) if swap else far(a, n)) + margin, 0)


THREE = ((A(3, 4), A(3, 4), A(3, 4)), (A(2, 5), A(2, 5), A(2, 5)), (A(1, 2), A(1, 2), A(1, 2)))
loss("triplet_margin_loss", triplet, *THREE)
loss("triplet_margin_loss", triplet, *THREE, kwargs={"swap": True, "margin": 2.5})
plain("ops.triplet_margin_loss", lambda a, p, n, margin, p_: triplet(a, p, n, margin, p_).mean(), *[(*t, 1.5, 3) for t in THREE], tolerance=3)


def log_likelihood(logs: Any, y: Any, weight: Any = None, ignore: int = -100, smoothing: float = 0.0) -> tuple[Any, Any]:
    """The losses one by one, and the weight of each; classes along axis 1."""
    w = np.ones(logs.shape[1]) if weight is None else weight
    keep = y != ignore
    at = np.where(keep, y, 0)
    own = np.take_along_axis(logs, np.expand_dims(at, 1), 1).squeeze(1)
    share = w[at] * keep
    spread = (logs * w.reshape(-1, *(1,) * (logs.ndim - 2))).sum(1) * keep
    return -(1 - smoothing) * own * share - smoothing / logs.shape[1] * spread, share


MORE = (*LABELS, (A(2, 3, 4), I(2, 4, high=3)))
for reduction in ("mean", "sum", "none"):
    for smoothing in (0.0, 0.2):
        kwargs = {"reduction": reduction, "label_smoothing": smoothing}

        def run(x: Any, y: Any, w: Any = None, ignore: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
            values, share = log_likelihood(x, y, w, ignore, label_smoothing)
            return reduced(values, reduction, share.sum())

        plain("ops.nll_loss", run, *MORE, kwargs=kwargs)
        plain("ops.cross_entropy", lambda x, *a, **k: run(special.log_softmax(x, 1), *a, **k), *MORE, kwargs=kwargs)
        weighted = [(x, y, A(x.shape[1], low=0.3), 1) for x, y in (*LABELS[:1], MORE[3])]
        plain("ops.nll_loss", run, *weighted, kwargs=kwargs, grad=(0,))
        plain("ops.cross_entropy", lambda x, *a, **k: run(special.log_softmax(x, 1), *a, **k), *weighted, kwargs=kwargs, grad=(0,))
plain("ops.cross_entropy", lambda x, y: -(special.log_softmax(x, 1) * y).sum(1).mean(), (A(3, 4), A(3, 4, low=0)), (A(2, 5), A(2, 5, low=0)), (A(1, 2), A(1, 2, low=0)))
plain("ops.SoftmaxCrossEntropyWithLogits", lambda x, y: (-(special.log_softmax(x, 1) * y).sum(1), special.softmax(x, 1) - y), (A(3, 4), CHANCES[0][1]), (A(2, 5), A(2, 5, low=0, high=1)), (A(1, 2), CHANCES[2][1]), grad=())
plain("ops.SparseSoftmaxCrossEntropyWithLogits", lambda x, y: log_likelihood(special.log_softmax(x, 1), y)[0].mean(), *LABELS)
plain("ops.SparseSoftmaxCrossEntropyWithLogits", lambda x, y: (special.softmax(x, 1) - np.eye(x.shape[1])[y]) / len(x), *LABELS, init={"is_grad": True}, grad=())
plain("ops.NLLLoss", lambda x, y, w: (reduced(log_likelihood(x, y, w)[0], "mean", w[y].sum()), w[y].sum()), *[(x, y, A(x.shape[1], low=0.3)) for x, y in LABELS], grad=(0,))

# Norms.


def unit(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def channels(v: Any, x: Any) -> Any:
    return v.reshape(-1, *(1,) * (x.ndim - 2))


plain("ops.layer_norm", lambda x, s, w, b: unit(x, tuple(range(x.ndim - len(s), x.ndim)), 1e-5) * w + b, (A(3, 4), (4,), A(4), A(4)), (A(2, 3, 4), (3, 4), A(3, 4), A(3, 4)), (A(1, 5), (5,), A(5), A(5)), tolerance=10)
plain("ops.layer_norm", lambda x, s, eps: unit(x, -1, eps), (A(3, 4), (4,)), (A(2, 3, 4), (4,)), (A(1, 5), (5,)), kwargs={"eps": 0.1}, tolerance=10)
plain("ops.LayerNorm", lambda x, w, b: (unit(x, -1, 0.01) * w + b, x.mean(-1, keepdims=True), x.var(-1, keepdims=True)), (A(3, 4), A(4), A(4)), (A(2, 5), A(5), A(5)), (A(1, 5), A(5), A(5)), init={"epsilon": 0.01}, tolerance=10)
plain("ops.group_norm", lambda x, g, w, b: unit(x.reshape(x.shape[0], g, -1), 2, 1e-5).reshape(x.shape) * channels(w, x) + channels(b, x), (A(2, 4, 3), 2, A(4), A(4)), (A(1, 6, 2, 2), 3, A(6), A(6)), (A(3, 2, 5), 1, A(2), A(2)), tolerance=10)
plain("ops.batch_norm", lambda x, m, v, w, b: (x - channels(m, x)) / np.sqrt(channels(v, x) + 1e-5) * channels(w, x) + channels(b, x), (A(3, 4), A(4), A(4, low=0.3), A(4), A(4)), (A(2, 3, 5), A(3), A(3, low=0.3), A(3), A(3)), (A(1, 2, 2, 2), A(2), A(2, low=0.3), A(2), A(2)), tolerance=10)
plain("ops.rms_norm ops.RmsNorm", lambda x, g: (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g, 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)), (A(3, 4), A(4)), (A(2, 3, 4), A(4)), (A(1, 5), A(5)), tolerance=3)


def local(x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5) -> Any:
    sums = np.stack([(x[:, max(c - depth_radius, 0) : c + depth_radius + 1] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return x / (bias + alpha * sums) ** beta


IMAGES = ((A(2, 4, 3, 2),), (A(1, 7, 2, 2),), (A(1, 1, 2, 3),))
plain("ops.lrn ops.LRN", local, *IMAGES)
plain("ops.lrn", local, *IMAGES, kwargs={"depth_radius": 1, "bias": 2.0, "alpha": 0.3, "beta": 0.75})
plain("ops.LRN", lambda x: local(x, 1, 2.0, 0.3, 0.75), *IMAGES, init={"depth_radius": 1, "bias": 2.0, "alpha": 0.3, "beta": 0.75})
plain("ops.bias_add ops.BiasAdd", lambda x, b: x + channels(b, x), (A(3, 4), A(4)), (A(2, 3, 2), A(3)), (A(1, 2, 2, 2), A(2)))
plain("ops.clip_by_norm", lambda x, m: x * min(1, m / (np.linalg.norm(x) + 1e-6)), (A(3, 4), 0.5), (A(5), 90.0), (A(2, 1), 0.1))

# Products.
add("matmul", np.matmul, (A(3, 4), A(4, 2)), (A(2, 3, 4), A(4, 2)), (A(5, 1, 2, 3), A(4, 3, 2)), (A(3), A(3)), (A(0, 3), A(3, 2)))
for ta in (False, True):
    for tb in (False, True):
        shapes = ((4, 3) if ta else (3, 4), (2, 4) if tb else (4, 2))
        plain("ops.MatMul ops.BatchMatMul", lambda x, y, ta=ta, tb=tb: (x.T if ta else x) @ (y.T if tb else y), (A(*shapes[0]), A(*shapes[1])), init={"transpose_a": ta, "transpose_b": tb})
        plain("ops.BatchMatMul", lambda x, y, ta=ta, tb=tb: (x.swapaxes(1, 2) if ta else x) @ (y.swapaxes(1, 2) if tb else y), (A(2, *shapes[0]), A(2, *shapes[1])), init={"transpose_a": ta, "transpose_b": tb})
plain("ops.mm Tensor.mm", np.matmul, (A(3, 4), A(4, 2)), (A(1, 5), A(5, 1)), (A(0, 3), A(3, 2)))
plain("ops.bmm Tensor.bmm", np.matmul, (A(2, 3, 4), A(2, 4, 2)), (A(1, 1, 5), A(1, 5, 1)), (A(3, 2, 2), A(3, 2, 2)))
plain("ops.mv", np.matmul, (A(3, 4), A(4)), (A(1, 5), A(5)), (A(5, 1), A(1)))
plain("ops.dot Tensor.dot numpy.dot", np.dot, (A(3, 4), A(4, 2)), (A(2, 3, 4), A(5, 4, 2)), (A(5), A(5)))
add("inner", np.inner, (A(3, 4), A(2, 4)), (A(5), A(5)), (A(1, 2), A(3, 1, 2)))
add("outer ger Ger", np.outer, (A(3), A(4)), (A(1), A(5)), (A(5), A(1)))
add("kron", np.kron, (A(2, 3), A(3, 2)), (A(3), A(2)), (A(1, 2), A(2, 1)))
plain("ops.tensor_dot numpy.tensordot", np.tensordot, (A(3, 4), A(4, 2), 1), (A(2, 3, 4), A(4, 3, 2), ((1, 2), (1, 0))), (A(5), A(5), 1))
plain("ops.batch_dot", lambda x, y, axes: np.einsum("bij,bkj->bik", x, y), (A(2, 3, 4), A(2, 2, 4), (2, 2)), (A(1, 3, 2), A(1, 1, 2), (2, 2)), (A(3, 1, 5), A(3, 4, 5), (2, 2)))
plain("ops.batch_dot", lambda x, y: (x * y).sum(1, keepdims=True), (A(2, 3), A(2, 3)), (A(1, 5), A(1, 5)), (A(4, 1), A(4, 1)))
plain("ops.vecdot", lambda x, y, axis=-1: (x * y).sum(axis), (A(3, 4), A(3, 4)), (A(5), A(5)), (A(2, 3), A(3)))
plain("ops.vecdot", lambda x, y, axis=-1: (x * y).sum(axis), (A(3, 4), A(3, 4)), (A(2, 1), A(2, 1)), (A(2, 3), A(2, 3)), kwargs={"axis": 0})
plain("ops.cross Tensor.cross", np.cross, (A(2, 3), A(2, 3)), (A(3), A(3)), (A(1, 3), A(1, 3)))
plain("ops.cross", lambda x, y, dim: np.cross(x, y, axis=dim), (A(3, 2), A(3, 2), 0), (A(2, 3, 2), A(2, 3, 2), 1), (A(3, 3), A(3, 3), -1))
plain("ops.matrix_power Tensor.matrix_power numpy.matrix_power", np.linalg.matrix_power, (A(3, 3), 3), (A(2, 2), 0), (A(1, 1), 5))
plain("numpy.multi_dot", lambda m: np.linalg.multi_dot(m), ([A(2, 3), A(3, 4), A(4, 2)],), ([A(3, 3), A(3, 1)],), ([A(1, 5), A(5, 1), A(1, 2)],), grad=())
plain("ops.addr Tensor.addr", lambda x, u, v, beta=1, alpha=1: beta * x + alpha * np.outer(u, v), (A(3, 4), A(3), A(4)), (A(1, 2), A(1), A(2)), (A(2, 2), A(2), A(2)))
plain("ops.addr Tensor.addr", lambda x, u, v, beta=1, alpha=1: beta * x + alpha * np.outer(u, v), (A(3, 4), A(3), A(4)), (A(1, 2), A(1), A(2)), kwargs={"beta": 0.5, "alpha": 2})
plain("ops.baddbmm Tensor.baddbmm", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * a @ b, (A(2, 3, 2), A(2, 3, 4), A(2, 4, 2)), (A(1, 1, 2), A(1, 1, 5), A(1, 5, 2), 0.5, 2), (A(3, 2, 2), A(3, 2, 2), A(3, 2, 2), 2))
plain("ops.dense ops.Dense", lambda x, w, b: x @ w.T + b, (A(3, 4), A(2, 4), A(2)), (A(2, 3, 4), A(5, 4), A(5)), (A(1, 1), A(1, 1), A(1)))
for equation, shapes in (("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bkj->bik", ((2, 3, 4), (2, 2, 4))), ("ii->i", ((3, 3),)), ("ij->", ((2, 5),)), ("i,j->ij", ((3,), (1,)))):
    plain("ops.einsum", np.einsum, (equation, *[A(*s) for s in shapes]))

# Pooling.


def pooled(x: Any, k: Any, s: Any, p: Any, ceil: bool, function: Any, fill: float) -> Any:
    """Windows over the last len(k) axes; what lies beyond the padding counts for nothing (NaN)."""
    lead, size = x.shape[: x.ndim - len(k)], x.shape[x.ndim - len(k) :]
    counts = []
    for n, a, b, c in zip(size, k, s, p):
        m = (n + 2 * c - a + (b - 1 if ceil else 0)) // b + 1
        counts.append(m - 1 if ceil and (m - 1) * b >= n + c else m)
    y = np.pad(x, [(0, 0)] * len(lead) + [(c, c) for c in p], constant_values=fill)
    y = np.pad(y, [(0, 0)] * len(lead) + [(0, b + a) for a, b in zip(k, s)], constant_values=np.nan)
    out = np.zeros((*lead, *counts))
    for place in np.ndindex(*counts):
        window = y[(..., *[slice(i * b, i * b + a) for i, a, b in zip(place, k, s)])]
        out[(..., *place)] = function(window, axis=tuple(range(-len(k), 0)))
    return out


LINE, CUBE = A(2, 2, 7), A(1, 2, 4, 3, 4)
for k, s, p, ceil in ((3, 2, 1, False), (2, 1, 0, False), (3, 2, 1, True)):
    for name, x, rank in (("avg_pool1d", LINE, 1), ("avg_pool2d", A(1, 2, 5, 4), 2), ("avg_pool3d", CUBE, 3)):
        for included in (True, False):
            plain(f"ops.{name}", lambda x, k, s, p, c, i, rank=rank: pooled(x, (k,) * rank, (s,) * rank, (p,) * rank, c, np.nanmean, 0.0 if i else np.nan), (x, k, s, p, ceil, included))
    plain("ops.max_pool3d", lambda x, k, s, p, d, c: pooled(x, (k,) * 3, (s,) * 3, (p,) * 3, c, np.nanmax, -np.inf), (CUBE, k, s, p, 1, ceil))
    plain("ops.max_pool2d", lambda x, k, s, p, d, r, c: pooled(x, (k,) * 2, (s,) * 2, (p,) * 2, c, np.nanmax, -np.inf), (A(1, 2, 5, 4), k, s, p, 1, False, ceil))


def powers(order: float) -> Any:
    return lambda x, axis: (np.nan_to_num(x) ** order).sum(axis) ** (1 / order)


for order in (1, 2, 3):
    plain("ops.lp_pool1d", lambda x, n, k, s: pooled(x, (k,), (s,), (0,), False, powers(n), 0.0), (A(2, 2, 7, low=0.3), order, 3, 2))
    plain("ops.lp_pool2d", lambda x, n, k, s: pooled(x, (k,) * 2, (s,) * 2, (0,) * 2, False, powers(n), 0.0), (A(1, 2, 5, 4, low=0.3), order, 2, 2))


def adaptive(x: Any, size: Any, function: Any) -> Any:
    sizes = size if isinstance(size, tuple) else (size,)
    lead, rank = x.shape[: x.ndim - len(sizes)], len(sizes)
    out = np.zeros((*lead, *sizes))
    for place in np.ndindex(*sizes):
        cut = tuple(slice(i * n // m, -(-(i + 1) * n // m)) for i, m, n in zip(place, sizes, x.shape[x.ndim - rank :]))
        out[(..., *place)] = function(x[(..., *cut)], axis=tuple(range(-rank, 0)))
    return out


for kind, function in (("avg", np.mean), ("max", np.max)):
    plain(f"ops.adaptive_{kind}_pool1d", lambda x, n, f=function: adaptive(x, n, f), (A(2, 3, 6), 3), (A(1, 2, 8), 2), (A(1, 1, 5), 1))
    plain(f"ops.adaptive_{kind}_pool2d", lambda x, n, f=function: adaptive(x, n, f), (A(2, 3, 6, 5), (4, 2)), (A(1, 2, 4, 4), (2, 2)), (A(1, 1, 5, 3), (1, 1)))
    plain(f"ops.adaptive_{kind}_pool3d", lambda x, n, f=function: adaptive(x, n, f), (A(2, 1, 4, 3, 5), (3, 2, 2)), (A(1, 2, 4, 4, 2), (2, 2, 1)), (A(1, 1, 3, 3, 3), (1, 1, 1)))
for rank in (2, 3):
    init = {"output_size": (2,) * rank}
    plain(f"ops.AdaptiveAvgPool{rank}D", lambda x, r=rank: adaptive(x, (2,) * r, np.mean), (A(1, 2, *(5, 4, 3)[:rank]),), init=init)
    plain(f"ops.{'MaxPool3D' if rank == 3 else 'MaxPool'}", lambda x, r=rank: pooled(x, (2,) * r, (2,) * r, (0,) * r, False, np.max, 0), (A(1, 2, *(5, 4, 3)[:rank]),), init={"kernel_size": 2, "strides": 2})
    plain(f"ops.{'AvgPool3D' if rank == 3 else 'AvgPool'}", lambda x, r=rank: pooled(x, (2,) * r, (1,) * r, (0,) * r, False, np.mean, 0), (A(1, 2, *(5, 4, 3)[:rank]),), init={"kernel_size": 2, "strides": 1})
# fmt: on
test_values, test_gradients = checks.tests()
