"""Sources in C and C++ as shared libraries, where a compiler is found.

A library is made once for a process, in a folder of its own that ends with the process, and anew
where a source has changed. The compiler is that of the variables CXX and CC, or the first of the
usual names.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.file_ownership import check_code
from mycel._src.foundation.system import subprocesses

__all__ = ["imported", "library_of", "options_of", "paths_for_modules"]

# Headers that only MindSpore has.
_FOREIGN = ("ms_extension", "custom_aot_extra.h", "mindspore/")


def library_of(
    owner: str, sources: Sequence[str], options: Sequence[str] = (), last: Sequence[str] = (), target: str = ""
) -> str:
    """Return the path of the library of some sources.

    `owner` is named in errors. `options` come before the sources and `last` after them; `target` is
    the path of the library, if it is to have a certain one. Raises Unsupported where there is no
    compiler, or a source wants MindSpore's headers, and RuntimeError with the compiler's message
    where it fails.
    """
    for path in sources:
        try:
            check_code(path)
            text = Path(path).read_text(errors="replace")
        except FileNotFoundError:
            raise ValueError(f"{owner}: there is no file {path}") from None
        for line in text.splitlines():
            if line.lstrip().startswith("#") and "include" in line and any(name in line for name in _FOREIGN):
                raise Unsupported(
                    f"{owner}: {path} cannot be built: its {line.strip()} is one of MindSpore's headers, which Mycel "
                    "does not have; give the function a C interface, and call it with "
                    'ops.Custom("FILE.cc:function", func_type="aot"), or write it in Python with ops.Custom'
                )
    marks = tuple([(os.path.abspath(p), os.stat(p).st_mtime_ns) for p in sources])
    return _built(owner, marks, tuple(options), tuple(last), target)


@Remembered("libraries of sources", SOME).calls
def _built(
    owner: str, sources: tuple[tuple[str, int], ...], options: tuple[str, ...], last: tuple[str, ...], target: str
) -> str:
    """Return the path of a library, built now; `sources` have their times of change.

    `owner`, `options`, `last` and `target` are as in `library_of`.
    """
    names = [path for path, _ in sources]
    plain = all(name.endswith(".c") for name in names)
    compiler = _compiler(owner, plain)
    where = target or os.path.join(tempfile.mkdtemp(dir=_folder()), f"{Path(names[0]).stem}.so")
    standard = [] if plain else ["-std=c++17"]
    folders = [f"-I{d}" for d in dict.fromkeys(map(os.path.dirname, names))]
    command = [*compiler, *standard, "-O2", "-shared", "-fPIC", *folders, *options, *names, *last, "-o", where]
    done = subprocesses.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{owner}: {' '.join(command)} failed:\n{done.stderr.strip()[-4000:]}")
    return where


@functools.cache
def _folder() -> str:
    made = tempfile.TemporaryDirectory(prefix="mycel-custom-")
    # Held, as it goes with this object.
    _held.append(made)
    return made.name


_held: list[tempfile.TemporaryDirectory[str]] = []


def _compiler(owner: str, plain: bool) -> list[str]:
    """Return the command of the compiler: of C where `plain`, else of C++."""
    variable, names = ("CC", ("cc", "gcc", "clang")) if plain else ("CXX", ("c++", "g++", "clang++"))
    asked = shlex.split(os.environ.get(variable, ""))
    if asked and shutil.which(asked[0]):
        return asked
    for name in names:
        if shutil.which(name):
            return [name]
    raise Unsupported(
        f"{owner}: there is no compiler {' or '.join(names)} here; set {variable}, or compile a shared library "
        "elsewhere"
    )


def options_of(value: str | Sequence[str] | None) -> list[str]:
    """Return options that are given as one string, as several, or not at all."""
    if value is None:
        return []
    return shlex.split(value) if isinstance(value, str) else [part for v in value for part in shlex.split(v)]


def paths_for_modules() -> list[str]:
    """Return the folders of headers for modules of Python: its own, and pybind11's if installed."""
    found = [sysconfig.get_paths()["include"]]
    spec = importlib.util.find_spec("pybind11")
    if spec is not None and spec.origin is not None:
        found.append(os.path.join(os.path.dirname(spec.origin), "include"))
    return found


def imported(name: str, path: str) -> ModuleType:
    """Return the module called `name` in a library."""
    loader = ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
