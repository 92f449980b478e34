"""The intermediate representation: an immutable functional graph.

A `Node` applies a `Primitive` to earlier nodes; the records of primitives are in `prims`. Nodes
never change and know nothing of the graphs they are in, so a graph is just its inputs and outputs,
and every transformation builds new nodes beside the old ones. A `Graph` is closed: its outputs
depend on its inputs and on constants only. Effects are ordered by token values that flow like any
other. `where` is the position in the user's source; nodes that a rule makes while `at(where)` is in
force inherit it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.primitive_properties import Cost, Factor, Rounding, Sample
from mycel._src.compiler.ir.types import TensorType, Type, tensor_type
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import SizeError

__all__ = [
    "APPLICATION",
    "Graph",
    "Node",
    "Number",
    "Primitive",
    "Where",
    "at",
    "current_where",
    "input_node",
    "substitute",
    "toposort",
]


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
# The primitives that the representation itself knows by name; `prims.base` has their records.
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


NodeOrNodes = Node | tuple[Node, ...]
Number = Callable[[DimLike], int]


class Application:
    """How primitives are applied to more than nodes, and found: `prims.base` says it.

    `operands` are the nodes of nodes and Python scalars, `outputs_of` gives one node for each
    output of a node, and `find` the primitive of a name.
    """

    operands: Callable[[Sequence[Any]], list[Node]]
    outputs_of: Callable[[Node], Any]
    find: Callable[[str], Primitive]


APPLICATION = Application()


@dataclass(eq=False)
class Primitive:
    """The record of one primitive; `prims.base` has the form of each rule.

    `elementwise`: element i of the result depends on element i of the broadcast operands alone.
    `view`: each element of the result is one of the operand's, at another position. `linear`: known
    to be linear over the real numbers in all operands but indices and conditions, so that it is
    applied to the real and imaginary parts of complex numbers separately. `holomorphic`: the rule
    for real operands also serves complex ones if the cotangents that go in and come out are
    conjugated. `effect`: it acts on more than its results, and is neither dropped nor moved.
    `exchanges`: ranks send values to each other in it, so that all of them come to it in one order;
    without an `effect` it may begin early and be awaited late. `traps(node)`: whether an
    application stops the program for some operands, as indices out of range do. `work(node,
    number)`: the floating-point operations of a product or convolution, where `number` gives sizes
    as integers. `advice`: what to write instead where it gives the first NaN or infinity. `opens`:
    `expand` is asked first, also by engines that have code for the primitive, and returns None
    where the application has no other form. `fixed(node)`: the sizes that code is made for, which
    have to be known, where others may stay symbols. `factors(node)`: what the work is divided by,
    as `Factor`s. `part(whole, inputs, params, starts)`: the result of one part of the node
    `whole`, where it depends on the part's place: `inputs` and `params` are those of the part,
    `starts` has an int64 scalar for each factor of the whole that is divided, the position at which
    the part begins, and None for the others. `kept_of_pair` is that of `saved_for_backward.pairs`,
    entered by `register`.
    """

    name: str
    infer: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    expand: Callable[..., Any] | None = None
    samples: tuple[Sample, ...] = ()
    dtypes: tuple[str, ...] = ()
    elementwise: bool = False
    view: bool = False
    linear: bool = False
    effect: bool = False
    exchanges: bool = False
    holomorphic: bool = False
    cost: Cost = Cost.HEAVY
    rounding: Rounding = Rounding.OWN
    traps: Callable[[Node], bool] | None = None
    work: Callable[[Node, Number], int] | None = None
    advice: str = ""
    opens: bool = False
    fixed: Callable[[Node], tuple[DimLike, ...]] | None = None
    factors: Callable[[Node], Sequence[Factor]] | None = None
    part: Callable[..., NodeOrNodes] | None = None
    doc: str = ""
    kept_of_pair: tuple[int, int, int] = (7, 7, 7)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> Any:
        return (APPLICATION.find, (self.name,))

    def node(self, *inputs: Node, **params: Any) -> Node:
        """Apply to nodes: one node, whose type is a tuple where there are several outputs."""
        return Node(self, inputs, params, self.type_of(*[n.type for n in inputs], **params))

    def type_of(self, *types: Any, **params: Any) -> Any:
        """Return the type that `infer` gives; a SizeError names the primitive."""
        try:
            return self.infer(*types, **params)
        except SizeError as error:
            error.raised_in(self.name)
            raise

    def __call__(self, *inputs: Any, **params: Any) -> Node:
        """Apply to nodes and Python scalars, which take the type of the first node; return a node.

        Primitives of several outputs have `outputs` instead.
        """
        made: Node = APPLICATION.outputs_of(self.node(*APPLICATION.operands(inputs), **params))
        return made

    def outputs(self, *inputs: Any, **params: Any) -> tuple[Node, ...]:
        """Apply a primitive of several outputs; return one node for each."""
        made: tuple[Node, ...] = APPLICATION.outputs_of(self.node(*APPLICATION.operands(inputs), **params))
        return made


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


def users_of(graph: Graph) -> dict[Node, list[Node]]:
    """Return the nodes of a graph that use each value, in their order; a node is there as often as
    the value is among its operands.

    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> from mycel._src.foundation.dtype import float32
    >>> x = input_node(tensor_type((2,), float32))
    >>> y = E.exp(x)
    >>> found = users_of(Graph([x], [E.mul(y, y)]))
    >>> [user.op for user in found[x]], [user.op for user in found[y]]
    (['exp'], ['mul', 'mul'])
    """
    found: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for operand in node.inputs:
            found.setdefault(operand, []).append(node)
    return found


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
