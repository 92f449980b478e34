"""Export to ONNX (IR version 9, opset 20; ``file_format="ONNX"``): a rule for each primitive.

Each node of the staged graph becomes one or a few ONNX nodes (`_RULES`). A primitive without a rule
is opened into its definition; one without a definition is an error that names it. Graphs that nodes
call are inlined; `cond` becomes If and `while_loop` becomes Loop, whose graphs see the values
around them. `mycel.formats.onnx.export.operator_patterns` finds what several nodes are together, as
a normalisation, and `mycel.formats.onnx.export.writer` collects the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation.dtype import bool_, from_any
from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.graph_file import Model
from mycel.formats.onnx.export.operator_patterns import matched
from mycel.formats.onnx.export.writer import Writer, padding_of, type_code

__all__ = ["onnx_bytes"]

_MOST_BYTES = (1 << 31) - 1
_END = (1 << 31) - 1
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


def onnx_bytes(model: Model) -> bytes:
    """Return a model as the content of an ONNX file.

    Raises Unsupported, naming the operation, for a network that ONNX cannot express.
    """
    if model.writes:
        names = ", ".join(model.states[s].name for s, _ in model.writes)
        raise Unsupported(
            f"export: a call of the network changes {names}, which ONNX has no form for; use file_format='MINDIR'"
        )
    content = Writer(model, _write_node, matched).model()
    if len(content) > _MOST_BYTES:
        raise Unsupported(
            f"export: the ONNX file would have {len(content)} bytes, and 2 GiB is the most; use file_format='MINDIR'"
        )
    return content


def _write_node(w: Writer, node: Node, x: list[str]) -> Any:
    """Emit a node by its rule, or by its definition if it has none."""
    name = node.op
    if name in _UNARY:
        return w.emit(_UNARY[name], x)
    if name in _BINARY:
        return _binary(w, node, x)
    if name in _REDUCTIONS:
        return _reduce(w, node, x, **node.params)
    if name in _RULES:
        return _RULES[name](w, node, x, **node.params)
    return w.opened(node, x)


# The rules: (writer, node, names of the operands, parameters of the node) to the name of the
# result, or the names of the results.


def _reduce(w: Writer, node: Node, x: list[str], *, axes: Any, keepdims: bool) -> str:
    name = node.op
    truth = node.inputs[0].dtype is bool_
    # "Any" of truth values is a sum above zero, which is right for no values too; "all" is that
    # none is false.
    everything = truth and node.prim in (R.reduce_all, R.reduce_min, R.reduce_prod)
    given = w.emit("Not", x) if everything else x[0]
    given = w.emit("Cast", [given], to=6) if truth else given
    operator = "ReduceSum" if truth else _REDUCTIONS[name]
    found = w.emit(operator, [given, w.integers(axes)], keepdims=int(keepdims), noop_with_empty_axes=1)
    found = w.emit("Cast", [found], to=9) if truth else found
    return str(w.emit("Not", [found]) if everything else found)


def _binary(w: Writer, node: Node, x: list[str]) -> str:
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


def _cast(w: Writer, node: Node, x: list[str], *, dtype: Any) -> str:
    return str(w.emit("Cast", x, to=type_code(node.type)))


def _reshape(w: Writer, node: Node, x: list[str], *, shape: Any) -> str:
    open_ = [i for i, d in enumerate(shape) if isinstance(d, Dim)]
    if len(open_) == 1 and all(d > 0 for i, d in enumerate(shape) if i not in open_):
        # The one size that is open is what the others leave.
        return str(w.emit("Reshape", [x[0], w.integers([-1 if i in open_ else d for i, d in enumerate(shape)])]))
    return str(w.emit("Reshape", [x[0], w.shape(shape)], allowzero=1))


def _broadcast(w: Writer, node: Node, x: list[str], *, shape: Any) -> str:
    return str(w.emit("Expand", [x[0], w.shape(shape)]))


def _transpose(w: Writer, node: Node, x: list[str], *, permutation: Any) -> str:
    return str(w.emit("Transpose", x, perm=tuple(permutation)))


def _concat(w: Writer, node: Node, x: list[str], *, axis: int) -> str:
    return str(w.emit("Concat", x, axis=axis))


def _slice(w: Writer, node: Node, x: list[str], *, starts: Any, stops: Any, steps: Any) -> str:
    if not starts:
        return str(w.emit("Identity", x))
    axes = w.integers(range(len(starts)))
    return str(w.emit("Slice", [x[0], w.shape(starts), w.shape(stops), axes, w.shape(steps)]))


def _reversed(w: Writer, node: Node, x: list[str], *, axes: Any) -> str:
    ends = [w.integers([n] * len(axes)) for n in (-1, -(1 << 62), -1)]
    return (
        str(w.emit("Slice", [x[0], ends[0], ends[1], w.integers(axes), ends[2]]))
        if axes
        else str(w.emit("Identity", x))
    )


def _pad(w: Writer, node: Node, x: list[str], *, low: Any, high: Any, interior: Any) -> str:
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


def _take(w: Writer, node: Node, x: list[str], *, axis: int, bounds: str = "wrap") -> str:
    return str(w.emit("Gather", x, axis=axis))


def _take_along(w: Writer, node: Node, x: list[str], *, axis: int, bounds: str = "wrap") -> str:
    return str(w.emit("GatherElements", x, axis=axis))


def _gather_nd(w: Writer, node: Node, x: list[str], *, bounds: str = "wrap") -> str:
    return str(w.emit("GatherND", [x[0], w.emit("Cast", [x[1]], to=7)]))


def _arg(operator: str) -> Callable[..., str]:
    def rule(w: Writer, node: Node, x: list[str], *, axis: int) -> str:
        return str(w.emit("Cast", [w.emit(operator, x, axis=axis, keepdims=0)], to=type_code(node.type)))

    return rule


def _cumsum(w: Writer, node: Node, x: list[str], *, axis: int, reverse: bool) -> str:
    return str(w.emit("CumSum", [x[0], w.constant(np.int64(axis))], reverse=int(reverse)))


def _top_k(w: Writer, node: Node, x: list[str], *, k: Any, axis: int, largest: bool) -> list[str]:
    _need_number(node, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    values, places = w.emit("TopK", [x[0], w.size(k)], outputs=2, axis=axis, largest=int(largest), sorted=1)
    return [values, w.emit("Cast", [places], to=6)]


def _sort(w: Writer, node: Node, x: list[str], *, axis: int, descending: bool) -> list[str]:
    return _top_k(w, node, x, k=node.inputs[0].shape[axis], axis=axis, largest=descending)


def _softmax(operator: str) -> Callable[..., str]:
    return lambda w, node, x, *, axis: str(w.emit(operator, x, axis=axis))


def _moments(w: Writer, node: Node, x: list[str], *, axes: Any) -> list[str]:
    where = w.integers(axes)
    kept = w.emit("ReduceMean", [x[0], where], keepdims=1, noop_with_empty_axes=1)
    centred = w.emit("Sub", [x[0], kept])
    mean = w.emit("ReduceMean", [x[0], where], keepdims=0, noop_with_empty_axes=1)
    return [mean, w.emit("ReduceMean", [w.emit("Mul", [centred, centred]), where], keepdims=0, noop_with_empty_axes=1)]


def _padding(padding: Any) -> list[int]:
    sizes = padding_of(padding)
    if sizes is None:
        raise Unsupported(f"export: the padding {padding} of a window has no form in ONNX")
    return sizes


def _conv(w: Writer, node: Node, x: list[str], *, strides: Any, padding: Any, dilation: Any, groups: Any) -> str:
    return str(w.emit("Conv", x, strides=strides, pads=_padding(padding), dilations=dilation, group=int(groups)))


def _conv_transposed(
    w: Writer, node: Node, x: list[str], *, input_shape: Any, strides: Any, padding: Any, dilation: Any, groups: Any
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


def _int_matmul(w: Writer, node: Node, x: list[str], *, a_zero: int, b_zero: int) -> Any:
    if any(i.dtype.itemsize != 1 for i in node.inputs):
        return w.opened(node, x)
    zeros = [w.scalar(zero, i) for zero, i in zip((a_zero, b_zero), node.inputs)]
    return w.emit("MatMulInteger", [*x, *zeros])


def _int_conv(
    w: Writer, node: Node, x: list[str], *, strides: Any, padding: Any, dilation: Any, groups: Any, zero: int
) -> Any:
    pads = padding_of(padding)
    if any(i.dtype.itemsize != 1 for i in node.inputs) or pads is None:
        return w.opened(node, x)
    given = [*x, w.scalar(zero, node.inputs[0])]
    return w.emit("ConvInteger", given, strides=strides, pads=pads, dilations=dilation, group=int(groups))


def _window_max(w: Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    _need_number(node, "int8", "uint8")
    return str(w.emit("MaxPool", x, kernel_shape=window, strides=strides, pads=_padding(padding)))


def _window_sum(w: Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    if not node.dtype.is_floating:
        raise Unsupported("export: sums of windows of integers have no form in ONNX")
    mean = w.emit("AveragePool", x, kernel_shape=window, strides=strides, pads=_padding(padding), count_include_pad=1)
    return str(w.emit("Mul", [mean, w.scalar(int(np.prod(window)), node)]))


def _iota(w: Writer, node: Node, x: list[str], *, shape: Any, axis: int, dtype: Any) -> str:
    length = w.emit("Squeeze", [w.size(shape[axis])])
    line = w.emit("Range", [w.constant(np.int64(0)), length, w.constant(np.int64(1))])
    line = w.emit("Cast", [line], to=type_code(node.type))
    line = w.emit("Reshape", [line, w.shape([-1 if a == axis else 1 for a in range(len(shape))])])
    return str(w.emit("Expand", [line, w.shape(shape)]))


def _size(w: Writer, node: Node, x: list[str], *, dim: Any, dtype: Any) -> str:
    return str(w.emit("Cast", [w.emit("Squeeze", [w.size(dim)])], to=type_code(node.type)))


def _mod(w: Writer, node: Node, x: list[str]) -> str:
    if node.dtype.is_floating:
        whole = w.emit("Floor", [w.emit("Div", x)])
        return str(w.emit("Sub", [x[0], w.emit("Mul", [whole, x[1]])]))
    return str(w.emit("Mod", x))


def _floor_div(w: Writer, node: Node, x: list[str]) -> str:
    if node.dtype.is_floating:
        return str(w.emit("Floor", [w.emit("Div", x)]))
    return str(w.emit("Div", [w.emit("Sub", [x[0], w.emit("Mod", x)]), x[1]]))


def _trunc(w: Writer, node: Node, x: list[str]) -> str:
    negative = w.emit("Less", [x[0], w.scalar(0, node)])
    return str(w.emit("Where", [negative, w.emit("Ceil", x), w.emit("Floor", x)]))


def _scaled(operator: str, factor: float) -> Callable[..., str]:
    return lambda w, node, x: str(w.emit("Mul", [w.emit(operator, x), w.scalar(factor, node)]))


def _is_finite(w: Writer, node: Node, x: list[str]) -> str:
    return str(w.emit("Not", [w.emit("Or", [w.emit("IsNaN", x), w.emit("IsInf", x)])]))


def _call(w: Writer, node: Node, x: list[str], *, graph: Graph, **_: Any) -> list[str]:
    return w.inlined(graph, x)


def _custom(w: Writer, node: Node, x: list[str], *, count: int, **_: Any) -> list[str]:
    return x[:count]


def _cond(w: Writer, node: Node, x: list[str], *, true: Graph, false: Graph) -> list[str]:
    seen = w.seen_inside(x[1:], node.inputs[1:])

    def branch(graph: Graph) -> bytes:
        kinds = [o.type for o in graph.outputs]
        return w.body([], lambda: list(zip(w.inlined(graph, seen), kinds)))

    count = len(true.outputs)
    found = w.emit("If", x[:1], outputs=count, then_branch=branch(true), else_branch=branch(false))
    return list(found) if count > 1 else [found]


def _while(w: Writer, node: Node, x: list[str], *, test: Graph, body: Graph, carried: int) -> list[str]:
    round_, going, *inner = [w.fresh() for _ in range(2 + carried)]
    types, seen = body.output_types, w.seen_inside(x[carried:], node.inputs[carried:])

    def make() -> list[tuple[str, Any]]:
        values = w.inlined(body, [*inner, *seen])
        (goes_on,) = w.inlined(test, [*values, *seen])
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
    "int_conv": _int_conv,
    "int_matmul": _int_matmul,
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
    "select": lambda w, node, x: w.emit("Where", x),
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
