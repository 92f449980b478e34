"""The choice of the steps of a loop that are profiled."""

from __future__ import annotations

from enum import Enum
from typing import Any

from mycel._src.foundation.log import logger

__all__ = ["ProfilerAction", "schedule"]


class ProfilerAction(Enum):
    """What to do in a step: nothing, run the profiler but discard its notes, keep them, or keep
    them and give the profile to the handler when the step ends.
    """

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """A plan of the steps to profile.

    An instance gives the `ProfilerAction` of a step's number. Values that are not whole numbers in
    range are replaced by the defaults, with a warning, as in MindSpore.

    Args:
        wait (int): How many training steps of a cycle are not profiled.
        active (int): How many are profiled.
        warmup (int): How many are profiled, but discarded. Default: 0.
        repeat (int): How many cycles; 0 for without end. Default: 0.
        skip_first (int): How many training steps come before the first cycle. Default: 0.

    Examples:
        >>> plan = schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARM_UP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """

    def __init__(self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> None:
        self.wait = _checked("wait", wait, 0, 0)
        self.active = _checked("active", active, 1, 1)
        self.warmup = _checked("warmup", warmup, 0, 0)
        self.repeat = _checked("repeat", repeat, 0, 0)
        self.skip_first = _checked("skip_first", skip_first, 0, 0)
        if not self.warmup:
            logger.info("schedule: without warm-up steps the first profiled step bears what begins with the profile")

    def __call__(self, step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"schedule: the number of a step is at least 0, not {step}")
        if step < self.skip_first:
            return ProfilerAction.NONE
        length = self.wait + self.warmup + self.active
        round, place = divmod(step - self.skip_first, length)
        if (self.repeat and round >= self.repeat) or place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    def __repr__(self) -> str:
        return (
            f"Schedule(wait={self.wait}, active={self.active}, warmup={self.warmup}, repeat={self.repeat}, "
            f"skip_first={self.skip_first})"
        )

    def to_dict(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {name: getattr(self, name) for name in ("wait", "active", "warmup", "repeat", "skip_first")}


def _checked(name: str, value: Any, least: int, default: int) -> int:
    if type(value) is int and value >= least:
        return value
    logger.warning(
        "schedule: %s must be a whole number of at least %d, not %r; %d is used", name, least, value, default
    )
    return default
