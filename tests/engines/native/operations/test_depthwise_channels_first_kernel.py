"""Kernels of depthwise convolutions and their gradients against sums over shifted images in
float64.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.convolution import conv
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.foundation import dtype as D

Window = dict[str, Any]


def window(stride: int = 1, padding: Any = ((1, 1), (1, 1)), dilation: tuple[int, int] = (1, 1)) -> Window:
    return {"strides": (stride, 1), "padding": padding, "dilation": dilation}


CASES = [
    ((2, 3, 9, 21), (3, 3), window()),
    ((2, 3, 7, 16), (3, 3), window(padding=((0, 0), (0, 0)))),
    ((1, 4, 10, 33), (5, 5), window(padding=((2, 2), (2, 2)))),
    ((3, 2, 11, 40), (3, 2), window(stride=2, padding=((2, 0), (0, 3)))),
    ((1, 2, 12, 18), (2, 3), window(padding=((1, 4), (3, 1)), dilation=(3, 2))),
    ((2, 2, 5, 6), (1, 1), window(padding=((2, 1), (0, 5)))),
    ((2, 5, 1, 50), (1, 5), window(stride=3, padding=((0, 0), (2, 2)))),
    ((2, 3, 9, 37), (7, 7), window(padding=((3, 3), (3, 3)))),
    ((2, 3, 1, 100), (1, 31), window(padding=((0, 0), (15, 15)))),
]


def parts(kernel: tuple[int, int], p: Window, rows: int, columns: int) -> Any:
    """For each tap the slices of the padded image that it meets."""
    (sy, sx), (dy, dx) = p["strides"], p["dilation"]
    for ky, kx in itertools.product(range(kernel[0]), range(kernel[1])):
        where = slice(ky * dy, ky * dy + sy * (rows - 1) + 1, sy), slice(kx * dx, kx * dx + sx * (columns - 1) + 1, sx)
        yield ky, kx, (slice(None), slice(None), *where)


def run(graph: Graph, *arrays: np.ndarray) -> tuple[np.ndarray, list[str]]:
    program = compile_native(graph)
    result = program.entry(*[buffers.from_array(a.astype(np.float32)) for a in arrays])
    return buffers.to_array(result, graph.output_types[0]), [s.kind for s in program.all_steps]


@pytest.mark.parametrize("image, kernel, p", CASES, ids=str)
def test_a_convolution_and_its_gradients_are_kernels(
    image: tuple[int, ...], kernel: tuple[int, int], p: Window
) -> None:
    random = np.random.default_rng(1)
    channels = image[1]
    x, w = random.standard_normal(image), random.standard_normal((channels, 1, *kernel))
    nodes = [input_node(tensor_type(a.shape, D.float32)) for a in (x, w)]
    out = conv.conv(*nodes, groups=channels, **p)
    shape = tuple(out.type.shape)
    ct = random.standard_normal(shape)
    padded = np.pad(x, ((0, 0), (0, 0), *p["padding"]))
    wanted, by_image, by_kernel = np.zeros(shape), np.zeros(padded.shape), np.zeros(w.shape)
    for ky, kx, where in parts(kernel, p, *shape[2:]):
        tap = w[None, :, 0, ky, kx][..., None, None]
        wanted += padded[where] * tap
        by_image[where] += ct * tap
        by_kernel[:, 0, ky, kx] = np.einsum("nchw,nchw->c", padded[where], ct)
    (top, _), (left, _) = p["padding"]
    by_image = by_image[:, :, top : top + image[2], left : left + image[3]]

    got, kinds = run(Graph(nodes, [out]), x, w)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    assert kinds == ["kernel"] or w[0].size > 25

    given = input_node(tensor_type(shape, D.float32))
    made = conv.conv_grad_weight(nodes[0], given, weight_shape=w.shape, groups=channels, **p)
    got, kinds = run(Graph([nodes[0], given], [made]), x, ct)
    np.testing.assert_allclose(got, by_kernel, rtol=1e-4, atol=1e-4)
    assert kinds == ["kernel"]

    made = conv.conv_grad_input(given, nodes[1], input_shape=image, groups=channels, **p)
    got, kinds = run(Graph([given, nodes[1]], [made]), ct, w)
    np.testing.assert_allclose(got, by_image, rtol=1e-5, atol=1e-5)
    assert kinds == ["kernel"] or p["strides"] != (1, 1)


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("taps, low, high", [(1, 0, 0), (3, 1, 1), (5, 4, 0), (31, 15, 15), (64, 3, 70)])
def test_sequences_are_images_of_one_row(taps: int, low: int, high: int, dilation: int) -> None:
    random = np.random.default_rng(taps)
    length = 150
    x, w = random.standard_normal((2, 3, length)), random.standard_normal((3, 1, taps))
    nodes = [input_node(tensor_type(a.shape, D.float32)) for a in (x, w)]
    p: Window = {"strides": (1,), "padding": ((low, high),), "dilation": (dilation,)}
    out = conv.conv(*nodes, groups=3, **p)
    columns = length + low + high - dilation * (taps - 1)
    ct = random.standard_normal((2, 3, columns))
    padded = np.pad(x, ((0, 0), (0, 0), (low, high)))
    wanted, by_x, by_w = np.zeros(ct.shape), np.zeros(padded.shape), np.zeros(w.shape)
    for k in range(taps):
        where = slice(k * dilation, k * dilation + columns)
        wanted += padded[..., where] * w[:, 0, k, None]
        by_x[..., where] += ct * w[:, 0, k, None]
        by_w[:, 0, k] = np.einsum("ncw,ncw->c", padded[..., where], ct)
    given = input_node(tensor_type(ct.shape, D.float32))
    for graph, arrays, sums in (
        (Graph(nodes, [out]), (x, w), wanted),
        (
            Graph([given, nodes[1]], [conv.conv_grad_input(given, nodes[1], input_shape=x.shape, groups=3, **p)]),
            (ct, w),
            by_x[..., low : low + length],
        ),
        (
            Graph([nodes[0], given], [conv.conv_grad_weight(nodes[0], given, weight_shape=w.shape, groups=3, **p)]),
            (x, ct),
            by_w,
        ),
    ):
        got, kinds = run(graph, *arrays)
        assert kinds == ["kernel"]
        np.testing.assert_allclose(got, sums, rtol=1e-4, atol=1e-4)


def test_parts_of_images_and_turned_kernels_are_read_as_they_lie() -> None:
    random = np.random.default_rng(2)
    x, w = random.standard_normal((2, 6, 12, 20)).astype("f"), random.standard_normal((3, 3, 1, 3)).astype("f")

    def part(a: Tensor, b: Tensor) -> Tensor:
        return ops.conv2d(a[:, 1:4, 2:11, 3:], b.transpose(3, 2, 1, 0), groups=3)

    turned = w.transpose(3, 2, 1, 0).astype(np.float64)
    cut = x[:, 1:4, 2:11, 3:]
    wanted = np.zeros((2, 3, 7, 15))
    for ky, kx, where in parts((3, 3), window(), 7, 15):
        wanted += cut[where] * turned[None, :, 0, ky, kx][..., None, None]
    np.testing.assert_allclose(ms.jit(part)(Tensor(x), Tensor(w)).asnumpy(), wanted, rtol=1e-5, atol=1e-5)


def test_one_kernel_serves_images_of_many_sizes() -> None:
    step = ms.jit(lambda a, b: ops.conv2d(a, b, pad_mode="pad", padding=1, groups=4))
    w = np.random.default_rng(3).standard_normal((4, 1, 3, 3)).astype("f")
    for size in (5, 9, 17, 30):
        x = np.random.default_rng(size).standard_normal((2, 4, size, size + 3)).astype("f")
        padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        wanted = sum(
            padded[where] * w[None, :, 0, ky, kx][..., None, None]
            for ky, kx, where in parts((3, 3), window(), size, size + 3)
        )
        np.testing.assert_allclose(step(Tensor(x), Tensor(w)).asnumpy(), wanted, rtol=1e-5, atol=1e-5)
