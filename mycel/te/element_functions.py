"""Element functions that operators may call: those of this module, of `math` and of NumPy.

Outside of an operator those of this module raise TypeError.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "element_function",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmod",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "maximum",
    "minimum",
    "pow",
    "rint",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def _outside(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> NoReturn:
        raise TypeError(f"te.{name} is a word of operators: call it inside a function under te.operator")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {name} of an element, inside an operator."
    return function


exp = _outside("exp")
expm1 = _outside("expm1")
exp2 = _outside("exp2")
log = _outside("log")
log2 = _outside("log2")
log10 = _outside("log10")
log1p = _outside("log1p")
sqrt = _outside("sqrt")
rsqrt = _outside("rsqrt")
sin = _outside("sin")
cos = _outside("cos")
tan = _outside("tan")
asin = _outside("asin")
acos = _outside("acos")
atan = _outside("atan")
sinh = _outside("sinh")
cosh = _outside("cosh")
tanh = _outside("tanh")
asinh = _outside("asinh")
acosh = _outside("acosh")
atanh = _outside("atanh")
erf = _outside("erf")
erfc = _outside("erfc")
erfinv = _outside("erfinv")
sigmoid = _outside("sigmoid")
lgamma = _outside("lgamma")
digamma = _outside("digamma")
floor = _outside("floor")
ceil = _outside("ceil")
trunc = _outside("trunc")
rint = _outside("rint")
sign = _outside("sign")
atan2 = _outside("atan2")
fmod = _outside("fmod")
maximum = _outside("maximum")
minimum = _outside("minimum")
pow = _outside("pow")

# Other names of math and NumPy for the same.
_OTHERS = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "power": "pow",
    "fabs": "abs",
    "absolute": "abs",
}


def element_function(function: Any) -> str | None:
    """Return the primitive that a function of math, NumPy or this module stands for, if any."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        return None
    known = _OTHERS.get(name, name if name in __all__ else None)
    if known is not None and any(getattr(home, name, None) is function for home in (math, np)):
        return known
    return name if name in __all__ and globals()[name] is function else None
