"""Quantisation-aware training: replaces a network's layers by layers that round."""

from __future__ import annotations

from typing import Any

from mycel._src.tensors.cells.cell import Cell
from mycel.nn.layer.basic import Dense, Identity
from mycel.nn.layer.combined import Conv2dBnAct, DenseBnAct
from mycel.nn.layer.container import SequentialCell
from mycel.nn.layer.conv import Conv1d, Conv2d, Conv3d
from mycel.nn.layer.normalization import BatchNorm1d, BatchNorm2d
from mycel.quantisation.fake_quantisation import Folded, RoundedLayer, Rounding

__all__ = ["quantisation_aware"]

_LAYERS = (Dense, Conv1d, Conv2d, Conv3d)
_NORMS = (BatchNorm1d, BatchNorm2d)
Pair = bool | tuple[bool, bool] | list[bool]


def quantisation_aware(
    net: Cell,
    *,
    weight_bits: int = 8,
    act_bits: int = 8,
    quant_delay: int = 0,
    bn_fold: bool = True,
    freeze_bn: int = 10_000_000,
    per_channel: Pair = (False, True),
    symmetric: Pair = (False, True),
    narrow_range: Pair = (False, True),
    decay: float = 0.99,
) -> Cell:
    """Return `net` with dense layers and convolutions that round what they read and their weights.

    After training, `quantise` makes a network of integers of it.

    Args:
        net (Cell): The network, whose layers are replaced in itself; it keeps its parameters and
            gets ranges of values.
        weight_bits (int): Bits of weights, from 2 to 8. Default: 8.
        act_bits (int): Bits of values, from 2 to 8. Default: 8.
        quant_delay (int): The number of batches before anything is rounded. Default: 0.
        bn_fold (bool): Whether normalisations are folded into the layers before them: those next to
            each other in a `SequentialCell`, and those of `Conv2dBnAct` and `DenseBnAct`. Others
            stay layers of their own, and fold when the network becomes integers. Default: True.
        freeze_bn (int): The number of batches after which folded normalisations use moving
            statistics. Default: 10000000.
        per_channel (Pair): Whether each channel has a range: a flag for values and one for weights,
            or one for both. Values have one range, as integers need it. Default: (False, True).
        symmetric (Pair): Whether the zero point is 0, likewise. Weights are symmetric, as integers
            need it. Default: (False, True).
        narrow_range (Pair): Whether the least integer is left out, likewise. Default: (False,
            True).
        decay (float): The weight of former batches in the ranges of values. Default: 0.99.

    Returns:
        Cell: `net` itself.

    Raises:
        TypeError, ValueError: For arguments that mean nothing, and for a network without layers
            that round.

    Examples:
        >>> import mycel as ms
        >>> from mycel.quantisation import quantisation_aware
        >>> net = quantisation_aware(ms.nn.SequentialCell(ms.nn.Dense(4, 2)), weight_bits=4)
        >>> type(net[0]).__name__, net(ms.ops.ones((1, 4))).shape
        ('RoundedLayer', (1, 2))
    """
    if not isinstance(net, Cell):
        raise TypeError(f"quantisation_aware: net must be a Cell, not {net!r:.80}")
    values, weights = _pairs(per_channel, symmetric, narrow_range)
    for name, count in (("quant_delay", quant_delay), ("freeze_bn", freeze_bn)):
        if type(count) is not int or count < 0:
            raise ValueError(f"quantisation_aware: {name} must be an int of 0 or more, not {count!r}")
    for name, bits in (("weight_bits", weight_bits), ("act_bits", act_bits)):
        if type(bits) is not int or not 2 <= bits <= 8:
            raise ValueError(f"quantisation_aware: {name} must be an int from 2 to 8, not {bits!r}")
    if type(bn_fold) is not bool:
        raise TypeError(f"quantisation_aware: bn_fold must be a bool, not {bn_fold!r}")
    if not 0 <= decay < 1:
        raise ValueError(f"quantisation_aware: decay must be from 0 to below 1, not {decay!r}")
    change = _Change(
        Rounding(weight_bits, True, weights[2], quant_delay),
        Rounding(act_bits, values[1], values[2], quant_delay, decay),
        weights[0],
        freeze_bn if bn_fold else None,
    )
    made: Cell = change.of(net)
    if not change.count:
        raise ValueError(f"quantisation_aware: {type(net).__name__} has no dense layer or convolution to round")
    return made


