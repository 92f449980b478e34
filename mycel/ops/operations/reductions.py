"""The operations of reductions, running totals, orders and segments as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import arrange, elementwise, reduction, segments, sorting, vector_norms
from mycel.ops._operands import axis_of, operand
from mycel.ops.operations.attributes import integer, integers, optional, real
from mycel.ops.operations.inputs import WHOLE
from mycel.ops.operations.primitive import Primitive, operations_of

__all__: list[str] = []


class Unique(Primitive, compute=segments.unique): ...


class UnsortedSegmentMax(Primitive, compute=segments.unsorted_segment_max, inputs=(Tensor, Tensor, WHOLE)): ...


class UnsortedSegmentMin(Primitive, compute=segments.unsorted_segment_min, inputs=(Tensor, Tensor, WHOLE)): ...


class UnsortedSegmentProd(Primitive, compute=segments.unsorted_segment_prod, inputs=(Tensor, Tensor, WHOLE)): ...


class UnsortedSegmentSum(Primitive, compute=segments.unsorted_segment_sum, inputs=(Tensor, Tensor, WHOLE)): ...


# Reductions.
def _sum(p: Any, x: Any, axis: Any = ()) -> Tensor:
    value = operand("ReduceSum", x)
    if p.skip_mode and isinstance(axis, (tuple, list)) and not axis:
        return value
    return reduction.sum(value, axis, p.keep_dims, dtype=value.dtype)


class ReduceSum(
    Primitive, compute=_sum, keep_dims=False, skip_mode=False, inputs=(Tensor, (int, tuple, list, Tensor))
): ...


class ReduceMean(
    Primitive,
    compute=lambda p, x, axis=(): reduction.mean(x, axis, p.keep_dims),
    keep_dims=False,
    inputs=(Tensor, (int, tuple, list, Tensor)),
): ...


class ReduceProd(
    Primitive,
    compute=lambda p, x, axis=(): reduction.prod(x, axis, p.keep_dims),
    keep_dims=False,
    inputs=(Tensor, (int, tuple, list, Tensor)),
): ...


class ReduceAny(
    Primitive,
    compute=lambda p, x, axis=(): reduction.any(x, axis, p.keep_dims),
    keep_dims=False,
    inputs=(Tensor, (int, tuple, list, Tensor, type(None))),
): ...


class ReduceAll(
    Primitive,
    compute=lambda p, x, axis=(): reduction.all(x, axis, p.keep_dims),
    keep_dims=False,
    inputs=(Tensor, (int, tuple, list, Tensor, type(None))),
): ...


class ReduceMax(
    Primitive,
    compute=lambda p, x, axis=(): reduction.amax(x, axis, p.keep_dims),
    keep_dims=False,
    inputs=(Tensor, (int, tuple, list, Tensor)),
): ...


class ReduceMin(
    Primitive,
    compute=lambda p, x, axis=(): reduction.amin(x, axis, p.keep_dims),
    keep_dims=False,
    inputs=(Tensor, (int, tuple, list, Tensor)),
): ...


def _reduced_std(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    axes = tuple(p.axis) if isinstance(p.axis, list) else p.axis
    return reduction.std_mean(x, axes or None, int(p.unbiased), p.keep_dims)


class ReduceStd(
    Primitive, compute=_reduced_std, axis=integers([], kinds=(tuple, list)), unbiased=True, keep_dims=False
):
    """The standard deviation over `axis` (all axes where it is empty), and the mean."""


def _position(find: Any) -> Any:
    def run_(p: Any, x: Any) -> Tensor:
        value, kind = operand(p.name, x), p.output_type
        if kind not in (D.int32, D.int64):
            raise ValueError(f"{p.name}: output_type must be int32 or int64, not {kind.name}")
        size = value.shape[axis_of(p.name, p.axis, value.ndim)] if value.ndim else 1
        if kind is D.int32 and S.position_type(size) is not kind:
            raise ValueError(
                f"{p.name}: int32 has no numbers for the {size} positions of axis {p.axis}; give "
                "output_type=mindspore.int64"
            )
        return cast(find(value, p.axis), kind)

    return run_


class Argmax(Primitive, compute=_position(reduction.argmax), axis=-1, output_type=D.int32): ...


class Argmin(Primitive, compute=_position(reduction.argmin), axis=-1, output_type=D.int32): ...


class ArgMaxWithValue(
    Primitive, compute=lambda p, x: reduction.max(x, p.axis, p.keep_dims)[::-1], axis=0, keep_dims=False
): ...


class ArgMinWithValue(
    Primitive, compute=lambda p, x: reduction.min(x, p.axis, p.keep_dims)[::-1], axis=0, keep_dims=False
): ...


class CountNonZero(
    Primitive,
    compute=lambda p, x: reduction.count_nonzero(x, () if p.dims is None else p.dims),
    dims=optional(integers(kinds=(tuple, list))),
): ...


class LpNorm(
    Primitive,
    compute=lambda p, x: elementwise.maximum(vector_norms.vector_norm(x, p.p, p.axis, p.keep_dims), p.epsilon),
    axis=integers(kinds=(tuple, list)),
    p=integer(2, at_least=0),
    keep_dims=False,
    epsilon=real(1e-12, at_least=0),
):
    """The norm of order `p` over axes, at least `epsilon`.

    Args:
        axis (int | tuple[int, ...] | None): The axes.
        p (int): The order. Default: 2.
        keep_dims (bool): Whether reduced axes stay with size 1. Default: False.
        epsilon (float): The least result. Default: 1e-12.
    """


class EuclideanNorm(
    Primitive,
    compute=lambda p, x, axes: vector_norms.vector_norm(x, 2, axes, p.keep_dims),
    keep_dims=False,
): ...


def _accumulated(function: Any) -> Callable[..., Tensor]:
    def compute(p: Any, x: Any, axis: Any) -> Tensor:
        value = operand(p.name, x)
        where = axis_of(p.name, axis.item() if isinstance(axis, Tensor) else axis, value.ndim)
        value = arrange.flip(value, (where,)) if p.reverse else value
        total = function(value, where)
        if p.exclusive:
            pads = [0, 0] * (value.ndim - 1 - where) + [1, -1]
            total = arrange.pad(total, tuple(pads), value=0 if p.name == "CumSum" else 1)
        return arrange.flip(total, (where,)) if p.reverse else total

    return compute


class CumSum(
    Primitive, compute=_accumulated(sorting.cumsum), exclusive=False, reverse=False, inputs=(Tensor, WHOLE)
): ...


class CumProd(
    Primitive, compute=_accumulated(sorting.cumprod), exclusive=False, reverse=False, inputs=(Tensor, WHOLE)
): ...


class Cummax(Primitive, compute=lambda p, x: sorting.cummax(x, p.axis), axis=integer()): ...


class Cummin(Primitive, compute=lambda p, x: sorting.cummin(x, p.axis), axis=integer()): ...


class Sort(Primitive, compute=lambda p, x: sorting.sort(x, p.axis, p.descending), axis=-1, descending=False): ...


class TopK(
    Primitive,
    compute=lambda p, x, k: sorting.top_k(x, k.item() if isinstance(k, Tensor) else k, p.sorted),
    sorted=True,
    inputs=(Tensor, WHOLE),
): ...


class InTopK(Primitive, compute=lambda p, x, y: segments.intopk(x, y, p.k), k=integer()): ...


class SearchSorted(
    Primitive,
    compute=lambda p, rows, values: cast(sorting.searchsorted(rows, values, right=p.right), p.dtype),
    dtype=D.int64,
    right=False,
): ...


__all__.extend(operations_of(globals()))
