"""Gradients summed over the processes of a group, and over the micro-batches of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mycel import ops
from mycel._src.compiler.prims.distributed.collectives import all_reduce
from mycel._src.foundation import arguments
from mycel._src.foundation.settings.parallel_settings import DATA, HYBRID, current
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_group_size
from mycel.nn.optim.adasum import AdaSumByDeltaWeightWrapCell, AdaSumByGradWrapCell

__all__ = ["DistributedGradReducer", "PipelineGradReducer", "broadcast_parameters", "reducer_in_force"]


def _several(name: str, parameters: object) -> tuple[Any, ...]:
    """Return parameters in a tuple."""
    if not isinstance(parameters, Iterable):
        raise arguments.wrong_type(name, "parameters", "a sequence of parameters", parameters)
    return tuple(parameters)


class DistributedGradReducer(Cell):
    """The sums of gradients over the processes of `group`; a single process keeps its own
    gradients.

    Gradients go together as `comm_fusion` of the settings says, those of the last parameters first,
    as these are there first; those of one element type in one exchange.

    Args:
        parameters (Iterable[Any]): The parameters of the optimizer, one for each gradient that a
            call takes.
        mean (bool | None): Whether the sums are divided by `degree`; None for `gradients_mean` of
            the settings of parallel training. Default: None.
        degree (int | None): The divisor; None for the number of processes. Default: None.
        fusion_type (int): Has no effect on results. Default: 1.
        group (str): The name of the group of processes; None for all of them. Default:
            "hccl_world_group".

    Raises:
        TypeError, ValueError: For other arguments.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> ms.nn.DistributedGradReducer([w], mean=True, degree=4)((ms.Tensor([2.0]),))[0].asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = "hccl_world_group",
    ) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        self.parameters = _several(name, parameters)
        self.mean = current().gradients_mean if mean is None else arguments.flag(name, "mean", mean)
        if degree is None:
            degree = get_group_size(group)
        self.degree = arguments.integer(name, "degree", degree, 1, flags=True, error=ValueError)
        arguments.integer(name, "fusion_type", fusion_type)
        self.all_reduce: Any = ops.AllReduce(ops.ReduceOp.SUM, group)
        self.several = get_group_size(group) > 1
        self.groups = _groups(self.parameters) if self.several else []

    def construct(self, grads: Any) -> Any:
        """Return the gradients summed over all processes."""
        summed = self._summed(grads) if self.several else tuple(grads)
        return tuple([g / self.degree for g in summed]) if self.mean else summed

    def _summed(self, grads: Any) -> tuple[Tensor, ...]:
        if len(grads) != len(self.parameters):
            return joined_reduction(self.all_reduce, grads)
        found: list[Any] = list(grads)
        for group in self.groups:
            part = joined_reduction(self.all_reduce, [grads[k] for k in group])
            for k, value in zip(group, part):
                found[k] = value
        return tuple(found)


def _groups(parameters: Iterable[Parameter]) -> list[list[int]]:
    """Return the places of parameters whose gradients go together, in the order in which these
    go.
    """
    # Programs of one process need not load what divides.
    from mycel._src.staging.distributed.parallel_modes import fusing_of

    sizes = [p.nbytes for p in parameters]
    fusing = fusing_of(current())
    room, size = fusing.room(all_reduce, sum(sizes)), 0
    groups: list[list[int]] = []
    for k in range(len(sizes) - 1, -1, -1):
        begins = k + 1 in fusing.cuts if fusing.cuts else size + sizes[k] > room
        if not groups or begins:
            groups.append([])
            size = 0
        groups[-1].append(k)
        size += sizes[k]
    return groups


def joined_reduction(reduce: Any, values: Any) -> tuple[Tensor, ...]:
    """Return tensors after a function that reduces one tensor element by element: those of one type
    go through it together, as one vector.
    """
    found: list[Any] = list(values)
    for kind in dict.fromkeys([v.dtype for v in found]):
        places = [k for k, v in enumerate(values) if v.dtype is kind]
        flat = [ops.reshape(values[k], (-1,)) for k in places]
        whole, start = reduce(ops.concat(flat) if len(flat) > 1 else flat[0]), 0
        for k in places:
            stop = start + values[k].size
            found[k], start = ops.reshape(whole[start:stop], values[k].shape), stop
    return tuple(found)


def reducer_in_force(parameters: Iterable[Any], optimizer: Any = None) -> DistributedGradReducer | None:
    """Return what sums the gradients of several processes where the mode of parallel training asks
    for it (data_parallel, hybrid_parallel); None where it does not, or the process is alone.

    An `optimizer` that combines servers by AdaSum has them summed inside of each server only.
    """
    settings = current()
    if settings.parallel_mode not in (DATA, HYBRID) or get_group_size() == 1:
        return None
    if isinstance(optimizer, (AdaSumByGradWrapCell, AdaSumByDeltaWeightWrapCell)):
        if optimizer.server_size == 1:
            return None
        return DistributedGradReducer(parameters, settings.gradients_mean, group=optimizer.server_group())
    degree = settings.device_num if settings.device_num > 1 else None
    return DistributedGradReducer(parameters, settings.gradients_mean, degree)


def broadcast_parameters(parameters: Iterable[Parameter], source: int = 0) -> None:
    """Give parameters the values that they have in the process `source`, by one message for each
    element type.
    """
    given = list(parameters)
    send = ops.Broadcast(source)
    for p, value in zip(given, joined_reduction(lambda x: send((x,))[0], given)):
        p.set_data(value)


class PipelineGradReducer(Cell):
    """The gradients of a pipeline of one stage: those that it is given, divided by the scale of the
    loss.

    `parameters` are those of the optimizer. The gradients of `PipelineCell` are sums over its
    micro-batches already. `opt_shard`, which concerns optimizers divided over devices, has no
    effect. Raises TypeError for other arguments.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> ms.nn.PipelineGradReducer([w], scale_sense=4.0)((ms.Tensor([2.0]),))[0].asnumpy()
    array([0.5], dtype=float32)
    """

    def __init__(
        self, parameters: Iterable[Any], scale_sense: float | Tensor = 1.0, opt_shard: bool | None = None
    ) -> None:
        super().__init__(auto_prefix=False)
        arguments.instance("PipelineGradReducer", "scale_sense", scale_sense, (int, float, Tensor))
        arguments.optional("PipelineGradReducer", "opt_shard", opt_shard, bool)
        self.parameters = _several("PipelineGradReducer", parameters)
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        """Return the gradients divided by the scale."""
        return tuple([g / self.scale_sense for g in grads])
