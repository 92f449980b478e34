"""Values in files of which any part is read by itself: against the whole, by layouts, types,
formats and numbers of ranks; how many bytes are read, and damaged and missing files.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import Sharding, blocks, part_of, places_of, shard, sharding, whole
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines import buffers
from mycel._src.foundation import dtype as D
from mycel._src.staging.distributed.rank_executors import OfRanks
from mycel._src.staging.distributed.sharded_tensors import Held, held, hold, whole_value
from mycel._src.tensors.core.parameter import Declared
from mycel.train import checkpoint_format, parameter_slices, stored_values
from mycel.train.checkpoint_format import CheckpointError, read_ckpt, read_safetensors, write_ckpt, write_safetensors
from mycel.train.checkpoint_resharding import assembled
from mycel.train.sharded_checkpoint import ShardedCheckpoint
from mycel.train.stored_values import (
    JoinedValues,
    OpenFile,
    StoredTensor,
    StoredValues,
    stored_ckpt,
    stored_safetensors,
)
from mycel.train.strategies import Dims, ParallelLayouts, layout, write_strategy

Array = np.ndarray[Any, Any]
KINDS = {
    "float32": np.dtype("f4"),
    "float16": np.dtype("f2"),
    "bfloat16": D.bfloat16.numpy,
    "bool": np.dtype("?"),
    "int64": np.dtype("i8"),
}
SHAPES = [(), (5,), (0, 3), (12, 8), (7, 5), (4, 6, 5), (600, 12)]
READ: dict[str, Callable[..., dict[str, Any]]] = {"ckpt": stored_ckpt, "safetensors": stored_safetensors}
WRITE: dict[str, Callable[..., None]] = {"ckpt": write_ckpt, "safetensors": write_safetensors}
_making = threading.Lock()


def sample(shape: tuple[int, ...], kind: str, seed: int = 0) -> Array:
    drawn = np.random.default_rng(seed).normal(size=shape) * 90
    return np.asarray(drawn > 0 if kind == "bool" else drawn.astype(KINDS[kind]))


def layouts(shape: tuple[int, ...]) -> Iterator[tuple[Mesh, Sharding]]:
    """Rows, columns, both, several mesh axes for one, and stretches inside of an axis."""
    for mesh in (Mesh((2,), ("x",)), Mesh((3,), ("x",)), Mesh((2, 2), ("x", "y")), Mesh((4,), ("x",), (2, 0, 3, 1))):
        names = [None, *mesh.names, *([("x", "y"), ("y", "x")] if len(mesh.names) > 1 else [])]
        for axes in itertools.product(names, repeat=len(shape)):
            used = [name for given in axes if given for name in ((given,) if isinstance(given, str) else given)]
            if len(set(used)) == len(used):
                yield mesh, sharding(mesh, shape, axes)
        for axis, size in enumerate(shape):
            if size % 4 == 0 and size:
                yield mesh, Sharding(part_of(mesh, axis, ("x",), size // 4, before=2, after=2))


def bits(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many bytes were read of each file, and how often."""
    found: dict[str, int] = {"calls": 0, "bytes": 0}
    read = OpenFile.read

    def watch(self: OpenFile, into: memoryview, start: int) -> None:
        found["calls"] += 1
        found["bytes"] += len(into)
        read(self, into, start)

    monkeypatch.setattr(OpenFile, "read", watch)
    return found


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_those_of_the_whole(kind: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tensor lies in pieces that end anywhere.
    monkeypatch.setattr(checkpoint_format, "SLICE", 1001)
    arrays = {str(number): sample(shape, kind, number) for number, shape in enumerate(SHAPES)}
    WRITE[form](tmp_path / f"a.{form}", arrays)
    stored = READ[form](tmp_path / f"a.{form}")
    for name, array in arrays.items():
        values = stored[name]
        assert (values.shape, values.kind, values.nbytes) == (array.shape, array.dtype, array.nbytes)
        assert bits(values.array()) == bits(array)
        for mesh, given in layouts(array.shape):
            parts = []
            for rank in mesh.devices:
                wanted = shard(array, given, mesh, rank)
                made = np.empty(wanted.shape, wanted.dtype)
                values.fill_part(made, array.shape, places_of(array.shape, given, mesh, rank))
                assert bits(made) == bits(wanted), (given, rank)
                parts.append(made)
            assert bits(whole(parts, given, mesh)) == bits(array), given


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_values_convert_by_blocks(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_values, "BLOCK", 64)
    array = sample((9, 11), "float32")
    WRITE[form](tmp_path / f"a.{form}", {"w": array, "n": np.arange(6).reshape(6, 1)})
    values = READ[form](tmp_path / f"a.{form}")["w"]
    mesh = Mesh((2,), ("x",))
    for kind, axes in itertools.product(("f2", "f8", D.bfloat16.numpy), (("x",), (None, "x"), ())):
        given = sharding(mesh, array.shape, axes)
        for rank in mesh.devices:
            wanted = shard(array, given, mesh, rank).astype(kind)
            made = np.empty(wanted.shape, kind)
            values.fill_part(made, array.shape, places_of(array.shape, given, mesh, rank))
            assert bits(made) == bits(wanted)
    numbers, made = READ[form](tmp_path / f"a.{form}")["n"], np.empty(6, np.int32)
    numbers.fill(made)
    assert made.tolist() == list(range(6))
    with pytest.raises(ValueError, match="are asked for as"):
        numbers.fill(np.empty((6, 2), np.int64))


def test_bytes_of_other_machines_and_any_bytes_of_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"w": sample((6, 4), "float32"), "h": sample((6,), "bfloat16"), "c": np.full(3, 1 + 2j, np.complex64)}
    write_ckpt(tmp_path / "a.ckpt", arrays)
    monkeypatch.setattr(sys, "byteorder", "big")
    for name, values in stored_ckpt(tmp_path / "a.ckpt").items():
        assert isinstance(values, StoredValues)
        found = values.array()
        plain = arrays[name].view("u2") if name == "h" else arrays[name]
        assert bits(found) == bits(plain.byteswap())
    monkeypatch.undo()
    write_safetensors(tmp_path / "b.safetensors", {"f": np.zeros(4, np.uint8)})
    content = (tmp_path / "b.safetensors").read_bytes().replace(b'"U8"', b'"BOOL"')
    length = int.from_bytes(content[:8], "little") + 2
    (tmp_path / "b.safetensors").write_bytes(length.to_bytes(8, "little") + content[8:-4] + bytes([0, 1, 2, 255]))
    flags = stored_safetensors(tmp_path / "b.safetensors")["f"]
    assert isinstance(flags, StoredValues) and flags.array().view(np.uint8).tolist() == [0, 1, 1, 1]


