"""ONNX's casts and other changes of element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from mycel._src.foundation.dtype import from_any
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import Array, Operation, array, as_type, has_tensor, kind_of, rule, tensor

__all__ = ["converted"]

finfo: Any = ml_dtypes.finfo

_FLOATS = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
_NATIVE = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
_DIRECT = {np.dtype(from_any(name).numpy) for name in _NATIVE.split()}


@rule("Cast", raw=True)
def _cast(op: Operation, x: Any) -> Any:
    return converted(op, x, kind_of(op.get("to"), op), bool(op.get("saturate", 1)))


@rule("CastLike", raw=True)
def _cast_like(op: Operation, x: Any, like: Any) -> Any:
    kind = np.dtype(getattr(like.dtype, "numpy", like.dtype))
    return converted(op, x, kind, bool(op.get("saturate", 1)))


def converted(op: Operation, x: Any, kind: Any, saturate: bool = True) -> Any:
    """Return the value `x`, for the node `op`, with elements of another `kind` of NumPy's.

    With `saturate` what is too large becomes the largest number.

    What tensors have no elements of becomes an array; a conversion from or to such a type asks a
    tensor for its value.
    """
    source = np.dtype(getattr(x.dtype, "numpy", x.dtype))
    if source == kind:
        return x
    if isinstance(x, Tensor) and kind in _DIRECT and source in _DIRECT:
        return as_type(x, kind)
    if isinstance(x, np.ndarray) and x.dtype.kind == "O" and x.size and not isinstance(x.flat[0], str):
        return x if kind in (np.int64, np.int32) else converted(op, tensor(x), kind, saturate)
    return _array_converted(array(x), kind, saturate, op.get("round_mode", "up"))


def _array_converted(x: Array, kind: Any, saturate: bool, rounding: str) -> Any:
    if kind.kind == "O":
        return _texts(x)
    if x.dtype.kind == "O":
        return _numbers(x, kind)
    name = kind.name
    with np.errstate(all="ignore"):
        if name in _FLOATS.split():
            return _float8(x, kind, saturate)
        if name.startswith("float8_e8m0"):
            return _powers(x, kind, rounding)
        if name.startswith("float") and not has_tensor(kind):
            wide = x.astype(np.float32)
            most = float(finfo(kind).max)
            return wide.clip(-most, most).astype(kind)
        if name in ("int4", "uint4", "int2", "uint2"):
            whole = x.astype(np.int64)
            bits = int(name[-1])
            parts = whole & ((1 << bits) - 1)
            if name[0] == "i":
                parts = np.where(parts >= 1 << (bits - 1), parts - (1 << bits), parts)
            return parts.astype(np.int8 if name[0] == "i" else np.uint8).astype(kind)
        if x.dtype not in _DIRECT and kind.kind in "iub":
            return x.astype(np.float32).astype(kind)
        return x.astype(kind)


def _texts(x: Array) -> Array:
    out = np.empty(x.shape, object)
    flat = x.reshape(-1)
    if x.dtype.kind in "iub":
        words = [str(v) for v in flat.tolist()]
    else:
        words = [_word(v) for v in flat.astype(np.float32 if x.dtype.itemsize < 8 else np.float64)]
    out.reshape(-1)[:] = words
    return out


def _word(value: Any) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "INF" if value > 0 else "-INF"
    return str(np.format_float_positional(value, trim="-")) if 1e-4 <= abs(value) < 1e7 else str(value)


def _numbers(x: Array, kind: Any) -> Any:
    words = [w.strip() for w in x.reshape(-1)]
    if kind.kind in "iu":
        return np.array([int(w) for w in words], kind).reshape(x.shape)
    if kind.kind == "b":
        return np.array([w not in ("", "0", "False", "false") for w in words]).reshape(x.shape)
    return np.array([float(w) for w in words], np.float64).astype(kind).reshape(x.shape)


def _float8(x: Array, kind: Any, saturate: bool) -> Any:
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 or x.dtype.kind != "f" else x
    found = wide.astype(kind)
    most = float(finfo(kind).max)
    if not saturate:
        return found
    return np.where(np.isnan(wide), wide, wide.clip(-most, most)).astype(kind)


def _powers(x: Array, kind: Any, rounding: str) -> Any:
    """Return the nearest powers of two, of which the smallest stands for 0 and below."""
    wide = x.astype(np.float32)
    least = np.float32(2.0**-127)
    wide = np.where(wide < least, least, wide)
    if rounding != "nearest":
        part, power = np.frexp(wide)
        up = (part > 0.5) & (rounding == "up")
        wide = np.where(np.isfinite(wide), np.ldexp(np.float32(1), power - 1 + up), wide)
    return wide.astype(kind)
