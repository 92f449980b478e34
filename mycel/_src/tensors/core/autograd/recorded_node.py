"""The node class of the tape, what a tape says of nodes, and parameters that nodes share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeGuard

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import GET_ITEM, Primitive
from mycel._src.engines import nonfinite
from mycel._src.foundation.settings import config
from mycel._src.tensors.core.execution_context import Differentiating

__all__ = ["BRIDGE", "CONSTANT", "LEAF", "MARK", "NO_PARAMETERS", "Recorded", "Tape", "item_at"]

_settings = config._context
LEAF = {"name": "leaf"}
# Of the leaves, where hooks on saved values tell them from marked tensors: see `saved_tensors`.
CONSTANT = {"name": "constant"}
BRIDGE: dict[str, Any] = {}  # of a node that has the value of one without
NO_PARAMETERS: dict[str, Any] = {}
MARK: dict[str, Any] = {}
_ITEMS: list[dict[str, int]] = []


def item_at(index: int) -> dict[str, int]:
    """Return the parameters of a `get_item`, which nodes share."""
    while index >= len(_ITEMS):
        _ITEMS.append({"index": len(_ITEMS)})
    return _ITEMS[index]


class Recorded(Node):
    """A node on the recording `tape`, with the value that it computed if a derivative may use it.

    `prim` is the primitive (None for a leaf), `inputs` are its nodes and `params` its parameters.
    `type` and `buffer` are those of the result; a node of several results has tuples of both. The
    buffer is None where nothing was recorded so far whose derivative uses the value (`SAVED`).
    `serial` counts the nodes of the recording, and `place` is that in the order of a derivative.
    """

    __slots__ = ("buffer", "tape", "serial", "place")

    def __init__(
        self, prim: Primitive | None, inputs: tuple[Node, ...], params: Any, type: Any, buffer: Any, tape: Any
    ) -> None:
        self.prim = prim
        self.inputs = inputs
        self.params = params
        self.type = type
        self.where = None if _settings["check_nan"] is False else nonfinite.place_now()
        self.buffer = buffer
        self.tape = tape
        self.serial = tape.count = tape.count + 1
        if tape.region is not None:
            tape.region.append(self)

    def items(self) -> tuple[Recorded, ...]:
        """Return a node for each value of a node of several values."""
        buffers = self.buffer or (None,) * len(self.type)
        pairs = enumerate(zip(self.type, buffers))
        return tuple([Recorded(GET_ITEM, (self,), item_at(i), t, b, self.tape) for i, (t, b) in pairs])


class Tape(Differentiating):
    """What takes derivatives of a recording, whose nodes have values."""

    @abstractmethod
    def holds(self, node: object) -> TypeGuard[Recorded]:
        """Return whether a node has its value on this recording."""
