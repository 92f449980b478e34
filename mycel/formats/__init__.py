"""Files of other frameworks, as networks that run here: a reader for each format.

A reader gives a Cell, whose parameters are the file's, and which runs, compiles and differentiates
as any other. Reading executes nothing, and believes no length before the bytes are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycel._src.foundation.public_names import lazy as _lazy
from mycel._src.foundation.public_names import listing as _listing

__all__ = ["convert", "load"]

# Where each name is, loaded when it is named: files of one format need no readers of others.
_HOMES = {
    "convert": "mycel.formats.converting",
    "load": "mycel.formats.loading",
}

# Type checkers see what is found when it is first named.
if TYPE_CHECKING:
    from mycel.formats.converting import convert as convert
    from mycel.formats.loading import load as load
else:
    __getattr__ = _lazy(__name__, _HOMES)


__dir__ = _listing(__name__, _HOMES)
