"""Loop distribution (fission): ``for i: a; b`` becomes ``for i: a`` and ``for i: b``.

That changes nothing where the iterations of the loop do not meet, once arrays that are private to
an iteration have an element for each. Statements then are often nests without an order, each of
which vector code, or an operation that is known, can compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mycel._src.compiler.loops.array_expansion import spread
from mycel._src.compiler.loops.legality import is_parallel
from mycel._src.compiler.loops.programs import For, Program, Statement, statements
from mycel._src.compiler.loops.scatter_to_gather import split
from mycel._src.foundation.errors import Unsupported

__all__ = ["distributed"]


def distributed(program: Program) -> Program:
    """Return a program whose parallel loops have one statement each, where that can be."""
    body: list[Statement] = []
    arrays = list(program.locals)
    for s in program.body:
        if not (isinstance(s, For) and _has_several(s)):
            body.append(s)
            continue
        try:
            (bare,), found = spread((s,), lambda a: True, lambda loops: loops, program.name)
        except Unsupported:
            body.append(s)
            continue
        parts = _parts(bare)
        if len(parts) == 1:
            body.append(s)
        else:
            body += parts
            arrays += found
    return replace(program, body=split(body), locals=tuple(arrays))


def _has_several(s: For) -> bool:
    return any(isinstance(x, For) and len(x.body) > 1 for x in statements((s,)))


def _parts(s: Statement) -> list[Statement]:
    """Return a statement with a loop of its own for each statement inside of parallel loops."""
    if not isinstance(s, For):
        return [s]
    inner = [part for x in s.body for part in _parts(x)]
    if len(inner) == 1 or s.private or not is_parallel(s):
        return [replace(s, body=tuple(_joined(s.body, inner)))]
    return [replace(s, body=(part,)) for part in inner]


def _joined(body: Sequence[Statement], inner: list[Statement]) -> Sequence[Statement]:
    """Return the statements of a loop that stays as it is."""
    return body if len(body) > 1 or len(inner) != 1 else inner
