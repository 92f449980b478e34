"""Divisions of tensors, from numbers of parts and from layouts."""

from __future__ import annotations

from typing import Any

import pytest

from mycel._src.compiler.ir.sharding.division import Division, division_of
from mycel._src.compiler.ir.sharding.layout import Layout

GRID = Layout((2, 3, 2), ("dp", "sp", "mp"))


def test_layouts_name_the_axes_of_a_mesh() -> None:
    made = division_of(GRID(("mp", "dp"), "None", "sp"))
    assert made.cuts == (4, 1, 3) and made.axes == (("mp", "dp"), (), ("sp",)) and made.parts == 12
    assert made.mesh is not None and made.mesh.sizes == (2, 3, 2) and made.mesh.names == ("dp", "sp", "mp")
    assert str(made) == "(4, 1, 3) over {'dp': 2, 'sp': 3, 'mp': 2}"
    assert made.with_axis(1) == Division((4, 1, 1, 3), made.mesh, (("mp", "dp"), (), (), ("sp",)))
    ranks = Layout((2, 2), ("a", "b"), [3, 2, 1, 0])("a", "b")
    mesh = division_of(ranks).mesh
    assert mesh is not None and mesh.devices == (3, 2, 1, 0)
    with pytest.raises(ValueError, match="says nothing of a tensor"):
        division_of(GRID)


def test_numbers_leave_the_mesh_open() -> None:
    made = division_of((2, 4))
    assert made == Division((2, 4)) and made.mesh is None and str(made) == "(2, 4)"
    assert made.with_axis(2).cuts == (2, 4, 1)


@pytest.mark.parametrize(
    "given, shape, devices, reason",
    [
        ((2, 4), (4, 4), 8, ""),
        ((2, 3), (4, 7), 6, ""),
        ((1, 1), (0, 4), 6, ""),
        ((2,), (4, 4), 8, "it has 1 entries, and the tensor has 2 axes"),
        ((2, 0), (4, 4), 8, "axis 1 is cut into 0 parts"),
        ((8, 1), (4, 4), 8, "axis 0 of size 4 is cut into 8 parts"),
        ((4, 4), (4, 4), 8, "16 parts, and there are 8 devices"),
        ((3, 1), (4, 4), 8, "3 parts, which do not divide 8 devices"),
        (GRID("dp", "None"), (4, 4), 8, "its layout is of 12 devices, and there are 8"),
        (GRID("dp", "None"), (4, 4), 12, ""),
    ],
)
def test_what_does_not_fit(given: Any, shape: tuple[int, ...], devices: int, reason: str) -> None:
    found = division_of(given).misfit(shape, devices)
    assert reason in found and bool(reason) == bool(found)
