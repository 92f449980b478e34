"""Opset conversion: older versions of ONNX operators, brought into the newest form.

`_CHANGES` has for each operator the versions in which its form changed, with a function that
changes the inputs and attributes of a node from before. So rules know one form only. `NEWEST` is
the newest version of the standard operators that is known; later ones may mean other things and
are refused, as are versions before `OLDEST`, whose operands broadcast by another rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel.formats.onnx.operation import Operation

__all__ = ["NEWEST", "OLDEST", "modernized"]

OLDEST, NEWEST = 7, 28
# Operators that were the same before the oldest version, and may be met alone.
_TIMELESS = ("Not",)
Constants = dict[str, np.ndarray[Any, Any]]
Change = Callable[[Operation, Constants], None]


def modernized(op: Operation, constants: Constants) -> Operation:
    """Change a node in place into the form of the newest version of its operator, and return it.

    What was an attribute and became an input is a new entry of `constants`.
    """
    if not op.domain:
        for version, change in _CHANGES.get(op.operator, ()):
            if op.version < version:
                change(op, constants)
    return op


def _input(name: str, position: int, kind: Any = np.int64, single: bool = False) -> Change:
    """Return the change of an attribute to an input."""

    def change(op: Operation, constants: Constants) -> None:
        if name not in op.attributes:
            return
        value = op.attributes.pop(name)
        key = f"{op.outputs[0]}/{name}"
        constants[key] = np.array(value, kind) if not isinstance(value, list) or value else np.zeros(0, kind)
        while len(op.inputs) <= position:
            op.inputs.append("")
        op.inputs[position] = key

    return change


def _limits(op: Operation, constants: Constants) -> None:
    for position, (name, without) in enumerate((("min", -3.4028234663852886e38), ("max", 3.4028234663852886e38)), 1):
        op.attributes.setdefault(name, without)
        _input(name, position, np.float32)(op, constants)


def _default(name: str, value: Any) -> Change:
    """Return the change of an attribute's default."""

    def change(op: Operation, constants: Constants) -> None:
        op.attributes.setdefault(name, value)

    return change


def _flag(name: str) -> Change:
    """Return the change that marks a node as one of an older meaning."""
    return _default(name, 1)


def _pad(op: Operation, constants: Constants) -> None:
    op.attributes.setdefault("value", 0.0)
    _input("pads", 1)(op, constants)
    value = op.attributes["value"]
    if value:
        _input("value", 2, np.float32)(op, constants)


def _upsample(op: Operation, constants: Constants) -> None:
    _input("scales", 1, np.float32)(op, constants)


def _resize(op: Operation, constants: Constants) -> None:
    op.inputs[1:1] = [""]
    op.attributes.setdefault("coordinate_transformation_mode", "asymmetric")
    op.attributes.setdefault("nearest_mode", "floor")


def _scan(op: Operation, constants: Constants) -> None:
    if op.inputs and op.inputs[0]:
        raise op.refused("sequence_lens of version 8 is not supported; use version 9 or later")
    op.inputs = op.inputs[1:]
    op.attributes["batched"] = 1
    directions = op.attributes.pop("directions", None)
    if directions is not None:
        op.attributes["scan_input_directions"] = directions


def _dropout(op: Operation, constants: Constants) -> None:
    op.attributes.pop("ratio", None)
    op.attributes["inference"] = 1


def _split(op: Operation, constants: Constants) -> None:
    _input("split", 1)(op, constants)


_reduced = ((18, _input("axes", 1)),)
_CHANGES: dict[str, tuple[tuple[int, Change], ...]] = {
    "Clip": ((11, _limits),),
    "Dropout": ((12, _dropout),),
    "Hardmax": ((13, _default("axis", 1)), (13, _flag("flattened"))),
    "LogSoftmax": ((13, _default("axis", 1)), (13, _flag("flattened"))),
    "OneHot": (),
    "Pad": ((11, _pad),),
    "ReduceL1": _reduced,
    "ReduceL2": _reduced,
    "ReduceLogSum": _reduced,
    "ReduceLogSumExp": _reduced,
    "ReduceMax": _reduced,
    "ReduceMean": _reduced,
    "ReduceMin": _reduced,
    "ReduceProd": _reduced,
    "ReduceSum": ((13, _input("axes", 1)),),
    "ReduceSumSquare": _reduced,
    "Resize": ((11, _resize),),
    "Scan": ((9, _scan),),
    "Slice": ((10, _input("starts", 1)), (10, _input("ends", 2)), (10, _input("axes", 3))),
    "Softmax": ((13, _default("axis", 1)), (13, _flag("flattened"))),
    "Split": ((13, _split),),
    "Squeeze": ((13, _input("axes", 1)),),
    "GroupNormalization": ((21, _flag("by_group")),),
    "TopK": ((10, _input("k", 1)),),
    "Unsqueeze": ((13, _input("axes", 1)),),
    "Upsample": ((9, _upsample),),
}


def check_version(operator: str, version: int) -> bool:
    """Return whether an operator of the standard domain in a version is known."""
    return OLDEST <= version <= NEWEST or (operator in _TIMELESS and 1 <= version)
