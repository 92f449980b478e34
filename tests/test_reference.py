"""The pages of the interface have every public name, with its signature and its docstring."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

import mycel as ms
from mycel import Tensor, nn
from tests.test_left_out import load

reference = load("reference")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: Any) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("api")
    return {
        p.relative_to(folder).with_suffix("").as_posix(): p.read_text(encoding="utf-8") for p in reference.write(folder)
    }


def heads(pages: dict[str, str], module: str) -> dict[str, str]:
    """The entries on the pages of a module: name to the rest of the line."""
    short = module.removeprefix("mycel.")
    found: dict[str, str] = {}
    for page, text in pages.items():
        if page == short or page.startswith(f"{short}/"):
            for name, rest in re.findall(r"^\.\. py:(?:function|class|data):: (\w+)(.*)$", text, re.M):
                assert name not in found, f"{name} is twice on the pages of {module}"
                found[name] = rest
    return found


@pytest.mark.parametrize("module", sorted(reference.public_modules()))
def test_every_public_name_has_an_entry(module: str, pages: dict[str, str]) -> None:
    entries = heads(pages, module)
    assert set(entries) == set(reference.names(reference.public_modules()[module]))


def test_names_that_are_made_at_import_time_are_there(pages: dict[str, str]) -> None:
    assert heads(pages, "mycel.ops")["MatMul"] == "(transpose_a=False, transpose_b=False)"
    assert "Model" in heads(pages, "mycel") and "run_check" in heads(pages, "mycel")
    assert re.search(r"^   \.\. py:method:: abs\(\)", pages["mycel/Tensor"], re.M)
    assert re.search(r"^   \.\. py:method:: sum\(axis", pages["mycel/Tensor"], re.M)


def test_tensors_and_cells_have_all_of_their_methods(pages: dict[str, str]) -> None:
    for page, cls in (("mycel/Tensor", Tensor), ("nn/Cell", nn.Cell)):
        listed = set(re.findall(r"^   \.\. py:(?:method|property):: (\w+)", pages[page], re.M))
        public = {n for n in dir(cls) if not n.startswith("_") and callable(inspect.getattr_static(cls, n))}
        assert public - {"extend_repr"} <= listed, public - listed


def test_signatures_are_python(pages: dict[str, str]) -> None:
    for page, text in pages.items():
        for kind, name, rest in re.findall(r"^ *\.\. py:(function|class|method):: (\w+)(\(.*)$", text, re.M):
            try:
                ast.parse(f"def {name}{rest}: pass")
            except SyntaxError:
                pytest.fail(f"{page}: {kind} {name}{rest}")


def test_what_several_modules_have_is_written_out_once(pages: dict[str, str]) -> None:
    assert (
        reference.ALIASES["mycel.mint.exp"] == "mycel.ops.exp" and reference.ALIASES["mycel.ops.grad"] == "mycel.grad"
    )
    assert reference.ALIASES["mycel.Model"] == "mycel.train.Model" and "mycel.Tensor" not in reference.ALIASES
    assert "The same as `mycel.train.Model`" in pages["mycel/general"]


def test_text_that_would_be_markup_is_escaped() -> None:
    assert reference.prose("|x| of `add_`, a * b and add_") == r"\|x\| of `add_`, a \* b and add\_"
    assert reference.prose("A *view*.\n\n>>> 2 * 3 | 1\n7") == "A *view*.\n\n>>> 2 * 3 | 1\n7"
    assert reference.prose("So::\n\n    a * b\n\nand |x|") == "So::\n\n    a * b\n\nand \\|x\\|"


def test_every_public_function_and_class_says_what_it_is_for() -> None:
    silent = []
    for module, content in reference.public_modules().items():
        for name, value in reference.names(content).items():
            if isinstance(value, (type, *reference.FUNCTIONS)) and not (value.__doc__ or "").strip():
                silent.append(f"{module}.{name}")
    assert silent == []
    assert ms.Tensor.__doc__


def test_operations_as_objects_say_what_they_compute() -> None:
    vague, nowhere = [], []
    for name, value in reference.names(ms.ops).items():
        if isinstance(value, type) and value.__module__.startswith(reference.OPERATIONS):
            text = value.__doc__ or ""
            if not text or text.startswith(f"The operation {name}"):
                vague.append(name)
            nowhere += [n for n in re.findall(r"`mycel\.ops\.(\w+)` as an object", text) if not hasattr(ms.ops, n)]
    assert vague == [] and nowhere == []
    assert (ms.ops.ResizeArea.__doc__ or "").startswith("Return images (N, H, W, C) at another `size`")
