"""`ParamInfo`: what MindSpore's core notes of a parameter."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["ParamInfo"]


class ParamInfo:
    """What is noted of a parameter: its name, whether it has a gradient, and marks for clusters."""

    def __init__(self) -> None:
        self.name = "Parameter"
        self.key = -1
        self.requires_grad = True
        self.comm_fusion = 1
        self.parallel_optimizer = True
        self.requires_aggr = True
        self.storage_format = ""
        for mark in ("layerwise_parallel", "cache_enable", "interleaved_parallel", "is_in_pynative_shard"):
            setattr(self, mark, False)
        for mark in ("is_param_init", "is_pipeline_shared_param", "is_quant_int4", "use_persistent_storage"):
            setattr(self, mark, False)
        self.parallel_optimizer_comm_recompute = False
        for sizes in ("alias_name", "cache_shape", "device_matrix", "origin_shape", "param_strategy"):
            setattr(self, sizes, [])
        self.parameter_shape: list[Any] = []
        self.quant_shape: list[Any] = []
        self.tensor_map: list[Any] = []

    def clone(self) -> ParamInfo:
        """Return a copy."""
        return copy.deepcopy(self)