def entry(devices: list[int], axes: list[Any]) -> ParallelLayouts:
    return ParallelLayouts([Dims(devices)], [Dims(axes)])


CUTS = {1: [[1], [-1, -1]], 2: [[2], [0, -1]], 3: [[3], [-1, 0]], 4: [[2, 2], [0, 1]], 6: [[3, 2], [1, 0]]}


@pytest.mark.parametrize("kind", ["float32", "bool"])
@pytest.mark.parametrize("source, target", [*itertools.product(CUTS, CUTS)])
def test_parts_of_other_ranks_are_joined(source: int, target: int, kind: str, tmp_path: Path) -> None:
    array = sample((24, 18), kind)
    one, other = (layout("w", tuple(devices), axes) for devices, axes in (CUTS[source], CUTS[target]))
    full = layout("w", (1,), [-1, -1])
    parts: dict[int, StoredValues] = {}
    for rank in range(source):
        boxed = assembled("w", full, one, rank, {0: stored_values.ArrayValues(array)}).array()
        write_safetensors(tmp_path / f"{rank}.safetensors", {"w": boxed})
        found = stored_safetensors(tmp_path / f"{rank}.safetensors")["w"]
        assert isinstance(found, StoredValues)
        parts[rank] = found
    for rank in range(target):
        values = assembled("w", one, other, rank, parts)
        wanted = assembled("w", full, other, rank, {0: stored_values.ArrayValues(array)}).array()
        assert bits(values.array()) == bits(wanted)
        for mesh, given in layouts(wanted.shape):
            device = mesh.devices[-1]
            made = np.empty_like(shard(wanted, given, mesh, device))
            values.fill_part(made, wanted.shape, places_of(wanted.shape, given, mesh, device))
            assert bits(made) == bits(shard(wanted, given, mesh, device))


