"""Deduplication: code is generated once for nests that differ only in their buffers.

`digest_of` is the digest of a nest in the form of nested tuples, where buffers are numbered in the
order in which they appear; nests with the same form have the same text and the same argument words,
but for the buffers. Sizes, strides and offsets are part of the form, and so is everything else that
code generation depends on. Optimizers and repeated layers have many such nests. Nests that have no
such form, as those with symbolic sizes, are not remembered.
"""

from __future__ import annotations

import dataclasses
import hashlib
import marshal
from collections.abc import Callable
from typing import Any

from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Buffer, Expr, Loop, Nest, Reduce, Site, Store
from mycel._src.foundation.dtype import DType

__all__ = ["digest_of"]


class _Unknown(Exception):
    """The error for a part of a nest that has no form as tuples."""


_FIELDS = {
    kind: tuple(f.name for f in dataclasses.fields(kind) if (kind, f.name) not in ((Nest, "name"), (Reduce, "result")))
    for kind in (Access, Loop, Nest, Reduce, Store)
}


def digest_of(nest: Nest, target: str) -> tuple[bytes | None, list[Buffer | Site]]:
    """Return the digest of a nest on a target, and its buffers and sites in order.

    The digest is None where the nest has no form as tuples.
    """
    writer = _Writer()
    try:
        text = marshal.dumps((target, writer.write(nest)), 2)
    except _Unknown:
        return None, []
    return hashlib.sha256(text).digest(), list(writer.buffers.values())


class _Writer:
    """A writer of nests as tuples, which numbers buffers and sites.

    It also numbers expressions and reductions, which are shared and written once.
    """

    def __init__(self) -> None:
        self.buffers: dict[int, Buffer | Site] = {}
        self.numbers: dict[int, int] = {}
        self.shared: dict[int, int] = {}

    def write(self, value: Any) -> Any:
        kind = type(value)
        if kind is int or kind is str or value is None:
            return value
        found: Callable[[Any], Any] | None = _WRITERS.get(kind)
        if found is None:
            raise _Unknown
        return found(self, value)  # type: ignore[call-arg]

    def number(self, value: Any) -> Any:
        # True is 1 and 0.0 is -0.0, but they are not the same constants.
        return type(value).__name__, value.hex() if type(value) is float else repr(value)

    def several(self, value: Any) -> Any:
        return tuple([self.write(v) for v in value])

    def unordered(self, value: Any) -> Any:
        return frozenset([self.write(v) for v in value])

    def dtype(self, value: DType) -> Any:
        return value.name

    def buffer(self, value: Buffer) -> Any:
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.buffers)
            self.buffers[number] = value
            return "buffer", number, value.dtype.name
        return "buffer", number

    def site(self, value: Site) -> Any:
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.buffers)
            self.buffers[number] = value
        return "site", number, value.wraps, self.write(value.size)

    def affine(self, value: Affine) -> Any:
        if type(value.const) is not int:
            raise _Unknown
        for _, factor in value.terms:
            if type(factor) is not int:
                raise _Unknown
        return "at", value.terms, value.const

    def expression(self, value: Expr) -> Any:
        number = self.shared.get(id(value))
        if number is not None:
            return "again", number
        self.shared[id(value)] = len(self.shared)
        args = tuple([self.expression(a) for a in value.args])
        return value.kind, value.dtype.name, args, self.write(value.data)

    def record(self, value: Any) -> Any:
        if type(value) is Reduce:
            number = self.shared.get(id(value))
            if number is not None:
                return "again", number
            self.shared[id(value)] = len(self.shared)
            inner = tuple([self.write(getattr(value, name)) for name in _FIELDS[Reduce]])
            return "Reduce", value.result.dtype.name, inner
        kind = type(value)
        return kind.__name__, tuple([self.write(getattr(value, name)) for name in _FIELDS[kind]])


_WRITERS: dict[type, Any] = {
    bool: _Writer.number,
    float: _Writer.number,
    complex: _Writer.number,
    tuple: _Writer.several,
    list: _Writer.several,
    frozenset: _Writer.unordered,
    DType: _Writer.dtype,
    Buffer: _Writer.buffer,
    Site: _Writer.site,
    Affine: _Writer.affine,
    Expr: _Writer.expression,
    **dict.fromkeys(_FIELDS, _Writer.record),
}
