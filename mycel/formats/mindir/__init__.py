"""MindSpore's own MindIR files.

`messages` parses a file into records, `values` makes Python's values and tensors of what is in
them, `operators` finds what of Mycel computes an operator, `evaluate` runs graphs with it, and
`network` makes a Cell of all that.
"""

from __future__ import annotations

from mycel.formats.mindir.network import MindIRGraph as MindIRGraph
from mycel.formats.mindir.network import load as load
from mycel.formats.mindir.network import of_content as of_content

__all__ = ["MindIRGraph", "load", "of_content"]
