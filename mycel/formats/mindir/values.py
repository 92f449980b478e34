"""Converts attributes in MindIR files to Python values and tensors.

A monad, which orders effects, is `MONAD`. An operator whose arguments are all inputs has words and
element types among them as numbers: `named_argument` gives what a number stands for, by the name of
the parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype_codes import MINDSPORE
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.mindir.messages import TENSOR_KINDS, Attribute, Function, MindIRError
from mycel.ops.creation import zeros

__all__ = ["MONAD", "attributes_of", "named_argument", "value_of", "zeros_of"]

MONAD = "\0monad"
_FLOAT, _DOUBLE, _BOOL, _STRING = 1, 11, 9, 8
_TENSORS, _TUPLE, _LIST, _DICT, _MONADS, _NONE, _SCALAR = 19, 20, 21, 22, (23, 24), 25, 39
# The numbers 31 and 41 stand for integers and floats of the usual size.
_BY_NUMBER = {number: getattr(D, "bool_" if name == "bool" else name) for name, number in MINDSPORE.items()}
_BY_NUMBER |= {31: D.int32, 41: D.float32}
_WORDS: dict[str, dict[int, str]] = {
    "data_format": {0: "NCHW", 1: "NHWC", 14: "NCDHW", 21: "NC1HWC0"},
    "format": {0: "NCHW", 1: "NHWC", 14: "NCDHW"},
    "pad_mode": {0: "pad", 1: "same", 2: "valid", 3: "full"},
    "reduction": {0: "sum", 1: "mean", 2: "none"},
    "interpolation_mode": {0: "bilinear", 1: "nearest"},
    "padding_mode": {0: "zeros", 1: "border", 2: "reflection"},
    "norm": {0: "backward", 1: "forward", 2: "ortho"},
    "coordinate_transformation_mode": {0: "asymmetric", 1: "align_corners", 2: "half_pixel"},
    "input_layout": {0: "BSH", 1: "BNSD", 2: "SBH", 3: "BSND", 4: "TND"},
    "rounding_mode": {1: "trunc", 2: "floor"},
    "approximate": {0: "none", 1: "tanh"},
    "side": {0: "right", 1: "left"},
    "reduce": {0: "none", 1: "add"},
}
_TYPES = ("dtype", "dst_type", "out_type", "output_dtype", "out_dtype", "output_type", "type", "dtype_", "argmax_type")


def value_of(attribute: Attribute) -> Any:
    """Return the value of an attribute: a number, word, tensor, element type or a container."""
    kind = attribute.kind
    if kind in _MONADS:
        return MONAD
    if kind == _NONE:
        return None
    if kind in (_TUPLE, _LIST):
        values = [value_of(v) for v in attribute.values]
        return tuple(values) if kind == _TUPLE else values
    if kind == _DICT:
        return {v.name: value_of(v.values[0] if v.values else v) for v in attribute.values}
    if kind == _TENSORS:
        if len(attribute.tensors) != 1:
            raise MindIRError(f"a value holds {len(attribute.tensors)} tensors where one is expected")
        return Tensor.from_numpy(attribute.tensors[0].array())
    if kind == _STRING:
        text = attribute.text if attribute.text is not None else (attribute.texts or [b""])[0]
        return text.decode("utf-8", "replace")
    number = attribute.number
    if number is None and attribute.numbers:
        number = attribute.numbers[0]
    if kind in TENSOR_KINDS and number is None:
        return TENSOR_KINDS[kind]
    if kind == _BOOL:
        return bool(number)
    if kind in (_FLOAT, _DOUBLE) and number is not None:
        return float(number)
    if kind in TENSOR_KINDS and number is not None:
        return int(number)
    raise MindIRError(f"attribute {attribute.name!r} is of kind {kind}, which is not supported")


def zeros_of(function: Function) -> Any:
    """Return zeros of the type that a graph's result has by the file."""
    attribute = function.output_attributes[0]
    if attribute is not None:
        return _zeros(attribute)
    tensors = function.output_tensors[0]
    if len(tensors) != 1:
        raise Unsupported(f"load: the result of graph {function.name!r} has no known type")
    return _zeros(Attribute(kind=_TENSORS, tensors=tensors))


def _zeros(attribute: Attribute) -> Any:
    if attribute.kind in _MONADS:
        return MONAD
    if attribute.kind in (_TUPLE, _LIST):
        found = [_zeros(v) for v in attribute.values]
        return tuple(found) if attribute.kind == _TUPLE else found
    if attribute.kind == _TENSORS and len(attribute.tensors) == 1:
        (info,) = attribute.tensors
        if info.kind in TENSOR_KINDS and all(d >= 0 for d in info.shape):
            return zeros(info.shape, TENSOR_KINDS[info.kind])
    raise Unsupported("load: a loop that is left in the middle with a result of open sizes is not supported")


def attributes_of(attributes: Sequence[Attribute]) -> tuple[dict[str, Any], set[str]]:
    """Return values by names, and the names of those of a kind that is not supported."""
    found, others = {}, set()
    for a in attributes:
        try:
            found[a.name] = value_of(a)
        except MindIRError:
            others.add(a.name)
    return found, others


def named_argument(name: str, value: Any) -> Any:
    """Return what a number stands for as the argument of a parameter: an element type or a word."""
    if type(value) is not int:
        return value
    if name in _TYPES:
        if value not in _BY_NUMBER:
            raise MindIRError(f"{name} is the type number {value}, which tensors do not have")
        return _BY_NUMBER[value]
    return _WORDS.get(name, {}).get(value, value)
