"""Settings that all pipelines share: the seed, the number of workers, and how far to read ahead.

Invariants: a setting is validated when it is set, and a pipeline reads it when an iterator is
created, never later. While no seed is set, every iterator draws its own from the operating system,
and `get_seed` returns 5489, MindSpore's default.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.logged_once import no_effect
from mycel._src.foundation.system.cpu_cores import usable_cores
from mycel.common import seed as global_seed
from mycel.dataset.arguments import MOST_WORKERS
from mycel.dataset.execution_options import (
    INT32_MAX,
    ErrorSamplesMode,
    check_bool,
    check_integer,
    get_auto_offload,
    get_autotune_interval,
    get_dynamic_shape,
    get_enable_autotune,
    get_enable_watchdog,
    get_error_samples_mode,
    get_fast_recovery,
    get_keep_remote_files,
    get_multiprocessing_start_method,
    get_numa_enable,
    get_video_backend,
    set_auto_offload,
    set_autotune_interval,
    set_dynamic_shape,
    set_enable_autotune,
    set_enable_watchdog,
    set_error_samples_mode,
    set_fast_recovery,
    set_keep_remote_files,
    set_multiprocessing_start_method,
    set_numa_enable,
    set_sending_batches,
    set_video_backend,
)
from mycel.dataset.pipeline_errors import InputValueError, MissingFile
from mycel.dataset.random_numbers import random_streams

__all__ = [
    "ErrorSamplesMode",
    "get_auto_num_workers",
    "get_auto_offload",
    "get_autotune_interval",
    "get_callback_timeout",
    "get_debug_mode",
    "get_dynamic_shape",
    "get_enable_autotune",
    "get_enable_shared_mem",
    "get_enable_watchdog",
    "get_error_samples_mode",
    "get_fast_recovery",
    "get_iterator_mode",
    "get_keep_remote_files",
    "get_monitor_sampling_interval",
    "get_multiprocessing_start_method",
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_numa_enable",
    "get_prefetch_size",
    "get_seed",
    "get_video_backend",
    "load",
    "set_auto_num_workers",
    "set_auto_offload",
    "set_autotune_interval",
    "set_callback_timeout",
    "set_debug_mode",
    "set_dynamic_shape",
    "set_enable_autotune",
    "set_enable_shared_mem",
    "set_enable_watchdog",
    "set_error_samples_mode",
    "set_fast_recovery",
    "set_iterator_mode",
    "set_keep_remote_files",
    "set_monitor_sampling_interval",
    "set_multiprocessing_start_method",
    "set_multiprocessing_timeout_interval",
    "set_num_parallel_workers",
    "set_numa_enable",
    "set_prefetch_size",
    "set_seed",
    "set_sending_batches",
    "set_video_backend",
]

UINT32_MAX = 2**32 - 1
# How often a seed was set.
_times = 0
DEFAULT_SEED = 5489

_settings: dict[str, Any] = {
    "seed": None,
    "num_parallel_workers": min(8, os.cpu_count() or 1),
    "prefetch_size": 16,
    "callback_timeout": 60,
    "monitor_sampling_interval": 1000,
    "multiprocessing_timeout_interval": 300,
    "auto_num_workers": False,
    "enable_shared_mem": True,
    "debug_mode": False,
    "do_copy": False,
    "parallel_convert": False,
}
_workers_were_set = False


def set_seed(seed: int) -> None:
    """Seed pipelines, so that their random numbers repeat exactly.

    This holds for shuffles, samplers and random transforms, and for what users' functions draw from
    `np.random` and `random` in pipelines. Raises ValueError outside [0, 2**32 - 1].

    >>> from mycel.dataset import config
    >>> config.set_seed(7)
    >>> config.get_seed()
    7
    """
    global _times
    _settings["seed"] = check_integer("set_seed", seed, 0, UINT32_MAX)
    _times += 1
    random_streams.reseed_eager(seed)


def get_seed() -> int:
    """Return the seed that was set, here or by `mycel.set_seed`, or 5489 if none was."""
    seed = _seed()
    return DEFAULT_SEED if seed is None else seed


def _seed() -> int | None:
    """Return the seed that was set here, or else the global one."""
    seed: int | None = _settings["seed"]
    return seed if seed is not None else global_seed.get_seed()


def is_seeded() -> bool:
    """Return whether a seed was set, here or by `mycel.set_seed`."""
    return _seed() is not None


def times_seeded() -> tuple[int, int]:
    """Return what changes whenever a seed is set, here or by `mycel.set_seed`."""
    return _times, global_seed.times_set()


def fresh_seed() -> int:
    """Return the seed for a new iterator: the one that is set, or one from the operating system."""
    seed = _seed()
    return secrets.randbits(32) if seed is None else seed


def set_num_parallel_workers(num: int) -> None:
    """Set the number of workers of operations that do not set their own.

    Raises ValueError outside of [1, 1024].

    >>> from mycel.dataset import config
    >>> before = config.get_num_parallel_workers()
    >>> config.set_num_parallel_workers(0)
    Traceback (most recent call last):
    ValueError: set_num_parallel_workers: 0 is not within the required range [1, 1024]
    >>> config.get_num_parallel_workers() == before
    True
    """
    global _workers_were_set
    _settings["num_parallel_workers"] = check_integer("set_num_parallel_workers", num, 1, MOST_WORKERS)
    _workers_were_set = True


def get_num_parallel_workers() -> int:
    """Return the number of workers of operations that do not set their own."""
    return int(_settings["num_parallel_workers"])


def workers_or_none(requested: int | None) -> int:
    """Return the number of workers for one operation: as requested, else as configured, else 0.

    Plain Python functions do not run faster on several threads, so users have to ask for them.
    """
    if requested is not None:
        return requested
    several = _workers_were_set or _settings["auto_num_workers"] or get_enable_autotune()
    return get_num_parallel_workers() if several else 0


def offered_workers() -> int:
    """Return how many threads may run transforms of the library where nobody asked for workers."""
    return min(get_num_parallel_workers(), usable_cores())


def set_prefetch_size(size: int) -> None:
    """Set how many rows (after `batch`, batches) are read ahead; ValueError below 1."""
    _settings["prefetch_size"] = check_integer("set_prefetch_size", size, 1, INT32_MAX)


def get_prefetch_size() -> int:
    """Return how many rows the background thread may read ahead of the consumer."""
    return int(_settings["prefetch_size"])


def set_callback_timeout(timeout: int) -> None:
    """Set how many seconds a pipeline waits for others: a `sync_wait` for its update, a
    `WaitedDSCallback` for the training, and an iterator that is released for its thread.
    """
    _settings["callback_timeout"] = check_integer("set_callback_timeout", timeout, 1, INT32_MAX)


def get_callback_timeout() -> int:
    """Return how many seconds a pipeline waits for others."""
    return int(_settings["callback_timeout"])


def set_monitor_sampling_interval(interval: int) -> None:
    """Set the interval, in milliseconds, of MindSpore's monitor; there is none, which is said."""
    name = "set_monitor_sampling_interval"
    _settings["monitor_sampling_interval"] = check_integer(name, interval, 1, INT32_MAX)
    no_effect(name, "interval", interval, "pipelines have no monitor; dataset.profile shows what nodes do", True)


