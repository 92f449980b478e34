"""Layers with weights under the names, arguments and initial weights of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import HeUniform, Normal, Uniform, initializer
from mycel.mint.nn import functional
from mycel.nn.assignment import store
from mycel.ops._operands import input_of

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "PReLU",
    "SyncBatchNorm",
]


def _parameter(name: str, init: Any, shape: tuple[int, ...], dtype: Any, trained: bool = True) -> Parameter:
    return Parameter(initializer(init, shape, D.float32 if dtype is None else dtype), name=name, requires_grad=trained)


class _Convolution(Cell):
    rank = 2
    turned = False

    def _start(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        output_padding: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
    ) -> None:
        owner = type(self).__name__
        self.in_channels = arguments.integer(owner, "in_channels", in_channels, 1)
        self.out_channels = arguments.integer(owner, "out_channels", out_channels, 1)
        self.groups = arguments.integer(owner, "groups", groups, 1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{owner}: groups {groups} must divide in_channels {in_channels} and out_channels {out_channels}"
            )

        def sizes(name: str, value: Any, least: int) -> tuple[int, ...]:
            error = ValueError if self.turned else TypeError
            return arguments.sizes(owner, name, value, self.rank, least, miscounted=error)

        self.kernel_size = sizes("kernel_size", kernel_size, 1)
        self.stride = sizes("stride", stride, 1)
        self.dilation = sizes("dilation", dilation, 1)
        self.output_padding = sizes("output_padding", output_padding, 0)
        self.padding: Any = padding
        if isinstance(padding, str):
            arguments.choice(owner, "padding", padding, ("same", "valid"))
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(f"{owner}: padding 'same' goes with stride 1, not {stride}")
        else:
            self.padding = sizes("padding", padding, 0)
        modes = ("zeros",) if self.turned else ("zeros", "reflect", "replicate", "circular")
        if not isinstance(padding_mode, Hashable):
            raise arguments.wrong_type(owner, "padding_mode", "a string", padding_mode)
        self.padding_mode = arguments.one_of(owner, "padding_mode", padding_mode, modes)
        lead = (in_channels, out_channels // groups) if self.turned else (out_channels, in_channels // groups)
        shape = (*lead, *self.kernel_size)
        self.weight = _parameter("weight", HeUniform(math.sqrt(5)), shape, dtype)
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        arguments.flag(owner, "bias", bias)
        self.bias = _parameter("bias", Uniform(bound), (out_channels,), dtype) if bias else None

    def _padded(self, x: Tensor) -> tuple[Tensor, Any]:
        """Return the input with padding added unless it is zeros, and the padding that is left to
        add.
        """
        if self.padding_mode == "zeros":
            return x, self.padding if isinstance(self.padding, str) or self.rank > 1 else self.padding[0]
        amounts: list[int] = []
        for i in reversed(range(self.rank)):
            if isinstance(self.padding, str):
                total = self.dilation[i] * (self.kernel_size[i] - 1) if self.padding == "same" else 0
                amounts += [total // 2, total - total // 2]
            else:
                amounts += [self.padding[i]] * 2
        return functional.pad(x, amounts, self.padding_mode), 0

    def extend_repr(self) -> str:
        """Return the arguments."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}, bias={self.bias is not None}, "
            f"padding_mode={self.padding_mode!r}"
        )


