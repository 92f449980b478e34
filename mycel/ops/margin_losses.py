"""Losses that ask for a margin between scores or distances, and the similarity of vectors."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.sort_and_scan import cummin
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    axis_of,
    broadcast,
    cast_index,
    constant_like,
    flat,
    floating,
    iota,
    need_matched,
    number_of,
    operand,
    reshaped,
    rounded_once,
    run,
    select,
    term,
)
from mycel.ops.activation import _softplus
from mycel.ops.loss import _as_wide, _both, _sum, _weights, reduced
from mycel.ops.vector_norms import vector_norm

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]


@fused
@rounded_once
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """Return ``max(0, -y (a - b) + margin)`` of `input1` (a) and `input2` (b).

    Args:
        input1 (Tensor): The values to rank.
        input2 (Tensor): The values to rank.
        target (Tensor): The y: 1 where a should rank higher and -1 where b should.
        margin (float): How much higher. Default: 0.0.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.margin_ranking_loss(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])).item()
        2.0
    """
    arguments.instance("margin_ranking_loss", "margin", margin, float)
    need_matched("margin_ranking_loss", input1, input2, "input1", "input2")
    a, b = _both("margin_ranking_loss", input1, input2)
    y = operand("margin_ranking_loss", target, a.dtype)
    return reduced("margin_ranking_loss", _hinge(margin - y * (a - b)), reduction)


def _hinge(x: Tensor) -> Tensor:
    """Return max(0, x), with derivative 1 at 0."""
    return select(run(E.lt, x, constant_like(0.0, x)), 0.0, x)


def _beyond(x: Tensor) -> Tensor:
    """Return max(0, x), with derivative 0 at 0."""
    return select(run(E.le, x, constant_like(0.0, x)), 0.0, x)


@fused
@rounded_once
def hinge_embedding_loss(inputs: Any, targets: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return the elements x of `inputs` where `targets` is positive (1), ``max(0, margin - x)``
    where it is negative (-1), and 0 where it is 0.

    Args:
        inputs (Tensor): The distances x.
        targets (Tensor): 1 or -1.
        margin (float): The distance that is enough. Default: 1.0.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> x, y = ms.Tensor([2.0, 0.25]), ms.Tensor([1.0, -1.0])
        >>> ms.ops.hinge_embedding_loss(x, y, reduction="none").tolist()
        [2.0, 0.75]
    """
    arguments.instance("hinge_embedding_loss", "margin", margin, (int, float))
    x = floating("hinge_embedding_loss", inputs)
    y = operand("hinge_embedding_loss", targets, x.dtype)
    return reduced("hinge_embedding_loss", select(y > 0.0, x, select(y < 0.0, _hinge(margin - x), 0.0)), reduction)


@fused
@rounded_once
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return log(1 + exp(-y x)) for `input` x and `target` y, which is 1 or -1.

    `reduction` is "mean", "sum" or "none".

    >>> import mycel as ms
    >>> ms.ops.soft_margin_loss(ms.Tensor([0.0]), ms.Tensor([1.0])).item()
    0.6931471824645996
    """
    arguments.text("soft_margin_loss", "reduction", reduction)
    x, y = _both("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", _softplus(run(E.neg, run(E.mul, x, y))), reduction)


@fused
@rounded_once
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between the vectors of `x1` and `x2` along the axis `dim`.

    Args:
        x1 (Tensor): Vectors along `dim`; the shapes broadcast.
        x2 (Tensor): Vectors along `dim`; the shapes broadcast.
        dim (int): The axis. Default: 1.
        eps (float): The least product of the norms. Default: 1e-08.

    Returns:
        Tensor: The cosines, without the axis `dim`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.cosine_similarity(ms.Tensor([[3.0, 4.0]]), ms.Tensor([[3.0, 4.0]])).tolist()
        [1.0]
    """
    a, b = _both("cosine_similarity", x1, x2)
    kind, shape = a.dtype, broadcast_shapes(a.shape, b.shape, name="cosine_similarity")
    axes = (axis_of("cosine_similarity", dim, len(shape)),)
    # float64 holds products of the squares of all numbers of fewer bits.
    a, b = (broadcast(cast(x, D.float64), shape) for x in (a, b))
    product = run(E.mul, a, b)
    squares = _sum(a * a, axes) * _sum(b * b, axes)
    least = constant_like(number_of("cosine_similarity", "eps", eps) ** 2, squares)
    return cast(_sum(product, axes) * run(E.rsqrt, select(run(E.lt, squares, least), least, squares)), kind)


