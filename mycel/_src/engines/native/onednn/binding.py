"""The native engine's binding of oneDNN, for matrix products and convolutions.

Each builder takes descriptions of buffers with fixed shapes and returns a `Plan`: oneDNN primitives
with everything that generated code needs to execute them. Plans are cached by their arguments and
the number of threads.

The parts: `c_interface` finds and declares the C interface, `plan` holds plans and how they are
assembled, `matmul` and `conv` are the builders.
"""

from __future__ import annotations

from mycel._src.engines.native.onednn.c_interface import (
    Unavailable,
    adopt_threads,
    available,
    max_threads,
    set_num_threads,
    stream,
    symbols,
    threads,
    version,
    why_unavailable,
)
from mycel._src.engines.native.onednn.conv import conv_backward_data, conv_backward_weights, conv_forward
from mycel._src.engines.native.onednn.matmul import matmul
from mycel._src.engines.native.onednn.plan import MOST_SIZE, Call, Operand, Plan, PostOperation, Product, Unsupported

__all__ = [
    "MOST_SIZE",
    "Call",
    "Operand",
    "Plan",
    "PostOperation",
    "Product",
    "Unavailable",
    "Unsupported",
    "adopt_threads",
    "available",
    "conv_backward_data",
    "conv_backward_weights",
    "conv_forward",
    "matmul",
    "max_threads",
    "set_num_threads",
    "stream",
    "symbols",
    "threads",
    "version",
    "why_unavailable",
]
