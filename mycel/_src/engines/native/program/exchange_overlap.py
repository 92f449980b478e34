"""Overlap of communication and computation: orders and splits a program's exchanges between ranks.

An exchange becomes two steps: one that begins it once its operands are there, and one that waits
for its results, which stands in front of the first step that needs them. What happens between is
`transport.async_channel`'s: the first step hands over a copy of the operands, and the second writes
the results, so that no memory of the program is touched between the two.

All ranks have to begin exchanges in one order. It is that in which their results are needed: by the
length of the longest way from the inputs of the graph to the first node that uses them, and then by
the order of the graph. So sums of gradients begin in the order in which these are there, and
gathers of weights in that of the layers.

The steps that lead to the first exchange come first, then those that lead to the second, and so on,
in the order that is given: so a weight's gradient is computed as soon as its sum may begin. What
leads to no exchange keeps its place if it waits for none. Otherwise, as an update of weights, it
comes when some more exchanges have begun behind the last that it waits for: so sums are gone from
memory soon, and others are on their way while one is waited for.

An exchange whose results are larger than its operands, as a gather, begins no earlier than when the
results of the last but one before it are used, so that few of them are in memory. Where the order
takes more memory than the given one by a tenth, the given one stays, with exchanges begun and
awaited in it as they may. An exchange beside which nothing is computed stays one step. With
MYCEL_OVERLAP=0 in the environment, all do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.program.step_order import Plan, is_exchange
from mycel._src.engines.native.steps.step_types import HostCall, Step
from mycel._src.foundation.dtype import uint8

__all__ = ["overlapped", "setting"]

# How many gathers are in memory before their results are used, how many exchanges are begun before
# one is waited for by what leads to none, and how much more memory is taken.
AHEAD = 2
BEHIND = 4
MORE = 0.1


def setting() -> str:
    """Return what the environment says of the order, for the keys of kept programs."""
    return f"overlap {_is_on()}"


def _is_on() -> bool:
    return os.environ.get("MYCEL_OVERLAP", "1") not in ("", "0")


def overlapped(
    steps: Sequence[Step],
    graph: Graph,
    kept: Iterable[Buffer],
    over: Mapping[int, Buffer],
    number: Callable[[DimLike], int],
) -> list[Step]:
    """Return steps in an order in which exchanges run beside others.

    `steps` are those of `graph` in the order given; `kept`, `over` and `number` are as for
    `step_order.schedule`.
    """
    exchanges = [k for k, step in enumerate(steps) if is_exchange(step)]
    if not exchanges or not _is_on():
        return list(steps)
    needed = _needed(graph, [steps[k].node for k in exchanges])
    parted, begins, ends = _parted(steps)
    plan = Plan(parted, {id(b) for b in kept}, number)
    plan.connect(over)
    work = _Overlap(plan, begins, ends, [needed[steps[k].node] for k in exchanges])
    order = work.order()
    given = plan.peak(range(len(parted)))
    if plan.peak(order) > given * (1 + MORE):
        order = work.near()
    return _joined([parted[k] for k in order])


def _needed(graph: Graph, exchanges: Sequence[Node | None]) -> dict[Node | None, tuple[int, int]]:
    """Return when the results of exchanges are needed: the length of the longest way to their first
    user, and their own place in the graph.
    """
    wanted = set(exchanges)
    level: dict[Node, int] = {}
    # The exchanges that a node is a view of.
    of: dict[Node, tuple[Node, ...]] = {}
    place: dict[Node, int] = {}
    first: dict[Node, int] = {}
    for k, node in enumerate(graph.nodes):
        level[node] = 1 + max([level.get(i, 0) for i in node.inputs], default=0)
        behind = [e for i in node.inputs for e in of.get(i, ())]
        is_view = node.prim is GET_ITEM or (node.prim is not None and node.prim.view)
        if is_view:
            of[node] = tuple(behind)
        else:
            for exchange in behind:
                first[exchange] = min(first.get(exchange, level[node]), level[node])
        if node in wanted:
            of[node] = (node,)
            place[node] = k
    last = 1 + max(level.values(), default=0)
    return {node: (first.get(node, last), k) for node, k in place.items()}


def _parted(steps: Sequence[Step]) -> tuple[list[Step], list[int], list[int]]:
    """Return the steps with each exchange as two, and the numbers of these."""
    found: list[Step] = []
    begins: list[int] = []
    ends: list[int] = []
    for step in steps:
        if not is_exchange(step):
            found.append(step)
            continue
        whole = step.data
        assert isinstance(whole, HostCall)
        ticket, count = Buffer(uint8, 1, "ticket"), len(begins)
        begins.append(len(found))
        ends.append(len(found) + 1)
        begin = replace(whole, writes=[], phase=HostCall.BEGIN, number=count)
        end = replace(whole, reads=[], phase=HostCall.END, number=count)
        found.append(Step(begin, list(step.reads), [ticket], step.node))
        found.append(Step(end, [ticket], list(step.writes), step.node))
    return found, begins, ends


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with those exchanges as one beside which nothing is computed."""
    open_: dict[int, int] = {}
    beside: dict[int, int] = {}
    computed = 0
    for k, step in enumerate(steps):
        data = step.data
        if not isinstance(data, HostCall) or not data.phase:
            computed += 1
        elif data.phase == HostCall.BEGIN:
            open_[data.number], beside[data.number] = k, computed
        else:
            beside[data.number] = computed - beside[data.number]
    found: list[Step] = []
    results = {s.data.number: s for s in steps if isinstance(s.data, HostCall) and s.data.phase == HostCall.END}
    for step in steps:
        data = step.data
        if not isinstance(data, HostCall) or not data.phase or beside[data.number]:
            found.append(step)
        elif data.phase == HostCall.BEGIN:
            end = results[data.number]
            assert isinstance(end.data, HostCall)
            whole = replace(data, writes=end.data.writes, phase="", number=-1)
            found.append(Step(whole, step.reads, end.writes, step.node))
    return found


