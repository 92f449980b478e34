"""Liveness of kernels: the order in which fused kernels run, and which values are live when.

Nodes that are fused are one kernel (`kernel_cost.tasks_of`): a value that no other kernel needs is
never stored. Kernels run in the order of the graph, except that one whose operands are there runs
at once if it frees as many bytes as it takes, alone or with those that it makes ready. So gradients
of weights and the updates that consume them do not wait for the end, as in programs of the native
engine. The sizes are those of the graph as a whole: every rank has about the same share of all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.planner.kernel_cost import nbytes_of, tasks_of

__all__ = ["Kernels", "kernels_of"]

DEPTH = 3


@dataclass
class Kernels:
    """The kernels of a graph: `moment` has when each node runs, `count` the number of moments.

    `stored` are the nodes whose values lie in memory, `reads` has, by a node and the place of its
    operand, whether the operand is read there, and not by a node of the same kernel before.
    """

    moment: dict[Node, int]
    stored: set[Node]
    reads: set[tuple[Node, int]]
    count: int


@dataclass
class _Task:
    bytes: int = 0
    needs: set[int] = field(default_factory=set)
    users: set[int] = field(default_factory=set)


def kernels_of(graph: Graph, written: Collection[int]) -> Kernels:
    """Return when the nodes of a graph run and what is stored.

    `written` are the numbers of outputs that take the place of inputs, and so no memory.
    """
    found, _ = tasks_of(graph)
    home = {node: k for k, task in enumerate(found) for node in task.nodes}
    base = _bases(graph, home)
    over = {base[graph.outputs[p]] for p in written}
    stored = {base[o] for o in graph.outputs}
    reads: set[tuple[Node, int]] = set()
    tasks = [_Task() for _ in found]
    for k, task in enumerate(found):
        known: set[Node] = set()
        for node in task.nodes:
            for at, operand in enumerate(node.inputs):
                source = base.get(operand)
                if source is None:  # inside of a region that is computed again, and seen by nobody else
                    continue
                if source.prim is None or home.get(source, k) != k:
                    if source not in known:
                        reads.add((node, at))
                    known.add(source)
                    stored.add(source)
                    if source in home:
                        tasks[k].needs.add(home[source])
                        tasks[home[source]].users.add(k)
    for node, k in home.items():
        if node in stored and node not in over:
            tasks[k].bytes += nbytes_of(node.type)
    place = {k: moment for moment, k in enumerate(_ordered(tasks), 1)}
    moment: dict[Node, int] = {}
    for node in graph.nodes:
        own = place[home[node]] if node in home else 0
        moment[node] = own or max((moment.get(i, 0) for i in node.inputs), default=0)
    return Kernels(moment, stored, reads, len(tasks) + 2)


def _bases(graph: Graph, home: dict[Node, int]) -> dict[Node, Node]:
    """Return for each node the one whose memory it is seen in."""
    base: dict[Node, Node] = {n: n for n in graph.inputs}
    for node in graph.nodes:
        seen = node.prim is GET_ITEM or node not in home and len(node.inputs) == 1
        base[node] = base[node.inputs[0]] if seen else node
    return base


def _ordered(tasks: list[_Task]) -> list[int]:
    """Return the order in which tasks run."""
    waiting = [len(t.needs) for t in tasks]
    left = [len(t.users) for t in tasks]
    order: list[int] = []
    done = [False] * len(tasks)

    def gain(k: int, depth: int, used: dict[int, int], ready: dict[int, int]) -> int:
        """Return how many bytes less are held after a task and those that had better follow it."""
        result = -tasks[k].bytes
        for n in tasks[k].needs:
            used[n] = used.get(n, left[n]) - 1
            if used[n] == 0:
                result += tasks[n].bytes
        best = 0
        for u in sorted(tasks[k].users) if depth else ():
            ready[u] = ready.get(u, waiting[u]) - 1
            if ready[u] == 0 and not done[u]:
                best = max(best, gain(u, depth - 1, dict(used), dict(ready)))
        return result + best

    def run(first: int) -> None:
        stack = [first]
        while stack:
            k = stack.pop()
            if done[k] or waiting[k]:
                continue
            done[k] = True
            order.append(k)
            near: set[int] = set()
            for n in tasks[k].needs:
                left[n] -= 1
                if left[n] == 1:
                    near.update(u for u in tasks[n].users if not done[u])
            for u in tasks[k].users:
                waiting[u] -= 1
                near.add(u)
            ready = [u for u in near if not done[u] and not waiting[u] and gain(u, DEPTH, {}, {}) >= 0]
            # What takes the least is first.
            stack += sorted(ready, key=lambda u: (-tasks[u].bytes, -u))

    for k in range(len(tasks)):
        if not done[k]:
            run(k)
    return order
