"""`mindspore.common.hook_handle`: handles of hooks, which remove them."""

from __future__ import annotations

from mycel._src.tensors.cells.hooks import HookHandle
from mycel._src.tensors.core.autograd.gradient_hooks import TensorHookHandle as _TensorHookHandle

__all__ = ["HookHandle"]
