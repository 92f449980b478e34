"""ONNX's signal operators: windows, Fourier transforms, and mel filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims import complex as complex_prims
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    as_type,
    kind_of,
    number,
    pad,
    reshaped,
    rule,
    same,
    sliced,
)

__all__: list[str] = []


@rule("HannWindow", "HammingWindow", "BlackmanWindow", known=(0,))
def _window(op: Operation, size: Array) -> Any:
    count = int(number(size))
    if count < 0 or count > 1 << 28:
        raise op.wrong(f"a window of {count} elements")
    steps = count if op.get("periodic", 1) else max(count - 1, 1)
    turn = 2 * np.pi * np.arange(count) / steps
    parts = {
        "HannWindow": (0.5, 0.5, 0.0),
        "HammingWindow": (25 / 46, 21 / 46, 0.0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }
    a, b, c = parts[op.operator]
    return (a - b * np.cos(turn) + c * np.cos(2 * turn)).astype(kind_of(op.get("output_datatype", 1), op))


@rule("MelWeightMatrix", known=(0, 1, 2, 3, 4))
def _mel(op: Operation, bins: Array, length: Array, rate: Array, low: Array, high: Array) -> Any:
    count, size = int(number(bins)), int(number(length))
    ends = [2595 * np.log10(1 + float(number(f)) / 700) for f in (low, high)]
    mels = ends[0] + np.arange(count + 2) * (ends[1] - ends[0]) / (count + 2)
    places = np.floor((size + 1) * (700 * (10 ** (mels / 2595) - 1)) / float(number(rate))).astype(np.int64)
    out = np.zeros((size // 2 + 1, count))
    for i in range(count):
        first, top, last = places[i : i + 3]
        if top == first:
            out[top, i] = 1
        else:
            out[first : top + 1, i] = (np.arange(first, top + 1) - first) / (top - first)
        if last > top:
            out[top:last, i] = (last - np.arange(top, last)) / (last - top)
    return out.astype(kind_of(op.get("output_datatype", 1), op))


@rule("DFT", known=(1, 2))
def _dft(op: Operation, x: Tensor, length: Any = None, axis: Any = None) -> Tensor:
    default = op.get("axis", 1) if op.version < 20 else -2
    along = int(number(axis)) if axis is not None else default
    along = along % x.ndim
    if along == x.ndim - 1:
        raise op.wrong("the last axis holds the parts of complex numbers")
    size = int(number(length)) if length is not None else int(x.shape[along])
    inverse, half = bool(op.get("inverse", 0)), bool(op.get("onesided", 0))
    kind = x.dtype
    wide = as_type(x, D.float32) if kind.itemsize < 4 else x
    n = wide.shape[along]
    is_real = wide.shape[-1] == 1
    if inverse and half:
        return as_type(_real_inverse(wide, along, size), kind)
    if size != n:
        amounts = [size - n if i == along else 0 for i in range(x.ndim)]
        wide = pad(wide, [0] * x.ndim, amounts)
    re = reshaped(sliced(wide, -1, 0, 1), wide.shape[:-1])
    im = None if is_real else reshaped(sliced(wide, -1, 1, 2), wide.shape[:-1])
    turned = (
        ops.fft(re if im is None else _complex(re, im), dim=along)
        if not inverse
        else ops.ifft(re if im is None else _complex(re, im), dim=along)
    )
    if half:
        turned = _cut(turned, along, size // 2 + 1)
    return as_type(_parts(turned), kind)


def _real_inverse(x: Tensor, axis: int, size: int) -> Tensor:
    """Return the real signal whose one-sided spectrum is given."""
    spectrum = _complex(*(reshaped(sliced(x, -1, i, i + 1), x.shape[:-1]) for i in range(2)))
    found = ops.irfft(spectrum, n=size if size != x.shape[axis] else 2 * (size - 1), dim=axis)
    return reshaped(found, (*found.shape, 1))


def _complex(re: Tensor, im: Tensor) -> Tensor:
    found: Tensor = apply(complex_prims.complex_, re, im)
    return found


def _cut(x: Tensor, axis: int, count: int) -> Tensor:
    return sliced(x, axis, 0, count)


def _parts(x: Tensor) -> Tensor:
    re, im = ops.real(x), ops.imag(x)
    return apply(S.CONCAT, reshaped(re, (*re.shape, 1)), reshaped(im, (*im.shape, 1)), axis=re.ndim)


@rule("STFT", known=(1, 3))
def _stft(op: Operation, x: Tensor, step: Array, window: Any = None, length: Any = None) -> Tensor:
    hop = int(number(step))
    size = int(number(length)) if length is not None else int(window.shape[0])
    half = bool(op.get("onesided", 1))
    count = (int(x.shape[1]) - size) // hop + 1
    if hop < 1 or count < 1:
        raise op.wrong(f"frames of {size} every {hop} of a signal of {x.shape[1]}")
    places = np.arange(count)[:, None] * hop + np.arange(size)

    def framed(part: int) -> Tensor:
        signal = reshaped(sliced(x, 2, part, part + 1), x.shape[:2])
        frames = apply(I.take, signal, same(places, D.int64), axis=1)
        return frames if window is None else apply(E.mul, frames, window)

    frames = framed(0) if x.shape[2] == 1 else _complex(framed(0), framed(1))
    turned = ops.fft(frames, dim=2)
    return _parts(_cut(turned, 2, size // 2 + 1) if half else turned)
