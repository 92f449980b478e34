"""Exported networks: what comes back computes the same in a new process, and what is damaged or has
no form in a file is told.
"""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.prims.base import REGISTRY, outputs_of
from mycel._src.foundation.errors import CompileError, Unsupported
from mycel.formats.exporting import model_of
from mycel.formats.graph_files import graph_file
from mycel.formats.graph_files.graph_file import GraphFileError, Model, write_model
from mycel.formats.graph_files.graph_reader import read_model
from mycel.formats.graph_files.validation import NEVER_IN_FILES
from tests.prims.cases import cases, nodes_for

CHECKED = dict.fromkeys(("train.export", "train.load", "load_mindir", "save_mindir"), "what was exported")
KEY = b"0123456789abcdef"


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2, 2)
        self.dense = nn.Dense(64, 5)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return ops.softmax(self.dense(x.reshape((x.shape[0], -1))))


class Loops(nn.Cell):
    """Control flow, several results in containers, and numbers."""

    def __init__(self):
        super().__init__()
        self.scale = ms.Parameter(ms.Tensor([2.0, 3.0]), name="scale")

    def construct(self, x, options):
        total = x
        while total.sum() < options["limit"].sum():
            total = total * self.scale
        if total[0] > 10:
            total = total + 1
        return {"total": total, "parts": (x.max(), [x.shape[0], "text", 0.5, None])}


def exported(net, *inputs, path, **options):
    ms.export(net, *inputs, file_name=str(path), file_format="MINDIR", **options)
    return ms.load(str(path))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_network_comes_back(tmp_path, dynamic):
    net = Net().set_train(False)
    x = values(5, 3, 8, 8)
    example = ms.Tensor(shape=[None, 3, 8, 8], dtype=ms.float32) if dynamic else ms.Tensor(x)
    loaded = nn.GraphCell(exported(net, example, path=tmp_path / "net.mindir"))
    described = [sorted((p.name, p.shape, p.requires_grad) for p in cell.get_parameters()) for cell in (loaded, net)]
    assert described[0] == described[1]
    for n in (5, 1, 2) if dynamic else (5,):
        np.testing.assert_allclose(
            loaded(ms.Tensor(x[:n])).asnumpy(), ms.jit(net)(ms.Tensor(x[:n])).asnumpy(), rtol=1e-6
        )
        np.testing.assert_allclose(
            ms.jit(loaded)(ms.Tensor(x[:n])).asnumpy(), net(ms.Tensor(x[:n])).asnumpy(), rtol=1e-5
        )
    with pytest.raises(ValueError, match="the loaded network 'Net': it takes float32"):
        loaded(ms.Tensor(x[:, :2]))


