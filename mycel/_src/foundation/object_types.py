"""MindSpore's types of Python objects other than element types.

They describe lists, tuples, strings, numbers, None, functions, and tensors of an element type. A
type is an immutable value: two of the same form are equal and hash alike. `Int` and `Number` are
classes, of which element types are instances as well, so that ``isinstance(mycel.int32,
mycel.Int)`` holds; called with a width, `Int` gives the element type.
"""

from __future__ import annotations

import enum
import types
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType, Type

__all__ = [
    "Int",
    "Number",
    "ObjectType",
    "QuantDtype",
    "TensorType",
    "dtype_to_pytype",
    "function",
    "get_py_obj_dtype",
    "list_",
    "number",
    "object_of",
    "pytype_to_dtype",
    "string",
    "tensor_type",
    "tuple_",
    "type_none",
    "type_type",
]


class ObjectType(Type):
    """The type of a kind of Python's objects: a title, such as ``List``, and the name shown."""

    __slots__ = ("title", "shown")

    def __init__(self, title: str, shown: str) -> None:
        self.title, self.shown = title, shown

    def __repr__(self) -> str:
        return f"mindspore.{self.shown}"

    def __str__(self) -> str:
        return self.title

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectType) and self.title == other.title

    def __hash__(self) -> int:
        return hash(self.title)


class _ByKind(type):
    """The metaclass of a type whose instances include the element types of some kinds."""

    kinds: str

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, DType) and value.kind in cls.kinds or type.__instancecheck__(cls, value)


class Number(ObjectType, metaclass=_ByKind):
    """The type of all numbers; every element type is an instance."""

    __slots__ = ()
    kinds = "biufcs"

    def __init__(self) -> None:
        super().__init__("Number", "number")


class _Whole(_ByKind):
    def __call__(cls, nbits: int | None = None) -> Any:
        if nbits is None:
            return super().__call__()
        if isinstance(nbits, bool) or nbits not in (8, 16, 32, 64):
            raise ValueError(f"Int: signed integers have 8, 16, 32 or 64 bits, not {nbits!r}")
        return D.from_any(f"int{nbits}")


class Int(ObjectType, metaclass=_Whole):
    """The type of signed integers; called with a width, it gives the element type.

    Raises ValueError for other widths than 8, 16, 32 and 64.

    >>> import mycel as ms
    >>> ms.Int(32) is ms.int32, isinstance(ms.int8, ms.Int), isinstance(ms.uint8, ms.Int)
    (True, True, False)
    """

    __slots__ = ()
    kinds = "i"

    def __init__(self) -> None:
        super().__init__("Int", "int")


class TensorType(ObjectType):
    """The type of tensors, of a given element type or of any.

    Raises TypeError unless the argument is an element type.

    >>> import mycel as ms
    >>> str(ms.TensorType(ms.float32)), ms.TensorType(ms.float32) == ms.TensorType(ms.float32)
    ('Tensor[Float32]', True)
    """

    __slots__ = ("_element",)

    def __init__(self, element: DType | None = None) -> None:
        arguments.optional("TensorType", "element", element, DType, "an element type such as mycel.float32")
        self._element = element
        super().__init__(
            *("Tensor", "tensor") if element is None else (f"Tensor[{element}]", f"tensor[{element.name}]")
        )

    def element_type(self) -> DType | None:
        """Return the element type; None where it was not given."""
        return self._element


list_ = ObjectType("List", "list_")
tuple_ = ObjectType("Tuple", "tuple_")
dictionary = ObjectType("Dictionary", "Dictionary")
string = ObjectType("String", "string_")
slice_ = ObjectType("Slice", "Slice")
ellipsis_ = ObjectType("Ellipsis", "Ellipsis")
function = ObjectType("Function", "function")
type_none = ObjectType("None", "type_none")
type_type = ObjectType("TypeType", "type_type")
number = Number()
tensor_type = TensorType()

_BY_PYTHON = {
    list: list_,
    tuple: tuple_,
    dict: dictionary,
    str: string,
    slice: slice_,
    type(None): type_none,
    type(...): ellipsis_,
    types.FunctionType: function,
    types.MethodType: function,
    types.BuiltinFunctionType: function,
}
_TO_PYTHON: dict[Type, type] = {
    list_: list,
    tuple_: tuple,
    dictionary: dict,
    string: str,
    slice_: slice,
    type_none: type(None),
}


