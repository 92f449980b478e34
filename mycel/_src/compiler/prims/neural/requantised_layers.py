"""Quantised layers as one primitive: a sum of integer products, its bias and its requantisation.

    rescaled_conv    requantize(int_conv(x, w) + bias, multiplier, shift)
    rescaled_pool    requantize(window_sum(x - zero), multiplier, shift)
    rescaled_sum     requantize(requantize((a - zero) << room, ...) + the same of b, ...)

The last is how integers of two scales are added: both are taken to a finer scale before.

Nobody writes them: they are found in a graph of integers for processors whose engine has kernels
that never write the sums to memory (`transforms/quantise/requantisation_fusion.py`). As all
operations of integers they have no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, constant, register
from mycel._src.compiler.prims.convolution import conv
from mycel._src.compiler.prims.convolution.window import window_sum
from mycel._src.compiler.prims.neural.quantisation import LEVELS, ROUNDINGS, int_conv, requantize
from mycel._src.foundation.dtype import int8, int32

__all__ = ["rescaled_conv", "rescaled_pool", "rescaled_sum"]

_ENDS = ("low", "high", "rounding", "dtype")


def _split(params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of `int_conv` and those of `requantize`."""
    last = {k: params[k] for k in _ENDS}
    last["zero"] = params["result_zero"]
    return {k: v for k, v in params.items() if k not in _ENDS and k != "result_zero"}, last


def _spread(rank: int) -> tuple[int, ...]:
    return (-1,) + (1,) * (rank - 2)


def _infer(
    x: TensorType, w: TensorType, bias: TensorType, multiplier: TensorType, shift: TensorType, **params: Any
) -> TensorType:
    first, last = _split(params)
    total: TensorType = int_conv.type_of(x, w, **first)
    for name, t in (("bias", bias), ("multiplier", multiplier), ("shift", shift)):
        if t.dtype is not int32 or t.shape != (w.shape[0],):
            raise TypeError(f"rescaled_conv: {name} must be an int32 tensor of {w.shape[0]} elements, not {t}")
    spread = (w.shape[0],) + (1,) * (x.rank - 2)
    found: TensorType = requantize.type_of(total, multiplier.with_shape(spread), shift.with_shape(spread), **last)
    return found


def _reference(x: Any, w: Any, bias: Any, multiplier: Any, shift: Any, **params: Any) -> Any:
    first, last = _split(params)
    assert int_conv.reference is not None and requantize.reference is not None
    spread = _spread(x.ndim)
    total = int_conv.reference(x, w, **first) + bias.reshape(spread)
    return requantize.reference(total, multiplier.reshape(spread), shift.reshape(spread), **last)


def _expand(x: Node, w: Node, bias: Node, multiplier: Node, shift: Node, **params: Any) -> Node:
    first, last = _split(params)
    spread = (w.shape[0],) + (1,) * (x.type.rank - 2)
    bias, multiplier, shift = (S.reshape(n, spread) for n in (bias, multiplier, shift))
    return requantize(E.add(int_conv(x, w, **first), bias), multiplier, shift, **last)


def _samples() -> tuple[Sample, ...]:
    rng = np.random.default_rng(7)
    made = []
    for k, (x, w, _, p) in enumerate((*conv._CASES[:6], conv._CASES[7])):
        ends: dict[str, Any] = {"zero": 2 - k, "result_zero": k - 3, "low": -100, "high": 120, "dtype": int8}
        ends["rounding"] = ("single", "double")[k % 2]
        bias = rng.integers(-300, 300, w[0]).astype(np.int32)
        whole = rng.integers(1 << 30, (1 << 31) - 1, w[0]).astype(np.int32)
        shift = rng.integers(-5, 1, w[0]).astype(np.int32)
        kinds = ("int8", "int8", "int32", "int32", "int32")
        made.append(Sample((x, w, bias, whole, shift), {**p, **ends}, dtypes=kinds, integers=(-9, 9)))
    return tuple(made)


