"""MindSpore's own MindIR files: their reader, and their writer (`export_rules`, `writer`).

`messages` parses a file into records, `values` makes Python's values and tensors of what is in
them, `operators` finds what of Mycel computes an operator, `evaluate` runs graphs with it, and
`network` makes a Cell of all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycel._src.foundation.public_names import lazy as _lazy

__all__ = ["TENSOR_KINDS", "MindIRGraph", "begins", "load", "of_content"]

# Where each name is, loaded when it is named: files of one format need no readers of others.
_HOMES = {
    "TENSOR_KINDS": "mycel.formats.mindir.messages",
    "begins": "mycel.formats.mindir.messages",
    "MindIRGraph": "mycel.formats.mindir.network",
    "load": "mycel.formats.mindir.network",
    "of_content": "mycel.formats.mindir.network",
}

# Type checkers see what is found when it is first named.
if TYPE_CHECKING:
    from mycel.formats.mindir.messages import TENSOR_KINDS as TENSOR_KINDS
    from mycel.formats.mindir.messages import begins as begins
    from mycel.formats.mindir.network import MindIRGraph as MindIRGraph
    from mycel.formats.mindir.network import load as load
    from mycel.formats.mindir.network import of_content as of_content
else:
    __getattr__ = _lazy(__name__, _HOMES)
