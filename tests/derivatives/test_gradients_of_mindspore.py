"""Gradients against MindSpore's own: the results of the programs of ``gradient_cases.py``, which
``ask_gradients.py`` recorded in ``expected_gradients.json``.

An exception agrees if it is of the class that MindSpore raises. `_REASONS` has the programs whose
results differ, with the reason.
"""

import json
import linecache
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, nn, ops
from mycel._src.staging.derivatives.custom_functions import CustomFunction, no_gradients
from tests.derivatives import gradient_cases

EXPECTED = json.loads(Path(__file__).with_name("expected_gradients.json").read_text())
CASES = gradient_cases.cases()
_REASONS: dict[str, tuple[str, ...]] = {
    "by_list without weights is by the trainable ones in both modes, as the documentation says": tuple(
        f"GradOperation {kind} {call}, graph"
        for kind in ("010", "011", "110", "111")
        for call in ("net", "net of two", "net of none", "by name", "all by name")
    ),
    "numbers and containers alone have gradients, where MindSpore has none at all": (
        *(f"GradOperation {kind} a list, {mode}" for kind in ("000", "001") for mode in ("eager", "graph")),
        *(f"constant {v} 0, {mode}" for v in ("3", "3.0", "[x, y]", "dict(a=x)") for mode in ("eager", "graph")),
    ),
    "what is mutable is a variable in both modes": ("mutable list, eager", "mutable tuple, eager"),
    "the gradient by a number is a number, and a cotangent for it is summed": tuple(
        f"{api} () {shape}, {mode}"
        for api, modes in (("sens", ("graph",)), ("vjp", ("graph",)), ("jvp", ("eager", "graph")))
        for shape in ("(1,)", "(2,)", "(1, 2)", "(2, 1)", "(3,)")
        for mode in modes
    ),
    "a cotangent is broadcast in both modes": tuple(
        f"{api} {own} {given}, eager"
        for api in ("sens", "vjp")
        for own, given in (("(1,)", "()"), ("(2,)", "()"), ("(2,)", "(1,)"), ("(2,)", "(1, 2)"))
    ),
}
DIFFERENT = frozenset(name for names in _REASONS.values() for name in names)


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the mode after each program, and give names to what MindSpore keeps private."""
    before = ms.get_context("mode")
    monkeypatch.setattr(ms, "_Function", CustomFunction, raising=False)
    monkeypatch.setattr(ms, "_no_grad", no_gradients, raising=False)
    yield
    ms.set_context(mode=before)


def answer(name: str, mode: str, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return the result of a program as text, and the classes of the exception that it raised."""
    log: list[str] = []
    show = lambda value: gradient_cases.show(value, Tensor)
    raised: tuple[str, ...] = ()
    source = CASES[name][0]
    path = str(folder / "case.py")
    module = types.ModuleType("gradient_case")
    module.__file__ = path
    sys.modules[module.__name__] = module
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    names = {"ms": ms, "np": np, "ops": ops, "nn": nn, "Tensor": Tensor, "log": log, "show": show}
    module.__dict__.update(names, Parameter=Parameter, ParameterTuple=ParameterTuple)
    try:
        ms.set_context(mode=gradient_cases.MODES[mode])
        exec(compile(source, path, "exec"), module.__dict__)
        result = show(module.run())
    except Exception as error:
        result = f"!{type(error).__name__}"
        raised = tuple([f"!{kind.__name__}" for kind in type(error).__mro__])
    return " | ".join([result, *log]), raised


@pytest.mark.parametrize("name, mode", [(name, mode) for name, (_, modes) in CASES.items() for mode in modes])
def test_gradients_are_those_of_mindspore(name: str, mode: str, tmp_path: Path) -> None:
    wanted = EXPECTED[f"{name}, {mode}"]
    found, raised = answer(name, mode, tmp_path)
    agrees = found == wanted or wanted in raised
    assert agrees is (f"{name}, {mode}" not in DIFFERENT), f"{found} is not {wanted}"
