"""Writes in place take the memory that they write, wherever nobody else sees the old value; and
where somebody does, he goes on seeing it.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor

ROWS, COLUMNS = 512, 1024  # of int8: large enough to be written in place
SIZE = ROWS * COLUMNS
INDICES = {
    "row": 5,
    "rows": slice(3, 9),
    "element": (5, 7),
    "columns": (..., slice(None, 6, 2)),
    "backwards": (slice(20, 10, -1), slice(1, 3)),
    "new axis": (None, 4),
    "positions": np.array([1, 3, -1]),
    "both": (np.array([1, 2]), np.array([3, 4])),
    "mask": np.arange(ROWS) % 100 == 3,
}


def whole():
    return np.random.RandomState(0).randint(-9, 9, (ROWS, COLUMNS)).astype(np.int8)


def taken(write):
    ms.runtime.reset_peak_memory_stats()
    before = ms.runtime.memory_allocated()
    write()
    return ms.runtime.max_memory_allocated() - before


def as_index(index):
    entries = index if isinstance(index, tuple) else (index,)
    entries = tuple([Tensor(e) if isinstance(e, np.ndarray) else e for e in entries])
    return entries if isinstance(index, tuple) else entries[0]


@pytest.mark.parametrize("value", [9, "all"])
@pytest.mark.parametrize("name", INDICES)
def test_a_write_takes_what_it_writes(name, value):
    array = whole()
    t, given = Tensor(array), np.ones_like(array[INDICES[name]]) if value == "all" else value
    index = as_index(INDICES[name])
    t[index] = Tensor(given) if value == "all" else given
    array[INDICES[name]] = given
    np.testing.assert_array_equal(t.asnumpy(), array)
    new = Tensor(given) if value == "all" else given

    def write():
        t[index] = new

    assert taken(write) < SIZE // 8


def _row(t):
    t[5] = 9


def _rows(t):
    t[2:4] = 3


def _element(t):
    t[1, 1] = 4


@pytest.mark.parametrize("write", [_row, _rows, _element])
@pytest.mark.parametrize("kind", [np.int8, np.float32, np.bool_])
def test_compiled_writes_take_no_positions(write, kind):
    array = whole().astype(kind)
    weight = ms.Parameter(Tensor(array), name="w")
    changed = Tensor(array)

    @ms.jit
    def of_parameter():
        write(weight)

    @ms.jit
    def of_argument(x):
        write(x)
        return x.sum()

    of_parameter()
    of_argument(changed)
    copies = 3 if kind is np.bool_ else 1
    assert taken(of_parameter) < (copies if kind is np.bool_ else 0) * array.nbytes + SIZE // 8
    assert taken(lambda: of_argument(changed)) < (copies + 1) * array.nbytes + SIZE
    write(array)
    np.testing.assert_array_equal(weight.asnumpy(), array)
    np.testing.assert_array_equal(changed.asnumpy(), array)


def test_who_saw_the_old_value_still_does():
    array = whole()
    t = Tensor(array)
    other = ms.Parameter(Tensor(array), name="other")
    other.set_data(t)
    given = t.asnumpy()
    t[5] = 9
    np.testing.assert_array_equal(given, array)
    np.testing.assert_array_equal(other.asnumpy(), array)


def test_views_follow_and_their_writes_come_back():
    array = whole()
    t = Tensor(array)
    row, turned, flat = t[5], t.T, t.reshape(-1)
    t[5, 1] = 7
    array[5, 1] = 7
    for view, expected in ((row, array[5]), (turned, array.T), (flat, array.reshape(-1))):
        np.testing.assert_array_equal(view.asnumpy(), expected)
    row[0] = 1
    flat[3] = 2
    turned[4, 5] = 3
    array[5, 0], array[0, 3], array[5, 4] = 1, 2, 3
    np.testing.assert_array_equal(t.asnumpy(), array)
    del row, turned, flat
    t[6] = 4
    array[6] = 4
    np.testing.assert_array_equal(t.asnumpy(), array)


def test_the_array_that_a_tensor_shares_is_left():
    array = whole()
    t = ms.from_numpy(array)
    t[5] = 9
    np.testing.assert_array_equal(array, whole())


def test_gradients_are_those_of_the_values_at_the_time():
    x = Tensor(np.linspace(0, 1, 1 << 15, dtype=np.float32))

    def function(x, y):
        z = x * y
        square = z * z
        z[5] = 3.0
        return square.sum() + (z * x).sum()

    y = Tensor(np.full(1 << 15, 2.0, np.float32))
    found = ms.grad(function, (0, 1))(x, y)
    compiled = ms.jit(ms.grad(function, (0, 1)))(x, y)
    a = x.asnumpy().astype(np.float64)
    keep = np.arange(1 << 15) != 5
    by_x = 2 * a * 4 + np.where(keep, 2 * a * 2, 3.0)
    by_y = 2 * a**2 * 2 + np.where(keep, a * a, 0.0)
    for got, wanted in zip((*found, *compiled), (by_x, by_y) * 2):
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("index, value", [(600, 1), ((0, 2000), 1), (0, [1, 2])])
def test_errors_leave_the_tensor_as_it_was(index, value):
    t = Tensor(whole())
    with pytest.raises((IndexError, ValueError)):
        t[index] = Tensor(value)
    np.testing.assert_array_equal(t.asnumpy(), whole())
