"""Layers: first values of parameters, randomness, positions, half precision, and arguments that do
not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.common.seed import set_seed
from tests.nn.cases import wave


def test_default_weights_and_biases_are_uniform_within_one_over_the_root_of_fan_in() -> None:
    set_seed(3)
    for layer, fan_in in (
        (nn.Dense(100, 300), 100),
        (nn.Linear(100, 300), 100),
        (nn.Conv1d(20, 300, 5, has_bias=True), 100),
        (nn.Conv2d(20, 300, 5, group=2, has_bias=True), 250),
        (nn.Conv3d(4, 300, 3, has_bias=True), 108),
        (nn.Conv2dTranspose(20, 300, 5, has_bias=True), 7500),
    ):
        bound = 1 / np.sqrt(fan_in)
        for p in (layer.weight, layer.bias):
            largest = float(abs(p.asnumpy()).max())
            assert 0.95 * bound < largest <= bound * (1 + 1e-6)
            assert abs(float(p.asnumpy().mean())) < 0.2 * bound


def test_weight_shapes() -> None:
    assert nn.Conv1d(4, 6, 3).weight.shape == (6, 4, 1, 3)
    assert nn.Conv2d(4, 6, (3, 2), group=2).weight.shape == (6, 2, 3, 2)
    assert nn.Conv2dTranspose(4, 6, 3, group=2).weight.shape == (4, 3, 3, 3)
    assert nn.Conv1dTranspose(4, 6, 3).weight.shape == (4, 6, 1, 3)
    assert nn.Embedding(7, 2).embedding_table.shape == (7, 2)
    assert nn.Conv2d(1, 1, 3).bias is None and nn.Dense(1, 1, has_bias=False).bias is None


def test_given_first_values_are_taken() -> None:
    w = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    dense = nn.Dense(3, 2, weight_init=w, bias_init="ones")
    assert dense.weight.asnumpy().tolist() == w.asnumpy().tolist() and dense.bias.asnumpy().tolist() == [1, 1]
    assert nn.Dense(3, 2, dtype=ms.float16).weight.dtype is ms.float16
    assert nn.PReLU(2, w=[0.1, 0.2]).w.asnumpy().tolist() == pytest.approx([0.1, 0.2])


def test_dropout_keeps_the_mean_and_drops_in_training_alone() -> None:
    set_seed(5)
    x = ms.ops.ones((100, 100))
    layer = nn.Dropout(p=0.25)
    assert layer(x) is x
    y = layer.set_train()(x).asnumpy()
    assert np.unique(y).tolist() == pytest.approx([0, 4 / 3])
    assert abs(y.mean() - 1) < 0.05
    assert nn.Dropout(p=0.0).set_train()(x) is x
    old = nn.Dropout(keep_prob=0.9).set_train()(x).asnumpy()
    assert abs((old == 0).mean() - 0.1) < 0.02


def test_dropout_of_whole_channels() -> None:
    set_seed(5)
    y = nn.Dropout2d(0.5).set_train()(ms.ops.ones((50, 4, 3, 3))).asnumpy()
    assert set(np.unique(y).tolist()) == {0.0, 2.0}
    assert np.all(y == y[:, :, :1, :1])
    assert 0.3 < (y[:, :, 0, 0] == 0).mean() < 0.7


def test_random_slopes_of_rrelu() -> None:
    x = ms.Tensor(np.full((1000,), -1.0, np.float32))
    layer = nn.RReLU(0.25, 0.75)
    assert layer(x).asnumpy().tolist() == [-0.5] * 1000
    y = layer.set_train()(x).asnumpy()
    assert -0.75 <= y.min() < -0.7 and -0.3 < y.max() <= -0.25


def test_max_pool_positions() -> None:
    x = ms.Tensor(np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5))
    values, where = nn.MaxPool2d(2, 2, pad_mode="pad", padding=1, return_indices=True)(x)
    expected = [[0, 2, 4], [10, 12, 14], [15, 17, 19]]
    assert values.asnumpy()[0, 0].tolist() == expected and where.asnumpy()[0, 0].tolist() == expected
    assert where.dtype is ms.int64
    values, where = nn.MaxPool1d(2, 2, pad_mode="pad", return_indices=True)(ms.Tensor([[[1.0, 3.0, 5.0, 2.0]]]))
    assert values.asnumpy().tolist() == [[[3, 5]]] and where.asnumpy().tolist() == [[[1, 2]]]


def test_pooling_without_a_batch_and_with_other_divisors() -> None:
    x = ms.Tensor(np.arange(20, dtype=np.float32).reshape(1, 4, 5))
    assert nn.MaxPool2d(2, 2)(x).asnumpy().tolist() == [[[6, 8], [16, 18]]]
    assert nn.MaxPool1d(2)(x[0]).shape == (4, 4)
    batch = ms.ops.expand_dims(x, 0)
    mean = nn.AvgPool2d(2, 2, pad_mode="pad", padding=1)(batch).asnumpy()[0, 0]
    np.testing.assert_allclose(mean, [[0, 0.75, 1.75], [3.75, 9, 11], [3.75, 8.25, 9.25]])
    thirds = nn.AvgPool2d(2, 2, pad_mode="pad", padding=1, ceil_mode=True, divisor_override=3)(batch).asnumpy()[0, 0]
    np.testing.assert_allclose(thirds, np.array([[0, 3, 7], [15, 36, 44], [15, 33, 37]]) / 3, rtol=1e-6)
    over = nn.AvgPool2d(3, 2, pad_mode="pad", ceil_mode=True)(batch).asnumpy()[0, 0]
    np.testing.assert_allclose(over, [[6, 8], [13.5, 15.5]])


def test_instance_norm_against_numpy() -> None:
    x = wave(2, 3, 4, 5)
    layer = nn.InstanceNorm2d(3, momentum=0.25).set_train()
    mean, var = x.mean(axis=(2, 3), keepdims=True), x.var(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), (x - mean) / np.sqrt(var + 1e-5), atol=1e-5)
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), 0.25 * mean.mean(axis=0).ravel(), atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.asnumpy(), 0.75 + 0.25 * var.mean(axis=0).ravel(), atol=1e-6)
    for cell, shape in ((nn.InstanceNorm1d(3), (2, 3, 4)), (nn.InstanceNorm3d(3), (2, 3, 2, 2, 2))):
        y = cell(ms.Tensor(wave(*shape))).asnumpy()
        np.testing.assert_allclose(y.mean(axis=tuple(range(2, len(shape)))), 0, atol=1e-6)


def test_batch_norm_of_one_sample_and_of_half_precision() -> None:
    one = nn.BatchNorm1d(2).set_train()
    assert one(ms.Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[0, 0]]
    assert np.isfinite(one.moving_variance.asnumpy()).all()
    y = nn.BatchNorm2d(4)(ms.Tensor(wave(2, 4, 3, 3).astype(np.float16)))
    assert y.dtype is ms.float16


def test_batch_norm_statistics_do_not_train_and_affine_is_optional() -> None:
    assert [p.name for p in nn.BatchNorm2d(2).trainable_params()] == ["gamma", "beta"]
    assert nn.BatchNorm2d(2, affine=False).trainable_params() == []
    net = nn.SequentialCell(nn.BatchNorm2d(2), nn.BatchNorm3d(2))
    assert [p.name for p in net.get_parameters()][::4] == ["0.moving_mean", "1.bn2d.moving_mean"]
    assert net[1].bn2d.beta.name == "1.bn2d.beta"


def test_embedding_of_a_padded_row() -> None:
    table = nn.Embedding(5, 3, padding_idx=2).embedding_table.asnumpy()
    assert not table[2].any() and table[[0, 1, 3, 4]].all()


@pytest.mark.parametrize(
    "make, mode",
    [(lambda p: nn.ReflectionPad1d(p), "reflect"), (lambda p: nn.ReplicationPad1d(p), "edge")],
)
def test_padding_with_mirrors_and_edges(make: Callable[[Any], nn.Cell], mode: Any) -> None:
    x = wave(2, 3, 6)
    np.testing.assert_array_equal(make((3, 2))(ms.Tensor(x)).asnumpy(), np.pad(x, ((0, 0), (0, 0), (3, 2)), mode=mode))


def test_symmetric_padding() -> None:
    x = wave(3, 4)
    y = nn.Pad(((1, 2), (3, 0)), mode="SYMMETRIC")(ms.Tensor(x)).asnumpy()
    np.testing.assert_array_equal(y, np.pad(x, ((1, 2), (3, 0)), mode="symmetric"))


def test_selu_gradient() -> None:
    x = np.array([-2.0, -0.5, 0.5, 2.0])
    g = ms.grad(nn.SeLU())(ms.Tensor(x.astype(np.float32))).asnumpy()
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    np.testing.assert_allclose(g, np.where(x > 0, scale, scale * alpha * np.exp(x)), rtol=1e-5)


def test_transposed_convolution_in_three_dimensions_is_the_gradient_of_the_convolution() -> None:
    forward = nn.Conv3d(2, 3, 3, stride=2, pad_mode="pad", padding=1)
    backward = nn.Conv3dTranspose(3, 2, 3, stride=2, pad_mode="pad", padding=1, output_padding=1)
    backward.weight.set_data(forward.weight)
    x, y = ms.Tensor(wave(1, 2, 4, 4, 4)), ms.Tensor(wave(1, 3, 2, 2, 2))
    expected = ms.grad(lambda x: ms.ops.sum(forward(x) * y))(x).asnumpy()
    np.testing.assert_allclose(backward(y).asnumpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["softmax", "logsoftmax", "relu", "tanh", "gelu", "leakyrelu", "hswish", "prelu", "sigmoid"]
)
def test_activations_by_name(name: str) -> None:
    layer = nn.get_activation(name)
    assert layer is not None and layer(ms.Tensor(wave(2, 3))).shape == (2, 3)


def test_other_activation_arguments() -> None:
    assert nn.get_activation(None) is None
    relu = nn.ReLU()
    assert nn.Dense(2, 3, activation=relu).activation is relu
    dense = nn.Dense(2, 3, activation=ms.ops.Sin())
    x = ms.ops.ones((1, 2))
    for run in (dense, ms.jit(dense)):
        np.testing.assert_allclose(run(x).asnumpy(), np.sin((x @ dense.weight.T + dense.bias).asnumpy()), rtol=1e-5)
    with pytest.raises(KeyError, match="'foo' is not an activation; use one of softmin"):
        nn.get_activation("foo")
    with pytest.raises(TypeError, match="activation must be a name or a Cell, not type"):
        nn.Dense(3, 2, activation=nn.ReLU)


X = ms.Tensor(wave(1, 1, 4, 5))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: nn.Dense(-1, 2), ValueError, "Dense: in_channels must be at least 1, not -1"),
        (lambda: nn.Dense("a", 2), TypeError, "in_channels must be an int, not str"),
        (
            lambda: nn.Dense(3, 4, weight_init=ms.Tensor([1.0])),
            ValueError,
            r"weight_init must have shape \(4, 3\), not \(1,\)",
        ),
        (
            lambda: nn.Dense(3, 2)(X),
            ValueError,
            r"last axis of the input must have 3 elements; its shape is \(1, 1, 4, 5\)",
        ),
        (lambda: nn.Linear(3, 2)(X), ValueError, "last axis of the input must have 3 elements"),
        (
            lambda: nn.Conv2d(3, 4, 0),
            ValueError,
            "each of kernel_size must be at least 1|kernel_size must be at least 1",
        ),
        (lambda: nn.Conv2d(3, 4, (1, 2, 3)), TypeError, r"kernel_size must be an int or 2 of them, not \(1, 2, 3\)"),
        (
            lambda: nn.Conv2d(3, 4, 3, pad_mode="x"),
            ValueError,
            "pad_mode must be one of 'same', 'valid', 'pad', not 'x'",
        ),
        (lambda: nn.Conv2d(3, 4, 3, padding=1), ValueError, "padding 1 goes with pad_mode 'pad', not 'same'"),
        (lambda: nn.Conv2d(3, 4, 3, pad_mode="pad", padding=-1), ValueError, "padding must be at least 0, not -1"),
        (lambda: nn.Conv2d(3, 4, 3, pad_mode="pad", padding=(1, 2)), ValueError, "must be an int or 4 of them"),
        (lambda: nn.Conv2d(3, 4, 3, stride=0), ValueError, "stride must be at least 1, not 0"),
        (
            lambda: nn.Conv2d(3, 4, 3, group=2),
            ValueError,
            "3 input and 4 output channels do not both divide into 2 groups",
        ),
        (
            lambda: nn.Conv2d(3, 4, 3, data_format="NHWC"),
            ValueError,
            "'NHWC' is not supported; transpose the image to 'NCHW'",
        ),
        (lambda: nn.Conv2d(1, 1, 3)(X[0]), ValueError, r"input must be \(N, C, H, W\), not of shape \(1, 4, 5\)"),
        (
            lambda: nn.Conv2dTranspose(1, 1, 3, output_padding=1),
            ValueError,
            "output_padding .* goes with pad_mode 'pad'",
        ),
        (lambda: nn.BatchNorm2d(0), ValueError, "num_features must be at least 1, not 0"),
        (lambda: nn.BatchNorm2d(3, momentum=2.0), ValueError, "momentum must be at most 1, not 2.0"),
        (lambda: nn.BatchNorm2d(3)(X), ValueError, r"\(N, C, H, W\) with 3 channels, not of shape"),
        (lambda: nn.BatchNorm3d(3)(X), ValueError, r"must be \(N, C, D, H, W\)"),
        (lambda: nn.LayerNorm(3), TypeError, "normalized_shape must be a tuple or list of ints, not 3"),
        (lambda: nn.LayerNorm((3,))(X), ValueError, r"normalized_shape \(3,\) is not the shape of the axes from -1 on"),
        (lambda: nn.LayerNorm((5,), begin_norm_axis=7)(X), ValueError, "begin_norm_axis 7 is out of range"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "3 channels do not divide into 2 groups"),
        (lambda: nn.GroupNorm(2, 4)(X), ValueError, "with 4 channels, not of shape"),
        (lambda: nn.Dropout(p=1.0), ValueError, "p must be below 1, not 1.0"),
        (lambda: nn.Dropout(p=-0.1), ValueError, "p must be at least 0, not -0.1"),
        (lambda: nn.Dropout(0.0), ValueError, "keep_prob must be above 0, not 0.0"),
        (lambda: nn.MaxPool2d(-1), ValueError, "kernel_size must be at least 1, not -1"),
        (
            lambda: nn.MaxPool2d(2, 2, pad_mode="same", padding=1),
            ValueError,
            "padding 1 goes with pad_mode 'pad', not 'same'",
        ),
        (lambda: nn.MaxPool2d(2, return_indices=True), ValueError, "return_indices True goes with pad_mode 'pad'"),
        (lambda: nn.MaxPool2d(2, pad_mode="pad", padding=2), ValueError, "must be at most half of kernel_size"),
        (lambda: nn.MaxPool2d(2, data_format="NHWC"), ValueError, "transpose the input to 'NCHW'"),
        (lambda: nn.MaxPool2d(5)(X), ValueError, "does not fit"),
        (lambda: nn.AvgPool2d(2, divisor_override=0), ValueError, "divisor_override must be at least 1"),
        (lambda: nn.Embedding(3, 2, padding_idx=5), ValueError, "padding_idx 5 is out of range for a vocabulary of 3"),
        (lambda: nn.PReLU(2, ms.Tensor([1.0])), ValueError, r"w must have shape \(2,\)"),
        (lambda: nn.Softmax("a"), TypeError, "axis must be an int, not str"),
        (lambda: nn.Softmax2d()(X[0, 0]), ValueError, "must be .* not of shape"),
        (lambda: nn.CELU(0.0), ValueError, "alpha must not be 0"),
        (lambda: nn.Hardtanh(1.0, 0.0), ValueError, "max_val must be above 1.0, not 0.0"),
        (lambda: nn.Pad(((1, 1),))(X), ValueError, "1 pairs of paddings for an input of shape"),
        (lambda: nn.Pad(((1, 1),), mode="WRAP"), ValueError, "mode must be one of 'CONSTANT', 'REFLECT', 'SYMMETRIC'"),
        (lambda: nn.Pad(((0, 0),) * 3 + ((5, 0),), "REFLECT")(X), ValueError, "do not come out of axis 3 of size 5"),
        (lambda: nn.ConstantPad2d((1, 2, 3), 0.0), ValueError, "padding must be an int or 4 of them"),
        (lambda: nn.ConstantPad1d(1, "a"), TypeError, "ConstantPad1d: value must be a number, not str"),
        (lambda: nn.ReflectionPad2d(-1), ValueError, r"each of padding must be at least 0, not \(-1, -1, -1, -1\)"),
        (lambda: nn.Norm("a"), TypeError, "Norm: axis must be an int, not str"),
        (lambda: nn.PReLU(2, "a"), TypeError, "w must be a float, a list or a tensor, not str"),
        (lambda: nn.CrossEntropyLoss(3), TypeError, "CrossEntropyLoss: weight must be a Tensor or None, not int"),
        (lambda: nn.NLLLoss(3), TypeError, "NLLLoss: weight must be a Tensor or None, not int"),
        (lambda: nn.FocalLoss(3), TypeError, "FocalLoss: weight must be a Tensor or None, not int"),
        (lambda: nn.MultiClassDiceLoss(3), TypeError, "MultiClassDiceLoss: weights must be a Tensor or None, not int"),
        (lambda: nn.SmoothL1Loss()(X, X[0, 0]), ValueError, "SmoothL1Loss: logits and labels must have the same shape"),
        (lambda: nn.KLDivLoss()(X, X[0, 0]), ValueError, "KLDivLoss: logits and labels must have the same shape"),
        (lambda: nn.Unflatten(0, 3), TypeError, "unflattened_size must be a tuple or a list, not int"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
