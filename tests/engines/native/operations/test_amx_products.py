"""Products of float32 by units that multiply tiles of bfloat16, against float64 and the library."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import matrix_product
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.operations.matmul import amx_product_steps, amx_support

pytestmark = pytest.mark.skipif(not amx_support.available(), reason="the processor has no units for tiles")

SIZES = (1, 2, 5, 16, 17, 31, 32, 33, 64, 100, 129, 300)
BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (2, 1, 3), (2, 3, 2, 3))


def begin_anew() -> None:
    """Forget what was compiled."""
    for used in (False, True):
        ms.set_context(matrix_units=used)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the units for products of any size."""
    monkeypatch.setattr(amx_product_steps, "LEAST", -1.0)
    monkeypatch.setattr(amx_product_steps, "GAIN", float("inf"))
    begin_anew()
    yield
    begin_anew()


def multiply(a: Any, b: Any, turned: bool = False, other: bool = False) -> Any:
    return (a.swapaxes(-1, -2) if turned else a) @ (b.swapaxes(-1, -2) if other else b)


def product(a: np.ndarray, b: np.ndarray, turned: bool = False, other: bool = False) -> np.ndarray:
    found = ms.jit(multiply)(Tensor(a), Tensor(b), turned, other).asnumpy()
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    return found


def assert_close(found: np.ndarray, a: np.ndarray, b: np.ndarray, turned: bool = False, other: bool = False) -> None:
    """Compare with float64, by a bound for sums in float32."""
    wide = a.astype(np.float64), b.astype(np.float64)
    bound = multiply(*map(np.abs, wide), turned, other)
    error = np.abs(found - multiply(*wide, turned, other))
    assert found.shape == error.shape
    assert (error <= 2.0**-21 * bound + 1e-37).all(), float(np.max(error / (bound + 1e-37)))


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, bool, bool]:
    """Two factors, and whether each is given transposed."""
    m, k, n = (int(rng.choice(SIZES)) for _ in range(3))
    if rng.random() < 0.2:
        k = int(rng.choice((513, 1100)))
    batch = BATCHES[rng.integers(len(BATCHES))]
    first, second = (
        tuple(1 if rng.random() < 0.2 else d for d in batch) if rng.random() < 0.8 else () for _ in range(2)
    )
    turned, other = (bool(rng.random() < 0.5) for _ in range(2))
    a = rng.standard_normal((*first, *((k, m) if turned else (m, k)))).astype(np.float32)
    b = rng.standard_normal((*second, *((n, k) if other else (k, n)))).astype(np.float32)
    return a, b, turned, other


@pytest.mark.parametrize("seed", range(4))
def test_products_of_drawn_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        case = drawn(rng)
        assert_close(product(*case), *case)


def graph_of(dtype: Any = ms.float32, rows: int = 256, width: int = 256) -> Graph:
    nodes = [input_node(tensor_type(shape, dtype)) for shape in ((rows, 512), (512, width))]
    return Graph(nodes, [matrix_product.matmul(*nodes)])


def steps_of(graph: Graph) -> list[str]:
    return [step.data.schedule for step in lower(graph).steps if isinstance(step.data, Kernel)]


def test_the_units_are_used_for_float32_only_and_where_allowed() -> None:
    assert steps_of(graph_of()) == ["pieces of the right factor", "tiles of three pieces"]
    assert "tiles of three pieces" not in steps_of(graph_of(ms.float64))
    ms.set_context(matrix_units=False)
    assert steps_of(graph_of()) == []


def test_no_better_than_the_library_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert steps_of(graph_of(rows=8, width=4096)) == []
    assert steps_of(graph_of(rows=1024, width=1024)) != []


