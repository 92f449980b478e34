"""Functions of `mint` under the names of MindSpore's operations, and its marks on functions for its
graph compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.mint.arrangement import squeeze
from mycel.mint.nn.functional import flatten as flatten_ext
from mycel.mint.nn.functional import softmax as softmax_ext
from mycel.ops._operands import operands

__all__ = [
    "cdist_",
    "equal_ext_op",
    "flatten_ext",
    "jit_forbidden_register",
    "jit_view_unsupported",
    "npu_gelu",
    "softmax_ext",
    "squeeze_impl",
]

F = TypeVar("F", bound=Callable[..., Any])


def cdist_(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """Return the distances of order `p` between the rows of two stacks of matrices.

    >>> import mycel as ms
    >>> ms.mint.cdist_(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])).item()
    5.0
    """
    return ops.cdist(x1, x2, p)


def equal_ext_op(input: Any, other: Any) -> Tensor:
    """Return whether two tensors have the same shape and equal elements, as a tensor.

    >>> import mycel as ms
    >>> ms.mint.equal_ext_op(ms.Tensor([1, 2]), ms.Tensor([1, 2])).item()
    True
    """
    x, y = operands("equal_ext_op", input, other)
    if x.shape != y.shape:
        return Tensor(False)
    return ops.all(ops.equal(x, y))


def npu_gelu(input: Any, approximate: str = "none") -> Tensor:
    """Return the Gaussian error linear unit; `approximate` is 'none' or 'tanh'.

    >>> import mycel as ms
    >>> ms.mint.npu_gelu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return ops.gelu(input, approximate)


def squeeze_impl(input: Any, axis: Any) -> Tensor:
    """Remove the axes `axis`, one or several, that have size 1.

    >>> import mycel as ms
    >>> ms.mint.squeeze_impl(ms.ops.ones((1, 2, 1)), 0).shape
    (2, 1)
    """
    return squeeze(input, axis)


def jit_forbidden_register(fn: F) -> F:
    """Return the function unchanged: MindSpore's graphs must not call a function marked so, but
    here any function may be compiled.

    >>> import mycel as ms
    >>> ms.mint.jit_forbidden_register(abs) is abs
    True
    """
    return _marked("jit_forbidden_register", fn)


def jit_view_unsupported(fn: F) -> F:
    """Return the function unchanged: MindSpore's graphs do not support its views, but here they are
    supported.

    >>> import mycel as ms
    >>> ms.mint.jit_view_unsupported(abs) is abs
    True
    """
    return _marked("jit_view_unsupported", fn)


def _marked(name: str, fn: F) -> F:
    arguments.function(name, "fn", fn)
    return fn
