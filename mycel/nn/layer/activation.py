"""Activation layers: element-wise functions, and normalised exponentials over an axis."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.common.initializer import initializer
from mycel.nn.layer.argument_free import Plain
from mycel.ops._operands import input_of, need_matched

__all__ = [
    "CELU",
    "ELU",
    "FastGelu",
    "GELU",
    "GLU",
    "HShrink",
    "HSigmoid",
    "HSwish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SeLU",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "get_activation",
]


class ReLU(Cell):
    """The rectified linear unit max(x, 0).

    >>> import mycel as ms
    >>> ms.nn.ReLU()(ms.Tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.relu(x)


class ReLU6(Plain):
    """The rectified linear unit with an upper limit, min(max(x, 0), 6).

    >>> import mycel as ms
    >>> ms.nn.ReLU6()(ms.Tensor([-1.0, 8.0])).tolist()
    [0.0, 6.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.relu6(x)


class LeakyReLU(Cell):
    """x where it is positive, else ``alpha * x`` (Maas et al., 2013).

    >>> import mycel as ms
    >>> ms.nn.LeakyReLU(0.5)(ms.Tensor([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = arguments.number("LeakyReLU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.leaky_relu(x, self.alpha)


class RReLU(Cell):
    """x where it is positive, else x times a slope (Xu et al., 2015).

    The slope is random in training, uniform in [`lower`, `upper`], and otherwise their mean.
    (MindSpore 2.10 draws in evaluation as well.)

    >>> import mycel as ms
    >>> ms.nn.RReLU(0.25, 0.75)(ms.Tensor([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower = arguments.number("RReLU", "lower", lower)
        self.upper = arguments.number("RReLU", "upper", upper, at_least=lower)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        if not self.training:
            return ops.leaky_relu(x, (self.lower + self.upper) / 2)
        slope = ops.rand_like(x) * (self.upper - self.lower) + self.lower
        return ops.where(x > 0, x, x * slope)


class PReLU(Cell):
    """x where it is positive, else ``w * x`` with one trained w, or one for each of `channel`
    channels (He et al., 2015).

    Raises ValueError where an array `w` does not have `channel` elements.

    >>> import mycel as ms
    >>> ms.nn.PReLU()(ms.Tensor([[-4.0, 2.0]])).tolist()
    [[-1.0, 2.0]]
    """

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        arguments.integer("PReLU", "channel", channel, 1)
        if isinstance(w, Tensor) and w.shape != (channel,):
            raise ValueError(f"PReLU: w must have shape ({channel},), one element for each channel, not {w.shape}")
        if not isinstance(w, (float, list, tuple, Tensor)):
            raise TypeError(f"PReLU: w must be a float, a list or a tensor, not {type(w).__name__}")
        if isinstance(w, (list, tuple)):
            w = Tensor(list(w), D.float32)
        self.w = Parameter(initializer(w, (channel,)), name="a")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        x = input_of(self, x)
        need_matched("PReLU", x, self.w, second="w")
        return ops.prelu(x, cast(self.w, x.dtype))


class ELU(Cell):
    """x where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2016).

    >>> import mycel as ms
    >>> ms.nn.ELU()(ms.Tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = arguments.real("ELU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.elu(x, self.alpha)


class CELU(Cell):
    """The continuous exponential unit ``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`` (Barron,
    2017).

    Raises ValueError if `alpha` is 0.

    >>> import mycel as ms
    >>> ms.nn.CELU()(ms.Tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = arguments.real("CELU", "alpha", alpha)
        if alpha == 0:
            raise ValueError("CELU: alpha must not be 0")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.celu(x, self.alpha)


class SeLU(Plain):
    """The scaled exponential unit of self-normalising networks (Klambauer et al., 2017).

    >>> import mycel as ms
    >>> ms.nn.SeLU()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.selu(input_x)


class GELU(Cell):
    """The Gaussian error unit x * P(X <= x) for a standard normal X (Hendrycks and Gimpel, 2016).

    It is computed with tanh if `approximate`, else with erf.

    >>> import mycel as ms
    >>> ms.nn.GELU()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = arguments.flag("GELU", "approximate", approximate)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.gelu(x, "tanh" if self.approximate else "none")


class FastGelu(Plain):
    """The approximation x * sigmoid(1.702 * x) of `GELU`.

    >>> import mycel as ms
    >>> ms.nn.FastGelu()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.fast_gelu(x)


class GLU(Cell):
    """The first half of an axis times the sigmoid of the second (Dauphin et al., 2016).

    >>> import mycel as ms
    >>> ms.nn.GLU()(ms.Tensor([[2.0, 0.0]])).tolist()
    [[1.0]]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = arguments.integer("GLU", "axis", axis)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.glu(x, self.axis)


class Sigmoid(Plain):
    """The logistic function 1 / (1 + exp(-x)).

    >>> import mycel as ms
    >>> ms.nn.Sigmoid()(ms.Tensor([0.0])).tolist()
    [0.5]
    """

    def construct(self, input: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.sigmoid(input)


class LogSigmoid(Plain):
    """The logarithm of the logistic function, log(1 / (1 + exp(-x))), without overflow.

    >>> import mycel as ms
    >>> ms.nn.LogSigmoid()(ms.Tensor([0.0])).asnumpy().round(3)
    array([-0.693], dtype=float32)
    """

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor, or to a float."""
        return ops.logsigmoid(as_tensor(input_x) if isinstance(input_x, float) else input_x)


class Tanh(Plain):
    """The hyperbolic tangent.

    >>> import mycel as ms
    >>> ms.nn.Tanh()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.tanh(x)


class Tanhshrink(Plain):
    """The difference x - tanh(x).

    >>> import mycel as ms
    >>> ms.nn.Tanhshrink()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.tanhshrink(x)


class SiLU(Plain):
    """The sigmoid linear unit x * sigmoid(x), also called swish (Elfwing et al., 2017).

    >>> import mycel as ms
    >>> ms.nn.SiLU()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.silu(x)


class Mish(Plain):
    """The function x * tanh(log(1 + exp(x))) (Misra, 2019).

    >>> import mycel as ms
    >>> ms.nn.Mish()(ms.Tensor([0.0])).tolist()
    [0.0]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.mish(input_x)


class HSwish(Cell):
    """The piecewise approximation x * min(max(x + 3, 0), 6) / 6 of `SiLU` (Howard et al., 2019).

    >>> import mycel as ms
    >>> ms.nn.HSwish()(ms.Tensor([-4.0, 3.0])).asnumpy() + 0.0
    array([0., 3.], dtype=float32)
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.hardswish(x)


class HSigmoid(Cell):
    """The piecewise linear approximation min(max(x + 3, 0), 6) / 6 of `Sigmoid`.

    >>> import mycel as ms
    >>> ms.nn.HSigmoid()(ms.Tensor([0.0, 4.0])).tolist()
    [0.5, 1.0]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.hardsigmoid(input_x)


class Hardtanh(Cell):
    """x limited to [`min_val`, `max_val`]; an empty interval raises ValueError.

    >>> import mycel as ms
    >>> ms.nn.Hardtanh()(ms.Tensor([-2.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = arguments.number("Hardtanh", "min_val", min_val)
        self.max_val = arguments.number("Hardtanh", "max_val", max_val, above=min_val)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.hardtanh(x, self.min_val, self.max_val)


class HShrink(Cell):
    """x where \\|x\\| > `lambd`, else 0.

    >>> import mycel as ms
    >>> ms.nn.HShrink()(ms.Tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = arguments.number("HShrink", "lambd", lambd)

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.hardshrink(input_x, self.lambd)


class SoftShrink(Cell):
    """x moved towards 0 by `lambd`, and 0 where that would pass it.

    >>> import mycel as ms
    >>> ms.nn.SoftShrink()(ms.Tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = arguments.number("SoftShrink", "lambd", lambd, at_least=0)

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.softshrink(input_x, self.lambd)


class Softsign(Plain):
    r"""The function x / (1 + \|x\|).

    >>> import mycel as ms
    >>> ms.nn.Softsign()(ms.Tensor([1.0])).tolist()
    [0.5]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.softsign(x)


class Threshold(Cell):
    """x where it is above `threshold`, else `value`.

    >>> import mycel as ms
    >>> ms.nn.Threshold(1.0, 9.0)(ms.Tensor([0.0, 2.0])).tolist()
    [9.0, 2.0]
    """

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = arguments.number("Threshold", "threshold", threshold)
        self.value = arguments.number("Threshold", "value", value)

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.threshold(input_x, self.threshold, self.value)


class Softmax(Cell):
    """The normalised exponential exp(x) / sum(exp(x)) along an axis.

    >>> import mycel as ms
    >>> ms.nn.Softmax()(ms.Tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = arguments.integer("Softmax", "axis", axis)

    def construct(self, input: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.softmax(input, self.axis)


class Softmin(Cell):
    """`Softmax` of -x.

    >>> import mycel as ms
    >>> ms.nn.Softmin()(ms.Tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = arguments.integer("Softmin", "axis", axis)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.softmin(x, self.axis)


class Softmax2d(Plain):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W).

    >>> import mycel as ms
    >>> ms.nn.Softmax2d()(ms.ops.zeros((1, 2, 1, 1))).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        x = input_of(self, x)
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: the input must be (N, C, H, W) or (C, H, W), not of shape {x.shape}")
        return ops.softmax(x, -3)


class LogSoftmax(Cell):
    """The logarithm of `Softmax`, without overflow.

    >>> import mycel as ms
    >>> ms.nn.LogSoftmax()(ms.Tensor([0.0, 0.0])).asnumpy().round(3)
    array([-0.693, -0.693], dtype=float32)
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = arguments.integer("LogSoftmax", "axis", axis)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to a tensor."""
        return ops.log_softmax(x, self.axis)


_BY_NAME: dict[str, type[Cell]] = {
    "softmin": Softmin,
    "softmax": Softmax,
    "softmax2d": Softmax2d,
    "logsoftmax": LogSoftmax,
    "relu": ReLU,
    "relu6": ReLU6,
    "rrelu": RReLU,
    "silu": SiLU,
    "tanh": Tanh,
    "tanhshrink": Tanhshrink,
    "hardtanh": Hardtanh,
    "gelu": GELU,
    "fast_gelu": FastGelu,
    "elu": ELU,
    "celu": CELU,
    "selu": SeLU,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "prelu": PReLU,
    "leakyrelu": LeakyReLU,
    "hswish": HSwish,
    "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink,
    "hshrink": HShrink,
    "threshold": Threshold,
    "mish": Mish,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Return a new activation layer by its name, or None for None; raises KeyError for an unknown
    name.

    >>> import mycel as ms
    >>> ms.nn.get_activation("sigmoid")
    Sigmoid()
    """
    if name is None:
        return None
    if not isinstance(name, Hashable):
        raise arguments.wrong_type(str(prim_name or "get_activation"), "name", "a string", name)
    if name not in _BY_NAME:
        raise KeyError(
            f"{prim_name or 'get_activation'}: {name!r} is not an activation; use one of {', '.join(_BY_NAME)}"
        )
    return _BY_NAME[name]()


def activation_of(owner: str, activation: None | str | Cell) -> Cell | None:
    """Return an activation given by its name or as a Cell; raises TypeError for another type."""
    if activation is None or isinstance(activation, Cell):
        return activation
    if isinstance(activation, str):
        return get_activation(activation, owner)
    raise TypeError(f"{owner}: activation must be a name or a Cell, not {type(activation).__name__}")
