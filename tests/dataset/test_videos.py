"""Reading videos. What MindSpore gives for the same file is in the comments and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel.dataset import vision


def test_without_pyav(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "v.mp4").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match=r"read_video: reading videos needs PyAV; pip install 'mycel\[video\]'"):
        vision.read_video(str(tmp_path / "v.mp4"))


def test_arguments(tmp_path: Path) -> None:
    name = str(tmp_path / "v.mp4")
    Path(name).write_bytes(b"x")
    for arguments, error, message in (
        ((3,), TypeError, "filename must be a string"),
        ((str(tmp_path),), ValueError, "is no regular file"),
        ((str(tmp_path / "none"),), ValueError, "there is no file"),
        ((name, "0"), TypeError, "start_pts must be a number"),
        ((name, 5, 2), ValueError, "in order, not 5 and 2"),
        ((name, -1), ValueError, "must be at least 0"),
        ((name, 0, 1, "x"), ValueError, "pts_unit must be 'pts' or 'sec', not 'x'"),
    ):
        with pytest.raises(error, match=message):
            vision.read_video(*arguments)
    with pytest.raises(RuntimeError, match="pts_unit must be"):
        vision.read_video_timestamps(name, "x")
    with pytest.raises(RuntimeError, match="must be the bytes of a file"):
        vision.DecodeVideo()(np.zeros(5, np.float32))


@pytest.fixture(scope="module")
def film(tmp_path_factory: Any) -> str:
    av = pytest.importorskip("av")
    name = str(tmp_path_factory.mktemp("film") / "v.mp4")
    with av.open(name, "w") as container:
        video = container.add_stream("mpeg4", rate=10)
        video.width, video.height, video.pix_fmt = 32, 16, "yuv420p"
        audio = container.add_stream("aac", rate=8000)
        audio.layout = "mono"
        for number in range(12):
            frame = av.VideoFrame.from_ndarray(np.full((16, 32, 3), number * 20, np.uint8), format="rgb24")
            frame.pts = number
            container.mux(video.encode(frame))
        container.mux(video.encode())
        for number in range(10):
            wave = np.sin(np.arange(1024) * 0.1 + number).astype(np.float32)[None]
            sound = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
            sound.sample_rate, sound.pts = 8000, number * 1024
            container.mux(audio.encode(sound))
        container.mux(audio.encode())
    return name


def test_videos(film: str) -> None:
    times, rate = vision.read_video_timestamps(film)
    assert (times, rate) == ([1024 * n for n in range(12)], 10.0)
    assert vision.read_video_timestamps(film, "sec")[0] == pytest.approx([n / 10 for n in range(12)])
    video, audio, facts = vision.read_video(film)
    assert video.shape == (12, 16, 32, 3) and video.dtype == np.uint8
    assert audio.shape == (1, 10240) and audio.dtype == np.float32
    assert facts == {"video_fps": 10.0, "audio_fps": 8000}
    assert np.abs(video.mean((1, 2, 3)) - np.arange(12) * 20).max() < 4
    # The numbers of frames and samples in parts, as MindSpore gives them.
    for arguments, frames, samples in (
        ((times[2], times[5]), 4, 3413),
        ((times[2] + 1, times[5] + 1), 3, 2560),
        ((0.25, 0.6, "sec"), 4, 3413),
        ((0, 0.5, "sec"), 6, 5120),
        ((times[-1],), 1, 853),
        ((times[-1] * 5,), 0, 0),
        ((0, 0), 1, 853),
    ):
        part = vision.read_video(film, *arguments)
        assert (len(part[0]), part[1].shape[1]) == (frames, samples), arguments
    decoded = vision.DecodeVideo()(np.fromfile(film, np.uint8))
    assert np.array_equal(decoded[0], video) and np.array_equal(decoded[1], audio)


def test_what_is_no_video(tmp_path: Path) -> None:
    pytest.importorskip("av")
    (tmp_path / "a.txt").write_text("text")
    for call in (vision.read_video, vision.read_video_timestamps):
        with pytest.raises(RuntimeError, match="is no video that can be read"):
            call(str(tmp_path / "a.txt"))
    with pytest.raises(RuntimeError, match="is no video that can be read"):
        vision.DecodeVideo()(np.zeros(5, np.uint8))


def test_frames_by_number(film: str) -> None:
    decoder = vision.VideoDecoder(film)
    frames, _, facts = vision.read_video(film)
    found = decoder.metadata
    assert (found["width"], found["height"], found["num_frames"]) == (32, 16, len(frames))
    assert found["average_fps"] == facts["video_fps"] and found["codec"] == "mpeg4"
    assert (decoder.get_frames_at([3, 0, 3]) == frames[[3, 0, 3]]).all()
    assert decoder.get_frames_at([]).shape == (0, 16, 32, 3)
    for wrong, error in ((0, TypeError), ([1.0], TypeError), ([True], TypeError), ([len(frames)], ValueError)):
        with pytest.raises(error, match="indices must be"):
            decoder.get_frames_at(wrong)  # type: ignore[arg-type]
    wrong_source: Any = 3
    with pytest.raises(TypeError, match="VideoDecoder: source must be a string"):
        vision.VideoDecoder(wrong_source)
