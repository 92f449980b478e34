"""Convolutions by Winograd's algorithm, and both gradients, against sums in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.convolution import conv
from mycel._src.engines import buffers
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.operations.convolution import winograd_steps
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.foundation import dtype as D

# Images, channels, outputs, height, width, and padding before and after.
CASES = [
    (2, 16, 16, 8, 8, ((1, 1), (1, 1))),
    (1, 20, 33, 13, 10, ((0, 0), (0, 0))),
    (3, 5, 17, 7, 31, ((2, 2), (1, 0))),
    (2, 32, 48, 5, 6, ((0, 2), (2, 1))),
    (5, 64, 3, 4, 4, ((1, 1), (1, 1))),
    (1, 130, 70, 9, 9, ((1, 1), (1, 1))),
]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every convolution that can be done this way is."""
    monkeypatch.setattr(winograd_steps, "GAIN", float("inf"))


def shifted(image: np.ndarray, padding: Any, height: int, width: int) -> Iterator[tuple[int, int, np.ndarray]]:
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), *padding))
    for y, x in itertools.product(range(3), repeat=2):
        yield y, x, padded[:, :, y : y + height, x : x + width]


def run(node: Node, *arrays: np.ndarray) -> tuple[np.ndarray, bool]:
    """What a convolution gives, and whether it was done by tiles."""
    graph = Graph(list(node.inputs), [node])
    program = compile_native(graph)
    result = program.entry(*[buffers.from_array(a) for a in arrays])
    by_tiles = any(isinstance(s.data, Kernel) and "tiles of" in s.data.schedule for s in program.all_steps)
    return buffers.to_array(result, graph.output_types[0]), by_tiles


def nodes_of(case: Any, rng: np.random.Generator) -> tuple[list[Node], list[np.ndarray], dict[str, Any]]:
    """A convolution and its gradients, and image, weights and cotangent."""
    images, channels, outputs, height, width, padding = case
    p: dict[str, Any] = {"strides": (1, 1), "padding": padding, "dilation": (1, 1), "groups": 1}
    x = rng.standard_normal((images, channels, height, width)).astype(np.float32)
    w = rng.standard_normal((outputs, channels, 3, 3)).astype(np.float32)
    first, second = (input_node(tensor_type(a.shape, D.float32)) for a in (x, w))
    out = conv.conv(first, second, **p)
    ct = rng.standard_normal(tuple(out.type.shape)).astype(np.float32)
    given = input_node(tensor_type(ct.shape, D.float32))
    by_image = conv.conv_grad_input(given, second, input_shape=x.shape, **p)
    by_weights = conv.conv_grad_weight(first, given, weight_shape=w.shape, **p)
    return [out, by_image, by_weights], [x, w, ct], p


def check(case: Any, seed: int) -> list[bool]:
    nodes, (x, w, ct), p = nodes_of(case, np.random.default_rng(seed))
    height, width = ct.shape[2:]
    (top, below), (left, right) = p["padding"]
    wanted = np.zeros(ct.shape)
    by_image = np.zeros((*x.shape[:2], x.shape[2] + top + below, x.shape[3] + left + right))
    by_weights = np.zeros(w.shape)
    for i, j, part in shifted(x, p["padding"], height, width):
        tap = w[:, :, i, j].astype(np.float64)
        wanted += np.einsum("nchw,oc->nohw", part, tap, optimize=True)
        by_image[:, :, i : i + height, j : j + width] += np.einsum("nohw,oc->nchw", ct, tap, optimize=True)
        by_weights[:, :, i, j] = np.einsum("nchw,nohw->oc", part, ct, optimize=True)
    by_image = by_image[:, :, top : top + x.shape[2], left : left + x.shape[3]]
    ways = []
    for node, arrays, right_one in zip(nodes, ((x, w), (ct, w), (x, ct)), (wanted, by_image, by_weights)):
        got, by_tiles = run(node, *arrays)
        np.testing.assert_allclose(got, right_one, rtol=0, atol=3e-5 * np.abs(right_one).max())
        ways.append(by_tiles)
    return ways


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_convolution_and_its_gradients(case: Any, always: None) -> None:
    assert check(case, 1) == [True, True, True]


def test_drawn_convolutions(always: None) -> None:
    rng = np.random.default_rng(3)
    for seed in range(6):
        images, channels, outputs = (int(rng.integers(1, top)) for top in (4, 40, 40))
        height, width = (int(rng.integers(3, 20)) for _ in range(2))
        pads = rng.integers(0, 3, 4).tolist()
        check((images, channels, outputs, height, width, ((pads[0], pads[1]), (pads[2], pads[3]))), seed)


def test_images_go_in_groups(always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd_steps, "GROUP_BYTES", 1 << 18)
    assert check((7, 16, 24, 11, 9, ((1, 1), (1, 1))), 5) == [True, True, True]


def test_it_is_chosen_where_it_pays_and_can_be_turned_off() -> None:
    case = (2, 64, 64, 28, 28, ((1, 1), (1, 1)))
    assert check(case, 6) == [True, True, True]
    ms.set_context(winograd=False)
    try:
        assert check(case, 7) == [False, False, False]
    finally:
        ms.set_context(winograd=True)
    assert check((1, 512, 512, 7, 7, ((1, 1), (1, 1))), 8) == [False, False, False]


def test_other_windows_are_left_to_the_library(always: None) -> None:
    x, w = (input_node(tensor_type(s, D.float32)) for s in ((2, 16, 12, 12), (16, 16, 3, 3)))
    window: dict[str, Any] = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    arrays = [np.ones(tuple(n.type.shape), np.float32) for n in (x, w)]
    for change in ({"strides": (2, 2)}, {"dilation": (2, 2)}, {"padding": ((3, 1), (1, 1))}):
        assert not run(conv.conv(x, w, **{**window, **change}), *arrays)[1]


def test_one_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="winograd"):
        ms.set_context(winograd="no")