class Conv1d(_Convolution):
    """The convolution of (N, C, L) signals with a weight (out_channels, in_channels / groups,
    kernel). Weight and bias start uniformly within 1 / sqrt(fan in).

    Args:
        in_channels (int): The number of channels of the input, which `groups` divides.
        out_channels (int): The number of channels of the result, which `groups` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel, for each axis or for all.
        stride (int | tuple[int, ...]): The step of the kernel. Default: 1.
        padding (int | str | tuple[int, ...]): Padding of each side, "valid" or "same". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements. Default: 1.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.
        bias (bool): Whether there is a bias. Default: True.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular". Default: "zeros".
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.Conv1d(2, 3, 2)(ms.ops.ones((1, 2, 5))).shape
        (1, 3, 4)
    """

    rank = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._start(
            in_channels, out_channels, kernel_size, stride, padding, 0, dilation, groups, bias, padding_mode, dtype
        )

    def construct(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        x, padding = self._padded(input)
        return functional.conv1d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Convolution):
    """The convolution of (N, C, H, W) images with a weight (out_channels, in_channels / groups,
    *kernel).

    `bias` adds a bias; `dtype` is the element type of the parameters (None: float32).

    Args:
        in_channels (int): The number of channels of the input, which `groups` divides.
        out_channels (int): The number of channels of the result, which `groups` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        padding (int | str | tuple[int, ...]): The padding on each side: an int, one for each axis,
            "valid" or "same". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.
        bias (bool): Whether there is a bias. Default: True.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular". Default: "zeros".
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.Conv2d(2, 3, 2)(ms.ops.ones((1, 2, 5, 5))).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._start(
            in_channels, out_channels, kernel_size, stride, padding, 0, dilation, groups, bias, padding_mode, dtype
        )

    def construct(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        x, padding = self._padded(input)
        return functional.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_Convolution):
    """The convolution of (N, C, D, H, W) with a weight (out_channels, in_channels / groups,
    *kernel).

    `bias` adds a bias; `dtype` is the element type of the parameters (None: float32).

    Args:
        in_channels (int): The number of channels of the input, which `groups` divides.
        out_channels (int): The number of channels of the result, which `groups` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        padding (int | str | tuple[int, ...]): The padding on each side: an int, one for each axis,
            "valid" or "same". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.
        bias (bool): Whether there is a bias. Default: True.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular". Default: "zeros".
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.Conv3d(2, 3, 2)(ms.ops.ones((1, 2, 3, 3, 3))).shape
        (1, 3, 2, 2, 2)
    """

    rank = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._start(
            in_channels, out_channels, kernel_size, stride, padding, 0, dilation, groups, bias, padding_mode, dtype
        )

    def construct(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        x, padding = self._padded(input)
        return functional.conv3d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class ConvTranspose2d(_Convolution):
    """The transpose of `Conv2d`: (N, C, H, W) spread over a larger image by a weight (in_channels,
    out_channels / groups, *kernel).

    `bias` adds a bias; `padding_mode` must be "zeros"; `dtype` is the element type of the
    parameters (None: float32).

    Args:
        in_channels (int): The number of channels of the input, which `groups` divides.
        out_channels (int): The number of channels of the result, which `groups` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        padding (int | tuple[int, ...]): What is removed from both sides of the result: an int or
            two. Default: 0.
        output_padding (int | tuple[int, ...]): What is added at its end. Default: 0.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.
        bias (bool): Whether there is a bias. Default: True.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        padding_mode (str): Must be "zeros". Default: "zeros".
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.ConvTranspose2d(2, 3, 2, stride=2)(ms.ops.ones((1, 2, 2, 2))).shape
        (1, 3, 4, 4)
    """

    turned = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", stride),
            ("padding", padding),
            ("output_padding", output_padding),
            ("dilation", dilation),
        ):
            if not isinstance(value, (int, tuple, list)):
                raise arguments.wrong_value("ConvTranspose2d", name, "an int or two of them", value)
        self._start(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def construct(self, input: Tensor) -> Tensor:
        """Return the transposed convolution."""
        return functional.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )


class _BatchNorm(Cell):
    """Base of batch normalisation layers.

    `num_features` is the number of channels, `eps` is added to the variance, `momentum` is the
    weight of new statistics, `affine` adds a trained scale and shift, `track_running_stats` keeps
    running statistics, and `dtype` is the element type of the parameters (None: float32).
    """

    ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.num_features = arguments.integer(owner, "num_features", num_features, 1)
        self.eps = arguments.real(owner, "eps", eps, at_least=0)
        self.momentum = arguments.real(owner, "momentum", momentum, at_least=0, at_most=1)
        self.affine = arguments.flag(owner, "affine", affine)
        self.track_running_stats = arguments.flag(owner, "track_running_stats", track_running_stats)
        size = (num_features,)
        self.weight = _parameter("weight", "ones", size, dtype) if affine else None
        self.bias = _parameter("bias", "zeros", size, dtype) if affine else None
        self.running_mean = _parameter("running_mean", "zeros", size, dtype, False) if track_running_stats else None
        self.running_var = _parameter("running_var", "ones", size, dtype, False) if track_running_stats else None
        self.num_batches_tracked: Parameter | None = None
        if track_running_stats:
            self.num_batches_tracked = Parameter(Tensor(np.int64(0)), name="num_batches_tracked", requires_grad=False)

    def construct(self, input: Tensor) -> Tensor:
        """Normalise the input; in training the running statistics follow those of the batch."""
        input = input_of(self, input)
        if (self.ranks and input.ndim not in self.ranks) or input.ndim < 2 or input.shape[1] != self.num_features:
            takes = " or ".join(map(str, self.ranks)) or "at least 2"
            raise ValueError(
                f"{type(self).__name__}: the input must have {takes} dimensions and {self.num_features} channels in "
                "axis 1, "
                f"not the shape {input.shape}"
            )
        if self.training and self.num_batches_tracked is not None:
            store(self.num_batches_tracked, self.num_batches_tracked + 1)
        from_batch = self.training or self.running_mean is None
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, from_batch, self.momentum, self.eps
        )

    def extend_repr(self) -> str:
        """Return the arguments."""
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation (Ioffe and Szegedy, 2015) of (N, C) or (N, C, L).

    In training the running ones follow: ``running = (1 - momentum) * running + momentum * batch``,
    with the unbiased variance.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of new statistics; None for their plain mean. Default: 0.1.
        affine (bool): Whether there are a trained scale and shift. Default: True.
        track_running_stats (bool): Whether running statistics are kept, and used outside of
            training. Default: True.
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Raises:
        ValueError: For inputs of another form.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.BatchNorm1d(3)(ms.ops.ones((2, 3))).shape
        (2, 3)
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W); the arguments and statistics are those of `BatchNorm1d`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of new statistics; None for their plain mean. Default: 0.1.
        affine (bool): Whether there are a trained scale and shift. Default: True.
        track_running_stats (bool): Whether running statistics are kept, and used outside of
            training. Default: True.
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.BatchNorm2d(3)(ms.ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W).

    The arguments and statistics are those of `BatchNorm1d`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of new statistics; None for their plain mean. Default: 0.1.
        affine (bool): Whether there are a trained scale and shift. Default: True.
        track_running_stats (bool): Whether running statistics are kept, and used outside of
            training. Default: True.
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.BatchNorm3d(3)(ms.ops.ones((2, 3, 4, 4, 4))).shape
        (2, 3, 4, 4, 4)
    """

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, ...) over all processes, of which there is one here.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of new statistics; None for their plain mean. Default: 0.1.
        affine (bool): Whether there are a trained scale and shift. Default: True.
        track_running_stats (bool): Whether running statistics are kept, and used outside of
            training. Default: True.
        process_group (str | None): The name of the group of processes; None for all of them.
            Default: None.
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Raises:
        ValueError: For a `process_group`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.SyncBatchNorm(3)(ms.ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)
        if process_group is not None:
            raise ValueError(f"SyncBatchNorm: there is one process; process_group must be None, not {process_group!r}")


