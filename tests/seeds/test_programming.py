"""The programs of the chapters on programming styles: classes, functions, and both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycel
from tests.seeds.programs import completed, printed, run

Array = np.ndarray

rng = np.random.default_rng(5)


def values(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def test_a_class_of_code_and_data(tmp_path: Path) -> None:
    sample = run(printed("sample_class"), tmp_path).Sample("first")
    sample.set_name("second")
    assert sample.name == "second"


def test_linear_cell(mode: str, tmp_path: Path) -> None:
    """Completed with the two imports that the text uses and does not have.

    `weight.transpose(0, 1)` exchanges the axes, as it does in MindSpore, unlike NumPy's
    `transpose`, where (0, 1) changes nothing.
    """
    names = run(
        completed(printed("linear_cell"), before="import mindspore\nfrom mindspore import ops, Tensor, Parameter"),
        tmp_path,
    )
    linear = names.Linear(5, 3, True)
    assert [p.name for p in linear.trainable_params()] == ["weight", "bias"]
    assert linear.weight.shape == (3, 5)
    assert linear.weight.asnumpy().std() < 0.05
    np.testing.assert_array_equal(linear.bias.asnumpy(), np.zeros(3, np.float32))
    weight, bias, x = values(3, 5), values(3), values(7, 5)
    linear.weight.set_data(names.Tensor(weight))
    linear.bias.set_data(names.Tensor(bias))
    y = linear(names.Tensor(x)).asnumpy()
    np.testing.assert_allclose(y, x.astype(np.float64) @ weight.T.astype(np.float64) + bias, rtol=1e-5, atol=1e-6)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def test_train_one_step_cell(mode: str, tmp_path: Path) -> None:
    """As printed, then steps whose losses and weights are those of NumPy in double precision."""
    names = run(completed(printed("train_one_step_cell"), after="from mindspore import Tensor"), tmp_path)
    x, labels = values(8, 5), rng.integers(0, 2, (8, 3)).astype(np.float32)
    weight, bias = (p.asnumpy().astype(np.float64) for p in names.network.trainable_params())
    for _ in range(4):
        loss = names.trainer(names.Tensor(x), names.Tensor(labels))
        logits = x @ weight.T + bias
        expected = np.mean(np.logaddexp(0, logits) - labels * logits)
        assert float(loss) == pytest.approx(expected, rel=1e-5)
        slope = (sigmoid(logits) - labels) / labels.size
        weight, bias = weight - 0.001 * slope.T @ x, bias - 0.001 * slope.sum(0)
    if mode == "GRAPH_MODE":
        account = mycel.explain(names.trainer)
        assert (len(account.graphs), account.breaks) == (1, [])
    np.testing.assert_allclose(names.network.weight.asnumpy(), weight, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(names.network.bias.asnumpy(), bias, rtol=1e-5, atol=1e-7)


def test_gradients_of_tanh_print_the_numbers_of_the_document(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(printed("gradients_of_tanh"), tmp_path)
    first, second, third = capsys.readouterr().out.split()
    document = [line[2:] for line in printed("gradients_of_tanh").splitlines() if line.startswith("# ")]
    assert document == ["0.070650816", "-0.13621868", "0.25265405"]
    assert first == document[0]
    np.testing.assert_allclose([float(second), float(third)], [float(d) for d in document[1:]], rtol=1e-6)
    t = np.tanh(2.0)
    s = 1 - t * t
    exact = [s, -2 * t * s, s * (4 * t * t - 2 * s)]
    np.testing.assert_allclose([float(first), float(second), float(third)], exact, rtol=1e-6)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_functional_and_object_oriented_fused(mode: str, tmp_path: Path) -> None:
    """Completed with imports, a network in place of the dots, `lr`, `epochs` and `dataset`.

    The text defines `forword_fn` and differentiates `forward_fn`, and makes `optimizer` and names
    it `optim` once; both get one name. The losses and weights are those of Adam (Kingma and Ba,
    2015) in NumPy in double precision.
    """
    batches = [(values(6, 4), rng.integers(0, 3, 6).astype(np.int32)) for _ in range(3)]
    start = values(3, 4), values(3)
    before = (
        "from mindspore import nn, Tensor, value_and_grad\nlr, epochs, seen = 0.01, 2, []\n"
        "def dataset():\n    return [(Tensor(x), Tensor(y)) for x, y in batches]\n"
    )
    text = completed(
        printed("fused_training"),
        (
            "def __init__(self):  \n        ......",
            "def __init__(self):\n        super().__init__()\n        self.dense = nn.Dense(4, 3, Tensor(start[0]), "
            "Tensor(start[1]))",
        ),
        (
            "def construct(self, inputs):  \n        ......",
            "def construct(self, inputs):\n        return self.dense(inputs)",
        ),
        ("def forword_fn", "def forward_fn"),
        ("optim.parameters", "optimizer.parameters"),
        (
            "loss = train_step(inputs, targets) ",
            "loss = train_step(inputs, targets)\n        seen.append(float(loss[0]))",
        ),
        before=before,
    )
    names = run(text, tmp_path, batches=batches, start=start)

    weights = [w.astype(np.float64) for w in start]
    first, second = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    losses: list[float] = []
    for x, y in batches * 2:
        p = softmax(x @ weights[0].T + weights[1])
        losses.append(float(-np.log(p[np.arange(6), y]).mean()))
        p[np.arange(6), y] -= 1
        step = len(losses)
        rate = 0.01 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        for i, g in enumerate((p.T @ x / 6, p.sum(0) / 6)):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g * g
            weights[i] = weights[i] - rate * first[i] / (np.sqrt(second[i]) + 1e-8)
    np.testing.assert_allclose(names.seen, losses, rtol=1e-5)
    np.testing.assert_allclose(names.net.dense.weight.asnumpy(), weights[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(names.net.dense.bias.asnumpy(), weights[1], rtol=1e-4, atol=1e-6)


def test_accumulated_gradients_are_those_of_the_whole_batch(mode: str) -> None:
    """The gradients of N small batches are added up: theta' = theta - lr * accumulated."""
    from mindspore import Parameter, Tensor, ops, value_and_grad

    weight, x, y = values(4, 2), values(12, 4), values(12, 2)
    theta = Parameter(Tensor(weight), name="theta")

    def forward(inputs: Tensor, targets: Tensor) -> Tensor:
        return ops.square(ops.matmul(inputs, theta) - targets).sum()

    step = value_and_grad(forward, None, [theta])
    accumulated = np.zeros_like(weight)
    for i in range(0, 12, 3):
        _, (gradient,) = step(Tensor(x[i : i + 3]), Tensor(y[i : i + 3]))
        accumulated += gradient.asnumpy()
    np.testing.assert_array_equal(theta.asnumpy(), weight)
    exact = 2 * x.T.astype(np.float64) @ (x.astype(np.float64) @ weight - y)
    np.testing.assert_allclose(accumulated, exact, rtol=1e-5, atol=1e-5)
    _, (whole,) = step(Tensor(x), Tensor(y))
    np.testing.assert_allclose(whole.asnumpy(), exact, rtol=1e-5, atol=1e-5)
    theta.set_data(theta - 0.01 * Tensor(accumulated))
    np.testing.assert_allclose(theta.asnumpy(), weight - 0.01 * exact, rtol=1e-5, atol=1e-6)
