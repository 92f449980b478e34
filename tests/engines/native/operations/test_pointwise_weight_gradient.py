"""Gradients by weights of size 1 in 16 bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import conv_grad_weight
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.foundation import dtype as D


def gradient(x: Any, ct: Any, last: bool, **changes: Any) -> tuple[Any, Any]:
    """The program and its result, for images (n, positions, channels) or channels first."""
    inputs = [input_node(tensor_type(a.shape, D.from_any(a.dtype))) for a in (x, ct)]
    images = [S.transpose(i, permutation=(0, 3, 1, 2)) for i in inputs] if last else inputs
    shape = (images[1].shape[1], images[0].shape[1], 1, 1)
    params = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1, **changes}
    graph = Graph(inputs, [conv_grad_weight(*images, weight_shape=shape, **params)])
    program = compile_native(graph)
    return program, buffers.to_array(program.entry(*map(buffers.from_array, (x, ct))), program.outputs[0])


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("sizes", [(2, 5, 4), (1, 1, 1), (8, 7, 7), (3, 1, 6)])
def test_the_gradient_is_the_sum_over_positions(sizes: tuple[int, int, int], last: bool, kind: Any) -> None:
    random = np.random.default_rng(0)
    n, h, w = sizes
    x, ct = (random.integers(-4, 5, (n, h, w, c)).astype(kind) for c in (24, 17))
    want = np.einsum("nhwo,nhwc->oc", ct.astype(np.float64), x.astype(np.float64))[..., None, None]
    given = (x, ct) if last else tuple(np.ascontiguousarray(a.transpose(0, 3, 1, 2)) for a in (x, ct))
    _, got = gradient(*given, last)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2.0**-8)


def test_strided_gradients_are_still_convolutions() -> None:
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (2, 5, 5, 8)).astype(ml_dtypes.bfloat16)
    ct = random.integers(-4, 5, (2, 3, 3, 6)).astype(ml_dtypes.bfloat16)
    _, got = gradient(x, ct, True, strides=(2, 2))
    want = np.einsum("nhwo,nhwc->oc", ct.astype(np.float64), x[:, ::2, ::2].astype(np.float64))[..., None, None]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2.0**-8)
