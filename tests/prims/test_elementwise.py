"""Element-wise primitives against SciPy, Python integers and special values; shapes and errors of
the basic families.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import REGISTRY, constant
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines.reference import apply
from mycel._src.foundation.dtype import bool_, float32, float64, int32, uint8
from mycel._src.foundation.errors import ShapeError
from tests.prims.cases import nodes_for, run, sweep


def t(*shape: Any, dtype: Any = float32) -> Any:
    return tensor_type(shape, dtype)


POSITIVE = np.array([1e-3, 0.1, 0.5, 1.0, 1.5, 3.0, 12.0, 50.0])
REAL = np.concatenate([-POSITIVE[::-1], [0.0], POSITIVE])


@pytest.mark.parametrize(
    ("primitive", "oracle", "x"),
    [
        (E.erf, special.erf, REAL),
        (E.erfc, special.erfc, REAL),
        (E.sigmoid, special.expit, REAL * 10),
        (E.lgamma, special.gammaln, POSITIVE),
        (E.lgamma, special.gammaln, np.array([-0.5, -1.5, -7.25])),
        (E.digamma, special.digamma, POSITIVE),
        (E.digamma, special.digamma, np.array([-0.5, -1.5, -7.25])),
        (E.erfinv, special.erfinv, np.array([-1 + 1e-12, -0.999, -0.5, 0.0, 1e-9, 0.3, 0.9999, 1 - 1e-15])),
        (E.exp2, np.exp2, REAL),
        (E.expm1, np.expm1, REAL),
        (E.log1p, np.log1p, POSITIVE),
        (E.rsqrt, lambda x: x**-0.5, POSITIVE),
    ],
)
def test_special_functions(primitive: Any, oracle: Any, x: Any) -> None:
    np.testing.assert_allclose(apply(primitive, [x], {}), oracle(x), rtol=1e-12)


def test_trigamma() -> None:
    x = np.array([-25.3, -9.7, -3.2, -0.5, 0.01, 0.3, 1.0, 2.0, 10.0, 1e5])
    reflected = (np.pi / np.sin(np.pi * x)) ** 2 - special.polygamma(1, 1 - x)
    expected = np.where(x < 0, reflected, special.polygamma(1, np.abs(x)))
    free = nodes_for([x])
    np.testing.assert_allclose(run([E.trigamma(free[0])], free, [x])[0], expected, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.integers(-128, 127), st.integers(-128, 127))
def test_integers_wrap_and_floor(a: int, b: int) -> None:
    def wrapped(v: int) -> int:
        return (v + 128) % 256 - 128

    x, y = np.array(a, np.int8), np.array(b, np.int8)
    for primitive, value in ((E.add, a + b), (E.sub, a - b), (E.mul, a * b)):
        assert apply(primitive, [x, y], {}) == wrapped(value)
    if b and (a, b) != (-128, -1):
        assert apply(E.floor_div, [x, y], {}) == a // b
        assert apply(E.mod, [x, y], {}) == a % b
        assert apply(E.fmod, [x, y], {}) == math.fmod(a, b)


def test_integer_powers() -> None:
    x, y = np.array([2, -2, 1, -1, -1, 3], np.int32), np.array([3, 3, -5, -3, -4, -1], np.int32)
    np.testing.assert_array_equal(apply(E.pow_, [x, y], {}), [8, -8, 1, -1, 1, 0])


def test_nan_wins_in_extremes_and_signs() -> None:
    x, y = np.array([np.nan, 1.0, -0.0]), np.array([1.0, np.nan, 2.0])
    np.testing.assert_array_equal(apply(E.maximum, [x, y], {}), [np.nan, np.nan, 2])
    np.testing.assert_array_equal(apply(E.minimum, [x, y], {}), [np.nan, np.nan, -0.0])
    np.testing.assert_array_equal(apply(E.sign, [x], {}), [np.nan, 1, 0])
    wide = np.array([[1.0, np.nan]]).astype(ml_dtypes.bfloat16)
    assert np.isnan(apply(R.reduce_max, [wide], {"axes": (1,), "keepdims": False}).astype(float)).all()
    assert apply(R.argmax, [wide], {"axis": 1}).tolist() == [1]


def gradients(function: Any, *arrays: Any) -> list[Any]:
    free = nodes_for(arrays)
    out = function(*free)
    found = sweep([out], [S.full(out.shape, 1, out.dtype)], free)
    return list(run([f for f in found if f is not None], free, arrays))


def test_derivatives_at_kinks() -> None:
    zero = np.zeros(1)
    assert gradients(E.abs_, zero)[0] == 0
    assert [g.item() for g in gradients(E.maximum, zero, zero)] == [0.5, 0.5]
    assert [g.item() for g in gradients(E.minimum, zero, zero + 1)] == [1, 0]
    assert gradients(lambda x: R.reduce_max(x, axes=(0,), keepdims=False), np.array([2.0, 2.0, 1.0]))[0].tolist() == [
        0.5,
        0.5,
        0,
    ]


def test_derivatives_of_powers_at_zero() -> None:
    x = np.array([0.0, 0.0, 0.0, 2.0])
    powers = constant([0.0, 1.0, 2.0, 0.0], float64)
    assert gradients(lambda v: E.pow_(v, powers), x)[0].tolist() == [0, 1, 0, 0]
    dx, dy = gradients(E.pow_, x, np.array([0.0, 1.0, 2.0, 0.0]))
    assert dx.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(dy, [0, 0, 0, math.log(2)])


@pytest.mark.parametrize(
    ("values", "expected"), [([2.0, 3.0, 4.0], [12, 8, 6]), ([0.0, 3.0, 4.0], [12, 0, 0]), ([0.0, 0.0, 4.0], [0, 0, 0])]
)
def test_derivative_of_products_with_zeros(values: Any, expected: Any) -> None:
    assert gradients(lambda x: R.reduce_prod(x, axes=(0,), keepdims=False), np.array(values))[0].tolist() == expected


def test_reductions_of_nothing_give_the_identity() -> None:
    empty = np.zeros((2, 0))
    for primitive, value in ((R.reduce_sum, 0), (R.reduce_prod, 1), (R.reduce_max, -np.inf), (R.reduce_min, np.inf)):
        np.testing.assert_array_equal(apply(primitive, [empty], {"axes": (1,), "keepdims": False}), [value, value])
    assert apply(R.reduce_max, [np.zeros(0, np.int8)], {"axes": (0,), "keepdims": False}) == -128
    assert not apply(R.reduce_any, [np.zeros(0, np.bool_)], {"axes": (0,), "keepdims": False})
    with pytest.raises(ShapeError, match="argmax over axis 0 of float32.0.: there is nothing to choose from"):
        R.argmax.infer(t(0), axis=0)


def test_half_types_round_once() -> None:
    x = np.array([1.0, 3.0], np.float16)
    wide = np.tanh(x.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(apply(E.tanh, [x], {}), wide)
    ones = np.ones((1, 4096), np.float16)
    assert apply(R.reduce_sum, [ones], {"axes": (1,), "keepdims": False}) == 4096
    assert apply(matmul, [ones, ones.T], {}) == 4096


def test_symbolic_shapes() -> None:
    n, m = symbol("n"), symbol("m")
    assert E.add.infer(t(n, 1, 3), t(m, 1)) is t(n, m, 3)
    assert matmul.infer(t(n, 4, m), t(m, 5)) is t(n, 4, 5)
    assert R.reduce_sum.infer(t(n, 4, m), axes=(1,), keepdims=True) is t(n, 1, m)
    x = input_node(t(n, 6))
    assert S.reshape(x, (2 * n, 3)).shape == (2 * n, 3)
    assert S.concat([x, x], 0).shape == (2 * n, 6)
    assert S.pad(x, 0, (1, 0), (1, 0)).shape == (n + 2, 6)
    assert S.slice_axis(S.pad(x, 0, (1, 0), (1, 0)), 0, 1, n + 1).shape == (n, 6)
    assert S.slice_axis(S.reshape(x, (2 * n, 3)), 0, 0, 2 * n, 2).shape == (n, 3)
    assert S.full((n, m), 1, int32).type is t(n, m, dtype=int32)


def test_errors() -> None:
    n = symbol("n")
    with pytest.raises(
        ShapeError, match=r"shapes \(2, 3\) and \(4,\) do not broadcast: sizes 3 and 4 at axis -1 differ"
    ):
        E.add.infer(t(2, 3), t(4))
    with pytest.raises(ShapeError, match=r"shapes \(n,\) and \(3,\) do not broadcast"):
        E.add.infer(t(n), t(3))
    with pytest.raises(TypeError, match="add: element types float32, int32 differ; cast one of them"):
        E.add.infer(t(2), t(2, dtype=int32))
    with pytest.raises(TypeError, match="exp takes floating, complex tensors, not int32"):
        E.exp.infer(t(2, dtype=int32))
    with pytest.raises(TypeError, match="select: the condition must be boolean, not uint8"):
        REGISTRY["select"].infer(t(2, dtype=uint8), t(2), t(2))
    with pytest.raises(ShapeError, match=r"reshape: float32\[n, 6\] has 6\*n elements, the shape \[n, 5\] wants 5\*n"):
        S.RESHAPE.infer(t(n, 6), shape=(n, 5))
    with pytest.raises(ShapeError, match=r"transpose: \(0, 0\) is not a permutation of the 2 axes"):
        S.TRANSPOSE.infer(t(2, 3), permutation=(0, 0))
    with pytest.raises(ShapeError, match=r"slice: 1:5:1 does not lie in axis 0 of float32\[3\]"):
        S.SLICE.infer(t(3), starts=(1,), stops=(5,), steps=(1,))
    with pytest.raises(ShapeError, match="pad: low -2 and high -2 leave a negative size on axis 0"):
        S.PAD.infer(t(3), t(), low=(-2,), high=(-2,), interior=(0,))
    with pytest.raises(ShapeError, match=r"concat along axis 0: float32\[2, 4\] does not fit float32\[2, 3\]"):
        S.CONCAT.infer(t(2, 3), t(2, 4), axis=0)
    with pytest.raises(
        ShapeError,
        match=r"matmul: inner dimensions differ: \(32, 400\) @ \(120, 400\); transpose the second argument\?",
    ):
        matmul.infer(t(32, 400), t(120, 400))
    with pytest.raises(ShapeError, match=r"axis 2 is out of range for float32\[2, 3\]"):
        R.reduce_sum.infer(t(2, 3), axes=(2,), keepdims=False)
    with pytest.raises(ShapeError, match="argmin: axis -1 is not an axis of bool"):
        R.argmin.infer(t(2, 3, dtype=bool_), axis=-1)
