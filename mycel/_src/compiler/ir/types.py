"""The types of values in a graph: tensors, tuples of types, and the token that orders effects.

`TensorType` is interned: equal types are one object, so that dictionaries keyed by types hash and
compare by identity. A type is checked when it is first made: sizes are ints of at least 0, and the
number of bytes of a tensor fits 63 bits, even of a broadcast that takes no memory. So every count,
stride and offset in a value of the type fits as well. Types with symbols are checked again when
sizes are put in.
"""

from __future__ import annotations

import operator
from typing import Any

from mycel._src.compiler.ir.dims import Dim, DimLike, product
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import SizeError
from mycel._src.foundation.python_runtime.finalization import Interned

__all__ = ["MOST_BYTES", "TOKEN", "TensorType", "TokenType", "Type", "tensor_type"]

MOST_BYTES = (1 << 63) - 1


class TensorType:
    """The shape and element type of a tensor; `tensor_type` makes one."""

    __slots__ = ("shape", "dtype", "rank", "is_static", "__weakref__")

    shape: tuple[DimLike, ...]
    dtype: DType

    def __init__(self, shape: tuple[DimLike, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype
        self.rank = len(shape)
        self.is_static = not any(isinstance(d, Dim) for d in shape)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(repr, self.shape))}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (tensor_type, (self.shape, self.dtype))

    @property
    def size(self) -> DimLike:
        return product(self.shape)

    @property
    def nbytes(self) -> DimLike:
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: tuple[DimLike, ...]) -> TensorType:
        return tensor_type(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return tensor_type(self.shape, dtype)


class TokenType:
    """The type of an effect token."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "token"


TOKEN = TokenType()
Type = TensorType | TokenType | tuple["Type", ...]

_INTERNED: dict[tuple[tuple[DimLike, ...], DType], TensorType] = {}
# Each compiled function has symbols of its own: types of them are let go with it.
_SYMBOLIC: Interned[tuple[tuple[DimLike, ...], DType], TensorType] = Interned()


def tensor_type(shape: tuple[DimLike, ...], dtype: DType) -> TensorType:
    """Return the type of tensors of this shape and element type.

    Raises SizeError for negative sizes, and where the number of bytes does not fit 63 bits.
    """
    key = (shape, dtype)
    found = _INTERNED.get(key)
    if found is None:
        shape = _checked(shape, dtype)
        made = TensorType(shape, dtype)
        if made.is_static:
            return _INTERNED.setdefault((shape, dtype), made)
        found = _SYMBOLIC.enter((shape, dtype), made)
    return found


def _checked(shape: tuple[DimLike, ...], dtype: DType) -> tuple[DimLike, ...]:
    """Return the shape with Python's ints as sizes; raise SizeError if no tensor can have it.

    Sizes of 0 count as 1 in the product, as strides are products of the others.
    """
    if not isinstance(dtype, DType):
        raise TypeError(f"{dtype!r:.80} is not a data type that tensors can hold")
    if not all(type(d) is int or type(d) is Dim for d in shape):
        shape = tuple([d if isinstance(d, Dim) else operator.index(d) for d in shape])
    nbytes = dtype.itemsize
    for d in shape:
        if type(d) is int:
            if d < 0:
                raise SizeError(f"sizes must not be negative, got the shape {_shown(shape)}")
            nbytes *= d or 1
    if nbytes > MOST_BYTES:
        raise SizeError(
            f"a tensor of the shape {_shown(shape)} and of {dtype.name} would have {_power(nbytes)} bytes; no memory "
            "can have more than 2**63 - 1"
        )
    return shape


def _shown(shape: tuple[DimLike, ...], most: int = 16) -> str:
    sizes = [_power(d) if type(d) is int else str(d) for d in shape]
    if len(sizes) > most:
        sizes[most:] = [f"... {len(sizes) - most} more"]
    return f"({', '.join(sizes)}{',' if len(shape) == 1 else ''})"


def _power(size: int) -> str:
    """Return a number as text: roughly, as a power of 2, where it has hundreds of digits."""
    return str(size) if -(1 << 127) < size < 1 << 127 else f"{'-' if size < 0 else ''}2**{abs(size).bit_length() - 1}"
