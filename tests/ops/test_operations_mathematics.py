"""Operations of mathematics as objects against NumPy and SciPy; conventions against stored results
of MindSpore.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Array, Checks, I

checks = Checks("NumPy")
add = checks.add

for shape in ((5,), (3, 1), (0, 2)):
    p, q, x = A(*shape, low=0.2, high=6), A(*shape, low=0.2, high=6), A(*shape, low=0.05, high=0.95)
    add("ops.Betainc", scipy.special.betainc, (p, q, x), oracle="SciPy", tolerance=10)
add(
    "ops.LerpScalar", lambda x, y, w: x + w * (y - x), (A(3, 2), A(3, 2), 0.3), (A(1), A(4), -1.5), (A(0, 3), A(3), 0.5)
)
for start, end in ((0.0, 3.0), (-2.0, 1.5), (1.0, 1.0)):
    add(
        "ops.LogSpace",
        lambda a, b: np.logspace(a, b, 5, base=2),
        (A(values=start), A(values=end)),
        init={"steps": 5, "base": 2, "dtype": ms.float64},
        dtypes="float64",
        tolerance=4,
    )
for shape, axis in (((5,), 0), ((3, 4), 1), ((2, 3, 2), 0)):
    add("ops.LogSoftmaxExt", lambda v, axis=axis: scipy.special.log_softmax(v, axis), (A(*shape),), oracle="SciPy")
add(
    "ops.LogSoftmaxExt",
    lambda v, axis, kind: scipy.special.log_softmax(v, axis),
    (A(3, 4), 0, ms.float64),
    dtypes="float64",
    oracle="SciPy",
)


# Linear algebra.
def triangle(lower: bool) -> Any:
    return lambda a, b: np.linalg.solve((np.tril if lower else np.triu)(a), b)


def tall(*shape: int) -> Array:
    return A(*shape, low=1, high=3)


add("ops.Cross", np.cross, (A(4, 3), A(4, 3)), (A(1, 3), A(1, 3)), (A(2, 2, 3), A(2, 2, 3)))
add("ops.Cross", lambda x, y: np.cross(x, y, axis=0), (A(3, 3), A(3, 3)), init={"dim": 0})
for lower in (True, False):
    for a, b in ((tall(3, 3), A(3, 2)), (tall(2, 1, 1), A(2, 1, 3)), (tall(2, 2, 2), A(2, 2, 1))):
        add("ops.MatrixTriangularSolve", triangle(lower), (a, b), init={"lower": lower}, tolerance=20)
add(
    "ops.MatrixTriangularSolve",
    lambda a, b: np.linalg.solve(np.tril(a).T, b),
    (tall(3, 3), A(3, 2)),
    init={"adjoint": True},
    tolerance=20,
)
TALL, WIDE = np.vander([1.0, 2, 3, 5], 3), np.vander([1.0, 2, 3], 3)[:2]


def ridge(penalty: float) -> Any:
    return lambda a, b: np.linalg.solve(a.swapaxes(-1, -2) @ a + penalty * np.eye(a.shape[-1]), a.swapaxes(-1, -2) @ b)


for a, b in ((A(values=TALL), A(4, 2)), (A(values=WIDE), A(2, 1)), (A(values=TALL[:3]), A(3, 2))):
    add("ops.Lstsq", lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0], (a, b), tolerance=200)
    add("ops.Lstsq", ridge(0.5), (a, b), init={"l2_regularizer": 0.5}, tolerance=200)
add("ops.Lstsq", lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0][:, None], (A(values=TALL), A(4)), tolerance=200)
BATCH = np.stack([TALL, TALL + np.cos(np.arange(12)).reshape(4, 3)])
for a, b in ((A(values=BATCH), A(2, 4, 2)), (A(values=BATCH.swapaxes(1, 2)), A(2, 3, 1)), (A(values=TALL), A(4, 1))):
    add("ops.MatrixSolveLs", lambda x, y, _: ridge(0.25)(x, y), (a, b, Tensor(0.25)), tolerance=500)
    add(
        "ops.MatrixSolveLs",
        lambda x, y, _: np.linalg.pinv(x) @ y,
        (a, b, Tensor(9.0)),
        init={"fast": False},
        tolerance=500,
    )
LU = np.array([[2.0, 1, 1], [0.5, 1, 1.5], [0.5, 0, 2.5]])


def packed_solve(b: Any, lu: Any, pivots: Any) -> Any:
    return scipy.linalg.lu_solve((lu, np.asarray(pivots) - 1), b)


PIVOTS = Array((3,), dtype="int32", values=np.array([2, 2, 3]))
add(
    "ops.LuSolve",
    packed_solve,
    (A(3, 1), A(values=LU), PIVOTS),
    (A(3, 2), A(values=LU.T + 1), PIVOTS),
    (A(3, 3), A(values=LU + np.eye(3)), PIVOTS),
    oracle="SciPy",
    tolerance=20,
)


def unpacked(lu: Any, pivots: Any) -> Any:
    rows, least = lu.shape[0], min(lu.shape)
    order = np.arange(rows)
    for k, j in enumerate(np.asarray(pivots) - 1):
        order[[k, j]] = order[[j, k]]
    return np.eye(rows)[:, order], np.tril(lu, -1)[:, :least] + np.eye(rows, least), np.triu(lu)[:least]


for a in (A(3, 3), A(3, 5), A(4, 3)):
    add("ops.LuUnpack", unpacked, (a, PIVOTS), grad=(0,))
add("ops.NuclearNorm", lambda x: np.linalg.norm(x, "nuc"), (A(3, 4),), (A(2, 2),), (A(1, 3),), tolerance=5)
add(
    "ops.NuclearNorm",
    lambda x: np.linalg.norm(x, "nuc", axis=(0, 2), keepdims=True),
    (A(2, 3, 4),),
    init={"dim": (0, 2), "keepdim": True},
    tolerance=5,
)


def three_diagonals(above: Any, main: Any, below: Any, x: Any) -> Any:
    full = [
        np.diag(m[0]) + np.diag(u[0, :-1], 1) + np.diag(d[0, 1:], -1)
        for u, m, d in zip(*(v.reshape(-1, 1, v.shape[-1]) for v in (above, main, below)))
    ]
    return np.stack(full).reshape(*above.shape[:-2], above.shape[-1], above.shape[-1]) @ x


for lead, size, columns in (((), 4, 3), ((2,), 3, 1), ((), 1, 2)):
    d = A(*lead, 1, size)
    add("ops.TridiagonalMatMul", three_diagonals, (d, d, d, A(*lead, size, columns)))

# Order and counts.


def running(x: Any, axis: int, exclusive: bool = False, reverse: bool = False) -> Any:
    line = np.moveaxis(x, axis, -1)
    line = line[..., ::-1] if reverse else line
    total = np.logaddexp.accumulate(line, -1)
    if exclusive:
        total = np.concatenate([np.full((*line.shape[:-1], 1), -np.inf), total[..., :-1]], -1)
    return np.moveaxis(total[..., ::-1] if reverse else total, -1, axis)


for shape, axis in (((4,), 0), ((3, 4), -1), ((2, 1, 3), 0)):
    add("ops.CumulativeLogsumexp", lambda x, a: running(x, int(a)), (A(*shape), Tensor(axis)), tolerance=5)
    add(
        "ops.CumulativeLogsumexp",
        lambda x, a: running(x, int(a), False, True),
        (A(*shape), Tensor(axis)),
        init={"reverse": True},
        tolerance=5,
    )


def lower_median(x: Any, axis: int, keepdims: bool = False) -> Any:
    place = np.argsort(x, axis=axis, kind="stable").take([(x.shape[axis] - 1) // 2], axis)
    found = np.take_along_axis(x, place, axis)
    return (found, place) if keepdims else (found.squeeze(axis), place.squeeze(axis))


for shape in ((5, 2), (4, 3), (1, 2)):
    add("ops.Median", lambda x: lower_median(x, 0), (A(*shape),))
    add("ops.Median", lambda x: lower_median(x, 1, True), (A(*shape),), init={"axis": 1, "keep_dims": True})
    add(
        "ops.Median", lambda x: (lower_median(x.ravel(), 0)[0], np.int64(0)), (A(*shape),), init={"global_median": True}
    )
for shape in ((5,), (3, 4), (2, 1, 6)):
    last = shape[-1] - 1
    add("ops.NthElement", lambda x, n: np.sort(x, -1)[..., n], (A(*shape), last), (A(*shape), 0))
    add(
        "ops.NthElement", lambda x, n: np.sort(x, -1)[..., ::-1][..., n], (A(*shape), last // 2), init={"reverse": True}
    )
    add("ops.Quantile", lambda x, q: np.quantile(x, q), (A(*shape), 0.3), tolerance=4)
    add(
        "ops.Quantile",
        lambda x, q: np.quantile(x, q, -1, keepdims=True),
        (A(*shape), 0.75),
        init={"dim": -1, "keep_dims": True},
        tolerance=4,
    )
for count, size in ((9, 5), (1, 1), (20, 3)):
    add("ops.Bincount", lambda v, n, w: np.bincount(v, w, int(n))[: int(n)], (I(count, high=7), Tensor(size), A(count)))
for count, classes in ((9, 4), (1, 2), (30, 3)):
    given = (I(count, high=classes), I(count, high=classes))

    def confusion(a: Any, b: Any, w: Any = 1, n: int = classes) -> Any:
        table = np.zeros((n, n), np.asarray(w).dtype)
        np.add.at(table, (a, b), w)
        return table

    add("ops.ConfusionMatrix", confusion, given, init={"num_classes": classes})
    add(
        "ops.ConfusionMatrix",
        confusion,
        (*given, A(count)),
        init={"num_classes": classes, "dtype": "float64"},
        dtypes="float64",
    )
for shape in ((7,), (3, 4), (1, 1)):

    def histogram(x: Any, r: Any) -> Any:
        return np.histogram(np.clip(x, *r), 6, r)[0]

    add(
        "ops.HistogramFixedWidth",
        histogram,
        (A(*shape, low=-3, high=3), A(values=[-1.0, 2.0])),
        init={"nbins": 6},
        grad=(),
    )
    add("ops.EqualCount", lambda x, y: np.array([(x == y).sum()], x.dtype), (I(*shape, high=3), I(*shape, high=3)))
add("ops.EqualCount", lambda x, y: np.array([(x == y).sum()], x.dtype), (A(3), A(3)), grad=())
for shape in ((8,), (2, 16), (3, 0)):
    add("ops.CompareAndBitpack", lambda x, t: np.packbits(x > t, -1), (A(*shape), A(low=0.25, high=0.25)), grad=())

# Fourier transforms.
for shape in ((5,), (3, 4), (2, 3, 6)):
    z = Array(shape, dtype="complex128")
    for rank in range(1, len(shape) + 1):
        axes = tuple(range(-rank, 0))
        for norm in ("backward", "ortho", "forward") if shape == (3, 4) else ("backward",):
            init = {"signal_ndim": rank, "norm": norm}
            more: dict[str, Any] = {"dtypes": "complex128", "tolerance": 10}
            named = {"axes": axes, "norm": norm}
            add(
                "ops.FFTWithSize",
                lambda v, named=named: np.fft.fftn(v, **named),
                (z,),
                init={**init, "inverse": False, "real": False},
                **more,
            )
            add(
                "ops.FFTWithSize",
                lambda v, named=named: np.fft.ifftn(v, **named),
                (z,),
                init={**init, "inverse": True, "real": False},
                **more,
            )
            add(
                "ops.FFTWithSize",
                lambda v, named=named: np.fft.ifftn(v, **named).real,
                (z,),
                init={**init, "inverse": True, "real": True, "onesided": False},
                **more,
            )
            add(
                "ops.FFTWithSize",
                lambda v, named=named: np.fft.irfftn(v, **named),
                (z,),
                init={**init, "inverse": True, "real": True},
                **more,
            )
            more = {"dtypes": "float64", "tolerance": 10, "grad": ()}
            for onesided, function in ((True, np.fft.rfftn), (False, np.fft.fftn)):
                add(
                    "ops.FFTWithSize",
                    lambda v, named=named, function=function: function(v, **named),
                    (A(*shape),),
                    init={**init, "inverse": False, "real": True, "onesided": onesided},
                    **more,
                )


# Losses.
def margin_rows(x: Any, y: Any, w: Any = None, p: int = 1, margin: float = 1.0) -> Any:
    own = np.take_along_axis(x, y[:, None].astype(int), 1)
    gaps = np.maximum(margin - own + x, 0) ** p
    gaps = gaps * (1 if w is None else np.asarray(w)[y][:, None])
    np.put_along_axis(gaps, y[:, None].astype(int), 0, 1)
    return gaps.sum(1) / x.shape[1]


for n, c in ((4, 3), (1, 5), (3, 2)):
    given = (A(n, c), I(n, high=c, dtype="int64"))
    add("ops.MultiMarginLoss", lambda x, y: margin_rows(x, y).mean(), given)
    add(
        "ops.MultiMarginLoss",
        lambda x, y, w: margin_rows(x, y, w).sum(),
        (*given, A(c, low=0.5)),
        init={"reduction": "sum"},
        grad=(0,),
    )
    add(
        "ops.MultiMarginLoss",
        lambda x, y: margin_rows(x, y, None, 2, 0.5),
        given,
        init={"p": 2, "margin": 0.5, "reduction": "none"},
    )


def multilabel(x: Any, y: Any) -> Any:
    losses, marks = np.zeros(len(x)), np.zeros(x.shape, np.int32)
    for k, (row, labels) in enumerate(zip(x, np.asarray(y))):
        targets = [int(t) for t in labels[: np.argmax(np.append(labels, -1) < 0)]]
        marks[k, targets] = 1
        for t in targets:
            losses[k] += sum(max(0.0, 1 - row[t] + row[j]) for j in range(x.shape[1]) if j not in targets)
    return losses / x.shape[1], marks


for target in ([[1, 2, 0, 3], [2, 3, -1, 1]], [[0, -1, 2, 1]], [[-1, 0, 0, 0], [3, 1, -1, 0], [1, -1, -1, -1]]):
    labels = Array((0,), dtype="int32", values=np.array(target))
    add("ops.MultilabelMarginLoss", multilabel, (A(len(target), 4), labels), init={"reduction": "none"}, grad=(0,))


def triplet(x: Any, y: Any, z: Any, m: Any, p: int = 2, swap: bool = False) -> Any:
    def apart(a: Any, b: Any) -> Any:
        return np.linalg.norm(a - b + 1e-6, p, -1)

    far = np.minimum(apart(x, z), apart(y, z)) if swap else apart(x, z)
    return np.maximum(apart(x, y) - far + m, 0)


for shape in ((4, 3), (1, 2), (3, 5)):
    given = (A(*shape), A(*shape), A(*shape), A(values=0.7))
    add("ops.TripletMarginLoss", lambda *v: triplet(*v).mean(), given, grad=(0, 1, 2))
    add(
        "ops.TripletMarginLoss",
        lambda *v: triplet(*v, 1, True),
        given,
        init={"p": 1, "swap": True, "reduction": "none"},
        grad=(0, 1, 2),
    )

test_values, test_gradients = checks.tests()
CHECKED = {
    "ops.MatrixLogarithm": "SciPy",
    "ops.Eig": "NumPy",
    "ops.Eps": "NumPy",
    "ops.CheckNumerics": "NumPy",
    "ops.eps": "NumPy",
}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_matrix_logarithm(scale: float) -> None:
    random = np.random.default_rng(3)
    a = scale * (random.normal(size=(2, 2, 3, 3)) + 1j * random.normal(size=(2, 2, 3, 3)))
    found = ops.MatrixLogarithm()(Tensor(a)).asnumpy()
    for index in np.ndindex(2, 2):
        np.testing.assert_allclose(found[index], scipy.linalg.logm(a[index]), rtol=1e-10, atol=1e-12)
    block = np.array([[2, 1, 0], [0, 2, 1], [0, 0, 2]], np.complex64)
    found = ops.MatrixLogarithm()(Tensor(block))
    assert found.dtype is ms.complex64
    np.testing.assert_allclose(found.asnumpy(), scipy.linalg.logm(block.astype(complex)), rtol=1e-6, atol=1e-7)


def test_matrix_logarithms_of_negative_and_singular_matrices() -> None:
    for a in (np.array([[1.0, 2], [3, 4]]), np.diag([-1.0, -2, 3]), -np.eye(2), np.array([[-1.0, 5], [0, -3]])):
        found = ops.MatrixLogarithm()(Tensor(a.astype(complex))).asnumpy()
        np.testing.assert_allclose(scipy.linalg.expm(found), a, atol=1e-10)
        values = np.log(np.linalg.eigvals(a).astype(complex))
        np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(found)), np.sort_complex(values), atol=1e-10)
    both = np.stack([np.zeros((2, 2)), np.eye(2)]).astype(complex)
    found = ops.MatrixLogarithm()(Tensor(both)).asnumpy()
    assert np.isnan(found[0]).all() and not found[1].any()


def test_the_derivative_of_the_matrix_logarithm() -> None:
    random = np.random.default_rng(4)
    a = random.normal(size=(3, 3)) + 1j * random.normal(size=(3, 3))
    weights, way = np.cos(np.arange(9.0)).reshape(3, 3), random.normal(size=(3, 3))

    def loss(re: Tensor, im: Tensor) -> Tensor:
        return (ops.real(ops.MatrixLogarithm()(ops.Complex()(re, im))) * Tensor(weights)).sum()

    gradients = ms.grad(loss, (0, 1))(Tensor(a.real.copy()), Tensor(a.imag.copy()))
    for gradient, unit in zip(gradients, (1, 1j)):
        step = 1e-6 * unit * way
        ends = [(scipy.linalg.logm(v).real * weights).sum() for v in (a + step, a - step)]
        assert (gradient.asnumpy() * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (1, 1)])
def test_eigenvalues(shape: Any) -> None:
    a = np.random.default_rng(5).normal(size=shape)
    values, nothing = ops.Eig()(Tensor(a))
    assert nothing.shape == () and nothing.item() == 0
    np.testing.assert_allclose(np.sort_complex(values.asnumpy()), np.sort_complex(np.linalg.eigvals(a)), atol=1e-12)
    values, vectors = ops.Eig(True)(Tensor(a))
    np.testing.assert_allclose(a @ vectors.asnumpy(), vectors.asnumpy() * values.asnumpy()[..., None, :], atol=1e-12)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_eps_is_the_gap_above_one(name: str) -> None:
    x = Tensor(np.ones((2, 3), name))
    for found in (ops.eps(x), ops.Eps()(x)):
        np.testing.assert_array_equal(found.asnumpy(), np.spacing(np.ones((2, 3), name)))
    with pytest.raises(TypeError, match="must be float16, float32 or float64"):
        ops.eps(Tensor([1]))


def test_check_numerics() -> None:
    x = Tensor([1.0, -2.0])
    np.testing.assert_array_equal(ops.CheckNumerics()(x).asnumpy(), x.asnumpy())
    with pytest.raises(RuntimeError, match="has NaN values"):
        ops.CheckNumerics()(Tensor([1.0, np.nan, np.inf]))
    with pytest.raises(RuntimeError, match="has infinite values"):
        ops.CheckNumerics()(Tensor([1.0, -np.inf]))


def test_conventions_of_mindspore() -> None:
    """Results of MindSpore 2.10 on a CPU."""
    found = ops.CumulativeLogsumexp(True)(Tensor([1.0, 2.0, 3.0], ms.float32), Tensor(0)).asnumpy()
    np.testing.assert_allclose(found, [-3.4028235e38, 1.0, 2.3132617], rtol=1e-6)
    found = ops.CumulativeLogsumexp(True, True)(Tensor([[1.0, 2], [4, 5]], ms.float32), Tensor(0)).asnumpy()
    np.testing.assert_array_equal(found, np.float32([[4, 5], [-3.4028235e38] * 2]))
    np.testing.assert_array_equal(
        ops.Betainc()(*(Tensor(v) for v in ([1.0, 2, -1, 2], [2.0, 3, 1, 2], [0.0, 1, 0.5, 1.5]))).asnumpy(),
        [0, 1, np.nan, np.nan],
    )
    x = Tensor([[5.0, 1, 2], [3, np.nan, 7], [1, 6, 4]])
    values, places = ops.Median(False, 0, True, False)(x)
    np.testing.assert_array_equal(values.asnumpy(), [[3, np.nan, 4]])
    assert places.tolist() == [[1, 1, 2]]
    values, places = ops.Median(False, 0, True, True)(x)
    assert values.tolist() == [[3, 1, 4]] and places.tolist() == [[1, 0, 2]]
    x = Tensor(np.array([1, 2 + 1j, 3], np.complex64))
    np.testing.assert_allclose(ops.FFTWithSize(1, True, True)(x).asnumpy(), [2, -1, 0, 0], atol=1e-6)
    a, b = Tensor(np.array([[2 + 1j, 0], [1, 1 - 1j]])), Tensor(np.array([[1 + 0j], [2]]))
    found = ops.MatrixTriangularSolve(True, True)(a, b).asnumpy()
    np.testing.assert_allclose(found, [[-0.2 + 0.4j], [1 - 1j]], atol=1e-12)
    none = ops.Bincount()(Tensor([1, 2, 4], ms.int32), Tensor(5, ms.int32), Tensor(np.zeros(0, np.float32)))
    assert none.tolist() == [0, 1, 1, 0, 1]
    assert ops.HistogramFixedWidth(2, "int64")(Tensor([np.nan, 1.0]), Tensor([0.0, 3.0])).tolist() == [1, 0]
    assert ops.HistogramFixedWidth(5)(Tensor([-1.0, 0, 1.5, 2, 5, 15]), Tensor([0.0, 5.0])).tolist() == [2, 1, 1, 0, 2]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.Betainc()(ops.ones(2), ops.ones(3), ops.ones(2)), ValueError, "one type and shape"),
        (lambda: ops.CompareAndBitpack()(ops.ones(7), Tensor(1.0)), ValueError, "must divide by 8"),
        (lambda: ops.NuclearNorm()(ops.ones((1, 2, 3))), ValueError, "without dim the input must have 2 dimensions"),
        (lambda: ops.FFTWithSize(4, False, True)(ops.ones(3)), ValueError, "signal_ndim must be 1, 2 or 3, not 4"),
        (lambda: ops.NthElement()(ops.ones(3), 3), ValueError, r"n must lie in \[0, 3\), not 3"),
        (lambda: ops.Lstsq(True, -1.0)(ops.ones((2, 1)), ops.ones((2, 1))), ValueError, "penalty must not be negative"),
        (lambda: ops.EqualCount()(ops.ones(3), ops.ones(2)), ValueError, "shapes must be equal"),
        (lambda: ops.ConfusionMatrix(2)(Tensor([1]), Tensor([[1]])), ValueError, "labels and predictions must be"),
        (lambda: ops.MatrixLogarithm()(ops.eye(2)), TypeError, "must be complex64 or complex128"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
