"""Pooling, patches, sizes and the losses beside them give MindSpore's outputs and gradients (see
`window_cases`); the rest against NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import convolve1d

import mycel as ms
from tests.nn import window_cases as cases

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "expected_windows.json").read_text())
CHECKED = {f"nn.{name.split('_')[0]}": "MindSpore" for name in cases.CASES} | {
    "nn.MSSSIM": "SciPy",
    "nn.PSNR": "NumPy",
    "nn.SSIM": "SciPy",
    "nn.Unfold": "NumPy",
    "ops.adaptive_max_pool3d": "MindSpore",
}


@pytest.fixture(autouse=True)
def restored_mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def test_every_case_is_recorded() -> None:
    assert set(EXPECTED) == set(cases.CASES)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
@pytest.mark.parametrize("name", list(cases.CASES))
def test_parameters_outputs_and_gradients_are_those_recorded(name: str, mode: int) -> None:
    ms.set_context(mode=mode)
    found, expected = cases.run(ms, cases.CASES[name]), EXPECTED[name]
    assert found["parameters"] == expected["parameters"]
    assert found["shapes"] == expected["shapes"]
    for got, wanted in zip(found["outputs"], expected["outputs"]):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=5e-6)
    assert len(found.get("gradients", [])) == len(expected.get("gradients", []))
    for got, wanted in zip(found.get("gradients", []), expected.get("gradients", [])):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=5e-5)


def patches(x: Any, ksizes: Any, strides: Any, rates: Any, padding: str) -> Any:
    """Patches of (N, C, H, W) one by one."""
    spans = [(k - 1) * r + 1 for k, r in zip(ksizes, rates)]
    if padding == "same":
        more = [max((-(-d // s) - 1) * s + p - d, 0) for d, s, p in zip(x.shape[2:], strides, spans)]
        x = np.pad(x, ((0, 0), (0, 0), *((m // 2, m - m // 2) for m in more)))
    rows, columns = ((d - p) // s + 1 for d, p, s in zip(x.shape[2:], spans, strides))
    out = np.zeros((x.shape[0], ksizes[0] * ksizes[1] * x.shape[1], rows, columns), x.dtype)
    for i in range(rows):
        for j in range(columns):
            top, left = i * strides[0], j * strides[1]
            patch = x[:, :, top : top + spans[0] : rates[0], left : left + spans[1] : rates[1]]
            out[:, :, i, j] = patch.transpose(0, 2, 3, 1).reshape(x.shape[0], -1)
    return out


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("sizes", [((2, 3), (2, 1), (1, 1)), ((3, 2), (1, 3), (2, 3)), ((1, 1), (1, 1), (1, 1))])
def test_patches_as_channels(sizes: Any, padding: str) -> None:
    x = cases.IMAGE
    cell = ms.nn.Unfold(*[[1, *s, 1] for s in sizes], padding)
    np.testing.assert_array_equal(cell(ms.Tensor(x)).asnumpy(), patches(x, *sizes, padding))
    np.testing.assert_array_equal(ms.jit(cell)(ms.Tensor(x)).asnumpy(), patches(x, *sizes, padding))
    weights = cases.wave(*patches(x, *sizes, padding).shape)
    gradient = ms.grad(lambda v: (cell(v) * ms.Tensor(weights)).sum())(ms.Tensor(x)).asnumpy()
    way = cases.wave(*x.shape, phase=2.0)
    wanted = float((patches(way, *sizes, padding).astype(np.float64) * weights).sum())
    assert float((gradient * way).sum()) == pytest.approx(wanted, rel=1e-4, abs=1e-3)


def similarity(a: Any, b: Any, top: float, size: int, sigma: float, k1: float, k2: float) -> tuple[Any, Any]:
    """SSIM and its factor of structure for each channel, in float64 with SciPy's convolution."""
    bell = np.exp(-((np.arange(size) - (size - 1) / 2) ** 2) / (2 * sigma**2))
    half = size // 2

    def smooth(x: Any) -> Any:
        for axis in (2, 3):
            x = convolve1d(x, bell / bell.sum(), axis)
        return x[:, :, half : x.shape[2] - half, half : x.shape[3] - half]

    m1, m2, c1, c2 = smooth(a), smooth(b), (k1 * top) ** 2, (k2 * top) ** 2
    v1, v2, c = smooth(a * a) - m1 * m1, smooth(b * b) - m2 * m2, smooth(a * b) - m1 * m2
    light, structure = (2 * m1 * m2 + c1) / (m1**2 + m2**2 + c1), (2 * c + c2) / (v1 + v2 + c2)
    return (light * structure).mean((2, 3)), structure.mean((2, 3))


