"""Native sorting, selecting and searching against NumPy's stable sort and binary search, for every
element type and way through the kernels.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.prims.sort_and_scan import search_sorted, sort, top_k
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference import apply
from tests.prims.cases import nodes_for

TYPES = [
    np.float32,
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.bool_,
]


def native(primitive: Any, arrays: list[Any], **params: Any) -> list[Any]:
    """The primitive's outputs from a program without host steps."""
    inputs = nodes_for(arrays)
    made = primitive(*inputs, **params)
    graph = Graph(inputs, list(made) if isinstance(made, tuple) else [made], "ordering")
    program = compile_native(graph)
    assert program.lowered.fallbacks == []
    results = program.entry(*[buffers.from_array(a) for a in arrays])
    results = results if isinstance(results, tuple) else (results,)
    return [buffers.to_array(v, t) for v, t in zip(results, graph.output_types)]


def draw(dtype: Any, shape: tuple[int, ...], seed: int, few: bool = False) -> Any:
    """Numbers over the whole range of a type; with `few`, many that are equal, and NaN, infinities
    and zeros of both signs.
    """
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return random.random(shape) < 0.5
    if kind.kind in "iu":
        info = np.iinfo(kind)
        low, high = (max(info.min, -3), 3) if few else (info.min, info.max)
        return random.integers(low, high, shape, dtype=kind, endpoint=True)
    if few:
        return random.choice([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf, 1e-7], shape).astype(dtype)
    return (random.standard_normal(shape) * 10.0 ** random.integers(-3, 3, shape)).astype(dtype)


def same_bits(a: Any, b: Any) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    bits = f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(np.ascontiguousarray(a).view(bits), np.ascontiguousarray(b).view(bits))


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_rows_of_every_length_are_sorted_as_the_reference_sorts_them(dtype: Any, few: bool) -> None:
    for n in (1, 2, 7, 8, 17, 24, 25, 63, 64, 65, 300, 5000):
        x = draw(dtype, (3, n), n, few)
        for descending in (False, True):
            wanted = apply(sort, [x], {"axis": 1, "descending": descending})
            got = native(sort, [x], axis=1, descending=descending)
            same_bits(got[1], wanted[1])
            same_bits(got[0], wanted[0])


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_the_first_of_rows_are_those_of_the_sorted_rows(dtype: Any, few: bool) -> None:
    for n, k in ((1, 1), (64, 1), (65, 1), (200, 16), (1000, 3), (1000, 600), (3000, 16), (5003, 1201)):
        x = draw(dtype, (2, n), n + k, few)
        for largest in (False, True):
            wanted = apply(sort, [x], {"axis": 1, "descending": largest})
            got = native(top_k, [x], k=k, axis=1, largest=largest)
            same_bits(got[1], wanted[1][:, :k])
            same_bits(got[0], wanted[0][:, :k])


@pytest.mark.parametrize("falling", [False, True])
def test_rows_in_order_make_the_threshold_move_at_each_element(falling: bool) -> None:
    x = np.arange(4000, dtype=np.float32)[:: -1 if falling else 1].reshape(1, -1).copy()
    for largest in (False, True):
        got = native(top_k, [x], k=40, axis=1, largest=largest)
        wanted = np.arange(3999, 3959, -1) if largest else np.arange(40)
        np.testing.assert_array_equal(got[0][0], wanted.astype(np.float32))
        np.testing.assert_array_equal(got[1][0], 3999 - wanted if falling else wanted)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 70, 3), (2, 1, 4), (0, 3, 2), (9000, 2, 2)])
def test_any_axis_is_ordered(shape: tuple[int, ...], axis: int) -> None:
    x = draw(np.float32, shape, axis)
    wanted = apply(sort, [x], {"axis": axis, "descending": True})
    for a, b in zip(native(sort, [x], axis=axis, descending=True), wanted):
        same_bits(a, b)
    k = shape[axis] // 2
    first = tuple(slice(0, k) if a == axis else slice(None) for a in range(3))
    for a, b in zip(native(top_k, [x], k=k, axis=axis, largest=True), wanted):
        same_bits(a, np.ascontiguousarray(b[first]))


def test_many_long_rows_use_memory_of_their_own() -> None:
    x = draw(np.float32, (67, 6000), 3)
    got = native(sort, [x], axis=1, descending=False)
    np.testing.assert_array_equal(got[0], np.sort(x, 1, kind="stable"))
    np.testing.assert_array_equal(got[1], np.argsort(x, 1, kind="stable"))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [t for t in TYPES if t is not np.bool_], ids=lambda t: np.dtype(t).name)
def test_searches_find_what_numpy_finds(dtype: Any, side: str) -> None:
    for n, m in ((1, 3), (2, 5), (37, 8), (1000, 50), (0, 4), (5, 0)):
        rows = apply(sort, [draw(dtype, (3, n), n, few=n % 2 == 0)], {"axis": 1, "descending": False})[0]
        values = draw(dtype, (3, m), m, few=True)
        values[:, : min(n, m) // 2] = rows[:, : min(n, m) // 2]
        wanted = apply(search_sorted, [rows, values], {"side": side})
        same_bits(native(search_sorted, [rows, values], side=side)[0], wanted)


def test_sorts_inside_loops_and_branches_run_natively() -> None:
    @ms.jit
    def f(x: Any, n: Any) -> Any:
        total = x * 0
        while n > 0:
            values, _ = ms.ops.topk(x + n, 5)
            if values[0] > 2:
                total = total + ms.ops.sort(x * n)[0] * values.sum()
            n = n - 1
        return total

    x = draw(np.float32, (100,), 0)
    got = f(ms.Tensor(x), ms.Tensor(3)).asnumpy()
    want = np.zeros_like(x)
    for n in (3, 2, 1):
        best = np.sort(x + np.float32(n))[::-1][:5]
        if best[0] > 2:
            want += np.sort(x * np.float32(n)) * best.sum()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert ms.explain(f).host_steps == []


def test_sizes_may_vary_between_calls() -> None:
    @ms.jit
    def f(x: Any) -> Any:
        values, order = ms.ops.topk(x, x.shape[-1] // 2)
        return values, order, ms.ops.sort(x, 0)[0]

    for n in (10, 300, 37, 2, 5000):
        x = draw(np.float32, (3, n), n)
        values, order, columns = [t.asnumpy() for t in f(ms.Tensor(x))]
        wanted = apply(sort, [x], {"axis": 1, "descending": True})
        same_bits(values, np.ascontiguousarray(wanted[0][:, : n // 2]))
        same_bits(order, np.ascontiguousarray(wanted[1][:, : n // 2]))
        same_bits(columns, np.sort(x, 0))


def test_the_gradient_of_the_first_goes_where_they_came_from() -> None:
    x = ms.Tensor(np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], np.float32))
    weight = ms.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    grad = ms.grad(lambda t: (ms.ops.topk(t, 2)[0] * weight).sum())(x)
    np.testing.assert_array_equal(grad.asnumpy(), [[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]])


def test_k_outside_the_axis_is_an_error() -> None:
    with pytest.raises(ValueError, match="topk: k must lie between 0 and 3"):
        ms.ops.topk(ms.Tensor([1.0, 2.0, 3.0]), 4)
