"""Padding layers.

Sizes are given from the last axis on: (left, right, top, bottom, front, back).
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import input_of

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Pad",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad2d",
]


class Pad(Cell):
    """Each axis padded by a pair (before, after).

    `mode` "CONSTANT" pads with zeros, "REFLECT" with the mirror image without the edge, "SYMMETRIC"
    with the mirror image including the edge. Raises ValueError for another mode, or where there is
    not one pair for each axis.

    >>> import mycel as ms
    >>> ms.nn.Pad(((0, 0), (1, 1)))(ms.Tensor([[1.0]])).tolist()
    [[0.0, 1.0, 0.0]]
    """

    def __init__(self, paddings: Any, mode: str = "CONSTANT") -> None:
        super().__init__()
        self.mode = arguments.one_of("Pad", "mode", mode, ("CONSTANT", "REFLECT", "SYMMETRIC"))
        if not isinstance(paddings, tuple) or any(
            not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in paddings
        ):
            raise TypeError(
                f"Pad: paddings must be a tuple of pairs (before, behind), one for each axis, not {paddings!r}"
            )
        self.paddings = tuple(
            tuple(arguments.integer("Pad", "each of paddings", v, 0) for v in pair) for pair in paddings
        )

    def construct(self, x: Tensor) -> Tensor:
        """Return the padded input."""
        x = input_of(self, x)
        if len(self.paddings) != x.ndim:
            raise ValueError(f"Pad: there are {len(self.paddings)} pairs of paddings for an input of shape {x.shape}")
        if self.mode == "CONSTANT":
            return ops.pad(x, [v for pair in reversed(self.paddings) for v in pair])
        return ops.mirror_pad(x, self.paddings, self.mode)


class _Edges(Cell):
    rank = 1
    fewest = 0
    mode = "constant"

    def __init__(self, padding: Any, value: Any = None) -> None:
        super().__init__()
        owner = type(self).__name__
        if isinstance(padding, tuple):
            # Fewer pairs are those of the last axes.
            if len(padding) % 2 or len(padding) > 2 * self.rank or len(padding) < self.fewest:
                raise ValueError(f"{owner}: padding must be an int or {2 * self.rank} of them, not {padding}")
            self.padding = tuple(arguments.integer(owner, "each of padding", p) for p in padding)
        else:
            self.padding = (arguments.integer(owner, "padding", padding),) * (2 * self.rank)
        if self.mode == "reflect" and min(self.padding, default=0) < 0:
            raise ValueError(f"{owner}: each of padding must be at least 0, not {self.padding}")
        self.value = value

    def construct(self, x: Tensor) -> Tensor:
        """Return the padded input."""
        return ops.pad(x, list(self.padding), self.mode, self.value) if self.padding else input_of(self, x)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"padding={self.padding}" if self.value is None else f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Edges):
    """The last axis padded with `value` by (left, right), or one int for both.

    A negative size removes elements.

    >>> import mycel as ms
    >>> ms.nn.ConstantPad1d(1, 9.0)(ms.Tensor([[1.0]])).tolist()
    [[9.0, 1.0, 9.0]]
    """

    fewest = 2

    def __init__(self, padding: Any, value: Any) -> None:
        arguments.number(type(self).__name__, "value", value)
        super().__init__(padding, value)


class ConstantPad2d(ConstantPad1d):
    """The last two axes padded with `value` by (left, right, top, bottom), or one int for all.

    >>> import mycel as ms
    >>> ms.nn.ConstantPad2d((1, 0, 0, 0), 9.0)(ms.Tensor([[[1.0]]])).tolist()
    [[[9.0, 1.0]]]
    """

    rank = 2
    fewest = 0


class ConstantPad3d(ConstantPad1d):
    """The last three axes padded with `value` by (left, right, top, bottom, front, back), or one
    int for all.

    >>> import mycel as ms
    >>> ms.nn.ConstantPad3d(1, 0.5)(ms.ops.ones((1, 2, 2, 2))).shape
    (1, 4, 4, 4)
    """

    rank = 3
    fewest = 0


class ZeroPad2d(_Edges):
    """The last two axes padded with zeros by (left, right, top, bottom), or one int for all.

    >>> import mycel as ms
    >>> ms.nn.ZeroPad2d((1, 0, 0, 0))(ms.Tensor([[[1.0]]])).tolist()
    [[[0.0, 1.0]]]
    """

    rank = 2

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"padding={self.padding}"


class ReflectionPad1d(_Edges):
    """The last axis padded by (left, right) with its mirror image, which does not repeat the edge.

    >>> import mycel as ms
    >>> ms.nn.ReflectionPad1d((2, 1))(ms.Tensor([[1.0, 2.0, 3.0]])).tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]
    """

    mode = "reflect"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)


class ReflectionPad2d(ReflectionPad1d):
    """The last two axes padded by (left, right, top, bottom) with their mirror image.

    >>> import mycel as ms
    >>> ms.nn.ReflectionPad2d(1)(ms.ops.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class ReflectionPad3d(ReflectionPad1d):
    """The last three axes padded by (left, right, top, bottom, front, back) with their mirror
    image.

    >>> import mycel as ms
    >>> ms.nn.ReflectionPad3d(1)(ms.ops.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3


class ReplicationPad1d(_Edges):
    """The last axis padded by (left, right) with its edges.

    >>> import mycel as ms
    >>> ms.nn.ReplicationPad1d((2, 1))(ms.Tensor([[1.0, 2.0]])).tolist()
    [[1.0, 1.0, 1.0, 2.0, 2.0]]
    """

    mode = "replicate"
    fewest = 2

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)


class ReplicationPad2d(ReplicationPad1d):
    """The last two axes padded by (left, right, top, bottom) with their edges.

    >>> import mycel as ms
    >>> ms.nn.ReplicationPad2d(1)(ms.ops.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class ReplicationPad3d(ReplicationPad1d):
    """The last three axes padded by (left, right, top, bottom, front, back) with their edges.

    >>> import mycel as ms
    >>> ms.nn.ReplicationPad3d(1)(ms.ops.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3
