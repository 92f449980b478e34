"""MindIR files for MindSpore: the messages in them, and what is not in the subset.

MindSpore 2.10 loads the file of `test_the_file_that_mindspore_loads` and gives for [[1, 2], [3,
-4]] what is written there.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.base.errors import Unsupported
from mycel.base.wire import fields

THEIRS = [[0.05668084695935249, 0.05668084695935249, 0.8866382837295532], [1 / 3, 1 / 3, 1 / 3]]


def exported(net, *inputs, path):
    ms.export(net, *inputs, file_name=str(path), file_format="MINDIR", for_mindspore=True)
    return path.with_suffix(".mindir").read_bytes()


def operators(content):
    """The operators in the order of the graph's nodes, and the attributes by operator."""
    primitives, attributes, order = {}, {}, []
    for number, value in fields(content):
        if number == 12:
            parts = [(n, v) for n, v in fields(value)]
            kind = dict(parts)[2].decode()
            primitives[dict(parts)[1].decode()] = kind
            attributes[kind] = {dict(fields(v))[1].decode(): v for n, v in parts if n == 3}
    graph = next(value for number, value in fields(content) if number == 7)
    for number, value in fields(graph):
        if number == 1:
            kind = dict(fields(value))[4].decode()
            if kind != "Constant":
                order.append(primitives[kind.removeprefix("REF::")])
    return order, attributes


def numbers(attribute):
    return [v for n, part in fields(attribute) if n == 17 for m, v in fields(part) if m == 10]


def test_the_file_that_mindspore_loads(tmp_path):
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Softmax())
    net[0].weight.set_data(np.arange(6, dtype=np.float32).reshape(3, 2) / 4)
    net[0].bias.set_data(np.array([0.5, -1, 0.25], np.float32))
    x = np.array([[1, 2], [3, -4]], np.float32)
    content = exported(net, ms.Tensor(x), path=tmp_path / "net")
    np.testing.assert_allclose(net(ms.Tensor(x)).asnumpy(), THEIRS, rtol=1e-6)
    assert operators(content)[0] == ["Transpose", "MatMul", "Add", "ReLU", "Softmax", "Reshape"]


def test_convolutions_and_pools(tmp_path):
    net = nn.SequentialCell(
        nn.Conv2d(3, 4, 3, stride=2, pad_mode="pad", padding=(1, 2, 0, 1), has_bias=True),
        nn.BatchNorm2d(4),
        nn.MaxPool2d(2, 2),
        nn.AvgPool2d(2, 1),
        nn.LayerNorm((3,)),
    ).set_train(False)
    content = exported(net, ms.Tensor(np.ones((2, 3, 16, 17), np.float32)), path=tmp_path / "net")
    order, attributes = operators(content)
    assert order[0] == "Conv2D" and {"MaxPool", "AvgPool", "ReduceMean", "Rsqrt", "Mul"} <= set(order)
    conv = {name: numbers(value) for name, value in attributes["Conv2D"].items()}
    assert conv["stride"] == [1, 1, 2, 2] and conv["pad_list"] == [1, 2, 0, 1] and conv["kernel_size"] == [3, 3]
    assert numbers(attributes["MaxPool"]["kernel_size"]) == [1, 1, 2, 2]
    graph = next(value for number, value in fields(content) if number == 7)
    names = [dict(fields(v))[13].decode() for n, v in fields(graph) if n == 3]
    assert sorted(names) == sorted(p.name for p in net.get_parameters())


def test_what_is_not_in_the_subset_is_named(tmp_path):
    x = ms.Tensor(np.eye(3, dtype=np.float32))
    for function, inputs, message in [
        (ops.cholesky, (x,), "no form for the operation cholesky"),
        (ops.exp, (ms.Tensor(shape=[None], dtype=ms.float32),), "fixed sizes only"),
        (nn.BatchNorm1d(3).set_train(True), (x,), "change no state"),
        (lambda x: {"a": x + 1}, (x,), "tensors and tuples of them"),
        (nn.MaxPool2d(2, 2, pad_mode="same"), (ms.Tensor(np.ones((1, 1, 3, 3), np.float32)),), "pools without padding"),
        (nn.Conv3d(1, 1, 3), (ms.Tensor(np.ones((1, 1, 8, 8, 8), np.float32)),), "convolutions of two dimensions"),
    ]:
        with pytest.raises(Unsupported, match=message):
            ms.export(function, *inputs, file_name=tmp_path / "f", file_format="MINDIR", for_mindspore=True)
    with pytest.raises(Unsupported, match="without enc_key"):
        ms.export(ops.exp, x, file_name=tmp_path / "f", file_format="MINDIR", for_mindspore=True, user_info={"a": "b"})
    assert not list(tmp_path.iterdir())


def test_what_is_written_loads_here_as_well(tmp_path):
    x = ms.Tensor(np.eye(3, dtype=np.float32))
    exported(ops.exp, x, path=tmp_path / "f")
    np.testing.assert_allclose(ms.load(tmp_path / "f.mindir")(x).asnumpy(), np.exp(np.eye(3)), rtol=1e-6)
