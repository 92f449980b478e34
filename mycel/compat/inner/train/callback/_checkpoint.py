"""`mindspore.train.callback._checkpoint`: the files that a program's own checkpoints go to."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from mycel.train.callback.checkpoint import _unused_prefix

__all__: list[str] = []


class CheckpointManager:
    """The checkpoints of one prefix in a directory, which a program keeps few of.

    `format` is the suffix of the files, "ckpt" or "safetensors".
    """

    def __init__(self, format: str = "ckpt") -> None:
        self._format = format
        self._files: list[str] = []

    @property
    def ckpoint_filelist(self) -> list[str]:
        """The files found by `update_ckpoint_filelist`, oldest first, as real paths."""
        return self._files

    @property
    def ckpoint_num(self) -> int:
        """How many files there are."""
        return len(self._files)

    def update_ckpoint_filelist(self, directory: str, prefix: str) -> None:
        """Look for the checkpoints ``prefix-EPOCH_STEP`` in a directory."""
        name = re.compile(rf"{re.escape(prefix)}-\d+_\d+\.{self._format}")
        found = [os.path.join(directory, n) for n in os.listdir(directory) if name.fullmatch(n)]
        self._files = [os.path.realpath(path) for path in sorted(found, key=os.path.getmtime)]

    def remove_ckpoint_file(self, file_name: str) -> None:
        """Delete a checkpoint; one that is gone already is no error."""
        with suppress(FileNotFoundError):
            os.remove(file_name)
        if file_name in self._files:
            self._files.remove(file_name)

    def remove_oldest_ckpoint_file(self) -> None:
        """Delete the oldest checkpoint found."""
        if self._files:
            self.remove_ckpoint_file(min(self._files, key=os.path.getmtime))

    def keep_one_ckpoint_per_minutes(self, minutes: float, cur_time: float) -> None:
        """Delete the checkpoints found that were written after `minutes` before `cur_time`."""
        for path in list(self._files):
            if cur_time - os.path.getmtime(path) < 60 * minutes:
                self.remove_ckpoint_file(path)


def _chg_ckpt_file_name_if_same_exist(directory: str, prefix: str, exception: bool = False) -> str:
    """Return a prefix of no checkpoints in a directory yet: `prefix`, or with a number."""
    return _unused_prefix(prefix, directory, "ckpt")
