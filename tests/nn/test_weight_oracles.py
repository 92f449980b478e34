"""Layers with parameters against loops and formulas in float64: values in every floating type,
eagerly, compiled and in graph mode, moving statistics, derivatives by inputs and parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from tests.nn.cases import wave
from tests.nn.test_window_oracles import each

CHECKED = {
    f"nn.{name}": "NumPy"
    for name in (
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "CellDict",
        "CellList",
        "Conv1d",
        "Conv1dTranspose",
        "Conv2d",
        "Conv2dTranspose",
        "Conv3d",
        "Conv3dTranspose",
        "Dense",
        "Embedding",
        "GraphCell",
        "GroupNorm",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
        "LRN",
        "LayerNorm",
        "Linear",
        "SequentialCell",
    )
}

NEAR = {"float64": 1e-9, "float32": 3e-5, "float16": 1e-2}


@pytest.fixture(autouse=True)
def restored_mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def double(*shape: int, phase: float = 0.3) -> Any:
    return wave(*shape, phase=phase).astype(np.float64)


def filled(cell: Any, dtype: Any) -> Any:
    """The cell with parameters of one type whose values depend on their place alone, positive where
    they are variances.
    """
    for k, p in enumerate(cell.get_parameters()):
        values = 0.5 * double(*p.shape, phase=1.0 + k)
        p.set_dtype(dtype)
        p.set_data(ms.Tensor(np.abs(values) + 0.5 if "variance" in p.name else values).astype(dtype))
    return cell


def values_of(cell: Any) -> dict[str, Any]:
    return {p.name: p.asnumpy().astype(np.float64) for p in cell.get_parameters()}


def check(
    make: Callable[[], Any],
    expected: Callable[..., Any],
    x: Any,
    training: bool = False,
    kinds: str = "float64 float32 float16",
) -> None:
    """Values of every type, compiled and not; in float64 derivatives by the input and all trained
    parameters. `expected(parameters, x)`.
    """
    for kind in kinds.split():
        dtype = getattr(ms, kind)
        cell = filled(make(), dtype).set_train(training)
        t = ms.Tensor(x).astype(dtype) if x.dtype.kind == "f" else ms.Tensor(x)
        wanted = expected(values_of(cell), t.asnumpy().astype(np.float64) if x.dtype.kind == "f" else x)
        found = [cell(t)]
        if kind == "float64":
            found.append(ms.jit(filled(make(), dtype).set_train(training))(t))
            ms.set_context(mode=ms.GRAPH_MODE)
            found.append(filled(make(), dtype).set_train(training)(t))
            ms.set_context(mode=ms.PYNATIVE_MODE)
        for y in found:
            assert y.dtype is dtype and y.shape == wanted.shape
            np.testing.assert_allclose(y.asnumpy().astype(np.float64), wanted, rtol=NEAR[kind], atol=NEAR[kind])
    check_derivatives(make, x, training)


def check_derivatives(make: Callable[[], Any], x: Any, training: bool) -> None:
    cell = filled(make(), ms.float64).set_train(training)
    t = ms.Tensor(x)
    weights = ms.Tensor(np.cos(np.arange(np.prod(cell(t).shape))).reshape(cell(t).shape))
    cell = filled(cell, ms.float64)
    trained = list(cell.trainable_params())
    loss = lambda a: ms.ops.sum(cell(a) * weights)
    floating = x.dtype.kind == "f"
    found = ms.grad(loss, 0 if floating else None, trained or None)(t)
    if floating and trained:
        gradients = [found[0], *found[1]]
    else:
        gradients = list(found) if isinstance(found, tuple) else [found]
    targets: list[Any | None] = ([None] if floating else []) + trained
    for target, gradient in zip(targets, gradients):
        start = x if target is None else target.asnumpy().copy()
        way = np.sin(1.7 * np.arange(start.size) + 0.4).reshape(start.shape)
        ends = []
        for sign in (1, -1):
            moved = ms.Tensor(start + sign * 1e-6 * way)
            if target is not None:
                target.set_data(moved)
            ends.append(float(loss(moved if target is None else t)))
        if target is not None:
            target.set_data(ms.Tensor(start))
        want, got = (ends[0] - ends[1]) / 2e-6, float((gradient.asnumpy() * way).sum())
        assert abs(got - want) <= 1e-6 * (1 + abs(want) + np.abs(gradient.asnumpy()).sum()), (
            f"{got}, by differences {want}"
        )


@pytest.mark.parametrize("lead", [(3,), (2, 4), (), (0,)])
@pytest.mark.parametrize("bias", [True, False])
def test_dense(lead: tuple[int, ...], bias: bool) -> None:
    product = lambda p, x: x @ p["weight"].T + p.get("bias", 0)
    check(lambda: nn.Dense(5, 4, has_bias=bias), product, double(*lead, 5))
    check(lambda: nn.Linear(5, 4, bias), product, double(*lead, 5))
    check(
        lambda: nn.Dense(5, 4, has_bias=bias, activation="tanh"), lambda p, x: np.tanh(product(p, x)), double(*lead, 5)
    )


def correlated(x: Any, w: Any, stride: Any, pairs: Any, dilation: Any, group: int) -> Any:
    """Cross-correlation of (N, C, *spatial) by a loop over the kernel's places."""
    rank = x.ndim - 2
    x = np.pad(x, ((0, 0), (0, 0), *pairs))
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(x.shape[2:], w.shape[2:], dilation, stride)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    ins, outs = w.shape[1], w.shape[0] // group
    for at in itertools.product(*map(range, w.shape[2:])):
        cut = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, sizes, stride))
        for g in range(group):
            part = x[(slice(None), slice(g * ins, (g + 1) * ins), *cut)]
            out[:, g * outs : (g + 1) * outs] += np.einsum(
                "nc...,oc->no...", part, w[(slice(g * outs, (g + 1) * outs), slice(None), *at)]
            )
    assert len(sizes) == rank
    return out


