"""What programs of Python in compiled functions share."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, ClassVar


@dataclasses.dataclass
class Space:
    """A place for values."""

    a: Any
    b: Any
    extra: float = 1.0
    sizes: list[Any] = dataclasses.field(default_factory=list)
    COUNT: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.sizes.append(self.extra)

    @property
    def product(self) -> Any:
        return self.a * self.b


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    """A number with parts."""

    major: int
    minor: int = 0


class Mode(enum.Enum):
    """How to combine."""

    ADD = "add"
    MUL = "mul"

    def apply(self, a: Any, b: Any) -> Any:
        return a + b if self is Mode.ADD else a * b
