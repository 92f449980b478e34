"""`mindspore.device_context.cpu.op_tuning`: the threads of an operation."""

from __future__ import annotations

from mycel._src.foundation import arguments
from mycel._src.foundation.settings import config

__all__ = ["threads_num"]


def threads_num(num: int) -> None:
    """Set how many threads an operation may use.

    It is the option `runtime_num_threads` of `set_context`. Raises TypeError for anything but an
    integer, ValueError for a number below 1.
    """
    config.set_context(runtime_num_threads=arguments.integer("threads_num", "num", num, 1, numpy=False))
