"""`mindspore.nn.layer.activation`: activations by the names that layers take."""

from __future__ import annotations

from mycel import nn
from mycel._src.tensors.cells.cell import Cell

__all__: list[str] = []

_activation: dict[str, type[Cell]] = {
    "softmin": nn.Softmin, "softmax": nn.Softmax, "softmax2d": nn.Softmax2d, "logsoftmax": nn.LogSoftmax,
    "relu": nn.ReLU, "relu6": nn.ReLU6, "rrelu": nn.RReLU, "silu": nn.SiLU, "tanh": nn.Tanh,
    "tanhshrink": nn.Tanhshrink, "hardtanh": nn.Hardtanh, "gelu": nn.GELU, "fast_gelu": nn.FastGelu, "elu": nn.ELU,
    "sigmoid": nn.Sigmoid, "softsign": nn.Softsign, "prelu": nn.PReLU, "leakyrelu": nn.LeakyReLU,
    "hswish": nn.HSwish, "hsigmoid": nn.HSigmoid, "logsigmoid": nn.LogSigmoid, "softshrink": nn.SoftShrink,
    "hshrink": nn.HShrink, "threshold": nn.Threshold, "mish": nn.Mish,
}  # fmt: skip
