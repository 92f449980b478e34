"""Dense layers, dropout, and layers that only rearrange elements."""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import HeUniform, Uniform, initializer
from mycel.nn.layer.activation import activation_of
from mycel.ops._operands import axis_of, input_of

__all__ = [
    "Dense",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Flatten",
    "Identity",
    "Linear",
    "Norm",
    "OneHot",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
]


def _dense_parameters(
    owner: str, inputs: int, outputs: int, weight_init: Any, bias_init: Any, has_bias: bool, dtype: Any
) -> Any:
    weight = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
    bias = Uniform(1 / math.sqrt(inputs)) if bias_init is None else bias_init
    for name, given, shape in (("weight_init", weight, (outputs, inputs)), ("bias_init", bias, (outputs,))):
        if isinstance(given, Tensor) and given.shape != shape:
            raise ValueError(f"{owner}: {name} must have shape {shape}, not {given.shape}")
    return (
        Parameter(initializer(weight, (outputs, inputs), dtype), name="weight"),
        Parameter(initializer(bias, (outputs,), dtype), name="bias") if has_bias else None,
    )


class Dense(Cell):
    """The layer ``activation(x @ weight.T + bias)`` over the last axis, with a weight of shape
    (out_channels, in_channels).

    Args:
        in_channels (int): The size of the last axis of the input.
        out_channels (int): The size of the last axis of the result.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(in_channels))``. Default: None.
        has_bias (bool): Whether a bias is added. Default: True.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): A name, a Cell, an operation as
            an object or None; a name in the place of `has_bias` is the activation. Default: None.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: For inputs with another size of the last axis.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Dense(3, 4)(ms.ops.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        # Programs of MindSpore's first release pass the activation here.
        if isinstance(has_bias, str) and activation is None:
            has_bias, activation = True, has_bias or None
        self.in_channels = arguments.integer("Dense", "in_channels", in_channels, 1)
        self.out_channels = arguments.integer("Dense", "out_channels", out_channels, 1)
        self.has_bias = arguments.flag("Dense", "has_bias", has_bias)
        self.weight, self.bias = _dense_parameters(
            "Dense", in_channels, out_channels, weight_init, bias_init, has_bias, dtype
        )
        is_operation = isinstance(activation, ops.Primitive)
        self.activation = activation if is_operation else activation_of("Dense", activation)

    def construct(self, x: Tensor) -> Tensor:
        """Return the product with the weight."""
        x = input_of(self, x)
        if not x.shape or x.shape[-1] != self.in_channels:
            raise ValueError(
                f"Dense: the last axis of the input must have {self.in_channels} elements; its shape is {x.shape}"
            )
        y = ops.dense(x, self.weight, self.bias)
        return y if self.activation is None else self.activation(y)

    def extend_repr(self) -> str:
        """Return the arguments."""
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        return text if self.activation is None else f"{text}, activation={self.activation}"


class Linear(Cell):
    """The layer ``x @ weight.T + bias`` over the last axis, with a weight of shape (out_features,
    in_features).

    Args:
        in_features (int): The size of the last axis of the input.
        out_features (int): The size of the last axis of the result.
        bias (bool): Whether a bias is added. Default: True.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for that of the layer. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            that of the layer. Default: None.
        dtype (DType | None): The element type of the parameters; None for float32. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Linear(3, 4)(ms.ops.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = arguments.integer("Linear", "in_features", in_features, 1)
        self.out_features = arguments.integer("Linear", "out_features", out_features, 1)
        self.has_bias = arguments.flag("Linear", "bias", bias)
        kind = D.float32 if dtype is None else dtype
        self.weight, self.bias = _dense_parameters(
            "Linear", in_features, out_features, weight_init, bias_init, bias, kind
        )

    def construct(self, input: Tensor) -> Tensor:
        """Return the product with the weight."""
        input = input_of(self, input)
        if not input.shape or input.shape[-1] != self.in_features:
            raise ValueError(
                f"Linear: the last axis of the input must have {self.in_features} elements; its shape is {input.shape}"
            )
        return ops.dense(input, self.weight, self.bias)

    def extend_repr(self) -> str:
        """Return the arguments."""
        text = f"input_features={self.in_features}, output_features={self.out_features}"
        return f"{text}, has_bias={self.has_bias}" if self.has_bias else text


class Dropout(Cell):
    """A layer that sets each element to 0 with probability `p` in training, and divides the others
    by 1 - p (Srivastava et al., 2014).

    `keep_prob`, the older form, is 1 - p; `p` is used where both are given. Raises ValueError for
    `p` outside [0, 1).

    >>> import mycel as ms
    >>> ms.nn.Dropout(p=0.5)(ms.Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = D.float32) -> None:
        super().__init__()
        if p is None:
            self.keep_prob = arguments.number("Dropout", "keep_prob", keep_prob, above=0, at_most=1)
        else:
            self.keep_prob = 1 - arguments.number("Dropout", "p", p, at_least=0, below=1)
        self.p = p

    def construct(self, x: Tensor) -> Tensor:
        """Return the input with elements dropped, in training."""
        if not self.training or self.keep_prob == 1:
            return x
        return ops.dropout(x, 1 - self.keep_prob if self.p is None else self.p, True)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _DropChannels(Cell):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = arguments.real(type(self).__name__, "p", p, at_least=0, at_most=1)

    def extend_repr(self) -> str:
        """Return the argument."""
        return f"p={self.p}"


class Dropout1d(_DropChannels):
    """A layer that sets whole channels of (N, C, L) to 0 with probability `p` in training, and
    divides the others by 1 - p (Tompson et al., 2015).

    >>> import mycel as ms
    >>> ms.nn.Dropout1d(0.5)(ms.ops.ones((1, 1, 2))).tolist()
    [[[1.0, 1.0]]]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Return the input with channels dropped, in training."""
        return ops.dropout1d(x, self.p) if self.training and self.p else x


class Dropout2d(_DropChannels):
    """A layer that sets whole channels of (N, C, H, W) to 0 with probability `p` in training, and
    divides the others by 1 - p.

    >>> import mycel as ms
    >>> ms.nn.Dropout2d(0.5)(ms.ops.ones((1, 1, 1, 2))).tolist()
    [[[[1.0, 1.0]]]]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Return the input with channels dropped, in training."""
        return ops.dropout2d(x, self.p) if self.training and self.p else x


class Dropout3d(_DropChannels):
    """A layer that sets whole channels of (N, C, D, H, W) to 0 with probability `p` in training,
    and divides the others by 1 - p.

    >>> import mycel as ms
    >>> ms.nn.Dropout3d(0.5)(ms.ops.ones((1, 1, 1, 1, 2))).shape
    (1, 1, 1, 1, 2)
    """

    def construct(self, x: Tensor) -> Tensor:
        """Return the input with channels dropped, in training."""
        return ops.dropout3d(x, self.p) if self.training and self.p else x


class Flatten(Cell):
    """The axes from `start_dim` to `end_dim` joined into one.

    >>> import mycel as ms
    >>> ms.nn.Flatten()(ms.ops.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = arguments.integer("Flatten", "start_dim", start_dim)
        self.end_dim = arguments.integer("Flatten", "end_dim", end_dim)

    def construct(self, x: Tensor) -> Tensor:
        """Return the input with fewer axes."""
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(Cell):
    """One axis split into several of sizes `unflattened_size`, one of which may be -1.

    >>> import mycel as ms
    >>> ms.nn.Unflatten(1, (2, -1))(ms.ops.ones((2, 12))).shape
    (2, 2, 6)
    """

    def __init__(self, axis: int, unflattened_size: Any) -> None:
        super().__init__()
        self.axis = arguments.integer("Unflatten", "axis", axis)
        arguments.sequence("Unflatten", "unflattened_size", unflattened_size)
        self.unflattened_size = tuple(unflattened_size)

    def construct(self, input: Tensor) -> Tensor:
        """Return the input with more axes."""
        input = input_of(self, input)
        axis = axis_of("Unflatten", self.axis, input.ndim)
        return ops.reshape(input, (*input.shape[:axis], *self.unflattened_size, *input.shape[axis + 1 :]))


class Identity(Cell):
    """The input itself; all arguments of the constructor are ignored.

    >>> import mycel as ms
    >>> ms.nn.Identity()(ms.Tensor([1.0])).tolist()
    [1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        """Return the input."""
        return input


class Norm(Cell):
    """The Euclidean norm over axes (all by default).

    >>> import mycel as ms
    >>> float(ms.nn.Norm()(ms.Tensor([3.0, 4.0])))
    5.0
    """

    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        for one in axis if isinstance(axis, (tuple, list)) else (axis,):
            arguments.integer("Norm", "axis", one)
        self.axis = tuple(axis) if isinstance(axis, list) else axis
        self.keep_dims = arguments.flag("Norm", "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        """Return the norm."""
        return ops.vector_norm(x, 2, None if self.axis == () else self.axis, self.keep_dims)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class OneHot(Cell):
    """Rows of length `depth` with `on_value` at the index and `off_value` elsewhere.

    Args:
        axis (int): The position of the new axis. Default: -1.
        depth (int): The length of the rows. Default: 1.
        on_value (float): The value at the index. Default: 1.0.
        off_value (float): The value elsewhere. Default: 0.0.
        dtype (DType | None): The element type. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.OneHot(depth=3)(ms.Tensor([2, 0])).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    def __init__(
        self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = D.float32
    ) -> None:
        super().__init__()
        self.axis = arguments.integer("OneHot", "axis", axis)
        self.depth = arguments.integer("OneHot", "depth", depth, 1)
        self.on_value, self.off_value = Tensor(on_value, dtype), Tensor(off_value, dtype)

    def construct(self, indices: Tensor) -> Tensor:
        """Return a row for each index."""
        return ops.one_hot(indices, self.depth, self.on_value, self.off_value, self.axis)


class PixelShuffle(Cell):
    """(N, C * r**2, H, W) rearranged to (N, C, H * r, W * r) (Shi et al., 2016).

    >>> import mycel as ms
    >>> ms.nn.PixelShuffle(2)(ms.ops.ones((1, 4, 2, 2))).shape
    (1, 1, 4, 4)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = arguments.integer("PixelShuffle", "upscale_factor", upscale_factor, 1)

    def construct(self, input: Tensor) -> Tensor:
        """Return the rearranged image."""
        return ops.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Cell):
    """(N, C, H * r, W * r) rearranged to (N, C * r**2, H, W): the inverse of `PixelShuffle`.

    >>> import mycel as ms
    >>> ms.nn.PixelUnshuffle(2)(ms.ops.ones((1, 1, 4, 4))).shape
    (1, 4, 2, 2)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = arguments.integer("PixelUnshuffle", "downscale_factor", downscale_factor, 1)

    def construct(self, input: Tensor) -> Tensor:
        """Return the rearranged image."""
        return ops.pixel_unshuffle(input, self.downscale_factor)
