"""Compiled functions under parallel modes: where the room above puts what divides their calls.

While operators are divided among devices (`ParallelSettings.dividing`), a call of a compiled
function that is not part of another one is the ranks' common work. `mycel.distributed.modes` puts
the function here that carries it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

__all__ = ["Dividing", "dividing"]


class Dividing:
    """`call(jit, args, kwargs)` calls a compiled function divided, and `planned(jit, *args)` gives
    the version and the rank's graph that such a call would run; None where nobody can.
    """

    call: Optional[Callable[..., Any]] = None
    planned: Optional[Callable[..., Any]] = None


dividing = Dividing()
