"""What the test of factors needs besides the records' samples: more samples."""

from __future__ import annotations

import numpy as np

from mycel.base.dtype import uint32, uint64
from mycel.prims.base import Sample

__all__ = ["SAMPLES"]

# Samples whose axes can be divided where those of the record are of size 1, or of other shapes.
SAMPLES: dict[str, tuple[Sample, ...]] = {
    "reshape": tuple(
        Sample((old,), {"shape": new})
        for old, new in (
            ((6, 4), (24,)),
            ((24,), (6, 4)),
            ((4, 6), (6, 4)),
            ((5, 12), (5, 3, 4)),
            ((3, 2, 4, 5), (6, 20)),
            ((2, 6, 5), (3, 4, 5)),
            ((2, 1, 6, 7), (12, 1, 7)),
            ((2, 3, 5, 2, 3), (3, 2, 5, 6)),
            ((8, 9), (12, 6)),
            ((3, 0, 2), (3, 2, 0, 2)),
        )
    ),
    "transpose": (Sample(((2, 3, 4, 2),), {"permutation": (0, 2, 1, 3)}),),
    "broadcast_to": (Sample(((2, 1, 3),), {"shape": (4, 2, 5, 3)}),),
    "slice": (Sample(((4, 5, 3),), {"starts": (0, 1, 0), "stops": (4, 4, 3), "steps": (1, 2, 1)}),),
    "pad": (Sample(((3, 2, 4), ()), {"low": (0, 1, 0), "high": (0, 2, 0), "interior": (0, 1, 0)}),),
    "concat": (Sample(((3, 2, 4), (3, 5, 4)), {"axis": 1}),),
    "random_bits": tuple(
        Sample((state,), {"shape": (3, 2, 4), "dtype": kind}, dtypes=("uint64",))
        for state in (np.array([7, 2**64 - 5], np.uint64), np.array([[1, 2], [3, 2**33], [4, 5]], np.uint64))
        for kind in (uint32, uint64)
    )
    + (Sample((np.array([7, 9], np.uint64),), {"shape": (1, 4, 3), "dtype": uint32}, dtypes=("uint64",)),),
    "reverse": (Sample(((3, 2, 4),), {"axes": (1,)}),),
}
