"""Counts how often each operation of a statement runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import Dim, DimLike, maximum
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.programs import COMBINES, Array, For, Set, Statement
from mycel._src.foundation.dtype import DType

__all__ = ["Count", "counted"]

# A primitive, its element type and those of its operands, and how often it runs.
Count = tuple[str, DType, tuple[DType, ...], DimLike]


def counted(s: Statement, arrays: Mapping[str, Array], around: Sequence[For] = ()) -> list[Count]:
    """Return how often each element-wise operation runs in a statement; `arrays` has all arrays.

    It runs once, in the middle of the loops `around`. Loops whose length depends on others are as
    long as in the middle of these, and conditions hold.
    """
    found: dict[tuple[str, DType, tuple[DType, ...]], DimLike] = {}
    middle: dict[str, DimLike] = {}
    for x in around:
        middle[x.index] = (substitute(x.start, middle) + substitute(x.stop, middle)) // 2
    _enter((s,), 1, middle, arrays, found)
    return [(*key, times) for key, times in found.items()]


def _enter(
    body: Sequence[Statement],
    times: DimLike,
    middle: dict[str, DimLike],
    arrays: Mapping[str, Array],
    found: dict[tuple[str, DType, tuple[DType, ...]], DimLike],
) -> None:
    """Add what the statements `body` do `times` times.

    `middle` has an index in the middle of each loop around, `arrays` are all arrays, and `found` is
    what is added to.
    """
    for s in body:
        if isinstance(s, For):
            start, stop = substitute(s.start, middle), substitute(s.stop, middle)
            count = stop - start
            if isinstance(count, Dim):
                count = maximum(count, 0)
            inside = {**middle, s.index: (start + stop) // 2}
            _enter(s.body, times * max(count, 0) if type(count) is int else times * count, inside, arrays, found)
        elif isinstance(s, Set):
            for f in _operations(s.value):
                _add(found, (f.data, f.dtype, tuple([a.dtype for a in f.args])), times)
            if s.mode != "set":
                kind = arrays[s.array].dtype
                _add(found, (COMBINES[s.mode], kind, (kind, kind)), times)
        else:
            for f in _operations(s.condition):
                _add(found, (f.data, f.dtype, tuple([a.dtype for a in f.args])), times)
            _enter(s.body or s.other, times, middle, arrays, found)


def _add(
    found: dict[tuple[str, DType, tuple[DType, ...]], DimLike], key: tuple[str, DType, tuple[DType, ...]], n: DimLike
) -> None:
    found[key] = found.get(key, 0) + n


def _operations(f: Formula) -> list[Formula]:
    """Return the operations in a formula, each once."""
    seen: dict[Formula, None] = {}
    stack = [f]
    while stack:
        top = stack.pop()
        if top not in seen:
            seen[top] = None
            stack += [*top.args, *[t for t in top.place if isinstance(t, Formula)]]
    return [x for x in seen if x.kind == "op"]
