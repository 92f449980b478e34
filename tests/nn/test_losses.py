"""Losses that are not among the recorded cases, reductions, and arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from tests.nn.cases import between, labels, wave

A, B, C = wave(3, 5, scale=2.0), wave(3, 5, phase=1.0), wave(3, 5, phase=2.0)
SIGNS = np.sign(B)


def distance(x: Any, y: Any, p: int = 2) -> Any:
    return (abs(x - y + 1e-6) ** p).sum(axis=-1) ** (1 / p)


def test_triplet_margin_loss() -> None:
    t = [ms.Tensor(v) for v in (A, B, C)]
    expected = np.maximum(distance(A, B) - distance(A, C) + 1, 0)
    np.testing.assert_allclose(nn.TripletMarginLoss(reduction="none")(*t).asnumpy(), expected, rtol=1e-4)
    swapped = np.maximum(distance(A, B, 1) - np.minimum(distance(A, C, 1), distance(B, C, 1)) + 0.5, 0)
    loss = nn.TripletMarginLoss(p=1, swap=True, margin=0.5, reduction="sum")
    np.testing.assert_allclose(loss(*t).asnumpy(), swapped.sum(), rtol=1e-4)
    np.testing.assert_allclose(nn.TripletMarginLoss(p=1, swap=True)(*t, 0.5).asnumpy(), swapped.mean(), rtol=1e-4)


def test_soft_margin_loss() -> None:
    expected = np.log1p(np.exp(-SIGNS * A)).mean()
    np.testing.assert_allclose(nn.SoftMarginLoss()(ms.Tensor(A), ms.Tensor(SIGNS)).asnumpy(), expected, rtol=1e-5)


def test_multi_margin_losses() -> None:
    target = labels(3, classes=5)
    picked = A[np.arange(3), target][:, None]
    margins = np.maximum(1 - picked + A, 0) ** 2
    margins[np.arange(3), target] = 0
    np.testing.assert_allclose(
        nn.MultiMarginLoss(p=2, reduction="none")(ms.Tensor(A), ms.Tensor(target)).asnumpy(),
        margins.mean(axis=1),
        rtol=1e-5,
    )
    rows = np.array([[1, 3, -1, 0, 0], [0, -1, 0, 0, 0], [4, 2, 1, -1, 0]], np.int32)
    expected = []
    for x, row in zip(A, rows):
        chosen = [int(j) for j in row[: list(row).index(-1)]]
        others = [i for i in range(5) if i not in chosen]
        expected.append(sum(max(0.0, 1 - x[j] + x[i]) for j in chosen for i in others) / 5)
    found = nn.MultilabelMarginLoss("none")(ms.Tensor(A), ms.Tensor(rows)).asnumpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_counts_with_and_without_the_stirling_term() -> None:
    x, y = between(3, 4), np.array([[0, 1, 2, 5]] * 3, np.float32)
    expected = x - y * np.log(x + 1e-8)
    loss = nn.PoissonNLLLoss(log_input=False, reduction="none")
    np.testing.assert_allclose(loss(ms.Tensor(x), ms.Tensor(y)).asnumpy(), expected, rtol=1e-5)
    safe = np.maximum(y, 1)
    stirling = np.where(y > 1, safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe), 0)
    full = nn.PoissonNLLLoss(log_input=False, full=True, reduction="none")
    np.testing.assert_allclose(full(ms.Tensor(x), ms.Tensor(y)).asnumpy(), expected + stirling, rtol=1e-5)


def test_focal_loss_of_images_with_weights() -> None:
    x, y, w = wave(2, 3, 4), labels(2, 1, 4, classes=3), np.array([0.5, 1.0, 2.0], np.float32)
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    chosen = (np.arange(3)[:, None] == y).astype(np.float64)
    expected = (-((1 - p) ** 1.5) * np.log(p) * chosen * w[:, None]).sum(axis=1)
    loss = nn.FocalLoss(ms.Tensor(w), 1.5, "none")
    np.testing.assert_allclose(loss(ms.Tensor(x), ms.Tensor(y)).asnumpy(), expected, rtol=1e-5)
    one_hot = ms.Tensor(chosen.astype(np.float32))
    np.testing.assert_allclose(loss(ms.Tensor(x), one_hot).asnumpy(), expected, rtol=1e-5)


def test_class_weights() -> None:
    x, y, w = A, labels(3, classes=5), np.linspace(0.5, 2, 5).astype(np.float32)
    logp = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    each = -logp[np.arange(3), y] * w[y]
    np.testing.assert_allclose(
        nn.CrossEntropyLoss(ms.Tensor(w))(ms.Tensor(x), ms.Tensor(y)).asnumpy(), each.sum() / w[y].sum(), rtol=1e-5
    )
    np.testing.assert_allclose(
        nn.NLLLoss(ms.Tensor(w), reduction="sum")(ms.Tensor(logp), ms.Tensor(y)).asnumpy(), each.sum(), rtol=1e-5
    )


def test_binary_weights() -> None:
    x, y, w = wave(3, 4, scale=2.0), between(3, 4), between(4)
    p = 1 / (1 + np.exp(-x.astype(np.float64)))
    each = -(3 * y * np.log(p) + (1 - y) * np.log(1 - p)) * w
    loss = nn.BCEWithLogitsLoss("none", ms.Tensor(w), ms.Tensor(np.full(4, 3.0, np.float32)))
    np.testing.assert_allclose(loss(ms.Tensor(x), ms.Tensor(y)).asnumpy(), each, rtol=1e-5)


@pytest.mark.parametrize(
    "make", [nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.HuberLoss, nn.BCEWithLogitsLoss, nn.SoftMarginLoss]
)
def test_reductions_agree(make: Any) -> None:
    x, y = ms.Tensor(A), ms.Tensor(abs(SIGNS))
    each = make(reduction="none")(x, y).asnumpy()
    assert each.shape == (3, 5)
    np.testing.assert_allclose(make(reduction="sum")(x, y).asnumpy(), each.sum(), rtol=1e-5)
    np.testing.assert_allclose(make(reduction="mean")(x, y).asnumpy(), each.mean(), rtol=1e-5)


def test_a_loss_defined_by_a_user() -> None:
    class Weighted(nn.LossBase):
        def construct(self, logits: Any, labels: Any) -> Any:
            assert self.get_axis(logits) == (0, 1)
            return self.get_loss(ms.ops.abs(logits - labels), 0.5)

    expected = 0.5 * abs(A - B)
    for reduction, value in (("mean", expected.mean()), ("sum", expected.sum()), ("none", expected)):
        np.testing.assert_allclose(Weighted(reduction)(ms.Tensor(A), ms.Tensor(B)).asnumpy(), value, rtol=1e-5)


X = ms.Tensor(A)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: nn.L1Loss("x"), ValueError, "L1Loss: reduction must be one of 'mean', 'sum', 'none', not 'x'"),
        (lambda: nn.LossBase(None), ValueError, "not None"),
        (lambda: nn.KLDivLoss("x"), ValueError, "'batchmean'"),
        (lambda: nn.SmoothL1Loss(0.0), RuntimeError, "beta must be above 0"),
        (lambda: nn.HuberLoss(delta=0.0), ValueError, "delta must be above 0"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2.0), ValueError, "label_smoothing must be at most 1, not 2.0"),
        (lambda: nn.CosineEmbeddingLoss(margin=2.0), ValueError, "margin must be at most 1"),
        (lambda: nn.MultiMarginLoss(p=3), ValueError, "p must be at most 2, not 3"),
        (lambda: nn.DiceLoss(0.0), ValueError, "smooth must be above 0"),
        (lambda: nn.DiceLoss()(X, X[0]), ValueError, "logits and labels must have the same shape"),
        (lambda: nn.FocalLoss()(X, X[0]), ValueError, "FocalLoss: logits must be"),
        (lambda: nn.FocalLoss(ms.Tensor(1.0)), ValueError, "weight must be a tensor of one dimension"),
        (lambda: nn.SoftmaxCrossEntropyWithLogits()(X, X[0]), ValueError, "class numbers need sparse=True"),
        (
            lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(X, X),
            ValueError,
            r"class numbers of shape \(3,\), not \(3, 5\)",
        ),
        (
            lambda: nn.SoftmaxCrossEntropyWithLogits()(X[0], X[0]),
            ValueError,
            r"logits must be \(N, C\), not of shape \(5,\)",
        ),
        (lambda: nn.LossBase().construct(X, X), NotImplementedError, "LossBase must define construct"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("sums", [1.0, 2.0])
def test_softmax_entropy_has_mindspores_derivative_for_any_labels(sums: float) -> None:
    """As MindSpore 2.10 gives it: softmax minus labels, whatever these sum to, and 0 for labels."""
    x = np.array([[2.0, 1.0, 0.5], [0.0, -1.0, 3.0]], np.float32)
    y = np.array([[1.0, 1.0, 0.0], [0.4, 1.0, 0.6]], np.float32) * (sums / 2)
    p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    value = -(y * np.log(p)).sum(-1)

    def layer(logits: Any, labels: Any) -> Any:
        return nn.SoftmaxCrossEntropyWithLogits(reduction="sum")(logits, labels)

    def operation(logits: Any, labels: Any) -> Any:
        return ops.SoftmaxCrossEntropyWithLogits()(logits, labels)[0].sum()

    for f in (layer, operation, ms.jit(layer)):
        by_logits, by_labels = ms.grad(f, (0, 1))(Tensor(x), Tensor(y))
        np.testing.assert_allclose(by_logits.asnumpy(), p - y, rtol=1e-5, atol=1e-6)
        assert not by_labels.asnumpy().any()
        np.testing.assert_allclose(f(Tensor(x), Tensor(y)).asnumpy(), value.sum(), rtol=1e-6)
