"""Functions parsed by themselves are what they are in their whole file."""

from __future__ import annotations

import ast
import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mycel._src.compiler.ir.dims
import mycel._src.staging.frontend.source_code.function_source
import mycel._src.tensors.core.tensor
import mycel.nn.wrap
from mycel._src.staging.frontend.source_code import function_source
from mycel._src.staging.frontend.source_code.function_source import NoSource, definition_of

ODD = '''"""Functions in odd shapes."""
import functools


def ends_in_dead_code(a):
    return b if a else c
# a comment at the margin
    b = 1
    c = 2


def says_much():
    """A text
that goes to the margin
    """
    return """more
at the margin""" + str(
1
)


@functools.lru_cache(
    maxsize=None
)
def decorated(x, *, y=(1,
2)):
    if x:
        return y


    # after empty lines
    else:
        pass


class Outer:
    class Inner:
        def method(self):
            def inside(p):
                return lambda q: self.__private + q
            return inside

        @property
        def value(self): return self.__x

    def one_line(self): return 1; a = 2
    async def later(self):
        await self
class Tabs:
\tdef with_tabs(self):
\t\treturn 2
last = lambda a: (lambda b: a + b)
def no_line_break(): return 5'''


def functions_of(code: types.CodeType, scope: dict[str, Any]) -> Iterator[types.FunctionType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_flags & 2 and not constant.co_freevars:
                yield types.FunctionType(constant, scope)
            yield from functions_of(constant, scope)


def compared(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare all functions of a file both ways; return how many were parsed by themselves."""
    code, alone = compile(path.read_text(), str(path), "exec"), function_source._by_itself
    count = 0
    for function in functions_of(code, {"__file__": str(path), "__name__": "m"}):
        # From Python 3.14 on annotations are functions, which have no source of their own.
        if function.__name__ == "__annotate__" or function.__name__.startswith("<") and function.__name__ != "<lambda>":
            continue
        count += alone(function.__code__, path.read_text().splitlines(keepends=True)) is not None
        found = definition_of(function)
        with monkeypatch.context() as patch:
            patch.setattr(function_source, "_by_itself", lambda *_: None)
            whole = definition_of(function)
        assert ast.dump(found[0], include_attributes=True) == ast.dump(whole[0], include_attributes=True)
        assert found[1] == whole[1]
    return count


@pytest.mark.parametrize(
    "module",
    [
        mycel._src.staging.frontend.source_code.function_source,
        mycel.nn.wrap,
        mycel._src.compiler.ir.dims,
        mycel._src.tensors.core.tensor,
    ],
)
def test_functions_of_the_library(module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.__file__ is not None
    found = compared(Path(module.__file__), monkeypatch)
    assert found > 5 or sys.version_info < (3, 11)


def test_functions_in_odd_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "odd.py"
    path.write_text(ODD)
    found = compared(path, monkeypatch)
    assert found >= 6 or sys.version_info < (3, 11)
    spec = importlib.util.spec_from_file_location("odd", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    node, owner = definition_of(module.Outer.Inner.method)
    assert isinstance(node, ast.FunctionDef) and node.name == "method" and owner == "Inner"
    node, _ = definition_of(module.ends_in_dead_code)
    assert isinstance(node, ast.FunctionDef) and len(node.body) == 3


def test_a_file_that_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    path.write_text("def f(x):\n    return x\n")
    scope: dict[str, Any] = {}
    exec(compile("\n\ndef f(x):\n    return x\n", str(path), "exec"), scope)
    with pytest.raises(NoSource, match="has changed"):
        definition_of(scope["f"])
