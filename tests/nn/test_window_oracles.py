"""Pooling, padding and rearranging layers against loops over windows in float64: values in every
floating type, eagerly and compiled, and derivatives.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import mycel as ms
from mycel import nn
from tests.meaning import A, Checks, I
from tests.nn.cases import wave

checks = Checks("NumPy")
CHECKED = {"nn.Dropout": "NumPy", "nn.Dropout1d": "NumPy", "nn.Dropout2d": "NumPy", "nn.Dropout3d": "NumPy"}

KINDS = "float64 float32 float16"


def each(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def windows(
    size: int, kernel: int, stride: int, mode: str, pad: int, dilation: int, ceil: bool
) -> tuple[int, list[list[int]]]:
    """The low padding, and each window's positions in the unpadded axis, also those outside."""
    span = (kernel - 1) * dilation + 1
    low = pad
    if mode == "same":
        count = -(-size // stride)
        low = max((count - 1) * stride + span - size, 0) // 2
    else:
        count = (size + 2 * pad - span) // stride + 1
        if ceil:
            count = -(-(size + 2 * pad - span) // stride) + 1
            if (count - 1) * stride >= size + pad:
                count -= 1
    return low, [[i * stride - low + k * dilation for k in range(kernel)] for i in range(count)]


def pooled(
    x: Any,
    rank: int,
    reduce: Any,
    kernel: Any,
    stride: Any,
    mode: str = "valid",
    pad: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> Any:
    """`reduce(elements inside, positions, sizes, high ends of the padding)` of every window of the
    last axes.
    """
    kernel, stride, pad, dilation = (each(v, rank) for v in (kernel, stride, pad, dilation))
    sizes = x.shape[-rank:]
    found = [windows(*a, mode, p, d, ceil) for a, p, d in zip(zip(sizes, kernel, stride), pad, dilation)]
    spans = [w for _, w in found]
    lead = x.shape[:-rank]
    out = np.zeros((*lead, *(len(s) for s in spans)))
    for at in itertools.product(*(range(len(s)) for s in spans)):
        points = [spans[a][i] for a, i in enumerate(at)]
        inside = [[p for p in line if 0 <= p < n] for line, n in zip(points, sizes)]
        elements = x.reshape(-1, *sizes)[(slice(None), *np.ix_(*inside))].reshape(*lead, -1)
        # With padding, windows count what lies in the padded axis, but not what rounding up reaches
        # beyond.
        counted = 1
        for line, n, p, (low, _), s in zip(points, sizes, pad, found, (mode == "same",) * rank):
            counted *= len(line) if s else sum(-low <= q < n + p for q in line)
        out[(..., *at)] = reduce(elements, counted)
    return out


def largest(rank: int, *args: Any) -> Any:
    return lambda x: pooled(x, rank, lambda v, n: v.max(-1), *args)


def mean(rank: int, include: bool, divisor: Any, *args: Any) -> Any:
    def reduce(v: Any, n: int) -> Any:
        return v.sum(-1) / (divisor or (n if include else v.shape[-1]))

    return lambda x: pooled(x, rank, reduce, *args)


LINES = ((A(2, 3, 7),), (A(3, 6),), (A(1, 1, 5),))
IMAGES = ((A(2, 3, 5, 6),), (A(3, 5, 4),), (A(1, 1, 4, 7),))
CUBES = ((A(1, 2, 4, 3, 5),), (A(2, 3, 4, 4),), (A(1, 1, 3, 3, 3),))


def add(name: str, expected: Any, cases: Any, **init: Any) -> None:
    checks.add(f"nn.{name}", expected, *cases, init=init, dtypes=KINDS, tolerance=2)


for rank, cases in ((1, LINES), (2, IMAGES), (3, CUBES)):
    mixed: Any = {1: 3, 2: (3, 2), 3: (2, 3, 1)}[rank]
    for kernel, stride in ((1, 1), (2, 2), (mixed, 1)):
        add(f"MaxPool{rank}d", largest(rank, kernel, stride), cases, kernel_size=kernel, stride=stride)
        add(f"AvgPool{rank}d", mean(rank, False, None, kernel, stride), cases, kernel_size=kernel, stride=stride)
    add(f"MaxPool{rank}d", largest(rank, 3, 2, "same"), cases, kernel_size=3, stride=2, pad_mode="same")
    add(f"AvgPool{rank}d", mean(rank, rank == 3, None, 3, 2, "same"), cases, kernel_size=3, stride=2, pad_mode="same")
    add(
        f"AvgPool{rank}d",
        mean(rank, False, None, 2, 1, "same"),
        cases,
        kernel_size=2,
        pad_mode="same",
        count_include_pad=False,
    )
    for ceil in (False, True):
        padded = {"kernel_size": 3, "stride": 2, "pad_mode": "pad", "padding": 1, "ceil_mode": ceil}
        add(f"MaxPool{rank}d", largest(rank, 3, 2, "pad", 1, 1, ceil), cases, **padded)
        add(f"AvgPool{rank}d", mean(rank, True, None, 3, 2, "pad", 1, 1, ceil), cases, **padded)
        add(
            f"AvgPool{rank}d",
            mean(rank, False, None, 3, 2, "pad", 1, 1, ceil),
            cases,
            **padded,
            count_include_pad=False,
        )
    add(
        f"MaxPool{rank}d", largest(rank, 2, 1, "pad", 1, 2), cases, kernel_size=2, pad_mode="pad", padding=1, dilation=2
    )
    if rank > 1:
        add(f"AvgPool{rank}d", mean(rank, False, 5, 2, 1), cases, kernel_size=2, divisor_override=5)


def positions(x: Any, rank: int, kernel: int, stride: int) -> tuple[Any, Any]:
    """The largest elements of windows without padding, and where they are in the flattened last
    axes.
    """
    flat = np.broadcast_to(np.arange(np.prod(x.shape[-rank:])).reshape(x.shape[-rank:]), x.shape)
    best = pooled(x, rank, lambda v, n: v.argmax(-1), kernel, stride).astype(int)
    where = np.zeros(best.shape, np.int64)
    for at in np.ndindex(*best.shape[-rank:]):
        cut = (..., *(slice(i * stride, i * stride + kernel) for i in at))
        candidates = flat[cut].reshape(*x.shape[:-rank], -1)
        where[(..., *at)] = np.take_along_axis(candidates, best[(..., *at)][..., None], -1)[..., 0]
    return pooled(x, rank, lambda v, n: v.max(-1), kernel, stride), where


for rank, cases in ((1, LINES), (2, IMAGES), (3, CUBES)):
    add(
        f"MaxPool{rank}d",
        lambda x, r=rank: positions(x, r, 2, 2),
        cases,
        kernel_size=2,
        stride=2,
        pad_mode="pad",
        return_indices=True,
    )

for name, mode in (("CONSTANT", "constant"), ("REFLECT", "reflect"), ("SYMMETRIC", "symmetric")):
    for pairs, cases in (
        (((1, 2), (0, 1)), ((A(3, 4),), (A(4, 3),), (A(3, 2),))),
        (((0, 0), (0, 0), (2, 1)), ((A(2, 1, 4),), (A(1, 1, 3),))),
    ):
        add("Pad", lambda x, p=pairs, m=mode: np.pad(x, p, mode=m), cases, paddings=pairs, mode=name)
add("Pad", lambda x: np.pad(x, ((1, 2),)), ((A(3),), (A(1),), (A(0),)), paddings=((1, 2),))


def unshuffled(x: Any) -> Any:
    *lead, rows, columns = x.shape
    parts = x.reshape(*lead, rows // 2, 2, columns // 2, 2)
    return np.moveaxis(parts, (-3, -1), (-4, -3)).reshape(*lead[:-1], lead[-1] * 4, rows // 2, columns // 2)


add("PixelUnshuffle", unshuffled, ((A(2, 3, 4, 6),), (A(3, 2, 2),), (A(1, 1, 6, 2),)), downscale_factor=2)
add(
    "Unflatten",
    lambda x: x.reshape(x.shape[0], 2, 3, *x.shape[2:]),
    ((A(4, 6),), (A(2, 6, 3),), (A(0, 6),)),
    axis=1,
    unflattened_size=(2, 3),
)
add(
    "Unflatten",
    lambda x: x.reshape(*x.shape[:-1], 2, -1),
    (
        (A(4, 6),),
        (
            A(
                2,
            ),
        ),
        (A(1, 3, 4),),
    ),
    axis=-1,
    unflattened_size=[2, -1],
)
for axis, keep in (((), False), (0, True), ((-1, 0), False)):
    over = None if axis == () else axis
    add(
        "Norm",
        lambda x, a=over, k=keep: np.sqrt((x * x).sum(a, keepdims=k)),
        ((A(3, 4),), (A(2, 3, 2),), (A(1, 5),)),
        axis=axis,
        keep_dims=keep,
    )
for axis in (-1, 0, 1):
    checks.add(
        "nn.OneHot",
        lambda i, a=axis: np.moveaxis(np.where(np.eye(6)[i] > 0, 2.5, -1.0), -1, a),
        (I(3, high=6),),
        (I(2, 4, high=6),),
        (I(1, 0, 2, high=6),),
        init={"axis": axis, "depth": 6, "on_value": 2.5, "off_value": -1.0},
        dtypes="float32",
    )
checks.add(
    "nn.OneHot",
    lambda i: np.eye(4, dtype=np.int32)[i],
    (I(3, high=4),),
    (I(2, 2, high=4, dtype="int64"),),
    init={"depth": 4, "dtype": ms.int32},
    dtypes="float32",
)
test_values, test_gradients = checks.tests()


def test_norm_is_that_of_linear_algebra() -> None:
    x = wave(4, 5).astype(np.float64)
    assert float(nn.Norm()(ms.Tensor(x))) == pytest.approx(scipy.linalg.norm(x))


DROPS = {
    "Dropout": (lambda p: nn.Dropout(p=p), (40, 50), 0),
    "Dropout_keep": (lambda p: nn.Dropout(1 - p), (2000,), 0),
    "Dropout1d": (nn.Dropout1d, (200, 10, 3), 1),
    "Dropout2d": (nn.Dropout2d, (100, 20, 2, 3), 2),
    "Dropout3d": (nn.Dropout3d, (100, 20, 2, 1, 2), 3),
}


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
@pytest.mark.parametrize("dtype", [ms.float64, ms.float32, ms.float16])
@pytest.mark.parametrize("name", list(DROPS))
def test_dropout(name: str, dtype: Any, mode: int) -> None:
    make, shape, rank = DROPS[name]
    before = ms.get_context("mode")
    try:
        ms.set_context(mode=mode)
        ms.set_seed(7)
        x = 1.5 + 0.25 * wave(*shape)
        layer, t = make(0.3), ms.Tensor(x).astype(dtype)
        value = t.asnumpy().astype(np.float64)
        assert layer(t).asnumpy().tolist() == t.asnumpy().tolist()
        layer.set_train()
        out = layer(t)
        kept = out.asnumpy() != 0
        assert out.dtype is dtype and out.shape == shape
        # The same for a whole channel, independent across channels, at the given rate: within five
        # deviations.
        whole = kept.reshape(*shape[: len(shape) - rank], -1) if rank else kept[..., None]
        assert (whole == whole[..., :1]).all()
        flags = whole[..., 0]
        assert abs(flags.mean() - 0.7) < 5 * np.sqrt(0.21 / flags.size)
        both = (flags.reshape(-1)[1:] & flags.reshape(-1)[:-1]).mean()
        assert abs(both - 0.49) < 5 * np.sqrt(0.25 / flags.size) + 0.01
        np.testing.assert_allclose(
            out.asnumpy(), np.where(kept, value / 0.7, 0), rtol=2e-3 if dtype is ms.float16 else 1e-5
        )
        assert (layer(t).asnumpy() != out.asnumpy()).any()
        ms.set_seed(11)
        first = layer(t).asnumpy()
        ms.set_seed(11)
        pairs = ms.value_and_grad(lambda a: ms.ops.sum(layer(a)))(t)
        # By linearity the derivative is 1 / (1 - p) where an element was kept.
        scale = pairs[1].asnumpy().astype(np.float64)
        assert set(np.round(np.unique(scale), 2)) == {0.0, 1.43}
        assert mode == ms.GRAPH_MODE or ((scale != 0) == (first != 0)).all()
    finally:
        ms.set_context(mode=before)


@pytest.mark.parametrize("make", [lambda p: nn.Dropout(p=p), nn.Dropout1d, nn.Dropout2d, nn.Dropout3d])
def test_dropout_of_nothing_is_the_input(make: Any) -> None:
    x = ms.Tensor(
        wave(2, 3, 4, 5, 6)[0, 0]
        if make is nn.Dropout1d
        else wave(2, 3, 4, 5, 6)[0]
        if make is nn.Dropout2d
        else wave(2, 3, 4, 5, 6)
    )
    assert make(0.0).set_train()(x).asnumpy().tolist() == x.asnumpy().tolist()