@fused
@rounded_once
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return ``1 - cos`` where `target` is 1 and ``max(0, cos - margin)`` where it is -1.

    cos is the cosine of the angle between the vectors of `input1` and `input2` along the last axis.

    Args:
        input1 (Tensor): Vectors along the last axis.
        input2 (Tensor): Vectors along the last axis.
        target (Tensor): 1 for pairs that should be alike, -1 for others.
        margin (float): The cosine that the others may have. Default: 0.0.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or one for each pair.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[3.0, 4.0]])
        >>> ms.ops.cosine_embedding_loss(x, x, ms.Tensor([-1])).item()
        1.0
    """
    arguments.instance("cosine_embedding_loss", "margin", margin, (int, float))
    cosine = cosine_similarity(input1, input2, -1)
    y = operand("cosine_embedding_loss", target, cosine.dtype)
    return reduced("cosine_embedding_loss", select(y == 1.0, 1.0 - cosine, _hinge(cosine - margin)), reduction)


@fused
@rounded_once
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` (Schroff et al., 2015).

    The distance d is the `p`-norm over the last axis of the difference, to which `eps` is added.

    Args:
        anchor (Tensor): (N, D) or (D,).
        positive (Tensor): (N, D) or (D,).
        negative (Tensor): (N, D) or (D,).
        margin (float): How much farther the negative should be than the positive. Default: 1.0.
        p (float): The order of the norm. Default: 2.
        eps (float): Added to the difference. Default: 1e-06.
        swap (bool): Whether the smaller of d(anchor, negative) and d(positive, negative) counts.
            Default: False.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or one for each example.

    Examples:
        >>> import mycel as ms
        >>> anchor, near, far = (ms.Tensor([[v]]) for v in (0.0, 1.0, 4.0))
        >>> ms.ops.triplet_margin_loss(anchor, near, far, eps=0.0).item()
        0.0
    """
    arguments.integer("triplet_margin_loss", "p", p)
    arguments.instance("triplet_margin_loss", "eps", eps, float)
    arguments.flag("triplet_margin_loss", "swap", swap)
    need_matched("triplet_margin_loss", anchor, positive, "anchor", "positive")
    a, b = _both("triplet_margin_loss", anchor, positive)
    c = operand("triplet_margin_loss", negative, a.dtype)
    for word, value in (("p", p), ("eps", eps), ("margin", margin)):
        number_of("triplet_margin_loss", word, value)
    near, far = vector_norm(a - b + eps, p, -1), vector_norm(a - c + eps, p, -1)
    if swap:
        far = run(E.minimum, far, vector_norm(b - c + eps, p, -1))
    return reduced("triplet_margin_loss", _hinge(near - far + margin), reduction)


