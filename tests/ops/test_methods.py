"""The methods of tensors, operations as objects, and the older composite functions."""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel.ops import operations

from .checks import close, numbers

CHECKED = dict.fromkeys(
    ("ops.GradOperation", "ops.HyperMap", "ops.MultitypeFuncGraph", "ops.Primitive", "Tensor.device"), "values by hand"
)
X = numbers(2, 3, 4)
T = Tensor(X)


def test_transposing_by_two_numbers_exchanges_two_axes() -> None:
    matrix = Tensor(X[0])
    close(matrix.transpose(0, 1), X[0].T)
    close(matrix.transpose(1, 0), X[0].T)
    close(matrix.transpose((0, 1)), X[0])
    close(matrix.transpose(), X[0].T)
    close(T.transpose(1, 2), X.swapaxes(1, 2))
    close(T.transpose(2, 0, 1), X.transpose(2, 0, 1))
    close(T.permute(1, 0, 2), X.transpose(1, 0, 2))
    close(T.T, X.T)
    close(T.mT, X.swapaxes(1, 2))


def test_both_spellings_of_reductions() -> None:
    close(T.sum(1), X.sum(1))
    close(T.sum(axis=(0, 2), keepdims=True), X.sum((0, 2), keepdims=True))
    close(T.sum(dim=1, keepdim=True), X.sum(1, keepdims=True))
    close(T.sum(1, True), X.sum(1, keepdims=True))
    assert T.sum(1, ms.float32).dtype is ms.float32
    close(T.mean(1, True), X.mean(1, keepdims=True))
    close(T.mean(dim=1), X.mean(1))
    close(T.std(0, 1), X.std(0, ddof=1))
    close(T.var(axis=1, ddof=1, keepdims=True), X.var(1, ddof=1, keepdims=True))
    close(T.var(dim=1, correction=1), X.var(1, ddof=1))
    close(T.prod(dim=2), X.prod(2))
    assert Tensor([[0, 1], [1, 1]]).all(dim=1).tolist() == [False, True]
    close(T.cumsum(), X.cumsum())
    close(T.cumsum(dim=1), X.cumsum(1))
    close(T.ptp(1), np.ptp(X, 1))
    assert T.argmax(dim=1, keepdim=True).shape == (2, 1, 4)
    close(T.norm(), np.linalg.norm(X))
    with pytest.raises(TypeError, match="sum: axis and dim name the same parameter"):
        T.sum(axis=0, dim=0)


def test_extremes_with_and_without_positions() -> None:
    assert T.max().shape == ()
    close(T.max(axis=1), X.max(1))
    values, positions = T.max(1)
    close(values, X.max(1))
    np.testing.assert_array_equal(positions.asnumpy(), X.argmax(1))
    values, positions = T.min(dim=2, keepdim=True)
    close(values, X.min(2, keepdims=True))
    assert T.min(axis=1, keepdims=True, return_indices=True)[1].shape == (2, 1, 4)
    assert T.max(initial=10.0).item() == 10.0


def test_shapes_given_as_numbers() -> None:
    assert T.reshape(4, -1).shape == T.reshape((4, -1)).shape == T.view(4, 6).shape == (4, 6)
    assert T.flatten().shape == (24,) and T.flatten(1).shape == T.flatten(start_dim=1).shape == (2, 12)
    assert T.expand(5, -1, -1, -1).shape == T.broadcast_to((5, 2, 3, 4)).shape == (5, 2, 3, 4)
    assert T.tile(2, 1).shape == T.tile((2, 1)).shape == (2, 6, 4)
    assert T.repeat(2, 1, 1).shape == (4, 3, 4)
    assert T[:1].squeeze(0).shape == (3, 4) and T.unsqueeze(1).shape == (2, 1, 3, 4)
    close(T.sum_to_size(3, 1), X.sum((0, 2))[:, None])
    assert [p.shape for p in T.split(2, 1)] == [(2, 2, 4), (2, 1, 4)]
    close(Tensor([1.0, 2.0, 3.0]).resize(2, 2), np.array([[1, 2], [3, 0]], np.float32))
    with pytest.raises(ValueError, match="repeat: 1 numbers for 3 dimensions"):
        T.repeat(2)


def test_conversions() -> None:
    x = Tensor([0.0, 1.7])
    for method, kind in (
        ("float", ms.float32),
        ("half", ms.float16),
        ("int", ms.int32),
        ("long", ms.int64),
        ("bool", ms.bool_),
    ):
        assert getattr(x, method)().dtype is kind
    assert x.astype("int32").tolist() == [0, 1] and x.astype(int).dtype is ms.int64
    assert x.to(ms.float16).dtype is ms.float16 and x.to("cpu") is x and x.to(Tensor([1])).dtype is ms.int64
    assert x.type() == "Float32" and x.type(ms.int32).dtype is ms.int32
    assert x.copy() is not x and x.copy().tolist() == x.tolist()
    assert (x.dim(), x.numel(), x.stride(), x.is_floating_point(), x.device) == (1, 2, [1], True, "CPU")
    assert x.new_zeros((2,), dtype=ms.int32).dtype is ms.int32 and x.new_full((1,), 3).tolist() == [3.0]
    with pytest.raises(ValueError, match="to: device 'GPU' is not available"):
        x.to("GPU")


