"""Helpers around pipelines: files by line, and images with boxes drawn on them."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files import atomic_files
from mycel._src.foundation.python_runtime import finalization as ends
from mycel.dataset.rows.column_blocks import Array

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

__all__ = ["LineReader", "imshow_det_bbox"]

_PIECE = 1 << 20


class LineReader:
    """A text file whose lines are read by their numbers, from 1.

    * `filename`: the name of the file, in UTF-8.

    Raises TypeError for what is no name, and RuntimeError for what is no regular file.

    >>> import os, tempfile
    >>> from mycel.dataset.utils import LineReader
    >>> name = os.path.join(tempfile.mkdtemp(), "a.txt")
    >>> with open(name, "w") as handle:
    ...     _ = handle.write("first\\nsecond\\n")
    >>> reader = LineReader(name)
    >>> reader.len(), reader.readline(2)
    (2, 'second')
    >>> reader.close()
    """

    def __init__(self, filename: str) -> None:
        arguments.text("LineReader", "filename", filename)
        if not os.path.exists(filename):
            raise RuntimeError(f"LineReader: the file {filename!r} does not exist")
        if not os.path.isfile(filename):
            raise RuntimeError(f"LineReader: {filename!r} is not a regular file")
        self.filename = filename
        self.offsets = [0]
        with open(filename, "rb") as handle:
            at, size = 0, os.fstat(handle.fileno()).st_size
            while piece := handle.read(_PIECE):
                ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == 10)
                self.offsets += (ends + at + 1).tolist()
                at += len(piece)
        if self.offsets[-1] >= size:
            self.offsets.pop()
        self._size = size
        self._handle: io.BufferedReader | None = None

    def readline(self, line: int) -> str:
        """Return a line by its number, from 1, without its end.

        Raises TypeError for other numbers, and ValueError where there is no such line.
        """
        arguments.integer("LineReader", "line", line, numpy=False)
        if not 1 <= line <= len(self.offsets):
            raise ValueError(f"LineReader: line must be within [1, {len(self.offsets)}], not {line}")
        if self._handle is None:
            self._handle = open(self.filename, "rb")
            ends.when_gone(self, self._handle.close, at_exit=False)
        bounds = [*self.offsets[line : line + 1], self._size]
        # Threads may share the reader: reading leaves no position behind.
        content = os.pread(self._handle.fileno(), bounds[0] - self.offsets[line - 1], self.offsets[line - 1])
        return content.decode().removesuffix("\n").removesuffix("\r")

    def len(self) -> int:
        """Return the number of lines."""
        return len(self.offsets)

    def close(self) -> None:
        """Close the file; a later `readline` opens it again."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


Names = Sequence[str] | dict[int, str]
Colour = tuple[int, int, int]


