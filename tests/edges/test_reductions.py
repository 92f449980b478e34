"""Reductions, running sums, sorting and searching: axes of every sign and form, sizes of zero, NaN,
and element types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mycel as ms
from mycel import mint, ops
from tests.edges.support import SEEDS, as_array, close, examples, in_both_modes, numbers, quiet, tensor, tensors_of

SHAPES = ((3, 4), (5,), (2, 1, 3), (0,), (0, 3), (3, 0, 2), (1,), (2, 3, 4))
TOTALS: dict[str, tuple[Callable[..., Any], str, float]] = {
    # Name: (oracle(x, axis, keepdims), the name of its last argument, how many times the usual
    # tolerance).
    "sum": (lambda x, a, k: np.sum(x, a, keepdims=k), "keepdim", 9),
    "mean": (lambda x, a, k: np.mean(x, a, keepdims=k), "keep_dims", 9),
    "prod": (lambda x, a, k: np.prod(x, a, keepdims=k), "keep_dims", 9),
    "amax": (lambda x, a, k: np.max(x, a, keepdims=k), "keepdims", 0),
    "amin": (lambda x, a, k: np.min(x, a, keepdims=k), "keepdims", 0),
    "all": (lambda x, a, k: np.all(x, a, keepdims=k), "keep_dims", 0),
    "any": (lambda x, a, k: np.any(x, a, keepdims=k), "keep_dims", 0),
    "std": (lambda x, a, k: np.std(x, a, keepdims=k), "keepdims", 30),
    "var": (lambda x, a, k: np.var(x, a, keepdims=k), "keepdims", 30),
    "logsumexp": (lambda x, a, k: np.log(np.sum(np.exp(x), a, keepdims=k)), "keepdim", 9),
    "nansum": (lambda x, a, k: np.nansum(x, a, keepdims=k), "keepdims", 9),
    "count_nonzero": (lambda x, a, k: np.count_nonzero(x, a, keepdims=k), "keep_dims", 0),
    "nanmean": (lambda x, a, k: np.nanmean(x, a, keepdims=k), "keepdims", 9),
    "norm": (lambda x, a, k: np.sqrt(np.sum(np.square(x), a, keepdims=k)), "keepdims", 30),
}
NEEDS_ONE = ("amax", "amin")
MAY_BE_NAN = ("sum", "mean", "prod", "nansum", "nanmean", "any", "all", "count_nonzero", "amax", "amin", "std", "var")


@st.composite
def axes_of(draw: Any, rank: int) -> Any:
    """None, an axis of either sign, or a tuple of them."""
    kind = draw(st.sampled_from(("none", "one", "several")))
    if kind == "none":
        return None
    chosen = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    signed = tuple(a - rank if draw(st.booleans()) else a for a in chosen)
    return signed[0] if kind == "one" else signed


@pytest.mark.parametrize("name", TOTALS)
@examples(24)
@given(
    data=st.data(),
    dtype=st.sampled_from(("float32", "float64", "float16", "bfloat16")),
    shape=st.sampled_from(SHAPES),
    keep=st.booleans(),
    seed=SEEDS,
)
def test_totals_of_floats(name: str, data: Any, dtype: str, shape: Any, keep: bool, seed: int) -> None:
    oracle, keyword, times = TOTALS[name]
    axis = data.draw(axes_of(len(shape)))
    axis = tuple(range(len(shape))) if axis is None and name == "logsumexp" else axis
    x = numbers(shape, dtype, seed, 0)
    if name in MAY_BE_NAN and seed % 2:
        x = np.where(np.random.default_rng(seed).uniform(size=shape) < 0.2, np.asarray(np.nan, x.dtype), x)
    function = ops.vector_norm if name == "norm" else getattr(ops, name)
    given = (2, axis) if name == "norm" else (axis,)
    with quiet():
        try:
            want = oracle(x.astype(np.float64), axis, keep)
        except ValueError:
            assert name in NEEDS_ONE
            with pytest.raises(ValueError, match=f"(?i){name[1:]}"):
                function(tensor(x), axis, **{keyword: keep})
            return
    result = in_both_modes(
        lambda t: function(t, *given, **{keyword: keep}), tensor(x), what=name, compiled=seed % 3 == 0
    )
    close(result, want, f"{name}({x!r}, {axis})", times)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "all", "any", "std", "var", "count_nonzero"])
@examples(10)
@given(
    data=st.data(),
    dtype=st.sampled_from(("int32", "int8", "uint8", "int64", "bool")),
    shape=st.sampled_from(SHAPES),
    keep=st.booleans(),
    seed=SEEDS,
)
def test_totals_of_integers(name: str, data: Any, dtype: str, shape: Any, keep: bool, seed: int) -> None:
    oracle, keyword, times = TOTALS[name]
    axis = data.draw(axes_of(len(shape)))
    x = numbers(shape, dtype, seed, 0)
    function = getattr(ops, name)
    try:
        result = in_both_modes(
            lambda t: function(t, axis, **{keyword: keep}), tensor(x), what=name, compiled=seed % 3 == 0
        )
    except (TypeError, ValueError) as error:
        assert name in str(error) or name[1:] in str(error)
        assert dtype == "bool" or not x.size
        return
    wide = x if name in ("amax", "amin", "all", "any") else x.astype(np.int64)
    with quiet():
        want = oracle(wide, axis, keep)
    if name == "mean":
        if dtype == "bool" or not x.size:
            return
        want = np.trunc(want)
    close(result, want, f"{name}({x!r}, {axis})", times * 4)


@pytest.mark.parametrize("name", ["sum", "prod", "mint_mean", "nansum"])
@examples(6)
@given(
    dtype=st.sampled_from(("int32", "float32", "bool")),
    into=st.sampled_from(("float32", "float64", "int64", "float16")),
    seed=SEEDS,
)
def test_totals_in_another_type(name: str, dtype: str, into: str, seed: int) -> None:
    x = numbers((3, 4), dtype, seed, 0, -2, 2)
    function = mint.mean if name == "mint_mean" else getattr(ops, name)
    if name == "mint_mean" and into == "int64":
        into = "float64"
    result = function(tensor(x), dtype=getattr(ms, into))
    oracle = {"sum": np.sum, "prod": np.prod, "mint_mean": np.mean, "nansum": np.nansum}[name]
    close(result, oracle(x.astype(into).astype(np.float64 if "float" in into else into)), f"{name}({x!r})", 30, into)


POSITIONS: dict[str, Callable[..., Any]] = {"argmax": np.argmax, "argmin": np.argmin}


@pytest.mark.parametrize("name", POSITIONS)
@examples(14)
@given(
    data=st.data(),
    dtype=st.sampled_from(("float32", "int32", "float16", "uint8")),
    shape=st.sampled_from(SHAPES),
    keep=st.booleans(),
    seed=SEEDS,
)
def test_positions(name: str, data: Any, dtype: str, shape: Any, keep: bool, seed: int) -> None:
    """The first of equals; NaN is found before any number."""
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    x = numbers(shape, dtype, seed, 0.5)
    keyword = {"argmax": "keepdim", "argmin": "keepdims"}[name]
    try:
        want = POSITIONS[name](x, axis, keepdims=keep)
    except ValueError:
        with pytest.raises(ValueError, match=name):
            getattr(ops, name)(tensor(x), axis, **{keyword: keep})
        return
    if axis is None and keep:
        return
    result = in_both_modes(
        lambda t: getattr(ops, name)(t, axis, **{keyword: keep}), tensor(x), what=name, compiled=seed % 3 == 0
    )
    close(result, want, f"{name}({x!r}, {axis})", 0)


RUNNING: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "logcumsumexp": np.logaddexp.accumulate,
}


@pytest.mark.parametrize("name", RUNNING)
@examples(14)
@given(
    data=st.data(),
    dtype=st.sampled_from(("float32", "float64", "float16", "int32", "int8")),
    shape=st.sampled_from(SHAPES),
    seed=SEEDS,
)
def test_running_totals(name: str, data: Any, dtype: str, shape: Any, seed: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    if name == "logcumsumexp" and "int" in dtype:
        dtype = "float32"
    x = numbers(shape, dtype, seed, 0, -2, 2)
    if "float" in dtype and name in ("cummax", "cummin") and seed % 2:
        x = np.where(np.random.default_rng(seed).uniform(size=shape) < 0.2, np.asarray(np.nan, x.dtype), x)
    result = in_both_modes(lambda t: getattr(ops, name)(t, axis), tensor(x), what=name, compiled=seed % 3 == 0)
    values = tensors_of(result)[0]
    wide = (
        x
        if name in ("cummax", "cummin", "cumsum") and "int" in dtype
        else x.astype(np.int64 if "int" in dtype else np.float64)
    )
    want = RUNNING[name](wide, axis=axis)
    close(values, want.astype(as_array(values).dtype) if "int" in dtype else want, f"{name}({x!r}, {axis})", 30)
    if name in ("cummax", "cummin") and x.size:
        taken = np.take_along_axis(x, as_array(result[1]).astype(np.int64), axis)
        np.testing.assert_array_equal(taken, as_array(values))


@pytest.mark.parametrize(
    "name", ["sort", "argsort", "topk", "median", "nanmedian", "quantile", "unique", "flip", "searchsorted", "diff"]
)
@examples(14)
@given(
    data=st.data(),
    dtype=st.sampled_from(("float32", "float64", "int32", "uint8", "float16")),
    shape=st.sampled_from(SHAPES),
    down=st.booleans(),
    seed=SEEDS,
)
def test_order(name: str, data: Any, dtype: str, shape: Any, down: bool, seed: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, size = numbers(shape, dtype, seed, 0, -4, 4), shape[axis]
    t, what = tensor(x), f"{name} of {x!r} along {axis}"
    ordered = np.sort(x, axis)
    ordered = np.flip(ordered, axis) if down else ordered
    if name == "sort":
        values, places = in_both_modes(lambda t: ops.sort(t, axis, down), t, what=name, compiled=seed % 3 == 0)
        close(values, ordered, what, 0, dtype)
        np.testing.assert_array_equal(np.take_along_axis(x, as_array(places).astype(np.int64), axis), ordered)
    elif name == "argsort":
        places = in_both_modes(lambda t: ops.argsort(t, axis, down), t, what=name, compiled=seed % 3 == 0)
        np.testing.assert_array_equal(np.take_along_axis(x, as_array(places).astype(np.int64), axis), ordered)
    elif name == "topk":
        k = size // 2 + size % 2
        values, places = in_both_modes(lambda t: ops.topk(t, k, axis, down), t, what=name, compiled=seed % 3 == 0)
        best = np.take(np.flip(np.sort(x, axis), axis) if down else np.sort(x, axis), range(k), axis)
        close(values, best, what, 0, dtype)
        np.testing.assert_array_equal(np.take_along_axis(x, as_array(places).astype(np.int64), axis), best)
    elif name in ("median", "nanmedian"):
        function = getattr(ops, name)
        if not size:
            if x.size or 0 not in shape[: axis % len(shape)] + shape[axis % len(shape) + 1 :]:
                with pytest.raises(ValueError, match=name):
                    function(t, axis)
            return
        values, places = in_both_modes(lambda t: function(t, axis), t, what=name, compiled=seed % 3 == 0)
        want = np.take(np.sort(x, axis), (size - 1) // 2, axis)
        close(values, want, what, 0, dtype)
        if x.size:
            found = np.take_along_axis(x, np.expand_dims(as_array(places).astype(np.int64), axis), axis)
            np.testing.assert_array_equal(np.squeeze(found, axis), want)
    elif name == "quantile":
        if dtype not in ("float32", "float64") or not x.size:
            return
        result = in_both_modes(lambda t: ops.quantile(t, 0.3, axis), t, what=name, compiled=seed % 3 == 0)
        close(result, np.quantile(x.astype(np.float64), 0.3, axis), what, 9, dtype)
    elif name == "unique":
        values, places = ops.unique(t)
        np.testing.assert_array_equal(np.sort(as_array(values)), np.unique(x))
        np.testing.assert_array_equal(as_array(values)[as_array(places)], x)
    elif name == "flip":
        close(
            in_both_modes(lambda t: ops.flip(t, (axis,)), t, what=name, compiled=seed % 3 == 0),
            np.flip(x, axis),
            what,
            0,
            dtype,
        )
    elif name == "searchsorted":
        if dtype == "float16":
            return
        line = np.sort(x.ravel())
        close(
            ops.searchsorted(tensor(line), t, right=down),
            np.searchsorted(line, x, "right" if down else "left"),
            what,
            0,
        )
    elif size:
        if dtype == "uint8":
            return
        close(
            in_both_modes(lambda t: ops.diff(t, 1, axis), t, what=name, compiled=seed % 3 == 0),
            np.diff(x, 1, axis),
            what,
            1,
            dtype,
        )


@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "all", "prod", "std", "argmax", "cumsum", "sort", "flip", "var"]
)
@examples(4)
@given(seed=SEEDS, axis=st.sampled_from((0, -1)))
def test_no_dimensions(name: str, seed: int, axis: int) -> None:
    """A tensor of no dimensions counts as one of one element."""
    x = numbers((), "float32", seed, 0)
    t, function = tensor(x), getattr(ops, name)
    if name in ("cumsum", "sort", "flip"):
        return
    want = {"all": x != 0, "std": 0.0, "var": 0.0, "argmax": 0}.get(name, x)
    close(in_both_modes(lambda t: function(t, axis), t, what=name), want, name, 1)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "std", "any"])
@examples(5)
@given(shape=st.sampled_from(((3, 4), (2, 1, 3), (5,))), seed=SEEDS)
def test_spellings_agree(name: str, shape: Any, seed: int) -> None:
    x = numbers(shape, "float32", seed, 0)
    first = as_array(getattr(ops, name)(tensor(x), -1))
    np.testing.assert_array_equal(as_array(getattr(tensor(x), name)(-1)), first)
    if name != "std":
        np.testing.assert_array_equal(as_array(getattr(mint, name)(tensor(x), -1)), first)
    if hasattr(ms.numpy, name):
        np.testing.assert_array_equal(as_array(getattr(ms.numpy, name)(tensor(x), -1)), first)
