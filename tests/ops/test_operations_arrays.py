"""Operations on arrays as objects against NumPy; conventions against results of MindSpore."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, ops
from tests.meaning import A, Array, Checks, I

checks = Checks("NumPy")
add = checks.add


def N(values: Any, dtype: str = "int32") -> Array:
    """Given whole numbers."""
    return Array((), dtype=dtype, values=np.array(values, dtype))


# Segments.
def segmented(reduce: Any, empty: float) -> Any:
    def expected(x: Any, ids: Any) -> Any:
        ids = np.asarray(ids)
        rows = [
            reduce(x[ids == k], axis=0) if (ids == k).any() else np.full(x.shape[1:], empty)
            for k in range(int(ids[-1]) + 1)
        ]
        return np.array(rows, x.dtype)

    return expected


for name, reduce, empty in (
    ("Max", np.max, 0),
    ("Min", np.min, 0),
    ("Sum", np.sum, 0),
    ("Prod", np.prod, 1),
    ("Mean", np.mean, 0),
):
    for x, ids in ((A(5, 2), [0, 0, 2, 2, 2]), (A(1), [0]), (A(4, 1, 3), [1, 2, 5, 5])):
        add(f"ops.Segment{name}", segmented(reduce, empty), (x, N(ids, "int64")), jit=False)

# Shapes and views.
add(
    "ops.Expand",
    lambda x, s: np.broadcast_to(x, [d if d > 0 else n for d, n in zip(s, (2, 1))]).copy(),
    (A(2, 1), (2, 3)),
    (A(2, 1), (-1, 4)),
    (A(2, 1), (-1, -1)),
)
for shape in ((4, 4), (2, 3, 2, 3), (1, 1)):

    def part(x: Any) -> Any:
        half = x.shape[: x.ndim // 2]
        return np.diag(x.reshape(int(np.prod(half)), -1)).reshape(half).copy()

    add("ops.DiagPart", part, (A(*shape),))


def filled(wrap: bool) -> Any:
    def expected(x: Any, value: Any = 1.5) -> Any:
        y = x.copy()
        np.fill_diagonal(y, value, wrap)
        return y

    return expected


for shape in ((7, 3), (3, 3), (2, 5), (3, 3, 3)):
    for wrap in (False, True):
        add("ops.FillDiagonal", filled(wrap), (A(*shape),), init={"fill_value": 1.5, "wrap": wrap})
    add("Tensor.fill_diagonal", filled(False), (A(*shape), -2.0))
for shape, axis in (((3, 4), 1), ((2, 3, 2), -2), ((5,), 0)):
    add("ops.SelectView", lambda x, i, a: np.take(x, i, a), (A(*shape), 1, axis), (A(*shape), -1, axis))
    add("ops.TransposeExtView", lambda x, a, b: np.swapaxes(x, a, b), (A(*shape), 0, axis))
for shape, order in (((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((0, 2), (1, 0))):
    add("ops.TransposeView", np.transpose, (A(*shape), order))
for shape in ((1, 3), (1,), (1, 0, 2)):
    add("ops.ParallelConcat", np.concatenate, ([A(*shape), A(*shape)],), ((A(*shape), A(*shape), A(*shape)),))
    add("ops.IdentityN", tuple, ([A(*shape), A(2)],), ((A(*shape),),))

# Positions and values.
BOUNDS = [-1.0, 0.5, 1.0]
for shape in ((7,), (2, 3), (0, 2)):
    add(
        "ops.Bucketize",
        lambda x: np.searchsorted(BOUNDS, x, "right").astype(np.int32),
        (A(*shape),),
        init={"boundaries": BOUNDS},
        grad=(),
    )
    rows = (I(*shape, high=7), I(*shape, high=7))


def each_row(side: Any) -> Any:
    def expected(rows: Any, values: Any) -> Any:
        return np.stack([np.searchsorted(r, v, side) for r, v in zip(np.asarray(rows), np.asarray(values))])

    return expected


for rows, values in (
    ([[1, 2, 2, 3]], [[2, 5, 0]]),
    ([[1, 3], [2, 2]], [[2], [2]]),
    ([[4], [5], [6]], [[5, 4], [5, 6], [0, 9]]),
):
    for kind in ("int32", "float32"):
        add("ops.LowerBound", each_row("left"), (N(rows, kind), N(values, kind)), grad=())
        add("ops.UpperBound", each_row("right"), (N(rows, kind), N(values, kind)), init={"out_type": ms.int64}, grad=())
for indices, dims in (([2, 5, 8], [3, 3]), ([0], [4]), (7, [2, 3, 2]), ([], [2, 2])):
    add(
        "ops.UnravelIndex",
        lambda i, d: np.array(np.unravel_index(np.asarray(i, np.int64), tuple(d))),
        (N(indices), N(dims)),
    )
for count, size, groups in ((8, 4, 2), (1, 3, 3), (10, 3, 4)):
    add("ops.MapUniform", lambda k, s, g: k % g * s + k // g, (I(count, high=20), size, groups))


def put(accumulate: int) -> Any:
    def expected(x: Any, v: Any, places: Any) -> Any:
        y = x.copy()
        at = tuple(np.asarray(p) for p in places)
        if accumulate:
            np.add.at(y, at, v)
        else:
            y[at] = v
        return y

    return expected


for accumulate in (0, 1):
    add(
        "ops.IndexPut",
        put(accumulate),
        (A(3, 4), A(3), [N([0, 1, 2]), N([0, 0, 3])]),
        (A(3, 4), A(1), (N([0, 2]),)),
        (A(2, 3), A(3), [N([1])]),
        (A(4), A(1), (N([0]),)),
        init={"accumulate": accumulate},
    )
add("ops.IndexPut", put(1), (A(3), A(3), [N([1, 1, 0])]), init={"accumulate": 1})
for axis, shape, new in ((0, (3, 2), (2, 2)), (1, (2, 5), (2, 2)), (1, (2, 2, 3), (2, 2, 3))):

    def index_added(x: Any, i: Any, v: Any, a: int = axis) -> Any:
        y = np.moveaxis(x.copy(), a, 0)
        np.add.at(y, np.asarray(i), np.moveaxis(v, a, 0))
        return np.moveaxis(y, 0, a)

    given = (A(*shape), N([1, 0]), A(*new))
    add("ops.InplaceIndexAdd", index_added, given, init={"axis": axis}, grad=(2,), jit=False)
    add("ops.inplace_index_add", index_added, (*given, axis), grad=(2,), jit=False)


def updated(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    y[[i] if isinstance(i, int) else list(i)] = v
    return y


add("ops.InplaceUpdateV2", updated, (A(3, 2), (0, 2), A(2, 2)), (A(3), 1, A(1)), (A(4, 1), (3,), A(1, 1)))
for axis, shape in ((0, (4, 3)), (1, (2, 5)), (0, (6,))):

    def scattered(x: Any, i: Any, v: Any, a: int = axis) -> Any:
        y = x.copy()
        for at in np.ndindex(*np.shape(i)):
            y[(*at[:a], int(i[at]), *at[a + 1 :])] += v[at]
        return y

    smaller = tuple(min(2, n) for n in shape)
    add(
        "ops.ScatterAddWithAxis",
        scattered,
        (A(*shape), I(*smaller, high=shape[axis]), A(*smaller)),
        init={"axis": axis},
    )
for shape, places in (((5,), [[1], [1], [4]]), ((3, 2), [[2, 1]]), ((3, 2), [[0], [2]])):

    def nd_added(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        np.add.at(y, tuple(np.moveaxis(np.asarray(i), -1, 0)), v)
        return y

    add(
        "ops.ScatterNonAliasingAdd",
        nd_added,
        (A(*shape), N(places), A(len(places), *shape[len(places[0]) :])),
        grad=(2,),
        jit=False,
    )


for shape, places in (((3, 4), ([2, 0],)), ((3, 4), ([[0], [1]], [1, 3])), ((2, 3, 2), ([1], [0], [1]))):
    add("Tensor.index", lambda x, i: x[tuple(np.asarray(v) for v in i)], (A(*shape), [N(p) for p in places]))
add("Tensor.index", lambda x, i: x[:, np.asarray(i[1])], (A(3, 4), [None, N([3, 3, 0])]))
add(
    "Tensor.index",
    lambda x, i: x[np.asarray(i[0], bool)],
    (A(4), (Array((), dtype="bool", values=np.array([True, False, True, True])),)),
    jit=False,
)


# Sets, ranges, sequences.
def hits(true: Any, sampled: Any) -> Any:
    found = [
        (b, k) for b, t in product(*map(range, true.shape)) for k in range(len(sampled)) if true[b, t] == sampled[k]
    ]
    rows, places = np.array(found, int).reshape(-1, 2).T
    return rows, places, np.full(len(found), np.finfo(np.float32).min)


for true, sampled in (([[1, 2], [0, 4], [3, 3]], [0, 1, 2, 3, 4]), ([[7, 9]], [1, 2, 3]), ([[1, 1]], [1, 1])):
    add("ops.ComputeAccidentalHits", hits, (N(true, "int64"), N(sampled, "int64")), init={"num_true": 2})


def difference(x: Any, y: Any) -> Any:
    kept = ~np.isin(x, y)
    return np.asarray(x)[kept], np.flatnonzero(kept)


for x, y in (([1, 2, 3, 4, 5, 2], [1, 3, 5]), ([4, 4], [4]), ([3, 1, 2], []), ([], [1])):
    add("ops.ListDiff", difference, (N(x), N(y)))
for x, top, offset in (([1, 3, 5, 8, 9, 16], 10, 5), ([1, 2], 1, 7), ([-1, 0, 1], 3, -1)):
    add(
        "ops.SubAndFilter",
        lambda x, m, o: ((x - o)[(x - o >= 0) & (x - o < m)], np.flatnonzero((x - o >= 0) & (x - o < m))),
        (N(x), top, offset),
    )


def ranges(starts: Any, limits: Any, deltas: Any) -> Any:
    parts = [np.arange(*v) for v in zip(*(np.ravel(t) for t in (starts, limits, deltas)))]
    return np.cumsum([0, *map(len, parts)]), np.concatenate(parts).astype(np.asarray(starts).dtype)


for given in (([2, 5, 8, 3], [3, 5, 12, 0], [1, 1, 1, -2]), ([0], [7], [3]), (2, 7, 2)):
    add("ops.RaggedRange", ranges, tuple(N(v) for v in given), init={"Tsplits": ms.int64}, jit=False)
floats = tuple(Array((), values=np.array(v)) for v in ([2, 0.0, 1], [3, 1.0, 0], [0.3, 0.25, 0.5]))
add("ops.RaggedRange", ranges, floats, init={"Tsplits": ms.int32}, jit=False, grad=())


def padded(x: Any, pad: int) -> Any:
    values, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.append(values[order], np.full(len(x) - len(values), pad)), np.argsort(order)[inverse]


for x, pad in (([1, 1, 5, 5, 4, 4, 3], 0), ([7], -1), ([2, 2, 2], 9)):
    add("ops.UniqueWithPad ops.unique_with_pad Tensor.unique_with_pad", padded, (N(x), pad))


def no_repeats(said: Any, x: Any, n: int) -> Any:
    y = x.copy()
    for at in np.ndindex(*said.shape[:2]):
        words = [int(v) for v in said[at]]
        for k in range(len(words) - n + 1):
            if words[k : k + n - 1] == words[len(words) - n + 1 :]:
                y[(*at, words[k + n - 1])] = np.finfo(np.float32).min
    return y


for n in (1, 2, 3, 6):
    for batch, beams in ((2, 3), (1, 1)):
        add(
            "ops.NoRepeatNGram",
            lambda s, x, n=n: no_repeats(s, x, n),
            (I(batch, beams, 6, high=3), A(batch, beams, 4)),
            init={"ngram_size": n},
            dtypes="float32",
            grad=(),
        )

test_values, test_gradients = checks.tests()
CHECKED = {
    "ops.EditDistance": "NumPy",
    "ops.InvertPermutation": "NumPy",
    "ops.TensorToTuple": "NumPy",
    "ops.CopyWithSlice": "NumPy",
}


def levenshtein(a: list[int], b: list[int]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def sparse(table: Any) -> tuple[Tensor, Tensor]:
    places = [(*at, k) for at in np.ndindex(*table.shape) for k in range(len(table[at]))]
    values = [table[at][k] for *at_, k in places for at in (tuple(at_),)]
    return Tensor(np.array(places, np.int64).reshape(-1, table.ndim + 1)), Tensor(np.array(values, np.int32))


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("lead", [(4,), (2, 3), (1,)])
def test_edit_distance(lead: tuple[int, ...], normalize: bool) -> None:
    random = np.random.default_rng(len(lead))
    tables = []
    for _ in range(2):
        table = np.empty(lead, object)
        for at in np.ndindex(*lead):
            table[at] = random.integers(0, 3, random.integers(1, 6)).tolist()
        tables.append(table)
    tables[1][(0,) * len(lead)] = [] if lead != (1,) else [1]
    want = np.zeros(lead)
    for at in np.ndindex(*lead):
        want[at] = levenshtein(tables[0][at], tables[1][at])
        if normalize:
            want[at] = want[at] / len(tables[1][at]) if tables[1][at] else np.inf
    said, true = (sparse(t) for t in tables)
    shape = Tensor((*lead, 6))
    call = ops.EditDistance(normalize)
    for function in (call, ms.jit(lambda a, b, c, d: call(a, b, shape, c, d, shape))):
        given = (*said, *true) if function is not call else (*said, shape, *true, shape)
        found = function(*given)
        assert found.dtype is ms.float32
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-6)


def test_edit_distance_of_mindspore() -> None:
    """Results of MindSpore 2.10 on a CPU: sequences that do not begin at 0, and empty ones."""

    def whole(values: Any) -> Tensor:
        return Tensor(np.array(values, np.int64))

    found = ops.EditDistance()(
        whole([[0, 0, 0], [1, 0, 1], [1, 1, 1]]),
        Tensor([1.0, 2, 3]),
        whole([1, 1, 2]),
        whole([[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]),
        Tensor([1.0, 3, 2, 1]),
        whole([2, 2, 2]),
    )
    assert found.tolist() == [[1, 1], [1, 1]]
    said = (whole([[0, 0], [0, 1], [0, 2], [1, 0]]), whole([1, 2, 3, 4]), whole([3, 3]))
    true = (whole([[0, 0], [0, 1]]), whole([2, 3]), whole([3, 2]))
    assert ops.EditDistance()(*said, *true).tolist() == [0.5, np.inf, 0]
    assert ops.EditDistance(False)(*said, *true).tolist() == [1, 1, 0]


@pytest.mark.parametrize("order", [(3, 4, 0, 2, 1), (0,), ()])
def test_invert_permutation(order: tuple[int, ...]) -> None:
    assert ops.InvertPermutation()(order) == tuple(np.argsort(order).tolist())


def test_elements_as_a_tuple() -> None:
    for array in (np.array([1, 3], np.int32), np.array([0.5, -1.0]), np.zeros(0, np.int64)):
        assert ops.TensorToTuple()(Tensor(array)) == tuple(array.tolist())


def test_copies_into_tensors_and_views() -> None:
    x = Tensor(np.zeros((3, 2)))
    assert ops.CopyWithSlice()(x, Tensor(np.ones((3, 2)))) is x
    np.testing.assert_array_equal(x.asnumpy(), np.ones((3, 2)))
    ops.CopyWithSlice()(x[1], Tensor([5.0, 6.0]))
    np.testing.assert_array_equal(x.asnumpy(), [[1, 1], [5, 6], [1, 1]])


def test_what_is_written_in_place() -> None:
    """As MindSpore 2.10 on a CPU: InplaceIndexAdd writes into its first operand, InplaceUpdateV2
    and FillDiagonal give new tensors.
    """
    x, rows, new = Parameter(ops.ones((3, 2))), Tensor([0], ms.int32), ops.ones((1, 2))
    ops.InplaceIndexAdd(0)(x, rows, new)
    assert x.tolist() == [[2, 2], [1, 1], [1, 1]]
    ops.ScatterNonAliasingAdd()(x, Tensor([[2]]), new)
    assert x.tolist() == [[2, 2], [1, 1], [2, 2]]
    ops.InplaceUpdateV2()(x, 0, new)
    ops.FillDiagonal(9.0)(x)
    assert x.tolist() == [[2, 2], [1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.InvertPermutation()((0, 2)), ValueError, "must be 0 .. 1 in some order"),
        (lambda: ops.DiagPart()(ops.ones((2, 3))), ValueError, "some sizes twice"),
        (lambda: ops.FillDiagonal(1.0)(ops.ones((2, 2, 3))), ValueError, "takes a matrix, or a tensor of equal sizes"),
        (lambda: ops.IndexPut(2)(ops.ones(2), ops.ones(1), [Tensor([0])]), ValueError, "accumulate must be 0 or 1"),
        (lambda: ops.ParallelConcat()([ops.ones((2, 1))]), ValueError, "first size of each tensor must be 1"),
        (
            lambda: ops.NoRepeatNGram(4)(ops.ones((1, 1, 3), ms.int32), ops.ones((1, 1, 5))),
            ValueError,
            r"must lie in \[1, 3\]",
        ),
        (lambda: ops.LowerBound()(ops.ones(2), ops.ones(2)), ValueError, "takes two matrices of as many rows"),
        (lambda: ops.SegmentSum()(ops.ones(2), Tensor([0, 0, 1])), ValueError, r"must be \(2,\)"),
        (lambda: ops.TensorToTuple()(ops.ones((2, 2))), ValueError, "takes a tensor of one dimension"),
        (lambda: ops.unique_with_pad(Tensor([1.0]), 0), TypeError, "takes a vector of integers"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
