"""Convolutions as objects, random numbers under their other names, and functions of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks

from .test_layers import _convolved

checks = Checks("NumPy")
X, W = A(2, 4, 5, 4), A(2, 4, 3, 2)


def convolved(strides: Any, pads: Any, dilation: Any, groups: int = 1) -> Any:
    return lambda x, w: _convolved(x, w, strides, pads, dilation, groups)


for more, want, weight in (
    ({}, convolved((1, 1), ((0, 0),) * 2, (1, 1)), W),
    ({"pad_mode": "pad", "pad": 1, "stride": 2}, convolved((2, 2), ((1, 1),) * 2, (1, 1)), W),
    ({"pad_mode": "same", "dilation": (1, 2)}, convolved((1, 1), ((1, 1),) * 2, (1, 2)), W),
    ({"group": 2}, convolved((1, 1), ((0, 0),) * 2, (1, 1), 2), A(2, 2, 3, 2)),
):
    init = {"out_channel": 2, "kernel_size": (3, 2), **more}
    checks.add("ops.Conv2D", want, (X, weight), init=init, dtypes="float32", tolerance=3)
for more, want in (
    ({}, convolved((1,) * 3, ((0, 0),) * 3, (1,) * 3)),
    ({"stride": 2}, convolved((2,) * 3, ((0, 0),) * 3, (1,) * 3)),
    ({"pad_mode": "pad", "pad": 1}, convolved((1,) * 3, ((1, 1),) * 3, (1,) * 3)),
):
    init = {"out_channel": 2, "kernel_size": 2, **more}
    checks.add("ops.Conv3D", want, (A(1, 2, 4, 3, 3), A(2, 2, 2, 2, 2)), init=init, dtypes="float32", tolerance=3)


def channels(v: Any) -> Any:
    return v[:, None, None]


def normalized(x: Any, w: Any, b: Any, m: Any, v: Any) -> Any:
    return (x - channels(m)) / np.sqrt(channels(v) + 1e-5) * channels(w) + channels(b), m, v, m, v


def most(x: Any) -> Any:
    """The largest of each quarter, and its place in the image."""
    rows, columns = x.shape[2] // 2, x.shape[3] // 2
    parts = x.reshape(*x.shape[:2], 2, rows, 2, columns).swapaxes(3, 4).reshape(*x.shape[:2], 2, 2, -1)
    places = np.arange(x.shape[2] * x.shape[3]).reshape(2, rows, 2, columns).swapaxes(1, 2).reshape(2, 2, -1)
    first = parts.argmax(-1)
    return parts.max(-1), np.take_along_axis(np.broadcast_to(places, parts.shape), first[..., None], -1)[..., 0]


for shape in ((2, 3, 2, 2), (1, 2, 3, 1), (3, 1, 1, 4)):
    each = A(shape[1])
    checks.add(
        "ops.BatchNorm",
        normalized,
        (A(*shape), each, each, each, A(shape[1], low=0.4)),
        dtypes="float32",
        tolerance=5,
        grad=(0,),
    )
for shape in ((1, 2, 4, 6), (2, 1, 2, 2), (1, 1, 6, 2)):
    checks.add("ops.AdaptiveMaxPool2D", most, (A(*shape),), init={"output_size": (2, 2)}, dtypes="float32")
test_values, test_gradients = checks.tests()

DRAWS = {
    "ops.StandardNormal": (lambda: ops.StandardNormal()((50, 200)), stats.norm()),
    "ops.StandardLaplace": (lambda: ops.StandardLaplace()((50, 200)), stats.laplace()),
    "ops.UniformReal": (lambda: ops.UniformReal()((50, 200)), stats.uniform()),
    "ops.rand_like": (lambda: ops.rand_like(ops.zeros((50, 200))), stats.uniform()),
    "ops.randn_like": (lambda: ops.randn_like(ops.zeros((50, 200))), stats.norm()),
    "numpy.rand": (lambda: ms.numpy.rand(50, 200), stats.uniform()),
    "numpy.randn": (lambda: ms.numpy.randn(50, 200), stats.norm()),
}
WHOLE = {
    "ops.UniformInt": (lambda: ops.UniformInt()((9000,), Tensor(2, ms.int32), Tensor(5, ms.int32)), [0, 0, 1, 1, 1]),
    "numpy.randint": (lambda: ms.numpy.randint(2, 5, (9000,)), [0, 0, 1, 1, 1]),
    "Tensor.bernoulli": (lambda: Tensor(np.full(9000, 0.25)).bernoulli(), [3, 1]),
    "Tensor.bernoulli_": (lambda: ops.zeros(9000).bernoulli_(0.25), [3, 1]),
    "Tensor.multinomial": (lambda: Tensor([1.0, 0.0, 3.0]).multinomial(9000), [1, 0, 3]),
    "ops.Multinomial": (lambda: ops.Multinomial()(Tensor([1.0, 0.0, 3.0]), 9000), [1, 0, 3]),
    "ops.RandomCategorical": (lambda: ops.RandomCategorical()(Tensor(np.log([[1.0, 2.0, 1.0]])), 9000), [1, 2, 1]),
}
CHECKED = {
    **dict.fromkeys(DRAWS, "SciPy's distributions"),
    **dict.fromkeys(WHOLE, "frequencies"),
    **{f"ops.{n}": "definition" for n in "Dropout Dropout2D Dropout3D RandomShuffle".split()},
    **{f"ops.{n}": "definition" for n in "Depend depend Partial partial Map constexpr".split()},
    **{f"ops.{n}": "the transpose" for n in "Conv2DTranspose Conv2DBackpropInput conv3d_transpose".split()},
    "ops.vmap": "a loop",
    "Tensor.addmm_": "NumPy",
    "Tensor.inplace_update": "NumPy",
    "Tensor.register_hook": "derivatives by hand",
}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    ms.set_seed(7)


@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name: str) -> None:
    draw, distribution = DRAWS[name]
    first = draw()
    assert first.shape == (50, 200) and first.dtype is ms.float32
    assert stats.kstest(first.asnumpy().ravel().astype(np.float64), distribution.cdf).pvalue > 1e-4
    assert not np.array_equal(first.asnumpy(), draw().asnumpy())


@pytest.mark.parametrize("name", WHOLE)
def test_frequencies(name: str) -> None:
    draw, shares = WHOLE[name]
    counts = np.bincount(draw().asnumpy().ravel().astype(int), minlength=len(shares))
    expected = np.array(shares) / np.sum(shares) * 9000
    assert counts.sum() == 9000 and not counts[expected == 0].any()
    assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-4


@pytest.mark.parametrize("name", ["Dropout", "Dropout2D", "Dropout3D"])
def test_dropping(name: str) -> None:
    shape = {"Dropout": (40, 30), "Dropout2D": (40, 30, 2, 2), "Dropout3D": (40, 30, 1, 2, 2)}[name]
    x = np.random.default_rng(1).uniform(1, 2, shape)
    values, kept = getattr(ops, name)(keep_prob=0.75)(Tensor(x))
    mask = kept.asnumpy().astype(bool)
    np.testing.assert_allclose(values.asnumpy(), np.where(mask, x / 0.75, 0))
    channel = mask.reshape(40 * 30, -1)
    assert (channel == channel[:, :1]).all() and abs(channel[:, 0].mean() - 0.75) < 0.05


def test_shuffling() -> None:
    for n in (1, 7, 50):
        assert sorted(ops.RandomShuffle()(Tensor(np.arange(n))).tolist()) == list(range(n))


def test_transposed_convolutions() -> None:
    random = np.random.default_rng(2)
    for name in ("Conv2DTranspose", "Conv2DBackpropInput"):
        for stride, pad in ((1, 0), (2, 1), (3, 0)):
            x, w = random.normal(size=(1, 3, 7, 5)), random.normal(size=(2, 3, 3, 2))
            forward = _convolved(x, w, (stride,) * 2, ((pad, pad),) * 2, (1, 1), 1)
            y = random.normal(size=forward.shape)
            made = getattr(ops, name)(2, (3, 2), pad_mode="pad", pad=pad, stride=stride)
            back = made(Tensor(y), Tensor(w), x.shape).asnumpy()
            np.testing.assert_allclose((forward * y).sum(), (x * back).sum())
    for stride, pad, size in ((1, 0, 4), (2, 0, 4), (2, 1, 4)):
        x, w = random.normal(size=(1, 3, size, size, size)), random.normal(size=(2, 3, 2, 2, 2))
        forward = _convolved(x, w, (stride,) * 3, ((pad, pad),) * 3, (1,) * 3, 1)
        y = random.normal(size=forward.shape)
        mode = {"pad_mode": "pad", "padding": pad} if pad else {}
        back = ops.conv3d_transpose(Tensor(y), Tensor(w), stride=stride, **mode).asnumpy()
        np.testing.assert_allclose((forward * y).sum(), (x * back).sum())


def test_functions_of_functions() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 5.0])
    assert ops.partial(ops.sub, y)(x).tolist() == ops.Partial()(ops.sub, y)(x).tolist() == [2.0, 3.0]
    assert ops.depend(x, y).tolist() == ops.Depend()(x, y).tolist() == [1.0, 2.0]
    assert [float(v) for v in ops.Map()(ops.add, (x[0], x[1]), (y[0], y[1]))] == [4.0, 7.0]
    assert ops.constexpr(lambda n: n * 2)(21) == 42
    rows = np.random.default_rng(3).normal(size=(4, 3))
    got = ops.vmap(lambda v, w: (v * w).sum(), (0, None))(Tensor(rows), Tensor(rows[0]))
    np.testing.assert_allclose(got.asnumpy(), [(v * rows[0]).sum() for v in rows])


def test_methods_that_write_and_hooks() -> None:
    a, b, c = (np.random.default_rng(k).normal(size=s) for k, s in enumerate(((2, 3), (2, 4), (4, 3))))
    t = Tensor(a)
    assert t.addmm_(Tensor(b), Tensor(c), beta=0.5, alpha=2) is t
    np.testing.assert_allclose(t.asnumpy(), 0.5 * a + 2 * b @ c)
    want = c.copy()
    want[[3, 1]] = a
    np.testing.assert_array_equal(Tensor(c).inplace_update(Tensor(a), (3, 1)).asnumpy(), want)

    def loss(v: Tensor) -> Tensor:
        w = v * 2
        w.register_hook(lambda slope: slope * 10)
        return (w * w).sum()

    np.testing.assert_allclose(ms.grad(loss)(Tensor([1.0, 3.0])).asnumpy(), [80.0, 240.0])
