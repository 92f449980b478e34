"""Once-for-all networks: weight-sharing supernets, of which a part is active (Cai et al., 2020).

The paper is "Once-for-All".

Widths, depths, kernels and resolutions are chosen. All sub-networks are one program: masks, which
are parameters that nothing trains, set to 0 what is not active. So a choice compiles nothing, and a
sub-network computes the same values as the plain network that `extract` makes of its weights.

* Width: the first channels are active. A mask after each normalisation sets the others to 0, and
  zeros add nothing to what reads them.
* Depth: the first blocks of a stage are active. Those behind are residual, and a gate of 0 leaves
  their input as it is.
* Kernel: a smaller kernel is the middle of the next larger one, times a matrix that is trained and
  that the channels of a layer share.
* Resolution: sizes of inputs are part of the program, so each resolution is one more.

Statistics of normalisations belong to a sub-network: after `choose` they are those of another, and
`recalibrate` measures them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel import nn, ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import initializer
from mycel.search.architecture import Architecture, Block, GlobalMean, Network, convolution
from mycel.search.search_space import Option, Point, Space

__all__ = ["ElasticNetwork", "Stage", "recalibrate", "sort_channels"]

Array = np.ndarray[Any, Any]
FINE = 4


@dataclass(frozen=True)
class Stage:
    """Blocks of one width: at most `width` channels and `depth` blocks, the first of `stride`."""

    width: int
    depth: int
    stride: int = 1


def _mask(channels: int, name: str) -> Parameter:
    return Parameter(np.ones((1, channels, 1, 1), np.float32), name=name, requires_grad=False)


class _Kernels(nn.Cell):
    """A depthwise convolution of `channels` whose kernel is one of several sizes, `kernels`.

    `stride` and kernels of a `flat` one, for signals, are along the row only.
    """

    def __init__(self, channels: int, kernels: Sequence[int], stride: int, flat: bool) -> None:
        super().__init__()
        self.kernels, self.channels, self.flat = tuple(kernels), channels, flat
        self.stride = (1 if flat else stride, stride)
        largest = kernels[-1]
        self.shape = (1 if flat else largest, largest)
        self.weight = Parameter(initializer("he_uniform", (channels, 1, *self.shape)), name="weight")
        sizes = [k if flat else k * k for k in kernels[:-1]]
        self.matrices = ParameterTuple([Parameter(np.eye(n, dtype=np.float32), name=f"matrix_{n}") for n in sizes])
        self.pick = Parameter(np.eye(len(kernels), dtype=np.float32)[-1], name="pick", requires_grad=False)
        self.pad = (0, 0, largest // 2, largest // 2) if flat else largest // 2

    def smaller(self, weight: Any, number: int) -> Any:
        """Return the kernel of a number from that of the next one."""
        size, larger = self.kernels[number], self.kernels[number + 1]
        cut = (larger - size) // 2
        rows = slice(0, 1) if self.flat else slice(cut, cut + size)
        middle = weight[:, :, rows, cut : cut + size]
        shape = middle.shape
        return ops.matmul(middle.reshape(shape[0], -1), self.matrices[number]).reshape(shape)

    def construct(self, x: Any) -> Any:
        weight = self.weight
        total = weight * self.pick[-1]
        for number in range(len(self.kernels) - 2, -1, -1):
            weight = self.smaller(weight, number)
            rim = (self.kernels[-1] - self.kernels[number]) // 2
            tall = 0 if self.flat else rim
            total = total + ops.pad(weight, (rim, rim, tall, tall)) * self.pick[number]
        return ops.conv2d(x, total, None, self.stride, "pad", self.pad, 1, self.channels)

    def chosen(self, number: int) -> Array:
        """Return the values of the kernel of a number."""
        weight = self.weight
        for k in range(len(self.kernels) - 2, number - 1, -1):
            weight = self.smaller(weight, k)
        values: Array = weight.asnumpy()
        return values


class _ElasticBlock(nn.Cell):
    """An inverted block of which channels, the kernel, or all is chosen.

    `sizes` are channels before, inside and after it; `kernels`, `stride` and `flat` are those of
    its depthwise convolution. A `residual` block adds its input.
    """

    def __init__(
        self, sizes: tuple[int, int, int], kernels: Sequence[int], stride: int, flat: bool, residual: bool
    ) -> None:
        super().__init__()
        given, middle, out = sizes
        self.expand = convolution(given, middle, 1, 1, flat)
        self.expand_norm = nn.BatchNorm2d(middle, momentum=0.0)
        self.depthwise = _Kernels(middle, kernels, stride, flat)
        self.depthwise_norm = nn.BatchNorm2d(middle, momentum=0.0)
        self.project = convolution(middle, out, 1, 1, flat)
        self.project_norm = nn.BatchNorm2d(out, momentum=0.0)
        self.relu = nn.ReLU()
        self.middle_mask, self.out_mask = _mask(middle, "middle_mask"), _mask(out, "out_mask")
        # What a gate of 0 leaves out keeps shapes: the first block of a stage is always there.
        self.gate = Parameter(np.ones((), np.float32), name="gate", requires_grad=False)
        self.residual = residual

    def construct(self, x: Any) -> Any:
        y = self.middle_mask * self.relu(self.expand_norm(self.expand(x)))
        y = self.middle_mask * self.relu(self.depthwise_norm(self.depthwise(y)))
        y = self.out_mask * self.project_norm(self.project(y))
        return x + self.gate * y if self.residual else y


@dataclass
class _Active:
    """The active point, apart from the Cell: its attributes are facts that programs rest on."""

    point: Point


class ElasticNetwork(nn.Cell):
    """A network of which every sub-network shares weights.

    `choose` sets the active part and `extract` makes a plain network of it. It begins as the
    largest.

    Args:
        shape (tuple[int, int, int]): Channels, height and width of inputs; a height of 1 is a
            signal.
        classes (int): How many numbers it gives.
        stages (Sequence[Stage]): Its `Stage`s, by which it is largest. The first block of a stage
            may change width and size; those behind it are residual.
        stem (int): The width of the first convolution. Default: 16.
        stem_stride (int): Its stride. Default: 1.
        widths (Sequence[float]): Shares of each width that may be chosen; channels are multiples of
            4. Default: (0.5, 0.75, 1.0).
        expands (Sequence[int]): Channels inside blocks, as multiples of those before. Default: (2,
            3, 4).
        kernels (Sequence[int]): Odd sizes of depthwise kernels. Default: (3, 5).
        resolutions (Sequence[int]): Heights that inputs may be resized to (of signals: lengths);
            all of the shape's if left out. Default: ().

    Raises:
        ValueError, TypeError: For options that make no network.

    Examples:
        >>> net = ElasticNetwork((1, 8, 8), 10, [Stage(8, 2)], stem=8, kernels=(3, 5))
        >>> net.choose(net.space.extreme(0))
        >>> small = net.extract()
        >>> small.architecture.blocks
        (Block(out=4, middle=8, kernel=3, stride=1, residual=False),)
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        stages: Sequence[Stage],
        stem: int = 16,
        stem_stride: int = 1,
        widths: Sequence[float] = (0.5, 0.75, 1.0),
        expands: Sequence[int] = (2, 3, 4),
        kernels: Sequence[int] = (3, 5),
        resolutions: Sequence[int] = (),
    ) -> None:
        super().__init__()
        owner = "ElasticNetwork"
        arguments.integer(owner, "classes", classes, at_least=1)
        if len(shape) != 3 or min(shape) < 1 or not stages:
            raise ValueError(f"{owner}: shape must be (channels, height, width) and stages at least one, not {shape}")
        if list(kernels) != sorted(set(kernels)) or any(k % 2 == 0 or k < 1 for k in kernels) or not kernels:
            raise ValueError(f"{owner}: kernels must be odd sizes that ascend, not {tuple(kernels)}")
        if list(expands) != sorted(set(expands)) or any(e < 1 for e in expands) or not expands:
            raise ValueError(f"{owner}: expands must be whole numbers that ascend, not {tuple(expands)}")
        if list(widths) != sorted(set(widths)) or not widths or not 0 < widths[0] <= widths[-1] == 1:
            raise ValueError(f"{owner}: widths must be shares that ascend to 1, not {tuple(widths)}")
        self.shape, self.classes, self.stages = tuple(shape), classes, tuple(stages)
        self.kernels, self.expands, self.stem_stride = tuple(kernels), tuple(expands), stem_stride
        self.flat = shape[1] == 1
        full = shape[2] if self.flat else shape[1]
        self.resolutions = tuple(resolutions) or (full,)
        if list(self.resolutions) != sorted(set(self.resolutions)) or self.resolutions[-1] > full:
            raise ValueError(f"{owner}: resolutions must ascend to at most {full}, not {self.resolutions}")
        self.stem = convolution(shape[0], stem, 3, stem_stride, self.flat)
        self.stem_norm, self.stem_mask = nn.BatchNorm2d(stem, momentum=0.0), _mask(stem, "stem_mask")
        self.relu = nn.ReLU()
        blocks, given = [], stem
        for stage in stages:
            for number in range(stage.depth):
                sizes = (given, given * expands[-1], stage.width)
                stride = stage.stride if number == 0 else 1
                blocks.append(_ElasticBlock(sizes, kernels, stride, self.flat, residual=number > 0))
                given = stage.width
        self.blocks = nn.CellList(blocks)
        self.mean, self.head = GlobalMean(), nn.Dense(given, classes)
        self.space = self._space(stem, widths)
        self._active = _Active(self.space.extreme(-1))
        self.choose(self.point)

    @property
    def point(self) -> Point:
        """The point of the active sub-network."""
        return self._active.point

    def _space(self, stem: int, widths: Sequence[float]) -> Space:
        def counts(width: int) -> tuple[int, ...]:
            return tuple(sorted({min(width, max(FINE, round(width * w / FINE) * FINE)) for w in widths}))

        choices: dict[str, Sequence[Option]] = {"resolution": self.resolutions, "stem": counts(stem)}
        for s, stage in enumerate(self.stages):
            choices[f"stage{s}.width"] = counts(stage.width)
            choices[f"stage{s}.depth"] = tuple(range(1, stage.depth + 1))
            for b in range(stage.depth):
                choices[f"stage{s}.block{b}.kernel"] = self.kernels
                choices[f"stage{s}.block{b}.expand"] = self.expands

        def unused(point: Point) -> list[str]:
            return [
                f"stage{s}.block{b}.{what}"
                for s, stage in enumerate(self.stages)
                for b in range(int(point[f"stage{s}.depth"]), stage.depth)
                for what in ("kernel", "expand")
            ]

        return Space(choices, unused)

    def architecture(self, point: Mapping[str, Option]) -> Architecture:
        """Return the architecture of the sub-network at a point of the space."""
        point = self.space.plain(point)
        given, blocks = int(point["stem"]), []
        for s, stage in enumerate(self.stages):
            for b in range(int(point[f"stage{s}.depth"])):
                name, width = f"stage{s}.block{b}", int(point[f"stage{s}.width"])
                middle = given * int(point[f"{name}.expand"])
                stride = stage.stride if b == 0 else 1
                blocks.append(Block(width, middle, int(point[f"{name}.kernel"]), stride, residual=b > 0))
                given = width
        side = int(point["resolution"])
        channels, height, width = self.shape
        sizes = (1, side) if self.flat else (side, max(1, round(width * side / height)))
        return Architecture((channels, *sizes), self.classes, int(point["stem"]), self.stem_stride, tuple(blocks))

    def choose(self, point: Mapping[str, Option]) -> None:
        """Make the sub-network at a point of the space the active one.

        Raises ValueError where it is none.
        """
        made = self.architecture(point)
        self._active.point = self.space.plain(point)
        _set_mask(self.stem_mask, made.stem)
        there = iter(made.blocks)
        full = iter(self.blocks)
        for s, stage in enumerate(self.stages):
            for b in range(stage.depth):
                cell, is_there = next(full), b < int(self.point[f"stage{s}.depth"])
                _set(cell.gate, np.float32(is_there))
                if not is_there:
                    continue
                block = next(there)
                _set_mask(cell.middle_mask, block.middle)
                _set_mask(cell.out_mask, block.out)
                _set(cell.depthwise.pick, np.eye(len(self.kernels), dtype=np.float32)[self.kernels.index(block.kernel)])

    def resized(self, x: Any) -> Array:
        """Return inputs [N, channels, height, width] in the active resolution, as NumPy's.

        They are resized bilinearly. Raises ValueError for those of another shape.
        """
        _, height, width = self.architecture(self.point).shape
        values = np.asarray(getattr(x, "asnumpy", lambda: x)())
        if values.ndim == 4 and values.shape[1:] == (self.shape[0], height, width):
            return values
        if values.ndim != 4 or values.shape[1:] != self.shape:
            raise ValueError(f"ElasticNetwork: inputs must have the shape [N, {self.shape}], not {values.shape}")
        small: Array = ops.interpolate(Tensor(values), size=(height, width), mode="bilinear").asnumpy()
        return small

    def construct(self, x: Any) -> Any:
        x = self.stem_mask * self.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.mean(x))

    def extract(self) -> Network:
        """Return a plain network with the active sub-network's weights and statistics.

        Outside of training it computes the same values, for inputs in the active resolution.
        """
        made = self.architecture(self.point)
        net = made.cell()
        channels, stem = made.shape[0], made.stem
        _set(net.stem.weight, self.stem.weight.asnumpy()[:stem, :channels])
        _copy_norm(net.stem_norm, self.stem_norm)
        sources = []
        at = 0
        for s, stage in enumerate(self.stages):
            sources += list(self.blocks)[at : at + int(self.point[f"stage{s}.depth"])]
            at += stage.depth
        given = stem
        for cell, full, block in zip(net.blocks, sources, made.blocks):
            _set(cell.expand.weight, full.expand.weight.asnumpy()[: block.middle, :given])
            number = self.kernels.index(block.kernel)
            _set(cell.depthwise.weight, full.depthwise.chosen(number)[: block.middle])
            _set(cell.project.weight, full.project.weight.asnumpy()[: block.out, : block.middle])
            for name in ("expand_norm", "depthwise_norm", "project_norm"):
                _copy_norm(getattr(cell, name), getattr(full, name))
            given = block.out
        _set(net.head.weight, self.head.weight.asnumpy()[:, :given])
        _set(net.head.bias, self.head.bias.asnumpy())
        net.set_train(False)
        return net


