"""Random programs that must mean the same everywhere.

`source(seed)` writes a program: a function of two scalars, a vector and a whole number, made of
nested branches, loops, early returns, local functions and containers, about half of them decided by
tensors. `check_seed` runs it in plain Python over `Watched` arrays of float64, which is the oracle
of values and, by central differences, of gradients; eagerly; compiled; and under the eager and the
compiled gradient. A `Watched` array notes how near its comparisons come to their thresholds, so
that inputs at which differences would step over a discontinuity are left out. `shrink` cuts a
failing program down.

    python -m tests.language.generate FIRST COUNT

checks many seeds and prints the programs that fail, cut down.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import logging
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mycel as ms
from mycel._src.foundation.pytree import flatten
from tests.language.harness import F, differences, same
from tests.language.program_writer import source

__all__ = ["Watched", "check_seed", "define", "shrink", "source"]

NEAR = 1e-4
LARGE = 1e3
MOST_STEPS = 4000


class Decisions:
    """What the comparisons of a run of the oracle came to."""

    def __init__(self) -> None:
        self.nearest, self.largest, self.steps = np.inf, 0.0, 0


seen = Decisions()


class Watched(np.ndarray):
    """An array that stays one at every operation and notes how near comparisons come to deciding
    otherwise.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(v) if isinstance(v, np.ndarray) else v for v in inputs]
        kwargs.pop("out", None)
        seen.steps += 1
        if seen.steps > MOST_STEPS:
            raise OverflowError("the program is too long")
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*plain, **kwargs)
        name = ufunc.__name__
        if name in ("less", "greater", "less_equal", "greater_equal", "equal", "not_equal", "maximum", "minimum"):
            if method == "__call__" and any(np.asarray(p).dtype.kind == "f" for p in plain):
                near(np.subtract(*plain, dtype=float))
        elif name in ("absolute", "sign"):
            near(plain[0])
        elif np.asarray(result).dtype.kind == "f":
            top = np.max(np.abs(result), initial=0)
            seen.largest = max(seen.largest, float(top) if np.isfinite(top) else np.inf)
        return watched(result)

    def __array_function__(self, fn: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        return watched(fn(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __getitem__(self, index: Any) -> Any:
        return watched(np.asarray(self)[bare(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        np.asarray(self)[bare(index)] = bare(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.dtype.kind == "f":
            near(np.asarray(self))
        return bool(np.asarray(self))

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other


def near(distance: Any) -> None:
    seen.nearest = min(seen.nearest, float(np.min(np.abs(distance), initial=np.inf)))


def watched(value: Any) -> Any:
    return np.array(value).view(Watched) if isinstance(value, (np.ndarray, np.generic)) else value


def bare(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(bare, value))
    return np.asarray(value) if isinstance(value, Watched) else value


_numbers = itertools.count()


def bool_(value: Any) -> Any:
    """A truth value as it is, so that it can be kept in a variable of one type."""
    return value != 0


def _last_of_two(x: int, y: int) -> int:
    a, a = (x, y)
    return a


# Some releases of CPython 3.11, 3.11.2 among them, keep the first of two values that are assigned
# to one name at once.
KEEPS_THE_LAST = _last_of_two(1, 2) == 2


def _distinct(text: str) -> str:
    """Return a program in which no name is assigned to twice at once: the last one counts."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names = [e for e in target.elts if isinstance(e, ast.Name)] if isinstance(target, ast.Tuple) else []
            for k, name in enumerate(names):
                if any(later.id == name.id for later in names[k + 1 :]):
                    name.id = f"unused_{k}"
    return ast.unparse(tree)


def define(text: str) -> Callable[..., Any]:
    """The function `program` of a source, known to `linecache` as the sources of a notebook are."""
    text = text if KEEPS_THE_LAST else _distinct(text)
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"F": F, "bool_": bool_, "__name__": "generated"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["program"]


INPUTS = (
    (0.7, -0.4, (0.3, -0.9, 1.1), 3),
    (-0.35, 1.2, (-1.3, 0.8, 0.45), 1),
    (0.15, 0.55, (0.9, 0.2, -0.6), 4),
    (-1.1, -0.8, (-0.2, -0.5, 0.6), 0),
)


def weighted(values: Any) -> Any:
    """A number that depends on every float of a result."""
    result: Any = None
    for k, leaf in enumerate(flatten(values)[0]):
        if isinstance(leaf, ms.Tensor):
            part = ms.ops.sum(leaf) * (1 + 0.37 * k) if leaf.dtype.is_differentiable else None
        else:
            array = np.asarray(leaf)
            part = float(array.sum()) * (1 + 0.37 * k) if array.dtype.kind == "f" else None
        if part is not None:
            result = part if result is None else result + part
    return result


class Case:
    """Inputs with what the oracle says of them."""

    def __init__(self, fn: Any, given: Any) -> None:
        self.arrays = [watched(np.array(g, np.float64 if i < 3 else np.int64)) for i, g in enumerate(given)]
        self.usable = False
        seen.__init__()
        try:
            self.expected = fn(*[a.copy() for a in self.arrays])
            if seen.nearest < NEAR or seen.largest > LARGE or _poor(self.expected):
                return
            function = lambda *a: float(weighted(fn(*[watched(x) for x in a])))
            plain = [np.asarray(a) for a in self.arrays]
            seen.steps = -(10**9)
            self.gradients = [differences(function, plain, k) for k in range(3)]
        except OverflowError:
            return
        self.usable = all(np.abs(g).max() < LARGE for g in self.gradients)

    def tensors(self) -> list[Any]:
        return [ms.Tensor(np.asarray(a)) for a in self.arrays]


def _poor(values: Any) -> bool:
    return any(not np.all(np.isfinite(np.asarray(v, dtype=float))) for v in flatten(values)[0])


def check_source(text: str, gradients: bool = True, inputs: Any = INPUTS) -> int:
    """Assert that a program means the same everywhere.

    The number of inputs for which it was checked.
    """
    fn = define(text)
    cases = [c for c in (Case(fn, given) for given in inputs) if c.usable]
    jitted = ms.jit(fn)

    def value(*args: Any) -> Any:
        return weighted(fn(*args))

    backward = ms.jit(ms.grad(value, (0, 1, 2)))
    for c in cases:
        same(fn(*c.tensors()), _plain(c.expected), 1e-6, "eager")
        same(jitted(*c.tensors()), _plain(c.expected), 1e-6, "compiled")
    if cases:
        account = ms.explain(jitted, *cases[0].tensors())
        assert not account.breaks, f"a break: {account.breaks[0]}"
    if gradients:
        for c in cases:
            for what, run in (("the eager gradient", ms.grad(value, (0, 1, 2))), ("the compiled gradient", backward)):
                for k, (found, wanted) in enumerate(zip(run(*c.tensors()), c.gradients)):
                    same(found, wanted, 1e-4, f"{what} by argument {k}")
    return len(cases)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v) for v in value)
    return np.asarray(value)


def check_seed(seed: int) -> int:
    """Check the program of a seed; the number of inputs for which it was checked."""
    return check_source(source(seed))


# Cutting down.


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 60.0) -> str:
    """A shorter program that fails too, by taking away statements and putting parts in place of
    wholes.
    """
    end = time.perf_counter() + seconds
    for change in (_without_statement, _with_body, _with_part, _without_statement):
        place = 0
        while time.perf_counter() < end:
            tree = ast.parse(text)
            made = change(tree, place)
            if made is None:
                break
            candidate = ast.unparse(ast.fix_missing_locations(tree)) + "\n" if made else text
            if made and candidate != text and fails(candidate):
                text = candidate
            else:
                place += 1
    return text


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(n, f, None) for n in ast.walk(tree) for f in ("body", "orelse", "finalbody")]
    return [b for b in found if isinstance(b, list) and b]


def _without_statement(tree: ast.AST, place: int) -> bool | None:
    """Take away the statement of this number, from the outside in; None where there is none."""
    places = [(b, k) for b in _bodies(tree)[1:] for k in range(len(b))]
    if place >= len(places):
        return None
    body, k = places[place]
    if len(body) == 1:
        body[k] = ast.Pass()
    else:
        del body[k]
    return True


def _with_body(tree: ast.AST, place: int) -> bool | None:
    """Put the body of a compound statement in its place."""
    places = [
        (b, k) for b in _bodies(tree)[1:] for k in range(len(b)) if isinstance(b[k], (ast.If, ast.For, ast.While))
    ]
    places = [(b, k, f) for b, k in places for f in ("body", "orelse")]
    if place >= len(places):
        return None
    body, k, name = places[place]
    inner = getattr(body[k], name)
    body[k : k + 1] = inner or [ast.Pass()]
    return True


def _with_part(tree: ast.AST, place: int) -> bool | None:
    """Put a part of an expression in its place."""
    places = [
        (node, field, child)
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        if isinstance(value, ast.expr) and not isinstance(value, (ast.Name, ast.Constant))
        for child in ast.iter_child_nodes(value)
        if isinstance(child, ast.expr) and not isinstance(child, ast.Attribute)
    ]
    if place >= len(places):
        return None
    node, field, child = places[place]
    setattr(node, field, child)
    return True


def fault(text: str) -> str:
    """How a program fails; empty where it does not, or fails in plain Python too."""
    try:
        fn = define(text)
        for given in INPUTS:
            Case(fn, given)
    except Exception:
        return ""
    try:
        check_source(text)
    except Exception as error:
        return type(error).__name__ + re.sub(r"[^a-z ]|<program", "", str(error))[:60]
    return ""


def _fails_like(kind: str) -> Callable[[str], bool]:
    return lambda text: kind != "" and fault(text) == kind


def main(first: int, count: int) -> None:
    warnings.simplefilter("error")
    used = failed = 0
    worst: list[tuple[float, int]] = []
    logging.disable(logging.WARNING)
    for seed in range(first, first + count):
        begin = time.perf_counter()
        try:
            used += check_seed(seed) > 0
        except Exception as error:
            failed += 1
            print(f"--- seed {seed}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc(limit=-3, file=sys.stdout)
            print(shrink(source(seed), _fails_like(fault(source(seed)))), flush=True)
        worst.append((time.perf_counter() - begin, seed))
        if len(worst) % 100 == 0:
            print(
                f"{len(worst)} programs, {used} with usable inputs, {failed} failed; slowest {max(worst)}", flush=True
            )
    worst.sort(reverse=True)
    print(f"{count} programs, {used} with usable inputs, {failed} failed; slowest {worst[:3]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
