"""SciPy's functions on tensors: cosine transforms, linear algebra and optimisation."""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.scipy import fft as fft
from mycel.scipy import linalg as linalg
from mycel.scipy import optimize as optimize

__all__ = ["fft", "linalg", "optimize"]

__dir__ = _listing(__name__)
