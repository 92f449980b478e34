"""Cells that divide a batch into micro-batches, one after another, or as a pipeline of ranks.

A network f of a batch x, whose parts along axis 0 are x_1, ..., x_n, becomes f(x_1) + ... + f(x_n):
the sum, as in MindSpore, so that its gradient is the sum of the gradients of the parts. A loss that
is a mean over its batch is therefore n times that of the whole; divide the gradients by n, or scale
them in the optimizer.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.container import CellList

__all__ = ["GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell", "VirtualDatasetCellTriple"]


class _MicroBatch(Cell):
    """A network on part `index` of `count` of every tensor along axis 0; scalars and other inputs
    stay as they are.
    """

    def __init__(self, owner: str, index: int, count: int) -> None:
        super().__init__()
        self.owner, self.index, self.count = owner, index, count
        self._micro_batch = index

    def construct(self, network: Any, *inputs: Any) -> Any:
        """Return the network's result for the parts."""
        parts = []
        for x in inputs:
            if isinstance(x, Tensor) and x.ndim:
                size, rest = divmod(x.shape[0], self.count)
                if rest:
                    raise ValueError(
                        f"{self.owner}: a batch of {x.shape[0]} does not divide into {self.count} micro-batches; the "
                        f"input's shape is {x.shape}"
                    )
                x = x[self.index * size : (self.index + 1) * size]
            parts.append(x)
        return network(*parts)


class _Parts(Cell):
    """Base of sums of a network's results over micro-batches."""

    def __init__(self, network: Any, name: str, count: Any) -> None:
        super().__init__(auto_prefix=False)
        owner = type(self).__name__
        arguments.instance(owner, "network", network, Cell)
        self.network = network
        self.count = arguments.integer(owner, name, count, 1)
        if self.count > 1 << 16:
            raise ValueError(f"{owner}: {name} must be at most 65536, not {count}")

    def _parts(self) -> CellList:
        return CellList([_MicroBatch(type(self).__name__, i, self.count) for i in range(self.count)])

    def _sum(self, parts: CellList, inputs: tuple[Any, ...]) -> Any:
        total: Any = None
        for part in parts:
            found = part(self.network, *inputs)
            total = found if total is None else total + found
        return total


class GradAccumulationCell(_Parts):
    """The sum of a network's results over `micro_size` parts of the batch, which accumulates
    gradients over them.

    Raises TypeError for a network that is no Cell, ValueError for a `micro_size` below 1 or one
    that does not divide the batch.

    >>> import mycel as ms
    >>> net = ms.nn.GradAccumulationCell(ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.L1Loss()), 2)
    >>> float(net(ms.Tensor([1.0, 2.0, 3.0, 4.0]), ms.Tensor([0.0, 0.0, 0.0, 0.0])))
    5.0
    """

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(network, "micro_size", micro_size)
        self.micro_size = self.count
        self.micro_inputs = self._parts()

    def construct(self, *inputs: Any) -> Any:
        """Return the sum over the micro-batches."""
        return self._sum(self.micro_inputs, inputs)


class PipelineCell(_Parts):
    """The sum of a network's results over `micro_size` parts of the batch, as a pipeline computes
    it.

    Args:
        network (Cell): The network.
        micro_size (int): The number of parts of the batch.
        stage_config (dict[str, int] | None): Maps names of cells to the stages that compute them
            (`Cell.pipeline_stage`). Default: None.
        segment_config (dict[str, int] | None): The segments of a stage that compute them, by name.
            Default: None.

    Raises:
        ValueError: For a stage outside of those of `set_auto_parallel_context`, where
            `pipeline_stages` is set.
        KeyError: For a name that is not in the network.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.PipelineCell(ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.L1Loss()), 2)
        >>> float(net(ms.Tensor([1.0, 2.0, 3.0, 4.0]), ms.Tensor([0.0, 0.0, 0.0, 0.0])))
        5.0
    """

    def __init__(
        self,
        network: Cell,
        micro_size: int,
        stage_config: dict[str, int] | None = None,
        segment_config: dict[str, int] | None = None,
    ) -> None:
        super().__init__(network, "micro_size", micro_size)
        known = {name: cell for name, cell in network.cells_and_names()}
        for argument, given in (("stage_config", stage_config), ("segment_config", segment_config)):
            arguments.optional("PipelineCell", argument, given, dict)
            for name, number in (given or {}).items():
                if name not in known:
                    raise KeyError(f"PipelineCell: {argument} names {name!r}, which is no cell of the network")
                arguments.integer("PipelineCell", f"{argument}[{name!r}]", number, 0)
                if argument == "stage_config":
                    stages = current().pipeline_stages
                    if 1 < stages <= number:
                        raise ValueError(
                            f"PipelineCell: {name!r} is to be on stage {number}, and pipeline_stages is {stages}"
                        )
                    known[name].pipeline_stage = number
                else:
                    known[name].pipeline_segment = number
        self.micro_size = self.count
        self.micro_inputs = self._parts()

    def construct(self, *inputs: Any) -> Any:
        """Return the sum over the micro-batches."""
        return self._sum(self.micro_inputs, inputs)


class MicroBatchInterleaved(_Parts):
    """The sum of a network's results over `interleave_num` parts of the batch, which a cluster
    would compute interleaved.

    Raises TypeError for a network that is no Cell, ValueError for an `interleave_num` below 1 or
    one that does not divide the batch.

    >>> import mycel as ms
    >>> net = ms.nn.MicroBatchInterleaved(ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.L1Loss()))
    >>> float(net(ms.Tensor([1.0, 2.0, 3.0, 4.0]), ms.Tensor([0.0, 0.0, 0.0, 0.0])))
    5.0
    """

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, "interleave_num", interleave_num)
        self.interleave_num = self.count
        self.interleave_inputs = self._parts()

    def construct(self, *inputs: Any) -> Any:
        """Return the sum over the micro-batches."""
        return self._sum(self.interleave_inputs, inputs)


class VirtualDatasetCellTriple(Cell):
    """A network of three inputs, which a cluster would distribute over its devices; on one device
    it is the network itself.

    >>> import mycel as ms
    >>> loss = ms.nn.VirtualDatasetCellTriple(ms.nn.CosineEmbeddingLoss())
    >>> float(loss(ms.Tensor([[1.0]]), ms.Tensor([[1.0]]), ms.Tensor([1])))
    0.0
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        arguments.instance("VirtualDatasetCellTriple", "backbone", backbone, Cell)
        self._backbone = backbone

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        """Return the network's result."""
        return self._backbone(a, b, c)
