"""Random numbers as pure functions of a state: the counter-based generator Philox2x32-10.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The state is
uint64[2], a key and a counter. Element i of a draw (in row-major order) encrypts the 64-bit block
``counter + i`` under the key, so it depends on neither the number of threads nor the shape, and
every function here uses one block for each element: after drawing n elements, go on with
`advance(state, n)`. The key is first mixed by the finaliser of SplitMix64; the lower half of the
result is Philox's 32-bit key and the upper half an offset of the blocks, so that all 64 bits tell
keys apart.

One primitive gives the bits. The distributions are compositions, which an engine fuses with their
users. None is differentiable in the state; `low`, `high` and the like enter by ordinary arithmetic
and are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, is_one, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.base import Primitive, Sample, constant, register
from mycel._src.compiler.prims.factors import Factor, named, starts_by_axis
from mycel._src.foundation.dtype import DType, float32, float64, int32, uint32, uint64
from mycel._src.foundation.errors import ShapeError

__all__ = [
    "MIXERS",
    "MULTIPLIER",
    "ROUNDS",
    "WEYL",
    "advance",
    "bernoulli",
    "bernoulli_of_part",
    "bits_of_part",
    "normal",
    "permutation",
    "randint",
    "random_bits",
    "seed_state",
    "state_of_part",
    "uniform",
]

Shape = tuple[DimLike, ...]
Bound = float | Node

MULTIPLIER = 0xD256D193
WEYL = 0x9E3779B9
ROUNDS = 10
# Shifts and factors of the finaliser that mixes keys.
MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LOW = 0xFFFFFFFF


def seed_state(seed: int) -> np.ndarray[Any, Any]:
    """Return the initial state for a seed, which is taken modulo 2**64.

    >>> seed_state(7)
    array([7, 0], dtype=uint64)
    """
    return np.array([seed % 2**64, 0], np.uint64)


def _infer(state: TensorType, *, shape: Shape, dtype: DType) -> TensorType:
    if state.dtype is not uint64 or state.rank < 1 or state.shape[-1] != 2:
        raise ShapeError(f"random_bits: the state must be uint64[2], a key and a counter, not {state}")
    if dtype not in (uint32, uint64):
        raise TypeError(f"random_bits: bits come as uint32 or uint64, not {dtype.name}")
    return tensor_type((*state.shape[:-1], *shape), dtype)


def _reference(state: Any, *, shape: Any, dtype: DType) -> Any:
    with np.errstate(over="ignore"):
        key = state[..., :1].copy()
        for shift, factor in MIXERS:
            key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
        key ^= key >> np.uint64(31)
        block = state[..., 1:] + np.arange(math.prod(shape), dtype=np.uint64) + (key & np.uint64(_LOW << 32))
        left, right, key = block & np.uint64(_LOW), block >> np.uint64(32), key & np.uint64(_LOW)
        for _ in range(ROUNDS):
            whole = left * np.uint64(MULTIPLIER)
            left, right = (whole >> np.uint64(32)) ^ key ^ right, whole & np.uint64(_LOW)
            key = (key + np.uint64(WEYL)) & np.uint64(_LOW)
        bits = left if dtype is uint32 else (left << np.uint64(32)) | right
    return bits.astype(dtype.numpy).reshape((*state.shape[:-1], *shape))


def _expand(state: Node, *, shape: Shape, dtype: DType) -> Node:
    return _bits(state, S.iota(shape=(product(shape),), axis=0, dtype=uint64), shape, dtype)


def _bits(state: Node, place: Node, shape: Shape, dtype: DType) -> Node:
    """Return the bits of elements whose places in row-major order are the vector `place`."""
    lead, axis = tuple(state.shape[:-1]), state.type.rank - 1
    key = S.slice_axis(state, axis, 0, 1)
    for shift, factor in MIXERS:
        key = E.mul(E.bitwise_xor(key, E.shift_right(key, shift)), factor)
    key = E.bitwise_xor(key, E.shift_right(key, 31))
    counter = E.add(S.slice_axis(state, axis, 1, 2), E.bitwise_and(key, _LOW << 32))
    block = E.add(counter, place)
    left, right, key = E.bitwise_and(block, _LOW), E.shift_right(block, 32), E.bitwise_and(key, _LOW)
    for _ in range(ROUNDS):
        whole = E.mul(left, MULTIPLIER)
        left, right = E.bitwise_xor(E.bitwise_xor(E.shift_right(whole, 32), key), right), E.bitwise_and(whole, _LOW)
        key = E.bitwise_and(E.add(key, WEYL), _LOW)
    bits = left if dtype is uint32 else E.bitwise_or(E.shift_left(left, 32), right)
    return S.reshape(bits if dtype is uint64 else E.cast(bits, dtype=dtype), (*lead, *shape))


def _first_of_part(state: Node, whole: Shape, starts: Sequence[Node | None]) -> Node | None:
    """Return the place of a part's first element, None for 0."""
    first: Node | None = None
    for axis, start in enumerate(starts):
        if start is not None:
            moved = E.mul(E.cast(start, dtype=uint64), S.constant_like(product(whole[axis + 1 :]), state))
            first = moved if first is None else E.add(first, moved)
    return first


