"""Transforms that call operations of users' shared libraries in C++."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.engines.routines.cpp_plugins import Operation, opened
from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import input_refused
from mycel.dataset.transforms.base import Transform

__all__ = ["Plugin"]


class Plugin(Transform):
    """An operation `func_name` of a library of C++ classes at `lib_path`.

    `user_args` is text that the operation takes its arguments from. It gets the columns of a row,
    numbers of up to 64 bits of any shape or one text, and makes any number of columns of numbers.
    Libraries are those made for MindSpore's interface of plugins, version 0.5: they export
    `GetInstance` as its ``shared_include.h`` declares it, and are linked with GNU's C++ library,
    for Linux on x86-64. Workers that are threads call one object of it at the same time.

    The library is loaded when the first row comes. Then RuntimeError is raised where it cannot be
    loaded or lacks the operation, and later for what the operation refuses.

    >>> from mycel.dataset import transforms
    >>> transforms.Plugin("libfilters.so", "Denoise", "strength=2")
    Plugin(lib_path='libfilters.so', func_name='Denoise', user_args='strength=2')
    """

    in_threads = False

    def __init__(self, lib_path: str, func_name: str, user_args: str | None = None) -> None:
        self.lib_path = arguments.text("Plugin", "lib_path", lib_path)
        self.func_name = arguments.text("Plugin", "func_name", func_name)
        self.user_args = None if user_args is None else arguments.text("Plugin", "user_args", user_args)
        self._operation: Operation | None = None

    def __call__(self, *inputs: Any) -> Any:
        operation = self._operation
        if operation is None:
            # Two threads may both load it, and then have one object each.
            operation = self._operation = opened(self.lib_path).operation(self.func_name, self.user_args or "")
        arrays = [value if type(value) is np.ndarray else self.convert(value) for value in inputs]
        try:
            made = operation.compute(arrays)
        except (TypeError, ValueError) as error:
            raise input_refused(error) from None
        return made[0] if len(made) == 1 else tuple(made)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_operation": None}
