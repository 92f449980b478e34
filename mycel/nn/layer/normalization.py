"""Normalisation layers: subtract a mean, divide by a deviation, scale by gamma, shift by beta.

    y = (x - mean) / sqrt(variance + eps) * gamma + beta

The statistics are those of each channel over the batch and space (batch), of each sample over
trailing axes (layer), or of each sample and group of channels over space (group, instance).
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.staging.derivatives import stop_gradient
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.initializer import initializer
from mycel.communication import HCCL_WORLD_COMM_GROUP, get_group_size, get_rank
from mycel.communication.processes import new_group
from mycel.nn.assignment import store
from mycel.ops._operands import input_of, need_matched

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LRN",
    "LayerNorm",
    "SyncBatchNorm",
]


class _Channels(Cell):
    """Base of layers with a scale, a shift and running statistics of each channel.

    `num_features` is the number of channels, `eps` is added to the variance, `momentum` is the
    weight of new statistics, and `affine` trains gamma and beta. `gamma`, `beta`, `mean` and
    `variance` are the initializers of the parameters, `dtype` is their element type.
    """

    def __init__(
        self,
        num_features: Any,
        eps: Any,
        momentum: Any,
        affine: Any,
        gamma: Any,
        beta: Any,
        mean: Any,
        variance: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.num_features = arguments.integer(owner, "num_features", num_features, 1)
        self.eps = arguments.real(owner, "eps", eps, above=0, at_most=1)
        # The weight of the new statistics; batch normalisation replaces it by 1 - momentum.
        self.momentum = arguments.number(owner, "momentum", momentum, at_least=0, at_most=1)
        self.affine = arguments.flag(owner, "affine", affine)
        self.moving_mean = Parameter(initializer(mean, (num_features,), dtype), name="mean", requires_grad=False)
        self.moving_variance = Parameter(
            initializer(variance, (num_features,), dtype), name="variance", requires_grad=False
        )
        self.gamma = Parameter(initializer(gamma, (num_features,), dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta, (num_features,), dtype), name="beta", requires_grad=affine)

    def _check(self, x: Tensor, ranks: tuple[int, ...], form: str) -> None:
        if x.ndim not in ranks or x.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: the input must be {form} with {self.num_features} channels, not of shape "
                f"{x.shape}"
            )

    def _given_momentum(self) -> float:
        return self.momentum

    def extend_repr(self) -> str:
        """Return the arguments and parameters."""
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self._given_momentum()}, gamma={self.gamma}, "
            f"beta={self.beta}, "
            f"moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class _BatchNorm(_Channels):
    """Base of batch normalisation layers.

    `num_features` is the number of channels, `eps` is added to the variance, and `affine` trains
    gamma and beta. `gamma_init`, `beta_init`, `moving_mean_init` and `moving_var_init` initialize
    gamma, beta and the running statistics; `dtype` is their element type. `momentum` is the weight
    of the running statistics; `use_batch_statistics` chooses whether those of the batch are used
    (None: in training); `data_format` must be "NCHW".
    """

    ranks: tuple[int, ...] = (4,)
    form = "(N, C, H, W)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, dtype
        )
        owner = type(self).__name__
        self.momentum = 1 - self.momentum
        arguments.one_of(owner, "use_batch_statistics", use_batch_statistics, (True, False, None))
        if data_format != "NCHW":
            raise ValueError(f"{owner}: data_format {data_format!r} is not supported; transpose the input to 'NCHW'")
        self.use_batch_statistics = use_batch_statistics

    def _given_momentum(self) -> float:
        return 1 - self.momentum

    def construct(self, x: Tensor) -> Tensor:
        """Normalise the input; in training the running statistics follow those of the batch."""
        self._check(x, self.ranks, self.form)
        from_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        return ops.batch_norm(
            x, self.moving_mean, self.moving_variance, self.gamma, self.beta, from_batch, self.momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation (Ioffe and Szegedy, 2015) of (N, C) or (N, C, L).

    In training (or always, with `use_batch_statistics`) the statistics are the batch's, and the
    running ones follow: ``running = momentum * running + (1 - momentum) * batch``, with the
    unbiased variance; otherwise the running ones are used.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the running statistics. Default: 0.9.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        moving_mean_init (Tensor | str | Initializer | float): The initializer of the running mean.
            Default: "zeros".
        moving_var_init (Tensor | str | Initializer | float): The initializer of the running
            variance. Default: "ones".
        use_batch_statistics (bool | None): Whether the statistics of the batch are used; None for
            in training only. Default: None.
        data_format (str): Must be "NCHW". Default: "NCHW".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: For inputs of another form.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.BatchNorm1d(3)(ms.ops.ones((2, 3))).shape
        (2, 3)
    """

    ranks = (2, 3)
    form = "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W); the arguments and statistics are those of `BatchNorm1d`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the running statistics. Default: 0.9.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        moving_mean_init (Tensor | str | Initializer | float): The initializer of the running mean.
            Default: "zeros".
        moving_var_init (Tensor | str | Initializer | float): The initializer of the running
            variance. Default: "ones".
        use_batch_statistics (bool | None): Whether the statistics of the batch are used; None for
            in training only. Default: None.
        data_format (str): Must be "NCHW". Default: "NCHW".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.BatchNorm2d(3)(ms.ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """


class BatchNorm3d(Cell):
    """Batch normalisation of (N, C, D, H, W).

    The statistics are those of `BatchNorm1d`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the running statistics. Default: 0.9.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        moving_mean_init (Tensor | str | Initializer | float): The initializer of the running mean.
            Default: "zeros".
        moving_var_init (Tensor | str | Initializer | float): The initializer of the running
            variance. Default: "ones".
        use_batch_statistics (bool | None): Whether the statistics of the batch are used; None for
            in training only. Default: None.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.BatchNorm3d(3)(ms.ops.ones((2, 3, 4, 4, 4))).shape
        (2, 3, 4, 4, 4)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features,
            eps,
            momentum,
            affine,
            gamma_init,
            beta_init,
            moving_mean_init,
            moving_var_init,
            use_batch_statistics,
            "NCHW",
            dtype,
        )

    def construct(self, x: Tensor) -> Tensor:
        """Return the normalised input."""
        x = input_of(self, x)
        if x.ndim != 5:
            raise ValueError(f"BatchNorm3d: the input must be (N, C, D, H, W), not of shape {x.shape}")
        n, c, d, h, w = x.shape
        return ops.reshape(self.bn2d(ops.reshape(x, (n, c, d * h, w))), (n, c, d, h, w))


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, H, W) with statistics over the batches of all
    processes, which are as if they were one batch; see `BatchNorm1d`.

    Outside of the groups, and in a group of one, the statistics are the process's own.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the running statistics. Default: 0.9.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        moving_mean_init (Tensor | str | Initializer | float): The initializer of the running mean.
            Default: "zeros".
        moving_var_init (Tensor | str | Initializer | float): The initializer of the running
            variance. Default: "ones".
        use_batch_statistics (bool | None): Whether the statistics of the batch are used; None for
            in training only. Default: None.
        process_groups (list[list[int]] | None): The numbers of the processes that share their
            statistics, by groups; None for all. Default: None.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: Unless each process is in one of the groups.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.SyncBatchNorm(3)(ms.ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    ranks = (2, 4)
    form = "(N, C) or (N, C, H, W)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: Any = None,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            gamma_init,
            beta_init,
            moving_mean_init,
            moving_var_init,
            use_batch_statistics,
            "NCHW",
            dtype,
        )
        if process_groups is not None:
            if not isinstance(process_groups, list) or not all(isinstance(group, list) for group in process_groups):
                raise TypeError(f"SyncBatchNorm: process_groups must be a list of lists, not {process_groups!r}")
            if sorted(sum(process_groups, [])) != list(range(get_group_size())):
                those = (
                    f"the processes 0 to {get_group_size() - 1}" if get_group_size() > 1 else "one process, number 0"
                )
                raise ValueError(
                    f"SyncBatchNorm: there {'are' if get_group_size() > 1 else 'is'} {those}; process_groups must be "
                    f"None or {[list(range(get_group_size()))]}, or divide it, not {process_groups}"
                )
        self.process_groups = process_groups
        self.sum_of_all: Any = None
        if get_group_size() > 1:
            own = None if process_groups is None else next(g for g in process_groups if get_rank() in g)
            group = HCCL_WORLD_COMM_GROUP if own is None else new_group(own)
            self.sum_of_all = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, x: Tensor) -> Tensor:
        """Normalise the input; in training the running statistics follow those of all batches."""
        from_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if self.sum_of_all is None or not from_batch:
            return super().construct(x)
        self._check(x, self.ranks, self.form)
        axes = (0,) if x.ndim == 2 else (0, 2, 3)
        shape = (1, -1, *(1 for _ in axes[1:]))
        wide = cast(x, D.float32) if x.dtype in (D.float16, D.bfloat16) else x
        sums = wide.sum(axis=axes)
        counted = self.sum_of_all(ops.concat((sums, ops.full((1,), x.size // x.shape[1], dtype=wide.dtype))))
        count = counted[-1]
        mean = counted[:-1] / count
        apart = wide - mean.reshape(shape)
        variance = self.sum_of_all((apart * apart).sum(axis=axes)) / count
        share = self.momentum
        for held, new in ((self.moving_mean, mean), (self.moving_variance, variance * (count / (count - 1)))):
            store(held, held * (1 - share) + cast(stop_gradient(new), held.dtype) * share)
        found = apart * ops.rsqrt(variance + self.eps).reshape(shape)
        return cast(found * self.gamma.reshape(shape) + self.beta.reshape(shape), x.dtype)


class LayerNorm(Cell):
    """Layer normalisation (Ba et al., 2016) over the axes from `begin_norm_axis` on.

    Args:
        normalized_shape (int | Sequence[int]): The shape of gamma and beta.
        begin_norm_axis (int): The first of the axes that are normalised. Default: -1.
        begin_params_axis (int): The first of the axes that gamma and beta apply to. Default: -1.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        epsilon (float): Added to the variance. Default: 1e-07.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError: For a shape that is no tuple or list of ints.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.LayerNorm((3,))(ms.Tensor([[1.0, 2.0, 3.0]])).asnumpy().round(3)
        array([[-1.225,  0.   ,  1.225]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: Any,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)) or not normalized_shape:
            raise TypeError(f"LayerNorm: normalized_shape must be a tuple or list of ints, not {normalized_shape!r}")
        self.normalized_shape = tuple(
            arguments.integer("LayerNorm", "each of normalized_shape", d, 1) for d in normalized_shape
        )
        self.begin_norm_axis = arguments.integer("LayerNorm", "begin_norm_axis", begin_norm_axis)
        self.begin_params_axis = arguments.integer("LayerNorm", "begin_params_axis", begin_params_axis)
        self.epsilon = arguments.real("LayerNorm", "epsilon", epsilon)
        self.gamma = Parameter(initializer(gamma_init, self.normalized_shape, dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, self.normalized_shape, dtype), name="beta")

    def construct(self, input_x: Tensor) -> Tensor:
        """Return the normalised input."""
        input_x = input_of(self, input_x)
        rank = input_x.ndim
        for name, axis in (("begin_norm_axis", self.begin_norm_axis), ("begin_params_axis", self.begin_params_axis)):
            if not -rank <= axis < rank:
                raise ValueError(f"LayerNorm: {name} {axis} is out of range for an input of shape {input_x.shape}")
        if tuple(input_x.shape[self.begin_params_axis % rank :]) != self.normalized_shape:
            raise ValueError(
                f"LayerNorm: normalized_shape {self.normalized_shape} is not the shape of the axes from "
                f"{self.begin_params_axis} on "
                f"of an input of shape {input_x.shape}"
            )
        over = input_x.shape[self.begin_norm_axis % rank :]
        if tuple(over) == self.normalized_shape:
            return ops.layer_norm(input_x, over, self.gamma, self.beta, self.epsilon)
        return cast(ops.layer_norm(input_x, over, eps=self.epsilon) * self.gamma + self.beta, input_x.dtype)

    def extend_repr(self) -> str:
        """Return the arguments and parameters."""
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}"
        )


class GroupNorm(Cell):
    """Group normalisation (Wu and He, 2018) of (N, C, *spatial) over `num_groups` groups of
    channels.

    Args:
        num_groups (int): The number of groups of channels.
        num_channels (int): The number of channels C.
        eps (float): Added to the variance. Default: 1e-05.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        dtype (DType | None): The element type of gamma and beta. Default: float32.

    Raises:
        ValueError: If the groups do not divide the channels or the input has another number of
            channels.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.GroupNorm(2, 4)(ms.ops.ones((1, 4, 3, 3))).shape
        (1, 4, 3, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        self.num_groups = arguments.integer("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = arguments.integer("GroupNorm", "num_channels", num_channels, 1)
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self.eps = arguments.real("GroupNorm", "eps", eps)
        self.affine = arguments.flag("GroupNorm", "affine", affine)
        self.gamma = Parameter(initializer(gamma_init, (num_channels,), dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, (num_channels,), dtype), name="beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        """Return the normalised input."""
        x = input_of(self, x)
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(
                f"GroupNorm: the input must be (N, C, *spatial) with {self.num_channels} channels, not of shape "
                f"{x.shape}"
            )
        return ops.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class _InstanceNorm(_Channels):
    """Base of instance normalisation layers.

    `num_features` is the number of channels, `eps` is added to the variance, `momentum` is the
    weight of new statistics, and `affine` trains gamma and beta. `gamma_init` and `beta_init`
    initialize them, with element type `dtype`.
    """

    rank = 4
    form = "(N, C, H, W)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = D.float32,
    ) -> None:
        arguments.real(type(self).__name__, "momentum", momentum)
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, "zeros", "ones", dtype)

    def construct(self, x: Tensor) -> Tensor:
        """Normalise the input; in training the running statistics follow those of the instances."""
        self._check(x, (self.rank,), self.form)
        if self.training:
            variance, mean = ops.var_mean(stop_gradient(cast(x, self.moving_mean.dtype)), tuple(range(2, self.rank)))
            for running, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                store(running, running * (1 - self.momentum) + ops.mean(new, 0) * self.momentum)
        if self.gamma is not None:
            need_matched(type(self).__name__, x, self.gamma, "x", "gamma")
        return ops.group_norm(x, self.num_features, self.gamma, self.beta, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation (Ulyanov et al., 2016) of (N, C, L), with statistics of each sample
    and channel.

    The running statistics are updated in training but never used: they move towards the mean over
    the batch with weight `momentum`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the statistics of the batch in the running ones. Default:
            0.1.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: For inputs of another form.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.InstanceNorm1d(3)(ms.ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """

    rank = 3
    form = "(N, C, L)"


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W); the arguments and statistics are those of
    `InstanceNorm1d`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the statistics of the batch in the running ones. Default:
            0.1.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.InstanceNorm2d(3)(ms.ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W); the arguments and statistics are those of
    `InstanceNorm1d`.

    Args:
        num_features (int): The number of channels.
        eps (float): Added to the variance. Default: 1e-05.
        momentum (float): The weight of the statistics of the batch in the running ones. Default:
            0.1.
        affine (bool): Whether gamma and beta are trained. Default: True.
        gamma_init (Tensor | str | Initializer | float): The initializer of gamma. Default: "ones".
        beta_init (Tensor | str | Initializer | float): The initializer of beta. Default: "zeros".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.InstanceNorm3d(3)(ms.ops.ones((2, 3, 4, 4, 4))).shape
        (2, 3, 4, 4, 4)
    """

    rank = 5
    form = "(N, C, D, H, W)"


class LRN(Cell):
    """Local response normalisation (Krizhevsky et al., 2012) of (N, C, H, W) across channels; see
    `ops.lrn`.

    Each element is divided by (`bias` + `alpha` * s) ** `beta`, where s is the sum of squares of
    the channels within `depth_radius`.

    Args:
        depth_radius (int): How far channels count on both sides. Default: 5.
        bias (float): What is added to the sum. Default: 1.0.
        alpha (float): The factor of the sum. Default: 1.0.
        beta (float): The exponent. Default: 0.5.
        norm_region (str): Must be "ACROSS_CHANNELS". Default: "ACROSS_CHANNELS".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.LRN()(ms.ops.ones((1, 3, 2, 2))).shape
        (1, 3, 2, 2)
    """

    def __init__(
        self,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        self.depth_radius = arguments.integer("LRN", "depth_radius", depth_radius, 0)
        self.bias = arguments.real("LRN", "bias", bias)
        self.alpha, self.beta = arguments.real("LRN", "alpha", alpha), arguments.real("LRN", "beta", beta)
        self.norm_region = arguments.choice("LRN", "norm_region", norm_region, ("ACROSS_CHANNELS",))

    def construct(self, input_x: Tensor) -> Tensor:
        """Return the normalised input."""
        return ops.lrn(input_x, self.depth_radius, self.bias, self.alpha, self.beta, self.norm_region)
