"""Operations on sparse matrices against SciPy.

Thresholds, places and slices as the real MindSpore 2.10 gives them on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

import mycel as ms
from mycel import COOTensor, CSRTensor, Tensor, nn, ops

VALUEWISE: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": lambda x: np.arccosh(x),
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "inv": lambda x: 1 / x,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "log1p": np.log1p,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "round": np.round,
    "sigmoid": scipy.special.expit,
    "sin": np.sin,
    "sinh": np.sinh,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
}
FLAT = ("ceil", "floor", "round", "isfinite", "isinf", "isnan")

CHECKED = {
    **{f"ops.{kind}_{name}": "NumPy" for kind in ("coo", "csr") for name in VALUEWISE},
    **{
        f"ops.{name}": "SciPy"
        for name in (
            "coalesce coo2csr coo_add coo_concat csr2coo csr_add csr_div csr_gather csr_mm csr_mul csr_mv "
            "csr_reduce_sum csr_softmax csr_to_coo "
            "csr_to_dense dense_to_sparse_coo dense_to_sparse_csr Coalesce SparseTensorDenseMatmul"
        ).split()
    },
    **{f"ops.{name}": "NumPy" for name in "SparseGatherV2 SparseSlice SparseTensorDenseAdd SparseToDense".split()},
    **{f"ops.{name}": "NumPy" for name in "row_tensor_add sparse_segment_mean".split()},
    **{
        f"ops.{name}": "definition"
        for name in (
            "make_coo_tensor make_csr_tensor make_row_tensor make_row_tensor_inner make_sparse_tensor "
            "coo_tensor_get_dense_shape "
            "coo_tensor_get_indices coo_tensor_get_values csr_tensor_get_dense_shape csr_tensor_get_indices "
            "csr_tensor_get_indptr "
            "csr_tensor_get_values row_tensor_get_dense_shape row_tensor_get_indices row_tensor_get_values"
        ).split()
    },
    "nn.SparseToDense": "NumPy",
    "nn.SparseTensorDenseMatmul": "SciPy",
    "Tensor.to_coo": "SciPy",
    "Tensor.to_csr": "SciPy",
}
SHAPES = [(5, 7, 0.4), (1, 4, 0.6), (6, 1, 0.5), (4, 3, 0.0)]


def drawn(rows: int, columns: int, share: float, seed: int = 0, low: float = -2.0) -> Any:
    """A random matrix as SciPy's; its values are exact in float32."""
    random = np.random.default_rng(seed)
    dense = random.uniform(low, 2, (rows, columns)).astype(np.float32) * (random.random((rows, columns)) < share)
    return sp.csr_matrix(dense.astype(np.float64))


def csr(m: Any, dtype: Any = ms.float64, index: Any = ms.int32) -> CSRTensor:
    return CSRTensor(Tensor(m.indptr, index), Tensor(m.indices, index), Tensor(m.data).astype(dtype), m.shape)


def coo(m: Any, dtype: Any = ms.float64, index: Any = ms.int32) -> COOTensor:
    found = m.tocoo()
    places = np.stack([found.row, found.col], 1)
    return COOTensor(Tensor(places, index), Tensor(found.data).astype(dtype), m.shape)


def close(got: Any, wanted: Any, near: float = 1e-9) -> None:
    array = got.asnumpy() if isinstance(got, Tensor) else got
    assert array.shape == np.shape(wanted)
    np.testing.assert_allclose(array, wanted, rtol=near, atol=near)


def same_csr(got: CSRTensor, wanted: Any, near: float = 1e-9) -> None:
    """Pattern and values of a CSR tensor are those of SciPy's, columns in order."""
    wanted = wanted.tocsr()
    wanted.sort_indices()
    assert got.shape == wanted.shape
    assert got.indptr.tolist() == wanted.indptr.tolist() and got.indices.tolist() == wanted.indices.tolist()
    close(got.values, wanted.data, near)


