"""Layers of bytes on emulated microcontrollers: the reference's integers, instructions and code."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.convolution.window import window_sum
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul, requantize
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_conv, rescaled_pool
from mycel._src.compiler.transforms.quantise.scales import multipliers
from mycel._src.engines.aot.library import library_of
from mycel._src.engines.aot.targets import named
from mycel._src.engines.native.llvm.target import making_for
from mycel._src.engines.native.operations.microcontroller.microcontroller_rules import has_byte_kernel
from mycel._src.engines.native.program.compiling import prepared
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import int8, int32
from mycel.deploy import build
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded
from tests.deploy.random_bytes import RandomBytes, check_seed
from tests.deploy.random_graphs import EMULATED
from tests.deploy.tiny import NETWORKS, quantised

needs_boards = pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
RNG = np.random.default_rng(3)
TARGETS = ("cortex-m3", "cortex-m4", "cortex-m55")


def bytes_of(*shape: int) -> np.ndarray[Any, Any]:
    # The ends of the type, too: products of these are the largest.
    return RNG.choice([-128, 127, *range(-40, 40)], shape).astype(np.int8)


def rescaled(total: Node, channels: int, rounding: str = "single", zero: int = -128) -> Node:
    """A sum with a bias in the levels of another scale, of each channel its own."""
    spread = (channels,) + (1,) * (total.type.rank - 2)
    whole, shift = multipliers(RNG.uniform(1e-4, 6e-3, spread))
    total = E.add(total, constant(RNG.integers(-3000, 3000, spread).astype(np.int32)))
    ends = {"zero": zero, "low": -128, "high": 127, "rounding": rounding, "dtype": int8}
    return requantize(total, constant(whole), constant(shift), **ends)


# Image, outputs, kernel, strides, padding, groups, zero point, dilation.
LAYERS: tuple[tuple[Any, ...], ...] = (
    ((1, 8, 5, 5), 12, (1, 1), (1, 1), ((0, 0), (0, 0)), 1, -128),
    ((1, 6, 5, 3), 7, (1, 1), (1, 1), ((0, 0), (0, 0)), 1, 127),
    ((2, 16, 5, 4), 10, (3, 3), (1, 1), ((1, 1), (1, 1)), 1, 5),
    ((1, 3, 9, 8), 8, (3, 3), (2, 2), ((0, 1), (0, 1)), 1, -3),
    ((1, 1, 13, 10), 9, (10, 4), (2, 2), ((4, 5), (1, 1)), 1, 83),
    ((1, 5, 6, 7), 4, (2, 3), (3, 1), ((2, 0), (3, 2)), 1, -128),
    ((1, 8, 6, 5), 8, (3, 3), (1, 1), ((1, 1), (1, 1)), 8, 127),
    ((2, 7, 7, 6), 7, (3, 3), (2, 2), ((0, 1), (1, 1)), 7, -17),
    ((1, 4, 5, 9), 4, (1, 5), (1, 3), ((0, 0), (2, 4)), 4, 0),
    ((1, 20, 4, 4), 33, (2, 2), (2, 2), ((0, 0), (0, 0)), 1, 0),
    ((1, 5, 9, 8), 6, (3, 3), (1, 2), ((2, 1), (2, 3)), 1, 7, (2, 2)),
    ((2, 8, 6, 6), 10, (3, 2), (1, 1), ((1, 1), (0, 1)), 2, -5),
    ((1, 12, 7, 6), 6, (1, 1), (1, 1), ((0, 0), (0, 0)), 3, 127),
    ((1, 6, 9, 9), 6, (3, 3), (1, 1), ((2, 2), (3, 1)), 6, -4, (2, 3)),
    ((1, 3, 6, 6), 6, (2, 3), (2, 1), ((0, 1), (1, 1)), 3, 9),
    ((1, 4, 9, 8), 4, (7, 7), (1, 1), ((3, 3), (3, 3)), 4, 2),
)


def layers(rounding: str) -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    """All layers as one graph, each of an input of its own, and a dense layer."""
    inputs, outputs, arrays = [], [], []
    for shape, count, kernel, strides, padding, groups, zero, *more in LAYERS:
        x = input_node(tensor_type(shape, int8), f"x{len(inputs)}")
        w = constant(bytes_of(count, shape[1] // groups, *kernel))
        total = int_conv(
            x, w, strides=strides, padding=padding, groups=groups, zero=zero, dilation=(more or [(1, 1)])[0]
        )
        inputs.append(x)
        arrays.append(bytes_of(*shape))
        outputs.append(rescaled(total, count, rounding, zero))
    for rows, size, count in ((1, 21, 10), (5, 32, 9)):
        x = input_node(tensor_type((rows, size), int8), f"x{len(inputs)}")
        inputs.append(x)
        arrays.append(bytes_of(rows, size))
        total = int_matmul(x, constant(bytes_of(size, count)), a_zero=-9, b_zero=0)
        outputs.append(rescaled(total, count, rounding, 11))
        # The sums themselves.
        outputs.append(int_matmul(x, constant(bytes_of(size, count + 3)), a_zero=7, b_zero=0))
    return Graph(inputs, outputs, "layers"), arrays


@needs_boards
@pytest.mark.parametrize(("target", "rounding"), [*((t, "single") for t in TARGETS), ("cortex-m55", "double")])
def test_layers(target: str, rounding: str, tmp_path: Path) -> None:
    graph, arrays = layers(rounding)
    library = library_of(graph, [f"x{k}" for k in range(len(arrays))], [], {}, target, "layers")
    found = run(library, [arrays], tmp_path).results[0]
    for one, other, layer in zip(found, evaluate(graph, arrays), (*LAYERS, "dense", "sums", "rows", "sums of rows")):
        np.testing.assert_array_equal(one, other, err_msg=str(layer))


@pytest.mark.parametrize("target", [*TARGETS, "cortex-m0plus", "riscv32"])
def test_each_layer_has_a_kernel(target: str) -> None:
    graph, _ = layers("single")
    with making_for(named(target)):
        nodes = [n for n in prepared(graph).nodes if n.prim is rescaled_conv]
        assert len(nodes) == len(graph.outputs)
        assert all(map(has_byte_kernel, nodes))


def test_other_targets_have_nests() -> None:
    graph, arrays = layers("single")
    for target in ("x86-64-v3", "aarch64", "wasm32"):
        with making_for(named(target)):
            assert not any(n.prim is rescaled_conv for n in prepared(graph).nodes)


AVERAGES: tuple[tuple[Any, ...], ...] = (
    ((2, 6, 7, 5), (3, 3), (1, 1), ((1, 1), (1, 1))),
    ((1, 8, 6, 9), (2, 3), (2, 1), ((0, 1), (2, 0))),
    ((1, 5, 17, 17), (17, 17), (1, 1), ((0, 0), (0, 0))),
    ((1, 4, 8, 8), (4, 4), (3, 3), ((2, 3), (1, 2))),
)


def averages(counted: bool) -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    """Averages of the places in the image, or with any number for each position."""
    inputs, outputs, arrays = [], [], []
    for shape, window, strides, padding in AVERAGES:
        x = input_node(tensor_type(shape, int8), f"x{len(inputs)}")
        inputs.append(x)
        arrays.append(bytes_of(*shape))
        p: dict[str, Any] = {"window": window, "strides": strides, "padding": padding}
        total = window_sum(E.sub(E.cast(x, dtype=int32), -7), **p)
        (counts,) = evaluate(Graph([], [window_sum(constant(np.ones((1, 1, *shape[2:]), np.int32)), **p)]), [])
        whole, shift = multipliers(0.9 / np.maximum(counts, 1) if counted else RNG.uniform(0.01, 0.3, counts.shape))
        ends: dict[str, Any] = {"zero": -20, "low": -128, "high": 127, "dtype": int8, "rounding": "single"}
        outputs.append(requantize(total, constant(whole), constant(shift), **ends))
    return Graph(inputs, outputs, "averages"), arrays


@needs_boards
@pytest.mark.parametrize("target", TARGETS)
def test_averages_of_what_is_in_the_image(target: str, tmp_path: Path) -> None:
    graph, arrays = averages(True)
    with making_for(named(target)):
        assert sum(n.prim is rescaled_pool for n in prepared(graph).nodes) == len(AVERAGES)
    library = library_of(graph, [f"x{k}" for k in range(len(arrays))], [], {}, target, "averages")
    found = run(library, [arrays], tmp_path).results[0]
    for one, other in zip(found, evaluate(graph, arrays)):
        np.testing.assert_array_equal(one, other)


def test_averages_by_position_have_nests() -> None:
    graph, arrays = averages(False)
    with making_for(named("cortex-m4")):
        # One number for one position is that of all.
        assert sum(n.prim is rescaled_pool for n in prepared(graph).nodes) == 1
    library = library_of(graph, [f"x{k}" for k in range(len(arrays))], [], {}, "host", "averages")
    for one, other in zip(Loaded(library)(*arrays), evaluate(graph, arrays)):
        np.testing.assert_array_equal(one, other)


def test_what_has_no_kernel_of_bytes() -> None:
    x = input_node(tensor_type((1, 4, 5, 5), int8), "x")
    plain: dict[str, Any] = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "zero": 0}
    wide = input_node(tensor_type((1, 4, 9, 9), int8), "x")
    many = rescaled(int_conv(wide, constant(bytes_of(4, 1, 8, 8)), groups=4, **plain), 4)
    with making_for(named("cortex-m4")):
        assert not any(n.prim is rescaled_conv for n in prepared(Graph([wide], [many])).nodes)
        # A sum that is read elsewhere too has to be in memory.
        total = int_conv(x, constant(bytes_of(4, 4, 3, 3)), groups=1, **plain)
        both = Graph([x], [rescaled(total, 4), total])
        assert not any(n.prim is rescaled_conv for n in prepared(both).nodes)


@needs_boards
@pytest.mark.parametrize(
    ("target", "seed"),
    [
        ("cortex-m3", 5),
        ("cortex-m4", 17),
        ("cortex-m4", 930020),
        ("cortex-m55", 3),
        ("cortex-m55", 157),
        ("cortex-m55", 920008),
    ],
)
def test_random_networks(target: str, seed: int, tmp_path: Path) -> None:
    """Chains of all kinds of layers; `python -m tests.deploy.random_bytes` checks more."""
    assert RandomBytes(seed).graph.outputs
    assert not check_seed(seed, target, tmp_path)


@pytest.mark.parametrize("target", ("aarch64", "armv7-a", "riscv64", "wasm32"))
def test_random_networks_elsewhere(target: str, tmp_path: Path) -> None:
    if not all(map(shutil.which, EMULATED.get(target, ("node",)))):
        pytest.skip(f"nothing runs code for {target} here")
    # A depthwise convolution of images with one column, whose rows lie in the padding; and products
    # of padding alone.
    for seed in (1003, 1011, 910124, 920110):
        assert not check_seed(seed, target, tmp_path)


# Instructions for each product: what CMSIS-NN's kernels take is 2.1 to 2.3 on M4 and 0.5 on M55.
@needs_boards
@pytest.mark.parametrize(("target", "most"), [("cortex-m4", 1.75), ("cortex-m55", 0.55)])
def test_keywords(target: str, most: float, tmp_path: Path) -> None:
    small, x = quantised("keywords")
    library = build(small, ms.Tensor(x), target=target, name="keywords", stripes=False)
    done = run(library, [[x]], tmp_path)
    np.testing.assert_array_equal(done.results[0][0], ms.jit(small)(ms.Tensor(x)).asnumpy())
    tiny = NETWORKS["keywords"]
    assert done.instructions[0] < most * tiny.products
    assert library.code_bytes < tiny.code_bytes
