"""The contract of the registry: every rule of every primitive agrees with its reference."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import input_node, static_type
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import REGISTRY, freeze
from mycel._src.compiler.prims.shape import move_axis
from mycel._src.compiler.transforms.vmap import RULES, batch
from mycel._src.foundation.dtype import from_any
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
)

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-10}
TOLERANCE |= {"complex64": TOLERANCE["float32"], "complex128": TOLERANCE["float64"]}
LABEL: Any = {"ids": lambda c: c.label}


def close(actual: Any, expected: Any, scale: float = 1.0) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    name = from_any(expected.dtype).name
    if name in TOLERANCE:
        tolerance = TOLERANCE[name] * scale
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        wide = [np.asarray(a, kind) for a in (actual, expected)]
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
        assert primitive.batch or primitive.expand or primitive in RULES, f"{name} has no batch rule"
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
    if opened is None:
        assert case.primitive.opens
        return
    opened = opened if isinstance(opened, tuple) else (opened,)
    for actual, expected in zip(run(opened, free, arrays), reference_results(case, arrays)):
        close(actual, expected, 4)


def gradients(case: Case, arrays: list[Any], cotangents: list[Any]) -> tuple[list[int], list[Any], Any]:
    """Positions of the float64 inputs, their cotangents as arrays (zeros for None), and the scalar
    function behind them.
    """
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
    """Every sample with its first element types, and with float32 or booleans."""
    first: set[tuple[str, int]] = set()
    found = []
    for case in all_cases():
        names, key = {d.name for d in case.dtypes}, (case.primitive.name, case.number)
        if names and (key not in first or names & {"float32", "bool"}):
            found.append(case)
        first.add(key)
    return found


def first_batchable() -> list[Case]:
    """One case of each primitive."""
    return list({c.primitive: c for c in reversed(batchable())}.values())


def batch_axes(ranks: list[int]) -> Iterator[tuple[int | None, ...]]:
    """The batch in front, and behind, of every subset of the inputs, and of each input on every
    axis.
    """
    for subset in itertools.product((False, True), repeat=len(ranks)):
        if any(subset):
            yield tuple(0 if m else None for m in subset)
            yield tuple(r if m else None for m, r in zip(subset, ranks))
    for i, rank in enumerate(ranks):
        for axis in range(1, rank):
            yield tuple(axis if j == i else None for j in range(len(ranks)))


def batched(case: Case, free: list[Any], arrays: list[Any], axes: Any, size: int) -> list[Any]:
    """The results of a case for a batch, each with its batch in front."""
    outputs = apply_node(case.primitive, free, case.sample.params)
    nodes = nodes_for(arrays)
    found = batch(outputs, {n: (m, a) for n, m, a in zip(free, nodes, axes) if a is not None}, size)
    known = [n if a is None else m for n, m, a in zip(free, nodes, axes)]
    values = run([n for n, _ in found], known, arrays)
    shape = lambda v: np.broadcast_to(v, (size, *v.shape))
    return [shape(v) if a is None else np.moveaxis(v, a, 0) for v, (_, a) in zip(values, found)]


@pytest.mark.parametrize("case", batchable(), **LABEL)
def test_batch_is_a_loop_over_examples(case: Case) -> None:
    size = 3
    draws = [case.draw(seed) for seed in range(size)]
    free = nodes_for(draws[0])
    expected: dict[Any, list[Any]] = {}
    for axes in dict.fromkeys(batch_axes([a.ndim for a in draws[0]])):
        arrays = [draws[0][i] if a is None else np.stack([d[i] for d in draws], a) for i, a in enumerate(axes)]
        key = tuple(a is not None for a in axes)
        if key not in expected:
            rows = [reference_results(case, [d[i] if m else draws[0][i] for i, m in enumerate(key)]) for d in draws]
            expected[key] = [np.stack(parts) for parts in zip(*rows)]
        for actual, wanted in zip(batched(case, free, arrays, axes, size), expected[key]):
            close(actual, wanted, 4)


@pytest.mark.parametrize("case", first_batchable(), **LABEL)
def test_batch_of_a_batch_is_a_loop_in_a_loop(case: Case) -> None:
    """Two batches, the inner one in front of the first input and the outer one behind the last."""
    inner, outer = 2, 3
    draws = [[case.draw(i * outer + j) for j in range(outer)] for i in range(inner)]
    count = len(case.dtypes)
    one = draws[0][0]
    free = nodes_for(one)
    outputs = apply_node(case.primitive, free, case.sample.params)
    middle = nodes_for([np.stack([one[0]] * inner), *one[1:]])
    once = batch(outputs, {free[0]: (middle[0], 0)}, inner)
    fronted = [n if a is None else move_axis(n, a, 0) for n, a in once]
    kept = [middle[0], *free[1:]]
    last = count - 1
    array = [np.stack([draws[i][0][0] for i in range(inner)]), *one[1:]]
    stack = (
        [np.stack([draws[i][j][0] for i in range(inner)]) for j in range(outer)]
        if last == 0
        else [draws[0][j][last] for j in range(outer)]
    )
    array[last] = np.stack(stack, -1)
    given = nodes_for(array)
    twice = batch(fronted, {kept[last]: (given[last], array[last].ndim - 1)}, outer)
    values = run([n for n, _ in twice], [*kept[:last], given[last]], array)
    for number, (value, (_, a)) in enumerate(zip(values, twice)):
        moved = value if a is None else np.moveaxis(value, a, 0)
        for j, i in itertools.product(range(outer), range(inner)):
            arrays = [draws[i][j if last == 0 else 0][0], *one[1:]]
            if last:
                arrays[last] = draws[0][j][last]
            wanted = reference_results(case, arrays)[number]
            found = moved if a is None else moved[j]
            close(found if once[number][1] is None else found[i], wanted, 4)
