"""Element-wise functions of truth values and of bits."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import operand, run, terms

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "invert",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]


def _truths(name: str, input: Any, other: Any) -> tuple[Tensor, Tensor]:
    x, y = terms(name, input, other)
    return cast(x, D.bool_), cast(y, D.bool_)


@fused
def logical_and(input: Any, other: Any) -> Tensor:
    """Return whether both elements are true.

    Operands broadcast; numbers are true where they are not 0.

    >>> import mycel as ms
    >>> ms.ops.logical_and(True, False).item()
    False
    """
    return run(E.logical_and, *_truths("logical_and", input, other))


@fused
def logical_or(input: Any, other: Any) -> Tensor:
    """Return whether either element is true.

    Operands broadcast; numbers are true where they are not 0.

    >>> import mycel as ms
    >>> ms.ops.logical_or(True, False).item()
    True
    """
    return run(E.logical_or, *_truths("logical_or", input, other))


@fused
def logical_xor(input: Any, other: Any) -> Tensor:
    """Return whether exactly one element is true.

    Operands broadcast; numbers are true where they are not 0.

    >>> import mycel as ms
    >>> ms.ops.logical_xor(True, False).item()
    True
    """
    return run(E.logical_xor, *_truths("logical_xor", input, other))


@fused
def logical_not(input: Any) -> Tensor:
    """Return whether each element is false (0 for numbers).

    >>> import mycel as ms
    >>> ms.ops.logical_not(ms.Tensor([True, False])).tolist()
    [False, True]
    """
    return run(E.logical_not, operand("logical_not", input, D.bool_))


def _bits(name: str, input: Any, other: Any) -> tuple[Tensor, Tensor]:
    x, y = terms(name, input, other)
    if x.dtype.kind not in "iub":
        raise TypeError(f"{name}: takes integers and booleans, not {x.dtype.name}")
    return x, y


@fused
def bitwise_and(input: Any, other: Any) -> Tensor:
    """Return the bits that are set in both operands.

    Operands are integers or booleans, and broadcast.

    >>> import mycel as ms
    >>> ms.ops.bitwise_and(6, 3).item()
    2
    """
    x, y = _bits("bitwise_and", input, other)
    return x & y


@fused
def bitwise_or(input: Any, other: Any) -> Tensor:
    """Return the bits that are set in either operand.

    Operands are integers or booleans, and broadcast.

    >>> import mycel as ms
    >>> ms.ops.bitwise_or(6, 3).item()
    7
    """
    x, y = _bits("bitwise_or", input, other)
    return x | y


@fused
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """Return the bits that are set in exactly one operand.

    Operands are integers or booleans, and broadcast.

    >>> import mycel as ms
    >>> ms.ops.bitwise_xor(6, 3).item()
    5
    """
    x, y = _bits("bitwise_xor", input, other)
    return x ^ y


@fused
def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """Shift the bits of `input` left by `other`.

    Operands are integers or booleans, and broadcast.

    >>> import mycel as ms
    >>> ms.ops.bitwise_left_shift(3, 2).item()
    12
    """
    x, y = _bits("bitwise_left_shift", input, other)
    return x << y


@fused
def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """Shift the bits of `input` right by `other`.

    Operands are integers or booleans, and broadcast.

    >>> import mycel as ms
    >>> ms.ops.bitwise_right_shift(12, 2).item()
    3
    """
    x, y = _bits("bitwise_right_shift", input, other)
    return x >> y


@fused
def bitwise_not(input: Any) -> Tensor:
    """Invert all bits of integers; booleans are negated. Raises TypeError for other types.

    >>> import mycel as ms
    >>> int(ms.ops.bitwise_not(ms.Tensor(5)))
    -6
    """
    x = operand("bitwise_not", input)
    if x.dtype.kind not in "iub":
        raise TypeError(f"bitwise_not: takes integers and booleans, not {x.dtype.name}")
    return run(E.logical_not if x.dtype is D.bool_ else E.bitwise_not, x)


@fused
def invert(x: Any) -> Tensor:
    """Return the same as `bitwise_not`.

    >>> import mycel as ms
    >>> int(ms.ops.invert(ms.Tensor(5)))
    -6
    """
    return bitwise_not(x)
