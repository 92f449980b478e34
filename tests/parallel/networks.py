"""Small networks of the kinds that are divided in practice, with a training step each.

`TASKS` has, by name, a function that makes one: it returns the step, batches of global size, and
the names by which each way to divide lays out inputs and parameters. All sizes are small. The ways
are in `ways.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops

ROWS = 16


@dataclass
class Task:
    """A network with its step, its batches, and layouts by the kind of parallelism.

    `derive` takes the tensors of a batch and returns the loss and gradients, which `update` takes;
    `step` does both. `tokens` has, for each input, the axis that sequence parallelism divides;
    `operators` has the layouts of operator parallelism by parameter, with "tp" for the mesh axis.
    `shown` returns of a batch what has to be equal bit for bit, as the masks of dropout, beside a
    gradient that it takes. `excluded` has the beginnings of the names of ways that do not fit.
    Without `is_bounded` values are exchanged as well as gradients.
    """

    network: Any
    derive: Callable[..., Any]
    update: Callable[..., Any]
    step: Callable[..., Any]
    batches: list[tuple[np.ndarray, ...]]
    operators: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    tokens: tuple[Any, ...] = ()
    shown: Callable[..., Any] | None = None
    excluded: tuple[str, ...] = ()
    is_bounded: bool = True

    def parameters(self) -> dict[str, Any]:
        """All parameters and states by name."""
        return {p.name: p for c in (self.network, self.update) for p in c.get_parameters()}

    def values(self) -> dict[str, np.ndarray]:
        """The values of all parameters and states by name."""
        return {name: p.asnumpy().copy() for name, p in self.parameters().items()}

    def with_step(self, step: Callable[..., Any]) -> Task:
        """Return the task with another step, whose results alone are compared."""
        return replace(self, step=step, shown=None)


Loss = Callable[..., Any]


def training(
    network: nn.Cell,
    loss: Loss,
    optimizer: Callable[[Any], nn.Cell],
    batches: list[tuple[np.ndarray, ...]],
    **more: Any,
) -> Task:
    """The training of a network by an optimizer, or by what one makes of it; `more` are other
    fields of the task.
    """
    weights = network.trainable_params()
    update = optimizer(weights)
    derive = ms.value_and_grad(lambda *batch: loss(network, *batch), None, weights)

    def step(*batch: Any) -> Any:
        value, gradients = derive(*batch)
        update(gradients)
        return value

    return Task(network, derive, update, step, batches, **more)


def adam(weights: Any) -> nn.Cell:
    return nn.Adam(weights, learning_rate=1e-3)


def momentum(weights: Any) -> nn.Cell:
    return nn.Momentum(weights, 0.01, 0.9)


def classified(network: Any, x: Any, y: Any) -> Any:
    """The loss of a classifier."""
    return ops.cross_entropy(network(x), y)


class LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool, self.flat = nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2, self.fc3 = nn.Dense(256, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x: Any) -> Any:
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.flat(self.pool(ops.relu(self.conv2(x))))
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


def lenet(steps: int) -> Task:
    random, net = np.random.RandomState(0), LeNet()
    batches = [(random.randn(ROWS, 1, 28, 28).astype("f4"), random.randint(0, 10, ROWS)) for _ in range(steps)]
    operators = {"fc1.weight": ("tp",), "fc1.bias": ("tp",), "fc2.weight": (None, "tp"), "conv1.weight": ("tp",)}
    return training(net, classified, momentum, batches, operators=operators)


class Block(nn.Cell):
    """Two convolutions with batch normalisation around a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3), nn.BatchNorm2d(after)
        self.short = nn.Conv2d(before, after, 1, stride) if before != after else None

    def construct(self, x: Any) -> Any:
        y = self.bn2(self.conv2(ops.silu(self.bn1(self.conv1(x)))))
        return ops.silu(y + (x if self.short is None else self.short(x)))


