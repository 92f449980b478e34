"""Write the samples in `tests/data/mindir`: networks exported by the real MindSpore with the values
that it computes. Run it with an environment that has MindSpore, and the folder to write to.
"""

import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

ms.set_seed(1)
np.random.seed(1)


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 3, pad_mode="valid")
        self.conv2 = nn.Conv2d(3, 4, 3, pad_mode="same", has_bias=True)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2 = nn.Dense(36, 12), nn.Dense(12, 5)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class Block(nn.Cell):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, pad_mode="pad", padding=1, group=2)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = nn.SequentialCell(nn.Conv2d(channels, out, 1, stride), nn.BatchNorm2d(out))

    def construct(self, x):
        y = ops.relu(self.bn1(self.conv1(x)))
        return ops.relu(self.bn2(self.conv2(y)) + self.down(x))


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, 1)
        self.bn = nn.BatchNorm2d(4)
        self.block1, self.block2 = Block(4, 4, 1), Block(4, 6, 2)
        self.pool, self.head = nn.MaxPool2d(3, 2, pad_mode="same"), nn.Dense(6, 5)
        for _, p in self.parameters_and_names():
            if "moving" in p.name or "gamma" in p.name or "beta" in p.name:
                p.set_data(Tensor(np.random.uniform(0.5, 1.5, p.shape).astype(np.float32)))

    def construct(self, x):
        x = self.pool(ops.relu(self.bn(self.stem(x))))
        x = self.block2(self.block1(x))
        return ops.softmax(self.head(ops.mean(x, (2, 3))), -1)


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Dense(8, 2)

    def construct(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return self.head(y), h, c


class Open(nn.Cell):
    """A recurrent layer over any number of rows, whose first state is made as large as they are."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)

    def construct(self, x):
        return self.gru(x)[0]


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def construct(self, x, mask):
        return self.encoder(x, src_key_padding_mask=mask)


class Upsampler(nn.Cell):
    def __init__(self):
        super().__init__()
        self.up1 = nn.Conv2dTranspose(2, 4, 3, stride=2, pad_mode="same", has_bias=True)
        self.up2 = nn.Conv2dTranspose(4, 2, 2, stride=2, pad_mode="pad", padding=1)
        self.norm = nn.GroupNorm(2, 4)

    def construct(self, x):
        return ops.sigmoid(self.up2(ops.leaky_relu(self.norm(self.up1(x)), 0.1)))


class Loop(nn.Cell):
    """A loop with a branch, both decided by tensors."""

    def __init__(self):
        super().__init__()
        self.scale = ms.Parameter(Tensor([0.5, 1.5, -0.5], ms.float32), name="scale")

    def construct(self, x, n):
        i, total = Tensor(0, ms.int32), x
        while i < n:
            if total.sum() > 10.0:
                total = total * self.scale
            else:
                total = total * 2.0 + x
            i = i + 1
        return total, i


class Dynamic(nn.Cell):
    """Any number of rows."""

    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Dense(6, 8), nn.LayerNorm((8,)), nn.Dense(8, 3)

    def construct(self, x):
        y = self.norm(ops.tanh(self.fc1(x.reshape((x.shape[0], -1)))))
        return ops.log_softmax(self.fc2(y), -1), ops.reduce_max(y, 0)


class Step(nn.Cell):
    """A training step: a loss, its gradients, and momentum."""

    def __init__(self):
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 3))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = nn.Momentum(self.net.trainable_params(), 0.1, 0.9, weight_decay=0.01)
        self.grad = ops.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x, y):
        return self.loss(self.net(x), y)

    def construct(self, x, y):
        loss, grads = self.grad(x, y)
        return ops.depend(loss, self.optimizer(grads))


class ConvStep(Step):
    """A training step with convolution, normalisation and Adam."""

    def __init__(self):
        nn.Cell.__init__(self)
        self.net = nn.SequentialCell(
            nn.Conv2d(1, 3, 3, has_bias=True), nn.BatchNorm2d(3), nn.GELU(), nn.MaxPool2d(2, 2), nn.Flatten(),
            nn.Dense(27, 4), nn.Sigmoid(),
        )  # fmt: skip
        self.net.set_train()
        self.loss = nn.MSELoss()
        self.optimizer = nn.Adam(self.net.trainable_params(), 0.01)
        self.grad = ops.value_and_grad(self.forward, None, self.optimizer.parameters)


class Layers(nn.Cell):
    """A padded convolution, a recurrent layer, and a normalisation of what was reshaped."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 2, pad_mode="pad", padding=1)
        self.lstm, self.norm, self.dense = nn.LSTM(3, 2, batch_first=True), nn.BatchNorm1d(8), nn.Dense(8, 4)

    def construct(self, x):
        x = ops.transpose(self.conv(x).reshape((x.shape[0], 3, 4)), (0, 2, 1))
        return self.dense(self.norm(self.lstm(x)[0].reshape((x.shape[0], -1))))


class LayersStep(Step):
    def __init__(self):
        nn.Cell.__init__(self)
        self.net = Layers().set_train()
        self.loss = nn.MSELoss()
        self.optimizer = nn.SGD(self.net.trainable_params(), 0.1)
        self.grad = ops.value_and_grad(self.forward, None, self.optimizer.parameters)


class Embeddings(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 6), nn.Embedding(7, 6)
        self.norm = nn.LayerNorm((6,), epsilon=1e-5)

    def construct(self, ids):
        x = self.words(ids) + self.places(ops.arange(ids.shape[1]))
        x = self.norm(x)
        scores = ops.matmul(x, ops.transpose(self.words.embedding_table, (1, 0)))
        return ops.topk(scores, 3)


class Mix(nn.Cell):
    """Slices, joins, sorts, masks and numbers."""

    def construct(self, x, y):
        a = ops.concat((x[:, 1:], y[:, ::2]), 1)
        b = ops.where(a > 0.2, a, ops.zeros_like(a) - 1.0)
        c = ops.cumsum(b, 1).astype(ms.float16).astype(ms.float32)
        s, i = ops.sort(c, axis=1, descending=True)
        d = ops.stack((s, ops.gather_elements(c, 1, i)), 0)
        e = ops.one_hot(i[:, :1].squeeze(1), 4).astype(ms.float32)
        f = ops.einsum("ij,kj->ik", x, y) if False else ops.matmul(x, y.T)
        return ops.erf(d), ops.clamp(f, -0.5, 0.5), e, ops.tile(ops.norm(x, dim=1), (2,)), x.argmax(1)


class Break(nn.Cell):
    def construct(self, x, n):
        i, t = Tensor(0, ms.int32), x
        while i < n:
            t = t * 1.5
            if t.sum() > 20:
                break
            i = i + 1
        return t, i


class Continue(nn.Cell):
    def construct(self, x, n):
        i, t = Tensor(0, ms.int32), x
        while i < n:
            i = i + 1
            if i % 2 == 0:
                continue
            t = t + x
        return t, i


class Nested(nn.Cell):
    def construct(self, x, n):
        i, t = Tensor(0, ms.int32), x
        while i < n:
            j = Tensor(0, ms.int32)
            while j < i:
                t = t + x * 0.1
                j = j + 1
            i = i + 1
        return t * 2, i


class Early(nn.Cell):
    def construct(self, x, n):
        if n > 3:
            return x * 2
        if x.sum() > 0:
            return x - 1
        return x + 5


class Ret(nn.Cell):
    def construct(self, x, n):
        i, t = Tensor(0, ms.int32), x
        while i < n:
            if t.sum() > 9:
                return t * 100
            t = t * 2
            i = i + 1
        return t


def f(*shape):
    return Tensor(np.random.uniform(-1, 1, shape).astype(np.float32))


CASES = {
    "lenet": lambda: (LeNet(), [f(2, 1, 14, 14)]),
    "resnet": lambda: (ResNet(), [f(2, 3, 12, 12)]),
    "lstm": lambda: (Recurrent(), [f(2, 5, 3), f(4, 2, 4), f(4, 2, 4)]),
    "gru_open": lambda: (Open(), [f(2, 5, 3)], [Tensor(shape=[None, 5, 3], dtype=ms.float32)]),
    "transformer": lambda: (Encoder(), [f(2, 5, 8), Tensor(np.array([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]], bool))]),
    "upsampler": lambda: (Upsampler(), [f(2, 2, 3, 4)]),
    "loop": lambda: (Loop(), [f(3), Tensor(9, ms.int32)]),
    "dynamic": lambda: (Dynamic(), [f(4, 2, 3)], [Tensor(shape=[None, 2, 3], dtype=ms.float32)]),
    "step": lambda: (Step(), [f(5, 4), Tensor([0, 2, 1, 1, 0], ms.int32)]),
    "conv_step": lambda: (ConvStep(), [f(5, 1, 6, 6), f(5, 4)]),
    "layers_step": lambda: (LayersStep(), [f(5, 1, 1, 1), f(5, 4)]),
    "embeddings": lambda: (Embeddings(), [Tensor([[1, 2, 3], [9, 10, 0]], ms.int32)]),
    "mix": lambda: (Mix(), [f(3, 4), f(3, 4)]),
}