def state_of_part(state: Node, whole: Shape, shape: Shape, starts: Sequence[Node | None]) -> Node | None:
    """Return the state that draws just one part of a draw of shape `whole` from `state`.

    The part has the shape `shape` and begins at `starts`, which has an integer scalar for each
    axis, None for 0. Returns None where its elements do not lie together in row-major order.
    """
    front = next((a for a, d in enumerate(shape) if not is_one(d)), len(shape))
    if not same(tuple(shape[front + 1 :]), tuple(whole[front + 1 :])):
        return None
    first = _first_of_part(state, whole, starts)
    return state if first is None else _further(state, first)


def bits_of_part(state: Node, whole: Shape, shape: Shape, starts: Sequence[Node | None], dtype: DType) -> Node:
    """Return that part of the bits of shape `whole` that begins at `starts`, bit for bit.

    `state` is that of the whole, `shape` the shape of the part; `starts` has an integer scalar for
    each axis, None for 0. `dtype` is uint32 or uint64.
    """
    together = state_of_part(state, whole, shape, starts)
    if together is not None:
        return random_bits(together, shape=shape, dtype=dtype)
    first, places = _first_of_part(state, whole, starts), S.full(shape, 0, uint64)
    for axis, d in enumerate(shape):
        if not is_one(d):
            step = S.constant_like(product(whole[axis + 1 :]), state)
            places = E.add(places, E.mul(S.iota(shape=shape, axis=axis, dtype=uint64), step))
    places = places if first is None else E.add(places, first)
    return _bits(state, S.reshape(places, (product(shape),)), shape, dtype)


def _further(state: Node, count: Node) -> Node:
    axis = state.type.rank - 1
    counter = E.add(S.slice_axis(state, axis, 1, 2), count)
    return S.concat([S.slice_axis(state, axis, 0, 1), counter], axis)


def _factors(node: Node) -> tuple[Factor, ...]:
    rank, lead = node.type.rank, node.inputs[0].type.rank - 1
    sizes = {a: (("shape", a - lead),) for a in range(lead, rank)}
    return named(node, [range(lead)], [range(rank)], sizes=sizes)


def _part(whole: Node, inputs: Any, params: Any, starts: Any) -> Node:
    by_axis, lead = starts_by_axis(whole, starts), whole.inputs[0].type.rank - 1
    offsets = [by_axis.get(a) for a in range(lead, whole.type.rank)]
    return bits_of_part(inputs[0], whole.params["shape"], params["shape"], offsets, params["dtype"])


def _batch(size: DimLike, values: Sequence[Node], axes: Any, *, shape: Shape, dtype: DType) -> tuple[Node, int]:
    return random_bits(S.move_axis(values[0], axes[0], 0), shape=shape, dtype=dtype), 0


_STATES = (
    np.array([5, 0], np.uint64),
    np.array([2**64 - 3, 2**64 - 2], np.uint64),
    np.array([[1, 2], [3, 2**33]], np.uint64),
)

random_bits: Primitive = register(
    Primitive(
        "random_bits",
        _infer,
        _reference,
        lambda ct, out, state, **_: (None,),
        _batch,
        _expand,
        samples=tuple(
            Sample((state,), {"shape": shape, "dtype": d}, dtypes=("uint64",))
            for state, shape in zip((*_STATES, _STATES[0]), ((2, 3), (5,), (4,), ()))
            for d in (uint32, uint64)
        )
        + (Sample((_STATES[0],), {"shape": (0, 2), "dtype": uint32}, dtypes=("uint64",)),),
        dtypes=("uint64",),
        factors=_factors,
        part=_part,
        doc="Uniform bits from a uint64[2] state by Philox2x32-10, one block for each element.",
    )
)


def advance(state: Node, n: DimLike | Node) -> Node:
    """Return the state after drawing `n` elements."""
    count = n if isinstance(n, Node) else constant(n, uint64)
    step = S.reshape(E.cast(count, dtype=uint64) if count.dtype is not uint64 else count, (1,))
    return _further(state, step)


# How many random bits each type's unit interval takes: its significand, so that conversion is exact
# and never 1.
_PRECISION = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _unit(state: Node, shape: Shape, dtype: DType) -> Node:
    """Return multiples of 2**-precision in [0, 1)."""
    if dtype.name not in _PRECISION:
        raise TypeError(f"uniform and normal draw {', '.join(_PRECISION)}, not {dtype.name}; use randint for integers")
    return _unit_of(random_bits(state, shape=tuple(shape), dtype=uint64 if dtype is float64 else uint32), dtype)


def _unit_of(bits: Node, dtype: DType) -> Node:
    precision = _PRECISION[dtype.name]
    return E.mul(E.cast(E.shift_right(bits, bits.dtype.bits - precision), dtype=dtype), 2.0**-precision)


