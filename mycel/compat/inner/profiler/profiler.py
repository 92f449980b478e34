"""`mindspore.profiler.profiler`: files of a profile made again."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel.profiler import Profiler

__all__ = ["analyse"]


def analyse(
    profiler_path: str,
    max_process_number: int = 1,
    pretty: bool = False,
    step_list: Any = None,
    data_simplification: bool = True,
) -> None:
    """Write the files of a profile again, from what was recorded in a folder.

    `profiler_path` is the folder; `pretty` and `step_list` are those of `Profiler.analyse`.
    `max_process_number` and `data_simplification` have no effect: one process writes the files, and
    what was recorded stays.
    """
    if arguments.integer("analyse", "max_process_number", max_process_number, 1) != 1:
        without_effect("analyse(max_process_number=...)", "one process writes the files")
    if arguments.flag("analyse", "data_simplification", data_simplification) is False:
        without_effect("analyse(data_simplification=False)", "what was recorded always stays")
    Profiler.offline_analyse(profiler_path, pretty, step_list)
