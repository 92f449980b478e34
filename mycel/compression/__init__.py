"""Smaller networks: pruned, distilled, of low rank, and what networks cost."""

from mycel.compression.channels import ChannelReport, Structure, prune_channels
from mycel.compression.cost import Cost, LayerCost, cost_of
from mycel.compression.importance import GroupLasso, taylor_importance
from mycel.compression.keeping import load_pruned, save_pruned

__all__ = [
    "ChannelReport",
    "Cost",
    "GroupLasso",
    "LayerCost",
    "Structure",
    "cost_of",
    "load_pruned",
    "prune_channels",
    "save_pruned",
    "taylor_importance",
]
