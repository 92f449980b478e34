"""Quantised operators of ONNX Runtime's own domain (com.microsoft), which its tools write.

All but products compute what the operator of the same name computes of the dequantised numbers,
rounded to the scale of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.neural import quantisation
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import from_any
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import RULES, Operation, apply, as_type, reshaped, rule, scalar, tensor, transposed
from mycel.formats.onnx.rules.quantization import stepped, sums_of_product

__all__: list[str] = []
_DOMAIN = "com.microsoft"


def _real(x: Any, scale: Any, zero: Any) -> Tensor:
    x, size = tensor(x), reshaped(tensor(scale), ())
    offset = scalar(0, size) if zero is None else as_type(reshaped(tensor(zero), ()), size.dtype)
    made: Tensor = apply(quantisation.dequantize, x, size, offset)
    return made


def _steps(op: Operation, x: Tensor, scale: Any, zero: Any, like: Any) -> Tensor:
    kind = np.dtype(getattr((like if zero is None else zero).dtype, "numpy", (like if zero is None else zero).dtype))
    if kind.name not in ("int8", "uint8", "int16"):
        raise op.refused(f"levels of {kind}; int8, uint8 and int16 are supported")
    size, ends = reshaped(tensor(scale), ()), np.iinfo(kind)
    offset = scalar(0, size) if zero is None else as_type(reshaped(tensor(zero), ()), size.dtype)
    more = {"low": int(ends.min), "high": int(ends.max), "ties": "even", "dtype": from_any(kind)}
    made: Tensor = apply(quantisation.quantize, x, size, offset, **more)
    return made


def _plain(op: Operation, operator: str, *inputs: Tensor) -> Tensor:
    """Return what an operator of ONNX gives for numbers."""
    made = replace(op, domain="", operator=operator)
    found: Tensor = RULES["", operator].function(made, *inputs)
    return found


@rule("QuantizeLinear", raw=True, domain=_DOMAIN)
def _quantize(op: Operation, x: Any, scale: Any, zero: Any = None) -> Any:
    return RULES["", "QuantizeLinear"].function(op, x, scale, zero)


@rule("DequantizeLinear", raw=True, domain=_DOMAIN)
def _dequantize(op: Operation, x: Any, scale: Any, zero: Any = None) -> Any:
    return RULES["", "DequantizeLinear"].function(op, x, scale, zero)


def _one(operator: str) -> Callable[..., Tensor]:
    def compute(op: Operation, x: Any, x_scale: Any, x_zero: Any, scale: Any, zero: Any = None) -> Tensor:
        return _steps(op, _plain(op, operator, _real(x, x_scale, x_zero)), scale, zero, x)

    return compute


for _name, _operator in (("Sigmoid", "Sigmoid"), ("LeakyRelu", "LeakyRelu"), ("Softmax", "Softmax")):
    rule(f"QLinear{_name}", raw=True, domain=_DOMAIN)(_one(_operator))


def _two(operator: str) -> Callable[..., Tensor]:
    def compute(
        op: Operation,
        x: Any,
        x_scale: Any,
        x_zero: Any,
        y: Any,
        y_scale: Any,
        y_zero: Any,
        scale: Any,
        zero: Any = None,
    ) -> Tensor:
        made = _plain(op, operator, _real(x, x_scale, x_zero), _real(y, y_scale, y_zero))
        return _steps(op, made, scale, zero, x)

    return compute


for _name in ("Add", "Mul"):
    rule(f"QLinear{_name}", raw=True, domain=_DOMAIN)(_two(_name))


def _pooled(operator: str) -> Callable[..., Tensor]:
    def compute(op: Operation, x: Any, x_scale: Any, x_zero: Any, scale: Any, zero: Any = None) -> Tensor:
        last, real = op.get("channels_last", 0), _real(x, x_scale, x_zero)
        rank = real.ndim
        if last:
            real = transposed(real, (0, rank - 1, *range(1, rank - 1)))
        made = _plain(op, operator, real)
        return _steps(op, transposed(made, (0, *range(2, rank), 1)) if last else made, scale, zero, x)

    return compute


for _name in ("GlobalAveragePool", "AveragePool"):
    rule(f"QLinear{_name}", raw=True, domain=_DOMAIN)(_pooled(_name))


@rule("QLinearConcat", raw=True, domain=_DOMAIN)
def _concat(op: Operation, scale: Any, zero: Any, *parts: Any) -> Tensor:
    if not parts or len(parts) % 3:
        raise op.wrong(f"its {len(parts)} inputs are not values with their scales and zero points")
    real = [_real(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return _steps(op, _plain(op, "Concat", *real), scale, zero, parts[0])


@rule("QGemm", raw=True, domain=_DOMAIN)
def _gemm(
    op: Operation,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    y: Any,
    y_scale: Any,
    y_zero: Any,
    bias: Any = None,
    scale: Any = None,
    zero: Any = None,
) -> Tensor:
    x, y = tensor(x), tensor(y)
    x = transposed(x, (1, 0)) if op.get("transA", 0) else x
    y = transposed(y, (1, 0)) if op.get("transB", 0) else y
    total = sums_of_product(x, x_zero, y, y_zero)
    if bias is not None:
        total = apply(E.add, total, as_type(tensor(bias), D.int32))
    by = tensor(y_scale)
    by = reshaped(by, ()) if all(n == 1 for n in by.shape) else by
    factor = apply(E.mul, reshaped(tensor(x_scale), ()), by)
    if op.get("alpha", 1.0) != 1.0:
        factor = apply(E.mul, factor, scalar(op.get("alpha"), factor))
    if scale is None:
        made: Tensor = apply(quantisation.dequantize, total, factor, scalar(0, factor))
        return made
    if zero is None:
        raise op.refused("a result with a scale and without a zero point")
    return stepped(total, apply(E.div, factor, reshaped(tensor(scale), ())), zero)
