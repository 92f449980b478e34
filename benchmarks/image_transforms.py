"""Every transform of images beside others that compute the same, each on one thread, in turns.

    python benchmarks/image_transforms.py --side mycel=PYTHON[:PATH] --side opencv=PYTHON ...

Sides are processes, as in `data.py`: names that begin with "mycel" or "mindspore" call transforms
of that package, "opencv" has functions of OpenCV, and "torch" those of torchvision on pictures of
Pillow. Shown are medians of the CPU time of a call in microseconds, over `--rounds`, the time of
the fastest other side over that of the first one, and how far the results of that side lie apart
from the first one's, in the mean. `--only TEXT` takes the cases with a text in their names,
`--images TEXT` the images, `--below RATIO` shows those that are slower.

Random transforms change the image every time, and so do the others' functions: they draw as many
numbers from the same ranges, by Python's `random`, so that as much is computed, and results lie
apart. Where the others have float32 we have float64 for
`HsvToRgb` and `RgbToHsv`, as MindSpore has.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from image_cases import batch_of, images, of_batches, of_files, transforms

Function = Callable[[Any], Any]


def torch() -> dict[str, Function]:
    """Return what torchvision does on pictures of Pillow."""
    import torch
    from PIL import Image
    from torchvision.transforms import InterpolationMode, v2
    from torchvision.transforms.v2 import functional as f

    torch.set_num_threads(1)
    kind = InterpolationMode
    plain: dict[str, Function] = {
        "AdjustBrightness": lambda p: f.adjust_brightness(p, 1.3),
        "AdjustContrast": lambda p: f.adjust_contrast(p, 1.3),
        "AdjustGamma": lambda p: f.adjust_gamma(p, 2.0),
        "AdjustHue": lambda p: f.adjust_hue(p, 0.2),
        "AdjustSaturation": lambda p: f.adjust_saturation(p, 1.3),
        "AdjustSharpness": lambda p: f.adjust_sharpness(p, 1.7),
        "AutoAugment": v2.AutoAugment(),
        "AutoAugment, CIFAR10": v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10),
        "AutoAugment, SVHN": v2.AutoAugment(v2.AutoAugmentPolicy.SVHN),
        "AutoContrast": v2.RandomAutocontrast(1.0),
        "CenterCrop": v2.CenterCrop(56),
        "Equalize": v2.RandomEqualize(1.0),
        "FiveCrop": v2.FiveCrop(32),
        "GaussianBlur 3": v2.GaussianBlur(3, 0.8),
        "Grayscale": v2.Grayscale(1),
        "HorizontalFlip": f.hflip,
        "Invert": f.invert,
        "Pad": v2.Pad(8),
        "Posterize": lambda p: f.posterize(p, 4),
        "RandAugment": v2.RandAugment(),
        "RandAugment, bilinear": v2.RandAugment(2, 9, 31, kind.BILINEAR),
        "RandomAffine": v2.RandomAffine((15, 15), (0.1, 0.1), (0.9, 1.1)),
        "RandomColorAdjust": v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        "RandomCrop": v2.RandomCrop(48),
        "RandomHorizontalFlip": v2.RandomHorizontalFlip(1.0),
        "RandomResizedCrop": v2.RandomResizedCrop(56, (0.5, 0.5)),
        "Resize": v2.Resize((56, 60)),
        "Resize, nearest": v2.Resize((56, 60), kind.NEAREST),
        "Resize, antialias": v2.Resize((56, 60), kind.LANCZOS),
        "Rotate": lambda p: f.rotate(p, 30),
        "Rotate, bilinear": lambda p: f.rotate(p, 30, kind.BILINEAR),
        "Solarize": lambda p: f.solarize(p, 128),
        "ToTensor": v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
        "TrivialAugmentWide": v2.TrivialAugmentWide(),
        "VerticalFlip": f.vflip,
    }
    plain["Resize, antialias"] = lambda p: p.resize((60, 56), Image.Resampling.LANCZOS)
    pictures: dict[int, Any] = {}

    def on_picture(function: Function) -> Function:
        def called(image: Any) -> Any:
            if not isinstance(image, np.ndarray):
                return function(image)
            if image.dtype != np.uint8:
                raise TypeError("pictures have bytes")
            if id(image) not in pictures:
                pictures[id(image)] = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
            return function(pictures[id(image)])

        return called

    found = {name: on_picture(function) for name, function in plain.items()}
    mixed, cut = v2.MixUp(alpha=1.0, num_classes=16), v2.CutMix(alpha=1.0, num_classes=16)

    def of_batch(function: Any) -> Function:
        def called(image: Any) -> Any:
            planes = torch.from_numpy(batch_of(image, True)[0])
            return function(planes, torch.arange(len(planes)))[0]

        return called

    found |= {"MixUpBatch": of_batch(mixed), "CutMixBatch, planes": of_batch(cut)}
    found["ToPIL"] = lambda image: Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    return found


def microseconds(function: Function, image: Any, least: float) -> float:
    """Return the CPU time of a call, the mean of several."""
    # Asking for the time is a call of the system, as long as a small transform.
    start, calls, some = time.process_time(), 0, 1
    while (taken := time.process_time() - start) < least:
        for _ in range(some):
            function(image)
        calls, some = calls + some, min(2 * some, 64)
    return 1e6 * taken / calls


def numbers(result: Any) -> Any:
    """Return what a side has computed as an array."""
    parts = result if isinstance(result, (list, tuple)) else [result]
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])


def serve(name: str, folder: str) -> None:
    """Answer cases with the times of calls, or null where they are refused."""
    if name.startswith(("mycel", "mindspore")):
        package = "mycel" if name.startswith("mycel") else "mindspore"
        vision = importlib.import_module(f"{package}.dataset.vision")
        functions: dict[str, Any] = transforms(vision) | of_files(vision) | of_batches(vision)
    else:
        functions = torch() if name.startswith("torch") else importlib.import_module("image_opencv").functions()
    given = images()
    print(json.dumps([list(functions), list(given)]), flush=True)
    for line in sys.stdin:
        case, image, least = json.loads(line)
        function, value = functions[case], given[image]
        if case in ("RandomErasing", "RandomErasing, noise") and isinstance(value, np.ndarray):
            value = np.ascontiguousarray(np.moveaxis(value, -1, 0))
        try:
            if not least:
                # What is drawn at random has code of its own for some draws, which is made once.
                for _ in range(30 if "Random" in case or "Aug" in case else 1):
                    function(value)
                np.save(Path(folder) / f"{name}.npy", numbers(function(value)))
            print(json.dumps(microseconds(function, value, least or 0.001)), flush=True)
        except Exception as error:  # What a side does not take, it is not asked for.
            print(json.dumps(f"{type(error).__name__}: {error}"[:200]), flush=True)


class _Side:
    def __init__(self, given: str, folder: str) -> None:
        self.name, _, rest = given.partition("=")
        python, _, path = rest.partition(":")
        environment = {**os.environ, "GLOG_v": "4", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        if path:
            environment["PYTHONPATH"] = path
        command = [python, __file__, "--serve", self.name, folder]
        self.file = Path(folder) / f"{self.name}.npy"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.cases, self.images = self._answer()
        self.times: list[float] = []

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                return json.loads(line)
            except ValueError:
                continue  # What a library prints.
        raise RuntimeError(f"{self.name} has ended")

    def ask(self, case: str, image: str, least: float) -> Any:
        """Return the time of a call, or why there is none."""
        assert self.process.stdin is not None
        print(json.dumps([case, image, least]), file=self.process.stdin, flush=True)
        return self._answer()


def compare(sides: list[_Side], case: str, image: str, rounds: int) -> tuple[float, str] | None:
    """Return the best other side's time over that of the first, and what is to be shown."""
    able = []
    for side in sides:
        if case in side.cases and image in side.images and isinstance(side.ask(case, image, 0), float):
            side.times = []
            able.append(side)
    if able[:1] != sides[:1]:
        return None
    for _ in range(rounds):
        for side in able:
            side.times.append(side.ask(case, image, 0.004))
    medians = [statistics.median(side.times) for side in able]
    shown = "  ".join(f"{side.name} {found:9.1f}" for side, found in zip(able, medians))
    if len(able) == 1:
        return float("inf"), f"{case:<24} {image:<22} {shown}"
    best = min(range(1, len(able)), key=lambda n: medians[n])
    one, other = np.load(able[0].file), np.load(able[best].file)
    apart = f"{np.abs(one - other).mean():.3f}" if one.shape == other.shape else "of another size"
    ratio = medians[best] / medians[0]
    return ratio, f"{case:<24} {image:<22} {ratio:6.2f}  {shown}  apart {apart}"


def main() -> None:
    """Compare the sides."""
    parser = argparse.ArgumentParser(description="Transforms of images, in turns.")
    parser.add_argument("--side", action="append", required=True, metavar="NAME=PYTHON[:PATH]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--images", default="", metavar="TEXT")
    parser.add_argument("--below", type=float, default=float("inf"), metavar="RATIO")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = [_Side(given, folder) for given in options.side]
        for image in sides[0].images:
            for case in sides[0].cases:
                if options.only not in case or options.images not in image:
                    continue
                found = compare(sides, case, image, options.rounds)
                if found is not None and found[0] <= options.below:
                    print(found[1], flush=True)
        for side in sides:
            side.process.communicate()


if __name__ == "__main__":
    serve(sys.argv[2], sys.argv[3]) if sys.argv[1:2] == ["--serve"] else main()
