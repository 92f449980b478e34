"""Event files, the callbacks that write and restore, and datasets of hand-written loops."""

from __future__ import annotations

import io
import os
import re
import struct

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel.mindrecord.tfrecord import checksum
from mycel.train import (
    BackupAndRestore,
    DatasetHelper,
    Model,
    SummaryCollector,
    SummaryRecord,
    connect_network_with_dataset,
)

CHECKED = {
    "ops.ScalarSummary": "a reader of the published format",
    "ops.TensorSummary": "a reader of the published format",
    "ops.ImageSummary": "a reader of the published format",
    "ops.HistogramSummary": "a reader of the published format",
    "train.SummaryRecord": "a reader of the published format",
    "train.SummaryCollector": "a reader of the published format",
    "train.BackupAndRestore": "an uninterrupted run",
    "train.DatasetHelper": "the dataset's rows",
    "train.build_train_network": "a step by hand",
    "train.connect_network_with_dataset": "the network on the dataset's rows",
}


def parse(data: bytes) -> list[tuple[int, object]]:
    """The fields of a protocol buffer: numbers of wire type 0, raw bytes of the others."""
    found: list[tuple[int, object]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        found.append((key >> 3, data[at : at + size]))
        at += size
    return found


def bitwise_crc(data: bytes) -> int:
    """CRC-32C bit by bit, from the polynomial 0x1EDC6F41 reflected."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    return ~crc & 0xFFFFFFFF


def read_events(path: str) -> list[tuple[int, dict[str, dict[int, object]]]]:
    """(step, values by tag) of each event, after checking lengths and checksums."""
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + length]
        for part, place in ((data[at : at + 8], at + 8), (body, at + 12 + length)):
            crc = bitwise_crc(part)
            wanted = (((crc >> 15) | (crc << 17) & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack_from("<I", data, place) == (wanted,)
        at += 16 + length
        fields = dict(parse(body))
        values = {}
        for number, value in parse(fields.get(5, b"")):
            assert number == 1
            value_fields = dict(parse(value))
            values[value_fields[1].decode()] = value_fields
        if not found:
            assert fields[3] == b"brain.Event:2"
        found.append((fields.get(2, 0), values))
    return found


def only_file(folder: str) -> str:
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)


def test_checksum_of_the_standard() -> None:
    # RFC 3720, appendix B.4
    assert checksum(bytes(32)) == 0x8A9136AA
    assert checksum(b"\xff" * 32) == 0x62A8AB43
    assert checksum(bytes(range(32))) == 0x46DD794E


def test_scalars_tensors_and_histograms(tmp_path) -> None:
    values = np.random.default_rng(0).normal(size=(5, 7))
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("scalar", "loss", ms.Tensor(0.5))
        record.add_value("tensor", "x", ms.Tensor([[1, 2, 3]], ms.int32))
        assert record.record(1)
        record.add_value("histogram", "w", ms.Tensor(values))
        assert record.record(300)
    version, first, second = read_events(only_file(str(tmp_path)))
    assert version[1] == {}
    assert first[0] == 1 and struct.unpack("<f", first[1]["loss"][2]) == (0.5,)
    tensor = parse(first[1]["x"][8])
    assert dict(tensor)[1] == 3 and np.frombuffer(dict(tensor)[4], "<i4").tolist() == [1, 2, 3]
    assert [dict(parse(d))[1] for n, d in parse(dict(tensor)[2]) if n == 2] == [1, 3]
    assert second[0] == 300
    histogram = dict(parse(second[1]["w"][5]))
    numbers = [struct.unpack("<d", histogram[k])[0] for k in range(1, 6)]
    np.testing.assert_allclose(numbers, [values.min(), values.max(), 35, values.sum(), (values**2).sum()])
    limits, counts = np.frombuffer(histogram[6], "<f8"), np.frombuffer(histogram[7], "<f8")
    below = np.concatenate([[0], counts.cumsum()[:-1]])
    np.testing.assert_array_equal(below[1:], [(values < edge).sum() for edge in limits[:-1]])
    assert counts.sum() == 35


@pytest.mark.parametrize(
    "options", [{}, {"file_prefix": "px_"}, {"file_suffix": ""}, {"file_prefix": "run.1", "file_suffix": ".v2"}]
)
def test_files_have_names_that_boards_look_for(tmp_path, options: dict[str, str]) -> None:
    # TensorBoard reads files with "tfevents" in their names, MindInsight ".summary." and digits.
    with SummaryRecord(str(tmp_path), **options) as record:
        record.add_value("scalar", "loss", 0.5)
        record.record(1)
    name = os.path.basename(only_file(str(tmp_path)))
    assert "tfevents" in name and re.search(r"\.summary\.\d+", name), name
    assert name.startswith(options.get("file_prefix", "events") + ".out.")
    assert name.endswith(options.get("file_suffix", "_MS"))


@pytest.mark.parametrize("channels", [1, 3])
def test_images(tmp_path, channels: int) -> None:
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (2, channels, 5, 4)).astype(np.uint8)
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("image", "picture", pixels)
        record.record(2)
    shown = dict(parse(read_events(only_file(str(tmp_path)))[1][1]["picture"][4]))
    assert (shown[1], shown[2], shown[3]) == (5, 4, channels)
    read = np.asarray(Image.open(io.BytesIO(shown[4]))).reshape(5, 4, channels)
    np.testing.assert_array_equal(read, pixels[0].transpose(1, 2, 0))


def test_operations_give_values_to_open_records(tmp_path) -> None:
    scalar, histogram = ms.ops.ScalarSummary(), ms.ops.HistogramSummary()
    tensor, image = ms.ops.TensorSummary(), ms.ops.ImageSummary()

    def program(x):
        scalar("loss", x.sum())
        scalar("loss", x.sum() * 2)
        histogram("values", x)
        tensor("x", x)
        image("picture", ms.ops.ones((1, 1, 2, 3)))
        return x + 1

    program(ms.Tensor([9.0, 9.0]))
    with SummaryRecord(str(tmp_path)) as record:
        for step, run in enumerate((program, ms.jit(program)), 1):
            x = ms.Tensor([float(step), 2.0])
            assert run(x).tolist() == [step + 1, 3]
            x[0] = 100
            assert record.record(step)
        scalar("two", ms.Tensor([1.0, 2.0]))
        with pytest.raises(ValueError, match="one number"):
            record.record(3)
        with pytest.raises(ValueError, match="not empty"):
            scalar("", ms.Tensor(1.0))
    program(ms.Tensor([9.0, 9.0]))
    _, *steps = read_events(only_file(str(tmp_path)))
    assert [step for step, _ in steps] == [1, 2]
    for step, values in steps:
        assert sorted(values) == ["loss", "picture", "values", "x"]
        assert struct.unpack("<f", values["loss"][2]) == (2.0 * (step + 2),)
        histogram_fields = dict(parse(values["values"][5]))
        assert [struct.unpack("<d", histogram_fields[k])[0] for k in (1, 2, 3)] == [min(step, 2), 2, 2]
        assert np.frombuffer(dict(parse(values["x"][8]))[4], "<f4").tolist() == [step, 2]
        picture = dict(parse(values["picture"][4]))
        assert (picture[1], picture[2], picture[3]) == (2, 3, 1)


def test_record_refuses(tmp_path) -> None:
    record = SummaryRecord(str(tmp_path), max_file_size=100)
    with pytest.raises(ValueError, match="plugin"):
        record.add_value("graph", "g", 1)
    with pytest.raises(ValueError, match="one number"):
        record.add_value("scalar", "s", [1, 2])
    record.add_value("scalar", "s", 1)
    assert record.record(1)
    record.add_value("tensor", "s", np.zeros(100, np.float32))
    assert not record.record(2)
    record.close()
    with pytest.raises(RuntimeError, match="closed"):
        record.record(3)
    assert [step for step, _ in read_events(only_file(str(tmp_path)))] == [0, 1]


def make(seed: int = 0) -> tuple[ms.nn.Cell, Model, ds.Dataset]:
    random = np.random.default_rng(seed)
    columns = (random.normal(size=(8, 3)).astype(np.float32), random.normal(size=(8, 1)).astype(np.float32))
    data = ds.NumpySlicesDataset(columns, ["x", "y"], shuffle=False).batch(2)
    net = ms.nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    optimizer = ms.nn.Momentum(net.trainable_params(), 0.1, 0.9)
    return net, Model(net, ms.nn.MSELoss(), optimizer), data


def test_collector(tmp_path) -> None:
    losses = []
    net, model, data = make()
    seen = ms.train.LambdaCallback(on_train_step_end=lambda c: losses.append(float(c.original_args().net_outputs)))
    model.train(2, data, [SummaryCollector(str(tmp_path), collect_freq=2), seen])
    steps = dict(read_events(only_file(str(tmp_path)))[1:])
    assert list(steps) == [1, 2, 4, 6, 8]
    for step, values in steps.items():
        np.testing.assert_allclose(struct.unpack("<f", values["loss"][2])[0], losses[step - 1], rtol=1e-6)
    assert {"input_data", "weight", "bias"} <= set(steps[1])
    with pytest.raises(ms.errors.Unsupported, match="collect_graph"):
        SummaryCollector(str(tmp_path), collect_specified_data={"collect_graph": True})


def test_backup_and_restore(tmp_path) -> None:
    net, model, data = make()
    model.train(3, data)
    other, second, _ = make()
    second.train(1, data, [BackupAndRestore(str(tmp_path), delete_checkpoint=False)])
    third, last, _ = make()
    last.train(2, data, [BackupAndRestore(str(tmp_path))])
    np.testing.assert_array_equal(third.weight.asnumpy(), net.weight.asnumpy())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("size", [-1, 3])
def test_dataset_helper(size: int) -> None:
    rows = np.arange(8, dtype=np.float32)
    data = ds.NumpySlicesDataset((rows,), ["x"], shuffle=False).batch(2)
    plain = DatasetHelper(data, dataset_sink_mode=False, epoch_num=2)
    for _ in range(2):
        assert [b[0].asnumpy().tolist() for b in plain] == rows.reshape(4, 2).tolist()
    assert plain.sink_size() == 4 and plain.types_shapes()[1] == [[2]]
    helper = DatasetHelper(data, sink_size=size, epoch_num=2)
    net = connect_network_with_dataset(ms.nn.ReLU(), helper)
    found = []
    for _ in range(2):
        for element in helper:
            assert element == ()
            found.append(net().asnumpy().tolist())
    wanted = np.tile(rows.reshape(4, 2), (2, 1))[: 2 * helper.sink_size()]
    assert found == wanted.tolist()
    with pytest.raises(RuntimeError, match="no batch"):
        net()
    helper.release()


def test_build_train_network() -> None:
    x, y = np.array([[1.0, 2.0, 3.0]], np.float32), np.array([[1.0]], np.float32)
    net = ms.nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    step = ms.train.build_train_network(net, ms.nn.SGD(net.trainable_params(), 0.01), ms.nn.MSELoss())
    assert float(step(ms.Tensor(x), ms.Tensor(y))) == pytest.approx(25.0)
    np.testing.assert_allclose(net.weight.asnumpy(), 1 - 0.01 * 2 * 5 * x, rtol=1e-6)
    np.testing.assert_allclose(net.bias.asnumpy(), [-0.1], rtol=1e-6)
