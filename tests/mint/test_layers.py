"""The layers of `mint.nn`: each against its function, with weights and statistics against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel.mint import nn
from mycel.mint.nn import functional

random = np.random.default_rng(5)
X, SIGNAL, IMAGE, VOLUME = (
    random.normal(size=s).astype(np.float32) for s in ((3, 4), (2, 4, 6), (2, 4, 5, 6), (1, 4, 3, 4, 4))
)
UNIT = (np.abs(X) / (1 + np.abs(X))).astype(np.float32)
LABELS = np.array([0, 2, 3], np.int32)

# The layer, its arguments, its inputs, and the function of inputs that it is.
LAYERS: list[tuple[str, dict[str, Any], tuple[Any, ...], Any]] = [
    ("AdaptiveAvgPool1d", {"output_size": 4}, (SIGNAL,), lambda x: functional.adaptive_avg_pool1d(x, 4)),
    ("AdaptiveAvgPool2d", {"output_size": (2, 4)}, (IMAGE,), lambda x: functional.adaptive_avg_pool2d(x, (2, 4))),
    ("AdaptiveAvgPool3d", {"output_size": 2}, (VOLUME,), lambda x: functional.adaptive_avg_pool3d(x, 2)),
    (
        "AdaptiveMaxPool1d",
        {"output_size": 4, "return_indices": True},
        (SIGNAL,),
        lambda x: functional.adaptive_max_pool1d(x, 4, True),
    ),
    ("AdaptiveMaxPool2d", {"output_size": (2, 4)}, (IMAGE,), lambda x: functional.adaptive_max_pool2d(x, (2, 4))),
    (
        "AvgPool1d",
        {"kernel_size": 2, "ceil_mode": True},
        (SIGNAL,),
        lambda x: functional.avg_pool1d(x, 2, ceil_mode=True),
    ),
    (
        "AvgPool2d",
        {"kernel_size": 2, "divisor_override": 3},
        (IMAGE,),
        lambda x: functional.avg_pool2d(x, 2, divisor_override=3),
    ),
    ("AvgPool3d", {"kernel_size": 2, "stride": 1}, (VOLUME,), lambda x: functional.avg_pool3d(x, 2, 1)),
    (
        "BCELoss",
        {"reduction": "sum"},
        (UNIT, UNIT),
        lambda x, y: functional.binary_cross_entropy(x, y, reduction="sum"),
    ),
    ("BCEWithLogitsLoss", {}, (X, UNIT), functional.binary_cross_entropy_with_logits),
    ("ConstantPad1d", {"padding": 1, "value": 2.0}, (SIGNAL,), lambda x: functional.pad(x, (1, 1), value=2.0)),
    (
        "ConstantPad2d",
        {"padding": (1, 0, 2, 1), "value": 2.0},
        (IMAGE,),
        lambda x: functional.pad(x, (1, 0, 2, 1), value=2.0),
    ),
    ("ConstantPad3d", {"padding": 1, "value": 2.0}, (VOLUME,), lambda x: functional.pad(x, (1,) * 6, value=2.0)),
    (
        "CosineEmbeddingLoss",
        {"margin": 0.2},
        (X, UNIT, np.float32([1, -1, 1])),
        lambda x, y, t: functional.cosine_embedding_loss(x, y, t, 0.2),
    ),
    (
        "CrossEntropyLoss",
        {"label_smoothing": 0.1},
        (X, LABELS),
        lambda x, y: functional.cross_entropy(x, y, label_smoothing=0.1),
    ),
    ("ELU", {"alpha": 0.5}, (X,), lambda x: functional.elu(x, 0.5)),
    ("Flatten", {"start_dim": 2}, (IMAGE,), lambda x: functional.flatten(x, 2)),
    (
        "Fold",
        {"output_size": (3, 3), "kernel_size": 2, "stride": 1},
        (SIGNAL[:, :, :4],),
        lambda x: functional.fold(x, (3, 3), 2),
    ),
    ("GELU", {"approximate": "tanh"}, (X,), lambda x: functional.gelu(x, approximate="tanh")),
    ("GLU", {"dim": 1}, (IMAGE,), lambda x: functional.glu(x, 1)),
    ("Hardshrink", {"lambd": 1.0}, (X,), lambda x: functional.hardshrink(x, 1.0)),
    ("Hardsigmoid", {}, (X,), functional.hardsigmoid),
    ("Hardswish", {}, (X,), functional.hardswish),
    ("Hardtanh", {"max_val": 0.5}, (X,), lambda x: functional.hardtanh(x, -1.0, 0.5)),
    ("Identity", {}, (X,), lambda x: x),
    ("KLDivLoss", {"log_target": True}, (X, UNIT), lambda x, y: functional.kl_div(x, y, log_target=True)),
    ("L1Loss", {}, (X, UNIT), functional.l1_loss),
    ("LogSigmoid", {}, (X,), functional.logsigmoid),
    ("LogSoftmax", {"dim": 0}, (X,), lambda x: functional.log_softmax(x, 0)),
    ("MSELoss", {"reduction": "sum"}, (X, UNIT), lambda x, y: functional.mse_loss(x, y, "sum")),
    (
        "MaxPool2d",
        {"kernel_size": 2, "return_indices": True},
        (IMAGE,),
        lambda x: functional.max_pool2d(x, 2, return_indices=True),
    ),
    (
        "MaxUnpool2d",
        {"kernel_size": 2},
        (X[None, None, :1, :2], np.int64([[[[1, 2]]]])),
        lambda x, i: functional.max_unpool2d(x, i, 2),
    ),
    ("Mish", {}, (X,), functional.mish),
    ("NLLLoss", {"ignore_index": 2}, (X, LABELS), lambda x, y: functional.nll_loss(x, y, ignore_index=2)),
    ("PixelShuffle", {"upscale_factor": 2}, (IMAGE,), lambda x: functional.pixel_shuffle(x, 2)),
    ("ReLU", {}, (X,), functional.relu),
    ("ReLU6", {}, (X * 5,), functional.relu6),
    ("ReflectionPad1d", {"padding": (2, 1)}, (SIGNAL,), lambda x: functional.pad(x, (2, 1), "reflect")),
    ("ReflectionPad2d", {"padding": 2}, (IMAGE,), lambda x: functional.pad(x, (2,) * 4, "reflect")),
    ("ReflectionPad3d", {"padding": 1}, (VOLUME,), lambda x: functional.pad(x, (1,) * 6, "reflect")),
    ("ReplicationPad1d", {"padding": (2, 1)}, (SIGNAL,), lambda x: functional.pad(x, (2, 1), "replicate")),
    ("ReplicationPad2d", {"padding": 2}, (IMAGE,), lambda x: functional.pad(x, (2,) * 4, "replicate")),
    ("ReplicationPad3d", {"padding": 1}, (VOLUME,), lambda x: functional.pad(x, (1,) * 6, "replicate")),
    ("SELU", {}, (X,), functional.selu),
    ("SiLU", {}, (X,), functional.silu),
    ("Sigmoid", {}, (X,), functional.sigmoid),
    ("SmoothL1Loss", {"beta": 0.5}, (X, UNIT), lambda x, y: functional.smooth_l1_loss(x, y, beta=0.5)),
    ("SoftMarginLoss", {}, (X, np.sign(X)), functional.soft_margin_loss),
    ("Softmax", {"dim": 0}, (X,), lambda x: functional.softmax(x, 0)),
    ("Softshrink", {"lambd": 1.0}, (X,), lambda x: functional.softshrink(x, 1.0)),
    ("Tanh", {}, (X,), functional.tanh),
    ("Threshold", {"threshold": 0.5, "value": 3.0}, (X,), lambda x: functional.threshold(x, 0.5, 3.0)),
    ("Unfold", {"kernel_size": 2, "stride": 2}, (IMAGE,), lambda x: functional.unfold(x, 2, stride=2)),
    (
        "Upsample",
        {"scale_factor": 2.0, "mode": "bilinear"},
        (IMAGE,),
        lambda x: functional.interpolate(x, None, 2.0, "bilinear"),
    ),
    (
        "UpsamplingBilinear2d",
        {"size": (7, 9)},
        (IMAGE,),
        lambda x: functional.interpolate(x, (7, 9), None, "bilinear", True),
    ),
    ("UpsamplingNearest2d", {"scale_factor": 2}, (IMAGE,), lambda x: functional.interpolate(x, None, 2)),
    ("ZeroPad1d", {"padding": (1, 2)}, (SIGNAL,), lambda x: functional.pad(x, (1, 2))),
    ("ZeroPad2d", {"padding": 1}, (IMAGE,), lambda x: functional.pad(x, (1,) * 4)),
    ("ZeroPad3d", {"padding": 1}, (VOLUME,), lambda x: functional.pad(x, (1,) * 6)),
]
WEIGHTED = (
    "BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose2d Embedding GroupNorm LayerNorm "
    "Linear PReLU SyncBatchNorm"
)
CHECKED = {f"mint.nn.{name}": "PyTorch" for name, *_ in LAYERS}
# Layers of `nn` with the same arguments, which are checked here alone.
ALIKE = ("AdaptiveAvgPool3d", "ConstantPad3d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad3d")
CHECKED.update({f"nn.{name}": "PyTorch" for name in ALIKE})
CHECKED.update({f"mint.nn.{name}": "NumPy" for name in (*WEIGHTED.split(), "Dropout", "Dropout2d", "Cell")})


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)):
        assert a.shape == b.shape and a.dtype is b.dtype
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "options", "inputs", "function"), LAYERS, ids=[row[0] for row in LAYERS])
def test_layers(name: str, options: dict[str, Any], inputs: tuple[Any, ...], function: Any) -> None:
    layer = getattr(nn, name)(**options)
    tensors = [ms.Tensor(x) for x in inputs]
    same(layer(*tensors), function(*tensors))
    if name in ALIKE:
        same(getattr(ms.nn, name)(**options)(*tensors), function(*tensors))
    assert repr(layer).startswith(name) and not layer.trainable_params()


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolutions(mode: str) -> None:
    for rank, x, kind, function in (
        (1, SIGNAL, nn.Conv1d, functional.conv1d),
        (2, IMAGE, nn.Conv2d, functional.conv2d),
        (3, VOLUME, nn.Conv3d, functional.conv3d),
    ):
        padded = x if mode == "zeros" else functional.pad(ms.Tensor(x), (1,) * (2 * rank), mode).asnumpy()
        layer = kind(4, 6, 2, padding=1, groups=2, padding_mode=mode)
        wanted = function(ms.Tensor(padded), layer.weight, layer.bias, padding=1 if mode == "zeros" else 0, groups=2)
        same(layer(ms.Tensor(x)), wanted)
        assert layer.weight.shape == (6, 2, *(2,) * rank) and [p.name for p in layer.trainable_params()] == [
            "weight",
            "bias",
        ]
        for parameter in layer.trainable_params():
            assert 0 < np.abs(parameter.asnumpy()).max() <= 1 / np.sqrt(2 * 2**rank)
        alike = kind(4, 2, 2, padding="same", bias=False, padding_mode=mode)
        assert alike(ms.Tensor(x)).shape == (x.shape[0], 2, *x.shape[2:])
    layer = nn.ConvTranspose2d(4, 6, (2, 3), stride=2, padding=1, output_padding=1, groups=2)
    same(layer(ms.Tensor(IMAGE)), functional.conv_transpose2d(ms.Tensor(IMAGE), layer.weight, layer.bias, 2, 1, 1, 2))


@pytest.mark.parametrize(
    ("kind", "x"), [(nn.BatchNorm1d, SIGNAL), (nn.BatchNorm2d, IMAGE), (nn.BatchNorm3d, VOLUME), (nn.SyncBatchNorm, X)]
)
def test_batch_normalisation(kind: Any, x: Any) -> None:
    layer = kind(4, momentum=0.3)
    layer.weight.set_data(np.float32([1, 2, 3, 4]))
    axes = tuple(a for a in range(x.ndim) if a != 1)
    shape = (1, 4, *(1,) * (x.ndim - 2))
    same(layer(ms.Tensor(x)), ms.Tensor(x / np.sqrt(np.float32(1 + 1e-5)) * np.float32([1, 2, 3, 4]).reshape(shape)))
    layer.set_train()
    mean, spread = x.mean(axes), x.var(axes)
    wanted = (x - mean.reshape(shape)) / np.sqrt(spread.reshape(shape) + 1e-5) * np.arange(1, 5).reshape(shape)
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    count = x.size // 4
    np.testing.assert_allclose(layer.running_mean.asnumpy(), 0.3 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.asnumpy(), 0.7 + 0.3 * spread * count / (count - 1), rtol=1e-4)
    assert layer.num_batches_tracked.item() == 1
    plain = kind(4, affine=False, track_running_stats=False)
    assert not list(plain.get_parameters())
    np.testing.assert_allclose(
        plain(ms.Tensor(x)).asnumpy() * np.arange(1, 5).reshape(shape), wanted, rtol=1e-4, atol=1e-5
    )


def test_other_weights() -> None:
    x = ms.Tensor(SIGNAL)
    group = nn.GroupNorm(2, 4)
    group.weight.set_data(np.float32([1, 2, 3, 4]))
    parts = SIGNAL.reshape(2, 2, -1)
    wanted = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    wanted = wanted.reshape(SIGNAL.shape) * np.arange(1, 5).reshape(1, 4, 1)
    np.testing.assert_allclose(group(x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    layer = nn.LayerNorm((4, 6))
    layer.bias.set_data(np.ones((4, 6), np.float32))
    wanted = (SIGNAL - SIGNAL.mean((1, 2), keepdims=True)) / np.sqrt(SIGNAL.var((1, 2), keepdims=True) + 1e-5) + 1
    np.testing.assert_allclose(layer(x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    assert nn.LayerNorm(6, bias=False).bias is None and nn.LayerNorm(6, elementwise_affine=False).weight is None
    linear = nn.Linear(6, 3)
    wanted = SIGNAL @ linear.weight.asnumpy().T + linear.bias.asnumpy()
    np.testing.assert_allclose(linear(x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    prelu = nn.PReLU(4, 0.5)
    np.testing.assert_allclose(prelu(x).asnumpy(), np.where(SIGNAL > 0, SIGNAL, 0.5 * SIGNAL))
    ms.set_seed(4)
    table = nn.Embedding(200, 20, padding_idx=-1)
    rows = table.weight.asnumpy()
    assert abs(rows[:-1].std() - 1) < 0.05 and not rows[-1].any() and table.weight.requires_grad
    np.testing.assert_array_equal(table(ms.Tensor([[3, 199]])).asnumpy(), rows[[[3, 199]]])
    fixed = nn.Embedding(3, 4, _weight=ms.Tensor(X), _freeze=True)
    np.testing.assert_array_equal(fixed(ms.Tensor([2])).asnumpy(), X[[2]])
    assert not fixed.trainable_params()


def test_dropout_follows_the_phase() -> None:
    ms.set_seed(1)
    x = ms.ops.ones((8, 16, 4, 4))
    for layer in (nn.Dropout(0.5), nn.Dropout2d(0.5)):
        np.testing.assert_array_equal(layer(x).asnumpy(), x.asnumpy())
        kept = layer.set_train()(x).asnumpy()
        assert set(np.unique(kept)) == {0.0, 2.0} and 0.35 < (kept == 0).mean() < 0.65


def test_a_network_trains() -> None:
    ms.set_seed(2)
    net = ms.nn.SequentialCell(
        nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(120, 2)
    )
    net.set_train()
    assert isinstance(net, nn.Cell)
    optimizer = ms.mint.optim.Adam(net.trainable_params(), lr=0.01)
    step = ms.value_and_grad(lambda x, y: functional.cross_entropy(net(x), y), None, optimizer.parameters)
    losses = []
    for _ in range(6):
        loss, gradients = step(ms.Tensor(IMAGE), ms.Tensor([0, 1]))
        optimizer(gradients)
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_errors() -> None:
    for error, match, make in (
        (ValueError, "groups", lambda: nn.Conv2d(3, 4, 2, groups=2)),
        (ValueError, "same", lambda: nn.Conv2d(3, 4, 2, stride=2, padding="same")),
        (ValueError, "padding_mode", lambda: nn.ConvTranspose2d(3, 4, 2, padding_mode="reflect")),
        (ValueError, "padding", lambda: nn.ConvTranspose2d(3, 4, 2, padding="same")),
        (TypeError, "kernel_size", lambda: nn.AvgPool2d()),
        (ValueError, "dimensions", lambda: nn.BatchNorm2d(3)(ms.Tensor(X))),
        (ValueError, "process_group", lambda: nn.SyncBatchNorm(3, process_group="all")),
        (ValueError, "num_groups", lambda: nn.GroupNorm(3, 4)),
        (ValueError, "padding_idx", lambda: nn.Embedding(3, 2, 3)),
        (ValueError, "sparse", lambda: nn.Embedding(3, 2, sparse=True)),
        (ValueError, "ZeroPad1d", lambda: nn.ZeroPad1d((1, 2, 3))(ms.Tensor(SIGNAL))),
    ):
        with pytest.raises(error, match=match):
            make()
