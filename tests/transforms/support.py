"""What the tests of the passes share: building graphs of one expression, comparing structures, and
inputs full of special values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.printer import to_text
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import DType

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -0.75, 1e-30, 3.0, -7.0, 0.5)


def graph_of(function: Callable[..., Any], *types: TensorType) -> Graph:
    """The graph of a function of nodes."""
    inputs = [input_node(t, f"x{i}") for i, t in enumerate(types)]
    result = function(*inputs)
    return Graph(inputs, result if isinstance(result, (tuple, list)) else [result], "f")


def types(dtype: DType, *shapes: tuple[Any, ...]) -> list[TensorType]:
    return [tensor_type(s, dtype) for s in shapes]


def assert_same_structure(graph: Graph, wanted: Graph) -> None:
    """Both graphs are valid, agree in types, and are the same expression."""
    verify(graph)
    assert graph.output_types == wanted.output_types
    assert structural_hash(graph) == structural_hash(wanted), f"\n{to_text(graph)}\nbut wanted\n{to_text(wanted)}"


def special_inputs(graph: Graph, shift: int = 0) -> list[Any]:
    """Arrays for a graph's inputs that hold NaN, infinities and both zeros; integers from a small
    range, booleans both.
    """
    return [_special(t, 3 * i + shift) for i, t in enumerate(graph.input_types)]


def _special(type: Any, shift: int) -> Any:
    count = int(np.prod(type.shape))
    if type.dtype.kind == "b":
        return (np.arange(count).reshape(type.shape) + shift) % 3 == 0
    if type.dtype.is_integer:
        low = 0 if type.dtype.kind == "u" else -4
        return ((np.arange(count).reshape(type.shape) * 7 + shift) % 9 + low).astype(type.dtype.numpy)
    return np.resize(np.roll(np.array(SPECIAL), shift), type.shape).astype(type.dtype.numpy)


def random_inputs(graph: Graph, seed: int = 0) -> list[Any]:
    """Finite random arrays for a graph's inputs."""
    rng = np.random.default_rng(seed)
    arrays = []
    for t in graph.input_types:
        if t.dtype.kind == "b":
            arrays.append(np.asarray(rng.integers(0, 2, t.shape), np.bool_))
        elif t.dtype.is_integer:
            low, high = (0, 20) if t.dtype.kind == "u" else (-20, 20)
            arrays.append(np.asarray(rng.integers(low, high, t.shape)).astype(t.dtype.numpy))
        else:
            arrays.append(np.asarray(rng.uniform(-2, 2, t.shape)).astype(t.dtype.numpy))
    return arrays


def assert_same_values(before: Graph, after: Graph, inputs: Sequence[Any], tolerance: float = 0.0) -> None:
    """Both graphs give the same on these inputs, NaN and infinities included; zeros of either sign
    are equal.
    """
    for a, b in zip(evaluate(before, inputs), evaluate(after, inputs)):
        assert a.dtype == b.dtype and a.shape == b.shape
        if tolerance and a.dtype.kind not in "iub":
            np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(b, a)


def names(graph: Graph) -> list[str]:
    """The primitives of a graph, constants aside."""
    return [n.prim.name for n in graph.nodes if n.prim is not None and not n.is_constant]


def constant_of(node: Node) -> Any:
    """The value of a constant, broadcast or not."""
    return evaluate([node])[0]
