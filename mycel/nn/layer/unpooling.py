"""Pooling by norms, over adaptive volumes and over windows of random sizes, and the inverse of
maximum pooling.
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "AdaptiveMaxPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class LPPool1d(Cell):
    """The norm ``sum(x ** p) ** (1 / p)`` of each window of (N, C, L) or (C, L), where p is
    `norm_type`.

    Args:
        norm_type (float): The power p.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window: an int, or one for each axis;
            None, where it may be, for that of the window. Default: None.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.LPPool1d(2, 2)(ms.Tensor([[[3.0, 4.0, 6.0, 8.0]]])).tolist()
        [[[5.0, 10.0]]]
    """

    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = arguments.number("LPPool1d", "norm_type", norm_type, above=0)
        self.kernel_size = arguments.integer("LPPool1d", "kernel_size", kernel_size, 1)
        self.stride = None if stride is None else arguments.integer("LPPool1d", "stride", stride, 1)
        self.ceil_mode = arguments.flag("LPPool1d", "ceil_mode", ceil_mode)

    def construct(self, x: Tensor) -> Tensor:
        """Return the norm of each window."""
        return ops.lp_pool1d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(Cell):
    """The norm ``sum(x ** p) ** (1 / p)`` of each window of (N, C, H, W), where p is `norm_type`.

    Args:
        norm_type (float): The power p.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window: an int, or one for each axis;
            None, where it may be, for that of the window. Default: None.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.LPPool2d(2, 2)(ms.ops.ones((1, 1, 2, 2))).tolist()
        [[[[2.0]]]]
    """

    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = arguments.number("LPPool2d", "norm_type", norm_type, above=0)
        self.kernel_size = arguments.sizes("LPPool2d", "kernel_size", kernel_size, 2, lists=False)
        self.stride = None if stride is None else arguments.sizes("LPPool2d", "stride", stride, 2, lists=False)
        self.ceil_mode = arguments.flag("LPPool2d", "ceil_mode", ceil_mode)

    def construct(self, x: Tensor) -> Tensor:
        """Return the norm of each window."""
        return ops.lp_pool2d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class AdaptiveMaxPool3d(Cell):
    """The largest element of nearly equal windows of (N, C, D, H, W) or (C, D, H, W); with
    `return_indices` also its position in D * H * W.

    `output_size` is the number of windows, an int or three; None stands for the input's own size.

    >>> import mycel as ms
    >>> ms.nn.AdaptiveMaxPool3d((1, 2, 3))(ms.ops.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 1, 2, 3)
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        if isinstance(output_size, (str, dict)):
            raise arguments.wrong_type("AdaptiveMaxPool3d", "output_size", "an int or three of them", output_size)
        self.output_size = output_size
        self.return_indices = bool(return_indices)

    def construct(self, input: Tensor) -> Any:
        """Return the largest element of each window."""
        return ops.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _Fractional(Cell):
    """Base of pooling over windows at random positions; `rank` is the number of spatial axes.

    `kernel_size` is the window. Exactly one of `output_size`, the number of windows, and
    `output_ratio`, that number over the input's size, is given; `return_indices` adds positions.
    """

    rank = 2

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._counts("kernel_size", kernel_size)
        # Where the number of windows is given, the ratio is not read.
        self.output_size = None if output_size is None else self._counts("output_size", output_size)
        self.output_ratio = output_ratio if output_size is None else None
        if self.output_ratio is not None:
            for ratio in output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,):
                arguments.real(type(self).__name__, "output_ratio", ratio)
        self.return_indices = arguments.flag(type(self).__name__, "return_indices", return_indices)
        self._random_samples = _random_samples

    def _counts(self, name: str, value: Any) -> Any:
        """Check that a size is an int, or a tuple of one for each axis."""
        owner = type(self).__name__
        if not isinstance(value, tuple):
            return arguments.integer(owner, name, value)
        whole = all(isinstance(n, int) for n in value)
        if len(value) != self.rank or not whole:
            error = ValueError if whole or self.rank == 2 or name != "kernel_size" else TypeError
            raise arguments.wrong_value(owner, name, f"an int or {self.rank} of them", value, error)
        return value


