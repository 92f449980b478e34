"""What of a checkpoint fits a parameter: shapes, types, and conversions between them.

Values that lie in files are read for this only where a conversion could spoil them, and then block
by block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.types import tensor_type
from mycel._src.foundation import dtype
from mycel._src.foundation.log import logger
from mycel._src.tensors.core.parameter import Declared, Parameter, declared
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.parameter_slices import fits_part
from mycel.train.stored_values import StoredValues

__all__ = ["FLOATS", "INTEGERS", "fitted", "parameter_of"]

Array = np.ndarray[Any, Any]

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int32", "int64")
# Conversions after which no value is another one, nor infinite.
_WIDER = {("float16", "float32"), ("float16", "float64"), ("bfloat16", "float32"), ("bfloat16", "float64")}
_WIDER |= {("float32", "float64"), ("float16", "bfloat16"), ("int32", "int64")}


def parameter_of(name: str, values: Array | StoredValues) -> Parameter:
    """Return a parameter of values; those that lie in a file are read when they are asked for."""
    if isinstance(values, StoredValues):
        return declared(name, tensor_type(values.shape, dtype.from_any(values.kind)), values)
    return Parameter(Tensor.from_numpy(values), name=name)


def _stored(given: Tensor) -> StoredValues | None:
    """Return the values of a parameter that `parameter_of` made, if they have not been read."""
    found = given.reserved if isinstance(given, Declared) else None
    if isinstance(found, StoredValues) and found.kind == given.dtype.numpy and found.shape == tuple(given.shape):
        return found
    return None


def fitted(own: Parameter, given: Tensor | StoredValues, strict: bool) -> Array | StoredValues:
    """Return the values of `given` for the parameter `own`: an array in its shape and type, or for
    values that lie in files these, as they are.

    `strict` allows no conversion. Raises RuntimeError for what does not fit.
    """
    values = given if isinstance(given, StoredValues) else _stored(given)
    if values is not None:
        _check_shape(own, values.shape)
        found = dtype.from_any(values.kind)
        if _converts(own, found, strict):
            if (found.name, own.dtype.name) not in _WIDER:
                for _, block in values.blocks(values.shape, [None] * len(values.shape)):
                    _converted(own, block, found)
            _tell(own, found)
        return values
    assert isinstance(given, Tensor)
    array = given.asnumpy()
    _check_shape(own, array.shape)
    if not fits_part(own, array.shape):
        array = array.reshape(own.shape)
    if _converts(own, given.dtype, strict):
        array = _converted(own, array, given.dtype)
        _tell(own, given.dtype)
    return array


def _check_shape(own: Parameter, found: tuple[int, ...]) -> None:
    shape = tuple(own.shape)
    if found == shape or fits_part(own, found):
        return
    if found[: len(shape)] != shape or set(found[len(shape) :]) != {1}:
        raise RuntimeError(
            f"load_param_into_net: parameter {own.name!r} has shape {shape} in the network and {found} in the "
            "checkpoint; the checkpoint is of another network or another configuration of it, or has the part "
            "of a rank, which merge_sliced_parameter and transform_checkpoints join with the others"
        )


def _converts(own: Parameter, found: Any, strict: bool) -> bool:
    """Return whether values of the type `found` are converted for a parameter."""
    wanted = own.dtype
    if wanted is found:
        return False
    pair = {wanted.name, found.name}
    if strict or not (pair <= set(FLOATS) or pair <= set(INTEGERS)):
        reason = "strict_load allows no conversion" if strict else "only floating types, and int32 with int64, convert"
        raise RuntimeError(
            f"load_param_into_net: parameter {own.name!r} is {wanted.name} in the network and {found.name} in the "
            f"checkpoint; {reason}"
        )
    return True


def _converted(own: Parameter, values: Array, found: Any) -> Array:
    wanted = own.dtype
    with np.errstate(over="ignore"):
        converted = values.astype(wanted.numpy)
    fits = np.isinf(converted) == np.isinf(values) if wanted.is_floating else converted == values
    if not np.all(fits):
        raise RuntimeError(
            f"load_param_into_net: parameter {own.name!r} has values in the checkpoint ({found.name}) that are too "
            f"large for {wanted.name}, its type in the network"
        )
    return converted


def _tell(own: Parameter, found: Any) -> None:
    logger.warning("load_param_into_net: %s converted from %s to %s", own.name, found.name, own.dtype.name)
