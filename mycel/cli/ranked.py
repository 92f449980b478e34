"""One rank of a launch: runs the script, and tells the launcher why it ends.

`mycel launch` starts one for each rank, by `mycel.cli.launch.ranked`.
"""

from __future__ import annotations

import io
import os
import runpy
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from mycel._src.compiler.transport import rank_status

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Run a script as Python would, with `import mindspore` answered unless `arguments` begin with
    --plain.
    """
    rank_status.end_with_parent()
    cores = os.environ.pop("MYCEL_CORES", "")
    if cores:
        os.sched_setaffinity(0, {int(c) for c in cores.split(",")})
    rank_status.begin()
    for stream in (sys.stdout, sys.stderr):
        # The launcher shows lines as they come.
        if isinstance(stream, io.TextIOWrapper) and stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            stream.reconfigure(line_buffering=True)
    plain = arguments[0] == "--plain"
    script, *rest = arguments[1:] if plain else arguments
    sys.argv = [script, *rest]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        if not plain:
            from mycel import compat

            compat.install()
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            rank_status.failed(end)
        raise
