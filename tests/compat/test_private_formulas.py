"""Private primitives that MindSpore's CPU does not run: against their formulas in NumPy, and
gradients against those of the operations themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import compat, ops
from mycel._src.foundation.errors import Unsupported


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def rand(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def T(array: Any) -> ms.Tensor:
    return ms.Tensor(np.asarray(array))


def close(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=tolerance, atol=tolerance)


def quantised(x: np.ndarray, low: Any, high: Any, least: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `x` in the levels of a range with zero in it, and where it lies within."""
    step = (high - low) / (most - least)
    zero = np.floor(np.clip(least - low / step, least, most) + 0.5)
    start, end = (least - zero) * step, (most - zero) * step
    inside = (x >= start) & (x <= end)
    return np.floor((np.clip(x, start, end) - start) / step + 0.5) * step + start, inside


def test_fake_quantisation_of_layers_and_channels() -> None:
    from mindspore.ops.operations import _quant_ops as Q

    x = rand(3, 4)
    low, high = np.float32([-1.0]), np.float32([1.5])
    wanted, inside = quantised(x, low, high, 0, 255)
    layer = Q.FakeQuantPerLayer(8)
    close(layer(T(x), T(low), T(high)), wanted)
    close(Q.FakeQuantPerLayerGrad(8)(T(x * 2), T(x), T(low), T(high)), np.where(inside, x * 2, 0))
    close(ms.grad(lambda v: (layer(v, T(low), T(high)) * T(x)).sum())(T(x)), np.where(inside, x, 0))
    close(ms.jit(lambda v: layer(v, T(low), T(high)))(T(x)), wanted)
    wide = np.float32([1.5])
    wanted, _ = quantised(x, -wide, wide, -7, 7)
    close(Q.FakeQuantPerLayer(4, symmetric=True, narrow_range=True)(T(x), T(low), T(high)), wanted)
    lows, highs = np.float32([-1, -0.5, -0.1]), np.float32([1.5, 0.1, 1])
    wanted, _ = quantised(x, lows[:, None], highs[:, None], 0, 255)
    close(Q.FakeQuantPerChannel(8, channel_axis=0)(T(x), T(lows), T(highs)), wanted)
    with pytest.raises(Unsupported, match="quant_delay counts the calls"):
        Q.FakeQuantPerLayer(8, quant_delay=10)(T(x), T(low), T(high))
    a, b, c = Q.FakeQuantWithMinMaxVarsGradient(8)(T(x), T(x), T(low), T(high))
    assert [v.shape for v in (a, b, c)] == [(3, 4), (1,), (1,)]


def test_ranges_of_values_over_calls() -> None:
    from mindspore.ops.operations._quant_ops import MinMaxUpdatePerChannel, MinMaxUpdatePerLayer

    x, low, high = rand(3, 4), np.float32([-1.0]), np.float32([1.5])
    found = MinMaxUpdatePerLayer(True, 0.9)(T(x), T(low), T(high))
    close(found[0], np.minimum(0, low * 0.9 + x.min() * 0.1))
    close(found[1], np.maximum(0, high * 0.9 + x.max() * 0.1))
    found = MinMaxUpdatePerChannel(channel_axis=1)(T(np.abs(x)), T(rand(4)), T(rand(4)))
    close(found[0], np.zeros(4))
    close(found[1], np.abs(x).max(0))


