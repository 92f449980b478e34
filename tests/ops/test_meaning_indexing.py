"""Reading and writing at positions, masks and segments under all of their names against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, B, Checks, I

from .checks import add_everywhere

checks = Checks("NumPy")


def plain(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    """Compiled in the first case only."""
    checks.add(names, expected, cases[0], **{"dtypes": "float32", **more})
    checks.add(names, expected, *cases[1:], **{"dtypes": "float32", "jit": False, **more})


# Reading.
plain(
    "ops.gather ops.Gather ops.GatherV2 Tensor.gather",
    lambda x, i, axis: np.take(x, i, axis),
    (A(3, 4), I(2, 5, high=3), 0),
    (A(2, 4, 3), I(3, high=4), 1),
    (A(5, 2), I(0, high=1), -1),
)
plain(
    "ops.gather",
    lambda x, i, axis, b: np.stack([np.take(u, v, axis - 1) for u, v in zip(x, i)]),
    (A(3, 4), I(3, 2, high=4), 1, 1),
    (A(2, 4, 3), I(2, 5, high=3), 2, 1),
    (A(1, 5), I(1, 1), 1, 1),
)
plain(
    "ops.index_select Tensor.index_select",
    lambda x, axis, i: np.take(x, i, axis),
    (A(3, 4), 0, I(2, high=3)),
    (A(2, 4, 3), 1, I(3, high=4)),
    (A(5, 2), -1, I(1, high=2)),
)
plain(
    "ops.gather_d ops.GatherD ops.gather_elements Tensor.gather_elements",
    lambda x, axis, i: np.take_along_axis(x, i, axis),
    (A(3, 4), 1, I(3, 2, high=4)),
    (A(2, 4, 3), -2, I(2, 1, 3, high=4)),
    (A(5), 0, I(7)),
)
plain(
    "numpy.take_along_axis",
    np.take_along_axis,
    (A(3, 4), I(3, 2, high=4), 1),
    (A(2, 4, 3), I(2, 1, 3, high=4), -2),
    (A(5), I(7), 0),
)
plain(
    "ops.gather_nd ops.GatherNd Tensor.gather_nd",
    lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
    (A(3, 4), I(5, 2, high=3)),
    (A(2, 3, 2), I(4, 1, high=2)),
    (A(5), I(2, 2, 1)),
)
plain("ops.take Tensor.take numpy.take", np.take, (A(3, 4), I(2, 5, high=12)), (A(5), I(3)), (A(2, 1), I(0)))
plain("Tensor.take numpy.take", np.take, (A(3, 4), I(2, 5, high=4), 1), (A(5), I(3), 0), (A(2, 3), I(2, high=2), 0))
plain(
    "Tensor.take numpy.take",
    np.take,
    (A(3, 4), I(2, 5, high=9), 1),
    (A(5), I(3, high=9), 0),
    (A(2, 3), I(2, high=9), 0),
    kwargs={"mode": "wrap"},
)
plain(
    "Tensor.choose numpy.choose",
    np.choose,
    (I(4, high=2), [A(4), A(4)]),
    (I(2, 3, high=3), [A(3), A(3), A(3)]),
    (I(1, high=1), [A(1)]),
    grad=(),
)
plain("ops.embedding", lambda i, w: w[i], (I(2, 3, high=5), A(5, 4)), (I(4, high=3), A(3, 1)), (I(0), A(2, 3)))
plain(
    "ops.EmbeddingLookup",
    lambda x, i, offset: x[i - offset],
    (A(5, 3), I(2, 2, low=1), 1),
    (A(4, 1), I(3, low=2, high=6), 2),
    (A(3, 2), I(1, high=3), 0),
)
plain("Tensor.select", lambda x, axis, i: np.take(x, i, axis), (A(3, 4), 1, 2), (A(2, 4, 3), 0, -1), (A(5), 0, 3))

# Masks.
for names, more in (("masked_fill MaskedFill", {}),):
    add_everywhere(
        checks,
        names,
        lambda x, m, v: np.where(m, v, x),
        (A(3, 4), B(3, 4), 1.5),
        (A(2, 3), B(3), -2.0),
        (A(0, 2), B(1, 2), 0.0),
        dtypes="float32",
        **more,
    )
add_everywhere(
    checks,
    "masked_select MaskedSelect",
    lambda x, m: np.broadcast_to(x, np.broadcast_shapes(x.shape, m.shape))[
        np.broadcast_to(m, np.broadcast_shapes(x.shape, m.shape))
    ],
    (A(3, 4), B(3, 4)),
    (A(2, 3), B(3)),
    (A(0, 2), B(1, 2)),
    dtypes="float32",
    jit=False,
)


def filled(x: Any, mask: Any, source: Any) -> Any:
    out, mask = x.copy(), np.broadcast_to(mask, x.shape)
    out[mask] = source.ravel()[: mask.sum()]
    return out


add_everywhere(
    checks,
    "masked_scatter MaskedScatter",
    filled,
    (A(3, 4), B(3, 4), A(12)),
    (A(5), B(5), A(7)),
    (A(2, 3), B(2, 3), A(3, 2)),
    dtypes="float32",
)
add_everywhere(
    checks,
    "nonzero argwhere NonZero",
    np.argwhere,
    (B(3, 4),),
    (B(5),),
    (B(0, 2),),
    (I(2, 2, 2, high=2),),
    dtypes="float32",
    grad=(),
    jit=False,
)

# Writing a new tensor.
KINDS = {
    "update": None,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}


def written(kind: str) -> Any:
    def run(x: Any, places: Any, new: Any) -> Any:
        out, at = x.copy(), tuple(np.moveaxis(places, -1, 0))
        if kind == "update":
            out[at] = new
        else:
            KINDS[kind].at(out, at, new)
        return out

    return run


def places(*rows: Any) -> Any:
    from tests.meaning import Array

    return Array((), dtype="int32", values=np.array(rows, np.int32))


WRITES = (
    (A(4, 3), places([1], [3], [0]), A(3, 3, low=0.4)),
    (A(2, 3), places([1, 2], [0, 1]), A(2, low=0.4)),
    (A(5), places([4]), A(1, low=0.4)),
)
for kind in KINDS:
    plain(
        f"ops.tensor_scatter_{kind} ops.TensorScatter{kind.title()}"
        + ("" if kind in ("update", "add") else f" Tensor.scatter_{kind}"),
        written(kind),
        *WRITES,
    )
    if kind not in ("update", "div"):
        plain(
            f"ops.tensor_scatter_{kind}",
            written(kind),
            (A(4, 3), places([1], [3], [1]), A(3, 3, low=0.4)),
            grad=(2,) if kind in ("add", "sub") else (),
        )
plain(
    "ops.scatter_nd ops.ScatterNd",
    lambda i, u, s: written("add")(np.zeros(s), i, u),
    (places([1], [3], [1]), A(3, 2), (4, 2)),
    (places([0, 1]), A(1), (2, 3)),
    (places([2], [0]), A(2), (5,)),
)


def along(x: Any, axis: int, index: Any, new: Any, add: bool = False) -> Any:
    out = x.copy()
    for place in np.ndindex(index.shape):
        at = list(place)
        at[axis] = index[place]
        out[tuple(at)] = new[place] + (out[tuple(at)] if add else 0)
    return out


ALONG = (
    (A(3, 4), 1, places([1, 0], [3, 2], [2, 0]), A(3, 2)),
    (A(3, 2), 0, places([2, 1]), A(1, 2)),
    (A(5), 0, places(4, 2), A(2)),
)
plain("ops.scatter Tensor.scatter", along, *ALONG)
plain(
    "ops.tensor_scatter_elements ops.TensorScatterElements",
    lambda x, i, u: along(x, 0, i, u),
    (A(3, 4), places([1, 0, 2, 0]), A(1, 4)),
    (A(3, 2), places([2, 1]), A(1, 2)),
    (A(5), places(4, 2), A(2)),
)
plain(
    "ops.tensor_scatter_elements",
    lambda x, i, u, axis, r: along(x, axis, i, u, True),
    *[(x, i, u, axis, "add") for x, axis, i, u in ALONG],
)
plain(
    "ops.TensorScatterElements",
    lambda x, i, u: along(x, 1, i, u, True),
    (A(3, 4), places([1, 0], [3, 3], [2, 0]), A(3, 2)),
    init={"axis": 1, "reduction": "add"},
)
plain("Tensor.scatter_add", lambda x, axis, i, u: along(x, axis, i, u, True), *ALONG)


def rows(x: Any, i: Any, y: Any, axis: int) -> Any:
    out = np.moveaxis(x.copy(), axis, 0)
    np.add.at(out, i, np.moveaxis(y, axis, 0))
    return np.moveaxis(out, 0, axis)


ROWS = ((A(3, 4), places(0, 2, 0), A(3, 3), 1), (A(3, 2), places(2, 1), A(2, 2), 0), (A(5), places(4), A(1), 0))
plain("ops.index_add Tensor.index_add", rows, *ROWS)
plain("ops.IndexAdd", lambda x, i, y: rows(x, i, y, 1), ROWS[0][:3], init={"axis": 1})


def replaced(x: Any, axis: int, i: Any, v: Any) -> Any:
    out = np.moveaxis(x.copy(), axis, 0)
    out[i] = v
    return np.moveaxis(out, 0, axis)


plain(
    "ops.index_fill Tensor.index_fill",
    replaced,
    (A(3, 4), 1, places(0, 2), 1.5),
    (A(3, 2), 0, places(1), -2.0),
    (A(5), -1, places(4, 0), 0.5),
)
plain(
    "ops.IndexFill",
    replaced,
    (A(3, 4), 1, places(0, 2), A(values=1.5)),
    (A(3, 2), 0, places(1), A(values=-2.0)),
    (A(5), -1, places(4, 0), A(values=0.5)),
)
for name, function in (("update", lambda a, b: b), ("add", np.add), ("sub", np.subtract)):
    changed = lambda x, v, i, f=function: np.concatenate(
        [f(x[k], v[list(i).index(k)])[None] if k in i else x[k][None] for k in range(len(x))]
    )
    plain(f"ops.inplace_{name}", changed, (A(4, 3), A(2, 3), (3, 1)), (A(2, 2), A(1, 2), (0,)), (A(5), A(2), (4, 2)))
    plain(
        f"ops.Inplace{name.title()}",
        lambda x, v, f=changed: f(x, v, (1, 0)),
        (A(4, 3), A(2, 3)),
        (A(2, 2), A(2, 2)),
        (A(5), A(2)),
        init={"indices": (1, 0)},
    )
plain(
    "ops.select_scatter Tensor.select_scatter",
    lambda x, s, axis, i: replaced(x, axis, i, s),
    (A(3, 4), A(3), 1, 2),
    (A(2, 3), A(3), 0, -1),
    (A(5), A(), 0, 3),
)
plain(
    "ops.slice_scatter Tensor.slice_scatter",
    lambda x, s, axis, a, b, step: replaced(x, axis, slice(a, b, step), np.moveaxis(s, axis, 0)),
    (A(3, 4), A(3, 2), 1, 0, 4, 2),
    (A(4, 3), A(2, 3), 0, 1, 3, 1),
    (A(5), A(1), 0, 4, 5, 1),
)
plain(
    "Tensor.itemset",
    lambda x, i, v: np.where(np.arange(x.size).reshape(x.shape) == i, v, x),
    (A(3, 4), 5, 1.5),
    (A(5), 0, -1.0),
    (A(1, 1), 0, 2.0),
    grad=(),
)
plain(
    "Tensor.index_put",
    lambda x, i, v: replaced(x, 0, i[0], v),
    (A(4, 3), (places(2, 0),), A(2, 3)),
    (A(5), (places(4),), A(1)),
    (A(2, 2), (places(1),), A(1, 2)),
    grad=(0,),
)

# Segments.


def segments(x: Any, ids: Any, n: int, function: Any, start: float) -> Any:
    out = np.full((n, *x.shape[ids.ndim :]), start)
    for place in np.ndindex(ids.shape):
        if 0 <= ids[place] < n:
            out[ids[place]] = function(out[ids[place]], x[place])
    return out


LIMIT = float(np.finfo(np.float32).max)
GROUPS = (
    (A(4, 3), places(0, 2, 2, 1), 3),
    (A(2, 3), places([0, 1, 0], [1, 1, 0]), 2),
    (A(5), places(0, 0, 0, 0, 0), 1),
)
for name, function, start in (
    ("sum", np.add, 0.0),
    ("prod", np.multiply, 1.0),
    ("max", np.maximum, -LIMIT),
    ("min", np.minimum, LIMIT),
):
    names = f"ops.unsorted_segment_{name} Tensor.unsorted_segment_{name} ops.UnsortedSegment{name.title()}"
    plain(names, lambda x, i, n, f=function, s=start: segments(x, i, n, f, s), *GROUPS)
    plain(
        names, lambda x, i, n, f=function, s=start: segments(x, i, n, f, s), (A(4, 3), places(0, -1, 3, 1), 5), grad=()
    )
test_values, test_gradients = checks.tests()

VARIABLES = [
    f"ops.{a}{b}" for a in ("Scatter", "ScatterNd") for b in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Update")
]
VARIABLES += [f"ops.{a}_{b}" for a in ("scatter", "scatter_nd") for b in KINDS]
IN_PLACE = (
    "index_add_ index_copy_ index_fill_ index_put_ masked_fill_ masked_scatter_ scatter_ scatter_add_ put_ "
    "fill_diagonal_"
)
CHECKED = {
    **dict.fromkeys(VARIABLES, "NumPy"),
    **dict.fromkeys((f"Tensor.{n}" for n in IN_PLACE.split()), "NumPy"),
    **dict.fromkeys(("Assign", "AssignAdd", "AssignSub"), "NumPy"),
}
CHECKED = {n if "." in n else f"ops.{n}": o for n, o in CHECKED.items()} | dict.fromkeys(
    ("ops.assign", "ops.assign_add", "ops.assign_sub", "Tensor.assign_value"), "NumPy"
)


@pytest.mark.parametrize("name", VARIABLES)
def test_writing_into_variables(name: str) -> None:
    made = getattr(ops, name.removeprefix("ops."))
    write = made() if isinstance(made, type) else made
    kind = next(k for k in KINDS if name.lower().endswith(k))
    random = np.random.default_rng(1)
    for shape in ((5, 3), (4,), (3, 1, 2)):
        x, new = random.normal(size=shape), random.uniform(0.5, 2, (2, *shape[1:]))
        variable, index = ms.Parameter(Tensor(x)), np.array([[2], [0]], np.int32)
        write(variable, Tensor(index if "nd" in name.lower().replace("update", "") else index[:, 0]), Tensor(new))
        np.testing.assert_allclose(variable.asnumpy(), written(kind)(x, index, new))


@pytest.mark.parametrize("shape", [(3, 4), (5,), (0, 2)])
def test_assignments(shape: tuple[int, ...]) -> None:
    x, y = np.random.default_rng(2).normal(size=(2, *shape))
    for function, want in (
        (ops.assign, y),
        (ops.Assign(), y),
        (ops.assign_add, x + y),
        (ops.AssignAdd(), x + y),
        (ops.assign_sub, x - y),
        (ops.AssignSub(), x - y),
        (Tensor.assign_value, y),
    ):
        variable = ms.Parameter(Tensor(x))
        function(variable, Tensor(y))
        np.testing.assert_array_equal(variable.asnumpy(), want)


def test_writing_into_tensors() -> None:
    x, new = np.random.default_rng(3).normal(size=(2, 4, 3))
    index = np.array([2, 0])
    spots = np.array([[1, 0, 2], [3, 1, 0]])
    mask = x > 0

    def same(name: str, want: Any, *args: Any, **kwargs: Any) -> None:
        t = Tensor(x)
        assert getattr(t, name)(*args, **kwargs) is t
        np.testing.assert_allclose(t.asnumpy(), want)

    same("index_add_", rows(x, index, new[:2], 0), 0, Tensor(index), Tensor(new[:2]))
    same("index_add_", rows(x, index, 2.5 * new[:2], 0), 0, Tensor(index), Tensor(new[:2]), alpha=2.5)
    same("index_copy_", replaced(x, 0, index, new[:2]), 0, Tensor(index), Tensor(new[:2]))
    same("index_fill_", replaced(x, 1, index, 1.5), 1, Tensor(index), 1.5)
    same("index_put_", replaced(x, 0, index, new[:2]), (Tensor(index),), Tensor(new[:2]))
    same("index_put_", rows(x, index, new[:2], 0), (Tensor(index),), Tensor(new[:2]), True)
    same("masked_fill_", np.where(mask, 9, x), Tensor(mask), 9)
    same("masked_scatter_", filled(x, mask, new), Tensor(mask), Tensor(new))
    same("scatter_", along(x, 0, spots, new[:2]), 0, Tensor(spots), Tensor(new[:2]))
    same("scatter_add_", along(x, 0, spots, new[:2], True), 0, Tensor(spots), Tensor(new[:2]))
    flat = x.copy()
    np.put(flat, [7, 2], [1.5, 2.5])
    same("put_", flat, Tensor([7, 2]), Tensor([1.5, 2.5]))
    diagonal = x.copy()
    np.fill_diagonal(diagonal, 4.5)
    same("fill_diagonal_", diagonal, 4.5)
