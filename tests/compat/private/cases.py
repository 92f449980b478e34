"""Cases of private primitives: what each is created and called with, in text that both packages
evaluate.

A line of ``cases.txt`` is ``Name(parameters) <- operands``, below its module in brackets. Operands
are NumPy arrays that the functions below make from the text's own checksum, so that they are the
same wherever the line is evaluated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["arguments_of", "cases"]


def cases() -> list[tuple[str, str, str]]:
    """Return the module, the constructor and the operands of each case."""
    found, module = [], ""
    for line in (Path(__file__).parent / "cases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        else:
            made, _, operands = line.partition(" <-")
            found.append((module, made, operands.strip()))
    return found


def arguments_of(case: str, operands: str, wrap: Callable[[Any], Any], names: dict[str, Any]) -> list[Any]:
    """Return the operands of a case, arrays in them wrapped as tensors.

    `case` seeds the random ones and `names` has what else the text may use.
    """
    random = np.random.RandomState(zlib.crc32(f"{case}{operands}".encode()))

    def floats(*shape: int) -> Any:
        return wrap(random.standard_normal(shape).astype(np.float32))

    def positive(*shape: int) -> Any:
        return wrap((random.random_sample(shape) * 0.8 + 0.1).astype(np.float32))

    def integers(high: int, *shape: int) -> Any:
        return wrap(random.randint(0, high, shape).astype(np.int32))

    def long(high: int, *shape: int) -> Any:
        return wrap(random.randint(0, high, shape).astype(np.int64))

    def literal(value: Any, dtype: str = "float32") -> Any:
        return wrap(np.array(value, dtype))

    def normal(shape: tuple[int, ...], axes: tuple[int, ...], gamma: tuple[int, ...]) -> tuple[Any, ...]:
        """Return x, its cotangent, its variance and mean, and a scale, of a layer normalisation."""
        x, dy = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
        parts = (x, dy, x.var(axes, keepdims=True), x.mean(axes, keepdims=True))
        return tuple(map(wrap, (*parts, (random.random_sample(gamma) + 0.5).astype(np.float32))))

    def batch(*shape: int) -> tuple[Any, ...]:
        """Return x, its cotangent, a scale, and the mean and variance of a batch normalisation."""
        x, dy = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
        scale = (random.random_sample(shape[1]) + 0.5).astype(np.float32)
        return tuple(map(wrap, (x, dy, scale, x.mean((0, 2, 3)), x.var((0, 2, 3)))))

    scope = {"N": normal, "B": batch, "F": floats, "P": positive, "I": integers, "J": long, "A": literal, **names}
    return list(eval(f"({operands},)" if operands else "()", scope))
