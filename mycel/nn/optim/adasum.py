"""Steps whose gradients or changes are combined over devices by AdaSum (S. Maleki et al., "Scaling
distributed training with adaptive summation", 2020), which needs several of them.
"""

from __future__ import annotations

from typing import Any

from mycel.cells.cell import Cell

__all__ = ["AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell"]


class _AdaSum(Cell):
    def __init__(self, optimizer: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: AdaSum combines the steps of several devices, and there is one; use the optimizer "
            "itself"
        )


class AdaSumByGradWrapCell(_AdaSum):
    """An optimizer with gradients that are combined over devices; RuntimeError with one device."""


class AdaSumByDeltaWeightWrapCell(_AdaSum):
    """An optimizer whose changes of weights are combined over devices; RuntimeError with one
    device.
    """