def test_learned_ranges() -> None:
    from mindspore.ops.operations import _quant_ops as Q

    x, alpha, most = rand(3, 4), np.float32([1.2]), np.float32([127.0])
    ratio = x / alpha
    steps = np.floor(np.clip(ratio, -1, 1) * most + 0.5) / most
    operation = Q.FakeLearnedScaleQuantPerLayer()
    close(operation(T(x), T(alpha), T(most)), steps * alpha)
    outside = np.abs(ratio) > 1
    dx, da = ms.grad(lambda v, a: (operation(v, a, T(most)) * T(x)).sum(), (0, 1))(T(x), T(alpha))
    close(dx, np.where(outside, 0, x))
    close(da, [(x * np.where(outside, np.sign(ratio), steps - ratio)).sum()])
    alphas = np.float32([1.2, 0.5, 0.8])
    ratio = x / alphas[:, None]
    steps = np.floor(np.clip(ratio, 0, 1) * most + 0.5) / most
    found = Q.FakeLearnedScaleQuantPerChannel(neg_trunc=True, channel_axis=0)(T(x), T(alphas), T(most))
    close(found, steps * alphas[:, None])


def test_folded_batch_normalisations() -> None:
    from mindspore.ops.operations import _quant_ops as Q

    x, mean, variance = rand(2, 3, 4, 4), rand(3), np.abs(rand(3)) + 0.5
    kept = ms.Parameter(T(mean))
    step = T(np.int32([1]))
    found = Q.BatchNormFold(momentum=0.9, freeze_bn=5)(T(x), kept, T(variance), step)
    batch_mean, batch_std = x.mean((0, 2, 3)), np.sqrt(x.var((0, 2, 3)) + 1e-5)
    running_std = np.sqrt(variance + 1e-5)
    for one, other in zip(found, (batch_mean, batch_std, mean, running_std)):
        close(one, other)
    close(kept, 0.9 * mean + 0.1 * batch_mean)
    frozen = Q.BatchNormFold(freeze_bn=1)(T(x), T(mean), T(variance), step)
    close(frozen[0], np.zeros(3))
    close(frozen[1], np.ones(3))
    beta, gamma = rand(3, seed=1), rand(3, seed=2)
    wide = [1, 3, 1, 1]
    wanted = x * (running_std / batch_std).reshape(wide) + (beta - gamma * batch_mean / batch_std).reshape(wide)
    operands = [T(v) for v in (x, beta, gamma, batch_std, batch_mean, running_std)]
    close(Q.BatchNormFold2D()(*operands), wanted)
    close(Q.BatchNormFold2(freeze_bn=5)(*operands, T(mean), step), wanted)
    bias = (beta - gamma * mean / running_std).reshape(wide)
    close(Q.BatchNormFold2(freeze_bn=1)(*operands, T(mean), step), x + bias)
    dy = rand(2, 3, 4, 4, seed=5)
    parts = Q.BatchNormFold2Grad(freeze_bn=5)(T(dy), T(x), *(operands[i] for i in (2, 3, 4, 5)), T(mean), step)
    by_rule = ms.grad(lambda *v: (Q.BatchNormFold2D()(*v) * T(dy)).sum(), (0, 1, 2, 3, 4))(*operands)
    for one, other in zip(parts, (by_rule[i] for i in (3, 4, 1, 2, 0))):
        close(one, other.asnumpy(), 1e-4)
    weights, a, b = rand(3, 2, 2, 2), batch_std, running_std
    close(Q.CorrectionMul(0)(T(weights), T(a), T(b)), weights * (a / b).reshape(3, 1, 1, 1))


def test_a_note_on_quantisation_passes_values_on() -> None:
    from mindspore.ops.operations import FakeQuantParam

    operation = FakeQuantParam.linear_quant_param(ms.QuantDtype.INT8, 0.5, 1)
    assert operation.attrs[FakeQuantParam.attr_key_linear_quant_scale] == [0.5]
    assert operation.attrs[FakeQuantParam.attr_key_linear_quant_zero_point] == [1]
    assert operation.quant_algo_name == FakeQuantParam.attr_value_linear_quant_algo_name
    close(operation(T(rand(3))), rand(3))


