"""The formats against Google's protobuf runtime and against bytes written by hand, and their
behaviour on damaged files.
"""

import io
import json
import logging
import os
import resource
import signal
import struct
import zlib

import ml_dtypes
import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from mycel._src.foundation.files import atomic_files as whole
from mycel._src.foundation.log import logger
from mycel.train import checkpoint_format
from mycel.train.checkpoint_format import CheckpointError, read_ckpt, read_safetensors, write_ckpt, write_safetensors

TYPES = {
    "Bool": np.bool_,
    "Int8": np.int8,
    "Int16": np.int16,
    "Int32": np.int32,
    "Int64": np.int64,
    "UInt8": np.uint8,
    "UInt16": np.uint16,
    "UInt32": np.uint32,
    "UInt64": np.uint64,
    "Float16": np.float16,
    "BFloat16": ml_dtypes.bfloat16,
    "Float32": np.float32,
    "Float64": np.float64,
    "Complex64": np.complex64,
    "Complex128": np.complex128,
}


def _checkpoint_class():
    file = descriptor_pb2.FileDescriptorProto(name="checkpoint_for_tests.proto", package="mycel_tests")
    field = descriptor_pb2.FieldDescriptorProto

    tensor = file.message_type.add(name="TensorProto")
    tensor.field.add(name="dims", number=1, label=field.LABEL_REPEATED, type=field.TYPE_INT64)
    tensor.field.add(name="tensor_type", number=2, label=field.LABEL_REQUIRED, type=field.TYPE_STRING)
    tensor.field.add(name="tensor_content", number=3, label=field.LABEL_REQUIRED, type=field.TYPE_BYTES)
    table = file.message_type.add(name="MapTensorProto")
    table.field.add(
        name="tensor",
        number=1,
        label=field.LABEL_REPEATED,
        type=field.TYPE_MESSAGE,
        type_name=".mycel_tests.TensorProto",
    )
    top = file.message_type.add(name="Checkpoint")
    value = top.nested_type.add(name="Value")
    value.field.add(name="tag", number=1, label=field.LABEL_REQUIRED, type=field.TYPE_STRING)
    for number, name, kind in ((2, "tensor", "TensorProto"), (3, "maptensor", "MapTensorProto")):
        value.field.add(
            name=name,
            number=number,
            label=field.LABEL_OPTIONAL,
            type=field.TYPE_MESSAGE,
            type_name=f".mycel_tests.{kind}",
        )
    top.field.add(
        name="value",
        number=1,
        label=field.LABEL_REPEATED,
        type=field.TYPE_MESSAGE,
        type_name=".mycel_tests.Checkpoint.Value",
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("mycel_tests.Checkpoint"))


Checkpoint = _checkpoint_class()


def message(*values):
    checkpoint = Checkpoint()
    for tag, dims, title, content in values:
        value = checkpoint.value.add(tag=tag)
        value.tensor.dims.extend(dims)
        value.tensor.tensor_type = title
        value.tensor.tensor_content = content
    return checkpoint.SerializeToString()


def sample(title, shape):
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return (numbers % 2 == 1).astype(np.bool_) if title == "Bool" else numbers.astype(TYPES[title])


