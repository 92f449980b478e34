"""Sparse gradients of embedding tables: only the rows that were read.

The gradient of reading rows of a table is a table of zeros with rows added in. A recording gives it
as a `RowGradient`, a tensor that has the rows and their indices, and becomes the whole table when
its value is first asked for. An optimizer takes the rows as they are (`in_parts`), so that a step
of gradient descent touches nothing of the table's size. Whoever adds, scales or looks at such a
gradient has an ordinary tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing.index import take_add
from mycel._src.engines import buffers
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "RowGradient",
    "RowNodes",
    "Rows",
    "bytes_in_rows",
    "in_parts",
    "joined",
    "may_be_rows",
    "row_nodes",
    "whole",
]

LEAST = 1 << 20  # bytes of a gradient from which on it is given as rows
SHARE = 4  # how many times smaller the rows have to be
_Params = tuple[tuple[str, Any], ...]


class Rows(NamedTuple):
    """The rows of a gradient, (n, ...), and the n indices at which they are added to zeros.

    `params` are those of `take_add`.
    """

    rows: Tensor
    indices: Tensor
    params: _Params


class RowNodes(NamedTuple):
    """The nodes of `Rows`."""

    rows: Node
    indices: Node
    params: _Params


class RowGradient(Tensor):
    """A gradient that is rows until its value is asked for; then its class is `Tensor`."""

    __slots__ = ()

    @classmethod
    def of(cls, kind: TensorType, rows: Rows) -> Tensor:
        """Return the gradient of the type `kind` that has these rows."""
        made = object.__new__(cls)
        made._type, made._node = kind, None
        made.__dict__["_rows"] = rows
        return made

    @property
    def _buf(self) -> Any:
        rows = self.__dict__.get("_rows")
        if rows is not None:
            with eager.use_context(None):
                self._buf = whole(rows)._buf
        return _BUFFER.__get__(self)

    @_buf.setter
    def _buf(self, buffer: Any) -> None:
        _BUFFER.__set__(self, buffer)
        object.__setattr__(self, "__class__", Tensor)
        self.__dict__.pop("_rows", None)


_BUFFER: Any = Tensor.__dict__["_buf"]
RowGradient.__name__ = RowGradient.__qualname__ = Tensor.__name__


def whole(rows: Rows) -> Tensor:
    """Return the gradient as one tensor, applied in the context in force."""
    return eager.apply(take_add, rows.rows, rows.indices, **dict(rows.params))


def bytes_in_rows(gradients: Iterable[Any]) -> int:
    """Return how many bytes those of `gradients` would take that are rows now."""
    return sum([int(t._type.nbytes) for t in gradients if type(t) is RowGradient])


def in_parts(gradients: Iterable[Any]) -> tuple[Any, ...]:
    """Return gradients, with their `Rows` in place of those that are rows."""
    return tuple([t.__dict__["_rows"] if type(t) is RowGradient else t for t in gradients])


def may_be_rows(kind: Any) -> bool:
    """Return whether a gradient of this type is given as rows where that is possible."""
    if type(kind) is not TensorType or not kind.is_static or not kind.rank:
        return False
    return kind.dtype.kind == "f" and kind.dtype.itemsize >= 4 and kind.nbytes >= LEAST


def row_nodes(node: Node) -> RowNodes | None:
    """Return the rows of a gradient that is a sum of rows; None for any other, and where the rows
    are not much smaller than their table.
    """
    if not may_be_rows(node.type):
        return None
    terms: list[Node] = []
    pending = [node]
    params: _Params | None = None
    taken = 0
    while pending and taken * SHARE <= node.type.nbytes:
        term = pending.pop()
        if term.prim is E.add and all(i.type is node.type for i in term.inputs):
            pending += reversed(term.inputs)
            continue
        own = tuple(term.params.items()) if term.prim is take_add and term.type is node.type else None
        if own is None or term.params["axis"] or own != (params or own):
            return None
        params = own
        taken += sum(i.type.nbytes for i in term.inputs)
        terms.append(term)
    if params is None or taken * SHARE > node.type.nbytes:
        return None
    rows, indices = [], []
    for term in terms:
        given, at = term.inputs
        rows.append(S.reshape(given, (at.type.size, *node.shape[1:])))
        indices.append(S.reshape(at, (at.type.size,)))
    if len(terms) == 1:
        return RowNodes(rows[0], indices[0], params)
    kind = max((i.dtype for i in indices), key=lambda d: d.itemsize)
    return RowNodes(S.concat(rows, 0), S.concat([E.cast(i, dtype=kind) for i in indices], 0), params)


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the sum of rows of one table, whose parameters are the same."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([_array(p.rows) for p in parts])
    return Rows(Tensor(rows), Tensor(np.concatenate([_array(p.indices) for p in parts])), parts[0].params)


def _array(t: Tensor) -> np.ndarray[Any, Any]:
    return buffers.to_array(t._buf, t._type)
