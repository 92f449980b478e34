"""Layers made of others: a product or convolution with normalisation and activation, products of
two inputs, and layers applied to every time step.
"""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import Uniform, initializer
from mycel.nn.layer.activation import LeakyReLU, get_activation
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.conv import Conv2d
from mycel.nn.layer.normalization import BatchNorm1d, BatchNorm2d
from mycel.ops._operands import input_of, wide
from mycel.ops.operations import Primitive

__all__ = ["BiDense", "Conv2dBnAct", "DenseBnAct", "L1Regularizer", "TimeDistributed"]


class _Stages(Cell):
    """Base of the combined layers: normalisation and activation after a first stage."""

    def _finish_with(self, has_bn: bool, norm: Any, activation: Any, alpha: float, after_fake: bool) -> None:
        owner = type(self).__name__
        self.has_bn = arguments.flag(owner, "has_bn", has_bn)
        self.has_act = activation is not None
        self.after_fake = arguments.flag(owner, "after_fake", after_fake)
        if has_bn:
            self.batchnorm = norm()
        if isinstance(activation, str):
            activation = LeakyReLU(alpha) if activation == "leakyrelu" else get_activation(activation, owner)
            if activation is None:
                raise KeyError(f"{owner}: activation must name a function; use None for none")
        if not (activation is None or isinstance(activation, (Cell, Primitive))):
            raise TypeError(
                f"{owner}: activation must be a name, a Cell or a Primitive, not {type(activation).__name__}"
            )
        self.activation: Any = activation

    def _finished(self, x: Tensor) -> Tensor:
        if self.has_bn:
            x = self.batchnorm(x)
        return x if self.activation is None else self.activation(x)


