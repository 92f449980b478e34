"""`mindspore.parallel._ps_context`: settings of parameter servers."""

from __future__ import annotations

from mycel.compat.inner.communication._comm_helper import _is_role_sched
from mycel.parallel.parameter_server import get_ps_context as _get_ps_context
from mycel.parallel.parameter_server import reset_ps_context as _reset_ps_context
from mycel.parallel.parameter_server import set_ps_context as _set_ps_context

__all__: list[str] = []


def _need_reset_device_target_for_ps(target: str) -> bool:
    """Return False: there are no parameter servers."""
    return False
