"""A callback that stops training on request from outside: by a signal or by a file."""

from __future__ import annotations

import json
import os
import signal
from types import FrameType
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel.train.callback.base import Callback, RunContext
from mycel.train.serialization import save_checkpoint

__all__ = ["OnRequestExit"]


class OnRequestExit(Callback):
    """A callback that stops training after the step during which the process receives a signal, and
    saves the network.

    The signal's former handler is restored after training.

    Args:
        save_ckpt (bool): Whether a checkpoint is saved, ``rank_0/FILE_NAME_train.ckpt`` in
            `directory`, with `file_name` for FILE_NAME. Default: True.
        save_mindir (bool): Has no effect, which is logged. Default: True.
        file_name (str): The beginning of the file's name. Default: "Net".
        directory (str | None): The folder. Default: "./".
        config_file (str | None): A JSON file that also stops training once it holds
            ``{"GracefulShutdown": 1}``; it is read after every training step. Default: None.
        sig (int): The number of the signal.

    Raises:
        ValueError, TypeError: For other arguments.
    """

    def __init__(
        self,
        save_ckpt: bool = True,
        save_mindir: bool = True,
        file_name: str = "Net",
        directory: str | None = "./",
        config_file: str | None = None,
        sig: int = signal.SIGTERM,
    ) -> None:
        super().__init__()
        for name, flag in (("save_ckpt", save_ckpt), ("save_mindir", save_mindir)):
            arguments.flag("OnRequestExit", name, flag, error=ValueError)
        if not isinstance(file_name, str) or not file_name or "/" in file_name:
            raise ValueError(f"OnRequestExit: file_name must be a name without '/', not {file_name!r}")
        if directory is not None:
            arguments.path("OnRequestExit", "directory", directory)
        if (
            not isinstance(sig, int)
            or sig in (signal.SIGINT, getattr(signal, "SIGKILL", None))
            or sig not in signal.valid_signals()
        ):
            raise ValueError(f"OnRequestExit: sig must be a signal that can be handled, and not SIGINT, not {sig!r}")
        self.save_ckpt = save_ckpt
        self.save_mindir = save_mindir
        self.file_name = file_name
        self.directory = "./" if directory is None else directory
        self.config_file = config_file
        self.sig = sig
        self._former: Any = None
        self._requested = False

    def on_train_begin(self, run_context: RunContext) -> None:
        """Install the handler of the signal (only in the main thread of Python)."""
        self._requested = False
        self._former = signal.signal(self.sig, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._requested = True

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Ask the run to stop if that was requested."""
        if self._requested or self._file_says_so():
            self._requested = True
            run_context.request_stop()

    def _file_says_so(self) -> bool:
        if self.config_file is None or not os.path.isfile(self.config_file):
            return False
        with open(self.config_file, encoding="utf-8") as file:
            try:
                return bool(json.load(file).get("GracefulShutdown"))
            except (ValueError, AttributeError) as error:
                logger.warning("OnRequestExit: %s is not a JSON object: %s", self.config_file, error)
                return False

    def on_train_end(self, run_context: RunContext) -> None:
        """Save if the run was stopped from outside."""
        self._restore()
        if not self._requested:
            return
        if self.save_ckpt:
            folder = os.path.join(self.directory, "rank_0")
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, f"{self.file_name}_train.ckpt")
            save_checkpoint(run_context.original_args().train_network, path)
            logger.warning("OnRequestExit: training was stopped on request; the network is in %s", path)
        if self.save_mindir:
            logger.warning(
                "OnRequestExit: MindIR files are not supported; only a checkpoint is saved (save_mindir=False)"
            )

    def __exit__(self, *exception: Any) -> None:
        self._restore()

    def _restore(self) -> None:
        if self._former is not None:
            signal.signal(self.sig, self._former)
            self._former = None
