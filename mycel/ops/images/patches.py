"""Windows of images: patches as channels, glimpses around given places, mirrored borders, and
grey-scale dilation.

Patches are in the order of TensorFlow, where these operations come from: the place in the window is
slowest and the channel fastest. Dilation is the maximum over a window of the image plus a
structuring function (Serra, "Image Analysis and Mathematical Morphology", 1982); places outside of
the image do not count.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import window as window_prims
from mycel._src.compiler.prims.convolution.conv import window_output
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import gather_scatter, random
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    numbers,
    operand,
    operands,
    reshaped,
    run,
    select,
    shape_of,
    take_slice,
)
from mycel.ops.arrange import padded
from mycel.ops.convolution import per_axis, same_padding

__all__ = ["dilation2d", "extract_glimpse", "extract_patches", "image_gradients", "mirror_pad"]

Ints = tuple[int, ...]


def _spatial(name: str, parameter: str, value: Any, rank: int) -> Ints:
    """Return one positive int for each spatial axis."""
    found = per_axis(name, parameter, value, rank)
    if any(v < 1 for v in found):
        raise ValueError(f"{name}: {parameter} must be at least 1, not {value}")
    return found


def _windows(
    name: str, x: Tensor, kernel: Ints, strides: Ints, rates: Ints, padding: Any, fill: Any
) -> list[tuple[Ints, Tensor]]:
    """Return for each place of a window the part of (N, C, *spatial) that all windows
    have there.
    """
    mode = arguments.one_of(
        name, "padding", padding.lower() if isinstance(padding, str) else padding, ("valid", "same")
    )
    spatial = tuple(int(d) for d in x.shape[2:])
    pairs = same_padding(spatial, kernel, strides, rates) if mode == "same" else ((0, 0),) * len(kernel)
    low, high = (0, 0, *(a for a, _ in pairs)), (0, 0, *(b for _, b in pairs))
    x = run(S.PAD, x, as_tensor(fill, x.dtype), low=low, high=high, interior=(0,) * x.ndim)
    out = window_output(name, x.shape[2:], kernel, strides, ((0, 0),) * len(kernel), rates)
    found = []
    for place in itertools.product(*(range(k) for k in kernel)):
        starts = tuple(p * r for p, r in zip(place, rates))
        stops = tuple(a + (n - 1) * s + 1 for a, n, s in zip(starts, out, strides))
        part = run(S.SLICE, x, starts=(0, 0, *starts), stops=(*x.shape[:2], *stops), steps=(1, 1, *strides))
        found.append((place, part))
    return found


def extract_patches(name: str, input: Any, rank: int, kernel: Any, strides: Any, rates: Any, padding: str) -> Tensor:
    """Return the windows of `input` (N, C, *spatial) as channels: (N, prod(kernel) C, *windows).

    There are `rank` spatial axes; `kernel`, `strides` and `rates` (distances between the elements
    of a window) are numbers for all or one for each of them. `padding` is "valid" or "same". `name`
    is the operation, for errors.

    >>> import mycel as ms
    >>> patches = ms.ops.ExtractImagePatches([1, 2], [1, 1], [1, 1])
    >>> patches(ms.Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[[1.0, 2.0]], [[2.0, 3.0]]]]
    """
    x = operand(name, input)
    if x.ndim != rank + 2:
        raise ShapeError(f"{name}: takes (N, C, *spatial) of {rank} spatial dimensions, not {x._type}")
    sizes = [
        _spatial(name, what, value, rank)
        for what, value in (("kernel_size", kernel), ("strides", strides), ("rates", rates))
    ]
    parts = [part for _, part in _windows(name, x, sizes[0], sizes[1], sizes[2], padding, 0)]
    return run(S.CONCAT, *parts, axis=1) if len(parts) > 1 else parts[0]


def dilation2d(
    x: Any, filter: Any, stride: Any, dilation: Any, pad_mode: str = "SAME", data_format: str = "NCHW"
) -> Tensor:
    """Return the largest x + filter over each window of `x` (N, C, H, W), with a `filter` (C, KH,
    KW).

    `stride` and `dilation` are numbers or pairs; `pad_mode` is "same" or "valid", and `data_format`
    must be "NCHW".

    >>> import mycel as ms
    >>> x, filter = ms.Tensor([[[[1.0, 5.0, 2.0]]]]), ms.Tensor([[[0.0, 1.0]]])
    >>> ms.ops.Dilation2D(1, 1, "VALID")(x, filter).tolist()
    [[[[6.0, 5.0]]]]
    """
    name = "dilation2d"
    value, shape = operands(name, x, filter)
    if data_format != "NCHW":
        raise ValueError(f"{name}: supports data_format 'NCHW', not {data_format!r}")
    if value.ndim != 4 or shape.ndim != 3 or shape.shape[0] != value.shape[1]:
        raise ShapeError(f"{name}: takes (N, C, H, W) and a filter (C, KH, KW), not {value._type} and {shape._type}")
    kernel = (int(shape.shape[1]), int(shape.shape[2]))
    strides, rates = _spatial(name, "stride", stride, 2), _spatial(name, "dilation", dilation, 2)
    lowest = window_prims.lowest(value.dtype)
    parts = _windows(name, value, kernel, strides, rates, pad_mode, lowest)
    best: Tensor | None = None
    for (i, j), part in parts:
        height = reshaped(take_slice(take_slice(shape, 1, i, i + 1), 2, j, j + 1), (shape.shape[0], 1, 1))
        # The lowest integer plus a height would not stay the lowest.
        raised = (
            part + height
            if value.dtype.is_floating
            else select(run(E.eq, part, constant_like(lowest, part)), part, part + height)
        )
        best = raised if best is None else run(E.maximum, best, raised)
    assert best is not None
    return best


def extract_glimpse(
    x: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    noise: str = "uniform",
) -> Tensor:
    """Return windows of `size` (height, width) out of images `x` (N, H, W, C), one for each,
    centred at `offsets` (N, 2) of (y, x).

    Offsets are in elements from the corner, or with `normalized` in sizes of the image; with
    `centered` they are halved and count from the image's centre. The position of the window's first
    element is truncated to a whole number. Outside of the image there is `noise`: 'uniform' between
    -1 and 1, 'gaussian' (standard normal, where MindSpore has a mean of 10), or 'zero'.
    `uniform_noise` must be False for another noise than 'uniform'.

    >>> import mycel as ms
    >>> image, offsets = ms.ops.arange(9.0).reshape((1, 3, 3, 1)), ms.Tensor([[1.0, 1.0]])
    >>> glimpse = ms.ops.ExtractGlimpse(False, False, False, "zero")
    >>> glimpse(image, (2, 2), offsets).flatten().tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    name = "extract_glimpse"
    value, at = floating(name, x), floating(name, offsets)
    arguments.one_of(name, "noise", noise, ("uniform", "gaussian", "zero"))
    if uniform_noise and noise != "uniform":
        raise ValueError(f"{name}: uniform_noise goes with noise 'uniform', not {noise!r}; set uniform_noise to False")
    window = tuple(int(d) for d in shape_of(name, size))
    if value.ndim != 4 or at.shape != (value.shape[0], 2) or len(window) != 2 or min(window) < 1:
        raise ShapeError(
            f"{name}: takes images (N, H, W, C), a positive size (2,) and offsets (N, 2), not {value._type}, {window} "
            f"and {at._type}"
        )
    n, h, w, c = (int(d) for d in value.shape)
    places, inside = [], None
    for k, (d, g) in enumerate(zip((h, w), window)):
        centre = reshaped(take_slice(at, 1, k, k + 1), (n, 1))
        centre = centre * float(d) if normalized else centre
        centre = (centre + float(d)) * 0.5 if centered else centre
        place = cast(run(E.trunc, centre - g * 0.5), D.int64) + as_tensor(numbers(g)[None])
        here = run(E.logical_and, run(E.ge, place, constant_like(0, place)), run(E.lt, place, constant_like(d, place)))
        line = (n, g, 1) if k == 0 else (n, 1, g)
        places.append(reshaped(select(here, place, 0), line))
        here = reshaped(here, line)
        inside = here if inside is None else run(E.logical_and, inside, here)
    assert inside is not None
    whole = (n, window[0] * window[1])
    flat = reshaped(broadcast(places[0] * w + places[1], (n, *window)), whole)
    found = reshaped(gather_scatter.gather(reshaped(value, (n, h * w, c)), flat, 1, 1), (n, *window, c))
    if noise == "zero":
        other: Any = 0.0
    else:
        shape = (n, *window, c)
        drawn = (
            random.rand(*shape, dtype=D.float32) * 2.0 - 1.0
            if noise == "uniform"
            else random.randn(*shape, dtype=D.float32)
        )
        other = cast(drawn, value.dtype)
    return select(reshaped(inside, (n, *window, 1)), found, other)


