"""Reading videos, by PyAV.

Frames whose time is within the part that is asked for are kept, in the order of their times, and as
large a share of the samples of sound. Colours may differ from MindSpore's by 2 of 255, as its
library rounds them otherwise.
"""

from __future__ import annotations

import importlib
import io
import math
import os
from fractions import Fraction
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.transforms.base import Transform

Time = int | float | Fraction


def _av(operation: str) -> Any:
    try:
        return importlib.import_module("av")
    except ImportError as error:
        raise ImportError(f"{operation}: reading videos needs PyAV; pip install 'mycel[video]'") from error


def _check_unit(operation: str, pts_unit: Any, error: type[Exception]) -> None:
    if pts_unit not in ("pts", "sec"):
        raise error(f"{operation}: pts_unit must be 'pts' or 'sec', not {pts_unit!r}")


def _check_file(operation: str, filename: Any) -> None:
    arguments.text(operation, "filename", filename)
    if not os.path.exists(filename):
        raise ValueError(f"{operation}: there is no file {filename!r}")
    if not os.path.isfile(filename):
        raise ValueError(f"{operation}: {filename!r} is no regular file")


def _opened(operation: str, av: Any, source: Any) -> Any:
    try:
        return av.open(source, metadata_errors="ignore")
    except (av.FFmpegError, OSError) as error:
        raise RuntimeError(f"{operation}: {source!r:.80} is no video that can be read: {error}") from error


def _frames(operation: str, av: Any, source: Any, kind: str, facts: dict[str, Any]) -> tuple[list[Any], Any]:
    """Return the frames of the first stream of a kind, in the order of their times, and its unit.

    * `operation`: what messages call the operation.
    * `av`: the module of PyAV.
    * `source`: the name of the file, or the file.
    * `kind`: "video" or "audio".
    * `facts`: gets how many frames or samples there are in a second.
    """
    if not isinstance(source, str):
        source.seek(0)
    with _opened(operation, av, source) as container:
        streams = getattr(container.streams, kind)
        if not streams:
            return [], None
        stream = streams[0]
        frames: list[Any] = []
        try:
            frames.extend(frame for frame in container.decode(stream) if frame.pts is not None)
        except av.FFmpegError as error:
            if not frames:
                raise RuntimeError(f"{operation}: the {kind} cannot be decoded: {error}") from error
        if kind == "audio":
            facts["audio_fps"] = stream.rate
        elif stream.average_rate is not None:
            facts["video_fps"] = float(stream.average_rate)
        return sorted(frames, key=lambda frame: frame.pts), stream.time_base


def _planar(frame: Any) -> Array:
    array: Array = frame.to_ndarray()
    channels = len(frame.layout.channels)
    return array if frame.format.is_planar else array.reshape(-1, channels).T


