"""What is remembered: bounded, by what was used last, under threads and forks, and emptied at once;
and no other table that forgets.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.foundation import bounded_caches
from mycel._src.foundation.bounded_caches import Remembered, RememberedOf
from mycel._src.tensors.core import eager, fused, view_cache

PACKAGE = Path(ms.__file__).parent


class Thing:
    """An object that things are remembered of."""


def test_what_was_made_first_is_given() -> None:
    table = Remembered[str, int]("test", 10)
    assert table.get("a") is None and len(table) == 0
    assert table.recall("a", lambda: 1) == table.recall("a", lambda: 2) == table.enter("a", 3) == table.get("a") == 1
    table.replace("a", 4)
    assert table.get("a") == 4 and table.items() == [("a", 4)]
    table.pop("a")
    table.pop("a")
    assert table.get("a") is None and table.items() == []
    with pytest.raises(KeyError):
        table.recall("b", lambda: {}["b"])
    assert table.get("b") is None


@pytest.mark.parametrize("most", [1, 2, 3, 10, 100])
def test_tables_are_bounded(most: int) -> None:
    table = Remembered[int, int]("test", most)
    for n in range(10 * most):
        assert table.recall(n, lambda n=n: -n) == -n  # type: ignore[misc]
        assert len(table) <= max(most, 2)
    last = range(10 * most - most // 2, 10 * most)
    assert [table.get(n) for n in last] == [-n for n in last]


def test_what_is_used_stays() -> None:
    table = Remembered[Any, object]("test", 10)
    used = table.enter("used", object())
    for n in range(100):
        table.enter(n, n)
        assert table.get("used") is used
    # Values that are replaced hide what was there before, in whichever generation that is.
    for n in range(100):
        table.replace("used", n)
        table.enter(n + 1000, n)
        assert table.get("used") == n


def test_results_of_functions() -> None:
    asked: list[Any] = []

    @Remembered[Any, Any]("test", 10).calls
    def total(x: int, y: int = 0) -> int:
        """The sum."""
        asked.append((x, y))
        return x + y

    assert [total(1), total(1), total(1, 2), total(1, y=2), total(1, y=2)] == [1, 1, 3, 3, 3]
    assert asked == [(1, 0), (1, 2), (1, 2)] and total.__doc__ == "The sum."


def test_what_is_remembered_of_an_object_goes_with_it() -> None:
    table = RememberedOf[list[int]]("test", 4)
    things = [Thing() for _ in range(20)]
    for n, thing in enumerate(things):
        assert table.of(thing, lambda: [n]) == [n] and len(table) <= 4  # noqa: B023
    last = table.of(things[-1], list)
    assert table.of(things[-1], list) is last == [19]
    # Earlier entries become recent ones, and go with their object as well.
    before = table.of(things[-2], list)
    assert table.of(things[-2], list) is before == [18]
    del thing, things
    gc.collect()
    assert len(table) == 0 and table.items() == []


def test_settings_empty_the_tables_that_name_them() -> None:
    named, other = Remembered[int, int]("test", 10, ("check_nan",)), Remembered[int, int]("test", 10)
    for table in (named, other):
        for n in range(8):
            table.enter(n, n)
    ms.set_context(enable_compile_cache=True)
    assert len(named) == len(other) == 8
    ms.set_context(check_nan=False)
    assert len(named) == 0 and len(other) == 8


def test_what_is_made_while_a_table_forgets_is_not_kept() -> None:
    table = Remembered[str, str]("test", 10)

    def make() -> str:
        table.forget()
        return "old"

    assert table.recall("a", make) == "old" and table.get("a") is None


def test_tables_of_one_name_are_counted_together() -> None:
    first, second = Remembered[int, int]("pair", 10), Remembered[int, int]("pair", 20)
    first.enter(1, 1)
    second.enter(1, 1)
    assert bounded_caches.sizes()["pair"] == (2, 30)
    del second
    assert bounded_caches.sizes()["pair"] == (1, 10)
    del first
    assert "pair" not in bounded_caches.sizes()


# Threads and forks.


@pytest.mark.parametrize("most", [4, 64])
def test_threads_share_a_table(most: int) -> None:
    table = Remembered[int, tuple[int, object]]("test", most)
    of = RememberedOf[int]("test", most)
    things = [Thing() for _ in range(2 * most)]
    wrong: list[Any] = []
    over = threading.Event()

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        try:
            for n in generator.integers(0, 3 * most, 4000).tolist():
                if table.recall(n, lambda n=n: (n, object()))[0] != n:  # type: ignore[misc]
                    wrong.append(n)
                k = n % len(things)
                if of.of(things[k], lambda k=k: k) != k:  # type: ignore[misc]
                    wrong.append(k)
                if n % 97 == 0:
                    table.pop(n)
                table.items()
        except Exception as error:
            wrong.append(error)

    def disturb() -> None:
        while not over.is_set():
            table.forget()
            bounded_caches.sizes()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        other = threading.Thread(target=disturb)
        for t in (*threads, other):
            t.start()
        for t in threads:
            t.join()
        over.set()
        other.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    # Each thread may have been in the middle of one entry while another made room.
    # While another thread empties a table, nobody makes room in it; the next generations do.
    more = [Thing() for _ in range(most)]
    for n, thing in enumerate(more):
        table.recall(-1 - n, lambda: (0, object()))
        of.of(thing, lambda: 0)
    assert len(table) <= most + 8 and len(of) <= most + 8
    for n in range(10):
        table.enter(-n, (-n, object()))
        of.of(things[n % len(things)], lambda: 0)
    assert len(table) <= most + 8


def test_threads_that_make_the_same_get_the_same() -> None:
    table = Remembered[int, object]("test", 1000)
    ready = threading.Barrier(8)
    found: list[list[object]] = []

    def work() -> None:
        ready.wait()
        found.append([table.recall(n, object) for n in range(400)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(each is first for others in found for each, first in zip(others, found[0]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_goes_on_with_what_its_parent_remembered() -> None:
    table = Remembered[int, int]("test", 8)
    over = threading.Event()

    def work() -> None:
        n = 0
        while not over.is_set():
            n += 1
            table.enter(n, n)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pid = os.fork()
            if pid == 0:
                right = all(table.recall(-n, lambda n=n: n) == n for n in range(1, 100)) and len(table) <= 9  # type: ignore[misc]
                os._exit(0 if right else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        over.set()
        thread.join()


# The tables of the package.


def sizes_of(name: str) -> int:
    return ms.runtime.caches()[name][0]


SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
MADE = re.compile(r'= (?:_Entries|_Calls|Remembered(?:Of)?(?:\[.*\])?)\(\s*"([^"]*)"|@Remembered\("([^"]*)"')


# Tables that belong to one object each.
OF_OBJECTS = (
    "programs by sizes",
    "parts of graphs of symbolic sizes",
    "structures of arguments",
    "derivatives in use",
    "structures of recordings",
    "numbers of nodes of long recordings",
)


def test_each_table_is_there_once() -> None:
    names = [a or b for text in SOURCES.values() for a, b in MADE.findall(text)]
    assert len(names) == len(set(names)) > 25
    there = [t.name for t in bounded_caches._tables if t.name in names and t.name not in OF_OBJECTS]
    assert len(there) == len(set(there)) > 20
    shown = ms.runtime.caches()
    assert set(there) <= set(shown) and all(0 <= entries <= most for entries, most in shown.values())


def test_no_other_table_forgets() -> None:
    # What belongs to one object: the versions for sizes of a compiled function, the loops of a
    # sink.
    own = {"_src/staging/frontend/specialization/dynamic_shapes.py", "_src/staging/compiled/repeated_execution.py"}
    for path, text in SOURCES.items():
        found = re.findall(r"\blru_cache\b|popitem\(last=False\)|WeakKeyDictionary\(\)", text)
        assert not found or path in own, f"{path}: {found[0]} makes a table for mycel._src.foundation.bounded_caches"


def test_operations_on_ever_new_shapes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (eager._entries, fused._calls, view_cache._table):
        monkeypatch.setattr(table, "most", 16)
        table.forget()
    for n in range(1, 161):
        x = Tensor(np.ones((2, n), np.float32))
        assert float((x + x).sum()) == 4 * n
        assert float(ops.softmax(x)[1].sum()) == pytest.approx(1)
        assert x.transpose(1, 0).shape == (n, 2)
        assert len(eager._entries) <= 16 and sum(map(len, eager._pairs.values())) <= 8
        assert len(fused._calls) <= 16 and len(view_cache._table) <= 16


def test_forgetting_loses_no_program() -> None:
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
    x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    compiled, sized = ms.jit(lambda a: net(a).sum()), ms.jit(lambda a: (a * 2).sum(0))
    gradient = ms.grad(lambda a: (net(a) ** 2).sum())

    def in_segments(a: Tensor) -> Tensor:
        b = a * 2
        return b + 1 if float(b.sum()) > -100 else b

    segments = ms.jit(in_segments)

    def run() -> list[Any]:
        y = Tensor(np.zeros((3, 3), np.float32))
        y[1:] = 2.0
        values = [net(x), compiled(x), gradient(x), segments(x), x.transpose(1, 0), x[1], ops.softmax(x), x * 3 + 1, y]
        values += [sized(Tensor(np.ones((n, 2), np.float32))) for n in range(2, 8)]
        values += [ops.cholesky(Tensor(np.eye(3, dtype=np.float32) * 4)), ms.vmap(lambda a: a * a.sum())(x)]
        return [v.asnumpy().tolist() for v in values]

    run()
    wanted = run()
    assert sizes_of("operations") > 5
    versions = [id(v) for vs in compiled.versions.values() for v in vs]
    ms.runtime.forget()
    found = ms.runtime.caches()
    assert not any(entries for entries, _ in found.values()), found
    assert run() == wanted
    assert [id(v) for vs in compiled.versions.values() for v in vs] == versions
    assert 0 < sizes_of("operations") < 200


def test_operations_run_while_others_forget() -> None:
    over = threading.Event()
    wrong: list[Any] = []

    def work(n: int) -> None:
        try:
            x = Tensor(np.full((n, 3), n, np.float32))
            compiled = ms.jit(lambda a: a * 2 + n)
            for k in range(20):
                values = [(x + x)[0, 0], x.sum() / x.size, ms.grad(lambda a: (a * a).sum())(x)[0, 1], compiled(x)[0, 2]]
                if [float(v) for v in values] != [2 * n, n, 2 * n, 3 * n]:
                    wrong.append((n, k))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3, 4)]
    for t in threads:
        t.start()

    def disturb() -> None:
        while not over.is_set():
            ms.runtime.forget()

    other = threading.Thread(target=disturb)
    other.start()
    for t in threads:
        t.join()
    over.set()
    other.join()
    assert wrong == []


def test_segments_follow_the_settings_of_programs() -> None:
    def doubled_less_once(a: Tensor) -> Tensor:
        b = (a + a) - a
        return b if float(b[0]) > -1 else a

    f = ms.jit(doubled_less_once)
    x = Tensor(np.full(4, 60000, np.float16))
    try:
        assert np.isinf(f(x).asnumpy()).all()
        ms.set_context(wide_intermediates=True)
        assert f(x).asnumpy().tolist() == [60000] * 4
    finally:
        ms.set_context(wide_intermediates=False)
    assert np.isinf(f(x).asnumpy()).all()


def test_large_programs_leave_before_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "NODES", 100)
    ms.runtime.forget()
    x = Tensor(np.ones((2, 3), np.float32))
    used = ops.gelu(x).asnumpy()
    for n in range(30):
        np.testing.assert_allclose(ops.celu(Tensor(-np.ones(n + 4))).asnumpy(), np.expm1(-1), rtol=1e-12)
        assert np.array_equal(ops.gelu(x).asnumpy(), used)
        # Each generation ends with the graph that makes it full.
        sizes = [len(call.graph.nodes) for _, call in fused._calls.items() if call]
        assert sum(sizes) <= 100 + 2 * max(sizes)
    assert len(fused._calls) < 30
