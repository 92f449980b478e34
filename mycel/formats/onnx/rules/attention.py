"""ONNX's attention operators and what goes with them."""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import conv
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Operation,
    apply,
    as_type,
    broadcast,
    kind_of,
    pad,
    reshaped,
    rule,
    same,
    scalar,
    select,
    sliced,
    transposed,
)
from mycel.formats.onnx.rules.elementwise import swish

__all__: list[str] = []


def _heads(op: Operation, x: Tensor, name: str) -> Tensor:
    """Return a tensor as (batch, heads, time, size)."""
    if x.ndim == 4:
        return x
    count = op.get(name)
    if x.ndim != 3 or not count:
        raise op.wrong(f"an input of shape {tuple(x.shape)} needs three axes and {name}")
    b, t, wide = x.shape
    return transposed(reshaped(x, (b, t, count, wide // count)), (0, 2, 1, 3))


def _repeated(x: Tensor, heads: Any) -> Tensor:
    """Return keys or values for each head of the queries."""
    b, h, t, d = x.shape
    if h == heads:
        return x
    wide = broadcast(reshaped(x, (b, h, 1, t, d)), (b, h, heads // h, t, d))
    return reshaped(wide, (b, heads, t, d))


def _order(shape: Any, axis: int) -> Tensor:
    return apply(S.iota, shape=tuple(shape), axis=axis, dtype=D.int64)


def _allowed(op: Operation, rows: Any, columns: Any, past: Any, valid: Any) -> Tensor | None:
    """Return which keys queries may see by their places, broadcast to four axes; None for all."""
    row, column = _order((1, 1, rows, columns), 2), _order((1, 1, rows, columns), 3)
    first = row
    if past is not None:
        first = apply(E.add, row, same(past, D.int64))
    elif valid is not None and (op.version >= 25 or op.get("is_causal", 0)):
        ends = reshaped(as_type(valid, D.int64), (valid.shape[0], 1, 1, 1))
        first = apply(E.add, row, apply(E.sub, ends, same(rows, D.int64)))
    found: Tensor | None = None

    def also(more: Tensor) -> Tensor:
        return more if found is None else apply(E.logical_and, found, more)

    if op.get("is_causal", 0):
        found = also(apply(E.le, column, first))
    left, right = op.get("left_window_size", -1), op.get("right_window_size", -1)
    if left >= 0:
        found = also(apply(E.ge, column, apply(E.sub, first, same(left, D.int64))))
    if right >= 0:
        found = also(apply(E.le, column, apply(E.add, first, same(right, D.int64))))
    if valid is not None:
        found = also(apply(E.lt, column, reshaped(as_type(valid, D.int64), (valid.shape[0], 1, 1, 1))))
    return found


@rule("Attention")
def _attention(
    op: Operation,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    valid: Any = None,
) -> Any:
    flat, kind = q.ndim == 3, q.dtype
    q, k, v = _heads(op, q, "q_num_heads"), _heads(op, k, "kv_num_heads"), _heads(op, v, "kv_num_heads")
    past = None
    if past_key is not None:
        past = past_key.shape[2]
        k, v = apply(S.CONCAT, past_key, k, axis=2), apply(S.CONCAT, past_value, v, axis=2)
    keys, values = k, v
    heads = q.shape[1]
    k, v = _repeated(k, heads), _repeated(v, heads)
    scale = op.get("scale") or 1 / math.sqrt(q.shape[3])
    root = scalar(math.sqrt(scale), q)
    scores = ops.matmul(apply(E.mul, q, root), transposed(apply(E.mul, k, root), (0, 1, 3, 2)))
    mode, shown = op.get("qk_matmul_output_mode", 0), scores
    cap = op.get("softcap", 0.0)
    biased = _biased(op, scores, mask, past, valid)
    early = op.version < 25 and False
    if cap:
        scores = apply(E.mul, apply(E.tanh, apply(E.div, scores, scalar(cap, q))), scalar(cap, q))
    if mode == 1:
        shown = scores
    scores, allowed = biased(scores)
    if mode == 2:
        shown = scores if not early else shown
    code = op.get("softmax_precision")
    wide = as_type(scores, kind_of(code, op) if code else D.float32 if kind.itemsize < 4 else kind)
    weights = (
        ops.softmax(wide, -1)
        if wide.dtype.itemsize >= 4
        else as_type(ops.softmax(as_type(wide, D.float32), -1), wide.dtype)
    )
    top = apply(R.reduce_max, wide, axes=(3,), keepdims=True)
    weights = as_type(select(apply(E.eq, top, scalar(-math.inf, wide)), scalar(0, weights), weights), kind)
    if mode == 3:
        shown = weights
    found = ops.matmul(weights, v)
    if flat:
        b, h, t, d = found.shape
        found = reshaped(transposed(found, (0, 2, 1, 3)), (b, t, h * d))
    del allowed
    return found, keys, values, as_type(shown, kind)


def _biased(op: Operation, scores: Tensor, mask: Any, past: Any, valid: Any) -> Any:
    """Return the function that adds masks to scores, and says where keys may be seen."""
    rows, columns = scores.shape[2:]
    allowed = _allowed(op, rows, columns, past, valid)

    def add(given: Tensor) -> tuple[Tensor, Any]:
        found = given
        low = scalar(-math.inf, given)
        if mask is not None:
            short = columns - mask.shape[-1]
            whole = mask
            if not (isinstance(short, int) and short == 0):
                amounts = [0] * (mask.ndim - 1) + [short]
                whole = pad(mask, [0] * mask.ndim, amounts, False if mask.dtype is D.bool_ else -math.inf)
            if whole.dtype is D.bool_:
                found = select(whole, found, low)
            else:
                found = apply(E.add, found, as_type(whole, found.dtype))
        if allowed is not None:
            found = select(allowed, found, low)
        return broadcast(found, given.shape), allowed

    return add


@rule("FlexAttention", domain="ai.onnx.preview")
def _flex_attention(op: Operation, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    kind = q.dtype
    k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
    scale = op.get("scale") or 1 / math.sqrt(q.shape[3])
    code = op.get("softmax_precision")
    wide = D.float64 if kind is D.float64 else D.float32
    scores = ops.matmul(q, transposed(k, (0, 1, 3, 2)))
    scores = apply(E.mul, scores, scalar(scale, scores))
    scores = as_type(scores, kind_of(code, op) if code else wide)
    if "score_mod" in op.bodies:
        scores = op.bodies["score_mod"]([scores])[0]
    weights = as_type(ops.softmax(as_type(scores, wide), -1), scores.dtype)
    if "prob_mod" in op.bodies:
        weights = op.bodies["prob_mod"]([weights])[0]
    return ops.matmul(as_type(weights, kind), v)


@rule("RotaryEmbedding")
def _rotary(op: Operation, x: Tensor, cos: Tensor, sin: Tensor, places: Any = None) -> Tensor:
    shape, four = tuple(x.shape), x.ndim == 4
    if four:
        x = transposed(x, (0, 2, 1, 3))
    else:
        heads = op.get("num_heads")
        x = reshaped(x, (shape[0], shape[1], heads, shape[2] // heads))
    size = op.get("rotary_embedding_dim", 0) or x.shape[3]
    if places is not None:
        cos, sin = apply(I.take, cos, places, axis=0), apply(I.take, sin, places, axis=0)
    cos, sin = (reshaped(c, (*c.shape[:2], 1, c.shape[2])) for c in (cos, sin))
    turned, rest = sliced(x, 3, 0, size), sliced(x, 3, size, x.shape[3])
    half = size // 2
    if op.get("interleaved", 0):
        first, second = sliced(turned, 3, 0, size, 2), sliced(turned, 3, 1, size, 2)
    else:
        first, second = sliced(turned, 3, 0, half), sliced(turned, 3, half, size)
    re = apply(E.sub, apply(E.mul, cos, first), apply(E.mul, sin, second))
    im = apply(E.add, apply(E.mul, sin, first), apply(E.mul, cos, second))
    if op.get("interleaved", 0):
        apart = [reshaped(p, (*p.shape, 1)) for p in (re, im)]
        made = reshaped(apply(S.CONCAT, *apart, axis=4), turned.shape)
    else:
        made = apply(S.CONCAT, re, im, axis=3)
    found = apply(S.CONCAT, made, rest, axis=3)
    return transposed(found, (0, 2, 1, 3)) if four else reshaped(found, shape)


@rule("CausalConvWithState")
def _causal_conv(op: Operation, x: Tensor, w: Tensor, bias: Any = None, past: Any = None) -> Any:
    k, channels = w.shape[2], x.shape[1]
    wide = pad(x, (0, 0, k - 1), (0, 0, 0)) if past is None else apply(S.CONCAT, past, x, axis=2)
    found = apply(conv.conv, wide, w, strides=(1,), padding=((0, 0),), dilation=(1,), groups=channels)
    if bias is not None:
        found = apply(E.add, found, reshaped(bias, (channels, 1)))
    if op.get("activation", "none") in ("silu", "swish"):
        found = swish(found)
    return found, sliced(wide, 2, wide.shape[2] - (k - 1), wide.shape[2])


@rule("LinearAttention")
def _linear_attention(
    op: Operation, q: Tensor, k: Tensor, v: Tensor, past: Any = None, decay: Any = None, beta: Any = None
) -> Any:
    kind = q.dtype
    heads, groups, mode = op.get("q_num_heads"), op.get("kv_num_heads"), op.get("update_rule", "gated_delta")
    b, time, wide = q.shape
    size = wide // heads
    deep = v.shape[2] // groups
    scale = op.get("scale", 0.0) or 1 / math.sqrt(size)
    q, k, v = (as_type(t, D.float32) if t.dtype.itemsize < 4 else t for t in (q, k, v))
    state = broadcast(scalar(0, q), (b, groups, size, deep)) if past is None else as_type(past, q.dtype)
    q4 = reshaped(q, (b, time, groups, heads // groups, size))
    k4, v4 = reshaped(k, (b, time, groups, size)), reshaped(v, (b, time, groups, deep))
    found = []

    def at(x: Tensor, t: int) -> Tensor:
        return reshaped(sliced(x, 1, t, t + 1), (x.shape[0], *x.shape[2:]))

    for t in range(time):
        key, value = at(k4, t), at(v4, t)
        if mode in ("gated", "gated_delta"):
            rate = as_type(at(decay, t), q.dtype)
            rate = reshaped(rate, (b, groups, -1 if False else (rate.shape[1] // groups), 1))
            state = apply(E.mul, state, apply(E.exp, rate))
        if mode in ("delta", "gated_delta"):
            read = ops.matmul(reshaped(key, (b, groups, 1, size)), state)
            step = as_type(at(beta, t), q.dtype)
            step = reshaped(step, (b, step.shape[1], 1))
            value = apply(E.mul, step, apply(E.sub, value, reshaped(read, (b, groups, deep))))
        outer = apply(E.mul, reshaped(key, (b, groups, size, 1)), reshaped(value, (b, groups, 1, deep)))
        state = apply(E.add, state, outer)
        read = ops.matmul(at(q4, t), state)
        found.append(reshaped(apply(E.mul, read, scalar(scale, read)), (b, 1, heads * deep)))
    joined = found[0] if len(found) == 1 else apply(S.CONCAT, *found, axis=1)
    return as_type(joined, kind), as_type(state, past.dtype if past is not None else kind)
