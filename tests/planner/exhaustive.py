"""All assignments of a small problem: the oracle of the search.

Items are decided one after the other. The seconds and the bytes of links whose ends are all decided
are added at once, and as they are never negative, a beginning that is dearer than the best whole
assignment, or holds more than the limit at some moment, is not gone on with.
"""

import numpy as np

from mycel.planner.model import Problem


def best(problem: Problem, below: float = np.inf):
    """Return the least seconds that fit, if less than `below`, and an assignment or None."""
    count = len(problem.items)
    ready = [[] for _ in range(count)]
    for k in problem.links:
        ready[max(k.source, *k.users)].append(k)
    found = [below, None]
    least = np.cumsum([0.0, *[i.seconds.min() for i in reversed(problem.items)]])[::-1]
    made = [0] * count

    def go(i, seconds, room):
        if i == count:
            if seconds < found[0]:
                found[0], found[1] = seconds, list(made)
            return
        item = problem.items[i]
        for a in range(item.count):
            made[i] = a
            total = seconds + item.seconds[a]
            if total + least[i + 1] >= found[0]:
                continue
            left = room.copy()
            for h in item.holds:
                left[h.first : h.last + 1] -= h.bytes[a]
            for k in ready[i]:
                row = made[k.source]
                wanted = {int(w[made[u]]) for u, w in zip(k.users, k.wants)}
                total += sum(k.seconds[row, l] for l in wanted)
                if k.bytes is not None:
                    left[k.first : k.last + 1] -= sum(k.bytes[row, l] for l in wanted)
            if total + least[i + 1] < found[0] and left.min() >= -1e-9 * (problem.limit or 0):
                go(i + 1, total, left)

    go(0, 0.0, np.full(problem.moments, np.inf if problem.limit is None else float(problem.limit)))
    return found[0], found[1]
