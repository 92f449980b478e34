"""`mindspore.parallel._auto_parallel_context`: the object behind the settings of parallel
training.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel.parallel import context

__all__: list[str] = []

_ONE_DEVICE = "there is one device, on which nothing is communicated"


class _AutoParallelContext:
    """The settings of parallel training, read and written by one method each.

    ``get_NAME()`` and ``set_NAME(value)`` are `get_auto_parallel_context` and
    `set_auto_parallel_context` of the name.
    """

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._splits: dict[tuple[str, str], list[int]] = {}

    def check_context_handle(self) -> None:
        """Do nothing: the settings are always there."""

    def reset(self) -> None:
        """Set everything to its default."""
        context.reset_auto_parallel_context()
        self._given.clear()
        self._splits.clear()

    def get_pipeline_interleave(self) -> bool:
        """Return the entry "pipeline_interleave" of `pipeline_config`."""
        return bool(context.get_auto_parallel_context("pipeline_interleave"))

    def get_pipeline_scheduler(self) -> str:
        """Return the entry "pipeline_scheduler" of `pipeline_config`."""
        return str(context.get_auto_parallel_context("pipeline_scheduler"))

    def get_strategy_search_mode(self) -> str:
        """Return how strategies are searched for."""
        return str(context.get_auto_parallel_context("search_mode"))

    def set_strategy_search_mode(self, search_mode: str) -> None:
        """Set how strategies are searched for."""
        self._set("search_mode", search_mode)

    def get_parallel_optimizer_threshold(self) -> int:
        """Return the size in KB from which parameters of optimizers are divided; -1 unless set."""
        return int(
            context.get_auto_parallel_context("parallel_optimizer_config").get("parallel_optimizer_threshold", -1)
        )

    def get_grad_accumulation_shard(self) -> bool:
        """Return whether accumulated gradients are divided."""
        return bool(context.get_auto_parallel_context("parallel_optimizer_config").get("gradient_accumulation_shard"))

    def get_enable_fold_pipeline(self) -> bool:
        """Return False: there is one stage."""
        return False

    def set_enable_all_reduce_fusion(self, enable_all_reduce_fusion: bool) -> None:
        """Set whether reductions are fused, which has no effect."""
        self._fuse("all_reduce", enable_all_reduce_fusion)

    def get_enable_all_reduce_fusion(self) -> bool:
        """Return whether reductions were set to be fused."""
        return ("fuse", "all_reduce") in self._splits

    def set_enable_all_gather_fusion(self, enable_all_gather_fusion: bool) -> None:
        """Set whether gatherings are fused, which has no effect."""
        self._fuse("all_gather", enable_all_gather_fusion)

    def get_enable_all_gather_fusion(self) -> bool:
        """Return whether gatherings were set to be fused."""
        return ("fuse", "all_gather") in self._splits

    def set_enable_reduce_scatter_fusion(self, enable_reduce_scatter_fusion: bool) -> None:
        """Set whether scattered reductions are fused, which has no effect."""
        self._fuse("reduce_scatter", enable_reduce_scatter_fusion)

    def get_enable_reduce_scatter_fusion(self) -> bool:
        """Return whether scattered reductions were set to be fused."""
        return ("fuse", "reduce_scatter") in self._splits

    def _fuse(self, what: str, enable: bool) -> None:
        if not isinstance(enable, bool):
            raise TypeError(f"enable_{what}_fusion must be of type bool, not {enable!r}")
        without_effect(f"set_enable_{what}_fusion", _ONE_DEVICE)
        if enable:
            self._splits["fuse", what] = []
        else:
            self._splits.pop(("fuse", what), None)

    def set_all_reduce_fusion_split_indices(self, indices: Sequence[int], group: str = "") -> None:
        """Set after which gradients reductions are divided, which has no effect."""
        self._split("indices", group, indices)

    def get_all_reduce_fusion_split_indices(self, group: str = "") -> list[int]:
        """Return after which gradients reductions are divided."""
        return self._splits.get(("indices", group), [])

    def set_all_reduce_fusion_split_sizes(self, sizes: Sequence[int], group: str = "") -> None:
        """Set in which sizes reductions are divided, which has no effect."""
        self._split("sizes", group, sizes)

    def get_all_reduce_fusion_split_sizes(self, group: str = "") -> list[int]:
        """Return in which sizes reductions are divided."""
        return self._splits.get(("sizes", group), [])

    def _split(self, what: str, group: str, values: Sequence[int]) -> None:
        if not isinstance(values, (list, tuple)):
            raise TypeError(f"{what} must be a list, not {values!r}")
        if not values or any(isinstance(v, bool) or not isinstance(v, int) for v in values):
            raise TypeError(f"{what} must be a list of integers, not {values!r}")
        if len(set(values)) != len(values):
            raise ValueError(f"{what} has a value twice: {values!r}")
        without_effect(f"set_all_reduce_fusion_split_{what}", _ONE_DEVICE)
        self._splits[what, group] = list(values)

    def _set(self, name: str, value: Any) -> None:
        context.set_auto_parallel_context(**{name: value})
        self._given.add(name)


def _getter(name: str) -> Callable[[_AutoParallelContext], Any]:
    def get(self: _AutoParallelContext) -> Any:
        return context.get_auto_parallel_context(name)

    get.__name__, get.__doc__ = f"get_{name}", f"Return the setting `{name}`."
    return get


def _setter(name: str) -> Callable[[_AutoParallelContext, Any], None]:
    def set(self: _AutoParallelContext, value: Any) -> None:
        self._set(name, value)

    set.__name__, set.__doc__ = f"set_{name}", f"Set the setting `{name}`."
    return set


def _asker(name: str) -> Callable[[_AutoParallelContext], bool]:
    def ask(self: _AutoParallelContext) -> bool:
        return name in self._given

    ask.__name__, ask.__doc__ = f"get_{name}_is_set", f"Return whether `{name}` was set through this object."
    return ask


_set_auto_parallel_context_func_map: dict[str, Any] = {}
_get_auto_parallel_context_func_map: dict[str, Any] = {}
_CONTEXT = _AutoParallelContext()
for _name in context.names():
    setattr(_AutoParallelContext, f"get_{_name}", _getter(_name))
    setattr(_AutoParallelContext, f"set_{_name}", _setter(_name))
    _set_auto_parallel_context_func_map[_name] = getattr(_CONTEXT, f"set_{_name}")
    _get_auto_parallel_context_func_map[_name] = getattr(_CONTEXT, f"get_{_name}")
for _name in ("device_num", "global_rank", "full_batch", "parameter_broadcast"):
    setattr(_AutoParallelContext, f"get_{_name}_is_set", _asker(_name))


def auto_parallel_context() -> _AutoParallelContext:
    """Return the one object with the settings of parallel training."""
    return _CONTEXT


def _set_auto_parallel_context(**kwargs: Any) -> None:
    """Set several settings."""
    for name in kwargs:
        _CONTEXT._given.add(name)
    context.set_auto_parallel_context(**kwargs)


def _get_auto_parallel_context(attr_key: str) -> Any:
    """Return one setting."""
    return context.get_auto_parallel_context(attr_key)


def _reset_auto_parallel_context() -> None:
    """Set everything to its default."""
    _CONTEXT.reset()


def _get_all_auto_parallel_context() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all settings, and those of the pipeline."""
    values = {name: copy.deepcopy(context.get_auto_parallel_context(name)) for name in context.names()}
    return values, values.pop("pipeline_config")


def _recover_auto_parallel_context(context_value_map: dict[str, Any], pp_config: dict[str, Any]) -> None:
    """Set all settings to what `_get_all_auto_parallel_context` gave."""
    context.set_auto_parallel_context(**context_value_map, pipeline_config=pp_config)


def _set_fusion_strategy_by_idx(idx_list: Sequence[int], group: str = "hccl_world_group") -> None:
    """Set after which gradients reductions are divided, which has no effect."""
    _CONTEXT.set_all_reduce_fusion_split_indices(idx_list, group)


def _set_fusion_strategy_by_size(data_size_list: Sequence[int], group: str = "hccl_world_group") -> None:
    """Set in which sizes reductions are divided, which has no effect."""
    _CONTEXT.set_all_reduce_fusion_split_sizes(data_size_list, group)