def test_positions() -> None:
    index = Tensor([[0], [2]])
    close(T.gather(Tensor([1, 0]), 1), X[:, [1, 0]])
    close(Tensor(X[:, :, 0]).gather(1, index), np.take_along_axis(X[:, :, 0], index.asnumpy(), 1))
    close(T.take(Tensor([1, 99])), X.ravel()[[1, 23]])
    close(T.take(Tensor([1, 5]), 2, "wrap"), X[..., [1, 1]])
    close(T.select(1, 2), X[:, 2])
    close(T.where(T > 0, 0.0), np.maximum(X, 0))
    assert Tensor([0, 1]).choose([Tensor([1, 2]), Tensor([3, 4])]).tolist() == [1, 4]
    assert Tensor([1.0, 2.0]).index_put((Tensor([0, 0]),), Tensor([5.0, 6.0]), True).tolist() == [12.0, 2.0]
    assert Tensor([1.0, 2.0]).itemset(1, 5.0).tolist() == [1.0, 5.0]
    assert Tensor([3, 1, 3]).unique().tolist() == [1, 3]
    assert Tensor([[1.0, 2.0]]).scatter_add(1, Tensor([[0]]), Tensor([[5.0]])).tolist() == [[6.0, 2.0]]
    assert Tensor([[1.0, 2.0]]).index_add(1, Tensor([0]), Tensor([[5.0]]), alpha=2).tolist() == [[11.0, 2.0]]


def test_writes_in_place_return_the_tensor() -> None:
    x = Tensor([1.0, 4.0])
    assert x.add_(1) is x and x.tolist() == [2.0, 5.0]
    assert x.sub_(1).mul_(2).div_(4).tolist() == [0.5, 2.0]
    assert x.copy_(Tensor([3])).tolist() == [3.0, 3.0]
    assert x.fill_(2).exp_().log_().floor_().clamp_(0, 1.5).tolist() == [1.5, 1.5]
    assert x.masked_fill_(Tensor([True, False]), 9).tolist() == [9.0, 1.5]
    assert x.zero_().tolist() == [0.0, 0.0]
    assert x.index_add_(0, Tensor([1]), Tensor([2.0])).tolist() == [0.0, 2.0]
    whole = Tensor([5, 7])
    assert whole.add_(0.6).dtype is ms.int64 and whole.tolist() == [5, 7]
    with pytest.raises(ValueError, match=r"add_: the result has shape \(2, 2\), the tensor \(2,\)"):
        x.add_(ops.ones((2, 2)))


def test_gradients_flow_through_writes_in_place() -> None:
    def loss(t: Tensor) -> Tensor:
        y = t * 2
        y.mul_(t)
        return y.sum()

    assert ms.grad(loss)(Tensor([1.0, 3.0])).tolist() == [4.0, 12.0]


def test_the_linear_layer_that_transposes_its_weight() -> None:
    class Linear(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor(X[0]), name="weight")

        def construct(self, inputs: Tensor) -> Tensor:
            return ops.matmul(inputs, self.weight.transpose(0, 1))

    close(Linear()(Tensor(X[1])), X[1] @ X[0].T)


def test_operations_as_objects() -> None:
    m = Tensor(X[0])
    close(operations.MatMul(transpose_b=True)(m, m), X[0] @ X[0].T)
    close(operations.BatchMatMul(True)(T, T), X.swapaxes(1, 2) @ X)
    close(operations.Transpose()(m, (1, 0)), X[0].T)
    close(operations.ReduceSum(keep_dims=True)(T, 1), X.sum(1, keepdims=True))
    assert operations.ReduceSum()(Tensor(np.array([1, 2], np.int32))).dtype is ms.int32
    close(operations.ReduceMean()(T), X.mean())
    close(operations.ReduceMax()(T, (0, 2)), X.max((0, 2)))
    close(operations.Concat(1)((T, T)), np.concatenate((X, X), 1))
    close(operations.Softmax(0)(m), np.exp(X[0]) / np.exp(X[0]).sum(0))
    assert operations.Argmax()(T).dtype is ms.int32 and operations.Shape()(T) == (2, 3, 4)
    position, value = operations.ArgMaxWithValue(1)(T)
    np.testing.assert_array_equal(position.asnumpy(), X.argmax(1))
    close(operations.OneHot()(Tensor([1]), 2, Tensor(5.0), Tensor(0.0)), np.array([[0, 5]], np.float32))
    close(operations.Pad(((0, 1), (1, 0)))(m), np.pad(X[0], ((0, 1), (1, 0))))
    close(operations.MirrorPad("SYMMETRIC")(m, Tensor([[1, 0], [0, 2]])), np.pad(X[0], ((1, 0), (0, 2)), "symmetric"))
    close(operations.CumSum(exclusive=True, reverse=True)(m, 1), np.cumsum(X[0][:, ::-1], 1)[:, ::-1] - X[0])
    assert [p.shape for p in operations.Split(2, 2)(T)] == [(2, 3, 2)] * 2
    close(operations.DivNoNan()(Tensor([1.0, 2.0]), Tensor([0.0, 4.0])), np.array([0, 0.5], np.float32))
    entropy, slope = operations.SoftmaxCrossEntropyWithLogits()(m, Tensor(np.eye(3, 4)))
    close(slope, np.exp(X[0]) / np.exp(X[0]).sum(1, keepdims=True) - np.eye(3, 4))
    w = ms.Parameter(Tensor([1.0]))
    operations.AssignAdd()(w, Tensor([2.0]))
    assert w.tolist() == [3.0]


