"""The sources of the package, read and parsed once for all tests of a process that look at them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import mycel
from mycel._src.foundation.python_runtime.garbage_collection import left_alone

PACKAGE = Path(mycel.__file__).parent
Function = (ast.FunctionDef, ast.AsyncFunctionDef)
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def texts() -> dict[str, str]:
    """The texts of the package's files by their paths in it."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def parsed(text: str) -> ast.Module:
    """The tree of a source. The garbage collector rests: all nodes live until the tree is there."""
    with left_alone():
        return ast.parse(text)


def trees(fit: Callable[[str], object]) -> Iterator[tuple[str, ast.Module]]:
    """Paths and trees of the package's files whose texts are `fit`. No tree is kept: all together
    take half a gigabyte.
    """
    for path, text in texts().items():
        if fit(text):
            yield path, parsed(text)


def for_types(node: ast.If) -> bool:
    """Whether a condition asks for type checkers."""
    return any("TYPE_CHECKING" in (getattr(n, "id", ""), getattr(n, "attr", "")) for n in ast.walk(node.test))


def _kept(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """The definitions and imports among statements and what is in their blocks."""
    for node in body:
        if isinstance(node, (*Function, ast.ClassDef)):
            shorten(node)
            yield node
        elif isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.If) and for_types(node)):
            yield node
        else:
            for field in BODIES:
                yield from _kept(getattr(node, field, ()))


def shorten(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Leave of the statements of a node the docstring, definitions and imports, wherever they are
    in it; what is for type checkers stays whole.
    """
    described = ast.get_docstring(node, clean=False) is not None
    node.body = [*node.body[:described], *_kept(node.body[described:])]


def outline(text: str) -> ast.Module:
    """The tree of a source without what its functions compute."""
    with left_alone():
        tree = ast.parse(text)
        shorten(tree)
    return tree


@cache
def outlines() -> dict[str, ast.Module]:
    """The outlines of the package's files by their paths in it."""
    with left_alone():
        return {path: outline(text) for path, text in texts().items()}
