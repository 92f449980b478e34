"""Model compression: pruning, distillation, low-rank layers, and cost reports."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.compression.adapters import AdaptedLayer, add_adapters, merge_adapters
from mycel.compression.channel_pruning import ChannelReport, Structure, prune_channels
from mycel.compression.cost import Cost, LayerCost, cost_of
from mycel.compression.distillation import (
    Distilled,
    Features,
    attention_loss,
    hint_loss,
    relation_loss,
    soft_target_loss,
)
from mycel.compression.importance import GroupLasso, taylor_importance
from mycel.compression.low_rank_layers import Decomposition, low_rank
from mycel.compression.pruned_checkpoints import load_pruned, save_pruned
from mycel.compression.sparsity_schedule import GradualPruning
from mycel.compression.weight_pruning import (
    MaskedLayer,
    SizeReport,
    prune_weights,
    remove_masks,
    sensitivity,
    size_report,
    update_masks,
)

__all__ = [
    "AdaptedLayer",
    "ChannelReport",
    "Cost",
    "Decomposition",
    "Distilled",
    "Features",
    "GradualPruning",
    "GroupLasso",
    "LayerCost",
    "MaskedLayer",
    "SizeReport",
    "Structure",
    "add_adapters",
    "attention_loss",
    "cost_of",
    "hint_loss",
    "load_pruned",
    "low_rank",
    "merge_adapters",
    "prune_channels",
    "prune_weights",
    "relation_loss",
    "remove_masks",
    "save_pruned",
    "sensitivity",
    "size_report",
    "soft_target_loss",
    "taylor_importance",
    "update_masks",
]

__dir__ = _listing(__name__)
