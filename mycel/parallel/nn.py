"""`mindspore.parallel.nn`: Cells that divide a batch into micro-batches (see
`mycel.nn.micro_batch`), and reduce the gradients of a pipeline.
"""

from __future__ import annotations

from mycel.nn.grad_reducer import PipelineGradReducer as PipelineGradReducer
from mycel.nn.micro_batch import GradAccumulationCell as GradAccumulation
from mycel.nn.micro_batch import MicroBatchInterleaved as MicroBatchInterleaved
from mycel.nn.micro_batch import PipelineCell as Pipeline
from mycel.nn.micro_batch import PipelineCell as PipelineCell

__all__ = ["GradAccumulation", "MicroBatchInterleaved", "Pipeline", "PipelineCell", "PipelineGradReducer"]
