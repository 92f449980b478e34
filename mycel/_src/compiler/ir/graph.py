"""The intermediate representation: an immutable functional graph.

A `Node` applies a primitive to earlier nodes. Nodes never change and know nothing of the graphs
they are in, so a graph is just its inputs and outputs, and every transformation builds new nodes
beside the old ones. A `Graph` is closed: its outputs depend on its inputs and on constants only.
Effects are ordered by token values that flow like any other. `where` is the position in the user's
source; nodes that a rule makes while `at(where)` is in force inherit it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.types import TensorType, Type, tensor_type
from mycel._src.foundation.dtype import from_any

if TYPE_CHECKING:
    from mycel._src.compiler.prims.base import Primitive

__all__ = ["Graph", "Node", "Where", "at", "current_where", "input_node", "substitute", "toposort"]


class Where(NamedTuple):
    """A place in the user's source: an expression from its first to its last character.

    Columns count bytes of UTF-8. `gradient` names the operation at this place whose derivative the
    node belongs to; it is empty for nodes that the user wrote. `cell` is the path of the Cell that
    computes the node, and `operation` the public name of what checks indices there.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    gradient: str = ""
    cell: str = ""
    operation: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def derivative_of(self, operation: str) -> Where:
        """Return the same place for a node in the derivative of an operation.

        In a derivative of higher order it keeps the name of the user's operation.
        """
        if self.gradient:
            return self
        return self._replace(gradient=operation)


class _Position(threading.local):
    where: Where | None = None
    cell = ""


_position = _Position()


def current_where() -> Where | None:
    return _position.where


@contextmanager
def at(where: Where | None) -> Iterator[None]:
    """Give nodes made inside this block the source position `where`.

    An error that leaves nested blocks keeps the position of the innermost one.
    """
    previous = _position.where
    _position.where = where
    try:
        yield
    except Exception as error:
        if where is not None:
            error.__dict__.setdefault("_mycel_node", where)
        raise
    finally:
        _position.where = previous


def set_where(where: Where | None) -> None:
    _position.where = where


def current_cell() -> str:
    """Return the path of the Cell whose nodes are being made."""
    return _position.cell


def set_cell(path: str) -> None:
    _position.cell = path


def _in_cell(where: Where, cell: str) -> Where:
    """Return a place with the path of the current Cell, unless it has one."""
    return where if where.cell else where._replace(cell=cell)


OPERATORS: dict[str, Callable[..., Node]] = {}
# The primitives that the representation itself knows by name; `prims.base` defines them.
CONSTANT_OP = "constant"
GET_ITEM_OP = "get_item"


class Node:
    """The application of a primitive to nodes.

    `prim` is the primitive, None for an input of a graph; `inputs` are its operands and `params`
    its parameters by name. `type` is the type of the result, a tuple of types for several outputs;
    `where` is the place in the user's source.
    """

    __slots__ = ("prim", "inputs", "params", "type", "where", "__weakref__")

    prim: Primitive | None
    inputs: tuple[Node, ...]
    params: Mapping[str, Any]
    type: Any
    where: Where | None

    def __init__(
        self,
        prim: Primitive | None,
        inputs: tuple[Node, ...],
        params: Mapping[str, Any],
        type: Type,
        where: Where | None = None,
    ) -> None:
        self.prim = prim
        self.inputs = inputs
        self.params = params
        self.type = type
        where = where or _position.where
        self.where = _in_cell(where, _position.cell) if where is not None and _position.cell else where

    @property
    def shape(self) -> Any:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def op(self) -> str:
        """The name of the primitive; "" for an input."""
        return "" if self.prim is None else self.prim.name

    @property
    def is_constant(self) -> bool:
        return self.op == CONSTANT_OP

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The array of a constant."""
        array: np.ndarray[Any, Any] = self.params["value"].array
        return array

    def __repr__(self) -> str:
        name = self.params.get("name", "input") if self.prim is None else self.prim.name
        return f"<{name}: {self.type}>"

    def __add__(self, other: Any) -> Node:
        return OPERATORS["add"](self, other)

    def __radd__(self, other: Any) -> Node:
        return OPERATORS["add"](other, self)

    def __sub__(self, other: Any) -> Node:
        return OPERATORS["sub"](self, other)

    def __rsub__(self, other: Any) -> Node:
        return OPERATORS["sub"](other, self)

    def __mul__(self, other: Any) -> Node:
        return OPERATORS["mul"](self, other)

    def __rmul__(self, other: Any) -> Node:
        return OPERATORS["mul"](other, self)

    def __truediv__(self, other: Any) -> Node:
        return OPERATORS["div"](self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return OPERATORS["div"](other, self)

    def __neg__(self) -> Node:
        return OPERATORS["neg"](self)


def input_node(type: Type, name: str = "input", where: Where | None = None) -> Node:
    """Return a free node that a graph can take as an input."""
    return Node(None, (), {"name": name}, type, where)


class Graph:
    """A closed function from `inputs` to `outputs`."""

    __slots__ = ("inputs", "outputs", "name", "_order", "_hash", "_digest", "__weakref__")

    def __init__(self, inputs: Iterable[Node], outputs: Iterable[Node], name: str = "graph") -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.name = name
        self._order: tuple[Node, ...] | None = None
        self._hash: str | None = None
        self._digest: str | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that the outputs need, each after its inputs; the graph's inputs excepted."""
        if self._order is None:
            self._order = tuple(n for n in toposort(self.outputs) if n.prim is not None)
        return self._order

    @property
    def input_types(self) -> tuple[Type, ...]:
        return tuple(n.type for n in self.inputs)

    @property
    def output_types(self) -> tuple[Type, ...]:
        return tuple(n.type for n in self.outputs)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs>"


def toposort(outputs: Iterable[Node], stop: Container[Node] | None = None) -> list[Node]:
    """Return every node that `outputs` depend on, inputs before users.

    The inputs of nodes in `stop` are not followed.
    """
    order: list[Node] = []
    entered: set[Node] = set()
    left: set[Node] = set()
    for root in outputs:
        # A node is entered when it is first taken from the stack, and left when it is taken again,
        # after its inputs. What else is found of it lies below and is passed over.
        stack = [root]
        take, put = stack.pop, stack.append
        while stack:
            node = take()
            if node in entered:
                if node not in left:
                    left.add(node)
                    order.append(node)
                continue
            entered.add(node)
            put(node)
            if node.inputs and (stop is None or node not in stop):
                for child in reversed(node.inputs):
                    if child not in entered:
                        put(child)
    return order


def substitute(outputs: Iterable[Node], replacement: Mapping[Node, Node]) -> list[Node]:
    """Return `outputs` with each node in `replacement` exchanged for its image.

    Nodes that do not depend on a replaced one are shared.
    """
    outputs = list(outputs)
    image: dict[Node, Node] = dict(replacement)
    for node in toposort(outputs, stop=set(replacement)):
        if node not in image:
            inputs = tuple(image[i] for i in node.inputs)
            same = all(a is b for a, b in zip(inputs, node.inputs))
            image[node] = node if same else Node(node.prim, inputs, node.params, node.type, node.where)
    return [image[o] for o in outputs]


def static_type(array: np.ndarray[Any, Any]) -> TensorType:
    """Return the type of a NumPy array."""
    return tensor_type(tuple(int(d) for d in array.shape), from_any(array.dtype))
