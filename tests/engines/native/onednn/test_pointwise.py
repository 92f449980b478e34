"""Convolutions of size 1 against NumPy in float64: every layout of the images and the weights, and
windows that leave positions out.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.engines.native.onednn import binding as dense

pytestmark = pytest.mark.skipif(not dense.available(), reason=str(dense.why_unavailable()))

WINDOW = dict(strides=(1, 1), padding_low=(0, 0), padding_high=(0, 0), dilation=(1, 1), groups=1)
FIRST, LAST, TURNED = (0, 1, 2, 3), (0, 2, 3, 1), (1, 0, 2, 3)
N, C, O, H, W = 3, 10, 7, 12, 13


def laid(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The float32 values with their axes in memory in `order`."""
    return np.ascontiguousarray(array.astype(np.float32).transpose(order)).transpose(np.argsort(order))


def operand(array: np.ndarray) -> dense.Operand:
    return dense.Operand(array.shape, tuple(s // array.itemsize for s in array.strides), "float32")


def values() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return (
        random.standard_normal((N, C, H, W)),
        random.standard_normal((O, C, 1, 1)),
        random.standard_normal((N, O, H, W)),
    )


@pytest.mark.parametrize(
    "source, kernel, result", list(itertools.product((FIRST, LAST), (FIRST, TURNED), (FIRST, LAST))), ids=str
)
def test_every_direction_in_every_layout(
    source: tuple[int, ...], kernel: tuple[int, ...], result: tuple[int, ...]
) -> None:
    x, w, g = values()
    xs, ws, gs = laid(x, source), laid(w, kernel), laid(g, result)

    out = laid(np.full_like(g, np.nan), result)
    dense.conv_forward(operand(xs), operand(ws), operand(out), **WINDOW)(src=xs, weights=ws, dst=out)
    np.testing.assert_allclose(out, np.einsum("nchw,oc->nohw", x, w[..., 0, 0]), rtol=1e-4, atol=1e-4)

    by_image = laid(np.full_like(x, np.nan), source)
    plan = dense.conv_backward_data(operand(gs), operand(ws), operand(by_image), **WINDOW)
    plan(diff_dst=gs, weights=ws, diff_src=by_image)
    np.testing.assert_allclose(by_image, np.einsum("nohw,oc->nchw", g, w[..., 0, 0]), rtol=1e-4, atol=1e-4)
    assert [c.description for c in plan.calls] == ["product"]

    by_weights = laid(np.full_like(w, np.nan), kernel)
    plan = dense.conv_backward_weights(operand(xs), operand(gs), operand(by_weights), **WINDOW)
    plan(src=xs, diff_dst=gs, diff_weights=by_weights)
    np.testing.assert_allclose(by_weights[..., 0, 0], np.einsum("nohw,nchw->oc", g, x), rtol=1e-4, atol=1e-3)
    assert [c.description for c in plan.calls] == ["product"]
    assert plan.flops == 2 * N * C * O * H * W


def test_a_part_of_the_channels_leaves_the_others_alone() -> None:
    x, w, g = values()
    wide = laid(np.full((N, 2 * C, H, W), 7.0), LAST)
    part = wide[:, 3 : 3 + C]
    gs, ws = laid(g, LAST), laid(w, FIRST)
    dense.conv_backward_data(operand(gs), operand(ws), operand(part), **WINDOW)(diff_dst=gs, weights=ws, diff_src=part)
    np.testing.assert_allclose(part, np.einsum("nohw,oc->nchw", g, w[..., 0, 0]), rtol=1e-4, atol=1e-4)
    assert (wide[:, :3] == 7).all() and (wide[:, 3 + C :] == 7).all()


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 1), (5, 3)])
@pytest.mark.parametrize("size", [(12, 13), (9, 1)])
def test_strided_gradients_of_a_compiled_convolution(stride: tuple[int, int], size: tuple[int, int]) -> None:
    random = np.random.default_rng(5)
    x, w = random.standard_normal((2, 5, *size)), random.standard_normal((4, 5, 1, 1))
    met = x[:, :, :: stride[0], :: stride[1]]
    out = np.einsum("nchw,oc->nohw", met, w[..., 0, 0])

    def weighted(a: Tensor, b: Tensor) -> Tensor:
        return ops.sin(ops.conv2d(a, b, stride=stride)).sum()

    by_image, by_weights = ms.jit(ms.grad(weighted, (0, 1)))(Tensor(x.astype(np.float32)), Tensor(w.astype(np.float32)))
    wanted = np.zeros_like(x)
    wanted[:, :, :: stride[0], :: stride[1]] = np.einsum("nohw,oc->nchw", np.cos(out), w[..., 0, 0])
    np.testing.assert_allclose(by_image.asnumpy(), wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        by_weights.asnumpy()[..., 0, 0], np.einsum("nohw,nchw->oc", np.cos(out), met), rtol=1e-3, atol=1e-4
    )


def test_strided_gradient_of_a_kernel_for_wide_blocks() -> None:
    random = np.random.default_rng(7)
    x, g = random.standard_normal((2, 16, 9, 8)), random.standard_normal((2, 20, 5, 4))
    wanted = np.zeros((20, 16, 3, 3))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for ky, kx in itertools.product(range(3), range(3)):
        patch = padded[:, :, ky : ky + 9 : 2, kx : kx + 7 : 2]
        wanted[:, :, ky, kx] = np.einsum("nohw,nchw->oc", g, patch)
    xs, gs, out = laid(x, LAST), laid(g, LAST), np.full(wanted.shape, np.nan, np.float32)
    window = dict(strides=(2, 2), padding_low=(1, 1), padding_high=(1, 1), dilation=(1, 1), groups=1)
    plan = dense.conv_backward_weights(operand(xs), operand(gs), operand(out), **window)
    plan(src=xs, diff_dst=gs, diff_weights=out)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stride", [1, 2])
def test_many_weights_are_taken_as_they_lie(stride: int) -> None:
    random = np.random.default_rng(11)
    x, w = random.standard_normal((2, 512, 3, 4)), random.standard_normal((1024, 512, 1, 1)) / 16
    xs, ws = laid(x, LAST), laid(w, FIRST)
    if stride == 1:
        out = laid(np.full((2, 1024, 3, 4), np.nan), LAST)
        plan = dense.conv_forward(operand(xs), operand(ws), operand(out), **WINDOW)
        plan(src=xs, weights=ws, dst=out)
        assert [c.description.split()[0] for c in plan.calls] == ["matmul"]
        assert list(plan.operands) == ["src", "weights", "dst"]
    step = ms.jit(lambda a, b: ops.tanh(ops.conv2d(a, b, stride=stride)) + 1)
    wanted = np.einsum("nchw,oc->nohw", x[:, :, ::stride, ::stride], w[..., 0, 0])
    if stride == 1:
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
    got = step(Tensor(x.astype(np.float32)), Tensor(w.astype(np.float32))).asnumpy()
    np.testing.assert_allclose(got, np.tanh(wanted) + 1, rtol=1e-4, atol=1e-4)
