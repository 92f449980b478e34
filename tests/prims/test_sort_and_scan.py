"""Sorting, running reductions and binary search against NumPy and plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.sort_and_scan import cummax, cummin, cumprod, cumsum, search_sorted, sort
from mycel._src.engines.reference import apply
from mycel._src.foundation.dtype import complex64, float32, float64
from mycel._src.foundation.errors import ShapeError
from tests.prims.cases import nodes_for, run, sweep

NAN = np.nan


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, NAN, np.inf, -np.inf]), max_size=8), st.booleans())
def test_sort_is_stable_with_nan_above_every_number(values: list[float], descending: bool) -> None:
    def key(pair: Any) -> Any:
        value = pair[1]
        return (
            (0 if descending else 1, 0.0)
            if value != value
            else (1 if descending else 0, -value if descending else value)
        )

    expected = sorted(enumerate(values), key=key)
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        ordered, order = apply(sort, [np.array(values, dtype)], {"axis": 0, "descending": descending})
        assert order.tolist() == [p for p, _ in expected]
        np.testing.assert_array_equal(ordered.astype(np.float64), [v for _, v in expected])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.bool_])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_of_integers_holds_at_the_limits(dtype: Any, descending: bool) -> None:
    x = (
        np.array([1, 0, 1, 0], np.bool_)
        if dtype is np.bool_
        else np.array([3, np.iinfo(dtype).min, np.iinfo(dtype).max, 3], dtype)
    )
    expected = sorted(range(4), key=lambda i: -int(x[i]) if descending else int(x[i]))
    values, order = apply(sort, [x], {"axis": 0, "descending": descending})
    assert order.tolist() == expected
    np.testing.assert_array_equal(values, x[expected])


RUNNING = {cumsum: lambda a, b: a + b, cumprod: lambda a, b: a * b, cummax: np.maximum, cummin: np.minimum}


@pytest.mark.parametrize("primitive", RUNNING, ids=lambda p: p.name)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_reductions_by_accumulation(primitive: Any, reverse: bool) -> None:
    x = np.random.default_rng(1).normal(size=(3, 6))
    rows = x[:, ::-1] if reverse else x
    expected = np.array([list(itertools.accumulate(r, RUNNING[primitive])) for r in rows])
    expected = expected[:, ::-1] if reverse else expected
    np.testing.assert_allclose(apply(primitive, [x], {"axis": 1, "reverse": reverse}), expected, rtol=1e-12)


def test_running_reductions_of_special_values() -> None:
    forward = {"axis": 0, "reverse": False}
    np.testing.assert_array_equal(apply(cummax, [np.array([1.0, NAN, 3.0])], forward), [1, NAN, NAN])
    np.testing.assert_array_equal(
        apply(cumsum, [np.array([200, 100], np.uint8)], forward), np.array([200, 44], np.uint8)
    )
    assert apply(cumsum, [np.ones(4096, np.float16)], forward)[-1] == 4096


def gradient(primitive: Any, x: Any, ct: Any, **params: Any) -> Any:
    (free,) = nodes_for([x])
    out = primitive(free, **params)
    weight = input_node(tensor_type(ct.shape, float64))
    return run(sweep([out], [weight], [free]), [free, weight], [x, ct])[0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "values", [[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 3.0, 1.0], [2.0, 3.0, 0.0, 0.0], [0.0] * 4, [2.0, -1.0, 0.5, 3.0]]
)
def test_derivative_of_cumprod_with_zeros(values: list[float], reverse: bool) -> None:
    x, ct = np.array(values), np.array([1.0, -2.0, 0.5, 3.0])
    expected = np.zeros(4)
    for i in range(4):
        for j in range(4):
            members = range(j, 4) if reverse else range(j + 1)
            if i in members:
                expected[i] += ct[j] * np.prod([x[k] for k in members if k != i])
    np.testing.assert_allclose(gradient(cumprod, x, ct, axis=0, reverse=reverse), expected, rtol=1e-12)


def test_derivative_of_running_extremes_goes_to_the_nearest_of_equals() -> None:
    x, ct = np.array([1.0, 3.0, 3.0, 2.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(gradient(cummax, x, ct, axis=0, reverse=False), [1, 10, 1100, 0])
    np.testing.assert_array_equal(gradient(cummin, x, ct, axis=0, reverse=True), [1, 0, 0, 1110])
    np.testing.assert_array_equal(gradient(cummin, x, ct, axis=0, reverse=False), [1111, 0, 0, 0])
    np.testing.assert_array_equal(gradient(cummax, x, ct, axis=0, reverse=True), [0, 11, 100, 1000])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(-3, 3), max_size=6),
    st.lists(st.integers(-4, 4), max_size=4),
    st.sampled_from(["left", "right"]),
)
def test_search_keeps_rows_sorted(row: list[int], values: list[int], side: str) -> None:
    found = apply(search_sorted, [np.array(sorted(row), np.int64), np.array(values, np.int64)], {"side": side})
    assert found.dtype == np.int32
    for v, p in zip(values, found):
        assert p == sum(r < v if side == "left" else r <= v for r in row)


def test_search_puts_nan_last() -> None:
    row = np.array([0.0, 1.0, NAN, NAN])
    free = nodes_for([row, row])
    for side, expected in (("left", [0, 1, 2, 2]), ("right", [1, 2, 4, 4])):
        np.testing.assert_array_equal(apply(search_sorted, [row, row], {"side": side}), expected)
        opened = search_sorted.expand(*free, side=side)
        np.testing.assert_array_equal(run([opened], free, [row, row])[0], expected)


def test_symbolic_sizes_and_errors() -> None:
    n = symbol("n")
    x = tensor_type((n, 4), float32)
    assert sort.infer(x, axis=0, descending=False)[1].shape == (n, 4)
    assert cumsum.infer(x, axis=0, reverse=True) is x
    assert search_sorted.infer(x, tensor_type((n, 2), float32), side="left").shape == (n, 2)
    with pytest.raises(ShapeError, match=r"sort: axis 2 is not an axis of float32\[n, 4\]"):
        sort.infer(x, axis=2, descending=False)
    with pytest.raises(ShapeError, match="cumsum: axis -1 is not an axis"):
        cumsum.infer(x, axis=-1, reverse=False)
    with pytest.raises(
        TypeError, match="sort takes floating, signed integer, unsigned integer, boolean tensors, not complex64"
    ):
        sort.infer(x.with_dtype(complex64), axis=0, descending=False)
    with pytest.raises(ValueError, match="side must be one of 'left', 'right', not 'middle'"):
        search_sorted.infer(x, x, side="middle")
    with pytest.raises(ShapeError, match="must agree except in their last axis"):
        search_sorted.infer(x, tensor_type((4,), float32), side="left")
    with pytest.raises(TypeError, match="element types float32, float64 differ"):
        search_sorted.infer(x, x.with_dtype(float64), side="left")
