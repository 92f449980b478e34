"""`mindspore.common.seed`: seeds as pairs of the program's and an operation's."""

from __future__ import annotations

from mycel._src.foundation import arguments
from mycel.common.seed import get_seed

__all__: list[str] = []

DEFAULT_GRAPH_SEED = 87654321
_MAXINT32 = 2**31 - 1
keyConstant = [3528531795, 2654435769, 3449720151, 3144134277]


def _get_graph_seed(op_seed: int, kernel_name: str) -> tuple[int, int]:
    """Return the program's seed, or 0 without one, and the operation's.

    Raises ValueError for a negative one.
    """
    arguments.integer(kernel_name, "seed", op_seed, 0, error=ValueError)
    return get_seed() or 0, op_seed


def _truncate_seed(seed: int) -> int:
    """Return a seed as a number that a 32-bit integer can be."""
    return seed % _MAXINT32
