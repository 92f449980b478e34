"""What operations that draw random numbers have in common: an object with a seed has a sequence of
its own, which begins when the object is made and goes on with every call.

An object that a compiled function makes begins again in every call of that function, as it does
where the function runs op by op.
"""

from __future__ import annotations

from typing import Any

from mycel._src.tensors.core import eager
from mycel.common.generator import Generator, Repeated
from mycel.ops.operations.primitive import Primitive

__all__ = ["Drawing", "numbers_of_object"]


class Drawing(Primitive):
    """An operation that draws random numbers."""

    _staged: bool
    _numbers: Generator | None = None

    def __new__(cls, *args: Any, **named: Any) -> Drawing:
        """Note whether the object is made by a function that is being compiled."""
        made = super().__new__(cls)
        made._staged = bool(eager.active) and eager.local.staging is not None
        return made


def numbers_of_object(p: Any, seed: int) -> Any:
    """Return the sequence of an object's random numbers; None, the default one, for the seed 0."""
    # Negative ones count from the end of the numbers that seeds can be.
    seed %= 2**63
    if not seed:
        return None
    if p._numbers is None or p._numbers.initial_seed() != seed:
        # The state is of nobody's function: one that is being compiled may be the first to ask.
        with eager.use_context(None):
            p._numbers = Repeated(seed) if p._staged else Generator().manual_seed(seed)
    return p._numbers
