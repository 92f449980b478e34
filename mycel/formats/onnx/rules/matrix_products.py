"""ONNX's matrix products, and operators made of them."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import Operation, apply, as_type, rule, scalar, transposed

__all__: list[str] = []


@rule("MatMul")
def _matmul(op: Operation, x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_floating or x.dtype in (D.int32, D.int64):
        return ops.matmul(x, y)
    wide = as_type(ops.matmul(as_type(x, D.int64), as_type(y, D.int64)), x.dtype)
    return wide


@rule("Gemm")
def _gemm(op: Operation, x: Tensor, y: Tensor, c: Any = None) -> Tensor:
    x = transposed(x, (1, 0)) if op.get("transA", 0) else x
    y = transposed(y, (1, 0)) if op.get("transB", 0) else y
    found: Tensor = _matmul(op, x, y)
    alpha, beta = op.get("alpha", 1.0), op.get("beta", 1.0)
    if alpha != 1.0:
        found = apply(E.mul, found, scalar(alpha, found))
    if c is None:
        return found
    return apply(E.add, found, c if beta == 1.0 else apply(E.mul, c, scalar(beta, c)))


@rule("Einsum")
def _einsum(op: Operation, *operands: Tensor) -> Tensor:
    found: Tensor = ops.einsum(op.get("equation").replace(" ", ""), *operands)
    return found


@rule("Det")
def _det(op: Operation, x: Tensor) -> Tensor:
    found: Tensor = ops.det(x)
    return found
