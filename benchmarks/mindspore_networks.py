"""The networks as programs for MindSpore's interface, which Mycel and MindSpore run alike."""

import numpy as np
from cases import initial_weight
from mindspore import Parameter, Tensor, amp, nn, ops
from mindspore import dtype as mstype

__all__ = ["NETWORKS", "WithLoss", "started"]


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class Bottleneck(nn.Cell):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        inner = outputs // 4
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, pad_mode="pad", padding=1), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, outputs, 1), nn.BatchNorm2d(outputs)
        self.relu, self.down = nn.ReLU(), None
        if stride != 1 or inputs != outputs:
            self.down = nn.SequentialCell([nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)])

    def construct(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        if self.down is not None:
            x = self.down(x)
        return self.relu(x + y)


class ResNet50(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3), nn.BatchNorm2d(64)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(3, 2)
        blocks, width = [], 64
        for count, outputs, stride in ((3, 256, 1), (4, 512, 2), (6, 1024, 2), (3, 2048, 2)):
            for i in range(count):
                blocks.append(Bottleneck(width, outputs, stride if i == 0 else 1))
                width = outputs
        self.blocks, self.fc = nn.SequentialCell(blocks), nn.Dense(2048, 1000)

    def construct(self, x):
        x = self.pool(self.relu(self.bn(self.conv(x))))
        return self.fc(self.blocks(x).mean((2, 3)))


class Encoder(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width // heads
        self.q, self.k = nn.Dense(width, width), nn.Dense(width, width)
        self.v, self.o = nn.Dense(width, width), nn.Dense(width, width)
        self.norm1, self.norm2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.gelu = nn.GELU(approximate=False)

    def split(self, x):
        b, t, _ = x.shape
        return x.reshape(b, t, self.heads, self.width).transpose(0, 2, 1, 3)

    def construct(self, x):
        b, t, d = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        a = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) / (self.width**0.5), -1)
        y = ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(b, t, d)
        x = self.norm1(x + self.o(y))
        return self.norm2(x + self.down(self.gelu(self.up(x))))


class BertSmall(nn.Cell):
    def __init__(self):
        super().__init__()
        self.pos = Parameter(Tensor(np.zeros((128, 256), np.float32)), name="pos")
        self.embed = nn.Embedding(8000, 256)
        self.layers, self.out = nn.SequentialCell([Encoder(256, 4) for _ in range(4)]), nn.Dense(256, 8000)

    def construct(self, x):
        return self.out(self.layers(self.embed(x) + self.pos)).reshape(-1, 8000)


class WithLoss(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net, self.loss = net, nn.CrossEntropyLoss()

    def construct(self, x, y):
        return self.loss(self.net(x), y)


NETWORKS = {"lenet5": LeNet5, "bert_small": BertSmall, "resnet50": ResNet50}
_NAMES = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}


def started(name, narrow):
    """A network with the weights that every framework starts from; `narrow`: in bfloat16 but for
    its normalisations.
    """
    net = NETWORKS[name]()
    for path, p in net.parameters_and_names():
        head, _, last = path.rpartition(".")
        common = f"{head}.{_NAMES.get(last, last)}".lstrip(".")
        if p.requires_grad:
            p.set_data(Tensor(initial_weight(common, tuple(p.shape))))
    return amp.auto_mixed_precision(net, "O2", mstype.bfloat16) if narrow else net
