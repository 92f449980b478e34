"""Networks of ordinary layers as MindSpore's own MindIR files: `export` with
``for_mindspore=True``.

A file is one `ModelProto` message: `primitives` are operators with their attributes, nodes of the
graph apply them (``REF::name``) to values by name, and constants are nodes, too. Operators whose
`prim_type` is PRIMITIVE_FUNCTION take all their arguments as inputs, in the order of MindSpore's
definition. Sizes must be fixed. A primitive that is not in `_RULES` or the tables is an error that
names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel.base.errors import Unsupported
from mycel.base.wire import field
from mycel.ir.graph import Graph, Node
from mycel.ir.types import TensorType
from mycel.prims import elementwise as E
from mycel.prims.base import GET_ITEM
from mycel.train.graph_file import Model

__all__ = ["mindspore_bytes"]

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
}
_INT64, _STRING, _BOOL, _TENSORS, _TUPLE = 7, 8, 9, 19, 20
_OPERATORS = {
    "abs": "Abs",
    "add": "Add",
    "ceil": "Ceil",
    "cos": "Cos",
    "div": "Div",
    "eq": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "ge": "GreaterEqual",
    "gt": "Greater",
    "le": "LessEqual",
    "log": "Log",
    "logical_and": "LogicalAnd",
    "logical_not": "LogicalNot",
    "logical_or": "LogicalOr",
    "lt": "Less",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "mul": "Mul",
    "ne": "NotEqual",
    "neg": "Neg",
    "pow": "Pow",
    "rsqrt": "Rsqrt",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "sub": "Sub",
    "tanh": "Tanh",
}


def mindspore_bytes(model: Model) -> bytes:
    """Return a model as the content of a file that MindSpore 2.10 loads.

    Raises Unsupported, naming the operation, for a model outside of the subset.
    """
    if model.writes or any(s.kind == "generator" for s in model.states):
        raise Unsupported("export: for_mindspore takes networks that change no state; call set_train(False) before")
    if any(not isinstance(t, TensorType) or not t.is_static for t in model.graph.input_types):
        raise Unsupported("export: for_mindspore takes fixed sizes only")
    return _Writer(model).model()


def _attribute(name: str, value: Any) -> bytes:
    """Return an encoded AttributeProto."""
    content = field(1, name) if name else b""
    if isinstance(value, bool):
        return content + field(3, int(value)) + field(16, _BOOL)
    if isinstance(value, int):
        return content + field(3, value) + field(16, _INT64)
    if isinstance(value, str):
        return content + field(5, value) + field(16, _STRING)
    if isinstance(value, tuple):
        parts = [field(17, field(10, int(v)) + field(16, _INT64)) for v in value]
        return content + field(16, _TUPLE) + b"".join(parts)
    return content + field(12, _tensor("", np.asarray(value))) + field(16, _TENSORS)


def _tensor(name: str, array: Any) -> bytes:
    content = b"".join([field(1, d) for d in array.shape]) + field(2, _code(str(array.dtype)))
    return content + (field(7, name) if name else b"") + field(9, np.ascontiguousarray(array).tobytes())


def _type(kind: TensorType) -> bytes:
    return b"".join([field(1, int(d)) for d in kind.shape]) + field(2, _code(kind.dtype.name))


def _code(name: str) -> int:
    if name not in _TYPES:
        raise Unsupported(f"export: for_mindspore has no element type {name}")
    return _TYPES[name]


class _Writer:
    def __init__(self, model: Model) -> None:
        self.source, self.graph_name = model, f"mycel_{model.graph.name}"
        self.nodes: list[tuple[str, list[str], bytes]] = []
        self.primitives: dict[bytes, str] = {}
        self.definitions: list[bytes] = []
        self.names: dict[Node, Any] = {}
        self.constants: dict[bytes, str] = {}

    def model(self) -> bytes:
        graph, states = self.source.graph, self.source.states
        given = len(graph.inputs) - len(states)
        inputs, parameters = [], []
        for i, node in enumerate(graph.inputs[:given]):
            self.names[node] = f"{self.graph_name}:x{i}"
            inputs.append(field(5, field(1, self.names[node]) + field(2, _type(node.type))))
        for node, state in zip(graph.inputs[given:], states):
            self.names[node] = f"{self.graph_name}:{state.name}"
            parameters.append(field(3, _tensor(self.names[node], state.value) + field(13, state.name)))
        self.run(graph)
        results = self.results(self.source.result)
        last = (
            self.apply("MakeTuple", [self.names[n] for n in results], None, function=False) if len(results) != 1 else ""
        )
        if not last:
            last = self.apply(
                "Reshape", [self.names[results[0]], self.constant(tuple(results[0].shape))], results[0].type
            )
        output = field(6, field(1, last) + (field(2, _type(results[0].type)) if len(results) == 1 else b""))
        content = b"".join([field(1, n) for n in self.used(last)]) + field(2, self.graph_name)
        content += b"".join(parameters) + b"".join(inputs) + output
        head = field(1, "1.1") + field(2, "MindSpore") + field(5, "2.10.0") + field(7, content) + field(10, 1)
        return head + b"".join([field(12, p) for p in self.definitions]) + field(13, 3)

    def used(self, last: str) -> list[bytes]:
        """Return the nodes that the value `last` depends on."""
        wanted, kept = {last}, []
        for name, inputs, content in reversed(self.nodes):
            if name in wanted:
                wanted.update(inputs)
                kept.append(content)
        return kept[::-1]

    def results(self, form: Any) -> list[Node]:
        graph = self.source.graph
        kind: str
        content: Any
        ((kind, content),) = form.items() if isinstance(form, dict) else (("", ()),)
        if kind == "tensor":
            return [graph.outputs[content]]
        if kind in ("tuple", "list"):
            return [n for part in content for n in self.results(part)]
        raise Unsupported("export: for_mindspore takes networks that return tensors and tuples of them")

    def run(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node not in self.names:
                self.node(node)

    def node(self, node: Node) -> None:
        name, params = node.op, node.params
        if node.is_constant:
            self.names[node] = self.constant(params["value"].array)
            return
        if node.prim is GET_ITEM:
            self.names[node] = self.names[node.inputs[0]][params["index"]]
            return
        x = [self.names[i] for i in node.inputs]
        if name in _OPERATORS:
            self.names[node] = self.apply(_OPERATORS[name], x, node.type)
        elif name in _RULES:
            self.names[node] = _RULES[name](self, node, x, **params)
        else:
            what = f"operator {params['program'].name}" if "program" in params else f"operation {name}"
            raise Unsupported(f"export: for_mindspore has no form for the {what}")

    def apply(self, operator: str, inputs: Iterable[str], kind: Any, function: bool = True, **attributes: Any) -> str:
        """Add a node and return the name of its value.

        `operator` is the name in MindSpore, with `attributes`, and `inputs` are names of values.
        `kind` is the type of the result, None to leave it out. `function` marks an operator that
        takes all its arguments as inputs.
        """
        described = [field(3, _attribute(k, v)) for k, v in attributes.items()]
        content = field(2, operator) + b"".join(described) + field(5, 2 if function else 1)
        if content not in self.primitives:
            self.primitives[content] = f"{operator}:{len(self.primitives) + 1}"
            self.definitions.append(field(1, self.primitives[content]) + content)
        name, operands = f"{self.graph_name}:v{len(self.nodes)}", list(inputs)
        made = b"".join([field(1, i) for i in operands]) + field(2, name) + field(3, name)
        made += field(4, f"REF::{self.primitives[content]}")
        if kind is not None:
            made += field(5, field(1, "shape") + field(12, _type(kind)) + field(16, _TENSORS))
        self.nodes.append((name, operands, made + field(7, "Default")))
        return name

    def constant(self, value: Any) -> str:
        content = _attribute("value", value)
        if content not in self.constants:
            name = self.constants[content] = f"ValueNode_{len(self.constants)}"
            self.nodes.append((name, [], field(2, name) + field(3, name) + field(4, "Constant") + field(5, content)))
        return self.constants[content]


def _constants(w: _Writer, *values: Any) -> list[str]:
    return [w.constant(v) for v in values]


def _matmul(w: _Writer, node: Node, x: list[str]) -> str:
    a, b = node.inputs
    if a.type.rank != b.type.rank or a.type.rank < 2 or a.shape[:-2] != b.shape[:-2]:
        raise Unsupported(
            "export: for_mindspore takes products of matrices, or of as many matrices as there are on the other side"
        )
    return w.apply("MatMul" if a.type.rank == 2 else "BatchMatMul", [*x, *_constants(w, False, False)], node.type)


def _select(w: _Writer, node: Node, x: list[str]) -> str:
    condition, zero, value = node.inputs
    if (
        condition.prim is E.le
        and condition.inputs[0] is value
        and all(n.is_constant and n.value.ndim == 0 and n.value == 0 for n in (condition.inputs[1], zero))
    ):
        return w.apply("ReLU", [x[2]], node.type)
    shaped = [
        n if i.shape == node.shape else w.apply("BroadcastTo", [n, w.constant(tuple(node.shape))], node.type)
        for n, i in zip(x, node.inputs)
    ]
    return w.apply("Select", shaped, node.type)


def _reduced(operator: str, *more: Any) -> Callable[..., str]:
    return lambda w, node, x, *, axes, keepdims: w.apply(
        operator, [x[0], *_constants(w, tuple(axes), bool(keepdims), *more)], node.type
    )


def _moments(w: _Writer, node: Node, x: list[str], *, axes: Any) -> list[str]:
    whole, kind = node.inputs[0].type, node.type[0]
    kept = whole.with_shape(tuple([1 if a in axes else d for a, d in enumerate(whole.shape)]))
    mean = w.apply("ReduceMean", [x[0], *_constants(w, tuple(axes), True)], kept)
    centred = w.apply("Sub", [x[0], mean], whole)
    variance = w.apply("ReduceMean", [w.apply("Mul", [centred] * 2, whole), *_constants(w, tuple(axes), False)], kind)
    return [w.apply("Reshape", [mean, w.constant(tuple(kind.shape))], kind), variance]


def _plane(padding: Sequence[Any], what: str) -> tuple[int, ...]:
    if len(padding) != 2:
        raise Unsupported(f"export: for_mindspore takes {what} of two dimensions only")
    return tuple(int(p) for pair in padding for p in pair)


def _conv(w: _Writer, node: Node, x: list[str], *, strides: Any, padding: Any, dilation: Any, groups: Any) -> str:
    pads, weight = _plane(padding, "convolutions"), node.inputs[1].shape
    attributes = {
        "kernel_size": tuple(weight[2:]),
        "mode": 1,
        "out_channel": int(weight[0]),
        "pad": pads,
        "pad_mode": "pad",
        "format": "NCHW",
        "pad_list": pads,
        "groups": int(groups),
        "stride": (1, 1, *strides),
        "group": int(groups),
        "dilation": (1, 1, *dilation),
    }
    return w.apply("Conv2D", x, node.type, function=False, **attributes)


def _max_pool(w: _Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    if any(_plane(padding, "pools")):
        raise Unsupported("export: for_mindspore takes pools without padding only")
    attributes = {"pad_mode": "VALID", "kernel_size": (1, 1, *window), "format": "NCHW", "strides": (1, 1, *strides)}
    return w.apply("MaxPool", x, node.type, function=False, **attributes)


def _sum_pool(w: _Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    if any(_plane(padding, "pools")) or not node.dtype.is_floating:
        raise Unsupported("export: for_mindspore takes pools of floating type without padding only")
    mean = w.apply("AvgPool", [x[0], *_constants(w, tuple(window), tuple(strides), 2, 0)], node.type)
    return w.apply("Mul", [mean, w.constant(np.asarray(np.prod(window), node.dtype.numpy))], node.type)


def _shaped(operator: str, title: str) -> Callable[..., str]:
    return lambda w, node, x, **params: w.apply(operator, [x[0], w.constant(tuple(params[title]))], node.type)


_RULES: Mapping[str, Callable[..., Any]] = {
    "broadcast_to": _shaped("BroadcastTo", "shape"),
    "checked": lambda w, node, x, **_: x[0],
    "conv": _conv,
    "identity": lambda w, node, x: x[0],
    "custom": lambda w, node, x, *, count, **_: x[:count],
    "log_softmax": lambda w, node, x, *, axis: w.apply("LogSoftmax", [x[0], w.constant(axis)], node.type),
    "matmul": _matmul,
    "moments": _moments,
    "reduce_max": _reduced("ReduceMax"),
    "reduce_min": _reduced("ReduceMin"),
    "reduce_sum": _reduced("ReduceSum", False),
    "reshape": _shaped("Reshape", "shape"),
    "select": _select,
    "softmax": lambda w, node, x, *, axis: w.apply("Softmax", [x[0], w.constant((axis,))], node.type),
    "stop_gradient": lambda w, node, x: x[0],
    "transpose": _shaped("Transpose", "permutation"),
    "window_max": _max_pool,
    "window_sum": _sum_pool,
}
