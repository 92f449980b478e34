"""`mindspore._c_dataengine`: the tensors of the data engine, their shapes and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__: list[str] = ["DataType", "Tensor", "TensorShape"]

_TYPES = frozenset(
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 string bytes python".split()
)


class DataType:
    """An element type of the engine by its name, "unknown" for a name that it does not have.

    >>> str(DataType("int8")), DataType("int8") == DataType("int16")
    ('int8', False)
    """

    def __init__(self, type_str: str) -> None:
        if not isinstance(type_str, str):
            raise TypeError(f"DataType: the name of a type must be a string, not {type(type_str).__name__}")
        self._name = type_str if type_str in _TYPES else "unknown"

    def is_python(self) -> bool:
        """Return whether the elements are objects of Python."""
        return self._name == "python"

    def __str__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)


class TensorShape:
    """The sizes of a tensor's dimensions; -1 where one is not known.

    >>> shape = TensorShape([2, -1])
    >>> str(shape), shape.as_list(), shape.is_known()
    ('<2,*>', [2, -1], False)
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = list(sizes)

    def as_list(self) -> list[int]:
        """Return the sizes."""
        return list(self._sizes)

    def is_known(self) -> bool:
        """Return whether all sizes are known."""
        return all(size >= 0 for size in self._sizes)

    def __str__(self) -> str:
        return f"<{','.join('*' if size < 0 else str(size) for size in self._sizes)}>"


class Tensor:
    """An array as the engine holds it.

    >>> tensor = Tensor(np.array([[1, 2]], np.int16))
    >>> tensor.as_array().tolist(), str(tensor.shape()), str(tensor.type())
    ([[1, 2]], '<1,2>', 'int16')
    """

    def __init__(self, array: NDArray[Any]) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor: an array is needed, not {type(array).__name__}")
        if array.dtype.hasobject or array.dtype.kind not in "biufUS":
            raise RuntimeError(f"Tensor: the engine has no type for arrays of {array.dtype}")
        self._array = array

    def as_array(self) -> NDArray[Any]:
        """Return the array, which shares the tensor's memory."""
        return self._array

    def shape(self) -> TensorShape:
        """Return the sizes."""
        return TensorShape(self._array.shape)

    def type(self) -> DataType:
        """Return the element type."""
        kind = self._array.dtype.kind
        return DataType({"U": "string", "S": "bytes"}.get(kind, self._array.dtype.name))
