"""Smaller networks: pruned, distilled, of low rank, and what networks cost."""

from mycel.compression.channels import ChannelReport, Structure, prune_channels
from mycel.compression.cost import Cost, LayerCost, cost_of
from mycel.compression.importance import GroupLasso, taylor_importance
from mycel.compression.keeping import load_pruned, save_pruned
from mycel.compression.schedule import GradualPruning
from mycel.compression.sparse import (
    MaskedLayer,
    SizeReport,
    prune_weights,
    remove_masks,
    sensitivity,
    size_report,
    update_masks,
)

__all__ = [
    "ChannelReport",
    "Cost",
    "GradualPruning",
    "GroupLasso",
    "LayerCost",
    "MaskedLayer",
    "SizeReport",
    "Structure",
    "cost_of",
    "load_pruned",
    "prune_channels",
    "prune_weights",
    "remove_masks",
    "save_pruned",
    "sensitivity",
    "size_report",
    "taylor_importance",
    "update_masks",
]
