"""Bundled cost tables, and the operators that are measured for them.

`tools/device_tables.py` measures them anew. They cover the sizes of networks for microcontrollers:
up to 128 channels and images of up to 32 by 32 values.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mycel.search.cost_table import Table
from mycel.search.operators import Operator

__all__ = ["DEVICES", "FOLDER", "operators_to_measure", "table_of"]

FOLDER = Path(__file__).resolve().parent / "costs"
DEVICES = ("cortex-m4", "cortex-m55")
_PLANES = ((4, 4), (8, 8), (16, 16), (25, 5), (1, 16), (1, 64), (12, 12))
_CHANNELS = (4, 8, 12, 16, 24, 32, 48, 64, 96)
DRAWN = {"pointwise": 20, "depthwise": 40, "conv": 22, "dense": 10, "add": 14, "mean": 8}


def table_of(device: str) -> Table:
    """Return the bundled table of a device, one of `DEVICES`.

    Raises ValueError for another device.

    >>> table = table_of("cortex-m4")
    >>> table.device, table.error("pointwise") < 0.3
    ('cortex-m4', True)
    """
    if device not in DEVICES:
        raise ValueError(
            f"table_of: there are tables of {', '.join(DEVICES)}, not of {device!r}; Table.measure makes one"
        )
    return Table.load(FOLDER / f"{device}.json")


def operators_to_measure(seed: int = 0) -> list[Operator]:
    """Return the operators of the bundled tables: sizes of each kind, drawn always equally."""
    random = np.random.default_rng(seed)
    made: set[Operator] = set()
    for kind, count in DRAWN.items():
        before = len(made)
        while len(made) < before + count:
            made.add(_drawn(kind, random))
    return sorted(made)


def _drawn(kind: str, random: np.random.Generator) -> Operator:
    given, out = (int(_CHANNELS[k]) for k in random.integers(0, len(_CHANNELS), 2))
    height, width = _PLANES[random.integers(len(_PLANES))]
    if kind == "dense":
        given, out = (int(n) for n in random.choice([4, 8, 10, 16, 24, 32, 48, 64, 96, 128], 2))
        return Operator("dense", given, out)
    if kind in ("add", "mean"):
        return Operator(kind, given, given, height, width)
    if kind == "pointwise":
        return Operator(kind, given, out, height, width)
    size, stride = int(random.choice([3, 5, 7])), int(random.integers(1, 3))
    flat = height == 1
    kernel, steps = ((1, size), (1, stride)) if flat else ((size, size), (stride, stride))
    if kind == "depthwise":
        return Operator(kind, given, given, height, width, kernel, steps)
    kernel = (1, 3) if flat else (3, 3)
    return Operator("conv", int(random.integers(1, 5)), min(out, 32), height, width, kernel, steps)
