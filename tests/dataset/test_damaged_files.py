"""Damaged files name their reader; pictures are of formats that start no other program, and no
larger than they may be.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.sets.audio import read_sphere, read_wav
from mycel.dataset.vision.codecs.image_io import FORMATS, decode_image
from tests.dataset.set_files import png


def test_pictures_of_formats_that_need_other_programs_are_refused():
    image = pytest.importorskip("PIL.Image")
    for form in ("EPS", "PDF"):
        content = io.BytesIO()
        image.new("RGB", (2, 2)).save(content, form)
        assert form not in FORMATS
        with pytest.raises(ValueError, match="Decode: .* are not an image"):
            decode_image(content.getvalue())
    assert decode_image(png(1)).shape == (2, 3, 3)


def test_pictures_may_be_as_large_as_a_file_may_become(monkeypatch):
    pytest.importorskip("PIL")
    content = bytearray(png(1))
    content[16:24] = struct.pack(">II", 9000, 9000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    with pytest.raises(ValueError, match="9000 by 9000 pixels, which take more than 256 MiB.*MYCEL_INFLATE"):
        decode_image(bytes(content))
    monkeypatch.setenv("MYCEL_INFLATE", "8GB")
    with pytest.raises(ValueError, match="are not an image"):
        decode_image(bytes(content))


def test_sound_that_claims_more_than_there_is(tmp_path):
    path = tmp_path / "a.wav"
    head = b"RIFF\xff\xff\xff\x7fWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 2, 8000, 32000, 4, 16)
    path.write_bytes(head + b"data" + struct.pack("<I", 2**32 - 1) + bytes(range(10)))
    wave, rate = read_wav("YesNoDataset", str(path))
    assert wave.shape == (2, 2) and rate == 8000
    for wrong, words in (
        (head, "YesNoDataset: .*a.wav"),
        (b"RIFF", "a.wav"),
        (head[:30] + b"\xff\xff" + head[32:], "a.wav"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=words):
            read_wav("YesNoDataset", str(path))
    fields = (
        "NIST_1A\n   1024\nchannel_count -i 1\nsample_rate -i 100\nsample_n_bytes -i 2\n"
        "sample_coding -s3 pcm\nend_head\n"
    )
    path.write_bytes(fields.encode().ljust(1024) + bytes(20))
    assert read_sphere("TedliumDataset", str(path), -1.0, 1e18)[0].shape == (1, 10)
    for before, after in (
        ("-i 100", "-i x"),
        ("channel_count -i 1", "channel_count -i 0"),
        ("   1024", "9999999"),
        ("   1024", "   -100"),
    ):
        path.write_bytes(fields.replace(before, after).encode().ljust(1024) + bytes(20))
        with pytest.raises(ValueError, match="TedliumDataset: .*a.wav' is damaged"):
            read_sphere("TedliumDataset", str(path), 0.0, 1.0)


@pytest.mark.parametrize(
    "content",
    ["", "[", "[" * 100000, "[1]", "{}", '{"images": 5}', '{"images": [{"id": [], "file_name": 1}]}', "\ud800"],
)
def test_annotations_that_are_none(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    for task in ("Detection", "Stuff", "Keypoint", "Panoptic", "Captioning"):
        with pytest.raises(ValueError, match="CocoDataset: .*a.json' is damaged, or has another layout"):
            ds.CocoDataset(tmp_path, path, task)


def test_lists_that_would_be_filled_up_without_end(tmp_path, monkeypatch):
    shapes = [[0.0] * 10_000, *[[0.0, 1.0]] * 20_000]
    entries = [{"image_id": 1, "segmentation": [shape], "iscrowd": 0} for shape in shapes]
    (tmp_path / "a.png").write_bytes(png(1))
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"images": [{"id": 1, "file_name": "a.png"}], "annotations": entries, "categories": []}))
    with pytest.raises(ValueError, match="20001 outlines would all be filled up to 10000 numbers"):
        ds.CocoDataset(tmp_path, path, "Stuff")
    # The same of the bytes of a TFRecord feature.
    from mycel.dataset.readers.tfrecords import _feature_array

    values = [b"x" * 100_000, *[b""] * 100_000]
    for kind, words in (("uint8", "would all be filled up to 100000 bytes"), ("string", "one of 100000 letters")):
        with pytest.raises(ValueError, match=words):
            _feature_array("b", values, kind, None)


def test_people_with_more_pictures_than_there_are(tmp_path):
    folder = Path(tmp_path)
    (folder / "lfw").mkdir()
    (folder / "lfw-names.txt").write_text("Ann\t4\n")
    for count in ("99999999999", "x"):
        (folder / "peopleDevTrain.txt").write_text(f"1\nAnn\t{count}\n")
        with pytest.raises(ValueError, match="LFWDataset: 'people.txt' is damaged"):
            ds.LFWDataset(folder, "people", "train", "original")


def test_settings_and_schemas(tmp_path):
    path = tmp_path / "a.json"
    before = np.random.get_state()[1].tolist()
    for content, words in (
        ("[1]", "must hold an object"),
        ("{", "cannot be read as JSON"),
        ('{"seed": 1, "x": 2}', "unknown setting 'x'"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=f"load: .*{words}"):
            ds.config.load(str(path))
    assert np.random.get_state()[1].tolist() == before
    for content in (
        '{"columns": [{"name": "x", "type": "int32", "shape": 5}]}',
        '{"columns": {"x": 5}}',
        '{"columns": [], "numRows": 1e999}',
        '{"columns": [], "numRows": "7"}',
    ):
        path.write_text(content)
        with pytest.raises((RuntimeError, TypeError), match="add_column|parse_columns|from_json"):
            ds.Schema(str(path))
