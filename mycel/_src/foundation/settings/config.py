"""Settings of the process: what `set_context` changes, and where compiled code is kept."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.ignored_context_options import OPTIONS, checked
from mycel._src.foundation.system import locks

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "STRICT",
    "COMPATIBLE",
    "LAX",
    "cache_directory",
    "get_context",
    "set_context",
]

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT = 0
COMPATIBLE = 1
LAX = 2

# MindSpore's names; all but the first are one here.
TUNE_MODES = ("NO_TUNE", "RL", "GA", "RL,GA", "GA,RL")

_DEFAULTS: dict[str, Any] = {
    "mode": PYNATIVE_MODE,
    "device_target": "CPU",
    "engine": os.environ.get("MYCEL_ENGINE") or "native",
    "jit_syntax_level": LAX,
    "runtime_num_threads": 0,
    "enable_compile_cache": True,
    "check_nan": {"1": True, "nan": "nan"}.get(os.environ.get("MYCEL_CHECK_NAN", ""), False),
    "wide_intermediates": os.environ.get("MYCEL_WIDE_INTERMEDIATES") == "1",
    "matrix_units": os.environ.get("MYCEL_MATRIX_UNITS") != "0",
    "winograd": os.environ.get("MYCEL_WINOGRAD") != "0",
    "auto_tune_mode": "GA" if os.environ.get("MYCEL_AUTOTUNE") == "1" else "NO_TUNE",
    "compile_cache_path": "",
    "max_device_memory": None,
}
_KINDS: dict[str, type] = {
    "mode": int,
    "device_target": str,
    "engine": str,
    "jit_syntax_level": int,
    "runtime_num_threads": int,
    "compile_cache_path": str,
}
# Those of which a user would wait for something to appear.
_MISSED = ("save_graphs", "save_graphs_path", "precompile_only", "enable_dump", "enable_profiling", "print_file_path")
# Those that change what a program is: what was compiled before is not used again.
COMPILED_ANEW = frozenset(("check_nan", "wide_intermediates", "matrix_units", "winograd"))
_context: dict[str, Any] = dict(_DEFAULTS)
_said: set[tuple[str, str]] = set()
# As in MindSpore, MS_JIT=0 in the environment runs everything eagerly. It is read at the start and
# by set_context.
jit_is_off = os.environ.get("MS_JIT") == "0"
_lock = locks.lock()
listeners: list[Any] = []
# Functions that make the choices of options whose values are not known here, or raise an error.
deciders: dict[str, Callable[[Any], None]] = {}


def _check(name: str, value: Any) -> Any:
    """Return the value of an option as it is kept."""
    if name in OPTIONS:
        return checked(name, value)
    if name not in _DEFAULTS:
        known = ", ".join(sorted((*_DEFAULTS, *OPTIONS)))
        raise ValueError(f"set_context: there is no option {name!r}; the options are {known}")
    kind = _KINDS.get(name)
    if kind is not None and not isinstance(value, kind):
        raise arguments.wrong_type("set_context", name, f"a {kind.__name__}", value)
    if name == "mode" and value not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ValueError(f"set_context: mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), not {value!r}")
    if name == "device_target" and value not in ("CPU", "GPU"):
        raise ValueError(f"set_context: device_target {value!r} is not available in this build; it runs on 'CPU'")
    if name == "jit_syntax_level" and value not in (STRICT, COMPATIBLE, LAX):
        raise ValueError(f"set_context: jit_syntax_level must be STRICT (0), COMPATIBLE (1) or LAX (2), not {value!r}")
    if name == "runtime_num_threads":
        arguments.integer("set_context", name, value, 0, flags=True, numpy=False, error=ValueError)
    if name in ("enable_compile_cache", "wide_intermediates", "matrix_units", "winograd"):
        arguments.flag("set_context", name, value)
    if name == "check_nan" and not (isinstance(value, bool) or value == "nan"):
        raise ValueError(f"set_context: check_nan must be False, True, or 'nan' to look for NaN only, not {value!r}")
    if name == "max_device_memory" and value is not None:
        if not isinstance(value, str):
            raise arguments.wrong_type("set_context", name, "a string", value)
        try:
            memory_size(value)
        except ValueError as error:
            raise ValueError(f"set_context: max_device_memory: {error}") from None
    if name == "auto_tune_mode":
        arguments.one_of("set_context", name, value, TUNE_MODES)
    return int(value) if kind is int else value


def memory_size(text: str) -> int:
    """Return the bytes that a size such as "2GB" or "1.5GB" means.

    >>> memory_size("1.5GB") == 3 << 29
    True
    """
    number = text[:-2].strip() if isinstance(text, str) and text[-2:].upper() == "GB" else ""
    if not number.replace(".", "", 1).isdigit() or float(number) <= 0:
        raise ValueError(f'a size of memory is a number and GB, such as "2GB" or "1.5GB", not {text!r}')
    return int(float(number) * (1 << 30))


def note(name: str, value: Any) -> None:
    """Keep the value of an option that another choice has decided."""
    with _lock:
        _context[name] = value


def _decide(chosen: Mapping[str, Any]) -> None:
    """Make the choices that may fail: all, or none where one does."""
    made: list[str] = []
    try:
        for name in deciders:
            if name in chosen and chosen[name] != _context[name]:
                deciders[name](chosen[name])
                made.append(name)
    except BaseException:
        for name in made:
            deciders[name](_context[name])
        raise


def set_context(**options: Any) -> None:
    """Change settings of the process; either all of those given, or none if one is wrong.

    ``check_nan=True`` makes every run raise `mycel.errors.NonFiniteError`, a FloatingPointError
    that names the first operation that gives a NaN or an infinity, and its line: in eager and
    compiled code and in derivatives. ``check_nan="nan"`` looks for NaN only.

    ``auto_tune_mode="GA"`` (or another of MindSpore's names) makes functions compiled from then on
    try the algorithms for each matrix product and convolution and keep the fastest, also in files;
    ``"NO_TUNE"``, the default, takes those that fixed rules choose.

    ``wide_intermediates=True`` rounds 16-bit floats in compiled code only where they are stored,
    instead of after every operation. There are fewer roundings, but results differ from those of
    the same operations one by one.

    ``winograd=False`` computes convolutions with kernels of 3 x 3 in float32 by their definition.
    Otherwise Winograd's algorithm does those where it is faster, with a rounding error some ten
    times as large (a few 1e-6 of the largest result).

    ``matrix_units=False`` multiplies matrices of float32 by vector instructions, also where the
    processor has units for tiles of bfloat16, which are otherwise used with three such numbers in
    place of each, for the accuracy of float32.

    ``engine="xla"`` has programs compiled by XLA, through jax (``pip install mycel[xla]``), and
    ``device_target="GPU"`` has them run on a GPU that jax finds. Either is chosen before anything
    is compiled: later it raises RuntimeError, without jax ImportError (ValueError for a device).

    ``max_device_memory="2GB"`` limits the memory that tensors and compiled functions may take from
    the system; beyond it they raise MemoryError. None is no limit.

    Options of MindSpore that have no effect here are accepted; each value is logged once, with the
    reason. Raises ValueError for a name or value that does not exist, TypeError for a value of
    another type.

    >>> import mycel as ms
    >>> ms.set_context(mode=ms.PYNATIVE_MODE)
    """
    global jit_is_off
    jit_is_off = os.environ.get("MS_JIT") == "0"
    chosen = {name: _check(name, value) for name, value in options.items()}
    _decide(chosen)
    for name, value in chosen.items():
        if name in OPTIONS and value != OPTIONS[name].default and (name, repr(value)) not in _said:
            _said.add((name, repr(value)))
            level = logger.warning if name in _MISSED else logger.info
            level("set_context(%s=%r) has no effect: %s", name, value, OPTIONS[name].why)
        with _lock:
            _context[name] = value
    for listener in listeners:
        listener(options)


def get_context(attr_key: str) -> Any:
    """Return the value of one setting.

    Raises ValueError for a name that does not exist.

    >>> import mycel as ms
    >>> ms.get_context("device_target")
    'CPU'
    """
    if attr_key in _context:
        return _context[attr_key]
    if attr_key in OPTIONS:
        return OPTIONS[attr_key].default
    known = ", ".join(sorted((*_DEFAULTS, *OPTIONS)))
    raise ValueError(f"get_context: there is no option {attr_key!r}; the options are {known}")


def cache_directory() -> pathlib.Path:
    """Return the folder of compiled code.

    It is MYCEL_CACHE, the `compile_cache_path` option, or a folder in the user's cache.
    """
    chosen = os.environ.get("MYCEL_CACHE") or _context["compile_cache_path"]
    if chosen:
        return pathlib.Path(chosen)
    home = os.path.expanduser("~")
    # Without a home folder, "~" stays; that must not become a folder of this name.
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home if os.path.isabs(home) else os.sep, ".cache")
    return pathlib.Path(base) / "mycel"
