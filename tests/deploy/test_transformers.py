"""Transformers and recurrent networks of integers as libraries: the same integers as compiled."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.deploy import build
from mycel.quantisation import quantise
from tests.deploy import random_graphs
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
WIDTH, HEADS, LENGTH, WORDS = 32, 4, 12, 60


class Encoder(nn.Cell):
    """An encoder in the manner of BERT, which classifies by its first word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = ms.Parameter(ops.randn(1, LENGTH, WIDTH) * 0.1, name="places")
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, 0.0, activation="gelu", batch_first=True)
        self.encoder, self.out = nn.TransformerEncoder(layer, 1), nn.Dense(WIDTH, 3)

    def construct(self, words: Any) -> Any:
        return self.out(self.encoder(self.words(words) + self.places)[:, 0])


class Block(nn.Cell):
    """Attention written by itself, and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.all, self.joined = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

    def construct(self, x: Any, mask: Any) -> Any:
        batch, length, width = x.shape
        parts = ops.split(self.all(self.norm1(x)), WIDTH, -1)
        q, k, v = (p.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3) for p in parts)
        weights = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) / (width // HEADS) ** 0.5 + mask, -1)
        x = x + self.joined(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(batch, length, width))
        return x + self.narrow(ops.gelu(self.wide(self.norm2(x))))


class Decoder(nn.Cell):
    """A decoder in the manner of GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.block = nn.Embedding(WORDS, WIDTH), Block()
        self.places = ms.Parameter(ops.randn(1, LENGTH, WIDTH) * 0.1, name="places")
        self.norm, self.out = nn.LayerNorm((WIDTH,)), nn.Dense(WIDTH, WORDS)
        self.mask = ms.Tensor(np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))

    def construct(self, words: Any) -> Any:
        return self.out(self.norm(self.block(self.words(words) + self.places, self.mask)))


class Patches(nn.Cell):
    """A vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, stride=4, pad_mode="valid", has_bias=True)
        self.first = ms.Parameter(ops.randn(1, 1, WIDTH) * 0.1, name="first")
        self.block, self.norm, self.out = Block(), nn.LayerNorm((WIDTH,)), nn.Dense(WIDTH, 10)

    def construct(self, x: Any) -> Any:
        x = self.patches(x)
        batch = x.shape[0]
        x = x.reshape(batch, WIDTH, 16).transpose(0, 2, 1)
        x = ops.concat([ops.broadcast_to(self.first, (batch, 1, WIDTH)), x], 1)
        return self.out(self.norm(self.block(x, 0.0))[:, 0])


class Sequences(nn.Cell):
    """An LSTM that classifies sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.LSTM(8, 16, batch_first=True), nn.Dense(16, 4)

    def construct(self, x: Any) -> Any:
        return self.out(self.layer(x)[0][:, -1])


def words(count: int) -> ms.Tensor:
    return ms.Tensor(np.random.RandomState(count).randint(0, WORDS, (count, LENGTH)).astype(np.int32))


def floats(*shape: int) -> Callable[[int], ms.Tensor]:
    return lambda count: ms.Tensor(np.random.RandomState(count).randn(count, *shape).astype(np.float32))


NETWORKS: dict[str, tuple[Callable[[], nn.Cell], Callable[[int], ms.Tensor]]] = {
    "encoder": (Encoder, words),
    "decoder": (Decoder, words),
    "patches": (Patches, floats(3, 16, 16)),
    "sequences": (Sequences, floats(10, 8)),
}
_made: dict[str, Any] = {}


def networks(name: str) -> tuple[Any, Any]:
    """Return a network of floats, and its integers."""
    if name not in _made:
        ms.set_seed(1)
        np.random.seed(1)
        net = NETWORKS[name][0]().set_train(False)
        _made[name] = net, quantise(net, NETWORKS[name][1](16))
    found: tuple[Any, Any] = _made[name]
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_integers_are_near_the_floats_and_small(name: str) -> None:
    net, small = networks(name)
    x = NETWORKS[name][1](8)
    want = net(x).asnumpy()
    assert np.sqrt(((small(x).asnumpy() - want) ** 2).mean() / (want**2).mean()) < 0.08
    plain, made = (build(n, NETWORKS[name][1](1), target="cortex-m55") for n in (net, small))
    if name != "sequences":
        assert made.constant_bytes < plain.constant_bytes * 0.65 and made.flash_bytes < plain.flash_bytes * 0.85
    assert made.ram_bytes <= plain.ram_bytes


@pytest.mark.parametrize("name", NETWORKS)
def test_batches_of_any_size_give_the_same_integers(name: str) -> None:
    _, small = networks(name)
    data, batch = NETWORKS[name][1], ms.Symbol(max=4, unique=True)
    x = data(1)
    example = ms.Tensor(shape=[batch, *x.shape[1:]], dtype=x.dtype)
    library = build(small, example, target="x86-64-v2", sizes={"batch": batch})
    loaded = Loaded(library)
    assert library.forms == 1
    for count in (1, 2, 4):
        np.testing.assert_array_equal(loaded(data(count)), small(data(count)).asnumpy())
    fixed = Loaded(build(small, x, target="x86-64-v2"))
    np.testing.assert_array_equal(fixed(x), small(x).asnumpy())


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "wasm32"])
def test_other_machines_give_the_same_integers(target: str, name: str, tmp_path: Path) -> None:
    missing = "node" if target == "wasm32" and shutil.which("node") is None else ""
    if missing := missing if target == "wasm32" else missing_tools():
        pytest.skip(f"needs {missing}")
    net, small = networks(name)
    x = NETWORKS[name][1](1)
    library, want = build(small, x, target=target, name="f"), small(x).asnumpy()
    if target == "wasm32":
        (found,) = random_graphs.runner(target, tmp_path)(library, [x.asnumpy()])
        np.testing.assert_array_equal(found, want)
        return
    done = run(library, [[x.asnumpy()]], tmp_path)
    np.testing.assert_array_equal(done.results[0][0], want)
    if target == "cortex-m55" and name != "sequences":
        plain = run(build(net, x, target=target, name="f"), [[x.asnumpy()]], tmp_path)
        assert done.instructions[0] < plain.instructions[0] * 0.6
