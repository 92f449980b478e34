"""SciPy's functions on tensors: linear algebra and optimisation."""

from __future__ import annotations

from mycel.scipy import linalg as linalg
from mycel.scipy import optimize as optimize

__all__ = ["linalg", "optimize"]
