"""Multi-process XLA: ranks that join jax's distributed runtime, with addresses by our transport.

`meet` is called by all ranks when they have met each other, before jax has looked for devices.
Rank 0 serves jax's coordination, at an address that the transport tells the others, and jax carries
collectives on the processor by gloo. The devices of all are numbered by process: with k devices
each, those of rank r are k r to k r + k - 1. Programs on one device stay on the process's own.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import numpy as np

from mycel._src.compiler.transport.current_transport import transport
from mycel._src.compiler.transport.rendezvous import machine
from mycel._src.engines.xla import binding
from mycel._src.foundation.log import logger

__all__ = ["are_met", "every", "gathered", "meet", "own"]

_SHUTDOWN = 7 * 24 * 3600  # how many seconds a rank that has ended waits for those that go on
_met: list[int] = []  # the number of processes


def meet(address: str) -> None:
    """Have the devices of all ranks work together from now on; every rank calls this.

    `address` is this machine's, as the others reach it. Where jax has started in some rank before,
    or it computes on GPUs, ranks keep to their own devices, which is said. Raises RuntimeError
    where the ranks have different numbers of devices, or jax cannot meet.
    """
    here = transport()
    if _met == [here.size]:
        return
    free = _free_port(address) if here.rank == 0 else 0
    facts = {"started": binding.is_started(), "gpu": binding.target() != "CPU", "at": machine(), "port": free}
    told = np.frombuffer(json.dumps({**facts, "address": address}).encode(), np.uint8)
    all_facts = [json.loads(bytes(a)) for a in here.all_gather_list(told, range(here.size))]
    for what, why in (("started", "jax had started before they met"), ("gpu", "it computes on GPUs")):
        if any(f[what] for f in all_facts):
            logger.warning("the XLA engine runs programs on the devices of each rank by itself, as %s", why)
            return
    near = bool(all_facts[0]["at"]) and len({f["at"] for f in all_facts}) == 1
    _initialize("127.0.0.1" if near else all_facts[0]["address"], all_facts[0]["port"])
    _met[:] = [here.size]
    counts = [int(a[0]) for a in here.all_gather_list(np.array([len(binding.devices())]), range(here.size))]
    if len(set(counts)) != 1:
        raise RuntimeError(f"the ranks have {counts} devices; give XLA_FLAGS the same number for all of them")


def _free_port(address: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as asked:
        asked.bind(("", 0))
        return int(asked.getsockname()[1])


def _initialize(host: str, port: int) -> None:
    here = transport()
    # With fewer threads than devices, those that wait in a collective leave none for others.
    os.environ.setdefault("NPROC", str(max(16, os.cpu_count() or 1)))
    binding.jax.config.update("jax_cpu_collectives_implementation", "gloo")
    binding.jax.config.update("jax_enable_preemption_service", False)  # which would keep SIGTERM from ending a rank
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    binding.jax.distributed.initialize(
        place,
        here.size,
        here.rank,
        cluster_detection_method="deactivate",
        coordinator_bind_address=place,
        shutdown_timeout_seconds=_SHUTDOWN,
    )


def are_met() -> bool:
    """Return whether the devices of the ranks of the transport in force work together."""
    return bool(_met) and transport().size == _met[0]


def every() -> list[Any]:
    """Return the devices of all ranks in their order; those of this process where it is alone."""
    if not are_met():
        return binding.devices()
    found = binding.jax.devices(binding.kind())
    return sorted(found, key=lambda d: (d.process_index, d.id))


def own() -> range:
    """Return the numbers of this process's devices among those of all."""
    count = len(binding.devices())
    first = transport().rank * count if are_met() else 0
    return range(first, first + count)


def gathered(rows: dict[int, np.ndarray[Any, Any]], ranks: list[int]) -> dict[int, np.ndarray[Any, Any]]:
    """Return the values of all `ranks`, which are devices, given those of this process's; every
    process calls this.
    """
    if len(rows) == len(ranks):
        return rows
    here = transport()
    parts = here.all_gather_list(np.stack([rows[r] for r in sorted(rows)]), range(here.size))
    return dict(zip(sorted(ranks), np.concatenate(parts)))
