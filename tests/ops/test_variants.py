"""Functions that differ from others in their parameters only, and small ones around shapes, against
NumPy and MindSpore.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from scipy import stats

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks, I

checks = Checks("NumPy")
add = checks.add

for k, m, n, p in ((2, 3, 4, 2), (1, 1, 1, 1), (3, 2, 5, 1)):
    given = (A(k, m, n), A(k, n, p))
    add("ops.baddbmm_ext", lambda c, x, y: c + x @ y, (A(k, m, p), *given), (A(p), *given), (A(1, m, 1), *given))
    add(
        "ops.baddbmm_ext",
        lambda c, x, y, alpha, beta: beta * c + alpha * (x @ y),
        (A(m, p), *given),
        kwargs={"alpha": 2, "beta": -0.5},
    )
add(
    "ops.baddbmm_ext",
    lambda c, x, y, beta: x @ y,
    (A(1, 1, values=[[np.nan]]), A(2, 3, 2), A(2, 2, 1)),
    kwargs={"beta": 0},
    grad=(1, 2),
)
for lead, i, j, o in (((3,), 2, 3, 4), ((), 1, 1, 1), ((2, 2), 3, 1, 2)):
    given = (A(*lead, i), A(*lead, j), A(o, i, j))
    add("ops.bidense", lambda x, y, w: np.einsum("...i,oij,...j->...o", x, w, y), given, tolerance=4)
    add("ops.bidense", lambda x, y, w, b: np.einsum("...i,oij,...j->...o", x, w, y) + b, (*given, A(o)), tolerance=4)
for shape in ((5,), (2, 4), (1, 3)):
    add("ops.diff_ext", np.diff, (A(*shape),), (A(*shape), 2), (A(*shape), 1, 0))
    add(
        "ops.diff_ext",
        lambda x, n, axis, prepend, append: np.diff(x, n, axis, prepend, append),
        (A(*shape), 2, -1, A(*shape), A(*shape)),
        tolerance=2,
    )
add("ops.diff_ext", np.diff, (A(1, 3), 7), (A(2, 3), 0))
add(
    "ops.einsum_ext ops.einsum",
    np.einsum,
    ("ij,jk->ik", A(2, 3), A(3, 4)),
    ("i->", A(3)),
    ("...i,i", A(2, 3), A(3)),
    tolerance=2,
)
add(
    "ops.einsum_ext ops.einsum",
    np.einsum,
    (A(4), [..., 1], A(2), [..., 2], [..., 1, 2]),
    (A(2, 3), [30, 0]),
    (A(3, 3), [5, 5], []),
    tolerance=2,
)
for shape in ((3,), (2, 1), (0, 2)):
    add(
        "ops.float_power_ext",
        np.float_power,
        (A(*shape, low=0.2), -1.5),
        (A(*shape, low=0.2), A(1)),
        (2, A(*shape)),
        tolerance=4,
    )
    add("ops.float_power_ext", np.float_power, (I(*shape, low=1), 0.5))
    add("ops.isnan_ext", np.isnan, (A(*shape),), (I(*shape),), grad=())
    add("ops.tensor_muls", np.multiply, (A(*shape), 2.5), (A(*shape), -3))
    for reduction, function in (("mean", np.mean), ("sum", np.sum), ("none", lambda v: v)):
        if reduction != "mean" or 0 not in shape:
            add(
                "ops.mse_loss_ext",
                lambda x, y, r, f=function: f((x - y) ** 2),
                (A(*shape), A(*shape), reduction),
                (A(*shape), A(2, *shape), reduction),
                tolerance=2,
            )
    add("ops.inplace_sigmoid", scipy.special.expit, (A(*shape),), jit=False, grad=(), oracle="SciPy")
    add("ops.reshape_", np.reshape, (A(*shape), (-1, 1) if 0 not in shape else (0, 1)))
add("ops.isnan_ext", np.isnan, (A(values=[1.0, np.nan, np.inf]),), grad=())
add(
    "ops.hyper_add",
    lambda x, y: [u + v for u, v in zip(x, y)],
    ((A(2), A(3, 1)), (A(2), A(3, 1))),
    ([A(1)], [A(1)]),
    ((A(0), A(2), A(1)), (A(0), A(2), A(1))),
)
test_values, test_gradients = checks.tests()
CHECKED = {
    "ops.bernoulli_ext": "SciPy",
    "ops.print_": "Python",
    "ops.reduced_shape": "NumPy",
    "ops.shape_mul": "NumPy",
    "Tensor.uniform": "SciPy",
}


def test_shapes() -> None:
    for shape in ((2, 3, 4), (1, 5, 2), (3, 0, 1)):
        x = np.zeros(shape)
        assert ops.shape_mul(shape) == x.size
        for axes in ((1,), (0, -1), ()):
            assert ops.reduced_shape(shape, axes) == x.sum(axes or None, keepdims=True).shape
    assert ops.reduced_shape((2, 3), 1) == (2, 1)


def test_bernoulli_numbers() -> None:
    ms.set_seed(3)
    p = np.linspace(0, 1, 5)
    drawn = ops.bernoulli_ext(Tensor(np.broadcast_to(p, (4000, 5)).copy())).asnumpy()
    assert set(np.unique(drawn)) == {0.0, 1.0} and drawn.dtype == np.float64
    for rate, column in zip(p, drawn.T):
        assert stats.binomtest(int(column.sum()), 4000, rate).pvalue > 1e-3
    ms.set_seed(3)
    np.testing.assert_array_equal(ops.bernoulli_ext(Tensor(np.broadcast_to(p, (4000, 5)).copy())).asnumpy(), drawn)
    assert ops.bernoulli_ext(ops.ones((2, 0), ms.float16)).shape == (2, 0)


def test_uniform_numbers() -> None:
    ms.set_seed(5)
    x = ops.zeros((50, 40))
    drawn = x.uniform(-1.0, 3.0).asnumpy()
    assert stats.kstest(drawn.ravel(), stats.uniform(-1, 4).cdf).pvalue > 1e-3
    assert not x.asnumpy().any() and drawn.dtype == np.float32
    ms.set_seed(5)
    np.testing.assert_array_equal(x.uniform(-1.0, 3.0).asnumpy(), drawn)
    assert ops.zeros((0, 2)).uniform().shape == (0, 2)
    with pytest.raises(ValueError, match="from_ must not be larger than to"):
        x.uniform(2.0, 1.0)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    assert ops.print_("x is", 3) is None
    assert capsys.readouterr().out == "x is\n3\n"

    @ms.jit
    def doubled(x: Tensor) -> Tensor:
        y = x * 2
        ops.print_("y", y)
        return y

    assert doubled(Tensor([1.5])).tolist() == [3.0]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "y" and "3" in lines[1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.einsum_ext(ops.ones(2), [52]), ValueError, r"whole numbers in \[0, 52\), not 52"),
        (lambda: ops.float_power_ext(2.0, 3.0), TypeError, "must be a tensor"),
        (lambda: ops.float_power_ext(Tensor([1j]), 2), TypeError, "complex numbers are not supported"),
        (lambda: ops.bidense(ops.ones((1, 2)), ops.ones((1, 3)), ops.ones((1, 3, 3))), ValueError, r"takes \(.., i\)"),
        (
            lambda: ops.inplace_index_add([1.0], Tensor([0]), Tensor([1.0]), 0),
            TypeError,
            "must be a Tensor or Parameter",
        ),
        (lambda: ops.inplace_sigmoid([1.0]), TypeError, "must be a Tensor to write to"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
