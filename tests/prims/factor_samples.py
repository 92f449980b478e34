"""What the test of factors needs besides the records' samples: more samples, and the reasons of
primitives that have none."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims.base import Sample
from mycel._src.compiler.prims.indexing.index_writes import MODES
from mycel._src.foundation.dtype import uint32, uint64

__all__ = ["SAMPLES", "WITHOUT"]

_RNG = np.random.default_rng(5)
_SQUARE = _RNG.normal(size=(3, 2, 4, 4)) + 4 * np.eye(4)
_POSITIVE = np.matmul(_SQUARE, np.swapaxes(_SQUARE, -1, -2))
_TALL = _RNG.normal(size=(3, 2, 5, 3))


def _images(*rows: tuple[Any, ...]) -> tuple[dict[str, tuple[Sample, ...]], ...]:
    """Samples of convolutions and their gradients."""
    made: dict[str, list[Sample]] = {"conv": [], "conv_grad_input": [], "conv_grad_weight": []}
    for x, w, y, stride, pad, groups in rows:
        rank = len(x) - 2
        params = {"strides": (stride,) * rank, "padding": ((pad, pad),) * rank, "dilation": (1,) * rank}
        params["groups"] = groups
        made["conv"].append(Sample((x, w), params))
        made["conv_grad_input"].append(Sample((y, w), {"input_shape": x, **params}))
        made["conv_grad_weight"].append(Sample((x, y), {"weight_shape": w, **params}))
    return ({k: tuple(v) for k, v in made.items()},)


_CONV = _images(
    ((3, 6, 5), (4, 3, 3), (3, 4, 5), 1, 1, 2),
    ((3, 8, 4), (12, 2, 2), (3, 12, 2), 2, 0, 4),
    ((2, 3, 4, 3), (5, 3, 1, 1), (2, 5, 4, 3), 1, 0, 1),
    ((2, 6, 4), (12, 1, 3), (2, 12, 4), 1, 1, 6),
)[0]
_WINDOW: dict[str, Any] = {"window": (2, 1), "strides": (2, 1), "padding": ((1, 1), (0, 0))}


def _attentions() -> dict[str, tuple[Sample, ...]]:
    """Samples of attention and its derivative."""
    plain: dict[str, Any] = {"scale": 0.5, "operands": (), "band": None, "fill": -1e9, "keep": 1.0}
    state = np.array([5, 2**64 - 9], np.uint64)
    drop = np.arange(20).reshape(4, 5) % 4 == 1
    forward, backward = [], []
    for q, k, v, masks, params in (
        ((3, 2, 4, 3), (3, 2, 5, 3), (3, 2, 5, 6), (), {}),
        ((3, 4, 4, 3), (3, 1, 5, 3), (3, 1, 5, 2), (state,), {"operands": ("state",), "keep": 0.5}),
        ((4, 3), (5, 3), (5, 2), (state,), {"operands": ("state",), "keep": 0.5, "band": (-1, None)}),
        ((2, 4, 3), (2, 5, 3), (2, 5, 2), (drop, state), {"operands": ("drop", "state"), "keep": 0.7, "band": (-2, 1)}),
        ((2, 3, 4, 3), (2, 3, 4, 3), (2, 3, 4, 3), ((2, 1, 4, 4),), {"operands": ("bias",), "band": (None, 0)}),
    ):
        kinds = {"bias": "*", "state": "uint64", "drop": "bool"}
        words = tuple(kinds[w] for w in params.get("operands", ()))
        forward.append(Sample((q, k, v, *masks), {**plain, **params}, dtypes=("*",) * 3 + words))
        given = ((*q[:-1], v[-1]), q, k, v, *[(*q[:-1], 1)] * 3)
        backward.append(Sample((*given, *masks), {**plain, **params}, dtypes=("*",) * 7 + words, domain=(0.5, 1.5)))
    return {"attention": tuple(forward), "attention_grad": tuple(backward)}


# Samples whose axes can be divided where those of the record are of size 1, or of other shapes.
SAMPLES: dict[str, tuple[Sample, ...]] = {
    "reshape": tuple(
        Sample((old,), {"shape": new})
        for old, new in (
            ((6, 4), (24,)),
            ((24,), (6, 4)),
            ((4, 6), (6, 4)),
            ((5, 12), (5, 3, 4)),
            ((3, 2, 4, 5), (6, 20)),
            ((2, 6, 5), (3, 4, 5)),
            ((2, 1, 6, 7), (12, 1, 7)),
            ((2, 3, 5, 2, 3), (3, 2, 5, 6)),
            ((8, 9), (12, 6)),
            ((3, 0, 2), (3, 2, 0, 2)),
        )
    ),
    "transpose": (Sample(((2, 3, 4, 2),), {"permutation": (0, 2, 1, 3)}),),
    "broadcast_to": (Sample(((2, 1, 3),), {"shape": (4, 2, 5, 3)}),),
    "slice": (
        Sample(((4, 5, 3),), {"starts": (0, 1, 0), "stops": (4, 4, 3), "steps": (1, 2, 1)}),
        Sample(((4, 6),), {"starts": (4, 0), "stops": (4, 6), "steps": (1, 1)}),
    ),
    "pad": (
        Sample(((3, 2, 4), ()), {"low": (0, 1, 0), "high": (0, 2, 0), "interior": (0, 1, 0)}),
        Sample(((3, 0), ()), {"low": (0, 2), "high": (0, 4), "interior": (0, 0)}),
    ),
    "concat": (Sample(((3, 2, 4), (3, 5, 4)), {"axis": 1}), Sample(((3, 4), (3, 0), (3, 2)), {"axis": 1})),
    "random_bits": tuple(
        Sample((state,), {"shape": (3, 2, 4), "dtype": kind}, dtypes=("uint64",))
        for state in (np.array([7, 2**64 - 5], np.uint64), np.array([[1, 2], [3, 2**33], [4, 5]], np.uint64))
        for kind in (uint32, uint64)
    )
    + (Sample((np.array([7, 9], np.uint64),), {"shape": (1, 4, 3), "dtype": uint32}, dtypes=("uint64",)),),
    **_CONV,
    **_attentions(),
    "window_sum": (Sample(((3, 4, 6, 5),), _WINDOW),),
    "window_max": (Sample(((3, 4, 6, 5),), _WINDOW),),
    "window_argmax": (Sample(((3, 4, 6, 5),), _WINDOW, integers=(0, 3)),),
    "window_scatter": (
        Sample(
            ((3, 4, 4, 5), (3, 4, 4, 5)),
            {"input_shape": (3, 4, 6, 5), **_WINDOW},
            integers=(0, 2),
            dtypes=("*", "int32"),
        ),
    ),
    "window_gather": (Sample(((3, 4, 6, 5), (3, 4, 4, 5)), _WINDOW, integers=(0, 2), dtypes=("*", "int32")),),
    "matmul": (Sample(((3, 1, 4, 5), (2, 5, 6))),),
    "dynamic_slice": (Sample(((5, 4, 6), (), (), ()), {"sizes": (5, 2, 6)}, dtypes=("*", "int32", "int64", "int32")),),
    "dynamic_update_slice": (Sample(((5, 4, 6), (5, 2, 6), (), (), ()), dtypes=("*", "*", "int32", "int64", "int32")),),
    "take": (
        Sample(((3, 7, 4), (2, 5)), {"axis": 1}, integers=(-7, 7), dtypes=("*", "int32")),
        Sample(((7, 4), (6,)), {"axis": 0, "bounds": "front"}, integers=(0, 7), dtypes=("*", "int64")),
        Sample(((7, 4), (9,)), {"axis": 0, "bounds": "drop"}, integers=(-10, 10), dtypes=("*", "int32")),
    ),
    "take_add": (
        Sample(((3, 2, 5, 4), (2, 5)), {"axis": 1, "size": 7}, integers=(-7, 7), dtypes=("*", "int32")),
        Sample(((9, 2), (9,)), {"axis": 0, "size": 7, "bounds": "drop"}, integers=(-10, 10), dtypes=("*", "int32")),
    ),
    "take_along": (Sample(((3, 7, 2), (3, 5, 2)), {"axis": 1}, integers=(-7, 7), dtypes=("*", "int32")),),
    "put_along": tuple(
        Sample(((3, 7, 2), (3, 5, 2), (3, 5, 2)), {"axis": 1, "mode": m}, integers=(-7, 7), dtypes=("*", "int32", "*"))
        for m in MODES
    ),
    "gather_nd": (
        Sample(((4, 5, 3), (3, 2, 2)), integers=(-4, 4), dtypes=("*", "int32")),
        Sample(((4, 5, 3), (6, 2)), {"bounds": "drop"}, integers=(-7, 7), dtypes=("*", "int32")),
    ),
    "scatter_nd": tuple(
        Sample(((4, 5, 3), (6, 2), (6, 3)), {"mode": m}, integers=(-4, 4), dtypes=("*", "int32", "*")) for m in MODES
    ),
    "triangular_solve": (
        Sample(
            (np.tril(_SQUARE), (3, 2, 4, 3)),
            {"lower": True, "trans": "N", "unit": False},
            dtypes=("float64", "float64"),
        ),
    ),
    "cholesky": (Sample((_POSITIVE,), dtypes=("float64",)),),
    "lu": (Sample((_SQUARE,), dtypes=("float64",)),),
    "qr": (Sample((_TALL,), {"full": False}, dtypes=("float64",)),),
    "householder": (Sample((_TALL,), dtypes=("float64",)),),
    "eigh": (Sample((_POSITIVE,), {"lower": True}, dtypes=("float64",)),),
    "eig": (Sample((_SQUARE,), dtypes=("float64",)),),
    "svd": (
        Sample((_TALL,), {"full": False, "vectors": False}, dtypes=("float64",)),
        Sample((_TALL,), {"full": True, "vectors": True}, dtypes=("float64",)),
    ),
    "matrix_exponential": (Sample((_SQUARE / 8,), dtypes=("float64",)),),
    "fourier": (Sample((_TALL.astype("complex128"),), {"axes": (1, 3), "inverse": False}, dtypes=("complex128",)),),
    "fourier_half": (Sample((_TALL,), {"axes": (2,)}, dtypes=("float64",)),),
    "fourier_from_half": (Sample((_TALL.astype("complex128"),), {"axes": (2,), "size": 8}, dtypes=("complex128",)),),
    "search_sorted": (
        Sample((np.sort(_RNG.normal(size=(3, 2, 5))), (3, 2, 4)), {"side": "left"}, dtypes=("float64", "float64")),
    ),
    "real": (Sample((_TALL + 1j * _TALL[::-1],), dtypes=("complex128",)),),
    "imag": (Sample((_TALL + 1j * _TALL[::-1],), dtypes=("complex128",)),),
    "complex_abs": (Sample((_TALL + 1j * _TALL[::-1],), dtypes=("complex128",)),),
    "complex_angle": (Sample((_TALL + 1j * _TALL[::-1],), dtypes=("complex128",)),),
    "reverse": (Sample(((3, 2, 4),), {"axes": (1,)}),),
}

# Why a primitive has no factors.
_GRAPH = "holds a graph, which would have to be divided first"
_RANKS = "is what a divided graph is made of"
WITHOUT = {
    "all_gather": _RANKS,
    "all_reduce": _RANKS,
    "all_to_all": _RANKS,
    "awaiting": _RANKS,
    "call": _GRAPH,
    "cond": _GRAPH,
    "constant": "has no size to divide: whoever divides cuts the literal",
    "custom": _GRAPH,
    "fourier_parts": "is made by an engine, of graphs that are divided already",
    "get_item": "is divided as the node whose result it is",
    "kept_call": _GRAPH,
    "loops": "is a program of the user's, whose iterations may depend on each other",
    "mesh_position": _RANKS,
    "messages": _RANKS,
    "on_complex": "is made by an engine, of graphs that are divided already",
    "permute": _RANKS,
    "exchange": _RANKS,
    "spread": _RANKS,
    "positions": "has a result whose size the data decide, and which differs in each part",
    "recompute": _GRAPH,
    "recur": _GRAPH,
    "recursion": _GRAPH,
    "reduce_scatter": _RANKS,
    "rescaled_sum": "is made by an engine, of graphs that are divided already",
    "rescaled_pool": "is made by an engine, of graphs that are divided already",
    "rescaled_conv": "is made by an engine, of graphs that are divided already",
    "size": "is a scalar",
    "while_grad": _GRAPH,
    "while_loop": _GRAPH,
}