def _pairs(*given: Pair) -> tuple[list[bool], list[bool]]:
    """Return the flags for values and those for weights."""
    names = ("per_channel", "symmetric", "narrow_range")
    pairs = []
    for name, pair in zip(names, given):
        both = (pair, pair) if type(pair) is bool else pair
        if not isinstance(both, (tuple, list)) or len(both) != 2 or not all(type(f) is bool for f in both):
            raise TypeError(f"quantisation_aware: {name} must be a bool or two, for values and weights, not {pair!r}")
        pairs.append(both)
    if pairs[0][0]:
        raise ValueError("quantisation_aware: values have one range; per_channel may be True for weights only")
    if not pairs[1][1]:
        raise ValueError("quantisation_aware: weights are symmetric; symmetric may be False for values only")
    return [p[0] for p in pairs], [p[1] for p in pairs]


class _Change:
    """The replacement of layers, whose `weights` and `values` are rounded as these say.

    `per_channel` is that of weights; `freeze` is None where normalisations are not folded.
    """

    def __init__(self, weights: Rounding, values: Rounding, per_channel: bool, freeze: int | None) -> None:
        self.weights, self.values, self.per_channel, self.freeze = weights, values, per_channel, freeze
        self.count = 0
        self.done: dict[int, Any] = {}

    def of(self, cell: Any) -> Any:
        """Return what stands for a Cell: itself with other cells inside, or a layer that rounds."""
        if id(cell) in self.done:
            return self.done[id(cell)]
        if isinstance(cell, (RoundedLayer, Folded)):
            raise ValueError("quantisation_aware: the network has layers that round already")
        if type(cell) in _LAYERS:
            made = self._layer(cell)
        else:
            self.done[id(cell)] = made = cell
            if type(cell) in (Conv2dBnAct, DenseBnAct):
                self._combined(cell)
            elif isinstance(cell, SequentialCell):
                self._sequence(cell)
            else:
                for name, inner in list(cell.name_cells().items()):
                    changed = self.of(inner)
                    if changed is not inner:
                        _replace(cell, name, changed)
        self.done[id(cell)] = made
        return made

    def _layer(self, layer: Any) -> RoundedLayer:
        self.count += 1
        return RoundedLayer(layer, self.weights, self.values, self.per_channel)

    def _folded(self, layer: Any, norm: Any) -> Folded:
        self.count += 1
        assert self.freeze is not None
        return Folded(layer, norm, self.weights, self.values, self.per_channel, self.freeze)

    def _may_fold(self, layer: Any, norm: Any) -> bool:
        return (
            self.freeze is not None
            and type(layer) in _LAYERS
            and type(norm) in _NORMS
            and norm.use_batch_statistics is None
            and getattr(layer, "activation", None) is None
        )

    def _combined(self, cell: Any) -> None:
        name = "conv" if isinstance(cell, Conv2dBnAct) else "dense"
        layer = getattr(cell, name)
        if cell.has_bn and self._may_fold(layer, cell.batchnorm):
            _replace(cell, name, self._folded(layer, cell.batchnorm))
            cell.has_bn = False
            del cell.batchnorm
        else:
            _replace(cell, name, self._layer(layer))

    def _sequence(self, cell: Any) -> None:
        names, cells = list(cell.name_cells()), list(cell)
        for k, name in enumerate(names):
            norm = cells[k + 1] if k + 1 < len(cells) else None
            if self._may_fold(cells[k], norm):
                _replace(cell, name, self._folded(cells[k], norm))
                # Its place stays, so that numbers of cells do.
                _replace(cell, names[k + 1], Identity())
                cells[k + 1] = Identity()
            else:
                made = self.of(cells[k])
                if made is not cells[k] or isinstance(made, Identity):
                    _replace(cell, name, made)


def _replace(owner: Cell, name: str, cell: Cell) -> None:
    owner.insert_child_to_cell(name, cell)
