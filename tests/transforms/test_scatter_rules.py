"""Sums with transposed reads: rows are written where they belong, with the values of the sum."""

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing.index import scatter_nd, take_add
from mycel._src.compiler.transforms.optimisation.simplify import simplify
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float16, float32, float64, int64


def prims(graph):
    return [node.prim for node in graph.nodes]


def summed(kind, shape, size, way, bounds="wrap", axis=0, again=False):
    """A graph of a table of `size` rows and the rows to be added, in one of the forms."""
    rest = (3,)
    whole = rest[:axis] + (size,) + rest[axis:]
    x = input_node(tensor_type(whole, kind), "x")
    rows = input_node(tensor_type(rest[:axis] + shape + rest[axis:], kind), "rows")
    index = input_node(tensor_type(shape, int64), "index")
    rate = input_node(tensor_type((), kind), "rate")
    table = take_add(rows, index, axis=axis, size=size, bounds=bounds)
    out = {
        "plain": lambda: E.add(table, x),
        "minus": lambda: E.sub(x, table),
        "scaled": lambda: E.sub(x, E.mul(S.broadcast_to(rate, whole), table)),
        "twice": lambda: E.add(x, E.neg(E.mul(E.mul(table, rate), 0.5))),
    }[way]()
    return Graph([x, rows, index, rate], [out, E.exp(table)] if again else [out], "f")


@pytest.mark.parametrize("way", ["plain", "minus", "scaled", "twice"])
def test_rows_are_written_where_they_belong(way):
    draw = np.random.default_rng(3)
    for _ in range(8):
        kind = (float32, float64)[draw.integers(2)]
        shape = tuple(int(d) for d in draw.integers(0, 5, draw.integers(0, 3)))
        size, bounds = int(draw.integers(1, 6)), ("wrap", "drop")[draw.integers(2)]
        graph = summed(kind, shape, size, way, bounds)
        result = simplify(graph)
        assert scatter_nd in prims(result) and take_add not in prims(result)
        low, high = (-size, size) if bounds == "wrap" else (-2 * size, 2 * size)
        inputs = [
            draw.normal(size=graph.inputs[0].shape).astype(kind.numpy),
            draw.normal(size=graph.inputs[1].shape).astype(kind.numpy),
            draw.integers(low, high, shape),
            np.asarray(draw.normal(), kind.numpy),
        ]
        for a, b in zip(evaluate(result, inputs), evaluate(graph, inputs)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_rows_stay_where_the_sum_says_more():
    for graph in (
        summed(float16, (4,), 5, "scaled"),
        summed(float32, (4,), 5, "scaled", again=True),
        summed(float32, (4,), 5, "plain", axis=1),
    ):
        assert take_add in prims(simplify(graph))
    x = input_node(tensor_type((3, 2), float32), "x")
    rows, index = input_node(tensor_type((2,), float32), "rows"), input_node(tensor_type((), int64), "index")
    each = input_node(tensor_type((3, 2), float32), "each")
    table = take_add(rows, index, axis=0, size=3)
    assert take_add in prims(simplify(Graph([x, rows, index, each], [E.sub(x, E.mul(each, table))], "f")))


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_descent_without_momentum_touches_what_was_read(mode):
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:

        class Net(ms.nn.Cell):
            def __init__(self):
                super().__init__()
                self.table = ms.Parameter(ms.Tensor(start), name="table")

            def construct(self, index):
                return (self.table[index] ** 2).sum()

        start = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
        net = Net()
        optimizer = ms.nn.SGD(net.trainable_params(), 0.1)
        step = ms.nn.TrainOneStepCell(net, optimizer)
        index = np.array([[0, 2], [2, 6]], np.int32)
        step(ms.Tensor(index))
        expected = start.astype(np.float64)
        np.subtract.at(expected, index, 0.2 * start[index])
        np.testing.assert_allclose(net.table.asnumpy(), expected, rtol=1e-5, atol=1e-6)
        assert not optimizer.accum[0].asnumpy().any() and optimizer.stat[0].asnumpy().all()
    finally:
        ms.set_context(mode=before)


def test_a_momentum_of_0_stays():
    optimizer = ms.nn.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], 0.1)
    optimizer.momentum.set_data(0.0)
    with pytest.raises(ValueError, match="SGD: was made without momentum; make one with a momentum above 0"):
        optimizer.momentum.set_data(ms.Tensor(0.9))
    assert optimizer.momentum.item() == 0.0
