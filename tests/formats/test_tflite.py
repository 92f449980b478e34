"""TensorFlow Lite's files: what its kernels give is given here, up to a step where quantised."""

from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.base.errors import Unsupported
from mycel.base.flatbuffers import FlatBufferError, root
from mycel.base.tree import flatten
from mycel.formats.converting import convert
from mycel.formats.tflite.network import TFLiteGraph
from mycel.formats.tflite.schema import TFLiteError, graph_of

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
        if want.dtype == np.int8:
            assert np.abs(got.asnumpy().astype(int) - want.astype(int)).max() <= 1
        else:
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


OPERATORS = sorted((SAMPLES / "operators").glob("*.tflite"))


@pytest.mark.parametrize("path", [*OPERATORS, *SAMPLES.glob("*_int8.tflite")], ids=lambda p: p.stem)
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
