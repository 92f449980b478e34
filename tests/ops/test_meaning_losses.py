"""Losses under all of their names against NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as special

from tests.meaning import A, Checks, I
from tests.ops.layer_support import softplus

checks = Checks("NumPy")


def plain(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    """Compiled in the first case only."""
    checks.add(names, expected, cases[0], **{"dtypes": "float32", **more})
    checks.add(names, expected, *cases[1:], **{"dtypes": "float32", "jit": False, **more})


# Losses.


def reduced(values: Any, reduction: str, n: Any = None) -> Any:
    return (
        values
        if reduction == "none"
        else values.sum()
        if reduction == "sum"
        else values.sum() / (values.size if n is None else n)
    )


def loss(name: str, values: Any, *cases: Any, default: str = "mean", **more: Any) -> None:
    """A loss with its three reductions, from its values one by one."""
    plain(f"ops.{name}", lambda *a, **k: reduced(values(*a, **k), default), *cases, **more)
    for reduction in {"none", "sum", "mean"} - {default}:
        plain(
            f"ops.{name}",
            lambda *a, reduction, **k: reduced(values(*a, **k), reduction),
            cases[0],
            **{**more, "kwargs": {**more.get("kwargs", {}), "reduction": reduction}},
        )


TWO = ((A(3, 4), A(3, 4)), (A(5), A(5)), (A(2, 1, 2), A(2, 1, 2)))
SIGNS = (
    (A(3, 4), A(3, 4, values=np.where(np.arange(12) % 3, 1.0, -1.0).reshape(3, 4))),
    (A(5), A(5, values=np.array([1.0, -1, -1, 1, 1]))),
    (A(1, 2), A(1, 2, values=np.array([[1.0, -1]]))),
)
CHANCES = (
    (A(3, 4, low=0.1, high=0.9), A(3, 4, low=0, high=1)),
    (A(5, low=0.1, high=0.9), A(5, low=0, high=1)),
    (A(1, 2, low=0.1, high=0.9), A(1, 2, low=0, high=1)),
)


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
    plain(
        "ops.BinaryCrossEntropy",
        lambda x, y, w, r=reduction: reduced(crossed(x, y, w), r),
        *[(*c, c[0]) for c in CHANCES],
        grad=(0,),
        init=init,
    )
    plain(
        "ops.BCEWithLogitsLoss",
        lambda x, y, w, q, r=reduction: reduced(crossed_logits(x, y, w, q), r),
        *[(*c, c[0], c[0]) for c in CHANCES],
        grad=(0,),
        init=init,
    )
loss("hinge_embedding_loss", lambda x, y, margin=1.0: np.where(y > 0, x, np.maximum(margin - x, 0)), *SIGNS, grad=(0,))
loss(
    "hinge_embedding_loss",
    lambda x, y, margin=1.0: np.where(y > 0, x, np.maximum(margin - x, 0)),
    *SIGNS,
    kwargs={"margin": 0.4},
    grad=(0,),
)
loss(
    "margin_ranking_loss",
    lambda x, y, t, margin=0.0: np.maximum(-t * (x - y) + margin, 0),
    *[(*a, b[1]) for a, b in zip(TWO[:2], SIGNS)],
    (A(1, 2), A(1, 2), SIGNS[2][1]),
    grad=(0, 1),
)
loss(
    "margin_ranking_loss",
    lambda x, y, t, margin=0.0: np.maximum(-t * (x - y) + margin, 0),
    *[(*a, b[1]) for a, b in zip(TWO[:2], SIGNS)],
    kwargs={"margin": 0.7},
    grad=(0, 1),
)
loss("kl_div", divergence, *CHANCES)
plain("ops.kl_div", lambda x, y, r: divergence(x, y).sum() / len(x), *[(*c, "batchmean") for c in CHANCES])
loss("binary_cross_entropy", crossed, *CHANCES)
loss("binary_cross_entropy", crossed, *[(*c, c[1]) for c in CHANCES], grad=(0,))
loss("binary_cross_entropy_with_logits", crossed_logits, *TWO)
loss(
    "binary_cross_entropy_with_logits",
    crossed_logits,
    *[(a[0], b[1], b[0], b[0]) for a, b in zip(TWO[:2], CHANCES)],
    (A(1, 2), A(1, 2), A(1, 2), A(2)),
    grad=(0,),
)
plain("ops.SigmoidCrossEntropyWithLogits", crossed_logits, *TWO)


def gaussian(x: Any, y: Any, v: Any, full: bool = False, eps: float = 1e-6) -> Any:
    v = np.maximum(v, eps)
    return (np.log(v) + (x - y) ** 2 / v) / 2 + (math.log(2 * math.pi) / 2 if full else 0)


for full in (False, True):
    loss(
        "gaussian_nll_loss",
        gaussian,
        *[(*a, b[0]) for a, b in zip(TWO[:2], CHANCES)],
        (A(1, 2), A(1, 2), A(1, 2, low=0.3, high=2)),
        kwargs={"full": full},
        tolerance=3,
    )


def cosine(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    return (
        (x * y).sum(dim) / np.maximum(np.linalg.norm(x, axis=dim), eps) / np.maximum(np.linalg.norm(y, axis=dim), eps)
    )


plain("ops.cosine_similarity", cosine, (A(3, 4), A(3, 4)), (A(2, 3, 2), A(2, 3, 2), -1), (A(5), A(5), 0))
loss(
    "cosine_embedding_loss",
    lambda x, y, t, margin=0.0: np.where(t > 0, 1 - cosine(x, y), np.maximum(cosine(x, y) - margin, 0)),
    (A(3, 4), A(3, 4), I(3, low=-1, high=0)),
    (A(2, 5), A(2, 5), I(2, low=1, high=2)),
    (A(1, 2), A(1, 2), I(1, low=-1, high=0)),
)
loss(
    "multilabel_soft_margin_loss",
    lambda x, y: crossed_logits(x, y).mean(1),
    (A(3, 4), CHANCES[0][1]),
    (A(2, 5), A(2, 5, low=0, high=1)),
    (A(1, 2), CHANCES[2][1]),
    grad=(0,),
)
LABELS = (
    (A(3, 4), I(3, high=4, dtype="int64")),
    (A(5, 2), I(5, high=2, dtype="int64")),
    (A(1, 3), I(1, high=3, dtype="int64")),
)


def margins(x: Any, y: Any, p: int = 1, margin: float = 1) -> Any:
    own = np.take_along_axis(x, y[:, None], 1)
    found = np.maximum(margin - own + x, 0) ** p
    return (found * (np.arange(x.shape[1]) != y[:, None])).sum(1) / x.shape[1]


loss("multi_margin_loss", margins, *LABELS)
loss("multi_margin_loss", margins, *LABELS, kwargs={"p": 2, "margin": 0.7})


def triplet(
    a: Any, p: Any, n: Any, margin: float = 1.0, order: float = 2, eps: float = 1e-6, swap: bool = False
) -> Any:
    def far(x: Any, y: Any) -> Any:
        return (np.abs(x - y + eps) ** order).sum(-1) ** (1 / order)

    return np.maximum(far(a, p) - (np.minimum(far(a, n), far(p, n)) if swap else far(a, n)) + margin, 0)


THREE = ((A(3, 4), A(3, 4), A(3, 4)), (A(2, 5), A(2, 5), A(2, 5)), (A(1, 2), A(1, 2), A(1, 2)))
loss("triplet_margin_loss", triplet, *THREE)
loss("triplet_margin_loss", triplet, *THREE, kwargs={"swap": True, "margin": 2.5})
plain(
    "ops.triplet_margin_loss",
    lambda a, p, n, margin, p_: triplet(a, p, n, margin, p_).mean(),
    *[(*t, 1.5, 3) for t in THREE],
    tolerance=3,
)


def log_likelihood(
    logs: Any, y: Any, weight: Any = None, ignore: int = -100, smoothing: float = 0.0
) -> tuple[Any, Any]:
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

        def run(
            x: Any, y: Any, w: Any = None, ignore: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
        ) -> Any:
            values, share = log_likelihood(x, y, w, ignore, label_smoothing)
            return reduced(values, reduction, share.sum())

        plain("ops.nll_loss", run, *MORE, kwargs=kwargs)
        plain("ops.cross_entropy", lambda x, *a, **k: run(special.log_softmax(x, 1), *a, **k), *MORE, kwargs=kwargs)
        weighted = [(x, y, A(x.shape[1], low=0.3), 1) for x, y in (*LABELS[:1], MORE[3])]
        plain("ops.nll_loss", run, *weighted, kwargs=kwargs, grad=(0,))
        plain(
            "ops.cross_entropy",
            lambda x, *a, **k: run(special.log_softmax(x, 1), *a, **k),
            *weighted,
            kwargs=kwargs,
            grad=(0,),
        )
plain(
    "ops.cross_entropy",
    lambda x, y: -(special.log_softmax(x, 1) * y).sum(1).mean(),
    (A(3, 4), A(3, 4, low=0)),
    (A(2, 5), A(2, 5, low=0)),
    (A(1, 2), A(1, 2, low=0)),
)
plain(
    "ops.SoftmaxCrossEntropyWithLogits",
    lambda x, y: (-(special.log_softmax(x, 1) * y).sum(1), special.softmax(x, 1) - y),
    (A(3, 4), CHANCES[0][1]),
    (A(2, 5), A(2, 5, low=0, high=1)),
    (A(1, 2), CHANCES[2][1]),
    grad=(),
)
plain(
    "ops.SparseSoftmaxCrossEntropyWithLogits",
    lambda x, y: log_likelihood(special.log_softmax(x, 1), y)[0].mean(),
    *LABELS,
)
plain(
    "ops.SparseSoftmaxCrossEntropyWithLogits",
    lambda x, y: (special.softmax(x, 1) - np.eye(x.shape[1])[y]) / len(x),
    *LABELS,
    init={"is_grad": True},
    grad=(),
)
plain(
    "ops.NLLLoss",
    lambda x, y, w: (reduced(log_likelihood(x, y, w)[0], "mean", w[y].sum()), w[y].sum()),
    *[(x, y, A(x.shape[1], low=0.3)) for x, y in LABELS],
    grad=(0,),
)
test_values, test_gradients = checks.tests()
