"""Threads that nobody asked for: where rows are dear and all work is the library's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import mycel.dataset as ds
from mycel.dataset import audio, config, text, vision
from mycel.dataset.execution import threaded_stages


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(config, "offered_workers", lambda: 2)
    # Dearer than any machine's worst, and cheaper than all.
    monkeypatch.setattr(threaded_stages, "DEAR", 1e-9)
    before = config._settings["seed"]
    config.set_seed(3)
    yield
    config._settings["seed"] = before


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "class").mkdir()
    for number in range(40):
        pixels = np.full((24, 32, 3), 5 * number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "class" / f"{number:02d}.jpg")
    return str(tmp_path)


def _images(folder: str, *operations: Any, **options: Any) -> Any:
    found = [vision.Decode(), vision.RandomCrop(16), vision.RandomHorizontalFlip(), *operations]
    return ds.ImageFolderDataset(folder, shuffle=False).map(found, "image", **options).batch(4)


def _kinds(data: Any) -> dict[str, tuple[str, int]]:
    return {node.name: (node.kind, node.workers) for node in ds.profile(data).nodes}


def _rows(data: Any) -> list[Any]:
    return [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_dear_rows_are_made_by_several_threads(folder: str) -> None:
    assert _kinds(_images(folder))["map"] == ("threads", 2)


def test_rows_are_those_of_one_thread(folder: str) -> None:
    np.testing.assert_array_equal(_rows(_images(folder)), _rows(_images(folder, num_parallel_workers=1)))


def test_a_run_goes_on_within_an_epoch(folder: str) -> None:
    rows = _images(folder).create_tuple_iterator(num_epochs=1, output_numpy=True)
    state = rows.state_dict()
    rows.load_state_dict({**state, "step": 7})
    np.testing.assert_array_equal([row[0] for row in rows], _rows(_images(folder))[7:])


def test_who_says_one_has_one(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _kinds(_images(folder, num_parallel_workers=1))["map"] == ("inline", 1)
    monkeypatch.setattr(config, "_workers_were_set", True)
    monkeypatch.setitem(config._settings, "num_parallel_workers", 1)
    assert _kinds(_images(folder))["map"][1] == 1


def test_functions_of_users_have_one_thread(folder: str) -> None:
    def same(image: Any) -> Any:
        time.sleep(0.0002)
        return image

    assert _kinds(_images(folder, same))["map"] == ("inline", 1)


def test_cheap_rows_stay_where_they_are(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded_stages, "DEAR", 1e9)
    assert _kinds(_images(folder))["map"] == ("inline", 1)


def test_images_in_memory_have_threads_and_sound_and_text_have_not() -> None:
    images = ds.NumpySlicesDataset({"x": np.zeros((40, 8, 8, 3), np.uint8)}, shuffle=False)
    assert _kinds(images.map(vision.Resize(16), "x").batch(4))["map"] == ("threads", 2)
    sound = ds.NumpySlicesDataset({"x": np.zeros((40, 800), np.float32)}, shuffle=False)
    assert _kinds(sound.map(audio.Vol(0.5), "x").batch(4))["map"] == ("inline", 1)
    words = ds.NumpySlicesDataset({"x": ["some words"] * 40}, shuffle=False)
    assert _kinds(words.map(text.WhitespaceTokenizer(), "x").batch(4))["map"] == ("inline", 1)


def test_a_damaged_file_is_told_at_its_place(folder: str) -> None:
    (Path(folder) / "class" / "21.jpg").write_bytes(b"\xff\xd8\xff nothing")
    rows = _images(folder).create_tuple_iterator(num_epochs=1, output_numpy=True)
    came = [next(rows) for _ in range(5)]
    with pytest.raises(RuntimeError, match="row 21"):
        next(rows)
    assert len(came) == 5
