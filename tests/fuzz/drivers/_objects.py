"""Changed copies of what JSON holds."""

from __future__ import annotations

import copy
import random as random_module
from typing import Any

_VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    4,
    7,
    8,
    16,
    63,
    64,
    255,
    1000,
    65536,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**53,
    2**57,
    2**58,
    2**61,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    10**40,
    0.5,
    -1.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "x",
    "-1",
    "F32",
    "F64",
    "BOOL",
    "../x",
    "a" * 300,
    [],
    {},
    [[]],
    [0],
    [1, 1],
    [-1],
    [2**62, 4],
    [0, 2**62],
    {"x": 1},
)


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) in an object."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        places(value[key], found)
    return found


def changed(random: random_module.Random, value: Any, most: int = 3, values: tuple[Any, ...] = ()) -> Any:
    """A copy with entries dropped, doubled, swapped, renamed, or replaced by absurd values, by
    others of the same object, or by `values`.
    """
    value = copy.deepcopy(value)
    for _ in range(random.randint(1, most)):
        found = places(value, [])
        if not found:
            return copy.deepcopy(random.choice(_VALUES))
        inside, key = random.choice(found)
        kind = random.randrange(8)
        if kind == 0:
            del inside[key]
        elif kind == 1 and isinstance(inside, list):
            inside[key:key] = [copy.deepcopy(inside[key])] * random.choice((1, 1, 2, 40))
        elif kind == 2:
            other, where = random.choice(found)
            inside[key] = copy.deepcopy(other[where])
        elif kind == 3 and isinstance(inside, dict):
            inside[random.choice(("x", "", "__metadata__", *inside))] = inside.pop(key)
        elif kind == 4 and type(inside[key]) is int:
            inside[key] += random.choice((-2, -1, 1, 2, 1 << 32))
        elif kind == 5 and random.random() < 0.2:
            nested = inside[key]
            for _ in range(random.choice((3, 70, 300))):
                nested = [nested]
            inside[key] = nested
        else:
            inside[key] = copy.deepcopy(random.choice(values if values and random.random() < 0.5 else _VALUES))
    return value