def test_it_runs_in_a_new_process_without_its_source(tmp_path):
    net = Net().set_train(False)
    x = values(2, 3, 8, 8)
    ms.export(net, ms.Tensor(x), file_name=str(tmp_path / "net"), file_format="MINDIR")
    np.save(tmp_path / "x.npy", x)
    code = (
        "import mycel as ms, numpy as np; np.save('y.npy', "
        "ms.load('net.mindir')(ms.Tensor(np.load('x.npy'))).asnumpy())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), net(ms.Tensor(x)).asnumpy(), rtol=1e-5)


def test_gradients_pass_through(tmp_path):
    net = Net().set_train(False)
    x = ms.Tensor(values(2, 3, 8, 8))
    loaded = exported(net, ms.Tensor(shape=[None, 3, 8, 8], dtype=ms.float32), path=tmp_path / "net.mindir")

    def gradients(cell):
        found = ms.grad(lambda x: (cell(x) ** 2).sum(), 0, cell.trainable_params())(x)
        return {"x": found[0], **{p.name: g for p, g in zip(cell.trainable_params(), found[1])}}

    mine, theirs = gradients(loaded), gradients(net)
    assert mine.keys() == theirs.keys() and len(mine) == 7
    for name, gradient in mine.items():
        np.testing.assert_allclose(gradient.asnumpy(), theirs[name].asnumpy(), rtol=1e-4, atol=1e-6)


def test_moving_averages_go_on_and_checkpoints_load(tmp_path):
    net = Net().set_train(True)
    x = ms.Tensor(values(4, 3, 8, 8))
    loaded = exported(net, x, path=tmp_path / "net.mindir")
    before = {p.name: p.asnumpy().copy() for p in loaded.get_parameters()}
    for _ in range(2):
        np.testing.assert_allclose(loaded(x).asnumpy(), net(x).asnumpy(), rtol=1e-4)
    mine = {p.name: p.asnumpy() for p in loaded.get_parameters()}
    for p in net.get_parameters():
        np.testing.assert_allclose(mine[p.name], p.asnumpy(), rtol=1e-5, atol=1e-8)
    assert not np.array_equal(mine["norm.moving_mean"], before["norm.moving_mean"])
    other = Net()
    ms.save_checkpoint(other, tmp_path / "other.ckpt")
    assert ms.load_param_into_net(loaded, ms.load_checkpoint(tmp_path / "other.ckpt")) == ([], [])
    np.testing.assert_allclose(loaded(x).asnumpy(), other.set_train(True)(x).asnumpy(), rtol=1e-4)


def test_control_flow_containers_and_numbers(tmp_path):
    net = Loops()
    x, limit = ms.Tensor([1.0, 0.5]), {"limit": ms.Tensor([40.0])}
    loaded = exported(net, x, limit, path=tmp_path / "loops.mindir")
    for first in (1.0, 7.0, 50.0):
        x = ms.Tensor([first, 0.5])
        mine, theirs = loaded(x, limit), net(x, limit)
        np.testing.assert_allclose(mine["total"].asnumpy(), theirs["total"].asnumpy())
        assert mine["parts"][0].asnumpy() == first and mine["parts"][1] == [2, "text", 0.5, None]
    with pytest.raises(TypeError, match=r"takes the arguments\[1\] as they were .*'limit': a tensor"):
        loaded(x, {"other": x})
    with pytest.raises(TypeError, match="takes the arguments as they were"):
        loaded(x)


def test_arguments_that_come_back_and_numbers_of_sizes(tmp_path):
    def f(x, flag):
        return x, (x + 1 if flag else x - 1), x.shape[0] * 2

    loaded = exported(f, ms.Tensor(shape=[None], dtype=ms.float32), True, path=tmp_path / "f.mindir")
    x = ms.Tensor(values(6))
    same, more, number = loaded(x, True)
    assert same is x and number == 12
    np.testing.assert_array_equal(more.asnumpy(), x.asnumpy() + 1)
    with pytest.raises(TypeError, match=r"arguments\[1\] as they were when it was exported, True, not False"):
        loaded(x, False)


def test_random_numbers_come_from_the_process(tmp_path):
    net = nn.Dropout(p=0.5).set_train(True)
    x = ms.Tensor(np.ones((64, 8), np.float32))
    loaded = exported(net, ms.Tensor(shape=[None, 8], dtype=ms.float32), path=tmp_path / "drop.mindir")
    ms.set_seed(3)
    wanted = [net(x).asnumpy() for _ in range(2)]
    ms.set_seed(3)
    for one in wanted:
        np.testing.assert_array_equal(loaded(x).asnumpy(), one)


def test_conditions_on_sizes_are_kept(tmp_path, caplog):
    def f(x):
        return x * 2 if x.shape[0] > 5 else x * 3

    loaded = exported(f, ms.Tensor(shape=[None], dtype=ms.float32), path=tmp_path / "f.mindir")
    assert "decides by sizes that were left open" in caplog.text
    np.testing.assert_array_equal(loaded(ms.Tensor(values(9))).asnumpy(), values(9) * 2)
    with pytest.raises(ValueError, match="it was exported for sizes with"):
        loaded(ms.Tensor(values(3)))
    half = ms.Symbol(divisor=2)
    loaded = exported(
        lambda x: x.reshape((-1, 2)), ms.Tensor(shape=[half], dtype=ms.float32), path=tmp_path / "g.mindir"
    )
    assert loaded(ms.Tensor(values(8))).shape == (4, 2)
    with pytest.raises(ValueError, match="reshape: float32.7. has 7 elements"):
        loaded(ms.Tensor(values(7)))


def test_rules_of_the_program_are_kept_as_graphs(tmp_path):
    class Doubled(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (dout * 100,)

    loaded = exported(Doubled(), ms.Tensor([1.0]), path=tmp_path / "rule.mindir")
    x = ms.Tensor([3.0])
    assert loaded(x).tolist() == [9.0]
    assert ms.grad(lambda x: loaded(x).sum())(x).tolist() == [100.0]


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC", "SM4-CBC"])
def test_encrypted_files(tmp_path, mode):
    pytest.importorskip("cryptography")
    path = tmp_path / "net.mindir"
    ms.export(ops.exp, ms.Tensor([1.0]), file_name=path, file_format="MINDIR", enc_key=KEY, enc_mode=mode)
    assert ms.load(path, dec_key=KEY, dec_mode=mode)(ms.Tensor([0.0])).tolist() == [1.0]
    with pytest.raises(GraphFileError, match="it is encrypted; give its key as dec_key"):
        ms.load(path)
    with pytest.raises(GraphFileError, match="dec_key is not the key|not a graph that Mycel wrote"):
        ms.load(path, dec_key=KEY[::-1], dec_mode=mode)


def test_models_are_changed_and_saved(tmp_path):
    net = nn.Dense(2, 3)
    ms.export(net, ms.Tensor(values(1, 2)), file_name=tmp_path / "a", file_format="MINDIR", user_info={"by": "us"})
    model = ms.load_mindir(tmp_path / "a.mindir")
    assert model.user_info == {"by": "us"} and [s.name for s in model.states] == ["weight", "bias"]
    model.states[1].value = model.states[1].value + 1
    model.user_info["by"] = "them"
    ms.save_mindir(model, tmp_path / "b")
    x = ms.Tensor(values(1, 2))
    np.testing.assert_allclose(ms.load(tmp_path / "b.mindir")(x).asnumpy(), net(x).asnumpy() + 1, rtol=1e-6)
    assert ms.load_mindir(tmp_path / "b.mindir").user_info == {"by": "them"}
    model.states[1].value = np.zeros(7, np.float32)
    with pytest.raises(ValueError, match=r"'bias' is float32\[7\], and the graph takes float32\[3\]"):
        ms.save_mindir(model, tmp_path / "b")
    with pytest.raises(TypeError, match="what load_mindir gives"):
        ms.save_mindir(net, tmp_path / "b")


def test_every_cut_and_changed_byte_is_told(tmp_path):
    path = tmp_path / "net.mycel"
    ms.export(nn.Dense(2, 3), ms.Tensor(values(1, 2)), file_name=path, file_format="MYCEL")
    whole = path.read_bytes()
    for length in [*range(0, 60, 7), *range(60, len(whole), 301), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(
            GraphFileError,
            match="net.mycel: (not a graph|damaged|it has version|it is no MindIR|it is encrypted|it names)",
        ):
            ms.load(path)
    for place in [*range(0, 22), *range(22, len(whole), 97)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(
            GraphFileError,
            match="net.mycel: (not a graph|damaged|it has version|it is no MindIR|it is encrypted|it names)",
        ):
            ms.load(path)


def forged(model, change):
    """A file with a right digest whose header was changed."""
    file = io.BytesIO()
    write_model(file, model)
    content = file.getvalue()
    length = int.from_bytes(content[12:20], "little")
    header = graph_file.json.loads(content[20 : 20 + length])
    change(header)
    text = graph_file.json.dumps(header).encode()
    text += b" " * (-(20 + len(text)) % 64)
    body = content[:12] + len(text).to_bytes(8, "little") + text + content[20 + length : -32]
    return io.BytesIO(body + graph_file.hashlib.sha256(body).digest())


def test_a_header_that_makes_no_graph_is_told():
    model = model_of(nn.Dense(2, 3), (ms.Tensor(values(1, 2)),))
    assert isinstance(read_model(forged(model, lambda h: None), "f"), Model)
    changes = [
        (lambda h: h["graphs"][0]["nodes"][0].__setitem__(0, "no_such"), "there is no operation 'no_such'"),
        (lambda h: h["graphs"][0]["nodes"][0].__setitem__(1, [99]), "99 is not one of the"),
        (lambda h: h["graphs"][0]["nodes"][0].__setitem__(1, [-1]), "-1 is not one of the"),
        (lambda h: h["graphs"][0].__setitem__("outputs", [1 << 70]), "is not one of the"),
        (lambda h: h["tensors"][0].__setitem__("shape", [4, 4]), "and the graph takes"),
        (lambda h: h["tensors"][0].__setitem__("start", 1 << 40), "lies beyond the end"),
        (lambda h: h["tensors"][0].__setitem__("shape", [-1]), "is no size"),
        (lambda h: h["tensors"][0].__setitem__("type", "float99"), "what it holds makes no graph"),
        (lambda h: h.pop("graphs"), "its header has no graphs"),
        (lambda h: h.__setitem__("writes", [[0, 0]]), "does not fit tensor 'weight'"),
        (
            lambda h: h["graphs"][0]["inputs"][0].__setitem__(1, {"type": ["float32", 5, 5]}),
            "what it holds makes no graph",
        ),
        (lambda h: h["graphs"][0]["nodes"][0].__setitem__(2, {"permutation": {"code": "x"}}), "unknown kind 'code'"),
    ]
    for change, message in changes:
        with pytest.raises(GraphFileError, match=message):
            read_model(forged(model, change), "f")


# An operator of a user's is a program, which has no form in a file.
@pytest.mark.parametrize("name", sorted(set(REGISTRY) - {"loops"} - NEVER_IN_FILES))
def test_every_primitive_has_a_form(name):
    for case in cases(REGISTRY[name]):
        inputs = nodes_for(case.draw())
        out = outputs_of(case.primitive.node(*inputs, **case.sample.params))
        graph = Graph(inputs, out if isinstance(out, tuple) else (out,))
        file = io.BytesIO()
        write_model(file, Model(graph, [], [], None))
        found = read_model(file, "f").graph
        assert structural_hash(found) == structural_hash(graph)
        assert found.output_types == graph.output_types


def test_what_has_no_form_is_refused(tmp_path):
    counted = []

    def prints(x):
        print(x)
        return x + 1

    def appends(x):
        counted.append(1)
        return x + 1

    def needs_value(x):
        return x + float(x.asnumpy().sum())

    def open_size(x):
        return ops.nonzero(x)

    def writes(x):
        x[0] = 1
        return x + 1

    for function, error, message in [
        (appends, Unsupported, "a call of the network changes"),
        (needs_value, CompileError, "export: the network is not one graph"),
        (open_size, Unsupported, "data decide a size"),
        (writes, Unsupported, "writes into its arguments"),
        (prints, (Unsupported, CompileError), "print"),
    ]:
        with pytest.raises(error, match=message):
            ms.export(function, ms.Tensor(values(3)), file_name=tmp_path / "x", file_format="MINDIR")
    x = ms.Tensor([1.0])
    with pytest.raises(Unsupported, match="'AIR' files are for Ascend"):
        ms.export(ops.exp, x, file_name=tmp_path / "x", file_format="AIR")
    with pytest.raises(ValueError, match="file_format must be 'MINDIR', 'MYCEL' or 'ONNX', not 'PT'"):
        ms.export(ops.exp, x, file_name=tmp_path / "x", file_format="PT")
    with pytest.raises(TypeError, match="unknown argument 'quantise'"):
        ms.export(ops.exp, x, file_name=tmp_path / "x", file_format="MINDIR", quantise=True)
    with pytest.raises(TypeError, match="net must be a Cell or a function, not int"):
        ms.export(3, x, file_name=tmp_path / "x", file_format="MINDIR")
    with pytest.raises(Unsupported, match="custom_func is not supported"):
        ms.export(ops.exp, x, file_name=tmp_path / "x", file_format="MINDIR", custom_func=print)
    assert not list(tmp_path.iterdir())
    with pytest.raises(GraphFileError, match="there is no file"):
        ms.load(tmp_path / "x.mindir")
    with pytest.raises(ValueError, match="does not end in '.mindir'"):
        ms.load(tmp_path / "x.ckpt")
