"""Creation of tensors under all of its names, and facts about them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks, I

checks = Checks("NumPy")


def plain(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    checks.add(names, expected, *cases, **{"dtypes": "float32", **more})


# Creation.
NONE: tuple[Any, ...] = ()
plain(
    "ops.zeros numpy.zeros ops.Zeros",
    lambda s, *t: np.zeros(s, np.float32),
    ((2, 3), ms.float32),
    ((0, 2), ms.float32),
    (4, ms.float32),
)
plain(
    "ops.ones numpy.ones ops.Ones",
    lambda s, *t: np.ones(s, np.float32),
    ((2, 3), ms.float32),
    ((0, 2), ms.float32),
    (4, ms.float32),
)
plain("ops.zeros_like ops.ZerosLike numpy.zeros_like", np.zeros_like, (A(3, 4),), (I(5),), (A(0, 2),), grad=())
plain("ops.ones_like ops.OnesLike numpy.ones_like", np.ones_like, (A(3, 4),), (I(5),), (A(0, 2),), grad=())
plain("ops.full numpy.full", np.full, ((2, 3), 1.5), ((0, 2), 2.5), ((4,), 3))
plain("ops.full_like numpy.full_like", np.full_like, (A(3, 4), 1.5), (I(5), 3), (A(0, 2), -1.0), grad=())
plain(
    "ops.fill ops.Fill",
    lambda t, s, v: np.full(s, v, t.numpy),
    (ms.float32, (2, 3), 1),
    (ms.int32, (4,), 3),
    (ms.float32, (0, 2), 2.5),
)
plain("ops.fills Tensor.fill Tensor.fills", np.full_like, (A(3, 4), 1.5), (I(5), 3), (A(0, 2), -1.0), grad=())
plain("ops.Fills", np.full_like, (A(3, 4), 1.5), (I(5), 3.0), (A(0, 2), -1.0), grad=())
plain(
    "ops.FillV2",
    lambda s, v: np.full(s, v),
    ((2, 3), A(values=np.float64(1.5))),
    ((0, 2), A(values=np.float64(2.5))),
    ((4,), A(values=np.float64(-1.5))),
    grad=(),
)
plain("ops.arange numpy.arange", np.arange, (5,), (2, 9, 3), (5, 1, -2), (3, 3), (0.0, 2.0, 0.5))
plain("ops.range", np.arange, (1, 7, 2), (0, 5, 1), (5, 1, -2))
plain("ops.Range", np.arange, (1, 7, 2), (0, 5, 1), (5, 1, -2))
LINES = ((-1.0, 2.0, 7), (0.0, 1.0, 1), (3.0, -3.0, 4))
plain("ops.LinSpace", np.linspace, *((A(values=a), A(values=b), n) for a, b, n in LINES))
plain("ops.linspace numpy.linspace", np.linspace, (-1.0, 2.0, 7), (0.0, 1.0, 1), (3.0, -3.0, 4))
plain(
    "numpy.linspace",
    lambda a, b, n, e: np.linspace(a, b, n, endpoint=e),
    (-1.0, 2.0, 7, False),
    (0.0, 1.0, 1, False),
    (3.0, -3.0, 4, True),
)
plain("ops.logspace numpy.logspace", np.logspace, (0.0, 2.0, 5), (-1.0, 1.0, 1), (1.0, 0.0, 3))
plain("ops.logspace", np.logspace, (0.0, 2.0, 5), (-1.0, 1.0, 1), (1.0, 0.0, 3), kwargs={"base": 2})
plain(
    "ops.eye ops.Eye",
    lambda n, m, t: np.eye(n, m, dtype=np.float32),
    (3, 4, ms.float32),
    (2, 2, ms.float32),
    (1, 5, ms.float32),
)
plain("ops.eye numpy.identity", np.eye, (3,), (1,), (5,))
plain("numpy.eye", np.eye, (3, 4, 1), (2,), (3, 3, -1))
plain("numpy.tri", np.tri, (3, 4, 1), (2,), (3, 3, -1))
plain("ops.tril_indices", lambda n, m, k=0: np.stack(np.tril_indices(n, k, m)), (3, 4), (2, 5, 1), (4, 3, -1))
plain("ops.triu_indices", lambda n, m, k=0: np.stack(np.triu_indices(n, k, m)), (3, 4), (2, 5, 1), (4, 3, -1))
for row, col, offset in ((3, 4, 0), (2, 5, 1), (4, 3, -1)):
    plain(
        "ops.TrilIndices",
        lambda r=row, c=col, k=offset: np.stack(np.tril_indices(r, k, c)),
        NONE,
        init={"row": row, "col": col, "offset": offset},
    )
    plain(
        "ops.TriuIndices",
        lambda r=row, c=col, k=offset: np.stack(np.triu_indices(r, k, c)),
        NONE,
        init={"row": row, "col": col, "offset": offset},
    )


def hot(index: Any, depth: int, on: Any = 1, off: Any = 0, axis: int = -1) -> Any:
    return np.moveaxis(np.where(np.arange(depth) == np.asarray(index)[..., None], on, off), -1, axis)


plain("ops.one_hot", hot, (I(3, 4, high=5), 4, 1.5, 0.5), (I(5), 3, 1.0, 0.0), (I(0, 2), 2, 2.0, -1.0))
HOT = ((I(3, 4, high=5), 4, 1.5, 0.5), (I(5), 3, 1.0, 0.0), (I(0, 2), 2, 2.0, -1.0), (I(2, 2), 2, 2.0, -1.0))
HOT_TENSORS = tuple((i, n, A(values=on), A(values=off)) for i, n, on, off in HOT)
plain("ops.OneHot", hot, *HOT_TENSORS[:3], grad=())
plain("ops.one_hot", hot, (I(3, 4, high=5), 4), (I(5), 3, 2, 1, 0), (I(2, 2), 2, 7, 3, 1))
plain(
    "ops.OneHot",
    lambda *a: hot(*a, 0),
    *HOT_TENSORS[:2],
    HOT_TENSORS[3],
    init={"axis": 0},
    grad=(),
)
plain("ops.sequence_mask", lambda n, m: np.arange(m) < n[..., None], (I(4), 5), (I(2, 3), 4), (I(0), 3))
plain(
    "numpy.array numpy.asarray numpy.asfarray",
    np.asarray,
    (A(3, 4),),
    (A(0, 2),),
    ([1.0, 2.5],),
    ([[1.0], [2.0]],),
    grad=(),
)
plain(
    "ops.stop_gradient ops.stop_gradient_ ops.StopGradient ops.identity",
    lambda x: x,
    (A(3, 4),),
    (A(5),),
    (A(0, 2),),
    grad=(),
)
for method, kind in (
    ("float", "float32"),
    ("double", "float64"),
    ("half", "float16"),
    ("bfloat16", "float32"),
    ("int", "int32"),
    ("long", "int64"),
    ("short", "int16"),
    ("byte", "uint8"),
    ("bool", "bool"),
):
    plain(f"Tensor.{method}", lambda x, k=kind: x.astype(k), (I(3, 4),), (I(5, high=2),), (I(0, 2),))
plain(
    "ops.cast Tensor.astype Tensor.type Tensor.to ops.Cast",
    lambda x, t: x.astype(t.numpy),
    (A(3, 4), ms.int32),
    (I(5), ms.float32),
    (A(0, 2), ms.bool_),
    grad=(),
)
plain(
    "ops.type_as Tensor.type_as",
    lambda x, y: x.astype(y.dtype),
    (A(3, 4), I(2)),
    (I(5), A(1)),
    (A(0, 2), I(3)),
    grad=(),
)
test_values, _ = checks.tests()

FACTS = {
    "ops.shape": ((2, 3), (0,)),
    "ops.Shape": ((2, 3), (0,)),
    "Tensor.shape": ((2, 3), (0,)),
    "numpy.shape": ((2, 3), (0,)),
    "ops.rank": (2, 1),
    "ops.Rank": (2, 1),
    "Tensor.ndim": (2, 1),
    "Tensor.dim": (2, 1),
    "Tensor.ndimension": (2, 1),
    "ops.size": (6, 0),
    "ops.Size": (6, 0),
    "ops.numel": (6, 0),
    "Tensor.size": (6, 0),
    "Tensor.numel": (6, 0),
    "Tensor.nelement": (6, 0),
    "numpy.size": (6, 0),
    "Tensor.nbytes": (24, 0),
    "Tensor.itemsize": (4, 4),
    "Tensor.strides": ((12, 4), (4,)),
    "Tensor.stride": ([3, 1], [1]),
    "ops.dtype": (ms.float32, ms.float32),
    "ops.DType": (ms.float32, ms.float32),
    "Tensor.dtype": (ms.float32, ms.float32),
    "ops.is_tensor": (True, True),
    "is_tensor": (True, True),
    "ops.is_complex": (False, False),
    "Tensor.is_complex": (False, False),
    "ops.is_floating_point": (True, True),
    "Tensor.is_floating_point": (True, True),
    "Tensor.is_signed": (True, True),
    "Tensor.is_contiguous": (True, True),
    "Tensor.tolist": ([[0.0] * 3] * 2, []),
}
CHECKED = {
    **{n: "definition" for n in FACTS},
    **{
        n: "NumPy"
        for n in "ops.dyn_shape ops.TensorShape Tensor.asnumpy Tensor.numpy Tensor.item ops.is_nonzero".split()
    },
    **{
        n: "NumPy"
        for n in "Tensor.new_zeros Tensor.new_ones Tensor.new_full Tensor.new_empty ops.empty ops.empty_like".split()
    },
    **{
        n: "NumPy"
        for n in """numpy.empty numpy.empty_like Tensor.equal numpy.array_equal numpy.promote_types
        numpy.result_type""".split()
    },
    **{
        n: "NumPy"
        for n in (
            "Tensor.from_numpy from_numpy tensor Tensor.data Tensor.has_init Tensor.init_data Tensor.value "
            "Tensor.copy_ Tensor.fill_ Tensor.clamp_"
        ).split()
    },
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_about_tensors(name: str) -> None:
    from tests.meaning import resolve

    for shape, want in zip(((2, 3), (0,)), FACTS[name]):
        got = resolve(name)(Tensor(np.zeros(shape, np.float32)))
        assert got == want and type(got) is type(want)


@pytest.mark.parametrize("shape", [(3, 4), (5,), (0, 2)])
def test_making_tensors_like_others(shape: tuple[int, ...]) -> None:
    x = Tensor(np.zeros(shape, np.float32))
    assert ops.dyn_shape(x).tolist() == ops.TensorShape()(x).tolist() == list(shape)
    for made, want in (
        (x.new_zeros((2, 3)), np.zeros((2, 3))),
        (x.new_ones((2, 3)), np.ones((2, 3))),
        (x.new_full((2, 3), 2.5), np.full((2, 3), 2.5)),
    ):
        assert made.dtype is ms.float32
        np.testing.assert_array_equal(made.asnumpy(), want)
    for made in (
        ops.empty(shape),
        ops.empty_like(x),
        x.new_empty(shape),
        ms.numpy.empty(shape),
        ms.numpy.empty_like(x),
    ):
        assert made.shape == shape and made.dtype is ms.float32
    y = np.random.default_rng(0).normal(size=shape)
    for made in (Tensor.from_numpy(y), ms.from_numpy(y), ms.tensor(y), Tensor(y).value()):
        np.testing.assert_array_equal(made.asnumpy(), y)
    np.testing.assert_array_equal(Tensor(y).numpy(), y)
    np.testing.assert_array_equal(Tensor(y).data.asnumpy(), y)
    later = ms.common.initializer.initializer("ones", (2, 3), ms.float32)
    np.testing.assert_array_equal(later.init_data().asnumpy(), np.ones((2, 3), np.float32))
    assert not Tensor(y).has_init
    t = Tensor(y)
    assert t.fill_(2.5) is t and (t.asnumpy() == 2.5).all()
    assert t.copy_(Tensor(y)) is t
    assert t.clamp_(-0.5, 0.5) is t
    np.testing.assert_array_equal(t.asnumpy(), np.clip(y, -0.5, 0.5))


def test_single_elements_and_equality() -> None:
    assert Tensor([[2.5]]).item() == 2.5 and Tensor([1, 7]).item(1) == 7
    assert ops.is_nonzero(Tensor([2.0])) and not ops.is_nonzero(Tensor([0.0]))
    for a, b in (([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, 3.0]), ([np.nan], [np.nan])):
        assert bool(ms.numpy.array_equal(Tensor(a), Tensor(b))) == np.array_equal(a, b)
        np.testing.assert_array_equal(Tensor(a).equal(Tensor(b)).asnumpy(), np.equal(a, b))
    for first, second in (("int8", "int16"), ("bool", "int32"), ("float16", "float64")):
        mine = [getattr(ms, "bool_" if k == "bool" else k) for k in (first, second)]
        assert ms.numpy.promote_types(*mine).numpy == np.promote_types(first, second)
    assert ms.numpy.promote_types(ms.int32, ms.float32) is ms.float32
    assert ms.numpy.result_type(ms.int8, ms.int16) is ms.int16