def of_class(kind: type) -> Type | None:
    """Return the type of the objects of a Python class other than numbers; None without one."""
    return next((_BY_PYTHON[base] for base in kind.__mro__ if base in _BY_PYTHON), None)


def class_of(kind: Type) -> type | None:
    """Return the Python class whose objects have the type `kind`; None where there is none."""
    return _TO_PYTHON.get(kind)


_KIND_TO_PYTHON = {
    "b": bool,
    "i": int,
    "u": int,
    "f": float,
    "c": complex,
    "s": float,
}


def dtype_to_pytype(type_: Any) -> type:
    """Return the Python type of a data type's elements: bool, int, float or complex.

    For the types of other objects it is their class: list, str and so on.

    >>> dtype_to_pytype(D.float16)
    <class 'float'>
    """
    if isinstance(type_, Type) and not isinstance(type_, D.DType):
        found = class_of(type_)
        if found is None:
            raise TypeError(f"dtype_to_pytype: no Python class belongs to {type_!r}")
        return found
    return _KIND_TO_PYTHON[D.from_any(type_).kind]


def pytype_to_dtype(obj: type) -> Any:
    """Return the data type of a Python or NumPy type: float64 for float, `list_` for list.

    Raises TypeError unless `obj` is a type, NotImplementedError for a type that has no data type.

    >>> pytype_to_dtype(float).name
    'float64'
    """
    arguments.instance("pytype_to_dtype", "obj", obj, type, "a type such as int")
    if obj is float:
        return D.float64
    try:
        return D.from_any(obj)
    except TypeError:
        found = of_class(obj)
    if found is None or str(found) in ("Dictionary", "Slice", "Ellipsis"):
        raise NotImplementedError(f"pytype_to_dtype: {obj.__name__} has no data type")
    return found


def object_of(value: Any) -> Type | None:
    """Return the type of a Python object that is not a tensor; None where there is none.

    The type of a number is an element type.
    """
    if isinstance(value, (bool, np.bool_)):
        return D.bool_
    if isinstance(value, np.generic):
        return D.from_any(value.dtype)
    for kind, found in ((int, D.int64), (float, D.float64), (complex, D.complex128)):
        if isinstance(value, kind):
            return found
    if isinstance(value, Type):
        return type_type
    return of_class(type(value)) or (function if callable(value) else None)


class QuantDtype(enum.Enum):
    """Element types of quantised values: signed and unsigned integers of 1 to 16 bits.

    >>> import mycel as ms
    >>> str(ms.QuantDtype.UINT4)
    'UINT4'
    """

    INT1 = 0
    INT2 = 1
    INT3 = 2
    INT4 = 3
    INT5 = 4
    INT6 = 5
    INT7 = 6
    INT8 = 7
    INT9 = 8
    INT10 = 9
    INT11 = 10
    INT12 = 11
    INT13 = 12
    INT14 = 13
    INT15 = 14
    INT16 = 15
    UINT1 = 100
    UINT2 = 101
    UINT3 = 102
    UINT4 = 103
    UINT5 = 104
    UINT6 = 105
    UINT7 = 106
    UINT8 = 107
    UINT9 = 108
    UINT10 = 109
    UINT11 = 110
    UINT12 = 111
    UINT13 = 112
    UINT14 = 113
    UINT15 = 114
    UINT16 = 115

    def value(self) -> int:  # type: ignore[override]
        """Return the number under which the type is saved in files.

        >>> import mycel as ms
        >>> ms.QuantDtype.INT8.value()
        7
        """
        return int(self._value_)

    def __str__(self) -> str:
        return self.name


def get_py_obj_dtype(obj: Any) -> Type:
    """Return the type of a Python object, or of the objects of a Python class.

    The type of a tensor includes its element type; that of a number is an element type. Raises
    NotImplementedError for objects that no type describes.

    >>> import mycel as ms
    >>> ms.get_py_obj_dtype(1), ms.get_py_obj_dtype("a"), ms.get_py_obj_dtype(ms.Tensor([1.0]))
    (mindspore.int64, mindspore.string_, mindspore.tensor[float32])
    """
    if isinstance(obj, type):
        kind: Type = pytype_to_dtype(obj)
        return kind
    element = getattr(obj, "dtype", None)
    if isinstance(element, DType):
        return TensorType(element)
    found = object_of(obj)
    if found is None or found in (dictionary, slice_, ellipsis_):
        raise NotImplementedError(f"get_py_obj_dtype: no type describes a {type(obj).__name__}")
    return found
