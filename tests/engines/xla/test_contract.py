"""Every sample of every primitive gives in the XLA engine what the reference gives."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.prims.base import REGISTRY
from mycel._src.engines import select
from mycel._src.engines.buffers import from_array, to_array
from mycel._src.engines.xla.program import OPTIONS
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported
from tests.prims.cases import Case, all_cases, apply_node, nodes_for, reference_results

ENGINE = select.engines()["xla"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-9, "complex128": 1e-9}
# What XLA cannot have: at most eight.
REFUSED = {"recursion"}
# What the host computes between two programs of XLA.
ON_HOST = {"eig", "householder", "loops", "matrix_exponential", "mesh_position", "messages", "positions"}
EXCHANGES = {"all_gather", "all_reduce", "all_to_all", "exchange", "permute", "reduce_scatter", "spread"}
# All element types of all samples take five minutes; else every sample and every type is compared.
ALL = os.environ.get("MYCEL_ALL_CASES") == "1"


def chosen(cases: list[Case]) -> list[Case]:
    """The cases of one primitive: of each sample one element type, and of each type one sample."""
    if ALL:
        return cases
    by_sample = [list(group) for _, group in itertools.groupby(cases, lambda c: c.number)]
    types = max(map(len, by_sample))
    found = [group[k % len(group)] for k, group in enumerate(by_sample)]
    return found + [by_sample[k % len(by_sample)][k] for k in range(len(by_sample), types) if k < len(by_sample[0])]


def by_primitive() -> list[Any]:
    groups = itertools.groupby(all_cases(), lambda c: c.primitive.name)
    return [pytest.param(chosen(list(cases)), id=name) for name, cases in groups]


def close(actual: Any, expected: Any, label: str) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, label
    name = from_any(expected.dtype).name
    if name in TOLERANCE:
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        wide = [np.asarray(a, kind) for a in (actual, expected)]
        np.testing.assert_allclose(*wide, rtol=TOLERANCE[name], atol=TOLERANCE[name], err_msg=label)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=label)


def graph_of(cases: list[Case]) -> tuple[Graph, list[Any], list[Any]]:
    """One graph of several cases, what is given to it, and what it gives: arrays with labels."""
    inputs: list[Any] = []
    outputs: list[Any] = []
    given: list[Any] = []
    wanted: list[Any] = []
    for case in cases:
        arrays = case.draw()
        nodes = nodes_for(arrays)
        inputs, given = inputs + nodes, given + arrays
        outputs += apply_node(case.primitive, nodes, case.sample.params)
        wanted += [(case.label, r) for r in reference_results(case, arrays)]
    return Graph(inputs, outputs, cases[0].primitive.name), given, wanted


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile with little care for speed, as each program runs once."""
    monkeypatch.setitem(OPTIONS, "xla_backend_optimization_level", 0)
    monkeypatch.setitem(OPTIONS, "xla_llvm_disable_expensive_passes", True)


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("cases", by_primitive())
def test_results_are_those_of_the_reference(cases: list[Case]) -> None:
    graph, given, wanted = graph_of(cases)
    if graph.name in REFUSED:
        with pytest.raises(Unsupported, match="the XLA engine cannot run"):
            ENGINE.compile(graph)
        return
    results = ENGINE.compile(graph)(*[from_array(a) for a in given])
    results = results if isinstance(results, tuple) else (results,)
    for node, buffer, (label, expected) in zip(graph.outputs, results, wanted):
        close(to_array(buffer, node.type), expected, label)


def test_few_are_refused_or_left_to_the_host() -> None:
    assert len(REFUSED) <= 8
    left = set()
    for name, primitive in REGISTRY.items():
        cases = [c for c in all_cases() if c.primitive is primitive][:1]
        if cases and name not in REFUSED:
            left |= {node.op for node, _ in ENGINE.host_steps(graph_of(cases)[0])}
    assert left == (ON_HOST | EXCHANGES) & set(REGISTRY) - {"loops"} | left & {"loops"}