class _Overlap:
    """Exchanges among the steps of `plan`: `begins` and `ends` are the numbers of their two steps,
    in the order in which they begin; `needed` says when their results are.
    """

    def __init__(self, plan: Plan, begins: Sequence[int], ends: Sequence[int], needed: Sequence[tuple[int, int]]):
        self.plan, self.count = plan, len(plan.steps)
        self.needs = self._needs({e: 1 << k for k, e in enumerate(ends)})
        chosen = self._chosen([self.needs[b] for b in begins], needed)
        self.begins, self.ends = [begins[k] for k in chosen], [ends[k] for k in chosen]
        for a, b in zip(self.begins, self.begins[1:]):
            plan.edge(a, b)
        self.needs = self._needs({e: 1 << k for k, e in enumerate(self.ends)})
        self._spread_gathers()

    def _needs(self, own: Mapping[int, int]) -> list[int]:
        """Return the exchanges that each step waits for, as bits."""
        result = [0] * self.count
        for k in range(self.count):
            bits = own.get(k, 0)
            for before in self.plan.before[k]:
                bits |= result[before] if before < k else 0
            result[k] = bits
        return result

    def _chosen(self, needs: Sequence[int], needed: Sequence[tuple[int, int]]) -> list[int]:
        """Return the exchanges in the order in which they begin."""
        left = sorted(range(len(needs)), key=lambda k: needed[k])
        found: list[int] = []
        done = 0
        while left:
            k = next(k for k in left if not needs[k] & ~done)
            left.remove(k)
            found.append(k)
            done |= 1 << k
        return found

    def _spread_gathers(self) -> None:
        """Have gathers begin no earlier than those before them are used."""
        plan = self.plan
        before: list[int] = []
        for k, (begin, end) in enumerate(zip(self.begins, self.ends)):
            data, made = plan.steps[begin].data, plan.steps[end].data
            assert isinstance(data, HostCall) and isinstance(made, HostCall)
            if plan.total(v.buffer for v in made.writes) <= plan.total(v.buffer for v in data.reads):
                continue
            if len(before) >= AHEAD:
                last = before[-AHEAD]
                user = min(plan.after[last], default=last)
                if not self.needs[user] >> k:
                    plan.edge(user, begin)
            before.append(end)

    def order(self) -> list[int]:
        """Return the order of the steps, by number."""
        plan = self.plan
        leads = self._leads()
        free = [k for k in range(self.count) if not leads[k] and not self.needs[k]]
        done = [False] * self.count
        found: list[int] = []
        next_free = 0

        def add(k: int) -> None:
            done[k] = True
            found.append(k)

        by_needs = lambda k: (self.needs[k].bit_length(), k)
        rest = sorted([k for k in range(self.count) if not leads[k] and self.needs[k]], key=by_needs)
        for number, begin in enumerate(self.begins):
            for k in self._missing(begin, done):
                while (
                    next_free < len(free) and free[next_free] < k and all(done[b] for b in plan.before[free[next_free]])
                ):
                    add(free[next_free])
                    next_free += 1
                add(k)
            waiting = []
            for place, k in enumerate(rest):
                if self.needs[k].bit_length() > number + 1 - BEHIND:
                    waiting += rest[place:]
                    break
                if all(done[b] for b in plan.before[k]):
                    add(k)
                else:
                    waiting.append(k)
            rest = waiting
        return self._late([*found, *sorted([k for k in range(self.count) if not done[k]], key=by_needs)])

    def near(self) -> list[int]:
        """Return the given order with each exchange begun as soon and awaited as late as it may."""
        done = [False] * self.count
        found: list[int] = []
        ahead = 0
        is_begin = set(self.begins)
        for k in range(self.count):
            if done[k] or k in is_begin:
                continue
            for needed in self._missing(k, done):
                done[needed] = True
                found.append(needed)
            while ahead < len(self.begins) and (
                done[self.begins[ahead]] or all(done[b] for b in self.plan.before[self.begins[ahead]])
            ):
                if not done[self.begins[ahead]]:
                    done[self.begins[ahead]] = True
                    found.append(self.begins[ahead])
                ahead += 1
        return self._late([*found, *[k for k in self.begins if not done[k]]])

    def _leads(self) -> list[bool]:
        """Return which steps an exchange waits for."""
        result = [False] * self.count
        stack = list(self.begins)
        while stack:
            k = stack.pop()
            if not result[k]:
                result[k] = True
                stack.extend(self.plan.before[k])
        return result

    def _missing(self, goal: int, done: Sequence[bool]) -> list[int]:
        """Return the steps that have to run up to a step and with it, in an order."""
        found: set[int] = set()
        stack = [goal]
        while stack:
            k = stack.pop()
            if not done[k] and k not in found:
                found.add(k)
                stack.extend(self.plan.before[k])
        return self._sorted(found)

    def _sorted(self, chosen: set[int]) -> list[int]:
        """Return steps in the given order as far as it goes with the order of exchanges."""
        result: list[int] = []
        seen: set[int] = set()
        for start in sorted(chosen):
            stack = [start]
            while stack:
                k = stack[-1]
                missing = [b for b in self.plan.before[k] if b in chosen and b not in seen]
                if missing:
                    stack.append(min(missing))
                    continue
                stack.pop()
                if k not in seen:
                    seen.add(k)
                    result.append(k)
        return result

    def _late(self, order: Sequence[int]) -> list[int]:
        """Return an order with each wait in front of the first step that comes behind it."""
        is_end = set(self.ends)
        placed: set[int] = set()
        result: list[int] = []

        def add(k: int) -> None:
            for b in self.plan.before[k]:
                if b in is_end and b not in placed:
                    add(b)
            placed.add(k)
            result.append(k)

        for k in order:
            if k not in is_end:
                add(k)
        for k in order:
            if k in is_end and k not in placed:
                add(k)
        return result
