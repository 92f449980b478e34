"""Matrix product.

Leading dimensions broadcast; derivatives are again products, with transposed operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import (
    Primitive,
    Rounding,
    Sample,
    broadcast_shapes,
    need_kind,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.elementwise_records import FLOATS, unbroadcast
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.foundation.errors import ShapeError


def _infer(a: TensorType, b: TensorType) -> TensorType:
    if a.rank < 2 or b.rank < 2:
        raise ShapeError(f"matmul: operands need at least 2 dimensions: {a} @ {b}")
    dtype = same_dtype("matmul", a, b)
    need_kind("matmul", "fiucb", a)
    if a.shape[-1] != b.shape[-2]:
        hint = "; transpose the second argument?" if a.shape[-1] == b.shape[-1] else ""
        raise ShapeError(f"matmul: inner dimensions differ: {_show(a)} @ {_show(b)}{hint}")
    return tensor_type(broadcast_shapes(a.shape[:-2], b.shape[:-2], name="matmul") + (a.shape[-2], b.shape[-1]), dtype)


def _show(t: TensorType) -> str:
    return "(" + ", ".join(map(str, t.shape)) + ")"


def _reference(a: Any, b: Any) -> Any:
    if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return np.matmul(a, b)


def swap_last(x: Node) -> Node:
    """Return `x` with its last two axes exchanged."""
    r = x.type.rank
    return S.transpose(x, (*range(r - 2), r - 1, r - 2))


def _vjp(ct: Node, out: Node, a: Node, b: Node) -> tuple[Any, Any]:
    da = unbroadcast(matmul(ct, swap_last(b)), a)
    if b.type.rank == 2 and a.type.rank > 2:
        # One matrix serves all of the batch: its gradient is one product over all rows.
        rows = product(a.shape[:-1])
        return da, matmul(swap_last(S.reshape(a, (rows, a.shape[-1]))), S.reshape(ct, (rows, ct.shape[-1])))
    return da, unbroadcast(matmul(swap_last(a), ct), b)


def _batch(size: Any, values: Any, axes: Any) -> Any:
    columns = values[1].shape[-1 if axes[1] != values[1].type.rank - 1 else -2]
    if axes[0] is None and values[0].type.rank == 2 and columns == 1:
        # One matrix times a vector of each example: transposed, one product of all of them.
        b = swap_last(S.move_axis(values[1], axes[1], 0))
        rows = S.reshape(b, (product(b.shape[:-1]), b.shape[-1]))
        made = matmul(rows, swap_last(values[0]))
        return swap_last(S.reshape(made, (*b.shape[:-1], made.shape[-1]))), 0
    rank = max(v.type.rank - (ax is not None) for v, ax in zip(values, axes))
    moved = []
    for v, ax in zip(values, axes):
        if ax is not None:
            v = S.move_axis(v, ax, 0)
            v = S.reshape(v, (v.shape[0],) + (1,) * (rank - v.type.rank + 1) + tuple(v.shape[1:]))
        moved.append(v)
    return matmul(*moved), 0


def _factors(node: Node) -> tuple[Factor, ...]:
    rank = node.type.rank
    lead = [range(rank - i.type.rank, rank - 2) for i in node.inputs]
    return named(
        node,
        [(*lead[0], "row", "inner"), (*lead[1], "inner", "column")],
        [(*range(rank - 2), "row", "column")],
        {"inner": "sum"},
    )


matmul: Primitive = register(
    Primitive(
        "matmul",
        _infer,
        _reference,
        _vjp,
        _batch,
        samples=(
            Sample(((3, 4), (4, 5))),
            Sample(((2, 3, 4), (4, 2))),
            Sample(((2, 1, 3, 4), (5, 4, 2))),
            Sample(((0, 4), (4, 2))),
            Sample(((2, 0), (0, 3))),
        ),
        dtypes=(*FLOATS, "int32", "int64"),
        holomorphic=True,
        factors=_factors,
        rounding=Rounding.ONCE,
        work=lambda node, number: 2 * number(node.type.size) * number(node.inputs[0].type.shape[-1]),
        doc="a @ b over the last two axes; the other axes broadcast; 16-bit floats accumulate in float32.",
    )
)
