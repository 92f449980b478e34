"""Store what the programs print with MindSpore.

    python ask_programs.py [PROGRAM ...]

Run with an interpreter that has MindSpore 2.10.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile

import programs

if __name__ == "__main__":
    for program in sys.argv[1:] or programs.NAMES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                programs.run(program)
            programs.answer(program).write_text(printed.getvalue(), encoding="utf-8")
