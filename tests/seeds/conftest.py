"""What every program runs under: the names of MindSpore, and each of the two modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import mycel as ms
from mycel import compat
from mycel.common.seed import set_seed


@pytest.fixture(autouse=True)
def mindspore() -> Iterator[None]:
    """`import mindspore` gives mycel, and settings are given back."""
    before = ms.get_context("mode")
    compat.install()
    set_seed(1)
    yield
    ms.set_context(mode=before)
    compat.uninstall()


@pytest.fixture(params=["GRAPH_MODE", "PYNATIVE_MODE"])
def mode(request: pytest.FixtureRequest) -> str:
    """The name of the mode that is in force."""
    name: str = request.param
    ms.set_context(mode=getattr(ms, name))
    return name
