"""Products of float64 by register tiles against NumPy, for drawn sizes, batches and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import matrix_product
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.operations.matmul.register_tile import tile_for

SIZES = (2, 3, 5, 8, 13, 16, 17, 31, 33, 64, 100, 129, 600)
BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (2, 1, 3), (2, 3, 2, 3))


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, bool, bool]:
    """Two factors, and whether each is given transposed."""
    m, k, n = (int(rng.choice(SIZES)) for _ in range(3))
    batch = BATCHES[rng.integers(len(BATCHES))]
    first, second = (
        tuple(1 if rng.random() < 0.2 else d for d in batch) if rng.random() < 0.8 else () for _ in range(2)
    )
    turned, other = (bool(rng.random() < 0.4) for _ in range(2))
    a = rng.standard_normal((*first, *((k, m) if turned else (m, k))))
    b = rng.standard_normal((*second, *((n, k) if other else (k, n))))
    return a, b, turned, other


def multiply(a: Any, b: Any, turned: bool, other: bool) -> Any:
    return (a.swapaxes(-1, -2) if turned else a) @ (b.swapaxes(-1, -2) if other else b)


@pytest.mark.parametrize("seed", range(8))
def test_products_of_drawn_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        a, b, turned, other = drawn(rng)
        found = ms.jit(multiply)(Tensor(a), Tensor(b), turned, other).asnumpy()
        wanted = multiply(a, b, turned, other)
        assert found.shape == wanted.shape and found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_gradients_of_a_product() -> None:
    rng = np.random.default_rng(1)
    a, b, c = rng.standard_normal((3, 40, 21)), rng.standard_normal((21, 50)), rng.standard_normal((3, 40, 50))
    gradient = ms.jit(ms.grad(lambda a, b, c: (a @ b * c).sum(), (0, 1)))
    da, db = (t.asnumpy() for t in gradient(Tensor(a), Tensor(b), Tensor(c)))
    np.testing.assert_allclose(da, c @ b.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(db, np.einsum("bik,bij->kj", a, c), rtol=0, atol=1e-11)


def test_a_product_of_any_length() -> None:
    product = ms.jit(lambda a, b: a @ b)
    rng = np.random.default_rng(2)
    b = rng.standard_normal((30, 70))
    for rows in (2, 7, 64, 131):
        a = rng.standard_normal((rows, 30))
        np.testing.assert_allclose(product(Tensor(a), Tensor(b)).asnumpy(), a @ b, rtol=0, atol=1e-12)


def test_infinities_and_nans_stay_where_they_are() -> None:
    a, b = np.ones((9, 40)), np.ones((40, 21))
    a[8, 39], b[3, 20] = np.inf, np.nan
    found = (Tensor(a) @ Tensor(b)).asnumpy()
    wanted = np.full((9, 21), 40.0)
    wanted[8], wanted[:, 20] = np.inf, np.nan
    np.testing.assert_array_equal(found, wanted)


def test_the_kernel_says_how_it_runs() -> None:
    nodes = [input_node(tensor_type(shape, ms.float64)) for shape in ((64, 32), (32, 48))]
    steps = lower(Graph(nodes, [matrix_product.matmul(*nodes)])).steps
    assert [s.data.schedule for s in steps if isinstance(s.data, Kernel)] == [
        f"tiles of {tile_for(64, 48, 'double').height} x {tile_for(64, 48, 'double').width}, gathered"
    ]
