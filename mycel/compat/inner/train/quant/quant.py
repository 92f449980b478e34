"""`mindspore.train.quant.quant`, of MindSpore's first releases: networks that round in training."""

from __future__ import annotations

from typing import Any

from mycel._src.tensors.cells.cell import Cell
from mycel.quantisation import quantisation_aware

__all__ = ["convert_quant_network"]


def convert_quant_network(
    network: Cell,
    quant_delay: int = 0,
    bn_fold: bool = False,
    freeze_bn: int = 0,
    weight_bits: int = 8,
    act_bits: int = 8,
    per_channel: bool = False,
    symmetric: bool = False,
    narrow_range: bool = False,
) -> Cell:
    """Return `network` with layers that round: `mycel.quantisation.quantisation_aware`.

    `quant_delay`, `bn_fold`, `freeze_bn`, `weight_bits`, `act_bits` are those of it; a `freeze_bn`
    of 0 freezes nothing. `per_channel` is for weights, `symmetric` for values (weights always are),
    and `narrow_range` for both.

    >>> import mycel as ms
    >>> net = convert_quant_network(ms.nn.SequentialCell(ms.nn.Dense(2, 2)), weight_bits=4)
    >>> net(ms.ops.ones((1, 2))).shape
    (1, 2)
    """
    options: dict[str, Any] = {"freeze_bn": freeze_bn} if freeze_bn else {}
    return quantisation_aware(
        network,
        quant_delay=quant_delay,
        bn_fold=bn_fold,
        weight_bits=weight_bits,
        act_bits=act_bits,
        per_channel=(False, per_channel),
        symmetric=(symmetric, True),
        narrow_range=(narrow_range, narrow_range),
        **options,
    )
