"""All transports by the same random collectives: their results are NumPy's, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.transport import shared_memory_windows, thread_ranks
from mycel._src.compiler.transport.base import REDUCTIONS, Transport, reduced
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.compiler.transport.rank_environment import world
from mycel._src.compiler.transport.shared_memory_windows import LEAST
from mycel._src.compiler.transport.single_process import Alone
from mycel._src.compiler.transport.sockets import SMALL, LostRank, Sockets
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.foundation.dtype import ALL

Program = Callable[[Transport], Any]


def alone(count: int, program: Program) -> list[Any]:
    return [program(Alone())]


def threaded(count: int, program: Program) -> list[Any]:
    return thread_ranks.run(count, lambda rank: program(transport()))


def connected(count: int, program: Program) -> list[Any]:
    """Ranks that are threads here, and connected by sockets as processes are."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    with TCPStore("127.0.0.1", 0, is_master=True) as store:

        def main(rank: int) -> None:
            try:
                with TCPStore("127.0.0.1", store.port) as own:
                    way = Sockets(rank, count, own)
                try:
                    results[rank] = program(way)
                finally:
                    way.close()
            except BaseException as error:
                errors.append(error)

        started = [threading.Thread(target=main, args=(rank,)) for rank in range(count)]
        for one in started:
            one.start()
        for one in started:
            one.join()
    if errors:
        raise errors[0]
    return results


RUNS = {"alone": (alone, 1), "threads": (threaded, 4), "sockets": (connected, 4)}


def drawn(seed: Sequence[int], shape: Sequence[int], kind: str) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(seed).normal(size=shape) * 8).astype(np.float64).astype(np.dtype(kind))


@pytest.mark.parametrize("name", RUNS)
def test_collectives(name: str) -> None:
    run, count = RUNS[name]
    groups = [tuple(range(count)), *([(2, 0), (3, 1)] if count == 4 else [])]
    kinds = [d.name for d in ALL if not d.name.startswith(("complex", "string", "float8", "int4"))]

    def program(way: Transport) -> int:
        draw, done = np.random.default_rng(5), 0
        for case in range(60):
            kind, ranks = kinds[case % len(kinds)], groups[draw.integers(len(groups))]
            rows = int(draw.choice([0, 1, 3, 2000])) * 4
            shape, uneven = (rows, int(draw.choice([1, 3, 5]))), [int(n) for n in draw.integers(0, 4, 4)]
            if way.rank not in ranks:
                continue
            own, size = ranks.index(way.rank), len(ranks)
            kind = np.dtype(getattr(__import__("ml_dtypes"), kind, kind)).name
            values = [drawn((case, r), shape, kind) for r in ranks]
            mine = values[own]
            op = ["sum", "max", "min", "prod"][case % 4] if kind != "bool" else "any"
            with np.errstate(all="ignore"):
                whole = reduced(values, op)
                same(way.all_reduce(mine, op, ranks), whole)
                same(way.reduce_scatter(mine, 0, op, ranks), np.split(whole, size)[own])
            same(way.all_gather(mine, case % 2, ranks), np.concatenate(values, case % 2))
            parts = [np.split(v, size)[own] for v in values]
            same(way.all_to_all(mine, 0, 1, ranks), np.concatenate(parts, 1))
            lists = [[drawn((case, a, b), (uneven[(a + b) % 4], 2), kind) for b in range(size)] for a in range(size)]
            for found, wanted in zip(way.exchange(lists[own], ranks), [row[own] for row in lists]):
                same(found, wanted)
            for k, found in enumerate(way.all_gather_list(mine[: uneven[own]], ranks)):
                same(found, values[k][: uneven[k]])
            same(way.broadcast(mine, ranks[case % size], ranks), values[case % size])
            way.send(mine, ranks[(own + 1) % size], case)
            same(way.receive(ranks[own - 1], case), values[own - 1])
            way.barrier(ranks)
            done += 1
        return done

    assert min(run(count, program)) > 20


def same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


def test_every_type_of_element_goes_between_ranks() -> None:
    def program(way: Transport) -> None:
        for kind in ALL:
            try:
                array = np.ones((2, 3), kind.numpy)
            except TypeError:
                continue
            way.send(array, 1 - way.rank)
            same(way.receive(1 - way.rank), array)

    connected(2, program)


def test_large_messages_in_any_order_do_not_stop_each_other() -> None:
    size = 3 << 20

    def program(way: Transport) -> None:
        others = [r for r in range(3) if r != way.rank]
        for tag in (1, 2):
            for other in others:
                way.send(np.full(size, way.rank * 10 + tag, np.uint8), other, tag)
        for other in reversed(others):
            for tag in (2, 1):
                same(way.receive(other, tag), np.full(size, other * 10 + tag, np.uint8))

    connected(3, program)


