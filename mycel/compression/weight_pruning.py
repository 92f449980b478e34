"""Unstructured and N:M weight pruning by masks, kept in training: magnitude and movement.

A layer whose weights are pruned is replaced by one that multiplies them by a mask, so that any
optimizer, weight decay and momentum leave zeros where they are, and gradients of masked weights are
zero. `remove_masks` puts the layer back, with the zeros in its weight.

Magnitude keeps the largest weights, of each layer or of all. Movement (Sanh et al., 2020) keeps
those with the largest scores, which are learnt: the mask is one in the forward pass, and passes the
slope of the product w * mask straight to the score, which so grows for weights that move away from
zero. N of M keeps the n largest of every m neighbours along the inputs of a layer.

Zeros make files smaller and networks simpler; they make nothing faster here, as dense products
compute them like other numbers. `prune_channels` removes what can be removed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.compression.cell_replacement import replace_cells
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.conv import Conv1d, Conv2d, Conv3d
from mycel.quantisation.fake_quantisation import layer_finished, layer_product

__all__ = [
    "MaskedLayer",
    "SizeReport",
    "masked_layers",
    "prune_weights",
    "remove_masks",
    "sensitivity",
    "size_report",
    "update_masks",
]

Array = np.ndarray[Any, Any]
Sparsity = float | Mapping[str, float]
_LAYERS = (Dense, Conv1d, Conv2d, Conv3d)
_METHODS = ("magnitude", "movement")


@dataclass(frozen=True)
class MaskRule:
    """How masks are chosen; the fields are arguments of `prune_weights`."""

    method: str = "magnitude"
    scope: str = "layer"
    pattern: tuple[int, int] | None = None


class MaskedLayer(Cell):
    """A dense layer or convolution whose weights are multiplied by a mask of zeros and ones.

    It has the parameters of `layer`, the `mask`, and with the method "movement" the `scores`;
    `rule` says how masks are chosen.
    """

    def __init__(self, layer: Any, rule: MaskRule) -> None:
        super().__init__()
        self.rule = rule
        self.insert_child_to_cell("layer", layer)
        shape, (prefix, _, _) = layer.weight.shape, layer.weight.name.rpartition("weight")
        self.mask = Parameter(ops.ones(shape, layer.weight.dtype), name=f"{prefix}mask", requires_grad=False)
        self.scores: Any = None
        if rule.method == "movement":
            self.scores = Parameter(ops.zeros(shape, D.float32), name=f"{prefix}scores")

    def weight(self) -> Tensor:
        """Return the weights with zeros where the mask has them."""
        mask = self.mask
        if self.scores is not None:
            # Adds zero, and gives the scores the slope of the mask.
            mask = mask + (self.scores - ops.stop_gradient(self.scores)).astype(mask.dtype)
        made: Tensor = self.layer.weight * mask
        return made

    def construct(self, x: Tensor) -> Tensor:
        """Return what the layer computes with the weights that are left."""
        made: Tensor = layer_finished(self.layer, layer_product(self.layer, x, self.weight(), self.layer.bias))
        return made

    def importance(self) -> Array:
        """Return what weights are ranked by, in the shape of the weights."""
        if self.scores is not None:
            found: Array = self.scores.asnumpy().astype(np.float64)
            return found
        size: Array = np.abs(self.layer.weight.asnumpy().astype(np.float64))
        return size

    def extend_repr(self) -> str:
        """Return how masks are chosen."""
        return f"{self.rule}"


def prune_weights(
    net: Cell,
    sparsity: Sparsity | None = None,
    *,
    method: str = "magnitude",
    scope: str = "layer",
    pattern: tuple[int, int] | None = None,
    exclude: Sequence[str] = (),
) -> Cell:
    """Return `net` with masks on the weights of its dense layers and convolutions.

    Args:
        net (Cell): The network, whose layers are replaced in itself; it keeps its parameters. A
            network that has masks gets new ones.
        sparsity (Sparsity | None): The share of weights that become zero, from 0 to below 1, or
            shares by the name of the layer, as in `net.cells_and_names()`; other layers then get no
            mask. Default: None.
        method (str): "magnitude", or "movement" for scores that training learns: masks then follow
            the scores where `GradualPruning` or `update_masks` chooses them anew. Default:
            "magnitude".
        scope (str): "layer" for that share of each layer, or "global" for that of all of them
            together. Default: "layer".
        pattern (tuple[int, int] | None): (n, m) keeps n of every m neighbours along the inputs of a
            layer, as (2, 4), in place of a sparsity. Default: None.
        exclude (Sequence[str]): Names of layers that get no mask. Default: ().

    Returns:
        Cell: `net` itself.

    Raises:
        ValueError: For arguments that mean nothing, for inputs of a layer that do not divide into
            groups of m, and for a network without such layers.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import prune_weights, size_report
        >>> net = prune_weights(ms.nn.SequentialCell(ms.nn.Dense(8, 4)), pattern=(2, 4))
        >>> size_report(net).zeros
        0.5
    """
    owner = "prune_weights"
    arguments.instance(owner, "net", net, Cell, "a Cell")
    arguments.one_of(owner, "method", method, _METHODS)
    arguments.one_of(owner, "scope", scope, ("layer", "global"))
    _check_pattern(pattern)
    if (sparsity is None) == (pattern is None):
        raise ValueError(f"{owner}: give a sparsity or a pattern")
    if isinstance(sparsity, Mapping) and scope == "global":
        raise ValueError(f"{owner}: shares by layer go with scope 'layer', not 'global'")
    if method == "movement" and sparsity != 0 and pattern is None:
        raise ValueError(
            f"{owner}: movement has no scores before training; begin with sparsity=0, and let GradualPruning raise it"
        )
    found = {name: cell for name, cell in net.cells_and_names() if type(cell) in _LAYERS}
    inside = {id(c.layer) for _, c in net.cells_and_names() if isinstance(c, MaskedLayer)}
    names = {name.removesuffix(".layer") if id(c) in inside else name: c for name, c in found.items()}
    for word in (*exclude, *(sparsity if isinstance(sparsity, Mapping) else ())):
        if not any(name == word or name.startswith(f"{word}.") for name in names):
            raise ValueError(f"{owner}: {word!r} is no dense layer or convolution; there are {', '.join(names)}")
    wanted = {n: c for n, c in names.items() if not any(n == w or n.startswith(f"{w}.") for w in exclude)}
    if isinstance(sparsity, Mapping):
        wanted = {n: c for n, c in wanted.items() if n in sparsity}
    if not wanted:
        raise ValueError(f"{owner}: {type(net).__name__} has no dense layer or convolution to prune")
    _check_sparsity(sparsity)
    if pattern is not None:
        for name, cell in wanted.items():
            if cell.weight.shape[1] % pattern[1]:
                raise ValueError(
                    f"{owner}: {name} has {cell.weight.shape[1]} inputs, which do not divide into groups of "
                    f"{pattern[1]}; exclude it"
                )
    if any(c is net for c in wanted.values()):
        raise ValueError(f"{owner}: the network is a single layer; put it into a SequentialCell")
    rule, new = MaskRule(method, scope, pattern), {id(c) for c in wanted.values() if id(c) not in inside}
    replace_cells(net, lambda cell: MaskedLayer(cell, rule) if id(cell) in new else None)
    for _, cell in net.cells_and_names():
        if isinstance(cell, MaskedLayer) and any(cell.layer is c for c in wanted.values()):
            if (cell.scores is None) != (method == "magnitude"):
                raise ValueError(
                    f"{owner}: {net.__class__.__name__} has masks by another method; call remove_masks first"
                )
            cell.rule = rule
    update_masks(net, sparsity)
    return net


def _check_pattern(pattern: Any) -> None:
    if pattern is None:
        return
    whole = isinstance(pattern, (tuple, list)) and len(pattern) == 2 and all(type(n) is int for n in pattern)
    if not whole or not 0 < pattern[0] < pattern[1]:
        raise ValueError(f"prune_weights: pattern must be (n, m) with 0 < n < m, as (2, 4), not {pattern!r}")


def _check_sparsity(sparsity: Any) -> None:
    for share in sparsity.values() if isinstance(sparsity, Mapping) else () if sparsity is None else (sparsity,):
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise ValueError(f"prune_weights: sparsity must be from 0 to below 1, not {share!r}")


def masked_layers(net: Cell) -> dict[str, MaskedLayer]:
    """Return the layers with masks, by name.

    >>> import mycel as ms
    >>> from mycel.compression import prune_weights
    >>> list(masked_layers(prune_weights(ms.nn.SequentialCell(ms.nn.Dense(2, 2)), 0.5)))
    ['0']
    """
    return {name: cell for name, cell in net.cells_and_names() if isinstance(cell, MaskedLayer)}


def update_masks(net: Cell, sparsity: Sparsity | None = None) -> None:
    """Choose the masks of a network anew, from its weights or scores as they are now.

    `sparsity` is that of `prune_weights`; None goes with patterns. Masked weights may come back:
    they still have their values. Raises ValueError where a network has no masks.
    """
    layers = masked_layers(net)
    if not layers:
        raise ValueError(f"update_masks: {type(net).__name__} has no masks; call prune_weights first")
    _check_sparsity(sparsity)
    chosen = {n: c for n, c in layers.items() if not isinstance(sparsity, Mapping) or n in sparsity}
    patterned = {n: c for n, c in chosen.items() if c.rule.pattern is not None}
    for cell in patterned.values():
        assert cell.rule.pattern is not None
        _set_mask(cell, _of_groups(cell.importance(), *cell.rule.pattern))
    rest = {n: c for n, c in chosen.items() if n not in patterned}
    if not rest:
        return
    if sparsity is None:
        raise ValueError("update_masks: give a sparsity; patterns alone need none")
    together = [c for c in rest.values() if c.rule.scope == "global"]
    if together:
        assert not isinstance(sparsity, Mapping)
        values = [c.importance() for c in together]
        kept = _largest(np.concatenate([v.reshape(-1) for v in values]), sparsity)
        ends = np.cumsum([v.size for v in values])[:-1]
        for cell, value, part in zip(together, values, np.split(kept, ends)):
            _set_mask(cell, part.reshape(value.shape))
    for name, cell in rest.items():
        if cell.rule.scope == "layer":
            value = cell.importance()
            share = sparsity[name] if isinstance(sparsity, Mapping) else sparsity
            _set_mask(cell, _largest(value.reshape(-1), share).reshape(value.shape))


def _set_mask(cell: MaskedLayer, kept: Array) -> None:
    cell.mask.set_data(Tensor.from_numpy(np.ascontiguousarray(kept.astype(cell.mask.asnumpy().dtype))))


def _largest(values: Array, sparsity: float) -> Array:
    """Return which values stay when a share of them, the least, does not."""
    count = round(sparsity * values.size)
    kept = np.ones(values.size, bool)
    kept[np.argsort(values, kind="stable")[:count]] = False
    return kept


def _of_groups(values: Array, n: int, m: int) -> Array:
    """Return the n largest of each m neighbours along axis 1."""
    moved = np.moveaxis(values, 1, -1)
    groups = moved.reshape(-1, m)
    order = np.argsort(-groups, 1, kind="stable")
    kept = np.zeros(groups.shape, bool)
    np.put_along_axis(kept, order[:, :n], True, 1)
    return np.moveaxis(kept.reshape(moved.shape), -1, 1)


def remove_masks(net: Cell) -> Cell:
    """Return `net` with its layers as they were, with zeros in their weights.

    >>> import mycel as ms
    >>> from mycel.compression import prune_weights, remove_masks
    >>> net = remove_masks(prune_weights(ms.nn.SequentialCell(ms.nn.Dense(2, 2)), 0.5))
    >>> type(net[0]).__name__, int((net[0].weight == 0).sum())
    ('Dense', 2)
    """
    arguments.instance("remove_masks", "net", net, Cell, "a Cell")
    replace_cells(net, _without_mask)
    return net


def _without_mask(cell: Cell) -> Cell | None:
    if not isinstance(cell, MaskedLayer):
        return None
    layer: Cell = cell.layer
    cell.layer.weight.set_data(cell.layer.weight * cell.mask)
    return layer


@dataclass(frozen=True)
class SizeReport:
    """What a network takes in memory and in files.

    Zeros take no less time.

    Args:
        parameters (int): The number of its weights (masks and scores are none).
        bytes (int): Their bytes.
        zeros (float): The share of weights of layers that are zero.
        compressed (int): The bytes of the parameters after zlib.
        sparse (int): The bytes of the non-zero values with one bit for each weight.
    """

    parameters: int
    bytes: int
    zeros: float
    compressed: int
    sparse: int

    def __str__(self) -> str:
        return (
            f"{self.parameters:,} parameters, {self.bytes:,} bytes; {self.zeros:.1%} of weights are zero: "
            f"{self.compressed:,} bytes compressed, {self.sparse:,} with a bit for each weight; products take as long"
        )


def size_report(net: Cell) -> SizeReport:
    """Return what a network takes in memory and in files, with its masks applied.

    >>> import mycel as ms
    >>> from mycel.compression import prune_weights, size_report
    >>> report = size_report(prune_weights(ms.nn.SequentialCell(ms.nn.Dense(64, 64)), 0.75))
    >>> report.bytes, report.sparse, report.compressed < 0.5 * report.bytes
    (16640, 4864, True)
    """
    arguments.instance("size_report", "net", net, Cell, "a Cell")
    masks: dict[int, Array] = {}
    inner: set[int] = set()
    for cell in masked_layers(net).values():
        masks[id(cell.layer.weight)] = cell.mask.asnumpy()
        inner |= {id(p) for p in (cell.mask, cell.scores) if p is not None}
    arrays = []
    for p in net.get_parameters():
        if id(p) not in inner:
            arrays.append(p.asnumpy() * masks[id(p)] if id(p) in masks else p.asnumpy())
    weights = [a for a in arrays if a.ndim > 1]
    count = sum(a.size for a in weights)
    none = sum(int((a == 0).sum()) for a in weights)
    packed = zlib.compress(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), 9)
    sparse = sum(-(-a.size // 8) + int((a != 0).sum()) * a.itemsize if a.ndim > 1 else a.nbytes for a in arrays)
    total = sum(a.nbytes for a in arrays)
    return SizeReport(sum(a.size for a in arrays), total, none / count if count else 0.0, len(packed), sparse)


def sensitivity(
    net: Cell,
    measure: Callable[[Any], float],
    sparsities: Sequence[float] = (0.25, 0.5, 0.75, 0.9),
) -> dict[str, tuple[float, ...]]:
    """Return what a network measures when one layer at a time loses its smallest weights.

    * `net`: a Cell without masks, which is as it was afterwards.
    * `measure`: a function of the network that gives how good it is.
    * `sparsities`: the shares of the layer's weights that become zero.

    The result has a number for each sparsity by the name of the layer: shares for `prune_weights`
    follow from it. Raises ValueError for a network without dense layers and convolutions.

    >>> import mycel as ms
    >>> from mycel.compression import sensitivity
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(2, 1, ms.Tensor([[1.0, 9.0]]), "zeros"))
    >>> sensitivity(net, lambda n: float(n(ms.ops.ones((1, 2))).sum()), (0.5,))
    {'0': (9.0,)}
    """
    arguments.instance("sensitivity", "net", net, Cell, "a Cell")
    arguments.function("sensitivity", "measure", measure)
    _check_sparsity({str(k): s for k, s in enumerate(sparsities)})
    layers = {name: cell for name, cell in net.cells_and_names() if type(cell) in _LAYERS}
    if not layers or masked_layers(net):
        raise ValueError(f"sensitivity: {type(net).__name__} must have dense layers or convolutions, and no masks")
    found = {}
    for name, layer in layers.items():
        whole = layer.weight.asnumpy().copy()
        made = []
        try:
            for share in sparsities:
                kept = _largest(np.abs(whole).reshape(-1), share).reshape(whole.shape)
                layer.weight.set_data(Tensor.from_numpy(whole * kept))
                made.append(float(measure(net)))
        finally:
            layer.weight.set_data(Tensor.from_numpy(whole))
        found[name] = tuple(made)
    return found
