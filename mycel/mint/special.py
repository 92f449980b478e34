"""Special functions under the names of PyTorch."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import erfc as erfc
from mycel.ops import exp2 as exp2
from mycel.ops import expm1 as expm1
from mycel.ops import log1p as log1p
from mycel.ops import sinc as sinc
from mycel.ops._operands import operand

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "round_op", "sinc"]


def log_softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along `dim`.

    Where `dim` is None it is axis 0 of tensors of 0, 1 or 3 dimensions and axis 1 of others.

    >>> import mycel as ms
    >>> ms.mint.special.log_softmax(ms.Tensor([0.0]), 0).tolist()
    [0.0]
    """
    x = ops.cast(input, dtype) if dtype is not None else input
    return ops.log_softmax(x, usual_axis(x) if dim is None else dim)


def usual_axis(x: Tensor) -> int:
    """Return the axis of a softmax where none is given."""
    return 0 if operand("softmax", x).ndim in (0, 1, 3) else 1


def round(input: Any, *, decimals: int = 0) -> Tensor:
    """Return each element rounded to a number of decimals, halves to the even neighbour.

    >>> import mycel as ms
    >>> ms.mint.special.round(ms.Tensor([2.5])).tolist()
    [2.0]
    """
    return ops.round(input, decimals=decimals)


def round_op(input: Any, decimals: int = 0) -> Tensor:
    """Return each element rounded to a number of decimals, as `round`.

    >>> import mycel as ms
    >>> ms.mint.special.round_op(ms.Tensor([2.5])).tolist()
    [2.0]
    """
    return ops.round(input, decimals=decimals)


__dir__ = _listing(__name__)