def flat(value):
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def write(folder, name):
    net, inputs, *symbolic = CASES[name]()
    if name not in ("conv_step", "layers_step"):
        net.set_train(name == "step")
    ms.export(net, *(symbolic[0] if symbolic else inputs), file_name=str(folder / name), file_format="MINDIR")
    kept = {f"x{i}": x.asnumpy() for i, x in enumerate(inputs)}
    loaded = nn.GraphCell(ms.load(str(folder / f"{name}.mindir")))
    for round in range(2):  # the second sees what the first changed
        out = loaded(*inputs)
        kept.update({f"y{round}_{i}": y.asnumpy() for i, y in enumerate(flat(out))})
    np.savez_compressed(folder / f"{name}.npz", **kept)


def write_control(folder, kind):
    """A loop or branch, and what it gives for each of `COUNTS`."""
    name, x = kind.__name__.lower(), Tensor([1, 0.5, 0.25], ms.float32)
    ms.export(kind(), x, Tensor(5, ms.int32), file_name=str(folder / name), file_format="MINDIR")
    loaded, kept = nn.GraphCell(ms.load(str(folder / f"{name}.mindir"))), {}
    for n in COUNTS:
        kept.update({f"y{n}_{i}": y.asnumpy() for i, y in enumerate(flat(loaded(x, Tensor(n, ms.int32))))})
    np.savez_compressed(folder / f"{name}.npz", **kept)


