"""A lazy import of jax: only when the engine is first asked for something.

`jax`, `lax` and `jnp` stand for the modules of these names, so that the modules of the engine can
be imported, read and documented where jax is not installed. The first use imports jax and turns on
types of 64 bits, which Mycel has. Programs run on the host's processor, or on the GPUs that jax
finds where `use("GPU")` asked for them before.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
from typing import Any

from mycel._src.compiler.transport.current_transport import transport
from mycel._src.compiler.transport.rank_environment import world
from mycel._src.foundation.system import locks

__all__ = ["MISSING", "device", "devices", "is_started", "jax", "jnp", "kind", "lax", "target", "use", "version"]

MISSING = "the XLA engine needs jax, which is not installed: pip install mycel[xla]"
_KINDS = {"CPU": "cpu", "GPU": "gpu"}
_target = ["CPU"]
_ready: list[Any] = []
_lock = locks.reentrant()


def version() -> str | None:
    """Return the version of jax that is installed, without importing it; None where there is
    none."""
    found = importlib.util.find_spec("jax")
    if found is None or found.origin is None:  # a folder of that name, without a package in it
        return None
    try:
        return importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _load() -> Any:
    """Return jax, set for Mycel."""
    with _lock:
        if not _ready:
            if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
                # With fewer threads than devices, those that wait in a collective leave none for
                # others.
                os.environ.setdefault("NPROC", str(max(16, os.cpu_count() or 1)))
            try:
                found = importlib.import_module("jax")
            except ModuleNotFoundError as error:
                if error.name not in ("jax", "jaxlib"):
                    raise
                raise ImportError(MISSING) from None
            found.config.update("jax_enable_x64", True)
            if not os.environ.get("JAX_PLATFORMS") and _target[0] == "CPU":
                found.config.update("jax_platforms", "cpu")
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

    Raises ImportError without jax, RuntimeError where jax finds no such device.
    """
    with _lock:
        if target != "CPU" and _ready and _ready[0].config.jax_platforms == _KINDS["CPU"]:
            raise RuntimeError(f"jax computes on the processor already; choose the {target} before the first program")
        if target == "CPU" and not _ready and world().size > transport().size:
            _target[0] = target  # jax starts when the ranks have met
            return
        before, _target[0] = _target[0], target
        try:
            _load().config.update("jax_default_device", devices()[0])
        except RuntimeError as error:
            _target[0] = before
            raise RuntimeError(
                f"jax finds no {target} here ({str(error).splitlines()[0]}); a GPU of NVIDIA's needs its driver "
                'and pip install "jax[cuda12]"'
            ) from None
        except BaseException:
            _target[0] = before
            raise


def target() -> str:
    """Return the kind of device that computes: "CPU" or "GPU"."""
    return _target[0]


def kind() -> str:
    """Return jax's name for the kind of device that computes."""
    return _KINDS[_target[0]]


def is_started() -> bool:
    """Return whether jax has looked for its devices."""
    if not _ready:
        return False
    return bool(importlib.import_module("jax._src.xla_bridge").backends_are_initialized())


def devices() -> list[Any]:
    """Return jax's devices of this process, those of the kind that computes."""
    found: list[Any] = _load().local_devices(backend=kind())
    return found


def device() -> Any:
    """Return the device of programs on one device: the first."""
    return devices()[0]