def test_blocks_cover_a_shape() -> None:
    for shape, most in itertools.product([(), (7,), (3, 5), (2, 3, 4), (0, 2)], (1, 4, 7, 100)):
        seen = np.zeros(shape, int)
        for block in blocks(shape, most):
            assert seen[block].size <= most
            seen[block] += 1
        assert (seen == 1).all()


@pytest.mark.parametrize("axes", [("x", None), (None, "x"), ("x", "y")])
def test_only_the_bytes_of_a_part_are_read(axes: Any, tmp_path: Path, watched: dict[str, int]) -> None:
    array = sample((96, 96), "float32")
    write_safetensors(tmp_path / "a.safetensors", {"w": array, "v": sample((500,), "float32")})
    values = stored_safetensors(tmp_path / "a.safetensors")["w"]
    assert isinstance(values, StoredValues)
    mesh = Mesh((3, 2), ("x", "y"))
    given = sharding(mesh, array.shape, axes)
    watched["bytes"] = 0
    for number, rank in enumerate(mesh.devices, 1):
        part = shard(array, given, mesh, rank)
        values.fill_part(np.empty_like(part), array.shape, places_of(array.shape, given, mesh, rank))
        assert watched["bytes"] == number * part.nbytes


def test_many_short_stretches_are_read_at_once(tmp_path: Path, watched: dict[str, int]) -> None:
    array = sample((50_000, 12), "float32")
    write_ckpt(tmp_path / "a.ckpt", {"w": array})
    values = stored_ckpt(tmp_path / "a.ckpt")["w"]
    assert isinstance(values, StoredValues)
    watched.update(calls=0, bytes=0)
    mesh = Mesh((3,), ("x",))
    given = sharding(mesh, array.shape, (None, "x"))
    part = shard(array, given, mesh, 1)
    made = np.empty_like(part)
    values.fill_part(made, array.shape, places_of(array.shape, given, mesh, 1))
    assert bits(made) == bits(part)
    assert watched["calls"] <= 4 and watched["bytes"] <= array.nbytes


def sparse(path: Path, rows: int, columns: int) -> None:
    """A file of a tensor of which only a few values are there: the first of each 1024th row."""
    header = b'{"w":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}' % (rows, columns, rows * columns * 4)
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for row in range(0, rows, 1024):
            file.seek(8 + len(header) + row * columns * 4)
            file.write(np.float32(row + 1).tobytes())
        file.truncate(8 + len(header) + rows * columns * 4)


def test_a_part_of_more_than_the_memory_is_read(tmp_path: Path, watched: dict[str, int]) -> None:
    rows, columns = 1 << 20, 1 << 18  # a TiB
    try:
        sparse(tmp_path / "a.safetensors", rows, columns)
    except OSError:
        pytest.skip("the file system has no sparse files of this size")
    loaded = ShardedCheckpoint(tmp_path / "a.safetensors").stored("w")
    watched["bytes"] = 0
    places = [np.arange(4096, 4096 + 16), None]
    made = np.empty((16, columns), np.float32)
    loaded.fill_part(made, (rows, columns), places)
    assert made[0, 0] == 4097 and np.count_nonzero(made) == 1 and watched["bytes"] == made.nbytes


class Net(nn.Cell):
    def __init__(self, rows: int = 12, columns: int = 8) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.common.initializer.initializer("normal", (rows, columns)), name="w")
        self.b = ms.Parameter(ms.common.initializer.initializer("normal", (columns,)), name="b")

    def construct(self, x: Any) -> Any:
        return ops.matmul(x, self.w) + self.b


def saved(path: Path, form: str, rows: int = 12, columns: int = 8) -> dict[str, Array]:
    arrays = {"w": sample((rows, columns), "float32"), "b": sample((columns,), "float32", 1)}
    WRITE[form](path, arrays)
    return arrays


