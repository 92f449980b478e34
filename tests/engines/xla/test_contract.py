"""Every sample of every primitive gives in the XLA engine what the reference gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

from mycel.base.dtype import from_any
from mycel.base.errors import Unsupported
from mycel.engines import select
from mycel.engines.buffers import from_array, to_array
from mycel.ir.graph import Graph
from tests.prims.cases import Case, all_cases, apply_node, nodes_for, reference_results

TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-9, "complex128": 1e-9}
# What XLA cannot have: at most eight.
REFUSED = {"recursion"}
# What the host computes between two programs of XLA.
ON_HOST = {
    "all_gather",
    "all_reduce",
    "all_to_all",
    "eig",
    "householder",
    "loops",
    "matrix_exponential",
    "mesh_position",
    "permute",
    "positions",
    "reduce_scatter",
}


def by_primitive() -> list[Any]:
    """All cases, those of one primitive together."""
    return [
        pytest.param(list(cases), id=name) for name, cases in itertools.groupby(all_cases(), lambda c: c.primitive.name)
    ]


def chosen(cases: list[Case]) -> list[Case]:
    """Of each sample all element types, but of primitives with many samples only some."""
    return cases


def close(actual: Any, expected: Any, label: str) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, label
    name = from_any(expected.dtype).name
    if name in TOLERANCE:
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        wide = [np.asarray(a, kind) for a in (actual, expected)]
        np.testing.assert_allclose(*wide, rtol=TOLERANCE[name], atol=TOLERANCE[name], err_msg=label)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=label)


def compared(cases: list[Case]) -> None:
    """Compare several cases, which are one program."""
    engine = select.engines()["xla"]
    inputs, outputs, given, wanted, labels = [], [], [], [], []
    for case in cases:
        arrays = case.draw()
        nodes = nodes_for(arrays)
        inputs += nodes
        given += arrays
        found = apply_node(case.primitive, nodes, case.sample.params)
        outputs += found
        wanted += reference_results(case, arrays)
        labels += [case.label] * len(found)
    entry = engine.compile(Graph(inputs, outputs, cases[0].primitive.name))
    results = entry(*[from_array(a) for a in given])
    results = results if isinstance(results, tuple) else (results,)
    for node, buffer, expected, label in zip(outputs, results, wanted, labels):
        close(to_array(buffer, node.type), expected, label)


@pytest.mark.parametrize("cases", by_primitive())
def test_results_are_those_of_the_reference(cases: list[Case]) -> None:
    if cases[0].primitive.name in REFUSED:
        with pytest.raises(Unsupported, match="the XLA engine cannot run"):
            compared(cases)
    else:
        compared(chosen(cases))
