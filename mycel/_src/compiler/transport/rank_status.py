"""A rank's status for its launcher: the rank it waits for, its line in the program, its error.

A launcher gives each rank the end of a pipe (`PIPE` names its descriptor). A thread of the rank
writes a line of JSON there whenever something has changed, and every `BEAT` seconds at least. The
line says what the main thread waits for and since when, and which line of the program it has come
to. A rank that fails writes the reason before anything else ends. Without a launcher nothing is
written, and errors name the same facts.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from mycel._src.foundation.package import FOLDER
from mycel._src.foundation.python_runtime.code_origins import is_installed, is_standard
from mycel._src.foundation.system import locks

__all__ = [
    "BEAT",
    "PIPE",
    "alone",
    "also",
    "begin",
    "beside",
    "came",
    "end_with_parent",
    "failed",
    "joined",
    "launched",
    "place_of",
    "reason",
    "waiting",
]

PIPE = "MYCEL_WATCH"
BEAT = 1.0
_LOOK = 0.2
_LONGEST = 3000  # lines of a pipe are whole up to 4096 bytes
_PACKAGE = FOLDER + os.sep


class Waits(NamedTuple):
    """What a thread waits for: what it does, the rank, or those `among` which it is, and since."""

    what: str
    rank: int
    since: float
    among: tuple[int, ...]


class _State:
    """The status of this rank: what its main thread waits for, and whom to report it to.

    `behind` is what the thread of exchanges waits for, and `joined` whether the main thread waits
    for that thread.
    """

    waits: Waits | None = None
    behind: Waits | None = None
    joined: bool = False
    begun: bool = False
    why: str = ""
    pipe: int | None = None
    look: Callable[[dict[str, Any]], None] | None = None
    got: int = 0
    over: bool = False


_state = _State()
_thread = threading.local()
_telling = locks.lock()


@contextmanager
def waiting(what: str, rank: int, among: Sequence[int] = ()) -> Iterator[None]:
    """Record that this rank waits in `what` for `rank`; or, where it cannot tell, for any rank in
    `among`.
    """
    name = "behind" if getattr(_thread, "beside", False) else "waits"
    before = getattr(_state, name)
    setattr(_state, name, Waits(what, rank, time.monotonic(), tuple(among)))
    try:
        yield
    finally:
        setattr(_state, name, before)


@contextmanager
def beside() -> Iterator[None]:
    """Mark this thread as one of exchanges beside the main thread: what it waits for is reported
    only while the main thread waits for it (`joined`).
    """
    _thread.beside = True
    try:
        yield
    finally:
        _thread.beside = False


@contextmanager
def joined() -> Iterator[None]:
    """Record that this thread waits for that of exchanges; of the main thread it is reported."""
    is_main = threading.current_thread() is threading.main_thread()
    before = _state.joined
    if is_main:
        _state.joined = True
    try:
        yield
    finally:
        if is_main:
            _state.joined = before


def waits() -> Waits | None:
    """Return what the main thread waits for, itself or through the thread of exchanges."""
    return _state.waits or (_state.behind if _state.joined else None)


def came(count: int) -> None:
    """Count bytes that have come from other ranks: a slow network is no standstill."""
    _state.got += count


def reason() -> str:
    """Return why this rank ends, as far as it is known: empty at a usual end."""
    return _state.why


def _is_own(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith((_PACKAGE, "<frozen")) or is_standard(name)


def place_of(frame: FrameType | None) -> str:
    """Return the line of the user's program in which a frame is: its file, number and function.

    Where only installed packages are there, it is theirs.
    """
    lines = []
    while frame is not None:
        lines.append((frame, frame.f_lineno))
        frame = frame.f_back
    return _innermost(lines)


def _innermost(lines: list[tuple[FrameType, Any]]) -> str:
    """Return the first line of the user's program, or else of an installed package, or of any.

    Lines of files come before those of code without one, which dataclasses write, too.
    """
    others = [(f, n) for f, n in lines if not _is_own(f)]
    users = [(f, n) for f, n in others if not is_installed(f.f_code.co_filename)]
    files = [(f, n) for f, n in users if not f.f_code.co_filename.startswith("<")]
    return next((_told(f, n) for f, n in (*files, *users, *others, *lines)), "")


def _told(frame: FrameType, line: int | None) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{line} (in {code.co_name})"


def _place_of_error(trace: TracebackType | None) -> str:
    return _innermost(list(traceback.walk_tb(trace))[::-1])


def failed(error: BaseException, trace: TracebackType | None = None) -> None:
    """Record that an error ends this rank, and report it to the launcher and the other ranks."""
    if _state.why:
        return
    where = _place_of_error(trace or error.__traceback__)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _state.why = f"{text} at {where}" if where else text
    code = getattr(error, "code", None)
    _write(
        {
            "failed": text[:_LONGEST],
            "where": where,
            "lost": getattr(error, "lost_rank", None),
            "status": code if isinstance(code, int) and 0 < code < 256 else 1,
        }
    )


def _write(facts: dict[str, Any]) -> None:
    if _state.pipe is None:
        return
    try:
        os.write(_state.pipe, json.dumps(facts).encode() + b"\n")
    except BlockingIOError:
        return  # the launcher reads slowly, and the next line comes soon
    except BrokenPipeError:
        os.kill(os.getpid(), signal.SIGKILL)  # the launcher is gone, and nobody would end this rank


def end_with_parent() -> None:
    """Have this process end when the process that started it does, where the system can (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def begin() -> None:
    """Begin to report to a launcher; errors of the main thread are reported also without one."""
    if _state.begun:
        return
    _state.begun = True
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        failed(error, trace)
        before(kind, error, trace)

    sys.excepthook = hook
    threading.excepthook = _of_thread(threading.excepthook)
    given = os.environ.pop(PIPE, "")
    if given:
        _state.pipe = int(given)
        os.set_blocking(_state.pipe, False)
        os.set_inheritable(_state.pipe, False)
        threading.Thread(target=_tell, name="mycel-watch", daemon=True).start()
        atexit.register(_leave)


def _leave() -> None:
    """Report that this rank waits for nobody any more: while Python ends, which may take long, the
    reporting thread does not run, and its last report would stand.
    """
    with _telling:
        _state.over = True
        _write({"where": "", "waits": None, "got": _state.got})


def _of_thread(before: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a hook that reports the error by which a thread has ended; the rank goes on."""

    def hook(arguments: Any) -> None:
        error, thread = arguments.exc_value, arguments.thread
        if error is not None and _state.pipe is not None:
            name = "" if thread is None else thread.name
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            where = _place_of_error(arguments.exc_traceback)
            _write({"thread": name[:100], "error": text[: _LONGEST // 2], "where": where[: _LONGEST // 2]})
        before(arguments)

    return hook


def launched() -> bool:
    """Return whether this rank reports to a launcher."""
    return _state.pipe is not None


def also(look: Callable[[dict[str, Any]], None]) -> None:
    """Report to the function `look` where there is no launcher."""
    fresh = _state.look is None and _state.pipe is None
    _state.look = look
    if fresh:
        threading.Thread(target=_tell, name="mycel-watch", daemon=True).start()


def alone() -> None:
    """Report that this rank leaves, and from then on to a launcher only."""
    look, _state.look = _state.look, None
    if look is not None:
        look({"where": "", "waits": None, "got": _state.got, "among": (), "left": True})


@locks.in_child
def _forget() -> None:
    _state.look = None
    if _state.pipe is not None:
        with suppress(OSError):
            os.close(_state.pipe)
        _state.pipe = None


def _tell() -> None:
    main, told, last = threading.main_thread().ident, "", 0.0
    while _state.pipe is not None or _state.look is not None:
        waiting_for, now = waits(), time.monotonic()
        where = place_of(sys._current_frames().get(main or 0))
        facts: dict[str, Any] = {
            "where": where[:_LONGEST],
            "waits": None if waiting_for is None else [waiting_for.what, waiting_for.rank],
            "got": _state.got,
        }
        if waiting_for is not None:
            facts["since"] = round(now - waiting_for.since, 1)
        look = _state.look
        if look is not None:
            look({**facts, "among": () if waiting_for is None else waiting_for.among})
        key = f"{where}{waiting_for}{_state.got}"
        if key != told or now - last >= BEAT:
            told, last = key, now
            with _telling:
                if _state.over:
                    return
                _write(facts)
        time.sleep(_LOOK)
