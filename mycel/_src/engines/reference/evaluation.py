"""The reference engine: NumPy, one primitive at a time.

It is the oracle of the tests, and constant folding uses it.

Each node's `reference` runs on the arrays of its inputs; a primitive without one runs through its
`expand`. Every result is checked against the inferred type and made C-contiguous, so an error in an
`infer` rule is found at the node itself. Symbolic sizes are solved from the shapes of the
inputs and put into the parameters before a reference sees them; graphs nested in parameters inherit
the sizes of the graph around them. Arrays are dropped after their last use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from mycel._src.compiler.ir import dim_values
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.graph import Graph, Node, input_node, static_type, toposort
from mycel._src.compiler.ir.types import TensorType, TokenType
from mycel._src.compiler.prims.base import SERVICES, Primitive
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import ShapeError, Unsupported, VerifyError

__all__ = ["Watch", "apply", "evaluate"]

Array = np.ndarray[Any, Any]

_sizes: ContextVar[Mapping[str, int]] = ContextVar("sizes", default={})  # noqa: B039


class Watch:
    """An observer of each node of a graph as it is computed; this one does nothing."""

    def begins(self, node: Node) -> None:
        """Observe that a node is computed next."""

    def ended(self, node: Node, value: Any) -> None:
        """Observe that a node has a value."""

    def dropped(self, node: Node) -> None:
        """Observe that nothing needs the node's value any more."""

    def failed(self, node: Node, types: Sequence[Any], error: Exception) -> None:
        """Observe that a node, with operands of these types, raised an error, which propagates."""


def evaluate(
    graph_or_outputs: Graph | Node | Sequence[Node],
    inputs: Sequence[Any] | Mapping[Node, Any] = (),
    watch: Watch | None = None,
) -> tuple[Any, ...]:
    """Run a graph, or the nodes given, with NumPy; return one array for each output.

    For a `Graph`, `inputs` are the arrays of its inputs in order; for nodes, a mapping from the
    input nodes that they depend on to arrays. `watch` observes the nodes, except those of nested
    graphs. Raises ShapeError or TypeError where an array does not fit its input.

    >>> from mycel._src.compiler.ir.graph import Graph, input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((2,), float32))
    >>> evaluate(Graph([x], [E.exp(x) - 1.0]), [np.zeros(2, np.float32)])
    (array([0., 0.], dtype=float32),)
    """
    if isinstance(graph_or_outputs, Graph):
        if isinstance(inputs, Mapping) or len(inputs) != len(graph_or_outputs.inputs):
            raise TypeError(
                f"{graph_or_outputs.name} takes {len(graph_or_outputs.inputs)} inputs, {len(inputs)} were given"
            )
        pairs = list(zip(graph_or_outputs.inputs, inputs))
        outputs: tuple[Node, ...] = graph_or_outputs.outputs
        order: Sequence[Node] = graph_or_outputs.nodes
    else:
        outputs = (graph_or_outputs,) if isinstance(graph_or_outputs, Node) else tuple(graph_or_outputs)
        if not isinstance(inputs, Mapping):
            if inputs:
                raise TypeError("evaluate: arrays for free nodes are given as a mapping from input node to array")
            inputs = {}
        pairs = list(inputs.items())
        order = [n for n in toposort(outputs, stop=set(inputs)) if n not in inputs]

    values: dict[Node, Any] = {node: _canonical(value, node) for node, value in pairs}
    found = dict(_sizes.get())
    found.update(_solve([(n, values[n]) for n, _ in pairs]))
    uses: dict[Node, int] = {}
    for node in order:
        for i in node.inputs:
            uses[i] = uses.get(i, 0) + 1
    for node in outputs:
        uses[node] = uses.get(node, 0) + 1

    with _bound(found):
        for node in order:
            if node.prim is None:
                raise VerifyError(f"evaluate: {node!r} is reached but is not among the inputs")
            arguments = [values[i] for i in node.inputs]
            if watch is None:
                result = apply(node.prim, arguments, node.params)
                values[node] = _checked(result, node.type, node.op, found)
            else:
                watch.begins(node)
                try:
                    result = apply(node.prim, arguments, node.params)
                except Exception as error:
                    watch.failed(node, [i.type for i in node.inputs], error)
                    raise
                values[node] = _checked(result, node.type, node.op, found)
                watch.ended(node, values[node])
            for i in node.inputs:
                uses[i] -= 1
                if not uses[i]:
                    values.pop(i)
                    if watch is not None:
                        watch.dropped(i)
    return tuple(values[o] for o in outputs)


