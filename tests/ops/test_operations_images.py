"""Operations over images, boxes and windows: what MindSpore 2.10 gives on a CPU, compiled and
eagerly, and derivatives against differences.

The stored results are MindSpore's own, of float32 inputs that are stored with them. What it draws
at random, and orders of equal scores, are not among them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.foundation.pytree import flatten
from tests.ops.test_images import differences

STORED = json.loads((Path(__file__).parent / "expected_image_operations.json").read_text())
ARRAYS = [np.array(values, dtype).reshape(shape) for dtype, shape, values in STORED["arrays"]]
CHECKED = {f"ops.{name}": "MindSpore" for name, *_ in STORED["cases"]}
# MindSpore takes cubic weights from a table of 1024 rows.
NEAR = {"ResizeBicubic": 1.5e-3}


def unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return ARRAYS[value["a"]]
    return [unpacked(v) for v in value] if isinstance(value, list) else value


def made(name: str, init: dict[str, Any]) -> Any:
    """An object with stored parameters, or a function."""
    operation = getattr(ops, name)
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in init.items()}
    given = {k: getattr(ms, v.lower()) if k == "argmax_type" else v for k, v in given.items()}
    return operation(**given) if isinstance(operation, type) else operation


@pytest.mark.parametrize("index", range(len(STORED["cases"])), ids=lambda i: f"{STORED['cases'][i][0]}-{i}")
def test_results_are_those_of_mindspore(index: int) -> None:
    name, init, inputs, outputs = STORED["cases"][index]
    operation = made(name, init)
    arrays = [unpacked(v) for v in inputs]
    expected = unpacked(outputs)
    got = operation(*[Tensor(v) if isinstance(v, np.ndarray) else v for v in arrays])
    results = flatten(got)[0]
    assert len(results) == (len(expected) if isinstance(expected, list) else 1)
    for result, want in zip(results, expected if isinstance(expected, list) else [expected]):
        found = result.asnumpy()
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        near = NEAR.get(name, 4e-6)
        np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=near, atol=near)


def first(name: str) -> tuple[Any, list[Any]]:
    """The first stored case of an operation: the object, or function, and its inputs."""
    init, inputs = next((init, inputs) for n, init, inputs, _ in STORED["cases"] if n == name)
    return made(name, init), [unpacked(v) for v in inputs]


@pytest.mark.parametrize("name", sorted({name for name, *_ in STORED["cases"]}))
def test_compiled_results_are_the_eager_ones(name: str) -> None:
    operation, inputs = first(name)
    # Sizes stay what they are; floating-point inputs are not known while compiling.
    known = [v if not isinstance(v, np.ndarray) else None if v.dtype.kind == "f" else Tensor(v) for v in inputs]
    floats = [Tensor(v) for v in inputs if isinstance(v, np.ndarray) and v.dtype.kind == "f"]

    def call(*tensors: Tensor) -> Any:
        rest = list(tensors)
        return operation(
            *[rest.pop(0) if isinstance(v, np.ndarray) and k is None else k for v, k in zip(inputs, known)]
        )

    eager, compiled = flatten(call(*floats))[0], flatten(ms.jit(call)(*floats))[0]
    assert len(eager) == len(compiled)
    for a, b in zip(eager, compiled):
        assert a.shape == b.shape and a.dtype is b.dtype
        np.testing.assert_allclose(a.asnumpy().astype(np.float64), b.asnumpy().astype(np.float64), rtol=2e-6, atol=2e-6)


SMOOTH = {
    "AdjustHue": (0, 1),
    "AdjustSaturation": (0, 1),
    "RGBToHSV": (0,),
    "HSVToRGB": (0,),
    "Conv3DTranspose": (0, 1),
    "DeformableOffsets": (0, 1),
    "ExtractGlimpse": (0,),
    "ExtractVolumePatches": (0,),
    "FractionalMaxPoolWithFixedKsize": (0,),
    "FractionalMaxPool3DWithFixedKsize": (0,),
    "Im2Col": (0,),
    "MaxPool3DWithArgmax": (0,),
    "MaxPoolWithArgmax": (0,),
    "MaxPoolWithArgmaxV2": (0,),
    "MaxUnpool2D": (0,),
    "MaxUnpool3D": (0,),
    "AdaptiveMaxPool3D": (0,),
    "PadV3": (0, 2),
    "ROIAlign": (0, 1),
    "ResizeArea": (0,),
    "ResizeBicubic": (0,),
    "ResizeBilinearV2": (0,),
    "ResizeLinear1D": (0,),
    "ResizeNearestNeighborV2": (0,),
    "UpsampleNearest3D": (0,),
    "UpsampleTrilinear3D": (0,),
    "ScaleAndTranslate": (0, 2, 3),
    "mirror_pad": (0,),
    "deformable_conv2d": (0, 1, 2, 6),
}


@pytest.mark.parametrize("name", sorted(SMOOTH))
def test_derivatives_are_those_of_differences(name: str) -> None:
    operation, inputs = first(name)
    random = np.random.default_rng(5)
    wrt = SMOOTH[name]
    # Off the corners of piecewise functions, and not so large that differences lose their digits.
    scale = 1.0 if name in ("ROIAlign", "ScaleAndTranslate", "PadV3") else max(1.0, float(np.abs(inputs[0]).max()) / 3)
    moved = [np.asarray(inputs[k], np.float64) / (scale if k == 0 else 1) for k in wrt]
    moved = [v + random.uniform(-0.02, 0.02, v.shape) for v in moved]

    def call(*tensors: Tensor) -> Any:
        given = [Tensor(v) if isinstance(v, np.ndarray) else v for v in inputs]
        for k, t in zip(wrt, tensors):
            given[k] = t
        found = flatten(operation(*given))[0]
        return next(t for t in found if t.dtype.is_floating)

    differences(call, *moved)


def test_regions_with_as_many_samples_as_they_need() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(2, 2, 6, 7))
    rois = np.array([[0, 0.2, 0.3, 5, 4], [1, 1, 2, 1, 2], [1, -1.5, -2, 9.5, 8], [1, 3.2, 1.7, 6.1, 5.9]])
    for mode in (0, 1):
        want = np.zeros((4, 2, 2, 3))
        for r, (image, x0, y0, x1, y1) in enumerate(rois):
            sides = [(y1 + mode - y0), (x1 + mode - x0)]
            high, wide = [s / n if mode else max(s, 1.0) / n for s, n in zip(sides, (2, 3))]
            rows, columns = max(int(np.ceil(high)), 1), max(int(np.ceil(wide)), 1)
            for i in range(2):
                for j in range(3):
                    total = np.zeros(2)
                    for a in range(rows):
                        for b in range(columns):
                            y, u = y0 + high * (i + (a + 0.5) / rows), x0 + wide * (j + (b + 0.5) / columns)
                            total += bilinear(x[int(image)], y, u)
                    want[r, :, i, j] = total / (rows * columns)
        got = ops.ROIAlign(2, 3, 1.0, 0, mode)(Tensor(x), Tensor(rois))
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-9, atol=1e-12)
        compiled = ms.jit(lambda a, b, m=mode: ops.ROIAlign(2, 3, 1.0, 0, m)(a, b))(Tensor(x), Tensor(rois))
        np.testing.assert_allclose(compiled.asnumpy(), want, rtol=1e-9, atol=1e-12)
    differences(lambda a: ops.ROIAlign(2, 3, 1.0, 0)(a, Tensor(rois)), x)


def bilinear(image: Any, y: float, x: float) -> Any:
    c, h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(c)
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    a, b = int(y), int(x)
    p, q = min(a + 1, h - 1), min(b + 1, w - 1)
    u, v = y - a, x - b
    upper = (1 - v) * image[:, a, b] + v * image[:, a, q]
    lower = (1 - v) * image[:, p, b] + v * image[:, p, q]
    return (1 - u) * upper + u * lower


def test_images_that_do_not_fit_are_refused() -> None:
    image = ops.ones((1, 2, 4, 4))
    for call, text in (
        (lambda: ops.RGBToHSV()(image), "rgb_to_hsv"),
        (lambda: ops.AdjustHue()(ops.ones((3, 3)), Tensor(0.1)), "adjust_hue"),
        (lambda: ops.ResizeBilinearV2(True, True)(image, (2, 2)), "half_pixel_centers"),
        (lambda: ops.ResizeNearestNeighborV2()(image, (0, 2)), "resize_nearest"),
        (lambda: ops.ResizeLinear1D("other")(ops.ones((1, 1, 3)), (2,)), "coordinate_transformation_mode"),
        (lambda: ops.ScaleAndTranslate("other")(image, (2, 2), ops.ones(2), ops.ones(2)), "kernel_type"),
        (lambda: ops.PadV3("other")(image, (1, 1)), "PadV3"),
        (lambda: ops.ROIAlign(2, 2, 1.0)(image, ops.ones((1, 4))), "roi_align"),
        (lambda: ops.DeformableOffsets((1, 1, 1, 1), (0, 0, 0, 0), (2, 2))(image, image), "offsets must be"),
        (lambda: ops.deformable_conv2d(image, image, image, (2, 2), (1, 1, 1, 1), (0, 0, 0, 0)), "the weight must be"),
        (
            lambda: ops.ExtractGlimpse(True, True, True, "zero")(ops.ones((1, 2, 2, 1)), (1, 1), ops.ones((1, 2))),
            "uniform_noise",
        ),
        (lambda: ops.MaxUnpool2D(2, data_format="CHWN")(image, image), "data_format"),
        (lambda: ops.MaxPoolWithArgmaxV2(2, dilation=(1,))(image), "dilation"),
        (lambda: ops.mirror_pad(ops.ones(3), [[1, 3]], "REFLECT"), "mirror_pad"),
        (lambda: ops.NMSWithMask(0.5)(ops.ones((3, 4))), "nms_with_mask"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_noise_fills_glimpses_outside_of_the_image() -> None:
    image = ops.zeros((1, 3, 3, 2)) + 7.0
    for uniform, noise, spread in ((True, "uniform", 1 / 3), (False, "gaussian", 1.0)):
        found = ops.ExtractGlimpse(False, False, uniform, noise)(image, (60, 60), Tensor([[30.0, 30.0]])).asnumpy()
        assert (found[0, :3, :3] == 7).all()
        outside = found[found != 7]
        assert outside.size == 2 * (60 * 60 - 9) and abs(outside.mean()) < 0.05
        assert outside.var() == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("name", ["ROIAlign", "DeformableOffsets", "deformable_conv2d", "RGBToHSV", "ResizeBilinearV2"])
def test_half_precision_keeps_positions(name: str) -> None:
    operation, inputs = first(name)
    halves = [v.astype(np.float16) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for v in inputs]
    wanted = [v.astype(np.float32) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for v in halves]
    got, want = (
        operation(*[Tensor(v) if isinstance(v, np.ndarray) else v for v in given]) for given in (halves, wanted)
    )
    assert got.dtype is ms.float16
    np.testing.assert_allclose(got.asnumpy().astype(np.float32), want.asnumpy(), rtol=4e-3, atol=4e-3)


def test_batches_of_examples() -> None:
    random = np.random.default_rng(2)
    images = random.normal(size=(3, 2, 2, 5, 6))
    rois = np.concatenate(
        [random.integers(0, 2, (3, 4, 1)), random.uniform(0, 3, (3, 4, 2)), random.uniform(3, 6, (3, 4, 2))], -1
    )
    scored = np.concatenate(
        [random.uniform(0, 3, (3, 9, 2)), random.uniform(3, 6, (3, 9, 2)), random.uniform(size=(3, 9, 1))], -1
    )
    for function, arrays in (
        (lambda a: ops.ResizeBicubic()(a, (3, 4)), (images,)),
        (lambda a: ops.ResizeArea()(a, Tensor([3, 4])), (images,)),
        (lambda a, b: ops.ROIAlign(2, 2, 1.0, 0)(a, b), (images, rois)),
        (
            lambda a, b: ops.DeformableOffsets((1, 1, 1, 1), (0, 0, 0, 0), (2, 2))(a, b),
            (images, random.normal(size=(3, 2, 12, 4, 5))),
        ),
        (lambda a: ops.NMSWithMask(0.3)(a)[2], (scored,)),
        (lambda a: ops.rotated_iou(a, a), (scored[:, None],)),
    ):
        together = ms.vmap(function)(*map(Tensor, arrays)).asnumpy()
        for k in range(3):
            alone = function(*[Tensor(v[k]) for v in arrays]).asnumpy()
            np.testing.assert_allclose(together[k], alone, rtol=1e-9, atol=1e-12)


def test_mirrored_paddings_are_those_of_numpy():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for mode in ("REFLECT", "SYMMETRIC"):
        for pairs in (((2, 1), (0, 3)), ((0, 0), (0, 0)), ((0, 2), (1, 0))):
            want = np.pad(x, pairs, mode.lower())
            for given in (
                ops.mirror_pad,
                lambda x, p, m: ops.MirrorPad(m)(x, Tensor(p)),
                lambda x, p, m: nn.Pad(p, m)(x),
            ):
                np.testing.assert_array_equal(given(ms.Tensor(x), pairs, mode).asnumpy(), want)
        # An axis without elements may stay without.
        assert ops.MirrorPad(mode)(ms.ops.zeros((0, 3)), Tensor([[0, 0], [1, 1]])).shape == (0, 5)
