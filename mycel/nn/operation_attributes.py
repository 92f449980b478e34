"""The operations that MindSpore's layers, losses, optimizers and training steps keep as attributes.

Programs that subclass a layer and override `construct` call them: ``self.conv2d(x, weight)``.
Mycel's own layers call functions instead, so a descriptor of the class makes an operation from the
layer's arguments when it is first used; an attribute of the object takes precedence.

Programs also divide them: ``net.fc.matmul.shard(...)``. Staging computes a layer of which a program
divides an operation by these operations (`Cell._by_operators`), where a rule below says how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops as _ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell, state_epoch
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.activation import (
    ELU,
    FastGelu,
    HSigmoid,
    HSwish,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    SeLU,
    Sigmoid,
    Softmax,
    Softsign,
    Tanh,
)
from mycel.nn.layer.basic import Dense, Dropout, OneHot
from mycel.nn.layer.conv import Conv1d, Conv1dTranspose, Conv2d, Conv2dTranspose, Conv3d
from mycel.nn.layer.embedding import Embedding
from mycel.nn.layer.normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from mycel.nn.layer.pooling import AvgPool2d, MaxPool2d
from mycel.nn.loss.base import LossBase
from mycel.nn.loss.classification import SoftmaxCrossEntropyWithLogits
from mycel.nn.loss.regression import SmoothL1Loss
from mycel.nn.loss_scale import TrainOneStepWithLossScaleCell
from mycel.nn.optim.optimizer import Optimizer
from mycel.nn.wrap import TrainOneStepCell

__all__: list[str] = []

# Operation objects are made at import time, which the type checker does not see.
ops: Any = _ops


class _Kept:
    """An attribute that `make` computes from the object on first use."""

    def __init__(self, name: str, make: Callable[[Any], Any]) -> None:
        self.name = name
        self.make = make

    def __get__(self, cell: Any, owner: Any = None) -> Any:
        if cell is None:
            return self
        made = cell.__dict__[self.name] = self.make(cell)
        state_epoch.value += 1
        return made


def _keep(owner: type[Cell], **made: Callable[[Any], Any]) -> None:
    for name, make in made.items():
        setattr(owner, name, _Kept(name, make))


def _plain(text: str) -> dict[str, Callable[[Any], Any]]:
    """Return a maker for each ``attribute=Operation`` pair of operations without arguments."""

    def maker(operation: str) -> Callable[[Any], Any]:
        return lambda cell: getattr(ops, operation)()

    return {name: maker(made) for name, made in (pair.split("=") for pair in text.split())}


def _convolution(cell: Any, operation: Any, **more: Any) -> Any:
    return operation(
        out_channel=cell.in_channels if cell.transposed else cell.out_channels,
        kernel_size=cell.kernel_size,
        mode=1,
        pad_mode=cell.pad_mode,
        pad=cell.padding,
        stride=cell.stride,
        dilation=cell.dilation,
        group=cell.group,
        **more,
    )


_BIAS = {"bias_add": lambda cell: ops.BiasAdd(data_format=cell.data_format if cell.rank > 1 else "NCHW")}
_layer: type[Cell]
for _layer in (Conv1d, Conv2d):
    _keep(_layer, conv2d=lambda cell: _convolution(cell, ops.Conv2D), **_BIAS)
_keep(Conv3d, conv3d=lambda cell: _convolution(cell, ops.Conv3D), shape=lambda cell: ops.Shape(), **_BIAS)
for _layer in (Conv1dTranspose, Conv2dTranspose):
    _keep(
        _layer,
        conv2d_transpose=lambda cell: _convolution(cell, ops.Conv2DTranspose),
        shape=lambda cell: ops.Shape(),
        **_BIAS,
    )
    _keep(
        _layer,
        is_same=lambda cell: cell.pad_mode == "same",
        is_valid=lambda cell: cell.pad_mode == "valid",
        is_pad=lambda cell: cell.pad_mode == "pad",
    )
for _layer in (Conv1d, Conv1dTranspose):
    _keep(
        _layer,
        expand_dims=lambda cell: ops.ExpandDims(),
        squeeze=lambda cell: ops.Squeeze(2),
        shape=lambda cell: ops.Shape(),
    )

_keep(
    Dense,
    matmul=lambda cell: ops.MatMul(transpose_b=True),
    activation_flag=lambda cell: cell.activation is not None,
    **_plain("bias_add=BiasAdd reshape=Reshape shape_op=Shape"),
)
_keep(Dropout, dropout=lambda cell: ops.Dropout(cell.keep_prob))
_keep(
    Embedding,
    **_plain(
        "gather=Gather reshape=Reshape reshape_flat=Reshape get_shp=Shape expand=ExpandDims one_hot=OneHot "
        "array_mul=MatMul"
    ),
)
_keep(
    Embedding,
    shp_flat=lambda cell: (-1,),
    on_value=lambda cell: Tensor(1.0, D.float32),
    off_value=lambda cell: Tensor(0.0, D.float32),
)
_keep(LayerNorm, layer_norm=lambda cell: ops.LayerNorm(cell.begin_norm_axis, cell.begin_params_axis, cell.epsilon))
for _layer in (BatchNorm1d, BatchNorm2d):
    _keep(
        _layer,
        bn_train=lambda cell: ops.BatchNorm(True, cell.eps, cell.momentum),
        bn_infer=lambda cell: ops.BatchNorm(False, cell.eps),
    )
_keep(MaxPool2d, max_pool=lambda cell: ops.MaxPool(cell.kernel_size, cell.stride, cell.pad_mode))
_keep(AvgPool2d, avg_pool=lambda cell: ops.AvgPool(cell.kernel_size, cell.stride, cell.pad_mode))
_keep(ReLU, relu=lambda cell: ops.ReLU())
_keep(Sigmoid, sigmoid=lambda cell: ops.Sigmoid())
_keep(Tanh, tanh=lambda cell: ops.Tanh())
_keep(PReLU, prelu=lambda cell: ops.PReLU())
_keep(Softmax, softmax=lambda cell: ops.Softmax(cell.axis))
_keep(LogSoftmax, log_softmax=lambda cell: ops.LogSoftmax(cell.axis))

_keep(OneHot, onehot=lambda cell: ops.OneHot(cell.axis))
_keep(ELU, elu=lambda cell: ops.Elu(cell.alpha))
# Layers that are one operation without arguments: the attribute, and the operation's name.
_SIMPLE: dict[type[Cell], tuple[str, str]] = {
    ReLU6: ("relu6", "ReLU6"),
    FastGelu: ("fast_gelu", "FastGeLU"),
    SeLU: ("selu", "SeLU"),
    HSwish: ("hswish", "HSwish"),
    HSigmoid: ("hsigmoid", "HSigmoid"),
    Mish: ("mish", "Mish"),
    Softsign: ("softsign", "Softsign"),
}
for _layer, (_attribute, _name) in _SIMPLE.items():
    _keep(_layer, **_plain(f"{_attribute}={_name}"))

_keep(LossBase, **_plain("cast=Cast mul=Mul reduce_mean=ReduceMean reduce_sum=ReduceSum"))
_keep(LossBase, average=lambda cell: cell.reduction == "mean", reduce=lambda cell: cell.reduction != "none")
_keep(
    SoftmaxCrossEntropyWithLogits,
    **_plain(
        "softmax_cross_entropy=SoftmaxCrossEntropyWithLogits "
        "sparse_softmax_cross_entropy=SparseSoftmaxCrossEntropyWithLogits one_hot=OneHot"
    ),
)
_keep(
    SoftmaxCrossEntropyWithLogits,
    on_value=lambda cell: Tensor(1.0, D.float32),
    off_value=lambda cell: Tensor(0.0, D.float32),
)
_keep(SmoothL1Loss, smooth_l1_loss=lambda cell: ops.SmoothL1Loss(cell.beta, cell.reduction))

_keep(Optimizer, **_plain("map_=Map hyper_map=HyperMap assignadd=AssignAdd gather=Gather cast=Cast"))
_keep(Optimizer, map_reverse=lambda cell: ops.Map(None, True), hyper_map_reverse=lambda cell: ops.HyperMap(None, True))
_keep(
    Optimizer,
    ps_parameters=lambda cell: (False,) * cell.param_length,
    cache_enable=lambda cell: (False,) * cell.param_length,
    global_step_increase_tensor=lambda cell: Tensor(1, D.int32),
    param_rank=lambda cell: None,
    use_parallel=lambda cell: False,
    enable_tuple_broaden=lambda cell: True,
    skip_auto_parallel_compile=lambda cell: False,
)
_keep(
    TrainOneStepCell,
    grad=lambda cell: ops.GradOperation(get_by_list=True, sens_param=True),
    grad_no_sens=lambda cell: ops.GradOperation(get_by_list=True),
    reducer_flag=lambda cell: False,
    sense_flag=lambda cell: cell.sens != 1.0,
    use_graceful_exit=lambda cell: False,
    parallel_mode=lambda cell: "stand_alone",
)
_keep(
    TrainOneStepWithLossScaleCell,
    **_plain("hyper_map=HyperMap less_equal=LessEqual equal=Equal logic_not=LogicalNot"),
)
_keep(
    TrainOneStepWithLossScaleCell,
    base=lambda cell: Tensor(1, D.float32),
    base0=lambda cell: Tensor(0, D.int32),
    is_distributed=lambda cell: False,
    reduce_sum=lambda cell: ops.ReduceSum(keep_dims=False),
    reduce_all=lambda cell: ops.ReduceAll(keep_dims=False),
    gpu_target=lambda cell: False,
    ascend_910a_target=lambda cell: False,
    ascend_910b_target=lambda cell: False,
)


# How layers compute by their operations.


def _dense(cell: Any, x: Tensor) -> Tensor:
    rows = x if x.ndim == 2 else ops.reshape(x, (-1, cell.in_channels))
    y = cell.matmul(rows, cell.weight)
    if cell.bias is not None:
        y = cell.bias_add(y, cell.bias)
    y = y if x.ndim == 2 else ops.reshape(y, (*x.shape[:-1], cell.out_channels))
    return y if cell.activation is None else cell.activation(y)


def _convolved(cell: Any, x: Tensor) -> Tensor:
    y: Tensor = cell.conv2d(x, cell.weight)
    return y if cell.bias is None else cell.bias_add(y, cell.bias)


def _embedded(cell: Any, ids: Tensor) -> Any:
    if cell.use_one_hot:
        raise ValueError("Embedding: with use_one_hot rows are a product; leave it out to divide the operation gather")
    return cell.gather(cell.embedding_table, ids, 0)


def _normalized(cell: Any, x: Tensor) -> Any:
    trained = cell.training if cell.use_batch_statistics is None else cell.use_batch_statistics
    operation = cell.bn_train if trained else cell.bn_infer
    return operation(x, cell.gamma, cell.beta, cell.moving_mean, cell.moving_variance)[0]


def _entropy(cell: Any, logits: Tensor, labels: Tensor) -> Any:
    if cell.sparse:
        apart = any(getattr(op, "_strategy", None) is not None for op in (cell.softmax_cross_entropy, cell.one_hot))
        if cell.reduction == "mean" and not apart:
            return cell.sparse_softmax_cross_entropy(logits, labels)
        labels = cell.one_hot(labels, logits.shape[-1], cell.on_value, cell.off_value)
    return cell.get_loss(cell.softmax_cross_entropy(logits, labels)[0])


def _by(attribute: str) -> Callable[[Any, Tensor], Any]:
    return lambda cell, x: getattr(cell, attribute)(x)


def _pooled(attribute: str) -> Callable[[Any, Tensor], Any]:
    def pooled(cell: Any, x: Tensor) -> Any:
        if str(cell.pad_mode).lower() not in ("same", "valid") or getattr(cell, "ceil_mode", False):
            raise ValueError(
                f"{type(cell).__name__}: its operation {attribute!r} has no padding of its own and no ceil_mode; "
                "give the layer a strategy by shard()"
            )
        return getattr(cell, attribute)(x)

    return pooled


_RULES: dict[type[Cell], Callable[..., Any]] = {
    **{made: _by(name) for made, (name, _) in _SIMPLE.items()},
    ELU: _by("elu"),
    Sigmoid: _by("sigmoid"),
    Tanh: _by("tanh"),
    LogSoftmax: _by("log_softmax"),
    MaxPool2d: _pooled("max_pool"),
    AvgPool2d: _pooled("avg_pool"),
    PReLU: lambda cell, x: cell.prelu(x, cell.w),
    Dropout: lambda cell, x: cell.dropout(x)[0] if cell.training else x,
    BatchNorm1d: _normalized,
    BatchNorm2d: _normalized,
    SoftmaxCrossEntropyWithLogits: _entropy,
    Dense: _dense,
    Conv2d: _convolved,
    Embedding: _embedded,
    LayerNorm: lambda cell, x: cell.layer_norm(x, cell.gamma, cell.beta)[0],
    ReLU: lambda cell, x: cell.relu(x),
    Softmax: lambda cell, x: cell.softmax(x),
}
for _layer, _rule in _RULES.items():
    _layer._by_operators = _rule
