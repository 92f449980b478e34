"""Where float64 meets shorter floats: what the real package refuses is refused, and what it
computes in float64 is computed in float64. The tables are its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, nn, ops

Maker = Callable[[], Any]


class _Steps(nn.Cell):
    """An LSTM cell as a function of three tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 3)

    def construct(self, x: Any, h: Any, c: Any) -> Any:
        return self.cell(x, (h, c))


REFUSED: dict[str, tuple[Maker, tuple[tuple[int, ...], ...]]] = {
    "Dense": (lambda: nn.Dense(4, 3), ((2, 4),)),
    "Dense without bias": (lambda: nn.Dense(4, 3, has_bias=False), ((2, 5, 4),)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3), ((2, 3, 8),)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, has_bias=True), ((2, 3, 8, 8),)),
    "Conv2d in groups": (lambda: nn.Conv2d(4, 4, 3, group=2), ((2, 4, 8, 8),)),
    "Conv3d": (lambda: nn.Conv3d(3, 4, 3), ((2, 3, 5, 5, 5),)),
    "Conv1dTranspose": (lambda: nn.Conv1dTranspose(3, 4, 3), ((2, 3, 8),)),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(3, 4, 3), ((2, 3, 8, 8),)),
    "Conv3dTranspose": (lambda: nn.Conv3dTranspose(3, 4, 3), ((2, 3, 5, 5, 5),)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), ((2, 4),)),
    "BatchNorm2d in training": (lambda: nn.BatchNorm2d(4).set_train(), ((2, 4, 3, 3),)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), ((2, 4, 3, 3, 3),)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), ((2, 4, 3, 3),)),
    "PReLU": (lambda: nn.PReLU(3), ((2, 3, 4),)),
    "BiDense": (lambda: nn.BiDense(4, 5, 3), ((2, 4), (2, 5))),
    "RNNCell": (lambda: nn.RNNCell(4, 3), ((2, 4), (2, 3))),
    "GRUCell": (lambda: nn.GRUCell(4, 3), ((2, 4), (2, 3))),
    "LSTMCell": (_Steps, ((2, 4), (2, 3), (2, 3))),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2), ((3, 2, 4),) * 3),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2), ((3, 2, 4),)),
    "mint Linear": (lambda: mint.nn.Linear(4, 3), ((2, 4),)),
}
COMPUTED: dict[str, tuple[Maker, tuple[tuple[int, ...], ...]]] = {
    "LayerNorm": (lambda: nn.LayerNorm((4,)), ((2, 4),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), ((2, 4, 3, 3),)),
    "RNN": (lambda: nn.RNN(4, 3), ((5, 2, 4),)),
    "GELU": (nn.GELU, ((2, 4),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, 2), ((2, 3, 4, 4),)),
}
# Functions of a float64 and a float32 tensor, in either order.
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "matmul": (ops.matmul, (2, 4), (4, 3)),
    "MatMul": (lambda a, b: ops.MatMul()(a, b), (2, 4), (4, 3)),
    "@": (lambda a, b: a @ b, (2, 4), (4, 3)),
    "BatchMatMul": (lambda a, b: ops.BatchMatMul()(a, b), (2, 2, 4), (2, 4, 3)),
    "bmm": (ops.bmm, (2, 2, 4), (2, 4, 3)),
    "mm": (ops.mm, (2, 4), (4, 3)),
    "mv": (ops.mv, (2, 4), (4,)),
    "dot": (ops.dot, (2, 4), (4, 3)),
    "inner": (ops.inner, (2, 4), (2, 4)),
    "tensor_dot": (lambda a, b: ops.tensor_dot(a, b, 1), (2, 4), (4, 3)),
    "dense": (ops.dense, (2, 4), (3, 4)),
    "conv2d": (ops.conv2d, (2, 3, 8, 8), (4, 3, 3, 3)),
    "Conv2D": (lambda a, b: ops.Conv2D(4, 3)(a, b), (2, 3, 8, 8), (4, 3, 3, 3)),
    "bias_add": (ops.bias_add, (2, 4), (4,)),
    "prelu": (ops.prelu, (2, 3), (3,)),
    "cdist": (ops.cdist, (2, 4), (3, 4)),
    "kl_div": (ops.kl_div, (2, 4), (2, 4)),
    "binary_cross_entropy": (ops.binary_cross_entropy, (2, 4), (2, 4)),
    "numpy.matmul": (ms.numpy.matmul, (2, 4), (4, 3)),
    "numpy.dot": (ms.numpy.dot, (2, 4), (4, 3)),
    "linear of mint": (mint.nn.functional.linear, (2, 4), (3, 4)),
}
PROMOTED: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "+": (lambda a, b: a + b, (2, 4), (4,)),
    "Mul": (lambda a, b: ops.Mul()(a, b), (2, 4), (4,)),
    "maximum": (ops.maximum, (2, 4), (4,)),
    "outer": (ops.outer, (3,), (4,)),
    "kron": (ops.kron, (2, 2), (2, 2)),
    "mse_loss": (ops.mse_loss, (2, 4), (2, 4)),
    "huber_loss": (ops.huber_loss, (2, 4), (2, 4)),
    "where": (lambda a, b: ops.where(a > 0, a, b), (2, 4), (2, 4)),
}


