"""`mindspore.context`: parts of the module of settings."""

from __future__ import annotations

import os
import time
from typing import Any

from mycel._src.foundation.settings import config
from mycel.compat.inner._c_expression.settings import MSContext
from mycel.compat.inner.communication._comm_helper import _is_initialized as is_initialized
from mycel.compat.inner.parallel._auto_parallel_context import (
    _get_auto_parallel_context,
    _reset_auto_parallel_context,
    _set_auto_parallel_context,
)
from mycel.compat.inner.train._utils import _make_directory
from mycel.parallel.parameter_server import get_ps_context as _get_ps_context
from mycel.parallel.parameter_server import reset_ps_context as _reset_ps_context
from mycel.parallel.parameter_server import set_ps_context as _set_ps_context

__all__: list[str] = []

DEBUG, RELEASE = 1, 0
_DEVICE_APP_MEMORY_SIZE = 31
_RE_PATTERN = r"[1-9][0-9]*(\.)?[0-9]*GB|0\.[0-9]*GB"


class _Context:
    """The settings of the process, as attributes: `mode`, `device_target` and so on."""

    def __getattr__(self, name: str) -> Any:
        try:
            return config.get_context(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        config.set_context(**{name: value})

    def get_mode(self) -> int:
        """Return the mode."""
        return int(config.get_context("mode"))

    def set_mode(self, mode: int) -> None:
        """Set the mode."""
        config.set_context(mode=mode)

    def set_device_target(self, target: str) -> None:
        """Set the device that computes."""
        config.set_context(device_target=target)

    def get_param(self, param: int) -> Any:
        """Return a setting by its number in MindSpore's core."""
        return MSContext.get_instance().get_param(param)

    def set_param(self, param: int, value: Any) -> None:
        """Set a setting by its number in MindSpore's core."""
        MSContext.get_instance().set_param(param, value)

    def get_jit_config(self) -> dict[str, Any]:
        """Return the options of compilation that were set."""
        return get_jit_config()


K_CONTEXT = _Context()


def _context() -> _Context:
    """Return the one object with the settings."""
    return K_CONTEXT


def _get_mode() -> int:
    """Return the mode."""
    return int(config.get_context("mode"))


def get_jit_config() -> dict[str, Any]:
    """Return the options of compilation that `set_context(jit_config=...)` set."""
    return dict(config.get_context("jit_config"))


def _get_print_file_name(file_name: str) -> str:
    """Return the name of a file with the time in seconds after it.

    Raises ValueError if there is such a file.
    """
    name = f"{file_name}.{int(time.time())}"
    if os.path.exists(name):
        raise ValueError(f"there is a file {name!r} already")
    return name


def _check_target_specific_cfgs(device: str, arg_key: str) -> bool:
    """Return True: an option of another device is accepted, and has no effect."""
    return True
