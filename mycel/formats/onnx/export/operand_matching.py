"""Helpers of pattern matching for export: numbers, operands in any order, channels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel.formats.onnx.export.writer import Match

__all__ = ["Users", "channels_of", "inverse_root", "is_number", "number_of", "one_node", "pairs", "scaled_by"]

Users = Mapping[Node, list[Node]]


def one_node(operator: str, *inputs: Node, **attributes: Any) -> Match:
    """Return the match of one ONNX node."""
    return Match(inputs, lambda w, names: w.emit(operator, names, **attributes))


def number_of(node: Node) -> float | None:
    """Return the number in a constant of one element; None for any other node."""
    if not node.is_constant or node.dtype.kind not in "fiu":
        return None
    value = np.asarray(node.value)
    return float(value.reshape(-1)[0]) if value.size == 1 else None


def is_number(node: Node, number: float) -> bool:
    found = number_of(node)
    return found is not None and math.isclose(found, number, rel_tol=1e-3 if number not in (0, 1) else 0, abs_tol=0)


def pairs(node: Node, primitive: Primitive) -> Iterator[tuple[Node, Node]]:
    """Yield the operands of a node of two operands, if it is of a primitive, in both orders."""
    if node.prim is primitive and len(node.inputs) == 2:
        a, b = node.inputs
        yield a, b
        yield b, a


def scaled_by(node: Node) -> tuple[Node, float] | None:
    """Return x and c of ``x * c``."""
    for x, c in pairs(node, E.mul):
        number = number_of(c)
        if number is not None and x.shape == node.shape:
            return x, number
    return None


def channels_of(node: Node, like: Node) -> Node | None:
    """Return the vector of channels that a node is, shaped to meet an image (N, C, ...)."""
    rank = len(like.shape)
    if rank < 2:
        return None
    channels = like.shape[1]
    if len(node.shape) == 1 and rank == 2:
        return node if node.shape[0] == channels else None
    if node.prim is not S.RESHAPE:
        return None
    vector = node.inputs[0]
    forms = ((channels, *[1] * (rank - 2)), (1, channels, *[1] * (rank - 2)))
    fits = len(vector.shape) == 1 and tuple(node.shape) in forms and vector.shape[0] == channels
    return vector if fits else None


def inverse_root(node: Node) -> tuple[Node, float] | None:
    """Return v and c of ``1 / sqrt(v + c)``."""
    if node.prim is not E.rsqrt:
        return None
    for value, number in pairs(node.inputs[0], E.add):
        epsilon = number_of(number)
        if epsilon is not None and epsilon >= 0:
            return value, epsilon
    return None
