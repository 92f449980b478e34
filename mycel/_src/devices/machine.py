"""The local device (the processor), as MindSpore's programs query and configure it.

Functions without a meaning for it are accepted, so that programs for other devices run; they do
nothing, and their descriptions say so.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.devices import runtime
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.settings import config
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import matmul

__all__ = [
    "DeviceCtx",
    "DeviceInfo",
    "dispatch_threads_num",
    "get_current_device",
    "launch_blocking",
    "ms_memory_recycle",
    "run_check",
    "set_cpu_affinity",
    "set_deterministic",
    "set_device",
    "synchronize",
]


class DeviceInfo(NamedTuple):
    """A device and its number."""

    device_target: str
    device_id: int


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Choose the device: "CPU", or "GPU" before anything is compiled; number 0.

    A GPU is one that jax finds (``pip install mycel[xla]``): programs are then the XLA engine's.
    Raises RuntimeError where there is none, after the first program, and for "Ascend", which this
    build does not have; ValueError for others.

    >>> set_device("CPU")
    """
    arguments.optional("set_device", "device_target", device_target, str)
    arguments.one_of("set_device", "device_target", device_target, ("CPU", "GPU", "Ascend"))
    if device_target == "Ascend":
        raise RuntimeError(f"set_device: {device_target!r} is not available in this build; it runs on 'CPU'")
    if device_id is not None and arguments.integer("set_device", "device_id", device_id) != 0:
        raise ValueError(f"set_device: there is one {device_target} device, number 0, not {device_id!r}")
    try:
        config.set_context(device_target=device_target)
    except ValueError as error:
        raise RuntimeError(str(error).replace("set_context: device_target", "set_device:", 1)) from None


class DeviceCtx:
    """A context that chooses the device for a block: "CPU", number 0.

    Raises ValueError and RuntimeError for others, as `set_device` does.

    >>> import mycel as ms
    >>> with ms.DeviceCtx("CPU"):
    ...     ms.get_current_device().device_target
    'CPU'
    """

    def __init__(self, name: str, device_id: int | None = None) -> None:
        set_device(name, device_id)

    def __enter__(self) -> None:
        """Do nothing: the device is the only one."""

    def __exit__(self, *error: Any) -> None:
        """Do nothing: the device is the only one."""


def get_current_device() -> DeviceInfo:
    """Return the device and its number.

    >>> get_current_device()
    DeviceInfo(device_target='CPU', device_id=0)
    """
    return DeviceInfo(config.get_context("device_target"), 0)


def set_deterministic(deterministic: bool) -> None:
    """Ask for results that are the same in every run; they are so in any case.

    Raises TypeError for anything but True and False.

    >>> set_deterministic(True)
    >>> config.get_context("deterministic")
    'ON'
    """
    arguments.flag("set_deterministic", "deterministic", deterministic)
    config.set_context(deterministic="ON" if deterministic else "OFF")


def launch_blocking() -> None:
    """Let operations be complete when they return, which they are in any case."""


def synchronize() -> None:
    """Wait for running operations: those of GPUs and of the XLA engine, as others are complete when
    they return.
    """
    engine().synchronize()


def dispatch_threads_num(threads_num: int) -> None:
    """Set the number of threads that dispatch operations.

    It has no effect, as operations of a graph run in order, each on all threads. Raises ValueError
    for anything but positive integers.
    """
    arguments.integer("dispatch_threads_num", "threads_num", threads_num, 1, numpy=False, error=ValueError)


def ms_memory_recycle() -> None:
    """Collect garbage, and return unused memory to the operating system."""
    gc.collect()
    runtime.empty_cache()


_before: list[set[int]] = []


def set_cpu_affinity(
    enable_affinity: bool,
    affinity_cpu_list: list[str] | None = None,
    module_to_cpu_dict: dict[str, Any] | None = None,
    bind_file: str | None = None,
) -> None:
    """Bind the threads of this process, and those that they start, to processors.

    Args:
        enable_affinity (bool): Whether to bind; if not, the processors allowed before are allowed
            again.
        affinity_cpu_list (list[str] | None): Ranges such as ["0-3", "8"]; None for the processors
            allowed at present. Default: None.
        module_to_cpu_dict (dict[str, Any] | None): Must be None. Default: None.
        bind_file (str | None): Must be None. Default: None.

    Raises:
        TypeError, ValueError: For other lists and processors that are not allowed.
        Unsupported: For `module_to_cpu_dict` and `bind_file` and on systems other than Linux.

    Examples:
        >>> set_cpu_affinity(True)
        >>> set_cpu_affinity(False)
    """
    arguments.flag("set_cpu_affinity", "enable_affinity", enable_affinity)
    if module_to_cpu_dict or bind_file is not None:
        raise Unsupported(
            "set_cpu_affinity: module_to_cpu_dict and bind_file are not supported; bind all threads by "
            "affinity_cpu_list"
        )
    if not hasattr(os, "sched_setaffinity"):
        raise Unsupported("set_cpu_affinity: threads can be bound on Linux only")
    if not enable_affinity:
        if _before:
            _bind(_before.pop())
        return
    allowed = os.sched_getaffinity(0)
    wanted = allowed if affinity_cpu_list is None else _processors(affinity_cpu_list)
    known = _before[0] if _before else allowed
    if not wanted or not wanted <= known:
        raise ValueError(
            f"set_cpu_affinity: processors {sorted(wanted)} are not all among those allowed, {sorted(known)}"
        )
    if not _before:
        _before.append(allowed)
    _bind(wanted)


def _processors(ranges: Any) -> set[int]:
    arguments.instance("set_cpu_affinity", "affinity_cpu_list", ranges, list, "a list such as ['0-3', '8']")
    found: set[int] = set()
    for text in ranges:
        first, _, last = str(text).partition("-")
        if not first.strip().isdigit() or not (last or first).strip().isdigit():
            raise ValueError(f"set_cpu_affinity: {text!r} is no processor or range such as '0-3'")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _bind(processors: Iterable[int]) -> None:
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), processors)


def run_check() -> None:
    """Multiply matrices on the device and print whether the result is right.

    Raises RuntimeError if it is wrong.
    """
    import mycel

    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    if not np.array_equal(matmul(Tensor(a), Tensor(a.T.copy())).asnumpy(), a @ a.T):
        raise RuntimeError("run_check: the result of a multiplication is wrong on this machine")
    print(f"Mycel version:  {mycel.__version__}")
    print(
        "The result of multiplication calculation is correct, Mycel has been installed on platform [CPU] successfully!"
    )
