"""What modules of the package import, and when: read from their sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests import sources

PACKAGE = sources.PACKAGE
# When an import runs: with its module, in a function, or never (it is for type checkers).
AT_LOAD, IN_FUNCTION, FOR_TYPES = "at load", "in a function", "for types"


class Import(NamedTuple):
    """`importer` imports `imported`, at some time."""

    importer: str
    imported: str
    when: str


@cache
def modules() -> dict[str, Path]:
    """The files of the package by the names of their modules."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(["mycel", *path.relative_to(PACKAGE).with_suffix("").parts])
        found[name.removesuffix(".__init__")] = path
    return found


def _targets(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name in modules())
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        for a in node.names:
            name = f"{node.module}.{a.name}"
            if name in modules():
                yield name
            elif node.module in modules():
                yield node.module


def _within(body: Iterable[ast.AST], when: str) -> Iterator[tuple[ast.stmt, str]]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, when
        elif isinstance(node, ast.If) and sources.for_types(node):
            yield from _within(node.body, FOR_TYPES)
            yield from _within(node.orelse, when)
        else:
            in_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and when != FOR_TYPES
            yield from _within(ast.iter_child_nodes(node), IN_FUNCTION if in_function else when)


@cache
def imports() -> frozenset[Import]:
    """All imports of modules of the package by others."""
    outlines = sources.outlines()
    return frozenset(
        Import(name, target, when)
        for name, path in modules().items()
        for node, when in _within(outlines[path.relative_to(PACKAGE).as_posix()].body, AT_LOAD)
        for target in _targets(node)
        if target != name
    )


@cache
def loaded_at_start() -> frozenset[str]:
    """The modules that `import mycel` loads."""
    program = "import sys, mycel; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program] if sys.version_info >= (3, 11) else [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(done.stdout.split()) & modules().keys()


def packages_around(imported: str, importer: str) -> list[str]:
    """The packages that are loaded before a module, but for those that the importer lies in."""
    parts = imported.split(".")
    outer = [".".join(parts[:n]) for n in range(2, len(parts))]
    return [name for name in outer if importer != name and not importer.startswith(f"{name}.")]


def reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    """What can be reached from a node in one step or more."""
    found: set[str] = set()
    stack = [start]
    while stack:
        for name in edges.get(stack.pop(), ()):
            if name not in found:
                found.add(name)
                stack.append(name)
    return found


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of nodes that reach each other, each sorted: the strongly connected components."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in edges.get(name, ()):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                found.append(sorted(component))

    for name in edges:
        if name not in number:
            visit(name)
    return sorted(found)
