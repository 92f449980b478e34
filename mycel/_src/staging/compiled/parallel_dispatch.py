"""The hook by which `distributed` takes over calls of compiled functions in parallel modes.

While operators are divided among devices (`ParallelSettings.dividing`), a call of a compiled
function that is not part of another one is the ranks' common work. `distributed.parallel_modes`
puts the function here that carries it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines.select import engine
from mycel._src.foundation.settings.parallel_settings import plan

__all__ = ["Dividing", "dividing"]


class Dividing:
    """`call(jit, args, kwargs)` calls a compiled function divided, and `planned(jit, *args)` gives
    the version and the rank's graph that such a call would run; None where nobody can.
    """

    call: Callable[..., Any] | None = None
    planned: Callable[..., Any] | None = None

    @property
    def now(self) -> bool:
        """Whether calls of compiled functions are divided among ranks or devices."""
        if self.call is None or plan() is None:
            return False
        return transport().size > 1 or engine().device_count() > 1

    @property
    def apart(self) -> bool:
        """Whether they are divided among ranks, of which each has its part of the data."""
        return self.call is not None and plan() is not None and transport().size > 1


dividing = Dividing()
