"""Losses of sequences and of sampled classes against NumPy and MindSpore, and cells that cut a
batch into parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from tests.nn.cases import wave

CHECKED = {
    "nn.CTCLoss": "NumPy",
    "nn.GradAccumulationCell": "NumPy",
    "nn.MicroBatchInterleaved": "NumPy",
    "nn.PipelineCell": "NumPy",
    "nn.SampledSoftmaxLoss": "NumPy",
    "nn.VirtualDatasetCellTriple": "NumPy",
}


def log_softmax(x: Any, axis: int = -1) -> Any:
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def sequence_loss(log_probs: Any, target: Any, steps: int, blank: int = 0) -> float:
    """The loss of one sequence, from every path there is."""
    total = 0.0
    for path in itertools.product(range(log_probs.shape[1]), repeat=steps):
        if [k for k, _ in itertools.groupby(path) if k != blank] == list(target):
            total += np.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return float("inf") if total == 0 else float(-np.log(total))


LOG_PROBS = log_softmax(np.sin(np.arange(30, dtype=np.float64)).reshape(5, 2, 3))


@pytest.mark.parametrize("dtype", [ms.float64, ms.float32])
@pytest.mark.parametrize(
    "lengths, sizes, blank", [((5, 4), (2, 2), 0), ((3, 5), (1, 2), 0), ((5, 2), (2, 1), 2), ((4, 4), (0, 1), 0)]
)
def test_sequences(dtype: Any, lengths: Any, sizes: Any, blank: int) -> None:
    targets = np.array([[1, 2], [2, 2]] if blank == 0 else [[1, 0], [1, 1]], np.int32)
    each = np.array([sequence_loss(LOG_PROBS[:, i], targets[i, : sizes[i]], lengths[i], blank) for i in range(2)])
    wanted = {"none": each, "sum": each.sum(), "mean": (each / np.maximum(sizes, 1)).mean()}
    x, y = ms.Tensor(LOG_PROBS).astype(dtype), ms.Tensor(targets)
    for reduction, expected in wanted.items():
        loss = nn.CTCLoss(blank, reduction)
        found = loss(x, y, lengths, sizes)
        assert found.dtype is dtype and found.shape == np.shape(expected)
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5)
        tensors = [ms.Tensor(v, ms.int32) for v in (lengths, sizes)]
        np.testing.assert_allclose(ms.jit(lambda *a, f=loss: f(*a))(x, y, *tensors).asnumpy(), expected, rtol=1e-5)


def test_one_sequence_flat_targets_and_impossible_ones() -> None:
    x = ms.Tensor(LOG_PROBS)
    each = [sequence_loss(LOG_PROBS[:, i], t, n) for i, t, n in ((0, [1, 2], 5), (1, [2], 4))]
    flat = nn.CTCLoss(reduction="none")(x, ms.Tensor([1, 2, 2], ms.int32), (5, 4), (2, 1))
    np.testing.assert_allclose(flat.asnumpy(), each, rtol=1e-9)
    for target in (ms.Tensor([1, 2]), ms.Tensor([[1, 2]])):
        alone = nn.CTCLoss(reduction="none")(x[:, 0], target, ms.Tensor(5), (2,))
        assert alone.shape == () and float(alone) == pytest.approx(each[0])
    impossible = (x, ms.Tensor([[1, 2], [2, 2]], ms.int32), (5, 2), (2, 2))
    assert nn.CTCLoss(reduction="none")(*impossible).asnumpy()[1] == np.inf
    assert nn.CTCLoss(reduction="none", zero_infinity=True)(*impossible).asnumpy()[1] == 0


def test_gradient_of_sequences_by_differences() -> None:
    loss = nn.CTCLoss()
    rest = (ms.Tensor([[1, 2], [2, 2]], ms.int32), (5, 4), (2, 2))
    got = ms.grad(lambda x: loss(x, *rest))(ms.Tensor(LOG_PROBS)).asnumpy()
    way = wave(5, 2, 3).astype(np.float64)
    ends = [float(loss(ms.Tensor(LOG_PROBS + s * 1e-6 * way), *rest)) for s in (1, -1)]
    assert float((got * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


WEIGHTS = np.sin(np.arange(70.0)).reshape(7, 10)
BIASES = np.cos(np.arange(7.0))
INPUTS = np.sin(np.arange(30) + 0.5).reshape(3, 10)
SAMPLED, OF_SAMPLED = np.array([1, 4, 5]), np.array([0.6, 0.2, 0.7])


def sampled_loss(labels: Any, of_true: Any, remove: bool) -> Any:
    every = INPUTS @ WEIGHTS.T + BIASES
    true = np.take_along_axis(every, labels, 1) - np.log(of_true)
    others = every[:, SAMPLED] - np.log(OF_SAMPLED)
    if remove:
        others[(labels[:, :, None] == SAMPLED).any(1)] = -np.inf
    return -log_softmax(np.concatenate([true, others], 1))[:, : labels.shape[1]].mean(1)


LABELS = (
    (np.array([[0], [1], [2]]), np.array([[0.5], [0.4], [0.3]])),
    (np.array([[0, 4], [1, 3], [2, 6]]), np.array([[0.5, 0.1], [0.4, 0.2], [0.3, 0.6]])),
)


@pytest.mark.parametrize("labels, of_true", LABELS)
@pytest.mark.parametrize("remove", [True, False])
def test_sampled_softmax(labels: Any, of_true: Any, remove: bool) -> None:
    expected = sampled_loss(labels, of_true, remove)
    values = (ms.Tensor(SAMPLED), ms.Tensor(of_true), ms.Tensor(OF_SAMPLED))
    inputs = [ms.Tensor(v) for v in (WEIGHTS, BIASES, labels, INPUTS)]
    for reduction, wanted in (("none", expected), ("mean", expected.mean()), ("sum", expected.sum())):
        loss = nn.SampledSoftmaxLoss(3, 7, labels.shape[1], values, remove, reduction=reduction)
        for call in (loss, ms.jit(lambda *a, f=loss: f(*a))):
            np.testing.assert_allclose(call(*inputs).asnumpy(), wanted, rtol=1e-9)
    for k in (0, 1, 3):
        got = ms.grad(lambda *a: loss(*a), k)(*inputs).asnumpy()
        way = np.cos(np.arange(got.size)).reshape(got.shape)
        ends = []
        for sign in (1, -1):
            moved = list(inputs)
            moved[k] = moved[k] + ms.Tensor(sign * 1e-6 * way)
            ends.append(float(loss(*moved)))
        assert float((got * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-8)


def test_sampled_softmax_without_removal_is_mindspores() -> None:
    values = (ms.Tensor(SAMPLED), ms.Tensor(LABELS[0][1].astype(np.float32)), ms.Tensor(OF_SAMPLED.astype(np.float32)))
    inputs = [ms.Tensor(v.astype(np.float32)) for v in (WEIGHTS, BIASES)]
    loss = nn.SampledSoftmaxLoss(3, 7, sampled_values=values, remove_accidental_hits=False)
    found = loss(*inputs, ms.Tensor([0, 1, 2]), ms.Tensor(INPUTS.astype(np.float32)))
    np.testing.assert_allclose(found.asnumpy(), [0.15161723, 0.51308537, 0.61106992], rtol=5e-6)


def test_sampled_softmax_draws_classes_uniformly_by_itself() -> None:
    zeros = (ms.ops.zeros((100, 3)), ms.ops.zeros(100), ms.Tensor([0, 1, 99]), ms.ops.ones((3, 3)))
    loss = nn.SampledSoftmaxLoss(5, 100, seed=3, remove_accidental_hits=False)
    np.testing.assert_allclose(loss(*zeros).asnumpy(), np.log([6.0] * 3), rtol=1e-5)
    whole = nn.SampledSoftmaxLoss(7, 7, seed=1)(*(ms.Tensor(v) for v in (WEIGHTS, BIASES, LABELS[0][0], INPUTS)))
    exact = -np.take_along_axis(log_softmax(INPUTS @ WEIGHTS.T + BIASES), LABELS[0][0], 1)[:, 0]
    np.testing.assert_allclose(whole.asnumpy(), exact, rtol=1e-6)


CELLS: dict[str, Callable[..., nn.Cell]] = {
    "GradAccumulationCell": lambda net, n: nn.GradAccumulationCell(net, n),
    "PipelineCell": lambda net, n: nn.PipelineCell(net, n, {"": 0}, {"": 3}),
    "MicroBatchInterleaved": lambda net, n: nn.MicroBatchInterleaved(net, n),
}


@pytest.mark.parametrize("name", list(CELLS))
@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def test_micro_batches_are_summed(name: str, parts: int, mode: int) -> None:
    before = ms.get_context("mode")
    try:
        ms.set_context(mode=mode)
        dense = nn.Dense(3, 2)
        x, y = wave(8, 3), wave(8, 2, phase=1.0)
        inputs = (ms.Tensor(x), ms.Tensor(y))
        loss = nn.WithLossCell(dense, nn.MSELoss())
        cell = CELLS[name](loss, parts)
        # Parts are of one size, so the mean of the whole is the mean of their means.
        np.testing.assert_allclose(cell(*inputs).asnumpy(), parts * loss(*inputs).asnumpy(), rtol=1e-5)
        got = ms.grad(cell, None, dense.trainable_params())(*inputs)
        error = x.astype(np.float64) @ dense.weight.asnumpy().T + dense.bias.asnumpy() - y
        for g, wanted in zip(got, (error.T @ x, error.sum(0))):
            np.testing.assert_allclose(g.asnumpy(), parts * wanted / 8, rtol=1e-4, atol=1e-6)
        assert [p.name for p in cell.get_parameters()] == [p.name for p in loss.get_parameters()]
    finally:
        ms.set_context(mode=before)


@pytest.mark.parametrize("name", list(CELLS))
def test_a_network_sees_every_part_once(name: str) -> None:
    seen: list[Any] = []

    class Seen(nn.Cell):
        def construct(self, x: ms.Tensor, k: int) -> ms.Tensor:
            seen.append((x.tolist(), k))
            return x * k

    assert CELLS[name](Seen(), 3)(ms.Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 10).tolist() == [90, 120]
    assert seen == [([1, 2], 10), ([3, 4], 10), ([5, 6], 10)]
    assert CELLS[name](nn.Dense(3, 2), 2)(ms.Tensor(wave(4, 3))).shape == (2, 2)


def test_a_network_of_three_inputs() -> None:
    inputs = [ms.Tensor(v) for v in (wave(4, 3), wave(4, 3, phase=1.0), wave(4, 3, phase=2.0))]
    net = nn.TripletMarginLoss()
    assert float(nn.VirtualDatasetCellTriple(net)(*inputs)) == float(net(*inputs))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: nn.CTCLoss(reduction="x"), ValueError, "reduction must be one of 'mean', 'sum', 'none', not 'x'"),
        (lambda: nn.CTCLoss(blank=-1), ValueError, "blank must be at least 0, not -1"),
        (
            lambda: nn.CTCLoss()(ms.Tensor(LOG_PROBS), ms.Tensor([[1.0]]), (1, 1), (1, 1)),
            TypeError,
            "targets must be int32 or int64, not float32",
        ),
        (
            lambda: nn.CTCLoss(blank=3)(ms.Tensor(LOG_PROBS), ms.Tensor([[1], [1]]), (5, 5), (1, 1)),
            ValueError,
            "blank 3 is not one of 3 classes",
        ),
        (lambda: nn.SampledSoftmaxLoss(8, 7), ValueError, "num_sampled must be at most num_classes, 7, not 8"),
        (lambda: nn.SampledSoftmaxLoss(3, 7, 8), ValueError, "num_true must be at most num_classes, 7, not 8"),
        (
            lambda: nn.SampledSoftmaxLoss(3, 7, sampled_values=3),
            TypeError,
            "sampled_values must be a tuple or a list, not int",
        ),
        (lambda: nn.SampledSoftmaxLoss(3, 7, sampled_values=(1, 2)), ValueError, "not 2 values"),
        (
            lambda: nn.SampledSoftmaxLoss(3, 7)(*[ms.Tensor([[1.0]])] * 4),
            TypeError,
            "labels must be int32 or int64, not float32",
        ),
        (
            lambda: nn.SampledSoftmaxLoss(3, 7, 2)(*[ms.Tensor([[1]])] * 4),
            ValueError,
            r"labels must be \(N, 2\), not of shape \(1, 1\)",
        ),
        (lambda: nn.GradAccumulationCell(3, 2), TypeError, "network must be a Cell, not int"),
        (lambda: nn.PipelineCell(nn.ReLU(), 0), ValueError, "micro_size must be at least 1, not 0"),
        (lambda: nn.MicroBatchInterleaved(nn.ReLU(), "a"), TypeError, "interleave_num must be an int, not str"),
        (
            lambda: nn.GradAccumulationCell(nn.ReLU(), 3)(ms.Tensor(wave(4, 2))),
            ValueError,
            "a batch of 4 does not divide into 3 micro-batches",
        ),
        (
            lambda: nn.PipelineCell(nn.ReLU(), 2, {"a": 0}),
            KeyError,
            "stage_config names 'a', which is no cell of the network",
        ),
        (
            lambda: nn.PipelineCell(nn.SequentialCell(nn.ReLU()), 2, {"0": -1}),
            ValueError,
            r"stage_config\['0'\] must be at least 0, not -1",
        ),
        (lambda: nn.PipelineCell(nn.ReLU(), 2, 3), TypeError, "stage_config must be a dict or None, not int"),
        (lambda: nn.VirtualDatasetCellTriple(3), TypeError, "backbone must be a Cell, not int"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
