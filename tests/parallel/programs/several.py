"""Programs that the same ranks run one after the other, as starting ranks takes seconds.

    mycel launch -n 4 tests/parallel/programs/several.py '[["NAME", "PROGRAM", "ARGUMENT"], ...]'

Each rank prints a line before and after each program. The first program that fails ends all.
"""

from __future__ import annotations

import json
import runpy
import sys

import mycel as ms

BEGINS, ENDS = "-- begins:", "-- ends:"


def main(programs: list[list[str]]) -> None:
    for name, path, *arguments in programs:
        mode = ms.get_context("mode")
        print(BEGINS, name, flush=True)
        sys.argv = [path, *arguments]
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        ms.reset_auto_parallel_context()
        ms.set_context(mode=mode)
        print(ENDS, name, flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
