"""The profiling of a training that is already running: its steps are chosen in a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from mycel._src.foundation.files import atomic_files as whole
from mycel._src.foundation.log import logger
from mycel.profiler.output import write_all
from mycel.profiler.profiled import profile
from mycel.train import Callback

__all__ = ["DynamicProfilerMonitor"]

_FILE = "profiler_config.json"
_DEFAULTS = {"start_step": -1, "stop_step": -1}


class DynamicProfilerMonitor(Callback):
    """A callback that profiles the training steps that a file names.

    In a hand-written loop, call `step` at the end of each step.

    Args:
        cfg_path (str | None): The folder of the file ``profiler_config.json``, such as
            ``{"start_step": 10, "stop_step": 12}``. Default: None.
        output_path (str): The folder of the profiles. Default: "./dyn_profile_data".
        poll_interval (float): After how many seconds the file is looked at again, so that it can be
            edited while the training runs; it is made if there is none. Default: 2.
        **kwargs (Any): Has no effect, which is logged.
    """

    def __init__(
        self,
        cfg_path: str | None = None,
        output_path: str = "./dyn_profile_data",
        poll_interval: float = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not isinstance(cfg_path, str) or not cfg_path:
            raise ValueError(f"DynamicProfilerMonitor: cfg_path must name the folder of {_FILE}, not {cfg_path!r}")
        if not isinstance(poll_interval, (int, float)) or poll_interval <= 0:
            raise ValueError(
                f"DynamicProfilerMonitor: poll_interval must be a positive number of seconds, not {poll_interval!r}"
            )
        if kwargs:
            logger.warning("DynamicProfilerMonitor: %s has no effect", ", ".join(sorted(kwargs)))
        self.path, self.output_path, self.poll_interval = Path(cfg_path) / _FILE, output_path, poll_interval
        self._looked = float("-inf")
        self._wanted = (-1, -1)
        self._done: tuple[int, int] | None = None
        self._taking: profile | None = None
        self._number = 1
        self.written: list[Path] = []
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            whole.write(self.path, json.dumps(_DEFAULTS, indent=1).encode())

    def _look(self) -> None:
        if self._taking is not None or time.monotonic() - self._looked < self.poll_interval:
            return
        self._looked = time.monotonic()
        try:
            found = json.loads(self.path.read_text())
            wanted = (int(found.get("start_step", -1)), int(found.get("stop_step", -1)))
        except (OSError, ValueError, AttributeError, TypeError) as error:
            logger.warning(
                "DynamicProfilerMonitor: %s cannot be read (%s); it is looked at again later", self.path, error
            )
            return
        if wanted != self._done:
            self._wanted = wanted

    def _before(self, number: int) -> None:
        self._look()
        first, last = self._wanted
        if self._taking is None and 0 <= first <= number <= last:
            self._taking = profile().start()

    def _after(self, number: int) -> None:
        if self._taking is not None and number >= self._wanted[1]:
            self._end()

    def _end(self) -> None:
        assert self._taking is not None
        taken, self._taking = self._taking.stop(), None
        self.written.append(write_all(taken.report, self.output_path, f"start{self._wanted[0]}_stop{self._wanted[1]}"))
        self._done, self._wanted = self._wanted, (-1, -1)

    def step_begin(self, run_context: Any) -> None:
        self._before(run_context.original_args().cur_step_num)

    def step_end(self, run_context: Any) -> None:
        self._after(run_context.original_args().cur_step_num)

    def end(self, run_context: Any) -> None:
        if self._taking is not None:
            self._end()

    def step(self) -> None:
        """End a step of a hand-written loop; steps are counted from 1."""
        self._after(self._number)
        self._number += 1
        self._before(self._number)
