"""Programs that are run by `mycel launch`, several of them by the same ranks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.parallel.programs.several import BEGINS, ENDS

__all__ = ["Several", "launched"]

ROOT = Path(__file__).parents[2]
SEVERAL = Path(__file__).parent / "programs" / "several.py"


def launched(count: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `mycel launch` with so many ranks."""
    command = [sys.executable, "-m", "mycel", "launch", "-n", count, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, cwd=ROOT, timeout=300)


class Several:
    """What programs by their names printed, which `count` ranks have run one after the other.

    Each program is a path and its arguments.
    """

    def __init__(self, count: int, programs: Mapping[str, Sequence[object]]) -> None:
        words = [[name, *map(str, given)] for name, given in programs.items()]
        self.count, self.run = count, launched(count, SEVERAL, json.dumps(words))
        self.printed: defaultdict[str, str] = defaultdict(str)
        self.ended: defaultdict[str, int] = defaultdict(int)
        now: dict[str, str] = {}
        for line in self.run.stdout.splitlines(keepends=True):
            rank, text = re.fullmatch(r"(\[rank \d+\]) ?(.*)", line, re.S).groups()
            if text.startswith(BEGINS):
                now[rank] = text.removeprefix(BEGINS).strip()
            elif text.startswith(ENDS):
                self.ended[now.pop(rank)] += 1
            elif rank in now:
                self.printed[now[rank]] += line

    def __getitem__(self, name: str) -> str:
        """Return what a program printed, which has to have ended on all ranks."""
        assert self.ended[name] == self.count, self.run.stdout + self.run.stderr
        return self.printed[name]
