"""The tensor engine: operators written element by element, compiled and differentiated.

`operator` makes an operation of a Python function over elements of tensors; the other names are the
words that such functions use.
"""

from mycel.te.operator import Operator, operator
from mycel.te.words import FUNCTIONS as _FUNCTIONS
from mycel.te.words import allocate, empty, full, grid, parallel, reduce, serial, unroll, vectorize, zeros

globals().update(_FUNCTIONS)
__all__ = [
    "Operator",
    "allocate",
    "empty",
    "full",
    "grid",
    "operator",
    "parallel",
    "reduce",
    "serial",
    "unroll",
    "vectorize",
    "zeros",
    *_FUNCTIONS,
]