class GroupNorm(Cell):
    """Normalisation of each sample and group of channels of (N, C, ...), followed by a scale and a
    shift of each channel (Wu and He, 2018).

    Args:
        num_groups (int): The number of groups, which divides `num_channels`.
        num_channels (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        affine (bool): Whether there are a trained scale and shift. Default: True.
        dtype (DType | None): The element type of scale and shift; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.GroupNorm(2, 4)(ms.ops.ones((1, 4, 3))).shape
        (1, 4, 3)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_groups = arguments.integer("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = arguments.integer("GroupNorm", "num_channels", num_channels, 1)
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_groups {num_groups} must divide num_channels {num_channels}")
        self.eps = arguments.real("GroupNorm", "eps", eps)
        self.affine = arguments.flag("GroupNorm", "affine", affine)
        self.weight = _parameter("weight", "ones", (num_channels,), dtype) if affine else None
        self.bias = _parameter("bias", "zeros", (num_channels,), dtype) if affine else None

    def construct(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LayerNorm(Cell):
    """Normalisation of each sample over its last axes, followed by a scale and a shift (Ba et al.,
    2016).

    Args:
        normalized_shape (int | Sequence[int]): The sizes of the last axes.
        eps (float): Added to the variance. Default: 1e-05.
        elementwise_affine (bool): Whether there are a trained scale and shift. Default: True.
        bias (bool): Whether there is a shift. Default: True.
        dtype (DType | None): The element type of scale and shift; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.LayerNorm(4)(ms.ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
        self.normalized_shape = tuple(arguments.integer("LayerNorm", "each of normalized_shape", n, 1) for n in given)
        self.eps = arguments.real("LayerNorm", "eps", eps, at_least=0)
        self.elementwise_affine = arguments.flag("LayerNorm", "elementwise_affine", elementwise_affine)
        shifted = arguments.flag("LayerNorm", "bias", bias) and elementwise_affine
        self.weight = _parameter("weight", "ones", self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = _parameter("bias", "zeros", self.normalized_shape, dtype) if shifted else None

    def construct(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class Embedding(Cell):
    """The rows of a table at whole numbers; see `mycel.mint.nn.functional.embedding`.

    The table starts as standard normal numbers, or is ``_weight``; ``_freeze`` excludes it from
    training.

    Args:
        num_embeddings (int): The number of rows.
        embedding_dim (int): The length of a row.
        padding_idx (int | None): The row that starts as zeros and gets no gradient; None for none.
            Default: None.
        max_norm (float | None): The norm to which longer rows are scaled; None for no limit.
            Default: None.
        norm_type (float): The order of the norm. Default: 2.0.
        scale_grad_by_freq (bool): Whether the gradient of a row is divided by the number of times
            that it is looked up. Default: False.
        sparse (bool): Must be False: sparse gradients are not supported. Default: False.
        dtype (DType | None): The element type of the table; None for float32. Default: None.

    Raises:
        ValueError: For `sparse` gradients.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.Embedding(5, 3, padding_idx=0)(ms.Tensor([0])).tolist()
        [[0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = arguments.integer("Embedding", "num_embeddings", num_embeddings, 1)
        self.embedding_dim = arguments.integer("Embedding", "embedding_dim", embedding_dim, 1)
        if padding_idx is not None:
            padding_idx = arguments.integer("Embedding", "padding_idx", padding_idx)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is no row of a table of {num_embeddings}")
        if max_norm is not None:
            max_norm = arguments.real("Embedding", "max_norm", max_norm)
        norm_type = arguments.real("Embedding", "norm_type", norm_type)
        if arguments.flag("Embedding", "sparse", sparse):
            raise ValueError("Embedding: sparse gradients are not supported; leave sparse False")
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq = arguments.flag("Embedding", "scale_grad_by_freq", scale_grad_by_freq)
        shape = (num_embeddings, embedding_dim)
        if _weight is not None:
            arguments.instance("Embedding", "_weight", _weight, Tensor)
            if _weight.shape != shape:
                raise ValueError(f"Embedding: _weight must have shape {shape}, not {_weight.shape}")
            self.weight = Parameter(_weight, name="weight", requires_grad=not _freeze)
        else:
            self.weight = _parameter("weight", Normal(1.0, 0.0), shape, dtype, not _freeze)
            if padding_idx is not None:
                rows = np.arange(num_embeddings).reshape(-1, 1) == padding_idx % num_embeddings
                self.weight.set_data(ops.where(Tensor(rows), ops.zeros_like(self.weight), self.weight))

    def construct(self, input: Tensor) -> Tensor:
        """Return the rows."""
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"{self.num_embeddings}, {self.embedding_dim}, padding_idx={self.padding_idx}, max_norm={self.max_norm}"


class PReLU(Cell):
    """x where it is positive, else w * x with one trained w, or one for each channel (He et al.,
    2015).

    >>> import mycel as ms
    >>> ms.mint.nn.PReLU(init=0.5)(ms.Tensor([[-2.0, 1.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = arguments.integer("PReLU", "num_parameters", num_parameters, 1)
        self.weight = _parameter("weight", float(init), (num_parameters,), dtype)

    def construct(self, input: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return functional.prelu(input, self.weight)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"num_parameters={self.num_parameters}"
