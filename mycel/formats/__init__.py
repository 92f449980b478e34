"""Files of other frameworks, as networks that run here: a reader for each format.

A reader gives a Cell, whose parameters are the file's, and which runs, compiles and differentiates
as any other. Reading executes nothing, and believes no length before the bytes are there.
"""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.formats.converting import convert as convert
from mycel.formats.loading import load as load

__all__ = ["convert", "load"]

__dir__ = _listing(__name__)
