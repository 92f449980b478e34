"""MindSpore's further settings of how pipelines run; `mycel.dataset.config` has them.

Some are for what pipelines here do not have, or do in any case: their values are kept, and setting
one that would change something says once that it changes nothing.
"""

from __future__ import annotations

import os
from enum import IntEnum
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.files import fsspec_files
from mycel._src.foundation.files.remote_copies import NoRoom
from mycel._src.foundation.log import logger
from mycel._src.foundation.logged_once import no_effect
from mycel.dataset.send_limit import SendingLimit

__all__ = [
    "ErrorSamplesMode",
    "get_auto_offload",
    "get_autotune_interval",
    "get_dynamic_shape",
    "get_enable_autotune",
    "get_enable_watchdog",
    "get_error_samples_mode",
    "get_fast_recovery",
    "get_keep_remote_files",
    "get_multiprocessing_start_method",
    "get_numa_enable",
    "get_video_backend",
    "set_auto_offload",
    "set_autotune_interval",
    "set_dynamic_shape",
    "set_enable_autotune",
    "set_enable_watchdog",
    "set_error_samples_mode",
    "set_fast_recovery",
    "set_keep_remote_files",
    "set_multiprocessing_start_method",
    "set_numa_enable",
    "set_sending_batches",
    "set_video_backend",
]

INT32_MAX = 2**31 - 1


class ErrorSamplesMode(IntEnum):
    """What `map` does with a row for which an operation raises an error.

    RETURN raises it, SKIP leaves the row out, and REPLACE gives another row in its place at the end
    of the epoch.
    """

    RETURN = 0
    REPLACE = 1
    SKIP = 2


_options: dict[str, Any] = {
    "numa": False,
    "keep_remote_files": False,
    "autotune": False,
    "autotune_file": None,
    "autotune_interval": 0,
    "offload": False,
    "watchdog": True,
    "fast_recovery": True,
    "dynamic_shape": False,
    "start_method": "forkserver",
    "video": "CPU",
    "error_samples": ErrorSamplesMode.RETURN,
}


def check_integer(setting: str, value: Any, low: int, high: int) -> int:
    """Return a value from `low` to `high`; raise TypeError for no integer, else ValueError.

    `setting` is named in messages.
    """
    found = arguments.integer(setting, "the value", value, numpy=False)
    if not low <= found <= high:
        raise ValueError(f"{setting}: {found} is not within the required range [{low}, {high}]")
    return found


def check_bool(setting: str, value: Any) -> bool:
    """Return a value; raise TypeError where it is no bool. `setting` is named in messages."""
    return arguments.flag(setting, "the value", value)


def _switch(setting: str, name: str, value: Any, usual: bool, why: str, warns: bool = False) -> None:
    _options[name] = check_bool(setting, value)
    if value is not usual:
        no_effect(setting, "enable", value, why, warns)


def _choice(setting: str, name: str, value: Any, known: tuple[str, ...], why: str | None) -> None:
    _options[name] = arguments.choice(setting, "the value", value, known)
    if value != known[0] and why is not None:
        no_effect(setting, "value", value, why)


def set_numa_enable(numa_enable: bool) -> None:
    """Accept MindSpore's switch for binding workers to a part of the memory."""
    _switch("set_numa_enable", "numa", numa_enable, False, "the system places threads", True)


def get_numa_enable() -> bool:
    """Return the value last given to `set_numa_enable`."""
    return bool(_options["numa"])


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Set whether numbers of workers are tuned while a pipeline runs.

    * `enable`: whether they are. Operations that do not say how many workers they want then have
      several, whose threads call their functions; `set_autotune_interval` says how often the
      numbers change.
    * `filepath_prefix`: the beginning of the name of a file, which ends in the number of this rank
      and ".json". It is written after each change with the tuned pipeline, which `deserialize`
      makes again; without it none is written.
    """
    arguments.optional("set_enable_autotune", "filepath_prefix", filepath_prefix, str)
    if filepath_prefix == "":
        raise RuntimeError("set_enable_autotune: filepath_prefix is empty")
    if enable is True and filepath_prefix is not None and not os.path.isdir(os.path.dirname(filepath_prefix) or "."):
        raise RuntimeError(f"set_enable_autotune: there is no folder for filepath_prefix {filepath_prefix!r}")
    _switch("set_enable_autotune", "autotune", enable, enable, "")
    _options["autotune_file"] = filepath_prefix


def get_enable_autotune() -> bool:
    """Return the value last given to `set_enable_autotune`."""
    return bool(_options["autotune"])


def autotune_file() -> str | None:
    """Return the name of the file for tuned pipelines, or None."""
    prefix = _options["autotune_file"]
    return None if prefix is None else f"{prefix}_{os.environ.get('RANK_ID', '0')}.json"


def set_autotune_interval(interval: int) -> None:
    """Set after how many steps autotune changes numbers of workers; 0 is once an epoch."""
    _options["autotune_interval"] = check_integer("set_autotune_interval", interval, 0, INT32_MAX)


def get_autotune_interval() -> int:
    """Return the value last given to `set_autotune_interval`."""
    return int(_options["autotune_interval"])


def set_auto_offload(offload: bool) -> None:
    """Set whether each `map` has `offload=True` that does not say anything else."""
    _switch("set_auto_offload", "offload", offload, offload, "")


def get_auto_offload() -> bool:
    """Return the value last given to `set_auto_offload`."""
    return bool(_options["offload"])


def set_enable_watchdog(enable: bool) -> None:
    """Set whether worker processes are watched; by default they are.

    A worker that takes longer than `set_multiprocessing_timeout_interval` says is reported with its
    stack. That a worker died is noticed in any case.
    """
    _switch("set_enable_watchdog", "watchdog", enable, enable, "")


def get_enable_watchdog() -> bool:
    """Return the value last given to `set_enable_watchdog`."""
    return bool(_options["watchdog"])


def set_fast_recovery(fast_recovery: bool) -> None:
    """Accept MindSpore's choice of how a pipeline resumes after `set_init_step`.

    Pipelines here always resume fast, and with the same random numbers as without a break, which is
    what MindSpore's slow recovery is for.
    """
    _switch("set_fast_recovery", "fast_recovery", fast_recovery, True, "pipelines resume fast and give the same rows")


def get_fast_recovery() -> bool:
    """Return the value last given to `set_fast_recovery`."""
    return bool(_options["fast_recovery"])


def set_dynamic_shape(is_dynamic: bool) -> None:
    """Accept MindSpore's switch for batches of several shapes, which need no switch here."""
    _switch("set_dynamic_shape", "dynamic_shape", is_dynamic, False, "batches of several shapes need no switch")


