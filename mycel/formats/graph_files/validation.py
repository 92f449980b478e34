"""Validation of untrusted graph files: what is checked before anything is made of a graph.

A digest in a file finds damage, not forgery: whoever writes another graph writes its digest too. So
nothing in a file is trusted. Its graphs may hold only primitives that compute: none calls Python,
opens a file, or asks the machine. Each parameter has one form (`FORMS`), numbers are within 62
bits, and types are inferred from operands and parameters only, so that the rule of an operation
refuses operands that do not fit. Further checks:

* an operand is a tensor; only `get_item` takes a tuple, and only parts that the tuple has;
* a `recur` stands inside a `recursion` of its label, and has its types; loops, their gradients and
  given derivatives have the types that their parts require;
* the inputs of a called graph have exactly the types of the operands;
* every symbol is bound by the sizes of the arguments, and sizes are bounded in depth and number of
  terms (`DEEPEST`, `MOST_TERMS`);
* graphs inside graphs are bounded in depth and in the nodes that they unfold to (`MOST_NODES`), as
  a file of a kilobyte may name 2**60.

Symbolic sizes are checked again as numbers (`check_sizes`) when the graph first runs with them, as
the rules of operations cannot compare all symbolic sizes.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import deciding
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.loops.programs import Program
from mycel._src.compiler.prims.base import GET_ITEM, Literal, Primitive
from mycel._src.compiler.prims.control_flow.control import call, while_loop
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.control_flow.recursion import recur, recursion
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.custom_derivatives import Rule, custom, kept_call
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES, mesh_position
from mycel._src.compiler.prims.distributed.point_to_point import awaiting, messages
from mycel._src.compiler.prims.indexing.index_bounds import BOUNDS
from mycel._src.compiler.prims.neural.attention import OPERANDS
from mycel._src.compiler.prims.neural.quantisation import ROUNDINGS, TIES
from mycel._src.compiler.prims.nonzero_positions import positions
from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.foundation.dtype import DType

__all__ = [
    "DEEPEST",
    "FORMS",
    "MOST",
    "MOST_NODES",
    "MOST_TERMS",
    "Refusal",
    "check_model",
    "check_node",
    "check_sizes",
]

MOST = 1 << 62
MOST_TERMS = 4096
MOST_NODES = 1 << 19
DEEPEST = 64


class Refusal(ValueError):
    """An error: a file has something that no graph may have; the message says what."""


# Forms of parameters.


def _is_int(value: Any) -> bool:
    return type(value) is int and -MOST <= value <= MOST


def _is_count(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _is_size(value: Any) -> bool:
    return type(value) is Dim or _is_count(value)


def _is_offset(value: Any) -> bool:
    return type(value) is Dim or _is_int(value)


def _tuple_of(form: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is tuple and all(map(form, value))


def _instance(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in words


_flag = _instance(bool)
_graph = _instance(Graph)
_dtype = _instance(DType)
_counts, _sizes, _offsets = _tuple_of(_is_count), _tuple_of(_is_size), _tuple_of(_is_offset)
_pairs = _tuple_of(lambda pair: _sizes(pair) and len(pair) == 2)
_types = _tuple_of(_instance(TensorType))
_word = _instance(str)

_reduction = {"axes": _counts, "keepdims": _flag}
_scan = {"axis": _is_count, "reverse": _flag}
_mode = _one_of("set", "add", "mul", "min", "max")
_conv = {"strides": _counts, "padding": _pairs, "dilation": _counts, "groups": _is_size}
_window = {"window": _sizes, "strides": _counts, "padding": _pairs}

_flags = _tuple_of(_flag)
_recurrence = {"mode": _one_of("tanh", "relu", "gru", "lstm"), "reverse": _flag, "masked": _flag}
_ctc = {"blank": _is_count, "merge": _flag}
_real = _instance(float)
_attention: dict[str, Callable[[Any], bool]] = {
    "scale": _real,
    "operands": _tuple_of(_one_of(*OPERANDS)),
    "band": lambda v: (
        v is None or (type(v) is tuple and len(v) == 2 and all(end is None or _is_offset(end) for end in v))
    ),
    "fill": _real,
    "keep": _real,
}

_ties = _one_of(*TIES)
_bounded = {"bounds": _one_of(*BOUNDS)}
# What a file may leave out.
_OPTIONAL = frozenset((*_bounded, "factor"))

# Primitives that files never hold: exports take marks out, and refuse what only ranks can run.
NEVER_IN_FILES = frozenset(("constrain", *(p.name for p in (mesh_position, messages, awaiting, *COLLECTIVES))))
# The parameters of the primitives that files may hold; those that are not here take none.
FORMS: dict[str, Mapping[str, Callable[[Any], bool]]] = {
    "constant": {"value": _instance(Literal)},
    "get_item": {"index": _is_count},
    "cast": {"dtype": _dtype},
    "promote": {"dtype": _dtype},
    "reshape": {"shape": _sizes},
    "transpose": {"permutation": _counts},
    "broadcast_to": {"shape": _sizes},
    "slice": {"starts": _sizes, "stops": _sizes, "steps": _counts},
    "pad": {"low": _offsets, "high": _offsets, "interior": _counts},
    "concat": {"axis": _is_count},
    "reverse": {"axes": _counts},
    "iota": {"shape": _sizes, "axis": _is_count, "dtype": _dtype},
    "size": {"dim": _is_offset, "dtype": _dtype},
    **{f"reduce_{name}": _reduction for name in ("sum", "max", "min", "prod", "any", "all")},
    "argmax": {"axis": _is_count},
    "argmin": {"axis": _is_count},
    "conv": _conv,
    "conv_grad_input": {"input_shape": _sizes, **_conv},
    "conv_grad_weight": {"weight_shape": _sizes, **_conv},
    "fake_quant": {"low": _is_int, "high": _is_int, "ties": _ties},
    "quantize": {"low": _is_int, "high": _is_int, "ties": _ties, "dtype": _dtype},
    "int_matmul": {"a_zero": _is_int, "b_zero": _is_int},
    "int_conv": {**_conv, "zero": _is_int},
    "requantize": {
        **dict.fromkeys(("zero", "low", "high"), _is_int),
        "rounding": _one_of(*ROUNDINGS),
        "dtype": _dtype,
    },
    "rescaled_sum": {
        **dict.fromkeys(("left", "right", "last"), _offsets),
        **dict.fromkeys(("room", "result_zero", "low", "high"), _is_int),
        "rounding": _one_of(*ROUNDINGS),
        "dtype": _dtype,
    },
    "rescaled_pool": {
        **_window,
        **dict.fromkeys(("zero", "result_zero", "low", "high"), _is_int),
        "rounding": _one_of(*ROUNDINGS),
        "dtype": _dtype,
    },
    "rescaled_conv": {
        **_conv,
        **dict.fromkeys(("zero", "result_zero", "low", "high"), _is_int),
        "rounding": _one_of(*ROUNDINGS),
        "dtype": _dtype,
    },
    "gather_nd": _bounded,
    "scatter_nd": {"mode": _mode, **_bounded},
    "take": {"axis": _is_count, **_bounded},
    "take_add": {"axis": _is_count, "size": _is_size, **_bounded},
    "take_along": {"axis": _is_count, **_bounded},
    "put_along": {"axis": _is_count, "mode": _mode, **_bounded},
    "checked": {"axis": _is_count, "size": _is_size, **_bounded},
    "dynamic_slice": {"sizes": _sizes},
    "cond": {"true": _graph, "false": _graph},
    "while_loop": {"test": _graph, "body": _graph, "carried": _is_count},
    "call": {"graph": _graph},
    "kept_call": {"graph": _graph, "count": _is_count, "link": lambda v: v is None},
    "positions": {"count": _is_size},
    "custom": {
        "count": _is_count,
        "backward": lambda v: v is None or type(v) is Graph,
        "wanted": _counts,
        "rule": lambda v: v is None or type(v) is Rule,
    },
    "pseudo_inverse": {"hermitian": _flag},
    "triangular_solve": {"lower": _flag, "trans": _one_of("N", "T", "C"), "unit": _flag},
    "eigh": {"lower": _flag},
    "qr": {"full": _flag},
    "svd": {"full": _flag, "vectors": _flag},
    "fourier": {"axes": _counts, "inverse": _flag, "factor": _real},
    "fourier_half": {"axes": _counts, "factor": _real},
    "fourier_from_half": {"axes": _counts, "size": _is_count, "factor": _real},
    "while_grad": {
        "test": _graph,
        "body": _graph,
        "backward": _graph,
        "carried": _is_count,
        "smooth": _counts,
        "free": _counts,
        "keep": _one_of("all", "root"),
    },
    "recurrence": _recurrence,
    "recurrence_grad": {**_recurrence, "given": _flags},
    "ctc": _ctc,
    "ctc_grad": _ctc,
    "moments": {"axes": _counts},
    "sample": {"linear": _flag},
    "sample_add": {"linear": _flag, "sizes": _sizes},
    "sample_slopes": {"linear": _flag},
    "attention": _attention,
    "attention_grad": _attention,
    "softmax": {"axis": _is_count},
    "log_softmax": {"axis": _is_count},
    "sort": {"axis": _is_count, "descending": _flag},
    "top_k": {"k": _is_size, "axis": _is_count, "largest": _flag},
    **{name: _scan for name in ("cumsum", "cumprod", "cummax", "cummin")},
    "search_sorted": {"side": _one_of("left", "right")},
    "random_bits": {"shape": _sizes, "dtype": _dtype},
    "recompute": {"graph": _graph, "fresh": _counts},
    "loops": {"program": _instance(Program)},
    "recur": {"label": _word, "types": _types},
    "recursion": {"graph": _graph, "label": _word},
    "window_sum": _window,
    "window_max": _window,
    "window_argmax": _window,
    "window_scatter": {"input_shape": _sizes, **_window},
    "window_gather": _window,
}
# `kept_call` belongs to a recording; `positions` has a size that data decide, which would be
# believed. A network that is loaded has neither.
REFUSED = (kept_call, positions)


def check_node(prim: Primitive, operands: Sequence[Node], params: Mapping[str, Any]) -> None:
    """Raise Refusal for a node that files may not hold, before its type is inferred."""
    name = prim.name
    if not str(getattr(prim.infer, "__module__", "")).startswith("mycel."):
        raise Refusal(f"the operation {name} has no place in a file")
    forms = FORMS.get(name, {})
    if not set(forms) - _OPTIONAL <= set(params) <= set(forms):
        raise Refusal(f"{name} takes the parameters {sorted(forms)}, not {sorted(params)}")
    for key, form in forms.items():
        if key in params and not form(params[key]):
            raise Refusal(f"{name}: {params[key]!r:.200} is no value for its parameter {key}")
        check_terms(params.get(key), f"{name}: {key}")
    least, most = _operands_of(prim)
    if not least <= len(operands) <= most:
        raise Refusal(f"{name} takes {least} operands, not {len(operands)}")
    if prim is GET_ITEM:
        if not isinstance(operands[0].type, tuple):
            raise Refusal("a part is taken of a value that has none")
        if params["index"] >= len(operands[0].type):
            raise Refusal(f"part {params['index']} is taken of a value of {len(operands[0].type)}")
    elif not all(isinstance(n.type, TensorType) for n in operands):
        raise Refusal(f"{name} takes tensors, not a value of several parts")
    if prim in _FURTHER:
        _FURTHER[prim](operands, **params)


@functools.cache
def _operands_of(prim: Primitive) -> tuple[int, float]:
    """Return the least and the greatest number of operands that the rule of a primitive takes."""
    kinds = [p.kind for p in inspect.signature(prim.infer).parameters.values()]
    named = sum(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)
    return named, math.inf if inspect.Parameter.VAR_POSITIONAL in kinds else named


def check_terms(value: Any, what: str) -> None:
    """Raise Refusal if a product of sizes would have more than `MOST_TERMS` terms."""
    count = 1
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, Dim):
            count *= len(item.terms)
            if count > MOST_TERMS:
                raise Refusal(f"{what}: its sizes are sums of too many terms")


# Primitives whose parts must agree.


def _takes(what: str, graph: Graph, types: Sequence[Any]) -> None:
    if graph.input_types != tuple(types):
        raise Refusal(f"{what} takes {graph.input_types}, not {tuple(types)}")


def _check_call(operands: Sequence[Node], graph: Graph, **_: Any) -> None:
    _takes(f"the called graph {graph.name!r:.100}", graph, [n.type for n in operands])


def _check_loop(operands: Sequence[Node], carried: int, **_: Any) -> None:
    if carried > len(operands):
        raise Refusal(f"while_loop carries {carried} of {len(operands)} values")


def _check_loop_gradient(
    operands: Sequence[Node], test: Graph, body: Graph, backward: Graph, carried: int, smooth: Any, free: Any, keep: str
) -> None:
    values = body.input_types
    if carried > len(values) or any(i >= carried for i in smooth) or any(carried + i >= len(values) for i in free):
        raise Refusal("while_grad names values that its loop has not")
    _takes("the test of while_grad", test, values)
    if body.output_types != values[:carried]:
        raise Refusal(f"the body of while_grad gives {body.output_types}, not {values[:carried]}")
    if len(test.outputs) != 1 or str(test.output_types[0]) != "bool[]":
        raise Refusal(f"the test of while_grad gives {test.output_types}, not one boolean")
    wanted = (*[values[i] for i in smooth], *[values[carried + i] for i in free])
    if backward.output_types != wanted:
        raise Refusal(f"a round backwards of while_grad gives {backward.output_types}, not {wanted}")


def _check_custom(operands: Sequence[Node], count: int, backward: Any, wanted: Any, rule: Any) -> None:
    types = [n.type for n in operands]
    if count > len(types):
        raise Refusal(f"custom gives {count} of {len(types)} values")
    if any(count + i >= len(types) for i in wanted):
        raise Refusal("custom gives cotangents of operands that it has not")
    if backward is None:
        if rule is None:
            raise Refusal("custom has no derivative")
        return
    cotangents = [t for t in types[:count] if t.dtype.is_differentiable]
    _takes("the derivative of custom", backward, [*types[count:], *types[:count], *cotangents])
    if len(backward.outputs) != len(wanted) or any(
        out != types[count + i] for out, i in zip(backward.output_types, wanted)
    ):
        raise Refusal(f"the derivative of custom gives {backward.output_types} for the operands {wanted}")


_FURTHER: dict[Primitive, Callable[..., None]] = {
    call: _check_call,
    kept_call: _check_call,
    recompute: _check_call,
    recursion: _check_call,
    while_loop: _check_loop,
    while_grad: _check_loop_gradient,
    custom: _check_custom,
}


# Whole graphs.


def check_model(graph: Graph, arguments: int, sizes: Mapping[str, int]) -> None:
    """Raise Refusal, or the verifier's error, for an invalid graph, whose first inputs are the
    arguments.
    """
    if not all(isinstance(t, TensorType) for t in graph.output_types):
        raise Refusal("an output of its graph is no tensor")
    binder = Binder(graph.input_types[:arguments])
    bound = set(binder.names)
    for atom in binder.atoms.values():
        if not atom.low <= sizes.get(atom.name, -1) <= atom.high:
            raise Refusal(f"the size {atom.name!r:.100} has no example within its bounds")
    _check_bound(graph, bound)
    _check_recursions(graph, {}, set())
    _check_unfolding(graph)
    verify(graph)
    if bound:
        check_sizes(graph, sizes)


def check_sizes(graph: Graph, sizes: Mapping[str, Any]) -> None:
    """Raise VerifyError or Refusal if the graph is invalid for these sizes of its symbols."""
    with deciding(None):
        verify(specialize(graph, sizes))


def _inner(node: Node) -> list[Graph]:
    return [g for value in node.params.values() for g in graphs_in(value)] if node.prim is not None else []


def _check_bound(graph: Graph, bound: set[str]) -> None:
    seen: set[Graph] = set()
    stack = [graph]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        for node in (*top.inputs, *top.nodes):
            if node.prim in REFUSED:
                raise Refusal(f"the operation {node.op} has no place in a file")
            shapes = [t.shape for t in (node.type if isinstance(node.type, tuple) else (node.type,))]
            values = [v for v in node.params.values() if isinstance(v, (Dim, tuple))]
            for name in symbols_in(*shapes, *values):
                if name not in bound:
                    raise Refusal(f"the size {name!r:.100} is none of an argument")
            for shape in shapes:
                check_terms(shape, str(node.prim or "an input"))
            stack += _inner(node)


def _check_recursions(graph: Graph, labels: dict[str, Graph], done: set[Any]) -> None:
    """Check that each `recur` has the types of the `recursion` that it is in."""
    key = (graph, tuple(labels.items()))
    if key in done:
        return
    done.add(key)
    if len(done) > MOST_TERMS * DEEPEST:
        raise Refusal("its recursions nest in too many ways")
    for node in graph.nodes:
        if node.prim is recur:
            target = labels.get(node.params["label"])
            if target is None:
                raise Refusal(f"{node.params['label']!r:.100} is called outside of its recursion")
            _takes(f"the recursion {node.params['label']!r:.100}", target, [n.type for n in node.inputs])
            if node.params["types"] != target.output_types:
                raise Refusal(
                    f"a call of {node.params['label']!r:.100} gives {node.params['types']}, not {target.output_types}"
                )
        inner = {**labels, node.params["label"]: node.params["graph"]} if node.prim is recursion else labels
        for nested in _inner(node):
            _check_recursions(nested, inner, done)


def _check_unfolding(graph: Graph) -> None:
    known: dict[Graph, tuple[int, int]] = {}

    def size(top: Graph) -> tuple[int, int]:
        if top not in known:
            count, depth = len(top.nodes) + len(top.inputs), 0
            for node in top.nodes:
                for nested in _inner(node):
                    more, below = size(nested)
                    count, depth = count + more, max(depth, below)
            if count > MOST_NODES or depth >= DEEPEST:
                raise Refusal(
                    f"its graphs unfold to more than {MOST_NODES} operations, or nest more than {DEEPEST} deep"
                )
            known[top] = (count, depth + 1)
        return known[top]

    size(graph)
