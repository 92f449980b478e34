"""Settings that change what programs are: whatever is compiled is compiled anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor


@pytest.fixture
def settings() -> Iterator[None]:
    try:
        yield
    finally:
        ms.set_context(wide_intermediates=False)


def whole(x: Any) -> Any:
    return (x + x) - x


def in_segments(x: Any) -> Any:
    first = float(x[0])
    return whole(x) if first == first else x


def of_many_sizes() -> Callable[[Any], Any]:
    function = ms.jit(whole)
    for size in (20, 30):
        function(Tensor(np.zeros(size, np.float16)))
    return function


@pytest.mark.parametrize(
    "make",
    [lambda: ms.jit(whole), lambda: ms.jit(in_segments), of_many_sizes],
    ids=["one graph", "segments", "sizes"],
)
def test_programs_are_made_anew(make: Callable[[], Any], settings: None) -> None:
    function, x = make(), Tensor(np.full(40, 60000, np.float16))
    assert np.all(np.isinf(function(x).asnumpy()))
    ms.set_context(wide_intermediates=True)
    np.testing.assert_array_equal(function(x).asnumpy(), x.asnumpy())
    ms.set_context(wide_intermediates=False)
    assert np.all(np.isinf(function(x).asnumpy()))
