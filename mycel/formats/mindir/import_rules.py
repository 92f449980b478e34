"""Import rules of MindIR operators that no class of operations has with the same arguments.

A rule is given the operator's attributes and its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.formats.mindir.messages import MindIRError
from mycel.formats.mindir.values import named_argument
from mycel.ops import operations

__all__ = ["ATTRIBUTES", "RULES"]


def _make_tuple(attributes: Mapping[str, Any], *inputs: Any) -> Any:
    return inputs


def _make_list(attributes: Mapping[str, Any], *inputs: Any) -> Any:
    return list(inputs)


def _get(attributes: Mapping[str, Any], sequence: Any, index: Any) -> Any:
    # A tensor here is an operator that gave one result where the file expects several.
    if not isinstance(sequence, (tuple, list)):
        raise MindIRError(f"item {index} is taken of a {type(sequence).__name__}, which is no tuple or list")
    if not -len(sequence) <= int(index) < len(sequence):
        raise MindIRError(f"item {index} is taken of {len(sequence)} values")
    return sequence[int(index)]


def _cast(attributes: Mapping[str, Any], x: Any, kind: Any) -> Any:
    kind = named_argument("dtype", kind)
    return cast(x, kind) if isinstance(x, Tensor) else Tensor(x, kind)


def _lstm_layer(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """Return an LSTM with the attributes of an operator as a function of its four inputs."""
    names = ("input_size", "hidden_size", "num_layers", "has_bias", "bidirectional", "dropout", "proj_size")
    given = {name: attributes[name] for name in names if name in attributes}
    size = 4 * given["hidden_size"]
    directions = 2 if given["bidirectional"] else 1
    layers, hidden = given["num_layers"] * directions, given["hidden_size"]
    if layers > directions > 1:
        # MindSpore for processors computes something else there than its definition says.
        raise Unsupported("load: the operator LSTM of several layers in two directions is not supported")
    inputs = directions * given["input_size"] + (layers - directions) * directions * hidden
    single = size * (inputs + layers * hidden + layers) if given["has_bias"] and not given.get("proj_size") else -1

    def compute(x: Any, h: Any, c: Any, w: Any) -> Any:
        if w.size == single:
            # MindSpore for processors adds the two biases before.
            w = ops.concat((w.reshape((-1,)), ops.zeros((layers * size,), w.dtype))).reshape((-1, 1, 1))
        return operations.LSTM(**given)(x, h, c, w)

    return compute


def _lstm(attributes: Mapping[str, Any], x: Any, h: Any, c: Any, w: Any) -> Any:
    return _lstm_layer(attributes)(x, h, c, w)


def _lstm_grad(attributes: Mapping[str, Any], x: Any, h: Any, c: Any, w: Any, *rest: Any) -> Any:
    # Results come before their cotangents, and behind these what the kernel kept.
    layer = _lstm_layer(attributes)
    return vjp(lambda *v: layer(*v)[:3], x, h, c, w)[1](tuple(rest[3:6]))


def _to_tensor(attributes: Mapping[str, Any], x: Any, kind: Any = None) -> Any:
    return _cast(attributes, x, 43 if kind is None else kind)


def _round(attributes: Mapping[str, Any], x: Any, decimals: Any = 0) -> Any:
    return ops.round(x, decimals=decimals)


def _search_sorted(attributes: Mapping[str, Any], rows: Any, x: Any, sorter: Any, kind: Any, right: Any) -> Any:
    found = ops.searchsorted(rows, x, sorter=sorter, right=bool(right))
    return cast(found, named_argument("dtype", kind))


def _unique_consecutive(attributes: Mapping[str, Any], x: Any, places: Any, counts: Any, axis: Any) -> Any:
    # Three results always; MindSpore leaves a number without a value for those not asked for.
    found = ops.unique_consecutive(x, bool(places), bool(counts), axis)
    given = iter(found[1:] if isinstance(found, tuple) else ())
    first = found[0] if isinstance(found, tuple) else found
    return (first, *(next(given) if asked else Tensor(0, D.int64) for asked in (places, counts)))


def _index_add(attributes: Mapping[str, Any], x: Any, indices: Any, y: Any) -> Any:
    axis: Any = attributes.get("axis")
    found = ops.index_add(x, indices, y, axis)
    # It writes into any tensor there, and later nodes read what was written.
    return found if isinstance(x, Parameter) else x.copy_(found)


def _copy(attributes: Mapping[str, Any], x: Any) -> Any:
    # What it is given may be written into while the copy is still used.
    return x.copy() if isinstance(x, Tensor) else x


# The names of attributes that are not those of the constructor's parameters.
ATTRIBUTES: Mapping[str, Mapping[str, str]] = {"AvgPool3D": {"pad": "pad_list"}, "MaxPool3D": {"pad_list": "pad_list"}}

RULES: Mapping[str, Callable[..., Any]] = {
    "Cast": _cast,
    "IndexAdd": _index_add,
    "LSTM": _lstm,
    "LSTMGrad": _lstm_grad,
    "MakeTuple": _make_tuple,
    "Round": _round,
    "SearchSorted": _search_sorted,
    "list_getitem": _get,
    "make_list": _make_list,
    "make_tuple": _make_tuple,
    "tuple_getitem": _get,
    "MakeList": _make_list,
    "ScalarToTensor": _to_tensor,
    "StopGradient": lambda attributes, value, *after: ops.stop_gradient(value),
    "TensorMove": _copy,
    "TupleGetItem": _get,
    "UniqueConsecutive": _unique_consecutive,
    "ListGetItem": _get,
}