class FractionalMaxPool2d(_Fractional):
    """The largest elements of windows at random positions of (N, C, H, W) (Graham, "Fractional
    Max-Pooling", 2014).

    Exactly one of `output_size` and `output_ratio` is given. Random numbers in [0, 1) of shape (N,
    C, 2) may be given as ``_random_samples``; see `ops.fractional_max_pool2d`.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the windows.
        output_size (int | tuple[int, ...] | None): The number of windows along each axis. Default:
            None.
        output_ratio (float | tuple[float, ...] | None): That number over the input's size. Default:
            None.
        return_indices (bool): Whether positions in H * W are returned as well. Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.FractionalMaxPool2d(2, output_size=(3, 3))(ms.ops.ones((1, 1, 5, 5))).shape
        (1, 1, 3, 3)
    """

    def construct(self, input: Tensor) -> Any:
        """Return the largest element of each window."""
        return ops.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool3d(_Fractional):
    """The largest elements of windows at random positions of (N, C, D, H, W); the arguments are
    those of `FractionalMaxPool2d`, with sizes for three axes.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the windows.
        output_size (int | tuple[int, ...] | None): The number of windows along each axis. Default:
            None.
        output_ratio (float | tuple[float, ...] | None): That number over the input's size. Default:
            None.
        return_indices (bool): Whether to return the positions of the elements as well. Default:
            False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.FractionalMaxPool3d(2, output_size=(3, 3, 3))(ms.ops.ones((1, 1, 5, 5, 5))).shape
        (1, 1, 3, 3, 3)
    """

    rank = 3

    def construct(self, input: Tensor) -> Any:
        """Return the largest element of each window."""
        return ops.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class _Unpool(Cell):
    rank = 1

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        owner = type(self).__name__
        self.kernel_size = arguments.sizes(owner, "kernel_size", kernel_size, self.rank, lists=False)
        steps = kernel_size if stride is None else stride
        self.stride = arguments.sizes(owner, "stride", steps, self.rank, 0, lists=False)
        self.padding = arguments.sizes(owner, "padding", padding, self.rank, 0, lists=False)


class MaxUnpool1d(_Unpool):
    """The elements of (N, C, L) or (C, L) at the positions that a maximum pooling found, with zeros
    elsewhere; see `ops.max_unpool1d`.

    >>> import mycel as ms
    >>> ms.nn.MaxUnpool1d(2)(ms.Tensor([[[2.0, 4.0]]]), ms.Tensor([[[1, 2]]])).tolist()
    [[[0.0, 2.0, 4.0, 0.0]]]
    """

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the elements at their positions."""
        return ops.max_unpool1d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_Unpool):
    """The elements of (N, C, H, W) or (C, H, W) at the positions in an image that a maximum pooling
    found, with zeros elsewhere.

    >>> import mycel as ms
    >>> ms.nn.MaxUnpool2d(2)(ms.Tensor([[[[5.0]]]]), ms.Tensor([[[[3]]]])).tolist()
    [[[[0.0, 0.0], [0.0, 5.0]]]]
    """

    rank = 2

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the elements at their positions."""
        return ops.max_unpool2d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_Unpool):
    """The elements of (N, C, D, H, W) or (C, D, H, W) at the positions in a volume that a maximum
    pooling found, with zeros elsewhere.

    >>> import mycel as ms
    >>> ms.nn.MaxUnpool3d(2)(ms.Tensor([[[[[5.0]]]]]), ms.Tensor([[[[[7]]]]])).sum().item()
    5.0
    """

    rank = 3

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the elements at their positions."""
        return ops.max_unpool3d(x, indices, self.kernel_size, self.stride, self.padding, output_size)
