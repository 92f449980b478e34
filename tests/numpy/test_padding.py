"""`numpy.pad` in all of NumPy's modes, and reading along an axis where the other axes broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.numpy as mnp

from ..ops.checks import check_gradient

CHECKED = {"numpy.pad": "NumPy"}

R = np.random.default_rng(0)
ARRAYS = [R.normal(size=(3, 4)), R.integers(0, 9, (3, 5)), R.normal(size=(4,)), R.normal(size=(2, 1, 3))]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "constant": [{}, {"constant_values": (3, -2)}],
    "linear_ramp": [{}, {"end_values": (3, -2)}],
    "edge": [{}],
    "wrap": [{}],
    "reflect": [{}, {"reflect_type": "odd"}],
    "symmetric": [{}, {"reflect_type": "odd"}],
    "maximum": [{}, {"stat_length": 2}],
    "minimum": [{}, {"stat_length": (1, 2)}],
    "mean": [{}, {"stat_length": 2}],
    "median": [{}, {"stat_length": 2}],
}


@pytest.mark.parametrize("mode", OPTIONS)
def test_pad(mode: str) -> None:
    for x in ARRAYS:
        for width in (1, (2, 3), [(1, 0)] * x.ndim, 7):
            for options in OPTIONS[mode]:
                expected = np.pad(x, width, mode, **options)
                found = mnp.pad(x, width, mode, **options)
                assert found.dtype == ms.Tensor(x).dtype
                np.testing.assert_allclose(found.asnumpy(), expected, atol=1e-6)


@pytest.mark.parametrize("mode", ["linear_ramp", "reflect", "mean", "median"])
def test_derivatives(mode: str) -> None:
    check_gradient(lambda x: mnp.pad(x, (2, 1), mode), R.normal(size=(3, 4)))
    x = ms.Tensor(R.normal(size=(3, 4)))
    np.testing.assert_allclose(
        ms.jit(lambda x: mnp.pad(x, 2, mode))(x).asnumpy(), np.pad(x.asnumpy(), 2, mode), atol=1e-6
    )


def test_what_pad_refuses() -> None:
    for call, text in (
        (lambda: mnp.pad([1], 1, "middle"), "mode must be one of"),
        (lambda: mnp.pad([1], 1, "reflect", reflect_type="both"), "reflect_type must be"),
        (lambda: mnp.pad([1], -1), "must not be negative"),
        (lambda: mnp.pad([1], [[1, 2], [3, 4]]), "a pair for each of 1 axes"),
        (lambda: mnp.pad(np.zeros((0,)), 1, "edge"), "nothing to repeat"),
        (lambda: mnp.pad([1, 2], 1, "mean", stat_length=0), "stat_length must be positive"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_reading_along_an_axis_broadcasts_the_others() -> None:
    x = np.arange(12).reshape(3, 4)
    for index, axis in (
        (np.arange(3).reshape(1, 3), 1),
        (np.array([[2], [0]]), 0),
        (np.array([[1, 1], [0, 3], [2, 2]]), -1),
    ):
        assert mnp.take_along_axis(x, index, axis).tolist() == np.take_along_axis(x, index, axis).tolist()
    with pytest.raises(ValueError, match="do not fit an array of 2"):
        mnp.take_along_axis(x, [1], 0)
    assert mnp.result_type("i2", mnp.float32, True) == ms.float32 and mnp.result_type("i2", "int8") == ms.int16
