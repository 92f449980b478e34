"""Sets of audio: the rows that MindSpore 2.10 gives for the same files, stored; other WAVE and
SPHERE files by definition.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.sets.audio import GTZANDataset, read_wav
from tests.dataset import audio_set_files, set_files

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("values").joinpath("audio_sets.json").read_text("utf-8"))
CASES = audio_set_files.audio_cases()


def opened(case: str, folder: Path, **more: Any) -> ds.Dataset:
    kind, build, inside, arguments = CASES[case]
    build(folder)
    return getattr(ds, f"{kind}Dataset")(folder / inside if inside else folder, **{**arguments, **more})


@pytest.mark.parametrize("case", sorted(CASES))
def test_rows_are_those_of_mindspore(case: str, tmp_path: Path) -> None:
    found, expected = json.loads(json.dumps(set_files.describe(opened(case, tmp_path)))), EXPECTED[case]
    assert found["columns"] == expected["columns"]
    if case.startswith(("GTZAN", "Tedlium")):
        # MindSpore takes files in the order of the disk, or lines of several in turn; and it reads
        # zeros from SPHERE files.
        for row in [*found["rows"], *expected["rows"]] if case.startswith("Tedlium") else ():
            row["waveform"] = row["waveform"][:2]
        found["rows"], expected["rows"] = (sorted(one["rows"], key=json.dumps) for one in (found, expected))
    assert found["rows"] == expected["rows"]


def test_sphere_samples(tmp_path: Path) -> None:
    data = opened("Tedlium release=release1 usage=dev TEDLIUM_release1", tmp_path)
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    whole = {"B_2010": 20, "A_2009": 21}
    for row in rows:
        samples = audio_set_files.samples(whole[str(row["talk_id"])], 320).astype(np.float64)[:, 0] / 32767
        start = 192 if row["waveform"].size == 56 else 0
        np.testing.assert_allclose(row["waveform"][0], samples[start : start + row["waveform"].size], rtol=1e-6)
    assert [str(row["talk_id"]) for row in rows] == ["A_2009", "A_2009", "B_2010", "B_2010"]


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wave_files(width: int, tmp_path: Path) -> None:
    high = 2 ** (8 * width - 1) - 1
    values = np.array([[-high - 1, high, 0], [1, -1, high // 2]], np.int64)
    stored = values + 128 if width == 1 else values
    data = b"".join(int(v).to_bytes(width, "little", signed=width > 1) for v in stored.T.reshape(-1))
    form = struct.pack("<HHIIHH", 1, 2, 8000, 16000 * width, 2 * width, 8 * width)
    parts = b"".join(
        name + struct.pack("<I", len(p)) + p for name, p in ((b"fmt ", form), (b"LIST", b"ab"), (b"data", data))
    )
    path = tmp_path / "a.wav"
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts)
    waveform, rate = read_wav("test", str(path))
    assert rate == 8000 and waveform.dtype == np.float32
    np.testing.assert_allclose(waveform, values / high, rtol=1e-6)


def test_split_of_gtzan() -> None:
    from mycel.dataset.sets.audio import _ranges

    splits = {
        part: {(kind, number) for kind, text in kinds.items() for number in _ranges(text)}
        for part, kinds in GTZANDataset._splits.items()
    }
    assert {part: len(files) for part, files in splits.items()} == {"train": 443, "valid": 197, "test": 290}
    assert len(splits["train"] | splits["valid"] | splits["test"]) == 930


def test_all_parts_and_errors(tmp_path: Path) -> None:
    audio_set_files.libri(tmp_path)
    assert ds.LibriTTSDataset(tmp_path).get_dataset_size() == 6 and issubclass(ds.YesNoDataset, ds.AudioBaseDataset)
    (tmp_path / "1_0.wav").write_bytes(b"no sound")
    (tmp_path / "metadata.csv").write_text("one|two\n")
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "x.wav").write_bytes(audio_set_files.wav(1))
    with pytest.raises(ValueError, match="is no WAVE file of integers"):
        list(ds.YesNoDataset(tmp_path).create_dict_iterator(num_epochs=1))
    for make, message in (
        (lambda: ds.LJSpeechDataset(tmp_path), "metadata.csv must be a name and two texts"),
        (lambda: ds.CMUArcticDataset(tmp_path, "x"), "name must be one of"),
        (lambda: ds.SpeechCommandsDataset(tmp_path), "is not named"),
        (lambda: ds.TedliumDataset(tmp_path, "release3", "train"), "usage must be 'all'"),
        (lambda: ds.TedliumDataset(tmp_path, "release1"), "has no files"),
        (lambda: ds.LibriTTSDataset(tmp_path, "x"), "usage must be one of"),
        (lambda: ds.GTZANDataset(tmp_path / "none"), "there is no directory"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
