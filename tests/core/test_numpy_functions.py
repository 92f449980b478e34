"""Functions of NumPy that are called with tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel import Tensor

REDUCTIONS = "sum mean max min amax amin prod any all std var median ptp average argmax nanmean".split()


@pytest.mark.parametrize("name", [*REDUCTIONS, "cumsum", "argwhere", "real", "imag", "isreal", "array_repr"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "complex64"])
def test_functions_of_numpy(name: str, dtype: str) -> None:
    array = np.array([[1, 0, 3], [2, 5, 0]], dtype)
    function, tensor = getattr(np, name), Tensor(array)
    if dtype in ("bool", "complex64") and name in ("ptp", "nanmean", "average"):
        return
    options: list[dict[str, Any]] = [{}]
    if name in REDUCTIONS:
        options += [{"axis": 0}, {"axis": -1}]
        options += [{"axis": 1, "keepdims": True}, {"keepdims": True}] * (name not in ("average", "argmax"))
        options += [{"axis": (0, 1)}] * (name not in ("argmax",))
    if name in ("sum", "mean", "prod", "std", "var"):
        options += [{"dtype": np.complex128}, {"where": array > 0}, {"axis": 0, "out": None}]
        options += [{"ddof": 1}] if name in ("std", "var") else []
    for more in options:
        want, found = function(array, **more), function(tensor, **more)
        assert type(found) is type(want) and np.array_equal(found, want), more
    assert np.result_type(tensor, np.float64) == np.result_type(array, np.float64)
    assert type(np.transpose(tensor)) is Tensor and np.where(tensor, tensor, 0).shape == (2, 3)
