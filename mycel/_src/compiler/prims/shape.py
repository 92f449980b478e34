"""Data-movement primitives: reshape, transpose, broadcast, slice, pad, concatenate, reverse.

Each derivative is the transposed movement. Sizes and positions may be symbolic dimensions. Axes are
counted from the front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike, InconclusiveDimension, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import shape_factors
from mycel._src.compiler.prims.base import Cost, Primitive, Sample, broadcast_shapes, constant, register
from mycel._src.compiler.prims.factors import starts_by_axis
from mycel._src.foundation.dtype import DType, bool_, int32, int64
from mycel._src.foundation.errors import ShapeError

Shape = tuple[DimLike, ...]
FAR = (1 << 31) - 1  # an axis of more elements has positions that are no int32
ANY = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


def _reshape_infer(x: TensorType, *, shape: Shape) -> TensorType:
    if not same(x.size, product(shape)) and x.size != product(shape):
        raise ShapeError(f"reshape: {x} has {x.size} elements, the shape {list(shape)} wants {product(shape)}")
    return tensor_type(shape, x.dtype)


RESHAPE: Primitive = register(
    Primitive(
        "reshape",
        _reshape_infer,
        lambda x, *, shape: np.reshape(x, shape),
        lambda ct, out, x, *, shape: (reshape(ct, x.shape),),
        lambda size, values, axes, *, shape: (reshape(move_axis(values[0], axes[0], 0), (size, *shape)), 0),
        samples=(
            Sample(((2, 6),), {"shape": (3, 4)}),
            Sample(((1,),), {"shape": ()}),
            Sample(((0, 3),), {"shape": (3, 0)}),
        ),
        dtypes=ANY,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        factors=shape_factors.reshape_factors,
        doc="The same elements in row-major order under another shape.",
    )
)


def reshape(x: Node, shape: Shape) -> Node:
    """Return `x` in another shape; `x` itself where the shape is the same."""
    return x if same(x.shape, tuple(shape)) else RESHAPE(x, shape=tuple(shape))


def _transpose_infer(x: TensorType, *, permutation: tuple[int, ...]) -> TensorType:
    if sorted(permutation) != list(range(x.rank)):
        raise ShapeError(f"transpose: {permutation} is not a permutation of the {x.rank} axes of {x}")
    return tensor_type(tuple(x.shape[p] for p in permutation), x.dtype)


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(permutation))


def _transpose_batch(size: Any, values: Any, axes: Any, *, permutation: tuple[int, ...]) -> Any:
    return transpose(move_axis(values[0], axes[0], 0), (0, *(p + 1 for p in permutation))), 0


TRANSPOSE: Primitive = register(
    Primitive(
        "transpose",
        _transpose_infer,
        lambda x, *, permutation: np.transpose(x, permutation),
        lambda ct, out, x, *, permutation: (transpose(ct, _inverse(permutation)),),
        _transpose_batch,
        samples=(
            Sample(((2, 3, 4),), {"permutation": (2, 0, 1)}),
            Sample(((3, 5),), {"permutation": (1, 0)}),
            Sample(((),), {"permutation": ()}),
        ),
        dtypes=ANY,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        factors=shape_factors.transpose_factors,
        doc="Axes in another order: axis i of the result is axis permutation[i] of x.",
    )
)


def transpose(x: Node, permutation: tuple[int, ...]) -> Node:
    """Return `x` with its axes permuted; `x` itself for the identity."""
    if tuple(permutation) == tuple(range(x.type.rank)):
        return x
    return TRANSPOSE(x, permutation=tuple(permutation))


def move_axis(x: Node, source: int, target: int) -> Node:
    """Return `x` with one axis moved."""
    order = [i for i in range(x.type.rank) if i != source]
    order.insert(target, source)
    return transpose(x, tuple(order))


def _broadcast_infer(x: TensorType, *, shape: Shape) -> TensorType:
    if not same(whole := broadcast_shapes(x.shape, shape), tuple(shape)) and whole != tuple(shape):
        raise ShapeError(f"broadcast_to: {x} does not broadcast to {list(shape)}")
    return tensor_type(tuple(shape), x.dtype)


def _broadcast_vjp(ct: Node, out: Node, x: Node, *, shape: Shape) -> tuple[Node]:
    from mycel._src.compiler.prims.elementwise_records import unbroadcast

    return (unbroadcast(ct, x),)


def _broadcast_batch(size: Any, values: Any, axes: Any, *, shape: Shape) -> Any:
    x = move_axis(values[0], axes[0], 0)
    x = reshape(x, (size,) + (1,) * (len(shape) - x.type.rank + 1) + tuple(x.shape[1:]))
    return broadcast_to(x, (size, *shape)), 0


BROADCAST_TO: Primitive = register(
    Primitive(
        "broadcast_to",
        _broadcast_infer,
        lambda x, *, shape: np.broadcast_to(x, shape),
        _broadcast_vjp,
        _broadcast_batch,
        samples=(
            Sample(((3, 1),), {"shape": (2, 3, 4)}),
            Sample(((),), {"shape": (2,)}),
            Sample(((1, 2),), {"shape": (0, 2)}),
        ),
        dtypes=ANY,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        factors=shape_factors.broadcast_factors,
        doc="Axes of size 1 repeated, and axes added in front, by NumPy's rule.",
    )
)


def broadcast_to(x: Node, shape: Shape) -> Node:
    """Return `x` repeated to `shape`; `x` itself where it has that shape."""
    return x if same(x.shape, tuple(shape)) else BROADCAST_TO(x, shape=tuple(shape))


def _extent(start: DimLike, stop: DimLike, step: int) -> DimLike:
    return (stop - start + (step - 1)) // step


def _slice_infer(x: TensorType, *, starts: Shape, stops: Shape, steps: tuple[int, ...]) -> TensorType:
    if not len(starts) == len(stops) == len(steps) == x.rank:
        raise ShapeError(f"slice: {x} needs {x.rank} starts, stops and steps")
    for axis, (a, b, s) in enumerate(zip(starts, stops, steps)):
        try:
            wrong = s < 1 or a < 0 or b < a or b > x.shape[axis]
        except InconclusiveDimension:
            wrong = False
        if wrong:
            raise ShapeError(f"slice: {a}:{b}:{s} does not lie in axis {axis} of {x}; steps are positive")
    return tensor_type(tuple(_extent(a, b, s) for a, b, s in zip(starts, stops, steps)), x.dtype)


def _slice_vjp(ct: Node, out: Node, x: Node, *, starts: Shape, stops: Shape, steps: tuple[int, ...]) -> tuple[Node]:
    low = starts
    high = tuple(
        d - a - ((n - 1) * s + 1) if not isinstance(n, int) or n > 0 else d - a
        for d, a, n, s in zip(x.shape, starts, out.shape, steps)
    )
    return (pad(ct, 0, low, high, tuple(s - 1 for s in steps)),)


def _slice_batch(size: Any, values: Any, axes: Any, *, starts: Shape, stops: Shape, steps: tuple[int, ...]) -> Any:
    x = move_axis(values[0], axes[0], 0)
    return SLICE(x, starts=(0, *starts), stops=(size, *stops), steps=(1, *steps)), 0


SLICE: Primitive = register(
    Primitive(
        "slice",
        _slice_infer,
        lambda x, *, starts, stops, steps: x[tuple(slice(a, b, s) for a, b, s in zip(starts, stops, steps))],
        _slice_vjp,
        _slice_batch,
        samples=(
            Sample(((4, 5),), {"starts": (1, 0), "stops": (4, 5), "steps": (1, 2)}),
            Sample(((7,),), {"starts": (2,), "stops": (2,), "steps": (1,)}),
            Sample(((7,),), {"starts": (1,), "stops": (6,), "steps": (3,)}),
        ),
        dtypes=ANY,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        factors=shape_factors.slice_factors,
        doc="x[start:stop:step] on every axis, with positive steps and bounds inside the tensor.",
    )
)


def slice_(x: Node, starts: Shape, stops: Shape, steps: tuple[int, ...] | None = None) -> Node:
    """Return the part of `x` between `starts` and `stops` on every axis.

    `steps` are positive, one for each axis; None is 1 on all.
    """
    steps = tuple(steps) if steps is not None else (1,) * x.type.rank
    if all(isinstance(a, int) and a == 0 for a in starts) and same(tuple(stops), x.shape) and set(steps) <= {1}:
        return x
    return SLICE(x, starts=tuple(starts), stops=tuple(stops), steps=steps)


def slice_axis(x: Node, axis: int, start: DimLike, stop: DimLike, step: int = 1) -> Node:
    """Return `x[..., start:stop:step, ...]`, sliced on one axis."""
    starts: list[DimLike] = [0] * x.type.rank
    stops, steps = list(x.shape), [1] * x.type.rank
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return slice_(x, tuple(starts), tuple(stops), tuple(steps))


def _pad_infer(x: TensorType, value: TensorType, *, low: Shape, high: Shape, interior: tuple[int, ...]) -> TensorType:
    if value.shape or value.dtype is not x.dtype:
        raise ShapeError(f"pad: the value must be a scalar of type {x.dtype.name}, not {value}")
    if not len(low) == len(high) == len(interior) == x.rank:
        raise ShapeError(f"pad: {x} needs {x.rank} entries in low, high and interior")
    shape = []
    for axis, (d, lo, hi, mid) in enumerate(zip(x.shape, low, high, interior)):
        if mid < 0:
            raise ShapeError(f"pad: there cannot be {mid} elements between those of axis {axis} of {x}")
        n = d + lo + hi + (mid * (d - 1) if mid and not (isinstance(d, int) and d == 0) else 0)
        if isinstance(n, int) and n < 0:
            raise ShapeError(f"pad: low {lo} and high {hi} leave a negative size on axis {axis} of {x}")
        shape.append(n)
    return tensor_type(tuple(shape), x.dtype)


def _pad_reference(x: Any, value: Any, *, low: Any, high: Any, interior: Any) -> Any:
    if not x.ndim:
        return x
    shape = tuple(d + max(d - 1, 0) * m for d, m in zip(x.shape, interior))
    wide = np.full(shape, value, x.dtype)
    wide[tuple(slice(None, None, m + 1) for m in interior)] = x
    out = np.pad(wide, [(max(lo, 0), max(hi, 0)) for lo, hi in zip(low, high)], constant_values=value)
    return out[tuple(slice(-lo if lo < 0 else 0, hi if hi < 0 else None) for lo, hi in zip(low, high))]


def _pad_vjp(
    ct: Node, out: Node, x: Node, value: Node, *, low: Any, high: Any, interior: Any
) -> tuple[Node, Node | None]:
    if any(isinstance(d, int) and d == 0 for d in x.shape):
        dx = broadcast_to(constant(0, x.dtype), x.shape)
    else:
        crop = pad(ct, 0, tuple(-a for a in low), tuple(-b for b in high), (0,) * x.type.rank)
        dx = slice_(crop, (0,) * x.type.rank, tuple(crop.shape), tuple(m + 1 for m in interior))
    if value.is_constant:
        return dx, None
    from mycel._src.compiler.prims import elementwise as E
    from mycel._src.compiler.prims import reduce as R

    axes = tuple(range(x.type.rank))
    return dx, E.sub(R.reduce_sum(ct, axes=axes, keepdims=False), R.reduce_sum(dx, axes=axes, keepdims=False))


def _pad_batch(size: Any, values: Any, axes: Any, *, low: Any, high: Any, interior: Any) -> Any:
    x = values[0] if axes[0] is None else move_axis(values[0], axes[0], 0)
    if axes[1] is None:
        return PAD(x, values[1], low=(0, *low), high=(0, *high), interior=(0, *interior)), 0
    from mycel._src.compiler.prims.elementwise import select

    # The places that belong to x are those where zeros are padded with zeros, not with ones.
    shape = x.shape if axes[0] is None else x.shape[1:]
    own = PAD(full(shape, False, bool_), constant(True), low=low, high=high, interior=interior)
    value = reshape(values[1], (size, *(1,) * len(shape)))
    lead = () if axes[0] is None else (0,)
    wide = PAD(x, constant(0, x.dtype), low=(*lead, *low), high=(*lead, *high), interior=(*lead, *interior))
    return select(own, value, wide), 0


PAD: Primitive = register(
    Primitive(
        "pad",
        _pad_infer,
        _pad_reference,
        _pad_vjp,
        _pad_batch,
        samples=(
            Sample(((2, 3), ()), {"low": (1, 0), "high": (0, 2), "interior": (0, 0)}),
            Sample(((3,), ()), {"low": (2,), "high": (1,), "interior": (2,)}),
            Sample(((5,), ()), {"low": (-1,), "high": (-2,), "interior": (0,)}),
            Sample(((3,), ()), {"low": (-1,), "high": (2,), "interior": (1,)}),
        ),
        dtypes=ANY,
        linear=True,
        cost=Cost.PASS,
        factors=shape_factors.pad_factors,
        doc="`low` and `high` copies of a value around x, `interior` between neighbours; negative amounts crop.",
    )
)


def pad(x: Node, value: Any, low: Shape, high: Shape, interior: tuple[int, ...] | None = None) -> Node:
    """Return `x` with `value` around it and between its elements.

    `low` and `high` are the numbers of copies before and after each axis, where negative ones crop;
    `interior` is that between neighbours (None: 0). Returns `x` itself where all are 0.
    """
    interior = tuple(interior) if interior is not None else (0,) * x.type.rank
    if all(isinstance(v, int) and v == 0 for v in (*low, *high, *interior)):
        return x
    value = value if isinstance(value, Node) else constant(value, x.dtype)
    return PAD(x, value, low=tuple(low), high=tuple(high), interior=interior)


def _concat_infer(*types: TensorType, axis: int) -> TensorType:
    first = types[0]
    if not 0 <= axis < first.rank:
        raise ShapeError(f"concat: axis {axis} is out of range for {first}")
    total: DimLike = 0
    for t in types:
        same = t.rank == first.rank and all(a == b for i, (a, b) in enumerate(zip(t.shape, first.shape)) if i != axis)
        if t.dtype is not first.dtype or not same:
            raise ShapeError(
                f"concat along axis {axis}: {t} does not fit {first}; all other sizes and the type must agree"
            )
        total = total + t.shape[axis]
    return tensor_type(first.shape[:axis] + (total,) + first.shape[axis + 1 :], first.dtype)


def _concat_vjp(ct: Node, out: Node, *inputs: Node, axis: int) -> tuple[Node, ...]:
    position: DimLike = 0
    parts = []
    for x in inputs:
        parts.append(slice_axis(ct, axis, position, position + x.shape[axis]))
        position = position + x.shape[axis]
    return tuple(parts)


def _concat_batch(size: Any, values: Any, axes: Any, *, axis: int) -> Any:
    moved = [broadcast_to(v, (size, *v.shape)) if a is None else move_axis(v, a, 0) for v, a in zip(values, axes)]
    return CONCAT(*moved, axis=axis + 1), 0


CONCAT: Primitive = register(
    Primitive(
        "concat",
        _concat_infer,
        lambda *arrays, axis: np.concatenate(arrays, axis=axis),
        _concat_vjp,
        _concat_batch,
        samples=(
            Sample(((2, 3), (2, 1)), {"axis": 1}),
            Sample(((2,), (0,), (3,)), {"axis": 0}),
            Sample(((1, 2),), {"axis": 0}),
        ),
        dtypes=ANY,
        linear=True,
        cost=Cost.PASS,
        factors=shape_factors.concat_factors,
        doc="Tensors joined along an axis.",
    )
)


def concat(values: Any, axis: int) -> Node:
    """Return `values` joined along an axis; a single value is returned as it is."""
    values = tuple(values)
    return values[0] if len(values) == 1 else CONCAT(*values, axis=axis)


def _reverse_infer(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    if any(not 0 <= a < x.rank for a in axes) or len(set(axes)) != len(axes):
        raise ShapeError(f"reverse: axes {axes} are not distinct axes of {x}")
    return x


reverse: Primitive = register(
    Primitive(
        "reverse",
        _reverse_infer,
        lambda x, *, axes: np.flip(x, axes),
        lambda ct, out, x, *, axes: (reverse(ct, axes=axes),),
        lambda size, values, batch_axes, *, axes: (
            reverse(move_axis(values[0], batch_axes[0], 0), axes=tuple(a + 1 for a in axes)),
            0,
        ),
        samples=(Sample(((2, 3),), {"axes": (1,)}), Sample(((2, 3, 2),), {"axes": (0, 2)})),
        dtypes=ANY,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        factors=shape_factors.reverse_factors,
        doc="Axes in the opposite direction.",
    )
)


def _iota_infer(*, shape: Shape, axis: int, dtype: DType) -> TensorType:
    if not 0 <= axis < len(shape):
        raise ShapeError(f"iota: axis {axis} is not one of the {len(shape)} axes")
    size = shape[axis]
    if dtype is int32 and type(size) is int and size > FAR:
        raise ShapeError(f"iota: int32 has no numbers for the {size} positions of an axis; use int64")
    return tensor_type(tuple(shape), dtype)


def position_type(size: DimLike) -> DType:
    """Return the type of positions along an axis.

    It is int32, or int64 where the size is known to be too large for that.
    """
    return int64 if type(size) is int and size > FAR else int32


def _iota_reference(*, shape: tuple[int, ...], axis: int, dtype: DType) -> Any:
    line = np.arange(shape[axis]).astype(dtype.numpy)
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def _iota_part(whole: Node, inputs: Any, params: Any, starts: Any) -> Node:
    from mycel._src.compiler.prims import elementwise as E

    start, part = starts_by_axis(whole, starts).get(params["axis"]), iota(**params)
    return part if start is None else E.add(part, E.cast(start, dtype=part.dtype))


iota: Primitive = register(
    Primitive(
        "iota",
        _iota_infer,
        _iota_reference,
        lambda ct, out, **_: (),
        lambda size, values, axes, **params: (iota(**params), None),
        samples=tuple(Sample((), {"shape": (3, 4), "axis": a, "dtype": d}) for a in (0, 1) for d in (int32, int64)),
        cost=Cost.LIGHT,
        factors=shape_factors.iota_factors,
        part=_iota_part,
        doc="The index along an axis.",
    )
)


def _size_infer(*, dim: DimLike, dtype: DType) -> TensorType:
    if isinstance(dim, int) and dtype.is_integer and not np.iinfo(dtype.numpy).min <= dim <= np.iinfo(dtype.numpy).max:
        raise ShapeError(f"size: {dtype.name} cannot hold the size {dim}; use int64")
    return tensor_type((), dtype)


SIZE: Primitive = register(
    Primitive(
        "size",
        _size_infer,
        lambda *, dim, dtype: np.asarray(dim, dtype.numpy),
        lambda ct, out, **_: (),
        lambda size, values, axes, **params: (SIZE(**params), None),
        lambda *, dim, dtype: constant(dim, dtype),
        samples=(Sample((), {"dim": 3, "dtype": int32}),),
        cost=Cost.LIGHT,
        doc="A dimension, symbolic while compiling, as a scalar.",
    )
)


def size_node(dim: Dim, dtype: DType | None) -> Node:
    """Return a symbolic dimension as a scalar tensor."""
    return SIZE(dim=dim, dtype=dtype or int64)


def constant_like(value: Any, x: Node) -> Node:
    """Return a number or a dimension as a scalar of the element type of `x`."""
    return constant(value, x.dtype)


def full(shape: Shape, value: Any, dtype: DType) -> Node:
    """Return a tensor filled with one value."""
    return broadcast_to(constant(value, dtype), tuple(shape))


def zeros_like(x: Node) -> Node:
    """Return a tensor of zeros of the type of `x`."""
    return full(x.shape, 0, x.dtype)