def _read(operation: str, source: Any, start: Time, end: Time, unit: str) -> tuple[Array, Array, dict[str, Any]]:
    """Return the frames, the samples of sound, and the facts of the part of a video.

    * `operation`: what messages call the operation.
    * `source`: the name of the file, or the file.
    * `start`, `end`, `unit`: the part; see `read_video`.
    """
    av = _av(operation)
    facts: dict[str, Any] = {}
    frames, base = _frames(operation, av, source, "video", facts)
    times = [frame.pts if unit == "pts" else float(frame.pts * base) for frame in frames]
    kept = [place for place, time in enumerate(times) if start <= time <= end]
    video: Array = np.zeros((0, frames[0].height, frames[0].width, 3) if frames else (0, 1, 1, 3), np.uint8)
    if kept:
        video = np.stack([frames[place].to_ndarray(format="rgb24") for place in kept])
    sounds, _ = _frames(operation, av, source, "audio", facts)
    if not sounds:
        return video, np.zeros((0, 0), np.float32), facts
    samples: Array = np.concatenate([_planar(frame) for frame in sounds], 1)
    if frames:
        # The sound of the frames that are kept, by their share of all frames.
        first = round(samples.shape[1] * (kept[0] if kept else 0) / len(frames))
        samples = samples[:, first : first + samples.shape[1] * len(kept) // len(frames)]
    return video, samples, facts


def read_video(
    filename: str, start_pts: Time = 0, end_pts: Time | None = None, pts_unit: str = "pts"
) -> tuple[Array, Array, dict[str, Any]]:
    """Read a video file; needs PyAV.

    Args:
        filename (str): The name of the file.
        start_pts (Time): The first time to read. Default: 0.
        end_pts (Time | None): The last time to read; None for the end of the file. Default: None.
        pts_unit (str): Whether times are in seconds, "sec", or in the file's own unit, "pts".
            Default: "pts".

    Returns:
        tuple[numpy.ndarray[Any, numpy.dtype[Any]], numpy.ndarray[Any, numpy.dtype[Any]], dict[str,
            Any]]: The frames, uint8 [T, H, W, 3], the sound, [C, L], and a dictionary with
            `video_fps` and `audio_fps`.

    Raises:
        ValueError: For what is no file.
        RuntimeError: For one that is no video.
        ImportError: Without PyAV.
    """
    arguments.text("read_video", "pts_unit", pts_unit)
    for argument, value in (("start_pts", start_pts), ("end_pts", 0 if end_pts is None else end_pts)):
        if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
            raise TypeError(f"read_video: {argument} must be a number, not {value!r} of type {type(value).__name__}")
    _check_file("read_video", filename)
    _check_unit("read_video", pts_unit, ValueError)
    last = math.inf if end_pts is None else end_pts
    if start_pts < 0 or last < start_pts:
        raise ValueError(f"read_video: times must be at least 0 and in order, not {start_pts} and {end_pts}")
    return _read("read_video", filename, start_pts, last, pts_unit)


def read_video_timestamps(filename: str, pts_unit: str = "pts") -> tuple[list[Any], float | None]:
    """Return the times of a video's frames, and how many frames it has in a second; needs PyAV.

    * `filename`: the name of the file.
    * `pts_unit`: whether times are floats in seconds, "sec", or integers of the file's own unit,
      "pts".

    Raises ValueError for a file that does not exist, RuntimeError for one that is no video, and
    ImportError without PyAV.
    """
    operation = "read_video_timestamps"
    arguments.text(operation, "pts_unit", pts_unit)
    _check_file(operation, filename)
    _check_unit(operation, pts_unit, RuntimeError)
    av = _av(operation)
    with _opened(operation, av, filename) as container:
        if not container.streams.video:
            return [], None
        stream = container.streams.video[0]
        try:
            times = sorted(packet.pts for packet in container.demux(stream) if packet.pts is not None)
        except av.FFmpegError as error:
            raise RuntimeError(f"{operation}: {filename!r} cannot be read: {error}") from error
        rate = None if stream.average_rate is None else float(stream.average_rate)
        return [float(pts * stream.time_base) for pts in times] if pts_unit == "sec" else times, rate


class DecodeVideo(Transform):
    """The frames, uint8 [T, H, W, 3], and the sound, [C, L], of a video's content, uint8 [N].

    It needs PyAV. Raises RuntimeError for content that is no video.
    """

    def compute(self, array: Array, lead: int) -> tuple[Array, Array]:
        if array.dtype != np.uint8 or array.ndim != 1 or not array.size:
            raise RuntimeError(
                f"DecodeVideo: the input must be the bytes of a file, uint8 of one axis, not {array.dtype} of shape "
                f"{array.shape}"
            )
        video, audio, _ = _read("DecodeVideo", io.BytesIO(array.tobytes()), 0, math.inf, "pts")
        return video, audio


class VideoDecoder:
    """The frames of one video file by their numbers; needs PyAV.

    * `source`: the name of the file.

    Raises ValueError for a file that does not exist, RuntimeError for one that is no video, and
    ImportError without PyAV. MindSpore's decodes on Ascend processors only.
    """

    def __init__(self, source: str) -> None:
        operation = "VideoDecoder"
        arguments.text(operation, "source", source)
        _check_file(operation, source)
        self._av = _av(operation)
        self.source = source
        self._facts: dict[str, Any] = {}
        with _opened(operation, self._av, source) as container:
            if not container.streams.video:
                raise RuntimeError(f"{operation}: {source!r} has no frames")
            stream = container.streams.video[0]
            times = [packet.pts for packet in container.demux(stream) if packet.pts is not None]
            self._facts = {
                "width": stream.width,
                "height": stream.height,
                "num_frames": len(times),
                "duration_seconds": float(stream.duration * stream.time_base) if stream.duration else None,
                "average_fps": None if stream.average_rate is None else float(stream.average_rate),
                "codec": stream.codec_context.name,
            }

    @property
    def metadata(self) -> dict[str, Any]:
        """The width, height, number of frames, duration, frames in a second, and codec."""
        return dict(self._facts)

    def get_frames_at(self, indices: list[int]) -> Array:
        """Return the frames of these numbers, in the order of time from 0: uint8 [T, H, W, 3].

        Raises TypeError for other lists, and ValueError for numbers that there are not.
        """
        operation = "VideoDecoder.get_frames_at"
        count = self._facts["num_frames"]
        if not isinstance(indices, list) or any(isinstance(i, bool) or not isinstance(i, int) for i in indices):
            raise TypeError(f"{operation}: indices must be a list of integers, not {indices!r:.80}")
        wrong = [index for index in indices if not 0 <= index < count]
        if wrong:
            raise ValueError(f"{operation}: indices must be within [0, {count - 1}], not {wrong[0]}")
        frames, _ = _frames(operation, self._av, self.source, "video", {})
        if not indices:
            return np.zeros((0, self._facts["height"], self._facts["width"], 3), np.uint8)
        if max(indices) >= len(frames):
            raise RuntimeError(f"{operation}: {self.source!r} ends after {len(frames)} of {count} frames")
        return np.stack([frames[index].to_ndarray(format="rgb24") for index in indices])
