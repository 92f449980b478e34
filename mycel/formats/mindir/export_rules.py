"""Export to MindIR, MindSpore's format: a rule for each primitive.

Each node of the staged graph becomes one or a few of MindSpore's operators (`_RULES` and the
tables). A primitive without a rule is opened into its definition; one without a definition is an
error that names it. `mycel.formats.mindir.writer` collects the nodes and writes control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.loops.programs import Program
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.custom_derivatives import Rule, all_nodes
from mycel._src.foundation.dtype import bool_
from mycel._src.foundation.dtype_codes import MINDSPORE, ONNX
from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.graph_file import Model
from mycel.formats.mindir.messages import STOPS_GRADIENT
from mycel.formats.mindir.writer import Writer

__all__ = ["mindir_parts"]

_OPERATORS = {
    "abs": "Abs",
    "acos": "ACos",
    "acosh": "Acosh",
    "add": "Add",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atan2": "Atan2",
    "atanh": "Atanh",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "digamma": "Digamma",
    "div": "Div",
    "eq": "Equal",
    "erf": "Erf",
    "erfc": "Erfc",
    "erfinv": "Erfinv",
    "exp": "Exp",
    "expm1": "Expm1",
    "floor": "Floor",
    "floor_div": "FloorDiv",
    "ge": "GreaterEqual",
    "gt": "Greater",
    "is_finite": "IsFinite",
    "is_inf": "IsInf",
    "is_nan": "IsNan",
    "le": "LessEqual",
    "lgamma": "Lgamma",
    "log": "Log",
    "log1p": "Log1p",
    "logical_and": "LogicalAnd",
    "logical_not": "LogicalNot",
    "logical_or": "LogicalOr",
    "logical_xor": "LogicalXor",
    "lt": "Less",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "mod": "FloorMod",
    "mul": "Mul",
    "ne": "NotEqual",
    "neg": "Neg",
    "pow": "Pow",
    "rint": "Rint",
    "rsqrt": "Rsqrt",
    "shift_left": "LeftShift",
    "shift_right": "RightShift",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "sub": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "trunc": "Trunc",
}


def mindir_parts(model: Model, lossless: bool = False) -> list[bytes | memoryview]:
    """Return a model as the content, in parts, of a file that MindSpore 2.10 loads.

    Raises Unsupported, naming the operation, for a model that MindIR cannot express. With
    `lossless` what MindSpore leaves out of its files is refused as well: arguments that are
    containers or numbers, what was decided for sizes that are open, and derivatives and operators
    that the program defines.
    """
    if any(s.kind == "generator" for s in model.states):
        raise Unsupported(
            "export: the network draws random numbers, which MindIR has no form for; export it outside of training"
        )
    if lossless:
        if not all(type(form) is dict and "argument" in form for form in model.arguments["tuple"]):
            raise Unsupported("export: MindIR takes networks whose arguments are tensors, each by itself")
        if model.conditions:
            raise Unsupported("export: MindIR does not hold for which of the open sizes the network was decided")
        if any(isinstance(v, (Rule, Program)) for n in all_nodes(model.graph) for v in n.params.values()):
            raise Unsupported("export: MindIR does not hold derivatives and operators that a program defines")
    return Writer(model, _write_node).parts()


def _write_node(w: Writer, node: Node, x: list[str]) -> Any:
    """Write a node by its rule, or by its definition if it has none."""
    name = node.op
    if name in _OPERATORS:
        return w.apply(_OPERATORS[name], x, node.type)
    if name in _RULES:
        return _RULES[name](w, node, x, **node.params)
    return w.opened(node, x)


def _constants(w: Writer, *values: Any) -> list[str]:
    return [w.constant(v) for v in values]


def _kind(w: Writer, kind: Any) -> str:
    if kind.dtype.kind == "c" or kind.dtype.name not in ONNX:
        raise Unsupported(f"export: MindIR has no conversion to {kind.dtype.name}")
    return w.constant(MINDSPORE[kind.dtype.name])


def _stop_gradient(w: Writer, node: Node, x: list[str]) -> str:
    attributes = {"side_effect_propagate": 1, STOPS_GRADIENT: True}
    return w.apply("Depend", [x[0], x[0]], node.type, function=False, **attributes)


def _cast(w: Writer, node: Node, x: list[str], *, dtype: Any) -> str:
    return w.apply("Cast", [x[0], _kind(w, node.type)], node.type)


def _fitted(w: Writer, name: str, kind: TensorType, shape: Sequence[Any]) -> str:
    if tuple(kind.shape) == tuple(shape):
        return name
    return w.apply("BroadcastTo", [name, w.shape(shape)], kind.with_shape(tuple(shape)))


def _matmul(w: Writer, node: Node, x: list[str]) -> str:
    a, b = [i.type for i in node.inputs]
    if a.rank < 2 or b.rank < 2:
        raise Unsupported("export: MindIR takes products of matrices; give vectors a further axis")
    more = _constants(w, False, False)
    if a.rank == b.rank == 2:
        return w.apply("MatMul", [*x, *more], node.type)
    lead = node.shape[:-2]
    fitted = [_fitted(w, n, k, (*lead, *k.shape[-2:])) for n, k in zip(x, (a, b))]
    return w.apply("BatchMatMul", [*fitted, *more], node.type)


def _is_zero(node: Node) -> bool:
    return bool(node.is_constant and node.value.ndim == 0 and node.value == 0)


def _select(w: Writer, node: Node, x: list[str]) -> str:
    condition, zero, value = node.inputs
    if (
        condition.prim is E.le
        and condition.inputs[0] is value
        and _is_zero(condition.inputs[1])
        and _is_zero(zero)
        and value.dtype.is_floating
        and value.shape == node.shape
    ):
        return w.apply("ReLU", [x[2]], node.type)
    return w.apply("Select", [_fitted(w, n, i.type, node.shape) for n, i in zip(x, node.inputs)], node.type)


def _reduced(operator: str, *more: Any) -> Callable[..., str]:
    def rule(w: Writer, node: Node, x: list[str], *, axes: Any, keepdims: bool) -> str:
        if not axes:
            return x[0]
        return w.apply(operator, [x[0], *_constants(w, tuple(axes), bool(keepdims), *more)], node.type)

    return rule


def _product(w: Writer, node: Node, x: list[str], **params: Any) -> str:
    found = _reduced("ReduceProd")(w, node, x, **params)
    # MindSpore's products of integers are int64.
    return found if node.dtype.is_floating else _cast(w, node, [found], dtype=node.dtype)


def _moments(w: Writer, node: Node, x: list[str], *, axes: Any) -> list[str]:
    whole, kind = node.inputs[0].type, node.type[0]
    kept = whole.with_shape(tuple([1 if a in axes else d for a, d in enumerate(whole.shape)]))
    mean = w.apply("ReduceMean", [x[0], *_constants(w, tuple(axes), True)], kept)
    centred = w.apply("Sub", [x[0], mean], whole)
    variance = w.apply("ReduceMean", [w.apply("Mul", [centred] * 2, whole), *_constants(w, tuple(axes), False)], kind)
    return [w.apply("Reshape", [mean, w.shape(kind.shape)], kind), variance]


# Windows: of one dimension they are planes of one row.


def _planes(node: Node, padding: Any, what: str) -> int:
    """Return how many axes a window lacks to two."""
    if len(padding) not in (1, 2) or any(isinstance(p, Dim) for pair in padding for p in pair):
        raise Unsupported(f"export: MindIR takes {what} of one or two dimensions")
    return 2 - len(padding)


def _plane(w: Writer, name: str, kind: TensorType, lacks: int) -> tuple[str, TensorType]:
    if not lacks:
        return name, kind
    shape = (*kind.shape[:2], 1, *kind.shape[2:])
    made = kind.with_shape(shape)
    return w.apply("Reshape", [name, w.shape(shape)], made), made


def _line(w: Writer, name: str, node: Node, lacks: int) -> str:
    return w.apply("Reshape", [name, w.shape(node.shape)], node.type) if lacks else name


def _whole(values: Sequence[int], lacks: int) -> tuple[int, ...]:
    return (*(1,) * lacks, *(int(v) for v in values))


def _conv_attributes(weight: Any, strides: Any, padding: Any, dilation: Any, groups: Any, lacks: int) -> dict[str, Any]:
    if any(p < 0 for pair in padding for p in pair):
        raise Unsupported(f"export: MindIR takes no convolution with the padding {padding}")
    pads = (*(0, 0) * lacks, *(int(p) for pair in padding for p in pair))
    return {
        "kernel_size": _whole(weight[2:], lacks),
        "mode": 1,
        "out_channel": int(weight[0]),
        "pad": pads,
        "pad_mode": "pad",
        "format": "NCHW",
        "pad_list": pads,
        "groups": int(groups),
        "stride": (1, 1, *_whole(strides, lacks)),
        "group": int(groups),
        "dilation": (1, 1, *_whole(dilation, lacks)),
    }


def _conv(w: Writer, node: Node, x: list[str], *, strides: Any, padding: Any, dilation: Any, groups: Any) -> str:
    lacks = _planes(node, padding, "convolutions")
    given = [_plane(w, n, i.type, lacks)[0] for n, i in zip(x, node.inputs)]
    attributes = _conv_attributes(node.inputs[1].shape, strides, padding, dilation, groups, lacks)
    kind = node.type.with_shape((*node.shape[:2], *(1,) * lacks, *node.shape[2:]))
    return _line(w, w.apply("Conv2D", given, kind, function=False, **attributes), node, lacks)


def _conv_grad_input(w: Writer, node: Node, x: list[str], *, input_shape: Any, **params: Any) -> str:
    lacks = _planes(node, params["padding"], "transposed convolutions")
    given = [_plane(w, n, i.type, lacks)[0] for n, i in zip(x, node.inputs)]
    attributes = _conv_attributes(node.inputs[1].shape, **params, lacks=lacks)
    kind = node.type.with_shape((*node.shape[:2], *(1,) * lacks, *node.shape[2:]))
    given.append(w.shape(kind.shape))
    return _line(w, w.apply("Conv2DBackpropInput", given, kind, function=False, **attributes), node, lacks)


def _conv_grad_weight(w: Writer, node: Node, x: list[str], *, weight_shape: Any, **params: Any) -> str:
    lacks = _planes(node, params["padding"], "gradients of convolutions")
    image, ct = [_plane(w, n, i.type, lacks)[0] for n, i in zip(x, node.inputs)]
    attributes = _conv_attributes(weight_shape, **params, lacks=lacks)
    kind = node.type.with_shape((*node.shape[:2], *(1,) * lacks, *node.shape[2:]))
    given = [ct, image, w.shape(kind.shape)]
    return _line(w, w.apply("Conv2DBackpropFilter", given, kind, function=False, **attributes), node, lacks)


def _padded(w: Writer, name: str, kind: TensorType, low: Any, high: Any, value: str) -> tuple[str, TensorType]:
    """Write padding by a value; sizes are of each axis, and at least 0."""
    if not any((*low, *high)):
        return name, kind
    pairs = np.array([p for pair in reversed(list(zip(low, high))) for p in pair], np.int64)
    made = kind.with_shape(tuple([d + a + b for d, a, b in zip(kind.shape, low, high)]))
    given = [name, w.constant(pairs), value]
    return w.apply("PadV3", given, made, function=False, mode="constant", paddings_contiguous=True), made


def _around(padding: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if any(p < 0 for pair in padding for p in pair):
        raise Unsupported(f"export: MindIR takes no pool with the padding {padding}")
    return (0, 0, *(int(a) for a, _ in padding)), (0, 0, *(int(b) for _, b in padding))


def _window_max(w: Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    if not node.dtype.is_floating:
        return str(w.opened(node, x))
    lacks = _planes(node, padding, "pools")
    lowest = w.scalar(-np.inf, node)
    name, kind = _padded(w, x[0], node.inputs[0].type, *_around(padding), lowest)
    name, kind = _plane(w, name, kind, lacks)
    made = node.type.with_shape((*node.shape[:2], *(1,) * lacks, *node.shape[2:]))
    sizes = {"kernel_size": (1, 1, *_whole(window, lacks)), "strides": (1, 1, *_whole(strides, lacks))}
    return _line(
        w, w.apply("MaxPool", [name], made, function=False, pad_mode="VALID", format="NCHW", **sizes), node, lacks
    )


def _window_sum(w: Writer, node: Node, x: list[str], *, window: Any, strides: Any, padding: Any) -> str:
    if not node.dtype.is_floating:
        return str(w.opened(node, x))
    lacks = _planes(node, padding, "pools")
    name, kind = _padded(w, x[0], node.inputs[0].type, *_around(padding), w.scalar(0, node))
    name, kind = _plane(w, name, kind, lacks)
    made = node.type.with_shape((*node.shape[:2], *(1,) * lacks, *node.shape[2:]))
    sizes = _constants(w, _whole(window, lacks), _whole(strides, lacks), 2, 0)
    mean = w.apply("AvgPool", [name, *sizes], made)
    return _line(w, w.apply("Mul", [mean, w.scalar(np.prod(window), node)], made), node, lacks)


# Arrangement.


def _shaped(operator: str, title: str) -> Callable[..., str]:
    return lambda w, node, x, **params: w.apply(operator, [x[0], w.shape(params[title])], node.type)


def _concat(w: Writer, node: Node, x: list[str], *, axis: int) -> str:
    parts = w.apply("MakeTuple", x, tuple([i.type for i in node.inputs]), function=False)
    return w.apply("Concat", [parts, w.constant(int(axis))], node.type)


def _slice(w: Writer, node: Node, x: list[str], *, starts: Any, stops: Any, steps: Any) -> str:
    if not starts:
        return x[0]
    masks = _constants(w, 0, 0, 0, 0, 0)
    return w.apply("StridedSlice", [x[0], *[w.shape(s) for s in (starts, stops, steps)], *masks], node.type)


def _pad(w: Writer, node: Node, x: list[str], *, low: Any, high: Any, interior: Any) -> str:
    name, kind = x[0], node.inputs[0].type
    if any(isinstance(p, Dim) for p in (*low, *high)) or not kind.is_static and any(interior):
        raise Unsupported("export: MindIR takes no padding of an open size")
    for axis, gap in enumerate(interior):
        if gap and kind.shape[axis] > 1:
            name, kind = _spread(w, name, kind, axis, gap, x[1])
    name, kind = _padded(w, name, kind, [max(p, 0) for p in low], [max(p, 0) for p in high], x[1])
    if any(p < 0 for p in (*low, *high)):
        starts = tuple([max(-p, 0) for p in low])
        stops = tuple([d + min(p, 0) for d, p in zip(kind.shape, high)])
        ends = [w.shape(starts), w.shape(stops), w.shape((1,) * len(starts)), *_constants(w, 0, 0, 0, 0, 0)]
        name = w.apply("StridedSlice", [name, *ends], node.type)
    return name


def _spread(w: Writer, name: str, kind: TensorType, axis: int, gap: int, value: str) -> tuple[str, TensorType]:
    """Write `gap` values between the elements along an axis."""
    count = kind.shape[axis]
    apart = kind.with_shape((*kind.shape[: axis + 1], 1, *kind.shape[axis + 1 :]))
    name = w.apply("Reshape", [name, w.shape(apart.shape)], apart)
    after = [gap if a == axis + 1 else 0 for a in range(apart.rank)]
    name, _ = _padded(w, name, apart, [0] * apart.rank, after, value)
    joined = kind.with_shape((*kind.shape[:axis], count * (gap + 1), *kind.shape[axis + 1 :]))
    name = w.apply("Reshape", [name, w.shape(joined.shape)], joined)
    made = kind.with_shape((*kind.shape[:axis], count * (gap + 1) - gap, *kind.shape[axis + 1 :]))
    ends = [w.shape((0,) * kind.rank), w.shape(made.shape), w.shape((1,) * kind.rank), *_constants(w, 0, 0, 0, 0, 0)]
    return w.apply("StridedSlice", [name, *ends], made), made


def _reverse(w: Writer, node: Node, x: list[str], *, axes: Any) -> str:
    return w.apply("ReverseV2", [x[0], w.constant(tuple(axes))], node.type) if axes else x[0]


def _iota(w: Writer, node: Node, x: list[str], *, shape: Any, axis: int, dtype: Any) -> str:
    line = [d if a == axis else 1 for a, d in enumerate(shape)]
    if node.type.is_static:
        values = np.arange(shape[axis]).astype(node.dtype.numpy).reshape(line)
        return w.constant(np.ascontiguousarray(np.broadcast_to(values, shape)))
    length = tensor_type((shape[axis],), node.dtype)
    found = w.apply("Range", [w.constant(0), w.size(shape[axis]), w.constant(1), w.constant(1 << 40)], None)
    found = w.apply("Cast", [found, _kind(w, node.type)], length)
    if len(shape) > 1:
        found = w.apply("Reshape", [found, w.shape(line)], node.type.with_shape(tuple(line)))
    return _fitted(w, found, node.type.with_shape(tuple(line)), shape)


def _size(w: Writer, node: Node, x: list[str], *, dim: Any, dtype: Any) -> str:
    return w.apply("ScalarToTensor", [w.size(dim), _kind(w, node.type)], node.type)


# Indices, order.


def _take(w: Writer, node: Node, x: list[str], *, axis: int, bounds: str = "wrap") -> str:
    return w.apply("Gather", [*x, *_constants(w, int(axis), 0)], node.type)


def _take_along(w: Writer, node: Node, x: list[str], *, axis: int, bounds: str = "wrap") -> str:
    return w.apply("GatherD", [x[0], w.constant(int(axis)), x[1]], node.type)


def _scatter(w: Writer, node: Node, x: list[str], *, mode: str, bounds: str = "wrap") -> str:
    words = {"set": "Update", "add": "Add", "mul": "Mul", "min": "Min", "max": "Max"}
    if mode not in words:
        raise Unsupported(f"export: MindIR has no writing of elements by {mode}")
    return w.apply(f"TensorScatter{words[mode]}", [x[0], _front(w, node, x[1]), x[2]], node.type)


def _gather_nd(w: Writer, node: Node, x: list[str], *, bounds: str = "wrap") -> str:
    return w.apply("GatherNd", [x[0], _front(w, node, x[1])], node.type)


def _front(w: Writer, node: Node, name: str) -> str:
    """Write the indices of places counted from the front."""
    whole, indices = node.inputs[0].type, node.inputs[1]
    depth = indices.shape[-1]
    if indices.is_constant and (indices.value >= 0).all() or not indices.dtype.is_signed:
        return name
    if isinstance(depth, Dim) or any(isinstance(d, Dim) for d in whole.shape[:depth]):
        return name
    sizes = w.constant(np.array(whole.shape[:depth], indices.dtype.numpy))
    below = w.apply("Less", [name, w.scalar(0, indices)], indices.type.with_dtype(bool_))
    below = w.apply("Cast", [below, _kind(w, indices.type)], indices.type)
    return w.apply("Add", [name, w.apply("Mul", [below, sizes], indices.type)], indices.type)


def _last(w: Writer, name: str, kind: TensorType, axis: int) -> str:
    """Write the exchange of an axis with the last one."""
    order = list(range(kind.rank))
    order[axis], order[-1] = order[-1], order[axis]
    if order == sorted(order):
        return name
    return w.apply("Transpose", [name, w.constant(tuple(order))], None)


def _top_k(w: Writer, node: Node, x: list[str], *, k: Any, axis: int, largest: bool) -> list[str]:
    kind, values = node.inputs[0].type, node.type[0]
    given = _last(w, x[0] if largest else w.apply("Neg", x, kind), kind, axis)
    both = w.apply("TopK", [given, w.size(k)], None, function=False, sorted=True)
    found, places = [_last(w, n, values, axis) for n in w.several(both, [None, None])]
    return [found if largest else w.apply("Neg", [found], values), places]


def _sort(w: Writer, node: Node, x: list[str], *, axis: int, descending: bool) -> list[str]:
    both = w.apply("Sort", x, node.type, function=False, axis=int(axis), descending=bool(descending))
    return w.several(both, node.type)


def _arg(operator: str) -> Callable[..., str]:
    return lambda w, node, x, *, axis: w.apply(operator, [x[0], w.constant(int(axis)), _kind(w, node.type)], node.type)


def _cumsum(w: Writer, node: Node, x: list[str], *, axis: int, reverse: bool) -> str:
    return w.apply("CumSum", [x[0], *_constants(w, int(axis), False, bool(reverse))], node.type)


# Control flow.


def _call(w: Writer, node: Node, x: list[str], *, graph: Graph, **_: Any) -> list[str]:
    return w.inlined(graph, x)


def _cond(w: Writer, node: Node, x: list[str], *, true: Graph, false: Graph) -> list[str]:
    def branch(graph: Graph) -> str:
        return w.function(graph.input_types, lambda given: w.joined(w.inlined(graph, given), graph.output_types))

    found = w.chosen(x[0], [branch(true), *x[1:]], [branch(false), *x[1:]], node.type)
    return w.several(found, node.type) if len(node.type) > 1 else [found]


def _while(w: Writer, node: Node, x: list[str], *, test: Graph, body: Graph, carried: int) -> list[str]:
    types, results = body.input_types, node.type
    w.count += 1
    header = f"mycel_loop_{w.count}"

    def again(given: list[str]) -> tuple[str, Any]:
        values = w.inlined(body, given)
        kind = tuple(results) if len(results) > 1 else results[0]
        return w.added(header, [*values, *given[carried:]], kind), kind

    def start(given: list[str]) -> tuple[str, Any]:
        (going,) = w.inlined(test, given)
        found = w.chosen(going, [inner, *given], [after, *given[:carried]], results)
        return found, tuple(results) if len(results) > 1 else results[0]

    inner = w.function(types, again)
    after = w.function(results, lambda given: w.joined(given, results))
    w.function(types, start, header)
    found = w.added(header, x, tuple(results) if len(results) > 1 else results[0])
    return w.several(found, results) if len(results) > 1 else [found]


def _scaled(operator: str, factor: float) -> Callable[..., str]:
    return lambda w, node, x: w.apply("Mul", [w.apply(operator, x, node.type), w.scalar(factor, node)], node.type)


_RULES: Mapping[str, Callable[..., Any]] = {
    "argmax": _arg("Argmax"),
    "argmin": _arg("Argmin"),
    "bitwise_not": lambda w, node, x: w.apply("Sub", [w.scalar(-1, node), x[0]], node.type),
    "broadcast_to": _shaped("BroadcastTo", "shape"),
    "call": _call,
    "cast": _cast,
    "checked": lambda w, node, x, **_: x[0],
    "concat": _concat,
    "cond": _cond,
    "conv": _conv,
    "conv_grad_input": _conv_grad_input,
    "conv_grad_weight": _conv_grad_weight,
    "cumsum": _cumsum,
    "custom": lambda w, node, x, *, count, **_: x[:count],
    "exp2": lambda w, node, x: w.apply("Pow", [w.scalar(2, node), x[0]], node.type),
    "fmod": lambda w, node, x: w.apply("TruncateMod", x, node.type),
    "gather_nd": _gather_nd,
    "identity": lambda w, node, x: x[0],
    "iota": _iota,
    "kept_call": lambda w, node, x, *, graph, **_: w.inlined(graph, x),
    "log10": _scaled("Log", float(np.log10(np.e))),
    "log2": _scaled("Log", float(np.log2(np.e))),
    "log_softmax": lambda w, node, x, *, axis: w.apply("LogSoftmax", [x[0], w.constant(axis)], node.type),
    "matmul": _matmul,
    "moments": _moments,
    "pad": _pad,
    "recompute": _call,
    "reduce_all": _reduced("ReduceAll"),
    "reduce_any": _reduced("ReduceAny"),
    "reduce_max": _reduced("ReduceMax"),
    "reduce_min": _reduced("ReduceMin"),
    "reduce_prod": _product,
    "reduce_sum": _reduced("ReduceSum", False),
    "reshape": _shaped("Reshape", "shape"),
    "reverse": _reverse,
    "scatter_nd": _scatter,
    "select": _select,
    "size": _size,
    "slice": _slice,
    "softmax": lambda w, node, x, *, axis: w.apply("Softmax", [x[0], w.constant((axis,))], node.type),
    "sort": _sort,
    "stop_gradient": _stop_gradient,
    "take": _take,
    "take_along": _take_along,
    "top_k": _top_k,
    "transpose": _shaped("Transpose", "permutation"),
    "while_loop": _while,
    "window_max": _window_max,
    "window_sum": _window_sum,
}
