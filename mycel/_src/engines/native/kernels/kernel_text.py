"""Stored LLVM IR of kernels: compressed, and equal texts kept once.

A kernel's text has tens of kilobytes. It is read once, to compile it; later only who saves a
program, builds a library or looks at code asks for it. What is compared instead is its digest.
"""

from __future__ import annotations

import hashlib
import zlib

from mycel._src.foundation.python_runtime.finalization import Interned

__all__ = ["Text", "packed"]

# Of the levels of zlib the fastest, which takes a hundredth of the time of compiling.
_LEVEL = 1


class Text:
    """A text of which `digest` is the hash; equal ones are the same object."""

    __slots__ = ("digest", "_content", "__weakref__")

    digest: bytes
    _content: bytes

    def __new__(cls, digest: bytes, content: bytes) -> Text:
        found = _known.get(digest)
        if found is None:
            made = super().__new__(cls)
            made.digest, made._content = digest, content
            found = _known.enter(digest, made)
        return found

    def __reduce__(self) -> tuple[type[Text], tuple[bytes, bytes]]:
        return Text, (self.digest, self._content)

    def __str__(self) -> str:
        return zlib.decompress(self._content).decode()


_known: Interned[bytes, Text] = Interned()


def packed(text: str) -> Text:
    """Return a text as it is kept."""
    content = text.encode()
    digest = hashlib.sha256(content).digest()
    found = _known.get(digest)
    return Text(digest, zlib.compress(content, _LEVEL)) if found is None else found
