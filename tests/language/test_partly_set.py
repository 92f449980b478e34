"""Variables that are set where a tensor decides, numbers that tensors decide, and the lists and
iterators that compiled functions return, where Python goes on within the function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

UP, DOWN = Tensor(2.0), Tensor(-2.0)


def one_side(x, seen):
    seen.append(float(x))
    if x > 0:
        y = x * 3
        name = "up"
    if x > 0:
        return y, name
    return x, ""


def inner_side(x, seen):
    seen.append(float(x))
    if x > -5:
        if x > 0:
            y = x * 3
    else:
        y = x
    z = x + 1
    return y + z


def set_again(x, seen):
    seen.append(float(x))
    if x > 0:
        y = x * 3
    y = 1
    if x < 0:
        y = y + 1
    return y


@pytest.mark.parametrize("fn", [one_side, inner_side, set_again])
@pytest.mark.parametrize("x", [UP, DOWN], ids=["up", "down"])
def test_a_variable_of_one_side_where_python_has_values(fn: Any, x: Tensor) -> None:
    compiled = ms.jit(fn)
    for _ in range(2):
        try:
            expected = fn(x, [])
        except UnboundLocalError as error:
            with pytest.raises(UnboundLocalError, match=str(error).split()[4]):
                compiled(x, [])
            continue
        found = compiled(x, [])
        assert type(found) is type(expected)
        assert str(found) == str(expected)


def test_a_variable_of_one_side_is_no_part_of_one_graph() -> None:
    @ms.jit(fullgraph=True)
    def f(x):
        if x > 0:
            y = x
        return y

    with pytest.raises(RuntimeError, match="'y' is set on only one side of the condition in line"):
        f(UP)


def test_the_first_round_of_a_loop_is_not_run_twice() -> None:
    def f(x):
        count = 0
        total = ops.sum(x) * 0
        for v in x:
            if v > 0.5:
                break
            total = total + v
            count += 1
        return total, count, float(total)

    compiled = ms.jit(f)
    x = Tensor(np.linspace(-1, 1, 40).astype(np.float32))
    for _ in range(2):
        found, expected = compiled(x), f(x)
        assert found[1] == expected[1] == 30 and found[2] == pytest.approx(expected[2], rel=1e-6)


def test_unique_of_any_size_in_one_function() -> None:
    @ms.jit
    def f(x):
        values, places = ops.unique(x)
        return values, places, values.shape[0]

    for n in (3, 5, 0, 1, 4, 0):
        values, places, count = f(Tensor(np.arange(n, dtype=np.float32) % 2))
        assert (values.shape[0], places.shape[0], count) == (min(n, 2), n, min(n, 2))


def test_unique_of_what_a_mask_leaves() -> None:
    f = ms.jit(lambda x: ops.unique(x[x > 0])[0])
    assert [f(Tensor(v)).tolist() for v in ([1.0, 1.0, -1.0], [-1.0, -2.0, -3.0])] == [[1.0], []]


def test_numbers_of_segments_are_numbers() -> None:
    @ms.jit
    def f(x):
        n = 1 if x > 0 else 2
        known = float(x)
        m = 3 if x * known > 0 else 4
        return n, [m], {"n": n + m}, ops.cast(n, ms.float32)

    n, (m,), both, tensor = f(DOWN)
    assert (n, m, both) == (2, 3, {"n": 5}) and type(n) is int and type(both["n"]) is int
    assert isinstance(tensor, Tensor) and tensor.dtype is ms.float32


def test_what_an_operation_gives_for_numbers_is_a_tensor() -> None:
    @ms.jit
    def f(x):
        n = 1 if x > 0 else 2
        return ops.cast(n, ms.float32), Tensor(5) * n, n * 2

    cast, product, number = f(UP)
    assert isinstance(cast, Tensor) and isinstance(product, Tensor) and number == 2 and type(number) is int


def test_a_sum_of_a_number_and_tensors_is_a_tensor() -> None:
    @ms.jit
    def f(x):
        total = 0
        while x > 0:
            total = total + x
            x = x - 1
        return total

    found = f(Tensor(3.0))
    assert isinstance(found, Tensor) and found.item() == 6


def test_lists_are_returned_themselves() -> None:
    kept = [1, Tensor(2)]

    @ms.jit
    def f(items, pair):
        return items, {"again": items, "kept": kept}, pair

    items, pair = [Tensor(1), [2]], ([3], {"a": 4})
    found, again, back = f(items, pair)
    assert found is items and again["again"] is items and again["kept"] is kept
    assert back == pair and back[0] is pair[0] and back[1] is pair[1]
    with_gradient = ms.grad(lambda x, held: ops.sum(f([x, held], pair)[0][0] * 2))
    assert with_gradient(Tensor(1.0), kept).item() == 2


def test_iterators_are_tuples_and_lists() -> None:
    @ms.jit
    def f(x, items):
        return map(lambda v: v + x, items), zip(items, (x,)), (range(2), [enumerate(items)])

    assert f(1, (2,)) == ((3,), ((2, 1),), ((0, 1), [((0, 2),)]))
    live = ms.jit(lambda x, items: (float(x), map(lambda v: v + x, items), range(2)))
    assert [type(v) for v in live(UP, [1, 2])] == [float, list, tuple]
