"""The schedules of kernels against the reference: strides along the lanes, tiles, scans and windows
at odd sizes, for every element type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.convolution import window as window_prims
from mycel._src.engines import buffers
from mycel._src.engines.native.kernels.loop_nest import Nest
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D

TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool"]


def draw(shape: tuple[int, ...], dtype: D.DType, seed: int = 0) -> Any:
    """Distinct small numbers where the type has enough of them."""
    rng = np.random.default_rng([seed, *shape])
    if dtype is D.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.integers(0 if dtype.kind == "u" else -50, 100, shape).astype(dtype.numpy)


def check(make: Callable[..., Any], *arrays: Any, rtol: float = 1e-6) -> list[Nest]:
    """The nests of a function of nodes, after comparing what it gives for the arrays with the
    reference.
    """
    inputs = [input_node(tensor_type(a.shape, D.from_any(a.dtype))) for a in arrays]
    made = make(*inputs)
    graph = Graph(inputs, list(made) if isinstance(made, tuple) else [made])
    program = compile_native(graph)
    got = program.entry(*[buffers.from_array(a) for a in arrays])
    for value, want, kind in zip(
        got if isinstance(got, tuple) else (got,), evaluate(graph, arrays), graph.output_types
    ):
        found = buffers.to_array(value, kind)
        assert found.dtype == want.dtype and found.shape == want.shape
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(found, want)
        else:
            np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=rtol)
    return [s.data for s in lower(graph).steps if s.kind == "kernel"]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(33, 17), (16, 16), (5, 70), (40, 4), (1, 9), (0, 6)])
def test_a_transposed_matrix_goes_through_tiles(name: str, shape: tuple[int, int]) -> None:
    x = draw(shape, D.from_any(name))
    nests = check(lambda a: S.transpose(a, (1, 0)), x)
    if min(shape) > 4:
        assert [n.tile for n in nests] == [0]


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2), (2, 0, 1, 3)])
def test_axes_in_any_order(order: tuple[int, ...]) -> None:
    x = draw((3, 19, 5, 21), D.float32)
    check(lambda a: S.transpose(a, order), x)
    check(lambda a: E.neg(S.transpose(E.add(a, a), order)), x)


def test_work_on_operands_that_lie_differently_is_done_in_tiles() -> None:
    x, y, z = draw((37, 50), D.float32), draw((50, 37), D.float32, 1), draw((50,), D.float32, 2)

    def make(a: Node, b: Node, c: Node) -> Node:
        return E.add(E.mul(S.transpose(a, (1, 0)), b), E.sub(S.reshape(c, (50, 1)), S.transpose(a, (1, 0))))

    nests = check(make, x, y, z)
    assert len(nests) == 1 and nests[0].tile is not None
    # One operand is already where the lanes are, the other's tiles are turned.
    assert len(nests[0].turned) == 1


def test_two_results_of_one_tiled_pass() -> None:
    x, y = draw((20, 35), D.bfloat16), draw((35, 20), D.float32)
    check(lambda a, b: (E.add(E.cast(S.transpose(a, (1, 0)), dtype=D.float32), b), E.neg(b)), x, y, rtol=1e-2)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_every_few_elements(name: str, step: int) -> None:
    x = draw((3, 131), D.from_any(name))
    check(lambda a: S.slice_(a, (0, 1), (3, 131), (1, step)), x)
    check(lambda a: S.reverse(a, axes=(1,)), x)
    check(lambda a: S.slice_(S.reverse(a, axes=(1,)), (0, 2), (3, 131), (1, step)), x)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int16"])
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 100])
def test_gaps_between_what_is_written(name: str, size: int) -> None:
    x = draw((2, size), D.from_any(name))
    for gap in (1, 2, 3):
        check(lambda a, g=gap: S.pad(a, 7, (0, 1), (0, 2), (0, g)), x)


CASES = [
    ((3, 3), (2, 2), ((0, 0), (0, 0))),
    ((3, 3), (2, 2), ((1, 1), (1, 1))),
    ((2, 2), (2, 2), ((0, 0), (0, 0))),
    ((2, 3), (3, 4), ((1, 0), (2, 1))),
    ((3, 2), (1, 1), ((1, 2), (0, 1))),
    ((4, 5), (3, 2), ((2, 1), (0, 3))),
]


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "int32", "uint8"])
@pytest.mark.parametrize(("window", "strides", "padding"), CASES)
def test_windows_by_rows_and_by_channels(name: str, window: Any, strides: Any, padding: Any) -> None:
    p = {"window": window, "strides": strides, "padding": padding}
    dtype = D.from_any(name)
    for last in (False, True):
        x = draw((2, 3, 37, 41), dtype)
        x = x if not last else np.ascontiguousarray(x.transpose(0, 2, 3, 1))

        def turned(a: Node, last: bool = last) -> Node:
            return S.transpose(a, (0, 3, 1, 2)) if last else a

        check(lambda a: (window_prims.window_max(turned(a), **p), window_prims.window_argmax(turned(a), **p)), x)
        check(lambda a: window_prims.window_sum(turned(a), **p), x, rtol=1e-2 if dtype.itemsize == 2 else 1e-5)
        out = window_prims.window_max.infer(tensor_type((2, 3, 37, 41), dtype), **p).shape
        ct, index = draw(out, dtype, 1), draw(out, D.int32, 2) % (window[0] * window[1])
        check(
            lambda c, i: window_prims.window_scatter(c, i, input_shape=(2, 3, 37, 41), **p),
            ct,
            index.astype(np.int32),
            rtol=1e-2 if dtype.itemsize == 2 else 1e-5,
        )


def test_the_largest_of_windows_of_nan_and_the_least_numbers() -> None:
    x = draw((1, 2, 19, 23), D.float32)
    x[0, 0, ::5, ::7] = np.nan
    x[0, 1] = -np.inf
    p = {"window": (3, 3), "strides": (2, 2), "padding": ((1, 1), (1, 1))}
    check(lambda a: (window_prims.window_max(a, **p), window_prims.window_argmax(a, **p)), x)


def test_reductions_of_what_lies_otherwise() -> None:
    x, y = draw((17, 9, 35), D.float32), draw((35, 9, 17), D.float32, 1)

    def make(a: Node, b: Node) -> Any:
        whole = E.mul(a, S.transpose(b, (2, 1, 0)))
        return tuple(R.reduce_sum(whole, axes=axes, keepdims=False) for axes in ((2,), (0,), (0, 1), (1, 2)))

    nests = check(make, x, y, rtol=1e-5)
    assert sum(n.tile is not None and len(n.loops) == 3 for n in nests) == 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "int8", "int32", "int64", "uint16"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 130), 1), ((17,), 0), ((37, 50), 0), ((2, 33, 5), 1), ((40, 3), 1), ((5, 1), 1), ((0, 4), 0)],
)
def test_running_reductions_along_and_across_the_lanes(
    name: str, shape: tuple[int, ...], axis: int, reverse: bool
) -> None:
    dtype = D.from_any(name)
    x = draw(shape, dtype) if dtype.kind in "iu" else (draw(shape, D.float64) / 100).astype(dtype.numpy)
    p = {"axis": axis, "reverse": reverse}
    rtol = 2e-2 if dtype.itemsize == 2 else 1e-4
    nests = check(
        lambda a: (sort_and_scan.cumsum(a, **p), sort_and_scan.cummax(a, **p), sort_and_scan.cummin(a, **p)),
        x,
        rtol=rtol,
    )
    assert len(nests) == (3 if x.size else 0)
    check(lambda a: sort_and_scan.cumprod(E.add(a, 0.5) if dtype.kind == "f" else a, **p), x, rtol=rtol)
    turned = {"axis": len(shape) - 1 - axis, "reverse": reverse}
    check(lambda a: sort_and_scan.cumsum(S.transpose(a, tuple(range(len(shape)))[::-1]), **turned), x, rtol=rtol)


def test_running_extremes_pass_nan_on_and_running_sums_keep_the_sign_of_zero() -> None:
    x = draw((2, 40), D.float32)
    x[0, 21] = np.nan
    x[1] = -0.0
    for axis in (0, 1):
        check(
            lambda a, k=axis: (
                sort_and_scan.cummax(a, axis=k, reverse=False),
                sort_and_scan.cummin(a, axis=k, reverse=True),
            ),
            x,
        )
    inputs = [input_node(tensor_type(x.shape, D.float32))]
    program = compile_native(Graph(inputs, [sort_and_scan.cumsum(inputs[0], axis=1, reverse=False)]))
    found = buffers.to_array(program.entry(buffers.from_array(x)), tensor_type(x.shape, D.float32))
    assert np.signbit(found[1]).all()
