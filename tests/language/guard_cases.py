"""Cases of guards: a function with changes to make between calls, and how many versions may be made
of it.

After each change the function is called twice, compiled and plainly, and must agree. `versions` is
None where the function must be run in segments, as what it reads cannot be watched, and ANY where
it does not matter how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mycel as ms
from mycel import Tensor
from tests.language.harness import same

X = Tensor([1.0, 2.0, 3.0])
ANY = -1


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.asnumpy()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def agree(f: Callable[..., Any], jitted: Any, what: str, x: Any = X) -> None:
    expected = plain(f(x))
    for turn in ("first", "second"):
        same(plain(jitted(x)), expected, 1e-5, f"{what}, {turn} call")


def versions_of(jitted: Any) -> int | None:
    return None if jitted.lives else sum(map(len, jitted.versions.values()))


class Cases:
    """The cases of one test file."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, versions: int | None) -> Any:
        """Declare a case: a function that returns the function to compile and the changes."""

        def declare(make: Any) -> Any:
            self.all.append(pytest.param(make, versions, id=make.__name__))
            return make

        return declare

    def test(self) -> Any:
        """A parametrized test of all cases declared so far."""

        @pytest.mark.parametrize("make, versions", self.all)
        def test_case(make: Any, versions: int | None) -> None:
            f, changes = make()
            jitted = ms.jit(f)
            agree(f, jitted, "at first")
            left = list(changes)
            try:
                while left:
                    left.pop(0)()
                    agree(f, jitted, f"after change {len(changes) - len(left)}")
            finally:
                # What was changed is put back by the last changes.
                for change in left:
                    change()
            made = versions_of(jitted)
            if versions is None:
                assert made is None
            elif versions is not ANY:
                assert made == versions
            else:
                assert made is None or made <= len(changes) + 1

        return test_case