def imshow_det_bbox(
    image: Array,
    bboxes: Array,
    labels: Array,
    segm: Array | None = None,
    class_names: Names | None = None,
    score_threshold: float = 0,
    bbox_color: Colour = (0, 255, 0),
    text_color: Colour = (203, 192, 255),
    mask_color: Colour = (128, 0, 128),
    thickness: int = 2,
    font_size: float = 0.8,
    show: bool = True,
    win_name: str = "win",
    wait_time: int = 2000,
    out_file: str | None = None,
) -> Array:
    """Return an image, uint8 [H, W, C], with boxes, their classes and masks drawn on it.

    * `image`: the image, [H, W, C] or [C, H, W] with 1 or 3 channels in the order RGB.
    * `bboxes`: the boxes, [N, 4] as x, y, width and height, or [N, 5] with a score.
    * `labels`: the classes of the boxes, [N, 1].
    * `segm`: the masks of the boxes, [N, H, W], or None.
    * `class_names`: the names of the classes, by number.
    * `score_threshold`: the least score of boxes that are drawn.
    * `bbox_color`, `text_color`, `mask_color`: colours in the order BGR.
    * `thickness`, `font_size`: of lines in pixels, and of letters, of which 1 is 20 pixels.
    * `show`, `win_name`, `wait_time`: whether a window with this name shows the image, and for how
      many milliseconds. This needs OpenCV.
    * `out_file`: the name of a file to write the image to, or None; its ending says the format.

    Raises AssertionError for arguments that do not fit, as MindSpore does, and ImportError without
    Pillow, or where `show` is True and there is no OpenCV.
    """
    where = "imshow_det_bbox"
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError(f"{where}: drawing needs Pillow; pip install 'mycel[image]'") from error
    picture, boxes, classes = _checked(where, image, bboxes, labels)
    if class_names is not None and not isinstance(class_names, (list, tuple, dict)):
        raise AssertionError(f"{where}: class_names must be a list, tuple or dict, not {class_names!r}")
    for name, colour in (("bbox_color", bbox_color), ("text_color", text_color), ("mask_color", mask_color)):
        if not isinstance(colour, tuple) or len(colour) != 3:
            raise AssertionError(f"{where}: {name} must be a tuple in the order BGR, not {colour!r}")
    masks = None
    if segm is not None:
        masks = np.asarray(segm).astype(bool)
        if masks.ndim != 3 or masks.shape[1:] != picture.shape[:2]:
            raise AssertionError(f"{where}: segm must have shape [N, {picture.shape[0]}, {picture.shape[1]}]")
        for number in range(min(len(masks), len(boxes))):
            if boxes.shape[1] == 4 or boxes[number, 4] >= score_threshold:
                chosen = masks[number]
                picture[chosen] = (picture[chosen] * 0.5 + np.array(mask_color[::-1]) * 0.5).astype(np.uint8)
    drawn = Image.fromarray(picture)
    pen = ImageDraw.Draw(drawn)
    font = ImageFont.load_default(max(1, round(20 * font_size)))
    for box, label in zip(boxes, classes):
        if len(box) == 5 and box[4] < score_threshold:
            continue
        x, y, width, height = (float(value) for value in box[:4])
        pen.rectangle((x, y, x + width, y + height), outline=bbox_color[::-1], width=thickness)
        text = f"class {label}" if class_names is None else str(class_names[int(label)])
        text += f"|{box[4]:.02f}" if len(box) == 5 else ""
        pen.text((x, max(0.0, y - 20 * font_size)), text, fill=text_color[::-1], font=font)
    found = np.asarray(drawn)
    if out_file is not None:
        _write(where, drawn, out_file)
    if show:
        _shown(where, found, win_name, wait_time)
    return found


def _checked(where: str, image: Any, bboxes: Any, labels: Any) -> tuple[Array, Array, Array]:
    if (
        not isinstance(image, np.ndarray)
        or image.ndim != 3
        or (image.shape[0] not in (1, 3) and image.shape[2] not in (1, 3))
    ):
        shape = getattr(image, "shape", image)
        raise AssertionError(f"{where}: image must have shape [H, W, C] or [C, H, W], not {shape!r:.80}")
    boxes, classes = np.asarray(bboxes), np.asarray(labels)
    if boxes.ndim != 2 or boxes.shape[1] not in (4, 5):
        raise AssertionError(f"{where}: bboxes must have shape [N, 4] or [N, 5], not {list(boxes.shape)}")
    if classes.ndim != 2 or classes.shape != (len(boxes), 1):
        raise AssertionError(f"{where}: labels must have shape [{len(boxes)}, 1], not {list(classes.shape)}")
    picture = image if image.shape[2] in (1, 3) else image.transpose(1, 2, 0)
    if picture.shape[2] == 1:
        picture = np.repeat(picture, 3, 2)
    return np.ascontiguousarray(picture.astype(np.uint8)).copy(), boxes, classes[:, 0]


def _write(where: str, drawn: Picture, out_file: str) -> None:
    from PIL import Image

    content = io.BytesIO()
    try:
        drawn.save(content, Image.registered_extensions()[os.path.splitext(out_file)[1].lower()])
    except KeyError:
        raise ValueError(f"{where}: the ending of out_file must be that of an image, not {out_file!r}") from None
    atomic_files.write(out_file, content.getvalue(), "image")


def _shown(where: str, image: Array, name: str, wait: int) -> None:
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError as error:
        raise ImportError(f"{where}: show=True needs OpenCV; pip install opencv-python, or use show=False") from error
    cv2.imshow(name, image[:, :, ::-1])
    cv2.waitKey(wait)