def test_layers_as_objects_agree_with_mindspore() -> None:
    x = Tensor(np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4))
    assert operations.Conv2D(2, 3)(x, ops.ones((2, 2, 3, 3))).asnumpy()[0, 0].tolist() == [
        [234.0, 252.0],
        [306.0, 324.0],
    ]
    assert operations.MaxPool(3, 2, "same")(x).asnumpy()[0, 0].tolist() == [[10.0, 11.0], [14.0, 15.0]]
    assert operations.AvgPool(3, 2, "same")(x).asnumpy()[0, 0].tolist() == [[5.0, 6.5], [11.0, 12.5]]
    m = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    out, mean, variance = operations.LayerNorm()(m, m[0], m[1])
    np.testing.assert_allclose(out.asnumpy(), [[3.0, 4.0, 7.4494896]] * 2, rtol=1e-6)
    assert mean.tolist() == [[1.0], [4.0]]
    np.testing.assert_allclose(variance.asnumpy(), [[2 / 3]] * 2, rtol=1e-6)
    value, weight = operations.NLLLoss()(m, Tensor([1, 2]), m[0])
    assert (value.item(), weight.item()) == (pytest.approx(-3.6666667), 3.0)
    kept, mask = operations.Dropout(1.0)(m)
    assert kept.tolist() == m.tolist() and mask.asnumpy().all()
    up = operations.Conv2DTranspose(2, 2, stride=2)(ops.ones((1, 3, 2, 2)), ops.ones((3, 2, 2, 2)), (1, 2, 4, 4))
    assert up.shape == (1, 2, 4, 4) and up.asnumpy().min() == up.asnumpy().max() == 3.0


def test_objects_keep_their_parameters() -> None:
    product = ops.MatMul(transpose_a=True)
    assert isinstance(product, ops.Primitive) and product.name == "MatMul" and product.transpose_a is True
    assert product.add_prim_attr("group", 3).group == 3
    with pytest.raises(TypeError, match=r"Conv2D: missing a required argument: 'out_channel'"):
        ops.Conv2D()
    with pytest.raises(TypeError, match="MatMul: got an unexpected keyword argument 'transpose'"):
        ops.MatMul(transpose=True)
    with pytest.raises(ValueError, match="data_format 'NHWC' is not supported on the CPU"):
        ops.MaxPool(2, 2, data_format="NHWC")(ops.ones((1, 4, 4, 2)))


def test_gradients_as_objects() -> None:
    square = lambda x, y: x * x * y
    a, b = Tensor(3.0), Tensor(2.0)
    assert float(ops.GradOperation()(square)(a, b)) == 12.0
    assert [float(g) for g in ops.GradOperation(get_all=True)(square)(a, b)] == [12.0, 9.0]
    assert float(ops.GradOperation(sens_param=True)(square)(a, b, Tensor(10.0))) == 120.0

    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(Tensor(5.0), name="w")

        def construct(self, x: Tensor) -> Tensor:
            return self.w * x

    cell = Scale()
    assert float(ops.GradOperation(get_by_list=True)(cell, cell.trainable_params())(a)[0]) == 3.0
    inputs, weights = ops.GradOperation(get_all=True, get_by_list=True)(cell)(a)
    assert float(inputs[0]) == 5.0 and float(weights[0]) == 3.0


def test_functions_over_nested_sequences() -> None:
    add = ops.MultitypeFuncGraph("add")

    @add.register("Tensor", "Tensor")
    def _(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    @add.register("Number", "Number")
    def _(x: float, y: float) -> float:
        return x * y

    result = ops.HyperMap(add)((Tensor(1.0), (2, 3)), (Tensor(2.0), (4, 5)))
    assert float(result[0]) == 3.0 and result[1] == (8, 15)
    with pytest.raises(ValueError, match=r"add: no implementation is registered for \(String, Int64\)"):
        add("x", 1)
    with pytest.raises(TypeError, match="must all be tuples of 2 members"):
        ops.HyperMap()(lambda x, y: x, (1, 2), (1,))
