"""Random programs of writes, views, rebindings, branches and loops agree with NumPy eagerly,
compiled and under gradients.

`source(seed)` writes a function of a matrix and a number over a few variables, which come to share
elements in ways that tensors decide. More seeds: ``python -m tests.language.test_random_state FIRST
COUNT``.
"""

from __future__ import annotations

import linecache
import random
import sys

import numpy as np
import pytest

import mycel as ms

NAMES = ("a", "b", "v", "w")
MATRIX = (np.arange(4.0).reshape(2, 2) - 1.5) * 0.9 + 0.123


def statements(rng, depth, indent):
    """Some random statements, as lines."""
    pad, lines = "    " * indent, []
    for _ in range(rng.randint(1, 4)):
        x, y, z = (rng.choice(NAMES) for _ in range(3))
        kind = rng.random()
        if kind < 0.2:
            lines.append(f"{pad}{x} = {y}[{rng.choice(['0:2', '1:', '::-1', ':'])}]")
        elif kind < 0.3:
            lines.append(f"{pad}{x} = {y}{rng.choice(['', '.T'])}")
        elif kind < 0.4:
            lines.append(f"{pad}{x} = {y} * {rng.choice(['0.5', '1.5'])} + 1")
        elif kind < 0.6:
            lines.append(f"{pad}{x}[0:1] = {y}[0:1] * 0.5 + {rng.randint(0, 3)}")
        elif kind < 0.68:
            lines.append(f"{pad}{x}[0:1, 0:1] = {rng.randint(-3, 3)}.0")
        elif kind < 0.72:
            lines.append(f"{pad}{x}[:, 0:1] = {y}[:, -1:] * 1")
        elif kind < 0.76:
            lines.append(f"{pad}s = s + {x}.sum() * 0.1")
        elif kind < 0.8:
            lines.append(f"{pad}{x} = {y} if s > {rng.randint(-3, 3)}.37 else {z}")
        elif depth and kind < 0.92:
            lines += [f"{pad}if s > {rng.randint(-3, 3)}.37:", *statements(rng, depth - 1, indent + 1)]
            if rng.random() < 0.6:
                lines += [f"{pad}else:", *statements(rng, depth - 1, indent + 1)]
        elif depth:
            count = f"k{rng.randint(0, 999)}"
            lines += [
                f"{pad}{count} = s * 0",
                f"{pad}while {count} < {rng.randint(0, 3)}:",
                f"{pad}    {count} = {count} + 1",
            ]
            lines += statements(rng, depth - 1, indent + 1)
        else:
            lines.append(f"{pad}s = s - 0.3")
    return lines


def source(seed):
    body = statements(random.Random(seed), 2, 1)
    return "\n".join(
        ["def f(x, s):", "    a = x * 1", "    b = x * 2 - 1", "    v = a", "    w = b", *body]
        + ["    return a * 1, b * 1, v * 1, w * 1, s * 1, x * 1", ""]
    )


def defined(seed):
    name, text = f"<random state {seed}>", source(seed)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def check(seed):
    f = defined(seed)
    jitted = ms.jit(f)

    def total(x, s):
        return sum(t.sum() for t in f(x, s))

    for start in (-1.0, 2.0):
        try:
            expected = f(MATRIX.copy(), np.float64(start))
        except ValueError:  # a program whose shapes do not fit
            return
        given = lambda start=start: (ms.Tensor(MATRIX), ms.Tensor(start, ms.float64))
        for call in (f, jitted, jitted):
            for found, wanted in zip(call(*given()), expected):
                np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-9, atol=1e-9, err_msg=source(seed))
        slope = np.zeros((2, 2))
        for place in np.ndindex(2, 2):
            step = np.zeros((2, 2))
            step[place] = 1e-6
            ends = [total(MATRIX + sign * step, np.float64(start)) for sign in (1, -1)]
            slope[place] = (ends[0] - ends[1]) / 2e-6
        for run in (ms.grad(total), ms.jit(ms.grad(total)), ms.grad(ms.jit(total))):
            np.testing.assert_allclose(run(*given()).asnumpy(), slope, rtol=1e-4, atol=1e-4, err_msg=source(seed))


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_random_programs(seed):
    check(seed)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(first, first + count):
        check(number)


def test_an_operation_with_a_seed_goes_on_where_compiled_code_is_the_first_to_draw() -> None:
    draw = ms.jit(lambda: ms.ops.rand(3, seed=90211))
    seen = [tuple(draw().tolist()) for _ in range(3)]
    assert len(set(seen)) == 3
    again = ms.Generator().manual_seed(90211)
    assert seen == [tuple(ms.mint.rand(3, generator=again).tolist()) for _ in range(3)]
