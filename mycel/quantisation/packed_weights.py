"""Dense layers with packed quantised weights: `packed` replaces a network's dense layers by them.

What `quantise_weights` does to a graph is done to Cells here, so that a network stays one of layers
that can be saved, loaded and called. Values that a layer reads are observed on data where a method
needs them: X'X for GPTQ, the largest magnitude of each input for SmoothQuant (Xiao et al., 2023),
which moves what makes values hard to round into the weights,

    x W = (x / s) (s W)      s = max |x|**alpha / max |W|**(1 - alpha)

and the largest of all for static values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims.neural.quantisation import int_matmul, quantize
from mycel._src.compiler.transforms.quantise.scales import levels_of, weight_scale
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.basic import Dense
from mycel.quantisation.weight_rounding import gptq

__all__ = ["PackedDense", "Packing", "packed"]

Array = np.ndarray[Any, Any]
VALUES = ("float", "token", "tensor")


@dataclass(frozen=True)
class Packing:
    """How layers are packed.

    `bits` are those of weights; `group_size` inputs have a scale together (0: all). `gptq` and
    `smooth` ask for these methods, `alpha` is that of the second. `values` are "float", rounded by
    each row's largest magnitude ("token"), or by that of all values observed ("tensor").
    """

    bits: int = 8
    group_size: int = 0
    gptq: bool = False
    smooth: bool = False
    alpha: float = 0.5
    values: str = "float"

    def __post_init__(self) -> None:
        if type(self.bits) is not int or not 2 <= self.bits <= 8:
            raise ValueError(f"packed: bits must be an int from 2 to 8, not {self.bits!r}")
        if type(self.group_size) is not int or self.group_size < 0:
            raise ValueError(f"packed: group_size must be an int of 0 or more, not {self.group_size!r}")
        if self.values not in VALUES:
            raise ValueError(f"packed: values must be one of {', '.join(VALUES)}, not {self.values!r}")
        if self.values != "float" and self.group_size:
            raise ValueError("packed: rounded values go with whole channels; leave group_size 0")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"packed: alpha must be from 0 to 1, not {self.alpha!r}")

    @property
    def needs_data(self) -> bool:
        """Whether values have to be observed."""
        return self.gptq or self.smooth or self.values == "tensor"


class _Seen:
    """What was observed of the values that a layer reads."""

    def __init__(self, inputs: int, products: bool) -> None:
        self.largest = np.zeros(inputs)
        self.products = np.zeros((inputs, inputs)) if products else None
        self.count = 0

    def __call__(self, cell: Any, args: tuple[Any, ...]) -> None:
        x = args[0].asnumpy().astype(np.float64).reshape(-1, len(self.largest))
        self.count += len(x)
        self.largest = np.maximum(self.largest, np.abs(x).max(0, initial=0.0))
        if self.products is not None:
            self.products += x.T @ x


class PackedDense(Cell):
    """A dense layer whose weights are levels, two in a byte up to 4 bits.

    `layer` is the layer of floats, `packing` says how, and `seen` is what was observed of its
    values, where the packing needs that. `weight_steps` and `weight_scale` are the weights.
    """

    def __init__(self, layer: Dense, packing: Packing, seen: _Seen | None = None) -> None:
        super().__init__(auto_prefix=False)
        self.packing, self.in_channels, self.out_channels = packing, layer.in_channels, layer.out_channels
        weight = layer.weight.asnumpy().astype(np.float64).T
        size = packing.group_size or self.in_channels
        if self.in_channels % size:
            raise ValueError(f"packed: groups of {size} do not divide the {self.in_channels} inputs of {layer}")
        smooth = np.ones(self.in_channels)
        if packing.smooth and seen is not None:
            values, weights = seen.largest, np.abs(weight).max(1)
            smooth = np.maximum(values, 1e-5) ** packing.alpha / np.maximum(weights, 1e-5) ** (1 - packing.alpha)
        weight = weight * smooth[:, None]
        if packing.gptq and seen is not None and seen.products is not None:
            levels, scales = gptq(weight, seen.products / np.outer(smooth, smooth), packing.bits, size)
        else:
            grouped = weight.reshape(-1, size, self.out_channels)
            scale = weight_scale(grouped, -1, packing.bits, np.abs(grouped).max(1, keepdims=True))
            levels, scales = levels_of(grouped, scale).reshape(weight.shape), scale.size[:, 0]
        self.halves = packing.bits <= 4 and self.in_channels % 2 == 0
        held = levels.astype(np.int8)
        if self.halves:
            low, high = held[: len(held) // 2], held[len(held) // 2 :]
            held = ((high.astype(np.int16) << 4) | (low & 15)).astype(np.int8)
        prefix, _, _ = layer.weight.name.rpartition("weight")
        self.weight_steps = _kept(held, f"{prefix}weight_steps")
        self.weight_scale = _kept(scales.astype(np.float32), f"{prefix}weight_scale")
        self.smooth = _kept(smooth.astype(np.float32), f"{prefix}smooth") if packing.smooth else None
        static = 0.0 if seen is None else float((seen.largest / smooth).max()) / 127
        fixed = packing.values == "tensor"
        self.value_scale = _kept(np.float32(max(static, 2.0**-100)), f"{prefix}value_scale") if fixed else None
        self.bias, self.activation = layer.bias, layer.activation

    def construct(self, x: Tensor) -> Tensor:
        """Return the product with the weights that the levels stand for."""
        if self.smooth is not None:
            x = x / self.smooth
        levels = self._levels()
        if self.packing.values == "float":
            grouped = levels.reshape((self.weight_scale.shape[0], -1, self.out_channels)).astype(D.float32)
            y = ops.matmul(x, (grouped * self.weight_scale.expand_dims(1)).reshape(levels.shape))
        else:
            y = self._rounded(x, levels)
        if self.bias is not None:
            y = y + self.bias
        made: Tensor = y if self.activation is None else self.activation(y)
        return made

    def _levels(self) -> Tensor:
        held = self.weight_steps
        if not self.halves:
            return held
        # Moved left and back, the highest of four bits is the sign.
        four = Tensor(4, D.int8)
        low = ops.bitwise_right_shift(ops.bitwise_left_shift(held, four), four)
        return ops.concat((low, ops.bitwise_right_shift(held, four)), 0)

    def _rounded(self, x: Tensor, levels: Tensor) -> Tensor:
        size: Any = self.value_scale
        if self.packing.values == "token":
            size = ops.maximum(ops.abs(x).max(-1, keepdims=True) / 127.0, Tensor(2.0**-100, D.float32))
        zero = Tensor(0.0, D.float32)
        whole = eager.apply(quantize, x, size, zero, low=-127, high=127, ties="even", dtype=D.int8)
        rows = whole.reshape((-1, self.in_channels))
        total = eager.apply(int_matmul, rows, levels, a_zero=0, b_zero=0).reshape((*x.shape[:-1], self.out_channels))
        real: Tensor = total.astype(D.float32) * self.weight_scale[0] * size
        return real

    def extend_repr(self) -> str:
        """Return the sizes and how the layer is packed."""
        return f"input_channels={self.in_channels}, output_channels={self.out_channels}, {self.packing}"


def _kept(array: Any, name: str) -> Parameter:
    return Parameter(Tensor.from_numpy(np.ascontiguousarray(array)), name=name, requires_grad=False)


def packed(net: Cell, packing: Packing, data: Sequence[Any] = (), skipped: Sequence[str] = ()) -> Cell:
    """Return `net` with its dense layers packed; layers are replaced in `net` itself.

    `packing` says how; `data` is a list of arguments of `net` (a tensor, or a tuple), on which
    values are observed where the packing needs that. Layers whose path has one of `skipped` in it
    stay. Raises ValueError for a network without dense layers, and where data are needed and there
    are none.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(64, 8))
    >>> type(packed(net, Packing(bits=4, group_size=16))[0]).__name__
    'PackedDense'
    """
    if not isinstance(net, Cell):
        raise TypeError(f"packed: net must be a Cell, not {net!r:.80}")
    found = [(path, cell) for path, cell in net.cells_and_names() if type(cell) is Dense]
    found = [(path, cell) for path, cell in found if not any(word in path for word in skipped)]
    if not found:
        raise ValueError(f"packed: {type(net).__name__} has no dense layer to pack")
    seen = {id(cell): _Seen(cell.in_channels, packing.gptq) for _, cell in found}
    if packing.needs_data:
        if not data:
            raise ValueError("packed: this packing observes values; give data")
        hooks = [cell.register_forward_pre_hook(seen[id(cell)]) for _, cell in found]
        for row in data:
            net(*row) if isinstance(row, (tuple, list)) else net(row)
        for hook in hooks:
            hook.remove()
    made: dict[int, PackedDense] = {}
    for path, cell in found:
        if id(cell) not in made:
            made[id(cell)] = PackedDense(cell, packing, seen[id(cell)])
        if path:
            owner = net
            *names, last = path.split(".")
            for name in names:
                owner = owner._cells[name]
            owner.insert_child_to_cell(last, made[id(cell)])
    return made[id(net)] if id(net) in made else net
