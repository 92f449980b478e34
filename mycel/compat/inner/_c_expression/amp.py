"""`mindspore._c_expression.amp`: the stack of settings of mixed precision that are in force."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, Optional

from mycel._src.foundation.settings.ignored_settings import without_effect

__all__: list[str] = []

List = list[tuple[str, list[int]]]


class AmpLevel(enum.IntEnum):
    """The levels of mixed precision."""

    AmpO0 = 0
    AmpO1 = 1
    AmpO2 = 2
    AmpO3 = 3
    AmpAuto = 4

    def __str__(self) -> str:
        return f"AmpLevel.{self.name}"


class AmpStrategy(NamedTuple):
    """A level, the narrow type, and the operations that are computed in it and not in it."""

    level: AmpLevel
    dtype: Any
    white: List
    black: List

    def get_amp_level(self) -> AmpLevel:
        """Return the level."""
        return self.level

    def get_amp_dtype(self) -> Any:
        """Return the narrow type."""
        return self.dtype

    def get_white_list(self) -> List:
        """Return the operations that are computed in the narrow type, with their arguments."""
        return self.white

    def get_black_list(self) -> List:
        """Return the operations that are not."""
        return self.black


_stack: list[AmpStrategy] = []


def create_amp_strategy(arg0: AmpLevel, arg1: Any, arg2: List, arg3: List) -> AmpStrategy:
    """Return settings: the level `arg0`, the narrow type `arg1`, the operations that are computed
    in it, `arg2`, and those that are not, `arg3`.
    """
    return AmpStrategy(AmpLevel(arg0), arg1, list(arg2), list(arg3))


def push_amp_strategy(arg0: AmpLevel, arg1: Any, arg2: List, arg3: List) -> None:
    """Put settings on the stack.

    Operations do not ask for them: a network is converted by `auto_mixed_precision`. `arg0`,
    `arg1`, `arg2` and `arg3` are those of `create_amp_strategy`.
    """
    without_effect("push_amp_strategy", "networks are converted by mindspore.amp.auto_mixed_precision")
    _stack.append(create_amp_strategy(arg0, arg1, arg2, arg3))


def pop_amp_strategy() -> None:
    """Take the last settings off the stack, if there are any."""
    if _stack:
        _stack.pop()


def get_curr_amp_strategy() -> AmpStrategy | None:
    """Return the last settings of the stack, None if it is empty."""
    return _stack[-1] if _stack else None
