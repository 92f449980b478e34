"""Starts subprocesses: every process of the package is started here, with a safe import path.

A Python of ours imports from where the program does. `python -c` and `python -m` would put the
current folder first, which may hold whatever was downloaded: a file `json.py` there would be run.
So the current folder is dropped before anything is imported, and what the program's own path has is
put in its place: '' too, where the program itself imports from the current folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from mycel._src.foundation.package import FOLDER

__all__ = ["fork", "path", "python", "run", "start"]

_FILE = os.path.join(FOLDER, "__init__.py")
# Options of an interpreter that say where it imports from, each with the flag that shows it.
_OPTIONS = (("isolated", "-I"), ("ignore_environment", "-E"), ("no_user_site", "-s"), ("no_site", "-S"))
# The path is set before anything is imported: `sys` is part of the interpreter.
_GIVEN = "import sys; sys.path[:] = {}; "
# From Python 3.11 on, an option keeps the current folder out; an isolated one never has it.
_DROPS = "import sys; sys.flags.isolated or sys.path.pop(0); "
_KEEPS = "import sys; "
# The same Mycel as here, also where that is not installed.
_OURS = (
    "from importlib.util import find_spec as f; s = f('mycel'); "
    "s and s.origin == {0} or sys.path.insert(0, {1}); del f, s; "
)


def path() -> list[str]:
    """Return the folders that this program imports from; Python passes over what is not text."""
    return [folder for folder in sys.path if isinstance(folder, str)]


def python(code: str, *arguments: str, folders: Sequence[str] | None = None) -> list[str]:
    """Return the command line by which another Python runs `code`, which has `sys`.

    * `arguments`: what `sys.argv` has from place 1 on.
    * `folders`: what it imports from, as `path` returns it for this program; None: from where any
      Python does, for code that runs a program of its own.

    >>> from mycel._src.foundation.system import subprocesses as starting
    >>> words = starting.python("print(sys.argv[1:], '' in sys.path)", "a b")
    >>> starting.run(words, capture_output=True, text=True).stdout
    "['a b'] False\\n"
    """
    safe = sys.version_info >= (3, 11)
    options = [word for flag, word in _OPTIONS if getattr(sys.flags, flag)] + (["-P"] if safe else [])
    if folders is not None:
        head = _GIVEN.format(ascii(list(folders)))
    else:
        head = (_KEEPS if safe else _DROPS) + _OURS.format(ascii(_FILE), ascii(os.path.dirname(FOLDER)))
    return [sys.executable, *options, "-c", head + code, *arguments]


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process; `options` are those of `subprocess.Popen`."""
    return subprocess.Popen(words, **options)


def run(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Start a process and wait for its end; `options` are those of `subprocess.run`."""
    return subprocess.run(words, **options)


def fork() -> int:
    """Copy this process: return 0 in the copy, and its number in this one."""
    return os.fork()
