"""Ranks that are threads of one process: operations at once, shared functions, own groups."""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.transport import thread_ranks
from mycel.communication import create_group, get_group_size, get_rank
from tests.communication import sweep


def test_operations_that_wait_for_other_threads() -> None:
    # One program serves the operation in all threads, and each of them waits in it for the others.
    def program(rank: int) -> list[list[float]]:
        x, found = ms.Tensor([float(rank)]), []
        for _ in range(10):
            found.append(ops.AllReduce()(x).tolist())
            found.append(ops.AllGather()(x).tolist())
            found.append(ms.grad(lambda x: ops.AllReduce()(x * x).sum())(x).tolist())
        ops.barrier()
        return found

    for count in (2, 3):
        ranks = list(range(count))
        for rank, found in enumerate(thread_ranks.run(count, program)):
            assert found == [[sum(ranks)], [*map(float, ranks)], [2.0 * count * rank]] * 10


def test_a_compiled_function_that_all_ranks_call() -> None:
    summed = ms.jit(lambda x: ops.AllReduce()(x) * 10 + get_rank())
    for count in (3, 2):
        found = thread_ranks.run(count, lambda rank: [summed(ms.Tensor([rank + 1.0])).tolist() for _ in range(5)])
        assert found == [[[count * (count + 1) / 2 * 10 + rank]] * 5 for rank in range(count)]


def test_groups_are_those_of_a_rank() -> None:
    def program(rank: int) -> tuple[float, int]:
        members = [0, 2] if rank % 2 == 0 else [1, 3]
        create_group("mine", members)
        x = ms.Tensor(np.float32(rank))
        return float(ops.AllReduce(group="mine")(x)), get_group_size("mine")

    assert thread_ranks.run(4, program) == [(2.0, 2), (4.0, 2), (2.0, 2), (4.0, 2)]
    with pytest.raises(ValueError, match="no group 'mine'"):
        get_group_size("mine")


@pytest.mark.parametrize("count", [2, 3])
def test_all_operations_among_threads(count: int) -> None:
    thread_ranks.run(count, lambda rank: sweep.check(rank, count))


@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_a_rank_to_which_nobody_sends(kind: str) -> None:
    def program(rank: int) -> list[tuple[int, ...]]:
        x, came = ms.Tensor(np.ones(2, kind)), [[0, 0], [2, 2]][rank]
        operation = lambda x: ops.AlltoAllV()(x, [0, 2], came)
        shapes = [f(x).shape for f in (operation, ms.jit(operation)) for _ in range(2)]
        ops.barrier()
        return shapes

    assert thread_ranks.run(2, program) == [[(0,)] * 4, [(4,)] * 4]