def pictures(*shape: int, top: float = 1.0) -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    a = random.uniform(0, 0.8, shape)
    return top * a, top * (a + random.uniform(0, 0.2, shape))


@pytest.mark.parametrize("top", [0.5, 1.0, 255.0])
def test_similarities_of_images(top: float) -> None:
    a, b = pictures(2, 3, 16, 19, top=top)
    pair = ms.Tensor(a), ms.Tensor(b)
    wanted = 10 * np.log10(top**2 / ((a - b) ** 2).mean((1, 2, 3)))
    np.testing.assert_allclose(ms.nn.PSNR(top)(*pair).asnumpy(), wanted, rtol=1e-9)
    np.testing.assert_allclose(ms.nn.PSNR(top)(*[x.astype(ms.float32) for x in pair]).asnumpy(), wanted, rtol=1e-5)
    for options in ((11, 1.5, 0.01, 0.03), (5, 0.9, 0.02, 0.05)):
        wanted = similarity(a, b, top, *options)[0].mean(-1)
        np.testing.assert_allclose(ms.nn.SSIM(top, *options)(*pair).asnumpy(), wanted, rtol=1e-8)
        half = ms.jit(ms.nn.SSIM(top, *options))(*[x.astype(ms.float32) for x in pair])
        np.testing.assert_allclose(half.asnumpy(), wanted, rtol=2e-4)


