"""Functions as layers and combined layers against SciPy and NumPy in float64: values, derivatives,
types, and arguments that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import mycel as ms
from mycel import nn
from tests.meaning import A, Checks, I
from tests.nn.cases import wave

checks = Checks("NumPy")
CHECKED = {
    "nn.BiDense": "NumPy",
    "nn.Conv2dBnAct": "MindSpore",
    "nn.DenseBnAct": "NumPy",
    "nn.L1Regularizer": "NumPy",
    "nn.MultiFieldEmbeddingLookup": "MindSpore",
    "nn.Range": "NumPy",
    "nn.SyncBatchNorm": "NumPy",
    "nn.TimeDistributed": "NumPy",
    "nn.no_init_parameters": "NumPy",
}

HALVES = "float64 float32 float16"
POSITIVE = ((A(3, 4, low=0.05, high=30.0),), (A(7, low=0.5, high=3.0),), (A(0, 3, low=1.0),))
PAIRS = (
    (A(3, 4, low=0.1, high=6.0), A(3, 4, low=0.1, high=6.0)),
    (A(5, low=9.0, high=60.0), A(3, 1, low=0.1, high=7.0)),
    (A(6, low=9.0, high=3000.0), A(6, low=9.0, high=3000.0)),
    (A(1, low=0.5), A(0, 1, low=0.5)),
)
checks.add("nn.LGamma", scipy.special.gammaln, *POSITIVE, dtypes=HALVES, oracle="SciPy")
checks.add("nn.DiGamma", scipy.special.digamma, *POSITIVE, (A(9, low=-3.9, high=-3.1),), oracle="SciPy")
checks.add(
    "nn.IGamma",
    scipy.special.gammainc,
    (A(3, 4, low=0.5, high=9.0), A(3, 4, low=0.5, high=9.0)),
    (A(5, low=1.0, high=3.0), A(2, 1, low=0.1)),
    (A(1, low=0.5), A(0, low=0.5)),
    grad=(1,),
    oracle="SciPy",
)
checks.add("nn.LBeta", scipy.special.betaln, *PAIRS, dtypes=HALVES, oracle="SciPy")


def positive(m: Any) -> Any:
    """A symmetric positive definite matrix of any square one."""
    return m @ np.swapaxes(m, -1, -2) + 2 * np.eye(m.shape[-1])


SQUARES = tuple((A(*s, values=positive(wave(*s).astype(np.float64))),) for s in ((3, 3), (2, 4, 4), (1, 1)))


def symmetric(x: Any) -> Any:
    """The symmetric part."""
    return 0.5 * (x + np.swapaxes(x, -1, -2))


checks.add("nn.MatDet", lambda x: np.linalg.det(symmetric(x)), *SQUARES, tolerance=3)
checks.add("nn.MatInverse", lambda x: np.linalg.inv(symmetric(x)), *SQUARES, tolerance=3)
checks.add(
    "nn.MatMul",
    np.matmul,
    (A(3, 4), A(4, 2)),
    (A(2, 3, 4), A(4, 5)),
    (A(4), A(4)),
    (A(0, 4), A(4, 1)),
    dtypes=HALVES,
    tolerance=3,
)
checks.add(
    "nn.MatMul",
    lambda x, y: np.swapaxes(x, -1, -2) @ np.swapaxes(y, -1, -2),
    (A(4, 3), A(2, 4)),
    (A(5, 1, 4, 3), A(2, 1, 4)),
    init={"transpose_x1": True, "transpose_x2": True},
)
checks.add("nn.MatMul", lambda x, y: x @ y.T, (A(3), A(4, 3)), init={"transpose_x1": True, "transpose_x2": True})
for axis, keep in ((None, None), (0, True), ((0, -1), False)):
    checks.add(
        "nn.Moments",
        lambda x, a=axis, k=keep: (x.mean(a, keepdims=bool(k)), x.var(a, keepdims=bool(k))),
        (A(2, 3, 4),),
        (A(5, 2),),
        (A(1, 1, 1),),
        init={"axis": axis, "keep_dims": keep},
        dtypes=HALVES,
    )
for axis, keep in (((), False), (1, True), ((0, -1), False)):
    over = None if axis == () else axis
    checks.add(
        "nn.ReduceLogSumExp",
        lambda x, a=over, k=keep: scipy.special.logsumexp(x, a, keepdims=k),
        (A(2, 3, 4),),
        (A(5, 2, high=900.0),),
        (A(1, 1),),
        init={"axis": axis, "keep_dims": keep},
        oracle="SciPy",
    )

MATRICES = ((A(3, 4),), (A(2, 4, 3),), (A(0, 2, 2),), (A(1, 1),))
checks.add("nn.MatrixDiag", lambda x: x[..., None] * np.eye(x.shape[-1]), *MATRICES, dtypes=HALVES)
checks.add("nn.MatrixDiagPart", lambda x: np.diagonal(x, 0, -2, -1), *MATRICES, dtypes=HALVES)
checks.add("nn.MatrixDiagPart", lambda x: np.diagonal(x, 0, -2, -1), (I(3, 3),))


def with_diagonal(x: Any, diagonal: Any) -> Any:
    y = x.copy()
    n = np.arange(diagonal.shape[-1])
    y[..., n, n] = diagonal
    return y


checks.add("nn.MatrixSetDiag", with_diagonal, (A(3, 4), A(3)), (A(2, 4, 3), A(2, 3)), (A(1, 1), A(1)), dtypes=HALVES)
for name in ("Tril", "Triu"):
    triangle = getattr(np, name.lower())
    checks.add(f"nn.{name}", triangle, *MATRICES, dtypes=HALVES)
    checks.add(f"nn.{name}", triangle, (A(3, 4),), (A(2, 4, 3),), kwargs={"k": 1})
    checks.add(f"nn.{name}", triangle, (I(3, 4),), (A(2, 4, 3),), kwargs={"k": -2})
checks.add("nn.Roll", lambda x: np.roll(x, 2, -1), *MATRICES, init={"shift": 2, "axis": -1}, dtypes=HALVES)
checks.add(
    "nn.Roll", lambda x: np.roll(x, (1, -5), (0, 1)), *MATRICES, (I(3, 4),), init={"shift": (1, -5), "axis": (0, 1)}
)
checks.add("nn.L1Regularizer", lambda x: 0.25 * np.abs(x).sum(), (A(3, 4),), (A(5),), (A(0, 2),), init={"scale": 0.25})
test_values, test_gradients = checks.tests()


def test_lbeta_of_large_numbers_is_exact_in_single_precision() -> None:
    x, y = np.array([4000.0, 1e6, 50.0], np.float32), np.array([5000.0, 20.0, 1e7], np.float32)
    got = nn.LBeta()(ms.Tensor(x), ms.Tensor(y)).asnumpy()
    np.testing.assert_allclose(got, scipy.special.betaln(x.astype(np.float64), y.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("bounds", [(5,), (1, 8, 3), (5, 0, -2), (5, 0), (0.0, 1.0, 0.3), (0, 2, 0.5)])
def test_range(bounds: Any) -> None:
    cell = nn.Range(*bounds)
    found = cell()
    expected = np.arange(*bounds)
    assert found.dtype is (ms.int32 if expected.dtype.kind == "i" else ms.float32)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
    assert ms.jit(lambda: cell())().tolist() == found.tolist()


def numbers(*shape: int, phase: float = 0.3) -> Any:
    return wave(*shape, phase=phase).astype(np.float64)


@pytest.mark.parametrize("lead", [(5,), (2, 3), (), (0,)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_bilinear_dense(lead: tuple[int, ...], has_bias: bool) -> None:
    layer = nn.BiDense(2, 3, 4, has_bias=has_bias, dtype=ms.float64)
    w, x, y = layer.weight.asnumpy(), numbers(*lead, 2), numbers(*lead, 3, phase=1.0)
    bias = layer.bias.asnumpy() if has_bias else 0
    expected = np.einsum("...i,oij,...j->...o", x, w, y) + bias
    for call in (layer, ms.jit(lambda *a: layer(*a))):
        np.testing.assert_allclose(call(ms.Tensor(x), ms.Tensor(y)).asnumpy(), expected, atol=1e-12)
    g = numbers(*lead, 4, phase=2.0)
    found = ms.grad(lambda a, b: ms.ops.sum(layer(a, b) * ms.Tensor(g)), (0, 1), layer.trainable_params())(
        ms.Tensor(x), ms.Tensor(y)
    )
    wanted = [
        np.einsum("...o,oij,...j->...i", g, w, y),
        np.einsum("...o,oij,...i->...j", g, w, x),
        np.einsum("ao,ai,aj->oij", *(v.reshape(-1, v.shape[-1]) for v in (g, x, y))),
    ]
    wanted += [g.reshape(-1, 4).sum(0)] if has_bias else []
    for got, want in zip((*found[0], *found[1]), wanted):
        np.testing.assert_allclose(got.asnumpy(), want, atol=1e-12)


def test_bilinear_dense_starts_as_uniform_numbers() -> None:
    ms.set_seed(3)
    layer = nn.BiDense(50, 3, 400)
    for p in (layer.weight, layer.bias):
        largest = float(abs(p.asnumpy()).max())
        assert 0.95 / np.sqrt(50) < largest <= 1 / np.sqrt(50) * (1 + 1e-6)


def normalised(x: Any, eps: float = 1e-5) -> Any:
    axes = (0, *range(2, x.ndim))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_dense_with_normalisation_and_activation() -> None:
    x = numbers(6, 3).astype(np.float32)
    layer = nn.DenseBnAct(
        3, 4, weight_init="normal", bias_init="ones", has_bn=True, momentum=0.75, activation="leakyrelu", alpha=0.5
    ).set_train()
    y = x.astype(np.float64) @ layer.dense.weight.asnumpy().T.astype(np.float64) + 1
    z = normalised(y)
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), np.where(z > 0, z, 0.5 * z), atol=1e-3)
    np.testing.assert_allclose(layer.batchnorm.moving_mean.asnumpy(), 0.25 * y.mean(0), atol=1e-5)
    np.testing.assert_allclose(layer.batchnorm.moving_variance.asnumpy(), 0.75 + 0.25 * y.var(0, ddof=1), atol=1e-5)
    plain = nn.DenseBnAct(3, 4, has_bias=False, activation=ms.ops.ReLU())
    expected = np.maximum(x @ plain.dense.weight.asnumpy().T, 0)
    np.testing.assert_allclose(plain(ms.Tensor(x)).asnumpy(), expected, atol=1e-6)
    assert [p.name for p in layer.get_parameters()] == [
        "dense.weight",
        "dense.bias",
        *(f"batchnorm.{n}" for n in ("moving_mean", "moving_variance", "gamma", "beta")),
    ]


def test_convolution_with_normalisation_and_activation() -> None:
    x = wave(2, 3, 5, 4)
    layer = nn.Conv2dBnAct(3, 4, 3, has_bn=True, activation="relu").set_train()
    conv = nn.Conv2d(3, 4, 3, weight_init=ms.Tensor(layer.conv.weight.asnumpy()))
    y = conv(ms.Tensor(x)).asnumpy().astype(np.float64)
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), np.maximum(normalised(y), 0), atol=5e-3)
    np.testing.assert_allclose(layer.batchnorm.moving_mean.asnumpy(), 0.003 * y.mean((0, 2, 3)), atol=1e-6)
    assert [p.name for p in nn.Conv2dBnAct(3, 4, 3).get_parameters()] == ["conv.weight"]
    assert 0.008 < nn.Conv2dBnAct(10, 40, 3).conv.weight.asnumpy().std() < 0.012


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2, 5), (1, 3, 3, 1)])
def test_synchronised_normalisation_of_one_process(shape: tuple[int, ...]) -> None:
    x = wave(*shape, scale=3.0)
    layer = nn.SyncBatchNorm(3, momentum=0.75, process_groups=[[0]]).set_train()
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), normalised(x.astype(np.float64)), atol=2e-5)
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), 0.25 * x.mean(axes), atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.asnumpy(), 0.75 + 0.25 * x.var(axes, ddof=1), rtol=1e-5)
    layer.set_train(False)
    mean, variance = (
        p.asnumpy().reshape(1, 3, *(1,) * (x.ndim - 2)) for p in (layer.moving_mean, layer.moving_variance)
    )
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), (x - mean) / np.sqrt(variance + 1e-5), atol=1e-5)


@pytest.mark.parametrize("time, other", [(0, None), (1, None), (1, 0), (0, 1), (-2, None), (-2, -3)])
def test_layers_over_time(time: int, other: Any) -> None:
    dense = nn.Dense(4, 2)
    x = wave(2, 3, 4)
    expected = x @ dense.weight.asnumpy().T + dense.bias.asnumpy()
    cell = nn.TimeDistributed(dense, time, other)
    for call in (cell, ms.jit(lambda a: cell(a))):
        np.testing.assert_allclose(call(ms.Tensor(x)).asnumpy(), expected, atol=1e-6)
    assert nn.TimeDistributed(nn.Flatten(), 1, 0)(ms.Tensor(wave(2, 3, 4, 5))).shape == (2, 3, 20)
    assert nn.TimeDistributed(ms.ops.ReLU(), 2)(ms.Tensor(x)).asnumpy().tolist() == np.maximum(x, 0).tolist()


def test_time_merged_with_an_axis_behind_it_comes_back_to_its_place() -> None:
    x = wave(2, 3, 4, 5)
    scale = nn.PReLU(1)
    for time, other in ((1, 3), (3, 1), (0, 2), (2, 0)):
        found = nn.TimeDistributed(scale, time, other)(ms.Tensor(x)).asnumpy()
        np.testing.assert_allclose(found, np.where(x > 0, x, 0.25 * x), rtol=1e-6)


# Recorded from MindSpore 2.10: indices, weights, fields, and the sum, mean and largest of each
# field.
TABLE = np.sin(np.arange(20)).astype(np.float32).reshape(10, 2)
INDICES = np.array([[2, 4, 6, 0, 3], [1, 3, 5, 0, 9]], np.int32)
WEIGHTS = np.array([[1, -2, 0.5, 0, 0], [1, -1, -0.5, 0, 2]], np.float32)
FIELDS = np.array([[0, 1, 1, 0, 2], [0, 0, 1, 0, 1]], np.int32)
COMBINED = {
    "SUM": [
        [[-0.756802499, -0.958924294], [-2.24700308, -0.614153504], [0, 0]],
        [[1.18871284, -0.515866578], [-1.2299639, 0.799749494], [0, 0]],
    ],
    "MEAN": [
        [[-0.756802499, -0.958924294], [-0.898801208, -0.245661408], [0, 0]],
        [[0.594356418, -0.257933289], [-0.491985559, 0.3198998], [0, 0]],
    ],
    "MAX": [
        [[-0.756802499, -0.958924294], [-0.268286467, 0.210083514], [0, 0]],
        [[0.909297407, 0.141120002], [0.272010565, 0.499995112], [0, 0]],
    ],
}


@pytest.mark.parametrize("operator", list(COMBINED))
def test_fields_of_embeddings(operator: str) -> None:
    inputs = [ms.Tensor(v) for v in (INDICES, WEIGHTS, FIELDS)]
    cell = nn.MultiFieldEmbeddingLookup(10, 2, 3, ms.Tensor(TABLE), operator=operator)
    for call in (cell, ms.jit(lambda *a: cell(*a))):
        np.testing.assert_allclose(call(*inputs).asnumpy(), COMBINED[operator], atol=1e-6)
    fewer = nn.MultiFieldEmbeddingLookup(10, 2, 2, ms.Tensor(TABLE), operator=operator, target="DEVICE", sparse=False)
    np.testing.assert_allclose(fewer(*inputs).asnumpy(), np.array(COMBINED[operator])[:, :2], atol=1e-6)
    clipped = nn.MultiFieldEmbeddingLookup(10, 2, 3, ms.Tensor(TABLE), max_norm=0.5, operator=operator)(
        *inputs
    ).asnumpy()
    row = TABLE[2] * (0.5 / np.linalg.norm(TABLE[2]))
    np.testing.assert_allclose(clipped[0, 0], row, atol=1e-6)
    g = ms.grad(lambda *a: ms.ops.sum(cell(*a)), 1)(*inputs).asnumpy()
    assert np.isfinite(g).all() and g[0, 0] == pytest.approx(0 if operator == "MEAN" else TABLE[2].sum(), abs=1e-5)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def test_parameters_that_are_only_declared(mode: int) -> None:
    before = ms.get_context("mode")
    try:
        ms.set_context(mode=mode)
        with nn.no_init_parameters():
            net = nn.SequentialCell(
                nn.Dense(3, 4), nn.BatchNorm1d(4), nn.Dense(4, 2, weight_init=ms.Tensor(np.ones((2, 4), np.float32)))
            )
        assert [p.has_init for p in net.get_parameters()] == [True] * 6 + [False, True]
        ms.load_param_into_net(net, {"0.weight": ms.Parameter(ms.Tensor(np.full((4, 3), 2.0, np.float32)))})
        assert not net[0].weight.has_init and net[0].bias.has_init
        x = ms.Tensor(wave(5, 3))
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.0)).set_train()
        step(x, ms.Tensor(wave(5, 2)))
        assert not any(p.has_init for p in net.get_parameters()) and type(net[0].bias) is ms.Parameter
        assert net[0].weight.asnumpy().tolist() == [[2.0] * 3] * 4 and abs(net[0].bias.asnumpy()).max() <= 1 / np.sqrt(
            3
        )
        assert not nn.Dense(2, 2).weight.has_init
    finally:
        ms.set_context(mode=before)


def test_declared_parameters_are_drawn_on_demand_alone() -> None:
    with nn.no_init_parameters():
        net, one = nn.Dense(300, 40), ms.Parameter(ms.Tensor([1.0]), name="one")
    assert not one.has_init and net.weight.has_init and net.weight.shape == (40, 300)
    net.weight.set_data(ms.ops.ones((40, 300)))
    net.init_parameters_data()
    assert net.weight.asnumpy().min() == 1 and not net.bias.has_init and net.bias.asnumpy().std() > 0


def test_layers_of_mint_have_names_here() -> None:
    for name in ("Dropout", "Dropout2d", "Embedding", "L1Loss", "LayerNorm", "LogSoftmax", "PReLU"):
        assert getattr(nn, f"{name}Ext") is getattr(ms.mint.nn, name)


X = ms.Tensor(wave(2, 3, 4))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: nn.LGamma()(ms.Tensor([1, 2])), TypeError, "LGamma: the input must be floating, .* its type is int64"),
        (lambda: nn.LBeta()(X, X.astype(ms.float16)), TypeError, "of one type; its type is float32 and float16"),
        (lambda: nn.DiGamma()(2.0), TypeError, "the input must be a Tensor, not float"),
        (lambda: nn.MatMul(transpose_x1=1), TypeError, "transpose_x1 must be a bool, not int"),
        (lambda: nn.Moments(axis="a"), TypeError, "axis must be an int, not str"),
        (lambda: nn.Range("a"), TypeError, "start must be a number, not str"),
        (lambda: nn.Range(0, 5, 0), ValueError, "delta must not be 0"),
        (lambda: nn.ReduceLogSumExp(1.0), TypeError, "axis must be an int, not float"),
        (lambda: nn.Roll((1, 2), 0), ValueError, r"as many elements as each other, not \(1, 2\) and \(0,\)"),
        (lambda: nn.Tril()(X[0, 0]), ValueError, r"the input must be matrices \(..., m, n\), not of shape \(4,\)"),
        (lambda: nn.Triu()(X, 1.5), TypeError, "k must be an int, not float"),
        (lambda: nn.MatrixDiag()(ms.Tensor(1.0)), ValueError, "one axis at least"),
        (
            lambda: nn.MatrixSetDiag()(X, X[:, :, 0].T),
            ValueError,
            r"the diagonal must have shape \(2, 3\) .* not \(3, 2\)",
        ),
        (lambda: nn.L1Regularizer(0), ValueError, "scale must be above 0.*, not 0"),
        (lambda: nn.L1Regularizer(float("inf")), ValueError, "scale must be below inf, not inf"),
        (lambda: nn.L1Regularizer(float("nan")), ValueError, "scale must be above 0.*, not nan"),
        (lambda: nn.BiDense(0, 3, 4), ValueError, "in1_channels must be at least 1, not 0"),
        (
            lambda: nn.BiDense(2, 3, 4, weight_init=X),
            ValueError,
            r"weight_init must have shape \(4, 2, 3\), not \(2, 3, 4\)",
        ),
        (
            lambda: nn.BiDense(2, 4, 4)(X, X),
            ValueError,
            r"last axis of input1 must have 2 elements; its shape is \(2, 3, 4\)",
        ),
        (
            lambda: nn.BiDense(4, 4, 4)(X, X[0]),
            ValueError,
            r"leading axes of the inputs must be equal; their shapes are \(2, 3, 4\) and \(3, 4\)",
        ),
        (lambda: nn.DenseBnAct(2, 3, has_bn=1), TypeError, "has_bn must be a bool, not int"),
        (
            lambda: nn.DenseBnAct(2, 3, activation=abs),
            TypeError,
            "activation must be a name, a Cell or a Primitive, not builtin_function",
        ),
        (lambda: nn.Conv2dBnAct(2, 3, 3, activation="foo"), KeyError, "'foo' is not an activation"),
        (lambda: nn.SyncBatchNorm(3)(X), ValueError, r"must be \(N, C\) or \(N, C, H, W\) with 3 channels"),
        (
            lambda: nn.SyncBatchNorm(3, process_groups=[[0, 1]]),
            ValueError,
            r"there is one process, number 0; .* not \[\[0, 1\]\]",
        ),
        (lambda: nn.SyncBatchNorm(3, process_groups=0), TypeError, "process_groups must be a list of lists, not 0"),
        (lambda: nn.TimeDistributed(abs, 1), TypeError, "layer must be a Cell or a Primitive, not builtin"),
        (lambda: nn.TimeDistributed(nn.ReLU(), 0)(X[0]), ValueError, r"three axes at least, not shape \(3, 4\)"),
        (lambda: nn.TimeDistributed(nn.ReLU(), 5)(X), ValueError, "time_axis 5 is out of range"),
        (lambda: nn.TimeDistributed(nn.ReLU(), 1, 1)(X), ValueError, "must be two axes, not both 1"),
        (
            lambda: nn.TimeDistributed(nn.Flatten(0), 2)(X),
            ValueError,
            r"results of shape \(6,\) have no place for time_axis 2",
        ),
        (
            lambda: nn.TimeDistributed(nn.Flatten(0), 1, 0)(X),
            ValueError,
            r"gave shape \(24,\) for \(6, 4\), but axis 0 must stay",
        ),
        (lambda: nn.MultiFieldEmbeddingLookup(4, 2, 0), ValueError, "field_size must be at least 1, not 0"),
        (
            lambda: nn.MultiFieldEmbeddingLookup(4, 2, 2, operator="X"),
            ValueError,
            "operator must be one of 'SUM', 'MAX', 'MEAN', not 'X'",
        ),
        (
            lambda: nn.MultiFieldEmbeddingLookup(4, 2, 2, sparse=False),
            ValueError,
            "sparse must be True where target is 'CPU'",
        ),
        (
            lambda: nn.MultiFieldEmbeddingLookup(4, 2, 2, slice_mode="x"),
            ValueError,
            "slice_mode must be one of 'batch_slice'",
        ),
        (
            lambda: nn.MultiFieldEmbeddingLookup(4, 2, 2)(*[ms.Tensor([1])] * 3),
            ValueError,
            r"must be \(N, S\), of one shape",
        ),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
