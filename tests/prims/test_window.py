"""Windows against loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.convolution.window import (
    window_argmax,
    window_gather,
    window_max,
    window_scatter,
    window_spread,
    window_sum,
)
from mycel._src.engines.reference import apply
from mycel._src.foundation.dtype import float32, float64, int32, int64
from mycel._src.foundation.errors import ShapeError
from tests.prims.cases import run


def t(*shape: Any, dtype: Any = float32) -> TensorType:
    return tensor_type(shape, dtype)


GEOMETRIES = [
    ((2, 3, 9), {"window": (3,), "strides": (2,), "padding": ((1, 2),)}),
    ((1, 2, 6, 7), {"window": (2, 3), "strides": (2, 1), "padding": ((0, 1), (2, 1))}),
    ((1, 1, 4, 3, 5), {"window": (2, 2, 3), "strides": (1, 2, 2), "padding": ((1, 0), (0, 1), (1, 1))}),
]


def windows(shape: Any, params: dict[str, Any]) -> Iterator[tuple[Any, list[tuple[int, Any]]]]:
    """For each output position, the (place, input position) pairs inside the input."""
    out = [
        (d + lo + hi - k) // s + 1
        for d, k, s, (lo, hi) in zip(shape[2:], params["window"], params["strides"], params["padding"])
    ]
    for n, c, *p in np.ndindex(*shape[:2], *out):
        members = []
        for place, k in enumerate(np.ndindex(*params["window"])):
            at = [i * s - lo + j for i, s, (lo, _), j in zip(p, params["strides"], params["padding"], k)]
            if all(0 <= a < d for a, d in zip(at, shape[2:])):
                members.append((place, (n, c, *at)))
        yield (n, c, *p), members


@pytest.mark.parametrize(("shape", "params"), GEOMETRIES)
def test_values_by_loops(shape: Any, params: dict[str, Any]) -> None:
    x = np.random.default_rng(3).normal(size=shape)
    total, best, place = (apply(p, [x], params) for p in (window_sum, window_max, window_argmax))
    assert total.shape == best.shape == place.shape
    for position, members in windows(shape, params):
        inside = [x[at] for _, at in members]
        assert total[position] == pytest.approx(sum(inside))
        assert best[position] == max(inside)
        assert place[position] == members[int(np.argmax(inside))][0]


@pytest.mark.parametrize(("shape", "params"), GEOMETRIES)
def test_moves_by_loops(shape: Any, params: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=shape)
    index = apply(window_argmax, [x], params)
    index = rng.integers(0, int(np.prod(params["window"])), index.shape).astype(np.int32)
    ct = rng.normal(size=index.shape)
    expected_gather, expected_scatter, expected_spread = np.zeros(index.shape), np.zeros(shape), np.zeros(shape)
    for position, members in windows(shape, params):
        for place, at in members:
            expected_spread[at] += ct[position]
            if place == index[position]:
                expected_gather[position] = x[at]
                expected_scatter[at] += ct[position]
    np.testing.assert_array_equal(apply(window_gather, [x, index], params), expected_gather)
    np.testing.assert_allclose(apply(window_scatter, [ct, index], {"input_shape": shape, **params}), expected_scatter)
    free = input_node(tensor_type(ct.shape, float64))
    (spread,) = run([window_spread(free, input_shape=shape, **params)], [free], [ct])
    np.testing.assert_allclose(spread, expected_spread, rtol=1e-12, atol=1e-12)


LINE = {"window": (2,), "strides": (1,), "padding": ((1, 1),)}


def test_padding_is_never_chosen() -> None:
    for dtype in (np.float32, np.int8, np.uint8):
        lowest = -np.inf if dtype is np.float32 else np.iinfo(dtype).min
        x = np.full((1, 1, 3), lowest, dtype)
        np.testing.assert_array_equal(apply(window_argmax, [x], LINE), [[[1, 0, 0, 0]]])
        np.testing.assert_array_equal(apply(window_max, [x], LINE), np.full((1, 1, 4), lowest, dtype))


def test_the_first_of_equals_and_the_first_nan_win() -> None:
    params = {"window": (3,), "strides": (1,), "padding": ((0, 0),)}
    x = np.array([[[2.0, 2.0, 1.0, np.nan, np.nan]]])
    np.testing.assert_array_equal(apply(window_argmax, [x], params), [[[0, 2, 1]]])
    np.testing.assert_array_equal(apply(window_max, [x], params), [[[2.0, np.nan, np.nan]]])


def test_integer_sums_wrap_and_half_sums_accumulate_in_float32() -> None:
    params = {"window": (2,), "strides": (1,), "padding": ((0, 0),)}
    assert apply(window_sum, [np.full((1, 1, 2), 200, np.uint8)], params).item() == 400 % 256
    wide = {"window": (4096,), "strides": (1,), "padding": ((0, 0),)}
    assert apply(window_sum, [np.ones((1, 1, 4096), np.float16)], wide).item() == 4096


def test_symbolic_sizes() -> None:
    n, h = symbol("n"), symbol("h", 4)
    params = {"window": (2, 2), "strides": (2, 2), "padding": ((0, 0), (0, 0))}
    out = window_max.infer(t(n, 8, h, 6), **params)
    assert out.shape == (n, 8, (h - 2) // 2 + 1, 3)
    index = out.with_dtype(int32)
    assert window_argmax.infer(t(n, 8, h, 6), **params) is index
    assert window_scatter.infer(out, index, input_shape=(n, 8, h, 6), **params) is t(n, 8, h, 6)
    assert window_gather.infer(t(n, 8, h, 6), index, **params) is out
    x = input_node(t(n, 8, h, 6))
    assert window_spread(window_sum(x, **params), input_shape=x.shape, **params).shape == x.shape


def test_errors() -> None:
    with pytest.raises(
        ShapeError, match=r"window_max: padding \(2, 0\) of spatial axis 0 must be smaller than the window, 2"
    ):
        window_max.infer(t(1, 1, 4), window=(2,), strides=(1,), padding=((2, 0),))
    with pytest.raises(ShapeError, match=r"window_sum: the input must be \(N, C, \*spatial\), not of shape \[3, 4\]"):
        window_sum.infer(t(3, 4), window=(), strides=(), padding=())
    with pytest.raises(ShapeError, match="window_sum: a window that spans 5 does not fit in spatial axis 0 of size 4"):
        window_sum.infer(t(1, 1, 4), window=(5,), strides=(1,), padding=((0, 0),))
    with pytest.raises(ShapeError, match=r"window_sum: window \(2, 2\) has 2 entries for 1 spatial dimensions"):
        window_sum.infer(t(1, 1, 4), window=(2, 2), strides=(1,), padding=((0, 0),))
    with pytest.raises(TypeError, match="window_gather: the index must be int32, as window_argmax gives it, not int64"):
        window_gather.infer(t(1, 1, 4), t(1, 1, 5, dtype=int64), **LINE)
    with pytest.raises(
        ShapeError, match=r"window_scatter: the index is int32\[1, 1, 4\], but the windows are \[1, 1, 5\]"
    ):
        window_scatter.infer(t(1, 1, 5), t(1, 1, 4, dtype=int32), input_shape=(1, 1, 4), **LINE)
