"""Loop versioning: versions with full length and with a remainder, and unrolling of marked loops.

A loop that is to be unrolled, or to fill vectors, ends early at the last block of a loop that was
split. `finished` puts a test in front, at the outermost place where it can be decided: where all
such loops inside have their full length they have it by number, and else they stay as they are.
Loops to be unrolled whose length is a number are then written out, each iteration with private
arrays of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import step_of
from mycel._src.compiler.loops.dependences import plain
from mycel._src.compiler.loops.inequalities import demands
from mycel._src.compiler.loops.loop_transformations import ceiling, with_names
from mycel._src.compiler.loops.programs import For, If, Program, Set, Statement, mapped, statements
from mycel._src.compiler.loops.scatter_to_gather import both
from mycel._src.foundation import dtype as D

__all__ = ["MOST_COPIES", "finished"]

# The most copies of a body that are written out.
MOST_COPIES = 64


def finished(program: Program) -> Program:
    """Return a program whose marked loops are as long as they can be, and unrolled."""
    return replace(program, body=_unrolled(_versions(plain(program.body))))


def _full_length(loop: For) -> tuple[int, list[DimLike]] | None:
    """Return the length that a loop has at most, and what is not negative where it has it.

    None where it has no such length, or has it in any case.
    """
    if type(loop.start) is type(loop.stop) is int:
        return None
    length = ceiling(loop.stop, [For(n, 0, 0, ()) for n in symbols_in(loop.stop) if "." not in n])
    if type(length) is not int or length < 1:
        return None
    ends = [d for end in (-loop.start, loop.stop - length) for d in demands(end) if type(d) is not int or d < 0]
    return length, ends


def _versions(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements with tests whether marked loops have their full length."""
    tests = _tests(body)
    own = {x.index for x in statements(body) if isinstance(x, For)}
    if not body:
        return ()
    if tests and not any(own & set(symbols_in(d)) for d in tests):
        conditions = [
            formulas.operation("ge", D.bool_, formulas.index(d), formulas.constant(0, D.int64)) for d in tests
        ]
        return (If(both(conditions), tuple([_fixed(s, tests) for s in body]), tuple(body)),)
    if len(body) > 1:
        return tuple([x for s in body for x in _versions((s,))])
    (s,) = body
    if not tests or isinstance(s, Set):
        return (s,)
    if isinstance(s, For):
        return (_with_own(replace(s, body=_versions(s.body))),)
    return (replace(s, body=_versions(s.body), other=_versions(s.other)),)


def _tests(body: Sequence[Statement]) -> list[DimLike]:
    """Return what is not negative where all marked loops in statements have their full length."""
    marked = [x for x in statements(body) if isinstance(x, For) and x.mark in ("unroll", "vectorize")]
    lengths = {x.index: found for x in marked for found in [_full_length(x)] if found is not None}
    tests: dict[DimLike, None] = {}
    for _, ends in lengths.values():
        for d in ends:
            # For each iteration of the other marked loops, if these have their full length.
            for name, (length, _) in lengths.items():
                step = step_of(d, name)
                if type(step) is int and step:
                    d = substitute(d, {name: 0 if step > 0 else length - 1})
            tests.setdefault(d)
    return list(tests)


def _with_own(loop: For) -> For:
    """Return a loop both versions of whose body have private arrays of their own.

    So those of one can stay in registers, whatever the other does.
    """
    if len(loop.body) != 1 or not loop.private:
        return loop
    test = loop.body[0]
    if not isinstance(test, If) or any(
        r.data in {a.name for a in loop.private} for r in formulas.reads_of(test.condition)
    ):
        return loop
    parts = [
        (For(f"{loop.index}~", 0, 1, b, "serial", False, loop.private, loop.where),) for b in (test.body, test.other)
    ]
    return replace(loop, body=(replace(test, body=parts[0], other=parts[1]),), private=())


def _fixed(s: Statement, tests: Sequence[DimLike]) -> Statement:
    """Return a statement whose loops have their full length where `tests` say so."""
    if isinstance(s, Set):
        return s
    if isinstance(s, If):
        parts = [tuple([_fixed(x, tests) for x in part]) for part in (s.body, s.other)]
        return replace(s, body=parts[0], other=parts[1])
    found = _full_length(s)
    body = tuple([_fixed(x, tests) for x in s.body])
    if found is None or not s.mark and any(d not in tests for d in found[1]):
        return replace(s, body=body)
    return replace(s, start=0, stop=found[0], body=body)


def _unrolled(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements in which loops to be unrolled whose length is known are written out."""
    made: list[Statement] = []
    for s in body:
        if isinstance(s, Set):
            made.append(s)
        elif isinstance(s, If):
            made.append(replace(s, body=_unrolled(s.body), other=_unrolled(s.other)))
        else:
            s = replace(s, body=_unrolled(s.body))
            if s.mark == "unroll" and type(s.start) is type(s.stop) is int and s.stop - s.start <= MOST_COPIES:
                made += [x for k in range(s.start, s.stop) for x in _copy(s, k)]
            else:
                made.append(s)
    return tuple(made)


def _copy(loop: For, number: int) -> tuple[Statement, ...]:
    """Return the body of a loop in one iteration, in a block of its own if arrays are private."""
    values: dict[str, DimLike] = {loop.index: number}
    arrays = {a.name: f"{a.name}~{number}" for x in statements((loop,)) if isinstance(x, For) for a in x.private}
    renamed = with_names(loop, {}, arrays)
    body = mapped(renamed.body, lambda d: substitute(d, values))
    if not loop.private:
        return body
    return (For(f"{loop.index}~{number}", 0, 1, body, "serial", False, renamed.private, loop.where),)
