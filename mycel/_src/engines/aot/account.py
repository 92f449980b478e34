"""Cost report of a library: peak memory and arithmetic, by line of the user's program.

The peak is the time at which the most bytes of the arena are alive. Operations are counted as in
`explain` (engines/native/report/costs.py); a product with its addition is two. Instructions are an
estimate: operations by the instructions that one took on emulated boards (benchmarks/devices.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mycel._src.engines.aot.target_plan import Plan
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Nest
from mycel._src.engines.native.program import arena
from mycel._src.engines.native.program.liveness import Liveness
from mycel._src.engines.native.report import costs
from mycel._src.engines.native.steps.step_types import Step

__all__ = ["Account", "Line", "account_of"]

# Instructions for an operation of floats, measured.
_INSTRUCTIONS = {
    "cortex-m0plus": 60.0,
    "cortex-m3": 45.0,
    "cortex-m4": 2.3,
    "cortex-m7": 1.9,
    "cortex-m33": 2.3,
    "cortex-m55": 1.1,
}


@dataclass(frozen=True)
class Line:
    """A line of the program, as `file:line`, with an operation on it and what that amounts to."""

    where: str
    operation: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount:>12,}  {self.where}  {self.operation}"


@dataclass(frozen=True)
class Account:
    """What one call of a library holds in the arena at its peak, and computes.

    `peak` has bytes, `work` operations on floats and products of integers, the largest first.
    `instructions` is an estimate, or None for targets without a measurement. `stripes` is the
    number of stripes in which the first operations on images are computed for a smaller arena (0:
    they are not divided). No product is computed twice for that; `copied_bytes` of rows that the
    next stripe needs are copied.
    """

    peak: tuple[Line, ...]
    work: tuple[Line, ...]
    instructions: int | None
    stripes: int = 0
    copied_bytes: int = 0

    @property
    def products(self) -> int:
        """Multiplications with their additions."""
        return sum(line.amount for line in self.work) // 2


def account_of(plan: Plan, target: str) -> Account:
    """Return the account of a plan for a target of this name."""
    live = Liveness(plan.template.steps, plan.calls, plan.template.takes)
    groups, _ = arena.joined(live.lives(plan.number), live.taking)
    at = arena.fullest(groups)
    peak = [_line(live.makers[key], size) for key, size, first, last in groups if first <= at <= last]
    steps = [s for s in plan.all_steps if isinstance(s.data, (Nest, Kernel))]
    work = _summed(_line(s, int(costs.cost(s, plan.number).flops)) for s in steps)
    rate = _INSTRUCTIONS.get(target)
    total = sum(line.amount for line in work)
    estimate = None if rate is None else int(total * rate)
    return Account(_summed(peak), work, estimate, plan.stripes, plan.copied_bytes)


def _line(step: Step, amount: int) -> Line:
    node = step.node
    name = node.op if node is not None else getattr(step.data, "name", step.kind)
    return Line("no line" if node is None or node.where is None else str(node.where), name, amount)


def _summed(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return lines with what those of one place and operation amount to together."""
    found: dict[tuple[str, str], int] = {}
    for line in lines:
        found[line.where, line.operation] = found.get((line.where, line.operation), 0) + line.amount
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Line(*place, amount) for place, amount in ordered if amount)
