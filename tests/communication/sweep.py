"""What one of several ranks checks of every operation, with NumPy as oracle: all element types,
tensors without elements, groups that overlap, handles, compiled functions, and errors by name.

`check(rank, size)` is called by ranks that are threads (`test_threads`) or processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, communication, mint, ops
from mycel._src.foundation.dtype import from_any
from mycel.compat.inner.communication import comm_func

Array = np.ndarray[Any, Any]
KINDS = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
SHAPES: list[tuple[int, ...]] = [(2,), (4, 3), (0,), (2, 0), (1, 2, 3)]
REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def of(rank: int, shape: Sequence[int], kind: str) -> Array:
    """The values of one rank: small whole numbers, so that every type adds them exactly."""
    values = np.random.default_rng([rank, *shape]).integers(0, 3, shape)
    return np.asarray(values.astype(from_any(kind).numpy))


def same(found: Any, wanted: Array) -> None:
    assert found.dtype == from_any(wanted.dtype) and tuple(found.shape) == wanted.shape, (found, wanted)
    assert found.asnumpy().tobytes() == np.ascontiguousarray(wanted).tobytes(), (found, wanted)


def new(shape: Sequence[int], kind: str) -> Tensor:
    return Tensor(np.full(shape, 1, np.int64).astype(from_any(kind).numpy))


def check(rank: int, size: int) -> None:
    """Check everything in the world, in groups that overlap, and in others that do not."""
    world = ops.get_process_group_ranks()
    assert world == list(range(size))
    groups = {"all": world, "turned": world[::-1], "less": world[:-1], "end": world[-2:], "mine": [rank]}
    for name, ranks in groups.items():
        if rank not in ranks:
            continue
        communication.create_group(name, ranks)
        assert communication.get_rank(name) == ranks.index(rank)
        assert communication.get_process_group_ranks(name) == ranks
        assert [communication.get_world_rank_from_group_rank(name, k) for k in range(len(ranks))] == ranks
        assert communication.get_group_rank_from_world_rank(ranks[-1], name) == len(ranks) - 1
        assert mint.distributed.get_global_rank(name, 0) == ranks[0]
        for k, kind in enumerate(KINDS):
            values(name, ranks, ranks.index(rank), SHAPES[k % len(SHAPES)], kind)
        compiled(name, ranks, ranks.index(rank))
        errors(name, ranks)
        communication.destroy_group(name)
    ops.barrier()


def values(name: str, ranks: list[int], own: int, shape: tuple[int, ...], kind: str) -> None:
    """Check every operation of one group for one type."""
    count, whole = len(ranks), [of(r, (2 * len(ranks), *shape), kind) for r in ranks]
    mine = whole[own]
    share = slice(2 * own, 2 * own + 2)
    place = len(ranks) // 2
    target = ranks[place]

    def tensor() -> Tensor:
        return Tensor(mine.copy())

    for op, combine in REDUCTIONS.items() if kind != "bool" and not kind.startswith("complex") else ():
        total = combine.reduce(whole).astype(mine.dtype)
        x = tensor()
        handle = ops.all_reduce(x, op, name, async_op=True)
        handle.wait()
        same(x, total)
        same(comm_func.all_reduce(tensor(), op, name)[0], total)
        same(comm_func.reduce(tensor(), target, op, name), total if own == place else mine)
        ops.reduce(x := tensor(), target, op, name)
        same(x, total if own == place else mine)
        same(comm_func.reduce_scatter_tensor(tensor(), op, name)[0], total[share])
        ops.reduce_scatter_tensor(out := new((2, *shape), kind), tensor(), op, name)
        same(out, total[share])
    joint = np.concatenate(whole)
    same(comm_func.all_gather_into_tensor(tensor(), name)[0], joint)
    ops.all_gather_into_tensor(out := new(joint.shape, kind), tensor(), name, async_op=True).wait()
    same(out, joint)
    outs = [new(mine.shape, kind) for _ in ranks]
    ops.all_gather(outs, tensor(), name)
    for found, wanted in zip(outs, whole):
        same(found, wanted)
    same(comm_func.gather_into_tensor(tensor(), target, name), joint if own == place else np.zeros_like(joint))
    ops.gather_into_tensor(out := new(joint.shape, kind), tensor(), target, name)
    same(out, joint if own == place else new(joint.shape, kind).asnumpy())
    mint.distributed.gather(tensor(), outs if own == place else None, target, name)
    same(comm_func.broadcast(tensor(), target, name), whole[place])
    ops.broadcast(x := tensor(), target, name)
    same(x, whole[place])
    same(comm_func.scatter_tensor(tensor(), target, name), whole[place][share])
    parts = [Tensor(p) for p in np.split(mine, count)]
    mint.distributed.scatter(out := new((2, *shape), kind), parts if own == place else None, target, name)
    same(out, whole[place][share])
    ops.all_to_all(outs := [new((2, *shape), kind) for _ in ranks], parts, name)
    came = [w[share] for w in whole]
    for found, wanted in zip(outs, came):
        same(found, wanted)
    shapes = [(2, *shape)] * count
    for found, wanted in zip(comm_func.all_to_all_with_output_shape(shapes, parts, name)[0], came):
        same(found, wanted)
    ops.all_to_all_single(out := new(mine.shape, kind), tensor(), None, None, name)
    same(out, np.concatenate(came))
    same(
        comm_func.all_to_all_single_with_output_shape(mine.shape, tensor(), [2] * count, [2] * count, name)[0],
        np.concatenate(came),
    )
    messages(name, ranks, own, whole, kind)


def messages(name: str, ranks: list[int], own: int, whole: list[Array], kind: str) -> None:
    """Check tensors and objects that go from one member to another."""
    right, left = ranks[(own + 1) % len(ranks)], ranks[own - 1]
    if len(ranks) > 1:
        ops.isend(Tensor(whole[own]), right, name, tag=1).wait()
        handle = ops.irecv(out := new(whole[own].shape, kind), left, name, tag=1)
        handle.wait()
        same(out, whole[own - 1])
        batch = [ops.P2POp("isend", Tensor(whole[own]), right, name)]
        batch.append(ops.P2POp("irecv", out := new(whole[own].shape, kind), left, name))
        for handle in ops.batch_isend_irecv(batch):
            handle.wait()
        same(out, whole[own - 1])
    objects: list[Any] = [None] * len(ranks)
    ops.all_gather_object(objects, (kind, own), name)
    assert objects == [(kind, k) for k in range(len(ranks))]
    held = [kind, own]
    ops.broadcast_object_list(held, ranks[-1], name)
    assert held == [kind, len(ranks) - 1]
    mint.distributed.barrier(name)
    ops.barrier(name, async_op=True).wait()


def compiled(name: str, ranks: list[int], own: int) -> None:
    """Check operations whose results only one member uses, in compiled functions."""
    whole = [of(r, (2,), "float32") for r in ranks]
    total, last = np.add.reduce(whole), len(ranks) - 1
    mine, target = Tensor(whole[own]), ranks[-1]

    @ms.jit
    def written(x: Tensor, out: Tensor) -> Tensor:
        y = x * 1
        ops.reduce(y, target, group=name)
        ops.gather_into_tensor(out, x, target, name)
        return y

    same(ms.jit(lambda x: comm_func.reduce(x, target, group=name))(mine), total if own == last else whole[own])
    joint = np.concatenate(whole)
    gathered = ms.jit(lambda x: comm_func.gather_into_tensor(x, target, name))(mine)
    same(gathered, joint if own == last else 0 * joint)
    out = new(joint.shape, "float32")
    same(written(mine, out), total if own == last else whole[own])
    same(out, joint if own == last else np.ones_like(joint))
    gradient = ms.grad(lambda x: (comm_func.reduce(x, target, group=name) * (1 + own)).sum())(mine)
    same(gradient, np.full(2, 1.0 + last + (0 if own == last else 1 + own), np.float32))


def errors(name: str, ranks: list[int]) -> None:
    """Check that what cannot be is refused before anything is sent."""
    x, absent = ops.ones((len(ranks), 2)), max(ranks) + 1
    wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: ops.broadcast(x, absent, name), ValueError, f"broadcast: there is no rank {absent}"),
        (lambda: ops.reduce(x, -1, group=name), ValueError, "reduce: there is no rank -1"),
        (lambda: ops.send(x, absent, name), ValueError, f"send: there is no rank {absent}"),
        (lambda: ops.all_reduce(x, "mean", name), TypeError, "all_reduce: op must be one of"),
        (lambda: ops.all_reduce(1.0, group=name), TypeError, "all_reduce: tensor must be"),
        (lambda: ops.all_reduce(x, group="nobody"), ValueError, "all_reduce: there is no group 'nobody'"),
        (lambda: ops.all_gather([x] * (len(ranks) + 1), x, name), TypeError, "all_gather: tensor_list must be a list"),
        (lambda: comm_func.all_to_all_with_output_shape([], [x], name), TypeError, "must be a list"),
        (lambda: communication.create_group(name, ranks), ValueError, "there is a group"),
        (lambda: communication.create_group("twice", [ranks[0]] * 2), ValueError, "is not possible"),
        (lambda: communication.get_world_rank_from_group_rank(name, len(ranks)), ValueError, "there is no rank"),
    ]
    if len(ranks) > 1:
        rows = ops.ones((len(ranks) + 1, 2))
        wrong.append((lambda: comm_func.reduce_scatter_tensor(rows, group=name), ValueError, "rows do not divide"))
        wrong.append((lambda: comm_func.scatter_tensor(rows, ranks[0], name), ValueError, "rows do not divide"))
        whole = ops.ones(2, ms.int32)
        wrong.append((lambda: ops.all_reduce(whole, "avg", name), TypeError, "is no whole number"))
    for call, kind, message in wrong:
        with pytest.raises(kind, match=message):
            call()


if __name__ == "__main__":
    communication.init()
    check(communication.get_rank(), communication.get_group_size())
    print(f"rank {communication.get_rank()}: checks", flush=True)
