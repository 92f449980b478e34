"""Loss functions, in forms that neither overflow nor give NaN derivatives.

Classes lie along axis 1 of (N, C, ...), or along the only axis. Where a class index chooses an
element it is compared with the position along the class axis. The choice and its derivative
(softmax minus one-hot) then fuse with the rest, and no one-hot tensor is kept. Every loss ends in
`reduced`, whose `reduction` is "none" for the loss of each element, "sum", or "mean": over the
elements, or over the total weight of those that count.
"""

from __future__ import annotations

import builtins
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    iota,
    need_matched,
    operand,
    operands,
    reshaped,
    rounded_once,
    run,
    select,
    terms,
    whole,
    wide,
)
from mycel.ops.activation import _softplus, log_softmax
from mycel.ops.reduction import logsumexp

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]

_REDUCTIONS = ("none", "mean", "sum")


def _sum(x: Tensor, axes: tuple[int, ...], keep: bool = False) -> Tensor:
    return run(R.reduce_sum, x, axes=axes, keepdims=keep)


def _everything(x: Tensor) -> tuple[int, ...]:
    return tuple(builtins.range(x.ndim))


def reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    """Return the loss of each element for `reduction` "none", their sum for "sum", or their mean
    for "mean".
    """
    arguments.one_of(name, "reduction", reduction, _REDUCTIONS)
    if reduction == "none":
        return loss
    total = _sum(loss, _everything(loss))
    return total if reduction == "sum" else run(E.div, total, constant_like(whole(loss, _everything(loss)), total))


def _both(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    a, b = operands(name, x, y)
    return (a, b) if a.dtype.is_floating else (cast(a, D.float32), cast(b, D.float32))


def _class_axis(name: str, x: Tensor) -> int:
    if x.ndim < 1:
        raise ShapeError(f"{name}: the input must be (C,) or (N, C, ...), not of shape {x.shape}")
    return 0 if x.ndim == 1 else 1


def _weights(name: str, weight: Any, x: Tensor, axis: int) -> Tensor:
    """Return class weights in a shape that broadcasts along the class axis."""
    w = operand(name, weight)
    if w.ndim != 1 or w.shape[0] != x.shape[axis]:
        raise ShapeError(
            f"{name}: weight must have one element for each of the {x.shape[axis]} classes, not shape {w.shape}"
        )
    return cast(reshaped(w, (w.shape[0], *(1,) * (x.ndim - 1 - axis))), x.dtype)


def _as_wide(name: str, x: Tensor, weight: Any) -> Tensor:
    """Return `x` in the type of its product with the weight."""
    return x if weight is None else terms(name, x, weight)[0]


@fused
@rounded_once
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross-entropy of softmax(input) along the class axis with `target`: class indices,
    or probabilities of the input's shape.

    Args:
        input (Tensor): The logits, (C,), (N, C) or (N, C, ...).
        target (Tensor): Class indices, (N, ...), or probabilities of the input's shape.
        weight (Tensor | None): The scale of each class, (C,); None for 1. Default: None.
        ignore_index (int): The index whose examples do not count. Default: -100.
        reduction (str): "none", "sum" or "mean", which divides by the total weight for indices and
            by the number of examples for probabilities. Default: "mean".
        label_smoothing (float): The share of the uniform distribution in the target. Default: 0.0.

    Returns:
        Tensor: A number, or one for each example.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: For targets of another type.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.cross_entropy(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1])).item()
        0.6931471824645996
    """
    arguments.one_of("cross_entropy", "reduction", reduction, _REDUCTIONS)
    if not 0.0 <= arguments.number("cross_entropy", "label_smoothing", label_smoothing) <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing must lie in [0, 1], not {label_smoothing}")
    x, y = _as_wide("cross_entropy", floating("cross_entropy", input), weight), operand("cross_entropy", target)
    axis = _class_axis("cross_entropy", x)
    if y.dtype.is_floating:
        if y.shape != x.shape:
            raise ShapeError(
                f"cross_entropy: target probabilities must have the input's shape {x.shape}, not {y.shape}; "
                "class indices are integers"
            )
        need_matched("cross_entropy", x, y, second="target")
        return _probability_entropy(x, cast(y, x.dtype), weight, axis, reduction, label_smoothing)
    return _chosen(log_softmax(x, axis), y, weight, ignore_index, reduction, label_smoothing, axis, "cross_entropy")


def _probability_entropy(x: Tensor, y: Tensor, weight: Any, axis: int, reduction: str, smoothing: float) -> Tensor:
    if smoothing:
        classes = x.shape[axis]
        y = y * (1.0 - smoothing) + (
            smoothing / classes if isinstance(classes, int) else smoothing / constant_like(classes, x)
        )
    terms = run(E.mul, log_softmax(x, axis), y)
    if weight is not None:
        terms = run(E.mul, terms, _weights("cross_entropy", weight, x, axis))
    loss = run(E.neg, _sum(terms, (axis,)))
    return reduced("cross_entropy", loss, reduction)


@fused
@rounded_once
def softmax_entropy(x: Tensor, y: Tensor, reduction: str = "none") -> Tensor:
    """Return the cross-entropy of softmax(x) with distributions y along the last axis, reduced.

    Its derivative by x is softmax(x) - y, whatever y sums to, and it has none by y: these are the
    definitions of MindSpore's ``SoftmaxCrossEntropyWithLogits``. They are the derivatives of the
    function where y sums to 1; for other y the logarithm of the sum of exponentials, whose
    derivative is softmax(x), makes up the difference and adds nothing to the value.
    """
    given = run(E.stop_gradient, y)
    entropy = run(E.neg, _sum(run(E.mul, log_softmax(x, -1), given), (x.ndim - 1,)))
    total = logsumexp(x, -1)
    missing = 1.0 - _sum(given, (x.ndim - 1,))
    return reduced("softmax_entropy", entropy + missing * (total - run(E.stop_gradient, total)), reduction)


@fused
@rounded_once
def nll_loss(
    inputs: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the negative log-probability of the target class.

    Args:
        inputs (Tensor): Log-probabilities, (N, C) or (N, C, ...).
        target (Tensor): Class indices, (N, ...).
        weight (Tensor | None): The scale of each class, (C,); None for 1. Default: None.
        ignore_index (int): The index whose examples do not count. Default: -100.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".
        label_smoothing (float): The share of the uniform distribution in the target. Default: 0.0.

    Returns:
        Tensor: A number, or one for each example.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.nll_loss(ms.Tensor([[-1.0, -2.0]]), ms.Tensor([1])).item()
        2.0
    """
    arguments.one_of("nll_loss", "reduction", reduction, _REDUCTIONS)
    x, y = _as_wide("nll_loss", floating("nll_loss", inputs), weight), operand("nll_loss", target)
    return _chosen(x, y, weight, ignore_index, reduction, label_smoothing, _class_axis("nll_loss", x), "nll_loss")


