"""Sources: what they yield, and what they say about input that is wrong."""

from __future__ import annotations

import gzip
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.foundation.files import idx_format


def rows(data: ds.Dataset) -> list[Any]:
    return [[a.tolist() for a in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]


class Squares:
    def __init__(self, count: int = 5) -> None:
        self.count = count

    def __getitem__(self, index: int) -> tuple[int, float]:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index, float(index * index)

    def __len__(self) -> int:
        return self.count


class Restarting:
    def __iter__(self) -> Restarting:
        self.at = 0
        return self

    def __next__(self) -> tuple[int]:
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return (self.at,)


def test_numpy_slices_of_every_form() -> None:
    assert rows(ds.NumpySlicesDataset([1, 2], shuffle=False)) == [[1], [2]]
    assert ds.NumpySlicesDataset(([1, 2], [3.0, 4.0])).get_col_names() == ["column_0", "column_1"]
    assert rows(ds.NumpySlicesDataset(([1, 2], [3.0, 4.0]), ["a", "b"], shuffle=False)) == [[1, 3.0], [2, 4.0]]
    assert rows(ds.NumpySlicesDataset([[1, 2], [3, 4]], shuffle=False)) == [[[1, 2]], [[3, 4]]]
    assert rows(ds.NumpySlicesDataset([[1], [2, 3]], shuffle=False)) == [[[1]], [[2, 3]]]
    assert rows(ds.NumpySlicesDataset(["a", "bb"], shuffle=False).batch(2)) == [[["a", "bb"]]]
    assert sorted(rows(ds.NumpySlicesDataset(list(range(9))))) == [[i] for i in range(9)]


def test_numpy_slices_refuses_what_is_no_table() -> None:
    with pytest.raises(ValueError, match=r"columns differ in length: \{'column_0': 2, 'column_1': 1\}"):
        ds.NumpySlicesDataset(([1, 2], [3]))
    with pytest.raises(ValueError, match="data is empty"):
        ds.NumpySlicesDataset([])
    with pytest.raises(ValueError, match="1 columns of data, but 2 names"):
        ds.NumpySlicesDataset([1], ["a", "b"])
    with pytest.raises(TypeError, match="wrap it in a list"):
        ds.NumpySlicesDataset(np.array(3))


def test_generator_reads_by_number_in_any_order() -> None:
    data = ds.GeneratorDataset(Squares(), ["n", "square"], shuffle=False)
    assert rows(data) == [[i, float(i * i)] for i in range(5)]
    assert data.get_dataset_size() == 5
    shuffled = ds.GeneratorDataset(Squares(50), ["n", "square"])
    assert sorted(rows(shuffled)) == [[i, float(i * i)] for i in range(50)] != rows(shuffled)
    threads = ds.GeneratorDataset(Squares(50), ["n", "square"], num_parallel_workers=3, shuffle=False)
    assert rows(threads) == [[i, float(i * i)] for i in range(50)]
    shard = ds.GeneratorDataset(Squares(5), ["n", "square"], shuffle=False, num_shards=2, shard_id=1)
    assert [n for n, _ in rows(shard)] == [1, 3, 0]


def test_generator_reads_iterables_again_each_epoch() -> None:
    for source in (lambda: iter([(1,), (2,), (3,)]), Restarting()):
        data = ds.GeneratorDataset(source, ["n"])
        assert rows(data) == rows(data) == [[1], [2], [3]]
        assert data.get_dataset_size() == 3
    assert rows(ds.GeneratorDataset(Restarting(), ["n"], num_samples=2)) == [[1], [2]]


def test_generator_used_up_is_an_error_and_not_an_empty_epoch() -> None:
    data = ds.GeneratorDataset((i for i in range(3)), ["n"])
    assert rows(data) == [[0], [1], [2]]
    with pytest.raises(RuntimeError, match="was read to its end before"):
        rows(data)


def test_generator_batches_by_its_own_sampler() -> None:
    data = ds.GeneratorDataset(Squares(), ["n", "square"], batch_sampler=[[0, 1], [2, 3, 4]])
    assert rows(data) == [[[0, 1], [0.0, 1.0]], [[2, 3, 4], [4.0, 9.0, 16.0]]]
    assert data.get_dataset_size() == 2
    total = ds.GeneratorDataset(
        Squares(), ["sum"], batch_sampler=[[0, 1], [2]], collate_fn=lambda items: sum(n for n, _ in items)
    )
    assert rows(total) == [[1], [2]]
    # Batches may differ in size, as MindSpore says too.
    assert data.get_batch_size() == -1 and ds.GeneratorDataset(Squares(), ["n", "square"]).get_batch_size() == 1


class Named:
    """Rows that are dictionaries."""

    def __getitem__(self, index: int) -> Any:
        return {"n": index, "pair": np.array([index, 2])}

    def __len__(self) -> int:
        return 6


@pytest.mark.parametrize("workers, processes", [(1, False), (3, False), (2, True)])
def test_batches_of_dictionaries_and_workers_for_batches(workers: int, processes: bool) -> None:
    options = {"num_parallel_workers": workers, "python_multiprocessing": processes}
    batches = ([n % 6, n % 5] for n in range(4))
    data = ds.GeneratorDataset(Named(), ["d"], batch_sampler=list(batches), **options)
    made = [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert [d["n"].tolist() for d in made] == [[n, n] for n in range(4)]
    assert made[3]["pair"].tolist() == [[3, 2], [3, 2]]
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    next(iterator), next(iterator)
    again = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    again.load_state_dict(iterator.state_dict())
    assert [row[0]["n"].tolist() for row in again] == [[2, 2], [3, 3]]


def test_batches_of_a_batch_sampler_have_workers() -> None:
    seen: set[int] = set()
    both = threading.Barrier(2, timeout=20)

    def collate(items: list[Any]) -> Any:
        seen.add(threading.get_ident())
        both.wait()
        return len(items)

    options: dict[str, Any] = {"num_parallel_workers": 2, "python_multiprocessing": False}
    data = ds.GeneratorDataset(
        Squares(), ["n"], batch_sampler=[[0], [1, 2], [1], [2, 0]], collate_fn=collate, **options
    )
    assert rows(data) == [[1], [2], [1], [2]] and len(seen) == 2


def test_batches_of_rows_that_differ_are_an_error() -> None:
    mixed = ds.GeneratorDataset([1, 2.5, [1, 2]], ["x"], batch_sampler=[[0, 1]])
    with pytest.raises(RuntimeError, match="batch 0: ValueError: column 'x': row 1 has type float64 but the first"):
        rows(mixed)
    ragged = ds.GeneratorDataset([1, 2.5, [1, 2]], ["x"], batch_sampler=[[0, 2]])
    with pytest.raises(RuntimeError, match="row 1 has shape"):
        rows(ragged)


def test_generator_errors_name_row_and_cause() -> None:
    class Broken(Squares):
        def __getitem__(self, index: int) -> Any:
            return 1 // (index - 2)

    data = ds.GeneratorDataset(Broken(), ["n"], shuffle=False)
    seen = []
    with pytest.raises(RuntimeError, match="'Broken' failed on column 'n', row 2: ZeroDivisionError") as caught:
        for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            seen.append(int(row[0]))
    assert seen == [-1, -1]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(RuntimeError, match="2 values for 1 columns"):
        rows(ds.GeneratorDataset([(1, 2)], ["n"], shuffle=False))
    with pytest.raises(RuntimeError, match="should have type float32 by column_types, but the source gave int64"):
        rows(ds.GeneratorDataset([np.int64(1)], ["n"], column_types=[np.float32]))
    with pytest.raises(ValueError, match="column_names are missing"):
        ds.GeneratorDataset([1])
    with pytest.raises(TypeError, match="source must be a function"):
        ds.GeneratorDataset(5, ["n"])
    with pytest.raises(ValueError, match="num_shards needs a source with __getitem__"):
        ds.GeneratorDataset(Restarting(), ["n"], num_shards=2, shard_id=0)


def write_mnist(folder: Path, ending: str = "") -> dict[str, Any]:
    random = np.random.default_rng(0)
    expected = {}
    for part, count in (("train", 20), ("t10k", 6)):
        images = random.integers(0, 256, (count, 28, 28)).astype(np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        # Written by hand, so that reading is not tested against our own writer.
        for name, content in (
            (f"{part}-images-idx3-ubyte", struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes()),
            (f"{part}-labels-idx1-ubyte", struct.pack(">II", 2049, count) + labels.tobytes()),
        ):
            (folder / (name + ending)).write_bytes(gzip.compress(content) if ending else content)
        expected[part] = (images, labels)
    return expected


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_mnist_reads_its_files(tmp_path: Path, ending: str) -> None:
    expected = write_mnist(tmp_path, ending)
    for usage, parts in (("train", ["train"]), ("test", ["t10k"]), (None, ["t10k", "train"])):
        data = ds.MnistDataset(str(tmp_path), usage=usage, shuffle=False)
        found = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
        images = np.concatenate([expected[part][0] for part in parts])
        labels = np.concatenate([expected[part][1] for part in parts])
        assert data.get_dataset_size() == len(found) == len(images)
        assert all((row["image"][..., 0] == image).all() for row, image in zip(found, images))
        assert [int(row["label"]) for row in found] == labels.tolist()
    assert data.output_types() == [np.dtype("uint8"), np.dtype("uint32")]
    assert data.output_shapes() == [[28, 28, 1], []]


def test_mnist_refuses_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no directory"):
        ds.MnistDataset(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no file t10k-images-idx3-ubyte or"):
        ds.MnistDataset(tmp_path, usage="test")
    write_mnist(tmp_path)
    with pytest.raises(ValueError, match="usage must be one of 'train', 'test', 'all', not 'valid'"):
        ds.MnistDataset(tmp_path, usage="valid")
    path = tmp_path / "train-images-idx3-ubyte"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(
        ValueError, match="is truncated: its header says 20x28x28, which takes 15680 bytes, but it holds 15675"
    ):
        next(iter(ds.MnistDataset(tmp_path, usage="train")))
    path.write_bytes(whole + b"x")
    with pytest.raises(ValueError, match="has bytes left over"):
        next(iter(ds.MnistDataset(tmp_path, usage="train")))
    path.write_bytes(b"\x89PNG" + whole)
    with pytest.raises(ValueError, match="is not an IDX file: it starts with the bytes 89504e47"):
        next(iter(ds.MnistDataset(tmp_path, usage="train")))
    path.write_bytes(whole)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 3) + b"abc")
    with pytest.raises(ValueError, match="20 images but 3 labels"):
        next(iter(ds.MnistDataset(tmp_path, usage="train")))


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_header_that_lies_allocates_nothing(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"huge{ending}"
    content = struct.pack(">IIII", 2051, 2**32 - 1, 2**32 - 1, 2**32 - 1) + b"\0" * 100
    path.write_bytes(gzip.compress(content) if ending else content)
    with pytest.raises(ValueError, match="is truncated"):
        idx_format.read_idx(path)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_round_trip(tmp_path: Path, dtype: str, ending: str) -> None:
    array = np.arange(-6, 18).reshape(2, 3, 4).astype(dtype)
    path = tmp_path / f"a{ending}"
    idx_format.write_idx(path, array)
    assert (idx_format.read_idx(path) == array).all()
    with pytest.raises(TypeError, match="IDX has no type complex64"):
        idx_format.write_idx(path, array.astype(np.complex64))


def test_truncated_gzip_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    idx_format.write_idx(path, np.random.default_rng(0).integers(0, 256, (50, 50)).astype(np.uint8))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="a.gz. cannot be decompressed as GZIP: it is cut off"):
        idx_format.read_idx(path)


def test_sets_read_their_files_when_rows_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(2 * 3073))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    sets = [
        ds.MnistDataset(tmp_path, "train"),
        ds.Cifar10Dataset(tmp_path, "train", shuffle=False),
        ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=False),
    ]
    assert all(not data._held for data in sets)
    assert [data.get_dataset_size() for data in sets[:2]] == [20, 2] and all(not data._held for data in sets[:2])
    assert [data.get_col_names() for data in sets] == [["image", "label"], ["image", "label"], ["text"]]
    first, second = sets[1].split([1, 1])
    assert not sets[1]._held and len(list(first)) == 1
    # Parts share what was read.
    assert sets[1]._held and second._held is sets[1]._held
    assert [str(row[0]) for row in sets[2]] == ["one", "two"]
