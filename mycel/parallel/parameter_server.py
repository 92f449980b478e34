"""Settings of training with parameter servers, which are other processes that keep the parameters.

There are no servers here. Settings are checked, kept and returned, so that programs that do not use
servers run; enabling servers is an error.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect

__all__ = ["get_ps_context", "reset_ps_context", "set_ps_context"]

_DEFAULTS: dict[str, Any] = {
    "enable_ps": False,
    "server_mode": "",
    "ms_role": "MS_WORKER",
    "worker_num": 0,
    "server_num": 0,
    "scheduler_ip": "127.0.0.1",
    "scheduler_port": 6667,
    "config_file_path": "",
    "enable_ssl": False,
    "client_password": "",
    "server_password": "",
}
_SECRET = ("client_password", "server_password")
_settings = dict(_DEFAULTS)


def set_ps_context(**kwargs: Any) -> None:
    """Set options of parameter servers: `enable_ps`, which must be False, `config_file_path`,
    `enable_ssl`, `client_password`, `server_password`.

    Raises ValueError for other names, TypeError for values of other types, RuntimeError for
    ``enable_ps=True``, as this process has no parameter servers.

    >>> set_ps_context(enable_ps=False, enable_ssl=True)
    >>> get_ps_context("enable_ssl")
    True
    >>> reset_ps_context()
    """
    for name, value in kwargs.items():
        if name not in _DEFAULTS:
            raise ValueError(f"set_ps_context: there is no setting {name!r}; the names are {', '.join(_DEFAULTS)}")
        kind = type(_DEFAULTS[name])
        if name == "enable_ssl":
            arguments.instance("set_ps_context", name, value, int)
        elif kind is int:
            _check_number(name, value)
        else:
            arguments.instance("set_ps_context", name, value, kind)
    if kwargs.get("enable_ps"):
        raise RuntimeError(
            "set_ps_context: there are no parameter servers: this process keeps all parameters; leave enable_ps=False"
        )
    for name, value in kwargs.items():
        if value != _DEFAULTS[name]:
            without_effect(f"set_ps_context({name}=...)", "there are no parameter servers")
        _settings[name] = bool(value) if name == "enable_ssl" else value


def _check_number(name: str, value: Any) -> None:
    most = 65535 if name == "scheduler_port" else 2**32 - 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise TypeError(f"set_ps_context: {name} must be an int from 0 to {most}, not {value!r}")


def get_ps_context(attr_key: str) -> Any:
    """Return one setting.

    Raises ValueError for unknown names, and for passwords, which are not returned.
    """
    if not isinstance(attr_key, str) or attr_key not in _settings or attr_key in _SECRET:
        known = ", ".join(n for n in _DEFAULTS if n not in _SECRET)
        raise ValueError(f"get_ps_context: there is no setting {attr_key!r} to read; the names are {known}")
    return _settings[attr_key]


def reset_ps_context() -> None:
    """Reset all settings to their defaults.

    >>> reset_ps_context()
    >>> get_ps_context("enable_ps")
    False
    """
    _settings.update(_DEFAULTS)
