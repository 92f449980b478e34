"""BackupAndRestore: resume a training run that was interrupted."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from mycel._src.foundation import arguments
from mycel.train.callback.base import Callback, RunContext
from mycel.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = ["BackupAndRestore"]


class BackupAndRestore(Callback):
    """A callback that keeps the training network and its optimizer's state in
    ``backup_dir/backup.ckpt``, and resumes from that file if there is one.

    `save_freq` is "epoch" or a number of epochs. With `delete_checkpoint` the file is removed when
    training has finished. Raises ValueError for other options.

    >>> BackupAndRestore("backup", save_freq=0)
    Traceback (most recent call last):
    ...
    ValueError: BackupAndRestore: save_freq ('epoch' or epochs) must be at least 1, not 0
    """

    def __init__(self, backup_dir: str, save_freq: Any = "epoch", delete_checkpoint: bool = True) -> None:
        super().__init__()
        if not str(arguments.path("BackupAndRestore", "backup_dir", backup_dir)):
            raise ValueError("BackupAndRestore: backup_dir is empty")
        if save_freq != "epoch":
            arguments.integer("BackupAndRestore", "save_freq ('epoch' or epochs)", save_freq, 1)
        arguments.flag("BackupAndRestore", "delete_checkpoint", delete_checkpoint)
        self.save_freq = 1 if save_freq == "epoch" else save_freq
        self.delete_checkpoint = delete_checkpoint
        self.backup_dir = os.path.realpath(backup_dir)
        self.backup_file = os.path.join(self.backup_dir, "backup.ckpt")

    def on_train_begin(self, run_context: RunContext) -> None:
        """Load the backup if there is one."""
        os.makedirs(self.backup_dir, exist_ok=True)
        if os.path.isfile(self.backup_file):
            load_param_into_net(run_context.original_args().train_network, load_checkpoint(self.backup_file))

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Save the network if this epoch is one to be saved."""
        if run_context.original_args().cur_epoch_num % self.save_freq == 0:
            self._save(run_context)

    def _save(self, run_context: RunContext) -> None:
        save_checkpoint(run_context.original_args().train_network, self.backup_file)

    def on_train_end(self, run_context: RunContext) -> None:
        """Remove the backup, unless the run was stopped: then it goes on later."""
        if self.delete_checkpoint and os.path.isfile(self.backup_file) and not run_context.get_stop_requested():
            with suppress(FileNotFoundError):  # another rank may have been here first
                os.remove(self.backup_file)
