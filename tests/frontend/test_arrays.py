"""Compiled functions on NumPy arrays of the program's: nothing but what the program itself writes
changes in them, and they may be read-only.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, ops

MAKERS = {
    "Tensor": Tensor,
    "tensor": ms.tensor,
    "from_numpy": ms.from_numpy,
    "frombuffer": lambda a: ms.frombuffer(a, dtype=a.dtype),
    "from_dlpack": ms.from_dlpack,
    "numpy": ms.numpy.asarray,
    "sum": lambda a: Tensor(a + a),
    "view": lambda a: Tensor(a[::-1]),
    "copy": lambda a: Tensor(a.copy()),
}


def _in_place(t, y):
    t.add_(y.sum())
    t.mul_(2)
    return t


def _item(t, y):
    t[0] = y.sum()
    return t


def _slice(t, y):
    t[1:3] = 5
    return t


def _mask(t, y):
    t[t > 2] = -1.0
    return t, t + y


def _branch(t, y):
    if y.sum() > 0:
        t[1] = 7.0
    else:
        t = t * 2
    return t


def _nothing(t, y):
    return t * y


USES = {f.__name__[1:]: f for f in (_in_place, _item, _slice, _mask, _branch, _nothing)}


def leaves(value):
    return [v.asnumpy().tolist() for v in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("writable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("maker", MAKERS)
def test_what_a_tensor_was_made_of_stays(maker, use, writable):
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = writable
    before, y = array.copy(), Tensor([2.0])

    def function(y):
        return USES[use](MAKERS[maker](array), y)

    compiled = ms.jit(function)
    wanted = leaves(function(y))
    for _ in range(4):
        assert leaves(compiled(y)) == wanted
        np.testing.assert_array_equal(array, before)


def test_arrays_under_a_condition_that_a_tensor_decides():
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False

    @ms.jit
    def function(y):
        if y.sum() > 0:
            y = y + Tensor(array)
        else:
            y = y - Tensor(np.flip(array))
        return y

    assert function(Tensor(np.ones(4, np.float32))).tolist() == [1, 2, 3, 4]
    assert function(Tensor(-np.ones(4, np.float32))).tolist() == [-4, -3, -2, -1]


@pytest.mark.parametrize("maker", ["from_numpy", "frombuffer", "from_dlpack"])
def test_tensors_in_the_memory_of_an_array_see_its_writes(maker):
    array = np.zeros(3, np.float32)

    def function(y):
        t = MAKERS[maker](array)
        array[0] += 1
        return t * y

    found = []
    for way in (function, ms.jit(function)):
        array[:] = 0
        found.append([way(Tensor([2.0])).tolist() for _ in range(4)])
    assert found[0] == found[1] == [[2 * k, 0, 0] for k in range(1, 5)]


def test_another_thread_s_writes_are_not_taken_back():
    array = np.zeros(4, np.float32)

    class Writing:
        """Stands for what changes an array while a function is staged."""

        def __init__(self):
            self.array = array

    held = Writing()

    @ms.jit
    def function(y):
        total = Tensor(held.array)
        return y + total

    function(Tensor([1.0]))
    array[0] = 5
    assert function(Tensor([1.0])).tolist() == [6, 1, 1, 1]
    assert array.tolist() == [5, 0, 0, 0]


def test_writes_of_the_program_itself_are_made_at_each_call():
    array = np.zeros(4, np.float32)

    @ms.jit
    def function(y):
        array[1] = 3
        return y * 2

    function(Tensor([1.0]))
    assert array.tolist() == [0, 3, 0, 0]
    array[1] = 0
    function(Tensor([1.0]))
    assert array.tolist() == [0, 3, 0, 0]
    assert mint.add(Tensor(array), 1).tolist() == ops.add(Tensor(array), 1).tolist()
