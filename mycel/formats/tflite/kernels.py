"""Bit-exact quantised operators of TensorFlow Lite, as its reference kernels compute them.

Sums are whole numbers of 32 bits, and come to the scale of the result by a multiplier of 31 bits
and a shift, each of which rounds (gemmlowp's; Jacob et al., 2018). The real multipliers are
computed in the types in which the kernels compute them, for their last bits are those of the
result. What is a function of one value of 8 bits is a table of 256 entries.

A kernel is given the operator, what the file says of its tensors, and integers; it returns the
integers of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import window as window_prims
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural import quantisation
from mycel._src.compiler.transforms.quantise.scales import multipliers
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.eager import apply
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.tflite.array_rules import CONSTANTS, RULES
from mycel.formats.tflite.rules import first, last, pads_of
from mycel.formats.tflite.schema import Operator, TFLiteError
from mycel.formats.tflite.schema import Tensor as Info

__all__ = ["KERNELS", "Given", "Kernel", "kernel_of"]

Array = np.ndarray[Any, Any]
INT32 = (-(1 << 31), (1 << 31) - 1)


class Given(NamedTuple):
    """What a kernel is given: the operator, and its inputs and results as the file says them."""

    operator: Operator
    inputs: Sequence[Info | None]
    outputs: Sequence[Info]

    def input(self, number: int) -> Info:
        """Return what the file says of an input, which has to be there."""
        found = self.inputs[number] if number < len(self.inputs) else None
        if found is None:
            raise TFLiteError(f"the operator {self.operator.name} lacks its input {number}")
        return found

    @property
    def output(self) -> Info:
        """What the file says of the first result."""
        return self.outputs[0]


Kernel = Callable[..., Any]


def _scale(info: Info) -> Any:
    if len(info.scales) != 1:
        raise TFLiteError(f"tensor {info.name!r} has {len(info.scales)} scales, and its operator takes one")
    return np.float32(info.scales[0])


def _zero(info: Info) -> int:
    return int(info.zeros[0])


def _ends(info: Info) -> tuple[int, int]:
    limits = np.iinfo(info.kind)
    return int(limits.min), int(limits.max)


def _clamped(given: Given, code: int) -> tuple[int, int]:
    """Return the ends of a result's levels under an activation."""
    info = given.output
    low, high = _ends(info)

    def level(value: float) -> int:
        real = np.float32(value) / _scale(info)
        return int(np.clip(_zero(info) + float(np.sign(real) * np.floor(np.abs(real) + np.float32(0.5))), -4e9, 4e9))

    bounds: Mapping[int, tuple[float | None, float | None]] = {
        0: (None, None), 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0),
    }  # fmt: skip
    if code not in bounds:
        raise Unsupported(f"load: {given.operator.name} with activation {code} has no kernel of rounding='tflite'")
    least, most = bounds[code]
    low, high = max(low, low if least is None else level(least)), min(high, high if most is None else level(most))
    if not low < high:
        raise Unsupported(f"load: {given.operator.name} has a result of one level, {low}, which has no kernel here")
    return low, high


def _constant(array: Any) -> Tensor:
    return Tensor(np.asarray(array))


def _whole(x: Tensor, zero: int) -> Tensor:
    """Return integers of 32 bits less a zero point."""
    wide = x.astype(D.int32)
    return wide - zero if zero else wide


def _rescaled(
    total: Tensor, real: Any, zero: int, ends: tuple[int, int], kind: str, rounding: str = "double"
) -> Tensor:
    """Return sums times real numbers, as levels of a type about a zero point, within `ends`.

    `total` has 32 bits; `real` is one number or one for each entry of the last axis. `kind` is the
    type, and `rounding` that of `requantize`.
    """
    try:
        whole, shift = multipliers(np.asarray(real, np.float64))
    except ValueError as error:
        raise TFLiteError(str(error)) from None
    low, high = ends
    more = {"zero": zero, "low": low, "high": high, "rounding": rounding, "dtype": from_any(kind)}
    made: Tensor = apply(quantisation.requantize, total, _constant(whole), _constant(shift), **more)
    return made


