"""Indices out of range, found by compiled code: messages name the loss or layer in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.train import Model

LOGITS = ms.Tensor(np.zeros((4, 3), np.float32))
LABELS = ms.Tensor([0, 1, 2, 3], ms.int32)
ROWS = (LOGITS.asnumpy(), LABELS.asnumpy())


class Inside(nn.Cell):
    """A layer or function of two arguments in a network of the user's."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def construct(self, x, y):
        z = x * 2
        return self.inner(z, y)


class Looked(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 2)

    def construct(self, x, y):
        return self.table(y)


LAYERS: dict[str, Callable[[], Any]] = {
    "CrossEntropyLoss": nn.CrossEntropyLoss,
    "NLLLoss": nn.NLLLoss,
    "SoftmaxCrossEntropyWithLogits": lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True),
    "MultiMarginLoss": nn.MultiMarginLoss,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cross_entropy": lambda x, y: ops.cross_entropy(x, y),
    "nll_loss": lambda x, y: ops.nll_loss(x, y),
    "multi_margin_loss": lambda x, y: ops.multi_margin_loss(x, y),
    "gather": lambda x, y: ops.gather(x, y, 1),
    "index_select": lambda x, y: ops.index_select(x, 1, y),
    "unsorted_segment_sum": lambda x, y: ops.unsorted_segment_sum(x, y, 3),
    "embedding": lambda x, y: ops.embedding(y, x[:3]),
}


def message(fn: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(IndexError) as info:
        fn(*args)
    return str(info.value)


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request) -> int:
    ms.set_context(mode=request.param)
    return request.param


@pytest.mark.parametrize("name", LAYERS)
def test_a_loss_is_named(name: str, mode: int) -> None:
    loss = LAYERS[name]()
    assert message(loss, LOGITS, LABELS).startswith(f"{name}: index 3 is out of range")
    inside = message(Inside(loss), LOGITS, LABELS)
    if mode == ms.GRAPH_MODE:
        assert inside.startswith(f"{name} (self.inner): index 3") and "return self.inner(z, y)" in inside
    else:
        assert inside.startswith(f"{name}: index 3")


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("sink", [False, True])
def test_a_loss_is_named_in_training(name: str, mode: int, sink: bool) -> None:
    net = nn.Dense(3, 3)
    model = Model(net, LAYERS[name](), nn.SGD(net.trainable_params()), metrics={"loss"})
    data = ds.NumpySlicesDataset(ROWS, ["x", "y"]).batch(2)
    assert message(lambda: model.train(1, data, dataset_sink_mode=sink)).startswith(f"{name}: index 3")
    assert message(lambda: model.eval(data, dataset_sink_mode=sink)).startswith(f"{name}: index 3")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_named(name: str, mode: int) -> None:
    function = FUNCTIONS[name]
    assert name in message(function, LOGITS, LABELS).partition(":")[0]
    compiled = message(ms.jit(function), LOGITS, LABELS)
    assert compiled.startswith(f"ops.{name}: index 3") and f"ops.{name}(" in compiled.partition("\n")[2]


def test_an_embedding_is_named(mode: int) -> None:
    assert message(nn.Embedding(3, 2), LABELS).startswith("Embedding: index 3")
    inside = message(Looked(), LOGITS, LABELS)
    assert inside.startswith("Embedding") and (mode == ms.PYNATIVE_MODE or "return self.table(y)" in inside)
