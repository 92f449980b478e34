"""`mindspore.parallel._cost_model_context`: the figures by which strategies for several devices are
compared.

They are checked, kept and returned, and compare nothing: there is one device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation.settings.ignored_settings import without_effect

__all__: list[str] = []

_DEFAULTS: dict[str, Any] = {
    "device_memory_capacity": 17179869184.0,
    "costmodel_alpha": 1.0,
    "costmodel_beta": 400.0,
    "costmodel_gamma": 0.001,
    "costmodel_communi_threshold": 2048.0,
    "costmodel_communi_const": 3072.0,
    "costmodel_communi_bias": 1024.0,
    "run_phase": 0,
    "costmodel_allreduce_fusion_algorithm": 0,
    "costmodel_allreduce_fusion_times": 0,
    "costmodel_allreduce_fusion_tail_percent": 0.1,
    "costmodel_allreduce_fusion_tail_time": 0.1,
    "costmodel_allreduce_fusion_allreduce_inherent_time": 0.1,
    "costmodel_allreduce_fusion_allreduce_bandwidth": 0.1,
    "costmodel_allreduce_fusion_computation_time_parameter": 0.1,
}
_FURTHER: dict[str, Any] = {"multi_subgraphs": False, "dp_algo_single_loop": False, "rp_matmul_mem_coef": 0.1}
_values: dict[str, Any] = {**_DEFAULTS, **_FURTHER}


def _put(name: str, value: Any) -> None:
    kind = type({**_DEFAULTS, **_FURTHER}[name])
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise TypeError(f"set_cost_model_context: {name} must be of type {kind.__name__}, not {value!r}")
    if name == "run_phase" and value not in (0, 1):
        raise ValueError(f"set_cost_model_context: run_phase must be 0 (training) or 1 (inference), not {value!r}")
    if kind is float and value <= 0:
        raise RuntimeError(f"set_cost_model_context: {name} must be positive, not {value!r}")
    without_effect(f"set_cost_model_context({name}=...)", "strategies are not searched for: there is one device")
    _values[name] = value


def _got(name: str) -> Any:
    value = _values[name]
    # MindSpore keeps these numbers in single precision.
    return float(np.float32(value)) if name in ("costmodel_gamma", "rp_matmul_mem_coef") else value


def set_cost_model_context(**kwargs: Any) -> None:
    """Set figures of the cost model.

    Raises ValueError for a name that there is not, TypeError for a value of another type.
    """
    for name, value in kwargs.items():
        if name not in _DEFAULTS:
            raise ValueError(f"set_cost_model_context: there is no setting {name!r}; the names are {_names()}")
        _put(name, value)


def get_cost_model_context(attr_key: str) -> Any:
    """Return one figure of the cost model; ValueError for a name that there is not."""
    if attr_key not in _DEFAULTS:
        raise ValueError(f"get_cost_model_context: there is no setting {attr_key!r}; the names are {_names()}")
    return _got(attr_key)


def _names() -> str:
    return ", ".join(_DEFAULTS)


def reset_cost_model_context() -> None:
    """Set all figures of the cost model to their defaults."""
    _values.update(_DEFAULTS)


def _set_multi_subgraphs(multi_subgraph: bool = True) -> None:
    """Set whether a graph has several parts to search strategies for."""
    _put("multi_subgraphs", multi_subgraph)


def _get_multi_subgraphs() -> bool:
    """Return whether a graph has several parts to search strategies for."""
    return bool(_values["multi_subgraphs"])


def _set_algo_single_loop(single_loop: bool = True) -> None:
    """Set whether loops are searched as one."""
    _put("dp_algo_single_loop", single_loop)


def _get_algo_single_loop() -> bool:
    """Return whether loops are searched as one."""
    return bool(_values["dp_algo_single_loop"])


def _set_rp_matmul_mem_coef(coef: float) -> None:
    """Set the weight of memory for matrix products."""
    _put("rp_matmul_mem_coef", coef)


def _get_rp_matmul_mem_coef() -> Any:
    """Return the weight of memory for matrix products."""
    return _values["rp_matmul_mem_coef"]


class _CostModelContext:
    """The figures of the cost model, read and written by one method each."""

    def reset_cost_model(self) -> None:
        """Set all figures to their defaults."""
        reset_cost_model_context()


def _setter(name: str) -> Callable[[_CostModelContext, Any], None]:
    def set(self: _CostModelContext, value: Any) -> None:
        _put(name, value)

    set.__name__, set.__doc__ = f"set_{name}", f"Set `{name}`."
    return set


def _getter(name: str) -> Callable[[_CostModelContext], Any]:
    def get(self: _CostModelContext) -> Any:
        return _got(name)

    get.__name__, get.__doc__ = f"get_{name}", f"Return `{name}`."
    return get


_COST_MODEL_CONTEXT = _CostModelContext()
set_cost_model_context_func_map: dict[str, Any] = {}
get_cost_model_context_func_map: dict[str, Any] = {}
for _name in _values:
    setattr(_CostModelContext, f"set_{_name}", _setter(_name))
    setattr(_CostModelContext, f"get_{_name}", _getter(_name))
    if _name in _DEFAULTS:
        set_cost_model_context_func_map[_name] = getattr(_COST_MODEL_CONTEXT, f"set_{_name}")
        get_cost_model_context_func_map[_name] = getattr(_COST_MODEL_CONTEXT, f"get_{_name}")


def cost_model_context() -> _CostModelContext:
    """Return the one object with the figures of the cost model."""
    return _COST_MODEL_CONTEXT
