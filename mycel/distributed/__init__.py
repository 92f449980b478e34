"""Functions whose work is divided among ranks: layouts in, one program of every rank out."""

from mycel.base.names import listing as _listing
from mycel.distributed.function import Distributed, distribute
from mycel.distributed.layouts import Layouts
from mycel.distributed.pipelined import Pipeline

__all__ = ["Distributed", "Layouts", "Pipeline", "distribute"]

__dir__ = _listing(__name__)
