"""Sparse tensors as values: what they hold, what they refuse, and how they pass through compiled
functions, gradients and vmap.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mycel as ms
from mycel import COOTensor, CSRTensor, Parameter, RowTensor, SparseTensor, Tensor, nn, ops
from mycel._src.foundation.errors import VmapError
from mycel._src.foundation.pytree import fixed_in, flatten, map_fixed, unflatten

CHECKED = {"COOTensor": "SciPy", "CSRTensor": "SciPy", "RowTensor": "definition", "SparseTensor": "definition"}
RANDOM = np.random.default_rng(0)
DENSE = RANDOM.normal(size=(5, 7)) * (RANDOM.random((5, 7)) < 0.4)
MATRIX = sp.csr_matrix(DENSE)
RIGHT = RANDOM.normal(size=(7, 3))


def csr() -> CSRTensor:
    return Tensor(DENSE).to_csr()


def coo() -> COOTensor:
    return Tensor(DENSE).to_coo()


def test_what_they_say_of_themselves() -> None:
    for x in (csr(), coo()):
        assert x.shape == (5, 7) and x.ndim == 2 and x.size == MATRIX.nnz
        assert x.dtype is ms.float64 and x.itemsize == 8 and x.astype(ms.float16).itemsize == 2
        assert np.array_equal(x.abs().values.asnumpy(), np.abs(MATRIX.data))
        assert np.array_equal((-x).values.asnumpy(), -MATRIX.data)
        again = type(x)(**{type(x).__name__[:3].lower() + "_tensor": x})
        assert all(a is b for a, b in zip(again.to_tuple(), x.to_tuple()))
    indptr, indices, values, shape = csr().to_tuple()
    assert np.array_equal(
        sp.csr_matrix((values.asnumpy(), indices.asnumpy(), indptr.asnumpy()), shape).toarray(), DENSE
    )
    places, values, shape = coo().to_tuple()
    assert np.array_equal(sp.coo_matrix((values.asnumpy(), places.asnumpy().T), shape).toarray(), DENSE)
    small = COOTensor(Tensor([[0, 1]], ms.int32), Tensor([2.0]), (1, 2))
    assert repr(small).startswith("COOTensor(shape=[1, 2], dtype=Float32, indices=Tensor(shape=[1, 2], dtype=Int32")
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.values = Tensor([1.0])


def test_the_older_classes(caplog: Any) -> None:
    with caplog.at_level("ERROR", "mycel"):
        rows = RowTensor(Tensor([0, 2]), Tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2))
        assert rows.dense_shape == (3, 2) and rows.indices.tolist() == [0, 2] and rows.values.shape == (2, 2)
        assert RowTensor(row_tensor=rows).values is rows.values
        sparse = SparseTensor(Tensor([[0, 1, 1]]), Tensor([3.0]), (1, 2, 3))
        assert sparse.shape == (1, 2, 3) and sparse.values.tolist() == [3.0] and sparse.indices.shape == (1, 3)
        assert not isinstance(sparse, COOTensor)
        for call, message in (
            (lambda: RowTensor(Tensor([0]), Tensor([[1.0], [2.0]]), (3, 1)), "a row of shape"),
            (lambda: RowTensor(Tensor([0]), Tensor([[1.0]]), (3, 2)), "a row of shape"),
            (lambda: SparseTensor(Tensor([[0, 1]]), Tensor([3.0]), (1, 2, 3)), "must have 3 numbers"),
        ):
            with pytest.raises(ValueError, match=message):
                call()


I, V = Tensor([[0, 1], [1, 2]]), Tensor([1.0, 2.0])
P, C = Tensor([0, 1, 2]), Tensor([1, 2])


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: COOTensor(), TypeError, "indices must be a Tensor, not NoneType"),
        (lambda: COOTensor(I, [1.0, 2.0], (3, 4)), TypeError, "values must be a Tensor, not list"),
        (lambda: COOTensor(I, V, [3, 4]), TypeError, "shape must be a tuple of ints, not list"),
        (lambda: COOTensor(I, V, (3, 4.0)), TypeError, "holds a float"),
        (
            lambda: COOTensor(I.astype(ms.float32), V, (3, 4)),
            TypeError,
            "indices must be int16, int32 or int64, not float32",
        ),
        (lambda: COOTensor(I, V, (3,)), ValueError, "shape must have 2 dimensions"),
        (lambda: COOTensor(Tensor([[0, 1, 1]]), Tensor([1.0]), (3, 4, 2)), ValueError, "shape must have 2 dimensions"),
        (lambda: COOTensor(I, V, (0, 4)), ValueError, "must be positive"),
        (lambda: COOTensor(C, V, (3, 4)), ValueError, "indices must have 2 dimensions"),
        (lambda: COOTensor(I, Tensor([[1.0], [2.0]]), (3, 4)), ValueError, "values must have 1 dimension"),
        (lambda: COOTensor(I, Tensor([1.0]), (3, 4)), ValueError, "the same first size"),
        (lambda: COOTensor(Tensor([[0, 1, 1]]), Tensor([1.0]), (3, 4)), ValueError, "must have 2 numbers"),
        (lambda: COOTensor(I, coo_tensor=coo()), TypeError, "either coo_tensor or the parts"),
        (lambda: COOTensor(coo_tensor=csr()), TypeError, "coo_tensor must be a COOTensor, not CSRTensor"),
        (lambda: CSRTensor(P.astype(ms.float32), C, V, (2, 4)), TypeError, "indptr must be int16, int32 or int64"),
        (lambda: CSRTensor(P, C, V, (3, 4)), ValueError, r"indptr must have shape\[0\] \+ 1 = 4 elements, not 3"),
        (lambda: CSRTensor(P, Tensor([1]), V, (2, 4)), ValueError, "the same first size"),
        (lambda: CSRTensor(P, C, Tensor([[1.0], [2.0]]), (2, 4)), ValueError, "one dimension less than shape"),
        (lambda: CSRTensor(P, C, Tensor([[1.0], [2.0]]), (2, 4, 3)), ValueError, "from the third on"),
        (lambda: CSRTensor(P, C, V, (2,)), ValueError, "at least 2 dimensions"),
        (lambda: CSRTensor(csr_tensor=1), TypeError, "csr_tensor must be a CSRTensor, not int"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_they_are_trees_of_their_values() -> None:
    x = csr()
    leaves, structure = flatten({"a": x})
    assert len(leaves) == 1 and leaves[0] is x.values
    assert flatten({"a": x * 2})[1] == structure and hash(flatten({"a": x * 2})[1]) == hash(structure)
    assert flatten({"a": csr()})[1] != structure
    back = unflatten(structure, [x.values * 3])["a"]
    assert type(back) is CSRTensor and back.indices is x.indices and np.allclose(back.to_dense().asnumpy(), 3 * DENSE)
    assert all(a is b for a, b in zip(fixed_in(structure), (x.indptr, x.indices, x.shape)))
    other = unflatten(map_fixed(lambda v: v if isinstance(v, tuple) else v + 0, structure), leaves)["a"]
    assert other.indices is not x.indices and other.values is x.values


def test_they_pass_through_compiled_functions() -> None:
    @ms.jit
    def parts(x: Any, y: Any) -> Any:
        made = CSRTensor(x.indptr, x.indices, x.values * 2, x.shape)
        return {"same": y, "made": made, "coo": made.to_coo(), "sums": made.sum(1), "size": y.ndim}

    for scale in (1.0, 2.0):
        found = parts(csr() * scale, coo() * scale)
        assert type(found["made"]) is CSRTensor and type(found["coo"]) is COOTensor and found["size"] == 2
        assert np.allclose(found["made"].to_dense().asnumpy(), 2 * scale * DENSE)
        assert np.allclose(found["coo"].to_dense().asnumpy(), 2 * scale * DENSE)
        assert np.allclose(found["same"].to_dense().asnumpy(), scale * DENSE)
    kept = csr()
    assert ms.jit(lambda v: (kept, v + 1))(Tensor(1.0))[0] is kept


def test_dataclasses_come_back_with_the_values_of_the_call() -> None:
    @dataclasses.dataclass
    class Pair:
        first: Any
        second: Any

    pair = Pair(Tensor([1.0, 2.0]), [Tensor(3.0)])
    found = ms.jit(lambda p: (p, ms.grad(lambda p: (p.first * p.second[0]).sum())(p)))(pair)
    assert found[0].first.tolist() == [1.0, 2.0] and found[0].second[0].item() == 3.0
    assert found[1].first.tolist() == [3.0, 3.0] and found[1].second[0].item() == 3.0


def test_gradients_have_the_places_of_the_argument() -> None:
    def loss(x: Any, b: Any) -> Any:
        return (x.mm(b) ** 2).sum()

    residual = 2 * (MATRIX @ RIGHT)
    by_values = (residual @ RIGHT.T)[MATRIX.nonzero()]
    x = csr()
    whole = ms.jit(lambda x, b: ms.grad(loss, (0, 1))(x, b))
    for fn in (ms.grad(loss, (0, 1)), ms.grad(ms.jit(loss), (0, 1)), whole):
        by_x, by_b = fn(x, Tensor(RIGHT))
        assert type(by_x) is CSRTensor and by_x.shape == (5, 7) and by_x.indices.tolist() == x.indices.tolist()
        assert np.allclose(by_x.values.asnumpy(), by_values) and np.allclose(by_b.asnumpy(), MATRIX.T @ residual)
    _, tangent = ms.jvp(lambda x: x.to_dense(), (x,), (x * 2,))
    assert np.allclose(tangent.asnumpy(), 2 * DENSE)
    out, pull = ms.vjp(lambda x: x * 3, x)
    (pulled,) = (pull(out),) if isinstance(pull(out), CSRTensor) else pull(out)
    assert np.allclose(pulled.values.asnumpy(), 9 * MATRIX.data)
    again = ms.grad(lambda v: ms.recompute(lambda v: x._with(v * v).to_coo(), v).values.sum())(x.values)
    assert np.allclose(again.asnumpy(), 2 * MATRIX.data)


def test_vmap_maps_values_and_shares_places() -> None:
    x, values = csr(), RANDOM.normal(size=(4, MATRIX.nnz))
    found = ms.vmap(lambda x, b: x.mm(b), (0, None))(x._with(Tensor(values)), Tensor(RIGHT))
    wanted = [sp.csr_matrix((v, MATRIX.indices, MATRIX.indptr), (5, 7)) @ RIGHT for v in values]
    assert np.allclose(found.asnumpy(), wanted)
    scaled = ms.vmap(lambda v: (x._with(v) * 2).to_coo())(Tensor(values))
    assert type(scaled) is COOTensor and np.allclose(scaled.values.asnumpy(), 2 * values)
    assert scaled.indices.tolist() == x.to_coo().indices.tolist()
    columns = ms.vmap(lambda x, b: x.mv(b), (None, 1), 1)(x, Tensor(RIGHT))
    assert np.allclose(columns.asnumpy(), MATRIX @ RIGHT)
    with pytest.raises(VmapError, match="positions differ between examples"):
        ms.vmap(lambda v, i: COOTensor(i, v, (3, 4)))(Tensor(np.ones((2, 3))), Tensor(np.zeros((2, 3, 2), np.int64)))


class Graph(nn.Cell):
    """A layer over the edges of a graph, whose weights are values of a sparse matrix too."""

    def __init__(self) -> None:
        super().__init__()
        self.adjacency = csr()
        self.edges = Parameter(Tensor(MATRIX.data), name="edges")
        self.weight = Parameter(Tensor(RIGHT), name="weight")

    def construct(self, x: Any) -> Any:
        weighted = CSRTensor(self.adjacency.indptr, self.adjacency.indices, self.edges, self.adjacency.shape)
        return ops.tanh(weighted.mm(self.weight)) + self.adjacency.mv(x)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_cells_hold_and_use_them(mode: int) -> None:
    before, net, x = ms.get_context("mode"), Graph(), RIGHT[:, :1]
    ms.set_context(mode=mode)
    try:
        wanted = np.tanh(MATRIX @ RIGHT) + MATRIX @ x
        assert np.allclose(net(Tensor(x)).asnumpy(), wanted)
        by_edges, by_weight = ms.grad(lambda x: net(x).sum(), None, net.trainable_params())(Tensor(x))
    finally:
        ms.set_context(mode=before)
    slope = 1 - np.tanh(MATRIX @ RIGHT) ** 2
    assert np.allclose(by_weight.asnumpy(), MATRIX.T @ slope)
    assert np.allclose(by_edges.asnumpy(), (slope @ RIGHT.T)[MATRIX.nonzero()])


def test_one_compiled_function_serves_all_counts_of_values() -> None:
    @ms.jit
    def both(x: Any) -> Any:
        y = x.to_csr()
        return (y + y).sum(1), y.mm(Tensor(RIGHT)), (y.to_coo() + y.to_coo()).to_dense()

    for seed in range(4):
        dense = DENSE * (np.random.default_rng(seed).random((5, 7)) < seed / 3)
        sums, product, double = both(Tensor(dense))
        assert np.allclose(sums.asnumpy(), 2 * dense.sum(1, keepdims=True))
        assert np.allclose(product.asnumpy(), dense @ RIGHT) and np.allclose(double.asnumpy(), 2 * dense)
    assert "0 breaks" in str(ms.explain(both))
