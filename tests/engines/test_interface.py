"""Engines answer what is asked of them, and alike: small programs in processes of each engine, and
every question put to every engine in this one.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import InconclusiveDimension, symbol
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines import base, buffers, select
from mycel._src.engines.base import Engine
from mycel._src.engines.host_engine import HostEngine
from mycel._src.engines.profile_hook import KnownCode
from mycel._src.foundation.dtype import float32, int64
from mycel._src.foundation.errors import Unsupported
from tests.engines.interface_programs import PROGRAMS

NAMES = ("native", "reference")
# The XLA engine is an extra.
FOUND = (*NAMES, "xla") if importlib.util.find_spec("jax") is not None else NAMES


# The same programs.


def process(name: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MYCEL_ENGINE": name}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600)


@functools.cache
def given_by(name: str) -> dict[str, Any]:
    """What all programs give in an engine."""
    done = process(name, "-m", "tests.engines.interface_programs")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def alike(a: Any, b: Any) -> bool:
    """Whether trees are the same but for rounding."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(alike, a, b))
    if type(a) is float and type(b) is float:
        return math.isclose(a, b, rel_tol=2e-4, abs_tol=2e-5) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("program", PROGRAMS)
def test_engines_give_the_same(program: str) -> None:
    native, reference = given_by("native")[program], given_by("reference")[program]
    assert isinstance(native, list) and native, native
    assert alike(native, reference), f"{native}\n{reference}"


@pytest.mark.skipif("xla" not in FOUND, reason="jax is not installed: pip install mycel[xla]")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_xla_engine_gives_the_same_or_refuses(program: str) -> None:
    native, found = given_by("native")[program], given_by("xla")[program]
    if program == "profiles":
        # A program is one kernel, which has the name and the Cell of one of its operations.
        assert [alike(a, b) for a, b in zip(native, found)].count(False) <= 3 and found[5:9] == native[5:9]
    elif program == "recursions":
        assert found.startswith("Unsupported: the XLA engine cannot run recursion") and "power(x, n - 1)" in found
    else:
        assert alike(native, found), f"{native}\n{found}"


# The choice.


def test_the_environment_chooses_the_engine() -> None:
    program = "from mycel._src.engines.select import engine; import mycel; print(engine().name)"
    for name in (*NAMES, ""):
        assert process(name, "-c", program).stdout == f"{name or 'native'}\n"


def test_an_unknown_engine_is_refused_with_those_there_are() -> None:
    done = process("abacus", "-c", "import mycel")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "ValueError: MYCEL_ENGINE=abacus: there is no engine 'abacus'; there are native, reference, xla"
    with pytest.raises(ValueError, match="there is no engine 'abacus'; there are native, reference, xla"):
        base.choose("abacus")
    assert select.engine() is base.current()


MANY_STEPS = """
import sys
import mycel as ms
from mycel import ops

def f(x):
    for _ in range(10):
        x = ops.tanh(x * 1.5) + ops.sin(x)
    return (x * x).sum()

x = ms.Tensor([0.25, 0.5, 1.0])
value, gradient = ms.jit(lambda x: ms.value_and_grad(f)(x))(x)
ms.explain(f, x).costs, ms.estimate(f, x)
print(*[round(float(v), 4) for v in (value, *gradient)])
print(*sorted({m.split(".")[4] for m in sys.modules if m.startswith("mycel._src.engines.native.")}))
"""


def test_engines_share_the_allocator_and_nothing_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "program.py"
    program.write_text(MANY_STEPS)
    found = []
    for name, folders in (
        ("reference", {"objects"}),
        ("native", {"objects", "programs", "sources"}),
        ("reference", {"objects", "programs", "sources"}),
    ):
        done = process(name, str(program))
        values, modules = done.stdout.splitlines()
        found.append(values)
        assert {p.name.partition("-")[0] for p in (tmp_path / "cache").rglob("*-*") if p.is_dir()} == folders
        assert (modules == "engine llvm onednn runtime threads") is (name == "reference")
    assert len(set(found)) == 1


DEEP = """
import mycel as ms

@ms.jit
def down(x, n):
    return x if n <= 0 else down(x + 1, n - 1)

for levels in (20, 3000):
    try:
        print(float(down(ms.Tensor(0.0), ms.Tensor(levels))))
    except RecursionError as error:
        print(str(error).splitlines()[0])
"""


