"""Shapes, joins, splits and arrangements under all of their names against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.meaning import A, Array, Checks

from .checks import add_everywhere

checks = Checks("NumPy")


def add(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    add_everywhere(checks, names, expected, *cases, **{"dtypes": "float32", **more})


def plain(names: str, expected: Any, *cases: Any, **more: Any) -> None:
    checks.add(names, expected, *cases, **{"dtypes": "float32", **more})


# Shapes.
add("reshape Reshape", np.reshape, (A(3, 4), (2, -1)), (A(2, 3, 2), (12,)), (A(0, 3), (3, 0)))
add("ravel", np.ravel, (A(3, 4),), (A(2, 3, 2),), (A(0, 3),), (A(),))
add("transpose Transpose permute", np.transpose, (A(3, 4), (1, 0)), (A(2, 3, 4), (2, 0, 1)), (A(0, 3), (1, 0)))
plain("numpy.transpose Tensor.transpose", np.transpose, (A(3, 4),), (A(2, 3, 4),), (A(0, 3),))
add("swapaxes swapdims", np.swapaxes, (A(3, 4), 0, 1), (A(2, 3, 4), 0, -1), (A(0, 3), -2, 1))
add("moveaxis movedim", np.moveaxis, (A(3, 4), 0, 1), (A(2, 3, 4), (0, 1), (-1, 0)), (A(0, 3), -1, 0))
plain("numpy.rollaxis", np.rollaxis, (A(2, 3, 4), 2), (A(2, 3, 4), 0, 3), (A(0, 3), 1))
add("expand_dims unsqueeze ExpandDims", np.expand_dims, (A(3, 4), 0), (A(5), -1), (A(0, 3), 1))
add("squeeze", np.squeeze, (A(3, 1, 4),), (A(1, 5, 1), 0), (A(0, 1), -1), (A(1, 3, 1), (0, 2)))
plain("ops.Squeeze", np.squeeze, (A(3, 1, 4),), (A(1, 5, 1),), (A(0, 1),))
plain("ops.Squeeze", lambda x: x[:, 0], (A(3, 1, 4),), (A(1, 1),), (A(0, 1),), init={"axis": 1})
plain(
    "ops.flatten ops.Flatten",
    lambda x: x.reshape(x.shape[0], -1) if x.size else x.reshape(0, 3),
    (A(2, 3, 4),),
    (A(3, 4),),
    (A(0, 3),),
)
plain("Tensor.flatten", np.ravel, (A(2, 3, 4),), (A(5),), (A(0, 3),))
plain(
    "ops.flatten",
    lambda x, start_dim, end_dim: x.reshape(2, 12, 2),
    (A(2, 3, 4, 2),),
    (A(2, 4, 3, 2),),
    (A(2, 12, 1, 2),),
    kwargs={"start_dim": 1, "end_dim": -2},
)
plain("ops.flatten Tensor.flatten", lambda x, order: x.ravel("F"), (A(5),), kwargs={"order": "F"})
add("broadcast_to", np.broadcast_to, (A(3, 1), (3, 4)), (A(4), (2, 3, 4)), (A(1, 3), (0, 3)))
plain("ops.BroadcastTo", lambda x: np.broadcast_to(x, (2, 3)), (A(3),), (A(2, 1),), (A(1, 1),), init={"shape": (2, 3)})
plain(
    "ops.expand Tensor.expand",
    lambda x, s: np.broadcast_to(x, [x.shape[k] if n == -1 else n for k, n in enumerate(s)]),
    (A(3, 1), (3, 4)),
    (A(1, 4), (2, -1)),
    (A(1, 3), (0, 3)),
)
plain(
    "ops.expand_as Tensor.expand_as",
    lambda x, y: np.broadcast_to(x, y.shape),
    (A(3, 1), A(3, 4)),
    (A(4), A(2, 3, 4)),
    (A(1, 3), A(0, 3)),
    grad=(0,),
)
plain(
    "ops.view_as Tensor.view_as Tensor.reshape_as",
    lambda x, y: x.reshape(y.shape),
    (A(3, 4), A(2, 6)),
    (A(6), A(2, 3)),
    (A(0, 3), A(3, 0)),
    grad=(0,),
)
plain("Tensor.view", np.reshape, (A(3, 4), (2, -1)), (A(2, 3, 2), (12,)), (A(0, 3), (3, 0)))
plain(
    "Tensor.resize",
    lambda x, s: np.resize(np.append(x, np.zeros(9)), s),
    (A(3, 4), (2, 3)),
    (A(5), (2, 4)),
    (A(2, 2), (3, 1)),
)
plain("Tensor.sum_to_size", lambda x, s: x.sum(0).reshape(s), (A(3, 4), (1, 4)), (A(3, 4), (4,)), (A(5, 2, 1), (2, 1)))
plain(
    "ops.t Tensor.t Tensor.T Tensor.mT Tensor.H Tensor.mH ops.adjoint Tensor.adjoint",
    np.transpose,
    (A(3, 4),),
    (A(1, 5),),
    (A(0, 3),),
)
plain(
    "ops.adjoint Tensor.adjoint Tensor.mT Tensor.mH",
    lambda x: np.swapaxes(x, -1, -2),
    (A(2, 3, 4),),
    (A(1, 2, 1),),
    (A(0, 2, 3),),
)
for k in (1, 2, 3):
    add(f"atleast_{k}d", getattr(np, f"atleast_{k}d"), (A(),), (A(5),), (A(2, 3),), (A(2, 3, 2),))

# Joins and splits.
PAIRS = (([A(3, 4), A(3, 4)],), ([A(2, 2, 3), A(2, 2, 3), A(2, 2, 3)],), ([A(0, 3), A(0, 3)],))
for axis in (0, 1, -1):
    add("concat cat concatenate", lambda x, axis: np.concatenate(x, axis), *PAIRS, kwargs={"axis": axis}, grad=())
    add("stack", lambda x, axis: np.stack(x, axis), *PAIRS, kwargs={"axis": axis}, grad=())
    plain("ops.Concat", lambda x, axis=axis: np.concatenate(x, axis), *PAIRS, init={"axis": axis}, grad=())
    plain("ops.Stack ops.Pack", lambda x, axis=axis: np.stack(x, axis), *PAIRS, init={"axis": axis}, grad=())
    plain(
        "ops.unstack ops.unbind Tensor.unbind",
        lambda x, axis: tuple(np.moveaxis(x, axis, 0)),
        (A(3, 4), axis),
        (A(2, 3, 2), axis),
        (A(1, 5), axis),
    )
    plain(
        "ops.Unstack ops.Unpack",
        lambda x, axis=axis: tuple(np.moveaxis(x, axis, 0)),
        (A(3, 4),),
        (A(2, 3, 2),),
        (A(1, 5),),
        init={"axis": axis},
    )
for name in ("hstack", "vstack", "dstack", "column_stack"):
    add(name, getattr(np, name), ([A(3, 4), A(3, 4)],), ([A(5), A(5)],), ([A(2, 3, 2), A(2, 3, 2)],), grad=())
plain("ops.row_stack", np.vstack, ([A(3, 4), A(2, 4)],), ([A(5), A(5)],), ([A(2, 3, 2), A(2, 3, 2)],), grad=())
plain("numpy.append", np.append, (A(3, 4), A(2, 2)), (A(3, 4), A(2, 4), 0), (A(0), A(2)))


def pieces(x: Any, size: Any, axis: int = 0) -> Any:
    cuts = np.cumsum(size)[:-1] if isinstance(size, (list, tuple)) else range(size, x.shape[axis], size)
    return tuple(np.split(x, list(cuts), axis))


plain("ops.split Tensor.split", pieces, (A(5, 4), 2), (A(2, 3, 4), (1, 3), -1), (A(4, 2), 4))
plain(
    "ops.chunk Tensor.chunk",
    lambda x, n, axis=0: pieces(x, -(-x.shape[axis] // n), axis),
    (A(5, 4), 2),
    (A(2, 3, 7), 3, -1),
    (A(4, 2), 8),
)
plain(
    "ops.Split",
    lambda x: tuple(np.split(x, 2, 1)),
    (A(3, 4),),
    (A(2, 2, 3),),
    (A(0, 6),),
    init={"axis": 1, "output_num": 2},
)
plain(
    "ops.SplitV",
    lambda x: tuple(np.split(x, [1, 3], 1)),
    (A(3, 4),),
    (A(2, 4, 3),),
    (A(0, 4),),
    init={"size_splits": [1, 2, 1], "split_dim": 1, "num_split": 3},
)
plain(
    "ops.tensor_split Tensor.tensor_split numpy.array_split",
    lambda x, n, axis=0: tuple(np.array_split(x, n, axis)),
    (A(5, 4), 2),
    (A(2, 3, 7), [1, 4], -1),
    (A(4, 2), 3),
)
plain(
    "numpy.split",
    lambda x, n, axis=0: tuple(np.split(x, n, axis)),
    (A(4, 3), 2),
    (A(2, 3, 7), [1, 4], -1),
    (A(0, 4), 4, 1),
)
add(
    "hsplit",
    lambda x, n: tuple(np.array_split(x, n, 0 if x.ndim == 1 else 1)),
    (A(5, 4), 2),
    (A(6), [1, 4]),
    (A(2, 3, 2), 3),
)
add("vsplit", lambda x, n: tuple(np.array_split(x, n, 0)), (A(4, 4), 2), (A(6, 2), [1, 4]), (A(3, 3, 2), 3))
add("dsplit", lambda x, n: tuple(np.array_split(x, n, 2)), (A(5, 2, 4), 2), (A(1, 2, 6), [1, 4]), (A(2, 3, 2), 1))

# Arrangements.
plain(
    "ops.tile Tensor.tile numpy.tile ops.Tile",
    np.tile,
    (A(3, 4), (2, 1)),
    (A(5), (2, 3)),
    (A(0, 2), (1, 2)),
    (A(2, 1), (2,)),
)
plain("Tensor.repeat", np.tile, (A(3, 4), (2, 1)), (A(5), (2, 3)), (A(2, 1), (1, 3)))
plain(
    "numpy.repeat ops.repeat_interleave Tensor.repeat_interleave",
    np.repeat,
    (A(3, 4), 2),
    (A(2, 3, 2), 3, 1),
    (A(3, 2), [1, 0, 2], 0),
)
plain(
    "ops.repeat_elements",
    lambda x, rep, axis=0: np.repeat(x, rep, axis),
    (A(3, 4), 2),
    (A(2, 3, 2), 3, 1),
    (A(1, 5), 1, -1),
)
plain(
    "ops.flip Tensor.flip numpy.flip ops.reverse Tensor.reverse",
    np.flip,
    (A(3, 4), (0,)),
    (A(2, 3, 4), (0, 2)),
    (A(0, 2), (1,)),
)
plain("numpy.flip", np.flip, (A(3, 4),), (A(2, 3, 4), 1), (A(5), 0))
plain("ops.ReverseV2", lambda x: np.flip(x, (0, 1)), (A(3, 4),), (A(2, 3, 4),), (A(1, 5),), init={"axis": [0, 1]})
add("fliplr", np.fliplr, (A(3, 4),), (A(2, 3, 4),), (A(0, 2),))
add("flipud", np.flipud, (A(3, 4),), (A(5),), (A(2, 1),))
add("rot90", np.rot90, (A(3, 4), 1, (0, 1)), (A(2, 3, 4), -1, (0, 2)), (A(0, 2), 6, (1, 0)), (A(2, 3), 4, (0, 1)))
plain("ops.roll Tensor.roll numpy.roll", np.roll, (A(3, 4), 5), (A(2, 3, 4), (1, -2), (0, 2)), (A(1, 5), -1, 1))
plain("ops.Roll", lambda x: np.roll(x, 2, 1), (A(3, 4),), (A(2, 3),), (A(1, 5),), init={"shifts": 2, "dims": 1})
for k in (0, 1, -2):
    plain("ops.tril Tensor.tril numpy.tril", np.tril, (A(3, 4), k), (A(2, 3, 3), k), (A(1, 2), k))
    plain("ops.triu Tensor.triu numpy.triu", np.triu, (A(3, 4), k), (A(2, 3, 3), k), (A(1, 2), k))
    plain("ops.Tril", lambda x, k=k: np.tril(x, k), (A(3, 4),), (A(2, 3, 3),), (A(1, 2),), init={"diagonal": k})
    plain("ops.Triu", lambda x, k=k: np.triu(x, k), (A(3, 4),), (A(2, 3, 3),), (A(1, 2),), init={"diagonal": k})
    plain("numpy.diag", np.diag, (A(4), k), (A(3, 4), k), (A(1), k))
    plain("numpy.diagflat", np.diagflat, (A(4), k), (A(2, 2), k), (A(1), k))
    plain(
        "ops.diag_embed",
        lambda x, k: np.stack([np.diag(row, k) for row in x.reshape(-1, x.shape[-1])]).reshape(
            *x.shape[:-1], *(x.shape[-1] + abs(k),) * 2
        ),
        (A(4), k),
        (A(2, 3), k),
        (A(2, 1, 2), k),
    )
plain(
    "ops.diag_embed",
    lambda x, k, a, b: np.moveaxis(np.stack([np.diag(row, k) for row in x]), (0, 1, 2), (1, 0, 2)),
    (A(2, 3), 1, 0, 2),
    (A(1, 2), -1, 0, 2),
    (A(4, 1), 0, 0, 2),
)
plain(
    "ops.diagonal Tensor.diagonal numpy.diagonal",
    np.diagonal,
    (A(3, 4),),
    (A(2, 3, 4), 1, 1, 2),
    (A(3, 2), -1),
    (A(2, 3, 4), 0, 2, 0),
)
plain(
    "ops.diag Tensor.diag ops.Diag",
    lambda x: np.einsum("ij,ik,jl->ijkl", x, np.eye(len(x)), np.eye(x.shape[1])) if x.ndim == 2 else np.diag(x),
    (A(4),),
    (A(2, 3),),
    (A(1),),
)
for indexing in ("xy", "ij"):
    plain(
        "ops.meshgrid numpy.meshgrid",
        lambda *x, indexing: tuple(np.meshgrid(*x, indexing=indexing)),
        (A(3), A(4)),
        (A(2), A(3), A(1)),
        (A(5), A(1)),
        kwargs={"indexing": indexing},
    )
    plain(
        "ops.Meshgrid",
        lambda x, i=indexing: tuple(np.meshgrid(*x, indexing=i)),
        ([A(3), A(4)],),
        ([A(2), A(3), A(1)],),
        ([A(5), A(1)],),
        init={"indexing": indexing},
        grad=(),
    )
plain(
    "numpy.broadcast_arrays", lambda *x: tuple(np.broadcast_arrays(*x)), (A(3, 1), A(4)), (A(5), A(1)), (A(0, 2), A(1))
)
add(
    "narrow",
    lambda x, axis, start, length: np.take(x, range(start, start + length), axis),
    (A(3, 4), 1, 1, 2),
    (A(2, 3, 2), -2, 0, 3),
    (A(5), 0, 2, 0),
)
plain(
    "ops.slice ops.tensor_slice ops.Slice",
    lambda x, b, s: x[tuple(slice(i, i + n) for i, n in zip(b, s))],
    (A(3, 4), (1, 0), (2, 3)),
    (A(2, 3, 2), (0, 1, 1), (2, 2, 1)),
    (A(5), (2,), (3,)),
)
plain(
    "ops.strided_slice ops.StridedSlice",
    lambda x, b, e, s: x[tuple(slice(*v) for v in zip(b, e, s))],
    (A(3, 4), (0, 1), (3, 4), (2, 1)),
    (A(2, 3, 5), (0, 2, 4), (2, 0, 1), (1, -1, -2)),
    (A(5), (1,), (1,), (1,)),
)
plain(
    "ops.pixel_shuffle",
    lambda x, r: np.einsum(
        "nchwij->nchiwj", x.reshape(-1, x.shape[-3] // r**2, r, r, *x.shape[-2:]).transpose(0, 1, 4, 5, 2, 3)
    ).reshape(*x.shape[:-3], -1, r * x.shape[-2], r * x.shape[-1]),
    (A(2, 8, 3, 2), 2),
    (A(1, 9, 1, 2), 3),
    (A(4, 2, 2), 2),
)
plain(
    "ops.pixel_unshuffle",
    lambda x, r: (
        x.reshape(-1, x.shape[-3], x.shape[-2] // r, r, x.shape[-1] // r, r)
        .transpose(0, 1, 3, 5, 2, 4)
        .reshape(*x.shape[:-3], -1, x.shape[-2] // r, x.shape[-1] // r)
    ),
    (A(2, 2, 4, 6), 2),
    (A(1, 1, 3, 6), 3),
    (A(3, 2, 2), 2),
)
plain(
    "ops.channel_shuffle",
    lambda x, g: x.reshape(x.shape[0], g, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape),
    (A(2, 6, 3, 2), 3),
    (A(1, 4, 1, 1), 2),
    (A(1, 5, 2, 2), 5),
)
PADS = (
    ((A(3, 4), (1, 2, 1, 1)), ((1, 1), (1, 2))),
    ((A(2, 3, 4), (2, 0)), ((0, 0), (0, 0), (2, 0))),
    ((A(1, 5), (0, 3)), ((0, 0), (0, 3))),
)


def whole(values: Any) -> Array:
    """Whole numbers, as a tensor."""
    return Array(np.shape(values), dtype="int64", values=values)


for case, pairs in PADS:
    plain("ops.pad", lambda x, p, pairs=pairs: np.pad(x, pairs), case)
    plain(
        "ops.pad",
        lambda x, p, mode, value, pairs=pairs: np.pad(x, pairs, constant_values=value),
        (*case, "constant", 1.5),
    )
    plain("numpy.pad", np.pad, (case[0], pairs))
    plain("numpy.pad", np.pad, (case[0], pairs, "constant"), kwargs={"constant_values": 1.5})
    plain("ops.Pad", lambda x, pairs=pairs: np.pad(x, pairs), case[:1], init={"paddings": pairs})
    plain("ops.MirrorPad", lambda x, p: np.pad(x, p, "symmetric"), (case[0], whole(pairs)), init={"mode": "SYMMETRIC"})
    for mode, theirs in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        if case[0].shape != (3, 4):
            plain("ops.pad", lambda x, p, mode, pairs=pairs, theirs=theirs: np.pad(x, pairs, theirs), (*case, mode))
plain(
    "ops.MirrorPad",
    lambda x, p: np.pad(x, p, "reflect"),
    (A(3, 4), whole([(1, 2), (0, 3)])),
    (A(5), whole([(4, 0)])),
    (A(2, 3, 2), whole([(0, 0), (1, 1), (1, 0)])),
)
plain(
    "ops.block_diag",
    lambda *x: np.array([[1.0, 2, 0], [0, 0, 3]]),
    (A(1, 2, values=np.array([[1.0, 2.0]])), A(1, 1, values=np.array([[3.0]]))),
)
plain(
    "ops.cartesian_prod",
    lambda *x: np.stack([g.ravel() for g in np.meshgrid(*x, indexing="ij")], -1),
    (A(3), A(2)),
    (A(1), A(4), A(2)),
    (A(5), A(1)),
)
plain(
    "ops.combinations",
    lambda x, r=2, w=False: np.array(list(_choices(x, r, w))).reshape(-1, r),
    (A(4),),
    (A(5), 3),
    (A(3), 2, True),
)
plain("ops.vander", lambda x, n=None: np.vander(x, n), (A(3),), (A(4), 2), (A(1), 5))
plain("numpy.vander", np.vander, (A(3),), (A(4), 2), (A(1), 5, True))
add("trace", np.trace, (A(3, 4),), (A(5, 2),), (A(1, 1),))
plain("ops.Trace", np.trace, (A(3, 4),), (A(5, 2),), (A(1, 1),))
plain("Tensor.trace numpy.trace", np.trace, (A(3, 4), 1), (A(2, 3, 4), -1, 1, 2), (A(1, 1), 0))


def _choices(x: Any, r: int, again: bool) -> Any:
    from itertools import combinations, combinations_with_replacement

    return (combinations_with_replacement if again else combinations)(x, r)


def _windows(x: Any, k: Any, d: Any, p: Any, s: Any) -> Any:
    """(N, C, kh kw, L): what each window holds."""
    x = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    sizes = [(n - (a - 1) * b - 1) // c + 1 for n, a, b, c in zip(x.shape[2:], k, d, s)]
    rows = [
        [x[:, :, i * s[0] + a * d[0], j * s[1] + b * d[1]] for i in range(sizes[0]) for j in range(sizes[1])]
        for a in range(k[0])
        for b in range(k[1])
    ]
    return np.moveaxis(np.array(rows), (0, 1, 2, 3), (2, 3, 0, 1))


def pair(v: Any) -> Any:
    return v if isinstance(v, tuple) else (v, v)


def unfolded(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    found = _windows(x, *map(pair, (kernel_size, dilation, padding, stride)))
    return found.reshape(x.shape[0], -1, found.shape[-1])


plain("ops.unfold", unfolded, (A(2, 3, 4, 5), 2), (A(1, 2, 5, 4), (3, 2), (1, 2), (1, 0), (2, 1)), (A(2, 1, 3, 3), 3))
plain(
    "ops.fold",
    lambda x, size, k: folded(x, size, k),
    (A(2, 8, 6), (3, 4), 2),
    (A(1, 6, 4), (4, 3), (3, 2)),
    (A(2, 4, 1), (2, 2), 2),
)


def folded(x: Any, size: Any, k: Any) -> Any:
    """The transpose of `unfolded`."""
    k = pair(k)
    shape = (x.shape[0], x.shape[1] // (k[0] * k[1]), *size)
    out = np.zeros(shape)
    for place in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[place] = 1
        out[place] = (unfolded(unit, k) * x).sum()
    return out


test_values, test_gradients = checks.tests()