@pytest.mark.parametrize("op", [op for op in REDUCTIONS if op not in ("any", "all")])
def test_results_are_new_arrays_and_operands_stay(op: str) -> None:
    def program(way: Transport) -> None:
        for size in (3, SMALL):
            x = np.full(size, way.rank + 1.0)
            found = way.all_reduce(x, op, (0, 1))
            found += 1
            np.testing.assert_array_equal(x, way.rank + 1.0)
            way.send(x, 1 - way.rank)
            x += 1
            assert way.receive(1 - way.rank)[0] == 2 - way.rank

    connected(2, program)


@pytest.mark.parametrize("near", [True, False])
def test_large_reductions_with_and_without_shared_memory(near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory_windows, "SIZE", 1 << 20)
    if not near:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    sizes = [(LEAST // 4 + 1, "float32"), (200_001, "float64"), (LEAST // 2, "float16"), (LEAST + 5, "int8")]

    def program(way: Transport) -> None:
        for ranks in ((0, 1, 2), (2, 0)):
            for case, (size, kind) in enumerate(sizes):
                if way.rank in ranks:
                    values = [drawn((case, r), (size,), kind) for r in ranks]
                    with np.errstate(all="ignore"):
                        same(way.all_reduce(values[ranks.index(way.rank)], "sum", ranks), reduced(values, "sum"))
        assert isinstance(way, Sockets)
        assert all((shared is not None) == (near and sys.platform == "linux") for shared in way._windows.values())
        with pytest.raises(ValueError, match="must be alike"):
            way.all_reduce(np.ones(LEAST + way.rank), "sum", (0, 1, 2))

    connected(3, program)


DIFFERENT: dict[str, tuple[Callable[[Transport], Any], str]] = {
    "shapes": (
        lambda way: way.all_reduce(np.ones(2 + way.rank), "sum", (0, 1)),
        r"all_reduce sum: rank 0 has float64 \(2,\) and rank 1 has float64 \(3,\)",
    ),
    "rows": (
        lambda way: way.all_gather(np.ones((SMALL, 1 + way.rank)), 0, (0, 1)),
        r"all_gather \(axis 0\): .* must be alike",
    ),
    "few rows": (lambda way: way.all_gather(np.ones((2 + way.rank, 1)), 0, (0, 1)), "all_gather .* must be alike"),
    "some large": (
        lambda way: way.all_reduce(np.ones(2 + way.rank * LEAST, np.int64), "sum", (0, 1)),
        "must be alike|same collectives",
    ),
    "element types": (
        lambda way: way.all_reduce(np.ones(2, f"f{4 + 4 * way.rank}"), "sum", (0, 1)),
        "float32 .* float64",
    ),
    "gathered types": (
        lambda way: way.all_gather(np.ones(2, f"f{4 + 4 * way.rank}"), 0, (0, 1)),
        "float32 .* float64",
    ),
    "operations": (
        lambda way: way.all_reduce(np.ones(2), "sum", (0, 1)) if way.rank else way.barrier((0, 1)),
        "same collectives in the same order",
    ),
    "reductions": (lambda way: way.all_reduce(np.ones(2), ["sum", "max"][way.rank], (0, 1)), "same collectives"),
    "axes": (lambda way: way.all_gather(np.ones((2, 2)), way.rank, (0, 1)), "same collectives"),
    "joints": (lambda way: way.all_to_all(np.ones((2, 2, 2)), 0, 1 + way.rank, (0, 1)), "same collectives"),
    "cuts": (lambda way: way.all_to_all(np.ones((4, 2)), way.rank, 0, (0, 1)), "same collectives"),
    "shares": (
        lambda way: way.reduce_scatter(np.ones((2 + 2 * way.rank, 3)), 0, "sum", (0, 1)),
        "reduce_scatter sum .* must be alike",
    ),
    "sources": (lambda way: way.broadcast(np.ones(2), way.rank, (0, 1)), "same collectives"),
    "what is awaited": (lambda way: way.broadcast(np.ones(2 + way.rank), 0, (0, 1)), r"broadcast from 0: .* alike"),
    "groups": (
        lambda way: way.barrier((0, 1)) if way.rank else way.barrier((1, 0)),
        "barrier of another group, or another time",
    ),
}


@pytest.mark.parametrize("name", ["threads", "sockets"])
@pytest.mark.parametrize("what", DIFFERENT)
def test_ranks_that_differ_are_told(name: str, what: str) -> None:
    program, message = DIFFERENT[what]

    def checked(way: Transport) -> int:
        # Each of them is told, or hears that the other has ended over it.
        if what == "what is awaited" and way.rank == 0:
            program(way)
            return 1
        with pytest.raises((ValueError, RuntimeError), match=message):
            program(way)
        return 1

    assert RUNS[name][0](2, checked) == [1, 1]


def test_ranks_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rank [01] is none of the ranks \(2, 3\)"):
        connected(2, lambda way: way.barrier((2, 3)))
    with pytest.raises(ValueError, match="no rank 2 among 2"):
        connected(2, lambda way: way.send(np.ones(1), 2))


def test_who_waits_for_a_rank_that_has_ended_is_told() -> None:
    def program(way: Transport) -> str:
        if way.rank == 1:
            way.close()
            with pytest.raises(RuntimeError, match="rank 1 has been released"):
                way.receive(0)
            return ""
        with pytest.raises(LostRank, match="rank 0 waits for rank 1, which has ended") as caught:
            way.barrier((0, 1))
        assert caught.value.lost_rank == 1
        return ""

    connected(2, program)


LOST = """
import os, signal, sys
import numpy as np
from mycel._src.compiler.transport.sockets import Sockets
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.compiler.transport.shared_memory_windows import LEAST
way = Sockets(1, 2, TCPStore("127.0.0.1", int(sys.argv[1])))
if os.fork() == 0:
    # A child of a rank is none, and keeps nobody waiting.
    try:
        way.send(np.ones(1), 0)
    except RuntimeError as error:
        assert "forked" in str(error), error
        signal.pause()
    os._exit(1)
way.send(np.array([os.getpid()]), 0)
signal.pause()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_killed_process_is_named_though_its_child_lives() -> None:
    with TCPStore("127.0.0.1", 0, is_master=True) as store:
        process = subprocess.Popen([sys.executable, "-c", LOST, str(store.port)], start_new_session=True)
        try:
            way = Sockets(0, 2, store)
            process.send_signal(signal.SIGKILL if way.receive(1)[0] == process.pid else signal.SIGTERM)
            with pytest.raises(LostRank, match="rank 0 waits for rank 1, which is gone"):
                way.receive(1)
            with pytest.raises(LostRank):
                for _ in range(100):
                    way.send(np.ones(1 << 20), 1)
            way.close()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_wait_may_have_an_end() -> None:
    def program(way: Transport) -> None:
        assert isinstance(way, Sockets)
        if way.rank:
            way.receive(0)
            return
        way.timeout = 0.05
        with pytest.raises(RuntimeError, match="rank 0 has waited for rank 1 for 0.05 s"):
            way.receive(1)
        way.send(np.ones(1), 1)

    connected(2, program)


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, (1, None, None)),
        ({"MS_WORKER_NUM": "4", "MS_ROLE": "MS_WORKER", "MS_NODE_ID": "3"}, (4, 3, None)),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, (2, 1, None)),
        ({"PMI_SIZE": "2", "PMI_RANK": "0", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}, (2, 0, (0, 2))),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "5", "SLURM_STEP_ID": "0", "MS_SCHED_HOST": "a"}, (8, 5, None)),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, (1, None, None)),
        ({"WORLD_SIZE": "3", "RANK": "2", "MASTER_ADDR": "a"}, (3, 2, None)),
    ],
)
def test_environments(variables: dict[str, str], wanted: tuple[Any, ...]) -> None:
    found = world(variables)
    assert (found.size, found.rank, found.local) == wanted


STEP = {"SLURM_NTASKS": "28", "SLURM_PROCID": "9", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "1", "SLURM_NODEID": "1"}


@pytest.mark.parametrize(
    ("variables", "host", "local"),
    [
        ({"SLURM_STEP_NODELIST": "node[01-04,7]", "SLURM_TASKS_PER_NODE": "8(x3),4"}, "node01", (1, 8)),
        ({"SLURM_JOB_NODELIST": "a,b[1-2]", "SLURM_STEP_TASKS_PER_NODE": "24,4"}, "a", (1, 4)),
        ({"SLURM_NODELIST": "rack[2,5]n[3-4]-ib,z"}, "rack2n3-ib", None),
        ({"SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1", "SLURM_TASKS_PER_NODE": "8"}, "10.0.0.1", None),
        ({"SLURM_STEP_NODELIST": "a", "SLURM_STEP_NUM_NODES": "1", "SLURM_TASKS_PER_NODE": "x"}, "127.0.0.1", None),
        ({"SLURM_STEP_NODELIST": "a", "MS_SCHED_HOST": "b", "SLURM_TASKS_PER_NODE": "1(x2)"}, "b", None),
    ],
)
def test_environments_of_slurm(variables: dict[str, str], host: str, local: tuple[int, int] | None) -> None:
    found = world({**STEP, **variables})
    assert (found.size, found.rank, found.host, found.local, found.kind) == (28, 9, host, local, "sockets")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK_SIZE": "two"}, "RANK_SIZE is 'two', which is no whole number"),
        ({"RANK_SIZE": "2", "RANK_ID": "2"}, "rank 2 of 2"),
        ({"RANK_SIZE": "2"}, "neither RANK_ID nor MS_SCHED_HOST"),
        ({"MS_ROLE": "MS_PSERVER"}, "MS_ROLE is 'MS_PSERVER'"),
        ({"MYCEL_TRANSPORT": "pigeons"}, "it is sockets or mpi"),
    ],
)
def test_environments_without_sense(variables: dict[str, str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        world(variables)
