"""Loops, decided by tensors and by Python's own values, in every nesting."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.errors import CompileError
from tests.language.harness import F, N, P, Programs, X, Y, same

programs = Programs()
I0, I1, I2, I3, I5 = (np.int64(i) for i in (0, 1, 2, 3, 5))
M = np.arange(6, dtype=np.float32).reshape(3, 2) * 0.25 - 0.4
LONG = np.linspace(-1, 1, 40, dtype=np.float32)


# while


@programs.add((P,), (N,), (np.float32(50.0),))
def while_by_a_tensor(p):
    while p < 10:
        p = p * p + 1
    return p


@programs.add((P,), (np.float32(50.0),))
def while_with_else(p):
    n = 0
    while p < 9.7:
        p = p * 2
        n += 1
    else:
        p = p + 100
    return p, n


@programs.add((P,), (np.float32(9.0),), (np.float32(50.0),))
def while_with_break_and_else(p):
    n = 0
    while p < 40:
        p = p * 2
        n += 1
        if p > 15 and p < 20:
            break
    else:
        p = p * 0.5
        n = n + 100
    return p, n


@programs.add((P, I5), (N, I3))
def while_with_continue(p, n):
    total = p * 0
    while n > 0:
        n = n - 1
        if n % 2 == 0:
            continue
        total = total + p * n
    return total


@programs.add((P,), (N,))
def while_true_with_break(p):
    count = 0
    while True:
        p = p * p * 0.5 + 1
        count += 1
        if p > 3 or count > 6:
            break
    return p, count


@programs.add((P, I3), (N, I0))
def nested_whiles(p, n):
    total = p
    i = 0
    while i < n:
        j = 0
        while j < i + 1:
            total = F.sin(total) + p * j
            j += 1
        i += 1
    return total


@programs.add((P, 4))
def while_by_a_number(p, n):
    while n > 0:
        p = p * 0.5 + n
        n -= 1
    return p


@programs.add((P, I3), (N, I0))
def static_rounds_become_dynamic(p, n):
    """The test is a Python number in the first rounds and a tensor afterwards."""
    i = 0
    while i < 6:
        p = F.sin(p) + i
        i = i + 2 if i < 3 else i + n
        if p > 100:
            break
        n = n + 1
    return p


@programs.add((P,), (N,))
def walrus_in_the_test(p):
    n = 0
    while (q := p * 2) < 9:
        p = q + 1.5 if p > -1 else p + 1
        n += 1
    return p, q, n


@programs.add((P, I3))
def while_over_tuple_list_and_dict(p, n):
    pair, box, table = (p, 0), [p, p * 2], {"a": p, "n": 1}
    while n > 0:
        pair = (pair[0] * 0.5 + box[1], pair[1] + 1)
        box[0], box[1] = box[1], F.sin(box[0])
        table["a"] += pair[0]
        table["n"] = table["n"] * 2
        n = n - 1
    return pair, box, table


@programs.add((P, I3))
def while_over_nested_containers(p, n):
    state = {"layers": [(p, p + 1), (p * 2, p)], "step": 0}
    while state["step"] < n:
        a, b = state["layers"][0]
        state["layers"][0] = (b, F.tanh(a))
        state["layers"][1] = (state["layers"][1][1], a)
        state["step"] += 1
    return state


@programs.add((P, I5), (N, I3))
def swap_in_a_loop(p, n):
    a, b = p, p * 2
    while n > 0:
        a, b = b, a + b * 0.5
        n -= 1
    return a, b


@programs.add((P, I5), (P, I0))
def types_widen_in_a_loop(p, n):
    total = 0
    while n > 0:
        total = total + p
        n = n - 1
    return total * 1.0


@programs.add((X, I3))
def vector_state(x, n):
    y = x
    while n > 0 and F.sum(y * y) > 0.1:
        y = F.sin(y) * 0.8 + x * 0.1
        n = n - 1
    return y


# for


@programs.add((P, I5), (P, I0), (N, I1))
def for_over_a_tensor_range(p, n):
    total = p
    for i in range(n):
        total = total * 0.5 + i
    return total


@programs.add((P, I1, I5), (N, I3, I1))
def range_with_start(p, a, b):
    for i in range(a, b):
        p = p + i * 0.5
    return p


@programs.add((P, I5), (P, I1))
def range_with_steps(p, n):
    for i in range(0, n, 2):
        p = p + i
    for i in range(n, 0, -2):
        p = p * 0.5 + i
    for i in range(-1, n):
        p = p - i
    return p


@programs.add((X,), (LONG,))
def for_over_a_tensor(x):
    total = F.sum(x) * 0
    for v in x:
        total = total * 0.5 + v * v
    return total


@programs.add((M,))
def for_over_rows(m):
    total = m[0] * 0
    for row in m:
        total = F.sin(total) + row
    return total


@programs.add((LONG,))
def for_over_many_elements_with_break(x):
    total = F.sum(x) * 0
    count = 0
    for v in x:
        if v > 0.5:
            break
        if v < -0.5:
            continue
        total = total + v * v
        count += 1
    else:
        total = total + 1000
    return total, count


@programs.add((X, Y), grad=(0, 1))
def for_over_zip_and_enumerate(x, y):
    total = x[0] * 0
    for i, (a, b) in enumerate(zip(x, y)):
        total = total + a * b * i
    for v in reversed([x, y]):
        total = total + F.sum(v)
    return total


@programs.add((P,), (N,))
def for_with_else(p):
    for i in range(3):
        p = p + i
        if p > 5:
            break
    else:
        p = p * 2
    for _ in []:
        p = p * 100
    else:
        p = p + 0.5
    return p


@programs.add((P, I5), (N, I2))
def loop_variable_after_the_loop(p, n):
    i = -1
    for i in range(n):
        p = p + i
    return p, i


@programs.add((X, I3), (X, I0))
def break_and_continue_by_tensors(x, n):
    total = x * 0
    for i in range(n + 4):
        if i == 1:
            continue
        total = total + x * i
        if F.sum(total) > 6:
            break
    return total


@programs.add((P, I3), (N, I2))
def break_of_the_inner_loop_only(p, n):
    total = p * 0
    for i in range(n):
        for j in range(4):
            if j > i:
                break
            total = total + p * j
        else:
            total = total + 10
        if total > 30:
            break
    return total


@programs.add((P, I5), (N, I5))
def continue_in_both_loops(p, n):
    total = p * 0
    for i in range(n):
        if i % 2 == 1:
            continue
        for j in range(i + 1):
            if j == 1:
                continue
            total = total + p * (i + j)
    return total


@programs.add((P, I3), (N, I3))
def return_from_nested_loops(p, n):
    for i in range(n):
        for j in range(n):
            p = p * 1.1 + j
            if p > 3.5 and i > 0:
                return p, i, j
    return p * 100, -1, -1


@programs.add((P, I3))
def loop_in_a_branch_in_a_loop(p, n):
    for i in range(n):
        if p > 1:
            while p > 1.2:
                p = p * 0.7
        else:
            for _ in range(i):
                p = p + 0.6
    return p


@programs.add((P, I3))
def changed_bound_and_variable(p, n):
    """The number of rounds is fixed when the loop begins, and the loop variable is set anew in
    each.
    """
    for i in range(n):
        n = n + 10
        p = p + i
        i = i * 100
        p = p + i
    return p, n


@programs.add((P, I3), (N, I0))
def functions_in_a_loop(p, n):
    def step(v, k):
        if v > 3:
            return v * 0.5
        return v + k

    for i in range(n):
        p = step(p, i + 1)
    return p


@programs.add((X, I3))
def element_writes_in_a_loop(x, n):
    y = x * 1.0
    for i in range(n):
        y[i] = y[i] * 2 + y[(i + 1) % 3]
    return y


@programs.add((X, I3))
def comprehension_in_a_loop(x, n):
    total = x
    for i in range(n):
        parts = [total * k for k in range(3) if k != 1]
        total = sum(parts, x) * 0.5 + max(i, 1)
    return total


@programs.add((P, I3))
def boolean_state(p, n):
    going, rounds = True, 0
    while going:
        p = p * 0.9
        rounds += 1
        going = p > 0.5 and rounds < n + 3
    return p, rounds


@programs.add((X,))
def static_loop_over_a_dictionary(x):
    weights = {"a": 0.5, "bb": 2.0}
    total = x
    for name, w in weights.items():
        total = total * w + len(name)
    for name in sorted(weights, reverse=True):
        total = total + weights[name]
    return total


@programs.add((P,), (N,))
def match_with_a_tensor_guard(p):
    match (1, p):
        case (0, q):
            return q * 100
        case (1, q) if q > 0:
            y = q * 2
        case (1, q):
            y = q - 1
        case _:
            y = p
    return y + 1


@programs.add((P,), (N,))
def try_and_finally(p):
    try:
        y = p * 2
        if p > 0:
            y = y + 1
    finally:
        y = y * 3
    try:
        raise KeyError("k")
    except (KeyError, ValueError) as error:
        y = y + len(str(error))
    else:
        y = y * 100
    return y


@programs.add((P, I5), (N, I1))
def return_in_try_in_a_loop(p, n):
    for _ in range(n):
        try:
            if p > 4:
                return p
        finally:
            p = p + 1
    return p * 10


@programs.add((P,), (N,))
def names_deleted_and_set_again(p):
    y = p * 2
    z = y
    del y
    if z > 0:
        y = z
    else:
        y = -z
    return y


test_programs = programs.test()


# What the harness cannot say.


class Trained(nn.Cell):
    """A loop and branches that write to parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        self.steps = ms.Parameter(ms.Tensor(0, ms.int64), name="steps", requires_grad=False)

    def construct(self, x: Any, n: Any) -> Any:
        for i in range(n):
            if ms.ops.sum(self.w) > 2:
                self.w = self.w * 0.5
                self.steps += 1
            else:
                ms.ops.assign(self.w, self.w + x)
            if i == 3:
                break
        return self.w * x