def same(left, right):
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@pytest.fixture
def logged():
    """What the package's logger wrote since the last call."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)

    def take():
        text = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return text

    yield take
    logger.removeHandler(handler)


@pytest.mark.parametrize("title", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 3)])
def test_every_type_is_written_as_protobuf_writes_it_and_read_back(tmp_path, title, shape):
    array = sample(title, shape)
    path = tmp_path / "one.ckpt"
    write_ckpt(path, {"layer.weight": array})
    assert path.read_bytes() == message(("layer.weight", shape, title, array.tobytes()))
    assert same(read_ckpt(path)["layer.weight"], array)


def test_strings_are_utf32_with_dims_zero(tmp_path):
    path = tmp_path / "text.ckpt"
    write_ckpt(path, {"name": "hé", "none": ""})
    expected = message(("name", [0], "str", b"h\0\0\0\xe9\0\0\0"), ("none", [0], "str", bytes(4)))
    assert path.read_bytes() == expected
    assert read_ckpt(path) == {"name": "hé", "none": ""}


def test_order_is_kept_and_wanted_chooses(tmp_path):
    path = tmp_path / "many.ckpt"
    write_ckpt(path, {name: np.float32(index) * np.ones(2, np.float32) for index, name in enumerate("zab")})
    assert list(read_ckpt(path)) == ["z", "a", "b"]
    chosen = read_ckpt(path, wanted=lambda name: name != "a")
    assert list(chosen) == ["z", "b"] and chosen["b"].tolist() == [2.0, 2.0]


def test_non_contiguous_arrays_are_written_in_row_major_order(tmp_path):
    array = np.arange(6, dtype=np.int16).reshape(2, 3).T
    for name, write, read in (
        ("a.ckpt", write_ckpt, read_ckpt),
        ("a.safetensors", write_safetensors, read_safetensors),
    ):
        write(tmp_path / name, {"t": array})
        assert read(tmp_path / name)["t"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_long_tensors_are_cut_into_slices_under_one_tag(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_format, "SLICE", 16)
    path = tmp_path / "sliced.ckpt"
    array = np.arange(9, dtype=np.float32).reshape(3, 3)
    write_ckpt(path, {"w": array, "b": np.float32(7).reshape(())})
    content = array.tobytes()
    assert path.read_bytes() == message(
        ("w", (3, 3), "Float32", content[:16]),
        ("w", (3, 3), "Float32", content[16:32]),
        ("w", (3, 3), "Float32", content[32:]),
        ("b", (), "Float32", struct.pack("<f", 7)),
    )
    loaded = read_ckpt(path)
    assert same(loaded["w"], array) and loaded["b"] == 7


def test_scalars_of_early_versions_have_dims_zero(tmp_path):
    path = tmp_path / "early.ckpt"
    path.write_bytes(message(("epoch", [0], "Int64", struct.pack("<q", 3))))
    assert read_ckpt(path)["epoch"].shape == () and read_ckpt(path)["epoch"] == 3


def test_packed_dims_and_unknown_fields_are_read(tmp_path):
    tensor = b"\x0a\x02\x02\x01" + b"\x12\x05Int16" + b"\x1a\x04\1\0\2\0" + b"\x20\x07" + b"\x2d\0\0\0\0"
    value = b"\x0a\x01w" + b"\x12" + bytes([len(tensor)]) + tensor + b"\x31" + bytes(8)
    path = tmp_path / "newer.ckpt"
    path.write_bytes(b"\x0a" + bytes([len(value)]) + value)
    assert read_ckpt(path)["w"].tolist() == [[1], [2]]


def test_boolean_bytes_other_than_one_become_true(tmp_path):
    path = tmp_path / "flags.ckpt"
    path.write_bytes(message(("f", [3], "Bool", b"\0\x01\xff")))
    assert read_ckpt(path)["f"].tolist() == [False, True, True]
    assert read_ckpt(path)["f"].tobytes() == b"\0\1\1"


def test_checksum_trailer(tmp_path, logged):
    path = tmp_path / "sum.ckpt"
    write_ckpt(path, {"w": np.arange(4.0)}, checksum=True)
    content = path.read_bytes()
    body = message(("w", [4], "Float64", np.arange(4.0).tobytes()))
    assert content == body + b"crc_num" + zlib.crc32(body).to_bytes(10, "big")
    assert read_ckpt(path, verify=True)["w"].tolist() == [0, 1, 2, 3] == read_ckpt(path)["w"].tolist()
    position = content.index(np.float64(2.0).tobytes())
    path.write_bytes(content[: position + 3] + b"\x10" + content[position + 4 :])
    with pytest.raises(
        CheckpointError, match=r"sum\.ckpt: damaged: its checksum is [0-9a-f]{8}, and [0-9a-f]{8} was saved"
    ):
        read_ckpt(path, verify=True)
    path.write_bytes(body)
    with pytest.raises(CheckpointError, match=r"sum\.ckpt holds no checksum, so it cannot be checked"):
        read_ckpt(path, verify=True)
    assert "w" in read_ckpt(path)


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"junkjunkjunk", "damaged, or not a MindSpore checkpoint"),
        (b"\x80\x05.", "damaged"),
        (message(("w", [3], "Float32", bytes(8))), r"entry 'w' has 8 bytes where Float32 \[3\] takes 12"),
        (message(("w", [], "Float32", bytes(8))), r"entry 'w' has 8 bytes where Float32 \[\] takes 4"),
        (message(("w", [-1], "Float32", bytes(8))), "entry 'w' has an impossible shape"),
        (message(("w", [1 << 40, 1 << 40], "Int8", b"")), "entry 'w' has the impossible shape"),
        (message(("w", [0, 1 << 61], "Int8", b"")), "entry 'w' has the impossible shape"),
        (message(("w", [1] * 40, "Int8", b"1")), "impossible shape: 40 dimensions"),
        (message(("w", [2], "Int4", b"12")), "entry 'w' has elements of type Int4; supported: Bool, Int8"),
        (
            message(("w", [1], "Int8", b"1"), ("w", [1], "Int8", b"2")),
            r"entry 'w' has 2 bytes where Int8 \[1\] takes 1",
        ),
        (message(("w", [1], "Int8", b"1"), ("w", [1], "UInt8", b"2")), "entry 'w' comes twice"),
        (message(("s", [0], "str", b"123")), "entry 's' is a string of 3 bytes"),
        (message(("s", [0], "str", b"\xff\xff\xff\xff")), "entry 's' is a string that is not UTF-32"),
        (b"\x0a\x03\x0a\x01w", "entry 'w' holds nothing"),
        (b"\x0a\x05\x0a\x01w\x1a\x00", "entry 'w' holds a hash table"),
        (b"\x0a\x05\x0a\x01w\x12\x00", "entry 'w' has no type"),
        (b"\x0a\x02\x12\x00", "has no type"),
        (b"\x0a\x00", "an entry without a name"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "bytes announced where 0 are left"),
        (b"\x0a" + b"\xff" * 12, "more than 10 bytes"),
        (b"\x0a\x03\x0a\x01\xff", "a name that is not UTF-8"),
    ],
)
def test_damaged_files_are_refused_with_the_reason(tmp_path, content, expected):
    path = tmp_path / "bad.ckpt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=expected) as caught:
        read_ckpt(path)
    assert str(caught.value).startswith(str(path))


def test_every_truncation_is_an_error_or_a_whole_prefix(tmp_path):
    path = tmp_path / "cut.ckpt"
    entries = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "flag": np.array(True), "name": "abc"}
    write_ckpt(path, entries)
    whole = path.read_bytes()
    accepted = []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            loaded = read_ckpt(path)
        except CheckpointError:
            continue
        accepted.append(list(loaded))
        assert all(same(loaded[name], entries[name]) for name in loaded)
    assert accepted == [[], ["weight"], ["weight", "flag"]]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 60))
def test_no_bytes_crash_the_reader(tmp_path_factory, noise, start, length):
    good = message(("weight", [2, 3], "Float32", bytes(24)), ("name", [0], "str", b"a\0\0\0"))
    path = tmp_path_factory.getbasetemp() / "noise.ckpt"
    start %= len(good)
    path.write_bytes(good[:start] + noise + good[start + length :])
    try:
        loaded = read_ckpt(path)
    except CheckpointError as error:
        assert str(path) in str(error)
    else:
        assert sum(len(e) if isinstance(e, str) else e.nbytes for e in loaded.values()) <= path.stat().st_size
    path.write_bytes(noise)
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        read_safetensors(path)


@pytest.mark.parametrize("title", [title for title in TYPES if title not in ("Complex64", "Complex128")])
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)])
def test_safetensors_layout_and_round_trip(tmp_path, title, shape):
    array = sample(title, shape)
    path = tmp_path / "one.safetensors"
    write_safetensors(path, {"w": array})
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    codes = {"Bool": "BOOL", "Float": "F", "BFloat": "BF", "Int": "I", "UInt": "U"}
    kind = title.rstrip("0123456789")
    assert header["__metadata__"] == {"format": "ms"}
    assert header["w"]["dtype"] == codes[kind] + title[len(kind) :] and header["w"]["shape"] == list(shape)
    assert content[8 + length :] == array.tobytes()
    assert same(read_safetensors(path)["w"], array)


def test_safetensors_checksum_covers_names_and_contents_by_name(tmp_path, logged):
    path = tmp_path / "sum.safetensors"
    arrays = {"b": np.float32([1, 2]), "a": np.uint8([3])}
    write_safetensors(path, arrays, checksum=True)
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    expected = zlib.crc32(b"a\x03b" + arrays["b"].tobytes())
    assert json.loads(content[8 : 8 + length])["__metadata__"] == {"format": "ms", "crc_num": str(expected)}
    assert list(read_safetensors(path, verify=True)) and logged() == ""
    assert list(read_safetensors(path, verify=True, wanted=lambda name: name == "b")) == ["b"]
    path.write_bytes(content[:-1] + b"\x55")
    with pytest.raises(CheckpointError, match="its checksum is"):
        read_safetensors(path, verify=True)
    write_safetensors(path, arrays)
    with pytest.raises(CheckpointError, match="holds no checksum, so it cannot be checked"):
        read_safetensors(path, verify=True)
    assert "a" in read_safetensors(path)


@pytest.mark.parametrize("write, read", [(write_ckpt, read_ckpt), (write_safetensors, read_safetensors)])
def test_every_damage_to_a_file_with_a_checksum_is_noticed(tmp_path, write, read):
    path = tmp_path / "sum"
    arrays = {"weight": np.arange(5, dtype=np.float32)}
    write(path, arrays, checksum=True)
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in (1, 16, 128):
            path.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
            try:
                found = read(path, verify=True)
            except CheckpointError:
                continue
            # What is no part of the tensors: a name in the metadata that nothing reads.
            assert write is write_safetensors and b"format" in content[max(0, place - 12) : place + 12]
            assert list(found) == ["weight"] and np.array_equal(found["weight"], arrays["weight"])
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(CheckpointError):
            read(path, verify=True)


def test_safetensors_checksum_counts_integer_scalars_as_zeros(tmp_path):
    path = tmp_path / "count.safetensors"
    write_safetensors(path, {"epoch": np.array(3), "low": np.array(-1, np.int8)}, checksum=True)
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    assert header["__metadata__"]["crc_num"] == str(zlib.crc32(b"epoch\0\0\0low\xff"))


def test_what_a_format_cannot_hold_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"entry 'n' is a string; safetensors holds tensors only, ckpt both"):
        write_safetensors(tmp_path / "x.safetensors", {"n": "text"})
    with pytest.raises(
        CheckpointError, match=r"entry 'c': safetensors has no type complex128; save it with format='ckpt'"
    ):
        write_safetensors(tmp_path / "x.safetensors", {"c": np.ones(1, np.complex128)})
    with pytest.raises(CheckpointError, match=r"entry 'o': no tensor has elements of type object"):
        write_ckpt(tmp_path / "x.ckpt", {"o": np.array([None])})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "write, read, name", [(write_ckpt, read_ckpt, "m.ckpt"), (write_safetensors, read_safetensors, "m.st")]
)
def test_a_full_disk_leaves_the_former_file(tmp_path, write, read, name):
    path = tmp_path / name
    write(path, {"w": np.zeros(4)})
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match="cannot write checkpoint.*[Ff]ile too large"):
            write(path, {"w": np.ones(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == [name]
    assert read(path)["w"].tolist() == [0, 0, 0, 0]


def test_an_interrupt_leaves_the_former_file(tmp_path):
    path = tmp_path / "m.ckpt"
    path.write_text("former")
    with pytest.raises(KeyboardInterrupt), whole.replacing(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["m.ckpt"] and path.read_text() == "former"


def test_links_and_permissions_survive(tmp_path):
    real, link = tmp_path / "real.ckpt", tmp_path / "latest.ckpt"
    real.write_text("former")
    real.chmod(0o640)
    link.symlink_to(real)
    write_ckpt(link, {"n": "new"})
    assert link.is_symlink() and read_ckpt(real) == {"n": "new"} and real.stat().st_mode & 0o777 == 0o640
    before = os.umask(0o027)
    try:
        write_ckpt(tmp_path / "a.ckpt", {})
        write_safetensors(tmp_path / "a.safetensors", {})
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("a.ckpt", "a.safetensors")} == {0o640}


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot write checkpoint: No such file or directory.*missing/x.ckpt"):
        write_ckpt(tmp_path / "missing" / "x.ckpt", {})
    with pytest.raises(OSError, match="it exists and is not a regular file"):
        write_ckpt(tmp_path, {})
    with pytest.raises(OSError, match="not a regular file"):
        write_ckpt("/dev/null", {})
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(PermissionError, match="cannot write checkpoint: Permission denied"):
            write_ckpt(tmp_path / "x.ckpt", {})
