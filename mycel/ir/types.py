"""The types of values in a graph: tensors (shape and element type), tuples of types, and the token that orders effects.

`TensorType` is interned: equal types are one object, so that dictionaries keyed by types hash and compare by identity.
"""

from __future__ import annotations

from typing import Any, Union

from mycel.dtype import DType
from mycel.ir.dims import Dim, DimLike, product

__all__ = ["TOKEN", "TensorType", "TokenType", "Type", "tensor_type"]


class TensorType:
    """Shape and element type of a tensor; make one with `tensor_type`."""

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
        return self.size * self.dtype.itemsize  # type: ignore[no-any-return]

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
Type = Union[TensorType, TokenType, tuple["Type", ...]]

_INTERNED: dict[tuple[tuple[DimLike, ...], DType], TensorType] = {}


def tensor_type(shape: tuple[DimLike, ...], dtype: DType) -> TensorType:
    """The type of tensors of this shape (non-negative sizes) and element type."""
    key = (shape, dtype)
    found = _INTERNED.get(key)
    if found is None:
        found = _INTERNED.setdefault(key, TensorType(shape, dtype))
    return found
