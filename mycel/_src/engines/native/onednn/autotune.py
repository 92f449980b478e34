"""Autotuning: measures the ways to compute a product or a convolution, and chooses the fastest.

It is on with `set_context(auto_tune_mode="GA")` or MYCEL_AUTOTUNE=1. The builders of plans know
several ways to compute an operation and have rules that choose one. With tuning, the first plan of
an operation is made in every way, each is run on scratch memory, and the fastest is taken if it
beats the rule's by more than `MARGIN`, twice: the measurement is repeated in other memory, to
exclude noise.

The choice is kept in memory, and in the cache of compiled code under a digest of all that it
depends on: the operation with its shapes, strides, element types and window, the number of threads,
the processor, and the version of the library and the instructions that it may use. So it is made
once; later processes use it without a measurement. It is made anew where a file is damaged, or
names an unknown way. Results of the ways differ in rounding only.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.native.onednn import c_interface as dnnl
from mycel._src.engines.native.onednn.plan import ALIGNMENT, Plan, Product, Unsupported
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config
from mycel._src.foundation.system import locks

__all__ = ["RULE", "chosen", "is_on", "measure", "quickest", "setting"]

RULE = "rule"
# What an alternative has to save of the time of the rule's way.
MARGIN = 0.07
# The seconds and the runs that are spent on each way at most.
SECONDS, RUNS = 0.05, 20
# A way that took so many times the least at first is not run again.
HOPELESS = 1.5
# Bytes that are moderate numbers in every element type.
FILL = 0x3C
_FORMAT = "1"
_lock = locks.reentrant()
# By number of threads and work: the way that was taken.
chosen = Remembered[tuple[int, Any], str]("ways chosen by trial", MANY)


def is_on() -> bool:
    """Return whether plans are chosen by measurement."""
    return bool(config._context["auto_tune_mode"] != "NO_TUNE")


def setting() -> str:
    """Return the setting as a part of the keys of stored programs."""
    return f"tuned {_FORMAT}" if is_on() else "by rule"


def quickest(work: tuple[Any, ...], ways: Sequence[str], build: Callable[[str], Plan]) -> Plan:
    """Return the plan of `work`: by the rule or, with tuning, in the fastest way.

    `build` makes a plan in one of `ways` or by `RULE`, and raises Unsupported where there is none.
    `work` is hashable, and its `repr` describes it completely.
    """
    if not is_on():
        return build(RULE)
    with _lock:
        key = (dnnl.max_threads(), work)
        way = chosen.get(key)
        if way is not None:
            return build(way)
        digest = _digest(work, key[0])
        stored = code_cache.read(_kind(), digest) if code_cache.is_on() else None
        way = "" if stored is None else stored.decode("ascii", "replace")
        plan = _possible(build, way) if way in (RULE, *ways) else None
        if plan is None:
            way, plan = _tried(work, ways, build)
            if code_cache.is_on():
                code_cache.write(_kind(), digest, way.encode())
        chosen.enter(key, way)
        return plan


def _kind() -> str:
    return f"choices-{host().identity}"


def _digest(work: tuple[Any, ...], threads: int) -> str:
    limits = [os.environ.get(name, "") for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")]
    return hashlib.sha256("\n".join([_FORMAT, repr(work), str(threads), dnnl.version(), *limits]).encode()).hexdigest()


def _possible(build: Callable[[str], Plan], way: str) -> Plan | None:
    try:
        return build(way)
    except Unsupported as refusal:
        logger.debug("not tried: %s", refusal)
        return None


def _tried(work: tuple[Any, ...], ways: Sequence[str], build: Callable[[str], Plan]) -> tuple[str, Plan]:
    """Return the fastest way, and its plan."""
    plans = {RULE: build(RULE)}
    alike = {_form(plans[RULE])}
    for way in ways:
        plan = _possible(build, way)
        if plan is not None and _form(plan) not in alike:
            alike.add(_form(plan))
            plans[way] = plan
    if len(plans) == 1:
        return RULE, plans[RULE]
    times = dict(zip(plans, measure(list(plans.values()))))
    best = min(times, key=times.__getitem__)
    if times[best] > (1 - MARGIN) * times[RULE]:
        best = RULE
    elif best != RULE:
        # Once more, in memory elsewhere: what was luck does not come again.
        usual, again = measure([plans[RULE], plans[best]])
        if again > (1 - MARGIN) * usual:
            best = RULE
    logger.info("%s: took %r of %s", work[0], best, {way: f"{1e6 * t:.0f} us" for way, t in times.items()})
    return best, plans[best]


def _form(plan: Plan) -> Any:
    """Return a value that differs between different plans of the same work."""
    return tuple([c if isinstance(c, Product) else c.description for c in plan.calls]), tuple(plan.temporaries.items())


def measure(plans: Sequence[Plan]) -> list[float]:
    """Return the seconds that each of some plans takes, the least of several runs in turn.

    All plans have the same buffers.
    """
    # All work on the same memory, as where it lies makes a difference.
    sizes: dict[str, int] = {}
    for plan in plans:
        for name, size in (*((name, o.span) for name, o in plan.operands.items()), *plan.temporaries.items()):
            sizes[name] = max(size, sizes.get(name, 0))
    memory = {name: _scratch(size) for name, size in sizes.items()}
    runs = [_runner(plan, memory) for plan in plans]
    least = [min(run(), run()) for run in runs]
    near = [k for k, spent in enumerate(least) if spent <= HOPELESS * min(least)]
    for _ in range(max(3, min(RUNS, int(SECONDS * len(near) / sum(least[k] for k in near))))):
        for k in near:
            least[k] = min(least[k], runs[k]())
    return least


def _scratch(size: int) -> np.ndarray[Any, Any]:
    whole = np.full(size + ALIGNMENT, FILL, np.uint8)
    skipped = -whole.ctypes.data % ALIGNMENT
    return whole[skipped : skipped + size]


def _runner(plan: Plan, memory: dict[str, np.ndarray[Any, Any]]) -> Callable[[], float]:
    """Return a function that runs a plan once and returns the seconds it took."""
    own, library = plan.copy(), dnnl.library()
    calls: list[Callable[[], int]] = []
    for call in own.calls:
        addresses = [int(memory[name].ctypes.data) for name in call.buffers]
        if isinstance(call, Product):
            calls.append(functools.partial(call.run, addresses))
            continue
        for handle, address in zip(call.memories, addresses):
            library.c.dnnl_memory_set_data_handle(handle, address)
        calls.append(
            functools.partial(
                library.c.dnnl_primitive_execute, call.primitive, library.stream, len(call.memories), call.exec_args
            )
        )

    def run(_held: Any = (own, memory)) -> float:
        begin = time.perf_counter()
        status = 0
        for execute in calls:
            status |= execute()
        library.c.dnnl_stream_wait(library.stream)
        spent = time.perf_counter() - begin
        if status:
            raise RuntimeError(
                f"oneDNN: a trial of {[c.description for c in own.calls]} failed: {dnnl.STATUS.get(status, status)}"
            )
        return spent

    return run
