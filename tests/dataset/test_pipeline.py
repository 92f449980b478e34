"""Operations on datasets, against plain Python over lists of rows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mycel.dataset as ds
from mycel.dataset import transforms, vision
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.rows.column_blocks import Block, drop


def numbers(count: int = 7, name: str = "x", **options: Any) -> ds.NumpySlicesDataset:
    options = options or {"shuffle": False}
    return ds.NumpySlicesDataset(np.arange(count), [name], **options)


def rows(data: ds.Dataset) -> list[Any]:
    """One epoch as nested lists, rows of one column as that column alone."""
    found = [[a.tolist() for a in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    return [row[0] if len(row) == 1 else row for row in found]


def pair() -> ds.NumpySlicesDataset:
    return ds.NumpySlicesDataset({"a": [1, 2], "b": [3, 4], "c": [5, 6]}, shuffle=False)


def test_batch_keeps_or_drops_the_remainder() -> None:
    assert rows(numbers().batch(3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert rows(numbers().batch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]
    assert numbers().batch(3).get_dataset_size() == 3
    assert numbers().batch(3, True).get_dataset_size() == 2
    assert numbers().batch(3).repeat(2).get_batch_size() == 3
    assert numbers().batch(300).output_shapes() == [[7]]


def test_batch_size_may_be_a_function_of_the_batch() -> None:
    data = numbers().batch(lambda info: info.get_batch_num() + 1)
    assert rows(data) == [[0], [1, 2], [3, 4, 5], [6]]
    assert data.get_dataset_size() == 4
    assert data.get_batch_size() == -1


def test_per_batch_map_gets_lists_of_arrays_and_the_epoch() -> None:
    def work(column: list[Any], info: ds.BatchInfo) -> Any:
        return ([x + 100 * info.get_epoch_num() + 10 * info.get_batch_num() for x in column],)

    iterator = numbers().batch(3, per_batch_map=work, input_columns=["x"]).create_tuple_iterator(output_numpy=True)
    assert [x.tolist() for (x,) in iterator] == [[0, 1, 2], [13, 14, 15], [26]]
    assert [x.tolist() for (x,) in iterator][0] == [100, 101, 102]
    iterator.stop()
    doubled = pair().batch(2, per_batch_map=lambda a, i: (a, a), input_columns=["a"], output_columns=["p", "q"])
    assert doubled.get_col_names() == ["p", "q", "b", "c"]
    assert rows(doubled) == [[[1, 2], [1, 2], [3, 4], [5, 6]]]


def test_batch_refuses_rows_that_differ() -> None:
    ragged = ds.GeneratorDataset([np.zeros(2), np.zeros(3)], ["x"], shuffle=False)
    with pytest.raises(ValueError, match=r"column 'x': row 1 has shape \(3,\).*padded_batch"):
        rows(ragged.batch(2))
    mixed = ds.GeneratorDataset([np.zeros(2), np.zeros(2, np.float32)], ["x"], shuffle=False)
    with pytest.raises(ValueError, match="row 1 has type float32.*TypeCast"):
        rows(mixed.batch(2))


def test_padded_batch_pads_and_cuts() -> None:
    ragged = ds.GeneratorDataset([np.ones(2), np.ones(3)], ["x"], shuffle=False)
    assert rows(ragged.padded_batch(2, pad_info={"x": ([4], -1)})) == [[[1, 1, -1, -1], [1, 1, 1, -1]]]
    assert rows(ragged.padded_batch(2, pad_info={"x": ([2], 9)})) == [[[1, 1], [1, 1]]]
    assert rows(ragged.padded_batch(2)) == [[[1, 1, 0], [1, 1, 1]]]
    assert rows(ragged.padded_batch(2, pad_info={})) == [[[1, 1, 0], [1, 1, 1]]]
    wide = ds.GeneratorDataset([np.ones((2, 1)), np.ones((3, 1))], ["x"], shuffle=False)
    assert rows(wide.padded_batch(2, pad_info={"x": ([None, 2], 9)})) == [
        [[[1, 9], [1, 9], [9, 9]], [[1, 9], [1, 9], [1, 9]]]
    ]


def test_bucket_batch_by_length_groups_similar_rows() -> None:
    ragged = ds.GeneratorDataset([np.ones(n) for n in (1, 2, 3, 4, 5, 1)], ["x"], shuffle=False)
    data = ragged.bucket_batch_by_length(["x"], [3, 5], [2, 2, 1], pad_info={"x": ([None], 0)})
    assert rows(data) == [
        [[1, 0], [1, 1]],
        [[1, 1, 1, 0], [1, 1, 1, 1]],
        [[1, 1, 1, 1, 1]],
        [[1]],
    ]


def test_map_places_its_outputs_as_mindspore_does() -> None:
    more = pair().map(lambda c, a: (c, a, c + a), ["c", "a"], ["p", "q", "r"])
    assert more.get_col_names() == ["p", "q", "r", "b"]
    assert rows(more) == [[5, 1, 6, 3], [6, 2, 8, 4]]
    renamed = pair().map(lambda b: -b, "b", "z")
    assert renamed.get_col_names() == ["a", "z", "c"]
    assert rows(renamed) == [[1, -3, 5], [2, -4, 6]]
    swapped = pair().map(lambda c, a: (c, a), ["c", "a"], ["z", "a"])
    assert swapped.get_col_names() == ["a", "b", "z"]
    assert rows(pair().map([lambda a, b: (a + 1, b), lambda a, b: a * 2 + b], ["a", "b"], ["z"])) == [[7, 5], [10, 6]]
    assert rows(pair().map(lambda first: first * 10)) == [[10, 3, 5], [20, 4, 6]]


def test_map_errors_name_the_place() -> None:
    def faulty(x: Any) -> Any:
        if x == 2:
            raise KeyError("no such thing")
        return x

    data = numbers().map(faulty, "x")
    seen = []
    with pytest.raises(RuntimeError, match=r"operation 'faulty' failed on column 'x', row 2: KeyError") as caught:
        for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            seen.append(row)
    assert isinstance(caught.value.__cause__, KeyError)
    frames = caught.value.__cause__.__traceback__
    names = []
    while frames is not None:
        names.append(frames.tb_frame.f_code.co_name)
        frames = frames.tb_next
    assert "faulty" in names
    with pytest.raises(RuntimeError, match="must return the new value"):
        rows(numbers().map(lambda x: None, "x"))
    with pytest.raises(ValueError, match="there is no column 'y'; the columns are \\['x'\\]"):
        numbers().map(faulty, "y")
    with pytest.raises(ValueError, match="name used twice"):
        pair().map(lambda a: a, "a", "b")


def test_threads_keep_the_order_and_run_at_once() -> None:
    barrier = threading.Barrier(4, timeout=10)

    def meet(x: Any) -> Any:
        if x < 4:
            barrier.wait()
        return x * 2

    data = ds.NumpySlicesDataset(np.array([0, 1, 2, 3] + [9] * 28), ["x"], shuffle=False)
    expected = (data._arrays["x"] * 2).tolist()
    assert rows(data.map(meet, "x", num_parallel_workers=4).batch(32)) == [expected]


def test_operations_cannot_write_into_the_source() -> None:
    source = np.arange(6)

    def spoil(x: Any) -> Any:
        x[...] = -1
        return x

    rows(ds.NumpySlicesDataset(source.reshape(3, 2), ["x"], shuffle=False).map(spoil, "x"))
    rows(ds.GeneratorDataset(list(source.reshape(3, 2)), ["x"], shuffle=False).map(spoil, "x"))
    assert source.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("workers", [None, 3])
def test_blocks_and_single_rows_draw_the_same(workers: int | None) -> None:
    images = np.arange(40 * 4 * 3 * 1, dtype=np.int64).reshape(40, 4, 3, 1) % 256
    ds.config.set_seed(11)

    def run(flip: Any) -> Any:
        data = ds.NumpySlicesDataset({"image": images.astype(np.uint8)}, shuffle=False)
        return np.concatenate(rows(data.map(flip, "image", num_parallel_workers=workers).batch(7)))

    class RowByRow(vision.RandomHorizontalFlip):
        vectorised = False

    together = run(vision.RandomHorizontalFlip(0.5))
    assert (together == run(RowByRow(0.5))).all()
    assert (together == run(transforms.Compose([vision.RandomHorizontalFlip(0.5)]))).all()
    flipped = [not (a == b).all() for a, b in zip(together, images)]
    assert 8 < sum(flipped) < 32


def test_shuffle_uses_its_buffer() -> None:
    order = rows(numbers(50).shuffle(4))
    assert sorted(order) == list(range(50))
    assert order != list(range(50))
    # A row leaves at the earliest when it enters the buffer: at most 4 places early.
    assert all(value <= place + 4 for place, value in enumerate(order))
    ds.config.set_seed(3)
    assert rows(numbers(50).shuffle(100)) == rows(numbers(50).shuffle(100))
    first_places = [rows(numbers(4).shuffle(4).repeat(300))[i::4] for i in range(1)][0]
    assert np.bincount(first_places, minlength=4).min() > 40
    with pytest.raises(ValueError, match="buffer_size must be within"):
        numbers().shuffle(1)


def test_every_pass_shuffles_anew_and_repeats_with_the_seed() -> None:
    ds.config.set_seed(5)
    iterator = numbers(20, shuffle=True).create_tuple_iterator(num_epochs=3, output_numpy=True)
    epochs = [[int(x) for (x,) in iterator] for _ in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    assert rows(numbers(20, shuffle=True).repeat(3)) == sum(epochs, [])


def test_repeat_take_and_skip() -> None:
    assert rows(numbers(3).repeat(2)) == [0, 1, 2, 0, 1, 2]
    assert rows(numbers(3).repeat().take(7)) == [0, 1, 2, 0, 1, 2, 0]
    assert numbers(3).repeat().take(7).get_dataset_size() == 7
    assert numbers(3).repeat(2).get_dataset_size() == 6
    assert numbers(3).repeat(2).repeat(4).get_repeat_count() == 4
    assert numbers(3).repeat(-1).get_repeat_count() == -1
    assert rows(numbers(3).take(2).repeat(2)) == [0, 1, 0, 1]
    assert rows(numbers(3).skip(2)) == [2]
    assert rows(numbers(3).skip(9)) == []
    assert numbers(3).skip(9).get_dataset_size() == 0
    assert numbers(3).take(-1).get_dataset_size() == 3
    for make in (lambda d: d.repeat(0), lambda d: d.take(0), lambda d: d.skip(-1), lambda d: d.batch(0)):
        with pytest.raises(ValueError, match="must be within"):
            make(numbers())


def test_zip_and_concat() -> None:
    both = ds.zip((numbers(2, "x"), numbers(3, "y")))
    assert both.get_col_names() == ["x", "y"] and both.get_dataset_size() == 2
    assert rows(both) == [[0, 0], [1, 1]]
    assert rows(numbers(2).concat([numbers(1), numbers(2)])) == [0, 1, 0, 0, 1]
    assert (numbers(2) + numbers(3)).get_dataset_size() == 5
    with pytest.raises(ValueError, match="name used twice"):
        ds.zip((numbers(), numbers()))
    with pytest.raises(ValueError, match="the columns differ"):
        numbers(1, "x") + numbers(1, "y")
    with pytest.raises(TypeError, match="type int64 in one dataset and float64"):
        rows(numbers(1) + ds.NumpySlicesDataset([1.0], ["x"]))


def test_zip_of_shuffled_twins_stays_aligned() -> None:
    data = ds.zip((numbers(30, "x", shuffle=True), numbers(30, "y", shuffle=True)))
    assert all(x == y for x, y in rows(data))


def test_filter_project_rename_apply_flat_map() -> None:
    assert rows(numbers().filter(lambda x: x > 4, "x")) == [5, 6]
    assert numbers().filter(lambda x: x > 4).get_dataset_size() == 2
    assert rows(pair().project(["c", "a"])) == [[5, 1], [6, 2]]
    assert pair().rename(["a", "b"], ["b", "a"]).get_col_names() == ["b", "a", "c"]
    assert rows(numbers().apply(lambda d: d.take(1))) == [0]
    assert rows(numbers(3).flat_map(lambda x: ds.NumpySlicesDataset([int(x)] * int(x + 1), shuffle=False))) == [
        0,
        1,
        1,
        2,
        2,
        2,
    ]
    with pytest.raises(ValueError, match="no column 'z'"):
        pair().project("z")
    with pytest.raises(ValueError, match="name used twice"):
        pair().rename("a", "b")


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("make", [numbers, lambda n: numbers(n).map(lambda x: x, "x")])
def test_split_shares_no_row(make: Any, randomize: bool) -> None:
    parts = make(20).split([0.7, 0.3], randomize)
    assert [part.get_dataset_size() for part in parts] == [14, 6]
    found = [rows(part) for part in parts]
    assert sorted(sum(found, [])) == list(range(20))
    iterator = parts[0].create_tuple_iterator(num_epochs=2, output_numpy=True)
    epochs = [[int(x) for (x,) in iterator] for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(found[0])
    if randomize:
        assert epochs[0] != epochs[1]
    else:
        assert found == [list(range(14)), list(range(14, 20))]


def test_split_of_a_shuffled_source_and_its_errors() -> None:
    parts = numbers(20, shuffle=True).split([15, 5], randomize=False)
    assert sorted(rows(parts[0]) + rows(parts[1])) == list(range(20))
    assert [p.get_dataset_size() for p in numbers(7).split([0.5, 0.3, 0.2])] == [4, 2, 1]
    with pytest.raises(RuntimeError, match="sum to 6, but the dataset has 7"):
        numbers().split([3, 3])
    with pytest.raises(ValueError, match="not to 1"):
        numbers().split([0.3, 0.3])


def test_what_is_known_without_running() -> None:
    data = ds.NumpySlicesDataset({"x": np.zeros((3, 2), np.float32), "t": ["a", "bcd", "e"]})
    assert data.output_shapes() == [[2], []]
    assert data.output_types() == [np.dtype("float32"), np.dtype("<U")]
    assert numbers().batch(2).output_shapes(estimate=True) == [[None]]
    assert (data.num_classes(), data.get_class_indexing(), data.get_repeat_count()) == (None, {}, 1)
    assert data.is_shuffled() and not data.is_sharded()


@settings(max_examples=100, deadline=None)
@given(
    size=st.integers(1, 40),
    skip=st.integers(0, 50),
    steps=st.lists(
        st.sampled_from(["batch", "shuffle", "repeat", "take", "skip", "map", "filter", "zip", "concat", "split"]),
        max_size=4,
    ),
    number=st.integers(2, 5),
)
def test_skipping_equals_dropping(size: int, skip: int, steps: list[str], number: int) -> None:
    data: ds.Dataset = numbers(size, shuffle=True)
    for position, step in enumerate(steps):
        if step == "batch":
            if data.get_batch_size() > 1:
                continue
            data = data.batch(number, drop_remainder=True)
        elif step == "map":
            data = data.map(transforms.TypeCast(np.int32), data.get_col_names()[0])
        elif step == "filter":
            data = data.filter(lambda *columns: columns[0].sum() % 3 != 0)
        elif step == "zip":
            data = data.zip(numbers(size + 3, f"y{position}"))
        elif step == "concat":
            data = data + data
        elif step == "split":
            if data.get_dataset_size() < 2:
                continue
            data = data.split([1, data.get_dataset_size() - 1])[1]
        else:
            data = getattr(data, step)(number)
    run = Run(1, 2)
    whole = [[a.tolist() for a in row] for block in data._blocks(run, 0) for row in block.rows()]
    part = [[a.tolist() for a in row] for block in data._blocks(run.with_block(3), skip) for row in block.rows()]
    assert part == whole[skip:]
    # What a filter keeps of random batches differs between epochs.
    assert "filter" in steps or len(whole) == data.get_dataset_size()


def test_prefetching_is_bounded() -> None:
    made = []

    def source() -> Any:
        for i in range(1000):
            made.append(i)
            yield i

    ds.config.set_prefetch_size(2)
    iterator = ds.GeneratorDataset(source, ["x"]).create_tuple_iterator(num_epochs=1, output_numpy=True)
    next(iterator)
    time.sleep(0.05)
    assert len(made) <= 8
    iterator.release()


def test_methods_make_datasets_of_the_published_classes() -> None:
    class Squares(ds.Dataset):
        def _columns(self) -> list[str]:
            return ["x"]

        def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
            return drop([Block([np.arange(6) ** 2], 6)], skip)

    own = Squares()
    made = {
        ds.MapDataset: own.map(lambda x: x + 1),
        ds.BatchDataset: own.batch(2),
        ds.PaddedBatchDataset: own.padded_batch(2),
        ds.BucketBatchByLengthDataset: own.bucket_batch_by_length(["x"], [3], [1, 1], lambda x: 1),
        ds.ShuffleDataset: own.shuffle(2),
        ds.RepeatDataset: own.repeat(2),
        ds.TakeDataset: own.take(2),
        ds.SkipDataset: own.skip(2),
        ds.FilterDataset: own.filter(lambda x: x > 1),
        ds.ProjectDataset: own.project("x"),
        ds.RenameDataset: own.rename("x", "y"),
        ds.ZipDataset: own.zip(numbers(6, "z")),
        ds.ConcatDataset: own + numbers(3),
    }
    for kind, data in made.items():
        assert type(data) is kind and isinstance(data, ds.Dataset)
        assert data.take(1).get_dataset_size() == 1
    assert isinstance(made[ds.PaddedBatchDataset], ds.BatchDataset)
    parts = own.split([2, 4], randomize=False)
    assert [rows(part) for part in parts] == [[0, 1], [4, 9, 16, 25]]


def test_the_length_of_a_dataset() -> None:
    rows = ds.NumpySlicesDataset([1, 2, 3, 4], shuffle=False)
    assert len(rows) == 4 and len(rows.batch(3)) == 2 and len(rows.repeat(2)) == 8
    odd = rows.filter(lambda x: x % 2 == 1)
    assert len(odd) == 2 and len(ds.GeneratorDataset(lambda: iter([(1,), (2,)]), ["a"])) == 2
    assert odd and not rows.filter(lambda x: x > 7)


PAIR = {"x": [1, 2], "word": ["a", "b"]}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "make, kind",
    [
        (lambda d: d.padded_batch(2, pad_info={"x": ([3], 0)}), ValueError),
        (lambda d: d + ds.NumpySlicesDataset({"x": ["a"], "word": ["b"]}), TypeError),
        (lambda d: ds.NumpySlicesDataset(PAIR, sampler=ds.SequentialSampler(start_index=9)), ValueError),
        (lambda d: ds.GeneratorDataset([1, 2], ["x"], sampler=ds.SubsetSampler([5])), ValueError),
    ],
)
def test_what_is_wrong_with_rows_is_a_runtime_error_too(
    make: Any, kind: type[Exception], debug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ds.config._settings, "debug_mode", debug)
    data = make(ds.NumpySlicesDataset(PAIR, shuffle=False))
    for ask in (lambda: list(data), lambda: list(data.batch(3)), lambda: data.batch(3).output_shapes()):
        with pytest.raises(kind) as caught:
            ask()
        # MindSpore's users catch RuntimeError.
        assert isinstance(caught.value, RuntimeError) and str(caught.value)


def test_the_last_of_several_datasets_says_how_many_classes_there_are(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"x")
    images, numbers = ds.ImageFolderDataset(os.fspath(tmp_path)), ds.NumpySlicesDataset({"n": [1]})
    assert numbers.zip(images).num_classes() == 2 and images.zip(numbers).num_classes() is None
