"""The hook by which `distributed` takes over calls of compiled functions in parallel modes.

While operators are divided among devices (`ParallelSettings.dividing`), a call of a compiled
function that is not part of another one is the ranks' common work. `distributed.parallel_modes`
puts the function here that carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines.select import engine
from mycel._src.foundation.settings.parallel_settings import plan

if TYPE_CHECKING:
    from mycel._src.staging.compiled.function_version import Version

__all__ = ["Dividing", "RankProgram", "dividing"]


class RankProgram(NamedTuple):
    """What one rank runs of a divided function.

    `version` is the undivided program, `graph` the rank's, whose inputs are those of the version
    with the numbers `inputs`; `aliases` maps its outputs to the inputs into whose memory they are
    written. Of a pipeline it is one stage.
    """

    version: Version
    graph: Graph
    inputs: Sequence[int]
    aliases: Mapping[int, int]


class Dividing:
    """`call(jit, args, kwargs)` calls a compiled function divided, and `planned(jit, *args)` gives
    what a rank would run in such a call; None where nobody can.
    """

    call: Callable[..., Any] | None = None
    planned: Callable[..., RankProgram] | None = None

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
