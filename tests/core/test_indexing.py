"""Indexing against NumPy, and its gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mycel as ms
from mycel import Tensor

CUBE = np.arange(60, dtype=np.int64).reshape(3, 4, 5)
MASK = CUBE % 3 == 0

BASIC = [
    0,
    -1,
    (1, 2),
    (0, -1, 3),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(-1, None, -2),
    slice(5, 0, -1),
    slice(2, 2),
    (slice(None), 1),
    (Ellipsis, 1),
    (1, Ellipsis, slice(0, 4, 2)),
    None,
    (None, 1),
    (slice(None), None, 2),
    (Ellipsis, None),
    (slice(None, None, -1), slice(3, None, -2), slice(1, -1)),
    (),
    Ellipsis,
    (0, 0, 0),
    np.int32(1),
    (slice(10, 20),),
]
ADVANCED = [
    [0, 2],
    [2, 0, 2, 1],
    ([0, 1], [1, 3]),
    ([0, 1], slice(None), [1, 3]),
    (slice(None), [1, 3]),
    (slice(None), slice(None), [4, 0, -1]),
    ([[0], [1]], [0, 3]),
    (0, slice(None), [1, 2]),
    ([0, 1], 2),
    (slice(1, 3), [0, 2], slice(None, None, 2)),
    (None, [0, 1]),
    ([0, 2], None, [1, 1]),
    np.array([[0, 1], [2, 0]]),
    (Ellipsis, [0, 1], [1, 2]),
    [],
    (1, [0, -1], slice(None, None, -1)),
    (slice(None), [True, False, True, False]),
    MASK,
    MASK[:, :, 0],
    ([1], [2], [3]),
    (MASK[:, 0, 0],),
    (slice(None), MASK[0]),
    (np.array([0, 1]), np.array([True, False, True, False]).nonzero()[0]),
    True,
]


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_reading_agrees_with_numpy(index: object) -> None:
    got = Tensor(CUBE)[index]
    want = CUBE[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.asnumpy(), want)


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_writing_agrees_with_numpy(index: object) -> None:
    for value in (7, "block"):
        x, want = Tensor(CUBE), CUBE.copy()
        new = np.arange(want[index].size).reshape(want[index].shape) + 1000 if value == "block" else value
        x[index] = Tensor(new) if isinstance(new, np.ndarray) else new
        want[index] = new
        np.testing.assert_array_equal(x.asnumpy(), want)


@given(hnp.basic_indices((3, 4, 5), allow_newaxis=True))
@settings(max_examples=120, deadline=None)
def test_any_basic_index(index: object) -> None:
    np.testing.assert_array_equal(Tensor(CUBE)[index].asnumpy(), CUBE[index])
    x, want = Tensor(CUBE), CUBE.copy()
    x[index], want[index] = -1, -1
    np.testing.assert_array_equal(x.asnumpy(), want)


@given(hnp.integer_array_indices((3, 4, 5), result_shape=hnp.array_shapes(min_dims=1, max_dims=2, max_side=3)))
@settings(max_examples=60, deadline=None)
def test_any_integer_array_index(index: tuple[np.ndarray, ...]) -> None:
    got = Tensor(CUBE)[tuple(Tensor(i) for i in index)]
    np.testing.assert_array_equal(got.asnumpy(), CUBE[index])


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_mixed_indices(data: st.DataObject) -> None:
    entries: list[object] = []
    for size in CUBE.shape:
        kind = data.draw(st.sampled_from(["int", "slice", "array", "new"]))
        if kind == "new":
            entries.append(None)
        if kind == "array":
            entries.append(np.array(data.draw(st.lists(st.integers(-size, size - 1), min_size=2, max_size=2))))
        elif kind == "int":
            entries.append(data.draw(st.integers(-size, size - 1)))
        else:
            entries.append(data.draw(st.slices(size)))
    index = tuple(entries)
    np.testing.assert_array_equal(Tensor(CUBE)[index].asnumpy(), CUBE[index])
    x, want = Tensor(CUBE), CUBE.copy()
    value = np.arange(want[index].size).reshape(want[index].shape)
    if not any(isinstance(e, np.ndarray) and len(set(e % 60)) < len(e) for e in entries):
        x[index], want[index] = Tensor(value), value
        np.testing.assert_array_equal(x.asnumpy(), want)


def test_scalar_tensors_are_positions() -> None:
    i, j = Tensor(2), Tensor(-1, ms.int32)
    x = Tensor(CUBE)
    np.testing.assert_array_equal(x[i].asnumpy(), CUBE[2])
    np.testing.assert_array_equal(x[i, j].asnumpy(), CUBE[2, -1])
    np.testing.assert_array_equal(x[:, i, None, ::2].asnumpy(), CUBE[:, 2, None, ::2])
    np.testing.assert_array_equal(x[i, [0, 1]].asnumpy(), CUBE[2, [0, 1]])
    want = CUBE.copy()
    x[i, 1:3, j], want[2, 1:3, -1] = Tensor([5, 6]), [5, 6]
    np.testing.assert_array_equal(x.asnumpy(), want)


def test_writing_converts_and_broadcasts() -> None:
    x = Tensor(np.zeros((2, 3), np.float32))
    x[:, 1] = Tensor([1, 2])
    x[0] = np.array([[9.0, 8.0, 7.0]])
    assert x.dtype is ms.float32
    assert x.tolist() == [[9.0, 8.0, 7.0], [0.0, 2.0, 0.0]]
    flags = Tensor(np.zeros(3, bool))
    flags[[0, 2]] = True
    assert flags.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (3, "index 3 is out of range for axis 0 of size 3"),
        (-4, "index -4 is out of range for axis 0 of size 3"),
        ((0, 4), "index 4 is out of range for axis 1 of size 4"),
        ([0, 5], "index 5 is out of range for axis 0 of size 3"),
        ((0, 0, 0, 0), "too many indices: the tensor has 3 dimensions, 4 were indexed"),
        ((Ellipsis, Ellipsis), "only one"),
        (1.5, "not float"),
        ("x", "not str"),
        (np.array([0.5]), "must be integers or booleans"),
        (([0, 1], [0, 1, 2]), "do not broadcast together"),
        (np.ones((2, 4), bool), "does not fit the axes"),
        (False, "index False"),
        (Tensor(7), "index 7 is out of range"),
    ],
)
def test_wrong_indices(index: object, text: str) -> None:
    with pytest.raises(IndexError, match=text):
        Tensor(CUBE)[index]


def test_a_value_that_does_not_fit() -> None:
    x = Tensor(CUBE)
    with pytest.raises(
        ValueError, match=r"a value of shape \(3,\) does not fit the selected places, of shape \(4, 5\)"
    ):
        x[0] = Tensor([1, 2, 3])
    with pytest.raises(ValueError, match="step must not be 0"):
        x[::0]


def _slope(index: object, values: np.ndarray) -> np.ndarray:
    x = Tensor(values)
    weight = Tensor(np.cos(np.arange(values[index].size, dtype=np.float64)).reshape(values[index].shape))
    return ms.grad(lambda t: ms.ops.sum(t[index] * t[index] * weight))(x).asnumpy()


@pytest.mark.parametrize(
    "index", [1, (slice(None), slice(None, None, -2)), [0, 0, 2], ([0, 1], [1, 1]), (None, -1), Tensor(1)], ids=str
)
def test_the_gradient_of_reading(index: object) -> None:
    values = np.linspace(-1, 1, 12).reshape(3, 4)
    plain = int(index) if isinstance(index, Tensor) else index
    want = np.zeros_like(values)
    part = values[plain]
    np.add.at(want, plain, 2 * part * np.cos(np.arange(part.size, dtype=np.float64)).reshape(part.shape))
    np.testing.assert_allclose(_slope(plain, values), want, atol=1e-12)
    got = ms.grad(
        lambda t: ms.ops.sum(
            t[index] * t[index] * Tensor(np.cos(np.arange(part.size, dtype=np.float64)).reshape(part.shape))
        )
    )
    np.testing.assert_allclose(got(Tensor(values)).asnumpy(), want, atol=1e-12)


@pytest.mark.parametrize(
    "index", [1, (slice(None), slice(None, None, 2)), ([0, 2], [1, 3]), (slice(0, 2), slice(1, 3))], ids=str
)
def test_the_gradient_of_writing(index: object) -> None:
    values = np.linspace(-1, 1, 12).reshape(3, 4)
    new = np.full(values[index].shape, 0.5)

    def loss(t: Tensor, v: Tensor) -> Tensor:
        copy = t * 1.0
        copy[index] = v * 3.0
        return ms.ops.sum(copy * copy)

    dt, dv = ms.grad(loss, (0, 1))(Tensor(values), Tensor(new))
    want = 2 * values
    want[index] = 0
    np.testing.assert_allclose(dt.asnumpy(), want, atol=1e-12)
    np.testing.assert_allclose(dv.asnumpy(), 18 * new, atol=1e-12)