def lazily() -> Net:
    with _making, nn.no_init_parameters():
        return Net()


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_rank_reads_its_part_when_the_layout_is_known(
    count: int, form: str, tmp_path: Path, watched: dict[str, int]
) -> None:
    path = tmp_path / f"net.{form}"
    arrays = saved(path, form)
    mesh = Mesh((count,), ("x",))

    def rank(own: int) -> None:
        net = lazily()
        loaded = ms.load_checkpoint(path, net, format=form)
        assert all(isinstance(p, Declared) for p in (*net.get_parameters(), *loaded.values()))
        thread_ranks_ready.wait()
        if own == 0:
            os.remove(path)  # what is open stays readable
            watched["bytes"] = 0
        thread_ranks_ready.wait()
        given = sharding(mesh, (12, 8), ("x",))
        OfRanks(mesh).piece(net.w, given)
        found = held(net.w)
        assert found is not None and found.layout == given
        part = np.asarray(buffers.to_array(found.piece, net.w._type.with_shape((12 // count, 8))))
        assert bits(part) == bits(shard(arrays["w"], given, mesh, own))
        thread_ranks_ready.wait()
        assert watched["bytes"] == arrays["w"].nbytes
        assert bits(whole_value(net.w)) == bits(arrays["w"])
        np.testing.assert_array_equal(net.b.asnumpy(), arrays["b"])

    thread_ranks_ready = threading.Barrier(count)
    thread_ranks.run(count, rank)


def apart(net: Net, mesh: Mesh, own: int) -> None:
    given = sharding(mesh, (12, 8), ("x",))
    hold(net.w, Held(buffers.from_array(shard(net.w.asnumpy(), given, mesh, own)), given, mesh))


def test_a_divided_parameter_reads_its_part_now(tmp_path: Path, watched: dict[str, int]) -> None:
    arrays = saved(tmp_path / "net.safetensors", "safetensors")
    ready = threading.Barrier(3)

    def rank(own: int) -> None:
        with _making:
            net = Net()
        mesh = Mesh((3,), ("x",))
        apart(net, mesh, own)
        lazy = ShardedCheckpoint(tmp_path / "net.safetensors")
        lazy.stored("w")
        ready.wait()
        watched["bytes"] = 0
        ready.wait()
        assert ms.load_param_into_net(
            net, {"w": ms.load_checkpoint(tmp_path / "net.safetensors", format="safetensors")["w"]}
        )[0] == ["b"]
        ready.wait()
        assert held(net.w) is not None and watched["bytes"] <= arrays["w"].nbytes + 3 * 400
        assert bits(whole_value(net.w)) == bits(arrays["w"])

    thread_ranks.run(3, rank)


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_what_does_not_fit_leaves_the_network(form: str, tmp_path: Path) -> None:
    saved(tmp_path / f"net.{form}", form, columns=9)

    def rank(own: int) -> None:
        net = lazily()
        before = net.w.asnumpy().copy()
        for strict in (False, True):
            with pytest.raises(RuntimeError, match="has shape"):
                ms.load_checkpoint(tmp_path / f"net.{form}", net, strict_load=strict, format=form)
        WRITE[form](tmp_path / f"big{own}.{form}", {"w": np.full((12, 8), 1e300), "b": np.zeros(8, np.float32)})
        with pytest.raises(RuntimeError, match="too large for float32"):
            ms.load_checkpoint(tmp_path / f"big{own}.{form}", net, format=form)
        assert bits(net.w.asnumpy()) == bits(before) and isinstance(net.b, Declared)

    thread_ranks.run(2, rank)


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_damaged_files_are_refused_before_anything_is_read(form: str, tmp_path: Path) -> None:
    saved(tmp_path / f"net.{form}", form)
    content = (tmp_path / f"net.{form}").read_bytes()

    def rank(own: int) -> None:
        net, path = lazily(), tmp_path / f"cut{own}.{form}"
        for length in (0, 1, 7, 20, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:length])
            with pytest.raises(CheckpointError):
                ms.load_checkpoint(path, net, format=form)
        with pytest.raises(CheckpointError, match="there is no file"):
            ms.load_checkpoint(tmp_path / f"no.{form}", net, format=form)
        path.write_bytes(content)
        ms.load_checkpoint(path, net, format=form)
        with open(path, "r+b") as file:
            file.truncate(len(content) // 2)
        with pytest.raises(CheckpointError, match="grew shorter"):
            net.w.asnumpy()
        with pytest.raises(CheckpointError, match="checksum"):
            path.write_bytes(content)
            ms.load_checkpoint(path, net, format=form, crc_check=True)

    thread_ranks.run(2, rank)


def test_a_checksum_is_compared_without_reading_whole_tensors(tmp_path: Path) -> None:
    values = [{"name": "w", "data": ms.Tensor(sample((6, 4), "float32"))}, {"name": "n", "data": ms.Tensor(7)}]
    ms.save_checkpoint(values, tmp_path / "a", format="safetensors", crc_check=True)
    assert read_safetensors(tmp_path / "a.safetensors", verify=True).keys() == {"w", "n"}
    assert stored_safetensors(tmp_path / "a.safetensors", verify=True).keys() == {"w", "n"}
    content = bytearray((tmp_path / "a.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="its checksum is"):
        stored_safetensors(tmp_path / "a.safetensors", verify=True)


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_one_tensor_is_joined_at_a_time(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: dict[str, int] = {}

    def watch(tensor: Any) -> Array:
        name, found = threading.current_thread().name, whole_value(tensor)
        assert not alive.get(name), "the values before are gone"
        alive[name] = 1
        weakref.finalize(found, alive.update, {name: 0})
        return found

    monkeypatch.setattr(parameter_slices, "whole_value", watch)

    def rank(own: int) -> None:
        mesh, given = Mesh((2,), ("x",)), sharding(Mesh((2,), ("x",)), (6, 4), ("x",))
        tensors = []
        for number in range(5):
            p = ms.Parameter(sample((6, 4), "float32", number), name=f"p{number}")
            hold(p, Held(buffers.from_array(shard(p.asnumpy(), given, mesh, own)), given, mesh))
            tensors.append(p)
        ms.save_checkpoint(tensors, tmp_path / f"whole{own}", format=form)
        ms.save_checkpoint(tensors, tmp_path / f"part{own}", integrated_save=False, format=form)
        # A rank that cannot write still joins what the other ones write.
        target = tmp_path / ("none/a" if own else "good")
        if own:
            with pytest.raises(OSError):
                ms.save_checkpoint(tensors, target, format=form)
        else:
            ms.save_checkpoint(tensors, target, format=form)
        assert all(held(p) is not None for p in tensors)

    thread_ranks.run(2, rank)
    read = read_ckpt if form == "ckpt" else read_safetensors
    for name in ("whole0", "whole1", "good"):
        found = read(tmp_path / f"{name}.{form}")
        assert all(bits(found[f"p{n}"]) == bits(sample((6, 4), "float32", n)) for n in range(5))  # type: ignore[arg-type]
    halves = [read(tmp_path / f"part{own}.{form}") for own in range(2)]
    assert bits(np.concatenate([h["p3"] for h in halves])) == bits(sample((6, 4), "float32", 3))  # type: ignore[misc]


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_checkpoints_of_some_ranks_are_read_by_others(form: str, tmp_path: Path) -> None:
    arrays = {"w": sample((12, 8), "float32"), "b": sample((8,), "float32", 1)}
    strategy = {"w": entry([4], [0, -1]), "b": entry([4], [-1])}
    write_strategy(tmp_path / "s.ckpt", strategy)
    files = []
    for own in range(4):
        folder = tmp_path / "in" / f"rank_{own}"
        folder.mkdir(parents=True)
        files.append(str(folder / f"net.{form}"))
        WRITE[form](files[-1], {"w": arrays["w"][own * 3 : own * 3 + 3], "b": arrays["b"]})
    if form == "safetensors":
        ms.unified_safetensors(str(tmp_path / "in"), str(tmp_path / "s.ckpt"), str(tmp_path / "one"))
    for count in (1, 3, 5):
        mesh = Mesh((count,), ("x",))

        def rank(own: int, mesh: Mesh = mesh) -> None:
            net = lazily()
            if form == "ckpt":
                ms.load_distributed_checkpoint(net, files, None, str(tmp_path / "s.ckpt"))
            else:
                ms.load_distributed_checkpoint(net, format="safetensors", unified_safetensors_dir=str(tmp_path / "one"))
            if mesh.size > 1:
                assert isinstance(net.w, Declared)
                OfRanks(mesh).piece(net.w, sharding(mesh, (12, 8), ("x",)))
                assert held(net.w) is not None
            assert bits(whole_value(net.w)) == bits(arrays["w"])
            assert bits(net.b.asnumpy()) == bits(arrays["b"])

        thread_ranks.run(count, rank)


def test_boxes_and_places_are_checked() -> None:
    file = OpenFile(__file__)
    with pytest.raises(CheckpointError, match="are not where it says"):
        StoredTensor(file, (4,), np.dtype("f4"), [(file.size - 8, 16)])
    values = JoinedValues(
        (2,), np.dtype("f4"), [(((0, 2),), (1,), stored_values.ArrayValues(np.arange(4, dtype="f4")))]
    )
    assert values.array().tolist() == [1, 2]
