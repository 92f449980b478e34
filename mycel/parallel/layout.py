"""Descriptions of how tensors are divided over a grid of devices.

A `Layout` only describes which axis of a tensor is divided along which axis of the grid. On the one
device of this process every part is the whole. So functions that would divide a tensor or the work
of a function check the description and return their argument, which computes the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

from mycel.base import arguments
from mycel.cells.cell import Cell
from mycel.core.tensor import Tensor
from mycel.ir.layout import Layout as Layout

__all__ = ["Layout", "parameter_broadcast", "reshard", "shard", "sync_pipeline_shared_parameters"]


def _check_strategies(name: str, value: Any) -> None:
    arguments.instance("shard", name, value, tuple, "a tuple with an element for each tensor")
    for one in value:
        _check_strategy(name, one)


def _check_strategy(name: str, value: Any) -> None:
    if value is None or isinstance(value, Layout):
        return
    if not isinstance(value, tuple) or not all(
        isinstance(n, Layout) or (isinstance(n, int) and not isinstance(n, bool)) for n in value
    ):
        raise TypeError(f"shard: {name} must say how a tensor is divided by a tuple of ints or a Layout, not {value!r}")


def shard(
    fn: Callable[..., Any],
    in_strategy: Any,
    out_strategy: Any = None,
    parameter_plan: Optional[Mapping[str, Any]] = None,
) -> Callable[..., Any]:
    """Return `fn`, a function or Cell, whose work would be divided as the strategies say.

    As there is one device, the result is `fn` itself. `in_strategy` and `out_strategy` have a tuple
    of numbers of parts, or a layout, for each input and output; `parameter_plan` has the same for
    parameters by name. Raises TypeError for invalid strategies, and unless `fn` can be called.

    >>> import mycel as ms
    >>> float(ms.shard(lambda x: x * 2, in_strategy=((1,),))(ms.Tensor(2.0)))
    4.0
    """
    arguments.function("shard", "fn", fn, "a function or a Cell")
    _check_strategies("in_strategy", in_strategy)
    if out_strategy is not None:
        _check_strategies("out_strategy", out_strategy)
    if parameter_plan is not None:
        if not isinstance(parameter_plan, dict) or not all(isinstance(name, str) for name in parameter_plan):
            raise TypeError(f"shard: parameter_plan must be a dict by names of parameters, not {parameter_plan!r}")
        for value in parameter_plan.values():
            _check_strategy("parameter_plan", value)
    return fn


def reshard(tensor: Tensor, layout: Layout) -> Tensor:
    """Return a tensor in another layout; as there is one device, it is the tensor itself.

    Raises TypeError for other arguments.

    >>> import mycel as ms
    >>> x = ms.Tensor([1.0, 2.0])
    >>> ms.reshard(x, ms.Layout((1,), ("dp",))("dp")) is x
    True
    """
    arguments.instance("reshard", "tensor", tensor, Tensor)
    arguments.instance("reshard", "layout", layout, Layout)
    return tensor


def parameter_broadcast(net: Cell, layout: Mapping[str, Any], cur_rank: int = 0, initial_rank: int = 0) -> None:
    """Send the parameters of `net` to the other processes that have the same part of them.

    There are no other processes, so the parameters stay as they are. `layout` is a dict by names of
    parameters; `cur_rank` and `initial_rank`, this process and the first one, must be 0. Raises
    TypeError for anything but a Cell and a dict, ValueError for other ranks and for names that
    `net` does not have.
    """
    arguments.instance("parameter_broadcast", "net", net, Cell)
    arguments.mapping("parameter_broadcast", "layout", layout)
    for name, rank in (("cur_rank", cur_rank), ("initial_rank", initial_rank)):
        if rank != 0 or isinstance(rank, bool):
            raise ValueError(f"parameter_broadcast: {name} must be 0, the number of this one process, not {rank!r}")
    known = net.parameters_dict()
    missing = sorted(name for name in layout if name not in known)
    if missing:
        raise ValueError(f"parameter_broadcast: the network has no parameter {missing[0]!r}")


def sync_pipeline_shared_parameters(net: Cell) -> None:
    """Synchronize parameters that several stages of a pipeline share.

    In one process they are always the same. Raises TypeError unless `net` is a Cell.
    """
    arguments.instance("sync_pipeline_shared_parameters", "net", net, Cell)