class Search(nn.Cell):
    def construct(self, rows, v):
        right = ops.searchsorted(rows, v, side="right", out_int32=True)
        return ops.searchsorted(rows, v), right, ops.bucketize(v, [0.5, 2.0], right=True)


class Unique(nn.Cell):
    def construct(self, x):
        some = ops.unique_consecutive(x), ops.unique_consecutive(x, True, False), ops.unique_consecutive(x, False, True)
        return some, ops.unique_consecutive(x, True, True, 1)


class Pooled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.pool2 = ops.MaxPoolWithArgmaxV2(2, 2, argmax_type=ms.int32)
        self.pool3 = ops.MaxPool3DWithArgmax(2, 2, (0, 0, 0), (1, 1, 1), False, "NCDHW", ms.int32)

    def construct(self, x, y):
        return ops.max_pool2d(x, 3, 2, 1, return_indices=True, ceil_mode=True), self.pool2(x), self.pool3(y)


class Lengths(nn.Cell):
    def __init__(self):
        super().__init__()
        self.rows, self.columns = ops.L2Normalize(1, 0.5), ops.L2Normalize()

    def construct(self, x):
        return self.rows(x), self.columns(x)


class Written(nn.Cell):
    """What is read of a tensor before and after others write into it."""

    def construct(self, x, indices, y):
        a, b = x * 1.0, x * 2.0
        before = ops.tanh(a)
        added = ops.index_add(a, indices, y, 1)
        double = ops.tanh(b)
        b.add_(x)
        return a, added, before, ops.tanh(a), b, double, ops.tanh(b)


