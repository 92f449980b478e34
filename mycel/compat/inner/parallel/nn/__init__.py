"""`mindspore.parallel.nn`: batches in parts; on one device the parts run one after the other."""

from __future__ import annotations

from mycel.compat.inner.parallel.nn.parallel_cell_wrapper import GradAccumulation, MicroBatchInterleaved, Pipeline
from mycel.compat.inner.parallel.nn.parallel_grad_reducer import PipelineGradReducer

__all__ = ["GradAccumulation", "MicroBatchInterleaved", "Pipeline", "PipelineGradReducer"]