def _set(parameter: Any, values: Any) -> None:
    parameter.set_data(Tensor(np.array(values, order="C")))


def _set_mask(mask: Any, count: int) -> None:
    values = np.zeros(mask.shape, np.float32)
    values[:, :count] = 1
    _set(mask, values)


def _copy_norm(to: Any, source: Any) -> None:
    for name in ("gamma", "beta", "moving_mean", "moving_variance"):
        _set(getattr(to, name), getattr(source, name).asnumpy()[: to.num_features])


def recalibrate(net: nn.Cell, batches: Sequence[Any]) -> None:
    """Measure the running statistics of a network's batch normalisations anew.

    `batches` are inputs as the network takes them. The statistics become the mean over batches of
    those of each, as if they were one batch: variances have that of the means in them. The network
    is left outside of training. Raises ValueError where there is no batch.

    >>> net = nn.SequentialCell(nn.BatchNorm2d(1))
    >>> recalibrate(net, [ops.ones((2, 1, 2, 2)), 3 * ops.ones((2, 1, 2, 2))])
    >>> float(net[0].moving_mean[0]), float(net[0].moving_variance[0])
    (2.0, 1.0)
    """
    if not len(batches):
        raise ValueError("recalibrate: there must be at least one batch")
    norms = [c for _, c in net.cells_and_names() if isinstance(c, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d))]
    kept = [norm.momentum for norm in norms]
    net.set_train(True)
    means: list[list[Array]] = []
    variances: list[list[Array]] = []
    try:
        for norm in norms:
            norm.momentum = 1.0
        for batch in batches:
            net(batch if isinstance(batch, Tensor) else Tensor(batch))
            means.append([norm.moving_mean.asnumpy().astype(np.float64) for norm in norms])
            variances.append([norm.moving_variance.asnumpy().astype(np.float64) for norm in norms])
    finally:
        for norm, momentum in zip(norms, kept):
            norm.momentum = momentum
        net.set_train(False)
    for k, norm in enumerate(norms):
        mean = np.mean([m[k] for m in means], 0)
        spread = np.mean([(m[k] - mean) ** 2 for m in means], 0)
        _set(norm.moving_mean, mean.astype(np.float32))
        _set(norm.moving_variance, (np.mean([v[k] for v in variances], 0) + spread).astype(np.float32))


def sort_channels(net: ElasticNetwork) -> None:
    """Order the channels inside each block by how much the block's last product reads of them.

    What the whole network computes stays. Smaller sub-networks take the first channels, which are
    then those that matter most.
    """
    for block in net.blocks:
        order = np.argsort(-np.abs(block.project.weight.asnumpy()).sum((0, 2, 3)), kind="stable")
        for parameter in (block.expand.weight, block.depthwise.weight):
            _set(parameter, parameter.asnumpy()[order])
        for norm in (block.expand_norm, block.depthwise_norm):
            for name in ("gamma", "beta", "moving_mean", "moving_variance"):
                _set(getattr(norm, name), getattr(norm, name).asnumpy()[order])
        _set(block.project.weight, block.project.weight.asnumpy()[:, order])
