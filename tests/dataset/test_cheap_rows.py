"""Rows that cost little: many batches at once, threads where they are worth it, joined transforms.

However rows are grouped on their way, they are those that come one by one.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.engines.routines import are_on
from mycel.dataset import audio, config, text, transforms, vision
from mycel.dataset.audio import resampling
from mycel.dataset.audio.stft import pad_ends
from mycel.dataset.execution import threaded_stages, worker_pool
from mycel.dataset.iteration.iterators import _Queue
from mycel.dataset.nodes.map_execution import Applied
from mycel.dataset.text.fused_transforms import TextChain


def _rows(data: Any, skip: int = 0) -> list[list[Any]]:
    rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    if skip:
        rows.load_state_dict({**rows.state_dict(), "step": skip})
    return [[part.tolist() for part in row] for row in rows]


def _source(kind: int, count: int) -> Any:
    x = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    if kind == 0:
        return ds.NumpySlicesDataset({"x": x, "n": np.arange(count)}, shuffle=False)
    if kind == 1:
        return ds.NumpySlicesDataset({"x": x, "w": [f"word{n}" for n in range(count)]}, shuffle=False)
    if kind == 2:
        return ds.NumpySlicesDataset({"x": x, "n": np.arange(count)}, sampler=ds.SubsetSampler([*range(count)][::-1]))
    return ds.GeneratorDataset([(row, np.int64(n)) for n, row in enumerate(x)], ["x", "n"], shuffle=False)


def _expected(rows: list[list[Any]], size: int, drop: bool) -> list[list[Any]]:
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [[list(part) for part in zip(*group)] for group in groups if len(group) == size or not drop]


@pytest.mark.parametrize("kind", range(4))
def test_batches_are_their_rows(kind: int) -> None:
    random = np.random.default_rng(kind)
    for count in (1, 7, 64, 700, 2100):
        size, drop = int(random.integers(1, 80)), bool(random.integers(2))
        workers = None if random.integers(2) else 2
        data = _source(kind, count)
        if random.integers(2):
            data = data.map(vision.Rescale(0.5, 1.0), "x", num_parallel_workers=workers)
        if random.integers(2):
            data = data.repeat(2)
        if random.integers(2):
            data = data.skip(3).take(500)
        if random.integers(2):
            data = data + data
        expected = _expected(_rows(data), size, drop)
        batched = data.batch(size, drop_remainder=drop)
        assert _rows(batched) == expected
        skip = len(expected) // 2
        if skip:
            assert _rows(batched, skip) == expected[skip:]
        if drop:
            again = [row for pair in _rows(batched.batch(2)) for row in zip(*pair)]
            assert [list(row) for row in again] == expected


def test_batches_share_no_memory() -> None:
    batches = [
        row[0]
        for row in ds.NumpySlicesDataset(np.zeros(900), shuffle=False)
        .batch(10)
        .create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]
    for number, batch in enumerate(batches):
        batch[...] = number
    assert [batch.tolist() for batch in batches] == [[float(n)] * 10 for n in range(90)]


@pytest.mark.parametrize("cheap", [0.0, 1.0])
def test_rows_are_the_same_where_they_are_made(cheap: float, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).integers(0, 256, (600, 9, 8, 3), dtype=np.uint8)
    operations = [vision.RandomHorizontalFlip(), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]

    def made(workers: int | None) -> Any:
        with _seeded(5):
            data = ds.NumpySlicesDataset({"x": x}, shuffle=True)
            return _rows(data.map(operations, "x", num_parallel_workers=workers).project("x").batch(32))

    expected = made(None)
    monkeypatch.setattr(threaded_stages, "CHEAP", cheap)
    assert made(2) == expected


class _seeded:
    def __init__(self, seed: int) -> None:
        self.seed, self.before = seed, config.get_seed()

    def __enter__(self) -> None:
        config.set_seed(self.seed)

    def __exit__(self, *error: object) -> None:
        config.set_seed(self.before)


@pytest.mark.parametrize("cheap", [0.0, 1.0])
def test_a_row_that_fails_comes_after_those_before_it(cheap: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded_stages, "CHEAP", cheap)
    words = text.Vocab.from_list(["a", "b"])
    data = ds.NumpySlicesDataset({"x": ["a", "b"] * 200 + ["c"] + ["a"] * 50}, shuffle=False)
    rows = data.map(text.Lookup(words), "x", num_parallel_workers=2).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    )
    found = []
    with pytest.raises(RuntimeError, match="row 400.*'c' is not in the vocabulary"):
        for (number,) in rows:
            found.append(int(number))
    assert found == [0, 1] * 200


def _put(queue: _Queue, count: int) -> threading.Thread:
    thread = threading.Thread(target=lambda: [queue.put(n) for n in range(count)])
    thread.start()
    return thread


@pytest.mark.parametrize("size", [1, 2, 16])
def test_a_queue_gives_what_was_put(size: int) -> None:
    queue = _Queue(size)
    thread = _put(queue, 3000)
    assert [queue.get() for _ in range(3000)] == list(range(3000))
    thread.join()
    waiting = _put(queue, size + 1)
    queue.close()
    waiting.join()
    assert not queue.put(1)


TOKENIZERS = [
    lambda: text.WhitespaceTokenizer(),
    lambda: text.UnicodeCharTokenizer(),
    lambda: text.UnicodeScriptTokenizer(),
    lambda: text.RegexTokenizer("[ ,]", ","),
    lambda: text.BasicTokenizer(True),
]
LINES = ["one two  three", "", "  ", "two,one", "four\x1cone two", "eins zwei", "three " * 9, "\u2003one\u00a0two"]


@pytest.mark.parametrize("number", range(len(TOKENIZERS)))
@pytest.mark.parametrize("padding", [None, [5], [1], [None]])
def test_joined_text_transforms_give_what_they_give_alone(number: int, padding: Any) -> None:
    vocabulary = text.Vocab.from_list(["one", "two", "three", "o", "n", "e", ","], special_tokens=["<unk>"])
    operations = [TOKENIZERS[number](), text.Lookup(vocabulary, "<unk>", np.int64)]
    if padding is not None:
        operations.append(transforms.PadEnd(padding, 7))
    applied = Applied(operations, ["x"], ["x"], [0], [0])
    assert isinstance(applied.steps[0][1], TextChain)
    expected = []
    for line in LINES:
        value: Any = np.array(line)
        for operation in operations:
            value = operation(value)
        expected.append((value.dtype, value.tolist()))
    for source in (
        ds.NumpySlicesDataset({"x": LINES}, shuffle=False),
        ds.GeneratorDataset(LINES, ["x"], shuffle=False),
    ):
        rows = source.map(operations, "x").create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert [(row.dtype, row.tolist()) for (row,) in rows] == expected


def test_joined_text_transforms_name_the_row_and_the_word() -> None:
    words = text.Vocab.from_list(["one", "two"])
    data = ds.NumpySlicesDataset({"x": ["one two", "two", "three"]}, shuffle=False)
    rows = data.map([text.WhitespaceTokenizer(), text.Lookup(words)], "x").create_tuple_iterator(num_epochs=1)
    assert len(next(rows)[0]) == 2 and len(next(rows)[0]) == 1
    with pytest.raises(RuntimeError, match="row 2.*'three' is not in the vocabulary"):
        next(rows)


@pytest.mark.skipif(not are_on(), reason="the reference engine leaves all to NumPy")
@pytest.mark.parametrize("rates", [(2, 1), (1, 2), (441, 160), (160, 441), (7, 5), (1, 9), (100, 1)])
def test_the_routine_of_resampling_gives_what_numpy_gives(rates: tuple[int, int]) -> None:
    source, target = rates
    for length in (1, 2, 30, 900):
        wave = np.random.default_rng(length).standard_normal((2, 3, length))
        count = -(-target * length // source)
        reach, weights = resampling._weights(
            source, target, min(target, count), audio.ResampleMethod.SINC_INTERPOLATION, 6, 0.99, None
        )
        given = wave, source, target, count, reach, weights
        np.testing.assert_array_equal(resampling._side_by_side(*given), resampling._tap_by_tap(*given))


def test_sounds_in_pieces_are_those_of_the_block() -> None:
    waves = np.random.default_rng(0).standard_normal((9, 20000)).astype(np.float32)
    for operation in (audio.MelSpectrogram(16000), audio.Spectrogram(), audio.Resample(3, 2)):
        np.testing.assert_array_equal(operation.apply_block(waves, None), operation.compute(waves, 1))


def test_ends_are_padded_as_numpy_does() -> None:
    for mode in audio.BorderType:
        for length, before, after in ((5, 4, 4), (5, 0, 3), (5, 3, 0), (5, 5, 4), (1, 0, 0), (2, 1, 1), (9, 2, 8)):
            array = np.random.default_rng(0).random((2, length))
            found = pad_ends(array, before, after, mode)
            expected = np.pad(
                array, [(0, 0), (before, after)], mode.value if isinstance(mode.value, str) else mode.name.lower()
            )
            np.testing.assert_array_equal(found, expected)


def _same(x: Any) -> Any:
    return x


@pytest.mark.skipif(not worker_pool.has_processes("test"), reason="no worker processes on this system")
def test_the_fork_server_starts_with_the_pipeline() -> None:
    worker_pool._server.forget()
    ds.NumpySlicesDataset(np.zeros(3), shuffle=False).map(_same, python_multiprocessing=True)
    assert worker_pool._server.process is not None and worker_pool._server.process.poll() is None
