"""What stands at the top of the package, each against NumPy: compiled functions and their marks,
parameters, mutable numbers, sizes, settings and comparisons.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats

import mycel as ms
from mycel import Tensor, nn, ops

CHECKED = dict.fromkeys(
    (
        "Comparison JitConfig Parameter ParameterTuple Symbol compare_modes explain get_context jit jit_class "
        "lazy_inline mutable no_inline recompute "
        "seed set_context set_recursion_limit"
    ).split(),
    "NumPy",
)
SHAPES = ((3, 4), (1, 5), (0, 2), (7, 1))

rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    kept = {name: ms.get_context(name) for name in ("mode", "max_call_depth", "check_nan")}
    yield
    ms.set_context(**kept)


def formula(x: Any, y: Any, sin: Any = ops.sin, total: Any = ops.sum) -> Any:
    """Something with a branch, a loop and a reduction."""
    result = x * 2 if y > 0 else x - 1
    for _ in range(3):
        result = sin(result) + x
    return result, total(result)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_functions(shape: tuple[int, ...], dtype: Any) -> None:
    x = rng.normal(size=shape).astype(dtype)
    compiled = ms.jit(formula)
    marked = ms.jit(ms.no_inline(lambda x, y: formula(x, y)))
    strict = ms.jit(formula, jit_level="O0", fullgraph=True)
    for y in (1.0, -1.0):
        wanted = formula(x.astype(np.float64), y, np.sin, np.sum)
        for function in (formula, compiled, marked, strict):
            for found, value in zip(function(Tensor(x), Tensor(y)), wanted):
                assert found.asnumpy().dtype == dtype
                np.testing.assert_allclose(found.asnumpy(), value, rtol=1e-5, atol=1e-5)


class Block(nn.Cell):
    @ms.lazy_inline
    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(weight))

    def construct(self, x: Any) -> Any:
        return ops.tanh(x @ self.weight)


@ms.jit_class
class Scale:
    def __init__(self, by: Any) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        return x * self.by


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_marked_cells_and_classes(mode: int, rows: int) -> None:
    ms.set_context(mode=mode)
    weights = [rng.normal(size=(4, 4)) for _ in range(3)]
    cells = nn.SequentialCell([Block(w) for w in weights])
    cells.set_jit_config(ms.JitConfig(jit_syntax_level="LAX", jit_level="O1"))
    x = rng.normal(size=(rows, 4))
    wanted = 3 * functools.reduce(lambda value, w: np.tanh(value @ w), weights, x)
    np.testing.assert_allclose(ms.jit(lambda x: Scale(3)(cells(x)))(Tensor(x)).asnumpy(), wanted, rtol=1e-10)
    np.testing.assert_allclose(Scale(3)(cells(Tensor(x))).asnumpy(), wanted, rtol=1e-10)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_recomputed_gradients(mode: int, rows: int) -> None:
    ms.set_context(mode=mode)
    weight, x = rng.normal(size=(4, 4)), rng.normal(size=(rows, 4))
    cell = Block(weight)
    gradient = ms.grad(lambda x: ops.sum(ms.recompute(cell, x) ** 2))
    y = np.tanh(x @ weight)
    np.testing.assert_allclose(gradient(Tensor(x)).asnumpy(), 2 * y * (1 - y**2) @ weight.T, rtol=1e-9)


@pytest.mark.parametrize("value", [3, 2.5, True, (1, 2.5), [4, 5], {"a": 2, "b": (1, 3)}])
def test_mutable_numbers(value: Any) -> None:
    def leaves(data: Any) -> list[Any]:
        if isinstance(data, dict):
            data = list(data.values())
        return [leaf for item in data for leaf in leaves(item)] if isinstance(data, (tuple, list)) else [data]

    def weighted(x: Any, data: Any) -> Any:
        result = x
        for place, number in enumerate(leaves(data)):
            result = result + (place + 1) * number
        return result

    x = rng.normal(size=(3,)).astype(np.float32)
    marked = ms.mutable(value)
    assert marked == value
    assert isinstance(marked, (type(value), int))
    np.testing.assert_allclose(ms.jit(weighted)(Tensor(x), marked).asnumpy(), weighted(x, value), rtol=1e-6)


def test_parameters_and_tuples_of_them() -> None:
    values = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    parameters = ms.ParameterTuple(ms.Parameter(Tensor(v), name=f"p{i}") for i, v in enumerate(values))
    for parameter, value in zip(parameters, values):
        np.testing.assert_array_equal(parameter.asnumpy(), value)
        np.testing.assert_array_equal((parameter * 2 + 1).asnumpy(), value * 2 + 1)
        parameter.set_data(Tensor(-value))
        np.testing.assert_array_equal(parameter.asnumpy(), -value)
    gradients = ms.grad(lambda: sum(ops.sum(p * p) for p in parameters), None, parameters)()
    for gradient, value in zip(gradients, values):
        np.testing.assert_allclose(gradient.asnumpy(), -2 * value, rtol=1e-6)
    copies = parameters.clone("copy")
    assert [p.name for p in copies] == [f"copy.p{i}" for i in range(len(SHAPES))]
    ones = ms.ParameterTuple(p for p in parameters if p.size).clone("one", "ones")
    for one, value in zip(ones, [v for v in values if v.size]):
        np.testing.assert_array_equal(one.asnumpy(), np.ones_like(value))


def test_one_graph_for_all_sizes_of_a_symbol() -> None:
    @ms.jit(input_signature=(Tensor(shape=[ms.Symbol(min=2, max=64, divisor=2), 3], dtype=ms.float32),))
    def spread(x: Any) -> Any:
        return ops.sum(x - ops.mean(x, 0), 1)

    for rows in (2, 4, 10, 64):
        x = rng.normal(size=(rows, 3)).astype(np.float32)
        np.testing.assert_allclose(spread(Tensor(x)).asnumpy(), (x - x.mean(0)).sum(1), rtol=1e-4, atol=1e-5)


def test_settings_are_what_was_set() -> None:
    x = np.float32([-1.0, 4.0])
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        assert ms.get_context("mode") == mode
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(ops.sqrt(Tensor(x)).asnumpy(), np.sqrt(x))
        ms.set_context(check_nan=True)
        with pytest.raises(FloatingPointError, match="sqrt"):
            ops.sqrt(Tensor(x))
        ms.set_context(check_nan=False)
    ms.set_recursion_limit(77)
    assert ms.get_context("max_call_depth") == 77


def test_a_seed_from_the_system() -> None:
    before = ms.get_rng_state()
    drawn = []
    for _ in range(2):
        fresh = ms.seed()
        assert fresh == ms.initial_seed()
        first = ops.rand(2000).asnumpy()
        ms.manual_seed(fresh)
        np.testing.assert_array_equal(ops.rand(2000).asnumpy(), first)
        drawn.append(first)
        assert scipy.stats.kstest(first, "uniform").pvalue > 1e-6
    assert not np.array_equal(*drawn)
    ms.set_rng_state(before)


def test_modes_compared_and_explained() -> None:
    weight = Tensor(rng.normal(size=(4, 4)).astype(np.float32))
    function = lambda x: ops.softmax(x @ weight, -1)
    x = Tensor(rng.normal(size=(3, 4)).astype(np.float32))
    found = ms.compare_modes(function, x)
    assert isinstance(found, ms.Comparison)
    assert found
    eager, compiled = function(x).asnumpy().astype(np.float64), ms.jit(function)(x).asnumpy()
    assert np.abs(eager - compiled).max() <= 1e-5 + 1e-4 * np.abs(eager).max()
    assert found.difference <= 1e-4
    text = str(ms.explain(function, x))
    for word in ("matmul", "float32"):
        assert word in text.lower()
