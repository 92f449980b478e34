"""NumPy's functions on tensors: they take anything array-like, can be differentiated and compiled, and return tensors.

>>> import mycel as ms
>>> import mycel.numpy as mnp
>>> f"{float(ms.grad(mnp.tanh)(2.0)):.6f}"
'0.070651'
"""

from __future__ import annotations

import math as _math

from mycel.dtype import bool_ as bool_
from mycel.dtype import float16 as float16
from mycel.dtype import float32 as float32
from mycel.dtype import float64 as float64
from mycel.dtype import int8 as int8
from mycel.dtype import int16 as int16
from mycel.dtype import int32 as int32
from mycel.dtype import int64 as int64
from mycel.dtype import uint8 as uint8
from mycel.dtype import uint16 as uint16
from mycel.dtype import uint32 as uint32
from mycel.dtype import uint64 as uint64
from mycel.numpy.array import *  # noqa: F403
from mycel.numpy.creation import *  # noqa: F403
from mycel.numpy.linalg import *  # noqa: F403
from mycel.numpy.math import *  # noqa: F403

float_ = float32
int_ = int32
uint = uint32
pi = _math.pi
inf = PINF = _math.inf
NINF = -_math.inf
nan = _math.nan
