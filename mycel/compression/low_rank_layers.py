"""Low-rank factorisation of layers, by singular values.

A dense layer W (O, I) of rank r is U (O, r) times V (r, I): two layers. Of a convolution
W (O, I, *kernel) there are three forms:

    channel   W as (O, I * kernel): the kernel to r channels, then 1 x 1     Zhang et al., 2016
    spatial   W as (I * height, O * width): (height, 1), then (1, width)     Jaderberg et al., 2014
    tucker    1 x 1 to s channels, the kernel to r, 1 x 1 to O               Kim et al., 2016

The rank keeps a share of the energy, the sum of squares of singular values. Layers that would not
become smaller stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.compression.cell_replacement import chosen_layers, replace_cells
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.container import SequentialCell
from mycel.nn.layer.conv import Conv1d, Conv2d, Conv3d

__all__ = ["Decomposition", "low_rank"]

Array = np.ndarray[Any, Any]
_LAYERS = (Dense, Conv1d, Conv2d, Conv3d)
_FORMS = ("channel", "spatial", "tucker")
_STEPS = 30


@dataclass(frozen=True)
class Decomposition:
    """What became of a layer.

    Args:
        form (str): Its form, "" for a layer that stays.
        ranks (tuple[int, ...]): Its ranks.
        before (int): Its parameters before.
        after (int): Its parameters after.
        energy (float): The share of the energy that is kept.
        why (str): Why a layer stays. Default: "".
    """

    form: str
    ranks: tuple[int, ...]
    before: int
    after: int
    energy: float
    why: str = ""


def low_rank(
    net: Cell,
    *,
    energy: float | None = None,
    parameters: float | None = None,
    ranks: Mapping[str, int] | None = None,
    form: str = "channel",
    exclude: Sequence[str] = (),
) -> Cell:
    """Return `net` with dense layers and convolutions as products of smaller ones.

    Args:
        net (Cell): The network, whose layers are replaced in itself, by sequences of layers.
        energy (float | None): The share of the sum of squares of singular values that each layer
            keeps; one of the three is given. Default: None.
        parameters (float | None): The share of the weights of these layers that stays, with the
            same energy for all. Default: None.
        ranks (Mapping[str, int] | None): Ranks by the name of the layer, which leave others as they
            are. Default: None.
        form (str): "channel", "spatial" or "tucker", for convolutions that are larger than one
            place. Default: "channel".
        exclude (Sequence[str]): Names of layers that stay. Default: ().

    Returns:
        Cell: `net` itself, with `decompositions`, a `Decomposition` by the name of each layer.

    Raises:
        ValueError: For arguments that mean nothing and where the share of parameters cannot be
            reached.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import low_rank
        >>> net = low_rank(ms.nn.SequentialCell(ms.nn.Dense(64, 64)), ranks={"0": 8})
        >>> [layer.weight.shape for layer in net[0]], net.decompositions["0"].after
        ([(8, 64), (64, 8)], 1024)
    """
    arguments.instance("low_rank", "net", net, Cell, "a Cell")
    arguments.one_of("low_rank", "form", form, _FORMS)
    given = [n for n, v in (("energy", energy), ("parameters", parameters), ("ranks", ranks)) if v is not None]
    if len(given) != 1:
        raise ValueError(f"low_rank: give one of energy, parameters and ranks, not {given}")
    for name, share in (("energy", energy), ("parameters", parameters)):
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1):
            raise ValueError(f"low_rank: {name} must be a share above 0 and at most 1, not {share!r}")
    layers = chosen_layers("low_rank", net, _LAYERS, exclude, None if ranks is None else list(ranks))
    plans = {name: _Plan(layer, form) for name, layer in layers.items()}
    if ranks is not None:
        chosen = {name: plans[name].of_rank(rank) for name, rank in _checked(ranks, plans).items()}
    else:
        kept = energy if energy is not None else _energy_for(list(plans.values()), float(parameters or 0))
        chosen = {name: plan.of_energy(kept) for name, plan in plans.items()}
    found, made = {}, {}
    for name, plan in plans.items():
        found[name] = plan.decomposition(chosen[name], always=ranks is not None)
        if found[name].form:
            made[id(plan.layer)] = plan.layers(chosen[name])
    replace_cells(net, lambda cell: made.get(id(cell)))
    net.decompositions = found
    return net


def _checked(ranks: Mapping[str, int], plans: Mapping[str, _Plan]) -> Mapping[str, int]:
    for name, rank in ranks.items():
        if name not in plans:
            raise ValueError(f"low_rank: ranks name layers; {name!r} is none of {', '.join(plans)}")
        if plans[name].why:
            raise ValueError(f"low_rank: {name} cannot be decomposed: {plans[name].why}")
        if type(rank) is not int or not 1 <= rank <= plans[name].most:
            raise ValueError(f"low_rank: the rank of {name} must be from 1 to {plans[name].most}, not {rank!r}")
    return ranks


def _energy_for(plans: Sequence[_Plan], share: float) -> float:
    """Return the most energy with which a share of the weights is enough."""
    whole = float(sum(p.weight.size for p in plans))

    def spent(energy: float) -> float:
        return sum(p.decomposition(p.of_energy(energy)).after for p in plans) / whole

    low, high = 1e-9, 1.0
    if spent(low) > share:
        raise ValueError(f"low_rank: parameters cannot go to {share:g} of what they were, but to {spent(low):.3g}")
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= share else (low, middle)
    return low


class _Plan:
    """What a layer can become; `why` says why it cannot, or is empty."""

    def __init__(self, layer: Any, form: str) -> None:
        self.layer = layer
        self.weight = layer.weight.asnumpy().astype(np.float64)
        shape = self.weight.shape
        self.why = "" if np.isfinite(self.weight).all() else "its weights are not finite"
        self.form = "dense"
        if not isinstance(layer, Dense):
            place = math.prod(shape[2:]) == 1
            self.form = "channel" if place else form
            if layer.group != 1:
                self.why = "its channels are in groups"
            elif self.form == "spatial" and (not isinstance(layer, Conv2d) or 1 in shape[2:]):
                self.why = "its kernel has one axis, or three"
        matrices = [self.weight.reshape(shape[0], -1)]
        if self.form == "spatial" and not self.why:
            matrices = [self.weight.transpose(1, 2, 0, 3).reshape(shape[1] * shape[2], -1)]
        elif self.form == "tucker":
            matrices.append(np.moveaxis(self.weight, 1, 0).reshape(shape[1], -1))
        self.parts = [] if self.why else [np.linalg.svd(m, full_matrices=False) for m in matrices]
        self.most = max((len(part[1]) for part in self.parts), default=0)

    def of_energy(self, energy: float) -> tuple[int, ...]:
        """Return the least ranks that keep a share of the energy."""
        made = []
        for _, values, _ in self.parts:
            squares = np.cumsum(values**2)
            made.append(min(int(np.searchsorted(squares, energy * squares[-1] * (1 - 1e-12))) + 1, len(values)))
        return tuple(made)

    def of_rank(self, rank: int) -> tuple[int, ...]:
        """Return the ranks where one is given."""
        return tuple(min(rank, len(values)) for _, values, _ in self.parts)

    def decomposition(self, ranks: tuple[int, ...], always: bool = False) -> Decomposition:
        """Return what becomes of the layer with some ranks; it stays where that is no smaller,
        unless it is to be made `always`.
        """
        before = int(self.weight.size)
        if self.why:
            return Decomposition("", (), before, before, 1.0, self.why)
        o, i = self.weight.shape[:2]
        kernel = self.weight.shape[2:]
        if self.form == "tucker":
            after = i * ranks[1] + ranks[1] * ranks[0] * math.prod(kernel) + ranks[0] * o
        elif self.form == "spatial":
            after = ranks[0] * (i * kernel[0] + o * kernel[1])
        else:
            after = ranks[0] * (o + i * math.prod(kernel))
        if after >= before and not always:
            return Decomposition("", (), before, before, 1.0, f"ranks {ranks} would have {after} weights")
        return Decomposition(self.form, ranks, before, after, self._energy(ranks))

    def _energy(self, ranks: tuple[int, ...]) -> float:
        kept = [float((v[:r] ** 2).sum() / max(float((v**2).sum()), 1e-300)) for (_, v, _), r in zip(self.parts, ranks)]
        return min(kept)

    def layers(self, ranks: tuple[int, ...]) -> SequentialCell:
        """Return the layers in the place of the layer."""
        layer, r = self.layer, ranks[0]
        u, values, v = self.parts[0]
        root = np.sqrt(values[:r])
        left, right = u[:, :r] * root, root[:, None] * v[:r]
        if isinstance(layer, Dense):
            made: list[Any] = [
                Dense(layer.in_channels, r, has_bias=False, dtype=layer.weight.dtype),
                Dense(r, layer.out_channels, has_bias=layer.has_bias, dtype=layer.weight.dtype),
            ]
            made[1].activation = layer.activation
            weights = [right, left]
        elif self.form == "spatial":
            o, i, height, width = self.weight.shape
            tall, wide = (height, 1), (1, width)
            made = [_conv(layer, i, r, tall, (True, False)), _conv(layer, r, o, wide, (False, True), layer.has_bias)]
            weights = [left.T.reshape(r, i, height, 1), right.reshape(r, o, width).swapaxes(0, 1)[:, :, None]]
        elif self.form == "tucker":
            made, weights = self._tucker(ranks)
        else:
            o, i, *kernel = self.weight.shape
            whole, place = tuple(kernel), (1,) * len(kernel)
            all_axes, none = (True,) * len(kernel), (False,) * len(kernel)
            made = [_conv(layer, i, r, whole, all_axes), _conv(layer, r, o, place, none, layer.has_bias)]
            weights = [right.reshape(r, i, *kernel), left.reshape(o, r, *place)]
        return _filled(layer, made, weights)

    def _tucker(self, ranks: tuple[int, ...]) -> tuple[list[Any], list[Array]]:
        layer, (r, s) = self.layer, ranks
        o, i, *kernel = self.weight.shape
        place, none, all_axes = (1,) * len(kernel), (False,) * len(kernel), (True,) * len(kernel)
        outputs, inputs = self.parts[0][0][:, :r], self.parts[1][0][:, :s]
        core = np.einsum("oi...,or,is->rs...", self.weight, outputs, inputs)
        made = [
            _conv(layer, i, s, place, none),
            _conv(layer, s, r, tuple(kernel), all_axes),
            _conv(layer, r, o, place, none, layer.has_bias),
        ]
        return made, [inputs.T.reshape(s, i, *place), core, outputs.reshape(o, r, *place)]


def _conv(
    layer: Any, inside: int, outside: int, kernel: tuple[int, ...], axes: Sequence[bool], bias: bool = False
) -> Any:
    """Return a convolution that moves along some of the axes as `layer` does.

    `inside` and `outside` are numbers of channels, `kernel` is the size of the window, `axes` says
    along which axes steps and padding are those of `layer`, and `bias` whether it has one.
    """
    rank = len(kernel)

    def along(values: Sequence[int], other: int) -> Any:
        taken = tuple(v if moves else other for v, moves in zip(values, axes))
        return taken[1:][0] if isinstance(layer, Conv1d) else taken

    padding: Any = 0
    if layer.pad_mode == "pad" and any(axes):
        given = layer.padding if isinstance(layer.padding, tuple) else (layer.padding,) * (2 * rank)
        padding = tuple(p if axes[k // 2] else 0 for k, p in enumerate(given))
        padding = padding[2:] if isinstance(layer, Conv1d) else padding
    size: Any = kernel[1] if isinstance(layer, Conv1d) else kernel
    mode = layer.pad_mode if any(axes) else "valid"
    made = type(layer)(
        inside,
        outside,
        size,
        along(layer.stride, 1),
        mode,
        padding,
        along(layer.dilation, 1),
        1,
        bias,
        dtype=layer.weight.dtype,
    )
    return made


def _filled(layer: Any, made: Sequence[Any], weights: Sequence[Array]) -> SequentialCell:
    """Return layers in a row, with weights, and the bias and the modes of `layer`."""
    prefix, _, _ = layer.weight.name.rpartition("weight")
    for number, (part, weight) in enumerate(zip(made, weights)):
        array = np.ascontiguousarray(weight.astype(layer.weight.asnumpy().dtype))
        part.weight.set_data(Tensor.from_numpy(array))
        part.weight.requires_grad = layer.weight.requires_grad
        part.weight.name = f"{prefix}{number}.weight"
    if layer.bias is not None:
        made[-1].bias.set_data(layer.bias)
        made[-1].bias.requires_grad = layer.bias.requires_grad
        made[-1].bias.name = layer.bias.name
    names = [(p, p.name) for part in made for p in part.get_parameters()]
    row = SequentialCell(*made)
    for parameter, name in names:
        parameter.name = name
    row.set_train(layer.training)
    return row
