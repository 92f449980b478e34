"""Labellings of sequences: against all paths, against the definition, and their derivatives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.neural.ctc import NEVER, ctc, ctc_grad
from tests.engines.native.test_contract import run_native
from tests.prims.cases import apply_node, nodes_for

Params = dict[str, Any]


def probabilities(random: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    x = random.standard_normal(shape)
    return (x - np.log(np.exp(x).sum(-1, keepdims=True))).astype(dtype)


def said(path: tuple[int, ...], merge: bool) -> list[int]:
    kept = [c for k, c in enumerate(path) if not (merge and k and path[k - 1] == c)]
    return [c for c in kept if c != 0]


@pytest.mark.parametrize("merge", [True, False])
def test_all_paths(merge: bool) -> None:
    """The probability of a labelling is the sum over all paths that say it."""
    random = np.random.default_rng(3)
    for labels in ([], [1], [1, 1], [2, 1], [1, 2, 1], [2, 2, 2]):
        log_probs = probabilities(random, (5, 1, 3), np.float64)
        target = np.array([labels], np.int32).reshape(1, len(labels))
        counts = np.array([5], np.int32), np.array([len(labels)], np.int32)
        expected = sum(
            np.exp(sum(log_probs[t, 0, c] for t, c in enumerate(path)))
            for path in itertools.product(range(3), repeat=5)
            if said(path, merge) == labels
        )
        for found in (
            reference(ctc, (log_probs, target, *counts), {"blank": 0, "merge": merge}),
            native(ctc, (log_probs, target, *counts), {"blank": 0, "merge": merge}),
        ):
            np.testing.assert_allclose(np.exp(found[0][0]), expected, rtol=1e-12, atol=1e-300)


def drawn(random: Any, dtype: Any) -> tuple[tuple[Any, ...], Params]:
    """Draw the operands of `ctc`, lengths beyond their rows among them, and its parameters."""
    sizes = ((1, 40), (0, 5), (2, 9), (0, 40))
    steps, batch, classes, labels = (int(random.integers(*ends)) for ends in sizes)
    targets = random.integers(0, classes, (batch, labels)).astype(np.int32)
    inputs = random.integers(0, steps + 3, batch).astype(np.int32)
    lengths = random.integers(0, min(labels, steps) + 2, batch).astype(np.int32)
    params = {"blank": int(random.integers(0, classes)), "merge": bool(random.integers(0, 2))}
    return (probabilities(random, (steps, batch, classes), dtype), targets, inputs, lengths), params


def reference(primitive: Primitive, arrays: tuple[Any, ...], params: Params) -> Any:
    assert primitive.reference is not None
    return primitive.reference(*arrays, **params)


def native(primitive: Primitive, arrays: tuple[Any, ...], params: Params, wanted: Any = None) -> Any:
    inputs = nodes_for(list(arrays))
    made = apply_node(primitive, inputs, params)
    return run_native(Graph(inputs, made if wanted is None else [made[wanted]], primitive.name), list(arrays))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_definition(dtype: Any) -> None:
    """The kernels give what the definition does, for sizes and lengths drawn at random."""
    random = np.random.default_rng(5)
    tolerance = 2e-5 if dtype is np.float32 else 1e-11
    for _ in range(8):
        arrays, params = drawn(random, dtype)
        total, alpha = reference(ctc, arrays, params)
        found = native(ctc, arrays, params)
        there = total > NEVER / 2
        np.testing.assert_array_equal(found[0] > NEVER / 2, there)
        np.testing.assert_allclose(found[0][there], total[there], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(found[1], alpha, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(native(ctc, arrays, params, 0)[0], found[0])
        operands = (random.standard_normal(total.shape).astype(dtype), *arrays, total, alpha)
        expected = reference(ctc_grad, operands, params)
        made = native(ctc_grad, operands, params)[0]
        np.testing.assert_allclose(made, expected, rtol=10 * tolerance, atol=10 * tolerance)


def loss(x: Any, *others: Any) -> Any:
    targets, inputs, lengths = others
    return ops.ctc_loss(x, targets, inputs, lengths, 0, "none", True)[0]


def test_derivatives() -> None:
    """First and second derivatives against differences, at once, compiled and of batches."""
    random = np.random.default_rng(8)
    x = ms.Tensor(probabilities(random, (6, 2, 4), np.float64))
    others = [ms.Tensor(v, ms.int32) for v in ([[1, 1, 2], [3, 1, 2]], [6, 5], [3, 2])]
    weight, step = ms.Tensor([0.7, -1.3], ms.float64), ms.Tensor(random.standard_normal(x.shape))
    gradient = ms.grad(lambda v: (loss(v, *others) * weight).sum())
    along = ms.grad(lambda v: (gradient(v) * step).sum())
    width = 1e-5

    def slope(f: Any) -> Any:
        return (f(x + step * width) - f(x - step * width)) / (2 * width)

    expected = slope(lambda v: (loss(v, *others) * weight).sum()).item()
    assert abs((gradient(x) * step).sum().item() - expected) < 1e-7
    np.testing.assert_allclose(along(x).asnumpy(), slope(gradient).asnumpy(), atol=1e-6)
    np.testing.assert_array_equal(ms.jit(gradient)(x).asnumpy(), gradient(x).asnumpy())
    both = ops.stack((x, x + step * 0.1))
    found = ms.vmap(gradient)(both).asnumpy()
    np.testing.assert_allclose(found, [gradient(both[k]).asnumpy() for k in range(2)], rtol=1e-12, atol=1e-14)


def test_derivative_by_alpha() -> None:
    """What is a function of alpha has a derivative as well."""
    random = np.random.default_rng(9)
    x, step = (ms.Tensor(random.uniform(-2, -1, (5, 1, 3))) for _ in range(2))
    targets = ms.Tensor([[1, 2]], ms.int32), ms.Tensor([5], ms.int32), ms.Tensor([2], ms.int32)

    def function(v: Any) -> Any:
        alpha = ops.ctc_loss(v, *targets)[1]
        return ops.exp(alpha).sum()

    gradient = ms.grad(function)(x)
    width = 1e-5
    expected = (function(x + step * width) - function(x - step * width)) / (2 * width)
    assert abs((gradient * step).sum().item() - expected.item()) < 1e-8


def test_a_value_that_is_no_number_is_seen() -> None:
    """NaN among the probabilities is NaN in the loss and in its derivative."""
    x = ms.Tensor(np.full((4, 1, 3), np.nan, np.float32))
    targets = ms.Tensor([[1]], ms.int32), ms.Tensor([4], ms.int32), ms.Tensor([1], ms.int32)
    assert np.isnan(loss(x, *targets).asnumpy()).all()
    assert np.isnan(ms.grad(lambda v: loss(v, *targets).sum())(x).asnumpy()).any()
