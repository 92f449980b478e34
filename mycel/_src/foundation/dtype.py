"""Data types: one immutable record for each element type, under MindSpore's names.

A `DType` knows its NumPy counterpart (bfloat16 through `ml_dtypes`), its size in bytes and its
kind: ``b`` boolean, ``i`` signed, ``u`` unsigned, ``f`` floating, ``c`` complex, ``s`` floating
but for storage only: tensors of these eight-bit types are made, moved, saved and cast, and
nothing is computed in them. Instances are unique, so `is` compares them.

Types of other Python objects (lists, strings, functions) are in `foundation.object_types`; all
types are instances of `Type`.
"""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from mycel._src.foundation.public_names import listing as _listing

__all__ = [
    "DType",
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "Type",
    "from_any",
    "to_numpy",
    "promote",
    "all_types",
    "complex_type",
    "dtype_to_nptype",
    "float_type",
    "int_type",
    "number_type",
    "uint_type",
]


_TITLES = {"bfloat16": "BFloat16", "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2"}


class Type:
    """A type of values: element types and those of `foundation.object_types` are instances.

    >>> import mycel as ms
    >>> isinstance(ms.float32, ms.Type), isinstance(ms.list_, ms.Type)
    (True, True)
    """

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError(
            "Type: it has no instances of its own; use an element type such as float32, or list_, tuple_, string, "
            "number, type_none"
        )


class DType(Type):
    """An element type.

    >>> import mycel as ms
    >>> ms.float32.itemsize, str(ms.float32)
    (4, 'Float32')
    """

    __slots__ = ("name", "kind", "itemsize", "numpy", "bits")

    def __init__(self, name: str, kind: str, numpy_type: Any) -> None:
        self.name = name
        self.kind = kind
        self.numpy: np.dtype[Any] = np.dtype(numpy_type)
        self.itemsize: int = self.numpy.itemsize
        self.bits = 8 * self.itemsize

    def __repr__(self) -> str:
        return f"mindspore.{self.name}"

    def __str__(self) -> str:
        return self.name.replace("uint", "UInt") if self.kind == "u" else _TITLES.get(self.name, self.name.capitalize())

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_any, (self.name,))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: Any) -> DType:
        return self

    @property
    def is_floating(self) -> bool:
        return self.kind in "fs"

    @property
    def is_floating_point(self) -> bool:
        """Whether the elements are floats, as NumPy's or in 8 bits: MindSpore's name."""
        return self.is_floating

    def to_complex(self) -> DType:
        """Return the type of complex numbers with parts of this type; TypeError without one.

        The parts are of float32 for bfloat16.
        """
        found = {bfloat16: complex64, float32: complex64, float64: complex128}
        if self.kind == "c":
            return self
        if self not in found:
            raise TypeError(f"{self} has no type of complex numbers")
        return found[self]

    def to_real(self) -> DType:
        """Return the type of a complex number's parts, and another type as it is."""
        return {complex64: float32, complex128: float64}.get(self, self)

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_signed(self) -> bool:
        return self.kind in "ifcs"

    @property
    def is_inexact(self) -> bool:
        """Whether values are rounded, and may be infinite or NaN."""
        return self.kind in "fc"

    @property
    def is_differentiable(self) -> bool:
        """Whether derivatives pass through values of this type, which are rounded to it then."""
        return self.kind in "fciub"


bool_ = DType("bool", "b", np.bool_)
int8 = DType("int8", "i", np.int8)
int16 = DType("int16", "i", np.int16)
int32 = DType("int32", "i", np.int32)
int64 = DType("int64", "i", np.int64)
uint8 = DType("uint8", "u", np.uint8)
uint16 = DType("uint16", "u", np.uint16)
uint32 = DType("uint32", "u", np.uint32)
uint64 = DType("uint64", "u", np.uint64)
float16 = DType("float16", "f", np.float16)
bfloat16 = DType("bfloat16", "f", ml_dtypes.bfloat16)
float32 = DType("float32", "f", np.float32)
float64 = DType("float64", "f", np.float64)
complex64 = DType("complex64", "c", np.complex64)
complex128 = DType("complex128", "c", np.complex128)
float8_e4m3fn = DType("float8_e4m3fn", "s", ml_dtypes.float8_e4m3fn)
float8_e5m2 = DType("float8_e5m2", "s", ml_dtypes.float8_e5m2)

STORED = (float8_e4m3fn, float8_e5m2)
ALL = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16, *STORED)
complex_type = (complex64, complex128)
number_type = (*int_type, *uint_type, float16, float32, float64, bfloat16, *complex_type, *STORED)
all_types = (bool_, *number_type)
_BY_NAME = {d.name: d for d in (*ALL, *STORED)}
_BY_NAME.update({"bool_": bool_, "half": float16, "float": float32, "double": float64, "int": int64})
_BY_NUMPY = {d.numpy: d for d in (*ALL, *STORED)}
_BY_PYTHON = {builtins.bool: bool_, builtins.int: int64, builtins.float: float32, builtins.complex: complex128}


def from_any(value: Any) -> DType:
    """Return the `DType` that a dtype, a name, a NumPy type or a Python type stands for.

    Raises TypeError for anything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        found = _BY_NAME.get(value.lower())
        if found is not None:
            return found
    elif isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    else:
        try:
            found = None if value is None else _BY_NUMPY.get(np.dtype(value))
        except (TypeError, ValueError):
            found = None
        if found is not None:
            return found
    raise TypeError(
        f"{value!r:.80} is not a data type that tensors can hold; use one of {', '.join(d.name for d in ALL)}"
    )


def to_numpy(value: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of a data type, given in any form that `from_any` takes."""
    return from_any(value).numpy


def dtype_to_nptype(type_: Any) -> Any:
    """Return the NumPy scalar type of a data type.

    >>> dtype_to_nptype(float32)
    <class 'numpy.float32'>
    """
    return to_numpy(type_).type


_FLOAT_RANK = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 3}


def promote(a: DType, b: DType) -> DType:
    """Return the type to which tensors of two types are converted.

    This is MindSpore's implicit conversion. Booleans give way to everything, integers to floats and
    floats to complex numbers; within a kind the wider type wins. float16 and bfloat16 give float32;
    an unsigned and a signed type give a signed type that holds both (float32 for uint64).
    """
    if a is b:
        return a
    key = (a, b)
    found = _PROMOTED.get(key)
    if found is None:
        found = _PROMOTED[key] = _promote(a, b)
    return found


_PROMOTED: dict[tuple[DType, DType], DType] = {}


def _promote(a: DType, b: DType) -> DType:
    rank = "biufc"
    if "s" in (a.kind, b.kind):
        raise TypeError(
            f"there is no common type of {a.name} and {b.name}: nothing is computed in 8-bit floats; "
            "cast with .astype(mycel.float32)"
        )
    if a.kind == "b":
        return b
    if b.kind == "b":
        return a
    if a.kind == "c" or b.kind == "c":
        return complex128 if complex128 in (a, b) or float64 in (a, b) else complex64
    if a.kind == "f" and b.kind == "f":
        if _FLOAT_RANK[a.name] == _FLOAT_RANK[b.name]:
            return float32
        return a if _FLOAT_RANK[a.name] > _FLOAT_RANK[b.name] else b
    if a.kind == "f":
        return a
    if b.kind == "f":
        return b
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if rank.index(a.kind) < rank.index(b.kind) else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned is uint64:
        return float32
    return _BY_NAME[f"int{unsigned.bits * 2}"]


__dir__ = _listing(__name__)
