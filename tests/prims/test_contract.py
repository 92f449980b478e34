"""The contract of the registry: every rule of every primitive agrees with its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel.dtype import from_any
from mycel.ir.graph import input_node, static_type
from mycel.ir.types import TensorType
from mycel.prims.base import REGISTRY, freeze
from tests.prims.cases import (
    WITHOUT_CASES,
    Case,
    all_cases,
    apply_node,
    cases,
    float64_cases,
    nodes_for,
    numeric_gradient,
    reference_results,
    run,
    sweep,
)  # fmt: skip

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-10}
LABEL: Any = {"ids": lambda c: c.label}


def close(actual: Any, expected: Any, scale: float = 1.0) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    name = from_any(expected.dtype).name
    if name in TOLERANCE:
        tolerance = TOLERANCE[name] * scale
        wide = [np.asarray(a, np.float64) for a in (actual, expected)]
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_record_is_complete(name: str) -> None:
    primitive = REGISTRY[name]
    assert primitive.name == name
    assert primitive.doc and primitive.doc.strip().endswith("."), f"{name} has no doc"
    assert primitive.reference is not None or primitive.expand is not None, f"{name} cannot be run"
    if name not in WITHOUT_CASES:
        assert list(cases(primitive)), f"{name} has no samples"
        assert primitive.vjp is not None or primitive.expand is not None, f"{name} has no derivative rule"
        assert primitive.batch is not None or primitive.expand is not None, f"{name} has no batch rule"
        for sample in primitive.samples:
            hash(freeze(sample.params))


@pytest.mark.parametrize("case", all_cases(), **LABEL)
def test_infer_gives_the_type_of_the_reference(case: Case) -> None:
    arrays = case.draw()
    outputs = apply_node(case.primitive, nodes_for(arrays), case.sample.params)
    results = reference_results(case, arrays)
    assert len(outputs) == len(results)
    for node, array in zip(outputs, results):
        assert isinstance(node.type, TensorType)
        assert node.shape == array.shape
        assert node.dtype.numpy == array.dtype


@pytest.mark.parametrize("case", [c for c in all_cases() if c.primitive.expand is not None], **LABEL)
def test_expansion_is_the_reference(case: Case) -> None:
    arrays = case.draw()
    free = nodes_for(arrays)
    opened = case.primitive.expand(*free, **case.sample.params)
    opened = opened if isinstance(opened, tuple) else (opened,)
    for actual, expected in zip(run(opened, free, arrays), reference_results(case, arrays)):
        close(actual, expected, 4)


def gradients(case: Case, arrays: list[Any], cotangents: list[Any]) -> tuple[list[int], list[Any], Any]:
    """Positions of the float64 inputs, their cotangents as arrays (zeros for None), and the scalar function behind them."""
    free = nodes_for(arrays)
    outputs = apply_node(case.primitive, free, case.sample.params)
    weights = [input_node(static_type(c)) if c is not None else None for c in cotangents]
    pairs = [(o, w) for o, w in zip(outputs, weights) if w is not None]
    positions = [i for i, d in enumerate(case.dtypes) if d.name == "float64"]
    found = sweep([o for o, _ in pairs], [w for _, w in pairs], [free[i] for i in positions])
    present = [n for n in found if n is not None]
    inputs = [*free, *[w for _, w in pairs]]
    values = iter(run(present, inputs, [*arrays, *[c for c in cotangents if c is not None]]) if present else ())
    filled = [np.zeros_like(arrays[i]) if n is None else next(values) for i, n in zip(positions, found)]

    def scalar(moved: Any) -> float:
        results = reference_results(case, moved)
        return float(sum((r * c).sum() for r, c in zip(results, cotangents) if c is not None))

    return positions, filled, scalar


def draw_cotangents(case: Case, arrays: list[Any]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=r.shape) if r.dtype == np.float64 else None for r in reference_results(case, arrays)]


@pytest.mark.parametrize("case", float64_cases(), **LABEL)
def test_vjp_is_the_numeric_derivative(case: Case) -> None:
    arrays = case.draw()
    cotangents = draw_cotangents(case, arrays)
    positions, actual, scalar = gradients(case, arrays, cotangents)
    for i, gradient in zip(positions, actual):
        np.testing.assert_allclose(gradient, numeric_gradient(scalar, arrays, i), rtol=1e-6, atol=1e-7)


class FirstDerivative:
    """The vjp of a case as nodes: what it needs to be evaluated and differentiated again."""

    def __init__(self, case: Case) -> None:
        arrays = case.draw()
        cotangents = draw_cotangents(case, arrays)
        free = nodes_for(arrays)
        outputs = apply_node(case.primitive, free, case.sample.params)
        pairs = [(o, input_node(static_type(c)), c) for o, c in zip(outputs, cotangents) if c is not None]
        wrt = [n for n, d in zip(free, case.dtypes) if d.name == "float64"]
        first = sweep([o for o, _, _ in pairs], [w for _, w, _ in pairs], wrt)
        self.nodes = [n for n in first if n is not None]
        self.variables = [*wrt, *[w for _, w, _ in pairs]]
        self.inputs = [*free, *[w for _, w, _ in pairs]]
        self.arrays = [*arrays, *[c for _, _, c in pairs]]


def twice_differentiable() -> list[Case]:
    small = [c for c in float64_cases() if sum(int(np.prod(a.shape)) for a in c.draw()) <= 80]
    return [c for c in small if FirstDerivative(c).nodes]


@pytest.mark.parametrize("case", twice_differentiable(), **LABEL)
def test_second_derivative(case: Case) -> None:
    """The derivative of <vjp, direction> along random steps, against differences of the vjp."""
    first = FirstDerivative(case)
    rng = np.random.default_rng(11)
    directions = [input_node(n.type) for n in first.nodes]
    drawn = [rng.normal(size=n.shape) for n in first.nodes]
    second = sweep(first.nodes, directions, first.variables)

    def inner(moved: Any) -> float:
        results = run(first.nodes, first.inputs, moved)
        return float(sum((r * d).sum() for r, d in zip(results, drawn)))

    for variable, node in zip(first.variables, second):
        position = first.inputs.index(variable)
        step = rng.normal(size=variable.shape)
        above, below = list(first.arrays), list(first.arrays)
        above[position], below[position] = above[position] + 1e-5 * step, below[position] - 1e-5 * step
        expected = (inner(above) - inner(below)) / 2e-5
        given, values = [*first.inputs, *directions], [*first.arrays, *drawn]
        actual = 0.0 if node is None else float((run([node], given, values)[0] * step).sum())
        assert actual == pytest.approx(expected, rel=1e-5, abs=1e-6)


def batchable() -> list[Case]:
    def wanted(case: Case) -> bool:
        names = {d.name for d in case.dtypes}
        return bool(names) and (names & {"float32", "bool"} != set() or case is next(cases(case.primitive)))

    return [c for c in all_cases() if c.primitive.batch is not None and wanted(c)]


@pytest.mark.parametrize("case", batchable(), **LABEL)
def test_batch_rule_is_stacking(case: Case) -> None:
    size = 3
    draws = [case.draw(seed) for seed in range(size)]
    count = len(case.dtypes)
    choices: list[tuple[Any, ...]] = []
    for i in range(count):
        rank = draws[0][i].ndim
        choices += [tuple(axis if j == i else None for j in range(count)) for axis in sorted({0, rank})]
    if count > 1:
        choices.append((0,) * count)
        choices.append(tuple(d.ndim for d in draws[0]))
    for axes in choices:
        arrays = [draws[0][i] if a is None else np.stack([d[i] for d in draws], a) for i, a in enumerate(axes)]
        free = nodes_for(arrays)
        try:
            values, places = case.primitive.batch(size, free, axes, **case.sample.params)
        except NotImplementedError as limit:
            assert "vmap" in str(limit)
            continue
        values, places = (values, places) if isinstance(values, tuple) else ((values,), (places,))
        places = places if isinstance(places, tuple) else (places,) * len(values)
        rows = [
            reference_results(case, [draws[0][i] if a is None else draws[b][i] for i, a in enumerate(axes)])
            for b in range(size)
        ]
        for position, (actual, place) in enumerate(zip(run(values, free, arrays), places)):
            expected = rows[0][position] if place is None else np.stack([r[position] for r in rows], place)
            close(actual, expected, 4)
