"""Initializers: their distributions, the fans, reproducibility, and arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel.common import initializer
from mycel.common.seed import set_seed

SHAPE = (64, 32, 5, 5)
FAN_IN, FAN_OUT = 800, 1600
CHECKED = {
    f"common.initializer.{name}": "moments, bounds and definitions"
    for name in (
        "Constant Dirac HeNormal HeUniform Identity Initializer Normal One Orthogonal Sparse TruncatedNormal Uniform "
        "VarianceScaling XavierNormal "
        "XavierUniform Zero initializer"
    ).split()
}


@pytest.fixture(autouse=True)
def seeded() -> None:
    set_seed(7)


def draw(init: Any, shape: Any = SHAPE, dtype: Any = ms.float32) -> np.ndarray[Any, Any]:
    return initializer.initializer(init, shape, dtype).init_data().asnumpy()


@pytest.mark.parametrize(
    "init, deviation, bound",
    [
        (initializer.Normal(), 0.01, None),
        (initializer.Normal(0.5), 0.5, None),
        (initializer.Uniform(), 0.07 / np.sqrt(3), 0.07),
        (initializer.XavierUniform(2), 2 * np.sqrt(2 / 2400), 2 * np.sqrt(6 / 2400)),
        (initializer.XavierNormal(2), 2 * np.sqrt(2 / 2400), None),
        (initializer.HeUniform(), np.sqrt(2 / FAN_IN), np.sqrt(6 / FAN_IN)),
        (initializer.HeUniform(np.sqrt(5)), np.sqrt(1 / 3 / FAN_IN), np.sqrt(1 / FAN_IN)),
        (initializer.HeNormal(), np.sqrt(2 / FAN_IN), None),
        (initializer.HeNormal(0, "fan_out", "relu"), np.sqrt(2 / FAN_OUT), None),
        (initializer.HeNormal(0, "fan_out", "tanh"), 5 / 3 / np.sqrt(FAN_OUT), None),
        (initializer.HeNormal(0, "fan_out", "sigmoid"), 1 / np.sqrt(FAN_OUT), None),
        (initializer.HeNormal(0, "fan_out", "linear"), 1 / np.sqrt(FAN_OUT), None),
        (initializer.VarianceScaling(), np.sqrt(1 / FAN_IN), 2 * np.sqrt(1 / FAN_IN) / 0.8796),
        (initializer.VarianceScaling(2.0, "fan_avg", "uniform"), np.sqrt(2 / 1200), np.sqrt(6 / 1200)),
        (initializer.VarianceScaling(2.0, "fan_out", "untruncated_normal"), np.sqrt(2 / FAN_OUT), None),
        (initializer.TruncatedNormal(0.5), 0.5, 2.0),
    ],
    ids=repr,
)
def test_distributions(init: initializer.Initializer, deviation: float, bound: Any) -> None:
    values = draw(init)
    assert values.dtype == np.float32 and values.shape == SHAPE
    assert abs(values.mean()) < 0.02 * deviation * 1.5
    assert values.std() == pytest.approx(deviation, rel=0.02)
    if bound is not None:
        assert (
            0.9 * bound < abs(values).max() * (1.0 if not isinstance(init, initializer.TruncatedNormal) else 1.1)
            and abs(values).max() <= bound * 1.0001
        )
    else:
        assert abs(values).max() > 3.5 * deviation


@pytest.mark.parametrize(
    "low, high", [(-2.0, 2.0), (0.0, 3.0), (-0.1, 0.2), (2.0, 2.5), (3.0, 50.0), (-50.0, -3.0), (8.0, 9.0)]
)
def test_truncated_normal_against_its_density(low: float, high: float) -> None:
    values = draw(initializer.TruncatedNormal(2.0, 1.0, 1 + 2 * low, 1 + 2 * high), (20000,), ms.float64)
    assert values.min() >= 1 + 2 * low and values.max() <= 1 + 2 * high
    edge = min(high, low + 10) if low > 0 else high
    start = max(low, high - 10) if high < 0 else low
    x = np.linspace(start, edge, 200001)
    peak = np.max(-0.5 * x * x)
    density = np.exp(-0.5 * x * x - peak)
    mean = (x * density).sum() / density.sum()
    deviation = np.sqrt(((x - mean) ** 2 * density).sum() / density.sum())
    normal = (values - 1) / 2
    assert normal.mean() == pytest.approx(mean, abs=5 * deviation / np.sqrt(20000))
    assert normal.std() == pytest.approx(deviation, rel=0.05)


def test_constants() -> None:
    assert draw("zeros", [2]).tolist() == [0, 0] and draw("ones", 2).tolist() == [1, 1]
    assert draw(1.5, [2]).tolist() == [1.5, 1.5]
    assert draw(initializer.Constant(np.array([1, 2])), [2, 2]).tolist() == [[1, 2], [1, 2]]
    assert draw("zeros", (2,), ms.int32).dtype == np.int32
    assert draw("normal", (), ms.float32).shape == ()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    q = draw(initializer.Orthogonal(2.0), shape, ms.float64).reshape(shape[0], -1)
    gram = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-12)


def test_identity_and_dirac() -> None:
    assert draw("identity", [3, 2]).tolist() == [[1, 0], [0, 1], [0, 0]]
    kernel = draw(initializer.Dirac(2), [4, 2, 3])
    expected = np.zeros((4, 2, 3))
    for o, c in ((0, 0), (1, 1), (2, 0), (3, 1)):
        expected[o, c, 1] = 1
    np.testing.assert_array_equal(kernel, expected)
    x = np.random.default_rng(0).standard_normal((1, 3, 5, 5)).astype(np.float32)
    y = ms.ops.conv2d(ms.Tensor(x), ms.Tensor(draw("dirac", [3, 3, 3, 3])), pad_mode="same")
    np.testing.assert_allclose(y.asnumpy(), x)


def test_sparse() -> None:
    values = draw(initializer.Sparse(0.3, 1.0), [10, 4])
    assert (values == 0).sum(axis=0).tolist() == [3] * 4
    assert draw(initializer.Sparse(0.25), [10, 4])[:, 0].tolist().count(0.0) == 3


def test_the_seed_and_the_count_decide() -> None:
    first = [draw("normal", [3]), draw("normal", [3]), draw("he_uniform", [3, 3])]
    set_seed(7)
    again = [draw("normal", [3]), draw("normal", [500]), draw("he_uniform", [3, 3])]
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[2], again[2])
    assert (first[0] != first[1]).all()
    set_seed(8)
    assert (draw("normal", [3]) != first[0]).all()


def test_values_are_drawn_when_needed() -> None:
    tensor = initializer.initializer("normal", [3])
    assert tensor.has_init and tensor.shape == (3,)
    values = tensor.asnumpy()
    assert not tensor.has_init and values.any()
    p = ms.Parameter(initializer.initializer("ones", [2]), name="p")
    assert p.asnumpy().tolist() == [1, 1]
    given = ms.Tensor([1.0, 2.0])
    assert initializer.initializer(given, [2]) is given


@pytest.mark.parametrize(
    "name",
    [
        "zeros",
        "Zero",
        "one",
        "normal",
        "uniform",
        "xavier_uniform",
        "XavierUniform",
        "xavier_normal",
        "he_uniform",
        "henormal",
        "truncatedNormal",
        "orthogonal",
        "identity",
        "varianceScaling",
    ],
)
def test_names(name: str) -> None:
    assert draw(name, [4, 3]).shape == (4, 3)


class _Corner(initializer.Normal):
    """Writes one element and leaves the others."""

    def _initialize(self, arr: Any) -> None:
        arr.reshape(-1)[0] = 7


@pytest.mark.parametrize("dtype", [ms.float32, ms.float64, ms.float16, ms.bfloat16, ms.int32])
def test_what_an_initializer_leaves_is_zero(dtype: Any) -> None:
    for size in (3, 50_000):
        # Memory that was used before.
        ms.Tensor(np.full(size, 5), dtype).asnumpy()[...] = 5
        found = initializer.initializer(_Corner(), [size], dtype).init_data().asnumpy().astype(np.float64)
        assert found[0] == 7 and not found[1:].any()


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64])
@pytest.mark.parametrize(
    "init",
    [initializer.Normal(2.0, 0.5), initializer.Uniform(3.0), initializer.XavierNormal(), initializer.HeUniform()],
)
def test_every_element_is_drawn(init: initializer.Initializer, dtype: Any) -> None:
    set_seed(4)
    found = initializer.initializer(init, [40, 30], dtype).init_data().asnumpy().astype(np.float64)
    set_seed(4)
    wide = (
        initializer.initializer(init, [40, 30], ms.float64 if dtype is ms.float64 else ms.float32).init_data().asnumpy()
    )
    np.testing.assert_allclose(found, wide, rtol=0.01 if dtype in (ms.float16, ms.bfloat16) else 0, atol=0)
    assert len(np.unique(wide)) > 1100


def test_user_defined_initializers() -> None:
    class Ramp(initializer.Initializer):
        def __init__(self, step: float) -> None:
            super().__init__(step=step)
            self.step = step

        def _initialize(self, arr: Any) -> None:
            arr[...] = self.step * np.arange(arr.size).reshape(arr.shape)

    assert draw(Ramp(0.5), [3]).tolist() == [0, 0.5, 1]
    assert Ramp(0.5).init_kwargs == {"step": 0.5} and repr(Ramp(0.5)) == "Ramp(step=0.5)"
    with pytest.raises(NotImplementedError, match="Initializer does not define _initialize"):
        initializer.Initializer()(np.zeros(2))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: initializer.initializer("foo", [2]), ValueError, "'foo' is not an initializer; use one of dirac"),
        (
            lambda: initializer.initializer(initializer.Normal, [2]),
            TypeError,
            "must be a Tensor, a number, a name or an Initializer, not type",
        ),
        (lambda: initializer.initializer(None, [2]), TypeError, "not NoneType"),
        (lambda: initializer.initializer("zeros", [0]), ValueError, r"shape must hold positive integers, not \(0,\)"),
        (lambda: initializer.initializer("zeros", [2, "a"]), ValueError, "shape must hold positive integers"),
        (lambda: initializer.initializer(ms.Tensor([1.0]), [2]), ValueError, r"has shape \(1,\), not \(2,\)"),
        (lambda: draw("he_uniform", [3]), ValueError, r"need a shape of at least 2 dimensions, not \(3,\)"),
        (lambda: draw("identity", [3]), ValueError, "must have 2 dimensions"),
        (lambda: draw("dirac", [3, 2]), ValueError, "3, 4 or 5 dimensions"),
        (lambda: draw(initializer.Dirac(3), [4, 2, 3]), ValueError, "not divisible by 3 groups"),
        (lambda: draw("orthogonal", [3]), ValueError, "at least 2 dimensions"),
        (lambda: draw(initializer.Sparse(0.5), [4, 2, 3]), ValueError, "must have 2 dimensions"),
        (lambda: initializer.Sparse(2.0), ValueError, r"sparsity must be in \[0, 1\], not 2.0"),
        (lambda: initializer.Dirac(0), ValueError, "groups must be at least 1"),
        (lambda: initializer.VarianceScaling(-1.0), ValueError, "scale must be positive"),
        (
            lambda: initializer.VarianceScaling(1.0, "x"),
            ValueError,
            "mode must be one of 'fan_in', 'fan_out', 'fan_avg'",
        ),
        (
            lambda: initializer.VarianceScaling(1.0, "fan_in", "x"),
            ValueError,
            "distribution must be one of 'uniform', 'truncated_normal', 'untruncated_normal'",
        ),
        (
            lambda: initializer.HeUniform(mode="x"),
            ValueError,
            "mode must be one of 'fan_in', 'fan_out', not 'x'",
        ),
        (lambda: initializer.HeNormal(nonlinearity="foo"), ValueError, "nonlinearity must be one of 'leaky_relu'"),
        (lambda: initializer.TruncatedNormal(a=2.0, b=1.0), ValueError, "a must be below b"),
        (lambda: initializer.TruncatedNormal(0.0), ValueError, "sigma must be positive"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