def spread(x: Any, w: Any, stride: Any, pairs: Any, dilation: Any, group: int, extra: Any) -> Any:
    """The transpose of `correlated`: every element adds its multiple of the kernel.

    The padding is cut off.
    """
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], stride, spans)]
    whole = np.zeros((x.shape[0], w.shape[1] * group, *(n + e for n, e in zip(sizes, extra))))
    ins, outs = x.shape[1] // group, w.shape[1]
    for at in itertools.product(*map(range, w.shape[2:])):
        cut = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, x.shape[2:], stride))
        for g in range(group):
            kernel = w[(slice(g * ins, (g + 1) * ins), slice(None), *at)]
            whole[(slice(None), slice(g * outs, (g + 1) * outs), *cut)] += np.einsum(
                "nc...,co->no...", x[:, g * ins : (g + 1) * ins], kernel
            )
    return whole[(slice(None), slice(None), *(slice(a, n - b) for (a, b), n in zip(pairs, whole.shape[2:])))]


def same(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    more = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return more // 2, more - more // 2


SHAPES = {1: ((2, 4, 7), (1, 4, 5)), 2: ((2, 4, 5, 6), (1, 4, 7, 4)), 3: ((1, 4, 4, 3, 5), (2, 4, 3, 3, 3))}
OPTIONS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 3},
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 3, "stride": 2, "pad_mode": "valid", "has_bias": True},
    {"kernel_size": 3, "pad_mode": "pad", "padding": 2, "dilation": 2, "group": 2, "has_bias": True},
    {"kernel_size": 2, "group": 4, "dilation": 2},
    {"kernel_size": 1, "pad_mode": "valid"},
)


def unpacked(options: dict[str, Any], rank: int, sizes: Any) -> tuple[Any, ...]:
    kernel, stride, dilation = (each(options.get(k, 1), rank) for k in ("kernel_size", "stride", "dilation"))
    mode = options.get("pad_mode", "same")
    if mode == "same":
        pairs: Any = [same(*a) for a in zip(sizes, kernel, stride, dilation)]
    else:
        pairs = [(p, p) for p in each(options.get("padding", 0), rank)]
    return kernel, stride, dilation, pairs, mode


def shifted(y: Any, p: dict[str, Any]) -> Any:
    return y + p["bias"].reshape(-1, *(1,) * (y.ndim - 2)) if "bias" in p else y


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution(rank: int, number: int) -> None:
    options = OPTIONS[number]

    def expected(p: dict[str, Any], x: Any) -> Any:
        _, stride, dilation, pairs, _ = unpacked(options, rank, x.shape[2:])
        w = p["weight"][:, :, 0] if rank == 1 else p["weight"]
        return shifted(correlated(x, w, stride, pairs, dilation, options.get("group", 1)), p)

    for shape in SHAPES[rank]:
        check(lambda: getattr(nn, f"Conv{rank}d")(4, 8, **options), expected, double(*shape), kinds="float64 float32")