class ResNet(nn.Cell):
    """A residual network of 20 layers for pictures of 16 x 16.

    Its activations are smooth: where a rounding error decides on which side of a bend a value lies,
    gradients of so few pictures differ in the third digit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        blocks, before = [], 8
        for after, stride in ((8, 1), (16, 2), (32, 2)):
            for k in range(3):
                blocks.append(Block(before, after, stride if k == 0 else 1))
                before = after
        self.blocks, self.head = nn.SequentialCell(blocks), nn.Dense(32, 10)

    def construct(self, x: Any) -> Any:
        x = self.blocks(ops.silu(self.bn(self.stem(x))))
        return self.head(x.mean((2, 3)))


def resnet(steps: int) -> Task:
    random, net = np.random.RandomState(0), ResNet()
    net.set_train()
    batches = [(random.randn(ROWS, 3, 16, 16).astype("f4"), random.randint(0, 10, ROWS)) for _ in range(steps)]
    operators = {"head.weight": (None, "tp"), "blocks.8.conv1.weight": ("tp",), "blocks.8.conv2.weight": (None, "tp")}
    return training(net, classified, momentum, batches, operators=operators)


class Layer(nn.Cell):
    """A layer of a transformer, with dropout; `causal` hides what comes later."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.out, self.up, self.down = nn.Dense(width, width), nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.drop = nn.Dropout(p=0.1)

    def dropped(self, x: Any, masks: list[Any]) -> Any:
        """Return `x` with elements dropped, of which `masks` gets to know."""
        y = self.drop(x)
        masks.append(y == 0)
        return y

    def construct(self, x: Any) -> Any:
        """Return the result, and the masks of dropout."""
        masks: list[Any] = []
        rows, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (
            f(y).reshape(rows, length, self.heads, width // self.heads).transpose(0, 2, 1, 3)
            for f in (self.query, self.key, self.value)
        )
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (width // self.heads) ** 0.5
        if self.causal:
            scores = scores + ops.triu(ops.full((length, length), -1e9), 1)
        mixed = ops.matmul(self.dropped(ops.softmax(scores, -1), masks), v)
        x = x + self.dropped(self.out(mixed.transpose(0, 2, 1, 3).reshape(rows, length, width)), masks)
        return x + self.dropped(self.down(ops.gelu(self.up(self.norm2(x)))), masks), masks


class Transformer(nn.Cell):
    def __init__(self, words: int, length: int, width: int, heads: int, layers: int, causal: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.CellList([Layer(width, heads, causal) for _ in range(layers)])
        self.norm, self.head, self.length = nn.LayerNorm((width,)), nn.Dense(width, words), length

    def construct(self, tokens: Any) -> Any:
        x = self.words(tokens) + self.places(ops.arange(self.length))
        masks: list[Any] = []
        for layer in self.layers:
            x, more = layer(x)
            masks = masks + more
        return self.head(self.norm(x)), masks


def transformer(steps: int, causal: bool) -> Task:
    random, words, length = np.random.RandomState(0), 50, 12
    net = Transformer(words, length, 24, 12, 2, causal)
    net.set_train()
    batches = [tuple(random.randint(0, words, (ROWS, length)) for _ in range(2)) for _ in range(steps)]

    def both(n: Any, tokens: Any, labels: Any) -> Any:
        logits, masks = n(tokens)
        return ops.cross_entropy(logits.reshape(-1, words), labels.reshape(-1)), tuple(masks)

    def loss(n: Any, tokens: Any, labels: Any) -> Any:
        return both(n, tokens, labels)[0]

    def shown(tokens: Any, labels: Any) -> Any:
        (_, masks), gradients = noted(tokens, labels)
        return (*masks, gradients[0].sum())

    noted = ms.value_and_grad(lambda *batch: both(net, *batch), None, net.trainable_params(), has_aux=True)
    operators: dict[str, tuple[Any, ...]] = {"words.embedding_table": ("tp",)}
    for k in range(2):
        for name in ("query", "key", "value", "up"):
            operators[f"layers.{k}.{name}.weight"] = operators[f"layers.{k}.{name}.bias"] = ("tp",)
        for name in ("out", "down"):
            operators[f"layers.{k}.{name}.weight"] = (None, "tp")
    tokens = ((None, "sp"), (None, "sp"))
    return training(net, loss, adam, batches, operators=operators, tokens=tokens, shown=shown)


class Recommender(nn.Cell):
    """Tables of embeddings, their products, and dense layers around them."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.CellList([nn.Embedding(rows, width) for _ in range(tables)])
        self.bottom, self.top = nn.Dense(6, width), nn.Dense((tables + 1) ** 2 + width, 1)

    def construct(self, dense: Any, sparse: Any) -> Any:
        bottom = ops.relu(self.bottom(dense))
        vectors = ops.stack([bottom, *[t(sparse[:, k]) for k, t in enumerate(self.tables)]], 1)
        products = ops.matmul(vectors, vectors.transpose(0, 2, 1)).reshape(dense.shape[0], -1)
        return self.top(ops.cat([bottom, products], 1)).reshape(-1)


def recommender(steps: int) -> Task:
    random, net = np.random.RandomState(0), Recommender(3, 40, 8)
    batches = [
        (random.randn(ROWS, 6).astype("f4"), random.randint(0, 40, (ROWS, 3)), random.randint(0, 2, ROWS).astype("f4"))
        for _ in range(steps)
    ]

    def loss(n: Any, dense: Any, sparse: Any, clicks: Any) -> Any:
        one = ops.ones_like(clicks)
        return ops.binary_cross_entropy_with_logits(n(dense, sparse), clicks, one, one)

    operators = {f"tables.{k}.embedding_table": ("tp",) for k in range(3)}
    return training(net, loss, adam, batches, operators=operators)


class Experts(nn.Cell):
    """A layer of experts, of which each row goes to the best, weighed by its gate."""

    def __init__(self, experts: int, width: int) -> None:
        super().__init__()
        random = np.random.RandomState(1)
        self.gate, self.head = nn.Dense(width, experts), nn.Dense(width, 5)
        self.up = ms.Parameter(ms.Tensor(0.3 * random.randn(experts, width, 2 * width).astype("f4")))
        self.down = ms.Parameter(ms.Tensor(0.3 * random.randn(experts, 2 * width, width).astype("f4")))
        self.experts = experts

    def construct(self, x: Any) -> Any:
        gates = ops.softmax(self.gate(x), -1)
        chosen = ops.one_hot(gates.argmax(-1), self.experts, ms.Tensor(1.0), ms.Tensor(0.0)) * gates
        hidden = ops.relu(ops.matmul(x.expand_dims(0), self.up))
        mixed = (ops.matmul(hidden, self.down) * chosen.T.expand_dims(-1)).sum(0)
        return self.head(x + mixed)


def experts(steps: int) -> Task:
    random, net = np.random.RandomState(0), Experts(12, 8)
    batches = [(random.randn(ROWS, 8).astype("f4"), random.randint(0, 5, ROWS)) for _ in range(steps)]
    return training(net, classified, adam, batches, operators={"up": ("tp",), "down": ("tp",)})


TASKS: dict[str, Callable[[int], Task]] = {
    "lenet": lenet,
    "resnet": resnet,
    "bert": lambda steps: transformer(steps, causal=False),
    "gpt": lambda steps: transformer(steps, causal=True),
    "recommender": recommender,
    "experts": experts,
}
