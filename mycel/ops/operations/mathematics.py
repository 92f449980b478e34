"""Operations of mathematics as objects: linear algebra, order and counts, Fourier transforms,
losses and special functions.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import NeedsValue, ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import activation, arrange, array, creation, fourier, margin_losses, math, sorting
from mycel.ops._operands import (
    axis_of,
    broadcast,
    cast_index,
    check_sizes,
    finfo,
    flat,
    floating,
    iota,
    need_room,
    operand,
    operands,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
    term,
)
from mycel.ops._operands import constant_like as like
from mycel.ops.algebra import decompositions, linalg, linear_systems, matrices, norms
from mycel.ops.algebra.least_squares import matrix_solve_ls, tridiagonal_product
from mycel.ops.algebra.matrix_logarithm import matrix_logarithm
from mycel.ops.complex_numbers import real
from mycel.ops.incomplete_beta import betainc
from mycel.ops.operations.attributes import (
    Attribute,
    anything,
    element_type,
    flag,
    integer,
    integers,
    number,
    one_of,
    optional,
    word,
)
from mycel.ops.operations.inputs import NUMBER, WHOLE
from mycel.ops.operations.primitive import Primitive, need_dimensions, need_one_shape, operations_of
from mycel.ops.segments import unsorted_segment_sum
from mycel.ops.variants import eps

__all__: list[str] = []


def _number(value: Any) -> Any:
    """Return the value of a tensor of one element, or a number as it is."""
    return value.item() if isinstance(value, Tensor) else value


# Special functions and checks.


def _finite(x: Any) -> Tensor:
    value = floating("CheckNumerics", x)
    if value.dtype not in (D.float16, D.float32, D.float64):
        raise TypeError(f"CheckNumerics: x must be float16, float32 or float64, not {value.dtype.name}")
    try:
        good = bool(run(E.is_finite, value).all())
    except NeedsValue:
        raise NeedsValue(
            "CheckNumerics looks at values, which a compiled function does not have; use ops.isfinite"
        ) from None
    if not good:
        kind = "NaN" if bool(run(E.is_nan, value).any()) else "infinite"
        raise RuntimeError(f"CheckNumerics: the tensor {value._type} has {kind} values")
    return value


def _log_space(p: Any, start: Any, end: Any) -> Tensor:
    need_dimensions("LogSpace", 0, start=start, end=end)
    kind = p.dtype
    wide = D.float64 if kind is D.float64 else D.float32
    first, last = (cast(operand("LogSpace", v), wide) for v in (start, end))
    steps = size_of("LogSpace", p.steps)
    need_room("LogSpace", (steps,), wide)
    share = iota((steps,), 0, wide) / max(steps - 1, 1)
    powers = first * (1 - share) + last * share
    return cast(run(E.pow_, broadcast(like(float(p.base), powers), powers.shape), powers), kind)


class Betainc(Primitive, compute=betainc):
    """The regularized incomplete beta function of a, b and x, which have one shape and type."""


class CheckNumerics(Primitive, compute=_finite):
    """The tensor itself.

    Raises RuntimeError where it holds NaN or infinities.
    """


class Eps(Primitive, compute=eps): ...


class LerpScalar(Primitive, compute=math.lerp, inputs=(Tensor, Tensor, (Tensor, float))): ...


class LogSpace(
    Primitive,
    compute=_log_space,
    steps=integer(10, at_least=0),
    base=integer(10, at_least=0),
    dtype=element_type(D.float32, D.float16, D.float64),
):
    """Numbers from base ** start to base ** end at equal ratios."""


def _log_softmax(x: Any, dim: Any = None, dtype: Any = None) -> Tensor:
    value = operand("LogSoftmaxExt", x)
    value = value if dtype is None else cast(value, D.from_any(dtype))
    # Without a dimension the one that holds classes in images and sequences.
    return activation.log_softmax(value, (0 if value.ndim in (0, 1, 3) else 1) if dim is None else dim)


class LogSoftmaxExt(Primitive, compute=_log_softmax, inputs=(Tensor, int, object)):
    """The logarithm of soft-max along `dim` in a type, as `mycel.ops.log_softmax`; called with
    (input, dim=None, dtype=None).
    """


# Linear algebra.


def _triangular_solve(p: Any, matrix: Any, rhs: Any) -> Tensor:
    a, b = matrices.matrices(p.name, matrix), matrices.matrices(p.name, rhs, square=False)
    return matrices.triangular(a, b, p.lower, "C" if p.adjoint else "N")


def _eig(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    if p.compute_v:
        return decompositions.eig(x)
    values = decompositions.eigvals(x)
    return values, creation.zeros((), values.dtype)


def _lstsq(p: Any, x: Any, a: Any) -> Tensor:
    b = floating("Lstsq", a)
    return matrix_solve_ls("Lstsq", x, reshaped(b, (*b.shape, 1)) if b.ndim == 1 else b, float(p.l2_regularizer))


def _matrix_solve_ls(p: Any, matrix: Any, rhs: Any, l2_regularizer: Any) -> Tensor:
    need_dimensions("MatrixSolveLs", 0, l2_regularizer=l2_regularizer)
    return matrix_solve_ls("MatrixSolveLs", matrix, rhs, float(_number(l2_regularizer)) if p.fast else 0.0)


def _nuclear(p: Any, x: Any) -> Tensor:
    value = floating("NuclearNorm", x)
    if p.dim is None and value.ndim != 2:
        raise ShapeError(f"NuclearNorm: without dim the input must have 2 dimensions, not {value._type}")
    return norms.matrix_norm(value, "nuc", tuple(p.dim or (0, 1)), p.keepdim)


def _cross(p: Any, x: Any, y: Any) -> Tensor:
    need_one_shape("Cross", x=x, y=y)
    return linalg.cross(x, y, None if p.dim == -65530 else p.dim)


class Cross(Primitive, compute=_cross, dim=-65530): ...


class Eig(Primitive, compute=_eig, compute_v=False):
    """The complex eigenvalues, and with `compute_v` the eigenvectors, else 0 in their place."""


# An int will do, as in MindSpore.
_FAST = Attribute(lambda owner, parameter, value: arguments.flag(owner, parameter, value, integers=True), True)


class Lstsq(Primitive, compute=_lstsq, fast=_FAST, l2_regularizer=number(0.0)):
    """The least-squares solution for one matrix, by QR, or with a penalty by Cholesky; `fast` has
    no effect.
    """


class LuSolve(Primitive, compute=linear_systems.lu_solve): ...


class LuUnpack(
    Primitive,
    compute=lambda p, x, i: decompositions.lu_unpack(x, i, p.unpack_data, p.unpack_pivots),
    unpack_data=True,
    unpack_pivots=True,
): ...


class MatrixLogarithm(Primitive, compute=matrix_logarithm): ...


class MatrixSolveLs(Primitive, compute=_matrix_solve_ls, fast=True):
    """The least-squares solution of (matrix, rhs, l2_regularizer); the penalty counts if `fast`."""


class MatrixTriangularSolve(Primitive, compute=_triangular_solve, lower=True, adjoint=False):
    """The solution of a triangular system, or of the system of its adjoint."""


class NuclearNorm(Primitive, compute=_nuclear, dim=optional(integers(kinds=(tuple, list))), keepdim=False):
    """The sum of the singular values of matrices in two axes."""


class TridiagonalMatMul(Primitive, compute=tridiagonal_product): ...


# Order and counts.


def _cumulative(p: Any, x: Any, axis: Any) -> Tensor:
    value = floating("CumulativeLogsumexp", x)
    where = axis_of("CumulativeLogsumexp", _number(axis), value.ndim)
    value = arrange.flip(value, (where,)) if p.reverse else value
    total = sorting.logcumsumexp(value, where)
    if p.exclusive:
        lowest = -float(finfo(value.dtype.numpy).max)
        shape = (*value.shape[:where], 1, *value.shape[where + 1 :])
        kept = take_slice(total, where, 0, value.shape[where] - 1)
        total = array.concat((creation.full(shape, lowest, dtype=value.dtype), kept), where)
    return arrange.flip(total, (where,)) if p.reverse else total


def _median(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = operand("Median", x)
    function = sorting.nanmedian if p.ignore_nan and value.dtype.is_floating else sorting.median
    if not p.global_median:
        return function(value, p.axis, p.keep_dims)
    middle, _ = function(flat(value), 0)
    shape = (1,) * value.ndim if p.keep_dims else ()
    return reshaped(middle, shape), creation.zeros(shape, D.int64)


def _nth(p: Any, x: Any, n: Any) -> Tensor:
    value = operand("NthElement", x)
    if value.ndim == 0:
        raise ShapeError("NthElement: takes a tensor with an axis, not a single number")
    if isinstance(n, int) and not 0 <= n < value.shape[-1]:
        raise ValueError(f"NthElement: n must lie in [0, {value.shape[-1]}), not {n}")
    ordered = sorting.sort(value, -1, p.reverse)[0]
    return run(I.take, ordered, cast_index("NthElement", term("NthElement", n)), axis=value.ndim - 1)


def _counted(values: Tensor, weights: Tensor, size: int) -> Tensor:
    """Return the sum of the weights of each value below `size`; other values do not count."""
    place = flat(values)
    place = select(run(E.lt, place, like(size, place)), place, -1)
    return unsorted_segment_sum(flat(weights), place, size)


def _bincount(array: Any, size: Any, weights: Any) -> Tensor:
    need_dimensions("Bincount", 0, size=size)
    values, w = cast_index("Bincount", array), operand("Bincount", weights)
    count = int(_number(size))
    if count < 0:
        raise ValueError(f"Bincount: size must not be negative, not {count}")
    if w.size == 0:
        w = creation.ones(values.shape, w.dtype)
    if w.shape != values.shape:
        raise ShapeError(f"Bincount: weights must be empty or have the shape {values.shape}, not {w.shape}")
    return _counted(values, w, count)


def _confusion(p: Any, labels: Any, predictions: Any, weights: Any = None) -> Tensor:
    rows, columns = cast_index("ConfusionMatrix", labels), cast_index("ConfusionMatrix", predictions)
    if rows.shape != columns.shape or rows.ndim != 1:
        raise ShapeError(f"ConfusionMatrix: labels and predictions must be (N,), not {rows._type} and {columns._type}")
    kind, n = (
        D.from_any(p.dtype),
        size_of("ConfusionMatrix", p.num_classes),
    )
    need_room("ConfusionMatrix", check_sizes("ConfusionMatrix", (n, n)), kind)
    w = creation.ones(rows.shape, kind) if weights is None else cast(operand("ConfusionMatrix", weights), kind)
    known = [run(E.logical_and, v >= 0, v < n) for v in (rows, columns)]
    place = select(run(E.logical_and, *known), rows * n + columns, -1)
    return reshaped(_counted(place, w, n * n), (n, n))


def _histogram(p: Any, x: Any, range: Any) -> Tensor:
    value, bounds = operands("HistogramFixedWidth", x, range)
    if bounds.shape != (2,):
        raise ShapeError(f"HistogramFixedWidth: range must be (2,), not {bounds._type}")
    wide = D.float64 if value.dtype.is_integer or value.dtype is D.float64 else D.float32
    low, high = (cast(reshaped(take_slice(bounds, 0, k, k + 1), ()), wide) for k in (0, 1))
    bins = run(E.floor, (cast(flat(value), wide) - low) / (high - low) * p.nbins)
    bins = run(E.minimum, run(E.maximum, bins, like(0, bins)), like(p.nbins - 1, bins))
    # NaN is in no part.
    bins = select(run(E.is_nan, bins), -1.0, bins)
    kind = D.from_any(p.dtype)
    return _counted(cast(bins, D.int32), creation.ones(bins.shape, kind), p.nbins)


def _equal_count(x: Any, y: Any) -> Tensor:
    a, b = operands("EqualCount", x, y)
    if a.shape != b.shape:
        raise ShapeError(f"EqualCount: the shapes must be equal, not {a.shape} and {b.shape}")
    return reshaped(run(R.reduce_sum, cast(run(E.eq, flat(a), flat(b)), a.dtype), axes=(0,), keepdims=True), (1,))


def _packed(x: Any, threshold: Any) -> Tensor:
    need_dimensions("CompareAndBitpack", 0, threshold=threshold)
    value, limit = operands("CompareAndBitpack", x, threshold)
    if value.ndim == 0 or value.shape[-1] % 8:
        raise ShapeError(f"CompareAndBitpack: the last size of {value._type} must divide by 8")
    groups = reshaped(run(E.gt, value, limit), (*value.shape[:-1], value.shape[-1] // 8, 8))
    weights = as_tensor([128, 64, 32, 16, 8, 4, 2, 1], D.int32)
    total = run(R.reduce_sum, cast(groups, D.int32) * weights, axes=(value.ndim,), keepdims=False)
    return cast(total, D.uint8)


def _quantile(p: Any, x: Any, q: Any) -> Tensor:
    return (sorting.nanquantile if p.ignore_nan else sorting.quantile)(x, q, p.dim, p.keep_dims)


class Bincount(Primitive, compute=_bincount):
    """The sum of weights (1 each if empty) of each number below `size`; called with (array, size,
    weights).
    """


class CompareAndBitpack(Primitive, compute=_packed):
    """Bytes of eight comparisons `x > threshold` each, along the last axis, the first as the
    highest bit.
    """


class ConfusionMatrix(Primitive, compute=_confusion, num_classes=integer(), dtype="int32"):
    """The number of times, or the sum of weights, with which each label (rows) met each
    prediction.
    """


class CumulativeLogsumexp(Primitive, compute=_cumulative, exclusive=False, reverse=False):
    """The logarithms of running sums of exponentials.

    Where nothing has been summed it is the type's lowest number.
    """


class EqualCount(Primitive, compute=_equal_count):
    """The number of equal elements of two tensors, (1,), in their type."""


class HistogramFixedWidth(Primitive, compute=_histogram, nbins=integer(at_least=1), dtype=one_of("int32", "int64")):
    """The number of elements in each of `nbins` equal parts of a range; elements outside count in
    the first or last part.
    """


class Median(Primitive, compute=_median, global_median=False, axis=0, keep_dims=False, ignore_nan=False):
    """The lower median along an axis, or of all elements, and its position.

    Args:
        global_median (bool): Whether it is that of all elements. Default: False.
        axis (int): The axis. Default: 0.
        keep_dims (bool): Whether reduced axes stay with size 1. Default: False.
        ignore_nan (bool): Whether NaN are left out. Default: False.
    """


class NthElement(Primitive, compute=_nth, reverse=False, inputs=(Tensor, WHOLE)):
    """The n-th smallest element of each row, counted from 0; with `reverse` the n-th largest."""


class Quantile(
    Primitive,
    compute=_quantile,
    dim=optional(integer()),
    keep_dims=optional(False),
    ignore_nan=optional(False),
    inputs=(Tensor, NUMBER),
):
    """`mycel.ops.quantile` as an object, or with `ignore_nan` `mycel.ops.nanquantile`."""


# Fourier transforms.


def _transform(p: Any, x: Any) -> Tensor:
    if p.signal_ndim not in (1, 2, 3):
        raise ValueError(f"FFTWithSize: signal_ndim must be 1, 2 or 3, not {p.signal_ndim}")
    value = operand("FFTWithSize", x)
    dims = tuple(range(-p.signal_ndim, 0))
    if not p.real:
        return (fourier.ifftn if p.inverse else fourier.fftn)(value, None, dims, p.norm)
    if not p.inverse:
        return (fourier.rfftn if p.onesided else fourier.fftn)(value, None, dims, p.norm)
    if p.onesided:
        return fourier.irfftn(value, tuple(p.signal_sizes) or None, dims, p.norm)
    return real(fourier.ifftn(value, None, dims, p.norm))


class FFTWithSize(
    Primitive,
    compute=_transform,
    signal_ndim=integer(),
    inverse=flag(),
    real=flag(),
    norm=word("backward", "ortho", "forward"),
    onesided=True,
    signal_sizes=integers((), alone=False, kinds=(tuple, list), each=anything()),
):
    """The Fourier transform over the last `signal_ndim` axes of complex or real signals, or its
    inverse.

    Args:
        signal_ndim (int): The number of axes, 1 to 3.
        inverse (bool): Whether it is the inverse.
        real (bool): Whether the signals are real.
        norm (str): "backward", "forward" or "ortho". Default: "backward".
        onesided (bool): Whether the spectrum of real signals has the frequencies that are not
            negative alone. Default: True.
        signal_sizes (tuple[int, ...]): The sizes of real signals that an inverse gives. Default:
            ().
    """


# Losses.


def _multilabel(p: Any, x: Any, target: Any) -> tuple[Tensor, Tensor]:
    labels = cast_index("MultilabelMarginLoss", target)
    if labels.ndim == 0:
        raise ShapeError("MultilabelMarginLoss: takes labels (C,) or (N, C), not a single number")
    classes = labels.shape[-1]
    # Labels count up to the first that is negative.
    given = run(E.eq, sorting.cumsum(cast(labels < 0, D.int32), labels.ndim - 1), like(0, labels))
    own = run(E.eq, reshaped(labels, (*labels.shape, 1)), creation.arange(classes, dtype=labels.dtype))
    own = run(E.logical_and, own, reshaped(given, (*given.shape, 1)))
    marked = cast(run(R.reduce_any, own, axes=(labels.ndim - 1,), keepdims=False), D.int32)
    return margin_losses.multilabel_margin_loss(x, target, p.reduction), marked


def _triplet(p: Any, x: Any, positive: Any, negative: Any, margin: Any) -> Tensor:
    need_dimensions("TripletMarginLoss", 0, margin=margin)
    return margin_losses.triplet_margin_loss(x, positive, negative, margin, p.p, p.eps, p.swap, p.reduction)


class MultiMarginLoss(
    Primitive,
    compute=lambda p, x, y, w=None: margin_losses.multi_margin_loss(x, y, p.p, p.margin, w, p.reduction),
    p=integer(1, 1, 2),
    margin=1.0,
    reduction=one_of("mean", "none", "sum"),
): ...


class MultilabelMarginLoss(Primitive, compute=_multilabel, reduction=one_of("mean", "none", "sum")):
    """The loss `mycel.ops.multilabel_margin_loss`, and which classes are targets."""


class TripletMarginLoss(
    Primitive,
    compute=_triplet,
    p=2,
    swap=False,
    eps=1e-6,
    reduction=one_of("mean", "none", "sum"),
    inputs=(Tensor, Tensor, Tensor, Tensor),
):
    """The loss max(d(x, positive) - d(x, negative) + margin, 0), where the margin is a tensor.

    Args:
        p (float): The order of the norm. Default: 2.
        swap (bool): Whether the smaller of d(x, negative) and d(positive, negative) counts.
            Default: False.
        eps (float): Added to the difference. Default: 1e-06.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".
    """


__all__.extend(operations_of(globals()))
