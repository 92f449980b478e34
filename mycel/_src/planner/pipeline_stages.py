"""Pipeline partitioning and schedules: where to cut blocks into stages; GPipe, 1F1B, interleaved.

*Cuts.* Blocks are in the order of the graph, each with its seconds and bytes, and `moved[i]` are
the seconds of passing on what block i gives. The slowest stage decides the rate, so the cut with
the least maximum of compute and communication is wanted, and of those the one with the least sum of
what is passed on. Dynamic programming over the end and the number of stages finds it: the best cut
of the first i blocks into k stages extends the best of fewer blocks into k - 1.

*Schedules.* Each device has a list of its work: forward or backward of a microbatch through a
chunk, where device d has the chunks d, d + p, d + 2p, ... of `devices * chunks` in all. GPipe does
all forwards first. 1F1B begins with as many forwards as stages lie behind it and then alternates,
so that it keeps no more microbatches than stages (Harlap et al., 2018). The interleaved one does so
for several chunks in groups of as many microbatches as devices (Narayanan et al., 2021).
`played` runs a schedule: work begins when its device is free and what it needs is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycel._src.foundation import arguments

__all__ = ["SCHEDULES", "Cut", "Played", "Work", "cut", "played", "schedule"]

SCHEDULES = ("gpipe", "1f1b", "interleaved")


@dataclass(frozen=True)
class Cut:
    """A cut into stages: the first block of each, the seconds of the slowest, those of messages."""

    starts: tuple[int, ...]
    slowest: float
    moved: float


def cut(
    seconds: Sequence[float],
    stages: int,
    moved: Sequence[float] | None = None,
    held: Sequence[float] | None = None,
    limit: float | None = None,
) -> Cut:
    """Return the best cut of a sequence of blocks into stages, none of them empty.

    `seconds` and `held` have what each block takes and holds, `moved` the seconds of passing on its
    result, which both stages at a cut spend. No stage may hold more than `limit` bytes. Raises
    ValueError where there are fewer blocks than `stages`, or nothing is within the limit.

    >>> cut([1, 1, 4, 1, 1, 2], 3)
    Cut(starts=(0, 2, 3), slowest=4.0, moved=0.0)
    """
    blocks = len(seconds)
    arguments.integer("cut", "stages", stages, 1)
    if blocks < stages:
        raise ValueError(f"cut: {blocks} blocks cannot be cut into {stages} stages that all have one")
    moved = [0.0] * blocks if moved is None else moved
    held = [0.0] * blocks if held is None else held
    total, kept = [0.0], [0.0]
    for s, h in zip(seconds, held):
        total.append(total[-1] + s)
        kept.append(kept[-1] + h)
    # best[i]: of the first i blocks in the present number of stages, and where the last begins.
    best: list[tuple[float, float, tuple[int, ...]] | None] = [None] * (blocks + 1)
    best[0] = (0.0, 0.0, ())
    for k in range(1, stages + 1):
        after: list[tuple[float, float, tuple[int, ...]] | None] = [None] * (blocks + 1)
        for end in range(k, blocks - (stages - k) + 1):
            for start in range(k - 1, end):
                before = best[start]
                if before is None or limit is not None and kept[end] - kept[start] > limit:
                    continue
                own = total[end] - total[start]
                own += (moved[start - 1] if start else 0.0) + (moved[end - 1] if end < blocks else 0.0)
                passed = before[1] + (moved[end - 1] if end < blocks else 0.0)
                found = (max(before[0], own), passed, (*before[2], start))
                if after[end] is None or found < after[end]:  # type: ignore[operator]
                    after[end] = found
        best = after
    result = best[blocks]
    if result is None:
        raise ValueError(f"cut: no cut of {blocks} blocks into {stages} stages has at most {limit} bytes in each")
    return Cut(result[2], float(result[0]), float(result[1]))


@dataclass(frozen=True)
class Work:
    """One microbatch through one chunk of the network: forward, or backward."""

    chunk: int
    microbatch: int
    backward: bool = False


def schedule(kind: str, devices: int, microbatches: int, chunks: int = 1) -> list[list[Work]]:
    """Return what each device of a pipeline does, in its order.

    `kind` is one of `SCHEDULES`; `chunks` is how many stages each device has, more than 1 for the
    interleaved one only, whose microbatches are a multiple of the devices. Raises ValueError for
    other numbers.

    >>> [str(w.microbatch) + "fb"[w.backward] for w in schedule("1f1b", 2, 3)[0]]
    ['0f', '1f', '0b', '2f', '1b', '2b']
    """
    arguments.one_of("schedule", "kind", kind, SCHEDULES)
    for name, value in (("devices", devices), ("microbatches", microbatches), ("chunks", chunks)):
        arguments.integer("schedule", name, value, 1)
    if kind != "interleaved":
        if chunks != 1:
            raise ValueError(f"schedule: {kind} has one stage a device, not {chunks}; use 'interleaved'")
        ahead = [microbatches if kind == "gpipe" else min(devices - d, microbatches) for d in range(devices)]
        return [_alternating(d, 1, devices, microbatches, ahead[d], kind == "gpipe") for d in range(devices)]
    if microbatches % devices:
        raise ValueError(
            f"schedule: interleaved stages need a multiple of {devices} microbatches, one for each device, "
            f"not {microbatches}"
        )
    count = microbatches * chunks
    result = []
    for d in range(devices):
        ahead_of = min(2 * (devices - d - 1) + (chunks - 1) * devices + 1, count) if chunks > 1 else devices - d
        result.append(_alternating(d, chunks, devices, microbatches, min(ahead_of, count), False))
    return result


def _alternating(d: int, chunks: int, devices: int, microbatches: int, ahead: int, last_first: bool) -> list[Work]:
    """Return `ahead` forwards, then a backward and a forward in turn, then the other backwards."""
    count = microbatches * chunks

    def at(k: int, backward: bool) -> Work:
        group, inside = divmod(k, devices * chunks)
        own, m = divmod(inside, devices) if chunks > 1 else (0, inside)
        own = chunks - 1 - own if backward else own
        return Work(own * devices + d, group * devices + m if chunks > 1 else k, backward)

    forwards = [at(k, False) for k in range(count)]
    backwards = [at(k, True) for k in range(count)]
    if last_first:
        return [*forwards, *reversed(backwards)]
    result = forwards[:ahead]
    for k in range(count - ahead):
        result += [backwards[k], forwards[ahead + k]]
    return result + backwards[count - ahead :]


@dataclass(frozen=True)
class Played:
    """A schedule in time: seconds in all, the share of idle time, and microbatches kept.

    `kept` has, for each device, the most microbatches whose forward is done and whose backward is
    not. `times` has for each device the beginning and the end of each of its works.
    """

    seconds: float
    bubble: float
    kept: tuple[int, ...]
    times: tuple[tuple[tuple[float, float], ...], ...]


def played(
    plan: Sequence[Sequence[Work]],
    forward: Sequence[float],
    backward: Sequence[float],
    moved: Sequence[float] = (),
) -> Played:
    """Run a schedule and return its times.

    `plan` has the works of each device, `forward` and `backward` the seconds of a microbatch
    through each chunk, `moved` those of a message from each chunk to the next. Raises ValueError
    for a plan whose works wait for each other.

    >>> played(schedule("gpipe", 2, 3), [1, 1], [1, 1]).bubble
    0.25
    """
    chunks = len(forward)
    passing = list(moved) or [0.0] * chunks
    ends: dict[Work, float] = {}
    free = [0.0] * len(plan)
    at = [0] * len(plan)
    times: list[list[tuple[float, float]]] = [[] for _ in plan]
    moving = True
    while moving:
        moving = False
        for d, works in enumerate(plan):
            while at[d] < len(works):
                ready = _ready(works[at[d]], ends, chunks, passing)
                if ready is None:
                    break
                work = works[at[d]]
                start = max(free[d], ready)
                free[d] = ends[work] = start + (backward if work.backward else forward)[work.chunk]
                times[d].append((start, free[d]))
                at[d] += 1
                moving = True
    stuck = [(d, works[a]) for d, (works, a) in enumerate(zip(plan, at)) if a < len(works)]
    if stuck:
        raise ValueError(f"played: device {stuck[0][0]} waits for ever in front of {stuck[0][1]}")
    seconds = max(free, default=0.0)
    busy = sum(e - s for one in times for s, e in one)
    idle = 1 - busy / (seconds * len(plan)) if seconds else 0.0
    return Played(seconds, idle, tuple(_kept(works) for works in plan), tuple(tuple(t) for t in times))


def _ready(work: Work, ends: dict[Work, float], chunks: int, passing: Sequence[float]) -> float | None:
    """Return when the operands of a work are there, None where it is not known yet."""
    needs: list[tuple[Work, float]] = []
    if not work.backward and work.chunk:
        needs.append((Work(work.chunk - 1, work.microbatch), passing[work.chunk - 1]))
    if work.backward:
        needs.append((Work(work.chunk, work.microbatch), 0.0))
        if work.chunk < chunks - 1:
            needs.append((Work(work.chunk + 1, work.microbatch, True), passing[work.chunk]))
    if any(w not in ends for w, _ in needs):
        return None
    return max((ends[w] + s for w, s in needs), default=0.0)


def _kept(works: Sequence[Work]) -> int:
    most = now = 0
    for work in works:
        now += -1 if work.backward else 1
        most = max(most, now)
    return most
