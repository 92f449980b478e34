"""MindSpore's private primitives against the stored values of its CPU (`private/values.json`)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import compat
from mycel._src.foundation.errors import Unsupported
from tests.compat.private.cases import arguments_of, cases

VALUES = json.loads((Path(__file__).parent / "private" / "values.json").read_text(encoding="utf-8"))
CASES = [case for case in cases() if "value" in VALUES["{}.{} <- {}".format(*case)]]

# MindSpore looks its cubic kernel up in a table of 1024 steps.
ROUGH = ("ResizeBicubicGrad",)
# Eigenvectors have either sign.
SIGNLESS = ("Eigh", "SelfAdjointEig", "Svd")


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def made(case: tuple[str, str, str]) -> tuple[Any, list[Any]]:
    """Return the primitive of a case and its operands."""
    module, text, operands = case
    scope = importlib.import_module(f"mindspore.{module}" if "." in module else f"mindspore.ops.operations.{module}")
    name = text.split("(")[0]
    operation = eval(text, {name: getattr(scope, name), "ms": ms})
    names = {"ms": ms, "V": lambda t: ms.Parameter(t)}
    return operation, arguments_of(text, operands, ms.Tensor, names)


def check(found: Any, known: Any, case: tuple[str, str, str]) -> None:
    if isinstance(known, list):
        assert isinstance(found, (tuple, list)) and len(found) == len(known) - 1
        for one, other in zip(found, known[1:]):
            check(one, other, case)
    elif isinstance(known, dict):
        value = found.asnumpy()
        assert (str(value.dtype), list(value.shape)) == (known["dtype"], known["shape"])
        wanted = np.array(known["data"]).reshape(known["shape"])
        if case[1].startswith(SIGNLESS):
            value, wanted = np.abs(value), np.abs(wanted)
        rough = case[1].startswith(ROUGH)
        np.testing.assert_allclose(value, wanted, rtol=5e-3 if rough else 2e-4, atol=2e-3 if rough else 2e-5)
    elif isinstance(known, str) and known.startswith("range(") and isinstance(found, tuple):
        # Ranges leave a compiled function as tuples.
        assert found == tuple(eval(known))
    elif isinstance(known, str) and known.startswith(("range(", "mindspore.")):
        assert repr(found).replace("mycel.", "mindspore.") == known
    else:
        assert found == known


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}.{case[1]}")
def test_values_are_those_of_mindspore(case: tuple[str, str, str]) -> None:
    operation, operands = made(case)
    answer = VALUES["{}.{} <- {}".format(*case)]
    check(operation(*operands), answer["value"], case)
    parameters = [v for v in operands if isinstance(v, ms.Parameter)]
    for parameter, known in zip(parameters, answer.get("after", ())):
        check(parameter, known, case)


def first_of_each() -> list[tuple[str, str, str]]:
    """Return the first case of each primitive."""
    found: dict[str, tuple[str, str, str]] = {}
    for case in CASES:
        if "." not in case[0] and "V(" not in case[2]:
            found.setdefault(case[1].split("(")[0], case)
    return list(found.values())


@pytest.mark.parametrize("case", first_of_each(), ids=lambda case: case[1])
def test_compiled_values_are_the_same(case: tuple[str, str, str]) -> None:
    operation, operands = made(case)
    places = [i for i, v in enumerate(operands) if isinstance(v, ms.Tensor)]

    def program(*tensors: ms.Tensor) -> Any:
        full = list(operands)
        for place, tensor in zip(places, tensors):
            full[place] = tensor
        return operation(*full)

    compiled = ms.jit(program)  # with Python in between where sizes are the values of tensors
    check(compiled(*(operands[i] for i in places)), VALUES["{}.{} <- {}".format(*case)]["value"], case)


def test_what_is_tied_to_other_devices_says_so_when_it_is_used() -> None:
    from mindspore.ops.operations import _inner_ops, _thor_ops, nn_ops

    for operation, words in (
        (_inner_ops.MatmulDDS(64, 8), "memory format of Ascend devices"),
        (_thor_ops.CusMatMulCubeDenseLeft(), "memory format of Ascend devices"),
        (nn_ops.GetNext([ms.float32], [[2]], 1, "queue"), "iterate over the dataset"),
    ):
        with pytest.raises(Unsupported, match=words):
            operation(ms.Tensor([1.0]))
