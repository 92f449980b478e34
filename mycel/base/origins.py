"""Where code comes from: Python itself, an installed package, or the program of the user.

A file is that of an installed package where a folder above it is called `site-packages` or
`dist-packages`. It need not be this interpreter's own: environments see packages of others through
`.pth` files, `PYTHONPATH`, the user's folder, or the system's.
"""

from __future__ import annotations

import os
import sysconfig

__all__ = ["is_installed", "is_standard"]

_PATHS = sysconfig.get_paths()
_LIBRARIES = (os.path.dirname(os.__file__), _PATHS["stdlib"])
_STANDARD = tuple({way(n) + os.sep for n in _LIBRARIES for way in (str, os.path.realpath)})
_OWN = tuple({_PATHS[n] + os.sep for n in ("purelib", "platlib")})
_FOLDERS = tuple(f"{os.sep}{n}{os.sep}" for n in ("site-packages", "dist-packages"))


def is_installed(file: str) -> bool:
    """Return whether a file of code belongs to an installed package."""
    return file.startswith(_OWN) or any(f in file for f in _FOLDERS)


def is_standard(file: str) -> bool:
    """Return whether a file of code belongs to Python's own library."""
    return file.startswith(_STANDARD) and not is_installed(file)
