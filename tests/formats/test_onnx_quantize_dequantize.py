"""Quantised networks as ONNX models, run by the reference evaluator of the package onnx."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.quantisation import quantise, quantise_weights

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")


def values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def written(net: Any, x: Any, path: Path) -> tuple[Any, Any]:
    """The model of a network, and its results for an input."""
    open_batch = ms.Tensor(shape=[None, *x.shape[1:]], dtype=ms.Tensor(x).dtype)
    ms.export(net, open_batch, file_name=path / "net.onnx", file_format="ONNX")
    model = onnx.load(str(path / "net.onnx"))
    onnx.checker.check_model(model, full_check=True)
    evaluator = reference.ReferenceEvaluator(model)
    return model, evaluator.run(None, {evaluator.input_names[0]: x})[0]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.deep = nn.Conv2d(8, 8, 3, group=8, has_bias=True)
        self.point = nn.Conv2d(8, 8, 1, has_bias=True)
        self.dense = nn.Dense(8, 10)
        for number, p in enumerate(self.get_parameters()):
            drawn = values(*p.shape, seed=number) * 0.3
            p.set_data(ms.Tensor(np.abs(drawn) + 0.5 if "variance" in p.name else drawn))

    def construct(self, x: Any) -> Any:
        x = ops.relu6(self.norm(self.first(x)))
        y = self.point(ops.relu(self.deep(x)))
        x = ops.sigmoid(x + y)
        return ops.softmax(self.dense(x.mean((2, 3))))


FORMS: list[dict[str, Any]] = [
    {},
    {"symmetric": True},
    {"per_channel": False},
    {"integer_ends": True},
    {"bits": 5},
    {"weight_bits": 4},
]


@pytest.mark.parametrize("options", FORMS, ids=[str(f) for f in FORMS])
def test_a_network_of_integers_is_written_as_its_steps(tmp_path: Path, options: dict[str, Any]) -> None:
    x = values(6, 3, 8, 8)
    net = Net()
    net.set_train(False)
    made = quantise(net, ms.Tensor(x), **options)
    given = made.quantised_input(x) if made.input_scales else x
    model, found = written(made, given, tmp_path)
    ours = made(ms.Tensor(given)).asnumpy()
    if made.output_scales:
        assert found.dtype == ours.dtype == np.int8
        assert np.abs(found.astype(int) - ours.astype(int)).max() <= 1
    else:
        assert np.abs(found - ours).max() <= 1.01 / (1 << options.get("bits", 8)) * 1.01
    count = Counter(n.op_type for n in model.graph.node)
    # Each layer has a dequantised operand, weight and bias, and nothing is written by definitions.
    assert count["Conv"] == 3 and count["Gemm"] == 1 and not {"Round", "Floor", "Where"} & set(count)
    kinds = {t.data_type for t in model.graph.initializer if len(t.dims) > 1}
    assert kinds == {22 if options.get("weight_bits") == 4 else 3}
    assert model.opset_import[0].version == (21 if 22 in kinds else 20)


@pytest.mark.parametrize("bits, group", [(4, 16), (4, None), (3, 8), (8, None), (8, 16)])
def test_weights_of_few_bits(tmp_path: Path, bits: int, group: Any) -> None:
    net = nn.SequentialCell(nn.Dense(32, 24), nn.ReLU(), nn.Dense(24 if group is None else 24, 16))
    x = values(4, 32)
    if group == 16:
        net = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 16))
    made = quantise_weights(net, ms.Tensor(x), bits=bits, group_size=group)
    model, found = written(made, x, tmp_path)
    np.testing.assert_allclose(found, made(ms.Tensor(x)).asnumpy(), atol=1e-5)
    count = Counter(n.op_type for n in model.graph.node)
    assert count["DequantizeLinear"] == 2 and set(count) <= {"DequantizeLinear", "Gemm", "Relu", "Identity"}
    steps = [t for t in model.graph.initializer if t.data_type in (3, 22) and len(t.dims) == 2]
    assert {t.data_type for t in steps} == {22 if bits <= 4 else 3}
    if group is not None:
        sizes = [a.i for n in model.graph.node for a in n.attribute if a.name == "block_size"]
        assert sizes == [group] * 2


def test_dynamic_values_are_products_of_integers(tmp_path: Path) -> None:
    x = values(4, 32)
    made = quantise_weights(nn.Dense(32, 8), ms.Tensor(x), values="dynamic")
    model, found = written(made, x, tmp_path)
    np.testing.assert_allclose(found, made(ms.Tensor(x)).asnumpy(), atol=1e-6)
    assert "MatMulInteger" in {n.op_type for n in model.graph.node}


def test_halves_away_from_zero_are_written_by_their_definition(tmp_path: Path) -> None:
    from mycel._src.compiler.prims.neural.quantisation import fake_quant
    from mycel._src.tensors.core.eager import apply

    def net(x: Any) -> Any:
        one, zero = ms.Tensor(np.float32(1)), ms.Tensor(np.float32(0))
        return apply(fake_quant, x, one, zero, low=-8, high=7, ties="away")

    x = np.array([[-2.5, 0.5, 1.5, 9.0]], np.float32)
    model, found = written(net, x, tmp_path)
    assert found.tolist() == [[-3.0, 1.0, 2.0, 7.0]]
    assert "QuantizeLinear" not in {n.op_type for n in model.graph.node}


class Recurrent(nn.Cell):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layer, self.dense = kind(6, 8, batch_first=True), nn.Dense(8, 3)

    def construct(self, x: Any) -> Any:
        return self.dense(self.layer(x)[0][:, -1])


@pytest.mark.parametrize("kind, operator", [(nn.LSTM, "LSTM"), (nn.GRU, "GRU"), (nn.RNN, "RNN")])
@pytest.mark.parametrize("length", [5, 20])
def test_recurrent_layers_of_any_length(tmp_path: Path, kind: Any, operator: str, length: int) -> None:
    x = values(4, length, 6)
    made = quantise(Recurrent(kind), ms.Tensor(x))
    model, found = written(made, x, tmp_path)
    ours = made(ms.Tensor(x)).asnumpy()
    assert np.abs(found - ours).max() <= 0.02 * np.abs(ours).max()
    count = Counter(n.op_type for n in model.graph.node)
    assert count[operator] == 1 and "Loop" not in count and "Sigmoid" not in count


class Chosen(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(6, 8)

    def construct(self, x: Any) -> Any:
        y = self.dense(x).reshape((-1, 2, 4))
        if y.sum() > 0.0:
            y = y * 2.0
        else:
            y = y - 1.0
        return y


def test_inner_graphs_see_no_steps_through_shapes(tmp_path: Path) -> None:
    """ONNX Runtime ends where it moves DequantizeLinear to what an inner graph sees."""
    x = values(4, 6)
    made = quantise(Chosen(), ms.Tensor(x))
    model, found = written(made, x, tmp_path)
    assert np.abs(found - made(ms.Tensor(x)).asnumpy()).max() < 0.05
    makers = {o: n.op_type for n in model.graph.node for o in n.output}
    (branch,) = [n for n in model.graph.node if n.op_type == "If"]
    inside = {o for a in branch.attribute for n in a.g.node for o in n.output}
    seen = {i for a in branch.attribute for n in a.g.node for i in n.input} - inside
    assert {makers[i] for i in seen if i in makers} == {"Max"}