def test_convolution_of_half_precision_and_with_padding_of_each_side() -> None:
    for rank, shapes in SHAPES.items():
        pads = (1, 0, 2, 1, 0, 2)[: 2 * rank]

        def expected(p: dict[str, Any], x: Any, rank: int = rank, pads: Any = pads) -> Any:
            w = p["weight"][:, :, 0] if rank == 1 else p["weight"]
            return correlated(x, w, (1,) * rank, [pads[2 * i : 2 * i + 2] for i in range(rank)], (1,) * rank, 1)

        check(
            lambda r=rank, p=pads: getattr(nn, f"Conv{r}d")(4, 2, 2, pad_mode="pad", padding=p),
            expected,
            double(*shapes[0]),
        )


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolution(rank: int, number: int) -> None:
    options = OPTIONS[number]

    def expected(p: dict[str, Any], x: Any) -> Any:
        kernel, stride, dilation, pairs, mode = unpacked(options, rank, x.shape[2:])
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
        extra = [0] * rank
        if mode == "same":
            # As many positions as stride times the input's, whose convolution with "same" has the
            # input's size.
            pairs = [same(n * s, k, s, d) for n, s, k, d in zip(x.shape[2:], stride, kernel, dilation)]
        if mode != "pad":
            extra = [max(s - k, 0) for s, k in zip(stride, spans)]
        w = p["weight"][:, :, 0] if rank == 1 else p["weight"]
        return shifted(spread(x, w, stride, pairs, dilation, options.get("group", 1), extra), p)

    for shape in SHAPES[rank]:
        check(
            lambda: getattr(nn, f"Conv{rank}dTranspose")(4, 8, **options),
            expected,
            double(*shape),
            kinds="float64 float32",
        )


def normalised(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def along(p: Any, x: Any) -> Any:
    return p.reshape(1, -1, *(1,) * (x.ndim - 2))


def scaled(p: dict[str, Any], y: Any, prefix: str = "") -> Any:
    return y * along(p[prefix + "gamma"], y) + along(p[prefix + "beta"], y)


BATCHES = {
    1: ((6, 3), (4, 3, 5), (2, 3, 1)),
    2: ((2, 3, 4, 5), (1, 3, 2, 3), (5, 3, 1, 2)),
    3: ((2, 3, 2, 3, 2), (1, 3, 2, 2, 4), (3, 3, 1, 1, 2)),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_batch_normalisation(rank: int, training: bool) -> None:
    prefix = "bn2d." if rank == 3 else ""

    def expected(p: dict[str, Any], x: Any, eps: float, from_batch: bool) -> Any:
        if from_batch:
            y = normalised(x, (0, *range(2, x.ndim)), eps)
        else:
            names = [n for n in p if n.endswith(("mean", "variance"))]
            y = (x - along(p[names[0]], x)) / np.sqrt(along(p[names[1]], x) + eps)
        return scaled(p, y, prefix)

    make = getattr(nn, f"BatchNorm{rank}d")
    for shape in BATCHES[rank]:
        x = double(*shape)
        # In training half precision normalises in single: its parameters stay float32 there, so
        # only wide types run.
        check(lambda: make(3), lambda p, x: expected(p, x, 1e-5, training), x, training, "float64 float32")
        check(lambda: make(3, 1e-2), lambda p, x: expected(p, x, 1e-2, training), x, training, "float64")
        for given in (True, False):
            check(
                lambda given=given: make(3, use_batch_statistics=given),
                lambda p, x, given=given: expected(p, x, 1e-5, given),
                x,
                training,
                "float64",
            )
        layer = make(3, momentum=0.6, dtype=ms.float64).set_train(training)
        layer(ms.Tensor(x))
        axes, n = (0, *range(2, x.ndim)), x.size // 3
        mean, variance = (
            values_of(layer)[k]
            for k in ([f"{prefix}moving_mean", f"{prefix}moving_variance"] if prefix else ["mean", "variance"])
        )
        wanted = (
            (0.4 * x.mean(axes), 0.6 + 0.4 * x.var(axes) * n / max(n - 1, 1)) if training else (np.zeros(3), np.ones(3))
        )
        np.testing.assert_allclose(mean, wanted[0], atol=1e-7)
        np.testing.assert_allclose(variance, wanted[1], rtol=1e-6)
    assert make(3, affine=False).trainable_params() == [] and len(list(make(3).trainable_params())) == 2
    half = make(3).set_train(training)(ms.Tensor(double(*BATCHES[rank][0])).astype(ms.float16))
    whole = make(3).set_train(training)(ms.Tensor(double(*BATCHES[rank][0])).astype(ms.float32))
    assert half.dtype is ms.float16
    np.testing.assert_allclose(half.asnumpy().astype(np.float64), whole.asnumpy(), atol=5e-3)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_instance_normalisation(rank: int, training: bool) -> None:
    make = getattr(nn, f"InstanceNorm{rank}d")
    for lead in ((2, 3), (1, 3), (4, 3)):
        x = double(*lead, *(4, 3, 2)[:rank])
        axes = tuple(range(2, x.ndim))
        check(lambda: make(3, eps=1e-3), lambda p, x, a=axes: scaled(p, normalised(x, a, 1e-3)), x, training)
        layer = make(3, momentum=0.25, dtype=ms.float64).set_train(training)
        layer(ms.Tensor(x))
        mean, variance = (values_of(layer)[n] for n in ("mean", "variance"))
        share = 0.25 if training else 0.0
        np.testing.assert_allclose(mean, share * x.mean(axes).mean(0), atol=1e-7)
        np.testing.assert_allclose(variance, 1 - share + share * x.var(axes).mean(0), rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (3, 4, 2), (1, 4, 2, 2, 3)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_normalisation(groups: int, shape: tuple[int, ...]) -> None:
    def expected(p: dict[str, Any], x: Any) -> Any:
        parts = x.reshape(x.shape[0], groups, -1)
        return scaled(p, normalised(parts, 2, 1e-4).reshape(x.shape))

    check(lambda: nn.GroupNorm(groups, 4, 1e-4), expected, double(*shape))
    assert nn.GroupNorm(groups, 4, affine=False).trainable_params() == []


@pytest.mark.parametrize(
    "shape, given, first, of_parameters",
    [
        ((3, 5), (5,), -1, -1),
        ((2, 3, 5), (5,), -1, -1),
        ((2, 3, 5), (3, 5), 1, 1),
        ((2, 3, 5), (5,), 1, 2),
        ((2, 3, 4, 5), [4, 5], -2, -2),
        ((1, 2), (2,), 1, 1),
    ],
)
def test_layer_normalisation(shape: Any, given: Any, first: int, of_parameters: int) -> None:
    def expected(p: dict[str, Any], x: Any) -> Any:
        return normalised(x, tuple(range(first % x.ndim, x.ndim)), 1e-3) * p["gamma"] + p["beta"]

    check(lambda: nn.LayerNorm(given, first, of_parameters, epsilon=1e-3), expected, double(*shape))


@pytest.mark.parametrize("shape", [(2, 5, 3, 2), (1, 3, 4, 4), (3, 1, 1, 2)])
@pytest.mark.parametrize("radius, bias, alpha, beta", [(5, 1.0, 1.0, 0.5), (1, 2.0, 0.3, 0.75)])
def test_local_response_normalisation(shape: Any, radius: int, bias: float, alpha: float, beta: float) -> None:
    def expected(p: dict[str, Any], x: Any) -> Any:
        sums = np.stack([(x[:, max(c - radius, 0) : c + radius + 1] ** 2).sum(1) for c in range(x.shape[1])], 1)
        return x / (bias + alpha * sums) ** beta

    check(lambda: nn.LRN(radius, bias, alpha, beta), expected, double(*shape))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 1, 3), (0,)])
