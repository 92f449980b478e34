"""The programs and numbers of the slides: layers, activations, automatic parallelism, modes,
LeNet-5 on images.
"""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel
from mycel._src.foundation.log import logger
from tests.seeds.programs import completed, printed, run

Array = np.ndarray

rng = np.random.default_rng(11)
IMPORTS = "import numpy as np\nimport mindspore as ms\nfrom mindspore import context, nn, Parameter, Tensor\n"


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# Layers


def test_dense_layer(mode: str, tmp_path: Path) -> None:
    """As printed, where the activation is passed in the place of `has_bias`; completed with imports
    and the call.
    """
    np.random.seed(3)
    names = run(completed(printed("dense_layer"), before=IMPORTS, after="output = net(input)"), tmp_path)
    assert names.net.dense.has_bias is True and names.net.dense.activation is None
    x, w, b = (t.asnumpy().astype(np.float64) for t in (names.input, names.weight, names.bias))
    assert names.output.shape == (128, 8)
    np.testing.assert_allclose(names.output.asnumpy(), x @ w.T + b, rtol=1e-6)


def test_convolution_layer(mode: str, tmp_path: Path) -> None:
    """As printed, with `data_format` before `has_bias`; completed with imports and the call.

    An image of ones gives sums of the weights.
    """
    names = run(completed(printed("conv_layer"), before=IMPORTS, after="output = net(input)"), tmp_path)
    assert names.output.shape == (1, 64, 13, 47)
    assert names.net.conv.bias is None and names.net.conv.weight.shape == (64, 3, 4, 4)
    sums = names.net.conv.weight.asnumpy().astype(np.float64).sum((1, 2, 3))
    np.testing.assert_allclose(names.output.asnumpy(), np.broadcast_to(sums[:, None, None], (1, 64, 13, 47)), atol=1e-5)


def correlate(image: Array, kernel: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), kernel.shape)
    return np.einsum("ijkl,kl->ij", windows, kernel)


def convolution(kernel: Array, **settings: Any) -> Any:
    from mindspore import Tensor, nn

    weight = Tensor(kernel[None, None].astype(np.float32))
    return nn.Conv2d(1, 1, kernel.shape, weight_init=weight, **settings)


def test_the_weighted_sum_of_a_convolution(mode: str) -> None:
    """The slide's 3x3 + 4x4 + 8x4 + 7x1 + 8x0 + 3x2 + 4x(-1) + 2x0 + 1x3."""
    from mindspore import Tensor

    patch = np.array([[3, 4, 8], [7, 8, 3], [4, 2, 1]], np.float32)
    kernel = np.array([[3, 4, 4], [1, 0, 2], [-1, 0, 3]], np.float32)
    assert convolution(kernel, pad_mode="valid")(Tensor(patch[None, None])).tolist() == [[[[69.0]]]]


def test_mean_and_sobel_kernels(mode: str) -> None:
    from mindspore import Tensor

    image = rng.integers(0, 256, (9, 12)).astype(np.float32)
    kernels = [
        np.full((3, 3), 1 / 9),
        np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]),
        np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]]),
    ]
    for kernel in kernels:
        y = convolution(kernel, pad_mode="valid")(Tensor(image[None, None])).asnumpy()[0, 0]
        np.testing.assert_allclose(y, correlate(image, kernel), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    "size, kernel, padding, stride", [(28, 5, 0, 1), (32, 5, 2, 1), (224, 7, 3, 1), (9, 3, 1, 2), (9, 3, 0, 3)]
)
def test_the_size_of_a_convolution(size: int, kernel: int, padding: int, stride: int) -> None:
    """(input - kernel + 2 * padding) / stride + 1."""
    from mindspore import Tensor

    layer = convolution(np.ones((kernel, kernel)), pad_mode="pad", padding=padding, stride=stride)
    expected = (size - kernel + 2 * padding) // stride + 1
    assert layer(Tensor(np.ones((1, 1, size, size), np.float32))).shape == (1, 1, expected, expected)


def test_average_pooling(mode: str, tmp_path: Path) -> None:
    """Completed with the import of AvgPool2d. 4x4 become 2x2, and 224x224 become 112x112."""
    names = run(
        completed(
            printed("average_pooling"), before="from mindspore import Tensor\nfrom mindspore.nn import AvgPool2d"
        ),
        tmp_path,
    )
    small = rng.standard_normal((2, 3, 4, 4)).astype(np.float32)
    pooled = names.pool(names.Tensor(small)).asnumpy()
    np.testing.assert_allclose(pooled, small.reshape(2, 3, 2, 2, 2, 2).mean((3, 5)), rtol=1e-5, atol=1e-6)
    assert names.pool(names.Tensor(np.ones((1, 1, 224, 224), np.float32))).shape == (1, 1, 112, 112)


