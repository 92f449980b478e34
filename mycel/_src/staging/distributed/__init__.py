"""Parallel functions: from layouts to the one program that every rank runs."""

from mycel._src.foundation.public_names import listing as _listing
from mycel._src.staging.distributed.distributed_function import Distributed, distribute
from mycel._src.staging.distributed.layout_specs import Layouts
from mycel._src.staging.distributed.pipeline_parallelism import Pipeline

__all__ = ["Distributed", "Layouts", "Pipeline", "distribute"]

__dir__ = _listing(__name__)
