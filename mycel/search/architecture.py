"""Architecture descriptions: what a plain network is made of, in a form that files hold.

An architecture is a first convolution, inverted residual blocks (Sandler et al., "MobileNetV2",
2018) and a classifier over the mean of the last features. Signals have one row: the shape
``(channels, 1, length)`` makes kernels and strides those of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mycel import nn, ops

__all__ = ["Add", "Architecture", "Block", "GlobalMean", "Inverted", "convolution"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class Block:
    """An inverted block.

    Args:
        out (int): The channels after it.
        middle (int): The channels inside.
        kernel (int): The size of its kernel.
        stride (int): Its stride.
        residual (bool): Whether its input is added.
    """

    out: int
    middle: int
    kernel: int
    stride: int
    residual: bool


@dataclass(frozen=True)
class Architecture:
    """A network as a value.

    Args:
        shape (tuple[int, int, int]): The shape of an input, (channels, height, width).
        classes (int): How many numbers it gives.
        stem (int): The width of the first convolution, of kernel 3.
        stem_stride (int): Its stride.
        blocks (tuple[Block, ...]): What follows it, before a product to `classes` numbers.

    Examples:
        >>> small = Architecture((1, 8, 8), 10, 4, 1, (Block(4, 8, 3, 1, True),))
        >>> net = small.cell()
        >>> net(ops.ones((2, 1, 8, 8))).shape, Architecture.read(small.record()) == small
        ((2, 10), True)
    """

    shape: tuple[int, int, int]
    classes: int
    stem: int
    stem_stride: int
    blocks: tuple[Block, ...]

    def cell(self) -> Network:
        """Return a network of this architecture with weights drawn anew."""
        return Network(self)

    def record(self) -> dict[str, Any]:
        """Return the architecture as numbers, lists and dictionaries."""
        return asdict(self)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Architecture:
        """Return the architecture of a record.

        Raises ValueError where it is none.
        """
        try:
            blocks = tuple(Block(**block) for block in record["blocks"])
            classes, stem, stride = (int(record[name]) for name in ("classes", "stem", "stem_stride"))
            channels, height, width = (int(n) for n in record["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"Architecture: this is no record of one: {error}") from error
        return cls((channels, height, width), classes, stem, stride, blocks)


def _pair(size: int, flat: bool) -> Pair:
    return (1 if flat else size, size)


def convolution(given: int, out: int, kernel: int, stride: int, flat: bool, *, group: int = 1) -> nn.Conv2d:
    """Return a convolution without a bias that keeps sizes, but for its stride.

    It takes `given` channels to `out`, in `group` groups. A `flat` one, for signals of one row,
    has the `kernel` and the `stride` along the row only.
    """
    tall, wide = _pair(kernel // 2, flat) if not flat else (0, kernel // 2)
    return nn.Conv2d(
        given,
        out,
        _pair(kernel, flat),
        stride=_pair(stride, flat),
        pad_mode="pad",
        padding=(tall, tall, wide, wide),
        group=group,
        has_bias=False,
    )


class Add(nn.Cell):
    """The sum of two tensors, as a Cell that hooks see."""

    def construct(self, x: Any, y: Any) -> Any:
        return x + y


class GlobalMean(nn.Cell):
    """The mean over height and width: [N, C, H, W] to [N, C]."""

    def construct(self, x: Any) -> Any:
        return ops.mean(x, (2, 3))


class Inverted(nn.Cell):
    """An inverted residual block for `given` channels."""

    def __init__(self, given: int, block: Block, flat: bool) -> None:
        super().__init__()
        if block.residual and (block.stride != 1 or given != block.out):
            raise ValueError(f"Inverted: a residual block keeps {given} channels and has stride 1, not {block}")
        middle = block.middle
        self.expand = convolution(given, middle, 1, 1, flat)
        self.expand_norm = nn.BatchNorm2d(middle)
        self.depthwise = convolution(middle, middle, block.kernel, block.stride, flat, group=middle)
        self.depthwise_norm = nn.BatchNorm2d(middle)
        self.project = convolution(middle, block.out, 1, 1, flat)
        self.project_norm = nn.BatchNorm2d(block.out)
        self.relu = nn.ReLU()
        self.is_residual = block.residual
        self.add = Add()

    def construct(self, x: Any) -> Any:
        y = self.relu(self.expand_norm(self.expand(x)))
        y = self.relu(self.depthwise_norm(self.depthwise(y)))
        y = self.project_norm(self.project(y))
        return self.add(x, y) if self.is_residual else y


class Network(nn.Cell):
    """A network of an architecture: float32 [N, channels, height, width] to [N, classes]."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        channels, height, _ = architecture.shape
        self.architecture = architecture
        flat, width = height == 1, architecture.stem
        self.stem = convolution(channels, width, 3, architecture.stem_stride, flat)
        self.stem_norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        blocks = []
        for block in architecture.blocks:
            blocks.append(Inverted(width, block, flat))
            width = block.out
        self.blocks = nn.CellList(blocks)
        self.mean = GlobalMean()
        self.head = nn.Dense(width, architecture.classes)

    def construct(self, x: Any) -> Any:
        x = self.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.mean(x))
