"""Selects and connects this rank's transport, by its environment.

MYCEL_MEETING is for how many seconds ranks wait for all to come (300), MYCEL_TIMEOUT for how many a
rank waits for another one later (without end), and MYCEL_STANDSTILL for how many one may stand
still where no launcher watches it (8).
"""

from __future__ import annotations

import os
from datetime import timedelta

from mycel._src.compiler.transport import addresses, rank_status, startup_watchdog
from mycel._src.compiler.transport.base import Transport
from mycel._src.compiler.transport.rank_environment import World
from mycel._src.compiler.transport.tcp_store import TCPStore

__all__ = ["connect", "serve"]

SECONDS = 300.0
_STANDSTILL = 8.0
_SOON = timedelta(seconds=10)


def seconds() -> float | None:
    """Return how long a rank waits for another one, from MYCEL_TIMEOUT; None is without end."""
    return _number("MYCEL_TIMEOUT")


def _number(name: str) -> float | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if limit < 0:
        raise RuntimeError(f"communication.init: {name} is {text!r}; it is a number of seconds, 0 without end")
    return limit or None


def _standstill() -> float:
    given = os.environ.get("MYCEL_STANDSTILL", "").strip()
    return (_number("MYCEL_STANDSTILL") or 0.0) if given else _STANDSTILL


def _watched(way: Transport) -> Transport:
    """Have the ranks of each machine watch each other where no launcher does it."""
    if not rank_status.launched():
        from mycel._src.compiler.transport import peer_watchdog
        from mycel._src.compiler.transport.rendezvous import machine

        peer_watchdog.begin(way, machine(), _standstill())
    return way


def connect(found: World, given: TCPStore | None = None, name: str = "ranks") -> tuple[Transport, TCPStore | None]:
    """Return the transport of this rank of several, and the store that it keeps open, if any.

    The ranks meet at the `given` store, or one at the place that `found` says, under keys with the
    prefix `name`. Raises RuntimeError where the others do not come, or MPI is asked for and is
    missing.
    """
    limit = seconds()
    longest = _number("MYCEL_MEETING") or limit or SECONDS
    if not rank_status.launched():
        startup_watchdog.await_others(found, _standstill(), longest)
    if found.kind == "mpi" and given is None:
        from mycel._src.compiler.transport.mpi import Mpi

        return _watched(Mpi()), None
    from mycel._src.compiler.transport.sockets import Sockets

    wait, rank = timedelta(seconds=longest), found.rank
    store = given or _store(found, wait)
    if rank is None:
        rank = store.add(f"{name}/given", 1) - 1
        if rank >= found.size:
            raise RuntimeError(f"communication.init: more than {found.size} ranks have come to {found.host}")
    made = Sockets(rank, found.size, store, limit, name)
    made.barrier(range(found.size))  # until then some may still need the store of rank 0
    return _watched(made), None if store is given else store


def _store(found: World, wait: timedelta) -> TCPStore:
    """Return the store where ranks meet, which rank 0 serves unless another process does.

    Where two processes of this machine have one number, the later of them may find that all have
    met and ended without it; it says so soon.
    """
    if not found.served and found.rank == 0:
        try:
            place = addresses.chosen() or addresses.listening(found.host)
            return TCPStore(place, found.port, is_master=True, timeout=wait)
        except RuntimeError as error:
            raise RuntimeError(f"{error}; or end the process that has RANK_ID 0, too, if there is one") from None
    if found.served or not startup_watchdog.twins():
        return TCPStore(found.host, found.port, timeout=wait)
    try:
        store = TCPStore(found.host, found.port, timeout=min(wait, _SOON))
    except RuntimeError as error:
        raise RuntimeError(
            f"communication.init: rank {found.rank} has come twice: process {startup_watchdog.twins()[0]} had this "
            f"number before process {os.getpid()}; give each process a RANK_ID of its own ({error})"
        ) from None
    store.timeout = wait
    return store


def serve(found: World) -> None:
    """Serve the store until all ranks have ended, as MindSpore's scheduler does.

    Raises RuntimeError where the port is in use.
    """
    with TCPStore(found.host, found.port, is_master=True, wait_for_workers=False) as store:
        store.await_departures(found.size + 1)
