"""Ask MindSpore for the results of the programs of ``gradient_cases.py``.

Run with a Python that has MindSpore: it writes ``expected_gradients.json`` beside this file. Each
program runs in a process of its own, as one that is refused may end the process.
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def answer(ms: Any, cases: Any, source: str, mode: str, folder: str) -> str:
    """Return the result of a program as text, or the class of the exception that it raised.

    `ms` is MindSpore, `cases` the module of the programs, `source` and `mode` the program and
    `folder` where its file is written.
    """
    log: list[str] = []
    show = lambda value: cases.show(value, ms.Tensor)
    try:
        ms.set_context(mode=cases.MODES[mode])
        path = os.path.join(folder, f"case{os.getpid()}.py")
        Path(path).write_text(source)
        module = types.ModuleType(f"case{os.getpid()}")
        sys.modules[module.__name__] = module
        names = {"ms": ms, "np": np, "ops": ms.ops, "nn": ms.nn, "Tensor": ms.Tensor, "log": log, "show": show}
        module.__dict__.update(names, Parameter=ms.Parameter, ParameterTuple=ms.ParameterTuple)
        exec(compile(source, path, "exec"), module.__dict__)
        result = show(module.run())
    except Exception as error:
        result = f"!{type(error).__name__}"
    return " | ".join([result, *log])


def asked(ms: Any, cases: Any, source: str, mode: str, folder: str) -> str:
    """Return the `answer` of a child process; "!killed" where it did not end by itself.

    The arguments are those of `answer`.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.chdir(folder)
        signal.alarm(60)
        os.write(writing, answer(ms, cases, source, mode, folder).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return text or "!killed"


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    programs, mindspore = importlib.import_module("gradient_cases"), importlib.import_module("mindspore")
    with tempfile.TemporaryDirectory() as place:
        found = {
            f"{name}, {mode}": asked(mindspore, programs, source, mode, place)
            for name, (source, modes) in programs.cases().items()
            for mode in modes
        }
    HERE.joinpath("expected_gradients.json").write_text(json.dumps(found, indent=0) + "\n")
