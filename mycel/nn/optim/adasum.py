"""Steps whose gradients or changes are combined over devices by AdaSum (S. Maleki et al., "Scaling
distributed training with adaptive summation", 2020).

Two vectors a and b become (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b: their sum where they are
orthogonal, and their mean where they are the same. More than two are combined in pairs, and these
in pairs again: process p with those whose number differs from its own in one bit, from the last bit
on. Each parameter is combined by itself, and the vectors of one element type are sent together.

Inside of a server gradients are summed (averaged, with `gradients_mean`) as usual, and the servers
are combined. In the modes "data_parallel" and "hybrid_parallel" `nn.TrainOneStepCell` does the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import float32, float64
from mycel._src.tensors.cells.cell import Cell
from mycel.communication import create_group, get_group_size, get_rank
from mycel.communication.groups import known
from mycel.nn.optim.optimizer import Optimizer

__all__ = ["AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell"]

# MindSpore's servers have 8 devices each, and AdaSum runs between them.
SERVER = 8


class _AdaSum(Cell):
    """What both ways have in common: the optimizer, and the exchange between servers."""

    def __init__(self, optimizer: Any, server_size: int | None = None) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        self.optimizer = arguments.instance(name, "optimizer", optimizer, Optimizer)
        self.parameters = optimizer.parameters
        count = get_group_size()
        if count == 1:
            raise RuntimeError(
                f"{name}: AdaSum combines the steps of several devices, and there is one; use the optimizer itself"
            )
        if server_size is None:
            server_size = SERVER if count > SERVER and count % SERVER == 0 else 1
        self.server_size = arguments.integer(name, "server_size", server_size, 1)
        servers, rest = divmod(count, self.server_size)
        if rest or servers & (servers - 1) or servers < 2:
            raise ValueError(
                f"{name}: {count} processes are {count / self.server_size:g} servers of {self.server_size}; AdaSum "
                "combines 2, 4, 8 or another power of two"
            )
        server, place = divmod(get_rank(), self.server_size)
        self.gathers: list[Any] = []
        bit = 1
        while bit < servers:
            pair = sorted((server, server ^ bit))
            group = _group([s * self.server_size + place for s in pair])
            self.gathers.append(ops.AllGather(group))
            bit *= 2

    def server_group(self) -> str:
        """Return the name of the group of the processes in this server."""
        first = get_rank() // self.server_size * self.server_size
        return _group(list(range(first, first + self.server_size)))

    def combined(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return tensors combined over all servers."""
        found = list(values)
        for gather in self.gathers:
            for kind in dict.fromkeys([v.dtype for v in values]):
                places = [k for k, v in enumerate(values) if v.dtype is kind]
                flat = [ops.reshape(found[k], (-1,)) for k in places]
                both, start = gather(ops.reshape(ops.concat(flat), (1, -1))), 0
                for k in places:
                    stop = start + values[k].size
                    found[k] = ops.reshape(_adasum(both[0, start:stop], both[1, start:stop]), values[k].shape)
                    start = stop
        return tuple(found)


def _group(ranks: list[int]) -> str:
    name = f"adasum_{'_'.join(map(str, ranks))}"
    if not known(name):
        create_group(name, ranks)
    return name


def _adasum(a: Any, b: Any) -> Any:
    """Return two vectors combined."""
    kind = float64 if a.dtype is float64 else float32
    x, y = a.astype(kind), b.astype(kind)
    dot, least = (x * y).sum(), 1e-30
    one = 1 - dot / (2 * (x * x).sum()).clip(least)
    two = 1 - dot / (2 * (y * y).sum()).clip(least)
    return (one * x + two * y).astype(a.dtype)


class AdaSumByGradWrapCell(_AdaSum):
    """An optimizer with gradients that are combined over devices by AdaSum.

    Processes are `server_size` in each server, by default 8 where there are more than 8, else 1;
    the gradients that are given are those of a server. Raises RuntimeError for a process that is
    alone, ValueError where the number of servers is no power of two, TypeError for other arguments.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> try:
    ...     ms.nn.AdaSumByGradWrapCell(ms.nn.SGD([w], 0.1))
    ... except RuntimeError as error:
    ...     print(str(error)[:70])
    AdaSumByGradWrapCell: AdaSum combines the steps of several devices, an
    """

    def construct(self, grads: Any) -> Any:
        """Take a step with the combined gradients."""
        return self.optimizer(self.combined(grads))


class AdaSumByDeltaWeightWrapCell(_AdaSum):
    """An optimizer whose changes of weights are combined over devices by AdaSum, as an optimizer
    need not be linear in gradients.

    Arguments and errors are those of `AdaSumByGradWrapCell`.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> try:
    ...     ms.nn.AdaSumByDeltaWeightWrapCell(ms.nn.SGD([w], 0.1))
    ... except RuntimeError as error:
    ...     print(str(error)[-40:])
    d there is one; use the optimizer itself
    """

    def construct(self, grads: Any) -> Any:
        """Take a step with the combined change."""
        before = [ops.deepcopy(p) for p in self.parameters]
        result = self.optimizer(grads)
        changes = self.combined([b - p for b, p in zip(before, self.parameters)])
        for parameter, old, change in zip(self.parameters, before, changes):
            ops.assign(parameter, old - change)
        return result
