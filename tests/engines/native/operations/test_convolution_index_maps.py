"""Convolutions and gradients as nests, against the reference: all samples, and drawn sizes."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight, window_output
from mycel._src.engines.aot.library import library_of
from mycel._src.engines.native.operations.convolution_index_maps import has_conv_nest
from mycel._src.foundation import dtype as D
from tests.deploy.loaded import Loaded

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")


def _cases() -> list[tuple[Any, ...]]:
    random = np.random.RandomState(1)
    cases: list[tuple[Any, ...]] = []
    for _ in range(12):
        rank = int(random.randint(1, 4))
        depthwise = bool(random.randint(2))
        channels = int(random.randint(1, 5))
        size = tuple(int(n) for n in random.randint(3, 9, rank))
        kernel = tuple(int(n) for n in random.randint(1, 4, rank))
        padding = tuple((int(a), int(b)) for a, b in random.randint(0, 3, (rank, 2)))
        strides = tuple(int(n) for n in random.randint(1, 3, rank))
        dilation = (1,) * rank if random.randint(2) else (2,) * rank
        spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
        if any(n + a + b < s for n, (a, b), s in zip(size, padding, spans)):
            continue
        weights = (channels, 1, *kernel) if depthwise else (int(random.randint(1, 6)), channels, *kernel)
        params = {"strides": strides, "padding": padding, "dilation": dilation}
        cases.append(
            ((int(random.randint(1, 3)), channels, *size), weights, {**params, "groups": channels if depthwise else 1})
        )
    return cases


def _nodes(x: tuple[int, ...], w: tuple[int, ...], p: dict[str, Any]) -> list[tuple[Node, tuple[tuple[int, ...], ...]]]:
    y = (x[0], w[0], *window_output("conv", x[2:], w[2:], p["strides"], p["padding"], p["dilation"]))
    image, weights, ct = (input_node(TensorType(s, D.float32), n) for s, n in ((x, "a"), (w, "b"), (y, "c")))
    return [
        (conv(image, weights, **p), (x, w)),
        (conv_grad_input(ct, weights, input_shape=x, **p), (y, w)),
        (conv_grad_weight(image, ct, weight_shape=w, **p), (x, y)),
    ]


@pytest.mark.parametrize("case", _cases(), ids=lambda c: f"{c[0]}-{c[1]}-{c[2]['strides']}".replace(" ", ""))
def test_convolutions_and_gradients(case: tuple[Any, ...]) -> None:
    random = np.random.RandomState(0)
    for node, shapes in _nodes(*case):
        arrays = [random.randn(*s).astype("f4") for s in shapes]
        strided = any(s > 1 for s in case[2]["strides"])
        assert has_conv_nest(node) == (node.prim is not conv_grad_input or not strided)
        library = library_of(Graph(list(node.inputs), [node], "case"), ["a", "b"], [], {}, "x86-64-v3", "compute")
        expected = node.prim.reference(*[a.astype("f8") for a in arrays], **node.params)
        np.testing.assert_allclose(Loaded(library)(*arrays), expected, rtol=1e-4, atol=1e-4)