class Conv2dBnAct(_Stages):
    """`Conv2d`, then `BatchNorm2d` if `has_bn`, then an activation.

    Args:
        in_channels (int): The number of channels that come in.
        out_channels (int): The number of channels that come out.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which adds `padding` zeros on each side. Default:
            "same".
        padding (int | tuple[int, ...]): The zeros on each side with `pad_mode` "pad". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for that of the layer. Default: "normal".
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            that of the layer. Default: "zeros".
        has_bn (bool): Whether there is a batch normalisation. Default: False.
        momentum (float): The momentum of the batch normalisation. Default: 0.997.
        eps (float): Added to the variance of the batch normalisation. Default: 1e-05.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): A name, a Cell, a Primitive or
            None. Default: None.
        alpha (float): The slope of "leakyrelu". Default: 0.2.
        after_fake (bool): A mark for quantisation, which has no effect. Default: True.

    Raises:
        TypeError, ValueError: As the layers do.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv2dBnAct(3, 4, 3, has_bn=True, activation="relu")(ms.ops.ones((1, 3, 8,
        ...     8))).shape
        (1, 4, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
        )
        self._finish_with(has_bn, lambda: BatchNorm2d(out_channels, eps, momentum), activation, alpha, after_fake)

    def construct(self, x: Tensor) -> Tensor:
        """Return the result of all stages."""
        return self._finished(self.conv(x))


class DenseBnAct(_Stages):
    """`Dense`, then `BatchNorm1d` if `has_bn`, then an activation.

    Args:
        in_channels (int): The number of channels that come in.
        out_channels (int): The number of channels that come out.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for that of the layer. Default: "normal".
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            that of the layer. Default: "zeros".
        has_bias (bool): Whether a bias is added. Default: True.
        has_bn (bool): Whether there is a batch normalisation. Default: False.
        momentum (float): The momentum of the batch normalisation. Default: 0.9.
        eps (float): Added to the variance of the batch normalisation. Default: 1e-05.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): A name, a Cell, a Primitive or
            None. Default: None.
        alpha (float): The slope of "leakyrelu". Default: 0.2.
        after_fake (bool): A mark for quantisation, which has no effect. Default: True.

    Raises:
        TypeError, ValueError: As the layers do.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.DenseBnAct(3, 4, has_bn=True, activation="relu")(ms.ops.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._finish_with(has_bn, lambda: BatchNorm1d(out_channels, eps, momentum), activation, alpha, after_fake)

    def construct(self, x: Tensor) -> Tensor:
        """Return the result of all stages."""
        return self._finished(self.dense(x))


class BiDense(Cell):
    """The layer ``y[..., o] = x1 @ weight[o] @ x2 + bias[o]`` over the last axes, with a weight of
    shape (out_channels, in1_channels, in2_channels).

    Args:
        in1_channels (int): The size of the last axis of the first input.
        in2_channels (int): The size of the last axis of the second input.
        out_channels (int): The size of the last axis of the result.
        weight_init (Tensor | str | Initializer | float | None): The initializer; None for
            ``Uniform(1 / sqrt(in1_channels))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer; None for ``Uniform(1
            / sqrt(in1_channels))``. Default: None.
        has_bias (bool): Whether the bias is added. Default: True.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: For inputs with other sizes of the last axes, or different leading axes.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.BiDense(2, 3, 4)(ms.ops.ones((5, 2)), ms.ops.ones((5, 3))).shape
        (5, 4)
    """

    def __init__(
        self,
        in1_channels: int,
        in2_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        self.in1_channels = arguments.integer("BiDense", "in1_channels", in1_channels, 1)
        self.in2_channels = arguments.integer("BiDense", "in2_channels", in2_channels, 1)
        self.out_channels = arguments.integer("BiDense", "out_channels", out_channels, 1)
        self.has_bias = arguments.flag("BiDense", "has_bias", has_bias)
        usual = Uniform(1 / math.sqrt(in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        for name, given, wanted in (("weight_init", weight_init, shape), ("bias_init", bias_init, shape[:1])):
            if isinstance(given, Tensor) and given.shape != wanted:
                raise ValueError(f"BiDense: {name} must have shape {wanted}, not {given.shape}")
        self.weight = Parameter(initializer(usual if weight_init is None else weight_init, shape, dtype), name="weight")
        bias = usual if bias_init is None else bias_init
        self.bias = Parameter(initializer(bias, shape[:1], dtype), name="bias") if has_bias else None

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the products."""
        input1 = input_of(self, input1)
        input2 = input_of(self, input2)
        for name, x, size in (("input1", input1, self.in1_channels), ("input2", input2, self.in2_channels)):
            if x.ndim < 1 or x.shape[-1] != size:
                raise ValueError(f"BiDense: the last axis of {name} must have {size} elements; its shape is {x.shape}")
        if input1.shape[:-1] != input2.shape[:-1]:
            raise ValueError(
                f"BiDense: the leading axes of the inputs must be equal; their shapes are {input1.shape} and "
                f"{input2.shape}"
            )
        rows = ops.reshape(ops.transpose(self.weight, (1, 0, 2)), (self.in1_channels, -1))
        once = ops.reshape(ops.matmul(input1, rows), (*input1.shape[:-1], self.out_channels, self.in2_channels))
        y = ops.squeeze(ops.matmul(once, ops.expand_dims(input2, -1)), -1)
        return y if self.bias is None else y + self.bias

    def extend_repr(self) -> str:
        """Return the arguments."""
        text = (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, output_channels={self.out_channels}"
        )
        return f"{text}, has_bias={self.has_bias}" if self.has_bias else text


class L1Regularizer(Cell):
    """The sum of the absolute values times `scale`, in float32 at least.

    Raises ValueError for a `scale` that is not positive and finite.

    >>> import mycel as ms
    >>> float(ms.nn.L1Regularizer(0.5)(ms.Tensor([1.0, -3.0])))
    2.0
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = arguments.number("L1Regularizer", "scale", scale, above=0, below=math.inf)

    def construct(self, weights: Tensor) -> Tensor:
        """Return the sum."""
        weights = input_of(self, weights)
        kind = weights.dtype if weights.dtype.is_floating else D.float32
        return ops.sum(ops.abs(wide(ops.cast(weights, kind)))) * self.scale


class TimeDistributed(Cell):
    """A layer (a Cell or Primitive) applied to every slice of an input along `time_axis`; the
    results are stacked along it.

    With `reshape_with_axis` the time axis is merged into that axis, such as the batch, and the
    layer runs once. Raises ValueError for inputs of fewer than three axes, axes out of range, and
    layers whose results have no place for the time axis.

    >>> import mycel as ms
    >>> layer = ms.nn.TimeDistributed(ms.nn.Dense(3, 6), time_axis=1, reshape_with_axis=0)
    >>> layer(ms.ops.ones((2, 5, 3))).shape
    (2, 5, 6)
    """

    def __init__(self, layer: Any, time_axis: int, reshape_with_axis: int | None = None) -> None:
        super().__init__()
        arguments.instance("TimeDistributed", "layer", layer, (Cell, Primitive))
        self.layer = layer
        self.time_axis = arguments.integer("TimeDistributed", "time_axis", time_axis)
        if reshape_with_axis is not None:
            arguments.integer("TimeDistributed", "reshape_with_axis", reshape_with_axis)
        self.reshape_with_axis = reshape_with_axis

    def construct(self, inputs: Tensor) -> Tensor:
        """Return the results of all time steps."""
        inputs = input_of(self, inputs)
        owner, rank = "TimeDistributed", inputs.ndim
        if rank < 3:
            raise ValueError(f"{owner}: the input must have three axes at least, not shape {inputs.shape}")
        for name, axis in (("time_axis", self.time_axis), ("reshape_with_axis", self.reshape_with_axis)):
            if axis is not None and not -rank <= axis < rank:
                raise ValueError(f"{owner}: {name} {axis} is out of range for an input of shape {inputs.shape}")
        time = self.time_axis % rank
        if self.reshape_with_axis is None:
            steps = [self.layer(step) for step in ops.unstack(inputs, time)]
            if time > steps[0].ndim:
                raise ValueError(f"{owner}: results of shape {steps[0].shape} have no place for time_axis {time}")
            return ops.stack(steps, time)
        other = self.reshape_with_axis % rank
        if other == time:
            raise ValueError(f"{owner}: reshape_with_axis and time_axis must be two axes, not both {time}")
        # Time is moved right after the other axis; `place` is the axis that joins the two.
        place = other - (time < other)
        shape = inputs.shape
        moved = ops.movedim(inputs, time, place + 1)
        merged = ops.reshape(moved, (*moved.shape[:place], shape[other] * shape[time], *moved.shape[place + 2 :]))
        y = self.layer(merged)
        if y.ndim <= place or y.shape[place] != merged.shape[place]:
            raise ValueError(
                f"{owner}: the layer gave shape {y.shape} for {merged.shape}, but axis {place} must stay as it is"
            )
        apart = ops.reshape(y, (*y.shape[:place], shape[other], shape[time], *y.shape[place + 1 :]))
        return ops.movedim(apart, place + 1, time)
