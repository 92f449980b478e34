"""The call of an optimizer's step: after a few calls it is one compiled program, in PYNATIVE_MODE
too.
"""

from __future__ import annotations

from typing import Any

from mycel.base import config
from mycel.cells.cell import Cell
from mycel.core import eager

__all__ = ["Stepping"]

_OWN = __name__.partition(".")[0] + "."
# The number of the call from which on a step is compiled as a whole in PYNATIVE_MODE too: a few
# calls do not repay the compilation.
COMPILED_FROM = 4


class Stepping(Cell):
    """A Cell whose `construct` takes a step of an optimizer.

    Steps of this library's optimizers that are called often are compiled as one program.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if eager.active or config._context["mode"] == config.GRAPH_MODE or self._pre_hooks or self._hooks:
            return super().__call__(*args, **kwargs)
        # The count is kept in the instance dictionary, which guards do not check.
        state = self.__dict__
        taken = state["_taken"] = state.get("_taken", 0) + 1
        if taken < COMPILED_FROM or self._is_foreign():
            return super().__call__(*args, **kwargs)
        return self._call_compiled(args, kwargs)

    def _is_foreign(self) -> bool:
        """Return whether the step runs code from outside of this library, which is not compiled."""
        known = self.__dict__.get("_foreign")
        if known is None:
            known = any(not type(c).__module__.startswith(_OWN) for _, c in self.cells_and_names())
            self.__dict__["_foreign"] = known
        return bool(known)
