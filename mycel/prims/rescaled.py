"""Layers of steps in one piece: a sum of products with its bias, taken to the scale of the result.

    rescaled_conv    requantize(int_conv(x, w) + bias, multiplier, shift)

Nobody writes them: they are found in a graph of steps for processors whose engine has kernels that
never write the sums to memory (`transforms/rescaled.py`). As all operations of integers they have
no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.base.dtype import int8, int32
from mycel.ir.graph import Node
from mycel.ir.types import TensorType
from mycel.prims import conv as C
from mycel.prims import elementwise as E
from mycel.prims import shape as S
from mycel.prims.base import Primitive, Sample, register
from mycel.prims.quantisation import int_conv, requantize

__all__ = ["rescaled_conv"]

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
    for k, (x, w, _, p) in enumerate((*C._CASES[:6], C._CASES[7])):
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
        work=lambda node, number: C._work(node.type, node.inputs[1].type, number),
        doc="A convolution of steps with a bias for each channel, in the steps of another scale.",
    )
)
