"""All assignments of a small problem: the oracle of the search.

    python -m tests.planner.exhaustive [GRAPHS]

compares the search with all assignments of so many random graphs (200) on meshes of 2, 3, 4, 6 and
8 devices, every third with a limit of memory that excludes what would be cheapest without it. It
prints how far the worst is from the optimum, and ends with the number of those that differ. Graphs
have up to 8 operations on meshes of one axis, and up to 4 on those of two.

Items are decided one after the other. The seconds and the bytes of links whose ends are all decided
are added at once, and as they are never negative, a beginning that is dearer than the best whole
assignment, or holds more than the limit at some moment, is not gone on with. What the items from
one on cost at least, by themselves and without a limit, is found in the same way from the last item
to the first (Russian doll search; Verfaillie, Lemaitre and Schiex, 1996).
"""

import sys
import time

import numpy as np

from mycel.ir.mesh import Mesh
from mycel.planner.model import Problem
from mycel.planner.problems import pose
from mycel.planner.search import search
from mycel.planner.work import nbytes_of
from tests.planner.graphs import toy, various_graph

FLAT = [Mesh((n,), ("a",)) for n in (2, 3, 4, 6, 8)]
PLANE = [Mesh(sizes, ("a", "b")) for sizes in ((2, 2), (2, 3), (2, 4))]
OPERATORS = 8


def best(problem: Problem, below: float = np.inf):
    """Return the least seconds that fit, if less than `below`, and an assignment or None."""
    count = len(problem.items)
    least = [0.0] * (count + 1)
    for first in reversed(range(1, count)):
        least[first] = _from(problem, first, least, np.inf, False)[0]
    return _from(problem, 0, least, below, True)


def _from(problem: Problem, first: int, least, below: float, limited: bool):
    """Return the least seconds of the items from `first` on, and an assignment or None.

    `least` has what those from each later item on cost, `limited` says whether the limit counts.
    """
    count = len(problem.items)
    ready = [[] for _ in range(count)]
    for k in problem.links:
        if min(k.source, *k.users) >= first:
            ready[max(k.source, *k.users)].append(k)
    found = [below, None]
    made = [0] * count
    limited = limited and problem.limit is not None

    def go(i, seconds, room):
        if i == count:
            if seconds < found[0]:
                found[0], found[1] = seconds, list(made)
            return
        item = problem.items[i]
        costs = np.array(item.seconds, float)
        for a in range(item.count):
            made[i] = a
            for k in ready[i]:
                row = made[k.source]
                costs[a] += sum(k.seconds[row, l] for l in {int(w[made[u]]) for u, w in zip(k.users, k.wants)})
        for a in np.argsort(costs, kind="stable"):
            total = seconds + float(costs[a])
            if total + least[i + 1] >= found[0]:
                return
            made[i] = int(a)
            left = room
            if limited:
                left = room.copy()
                for h in item.holds:
                    left[h.first : h.last + 1] -= h.bytes[a]
                for k in ready[i]:
                    if k.bytes is not None:
                        wanted = {int(w[made[u]]) for u, w in zip(k.users, k.wants)}
                        left[k.first : k.last + 1] -= sum(k.bytes[made[k.source], l] for l in wanted)
                if left.min() < -1e-9 * problem.limit:
                    continue
            go(i + 1, total, left)

    go(first, 0.0, np.full(problem.moments, float(problem.limit)) if limited else None)
    return found[0], found[1]


def compared(seed: int, mesh: Mesh, operators: int = OPERATORS):
    """Return how many seconds the search is from the optimum of a random graph, as a share of it.

    0 where neither finds anything that fits; infinite where only one of them does.
    """
    graph = various_graph(seed, operators)
    topology = toy(mesh, latency=1e-9)
    everything = sum(nbytes_of(n.type) for n in (*graph.inputs, *graph.nodes))
    posed = pose(graph, topology, limit=everything)
    if seed % 3 == 0:
        free = search(posed.problem)
        posed = pose(graph, topology, limit=free.bytes * (0.95, 0.8, 0.6)[seed // 3 % 3])
    try:
        answer = search(posed.problem)
    except ValueError:
        return 0.0 if best(posed.problem)[1] is None else np.inf
    if not posed.problem.fits(answer.choices) or not answer.exact:
        return np.inf
    seconds, choices = best(posed.problem, answer.seconds * (1 - 1e-9))
    return 0.0 if choices is None else answer.seconds / seconds - 1


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else 200
    wrong = 0
    for mesh in (*FLAT, *PLANE):
        start = time.perf_counter()
        most = OPERATORS if len(mesh.sizes) == 1 else OPERATORS // 2
        found = [compared(seed, mesh, 1 + seed % most) for seed in range(count)]
        differing = [seed for seed, share in enumerate(found) if share > 1e-6]
        wrong += len(differing)
        print(
            f"{mesh.size} devices {mesh.sizes}: {count} graphs, the worst {max(found):.1e} above the optimum; "
            f"{len(differing)} differ {differing[:10] or ''} ({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
