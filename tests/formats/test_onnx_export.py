"""ONNX models, run by the reference evaluator of the package onnx, and what has no form in one."""

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.prims.base import REGISTRY, outputs_of
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.graph_file import Model
from mycel.formats.onnx.export import node_rules
from tests.prims.cases import cases, nodes_for

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")

# Their samples have indices outside of the tensor, which ONNX leaves undefined, or groups, which
# the evaluator's transposed convolution mistakes.
NOT_COMPARED = {"conv_grad_input", "dynamic_update_slice", "gather_nd", "take", "take_along"}
KINDS = ("float32", "float64", "int32", "int64", "bool")


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run(content, *arrays):
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    names = [i.name for i in model.graph.input]
    return reference.ReferenceEvaluator(model).run(None, dict(zip(names, arrays)))


def exported(net, *inputs, path):
    ms.export(net, *inputs, file_name=str(path), file_format="ONNX")
    content = path.with_suffix(".onnx").read_bytes()
    return lambda *arrays: run(content, *arrays)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.pools = nn.CellList([nn.MaxPool2d(2, 2), nn.AvgPool2d(2, 2)])
        self.dense = nn.Dense(16, 5)
        self.dropout = nn.Dropout(p=0.5)

    def construct(self, x):
        x = ops.relu(self.norm(self.conv(x)))
        for pool in self.pools:
            x = pool(x)
        x = self.dropout(self.dense(x.reshape((x.shape[0], -1))))
        return ops.softmax(x), {
            "gelu": ops.gelu(x),
            "norm": ops.layer_norm(x, (5,), ms.ops.ones(5), ms.ops.zeros(5))[0],
        }


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_network_computes_the_same(tmp_path, dynamic):
    net = Net()
    x = values(4, 3, 8, 8)
    example = ms.Tensor(shape=[None, 3, 8, 8], dtype=ms.float32) if dynamic else ms.Tensor(x)
    model = exported(net, example, path=tmp_path / "net")
    for n in (4, 1, 3) if dynamic else (4,):
        net.set_train(False)
        soft, others = net(ms.Tensor(x[:n]))
        found = model(x[:n])
        for mine, theirs in zip(found, (soft, others["gelu"], others["norm"])):
            np.testing.assert_allclose(mine, theirs.asnumpy(), rtol=1e-4, atol=1e-5)


def test_training_is_as_it_was_afterwards(tmp_path):
    net = Net().set_train(True)
    net.norm.set_train(False)
    before = [cell.training for _, cell in net.cells_and_names()]
    exported(net, ms.Tensor(values(2, 3, 8, 8)), path=tmp_path / "net")
    assert [cell.training for _, cell in net.cells_and_names()] == before


def test_control_flow(tmp_path):
    def f(x, limit):
        total = x
        while total.sum() < limit:
            total = total * 2
        if total[0] > 10:
            total = total + limit
        return total

    x, limit = values(3) ** 2, np.float32(40)
    model = exported(f, ms.Tensor(x), ms.Tensor(limit), path=tmp_path / "f")
    for limit in (np.float32(40), np.float32(1000), np.float32(-1)):
        np.testing.assert_allclose(model(x, limit)[0], f(ms.Tensor(x), ms.Tensor(limit)).asnumpy(), rtol=1e-6)


