"""`mindspore.device_context.ascend.op_debug`: settings for finding faults, without effect."""

from __future__ import annotations

from mycel.compat.device_settings import setting

__all__ = ["aclinit_config", "debug_option", "execute_timeout"]

execute_timeout = setting("Ascend", "execute_timeout", int, title="op_timeout")
debug_option = setting("Ascend", "debug_option", str, ("oom",), "option_value")
aclinit_config = setting("Ascend", "aclinit_config", dict, title="config")
