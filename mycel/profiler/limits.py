"""The limits of this machine: memory bandwidth by size and number of threads, arithmetic, and the
cost of starting a kernel. They are measured once and kept in the cache folder.

* Bandwidth: ``c = a + s * b`` over float32 arrays that together have each size of `SIZES`, by the
  engine's own kernel: three streams, counted once each. Small sizes lie in caches, the largest in
  memory.
* Arithmetic: a float32 matrix product of `DENSE` x `DENSE`. Where the engine leaves it to the
  reference, exponentials in a kernel, by the operations that they count.
* Overhead: an addition of few elements on one thread, and the additional time to wake all threads
  and to wait for them.

Each is the best of several tries of some milliseconds. Values between the measured sizes and
numbers of threads are interpolated (in the logarithm of the size).
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims.base import constant
from mycel._src.engines import buffers
from mycel._src.engines.select import engine
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.log import logger

__all__ = ["Machine", "machine", "measure"]

SIZES = (96 << 10, 768 << 10, 6 << 20, 96 << 20)
DENSE = 512
_TRIES = 15
_LEAST = 0.002
_FORMAT = 1


@dataclass(frozen=True)
class Machine:
    """The measured limits of a machine.

    Args:
        name (str): Its name.
        threads (int): The number of threads.
        sizes (tuple[int, ...]): Sizes in bytes.
        bandwidth (dict[int, tuple[float, ...]]): Bytes a second for each of `sizes`, by number of
            threads.
        peak (dict[int, float]): Floating-point operations a second, by number of threads.
        overhead (float): The fixed cost in nanoseconds of a step on one thread. Default: 0.0.
        shared_overhead (float): The same of a step that all threads share. Default: 0.0.
        details (dict[str, Any]): What else is known of it.
    """

    name: str
    threads: int
    sizes: tuple[int, ...]
    bandwidth: dict[int, tuple[float, ...]]
    peak: dict[int, float]
    overhead: float = 0.0
    shared_overhead: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def bytes_per_second(self, size: int, threads: int) -> float:
        """Return the bandwidth for a kernel that touches `size` bytes on `threads` threads.

        >>> m = Machine("example", 2, (1000, 100_000), {1: (40.0, 10.0), 2: (80.0, 20.0)},
        ...             {1: 1.0, 2: 2.0})
        >>> round(m.bytes_per_second(10_000, 1), 6), m.bytes_per_second(10**9, 2)
        (25.0, 20.0)
        """
        row = self.bandwidth[self._known(threads, self.bandwidth)]
        k = bisect.bisect_left(self.sizes, max(size, 1))
        if k == 0 or k == len(self.sizes):
            return row[min(k, len(self.sizes) - 1)]
        low, high = math.log(self.sizes[k - 1]), math.log(self.sizes[k])
        part = (math.log(size) - low) / (high - low)
        return row[k - 1] + part * (row[k] - row[k - 1])

    def flops_per_second(self, threads: int) -> float:
        """Return the floating-point operations a second of `threads` threads."""
        return self.peak[self._known(threads, self.peak)]

    def least_seconds(self, size: int, flops: int, threads: int) -> float:
        """Return the least time of a kernel that moves `size` bytes and does `flops` operations on
        `threads` threads.
        """
        return max(size / self.bytes_per_second(size, threads), flops / self.flops_per_second(threads))

    @staticmethod
    def _known(threads: int, table: dict[int, Any]) -> int:
        found = [t for t in table if t >= threads]
        return min(found) if found else max(table)

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Machine:
        """Return the machine that `as_json` wrote.

        Raises ValueError, KeyError or TypeError for another text.
        """
        data = json.loads(text)
        data["sizes"] = tuple(data["sizes"])
        data["bandwidth"] = {int(t): tuple(row) for t, row in data["bandwidth"].items()}
        data["peak"] = {int(t): rate for t, rate in data["peak"].items()}
        return cls(**data)


def machine(again: bool = False) -> Machine:
    """Return this machine's limits.

    They are read from the cache folder; if they are not there, or with `again`, they are measured,
    which takes a second or two.
    """
    name = _name()
    kept = None if again else code_cache.read_note(name)
    if kept is not None:
        try:
            return Machine.from_json(kept)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.info("the kept measurement %s cannot be used (%s); the machine is measured anew", name, error)
    elif not again:
        logger.info(
            "the machine's bandwidth and arithmetic are measured now; they are kept as %s in the cache folder", name
        )
    found = measure()
    code_cache.write_note(name, found.as_json())
    return found


def _name() -> str:
    identity = f"{_cpu()}|{engine().identity}|{engine().default_threads()}|{_FORMAT}"
    return f"machine-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


def _cpu() -> str:
    table = Path("/proc/cpuinfo")
    if table.is_file():
        for line in table.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def measure(sizes: tuple[int, ...] = SIZES, dense: int = DENSE) -> Machine:
    """Measure this machine on 1, 2, 4, ... and all threads; on all if the engine has no choice."""
    most = engine().default_threads()
    counts = _counts(most)
    bandwidth: dict[int, tuple[float, ...]] = {}
    peak: dict[int, float] = {}
    with _threads() as use:
        for count in counts:
            use(count)
            # More threads can do what fewer can.
            before = bandwidth[max(bandwidth)] if bandwidth else (0.0,) * len(sizes)
            bandwidth[count] = tuple([max(_bandwidth(size), old) for size, old in zip(sizes, before)])
            peak[count] = max(_arithmetic(dense), *peak.values(), 0.0)
        use(counts[0])
        overhead = _overhead()
        use(most)
        shared = overhead + _sharing(most)
    return Machine(_cpu(), most, tuple(sizes), bandwidth, peak, 1e9 * overhead, 1e9 * max(shared, overhead))


def _counts(most: int) -> list[int]:
    try:
        with _threads() as use:
            use(1)
    except ValueError:
        return [most]
    return sorted({*(1 << k for k in range(most.bit_length()) if 1 << k <= most), most})


@contextmanager
def _threads() -> Iterator[Callable[[int], None]]:
    before = engine().threads
    try:
        yield engine().set_threads
    finally:
        engine().set_threads(before)


def _best(run: Callable[[], Any]) -> float:
    """Return the shortest time of a call."""
    run()
    best, repeat = math.inf, 1
    tries = 0
    while tries < _TRIES:
        begin = time.perf_counter()
        for _ in range(repeat):
            run()
        spent = time.perf_counter() - begin
        if spent < _LEAST and repeat < 1 << 16:
            repeat *= 2 if spent > _LEAST / 4 else 4
            continue
        best = min(best, spent / repeat)
        tries += 1
    return best


def _program(graph: Graph, aliases: dict[int, int] | None = None) -> Callable[[], Any]:
    entry = engine().compile(graph, aliases)
    given = [buffers.from_array(np.full(n.type.shape, 0.5, np.float32)) for n in graph.inputs]
    return lambda: entry(*given)


def _bandwidth(size: int) -> float:
    count = size // 12
    kind = tensor_type((count,), float32)
    a, b, c = (input_node(kind, name) for name in "abc")
    # The third array is written over, so that no page is touched for the first time.
    run = _program(Graph([a, b, c], [a + b * 0.25], "triad"), {0: 2})
    return 12 * count / _best(run)


def _arithmetic(side: int) -> float:
    kind = tensor_type((side, side), float32)
    a, b = input_node(kind, "a"), input_node(kind, "b")
    product = Graph([a, b], [matrix_product.matmul(a, b)], "product")
    if not engine().host_steps(product):
        return 2 * side**3 / _best(_program(product))
    kind = tensor_type((1 << 14,), float32)
    a, c = input_node(kind, "a"), input_node(kind, "c")
    value = a
    for _ in range(4):
        value = E.exp(value * constant(-0.5, float32))
    graph = Graph([a, c], [value], "exponentials")
    return engine().cost(graph, {0: 1}).flops / _best(_program(graph, {0: 1}))


def _overhead() -> float:
    """Return the shortest time of a small addition's only step, in seconds, from a trace."""
    kind = tensor_type((16,), float32)
    a, c = input_node(kind, "a"), input_node(kind, "c")
    run = _program(Graph([a, c], [a + a], "short"), {0: 1})
    with engine().tracing(1 << 12) as trace:
        for _ in range(400):
            run()
    return min(e.end - e.begin for e in trace.events) / 1e9


def _sharing(count: int) -> float:
    """Return the seconds that it takes to wake `count` threads without giving them work."""
    many, one = engine().sharing(count), engine().sharing(1)
    if many is None or one is None or count < 2:
        return 0.0
    return max(_best(many) - _best(one), 0.0)
