"""Transposed convolutions as convolutions: the same sums, and networks of integers of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.convolution.conv import conv_grad_input, window_output
from mycel._src.compiler.prims.neural.quantisation import fake_quant
from mycel._src.compiler.transforms.quantise.transposed_convolution import with_convolutions
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import ShapeError
from mycel.quantisation import quantise

Array = np.ndarray[Any, Any]


def random_graph(seed: int) -> tuple[Graph, Array]:
    """A transposed convolution of integers, with a bias and a clamp, and its image."""
    rng = np.random.default_rng(seed)
    while True:
        rank = int(rng.choice([1, 2, 2, 2, 3]))
        groups, inputs, outputs = (int(rng.integers(1, 4)) for _ in range(3))
        size, kernel, strides, dilation = (tuple(int(v) for v in rng.integers(1, most, rank)) for most in (8, 5, 4, 3))
        padding = tuple((int(a), int(b)) for a, b in rng.integers(0, 4, (rank, 2)))
        try:
            places = window_output("conv", size, kernel, strides, padding, dilation)
        except ShapeError:
            continue
        break
    x = input_node(tensor_type((2, groups * inputs, *places), float32), "x")
    weight = constant(rng.integers(-9, 10, (groups * inputs, outputs, *kernel)).astype(np.float32))
    if seed % 3 == 0:
        size_of = rng.choice([0.5, 2.0], (1, outputs, *[1] * rank) if seed % 2 else ()).astype(np.float32)
        weight = fake_quant(weight, constant(size_of), constant(0.0, float32), low=-7, high=7, ties="even")
    p = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    y = conv_grad_input(x, weight, input_shape=(2, groups * outputs, *size), **p)
    bias = rng.integers(-9, 10, (groups * outputs,) + (1,) * rank).astype(np.float32)
    z = E.maximum(E.add(constant(bias), y), 0.0)
    results: list[Node] = [z, y] if seed % 2 else [z]
    return Graph([x], results, "transposed"), rng.integers(-9, 10, x.shape).astype(np.float32)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_same_sums(first: int) -> None:
    left = 0
    for seed in range(first, first + 50):
        graph, x = random_graph(seed)
        made = with_convolutions(graph)
        left += any(n.prim is conv_grad_input for n in made.nodes)
        for got, want in zip(evaluate(made, [x]), evaluate(graph, [x])):
            np.testing.assert_array_equal(got, want, err_msg=str(seed))
    # Some read nothing of their image.
    assert left < 5


def test_what_stays() -> None:
    p = {"strides": (2,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}
    x = input_node(tensor_type((1, 2, 3), float32), "x")
    w = input_node(tensor_type((2, 4, 2), float32), "w")
    trained = Graph([x, w], [conv_grad_input(x, w, input_shape=(1, 4, 6), **p)])
    assert with_convolutions(trained).outputs == trained.outputs
    # Scales of inputs are no factor of sums.
    each = constant(np.array([1.0, 2.0], np.float32).reshape(2, 1, 1))
    held = fake_quant(
        constant(np.ones((2, 4, 2), np.float32)), each, constant(0.0, float32), low=-7, high=7, ties="even"
    )
    graph = Graph([x], [conv_grad_input(x, held, input_shape=(1, 4, 6), **p)])
    assert any(n.prim is conv_grad_input for n in with_convolutions(graph).nodes)


class Decoder(nn.Cell):
    """Layers of all kinds that make images larger, with normalisations behind."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2dTranspose(3, 8, 3, stride=2, has_bias=True)
        self.norm, self.relu = nn.BatchNorm2d(8), nn.ReLU6()
        self.second = nn.Conv2dTranspose(8, 8, 4, stride=2, pad_mode="pad", padding=1, group=8)
        self.third = nn.Conv2dTranspose(8, 5, (2, 3), stride=(1, 3), pad_mode="valid", has_bias=True)

    def construct(self, x: Any) -> Any:
        return self.third(ops.sigmoid(self.second(self.relu(self.norm(self.first(x))))))


def test_averages_without_their_padding_are_integers() -> None:
    net = nn.SequentialCell(nn.Conv2d(3, 4, 1), nn.AvgPool2d(3, 2, pad_mode="same"), nn.ReLU())
    x = np.random.default_rng(4).standard_normal((3, 3, 7, 6)).astype(np.float32)
    small = quantise(net.set_train(False), ms.Tensor(x), integer_ends=True)
    assert not any(n.dtype is float32 for n in small.model.graph.nodes)
    want = net(ms.Tensor(x)).asnumpy()
    got = small.real_output(small(ms.Tensor(small.quantised_input(x))))
    assert np.abs(got - want).max() < 0.03 * np.abs(want).max()


def test_decoders_are_integers() -> None:
    ms.set_seed(3)
    net = Decoder().set_train(False)
    net.norm.moving_mean.set_data(ms.Tensor(np.linspace(-0.5, 0.5, 8), ms.float32))
    net.norm.moving_variance.set_data(ms.Tensor(np.linspace(0.5, 2.0, 8), ms.float32))
    x = np.random.default_rng(2).standard_normal((4, 3, 5, 6)).astype(np.float32)
    want = net(ms.Tensor(x)).asnumpy()
    for more in ({}, {"per_channel": False}, {"weights": "gptq"}, {"rounding": "double"}, {"equalise": True}):
        small = quantise(net, ms.Tensor(x), integer_ends=True, **more)
        assert not small.report.floats, small.report.floats
        assert len(small.report.bits) == 3
        got = small.real_output(small(ms.Tensor(small.quantised_input(x))))
        assert np.abs(got - want).max() < 0.06 * np.abs(want).max(), more
