"""Random pipelines: whoever makes the rows, wherever they resume, whatever dies, they are equal.

Every program is compared with a model in plain Python, or with the pipeline without workers where
it draws random numbers (`programs.py`). `MYCEL_EDGES=20` runs twenty times as many.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel.dataset import config, offloading
from mycel.dataset.caching import admin
from mycel.dataset.execution import worker_pool
from tests.dataset.programs import Program, plain, rows_of

EPOCHS = 2
COUNT = 100 * int(os.environ.get("MYCEL_EDGES", "1"))
FIRST = int(os.environ.get("MYCEL_FIRST", "0"))


def expected_of(program: Program, waits: int | None = None) -> list[list[Any]]:
    """Return the rows of each epoch, of the model or without workers, compared where both are."""
    config.set_debug_mode(True)
    base = rows_of(program.build(random.Random(0), False, waits), EPOCHS)
    config.set_debug_mode(False)
    if program.rows is not None:
        assert base == [[plain(row.values()) for row in program.rows]] * EPOCHS, program
    return base


def killer(at: int) -> Any:
    """Return a function that kills all workers when so many rows were seen."""

    def seen(count: int) -> None:
        if count == at:
            for crew in list(worker_pool._crews):
                for pid in crew.pids():
                    os.kill(pid, signal.SIGKILL)

    return seen


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a cache server; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        yield 0
        return
    number = 20000 + (os.getpid() + 7919) % 20000
    admin.start(number)
    yield number
    admin.stop(number)


def check_cached(program: Program, choose: random.Random, expected: list[list[Any]], port: int) -> None:
    """Check one program with some of its rows in a cache, resumed, and made again from it."""
    session = admin.generate_session(port)
    cache = ds.DatasetCache(session, port=port, prefetch_size=choose.choice((1, 4, 20)))
    try:
        data = program.build(choose, False, None, cache)
        epoch = choose.randrange(EPOCHS)
        step = choose.randint(0, len(expected[epoch]))
        left = [expected[epoch][step:], *expected[epoch + 1 :]]
        if choose.random() < 0.5:
            # Rows are kept as they are asked for, from the middle on.
            assert rows_of(data, EPOCHS, {"epoch": epoch, "step": step}) == left, (program, "cached", step)
        assert rows_of(data, EPOCHS) == expected, (program, "cached")
        again = program.build(choose, False, None, cache)
        assert rows_of(again, EPOCHS, {"epoch": epoch, "step": step}) == left, (program, "from the cache", step)
        assert rows_of(again, EPOCHS) == expected, (program, "from the cache")
    finally:
        admin.destroy_session(session, port)
        cache.client.close()


class Same(nn.Cell):
    """The columns themselves."""

    def construct(self, *columns: Any) -> Any:
        return columns


def check_offloaded(program: Program, data: Any, expected: list[list[Any]]) -> None:
    """Check the rows that a network sees where the end of the pipeline is its beginning."""
    found = offloading.split(data)
    if found is None:
        return
    front: Any = found.before(Same())
    iterator = found.dataset.create_tuple_iterator(num_epochs=EPOCHS, output_numpy=True)
    seen = [
        [plain([column.asnumpy() for column in front(*map(ms.Tensor, row))]) for row in iterator] for _ in range(EPOCHS)
    ]
    iterator.stop()
    assert seen == expected, (program, "offloaded")


def check(seed: int, port: int = 0) -> None:
    """Check one program, with workers, resumed, with killed workers and waiting for updates, with
    the cache of a server at a port and the end of it in a network.
    """
    ds.config.set_seed(seed + 1)
    config.set_callback_timeout(10)
    program, choose = Program(seed), random.Random(seed)
    expected = expected_of(program)
    has_processes = worker_pool.has_processes("tests") and choose.random() < 0.4
    data = program.build(choose, has_processes)
    assert rows_of(data, EPOCHS) == expected, program
    epoch = choose.randrange(EPOCHS)
    step = choose.randint(0, len(expected[epoch]))
    state = {"epoch": epoch, "step": step}
    left = [expected[epoch][step:], *expected[epoch + 1 :]]
    assert rows_of(data, EPOCHS, state) == left, (program, state)
    if has_processes and expected[0]:
        assert rows_of(data, EPOCHS, None, killer(choose.randint(1, 2 * len(expected[0])))) == expected, program
    check_offloaded(program, data, expected)
    if port and choose.random() < 0.5:
        check_cached(program, choose, expected, port)
    waits = choose.randint(0, len(program.steps))
    drawn = [name for name, _ in program.steps[waits:]]
    if not {"shuffle", "concat", "shard"} & set(drawn):
        # What is drawn depends on the height of nodes.
        expected = expected_of(program, waits)
        left = [expected[epoch][step:], *expected[epoch + 1 :]]
        data = program.build(choose, False, waits)
        assert rows_of(data, EPOCHS) == expected, (program, "waits", waits)
        assert rows_of(data, EPOCHS, state) == left, (program, state, "waits", waits)


@pytest.mark.parametrize("part", range(4))
def test_programs(part: int, port: int) -> None:
    for seed in range(FIRST + part, FIRST + COUNT, 4):
        check(seed, port)
