"""`pad`: elements added around an array in NumPy's modes, one axis after the other.

Modes that repeat elements are one gather at positions known beforehand; the others concatenate
blocks that are made of the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.numpy._operands import asarray
from mycel.ops._operands import need_room, numbers, shape_of

__all__ = ["pad"]

_REPEATED = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Tensor]] = {
    "maximum": lambda x, axis: ops.amax(x, axis, True),
    "minimum": lambda x, axis: ops.amin(x, axis, True),
    "mean": lambda x, axis: ops.mean(x, axis, True),
    "median": lambda x, axis: ops.quantile(x, 0.5, axis, True),
}
_MODES = ("constant", "empty", "linear_ramp", *_REPEATED, *_STATISTICS)


def pad(
    arr: Any,
    pad_width: Any,
    mode: str = "constant",
    stat_length: Any = None,
    constant_values: Any = 0,
    end_values: Any = 0,
    reflect_type: str = "even",
    **kwargs: Any,
) -> Tensor:
    """Return an array with elements added around it.

    "empty" pads with zeros. Means of integers are rounded.

    Args:
        arr (Tensor | float | list | tuple): The array.
        pad_width (int | Sequence[Any]): A number, a pair (before, after), or a pair for each axis.
        mode (str): "constant", "edge", "linear_ramp", "maximum", "minimum", "mean", "median",
            "reflect", "symmetric", "wrap" or "empty", or a function. Default: "constant".
        stat_length (int | Sequence[Any] | None): Of how many elements beside the edge the maximum,
            minimum, mean or median is taken; None for all. Default: None.
        constant_values (float | Sequence[Any]): The constant. Default: 0.
        end_values (float | Sequence[Any]): What "linear_ramp" goes to. Default: 0.
        reflect_type (str): "even", or "odd": the reflected elements are subtracted from twice the
            edge. Default: "even".
        **kwargs (Any): Options of a function.

    Returns:
        Tensor: The padded array.

    Raises:
        ValueError: For other values of `mode`.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.pad([1, 2], 1).tolist()
        [0, 1, 2, 0]
        >>> mnp.pad([1.0, 2.0], (2, 0), "linear_ramp", end_values=3.0).tolist()
        [3.0, 2.0, 1.0, 2.0]
    """
    x = asarray(arr)
    arguments.one_of("pad", "mode", mode, _MODES)
    if mode in ("reflect", "symmetric"):
        arguments.one_of("pad", "reflect_type", reflect_type, ("even", "odd"))
    if kwargs:
        raise TypeError(f"pad: there is no parameter {next(iter(kwargs))!r}")
    widths = _pairs("pad_width", pad_width, x.ndim)
    name, given = {"constant": ("constant_values", constant_values), "linear_ramp": ("end_values", end_values)}.get(
        mode, ("", 0)
    )
    values = _pairs(name, given, x.ndim)
    lengths = _pairs("stat_length", stat_length, x.ndim)
    for axis in range(x.ndim):
        before, after = (int(w) for w in widths[axis])
        if before < 0 or after < 0:
            raise ValueError(f"pad: pad_width must not be negative, not {pad_width}")
        if not before and not after:
            continue
        if mode in _REPEATED:
            x = _repeated(x, axis, before, after, mode, reflect_type)
            continue
        ends = [
            _block(x, axis, count, side, mode, values[axis][side], lengths[axis][side])
            for side, count in ((0, before), (1, after))
            if count
        ]
        x = ops.concat((*ends[:1], x, *ends[1:]) if before else (x, *ends), axis)
    return x


def _pairs(name: str, given: Any, rank: int) -> Any:
    try:
        numbers = _numpy.asarray(given)
        if (
            numbers.size
            and (given is not None or name != "stat_length")
            and (numbers.dtype.kind not in "biuf" or (name == "pad_width" and numbers.dtype.kind == "f"))
        ):
            raise TypeError(
                f"pad: {name} must hold numbers{' that are whole' * (name == 'pad_width')}, not {given!r:.80}"
            )
        return _numpy.broadcast_to(numbers, (rank, 2))
    except ValueError:
        raise ValueError(
            f"pad: {name} must be a number, a pair or a pair for each of {rank} axes, not {given}"
        ) from None


def _repeated(x: Tensor, axis: int, before: int, after: int, mode: Any, reflect_type: str) -> Tensor:
    size = x.shape[axis]
    if size == 0:
        raise ValueError(f"pad: there is nothing to repeat along axis {axis} of shape {x.shape}")
    odd = mode in ("reflect", "symmetric") and reflect_type == "odd"
    if not odd:
        need_room("pad", shape_of("pad", (size + before + after,)), D.int64)
        places = _numpy.pad(_numpy.arange(size), (before, after), mode)
        return ops.gather(x, Tensor(places), axis)
    # Every new element is a sum of whole multiples of elements: those that the reflection of unit
    # vectors gives.
    need_room("pad", shape_of("pad", (size + before + after, size)), D.float64)
    weights = _numpy.pad(_numpy.eye(size), ((before, after), (0, 0)), mode, reflect_type="odd")
    return ops.moveaxis(ops.matmul(ops.moveaxis(x, axis, -1), Tensor(weights.T).astype(x.dtype)), -1, axis)


def _block(x: Tensor, axis: int, count: int, side: int, mode: str, value: Any, length: Any) -> Tensor:
    """Return the block that is put before (`side` 0) or behind an axis."""
    size = x.shape[axis]
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if mode in ("constant", "empty"):
        return ops.full(shape, value.item() if mode == "constant" else 0, dtype=x.dtype)
    if size == 0:
        raise ValueError(f"pad: there is no edge along axis {axis} of shape {x.shape}")
    at = [slice(None)] * x.ndim
    if mode == "linear_ramp":
        at[axis] = slice(0, 1) if side == 0 else slice(size - 1, size)
        edge = x[tuple(at)].astype(D.float64)
        part = numbers(count) if side == 0 else numbers(count)[::-1]
        steps = Tensor((part / count).reshape([-1 if k == axis else 1 for k in range(x.ndim)]))
        ramp = float(value) + (edge - float(value)) * steps
        return (ops.floor(ramp) if x.dtype.is_integer else ramp).astype(x.dtype)
    if length is not None:
        if int(length) < 1:
            raise ValueError(f"pad: stat_length must be positive, not {length}")
        near = min(int(length), size)
        at[axis] = slice(0, near) if side == 0 else slice(size - near, size)
    chosen = x[tuple(at)]
    exact = mode in ("maximum", "minimum") or not x.dtype.is_integer
    found = _STATISTICS[mode](chosen if exact else chosen.astype(D.float64), axis)
    return ops.broadcast_to((found if exact else ops.round(found)).astype(x.dtype), shape)
