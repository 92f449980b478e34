"""MindSpore's profilers over `mycel.profile`: `profile` and `Profiler`, with steps, schedules and
handlers.

A session goes from step to step and does in each what its schedule says. A profile begins with the
first step to be recorded (or to be warmed up for; that profile is discarded when recording begins).
It ends with a step to be saved: then it becomes the `result` of the session, and the handler is
called with the session.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.ignored_settings import unused
from mycel.profiler import mark
from mycel.profiler.options import ProfilerActivity, _ExperimentalConfig, told
from mycel.profiler.output import OUTPUT, STEP, statistics, write_all
from mycel.profiler.profiled import profile as whole_profile
from mycel.profiler.schedules import ProfilerAction

__all__ = ["EnvProfiler", "Profiler", "analyse", "profile", "tensorboard_trace_handler"]

_FOLDER = "./data"


class _Session:
    """The common part of both profilers.

    `schedule` maps the number of a step to its `ProfilerAction` (None: record all),
    `on_trace_ready` is called with the session when something has been recorded, `start_profile`
    starts at once, and `name` is the one in messages.
    """

    def __init__(self, schedule: Any, on_trace_ready: Any, start_profile: bool, name: str) -> None:
        for what, value in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if value is not None:
                arguments.function(name, what, value, "a function or None")
        self._name = name
        self._schedule, self._handler = schedule, on_trace_ready
        self._step = 0
        self._begun = 0
        self._running = False
        self._taking: whole_profile | None = None
        self._action = ProfilerAction.NONE
        self.metadata: dict[str, Any] = {}
        self.result: whole_profile | None = None
        if start_profile:
            self.start()

    def _wanted(self) -> ProfilerAction:
        if self._schedule is None:
            return ProfilerAction.RECORD
        action: ProfilerAction = self._schedule(self._step)
        return action

    def start(self) -> None:
        """Begin; the present step is the first."""
        if self._running:
            raise RuntimeError(f"{self._name}: it has begun already; stop it first")
        self._running = True
        self._enter(self._wanted())

    def step(self) -> None:
        """End a step and begin the next."""
        if not self._running:
            raise RuntimeError(f"{self._name}: step is called before start, or after stop")
        self._leave()
        self._step += 1
        self._enter(self._wanted())

    def stop(self) -> None:
        """End; the handler gets the recorded profile."""
        if not self._running:
            raise RuntimeError(f"{self._name}: it has not begun; start it first")
        recorded = self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._leave(last=True)
        self._running = False
        if self._taking is not None:
            taken, self._taking = self._taking.stop(), None
            if recorded:
                self._ready(taken)

    def _enter(self, action: ProfilerAction) -> None:
        fresh = self._action is ProfilerAction.WARM_UP and action is not ProfilerAction.WARM_UP
        if self._taking is not None and (fresh or action is ProfilerAction.NONE):
            self._taking.stop()
            self._taking = None
        if self._taking is None and action is not ProfilerAction.NONE:
            self._taking = whole_profile().start()
        self._action = action
        self._begun = time.monotonic_ns()

    def _leave(self, last: bool = False) -> None:
        if self._taking is None:
            return
        if not last or self._schedule is not None or self._step:
            mark.add(self._begun, time.monotonic_ns(), f"{STEP}{self._step}")
        if self._action is ProfilerAction.RECORD_AND_SAVE:
            taken, self._taking = self._taking.stop(), None
            self._action = ProfilerAction.NONE
            self._ready(taken)

    def _ready(self, taken: whole_profile) -> None:
        self.result = taken
        if self._handler is not None:
            self._handler(self)

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text with the profile, by name.

        Raises TypeError if either is not a string.
        """
        for what, given in (("key", key), ("value", value)):
            arguments.text("add_metadata", what, given)
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Keep the content of a JSON text with the profile, by name.

        Raises ValueError for a text that is not JSON.
        """
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("add_metadata_json: key and value must be strings")
        self.metadata[key] = json.loads(value)

    def __enter__(self) -> Any:
        if not self._running:
            self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._running:
            self.stop()


class profile(_Session):
    """MindSpore's profile of a block or a loop.

    The other options have no effect, and are logged as such where they ask for something that is
    not there.

    Args:
        activities (Iterable[ProfilerActivity] | None): Are for other hardware. Default: None.
        with_stack (bool): Name what is always noted. Default: False.
        profile_memory (bool): Name what is always noted. Default: False.
        data_process (bool): Name what is always noted. Default: False.
        parallel_strategy (bool): Are for other hardware. Default: False.
        start_profile (bool): Begins at once, not at `start`. Default: True.
        hbm_ddr (bool): Are for other hardware. Default: False.
        pcie (bool): Are for other hardware. Default: False.
        sync_enable (bool): Are for other hardware. Default: True.
        record_shapes (bool): Name what is always noted. Default: False.
        schedule (Callable[[int], ProfilerAction] | None): Without a `schedule` everything is
            recorded from the start to the end; with one, `step` says when a step of the loop ends.
            Default: None.
        on_trace_ready (Callable[..., Any] | None): When something has been recorded
            `on_trace_ready` is called with this object, whose `result` has the kernels, lines,
            phases and memory (`mycel.profile`); `tensorboard_trace_handler` writes them into files.
            Default: None.
        experimental_config (_ExperimentalConfig | None): Are for other hardware. Default: None.

    Examples:
        >>> import mycel as ms
        >>> from mycel.profiler import profile, schedule
        >>> counts = []
        >>> plan = schedule(wait=1, active=1, repeat=1)
        >>> count = lambda p: counts.append(len(p.result.kernels))
        >>> with profile(schedule=plan, on_trace_ready=count) as prof:
        ...     for _ in range(3):
        ...         y = ms.Tensor([1.0]) * 2
        ...         prof.step()
        >>> counts
        [1]
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        with_stack: bool = False,
        profile_memory: bool = False,
        data_process: bool = False,
        parallel_strategy: bool = False,
        start_profile: bool = True,
        hbm_ddr: bool = False,
        pcie: bool = False,
        sync_enable: bool = True,
        record_shapes: bool = False,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        experimental_config: _ExperimentalConfig | None = None,
    ) -> None:
        given = {
            "activities": activities,
            "with_stack": with_stack,
            "profile_memory": profile_memory,
            "data_process": data_process,
            "parallel_strategy": parallel_strategy,
            "hbm_ddr": hbm_ddr,
            "pcie": pcie,
            "sync_enable": sync_enable,
            "record_shapes": record_shapes,
        }
        told("profile", given, experimental_config)
        super().__init__(schedule, on_trace_ready, start_profile, "profile")


