"""The pool of threads: that everything is done once, whoever else uses the cores, and that teams of
the dense library keep what OpenMP promises.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.threads.openmp_interface_ir import OPENMP
from mycel._src.engines.native.threads.pool import Pool, default_threads, pool, thread_limit
from mycel._src.engines.native.threads.pool_ir import MOST_THREADS, POOL_SYMBOLS, pool_text

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
SHARE = ctypes.CFUNCTYPE(None, KERNEL, ctypes.c_void_p, *[ctypes.c_int64] * 4, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, REGION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
NUMBER, NOTHING = ctypes.CFUNCTYPE(ctypes.c_int), ctypes.CFUNCTYPE(None)
HOG = "import os, sys\nif sys.argv[1:]:\n    os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True:\n    pass\n"


@contextmanager
def disturbed(count: int = 1) -> Iterator[None]:
    """Run so many programs that use a core each, the first of them our last one."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    places = [[str(cores[-1])] if cores and k == 0 else [] for k in range(count)]
    others = [subprocess.Popen([sys.executable, "-c", HOG, *place]) for place in places]
    try:
        time.sleep(0.1)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def with_condition() -> Pool:
    """Return another pool, whose threads sleep by a condition variable."""
    machine = jit.machine()
    other = Pool.__new__(Pool)
    (code,) = jit.compile_objects([pool_text(machine.host.triple, futex=False)])
    other.address = dict(zip(POOL_SYMBOLS, machine.link(code, POOL_SYMBOLS, {})))
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)(other.address["pool_begin"])(2)
    return other


@pytest.fixture(scope="module", params=["futex", "condition"])
def made(request: pytest.FixtureRequest) -> Pool:
    return pool() if request.param == "futex" else with_condition()


def function(made: Pool, name: str, kind: Any) -> Any:
    return kind(made.address[OPENMP.get(name, name)])


def parts_of(made: Pool, first: int, extent: int, threads: int, grains: int) -> list[tuple[int, int]]:
    """Return the parts in which a range was done."""
    found: list[tuple[int, int]] = []

    def run(arguments: int, begin: int, end: int) -> None:
        found.append((begin, end))

    function(made, "pool_share", SHARE)(KERNEL(run), None, first, extent, threads, grains, None)
    return sorted(found)


@pytest.mark.parametrize("others", [0, 2])
def test_everything_is_done_once(made: Pool, others: int) -> None:
    random = np.random.default_rng(others)
    with disturbed(others):
        for _ in range(150):
            threads = int(random.choice([2, 3, 5, 8]))
            grains = int(random.integers(threads, 200))
            extent = int(random.choice([grains, 1000 * grains + 7, random.integers(grains, 10**9)]))
            first = int(random.choice([0, 1, 12345]))
            parts = parts_of(made, first, extent, threads, grains)
            assert parts[0][0] == first and parts[-1][1] == first + extent
            assert all(end == begin for (_, end), (begin, _) in zip(parts, parts[1:]))
            assert all(begin < end for begin, end in parts) and len(parts) <= 8 * threads


def test_a_caller_waits_for_no_helper_that_has_not_begun(made: Pool) -> None:
    """The one helper is busy with the first item that it gets; the caller does all others."""
    caller, begun, done = threading.get_ident(), threading.Event(), []

    def run(arguments: int, begin: int, end: int) -> None:
        if threading.get_ident() != caller:
            begun.set()
            while len(done) < 15:
                time.sleep(0.001)
        else:
            begun.wait(10)
        done.append(begin)

    function(made, "pool_share", SHARE)(KERNEL(run), None, 0, 16, 2, 16, None)
    assert sorted(done) == list(range(16)) and begun.is_set()


def test_regions_have_numbers_and_barriers(made: Pool) -> None:
    number, size = function(made, "omp_get_thread_num", NUMBER), function(made, "omp_get_num_threads", NUMBER)
    inside, barrier = function(made, "omp_in_parallel", NUMBER), function(made, "GOMP_barrier", NOTHING)
    parallel = function(made, "GOMP_parallel", PARALLEL)
    for count in (1, 2, 3, 7):
        for _ in range(10):
            rounds = [[0] * count for _ in range(3)]
            wrong: list[object] = []

            def part(
                data: int, rounds: list[list[int]] = rounds, wrong: list[object] = wrong, count: int = count
            ) -> None:
                me = number()
                if size() != count or bool(inside()) != (count > 1) or not 0 <= me < count:
                    wrong.append((me, size(), inside()))
                for done in rounds:
                    done[me] += 1
                    barrier()
                    if sum(done) != count:
                        wrong.append(list(done))
                    barrier()

            parallel(REGION(part), None, count, 0)
            assert rounds == [[1] * count] * 3 and not wrong
        assert (number(), size(), inside()) == (0, 1, 0)


