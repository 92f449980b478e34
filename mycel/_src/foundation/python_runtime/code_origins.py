"""Origin of code: Python itself, an installed package, or the program of the user.

A file is that of an installed package where a folder above it is called `site-packages` or
`dist-packages`. It need not be this interpreter's own: environments see packages of others through
`.pth` files, `PYTHONPATH`, the user's folder, or the system's. ``pip install --target`` puts
packages in any folder, where programs may lie as well: of the folder that NumPy is in, the files
that records of installations list are those of packages.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sysconfig
from pathlib import Path

__all__ = ["is_installed", "is_standard"]

_PATHS = sysconfig.get_paths()
_LIBRARIES = (os.path.dirname(os.__file__), _PATHS["stdlib"])
_STANDARD = tuple({way(n) + os.sep for n in _LIBRARIES for way in (str, os.path.realpath)})
_OWN = tuple({_PATHS[n] + os.sep for n in ("purelib", "platlib")})
_FOLDERS = tuple(f"{os.sep}{n}{os.sep}" for n in ("site-packages", "dist-packages"))


def is_installed(file: str) -> bool:
    """Return whether a file of code belongs to an installed package."""
    return file.startswith(_OWN) or any(f in file for f in _FOLDERS) or file.startswith(_targets())


@functools.cache
def _targets() -> tuple[str, ...]:
    """Return what was installed beside NumPy, if that folder is not one of packages alone."""
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None:
        return ()
    folder = Path(found.origin).parents[1]
    if any(name in f"{folder}{os.sep}" for name in _FOLDERS) or f"{folder}{os.sep}" in _OWN:
        return ()
    return _recorded(folder)


def _recorded(folder: Path) -> tuple[str, ...]:
    """Return where the paths of files begin that installations into a folder have recorded."""
    starts = set()
    for record in folder.glob("*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8", errors="replace").splitlines():
            top, below, _ = line.partition(",")[0].partition("/")
            if top not in ("", ".."):
                starts.add(f"{folder / top}{os.sep}" if below else str(folder / top))
    return tuple(sorted(starts))


def is_standard(file: str) -> bool:
    """Return whether a file of code belongs to Python's own library."""
    return file.startswith(_STANDARD) and not is_installed(file)
