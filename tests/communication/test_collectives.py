"""Collective operations in a group of one process against their definition there: functions,
objects, handles, gradients, and every check of an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks

RANDOM = np.random.default_rng(1)
SHAPES = ((3, 4), (1,), (0, 2))
FUNCTIONS = """all_gather all_gather_into_tensor all_gather_into_tensor_uneven all_gather_object
    all_reduce all_to_all all_to_all_single all_to_all_v_c barrier batch_isend_irecv broadcast
    broadcast_object_list gather_into_tensor gather_object irecv isend recv recv_object_list reduce
    reduce_scatter reduce_scatter_tensor reduce_scatter_tensor_uneven scatter_object_list
    scatter_tensor send send_object_list set_comm_ops_inplace P2POp ReduceOp
    Barrier Send Receive NeighborExchange NeighborExchangeV2 BatchISendIRecv"""
SEVERAL = tuple((A(*s),) for s in SHAPES)

checks = Checks("definition")
checks.add("ops.AllReduce ops.AllGather ops.ReduceScatter", lambda x: x, *SEVERAL)
checks.add("ops.Reduce ops.CollectiveGather", lambda x: x, *SEVERAL, init={"dest_rank": 0})
checks.add("ops.Broadcast", lambda x: (x,), *SEVERAL, init={"root_rank": 0})
checks.add("ops.CollectiveScatter", lambda x: x, *SEVERAL)
checks.add(
    "ops.AlltoAll",
    lambda x: x,
    (A(3, 4),),
    (A(2, 1),),
    (A(0, 5),),
    init={"split_count": 1, "split_dim": 0, "concat_dim": 1},
)
checks.add("ops.AllGatherV ops.ReduceScatterV", lambda x, n: x, (A(4), [4]), (A(1), (1,)), (A(0), [0]))
checks.add(
    "ops.AlltoAllV", lambda x, m, n: x, (A(4), [2], [2]), (A(2), (1,), (1,)), (A(0), [0], [0]), init={"block_size": 2}
)
checks.add("ops.AlltoAllVC", lambda x, m: x, (A(4), [4]), (A(1), [[1]]), (A(0), [0]))
G = ms.communication.HCCL_WORLD_COMM_GROUP
checks.add(
    "ops.all_gather_matmul",
    lambda a, b, *_: (a @ b, a),
    (A(3, 4), A(4, 2), G, 1),
    (A(1, 1), A(1, 1), G, 1),
    (A(0, 2), A(2, 3), G, 1),
)
checks.add(
    "ops.matmul_reduce_scatter",
    lambda a, b, *_: a @ b,
    (A(3, 4), A(4, 2), G, 1),
    (A(1, 1), A(1, 1), G, 1),
    (A(0, 2), A(2, 3), G, 1),
)
checks.add(
    "ops.matmul_reduce_scatter", lambda a, b, *_, **__: a @ b.T, (A(3, 4), A(2, 4), G, 1), kwargs={"trans_x2": True}
)
test_values, test_gradients = checks.tests()
CHECKED = {**checks.checked, **{f"ops.{n}": "definition" for n in FUNCTIONS.split()}}


@pytest.fixture(autouse=True)
def _in_place() -> Iterator[None]:
    yield
    ops.set_comm_ops_inplace(True)


WRITERS: dict[str, Callable[..., Any]] = {
    "all_gather": lambda f, out, x, **k: f([out], x, **k),
    "all_gather_into_tensor": lambda f, out, x, **k: f(out, x, **k),
    "all_gather_into_tensor_uneven": lambda f, out, x, **k: f(out, x, [x.shape[0]], **k),
    "all_to_all": lambda f, out, x, **k: f([out], [x], **k),
    "all_to_all_single": lambda f, out, x, **k: f(out, x, [x.shape[0]], (x.shape[0],), **k),
    "all_to_all_v_c": lambda f, out, x, **k: f(out, x, [x.shape[0]], **k),
    "gather_into_tensor": lambda f, out, x, **k: f(out, x, 0, **k),
    "scatter_tensor": lambda f, out, x, **k: f(out, x, 0, **k),
    "reduce_scatter": lambda f, out, x, **k: f(out, [x], "max", **k),
    "reduce_scatter_tensor": lambda f, out, x, **k: f(out, x, "prod", **k),
    "reduce_scatter_tensor_uneven": lambda f, out, x, **k: f(out, x, [x.shape[0]], "avg", **k),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "float16"])
def test_results_are_written(name: str, kind: str) -> None:
    for shape in SHAPES:
        x = RANDOM.integers(-9, 9, shape).astype(kind)
        for options in ({}, {"async_op": True}, {"group": G}):
            out, source = Tensor(np.zeros(shape, kind)), Tensor(x)
            handle = WRITERS[name](getattr(ops, name), out, source, **options)
            assert (handle is None) == ("async_op" not in options)
            if handle is not None:
                assert handle.wait() is None
            np.testing.assert_array_equal(out.asnumpy(), x)
            source += 1
            np.testing.assert_array_equal(out.asnumpy(), x)


@pytest.mark.parametrize(
    "op", [ops.ReduceOp.SUM, ops.ReduceOp.MAX, ops.ReduceOp.MIN, ops.ReduceOp.PROD, ops.ReduceOp.AVG]
)
def test_reductions_of_one_value_are_the_value(op: str) -> None:
    for shape in SHAPES:
        x = RANDOM.normal(size=shape)
        t = Tensor(x)
        for result in (ops.all_reduce(t, op), ops.reduce(t, 0, op), ops.broadcast(t, 0), ops.barrier()):
            assert result is None
        np.testing.assert_array_equal(t.asnumpy(), x)
        ops.all_reduce(t, op, async_op=True).wait()
        np.testing.assert_array_equal(ops.AllReduce(op)(t).asnumpy(), x)


def test_new_tensors_instead_of_writing() -> None:
    ops.set_comm_ops_inplace(False)
    x, out = Tensor([[1.0, 2.0]]), Tensor([[0.0, 0.0]])
    for found in (
        ops.all_reduce(x),
        ops.all_gather_into_tensor(None, x),
        ops.reduce_scatter_tensor(None, x),
        ops.all_to_all_single((1, 2), x),
        ops.all_to_all_single(out, x, async_op=True),
    ):
        assert found[0].tolist() == x.tolist() and found[0] is not x
    assert [t.tolist() for t in ops.all_to_all([(1, 2)], [x])[0]] == [x.tolist()]
    assert out.tolist() == [[0.0, 0.0]] and found[1].wait() is None
    with pytest.raises(ValueError, match=r"output of shape \(2, 2\)"):
        ops.all_to_all_single((2, 2), x)
    ops.set_comm_ops_inplace(True, ["all_reduce"])
    assert ops.all_reduce(x) is None


def test_compiled_functions_see_the_choice_between_writing_and_giving() -> None:
    reduced = ms.jit(lambda t: ops.all_reduce(t + 1.0))
    for inplace in (True, False, True):
        ops.set_comm_ops_inplace(inplace)
        found = reduced(Tensor([1.0]))
        assert found is None if inplace else found[0].tolist() == [2.0]


def test_gradients_are_those_of_the_identity() -> None:
    x = Tensor(RANDOM.normal(size=(2, 3)))

    def loss(t: Tensor) -> Tensor:
        out = ops.zeros_like(t)
        ops.all_gather_into_tensor(out, t * 2.0)
        y = t * 3.0
        ops.all_reduce(y)
        return (out * y).sum()

    for compute in (ms.value_and_grad(loss), ms.jit(ms.value_and_grad(loss))):
        value, gradient = compute(x)
        np.testing.assert_allclose(float(value), 6 * (x.asnumpy() ** 2).sum())
        np.testing.assert_allclose(gradient.asnumpy(), 12 * x.asnumpy())


def test_objects_are_copies() -> None:
    thing = {"a": [1, Tensor([2.0])]}
    out: list[Any] = [None]
    ops.all_gather_object(out, thing)
    assert out[0] is not thing and out[0]["a"][0] == 1 and out[0]["a"][1].tolist() == [2.0]
    ops.gather_object((1, "b"), out)
    assert out == [(1, "b")]
    ops.scatter_object_list(out, [3])
    assert out == [3]
    ops.broadcast_object_list(out, 0)
    assert out == [3]


def test_a_batch_may_send_to_oneself() -> None:
    sent = [Tensor([1.0, 2.0]), Tensor([[3]])]
    got = [Tensor([0.0, 0.0]), Tensor([[0]])]
    makers = [("isend", sent[0]), (ops.irecv, got[0]), (ops.isend, sent[1]), ("irecv", got[1])]
    handles = ops.batch_isend_irecv([ops.P2POp(op, t, 0) for op, t in makers])
    assert len(handles) == 1 and handles[0].wait() is None
    assert [t.tolist() for t in got] == [[1.0, 2.0], [[3]]]
    batch = ops.BatchISendIRecv(("isend", "irecv"), [0, 0], [(2,)], (ms.float32,))
    for results in (batch((sent[0],)), ms.jit(lambda t: batch((t,)))(sent[0])):
        assert [t.tolist() for t in results] == [0.0, [1.0, 2.0]]
    exchange = ops.NeighborExchange([0], [0], ([2],), ([2],), ms.float32)
    assert [t.tolist() for t in exchange((sent[0],))] == [[1.0, 2.0]]
    assert ops.Barrier()() is None


def bordered(
    x: np.ndarray, sent: np.ndarray, top: int, bottom: int, left: int, right: int, rows: slice, columns: slice
) -> np.ndarray:
    out = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    out[:, :, rows, columns] = sent
    return out


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 1, 2, 2), (1, 2, 3, 2)])
def test_borders_of_an_image(shape: tuple[int, ...]) -> None:
    x = RANDOM.normal(size=shape)
    nobody = [-1] * 8

    def direction(i: int) -> list[int]:
        return [0 if j == i else -1 for j in range(8)]

    cases = [
        (4, 0, [0, 2, 0, 0], [2, 0, 0, 0], x[:, :, -2:], slice(0, 2), slice(None)),
        (0, 4, [1, 0, 0, 0], [0, 1, 0, 0], x[:, :, :1], slice(-1, None), slice(None)),
        (2, 6, [0, 0, 0, 1], [0, 0, 1, 0], x[..., -1:], slice(None), slice(0, 1)),
        (3, 7, [0, 1, 0, 2], [1, 0, 2, 0], x[:, :, -1:, -2:], slice(0, 1), slice(0, 2)),
    ]
    for way, place, send, receive, part, rows, columns in cases:
        op = ops.NeighborExchangeV2(direction(way), send, direction(place), receive, "NCHW")
        want = bordered(x, part, *receive, rows, columns)
        np.testing.assert_array_equal(op(Tensor(x)).asnumpy(), want)
    alone = ops.NeighborExchangeV2(nobody, [0] * 4, nobody, [1, 0, 0, 2], "NCHW")
    np.testing.assert_array_equal(alone(Tensor(x)).asnumpy(), np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2))))


X, Y = Tensor([[1.0, 2.0]]), Tensor([1.0])
P2P = ops.P2POp


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.all_reduce(1.0), TypeError, "must be a Tensor"),
        (lambda: ops.all_reduce(X, "mean"), TypeError, "op must be one of"),
        (lambda: ops.all_reduce(X, group=1), TypeError, "group must be a string"),
        (lambda: ops.all_reduce(X, group="x"), ValueError, "no group 'x'"),
        (lambda: ops.all_reduce(X, async_op=1), TypeError, "async_op must be a bool"),
        (lambda: ops.broadcast(X, 1), ValueError, "no rank 1"),
        (lambda: ops.broadcast(X, "0"), TypeError, "src must be an int"),
        (lambda: ops.reduce(X, -1), ValueError, "no rank -1"),
        (lambda: ops.all_gather([X, X], X), TypeError, "a list of 1"),
        (lambda: ops.all_gather([Y], X), ValueError, "must be of the type of the result"),
        (lambda: ops.all_gather(X, X), TypeError, "list of tensors"),
        (lambda: ops.all_gather_into_tensor(Y, X), ValueError, "must be of the type"),
        (lambda: ops.all_gather_into_tensor_uneven(X, X, [2]), ValueError, "add up to the 1 rows"),
        (lambda: ops.reduce_scatter_tensor(Tensor(1.0), Tensor(1.0)), ValueError, "no rows to divide"),
        (lambda: ops.all_to_all_single(X, X, [0]), ValueError, "output_split_sizes"),
        (lambda: ops.all_to_all_v_c(X, X, [1, 1]), ValueError, "whole numbers"),
        (lambda: ops.send(X, 0), ValueError, "is this process itself"),
        (lambda: ops.send(X, 1), ValueError, "no rank 1"),
        (lambda: ops.send(1.0), TypeError, "tensor"),
        (lambda: ops.isend(X, 3), ValueError, "no rank 3"),
        (lambda: ops.recv(X, 0), ValueError, "this process itself"),
        (lambda: ops.irecv(X, 2), ValueError, "no rank 2"),
        (lambda: ops.send_object_list([1], 0), ValueError, "this process itself"),
        (lambda: ops.recv_object_list((1,)), TypeError, "must be a list"),
        (lambda: ops.recv_object_list([1], 1), ValueError, "no rank 1"),
        (lambda: ops.all_gather_object([], 1), TypeError, "a list of 1"),
        (lambda: ops.gather_object(1), TypeError, "a list of 1"),
        (lambda: ops.scatter_object_list([], [1]), TypeError, "not empty"),
        (lambda: ops.broadcast_object_list((1,)), TypeError, "must be a list"),
        (lambda: P2P("send", X, 0), TypeError, "isend or irecv"),
        (lambda: P2P("isend", 1, 0), TypeError, "must be a Tensor"),
        (lambda: P2P("isend", X, 0, tag=1), NotImplementedError, "tag must be 0"),
        (lambda: ops.batch_isend_irecv([]), TypeError, "not empty"),
        (lambda: ops.batch_isend_irecv([1]), TypeError, "must be P2POp"),
        (lambda: ops.batch_isend_irecv([P2P("isend", X, 0)]), ValueError, "1 tensors are sent"),
        (lambda: ops.batch_isend_irecv([P2P("isend", X, 1)]), ValueError, "no rank 1"),
        (lambda: ops.batch_isend_irecv([P2P("isend", X, 0), P2P("irecv", X, 0, G)]), TypeError, "of one group"),
        (lambda: ops.set_comm_ops_inplace(1), TypeError, "must be a bool"),
        (lambda: ops.set_comm_ops_inplace(True, ["x"]), ValueError, "no function 'x'"),
        (lambda: ops.all_gather_matmul(X, X, G, 2), ValueError, "world_size is 2"),
        (lambda: ops.all_gather_matmul(X, X, G, 1), ValueError, "inner dimensions"),
        (lambda: ops.matmul_reduce_scatter(X, X, G, 1, bias=1), ValueError, "bias must be None"),
        (lambda: ops.AllReduce("mean"), TypeError, "op must be"),
        (lambda: ops.AllReduce(group=3), TypeError, "group must be a string"),
        (lambda: ops.AllReduce()(Tensor([True])), TypeError, "truth values have no sum"),
        (lambda: ops.Broadcast(1)((X,)), ValueError, "no rank 1"),
        (lambda: ops.AlltoAll(2, 0, 0)(X), ValueError, "the group has 1 members"),
        (lambda: ops.AlltoAll(1, 3, 0)(X), ValueError, "out of range"),
        (lambda: ops.AlltoAllV(block_size=0), ValueError, "must be positive"),
        (lambda: ops.AlltoAllV()(X, [2], [2]), ValueError, "flatten it"),
        (lambda: ops.AllGatherV()(Y, [2]), ValueError, "this process's being 1"),
        (lambda: ops.Send(0, 0)(X), ValueError, "this process itself"),
        (lambda: ops.Receive(0, 0, [1], ms.float32)(), ValueError, "this process itself"),
        (lambda: ops.Send(0, 1)(X), ValueError, "no rank 1"),
        (lambda: ops.BatchISendIRecv(("isend",), [0], [(1,)], (ms.float32,)), ValueError, "each of the 0"),
        (
            lambda: ops.BatchISendIRecv(("isend", "irecv"), [0, 0], [(3,)], (ms.float32,))((Y,)),
            ValueError,
            "is awaited",
        ),
        (lambda: ops.NeighborExchange([1], [0], ([1],), ([1],), ms.float32)((X,)), ValueError, "no rank 1"),
        (lambda: ops.NeighborExchange([0], [0], ([1],), ([2],), ms.float32)((Y,)), ValueError, "of the shapes"),
        (lambda: ops.NeighborExchangeV2([0] * 8, [0] * 4, [-1] * 8, [0] * 4, "NCHW"), ValueError, "a rank twice"),
        (lambda: ops.NeighborExchangeV2([-1] * 8, [0] * 4, [-1] * 8, [0] * 4, "NHWC"), ValueError, "must be 'NCHW'"),
    ],
)
def test_arguments_that_do_not_fit(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_lists_of_tensors_in_one_process() -> None:
    for name, call in (
        ("gather", lambda x, parts: ms.mint.distributed.gather(x, parts)),
        ("scatter", lambda x, parts: ms.mint.distributed.scatter(x, parts)),
    ):
        x, parts = Tensor([1.0, 2.0]), [Tensor([3.0, 4.0])]
        assert call(x, parts) is None
        assert (parts[0] if name == "gather" else x).tolist() == ([1.0, 2.0] if name == "gather" else [3.0, 4.0])
        with pytest.raises(TypeError, match=f"{name}: .* must be a list of 1"):
            call(x, parts * 2)
