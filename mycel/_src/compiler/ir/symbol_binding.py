"""Finds the sizes of symbols by matching types with symbolic dimensions to actual types.

Each symbol is read from the first dimension that is linear in it alone, ``factor * symbol +
offset``; every other dimension is then a check. So a binding also says whether the types fit:
ranks, element types, fixed sizes, and the bounds of the symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mycel._src.compiler.ir.dim_values import evaluate, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.types import TensorType

__all__ = ["Binder"]


class Binder:
    """Types with symbolic dimensions, matched to actual types.

    Calling it with actual types gives the sizes by symbol, or None where they do not fit.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.dims import symbol
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> n = symbol("n")
    >>> bind = Binder([tensor_type((n, 3), float32), tensor_type((n + 1,), float32)])
    >>> bind([tensor_type((4, 3), float32), tensor_type((5,), float32)])
    {'n': 4}
    """

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = tuple(types)
        self.reads: dict[str, tuple[int, int, int, int]] = {}
        self.checks: list[tuple[int, int, DimLike]] = []
        self.atoms = symbols_in(*[t.shape for t in types if isinstance(t, TensorType)])
        for i, t in enumerate(types):
            for axis, d in enumerate(t.shape if isinstance(t, TensorType) else ()):
                linear = _linear(d)
                if linear is not None and linear[0] not in self.reads:
                    self.reads[linear[0]] = (i, axis, *linear[1:])
                else:
                    self.checks.append((i, axis, d))

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols, in the order in which sizes are given."""
        return tuple(self.reads)

    def __call__(self, actual: Sequence[Any]) -> dict[str, int] | None:
        if len(actual) != len(self.types):
            return None
        for mine, theirs in zip(self.types, actual):
            if mine is theirs:
                continue
            if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
                return None
            if mine.dtype is not theirs.dtype or mine.rank != theirs.rank:
                return None
        sizes: dict[str, int] = {}
        for name, (i, axis, factor, offset) in self.reads.items():
            rest = actual[i].shape[axis] - offset
            if rest % factor:
                return None
            size = sizes[name] = rest // factor
            atom = self.atoms[name]
            if not atom.low <= size <= atom.high:
                return None
        return sizes if self.fits(actual, sizes) else None

    def fits(self, actual: Sequence[Any], sizes: Mapping[str, int]) -> bool:
        """Return whether the dimensions that bind no symbol have the sizes that they should."""
        return all(actual[i].shape[axis] == evaluate(d, sizes) for i, axis, d in self.checks)


def _linear(dim: DimLike) -> tuple[str, int, int] | None:
    """Return (symbol, factor, offset) of a dimension that is linear in one symbol."""
    if not isinstance(dim, Dim):
        return None
    offset, found = 0, None
    for mono, c in dim.terms.items():
        if not mono:
            offset = c
        elif found is None and len(mono) == 1 and mono[0][1] == 1 and mono[0][0].operator == "symbol":
            found = (mono[0][0].name, c)
        else:
            return None
    return None if found is None else (*found, offset)
