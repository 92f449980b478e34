"""How functions, Cells and their parameters are divided over a grid of devices.

What a program says here is checked, and staged graphs have it as marks
(`prims.distributed.sharding_constraint`). It changes no value: on one device every part is the
whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.sharding.layout import Layout as Layout
from mycel._src.compiler.ir.sharding.strategies import Strategy, divisions, note_unused, plan_of
from mycel._src.foundation import arguments
from mycel._src.staging.distributed.sharded_tensors import held
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.parallelism.operator_marks import marked_cell
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel.communication import get_group_size, get_rank
from mycel.nn.grad_reducer import broadcast_parameters
from mycel.ops.resharding import reshard as reshard

__all__ = ["Layout", "parameter_broadcast", "reshard", "shard", "sync_pipeline_shared_parameters"]


def shard(
    fn: Callable[..., Any],
    in_strategy: Any,
    out_strategy: Any = None,
    parameter_plan: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that computes what `fn` does, divided as the strategies say; a Cell is
    given them (`Cell.shard`) and returned itself.

    While parallel_mode is "semi_auto_parallel" or "auto_parallel", compiled functions have the
    strategies in their graphs; otherwise they have no effect, which is logged once.

    Args:
        fn (Callable[..., Any]): A function or a Cell.
        in_strategy (tuple[Any, ...] | None): An entry for each input that is a tensor: a tuple of
            the numbers of parts of its axes, a `mycel.Layout`, or None to leave it open.
        out_strategy (tuple[Any, ...] | None): The same for the results. Default: None.
        parameter_plan (Mapping[str, Any] | None): The same for parameters of a Cell, by name.
            Default: None.

    Returns:
        Callable[..., Any]: The function, or the Cell.

    Raises:
        TypeError: For invalid strategies, and unless `fn` can be called.
        ValueError: For a `parameter_plan` of a function, which has no parameters.

    Examples:
        >>> import mycel as ms
        >>> float(ms.shard(lambda x: x * 2, in_strategy=((),))(ms.Tensor(2.0)))
        4.0
    """
    arguments.function("shard", "fn", fn, "a function or a Cell")
    if isinstance(fn, Cell):
        fn.shard(in_strategy, out_strategy, parameter_plan)
        return fn
    inputs = divisions("shard", "in_strategy", in_strategy, may_be_open=True)
    if inputs is None:
        raise arguments.wrong_type("shard", "in_strategy", "a tuple with an element for each tensor", in_strategy)
    results = divisions("shard", "out_strategy", out_strategy, may_be_open=True)
    plan = plan_of("shard", parameter_plan)
    if plan:
        raise ValueError(f"shard: parameter_plan names {plan[0][0]!r}, and {fn!r} is no Cell, which has parameters")
    strategy = Strategy(inputs, results)
    note_unused("shard")

    @functools.wraps(fn)
    def divided(*args: Any, **kwargs: Any) -> Any:
        context = eager.current_context()
        if isinstance(context, Stage):
            run = lambda *a, **k: context.invoke(fn, a, k)
            return marked_cell(context, divided, strategy, run, args, kwargs)
        return fn(*args, **kwargs) if context is None else context.invoke(fn, args, kwargs)

    return divided


def parameter_broadcast(net: Cell, layout: Mapping[str, Any], cur_rank: int = 0, initial_rank: int = 0) -> None:
    """Give parameters of a network the values that they have in one rank.

    Parameters that the ranks have in parts are the same for all already, and stay.

    Args:
        net (Cell): The network.
        layout (Mapping[str, Any]): The parameters, by name.
        cur_rank (int): The number of this rank; all ranks call it. Default: 0.
        initial_rank (int): The rank whose values they get. Default: 0.

    Raises:
        TypeError: For anything but a Cell and a dict.
        ValueError: For other ranks and for names that `net` does not have.
    """
    owner = "parameter_broadcast"
    arguments.instance(owner, "net", net, Cell)
    arguments.mapping(owner, "layout", layout)
    rank, count = get_rank(), get_group_size()
    if cur_rank != rank or isinstance(cur_rank, bool):
        raise ValueError(f"{owner}: cur_rank must be {rank}, the number of this process, not {cur_rank!r}")
    if isinstance(initial_rank, bool) or initial_rank not in range(count):
        raise ValueError(f"{owner}: initial_rank must be a rank from 0 to {count - 1}, not {initial_rank!r}")
    known = net.parameters_dict()
    missing = sorted(name for name in layout if name not in known)
    if missing:
        raise ValueError(f"{owner}: the network has no parameter {missing[0]!r}")
    whole = [known[name] for name in layout if held(known[name]) is None]
    if count > 1 and whole:
        broadcast_parameters(whole, initial_rank)


def sync_pipeline_shared_parameters(net: Cell) -> None:
    """Synchronize parameters that several stages of a pipeline share.

    They are the same always: the stage that changes one sends the new value. Raises TypeError
    unless `net` is a Cell.
    """
    arguments.instance("sync_pipeline_shared_parameters", "net", net, Cell)
