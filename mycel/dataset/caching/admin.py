"""The command `dataset-cache`: starting, stopping and querying a cache server."""

from __future__ import annotations

import os
import time
from subprocess import DEVNULL

from mycel._src.foundation.system import subprocesses
from mycel.dataset.caching.client import CacheError, Client
from mycel.dataset.caching.protocol import DEFAULT_PORT, Message, address
from mycel.dataset.caching.server import STARTED

_MOST_SECONDS = 60.0


def start(port: int = DEFAULT_PORT, workers: int = 32, spilldir: str | None = None) -> int:
    """Start a server of this user, and return the number of its process.

    * `port`: tells several servers apart.
    * `workers`: how many requests are answered at once.
    * `spilldir`: a folder for rows without room in memory; None: there is none.

    Raises CacheError where one runs at this port, and ValueError for a folder that is none.
    """
    address(port)
    if spilldir is not None and not (os.path.isdir(spilldir) and os.access(spilldir, os.W_OK)):
        raise ValueError(f"dataset-cache: spilldir {spilldir!r} is not a folder that can be written")
    reading, writing = os.pipe()
    try:
        given = (str(port), str(workers), spilldir or "", str(writing))
        code = "from mycel.dataset.caching.server import detached; sys.exit(detached(sys.argv[1:]))"
        process = subprocesses.start(
            subprocesses.python(code, *given, folders=subprocesses.path()),
            pass_fds=(writing,),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as told:
        said = told.read()
    process.wait()
    word, _, number = said.decode().partition(" ")
    if word != STARTED:
        raise CacheError(f"dataset-cache: no server was started on port {port}: {said.decode() or 'it has ended'}")
    return int(number)


def stop(port: int = DEFAULT_PORT) -> None:
    """Stop the server of this port, which gives back all that it holds."""
    client = Client(port)
    client.ask("stop")
    client.close()
    end = time.monotonic() + _MOST_SECONDS
    while is_there(port) and time.monotonic() < end:
        time.sleep(0.01)


def is_there(port: int = DEFAULT_PORT) -> bool:
    """Return whether a server answers at this port."""
    client = Client(port)
    try:
        client.ask("info")
    except CacheError:
        return False
    finally:
        client.close()
    return True


def asked(port: int, what: str, **message: object) -> Message:
    """Return a server's answer to one request."""
    client = Client(port)
    try:
        return client.ask(what, **message)  # type: ignore[arg-type]
    finally:
        client.close()


def generate_session(port: int = DEFAULT_PORT) -> int:
    """Make a session and return its number."""
    return int(asked(port, "generate")["session"])


def destroy_session(session: int, port: int = DEFAULT_PORT) -> None:
    """End a session; the server gives back its memory and files."""
    asked(port, "destroy", session=session)


def list_sessions(port: int = DEFAULT_PORT) -> list[tuple[int, dict[str, int]]]:
    """Return the numbers of the sessions, each with the figures of its rows."""
    return [(int(number), figures) for number, figures in asked(port, "sessions")["sessions"]]


def server_info(port: int = DEFAULT_PORT) -> Message:
    """Return what the server says of itself."""
    return asked(port, "info")
