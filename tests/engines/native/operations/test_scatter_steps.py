"""Updates of a few elements: written over the operand where nothing else needs its value."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing.index import scatter_nd, take
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.program.compiling import prepared
from mycel._src.engines.native.steps.step_types import flat

SIZE = 6
PLACES = ("i", "(i + 1) % 6", "i // 2", "5 - i")


def body(draw: random.Random) -> list[str]:
    """Return the lines of a random iteration over the arrays `a` and `b` and the number `s`."""
    arrays, numbers, lines = ["a", "b"], ["s"], []
    for k in range(draw.randint(2, 7)):
        x, y, n, at = draw.choice(arrays), draw.choice(arrays), draw.choice(numbers), draw.choice(PLACES)
        row, place = f"ops.reshape({at}, (1, 1))", f"ops.reshape({at}, (1,))"
        made = {
            "v": [
                f"ops.tensor_scatter_update({x}, {row}, ops.reshape({n} * 0.5, (1,)))",
                f"ops.tensor_scatter_add({x}, {row}, {y}[1:2] * 0.3)",
                f"ops.tensor_scatter_update({x}, {row}, ops.reshape({x}[{at}], (1,)))",
                f"ops.tensor_scatter_elements({x}, {place}, ops.reshape({n} * 0.25, (1,)))",
                f"{x} * 0.5 + {y}[::-1]",
                f"{x} + {n} * 0.1",
                f"{x}.reshape(2, 3).T.reshape(6)",
            ],
            "n": [f"{x}[{at}] + 1", f"{x}.sum() * 0.1 + {n} * 0.1"],
        }
        kind = draw.choice("vvvn")
        lines.append(f"{kind}{k} = {draw.choice(made[kind])}")
        (arrays if kind == "v" else numbers).append(f"{kind}{k}")
    return [*lines, f"a, b, s = {draw.choice(arrays)}, {draw.choice(arrays)}, {draw.choice(numbers)} * 0.9"]


def function(seed: int) -> Any:
    lines = [*body(random.Random(seed)), "i = i + 1"]
    head = "def f(a, b, s, n):\n    i = Tensor(0, ms.int32)\n    while i < n:\n"
    text = head + "".join(f"        {line}\n" for line in lines) + "    return a, b, s\n"
    name = f"<overwriting {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope: dict[str, Any] = {"ms": ms, "ops": ops, "Tensor": Tensor}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize("seed", range(24))
def test_random_loops_compute_what_python_computes(seed: int) -> None:
    f = function(seed)
    values = np.random.default_rng(seed).normal(size=(2, SIZE)).astype(np.float32)

    def arguments() -> tuple[Tensor, ...]:
        return Tensor(values[0]), Tensor(values[1]), Tensor(np.float32(0.5)), Tensor(5)

    for found, expected in zip(ms.jit(f)(*arguments()), f(*arguments())):
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)
    if seed % 4 == 0:
        total = ms.grad(lambda *x: sum(o.sum() for o in f(*x)), (0, 1, 2))
        for found, expected in zip(ms.jit(total)(*arguments()), total(*arguments())):
            np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-3, atol=1e-4)


def written(x: Any, index: Any, row: Any) -> Any:
    return scatter_nd(x, index, row, mode="set")


def inputs() -> list[Any]:
    kinds = [TensorType((8, 4), ms.float32), TensorType((1, 1), ms.int32), TensorType((1, 4), ms.float32)]
    return [input_node(kind, name) for kind, name in zip(kinds, ("x", "index", "row"))]


def copies(graph: Graph, replaces: bool = True) -> int:
    """Return how many kernels copy the whole of x, which the first result replaces."""
    steps = flat(lower(prepared(graph), {0: 0} if replaces else {}).steps)
    return sum(s.title == "copy" and s.writes[0].size == 32 for s in steps)


def test_an_operand_is_overwritten_only_where_its_value_is_not_needed() -> None:
    x, index, row = inputs()
    new = written(x, index, row)
    assert copies(Graph((x, index, row), (new,))) == 0
    assert copies(Graph((x, index, row), (new,)), False) == 1
    # The old value is a result, and the updates are part of it.
    assert copies(Graph((x, index, row), (new, x))) == 1
    assert copies(Graph((x, index), (written(x, index, take(x, S.reshape(index, (1,)), axis=0)),))) == 0
    # Two functions of one value: only the last may overwrite it.
    other = written(x, index, E.mul(row, row))
    assert copies(Graph((x, index, row), (new, other))) == 1
    # One after the other.
    assert copies(Graph((x, index, row), (written(new, index, E.mul(row, row)),))) == 0


def test_a_parameter_is_written_where_it_is() -> None:
    table = ms.Parameter(Tensor(np.zeros((300, 100), np.float32)), name="table")

    @ms.jit
    def write(i: Tensor, row: Tensor) -> Tensor:
        before = table[0].sum()
        table[i] = row
        return before + table[i].sum()

    row = Tensor(np.ones(100, np.float32))
    for k, expected in ((0, 100.0), (0, 200.0), (7, 200.0)):
        assert float(write(Tensor(k), row)) == expected
    assert float(table.sum()) == 200
    assert "300, 100" not in "".join(
        line for line in str(ms.explain(write, Tensor(1), row)).splitlines() if "copy" in line
    )
