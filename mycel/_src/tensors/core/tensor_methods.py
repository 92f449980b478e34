"""Tensor methods that the public libraries attach.

The libraries attach them to `Tensor` when they are imported; the stub beside this file names them
all, with their signatures, for editors and type checkers.
"""

from __future__ import annotations

__all__ = ["TensorMethods"]


class TensorMethods:
    """The methods that tensors get from the public libraries."""

    __slots__ = ()
