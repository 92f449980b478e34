"""`mindspore.parallel.distributed.distributed_data_parallel`: a network whose gradients are means
over the ranks of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.tensors.cells.cell import Cell
from mycel.communication import get_group_size, get_process_group_ranks
from mycel.nn.grad_reducer import broadcast_parameters

__all__: list[str] = []

_WORLD = "hccl_world_group"


def get_data_parallel_group() -> str:
    """Return the group of all ranks."""
    return _WORLD


def get_data_parallel_world_size(group: str | None) -> int:
    """Return how many ranks a group has; all for None."""
    return get_group_size(group or _WORLD)


class DistributedDataParallel(Cell):
    """A network, `module`, of which each rank computes its part of the batch: gradients by its
    parameters are means over the ranks of `process_group`, None for all.

    With `init_sync` the parameters begin with the values of the group's first rank.
    `bucket_cap_mb`, `find_unused_parameters`, `static_graph` and `reducer_mode` have no effect, and
    sums are divided before or behind (`average_in_collective`) with one result. Raises TypeError
    for what is no Cell.

    >>> import mycel as ms
    >>> from mycel.compat.inner.parallel.distributed import DistributedDataParallel
    >>> net = DistributedDataParallel(ms.nn.Dense(2, 1, weight_init="ones", has_bias=False))
    >>> found = ms.grad(lambda x: net(x).sum(), None, net.trainable_params())(ms.ops.ones((1, 2)))
    >>> found[0].tolist()
    [[1.0, 1.0]]
    """

    def __init__(
        self,
        module: Any,
        init_sync: bool = True,
        process_group: str | None = None,
        bucket_cap_mb: int | None = None,
        find_unused_parameters: bool = False,
        average_in_collective: bool = False,
        static_graph: bool = False,
        reducer_mode: str = "CppReducer",
    ) -> None:
        super().__init__(auto_prefix=False)
        owner = "DistributedDataParallel"
        self.module = arguments.instance(owner, "module", module, Cell)
        arguments.one_of(owner, "reducer_mode", reducer_mode, ("CppReducer", "PythonReducer"))
        for name, given in (("bucket_cap_mb", bucket_cap_mb), ("static_graph", static_graph or None)):
            if given is not None:
                without_effect(f"{owner}({name}=...)", "each gradient is sent when it is computed")
        group = process_group or _WORLD
        self.count = get_group_size(group)
        self._sums = True
        if self.count == 1:
            return
        made: Any = ops
        self.all_reduce = made.AllReduce(made.ReduceOp.SUM, group)
        if init_sync:
            if process_group is None:
                broadcast_parameters(self.module.get_parameters())
            else:
                first = get_process_group_ranks(group)[0]
                send = made.Broadcast(first, group)
                for parameter in self.module.get_parameters():
                    parameter.set_data(send((parameter,))[0])
        for parameter in self.module.trainable_params():
            parameter.register_hook(self._mean)

    def _mean(self, gradient: Any) -> Any:
        return self.all_reduce(gradient) / self.count if self._sums else gradient

    def construct(self, *inputs: Any, **inputs_dict: Any) -> Any:
        """Return what the network returns."""
        return self.module(*inputs, **inputs_dict)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a context manager within which gradients are this rank's own."""
        before, self._sums = self._sums, False
        try:
            yield
        finally:
            self._sums = before

    def zero_grad(self) -> None:
        """Do nothing: gradients are values, not buffers that are added to."""
