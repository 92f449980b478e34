"""Checkpoints in several files: as the safetensors package and the index's own definition read and
write them, lazily, and whole or not at all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mycel as ms
from mycel import Tensor, nn
from mycel.train import CheckpointError, ShardedCheckpoint, sharded_checkpoint

CHECKED = {"train.ShardedCheckpoint": "the safetensors package"}

rng = np.random.default_rng(8)
KINDS = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "uint16", "bool", "complex64"]
ARRAYS = {f"part.{i}.{kind}": (rng.normal(size=(i % 4, 3)) * 10).astype(kind) for i, kind in enumerate(KINDS)}
ARRAYS["scalar"] = np.array(2.5, np.float32)
ARRAYS["bfloat16"] = rng.normal(size=(2, 2, 2)).astype(ml_dtypes.bfloat16)


def save(path: Path, most: Any, arrays: Any = None, **options: Any) -> None:
    tensors = {name: Tensor.from_numpy(a) for name, a in (ARRAYS if arrays is None else arrays).items()}
    ms.save_checkpoint(tensors, path, format="safetensors", max_shard_size=most, **options)


def same(found: Any, arrays: Any) -> None:
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        value = found[name].asnumpy() if hasattr(found[name], "asnumpy") else found[name]
        assert (value.dtype, value.shape, value.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("most", [1, 50, 100, "0.1KB", "1KiB"])
@pytest.mark.parametrize("checksum", [False, True])
def test_files_and_index(tmp_path: Path, most: Any, checksum: bool) -> None:
    save(tmp_path / "net", most, crc_check=checksum)
    bytes_at_most = sharded_checkpoint.byte_count(most)
    files = sorted(name for name in os.listdir(tmp_path) if name.endswith(".safetensors"))
    count = len(files)
    if count == 1:
        assert files == ["net.safetensors"]
        same(load_file(tmp_path / files[0]), ARRAYS)
        return
    assert files == [f"net-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]
    index = json.loads((tmp_path / "net.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(a.nbytes for a in ARRAYS.values())
    gathered: dict[str, Any] = {}
    sizes = []
    for file in files:
        part = load_file(tmp_path / file)
        assert all(index["weight_map"][name] == file for name in part)
        sizes.append([a.nbytes for a in part.values()])
        assert sum(sizes[-1]) <= bytes_at_most or sum(size > 0 for size in sizes[-1]) == 1
        gathered |= part
    same(gathered, ARRAYS)
    assert list(index["weight_map"]) == sorted(ARRAYS)
    for path in (tmp_path, tmp_path / "net.safetensors.index.json", tmp_path / "net.safetensors"):
        same(ms.load_checkpoint(path, format="safetensors", crc_check=checksum), ARRAYS)
        same(ShardedCheckpoint(path), ARRAYS)


def test_files_of_other_libraries(tmp_path: Path) -> None:
    names = sorted(ARRAYS)
    parts = {"model-00001-of-00002.safetensors": names[:5], "model-00002-of-00002.safetensors": names[5:]}
    for file, chosen in parts.items():
        save_file({name: ARRAYS[name] for name in chosen}, tmp_path / file, {"format": "pt"})
    weight_map = {name: file for file, chosen in parts.items() for name in chosen}
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    same(ms.load_checkpoint(tmp_path, format="safetensors"), ARRAYS)
    chosen = ms.load_checkpoint(tmp_path, format="safetensors", specify_prefix="part", choice_func=lambda n: "int" in n)
    same(chosen, {n: a for n, a in ARRAYS.items() if n.startswith("part") and "int" in n})
    save_file(ARRAYS, tmp_path / "one.safetensors")
    same(ShardedCheckpoint(tmp_path / "one.safetensors"), ARRAYS)


def test_reading_is_lazy(tmp_path: Path) -> None:
    save(tmp_path / "net", 100)
    lazy = ShardedCheckpoint(tmp_path)
    assert lazy.info("part.1.float64") == ("Float64", (1, 3))
    assert "absent" not in lazy
    with pytest.raises(KeyError):
        lazy["absent"]
    first, *others = lazy.files
    for file in others:
        os.remove(file)
    named = [name for name in lazy if lazy._files[name] == first]
    same({name: lazy[name] for name in named}, {name: ARRAYS[name] for name in named})
    with pytest.raises(FileNotFoundError):
        dict(lazy)


def test_a_network_is_loaded_file_by_file(tmp_path: Path) -> None:
    source, target = (
        nn.SequentialCell(nn.Dense(4, 5), nn.Dense(5, 3)),
        nn.SequentialCell(nn.Dense(4, 5), nn.Dense(5, 3)),
    )
    ms.save_checkpoint(source, tmp_path / "net", format="safetensors", max_shard_size=40, append_dict={"epoch": 3})
    lazy = ShardedCheckpoint(tmp_path)
    assert len(lazy.files) == 4
    assert ms.load_param_into_net(target, lazy) == ([], ["epoch"])
    for a, b in zip(source.get_parameters(), target.get_parameters()):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


@pytest.mark.parametrize(
    "kind, shape, strict, text",
    [
        ("float32", (4, 5), False, "has shape"),
        ("int32", (5, 4), False, "only floating types"),
        ("float64", (5, 4), True, "strict_load allows no conversion"),
        ("float64", (5, 4), False, "too large"),
    ],
)
def test_what_does_not_fit_changes_nothing(tmp_path: Path, kind: str, shape: Any, strict: bool, text: str) -> None:
    bad = np.full(shape, 1e300 if text == "too large" else 1).astype(kind)
    save(tmp_path / "net", 10, {"bias": np.full(5, 7, np.float32), "weight": bad})
    net = nn.Dense(4, 5, bias_init="zeros")
    with pytest.raises(RuntimeError, match=text):
        ms.load_param_into_net(net, ShardedCheckpoint(tmp_path), strict)
    assert not net.bias.asnumpy().any()


def test_types_convert_and_prefixes_go(tmp_path: Path) -> None:
    weight, bias = rng.normal(size=(5, 4)), rng.normal(size=5)
    save(tmp_path / "net", 10, {"net.weight": weight, "net.bias": bias})
    net = nn.Dense(4, 5)
    assert ms.load_param_into_net(net, ShardedCheckpoint(tmp_path)) == ([], [])
    np.testing.assert_array_equal(net.weight.asnumpy(), weight.astype(np.float32))


def test_conversion_both_ways(tmp_path: Path) -> None:
    save(tmp_path / "net", 60)
    ms.safetensors_to_ckpt(tmp_path / "net.safetensors.index.json", tmp_path / "whole")
    assert os.listdir(tmp_path / "whole") == ["net.ckpt"]
    loaded = ms.load_checkpoint(tmp_path / "whole" / "net.ckpt")
    same(loaded, ARRAYS)
    (tmp_path / "again").mkdir()
    ms.save_checkpoint(loaded, tmp_path / "again" / "net", format="safetensors", max_shard_size=60)
    first, second = (sorted(os.listdir(p)) for p in (tmp_path, tmp_path / "again"))
    assert set(first) - {"again", "whole"} == set(second)
    same(ms.load_checkpoint(tmp_path / "again", format="safetensors"), ARRAYS)


def test_saving_again_leaves_nothing_of_before(tmp_path: Path) -> None:
    save(tmp_path / "other", 10**6)
    for most in (1, 100, 10**6, 100):
        save(tmp_path / "net", most)
        same(ms.load_checkpoint(tmp_path / "net.safetensors", format="safetensors"), ARRAYS)
    files = {name for name in os.listdir(tmp_path) if name.startswith("net")}
    index = json.loads((tmp_path / "net.safetensors.index.json").read_text())
    assert files == set(index["weight_map"].values()) | {"net.safetensors.index.json"}
    assert (tmp_path / "other.safetensors").exists()


def test_a_saving_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    save(tmp_path / "net", 100)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    with pytest.raises(CheckpointError, match="safetensors has no type complex128"):
        save(tmp_path / "net", 100, {**ARRAYS, "z": np.zeros(2, np.complex128)})
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


def test_a_mixture_of_savings_is_found_out(tmp_path: Path) -> None:
    save(tmp_path / "net", 100)
    file = next(p for p in tmp_path.iterdir() if p.name.startswith("net-00001"))
    former = file.read_bytes()
    save(tmp_path / "net", 100)
    file.write_bytes(former)
    with pytest.raises(CheckpointError, match="of another saving than the index"):
        ms.load_checkpoint(tmp_path, format="safetensors")


def test_damage_is_named(tmp_path: Path) -> None:
    save(tmp_path / "net", 100)
    index = tmp_path / "net.safetensors.index.json"
    good, (one, *_) = json.loads(index.read_text()), sorted(tmp_path.glob("*.safetensors"))
    whole = one.read_bytes()
    for damaged, text in (
        (whole[:-1], "its tensors take"),
        (whole[:5], "damaged"),
        (b"\xff" * 90, "longer than the file"),
    ):
        one.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=text):
            ShardedCheckpoint(tmp_path)
    one.unlink()
    with pytest.raises(CheckpointError, match="there is no file"):
        ShardedCheckpoint(tmp_path)
    one.write_bytes(whole)
    for change, text in (
        ({"weight_map": {"x": "../out.safetensors"}}, "not the name of a .safetensors file beside"),
        ({"weight_map": {"x": 3}}, "'weight_map' from names"),
        ({"weight_map": {**good["weight_map"], "x": one.name}}, "should hold 'x'"),
    ):
        index.write_text(json.dumps({**good, **change}))
        with pytest.raises(CheckpointError, match=text):
            ShardedCheckpoint(tmp_path)
    index.write_text("{")
    with pytest.raises(CheckpointError, match="not an index in JSON"):
        ShardedCheckpoint(index)
    with pytest.raises(CheckpointError, match="there is no file"):
        ShardedCheckpoint(tmp_path / "absent")


@pytest.mark.parametrize("most", [0, -3, "5XB", "GB", True, 1.5, None.__class__])
def test_sizes_that_are_none(tmp_path: Path, most: Any) -> None:
    with pytest.raises(ValueError, match="max_shard_size must be"):
        save(tmp_path / "net", most)
    with pytest.raises(ValueError, match="max_shard_size is for format='safetensors'"):
        ms.save_checkpoint({}, tmp_path / "net", max_shard_size=100)


# All types of the format's release 0.8 that tensors have, and those that they have not.
HERE = "BOOL U8 I8 F8_E5M2 F8_E4M3 I16 U16 F16 BF16 I32 U32 F32 C64 F64 I64 U64".split()
ELSEWHERE = "F4 F6_E2M3 F6_E3M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ".split()


def _of_type(path: Path, kind: str) -> None:
    """Write a tensor of float32 and one of eight elements of a type."""
    bits = 8 if kind == "BOOL" else int(kind.removeprefix("B")[1:].split("_")[0])
    header = {
        "good": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "one": {"dtype": kind, "shape": [8], "data_offsets": [8, 8 + bits]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + np.float32([1, 2]).tobytes() + b"\1" * bits)


@pytest.mark.parametrize("kind", HERE + ELSEWHERE)
def test_every_type_is_read_or_refused_by_its_name(kind: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.safetensors", tmp_path / "whole"
    _of_type(path, kind)
    index = {"metadata": {}, "weight_map": {"good": path.name, "one": path.name}}
    (tmp_path / "b.safetensors.index.json").write_text(json.dumps(index))

    def lazily() -> Any:
        return ShardedCheckpoint(path)["one"]

    def converted() -> Any:
        ms.safetensors_to_ckpt(path, whole)
        return ms.load_checkpoint(whole / "a.ckpt")["one"]

    ways = [
        lambda: ms.load_checkpoint(path, format="safetensors")["one"],
        lambda: ms.load_checkpoint(tmp_path / "b.safetensors.index.json", format="safetensors")["one"],
        lazily,
        converted,
    ]
    for way in ways:
        if kind in HERE:
            assert way().shape == (8,)
        else:
            with pytest.raises(
                CheckpointError, match=rf"a\.safetensors: entry 'one' has elements of type {kind}, which"
            ):
                way()
    chosen = ms.load_checkpoint(path, format="safetensors", choice_func=lambda name: name == "good")
    assert chosen["good"].asnumpy().tolist() == [1, 2]
