"""Modules of `mindspore.parallel.distributed`."""

from mycel.compat.inner.parallel.distributed.distributed_data_parallel import (
    DistributedDataParallel as DistributedDataParallel,
)

__all__ = ["DistributedDataParallel"]
