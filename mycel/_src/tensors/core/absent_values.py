"""Tensors whose values are not here: in parts on several ranks, or not drawn yet.

Whoever asks such a tensor for its buffer gets the values, which may be much larger than what this
process has of them. `by_types` lets a function be staged without that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines import buffers
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["by_types", "value_later"]


class _Local(threading.local):
    by_types = False


_local = _Local()


@contextmanager
def by_types() -> Iterator[None]:
    """Leave the ranks' parts where they are when functions are staged as one graph in this block:
    staging gets them when it uses a value, and not for asking whether there is one.
    """
    before, _local.by_types = _local.by_types, True
    try:
        yield
    finally:
        _local.by_types = before


class _Later(buffers.Elsewhere):
    """Stands for the buffer of a tensor, which is asked for its value when this is."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def _found(self) -> Any:
        with eager.use_context(None):
            return self.tensor._buf

    def array(self, type: TensorType) -> np.ndarray[Any, Any]:
        return buffers.to_array(self._found(), type)

    def number(self, type: TensorType) -> Any:
        return buffers.number(self._found(), type)

    def address(self) -> int:
        return buffers.address(self._found())

    def copied(self, type: TensorType) -> Any:
        return buffers.copy(self._found(), type)

    def is_own(self) -> bool:
        return buffers.is_own(self._found())

    def is_shared(self) -> bool:
        return True


def value_later(tensor: Tensor, drawn: bool = True) -> buffers.Elsewhere | None:
    """Return what stands for the buffer of a tensor while a function is staged by types, or at all
    where the values are not `drawn` yet; None at any other time, when whoever asks is to get them.
    """
    staging = eager.local.staging if eager.active and (_local.by_types or not drawn) else None
    return _Later(tensor) if staging is not None and not staging.is_live else None
