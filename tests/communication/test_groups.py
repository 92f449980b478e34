"""A process that is alone: ranks, sizes and groups under both sets of names, and what it says where
the environment speaks of more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import mycel as ms
from mycel import communication as c
from mycel import ops
from mycel._src.compiler.transport.rank_environment import SIZES

CHECKED = {
    f"ops.{name}": "definition"
    for name in (
        "destroy_process_group",
        "get_backend",
        "get_global_rank",
        "get_group_rank",
        "get_process_group_ranks",
        "get_rank",
        "get_world_size",
        "init_process_group",
        "is_available",
        "is_initialized",
        "new_group",
    )
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in SIZES:
        monkeypatch.delenv(variable, raising=False)
    c.release()
    yield
    c.release()


def test_names_of_mindspore() -> None:
    c.init("hccl")
    assert (
        c.GlobalComm.INITED
        and c.GlobalComm.BACKEND == "hccl"
        and c.GlobalComm.WORLD_COMM_GROUP == c.HCCL_WORLD_COMM_GROUP
    )
    c.create_group("mine", [0])
    for group in (c.HCCL_WORLD_COMM_GROUP, c.NCCL_WORLD_COMM_GROUP, c.MCCL_WORLD_COMM_GROUP, "mine"):
        assert (c.get_rank(group), c.get_group_size(group), c.get_local_rank(group), c.get_local_rank_size(group)) == (
            0,
            1,
            0,
            1,
        )
        assert c.get_world_rank_from_group_rank(group, 0) == c.get_group_rank_from_world_rank(0, group) == 0
        assert c.get_process_group_ranks(group) == [0] and c.get_comm_name(group) == group
    c.destroy_group("mine")
    with pytest.raises(ValueError, match="there is no group 'mine'"):
        c.get_rank("mine")


def test_names_of_pytorch() -> None:
    assert ops.is_available() and not ops.is_initialized()
    ops.init_process_group("mccl", world_size=1, rank=0)
    assert ops.is_initialized() and ops.get_backend() == "mccl"
    group = ops.new_group([0])
    assert group != ops.new_group([0])
    for name in (None, group, ops.new_group()):
        assert (ops.get_rank(name), ops.get_world_size(name), ops.get_process_group_ranks(name)) == (0, 1, [0])
        assert ops.get_global_rank(name, 0) == ops.get_group_rank(name, 0) == 0
    ops.destroy_process_group(group)
    assert ops.get_rank(group) == ops.get_world_size(group) == -1
    other = ops.new_group([0], backend="hccl")
    ops.destroy_process_group()
    assert not ops.is_initialized() and ops.get_rank(other) == -1
    with ops.TCPStore("127.0.0.1", 0, is_master=True) as store:
        ops.init_process_group(store=store, world_size=1, rank=0)
    assert ops.is_initialized()


@pytest.mark.parametrize("variable", SIZES)
@pytest.mark.parametrize(
    "call",
    [
        c.init,
        c.get_rank,
        ops.get_rank,
        ops.init_process_group,
        ops.new_group,
        lambda: ops.all_reduce(ms.Tensor(1.0)),
        ops.AllReduce,
    ],
)
def test_one_of_several_processes_is_told(monkeypatch: pytest.MonkeyPatch, variable: str, call: Any) -> None:
    monkeypatch.setenv(variable, "8")
    with pytest.raises(RuntimeError, match="there are 8 ranks, but neither|one of 8, .* call mycel.communication.init"):
        call()
    monkeypatch.setenv(variable, "1")
    call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.init_process_group("gloo"), ValueError, "must be 'hccl'"),
        (lambda: ops.init_process_group(world_size=4), ValueError, "world_size is 4"),
        (lambda: ops.init_process_group(rank=1), ValueError, "rank 1 is not"),
        (lambda: ops.init_process_group(world_size="1"), TypeError, "must be an int"),
        (lambda: ops.init_process_group(init_method="tcp://x", store=1), ValueError, "exclude each other"),
        (lambda: ops.init_process_group(store=1), TypeError, "must be a TCPStore"),
        (lambda: ops.init_process_group(init_method="tcp://127.0.0.1:1"), ValueError, "need world_size and rank"),
        (lambda: ops.new_group([0, 0]), TypeError, "a rank twice"),
        (lambda: ops.new_group([0, 1]), ValueError, r"\[0, 1\] is not possible"),
        (lambda: ops.new_group(0), TypeError, "must be a list"),
        (lambda: ops.new_group([True]), TypeError, "must be an int"),
        (lambda: ops.new_group(backend="gloo"), ValueError, "must be 'hccl'"),
        (lambda: ops.get_global_rank(None, 1), ValueError, "no rank 1"),
        (lambda: ops.get_group_rank("nobody", 0), ValueError, "no group 'nobody'"),
        (lambda: ops.get_group_rank(None, 3), ValueError, "no rank 3"),
        (lambda: ops.get_rank(0), TypeError, "group must be a string"),
        (lambda: ops.destroy_process_group("nobody"), ValueError, "no group 'nobody'"),
        (lambda: c.create_group(1, [0]), TypeError, "must be a string"),
        (lambda: c.create_group("hccl_world_group", [0]), ValueError, "already"),
        (lambda: c.get_world_rank_from_group_rank("hccl_world_group", 1), ValueError, "no rank 1"),
    ],
)
def test_arguments_that_cannot_be(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
