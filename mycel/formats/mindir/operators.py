"""Maps each operator of a MindIR file to what of Mycel computes it.

An operator has a rule in `import_rules`, or is the class of operations of that name: a public one,
or one that MindSpore generates or keeps private (`mycel.compat.operations`). Of an operator whose
arguments are all inputs, the inputs of the call come first and the parameters of the constructor
after them. Other operators have their parameters among their attributes.

A file may name no operator that does more than compute: none that calls Python or code of the
user's, prints, writes files, or speaks with other processes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel.formats.mindir.import_rules import ATTRIBUTES, RULES
from mycel.formats.mindir.messages import MindIRError, Primitive
from mycel.formats.mindir.values import MONAD, attributes_of, named_argument
from mycel.ops import operations
from mycel.ops.operations import (
    collectives,
    control,
    custom,
    custom_builder,
    debugging,
    morph,
    registration,
    resharding,
)

__all__ = ["operator_of"]

_PRIVATE = (
    "ops.auto_generate.gen_ops_prim",
    "ops.auto_generate.pyboost_inner_prim",
    "ops.operations._grad_ops",
    "ops.operations._inner_ops",
    "ops.operations._rl_inner_ops",
    "ops.operations._scalar_ops",
    "ops.operations._sequence_ops",
    "ops.operations._embedding_cache_ops",
    "ops.operations._csr_ops",
    "ops.operations._map_tensor_ops",
    "ops.operations._quant_ops",
    "ops.operations._thor_ops",
    "ops.operations.linalg_ops",
    "ops.operations.math_ops",
    "ops.operations.nn_ops",
    "ops.operations.array_ops",
    "ops.operations.random_ops",
    "ops.operations.sparse_ops",
    "ops.operations.other_ops",
    "ops.operations.image_ops",
)
_ACTING = frozenset(
    module.__name__
    for module in (collectives, control, custom, custom_builder, debugging, morph, registration, resharding)
)
_ACTING_WORDS = ("Comm", "Custom", "Dump", "Hook", "Memory", "MapTensor", "PutMem", "GetMem", "Py", "Recv", "Send")
_ACTING_NAMES = ("PrimitiveWithCheck", "PrimitiveWithInfer", "DynamicShape", "Reusing", "PartitionedCall")
_ARGMAX_TYPES = {3: D.int32, 4: D.int64}
_LAST_TWO = ("kernel_size", "strides", "stride", "dilation")


def operator_of(primitive: Primitive) -> Callable[..., Any]:
    """Return a function of an operator's inputs that computes it.

    Raises Unsupported, naming the operator, if there is none.
    """
    name = primitive.operator
    attributes, others = attributes_of(primitive.attributes)
    rule = RULES.get(name)
    if rule is not None:
        return lambda *inputs: rule(attributes, *_plain(inputs))
    kind = _class(name)
    if kind is None:
        raise Unsupported(f"load: the operator {name} of MindSpore is not supported")
    parameters = list(inspect.signature(kind).parameters)
    unknown = others.intersection(parameters)
    if unknown:
        raise Unsupported(f"load: {name} has a value of {sorted(unknown)[0]} of a kind that is not supported")
    if primitive.is_function:
        return lambda *inputs: _function_call(name, kind, parameters, _plain(inputs))
    try:
        made = kind(**_constructor(name, parameters, attributes))
    except (TypeError, ValueError) as error:
        raise MindIRError(f"the attributes of {name} do not fit it: {error}") from error
    return lambda *inputs: made(*_plain(inputs))


def _plain(inputs: Sequence[Any]) -> Sequence[Any]:
    """Return inputs without the monads that order the effects of an operator."""
    return [v for v in inputs if not (type(v) is str and v == MONAD)]


def _class(name: str) -> Any | None:
    """Return the class of operations of a name, None if there is none that only computes."""
    if name.startswith("_") or name in _ACTING_NAMES or any(word in name for word in _ACTING_WORDS):
        return None
    found = getattr(operations, name, None) if name in operations.__all__ else None
    if inspect.isclass(found) and issubclass(found, operations.Primitive):
        return None if found.__module__ in _ACTING else found
    # What MindSpore keeps private is served by the layer above, loaded for such files only.
    from mycel.compat.operations.name_resolution import find, is_known

    for path in _PRIVATE:
        if is_known(path, name):
            found = find(path, name)
            if inspect.isclass(found) and issubclass(found, operations.Primitive):
                return None if getattr(found, "is_unserved", False) else found
    return None


def _function_call(name: str, kind: Any, parameters: Sequence[str], inputs: Sequence[Any]) -> Any:
    """Call an operator whose constructor's arguments are its last inputs."""
    count = len(inputs) - len(parameters)
    if count < 0:
        raise Unsupported(f"load: the operator {name} has {len(inputs)} arguments, fewer than its parameters")
    # The word of a writing has another list than that of a loss.
    words = {"reduction": "reduce"} if name == "TensorScatterElements" else {}
    given = [named_argument(words.get(p, p), v) for p, v in zip(parameters, inputs[count:])]
    compute = getattr(kind, "compute", None)
    function = kind.__call__ if compute is None else compute
    # A method, or a function that takes the object in front where that has parameters.
    call = list(inspect.signature(function).parameters)[compute is None or bool(parameters) :]
    named = [named_argument(p, v) for p, v in zip(call, inputs[:count])] if len(call) >= count else inputs[:count]
    return kind(*given)(*named)


def _typed(parameter: str, value: Any) -> Any:
    """Return the value of an attribute as the constructor takes it."""
    if parameter.endswith("_type") and isinstance(value, str) and hasattr(D, value):
        return getattr(D, value)
    if parameter == "axis" and isinstance(value, list) and len(value) == 1:  # that of L2Normalize
        return value[0]
    if parameter == "ceil_mode":
        return bool(value)
    if parameter == "pad_mode" and value == "CALCULATED":
        return "pad"
    if parameter == "argmax_type" and type(value) is int:
        # Numbers of the pooling operators' own.
        if value not in _ARGMAX_TYPES:
            raise Unsupported(f"load: argmax_type is {value}, and must be 3 (int32) or 4 (int64)")
        return _ARGMAX_TYPES[value]
    return value


def _constructor(name: str, parameters: Sequence[str], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operator's constructor, which are among its attributes."""
    renamed = ATTRIBUTES.get(name, {})
    given = {}
    for p in parameters:
        key = renamed.get(p, p)
        if key not in attributes and p == "data_format":
            key = "format"
        if key in attributes:
            value = _typed(p, attributes[key])
            if p in _LAST_TWO and isinstance(value, tuple) and len(value) == 4:
                value = value[2:]
            given[p] = value
    return given
