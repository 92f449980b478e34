"""Attention: softmax(scale * Q K^T + bias) V, and its derivative, without the matrix of scores.

Queries are (..., S, D), keys (..., T, D) and values (..., T, E). The axes in front are those of the
queries; keys and values may have 1 in place of any of them, and then serve all of its positions
(heads that share keys). Further operands, in this order, are named by `operands`:

* "bias", of the type in which scores are computed, is added to the scores;
* "drop", of booleans, is true where a score becomes `fill`;
* "kept", of booleans, is true where dropout keeps a weight, which is divided by `keep`;
* "state", of uint64[2], is that of a generator which draws "kept" with the probability `keep`.

Each but the last broadcasts to the scores, in whose order elements are drawn: an engine has the
mask nowhere, as it can draw any element at any time. `band` is a pair of numbers, either of which
may be None: scores of query i and key j with j - i below the first or above the second become
`fill`. 16-bit floats are computed in float32 and rounded once.

The results are the attention and two numbers for each row, (..., S, 1): the largest score and the
sum of exp(score - largest), from which the derivative computes the weights again. So an engine that
goes through the scores in blocks keeps memory that grows as the lengths do, not as their product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, is_one, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import (
    SERVICES,
    Primitive,
    Rounding,
    Sample,
    broadcast_shapes,
    constant,
    need_kind,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.elementwise_records import unbroadcast
from mycel._src.compiler.prims.matrix_product import matmul, swap_last
from mycel._src.compiler.prims.neural import attention_factors
from mycel._src.compiler.prims.random import bernoulli, random_bits
from mycel._src.compiler.prims.reduce import reduce_max, reduce_sum
from mycel._src.foundation.dtype import DType, bool_, float32, int64, uint32, uint64
from mycel._src.foundation.errors import ShapeError, SizeError

__all__ = ["OPERANDS", "attention", "attention_grad", "computed_in"]

# The largest end of a band.
FURTHEST = 1 << 62
OPERANDS = ("bias", "drop", "kept", "state")
Band = tuple[DimLike | None, DimLike | None] | None
Nodes = Sequence[Node]


def computed_in(dtype: DType) -> DType:
    """Return the type in which the attention of elements of a type is computed."""
    return float32 if dtype.itemsize == 2 else dtype


def _check(name: str, q: TensorType, k: TensorType, v: TensorType, masks: Sequence[TensorType], operands: Any) -> None:
    dtype = same_dtype(name, q, k, v)
    need_kind(name, "f", q)
    if min(q.rank, k.rank, v.rank) < 2 or not q.rank == k.rank == v.rank:
        raise ShapeError(f"{name}: queries, keys and values need the same rank, at least 2: {q}, {k}, {v}")
    fits = all(is_one(b) or same(a, b) or a == b for a, b in zip(q.shape[:-2], k.shape[:-2]))
    if not fits or k.shape[:-2] != v.shape[:-2] or k.shape[-2] != v.shape[-2] or q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{name}: queries {q}, keys {k} and values {v} do not go together")
    if tuple(operands) != tuple(w for w in OPERANDS if w in operands) or len(masks) != len(operands):
        raise ShapeError(f"{name}: {len(masks)} operands follow the values, and their names are {operands}")
    scores = (*q.shape[:-1], k.shape[-2])
    for word, mask in zip(operands, masks):
        if word == "state":
            if mask.dtype is not uint64 or mask.shape != (2,) or "kept" in operands:
                raise ShapeError(f"{name}: the state of dropout must be uint64[2] in place of a mask, not {mask}")
            continue
        wanted = computed_in(dtype) if word == "bias" else bool_
        if mask.dtype is not wanted:
            raise TypeError(f"{name}: {word} must be of {wanted.name}, not {mask.dtype.name}")
        if mask.rank > q.rank or broadcast_shapes(mask.shape, scores, name=name) != scores:
            raise ShapeError(f"{name}: {word} of shape {mask.shape} does not broadcast to the scores {scores}")


def _infer(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    *masks: Any,
    operands: Any,
    band: Band,
    fill: float,
    keep: float,
    **_: Any,
) -> Any:
    _check("attention", q, k, v, masks, operands)
    if not 0.0 < keep <= 1.0:
        raise ValueError(f"attention: keep must be in (0, 1], not {keep!r}")
    if any(type(end) is int and abs(end) > FURTHEST for end in band or ()):
        raise SizeError(f"attention: the ends of the band {band} are beyond all positions")
    if math.isnan(fill) or math.isfinite(fill) and abs(fill) > np.finfo(computed_in(q.dtype).numpy).max:
        raise ValueError(f"attention: fill {fill!r} is no score of {computed_in(q.dtype).name}")
    statistic = tensor_type((*q.shape[:-1], 1), computed_in(q.dtype))
    return tensor_type((*q.shape[:-1], v.shape[-1]), q.dtype), statistic, statistic


def _grad_infer(ct: TensorType, q: TensorType, k: TensorType, v: TensorType, *rest: Any, **params: Any) -> Any:
    out, statistic, _ = _infer(q, k, v, *rest[3:], **params)
    if ct is not out or any(t is not statistic for t in rest[:3]):
        raise ShapeError(f"attention_grad: {ct} and {', '.join(map(str, rest[:3]))} do not belong to {q} and {v}")
    return q, k, v


# The definition in NumPy.


def _wide(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _scores(q: Any, k: Any, masks: Any, scale: float, operands: Any, band: Band, fill: float) -> Any:
    """Return the scores, where they are replaced by `fill`, and the mask of dropout or None."""
    given = dict(zip(operands, masks))
    s = np.matmul(q, np.swapaxes(k, -1, -2)) * q.dtype.type(scale)
    if "bias" in given:
        s = s + given["bias"]
    dropped = np.zeros(s.shape, bool)
    if "drop" in given:
        dropped |= given["drop"]
    if band is not None:
        ahead = np.arange(s.shape[-1])[None, :] - np.arange(s.shape[-2])[:, None]
        low, high = band
        dropped |= (ahead < (-np.inf if low is None else low)) | (ahead > (np.inf if high is None else high))
    return np.where(dropped, s.dtype.type(fill), s), dropped, given.get("kept")


def _with_drawn(masks: Any, operands: Any, shape: Any, keep: float) -> tuple[Any, Any]:
    """Return masks and their names with the mask that a state draws in place of the state."""
    if "state" not in operands:
        return masks, operands
    assert random_bits.reference is not None
    bits = random_bits.reference(masks[-1], shape=shape, dtype=uint32)
    unit = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return (*masks[:-1], unit < np.float32(keep)), (*operands[:-1], "kept")


def _reference(
    q: Any, k: Any, v: Any, *masks: Any, scale: float, operands: Any, band: Band, fill: float, keep: float
) -> Any:
    wide_q, wide_k, wide_v = map(_wide, (q, k, v))
    masks, operands = _with_drawn(masks, operands, (*q.shape[:-1], k.shape[-2]), keep)
    with np.errstate(all="ignore"):
        s, _, kept = _scores(wide_q, wide_k, masks, scale, operands, band, fill)
        peak = np.max(s, -1, keepdims=True, initial=-np.inf)
        p = np.exp(s - peak)
        total = p.sum(-1, keepdims=True)
        p = p / total
        p = p if kept is None else np.where(kept, p * p.dtype.type(1 / keep), 0)
        return np.matmul(p.astype(wide_v.dtype), wide_v).astype(q.dtype), peak, total


def _reduced(x: Any, shape: Any) -> Any:
    """Return the sum of `x` over the axes that are 1 in `shape`."""
    axes = tuple(i for i, (a, b) in enumerate(zip(x.shape, shape)) if b == 1 and a != 1)
    return x.sum(axes, keepdims=True) if axes else x


def _grad_reference(
    ct: Any, q: Any, k: Any, v: Any, *rest: Any, scale: float, operands: Any, band: Band, fill: float, keep: float
) -> Any:
    peak, total, delta, *masks = rest
    ct, wide_q, wide_k, wide_v = map(_wide, (ct, q, k, v))
    masks, operands = _with_drawn(masks, operands, (*q.shape[:-1], k.shape[-2]), keep)
    with np.errstate(all="ignore"):
        s, dropped, kept = _scores(wide_q, wide_k, masks, scale, operands, band, fill)
        p = np.exp(s - peak) / total
        dp = np.matmul(ct, np.swapaxes(wide_v, -1, -2))
        thin = (lambda x: x) if kept is None else (lambda x: np.where(kept, x * x.dtype.type(1 / keep), 0))
        ds = np.where(dropped, 0, p * (thin(dp) - delta)) * p.dtype.type(scale)
        dq = np.matmul(ds, wide_k)
        dk = _reduced(np.matmul(np.swapaxes(ds, -1, -2), wide_q), k.shape)
        dv = _reduced(np.matmul(np.swapaxes(thin(p), -1, -2), ct), v.shape)
        return dq.astype(q.dtype), dk.astype(k.dtype), dv.astype(v.dtype)


# The definition in primitives.


class _Scores:
    """The scores of an attention in primitives, and what its masks do to them.

    `q`, `k` and `masks` are its operands; `scale`, `operands`, `band`, `fill` and `keep` its
    parameters.
    """

    def __init__(
        self, q: Node, k: Node, masks: Nodes, scale: float, operands: Any, band: Band, fill: float, keep: float
    ) -> None:
        given = dict(zip(operands, masks))
        self.keep, self.kept = keep, given.get("kept")
        if "state" in given:
            self.kept = bernoulli(given["state"], (*q.shape[:-1], k.shape[-2]), keep)
        self.dropped = given.get("drop")
        s = E.mul(matmul(q, swap_last(k)), scale)
        if "bias" in given:
            s = E.add(s, given["bias"])
        for outside in () if band is None else _outside(band, s):
            self.dropped = outside if self.dropped is None else E.logical_or(self.dropped, outside)
        self.value = self.replaced(s, fill)

    def replaced(self, x: Node, value: float) -> Node:
        """Return `x` with a value at the scores that are dropped."""
        return x if self.dropped is None else E.select(self.dropped, constant(value, x.dtype), x)

    def thinned(self, x: Node) -> Node:
        """Return `x` after dropout."""
        if self.kept is None:
            return x
        return E.select(self.kept, E.mul(x, 1.0 / self.keep), constant(0.0, x.dtype))


def _outside(band: tuple[DimLike | None, DimLike | None], s: Node) -> list[Node]:
    shape = tuple(s.shape[-2:])
    ahead = E.sub(S.iota(shape=shape, axis=1, dtype=int64), S.iota(shape=shape, axis=0, dtype=int64))
    low, high = band
    found = [] if low is None else [E.lt(ahead, constant(low, int64))]
    return found if high is None else [*found, E.gt(ahead, constant(high, int64))]


def _widened(*nodes: Node) -> list[Node]:
    return [n if n.dtype is computed_in(n.dtype) else E.cast(n, dtype=float32) for n in nodes]


def _rounded(x: Node, dtype: DType) -> Node:
    return x if x.dtype is dtype else E.cast(x, dtype=dtype)


def _expand(q: Node, k: Node, v: Node, *masks: Node, **params: Any) -> tuple[Node, Node, Node]:
    wide_q, wide_k, wide_v = _widened(q, k, v)
    scores = _Scores(wide_q, wide_k, masks, **params)
    peak = reduce_max(scores.value, axes=(q.type.rank - 1,), keepdims=True)
    p = E.exp(E.sub(scores.value, peak))
    total = reduce_sum(p, axes=(q.type.rank - 1,), keepdims=True)
    out = matmul(scores.thinned(E.div(p, total)), wide_v)
    return _rounded(out, q.dtype), peak, total


def _score_cotangent(ct: Node, q: Node, k: Node, v: Node, *rest: Node, **params: Any) -> tuple[Node, Node]:
    """Return the cotangent of the scores before they are dropped, and the weights after dropout."""
    peak, total, delta, *masks = rest
    scores = _Scores(q, k, masks, **params)
    p = E.div(E.exp(E.sub(scores.value, peak)), total)
    dp = scores.thinned(matmul(ct, swap_last(v)))
    return scores.replaced(E.mul(p, E.sub(dp, delta)), 0.0), scores.thinned(p)


def _grad_expand(ct: Node, q: Node, k: Node, v: Node, *rest: Node, **params: Any) -> tuple[Node, ...]:
    wide = _widened(ct, q, k, v)
    ds, p = _score_cotangent(*wide, *rest, **params)
    ds = E.mul(ds, params["scale"])
    dq = matmul(ds, wide[2])
    dk = unbroadcast(matmul(swap_last(ds), wide[1]), wide[2])
    dv = unbroadcast(matmul(swap_last(p), wide[0]), wide[3])
    return tuple(_rounded(x, q.dtype) for x in (dq, dk, dv))


# Rules.


def _vjp(cts: Any, outs: Any, q: Node, k: Node, v: Node, *masks: Node, **params: Any) -> Sequence[Node | None]:
    ct, *others = cts
    if any(c is not None for c in others):
        fresh = [E.identity(i) for i in (q, k, v, *masks)]
        return SERVICES.differentiate(list(_expand(*fresh, **params)), list(cts), fresh)
    out, peak, total = outs
    wide_ct, wide_out, wide_q, wide_k, wide_v = _widened(ct, out, q, k, v)
    delta = reduce_sum(E.mul(wide_ct, wide_out), axes=(q.type.rank - 1,), keepdims=True)
    made: list[Node | None] = list(attention_grad.outputs(ct, q, k, v, peak, total, delta, *masks, **params))
    for word, mask in zip(params["operands"], masks):
        if word != "bias":
            made.append(None)
            continue
        ds, _ = _score_cotangent(wide_ct, wide_q, wide_k, wide_v, peak, total, delta, *masks, **params)
        made.append(unbroadcast(ds, mask))
    return made


def _fronted(size: DimLike, values: Nodes, axes: Any, rank: int, spread: Any) -> list[Node]:
    """Return the values with the batch in front, and then `rank` axes.

    `size` is that of the batch, `axes` say where it is. Those in `spread` that have none are
    repeated; the others get an axis of 1.
    """
    made = []
    for i, (x, axis) in enumerate(zip(values, axes)):
        if axis is None:
            x = S.reshape(x, (1, *(1,) * (rank - x.type.rank), *x.shape))
            made.append(S.broadcast_to(x, (size, *x.shape[1:])) if i in spread else x)
        else:
            x = S.move_axis(x, axis, 0)
            made.append(S.reshape(x, (size, *(1,) * (rank + 1 - x.type.rank), *x.shape[1:])))
    return made


def _with_mask(values: Nodes, axes: Any, params: dict[str, Any], first: int) -> tuple[Nodes, Any, dict[str, Any]]:
    """Return the operands of a batch with the mask that a state draws in place of the state.

    `axes` say where the batch is in the `values`, `params` are the parameters, and queries are
    operand `first`.
    """
    if "state" not in params["operands"]:
        return values, axes, params
    (*others, state), (*others_axes, axis) = values, axes
    q, k = (tuple(d for a, d in enumerate(values[i].shape) if a != axes[i]) for i in (first, first + 1))
    state = state if axis is None else S.move_axis(state, axis, 0)
    kept = bernoulli(state, (*q[:-1], k[-2]), params["keep"])
    operands = (*params["operands"][:-1], "kept")
    return (*others, kept), (*others_axes, None if axis is None else 0), {**params, "operands": operands}


def _batch(size: DimLike, values: Nodes, axes: Any, **params: Any) -> Any:
    values, axes, params = _with_mask(values, axes, params, 0)
    both = () if axes[1] is None and axes[2] is None else (1, 2)
    rank = values[0].type.rank - (axes[0] is not None)
    given = _fronted(size, values, axes, rank, (0, *both))
    return attention.outputs(*given, **params), (0, 0, 0)


def _grad_batch(size: DimLike, values: Nodes, axes: Any, **params: Any) -> Any:
    values, axes, params = _with_mask(values, axes, params, 1)
    rank = values[0].type.rank - (axes[0] is not None)
    given = _fronted(size, values, axes, rank, range(7))
    return attention_grad.outputs(*given, **params), (0, 0, 0)


def _work(products: int) -> Callable[[Node, Callable[[DimLike], int]], int]:
    def work(node: Node, number: Callable[[DimLike], int]) -> int:
        q, k = (node.inputs[i].type for i in ((0, 1) if products == 2 else (1, 2)))
        return 2 * products * number(q.size) * number(k.shape[-2])

    return work


def _samples(grad: bool) -> tuple[Sample, ...]:
    plain: dict[str, Any] = {"scale": 0.5, "operands": (), "band": None, "fill": -1e9, "keep": 1.0}
    drop = np.arange(15).reshape(3, 5) % 4 == 1
    kept = np.arange(30).reshape(2, 3, 5) % 3 != 1
    cases: list[tuple[Any, Any, Any, tuple[Any, ...], dict[str, Any]]] = [
        ((3, 4), (5, 4), (5, 2), (), {}),
        ((2, 3, 4), (2, 5, 4), (2, 5, 6), (drop,), {"operands": ("drop",)}),
        ((2, 3, 4), (1, 5, 4), (1, 5, 4), ((1, 5),), {"operands": ("bias",)}),
        ((2, 3, 4), (2, 5, 4), (2, 5, 4), (kept,), {"operands": ("kept",), "keep": 0.5}),
        ((2, 3, 4), (2, 5, 4), (2, 5, 4), (np.array([5, 7], np.uint64),), {"operands": ("state",), "keep": 0.5}),
        ((2, 1, 7, 3), (1, 1, 7, 3), (1, 1, 7, 3), (), {"band": (None, 0)}),
        ((7, 4), (7, 4), (7, 4), ((7, 7),), {"band": (-2, 1), "operands": ("bias",)}),
    ]
    made = []
    for q, k, v, masks, params in cases:
        shapes: tuple[Any, ...] = (q, k, v)
        if grad:
            shapes = ((*q[:-1], v[-1]), q, k, v, *[(*q[:-1], 1)] * 3)
        words = {"bias": "*", "state": "uint64"}
        kinds = ("*",) * len(shapes) + tuple(words.get(w, "bool") for w in params.get("operands", ()))
        made.append(
            Sample((*shapes, *masks), {**plain, **params}, dtypes=kinds, domain=(0.5, 1.5) if grad else (-1.0, 1.0))
        )
    return tuple(made)


attention: Primitive = register(
    Primitive(
        "attention",
        _infer,
        _reference,
        _vjp,
        _batch,
        _expand,
        samples=_samples(False),
        dtypes=("float32", "float64"),
        rounding=Rounding.ONCE,
        work=_work(2),
        factors=attention_factors.attention_factors,
        part=attention_factors.attention_part,
        doc="softmax(scale * Q K^T + bias) V, the largest score of each row, and the sum of its exponentials.",
    )
)

attention_grad: Primitive = register(
    Primitive(
        "attention_grad",
        _grad_infer,
        _grad_reference,
        None,
        _grad_batch,
        _grad_expand,
        samples=_samples(True),
        dtypes=("float32", "float64"),
        rounding=Rounding.ONCE,
        work=_work(5),
        factors=attention_factors.attention_grad_factors,
        part=attention_factors.attention_grad_part,
        doc="The cotangents of queries, keys and values by that of their attention, its rows' statistics and the sums "
        "of cotangent times attention.",
    )
)