def test_what_the_reference_engine_cannot_do_names_what_can(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(DEEP)
    assert process("native", str(program)).stdout == "20.0\n3000.0\n"
    first, second = process("reference", str(program)).stdout.splitlines()
    assert first == "20.0"
    assert second.startswith("a recursive function went deeper than Python's") and "the native engine" in second


def test_info_shows_all_engines_and_the_one_in_force() -> None:
    for name in NAMES:
        facts = json.loads(process(name, "-m", "mycel", "info", "--json").stdout)
        assert facts["engine"] == name and set(facts["engines"]) == {*NAMES, "xla"}
        assert all("uses" in known for known in facts["engines"].values())
        shown = process(name, "-m", "mycel", "info").stdout
        assert f"in use    {name}\n" in shown and f"reference (numpy {np.__version__})" in shown


# Every question, put to every engine.


@pytest.fixture(params=FOUND)
def engine(request: pytest.FixtureRequest) -> Engine:
    return select.engines()[request.param]


def given(*arrays: Any) -> list[Any]:
    return [buffers.from_array(np.asarray(a, np.float32)) for a in arrays]


def back(buffer: Any, *shape: int) -> list[Any]:
    return buffers.to_array(buffer, tensor_type(shape, float32)).tolist()


def vectors(count: int, size: Any = 2) -> list[Node]:
    return [input_node(tensor_type((size,), float32), f"v{k}") for k in range(count)]


def test_every_question_is_answered(engine: Engine) -> None:
    asked = {name for name, member in vars(Engine).items() if getattr(member, "__isabstractmethod__", False)}
    assert len(asked) > 20 and not type(engine).__abstractmethods__
    assert engine.device == "CPU" and engine.name in FOUND
    for name in asked:
        assert inspect.getdoc(getattr(Engine, name)), name
    with pytest.raises(TypeError, match="abstract"):
        HostEngine()


def test_an_entry_gives_a_buffer_or_a_tuple(engine: Engine) -> None:
    a, b = vectors(2)
    one = engine.compile(Graph([a, b], [a + b]))
    assert back(one(*given([1, 2], [3, 4])), 2) == [4, 6]
    two = engine.compile(Graph([a, b], [a + b, a * b]))
    found = two(*given([1, 2], [3, 4]))
    assert type(found) is tuple and [back(f, 2) for f in found] == [[4, 6], [3, 8]]


def test_symbols_have_no_entry_without_sizes(engine: Engine) -> None:
    (a,) = vectors(1, symbol("n", 2))
    with pytest.raises(InconclusiveDimension, match="the sizes of"):
        engine.compile(Graph([a], [a + a]))


def test_aliased_outputs_are_written_into_inputs(engine: Engine) -> None:
    a, b = vectors(2)
    swap = engine.compile(Graph([a, b], [b, a, a + b]), {0: 0, 1: 1})
    x, y = given([1, 2], [3, 4])
    first, second, total = swap(x, y)
    assert [back(v, 2) for v in (x, y, total)] == [[3, 4], [1, 2], [4, 6]]
    assert buffers.address(first) == buffers.address(x) and buffers.address(second) == buffers.address(y)


def test_sizes_are_put_in(engine: Engine) -> None:
    n = symbol("n", 2)
    (a,) = vectors(1, n)
    programs = engine.sized(Graph([a], [R.reduce_sum(a * a, axes=(0,), keepdims=False), a + 1.0]))
    for size in (2, 5, 40, 2):
        x = np.arange(size)
        total, more = programs.entry({"n": size})(*given(x))
        assert back(total) == (x * x).sum() and back(more, size) == (x + 1).tolist()


def rounds_of(engine: Engine) -> tuple[Any, Graph]:
    """Takes x; adds it to `total` in place, carries `last`, and gives x * last of its own."""
    x, total, last = vectors(3)
    graph = Graph([x, total, last], [total + x, x + 0.0, x * last])
    found = engine.repetition(engine.compile(graph, {0: 1}), {1: 2})
    assert found is not None
    return found, graph


def test_rounds_are_what_calls_are(engine: Engine) -> None:
    repetition, _ = rounds_of(engine)
    batches = [given([k, k + 1]) for k in range(4)]
    total, last = given([0, 0], [10, 10])
    for keep in (False, True):
        ran = repetition.run([total, last], batches, keep)
        assert ran.count == 4 and [ran.keeps(j) for j in range(3)] == [False, False, True]
        assert back(last, 2) == [10, 10]
        assert [back(ran.at(2, k), 2) for k in range(4)] == [[0, 10], [0, 2], [2, 6], [6, 12]]
        assert [back(v, 2) for v in ran.row(-1)] == [back(total, 2), [3, 4], [6, 12]]
        assert back(ran.row(1)[2], 2) == [0, 2]
    assert back(total, 2) == [12, 20]


def test_large_results_are_kept_when_asked_for(engine: Engine) -> None:
    x, y = vectors(2, 1 << 17)
    repetition = engine.repetition(engine.compile(Graph([x, y], [x * y, x + y])), {})
    assert repetition is not None
    one = np.ones(1 << 17)
    batches = [given(one * k) for k in range(3)]
    last = repetition.run(given(one * 2), batches)
    assert not last.keeps(0) and back(last.row(-1)[0], 1 << 17)[:2] == [4, 4]
    kept = repetition.run(given(one * 2), batches, keep=True)
    assert kept.keeps(0) and [back(kept.at(0, k), 1 << 17)[5] for k in range(3)] == [0, 2, 4]


def test_a_round_that_fails_restores_what_was_carried(engine: Engine) -> None:
    index = input_node(tensor_type((1,), int64), "index")
    table = input_node(tensor_type((3,), float32), "table")
    graph = Graph([index, table], [table + 1.0, I.take(table, index, axis=0)])
    repetition = engine.repetition(engine.compile(graph), {0: 1})
    assert repetition is not None
    (state,) = given([1, 2, 3])
    batches = [[buffers.from_array(np.array([k]))] for k in (0, 2, 7)]
    restored: list[Any] = []
    with pytest.raises(IndexError, match="index 7 is out of range"):
        repetition.run([state], batches, restore=lambda i, buffer: restored.append((i, back(buffer, 3))))
    assert restored == [(1, [3, 4, 5])] and back(state, 3) == [1, 2, 3]


def test_what_is_no_program_has_no_rounds(engine: Engine) -> None:
    assert engine.repetition(lambda *given: given, {}) is None
    other = next(e for e in select.engines().values() if e is not engine)
    (a,) = vectors(1)
    assert engine.repetition(other.compile(Graph([a], [a + a])), {}) is None


def example() -> tuple[Graph, dict[int, int]]:
    x = input_node(tensor_type((8, 16), float32), "x")
    y = input_node(tensor_type((16, 4), float32), "y")
    product = matmul(E.exp(x), y)
    return Graph(
        [x, y],
        [R.reduce_sum(product, axes=(1,), keepdims=False), y * constant(np.full((16, 4), 2, np.float32), float32)],
        "example",
    ), {1: 1}


def test_reports_agree_with_the_graph(engine: Engine) -> None:
    graph, aliases = example()
    account, footprint = engine.account(graph, aliases), engine.footprint(graph, aliases)
    assert account.name == footprint.name == "example"
    assert {"exp", "matmul", "reduce_sum"} <= {name for step in account.steps for name in step.operations}
    assert engine.cost(graph, aliases) == account.total and account.total.flops >= 2 * 8 * 16 * 4
    assert footprint.inputs == [8 * 16 * 4, 16 * 4 * 4] and footprint.results == 8 * 4
    assert footprint.arena >= 8 * 4 * 4 and footprint.alive and footprint.own == footprint.total - sum(footprint.inputs)
    assert sum(nbytes for nbytes, _ in footprint.by_line()) == sum(a.nbytes for a in footprint.alive)
    assert "example in" in account.text() and "memory of example" in footprint.text()


def test_claims_and_host_steps(engine: Engine) -> None:
    graph, _ = example()
    claimed = [n for n in engine.prepared(graph).nodes if n.prim is not None and engine.claims(n)]
    assert any(n.prim is matmul for n in claimed)
    assert engine.host_steps(graph) == []


def test_a_trace_has_steps_runs_and_costs(engine: Engine) -> None:
    graph, aliases = example()
    run = engine.compile(graph, aliases)
    arguments = given(np.ones((8, 16)), np.ones((16, 4)))
    seen: list[int] = []
    run(*arguments)
    with engine.tracing(before_run=lambda: seen.append(1)) as trace:
        run(*arguments)
        run(*arguments)
        with pytest.raises(RuntimeError, match="already being taken"), engine.tracing():
            pass
    run(*arguments)
    assert len(trace.runs) == len(seen) == 2 and trace.runs[0].program is trace.runs[1].program
    assert trace.runs[0].program.name == "example" and len(trace.runs[0].program.results) == 1
    assert not trace.missed and len(set(trace.threads)) == len(trace.threads) >= 1
    half = len(trace.events) // 2
    assert half and [e.step for e in trace.events[:half]] == [e.step for e in trace.events[half:]]
    for run_of, events in zip(trace.runs, (trace.events[:half], trace.events[half:])):
        assert all(run_of.begin <= e.begin <= e.end <= run_of.end and e.step.program is run_of.program for e in events)
    products = [e.step for e in trace.events[:half] if any(n.prim is matmul for n in e.step.nodes)]
    assert any(s.cost.flops >= 2 * 8 * 16 * 4 for s in products) and all(s.threads >= 1 for s in products)
    assert all(move.nbytes > 0 for move in trace.moves if move.taken)
    assert {part.nbytes for part in trace.runs[0].program.arena()} or engine.name in ("reference", "xla")


def test_a_trace_has_room_for_so_many_records(engine: Engine) -> None:
    (a,) = vectors(1)
    run = engine.compile(Graph([a], [a + a]))
    (x,) = given([1, 2])
    with engine.tracing(4) as trace:
        for _ in range(9):
            run(x)
    assert 0 < len(trace.events) <= 4 and trace.missed


def test_memory_is_accounted(engine: Engine) -> None:
    # What earlier tests left is not given back in between.
    gc.collect()
    engine.empty_cache()
    before = engine.memory()
    held = buffers.empty(1 << 20)
    after = engine.memory()
    assert after.allocated - before.allocated == 1 << 20 and before.blocks <= after.blocks <= before.blocks + 1
    assert after.reserved >= after.allocated and after.most_reserved >= after.reserved <= after.limit
    del held
    assert engine.memory().most_allocated >= after.allocated
    engine.reset_peak(allocated=True, reserved=True)
    engine.release_arenas()
    engine.empty_cache()
    now = engine.memory()
    assert now.most_allocated <= after.most_allocated and now.allocated <= before.allocated
    left = engine.available_memory()
    assert left is None or (left > 0 and "available of" in engine.room_left())
    engine.need("a test", 1 << 10)
    with pytest.raises(MemoryError, match="a test needs .* TiB"):
        engine.need("a test", 1 << 60)


def test_the_machine_is_described(engine: Engine) -> None:
    engine.check_environment()
    assert engine.identity and engine.describe()["uses"]
    assert 1 <= engine.threads and 1 <= engine.default_threads()
    before = engine.threads
    if engine.name != "xla":
        engine.set_threads(1)
        assert engine.threads == 1
    engine.set_threads(before)
    share = engine.sharing(2)
    assert share is None or share() is None
    if engine.name == "reference":
        with pytest.raises(ValueError, match="the reference engine computes on one thread, not on 2"):
            engine.set_threads(2)
    if engine.name == "xla":
        with pytest.raises(ValueError, match=rf"XLA computes on {before} threads from its start on, not on 99"):
            engine.set_threads(99)


def test_one_device_is_said_to_be_one(engine: Engine) -> None:
    if engine.name == "xla":
        pytest.skip("it runs programs on several devices: tests/engines/xla")
    (a,) = vectors(1)
    mesh = Mesh((1,), ("x",))
    assert engine.device_count() == 1
    with pytest.raises(Unsupported, match=f"the {engine.name} engine runs a program on one device; set_context"):
        engine.together(Graph([a], [a + a]), mesh)
    with pytest.raises(Unsupported, match="may have several"):
        engine.spread(mesh, [np.zeros(2)])


def test_code_that_is_known_is_not_told(engine: Engine) -> None:
    def known() -> None:
        pass

    def unknown() -> None:
        pass

    before = sys.getprofile()
    found = engine.known_code()
    assert isinstance(found, KnownCode)
    found.add(known.__code__)
    told: list[str] = []
    found.watch(lambda frame, event, argument: told.append(frame.f_code.co_name))
    try:
        known()
        unknown()
    finally:
        sys.setprofile(before)
    assert "unknown" in told and "known" not in told
