"""`mindspore.common.dtype`: types of MindSpore's own machinery, and the classes of types."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import Type, dtype_to_nptype
from mycel._src.foundation.object_types import (
    dtype_to_pytype,
    get_py_obj_dtype,
    list_,
    pytype_to_dtype,
    string,
    tuple_,
    type_none,
)
from mycel.compat.inner._c_expression.typing import (
    Bool,
    CSRTensorType,
    Dict,
    EnvType,
    Float,
    List,
    RefType,
    Slice,
    String,
    Tuple,
    is_subclass,
)
from mycel.compat.inner._c_expression.typing import Function as FunctionType
from mycel.compat.inner._c_expression.typing import TypeAny as AnythingType
from mycel.compat.inner._c_expression.typing import TypeEllipsis as Ellipsis_
from mycel.compat.inner._c_expression.typing import TypeMsClassType as MsClassType
from mycel.compat.inner._c_expression.typing import TypeNone as NoneType
from mycel.compat.inner._c_expression.typing import TypeNull as _NullType
from mycel.compat.inner._c_expression.typing import kCOOTensorType as coo_tensor
from mycel.compat.inner._c_expression.typing import kCSRTensorType as csr_tensor
from mycel.compat.inner._c_expression.typing import kHiFloat8 as hifloat8
from mycel.compat.inner._c_expression.typing import kInt4 as qint4x2
from mycel.compat.inner._c_expression.typing import kRefKeyType as type_refkey
from mycel.compat.inner._c_expression.typing import kRowTensorType as index_slices
from mycel.compat.inner._c_expression.typing import kSymbolicKey as symbolic_key
from mycel.compat.inner._c_expression.typing import kTypeEnv as env_type
from mycel.compat.inner._c_expression.typing import kTypeNull as _null
from mycel.compat.inner._c_expression.typing import kUndetermined as undetermined
from mycel.compat.inner._c_expression.typing import type_size_in_bytes as _size_in_bytes

__all__ = ["hifloat8", "qint4x2", "type_size_in_bytes"]

signed_type = (*D.int_type, D.float16, D.float32, D.float64, D.bfloat16, *D.complex_type, qint4x2, *D.STORED, hifloat8)
_simple_types: dict[type, Type] = {
    list: list_,
    tuple: tuple_,
    types.NoneType: type_none,
    bool: D.bool_,
    int: D.int64,
    float: D.float64,
    complex: D.complex128,
    str: string,
    np.bool_: D.bool_,
    np.str_: string,
    **{kind.numpy.type: kind for kind in (*D.int_type, *D.uint_type, D.float16, D.float32, D.float64)},
}
_dtype_to_nptype = dtype_to_nptype
_dtype_to_pytype = dtype_to_pytype
_get_py_obj_dtype = get_py_obj_dtype
_pytype_to_dtype = pytype_to_dtype


def _issubclass_(type_: Any, dtype: Any) -> bool:
    """Return whether a type is another one or of its kind; False where the first is no type."""
    return isinstance(type_, Type) and is_subclass(type_, dtype)


def type_size_in_bytes(dtype: Type) -> int:
    """Return the bytes of an element of a type; 0 for types of objects."""
    return _size_in_bytes(dtype)


def np_dtype_valid(support: bool) -> bool:
    """Return whether NumPy has bfloat16, which it has with the package ml_dtypes."""
    return True
