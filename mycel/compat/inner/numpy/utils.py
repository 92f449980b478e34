"""`mindspore.numpy.utils`: arguments of functions as tensors."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor

__all__: list[str] = []


def _convert_64_to_32(tensor: Tensor) -> Tensor:
    """Return a tensor of float64 or int64 as float32 or int32, and another as it is."""
    narrow = {D.float64: D.float32, D.int64: D.int32}
    return tensor.astype(narrow[tensor.dtype]) if tensor.dtype in narrow else tensor


def _to_tensor(*args: Any) -> Any:
    """Return values as tensors of at most 32 bits: one, or a tuple for several."""
    made = tuple(a if isinstance(a, Tensor) else _convert_64_to_32(Tensor(a)) for a in args)
    return made[0] if len(made) == 1 else made


def _to_tensor_origin_dtype(*args: Any) -> Any:
    """Return values as tensors of their own types: one, or a tuple for several."""
    made = tuple(a if isinstance(a, Tensor) else Tensor(a) for a in args)
    return made[0] if len(made) == 1 else made