def _classes(index: Tensor, count: Any, axis: int, ignored: Any) -> tuple[Tensor, Tensor]:
    """Return the class indices as int32, with 0 for `ignored`, and whether each index counts.

    Every other index has to name one of `count` classes.
    """
    index = index if index.dtype is D.int32 else cast(index, D.int64)
    counted = run(E.ne, index, constant_like(ignored, index))
    index = run(I.checked, select(counted, index, 0), axis=axis, size=count, bounds="front")
    return cast(index, D.int32), counted


def _chosen(
    logs: Tensor, index: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float, axis: int, name: str
) -> Tensor:
    """Return the negative log-probabilities that the indices choose, weighted and reduced."""
    if not index.dtype.is_integer:
        raise TypeError(f"{name}: the target must hold class indices (integers), not {index.dtype.name}")
    shape = logs.shape[:axis] + logs.shape[axis + 1 :]
    if index.shape != shape:
        raise ShapeError(
            f"{name}: the target's shape {index.shape} does not fit the input {logs.shape}; expected {shape}"
        )
    index, counted = _classes(index, logs.shape[axis], axis, ignore_index)
    spread = reshaped(index, (*shape[:axis], 1, *shape[axis:]))
    line = iota((logs.shape[axis], *(1,) * (logs.ndim - 1 - axis)), 0, D.int32)
    hit = run(E.eq, spread, line)
    weights = None if weight is None else _weights(name, weight, logs, axis)
    scaled = logs if weights is None else run(E.mul, logs, weights)
    loss = run(E.neg, _sum(select(hit, scaled, 0.0), (axis,)))
    share = cast(counted, logs.dtype)
    if weights is not None:
        share = run(E.mul, share, _sum(select(hit, broadcast(weights, logs.shape), 0.0), (axis,)))
    if smoothing:
        classes = logs.shape[axis]
        even = run(E.neg, _sum(scaled, (axis,)))
        even = (
            even * (smoothing / classes)
            if isinstance(classes, int)
            else even * smoothing / constant_like(classes, even)
        )
        loss = loss * (1.0 - smoothing) + even
    loss = select(counted, loss, 0.0)
    if reduction != "mean":
        return reduced(name, loss, reduction)
    return run(E.div, _sum(loss, _everything(loss)), _sum(share, _everything(share)))


