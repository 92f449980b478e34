"""`mindspore.train.model`: parts of the training loop."""

from __future__ import annotations

from typing import Any

from mycel._src.devices.runtime import synchronize
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.callback.base import Callback, RunContext

__all__: list[str] = []


class _StepSync(Callback):
    """A callback that waits at the end of each step until its work is done."""

    def step_end(self, run_context: RunContext) -> None:
        """Wait for what runs in the background."""
        synchronize()


def _transfer_tensor_to_tuple(inputs: Any) -> Any:
    """Return a tensor as a tuple of one, and anything else as it is."""
    return (inputs,) if isinstance(inputs, Tensor) else inputs
