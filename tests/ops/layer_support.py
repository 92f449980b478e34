"""What the oracles of layers and losses share."""

from __future__ import annotations

from typing import Any

import numpy as np


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(x * beta, 0) / beta)