def test_a_parameter_is_the_state_of_a_loop() -> None:
    results = []
    for wrap in (lambda c: c, ms.jit):
        cell = Trained()
        out = wrap(cell)(ms.Tensor([0.5, 1.0]), ms.Tensor(6, ms.int64))
        results.append((out.asnumpy(), cell.w.asnumpy(), cell.steps.asnumpy()))
    w, steps = np.array([1.0, 2.0]), 0
    for i in range(6):
        if w.sum() > 2:
            w, steps = w * 0.5, steps + 1
        else:
            w = w + np.array([0.5, 1.0])
        if i == 3:
            break
    for result in results:
        same(result, (w * [0.5, 1.0], w, np.asarray(steps)), 1e-6, "a parameter as state")


def test_attributes_and_outer_lists_change_in_a_loop_by_numbers() -> None:
    class Log:
        total = 0.0

    log, seen = Log(), []

    @ms.jit
    def f(x: Any) -> Any:
        for i in range(3):
            log.total = log.total + x * i
            seen.append(x + i)
        return log.total

    assert f(ms.Tensor(2.0)).item() == 6
    assert [t.item() for t in seen] == [2, 3, 4] and log.total.item() == 6


def test_a_variable_of_a_loop_is_an_error_where_it_is_used() -> None:
    def f(x: Any) -> Any:
        while x < 10:
            y = x * 2
            x = y + 1
        return y

    with pytest.raises(
        CompileError, match="'y' is set only inside a loop that a tensor decides; give it a value before the loop"
    ):
        ms.jit(f, fullgraph=True)(ms.Tensor(1.0))


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_one_graph_for_every_number_of_rounds(n: int) -> None:
    def f(x: Any, n: Any) -> Any:
        for i in range(n):
            x = x * 0.5 + i
            while x > 3:
                x = x - 1
        return x

    jitted = ms.jit(f)
    expected = f(1.0, n)
    for count in (n, 3):
        jitted(ms.Tensor(1.0, ms.float64), ms.Tensor(count, ms.int64))
    found = jitted(ms.Tensor(1.0, ms.float64), ms.Tensor(n, ms.int64))
    assert found.item() == pytest.approx(expected)
    assert len(jitted.versions) == 1 and len(ms.explain(jitted).graphs[0].nodes) < 40


