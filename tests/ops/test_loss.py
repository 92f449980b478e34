"""Losses against their definitions, constants of MindSpore 2.10 and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as special

import mycel as ms
from mycel import Tensor, ops

from .checks import check_gradient, close, numbers

CHECKED = {"ops.multilabel_margin_loss": "NumPy"}
LOGITS = numbers(4, 3)
LABELS = np.array([1, 2, 0, 2])
WEIGHT = np.array([1.0, 2.0, 3.0])
M = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


def _entropy(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, ignore: int, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    logs = special.log_softmax(x, axis=1)
    losses, shares = [], []
    for row, label in zip(logs, y):
        if label == ignore:
            losses.append(0.0)
            shares.append(0.0)
            continue
        even = -(row * weight).sum() / x.shape[1]
        losses.append((1 - smoothing) * -row[label] * weight[label] + smoothing * even)
        shares.append(weight[label])
    return np.array(losses), np.array(shares)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_cross_entropy_with_class_indices(weighted: bool, smoothing: float, reduction: str) -> None:
    y = np.array([1, -100, 0, 2])
    weight = WEIGHT if weighted else np.ones(3)
    losses, shares = _entropy(LOGITS, y, weight, -100, smoothing)
    want = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / shares.sum()}[reduction]
    options = {"weight": Tensor(WEIGHT) if weighted else None, "reduction": reduction, "label_smoothing": smoothing}
    for kind in (np.int32, np.int64):
        close(ops.cross_entropy(Tensor(LOGITS), Tensor(y.astype(kind)), **options), want)
    close(ops.nll_loss(ops.log_softmax(Tensor(LOGITS)), Tensor(y), **options), want)
    check_gradient(lambda x: ops.cross_entropy(x, Tensor(y), **options), LOGITS)


def test_the_derivative_of_cross_entropy_is_softmax_less_one_hot() -> None:
    x = np.array([[1e4, 0.0, -1e4], [0.0, 0.0, -np.inf]])
    y = np.array([2, 0])
    got = ms.grad(lambda t: ops.cross_entropy(t, Tensor(y), reduction="sum"))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, special.softmax(x, 1) - np.eye(3)[y], atol=1e-12)


def test_cross_entropy_of_images_and_of_one_example() -> None:
    x, y = numbers(2, 3, 4, 5), np.random.default_rng(0).integers(0, 3, (2, 4, 5))
    want = -np.take_along_axis(special.log_softmax(x, 1), y[:, None], 1)[:, 0]
    close(ops.cross_entropy(Tensor(x), Tensor(y), reduction="none"), want)
    close(ops.cross_entropy(Tensor(LOGITS[0]), Tensor(1)), -special.log_softmax(LOGITS[0])[1])


def test_cross_entropy_with_probabilities() -> None:
    p = special.softmax(numbers(4, 3, seed=1), 1)
    smooth = 0.9 * p + 0.1 / 3
    terms = -(special.log_softmax(LOGITS, 1) * smooth * WEIGHT).sum(1)
    got = ops.cross_entropy(Tensor(LOGITS), Tensor(p), Tensor(WEIGHT), label_smoothing=0.1)
    close(got, terms.mean())
    check_gradient(lambda x, y: ops.cross_entropy(x, y, Tensor(WEIGHT), label_smoothing=0.1), LOGITS, p)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (
            lambda: ops.cross_entropy(M, Tensor([1, 2]), Tensor(WEIGHT.astype(np.float32)), label_smoothing=0.1),
            0.81278676,
        ),
        (
            lambda: ops.cross_entropy(M, Tensor([1, -100]), Tensor(WEIGHT.astype(np.float32)), label_smoothing=0.1),
            1.3742721,
        ),
        (
            lambda: ops.cross_entropy(M, ops.softmax(M), Tensor(WEIGHT.astype(np.float32)), label_smoothing=0.1),
            1.7621233,
        ),
        (lambda: ops.nll_loss(M, Tensor([1, 2]), label_smoothing=0.1), -2.95),
        (lambda: ops.kl_div(M, ops.softmax(M)), -1.3025354),
        (lambda: ops.cosine_embedding_loss(M, M + 1, Tensor([1, -1])), 0.5215188),
        (lambda: ops.gaussian_nll_loss(M, M + 1, M + 2), 0.8431681),
        (lambda: ops.multi_margin_loss(M, Tensor([1, 2])), 0.33333334),
        (lambda: ops.multilabel_soft_margin_loss(M, Tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])), 0.867798),
        (lambda: ops.binary_cross_entropy_with_logits(M, ops.sigmoid(M), M[0], M[1]), 0.5285965),
        (lambda: ops.binary_cross_entropy(Tensor([0.0, 1.0]), Tensor([1.0, 1.0])), 13.815511),
        (lambda: ops.smooth_l1_loss(M, M + 1, 2.0, "mean"), 0.25),
        (lambda: ops.huber_loss(M, M + 2), 1.5),
    ],
)
def test_values_of_mindspore(value: object, want: float) -> None:
    assert value().item() == pytest.approx(want, rel=2e-6)


PAIRS = {
    "mse_loss": lambda x, y: (x - y) ** 2,
    "l1_loss": lambda x, y: np.abs(x - y),
    "smooth_l1_loss": lambda x, y: np.where(np.abs(x - y) < 1, (x - y) ** 2 / 2, np.abs(x - y) - 0.5),
    "huber_loss": special.huber,
    "soft_margin_loss": lambda x, y: np.log1p(np.exp(-x * y)),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_of_pairs(name: str, reduction: str) -> None:
    x, y = numbers(3, 2), numbers(3, 2, seed=1)
    values = special.huber(1.0, x - y) if name == "huber_loss" else PAIRS[name](x, y)
    want = {"none": values, "sum": values.sum(), "mean": values.mean()}[reduction]
    close(getattr(ops, name)(Tensor(x), Tensor(y), reduction=reduction), want)
    check_gradient(lambda a, b: getattr(ops, name)(a, b, reduction=reduction), x, y)


def test_binary_cross_entropies() -> None:
    x, y = numbers(3, 2), special.expit(numbers(3, 2, seed=1))
    p = special.expit(x)
    values = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    close(ops.binary_cross_entropy(Tensor(p), Tensor(y), reduction="none"), values, 1e-10)
    close(ops.binary_cross_entropy_with_logits(Tensor(x), Tensor(y), reduction="none"), values)
    positive, weight = np.array([0.5, 2.0]), numbers(3, 2, low=0.5)
    want = -weight * (positive * y * np.log(p) + (1 - y) * np.log(1 - p))
    got = ops.binary_cross_entropy_with_logits(Tensor(x), Tensor(y), Tensor(weight), Tensor(positive), "none")
    close(got, want)
    check_gradient(lambda a, b: ops.binary_cross_entropy_with_logits(a, b, Tensor(weight), Tensor(positive)), x, y)
    check_gradient(lambda a, b: ops.binary_cross_entropy(a, b), p, y, tolerance=1e-5)
    extreme = ms.grad(lambda a: ops.binary_cross_entropy_with_logits(a, Tensor([0.0, 1.0])))(Tensor([1e4, 1e4]))
    assert extreme.tolist() == [0.5, 0.0]
    finite = ms.grad(lambda a: ops.binary_cross_entropy(a, Tensor([1.0, 0.0])))(Tensor([0.0, 1.0])).asnumpy()
    assert np.isfinite(finite).all() and finite[0] < 0 < finite[1]


def test_embedding_losses() -> None:
    a, b, c = (numbers(3, 4, seed=s) for s in range(3))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    close(ops.cosine_similarity(Tensor(a), Tensor(b)), cosine)
    check_gradient(lambda x, y: ops.cosine_similarity(x, y), a, b)
    near, far = np.linalg.norm(a - b + 1e-6, axis=1), np.linalg.norm(a - c + 1e-6, axis=1)
    close(ops.triplet_margin_loss(Tensor(a), Tensor(b), Tensor(c), 2.0), np.maximum(near - far + 2, 0).mean())
    other = np.linalg.norm(b - c + 1e-6, axis=1)
    swapped = np.maximum(near - np.minimum(far, other) + 2, 0).mean()
    close(ops.triplet_margin_loss(Tensor(a), Tensor(b), Tensor(c), 2.0, swap=True), swapped)
    target = np.array([1.0, -1.0, 1.0])
    close(
        ops.margin_ranking_loss(Tensor(a[:, 0]), Tensor(b[:, 0]), Tensor(target), 0.3),
        np.maximum(-target * (a - b)[:, 0] + 0.3, 0).mean(),
    )
    hinge = np.where(target == 1, a[:, 0], np.maximum(0, 1 - a[:, 0]))
    close(ops.hinge_embedding_loss(Tensor(a[:, 0]), Tensor(target), reduction="none"), hinge)
    labels = np.array([[0, 2, -1, 3], [1, -1, 0, 0], [-1, 1, 1, 1]])
    want = []
    for row, marks in zip(a, labels):
        chosen = list(marks[: list(marks).index(-1)])
        want.append(sum(max(0, 1 - row[j] + row[i]) for j in chosen for i in range(4) if i not in chosen) / 4)
    close(ops.multilabel_margin_loss(Tensor(a), Tensor(labels), "none"), want)
    gaps = np.maximum(0, 1 - a[np.arange(3), LABELS[:3]][:, None] + a) ** 2
    gaps[np.arange(3), LABELS[:3]] = 0
    close(ops.multi_margin_loss(Tensor(a), Tensor(LABELS[:3]), 2, reduction="none"), gaps.mean(1))


def test_kl_divergence() -> None:
    x, y = special.log_softmax(LOGITS, 1), special.softmax(numbers(4, 3, seed=1), 1)
    y[0, 0] = 0.0
    values = special.xlogy(y, y) - y * x
    close(ops.kl_div(Tensor(x), Tensor(y), "none"), values)
    close(ops.kl_div(Tensor(x), Tensor(y), "batchmean"), values.sum() / 4)
    check_gradient(lambda a: ops.kl_div(a, Tensor(y)), x)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"the target's shape \(3,\) does not fit the input \(4, 3\); expected \(4,\)"):
        ops.cross_entropy(Tensor(LOGITS), Tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="reduction must be one of 'none', 'mean', 'sum', not 'average'"):
        ops.mse_loss(Tensor([1.0]), Tensor([1.0]), "average")
    with pytest.raises(ValueError, match="class indices are integers"):
        ops.cross_entropy(Tensor(LOGITS), Tensor([0.0, 1.0, 2.0, 1.0]))
    with pytest.raises(TypeError, match="the target must hold class indices"):
        ops.nll_loss(Tensor(LOGITS), Tensor([0.0, 1.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="weight must have one element for each of the 3 classes"):
        ops.cross_entropy(Tensor(LOGITS), Tensor(LABELS), Tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="label_smoothing must lie in"):
        ops.cross_entropy(Tensor(LOGITS), Tensor(LABELS), label_smoothing=2.0)
