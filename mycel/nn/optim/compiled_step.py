"""The call of an optimizer's step: after a few calls it is one compiled program, in PYNATIVE_MODE
too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.settings import config
from mycel._src.foundation.settings.parallel_settings import ParallelSettings, current, in_force
from mycel._src.staging.compiled.parallel_dispatch import dividing
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.sparse_gradient import Rows, bytes_in_rows, in_parts, whole

__all__ = ["Stepping"]

_OWN = __name__.partition(".")[0] + "."
# The number of the call from which on a step is compiled as a whole in PYNATIVE_MODE too: a few
# calls do not repay the compilation.
COMPILED_FROM = 4
# Bytes of gradients that are rows from which on a first step is compiled, so that they stay rows.
MUCH = 1 << 23


class Stepping(Cell):
    """A Cell whose `construct` takes a step of an optimizer.

    Steps of this library's optimizers that are called often are compiled as one program.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if dividing.apart and not eager.active:
                # Gradients that are given are whole, however batches are.
                with in_force(self._of_whole()):
                    return self._call_compiled(args, kwargs)
            if eager.active or config._context["mode"] == config.GRAPH_MODE or self._pre_hooks or self._hooks:
                return super().__call__(*args, **kwargs)
            # The count is kept in the instance dictionary, which guards do not check.
            state = self.__dict__
            taken = state["_taken"] = state.get("_taken", 0) + 1
            given = args[0] if args and type(args[0]) in (tuple, list) else ()
            in_rows = bytes_in_rows(given)
            if (taken < COMPILED_FROM and in_rows < MUCH) or self._is_foreign():
                return super().__call__(*args, **kwargs)
            return self._call_compiled((in_parts(given), *args[1:]) if in_rows else args, kwargs)
        except Exception as error:
            at_border(error)
            raise

    def _of_whole(self) -> ParallelSettings:
        """Return the settings in force for arguments that every rank has whole."""
        settings = current()
        known = self.__dict__.get("_divided_settings")
        if known is None or known[0] is not settings:
            known = (settings, settings.replaced(dataset_strategy="full_batch", full_batch=True))
            self.__dict__["_divided_settings"] = known
        return known[1]

    def run_with_hooks(
        self, construct: Any, args: tuple[Any, ...], kwargs: dict[str, Any], invoke: Callable[..., Any] | None = None
    ) -> Any:
        """Return ``construct(*args, **kwargs)``, with gradients in place of their rows.

        `invoke` calls hooks, as for any Cell.
        """
        if args and type(args[0]) is tuple:
            args = (tuple([whole(g) if type(g) is Rows else g for g in args[0]]), *args[1:])
        return super().run_with_hooks(construct, args, kwargs, invoke)

    def _is_foreign(self) -> bool:
        """Return whether the step runs code from outside of this library, which is not compiled."""
        known = self.__dict__.get("_foreign")
        if known is None:
            known = any(not type(c).__module__.startswith(_OWN) for _, c in self.cells_and_names())
            self.__dict__["_foreign"] = known
        return bool(known)