class WrittenView(nn.Cell):
    def construct(self, x):
        y = x * 2.0
        z = y.reshape((-1,))
        z.add_(z)
        return y, z


class WrittenUnderView(nn.Cell):
    def construct(self, x):
        y = x * 2.0
        z = y[0]
        y.add_(x)
        return y, z


class Viewed(nn.Cell):
    """Views, whose operators are marked as if they wrote."""

    def construct(self, x):
        return x.select(1, 2), ops.tanh(x.select(0, -1)), x * 2.0


class Normalised(nn.Cell):
    def __init__(self):
        super().__init__()
        self.used, self.trained = ops.BatchNorm(False, 1e-3, 0.3), ops.BatchNorm(True, 1e-3, 0.3)
        self.scale, self.mean = Parameter(f(3), name="scale"), Parameter(f(3), name="mean")
        self.variance = Parameter(f(3) + 2.0, name="variance")

    def construct(self, x):
        used = self.used(x, self.scale, self.mean, self.mean, self.variance)
        return used, self.trained(x, self.scale, self.scale, self.mean, self.variance), self.mean, self.variance


class Empty(nn.Cell):
    def construct(self, x, y):
        return ops.any(x, 0), ops.ReduceAny()(x, 0), ops.all(x, 0), ops.sum(y, (0, 1)), ops.prod(y, 0), ops.mean(y, 0)


# Their results are equal in every call, but those of the numbers at the end: MindSpore leaves them
# without a value.
OPERATORS = {
    "search": lambda: (
        Search(),
        [Tensor([[1, 2, 2, 3], [0, 1, 5, 5]], ms.float32), Tensor([[2, 2.5, 9], [5, 0, 1]], ms.float32)],
    ),
    "unique": lambda: (Unique(), [Tensor([[1, 1, 2], [1, 1, 2], [3, 3, 3]], ms.int32)]),
    "viewed": lambda: (Viewed(), [f(3, 4)]),
    "written": lambda: (Written(), [f(3, 4), Tensor([0, 2, 0], ms.int32), f(3, 3)]),
    "normalised": lambda: (Normalised(), [f(2, 3, 2, 2)], (1, 2, 3, 4, 6, 7)),
    "empty": lambda: (Empty(), [Tensor(np.zeros((0, 5), bool)), Tensor(np.zeros((0, 3), np.float32))], range(6)),
    "lengths": lambda: (Lengths(), [f(3, 4)]),
    "pooled": lambda: (Pooled(), [f(1, 2, 6, 6), f(1, 1, 4, 4, 4)]),
}

# MindSpore itself gives a view and what it shows different values.
REFUSED = {"written_view": lambda: (WrittenView(), [f(2, 3)]), "written_base": lambda: (WrittenUnderView(), [f(2, 3)])}


def write_operator(folder, name):
    net, inputs, *without = {**OPERATORS, **REFUSED}[name]()
    ms.export(net, *inputs, file_name=str(folder / name), file_format="MINDIR")
    # Before the call, which may write into them.
    kept = {f"x{i}": x.asnumpy().copy() for i, x in enumerate(inputs)}
    found = flat(nn.GraphCell(ms.load(str(folder / f"{name}.mindir")))(*inputs))
    kept |= {f"y{i}": y.asnumpy() for i, y in enumerate(found) if not without or i not in without[0]}
    kept["count"] = np.int64(len(found))
    np.savez_compressed(folder / f"{name}.npz", **kept)


COUNTS = (0, 1, 3, 5, 9)

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "control").mkdir(parents=True, exist_ok=True)
    for kind in (Break, Continue, Nested, Early, Ret):
        write_control(folder / "control", kind)
    (folder / "operators").mkdir(exist_ok=True)
    for name in (*OPERATORS, *REFUSED):
        write_operator(folder / "operators", name)
    for name in sys.argv[2:] or CASES:
        try:
            write(folder, name)
            print(name, "written")
        except Exception as error:
            print(name, type(error).__name__, str(error)[:1500])
