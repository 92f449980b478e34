"""Attributes of tensors beside their values: where they lie, their bytes, and MindSpore's marks.

Every tensor lies on the CPU, in memory of its own. Methods that would move a tensor elsewhere raise
an error that says so; those that ask about other places answer for this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core import storage
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import convolution

__all__ = ["as_bytes_of", "attach"]


def _data_ptr(self: Tensor) -> int:
    """Return the address of the first element."""
    return int(self._value("data_ptr()").ctypes.data)


def _storage(self: Tensor) -> storage.UntypedStorage:
    """Return the bytes of the tensor."""
    return storage.UntypedStorage._of(self)


def _storage_offset(self: Tensor) -> int:
    """Return 0: the first element is the first of its storage."""
    return 0


def _get_bytes(self: Tensor) -> bytes:
    """Return a copy of the tensor's bytes, in row-major order."""
    return self._value("get_bytes()").tobytes()


def as_bytes_of(x: Tensor, dtype: D.DType) -> Tensor:
    """Return the bytes of a tensor as numbers of another type; see the method `view`."""
    held = x.asnumpy()
    if not x.ndim and dtype.itemsize != x.dtype.itemsize:
        raise ValueError(f"view: a tensor of no dimensions cannot be seen as {dtype} instead of {x.dtype}")
    if x.ndim and x.shape[-1] * x.dtype.itemsize % dtype.itemsize:
        raise ValueError(
            f"view: the last axis, {x.shape[-1]} of {x.dtype}, has no whole number of {dtype}; its size must be a "
            f"multiple of {dtype.itemsize // x.dtype.itemsize}"
        )
    return Tensor(np.ascontiguousarray(held).view(dtype.numpy))


def _convert_bytes_to_tensor(bytes_str: bytes, dims: Any, data_type: Any) -> Tensor:
    """Return the tensor of a shape and type that has these bytes.

    Raises ValueError where their number does not fit.
    """
    return Tensor(np.frombuffer(bytes_str, D.to_numpy(data_type)).reshape(tuple(dims)))


def _data_sync(self: Tensor, need_wait: bool = True) -> None:
    """Do nothing: values are where they are computed."""


def _flush_from_cache(self: Tensor) -> None:
    """Do nothing: there is no cache of parameters."""


def _is_init(self: Tensor) -> bool:
    """Return whether the tensor was drawn by an initializer and has its values."""
    return not self.has_init and bool(self.__dict__.get("is_init", False))


def _is_pinned(self: Tensor) -> bool:
    """Return False: there is no device that memory could be pinned for."""
    return False


def _is_shared(self: Tensor) -> bool:
    """Return False: no other process has this memory."""
    return False


def _pin_memory(self: Tensor) -> Tensor:
    """Raise RuntimeError: there is no device that memory could be pinned for."""
    raise RuntimeError("pin_memory: there is no device beside the CPU to pin memory for; use the tensor as it is")


def _move_to(self: Tensor, to: str, blocking: bool = True) -> Tensor:
    """Return a copy on the device `to`: "CPU".

    Raises ValueError for other devices.
    """
    if to != "CPU":
        raise ValueError(f"move_to: device {to!r} is not available in this build; use 'CPU'")
    return self.copy()


def _offload_file_path(self: Tensor) -> str:
    """Return the empty string: values are in memory."""
    return ""


def _requires_grad(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether a parameter is trained, and return the tensor itself.

    It has no effect on other tensors: functions say by which of their arguments they are
    differentiated.
    """
    arguments.flag("requires_grad_", "requires_grad", requires_grad)
    if "requires_grad" in self.__dict__:
        setattr(self, "requires_grad", requires_grad)  # noqa: B010
    return self


def _set_const_arg(self: Tensor, const_arg: bool = True) -> Tensor:
    """Mark the tensor as a constant argument, and return the tensor itself.

    Compiled functions treat it as any other.
    """
    arguments.flag("set_const_arg", "const_arg", const_arg)
    self.__dict__["_const_arg"] = const_arg
    return self


def _to_dlpack(self: Tensor) -> Any:
    """Return a DLPack capsule of the tensor. See `mycel.to_dlpack`."""
    return storage.to_dlpack(self)


def _fold(
    self: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return patches added up in an image.

    See `mycel.ops.fold`.

    Args:
        output_size (int | tuple[int, ...] | None): (H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        dilation (int | tuple[int, ...]): The distance of its elements: an int, or one for each
            axis. Default: 1.
        padding (int | tuple[int, ...]): The zeros on each side: an int, or one for each axis.
            Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis.
            Default: 1.

    Returns:
        Tensor: The images, (N, C, H, W).
    """
    size = output_size.tolist() if isinstance(output_size, Tensor) else output_size
    return convolution.fold(self, size, kernel_size, dilation, padding, stride)


def _unfold(self: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the patches of an image.

    See `mycel.ops.unfold`.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        dilation (int | tuple[int, ...]): The distance of its elements: an int, or one for each
            axis. Default: 1.
        padding (int | tuple[int, ...]): The zeros on each side: an int, or one for each axis.
            Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis.
            Default: 1.

    Returns:
        Tensor: The columns, (N, C * KH * KW, positions).
    """
    return convolution.unfold(self, kernel_size, dilation, padding, stride)


def _init_of(self: Tensor) -> Any | None:
    """Return the initializer of the tensor, if it has one."""
    return self.__dict__.get("init")


_METHODS: dict[str, Any] = {
    "data_ptr": _data_ptr,
    "storage": _storage,
    "untyped_storage": _storage,
    "storage_offset": _storage_offset,
    "get_bytes": _get_bytes,
    "convert_bytes_to_tensor": staticmethod(_convert_bytes_to_tensor),
    "data_sync": _data_sync,
    "flush_from_cache": _flush_from_cache,
    "is_init": _is_init,
    "is_pinned": _is_pinned,
    "is_shared": _is_shared,
    "pin_memory": _pin_memory,
    "move_to": _move_to,
    "offload_file_path": _offload_file_path,
    "requires_grad_": _requires_grad,
    "set_const_arg": _set_const_arg,
    "to_dlpack": _to_dlpack,
    "from_dlpack": staticmethod(storage.from_dlpack),
    "fold": _fold,
    "unfold": _unfold,
}
_PROPERTIES: dict[str, tuple[Any, str]] = {
    "const_arg": (lambda self: self.__dict__.get("_const_arg", False), "Whether `set_const_arg` marked the tensor."),
    "init_finished": (lambda self: not self.has_init, "Whether the tensor has its values."),
    "is_meta": (lambda self: False, "False: tensors have values."),
}


def attach() -> None:
    """Attach the methods and properties."""
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
    for name, (compute, text) in _PROPERTIES.items():
        setattr(Tensor, name, property(compute, doc=text))
