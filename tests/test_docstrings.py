"""Docstrings say what a newcomer asks first: what a function does, and what its parameters are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests import sources

Function = ast.FunctionDef | ast.AsyncFunctionDef
# What begins a noun phrase, where a verb should be: "Return the sum", not "The sum".
NO_VERBS = re.compile(r"(The|A|An|Whether|What|Where|How|Which|Why|Each|Every)\b(?! \()")
ATTRIBUTES = {"property", "cached_property", "setter"}


def functions(tree: ast.AST, owner: ast.ClassDef | None = None) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """Yield functions and methods, those inside functions aside, each with its class."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, owner
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, node)
        elif not isinstance(node, ast.expr):
            yield from functions(node, owner)


def decorators(function: Function) -> set[str]:
    calls = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return {d.attr if isinstance(d, ast.Attribute) else d.id for d in calls if isinstance(d, ast.Attribute | ast.Name)}


def parameters(function: Function) -> list[str]:
    given = function.args
    names = [p.arg for p in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [n for n in names if n not in ("self", "cls") and not n.startswith("_")]


def test_modules_are_described_without_words_of_the_house():
    """Words that the glossary does not have, and that say nothing to a newcomer."""
    private = re.compile(r"\b(doors?|rooms?|wings?|storeys?|spots?|undone|resting|poetry|elsewhere)\b", re.I)
    found = [
        f"{file}: {text.splitlines()[0]}"
        for file, tree in sources.outlines().items()
        if (text := ast.get_docstring(tree)) is not None and private.search(text.split("\n\n")[0])
    ]
    assert not found, "\n".join(found)


def test_docstrings_begin_with_a_verb():
    found = [
        f"{file}:{function.lineno}: {text.splitlines()[0]}"
        for file, tree in sources.outlines().items()
        for function, _ in functions(tree)
        if not decorators(function) & ATTRIBUTES
        and (text := ast.get_docstring(function)) is not None
        and NO_VERBS.match(text)
    ]
    assert not found, "\n".join(found)


def test_parameters_are_explained_where_there_are_more_than_three():
    found = []
    for file, function, owner in (
        (file, *found) for file, tree in sources.outlines().items() for found in functions(tree)
    ):
        names = parameters(function)
        if len(names) <= 3 or (function.name.startswith("_") and function.name != "__init__"):
            continue
        if "overload" in decorators(function):
            continue
        text = ast.get_docstring(function) or ""
        if function.name == "__init__" and owner is not None:
            text += ast.get_docstring(owner) or ""
        if not text and function.name in ("construct", "__call__"):
            continue
        missing = [n for n in names if not re.search(rf"(?<!\w){re.escape(n)}(?!\w)", text)]
        if missing:
            found.append(f"{file}:{function.lineno}: {function.name} says nothing of {', '.join(missing)}")
    assert not found, "\n".join(found)