rescaled_conv: Primitive = register(
    Primitive(
        "rescaled_conv",
        _infer,
        _reference,
        lambda ct, out, *operands, **_: (None,) * 5,
        None,
        _expand,
        samples=_samples(),
        dtypes=("int8",),
        work=lambda node, number: conv._work(node.type, node.inputs[1].type, number),
        doc="A convolution of levels with a bias for each channel, in the levels of another scale.",
    )
)


# Sums over windows.


def _pool_parts(params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of `window_sum` and those of `requantize`."""
    last = {k: params[k] for k in _ENDS}
    last["zero"] = params["result_zero"]
    return {k: params[k] for k in ("window", "strides", "padding")}, last


def _pool_infer(x: TensorType, multiplier: TensorType, shift: TensorType, **params: Any) -> TensorType:
    first, last = _pool_parts(params)
    _need_steps_and_zero("rescaled_pool", x, params["zero"])
    total: TensorType = window_sum.type_of(x.with_dtype(int32), **first)
    for t in (multiplier, shift):
        if t.shape not in ((), total.shape[2:]):
            raise TypeError(
                f"rescaled_pool: multiplier and shift must be scalars or of the shape {total.shape[2:]} of positions, "
                f"not {t}"
            )
    found: TensorType = requantize.type_of(total, multiplier, shift, **last)
    return found


def _need_steps_and_zero(name: str, x: TensorType, zero: int) -> None:
    if x.dtype not in LEVELS:
        raise TypeError(f"{name}: levels are {', '.join(d.name for d in LEVELS)}, not {x.dtype.name}")
    ends = np.iinfo(x.dtype.numpy)
    if not ends.min <= zero <= ends.max:
        raise ValueError(f"{name}: the zero point {zero} is no {x.dtype.name}")


def _pool_reference(x: Any, multiplier: Any, shift: Any, **params: Any) -> Any:
    first, last = _pool_parts(params)
    assert window_sum.reference is not None and requantize.reference is not None
    total = window_sum.reference(x.astype(np.int32) - params["zero"], **first)
    return requantize.reference(total, multiplier, shift, **last)


def _whole(x: Node, zero: int) -> Node:
    wide = E.cast(x, dtype=int32)
    return E.sub(wide, zero) if zero else wide


def _pool_expand(x: Node, multiplier: Node, shift: Node, **params: Any) -> Node:
    first, last = _pool_parts(params)
    return requantize(window_sum(_whole(x, params["zero"]), **first), multiplier, shift, **last)


def _pool_samples() -> tuple[Sample, ...]:
    made = []
    for k, (x, window, strides, padding) in enumerate(
        (
            ((2, 3, 5, 4), (2, 3), (1, 1), ((0, 1), (1, 1))),
            ((1, 4, 6, 6), (3, 2), (2, 3), ((0, 0), (0, 0))),
            ((2, 2, 7), (4,), (2,), ((2, 1),)),
            ((0, 2, 4, 4), (2, 2), (1, 1), ((0, 0), (0, 0))),
        )
    ):
        p: dict[str, Any] = {"window": window, "strides": strides, "padding": padding, "zero": 3 - k}
        p |= {"result_zero": k - 2, "low": -100, "high": 120, "rounding": ROUNDINGS[k % 2], "dtype": int8}
        numbers: tuple[Any, Any] = (np.array(1 << 30, np.int32), np.array(-k, np.int32))
        if k == 1:
            numbers = (np.array([[1 << 30, 1 << 29], [3 << 29, 5]], np.int32), np.array([[0, -1], [-2, 1]], np.int32))
        made.append(Sample((x, *numbers), p, dtypes=("int8", "int32", "int32"), integers=(-9, 9)))
    return tuple(made)


rescaled_pool: Primitive = register(
    Primitive(
        "rescaled_pool",
        _pool_infer,
        _pool_reference,
        lambda ct, out, *operands, **_: (None,) * 3,
        None,
        _pool_expand,
        samples=_pool_samples(),
        dtypes=("int8",),
        doc="The sum of levels over windows in the levels of another scale: an average.",
    )
)


# Sums of two values.

_NUMBERS = ("left", "right", "last")
_WORD = (-(1 << 31), (1 << 31) - 1)


def _sum_infer(a: TensorType, b: TensorType, **params: Any) -> TensorType:
    if a.shape != b.shape:
        raise TypeError(f"rescaled_sum: the operands must have one shape, not {a} and {b}")
    for t, name in ((a, "left"), (b, "right")):
        _need_steps_and_zero("rescaled_sum", t, params[name][0])
    for name in _NUMBERS:
        multiplier, shift = params[name][-2:]
        if not _WORD[0] <= multiplier <= _WORD[1] or not -31 <= shift <= 30:
            raise ValueError(
                f"rescaled_sum: {name} has the multiplier {multiplier} and the shift {shift}; they must have 32 bits, "
                "and be from -31 to 30"
            )
    if not 0 <= params["room"] <= 22:
        raise ValueError(f"rescaled_sum: room must be from 0 to 22, not {params['room']}")
    total = a.with_dtype(int32)
    found: TensorType = requantize.type_of(total, total.with_shape(()), total.with_shape(()), **_sum_ends(params))
    return found


def _sum_ends(params: dict[str, Any]) -> dict[str, Any]:
    return {**{k: params[k] for k in _ENDS}, "zero": params["result_zero"]}


def _sum_expand(a: Node, b: Node, **params: Any) -> Node:
    wide = {"low": _WORD[0], "high": _WORD[1], "zero": 0, "dtype": int32, "rounding": params["rounding"]}
    parts = []
    for x, name in ((a, "left"), (b, "right")):
        zero, *numbers = params[name]
        moved = E.shift_left(_whole(x, zero), params["room"])
        parts.append(requantize(moved, *[constant(v, int32) for v in numbers], **wide))
    numbers = [constant(v, int32) for v in params["last"]]
    return requantize(E.add(*parts), *numbers, **_sum_ends(params))


def _sum_reference(a: Any, b: Any, **params: Any) -> Any:
    assert requantize.reference is not None
    wide = {"low": _WORD[0], "high": _WORD[1], "zero": 0, "dtype": int32, "rounding": params["rounding"]}
    parts = []
    for x, name in ((a, "left"), (b, "right")):
        zero, *numbers = params[name]
        moved = (x.astype(np.int32) - np.int32(zero)) << np.int32(params["room"])
        parts.append(requantize.reference(moved, *[np.array(v, np.int32) for v in numbers], **wide))
    numbers = [np.array(v, np.int32) for v in params["last"]]
    return requantize.reference(parts[0] + parts[1], *numbers, **_sum_ends(params))


def _sum_samples() -> tuple[Sample, ...]:
    made = []
    for k, shape in enumerate(((2, 3, 5), (4,), (0, 2))):
        p: dict[str, Any] = {"left": (3 - k, (1 << 30) + 5 * k, -1 - k), "right": (k, (1 << 31) - 9, -2), "room": 20}
        p |= {"last": ((1 << 30) + 77, -17), "result_zero": k - 2, "low": -100, "high": 120, "dtype": int8}
        p["rounding"] = ROUNDINGS[k % 2]
        made.append(Sample((shape, shape), p, dtypes=("int8", "int8"), integers=(-128, 127)))
    return tuple(made)


rescaled_sum: Primitive = register(
    Primitive(
        "rescaled_sum",
        _sum_infer,
        _sum_reference,
        lambda ct, out, *operands, **_: (None, None),
        None,
        _sum_expand,
        samples=_sum_samples(),
        dtypes=("int8",),
        doc="The sum of levels of two scales, in the levels of a third one.",
    )
)
