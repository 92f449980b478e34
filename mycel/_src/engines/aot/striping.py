"""Chooses operations to compute in stripes of rows, so that a library's arena is small.

For each region of a graph (`transforms/row_tiling.py`) and several heights of stripes it is
estimated what a call holds: the rows that are kept, and what is alive behind the region in the
program without stripes. The best few are planned, and the smallest arena wins; of those that are
nearly as small, the one of the fewest steps, since each is code. Stripes cost up to a quarter more
instructions, so nothing is divided where the arena does not become less by the share that is asked
for: `WORTH` where nobody asks for stripes, `GAIN` where somebody does.
"""

from __future__ import annotations

from collections.abc import Callable

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.transforms.row_tiling import Region, peak_bytes, price, regions, striped
from mycel._src.engines.aot.target_plan import Plan
from mycel._src.engines.native.program import arena
from mycel._src.engines.native.program.liveness import Liveness

__all__ = ["GAIN", "WORTH", "smallest"]

HEIGHTS = (1, 2, 3, 4, 6, 8, 12, 16)
# What an arena has to be less by, where stripes are asked for and where they are not.
GAIN, WORTH = 0.1, 0.35
# What counts as nearly as small, and how many are planned.
NEAR, TRIED = 1.25, 3
# Arenas of this size fit everywhere, and more steps than these are too much code.
LEAST, MOST_STEPS = 1024, 600


def smallest(graph: Graph, whole: Plan, planned: Callable[[Graph], Plan], gain: float) -> Plan:
    """Return the plan of a graph in stripes, or the plan without them, `whole`.

    `planned` makes the plan of a graph, and `gain` is the share that the arena has to be less by.
    """
    if whole.arena_bytes <= LEAST:
        return whole
    found: list[tuple[int, int, int, Region]] = []
    behind, limit = _Behind(whole), int(whole.arena_bytes * (1 - gain))
    for k, region in enumerate(regions(graph)):
        rest = behind.bytes(region)
        for height in HEIGHTS:
            if height >= region.height or rest >= limit:
                break
            size = max(peak_bytes(region, height), rest)
            found.append((size, -height, k, region))
            # Higher stripes hold more.
            if size > min(f[0] for f in found) * NEAR:
                break
    found.sort(key=lambda one: one[:3])
    plans = []
    for _, height, _, region in _several(found):
        plans.append(planned(striped(graph, region, -height)))
        plans[-1].stripes, plans[-1].copied_bytes = price(region, -height)
    plans = [p for p in plans if p.arena_bytes <= limit and len(p.all_steps) <= MOST_STEPS]
    if not plans:
        return whole
    least = min(p.arena_bytes for p in plans)
    return min((p for p in plans if p.arena_bytes <= least * NEAR), key=lambda p: len(p.all_steps))


def _several(found: list[tuple[int, int, int, Region]]) -> list[tuple[int, int, int, Region]]:
    """Return the first candidates, at most two of one region."""
    chosen: list[tuple[int, int, int, Region]] = []
    for one in found:
        if len(chosen) < TRIED and sum(other[3] is one[3] for other in chosen) < 2:
            chosen.append(one)
    return chosen


class _Behind:
    """What a plan holds at its most after values are there."""

    def __init__(self, plan: Plan) -> None:
        live = Liveness(plan.template.steps, plan.calls, plan.template.takes)
        groups, _ = arena.joined(live.lives(plan.number), live.taking)
        self.alive = [
            sum(size for _, size, first, last in groups if first <= at <= last) for at in range(live.clock + 2)
        ]
        self.times: dict[Node, int] = {}
        for at, step in live.times.items():
            for node in (*step.members, *([] if step.node is None else [step.node])):
                self.times[node] = at

    def bytes(self, region: Region) -> int:
        """Return what is alive at most after the last value of a region."""
        at = self.times.get(region.total or region.last, 0)
        return max(self.alive[at + 1 :], default=0)
