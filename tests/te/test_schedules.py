"""Schedules: what they give is what the operators give, and what would not is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import te
from mycel._src.compiler.loops.evaluation import run
from mycel._src.compiler.loops.inequalities import System
from mycel._src.compiler.loops.integer_sets import is_certainly_empty
from mycel._src.compiler.loops.programs import For, Program, statements
from mycel._src.compiler.prims.base import REGISTRY
from mycel._src.compiler.prims.loops import loops
from mycel._src.tensors.core import eager
from tests.te.random_programs import SIZE, drawn
from tests.te.random_schedules import planned

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

rng = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape)


def interpreted(program: Program, inputs: list[Any]) -> tuple[Any, ...]:
    return run(program, inputs, lambda name: REGISTRY[name].reference)  # type: ignore[arg-type,return-value]


def same(got: Any, want: Any) -> bool:
    return not np.isfinite(want).all() or np.abs(got - want).max(initial=0) < 1e-9


# Definitions.


@te.operator
def product(a, b):
    c = te.zeros((a.shape[0], b.shape[1]))
    c[i, j] += a[i, k] * b[k, j]
    return c


@product.schedule
def _blocks(s):
    outer, across, inner, along = s.tile("i", "j", 3, 16)
    s.reorder(outer, across, s["k"], inner, along)
    s.cache("c", across)
    s.parallel(outer)
    s.unroll(inner)
    s.vectorize(along)


@te.operator
def solved(l, b):
    x = te.empty(b.shape)
    for i in range(b.shape[0]):
        left = b[i]
        for j in range(i):
            left -= l[i, j] * x[j]
        x[i] = left / l[i, i]
    return x


@solved.schedule
def _rows(s):
    outer, inner = s.split("i", 4)
    before, after = s.cut("j", outer * 4)
    parts = s.separate(inner, before, after)
    s.reorder(before, parts[1])
    for part in parts:
        s.unroll(part)


@te.operator
def cholesky(a):
    n = a.shape[0]
    l = te.zeros((n, n))
    for j in range(n):
        for i in range(j, n):
            value = a[i, j]
            for k in range(j):
                value -= l[i, k] * l[j, k]
            l[i, j] = te.sqrt(value) if i == j else value / l[j, j]
    return l


@cholesky.schedule
def _panels(s):
    size = 4
    blocks, column = s.split("j", size)
    before, within = s.cut("k", blocks * size)
    rows = s.separate(s["i"], before, within)
    columns = s.separate(column, rows[1], rows[2])
    big, rest = s.split(rows[1], 8)
    outer, inner = s.split(rest, 2)
    s.reorder(big, outer, before, inner, columns[1])
    s.cache("l", big, axes=(1, 0), read=1)
    s.cache("value", outer, axes=(1, 0))
    s.unroll(inner)
    s.vectorize(columns[1])
    whole, column = s.split(columns[2], size)
    s.cache("l", whole, axes=(1, 0))
    sums, divided = s.separate(rows[2])
    s.reorder(within, sums)
    s.vectorize(sums)
    s.vectorize(s.cut(divided, (blocks + whole) * size + column + 1)[1])


@te.operator
def heat(u, steps):
    n, m = u.shape
    v = te.empty((2, n, m))
    for a, b in te.grid(n, m):
        v[0, a, b] = u[a, b]
        v[1, a, b] = u[a, b]
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = v[t % 2, i - 1, j] + v[t % 2, i + 1, j] + v[t % 2, i, j - 1] + v[t % 2, i, j + 1]
                v[(t + 1) % 2, i, j] = v[t % 2, i, j] + 0.1 * (around - 4 * v[t % 2, i, j])
    w = te.empty((n, m))
    for a, b in te.grid(n, m):
        w[a, b] = v[steps % 2, a, b]
    return w


@heat.schedule
def _time_tiles(s):
    t, i, j = s.loops("t", "i", "j")
    i, j = s.skew(i, t), s.skew(j, t)
    (t, t_in), (i, i_in), (j, j_in) = s.split(t, 3), s.split(i, 4), s.split(j, 8)
    s.reorder(t, i, j, t_in, i_in, j_in)
    s.vectorize(j_in)


@te.operator
def blurred(x):
    n = x.shape[0]
    once, twice = te.empty((n - 2,)), te.empty((n - 4,))
    for i in range(n - 2):
        once[i] = (x[i] + x[i + 1] + x[i + 2]) / 3
    for k in range(n - 4):
        twice[k] = (once[k] + once[k + 1] + once[k + 2]) / 3
    return twice


@blurred.schedule
def _together(s):
    outer, inner = s.split("k", 8)
    s.fuse_at("once", outer)
    s.parallel(outer)
    s.vectorize(inner)


@te.operator
def edit_distance(a, b):
    n, m = a.shape[0], b.shape[0]
    d = te.empty((n + 1, m + 1), ms.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(1, m + 1):
        d[0, j] = j
    for p in range(1, n + 1):
        for q in range(1, m + 1):
            differ = 0 if a[p - 1] == b[q - 1] else 1
            d[p, q] = min(d[p - 1, q] + 1, d[p, q - 1] + 1, d[p - 1, q - 1] + differ)
    return d


@edit_distance.schedule
def _waves(s):
    wave = s.skew("q", "p")
    s.reorder(wave, "p")
    s.vectorize("p")


def _heat(u: Any, steps: int) -> Any:
    v = u.copy()
    for _ in range(steps):
        w = v.copy()
        w[1:-1, 1:-1] += 0.1 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1])
        v = w
    return v


def _edits(a: Any, b: Any) -> Any:
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    d[:, 0], d[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + (x != y))
    return d


def _spd(n: int) -> Any:
    a = normal(n, n)
    return a @ a.T + n * np.eye(n)


CASES: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "product": (product, (normal(7, 5), normal(5, 37)), np.matmul),
    "one row": (product, (normal(1, 5), normal(5, 1)), np.matmul),
    "no row": (product, (normal(0, 5), normal(5, 4)), np.matmul),
    "no sum": (product, (normal(3, 0), normal(0, 4)), np.matmul),
    "whole blocks": (product, (normal(6, 4), normal(4, 32)), np.matmul),
    "solved": (solved, (np.tril(normal(11, 11)) + 9 * np.eye(11), normal(11)), np.linalg.solve),
    "solved in blocks": (solved, (np.tril(normal(8, 8)) + 9 * np.eye(8), normal(8)), np.linalg.solve),
    "cholesky": (cholesky, (_spd(21),), np.linalg.cholesky),
    "cholesky in blocks": (cholesky, (_spd(16),), np.linalg.cholesky),
    "heat": (heat, (normal(19, 23), 7), _heat),
    "blurred": (
        blurred,
        (normal(29),),
        lambda x: np.convolve(np.convolve(x, np.ones(3) / 3, "valid"), np.ones(3) / 3, "valid"),
    ),
    "edits": (edit_distance, (rng.integers(0, 3, 14), rng.integers(0, 3, 9)), _edits),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_schedule_gives_what_its_operator_gives(name: str, compiled: bool) -> None:
    operator, arguments, expected = CASES[name]
    tensors = [ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
    plan = operator.program(*tensors).plan
    assert plan is not None and plan.body != operator.program(*tensors).body
    (reference,) = interpreted(plan, [a for a in arguments if isinstance(a, np.ndarray)])
    want = expected(*arguments)
    assert reference.shape == want.shape and same(reference, want)
    fixed = [a for a in tensors if not isinstance(a, ms.Tensor)]
    got = (
        ms.jit(lambda *x: operator(*x, *fixed))(*[a for a in tensors if isinstance(a, ms.Tensor)]) if compiled else None
    )
    got = operator(*tensors) if got is None else got
    assert got.shape == want.shape and same(got.asnumpy(), want)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_other_element_types(kind: Any) -> None:
    a, b = normal(7, 5).astype(kind), normal(5, 37).astype(kind)
    got = product(ms.Tensor(a), ms.Tensor(b)).asnumpy()
    assert got.dtype == kind
    assert np.allclose(got, a.astype(float) @ b.astype(float), atol=2e-2 if kind is np.float16 else 1e-5)


def test_derivatives_and_batches_are_those_of_the_operator() -> None:
    a, b, w = normal(7, 5), normal(5, 20), normal(7, 20)
    by_a, by_b = ms.grad(lambda a, b: (product(a, b) * ms.Tensor(w)).sum(), (0, 1))(ms.Tensor(a), ms.Tensor(b))
    assert same(by_a.asnumpy(), w @ b.T) and same(by_b.asnumpy(), a.T @ w)
    many = normal(3, 7, 5)
    got = ms.vmap(product, (0, None))(ms.Tensor(many), ms.Tensor(b)).asnumpy()
    assert same(got, many @ b)


def test_open_sizes() -> None:
    a, b = normal(7, 5), normal(5, 20)
    open_a = ms.Tensor(shape=[None, 5], dtype=ms.float64)
    compiled = ms.jit(lambda a, b: product(a, b))
    compiled.set_inputs(open_a, ms.Tensor(b)) if hasattr(compiled, "set_inputs") else None
    for rows in (1, 6, 7):
        assert same(compiled(ms.Tensor(a[:rows]), ms.Tensor(b)).asnumpy(), a[:rows] @ b)


def _marks(operator: te.Operator, *arguments: Any) -> set[str]:
    plan = operator.program(*arguments).plan
    assert plan is not None
    return {s.mark for s in statements(plan.body) if isinstance(s, For)}


def test_what_a_plan_shows() -> None:
    a = ms.Tensor(normal(4, 4))
    assert {"parallel", "vectorize"} <= _marks(product, a, a)
    assert "for parallel i_outer" in str(product.program(a, a).plan)


# Threads inside of a loop.


@te.operator
def relaxed(u, steps):
    """Steps downwards, with values of each step for itself and rows whose number grows."""
    v = te.zeros((steps + 1, u.shape[0], u.shape[1]))
    for a, b in te.grid(u.shape[0], u.shape[1]):
        v[0, a, b] = u[a, b]
    for t in range(1, steps + 1):
        sums = te.zeros((u.shape[0],))
        for p in range(u.shape[0]):
            for q in range(u.shape[1]):
                sums[p] += v[t - 1, p, q]
        total = 0.0
        for m in range(u.shape[0]):
            total += sums[m] / (m + 1)
        for i in range(t):
            for j in range(u.shape[1]):
                v[t, i, j] = v[t - 1, u.shape[0] - 1 - i, j] * sums[i] / 10 + total
    w = te.empty(u.shape)
    for c, d in te.grid(u.shape[0], u.shape[1]):
        w[c, d] = v[steps, c, d]
    return w


def _relaxed(u: Any, steps: int) -> Any:
    v = u
    for t in range(1, steps + 1):
        sums = v.sum(1)
        total = (sums / np.arange(1, len(u) + 1)).sum()
        w = v[::-1] * sums[:, None] / 10 + total
        w[t:] = 0
        v = w
    return v


@pytest.mark.parametrize("kind", ["rows", "rows and sums", "lanes"])
@pytest.mark.parametrize("steps", [0, 1, 2, 6])
def test_threads_share_loops_inside_of_a_serial_one(kind: str, steps: int) -> None:
    operator = te.operator(relaxed.function)

    @operator.schedule
    def _(s):
        s.parallel("i")
        if kind == "rows and sums":
            s.parallel("p")
        if kind == "lanes":
            s.vectorize("j")

    u = normal(6, 19)
    got = operator(ms.Tensor(u), steps)
    assert np.allclose(got.asnumpy(), _relaxed(u, steps))
    compiled = ms.jit(lambda u: operator(u + 1, steps) * 2)
    assert np.allclose(compiled(ms.Tensor(u)).asnumpy(), 2 * _relaxed(u + 1, steps))
    if steps > 1:
        kinds = [x.kind for x in operator.explain(ms.Tensor(u), steps).steps.steps]
        assert "while" in kinds


def test_an_index_outside_is_told_of_a_round() -> None:
    @te.operator
    def picked(x, places):
        y = te.zeros((2, x.shape[0]))
        for t in range(4):
            for i in range(x.shape[0]):
                y[(t + 1) % 2, i] = y[t % 2, i] + x[places[(i + t) % x.shape[0]]]
        return y

    picked.schedule(lambda s: s.parallel("i"))
    x, places = normal(5), np.array([1, 0, 4, 2, 3])
    want = np.zeros((2, 5))
    for t in range(4):
        want[(t + 1) % 2] = want[t % 2] + x[np.roll(places, -t)]
    assert same(picked(ms.Tensor(x), ms.Tensor(places)).asnumpy(), want)
    with pytest.raises(IndexError, match="index 7 is out of range"):
        picked(ms.Tensor(x), ms.Tensor(np.array([1, 0, 7, 2, 3])))


# What is refused.


def _summed():
    @te.operator
    def running(x):
        y = te.empty(x.shape)
        for i in range(x.shape[0]):
            y[i, 0] = x[i, 0]
            for j in range(1, x.shape[1]):
                y[i, j] = y[i, j - 1] + x[i, j]
        return y

    return running


def _refused(plan: Any, **options: Any) -> str:
    operator = _summed()
    operator.schedule(**options)(plan)
    with pytest.raises(ValueError) as error:
        operator(ms.Tensor(normal(4, 5)))
    assert "test_schedules.py:" in str(error.value)
    return str(error.value)


def test_iterations_that_depend_on_each_other() -> None:
    assert "iterations of j depend on each other" in _refused(lambda s: s.parallel("j"))
    assert "threads share outermost loops" in _refused(lambda s: (s.vectorize("i"), s.parallel("j")))
    text = _refused(lambda s: s.vectorize("j"))
    assert "iterations of j depend on each other" in text
    assert "writes y[i, j]" in text and "then reads y[i, j - 1]" in text and "(j: <)" in text
    assert "between the loops" in _refused(lambda s: s.reorder("j", "i"))


def test_an_order_that_would_be_turned_round() -> None:
    @te.operator
    def diagonal(x):
        y = te.zeros(x.shape)
        for i in range(1, x.shape[0]):
            for j in range(x.shape[1] - 1):
                y[i, j] = y[i - 1, j + 1] + x[i, j]
        return y

    @diagonal.schedule
    def _turned(s):
        s.reorder("j", "i")

    with pytest.raises(ValueError, match=r"reorder: it would turn a dependence round: writes y\[i, j\].*i: <, j: >"):
        diagonal(ms.Tensor(normal(4, 5)))

    @diagonal.schedule
    def _skewed(s):
        s.reorder(s.skew("j", "i"), "i")

    x = normal(6, 5)
    want = np.zeros_like(x)
    for i in range(1, 6):
        want[i, :-1] = want[i - 1, 1:] + x[i, :-1]
    assert same(diagonal(ms.Tensor(x)).asnumpy(), want)


def test_sums_are_reassociated_only_where_that_is_allowed() -> None:
    @te.operator
    def total(x):
        y = te.zeros((x.shape[0],))
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                y[i] += x[i, k]
        return y

    def lanes(s):
        s.vectorize("k")

    total.schedule(lanes)
    x = normal(3, 50)
    with pytest.raises(ValueError, match="allow it with schedule\\(reassociate=True\\)"):
        total(ms.Tensor(x))
    total.schedule(reassociate=True)(lanes)
    assert same(total(ms.Tensor(x)).asnumpy(), x.sum(1))


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (lambda s: s.split("z", 2), "there is no loop over z; there are i, j"),
        (lambda s: s.reorder("i", "i"), "name each loop once"),
        (lambda s: s.skew("i", "j"), "j is not around i"),
        (lambda s: s.cut("i", s["j"]), "may depend on loops around it only"),
        (lambda s: s.cache("y", "i", axes=(0, 0)), "each of 0 to 1 once"),
        (lambda s: s.cache("z", "i"), "there is no array z; there are x, y"),
        (lambda s: s.fuse_at("x", "i"), "no array between two statements"),
        (lambda s: s.split(s.split("i", 2)[0] + 1, 2), "no loop of the program as it is now"),
    ],
)
def test_words_that_mean_nothing(plan: Any, text: str) -> None:
    assert text in _refused(plan)


# At random.


@pytest.mark.parametrize("seed", range(60))
def test_random_schedules(seed: int) -> None:
    program, _ = planned(drawn(seed // 2), seed)
    assert program.plan is not None
    a, x = normal(SIZE, SIZE), normal(SIZE)
    want = interpreted(program, [a, x])
    for got, w in zip(interpreted(program.plan, [a, x]), want):
        assert same(got, w)
    if seed % 3 == 0:
        for y, w in zip(eager.apply(loops, ms.Tensor(a), ms.Tensor(x), program=program), want):
            assert same(y.asnumpy(), w)


def test_random_systems_of_inequalities() -> None:
    draw = np.random.default_rng(1)
    empty = 0
    for _ in range(300):
        system, names = System(), "abc"[: draw.integers(1, 4)]
        forms = [[int(v) for v in draw.integers(-4, 5, len(names) + 1)] for _ in range(int(draw.integers(1, 6)))]
        equal = int(draw.integers(0, 2))
        for k, form in enumerate(forms):
            linear = {n: c for n, c in zip((*names, ""), form) if c}
            (system.zero if k < equal else system.positive).append(linear)
        for n in names:
            system.positive += [{n: 1, "": 4}, {n: -1, "": 4}]
        points = np.stack(np.meshgrid(*[np.arange(-4, 5)] * len(names))).reshape(len(names), -1)
        values = [np.array(form[:-1]) @ points + form[-1] for form in forms]
        held = [v == 0 if k < equal else v >= 0 for k, v in enumerate(values)]
        possible = bool(np.all(held, axis=0).any())
        assert not (possible and system.is_empty())
        empty += system.is_empty() == (not possible)
    # What is said to be possible and is not may be at most rare.
    assert empty >= 295


def test_what_elimination_leaves_open_is_decided_by_the_library() -> None:
    pytest.importorskip("islpy")
    # Fractions satisfy it and no whole numbers do (W. Pugh, The Omega test, 1991).
    system = System()
    system.positive = [
        {"x": 11, "y": 13, "": -27},
        {"x": -11, "y": -13, "": 45},
        {"x": 7, "y": -9, "": 10},
        {"x": -7, "y": 9, "": 4},
    ]
    assert not system.is_empty() and is_certainly_empty(system)
    system.positive[0][""] = 100
    assert not is_certainly_empty(system)


# Kept programs.


def test_programs_have_a_lasting_identity() -> None:
    texts = {drawn(seed).lasting_text for seed in range(20)}
    assert len(texts) == 20 and drawn(3).lasting_text in texts
    a = ms.Tensor(normal(4, 4))
    planned_text = product.program(a, a).lasting_text
    assert "plan" in planned_text and planned_text == product.program(a, a).lasting_text
