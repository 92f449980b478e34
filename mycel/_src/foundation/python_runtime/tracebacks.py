"""Traceback filtering: hides this package's frames, so that errors show the user's own lines.

Errors are shortened in two places. Public functions that programs call often are *borders*: where
one was called by a program, an error that leaves it loses the frames of this package
(`at_border`). Python 3.11 and later enter a ``try`` for nothing, so that no call pays for it. What
leaves the package elsewhere is shortened when it is shown: by `sys.excepthook`, by
`threading.excepthook`, and by the shell of IPython (`install`), each of which then does what it did
before.

Frames of the standard library and of NumPy that this package called go with those of the package;
those that the user's functions called stay. Errors that this package had met on the way to the one
that it raises are not shown as its context. An AssertionError of this package is a defect of its
own, and keeps all frames. MYCEL_TRACEBACK=full in the environment keeps them in every error.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from mycel._src.foundation.package import FOLDER

__all__ = ["PACKAGE", "at_border", "border", "install", "is_library", "shows_all", "without_own_frames"]

PACKAGE = FOLDER + os.sep
_DEMO = os.path.join(PACKAGE, "demo") + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__))) + os.sep
_NUMERICAL = (os.path.join(_PACKAGES, "numpy") + os.sep, os.path.join(_PACKAGES, "scipy") + os.sep)
_INSTALLED = (os.path.join(_STANDARD, "site-packages"), os.path.join(_STANDARD, "dist-packages"))
F = TypeVar("F", bound=Callable[..., Any])


def is_library(file: str) -> bool:
    """Return whether a file belongs to this package, its examples excepted."""
    return file.startswith(PACKAGE) and not file.startswith(_DEMO)


def _is_helper(file: str) -> bool:
    """Return whether a file belongs to the libraries that this package calls."""
    if file.startswith(_NUMERICAL) or file.startswith("<frozen "):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def shows_all() -> bool:
    """Return whether tracebacks are asked for with the frames of this package."""
    return os.environ.get("MYCEL_TRACEBACK") == "full"


def _shortened(trace: types.TracebackType | None) -> list[types.TracebackType]:
    """Return the entries of a traceback that are not this package's, outermost first."""
    kept = []
    hidden = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        hidden = is_library(file) or hidden and _is_helper(file)
        if not hidden:
            kept.append(trace)
        trace = trace.tb_next
    return kept


def _is_defect(error: BaseException) -> bool:
    """Return whether an error is an assertion of this package that does not hold."""
    if not isinstance(error, AssertionError) or error.__traceback__ is None:
        return False
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return is_library(trace.tb_frame.f_code.co_filename)


def without_own_frames(error: BaseException) -> BaseException:
    """Return the error, in which and in whose causes the frames of this package are left out."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        at = waiting.pop()
        if at is None or id(at) in seen or _is_defect(at):
            continue
        seen.add(id(at))
        kept = _shortened(at.__traceback__)
        context = at.__context__
        if context is not None and context.__traceback__ is not None and not _shortened(context.__traceback__):
            # It was raised, and caught, inside.
            at.__suppress_context__ = True
        chain: types.TracebackType | None = None
        for entry in reversed(kept):
            chain = types.TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        at.__traceback__ = chain
        waiting += [at.__cause__, None if at.__suppress_context__ else context]
    return error


def at_border(error: BaseException) -> None:
    """Shorten the traceback of an error that leaves a function that a program has called.

    The function calls this where it catches the error, and raises it again by ``raise`` alone,
    which adds no frame.
    """
    if is_library(sys._getframe(2).f_code.co_filename) or isinstance(error, StopIteration) or shows_all():
        return
    own = error.__traceback__
    without_own_frames(error)
    if sys.version_info < (3, 11) and own is not None:
        # `raise` takes the traceback that was caught, whose first frame is the border's.
        own.tb_next = error.__traceback__


def border(function: F) -> F:
    """Return a function in a form from which errors leave without the frames of this package."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            at_border(error)
            raise

    return cast(F, call)


def install() -> None:
    """Shorten what the interpreter, its threads and a shell of IPython show, once."""
    if getattr(sys.excepthook, "_mycel", False):
        return
    shown, shown_of_thread = sys.excepthook, threading.excepthook

    def show(kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, BaseException) and not shows_all():
            trace = without_own_frames(error).__traceback__
        shown(kind, error, trace)

    def show_of_thread(given: Any) -> None:
        if isinstance(given.exc_value, BaseException) and not shows_all():
            trace = without_own_frames(given.exc_value).__traceback__
            given = threading.ExceptHookArgs((given.exc_type, given.exc_value, trace, given.thread))
        shown_of_thread(given)

    show._mycel = True  # type: ignore[attr-defined]
    sys.excepthook, threading.excepthook = show, show_of_thread
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        _install_in(shell)


def _install_in(shell: Any) -> None:
    """Let a shell of IPython show shortened tracebacks; ``%debug`` still sees all frames."""
    show = shell.showtraceback

    @functools.wraps(show)
    def showtraceback(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> Any:
        kind, error, trace = exc_tuple or sys.exc_info()
        if not isinstance(error, BaseException) or shows_all():
            return show(exc_tuple, *args, **kwargs)
        without_own_frames(error)
        try:
            return show((kind, error, error.__traceback__), *args, **kwargs)
        finally:
            sys.last_traceback = trace

    shell.showtraceback = showtraceback
