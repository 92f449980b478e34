"""Results of generated operations against those that the real package gave (`ask_numbers.py`), and
of those without a kernel for processors against PyTorch's (`ask_torch.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel import compat

from .number_cases import namespace, plain

HERE = Path(__file__).parent
ANSWERS: dict[str, Any] = json.loads((HERE / "numbers.json").read_text(encoding="utf-8"))
TORCH: dict[str, Any] = json.loads((HERE / "torch_numbers.json").read_text(encoding="utf-8"))
OPERATIONS = sorted({call.split("(")[0] for call in ANSWERS})


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def compare(found: Any, expected: Any, where: str) -> None:
    if is_tensor(expected):
        assert is_tensor(found), f"{where}: {found!r:.80} is no tensor"
        assert found[:2] == expected[:2], f"{where}: {found[:2]}, not {expected[:2]}"
        np.testing.assert_allclose(
            np.array(found[2], np.float64), np.array(expected[2], np.float64), rtol=2e-4, atol=2e-5, err_msg=where
        )
    elif isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), f"{where}: {found!r:.200}"
        for number, (one, other) in enumerate(zip(found, expected)):
            compare(one, other, f"{where}[{number}]")
    else:
        assert found == expected, f"{where}: {found!r}, not {expected!r}"


def is_tensor(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[1], list)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_results_are_those_of_the_real_package(operation: str) -> None:
    names = namespace("mindspore")
    for call, expected in ANSWERS.items():
        if call.split("(")[0] == operation:
            compare(plain(eval(call, dict(names))), expected, call)


@pytest.mark.parametrize("operation", sorted({call.split("(")[0] for call in TORCH}))
def test_results_are_those_of_pytorch(operation: str) -> None:
    names = namespace("mindspore")
    for call, expected in TORCH.items():
        if call.split("(")[0] == operation:
            compare(plain(eval(call, dict(names))), expected, call)