def test_the_numbers_of_the_full_layer() -> None:
    """z = x W^T + b for the slide's numbers.

    The slide's first row, of which it shows -96.8, 437.9 and 61.95, is right but for the last
    number, where the bias of -1.2 was left out; its second row and its softmax do not follow from
    its formulas and are compared with these.
    """
    from mindspore import Tensor, nn, ops

    x = np.array([[56, 231, 24, 2], [5, 31, 31, 12]], np.float32)
    w = np.array([[0.2, -0.5, 0.1, 2.0], [1.5, 1.3, 2.1, 0.0], [0, 0.25, 0.2, -0.3]], np.float32)
    b = np.array([1.1, 3.2, -1.2], np.float32)
    z = nn.Dense(4, 3, Tensor(w), Tensor(b))(Tensor(x))
    np.testing.assert_allclose(z.asnumpy()[0], [-96.8, 437.9, 61.95 - 1.2], rtol=1e-5)
    np.testing.assert_allclose(z.asnumpy(), x.astype(np.float64) @ w.T + b, rtol=1e-5)
    printed_z = np.array([[-96.8, 437.9, 61.95], [150.2, 55.3, 98.2]])
    p = ops.softmax(Tensor(printed_z.astype(np.float32)), axis=1).asnumpy()
    np.testing.assert_allclose(p, softmax(printed_z), rtol=1e-5, atol=1e-30)
    np.testing.assert_array_equal(p.argmax(1), [1, 0])
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-6)


ACTIVATIONS = {
    "Sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "Tanh": lambda x: (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x)),
    "ReLU": lambda x: np.maximum(0, x),
    "LeakyReLU": lambda x: np.maximum(0.2 * x, x),
    "SiLU": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, mode: str) -> None:
    from mindspore import Tensor, nn

    x = np.linspace(-8, 8, 161)
    y = getattr(nn, name)()(Tensor(x.astype(np.float32))).asnumpy()
    np.testing.assert_allclose(y, ACTIVATIONS[name](x.astype(np.float32).astype(np.float64)), rtol=2e-6, atol=1e-7)


# Modes and settings


def test_switching_the_mode_is_one_line(tmp_path: Path) -> None:
    text = (
        f"{IMPORTS}class Twice(nn.Cell):\n    def construct(self, x):\n        return x * 2 + 1\n"
        "results = []\nfor mode in (context.GRAPH_MODE, context.PYNATIVE_MODE):\n    context.set_context(mode=mode)\n"
        "    results.append((context.get_context('mode'), Twice()(Tensor([1.0, -2.0])).tolist()))\n"
    )
    assert run(text, tmp_path).results == [(0, [3.0, -3.0]), (1, [3.0, -3.0])]


def test_graph_kernels_can_be_switched_on(tmp_path: Path) -> None:
    names = run(completed(printed("graph_kernel"), before="from mindspore import context"), tmp_path)
    assert names.context.get_context("enable_graph_kernel") is True


def test_networks_round_while_they_are_trained(tmp_path: Path) -> None:
    before = "from mindspore import nn\nnet = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())"
    names = run(completed(printed("quantisation"), before=before), tmp_path)
    assert type(names.net[0]).__name__ == "RoundedLayer" and names.net[0].weights.bits == 8


# Automatic parallelism


