"""`mindspore.ops.operations`: the operations on the overflow register of Ascend devices, which a
CPU does not have.
"""

from __future__ import annotations

from typing import Any

from mycel.base.errors import Unsupported
from mycel.ops.operations.primitive import Primitive

__all__ = ["NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUGetFloatStatus"]


class _Register(Primitive):
    """An operation that can be created anywhere but runs only on Ascend devices: a call raises
    Unsupported.
    """

    def __init__(self) -> None:
        super().__init__(type(self).__name__)

    def __call__(self, *args: Any) -> Any:
        raise Unsupported(
            f"{type(self).__name__} reads a register of Ascend devices; look for overflow in values with ops.isfinite "
            "or ops.FloatStatus"
        )


class NPUAllocFloatStatus(_Register):
    """The operation that allocates the state of the register."""


class NPUClearFloatStatus(_Register):
    """The operation that clears the register."""


class NPUGetFloatStatus(_Register):
    """The operation that reads the register."""
