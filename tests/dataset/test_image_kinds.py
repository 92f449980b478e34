"""What image operations give for every kind of image, against what MindSpore's give.

`ask_image_kinds.py` stored the answers. Where MindSpore gives something, so must we, in the same
kind, type and shape, and with the same values where nothing is drawn; where it raises, we may
accept more.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import transforms, vision

from . import image_kinds

STORED: dict[str, dict[str, Any]] = json.loads(
    (pathlib.Path(__file__).parent / "values" / "image_kinds.json").read_text()
)
# The kinds that operations take whatever they draw.
ALWAYS = ("RGB picture", "L picture", "uint8 HWC")
ALWAYS_ERASED = "a random rectangle of anything but an array [C, H, W] is an error, applied or not"
# What MindSpore gives and we do not, and why.
DIFFERENT: dict[tuple[str, str], str] = {
    **{("RandomErasing(0.0)", kind): ALWAYS_ERASED for kind in ("bytes", "list", "nested list", "number", "text")},
    ("AdjustHue(0.2)", "float32 HWC"): "its hue of floats overflows",
    ("AdjustGamma(2.0)", "int32 HWC"): "it changes the first channel only",
}
# MindSpore writes the pixels of three channels into those of four without moving them apart.
WRONG_VALUES = "NormalizePad([0.5,0.5,0.5],[0.1,0.2,0.3])"


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) or found[0] != wanted[0]:
        return bool(found == wanted)
    if wanted[0] == "tuple":
        return len(found[1]) == len(wanted[1]) and all(map(_same, found[1], wanted[1]))
    if found[:3] != wanted[:3] or len(found) != len(wanted):
        return False
    if len(wanted) < 4 or found[3] == wanted[3]:
        return True
    return isinstance(wanted[3], list) and bool(np.allclose(found[3], wanted[3], atol=2e-3, rtol=1e-4))


def test_every_operation_was_asked() -> None:
    assert set(STORED) == set(image_kinds.CERTAIN + image_kinds.DRAWN)
    asked = {name.partition("(")[0] for name in STORED}
    images = {name for name in vision.__all__ if isinstance(getattr(vision, name), type)}
    kinds = {"AutoAugmentPolicy", "Border", "ConvertMode", "ImageBatchFormat", "ImageReadMode", "Inter", "SliceMode"}
    of_several = {name for name in images if name.endswith("WithBBox")} | {
        "BoundingBoxAugment",
        "CutMixBatch",
        "LinearTransformation",
        "MixUp",
        "MixUpBatch",
    }
    assert images - kinds - of_several - asked <= {"DecodeVideo", "VideoDecoder"}


@pytest.mark.parametrize("written", STORED)
def test_kinds(written: str) -> None:
    for kind, wanted in STORED[written].items():
        refused = isinstance(wanted, str) and wanted.startswith("!")
        if refused or (written, kind) in DIFFERENT or (written in image_kinds.DRAWN and kind not in ALWAYS):
            continue
        found = json.loads(json.dumps(image_kinds.answer(vision, written, kind)))
        if written == WRONG_VALUES:
            found, wanted = found[:3], wanted[:3]
        assert _same(found, wanted), (kind, wanted[:3], found[:3])


def test_compose_gives_a_tuple_for_a_picture_only() -> None:
    both = transforms.Compose([vision.Resize(3), vision.ToTensor()])
    (found,) = both(image_kinds.KINDS["RGB picture"]())
    assert isinstance(found, np.ndarray) and found.shape == (3, 3, 3)
    assert both(image_kinds.COLOURS).shape == (3, 3, 3)
    assert [a.tolist() for a in transforms.Compose([lambda a, b: (b, [a])])(1, 2)] == [2, [1]]
    assert transforms.Compose([lambda a: [a, 2]])(1).tolist() == [1, 2]


def _seen(*operations: Any) -> tuple[list[str], Any]:
    kinds: list[str] = []

    def see(value: Any) -> Any:
        kinds.append(type(value).__name__)
        return value

    steps = [step for operation in operations for step in (operation, see)]
    data = ds.NumpySlicesDataset({"a": [1]}, shuffle=False).map(steps, "a")
    ((row,),) = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return kinds, row


def test_functions_in_a_map_receive_what_the_one_before_returned() -> None:
    assert _seen(lambda x: [1, 2])[0] == ["list"]
    assert _seen(lambda x: "ab")[0] == ["str"]
    kinds, row = _seen(lambda x: image_kinds.KINDS["RGB picture"](), vision.Grayscale())
    assert kinds == ["Image", "Image"] and row.shape == (6, 7)
    # After a function MindSpore takes its own resizing, not Pillow's.
    kinds, row = _seen(lambda x: image_kinds.KINDS["RGB picture"](), vision.Resize(3))
    assert kinds == ["Image", "ndarray"] and row.tolist() == vision.Resize(3)(image_kinds.COLOURS).tolist()


def test_pictures_pass_from_one_transform_to_the_next_in_a_map() -> None:
    data = ds.NumpySlicesDataset(image_kinds.COLOURS[None], ["a"], shuffle=False)
    ((row,),) = data.map([vision.ToPIL(), vision.Resize(3)], "a").create_tuple_iterator(None, 1, True)
    picture = image_kinds.KINDS["RGB picture"]()
    assert row.tolist() == np.asarray(vision.Resize(3)(picture)).tolist()
    assert row.tolist() != vision.Resize(3)(image_kinds.COLOURS).tolist()
