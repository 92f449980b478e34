"""Fake-quantisation layers, which round, for quantisation-aware training.

A real number R in a range from Rmin to Rmax is the level Q of a scale S and a zero point Z:

    S = (Rmax - Rmin) / (Qmax - Qmin)      Z = round(Qmax - Rmax / S)
    Q = round(R / S + Z)                   R = (Q - Z) * S

Weights are rounded by the range that they have at the moment, inputs by a moving average of the
ranges that were seen in training; the first batch sets it. Gradients pass straight through where a
value lies in its range. Layers round what they read, so a result that several layers read may have
a scale for each, and an activation that is shared has none.

A convolution with a normalisation behind it may be folded (Krishnamoorthi, 2018): the weights are
rounded as they will be, times gamma / sqrt(moving variance + eps), and the result is corrected to
what the batch's own statistics give, until these are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mycel import ops
from mycel._src.compiler.prims.neural.quantisation import fake_quant as FAKE_QUANT
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Folded", "Rounded", "RoundedLayer", "Rounding", "fake_quant", "layer_finished", "layer_product"]

LEAST = 2.0**-100


def fake_quant(x: Tensor, scale: Tensor, zero_point: Tensor, low: int = -128, high: int = 127) -> Tensor:
    """Return values rounded to what integers from `low` to `high` stand for by a scale.

    The cotangent of `x` passes where its integer was not clipped; `scale` and `zero_point` have
    those of learned step sizes (Esser et al., 2020).

    Args:
        x (Tensor): The values.
        scale (Tensor): The scale, which broadcasts against `x` and has its type, float32 or
            float64.
        zero_point (Tensor): The zero point, likewise.
        low (int): The least integer. Default: -128.
        high (int): The greatest integer. Default: 127.

    Returns:
        Tensor: The values as floats, of the shape of `x`.

    Raises:
        ValueError: If `low` is not below `high`.

    Examples:
        >>> import mycel as ms
        >>> from mycel.quantisation import fake_quant
        >>> fake_quant(ms.Tensor([0.3, 0.9, 9.0]), ms.Tensor(0.5), ms.Tensor(0.0), -4, 3).asnumpy()
        array([0.5, 1. , 1.5], dtype=float32)
    """
    return eager.apply(FAKE_QUANT, x, scale, zero_point, low=low, high=high, ties="even")


@dataclass(frozen=True)
class Rounding:
    """How values are rounded: the arguments of `quantisation_aware` that concern one of them."""

    bits: int = 8
    symmetric: bool = False
    narrow: bool = False
    delay: int = 0
    decay: float = 0.99

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest level."""
        return -(1 << (self.bits - 1)) + self.narrow, (1 << (self.bits - 1)) - 1

    def scale(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scale and zero point of a range, with 0 in it."""
        first, last = self.ends
        low, high = ops.minimum(low, ops.zeros_like(low)), ops.maximum(high, ops.zeros_like(high))
        if self.symmetric:
            # The lowest level of as many as are above zero.
            high = ops.maximum(-low, high)
            scale = ops.maximum(high / float(last), ops.full_like(high, LEAST))
            return scale, ops.zeros_like(scale)
        scale = ops.maximum((high - low) / float(last - first), ops.full_like(high, LEAST))
        return scale, ops.clip(ops.round(float(last) - high / scale), float(first), float(last))


class Rounded(Cell):
    """Values rounded by a moving average of their ranges; the range is kept with the network.

    `rounding` says how. `minq` and `maxq` are the range, `steps` counts the batches seen. The
    result is rounded after `rounding.delay` batches.

    >>> import mycel as ms
    >>> layer = Rounded(Rounding(bits=2)).set_train()
    >>> layer(ms.Tensor([0.0, 1.4, 3.0])).asnumpy()
    array([0., 1., 3.], dtype=float32)
    """

    def __init__(self, rounding: Rounding) -> None:
        super().__init__()
        self.rounding = rounding
        self.minq = Parameter(ops.zeros((1,), D.float32), name="minq", requires_grad=False)
        self.maxq = Parameter(ops.zeros((1,), D.float32), name="maxq", requires_grad=False)
        self.steps = Parameter(ops.zeros((1,), D.int32), name="steps", requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        """Return rounded values; in training the range follows them."""
        if self.training:
            seen = ops.stop_gradient(x)
            kept = ops.where(self.steps == 0, ops.zeros_like(self.minq), ops.full_like(self.minq, self.rounding.decay))
            low = self.minq * kept + seen.min() * (1 - kept)
            high = self.maxq * kept + seen.max() * (1 - kept)
            ops.assign(self.minq, low)
            ops.assign(self.maxq, high)
            ops.assign(self.steps, self.steps + 1)
        else:
            low, high = self.minq, self.maxq
        scale, zero = self.rounding.scale(low, high)
        return _after(self, x, fake_quant(x, scale, zero, *self.rounding.ends))

    def extend_repr(self) -> str:
        """Return how values are rounded."""
        return f"{self.rounding}"


def _after(cell: Rounded, plain: Tensor, rounded: Tensor) -> Tensor:
    """Return the rounded values after the delay, and the plain ones before."""
    if not cell.rounding.delay:
        return rounded
    return ops.where(cell.steps > cell.rounding.delay, rounded, plain)


def _weights(weight: Tensor, rounding: Rounding, axis: int | None) -> Tensor:
    """Return weights rounded by their range, that of each channel along `axis` or (None) of all."""
    still = ops.stop_gradient(weight)
    axes = tuple(k for k in range(weight.ndim) if k != axis)
    low, high = still.min(axes, keepdims=True), still.max(axes, keepdims=True)
    scale, zero = rounding.scale(low, high)
    return fake_quant(weight, scale, zero, *rounding.ends)


def _beside(layer: Any, cell: Rounded) -> Rounded:
    """Return `cell` with names of its parameters that begin as those of `layer` do."""
    prefix, _, _ = layer.weight.name.rpartition("weight")
    for name in ("minq", "maxq", "steps"):
        getattr(cell, name).name = f"{prefix}input.{name}"
    return cell


class RoundedLayer(Cell):
    """A convolution or dense layer that rounds its input and its weights.

    It has the parameters of `layer`. `weights` and `inputs` say how each is rounded, `per_channel`
    whether each channel of the weights has a range of its own.
    """

    def __init__(self, layer: Any, weights: Rounding, inputs: Rounding, per_channel: bool) -> None:
        super().__init__()
        self.weights, self.axis = weights, 0 if per_channel else None
        self.insert_child_to_cell("layer", layer)
        self.insert_child_to_cell("input", _beside(layer, Rounded(inputs)))

    def construct(self, x: Tensor) -> Tensor:
        """Return what the layer computes of rounded numbers."""
        layer, x = self.layer, self.input(x)
        rounded = _after(self.input, layer.weight, _weights(layer.weight, self.weights, self.axis))
        return layer_finished(layer, layer_product(layer, x, rounded, layer.bias))


def layer_product(layer: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return what a dense layer or convolution gives for `x`, with other `weight` and `bias`."""
    if not hasattr(layer, "kernel_size"):
        return ops.dense(x, weight, bias)
    function = ops.conv3d if layer.rank == 3 else ops.conv2d
    y = function(
        layer._lifted(x), weight, bias, layer.stride, layer.pad_mode, layer.padding, layer.dilation, layer.group
    )
    lowered: Tensor = layer._lowered(y)
    return lowered


def layer_finished(layer: Any, y: Tensor) -> Tensor:
    activation = getattr(layer, "activation", None)
    made: Tensor = y if activation is None else activation(y)
    return made


class Folded(Cell):
    """A convolution or dense layer with the normalisation behind it folded into its weights.

    `layer` and `norm` are the layers, whose parameters it has; `weights`, `inputs` and
    `per_channel` are as for `RoundedLayer`. After `freeze_bn` batches of training the moving
    statistics are used and stay as they are.
    """

    def __init__(
        self, layer: Any, norm: Any, weights: Rounding, inputs: Rounding, per_channel: bool, freeze_bn: int
    ) -> None:
        super().__init__()
        self.weights, self.axis = weights, 0 if per_channel else None
        self.freeze_bn = freeze_bn
        self.insert_child_to_cell("layer", layer)
        self.insert_child_to_cell("norm", norm)
        self.insert_child_to_cell("input", _beside(layer, Rounded(inputs)))

    def construct(self, x: Tensor) -> Tensor:
        """Return the normalised result of rounded numbers; in training statistics follow."""
        layer, norm, x = self.layer, self.norm, self.input(x)
        along = (1, -1) + (1,) * (x.ndim - 2)
        made: Tensor
        moving = ops.sqrt(norm.moving_variance + norm.eps)
        factor = norm.gamma / moving
        weight = layer.weight * factor.reshape((-1,) + (1,) * (layer.weight.ndim - 1))
        rounded = _after(self.input, weight, _weights(weight, self.weights, self.axis))
        y = layer_product(layer, x, rounded, None)
        bias = ops.zeros_like(norm.beta) if layer.bias is None else layer.bias
        if not self.training:
            term = norm.beta + (bias - norm.moving_mean) * factor
            made = y + term.reshape(along)
            return made
        plain = layer_product(layer, x, layer.weight, layer.bias)
        axes = tuple(k for k in range(plain.ndim) if k != 1)
        mean, variance = plain.mean(axes), plain.var(axes)
        frozen = self.input.steps > self.freeze_bn
        deviation = ops.where(frozen, moving, ops.sqrt(variance + norm.eps))
        centre = ops.where(frozen, norm.moving_mean, mean)
        self._follow(ops.stop_gradient(mean), ops.stop_gradient(variance), frozen, plain.size / plain.shape[1])
        y = y * (moving / deviation).reshape(along)
        made = y + (norm.beta + (bias - centre) * norm.gamma / deviation).reshape(along)
        return made

    def _follow(self, mean: Tensor, variance: Tensor, frozen: Tensor, count: float) -> None:
        norm = self.norm
        part = ops.where(frozen, ops.zeros_like(mean), ops.full_like(mean, norm.momentum))
        unbiased = variance * (count / max(count - 1, 1))
        ops.assign(norm.moving_mean, norm.moving_mean * (1 - part) + mean * part)
        ops.assign(norm.moving_variance, norm.moving_variance * (1 - part) + unbiased * part)