def apply(prim: Primitive, arrays: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Return the result of one primitive on arrays, by its `reference`.

    It is a tuple where there are several outputs.

    >>> from mycel._src.compiler.prims import elementwise as E
    >>> apply(E.add, [np.ones(2), np.ones(2)], {})
    array([2., 2.])
    """
    sizes = _sizes.get()
    concrete = {k: _concrete(v, sizes) for k, v in params.items()}
    if prim.reference is not None:
        with np.errstate(all="ignore"):
            return prim.reference(*arrays, **concrete)
    if prim.expand is None:
        raise Unsupported(f"{prim.name} has no reference and no expansion, so the reference engine cannot run it")
    free = [input_node(static_type(np.asarray(a))) for a in arrays]
    opened = prim.expand(*free, **concrete)
    several = isinstance(opened, tuple)
    results = evaluate(opened if several else (opened,), dict(zip(free, arrays)))
    return results if several else results[0]


@contextmanager
def _bound(sizes: Mapping[str, int]) -> Iterator[None]:
    mark = _sizes.set(sizes)
    try:
        yield
    finally:
        _sizes.reset(mark)


def _canonical(value: Any, node: Node) -> Any:
    if not isinstance(node.type, TensorType):
        return value
    array = np.asarray(value, order="C")
    if from_any(array.dtype) is not node.type.dtype:
        raise TypeError(f"{node!r} was given an array of {array.dtype}; pass {node.type.dtype.name}")
    if array.ndim != node.type.rank:
        raise ShapeError(f"{node!r} was given an array of shape {array.shape}")
    return array


def _solve(pairs: Sequence[tuple[Node, Any]]) -> dict[str, int]:
    """Return the sizes of the symbols, read from dimensions ``coefficient * symbol + constant``.

    Raises an error where other dimensions do not fit them.
    """
    found: dict[str, int] = {}
    rows = [(n, d, int(s)) for n, a in pairs if isinstance(n.type, TensorType) for d, s in zip(n.type.shape, a.shape)]
    for _, dim, size in rows:
        if isinstance(dim, Dim):
            _bind(dim, size, found)
    for node, dim, size in rows:
        try:
            wanted = dim_values.evaluate(dim, found)
        except KeyError as missing:
            raise ShapeError(
                f"{node!r}: the size {missing.args[0]} does not follow from the shapes of the inputs"
            ) from None
        if wanted != size:
            raise ShapeError(f"{node!r} was given a size of {size} where {dim} is {wanted}")
    return found


def _bind(dim: Dim, size: int, found: dict[str, int]) -> None:
    unknown = [(m, c) for m, c in dim.terms.items() if m]
    if len(unknown) != 1:
        return
    monomial, coefficient = unknown[0]
    ((atom, power),) = monomial if len(monomial) == 1 else ((None, 0),)
    if atom is not None and atom.operator == "symbol" and power == 1:
        whole, rest = divmod(size - dim.terms.get((), 0), coefficient)
        if not rest:
            found.setdefault(atom.name, whole)


def _concrete(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, Dim):
        return dim_values.evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(_concrete(v, sizes) for v in value)
    return value


def _checked(result: Any, type: Any, name: str, sizes: Mapping[str, int]) -> Any:
    if isinstance(type, tuple):
        if not isinstance(result, tuple) or len(result) != len(type):
            raise VerifyError(f"{name}: infer promises {len(type)} outputs, the reference gave {result!r}")
        return tuple(_checked(r, t, name, sizes) for r, t in zip(result, type))
    if isinstance(type, TokenType):
        return result
    array = np.asarray(result, order="C")
    shape: tuple[DimLike, ...] = tuple(dim_values.evaluate(d, sizes) for d in type.shape)
    if array.dtype != type.dtype.numpy or array.shape != shape:
        raise VerifyError(f"{name}: infer promises {type}, the reference gave {array.dtype}{list(array.shape)}")
    return array


SERVICES.evaluate = evaluate