class Profiler(_Session):
    """MindSpore's older profiler, which begins at once (unless ``start_profile=False``).

    `analyse` ends it and writes its files under `output_path`, by default "./data".
    """

    def __init__(self, **kwargs: Any) -> None:
        told("Profiler", kwargs, kwargs.get("experimental_config"))
        self.output_path = str(kwargs.get("output_path", _FOLDER))
        self.written: list[Path] = []
        super().__init__(
            kwargs.get("schedule"), kwargs.get("on_trace_ready"), bool(kwargs.get("start_profile", True)), "Profiler"
        )

    def analyse(
        self,
        offline_path: str | None = None,
        pretty: bool = False,
        step_list: Sequence[int] | None = None,
        mode: str = "sync",
    ) -> None:
        """End the profile if it has not ended, and write its files.

        Args:
            offline_path (str | None): A folder, for `offline_analyse`. Default: None.
            pretty (bool): Whether the trace is indented. Default: False.
            step_list (Sequence[int] | None): The numbers of the training steps to write; None for
                all. Default: None.
            mode (str): "async" is the same as "sync". Default: "sync".
        """
        arguments.one_of("analyse", "mode", mode, ("sync", "async"))
        if offline_path is not None:
            Profiler.offline_analyse(offline_path, pretty, step_list)
            return
        if self._running:
            self.stop()
        if self.result is None:
            raise RuntimeError("analyse: nothing has been recorded; start the profiler before what is to be profiled")
        made = write_all(self.result.report, self.output_path, None, self.metadata, pretty, step_list)
        self.written.append(made)
        logger.info("the profile is in %s", made)

    @classmethod
    def offline_analyse(
        cls,
        path: str,
        pretty: bool = False,
        step_list: Sequence[int] | None = None,
        data_simplification: bool = True,
    ) -> None:
        """Say in the log whether there is a profile in a folder, which was analysed when it was
        written, or an error, that there is none.

        Args:
            path (str): The folder.
            pretty (bool): Has no effect, which is logged. Default: False.
            step_list (Sequence[int] | None): Has no effect, which is logged. Default: None.
            data_simplification (bool): Has no effect, which is logged. Default: True.
        """
        unused(
            "offline_analyse",
            "the files were written when the profile was taken",
            pretty=(pretty, False),
            step_list=(step_list, None),
            data_simplification=(data_simplification, True),
        )
        _look("offline_analyse", path)

    def op_analyse(self, op_name: str | Sequence[str], device_id: int | None = None) -> str:
        """Return the kernels in which operations of these names take part, as JSON: by name a list
        of dictionaries.

        `device_id` has no effect, which is logged.
        """
        unused("op_analyse", "there is one device", device_id=(device_id, None))
        if self.result is None:
            raise RuntimeError("op_analyse: nothing has been recorded; call stop or analyse first")
        names = [op_name] if isinstance(op_name, str) else list(op_name)
        found = {
            name: statistics(
                k
                for k in self.result.kernels
                if name in k.primitives or name.lower() in k.name.lower().replace("(", " ").replace(")", " ").split()
            )
            for name in names
        }
        return json.dumps(found)