def test_sizes_that_vary(tmp_path):
    def f(x, y):
        both = ops.concat([x, y], 0)
        places = ops.arange(0, both.shape[0]).astype(ms.float32)
        return both.reshape((both.shape[0] // 2, 2, -1)).sum(2), places * x.shape[0], ops.flip(both, (0,)).mean()

    n, m = ms.Symbol(divisor=2), ms.Symbol(divisor=2)
    model = exported(
        f, ms.Tensor(shape=[n, 3], dtype=ms.float32), ms.Tensor(shape=[m, 3], dtype=ms.float32), path=tmp_path / "f"
    )
    for a, b in ((2, 4), (6, 2), (4, 4)):
        x, y = values(a, 3), values(b, 3, seed=1)
        for mine, theirs in zip(model(x, y), f(ms.Tensor(x), ms.Tensor(y))):
            np.testing.assert_allclose(mine, theirs.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_primitive_that_has_a_form(name):
    for case in cases(REGISTRY[name]):
        if any(d.name not in KINDS for d in case.dtypes):
            continue
        arrays = case.draw()
        inputs = nodes_for(arrays)
        for i, node in enumerate(inputs):
            node.params = {"name": f"x{i}"}
        out = outputs_of(case.primitive.node(*inputs, **case.sample.params))
        graph = Graph(inputs, out if isinstance(out, tuple) else (out,))
        form = {"tuple": [{"tensor": i} for i in range(len(graph.outputs))]}
        try:
            content = node_rules.onnx_bytes(Model(graph, [], {"tuple": []}, form))
        except Unsupported as error:
            assert "has no form in ONNX" in str(error) or "have no form in ONNX" in str(error)
            continue
        if name in NOT_COMPARED:
            continue
        for mine, theirs in zip(run(content, *arrays), evaluate(graph, arrays)):
            assert np.shape(mine) == theirs.shape and np.asarray(mine).dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_indices(tmp_path):
    x = values(4, 5)
    i = np.array([[0, 3], [2, 1]], np.int32)
    f = lambda x, i: (x[i], ops.gather_elements(x, 1, i.astype(ms.int64)), ops.gather_nd(x, i))
    model = exported(f, ms.Tensor(x), ms.Tensor(i), path=tmp_path / "f")
    found = model(x, i)
    np.testing.assert_array_equal(found[0], x[i])
    np.testing.assert_array_equal(found[2], x[i[:, 0], i[:, 1]])


def test_a_transposed_convolution(tmp_path):
    net = nn.Conv2dTranspose(3, 4, 3, stride=2)
    x = values(2, 3, 5, 5)
    model = exported(net, ms.Tensor(x), path=tmp_path / "f")
    np.testing.assert_allclose(model(x)[0], net(ms.Tensor(x)).asnumpy(), rtol=1e-4, atol=1e-5)


def test_what_has_no_form_is_named(tmp_path):
    x = ms.Tensor(values(3, 3))
    for function, message in [
        (lambda x: ops.cholesky(x), "the operation cholesky has no form in ONNX"),
        (lambda x: ops.dropout(x, 0.5, training=True), "draws random numbers|changes generator"),
        (lambda x: (x, 3), "returns 3, and an ONNX model gives tensors only"),
    ]:
        with pytest.raises(Unsupported, match=message):
            ms.export(function, x, file_name=tmp_path / "f", file_format="ONNX")
    with pytest.raises(Unsupported, match="ONNX files are not encrypted"):
        ms.export(ops.exp, x, file_name=tmp_path / "f", file_format="ONNX", enc_key=b"0123456789abcdef")
    assert not list(tmp_path.iterdir())


def written(net, *inputs, path):
    """The operators of an exported network, and what runs it."""
    run_it = exported(net, *inputs, path=path)
    nodes = onnx.load(str(path.with_suffix(".onnx"))).graph.node
    return [n.op_type for n in nodes if n.op_type != "Identity"], run_it


X4, X3, X2 = values(2, 4, 6, 6), values(5, 2, 4), values(3, 4)
WHOLE = [
    (lambda: nn.SequentialCell(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)), X4, ["Conv", "BatchNormalization"]),
    (lambda: nn.Conv2d(4, 2, 3, has_bias=True, group=2), X4, ["Conv"]),
    (lambda: nn.BatchNorm1d(4), X2, ["BatchNormalization"]),
    (lambda: nn.LayerNorm((4,)), X3, ["LayerNormalization"]),
    (lambda: nn.LayerNorm((2, 4), 1, 1), X3, ["LayerNormalization"]),
    (lambda: nn.Dense(4, 3), X2, ["Gemm"]),
    (lambda: nn.Dense(4, 3, has_bias=False), X2, ["Transpose", "MatMul"]),
    (lambda: nn.Dense(4, 3), X3, ["Transpose", "MatMul", "Add"]),
    (nn.ReLU, X2, ["Relu"]),
    (nn.ReLU6, X2, ["Clip"]),
    (lambda: lambda x: ops.clamp(x, -0.5, 0.5), X2, ["Clip"]),
    (lambda: lambda x: ops.minimum(ops.maximum(x, ms.Tensor(-0.5)), ms.Tensor(0.25)), X2, ["Clip"]),
    (lambda: nn.LeakyReLU(0.1), X2, ["LeakyRelu"]),
    (nn.HSwish, X2, ["HardSwish"]),
    (lambda: nn.GELU(approximate=False), X2, ["Gelu"]),
    (lambda: nn.GELU(approximate=True), X2, ["Gelu"]),
    (lambda: nn.ELU(0.5), X2, ["Elu"]),
    (nn.SeLU, X2, ["Selu"]),
    (lambda: lambda x: ops.softplus(x), X2, ["Softplus"]),
    (lambda: lambda x: ops.mish(x), X2, ["Softplus", "Tanh", "Mul"]),
    (nn.HSigmoid, X2, ["HardSigmoid"]),
    (lambda: nn.InstanceNorm2d(4), X4, ["InstanceNormalization"]),
    (
        lambda: nn.GroupNorm(2, 4),
        X4,
        ["Reshape", "Reshape", "Reshape", "InstanceNormalization", "Reshape", "Mul", "Add"],
    ),
    (
        lambda: lambda x: x * ops.rsqrt((x * x).mean(-1, True) + 1e-5),
        X3,
        ["Pow", "ReduceMean", "Add", "Sqrt", "Div"],
    ),
    (lambda: nn.AvgPool2d(2, 2), X4, ["AveragePool"]),
    (lambda: nn.AdaptiveAvgPool2d(1), X4, ["GlobalAveragePool"]),
    (lambda: lambda x: x.mean((1, 2)), X3, ["ReduceMean"]),
]


@pytest.mark.parametrize("make, x, wanted", WHOLE, ids=[f"{i}-{w[-1]}" for i, (_, _, w) in enumerate(WHOLE)])
def test_what_is_one_operator_is_written_as_one(tmp_path, make, x, wanted):
    net = make()
    if isinstance(net, nn.Cell):
        net.set_train(False)
        for p in net.get_parameters():
            shape, low = p.shape, 0.5 if "variance" in p.name else -1.0
            p.set_data(ms.Tensor(np.random.default_rng(1).uniform(low, 1.5, shape).astype(np.float32)))
    operators, run_it = written(net, ms.Tensor(x), path=tmp_path / "net")
    assert operators == wanted
    np.testing.assert_allclose(run_it(x)[0], net(ms.Tensor(x)).asnumpy(), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("layer, operator", [(nn.LSTM, "LSTM"), (nn.GRU, "GRU")])
def test_recurrent_layers(tmp_path, layer, operator):
    net = layer(4, 3, num_layers=2)
    operators, run_it = written(net, ms.Tensor(X3), path=tmp_path / "net")
    assert operators.count(operator) == 2 and not {"MatMul", "Loop"} & set(operators)
    wanted, states = net(ms.Tensor(X3))
    found = run_it(X3)
    np.testing.assert_allclose(found[0], wanted.asnumpy(), atol=1e-6)
    states = states if isinstance(states, tuple) else (states,)
    for a, b in zip(found[1:], states):
        np.testing.assert_allclose(a, b.asnumpy(), atol=1e-6)


def test_what_looks_alike_is_left_as_it_is(tmp_path):
    """Values that the whole does not give are written, and limits that differ are no limits."""

    def both(x):
        scaled = x * 0.5
        return scaled, scaled * (ops.erf(x * 0.70710678) + 1)

    operators, run_it = written(both, ms.Tensor(X2), path=tmp_path / "both")
    assert operators == ["Mul", "Gelu"]
    for a, b in zip(run_it(X2), both(ms.Tensor(X2))):
        np.testing.assert_allclose(a, b.asnumpy(), atol=1e-6)
    for number, net in enumerate(
        (
            lambda x: ops.where(x <= 0.5, ms.Tensor(0.0), x),
            lambda x: (x * 0.5) * (ops.erf(x * 0.8) + 1),
            lambda x: x.sum(-1) / 3,
            lambda x: ops.where(x < 0, x * 0.1, x + 1),
            lambda x: ops.where(x <= 0, ops.expm1(ops.where(x <= 1, x, ms.Tensor(0.0))) * 2.0, x),
            lambda x: ops.where(x > 5, x, ops.maximum(x, 0) + ops.log1p(ops.exp(-ops.abs(x)))) * 1.0,
            lambda x: x * ops.rsqrt((x * x).sum(-1, keepdims=True) / 3 + 1e-5),
        )
    ):
        _, run_it = written(net, ms.Tensor(X2), path=tmp_path / f"net{number}")
        np.testing.assert_allclose(run_it(X2)[0], net(ms.Tensor(X2)).asnumpy(), atol=1e-6)


def test_names_of_parameters_that_look_like_ours(tmp_path):
    class Named(nn.Cell):
        def __init__(self):
            super().__init__()
            self.v = ms.Parameter(ms.Tensor(values(4)), name="v1")
            self.c = ms.Parameter(ms.Tensor(values(4, seed=1)), name="c0")

        def construct(self, x):
            return (x + self.v) * 3.0 + self.c * 5.0

    net = Named()
    np.testing.assert_allclose(
        exported(net, ms.Tensor(X2), path=tmp_path / "n")(X2)[0], net(ms.Tensor(X2)).asnumpy(), atol=1e-5
    )
