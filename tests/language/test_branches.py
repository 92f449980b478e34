"""Branches, decided by tensors and by Python's own values, in every nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation.errors import CompileError
from tests.language.harness import F, N, P, Programs, X

programs = Programs()
I0, I1, I2, I3, I5 = (np.int64(i) for i in (0, 1, 2, 3, 5))
Q = np.float32(0.3)

# if, elif, else


@programs.add((P,), (N,), (Q,))
def if_elif_else(p):
    if p > 2:
        y = p * p
    elif p > 0:
        y = F.sin(p)
    elif p > -1:
        y = p * 3
    else:
        y = -p
    return y


@programs.add((P,), (N,))
def if_without_else(p):
    y = p * 2
    if y > 1:
        y = y - 1
    return y


@programs.add((P, X), (N, X), grad=(0, 1))
def nested_ifs(p, x):
    y = x
    if p > 0:
        if F.sum(x) > 5:
            y = x * 2
        else:
            if p > 2:
                y = x * p
            y = y + 1
    else:
        y = -x
    return y


@programs.add((P, 3), (P, 0), (N, 3))
def static_and_tensor_conditions(p, n):
    if n > 2:
        if p > 0:
            return p * n
        n = 1
    elif p > 0:
        n = 5
    return p * n


@programs.add((P,), (N,))
def conditional_expressions(p):
    a = p if p > 0 else -p
    b = 1.0 if p > 1 else 2.0 if p > 0 else 3.0
    return a * b + (a if a > b else b)


@programs.add((P,), (N,), (Q,))
def chained_comparisons(p):
    y = p
    if -1 < p < 1:
        y = y * 2
    if 0 < p < 2 < 3:
        y = y + 1
    if not 0 <= p <= 2.6 != p:
        y = y * 3
    return y


@programs.add((P,), (N,), (Q,))
def and_or_not(p):
    y = p
    if p > 0 and p < 1:
        y = y + 1
    if p < -1 or p > 2:
        y = y * 2
    if not p > 0:
        y = y - 3
    if (p > 0 and not p > 1) or (p < -1 and p > -2):
        y = y * y
    return y


@programs.add((P,), (N,), (np.float32(0.0),), grad=None)
def and_or_give_their_operands(p):
    return (p and p * 2, p or p + 5, p > 0 and p < 9, not p, (p > 1 or p < -1) and p * 3)


@programs.add((P, X, I0), (N, X, I1), grad=(0, 1))
def short_circuit_guards_what_follows(p, x, i):
    """The right side is run only where the left side says so."""
    y = x
    if i > 0 and F.sum(x) / i > 0.1:
        y = x * 2
    if i == 0 or F.sum(x) / i < 1.1:
        y = y + p
    return y


@programs.add((I2,), (I0,), grad=None)
def whole_numbers_as_conditions(n):
    y = n * 2 if n else n - 7
    if not n:
        y = y + 1
    while n:
        n = n - 1
        y = y + n
    return y, n


@programs.add((P,), (N,))
def several_variables_of_several_kinds(p):
    count, rate, flag = 0, 0.5, False
    pair, box, table = (p, 1), [p, p], {"a": p, "b": 2.0}
    if p > 0:
        count, rate, flag = count + 3, rate * 2, True
        pair = (p * 2, 5)
        box[0] = p * 3
        table["a"] = p - 1
        table["b"] = 4.0
    return p * count * rate, flag, pair, box, table


@programs.add((P,), (N,))
def list_grows_alike_on_both_sides(p):
    out = []
    if p > 0:
        out.append(p)
        out.append(p * 2)
    else:
        out.append(-p)
        out.insert(0, p * 5)
    return out, len(out)


@programs.add((P,), (N,))
def same_tensor_on_both_sides(p):
    a = p * 2
    b = a if p > 0 else a
    if p > 0:
        c = b
    else:
        c = a
    return a + b + c


@programs.add((P,), (N,))
def pass_and_ellipsis(p):
    if p > 0:
        pass
    else:
        p = p * 2
    if p > 1:
        ...
    return p


# Early return.


@programs.add((P,), (N,), (Q,))
def early_returns(p):
    if p > 2:
        return p * p
    y = F.sin(p)
    if p > 0:
        return y + 1
    y = y * 2
    return y - p


@programs.add((P,), (N,), (Q,))
def return_from_a_nested_if(p):
    if p > 0:
        q = p * 2
        if q > 1:
            return q, 1
        p = p + q
    return p, 2


@programs.add((P,), (N,), grad=None)
def return_of_different_numbers(p):
    if p > 0:
        return 1.5
    return 2


@programs.add((P, 4), (N, 4), (P, 0))
def return_inside_a_static_loop(p, n):
    for i in range(n):
        p = p * 1.5
        if p > 5:
            return p - i
    return p * 10


@programs.add((P, I5), (N, I5), (P, I0))
def return_inside_a_tensor_loop(p, n):
    for i in range(n):
        p = p * 1.5
        if p > 5:
            return p - i
    return p * 10


@programs.add((P,), (N,))
def return_inside_while_inside_for(p):
    for i in range(3):
        q = p
        while q < 20:
            q = q * 2 + 3
            if q > 12 and i == 1:
                return q + i
        p = p + q
    return p


test_programs = programs.test()


def test_a_variable_of_one_branch_is_an_error_where_it_is_used() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            y = x * 2
        return y

    with pytest.raises(
        CompileError,
        match=r"'y' is set on only one side of the condition in line .*, which a tensor decides; give it a value "
        r"before the if",
    ):
        ms.jit(f, fullgraph=True)(ms.Tensor(1.0))

    def g(x: Any) -> Any:
        if x > 0:
            y = x * 2
            x = x + y
        return x

    assert ms.jit(g, fullgraph=True)(ms.Tensor(1.0)).item() == 3


def test_an_unbound_variable_is_pythons_error() -> None:
    def f(x: Any) -> Any:
        return y + x  # noqa: F821
        y = 1  # noqa: F841

    with pytest.raises(UnboundLocalError, match="'y'"):
        ms.jit(f)(ms.Tensor(1.0))


def test_an_error_in_a_branch_that_is_not_taken_stays_away() -> None:
    def f(x: Any, n: int) -> Any:
        if n > 3:
            raise ValueError("too many")
        return x * n

    assert ms.jit(f)(ms.Tensor(2.0), 3).item() == 6
    with pytest.raises(ValueError, match="too many"):
        ms.jit(f)(ms.Tensor(2.0), 4)
