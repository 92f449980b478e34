"""TensorFlow Lite's files: what its kernels give is given here, up to a level where quantised."""

from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.flatbuffers import FlatBufferError, root
from mycel._src.foundation.pytree import flatten
from mycel.formats.converting import convert
from mycel.formats.tflite.network import TFLiteGraph
from mycel.formats.tflite.schema import NAMES as NAMES_OF_CODES
from mycel.formats.tflite.schema import Tensor as Info
from mycel.formats.tflite.schema import TFLiteError, graph_of, need_bounded

SAMPLES = Path(__file__).parent.parent / "data" / "tflite"
NAMES = sorted(p.stem for p in SAMPLES.glob("*.tflite"))


def values_of(name):
    kept = np.load(SAMPLES / f"{name}.npz")
    inputs = [ms.Tensor(kept[k]) for k in sorted(kept.files) if k[0] == "x"]
    return inputs, [kept[k] for k in sorted(kept.files) if k[0] == "y"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_gives_what_its_kernels_give(name):
    inputs, wanted = values_of(name)
    found = flatten(nn.GraphCell(ms.load(SAMPLES / f"{name}.tflite"))(*inputs))[0]
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        assert got.shape == want.shape and got.asnumpy().dtype == want.dtype
        if want.dtype in (np.int8, np.int16):
            assert np.abs(got.asnumpy().astype(int) - want.astype(int)).max() <= 1
        else:
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


KERNELS = ("convolutions_int8", "residual_int8")
WHOLE = ("dense_int8", "loop", "cnn_open_int8")
OPERATORS = sorted((SAMPLES / "operators").glob("*.tflite"))


@pytest.mark.parametrize(
    "path", [*OPERATORS, *(SAMPLES / f"{n}.tflite" for n in (*KERNELS, *WHOLE))], ids=lambda p: p.stem
)
def test_the_bits_of_the_kernels(path):
    """`tests/formats/tflite_cases.py` compares many more drawn files, where LiteRT is there."""
    kept = np.load(path.with_suffix(".npz"))
    inputs = [ms.Tensor(kept[k]) for k in sorted(kept.files) if k[0] == "x"]
    found = flatten(ms.load(path, rounding="tflite")(*inputs))[0]
    wanted = [kept[k] for k in sorted(kept.files) if k[0] == "y"]
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        assert got.asnumpy().dtype == want.dtype
        np.testing.assert_array_equal(got.asnumpy(), want)


@pytest.mark.parametrize(
    "name, what",
    [
        ("cnn_int16", "CONV_2D of int16 has no kernel"),
        ("up_int8", "TRANSPOSE_CONV has no kernel"),
    ],
)
def test_kernels_of_other_integers_are_named(name, what):
    with pytest.raises(Unsupported, match=what):
        ms.load(SAMPLES / f"{name}.tflite", rounding="tflite")


def test_sizes_are_open_where_the_file_says_so():
    """The sizes of a reshape are computed of the batch, in one program for all batches."""
    net = ms.load(SAMPLES / "cnn_open.tflite")
    (x,), (wanted,) = values_of("cnn_open")
    compiled = ms.jit(net.run, dynamic=1, fullgraph=True)
    for count in (1, 2, 3):
        np.testing.assert_allclose(compiled(x[:count]).asnumpy(), wanted[:count], atol=1e-6)
    assert net.graph.tensors[net.graph.inputs[0]].shape == (-1, 8, 8, 3)


def test_control_flow_is_one_graph_with_gradients():
    net = ms.load(SAMPLES / "loop.tflite")
    inputs, wanted = values_of("loop")
    found = ms.jit(net.run, fullgraph=True)(*inputs)
    for got, want in zip(found, wanted):
        np.testing.assert_allclose(got.asnumpy(), want, atol=1e-6)
    place = [w.dtype == np.float32 for w in wanted].index(True)
    own = [t.name for t in (net.graph.tensors[n] for n in net.graph.inputs)]
    found = ms.grad(lambda *x: net(*x)[place].sum(), (0, 1))(*inputs)
    slopes = {name: g.asnumpy() for name, g in zip(own, found)}
    rounds = int(wanted[1 - place])
    np.testing.assert_allclose(next(v for k, v in slopes.items() if "_x" in k), 1.5**rounds, rtol=1e-5)


def test_one_buffer_is_not_repeated_without_end():
    graph = graph_of((SAMPLES / "dense_int8.tflite").read_bytes())
    assert graph.tensors
    content = bytearray((SAMPLES / "dense_int8.tflite").read_bytes())
    # The bytes of all constants together are bounded by the file's size.
    need_bounded(graph.tensors, len(content))
    with pytest.raises(TFLiteError, match="constants of .* bytes in a file of"):
        need_bounded(graph.tensors * 100000, len(content))


def test_graphs_that_call_themselves_are_refused():
    graph = graph_of((SAMPLES / "loop.tflite").read_bytes())
    (loop,) = [o for o in graph.operators if o.name == "WHILE"]
    body = graph.graphs[loop.option(1, "<i")]
    body.operators.append(loop)
    with pytest.raises(Unsupported, match="calls itself"):
        TFLiteGraph(graph)
    graph.graphs.pop()
    with pytest.raises(TFLiteError, match="WHILE calls the graph 2 of 2"):
        TFLiteGraph(graph)


def test_operators_that_are_not_supported_are_named():
    graph = graph_of((SAMPLES / "loop.tflite").read_bytes())
    graph.operators[0].code = NAMES_OF_CODES.index("HASHTABLE_LOOKUP")
    with pytest.raises(Unsupported, match="HASHTABLE_LOOKUP of TensorFlow Lite is not supported"):
        TFLiteGraph(graph)
    graph = graph_of((SAMPLES / "sequence_lstm.tflite").read_bytes())
    (lstm,) = graph.operators
    lstm.inputs[9] = lstm.inputs[12]
    with pytest.raises(Unsupported, match="UNIDIRECTIONAL_SEQUENCE_LSTM of TensorFlow Lite with weights of cells"):
        TFLiteGraph(graph).run(values_of("sequence_lstm")[0][0])
    # A place that is computed, of a part without a known size.
    graph = graph_of((SAMPLES / "moves.tflite").read_bytes())
    (block,) = [o for o in graph.operators if o.name == "SPACE_TO_BATCH_ND"]
    block.inputs[1] = graph.inputs[0]
    with pytest.raises(Unsupported, match="input 1 of the operator SPACE_TO_BATCH_ND of TensorFlow Lite must be a"):
        TFLiteGraph(graph)


def test_values_that_nothing_computes_are_found_when_read():
    for place in ("input", "output"):
        graph = graph_of((SAMPLES / "dense_int8.tflite").read_bytes())
        first = graph.operators.pop(0)
        wanted = f"uses tensor {first.outputs[0]}, which nothing computes"
        if place == "output":
            graph.operators, wanted = [], "nothing computes the result"
        with pytest.raises(TFLiteError, match=wanted):
            TFLiteGraph(graph)


def test_inputs_that_do_not_fit_name_the_operator():
    graph = graph_of((SAMPLES / "shapes.tflite").read_bytes())
    slices = next(o for o in graph.operators if o.name == "STRIDED_SLICE")
    info = graph.tensors[slices.inputs[1]]
    info.content = np.full(info.shape, 7, np.int32).tobytes()
    with pytest.raises(TFLiteError, match="STRIDED_SLICE does not fit its inputs: index 7 is out of bounds"):
        TFLiteGraph(graph)(*values_of("shapes")[0])


def test_weights_of_four_bits():
    kept = Info("w", (3,), "int8", bytes([0x2F, 0x08]), (0.5,), (0,), 0, True)
    assert kept.array().tolist() == [-1, 2, -8]
    with pytest.raises(TFLiteError, match=r"has 2 bytes, not those of int4\[5\]"):
        Info("w", (5,), "int8", bytes(2), (0.5,), (0,), 0, True).array()


def test_what_has_no_kernel_is_named(tmp_path):
    with pytest.raises(ValueError, match="rounding must be one of 'real', 'tflite', not 'other'"):
        ms.load(SAMPLES / "residual_int8.tflite", rounding="other")
    with pytest.raises(TypeError, match="unknown argument 'rounded'"):
        ms.load(SAMPLES / "residual_int8.tflite", rounded="tflite")
    graph = graph_of((SAMPLES / "residual_int8.tflite").read_bytes())
    graph.operators[2].code = 101
    with pytest.raises(Unsupported, match="ABS has no kernel of rounding='tflite'"):
        TFLiteGraph(graph, "tflite")
    TFLiteGraph(graph)
    # What has no quantised tensors is what it is without the option.
    (x,), (wanted,) = values_of("convolutions")
    found = ms.load(SAMPLES / "convolutions.tflite", rounding="tflite")(x)
    np.testing.assert_allclose(found.asnumpy(), wanted, atol=1e-6)


def test_real_numbers_have_gradients():
    net = ms.load(SAMPLES / "convolutions.tflite")
    (x,), _ = values_of("convolutions")
    weights = net.trainable_params()
    assert len(weights) >= 6
    gradients = ms.grad(lambda x: (net(x) ** 2).sum(), None, weights)(x)
    assert [g.shape for g in gradients] == [w.shape for w in weights]
    assert any(np.abs(g.asnumpy()).max() > 0 for g in gradients)


def test_other_inputs_are_refused():
    net = ms.load(SAMPLES / "convolutions.tflite")
    with pytest.raises(ValueError, match="takes float32"):
        net(ms.Tensor([1, 2]))
    with pytest.raises(ValueError, match="takes 1 inputs"):
        net()


def test_damaged_files_are_errors(tmp_path):
    content = (SAMPLES / "residual_int8.tflite").read_bytes()
    path, random = tmp_path / "a.tflite", np.random.default_rng(0)
    path.write_bytes(b"nothing")
    with pytest.raises(TFLiteError, match="identifier is not TFL3"):
        ms.load(path)
    for end in [8, 20, *random.integers(8, len(content) // 2, 10)]:
        with pytest.raises(ValueError):
            graph_of(content[:end])
    for _ in range(60):
        damaged = bytearray(content)
        for place in random.integers(8, len(content), 4):
            damaged[place] = random.integers(256)
        path.write_bytes(bytes(damaged))
        try:
            ms.load(path)
        except (ValueError, Unsupported):
            pass


def test_offsets_stay_inside_of_the_buffer():
    with pytest.raises(FlatBufferError, match="points to byte"):
        root(b"\xff\xff\xff\x7fTFL3")
    with pytest.raises(FlatBufferError, match="points to byte"):
        root(b"")


def test_it_is_converted_with_a_report(tmp_path):
    report = convert(str(SAMPLES / "residual_int8.tflite"), str(tmp_path / "a.mindir"))
    assert report.read["CONV_2D"] == 2 and report.difference == 0