def get_monitor_sampling_interval() -> int:
    """Return the interval, in milliseconds, that was last set for MindSpore's monitor."""
    return int(_settings["monitor_sampling_interval"])


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Set after how many seconds a worker process that is still at its rows is reported."""
    name = "set_multiprocessing_timeout_interval"
    _settings["multiprocessing_timeout_interval"] = check_integer(name, interval, 1, INT32_MAX)


def get_multiprocessing_timeout_interval() -> int:
    """Return the interval, in seconds, of warnings about slow worker processes."""
    return int(_settings["multiprocessing_timeout_interval"])


def set_auto_num_workers(enable: bool) -> None:
    """Set whether operations that do not say how many workers they want have several.

    They then have as many as `get_num_parallel_workers` says, by default one for each core. Their
    functions are called by several threads.
    """
    _settings["auto_num_workers"] = check_bool("set_auto_num_workers", enable)


def get_auto_num_workers() -> bool:
    """Return the value last given to `set_auto_num_workers`."""
    return bool(_settings["auto_num_workers"])


def set_enable_shared_mem(enable: bool) -> None:
    """Set whether arrays go to worker processes and back in shared memory or through sockets."""
    _settings["enable_shared_mem"] = check_bool("set_enable_shared_mem", enable)


def get_enable_shared_mem() -> bool:
    """Return the value last given to `set_enable_shared_mem`."""
    return bool(_settings["enable_shared_mem"])


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list[Any] | None = None) -> None:
    """Run pipelines in the consumer's own thread, one row at a time, for use with a debugger.

    `debug_hook_list` is a list of hooks, `debug.DebugHook`, that see the rows before the first
    operation of each `map` and after every one; a function receives and returns the row after each.
    """
    arguments.optional("set_debug_mode", "debug_hook_list", debug_hook_list, list, "a list of hooks")
    _settings["debug_mode"] = check_bool("set_debug_mode", debug_mode_flag)
    hooks = list(debug_hook_list or [])
    for hook in hooks:
        arguments.function("set_debug_mode", "each of debug_hook_list", hook)
    _settings["debug_hooks"] = hooks


def get_debug_mode() -> bool:
    """Return whether pipelines run in the consumer's own thread."""
    return bool(_settings["debug_mode"])


