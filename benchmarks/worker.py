"""A worker of the comparison: python worker.py FRAMEWORK MODE THREADS, with the framework's own
interpreter.
"""

from __future__ import annotations

import importlib
import sys
import time

from cases import CASES
from protocol import serve

if __name__ == "__main__":
    framework, mode, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    module = "mindspore_side" if framework in ("mycel", "mindspore") else f"{framework}_side"
    started = time.perf_counter()
    side = importlib.import_module(module).make(framework, mode, threads)
    serve(side, CASES, time.perf_counter() - started)
