"""The oneDNN binding against NumPy in float64: products, convolutions and gradients over shapes,
strides and layouts.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.onednn import c_interface as dense_library
from mycel._src.engines.native.onednn import plan as dense_plan

needs_onednn = pytest.mark.skipif(not dense.available(), reason=str(dense.why_unavailable()))
pytestmark = needs_onednn
quick = settings(max_examples=30, deadline=None)

F32 = np.dtype("float32")
BF16 = np.dtype(ml_dtypes.bfloat16)
F16 = np.dtype("float16")
RELATIVE = {F32: 2e-6, BF16: 1 / 128, F16: 1 / 1024}


def operand(array: np.ndarray) -> dense.Operand:
    return dense.Operand(array.shape, tuple(s // array.itemsize for s in array.strides), array.dtype.name)


def without_avx512(error: dense.Unsupported) -> bool:
    """Whether the processor explains that oneDNN has only plain loops for post-operations."""
    return "only as ref" in str(error) and not dense_library.library().has_isa(dense_library.ISA_AVX512)


def values(shape: tuple[int, ...], seed: int, dtype: Any = F32, order: tuple[int, ...] | None = None) -> np.ndarray:
    """Random numbers whose axes lie in memory in `order`, the outermost first."""
    order = order if order is not None else tuple(range(len(shape)))
    memory = np.random.default_rng(seed).standard_normal([shape[axis] for axis in order])
    return memory.astype(dtype).transpose(np.argsort(order))


def blank(like: np.ndarray) -> np.ndarray:
    """NaN in the layout of `like`, so that what is not written shows."""
    return np.full_like(like, np.nan, order="K")


def assert_close(got: np.ndarray, want: np.ndarray, terms: int) -> None:
    """Within the rounding of a sum of `terms` products of normal numbers, and of the result."""
    scale = np.sqrt(terms) + np.abs(want)
    assert got.shape == want.shape
    worst = np.max(np.abs(got.astype(np.float64) - want) / scale)
    assert worst <= RELATIVE[got.dtype], worst


# ---- matrix products


def multiply(
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    bias: np.ndarray | None = None,
    post: tuple[Any, ...] = (),
    **more: np.ndarray,
) -> dense.Plan:
    plan = dense.matmul(operand(a), operand(b), operand(out), None if bias is None else operand(bias), post)
    plan(a=a, b=b, out=out, **({} if bias is None else {"bias": bias}), **more)
    return plan


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def empty_product(a: np.ndarray, b: np.ndarray, dtype: Any = F32) -> np.ndarray:
    return np.full(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), np.nan, dtype)


@quick
@given(st.data())
def test_matmul_for_any_layout_and_broadcast(data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 5))
    m, k, n = (data.draw(st.integers(1, 9)) for _ in range(3))
    batch = tuple(data.draw(st.integers(1, 3)) for _ in range(rank - 2))

    def factor(rows: int, columns: int, seed: int) -> np.ndarray:
        sizes = tuple(size if data.draw(st.booleans()) else 1 for size in batch)
        shape = sizes[data.draw(st.integers(0, len(sizes))) :] + (rows, columns)
        return values(shape, seed, order=tuple(data.draw(st.permutations(range(len(shape))))))

    a, b = factor(m, k, 1), factor(k, n, 2)
    shape = empty_product(a, b).shape
    out = blank(values(shape, 3, order=tuple(data.draw(st.permutations(range(len(shape)))))))
    plan = multiply(a, b, out)
    assert_close(out, product(a, b), k)
    assert plan.flops == 2 * out.size * k


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("gap", [0, 3])
def test_matmul_of_slices_leaves_the_gaps_alone(step: int, gap: int) -> None:
    a = values((2, 6, (8 + gap) * step), 1)[..., : 8 * step : step]
    b = values((2, 8 + gap, 5), 2)[:, :8]
    memory = np.full((2, 6, (5 + gap) * step), 7, np.float32)
    out = memory[..., : 5 * step : step]
    multiply(a, b, out)
    assert_close(out, product(a, b), 8)
    untouched = np.ones(memory.shape, bool)
    untouched[..., : 5 * step : step] = False
    assert (memory[untouched] == 7).all()


def test_matmul_of_attention_heads_reorders_nothing() -> None:
    query, key = values((2, 16, 4, 32), 1).transpose(0, 2, 1, 3), values((2, 16, 4, 32), 2).transpose(0, 2, 3, 1)
    scores = empty_product(query, key)
    plan = multiply(query, key, scores)
    assert_close(scores, product(query, key), 32)
    assert len(plan.calls) == 1 and "ref" not in plan.calls[0].description


def test_matmul_of_a_shared_right_factor_is_one_matrix_product() -> None:
    a, b = values((3, 5, 7, 16), 1), values((16, 8), 2)
    out = empty_product(a, b)
    plan = multiply(a, b, out, bias := values((8,), 3))
    assert_close(out, product(a, b) + bias, 16)
    flat = dense.matmul(*(dense.Operand.dense(shape, "float32") for shape in ((105, 16), (16, 8), (105, 8))))
    assert plan.calls[-1].description == flat.calls[-1].description


@pytest.mark.parametrize("fixed", ["a", "b"])
def test_matmul_of_zero_strides(fixed: str) -> None:
    a, b = values((4, 6, 8), 1), values((4, 8, 5), 2)
    if fixed == "a":
        a = np.broadcast_to(values((1, 1, 8), 3), (4, 6, 8))
    else:
        b = np.broadcast_to(values((8, 1), 3), (4, 8, 5))
    out = empty_product(a, b)
    multiply(a, b, out)
    assert_close(out, product(a, b), 8)


@pytest.mark.parametrize("columns_first", [False, True])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (6, 5), (6, 1), (1, 1)])
def test_matmul_bias_along_any_dimension_of_a_matrix(shape: tuple[int, ...], columns_first: bool) -> None:
    a, b, bias = values((6, 8), 1), values((8, 5), 2), values(shape, 3)
    out = blank(values((6, 5), 4, order=(1, 0) if columns_first else None))
    try:
        multiply(a, b, out, bias)
    except dense.Unsupported as error:
        assert "computed apart" in str(error)
        assert shape in ((6, 1), (1, 1))
    else:
        assert_close(out, product(a, b) + bias, 8)


@pytest.mark.parametrize(
    "post, expected",
    [
        ((("relu",),), lambda x, old, other: np.maximum(x, 0)),
        ((("relu", 0.25),), lambda x, old, other: np.where(x > 0, x, 0.25 * x)),
        ((("tanh",),), lambda x, old, other: np.tanh(x)),
        ((("gelu_erf",),), lambda x, old, other: x * special.ndtr(x)),
        ((("sum", 2.0),), lambda x, old, other: x + 2 * old),
        ((("binary_add", "other"), ("relu",)), lambda x, old, other: np.maximum(x + other, 0)),
        ((("relu",), ("sum", 1.0), ("tanh",)), lambda x, old, other: np.tanh(np.maximum(x, 0) + old)),
    ],
)
@pytest.mark.parametrize("columns_first", [False, True])
def test_matmul_post_operations_apply_in_order(post: Any, expected: Any, columns_first: bool) -> None:
    a, b = 0.3 * values((6, 8), 1), values((8, 5), 2)
    order = (1, 0) if columns_first else (0, 1)
    old, other, bias = values((6, 5), 3, order=order), values((6, 5), 4, order=order), values((5,), 5)
    chain = tuple((kind, operand(other)) if kind == "binary_add" else (kind, *rest) for kind, *rest in post)
    more = {"post0": other} if post[0][0] == "binary_add" else {}
    out = old.copy(order="K")
    try:
        multiply(a, b, out, bias, chain, **more)
    except dense.Unsupported as error:
        assert without_avx512(error)
        pytest.skip("this processor has no kernel for it, and says so")
    want = expected(product(a, b) + bias, old.astype(np.float64), other)
    assert np.max(np.abs(out - want)) < 3e-5


@pytest.mark.parametrize("dtype", [BF16, F16])
@pytest.mark.parametrize("wide", [False, True])
def test_matmul_of_16_bit_numbers(dtype: Any, wide: bool) -> None:
    a, b = values((2, 20, 33), 1, dtype), values((33, 17), 2, dtype)
    out = empty_product(a, b, F32 if wide else dtype)
    multiply(a, b, out)
    assert_close(out, product(a, b), 33)


@pytest.mark.parametrize("first", ["int8", "uint8"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_matmul_of_integers_is_exact_at_the_ends_of_their_range(first: str, order: tuple[int, ...]) -> None:
    ends = np.iinfo(first)
    rng = np.random.default_rng(0)
    a = rng.choice([ends.min, ends.max - 1, ends.max], (7, 40)).astype(first)
    a[0], a[1] = ends.max, ends.min
    b = rng.choice([-128, -127, 127], (40, 9)).astype(np.int8)
    b[:, 0], b[:, 1] = 127, -128
    a, out = np.asarray(a, order="C" if order == (0, 1) else "F"), np.zeros((7, 9), np.int32)
    multiply(a, b, out)
    assert (out == a.astype(np.int64) @ b.astype(np.int64)).all()


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, 3), (4, 5), (2, 5)), "matmul: inner dimensions differ: a (2, 3), b (4, 5), out (2, 5)"),
        (((2, 3), (3, 5), (2, 6)), "rows of a and the columns of b"),
        (((2, 2, 3), (3, 3, 5), (3, 2, 5)), "batch dimension 0 does not broadcast"),
        (((2, 3), (3, 5), (4, 2, 5)), "out as many as the longer"),
        (((3,), (3, 5), (3, 5)), "at least 2 dimensions"),
    ],
)
def test_matmul_refuses_shapes_that_do_not_fit(shapes: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        dense.matmul(*(dense.Operand.dense(shape, "float32") for shape in shapes))
    assert message in str(caught.value)


def test_unsupported_operands_are_named() -> None:
    def build(shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None = None) -> dense.Plan:
        a = dense.Operand.dense(shape, dtype)
        a = a if strides is None else dense.Operand(shape, strides, dtype)
        out = dense.Operand.dense((*shape[:-1], 5), dtype)
        return dense.matmul(a, dense.Operand.dense((shape[-1], 5), dtype), out)

    with pytest.raises(dense.Unsupported, match=r"matmul: a is empty, of shape \(0, 2, 3\)"):
        build((0, 2, 3), "float32")
    with pytest.raises(dense.Unsupported, match=r"matmul: oneDNN 3\.\d+\.\d+ refused \(unimplemented\)"):
        build((2, 3), "float64")
    with pytest.raises(dense.Unsupported, match="a is complex64; oneDNN has float16"):
        build((2, 3), "complex64")
    with pytest.raises(dense.Unsupported, match=r"negative strides \(-3, 1\); copy it first"):
        build((2, 3), "float32", (-3, 1))
    with pytest.raises(dense.Unsupported, match="no memory descriptor for .*invalid_arguments"):
        build((2, 3), "float32", (1, 1))
    with pytest.raises(ValueError, match="unknown post-operation .'sigmoid',.; known are sum, relu"):
        dense.matmul(*[dense.Operand.dense((2, 2), "float32")] * 3, post=(("sigmoid",),))


# ---- convolutions


class Convolution:
    """A convolution by its definition, in float64: one term per kernel position."""

    def __init__(self, strides: Any, padding_low: Any, padding_high: Any, dilation: Any, groups: int) -> None:
        self.window = {
            "strides": tuple(strides),
            "padding_low": tuple(padding_low),
            "padding_high": tuple(padding_high),
            "dilation": tuple(dilation),
            "groups": groups,
        }
        self.strides, self.dilation, self.groups = strides, dilation, groups
        self.padding = [(0, 0), (0, 0), *zip(padding_low, padding_high)]

    def spatial(self, image: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[int, ...]:
        sizes = zip(image, kernel, self.padding[2:], self.strides, self.dilation)
        return tuple((n + sum(p) - d * (k - 1) - 1) // s + 1 for n, k, p, s, d in sizes)

    def positions(self, kernel: tuple[int, ...], result: tuple[int, ...]) -> Any:
        """(kernel index, the slice of the padded image that it meets)."""
        for index in itertools.product(*map(range, kernel)):
            steps = zip(index, self.dilation, self.strides, result)
            yield index, tuple(slice(i * d, i * d + s * (n - 1) + 1, s) for i, d, s, n in steps)

    def split(self, array: np.ndarray, axis: int) -> np.ndarray:
        shape = array.shape
        parts = (*shape[:axis], self.groups, shape[axis] // self.groups, *shape[axis + 1 :])
        return array.astype(np.float64).reshape(parts)

    def forward(self, src: np.ndarray, weights: np.ndarray) -> np.ndarray:
        padded, kernels = self.split(np.pad(src, self.padding), 1), self.split(weights, 0)
        result = self.spatial(src.shape[2:], weights.shape[2:])
        dst = np.zeros((src.shape[0], self.groups, kernels.shape[1], *result))
        for index, where in self.positions(weights.shape[2:], result):
            dst += np.einsum("ngc...,goc->ngo...", padded[(..., *where)], kernels[(..., *index)])
        return dst.reshape(src.shape[0], -1, *result)

    def backward_data(self, diff_dst: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        cotangent, kernels = self.split(diff_dst, 1), self.split(weights, 0)
        padded = self.split(np.pad(np.zeros(shape), self.padding), 1)
        for index, where in self.positions(weights.shape[2:], diff_dst.shape[2:]):
            padded[(..., *where)] += np.einsum("ngo...,goc->ngc...", cotangent, kernels[(..., *index)])
        inside = tuple(slice(low, low + size) for (low, _), size in zip(self.padding, shape))
        padded = padded.reshape(shape[0], shape[1], *padded.shape[3:])
        return padded[inside]

    def backward_weights(self, src: np.ndarray, diff_dst: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        padded, cotangent = self.split(np.pad(src, self.padding), 1), self.split(diff_dst, 1)
        gradient = np.zeros((self.groups, shape[0] // self.groups, *shape[1:]))
        for index, where in self.positions(shape[2:], diff_dst.shape[2:]):
            window = padded[(..., *where)]
            axes = [0, *range(3, window.ndim)]
            for group in range(self.groups):
                gradient[(group, ..., *index)] = np.tensordot(
                    np.moveaxis(cotangent, 1, 0)[group],
                    np.moveaxis(window, 1, 0)[group],
                    ([0, *(a - 1 for a in axes[1:])], [0, *(a - 1 for a in axes[1:])]),
                )
        return gradient.reshape(shape)


def last(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)


def check_convolution(
    convolution: Convolution,
    src: np.ndarray,
    weights: np.ndarray,
    order: tuple[int, ...] | None,
    result_dtype: Any = None,
) -> list[dense.Plan]:
    """Run all three directions, with the result in `order`, and compare with the definition."""
    shape = (src.shape[0], weights.shape[0], *convolution.spatial(src.shape[2:], weights.shape[2:]))
    terms = int(np.prod(weights.shape[1:]))
    dst = blank(values(shape, 7, result_dtype or src.dtype, order))
    forward = dense.conv_forward(operand(src), operand(weights), operand(dst), **convolution.window)
    forward(src=src, weights=weights, dst=dst)
    assert_close(dst, convolution.forward(src, weights), terms)
    assert forward.flops == 2 * dst.size * terms

    cotangent, diff_src = values(shape, 8, src.dtype, order), blank(src)
    data = dense.conv_backward_data(operand(cotangent), operand(weights), operand(diff_src), **convolution.window)
    data(diff_dst=cotangent, weights=weights, diff_src=diff_src)
    assert_close(
        diff_src, convolution.backward_data(cotangent, weights, src.shape), terms * shape[1] // src.shape[1] + 1
    )

    diff_weights, diff_bias = blank(weights), np.full(shape[1], np.nan, src.dtype)
    gradient = dense.conv_backward_weights(
        operand(src), operand(cotangent), operand(diff_weights), diff_bias=operand(diff_bias), **convolution.window
    )
    gradient(src=src, diff_dst=cotangent, diff_weights=diff_weights, diff_bias=diff_bias)
    count = cotangent.size // shape[1]
    assert_close(diff_weights, convolution.backward_weights(src, cotangent, weights.shape), count)
    assert_close(diff_bias, cotangent.astype(np.float64).sum((0, *range(2, len(shape)))), count)
    return [forward, data, gradient]


@quick
@given(st.data())
def test_convolution_and_gradients_for_any_window_and_layout(data: st.DataObject) -> None:
    spatial, groups = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 1, 2, 3]))

    def draw(low: int, high: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(spatial))

    kernel, dilation = draw(1, 3), draw(1, 2)
    reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
    low, high = (tuple(data.draw(st.integers(0, r)) for r in reach) for _ in range(2))
    image = tuple(data.draw(st.integers(max(1, r + 1 - p - q), r + 5)) for r, p, q in zip(reach, low, high))
    convolution = Convolution(draw(1, 3), low, high, dilation, groups)
    per_group = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    orders = st.sampled_from([None, last(spatial + 2)])
    src = values((data.draw(st.integers(1, 3)), per_group[0] * groups, *image), 1, order=data.draw(orders))
    weights = values((per_group[1] * groups, per_group[0], *kernel), 2, order=data.draw(orders))
    check_convolution(convolution, src, weights, data.draw(orders))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("groups, channels, outputs", [(1, 16, 32), (16, 16, 16), (2, 16, 32), (1, 1, 6), (1, 3, 16)])
def test_convolution_of_common_layers_has_fast_kernels(
    groups: int, channels: int, outputs: int, channels_last: bool
) -> None:
    order = last(4) if channels_last else None
    convolution = Convolution((1, 1), (1, 1), (1, 1), (1, 1), groups)
    src, weights = values((2, channels, 10, 10), 1, order=order), values((outputs, channels // groups, 3, 3), 2)
    for plan in check_convolution(convolution, src, weights, order):
        assert not any(dense_plan.is_slow(call.description) for call in plan.calls if "reorder" not in call.description)


@pytest.mark.parametrize("dtype", [BF16, F16])
@pytest.mark.parametrize("channels_last", [False, True])
def test_convolution_of_16_bit_numbers(dtype: Any, channels_last: bool) -> None:
    order = last(4) if channels_last else None
    convolution = Convolution((2, 1), (1, 0), (0, 2), (1, 1), 1)
    src, weights = values((2, 8, 9, 8), 1, dtype, order), values((12, 8, 3, 3), 2, dtype)
    check_convolution(convolution, src, weights, order)
    check_convolution(convolution, src, weights, order, result_dtype=F32)


@pytest.mark.parametrize("channels_last", [False, True])
def test_convolution_with_bias_and_post_operations(channels_last: bool) -> None:
    order = last(4) if channels_last else None
    convolution = Convolution((1, 1), (1, 1), (1, 1), (1, 1), 2)
    src, weights, bias = values((2, 8, 6, 6), 1, order=order), values((16, 4, 3, 3), 2), values((16,), 3)
    old, residual = values((2, 16, 6, 6), 4, order=order), values((2, 16, 6, 6), 5, order=order)
    per_channel = values((1, 16, 1, 1), 6)
    plain = convolution.forward(src, weights) + bias[:, None, None]
    cases: list[tuple[Any, dict[str, np.ndarray], np.ndarray]] = [
        ((("relu",),), {}, np.maximum(plain, 0)),
        ((("sum", 1.0), ("relu",)), {}, np.maximum(plain + old, 0)),
        ((("relu",), ("binary_add", operand(per_channel))), {"post1": per_channel}, np.maximum(plain, 0) + per_channel),
        ((("binary_add", operand(residual)), ("relu",)), {"post0": residual}, np.maximum(plain + residual, 0)),
    ]
    for post, more, want in cases:
        dst = old.copy(order="K")
        try:
            plan = dense.conv_forward(
                operand(src), operand(weights), operand(dst), bias=operand(bias), post=post, **convolution.window
            )
        except dense.Unsupported as error:
            assert without_avx512(error)
            continue
        plan(src=src, weights=weights, dst=dst, bias=bias, **more)
        assert_close(dst, want, 36)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"dst": (2, 4, 6, 7)}, "the spatial shape of dst should have 6 where it has 7"),
        ({"weights": (4, 2, 3, 3)}, "the channels do not fit 1 groups"),
        ({"dst": (1, 4, 6, 6)}, "the batch sizes differ"),
        ({"strides": (1,)}, "need 2 values each"),
        ({"dilation": (0, 1)}, "must be at least 1"),
        ({"src": (2, 3, 8), "dst": (2, 4, 6)}, "the same number in all operands"),
        ({"bias": (3,)}, "one value per output channel"),
    ],
)
def test_convolution_refuses_what_does_not_fit(change: dict[str, Any], message: str) -> None:
    shapes = {"src": (2, 3, 8, 8), "weights": (4, 3, 3, 3), "dst": (2, 4, 6, 6), "bias": (4,)}
    window: dict[str, Any] = dict(strides=(1, 1), padding_low=(0, 0), padding_high=(0, 0), dilation=(1, 1), groups=1)
    described = {name: dense.Operand.dense(change.get(name, shape), "float32") for name, shape in shapes.items()}
    window |= {name: value for name, value in change.items() if name in window}
    bias = described.pop("bias")
    with pytest.raises(ValueError) as caught:
        dense.conv_forward(*described.values(), bias=bias, **window)
    assert message in str(caught.value) and "conv_forward: " in str(caught.value)


# ---- plans


def test_plan_runs_through_raw_addresses_as_generated_code_runs_it() -> None:
    a, b = values((5, 12), 1), values((12, 7), 2)
    out = empty_product(a, b)
    plan = dense.matmul(operand(a), operand(b), operand(out))
    addresses = dense.symbols()
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    set_handle = ctypes.CFUNCTYPE(integer, pointer, pointer)(addresses["dnnl_memory_set_data_handle"])
    execute = ctypes.CFUNCTYPE(integer, pointer, pointer, integer, pointer)(addresses["dnnl_primitive_execute"])
    wait = ctypes.CFUNCTYPE(integer, pointer)(addresses["dnnl_stream_wait"])
    storage = {name: np.zeros(size + 64, np.uint8) for name, size in plan.temporaries.items()}
    buffers = {"a": a.ctypes.data, "b": b.ctypes.data, "out": out.ctypes.data}
    buffers |= {name: (memory.ctypes.data + 63) // 64 * 64 for name, memory in storage.items()}
    for call in plan.calls:
        assert len(call.memories) == len(call.buffers)
        for memory, name in zip(call.memories, call.buffers):
            assert set_handle(memory, buffers[name]) == 0
        assert execute(call.primitive, dense.stream(), len(call.memories), call.exec_args) == 0
    assert wait(dense.stream()) == 0
    assert_close(out, product(a, b), 12)


def test_plans_are_cached_by_arguments_and_threads() -> None:
    described = [dense.Operand.dense((3, 3), "float32")] * 3
    before = dense.max_threads()
    plan = dense.matmul(*described)
    assert dense.matmul(*described) is plan
    assert dense.matmul(*described, post=(("relu",),)) is not plan
    assert plan.threads == before
    try:
        dense.set_num_threads(before + 1)
        other = dense.matmul(*described)
        assert other is not plan and other.threads == dense.max_threads() == before + 1
    finally:
        dense.set_num_threads(before)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        dense.set_num_threads(0)


def test_copy_outlives_the_plan_and_handles_go_with_the_last() -> None:
    a, b = values((4, 3, 10), 1), values((10, 6), 2)
    kept = dense.matmul(operand(a), operand(b), operand(out := empty_product(a, b)))
    first = kept.copy()  # the cache of the builder holds `kept` itself
    second = first.copy()
    assert not {m for c in first.calls for m in c.memories} & {m for c in second.calls for m in c.memories}
    assert [c.primitive for c in first.calls] == [c.primitive for c in second.calls]
    handles = weakref.ref(first._keep[1])
    del first
    gc.collect()
    assert handles() is None
    second(a=a, b=b, out=out)
    assert_close(out, product(a, b), 10)


def test_plans_are_built_and_run_from_several_threads() -> None:
    outcomes: list[Any] = []

    def work(seed: int) -> None:
        try:
            a, b = values((5 + seed % 2, 11), seed), values((11, 4), seed + 100)
            out = empty_product(a, b)
            for _ in range(20):
                multiply(a, b, out)
                assert_close(out, product(a, b), 11)
            outcomes.append("right")
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["right"] * 4


def test_plan_refuses_arrays_of_another_kind() -> None:
    a, b = values((5, 12), 1), values((12, 7), 2)
    out = empty_product(a, b)
    plan = dense.matmul(operand(a), operand(b), operand(out))
    with pytest.raises(TypeError, match=r"expected the arrays \['a', 'b', 'out'\], got \['a', 'b'\]"):
        plan(a=a, b=b)
    with pytest.raises(ValueError, match="Plan: a must be Operand"):
        plan(a=a.astype(np.float64), b=b, out=out)
    with pytest.raises(ValueError, match=r"Plan: b must be .* not float32 of shape \(12, 7\), strides \(1, 12\)"):
        plan(a=a, b=np.asfortranarray(b), out=out)


# ---- the library


def report(**environment: str) -> str:
    """What a fresh process says about oneDNN."""
    code = "from mycel._src.engines.native.onednn import binding as dense\n"
    code += "print(dense.available(), dense.why_unavailable())"
    paths = os.pathsep.join(path or "." for path in sys.path)
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_wrong_library_is_reported_and_nothing_else_is_tried() -> None:
    answer = report(MYCEL_ONEDNN="/nowhere/libdnnl.so")
    assert answer.startswith("False oneDNN: cannot load '/nowhere/libdnnl.so'")
    assert "correct or unset MYCEL_ONEDNN" in answer


def test_another_library_is_told_from_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ctypes.util.find_library("c")
    if other is None:
        pytest.skip("this system has no C library to find")
    monkeypatch.setenv("MYCEL_ONEDNN", other)
    with pytest.raises(dense.Unavailable, match="is not a oneDNN 3.x library"):
        dense_library.load()


def test_chosen_library_is_the_only_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYCEL_ONEDNN", raising=False)
    path = next(dense_library.candidates())
    monkeypatch.setenv("MYCEL_ONEDNN", path)
    assert list(dense_library.candidates()) == [path]
    assert dense_library.load().version.major == 3
    assert dense.available() and dense.why_unavailable() is None and dense.version().startswith("3.")


def test_absence_of_every_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYCEL_ONEDNN", raising=False)
    monkeypatch.setattr(dense_library, "candidates", lambda: iter(()))
    with pytest.raises(dense.Unavailable, match="no library found; install it .pip install onednn-cpu-gomp."):
        dense_library.load()


def test_importing_loads_nothing() -> None:
    code = (
        "import sys; from mycel._src.engines.native.onednn import binding as dense; "
        "from mycel._src.engines.native.onednn import c_interface as dense_library; "
        "print(dense_library._loaded, any('dnnl' in line for line in open('/proc/self/maps')))"
    )
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("the loaded libraries cannot be listed on this system")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["None", "False"]
