"""What compiled Cells say of their operators: names, strategies, shapes and lines.

The Cell was compiled, or called in a compiled form, while operators were divided among devices
(`frontend.parallelism.operator_marks`).
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.transforms.operator_regions import Region, regions_of, strategies_of
from mycel._src.tensors.cells.cell import Cell

__all__ = ["chosen_strategy", "is_compiled", "parallel_info", "shard_strategy"]


def shard_strategy(net: Cell) -> dict[str, list[list[int]]]:
    """Return the strategies in the last graph that a Cell was compiled to, by names of operators:
    for each input the number of parts of each axis.

    Operators without a strategy of the user's are not among them. Raises RuntimeError for a Cell
    that was not compiled.

    >>> import mycel as ms
    >>> from mycel.parallel.regions import shard_strategy
    >>> class Net(ms.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.mul = ms.ops.Mul().shard(((2, 1), (2, 1)))
    ...     def construct(self, x, y):
    ...         return self.mul(x, y)
    >>> ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=4)
    >>> net, x = Net(), ms.ops.ones((4, 2))
    >>> net.compile(x, x)
    >>> shard_strategy(net)
    {'Default/Mul-op0': [[2, 1], [2, 1]]}
    >>> ms.reset_auto_parallel_context()
    """
    return strategies_of(_graph_of("shard_strategy", net))


def chosen_strategy(net: Cell) -> dict[str, list[list[int]]]:
    """Return how the last program that a Cell was compiled to is divided, by names of operators:
    for each input the number of parts of each axis.

    They are those of `shard_strategy`, and for other operators those that follow from them, or in
    the mode "auto_parallel" those that the search found. Raises RuntimeError for a Cell that was
    not compiled, ValueError where a strategy does not fit the devices.

    >>> import mycel as ms
    >>> from mycel.parallel.regions import chosen_strategy
    >>> class Net(ms.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.mul, self.relu = ms.ops.Mul().shard(((2, 1), (2, 1))), ms.ops.ReLU()
    ...     def construct(self, x, y):
    ...         return self.relu(self.mul(x, y))
    >>> ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=4)
    >>> net, x = Net(), ms.ops.ones((4, 2))
    >>> net.compile(x, x)
    >>> chosen_strategy(net)["Default/ReLU-op1"]
    [[2, 1]]
    >>> ms.reset_auto_parallel_context()
    """
    from mycel._src.staging.distributed.cell_partition import chosen_strategies

    _graph_of("chosen_strategy", net)
    return chosen_strategies(net)


def parallel_info(net: Cell) -> dict[str, dict[str, Any]]:
    """Return what the last graph that a Cell was compiled to says of each operator, by name.

    An entry has the operator's "kind", the shapes of its "inputs" and "results", its "in_strategy"
    and "out_strategy" (the parts of each axis, or None where the user did not say), its pipeline
    "stage" (-1 for none), and its "line" as "file:line". Raises RuntimeError for a Cell that was
    not compiled.
    """
    return {r.operator.name: _entry(r) for r in regions_of(_graph_of("parallel_info", net))}


def _entry(region: Region) -> dict[str, Any]:
    return {
        "kind": region.operator.kind,
        "inputs": [tuple(n.shape) for n in region.inputs],
        "results": [tuple(n.shape) for n in region.results],
        "in_strategy": [None if d is None else d.cuts for d in region.in_strategy],
        "out_strategy": [None if d is None else d.cuts for d in region.out_strategy],
        "stage": region.operator.stage,
        "line": str(region.operator.where or ""),
    }


def is_compiled(net: Cell) -> bool:
    """Return whether a Cell was compiled as one graph."""
    return bool(_graphs(net))


def _graph_of(what: str, net: Cell) -> Graph:
    found = _graphs(net)
    if not found:
        raise RuntimeError(f"{what}: {type(net).__name__} was not compiled as one graph; call its compile() first")
    return found[-1]


def _graphs(net: Cell) -> list[Graph]:
    compiled = net.__dict__.get("_compiled_call")
    if compiled is None:
        return []
    if compiled.divided is not None and compiled.divided[1].programs:
        return [version.graph for version, _ in compiled.divided[1].programs]
    return [v.graph for found in compiled.versions.values() for v in found[:1]]
