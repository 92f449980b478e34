"""Symbolic sizes in the user's code, as numbers, in loops, and in Python's own functions.

Integer arithmetic on sizes gives sizes. Operations whose results are no integers (a true division,
a square root, a product with a float) give a tensor that stands for a Python number and is computed
when the program runs. A comparison is decided by the size in the call being staged, and guarded;
but in the test of a `while` statement it gives a tensor, so that a loop up to a size is one loop
for all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.dimension_guards import current_decisions
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.shape import size_node
from mycel._src.foundation import dtype as D
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["FUNCTIONS", "SizeRange", "converted", "giving_up", "number_of", "open_test", "size_of", "use_stage"]


def number_of(stage: Stage, dim: Any, dtype: Any = D.int64) -> Tensor:
    """Return a size as a tensor that stands for a Python number."""
    if not isinstance(dim, Dim):
        return stage.literal(dim, dtype)
    node = stage.literals.get((dim, dtype))
    if node is None:
        node = stage.literals[dim, dtype] = size_node(dim, dtype)
        stage.scopes[0].own.add(node)
    return stage.mark_number(make_staged(node))


def use_stage(stage: Stage) -> None:
    """Let the decisions in force convert sizes to numbers in this stage."""
    decisions = current_decisions()
    if decisions is not None:
        decisions.as_number = lambda dim: number_of(stage, dim, D.float64)
        decisions.compare = None


@contextmanager
def in_test(stage: Stage) -> Iterator[None]:
    """Return a context manager within which comparisons of sizes give tensors."""
    decisions = current_decisions()
    if decisions is None or decisions.as_number is None:
        yield
        return
    before = decisions.compare
    decisions.compare = lambda difference: eager.apply(E.lt, number_of(stage, difference), stage.literal(0, D.int64))
    try:
        yield
    finally:
        decisions.compare = before


def open_test(test: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the test of a `while` statement as a function that compares sizes as tensors."""

    def run(f: Any) -> Any:
        with in_test(f.stage):
            return test(f)

    return run


@contextmanager
def giving_up() -> Iterator[Callable[[], None]]:
    """Return a context manager around an attempt that may be given up.

    It yields a function that forgets the guards that were made since.
    """
    decisions = current_decisions()
    count = len(decisions.guards) if decisions is not None else 0
    yield lambda: decisions.rewind(count) if decisions is not None else None


def size_of(value: Any) -> Any:
    """Return the length of a value, which for a tensor may be symbolic."""
    if isinstance(value, Tensor) and value.shape:
        return value.shape[0]
    if isinstance(value, SizeRange) and value.step == 1:
        return value.stop - value.start if value.start < value.stop else 0
    return len(value)


class SizeRange:
    """A ``range`` whose ends are sizes.

    If Python itself needs its items, the sizes are those of the call being staged.
    """

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, int(step)
        if self.step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def fixed(self) -> range:
        return range(int(self.start), int(self.stop), self.step)

    def __iter__(self) -> Iterator[int]:
        return iter(self.fixed())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.fixed())

    def __len__(self) -> int:
        return len(self.fixed())

    def __getitem__(self, index: Any) -> Any:
        return self.fixed()[index]

    def __contains__(self, value: Any) -> bool:
        return value in self.fixed()


def _len(stage: Stage, args: Any, kwargs: Any) -> Any:
    return size_of(*args)


def converted(stage: Stage, dim: Dim, kind: Any) -> Any:
    """Return a size as Python's int, float or bool."""
    return dim if kind is int else bool(dim) if kind is bool else number_of(stage, dim, D.float64)


def _of_float(native: Callable[..., Any], primitive: Any) -> Callable[..., Any]:
    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            (x,) = args
            if isinstance(x, Dim) and current_decisions() is not None:
                x = number_of(stage, x, D.float64)
            if isinstance(x, Tensor) and stage.is_number(x) and x._type.dtype.is_floating and not x._type.shape:
                return eager.apply(primitive, x)
        return native(*args, **kwargs)

    return run


FUNCTIONS: dict[Any, Callable[[Stage, Any, Any], Any]] = {
    len: _len,
    **{
        getattr(math, name): _of_float(getattr(math, name), getattr(E, name))
        for name in ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "atan")
    },
}
