"""MindIR files for MindSpore: the messages in them, and what is not in the subset.

MindSpore 2.10 loads the file of `test_the_file_that_mindspore_loads` and gives for [[1, 2], [3,
-4]] what is written there.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.protobuf_wire import fields

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
    assert operators(content)[0] == ["Transpose", "MatMul", "Add", "ReLU", "Softmax"]


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


def test_what_has_no_form_is_named(tmp_path):
    x = ms.Tensor(np.eye(3, dtype=np.float32))
    for function, inputs, message in [
        (ops.cholesky, (x,), "no form for the operation cholesky"),
        (lambda x: ops.dropout(x, 0.5, training=True), (x,), "draws random numbers|changes generator"),
        (lambda x: {"a": x + 1}, (x,), "tensors, and tuples and lists of them"),
        (lambda x: ops.dot(x[0], x[1]) + ops.fft(x).real(), (x,), "no conversion to complex64"),
    ]:
        with pytest.raises(Unsupported, match=message):
            ms.export(function, *inputs, file_name=tmp_path / "f", file_format="MINDIR", for_mindspore=True)
    assert not list(tmp_path.iterdir())


def form(value):
    """The containers of a result."""
    if isinstance(value, (tuple, list)):
        return type(value)(form(v) for v in value)
    return {k: form(v) for k, v in value.items()} if isinstance(value, dict) else "tensor"


def values_of(value):
    if isinstance(value, ms.Tensor):
        return [value]
    return [x for v in (value.values() if isinstance(value, dict) else value) for x in values_of(v)]


def is_mindir(path):
    return path.read_bytes()[:1] == b"\n"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: (x + 1, [x * 2, x]), ""),
        (ops.cholesky, "no form for the operation cholesky"),
        (lambda x: {"a": x + 1}, "tensors, and tuples and lists of them"),
        (lambda x: ops.dropout(x, 0.5, training=True), "draws random numbers"),
    ],
)
def test_what_mindir_cannot_express_becomes_a_graph_file(function, reason, tmp_path, caplog):
    x = ms.Tensor(np.eye(3, dtype=np.float32))
    ms.export(function, x, file_name=tmp_path / "f", file_format="MINDIR")
    assert is_mindir(tmp_path / "f.mindir") == (not reason)
    assert ("graph file of Mycel's own" in caplog.text) == bool(reason) and reason in caplog.text
    if "random" not in reason:
        mine, read = function(x), ms.load(tmp_path / "f.mindir")(x)
        assert form(mine) == form(read)
        for one, other in zip(values_of(mine), values_of(read)):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


def test_arguments_sizes_and_derivatives_that_mindspore_leaves_out_are_kept(tmp_path):
    x = ms.Tensor(np.eye(3, dtype=np.float32))

    class Hundred(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (dout * 100,)

    open_size = ms.Tensor(shape=[None, 3], dtype=ms.float32)
    for net, inputs in [
        (lambda pair: pair[0] - pair[1], ((x, x),)),
        (lambda x, by: x * by, (x, 2.0)),
        (lambda x: x * 2 if x.shape[0] > 5 else x, (open_size,)),
        (Hundred(), (x,)),
    ]:
        ms.export(net, *inputs, file_name=tmp_path / "f", file_format="MINDIR")
        assert not is_mindir(tmp_path / "f.mindir")


def test_everything_of_a_file_comes_back_through_mindir(tmp_path):
    pytest.importorskip("cryptography")
    net = nn.SequentialCell(nn.Dense(3, 2), nn.Tanh())
    net[0].weight.requires_grad = False
    constant, x = ms.Tensor(np.arange(4, dtype=np.float32).reshape(2, 2)), ms.Tensor(np.ones((2, 3), np.float32))
    key = b"0123456789abcdef"
    options = {"file_name": tmp_path / "f.mindir", "file_format": "MINDIR"}
    ms.export(lambda x: ops.stop_gradient(net(x)) * net(x) + constant, x, **options, user_info={"author": "me"})
    assert is_mindir(tmp_path / "f.mindir")
    expected = net(x) * net(x) + constant
    loaded, model = ms.load(tmp_path / "f.mindir"), ms.load_mindir(tmp_path / "f.mindir")
    np.testing.assert_allclose(loaded(x).asnumpy(), expected.asnumpy(), rtol=1e-6)
    assert {p.name: p.requires_grad for p in loaded.get_parameters()} == {"0.weight": False, "0.bias": True}
    gradient = ms.grad(lambda x: loaded(x).sum())(x)
    halved = ms.grad(lambda x: (net(x) * net(x)).sum())(x) / 2
    np.testing.assert_allclose(gradient.asnumpy(), halved.asnumpy(), rtol=1e-5)
    assert model.user_info == {"author": "me"} and {s.name for s in model.states} >= {"0.weight", "0.bias"}
    model.user_info["author"] = "you"
    next(s for s in model.states if s.name == "0.bias").value[:] = 0
    ms.save_mindir(model, tmp_path / "g.mindir")
    assert is_mindir(tmp_path / "g.mindir") and ms.load_mindir(tmp_path / "g.mindir").user_info == {"author": "you"}
    net[0].bias.set_data(np.zeros(2, np.float32))
    again = ms.load(tmp_path / "g.mindir")(x)
    np.testing.assert_allclose(again.asnumpy(), (net(x) * net(x) + constant).asnumpy(), rtol=1e-6)
    ms.export(net, x, **options, enc_key=key)
    assert ms.load(tmp_path / "f.mindir", dec_key=key)(x).tolist() == net(x).tolist()
    with pytest.raises(ValueError, match=r"it takes float32\[2, 3\], not float32\[4, 3\]"):
        loaded(ms.Tensor(np.ones((4, 3), np.float32)))


def test_what_is_written_loads_here_as_well(tmp_path):
    x = ms.Tensor(np.eye(3, dtype=np.float32))
    exported(ops.exp, x, path=tmp_path / "f")
    np.testing.assert_allclose(ms.load(tmp_path / "f.mindir")(x).asnumpy(), np.exp(np.eye(3)), rtol=1e-6)


def both(function, *inputs, path, example=None):
    """What a function gives, and what the file written for MindSpore gives when it is read."""
    ms.export(function, *(example or inputs), file_name=str(path / "f"), file_format="MINDIR", for_mindspore=True)
    return ms.load(path / "f.mindir")


def test_every_size_may_be_open(tmp_path):
    def f(x):
        rows = x.shape[0]
        y = ops.concat((x.reshape((rows * 2, -1)), ops.zeros((rows, 2), ms.float32)))
        return y[1:], ops.arange(rows) + 1, ops.broadcast_to(x.sum(1).sum(), (rows,)) / rows

    any_rows = ms.Tensor(shape=[ms.Symbol(min=2), 2, 2], dtype=ms.float32)
    net = both(f, path=tmp_path, example=(any_rows,))
    for rows in (2, 5):
        x = ms.Tensor(np.random.default_rng(rows).normal(size=(rows, 2, 2)).astype(np.float32))
        for got, want in zip(net(x), f(x)):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5)


def test_loops_and_branches(tmp_path):
    def f(x, n):
        i = ms.Tensor(0, ms.int32)
        while i < n:
            if x.sum() > 8:
                x = x / 2
            else:
                x = x * 3
            i = i + 1
        return x, i

    x = ms.Tensor([1.0, 2.0], ms.float32)
    net = both(f, x, ms.Tensor(1, ms.int32), path=tmp_path)
    for n in (0, 1, 6):
        for got, want in zip(net(x, ms.Tensor(n, ms.int32)), f(x, ms.Tensor(n, ms.int32))):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6)


def test_training_changes_the_parameters_of_the_file(tmp_path):
    dense = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 1))
    optimizer = nn.Adam(dense.trainable_params(), 0.05)
    step = ms.value_and_grad(lambda x, y: ((dense(x) - y) ** 2).mean(), None, optimizer.parameters)

    def train(x, y):
        loss, gradients = step(x, y)
        optimizer(gradients)
        return loss

    x, y = (ms.Tensor(np.random.default_rng(k).normal(size=(6, n)).astype(np.float32)) for k, n in ((0, 3), (1, 1)))
    loaded = both(train, x, y, path=tmp_path)
    for _ in range(3):
        np.testing.assert_allclose(loaded(x, y).asnumpy(), train(x, y).asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("pads", [(0, 0), (2, 1)])
def test_windows(pads, tmp_path):
    def f(x, w):
        x = ops.pad(x, pads)
        y = ops.conv1d(x, w, stride=2, pad_mode="pad", padding=1)
        return ops.max_pool2d(y.expand_dims(2), (1, 3), (1, 2), padding=(0, 1)), ops.avg_pool1d(y, 2, 2)

    random = np.random.default_rng(0)
    x, w = (ms.Tensor(random.normal(size=s).astype(np.float32)) for s in ((2, 3, 12), (4, 3, 3)))
    for got, want in zip(both(f, x, w, path=tmp_path)(x, w), f(x, w)):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)