def _filter_scales(given: Given, count: int) -> Array:
    """Return the scales of a layer's sums over that of its result, in float64."""
    x, w = given.input(0), given.input(1)
    sizes = np.asarray(w.scales, np.float32)
    if len(sizes) not in (1, count) or any(w.zeros):
        raise TFLiteError(f"{given.operator.name}: the weights {w.name!r} have scales or zero points that do not fit")
    real: Array = sizes.astype(np.float64) * np.float64(_scale(x)) / np.float64(_scale(given.output))
    return real


def _summed(total: Tensor, bias: Tensor | None) -> Tensor:
    return total if bias is None else total + bias.astype(D.int32)


def _layer(given: Given, x: Tensor, w: Tensor, bias: Tensor | None, groups: int, fields: Any) -> Tensor:
    """Return a convolution; `fields` are the numbers of the options of dilations and activation."""
    o = given.operator
    strides = o.option(2, "<i"), o.option(1, "<i")
    dilations = o.option(fields[1], "<i", 1), o.option(fields[0], "<i", 1)
    padding = pads_of(o, x, w.shape[2:], strides, dilations)
    zero = _zero(given.input(0))
    more = {"strides": strides, "padding": padding, "dilation": dilations, "groups": groups, "zero": zero}
    total = _summed(last(apply(quantisation.int_conv, first(x), w, **more)), bias)
    real = _filter_scales(given, w.shape[0])
    return _rescaled(total, real, _zero(given.output), _clamped(given, o.option(fields[2])), given.output.kind)


