"""Random programs mean the same in plain Python, eagerly, compiled and differentiated; see
`generate` for how to check many more of them.
"""

from __future__ import annotations

import pytest

from tests.language.generate import check_seed, check_source, define, shrink, source

# Found by the generator once, cut down.
FOUND = (
    """
def program(f0, f1, v0, n0):
    if not f1 > 0.631:
        def g2(fx, k=0):
            return abs(f0)
        f0 = g2(f1, 1)
    else:
        def g13(fx, k=0):
            nonlocal f0
            f0 = v0[0]
        g13(f0, 2)
    return f0
""",
    """
def program(f0, f1, v0, n0):
    if f1 > abs(f1) - 0.3:
        if n0 - 4:
            def g3(fx, k=1):
                nonlocal f0
                f0 = f1
            g3(f0, k=1)
    return f0
""",
    """
def program(f0, f1, v0, n0):
    for n2 in range((n0 - 1) % 5):
        for n12 in range(3):
            def g11(fx, k=0):
                nonlocal f1
                f1 = f0
                f16 = fx
            if n0:
                pass
            else:
                f18 = g11(f1 if f0 else f1, k=n12)
    else:
        pass
    return f1
""",
)


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_ten_programs(first: int) -> None:
    used = [check_seed(seed) for seed in range(first, first + 10)]
    assert sum(map(bool, used)) >= 3


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_programs_that_once_failed(number: int) -> None:
    assert check_source(FOUND[number].lstrip()) >= 2


def test_programs_are_the_same_every_time() -> None:
    assert [source(s) for s in range(5)] == [source(s) for s in range(5)]


def test_a_failing_program_is_cut_down() -> None:
    text = (
        "def program(f0, f1, v0, n0):\n    if f0 > 0.5:\n        f1 = F.sin(f1) + 1.0\n        f0 = F.cos(f1)\n    "
        "return f0 + f1\n"
    )
    small = shrink(text, lambda t: "cos" in t)
    assert "cos" in small and len(small) < len(text) and callable(define(small))
