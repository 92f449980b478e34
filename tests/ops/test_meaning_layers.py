"""Activations, norms, products and pooling under all of their names against NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as special

from tests.meaning import A, Checks
from tests.ops.layer_support import softplus

from .checks import add_everywhere

checks = Checks("NumPy")


def add(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    add_everywhere(checks, names, expected, *cases, **{"dtypes": "float32", **more})


def plain(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    """Compiled in the first case only."""
    checks.add(names, expected, cases[0], **{"dtypes": "float32", **more})
    checks.add(names, expected, *cases[1:], **{"dtypes": "float32", "jit": False, **more})


# Activations.
WIDE = ((A(3, 4, low=-5, high=5),), (A(2, 3, 2),), (A(0, 3),))


def tanh_gelu(x: Any) -> Any:
    return x * special.expit(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


add("relu ReLU", lambda x: np.maximum(x, 0), *WIDE)
add("relu6 ReLU6", lambda x: np.clip(x, 0, 6), (A(3, 4, low=-9, high=9),), *WIDE[1:])
add("leaky_relu", lambda x, alpha=0.2: np.where(x > 0, x, alpha * x), *WIDE, (A(5), 0.7))
add("elu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), *WIDE)
add("Elu", lambda x: np.where(x > 0, x, np.expm1(x)), *WIDE)
add("celu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)), *WIDE, (A(5), 0.7))
plain("ops.CeLU", lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)), *WIDE, init={"alpha": 0.7})
add("selu SeLU", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), *WIDE)
add("gelu", lambda x: x * special.ndtr(x), *WIDE, oracle="SciPy")
add("GeLU Gelu", tanh_gelu, *WIDE)
plain("ops.gelu", lambda x, approximate: tanh_gelu(x), *WIDE, kwargs={"approximate": "tanh"})
add(
    "fast_gelu FastGeLU FastGelu",
    lambda x: x / (1 + np.exp(-1.702 * np.abs(x))) * np.exp(0.851 * (x - np.abs(x))),
    *WIDE,
)
add("silu", lambda x: x * special.expit(x), *WIDE, oracle="SciPy")
add("mish Mish", lambda x: x * np.tanh(softplus(x)), *WIDE)
add("softplus Softplus", softplus, *WIDE, (A(3, 4, low=15, high=25),))
plain("ops.softplus", softplus, *WIDE, kwargs={"beta": 2, "threshold": 3})
add("logsigmoid", lambda x: -softplus(-x), *WIDE)
add("softsign Softsign", lambda x: x / (1 + np.abs(x)), *WIDE)
add("hardsigmoid HSigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, *WIDE)
add("hardswish HSwish", lambda x: x * np.clip(x + 3, 0, 6) / 6, *WIDE)
add("hardtanh", lambda x, low=-1, high=1: np.clip(x, low, high), *WIDE, (A(5), -0.3, 1.2))
add("hardshrink", lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0), *WIDE, (A(5), 1.2))
plain("ops.HShrink", lambda x: np.where(np.abs(x) > 1.2, x, 0), *WIDE, init={"lambd": 1.2})
add("softshrink soft_shrink", lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0), *WIDE, (A(5), 1.2))
plain("ops.SoftShrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 1.2, 0), *WIDE, init={"lambd": 1.2})
add("tanhshrink", lambda x: x - np.tanh(x), *WIDE)
add("threshold", lambda x, t, v: np.where(x > t, x, v), (A(3, 4), 0.3, -1.5), (A(5), -1.0, 2.0), (A(0, 2), 0.0, 1.0))
add("softmax", special.softmax, (A(3, 4), -1), (A(2, 3, 4), 1), (A(1, 5), 0), oracle="SciPy")
add("log_softmax", special.log_softmax, (A(3, 4), -1), (A(2, 3, 4), 1), (A(1, 5), 0), oracle="SciPy")
add("softmin", lambda x, axis: special.softmax(-x, axis), (A(3, 4), -1), (A(2, 3, 4), 1), (A(1, 5), 0), oracle="SciPy")


def halves(x: Any, axis: int, function: Any) -> Any:
    return function(*np.split(x, 2, axis))


for axis in (-1, 0):
    plain(
        "ops.Softmax",
        lambda x, a=axis: special.softmax(x, a),
        (A(3, 4),),
        (A(2, 3, 4),),
        (A(1, 5),),
        init={"axis": axis},
        oracle="SciPy",
    )
    plain(
        "ops.LogSoftmax",
        lambda x, a=axis: special.log_softmax(x, a),
        (A(3, 4),),
        (A(2, 3, 4),),
        (A(1, 5),),
        init={"axis": axis},
        oracle="SciPy",
    )
    plain(
        "ops.GLU",
        lambda x, a=axis: halves(x, a, lambda u, v: u * special.expit(v)),
        (A(4, 4),),
        (A(2, 3, 2),),
        (A(2, 6),),
        init={"axis": axis},
    )


add(
    "glu",
    lambda x, axis=-1: halves(x, axis, lambda u, v: u * special.expit(v)),
    (A(3, 4),),
    (A(2, 4, 3), 1),
    (A(1, 2),),
)
add(
    "swiglu",
    lambda x, dim=-1: halves(x, dim, lambda u, v: u * special.expit(u) * v),
    (A(3, 4),),
    (A(2, 4, 3), 1),
    (A(1, 2),),
)
add(
    "prelu PReLU",
    lambda x, w: np.where(x > 0, x, x * w.reshape(-1, *(1,) * (x.ndim - 2))),
    (A(3, 4), A(4)),
    (A(2, 3, 2), A(3)),
    (A(1, 5), A(1)),
)

# Norms.


def unit(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def channels(v: Any, x: Any) -> Any:
    return v.reshape(-1, *(1,) * (x.ndim - 2))


plain(
    "ops.layer_norm",
    lambda x, s, w, b: unit(x, tuple(range(x.ndim - len(s), x.ndim)), 1e-5) * w + b,
    (A(3, 4), (4,), A(4), A(4)),
    (A(2, 3, 4), (3, 4), A(3, 4), A(3, 4)),
    (A(1, 5), (5,), A(5), A(5)),
    tolerance=10,
)
plain(
    "ops.layer_norm",
    lambda x, s, eps: unit(x, -1, eps),
    (A(3, 4), (4,)),
    (A(2, 3, 4), (4,)),
    (A(1, 5), (5,)),
    kwargs={"eps": 0.1},
    tolerance=10,
)
plain(
    "ops.LayerNorm",
    lambda x, w, b: (unit(x, -1, 0.01) * w + b, x.mean(-1, keepdims=True), x.var(-1, keepdims=True)),
    (A(3, 4), A(4), A(4)),
    (A(2, 5), A(5), A(5)),
    (A(1, 5), A(5), A(5)),
    init={"epsilon": 0.01},
    tolerance=10,
)
plain(
    "ops.group_norm",
    lambda x, g, w, b: unit(x.reshape(x.shape[0], g, -1), 2, 1e-5).reshape(x.shape) * channels(w, x) + channels(b, x),
    (A(2, 4, 3), 2, A(4), A(4)),
    (A(1, 6, 2, 2), 3, A(6), A(6)),
    (A(3, 2, 5), 1, A(2), A(2)),
    tolerance=10,
)
plain(
    "ops.batch_norm",
    lambda x, m, v, w, b: (x - channels(m, x)) / np.sqrt(channels(v, x) + 1e-5) * channels(w, x) + channels(b, x),
    (A(3, 4), A(4), A(4, low=0.3), A(4), A(4)),
    (A(2, 3, 5), A(3), A(3, low=0.3), A(3), A(3)),
    (A(1, 2, 2, 2), A(2), A(2, low=0.3), A(2), A(2)),
    tolerance=10,
)
plain(
    "ops.rms_norm ops.RmsNorm",
    lambda x, g: (
        x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g,
        1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6),
    ),
    (A(3, 4), A(4)),
    (A(2, 3, 4), A(4)),
    (A(1, 5), A(5)),
    tolerance=3,
)


def local(x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5) -> Any:
    sums = np.stack([(x[:, max(c - depth_radius, 0) : c + depth_radius + 1] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return x / (bias + alpha * sums) ** beta


IMAGES = ((A(2, 4, 3, 2),), (A(1, 7, 2, 2),), (A(1, 1, 2, 3),))
plain("ops.lrn ops.LRN", local, *IMAGES)
plain("ops.lrn", local, *IMAGES, kwargs={"depth_radius": 1, "bias": 2.0, "alpha": 0.3, "beta": 0.75})
plain(
    "ops.LRN",
    lambda x: local(x, 1, 2.0, 0.3, 0.75),
    *IMAGES,
    init={"depth_radius": 1, "bias": 2.0, "alpha": 0.3, "beta": 0.75},
)
plain(
    "ops.bias_add ops.BiasAdd",
    lambda x, b: x + channels(b, x),
    (A(3, 4), A(4)),
    (A(2, 3, 2), A(3)),
    (A(1, 2, 2, 2), A(2)),
)
plain(
    "ops.clip_by_norm",
    lambda x, m: x * min(1, m / (np.linalg.norm(x) + 1e-6)),
    (A(3, 4), 0.5),
    (A(5), 90.0),
    (A(2, 1), 0.1),
)

# Products.
add(
    "matmul",
    np.matmul,
    (A(3, 4), A(4, 2)),
    (A(2, 3, 4), A(4, 2)),
    (A(5, 1, 2, 3), A(4, 3, 2)),
    (A(3), A(3)),
    (A(0, 3), A(3, 2)),
)
for ta in (False, True):
    for tb in (False, True):
        shapes = ((4, 3) if ta else (3, 4), (2, 4) if tb else (4, 2))
        plain(
            "ops.MatMul ops.BatchMatMul",
            lambda x, y, ta=ta, tb=tb: (x.T if ta else x) @ (y.T if tb else y),
            (A(*shapes[0]), A(*shapes[1])),
            init={"transpose_a": ta, "transpose_b": tb},
        )
        plain(
            "ops.BatchMatMul",
            lambda x, y, ta=ta, tb=tb: (x.swapaxes(1, 2) if ta else x) @ (y.swapaxes(1, 2) if tb else y),
            (A(2, *shapes[0]), A(2, *shapes[1])),
            init={"transpose_a": ta, "transpose_b": tb},
        )
plain("ops.mm Tensor.mm", np.matmul, (A(3, 4), A(4, 2)), (A(1, 5), A(5, 1)), (A(0, 3), A(3, 2)))
plain("ops.bmm Tensor.bmm", np.matmul, (A(2, 3, 4), A(2, 4, 2)), (A(1, 1, 5), A(1, 5, 1)), (A(3, 2, 2), A(3, 2, 2)))
plain("ops.mv", np.matmul, (A(3, 4), A(4)), (A(1, 5), A(5)), (A(5, 1), A(1)))
plain("ops.dot Tensor.dot numpy.dot", np.dot, (A(3, 4), A(4, 2)), (A(2, 3, 4), A(5, 4, 2)), (A(5), A(5)))
add("inner", np.inner, (A(3, 4), A(2, 4)), (A(5), A(5)), (A(1, 2), A(3, 1, 2)))
add("outer ger Ger", np.outer, (A(3), A(4)), (A(1), A(5)), (A(5), A(1)))
add("kron", np.kron, (A(2, 3), A(3, 2)), (A(3), A(2)), (A(1, 2), A(2, 1)))
plain(
    "ops.tensor_dot numpy.tensordot",
    np.tensordot,
    (A(3, 4), A(4, 2), 1),
    (A(2, 3, 4), A(4, 3, 2), ((1, 2), (1, 0))),
    (A(5), A(5), 1),
)
plain(
    "ops.batch_dot",
    lambda x, y, axes: np.einsum("bij,bkj->bik", x, y),
    (A(2, 3, 4), A(2, 2, 4), (2, 2)),
    (A(1, 3, 2), A(1, 1, 2), (2, 2)),
    (A(3, 1, 5), A(3, 4, 5), (2, 2)),
)
plain(
    "ops.batch_dot",
    lambda x, y: (x * y).sum(1, keepdims=True),
    (A(2, 3), A(2, 3)),
    (A(1, 5), A(1, 5)),
    (A(4, 1), A(4, 1)),
)
plain("ops.vecdot", lambda x, y, axis=-1: (x * y).sum(axis), (A(3, 4), A(3, 4)), (A(5), A(5)), (A(2, 3), A(3)))
plain(
    "ops.vecdot",
    lambda x, y, axis=-1: (x * y).sum(axis),
    (A(3, 4), A(3, 4)),
    (A(2, 1), A(2, 1)),
    (A(2, 3), A(2, 3)),
    kwargs={"axis": 0},
)
plain("ops.cross Tensor.cross", np.cross, (A(2, 3), A(2, 3)), (A(3), A(3)), (A(1, 3), A(1, 3)))
plain(
    "ops.cross",
    lambda x, y, dim: np.cross(x, y, axis=dim),
    (A(3, 2), A(3, 2), 0),
    (A(2, 3, 2), A(2, 3, 2), 1),
    (A(3, 3), A(3, 3), -1),
)
plain(
    "ops.matrix_power Tensor.matrix_power numpy.matrix_power",
    np.linalg.matrix_power,
    (A(3, 3), 3),
    (A(2, 2), 0),
    (A(1, 1), 5),
)
plain(
    "numpy.multi_dot",
    lambda m: np.linalg.multi_dot(m),
    ([A(2, 3), A(3, 4), A(4, 2)],),
    ([A(3, 3), A(3, 1)],),
    ([A(1, 5), A(5, 1), A(1, 2)],),
    grad=(),
)
plain(
    "ops.addr Tensor.addr",
    lambda x, u, v, beta=1, alpha=1: beta * x + alpha * np.outer(u, v),
    (A(3, 4), A(3), A(4)),
    (A(1, 2), A(1), A(2)),
    (A(2, 2), A(2), A(2)),
)
plain(
    "ops.addr Tensor.addr",
    lambda x, u, v, beta=1, alpha=1: beta * x + alpha * np.outer(u, v),
    (A(3, 4), A(3), A(4)),
    (A(1, 2), A(1), A(2)),
    kwargs={"beta": 0.5, "alpha": 2},
)
plain(
    "ops.addmm Tensor.addmm",
    lambda x, a, b: x + a @ b,
    (A(3, 5), A(3, 4), A(4, 5)),
    (A(1, 1), A(1, 2), A(2, 1)),
    (A(2, 2), A(2, 2), A(2, 2)),
)
plain(
    "ops.addmv Tensor.addmv",
    lambda x, a, b: x + a @ b,
    (A(3), A(3, 4), A(4)),
    (A(1), A(1, 2), A(2)),
    (A(2), A(2, 2), A(2)),
)
plain(
    "ops.addbmm Tensor.addbmm",
    lambda x, a, b: x + (a @ b).sum(0),
    (A(3, 5), A(2, 3, 4), A(2, 4, 5)),
    (A(1, 1), A(1, 1, 2), A(1, 2, 1)),
    (A(2, 2), A(3, 2, 2), A(3, 2, 2)),
)
plain(
    "ops.baddbmm Tensor.baddbmm",
    lambda x, a, b, beta=1, alpha=1: beta * x + alpha * a @ b,
    (A(2, 3, 2), A(2, 3, 4), A(2, 4, 2)),
    (A(1, 1, 2), A(1, 1, 5), A(1, 5, 2), 0.5, 2),
    (A(3, 2, 2), A(3, 2, 2), A(3, 2, 2), 2),
)
plain(
    "ops.dense ops.Dense",
    lambda x, w, b: x @ w.T + b,
    (A(3, 4), A(2, 4), A(2)),
    (A(2, 3, 4), A(5, 4), A(5)),
    (A(1, 1), A(1, 1), A(1)),
)
for equation, shapes in (
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("bij,bkj->bik", ((2, 3, 4), (2, 2, 4))),
    ("ii->i", ((3, 3),)),
    ("ij->", ((2, 5),)),
    ("i,j->ij", ((3,), (1,))),
):
    plain("ops.einsum", np.einsum, (equation, *[A(*s) for s in shapes]))

# Pooling.


def pooled(x: Any, k: Any, s: Any, p: Any, ceil: bool, function: Any, fill: float) -> Any:
    """Windows over the last len(k) axes; what lies beyond the padding counts for nothing (NaN)."""
    lead, size = x.shape[: x.ndim - len(k)], x.shape[x.ndim - len(k) :]
    counts = []
    for n, a, b, c in zip(size, k, s, p):
        m = (n + 2 * c - a + (b - 1 if ceil else 0)) // b + 1
        counts.append(m - 1 if ceil and (m - 1) * b >= n + c else m)
    y = np.pad(x, [(0, 0)] * len(lead) + [(c, c) for c in p], constant_values=fill)
    y = np.pad(y, [(0, 0)] * len(lead) + [(0, b + a) for a, b in zip(k, s)], constant_values=np.nan)
    out = np.zeros((*lead, *counts))
    for place in np.ndindex(*counts):
        window = y[(..., *[slice(i * b, i * b + a) for i, a, b in zip(place, k, s)])]
        out[(..., *place)] = function(window, axis=tuple(range(-len(k), 0)))
    return out


LINE, CUBE = A(2, 2, 7), A(1, 2, 4, 3, 4)
for k, s, p, ceil in ((3, 2, 1, False), (2, 1, 0, False), (3, 2, 1, True)):
    for name, x, rank in (("avg_pool1d", LINE, 1), ("avg_pool2d", A(1, 2, 5, 4), 2), ("avg_pool3d", CUBE, 3)):
        for included in (True, False):
            plain(
                f"ops.{name}",
                lambda x, k, s, p, c, i, rank=rank: pooled(
                    x, (k,) * rank, (s,) * rank, (p,) * rank, c, np.nanmean, 0.0 if i else np.nan
                ),
                (x, k, s, p, ceil, included),
            )
    plain(
        "ops.max_pool3d",
        lambda x, k, s, p, d, c: pooled(x, (k,) * 3, (s,) * 3, (p,) * 3, c, np.nanmax, -np.inf),
        (CUBE, k, s, p, 1, ceil),
    )
    plain(
        "ops.max_pool2d",
        lambda x, k, s, p, d, r, c: pooled(x, (k,) * 2, (s,) * 2, (p,) * 2, c, np.nanmax, -np.inf),
        (A(1, 2, 5, 4), k, s, p, 1, False, ceil),
    )


def powers(order: float) -> Any:
    return lambda x, axis: (np.nan_to_num(x) ** order).sum(axis) ** (1 / order)


for order in (1, 2, 3):
    plain(
        "ops.lp_pool1d",
        lambda x, n, k, s: pooled(x, (k,), (s,), (0,), False, powers(n), 0.0),
        (A(2, 2, 7, low=0.3), order, 3, 2),
    )
    plain(
        "ops.lp_pool2d",
        lambda x, n, k, s: pooled(x, (k,) * 2, (s,) * 2, (0,) * 2, False, powers(n), 0.0),
        (A(1, 2, 5, 4, low=0.3), order, 2, 2),
    )


def adaptive(x: Any, size: Any, function: Any) -> Any:
    sizes = size if isinstance(size, tuple) else (size,)
    lead, rank = x.shape[: x.ndim - len(sizes)], len(sizes)
    out = np.zeros((*lead, *sizes))
    for place in np.ndindex(*sizes):
        cut = tuple(slice(i * n // m, -(-(i + 1) * n // m)) for i, m, n in zip(place, sizes, x.shape[x.ndim - rank :]))
        out[(..., *place)] = function(x[(..., *cut)], axis=tuple(range(-rank, 0)))
    return out


for kind, function in (("avg", np.mean), ("max", np.max)):
    plain(
        f"ops.adaptive_{kind}_pool1d",
        lambda x, n, f=function: adaptive(x, n, f),
        (A(2, 3, 6), 3),
        (A(1, 2, 8), 2),
        (A(1, 1, 5), 1),
    )
    plain(
        f"ops.adaptive_{kind}_pool2d",
        lambda x, n, f=function: adaptive(x, n, f),
        (A(2, 3, 6, 5), (4, 2)),
        (A(1, 2, 4, 4), (2, 2)),
        (A(1, 1, 5, 3), (1, 1)),
    )
    plain(
        f"ops.adaptive_{kind}_pool3d",
        lambda x, n, f=function: adaptive(x, n, f),
        (A(2, 1, 4, 3, 5), (3, 2, 2)),
        (A(1, 2, 4, 4, 2), (2, 2, 1)),
        (A(1, 1, 3, 3, 3), (1, 1, 1)),
    )
for rank in (2, 3):
    init = {"output_size": (2,) * rank}
    plain(
        f"ops.AdaptiveAvgPool{rank}D",
        lambda x, r=rank: adaptive(x, (2,) * r, np.mean),
        (A(1, 2, *(5, 4, 3)[:rank]),),
        init=init,
    )
    plain(
        f"ops.{'MaxPool3D' if rank == 3 else 'MaxPool'}",
        lambda x, r=rank: pooled(x, (2,) * r, (2,) * r, (0,) * r, False, np.max, 0),
        (A(1, 2, *(5, 4, 3)[:rank]),),
        init={"kernel_size": 2, "strides": 2},
    )
    plain(
        f"ops.{'AvgPool3D' if rank == 3 else 'AvgPool'}",
        lambda x, r=rank: pooled(x, (2,) * r, (1,) * r, (0,) * r, False, np.mean, 0),
        (A(1, 2, *(5, 4, 3)[:rank]),),
        init={"kernel_size": 2, "strides": 1},
    )
test_values, test_gradients = checks.tests()
