"""Losses of distillation against NumPy, and students that learn from teachers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.compression import (
    Distilled,
    Features,
    GradualPruning,
    attention_loss,
    hint_loss,
    prune_weights,
    relation_loss,
    size_report,
    soft_target_loss,
)

RNG = np.random.default_rng(0)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_soft_targets() -> None:
    s, t = RNG.normal(size=(2, 5, 7)) * 3, RNG.normal(size=(2, 5, 7)) * 3
    p, q = softmax(t / 2.5), softmax(s / 2.5)
    wanted = 2.5**2 * (p * np.log(p / q)).sum(-1).mean()
    found = soft_target_loss(ms.Tensor(s), ms.Tensor(t), 2.5)
    np.testing.assert_allclose(float(found), wanted, rtol=1e-9)
    slopes = ms.grad(lambda a, b: soft_target_loss(a, b, 2.5), (0, 1))(ms.Tensor(s), ms.Tensor(t))
    np.testing.assert_allclose(slopes[0].asnumpy(), 2.5 * (q - p) / 10, rtol=1e-6, atol=1e-9)
    assert not slopes[1].asnumpy().any()
    # Answers that are certain, and differ.
    assert np.isfinite(float(soft_target_loss(ms.Tensor([[1e4, 0.0]]), ms.Tensor([[0.0, 1e4]]), 1.0)))


def test_attention() -> None:
    s, t = RNG.normal(size=(3, 4, 5, 6)), RNG.normal(size=(3, 9, 5, 6))
    maps = [(x**2).sum(1).reshape(3, -1) for x in (s, t)]
    a, b = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in maps)
    np.testing.assert_allclose(float(attention_loss(ms.Tensor(s), ms.Tensor(t))), ((a - b) ** 2).mean(), rtol=1e-8)
    nothing = ms.grad(lambda x: attention_loss(x, ms.Tensor(t)))(ms.Tensor(np.zeros_like(s)))
    assert not nothing.asnumpy().any()


def relations(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = x.reshape(len(x), -1)
    apart = x[None] - x[:, None]
    d = np.linalg.norm(apart, axis=-1)
    unit = np.divide(apart, d[..., None], out=np.zeros_like(apart), where=d[..., None] > 0)
    return d / d[d > 0].mean(), np.einsum("ijd,ikd->ijk", unit, unit)


def test_relations() -> None:
    s, t = RNG.normal(size=(6, 3, 2)), RNG.normal(size=(6, 8))
    huber = [
        np.where(np.abs(v) < 1, v * v / 2, np.abs(v) - 0.5).mean() for v in map(np.subtract, relations(s), relations(t))
    ]
    found = relation_loss(ms.Tensor(s), ms.Tensor(t), 0.5, 3.0)
    np.testing.assert_allclose(float(found), 0.5 * huber[0] + 3 * huber[1], rtol=1e-8)
    same = np.repeat(s[:1], 4, 0)
    slope = ms.grad(lambda x: relation_loss(x, ms.Tensor(t[:4])))(ms.Tensor(same))
    assert np.isfinite(slope.asnumpy()).all() and float(relation_loss(ms.Tensor(same), ms.Tensor(same))) == 0


def network(width: int) -> nn.SequentialCell:
    return nn.SequentialCell(
        nn.Conv2d(1, width, 3),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.SequentialCell(nn.Conv2d(width, width, 3), nn.ReLU()),
        nn.Flatten(),
        nn.Dense(width * 16, 3),
    )


X = RNG.normal(size=(12, 1, 8, 8)).astype(np.float32)
Y = (np.arange(12) % 3).astype(np.int32)
LOSS = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def test_features_of_layers_by_name() -> None:
    net = network(4)
    x = ms.Tensor(X)
    found, (inner, norm) = Features(net, ["4.0", "1"])(x)
    np.testing.assert_array_equal(found.asnumpy(), net(x).asnumpy())
    np.testing.assert_array_equal(norm.asnumpy(), net[1](net[0](x)).asnumpy())
    np.testing.assert_array_equal(inner.asnumpy(), net[4][0](net[3](net[2](norm))).asnumpy())
    # Parameters are the network's own, which has no hook.
    features = Features(net, ["1"])
    assert {id(p) for p in features.get_parameters()} == {id(p) for p in net.get_parameters()}
    assert not any(c._hooks for _, c in net.cells_and_names())
    whole, (also,) = ms.jit(features, fullgraph=True)(x)
    np.testing.assert_allclose(also.asnumpy(), norm.asnumpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="no layer 'nothing'"):
        Features(net, ["nothing"])


class Skips(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Dense(2, 2), nn.Dense(2, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.one(x)


def test_a_layer_that_is_not_called() -> None:
    with pytest.raises(ValueError, match="did not call its layer 'two'"):
        Features(Skips(), ["two"])(ops.ones((1, 2)))


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_student_learns_and_its_teacher_stays(mode: int) -> None:
    ms.set_seed(0)
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        student, teacher = network(4), network(8)
        kept = {p.name: p.asnumpy() for p in teacher.get_parameters()}
        features = [("2", "2", "attention", 5.0), ("4", "4", "hint", 1.0), ("5", "5", "relation", 1.0)]
        net = Distilled(student, teacher, LOSS, features=features, inputs=[ms.Tensor(X)])
        names = {p.name for p in net.trainable_params()}
        assert names == {p.name for p in student.trainable_params()} | {"projection1.weight", "projection1.bias"}
        data = ms.dataset.NumpySlicesDataset({"x": X, "y": Y}, shuffle=False).batch(6)
        first = float(net(ms.Tensor(X), ms.Tensor(Y)))
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        ms.Model(net, optimizer=optimizer).train(10, data)
        net.set_train(False)
        assert float(net(ms.Tensor(X), ms.Tensor(Y))) < 0.6 * first
        assert student[1].moving_mean.asnumpy().any()
        for p in teacher.get_parameters():
            np.testing.assert_array_equal(p.asnumpy(), kept[p.name])
        np.testing.assert_array_equal(net.learner.inner(ms.Tensor(X)).asnumpy(), student(ms.Tensor(X)).asnumpy())
    finally:
        ms.set_context(mode=before)


def test_the_sum_is_that_of_its_parts() -> None:
    student, teacher = network(4), network(8)
    x, y = ms.Tensor(X), ms.Tensor(Y)
    net = Distilled(
        student, teacher, LOSS, hard=0.3, soft=0.5, temperature=2.0, features=[("2", "2", "attention", 4.0)]
    )
    a, b = student[2](student[1](student[0](x))), teacher[2](teacher[1](teacher[0](x)))
    wanted = (
        0.3 * LOSS(student(x), y) + 0.5 * soft_target_loss(student(x), teacher(x), 2.0) + 4.0 * attention_loss(a, b)
    )
    np.testing.assert_allclose(float(net(x, y)), float(wanted), rtol=1e-5)
    free = Distilled(student, teacher)
    np.testing.assert_allclose(float(free(x)), 0.9 * float(soft_target_loss(student(x), teacher(x))), rtol=1e-5)


def test_pruned_while_it_learns_from_itself() -> None:
    ms.set_seed(0)
    teacher, student = network(8), network(8)
    ms.load_param_into_net(student, {p.name: p for p in teacher.get_parameters()})
    prune_weights(student, 0.0)
    net = Distilled(student, teacher, LOSS)
    data = ms.dataset.NumpySlicesDataset({"x": X, "y": Y}, shuffle=False).batch(6)
    callback = GradualPruning(student, 0.7, begin=1, end=6)
    ms.Model(net, optimizer=nn.Adam(net.trainable_params(), 0.01)).train(5, data, callbacks=[callback])
    assert abs(size_report(student).zeros - 0.7) < 0.01
    student.set_train(False)
    masked = net.learner.inner.set_train(False)(ms.Tensor(X))
    np.testing.assert_array_equal(masked.asnumpy(), student(ms.Tensor(X)).asnumpy())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"soft": 0.0}, "nothing is to be learnt"),
        ({"features": [("2", "2", "other", 1.0)]}, "with a kind of hint, attention, relation"),
        ({"features": [("4", "4", "hint", 1.0)]}, "asks for example inputs"),
        ({"features": [("9", "4", "attention", 1.0)]}, "no layer '9'"),
        ({"features": [("2", "6", "hint", 1.0)], "inputs": [ms.Tensor(X)]}, "have no projection to"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"soft": -1.0}, "soft must be"),
    ],
)
def test_arguments_that_mean_nothing(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Distilled(network(4), network(8), **given)


def test_features_of_other_shapes() -> None:
    with pytest.raises(ValueError, match="one shape"):
        hint_loss(ops.ones((2, 3)), ops.ones((2, 4)))
    with pytest.raises(ValueError, match="of one N and space"):
        attention_loss(ops.ones((2, 3, 4, 4)), ops.ones((2, 3, 2, 2)))
    with pytest.raises(ValueError, match="of 2 and 3 examples"):
        relation_loss(ops.ones((2, 3)), ops.ones((3, 3)))
    with pytest.raises(ValueError, match="one shape"):
        soft_target_loss(ops.ones((2, 3)), ops.ones((2, 4)))
