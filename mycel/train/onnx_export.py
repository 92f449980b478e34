"""Networks as ONNX models (IR version 8, operator set 18), for programs that run those: `export`
with ``file_format="ONNX"``.

Each node of the staged graph becomes one or a few ONNX nodes (`_RULES`); a primitive without a rule
is opened into its definition, and one that has none is an error that names it. Graphs that nodes
call are put in their places; `cond` is If, `while_loop` is Loop, whose graphs see the values around
them. Symbols are named dimensions of the inputs, and what depends on them is computed from the
inputs' shapes. Results are a flat list, `output0` and so on, in the order in which they lie in the
network's result. The messages are made by `mycel.base.wire`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from mycel.base.dtype import bool_, from_any
from mycel.base.errors import Unsupported
from mycel.base.wire import field
from mycel.ir.binding import Binder
from mycel.ir.dims import Atom, Dim
from mycel.ir.graph import Graph, Node, input_node
from mycel.ir.types import TensorType, tensor_type
from mycel.prims import elementwise as E
from mycel.prims import reduce as R
from mycel.prims.base import GET_ITEM, outputs_of
from mycel.train.graph_file import Model

__all__ = ["onnx_bytes"]

_OPSET = 18
_MOST_BYTES = (1 << 31) - 1
_END = (1 << 31) - 1
_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
}
_UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "bitwise_not": "BitwiseNot",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "identity": "Identity",
    "is_inf": "IsInf",
    "is_nan": "IsNaN",
    "log": "Log",
    "logical_not": "Not",
    "neg": "Neg",
    "rint": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "stop_gradient": "Identity",
    "tan": "Tan",
    "tanh": "Tanh",
}
_BINARY = {
    "add": "Add",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "div": "Div",
    "eq": "Equal",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "lt": "Less",
    "matmul": "MatMul",
    "maximum": "Max",
    "minimum": "Min",
    "mul": "Mul",
    "pow": "Pow",
    "sub": "Sub",
}
_REDUCTIONS = {
    "reduce_sum": "ReduceSum",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_all": "ReduceMin",
    "reduce_any": "ReduceMax",
}

Attribute = Union[int, float, str, Sequence[int], bytes]


def onnx_bytes(model: Model) -> bytes:
    """Return a model as the content of an ONNX file.

    Unsupported, naming the operation, for what ONNX has no form for.
    """
    if model.writes:
        names = ", ".join(model.states[s].name for s, _ in model.writes)
        raise Unsupported(
            f"export: a call of the network changes {names}, which ONNX has no form for; use file_format='MINDIR'"
        )
    writer = _Writer(model)
    content = writer.model()
    if len(content) > _MOST_BYTES:
        raise Unsupported(
            f"export: the ONNX file would have {len(content)} bytes, and 2 GiB is the most; use file_format='MINDIR'"
        )
    return content


def _attribute(name: str, value: Attribute) -> bytes:
    content = field(1, name)
    if isinstance(value, float):
        return content + b"\x15" + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return content + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return content + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return content + field(6, value) + field(20, 5)
    return content + b"".join([field(8, int(v)) for v in value]) + field(20, 7)


def _tensor(name: str, array: Any) -> bytes:
    array = np.asarray(array)
    content = b"".join([field(1, int(d)) for d in array.shape]) + field(2, _TYPES[str(array.dtype)]) + field(8, name)
    return content + field(9, np.ascontiguousarray(array).tobytes())


def _value(name: str, kind: Optional[TensorType]) -> bytes:
    if kind is None:
        return field(1, name)
    dims = [field(1, field(2, repr(d)) if isinstance(d, Dim) else field(1, d)) for d in kind.shape]
    tensor = field(1, _code(kind)) + field(2, b"".join(dims))
    return field(1, name) + field(2, field(1, tensor))


def _code(kind: Any) -> int:
    name = kind.dtype.name if isinstance(kind, TensorType) else str(kind)
    if name not in _TYPES:
        raise Unsupported(f"export: ONNX has no element type {name}")
    return _TYPES[name]


class _Writer:
    """Collects nodes; each method that makes nodes gives the name of their value."""

    def __init__(self, model: Model) -> None:
        self.source = model
        self.nodes: list[bytes] = []
        self.constants: dict[Any, str] = {}
        self.initializers: list[bytes] = []
        self.names: dict[Node, Any] = {}
        self.sizes: dict[str, str] = {}
        self.count = 0

    def model(self) -> bytes:
        graph, states = self.source.graph, self.source.states
        given = len(graph.inputs) - len(states)
        inputs = []
        used: set[str] = set()
        for node in graph.inputs[:given]:
            name = str(node.params.get("name", "input"))
            while name in used:
                name += "_"
            used.add(name)
            self.names[node] = name
            inputs.append(_value(name, node.type))
        for number, (node, state) in enumerate(zip(graph.inputs[given:], states)):
            if state.kind == "generator":
                raise Unsupported(
                    "export: the network draws random numbers, which ONNX has no form for; export it outside of "
                    "training"
                )
            name = state.name if state.name not in used else f"{state.name}.{number}"
            used.add(name)
            self.names[node] = name
            self.initializers.append(_tensor(name, state.value))
        self.reads = Binder(graph.input_types[:given])
        self.run(graph)
        outputs = []
        for number, node in enumerate(self.results(self.source.result)):
            name = f"output{number}"
            self.emit("Identity", [self.name(node)], into=name)
            outputs.append(_value(name, node.type))
        content = b"".join([field(1, n) for n in self.nodes]) + field(2, graph.name)
        content += b"".join([field(5, i) for i in self.initializers])
        content += b"".join([field(11, i) for i in inputs]) + b"".join([field(12, o) for o in outputs])
        head = field(1, 8) + field(2, "mycel") + field(3, self.source.producer)
        return head + field(7, content) + field(8, field(1, "") + field(2, _OPSET))

    def results(self, form: Any) -> list[Node]:
        """Return the nodes in a result's form, in their order."""
        graph = self.source.graph
        given = len(graph.inputs) - len(self.source.states)
        if not isinstance(form, dict):
            raise Unsupported(f"export: the network returns {form!r}, and an ONNX model gives tensors only")
        ((kind, content),) = form.items()
        if kind in ("tensor", "number"):
            return [graph.outputs[content]]
        if kind in ("argument", "state"):
            return [graph.inputs[content + (given if kind == "state" else 0)]]
        if kind == "float":
            raise Unsupported("export: the network returns a Python number, and an ONNX model gives tensors only")
        parts = [part for _, part in content] if kind == "dict" else content
        return [node for part in parts for node in self.results(part)]

    # Names and nodes.

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def emit(
        self, operator: str, inputs: Sequence[str], into: str = "", outputs: int = 1, **attributes: Attribute
    ) -> Any:
        """Return one ONNX node; the name of its output, or of its outputs."""
        names = [into] if into else [self.fresh() for _ in range(outputs)]
        content = b"".join([field(1, i) for i in inputs]) + b"".join([field(2, n) for n in names])
        content += field(3, f"{operator}_{names[0]}") + field(4, operator)
        self.nodes.append(content + b"".join([field(5, _attribute(k, v)) for k, v in attributes.items()]))
        return names if outputs > 1 else names[0]

    def constant(self, array: Any) -> str:
        array = np.asarray(array)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self.constants:
            _code(str(array.dtype))
            self.constants[key] = f"c{len(self.constants)}"
            self.initializers.append(_tensor(self.constants[key], array))
        return self.constants[key]

    def integers(self, values: Iterable[int]) -> str:
        return self.constant(np.array(list(values), np.int64))

    def name(self, node: Node) -> str:
        found = self.names[node]
        assert isinstance(found, str)
        return found

    def run(self, graph: Graph) -> list[str]:
        """Emit the nodes of a graph whose inputs have names; the names of its outputs."""
        for node in graph.nodes:
            if node not in self.names:
                self.node(node)
        return [self.name(o) for o in graph.outputs]

    def inlined(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """Return the nodes of an inner graph in this place."""
        outer = self.names
        self.names = dict(zip(graph.inputs, operands))
        try:
            return self.run(graph)
        finally:
            self.names = outer

    def body(
        self, inputs: Sequence[tuple[str, Optional[TensorType]]], make: Callable[[], Sequence[tuple[str, TensorType]]]
    ) -> bytes:
        """Return a graph for an attribute, whose nodes `make` emits."""
        nodes, self.nodes = self.nodes, []
        sizes, self.sizes = self.sizes, {}
        results = []
        for name, kind in make():
            results.append((self.emit("Identity", [name]), kind))
        content = b"".join([field(1, n) for n in self.nodes]) + field(2, f"body{self.fresh()}")
        content += b"".join([field(11, _value(*i)) for i in inputs]) + b"".join(
            [field(12, _value(*r)) for r in results]
        )
        self.nodes, self.sizes = nodes, sizes
        return content

    # Sizes.

    def size(self, dim: Any) -> str:
        """Return a dimension as int64[1]."""
        if not isinstance(dim, Dim):
            return self.integers([dim])
        total = ""
        for monomial, factor in dim.terms.items():
            product = self.integers([factor])
            for atom, power in monomial:
                for _ in range(power):
                    product = self.emit("Mul", [product, self.atom(atom)])
            total = self.emit("Add", [total, product]) if total else product
        return total

    def atom(self, atom: Atom) -> str:
        key = repr(atom)
        if key not in self.sizes:
            if atom.operator == "symbol":
                if atom.name not in self.reads.reads:
                    raise Unsupported(f"export: the size {atom.name} cannot be read from the shape of an input")
                number, axis, factor, offset = self.reads.reads[atom.name]
                node = self.source.graph.inputs[number]
                name = str(node.params.get("name", "input")) if node not in self.names else self.name(node)
                shape = self.emit("Shape", [name])
                found = self.emit("Gather", [shape, self.integers([axis])])
                if offset:
                    found = self.emit("Sub", [found, self.integers([offset])])
                self.sizes[key] = self.emit("Div", [found, self.integers([factor])]) if factor != 1 else found
            else:
                left, right = [self.size(v) for v in atom.operands]
                rest = self.emit("Mod", [left, right]) if atom.operator != "max" else ""
                if atom.operator == "//":
                    self.sizes[key] = self.emit("Div", [self.emit("Sub", [left, rest]), right])
                else:
                    self.sizes[key] = rest or self.emit("Max", [left, right])
        return self.sizes[key]

    def shape(self, shape: Sequence[Any]) -> str:
        """Return a shape as a vector of int64."""
        if not any(isinstance(d, Dim) for d in shape):
            return self.integers(shape)
        return str(self.emit("Concat", [self.size(d) for d in shape], axis=0))

    def scalar(self, value: Any, like: Any) -> str:
        return self.constant(np.asarray(value, like.dtype.numpy))

    # Nodes of the graph.

    def node(self, node: Node) -> None:
        name, params = node.op, node.params
        if node.prim is GET_ITEM:
            self.names[node] = self.names[node.inputs[0]][params["index"]]
            return
        if node.is_constant:
            self.names[node] = self.constant(params["value"].array)
            return
        operands = [self.names[i] for i in node.inputs]
        if name in _UNARY:
            self.names[node] = self.emit(_UNARY[name], operands)
        elif name in _BINARY:
            self.names[node] = _binary(self, node, operands)
        elif name in _REDUCTIONS:
            self.names[node] = _reduce(self, node, operands, **params)
        elif name in _RULES:
            self.names[node] = _RULES[name](self, node, operands, **params)
        else:
            self.names[node] = self.opened(node, operands)

    def opened(self, node: Node, operands: Sequence[str]) -> Any:
        """Return a node by its definition in other operations."""
        prim = node.prim
        assert prim is not None
        where = f" (at {node.where})" if node.where is not None else ""
        if prim.expand is None or any(not isinstance(i.type, TensorType) for i in node.inputs):
            raise Unsupported(f"export: the operation {prim.name} has no form in ONNX{where}")
        inputs = [input_node(i.type) for i in node.inputs]
        made = prim.expand(*inputs, **node.params)
        several = isinstance(made, tuple)
        results = made if several else (made,)
        if any(
            n.prim is prim and n.type == node.type and n.params == node.params for n in Graph(inputs, results).nodes
        ):
            raise Unsupported(f"export: the operation {prim.name} has no form in ONNX{where}")
        names = self.inlined(Graph(inputs, results), operands)
        return names if isinstance(outputs_of(node), tuple) else names[0]


# The rules: (writer, node, names of the operands, parameters) to the name of the result, or the
# names of the results.


def _reduce(w: _Writer, node: Node, x: list[str], *, axes: Any, keepdims: bool) -> str:
    name = node.op
    truth = node.inputs[0].dtype is bool_
    # Of truth values: whether one is true, as a sum, so that there may be none; and whether none is
    # false.
    everything = truth and node.prim in (R.reduce_all, R.reduce_min, R.reduce_prod)
    given = w.emit("Not", x) if everything else x[0]
    given = w.emit("Cast", [given], to=6) if truth else given
    operator = "ReduceSum" if truth else _REDUCTIONS[name]
    found = w.emit(operator, [given, w.integers(axes)], keepdims=int(keepdims), noop_with_empty_axes=1)
    found = w.emit("Cast", [found], to=9) if truth else found
    return str(w.emit("Not", [found]) if everything else found)


def _binary(w: _Writer, node: Node, x: list[str]) -> str:
    name = node.op
    if node.inputs[0].dtype is bool_ and node.prim in (E.ge, E.gt, E.le, E.lt):
        x = [w.emit("Cast", [operand], to=6) for operand in x]
    if node.inputs[0].dtype is bool_ and node.prim in (E.maximum, E.minimum):
        return str(w.emit("Or" if node.prim is E.maximum else "And", x))
    return str(w.emit(_BINARY[name], x))


def _need_number(node: Node, *kinds: str) -> None:
    kind = node.inputs[0].dtype
    if kind.name not in kinds and not kind.is_floating:
        raise Unsupported(f"export: the operation {node.op} of {kind.name} has no form in ONNX")


def _select(w: _Writer, node: Node, x: list[str]) -> str:
    condition, zero, value = node.inputs
    if (
        condition.prim is E.le
        and condition.inputs[0] is value
        and all(n.is_constant and n.value.ndim == 0 and n.value == 0 for n in (condition.inputs[1], zero))
        and value.dtype.is_floating
        and value.shape == node.shape
    ):
        return str(w.emit("Relu", [x[2]]))
    return str(w.emit("Where", x))


def _cast(w: _Writer, node: Node, x: list[str], *, dtype: Any) -> str:
    return str(w.emit("Cast", x, to=_code(node.type)))


def _reshape(w: _Writer, node: Node, x: list[str], *, shape: Any) -> str:
    return str(w.emit("Reshape", [x[0], w.shape(shape)], allowzero=1))


def _broadcast(w: _Writer, node: Node, x: list[str], *, shape: Any) -> str:
    return str(w.emit("Expand", [x[0], w.shape(shape)]))


def _transpose(w: _Writer, node: Node, x: list[str], *, permutation: Any) -> str:
    return str(w.emit("Transpose", x, perm=tuple(permutation)))


def _concat(w: _Writer, node: Node, x: list[str], *, axis: int) -> str:
    return str(w.emit("Concat", x, axis=axis))


def _slice(w: _Writer, node: Node, x: list[str], *, starts: Any, stops: Any, steps: Any) -> str:
    if not starts:
        return str(w.emit("Identity", x))
    axes = w.integers(range(len(starts)))
    return str(w.emit("Slice", [x[0], w.shape(starts), w.shape(stops), axes, w.shape(steps)]))


def _reversed(w: _Writer, node: Node, x: list[str], *, axes: Any) -> str:
    ends = [w.integers([n] * len(axes)) for n in (-1, -(1 << 62), -1)]
    return (
        str(w.emit("Slice", [x[0], ends[0], ends[1], w.integers(axes), ends[2]]))
        if axes
        else str(w.emit("Identity", x))
    )


def _pad(w: _Writer, node: Node, x: list[str], *, low: Any, high: Any, interior: Any) -> str:
    if any(i != 0 for i in interior):
        raise Unsupported("export: padding between elements has no form in ONNX")
    if any(isinstance(p, Dim) for p in (*low, *high)):
        return str(w.emit("Pad", [x[0], w.shape((*low, *high)), x[1]]))
    found = x[0]
    if any(p > 0 for p in (*low, *high)):
        found = w.emit("Pad", [found, w.integers([max(p, 0) for p in (*low, *high)]), x[1]])
    if any(p < 0 for p in (*low, *high)):
        starts = w.integers([max(-p, 0) for p in low])
        stops = w.integers([p if p < 0 else _END for p in high])
        found = w.emit("Slice", [found, starts, stops, w.integers(range(len(low)))])
    return found if found != x[0] else str(w.emit("Identity", x))


def _take(w: _Writer, node: Node, x: list[str], *, axis: int, bounds: str = "wrap") -> str:
    return str(w.emit("Gather", x, axis=axis))


def _take_along(w: _Writer, node: Node, x: list[str], *, axis: int, bounds: str = "wrap") -> str:
    return str(w.emit("GatherElements", x, axis=axis))


def _gather_nd(w: _Writer, node: Node, x: list[str], *, bounds: str = "wrap") -> str:
    return str(w.emit("GatherND", [x[0], w.emit("Cast", [x[1]], to=7)]))


def _arg(operator: str) -> Callable[..., str]:
    def rule(w: _Writer, node: Node, x: list[str], *, axis: int) -> str:
        return str(w.emit("Cast", [w.emit(operator, x, axis=axis, keepdims=0)], to=_code(node.type)))

    return rule


def _cumsum(w: _Writer, node: Node, x: list[str], *, axis: int, reverse: bool) -> str:
    return str(w.emit("CumSum", [x[0], w.constant(np.int64(axis))], reverse=int(reverse)))


def _top_k(w: _Writer, node: Node, x: list[str], *, k: Any, axis: int, largest: bool) -> list[str]:
    _need_number(node, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    values, places = w.emit("TopK", [x[0], w.size(k)], outputs=2, axis=axis, largest=int(largest), sorted=1)
    return [values, w.emit("Cast", [places], to=6)]


def _sort(w: _Writer, node: Node, x: list[str], *, axis: int, descending: bool) -> list[str]:
    return _top_k(w, node, x, k=node.inputs[0].shape[axis], axis=axis, largest=descending)


def _softmax(operator: str) -> Callable[..., str]:
    return lambda w, node, x, *, axis: str(w.emit(operator, x, axis=axis))


def _moments(w: _Writer, node: Node, x: list[str], *, axes: Any) -> list[str]:
    where = w.integers(axes)
    kept = w.emit("ReduceMean", [x[0], where], keepdims=1, noop_with_empty_axes=1)
    centred = w.emit("Sub", [x[0], kept])
    mean = w.emit("ReduceMean", [x[0], where], keepdims=0, noop_with_empty_axes=1)
    return [mean, w.emit("ReduceMean", [w.emit("Mul", [centred, centred]), where], keepdims=0, noop_with_empty_axes=1)]


def _padding(padding: Any) -> list[int]:
    sizes = [low for low, _ in padding] + [high for _, high in padding]
    if any(isinstance(p, Dim) or p < 0 for p in sizes):
        raise Unsupported(f"export: the padding {padding} of a window has no form in ONNX")
    return sizes


def _conv(w: _Writer, node: Node, x: list[str], *, strides: Any, padding: Any, dilation: Any, groups: Any) -> str:
    return str(w.emit("Conv", x, strides=strides, pads=_padding(padding), dilations=dilation, group=int(groups)))


def _conv_transposed(
    w: _Writer, node: Node, x: list[str], *, input_shape: Any, strides: Any, padding: Any, dilation: Any, groups: Any
) -> str:
    kernel, given = node.inputs[1].shape[2:], node.inputs[0].shape[2:]
    extra = []
    for size, n, k, s, d, (low, high) in zip(input_shape[2:], given, kernel, strides, dilation, padding):
        rest = size - ((n - 1) * s + (k - 1) * d + 1 - low - high)
        if isinstance(rest, Dim):
            raise Unsupported("export: a transposed convolution to an open size has no form in ONNX")
        extra.append(rest)
    return str(
        w.emit(
            "ConvTranspose",
            x,
            strides=strides,
            pads=_padding(padding),
            dilations=dilation,
            group=int(groups),
            output_padding=extra,
        )
    )


def _window_max(w: _Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    _need_number(node, "int8", "uint8")
    return str(w.emit("MaxPool", x, kernel_shape=window, strides=strides, pads=_padding(padding)))


def _window_sum(w: _Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    if not node.dtype.is_floating:
        raise Unsupported("export: sums of windows of integers have no form in ONNX")
    mean = w.emit("AveragePool", x, kernel_shape=window, strides=strides, pads=_padding(padding), count_include_pad=1)
    return str(w.emit("Mul", [mean, w.scalar(int(np.prod(window)), node)]))


def _iota(w: _Writer, node: Node, x: list[str], *, shape: Any, axis: int, dtype: Any) -> str:
    length = w.emit("Squeeze", [w.size(shape[axis])])
    line = w.emit("Range", [w.constant(np.int64(0)), length, w.constant(np.int64(1))])
    line = w.emit("Cast", [line], to=_code(node.type))
    line = w.emit("Reshape", [line, w.shape([-1 if a == axis else 1 for a in range(len(shape))])])
    return str(w.emit("Expand", [line, w.shape(shape)]))


def _size(w: _Writer, node: Node, x: list[str], *, dim: Any, dtype: Any) -> str:
    return str(w.emit("Cast", [w.emit("Squeeze", [w.size(dim)])], to=_code(node.type)))


def _mod(w: _Writer, node: Node, x: list[str]) -> str:
    if node.dtype.is_floating:
        whole = w.emit("Floor", [w.emit("Div", x)])
        return str(w.emit("Sub", [x[0], w.emit("Mul", [whole, x[1]])]))
    return str(w.emit("Mod", x))


def _floor_div(w: _Writer, node: Node, x: list[str]) -> str:
    if node.dtype.is_floating:
        return str(w.emit("Floor", [w.emit("Div", x)]))
    return str(w.emit("Div", [w.emit("Sub", [x[0], w.emit("Mod", x)]), x[1]]))


def _trunc(w: _Writer, node: Node, x: list[str]) -> str:
    negative = w.emit("Less", [x[0], w.scalar(0, node)])
    return str(w.emit("Where", [negative, w.emit("Ceil", x), w.emit("Floor", x)]))


def _scaled(operator: str, factor: float) -> Callable[..., str]:
    return lambda w, node, x: str(w.emit("Mul", [w.emit(operator, x), w.scalar(factor, node)]))


def _is_finite(w: _Writer, node: Node, x: list[str]) -> str:
    return str(w.emit("Not", [w.emit("Or", [w.emit("IsNaN", x), w.emit("IsInf", x)])]))


def _call(w: _Writer, node: Node, x: list[str], *, graph: Graph, **_: Any) -> list[str]:
    return w.inlined(graph, x)


def _custom(w: _Writer, node: Node, x: list[str], *, count: int, **_: Any) -> list[str]:
    return x[:count]


def _cond(w: _Writer, node: Node, x: list[str], *, true: Graph, false: Graph) -> list[str]:
    def branch(graph: Graph) -> bytes:
        kinds = [o.type for o in graph.outputs]
        return w.body([], lambda: list(zip(w.inlined(graph, x[1:]), kinds)))

    count = len(true.outputs)
    found = w.emit("If", x[:1], outputs=count, then_branch=branch(true), else_branch=branch(false))
    return list(found) if count > 1 else [found]


def _while(w: _Writer, node: Node, x: list[str], *, test: Graph, body: Graph, carried: int) -> list[str]:
    round_, going, *inner = [w.fresh() for _ in range(2 + carried)]
    types = body.output_types

    def make() -> list[tuple[str, Any]]:
        values = w.inlined(body, [*inner, *x[carried:]])
        (goes_on,) = w.inlined(test, [*values, *x[carried:]])
        return [(goes_on, test.output_types[0]), *zip(values, types)]

    (first,) = w.inlined(test, x)
    given: list[tuple[str, Any]] = [(round_, _INT64), (going, _BOOL), *zip(inner, types)]
    found = w.emit("Loop", ["", first, *x[:carried]], outputs=carried, body=w.body(given, make))
    return list(found) if carried > 1 else [found]


_INT64, _BOOL = tensor_type((), from_any("int64")), tensor_type((), bool_)
_RULES: Mapping[str, Callable[..., Any]] = {
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "broadcast_to": _broadcast,
    "call": _call,
    "cast": _cast,
    "checked": lambda w, node, x, **_: x[0],
    "concat": _concat,
    "cond": _cond,
    "conv": _conv,
    "conv_grad_input": _conv_transposed,
    "cumsum": _cumsum,
    "custom": _custom,
    "floor_div": _floor_div,
    "fmod": lambda w, node, x: w.emit("Mod", x, fmod=1),
    "gather_nd": _gather_nd,
    "iota": _iota,
    "is_finite": _is_finite,
    "kept_call": lambda w, node, x, *, graph, count, **_: w.inlined(graph, x),
    "log10": _scaled("Log", float(np.log10(np.e))),
    "log1p": lambda w, node, x: w.emit("Log", [w.emit("Add", [x[0], w.scalar(1, node)])]),
    "log2": _scaled("Log", float(np.log2(np.e))),
    "log_softmax": _softmax("LogSoftmax"),
    "mod": _mod,
    "moments": _moments,
    "ne": lambda w, node, x: w.emit("Not", [w.emit("Equal", x)]),
    "exp2": lambda w, node, x: w.emit("Pow", [w.scalar(2, node), x[0]]),
    "expm1": lambda w, node, x: w.emit("Sub", [w.emit("Exp", x), w.scalar(1, node)]),
    "erfc": lambda w, node, x: w.emit("Sub", [w.scalar(1, node), w.emit("Erf", x)]),
    "pad": _pad,
    "recompute": _call,
    "reshape": _reshape,
    "reverse": _reversed,
    "rsqrt": lambda w, node, x: w.emit("Reciprocal", [w.emit("Sqrt", x)]),
    "select": _select,
    "size": _size,
    "slice": _slice,
    "softmax": _softmax("Softmax"),
    "sort": _sort,
    "take": _take,
    "take_along": _take_along,
    "top_k": _top_k,
    "transpose": _transpose,
    "trunc": _trunc,
    "while_loop": _while,
    "window_max": _window_max,
    "window_sum": _window_sum,
}
