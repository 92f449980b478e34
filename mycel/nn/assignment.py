"""Assignments to parameters inside `construct`."""

from __future__ import annotations

from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast

__all__ = ["store"]


def store(parameter: Parameter, value: Tensor) -> None:
    """Assign a value to a parameter, converted to the parameter's element type."""
    parameter._replace(cast(value, parameter.dtype))
