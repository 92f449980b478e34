"""Smaller networks: pruned, distilled, of low rank, and what networks cost."""

from mycel.compression.cost import Cost, LayerCost, cost_of

__all__ = ["Cost", "LayerCost", "cost_of"]