def get_dynamic_shape() -> bool:
    """Return the value last given to `set_dynamic_shape`."""
    return bool(_options["dynamic_shape"])


def set_multiprocessing_start_method(start_method: str = "fork") -> None:
    """Set how worker processes start: "forkserver", "spawn" or "fork".

    By default a fork server starts them: a process that imports what they need, and that has none
    of the program's threads. With "spawn" each is a fresh interpreter, with "fork" a copy of the
    program. The first two receive functions and sources as pickles, which may hold functions and
    classes of the script; only "fork" needs none.
    """
    known = ("forkserver", "spawn", "fork")
    _choice("set_multiprocessing_start_method", "start_method", start_method, known, None)


def get_multiprocessing_start_method() -> str:
    """Return how worker processes start: "forkserver" unless another way was set."""
    return str(_options["start_method"])


def set_video_backend(backend: str) -> None:
    """Accept MindSpore's choice of what decodes videos, "CPU" or "Ascend"."""
    _choice("set_video_backend", "video", backend, ("CPU", "Ascend"), "videos are decoded on the CPU")


def get_video_backend() -> str:
    """Return the value last given to `set_video_backend`."""
    return str(_options["video"])


# The limit that those who send batches wait for.
sending = SendingLimit()


def set_sending_batches(batch_num: int) -> None:
    """Set how many batches of each epoch may be sent ahead to a training that sinks them.

    At this number sending waits until a greater one is set, from another thread or a callback; 0,
    the default, sets no limit. It holds for `Dataset.device_que`, and for `Model.train` with
    `dataset_sink_mode`. Raises TypeError for anything but an integer, and ValueError below 0.
    """
    arguments.integer("set_sending_batches", "batch_num", batch_num, numpy=False)
    if batch_num < 0:
        raise ValueError(f"set_sending_batches: batch_num must be at least 0, not {batch_num}")
    sending.set(batch_num)


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """Set what `map` does with rows for which an operation raises an error.

    >>> import mycel.dataset as ds
    >>> ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.SKIP)
    >>> numbers = ds.NumpySlicesDataset([1, 0, 2], ["x"], shuffle=False)
    >>> halves = numbers.map(lambda x: 2 // int(x), "x")
    >>> [int(x) for x, in halves.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [2, 1]
    >>> ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.RETURN)
    """
    arguments.instance("set_error_samples_mode", "error_samples_mode", error_samples_mode, ErrorSamplesMode)
    _options["error_samples"] = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    """Return what `map` does with rows for which an operation raises an error."""
    mode: ErrorSamplesMode = _options["error_samples"]
    return mode


def set_keep_remote_files(keep: bool) -> None:
    """Set whether sources that are made later copy files that fsspec reaches to this machine.

    Copies lie in the folder `copies` of the cache (`MYCEL_CACHE`), whole; a file that changes is
    copied again. Those that no process uses are removed where there is no room for new ones
    (`MYCEL_COPIES`). Without it files are read where they are.

    >>> from mycel.dataset import config
    >>> config.set_keep_remote_files(False)
    >>> config.get_keep_remote_files()
    False
    """
    _options["keep_remote_files"] = check_bool("set_keep_remote_files", keep)


def get_keep_remote_files() -> bool:
    """Return whether sources copy files that fsspec reaches to this machine."""
    return bool(_options["keep_remote_files"])


def kept(operation: str, path: str) -> str:
    """Return the path at which a source reads a file: that of a copy, if copies are kept.

    `operation` is named where a store fails, in a ValueError.
    """
    if not _options["keep_remote_files"] or not fsspec_files.is_remote(path):
        return path
    try:
        return fsspec_files.copied(path)
    except NoRoom as error:
        logger.warning("%s: it is read where it is: %s", operation, error)
        return path
    except OSError as error:
        raise ValueError(f"{operation}: {error}") from error