@pytest.mark.parametrize("one_hot", [False, True])
def test_embedding(shape: Any, one_hot: bool) -> None:
    ids = (np.arange(int(np.prod(shape))) * 5 % 6).reshape(shape).astype(np.int32)
    check(lambda: nn.Embedding(6, 3, one_hot), lambda p, i: p["embedding_table"][i], ids)
    padded = nn.Embedding(6, 3, one_hot, padding_idx=2)
    assert not padded.embedding_table.asnumpy()[2].any()
    assert abs(nn.Embedding(300, 40).embedding_table.asnumpy().std() - 0.01) < 1e-3


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 4), (4,)])
def test_containers_apply_their_cells(shape: Any) -> None:
    def expected(p: dict[str, Any], x: Any) -> Any:
        w1, b1, w2, b2 = list(p.values())
        return np.maximum(x @ w1.T + b1, 0) @ w2.T + b2

    class Listed(nn.Cell):
        def __init__(self, cells: Any) -> None:
            super().__init__()
            self.cells = cells

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            for cell in self.cells.values() if isinstance(self.cells, nn.CellDict) else self.cells:
                x = cell(x)
            return x

    three = lambda: [nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 2)]
    for make in (
        lambda: nn.SequentialCell(*three()),
        lambda: nn.SequentialCell(three()),
        lambda: Listed(nn.CellList(three())),
        lambda: Listed(nn.CellDict(dict(zip("abc", three())))),
    ):
        check(make, expected, double(*shape))
    names = [p.name for p in Listed(nn.CellDict(dict(zip("abc", three())))).get_parameters()]
    assert names == ["cells.a.weight", "cells.a.bias", "cells.c.weight", "cells.c.bias"]


@pytest.mark.parametrize("shape", [(3,), (2, 4), (0, 2)])
def test_cells_of_compiled_functions(shape: Any) -> None:
    check(lambda: nn.GraphCell(ms.jit(lambda a: ms.ops.sin(a) * a)), lambda p, x: np.sin(x) * x, double(*shape))
