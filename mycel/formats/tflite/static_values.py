"""Static values of TensorFlow Lite graphs: sizes, axes and what is computed of them while staging.

They are arrays of NumPy; sizes that are open are symbols in arrays of type object. `HOST` computes
operators whose inputs are all known, and `knowable` says before anything runs which values will be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.eager import apply
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.tflite.rules import sliced_by, strided
from mycel.formats.tflite.schema import Graph, Operator

__all__ = ["HOST", "MOST", "RANK", "SHAPE", "as_known", "knowable", "sizes_of", "tensor"]

Array = np.ndarray[Any, Any]
# Larger constants are data, not sizes.
MOST = 4096
SHAPE, RANK = 77, 110


def sizes_of(x: Any) -> Array:
    """Return the shape of a value."""
    sizes = list(x.shape)
    return np.array(sizes, object if any(isinstance(d, Dim) for d in sizes) else np.int32)


def as_known(value: Any) -> Array:
    """Return what an operator gives of known values as an array."""
    if isinstance(value, Dim):
        made = np.empty((), object)
        made[()] = value
        return made
    return np.asarray(value)


def tensor(value: Any) -> Any:
    """Return a known value as a tensor; other values are returned as they are."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind != "O":
        return Tensor.from_numpy(np.array(value, order="C"))
    parts = [_size(d) for d in value.reshape(-1)]
    return apply(S.RESHAPE, apply(S.CONCAT, *parts, axis=0), shape=value.shape)


def _size(d: Any) -> Any:
    if isinstance(d, Dim):
        return apply(S.RESHAPE, apply(S.SIZE, dim=d, dtype=D.int32), shape=(1,))
    return Tensor.from_numpy(np.array([d], np.int32))


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for numbers alone; for symbols the operator is computed by its rule."""

    def compute(o: Operator, *x: Array) -> Any:
        return NotImplemented if any(a.dtype.kind == "O" for a in x) else function(o, *x)

    return compute


def _cast(o: Operator, x: Array) -> Any:
    kind = np.dtype(o.kinds[0])
    if kind.kind not in "iu":
        return NotImplemented
    return x if x.dtype.kind == "O" else x.astype(kind)


def _axes(axes: Any) -> tuple[int, ...]:
    return tuple(int(a) for a in np.reshape(axes, -1))


def _squeezed(o: Operator, x: Array) -> Array:
    axes = tuple(o.options.numbers(0)) if o.options is not None else ()
    return np.squeeze(x, axes or None)


def _range(o: Operator, first: Array, last: Array, step: Array) -> Array:
    whole = [np.reshape(v, -1)[0] for v in (first, last, step)]
    if whole[2] == 0 or abs(whole[1] - whole[0]) / abs(whole[2]) > 1 << 24:
        raise ValueError(f"RANGE from {whole[0]} to {whole[1]} by {whole[2]} has no end, or too many numbers")
    return np.arange(*whole, dtype=first.dtype)


def _filled(o: Operator, dims: Array, value: Array) -> Any:
    if np.prod([float(d) for d in dims.reshape(-1)]) > MOST:
        return NotImplemented
    return np.full(_axes(dims), value.reshape(()))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda o, *x: function(*x)


HOST: Mapping[int, Callable[..., Any]] = {
    0: _plain(lambda x, y: x + y),
    2: lambda o, *x: np.concatenate(x, o.option(0, "<i")),
    18: _plain(lambda x, y: x * y),
    22: lambda o, x, shape=None: np.reshape(
        x, _axes(shape) if shape is not None else tuple(o.options.numbers(0) if o.options is not None else ())
    ),
    36: lambda o, x, i: np.take(x, i, o.option(0, "<i")),
    41: _plain(lambda x, y: x - y),
    43: _squeezed,
    45: strided,
    53: _cast,
    55: _numbers(lambda o, x, y: np.maximum(x, y)),
    57: _numbers(lambda o, x, y: np.minimum(x, y)),
    58: _numbers(lambda o, x, y: np.asarray(x < y)),
    59: _plain(lambda x: -x),
    61: _numbers(lambda o, x, y: np.asarray(x > y)),
    62: _numbers(lambda o, x, y: np.asarray(x >= y)),
    63: _numbers(lambda o, x, y: np.asarray(x <= y)),
    64: _numbers(lambda o, c, x, y: np.where(c, x, y)),
    65: sliced_by,
    70: lambda o, x, axis: np.expand_dims(x, int(axis)),
    71: _numbers(lambda o, x, y: np.asarray(x == y)),
    72: _numbers(lambda o, x, y: np.asarray(x != y)),
    74: lambda o, x, axes: np.asarray(np.sum(x, _axes(axes), keepdims=bool(o.option(0)))),
    81: lambda o, x, axes: np.asarray(np.prod(x, _axes(axes), keepdims=bool(o.option(0)))),
    83: lambda o, *x: np.stack(x, o.option(1, "<i")),
    88: lambda o, x: tuple(np.moveaxis(x, o.option(1, "<i"), 0)),
    90: _plain(lambda x, y: x // y),
    94: _numbers(_filled),
    95: _plain(lambda x, y: x % y),
    96: _numbers(_range),
    123: _numbers(lambda o, c, x, y: np.where(c, x, y)),
    145: _numbers(lambda o, x, y: np.array(np.broadcast_shapes(_axes(x), _axes(y)), x.dtype)),
}


def knowable(graph: Graph, known: Mapping[int, Any]) -> set[int]:
    """Return the numbers of the values that are known without those of the inputs.

    `known` has the constants.
    """
    found = {n for n, v in known.items() if isinstance(v, np.ndarray)}
    for o in graph.operators:
        whole = o.code in HOST and all(n in found for n in o.inputs if n >= 0)
        if o.code in (SHAPE, RANK) or (whole and not any("float" in kind for kind in o.kinds)):
            found |= set(o.outputs)
    return found
