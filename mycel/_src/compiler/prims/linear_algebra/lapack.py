"""Direct calls of LAPACK's decompositions, for real matrices.

NumPy's functions are made for stacks of small matrices; large ones they copy and pad. A matrix
stored by rows is its transpose stored by columns, so LAPACK is given that and copies nothing.
Decompositions run on one thread: OpenBLAS keeps its threads spinning after each call, and they take
the cores from those that compute what follows.

Each function gives None where a caller must turn to NumPy: for small or complex matrices, and where
LAPACK reports a failure.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.system import locks

__all__ = ["alone", "cholesky", "eigh", "singular_values", "solve_triangle"]

Matrix = np.ndarray[Any, Any]
LEAST = 48  # rows from which the way through Python is short against the work
# What of NumPy and SciPy is linked with the library that they call.
_CALLERS = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
_PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


class _Threads(NamedTuple):
    """The functions that tell and set how many threads an OpenBLAS has, and the second's place."""

    place: int | None
    told: Callable[[], int]
    set_to: Callable[[int], None]


def _libraries() -> list[_Threads]:
    """Return each OpenBLAS that NumPy calls, and SciPy once it has been imported.

    Only what they are linked with is asked, never what else lies beside them: other packages bring
    libraries of that name, which may need a loader of their own or be damaged.
    """
    modules = [sys.modules[name] for name in _CALLERS if name in sys.modules]
    found = (threads for module in modules for threads in _threads_of(module))
    return list({threads.place: threads for threads in found}.values())


@functools.cache
def _threads_of(module: ModuleType) -> tuple[_Threads, ...]:
    """Return the OpenBLAS that a module of machine code is linked with, if it is one."""
    found = []
    for library in _linked(module):
        for end in ("", "64_"):
            for start in ("scipy_openblas", "openblas"):
                told, set_to = (getattr(library, f"{start}_{verb}_num_threads{end}", None) for verb in ("get", "set"))
                if told is not None and set_to is not None:
                    found.append(_Threads(ctypes.cast(set_to, ctypes.c_void_p).value, told, set_to))
    return tuple(found)


def _linked(module: ModuleType) -> Iterator[ctypes.CDLL]:
    """Yield what answers for the libraries of a module that is loaded already."""
    file = getattr(module, "__file__", None)
    if file is None:  # part of the interpreter
        return
    if os.name != "nt":
        # A name is looked up in the module and in the libraries that it was linked with.
        yield ctypes.CDLL(file)
        return
    package = module.__name__.partition(".")[0]
    folder = Path(sys.modules[package].__file__ or "").parents[1] / f"{package}.libs"
    for path in sorted(folder.glob("*openblas*.dll")):
        with contextlib.suppress(OSError):  # left from another version: what is in use was loaded
            yield ctypes.CDLL(str(path))


_lock = locks.lock()
_inside = 0
_before: dict[int | None, tuple[_Threads, int]] = {}


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keep OpenBLAS on the thread that calls it.

    The first to enter notes how many threads each had, and the last to leave gives them back. Those
    that were loaded meanwhile are noted by the next to enter.
    """
    global _inside
    with _lock:
        _inside += 1
        for threads in _libraries():
            if threads.place not in _before:
                _before[threads.place] = threads, threads.told()
                threads.set_to(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for threads, count in _before.values():
                    threads.set_to(count)
                _before.clear()


def _routine(a: Matrix, name: str, package: str = "lapack") -> Callable[..., Any] | None:
    """Return the routine for the type of `a`; None for what is left to NumPy."""
    if a.dtype not in _PREFIX or min(a.shape[-2:]) < LEAST:
        return None
    from scipy.linalg import blas, lapack

    found: Callable[..., Any] = getattr(lapack if package == "lapack" else blas, _PREFIX[a.dtype] + name)
    return found


def _each(a: Matrix, compute: Callable[..., Any], *others: Matrix) -> list[Any] | None:
    """Return the results for each matrix of a stack; None if one failed."""
    results = []
    for matrices in zip(*(np.ascontiguousarray(x).reshape(-1, *x.shape[-2:]) for x in (a, *others))):
        result = compute(*matrices)
        if result is None:
            return None
        results.append(result)
    return results


def _stack(a: Matrix, results: list[Matrix]) -> Matrix:
    found: Matrix = np.stack(results).reshape(*a.shape[:-2], *results[0].shape)
    return found


def cholesky(a: Matrix) -> Matrix | None:
    """Return the lower factors of positive matrices."""
    factor = _routine(a, "potrf")
    if factor is None:
        return None

    def one(m: Matrix) -> Matrix:
        found, failed = factor(m.T, lower=0, clean=1)
        factors: Matrix = found.T
        if failed:
            factors[...] = np.nan
        return factors

    with alone():
        results = _each(a, one)
    return None if not results else _stack(a, results)


def solve_triangle(a: Matrix, b: Matrix, lower: bool, transposed: bool, unit: bool) -> Matrix | None:
    """Return the solutions x of op(a) x = b for triangular matrices; NaN where one is singular.

    `lower` says which triangle of `a` is read, op transposes where `transposed`, and with `unit`
    the diagonal counts as ones.
    """
    solve = _routine(a, "trsm", "blas")
    if solve is None or not b.size:
        return None

    def one(p: Matrix, q: Matrix) -> Matrix:
        if not unit and np.any(np.diagonal(p) == 0):
            return np.full_like(q, np.nan)
        found: Matrix = solve(1.0, p.T, q.T, side=1, lower=not lower, trans_a=transposed, diag=unit).T
        return found

    with alone():
        results = _each(a, one, b)
    return None if not results else _stack(b, results)


def eigh(a: Matrix, lower: bool) -> tuple[Matrix, Matrix] | None:
    """Return the eigenvalues and the eigenvectors, as columns, of symmetric matrices."""
    decompose = _routine(a, "syevd")
    if decompose is None:
        return None

    def one(m: Matrix) -> tuple[Matrix, Matrix] | None:
        values, vectors, failed = decompose(m.T, lower=not lower)
        return None if failed else (values, vectors)

    with alone():
        results = _each(a, one)
    if not results:
        return None
    values, vectors = ([r[k] for r in results] for k in range(2))
    return np.stack(values).reshape(a.shape[:-1]), _stack(a, vectors)


def singular_values(a: Matrix) -> Matrix | None:
    """Return the singular values of matrices, falling."""
    decompose = _routine(a, "gesdd")
    if decompose is None:
        return None

    def one(m: Matrix) -> Matrix | None:
        _, values, _, failed = decompose(m.T, compute_uv=0)
        return None if failed else values

    with alone():
        results = _each(a, one)
    return None if not results else np.stack(results).reshape(*a.shape[:-2], -1)
