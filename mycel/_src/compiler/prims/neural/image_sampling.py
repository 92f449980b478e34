"""Grid sampling: images interpolated at fractional positions, and its derivatives.

    sample(image, *places; linear)
    sample_add(ct, *places; linear, sizes)
    sample_slopes(ct, image, *places; linear)

`image` is (N, C, *sizes), and `places` are positions (N, P) along each of the axes of sizes, of
which there are one to three. `sample` gives (N, C, P): with `linear` the sum of the 2^k elements
around a position, weighted by the volumes opposite, else the element at the position, which is
whole. Elements outside of the image are 0, and NaN is a position outside.

`sample_add` is the transpose: it adds the elements of `ct` (N, C, P), weighted, up into images.
`sample_slopes` are the derivatives of the sum of ct times the sample by the positions; those of
what is outside, and of whole positions, are 0. Jaderberg et al., "Spatial Transformer Networks",
2015.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, product, same
from mycel._src.compiler.ir.graph import Node, Number
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, constant, need_kind, register, same_dtype
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.foundation.dtype import int32
from mycel._src.foundation.errors import ShapeError, SizeError

__all__ = ["sample", "sample_add", "sample_slopes"]

# Positions in a plane are numbers of 32 bits.
LARGEST = (1 << 31) - 1
Shape = tuple[DimLike, ...]


def _check(name: str, batch: DimLike, sizes: Shape, *places: TensorType) -> DimLike:
    """Return the number of positions after checking them."""
    if not 1 <= len(places) <= 3 or len(places) != len(sizes):
        raise ShapeError(f"{name}: takes an image (N, C, *sizes) and positions along 1 to 3 axes, not {len(places)}")
    if any(t is not places[0] or t.rank != 2 or not same(t.shape[0], batch) for t in places):
        raise ShapeError(f"{name}: positions must be (N, P) of the image's batch, not {', '.join(map(str, places))}")
    size = product(sizes)
    if type(size) is int and size > LARGEST:
        raise SizeError(f"{name}: images of {sizes} have more elements than can be numbered")
    return places[0].shape[1]


def _infer(image: TensorType, *places: TensorType, linear: bool) -> TensorType:
    need_kind("sample", "f", image)
    same_dtype("sample", image, *places)
    if image.rank < 3:
        raise ShapeError(f"sample: the image must be (N, C, *sizes), not {image}")
    points = _check("sample", image.shape[0], tuple(image.shape[2:]), *places)
    return tensor_type((*image.shape[:2], points), image.dtype)


def _add_infer(ct: TensorType, *places: TensorType, linear: bool, sizes: Shape) -> TensorType:
    need_kind("sample_add", "f", ct)
    same_dtype("sample_add", ct, *places)
    if any(type(d) is int and d < 0 for d in sizes):
        raise ShapeError(f"sample_add: sizes must not be negative, not {sizes}")
    points = _check("sample_add", ct.shape[0] if ct.rank else 0, sizes, *places)
    if ct.rank != 3 or not same(ct.shape[2], points):
        raise ShapeError(f"sample_add: {ct} are no elements at positions {places[0]}")
    return tensor_type((*ct.shape[:2], *sizes), ct.dtype)


def _slopes_infer(ct: TensorType, image: TensorType, *places: TensorType, linear: bool) -> Any:
    if ct is not _infer(image, *places, linear=linear):
        raise ShapeError(f"sample_slopes: {ct} are no elements of {image} at positions {places[0]}")
    return places


# The definition in NumPy.


def _corners(sizes: Sequence[int], places: Sequence[Any], linear: bool, along: int | None = None) -> Iterator[Any]:
    """Yield the flat positions of the elements around positions, which of them are inside of the
    image, and their weights.

    With `along` weights are their derivatives by the position along this axis.
    """
    kind = places[0].dtype.type
    lows = [np.floor(at) if linear else at for at in places]
    for corner in itertools.product((0, 1) if linear else (0,), repeat=len(sizes)):
        flat: Any = 0
        inside: Any = True
        weight: Any = np.ones_like(places[0])
        for axis, (k, low, at, size) in enumerate(zip(corner, lows, places, sizes)):
            here = (low + k >= 0) & (low + k <= size - 1)
            flat = flat * size + np.where(here, low + k, 0).astype(np.int64)
            side = at - low if k else 1 - (at - low)
            if axis == along:
                side = np.full_like(at, 1 if k else -1)
            inside = inside & here
            weight = weight * side if linear else weight
        yield flat, inside[:, None], np.where(inside, weight, kind(0))[:, None]


def _taken(planes: Any, flat: Any, inside: Any, weight: Any) -> Any:
    """Return elements (N, C, P) times their weights."""
    if not planes.shape[2]:
        return np.zeros((*planes.shape[:2], flat.shape[1]), planes.dtype)
    found = np.take_along_axis(planes, np.broadcast_to(flat[:, None], (*planes.shape[:2], flat.shape[1])), 2)
    return np.where(inside, found, 0) * weight


def _planes(image: Any) -> Any:
    return image.reshape(*image.shape[:2], int(np.prod(image.shape[2:], dtype=np.int64)))


def _reference(image: Any, *places: Any, linear: bool) -> Any:
    with np.errstate(all="ignore"):
        made = np.zeros((*image.shape[:2], places[0].shape[1]), image.dtype)
        for corner in _corners(image.shape[2:], places, linear):
            made += _taken(_planes(image), *corner)
        return made


def _add_reference(ct: Any, *places: Any, linear: bool, sizes: Any) -> Any:
    made = np.zeros((*ct.shape[:2], int(np.prod(sizes, dtype=np.int64))), ct.dtype)
    n, c = (np.arange(d).reshape(s) for d, s in zip(ct.shape, ((-1, 1, 1), (1, -1, 1))))
    with np.errstate(all="ignore"):
        for flat, inside, weight in _corners(sizes, places, linear):
            if made.shape[2]:
                share = np.where(inside, ct * weight, 0)
                np.add.at(made, (n, c, np.broadcast_to(flat[:, None], ct.shape)), share)
    return made.reshape(*ct.shape[:2], *sizes)


def _slopes_reference(ct: Any, image: Any, *places: Any, linear: bool) -> Any:
    made = [np.zeros_like(at) for at in places]
    with np.errstate(all="ignore"):
        for axis, slope in enumerate(made if linear else ()):
            for corner in _corners(image.shape[2:], places, linear, axis):
                slope += (_taken(_planes(image), *corner) * ct).sum(1)
    return tuple(made)


# The definition in primitives.


def _around(sizes: Shape, places: Sequence[Node], linear: bool, along: int | None = None) -> Iterator[Any]:
    """Yield what `_corners` does as nodes (N, 1, P)."""
    n, points = places[0].shape
    dtype = places[0].dtype
    zero, one = constant(0.0, dtype), constant(1.0, dtype)
    lows = [E.floor(at) if linear else at for at in places]
    for corner in itertools.product((0, 1) if linear else (0,), repeat=len(sizes)):
        flat: Node | None = None
        weight: Node | None = None
        inside: Node | None = None
        for axis, (k, low, at, size) in enumerate(zip(corner, lows, places, sizes)):
            place = E.add(low, one) if k else low
            last = E.cast(constant(size - 1, int32), dtype=dtype)
            here = E.logical_and(E.ge(place, zero), E.le(place, last))
            whole = E.cast(E.select(here, place, S.full((n, points), 0, dtype)), dtype=int32)
            flat = whole if flat is None else E.add(E.mul(flat, constant(size, int32)), whole)
            part = E.sub(at, low)
            side = part if k else E.sub(one, part)
            if axis == along:
                side = S.full((n, points), 1.0 if k else -1.0, dtype)
            weight = side if weight is None else E.mul(weight, side)
            inside = here if inside is None else E.logical_and(inside, here)
        assert flat is not None and weight is not None and inside is not None
        weight = E.select(inside, weight if linear else S.full((n, points), 1, dtype), S.full((n, points), 0, dtype))
        yield tuple([S.reshape(x, (n, 1, points)) for x in (flat, inside, weight)])


def _kept(inside: Node, values: Node) -> Node:
    return E.select(S.broadcast_to(inside, values.shape), values, S.full(values.shape, 0, values.dtype))


def _flat(image: Node) -> Node:
    return S.reshape(image, (*image.shape[:2], product(image.shape[2:])))


def _is_empty(sizes: Shape) -> bool:
    size = product(sizes)
    return type(size) is int and size == 0


def _read(planes: Node, flat: Node, inside: Node, weight: Node) -> Node:
    """Return elements (N, C, P) times their weights."""
    shape = (*planes.shape[:2], flat.shape[2])
    return E.mul(_kept(inside, I.take_along(planes, S.broadcast_to(flat, shape), axis=2)), weight)


def _expand(image: Node, *places: Node, linear: bool) -> Node:
    shape = (*image.shape[:2], places[0].shape[1])
    total = S.full(shape, 0, image.dtype)
    for corner in () if _is_empty(image.shape[2:]) else _around(tuple(image.shape[2:]), places, linear):
        total = E.add(total, _read(_flat(image), *corner))
    return total


def _add_expand(ct: Node, *places: Node, linear: bool, sizes: Shape) -> Node:
    made = S.full((*ct.shape[:2], product(sizes)), 0, ct.dtype)
    for flat, inside, weight in () if _is_empty(sizes) else _around(sizes, places, linear):
        share = _kept(inside, E.mul(ct, weight))
        made = I.put_along(made, S.broadcast_to(flat, ct.shape), share, axis=2, mode="add")
    return S.reshape(made, (*ct.shape[:2], *sizes))


def _slopes_expand(ct: Node, image: Node, *places: Node, linear: bool) -> tuple[Node, ...]:
    found = []
    for axis, at in enumerate(places):
        total = S.full(at.shape, 0, at.dtype)
        if linear and not _is_empty(image.shape[2:]):
            for corner in _around(tuple(image.shape[2:]), places, linear, axis):
                shares = E.mul(_read(_flat(image), *corner), ct)
                total = E.add(total, reduce_sum(shares, axes=(1,), keepdims=False))
        found.append(total)
    return tuple(found)


# Rules.


def _vjp(ct: Node, out: Node, image: Node, *places: Node, linear: bool) -> Sequence[Node | None]:
    back = sample_add(ct, *places, linear=linear, sizes=tuple(image.shape[2:]))
    slopes = sample_slopes.outputs(ct, image, *places, linear=linear) if linear else (None,) * len(places)
    return [back, *slopes]


def _add_vjp(g: Node, out: Node, ct: Node, *places: Node, linear: bool, sizes: Shape) -> Sequence[Node | None]:
    slopes = sample_slopes.outputs(ct, g, *places, linear=linear) if linear else (None,) * len(places)
    return [sample(g, *places, linear=linear), *slopes]


def _as_one_batch(size: DimLike, values: Sequence[Node], axes: Any) -> list[Node]:
    """Return values with the axis of examples, of this size, joined with that of images."""
    made = []
    for x, axis in zip(values, axes):
        x = S.broadcast_to(x, (size, *x.shape)) if axis is None else S.move_axis(x, axis, 0)
        made.append(S.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])))
    return made


def _batch(size: DimLike, values: Sequence[Node], axes: Any, **params: Any) -> Any:
    return _parted(size, sample(*_as_one_batch(size, values, axes), **params)), 0


def _add_batch(size: DimLike, values: Sequence[Node], axes: Any, **params: Any) -> Any:
    return _parted(size, sample_add(*_as_one_batch(size, values, axes), **params)), 0


def _slopes_batch(size: DimLike, values: Sequence[Node], axes: Any, **params: Any) -> Any:
    made = sample_slopes.outputs(*_as_one_batch(size, values, axes), **params)
    return tuple([_parted(size, x) for x in made]), (0,) * len(made)


def _parted(size: DimLike, x: Node) -> Node:
    return S.reshape(x, (size, x.shape[0] // size, *x.shape[1:]))


# Records.


def _samples(what: str) -> tuple[Sample, ...]:
    found = []
    for batch, channels, sizes, points, linear in (
        (2, 3, (4, 5), 6, True),
        (1, 2, (3, 3), 40, True),
        (2, 1, (2, 3, 3), 5, True),
        (1, 2, (6,), 4, True),
        (2, 2, (1, 3), 5, False),
        (1, 1, (0, 2), 2, True),
        (0, 2, (2, 2), 3, True),
    ):
        image, values, place = (batch, channels, *sizes), (batch, channels, points), (batch, points)
        params: dict[str, Any] = {"linear": linear}
        if linear:
            places: tuple[Any, ...] = (place,) * len(sizes)
        else:
            count = batch * points
            places = tuple([(np.arange(count).reshape(place) % 5 - 1.0) for _ in sizes])
        shapes: tuple[Any, ...] = (image, *places) if what == "sample" else (values, *places)
        if what == "slopes":
            shapes = (values, image, *places)
        if what == "add":
            params["sizes"] = sizes
        if linear:
            found.append(Sample(shapes, params, domain=(-0.9, 2.9)))
        else:
            found.append(Sample(shapes, params, dtypes=("float64",) * len(shapes), differentiable=False))
    return tuple(found)


def _factors(node: Node) -> tuple[Factor, ...]:
    """Return images, channels and positions as factors; gradients sum over one of the last two."""
    images, values, places = ("image", "channel"), ("image", "channel", "point"), ("image", "point")
    if node.prim is sample:
        return named(node, [images, *[places] * (len(node.inputs) - 1)], [values])
    if node.prim is sample_add:
        return named(node, [values, *[places] * (len(node.inputs) - 1)], [images], {"point": "sum"})
    count = len(node.inputs) - 2
    return named(node, [values, images, *[places] * count], [places] * count, {"channel": "sum"})


def _work(node: Node, number: Number) -> int:
    rank = len(node.inputs) - (1 if node.prim is not sample_slopes else 2)
    values = node.type if node.prim is sample else node.inputs[0].type
    return (2 << rank) * number(values.size)


sample: Primitive = register(
    Primitive(
        "sample",
        _infer,
        _reference,
        _vjp,
        _batch,
        _expand,
        samples=_samples("sample"),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_factors,
        doc="Images at positions between their elements.",
    )
)
sample_add: Primitive = register(
    Primitive(
        "sample_add",
        _add_infer,
        _add_reference,
        _add_vjp,
        _add_batch,
        _add_expand,
        samples=_samples("add"),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_factors,
        doc="The cotangent of images by that of what was read between their elements.",
    )
)
sample_slopes: Primitive = register(
    Primitive(
        "sample_slopes",
        _slopes_infer,
        _slopes_reference,
        None,
        _slopes_batch,
        _slopes_expand,
        samples=_samples("slopes"),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_factors,
        doc="The cotangents of positions by that of what was read there between an image's elements.",
    )
)
