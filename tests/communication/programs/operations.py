"""What every rank of several processes checks of the operations: values, gradients, graphs, groups.

``mycel launch -n 4 several.py`` runs it; a rank that finds a difference raises.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, ops

ms.communication.init()
RANK, SIZE = ms.communication.get_rank(), ms.communication.get_group_size()
KINDS = ("float32", "float64", "float16", "int32", "int64", "uint8", "int8")


def of(rank, shape=(4, 3), kind="float32"):
    """The values of one rank: small whole numbers, so that every type adds them exactly."""
    return np.random.default_rng(rank + 10).integers(0, 4, shape).astype(kind)


ALL = [of(r) for r in range(SIZE)]
MINE = ALL[RANK]


def same(found, wanted):
    found = found.asnumpy() if isinstance(found, Tensor) else found
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    np.testing.assert_array_equal(found, wanted)


def new(shape, kind="float32"):
    return Tensor(np.full(shape, 7).astype(kind))


def world():
    assert (RANK, SIZE) == (mint.distributed.get_rank(), mint.distributed.get_world_size())
    assert ms.communication.get_local_rank() == RANK and ms.communication.get_local_rank_size() == SIZE
    assert ms.communication.get_process_group_ranks() == list(range(SIZE))
    assert mint.distributed.is_initialized()
    ms.communication.init()
    mint.distributed.init_process_group()


def reductions():
    numpy = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
    for kind in KINDS:
        for op, combine in numpy.items():
            x = Tensor(of(RANK, kind=kind))
            wanted = combine.reduce([of(r, kind=kind) for r in range(SIZE)]).astype(kind)
            same(ops.AllReduce(op)(x), wanted)
            assert ops.all_reduce(x, op) is None
            same(x, wanted)
    same(ops.AllReduce("avg")(Tensor(MINE)), sum(ALL) / np.float32(SIZE))
    with pytest.raises(TypeError, match="whole number"):
        ops.AllReduce("avg")(Tensor(MINE.astype(np.int32)))
    for shape in ((), (0, 2), (40000,)):
        same(ops.AllReduce()(Tensor(of(RANK, shape))), sum(of(r, shape) for r in range(SIZE)))
    x = Tensor(MINE)
    ops.reduce(x, 2)
    same(x, sum(ALL) if RANK == 2 else MINE)
    same(ops.ReduceScatter()(Tensor(MINE)), sum(ALL)[RANK : RANK + 1])
    out = new((1, 3))
    ops.reduce_scatter_tensor(out, Tensor(MINE), "max", async_op=True).wait()
    same(out, np.maximum.reduce(ALL)[RANK : RANK + 1])
    out = new((3,))
    ops.reduce_scatter(out, [Tensor(row) for row in MINE])
    same(out, sum(ALL)[RANK])
    rows = [1, 0, 2, 1]
    out = new((rows[RANK], 3))
    ops.reduce_scatter_tensor_uneven(out, Tensor(MINE), rows)
    first = sum(rows[:RANK])
    same(out, sum(ALL)[first : first + rows[RANK]])
    same(
        ops.ReduceScatterV()(Tensor(MINE.reshape(-1)), [3, 0, 6, 3]),
        sum(ALL).reshape(-1)[3 * first :][: 3 * rows[RANK]],
    )


def gathers():
    for kind in (*KINDS, "bool", "complex64"):
        same(ops.AllGather()(Tensor(of(RANK, kind=kind))), np.concatenate([of(r, kind=kind) for r in range(SIZE)]))
    same(ops.AllGather()(Tensor(np.float32(RANK))), np.arange(SIZE, dtype=np.float32))
    outs = [new((4, 3)) for _ in range(SIZE)]
    ops.all_gather(outs, Tensor(MINE))
    for found, wanted in zip(outs, ALL):
        same(found, wanted)
    rows = [2, 0, 3, 1]
    parts = [of(r, (n, 2)) for r, n in enumerate(rows)]
    out = new((6, 2))
    ops.all_gather_into_tensor_uneven(out, Tensor(parts[RANK]), rows)
    same(out, np.concatenate(parts))
    same(
        ops.AllGatherV()(Tensor(of(RANK, (rows[RANK],))), rows),
        np.concatenate([of(r, (n,)) for r, n in enumerate(rows)]),
    )
    out = new((16, 3))
    ops.gather_into_tensor(out, Tensor(MINE), 3)
    same(out, np.concatenate(ALL) if RANK == 3 else new((16, 3)).asnumpy())
    outs = [new((4, 3)) for _ in range(SIZE)]
    mint.distributed.gather(Tensor(MINE), outs if RANK == 1 else None, 1)
    same(outs[2], ALL[2] if RANK == 1 else new((4, 3)).asnumpy())


def from_one():
    x = Tensor(MINE)
    ops.broadcast(x, 1)
    same(x, ALL[1])
    (y,) = ops.Broadcast(3)((Tensor(MINE),))
    same(y, ALL[3])
    out = new((1, 3))
    ops.scatter_tensor(out, Tensor(MINE), 2)
    same(out, ALL[2][RANK : RANK + 1])
    same(ops.CollectiveScatter(src_rank=1)(Tensor(MINE)), ALL[1][RANK : RANK + 1])
    out = new((3,))
    mint.distributed.scatter(out, [Tensor(row) for row in MINE] if RANK == 0 else None, 0)
    same(out, ALL[0][RANK])


def to_all():
    same(
        ops.AlltoAll(SIZE, 0, 1)(Tensor(MINE)),
        np.concatenate([x[RANK : RANK + 1] for x in ALL], 1),
    )
    sent = [[(i + j) % 3 for j in range(SIZE)] for i in range(SIZE)]
    given = [of(r, (sum(row), 2)) for r, row in enumerate(sent)]
    starts = [np.cumsum([0, *row])[RANK] for row in sent]
    wanted = np.concatenate([x[s : s + row[RANK]] for x, s, row in zip(given, starts, sent)])
    came = [row[RANK] for row in sent]
    out = new(wanted.shape)
    ops.all_to_all_single(out, Tensor(given[RANK]), came, sent[RANK])
    same(out, wanted)
    out = new(wanted.shape)
    ops.all_to_all_v_c(out, Tensor(given[RANK]), sum(sent, []))
    same(out, wanted)
    line = Tensor(given[RANK].reshape(-1))
    same(ops.AlltoAllV(block_size=2)(line, sent[RANK], came), wanted.reshape(-1))
    same(ops.AlltoAllVC(block_size=2)(line, Tensor(np.array(sent))), wanted.reshape(-1))
    outs = [new((r + 1, 2)) for r in range(SIZE)]
    ops.all_to_all(outs, [Tensor(np.full((RANK + 1, 2), 10.0 * RANK + k, np.float32)) for k in range(SIZE)])
    for r, found in enumerate(outs):
        same(found, np.full((r + 1, 2), 10.0 * r + RANK, np.float32))


def messages():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    big = np.full((300, 1000), RANK, np.float32)
    ops.send(Tensor(big), right)
    out = new(big.shape)
    ops.recv(out, left)
    same(out, np.full_like(big, left))
    handle = ops.irecv(out, left, tag=3)
    ops.isend(Tensor(-big), right, tag=4).wait()
    ops.isend(Tensor(big + 1), right, tag=3).wait()
    handle.wait()
    same(out, np.full_like(big, left + 1))
    ops.irecv(out, left, tag=4).wait()
    same(out, np.full_like(big, -left))
    mine, there, here = Tensor(MINE), new((4, 3)), new((4, 3))
    batch = [
        ops.P2POp("irecv", there, left),
        ops.P2POp("irecv", here, RANK),
        ops.P2POp("isend", mine, RANK),
        ops.P2POp("isend", mine, right),
    ]
    for handle in ops.batch_isend_irecv(batch):
        handle.wait()
    same(there, ALL[left])
    same(here, MINE)
    if RANK == 0:
        ops.Send(sr_tag=5, dest_rank=1)(mine)
    if RANK == 1:
        same(ops.Receive(sr_tag=5, src_rank=0, shape=(4, 3), dtype=ms.float32)(), ALL[0])
    exchange = ops.NeighborExchange([right], [left], [(4, 3)], [(4, 3)], ms.float32)
    same(exchange((mine,))[0], ALL[left])
    with pytest.raises(ValueError, match="itself"):
        ops.send(mine, RANK)
    with pytest.raises(ValueError, match="no rank 9"):
        ops.send(mine, 9)


def borders():
    # Each sends its border to the neighbour on its right or left.
    other = RANK ^ 1
    right, image = not RANK & 1, np.full((1, 1, 2, 2), RANK, np.float32)
    ranks = [-1, -1, other if right else -1, -1, -1, -1, -1 if right else other, -1]
    lengths = [0, 0, 0 if right else 1, 1 if right else 0]
    op = ops.NeighborExchangeV2(ranks, lengths, ranks, lengths, "NCHW")
    pair = [image, np.full((1, 1, 2, 1), other, np.float32)]
    same(op(Tensor(image)), np.concatenate(pair if right else pair[::-1], 3))


def objects():
    found = [None] * SIZE
    ops.all_gather_object(found, {"rank": RANK, "text": "x" * RANK})
    assert found == [{"rank": r, "text": "x" * r} for r in range(SIZE)]
    given = ["a", RANK]
    ops.broadcast_object_list(given, 2)
    assert given == ["a", 2]
    out = [None]
    ops.scatter_object_list(out, list("wxyz") if RANK == 1 else None, 1)
    assert out == ["wxyz"[RANK]]
    found = [None] * SIZE
    ops.gather_object(RANK, found if RANK == 0 else None)
    assert found == (list(range(SIZE)) if RANK == 0 else [None] * SIZE)
    if RANK == 3:
        ops.send_object_list([1, "b"], 0)
    if RANK == 0:
        held = [None, None]
        ops.recv_object_list(held, 3)
        assert held == [1, "b"]
    ops.barrier()


def groups():
    ms.communication.create_group("even", [2, 0])
    odd = mint.distributed.new_group([1, 3])
    name = "even" if RANK % 2 == 0 else odd
    members = [2, 0] if RANK % 2 == 0 else [1, 3]
    assert ms.communication.get_group_size(name) == 2 and ms.communication.get_rank(name) == members.index(RANK)
    assert ms.communication.get_world_rank_from_group_rank("even", 0) == 2
    same(ops.AllReduce(group=name)(Tensor(MINE)), ALL[members[0]] + ALL[members[1]])
    same(ops.AllGather(group=name)(Tensor(MINE)), np.concatenate([ALL[m] for m in members]))
    with pytest.raises(RuntimeError, match="no member"):
        ops.AllReduce(group="even" if RANK % 2 else odd)(Tensor(MINE))
    with pytest.raises(ValueError, match="the ranks are 0 to 3"):
        ms.communication.create_group("none", [4])
    # Compiled functions notice that a name stands for other ranks.
    summed = ms.jit(lambda x: ops.AllReduce(group="changing")(x))
    for members in ([0, 1, 2, 3], [0, 1] if RANK < 2 else [2, 3]):
        ms.communication.create_group("changing", members)
        same(summed(Tensor(MINE)), sum(ALL[m] for m in members))
        ms.communication.destroy_group("changing")
    alone = mint.distributed.new_group([RANK])
    same(ops.AllReduce(group=alone)(Tensor(MINE)), MINE)
    ms.communication.destroy_group("even")


def gradients():
    weight = Tensor(of(RANK + 20))
    weights = [of(r + 20) for r in range(SIZE)]

    def check(operation, wanted, wide=(4, 3)):
        scale = Tensor(np.resize(weight.asnumpy(), wide))
        loss = lambda x: (operation(x) * scale).sum()
        same(ms.grad(loss)(Tensor(MINE)), wanted)
        same(ms.jit(ms.grad(loss))(Tensor(MINE)), wanted)
        same(ms.grad(ms.jit(loss))(Tensor(MINE)), wanted)

    def resized(r, shape):
        return np.resize(weights[r], shape)

    check(ops.AllReduce(), sum(weights))
    whole = sum(resized(r, (16, 3)) for r in range(SIZE))
    check(ops.AllGather(), whole[4 * RANK : 4 * RANK + 4], (16, 3))
    check(ops.ReduceScatter(), np.concatenate([resized(r, (1, 3)) for r in range(SIZE)]), (1, 3))
    check(
        ops.AlltoAll(SIZE, 0, 1),
        np.concatenate([resized(r, (1, 12))[:, 3 * RANK : 3 * RANK + 3] for r in range(SIZE)]),
        (1, 12),
    )
    # Rank 0 receives nothing, and rank 1 sends nothing.
    rows = [[0, 4, 0, 0], [0, 0, 0, 0], [0, 1, 1, 2], [0, 2, 2, 0]]
    came = [row[RANK] for row in rows]
    op = ops.AlltoAllV(block_size=3)
    line = [of(r, (3 * sum(row),)) for r, row in enumerate(rows)]
    loss = lambda x: (op(x, rows[RANK], came) * (RANK + 1)).sum()
    wanted = np.repeat(np.repeat(np.arange(1.0, SIZE + 1, dtype=np.float32), rows[RANK]), 3)
    for made in (ms.grad(loss), ms.jit(ms.grad(loss)), ms.grad(ms.jit(loss))):
        same(made(Tensor(line[RANK])), wanted)
    check(lambda x: ops.Broadcast(1)((x,))[0], sum(weights) if RANK == 1 else np.zeros((4, 3), np.float32))


def graphs():
    @ms.jit
    def whole(x):
        y = ops.AllReduce()(x * 2)
        z = ops.AllGather()(y[:1])
        return ops.ReduceScatter()(z) + ops.AlltoAll(SIZE, 0, 1)(x).sum()

    x = Tensor(MINE)
    plain = sum(2 * a for a in ALL)[:1] * SIZE + sum(a[RANK].sum() for a in ALL)
    for _ in range(3):
        same(whole(x), plain.astype(np.float32))

    @ms.jit
    def pieces(x):
        y = ops.AllReduce()(x)
        if RANK == 0:
            ops.send(y + 1, 1)
        out = ops.zeros((4, 3), ms.float32)
        if RANK == 1:
            ops.recv(out, 0)
        ops.barrier()
        return ops.AllReduce()(out) + 0 * y  # what nobody uses is not computed

    for _ in range(2):
        same(pieces(x), sum(ALL) + 1)

    @ms.jit
    def written(x):
        ops.all_reduce(x)
        return x * 2

    same(written(Tensor(MINE)), 2 * sum(ALL))


def mismatches():
    with pytest.raises(ValueError, match=r"all_reduce sum.*must be alike"):
        ops.AllReduce()(Tensor(of(RANK, (2 + (RANK == 3),))))
    # Who hears of it last hears that another has ended over it.
    with pytest.raises(RuntimeError, match="all ranks of a group must call the same collectives|ended"):
        ops.AllReduce("max" if RANK == 2 else "min")(Tensor(MINE))
        ops.AllReduce("max" if RANK == 1 else "min")(Tensor(MINE))


CHECKS = (
    world,
    reductions,
    gathers,
    from_one,
    to_all,
    messages,
    borders,
    objects,
    groups,
    gradients,
    graphs,
    mismatches,
)

if __name__ == "__main__":
    for check in CHECKS:
        check()
    print(f"rank {RANK}: {len(CHECKS)} checks", flush=True)
