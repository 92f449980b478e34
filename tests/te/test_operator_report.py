"""Accounts of operators: loops, schedules that can be pasted, bytes, operations and code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import te
from mycel.te.schedules import scheduled
from tests.te.test_schedules import CASES, product, solved

LOWER = ms.Tensor(np.tril(np.ones((8, 8))) + 7 * np.eye(8))
RIGHT = ms.Tensor(np.arange(8.0))


def test_of_an_operator() -> None:
    account = solved.explain(LOWER, RIGHT)
    text = str(account)
    assert "block" not in text and 's.cut("j", 4*i_outer_' in text and "x_1[i_2] = (v_left_3[]" in text
    assert "test_schedules.py:" in text and "memory of solved" in text
    assert account.memory.total == 8 * 80
    # A multiply-add is two operations: 28 of them, and 8 quotients.
    plain = te.operator(solved.function).explain(LOWER, RIGHT)
    assert plain.schedule == "" and plain.steps.total.flops == pytest.approx(64, rel=0.3)
    # The right side and the lower triangle with its zeros, and the result, which is read as well.
    assert plain.steps.total.bytes == 8 * (64 + 8 + 8 + 8)


def test_of_code() -> None:
    a = ms.Tensor(np.ones((8, 8), np.float32))
    account = product.explain(a, a)
    assert "define void @" in account.code() and "; 1 kernel" in account.code()
    assert ".globl" in account.code(assembly=True)
    of_function = ms.explain(lambda a: (product(a, a) + 1).sum(), a)
    assert "define void @" in of_function.code() and ".globl" in of_function.code(assembly=True)


def test_of_compiled_functions_and_gradients() -> None:
    def f(l: Any, b: Any) -> Any:
        return solved(l, b).sum()

    forward, backward = ms.explain(ms.jit(f), LOWER, RIGHT), ms.explain(lambda l, b: ms.grad(f)(l, b), LOWER, RIGHT)
    assert 's.split("i", 4)' in str(forward) and "as scheduled:" in str(forward)
    (scheduled_one,) = [s for s in forward.steps[0].steps if s.listing]
    assert scheduled_one.cost.flops > 0 and scheduled_one.where is not None
    assert scheduled_one.where.file.endswith("test_operator_report.py")
    listings = ["\n".join(s.listing) for s in backward.steps[0].steps if s.listing]
    assert any("downwards" in text and "test_schedules.py:" in text for text in listings)


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_can_be_pasted(name: str) -> None:
    operator, arguments, _ = CASES[name]
    account = operator.explain(*[ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in arguments])
    plan = account.program.plan
    assert plan is not None
    found: dict[str, Any] = {}
    source = account.schedule.replace(f"@{operator.title}.schedule\n", "")
    exec(source, found)
    again = scheduled(replace(account.program, plan=None), found["_"], plan.reassociate).plan
    assert again == plan and again.words == plan.words