def test_a_long_loop_over_a_tensor_is_not_unrolled() -> None:
    def f(x: Any) -> Any:
        total = x[0]
        for v in x:
            total = total + ms.ops.sin(v)
        return total

    x = np.linspace(0, 1, 5000, dtype=np.float32)
    same(ms.jit(f)(ms.Tensor(x)), x[0] + np.sin(x.astype(np.float64)).sum(), 1e-4, "compiled")
    assert len(ms.explain(f, ms.Tensor(x)).graphs[0].nodes) < 40


def test_unrolling_much_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Any) -> Any:
        seen = []
        for i in range(5000):
            x = x + 1
            seen.append(i)
        return x * len(seen)

    logger = logging.getLogger("mycel")
    logger.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.WARNING, "mycel"):
            assert ms.jit(f)(ms.Tensor(0.0)).item() == 5000.0 * 5000.0
    finally:
        logger.removeHandler(caplog.handler)
    said = [r.getMessage() for r in caplog.records if "unrolled" in r.getMessage()]
    assert len(said) == 1 and "range" in said[0] and __file__ in said[0]


def test_a_long_loop_of_numbers_is_not_unrolled_to_its_end() -> None:
    def f(x: Any, n: int) -> Any:
        for i in range(n):
            x = x * 0.5 + i
        return x

    jitted = ms.jit(f)
    x = ms.Tensor(1.0, ms.float64)
    assert jitted(x, 20_000).item() == pytest.approx(f(1.0, 20_000))
    short, long = (len(ms.explain(f, x, n).graphs[0].nodes) for n in (4_000, 40_000))
    assert long == short


def test_a_break_by_a_tensor_in_a_long_loop_of_numbers() -> None:
    def f(x: Any) -> Any:
        total = x * 0
        for i in range(500):
            total = total + x * i
            if total > 300:
                break
        else:
            total = total * 0
        return total, i

    for value in (2.0, 0.001):
        found = ms.jit(f)(ms.Tensor(value, ms.float64))
        same(found, tuple(map(np.asarray, f(value))), 1e-9, "compiled")
    same(
        ms.jit(ms.grad(lambda x: f(x)[0]))(ms.Tensor(2.0, ms.float64)), np.float64(sum(range(18))), 1e-9, "the gradient"
    )
    assert not ms.explain(f, ms.Tensor(2.0, ms.float64)).breaks
