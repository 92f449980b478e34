"""The operator language: arrays and ranges.

Outside of an operator these are ordinary functions that only describe; the tracer gives them their
meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = [
    "Made",
    "Range",
    "allocate",
    "empty",
    "full",
    "grid",
    "parallel",
    "reduce",
    "serial",
    "unroll",
    "vectorize",
    "zeros",
]


@dataclass(frozen=True)
class Range:
    """The iterations of one loop or several, outermost first, from `starts` up to `stops`."""

    starts: tuple[DimLike, ...]
    stops: tuple[DimLike, ...]
    kind: str
    step: int = 1
    single: bool = False


@dataclass(frozen=True)
class Made:
    """An array that a program asks for."""

    shape: tuple[DimLike, ...]
    dtype: DType | None
    fill: float | None


def _range(kind: str, bounds: Sequence[Any]) -> Range:
    if not 1 <= len(bounds) <= 3:
        raise TypeError(f"{kind} takes a stop, a start and a stop, or these and a step, not {len(bounds)} arguments")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else 1
    if type(step) is not int or step == 0:
        raise TypeError(f"{kind}: the step must be an int other than 0, known when the operator is compiled")
    return Range((start,), (stop,), kind, step, True)


def serial(*bounds: Any) -> Range:
    """Return a range whose iterations run in their order, as Python's ``range`` does."""
    return _range("serial", bounds)


def parallel(*bounds: Any) -> Range:
    """Return a range whose iterations do not depend on each other; threads share them."""
    return _range("parallel", bounds)


def vectorize(*bounds: Any) -> Range:
    """Return a range whose iterations do not depend on each other, as lanes of vectors."""
    return _range("vectorize", bounds)


def reduce(*bounds: Any) -> Range:
    """Return a range over which statements accumulate, in any order."""
    return _range("reduce", bounds)


def unroll(*bounds: Any) -> Range:
    """Return a range, known when the operator is compiled, whose iterations are written out."""
    return _range("unroll", bounds)


def grid(*extents: Any) -> Range:
    """Return the loops over several extents, or over a shape, outermost first."""
    if len(extents) == 1 and isinstance(extents[0], (tuple, list)):
        stops = tuple(extents[0])
    else:
        stops = extents
    return Range((0,) * len(stops), tuple(stops), "serial")


def _shape(shape: Any) -> tuple[DimLike, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _dtype(dtype: Any) -> DType | None:
    return None if dtype is None else D.from_any(dtype)


def zeros(shape: Any, dtype: Any = None) -> Made:
    """Make an array of zeros; its element type is that of the first floating input by default."""
    return Made(_shape(shape), _dtype(dtype), 0.0)


def full(shape: Any, value: float, dtype: Any = None) -> Made:
    """Make an array that is filled with a number."""
    return Made(_shape(shape), _dtype(dtype), value)


def empty(shape: Any, dtype: Any = None) -> Made:
    """Make an array of which every element is written before it is read."""
    return Made(_shape(shape), _dtype(dtype), None)


def allocate(shape: Any, dtype: Any = None, scope: str = "local") -> Made:
    """Make an array of zeros, as `zeros` does; `scope` says where other compilers place it."""
    if scope not in ("local", "global"):
        raise ValueError(f"allocate: scope must be 'local' or 'global', not {scope!r}")
    return zeros(shape, dtype)
