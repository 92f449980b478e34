"""Functions whose work is divided among ranks: layouts in, one program of every rank out."""

from mycel._src.foundation.public_names import listing as _listing
from mycel._src.staging.distributed.distributed_function import Distributed, distribute
from mycel._src.staging.distributed.layout_specs import Layouts
from mycel._src.staging.distributed.pipeline_parallelism import Pipeline

__all__ = ["Distributed", "Layouts", "Pipeline", "distribute"]

__dir__ = _listing(__name__)