def slope(function: Callable[[Any], float], x: Any, direction: Any, step: float = 1e-6) -> float:
    return (function(x + step * direction) - function(x - step * direction)) / (2 * step)


def check_gradient(loss: Callable[[Any], Any], x: Any) -> None:
    """The gradient of a function of a float64 array, eagerly and compiled, against a central
    difference.
    """
    direction = np.random.default_rng(3).normal(size=np.shape(x))
    wanted = slope(lambda v: float(loss(Tensor(v))), x, direction)
    for fn in (loss, ms.jit(loss)):
        found = ms.grad(fn)(Tensor(x)).asnumpy()
        np.testing.assert_allclose((found * direction).sum(), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", VALUEWISE)
@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_functions_of_the_stored_values(kind: str, name: str) -> None:
    function, low = getattr(ops, f"{kind}_{name}"), 1.1 if name == "acosh" else 0.1
    for rows, columns, share in SHAPES:
        m = drawn(rows, columns, share, low=low)
        if name in ("acos", "asin", "atanh"):
            m = m / 2.5
        for dtype, near in ((ms.float64, 1e-9), (ms.float32, 3e-5)):
            x = (coo if kind == "coo" else csr)(m, dtype)
            wanted = VALUEWISE[name](m.data)
            for y in (function(x), ms.jit(function)(x)):
                assert type(y) is type(x) and y.shape == x.shape and y.indices.tolist() == x.indices.tolist()
                assert y.dtype is (ms.bool_ if wanted.dtype == bool else dtype)
                close(y.values, wanted, near)
        if name not in FLAT:
            check_gradient(lambda v, x=x: (function(x.astype(ms.float64)._with(v)).values * 1.5).sum(), m.data)
    other = csr(drawn(2, 2, 1.0)) if kind == "coo" else coo(drawn(2, 2, 1.0))
    with pytest.raises(TypeError, match=f"{kind}_{name}: x must be a {kind.upper()}Tensor, not"):
        function(other)


@pytest.mark.parametrize("index", [ms.int16, ms.int32, ms.int64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_with_dense_matrices(shape: Any, index: Any) -> None:
    m = drawn(*shape)
    random = np.random.default_rng(1)
    right, left = random.normal(size=(shape[1], 3)), random.normal(size=(3, shape[0]))
    for dtype, near in ((ms.float64, 1e-9), (ms.float32, 3e-5)):
        x, b = csr(m, dtype, index), Tensor(right).astype(dtype)
        for run in (lambda f: f, ms.jit):
            close(run(ops.csr_mm)(x, b), m @ right, near)
            close(run(lambda x, b: x.mm(b))(x, b), m @ right, near)
            close(run(ops.csr_mv)(x, b[:, :1]), m @ right[:, :1], near)
            close(x.mv(b[:, 0]), m @ right[:, 0], near)
            t = Tensor(left).astype(dtype)
            close(run(lambda x, t: ops.csr_mm(x, t, True, True))(x, t), m.T @ left.T, near)
            c = coo(m, dtype, index)
            close(
                run(lambda c, b: ops.SparseTensorDenseMatmul()(c.indices, c.values, c.shape, b))(c, b), m @ right, near
            )
            close(
                run(lambda c, t: nn.SparseTensorDenseMatmul(True, True)(c.indices, c.values, c.shape, t))(c, t),
                m.T @ left.T,
                near,
            )
    x = csr(m, index=index)
    check_gradient(lambda v: (x._with(v).mm(Tensor(right)) ** 2).sum(), m.data)
    check_gradient(lambda b: (x.mm(b) ** 2).sum(), right)
    check_gradient(lambda b: (ops.csr_mm(x, b, adjoint_a=True, trans_b=True) ** 2).sum(), left)
    check_gradient(lambda v: (x._with(v).mv(Tensor(right[:, :1])) ** 2).sum(), m.data)


def test_adjoints_conjugate() -> None:
    m = (drawn(4, 3, 0.6) + 1j * drawn(4, 3, 0.6, 5)).tocsr()
    b = np.random.default_rng(0).normal(size=(4, 2)) + 1j
    x = csr(m, ms.complex128)
    close(ops.csr_mm(x, Tensor(b), adjoint_a=True), m.conj().T @ b)
    close(ops.csr_mm(x, Tensor(b), trans_a=True), m.T @ b)
    same_csr(ops.csr_mm(x, x, adjoint_a=True), m.conj().T @ m)
    c = coo(m, ms.complex128)
    layer = ops.SparseTensorDenseMatmul(adjoint_st=True, adjoint_dt=True)
    close(layer(c.indices, c.values, Tensor([4, 3]), Tensor(b.conj().T)), m.conj().T @ b)
    close(x.abs().values, np.abs(m.data))


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_sparse_matrices(shape: Any, flags: Any) -> None:
    m = drawn(*shape)
    n = drawn(shape[0] if flags[0] else shape[1], 6, 0.5, 4)
    n = n.T.tocsr() if flags[1] else n
    wanted = (m.T if flags[0] else m) @ (n.T if flags[1] else n)
    for index in (ms.int32, ms.int64):
        x, y = csr(m, index=index), csr(n, index=index)
        for run in (lambda f: f, ms.jit):
            found = run(lambda x, y: ops.csr_mm(x, y, *flags))(x, y)
            same_csr(found, wanted)
            assert found.indices.dtype is index and found.indptr.dtype is index
    check_gradient(lambda v: (ops.csr_mm(x._with(v), y, *flags).values ** 2).sum(), m.data)
    check_gradient(lambda v: (ops.csr_mm(x, y._with(v), *flags).values ** 2).sum(), n.data)


def test_a_product_keeps_places_that_cancel() -> None:
    m, n = sp.csr_matrix([[1.0, 1.0]]), sp.csr_matrix([[1.0], [-1.0]])
    for run in (lambda f: f, ms.jit):
        found = run(ops.csr_mm)(csr(m), csr(n))
        assert found.values.tolist() == [0.0] and found.indptr.tolist() == [0, 1]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_conversions(shape: Any) -> None:
    m = drawn(*shape)
    dense = m.toarray()
    for dtype in (ms.float64, ms.float32, ms.int32):
        values = dense.astype(dtype.numpy if hasattr(dtype, "numpy") else dtype)
        for run in (lambda f: f, ms.jit):
            for found in (run(lambda x: x.to_csr())(Tensor(values)), run(ops.dense_to_sparse_csr)(Tensor(values))):
                same_csr(found, sp.csr_matrix(values))
                assert found.indices.dtype is ms.int32 and found.dtype is dtype
                close(run(ops.csr_to_dense)(found), values)
            for found in (run(lambda x: x.to_coo())(Tensor(values)), run(ops.dense_to_sparse_coo)(Tensor(values))):
                assert found.indices.tolist() == np.argwhere(values).tolist() and found.indices.dtype is ms.int32
                close(run(lambda c: c.to_dense())(found), values)
            same_csr(run(lambda c: c.to_csr())(found), sp.csr_matrix(values))
            back = run(ops.csr_to_coo)(csr(m))
            assert back.indices.tolist() == np.argwhere(dense).tolist()
    assert ops.csr2coo(Tensor(m.indptr, ms.int32), m.nnz).tolist() == m.tocoo().row.tolist()
    pointers = ops.coo2csr(Tensor(m.tocoo().row.astype(np.int32)), shape[0])
    assert pointers.tolist() == m.indptr.tolist() and pointers.dtype is ms.int32
    check_gradient(
        lambda x: (x.to_csr().values ** 2).sum() + (x.to_coo().values ** 3).sum(), np.where(dense == 0, 0.7, dense)
    )
    x, c = csr(m), coo(m)
    check_gradient(
        lambda v: (x._with(v).to_dense() ** 2).sum() + (c._with(v).to_csr().to_coo().to_dense() ** 3).sum(), m.data
    )


def scattered() -> tuple[Any, Any]:
    """Places out of order and more than once, and SciPy's matrix of them."""
    random = np.random.default_rng(2)
    rows, columns, values = random.integers(0, 4, 15), random.integers(0, 5, 15), random.normal(size=15)
    m = sp.coo_matrix((values, (rows, columns)), (4, 5))
    return COOTensor(Tensor(np.stack([rows, columns], 1)), Tensor(values), (4, 5)), m


def test_equal_places_are_joined() -> None:
    x, m = scattered()
    for run in (lambda f: f, ms.jit):
        found = run(lambda x: x.coalesce())(x)
        same_csr(found.to_csr(), m)
        assert found.indices.tolist() == np.argwhere(m.toarray()).tolist()
        by_rows = run(lambda x: x.to_csr())(x)
        assert by_rows.size == 15 and by_rows.indptr.tolist() == np.searchsorted(np.sort(m.row), np.arange(5)).tolist()
        close(by_rows.to_dense(), m.toarray())
        close(run(lambda x: x.to_dense())(x), m.toarray())
    check_gradient(lambda v: (x._with(v).coalesce().values ** 2).sum(), m.data)
    for function in (ops.coalesce, ops.Coalesce()):
        indices, values, shape = function(
            Tensor(np.stack([m.row, m.col]).astype(np.int64)), Tensor(m.data), Tensor([4, 5])
        )
        assert indices.T.tolist() == np.argwhere(m.toarray()).tolist() and shape.tolist() == [4, 5]
        close(values, m.toarray()[m.toarray() != 0])
    cube = np.random.default_rng(0).integers(0, 2, (3, 20))
    indices, values, _ = ops.coalesce(Tensor(cube), Tensor(np.ones(20)), Tensor([2, 2, 2]))
    wanted, counts = np.unique(cube, axis=1, return_counts=True)
    assert indices.tolist() == wanted.tolist() and values.tolist() == counts.tolist()
    indices, values, _ = ops.coalesce(Tensor(np.zeros((2, 0), np.int64)), Tensor(np.zeros(0)), Tensor([2, 2]))
    assert indices.shape == (2, 0) and values.shape == (0,)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_and_differences(shape: Any) -> None:
    m, n = drawn(*shape), drawn(*shape[:2], 0.5, 9)
    for index in (ms.int32, ms.int64):
        for run in (lambda f: f, ms.jit):
            same_csr(run(lambda x, y: x + y)(csr(m, index=index), csr(n, index=index)), m + n)
            same_csr(run(lambda x, y: x - y)(csr(m, index=index), csr(n, index=index)), m - n)
            same_csr(run(lambda x, y: (x + y).to_csr())(coo(m, index=index), coo(n, index=index)), m + n)
            same_csr(run(lambda x, y: (x - y).to_csr())(coo(m, index=index), coo(n, index=index)), m - n)
            found = run(ops.csr_add)(csr(m, index=index), csr(n, index=index), Tensor(2.0), Tensor([-0.5]))
            same_csr(found, 2 * m - 0.5 * n)
            assert found.indices.dtype is index and found.dtype is ms.float64
    dense = np.random.default_rng(0).normal(size=shape[:2])
    close(coo(m) + Tensor(dense), m.toarray() + dense)
    close(coo(m) - Tensor(dense), m.toarray() - dense)
    c = coo(m)
    close(ops.SparseTensorDenseAdd()(c.indices, c.values, c.shape, Tensor(dense)), m.toarray() + dense)
    for axis in (0, 1, -1, -2):
        close(csr(m).sum(axis), m.toarray().sum(axis, keepdims=True))
        close(ms.jit(lambda x, axis=axis: ops.csr_reduce_sum(x, axis))(csr(m)), m.toarray().sum(axis, keepdims=True))
    x = csr(m)
    check_gradient(lambda v: ((x._with(v) + csr(n)).values ** 2).sum() + (x._with(v).sum(1) ** 3).sum(), m.data)
    check_gradient(lambda v: ((c - c._with(v)).values ** 3).sum() + ((c._with(v) + Tensor(dense)) ** 2).sum(), m.data)
    check_gradient(lambda a: (ops.csr_add(x, csr(n), a, a * 2).values ** 2).sum(), np.array(0.7))


def test_a_threshold_drops_small_sums_alone() -> None:
    x = COOTensor(Tensor([[0, 1], [1, 2], [2, 0]]), Tensor([1.0, 2.0, 0.5]), (3, 4))
    y = COOTensor(Tensor([[0, 1], [1, 1], [2, 0]]), Tensor([-4.0, 4.0, -0.5]), (3, 4))
    wanted = {0.0: [-3.0, 4.0, 2.0, 0.0], 2.0: [-3.0, 4.0, 2.0], 4.0: [4.0, 2.0]}
    for least, values in wanted.items():
        for run in (lambda f: f, ms.jit):
            assert run(ops.coo_add)(x, y, Tensor(least)).values.tolist() == values
    assert x.add(y, 4.0).indices.tolist() == [[1, 1], [1, 2]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_and_quotients_of_elements(shape: Any) -> None:
    m, random = drawn(*shape), np.random.default_rng(5)
    for other in (shape[:2], (shape[0], 1), (1, shape[1]), (shape[1],), (1,), ()):
        dense = random.uniform(0.5, 2, other)
        x, c = csr(m), coo(m)
        for run in (lambda f: f, ms.jit):
            close(run(ops.csr_mul)(x, Tensor(dense)).to_dense(), m.toarray() * dense)
            close(run(ops.csr_div)(x, Tensor(dense)).to_dense(), m.toarray() / dense)
            close(run(lambda x, d: (x * d / d).values)(x, Tensor(dense)), m.data)
        if other in ((), shape[:2]):
            close((c * Tensor(dense)).to_dense(), m.toarray() * dense)
            close((c / Tensor(dense)).to_dense(), m.toarray() / dense)
        check_gradient(lambda d, x=x: ((x * d).values ** 2).sum() + (x / d).values.sum(), dense)
    places = (m.toarray() != 0).nonzero()
    dense = random.normal(size=(*shape[:2], 2))
    for run in (lambda f: f, ms.jit):
        gathered = run(lambda p, i, d: ops.csr_gather(p, i, d, shape[:2]))
        close(gathered(x.indptr, x.indices, Tensor(dense)), dense[places])
        close(gathered(x.indptr, x.indices, Tensor(dense[..., 0])), dense[..., 0][places])
    check_gradient(lambda d: (ops.csr_gather(x.indptr, x.indices, d, shape[:2]) ** 2).sum(), dense)
    assert (csr(m) * 2).values.tolist() == (2 * m.data).tolist() and (-coo(m) / 2).values.tolist() == (
        -m.data / 2
    ).tolist()


def test_values_of_more_dimensions() -> None:
    m, random = drawn(4, 5, 0.5), np.random.default_rng(5)
    values, other = random.normal(size=(m.nnz, 2)), random.normal(size=(4, 5, 2))
    x = CSRTensor(Tensor(m.indptr, ms.int32), Tensor(m.indices, ms.int32), Tensor(values), (4, 5, 2))
    dense = np.zeros((4, 5, 2))
    dense[m.nonzero()] = values
    close(x.to_dense(), dense)
    close(x.sum(1), dense.sum(1, keepdims=True))
    close(x.sum(0), dense.sum(0, keepdims=True))
    close((x * Tensor(other)).to_dense(), dense * other)
    close((x * Tensor(other[:, :1])).to_dense(), dense * other[:, :1])
    close((x * Tensor(other[0, 0])).to_dense(), dense * other[0, 0])
    assert x.ndim == 3 and x.size == 2 * m.nnz


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_of_rows(shape: Any) -> None:
    m = drawn(*shape)
    wanted = [v for a, b in zip(m.indptr, m.indptr[1:]) for v in (scipy.special.softmax(m.data[a:b]) if b > a else [])]
    for dtype, near in ((ms.float64, 1e-9), (ms.float32, 3e-5)):
        for run in (lambda f: f, ms.jit):
            found = run(lambda x, dtype=dtype: ops.csr_softmax(x, dtype))(csr(m, dtype))
            assert found.dtype is dtype
            close(found.values, np.array(wanted), near)
    weights, x = np.cos(np.arange(m.nnz)), csr(m)
    check_gradient(lambda v: (ops.csr_softmax(x._with(v), ms.float64).values * Tensor(weights)).sum(), m.data)
    large = ops.csr_softmax(csr(sp.csr_matrix([[1000.0, 1001.0]])), ms.float32).values
    close(large, scipy.special.softmax([0.0, 1.0]), 3e-5)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_joining(axis: int) -> None:
    m, n = (drawn(3, 4, 0.5), drawn(2, 4, 0.5, 3)) if axis in (0, -2) else (drawn(3, 4, 0.5), drawn(3, 2, 0.7, 3))
    wanted = (sp.vstack if axis in (0, -2) else sp.hstack)([m, n, m])
    for run in (lambda f: f, ms.jit):
        found = run(lambda a, b: ops.coo_concat((a, b, a), axis))(coo(m), coo(n))
        assert found.indices.tolist() == np.argwhere(wanted.toarray()).tolist()
        close(found.to_dense(), wanted.toarray())
    first = coo(m)
    check_gradient(lambda v: (ops.coo_concat([first._with(v), coo(n)], axis).to_dense() ** 2).sum(), m.data)
    joined = ops.coo_concat([first.to_tuple(), coo(n).to_tuple()], axis)
    assert joined.size == m.nnz + n.nnz and joined.indices.dtype is ms.int32


def test_dense_forms_slices_and_rows() -> None:
    x, m = scattered()
    wanted = np.zeros((4, 5))
    for r, c, v in zip(m.row, m.col, m.data):
        wanted[r, c] = v
    close(ops.SparseToDense()(x.indices, x.values, (4, 5)), wanted)
    close(nn.SparseToDense()(x), wanted)
    close(ms.jit(nn.SparseToDense())(x), wanted)
    dense = np.random.default_rng(0).normal(size=(4, 5))
    close(ops.SparseTensorDenseAdd()(x.indices, x.values, Tensor([4, 5]), Tensor(dense)), m.toarray() + dense)
    for start, size in (([0, 0], [4, 5]), ([1, 2], [2, 2]), ([2, 1], [9, 9]), ([0, 4], [3, 0])):
        for run in (lambda f: f, ms.jit):
            indices, values, shape = run(ops.SparseSlice())(
                x.indices, x.values, Tensor([4, 5]), Tensor(start), Tensor(size)
            )
            part = m.toarray()[start[0] : start[0] + size[0], start[1] : start[1] + size[1]]
            assert tuple(shape.tolist()) == part.shape
            again = np.zeros(part.shape)
            np.add.at(again, tuple(indices.asnumpy().T), values.asnumpy())
            np.testing.assert_allclose(again, part)
    check_gradient(
        lambda v: (ops.SparseSlice()(x.indices, v, Tensor([4, 5]), Tensor([1, 1]), Tensor([2, 3]))[1] ** 2).sum(),
        m.data,
    )
    for axis in (0, 1, -1):
        close(ops.SparseGatherV2()(Tensor(dense), Tensor([3, 0, 3]), axis), np.take(dense, [3, 0, 3], axis))


def test_means_of_chosen_rows() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2, 3))
    for indices, numbers in (([0, 4, 1, 1], [0, 0, 1, 3]), ([2], [0]), ([1, 2, 3], [2, 2, 2])):
        wanted = np.zeros((numbers[-1] + 1, 2, 3))
        for k in set(numbers):
            wanted[k] = np.mean([x[i] for i, n in zip(indices, numbers) if n == k], axis=0)
        for dtype, near in ((ms.float64, 1e-9), (ms.float32, 3e-5)):
            found = ops.sparse_segment_mean(
                Tensor(x).astype(dtype), Tensor(indices, ms.int32), Tensor(numbers, ms.int32)
            )
            assert found.dtype is dtype
            close(found, wanted, near)
        where, groups = Tensor(indices), Tensor(numbers)
        check_gradient(lambda v, i=where, g=groups: (ops.sparse_segment_mean(v, i, g) ** 2).sum(), x)
    empty = ops.sparse_segment_mean(Tensor(x), Tensor(np.zeros(0, np.int32)), Tensor(np.zeros(0, np.int32)))
    assert empty.shape == (0, 2, 3)
    with pytest.raises(ValueError, match="segment_ids must be sorted"):
        ops.sparse_segment_mean(Tensor(x), Tensor([0, 1]), Tensor([1, 0]))
    with pytest.raises(TypeError, match="floating"):
        ops.sparse_segment_mean(Tensor([1, 2]), Tensor([0]), Tensor([0]))


def test_parts(caplog: Any) -> None:
    x, r = csr(drawn(3, 4, 0.5)), Tensor(np.arange(6.0).reshape(2, 3))
    c = ops.make_coo_tensor(x.to_coo().indices, x.values, (3, 4))
    assert type(c) is COOTensor and ops.coo_tensor_get_values(c) is x.values
    assert ops.coo_tensor_get_indices(c) is c.indices and ops.coo_tensor_get_dense_shape(c) == (3, 4)
    y = ops.make_csr_tensor(x.indptr, x.indices, x.values, (3, 4))
    assert type(y) is CSRTensor and ops.csr_tensor_get_indptr(y) is x.indptr
    assert ops.csr_tensor_get_indices(y) is x.indices
    assert ops.csr_tensor_get_values(y) is x.values and ops.csr_tensor_get_dense_shape(y) == (3, 4)
    rows = ops.make_row_tensor_inner(Tensor([2, 0]), r, (4, 3))
    assert type(rows) is ms.RowTensor and ops.row_tensor_get_values(rows) is r
    assert ops.row_tensor_get_indices(rows).tolist() == [2, 0] and ops.row_tensor_get_dense_shape(rows) == (4, 3)
    dense = np.zeros((4, 3))
    dense[[2, 0]] = r.asnumpy()
    close(ops.row_tensor_add(rows, Tensor(np.ones((4, 3)))), dense + 1)
    both = ops.row_tensor_add(rows, rows)
    assert both.indices.tolist() == [2, 0, 2, 0] and both.values.shape == (4, 3)
    with caplog.at_level("ERROR", "mycel"):
        assert type(ops.make_sparse_tensor(c.indices, c.values, (3, 4))) is COOTensor
        assert type(ops.make_row_tensor(Tensor([2, 0]), r, (4, 3))) is ms.RowTensor


M = drawn(3, 4, 0.6)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: csr(M).mm(Tensor(np.ones((3, 2)))),
            ValueError,
            r"csr_mm: a sparse matrix \(3, 4\) takes a dense matrix \(4, K\)",
        ),
        (lambda: csr(M).mm(csr(M)), ValueError, "csr_mm: the columns of"),
        (lambda: csr(M).mv(Tensor(np.ones((4, 2)))), ValueError, "csr_mv: takes a column"),
        (lambda: ops.csr_mm(coo(M), Tensor(np.ones((4, 2)))), TypeError, "must be a CSRTensor, not COOTensor"),
        (lambda: csr(M) + Tensor(1.0), TypeError, "takes a CSRTensor, not Tensor; use x.to_dense"),
        (lambda: csr(M) + csr(drawn(4, 3, 0.5)), ValueError, "csr_add: shapes"),
        (lambda: coo(M) + coo(drawn(4, 3, 0.5)), ValueError, "must be the same"),
        (lambda: coo(M) - 1, TypeError, "must be a COOTensor or a Tensor, not int"),
        (lambda: coo(M) * Tensor(np.ones(4)), ValueError, "must be the same"),
        (lambda: ops.csr_add(csr(M), csr(M), 1.0, Tensor(1.0)), TypeError, "alpha must be a Tensor"),
        (
            lambda: ops.csr_add(csr(M), csr(M), Tensor(1.0), Tensor([1.0, 2.0])),
            ValueError,
            "beta must be a tensor of one element",
        ),
        (lambda: ops.coo_add(coo(M), coo(M), Tensor([1.0])), ValueError, "thresh must be a number"),
        (lambda: csr(M) * Tensor(np.ones((2, 4))), ValueError, "does not broadcast"),
        (lambda: csr(M).sum(2), ValueError, "out of range"),
        (lambda: ops.csr_softmax(csr(M), ms.int32), TypeError, "must be a floating type"),
        (lambda: ops.coo_concat([coo(M)], 0), ValueError, "at least two"),
        (lambda: ops.coo_concat([coo(M), coo(drawn(4, 3, 0.5))], 0), ValueError, "must agree but along axis 0"),
        (lambda: ops.coo_concat([coo(M), coo(M)], 2), ValueError, "out of range"),
        (lambda: Tensor(np.ones((2, 2, 2))).to_coo(), ValueError, "takes a tensor of 2 dimensions"),
        (lambda: ops.dense_to_sparse_csr([[1.0]]), TypeError, "must be a Tensor, not list"),
        (
            lambda: ops.csr_gather(Tensor([0, 1]), Tensor([0]), Tensor(np.ones((2, 2))), (1, 2)),
            ValueError,
            "rows and columns of",
        ),
        (
            lambda: ops.coalesce(Tensor([[0], [1]]), Tensor([1.0, 2.0]), Tensor([2, 2])),
            ValueError,
            "coalesce: takes indices",
        ),
        (lambda: ops.SparseToDense()(Tensor([[0.0, 1.0]]), Tensor([1.0]), (2, 2)), TypeError, "must be integers"),
        (
            lambda: ops.SparseToDense()(Tensor([[0, 1]]), Tensor([1.0, 2.0]), (2, 2)),
            ValueError,
            "SparseToDense: takes indices",
        ),
        (lambda: nn.SparseToDense()(Tensor([1.0])), TypeError, "coo_tensor must be a COOTensor, not Tensor"),
        (lambda: nn.SparseTensorDenseMatmul(1), TypeError, "adjoint_st must be a bool"),
        (
            lambda: ops.SparseTensorDenseMatmul()(Tensor([[0]]), Tensor([1.0]), (2,), Tensor([[1.0]])),
            ValueError,
            "takes a sparse matrix",
        ),
        (lambda: ops.row_tensor_add(1, 2), TypeError, "x must be a RowTensor"),
    ],
)
def test_errors_say_what_does_not_fit(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia", "lil", "dok", "bsr"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_matrices_of_scipy(form: str, kind: Any) -> None:
    dense = np.array([[0, 1.5, 0], [2, 0, 3]])
    matrix = kind(dense).asformat(form)
    tensor = Tensor(matrix)
    assert tensor.dtype is ms.float64
    for found in (tensor, CSRTensor(matrix).to_dense(), COOTensor(coo_tensor=matrix).to_dense()):
        np.testing.assert_array_equal(found.asnumpy(), dense)
    rows = CSRTensor(csr_tensor=matrix)
    assert (rows.shape, rows.indptr.tolist(), rows.indices.tolist()) == ((2, 3), [0, 1, 3], [1, 0, 2])
    assert COOTensor(matrix).indices.shape == (3, 2)
    with pytest.raises(TypeError, match="give either csr_tensor or the parts, not both"):
        CSRTensor(matrix, Tensor([1]))
