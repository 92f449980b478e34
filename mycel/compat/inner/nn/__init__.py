"""`mindspore.nn`: cells for several devices."""

from __future__ import annotations

from typing import Any

from mycel.cells.cell import Cell
from mycel.compat.unserved import signature_of, unserved_class
from mycel.parallel.nn import PipelineGradReducer

__all__ = ["PipelineGradReducer"]


def _adasum(name: str) -> Any:
    advice = "adds the gradients of several devices; with one, call the optimizer itself"
    return unserved_class(f"mindspore.nn.{name}", advice, signature_of("(optimizer)"), Cell)


AdaSumByGradWrapCell = _adasum("AdaSumByGradWrapCell")
AdaSumByDeltaWeightWrapCell = _adasum("AdaSumByDeltaWeightWrapCell")
