"""Lists a network's operators with their sizes: what cost tables have rows for.

The layers of a network are seen by hooks while it runs once on zeros. Convolutions, products, sums
of two tensors and means are operators; normalisations are folded into convolutions and activations
into what they follow, as in networks of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mycel import nn
from mycel._src.tensors.cells.eval_mode import outside_of_training
from mycel._src.tensors.core.tensor import Tensor
from mycel.search.architecture import Add, GlobalMean

__all__ = ["KINDS", "Operator", "operators_of"]

KINDS = ("conv", "pointwise", "depthwise", "dense", "add", "mean")


@dataclass(frozen=True, order=True)
class Operator:
    """A layer with its sizes, for a batch of 1.

    Args:
        kind (str): One of `KINDS`.
        given (int): Channels of the input.
        out (int): Channels of the result.
        height (int): The height of the input. Default: 1.
        width (int): The width of the input. Default: 1.
        kernel (tuple[int, int]): (vertical, horizontal). Default: (1, 1).
        stride (tuple[int, int]): The step of the kernel. Default: (1, 1).
    """

    kind: str
    given: int
    out: int
    height: int = 1
    width: int = 1
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)

    @property
    def positions(self) -> int:
        """The positions of the output: its height times its width."""
        if self.kind in ("dense", "mean"):
            return 1
        return -(-self.height // self.stride[0]) * -(-self.width // self.stride[1])

    @property
    def macs(self) -> int:
        """The products that are added; those with rims of zeros are counted."""
        taps = self.kernel[0] * self.kernel[1]
        if self.kind in ("add", "mean"):
            return 0
        return self.positions * self.out * taps * (1 if self.kind == "depthwise" else self.given)

    @property
    def weights(self) -> int:
        """The numbers of its weights, without biases."""
        return self.macs // self.positions

    @property
    def read(self) -> int:
        """The numbers of its inputs."""
        return self.given * self.height * self.width * (2 if self.kind == "add" else 1)

    @property
    def written(self) -> int:
        """The numbers of its output."""
        return self.out * self.positions

    @property
    def key(self) -> str:
        """A text for files, from which `read_key` gives the operator again."""
        numbers = [self.given, self.out, self.height, self.width, *self.kernel, *self.stride]
        return " ".join([self.kind, *map(str, numbers)])

    @classmethod
    def read_key(cls, key: str) -> Operator:
        """Return the operator of a key.

        Raises ValueError where it is none.

        >>> Operator.read_key("dense 4 2 1 1 1 1 1 1")
        Operator(kind='dense', given=4, out=2, height=1, width=1, kernel=(1, 1), stride=(1, 1))
        """
        kind, *rest = key.split(" ")
        if kind not in KINDS or len(rest) != 8 or not all(n.isascii() and n.isdigit() for n in rest):
            raise ValueError(f"Operator: {key!r} is no key; one has a kind of {', '.join(KINDS)} and 8 sizes")
        given, out, height, width, *pairs = map(int, rest)
        return cls(kind, given, out, height, width, (pairs[0], pairs[1]), (pairs[2], pairs[3]))


def operators_of(net: nn.Cell, shape: Sequence[int]) -> list[Operator]:
    """Return the operators of a network in the order in which they run.

    * `net`: the network. Layers within it are Cells: `nn.Conv2d`, `nn.Dense` and those of
      `mycel.search`; what is computed between them is not seen.
    * `shape`: that of the input without the batch.

    Raises ValueError for convolutions in groups that are not depthwise, and for dilated ones.

    >>> operators_of(nn.SequentialCell(nn.Dense(4, 2), nn.ReLU()), (4,))
    [Operator(kind='dense', given=4, out=2, height=1, width=1, kernel=(1, 1), stride=(1, 1))]
    """
    found: list[Operator] = []

    def seen(cell: Any, inputs: Any) -> None:
        found.append(_operator(cell, inputs[0].shape))

    handles = [
        cell.register_forward_pre_hook(seen)
        for _, cell in net.cells_and_names()
        if isinstance(cell, (nn.Conv2d, nn.Dense, Add, GlobalMean))
    ]
    try:
        with outside_of_training(net):
            net(Tensor(np.zeros((1, *shape), np.float32)))
    finally:
        for handle in handles:
            handle.remove()
    return found


def _operator(cell: Any, shape: Sequence[int]) -> Operator:
    if isinstance(cell, nn.Dense):
        return Operator("dense", cell.in_channels, cell.out_channels)
    channels, height, width = (*shape[1:], 1, 1)[:3]
    plain = Operator("add", channels, channels, height, width)
    if isinstance(cell, Add):
        return plain
    if isinstance(cell, GlobalMean):
        return replace(plain, kind="mean")
    kernel, stride, group = tuple(cell.kernel_size), tuple(cell.stride), cell.group
    if (
        tuple(cell.dilation) != (1, 1)
        or group not in (1, cell.in_channels)
        or (group > 1 and cell.out_channels != group)
    ):
        raise ValueError(f"operators_of: tables have no rows for {cell}; plain and depthwise convolutions have some")
    kind = "conv" if group == 1 else "depthwise"
    if kind == "conv" and kernel == (1, 1):
        kind = "pointwise"
    return Operator(kind, cell.in_channels, cell.out_channels, height, width, kernel, stride)