def uniform(state: Node, shape: Shape, dtype: DType = float32, low: Bound = 0.0, high: Bound = 1.0) -> Node:
    """Return numbers distributed uniformly over [low, high).

    `state` is a generator's state (uint64[2]), `shape` the shape of the result and `dtype` its
    element type. `low` and `high` are numbers, or tensors that broadcast to `shape`. With numbers
    as bounds `high` itself never occurs; with tensors it may, by rounding.
    """
    unit = _unit(state, shape, dtype)
    if isinstance(low, Node) or isinstance(high, Node):
        low = low if isinstance(low, Node) else constant(low, dtype)
        return E.add(E.mul(unit, E.sub(high, low)), low)
    if (low, high) == (0.0, 1.0):
        return unit
    if not low < high:
        raise ValueError(f"uniform: low {low} must be below high {high}")
    below = float(np.nextafter(dtype.numpy.type(high), dtype.numpy.type(low)))
    return E.minimum(E.add(E.mul(unit, high - low), low), below)


def normal(state: Node, shape: Shape, dtype: DType = float32, mean: Bound = 0.0, std: Bound = 1.0) -> Node:
    """Return normally distributed numbers, all finite.

    `state` is a generator's state (uint64[2]), `shape` the shape of the result and `dtype` its
    element type. `mean` and `std` are numbers, or tensors that broadcast to `shape`. 16- and 32-bit
    floats come from the two halves of a block by the transform of Box and Muller (1958), up to 6.8
    standard deviations; float64 from 53 bits by the inverse of erf, up to 8.2.
    """
    if dtype is float64:
        bits = E.shift_right(random_bits(state, shape=tuple(shape), dtype=uint64), 12)
        centre = E.sub(E.mul(E.cast(bits, dtype=float64), 2.0**-51), 1.0 - 2.0**-52)
        drawn = E.mul(E.erfinv(centre), math.sqrt(2.0))
    elif dtype.name in _PRECISION:
        both = random_bits(state, shape=tuple(shape), dtype=uint64)
        radius = E.add(E.mul(E.cast(E.shift_right(both, 32), dtype=float32), 2.0**-32), 2.0**-33)
        angle = E.mul(E.cast(E.shift_right(E.bitwise_and(both, _LOW), 8), dtype=float32), 2 * math.pi * 2.0**-24)
        drawn = E.mul(E.sqrt(E.mul(E.log(E.minimum(radius, 1.0)), -2.0)), E.cos(angle))
        drawn = drawn if dtype is float32 else E.cast(drawn, dtype=dtype)
    else:
        raise TypeError(f"normal draws {', '.join(_PRECISION)}, not {dtype.name}")
    if isinstance(std, Node) or std != 1.0:
        drawn = E.mul(drawn, std)
    if isinstance(mean, Node) or mean != 0.0:
        drawn = E.add(drawn, mean)
    return drawn


def randint(state: Node, shape: Shape, low: int, high: int, dtype: DType = int32) -> Node:
    """Return integers distributed uniformly over low .. high - 1.

    `state` is a generator's state (uint64[2]), `shape` the shape of the result and `dtype` its
    element type. Each is made of 64 bits, so the probabilities differ by less than (high - low) /
    2**64.
    """
    limits = np.iinfo(dtype.numpy) if dtype.is_integer else None
    if limits is None:
        raise TypeError(f"randint draws integers, not {dtype.name}")
    if not limits.min <= low < high <= limits.max + 1:
        raise ValueError(f"randint: [{low}, {high}) must hold a value and lie within {dtype.name}")
    count, bits = high - low, random_bits(state, shape=tuple(shape), dtype=uint64)
    if count <= 2**32:
        # The upper half of the 96-bit product bits * count, without a division.
        carried = E.shift_right(E.mul(E.bitwise_and(bits, _LOW), count), 32)
        chosen = E.shift_right(E.add(E.mul(E.shift_right(bits, 32), count), carried), 32)
    else:
        chosen = bits if count == 2**64 else E.mod(bits, count)
    # Modular arithmetic makes the shift by a negative `low` right in every type.
    return E.cast(E.add(chosen, low % 2**64) if low else chosen, dtype=dtype)


def bernoulli(state: Node, shape: Shape, probability: Bound = 0.5) -> Node:
    """Return booleans that are true with a given probability.

    `probability` is a number, or a floating tensor that broadcasts to `shape`.
    """
    if not isinstance(probability, Node):
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"bernoulli: the probability {probability} is not in [0, 1]")
        return E.lt(_unit(state, shape, float32), probability)
    return E.lt(_unit(state, shape, probability.dtype), probability)


def bernoulli_of_part(
    state: Node, whole: Shape, shape: Shape, starts: Sequence[Node | None], probability: float
) -> Node:
    """Return that part of `bernoulli(state, whole, probability)` that begins at `starts`.

    `shape` is the shape of the part; `starts` has an integer scalar for each axis, None for 0.
    """
    return E.lt(_unit_of(bits_of_part(state, whole, shape, starts, uint32), float32), probability)


def permutation(state: Node, n: DimLike) -> Node:
    """Return the int32 numbers 0 .. n - 1 in random order: that of n random 64-bit numbers."""
    return sort_and_scan.sort.outputs(random_bits(state, shape=(n,), dtype=uint64), axis=0, descending=False)[1]
