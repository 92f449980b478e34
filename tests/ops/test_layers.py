"""Convolution, pooling and normalisation against direct sums in NumPy; matrix products and Einstein
sums.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

from .checks import check_gradient, close, numbers

CHECKED = dict.fromkeys(
    ("ops.conv1d", "ops.conv2d", "ops.conv3d", "ops.conv_transpose2d", "ops.clip_by_global_norm"), "NumPy"
)


def _convolved(x: np.ndarray, w: np.ndarray, strides: tuple, pads: tuple, dilation: tuple, groups: int) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    sizes = [(n - s) // t + 1 for n, s, t in zip(x.shape[2:], spans, strides)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    inputs, outputs = w.shape[1], w.shape[0] // groups
    for place in np.ndindex(*sizes):
        window = tuple(slice(p * t, p * t + s, d) for p, t, s, d in zip(place, strides, spans, dilation))
        for o in range(w.shape[0]):
            first = o // outputs * inputs
            part = x[(slice(None), slice(first, first + inputs), *window)]
            out[(slice(None), o, *place)] = (part * w[o]).reshape(x.shape[0], -1).sum(1)
    return out


@pytest.mark.parametrize(
    ("rank", "options", "pads", "strides", "dilation", "groups"),
    [
        (1, {}, ((0, 0),), (1,), (1,), 1),
        (1, {"pad_mode": "same", "stride": 2}, ((0, 1),), (2,), (1,), 1),
        (2, {}, ((0, 0),) * 2, (1, 1), (1, 1), 1),
        (2, {"pad_mode": "same"}, ((1, 1), (0, 1)), (1, 1), (1, 1), 1),
        (2, {"pad_mode": "same", "stride": 2}, ((0, 1), (0, 1)), (2, 2), (1, 1), 1),
        (2, {"pad_mode": "pad", "padding": 1, "stride": (2, 1)}, ((1, 1),) * 2, (2, 1), (1, 1), 1),
        (2, {"pad_mode": "pad", "padding": (2, 1), "dilation": (2, 1)}, ((2, 2), (1, 1)), (1, 1), (2, 1), 1),
        (2, {"groups": 2}, ((0, 0),) * 2, (1, 1), (1, 1), 2),
        (3, {"pad_mode": "pad", "padding": (0, 1, 0)}, ((0, 0), (1, 1), (0, 0)), (1, 1, 1), (1, 1, 1), 1),
    ],
)
def test_convolution(rank: int, options: dict, pads: tuple, strides: tuple, dilation: tuple, groups: int) -> None:
    x = numbers(2, 4, *(6, 4, 3)[:rank])
    w = numbers(2, 4 // groups, *(3, 2, 2)[:rank], seed=1)
    bias = np.array([0.5, -1.0])
    function = getattr(ops, f"conv{rank}d")
    want = _convolved(x, w, strides, pads, dilation, groups) + bias.reshape(2, *(1,) * rank)
    close(function(Tensor(x), Tensor(w), Tensor(bias), **options), want, 1e-10)
    if rank < 3:
        small = x[:1]
        check_gradient(lambda a, b, c: function(a, b, c, **options), small, w, bias, tolerance=1e-5)


def test_an_image_without_a_batch() -> None:
    x, w = numbers(3, 5, 5), numbers(2, 3, 3, 3, seed=1)
    close(ops.conv2d(Tensor(x), Tensor(w)), ops.conv2d(Tensor(x[None]), Tensor(w)).asnumpy()[0])


def test_transposed_convolution_is_the_transpose() -> None:
    x, w, y = numbers(1, 2, 5, 6), numbers(3, 2, 3, 2, seed=1), numbers(1, 3, 3, 6, seed=2)
    forward = ops.conv2d(Tensor(x), Tensor(w), stride=(2, 1), pad_mode="pad", padding=(1, 1), dilation=(1, 2)).asnumpy()
    back = ops.conv_transpose2d(Tensor(y), Tensor(w), stride=(2, 1), padding=(1, 1), dilation=(1, 2)).asnumpy()
    assert back.shape == x.shape
    np.testing.assert_allclose((forward * y).sum(), (x * back).sum())
    assert ops.conv_transpose2d(Tensor(y), Tensor(w), stride=2, output_padding=1).shape == (1, 2, 8, 13)


def test_wrong_convolutions() -> None:
    x, w = Tensor(numbers(1, 3, 5, 5)), Tensor(numbers(2, 3, 3, 3))
    with pytest.raises(ValueError, match="pad_mode must be one of 'valid', 'same', 'pad'"):
        ops.conv2d(x, w, pad_mode="full")
    with pytest.raises(ValueError, match="padding 1 goes with pad_mode 'pad', not 'valid'"):
        ops.conv2d(x, w, padding=1)
    with pytest.raises(ValueError, match="conv2d: stride must be an int or 2 ints"):
        ops.conv2d(x, w, stride=(1, 2, 3))
    with pytest.raises(ValueError, match="conv2d: the input must have 4 dimensions"):
        ops.conv2d(x[0, 0], w)
    with pytest.raises(ValueError, match="bias_add: a bias"):
        ops.bias_add(x, Tensor([1.0]).astype(x.dtype))


def _windows(x: np.ndarray, window: tuple, strides: tuple, pads: tuple, ceil: bool) -> dict:
    """Each output place of (N, C, H, W) and the slices of the input that its window meets."""
    sizes = []
    for n, k, s, p in zip(x.shape[2:], window, strides, pads):
        count = (n + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
        if ceil and (count - 1) * s >= n + p:
            count -= 1
        sizes.append(count)
    found = {}
    for place in itertools.product(*map(range, sizes)):
        starts = [i * s - p for i, s, p in zip(place, strides, pads)]
        found[place] = starts, tuple(slice(max(a, 0), min(a + k, n)) for a, k, n in zip(starts, window, x.shape[2:]))
    return found


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("window", "strides", "pads"),
    [((2, 2), (2, 2), (0, 0)), ((3, 2), (2, 2), (1, 0)), ((3, 3), (2, 3), (1, 1)), ((2, 3), (1, 2), (0, 1))],
)
def test_pooling(window: tuple, strides: tuple, pads: tuple, ceil: bool) -> None:
    x = numbers(2, 2, 6, 7)
    found = _windows(x, window, strides, pads, ceil)
    sizes = tuple(np.array(list(found)).max(0) + 1)
    most, places, mean, inside = (np.zeros((2, 2, *sizes)) for _ in range(4))
    for place, (starts, part) in found.items():
        values = x[(slice(None), slice(None), *part)]
        at = (slice(None), slice(None), *place)
        most[at] = values.max((2, 3))
        rows, columns = np.unravel_index(values.reshape(2, 2, -1).argmax(2), values.shape[2:])
        places[at] = (rows + part[0].start) * 7 + columns + part[1].start
        counted = np.prod([min(a + k, n + p) - a for a, k, n, p in zip(starts, window, x.shape[2:], pads)])
        mean[at] = values.sum((2, 3)) / counted
        inside[at] = values.mean((2, 3))
    best, indices = ops.max_pool2d(Tensor(x), window, strides, pads, return_indices=True, ceil_mode=ceil)
    close(best, most)
    assert indices.dtype is ms.int64
    np.testing.assert_array_equal(indices.asnumpy(), places)
    close(ops.avg_pool2d(Tensor(x), window, strides, pads, ceil), mean)
    close(ops.avg_pool2d(Tensor(x), window, strides, pads, ceil, count_include_pad=False), inside)
    check_gradient(lambda t: ops.max_pool2d(t, window, strides, pads, ceil_mode=ceil), x[:1, :1])
    check_gradient(lambda t: ops.avg_pool2d(t, window, strides, pads, ceil, False), x[:1, :1])


def test_pooling_of_mindspore() -> None:
    x = Tensor(np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4))
    assert ops.avg_pool2d(x, 3, 2, 1, divisor_override=5).asnumpy()[0, 0].tolist() == [
        [2.0, 4.800000190734863],
        [10.199999809265137, 18.0],
    ]
    assert ops.lp_pool2d(x, 2, 2).asnumpy()[0, 0, 0, 0] == pytest.approx(6.4807405)
    assert ops.max_pool2d(x, 2, dilation=2).asnumpy()[0, 0].tolist() == [[10.0]]
    assert ops.max_pool2d(x, 2, 1, dilation=2).asnumpy()[0, 0].tolist() == [[10.0, 11.0], [14.0, 15.0]]
    with pytest.raises(ValueError, match="padding .* must lie between 0 and half the kernel_size"):
        ops.max_pool2d(x, 2, padding=2)


@pytest.mark.parametrize("size", [1, 2, 3, (3, None), (4, 2)])
def test_adaptive_pooling(size: object) -> None:
    x = numbers(2, 2, 6, 5)
    sizes = [d if n is None else n for n, d in zip(size if isinstance(size, tuple) else (size, size), (6, 5))]
    mean, most = np.zeros((2, 2, *sizes)), np.zeros((2, 2, *sizes))
    for i, j in np.ndindex(*sizes):
        part = x[:, :, i * 6 // sizes[0] : -(-(i + 1) * 6 // sizes[0]), j * 5 // sizes[1] : -(-(j + 1) * 5 // sizes[1])]
        mean[:, :, i, j], most[:, :, i, j] = part.mean((2, 3)), part.max((2, 3))
    if all(d % n == 0 for d, n in zip((6, 5), sizes)) or size == (3, None):
        close(ops.adaptive_avg_pool2d(Tensor(x), size), mean)
    # Windows of different sizes: the mean of means is taken axis by axis, which is the same for a
    # rectangle.
    close(ops.adaptive_avg_pool2d(Tensor(x), size), mean)
    close(ops.adaptive_max_pool2d(Tensor(x), size), most)
    check_gradient(lambda t: ops.adaptive_avg_pool2d(t, size), x[:1, :1])


def test_batch_norm_in_training() -> None:
    x, weight, bias = numbers(4, 3, 2), np.array([1.0, 2.0, 0.5]), np.array([0.0, 1.0, -1.0])
    mean, var = ms.Parameter(Tensor(np.array([0.0, 1.0, 2.0]))), ms.Parameter(Tensor(np.ones(3)))
    axes, shape = (0, 2), (3, 1)
    centred = x - x.mean(axes).reshape(shape)
    want = centred / np.sqrt(x.var(axes).reshape(shape) + 1e-5) * weight.reshape(shape) + bias.reshape(shape)
    close(ops.batch_norm(Tensor(x), mean, var, Tensor(weight), Tensor(bias), True, 0.3), want)
    close(mean, 0.7 * np.array([0.0, 1.0, 2.0]) + 0.3 * x.mean(axes))
    close(var, 0.7 + 0.3 * x.var(axes, ddof=1))
    check_gradient(lambda a, w, b: ops.batch_norm(a, None, None, w, b, True), x, weight, bias)
    still = ops.batch_norm(Tensor(x), mean, var, Tensor(weight), Tensor(bias))
    m, v = mean.asnumpy().reshape(shape), var.asnumpy().reshape(shape)
    close(still, (x - m) / np.sqrt(v + 1e-5) * weight.reshape(shape) + bias.reshape(shape))
    with pytest.raises(ValueError, match="running_mean and running_var are needed"):
        ops.batch_norm(Tensor(x), None, None, None, None)


def test_other_normalisations() -> None:
    x = numbers(2, 4, 3, 2)
    weight, bias = numbers(3, 2, seed=1), numbers(3, 2, seed=2)
    axes = (2, 3)
    plain = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    close(ops.layer_norm(Tensor(x), (3, 2), Tensor(weight), Tensor(bias)), plain * weight + bias)
    check_gradient(lambda a, w, b: ops.layer_norm(a, (3, 2), w, b), x[:1, :2], weight, bias, tolerance=1e-5)
    grouped = x.reshape(2, 2, -1)
    grouped = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    close(ops.group_norm(Tensor(x), 2, Tensor(scale)), grouped.reshape(x.shape) * scale[:, None, None])
    gamma = numbers(2, seed=3)
    root = np.sqrt((x**2).mean(3, keepdims=True) + 1e-6)
    got, inverse = ops.rms_norm(Tensor(x), Tensor(gamma))
    close(got, x / root * gamma)
    close(inverse, 1 / root)
    squares = np.stack([(x[:, max(c - 1, 0) : c + 2] ** 2).sum(1) for c in range(4)], 1)
    close(ops.lrn(Tensor(x), 1, 2.0, 0.1, 0.75), x / (2 + 0.1 * squares) ** 0.75)
    with pytest.raises(ValueError, match="layer_norm: the last axes of"):
        ops.layer_norm(Tensor(x), (3,))
    with pytest.raises(ValueError, match="do not divide into 3 groups"):
        ops.group_norm(Tensor(x), 3)


def test_clipping_by_norm() -> None:
    parts = [numbers(3), numbers(2, 2, seed=1)]
    norm = np.sqrt(sum((p**2).sum() for p in parts))
    for got, part in zip(ops.clip_by_global_norm([Tensor(p) for p in parts], 0.5), parts):
        close(got, part * 0.5 / norm)
    for got, part in zip(ops.clip_by_global_norm([Tensor(p) for p in parts], 50.0), parts):
        close(got, part)
    close(ops.clip_by_norm(Tensor(parts[0]), 0.5), parts[0] * 0.5 / (np.linalg.norm(parts[0]) + 1e-6))


MATRICES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
]


@pytest.mark.parametrize(("left", "right"), MATRICES)
def test_matrix_products(left: tuple, right: tuple) -> None:
    a, b = numbers(*left), numbers(*right, seed=1)
    close(ops.matmul(Tensor(a), Tensor(b)), np.matmul(a, b))
    close(Tensor(a) @ Tensor(b), a @ b)
    check_gradient(ops.matmul, a, b)


def test_other_products() -> None:
    a, b = numbers(2, 3, 4), numbers(5, 4, 3, seed=1)
    close(ops.dot(Tensor(a), Tensor(b)), np.dot(a, b))
    close(ops.inner(Tensor(a), Tensor(b.swapaxes(1, 2))), np.inner(a, b.swapaxes(1, 2)))
    close(ops.tensor_dot(Tensor(a), Tensor(b), ((1, 2), (2, 1))), np.tensordot(a, b, ((1, 2), (2, 1))))
    close(ops.kron(Tensor(a[0]), Tensor(b[0])), np.kron(a[0], b[0]))
    close(ops.outer(Tensor(a[0, 0]), Tensor(b[0, 0])), np.outer(a[0, 0], b[0, 0]))
    close(ops.cross(Tensor(a), Tensor(a[:1] * 2 + 1)), np.cross(a, a[:1] * 2 + 1, axis=1))
    close(ops.batch_dot(Tensor(a), Tensor(b[:2])), np.einsum("bij,bjk->bik", a, b[:2]))
    close(
        ops.addmm(Tensor(a[0, :, :3]), Tensor(a[0]), Tensor(b[0]), beta=2, alpha=0.5),
        2 * a[0, :, :3] + 0.5 * a[0] @ b[0],
    )
    square = numbers(3, 3)
    for n in (0, 1, 5):
        close(ops.matrix_power(Tensor(square), n), np.linalg.matrix_power(square, n), 1e-10)
    assert ops.matmul(Tensor(np.ones((2, 2), np.int8)), Tensor(np.ones((2, 2), np.int8))).dtype is ms.int8
    assert ops.matmul(Tensor([[1.0]]), Tensor([[1]])).dtype is ms.float32
    with pytest.raises(
        ValueError, match=r"inner dimensions differ: \(2, 3\) @ \(2, 3\); transpose the second argument"
    ):
        ops.matmul(ops.ones((2, 3)), ops.ones((2, 3)))
    with pytest.raises(ValueError, match="use \\* for a scalar"):
        ops.matmul(Tensor(1.0), Tensor([1.0]))


SUMS = [
    "ij,jk->ik",
    "ij,kj",
    "bij,bjk->bki",
    "ii",
    "ii->i",
    "ij->ji",
    "ij->",
    "i,j->ij",
    "...ij,...jk->...ik",
    "bij,bkj->ik",
    "ij,ij->j",
    "abc,cd,db->a",
    "ij,jk,kl->il",
]


@pytest.mark.parametrize("equation", SUMS)
def test_einstein_sums(equation: str) -> None:
    sizes = dict(zip("ijklbcad", (2, 3, 4, 5, 2, 3, 2, 4)))
    if equation in ("ii", "ii->i"):
        sizes["i"] = 3
    shapes = [tuple(sizes[v] for v in term.replace("...", "")) for term in equation.partition("->")[0].split(",")]
    if "..." in equation:
        shapes = [(5, 1, *shapes[0]), (6, *shapes[1])]
    arrays = [numbers(*s, seed=i) for i, s in enumerate(shapes)]
    close(ops.einsum(equation, *map(Tensor, arrays)), np.einsum(equation, *arrays), 1e-10)
    check_gradient(lambda *t: ops.einsum(equation, *t), *arrays)


def test_wrong_einstein_sums() -> None:
    with pytest.raises(ValueError, match="label 'j' of 'ij,jk' has sizes 3 and 2"):
        ops.einsum("ij,jk", ops.ones((2, 3)), ops.ones((2, 3)))
    with pytest.raises(ValueError, match="names 2 operands, 1 were given"):
        ops.einsum("ij,jk", ops.ones((2, 3)))
    with pytest.raises(ValueError, match="the output of 'ij->ik' repeats a label or names one that no operand has"):
        ops.einsum("ij->ik", ops.ones((2, 3)))
