"""Convolution and transposed convolution in one to three dimensions, windows as columns, and moves
between channels and space. All of it is built on the `conv` primitives.

Images have the shape (N, C, *spatial) and weights (C_out, C_in / groups, *kernel). `pad_mode`
"valid" adds nothing. "same" adds zeros so that there are ceil(size / stride) positions; where their
number is odd, the extra zero comes at the end. "pad" adds `padding` zeros on both sides of each
axis.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.dims import DimLike, maximum, product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, scalar
from mycel.ops._operands import (
    matched,
    operand,
    permuted,
    reshaped,
    run,
    size_of,
)

__all__ = [
    "bias_add",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose2d",
    "fold",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]

Pairs = tuple[tuple[DimLike, DimLike], ...]


_POSITIVE = ("stride", "strides", "dilation", "kernel_size")


def per_axis(name: str, parameter: str, value: Any, rank: int) -> tuple[int, ...]:
    """Return one int for each of the `rank` spatial axes.

    `value` is one int for all axes, or a sequence of them, which may begin with two ones for the
    batch and channel axes. `name` and `parameter` are the operation and the argument that errors
    name.
    """
    given: Any = (value,) * rank if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(given, (tuple, list)) or not all(isinstance(v, int) for v in given):
        raise TypeError(f"{name}: {parameter} must be an int or {rank} ints, not {value!r:.80}")
    if len(given) == rank + 2 and tuple(given[:2]) == (1, 1):
        given = given[2:]
    if len(given) != rank:
        raise ValueError(f"{name}: {parameter} must be an int or {rank} ints, not {value!r:.80}")
    if parameter in _POSITIVE and min(given) < 1:
        raise ValueError(f"{name}: {parameter} must be positive, not {value!r:.80}")
    return tuple(given)


def same_padding(
    spatial: tuple[DimLike, ...], window: tuple[DimLike, ...], strides: tuple[int, ...], dilation: tuple[int, ...]
) -> Pairs:
    """Return the padding of mode "same" for each axis: enough for ceil(size / stride) positions,
    with the extra zero of an odd number at the end.

    `spatial` is the sizes of the spatial axes, and `window`, `strides` and `dilation` are those of
    the sliding window.
    """
    pairs = []
    for d, k, s, step in zip(spatial, window, strides, dilation):
        span = (k - 1) * step + 1
        total = maximum((-(-d // s) - 1) * s + span - d, 0) if s != 1 else span - 1
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def paddings(
    name: str,
    pad_mode: str,
    padding: Any,
    spatial: tuple[DimLike, ...],
    window: tuple[DimLike, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Pairs:
    """Return the numbers of zeros before and behind each spatial axis.

    `pad_mode` is "valid", "same" or "pad". For "pad", `padding` is one int, one for each axis, or
    (low, high) for each axis in one flat sequence. `spatial` is the sizes of the spatial axes,
    `window`, `strides` and `dilation` are those of the sliding window, and `name` is the operation
    that errors name.
    """
    arguments.one_of(
        name, "pad_mode", pad_mode.lower() if isinstance(pad_mode, str) else pad_mode, ("valid", "same", "pad")
    )
    mode, rank = pad_mode.lower(), len(spatial)
    if mode == "pad":
        if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank and rank > 1:
            given = per_axis(name, "padding", tuple(padding), 2 * rank)
            pairs = tuple((given[2 * i], given[2 * i + 1]) for i in range(rank))
        else:
            pairs = tuple((p, p) for p in per_axis(name, "padding", padding, rank))
        if any(p < 0 for pair in pairs for p in pair):
            raise arguments.wrong_value(name, "padding", "at least 0", padding)
        return pairs
    zeros = padding if isinstance(padding, (tuple, list)) else (padding,)
    if not all(v is None or (isinstance(v, int) and v == 0) for v in zeros):
        raise ValueError(f"{name}: padding {padding} goes with pad_mode 'pad', not {mode!r}")
    return same_padding(spatial, window, strides, dilation) if mode == "same" else ((0, 0),) * rank


def convolution(
    name: str,
    rank: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    pad_mode: str,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """Compute the convolution over `rank` spatial axes for `conv1d` to `conv3d`.

    `name` is the operation that errors name. `input`, `weight`, `bias` (or None), `stride`,
    `pad_mode`, `padding`, `dilation` and `groups` are those of `conv1d`.
    """
    x, w = matched(name, input, weight, second="weight")
    if w.ndim != rank + 2 or x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: the input must have {rank + 2} dimensions (N, C, *spatial) and the weight (O, C / groups, "
            "*kernel), "
            f"not {x._type} and {w._type}"
        )
    single = x.ndim == rank + 1
    x = reshaped(x, (1, *x.shape)) if single else x
    groups = size_of(name, groups)
    strides, steps = per_axis(name, "stride", stride, rank), per_axis(name, "dilation", dilation, rank)
    pairs = paddings(name, pad_mode, padding, x.shape[2:], w.shape[2:], strides, steps)
    out = run(conv, x, w, strides=strides, padding=pairs, dilation=steps, groups=groups)
    if bias is not None:
        out = bias_add(out, bias)
    return reshaped(out, out.shape[1:]) if single else out


@fused
def conv1d(
    input: Any,
    weight: Any,
    bias: Any | None = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of `input` (N, C, L) with `weight` (O, C / groups, K), plus
    `bias`.

    Args:
        input (Tensor): (N, C, L).
        weight (Tensor): (O, C / groups, K).
        bias (Tensor | None): One number for each channel of the result, or None. Default: None.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        padding (int | tuple[int, ...]): The number of zeros with `pad_mode` "pad": one int, one for
            each axis, or one for each side. Default: 0.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.
        groups (int): The number of groups into which the channels are divided. Default: 1.

    Returns:
        Tensor: (N, O, L').

    Raises:
        ValueError: If shapes do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.conv1d(ms.Tensor([[[1.0, 2.0, 3.0]]]), ms.Tensor([[[1.0, 1.0]]])).tolist()
        [[[3.0, 5.0]]]
    """
    return convolution("conv1d", 1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@fused
def conv2d(
    input: Any,
    weight: Any,
    bias: Any | None = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of `input` (N, C, H, W) with `weight` (O, C / groups, KH, KW),
    plus `bias`.

    Args:
        input (Tensor): (N, C, H, W).
        weight (Tensor): (O, C / groups, KH, KW).
        bias (Tensor | None): One number for each channel of the result, or None. Default: None.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        padding (int | tuple[int, ...]): The number of zeros with `pad_mode` "pad": one int, one for
            each axis, or one for each side. Default: 0.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.
        groups (int): The number of groups into which the channels are divided. Default: 1.

    Returns:
        Tensor: (N, O, H', W').

    Raises:
        ValueError: If shapes do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.conv2d(ms.ops.ones((1, 3, 5, 5)), ms.ops.ones((2, 3, 3, 3)),
        ...     pad_mode="same").shape
        (1, 2, 5, 5)
    """
    return convolution("conv2d", 2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@fused
def conv3d(
    input: Any,
    weight: Any,
    bias: Any | None = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of `input` (N, C, D, H, W) with `weight` (O, C / groups, KD, KH,
    KW), plus `bias`.

    Args:
        input (Tensor): (N, C, D, H, W).
        weight (Tensor): (O, C / groups, KD, KH, KW).
        bias (Tensor | None): One number for each channel of the result, or None. Default: None.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        padding (int | tuple[int, ...]): The number of zeros with `pad_mode` "pad": one int, one for
            each axis, or one for each side. Default: 0.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.
        groups (int): The number of groups into which the channels are divided. Default: 1.

    Returns:
        Tensor: (N, O, D', H', W').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.conv3d(ms.ops.ones((1, 1, 3, 3, 3)), ms.ops.ones((2, 1, 2, 2, 2))).shape
        (1, 2, 2, 2, 2)
    """
    return convolution("conv3d", 3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def transposed(
    name: str,
    input: Any,
    weight: Any,
    bias: Any,
    strides: tuple[int, ...],
    pairs: Pairs,
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    """Return the transpose of a convolution, seen as a function of its input, plus `bias` if it is
    not None.

    `weight` is (C_in, C_out / groups, *kernel). `strides`, `dilation` and `groups` are those of the
    convolution, and `pairs` its padding, (low, high) for each axis. `output_padding` makes each
    axis of the result longer at its end. `name` is the operation that errors name.
    """
    x, w = matched(name, input, weight, second="weight")
    if w.ndim != x.ndim or x.ndim != len(strides) + 2:
        raise ShapeError(
            f"{name}: the input {x._type} and the weight {w._type} must have {len(strides) + 2} dimensions each"
        )
    if any(extra >= max(s, step) for extra, s, step in zip(output_padding, strides, dilation)):
        raise ValueError(
            f"{name}: output_padding {output_padding} must be smaller than stride {strides} or dilation {dilation}"
        )
    sizes = []
    for d, k, s, step, (lo, hi), extra in zip(x.shape[2:], w.shape[2:], strides, dilation, pairs, output_padding):
        sizes.append((d - 1) * s - lo - hi + (k - 1) * step + 1 + extra)
    shape = (x.shape[0], w.shape[1] * groups, *sizes)
    out = run(
        conv_grad_input, x, w, input_shape=shape, strides=strides, padding=pairs, dilation=dilation, groups=groups
    )
    return out if bias is None else bias_add(out, bias)


@fused
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Return the transpose of `conv2d`: `input` (N, C_in, H, W) spread over a larger image by
    `weight` (C_in, C_out / groups, KH, KW).

    Args:
        input (Tensor): (N, C_in, H, W).
        weight (Tensor): (C_in, C_out / groups, KH, KW).
        bias (Tensor | None): One number for each channel of the result, or None. Default: None.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        padding (int | tuple[int, ...]): The zeros of the convolution that is transposed: an int, or
            one for each axis. Default: 0.
        output_padding (int | tuple[int, ...]): How much longer each axis of the result is at its
            end. Default: 0.
        groups (int): The number of groups into which the channels are divided. Default: 1.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.

    Returns:
        Tensor: (N, C_out, H', W').

    Examples:
        >>> import mycel as ms
        >>> x, weight = ms.ops.ones((1, 2, 2, 2)), ms.ops.ones((2, 3, 2, 2))
        >>> ms.ops.conv_transpose2d(x, weight, stride=2).shape
        (1, 3, 4, 4)
    """
    name = "conv_transpose2d"
    pairs = tuple((p, p) for p in per_axis(name, "padding", padding, 2))
    strides, steps = per_axis(name, "stride", stride, 2), per_axis(name, "dilation", dilation, 2)
    return transposed(
        name, input, weight, bias, strides, pairs, per_axis(name, "output_padding", output_padding, 2), steps, groups
    )


@fused
def conv3d_transpose(
    inputs: Any,
    weight: Any,
    pad_mode: str = "valid",
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: int = 1,
    output_padding: Any = 0,
) -> Tensor:
    """Return the transpose of `conv3d`: `inputs` (N, C_in, D, H, W) spread over a larger volume by
    `weight` (C_in, C_out / group, KD, KH, KW).

    Args:
        inputs (Tensor): (N, C_in, D, H, W).
        weight (Tensor): (C_in, C_out / group, KD, KH, KW).
        pad_mode (str): "valid", "same" or "pad", as of the convolution that is transposed. Default:
            "valid".
        padding (int | tuple[int, ...]): The zeros of the convolution that is transposed: an int, or
            one for each side. Default: 0.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.
        group (int): The number of groups. Default: 1.
        output_padding (int | tuple[int, ...]): How much longer each axis of the result is at its
            end. Default: 0.

    Returns:
        Tensor: (N, C_out, D', H', W').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.conv3d_transpose(ms.ops.ones((1, 2, 2, 2, 2)), ms.ops.ones((2, 3, 2, 2,
        ...     2))).shape
        (1, 3, 3, 3, 3)
    """
    name = "conv3d_transpose"
    strides, steps = per_axis(name, "stride", stride, 3), per_axis(name, "dilation", dilation, 3)
    x, w = matched(name, inputs, weight, "inputs", "weight")
    if x.ndim != 5 or w.ndim != 5:
        raise ShapeError(
            f"{name}: takes an input (N, C_in, D, H, W) and a weight (C_in, C_out / group, KD, KH, KW), not {x._type} "
            f"and {w._type}"
        )
    kernel = w.shape[2:]
    if isinstance(pad_mode, str) and pad_mode == "same":
        grown = tuple(d * s for d, s in zip(x.shape[2:], strides))
        pairs = same_padding(grown, kernel, strides, steps)
    else:
        pairs = paddings(name, pad_mode, padding, x.shape[2:], kernel, strides, steps)
    return transposed(
        name, x, w, None, strides, pairs, per_axis(name, "output_padding", output_padding, 3), steps, group
    )


@fused
def bias_add(input_x: Any, bias: Any) -> Tensor:
    """Add a vector along axis 1, the channels. Raises ValueError where the sizes differ.

    >>> import mycel as ms
    >>> ms.ops.bias_add(ms.ops.zeros((1, 2)), ms.Tensor([1.0, 2.0])).tolist()
    [[1.0, 2.0]]
    """
    x, b = matched("bias_add", input_x, bias, "input_x", "bias")
    if x.ndim < 2 or b.ndim != 1 or b.shape[0] != x.shape[1]:
        raise ShapeError(f"bias_add: a bias {b._type} does not fit the channels (axis 1) of {x._type}")
    return run(E.add, x, reshaped(b, (b.shape[0], *(1,) * (x.ndim - 2))))


@fused
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the windows of `input` (N, C, H, W) as columns: (N, C * KH * KW, positions).

    Args:
        input (Tensor): (N, C, H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        dilation (int | tuple[int, ...]): The distance of its elements: an int, or one for each
            axis. Default: 1.
        padding (int | tuple[int, ...]): The zeros on each side: an int, or one for each axis.
            Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis.
            Default: 1.

    Returns:
        Tensor: The columns, (N, C * KH * KW, positions).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.unfold(ms.ops.ones((1, 2, 3, 3)), 2).shape
        (1, 8, 4)
    """
    x = operand("unfold", input)
    if x.ndim != 4:
        raise ShapeError(f"unfold: the input must be (N, C, H, W), not {x._type}")
    kernel, steps = per_axis("unfold", "kernel_size", kernel_size, 2), per_axis("unfold", "dilation", dilation, 2)
    pads, strides = per_axis("unfold", "padding", padding, 2), per_axis("unfold", "stride", stride, 2)
    n, c = x.shape[:2]
    sizes = _positions("unfold", x.shape[2:], kernel, steps, pads, strides)
    x = run(S.PAD, x, scalar(0, x.dtype), low=(0, 0, *pads), high=(0, 0, *pads), interior=(0, 0, 0, 0))
    columns = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            starts = (0, 0, i * steps[0], j * steps[1])
            stops = (n, c, *(a + (m - 1) * s + 1 for a, m, s in zip(starts[2:], sizes, strides)))
            part = run(S.SLICE, x, starts=starts, stops=stops, steps=(1, 1, *strides))
            columns.append(reshaped(part, (n, c, 1, sizes[0] * sizes[1])))
    joined = run(S.CONCAT, *columns, axis=2) if len(columns) > 1 else columns[0]
    return reshaped(joined, (n, c * len(columns), sizes[0] * sizes[1]))


def _positions(name: str, spatial: Any, kernel: Any, dilation: Any, padding: Any, strides: Any) -> tuple[Any, ...]:
    sizes = tuple(
        (d + 2 * p - (k - 1) * e - 1) // s + 1 for d, k, e, p, s in zip(spatial, kernel, dilation, padding, strides)
    )
    if any(isinstance(m, int) and m < 1 for m in sizes):
        raise ShapeError(
            f"{name}: a window of {kernel} with dilation {dilation} does not fit in {tuple(spatial)} with padding "
            f"{padding}"
        )
    return sizes


@fused
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Add the columns of `input` (N, C * KH * KW, positions) up into images (N, C, H, W), as the
    transpose of `unfold`.

    Args:
        input (Tensor): The columns, (N, C * KH * KW, positions).
        output_size (int | tuple[int, int] | Tensor): The size of the images: (H, W), or an int for
            both.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        dilation (int | tuple[int, ...]): The distance of its elements: an int, or one for each
            axis. Default: 1.
        padding (int | tuple[int, ...]): The zeros that were added on each side: an int, or one for
            each axis. Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis.
            Default: 1.

    Returns:
        Tensor: The images, (N, C, H, W).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.fold(ms.ops.ones((1, 8, 4)), (3, 3), 2).shape
        (1, 2, 3, 3)
    """
    x = operand("fold", input)
    output_size = output_size.tolist() if isinstance(output_size, Tensor) else output_size
    shape, kernel = per_axis("fold", "output_size", output_size, 2), per_axis("fold", "kernel_size", kernel_size, 2)
    steps, pads = per_axis("fold", "dilation", dilation, 2), per_axis("fold", "padding", padding, 2)
    strides = per_axis("fold", "stride", stride, 2)
    sizes = _positions("fold", shape, kernel, steps, pads, strides)
    places = kernel[0] * kernel[1]
    if x.ndim != 3 or x.shape[2] != sizes[0] * sizes[1] or (isinstance(x.shape[1], int) and x.shape[1] % places):
        raise ShapeError(f"fold: the input must be (N, C * {places}, {sizes[0] * sizes[1]}), not {x._type}")
    n, c = x.shape[0], x.shape[1] // places
    x = reshaped(x, (n, c, places, *sizes))
    total: Tensor | None = None
    for place in range(places):
        i, j = divmod(place, kernel[1])
        starts = (i * steps[0] - pads[0], j * steps[1] - pads[1])
        high = tuple(d - (a + (m - 1) * s + 1) for d, a, m, s in zip(shape, starts, sizes, strides))
        part = run(S.SLICE, x, starts=(0, 0, place, 0, 0), stops=(n, c, place + 1, *sizes), steps=(1,) * 5)
        part = reshaped(part, (n, c, *sizes))
        gaps = (0, 0, *(s - 1 for s in strides))
        part = run(S.PAD, part, scalar(0, x.dtype), low=(0, 0, *starts), high=(0, 0, *high), interior=gaps)
        total = part if total is None else run(E.add, total, part)
    assert total is not None
    return total


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Rearrange (..., C * r * r, H, W) into (..., C, H * r, W * r), where r is `upscale_factor`.
    Shi et al., 2016.

    Raises ValueError where the channels do not divide.

    >>> import mycel as ms
    >>> ms.ops.pixel_shuffle(ms.ops.ones((1, 8, 2, 3)), 2).shape
    (1, 2, 4, 6)
    """
    x, r = operand("pixel_shuffle", input), size_of("pixel_shuffle", upscale_factor)
    if x.ndim < 3 or r < 1 or (isinstance(x.shape[-3], int) and x.shape[-3] % (r * r)):
        raise ShapeError(f"pixel_shuffle: {x._type} needs (..., C * {r} * {r}, H, W)")
    lead, c, h, w = x.shape[:-3], x.shape[-3] // (r * r), x.shape[-2], x.shape[-1]
    n = len(lead)
    x = reshaped(x, (*lead, c, r, r, h, w))
    x = permuted(x, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshaped(x, (*lead, c, h * r, w * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """Invert `pixel_shuffle`: rearrange (..., C, H * r, W * r) into (..., C * r * r, H, W), where r
    is `downscale_factor`.

    >>> import mycel as ms
    >>> ms.ops.pixel_unshuffle(ms.ops.ones((1, 2, 4, 6)), 2).shape
    (1, 8, 2, 3)
    """
    x, r = operand("pixel_unshuffle", input), size_of("pixel_unshuffle", downscale_factor)
    if x.ndim < 3 or r < 1 or any(isinstance(d, int) and d % r for d in x.shape[-2:]):
        raise ShapeError(f"pixel_unshuffle: {x._type} needs (..., C, H * {r}, W * {r})")
    lead, c, h, w = x.shape[:-3], x.shape[-3], x.shape[-2] // r, x.shape[-1] // r
    n = len(lead)
    x = reshaped(x, (*lead, c, h, r, w, r))
    x = permuted(x, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshaped(x, (*lead, c * r * r, h, w))


def channel_shuffle(x: Any, groups: int) -> Tensor:
    """Shuffle the channels of (N, C, ...): written as a matrix of `groups` rows, they are read by
    columns. Zhang et al., 2018.

    >>> import mycel as ms
    >>> ms.ops.channel_shuffle(ms.ops.arange(4).reshape((1, 4, 1)), 2).flatten().tolist()
    [0, 2, 1, 3]
    """
    value, groups = operand("channel_shuffle", x), size_of("channel_shuffle", groups)
    if value.ndim < 3 or groups < 1 or (isinstance(value.shape[1], int) and value.shape[1] % groups):
        raise ShapeError(f"channel_shuffle: the channels of {value._type} do not divide into {groups} groups")
    n, c, rest = value.shape[0], value.shape[1], value.shape[2:]
    parts = permuted(reshaped(value, (n, groups, c // groups, product(rest))), (0, 2, 1, 3))
    return reshaped(parts, value.shape)
