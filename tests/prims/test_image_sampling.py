"""Images read between their elements: kernels against the definition, and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.neural.image_sampling import sample, sample_add, sample_slopes
from tests.engines.native.test_contract import run_native
from tests.prims.cases import apply_node, nodes_for


def both(primitive: Primitive, arrays: list[Any], params: dict[str, Any]) -> None:
    """Compare a kernel's results with the definition's."""
    inputs = nodes_for(arrays)
    found = run_native(Graph(inputs, apply_node(primitive, inputs, params), primitive.name), arrays)
    assert primitive.reference is not None
    made = primitive.reference(*arrays, **params)
    tolerance = 1e-4 if arrays[0].dtype == np.float32 else 1e-12
    for got, want in zip(found, made if isinstance(made, tuple) else (made,)):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("linear", [True, False])
def test_definition(dtype: Any, linear: bool) -> None:
    """Sizes drawn at random: blocks of positions that are full and not, and groups of channels."""
    random = np.random.default_rng(int(linear))
    for rank, points in ((1, 5), (2, 1), (2, 300), (3, 37), (2, 700)):
        batch, channels = int(random.integers(1, 4)), int(random.integers(1, 10))
        sizes = tuple(int(d) for d in random.integers(1, 9, rank))
        image = random.standard_normal((batch, channels, *sizes)).astype(dtype)
        ct = random.standard_normal((batch, channels, points)).astype(dtype)
        places = [random.uniform(-2, d + 1, (batch, points)).astype(dtype) for d in sizes]
        places = places if linear else [np.rint(at) for at in places]
        places[0][:, ::7] = np.nan
        both(sample, [image, *places], {"linear": linear})
        both(sample_add, [ct, *places], {"linear": linear, "sizes": sizes})
        both(sample_slopes, [ct, image, *places], {"linear": linear})


def test_what_is_outside_is_not_read() -> None:
    """An infinite element is seen only by positions beside it."""
    image = np.zeros((1, 1, 3, 4), np.float32)
    image[0, 0, 0, 0] = np.inf
    grid = ms.Tensor(np.array([[[[-1.9, -1.9], [0.6, 0.6], [np.nan, 0.0]]]], np.float32))
    assert ops.grid_sample(ms.Tensor(image), grid).asnumpy().ravel().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_derivatives(padding: str) -> None:
    """First and second derivatives against differences; a batch of calls against single ones."""
    random = np.random.default_rng(4)
    image, grid = (ms.Tensor(random.uniform(-1.1, 1.1, s)) for s in ((2, 3, 4, 5), (2, 3, 2, 2)))
    weight = ms.Tensor(random.standard_normal((2, 3, 3, 2)))
    steps = [ms.Tensor(random.standard_normal(t.shape)) for t in (image, grid)]

    def function(x: Any, g: Any) -> Any:
        return (ops.grid_sample(x, g, padding_mode=padding) ** 2 * weight).sum()

    gradient = ms.grad(function, (0, 1))
    width = 1e-6
    ahead, behind = ([t + d * s for t, d in zip((image, grid), steps)] for s in (width, -width))
    slope = sum((g * d).sum().item() for g, d in zip(gradient(image, grid), steps))
    assert slope == pytest.approx((function(*ahead) - function(*behind)).item() / (2 * width), rel=1e-6)

    def along(x: Any, g: Any) -> Any:
        return sum((a * d).sum() for a, d in zip(gradient(x, g), steps))

    for found, high, low in zip(ms.grad(along, (0, 1))(image, grid), gradient(*ahead), gradient(*behind)):
        expected = ((high - low) / (2 * width)).asnumpy()
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-4, atol=1e-4)
    pairs = [ops.stack((t, t * 0.9)) for t in (image, grid)]
    batched = ms.vmap(gradient)(*pairs)
    for found, first, second in zip(batched, gradient(image, grid), gradient(image * 0.9, grid * 0.9)):
        np.testing.assert_allclose(found.asnumpy(), [first.asnumpy(), second.asnumpy()], rtol=1e-12, atol=1e-13)
