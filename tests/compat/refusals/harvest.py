"""Find calls that a package accepts, by running the examples of its docstrings.

Run with an interpreter that has the package: ``python harvest.py mindspore OUT.json``. Each example
runs in a process of its own; the arguments of its calls of the documented function or class are
written down as text (`values.py`), not the example.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.compat.refusals import values

SECONDS = 25
MEMORY = 24 << 30
MOST = 3


def targets(package: Any, names: dict[str, str]) -> dict[str, Any]:
    """Return the public functions and classes, one name each, and the methods of tensors."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for module in ("Tensor", *values.MODULES, ""):
        listed = names["class:Tensor" if module == "Tensor" else f"mindspore.{module}".rstrip(".")].split()
        home = (
            package.Tensor
            if module == "Tensor"
            else importlib.import_module(f"{package.__name__}.{module}".rstrip("."))
        )
        for name in listed:
            value = getattr(home, name, None)
            if name.startswith("__") or not callable(value) or inspect.ismodule(value) or id(value) in seen:
                continue
            if not getattr(value, "__doc__", None) or isinstance(value, type) and issubclass(value, BaseException):
                continue
            seen.add(id(value))
            found[f"{module}.{name}" if module else name] = value
    return found


class Marks(ast.NodeTransformer):
    """Route every call through `__called__`."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "print", "locals"):
            return node
        called = ast.Name("__called__", ast.Load())
        return ast.copy_location(ast.Call(called, [node.func, *node.args], node.keywords), node)


class Recorder:
    """Records the calls of one target."""

    def __init__(self, package: Any, path: str, target: Any, paths: dict[int, str]) -> None:
        self.package, self.path, self.target, self.paths = package, path, target, paths
        self.made: dict[int, str] = {}
        self.kept: list[Any] = []
        self.calls: list[dict[str, Any]] = []
        self.open: dict[int, dict[str, Any]] = {}

    def text(self, args: Any, kwargs: Any) -> tuple[list[str], dict[str, str]]:
        def write(v: Any) -> str:
            return values.written(v, self.package, self.made)

        return [write(v) for v in args], {k: write(v) for k, v in kwargs.items()}

    def called(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        before = len(self.calls)
        try:
            self.note(function, args, kwargs)
        except (values.Unwritable, Exception) as error:
            self.calls.append({"lost": f"{type(error).__name__}: {error}"[:80]}) if function is self.target else None
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if len(self.calls) > before:
                self.calls[-1]["failed"] = type(error).__name__
            raise
        self.kept.append(result)
        name = self.paths.get(id(function))
        if name and isinstance(function, type) and not isinstance(result, self.package.Tensor):
            try:
                texts, words = self.text(args, kwargs)
                self.made[id(result)] = f"ms.{name}({', '.join([*texts, *(f'{k}={v}' for k, v in words.items())])})"
            except values.Unwritable:
                pass
        if function is self.target and isinstance(function, type) and self.calls and len(self.calls) > before:
            self.open[id(result)] = self.calls[-1]
        return result

    def note(self, function: Any, args: Any, kwargs: Any) -> None:
        if function is self.target:
            texts, words = self.text(args, kwargs)
            self.calls.append({"args": texts, "kwargs": words})
        elif id(function) in self.open and "then" not in self.open[id(function)]:
            texts, words = self.text(args, kwargs)
            self.open[id(function)].update(then=texts, then_kwargs=words)
        elif self.path.startswith("Tensor.") and getattr(function, "__name__", "") == self.path[7:]:
            owner = getattr(function, "__self__", None)
            if isinstance(owner, self.package.Tensor):
                texts, words = self.text((owner, *args), kwargs)
                self.calls.append({"args": texts, "kwargs": words})
        else:
            owner = getattr(function, "__self__", None)
            if (
                owner is not None
                and id(owner) in self.open
                and function.__name__ in ("update", "eval", "construct", "step")
            ):
                entry = self.open[id(owner)]
                texts, words = self.text(args, kwargs)
                entry.setdefault("methods", []).append([function.__name__, texts, words])


def record(package: Any, path: str, target: Any, paths: dict[int, str]) -> list[dict[str, Any]]:
    """Run the examples of a docstring and return the calls they make of the target."""
    recorder = Recorder(package, path, target, paths)
    names: dict[str, Any] = {"__called__": recorder.called, "__name__": "__main__"}
    exec(
        f"import {package.__name__}, {package.__name__} as ms, numpy as np\n"
        f"from {package.__name__} import Tensor, Parameter, ops, nn, mint, dtype as mstype\n"
        f"from {package.__name__} import dataset as ds, context\n",
        names,
    )
    for example in doctest.DocTestParser().get_examples(target.__doc__):
        try:
            tree = ast.fix_missing_locations(Marks().visit(ast.parse(example.source)))
            exec(compile(tree, "<example>", "exec"), names)
        except Exception:
            pass
        if len([c for c in recorder.calls if "lost" not in c]) >= 12:
            break
    return recorder.calls


def chosen(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a few calls of different forms, accepted ones first."""
    good = sorted((c for c in calls if "lost" not in c), key=lambda c: "failed" in c)
    forms: dict[str, dict[str, Any]] = {}
    for call in good:
        form = repr(([t[:4] for t in call["args"]], sorted(call["kwargs"]), [t[:4] for t in call.get("then", ())]))
        forms.setdefault(form, call)
    return list(forms.values())[:MOST]


def main() -> None:
    name, out = sys.argv[1:3]
    package = importlib.import_module(name)
    values.space(package)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "data", "public_names.json")) as file:
        found = targets(package, json.load(file))
    wanted = sys.argv[3:]
    paths = {id(v): k for k, v in found.items()}
    results: dict[str, Any] = {}
    for path, target in found.items():
        if wanted and not any(path.startswith(w) for w in wanted):
            continue
        if ">>>" not in target.__doc__:
            continue
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.chdir(tempfile.mkdtemp())
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            calls = record(package, path, target, paths)
            os.write(write, json.dumps([chosen(calls), calls[:2] if not chosen(calls) else []]).encode())
            os._exit(0)
        os.close(write)
        data, end = b"", time.time() + SECONDS
        while time.time() < end:
            ready, _, _ = select.select([read], [], [], max(0, end - time.time()))
            if not ready:
                break
            piece = os.read(read, 1 << 20)
            if not piece:
                break
            data += piece
        os.close(read)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(child, 0)
        try:
            results[path] = json.loads(data)
        except ValueError:
            results[path] = [[], ["died"]]
    with open(out, "w") as file:
        json.dump(results, file, indent=0)
    print(len(found), len(results), sum(bool(v[0]) for v in results.values()))


if __name__ == "__main__":
    main()