def by_library(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    ms.set_context(matrix_units=False)
    found = product(a, b)
    ms.set_context(matrix_units=True)
    return found


SPECIAL = (np.inf, -np.inf, np.nan, 3.4028235e38, -3.4e38, 1e-40, 0.0, -0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_finite_or_too_large_is_as_in_float32(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((70, 90)).astype(np.float32)
    b = rng.standard_normal((90, 65)).astype(np.float32)
    for factor in (a, b)[: 1 + seed % 2]:
        for _ in range(4):
            factor[rng.integers(factor.shape[0]), rng.integers(factor.shape[1])] = SPECIAL[rng.integers(len(SPECIAL))]
    found, wanted = product(a, b), by_library(a, b)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])
    finite = np.isfinite(wanted)
    wide = [np.nan_to_num(np.abs(f.astype(np.float64)), nan=0, posinf=0) for f in (a, b)]
    error = np.abs(np.where(finite, found, 0).astype(np.float64) - np.where(finite, wanted, 0))
    assert (error <= 2.0**-20 * (wide[0] @ wide[1])).all()


@pytest.mark.parametrize("bits", (0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F810000))
def test_every_kind_of_nan_stays_one(bits: int) -> None:
    a = np.ones((40, 40), np.float32)
    a.view(np.uint32)[7, 3] = bits
    found = product(a, np.ones((40, 33), np.float32))
    assert np.isnan(found[7]).all()
    np.testing.assert_array_equal(np.delete(found, 7, 0), 40)


def test_infinities_that_meet_along_a_long_axis() -> None:
    a = np.ones((33, 1500), np.float32)
    a[0, 3], a[0, 1400], a[1, 2], a[2, 1499] = np.inf, -np.inf, np.inf, -np.inf
    found = product(a, np.ones((1500, 64), np.float32))
    assert np.isnan(found[0]).all() and (found[1] == np.inf).all() and (found[2] == -np.inf).all()
    np.testing.assert_array_equal(found[3:], 1500)


@pytest.mark.parametrize("scales", ((1e-30, 1.0), (1e-36, 1.0), (1e-20, 1e-18), (1e-44, 1e37), (1e-38, 1e-3)))
def test_small_numbers_keep_their_digits(scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    a = (rng.standard_normal((50, 64)) * scales[0]).astype(np.float32)
    b = (rng.standard_normal((64, 40)) * scales[1]).astype(np.float32)
    wide = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    # Half a step of subnormal numbers for each product and sum.
    assert (np.abs(product(a, b) - wide) <= 2.0**-21 * bound + 64 * 2.0**-149).all()


def test_integers_are_exact() -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(-2000, 2000, (64, 40)).astype(np.float32)
    b = np.eye(40, 40, dtype=np.float32)[:, rng.permutation(40)]
    np.testing.assert_array_equal(product(a, b), a @ b)
    a = (1 + rng.integers(0, 1 << 23, (64, 40)) * 2.0**-23).astype(np.float32)
    np.testing.assert_array_equal(product(a, b), a @ b)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal((700, 600)).astype(np.float32)
    b = rng.standard_normal((600, 500)).astype(np.float32)
    found = []
    for threads in (1, 2, 3):
        ms.set_context(runtime_num_threads=threads)
        try:
            found.append(product(a, b))
        finally:
            ms.set_context(runtime_num_threads=0)
    assert_close(found[0], a, b)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_many_callers_at_once() -> None:
    rng = np.random.default_rng(7)
    a = rng.standard_normal((300, 200)).astype(np.float32)
    b = rng.standard_normal((200, 300)).astype(np.float32)
    compiled, x, y = ms.jit(multiply), Tensor(a), Tensor(b)
    wanted = compiled(x, y).asnumpy()
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: compiled(x, y).asnumpy(), range(60)):
            np.testing.assert_array_equal(found, wanted)


def test_a_product_of_any_length() -> None:
    rng = np.random.default_rng(8)
    compiled = ms.jit(lambda a, b: ops.relu(a) @ b, dynamic=1)
    b = rng.standard_normal((70, 90)).astype(np.float32)
    for rows in (3, 40, 65, 200):
        a = rng.standard_normal((rows, 70)).astype(np.float32)
        assert_close(compiled(Tensor(a), Tensor(b)).asnumpy(), np.maximum(a, 0), b)


def test_gradients_and_a_factor_read_by_several_products() -> None:
    rng = np.random.default_rng(9)
    x = rng.standard_normal((2, 60, 50)).astype(np.float32)
    weights = [rng.standard_normal((50, 40)).astype(np.float32) for _ in range(3)]

    def loss(x: Tensor, p: Tensor, q: Tensor, r: Tensor) -> Tensor:
        return ((x @ p) * (x @ q) + x @ r).sum()

    gradient = ms.jit(ms.grad(loss, (0, 1, 2, 3)))
    dx, dp, dq, dr = (t.asnumpy() for t in gradient(Tensor(x), *map(Tensor, weights)))
    wide, (p, q, r) = x.astype(np.float64), (w.astype(np.float64) for w in weights)
    left, right = wide @ q, wide @ p
    np.testing.assert_allclose(dx, left @ p.T + right @ q.T + r.sum(1), rtol=0, atol=3e-3)
    np.testing.assert_allclose(dp, np.einsum("bik,bij->kj", wide, left), rtol=0, atol=3e-3)
    np.testing.assert_allclose(dq, np.einsum("bik,bij->kj", wide, right), rtol=0, atol=3e-3)
    np.testing.assert_allclose(dr, np.broadcast_to(wide.sum((0, 1))[:, None], dr.shape), rtol=0, atol=3e-4)


@pytest.mark.parametrize(
    "case", ((2, 40, 50, 7, 9, 1), (3, 64, 32, 6, 14, 1), (2, 33, 65, 8, 8, 2), (20, 16, 24, 6, 6, 1))
)
@pytest.mark.parametrize("inner", (False, True))
def test_pointwise_convolutions_and_their_gradients(case: tuple[int, ...], inner: bool) -> None:
    images, channels, outputs, height, width, stride = case
    rng = np.random.default_rng(10)
    x = rng.standard_normal((images, channels, height, width)).astype(np.float32)
    w = rng.standard_normal((outputs, channels, 1, 1)).astype(np.float32)
    met = x[:, :, ::stride, ::stride].astype(np.float64)
    wanted = np.einsum("nchw,oc->nohw", met, w[:, :, 0, 0])

    def convolve(x: Tensor, w: Tensor) -> Tensor:
        # An image that another convolution wrote has its channels last in memory.
        if inner:
            x = ops.conv2d(x, Tensor(np.eye(channels, dtype=np.float32)[:, :, None, None]))
        return ops.conv2d(x, w, stride=stride)

    found = ms.jit(convolve)(Tensor(x), Tensor(w)).asnumpy()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)
    dx, dw = (
        t.asnumpy() for t in ms.jit(ms.grad(lambda x, w: (convolve(x, w) ** 2).sum(), (0, 1)))(Tensor(x), Tensor(w))
    )
    spread = np.zeros(x.shape)
    spread[:, :, ::stride, ::stride] = np.einsum("nohw,oc->nchw", 2 * wanted, w[:, :, 0, 0])
    np.testing.assert_allclose(dx, spread, rtol=0, atol=1e-3)
    np.testing.assert_allclose(dw[:, :, 0, 0], np.einsum("nohw,nchw->oc", 2 * wanted, met), rtol=0, atol=3e-3)
