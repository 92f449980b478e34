"""Options of saving that checkpoints and callbacks share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.ignored_settings import without_effect

__all__ = ["check_saving"]

_WITHOUT_EFFECT = {
    "incremental": "a checkpoint always has everything",
    "map_param_inc": "a checkpoint always has everything",
    "global_step_num": "no cluster takes snapshots of the steps",
}


def check_saving(
    function: str, async_save: Any, crc_check: Any, remove_redundancy: Any, enc_mode: Any, others: Mapping[str, Any]
) -> None:
    """Check arguments of saving, and log those that have no effect.

    `function` is named in messages; `async_save`, `crc_check`, `remove_redundancy` and `enc_mode`
    are those of `save_checkpoint`, and `others` its further ones. Raises TypeError or ValueError,
    as MindSpore does.
    """
    if isinstance(async_save, str):
        arguments.one_of(function, "async_save", async_save, ("thread", "process"))
    elif not isinstance(async_save, bool):
        raise arguments.wrong_type(function, "async_save", "a bool, 'thread' or 'process'", async_save)
    arguments.flag(function, "crc_check", crc_check, error=ValueError)
    if arguments.flag(function, "remove_redundancy", remove_redundancy, error=ValueError):
        without_effect(f"{function}(remove_redundancy=True)", "what is saved is all that a rank has")
    if not isinstance(enc_mode, str):
        raise arguments.wrong_type(function, "enc_mode", "a string", enc_mode, ValueError)
    for name, value in others.items():
        known = _WITHOUT_EFFECT.get(name)
        if known is None:
            logger.warning("%s: there is no argument %r; it has no effect", function, name)
        elif value:
            without_effect(f"{function}({name}={value!r})", known)
