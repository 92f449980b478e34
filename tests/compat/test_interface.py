"""Every name that MindSpore's modules have is served, or docs/left_out.toml says why it is not;
what is there takes the same parameters, and does the same in the programs of interface/programs.

A table is `interface/*.json` (`interface/ask.py` asks MindSpore), and an answer
`interface/programs/*.txt` (`interface/ask_programs.py`).
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import mycel as ms
from mycel import compat
from mycel.compat.unserved import signature_of
from tests.compat.interface import programs, tables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEFT_OUT = Path(__file__).resolve().parents[2] / "docs" / "left_out.toml"
# Names whose parameters are other ones here, with the reason.
OTHER_PARAMETERS = {
    "communication.comm_func.P2POp": "the type of what is received follows from what is sent",
}


_EARLIER = "refused at once, where MindSpore does when it is used, or fails without saying why"
# Lines of programs that MindSpore prints otherwise, and why.
OTHERWISE = {
    "config(enc_key=b'1')": _EARLIER,
    "config(format='x')": _EARLIER,
    "ms.jit(lambda x: x, backend='x')": _EARLIER,
    "ms.jit(lambda x: x, backend=3)": _EARLIER,
    "ms.jit(3)": _EARLIER,
    "Model(net, loss_fn=3)": _EARLIER,
    "Model(net, eval_network=3)": _EARLIER,
    "Model(net, eval_indexes=3)": _EARLIER,
    "ms.DatasetHelper(3)": _EARLIER,
}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.reset_auto_parallel_context()


def reasons() -> dict[str, list[str]]:
    """The patterns of names that are left out: all paths, and by module."""
    groups = tomllib.loads(LEFT_OUT.read_text(encoding="utf-8"))["group"]
    found = {"": [pattern for group in groups for pattern in group["names"]]}
    for group in groups:
        for module, names in group.get("inner", {}).items():
            found[module or "top"] = names.split()
    return found


def is_explained(name: str, known: dict[str, list[str]]) -> bool:
    module, _, last = name.rpartition(".")
    return any(fnmatchcase(name, p) for p in known[""]) or any(
        fnmatchcase(last, p) for p in known.get(module or "top", ())
    )


def test_every_name_is_there_or_has_a_reason() -> None:
    known = reasons()
    lacking = [name for name in tables.lacking(tables.tables()) if not is_explained(name, known)]
    assert not lacking, "neither in Mycel nor in docs/left_out.toml:\n" + "\n".join(lacking)


def test_no_reason_is_for_what_is_there() -> None:
    lacking = tables.lacking(tables.tables())
    by_module: dict[str, list[str]] = {}
    for name in lacking:
        module, _, last = name.rpartition(".")
        by_module.setdefault(module or "top", []).append(last)
    needless = [
        f"{module}.{pattern}"
        for module, patterns in reasons().items()
        if module
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in by_module.get(module, ()))
    ]
    assert not needless


def parameters(signature: inspect.Signature) -> list[tuple[str, Any]]:
    """The names of parameters that a call may give, with what matters of their kinds."""
    kinds = inspect.Parameter
    return [(p.name, p.kind) for p in signature.parameters.values() if p.kind is not kinds.VAR_POSITIONAL]


def own_names() -> Iterator[tuple[str, str, Any]]:
    """The private names that are there, defined in the module: path, parameters, and the thing."""
    for path, names in tables.tables().items():
        module = tables.module_of(path)
        for name, (kind, text, home) in names.items():
            value = getattr(module, name, None)
            if (
                kind == "function"
                and text
                and not home
                and str(getattr(value, "__module__", "")).startswith("mycel.compat.")
            ):
                yield f"{path}.{name}".removeprefix("mindspore."), text, value


def test_functions_take_the_parameters_of_mindspore() -> None:
    wrong = []
    for name, text, value in own_names():
        if name in OTHER_PARAMETERS or text == "(*args, **kwargs)" or "**" in text:
            continue
        asked = signature_of(re.sub(r"<[^<>]*>|re\.ASCII", "None", re.sub(r"(\w): [\w.\[\]]+| -> .*", r"\1", text)))
        given = inspect.signature(value)
        names = [p for p, _ in parameters(asked)]
        mine = [p for p, _ in parameters(given)]
        if mine[: len(names)] != names and not any(
            p.kind is inspect.Parameter.VAR_KEYWORD for p in given.parameters.values()
        ):
            wrong.append(f"{name}{given} where MindSpore has {text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("program", programs.NAMES)
def test_programs_print_what_they_print_with_mindspore(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        programs.run(program)
    found, stored = printed.getvalue().splitlines(), programs.answer(program).read_text(encoding="utf-8").splitlines()
    wrong = [
        f"{mine}\n    MindSpore: {theirs}"
        for mine, theirs in zip(found, stored)
        if (mine != theirs) != (mine.partition(" -> ")[0] in OTHERWISE)
    ]
    assert not wrong, "\n".join(wrong)
    assert len(found) == len(stored)