def test_auto_parallel_on_one_device(mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The dense network, on the one device that there is; checked against NumPy in double
    precision.

    The printed shapes fit neither each other nor `Tensor`: a weight `Tensor(12288, 128)` cannot
    multiply inputs [32, 128] from the right. The smallest completion under which the text runs:
    `Tensor(12288, 128)` is a tensor of that shape (here with given values), the input has the width
    12288 that this asks for, and `DenseMutMulNet`, which `super` names, is `DenseNet`. Imports,
    `opt` and `loss` are added, and `train_step` returns its network.
    """
    weight = (rng.standard_normal((12288, 128)) / 500).astype(np.float32)
    before = (
        "import numpy as np\nimport mindspore\nfrom mindspore import context, nn, Model, Parameter\n"
        "from mindspore.context import ParallelMode\nfrom mindspore.ops import operations as P\n"
        "def Tensor(*arguments):\n    return mindspore.Tensor(embedding if len(arguments) == 2 else arguments[0])\n"
    )
    text = completed(
        printed("auto_parallel"),
        ("np.ones([32, 128])", "np.ones([32, 12288])"),
        (
            "    model = Model(net, opt, loss)",
            "    start.extend(p.asnumpy().copy() for p in net.trainable_params())\n"
            "    loss, opt = nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.5, 0.9)\n"
            "    model = Model(net, opt, loss)",
        ),
        before=before,
        after="DenseMutMulNet = DenseNet\n",
    )
    text = text.replace("    model.train(input, label)", "    model.train(input, label)\n    return net")
    start: list[Array] = []
    names = run(text, tmp_path, embedding=weight, start=start)
    with caplog.at_level(logging.WARNING, logger.name):
        logger.addHandler(caplog.handler)
        try:
            net = names.train_step()
        finally:
            logger.removeHandler(caplog.handler)
    assert "'auto_parallel' is remembered, and work runs on one device" in caplog.text
    context = names.context
    assert context.get_auto_parallel_context("parallel_mode") == names.ParallelMode.AUTO_PARALLEL
    context.reset_auto_parallel_context()
    assert context.get_auto_parallel_context("parallel_mode") == "stand_alone"

    wide = [a.astype(np.float64) for a in start]
    assert [a.shape for a in wide] == [(12288, 128), *[(768, 128), (768,)] * 3]
    exact = dense_net_step(wide, 0.5)
    for parameter, before_step, after in zip(net.trainable_params(), wide, exact):
        moved = parameter.asnumpy() - before_step
        np.testing.assert_allclose(
            moved, after - before_step, rtol=2e-3, atol=1e-3 * np.abs(after - before_step).max() + 1e-8
        )


def dense_net_step(weights: list[Array], lr: float) -> list[Array]:
    """One step of gradient descent on the mean of squares of softmax-free attention over ones [32,
    12288].
    """
    e, *layers = weights
    x = np.ones((32, 12288))
    h = x @ e
    pre = [h @ layers[2 * i].T + layers[2 * i + 1] for i in range(3)]
    q, k, v = (np.maximum(p, 0) for p in pre)
    c = q @ k.T
    s = c @ v
    ds = 2 * s / s.size
    dc, dv = ds @ v.T, c.T @ ds
    slopes = [d * (p > 0) for d, p in zip((dc @ k, dc.T @ q, dv), pre)]
    dh = sum(d @ layers[2 * i] for i, d in enumerate(slopes))
    grads = [x.T @ dh, *[g for d in slopes for g in (d.T @ h, d.sum(0))]]
    return [w - lr * g for w, g in zip(weights, grads)]


# LeNet-5


LENET = completed(printed("lenet5"), ("def __init__(self):", "def __init__(self, class_num=10):"))


def lenet(weights: list[Array], x: Array) -> Array:
    """The network in double precision."""
    conv1, conv2, w1, b1, w2, b2, w3, b3 = weights

    def convolved(x: Array, w: Array) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)

    def pooled(x: Array) -> Array:
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))

    h = pooled(np.maximum(convolved(x.astype(np.float64), conv1), 0))
    h = pooled(np.maximum(convolved(h, conv2), 0)).reshape(len(x), -1)
    h = np.maximum(h @ w1.T + b1, 0)
    return np.maximum(h @ w2.T + b2, 0) @ w3.T + b3


def weights_of(net: Any) -> list[Array]:
    return [p.asnumpy().astype(np.float64) for p in net.trainable_params()]


def cross_entropy(logits: Array, labels: Array) -> float:
    p = softmax(logits)
    return float(-np.log(p[np.arange(len(p)), labels]).mean())


def test_lenet5(mode: str, tmp_path: Path) -> None:
    """Joined from its blocks.

    The initial values have the deviation 0.02; the bounds of TruncatedNormal, -2 and 2, are far
    outside.
    """
    names = run(f"{LENET}\nfrom mindspore import Tensor\nnet = LeNet5()", tmp_path)
    assert [(p.name, p.shape) for p in names.net.trainable_params()] == [
        ("conv1.weight", (6, 1, 5, 5)),
        ("conv2.weight", (16, 6, 5, 5)),
        ("fc1.weight", (120, 400)),
        ("fc1.bias", (120,)),
        ("fc2.weight", (84, 120)),
        ("fc2.bias", (84,)),
        ("fc3.weight", (10, 84)),
        ("fc3.bias", (10,)),
    ]
    first = names.net.fc1.weight.asnumpy()
    assert first.std() == pytest.approx(0.02, rel=0.02)
    x = rng.random((3, 1, 32, 32)).astype(np.float32)
    for parameter in names.net.trainable_params():
        parameter.set_data(names.Tensor(3 * parameter.asnumpy()))
    y = names.net(names.Tensor(x)).asnumpy()
    np.testing.assert_allclose(y, lenet(weights_of(names.net), x), rtol=1e-4, atol=1e-5)


def pipeline(folder: Path, name: str = "create_dataset") -> Any:
    """The program of the pipeline, completed.

    It is the body of a function, whose `def` is added with its arguments; a slide's note at the end
    of an import is a comment; the comma between `num_parallel_workers=8` and `shuffle=True` is
    added.
    """
    text = printed("mnist_pipeline").replace(" 对数据执行shuffle操作", "")
    imports, body = text.split("\n\n", 1)
    body = completed(body, ("num_parallel_workers=8 shuffle", "num_parallel_workers=8, shuffle"))
    inner = "\n".join(f"    {line}" for line in body.splitlines())
    head = f"def {name}(dataset_path, do_train, batch_size, epoch_size):"
    return run(f"from mindspore.common import dtype as mstype\n{imports}\n{head}\n{inner}\n", folder)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """IDX files of 89 training images: what MnistDataset reads."""
    from mycel.dataset.digits import write_idx

    folder = tmp_path_factory.mktemp("digits")
    write_idx(folder / "all", train_fraction=0.05)
    (folder / "train").mkdir()
    for kind in ("images-idx3", "labels-idx1"):
        (folder / "train" / f"train-{kind}-ubyte").write_bytes((folder / "all" / f"train-{kind}-ubyte").read_bytes())
    return folder / "train"


def idx(path: Path) -> Array:
    raw = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    rank = raw[3]
    sizes = np.frombuffer(raw, ">u4", rank, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(sizes)


def resized(images: Array, size: int) -> Array:
    """Bilinear interpolation with half-pixel centres, in double precision."""
    count = images.shape[1]
    place = np.clip((np.arange(size) + 0.5) * count / size - 0.5, 0, count - 1)
    low = np.minimum(place.astype(int), count - 2)
    weights = np.zeros((size, count))
    weights[np.arange(size), low], weights[np.arange(size), low + 1] = 1 - (place - low), place - low
    return np.einsum("ai,nij,bj->nab", weights, images.astype(np.float64), weights)


def matched(rows: Array, expected: Array) -> Array:
    """Which of the expected images each row is."""
    return np.abs(rows[:, None] - expected[None]).max((2, 3)).argmin(1)


@pytest.mark.parametrize("train", [False, True])
def test_mnist_pipeline(train: bool, digits: Path, tmp_path: Path) -> None:
    import mindspore.dataset

    mindspore.dataset.config.set_seed(4)
    images, labels = idx(digits / "train-images-idx3-ubyte"), idx(digits / "train-labels-idx1-ubyte")
    ds = pipeline(tmp_path).create_dataset(str(digits), train, 8, 2)
    per_epoch = len(images) // 8
    assert (ds.get_dataset_size(), ds.get_batch_size(), ds.get_repeat_count()) == (2 * per_epoch, 8, 2)
    batches = list(ds.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert len(batches) == 2 * per_epoch
    assert {b["image"].shape for b in batches} == {(8, 1, 32, 32)}
    assert {(b["image"].dtype.name, b["label"].dtype.name) for b in batches} == {("float32", "int32")}
    plain = resized(images, 32) / 255
    both = np.concatenate([plain, plain[:, :, ::-1]])
    orders = []
    for epoch in range(2):
        part = batches[epoch * per_epoch : (epoch + 1) * per_epoch]
        rows, classes = np.concatenate([b["image"][:, 0] for b in part]), np.concatenate([b["label"] for b in part])
        which = matched(rows, both if train else plain)
        assert np.abs(rows - (both if train else plain)[which]).max() < 1.01 / 255
        flipped = (which >= len(plain)).mean()
        assert 0.2 < flipped < 0.8 if train else flipped == 0
        which = which % len(plain)
        assert len(set(which.tolist())) == len(rows)
        np.testing.assert_array_equal(classes, labels[which])
        orders.append(which.tolist())
    assert orders[0] != sorted(orders[0]) and orders[0] != orders[1]


def blocks() -> list[str]:
    """The lines of the slide on Model, in the order of their use: the model is made of what is
    printed after it.
    """
    model, *others, train, evaluate = printed("model").strip().split("\n\n")
    return [*others, model, train, evaluate]


def test_lenet5_trained_and_judged_by_model(
    mode: str, digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The class, the pipeline and Model together.

    Completed with imports, `class_num`, `loss_scale_num`, `epoch`, `dataset` and `Checkpoint_cb`;
    the weights are three times their initial values, from where two epochs change something.
    """
    import mindspore.dataset

    mindspore.dataset.config.set_seed(4)
    dataset = pipeline(tmp_path).create_dataset(str(digits), False, 16, 1)
    net_line, *middle, train, evaluate = blocks()
    text = (
        f"{LENET}\nimport mindspore\nfrom mindspore import Model, Tensor\n"
        "from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint\n"
        "class_num, loss_scale_num, epoch = 10, 1.0, 2\n"
        "Checkpoint_cb = ModelCheckpoint('lenet', str(folder), "
        "CheckpointConfig(save_checkpoint_steps=dataset.get_dataset_size()))\n"
        f"{net_line}\n"
        "for p in net.trainable_params():\n    p.set_data(Tensor(3 * p.asnumpy()))\n"
        "start = [p.asnumpy().copy() for p in net.trainable_params()]\n" + "\n".join([*middle, train, evaluate])
    )
    names = run(text, tmp_path, folder=tmp_path / "saved", dataset=dataset)
    steps = dataset.get_dataset_size()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch:")]
    losses = [float(line.rsplit(" ", 1)[1]) for line in lines]
    assert len(losses) == 2 * steps
    assert lines[0].startswith("epoch: 1 step: 1, loss is ")

    images, labels = idx(digits / "train-images-idx3-ubyte"), idx(digits / "train-labels-idx1-ubyte")
    x = resized(images, 32)[:, None] / 255
    start = [w.astype(np.float64) for w in names.start]
    assert losses[0] == pytest.approx(cross_entropy(lenet(start, x), labels), rel=0.05)
    assert cross_entropy(lenet(weights_of(names.net), x), labels) < cross_entropy(lenet(start, x), labels)
    # Only whole batches are judged, of rows in an order that is drawn anew.
    logits = lenet(weights_of(names.net), x)
    right = (logits.argmax(1) == labels).sum()
    judged = 16 * steps
    assert names.Acc["acc"] * judged == pytest.approx(round(names.Acc["acc"] * judged), abs=1e-6)
    assert right - (len(labels) - judged) <= round(names.Acc["acc"] * judged) <= right

    saved = sorted((tmp_path / "saved").glob("*.ckpt"))
    assert [p.name for p in saved] == [f"lenet-1_{steps}.ckpt", f"lenet-2_{steps}.ckpt"]
    loaded = names.mindspore.load_checkpoint(str(saved[-1]))
    for parameter in names.net.trainable_params():
        np.testing.assert_array_equal(loaded[parameter.name].asnumpy(), parameter.asnumpy())


def test_a_step_of_momentum_on_lenet5_follows_the_slope(mode: str, digits: Path, tmp_path: Path) -> None:
    """`model.train(epoch_size, dataset=ds)` for one batch: w' = w - lr * (gradient + weight_decay *
    w), the gradient by differences.

    The loss as printed gives one value for each image, and the gradient is that of their sum.
    """
    ds = pipeline(tmp_path).create_dataset(str(digits), False, 64, 1)
    images, labels = next(iter(ds.create_tuple_iterator(num_epochs=1, output_numpy=True)))
    _, loss, _, optimizer, metrics, model, *_ = blocks()
    text = (
        f"{LENET}\nimport mindspore\nfrom mindspore import Model, Tensor\nloss_scale_num, epoch_size = 1.0, 1\nnet = "
        "LeNet5()\n"
        "for p in net.trainable_params():\n    p.set_data(Tensor(3 * p.asnumpy()))\n"
        "start = [p.asnumpy().copy() for p in net.trainable_params()]\n"
        + "\n".join([loss, optimizer, metrics, model])
        + "\nmodel.train(epoch_size, dataset=ds)"
    )
    one = mycel.dataset.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(64)
    names = run(text, tmp_path, ds=one)
    start = [w.astype(np.float64) for w in names.start]
    after = weights_of(names.net)
    for i, (w, moved) in enumerate(zip(start, after)):
        gradient = (w - moved) / 0.002 - 1e-4 * w
        direction = rng.standard_normal(w.shape) + np.sign(gradient)
        ends = []
        for sign in (1, -1):
            probe = list(start)
            probe[i] = w + sign * 1e-7 * direction
            ends.append(64 * cross_entropy(lenet(probe, images), labels))
        slope = (ends[0] - ends[1]) / 2e-7
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=2e-3, abs=2e-3)