def debug_hooks() -> list[Any]:
    """Return the functions given to `set_debug_mode`; none outside of debug mode."""
    return list(_settings.get("debug_hooks", [])) if _settings["debug_mode"] else []


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    """Set how iterators that are made later make tensors.

    * `do_copy`: whether tensors of large batches are copies, as with `do_copy` of
      `Dataset.create_tuple_iterator`.
    * `parallel_convert`: has no effect, which is said once.
    """
    _settings["do_copy"] = check_bool("set_iterator_mode: do_copy", do_copy)
    _settings["parallel_convert"] = check_bool("set_iterator_mode: parallel_convert", parallel_convert)
    if parallel_convert:
        no_effect("set_iterator_mode", "parallel_convert", True, "tensors are made where they are asked for")


def get_iterator_mode() -> dict[str, bool]:
    """Return the values last given to `set_iterator_mode`."""
    return {"do_copy": _settings["do_copy"], "parallel_convert": _settings["parallel_convert"]}


# Keys in files of MindSpore's first releases that it reads no more either.
_EARLIER = frozenset(("logFilePath", "rowsPerBuffer", "workerConnectorSize", "callbackTimout"))


def load(file: str) -> None:
    """Read settings from a JSON file with keys such as "seed" and "numParallelWorkers".

    Of the keys in files for MindSpore's first releases "opConnectorSize" is the number of rows that
    are made ahead, and the others have no effect, which is said once. Raises ValueError for any
    other key, an error that is a RuntimeError too for a file that is missing or no JSON, and
    TypeError for what is no path.

    >>> import os, tempfile
    >>> from mycel.dataset import config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "settings.json")
    ...     with open(name, "w") as handle:
    ...         _ = handle.write('{"prefetchSize": 8}')
    ...     config.load(name)
    >>> config.get_prefetch_size()
    8
    >>> config.set_prefetch_size(16)
    """
    setters: dict[str, Any] = {
        "seed": set_seed,
        "numParallelWorkers": set_num_parallel_workers,
        "prefetchSize": set_prefetch_size,
        "monitorSamplingInterval": set_monitor_sampling_interval,
        "callbackTimeout": set_callback_timeout,
        "opConnectorSize": set_prefetch_size,
    }
    arguments.path("load", "file", file)
    try:
        with open(file, encoding="utf-8") as handle:
            values = json.load(handle)
    except FileNotFoundError as error:
        raise MissingFile(error.errno, "load: there is no such file of settings", str(file)) from None
    except (ValueError, RecursionError) as error:
        raise InputValueError(f"load: {file} cannot be read as JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"load: {file} must hold an object of settings, not {values!r:.80}")
    for key in _EARLIER.intersection(values):
        no_effect("load", key, values.pop(key), "pipelines have no such part")
    unknown = [key for key in values if key not in setters]
    if unknown:
        raise ValueError(f"load: unknown setting {unknown[0]!r} in {file}; known settings: {', '.join(setters)}")
    for key, value in values.items():
        setters[key](value)
