"""Padding layers under the names of PyTorch; an amount is an int, or as many as there are ends."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel.nn.layer import padding as layers

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


def _check(owner: str, padding: Any, rank: int, least: int = 0) -> None:
    """Check that `padding` is an int or one for each end of `rank` axes; of `least` 1 an int must
    be positive and none in a sequence negative.
    """
    if isinstance(padding, (tuple, list)):
        if len(padding) != 2 * rank:
            raise arguments.wrong_value(owner, "padding", f"an int or {2 * rank} of them", padding)
        for size in padding if least else ():
            arguments.integer(owner, "each of padding", size, 0)
    elif not isinstance(padding, int):
        raise arguments.wrong_value(owner, "padding", f"an int or {2 * rank} of them", padding)
    elif least:
        arguments.integer(owner, "padding", padding, least)


class ConstantPad1d(layers.ConstantPad1d):
    """The last axis padded with `value`, by (left, right) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ConstantPad1d(1, 0.5)(ms.ops.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    def __init__(self, padding: Any, value: Any) -> None:
        _check("ConstantPad1d", padding, 1)
        super().__init__(padding, value)


class ConstantPad2d(layers.ConstantPad2d):
    """The last two axes padded with `value`, by (left, right, top, bottom) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ConstantPad2d(1, 0.5)(ms.ops.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    def __init__(self, padding: Any, value: Any) -> None:
        _check("ConstantPad2d", padding, 2)
        super().__init__(padding, value)


class ConstantPad3d(layers.ConstantPad3d):
    """The last three axes padded with `value`, by (left, right, top, bottom, front, back) or
    one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ConstantPad3d(1, 0.5)(ms.ops.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    def __init__(self, padding: Any, value: Any) -> None:
        _check("ConstantPad3d", padding, 3)
        super().__init__(padding, value)


class ReflectionPad1d(layers.ReflectionPad1d):
    """The last axis padded with its mirror image, which does not repeat the edge, by (left,
    right) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ReflectionPad1d(1)(ms.ops.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ReflectionPad1d", padding, 1, 1)
        super().__init__(padding)


class ReflectionPad2d(layers.ReflectionPad2d):
    """The last two axes padded with their mirror image, which does not repeat the edge, by
    (left, right, top, bottom) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ReflectionPad2d(1)(ms.ops.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ReflectionPad2d", padding, 2, 1)
        super().__init__(padding)


class ReflectionPad3d(layers.ReflectionPad3d):
    """The last three axes padded with their mirror image, which does not repeat the edge, by
    (left, right, top, bottom, front, back) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ReflectionPad3d(1)(ms.ops.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ReflectionPad3d", padding, 3, 1)
        super().__init__(padding)


class ReplicationPad1d(layers.ReplicationPad1d):
    """The last axis padded with its edges, by (left, right) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ReplicationPad1d(1)(ms.ops.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ReplicationPad1d", padding, 1, 1)
        super().__init__(padding)


class ReplicationPad2d(layers.ReplicationPad2d):
    """The last two axes padded with their edges, by (left, right, top, bottom) or one int for
    all.

    >>> import mycel as ms
    >>> ms.mint.nn.ReplicationPad2d(1)(ms.ops.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ReplicationPad2d", padding, 2, 1)
        super().__init__(padding)


class ReplicationPad3d(layers.ReplicationPad3d):
    """The last three axes padded with their edges, by (left, right, top, bottom, front, back)
    or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ReplicationPad3d(1)(ms.ops.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ReplicationPad3d", padding, 3, 1)
        super().__init__(padding)


class ZeroPad1d(layers.ZeroPad2d):
    """The last axis padded with zeros, by (left, right) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ZeroPad1d(1)(ms.ops.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    rank = 1

    def __init__(self, padding: Any) -> None:
        _check("ZeroPad1d", padding, 1)
        super().__init__(padding)


class ZeroPad2d(layers.ZeroPad2d):
    """The last two axes padded with zeros, by (left, right, top, bottom) or one int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ZeroPad2d(1)(ms.ops.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    def __init__(self, padding: Any) -> None:
        _check("ZeroPad2d", padding, 2)
        super().__init__(padding)


class ZeroPad3d(layers.ZeroPad2d):
    """The last three axes padded with zeros, by (left, right, top, bottom, front, back) or one
    int for all.

    >>> import mycel as ms
    >>> ms.mint.nn.ZeroPad3d(1)(ms.ops.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    rank = 3

    def __init__(self, padding: Any) -> None:
        _check("ZeroPad3d", padding, 3)
        super().__init__(padding)