def _elementwise(name: str, input: Any, target: Any, reduction: str, compute: Any) -> Tensor:
    x, y = _both(name, input, target)
    return reduced(name, compute(run(E.sub, x, y)), reduction)


@fused
@rounded_once
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the squared difference of `input` and `target`, reduced.

    `reduction` is "mean", "sum" or "none".

    >>> import mycel as ms
    >>> ms.ops.mse_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 4.0])).item()
    2.0
    """
    return _elementwise("mse_loss", input, target, reduction, lambda d: run(E.mul, d, d))


@fused
@rounded_once
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the absolute difference of `input` and `target`, reduced.

    `reduction` is "mean", "sum" or "none".

    >>> import mycel as ms
    >>> ms.ops.l1_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 4.0])).item()
    1.0
    """
    return _elementwise("l1_loss", input, target, reduction, lambda d: run(E.abs_, d))


@fused
@rounded_once
def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """Return d**2 / (2 beta) where d < beta, else d - beta / 2, of absolute differences d
    (Girshick, 2015).

    Args:
        input (Tensor): The values.
        target (Tensor): The expected values.
        beta (float): Where the loss becomes linear. Default: 1.0.
        reduction (str): "none", "sum" or "mean". Default: "none".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.smooth_l1_loss(ms.Tensor([0.0, 0.0]), ms.Tensor([1.0, 3.0])).tolist()
        [0.5, 2.5]
    """
    arguments.choice("smooth_l1_loss", "reduction", reduction, _REDUCTIONS)
    if arguments.number("smooth_l1_loss", "beta", beta) < 0:
        raise arguments.wrong_value("smooth_l1_loss", "beta", "at least 0", beta)
    if beta == 0:
        return l1_loss(input, target, reduction)

    def compute(d: Tensor) -> Tensor:
        size = run(E.abs_, d)
        return select(run(E.lt, size, constant_like(beta, size)), d * d * (0.5 / beta), size - 0.5 * beta)

    return _elementwise("smooth_l1_loss", input, target, reduction, compute)


@fused
@rounded_once
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return d**2 / 2 where d <= delta, else delta * (d - delta / 2), of absolute differences d
    (Huber, 1964).

    Args:
        input (Tensor): The values.
        target (Tensor): The expected values.
        reduction (str): "mean", "sum" or "none". Default: "mean".
        delta (float): Where the loss becomes linear. Default: 1.0.

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.huber_loss(ms.Tensor([0.0]), ms.Tensor([3.0])).item()
        2.5
    """
    arguments.number("huber_loss", "delta", delta)
    if delta <= 0:
        raise arguments.wrong_value("huber_loss", "delta", "positive", delta)

    def compute(d: Tensor) -> Tensor:
        size = run(E.abs_, d)
        return select(run(E.le, size, constant_like(delta, size)), d * d * 0.5, (size - 0.5 * delta) * delta)

    return _elementwise("huber_loss", input, target, reduction, compute)


@fused
@rounded_once
def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Return ``-(y log p + (1 - y) log(1 - p))`` for probabilities p (`logits`) and labels y, with
    1e-12 added inside the logarithms.

    Args:
        logits (Tensor): The probabilities p.
        labels (Tensor): The labels y, of the same shape.
        weight (Tensor | None): The scale of each element, which broadcasts; None for 1. Default:
            None.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Raises:
        ValueError: If the shapes of `logits` and `labels` differ.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.binary_cross_entropy(ms.Tensor([0.5]), ms.Tensor([1.0])).item()
        0.6931471824645996
    """
    arguments.choice("binary_cross_entropy", "reduction", reduction, _REDUCTIONS)
    need_matched("binary_cross_entropy", logits, labels, "logits", "labels")
    p, y = _both("binary_cross_entropy", logits, labels)
    if p.shape != y.shape:
        raise ShapeError(f"binary_cross_entropy: the shapes {p.shape} and {y.shape} differ")
    loss = run(E.neg, run(E.add, run(E.mul, y, _log_from(p)), run(E.mul, 1.0 - y, _log_from(1.0 - p))))
    if weight is not None:
        loss = run(E.mul, loss, operand("binary_cross_entropy", weight, loss.dtype))
    return reduced("binary_cross_entropy", loss, reduction)


