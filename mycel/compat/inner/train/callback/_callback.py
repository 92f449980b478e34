"""`mindspore.train.callback._callback`: what a training loop of a program's own calls callbacks
with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.callback.base import HOOKS, CallbackList, RunContext
from mycel.train.callback.base import CallbackParameters as InternalCallbackParam

__all__: list[str] = []

_OLDER = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


class CallbackManager(CallbackList):
    """Several callbacks as one, whose hooks call theirs in order.

    Raises TypeError for anything that is not a callback, a list of them or None.
    """

    def __init__(self, callbacks: Any) -> None:
        super().__init__(callbacks)


def _hook(name: str) -> Any:
    def run(self: CallbackManager, run_context: RunContext) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(run_context)

    run.__name__ = name
    run.__doc__ = f"Call `{name}` of every callback."
    return run


for _name in (*HOOKS, *_OLDER):
    setattr(CallbackManager, _name, _hook(_name))


def _handle_loss(loss: Any) -> Any:
    """Return a tensor's mean as a float, the first of a tuple or list if it is a tensor, and
    anything else as it is.
    """
    if isinstance(loss, (tuple, list)):
        return loss[0] if loss and isinstance(loss[0], Tensor) else loss
    return float(np.mean(loss.asnumpy())) if isinstance(loss, Tensor) else loss


CUR_NET: Any = None


def set_cur_net(net: Any) -> None:
    """Take the network that is trained, which only saving from inside a device's graph asks for."""
    without_effect("_set_cur_net", "checkpoints are saved from the network that they are given")
