"""Checkpoints saved while training.

Files are called ``prefix-epoch_step.ckpt``, with the step counted within the epoch. If the
directory holds files of that prefix when a run begins, the run takes ``prefix_1`` (``prefix_2``,
...), so that it never overwrites or removes files of an earlier run.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.encryption import check_key
from mycel.train.callback.base import Callback, RunContext
from mycel.train.callback.best_checkpoints import VALUE, BestFiles
from mycel.train.saving_options import check_saving
from mycel.train.serialization import after_async_saves, finish_async_saves, save_checkpoint

__all__ = ["CheckpointConfig", "ModelCheckpoint"]

_COUNTERS = ("epoch_num", "step_num")
_POSITION = "dataset_state"
_NAMES = (*_COUNTERS, _POSITION)


class CheckpointConfig:
    """The settings of `ModelCheckpoint`: when to save, what to save, and how many files to keep.

    Args:
        save_checkpoint_steps (int | None): After how many training steps to save; 0 or None for
            seconds instead. Default: 1.
        save_checkpoint_seconds (int | None): After how many seconds to save. Default: 0.
        keep_checkpoint_max (int | None): How many of the newest files to keep; 0 or None for
            minutes instead. Default: 5.
        keep_checkpoint_per_n_minutes (int | None): Beside the newest file, one for every so many
            minutes is kept. Default: 0.
        integrated_save (bool): As in `save_checkpoint`. Default: True.
        async_save (bool): As in `save_checkpoint`. Default: False.
        saved_network (Cell | None): What is saved in place of the training network. Default: None.
        append_info (list[Any] | None): Additions: "epoch_num", "step_num", "dataset_state" (the
            position in the data as JSON, for `Dataset.set_init_state`), and dicts of numbers,
            strings, tensors and generators, whose values are read at each save. Default: None.
        enc_key (bytes | None): As in `save_checkpoint`. Default: None.
        enc_mode (str): As in `save_checkpoint`. Default: "AES-GCM".
        exception_save (bool): Whether a ``_breakpoint`` is saved when training fails, of a divided
            network the rank's parts. Default: False.
        crc_check (bool): As in `save_checkpoint`. Default: False.
        remove_redundancy (bool): Has no effect, which is logged. Default: False.
        format (str): "ckpt" or "safetensors". Default: "ckpt".
        **kwargs (Any): Further arguments, which have no effect either.

    Raises:
        ValueError, TypeError: For values that do not fit.

    Examples:
        >>> CheckpointConfig(save_checkpoint_steps=100, keep_checkpoint_max=3).keep_checkpoint_max
        3
    """

    def __init__(
        self,
        save_checkpoint_steps: int | None = 1,
        save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: int | None = 0,
        integrated_save: bool = True,
        async_save: Any = False,
        saved_network: Cell | None = None,
        append_info: list[Any] | None = None,
        enc_key: bytes | None = None,
        enc_mode: Any = "AES-GCM",
        exception_save: bool = False,
        crc_check: bool = False,
        remove_redundancy: bool = False,
        format: str = "ckpt",
        **kwargs: Any,
    ) -> None:
        counts = {
            "save_checkpoint_steps": save_checkpoint_steps,
            "save_checkpoint_seconds": save_checkpoint_seconds,
            "keep_checkpoint_max": keep_checkpoint_max,
            "keep_checkpoint_per_n_minutes": keep_checkpoint_per_n_minutes,
        }
        for name, value in counts.items():
            if value is not None:
                arguments.integer("CheckpointConfig", name, value, 0, numpy=False)
        if not any(counts.values()):
            raise ValueError(f"CheckpointConfig: {', '.join(counts)} cannot all be 0 or None")
        arguments.optional("CheckpointConfig", "saved_network", saved_network, Cell)
        check_saving("CheckpointConfig", async_save, crc_check, remove_redundancy, enc_mode, kwargs)
        if enc_key is not None:
            check_key(enc_key, enc_mode, "CheckpointConfig", "enc")
            if format != "ckpt":
                raise ValueError(
                    "CheckpointConfig: enc_key goes with format='ckpt'; safetensors files are not encrypted"
                )
        for name, flag in (("integrated_save", integrated_save), ("exception_save", exception_save)):
            arguments.flag("CheckpointConfig", name, flag)
        arguments.one_of("CheckpointConfig", "format", format, ("ckpt", "safetensors"))
        self.save_checkpoint_steps = save_checkpoint_steps or None
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds or None
        self.keep_checkpoint_max = keep_checkpoint_max or None
        self.keep_checkpoint_per_n_minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes or None
        self.integrated_save = integrated_save
        self.async_save = async_save
        self.saved_network = saved_network
        self.exception_save = exception_save
        self.crc_check = crc_check
        self.format = format
        self.enc_key, self.enc_mode = enc_key, enc_mode
        self._append_info = _checked_info(append_info)

    @property
    def append_dict(self) -> dict[str, Any] | None:
        """The additions of `append_info`, None without any; those named by text are
        0 until a save.
        """
        added: dict[str, Any] = {}
        for item in self._append_info:
            added.update({item: 0} if isinstance(item, str) else item)
        return added or None

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """Return the settings of when to save and which files to keep, as a dict."""
        names = (
            "save_checkpoint_steps",
            "save_checkpoint_seconds",
            "keep_checkpoint_max",
            "keep_checkpoint_per_n_minutes",
        )
        return {name: getattr(self, name) for name in (*names, "saved_network")}


def _position(params: Any) -> str:
    """Return the position in the data of a training as JSON."""
    dataset = params.train_dataset
    if not hasattr(dataset, "state_at"):
        raise TypeError(
            f"CheckpointConfig: append_info has {_POSITION!r}, and a {type(dataset).__name__} has no state_at; train "
            "on a dataset of mycel.dataset"
        )
    return json.dumps(dataset.state_at(params["first_row"] + params.cur_step_num))


def _checked_info(info: Any) -> list[Any]:
    if info is None:
        return []
    arguments.instance("CheckpointConfig", "append_info", info, list)
    for item in info:
        if isinstance(item, dict):
            for name, value in item.items():
                fits = isinstance(value, (int, float, str, Tensor, Parameter)) or hasattr(value, "get_state")
                if not isinstance(name, str) or not fits:
                    raise TypeError(
                        f"CheckpointConfig: append_info has {name!r}: {value!r}; dicts take names to int, float, bool, "
                        "str, "
                        "Tensor, Parameter or Generator"
                    )
        elif not isinstance(item, str):
            raise arguments.wrong_type("CheckpointConfig", "an element of append_info", "a str or dict", item)
        elif item not in _NAMES:
            raise ValueError(
                f"CheckpointConfig: append_info takes {', '.join(map(repr, _NAMES))} and dicts, not {item!r}"
            )
    return info


class ModelCheckpoint(Callback):
    """A callback that saves the training network with its optimizer's state, as a
    `CheckpointConfig` says.

    Files are ``directory/prefix-epoch_step.ckpt``. The last training step is always saved, even if
    training was stopped by Ctrl-C.

    With `monitor` exactly the `save_best` best files are kept, whatever `config` says of when to
    save and of how many to keep. Of equal values the earlier one stays, and NaN is never among the
    best. A run that goes on, with an initial epoch or step, goes on with the files of the earlier
    one; `best_ckpt_file_name` is the best of all.

    Args:
        prefix (str | Callable[..., str]): The beginning of names of files, or a function of the
            run's parameters. Default: "CKP".
        directory (str | os.PathLike[str] | Callable[..., str] | None): The folder, or a function of
            the run's parameters. Default: None.
        config (CheckpointConfig | None): When to save, what to save, and how many files to keep.
            Default: None.
        monitor (str | None): The quantity by which only the best epochs are saved: "loss",
            "eval_loss" or a metric of evaluations. Default: None.
        mode (str): Which values are better: "min", "max", or "auto" by the name, as for
            `EarlyStopping`. Default: "auto".
        save_best (int | None): How many of the best files are kept; None for 1. Default: None.

    Raises:
        ValueError, TypeError: For other arguments.

    Examples:
        >>> import tempfile, numpy as np, mycel as ms, mycel.dataset as ds
        >>> from mycel.train import Model, ModelCheckpoint
        >>> ones = np.ones((4, 1), np.float32)
        >>> data = ds.NumpySlicesDataset((ones, ones), ["x", "y"]).batch(2)
        >>> net = ms.nn.Dense(1, 1)
        >>> model = Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params()), metrics={"mae"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     best = ModelCheckpoint("net", folder, monitor="mae", save_best=2)
        ...     _ = model.fit(5, data, data, callbacks=best)
        ...     len(os.listdir(folder))
        2
    """

    writes_later = True

    def __init__(
        self,
        prefix: Any = "CKP",
        directory: Any = None,
        config: CheckpointConfig | None = None,
        *,
        monitor: str | None = None,
        mode: str = "auto",
        save_best: int | None = None,
    ) -> None:
        super().__init__()
        if not callable(prefix) and (not isinstance(prefix, str) or not prefix or "/" in prefix):
            raise ValueError(
                f"ModelCheckpoint: prefix must be a name without '/' or a function that gives one, not {prefix!r}"
            )
        if directory is not None and not callable(directory) and not isinstance(directory, (str, os.PathLike)):
            raise arguments.wrong_type("ModelCheckpoint", "directory", "a path or a function that gives one", directory)
        arguments.optional("ModelCheckpoint", "config", config, CheckpointConfig)
        self._given_prefix: str | Callable[[Any], str] = prefix
        self._given_directory = directory
        self._config = config or CheckpointConfig()
        if monitor is None and save_best is not None:
            raise ValueError("ModelCheckpoint: save_best wants monitor, the name of what is compared, as 'eval_loss'")
        self._best = None if monitor is None else BestFiles(monitor, mode, 1 if save_best is None else save_best)
        self._latest = ""
        self._params: Any = None
        self._epoch_step = -1
        self._reset("CKP", ".")

    def _reset(self, prefix: str, directory: str) -> None:
        self._prefix = prefix
        self._directory = directory
        self._saved_step: int | None = None
        self._begin_step = 0
        self._saved_at = self._kept_at = time.monotonic()
        self._files: list[str] = []

    @property
    def latest_ckpt_file_name(self) -> str:
        """The path of the newest checkpoint; empty before the first."""
        return self._latest

    @property
    def best_ckpt_file_name(self) -> str:
        """The path of the checkpoint with the best value of `monitor`; empty before the first."""
        return "" if self._best is None else self._best.best

    def on_train_begin(self, run_context: RunContext) -> None:
        """Create the directory, and choose a prefix that no file in it has."""
        params = run_context.original_args()
        prefix = self._given_prefix(params) if callable(self._given_prefix) else self._given_prefix
        given = self._given_directory(params) if callable(self._given_directory) else self._given_directory
        directory = os.path.realpath(given if given is not None else os.getcwd())
        os.makedirs(directory, exist_ok=True)
        config, best = self._config, self._best
        unused = _unused_prefix(prefix, directory, config.format)
        if best is not None:
            best.begin()
            if params.get("first_row", 0) or params.get("initial_step", 0):
                unused = _last_prefix(prefix, unused)
                best.go_on(directory, unused, config.format, config.enc_key, config.enc_mode)
        self._reset(unused, directory)
        self._begin_step = params.get("cur_step_num", 0)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Save if a checkpoint is due."""
        params, config = run_context.original_args(), self._config
        if self._best is not None:
            return
        if config.save_checkpoint_steps:
            last = self._begin_step if self._saved_step is None else self._saved_step
            due = params.cur_step_num - last >= config.save_checkpoint_steps
        else:
            due = bool(config.save_checkpoint_seconds) and (
                time.monotonic() - self._saved_at >= float(config.save_checkpoint_seconds or 0)
            )
        if due:
            self._save(params)

    def on_train_end(self, run_context: RunContext) -> None:
        """Save the last step if it has not been saved."""
        self._save_last(run_context.original_args())

    def _save_last(self, params: Any) -> None:
        if params.get("step_running"):
            logger.warning(
                "ModelCheckpoint: the last step was interrupted halfway and is not saved; the newest is %s",
                self._latest or "none",
            )
        elif (
            self._best is None
            and params.get("cur_step_num", 0) > self._begin_step
            and self._saved_step != params.cur_step_num
        ):
            self._save(params)
        finish_async_saves()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        params = self._params
        if isinstance(error, Exception) and self._config.exception_save and params:
            if params.get("step_running"):
                logger.warning("ModelCheckpoint: the step that failed may be half in the breakpoint that is saved")
            self._save(params, "_breakpoint")
            finish_async_saves()
        elif error is not None and not isinstance(error, Exception) and params:
            # Ctrl-C, or the end of the program: nothing is wrong with what was done.
            self._save_last(params)
        return None

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Remember the run, so that it can be saved if it fails."""
        self._params = run_context.original_args()
        self._epoch_step = self._params.cur_step_num

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Save an epoch that is one of the best, where these are kept."""
        value = None if self._best is None else self._best.value(run_context)
        if value is not None:
            self._save(run_context.original_args(), watched=value)

    def _save(self, params: Any, ending: str = "", watched: float | None = None) -> None:
        config = self._config
        step = (params.cur_step_num - 1) % params.batch_num + 1
        # An epoch that has only begun is not that of the last step.
        epoch = params.cur_epoch_num - (params.cur_step_num == self._epoch_step)
        path = os.path.join(self._directory, f"{self._prefix}-{epoch}_{step}{ending}.{config.format}")
        added = config.append_dict or {}
        for name, value in zip(_COUNTERS, (epoch, params.cur_step_num)):
            if name in added:
                added[name] = value
        if watched is not None:
            added[VALUE] = watched
        if _POSITION in added:
            added[_POSITION] = _position(params)
        save_checkpoint(
            config.saved_network or params.train_network,
            path,
            # A rank that fails does so alone, so that nobody would join parts with it.
            config.integrated_save and not ending,
            config.async_save,
            added,
            config.enc_key,
            config.enc_mode,
            crc_check=config.crc_check,
            format=config.format,
        )
        self._saved_step, self._saved_at = params.cur_step_num, time.monotonic()
        self._latest = params["latest_ckpt_file"] = path
        params["last_save_ckpt_step"] = params.cur_step_num
        if self._best is not None and watched is not None:
            surplus = self._best.keep(watched, path)
            if surplus:
                after_async_saves(lambda: _remove(surplus, path))
        elif not ending:
            self._keep(path)

    def _keep(self, path: str) -> None:
        """Remove the files beyond those to keep; a file is removed only after its successor is
        complete.
        """
        config = self._config
        self._files.append(path)
        if config.keep_checkpoint_max:
            surplus = self._files[: -config.keep_checkpoint_max]
        elif config.keep_checkpoint_per_n_minutes:
            # The last file in the list is the newest and not yet one of those that stay.
            surplus = self._files[-2:-1] if len(self._files) > 2 else []
            if time.monotonic() - self._kept_at >= 60 * config.keep_checkpoint_per_n_minutes:
                self._kept_at, surplus = time.monotonic(), []
        else:
            surplus = self._files[:-1]
        for old in surplus:
            self._files.remove(old)
        if surplus:
            after_async_saves(lambda: _remove(surplus, path))


def _remove(old_files: list[str], successor: str) -> None:
    if not os.path.exists(successor):
        return
    for old in old_files:
        try:
            os.remove(old)
        except FileNotFoundError:
            logger.info("ModelCheckpoint: the old checkpoint %s was removed already, as ranks do that share it", old)
        except OSError as error:
            logger.warning("ModelCheckpoint: the old checkpoint %s cannot be removed: %s", old, error.strerror)


def _last_prefix(prefix: str, unused: str) -> str:
    """Return the prefix of the last run, where `unused` is that of the next one."""
    number = int(unused.removeprefix(f"{prefix}_")) if unused != prefix else 0
    return f"{prefix}_{number - 1}" if number > 1 else prefix


def _unused_prefix(prefix: str, directory: str, format: str) -> str:
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-\d+_\d+(?:_breakpoint)?\.{format}")
    used = [match for match in map(pattern.fullmatch, os.listdir(directory)) if match]
    return f"{prefix}_{max(int(match[1] or 0) for match in used) + 1}" if used else prefix
