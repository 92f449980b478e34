"""Training that does less work or needs less memory for the same model: gradient accumulation."""

from __future__ import annotations

from mycel.boost.grad_accumulation import GradientAccumulation as GradientAccumulation

__all__ = ["GradientAccumulation"]
