"""Hooks that see the rows of pipelines in debug mode; see `config.set_debug_mode`."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DebugHook", "PrintDataHook", "PrintMetaDataHook"]


class DebugHook:
    """The base class of hooks, whose `compute` sees what goes into and comes out of operations.

    `prev_op_name` is the name of the operation that the hook stands at.

    >>> import mycel.dataset as ds
    >>> class Sum(ds.debug.DebugHook):
    ...     def compute(self, *args):
    ...         print(self.prev_op_name, "" if self.is_first else "gave", [int(x) for x in args[0]])
    ...         return args
    >>> ds.config.set_debug_mode(True, [Sum()])
    >>> def double(x):
    ...     return 2 * x
    >>> data = ds.NumpySlicesDataset([1], ["x"], shuffle=False).map(double, "x")
    >>> _ = list(data.create_tuple_iterator(num_epochs=1))
    [Dataset debugger] Print the [INPUT] of the operation [double].
    double  [1]
    [Dataset debugger] Print the [OUTPUT] of the operation [double].
    double gave [2]
    >>> ds.config.set_debug_mode(False)
    """

    def __init__(self, prev_op_name: str | None = None) -> None:
        self.prev_op_name = prev_op_name
        self.is_first = False

    def set_previous_op_name(self, prev_op_name: str) -> None:
        """Set the name of the operation that the hook stands at."""
        self.prev_op_name = prev_op_name

    def set_is_first(self, is_first: bool) -> None:
        """Set whether the hook sees what goes into the operation, not what comes out."""
        self.is_first = is_first

    def __call__(self, *args: Any) -> Any:
        side = "INPUT" if self.is_first else "OUTPUT"
        print(f"[Dataset debugger] Print the [{side}] of the operation [{self.prev_op_name}].")
        return self.compute(*args)

    def compute(self, *args: Any) -> Any:
        """Look at a row, the tuple of its columns, and return `args`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define compute(self, *args)")


def _columns(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args[0] if len(args) == 1 and isinstance(args[0], tuple) else args


class PrintDataHook(DebugHook):
    """A hook that prints the values of every column."""

    def compute(self, *args: Any) -> Any:
        for number, column in enumerate(_columns(args)):
            print(f"Column {number}. The data is [{column}].")
        return args


class PrintMetaDataHook(DebugHook):
    """A hook that prints the type and shape of every column."""

    def compute(self, *args: Any) -> Any:
        for number, column in enumerate(_columns(args)):
            array = np.asarray(column)
            print(f"Column {number}. The dtype is [{array.dtype}]. The shape is [{array.shape}].")
        return args


def at(hook: Any, operation: str, is_first: bool, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row that a hook, or a plain function of rows, gives at an operation.

    * `hook`: the hook; a function sees only what comes out of operations.
    * `operation`: the name of the operation.
    * `is_first`: whether the row goes into it.
    * `row`: the row.
    """
    if not isinstance(hook, DebugHook):
        return row if is_first else tuple(hook(row))
    hook.set_previous_op_name(operation)
    hook.set_is_first(is_first)
    result = hook(row)
    return tuple(_columns(result)) if isinstance(result, tuple) else (result,)
