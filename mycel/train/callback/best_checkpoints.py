"""Keeps the best checkpoints of a run, by a watched quantity.

Each file has its value in it, under `VALUE`, so that a run that goes on reads the values of the
files that the earlier one kept.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel.train.callback.base import RunContext
from mycel.train.callback.early_stopping import Watcher
from mycel.train.checkpoint_format import CheckpointError
from mycel.train.serialization import load_checkpoint

__all__ = ["VALUE", "BestFiles"]

VALUE = "monitored_value"


class BestFiles:
    """The `most` files with the best values of `monitor`; of equal values the earlier ones stay.

    `mode` says which values are better: "min", "max", or "auto" by the name, as for
    `EarlyStopping`. NaN is never among the best.
    """

    def __init__(self, monitor: Any, mode: str, most: Any) -> None:
        self._watcher = Watcher(monitor, 0.0, 0, False, mode, "ModelCheckpoint")
        self._most = arguments.integer("ModelCheckpoint", "save_best", most, 1, numpy=False)
        # The best first.
        self._kept: list[tuple[float, str]] = []

    @property
    def best(self) -> str:
        """The path of the best file; empty before the first."""
        return self._kept[0][1] if self._kept else ""

    def begin(self) -> None:
        """Forget the files of another run."""
        self._kept.clear()

    def go_on(self, directory: str, prefix: str, format: str, key: Any, mode: Any) -> None:
        """Take in the files that an earlier part of this run has kept.

        They are those of `prefix` and `format` in `directory`; `key` and `mode` decrypt them.
        """
        pattern = re.compile(rf"{re.escape(prefix)}-(\d+)_(\d+)\.{format}")
        found = sorted((int(m[1]), int(m[2]), m[0]) for m in map(pattern.fullmatch, os.listdir(directory)) if m)
        for _, _, name in found:
            path = os.path.join(directory, name)
            try:
                held = load_checkpoint(
                    path, format=format, dec_key=key, dec_mode=mode, choice_func=lambda n: n == VALUE
                )
            except (CheckpointError, ValueError, OSError) as error:
                logger.warning("ModelCheckpoint: %s is not taken for one of the best files: %s", path, error)
                continue
            if VALUE in held:
                self._enter(float(held[VALUE]), path)

    def value(self, run_context: RunContext) -> float | None:
        """Return the value of this epoch if it is one of the best, else None."""
        value = self._watcher._watched(run_context)
        if value is None or math.isnan(value):
            return None
        worst = self._kept[-1][0] if len(self._kept) >= self._most else None
        return value if worst is None or self._watcher._improves(value, worst) else None

    def _enter(self, value: float, path: str) -> None:
        self._kept = [known for known in self._kept if known[1] != path]
        at = sum(not self._watcher._improves(value, known) for known, _ in self._kept)
        self._kept.insert(at, (value, path))

    def keep(self, value: float, path: str) -> list[str]:
        """Enter a file that was saved, and return those that are no longer among the best."""
        self._enter(value, path)
        surplus = [old for _, old in self._kept[self._most :]]
        del self._kept[self._most :]
        return surplus