def analyse(
    profiler_path: str,
    max_process_number: int = 1,
    pretty: bool = False,
    step_list: Sequence[int] | None = None,
    data_simplification: bool = True,
) -> None:
    """Do what `Profiler.offline_analyse` does for the profiles under a path.

    Args:
        profiler_path (str): The folder.
        max_process_number (int): Has no effect, as the others. Default: 1.
        pretty (bool): Whether traces would be indented. Default: False.
        step_list (Sequence[int] | None): The steps that would be analysed. Default: None.
        data_simplification (bool): Whether what was recorded would be removed. Default: True.

    Examples:
        >>> import mycel as ms, tempfile
        >>> ms.profiler.analyse(tempfile.mkdtemp())
    """
    _look("analyse", profiler_path)


def _look(what: str, path: str) -> None:
    if any(Path(path).glob(f"**/{OUTPUT}/trace_view.json")):
        logger.info("%s: the profile under %s was analysed when it was written", what, path)
    else:
        logger.error("%s: there is no profile under %s", what, path)


class EnvProfiler:
    """The profiler that the environment variable MS_PROFILER_OPTIONS asks for: a JSON object with
    "start": true and the options of `Profiler`.
    """

    NOT_SUPPORTED_PARAMS = ["schedule", "on_trace_ready"]
    profiler: Profiler | None = None

    @classmethod
    def init_profiler(cls) -> None:
        """Begin, if the environment says so."""
        text = os.environ.get("MS_PROFILER_OPTIONS")
        if not text or cls.profiler is not None:
            return
        options = json.loads(text)
        refused = [name for name in cls.NOT_SUPPORTED_PARAMS if name in options]
        if refused:
            raise ValueError(f"MS_PROFILER_OPTIONS: {refused[0]} is a function and cannot be given in the environment")
        if options.pop("start", False):
            cls.profiler = Profiler(**options)

    def analyse(self) -> None:
        """End the profile and write its files."""
        if EnvProfiler.profiler is not None:
            EnvProfiler.profiler.analyse()
            EnvProfiler.profiler = None


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[Any], None]:
    """Return a handler for `on_trace_ready` that writes a profile's files.

    Args:
        dir_name (str | None): The folder; None for "./data". Default: None.
        worker_name (str | None): What the folder in it is named after. Default: None.
        analyse_flag (bool): Changes nothing: writing is quick. Default: True.
        async_mode (bool): Changes nothing: writing is quick. Default: False.

    Returns:
        Callable[[Any], None]: The handler.
    """
    arguments.optional("tensorboard_trace_handler", "dir_name", dir_name, (str, os.PathLike), "a path")
    unused(
        "tensorboard_trace_handler",
        "the files are written at once",
        analyse_flag=(analyse_flag, True),
        async_mode=(async_mode, False),
    )

    def handler(session: Any) -> None:
        taken: whole_profile | None = session.result
        if taken is not None:
            made = write_all(taken.report, dir_name or _FOLDER, worker_name, session.metadata)
            logger.info("the profile is in %s", made)

    return handler
