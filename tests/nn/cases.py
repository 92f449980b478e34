"""Layers and losses whose outputs and gradients with MindSpore 2.10 are recorded in
``expected.json``.

Each case names a cell, its inputs, and whether it runs in training. `run` gives all parameters
fixed values, computes the output, the gradient of a weighted sum of it by the floating inputs and
the parameters, and the statistics that the call changed. The modules `ms` and `nn` are arguments,
so the same code ran with MindSpore to record the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


def wave(*shape: int, scale: float = 1.0, phase: float = 0.3) -> Any:
    """Smooth values without ties."""
    n = int(np.prod(shape))
    return (scale * np.sin(1.37 * np.arange(n) + phase) + 0.001 * np.arange(n)).reshape(shape).astype(np.float32)


def between(*shape: int, low: float = 0.1, high: float = 0.9) -> Any:
    """Values within an interval."""
    return (low + (high - low) * (wave(*shape) * 0.45 + 0.5)).astype(np.float32)


def labels(*shape: int, classes: int) -> Any:
    """Class numbers."""
    return (np.arange(int(np.prod(shape))) * 7 % classes).reshape(shape).astype(np.int32)


class Case(NamedTuple):
    """A cell, its inputs, and how to run it."""

    make: Callable[[Any], Any]
    inputs: tuple[Any, ...]
    training: bool = False
    differentiable: bool = True


IMAGE = wave(2, 4, 5, 4)
LINE = wave(2, 4, 7)
CUBE = wave(1, 2, 4, 3, 4)
ROWS = wave(3, 5, scale=2.0)
POINTS = wave(4, 3, scale=3.0)

CASES: dict[str, Case] = {
    "Dense": Case(lambda nn: nn.Dense(5, 4), (ROWS,)),
    "Dense_no_bias_3d": Case(lambda nn: nn.Dense(7, 4, has_bias=False), (LINE,)),
    "Dense_activation": Case(lambda nn: nn.Dense(5, 4, activation="tanh"), (ROWS,)),
    "Linear": Case(lambda nn: nn.Linear(5, 4), (ROWS,)),
    "Conv1d": Case(lambda nn: nn.Conv1d(4, 3, 3, stride=2, has_bias=True), (LINE,)),
    "Conv1d_pad": Case(lambda nn: nn.Conv1d(4, 3, 3, pad_mode="pad", padding=2, dilation=2), (LINE,)),
    "Conv2d": Case(lambda nn: nn.Conv2d(4, 3, 3), (IMAGE,)),
    "Conv2d_same_stride": Case(lambda nn: nn.Conv2d(4, 3, (3, 2), stride=2, has_bias=True), (IMAGE,)),
    "Conv2d_valid_group": Case(lambda nn: nn.Conv2d(4, 6, 3, pad_mode="valid", group=2), (IMAGE,)),
    "Conv2d_pad": Case(lambda nn: nn.Conv2d(4, 3, 3, pad_mode="pad", padding=(1, 0, 2, 1), dilation=(1, 2)), (IMAGE,)),
    "Conv3d": Case(lambda nn: nn.Conv3d(2, 3, (2, 3, 2), has_bias=True), (CUBE,)),
    "Conv3d_pad": Case(lambda nn: nn.Conv3d(2, 3, 2, stride=2, pad_mode="pad", padding=1), (CUBE,)),
    "Conv2dTranspose": Case(lambda nn: nn.Conv2dTranspose(4, 3, 3, stride=2, has_bias=True), (IMAGE,)),
    "Conv2dTranspose_pad": Case(
        lambda nn: nn.Conv2dTranspose(4, 3, 3, stride=2, pad_mode="pad", padding=1, output_padding=1), (IMAGE,)
    ),
    "Conv2dTranspose_valid": Case(lambda nn: nn.Conv2dTranspose(4, 6, (2, 3), pad_mode="valid", group=2), (IMAGE,)),
    "Conv1dTranspose": Case(lambda nn: nn.Conv1dTranspose(4, 3, 3, stride=2, pad_mode="pad", padding=1), (LINE,)),
    "BatchNorm1d": Case(lambda nn: nn.BatchNorm1d(5), (ROWS,)),
    "BatchNorm1d_train": Case(lambda nn: nn.BatchNorm1d(5, momentum=0.7), (ROWS,), True),
    "BatchNorm2d": Case(lambda nn: nn.BatchNorm2d(4), (IMAGE,)),
    "BatchNorm2d_train": Case(lambda nn: nn.BatchNorm2d(4), (IMAGE,), True),
    "BatchNorm2d_forced": Case(lambda nn: nn.BatchNorm2d(4, use_batch_statistics=True, affine=False), (IMAGE,)),
    "BatchNorm2d_moving": Case(lambda nn: nn.BatchNorm2d(4, use_batch_statistics=False), (IMAGE,), True),
    "BatchNorm3d_train": Case(lambda nn: nn.BatchNorm3d(2), (CUBE,), True),
    "LayerNorm": Case(lambda nn: nn.LayerNorm((5,)), (ROWS,)),
    "LayerNorm_2d": Case(
        lambda nn: nn.LayerNorm((5, 4), begin_norm_axis=2, begin_params_axis=2, epsilon=1e-3), (IMAGE,)
    ),
    "GroupNorm": Case(lambda nn: nn.GroupNorm(2, 4), (IMAGE,)),
    "MaxPool1d": Case(lambda nn: nn.MaxPool1d(3, 2), (LINE,)),
    "MaxPool2d": Case(lambda nn: nn.MaxPool2d(2, 2), (IMAGE,)),
    "MaxPool2d_same": Case(lambda nn: nn.MaxPool2d((3, 2), 2, pad_mode="same"), (IMAGE,)),
    "MaxPool2d_pad": Case(lambda nn: nn.MaxPool2d(3, 2, pad_mode="pad", padding=1, ceil_mode=True), (IMAGE,)),
    "AvgPool1d": Case(lambda nn: nn.AvgPool1d(3, 2), (LINE,)),
    "AvgPool2d": Case(lambda nn: nn.AvgPool2d(3, 2), (IMAGE,)),
    "AvgPool2d_same": Case(lambda nn: nn.AvgPool2d(3, 2, pad_mode="same"), (IMAGE,)),
    "AvgPool2d_pad": Case(lambda nn: nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, count_include_pad=False), (IMAGE,)),
    "AdaptiveAvgPool1d": Case(lambda nn: nn.AdaptiveAvgPool1d(3), (wave(2, 4, 6),)),
    "AdaptiveAvgPool2d": Case(lambda nn: nn.AdaptiveAvgPool2d((4, None)), (IMAGE,)),
    "AdaptiveMaxPool1d": Case(lambda nn: nn.AdaptiveMaxPool1d(3), (wave(2, 4, 6),)),
    "AdaptiveMaxPool2d": Case(lambda nn: nn.AdaptiveMaxPool2d((4, 2)), (IMAGE,)),
    "Flatten": Case(lambda nn: nn.Flatten(), (IMAGE,)),
    "Flatten_range": Case(lambda nn: nn.Flatten(0, 2), (IMAGE,)),
    "Identity": Case(lambda nn: nn.Identity(), (ROWS,)),
    "Dropout_eval": Case(lambda nn: nn.Dropout(p=0.4), (ROWS,)),
    "Embedding": Case(lambda nn: nn.Embedding(6, 3), (labels(2, 4, classes=6),)),
    "Embedding_one_hot": Case(lambda nn: nn.Embedding(6, 3, use_one_hot=True), (labels(2, 4, classes=6),)),
    "OneHot": Case(
        lambda nn: nn.OneHot(depth=4, on_value=2.0, off_value=-1.0), (labels(2, 3, classes=4),), differentiable=False
    ),
    "Pad": Case(lambda nn: nn.Pad(((0, 0), (1, 2))), (ROWS,)),
    "Pad_reflect": Case(lambda nn: nn.Pad(((1, 1), (1, 2)), mode="REFLECT"), (ROWS,)),
    "ConstantPad1d": Case(lambda nn: nn.ConstantPad1d((1, 2), 0.5), (LINE,)),
    "ConstantPad2d": Case(lambda nn: nn.ConstantPad2d((1, 0, 2, 1), 0.5), (IMAGE,)),
    "ZeroPad2d": Case(lambda nn: nn.ZeroPad2d((1, 0, 2, 1)), (IMAGE,)),
    "ReflectionPad1d": Case(lambda nn: nn.ReflectionPad1d((2, 1)), (LINE,)),
    "ReflectionPad2d": Case(lambda nn: nn.ReflectionPad2d((2, 1, 1, 2)), (IMAGE,)),
    "ReplicationPad2d": Case(lambda nn: nn.ReplicationPad2d((2, 1, 1, 2)), (IMAGE,)),
    "PixelShuffle": Case(lambda nn: nn.PixelShuffle(2), (IMAGE,)),
    "Unflatten": Case(lambda nn: nn.Unflatten(1, (2, 2)), (IMAGE,)),
    "ReLU": Case(lambda nn: nn.ReLU(), (POINTS,)),
    "ReLU6": Case(lambda nn: nn.ReLU6(), (3 * POINTS,)),
    "LeakyReLU": Case(lambda nn: nn.LeakyReLU(), (POINTS,)),
    "LeakyReLU_alpha": Case(lambda nn: nn.LeakyReLU(0.05), (POINTS,)),
    "PReLU": Case(lambda nn: nn.PReLU(3), (POINTS,)),
    "Sigmoid": Case(lambda nn: nn.Sigmoid(), (POINTS,)),
    "LogSigmoid": Case(lambda nn: nn.LogSigmoid(), (POINTS,)),
    "Tanh": Case(lambda nn: nn.Tanh(), (POINTS,)),
    "Tanhshrink": Case(lambda nn: nn.Tanhshrink(), (POINTS,)),
    "SiLU": Case(lambda nn: nn.SiLU(), (POINTS,)),
    "Softmax": Case(lambda nn: nn.Softmax(), (POINTS,)),
    "Softmax_axis": Case(lambda nn: nn.Softmax(0), (POINTS,)),
    "Softmin": Case(lambda nn: nn.Softmin(), (POINTS,)),
    "Softmax2d": Case(lambda nn: nn.Softmax2d(), (IMAGE,)),
    "LogSoftmax": Case(lambda nn: nn.LogSoftmax(), (POINTS,)),
    "GELU": Case(lambda nn: nn.GELU(), (POINTS,)),
    "GELU_exact": Case(lambda nn: nn.GELU(approximate=False), (POINTS,)),
    "FastGelu": Case(lambda nn: nn.FastGelu(), (POINTS,)),
    "ELU": Case(lambda nn: nn.ELU(), (POINTS,)),
    "CELU": Case(lambda nn: nn.CELU(0.7), (POINTS,)),
    "SeLU": Case(lambda nn: nn.SeLU(), (POINTS,), differentiable=False),
    "GLU": Case(lambda nn: nn.GLU(), (wave(3, 4, scale=2.0),)),
    "Hardtanh": Case(lambda nn: nn.Hardtanh(-0.5, 2.0), (POINTS,)),
    "HSwish": Case(lambda nn: nn.HSwish(), (1.5 * POINTS,)),
    "HSigmoid": Case(lambda nn: nn.HSigmoid(), (1.5 * POINTS,)),
    "HShrink": Case(lambda nn: nn.HShrink(), (POINTS,)),
    "SoftShrink": Case(lambda nn: nn.SoftShrink(), (POINTS,)),
    "Softsign": Case(lambda nn: nn.Softsign(), (POINTS,)),
    "Mish": Case(lambda nn: nn.Mish(), (POINTS,)),
    "Threshold": Case(lambda nn: nn.Threshold(0.5, 7.0), (POINTS,)),
    "L1Loss": Case(lambda nn: nn.L1Loss(), (ROWS, wave(3, 5, phase=1.0))),
    "L1Loss_none": Case(lambda nn: nn.L1Loss("none"), (ROWS, wave(3, 5, phase=1.0))),
    "MSELoss": Case(lambda nn: nn.MSELoss(), (ROWS, wave(3, 5, phase=1.0))),
    "MSELoss_sum": Case(lambda nn: nn.MSELoss("sum"), (ROWS, wave(3, 5, phase=1.0))),
    "RMSELoss": Case(lambda nn: nn.RMSELoss(), (ROWS, wave(3, 5, phase=1.0))),
    "MAELoss": Case(lambda nn: nn.MAELoss(), (ROWS, wave(3, 5, phase=1.0))),
    "SmoothL1Loss": Case(lambda nn: nn.SmoothL1Loss(0.5), (ROWS, wave(3, 5, phase=1.0))),
    "SmoothL1Loss_mean": Case(lambda nn: nn.SmoothL1Loss(reduction="mean"), (ROWS, wave(3, 5, phase=1.0))),
    "HuberLoss": Case(lambda nn: nn.HuberLoss(delta=0.6), (ROWS, wave(3, 5, phase=1.0))),
    "CrossEntropyLoss": Case(lambda nn: nn.CrossEntropyLoss(), (ROWS, labels(3, classes=5))),
    "CrossEntropyLoss_probabilities": Case(lambda nn: nn.CrossEntropyLoss(), (ROWS, between(3, 5))),
    "CrossEntropyLoss_smooth": Case(
        lambda nn: nn.CrossEntropyLoss(label_smoothing=0.2, ignore_index=0), (ROWS, labels(3, classes=5))
    ),
    "CrossEntropyLoss_image": Case(lambda nn: nn.CrossEntropyLoss(), (IMAGE, labels(2, 5, 4, classes=4))),
    "NLLLoss": Case(lambda nn: nn.NLLLoss(ignore_index=0), (ROWS, labels(3, classes=5))),
    "NLLLoss_none": Case(lambda nn: nn.NLLLoss(reduction="none"), (ROWS, labels(3, classes=5))),
    "SoftmaxCrossEntropyWithLogits": Case(
        lambda nn: nn.SoftmaxCrossEntropyWithLogits(), (ROWS, np.eye(5, dtype=np.float32)[[1, 4, 0]])
    ),
    "SoftmaxCrossEntropyWithLogits_sparse": Case(
        lambda nn: nn.SoftmaxCrossEntropyWithLogits(sparse=True), (ROWS, labels(3, classes=5))
    ),
    "SoftmaxCrossEntropyWithLogits_mean": Case(
        lambda nn: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), (ROWS, labels(3, classes=5))
    ),
    "BCELoss": Case(lambda nn: nn.BCELoss(), (between(3, 4), between(3, 4, low=0.3))),
    "BCEWithLogitsLoss": Case(lambda nn: nn.BCEWithLogitsLoss(), (wave(3, 4, scale=3.0), between(3, 4, low=0.3))),
    "KLDivLoss": Case(lambda nn: nn.KLDivLoss(), (np.log(between(3, 4)), between(3, 4, low=0.3))),
    "KLDivLoss_batchmean": Case(lambda nn: nn.KLDivLoss("batchmean"), (np.log(between(3, 4)), between(3, 4, low=0.3))),
    "CosineEmbeddingLoss": Case(
        lambda nn: nn.CosineEmbeddingLoss(margin=0.1), (ROWS, wave(3, 5, phase=1.0), np.array([1, -1, 1], np.int32))
    ),
    "MarginRankingLoss": Case(
        lambda nn: nn.MarginRankingLoss(0.2), (wave(6), wave(6, phase=1.0), np.sign(wave(6, phase=2.0)))
    ),
    "HingeEmbeddingLoss": Case(lambda nn: nn.HingeEmbeddingLoss(), (ROWS, np.sign(wave(3, 5, phase=1.0)))),
    "PoissonNLLLoss": Case(lambda nn: nn.PoissonNLLLoss(), (ROWS, between(3, 5))),
    "GaussianNLLLoss": Case(lambda nn: nn.GaussianNLLLoss(), (ROWS, wave(3, 5, phase=1.0), between(3, 5))),
    "DiceLoss": Case(lambda nn: nn.DiceLoss(), (between(3, 4), between(3, 4, low=0.3))),
    "FocalLoss": Case(lambda nn: nn.FocalLoss(), (ROWS, labels(3, 1, classes=5))),
    "MultiLabelSoftMarginLoss": Case(
        lambda nn: nn.MultiLabelSoftMarginLoss(), (ROWS, (between(3, 5) > 0.5).astype(np.float32))
    ),
    "LRN": Case(lambda nn: nn.LRN(1, 1.0, 0.5, 0.5), (IMAGE,)),
    "Norm": Case(lambda nn: nn.Norm(axis=1), (ROWS,)),
    "AvgPool3d_same": Case(lambda nn: nn.AvgPool3d(2, 1, "same"), (CUBE,)),
    "PReLU_image": Case(lambda nn: nn.PReLU(4), (IMAGE,)),
    "HingeEmbeddingLoss_signs": Case(lambda nn: nn.HingeEmbeddingLoss(0.7, "none"), (ROWS, wave(3, 5, phase=1.0))),
    "BiDense": Case(lambda nn: nn.BiDense(5, 3, 4), (ROWS, wave(3, 3))),
    "Conv2dBnAct": Case(lambda nn: nn.Conv2dBnAct(4, 3, 3, has_bias=True, has_bn=True, activation="relu"), (IMAGE,)),
    "Conv2dBnAct_train": Case(lambda nn: nn.Conv2dBnAct(4, 3, 3, has_bn=True, activation="leakyrelu"), (IMAGE,), True),
    "DenseBnAct": Case(lambda nn: nn.DenseBnAct(5, 4, activation="sigmoid"), (ROWS,)),
    "DenseBnAct_train": Case(lambda nn: nn.DenseBnAct(5, 4, has_bn=True, activation="tanh"), (wave(6, 5),), True),
    "SyncBatchNorm": Case(lambda nn: nn.SyncBatchNorm(4), (IMAGE,), differentiable=False),
    "SyncBatchNorm_train": Case(lambda nn: nn.SyncBatchNorm(5, 1e-3, 0.7), (wave(6, 5),), True, differentiable=False),
    "MatMul": Case(lambda nn: nn.MatMul(True, False), (ROWS, wave(3, 4))),
    "L1Regularizer": Case(lambda nn: nn.L1Regularizer(0.3), (ROWS,)),
    "LGamma": Case(lambda nn: nn.LGamma(), (4 * between(3, 4),), differentiable=False),
    "DiGamma": Case(lambda nn: nn.DiGamma(), (4 * between(3, 4),), differentiable=False),
    "IGamma": Case(lambda nn: nn.IGamma(), (4 * between(3, 4), 5 * between(3, 4)), differentiable=False),
    "LBeta": Case(lambda nn: nn.LBeta(), (4 * between(3, 4), 50 * between(3, 4)), differentiable=False),
    "ReduceLogSumExp": Case(lambda nn: nn.ReduceLogSumExp((0, 2), True), (LINE,)),
    "TimeDistributed": Case(lambda nn: nn.TimeDistributed(nn.Conv1d(4, 3, 2), 1), (wave(2, 3, 4, 5),)),
    "TimeDistributed_merged": Case(lambda nn: nn.TimeDistributed(nn.Dense(5, 4), 1, 0), (wave(2, 3, 5),)),
}


def _flat(values: Any) -> list[float]:
    return [float(v) for v in np.asarray(values, np.float64).ravel()]


def fix_parameters(ms: Any, cell: Any) -> None:
    """Give every parameter values that depend on its place and shape alone."""
    for i, (name, p) in enumerate(cell.parameters_and_names()):
        values = wave(*p.shape, scale=0.5, phase=1.0 + i)
        p.set_data(ms.Tensor(np.abs(values) + 0.5 if "variance" in name else values))


def run(ms: Any, name: str) -> dict[str, Any]:
    """The shape and values of the output, the gradients, and the parameters after the call."""
    case = CASES[name]
    cell = case.make(ms.nn)
    fix_parameters(ms, cell)
    cell.set_train(case.training)
    inputs = [ms.Tensor(np.asarray(v)) for v in case.inputs]
    out = cell(*inputs)
    found: dict[str, Any] = {"shape": list(out.shape), "out": _flat(out.asnumpy())}
    state = [p for p in cell.get_parameters() if not p.requires_grad]
    if state:
        found["state"] = [_flat(p.asnumpy()) for p in state]
    if case.differentiable:
        weights = ms.Tensor(wave(*out.shape, phase=2.0))
        which = (0,) if np.asarray(case.inputs[0]).dtype.kind == "f" else None
        parameters = cell.trainable_params()
        gradient = ms.grad(lambda *a: ms.ops.sum(cell(*a) * weights), which, parameters or None)
        got = gradient(*inputs)
        if which and parameters:
            got = (*got[0], *got[1]) if isinstance(got[0], tuple) else (got[0], *got[1])
        elif isinstance(got, ms.Tensor):
            got = (got,)
        found["gradients"] = [_flat(g.asnumpy()) for g in got]
    return found
