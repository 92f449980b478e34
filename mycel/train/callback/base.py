"""The callback interface: hooks that run between the steps and epochs of training and evaluation.

A `Model` calls the hooks in this order, each with one `RunContext` for the whole run::

    on_train_begin
        on_train_epoch_begin
            on_train_step_begin, on_train_step_end        for every batch
            on_eval_begin ... on_eval_end                 in Model.fit, where the epoch is validated
        on_train_epoch_end
    on_train_end

and likewise with ``on_eval`` for an evaluation. A callback is also a context manager around the
whole run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.callback_base import Callback, RunContext
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Callback", "CallbackList", "CallbackParameters", "RunContext", "step_loss"]

HOOKS = tuple(
    f"on_{run}_{moment}"
    for run in ("train", "eval")
    for moment in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
)


class CallbackParameters(dict[str, Any]):
    """The facts of a run for callbacks, as items and as attributes.

    The message of an AttributeError lists the valid names.
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no {name!r} at this point of the run; there are: {', '.join(sorted(self))}")

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class CallbackList(Callback):
    """Several callbacks that are called in order, entered and left together.

    Raises TypeError for anything that is not a callback.
    """

    def __init__(self, callbacks: Any, later: Any | None = None) -> None:
        self.later = later
        if callbacks is None:
            callbacks = []
        elif isinstance(callbacks, Callback):
            callbacks = [callbacks]
        if not isinstance(callbacks, Iterable):
            raise arguments.wrong_type("CallbackList", "callbacks", "a Callback or a list of them", callbacks)
        self.callbacks: list[Callback] = list(callbacks)
        for callback in self.callbacks:
            arguments.instance("CallbackList", "each of callbacks", callback, Callback)
        self._stack = contextlib.ExitStack()
        self._having: dict[tuple[str, ...], list[Callback]] = {}

    def __enter__(self) -> CallbackList:
        with contextlib.ExitStack() as stack:
            for callback in self.callbacks:
                stack.enter_context(callback)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def call(self, hook: str, run_context: RunContext) -> None:
        """Call one hook of every callback that has it."""
        for callback in self.having(hook):
            if self.later is not None and not callback.writes_later and not self.later.is_idle:
                # What it prints comes after what others have printed.
                self.later.flush()
            getattr(callback, hook)(run_context)

    def having(self, *hooks: str) -> list[Callback]:
        """Return the callbacks that define at least one of these hooks."""
        found = self._having.get(hooks)
        if found is None:
            found = self._having[hooks] = [c for c in self.callbacks if any(_has(c, hook) for hook in hooks)]
        return found


def _has(callback: Callback, hook: str) -> bool:
    """Return whether a callback defines a hook, or the older one that it calls."""
    names = (hook, hook.split("_", 2)[2])
    return any(
        name in vars(callback) or getattr(type(callback), name, None) is not getattr(Callback, name) for name in names
    )


def _forward(hook: str) -> Any:
    def method(self: CallbackList, run_context: RunContext) -> None:
        self.call(hook, run_context)

    method.__name__ = hook
    return method


for _hook in HOOKS:
    setattr(CallbackList, _hook, _forward(_hook))


def step_loss(outputs: Any) -> Any:
    """Return the loss among a step's outputs.

    It is the first of several outputs, as a float if it is a number or a tensor (of which the mean
    is taken).
    """
    while isinstance(outputs, (tuple, list)) and outputs:
        outputs = outputs[0]
    if isinstance(outputs, Tensor) and outputs.size == 1:
        return float(outputs.asnumpy().item())
    if isinstance(outputs, Tensor):
        outputs = outputs.asnumpy()
    if isinstance(outputs, (int, float, np.number, np.ndarray)):
        return float(np.mean(outputs))
    return outputs