def test_regions_of_several_callers_at_once(made: Pool) -> None:
    barrier, parallel = function(made, "GOMP_barrier", NOTHING), function(made, "GOMP_parallel", PARALLEL)
    failures: list[object] = []

    def call() -> None:
        for _ in range(20):
            seen: list[int] = []

            def part(data: int, seen: list[int] = seen) -> None:
                seen.append(0)
                barrier()
                if len(seen) != 3:
                    failures.append(len(seen))

            parallel(REGION(part), None, 3, 0)
            if parts_of(made, 0, 40, 2, 40)[-1][1] != 40:
                failures.append("share")

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    assert not failures


def test_a_region_inside_of_a_part_is_alone(made: Pool) -> None:
    size, parallel = function(made, "omp_get_num_threads", NUMBER), function(made, "GOMP_parallel", PARALLEL)
    sizes: list[tuple[int, int]] = []

    def part(data: int) -> None:
        parallel(REGION(lambda _: sizes.append((size(), 0))), None, 2, 0)
        sizes.append((size(), 1))

    parallel(REGION(part), None, 2, 0)
    assert sorted(sizes) == [(1, 0), (1, 0), (2, 1), (2, 1)]


@pytest.mark.parametrize(("start", "end", "step"), [(0, 10, 1), (3, 100, 7), (10, -5, -2), (5, 5, 1), (0, 1, 1)])
def test_loops_are_shared(made: Pool, start: int, end: int, step: int) -> None:
    kind = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_long] * 4, *[ctypes.POINTER(ctypes.c_long)] * 2)
    loop, parallel = function(made, "GOMP_loop_static_start", kind), function(made, "GOMP_parallel", PARALLEL)
    found: list[int] = []

    def part(data: int) -> None:
        first, last = ctypes.c_long(), ctypes.c_long()
        if loop(start, end, step, 0, ctypes.byref(first), ctypes.byref(last)):
            found.extend(range(first.value, last.value, step))

    parallel(REGION(part), None, 3, 0)
    assert sorted(found) == sorted(range(start, end, step))


def test_the_number_of_threads_belongs_to_a_thread(made: Pool) -> None:
    most = function(made, "omp_get_max_threads", NUMBER)
    choose = function(made, "omp_set_num_threads", ctypes.CFUNCTYPE(None, ctypes.c_int))
    before, others = most(), []
    choose(5)
    other = threading.Thread(target=lambda: others.append(most()))
    other.start()
    other.join()
    assert most() == 5
    choose(before)
    assert most() == before and others[0] != 5


def train(steps: int = 3) -> bytes:
    """Return the losses and weights of a small network after some steps, as bytes."""
    random = np.random.default_rng(0)
    images = ms.Tensor(random.normal(size=(8, 3, 24, 24)).astype(np.float32))
    labels = ms.Tensor(np.arange(8).astype(np.int32))
    ms.set_seed(1)
    layers = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, 2), nn.Flatten()
    net = nn.SequentialCell(*layers, nn.Dense(16 * 12 * 12, 10))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    losses = [step(images, labels).asnumpy().tobytes() for _ in range(steps)]
    return b"".join([*losses, *(p.asnumpy().tobytes() for p in net.get_parameters())])


