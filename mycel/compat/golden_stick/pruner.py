"""`mindspore_gs.pruner`: SCOP and UniPruning, which are refused with what does their work here.

SCOP (knockoff features) and UniPruning change what a network computes while it is trained, in ways
that their descriptions leave open; results under their names would not be theirs.
"""

from __future__ import annotations

from typing import Any, NoReturn

from mycel._src.foundation.errors import Unsupported
from mycel.compat.golden_stick.algorithm import CompAlgo

__all__ = ["PrunerFtCompressAlgo", "PrunerKfCompressAlgo", "UniPruner"]


class _Refused(CompAlgo):
    """Base of algorithms that can be imported, and say what to use when they are made."""

    def __init__(self, config: Any = None) -> None:
        _refuse(type(self).__name__)


def _refuse(name: str) -> NoReturn:
    raise Unsupported(
        f"{name}: this algorithm is not in Mycel; mycel.compression.prune_channels removes channels by their "
        "importance (l1, l2, Taylor), with GroupLasso or masks (prune_weights, GradualPruning) while training"
    )


class PrunerKfCompressAlgo(_Refused):
    """The first part of SCOP; making one raises Unsupported, whatever `config` is."""


class PrunerFtCompressAlgo(_Refused):
    """The second part of SCOP; making one raises Unsupported, whatever `config` is."""


class UniPruner(_Refused):
    """UniPruning; making one raises Unsupported, whatever `config` is."""