def mirror_pad(input_x: Any, paddings: Any, mode: str) -> Tensor:
    """Return `input_x` with every axis grown by its own elements mirrored.

    `paddings` (dimensions, 2) has the numbers of elements before and after each axis. The `mode`
    "REFLECT" leaves out the edge, "SYMMETRIC" repeats it.

    Raises ValueError for another mode or more elements than there are to mirror.

    >>> import mycel as ms
    >>> ms.ops.mirror_pad(ms.Tensor([1, 2, 3]), ms.Tensor([[1, 2]]), "SYMMETRIC").tolist()
    [1, 1, 2, 3, 3, 2]
    """
    name = "mirror_pad"
    x = operand(name, input_x)
    arguments.one_of(name, "mode", mode, ("REFLECT", "SYMMETRIC"))
    pairs = np.asarray(paddings.tolist() if isinstance(paddings, Tensor) else paddings)
    if pairs.shape != (x.ndim, 2) or pairs.min(initial=0) < 0:
        raise ShapeError(
            f"{name}: paddings must be {(x.ndim, 2)} numbers of at least 0 for {x._type}, not {pairs.tolist()}"
        )
    for axis, (low, high) in enumerate(pairs.tolist()):
        x = padded(name, x, axis, low, high, mode.lower())
    return x


def image_gradients(images: Any) -> tuple[Tensor, Tensor]:
    """Return the differences to the next row and to the next column of images (N, C, H, W), 0 in
    the last row and column.

    >>> import mycel as ms
    >>> [t.flatten().tolist() for t in ms.nn.ImageGradients()(ms.Tensor([[[[1, 2], [3, 5]]]]))]
    [[2, 3, 0, 0], [1, 0, 2, 0]]
    """
    x = operand("image_gradients", images)
    if x.ndim != 4:
        raise ShapeError(f"image_gradients: takes images (N, C, H, W), not {x._type}")
    found = []
    for axis in (2, 3):
        d = x.shape[axis]
        step = take_slice(x, axis, 1, d) - take_slice(x, axis, 0, d - 1)
        high = tuple(1 if a == axis else 0 for a in range(4))
        found.append(run(S.PAD, step, constant_like(0, step), low=(0,) * 4, high=high, interior=(0,) * 4))
    return found[0], found[1]
