"""The output of `mycel info`: versions, the processor, the engines, and the folder of compiled
code.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import mycel
from mycel._src.engines.select import engine, engines
from mycel._src.foundation.settings import config
from mycel._src.foundation.system.cpu_cores import usable_cores

__all__ = ["as_text", "collect"]

_TOLD_FEATURES = (
    "sse4.2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vnni",
    "avx512bf16",
    "amx-tile",
    "neon",
    "sve",
)
_LIBRARIES = ("numpy", "llvmlite", "ml_dtypes", "safetensors")


def collect() -> dict[str, Any]:
    """Return the facts as plain dictionaries, lists, strings and numbers.

    >>> collect()["python"]["version"] == platform.python_version()
    True
    """
    return {
        "version": mycel.__version__,
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "cpu": _cpu(),
        "engines": {name: known.describe() for name, known in engines().items()},
        "engine": engine().name,
        "cache": _cache(),
    }


def as_text(facts: dict[str, Any]) -> str:
    """Return the facts of `collect` as text for a person, one a line."""
    cpu, native, cache = facts["cpu"], facts["engines"]["native"], facts["cache"]
    dense = native["onednn"]
    unwritable = "" if cache["writable"] else "; not writable, so every process compiles anew"
    told = [name for name in _TOLD_FEATURES if name in cpu["features"]]
    rows = [
        ("mycel", facts["version"]),
        ("Python", f"{facts['python']['version']} ({facts['python']['executable']})"),
        ("platform", facts["platform"]),
        ("libraries", ", ".join(f"{name} {version}" for name, version in facts["libraries"].items())),
        ("CPU", f"{cpu['name']} ({cpu['llvm_name']})"),
        ("cores", f"{cpu['usable']} usable, {cpu['logical']} in all"),
        ("features", " ".join(told) or "none of the known ones"),
        ("code for", native["target"]),
        ("threads", str(native["threads"])),
        ("engines", ", ".join(f"{name} ({known['uses']})" for name, known in facts["engines"].items())),
        ("in use", facts["engine"]),
        ("oneDNN", f"{dense['version']} at {dense['path']}" if dense["found"] else f"not in use: {dense['reason']}"),
        ("cache", f"{cache['directory']} ({cache['files']:,} files, {cache['bytes'] / 1e6:,.1f} MB{unwritable})"),
    ]
    return "\n".join(f"{name:<10}{value}" for name, value in rows)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cpu() -> dict[str, Any]:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    logical = os.cpu_count() or 1
    usable = usable_cores()
    return {
        "name": _cpu_name(),
        "llvm_name": binding.get_host_cpu_name(),
        "architecture": platform.machine(),
        "logical": logical,
        "usable": usable,
        "features": sorted(name for name, present in features.items() if present),
    }


def _cpu_name() -> str:
    table = Path("/proc/cpuinfo")
    if table.is_file():
        for line in table.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _cache() -> dict[str, Any]:
    folder = Path(config.cache_directory())
    sizes = []
    for inside, _, names in os.walk(folder):
        for name in names:
            # Another process may be replacing files.
            with contextlib.suppress(FileNotFoundError):
                sizes.append(os.stat(os.path.join(inside, name)).st_size)
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    return {"directory": str(folder), "files": len(sizes), "bytes": sum(sizes), "writable": writable}
