"""Memory limits: compares what a library needs with what a device has, and says what would fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.engines.aot.library import Library
from mycel._src.foundation.errors import Unsupported

__all__ = ["bytes_of", "check_fits", "largest_batch"]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SHOWN = 4


def bytes_of(text: str) -> int:
    """Return the bytes that a text names: a whole number, with K, M or G for powers of 1024.

    Raises ValueError for another text.

    >>> bytes_of("256K"), bytes_of("1M")
    (262144, 1048576)
    """
    found = re.fullmatch(r"([0-9]{1,15})([KMG]?)(i?B)?", text)
    if found is None:
        raise ValueError(f"{text!r} is no number of bytes; write one as 262144, 256K or 1M")
    return int(found[1]) * _UNITS[found[2]]


def check_fits(library: Library, ram: int | None, flash: int | None, advice: Callable[[], str] = lambda: "") -> None:
    """Raise Unsupported unless a library fits into `ram` and `flash` bytes (None: no limit).

    The message has what takes the memory and what would fit; `advice` is asked for more of that.
    """
    said = []
    if ram is not None and library.ram_bytes > ram:
        said.append(
            f"{library.ram_bytes:,} bytes of RAM are needed and there are {ram:,}: {library.arena_bytes:,} of arena "
            f"and {library.state_bytes:,} of state. At the peak of the arena there are"
        )
        said += [f"  {line}" for line in library.account.peak[:SHOWN]]
        if library.state_bytes > ram:
            said.append("The state alone is more: train fewer parameters, or with an optimizer of fewer states.")
        elif more := advice():
            said.append(more)
    if flash is not None and library.flash_bytes > flash:
        said.append(
            f"{library.flash_bytes:,} bytes of flash are needed and there are {flash:,}: {library.code_bytes:,} of "
            f"code, {library.constant_bytes:,} of constants and {library.initial_bytes:,} of first values of state."
        )
        small = library.flash_bytes - library.constant_bytes + library.constant_bytes // 4
        fits = "would fit" if small <= flash else "would not fit either"
        said.append(f"With constants of 8 bits it would be some {small:,} bytes, which {fits}.")
    if said:
        raise Unsupported(f"build: {library.name} does not fit on {library.target}.\n" + "\n".join(said))


def largest_batch(build: Callable[[int], Library], shapes: Sequence[Sequence[int]], ram: int) -> str:
    """Return a sentence about the largest batch whose library fits into `ram` bytes.

    `shapes` are those of the inputs; where their first sizes are not one batch, nothing is said.
    `build` makes the library for a batch.
    """
    sizes: set[Any] = {shape[0] if len(shape) else None for shape in shapes}
    if len(sizes) != 1 or None in sizes or not (batch := int(sizes.pop())) > 1:
        return ""
    while batch > 1:
        batch //= 2
        made = build(batch)
        if made.ram_bytes <= ram:
            return f"A batch of {batch} fits: it needs {made.ram_bytes:,} bytes."
    return f"A batch of 1 does not fit either: it needs {made.ram_bytes:,} bytes."
