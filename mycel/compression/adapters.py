"""Low-rank adapters (LoRA): small trained matrices beside frozen weights, and merged into them.

An adapter of rank r (Hu et al., 2022) adds scale * B A to a weight, with scale = alpha / r. A
begins at random and B with zeros, so the network begins as it was. Of a convolution A is one with
the same kernel to r channels, and B one of 1 x 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import HeUniform, initializer
from mycel.compression.cell_replacement import chosen_layers, replace_cells
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.conv import Conv1d, Conv2d, Conv3d
from mycel.quantisation.fake_quantisation import layer_finished, layer_product

__all__ = ["AdaptedLayer", "add_adapters", "merge_adapters"]

_LAYERS = (Dense, Conv1d, Conv2d, Conv3d)


class AdaptedLayer(Cell):
    """A dense layer or convolution with an adapter: the parameters `down` (A) and `up` (B).

    `layer` keeps its parameters, which are not trained; `rank` and `alpha` are those of
    `add_adapters`.
    """

    def __init__(self, layer: Any, rank: int, alpha: float) -> None:
        super().__init__()
        self.rank, self.scale = rank, alpha / rank
        self.insert_child_to_cell("layer", layer)
        shape = layer.weight.shape
        prefix, _, _ = layer.weight.name.rpartition("weight")
        down, up = (rank, *shape[1:]), (shape[0], rank, *[1] * (len(shape) - 2))
        dtype = layer.weight.dtype
        self.down = Parameter(initializer(HeUniform(5**0.5), down, dtype), name=f"{prefix}adapter.down")
        self.up = Parameter(initializer("zeros", up, dtype), name=f"{prefix}adapter.up")

    def construct(self, x: Tensor) -> Tensor:
        """Return what the layer computes, with the adapter."""
        layer = self.layer
        plain = layer_product(layer, x, layer.weight, layer.bias)
        inside = layer_product(layer, x, self.down, None)
        if isinstance(layer, Dense):
            beside = ops.dense(inside, self.up)
        else:
            function = ops.conv3d if layer.rank == 3 else ops.conv2d
            beside = layer._lowered(function(layer._lifted(inside), self.up))
        made: Tensor = layer_finished(layer, plain + beside * self.scale)
        return made

    def extend_repr(self) -> str:
        """Return the rank and the scale."""
        return f"rank={self.rank}, scale={self.scale}"


def add_adapters(
    net: Cell,
    rank: int = 8,
    *,
    alpha: float | None = None,
    layers: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    train: Sequence[str] = (),
) -> Cell:
    """Return `net` with adapters beside its dense layers and convolutions; the rest is frozen.

    Convolutions in groups get none.

    Args:
        net (Cell): The network, whose layers are replaced in itself; it computes what it did until
            adapters are trained.
        rank (int): The rank of adapters. Default: 8.
        alpha (float | None): Over the rank it is the scale of adapters; None for a scale of 1.
            Default: None.
        layers (Sequence[str] | None): Names of those that get an adapter, or of cells around them
            (None: all). Default: None.
        exclude (Sequence[str]): Names of those that get none. Default: ().
        train (Sequence[str]): Names of cells or parameters that are trained as well, as a new last
            layer. Default: ().

    Returns:
        Cell: `net` itself.

    Raises:
        ValueError: For names that are not there, and where no layer is left.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import add_adapters
        >>> net = add_adapters(ms.nn.SequentialCell(ms.nn.Dense(64, 32)), rank=2)
        >>> [tuple(p.shape) for p in net.trainable_params()]
        [(2, 64), (32, 2)]
    """
    arguments.instance("add_adapters", "net", net, Cell, "a Cell")
    arguments.integer("add_adapters", "rank", rank, 1)
    scale = float(rank) if alpha is None else arguments.real("add_adapters", "alpha", alpha, above=0)
    if any(isinstance(c, AdaptedLayer) for _, c in net.cells_and_names()):
        raise ValueError("add_adapters: the network has adapters; call merge_adapters first")
    found = chosen_layers("add_adapters", net, _LAYERS, exclude, layers)
    chosen = {id(c) for c in found.values() if getattr(c, "group", 1) == 1}
    if not chosen:
        raise ValueError("add_adapters: all these convolutions are in groups, which get no adapter")
    parameters = {p.name: p for p in net.get_parameters()}
    also = {n for n in parameters if any(n == word or n.startswith(f"{word}.") for word in train)}
    for word in train:
        if not any(n == word or n.startswith(f"{word}.") for n in parameters):
            raise ValueError(f"add_adapters: there is no parameter or cell {word!r} to train")
    trained = [p.name for p in parameters.values() if p.requires_grad]
    for name, parameter in parameters.items():
        parameter.requires_grad = parameter.requires_grad and name in also
    replace_cells(net, lambda cell: AdaptedLayer(cell, rank, scale) if id(cell) in chosen else None)
    net.trained_before_adapters = trained
    return net


def merge_adapters(net: Cell) -> Cell:
    """Return `net` with its adapters merged into the weights, and its layers as they were.

    Parameters are trained again that were before.

    >>> import mycel as ms
    >>> from mycel.compression import add_adapters, merge_adapters
    >>> net = merge_adapters(add_adapters(ms.nn.SequentialCell(ms.nn.Dense(4, 3)), rank=2))
    >>> type(net[0]).__name__, len(net.trainable_params())
    ('Dense', 2)
    """
    arguments.instance("merge_adapters", "net", net, Cell, "a Cell")
    if not any(isinstance(c, AdaptedLayer) for _, c in net.cells_and_names()):
        raise ValueError(f"merge_adapters: {type(net).__name__} has no adapters")
    replace_cells(net, _merged)
    trained = set(net.trained_before_adapters)
    for parameter in net.get_parameters():
        parameter.requires_grad = parameter.name in trained
    del net.trained_before_adapters
    return net


def _merged(cell: Cell) -> Cell | None:
    if not isinstance(cell, AdaptedLayer):
        return None
    layer: Any = cell.layer
    weight, down, up = (p.asnumpy().astype(np.float64) for p in (layer.weight, cell.down, cell.up))
    product = np.einsum("or,r...->o...", up.reshape(up.shape[:2]), down)
    made = (weight + cell.scale * product).astype(layer.weight.asnumpy().dtype)
    layer.weight.set_data(Tensor.from_numpy(np.ascontiguousarray(made)))
    found: Cell = layer
    return found