def test_similarities_of_images_at_several_scales() -> None:
    a, b = pictures(2, 2, 44, 36)
    powers = (0.2, 0.3, 0.5)
    result: Any = 1.0
    x, y = a, b
    for k, power in enumerate(powers):
        whole, structure = similarity(x, y, 1.0, 7, 1.5, 0.01, 0.03)
        result = result * np.maximum(whole if k == 2 else structure, 0) ** power
        x, y = (
            v.reshape(*v.shape[:2], v.shape[2] // 2, 2, v.shape[3] // 2, 2).mean((3, 5)) if k < 2 else v for v in (x, y)
        )
    cell = ms.nn.MSSSIM(power_factors=powers, filter_size=7)
    np.testing.assert_allclose(cell(ms.Tensor(a), ms.Tensor(b)).asnumpy(), result.mean(-1), rtol=1e-8)


def test_the_derivative_of_similarity_by_differences() -> None:
    a, b = pictures(1, 1, 9, 8)
    cell = ms.nn.SSIM(filter_size=5)
    gradient = ms.grad(lambda x: cell(x, ms.Tensor(b)).sum())(ms.Tensor(a)).asnumpy()
    way = np.cos(np.arange(a.size)).reshape(a.shape)
    ends = [float(cell(ms.Tensor(a + s * 1e-6 * way), ms.Tensor(b))[0]) for s in (1, -1)]
    assert float((gradient * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("axis", [0, 1, (0, 2), -1])
def test_norms_along_axes(axis: Any) -> None:
    x = cases.wave(3, 4, 2, scale=2.0)
    norm = np.sqrt((x.astype(np.float64) ** 2).sum(axis, keepdims=True))
    wanted = x * 1.9 / np.maximum(norm, 1.9)
    np.testing.assert_allclose(ms.nn.ClipByNorm(axis)(ms.Tensor(x), ms.Tensor(1.9)).asnumpy(), wanted, rtol=1e-5)
    half = ms.nn.ClipByNorm(axis)(ms.Tensor(x).astype(ms.float16), ms.Tensor(1.9))
    assert half.dtype is ms.float16
    np.testing.assert_allclose(half.asnumpy(), wanted, rtol=5e-3, atol=2e-3)


def test_the_derivative_of_a_look_up_adds_up_for_each_row() -> None:
    cell = ms.nn.EmbeddingLookup(3, 2)
    weights = cases.wave(5, 2)
    numbers = ms.Tensor([0, 2, 0, 3, -1])
    gradient = ms.grad(lambda: (cell(numbers) * ms.Tensor(weights)).sum(), None, cell.trainable_params())()
    wanted = [weights[0] + weights[2], [0.0, 0.0], weights[1]]
    np.testing.assert_allclose(gradient[0].asnumpy(), wanted, rtol=1e-6)
    assert not cell(numbers).asnumpy()[3:].any()


def test_zeros_clip_to_zeros_with_finite_derivatives() -> None:
    x = ms.ops.zeros((2, 3))
    cell = ms.nn.ClipByNorm()
    assert not cell(x, ms.Tensor(1.0)).asnumpy().any()
    assert ms.grad(lambda v: cell(v, ms.Tensor(1.0)).sum())(x).asnumpy().tolist() == [[1.0] * 3] * 2
    loss = ms.nn.TripletMarginWithDistanceLoss(margin=-1.0)
    assert np.isfinite(ms.grad(loss)(x, x, x).asnumpy()).all()


def test_random_windows_hold_the_largest_of_what_they_cover() -> None:
    ms.set_seed(4)
    x = ms.Tensor(cases.IMAGE)
    best, where = ms.nn.FractionalMaxPool2d(2, output_size=(3, 4), return_indices=True)(x)
    np.testing.assert_array_equal(
        np.take_along_axis(cases.IMAGE.reshape(1, 2, -1), where.asnumpy().reshape(1, 2, -1), 2),
        best.asnumpy().reshape(1, 2, -1),
    )
    found = ms.grad(lambda v: ms.nn.FractionalMaxPool2d(2, (3, 4), _random_samples=ms.Tensor(cases.SAMPLES))(v).sum())(
        x
    )
    assert float(found.asnumpy().sum()) == 24.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda nn: nn.Unfold([2, 2], [1, 1, 1, 1], [1, 1, 1, 1]), ValueError, "ksizes must be .1, rows, columns, 1."),
        (lambda nn: nn.Unfold(*[[1, 9, 9, 1]] * 3)(ms.ops.ones((1, 1, 4, 4))), ValueError, "do not fit into"),
        (lambda nn: nn.LPPool1d(-1, 2), ValueError, "norm_type must be above 0"),
        (
            lambda nn: nn.SSIM()(ms.ops.ones((1, 1, 4, 4)), ms.ops.ones((1, 1, 4, 4))),
            ValueError,
            "smaller than filter_size 11",
        ),
        (lambda nn: nn.PSNR()(ms.ops.ones((1, 4, 4)), ms.ops.ones((1, 4, 4))), ValueError, "must be .N, C, H, W."),
        (lambda nn: nn.MSSSIM(power_factors=()), TypeError, "power_factors must be"),
        (lambda nn: nn.EmbeddingLookup(3, 2, target="GPU"), ValueError, "target must be one of"),
        (lambda nn: nn.MultiClassDiceLoss(ms.ops.ones(3)), ValueError, "weights must be .classes, D."),
        (lambda nn: nn.MaxUnpool2d(0), ValueError, "kernel_size must be at least 1"),
        (lambda nn: nn.TripletMarginWithDistanceLoss(3), TypeError, "distance_function must be a function"),
    ],
)
def test_arguments_that_do_not_fit(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(ms.nn)
