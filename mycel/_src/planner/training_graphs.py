"""Graphs of training steps (forward, backward, Adam), made from types, for planning pipelines.

A stage's step is its forward graph and the derivative by all of its inputs. Its update sums the
gradients of all ranks along some axes of a mesh and changes the parameters by Adam, whose two
moments are inputs beside the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.distributed.collectives import all_reduce
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.foundation.dtype import float32

__all__ = ["adam", "with_gradients"]


def with_gradients(graph: Graph, wrt: Sequence[int] | None = None) -> Graph:
    """Return a graph that also takes the cotangents of the outputs and gives those of inputs.

    Its inputs are those of `graph` and a cotangent for each output, its outputs those of `graph`
    and a cotangent for each input in `wrt`, by default for all that are floats and matter.

    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x, w = (input_node(tensor_type((8, 8), float32)) for _ in "xw")
    >>> from mycel._src.compiler.prims.matrix_product import matmul
    >>> step = with_gradients(Graph([x, w], [matmul(x, w)]))
    >>> len(step.inputs), len(step.outputs)
    (3, 3)
    """
    numbers = range(len(graph.inputs)) if wrt is None else wrt
    nodes = [graph.inputs[k] for k in numbers if graph.inputs[k].dtype.kind == "f"]
    cotangents = [input_node(o.type, "cotangent") for o in graph.outputs]
    found = [c for c in vjp(graph.outputs, cotangents, nodes) if c is not None]
    return Graph([*graph.inputs, *cotangents], [*graph.outputs, *found], graph.name)


def adam(
    types: Sequence[TensorType], mesh: Mesh | None = None, axes: Sequence[str] = ()
) -> tuple[Graph, dict[int, int]]:
    """Return the graph of a step of Adam, and its aliases: which outputs are inputs written over.

    For each of `types` the graph has a parameter of the type, its two moments in float32, and its
    gradient, which is summed along `axes` of `mesh` where these are given.

    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> graph, aliases = adam([tensor_type((8, 8), float32)], Mesh((4,), ("data",)), ("data",))
    >>> len(graph.inputs), aliases
    (4, {0: 0, 1: 1, 2: 2})
    """
    inputs: list[Node] = []
    outputs: list[Node] = []
    aliases: dict[int, int] = {}
    for type in types:
        wide = type.with_dtype(float32)
        own = [input_node(t, n) for t, n in ((type, "p"), (wide, "m"), (wide, "v"), (type, "g"))]
        parameter, first, second, gradient = own
        if mesh is not None and axes:
            gradient = all_reduce(gradient, mesh=mesh, axes=tuple(axes), op="sum")
        g = E.cast(gradient, dtype=float32)
        m = E.add(E.mul(first, 0.9), E.mul(g, 0.1))
        v = E.add(E.mul(second, 0.999), E.mul(E.mul(g, g), 0.001))
        step = E.div(E.mul(m, 1e-4), E.add(E.sqrt(v), 1e-8))
        changed = E.cast(E.sub(E.cast(parameter, dtype=float32), step), dtype=type.dtype)
        for k, value in enumerate((changed, m, v)):
            aliases[len(outputs)] = len(inputs) + k
            outputs.append(value)
        inputs += own
    return Graph(inputs, outputs, "adam"), aliases
