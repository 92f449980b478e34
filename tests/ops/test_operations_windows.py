"""Patches, pooling at random, suppression of boxes, morphology and rotated boxes against
definitions in NumPy.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from tests.meaning import A, Checks

checks = Checks("NumPy")
RANDOM = np.random.default_rng(3)


def padded(x: Any, kernel: Any, strides: Any, rates: Any, mode: str, fill: float) -> Any:
    if mode == "SAME":
        pairs = [(0, 0), (0, 0)]
        for d, k, s, r in zip(x.shape[2:], kernel, strides, rates):
            total = max((-(-d // s) - 1) * s + (k - 1) * r + 1 - d, 0)
            pairs.append((total // 2, total - total // 2))
        x = np.pad(x, pairs, constant_values=fill)
    return x


def windows(x: Any, kernel: Any, strides: Any, rates: Any) -> Any:
    """(kh, kw, N, C, rows, columns)."""
    out = [(d - (k - 1) * r - 1) // s + 1 for d, k, s, r in zip(x.shape[2:], kernel, strides, rates)]
    found = np.zeros((*kernel, *x.shape[:2], *out))
    for i, j, a, b in itertools.product(*map(range, kernel), *map(range, out)):
        found[i, j, :, :, a, b] = x[:, :, a * strides[0] + i * rates[0], b * strides[1] + j * rates[1]]
    return found


def patches(mode: str) -> Any:
    def expected(x: Any) -> Any:
        parts = windows(padded(x, (2, 3), (2, 1), (1, 2), mode, 0), (2, 3), (2, 1), (1, 2))
        moved = np.moveaxis(parts, (2, 0, 1, 3), (0, 1, 2, 3))
        return moved.reshape(x.shape[0], 6 * x.shape[1], *moved.shape[4:])

    return expected


def dilated(mode: str) -> Any:
    def expected(x: Any, shape: Any) -> Any:
        parts = windows(padded(x, shape.shape[1:], (2, 1), (1, 2), mode, -1e30), shape.shape[1:], (2, 1), (1, 2))
        return (parts + np.moveaxis(shape, 0, 2)[:, :, None, :, None, None]).max((0, 1))

    return expected


IMAGES = ((A(2, 3, 5, 6),), (A(1, 1, 4, 7),), (A(0, 2, 4, 6),))
for mode in ("VALID", "SAME"):
    options = {"ksizes": [2, 3], "strides": [2, 1], "rates": [1, 2], "padding": mode}
    checks.add("ops.ExtractImagePatches", patches(mode), *IMAGES, init=options)
    checks.add(
        "ops.Dilation2D",
        dilated(mode),
        (A(2, 3, 5, 6), A(3, 2, 3)),
        (A(1, 1, 4, 7), A(1, 2, 2)),
        init={"stride": (2, 1), "dilation": (1, 1, 1, 2), "pad_mode": mode},
    )
checks.add(
    "ops.ExtractImagePatches",
    patches("SAME"),
    *IMAGES,
    init={"ksizes": [1, 1, 2, 3], "strides": [1, 1, 2, 1], "rates": [1, 1, 1, 2], "padding": "same"},
)


def depthwise(x: Any, w: Any) -> Any:
    parts = windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w.shape[2:], (1, 1), (1, 1))
    found = np.einsum("ijncab,mcij->ncmab", parts, w)
    return found.reshape(x.shape[0], -1, *found.shape[3:])


checks.add(
    "ops.DepthwiseConv2dNative",
    depthwise,
    (A(2, 3, 5, 4), A(2, 3, 3, 3)),
    (A(1, 1, 3, 3), A(2, 1, 3, 3)),
    init={"channel_multiplier": 2, "kernel_size": 3, "pad_mode": "pad", "pad": 1},
    tolerance=5,
)


def blocks(x: Any) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1)))
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(3, 5, 0, 1, 2, 4).reshape(4 * n, c, h // 2, w // 2)


def unblocked(x: Any, *rest: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(2, 2, n // 4, c, h, w).transpose(2, 3, 4, 0, 5, 1).reshape(n // 4, c, 2 * h, 2 * w)[:, :, 1:, :-1]


checks.add(
    "ops.SpaceToBatch",
    blocks,
    (A(1, 2, 3, 5),),
    (A(2, 1, 1, 1),),
    (A(0, 1, 3, 3),),
    init={"block_size": 2, "paddings": [[1, 0], [0, 1]]},
)
checks.add(
    "ops.BatchToSpace",
    unblocked,
    (A(4, 2, 2, 3),),
    (A(8, 1, 1, 1),),
    (A(0, 1, 2, 2),),
    init={"block_size": 2, "crops": [[1, 0], [0, 1]]},
)
checks.add(
    "ops.BatchToSpaceNDV2",
    unblocked,
    (A(4, 2, 2, 3), [2, 2], [[1, 0], [0, 1]]),
    (A(8, 1, 1, 1), [2, 2], [[1, 0], [0, 1]]),
)


def attention(value: Any, shape: Any, offset: Any, locations: Any, weight: Any) -> Any:
    batch, _, heads, dims = value.shape
    _, queries, _, levels, points, _ = locations.shape
    found = np.zeros((batch, queries, heads, dims))
    for b, q, h, level, p in itertools.product(*map(range, (batch, queries, heads, levels, points))):
        rows, columns = shape[level]
        x, y = locations[b, q, h, level, p] * (columns, rows) - 0.5
        for i, j in itertools.product((0, 1), repeat=2):
            r, c = int(np.floor(y)) + i, int(np.floor(x)) + j
            if 0 <= r < rows and 0 <= c < columns:
                share = abs(1 - i - (y - np.floor(y))) * abs(1 - j - (x - np.floor(x)))
                found[b, q, h] += weight[b, q, h, level, p] * share * value[b, offset[level] + r * columns + c, h]
    return found.reshape(batch, queries, heads * dims)


LEVELS = np.array([[2, 3], [1, 2]])
checks.add(
    "ops.multi_scale_deformable_attn_function",
    attention,
    (
        A(2, 8, 2, 4),
        A(values=LEVELS),
        A(values=np.array([0, 6])),
        A(2, 3, 2, 2, 2, 2, low=-0.2, high=1.2),
        A(2, 3, 2, 2, 2),
    ),
    (
        A(1, 6, 1, 3),
        A(values=LEVELS[:1]),
        A(values=np.array([0])),
        A(1, 2, 1, 1, 3, 2, low=0, high=1),
        A(1, 2, 1, 1, 3),
    ),
    grad=(0, 3, 4),
    tolerance=5,
)


def corners(box: Any) -> list[Any]:
    x, y, w, h, t = box
    c, s = np.cos(np.radians(t)), np.sin(np.radians(t))
    return [
        (x + c * u * w - s * v * h, y + s * u * w + c * v * h)
        for u, v in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    ]


def shared(one: Any, two: Any) -> float:
    """The area of the intersection: one polygon clipped by each side of the other (Sutherland and
    Hodgman, 1974).
    """
    points, other = corners(one), corners(two)
    for k in range(4):
        (ax, ay), (bx, by) = other[k], other[(k + 1) % 4]
        inside = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in points]
        kept = []
        for i, p in enumerate(points):
            j = (i + 1) % len(points)
            if inside[i] >= 0:
                kept.append(p)
            if (inside[i] >= 0) != (inside[j] >= 0):
                t = inside[i] / (inside[i] - inside[j])
                kept.append((p[0] + t * (points[j][0] - p[0]), p[1] + t * (points[j][1] - p[1])))
        points = kept
    return 0.5 * sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(points, points[1:] + points[:1]))


def rotated(a: Any, b: Any, trans: bool = False, mode: int = 0, is_cross: bool = True) -> Any:
    if trans:
        a, b = (
            np.concatenate([(v[..., :2] + v[..., 2:4]) / 2, v[..., 2:4] - v[..., :2], v[..., 4:]], -1) for v in (a, b)
        )
    found = np.zeros((a.shape[0], a.shape[1], b.shape[1]))
    for i, j, k in np.ndindex(*found.shape):
        area = shared(a[i, j], b[i, k])
        own, other = a[i, j, 2] * a[i, j, 3], b[i, k, 2] * b[i, k, 3]
        found[i, j, k] = area / (own if mode else own + other - area)
    return found if is_cross else np.einsum("ijj->ij", found)


def boxes(*shape: int, trans: bool = False) -> Any:
    centre, size = RANDOM.uniform(0, 4, (*shape, 2)), RANDOM.uniform(0.5, 4, (*shape, 2))
    angle = RANDOM.uniform(-180, 180, (*shape, 1))
    return A(*shape, 5, values=np.concatenate([centre, centre + size if trans else size, angle], -1))


checks.add(
    "ops.rotated_iou",
    rotated,
    (boxes(2, 5), boxes(2, 4)),
    (boxes(1, 1), boxes(1, 3)),
    (boxes(1, 0), boxes(1, 2)),
    tolerance=20,
)
checks.add("ops.rotated_iou", rotated, (boxes(2, 3), boxes(2, 4)), kwargs={"mode": 1}, tolerance=20)
checks.add(
    "ops.rotated_iou",
    rotated,
    (boxes(2, 3, trans=True), boxes(2, 3, trans=True)),
    kwargs={"trans": True, "is_cross": False},
    tolerance=20,
)


def means(rank: int, **options: Any) -> Any:
    def expected(x: Any) -> Any:
        k, pad = 2, options.get("padding", 0)
        grown = np.pad(x, [(0, 0)] * (x.ndim - rank) + [(pad, pad)] * rank)
        seen = np.pad(np.ones(x.shape[-rank:]), pad)
        views = np.lib.stride_tricks.sliding_window_view(grown, (k,) * rank, tuple(range(-rank, 0)))
        counts = np.lib.stride_tricks.sliding_window_view(seen, (k,) * rank)
        every = (..., *[slice(None, None, k)] * rank, *[slice(None)] * rank)
        inner = tuple(range(-rank, 0))
        whole = counts[every].sum(inner) if not options.get("count_include_pad", True) else float(k**rank)
        return views[every].sum(inner) / (options.get("divisor_override") or whole)

    return expected


for rank, shape in ((1, (2, 3, 6)), (2, (2, 3, 4, 6)), (3, (1, 2, 4, 2, 4))):
    for more in ({}, {"padding": 1, "count_include_pad": False}, {"divisor_override": 3}):
        if rank > 1 or "divisor_override" not in more:
            checks.add(
                f"nn.AvgPool{rank}dExt",
                means(rank, **more),
                (A(*shape),),
                (A(*shape[1:]),),
                init={"kernel_size": 2, **more},
            )


def largest(x: Any) -> tuple[Any, Any]:
    views = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (-2, -1))[..., ::2, ::3, :, :]
    at = views.reshape(*views.shape[:-2], 6).argmax(-1)
    rows, columns = np.arange(at.shape[-2])[:, None] * 2 + at // 3, np.arange(at.shape[-1]) * 3 + at % 3
    return views.max((-2, -1)), rows * x.shape[-1] + columns


checks.add(
    "nn.MaxPool2dExt", largest, (A(2, 3, 4, 6),), (A(3, 5, 7),), init={"kernel_size": (2, 3), "return_indices": True}
)
checks.add(
    "nn.CentralCrop", lambda x: x[..., 1:-1, 2:-2], (A(2, 3, 4, 7),), (A(1, 5, 8),), init={"central_fraction": 0.4}
)
checks.add("nn.CentralCrop", lambda x: x, (A(2, 3, 4),), init={"central_fraction": 1.0})
checks.add(
    "nn.ImageGradients",
    lambda x: (np.diff(x, axis=2, append=x[:, :, -1:]), np.diff(x, axis=3, append=x[..., -1:])),
    (A(2, 3, 4, 5),),
    (A(1, 1, 1, 2),),
)
checks.add(
    "ops.DataFormatVecPermute",
    lambda x: x[[0, 3, 1, 2]],
    (A(values=np.arange(4)),),
    (A(values=np.arange(8).reshape(4, 2)),),
    dtypes="int32",
    oracle="MindSpore",
)
checks.add(
    "ops.DataFormatDimMap",
    lambda x: np.array([0, 3, 1, 2])[x % 4],
    (A(values=np.arange(-4, 4)),),
    (A(values=np.array([[2]])),),
    dtypes="int32",
    oracle="MindSpore",
)

test_values, test_gradients = checks.tests()

CHECKED = {
    "ops.NonMaxSuppressionV3": "NumPy",
    "ops.ResizeNearestNeighbor": "definition",
    "ops.FractionalAvgPool": "definition",
    "ops.FractionalMaxPool": "definition",
    "ops.SampleDistortedBoundingBoxV2": "definition",
    "ops.Morph": "definition",
}


def suppressed(boxes: Any, scores: Any, most: int, overlap: float, least: float) -> list[int]:
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] <= least or len(kept) == most:
            continue
        clear = True
        for j in kept:
            low, high = np.maximum(boxes[i, :2], boxes[j, :2]), np.minimum(boxes[i, 2:], boxes[j, 2:])
            area = np.prod(np.maximum(high - low, 0))
            areas = [np.prod(boxes[k, 2:] - boxes[k, :2]) for k in (i, j)]
            clear = clear and area / (sum(areas) - area) <= overlap
        if clear:
            kept.append(int(i))
    return kept


def test_suppression_of_overlapping_boxes() -> None:
    low = RANDOM.uniform(0, 5, (40, 2))
    around = np.concatenate([low, low + RANDOM.uniform(1, 5, (40, 2))], 1)
    scores = RANDOM.uniform(0, 1, 40).round(1)
    turned = around[:, [2, 1, 0, 3]]
    suppress = ops.NonMaxSuppressionV3()
    compiled = ms.jit(suppress)
    for most, overlap, least in ((40, 0.5, 0.0), (5, 0.3, 0.2), (40, 0.0, -1.0), (0, 0.5, 0.0), (40, 1.0, 0.95)):
        want = suppressed(around, scores, most, overlap, least)
        numbers = (Tensor(most, ms.int32), Tensor(overlap, ms.float64), Tensor(least, ms.float64))
        for given in (around, turned):
            for call in (suppress, compiled):
                found = call(Tensor(given), Tensor(scores), *numbers)
                assert found.dtype is ms.int32 and found.tolist() == want


def test_selected_boxes_are_differentiable_where_they_are_read() -> None:
    around = np.array([[0.0, 0, 2, 2], [0.1, 0, 2, 2], [3, 3, 4, 5]])

    def loss(x: Tensor) -> Tensor:
        mask = ops.NMSWithMask(0.5)(x)[2]
        return ops.sum(ops.select(mask, ops.NMSWithMask(0.5)(x)[0][:, 0], 0.0))

    given = Tensor(np.concatenate([around, [[0.9], [0.8], [0.7]]], 1))
    assert ms.grad(loss)(given).asnumpy()[:, 0].tolist() == [1.0, 0.0, 1.0]


def pooled(x: Any, rows: Any, columns: Any, overlapping: bool, mean: bool) -> Any:
    found = np.zeros((x.shape[0], len(rows) - 1, len(columns) - 1, x.shape[3]))
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            cell = x[:, rows[i] : rows[i + 1] + overlapping, columns[j] : columns[j + 1] + overlapping]
            found[:, i, j] = cell.mean((1, 2)) if mean else cell.max((1, 2))
    return found


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize(("overlapping", "pseudo", "fixed"), list(itertools.product((True, False), repeat=3)))
def test_fractional_pooling(mean: bool, overlapping: bool, pseudo: bool, fixed: bool) -> None:
    x = RANDOM.normal(size=(2, 9, 14, 3))
    seeds = (3, 5) if fixed else (0, 0)
    make = ops.FractionalAvgPool if mean else ops.FractionalMaxPool
    pool = make([1.0, 1.44, 1.73, 1.0], pseudo, overlapping, fixed, *seeds)
    for call in (pool, ms.jit(pool)):
        found, rows, columns = call(Tensor(x))
        assert found.shape == (2, 6, 8, 3) and rows.dtype is ms.int64
        for cuts, size, count in ((rows, 9, 6), (columns, 14, 8)):
            cells = np.diff(cuts.asnumpy())
            assert cuts.tolist()[0] == 0 and cuts.tolist()[-1] == size and len(cells) == count
            assert set(cells.tolist()) == {size // count, size // count + 1}
        want = pooled(x, rows.tolist(), columns.tolist(), overlapping, mean)
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-12)
    if fixed:
        assert (
            pool(Tensor(x))[1].tolist()
            == make([1.0, 1.44, 1.73, 1.0], pseudo, overlapping, True, *seeds)(Tensor(x))[1].tolist()
        )
        way = np.random.default_rng(0).normal(size=x.shape)
        gradient = ms.grad(lambda t: ops.sum(pool(t)[0] ** 2))(Tensor(x)).asnumpy()
        ends = [float(ops.sum(pool(Tensor(x + s * 1e-6 * way))[0] ** 2)) for s in (1, -1)]
        assert (gradient * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4)


def test_fractional_pooling_of_integers_and_cells_that_divide() -> None:
    x = Tensor(np.arange(1, 17).reshape(1, 4, 4, 1))
    # What MindSpore gives: the means of 3.5 and so on cut off.
    found, rows, _ = ops.FractionalAvgPool([1.0, 1.5, 1.5, 1.0])(x)
    assert found.flatten().tolist() == [3, 5, 11, 13] and found.dtype is ms.int64 and rows.tolist() == [0, 2, 4]
    assert ops.FractionalMaxPool([1.0, 1.5, 1.5, 1.0])(x)[0].flatten().tolist() == [6, 8, 14, 16]
    with pytest.raises(ValueError, match="seed 3"):
        ops.FractionalMaxPool([1.0, 1.5, 1.5, 1.0], seed=3)(x)
    with pytest.raises(ValueError, match="ratios"):
        ops.FractionalMaxPool([1.0, 0.5, 1.5, 1.0])(x)


def test_nearest_neighbours_at_half_pixels() -> None:
    x = np.arange(20.0).reshape(1, 1, 4, 5)
    for size, align, half in itertools.product(((3, 2), (7, 9), (1, 1)), (False, True), (False, True)):
        if align and half:
            continue
        found = ops.ResizeNearestNeighbor(size, align, half)(Tensor(x)).asnumpy()
        index = []
        for d, n in zip((4, 5), size):
            i = np.arange(n)
            at = np.floor(i * (d - 1) / max(n - 1, 1) + 0.5) if align and n > 1 else np.floor((i + half / 2) * d / n)
            index.append(np.minimum(at, d - 1).astype(int))
        assert (found == x[:, :, index[0]][..., index[1]]).all()


def test_random_boxes_fit_and_cover() -> None:
    boxes = np.array([[[0.2, 0.3, 0.7, 0.8]]], np.float32)
    for kind in (ms.int32, ms.int64):
        draw = ops.SampleDistortedBoundingBoxV2(1, 1, (0.8, 1.25), (0.2, 0.9))
        sizes = set()
        for call in (*[draw] * 6, *[ms.jit(draw)] * 2):
            begin, size, box = call(Tensor([60, 80, 3], kind), Tensor(boxes), Tensor([0.5]))
            (top, left, zero), (high, wide, rest) = begin.tolist(), size.tolist()
            assert begin.dtype is kind and size.dtype is kind and box.dtype is ms.float32 and (zero, rest) == (0, -1)
            assert 0 <= top <= 60 - high and 0 <= left <= 80 - wide and 0.2 <= high * wide / 4800 <= 0.9
            assert 0.75 < wide / high < 1.3
            covered = max(min(top + high, 42) - max(top, 12), 0) * max(min(left + wide, 64) - max(left, 24), 0)
            assert covered / (30 * 40) >= 0.5
            np.testing.assert_allclose(
                box.asnumpy()[0, 0], [top / 60, left / 80, (top + high) / 60, (left + wide) / 80], rtol=1e-6
            )
            sizes.add((high, wide))
        assert len(sizes) > 2
    begin, size, box = ops.SampleDistortedBoundingBoxV2(2, 0, (9.0, 9.0), (1.0, 1.0))(
        Tensor([60, 80, 3], ms.int32), Tensor(boxes), Tensor(1.0)
    )
    assert (begin.tolist(), size.tolist(), box.tolist()) == ([0, 0, 0], [60, 80, -1], [[[0.0, 0.0, 1.0, 1.0]]])
    nothing = (Tensor([60, 80, 3], ms.int32), ops.zeros((1, 0, 4)), Tensor(0.5))
    with pytest.raises(ValueError, match="no bounding boxes"):
        ops.SampleDistortedBoundingBoxV2(2)(*nothing)
    assert ops.SampleDistortedBoundingBoxV2(2, use_image_if_no_bounding_boxes=True)(*nothing)[1].shape == (3,)


def test_layers_refuse_what_does_not_fit() -> None:
    with pytest.raises(TypeError, match="central_fraction must be a float"):
        nn.CentralCrop(1)
    with pytest.raises(ValueError, match="in \\(0, 1\\]"):
        nn.CentralCrop(1.5)
    with pytest.raises(ValueError, match="divisor_override must not be 0"):
        nn.AvgPool2dExt(2, divisor_override=0)
    with pytest.raises(ValueError, match="one to one"):
        ops.rotated_iou(ops.ones((1, 2, 5)), ops.ones((1, 3, 5)), is_cross=False)


def test_functions_as_operations() -> None:
    def double(x: Tensor, y: Tensor) -> Tensor:
        while x.max() < 10:
            x = x * 2
        return x * y

    x, y = Tensor([1.0, 3.0]), Tensor([2.0, 5.0])
    plain = ops.Morph(double, lambda *shapes: shapes[0], lambda *kinds: kinds[0])
    ruled = ops.Morph(double, lambda *s: s[0], lambda *k: k[0], lambda x, y, out, dout: (dout * y, dout + out))
    for operation, dx, dy in ((plain, [8.0, 20.0], [4.0, 12.0]), (ruled, [2.0, 5.0], [9.0, 61.0])):
        for call in (operation, ms.jit(lambda a, b, f=operation: f(a, b))):
            assert call(x, y).tolist() == [8.0, 60.0]
            gradients = ms.grad(lambda a, b, f=call: ops.sum(f(a, b)), (0, 1))(x, y)
            assert [g.tolist() for g in gradients] == [dx, dy]
    with pytest.raises(TypeError, match="infer_shape must be a function"):
        ops.Morph(double, None, None)
