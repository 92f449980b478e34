"""What tests of `vmap` share."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycel as ms


def tensor(array: Any) -> ms.Tensor:
    return ms.Tensor(np.array(array))


def close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=tolerance, atol=tolerance)
