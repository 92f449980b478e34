"""`mindspore_gs.common`."""

from __future__ import annotations

import enum

__all__ = ["BackendTarget"]


class BackendTarget(enum.Enum):
    """The machine that a network is made for; both are this one."""

    NONE = "none"
    ASCEND = "ascend"
