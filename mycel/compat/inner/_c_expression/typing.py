"""`mindspore._c_expression.typing`: the classes of types, and questions about types.

In Mycel element types are objects of one class. The classes here have them as instances by kind, so
that ``isinstance(mindspore.float32, typing.Float)`` holds, and give them when called with a width:
``typing.Float(32)``. Called without one, a class gives the type of all numbers of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType, Type
from mycel._src.foundation.object_types import (
    Int,
    Number,
    ObjectType,
    TensorType,
    dictionary,
    ellipsis_,
    list_,
    number,
    slice_,
    string,
    tensor_type,
    tuple_,
)
from mycel._src.foundation.object_types import function as kFunction
from mycel._src.foundation.object_types import type_none as kTypeNone
from mycel._src.foundation.object_types import type_type as kTypeType

__all__: list[str] = []


class _ByWidth(type):
    """The metaclass of a kind of numbers: `widths` has its element types by their width."""

    widths: dict[int, DType]
    members: tuple[DType, ...]

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, DType) and value in cls.members or type.__instancecheck__(cls, value)

    def __call__(cls, nbits: int | None = None) -> Any:
        if nbits is None:
            return super().__call__()
        if nbits not in cls.widths:
            widths = ", ".join(map(str, cls.widths))
            raise RuntimeError(f"{cls.__name__}: there are types of {widths} bits, not of {nbits!r}")
        return cls.widths[nbits]


class _Kind(ObjectType):
    __slots__ = ()

    def __init__(self) -> None:
        name = type(self).__name__
        super().__init__(name, name.lower())


class UInt(_Kind, metaclass=_ByWidth):
    """The type of unsigned integers; ``UInt(8)`` is uint8."""

    __slots__ = ()
    widths = {8: D.uint8, 16: D.uint16, 32: D.uint32, 64: D.uint64}
    members = tuple(widths.values())


class Float(_Kind, metaclass=_ByWidth):
    """The type of floats other than bfloat16; ``Float(32)`` is float32."""

    __slots__ = ()
    widths = {16: D.float16, 32: D.float32, 64: D.float64}
    members = (*widths.values(), D.float8_e4m3fn, D.float8_e5m2)


class BFloat(_Kind, metaclass=_ByWidth):
    """The type of floats with 8 bits of exponent; ``BFloat(16)`` is bfloat16."""

    __slots__ = ()
    widths = {16: D.bfloat16}
    members = (D.bfloat16,)


class Complex(_Kind, metaclass=_ByWidth):
    """The type of complex numbers; ``Complex(64)`` is complex64."""

    __slots__ = ()
    widths = {64: D.complex64, 128: D.complex128}
    members = tuple(widths.values())


class _TheBool(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return value is D.bool_

    def __call__(cls) -> Any:
        return D.bool_


class Bool(ObjectType, metaclass=_TheBool):
    """The type of bools: ``Bool()`` is the element type itself."""

    __slots__ = ()


class _Titled(type):
    """The metaclass of a class that stands for one type of objects, `of`; called, it gives that
    type, of given elements where it is a sequence.
    """

    of: ObjectType

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, ObjectType) and value.title.partition("[")[0] == cls.of.title

    def __call__(cls, elements: Sequence[Type] = ()) -> Any:
        if not elements:
            return cls.of
        return ObjectType(f"{cls.of.title}[{', '.join(map(str, elements))}]", cls.of.shown)


def _titled(name: str, of: ObjectType) -> Any:
    return _Titled(name, (ObjectType,), {"of": of, "__slots__": (), "__doc__": f"The class of the type {of}."})


kTypeEnv = ObjectType("Object:EnvType", "env_type")
kRefKeyType = ObjectType("Object:RefKey", "type_refkey")
kRowTensorType = ObjectType("RowTensor", "RowTensor")
kCOOTensorType = ObjectType("COOTensor", "COOTensor")
kCSRTensorType = ObjectType("CSRTensor", "CSRTensor")
kTypeNull = ObjectType("Null", "Null")
kInt4 = ObjectType("Int4", "int4")
kHiFloat8 = ObjectType("HiFloat8", "hifloat8")
kSymbolicKey = ObjectType("Object:SymbolicKey", "symbolic_key")
kUndetermined = ObjectType("Undetermined", "Undetermined")

Function = _titled("Function", kFunction)
List = _titled("List", list_)
Tuple = _titled("Tuple", tuple_)
String = _titled("String", string)
Dict = _titled("Dict", dictionary)
Slice = _titled("Slice", slice_)
TypeEllipsis = _titled("TypeEllipsis", ellipsis_)
TypeNone = _titled("TypeNone", kTypeNone)
TypeType = _titled("TypeType", kTypeType)
TypeNull = _titled("TypeNull", kTypeNull)
EnvType = _titled("EnvType", kTypeEnv)
RefKeyType = _titled("RefKeyType", kRefKeyType)
RefType = _titled("RefType", ObjectType("Ref", "Ref"))
SymbolicKeyType = _titled("SymbolicKeyType", kSymbolicKey)
RowTensorType = _titled("RowTensorType", kRowTensorType)
COOTensorType = _titled("COOTensorType", kCOOTensorType)
CSRTensorType = _titled("CSRTensorType", kCSRTensorType)
UndeterminedType = _titled("UndeterminedType", kUndetermined)
TypeAny = _titled("TypeAny", ObjectType("Any", "Any"))
TypeMsClassType = _titled("TypeMsClassType", ObjectType("MsClassType", "MsClassType"))
Keyword = _titled("Keyword", ObjectType("Keyword", "Keyword"))

kBool, kInt8, kInt16, kInt32, kInt64 = D.bool_, D.int8, D.int16, D.int32, D.int64
kUInt8, kUInt16, kUInt32, kUInt64 = D.uint8, D.uint16, D.uint32, D.uint64
kFloat16, kFloat32, kFloat64, kBFloat16 = D.float16, D.float32, D.float64, D.bfloat16
kFloat8E4M3FN, kFloat8E5M2 = D.float8_e4m3fn, D.float8_e5m2
kComplex64, kComplex128 = D.complex64, D.complex128
kInt, kUInt, kFloat, kBFloat, kNumber = Int(), UInt(), Float(), BFloat(), number
kList, kTuple, kString, kTensorType = list_, tuple_, string, tensor_type

_KINDS: tuple[tuple[Any, ObjectType], ...] = (
    (Int, kInt),
    (UInt, kUInt),
    (Float, kFloat),
    (BFloat, kBFloat),
    (Complex, Complex()),
)
# The numbers that MindSpore's files and its core have for types.
_NUMBERS: dict[Type, int] = {
    kTypeType: 4, kTypeNone: 7, kNumber: 11, kString: 12, kList: 13, kTuple: 14, kTensorType: 17, kFunction: 23,
    kBool: 30, kInt: 31, kInt8: 32, kInt16: 33, kInt32: 34, kInt64: 35, kUInt: 36, kUInt8: 37, kUInt16: 38,
    kUInt32: 39, kUInt64: 40, kFloat: 41, kFloat16: 42, kFloat32: 43, kFloat64: 44, kBFloat16: 45, kFloat8E4M3FN: 46,
    kFloat8E5M2: 47, kHiFloat8: 48, kComplex64: 51, kComplex128: 52, kInt4: 53,
}  # fmt: skip
_BY_NUMBER: dict[int, Type] = {n: kind for kind, n in _NUMBERS.items() if kind not in (kFunction, kUInt)}
_BY_NUMBER.update({31: kInt32, 41: kFloat32})
_SIZES: dict[Type, int] = {kNumber: 1, kInt: 1, kFloat: 1, kInt4: 1, kHiFloat8: 1}
_BY_NAME: dict[str, Type] = {
    name: kind
    for kind in (*D.ALL, *D.STORED, kInt, kUInt, kFloat, kBFloat, kInt4, kHiFloat8, kTypeNone)
    for name in (str(kind), str(kind).lower() if kind is not kTypeNone else str(kind))
}


def is_subclass(arg0: Type, arg1: Type) -> bool:
    """Return whether a type is another one, or of its kind: float32 is a float and a number.

    Raises TypeError where an argument is no type, such as a class.
    """
    for value in (arg0, arg1):
        if not isinstance(value, Type):
            raise TypeError(f"is_subclass takes types such as float32, not {value!r}")
    if arg0 == arg1:
        return True
    if arg1 == kNumber:
        return isinstance(arg0, (Number, UInt, Float, BFloat, Complex)) or any(arg0 == kind for _, kind in _KINDS)
    if isinstance(arg0, ObjectType):
        return isinstance(arg1, ObjectType) and arg0.title.partition("[")[0] == arg1.title
    return any(arg1 == kind and isinstance(arg0, of) for of, kind in _KINDS)


def str_to_type(arg0: str) -> Type:
    """Return the type that a name means: "float32", "Float32", "Tensor[Float32]".

    Raises RuntimeError for a name without a type.
    """
    if arg0.startswith("Tensor[") and arg0.endswith("]"):
        element = str_to_type(arg0[len("Tensor[") : -1])
        return TensorType(element if isinstance(element, DType) else None)
    if arg0 not in _BY_NAME:
        raise RuntimeError(f"there is no type of the name {arg0!r}")
    return _BY_NAME[arg0]


def type_to_type_id(t: Type) -> int:
    """Return the number of a type in MindSpore's files and its core.

    Raises TypeError where it has none.
    """
    kind = tensor_type if isinstance(t, TensorType) else t
    if kind not in _NUMBERS:
        raise TypeError(f"{t!r} has no number")
    return _NUMBERS[kind]


def type_id_to_type(arg0: int) -> Type:
    """Return the type of a number.

    Raises RuntimeError for a number without a type.
    """
    if arg0 not in _BY_NUMBER:
        raise RuntimeError(f"there is no type of the number {arg0!r}")
    return _BY_NUMBER[arg0]


def type_size_in_bytes(arg0: Type) -> int:
    """Return the bytes of an element of a type; 0 for types of objects."""
    return arg0.itemsize if isinstance(arg0, DType) else _SIZES.get(arg0, 0)


class TypeId(int):
    """The number of a type, as `dump_type` gives it."""


def dump_type(t: Type) -> TypeId:
    """Return the number of a type as a `TypeId`."""
    return TypeId(type_to_type_id(t))


def load_type(arg0: TypeId) -> Type:
    """Return the type of a `TypeId`."""
    return type_id_to_type(int(arg0))
