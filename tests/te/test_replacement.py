"""Compiled functions notice that what an operator is made of was replaced, and that alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import te
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.loops.programs import Program, statements

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

FACTOR = 2.0
TABLE = [1.0, 3.0]


def scaled_by(x):
    return x * FACTOR


def _doubled() -> Any:
    @te.operator
    def doubled(x):
        y = te.empty(x.shape)
        for i in range(x.shape[0]):
            y[i] = x[i] + x[i]
        return y

    return doubled


def _program(graph: Graph) -> Program:
    (found,) = [n.params["program"] for n in graph.nodes if "program" in n.params]
    return found


def test_another_schedule_is_noticed() -> None:
    doubled = _doubled()
    x = ms.Tensor(np.arange(5.0))
    compiled = ms.jit(lambda x: doubled(x) + 1)
    compiled(x)

    def blocks(s):
        s.split("i", 2)

    def lanes(s):
        s.vectorize("i")

    for schedule in (blocks, lanes, blocks):
        doubled.schedule(schedule)
        assert compiled(x).tolist() == [1, 3, 5, 7, 9]
        plan = _program(ms.explain(compiled, x).graphs[0]).plan
        assert plan is not None
        assert ("vectorize" in [getattr(s, "mark", "") for s in statements(plan.body)]) == (schedule is lanes)


def test_another_derivative_is_noticed() -> None:
    doubled = _doubled()
    x = ms.Tensor(np.arange(3.0))
    compiled = ms.jit(ms.grad(lambda x: doubled(x).sum()))
    assert compiled(x).tolist() == [2, 2, 2]

    @doubled.derivative
    def _seven(x, y, dy):
        dx = te.empty(x.shape)
        dx[i] = 7 * dy[i]
        return dx

    assert compiled(x).tolist() == [7, 7, 7]
    assert ms.grad(lambda x: doubled(x).sum())(x).tolist() == [7, 7, 7]


def test_what_is_outside_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    @te.operator
    def scaled(x):
        y = te.empty(x.shape)
        for i in range(x.shape[0]):
            y[i] = scaled_by(x[i]) + TABLE[1]
        return y

    x = ms.Tensor([1.0, 2.0])
    compiled = ms.jit(lambda x: scaled(x))
    for factor, table in ((2.0, [1.0, 3.0]), (5.0, [1.0, 3.0]), (5.0, [1.0, 4.0])):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        TABLE[:] = table
        want = [factor + table[1], 2 * factor + table[1]]
        assert scaled(x).tolist() == want and compiled(x).tolist() == want

    def nothing(x):
        return 0 * x

    monkeypatch.setitem(globals(), "scaled_by", nothing)
    assert scaled(x).tolist() == compiled(x).tolist() == [4.0, 4.0]
    TABLE[:] = [1.0, 3.0]


def test_nothing_is_compiled_again_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = _doubled()

    @doubled.schedule
    def blocks(s):
        s.split("i", 2)

    x = ms.Tensor([1.0, 2.0])
    compiled = ms.jit(lambda x: doubled(x))
    compiled(x)
    program = doubled.program(x)
    (graph,) = ms.explain(compiled).graphs
    for _ in range(3):
        doubled.schedule(blocks)
        compiled(x)
        assert doubled.program(x) is program and ms.explain(compiled).graphs == [graph]


def test_an_index_that_is_a_number_outside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @te.operator
    def product(a, b):
        c = te.zeros((a.shape[0], b.shape[1]))
        c[i, j] += a[i, k] * b[k, j]
        return c

    a = ms.Tensor(np.ones((2, 2)))
    monkeypatch.setitem(globals(), "j", 1)
    with pytest.raises(NameError, match="j is an index here, and a variable of the module with the value 1"):
        product(a, a)
    monkeypatch.delitem(globals(), "j")
    assert product(a, a).tolist() == [[2, 2], [2, 2]]