def test_steps_of_inference() -> None:
    from mindspore.ops.operations._infer_ops import DynamicQuantExt, QuantV2
    from mindspore.ops.operations._inner_ops import AntiQuant, Dequant, Quant

    x = np.float16([[1, 2], [30, -100]])
    assert Quant(2.0, 1.0)(T(x)).tolist() == [[3, 5], [61, -128]]
    assert Quant(0.5, 0.0, round_mode="Floor")(T(x)).tolist() == [[0, 1], [15, -50]]
    found = QuantV2()(T(x), T(np.float16([2, 3])), T(np.float16([1, 0])))
    assert found.tolist() == [[3, 6], [61, -128]] and found.dtype == ms.int8
    steps, scale = DynamicQuantExt()(T(x))
    close(scale, np.float32([2 / 127, 100 / 127]))
    assert steps.tolist() == [[64, 127], [38, -127]]
    found = Dequant(relu_flag=True)(T(np.int32([[1, -2]])), T(np.float16([0.5, 0.25])))
    assert found.tolist() == [[0.5, 0.0]] and found.dtype == ms.float16
    found = AntiQuant(dtype=ms.float32)(T(np.int8([1, -4])), T(np.float32([0.5, 2])), T(np.float32([1, 2])))
    assert found.tolist() == [1.0, -4.0]


def test_parts_of_compressed_rows() -> None:
    from mindspore.ops.operations import _csr_ops as C

    dense = np.float32([[1, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 4]])
    parts = [T(np.int32([0, 2, 3, 4])), T(np.int32([0, 2, 1, 3])), T(np.float32([1, 2, 3, 4])), (3, 4)]
    other, vector, columns = rand(3, 4), rand(4, 1), rand(4, 2)
    there = dense != 0
    close(C.CSRMul()(*parts, T(other)), (dense * other)[there])
    close(C.CSRDiv()(*parts, T(other)), (dense / other)[there])
    close(C.CSRMV()(*parts, T(vector)), dense @ vector)
    close(C.CSRMM()(*parts, T(columns)), dense @ columns)
    close(C.CSRReduceSum()(*parts, 1), dense.sum(1, keepdims=True))
    close(C.CSRGather()(*parts[:2], T(other), (3, 4)), other[there])
    assert C.COO2CSR()(T(np.int32([0, 0, 1, 2])), 3).tolist() == [0, 2, 3, 4]
    assert C.CSR2COO()(parts[0], 4).tolist() == [0, 0, 1, 2]
    found = ms.grad(lambda v: C.CSRMV()(*parts[:2], v, (3, 4), T(vector)).sum())(parts[2])
    close(found, np.broadcast_to(vector.T, (3, 4))[there])