def _conv(given: Given, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    w = ops.transpose(w, (0, 3, 1, 2))
    return _layer(given, x, w, bias, x.shape[3] // w.shape[1], (4, 5, 3))


def _depthwise(given: Given, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    return _layer(given, x, ops.transpose(w, (3, 0, 1, 2)), bias, x.shape[3], (5, 6, 4))


def _fully_connected(given: Given, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    o = given.operator
    if not o.option(2):
        x = x.reshape((-1, w.shape[1]))
    more = {"a_zero": _zero(given.input(0)), "b_zero": 0}
    total = _summed(apply(quantisation.int_matmul, x, ops.transpose(w, (1, 0)), **more), bias)
    real = _filter_scales(given, w.shape[0])
    if len(real) == 1:
        # One scale: the product of the scales is one of floats.
        product = np.float64(_scale(given.input(0)) * np.float32(given.input(1).scales[0]))
        real = product / np.float64(_scale(given.output))
    # Unlike convolutions it rounds once.
    return _rescaled(total, real, _zero(given.output), _clamped(given, o.option(0)), given.output.kind, "single")


def _added(sign: int) -> Kernel:
    def compute(given: Given, x: Tensor, y: Tensor) -> Tensor:
        a, b, made = given.input(0), given.input(1), given.output
        twice = 2.0 * max(float(_scale(a)), float(_scale(b)))
        parts = []
        for value, info, factor in ((x, a, 1), (y, b, sign)):
            moved = _whole(value, _zero(info)) * (1 << 20)
            parts.append(_rescaled(moved, factor * float(_scale(info)) / twice, 0, INT32, "int32"))
        real = twice / ((1 << 20) * float(_scale(made)))
        return _rescaled(parts[0] + parts[1], real, _zero(made), _clamped(given, given.operator.option(0)), made.kind)

    return compute


def _multiplied(given: Given, x: Tensor, y: Tensor) -> Tensor:
    a, b, made = given.input(0), given.input(1), given.output
    total = _whole(x, _zero(a)) * _whole(y, _zero(b))
    # All in floats, as the kernel does it.
    real = np.float32(_scale(a) * _scale(b)) / _scale(made)
    return _rescaled(total, float(real), _zero(made), _clamped(given, given.operator.option(0)), made.kind)


def _divided(total: Tensor, count: Any) -> Tensor:
    """Return sums over counts, halves away from zero."""
    count = _constant(np.asarray(count, np.int32))
    half = _constant(np.asarray(count.asnumpy() // 2, np.int32))
    above = ops.floor_div(ops.abs(total) + half, count)
    return ops.where(total > 0, above, -above)


def _cut(x: Tensor, ends: tuple[int, int], kind: str) -> Tensor:
    return ops.clamp(x, *ends).astype(getattr(D, kind))


def _window(o: Operator, x: Tensor) -> dict[str, Any]:
    window, strides = (o.option(4, "<i"), o.option(3, "<i")), (o.option(2, "<i"), o.option(1, "<i"))
    return {"window": window, "strides": strides, "padding": pads_of(o, x, window, strides, (1, 1))}


def _average_pool(given: Given, x: Tensor) -> Tensor:
    o, info = given.operator, given.input(0)
    _need_same(given, info)
    at = _window(o, x)
    total = apply(window_prims.window_sum, first(x.astype(D.int32)), **at)
    ones = np.ones((1, 1, *x.shape[1:3]), np.int32)
    count = window_prims.window_sum.reference(ones, **at) if window_prims.window_sum.reference is not None else ones
    return _cut(last(_divided(total, count)), _clamped(given, o.option(5)), given.output.kind)


def _max_pool(given: Given, x: Tensor) -> Tensor:
    o = given.operator
    _need_same(given, given.input(0))
    return _cut(
        last(apply(window_prims.window_max, first(x), **_window(o, x))), _clamped(given, o.option(5)), given.output.kind
    )


def _need_same(given: Given, *infos: Info) -> None:
    """Raise Unsupported unless values have the scale of the result, as moves of them must."""
    made = given.output
    for info in infos:
        if (info.scales, info.zeros) != (made.scales, made.zeros):
            raise Unsupported(
                f"load: {given.operator.name} changes the scale from {info.scales} to {made.scales}, which has no "
                "kernel of rounding='tflite'"
            )


def _mean(given: Given, x: Tensor, axes: Any) -> Tensor:
    info, made = given.input(0), given.output
    where = tuple(int(a) % x.ndim for a in np.reshape(axes, -1))
    count = int(np.prod([x.shape[a] for a in where]))
    keep = bool(given.operator.option(0))
    total = apply(R.reduce_sum, _whole(x, _zero(info)), axes=tuple(sorted(where)), keepdims=keep)
    whole, shift = (int(v) for v in multipliers(np.asarray(float(_scale(info)) / float(_scale(made)))))
    # The multiplier is divided by the count with as many more bits as there are.
    more = min(max(count.bit_length() - 1, 0), 32, 31 + shift)
    parts = [_constant(np.int32(v)) for v in ((whole << more) // count, shift - more)]
    low, high = _ends(made)
    kind = {"low": low, "high": high, "rounding": "double", "dtype": from_any(made.kind)}
    found: Tensor = apply(quantisation.requantize, total, *parts, zero=_zero(made), **kind)
    return found


def _table(values: Callable[[Array], Array]) -> Kernel:
    """Return the kernel of a function of one value of 8 bits, computed in float32."""

    def compute(given: Given, x: Tensor) -> Tensor:
        info, made = given.input(0), given.output
        low, high = _ends(info)
        if high - low > 255:
            raise Unsupported(f"load: {given.operator.name} of {info.kind} has no kernel of rounding='tflite'")
        real = (np.arange(low, high + 1) - _zero(info)).astype(np.float32) * _scale(info)
        with np.errstate(all="ignore"):
            found = np.asarray(values(real), np.float32) * (np.float32(1) / _scale(made))
        levels = np.sign(found) * np.floor(np.abs(found) + np.float32(0.5)) + _zero(made)
        held = _constant(np.clip(levels, *_ends(made)).astype(made.kind))
        found_at: Tensor = apply(I.take, held, x.astype(D.int32) - low, axis=0, bounds="drop")
        return found_at

    return compute


def _softmax(given: Given, x: Tensor) -> Tensor:
    """Return a soft-max by a table of exponentials in float32."""
    info, made = given.input(0), given.output
    low, high = _ends(info)
    if high - low > 255:
        raise Unsupported(f"load: SOFTMAX of {info.kind} has no kernel of rounding='tflite'")
    beta = np.array([given.operator.option(0, "<i")], np.int32).view(np.float32)[0]
    powers = np.exp(-(np.float32(_scale(info) * beta)) * np.arange(256).astype(np.float32)).astype(np.float32)
    wide = x.astype(D.int32)
    apart = apply(R.reduce_max, wide, axes=(x.ndim - 1,), keepdims=True) - wide
    power = apply(I.take, _constant(powers), apart, axis=0, bounds="drop")
    total = apply(R.reduce_sum, power, axes=(x.ndim - 1,), keepdims=True)
    real = power * (1.0 / (total * float(_scale(made))))
    return _cut(apply(E.rint, real).astype(D.int32) + _zero(made), _ends(made), made.kind)


def _clamp(code: int) -> Kernel:
    def compute(given: Given, x: Tensor) -> Tensor:
        info, made = given.input(0), given.output
        real = float(np.float32(_scale(info) / _scale(made)))
        return _rescaled(_whole(x, _zero(info)), real, _zero(made), _clamped(given, code), made.kind)

    return compute


def _quantize(given: Given, x: Tensor) -> Tensor:
    info, made = given.inputs[0], given.output
    if info is not None and info.is_quantised:
        real = float(_scale(info)) / float(_scale(made))
        return _rescaled(_whole(x, _zero(info)), real, _zero(made), _ends(made), made.kind)
    low, high = _ends(made)
    size, zero = _constant(np.asarray(_scale(made))), _constant(np.float32(_zero(made)))
    more = {"low": low, "high": high, "ties": "away", "dtype": from_any(made.kind)}
    found: Tensor = apply(quantisation.quantize, x, size, zero, **more)
    return found


def _dequantize(given: Given, x: Tensor) -> Tensor:
    info = given.input(0)
    if not info.is_quantised:
        return x.astype(D.float32)
    size, zero = _constant(np.asarray(_scale(info))), _constant(np.float32(_zero(info)))
    found: Tensor = apply(quantisation.dequantize, x, size, zero)
    return found


def _pad(given: Given, x: Tensor, amounts: Any, value: Any = None) -> Tensor:
    info = given.input(0)
    _need_same(given, info)
    low, high = np.reshape(amounts, (-1, 2)).T.tolist()
    fill = _constant(np.asarray(_zero(info) if value is None else np.reshape(value, -1)[0], info.kind))
    found: Tensor = apply(S.PAD, x, fill, low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)
    return found


def _moved(given: Given, *inputs: Any) -> Any:
    """Return what an operator gives for the integers themselves, whose scale is the result's."""
    o = given.operator
    constants = CONSTANTS.get(o.code, ())
    _need_same(
        given, *[i for k, i in enumerate(given.inputs) if i is not None and k not in constants and i.is_quantised]
    )
    return RULES[o.code](o, *inputs)


KERNELS: Mapping[int, Kernel] = {
    0: _added(1),
    1: _average_pool,
    3: _conv,
    4: _depthwise,
    6: _dequantize,
    9: _fully_connected,
    14: _table(lambda x: 1 / (1 + np.exp(-x))),
    17: _max_pool,
    18: _multiplied,
    19: _clamp(1),
    21: _clamp(3),
    25: _softmax,
    28: _table(np.tanh),
    34: _pad,
    40: _mean,
    41: _added(-1),
    60: _pad,
    114: _quantize,
    **{code: _moved for code in (2, 22, 36, 39, 43, 45, 49, 55, 57, 65, 69, 70, 83, 88, 97, 105)},
}  # fmt: skip


# Those whose kernels of int16 have other arithmetic, with sums of 64 bits.
_BYTES_ALONE = frozenset((0, 1, 3, 4, 9, 18, 40, 41))


def kernel_of(o: Operator, inputs: Sequence[Info | None] = ()) -> Kernel:
    """Return the kernel of an operator of quantised tensors; `inputs` are what it is given.

    Raises Unsupported where there is none.
    """
    found = KERNELS.get(o.code)
    first_ = inputs[0] if inputs else None
    what = ""
    if first_ is not None and o.code in _BYTES_ALONE:
        what = " of int16" if first_.kind == "int16" else "" if first_.is_quantised else " of floats and integers"
    if found is None or what:
        raise Unsupported(
            f"load: the operator {o.name}{what} has no kernel of rounding='tflite'; without it its results are right "
            "up to a level"
        )
    return found
