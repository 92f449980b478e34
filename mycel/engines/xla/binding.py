"""jax, imported when this engine is first asked for something and never before.

`jax`, `lax` and `jnp` stand for the modules of these names, so that the modules of the engine can be
imported, read and documented where jax is not installed. The first use imports jax and turns on
types of 64 bits, which Mycel has; without a choice in JAX_PLATFORMS it runs on the host's processor,
or on GPUs where `use("GPU")` asked for them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from typing import Any, Optional

from mycel.base import locks

__all__ = ["MISSING", "device", "devices", "jax", "jnp", "lax", "target", "use", "version"]

MISSING = "the XLA engine needs jax, which is not installed: pip install mycel[xla]"
_PLATFORMS = {"CPU": "cpu", "GPU": "cuda"}
_target = ["CPU"]
_ready: list[Any] = []
_lock = locks.reentrant()


def version() -> Optional[str]:
    """Return the version of jax that is installed, without importing it; None where there is none."""
    try:
        return importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return None


def _load() -> Any:
    """Return jax, set for Mycel."""
    with _lock:
        if not _ready:
            try:
                found = importlib.import_module("jax")
            except ModuleNotFoundError as error:
                if error.name not in ("jax", "jaxlib"):
                    raise
                raise ImportError(MISSING) from None
            found.config.update("jax_enable_x64", True)
            if not os.environ.get("JAX_PLATFORMS"):
                found.config.update("jax_platforms", _PLATFORMS[_target[0]])
            _ready.append(found)
        return _ready[0]


class _Later:
    """A module of jax that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        _load()
        found = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, found)
        return found


jax: Any = _Later("jax")
jnp: Any = _Later("jax.numpy")
lax: Any = _Later("jax.lax")


def use(target: str) -> None:
    """Have jax compute on "CPU" or "GPU".

    Raises ImportError without jax, RuntimeError where jax finds no such device, or already computes
    on another kind.
    """
    with _lock:
        if _ready and _target[0] != target:
            raise RuntimeError(f"jax computes on {_target[0]} in this process; choose {target} before the first program")
        before, _target[0] = _target[0], target
        started = bool(_ready)
        try:
            devices()
        except RuntimeError as error:
            _target[0] = before
            if not started:
                _ready[0].config.update("jax_platforms", _PLATFORMS[before])
            raise RuntimeError(
                f"jax finds no {target} here ({str(error).splitlines()[0]}); a GPU of NVIDIA's needs its driver "
                'and pip install "jax[cuda12]"'
            ) from None


def target() -> str:
    """Return the kind of device that computes: "CPU" or "GPU"."""
    return _target[0]


def devices() -> list[Any]:
    """Return jax's devices of this process."""
    found: list[Any] = _load().local_devices()
    return found


def device() -> Any:
    """Return the device of programs on one device: the first."""
    return devices()[0]
