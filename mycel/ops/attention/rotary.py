"""Rotary position embedding (Su et al., 2021): pairs of features, turned by angles that grow with
the position.

A pair is feature i with feature i + D / 2 ("halves"), or two neighbours ("interleaved"). `cos` and
`sin` have a value for every feature.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import array, gather_scatter
from mycel.ops._operands import operand, reshaped, run, take_slice, wide

__all__ = ["rotary_position_embedding"]


def quarter_turn(x: Tensor, interleaved: bool) -> Tensor:
    """Return (a, b) of every pair as (-b, a)."""
    size = x.shape[-1]
    if interleaved:
        pairs = reshaped(x, (*x.shape[:-1], size // 2, 2))
        a, b = (take_slice(pairs, pairs.ndim - 1, i, i + 1) for i in (0, 1))
        return reshaped(array.concat((run(E.neg, b), a), -1), x.shape)
    a, b = take_slice(x, x.ndim - 1, 0, size // 2), take_slice(x, x.ndim - 1, size // 2, size)
    return array.concat((run(E.neg, b), a), -1)


def turned(name: str, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Return `x` with every pair of features turned by the angles whose cosines and sines are `cos`
    and `sin`, in the type of `x`.

    Pairs are neighbours if `interleaved`. `name` is the operation, for errors. Raises ShapeError
    where there are no pairs or the angles do not fit.
    """
    if x.shape[-1] % 2:
        raise ShapeError(f"{name}: {x.shape[-1]} features have no pairs; their number must be even")
    if cos.shape != sin.shape or broadcast_shapes(x.shape, cos.shape) != x.shape:
        raise ShapeError(f"{name}: cos {cos.shape} and sin {sin.shape} must be alike and broadcast to {x.shape}")
    y = wide(x)
    return cast(y * wide(cos) + quarter_turn(y, interleaved) * wide(sin), x.dtype)


@fused
def rotary_position_embedding(x: Any, cos: Any, sin: Any, mode: int = 0) -> Tensor:
    """Return x * cos + turned(x) * sin, where turned makes (-b, a) of every pair (a, b) of the last
    axis: Su et al., 2021.

    Args:
        x (Tensor): Four dimensions, such as (B, N, S, D).
        cos (Tensor): Broadcasts to `x`.
        sin (Tensor): Broadcasts to `x`.
        mode (int): 0 pairs feature i with i + D / 2, 1 pairs neighbours. Default: 0.

    Returns:
        Tensor: The shape and type of `x`.

    Raises:
        TypeError, ValueError: If types, shapes or the mode do not fit.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[[[1.0, 2.0]]]])
        >>> ms.ops.rotary_position_embedding(x, x * 0.0, x * 0.0 + 1.0).ravel().tolist()
        [-2.0, 1.0]
    """
    name = "rotary_position_embedding"
    if arguments.integer("rotary_position_embedding", "mode", mode) not in (0, 1):
        raise ValueError(f"{name}: mode must be 0 (halves) or 1 (neighbours), not {mode!r}")
    v, c, s = operand(name, x), operand(name, cos), operand(name, sin)
    if v.ndim != 4 or c.ndim != 4:
        raise ShapeError(f"{name}: takes four dimensions, not {v._type} and {c._type}")
    if not v.dtype.is_floating or v.dtype is not c.dtype or v.dtype is not s.dtype:
        raise TypeError(f"{name}: x, cos and sin must be of one floating type, not {v._type}, {c._type} and {s._type}")
    return turned(name, v, c, s, mode == 1)


def apply_rotary_pos_emb(
    query: Any, key: Any, cos: Any, sin: Any, position_ids: Any, cos_format: int = 0
) -> tuple[Tensor, Tensor]:
    """Return `query` and `key`, (batch, length, heads * size) or (tokens, heads * size), turned by
    the angles of their positions.

    With `cos_format` 0 and 1 `cos` and `sin` are tables (positions, size), of which `position_ids`
    names the row of each token; with 2 and 3 they have a row for each token. 0 and 2 pair feature i
    with i + size / 2, 1 and 3 pair neighbours.

    Raises ValueError where sizes do not fit.

    >>> import mycel as ms
    >>> x, table = ms.Tensor([[1.0, 2.0]]), ms.Tensor([[1.0, 1.0], [0.0, 0.0]])
    >>> apply_rotary_pos_emb(x, x, table, 1.0 - table, ms.Tensor([1]))[0].tolist()
    [[-2.0, 1.0]]
    """
    name = "ApplyRotaryPosEmb"
    if cos_format not in range(4):
        raise ValueError(f"{name}: cos_format must be 0, 1, 2 or 3, not {cos_format!r}")
    q, k, c, s = operand(name, query), operand(name, key), operand(name, cos), operand(name, sin)
    if c.ndim != 2 or c.shape != s.shape:
        raise ShapeError(f"{name}: cos and sin must be alike, (rows, size), not {c.shape} and {s.shape}")
    if not q.ndim or not k.ndim or c.shape[1] == 0:
        raise ShapeError(f"{name}: heads need features, which {q._type}, {k._type} and cos {c._type} have not")
    tokens, size = product(q.shape[:-1]), c.shape[1]
    if cos_format < 2:
        place = operand(name, position_ids)
        if place.size != tokens:
            raise ShapeError(
                f"{name}: position_ids must have one number for each of the {tokens} tokens, not {place.size}"
            )
        c, s = (gather_scatter.gather(t, reshaped(place, (tokens,)), 0) for t in (c, s))
    if c.shape[0] != tokens or product(k.shape[:-1]) != tokens:
        raise ShapeError(
            f"{name}: {tokens} tokens of query, those of key {k._type}, and {c.shape[0]} rows of cos must be as many"
        )

    def of(x: Tensor) -> Tensor:
        if x.shape[-1] % size:
            raise ShapeError(f"{name}: {x.shape[-1]} features do not divide into heads of size {size}")
        heads = reshaped(x, (tokens, x.shape[-1] // size, size))
        angles = [reshaped(t, (tokens, 1, size)) for t in (c, s)]
        return reshaped(turned(name, heads, angles[0], angles[1], cos_format % 2 == 1), x.shape)

    return of(q), of(k)
