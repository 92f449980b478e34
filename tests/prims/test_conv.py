"""Convolution against SciPy and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.engines.reference import apply
from mycel._src.foundation.dtype import float16, float32, float64, int32
from mycel._src.foundation.errors import ShapeError

Shape = tuple[Any, ...]


def geometry(rank: int, strides: int = 1, padding: Any = 0, dilation: int = 1, groups: int = 1) -> dict[str, Any]:
    pads = padding if isinstance(padding, tuple) else ((padding, padding),) * rank
    return {"strides": (strides,) * rank, "padding": pads, "dilation": (dilation,) * rank, "groups": groups}


def t(*shape: Any, dtype: Any = float32) -> TensorType:
    return tensor_type(shape, dtype)


def slow_conv(x: Any, w: Any, *, strides: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """By SciPy: correlate, with zeros in a dilated kernel, then keep every stride-th result."""
    spread = np.zeros((*w.shape[:2], *((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation))))
    spread[(slice(None), slice(None)) + tuple(slice(None, None, d) for d in dilation)] = w
    wide = np.pad(x, ((0, 0), (0, 0), *padding))
    each, per_group = w.shape[0] // groups, w.shape[1]
    rows = []
    for image in wide:
        maps = []
        for o in range(w.shape[0]):
            first = (o // each) * per_group
            maps.append(sum(signal.correlate(image[first + c], spread[o, c], "valid") for c in range(per_group)))
        rows.append(np.stack(maps))
    return np.stack(rows)[(slice(None), slice(None)) + tuple(slice(None, None, s) for s in strides)]


GEOMETRIES = [
    ((2, 3, 9), (4, 3, 3), geometry(1)),
    ((2, 4, 11), (6, 2, 3), geometry(1, 3, ((2, 1),), 2, 2)),
    ((2, 3, 8, 7), (5, 3, 3, 2), geometry(2, 2, ((1, 0), (0, 2)))),
    ((1, 6, 7, 9), (6, 1, 3, 3), geometry(2, 1, 1, 2, 6)),
    ((1, 4, 5, 6, 4), (4, 2, 2, 3, 2), geometry(3, 2, 1, 1, 2)),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "params"), GEOMETRIES)
def test_conv_is_correlation(x_shape: Shape, w_shape: Shape, params: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
    np.testing.assert_allclose(apply(conv, [x, w], params), slow_conv(x, w, **params), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("x_shape", "w_shape", "params"), GEOMETRIES)
def test_gradients_are_transposes(x_shape: Shape, w_shape: Shape, params: dict[str, Any]) -> None:
    """<conv(x, w), ct> = <x, conv_grad_input(ct, w)> = <w, conv_grad_weight(x, ct)>, with conv from
    SciPy.
    """
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
    y = slow_conv(x, w, **params)
    ct = rng.normal(size=y.shape)
    expected = (y * ct).sum()
    dx = apply(conv_grad_input, [ct, w], {"input_shape": x_shape, **params})
    dw = apply(conv_grad_weight, [x, ct], {"weight_shape": w_shape, **params})
    assert (x * dx).sum() == pytest.approx(expected, rel=1e-11)
    assert (w * dw).sum() == pytest.approx(expected, rel=1e-11)


def test_half_precision_accumulates_in_float32() -> None:
    x, w = np.full((1, 1024, 3), 1.0, np.float16), np.full((1, 1024, 3), 0.25, np.float16)
    x[0, 0, 0] = 0.001
    result = apply(conv, [x, w], geometry(1))
    assert result.dtype == np.float16
    assert result.item() == np.float16(1024 * 3 * 0.25 - 0.25)


def test_empty_batches_and_no_padding_of_rank_three() -> None:
    out = apply(conv, [np.zeros((0, 2, 4)), np.zeros((3, 2, 2))], geometry(1))
    assert out.shape == (0, 3, 3)
    dw = apply(conv_grad_weight, [np.zeros((0, 2, 4)), out], {"weight_shape": (3, 2, 2), **geometry(1)})
    np.testing.assert_array_equal(dw, np.zeros((3, 2, 2)))


def test_symbolic_sizes() -> None:
    n, h = symbol("n"), symbol("h", 8)
    same = conv.infer(t(n, 3, h, 16), t(8, 3, 3, 3), **geometry(2, 1, 1))
    assert same is t(n, 8, h, 16)
    half = conv.infer(t(n, 3, h, 16), t(8, 3, 3, 3), **geometry(2, 2, 1))
    assert half.shape == (n, 8, (h - 1) // 2 + 1, 8)
    assert conv_grad_input.infer(half, t(8, 3, 3, 3), input_shape=(n, 3, h, 16), **geometry(2, 2, 1)) is t(n, 3, h, 16)
    assert conv_grad_weight.infer(t(n, 3, h, 16), half, weight_shape=(8, 3, 3, 3), **geometry(2, 2, 1)) is t(8, 3, 3, 3)


@pytest.mark.parametrize(
    ("x", "w", "params", "text"),
    [
        (
            t(2, 3),
            t(4, 3),
            geometry(2),
            r"conv: the input float32\[2, 3\] must be \(N, C, \*spatial\) with 1 to 3 spatial dimensions",
        ),
        (t(2, 3, 4, 4), t(4, 3, 3), geometry(2), r"the weight float32\[4, 3, 3\] must have 4 dimensions"),
        (t(2, 3, 4), t(4, 2, 3), geometry(1), "3 input channels in 1 groups need a weight of shape"),
        (t(2, 4, 4), t(3, 2, 3), geometry(1, groups=2), "3 output channels do not divide into 2 groups"),
        (t(2, 4, 4), t(3, 4, 3), geometry(1, groups=0), "groups must be at least 1, not 0"),
        (
            t(2, 3, 4),
            t(4, 3, 5),
            geometry(1),
            "a window that spans 5 does not fit in spatial axis 0 of size 4 with padding",
        ),
        (t(2, 3, 4), t(4, 3, 3), geometry(1, dilation=2), "a window that spans 5 does not fit"),
        (
            t(2, 3, 4),
            t(4, 3, 3),
            geometry(1, strides=0),
            "stride 0 and dilation 1 of spatial axis 0 must be at least 1",
        ),
        (t(2, 3, 4), t(4, 3, 3), geometry(1, padding=-1), r"padding \(-1, -1\) of spatial axis 0 must be two sizes"),
        (t(2, 3, 4), t(4, 3, 3), geometry(2), r"conv: strides \(1, 1\) has 2 entries for 1 spatial dimensions"),
        (t(2, 3, 4), t(4, 3, 0), geometry(1), "must have at least 1 position on spatial axis 0"),
    ],
)
def test_shape_errors(x: TensorType, w: TensorType, params: dict[str, Any], text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        conv.infer(x, w, **params)


def test_type_errors() -> None:
    with pytest.raises(TypeError, match="conv: element types float32, float64 differ; cast one of them"):
        conv.infer(t(1, 1, 3), t(1, 1, 3, dtype=float64), **geometry(1))
    with pytest.raises(TypeError, match="conv takes floating tensors, not int32"):
        conv.infer(t(1, 1, 3, dtype=int32), t(1, 1, 3), **geometry(1))


def test_cotangents_must_fit() -> None:
    with pytest.raises(
        ShapeError, match=r"conv_grad_input: the cotangent is float32\[1, 1, 4\], but the convolution gives"
    ):
        conv_grad_input.infer(t(1, 1, 4), t(1, 1, 3), input_shape=(1, 1, 5), **geometry(1))
    with pytest.raises(ShapeError, match="conv_grad_weight: the cotangent is float16"):
        conv_grad_weight.infer(t(1, 1, 5), t(1, 1, 3, dtype=float16), weight_shape=(1, 1, 3), **geometry(1))
