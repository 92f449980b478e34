"""`mindspore.parallel.nn.parallel_cell_wrapper`: batches in parts."""

from __future__ import annotations

from mycel.nn.micro_batch import GradAccumulationCell as GradAccumulation
from mycel.nn.micro_batch import MicroBatchInterleaved, PipelineCell

__all__ = ["GradAccumulation", "MicroBatchInterleaved", "Pipeline", "PipelineCell"]


class Pipeline(PipelineCell):
    """A network whose batches go through it in `micro_size` parts, which are added."""
