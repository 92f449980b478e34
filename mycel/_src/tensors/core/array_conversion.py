"""Conversion of Python data to arrays for tensors, and of arrays to text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.symbols import Symbol
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["array_of", "is_scipy_sparse", "shape_of", "unset_text", "value_text", "with_arrays"]

# Functions of NumPy that call methods of tensors, which have other parameters, or read attributes
# that tensors have as methods.
_OF_ARRAYS = frozenset(
    """
    all amax amin any argwhere array_repr common_type imag isreal max mean min prod real result_type std sum var
    """.split()
)


def with_arrays(self: object, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Return what a `function` of NumPy gives for `args` and `kwargs` among which are tensors, or
    other objects of `types`.

    It is `Tensor.__array_function__`. Functions of shapes use the tensors' own methods and give
    tensors.
    """
    if function.__name__ not in _OF_ARRAYS:
        return function._implementation(*args, **kwargs)
    given = [np.asarray(v) if type(v) in types else v for v in args]
    return function(*given, **{word: np.asarray(v) if type(v) in types else v for word, v in kwargs.items()})


_EXTENDED = frozenset(d.numpy for d in (D.bfloat16, *D.STORED))


def value_text(array: np.ndarray[Any, Any], dtype: DType, separator: str = ", ") -> str:
    """Return the values of a tensor of type `dtype` as its `repr` shows them after ``value=``."""
    if array.ndim == 0:
        if dtype.is_floating:
            return f" {array.item():.6g}"
        return f" {_complex_text(array.item()) if dtype.is_complex else array.item()}"
    return f"{' ' if array.ndim == 1 else chr(10)}{_array_text(array, separator) if array.size else ''}"


def unset_text(shape: tuple[Any, ...], dtype: DType, is_staged: bool) -> str:
    """Return what `repr` shows of a tensor without values; sizes that are left open are -1."""
    if is_staged or all(isinstance(n, int) for n in shape):
        sizes = ", ".join(map(str, shape))
        return f"Tensor(shape=[{sizes}], dtype={dtype}, value=<{'staged' if is_staged else 'not initialized'}>)"
    sizes = ", ".join([str(n) if isinstance(n, int) else "-1" for n in shape])
    return f"Tensor(shape=[{sizes}], dtype={dtype}, value={' ' if len(shape) < 2 else chr(10)})"


def _complex_text(value: complex) -> str:
    return f"{value.real:.6g}{value.imag:+.6g}j"


def _array_text(array: np.ndarray[Any, Any], separator: str) -> str:
    """Return an array as MindSpore shows it: floats in scientific notation, aligned, and complex
    numbers with 6 digits.

    There are no empty lines, and dots stand for elements that are left out.
    """
    digits = 4 if array.dtype.itemsize == 2 else 8
    show = lambda v: f"{v: .{digits}e}" if np.isfinite(v) else f"{v:>{digits + 7}}"
    form: Any = {"f": {"float_kind": show}, "c": {"complex_kind": _complex_text}}.get(array.dtype.kind)
    text = np.array2string(array, separator=separator, formatter=form, max_line_width=120)
    return re.sub(r",(\s*)\.\.\.,", r"\1...", re.sub(r"\n+", "\n", text))


def shape_of(shape: Any) -> tuple[Any, ...]:
    """Return a shape as a tuple."""
    return (shape,) if shape is None or isinstance(shape, (int, Dim, Symbol)) else tuple(shape)


def array_of(data: Any, wanted: DType | None, plain: Callable[[Any], Any]) -> np.ndarray[Any, Any]:
    """Return data in any accepted form as a new C-contiguous array in native byte order.

    Its element type is `wanted`, or if that is None one that tensors can hold. `plain` replaces the
    tensors in a nested sequence by arrays.
    """
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    elif isinstance(data, (bool, int, float, complex)):
        if wanted is None and not isinstance(data, int):
            wanted = D.from_any(type(data))
        array = np.asarray(data)
    elif isinstance(data, (list, tuple)):
        try:
            array = np.array(plain(data))
        except ValueError:
            raise ValueError(
                f"Tensor: the nested sequence is ragged, its parts differ in length or depth: {_shortened(data)}; pad "
                "them to one length"
            ) from None
        if wanted is None and array.dtype in (np.float64, np.int32):
            wanted = D.float32 if array.dtype == np.float64 else D.int64
    elif hasattr(data, "__array__") or hasattr(data, "__dlpack__"):
        array = np.asarray(data) if hasattr(data, "__array__") else np.from_dlpack(data)
    elif is_scipy_sparse(data):
        array = data.toarray()
    else:
        raise TypeError(
            f"Tensor: data must be numbers, sequences, arrays or tensors, not {type(data).__name__} "
            f"({_shortened(data)})"
        )
    kind = array.dtype
    if kind.kind == "O" and all(isinstance(v, (int, np.integer)) for v in array.flat):
        raise OverflowError(f"Tensor: {_shortened(data)} holds integers beyond 64 bits; give floats")
    if kind.kind in "OSUMmV" and kind not in _EXTENDED:
        raise TypeError(f"Tensor: data of NumPy type {kind} is not numeric: {_shortened(data)}")
    if wanted is None:
        wanted = D.from_any(kind.newbyteorder("="))
    with np.errstate(all="ignore"):
        return np.array(array.astype(wanted.numpy, copy=False), order="C", copy=True)


def is_scipy_sparse(value: object) -> bool:
    """Tell whether a value is a sparse matrix or array of SciPy, which is not imported to know."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def _shortened(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 80 else f"{text[:77]}..."
