"""`mindspore.common.hook_handle`: handles of hooks, which remove them."""

from __future__ import annotations

from mycel.cells.hooks import HookHandle
from mycel.core.hooks import TensorHookHandle as _TensorHookHandle

__all__ = ["HookHandle"]