def _tensor(shape: tuple[int, ...], kind: Any = np.float64) -> Tensor:
    return Tensor(np.abs(np.sin(np.arange(1, 1 + np.prod(shape)))).reshape(shape).astype(kind))


def _types(value: Any) -> set[Any]:
    return set().union(*map(_types, value)) if isinstance(value, tuple) else {value.dtype}


@pytest.mark.parametrize("name", REFUSED)
def test_layers_of_float32_refuse_float64(name: str) -> None:
    make, shapes = REFUSED[name]
    net, inputs = make(), [_tensor(s) for s in shapes]
    with pytest.raises(TypeError, match=r"float64 .*float32.*astype\(float32\)"):
        net(*inputs)
    for parameter in net.get_parameters():
        parameter.set_dtype(ms.float64)
    assert _types(net(*inputs)) == {ms.float64}


@pytest.mark.parametrize("name", COMPUTED)
def test_layers_that_compute_in_float64(name: str) -> None:
    make, shapes = COMPUTED[name]
    assert _types(make()(*[_tensor(s) for s in shapes])) == {ms.float64}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_refuse_the_mixture(name: str) -> None:
    function, left, right = FUNCTIONS[name]
    for kinds in ((np.float64, np.float32), (np.float32, np.float64)):
        with pytest.raises(TypeError, match="do not mix"):
            function(_tensor(left, kinds[0]), _tensor(right, kinds[1]))
    assert _types(function(_tensor(left), _tensor(right))) == {ms.float64}


@pytest.mark.parametrize("name", PROMOTED)
def test_functions_that_promote(name: str) -> None:
    function, left, right = PROMOTED[name]
    assert function(_tensor(left), _tensor(right, np.float32)).dtype is ms.float64
    assert function(_tensor(left, np.float32), _tensor(right)).dtype is ms.float64


def test_training_says_which_operand_and_what_to_do() -> None:
    net = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU(), nn.Dense(3, 1))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    rows = [(np.ones(4), np.ones(1))]
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"]).batch(1)
    before = ms.get_context("mode")
    try:
        for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
            ms.set_context(mode=mode)
            message = r"dense: input has type float64 and weight float32, .* convert input by .astype\(float32\)"
            with pytest.raises(TypeError, match=message):
                step(_tensor((2, 4)), _tensor((2, 1)))
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
            with pytest.raises(TypeError, match=message):
                model.train(1, data, dataset_sink_mode=False)
            with pytest.raises(TypeError, match=message):
                model.predict(_tensor((2, 4)))
            # Elements are promoted as before, and Cells that cast their inputs take float64.
            assert nn.Dense(4, 3).to_float(ms.float16)(_tensor((2, 4))).dtype is ms.float16
    finally:
        ms.set_context(mode=before)
