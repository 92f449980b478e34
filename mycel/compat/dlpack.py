"""`mindspore.utils.dlpack`: tensors to and from other libraries without a copy, as functions."""

from __future__ import annotations

from typing import Any

from mycel import from_dlpack
from mycel.core.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """What another library's `from_dlpack` takes. TypeError for what is no tensor.

    >>> import mycel as ms
    >>> from_dlpack(to_dlpack(ms.Tensor([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack: takes a tensor, not {type(tensor).__name__}")
    return tensor.to_dlpack()
