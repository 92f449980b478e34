"""ONNX models read as Cells."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.formats import onnx as ours
from mycel.formats.onnx import program
from mycel.formats.onnx.operation import RULES
from tests.formats import onnx_cases

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT, INT64 = 1, 7


def model(
    nodes: Any, inputs: Any, outputs: Any, initializers: Any = (), version: int = 18, functions: Any = ()
) -> bytes:
    """The bytes of a model; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [onnx.numpy_helper.from_array(a, n) for n, a in initializers],
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", version), helper.make_opsetid("own", 1)],
        functions=list(functions),
    )
    content: bytes = made.SerializeToString()
    return content


# Cases that end in random numbers of NumPy's, and one whose last bit of float16 is another.
UNLIKE = ("test_bernoulli", "test_training_dropout", "test_attention_4d_causal_fp16")


def test_cases_of_the_package() -> None:
    """One of each 17 cases; `tests/formats/onnx_cases.py` runs all."""
    chosen = [c for c in onnx_cases.cases() if not c.name.startswith(UNLIKE)][3::17]
    failed = []
    for case in chosen:
        try:
            onnx_cases.run(case)
        except ms.errors.Unsupported as error:
            if "there is no rule" not in str(error):
                failed.append(f"{case.name}: {error}")
        except Exception as error:
            failed.append(f"{case.name}: {error!r:.300}")
    assert not failed, "\n".join(failed)


class Small(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2, 2)
        self.dense = nn.Dense(4 * 16, 5)

    def construct(self, x: Any) -> Any:
        x = self.pool(ops.relu6(self.norm(self.conv(x))))
        return ops.softmax(self.dense(ops.flatten(x)))


def test_a_network_comes_back(tmp_path: Path) -> None:
    net = Small()
    net.set_train(False)
    x = ms.Tensor(np.random.default_rng(0).normal(size=(3, 3, 8, 8)).astype(np.float32))
    wanted = net(x).asnumpy()
    path = tmp_path / "net.onnx"
    open_batch = ms.Tensor(shape=[None, 3, 8, 8], dtype=ms.float32)
    ms.export(net, open_batch, file_name=path, file_format="ONNX")
    read = ms.load(path)
    np.testing.assert_allclose(read(x).asnumpy(), wanted, atol=1e-6)
    compiled = ms.jit(read.construct, fullgraph=True)
    np.testing.assert_allclose(compiled(x).asnumpy(), wanted, atol=1e-6)
    names = {p.name for p in net.get_parameters()}
    assert {p.name for p in read.get_parameters()} <= names and len(read.trainable_params()) >= 6
    # The gradients are those of the network.
    weight = next(p for p in read.get_parameters() if p.name == "conv.weight")
    found = ms.grad(lambda x: (read(x) ** 2).sum(), None, [weight])(x)[0]
    own = ms.grad(lambda x: (net(x) ** 2).sum(), None, [net.conv.weight])(x)[0]
    np.testing.assert_allclose(found.asnumpy(), own.asnumpy(), atol=1e-5)
    again = tmp_path / "again.onnx"
    ms.export(read, open_batch, file_name=again, file_format="ONNX")
    np.testing.assert_allclose(ms.load(again)(x).asnumpy(), wanted, atol=1e-6)


def test_control_flow_compiles() -> None:
    """A loop and a branch whose conditions depend on data, in one graph."""
    text = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["v", "two"], ["w"]),
            helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0),
            helper.make_node("Less", ["s", "limit"], ["more"]),
        ],
        "body",
        [text("i", INT64, []), text("c", 9, []), text("v", FLOAT, [2])],
        [text("more", 9, []), text("w", FLOAT, [2])],
    )
    then = helper.make_graph([helper.make_node("Neg", ["r"], ["a"])], "then", [], [text("a", FLOAT, [2])])
    other = helper.make_graph([helper.make_node("Identity", ["r"], ["b"])], "other", [], [text("b", FLOAT, [2])])
    content = model(
        [
            helper.make_node("Loop", ["", "yes", "x"], ["r"], body=body),
            helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
            helper.make_node("Greater", ["t", "limit"], ["p"]),
            helper.make_node("If", ["p"], ["y"], then_branch=then, else_branch=other),
        ],
        [("x", FLOAT, [2])],
        [("y", FLOAT, [2])],
        [("two", np.float32(2)), ("limit", np.float32(10)), ("yes", np.array(True))],
    )
    net = ours.loads(content)
    compiled = ms.jit(net.construct, fullgraph=True)
    for values, wanted in (([1.0, 2.0], [4.0, 8.0]), ([6.0, 7.0], [-12.0, -14.0])):
        for call in (net, compiled):
            assert call(ms.Tensor(values)).tolist() == wanted


def test_functions_take_attributes() -> None:
    scaled = helper.make_function(
        "own",
        "Leak",
        ["x"],
        ["y"],
        [
            onnx.NodeProto(
                op_type="LeakyRelu",
                input=["x"],
                output=["y"],
                attribute=[onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=1)],
            )
        ],
        [helper.make_opsetid("", 18)],
        attributes=["slope"],
    )
    nodes = [helper.make_node("Leak", ["x"], ["y"], domain="own", slope=0.5)]
    net = ours.loads(model(nodes, [("x", FLOAT, [2])], [("y", FLOAT, [2])], functions=[scaled]))
    assert net(ms.Tensor([-2.0, 2.0])).tolist() == [-1.0, 2.0]


