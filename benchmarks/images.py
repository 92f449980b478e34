"""Transforms of images against OpenCV's functions, each on one thread, in turns.

    python benchmarks/images.py --opencv PYTHON [--rounds 9]

PYTHON has OpenCV; this process imports Mycel.
Shown are the least CPU times of a call in microseconds, OpenCV's over ours, and how far results lie
apart: OpenCV adds up floats where Mycel has its fixed-point results, and blends have no counterpart
with the same rounding, so a few steps of 255 are as it should be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Case = Callable[[], Any]


def inputs() -> tuple[Any, Any, Any]:
    """Return a square image, a larger one that is not, and the first in floats."""
    random = np.random.default_rng(0)
    square = random.integers(0, 256, (256, 256, 3), dtype=np.uint8)
    return square, random.integers(0, 256, (375, 500, 3), dtype=np.uint8), square.astype(np.float32)


def mycel_cases() -> dict[str, Case]:
    """Return the transforms by name."""
    from mycel.dataset import vision as v

    a, p, f = inputs()
    kind, corners = v.Inter, [(0, 0), (255, 0), (255, 255), (0, 255)]
    moved = [(10, 5), (240, 9), (250, 250), (3, 240)]
    normalize = v.Normalize([120.0, 110.0, 100.0], [50.0, 51.0, 52.0])
    transforms = {
        "rotate": (v.Rotate(30), a),
        "rotate, bilinear": (v.Rotate(30, kind.BILINEAR), a),
        "rotate, cubic": (v.Rotate(30, kind.BICUBIC), a),
        "perspective": (v.Perspective(corners, moved), a),
        "blur 3": (v.GaussianBlur(3, 0.8), a),
        "blur 5": (v.GaussianBlur(5, 1.1), a),
        "blur 9": (v.GaussianBlur(9, 1.7), a),
        "hue": (v.AdjustHue(0.2), a),
        "brightness": (v.AdjustBrightness(1.3), a),
        "contrast": (v.AdjustContrast(1.3), a),
        "saturation": (v.AdjustSaturation(1.3), a),
        "equalize": (v.Equalize(), a),
        "invert": (v.Invert(), a),
        "grayscale": (v.Grayscale(1), a),
        "resize": (v.Resize((224, 224)), p),
        "resize, larger": (v.Resize((512, 512)), a),
        "resize, nearest": (v.Resize((224, 224), kind.NEAREST), p),
        "resize, cubic": (v.Resize((224, 224), kind.BICUBIC), p),
        "resize, area": (v.Resize((224, 224), kind.AREA), p),
        "resize, half": (v.Resize((128, 128)), a),
        "resize, floats": (v.Resize((224, 224)), p.astype(np.float32)),
        "mirror": (v.HorizontalFlip(), a),
        "upside down": (v.VerticalFlip(), a),
        "crop": (v.CenterCrop(224), a),
        "pad": (v.Pad(8), a),
        "pad, reflected": (v.Pad(8, 0, v.Border.REFLECT), a),
        "normalize": (normalize, a),
        "normalize, floats": (normalize, f),
        "rescale": (v.Rescale(1 / 255, 0.0), a),
        "planes": (v.HWC2CHW(), a),
        "to tensor": (v.ToTensor(), a),
    }
    return {name: lambda t=t, image=image: t(image) for name, (t, image) in transforms.items()}


def opencv_cases() -> dict[str, Case]:
    """Return what OpenCV does for the same, as a program would write it."""
    import cv2 as cv

    cv.setNumThreads(1)
    a, p, f = inputs()
    floats, size = p.astype(np.float32), (256, 256)
    corners = np.float32([(0, 0), (255, 0), (255, 255), (0, 255)])
    moved = np.float32([(10, 5), (240, 9), (250, 250), (3, 240)])
    turn, tilt = cv.getRotationMatrix2D((127.5, 127.5), 30, 1), cv.getPerspectiveTransform(corners, moved)

    def hue() -> Any:
        turned = cv.cvtColor(a, cv.COLOR_RGB2HSV_FULL)
        turned[..., 0] += 51
        return cv.cvtColor(turned, cv.COLOR_HSV2RGB_FULL)

    def normalized(image: Any) -> Any:
        result = cv.subtract(image, (120.0, 110.0, 100.0, 0), dtype=cv.CV_32F)
        return cv.divide(result, (50.0, 51.0, 52.0, 1), result)

    def saturated() -> Any:
        grey = cv.cvtColor(cv.cvtColor(a, cv.COLOR_RGB2GRAY), cv.COLOR_GRAY2RGB)
        return cv.addWeighted(a, 1.3, grey, -0.3, 0)

    def contrast() -> Any:
        mean = np.floor(cv.mean(cv.cvtColor(a, cv.COLOR_RGB2GRAY))[0])
        return cv.addWeighted(a, 1.3, a, 0, -0.3 * mean)

    return {
        "rotate": lambda: cv.warpAffine(a, turn, size, flags=cv.INTER_NEAREST),
        "rotate, bilinear": lambda: cv.warpAffine(a, turn, size),
        "rotate, cubic": lambda: cv.warpAffine(a, turn, size, flags=cv.INTER_CUBIC),
        "perspective": lambda: cv.warpPerspective(a, tilt, size),
        "blur 3": lambda: cv.GaussianBlur(a, (3, 3), 0.8),
        "blur 5": lambda: cv.GaussianBlur(a, (5, 5), 1.1),
        "blur 9": lambda: cv.GaussianBlur(a, (9, 9), 1.7),
        "hue": hue,
        "brightness": lambda: cv.convertScaleAbs(a, alpha=1.3),
        "contrast": contrast,
        "saturation": saturated,
        "equalize": lambda: cv.merge([cv.equalizeHist(channel) for channel in cv.split(a)]),
        "invert": lambda: cv.bitwise_not(a),
        "grayscale": lambda: cv.cvtColor(a, cv.COLOR_RGB2GRAY),
        "resize": lambda: cv.resize(p, (224, 224)),
        "resize, larger": lambda: cv.resize(a, (512, 512)),
        "resize, nearest": lambda: cv.resize(p, (224, 224), interpolation=cv.INTER_NEAREST),
        "resize, cubic": lambda: cv.resize(p, (224, 224), interpolation=cv.INTER_CUBIC),
        "resize, area": lambda: cv.resize(p, (224, 224), interpolation=cv.INTER_AREA),
        "resize, half": lambda: cv.resize(a, (128, 128)),
        "resize, floats": lambda: cv.resize(floats, (224, 224)),
        "mirror": lambda: cv.flip(a, 1),
        "upside down": lambda: cv.flip(a, 0),
        "crop": lambda: a[16:240, 16:240].copy(),
        "pad": lambda: cv.copyMakeBorder(a, 8, 8, 8, 8, cv.BORDER_CONSTANT),
        "pad, reflected": lambda: cv.copyMakeBorder(a, 8, 8, 8, 8, cv.BORDER_REFLECT_101),
        "normalize": lambda: normalized(a),
        "normalize, floats": lambda: normalized(f),
        "rescale": lambda: cv.multiply(a, (1 / 255,) * 4, dtype=cv.CV_32F),
        "planes": lambda: np.stack(cv.split(a)),
        "to tensor": lambda: np.stack(cv.split(cv.multiply(a, (1 / 255,) * 4, dtype=cv.CV_32F))),
    }


def microseconds(case: Case) -> float:
    """Return the CPU time of a call, the mean of several."""
    start, calls = time.process_time(), 0
    while (taken := time.process_time() - start) < 0.01:
        case()
        calls += 1
    return 1e6 * taken / calls


def serve(folder: str) -> None:
    """Answer names of OpenCV's cases with times, after storing results."""
    cases = opencv_cases()
    np.savez(Path(folder) / "results.npz", **{name: case() for name, case in cases.items()})
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(microseconds(cases[line.strip()])), flush=True)


def main() -> None:
    """Compare the two."""
    parser = argparse.ArgumentParser(description="Transforms of images against OpenCV, in turns.")
    parser.add_argument("--opencv", required=True, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other = subprocess.Popen(
            [options.opencv, __file__, "--serve", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert other.stdin is not None and other.stdout is not None
        if other.stdout.readline().strip() != "ready":
            raise SystemExit(f"{options.opencv} has no OpenCV")
        results = np.load(Path(folder) / "results.npz")
        for name, case in mycel_cases().items():
            apart = np.abs(np.asarray(case(), np.float64) - results[name])
            ours = theirs = float("inf")
            for _ in range(options.rounds):
                ours = min(ours, microseconds(case))
                print(name, file=other.stdin, flush=True)
                theirs = min(theirs, float(other.stdout.readline()))
            print(f"{name:<20} {ours:8.1f} {theirs:8.1f} {theirs / ours:6.2f}  apart {apart.mean():.3f}", flush=True)
        other.communicate()


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1:2] == ["--serve"] else main()
