"""Named parallelism plans (data, ZeRO, Megatron), as layouts of a graph's inputs.

Everything else follows from these by search.

Inputs that outputs replace are parameters and states: parameters if a product, a convolution or
another costly node uses them, states otherwise. The other inputs are data, and their first axis is
the batch.

* "whole": every device does everything.
* "data": the batch is divided along all mesh axes.
* "zero1": likewise, and states are divided along all mesh axes by their first axis that is long
  enough.
* "zero2": likewise, and so is what a new parameter is computed with, from its gradient on.
* "zero3": states and parameters are divided so.
* "megatron": the batch is divided along all mesh axes but the last, and matrices along the last
  one, by their first and their second axis in turn (Shoeybi et al., 2019).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mycel._src.compiler.ir.graph import Node, users_of
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import Cost
from mycel._src.compiler.transforms.partition import Sharding, sharding
from mycel._src.planner.sharding_problem import Posed

__all__ = ["starts_of"]


NAMES = ("whole", "data", "zero1", "zero2", "zero3", "megatron")


def starts_of(posed: Posed, aliases: Mapping[int, int]) -> dict[str, dict[int, int]]:
    """Return the named plans: for inputs and some nodes, by number, the number of its alternative.

    `aliases` maps outputs to the inputs whose place they take.
    """
    names = posed.mesh.names
    replaced = set(aliases.values())
    weights = _weights(posed, replaced)
    inputs = range(len(posed.graph.inputs))
    found: dict[str, dict[int, int]] = {k: {} for k in NAMES}
    turn = 0
    for k in inputs:
        if len(posed.alternatives[k]) == 1:
            continue
        for one in found.values():
            one[k] = 0
        if k not in replaced:
            for name in ("data", "zero1", "zero2", "zero3"):
                found[name][k] = _number(posed, k, names, (0,))
            found["megatron"][k] = _number(posed, k, names[:-1], (0,))
            continue
        axes = range(posed.graph.inputs[k].type.rank)
        found["zero3"][k] = _number(posed, k, names, axes)
        if k not in weights:
            found["zero1"][k] = found["zero2"][k] = found["zero3"][k]
            del found["megatron"][k]
        elif len(axes) == 2:
            found["megatron"][k] = _number(posed, k, names[-1:], (turn,))
            turn = 1 - turn
        else:
            del found["megatron"][k]
    found["zero2"].update(_updates(posed, aliases, found["zero3"]))
    return found


def _updates(posed: Posed, aliases: Mapping[int, int], divided: Mapping[int, int]) -> dict[int, int]:
    """Return the nodes by which inputs are replaced, in the layouts of the inputs in `divided`.

    They are the element-wise nodes of an input's shape, from its gradient to the output.
    """
    number = {n: k for k, n in enumerate(posed.nodes)}
    found: dict[int, int] = {}
    for output, k in aliases.items():
        if not divided.get(k):
            continue
        layout, shape = posed.alternatives[k][divided[k]], posed.graph.inputs[k].type.shape
        waiting = [posed.graph.outputs[output]]
        while waiting:
            node = waiting.pop()
            if node.prim is None or not node.prim.elementwise or number[node] in found:
                continue
            if isinstance(node.type, TensorType) and node.type.shape == shape:
                for a, given in enumerate(posed.given[number[node]]):
                    if given[0] == layout:
                        found[number[node]] = a
                        waiting += node.inputs
                        break
    return found


def _weights(posed: Posed, replaced: Collection[int]) -> set[int]:
    """Return the inputs that costly nodes use, as they are or through views."""
    users = users_of(posed.graph)

    def used(node: Node) -> bool:
        for user in users.get(node, ()):
            assert user.prim is not None
            if user.prim.view:
                if used(user):
                    return True
            elif user.prim.cost is Cost.HEAVY and not user.prim.elementwise:
                return True
        return False

    return {k for k in replaced if used(posed.graph.inputs[k])}


def _number(posed: Posed, k: int, names: Sequence[str], axes: Sequence[int]) -> int:
    """Return the alternative in which the first axis that can is divided along `names`."""
    alternatives: Mapping[Sharding, int] = {s: n for n, s in enumerate(posed.alternatives[k])}
    type = posed.graph.inputs[k].type
    for axis in axes if isinstance(type, TensorType) and names else ():
        if axis < type.rank:
            spec: list[Sequence[str] | None] = [None] * type.rank
            spec[axis] = tuple(names)
            found = alternatives.get(sharding(posed.mesh, type.shape, spec))
            if found is not None:
                return found
    return 0
