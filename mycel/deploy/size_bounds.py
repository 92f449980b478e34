"""Bounded sizes: symbols in input shapes that become arguments of a library's function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.symbols import Symbol
from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines.aot.size_arguments import MOST_SIZE, Size
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported

__all__ = ["sizes_of"]


def sizes_of(types: Sequence[TensorType], names: Sequence[str], given: Mapping[str, Symbol]) -> list[Size]:
    """Return the sizes that the function for inputs of some `types` takes.

    `names` are those of the inputs, as far as they are known, and `given` has names of sizes.
    Raises Unsupported where a size has no bound, ValueError for symbols that the inputs do not
    have.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> batch = Symbol(max=8, unique=True)
    >>> kind = tensor_type((batch.dim(), 3), float32)
    >>> [s.text for s in sizes_of([kind], ["x"], {"batch": batch})]
    ['batch from 1 to 8']
    """
    if not isinstance(given, Mapping):
        raise arguments.wrong_type("build", "sizes", "a dict of Symbols by name", given)
    words: dict[str, str] = {}
    for name, wanted in given.items():
        arguments.text("build", "a name in sizes", name)
        arguments.instance("build", f"sizes[{name!r}]", wanted, Symbol, "a Symbol")
        if not wanted.unique:
            raise ValueError(f"build: {name} is {wanted!r}; give Symbol(..., unique=True), which is one size")
        (symbol,) = symbols_in(wanted.dim())
        if symbol in words:
            raise ValueError(f"build: {words[symbol]} and {name} are one Symbol")
        words[symbol] = name
    places: dict[str, tuple[str, DimLike]] = {}
    for k, kind in enumerate(types):
        for axis, dim in enumerate(kind.shape):
            for symbol in symbols_in(dim):
                name = f"{names[k] if k < len(names) else f'input_{k}'}_{axis}"
                places.setdefault(symbol, (name, dim))
    for symbol, name in words.items():
        if symbol not in places:
            raise ValueError(f"build: no input has the size {name}")
    atoms = symbols_in(*[t.shape for t in types])
    made = []
    for symbol in sorted(places, key=lambda s: list(words).index(s) if s in words else len(words)):
        name, dim = words.get(symbol, places[symbol][0]), places[symbol][1]
        divisor, remainder = _linear(dim, name)
        atom = atoms[symbol]
        if math.isinf(atom.high):
            raise Unsupported(
                f"build: {places[symbol][0]} is a size without a bound; libraries are for known sizes, or for bounded "
                "ones: give Symbol(max=...) in its place"
            )
        made.append(Size(name, symbol, int(atom.low), int(atom.high), divisor, remainder))
        if made[-1].most > MOST_SIZE:
            raise Unsupported(f"build: {name} is up to {made[-1].most:,}; sizes of libraries are up to {MOST_SIZE:,}")
    taken = [*names, *[s.name for s in made]]
    for size in made:
        if taken.count(size.name) > 1:
            raise ValueError(f"build: {size.name!r} is the name of a size and of another argument")
    return made


def _linear(dim: DimLike, name: str) -> tuple[int, int]:
    """Return what a symbol is multiplied with in a size, and what is added."""
    assert isinstance(dim, Dim), "a size with a symbol is no number"
    remainder = dim.terms.get((), 0)
    parts = [(mono, c) for mono, c in dim.terms.items() if mono]
    if len(parts) != 1 or len(parts[0][0]) != 1 or parts[0][0][0][1] != 1 or parts[0][0][0][0].operator != "symbol":
        raise Unsupported(f"build: {name} is {dim}; the size of an input is a Symbol")
    return parts[0][1], remainder
