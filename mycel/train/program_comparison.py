"""`diverge`: finds the first operation at which two programs give different values.

Both programs are staged for the inputs, and the values of all of their operations computed at once.
An operation of one *meets* the other program where that has a value of its shape that is equal
within the tolerance. The first operation that does not, though all that it is computed of does, is
where they part: programs that compute the same in other steps still meet where steps end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import arguments
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.exporting import model_of

__all__ = ["Divergence", "diverge"]


@dataclass(frozen=True)
class Divergence:
    """What `diverge` found.

    `agrees` says whether the results are equal within the tolerance, and `results` has the largest
    difference of each. Where they are not, `operation` is the first operation of the first program
    that the second does not meet, with its `place` in the source and its `shape`; `nearest` is the
    operation of the second whose value is nearest, `error` how far that is.
    """

    agrees: bool
    results: tuple[float, ...]
    operation: str = ""
    place: str = ""
    shape: tuple[int, ...] = ()
    nearest: str = ""
    error: float = 0.0

    def __str__(self) -> str:
        errors = ", ".join(f"{e:.3g}" for e in self.results)
        if self.agrees:
            return f"the programs agree; the results differ by {errors}"
        if not self.operation:
            return f"the results differ by {errors}, and no operation was found at which they part"
        place = f" at {self.place}" if self.place else ""
        near = f"; nearest is {self.nearest}, which differs by {self.error:.3g}" if self.nearest else ""
        return f"the programs part at {self.operation}{list(self.shape)}{place}{near}; the results differ by {errors}"


class _Run:
    """The values of all operations of a program."""

    def __init__(self, program: Any, inputs: Sequence[Tensor]) -> None:
        model = model_of(program, inputs)
        states = [Tensor.from_numpy(np.array(s.value)) for s in model.states]
        graph = _flat(model.graph)
        self.nodes = [n for n in graph.nodes if isinstance(n.type, TensorType)]
        whole = Graph(graph.inputs, (*self.nodes, *graph.outputs), graph.name)
        found: Any = eager.apply(control.call, *inputs, *states, graph=whole)
        arrays = [t.asnumpy() for t in found]
        self.values: dict[Node, NDArray[Any]] = dict(zip(self.nodes, arrays))
        given = [t.asnumpy() for t in (*inputs, *states)]
        self.values.update(zip(graph.inputs, given))
        places = {"tensor": arrays[len(self.nodes) :], "argument": given, "state": given[len(inputs) :]}
        places["number"] = places["tensor"]
        self.results: list[NDArray[Any]] = _results(model.result, places)


def _results(form: Any, places: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return the tensors in a result's form, in their order."""
    if not isinstance(form, dict):
        return []
    ((kind, content),) = form.items()
    if kind in places:
        return [places[kind][content]]
    if kind == "float":
        return []
    parts = [part for _, part in content] if kind == "dict" else content
    return [found for part in parts for found in _results(part, places)]


def _flat(graph: Graph) -> Graph:
    """Return a graph with the graphs that it calls in the place of the calls."""
    while any(n.prim is control.call for n in graph.nodes):
        image: dict[Node, Any] = {n: n for n in graph.inputs}
        for n in graph.nodes:
            inputs = [image[i] for i in n.inputs]
            if n.prim is control.call:
                image[n] = control.inline(n.params["graph"], inputs)
            elif inputs and type(inputs[0]) is tuple:
                image[n] = inputs[0][n.params["index"]]
            else:
                image[n] = Node(n.prim, tuple(inputs), n.params, n.type, n.where)
        graph = Graph(graph.inputs, [image[o] for o in graph.outputs], graph.name)
    return graph


def diverge(a: Any, b: Any, inputs: Any, rtol: float = 1e-4, atol: float = 1e-5) -> Divergence:
    """Find the first operation at which two programs give different values.

    Values are equal where ``|a - b| <= atol + rtol * |b|``. What the programs write to parameters
    is not written.

    Args:
        a (Cell | Callable[..., Any]): A Cell or function of tensors, such as a network or what
            `load` made of its file.
        b (Cell | Callable[..., Any]): A Cell or function of tensors, such as a network or what
            `load` made of its file.
        inputs (Tensor): The tensors that both are called with.
        rtol (float): The tolerance relative to the second value. Default: 0.0001.
        atol (float): The absolute tolerance. Default: 1e-05.

    Returns:
        Divergence: The operation, and how far the values are apart.

    Raises:
        TypeError: For other arguments.
        CompileError: For a program that is not one graph.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([1.0, 2.0])
        >>> found = ms.diverge(lambda x: ms.ops.exp(x * 2) + 1, lambda x: ms.ops.exp(x * 3) + 1, [
        ...     x])
        >>> found.agrees, found.operation, found.shape
        (False, 'mul', (2,))
    """
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for i, x in enumerate(given):
        if not isinstance(x, Tensor):
            raise arguments.wrong_type("diverge", f"inputs[{i}]", "a Tensor", x)
    one, other = _Run(a, given), _Run(b, given)
    if len(one.results) != len(other.results):
        raise ValueError(f"diverge: the programs give {len(one.results)} and {len(other.results)} tensors")
    errors = tuple([_error(x, y) for x, y in zip(one.results, other.results)])
    if all(_equal(x, y, rtol, atol) for x, y in zip(one.results, other.results)):
        return Divergence(True, errors)
    by_shape: dict[tuple[int, ...], list[tuple[str, NDArray[Any]]]] = {}
    for node, value in other.values.items():
        by_shape.setdefault(value.shape, []).append((node.op or "an input", value))
    met = {node for node in one.values if node.prim is None or node.is_constant}
    for node in one.nodes:
        value = one.values[node]
        others = by_shape.get(value.shape, ())
        if node in met or any(_equal(value, theirs, rtol, atol) for _, theirs in others):
            met.add(node)
        elif all(i in met or i not in one.values for i in node.inputs):
            near = _nearest(node.op, value, others)
            place = "" if node.where is None else str(node.where)
            return Divergence(False, errors, node.op, place, value.shape, *(near or ()))
    return Divergence(False, errors)


def _nearest(op: str, value: NDArray[Any], others: Any) -> tuple[str, float] | None:
    """Return the operation with the nearest value, one of the same name where there is any."""
    same = [o for o in others if o[0] == op] or others
    found = [(name, _error(value, theirs)) for name, theirs in same]
    return min(found, key=lambda f: f[1]) if found else None


def _equal(x: NDArray[Any], y: NDArray[Any], rtol: float, atol: float) -> bool:
    if x.shape != y.shape:
        return False
    if x.dtype.kind in "biu" and y.dtype.kind in "biu":
        return bool(np.array_equal(x, y))
    return bool(np.allclose(x.astype(np.complex128), y.astype(np.complex128), rtol, atol, equal_nan=True))


def _error(x: NDArray[Any], y: NDArray[Any]) -> float:
    if x.shape != y.shape:
        return float("inf")
    apart = np.abs(x.astype(np.complex128) - y.astype(np.complex128))
    return float(np.max(apart, initial=0.0))
