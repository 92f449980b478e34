"""What a comparison is: a case, and the arrays that are its inputs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Array", "Case"]


@dataclass(frozen=True)
class Array:
    """An input: float32, normally distributed, uniform over [0.1, 1.1) or rows of distinct numbers
    ("distinct"), all times `scale`; integers below `high`; or integers from 1 to `high` ("labels"),
    or those below it as float32 ("flags").
    """

    shape: tuple[int, ...]
    high: int = 0
    kind: str = "normal"
    scale: float = 1.0


@dataclass(frozen=True)
class Case:
    """One comparison.

    `wrt` are the inputs that it is differentiated by (none: forward only). `layouts`: whether
    channels-last applies. `tolerance` is relative to the size of the result. `random`: the numbers
    differ by design, and only how many are zero is compared. `kind` says what a workload is: a
    "function" of tensors, a "network" under training by `optimizer` (none: it runs forward), or a
    "course", which runs as it is.
    """

    name: str
    group: str
    title: str
    inputs: tuple[Array, ...] = ()
    wrt: tuple[int, ...] = ()
    layouts: bool = False
    tolerance: float = 1e-4
    random: bool = False
    kind: str = ""
    optimizer: str = ""

    @property
    def passes(self) -> tuple[str, ...]:
        """What is timed of it."""
        if self.group in ("network", "eager", "optimizer") or self.kind == "course" or self.optimizer:
            return ("step",)
        if self.kind and self.wrt:
            return ("backward",)
        return ("forward", "backward") if self.wrt else ("forward",)
