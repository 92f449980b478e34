"""All assignments of a small problem: the oracle of the search.

    python -m tests.planner.exhaustive [GRAPHS]

compares the search with all assignments of so many random graphs (200) on meshes of 2, 3, 4, 6 and
8 devices, every third with a limit of memory that excludes what would be cheapest without it. It
prints how far the worst is from the optimum, and ends with the number of those that differ. Graphs
have up to 8 operations.

The oracle leaves no assignment out. Without a limit it is dynamic programming: what all costs is a
table over the alternatives of some items, and the minimum over an item is a table over those that
it shares tables with. So the least that the items from one on cost is known for all choices of the
ones before. With a limit assignments are begun in that order, and a beginning is not gone on with
if it and the least of the rest are dearer than the best that fits, or if it and what the rest holds
at least exceed the limit at some moment. Tables of too many entries are not joined: the sum of
their minima is less than the minimum of their sum, so that beginnings are only left later (mini
buckets; Dechter and Rish, 2003). No code is shared with the search.
"""

import sys
import time

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.planner.kernel_cost import nbytes_of
from mycel._src.planner.optimisation_problem import Problem
from mycel._src.planner.plan_search import search
from mycel._src.planner.sharding_problem import pose
from tests.planner.graphs import toy, various_graph

FLAT = [Mesh((n,), ("a",)) for n in (2, 3, 4, 6, 8)]
PLANE = [Mesh(sizes, ("a", "b")) for sizes in ((2, 2), (2, 3), (2, 4))]
OPERATORS = 8
LARGEST = 1 << 22  # entries of a joined table


def best(problem: Problem, below: float = np.inf):
    """Return the least seconds that fit, if less than `below`, and an assignment or None."""
    return _Oracle(problem).best(below)


class _Oracle:
    """The order in which items are decided, their tables, and what is left of these by minima."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.counts = [i.count for i in problem.items]
        tables = [((i,), np.array(item.seconds, float)) for i, item in enumerate(problem.items)]
        tables += [_table(k, self.counts) for k in problem.links]
        self.order = self._ordered([scope for scope, _ in tables])
        self.place = {item: p for p, item in enumerate(self.order)}
        # By the last of their items to be decided: tables, and minima with the place they are from.
        self.own = [[] for _ in self.order]
        self.minima = [[] for _ in self.order]
        self.constants = [0.0] * len(self.order)  # minima of tables that no earlier item is in
        for scope, table in tables:
            self.own[self._last(scope)].append((scope, table))
        for p in reversed(range(len(self.order))):
            self._minimise(p)

    def _last(self, scope):
        return max(self.place[i] for i in scope)

    def _ordered(self, scopes):
        """Return an order such that what is decided last shares small tables."""
        scopes, left, order = [set(s) for s in scopes], set(range(len(self.counts))), []
        while left:
            joined = {i: set().union({i}, *(s for s in scopes if i in s)) for i in left}
            item = min(left, key=lambda i: (np.prod([float(self.counts[n]) for n in joined[i]]), i))
            scopes = [s for s in scopes if item not in s] + [joined[item] - {item}]
            left.discard(item)
            order.append(item)
        return order[::-1]

    def _minimise(self, p):
        """Enter the minima over the alternatives of the item at a place."""
        item = self.order[p]
        buckets = []
        for scope, table in sorted((*self.own[p], *((s, t) for s, t, _ in self.minima[p])), key=lambda e: -e[1].size):
            for k, (known, sum_) in enumerate(buckets):
                both = (*known, *(i for i in scope if i not in known))
                if np.prod([float(self.counts[i]) for i in both]) <= LARGEST:
                    buckets[k] = both, _spread(sum_, known, both) + _spread(table, scope, both)
                    break
            else:
                buckets.append((scope, table))
        for scope, table in buckets:
            rest, least = tuple(i for i in scope if i != item), table.min(axis=scope.index(item))
            if rest:
                self.minima[self._last(rest)].append((rest, least, p))
            else:
                self.constants[p] += float(least)

    def best(self, below: float):
        """Return the least seconds that fit, if less than `below`, and an assignment or None."""
        problem, count = self.problem, len(self.order)
        limited = problem.limit is not None
        links = [[] for _ in range(count)]
        held = np.zeros((count + 1, problem.moments))  # what the items from a place on hold at least
        for k in problem.links if limited else ():
            if k.bytes is not None:
                links[self._last((k.source, *k.users))].append(k)
        for p in reversed(range(count if limited else 0)):
            held[p] = held[p + 1]
            for h in problem.items[self.order[p]].holds:
                held[p, h.first : h.last + 1] += h.bytes.min()
        # Of the minima at each place those from each later one on: these are what the rest costs.
        bounds = [[(s, t) for q in range(p + 1) for s, t, at in self.minima[q] if at > p] for p in range(count)]
        apart = [sum(self.constants[p + 1 :]) for p in range(count)]
        found = [below, None]
        made = [0] * count

        def at(scope, table, item):
            return table[tuple(slice(None) if i == item else made[i] for i in scope)]

        def go(p, seconds, room):
            if p == count:
                if seconds < found[0]:
                    found[0], found[1] = seconds, list(made)
                return
            item = self.order[p]
            costs = np.full(self.counts[item], seconds)
            for scope, table in self.own[p]:
                costs = costs + at(scope, table, item)
            least = costs + apart[p]
            for scope, table in bounds[p]:
                least = least + at(scope, table, item)
            for a in np.argsort(least, kind="stable"):
                if least[a] >= found[0]:
                    return
                made[item] = int(a)
                left = room
                if limited:
                    left = room.copy()
                    for h in problem.items[item].holds:
                        left[h.first : h.last + 1] -= h.bytes[a]
                    for k in links[p]:
                        wanted = {int(w[made[u]]) for u, w in zip(k.users, k.wants)}
                        left[k.first : k.last + 1] -= sum(k.bytes[made[k.source], l] for l in wanted)
                    if (left - held[p + 1]).min() < -1e-9 * problem.limit:
                        continue
                go(p + 1, float(costs[a]), left)

        go(0, 0.0, np.full(problem.moments, float(problem.limit)) if limited else None)
        return found[0], found[1]


def _table(link, counts):
    """Return the ends of a link and what it costs by their alternatives."""
    ends = tuple(dict.fromkeys((link.source, *link.users)))
    total = np.zeros([counts[i] for i in ends])
    source = [-1 if i == link.source else 1 for i in ends]
    for layout in range(link.seconds.shape[1]):
        wanted = np.zeros(total.shape, bool)
        for user, wants in zip(link.users, link.wants):
            wanted |= (wants == layout).reshape([-1 if i == user else 1 for i in ends])
        total += wanted * link.seconds[:, layout].reshape(source)
    return ends, total


def _spread(table, scope, wider):
    """Return a table with an axis for each item of `wider`, which begins with or holds `scope`."""
    present = [i for i in wider if i in scope]
    moved = table.transpose([scope.index(i) for i in present])
    return moved.reshape([moved.shape[present.index(i)] if i in present else 1 for i in wider])


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
        found = [compared(seed, mesh, 1 + seed % OPERATORS) for seed in range(count)]
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
