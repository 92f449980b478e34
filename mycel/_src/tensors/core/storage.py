"""Storage of tensors: their bytes, sharing by DLPack and NumPy arrays, and swapping of data.

The elements of a tensor lie in row-major order from the first byte of its storage on, views
included. DLPack (https://dmlc.github.io/dlpack) hands memory from one library to another without
copying it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["UntypedStorage", "from_dlpack", "from_numpy", "frombuffer", "swap_tensors", "to_dlpack"]


class UntypedStorage:
    """The bytes of a tensor, as `Tensor.untyped_storage` gives them.

    >>> import mycel as ms
    >>> ms.Tensor([1.0, 2.0]).untyped_storage().nbytes()
    8
    """

    _tensor: Tensor

    def __init__(self) -> None:
        raise TypeError("UntypedStorage: a storage is a tensor's; tensor.untyped_storage() gives it")

    @classmethod
    def _of(cls, tensor: Tensor) -> UntypedStorage:
        made = object.__new__(cls)
        made._tensor = tensor
        return made

    device = "CPU"
    dtype = D.uint8

    def _array(self) -> np.ndarray[Any, Any]:
        return self._tensor._value("a storage").reshape(-1).view(np.uint8)

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return int(self._array().ctypes.data)

    def element_size(self) -> int:
        """Return 1: elements are bytes."""
        return 1

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._tensor.nbytes)

    def size(self) -> int:
        """Return the number of bytes."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.nbytes()

    def is_shared(self) -> bool:
        """Return False, as no other process has this memory."""
        return False

    def tolist(self) -> list[int]:
        """Return the bytes as numbers."""
        numbers: list[int] = self._array().tolist()
        return numbers

    def copy_(self, src: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copy the bytes of another storage of this size into this one.

        Raises ValueError for another size.
        """
        if src.nbytes() != self.nbytes():
            raise ValueError(f"UntypedStorage.copy_: {src.nbytes()} bytes do not fit into {self.nbytes()}")
        new = src._array().copy().view(self._tensor.dtype.numpy).reshape(self._tensor.shape)
        self._tensor._replace(Tensor(new))
        return self


class _Capsule:
    """A bare DLPack capsule in the form that NumPy imports."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Writable:
    """The memory of an array as writable, also where NumPy takes it for read-only."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        known = array.__array_interface__
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


# Whether NumPy hears that memory is not to be written. Before DLPack 1.0, and by bare capsules,
# nothing is said of it.
_TELLS = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule of a tensor's memory, which can be imported once.

    Raises TypeError for what is no tensor, and for types that NumPy does not export.

    >>> import mycel as ms
    >>> from_dlpack(to_dlpack(ms.Tensor([1, 2]))).asnumpy()
    array([1, 2])
    """
    arguments.instance("to_dlpack", "tensor", tensor, Tensor)
    if tensor.dtype is D.bfloat16:
        raise TypeError("to_dlpack: bfloat16 cannot be exported; cast it with .astype(mycel.float32)")
    return tensor._value("DLPack export").__dlpack__()


def from_dlpack(dlpack: Any) -> Tensor:
    """Return a tensor of the memory in a DLPack capsule, or of an object with ``__dlpack__``.

    Memory that is not contiguous or not writable is copied.

    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> t = from_dlpack(a)
    >>> a[0] = 5
    >>> t.asnumpy()
    array([5., 0.])
    """
    if isinstance(dlpack, np.ndarray):
        return _shared(dlpack)
    tells = _TELLS
    if not hasattr(dlpack, "__dlpack__"):
        if type(dlpack).__name__ != "PyCapsule":
            raise TypeError(
                f"from_dlpack: takes a DLPack capsule or an object with __dlpack__, not {type(dlpack).__name__}"
            )
        dlpack, tells = _Capsule(dlpack), False
    array = np.from_dlpack(dlpack)
    return _shared(array if tells else np.asarray(_Writable(array)))


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor that shares the memory of a contiguous NumPy array.

    >>> import numpy as np
    >>> import mycel as ms
    >>> a = np.zeros(2, np.float32)
    >>> t = ms.from_numpy(a)
    >>> a[0] = 1
    >>> float(t[0])
    1.0
    """
    return Tensor.from_numpy(array)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """Return a vector of the elements in a buffer.

    Args:
        buffer (bytes | bytearray | memoryview | numpy.ndarray): Bytes, a bytearray, a memoryview or
            an array; the memory of a writable one is shared.
        dtype (DType | None): The element type.
        count (int): The number of elements; -1 for all. Default: -1.
        offset (int): The byte at which they begin. Default: 0.

    Returns:
        Tensor: The vector.

    Raises:
        ValueError: If the buffer is too short, or its size no multiple of the element size.

    Examples:
        >>> import mycel as ms
        >>> ms.frombuffer(b"abcdefgh", dtype=ms.int16, count=2, offset=2).asnumpy()
        array([25699, 26213], dtype=int16)
    """
    kind = D.from_any(dtype)
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        raise TypeError(f"frombuffer: takes bytes or another buffer, not {type(buffer).__name__}") from None
    for name, value in (("count", count), ("offset", offset)):
        arguments.integer("frombuffer", name, value, flags=True, numpy=False)
    if not 0 <= offset <= size or (count >= 0 and offset + count * kind.itemsize > size):
        raise ValueError(
            f"frombuffer: {count} elements of {kind.name} from byte {offset} on do not lie in {size} bytes"
        )
    if count < 0 and (size - offset) % kind.itemsize:
        raise ValueError(f"frombuffer: {size - offset} bytes are no whole number of {kind.name}; give count")
    if size == offset or count == 0:
        return Tensor(np.zeros(0, kind.numpy))
    return _shared(np.frombuffer(buffer, kind.numpy, count, offset))


def _shared(array: np.ndarray[Any, Any]) -> Tensor:
    if not array.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array)
    return Tensor.from_numpy(array)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swap the values, types and attributes of two tensors or of two parameters.

    Raises TypeError for other arguments, and RuntimeError for views and while something is compiled
    or recorded.

    >>> import mycel as ms
    >>> a, b = ms.Tensor(1), ms.Tensor([2.0, 3.0])
    >>> swap_tensors(a, b)
    >>> a.shape, b.shape
    ((2,), ())
    """
    if not isinstance(t1, Tensor) or type(t1) is not type(t2):
        raise TypeError(
            f"swap_tensors: takes two tensors of one class, not {type(t1).__name__} and {type(t2).__name__}"
        )
    if eager.active and eager.local.context is not None:
        raise RuntimeError("swap_tensors: cannot be part of a compiled or differentiated function; swap before it")
    for t in (t1, t2):
        if t._view is not None or t._views is not None:
            raise RuntimeError("swap_tensors: a tensor is a view or has views; make a copy with .copy()")
    t1._type, t2._type = t2._type, t1._type
    t1._buf, t2._buf = t2._buf, t1._buf
    first, second = dict(t1.__dict__), dict(t2.__dict__)
    for t, attributes in ((t1, second), (t2, first)):
        t.__dict__.clear()
        t.__dict__.update(attributes)
