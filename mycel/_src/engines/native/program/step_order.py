"""The order of a program's steps, chosen for a low peak of memory.

Lowering emits steps in about the order of the user's program, which leaves the gradients of weights
to the end: until then all activations and cotangents that they are made of are alive. Here steps
are ordered anew. The given order is kept, except that a step that is ready runs at once if it frees
more memory than it takes, alone or together with the steps that it makes ready (a weight's gradient
with the update that consumes it). The new order is used where its peak is lower than the given
one's by more than `GAIN`.

An order is valid if every step keeps its place relative to those that write the buffers it reads or
writes, or that read the buffers it writes. Outputs that overwrite inputs (`over`) are written after
the last step that reads the input. Steps with effects keep their order. Exchanges with other ranks
that have no other effect may change places here, and get their order in `exchange_overlap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.steps.inplace import possible_overwrites
from mycel._src.engines.native.steps.step_types import Call, HostCall, Step

__all__ = ["Plan", "is_exchange", "peak_bytes", "schedule"]

# Where all that a program's steps write fits into a core's cache, the order is left alone; other
# processors may have no more memory than that.
LEAST = 1 << 20
GAIN = 0.01
DEPTH = 3


def schedule(
    steps: Sequence[Step],
    kept: Iterable[Buffer],
    over: Mapping[int, Buffer],
    number: Callable[[DimLike], int],
) -> list[Step]:
    """Return the steps in the order in which they are to run.

    `kept` are the buffers outside the arena. `over` has the inputs that outputs replace, by the id
    of the output's buffer. `number` gives dimensions as integers. For other processors several
    orders are tried.
    """
    plan = Plan(steps, {id(b) for b in kept}, number)
    if sum(plan.size.values()) < LEAST and target().threads:
        return list(steps)
    plan.connect(over)
    depths: Sequence[int] = (DEPTH,)
    if not target().threads:
        plan.takes, depths = possible_overwrites(steps), range(1, DEPTH + 1)
    orders = [plan.order(depth) for depth in depths]
    before, (after, order) = plan.peak(range(len(steps))), min((plan.peak(order), order) for order in orders)
    return [steps[k] for k in order] if after < before * (1 - GAIN) else list(steps)


def peak_bytes(steps: Sequence[Step], kept: Iterable[Buffer], number: Callable[[DimLike], int]) -> int:
    """Return the most bytes alive at one time in this order.

    No layout of the arena can need less.
    """
    return Plan(steps, {id(b) for b in kept}, number).peak(range(len(steps)))


def is_exchange(step: Step) -> bool:
    """Return whether a step is an exchange with other ranks, or a part of one, that has no other
    effect.
    """
    prim = None if step.node is None else step.node.prim
    return isinstance(step.data, HostCall) and prim is not None and prim.exchanges and not prim.effect


class Plan:
    """The buffers that each step touches, and the steps that have to come before it.

    Steps are identified by their numbers in the given order. `takes` are pairs of a result and a
    buffer that it may overwrite, by the id of the step, where places are shared in the account too.
    """

    takes: Mapping[int, Sequence[tuple[Buffer, Buffer]]] = {}

    def __init__(self, steps: Sequence[Step], kept: set[int], number: Callable[[DimLike], int]) -> None:
        self.steps, self._number = steps, number
        self.size: dict[int, int] = {}
        self.touched: list[tuple[int, ...]] = []
        self.users: dict[int, list[int]] = {}
        for k, step in enumerate(steps):
            own = {id(b): b for b in (*step.reads, *step.writes)}
            for key, b in own.items():
                if key not in self.size:
                    self.size[key] = 0 if key in kept else number(b.size) * b.dtype.itemsize
                self.users.setdefault(key, []).append(k)
            self.touched.append(tuple(own))

    def connect(self, over: Mapping[int, Buffer]) -> None:
        """Find which steps have to come before which."""
        count = len(self.steps)
        self.after: list[list[int]] = [[] for _ in range(count)]
        self.before: list[list[int]] = [[] for _ in range(count)]
        self.waits = [0] * count
        self._known: set[tuple[int, int]] = set()
        edge = self.edge
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        everywhere: dict[int, list[int]] = {}
        effect = -1
        for k, step in enumerate(self.steps):
            for buffer in step.reads:
                key = id(buffer)
                if key in writer:
                    edge(writer[key], k)
                readers.setdefault(key, []).append(k)
                everywhere.setdefault(key, []).append(k)
            for buffer in step.writes:
                key = id(buffer)
                if key in writer:
                    edge(writer[key], k)
                for r in readers.pop(key, ()):
                    edge(r, k)
                if key in over and key not in writer:
                    # Readers that come later in the given order would make it a copy there, too.
                    for r in everywhere.get(id(over[key]), ()):
                        edge(r, k)
                writer[key] = k
            prim = None if step.node is None else step.node.prim
            has_effect = isinstance(step.data, (HostCall, Call)) or (prim is not None and prim.effect)
            if has_effect and not is_exchange(step):
                if effect >= 0:
                    edge(effect, k)
                effect = k

    def total(self, buffers: Iterable[Buffer]) -> int:
        """Return the bytes of buffers, wherever they lie."""
        return sum(self._number(b.size) * b.dtype.itemsize for b in buffers)

    def edge(self, a: int, b: int) -> None:
        """Have step `a` come before step `b`."""
        if a != b and (a, b) not in self._known:
            self._known.add((a, b))
            self.after[a].append(b)
            self.before[b].append(a)
            self.waits[b] += 1

    def peak(self, order: Iterable[int]) -> int:
        """Return the most bytes alive at one time."""
        left = {key: len(users) for key, users in self.users.items()}
        alive: set[int] = set()
        now = most = 0
        for k in order:
            shared = self.shared(k, alive, left)
            for key in self.touched[k]:
                if key not in alive:
                    alive.add(key)
                    now += 0 if key in shared else self.size[key]
            most = max(most, now)
            for key in self.touched[k]:
                left[key] -= 1
                if not left[key] and key not in shared:
                    now -= self.size[key]
        return most

    def shared(self, k: int, alive: set[int], left: Mapping[int, int]) -> set[int]:
        """Return results of a step, and the buffers that end there and whose place they take."""
        found: set[int] = set()
        for made, old in self.takes.get(id(self.steps[k]), ()):
            a, b = id(made), id(old)
            if a not in alive and b in alive and left[b] == 1 and self.size[a] == self.size[b]:
                if found.isdisjoint((a, b)):
                    found.update((a, b))
        return found

    def order(self, depth: int = DEPTH) -> list[int]:
        """Return the new order.

        What a step frees is counted with that of `depth` - 1 steps that it makes ready.
        """
        self.depth = depth
        self.left = {key: len(users) for key, users in self.users.items()}
        self.alive: set[int] = set()
        waits = self.left_waits = list(self.waits)
        ready: list[int] = []
        urgent: list[tuple[int, int]] = []
        done = [False] * len(self.steps)
        for k, count in enumerate(waits):
            if not count:
                heappush(ready, k)
        result: list[int] = []
        while ready:
            k = -1
            while urgent and k < 0:
                said, k = heappop(urgent)
                growth = 0 if done[k] else self.growth(k)
                if growth != said:
                    if growth < 0:
                        heappush(urgent, (growth, k))
                    k = -1
            while k < 0:
                k = heappop(ready)
                if done[k]:
                    k = -1
                    if not ready:
                        return result
            done[k] = True
            result.append(k)
            near: dict[int, None] = {}
            for s in self.after[k]:
                waits[s] -= 1
                if not waits[s]:
                    heappush(ready, s)
                    near[s] = None
            for key in self.touched[k]:
                self.alive.add(key)
                self.left[key] -= 1
                for u in self.users[key] if self.size[key] else ():
                    # A step that waits for one other, as for its packed factor, begins there.
                    first = u if done[u] or waits[u] != 1 else next(b for b in self.before[u] if not done[b])
                    if not done[first] and not waits[first]:
                        near[first] = None
            for u in near:
                growth = self.growth(u)
                if growth < 0:
                    heappush(urgent, (growth, u))
        return result

    def growth(self, k: int) -> int:
        """Return how many more bytes are alive after step `k`, which is ready, has run.

        The steps that it makes ready are included if that makes the number less.
        """
        left: dict[int, int] = {}
        born: set[int] = set()
        gone: dict[int, int] = {}
        total = best = 0
        for depth in range(self.depth):
            for key in self.touched[k]:
                size = self.size[key]
                if not size:
                    continue
                if key not in self.alive and key not in born:
                    born.add(key)
                    total += size
                left[key] = left.get(key, self.left[key]) - 1
                if not left[key]:
                    total -= size
            best = total if depth == 0 else min(best, total)
            if best < 0:
                return best
            following = -1
            for s in self.after[k]:
                gone[s] = gone.get(s, self.left_waits[s]) - 1
                if not gone[s] and following < 0:
                    following = s
            if following < 0:
                return best
            k = following
        return best
