"""The functions of `mint` against NumPy and SciPy, which give what PyTorch's definitions say."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.spatial.distance
import scipy.special

from tests.meaning import A, Array, Checks, I

checks = Checks("NumPy")
SHAPES = ((A(3, 4),), (A(2, 3, 2),), (A(1, 5),))


def distinct(*shape: int) -> Array:
    """Numbers of which no two are equal, so that extremes have derivatives."""
    random = np.random.default_rng(9)
    return Array(shape, values=random.permutation(int(np.prod(shape))).reshape(shape) / 7.0)


ORDERED = ((distinct(3, 4),), (distinct(2, 3, 2),), (distinct(1, 5),))


def add(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    checks.add(" ".join("mint." + n for n in names.split()), expected, *cases, **more)


def by_dim(function: Any, **more: Any) -> Any:
    """A NumPy reduction with `dim` and `keepdim`."""
    return lambda x, dim=None, keepdim=False: function(x, axis=dim, keepdims=keepdim, **more)


def positions(function: Any) -> Any:
    return lambda x, dim=None, keepdim=False: np.asarray(function(x, axis=dim, keepdims=keepdim)).astype(np.int64)


for kwargs in ({}, {"dim": 1}, {"dim": -1, "keepdim": True}, {"dim": (0, 1)}):
    add("mean", by_dim(np.mean), *SHAPES, kwargs=kwargs)
    add("sum", by_dim(np.sum), *SHAPES, kwargs=kwargs)
    add("amax", by_dim(np.max), *ORDERED, kwargs=kwargs)
    add("amin", by_dim(np.min), *ORDERED, kwargs=kwargs)
    add("nansum", by_dim(np.nansum), *SHAPES, kwargs=kwargs)
    add(
        "count_nonzero",
        lambda x, dim=None, keepdim=False: np.sum(x != 0, axis=dim),
        *SHAPES,
        kwargs={k: v for k, v in kwargs.items() if k == "dim"},
        grad=(),
    )
    for correction in (1, 0, 2):
        more = {**kwargs, "correction": correction}

        def spread(
            x: Any, dim: Any = None, keepdim: bool = False, correction: int = 1, both: bool = False, root: bool = False
        ) -> Any:
            found = np.var(x, axis=dim, keepdims=keepdim) * (np.size(x) / np.size(np.var(x, axis=dim)))
            count = np.size(x) / np.size(np.var(x, axis=dim))
            found = found / (count - correction)
            found = np.sqrt(found) if root else found
            return (found, np.mean(x, axis=dim, keepdims=keepdim)) if both else found

        cases = ((A(3, 4),), (A(4, 3, 3),), (A(5, 4),))
        add("var", spread, *cases, kwargs=more)
        add("std", lambda *a, **k: spread(*a, **k, root=True), *cases, kwargs=more)
        add("var_mean", lambda *a, **k: spread(*a, **k, both=True), *cases, kwargs=more)
        add("std_mean", lambda *a, **k: spread(*a, **k, both=True, root=True), *cases, kwargs=more)
for kwargs in ({}, {"dim": 1}, {"dim": -1, "keepdim": True}):
    add("prod", by_dim(np.prod), *SHAPES, kwargs=kwargs)
    add("argmax", positions(np.argmax), *ORDERED, kwargs=kwargs, grad=())
    add("argmin", positions(np.argmin), *ORDERED, kwargs=kwargs, grad=())
    add("all", by_dim(np.all), (I(3, 4, high=3),), (I(0, 3),), kwargs=kwargs, dtypes="int32", grad=())
    add("any", by_dim(np.any), (I(3, 4, high=2),), (I(0, 3),), kwargs=kwargs, dtypes="int32", grad=())
add("max", np.max, *ORDERED)
add("min", np.min, *ORDERED)
add("max", np.maximum, (A(3, 4), A(4)))
add("min", np.minimum, (A(3, 4), A(4)))


def chosen(take: Any) -> Any:
    def run(x: Any, dim: int, keepdim: bool = False) -> Any:
        place = take(x, axis=dim, keepdims=True)
        value = np.take_along_axis(x, place, dim)
        return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))

    return run


for kwargs in ({"dim": 1}, {"dim": -2, "keepdim": True}):
    add("max", chosen(np.argmax), *ORDERED, kwargs=kwargs)
    add("min", chosen(np.argmin), *ORDERED, kwargs=kwargs)
    add(
        "median",
        chosen(lambda x, axis, keepdims: np.take(np.argsort(x, axis), [(x.shape[axis] - 1) // 2], axis)),
        *ORDERED,
        kwargs=kwargs,
    )
    add(
        "kthvalue",
        lambda x, k, **kw: chosen(lambda y, axis, keepdims: np.take(np.argsort(y, axis), [k - 1], axis))(x, **kw),
        *ORDERED,
        kwargs={**kwargs, "k": 1},
    )
add("median", lambda x: np.sort(x, None)[(x.size - 1) // 2], *ORDERED)
for descending in (False, True):

    def ordered(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
        place = np.argsort(-x if descending else x, dim, kind="stable")
        return np.take_along_axis(x, place, dim), place

    add("sort", ordered, *ORDERED, kwargs={"dim": 1, "descending": descending})
    add(
        "argsort",
        lambda *a, **k: ordered(*a, **k)[1],
        *ORDERED,
        kwargs={"dim": -1, "descending": descending, "stable": True},
        grad=(),
    )

    def first(x: Any, k: int, dim: int, largest: bool) -> Any:
        values, place = ordered(x, dim, largest)
        return np.take(values, range(k), dim), np.take(place, range(k), dim)

    add(
        "topk",
        first,
        (distinct(3, 4),),
        (distinct(2, 3, 2),),
        (distinct(5, 3),),
        kwargs={"k": 2, "dim": 1, "largest": descending},
    )


def running(function: Any) -> Any:
    def run(x: Any, dim: int) -> Any:
        value = function.accumulate(x, dim)
        place = np.where(x == value, np.arange(x.shape[dim]).reshape([-1 if a == dim else 1 for a in range(x.ndim)]), 0)
        return value, np.maximum.accumulate(place, dim)

    return run


add("cummax", running(np.maximum), *ORDERED, kwargs={"dim": 1})
add("cummin", running(np.minimum), *ORDERED, kwargs={"dim": 1})
add("cumsum", lambda x, dim: np.cumsum(x, dim), *SHAPES, kwargs={"dim": 1})
add("cumsum", lambda x, dim: np.cumsum(x, dim), (I(3, 4),), kwargs={"dim": 0}, dtypes="int32", grad=())
add("sum", np.sum, (I(3, 4),), dtypes="int32", grad=())
for p in ("fro", "nuc", 1, 3, np.inf):

    def norm(x: Any, p: Any) -> Any:
        return np.linalg.norm(x, "nuc") if p == "nuc" else np.linalg.norm(x.ravel(), None if p == "fro" else p)

    add("norm", norm, (A(3, 4),), (A(2, 2),), (A(1, 5),), kwargs={"p": p}, tolerance=30)
add(
    "norm",
    lambda x, p, dim, keepdim: np.linalg.norm(x, p, dim, keepdim),
    *SHAPES,
    kwargs={"p": 2, "dim": 1, "keepdim": True},
)

# Shapes.
add(
    "cat concat",
    lambda t, dim: np.concatenate(t, dim),
    ((A(3, 4), A(3, 2)), 1),
    ((A(3, 4), A(0, 4)), 0),
    ((A(2), A(1)), -1),
)
add("stack", lambda t, dim: np.stack(t, dim), ((A(3, 4), A(3, 4)), 1), ((A(2), A(2)), -1), ((A(), A()), 0))
add(
    "chunk",
    lambda x, n, dim: tuple(x[:, k : k + 2] for k in range(0, x.shape[1], 2)),
    (A(3, 5), 3, 1),
    (A(2, 3), 2, -1),
    (A(1, 4), 2, 1),
)
add(
    "split",
    lambda x, n, dim: tuple(np.split(x, np.cumsum(n)[:-1], dim)),
    (A(5, 2), (2, 3), 0),
    (A(2, 3), (1, 1, 1), 1),
    (A(4), (4,), -1),
)
add("clone", lambda x: x, *SHAPES)
for k in (0, 1, -2):
    add("diag", lambda x, diagonal: np.diag(x, diagonal), (A(3),), (A(3, 4),), (A(4, 3),), kwargs={"diagonal": k})
add("diff", lambda x, n, dim: np.diff(x, n, dim), (A(5),), (A(4, 5),), (A(4, 4),), kwargs={"n": 2, "dim": -1})
add("flatten", lambda x, start_dim=0, end_dim=-1: x.reshape(-1), *SHAPES)
add("flatten", lambda x, start_dim: x.reshape(x.shape[0], -1), *SHAPES, kwargs={"start_dim": 1})
add(
    "gather",
    lambda x, dim, i: np.take_along_axis(x, i, dim),
    (A(3, 4), 1, I(3, 2, high=4)),
    (A(3, 4), 0, I(1, 4, high=3)),
    (A(5), -1, I(7, high=5)),
)
add(
    "index_select",
    lambda x, dim, i: np.take(x, i, dim),
    (A(3, 4), 1, I(5, high=4)),
    (A(3, 4), 0, I(1, high=3)),
    (A(5), -1, I(7, high=5)),
)


def added(x: Any, dim: int, i: Any, y: Any, alpha: float = 1) -> Any:
    out = np.moveaxis(x.copy(), dim, 0)
    np.add.at(out, i, alpha * np.moveaxis(y, dim, 0))
    return np.moveaxis(out, 0, dim)


add(
    "index_add",
    added,
    (A(3, 4), 1, I(5, high=4), A(3, 5)),
    (A(3, 4), 0, I(2, high=3), A(2, 4)),
    (A(5), 0, I(7, high=5), A(7)),
    kwargs={"alpha": 2},
)


def written(x: Any, dim: int, i: Any, y: Any, adding: bool = False) -> Any:
    out = x.copy()
    for place in np.ndindex(i.shape):
        to = (*place[:dim], i[place], *place[dim + 1 :])
        out[to] = out[to] + y[place] if adding else y[place]
    return out


UNIQUE = Array((2, 3), dtype="int32", values=np.array([[0, 3, 2], [1, 0, 3]], np.int32))
add(
    "scatter",
    written,
    (A(2, 4), 1, UNIQUE, A(2, 3)),
    (A(4, 4), 0, Array((2, 3), dtype="int32", values=np.array([[0, 3, 2], [1, 0, 3]], np.int32)), A(2, 3)),
)
add(
    "scatter_add",
    lambda *a: written(*a, adding=True),
    (A(2, 4), 1, I(2, 3, high=4), A(2, 3)),
    (A(4, 4), 0, I(3, 4, high=4), A(3, 5)),
    (A(5), 0, I(7, high=5), A(7)),
)
add(
    "meshgrid",
    lambda *t, indexing="ij": tuple(np.meshgrid(*t, indexing=indexing)),
    (A(3), A(2)),
    (A(1), A(4)),
    (A(2), A(2), A(3)),
)
add("meshgrid", lambda *t, indexing: tuple(np.meshgrid(*t, indexing=indexing)), (A(3), A(2)), kwargs={"indexing": "xy"})
add(
    "narrow",
    lambda x, dim, s, n: np.take(x, range(s, s + n), dim),
    (A(3, 4), 1, 1, 2),
    (A(3, 4), 0, 0, 3),
    (A(5), -1, 4, 1),
)
add("permute", lambda x, dims: x.transpose(dims), (A(3, 4), (1, 0)), (A(2, 3, 4), (2, 0, 1)), (A(2, 3, 4), (-1, 0, 1)))
add("transpose", lambda x, a, b: np.swapaxes(x, a, b), (A(3, 4), 0, 1), (A(2, 3, 4), -1, 0), (A(2, 1), 1, 1))
add("t", lambda x: x.T, (A(3, 4),), (A(3),), (A(),))
add("repeat_interleave", lambda x, n, dim=None: np.repeat(x, n, dim), (A(3, 4), 2), (A(3, 4), 3, 1), (A(5), 1, 0))
add("reshape", lambda x, s: x.reshape(s), (A(3, 4), (2, -1)), (A(0, 3), (3, 0)), (A(), (1,)))
add("select", lambda x, dim, i: np.take(x, i, dim), (A(3, 4), 1, 2), (A(3, 4), 0, -1), (A(5), 0, 0))
add(
    "squeeze",
    lambda x, dim=None: x.reshape([n for a, n in enumerate(x.shape) if n != 1 or (dim is not None and a != dim)]),
    (A(1, 3, 1),),
    (A(1, 3, 1), 0),
    (A(2, 3), 0),
)
add(
    "where",
    np.where,
    (Array((3, 4), dtype="bool"), A(3, 4), A(4)),
    (Array((1,), dtype="bool"), A(), A(3)),
    (Array((0,), dtype="bool"), A(1), A(0)),
)

# Arithmetic.
PAIRS = ((A(3, 4), A(4)), (A(2, 1), A(1, 3)), (A(), A(0)))
POSITIVE = ((A(3, 4), A(4, low=0.5)), (A(2, 1), A(1, 3, low=0.5)), (A(5), A(5, low=0.5)))
add("add", lambda x, y, alpha=1: x + alpha * y, *PAIRS)
add("add", lambda x, y, alpha: x + alpha * y, *PAIRS, kwargs={"alpha": 3})
add("sub", lambda x, y, alpha: x - alpha * y, *PAIRS, kwargs={"alpha": 3})
add("mul", np.multiply, *PAIRS)
add("div", np.divide, *POSITIVE)
for mode, rounding in (("floor", np.floor), ("trunc", np.trunc)):
    add("div", lambda x, y, rounding_mode, r=rounding: r(x / y), *POSITIVE, kwargs={"rounding_mode": mode}, grad=())
add("floor_divide", np.floor_divide, *POSITIVE, grad=())
add("fmod", np.fmod, *POSITIVE)
add("remainder", np.mod, *POSITIVE)
add(
    "addcdiv",
    lambda x, y, z, value: x + value * y / z,
    (A(3, 4), A(4), A(3, 1, low=0.5)),
    (A(2), A(2), A(2, low=0.5)),
    (A(), A(), A(low=0.5)),
    kwargs={"value": 2},
)
add(
    "addcmul",
    lambda x, y, z, value: x + value * y * z,
    (A(3, 4), A(4), A(3, 1)),
    (A(2), A(2), A(2)),
    (A(), A(), A(3)),
    kwargs={"value": 2},
)
add(
    "baddbmm",
    lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b),
    (A(2, 3, 5), A(2, 3, 4), A(2, 4, 5)),
    (A(1, 1, 1), A(1, 1, 2), A(1, 2, 1)),
    kwargs={"beta": 0.5, "alpha": 2},
)
add("bmm", np.matmul, (A(2, 3, 4), A(2, 4, 5)), (A(1, 1, 1), A(1, 1, 1)), (A(2, 0, 3), A(2, 3, 1)))
add("mv", np.matmul, (A(3, 4), A(4)), (A(1, 1), A(1)), (A(0, 2), A(2)))
add("vdot", np.vdot, (A(4), A(4)), (A(1), A(1)), (A(0), A(0)))
add(
    "cdist",
    lambda x, y: scipy.spatial.distance.cdist(x, y),
    (A(3, 4), A(2, 4)),
    (A(1, 2), A(5, 2)),
    (A(2, 1), A(2, 1)),
    oracle="SciPy",
    tolerance=30,
)
add(
    "cdist",
    lambda x, y, p: scipy.spatial.distance.cdist(x, y, "minkowski", p=p),
    (A(3, 4), A(2, 4)),
    kwargs={"p": 3.0},
    oracle="SciPy",
    tolerance=30,
)
add(
    "clamp clip",
    np.clip,
    (A(3, 4), -0.5, 0.7),
    (A(5), 0.1, 2.5),
    (A(2, 3), A(3, low=-1, high=-0.5), A(2, 1, low=0.5, high=1)),
    tolerance=1,
)
for name, function in (("eq", np.equal), ("ge greater_equal", np.greater_equal), ("less lt", np.less)):
    add(name, function, *PAIRS, grad=())
    add(name, function, (I(4, high=2), I(4, high=2)), dtypes="int32", grad=())
add("fix", np.trunc, *SHAPES, grad=())
add("frac", lambda x: x - np.trunc(x), *SHAPES)
add("isnan", np.isnan, (A(3, values=np.array([1.0, np.nan, np.inf])),), *SHAPES, grad=())
add("lerp", lambda x, y, w: x + w * (y - x), (A(3, 4), A(4), A(3, 1)), (A(2), A(2), 0.25), (A(), A(), A(3)))
add("xlogy", scipy.special.xlogy, *POSITIVE, oracle="SciPy")
add("sqrt", np.sqrt, (A(3, 4, low=0.1),), (A(5, low=0.1),), (A(0),))
add("bitwise_not", np.invert, (I(3, 4),), (I(0),), (Array((3,), dtype="bool"),), dtypes="int32", grad=())
add("softmax", lambda x, dim: scipy.special.softmax(x, dim), *SHAPES, kwargs={"dim": 1}, oracle="SciPy")
add(
    "histc",
    lambda x, bins, min, max: np.histogram(x, bins, (min, max))[0].astype(x.dtype),
    *SHAPES,
    kwargs={"bins": 5, "min": -1, "max": 1},
    grad=(),
)
add(
    "triangular_solve",
    lambda b, a: (scipy.linalg.solve_triangular(a, b), a),
    (A(3, 2), A(3, 3, values=np.triu(np.ones((3, 3))) + np.eye(3))),
    oracle="SciPy",
    grad=(0,),
)


def tbc(x: Any, w: Any, b: Any, pad: int = 0) -> Any:
    x = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    n = x.shape[0] - w.shape[0] + 1
    return np.stack([sum(x[i + k] @ w[k] for k in range(w.shape[0])) + b for i in range(n)])


add(
    "conv_tbc",
    tbc,
    (A(5, 2, 3), A(3, 3, 4), A(4)),
    (A(4, 1, 2), A(1, 2, 1), A(1)),
    (A(3, 1, 1), A(3, 1, 2), A(2), 1),
    oracle="definition",
    tolerance=30,
)


def conv(x: Any, w: Any, b: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    span = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    size = [(n - s) // stride + 1 for n, s in zip(x.shape[2:], span)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    per, into = w.shape[0] // groups, w.shape[1]
    for o in range(w.shape[0]):
        lead = o // per * into
        for i, j in np.ndindex(*size):
            part = x[
                :,
                lead : lead + into,
                i * stride : i * stride + span[0] : dilation,
                j * stride : j * stride + span[1] : dilation,
            ]
            out[:, o, i, j] = (part * w[o]).sum((1, 2, 3))
    return out if b is None else out + b.reshape(-1, 1, 1)


for kwargs in ({}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2, "padding": 1}):
    add(
        "conv2d",
        conv,
        (A(2, 4, 6, 5), A(6, 4 // kwargs.get("groups", 1), 3, 2), A(6)),
        kwargs=kwargs,
        oracle="definition",
        tolerance=30,
    )
add(
    "batch_norm_stats",
    lambda x, eps: (x.mean((0, 2)), 1 / np.sqrt(x.var((0, 2)) + eps)),
    (A(3, 4, 2), 1e-3),
    (A(5, 1, 3), 1e-5),
    oracle="definition",
    tolerance=30,
)
add(
    "batch_norm_elemt",
    lambda x, w, b, m, i: (x - m[:, None]) * i[:, None] * w[:, None] + b[:, None],
    (A(3, 4, 2), A(4), A(4), A(4), A(4)),
    oracle="definition",
)

# Names that are the very functions of `ops`.
for name, function in (
    ("addbmm", lambda x, a, b: x + (a @ b).sum(0)),
    ("addmm", lambda x, a, b: x + a @ b),
    ("addmv", lambda x, a, b: x + a @ b),
):
    add(
        name,
        function,
        {
            "addbmm": (A(3, 5), A(2, 3, 4), A(2, 4, 5)),
            "addmm": (A(3, 5), A(3, 4), A(4, 5)),
            "addmv": (A(3), A(3, 4), A(4)),
        }[name],
    )
add("logsumexp", lambda x, dim: scipy.special.logsumexp(x, dim), *SHAPES, kwargs={"dim": 1}, oracle="SciPy")
add("linalg.inv", np.linalg.inv, (A(3, 3, values=np.eye(3) * 2 + np.arange(9).reshape(3, 3) / 9),), tolerance=30)
add(
    "linalg.matrix_norm",
    lambda x, ord, dim, keepdim: np.linalg.norm(x, ord, dim, keepdim),
    (A(3, 4),),
    (A(2, 5),),
    kwargs={"ord": 2, "dim": (0, 1), "keepdim": True},
    tolerance=30,
)
add(
    "linalg.vector_norm",
    lambda x, ord, dim, keepdim: np.linalg.norm(x, ord, dim, keepdim),
    *SHAPES,
    kwargs={"ord": 3, "dim": 1, "keepdim": True},
    tolerance=30,
)
add("linalg.norm", lambda x, ord, dim: np.linalg.norm(x, ord, dim), *SHAPES, kwargs={"ord": 1, "dim": 1}, tolerance=30)
add("linalg.qr", lambda a: tuple(np.linalg.qr(a)), (A(4, 3),), (A(2, 3),), tolerance=30)
add("special.log_softmax", lambda x, dim: scipy.special.log_softmax(x, dim), *SHAPES, kwargs={"dim": 1}, oracle="SciPy")
add("special.round", lambda x, decimals=0: np.round(x, decimals), (A(3, 4),), grad=())
add(
    "special.round",
    lambda x, decimals: np.round(x, decimals),
    (A(3, 4),),
    kwargs={"decimals": 2},
    grad=(),
    tolerance=10,
)
test_values, test_gradients = checks.tests()
CHECKED = {
    f"mint.{n}": "definition"
    for n in (
        "addr_",
        "equal",
        "allclose",
        "batch_norm_gather_stats_with_counts",
        "bernoulli",
        "empty",
        "empty_like",
        "imag",
        "item",
        "linspace",
        "multinomial",
        "nonzero",
        "normal",
        "ones",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "randperm",
        "real",
        "unique",
        "zeros",
    )
}
