"""Resizing, sampling, boxes and unpooling against what MindSpore 2.10 gives, and their derivatives
against differences.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

EXPECTED = json.loads((Path(__file__).parent / "expected_images.json").read_text())
MINDSPORE = (
    "affine_grid bounding_box_decode bounding_box_encode check_valid crop_and_resize fractional_max_pool2d "
    "fractional_max_pool3d grid_sample interpolate "
    "iou max_unpool1d max_unpool2d max_unpool3d"
)
CHECKED = {f"ops.{n}": "MindSpore" for n in MINDSPORE.split()} | {
    "ops.upsample": "MindSpore",
    "ops.choice_with_mask": "definition",
}


def differences(function: Any, *arrays: np.ndarray) -> None:
    """Derivatives of the sum of squares by every operand, along one direction."""

    def loss(*tensors: Tensor) -> Tensor:
        out = function(*tensors)
        return ops.sum(out * out)

    gradients = ms.grad(loss, tuple(range(len(arrays))))(*[Tensor(a) for a in arrays])
    for k, gradient in enumerate(gradients if isinstance(gradients, tuple) else (gradients,)):
        way = np.random.default_rng(k).normal(size=arrays[k].shape)
        ends = [[Tensor(b + s * 1e-6 * way) if j == k else Tensor(b) for j, b in enumerate(arrays)] for s in (1, -1)]
        want = (loss(*ends[0]).item() - loss(*ends[1]).item()) / 2e-6
        assert (gradient.asnumpy() * way).sum() == pytest.approx(want, rel=2e-5, abs=1e-6)


def test_interpolation() -> None:
    assert len(EXPECTED["interpolate"]) > 50
    for shape, options, want in EXPECTED["interpolate"]:
        x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) ** 1.5
        got = ops.interpolate(Tensor(x), **options)
        # MindSpore takes cubic weights from a table of 1024 rows.
        near = 4e-2 if options["mode"] == "bicubic" else 1e-4
        np.testing.assert_allclose(got.asnumpy(), want, rtol=2e-5, atol=near, err_msg=str(options))


def test_interpolation_is_differentiable_compiled_and_checked() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(1, 2, 3, 4))
    for mode in ("bilinear", "bicubic"):
        differences(lambda t, m=mode: ops.upsample(t, (5, 6), mode=m), x)
        whole = ops.interpolate(Tensor(x), (5, 6), mode=mode).asnumpy()
        compiled = ms.jit(lambda t, m=mode: ops.interpolate(t, (5, 6), mode=m))
        np.testing.assert_allclose(compiled(Tensor(x)).asnumpy(), whole, rtol=1e-12)
    assert ops.interpolate(Tensor(x.astype(np.float32)), (2, 2), mode="area").dtype is ms.float32
    for options in (
        {},
        {"size": 2, "scale_factor": 2.0},
        {"size": (1, 2, 3)},
        {"size": (2, 2), "mode": "linear"},
        {"size": 2, "align_corners": True},
    ):
        with pytest.raises(ValueError, match="interpolate"):
            ops.interpolate(Tensor(x), **options)


def test_sampling_at_positions() -> None:
    expected = EXPECTED["grid_sample"]
    for key, want in expected.items():
        if key[0] in "xg":
            continue
        rank, mode, padding, align = key.split()
        for kind, near in ((np.float32, 1e-5), (np.float64, 1e-5)):
            x, grid = (Tensor(np.array(expected[c + rank], kind)) for c in "xg")
            got = ops.grid_sample(x, grid, mode, padding, align == "True")
            assert got.asnumpy().dtype == kind
            np.testing.assert_allclose(got.asnumpy(), want, atol=near, err_msg=key)
    x, grid = np.array(expected["x2"]), np.array(expected["g2"])
    for padding in ("zeros", "border", "reflection"):
        differences(lambda a, b, p=padding: ops.grid_sample(a, b, "bilinear", p), x, grid)


def test_affine_positions() -> None:
    theta = Tensor(np.arange(12.0).reshape(1, 3, 4))
    assert ops.affine_grid(theta, (1, 1, 2, 2, 1), True).tolist() == [
        [[[[0.0, -4.0, -8.0]], [[2.0, 6.0, 10.0]]], [[[4.0, 8.0, 12.0]], [[6.0, 18.0, 30.0]]]]
    ]
    theta2 = np.arange(6.0).reshape(1, 2, 3)
    assert ops.affine_grid(Tensor(theta2), (1, 1, 1, 3), True).tolist() == [[[[2.0, 2.0], [2.0, 5.0], [2.0, 8.0]]]]
    got = ops.affine_grid(Tensor([[[0.8, 0.5, 0.0], [-0.5, 0.8, 0.0]]]), (1, 3, 2, 3), False).asnumpy()
    np.testing.assert_allclose(
        got[0, 0], [[-0.78333336, -0.06666666], [-0.25, -0.4], [0.28333336, -0.73333335]], rtol=1e-6
    )
    differences(lambda t: ops.affine_grid(t, (1, 1, 2, 3)), theta2)
    with pytest.raises(ValueError, match="matrices"):
        ops.affine_grid(theta, (2, 1, 2, 2, 1))


CROPS = {
    ("bilinear", (3, 2)): [0, 3, 6, 9, 12, 15, 19.3, 21.1, 25.9, 27.7, 9, 9, 25.9, 27.1, 22.3, 23.5, 18.7, 19.9],
    ("bilinear", (1, 1)): [7.5, 26.8, 22.9],
    ("nearest", (3, 2)): [0, 3, 8, 11, 12, 15, 21, 23, 25, 27, 9, 9, 24, 26, 24, 26, 20, 22],
    ("nearest", (1, 1)): [10, 26, 25],
    ("bilinear_v2", (3, 2)): [
        2.083333,
        4.333333,
        8.75,
        11,
        12.75,
        15,
        19.25,
        20.75,
        27.25,
        28.75,
        29.25,
        30.75,
        28.25,
        29.75,
        28.25,
        29.75,
        28.25,
        29.75,
    ],
    ("bilinear_v2", (1, 1)): [10, 28, 29],
}


@pytest.mark.parametrize(("method", "size"), list(CROPS))
def test_crops(method: str, size: tuple[int, int]) -> None:
    image = np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1)
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.3, 1.3, 0.9], [0.8, 0.1, 0.2, 0.5]], np.float32)
    got = ops.crop_and_resize(Tensor(image), Tensor(boxes), Tensor([0, 1, 1], ms.int32), size, method, 9.0)
    assert got.shape == (3, *size, 1)
    np.testing.assert_allclose(got.asnumpy().ravel(), CROPS[method, size], rtol=1e-5)


def test_crop_derivatives() -> None:
    image = np.random.default_rng(1).normal(size=(1, 4, 5, 2))
    boxes = np.array([[0.11, 0.23, 0.87, 0.71]])
    differences(lambda x, b: ops.crop_and_resize(x, b, Tensor([0], ms.int32), (3, 2)), image, boxes)


def test_unpooling() -> None:
    x, index = Tensor([[[2.0, 4.0, 6.0]]]), Tensor([[[1, 3, 4]]])
    assert ops.max_unpool1d(x, index, 2, 2).tolist() == [[[0.0, 2.0, 0.0, 4.0, 6.0, 0.0]]]
    assert ops.max_unpool1d(x, index, 2, 2, 0, (7,)).tolist() == [[[0.0, 2.0, 0.0, 4.0, 6.0, 0.0, 0.0]]]
    assert ops.max_unpool2d(Tensor([[[2.0, 4], [6, 8]]]), Tensor([[[0, 3], [9, 15]]]), 2).tolist() == [
        [[2.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0], [0.0, 6.0, 0.0, 0.0], [0.0, 0.0, 0.0, 8.0]]
    ]
    volume = np.random.default_rng(2).normal(size=(2, 3, 4, 4, 6))
    best, where = ops.max_pool3d(Tensor(volume), 2, 2, return_indices=True)
    back = ops.max_unpool3d(best, where, 2).asnumpy()
    assert back.shape == volume.shape and np.count_nonzero(back) == best.size
    np.testing.assert_array_equal(back[back != 0], volume[back != 0])
    differences(lambda t: ops.max_unpool3d(t, where, 2), best.asnumpy())
    with pytest.raises(ValueError, match="output_size"):
        ops.max_unpool1d(x, index, 2, 2, 0, (20,))


def test_fractional_pooling() -> None:
    x = Tensor(np.arange(60, dtype=np.float32).reshape(1, 2, 6, 5) % 13)
    u = Tensor(np.array([[[0.3, 0.7], [0.1, 0.9]]], np.float32))
    best, where = ops.fractional_max_pool2d(x, 2, (3, 2), return_indices=True, _random_samples=u)
    assert best.tolist() == [[[[6.0, 9.0], [11.0, 6.0], [12.0, 11.0]], [[10.0, 12.0], [7.0, 10.0], [12.0, 7.0]]]]
    assert where.tolist() == [[[[6, 9], [11, 19], [25, 24]], [[6, 8], [16, 19], [21, 29]]]]
    again = ops.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.6), _random_samples=u)
    assert again.tolist()[0][0] == [[6.0, 7.0, 9.0], [11.0, 12.0, 6.0], [12.0, 9.0, 11.0]]
    volume = Tensor(np.arange(240, dtype=np.float32).reshape(1, 2, 4, 5, 6) % 17)
    u3 = Tensor(np.array([[[0.3, 0.7, 0.5], [0.1, 0.9, 0.2]]], np.float32))
    _, where = ops.fractional_max_pool3d(volume, (1, 2, 3), (3, 2, 2), return_indices=True, _random_samples=u3)
    assert where.tolist() == [
        [
            [[[8, 11], [26, 29]], [[32, 33], [50, 59]], [[98, 101], [116, 118]]],
            [[[8, 11], [26, 29]], [[32, 41], [49, 59]], [[98, 100], [116, 117]]],
        ]
    ]
    assert ops.fractional_max_pool3d(volume, 2, (2, 2, 3)).shape == (1, 2, 2, 2, 3)
    differences(
        lambda t: ops.fractional_max_pool2d(t, 2, (3, 2), _random_samples=u),
        np.random.default_rng(0).normal(size=(1, 2, 6, 5)),
    )


def test_boxes() -> None:
    anchors, truths = Tensor([[0.0, 0, 2, 2], [1, 1, 4, 3]]), Tensor([[0.0, 1, 2, 3], [5, 5, 6, 6], [1, 1, 1, 1]])
    np.testing.assert_allclose(ops.iou(anchors, truths).asnumpy(), [[0.5, 0.4], [0, 0], [1 / 9, 1 / 12]], rtol=1e-6)
    np.testing.assert_allclose(ops.iou(anchors, truths, "iof").asnumpy(), [[2 / 3, 2 / 3], [0, 0], [1, 1]], rtol=1e-6)
    a, g, scale = (
        Tensor([[2.0, 2, 4, 5], [1, 1, 3, 3]]),
        Tensor([[1.0, 2, 5, 4], [1, 2, 2, 4]]),
        ((0.1, 0.2, 0.0, 0.3), (1.0, 2.0, 1.0, 0.5)),
    )
    want = [[-0.1, -0.1625, 0.5108256, -1.1753643], [-0.26666668, 0.06666667, -0.40546507, -0.6]]
    np.testing.assert_allclose(ops.bounding_box_encode(a, g, *scale).asnumpy(), want, rtol=1e-5)
    got = ops.bounding_box_decode(a, Tensor([[0.3, 0.2, 0.1, 9.0], [-3, 0.4, -9.0, 0.2]]), (7, 6), *scale)
    np.testing.assert_allclose(got.asnumpy(), [[3.0422435, 0, 5.3577561, 7], [0, 3.2622628, 0, 6.7377372]], rtol=1e-5)
    boxes = Tensor([[0.0, 0, 2, 2], [1, 1, 9, 3], [-1, 0, 2, 2], [1, 1, 4, 3]])
    assert ops.check_valid(boxes, Tensor([4.0, 5.0, 1.0])).tolist() == [True, False, False, True]
    differences(
        lambda x, y: ops.bounding_box_encode(x, y), a.asnumpy().astype(np.float64), g.asnumpy().astype(np.float64)
    )


def test_random_choices() -> None:
    mask = np.random.default_rng(0).uniform(size=(5, 4)) < 0.5
    index, valid = ops.choice_with_mask(Tensor(mask), 15, seed=3)
    count = int(mask.sum())
    assert valid.tolist() == [True] * count + [False] * (15 - count)
    assert sorted(map(tuple, index.asnumpy()[:count])) == sorted(zip(*np.nonzero(mask)))
    assert not index.asnumpy()[count:].any()
