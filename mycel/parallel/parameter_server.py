"""Settings of training with parameter servers, which are other processes that keep the parameters.

There are no servers here. Settings are checked, kept and returned, so that programs that do not use
servers run; enabling servers is an error.
"""

from __future__ import annotations

from typing import Any

from mycel.base import arguments

__all__ = ["get_ps_context", "reset_ps_context", "set_ps_context"]

_DEFAULTS: dict[str, Any] = {
    "enable_ps": False,
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
        arguments.instance("set_ps_context", name, value, type(_DEFAULTS[name]))
    if kwargs.get("enable_ps"):
        raise RuntimeError(
            "set_ps_context: there are no parameter servers: this process keeps all parameters; leave enable_ps=False"
        )
    _settings.update(kwargs)


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
