"""Records of element-wise primitives, made of a NumPy function and a derivative.

`unary` and `binary` add what all of them share: operands broadcast by NumPy's rule and have one
element type; the reference computes the 16-bit types in float32; and as the derivative of a
broadcast is a sum, each rule passes its cotangents through `unbroadcast`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import (
    Cost,
    Primitive,
    Rounding,
    Sample,
    batch_elementwise,
    broadcast_shapes,
    need_kind,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.factors import elementwise_factors
from mycel._src.foundation.dtype import DType

__all__ = ["FLOATS", "INTEGERS", "NUMBERS", "Facts", "binary", "kind_of", "unary", "unbroadcast"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + INTEGERS
Rule = Callable[..., Any] | None


class Facts(NamedTuple):
    """Fields of an element-wise primitive's record besides its rules; `Primitive` explains them."""

    cost: Cost = Cost.PASS
    rounding: Rounding = Rounding.ONCE
    linear: bool = False
    traps: Callable[[Node], bool] | None = None
    advice: str = ""


_FUNCTION = Facts()


def unbroadcast(ct: Node, like: Node) -> Node:
    """Sum a cotangent over the axes along which `like` was broadcast."""
    from mycel._src.compiler.prims import reduce as R

    if same(ct.shape, like.shape):
        return ct
    extra = len(ct.shape) - len(like.shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, d in enumerate(like.shape) if not same(d, ct.shape[extra + i]) and d == 1
    )
    total = R.reduce_any if ct.dtype.kind == "b" else R.reduce_sum
    return S.reshape(total(ct, axes=axes, keepdims=False), like.shape)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reference with 16-bit types computed in float32 and without NumPy's warnings."""

    def run(*arrays: Any, **params: Any) -> Any:
        kind = arrays[0].dtype
        with np.errstate(all="ignore"):
            if kind.itemsize == 2 and kind.kind not in "iub":
                wide = [a.astype(np.float32) if a.dtype == kind else a for a in arrays]
                result = np.asarray(function(*wide, **params))
                return result.astype(kind) if result.dtype != np.bool_ else result
            return np.asarray(function(*arrays, **params))

    return run


def _define(
    name: str,
    arity: int,
    reference: Callable[..., Any],
    vjp: Rule,
    kinds: str,
    result: DType | None,
    doc: str,
    domain: tuple[float, float],
    expand: Rule,
    integers: tuple[int, int],
    facts: Facts,
) -> Primitive:
    def infer(*types: TensorType) -> TensorType:
        if len(types) != arity:
            raise TypeError(f"{name} takes {arity} operands, not {len(types)}")
        need_kind(name, kinds, *types)
        dtype = same_dtype(name, *types)
        shape = types[0].shape if arity == 1 else broadcast_shapes(*[t.shape for t in types], name=name)
        return tensor_type(shape, result or dtype)

    def batch(size: Any, values: Any, axes: Any, **params: Any) -> Any:
        return batch_elementwise(primitive, size, values, axes, params)

    allowed = tuple(n for n in (*FLOATS, *INTEGERS, "bool") if kind_of(n) in kinds)
    shapes: tuple[Any, ...] = {
        1: (((2, 3),), ((),), ((0, 2),)),
        2: (((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((), (3,)), ((0, 2), (1,))),
    }[arity]
    samples = tuple(Sample(s, domain=domain, integers=integers) for s in shapes)
    primitive = Primitive(
        name,
        infer,
        _widened(reference),
        vjp,
        batch,
        expand,
        samples,
        allowed,
        elementwise=True,
        factors=elementwise_factors,
        holomorphic="c" in kinds,
        doc=doc,
        **facts._asdict(),
    )
    return register(primitive)


def kind_of(name: str) -> str:
    return {"b": "f", "f": "f", "i": "i", "u": "u"}[name[0]] if name != "bool" else "b"


def unary(
    name: str,
    reference: Any,
    derivative: Rule,
    kinds: str = "f",
    result: DType | None = None,
    doc: str = "",
    domain: tuple[float, float] = (-2.0, 2.0),
    expand: Rule = None,
    integers: tuple[int, int] = (-5, 6),
    facts: Facts = _FUNCTION,
) -> Primitive:
    """Define a unary primitive; `derivative(ct, out, x)` is the cotangent of x.

    `name` is the primitive's, `reference` its NumPy function. `kinds` has a letter for each kind of
    element type allowed: f floating, i signed, u unsigned, b boolean, c complex. `result` is the
    element type of the result, None for that of the operands; `doc` says what is computed. Samples
    have floats in the interval `domain` and ints in ``range(*integers)``; `expand` is the
    definition in simpler primitives; `facts` are further fields of the record. A `derivative` of
    None is zero, unless `expand` is given.
    """
    vjp = (lambda ct, out, x: (derivative(ct, out, x),)) if derivative is not None else None
    if derivative is None and expand is None:
        vjp = lambda ct, out, x: (None,)
    return _define(name, 1, reference, vjp, kinds, result, doc, domain, expand, integers, facts)


def binary(
    name: str,
    reference: Any,
    derivative: Rule,
    kinds: str,
    result: DType | None = None,
    doc: str = "",
    domain: tuple[float, float] = (-2.0, 2.0),
    integers: tuple[int, int] = (-5, 6),
    facts: Facts = _FUNCTION,
) -> Primitive:
    """Define a binary primitive; `derivative(ct, out, x, y)` gives the cotangents of x and y.

    It gives them in the shape of the result; None is zero. `name` is the primitive's, `reference`
    its NumPy function. `kinds` has a letter for each kind of element type allowed: f floating, i
    signed, u unsigned, b boolean, c complex. `result` is the element type of the result, None for
    that of the operands; `doc` says what is computed. Samples have floats in the interval `domain`
    and ints in ``range(*integers)``; `facts` are further fields of the record.
    """

    def vjp(ct: Node, out: Node, x: Node, y: Node) -> tuple[Node | None, Node | None]:
        if derivative is None:
            return None, None
        dx, dy = derivative(ct, out, x, y)
        return (None if dx is None else unbroadcast(dx, x)), (None if dy is None else unbroadcast(dy, y))

    return _define(name, 2, reference, vjp, kinds, result, doc, domain, None, integers, facts)
