"""Pipeline parallelism: one graph of all micro-batches becomes a graph for each group of ranks.

`assign` says in which stage, and for which micro-batch, each node is computed; `cut` makes the
graph of one device of the pipeline, in which values come and go by messages in the order of a
schedule.
"""

from mycel._src.compiler.transforms.pipeline_parallel.stage_assignment import Assignment, Kind, Unit, assign
from mycel._src.compiler.transforms.pipeline_parallel.stage_graphs import Stage, cut

__all__ = ["Assignment", "Kind", "Stage", "Unit", "assign", "cut"]
