"""`mindspore.parallel.algo_parameter_config`: the object behind the parameters of the search for
strategies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel.parallel import context

__all__: list[str] = []

_NAMES = {
    "fully_use_devices": "fully_use_devices",
    "elementwise_op_strategy_follow": "elementwise_op_strategy_follow",
    "dp_algo_enable_approxi": "enable_algo_approxi",
    "dp_algo_approxi_epsilon": "algo_approxi_epsilon",
    "tensor_slice_align_enable": "tensor_slice_align_enable",
    "tensor_slice_align_size": "tensor_slice_align_size",
}


class _AlgoParameterConfig:
    """The parameters of the search for strategies, read and written by one method each."""

    def check_config_handle(self) -> None:
        """Do nothing: the parameters are always there."""

    def reset_algo_parameters(self) -> None:
        """Set all parameters to their defaults."""
        context.reset_algo_parameters()


def _setter(title: str, name: str) -> Callable[[_AlgoParameterConfig, Any], None]:
    def set(self: _AlgoParameterConfig, value: Any) -> None:
        context.set_algo_parameters(**{name: value})

    set.__name__, set.__doc__ = f"set_{title}", f"Set the parameter `{name}`."
    return set


def _getter(title: str, name: str) -> Callable[[_AlgoParameterConfig], Any]:
    def get(self: _AlgoParameterConfig) -> Any:
        return context.get_algo_parameters(name)

    get.__name__, get.__doc__ = f"get_{title}", f"Return the parameter `{name}`."
    return get


_G_ALGO_PARAMETER_CONFIG = _AlgoParameterConfig()
set_algo_parameters_config_func_map: dict[str, Any] = {}
get_algo_parameters_config_func_map: dict[str, Any] = {}
for _title, _name in _NAMES.items():
    setattr(_AlgoParameterConfig, f"set_{_title}", _setter(_title, _name))
    setattr(_AlgoParameterConfig, f"get_{_title}", _getter(_title, _name))
    set_algo_parameters_config_func_map[_name] = getattr(_G_ALGO_PARAMETER_CONFIG, f"set_{_title}")
    get_algo_parameters_config_func_map[_name] = getattr(_G_ALGO_PARAMETER_CONFIG, f"get_{_title}")


def _algo_parameter_config() -> _AlgoParameterConfig:
    """Return the one object with the parameters."""
    return _G_ALGO_PARAMETER_CONFIG