@fused
@rounded_once
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean over the other classes i of ``max(0, margin - x[target] + x[i]) ** p``.

    Args:
        input (Tensor): The scores x, (N, C) or (C,).
        target (Tensor): Class indices, (N,) or ().
        p (int): 1 or 2. Default: 1.
        margin (float): The distance that classes should keep. Default: 1.
        weight (Tensor | None): The factor of each class, of which the target's counts, (C,); None
            for 1. Default: None.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or one for each example.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.multi_margin_loss(ms.Tensor([[0.0, 0.5]]), ms.Tensor([0])).item()
        0.75
    """
    arguments.integer("multi_margin_loss", "p", p)
    arguments.instance("multi_margin_loss", "margin", margin, (int, float))
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p must be 1 or 2, not {p}")
    x, y = floating("multi_margin_loss", input), cast_index("multi_margin_loss", target)
    single = x.ndim == 1
    x, y = (reshaped(x, (1, *x.shape)), reshaped(y, (1,))) if single else (x, y)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ShapeError(
            f"multi_margin_loss: the input must be (N, C) and the target (N,), not {x.shape} and {y.shape}"
        )
    y = cast(run(I.checked, y, axis=1, size=x.shape[1], bounds="front"), D.int32)
    hit = run(E.eq, reshaped(y, (x.shape[0], 1)), iota((x.shape[1],), 0, D.int32))
    own = _sum(select(hit, x, 0.0), (1,), True)
    gaps = _beyond(margin - own + x)
    gaps = gaps if p == 1 else gaps * gaps
    if weight is not None:
        w = _weights("multi_margin_loss", weight, x, 1)
        gaps = gaps * _sum(select(hit, broadcast(w, x.shape), 0.0), (1,), True)
    total = _sum(select(hit, 0.0, gaps), (1,))
    loss = run(E.div, total, constant_like(x.shape[1], total))
    return reduced(
        "multi_margin_loss", flat(loss) if not single or reduction != "none" else reshaped(loss, ()), reduction
    )


@fused
@rounded_once
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the sum over target classes j and other classes i of ``max(0, 1 - x[j] + x[i])``,
    divided by the number of classes.

    A row of `target` lists class indices and ends at the first -1. `reduction` is "mean", "sum" or
    "none".

    >>> import mycel as ms
    >>> ms.ops.multilabel_margin_loss(ms.Tensor([[0.0, 0.5]]), ms.Tensor([[0, -1]])).item()
    0.75
    """
    x, y = floating("multilabel_margin_loss", input), cast_index("multilabel_margin_loss", target)
    if x.shape != y.shape or x.ndim not in (1, 2):
        raise ShapeError(
            f"multilabel_margin_loss: input and target must both be (C,) or (N, C), not {x.shape} and {y.shape}"
        )
    single = x.ndim == 1
    x, y = (reshaped(x, (1, *x.shape)), reshaped(y, (1, *y.shape))) if single else (x, y)
    n, c = x.shape
    # A place counts while no -1 came before it.
    valid = run(E.ge, run(cummin, y, axis=1, reverse=False), constant_like(0, y))
    y = cast(run(I.checked, select(valid, y, 0), axis=1, size=c, bounds="front"), D.int32)
    hit = run(E.logical_and, run(E.eq, reshaped(y, (n, c, 1)), iota((c,), 0, D.int32)), reshaped(valid, (n, c, 1)))
    own = _sum(select(hit, reshaped(x, (n, 1, c)), 0.0), (2,), True)
    member = run(R.reduce_any, hit, axes=(1,), keepdims=True)
    gaps = _beyond(1.0 - own + reshaped(x, (n, 1, c)))
    counted = run(E.logical_and, reshaped(valid, (n, c, 1)), run(E.logical_not, member))
    total = _sum(select(counted, gaps, 0.0), (1, 2))
    loss = run(E.div, total, constant_like(c, total))
    return reduced("multilabel_margin_loss", reshaped(loss, ()) if single else loss, reduction)


@fused
@rounded_once
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Return the mean over classes (the last axis) of `binary_cross_entropy_with_logits` of `input`
    and `target`.

    Args:
        input (Tensor): The logits, (N, C).
        target (Tensor): The labels, of the same shape.
        weight (Tensor | None): The scale of each class; None for 1. Default: None.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or one for each example.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.multilabel_soft_margin_loss(ms.Tensor([[0.0]]), ms.Tensor([[1.0]])).item()
        0.6931471824645996
    """
    x = _as_wide("multilabel_soft_margin_loss", input, weight)
    x, y = _both("multilabel_soft_margin_loss", x, target)
    loss = run(E.add, run(E.mul, 1.0 - y, x), _softplus(run(E.neg, x)))
    if weight is not None:
        loss = loss * term("multilabel_soft_margin_loss", weight, loss.dtype)
    total = _sum(loss, (loss.ndim - 1,))
    return reduced("multilabel_soft_margin_loss", run(E.div, total, constant_like(loss.shape[-1], total)), reduction)
