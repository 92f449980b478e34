"""Ask a package what it does with wrong arguments.

``python ask.py mindspore CALLS.json ANSWERS.json`` runs the cases of each call (`cases.py`), a
process a call, which is started again behind a case that ends it or takes too long.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import resource
import select
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.compat.refusals import (
    cases,
    values,
)

SECONDS = 6
MEMORY = 24 << 30
MOST_OPTIONAL = 10


def optional(package: Any, path: str, entry: dict[str, Any]) -> dict[str, str]:
    """Return the defaults of parameters that a call does not give, as texts."""
    try:
        target = getattr(package.Tensor, path[7:]) if path.startswith("Tensor.") else cases.resolved(package, path)
        parameters = list(inspect.signature(target).parameters.values())
    except (AttributeError, TypeError, ValueError):
        return {}
    found = {}
    for parameter in parameters[len(entry["args"]) :]:
        if parameter.name in entry["kwargs"] or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY or parameter.default is parameter.empty:
            continue
        try:
            found[parameter.name] = values.written(parameter.default, package, {})
        except values.Unwritable:
            found[parameter.name] = "None"
    return dict(list(found.items())[:MOST_OPTIONAL])


def child(package: Any, names: dict[str, Any], path: str, entry: dict[str, Any], skip: int, out: int) -> None:
    """Run the cases of an entry from number `skip`, and write a line for each."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir(tempfile.mkdtemp())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    runner = cases.Runner(package, names)
    for number, (name, call, then, method) in enumerate(cases.entry_cases(path, entry)):
        if number >= skip:
            os.write(out, f"{number} {name}\t".encode())
            os.write(out, f"{runner.run(path, call, then, method)}\n".encode())
            if number == 0 and runner.last is not None:
                os.write(out, f"- why\t{runner.last!r:.200}\n".replace("\n", " ").encode() + b"\n")
    os._exit(0)


def ask(package: Any, names: dict[str, Any], path: str, entry: dict[str, Any]) -> dict[str, str]:
    """Return the answers to the cases of an entry, by their names; "!" ended the process."""
    answers: dict[str, str] = {}
    skip, again = 0, 0
    while again < 5:
        read, write = os.pipe()
        process = os.fork()
        if not process:
            os.close(read)
            try:
                child(package, names, path, entry, skip, write)
            finally:
                os._exit(1)
        os.close(write)
        data = b""
        while select.select([read], [], [], SECONDS)[0]:
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            data += piece
        os.close(read)
        try:
            os.killpg(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status = os.waitpid(process, 0)
        lines = data.decode(errors="replace").split("\n")
        for line in lines:
            if "\t" not in line:
                continue
            head, answer = line.split("\t", 1)
            number, name = head.split(" ", 1)
            if number != "-":
                skip = int(number) + 1
            answers[name] = answer or "!"
        if status == 0 and lines[-1] == "":
            break
        again += 1
        if not lines or "\t" not in data.decode(errors="replace"):
            break
    return answers


def main() -> None:
    name, calls, out = sys.argv[1:4]
    package = importlib.import_module(name)
    names = values.space(package)
    with open(calls) as file:
        table = json.load(file)
    with open(out, "a") as file:
        for path, entry in table:
            if "optional" not in entry:
                entry["optional"] = optional(package, path, entry)
            answers = ask(package, names, path, entry)
            file.write(json.dumps([path, entry, answers]) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
