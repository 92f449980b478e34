"""Operators over levels of scales, ONNX's and ONNX Runtime's own, against NumPy."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.formats import onnx as ours
from mycel.formats.exporting import model_of
from mycel.quantisation import integers, quantise

onnx = pytest.importorskip("onnx")
helper = onnx.helper
F, FLOAT = np.float32, 1
KINDS: dict[Any, int] = {np.uint8: 2, np.int8: 3}


def built(
    operator: str, given: list[Any], outputs: Any, domain: str = "com.microsoft", names: Any = (), **more: Any
) -> Any:
    """A network of one node; of `given` the arrays in `names` are its inputs, others constants."""
    known = {n: i for i, n in enumerate(names)}
    labels = ["" if v is None else f"v{i}" for i, v in enumerate(given)]
    node = helper.make_node(operator, labels, ["y"], domain=domain, **more)
    inputs = [
        helper.make_tensor_value_info(labels[i], helper.np_dtype_to_tensor_dtype(given[i].dtype), given[i].shape)
        for i in known
    ]
    held = [onnx.numpy_helper.from_array(v, f"v{i}") for i, v in enumerate(given) if v is not None and i not in known]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", outputs, None)], held)
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return ours.loads(helper.make_model(graph, opset_imports=sets).SerializeToString())


def real(x: Any, scale: Any, zero: Any) -> Any:
    return (x.astype(np.float64) - int(zero)) * float(scale)


def levels(x: Any, scale: Any, zero: Any) -> Any:
    ends = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / float(scale)) + int(zero), ends.min, ends.max).astype(zero.dtype)


def near(found: Any, wanted: Any) -> None:
    """Equal but for a rounding of a level."""
    found = found.asnumpy()
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    apart = np.abs(found.astype(int) - wanted.astype(int))
    assert apart.max() <= 1 and (apart == 0).mean() > 0.9


def drawn(kind: Any, *shape: int, seed: int = 0) -> Any:
    ends = np.iinfo(kind)
    return np.random.default_rng(seed).integers(ends.min, ends.max + 1, shape).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_of_one_and_two_values(kind: Any) -> None:
    x, y = drawn(kind, 2, 3, 4, 5), drawn(kind, 3, 4, 5, seed=1)
    sx, zx, sy, zy, s, z = F(0.03), kind(7), F(0.05), kind(100), F(0.02), kind(60)
    a, b = real(x, sx, zx), real(y, sy, zy)
    one = [x, sx, zx, s, z]
    wanted = {
        "QLinearSigmoid": (1 / (1 + np.exp(-a)), {}),
        "QLinearLeakyRelu": (np.where(a > 0, a, 0.25 * a), {"alpha": 0.25}),
        "QLinearSoftmax": (np.exp(a) / np.exp(a).sum(-1, keepdims=True), {"axis": -1, "opset": 13}),
        "QLinearGlobalAveragePool": (a.mean((2, 3), keepdims=True), {}),
    }
    for name, (values, more) in wanted.items():
        near(built(name, one, KINDS[kind], names=[0], **more)(ms.Tensor(x)), levels(values, s, z))
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    net = built("QLinearGlobalAveragePool", [last, *one[1:]], KINDS[kind], names=[0], channels_last=1)
    near(net(ms.Tensor(last)), levels(a.mean((2, 3))[:, None, None], s, z))
    for name, values in (("QLinearAdd", a + b), ("QLinearMul", a * b)):
        net = built(name, [x, sx, zx, y, sy, zy, s, z], KINDS[kind], names=[0, 3])
        near(net(ms.Tensor(x), ms.Tensor(y)), levels(values, s, z))
    net = built("QLinearConcat", [s, z, x, sx, zx, x, sy, zy], KINDS[kind], names=[2], axis=1)
    near(net(ms.Tensor(x)), levels(np.concatenate([a, real(x, sy, zy)], 1), s, z))
    with pytest.raises(ValueError, match="QLinearConcat.* not values with their scales"):
        built("QLinearConcat", [s, z, x, sx], KINDS[kind], names=[2], axis=1)(ms.Tensor(x))


@pytest.mark.parametrize("weight_kind, weight_zero", [(np.int8, 0), (np.uint8, 128), (np.uint8, 37)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_convolutions_and_products(kind: Any, weight_kind: Any, weight_zero: int, per_channel: bool) -> None:
    x, w, bias = drawn(kind, 2, 4, 7, 6), drawn(weight_kind, 6, 2, 3, 3, seed=2), np.arange(-3, 3, dtype=np.int32) * 400
    count = 6 if per_channel else 1
    sw = np.linspace(0.01, 0.02, count).astype(F) if per_channel else F(0.01)
    zw = np.full(count, weight_zero, weight_kind) if per_channel else weight_kind(weight_zero)
    sx, zx, s, z = F(0.04), kind(50), F(0.5), kind(30)
    given = [x, sx, zx, w, sw, zw, s, z, bias]
    net = built("QLinearConv", given, KINDS[kind], domain="", names=[0], group=2, strides=[2, 1], pads=[1, 0, 1, 2])
    a, b = x.astype(np.float64) - int(zx), w.astype(np.float64) - weight_zero
    total = ops.conv2d(
        ms.Tensor(a), ms.Tensor(b), stride=(2, 1), pad_mode="pad", padding=(1, 1, 0, 2), groups=2
    ).asnumpy()
    line = (-1, 1, 1)
    total = (total + bias.reshape(line)) * float(sx) * np.reshape(sw, line)
    near(net(ms.Tensor(x)), levels(total, s, z))
    count_of = Counter(n.op for n in model_of(net, [ms.Tensor(x)]).graph.nodes)
    assert count_of["int_conv"] == 1 and not count_of["conv"]

    x, w, bias = drawn(kind, 5, 16), drawn(weight_kind, 6, 16, seed=3), np.arange(6, dtype=np.int32) * 99
    wanted = ((x.astype(int) - int(zx)) @ (w.astype(int) - weight_zero).T + bias) * float(sx) * np.reshape(sw, (-1,))
    net = built("QGemm", [x, sx, zx, w, sw, zw, bias, s, z], KINDS[kind], names=[0], transB=1)
    near(net(ms.Tensor(x)), levels(wanted, s, z))
    net = built("QGemm", [x, sx, zx, w, sw, zw, bias], FLOAT, names=[0], transB=1)
    np.testing.assert_allclose(net(ms.Tensor(x)).asnumpy(), wanted, rtol=1e-5, atol=1e-4)
    assert Counter(n.op for n in model_of(net, [ms.Tensor(x)]).graph.nodes)["int_matmul"] == 1
    w = np.ascontiguousarray(w.T)
    net = built("QLinearMatMul", [x, sx, zx, w, sw, zw, s, z], KINDS[kind], domain="", names=[0])
    near(net(ms.Tensor(x)), levels(wanted - bias * float(sx) * np.reshape(sw, (-1,)), s, z))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, has_bias=True)
        self.dense = nn.Dense(8, 5)

    def construct(self, x: Any) -> Any:
        x = ops.relu(self.conv(x))
        return ops.softmax(self.dense(x.mean((2, 3))))


@pytest.mark.parametrize("options", [{}, {"integer_ends": True}, {"per_channel": False}, {"weight_bits": 4}])
def test_a_file_of_steps_becomes_integers_again(tmp_path: Any, options: dict[str, Any]) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3, 8, 8)).astype(F)
    made = quantise(Net(), ms.Tensor(x), **options)
    given = ms.Tensor(made.quantised_input(x) if made.input_scales else x)
    open_batch = ms.Tensor(shape=[None, 3, 8, 8], dtype=given.dtype)
    ms.export(made, open_batch, file_name=tmp_path / "net.onnx", file_format="ONNX")
    read = ms.load(tmp_path / "net.onnx")
    small = integers(read, open_batch)
    wanted = made(given).asnumpy()
    assert small.report.floats == [] and set(small.input_scales) == set(made.input_scales)
    for found in (read(given), small(given), small(given[:2])):
        found = found.asnumpy()
        assert found.dtype == wanted.dtype
        step = 1 if options.get("integer_ends") else 1 / 256
        assert np.abs(found.astype(float) - wanted[: len(found)]).max() <= step * 1.001
    ops_ = Counter(n.op for n in small.model.graph.nodes)
    assert ops_["int_conv"] == ops_["int_matmul"] == 1 and not ops_["conv"] and not ops_["matmul"]