def test_shapes_stay_open() -> None:
    """A reshape to sizes that are computed of an open one is one graph for all sizes."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Mul", ["n", "two"], ["m"]),
        helper.make_node("Concat", ["m", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    content = model(
        nodes,
        [("x", FLOAT, ["n", 4])],
        [("y", FLOAT, None)],
        [("zero", np.array([0])), ("two", np.array([2])), ("rest", np.array([-1]))],
    )
    net = ours.loads(content)
    compiled = ms.jit(net.construct, fullgraph=True, dynamic=1)
    for n in (3, 5, 8):
        assert compiled(ms.Tensor(np.ones((n, 4), np.float32))).shape == (2 * n, 2)


@pytest.mark.parametrize(
    "nodes, what",
    [
        ([("Nothing", ["x"], ["y"], {"name": "here"})], "Nothing .version 18., node .here.: there is no rule"),
        ([("Relu", ["z"], ["y"], {})], "there is no value 'z' before it"),
        ([("Relu", ["x"], ["x"], {})], "the value 'x' is made twice"),
        ([("Relu", ["x"], ["q"], {})], "no value for its output 'y'"),
    ],
)
def test_what_is_refused_when_read(nodes: Any, what: str) -> None:
    made = [helper.make_node(o, i, r, **k) for o, i, r, k in nodes]
    with pytest.raises((ours.OnnxError, ms.errors.Unsupported), match=what):
        ours.loads(model(made, [("x", FLOAT, [2])], [("y", FLOAT, [2])]))


def test_operators_without_their_graphs_are_refused_when_read() -> None:
    for operator, name in (("If", "then_branch"), ("Loop", "body")):
        made = [helper.make_node(operator, ["x"], ["y"])]
        with pytest.raises(ours.OnnxError, match=f"it has no graph '{name}'"):
            ours.loads(model(made, [("x", 9, [])], [("y", FLOAT, [2])]))


def test_repeated_numbers_are_bounded() -> None:
    nodes = [helper.make_node("Expand", ["one", "shape"], ["y"])]
    constants = [("one", np.array([1])), ("shape", np.array([1 << 15, 1 << 15]))]
    with pytest.raises(ValueError, match=r"the shape \(32768, 32768\) is too large"):
        ours.loads(model(nodes, [], [("y", INT64, None)], constants))()


def test_versions_that_are_not_known_are_refused() -> None:
    for version in (6, 99):
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        with pytest.raises(ms.errors.Unsupported, match="versions 7 to 28 are supported"):
            ours.loads(model(nodes, [("x", FLOAT, [2])], [("y", FLOAT, [2])], version=version))


def test_inputs_are_checked() -> None:
    net = ours.loads(model([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])]))
    with pytest.raises(TypeError, match="takes 1 inputs"):
        net()
    with pytest.raises(TypeError, match="'x' must have elements of float32, not"):
        net(ms.Tensor([1, 2]))
    with pytest.raises(ValueError, match=r"'x' must be of shape \[2\], not \[3\]"):
        net(ms.Tensor([1.0, 2.0, 3.0]))


def test_external_data(tmp_path: Path) -> None:
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    (tmp_path / "data").write_bytes(b"\0" * 8 + weight.tobytes())

    def with_location(name: str, **more: str) -> Path:
        made = onnx.ModelProto.FromString(
            model(
                [helper.make_node("MatMul", ["x", "w"], ["y"])],
                [("x", FLOAT, [1, 3])],
                [("y", FLOAT, [1, 2])],
                [("w", weight)],
            )
        )
        t = made.graph.initializer[0]
        t.ClearField("raw_data")
        t.data_location = 1
        for key, value in {"location": name, "offset": "8", **more}.items():
            t.external_data.add(key=key, value=value)
        path = tmp_path / "m.onnx"
        path.write_bytes(made.SerializeToString())
        return path

    x = ms.Tensor(np.ones((1, 3), np.float32))
    assert ms.load(with_location("data"))(x).tolist() == [[6.0, 9.0]]
    for name, more in (("../data", {}), ("/etc/hostname", {}), ("none", {}), ("data", {"offset": "9"})):
        with pytest.raises(ours.OnnxError, match="its elements|elements"):
            ms.load(with_location(name, **more))


def _tensor(name: str, size: int, **more: Any) -> Any:
    return onnx.TensorProto(name=name, data_type=FLOAT, dims=[size], **more)


def _held(count: int, size: int, kind: str, path: Path) -> int:
    """Load a model with so many arrays of a kind; return the bytes that they become."""
    made = onnx.ModelProto.FromString(
        model([helper.make_node("Identity", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    )
    for k in range(count):
        if kind == "sparse":
            values, indices = (
                _tensor("", 1, float_data=[1.0]),
                onnx.TensorProto(data_type=INT64, dims=[1], int64_data=[3]),
            )
            values.name = f"s{k}"
            made.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=[size]))
        elif kind == "constants":
            value = onnx.SparseTensorProto(values=_tensor("v", 1, float_data=[1.0]), dims=[size])
            value.indices.CopyFrom(onnx.TensorProto(data_type=INT64, dims=[1], int64_data=[0]))
            made.graph.node.append(helper.make_node("Constant", [], [f"c{k}"], sparse_value=value))
        else:
            beside = _tensor(f"w{k}", size, data_location=1)
            beside.external_data.add(key="location", value="data")
            made.graph.initializer.append(beside)
    path.write_bytes(made.SerializeToString())
    net = ms.load(path)
    return sum(p.nbytes for p in net.get_parameters())


def test_arrays_are_bounded_for_the_file_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    (tmp_path / "data").write_bytes(bytes(4 << 20))
    for kind in ("sparse", "constants"):
        assert _held(2, 1 << 20, kind, path) in (0, 8 << 20)
        for count, size in ((1, 1 << 30), (5, 1 << 20), (40, 1 << 19), (1, 1 << 62)):
            with pytest.raises(ours.OnnxError, match="with their zeros, the sparse arrays of a file .* MYCEL_INFLATE"):
                _held(count, size, kind, path)
    monkeypatch.setenv("MYCEL_INFLATE", "0.03GB")
    assert _held(5, 1 << 20, "sparse", path) == 20 << 20
    monkeypatch.delenv("MYCEL_INFLATE")
    # All of a file beside it, and shared weights; not the same bytes again and again.
    assert _held(1, 1 << 20, "beside", path) == 4 << 20
    assert _held(3, 1 << 19, "beside", path) == 6 << 20
    for count, size in ((2, 1 << 20), (60, 1 << 20), (4, 1 << 19)):
        with pytest.raises(ours.OnnxError, match="arrays name .* bytes of 1 files of 4194304 bytes"):
            _held(count, size, "beside", path)


def test_functions_that_call_each_other_do_not_unfold_without_end() -> None:
    functions = [
        helper.make_function(
            "own",
            f"f{k}",
            ["a"],
            ["b"],
            [helper.make_node(f"f{k + 1}", ["a"], ["m"], domain="own")]
            + [helper.make_node(f"f{k + 1}", ["m"], ["b"], domain="own")],
            [helper.make_opsetid("own", 1)],
        )
        for k in range(6)
    ]
    last = helper.make_function(
        "own", "f6", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    content = model(
        [helper.make_node("f0", ["x"], ["y"], domain="own")],
        [("x", FLOAT, [1])],
        [("y", FLOAT, [1])],
        functions=[*functions, last],
    )
    assert ours.loads(content)(ms.Tensor([2.0])).tolist() == [2.0]
    before, program._MOST_STEPS = program._MOST_STEPS, 100
    try:
        with pytest.raises(ours.OnnxError, match="more than 100 nodes"):
            ours.loads(content)
    finally:
        program._MOST_STEPS = before


@pytest.mark.parametrize("pattern", ["(((", "(a)\\1", "(?=a)a"])
def test_patterns_that_are_none_name_the_node(pattern: str) -> None:
    content = model(
        [helper.make_node("RegexFullMatch", ["s"], ["y"], name="match", pattern=pattern)],
        [("x", FLOAT, [1])],
        [("y", 9, [1])],
        [("s", np.array(["a"], object))],
        20,
    )
    with pytest.raises(ValueError, match="node 'match'.*is none of RE2's"):
        ours.loads(content)(ms.Tensor([1.0]))


def test_damaged_files_raise_clear_errors(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    ms.export(nn.Dense(3, 2), ms.Tensor(np.ones((1, 3), np.float32)), file_name=path, file_format="ONNX")
    content = path.read_bytes()
    draw = random.Random(3)
    allowed = (ValueError, TypeError, ms.errors.Unsupported)
    tried = [content[:n] for n in range(0, len(content), 3)]
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        tried.append(bytes(changed))
    for damaged in tried:
        try:
            ours.loads(damaged)
        except allowed:
            pass
    deep = b""
    for _ in range(300):  # graphs in attributes of nodes in graphs
        node = b"\x2a" + _length(b"\x32" + _length(deep))
        deep = b"\x0a" + _length(node)
    with pytest.raises(ours.OnnxError, match="nested more than"):
        ours.loads(b"\x3a" + _length(deep))
    with pytest.raises(ours.OnnxError, match="there is no file"):
        ms.load(tmp_path / "none.onnx")


def _length(content: bytes) -> bytes:
    size, out = len(content), bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size]) + content


def test_sizes_that_would_not_fit_are_refused() -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["y"])]
    net = ours.loads(model(nodes, [], [("y", FLOAT, None)], [("s", np.array([1 << 20, 1 << 20]))]))
    with pytest.raises(ValueError, match="negative or too large"):
        net()


def test_every_rule_is_of_an_operator_that_there_is() -> None:
    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    # Those of ONNX Runtime's own domain are run by tests/formats/test_onnx_quantised.py.
    assert not {r for r in RULES if r[0] != "com.microsoft"} - known