def masked(masks: dict[str, int], begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> None:
    from mindspore.ops.operations._grad_ops import StridedSliceGrad

    x = rand(3, 4, 2)
    part = ops.StridedSlice(**masks)(T(x), begin, end, strides)
    dy = rand(*part.shape, seed=3)
    wanted = ms.grad(lambda v: (ops.StridedSlice(**masks)(v, begin, end, strides) * T(dy)).sum())(T(x))
    close(StridedSliceGrad(**masks)(T(dy), x.shape, begin, end, strides), wanted.asnumpy())


def test_gradients_of_slices_with_masks() -> None:
    masked({}, (0, 1, 0), (2, 4, 2), (1, 2, 1))
    masked({"begin_mask": 1, "end_mask": 2}, (1, 1, 0), (2, 2, 2), (1, 1, 1))
    masked({"ellipsis_mask": 1}, (0, 1), (0, 2), (1, 1))
    masked({"new_axis_mask": 1, "shrink_axis_mask": 2}, (0, 1, 0, 0), (1, 2, 4, 2), (1, 1, 1, 1))
    masked({}, (2, 3, 1), (-4, -5, -3), (-2, -2, -1))


def positive_definite(a: np.ndarray) -> np.ndarray:
    return a @ a.T + np.eye(len(a), dtype=np.float32)


GRADIENTS: dict[str, tuple[Callable[..., Any], np.ndarray, Callable[..., Any]]] = {
    "SeluGrad": (ops.selu, rand(3, 4), lambda op, dy, y: op(dy, y)),
    "SoftmaxGrad": (ops.softmax, rand(3, 4), lambda op, dy, y: op(y, dy)),
    "CholeskyGrad": (ops.cholesky, positive_definite(rand(3, 3)), lambda op, dy, y: op(y, dy)),
    "EluGrad": (ops.elu, rand(3, 4), lambda op, dy, y: op(dy, y)),
    "TanhGrad": (ops.tanh, rand(3, 4), lambda op, dy, y: op(y, dy)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_by_results_are_those_of_operations(name: str) -> None:
    from mindspore.ops.operations import _grad_ops

    forward, x, called = GRADIENTS[name]
    y = forward(T(x))
    dy = rand(*y.shape, seed=9)
    wanted = ms.grad(lambda v: (forward(v) * T(dy)).sum())(T(x)).asnumpy()
    found = called(getattr(_grad_ops, name)(), T(dy), y)
    if name == "CholeskyGrad":
        wanted = (wanted + wanted.T) / 2
    close(found, wanted, 1e-4)


def test_gradients_of_normalisations_by_their_statistics() -> None:
    from mindspore.ops.operations._grad_ops import InstanceNormGrad, RmsNormGrad

    x, gamma, dy = rand(3, 4), rand(4), rand(3, 4, seed=4)
    y, rstd = ops.rms_norm(T(x), T(gamma))
    wanted = ms.grad(lambda v, g: (ops.rms_norm(v, g)[0] * T(dy)).sum(), (0, 1))(T(x), T(gamma))
    for one, other in zip(RmsNormGrad()(T(dy), T(x), rstd, T(gamma)), wanted):
        close(one, other.asnumpy(), 1e-4)
    x, gamma, dy = rand(2, 3, 4, 4), rand(3), rand(2, 3, 4, 4, seed=4)

    def norm(v: ms.Tensor, g: ms.Tensor) -> ms.Tensor:
        middle = v.mean((2, 3), keep_dims=True)
        spread = ops.square(v - middle).mean((2, 3), keep_dims=True)
        return ((v - middle) / ops.sqrt(spread + 1e-5) * g.reshape((1, 3, 1, 1)) * T(dy)).sum()

    wanted = ms.grad(norm, (0, 1))(T(x), T(gamma))
    statistics = [T(v.reshape(-1)) for v in (x.mean((2, 3)), x.var((2, 3)))]
    found = InstanceNormGrad(1e-5)(T(dy), T(x), T(gamma), *statistics)
    close(found[0], wanted[0].asnumpy(), 1e-4)
    close(found[1], wanted[1].asnumpy(), 1e-4)
    close(found[2], dy.sum((0, 2, 3)), 1e-4)


def test_gradients_of_private_convolutions_and_pools() -> None:
    from mindspore.ops.operations import _grad_ops as G

    x, w = rand(1, 3, 6, 6), rand(3, 1, 3, 3)
    forward = ops.Conv2D(3, 3, group=3)
    dy = rand(1, 3, 4, 4)
    dx, dw = ms.grad(lambda a, b: (forward(a, b) * T(dy)).sum(), (0, 1))(T(x), T(w))
    close(G.DepthwiseConv2dNativeBackpropInput(1, 3)(x.shape, T(w), T(dy)), dx.asnumpy(), 1e-4)
    close(G.DepthwiseConv2dNativeBackpropFilter(1, 3)(T(x), w.shape, T(dy)), dw.asnumpy(), 1e-4)
    a, b = rand(2, 3), rand(3, 4)
    da, db = G.EinsumGrad("ij,jk->ik")((T(a), T(b)), T(a @ b))
    close(da, a @ b @ b.T, 1e-4)
    close(db, a.T @ (a @ b), 1e-4)
    x = rand(1, 2, 4, 4)
    pooled = ops.MaxPool(2, 2)(T(x))
    wanted = ms.grad(lambda v: (ops.MaxPool(2, 2)(v) ** 2).sum())(T(x))
    found = G.MaxPoolGradV1((1, 1, 2, 2), (1, 1, 2, 2))(T(x), pooled, pooled * 2)
    close(found, wanted.asnumpy())
    state = T(rand(1, 2, 4))
    lstm = (3, 4, 1, True, False, 0.0)
    weights, x = T(rand(144, 1, 1)), T(rand(5, 2, 3))
    results = ops.LSTM(*lstm)(x, state, state, weights)
    ones = [ops.ones_like(v) for v in results[:3]]
    found = G.LSTMGrad(*lstm)(x, state, state, weights, *results[:3], *ones, results[3])
    wanted = ms.grad(lambda *v: sum(r.sum() for r in ops.LSTM(*lstm)(*v)[:3]), (0, 1, 2, 3))(x, state, state, weights)
    for one, other in zip(found, wanted):
        close(one, other.asnumpy(), 1e-4)


def test_recurrence_of_weighted_keys_and_values() -> None:
    from mindspore.ops.operations._grad_ops import WKVGrad
    from mindspore.ops.operations.nn_ops import WKV

    u, w, k, v = rand(4), -np.abs(rand(4, seed=1)), rand(2, 3, 4), rand(2, 3, 4, seed=2)
    none = np.zeros((2, 4), np.float32)
    found = WKV()(*(T(a) for a in (u, w, k, v, none, none, none - 1e38)))
    wanted = np.zeros((2, 3, 4))
    for t in range(3):
        weights = [np.exp(w * (t - 1 - i) + k[:, i]) for i in range(t)] + [np.exp(u + k[:, t])]
        wanted[:, t] = sum(a * v[:, i] for i, a in enumerate(weights)) / sum(weights)
    close(found[0], wanted, 1e-4)
    dy = rand(2, 3, 4, seed=3)
    state = [T(none), T(none), T(none - 1e38)]
    by_rule = ms.grad(lambda w, u, k, v: (WKV()(u, w, k, v, *state)[0] * T(dy)).sum(), (0, 1, 2, 3))
    for one, other in zip(WKVGrad()(T(u), T(w), T(k), T(v), T(dy)), by_rule(T(w), T(u), T(k), T(v))):
        close(one, other.asnumpy(), 1e-4)


def test_position_sensitive_regions() -> None:
    from mindspore.ops.operations._inner_ops import PsROIPooling

    x = rand(1, 8, 4, 4)
    found, channels = PsROIPooling(2, 2, 1, 1.0, 2, 2)(T(x), T(np.float32([[0, 0, 0, 3, 3]])))
    wanted = np.zeros((1, 2, 2, 2))
    for c in range(2):
        for i in range(2):
            for j in range(2):
                wanted[0, c, i, j] = x[0, c * 4 + i * 2 + j, i * 2 : i * 2 + 2, j * 2 : j * 2 + 2].mean()
    close(found, wanted)
    assert channels.tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]


def test_sparse_matrices_and_sets_that_a_cpu_of_mindspore_has_not() -> None:
    from mindspore.ops.operations import sparse_ops as S

    parts = [np.int32([3, 3]), np.int32([0, 4]), np.int32([0, 2, 3, 4]), np.int32([0, 2, 1, 2])]
    dense = np.float32([[1, 0, 2], [0, 3, 0], [0, 0, 4]])
    tensors = [T(v) for v in (*parts, np.float32([1, 2, 3, 4]))]
    found = S.SparseMatrixSparseMatMul(transpose_b=True)(*tensors, *tensors)
    close(S.CSRSparseMatrixToDense()(*found), dense @ dense.T)
    indices, values, shape = T(np.int64([[0, 1], [1, 2], [2, 0]])), T(np.float32([1, 2, 3])), T(np.int64([3, 4]))
    found = S.SparseSplit(2)(T(np.int64(0)), indices, values, shape)
    assert [v.tolist() for v in found[0]] == [[[0, 1], [1, 2]], [[0, 0]]]
    assert [v.tolist() for v in found[1]] == [[1.0, 2.0], [3.0]] and [v.tolist() for v in found[2]] == [[2, 4], [1, 4]]
    close(S.SparseDenseCwiseDiv()(indices, values, shape, T(np.full(4, 2, np.float32))), [0.5, 1.0, 1.5])
    found = S.SparseReshape()(indices, shape, T(np.int64([2, -1])))
    assert found[0].tolist() == [[0, 1], [1, 0], [1, 2]] and found[1].tolist() == [2, 6]
    sets = T(np.int64([[0, 0], [0, 1], [1, 0]])), T(np.int32([2, 5, 6])), T(np.int64([2, 2]))
    assert S.SetSize()(*sets).tolist() == [2, 1]
    found = S.DenseToSparseSetOperation("intersection")(T(np.int32([[1, 2, 3], [4, 5, 6]])), *sets)
    assert found[1].tolist() == [2, 6] and found[2].tolist() == [2, 1]


def test_marks_of_parallel_programs_pass_values_on() -> None:
    from mindspore.ops.operations import comm_ops as C

    x = T(rand(3))
    for operation in (C._VirtualDataset(), C._VirtualOutput(), C._MirrorOperator(), C.virtual_pipeline_end):
        close(operation(x), rand(3))
    assert ms.grad(lambda v: C._VirtualDiv(4)(v).sum())(x).tolist() == [0.25] * 3
    close(C._VirtualDiv(4)(x), rand(3))


def test_state_of_gradients() -> None:
    from mindspore.ops.operations import nn_ops

    finite = nn_ops.AllFinite()((T(rand(3)), T(rand(2))))
    infinite = nn_ops.AllFinite()((T(rand(3)), T(np.float32([np.inf]))))
    assert finite.tolist() == [False] and infinite.tolist() == [True]


def test_assignment_to_parts() -> None:
    from mindspore.ops.composite.multitype_ops._compile_utils import _tensor_setitem, _tensor_setitem_origin

    x = T(rand(3, 4))
    assert _tensor_setitem(x, 1, 2.0) is x and x[1].tolist() == [2.0] * 4
    (found,) = _tensor_setitem_origin(x, (slice(0, 2), 1), 5.0)
    assert found is x and x[:, 1].tolist()[:2] == [5.0, 5.0]
    other = _tensor_setitem_origin(x, T(np.int64([0, 2])), 7.0)
    assert other[0].tolist() == [7.0] * 4 and x[0].tolist() != [7.0] * 4
    row = ms.jit(lambda v: _tensor_setitem(v + 0, 1, 2.0))(x)
    assert row[1].tolist() == [2.0] * 4


def test_derivatives_by_rule_and_registered_ones() -> None:
    from mindspore.ops._grad_experimental.grad_base import bprop_getters
    from mindspore.ops._grad_experimental.grad_inner_ops import get_bprop_ps_roi_pooling
    from mindspore.ops._grad_experimental.grad_quant_ops import get_bprop_correction_mul
    from mindspore.ops.operations._inner_ops import PsROIPooling
    from mindspore.ops.operations._quant_ops import CorrectionMul

    x, a, b = T(rand(3, 4)), T(rand(3)), T(rand(3, seed=1))
    operation = CorrectionMul(0)
    found = get_bprop_correction_mul(operation)(x, a, b, operation(x, a, b), ops.ones_like(x))
    wanted = ms.grad(lambda *v: operation(*v).sum(), (0, 1, 2))(x, a, b)
    for one, other in zip(found, wanted):
        close(one, other.asnumpy())
    assert callable(get_bprop_ps_roi_pooling(PsROIPooling(2, 2, 1, 1.0, 2, 2)))

    class Thrice(ops.Primitive):
        def __init__(self) -> None:
            super().__init__("Thrice")

        def __call__(self, x: ms.Tensor) -> ms.Tensor:
            return x * 3

    @bprop_getters.register(Thrice)
    def derivative(self: Thrice) -> Callable[..., Any]:
        return lambda x, out, dout: (dout * 100,)

    assert ms.grad(lambda v: Thrice()(v).sum())(T(rand(2))).tolist() == [100.0, 100.0]
    with pytest.raises(Unsupported, match="is not a class of primitives"):
        bprop_getters.register("Thrice")


def test_gradients_of_gradients() -> None:
    from mindspore.ops.operations._grad_ops import MaxPoolGrad, TanhGrad

    y, dy = T(rand(3)), T(rand(3, seed=1))
    found = ms.grad(lambda y, d: TanhGrad()(y, d).sum(), (0, 1))(y, dy)
    close(found[0], -2 * dy.asnumpy() * y.asnumpy())
    close(found[1], 1 - y.asnumpy() ** 2)

    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pool = ops.MaxPool(2, 2)
            self.back = MaxPoolGrad(2, 2)

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            out = self.pool(x)
            return self.back(x, out, out)

    x = T(rand(1, 1, 4, 4))
    wanted = ms.grad(lambda v: (ops.MaxPool(2, 2)(v) ** 2).sum() / 2)(x)
    close(Net()(x), wanted.asnumpy())
    close(ms.jit(Net())(x), wanted.asnumpy())


def test_strings_and_numbers() -> None:
    from mindspore.ops.operations import _inner_ops as I
    from mindspore.ops.operations import _scalar_ops as S

    assert I.string_mul("ab", 2) == "abab" and I.string_in("a", "cab") and I.bit_left_shift(3, 2) == 12
    assert S.bit_and()(12, 10) == 8 and S.bit_or()(12, 10) == 14 and I.bit_xor(12, 10) == 6


def test_tables_of_embeddings() -> None:
    from mindspore.ops.operations import _embedding_cache_ops as E

    table = ms.Parameter(T(rand(4, 2)))
    rows = T(rand(2, 2, seed=3))
    old = E.CacheSwapTable()(table, T(np.int32([1, 3])), rows)
    close(old, rand(4, 2)[[1, 3]])
    close(table[3], rand(2, 2, seed=3)[1])
    E.UpdateCache()(table, T(np.int64([0, 9])), rows, T(np.int64([4])))
    close(table[0], rand(2, 2, seed=3)[0])
    with pytest.raises(TypeError, match="must be a Parameter"):
        E.CacheSwapTable()(T(rand(4, 2)), T(np.int32([1])), rows)


def test_signatures_and_calls_of_primitives() -> None:
    from mindspore.ops import signature as sig
    from mindspore.ops._grad_experimental.grad_comm_ops import get_squared_device_local_norm_param
    from mindspore.ops.operations.nn_ops import _check_positive_int_or_tuple
    from mindspore.ops.primitive import _run_op

    class Mine(ops.Primitive):
        __mindspore_signature__ = (
            sig.make_sig("x", sig.sig_rw.RW_WRITE, dtype=sig.sig_dtype.T),
            sig.make_sig("y", dtype=sig.sig_dtype.T1),
        )

    assert [s.name for s in Mine.__mindspore_signature__] == ["x", "y"] and sig.sig_kind.KIND_KEYWORD_ONLY == 2
    assert _run_op(ops.Add(), "Add", (T(rand(2)), T(rand(2)))).tolist() == (rand(2) * 2).tolist()
    assert _check_positive_int_or_tuple("k", 3, "P", False, True) == (1, 1, 3, 3)
    assert _check_positive_int_or_tuple("k", (1, 1, 2, 3), "P", True) == (2, 3)
    with pytest.raises(ValueError, match="attr 'k' must be an positive int number or a tuple of two positive"):
        _check_positive_int_or_tuple("k", 0, "P")
    with pytest.raises(ValueError, match="'dump_device_local_norm' is False"):
        get_squared_device_local_norm_param()


def test_derivatives_and_batches_as_objects() -> None:
    from mindspore.ops.composite.base import _Grad, _Vmap
    from mindspore.ops.operations._pyfunc_registry import add_pyfunc, get_pyfunc

    value, slope = _Grad(get_by_position=True, get_value=True)(lambda x, y: (x * y).sum(), None, 1)(
        T(rand(2)), T(rand(2))
    )
    assert slope.tolist() == rand(2).tolist() and value.shape == ()
    assert _Grad()(lambda x: (x * x).sum())(T(rand(2))).tolist() == (2 * rand(2)).tolist()
    assert _Vmap()(lambda x: x.sum())(T(rand(3, 2))).shape == (3,)
    add_pyfunc(7, abs)
    assert get_pyfunc(7) is abs and get_pyfunc(8) is None


def test_gradients_of_normalisations_in_two_steps_and_of_alignments() -> None:
    from mindspore.ops.operations import _grad_ops as G
    from mindspore.ops.operations.nn_ops import CTCLossV2Grad

    x, dy, scale = rand(2, 3, 4, 4), rand(2, 3, 4, 4, seed=2), rand(3)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    operands = [T(v) for v in (dy, x, mean, variance)]
    wanted = G.BatchNormGrad(True, 1e-4)(T(dy), T(x), T(scale), T(mean), T(variance), T(variance))
    ds, db = G.BNTrainingUpdateGrad(1e-4)(*operands)
    dx = G.BNTrainingReduceGrad(1e-4)(T(dy), T(x), ds, db, T(scale), T(mean), T(variance))
    for one, other in zip((dx, ds, db), wanted):
        close(one, other.asnumpy(), 1e-4)
    found = G.SyncBatchNormGrad(1e-4, "group", 1)(T(dy), T(x), T(scale), T(mean), T(variance))
    for one, other in zip(found, wanted):
        close(one, other.asnumpy(), 1e-4)
    logs = ops.log_softmax(T(rand(5, 1, 3)), -1)
    rest = [T(np.int64([[1, 2]])), T(np.int64([5])), T(np.int64([2]))]
    loss, alpha = ops.CTCLossV2()(logs, *rest)
    wanted = ms.grad(lambda v: ops.CTCLossV2()(v, *rest)[0].sum())(logs)
    close(CTCLossV2Grad(0)(T(np.ones(1, np.float32)), logs, *rest, loss, alpha), wanted.asnumpy(), 1e-4)


def test_refusals_of_cosine_transforms() -> None:
    from mindspore.scipy.fft import dct

    with pytest.raises(ValueError, match="only type 2"):
        dct(T(rand(3)), 3)
    with pytest.raises(ValueError, match="only norm 'ortho'"):
        dct(T(rand(3)), norm="forward")
    close(ms.grad(lambda v: (dct(v) ** 2).sum())(T(rand(3))), 2 * rand(3))


def test_sparse_momentum_with_nesterov() -> None:
    from mindspore.ops.operations.nn_ops import SparseApplyMomentum

    var, accum, grad = ms.Parameter(T(rand(3, 2))), ms.Parameter(T(rand(3, 2, seed=1))), rand(2, 2)
    rows = T(np.int32([0, 2]))
    SparseApplyMomentum(use_nesterov=True)(var, accum, T(np.float32(0.1)), T(grad), rows, T(np.float32(0.9)))
    moved = rand(3, 2, seed=1)[[0, 2]] * 0.9 + grad
    close(accum[rows], moved)
    close(var[rows], rand(3, 2)[[0, 2]] - 0.1 * (grad + 0.9 * moved))