def at_two_threads(work: Callable[[], bytes]) -> bytes:
    before = ms.get_context("runtime_num_threads")
    ms.set_context(runtime_num_threads=2)
    try:
        return work()
    finally:
        ms.set_context(runtime_num_threads=before)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def test_another_program_changes_no_bit(mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        want = at_two_threads(train)
        for others in (1, 3):
            with disturbed(others):
                assert at_two_threads(train) == want
    finally:
        ms.set_context(mode=before)


def test_results_agree_with_numpy_while_disturbed() -> None:
    random = np.random.default_rng(2)
    softened = ms.jit(lambda a, b: ops.softmax(ops.matmul(a, b), -1).sum(0))
    with disturbed(2):
        for rows, inner, columns in ((1, 300, 1), (257, 511, 1025), (0, 4, 5), (800, 64, 333)):
            a, b = (random.normal(size=s).astype(np.float32) for s in ((rows, inner), (inner, columns)))
            product = a.astype(np.float64) @ b
            shifted = np.exp(product - product.max(-1, keepdims=True))
            want = (shifted / shifted.sum(-1, keepdims=True)).sum(0)
            got = at_two_threads(lambda a=a, b=b: softened(ms.Tensor(a), ms.Tensor(b)).asnumpy().tobytes())
            np.testing.assert_allclose(np.frombuffer(got, np.float32), want, rtol=2e-3, atol=1e-5)


ALONE = """
import os, time, threading
import numpy as np
import mycel as ms
from mycel import ops
ms.set_context(runtime_num_threads=2)
x = ms.Tensor(np.random.default_rng(0).normal(size=(500, 500)).astype(np.float32))
def work():
    return (ops.matmul(x, x) + ops.exp(x)).asnumpy()
want = work()
def threads():
    return len(os.listdir("/proc/self/task"))
"""


def run(program: str, **settings: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE + program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **settings},
    )
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
    return done.stdout


def test_a_process_ends_while_helpers_wait() -> None:
    for program in ("", "os._exit(0)", "import sys; sys.exit(0)", "time.sleep(0.01)"):
        run(program)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted by Linux's files")
def test_who_forks_has_no_helpers() -> None:
    # Short work is the caller's alone while others use the cores: go on until a helper comes.
    program = """
def begin():
    until = time.monotonic() + 60
    while True:
        assert np.array_equal(work(), want)
        if threads() > 1 or time.monotonic() > until:
            return threads()
assert begin() == 2
for _ in range(5):
    child = os.fork()
    if not child:
        before = threads()
        os._exit(10 * before + begin())
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 12, status
    assert begin() == 2
os.register_at_fork(after_in_parent=lambda: print(threads()))
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run(program) == "1\n"


def test_threads_of_python_have_teams_of_their_own() -> None:
    program = """
wrong = []
def call():
    for _ in range(30):
        if not np.array_equal(work(), want):
            wrong.append(1)
callers = [threading.Thread(target=call) for _ in range(3)]
for c in callers: c.start()
for c in callers: c.join()
assert not wrong
print("same", threads() <= 1 + 4)
"""
    assert run(program) == "same True\n"


def test_waiting_can_be_passive() -> None:
    program = """
for _ in range(20):
    assert np.array_equal(work(), want)
used = time.process_time()
time.sleep(0.05)
print(time.process_time() - used < 0.04)
"""
    assert run(program, OMP_WAIT_POLICY="PASSIVE") == "True\n"


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="there is one core"
)
def test_helpers_may_run_everywhere_again() -> None:
    program = """
import subprocess, sys
cores = os.sched_getaffinity(0)
hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
def helpers():
    return [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task")]
until = time.monotonic() + 1
while time.monotonic() < until:
    work()
hog.kill()
hog.wait()
until = time.monotonic() + 20
while any(set != cores for set in helpers()) and time.monotonic() < until:
    work()
print(all(set == cores for set in helpers()), os.sched_getaffinity(0) == cores)
"""
    assert run(program) == "True True\n"


@pytest.mark.parametrize(
    ("settings", "threads", "limit"),
    [
        ({"OMP_NUM_THREADS": "3,2"}, 3, MOST_THREADS),
        ({"OMP_NUM_THREADS": "5", "OMP_THREAD_LIMIT": "2"}, 5, 2),
        ({"OMP_THREAD_LIMIT": "0"}, None, MOST_THREADS),
        ({"OMP_NUM_THREADS": "many", "OMP_THREAD_LIMIT": "few"}, None, MOST_THREADS),
    ],
)
def test_numbers_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], threads: int | None, limit: int
) -> None:
    for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert thread_limit() == limit
    assert default_threads() == threads if threads else default_threads() >= 1


def test_fewer_threads_than_wanted_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from mycel._src.engines.native.runtime.runtime import runtime

    before = runtime().threads
    monkeypatch.setattr(runtime().pool, "start", lambda count: 1)
    try:
        runtime().set_threads(4)
        runtime().begin_team()
        assert runtime().threads == 1
    finally:
        monkeypatch.undo()
        runtime().set_threads(before)
