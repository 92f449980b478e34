"""Settings of the process that have another value while any thread is in a block."""

from __future__ import annotations

import os
import threading

import pytest

from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.python_runtime.scoped_process_settings import WhileOpen


class Level:
    """A setting, and how often it was changed."""

    def __init__(self, value: int) -> None:
        self.value, self.changes = value, 0

    def get(self) -> int:
        return self.value

    def put(self, value: int) -> None:
        self.value, self.changes = value, self.changes + 1


def raised(level: Level) -> WhileOpen[int]:
    return WhileOpen(level.get, level.put, lambda before: max(before, 9))


def test_the_last_block_restores() -> None:
    level = Level(1)
    setting = raised(level)
    with setting.block():
        with setting.block():
            assert level.value == 9
        assert level.value == 9
    assert level.value == 1 and level.changes == 2
    with pytest.raises(KeyError), setting.block():
        raise KeyError
    assert level.value == 1 and not setting.open


def test_blocks_may_end_in_any_order() -> None:
    level = Level(1)
    setting = raised(level)
    first, second = setting.block(), setting.block()
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert level.value == 9
    second.__exit__()
    second.__exit__()
    assert level.value == 1


def test_what_is_changed_within_a_block_stays() -> None:
    level = Level(1)
    setting = raised(level)
    with setting.block():
        level.value = 4
        with setting.block():
            assert level.value == 9
        level.value = 4
    assert level.value == 4
    level.value = 12
    with setting.block():
        assert level.value == 12
    assert level.value == 12


def test_a_block_ends_with_its_object() -> None:
    level = Level(1)
    setting = raised(level)
    block = setting.block()
    # As an interrupt does between the beginning of a block and the body of its statement.
    block.__enter__()
    assert level.value == 9
    del block
    finalization.settle()
    assert level.value == 1
    setting.block()
    assert level.value == 1 and level.changes == 2


def test_threads_share_the_setting() -> None:
    level = Level(1)
    setting = raised(level)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(500):
            with setting.block():
                if level.value != 9:
                    wrong.append(level.value)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and level.value == 1 and not setting.open


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_has_the_blocks_of_its_own_thread(own: bool) -> None:
    level = Level(1)
    setting = raised(level)
    entered, over = threading.Event(), threading.Event()

    def work() -> None:
        with setting.block():
            entered.set()
            over.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    block = setting.block()
    if own:
        block.__enter__()
    pid = os.fork()
    if pid == 0:
        right = level.value == (9 if own else 1)
        block.__exit__()
        os._exit(0 if right and level.value == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0 and level.value == 9
    block.__exit__()
    over.set()
    thread.join()
    assert level.value == 1
