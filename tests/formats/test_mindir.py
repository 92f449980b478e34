"""MindSpore's own MindIR files: what the real package exported gives here what it gives there."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.protobuf_wire import field
from mycel._src.foundation.pytree import flatten
from mycel.formats.mindir import MindIRGraph
from mycel.formats.mindir.messages import DEEPEST, MindIRError, model_of

CHECKED = {"load": "MindSpore"}
SAMPLES = Path(__file__).parent.parent / "data" / "mindir"
NAMES = sorted(p.name.split(".")[0] for p in SAMPLES.glob("*.gz"))
REFUSED = ["written_base", "written_view"]
OPERATORS = sorted({p.name.split(".")[0] for p in (SAMPLES / "operators").glob("*.gz")} - set(REFUSED))


def content_of(name):
    return gzip.decompress((SAMPLES / f"{name}.mindir.gz").read_bytes())


def loaded(name, folder):
    path = folder / f"{name}.mindir"
    path.write_bytes(content_of(name))
    return nn.GraphCell(ms.load(str(path)))


def values_of(name):
    """The inputs, and the results of the first and the second call."""
    kept = np.load(SAMPLES / f"{name}.npz")
    count = len(kept.files)
    inputs = [ms.Tensor(kept[f"x{i}"]) for i in range(count) if f"x{i}" in kept]
    return inputs, [[kept[f"y{r}_{i}"] for i in range(count) if f"y{r}_{i}" in kept] for r in (0, 1)]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_mindspore_gives_what_it_gives_there(name, tmp_path):
    net = loaded(name, tmp_path)
    inputs, rounds = values_of(name)
    for wanted in rounds:
        found = flatten(net(*inputs))[0]
        assert len(found) == len(wanted)
        for got, want in zip(found, wanted):
            assert got.shape == want.shape and got.asnumpy().dtype == want.dtype
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_is_written_for_mindspore_again(name, tmp_path):
    net = loaded(name, tmp_path)
    inputs, (wanted, _) = values_of(name)
    path = str(tmp_path / "again")
    ms.export(net, *inputs, file_name=path, file_format="MINDIR", for_mindspore=True)
    for got, want in zip(flatten(ms.load(f"{path}.mindir")(*inputs))[0], wanted):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-5)


def test_ten_networks_are_there():
    assert len(NAMES) >= 10


def test_it_has_parameters_gradients_and_can_be_exported_again(tmp_path):
    net = loaded("lenet", tmp_path)
    (x,), ((y,), _) = values_of("lenet")
    names = [p.name for p in net.get_parameters()]
    assert names[:2] == ["conv1.weight", "conv2.weight"] and "fc2.bias" in names
    gradients = ms.grad(lambda x: (net(x) ** 2).sum(), None, net.trainable_params())(x)
    assert [g.shape for g in gradients] == [p.shape for p in net.trainable_params()]
    step, weight = 1e-2, net.trainable_params()[-1]
    before = float((net(x) ** 2).sum())
    way = gradients[-1] / ops.sqrt((gradients[-1] ** 2).sum())
    weight.set_data(weight - step * way)
    after = float((net(x) ** 2).sum())
    assert abs((before - after) / step - float(ops.sqrt((gradients[-1] ** 2).sum()))) < 0.1
    weight.set_data(weight + step * way)
    ms.export(net, x, file_name=str(tmp_path / "again"), file_format="MINDIR")
    np.testing.assert_allclose(ms.load(tmp_path / "again.mindir")(x).asnumpy(), y, rtol=1e-5, atol=1e-5)


def test_a_loop_goes_on_as_its_inputs_say(tmp_path):
    net = loaded("loop", tmp_path)
    scale = np.array([0.5, 1.5, -0.5], np.float32)
    for count in (0, 1, 4, 12):
        x = np.array([1, 2, -0.5], np.float32)
        total = x
        for _ in range(count):
            total = total * scale if total.sum() > 10 else total * 2 + x
        got, i = net(ms.Tensor(x), ms.Tensor(count, ms.int32))
        np.testing.assert_allclose(got.asnumpy(), total, rtol=1e-6)
        assert int(i) == count
    gradient = ms.grad(lambda x: net(x, ms.Tensor(3, ms.int32))[0].sum())(ms.Tensor([1.0, 0.5, 0.25]))
    assert gradient.asnumpy().tolist() == [3.5, 10.5, -3.5]


@pytest.mark.parametrize("name", ["break", "continue", "nested", "early", "ret"])
def test_loops_and_branches_end_where_they_end_there(name, tmp_path):
    path = tmp_path / "a.mindir"
    path.write_bytes(gzip.decompress((SAMPLES / "control" / f"{name}.mindir.gz").read_bytes()))
    net, kept = ms.load(path), np.load(SAMPLES / "control" / f"{name}.npz")
    for n in (0, 1, 3, 5, 9):
        found = flatten(net(ms.Tensor([1, 0.5, 0.25], ms.float32), ms.Tensor(n, ms.int32)))[0]
        for i, got in enumerate(found):
            np.testing.assert_allclose(got.asnumpy(), kept[f"y{n}_{i}"], rtol=1e-6)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_what_it_gives_there(name, tmp_path):
    path = tmp_path / "a.mindir"
    path.write_bytes(gzip.decompress((SAMPLES / "operators" / f"{name}.mindir.gz").read_bytes()))
    kept = np.load(SAMPLES / "operators" / f"{name}.npz")
    inputs = [ms.Tensor(kept[k]) for k in sorted(kept) if k[0] == "x"]
    found = flatten(nn.GraphCell(ms.load(path))(*inputs))[0]
    assert len(found) == kept["count"]
    for i, got in enumerate(found):
        if f"y{i}" not in kept:  # MindSpore leaves it without a value
            continue
        want = kept[f"y{i}"]
        assert got.shape == want.shape and got.asnumpy().dtype == want.dtype
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_nothing_has_the_sum_and_product_of_nothing(tmp_path):
    path = tmp_path / "a.mindir"
    path.write_bytes(gzip.decompress((SAMPLES / "operators" / "empty.mindir.gz").read_bytes()))
    x, y = np.zeros((0, 5), bool), np.zeros((0, 3), np.float32)
    found = [v.asnumpy() for v in ms.load(path)(ms.Tensor(x), ms.Tensor(y))]
    wanted = [x.any(0), x.any(0), x.all(0), y.sum(), y.prod(0), np.full(3, np.nan)]
    for got, want in zip(found, wanted):
        np.testing.assert_array_equal(got, want, strict=False)


@pytest.mark.parametrize("name", REFUSED)
def test_writes_into_views_and_what_they_show_are_refused(name, tmp_path):
    path = tmp_path / "a.mindir"
    path.write_bytes(gzip.decompress((SAMPLES / "operators" / f"{name}.mindir.gz").read_bytes()))
    with pytest.raises(Unsupported, match="InplaceAddExt writes into a tensor that shares its elements with another"):
        ms.load(path)


def test_the_items_of_a_tensor_are_no_results_of_an_operator(tmp_path):
    number = field(5, field(1, "value") + field(16, 7) + field(3, 0))
    nodes = field(1, field(2, "i") + field(4, "Constant") + number)
    nodes += field(1, field(1, "x") + field(1, "i") + field(2, "y") + field(4, "REF::G:1"))
    inputs = field(5, field(1, "x") + field(2, field(1, 3) + field(2, 1)))
    primitive = field(12, field(1, "G:1") + field(2, "TupleGetItem") + field(5, 1))
    path = tmp_path / "a.mindir"
    path.write_bytes(
        field(1, "1.1") + field(7, field(2, "main") + nodes + inputs + field(6, field(1, "y"))) + primitive
    )
    with pytest.raises(MindIRError, match="item 0 is taken of a Tensor"):
        ms.load(path)(ms.Tensor([1.0, 2.0, 3.0]))


def test_open_sizes_take_any_number_of_rows(tmp_path):
    net = loaded("dynamic", tmp_path)
    x = values_of("dynamic")[0][0]
    whole = net(x)[0].asnumpy()
    for rows in (1, 3):
        np.testing.assert_allclose(net(x[:rows])[0].asnumpy(), whole[:rows], rtol=1e-5, atol=1e-5)


def test_a_training_step_trains(tmp_path):
    net = loaded("step", tmp_path)
    x, y = values_of("step")[0]
    losses = [float(net(x, y)) for _ in range(40)]
    assert losses[-1] < losses[0] / 2
    assert {p.name: p for p in net.get_parameters()}["optimizer.global_step"].asnumpy().tolist() == [40]


def test_damaged_files_are_errors(tmp_path):
    content = content_of("mix")
    path = tmp_path / "a.mindir"
    random = np.random.default_rng(0)
    for end in [0, 1, 5, *random.integers(6, len(content), 20)]:
        path.write_bytes(content[:end])
        with pytest.raises(ValueError):
            ms.load(path)
    for _ in range(60):
        damaged = bytearray(content)
        for place in random.integers(2, len(content), 3):
            damaged[place] = random.integers(256)
        path.write_bytes(bytes(damaged))
        try:
            ms.load(path)
        except (ValueError, TypeError, Unsupported):
            pass


def test_hostile_messages_are_refused():
    deep = b""
    for _ in range(DEEPEST + 2):
        deep = field(17, deep) + field(16, 20)
    node = field(2, "a") + field(4, "Constant") + field(5, field(1, "value") + deep)
    graph = field(2, "main") + field(1, node) + field(6, field(1, "a"))
    with pytest.raises(MindIRError, match="levels deep"):
        model_of(field(7, graph))
    huge = field(1, 1 << 40) + field(1, 1 << 40) + field(2, 1) + field(7, "w") + field(9, b"1234")
    model = model_of(field(7, field(2, "main") + field(3, huge) + field(6, field(1, "w"))))
    with pytest.raises(MindIRError, match="has 4 bytes, not those of float32"):
        model.main.parameters[0].array()
    with pytest.raises(MindIRError, match="no main graph"):
        model_of(field(2, "MindSpore"))


def calls(*edges):
    """A file whose graphs call each other: the first of each edge the second, twice."""
    content = b""
    for number, (name, target) in enumerate(edges):
        first = field(1, "x") + field(2, f"{name}:a") + field(4, f"REF::{target}")
        second = field(1, f"{name}:a") + field(2, f"{name}:b") + field(4, f"REF::{target}")
        graph = field(2, name) + field(1, first) + field(1, second) + field(5, field(1, "x"))
        content += field(8 if number else 7, graph + field(6, field(1, f"{name}:b")))
    return content


def test_graphs_that_unfold_without_end_are_refused(tmp_path):
    path = tmp_path / "a.mindir"
    path.write_bytes(field(1, "1.1") + calls(("f", "g"), ("g", "f")))
    with pytest.raises(Unsupported, match="recursion is not supported"):
        ms.load(path)
    path.write_bytes(field(1, "1.1") + calls(*[(f"f{i}", f"f{i + 1}") for i in range(60)]))
    with pytest.raises(ValueError, match="unfolds to too many nodes"):
        ms.load(path)


@pytest.mark.parametrize("name", ["PyFunc", "Custom", "Print", "AllReduce", "DistCommBarrier", "TensorSummary"])
def test_a_file_names_no_operator_that_acts(name, tmp_path):
    primitive = field(12, field(1, "P:1") + field(2, name) + field(5, 2))
    path = tmp_path / "a.mindir"
    path.write_bytes(field(1, "1.1") + field(7, field(2, "main") + field(6, field(1, "y"))) + primitive)
    with pytest.raises(Unsupported, match=f"operator {name} of MindSpore is not supported"):
        ms.load(path)


def test_no_default_stands_for_an_attribute_of_an_unknown_kind(tmp_path):
    axis = field(3, field(1, "axis") + field(16, 99) + field(3, 1))
    primitive = field(12, field(1, "C:1") + field(2, "Concat") + axis + field(5, 1))
    path = tmp_path / "a.mindir"
    path.write_bytes(field(1, "1.1") + field(7, field(2, "main") + field(6, field(1, "y"))) + primitive)
    with pytest.raises(Unsupported, match="Concat has a value of axis of a kind that is not supported"):
        ms.load(path)


def test_what_is_not_supported_is_named(tmp_path):
    primitive = field(12, field(1, "Strange:1") + field(2, "Strange") + field(5, 2))
    node = field(1, "x") + field(2, "y") + field(4, "REF::Strange:1")
    inputs = field(5, field(1, "x") + field(2, field(1, 3) + field(2, 1)))
    path = tmp_path / "a.mindir"
    path.write_bytes(
        field(1, "1.1") + field(7, field(2, "main") + field(1, node) + inputs + field(6, field(1, "y"))) + primitive
    )
    with pytest.raises(Unsupported, match="operator Strange of MindSpore"):
        ms.load(path)
    path.write_bytes(content_of("lenet"))
    with pytest.raises(ValueError, match="is not encrypted"):
        ms.load(path, dec_key=b"0" * 16)
    with pytest.raises(TypeError, match="unknown argument"):
        ms.load(path, key=b"0" * 16)


@pytest.mark.parametrize("name", ["lenet", "loop"])
def test_names_without_a_value_are_found_when_read(name, tmp_path):
    for place in ("input", "output"):
        model = model_of(content_of(name))
        function = model.main
        if place == "input":
            next(n for n in function.nodes if n.inputs).inputs[0] = "nothing"
        else:
            function.outputs[0] = "nothing"
        with pytest.raises(MindIRError, match="there is no value 'nothing'"):
            MindIRGraph(model)
