"""Indexing against NumPy and loops, with indices that are negative, repeated and out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.indexing.dynamic_slicing import dynamic_slice, dynamic_update_slice
from mycel._src.compiler.prims.indexing.index import (
    checked,
    gather_nd,
    put_along,
    scatter_nd,
    take,
    take_add,
    take_along,
)
from mycel._src.engines.reference import apply
from mycel._src.foundation.dtype import bool_, float32, float64, int8, int32, int64
from mycel._src.foundation.errors import IndexRangeError, ShapeError
from tests.prims.cases import nodes_for, run, sweep


def t(*shape: Any, dtype: Any = float32) -> TensorType:
    return tensor_type(shape, dtype)


def i(*values: Any) -> Any:
    return np.array(values, np.int32)


X = np.arange(12.0).reshape(3, 4)
DROP = {"bounds": "drop"}


def test_negative_indices_count_from_the_end_and_others_that_are_dropped_read_zero() -> None:
    np.testing.assert_array_equal(
        apply(take, [X, i(0, -1, 3, -4)], {"axis": 0, **DROP}), [X[0], X[2], 0 * X[0], 0 * X[0]]
    )
    np.testing.assert_array_equal(apply(gather_nd, [X, i([1, -1], [2, 4], [-4, 0])], DROP), [7.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        apply(take_along, [X, i([0, -4], [9, 1], [-9, 3])], {"axis": 1, **DROP}), [[0, 0], [0, 5], [0, 11]]
    )


def test_writes_out_of_range_are_dropped() -> None:
    one = np.ones(3)
    np.testing.assert_array_equal(
        apply(scatter_nd, [np.zeros(4), i([5], [-1], [-5]), one], {"mode": "set", **DROP}), [0, 0, 0, 1]
    )
    np.testing.assert_array_equal(apply(take_add, [one, i(4, 1, -4)], {"axis": 0, "size": 3, **DROP}), [0, 1, 0])
    np.testing.assert_array_equal(
        apply(put_along, [np.zeros((1, 2)), i([2, -2, -3]), one[None]], {"axis": 1, "mode": "add", **DROP}), [[1, 0]]
    )


CASES: list[tuple[Any, list[Any], dict[str, Any]]] = [
    (take, [X, i(0, 3)], {"axis": 0}),
    (take_add, [np.ones(2), i(0, 3)], {"axis": 0, "size": 3}),
    (take_along, [X, i([3, 0, 1, 0])], {"axis": 0}),
    (put_along, [X, i([3, 0, 1, 0]), np.ones((1, 4))], {"axis": 0, "mode": "add"}),
    (gather_nd, [X, i([0, 0], [3, 1])], {}),
    (scatter_nd, [X, i([0], [3]), np.ones((2, 4))], {"mode": "set"}),
    (checked, [i(0, 3)], {"axis": 0, "size": 3}),
]


@pytest.mark.parametrize(("primitive", "arrays", "params"), CASES, ids=[c[0].name for c in CASES])
def test_an_index_out_of_range_is_an_error(primitive: Any, arrays: list[Any], params: dict[str, Any]) -> None:
    def with_index(index: int) -> list[Any]:
        return [np.where(a == 3, index, a) if a.dtype == np.int32 else a for a in arrays]

    apply(primitive, with_index(-3), params)
    for index in (3, -4, 2**31 - 1):
        text = rf"{primitive.name}: index {index} is out of range for axis 0 of size 3; use one in \[-3, 3\)"
        with pytest.raises(IndexRangeError, match=text):
            apply(primitive, with_index(index), params)
    with pytest.raises(IndexRangeError, match=r"index -1 is .* use one in \[0, 3\)"):
        apply(primitive, with_index(-1), {**params, "bounds": "front"})


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("set", [-2, 7, -9]),
        ("add", [1 + 5 - 2, 2 + 7, 3 + 9 - 9]),
        ("mul", [-10, 14, 3 * -81]),
        ("max", [5, 7, 9]),
        ("min", [-2, 2, -9]),
    ],
)
def test_modes_combine_repeated_places(mode: str, expected: Any) -> None:
    x, u = np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 9.0, -2.0, -9.0])
    index = i(0, 1, 2, 0, 2)
    np.testing.assert_array_equal(apply(scatter_nd, [x, index[:, None], u], {"mode": mode}), expected)
    np.testing.assert_array_equal(apply(put_along, [x, index, u], {"axis": 0, "mode": mode}), expected)


def test_the_input_is_not_written_to() -> None:
    x = np.zeros(3)
    apply(scatter_nd, [x, i([1]), np.ones(1)], {"mode": "set"})
    apply(dynamic_update_slice, [x, np.ones(2), np.int32(0)], {})
    np.testing.assert_array_equal(x, [0, 0, 0])


def test_half_sums_accumulate_in_float32() -> None:
    ct = np.ones(4096, np.float16)
    assert apply(take_add, [ct, np.zeros(4096, np.int32)], {"axis": 0, "size": 1}).item() == 4096


def cotangents(primitive: Any, arrays: list[Any], ct: Any, **params: Any) -> list[Any]:
    free = nodes_for(arrays)
    out = primitive(*free, **params)
    weight = input_node(out.type)
    floats = [n for n in free if n.dtype is float64]
    return list(run(sweep([out], [weight], floats), [*free, weight], [*arrays, ct]))


def test_derivative_of_set_goes_to_the_update_that_stays() -> None:
    x, u = np.zeros(3), np.array([1.0, 2.0, 3.0])
    dx, du = cotangents(scatter_nd, [x, i([1], [1], [7]), u], np.array([10.0, 20.0, 30.0]), mode="set", **DROP)
    np.testing.assert_array_equal(dx, [10, 0, 30])
    np.testing.assert_array_equal(du, [0, 20, 0])


def test_derivative_of_mul_is_right_beside_zeros() -> None:
    x = np.array([2.0, 3.0, 5.0])
    u = np.array([0.0, 7.0, 0.0, 0.0, 11.0])
    dx, du = cotangents(put_along, [x, i(0, 0, 1, 1, 2), u], np.ones(3), axis=0, mode="mul")
    np.testing.assert_array_equal(dx, [0, 0, 11])
    np.testing.assert_array_equal(du, [14, 0, 0, 0, 5])


def test_derivative_of_max_is_shared_by_equals() -> None:
    x, u = np.array([4.0, 1.0]), np.array([4.0, 4.0, 0.0])
    dx, du = cotangents(scatter_nd, [x, i([0], [0], [1]), u], np.array([6.0, 5.0]), mode="max")
    np.testing.assert_array_equal(dx, [2, 5])
    np.testing.assert_array_equal(du, [2, 2, 0])


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.lists(st.integers(1, 3), max_size=2), st.data())
def test_take_is_numpy_take_within_range(shape: Any, index_shape: Any, data: Any) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.normal(size=shape)
    index = rng.integers(-shape[axis], shape[axis], index_shape)
    np.testing.assert_array_equal(apply(take, [x, index], {"axis": axis}), np.take(x, index, axis))
    ct = rng.normal(size=np.take(x, index, axis).shape)
    total = apply(take_add, [ct, index], {"axis": axis, "size": shape[axis]})
    assert (total * x).sum() == pytest.approx((np.take(x, index, axis) * ct).sum())


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.data())
def test_blocks_are_slices_with_clamped_starts(shape: Any, data: Any) -> None:
    sizes = tuple(data.draw(st.integers(0, d)) for d in shape)
    starts = [data.draw(st.integers(-3, 6)) for _ in shape]
    where = tuple(slice(min(max(s, 0), d - n), min(max(s, 0), d - n) + n) for s, d, n in zip(starts, shape, sizes))
    x = np.random.default_rng(5).normal(size=shape)
    arrays = [np.int64(s) for s in starts]
    np.testing.assert_array_equal(apply(dynamic_slice, [x, *arrays], {"sizes": sizes}), x[where])
    changed = x.copy()
    changed[where] = 7.0
    np.testing.assert_array_equal(apply(dynamic_update_slice, [x, np.full(sizes, 7.0), *arrays], {}), changed)


def test_empty_axes_read_zero_where_indices_are_dropped() -> None:
    np.testing.assert_array_equal(apply(take, [np.zeros((0, 2)), i(0, -1)], {"axis": 0, **DROP}), np.zeros((2, 2)))
    np.testing.assert_array_equal(
        apply(take_along, [np.zeros((0, 2)), i([3, 4])], {"axis": 0, **DROP}), np.zeros((1, 2))
    )


def test_symbolic_sizes() -> None:
    n, m = symbol("n"), symbol("m")
    assert take.infer(t(n, 8), t(m, 3, dtype=int32), axis=0) is t(m, 3, 8)
    assert take_add.infer(t(m, 3, 8), t(m, 3, dtype=int32), axis=0, size=n) is t(n, 8)
    assert gather_nd.infer(t(n, m, 8), t(m, 2, dtype=int64)) is t(m, 8)
    assert scatter_nd.infer(t(n, 8), t(m, 1, dtype=int32), t(m, 8), mode="add") is t(n, 8)
    assert take_along.infer(t(n, 8), t(n, 2, dtype=int32), axis=1) is t(n, 2)
    assert dynamic_slice.infer(t(n, 8), t(dtype=int32), t(dtype=int32), sizes=(1, 8)) is t(1, 8)


def test_errors() -> None:
    with pytest.raises(TypeError, match="take: indices must be int32 or int64, not int8; cast them"):
        take.infer(t(3), t(2, dtype=int8), axis=0)
    with pytest.raises(ShapeError, match=r"take: axis 1 is not an axis of float32\[3\]"):
        take.infer(t(3), t(2, dtype=int32), axis=1)
    with pytest.raises(
        ShapeError, match=r"gather_nd: the last axis of the indices, int32\[2, 3\], must name 1 to 2 axes of \[4, 5\]"
    ):
        gather_nd.infer(t(4, 5), t(2, 3, dtype=int32))
    with pytest.raises(ShapeError, match=r"want updates of shape \[2, 5\], not \[2, 4\]"):
        scatter_nd.infer(t(4, 5), t(2, 1, dtype=int32), t(2, 4), mode="add")
    with pytest.raises(
        ValueError, match="scatter_nd: mode must be one of 'set', 'add', 'mul', 'max', 'min', not 'sub'"
    ):
        scatter_nd.infer(t(4), t(2, 1, dtype=int32), t(2), mode="sub")
    with pytest.raises(TypeError, match="scatter_nd with mode 'add' takes .* not bool"):
        scatter_nd.infer(t(4, dtype=bool_), t(2, 1, dtype=int32), t(2, dtype=bool_), mode="add")
    with pytest.raises(
        ShapeError, match=r"must have the shape of float32\[3, 4\] except on axis 1; broadcast them first"
    ):
        take_along.infer(t(3, 4), t(1, 2, dtype=int32), axis=1)
    with pytest.raises(ShapeError, match="put_along: updates of shape"):
        put_along.infer(t(3, 4), t(3, 2, dtype=int32), t(3, 3), axis=1, mode="set")
    with pytest.raises(
        ShapeError,
        match=r"take_add: the axes of float32\[2, 3\] from 1 on do not begin with the shape of the indices, \[4\]",
    ):
        take_add.infer(t(2, 3), t(4, dtype=int32), axis=1, size=5)
    with pytest.raises(ShapeError, match=r"dynamic_slice: float32\[3, 4\] needs 2 scalar starts, not int32\[\]"):
        dynamic_slice.infer(t(3, 4), t(dtype=int32), sizes=(1, 1))
    with pytest.raises(ShapeError, match=r"a block of shape \[4, 1\] does not fit into float32\[3, 4\]"):
        dynamic_slice.infer(t(3, 4), t(dtype=int32), t(dtype=int32), sizes=(4, 1))
    with pytest.raises(TypeError, match="element types float32, float64 differ"):
        dynamic_update_slice.infer(t(3), t(2, dtype=float64), t(dtype=int32))
