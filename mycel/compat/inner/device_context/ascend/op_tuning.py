"""`mindspore.device_context.ascend.op_tuning`: settings of tuning, without effect."""

from __future__ import annotations

from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel.compat.device_settings import setting

__all__ = ["aclnn_cache", "aoe_job_type", "aoe_tune_mode", "op_compile"]

op_compile = setting("Ascend", "op_compile", bool)
aoe_tune_mode = setting("Ascend", "aoe_tune_mode", str, ("online", "offline"), "tune_mode")
aoe_job_type = setting("Ascend", "aoe_job_type", str, ("1", "2"), "config")


def aclnn_cache(enable_global_cache: bool = False, cache_queue_length: int = 10000) -> None:
    """Set how calls of Ascend's library are kept, which has no effect: there is no such device."""
    arguments.flag("aclnn_cache", "enable_global_cache", enable_global_cache)
    arguments.integer("aclnn_cache", "cache_queue_length", cache_queue_length, numpy=False)
    without_effect(f"aclnn_cache({enable_global_cache!r}, {cache_queue_length!r})", "there is no Ascend device")
