"""`mindspore.utils.dlpack`: functions that exchange tensors with other libraries without a copy."""

from __future__ import annotations

from typing import Any

from mycel import from_dlpack
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule for another library's `from_dlpack`. Raises TypeError for anything but a
    tensor.

    >>> import mycel as ms
    >>> from_dlpack(to_dlpack(ms.Tensor([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    arguments.instance("to_dlpack", "tensor", tensor, Tensor)
    return tensor.to_dlpack()
