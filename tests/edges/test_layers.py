"""Layers and functions of nn: batches of 0, lengths of 1, odd sizes, windows larger than their
input; eager and compiled; gradients and vmap of random functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mycel as ms
from mycel import Tensor, nn, ops
from tests.edges.support import SEEDS, as_array, examples, numbers, quiet, tensor, tensors_of

BATCHES = st.sampled_from((0, 1, 2))
LENGTHS = st.sampled_from((1, 3, 7))


def image(*rank: int) -> Any:
    return lambda n, c, s, seed: numbers((n, c, *(s + k for k in range(rank[0]))), "float32", seed, 0)


# Name: (layer of a number of channels, its input from batch, channels, size and seed, size of the
# window).
WINDOWS: dict[str, tuple[Any, Any, int]] = {
    "Conv1d": (lambda c: nn.Conv1d(c, 2, 3, pad_mode="valid"), image(1), 3),
    "Conv2d": (lambda c: nn.Conv2d(c, 2, 3, pad_mode="valid", has_bias=True), image(2), 3),
    "Conv2d same": (lambda c: nn.Conv2d(c, 2, 3, stride=2), image(2), 1),
    "Conv2d dilated": (lambda c: nn.Conv2d(c, 2, 2, dilation=2, pad_mode="valid"), image(2), 3),
    "Conv3d": (lambda c: nn.Conv3d(c, 2, 2, pad_mode="valid"), image(3), 2),
    "Conv2d grouped": (lambda c: nn.Conv2d(c, c, 3, group=c, pad_mode="pad", padding=1), image(2), 1),
    "Conv2dTranspose": (lambda c: nn.Conv2dTranspose(c, 2, 3, stride=2, pad_mode="same"), image(2), 1),
    "MaxPool1d": (lambda c: nn.MaxPool1d(2, 1), image(1), 2),
    "MaxPool2d": (lambda c: nn.MaxPool2d(2, 2), image(2), 2),
    "AvgPool2d": (lambda c: nn.AvgPool2d(3, 1), image(2), 3),
    "AvgPool1d": (lambda c: nn.AvgPool1d(2, 1), image(1), 2),
    "MaxPool3d": (lambda c: nn.MaxPool3d(2, 1), image(3), 2),
    "AdaptiveAvgPool2d": (lambda c: nn.AdaptiveAvgPool2d((2, 3)), image(2), 1),
    "AdaptiveMaxPool2d": (lambda c: nn.AdaptiveMaxPool2d((1, 2)), image(2), 1),
    "Unfold": (lambda c: nn.Unfold([1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1]), image(2), 2),
}
OTHERS: dict[str, tuple[Any, Any]] = {
    "Dense": (lambda: nn.Dense(3, 2), lambda n, t: (n, 3)),
    "Dense of many": (lambda: nn.Dense(3, 2, activation="relu"), lambda n, t: (n, t, 3)),
    "LayerNorm": (lambda: nn.LayerNorm((3,)), lambda n, t: (n, t, 3)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda n, t: (n, 4, t, 2)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3).set_train(False), lambda n, t: (n, 3)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3).set_train(False), lambda n, t: (n, 3, t, 2)),
    "LSTM": (lambda: nn.LSTM(3, 4, batch_first=True), lambda n, t: (n, t, 3)),
    "GRU": (lambda: nn.GRU(3, 4, bidirectional=True), lambda n, t: (t, n, 3)),
    "RNN": (lambda: nn.RNN(3, 4), lambda n, t: (t, n, 3)),
    "PReLU": (lambda: nn.PReLU(), lambda n, t: (n, 1, t)),
    "Softmax": (lambda: nn.Softmax(-1), lambda n, t: (n, t)),
    "Flatten": (lambda: nn.Flatten(), lambda n, t: (n, t, 2)),
    "GELU": (lambda: nn.GELU(), lambda n, t: (n, t)),
    "Dropout": (lambda: nn.Dropout(p=0.5).set_train(False), lambda n, t: (n, t)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), lambda n, t: (n, 4, t, t)),
    "Upsample": (
        lambda: nn.Upsample(scale_factor=2.0, mode="nearest", recompute_scale_factor=True),
        lambda n, t: (n, 2, t, t),
    ),
    "ReLU": (lambda: nn.ReLU(), lambda n, t: (n, t)),
    "LogSoftmax": (lambda: nn.LogSoftmax(-1), lambda n, t: (n, t)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d((1, 0, 2, 1)), lambda n, t: (n, 2, t, t)),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).set_train(False),
        lambda n, t: (n, t, 4),
    ),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3), lambda n, t: (n, 3, t + 1, 2)),
}


def compared(name: str, layer: Any, x: Any) -> Any:
    """The eager result, which the compiled one is near.

    The gradient by the input is finite, of its shape, and near the compiled one.
    """
    result = layer(tensor(x))
    for eager, compiled in zip(tensors_of(result), tensors_of(ms.jit(lambda t: layer(t))(tensor(x)))):
        assert eager.shape == compiled.shape and eager.dtype is compiled.dtype
        np.testing.assert_allclose(as_array(eager), as_array(compiled), rtol=1e-5, atol=1e-6, err_msg=name)

    def total(t: Any) -> Any:
        return ops.sum(ops.tanh(tensors_of(layer(t))[0]))

    gradients = [as_array(ms.grad(total)(tensor(x))), as_array(ms.jit(ms.grad(total))(tensor(x)))]
    assert gradients[0].shape == x.shape and np.all(np.isfinite(gradients[0])), name
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-4, atol=1e-5, err_msg=name)
    return result


@pytest.mark.parametrize("name", WINDOWS)
@examples(5)
@given(batch=BATCHES, channels=st.sampled_from((1, 3)), size=LENGTHS, seed=SEEDS)
def test_windows(name: str, batch: int, channels: int, size: int, seed: int) -> None:
    """The result of a batch is that of its examples; a window that does not fit is named."""
    build, draw, window = WINDOWS[name]
    layer, x = build(channels), draw(batch, channels, size, seed)
    if size < window:
        with pytest.raises(ValueError, match=r"(?i)conv|pool|window|unfold|patches"):
            layer(tensor(x))
        return
    result = compared(name, layer, x)
    assert result.shape[0] == batch
    for k in range(batch):
        np.testing.assert_allclose(as_array(layer(tensor(x[k : k + 1])))[0], as_array(result)[k], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OTHERS)
@examples(4)
@given(batch=BATCHES, length=LENGTHS, seed=SEEDS)
def test_layers(name: str, batch: int, length: int, seed: int) -> None:
    build, shape = OTHERS[name]
    compared(name, build(), numbers(shape(batch, length), "float32", seed, 0))


LOSSES = {
    "MSELoss": lambda n, r: (r.normal(size=(n, 3)), r.normal(size=(n, 3))),
    "L1Loss": lambda n, r: (r.normal(size=(n, 3)), r.normal(size=(n, 3))),
    "SmoothL1Loss": lambda n, r: (r.normal(size=(n, 3)), r.normal(size=(n, 3))),
    "BCELoss": lambda n, r: (r.uniform(0.1, 0.9, size=(n, 3)), r.uniform(0, 1, size=(n, 3))),
    "BCEWithLogitsLoss": lambda n, r: (r.normal(size=(n, 3)), r.uniform(0, 1, size=(n, 3))),
    "KLDivLoss": lambda n, r: (r.normal(size=(n, 3)), r.uniform(0.1, 1, size=(n, 3))),
    "CrossEntropyLoss": lambda n, r: (r.normal(size=(n, 3)), r.integers(0, 3, n)),
    "NLLLoss": lambda n, r: (r.normal(size=(n, 3)), r.integers(0, 3, n)),
    "HuberLoss": lambda n, r: (r.normal(size=(n, 3)), r.normal(size=(n, 3))),
}


@pytest.mark.parametrize("name", LOSSES)
@examples(5)
@given(batch=BATCHES, reduction=st.sampled_from(("mean", "sum", "none")), seed=SEEDS)
def test_losses_reduce(name: str, batch: int, reduction: str, seed: int) -> None:
    """The sum and the mean are those of the single losses.

    A sum over nothing is 0 and a mean NaN.
    """
    arrays = LOSSES[name](batch, np.random.default_rng(seed))
    given_tensors = [Tensor(a.astype(np.int32 if a.dtype.kind == "i" else np.float32)) for a in arrays]
    single = as_array(getattr(nn, name)(reduction="none")(*given_tensors)).astype(np.float64)
    loss = getattr(nn, name)(reduction=reduction)
    with quiet():
        want = {"mean": single.mean, "sum": single.sum, "none": lambda: single}[reduction]()
    result = loss(*given_tensors)
    compiled = ms.jit(lambda *t: loss(*t))(*given_tensors)
    if batch or reduction != "mean":
        np.testing.assert_allclose(as_array(result), want, rtol=1e-5, atol=1e-6)
    assert result.shape == np.shape(want)
    np.testing.assert_allclose(as_array(result), as_array(compiled), rtol=1e-5, atol=1e-6)


# Smooth functions of one matrix, to compose at random.
STEPS: dict[str, Any] = {
    "sin": ops.sin,
    "tanh": ops.tanh,
    "softmax": lambda x: ops.softmax(x, -1),
    "normalised": lambda x: x / (1 + ops.sum(x * x, -1, True)),
    "transposed": lambda x: ops.transpose(x, (1, 0)),
    "cumulated": lambda x: ops.cumsum(x, 0),
    "rolled": lambda x: ops.roll(x, 1, 1),
    "squared": lambda x: x * x,
    "sigmoid": ops.sigmoid,
    "centred": lambda x: x - ops.mean(x, 0, True),
    "padded": lambda x: ops.pad(x, (1, 0))[:, 1:],
    "multiplied": lambda x: ops.matmul(x, ops.transpose(x, (1, 0))),
    "logsumexp": lambda x: x - ops.logsumexp(x, -1, True),
    "flipped": lambda x: ops.flip(x, (0,)),
    "taken": lambda x: x[::-1, :],
    "gelu": ops.gelu,
    "erf": ops.erf,
    "joined": lambda x: ops.concat((x, x), 0)[: x.shape[0]],
    "clamped": lambda x: ops.clamp(x, -5.0, 5.0),
    "scaled": lambda x: x * 0.5,
    "std": lambda x: x / (1 + ops.std(x, -1, keepdims=True)),
    "where": lambda x: ops.where(x > 100, x, x * 2),
    "gathered": lambda x: ops.gather(x, Tensor(np.array([0, 0, 1], np.int32)), 0),
}


def composed(names: Any) -> Any:
    def function(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return x

    return function


@examples(40)
@given(names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4), seed=SEEDS)
def test_gradients_of_random_functions(names: Any, seed: int) -> None:
    """By finite differences in float64, and the same compiled."""
    x = numbers((3, 3), "float64", seed, 0)
    function, random = composed(names), np.random.default_rng(seed)
    weight = random.normal(size=as_array(function(tensor(x))).shape)

    def loss(t: Any) -> Any:
        return ops.sum(function(t) * tensor(weight))

    gradient = as_array(ms.grad(loss)(tensor(x)))
    np.testing.assert_allclose(as_array(ms.jit(ms.grad(loss))(tensor(x))), gradient, rtol=1e-9, atol=1e-9)
    way = random.normal(size=x.shape)
    ends = [float(loss(tensor(x + sign * 1e-6 * way))) for sign in (1, -1)]
    want, got = (ends[0] - ends[1]) / 2e-6, float((gradient * way).sum())
    assert abs(want - got) <= 1e-5 * (1 + abs(want) + np.abs(gradient * way).sum()), (
        f"{names}: {got}, by differences {want}"
    )


@examples(30)
@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3), count=st.sampled_from((1, 3)), seed=SEEDS
)
def test_vmap_of_random_functions(names: Any, count: int, seed: int) -> None:
    """As a loop over the examples, eager and compiled."""
    x = numbers((count, 3, 3), "float32", seed, 0)
    function = composed(names)
    want = np.stack([as_array(function(tensor(v))) for v in x])
    np.testing.assert_allclose(as_array(ms.vmap(function)(tensor(x))), want, rtol=2e-5, atol=2e-5, err_msg=str(names))
    np.testing.assert_allclose(
        as_array(ms.jit(ms.vmap(function))(tensor(x))), want, rtol=2e-5, atol=2e-5, err_msg=str(names)
    )


DECOMPOSED = (
    "inverse",
    "det",
    "slogdet",
    "cholesky",
    "qr",
    "svd",
    "eigvalsh",
    "solve",
    "matrix_exp",
    "pinv",
    "matrix_power",
)


@pytest.mark.parametrize("name", DECOMPOSED)
@examples(5)
@given(
    shape=st.sampled_from(((3, 3), (1, 1), (2, 3, 3), (0, 3, 3), (0, 0))),
    dtype=st.sampled_from(("float32", "float64")),
    seed=SEEDS,
)
def test_decompositions(name: str, shape: Any, dtype: str, seed: int) -> None:
    """Of symmetric positive matrices, batches of none, and matrices of no rows."""
    a = np.random.default_rng(seed).normal(size=shape)
    a = (a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)
    t, wide = tensor(a), a.astype(np.float64)
    near = {"float32": 2e-4, "float64": 1e-9}[dtype]
    eye = np.broadcast_to(np.eye(shape[-1]), shape)
    if name == "inverse":
        got, want = as_array(ops.inverse(t)) @ wide, eye
    elif name == "det":
        got, want = as_array(ops.det(t)), np.linalg.det(wide)
    elif name == "slogdet":
        got, want = as_array(ops.slogdet(t)[1]), np.linalg.slogdet(wide)[1]
    elif name == "cholesky":
        got, want = as_array(ops.cholesky(t)), np.linalg.cholesky(wide)
    elif name == "qr":
        q, r = ops.qr(t)
        got, want = as_array(q) @ as_array(r), wide
    elif name == "svd":
        s, u, v = ops.svd(t)
        got, want = as_array(u) * as_array(s)[..., None, :] @ np.swapaxes(as_array(v), -1, -2), wide
    elif name == "eigvalsh":
        got, want = as_array(ops.svd(t, compute_uv=False)), np.linalg.eigvalsh(wide)[..., ::-1]
    elif name == "solve":
        got, want = wide @ as_array(ms.mint.linalg.inv(t)), eye
    elif name == "matrix_exp":
        got, want = as_array(ops.matrix_exp(t * 0.1)) @ as_array(ops.matrix_exp(t * -0.1)), eye
    elif name == "pinv":
        got, want = as_array(ops.pinv(t)) @ wide, eye
    else:
        got, want = as_array(ops.matrix_power(t, 2)), np.linalg.matrix_power(wide, 2)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=near, atol=near * 10)
