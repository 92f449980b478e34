"""`Symbol`: a user's declaration of a size that varies."""

from __future__ import annotations

import itertools
import math
from typing import Any

from mycel._src.compiler.ir.dims import Dim, DimLike, symbol
from mycel._src.foundation import arguments

__all__ = ["Symbol", "declared_shape"]

_numbers = itertools.count()


class Symbol:
    """A size of a declared tensor that may vary between calls, within limits.

    Args:
        max (int): The largest size; no limit where it is not larger than `min`. Default: 0.
        min (int): The least size. Default: 1.
        divisor (int): The size is ``divisor * N + remainder`` with N >= 1. Default: 1.
        remainder (int): What is left of a division by `divisor`. Default: 0.
        unique (bool): Whether all dimensions declared by this symbol have one size; otherwise each
            has its own. Default: False.
        **kwargs (Any): None are taken.

    Raises:
        TypeError: For arguments of other types.
        ValueError: For a `min` or `divisor` below 1 and a `remainder` outside [0, divisor).

    Examples:
        >>> import mycel as ms
        >>> even = ms.Symbol(divisor=2, max=64)
        >>> ms.Tensor(shape=[even, 3], dtype=ms.float32).ndim
        2
    """

    def __init__(
        self, max: int = 0, min: int = 1, divisor: int = 1, remainder: int = 0, unique: bool = False, **kwargs: Any
    ) -> None:
        for name, value in (("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)):
            arguments.integer("Symbol", name, value, numpy=False)
        arguments.flag("Symbol", "unique", unique)
        if min < 1 or divisor < 1:
            raise ValueError(f"Symbol: min and divisor must be at least 1, not {min} and {divisor}")
        if not 0 <= remainder < divisor:
            raise ValueError(f"Symbol: remainder must lie in [0, {divisor}), not {remainder}")
        if kwargs:
            raise TypeError(f"Symbol: unknown arguments {', '.join(kwargs)}")
        self.max, self.min, self.divisor, self.remainder, self.unique = max, min, divisor, remainder, unique
        self._dim: DimLike | None = None

    def __repr__(self) -> str:
        return (
            f"Symbol(max={self.max}, min={self.min}, divisor={self.divisor}, remainder={self.remainder}, "
            f"unique={self.unique})"
        )

    def dim(self) -> DimLike:
        """Return a dimension of this kind; always the same one where the symbol is unique."""
        if self._dim is not None:
            return self._dim
        low = -(-(self.min - self.remainder) // self.divisor)
        high = (self.max - self.remainder) // self.divisor if self.max > self.min else math.inf
        name = f"d{next(_numbers)}"
        found: DimLike = symbol(name, low if self.divisor == 1 or low > 1 else 1, high) * self.divisor + self.remainder
        if self.unique:
            self._dim = found
        return found


def declared_shape(shape: Any) -> tuple[DimLike, ...]:
    """Return a shape with a varying size in place of each None, -1 and `Symbol`."""
    made: list[DimLike] = []
    for d in shape:
        if isinstance(d, Symbol):
            made.append(d.dim())
        elif d is None or (isinstance(d, int) and d < 0):
            made.append(symbol(f"d{next(_numbers)}"))
        else:
            made.append(d if isinstance(d, Dim) else int(d))
    return tuple(made)
