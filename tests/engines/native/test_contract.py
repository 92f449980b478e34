"""The native engine held to the primitives' contract: the reference's results for every sample and
element type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from tests.prims.cases import Case, all_cases, apply_node, nodes_for, reference_results

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 3e-6,
    "float64": 1e-12,
    "complex64": 1e-5,
    "complex128": 1e-12,
}


def run_native(graph: Graph, arrays: list[Any]) -> list[Any]:
    """A graph's outputs from the native engine."""
    program = compile_native(graph)
    values = program.entry(*[buffers.from_array(a) for a in arrays])
    values = values if isinstance(values, tuple) else (values,)
    return [buffers.to_array(v, t) for v, t in zip(values, graph.output_types)]


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: c.label)
def test_the_native_engine_agrees_with_the_reference(case: Case) -> None:
    arrays = case.draw()
    inputs = nodes_for(arrays)
    graph = Graph(inputs, apply_node(case.primitive, inputs, case.sample.params), case.primitive.name)
    for got, want in zip(run_native(graph, arrays), reference_results(case, arrays)):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        if want.dtype.name in TOLERANCE:
            rtol = TOLERANCE[want.dtype.name]
            wide = np.complex128 if want.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(got, want)
