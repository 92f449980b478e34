"""Products and convolutions of 16-bit floats where the processor has no instructions for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.engines import buffers
from mycel._src.engines.native.lowering import expand as opening
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.foundation import dtype as D

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.fixture(params=[False, True], ids=["widened", "native"])
def native(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways, whatever this processor has."""
    monkeypatch.setattr(opening, "is_native", lambda dtype: request.param)
    return bool(request.param)


@pytest.mark.parametrize("name", TYPES)
def test_sums_are_float32_and_results_are_rounded_once(name: str, native: bool) -> None:
    random = np.random.default_rng(0)
    a, b = (random.normal(size=s).astype(TYPES[name]) for s in ((17, 300), (300, 23)))
    x, y = (input_node(tensor_type(v.shape, D.from_any(v.dtype))) for v in (a, b))
    program = compile_native(Graph([x, y], [matmul(x, y)]))
    assert program.lowered.fallbacks == []
    (dense,) = [s for s in program.all_steps if s.kind == "dense"]
    assert dense.data.node.dtype.name == (name if native else "float32")
    got = buffers.to_array(program.entry(buffers.from_array(a), buffers.from_array(b)), program.outputs[0])
    want = a.astype(np.float64) @ b.astype(np.float64)
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[name]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=unit * 1.01, atol=2e-5)


@pytest.mark.parametrize("name", TYPES)
def test_gradients_are_those_of_float64(name: str, native: bool) -> None:
    random = np.random.default_rng(1)
    arrays = [random.normal(size=s).astype(TYPES[name]) for s in ((5, 40), (40, 6), (5, 6))]
    x, y, ct = (input_node(tensor_type(v.shape, D.from_any(v.dtype))) for v in arrays)
    graph = Graph([x, y, ct], [g for g in vjp([matmul(x, y)], [ct], [x, y]) if g is not None])
    program = compile_native(graph)
    values = program.entry(*[buffers.from_array(v) for v in arrays])
    a, b, c = (v.astype(np.float64) for v in arrays)
    for got, kind, want in zip(values, graph.output_types, (c @ b.T, a.T @ c)):
        np.testing.assert_allclose(buffers.to_array(got, kind).astype(np.float64), want, rtol=1e-2, atol=1e-2)