def _log_from(p: Tensor) -> Tensor:
    """Return log(p + 1e-12), which is finite at 0 and has a finite derivative there."""
    return cast(run(E.log, wide(p) + 1e-12), p.dtype)


@fused
@rounded_once
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Return `binary_cross_entropy` of sigmoid(input) and the labels `target`, computed from the
    logits without overflow.

    Args:
        input (Tensor): The logits.
        target (Tensor): The labels, of the same shape.
        weight (Tensor | None): The scale of each element, which broadcasts; None for 1. Default:
            None.
        pos_weight (Tensor | None): The scale of its positive part, which broadcasts; None for 1.
            Default: None.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Raises:
        ValueError: If the shapes of `input` and `target` differ.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.binary_cross_entropy_with_logits(ms.Tensor([0.0]), ms.Tensor([1.0])).item()
        0.6931471824645996
    """
    arguments.choice("binary_cross_entropy_with_logits", "reduction", reduction, _REDUCTIONS)
    need_matched("binary_cross_entropy_with_logits", input, target, second="target")
    x, y = _both("binary_cross_entropy_with_logits", input, target)
    if x.shape != y.shape:
        raise ShapeError(f"binary_cross_entropy_with_logits: the shapes {x.shape} and {y.shape} differ")
    # -log sigmoid(x) = softplus(-x) and -log(1 - sigmoid(x)) = x + softplus(-x).
    soft = _softplus(run(E.neg, x))
    if pos_weight is not None:
        soft = soft * ((operand("binary_cross_entropy_with_logits", pos_weight, x.dtype) - 1.0) * y + 1.0)
    loss = run(E.add, run(E.mul, 1.0 - y, x), soft)
    if weight is not None:
        loss = run(E.mul, loss, operand("binary_cross_entropy_with_logits", weight, loss.dtype))
    return reduced("binary_cross_entropy_with_logits", loss, reduction)


@fused
@rounded_once
def kl_div(logits: Any, labels: Any, reduction: str = "mean") -> Tensor:
    """Return ``y (log y - x)`` for log-probabilities x (`logits`) and probabilities y (`labels`),
    which is 0 where y is 0.

    `reduction` is "mean", "sum", "none", or "batchmean": the sum divided by the size of axis 0.

    >>> import mycel as ms
    >>> ms.ops.kl_div(ms.Tensor([0.0]), ms.Tensor([1.0])).item()
    0.0
    """
    arguments.one_of("kl_div", "reduction", reduction, (*_REDUCTIONS, "batchmean"))
    need_matched("kl_div", logits, labels, "logits", "labels")
    x, y = _both("kl_div", logits, labels)
    positive = run(E.gt, y, constant_like(0.0, y))
    loss = select(positive, run(E.mul, y, run(E.sub, run(E.log, select(positive, y, 1.0)), x)), 0.0)
    if reduction == "batchmean":
        total = _sum(loss, _everything(loss))
        return run(E.div, total, constant_like(loss.shape[0] if loss.ndim else 1, total))
    return reduced("kl_div", loss, reduction)


@fused
@rounded_once
def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Return ``(log v + (x - y)**2 / v) / 2`` for values `x`, `target` y and variances v = max(var,
    eps).

    Nix and Weigend, 1994.

    Args:
        x (Tensor): The values.
        target (Tensor): The expected values y.
        var (Tensor): The variances, (..., 1) or of the shape of `x`.
        full (bool): Whether log(2 pi) / 2 is added. Default: False.
        eps (float): The least variance. Default: 1e-06.
        reduction (str): "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.gaussian_nll_loss(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])).item()
        2.0
    """
    arguments.flag("gaussian_nll_loss", "full", full)
    import math

    a, b = _both("gaussian_nll_loss", x, target)
    v = operand("gaussian_nll_loss", var, a.dtype)
    v = select(run(E.lt, v, constant_like(eps, v)), eps, v)
    d = a - b
    loss = (run(E.log, v) + d * d / v) * 0.5
    return reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)
