"""From a Python function to a loop program.

The function's source is interpreted over symbols. Loops' variables and sizes are dimensions, reads
of arrays are formulas; all else is ordinary Python: numbers, shapes, element types, functions. What
is known when the operator is compiled is computed at once, so that a condition on it chooses, and a
loop over a list is written out.

A name that holds one number all the time is another name for its formula. One that is set again in
a loop or under a condition, or that reads what the program writes, is an array of no axes.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Optional, Union

import numpy as np

from mycel.base import dtype as D
from mycel.base.dtype import DType, promote
from mycel.base.errors import Unsupported
from mycel.ir.dims import Dim, DimLike
from mycel.loops import formulas as F
from mycel.loops.formulas import Formula
from mycel.loops.programs import Array, For, If, Program, Set, Statement, Where, index_of, size_of
from mycel.te import words
from mycel.te.words import Made, Range, element_function

__all__ = ["Reference", "trace"]

Number = Union[bool, int, float, Dim, Formula]
_ROUNDS = 8


class Reference:
    """An array of the program as the function sees it: it has a shape and a type, and elements."""

    def __init__(self, tracer: _Tracer, array: Array) -> None:
        self._tracer, self.array = tracer, array

    @property
    def shape(self) -> tuple[DimLike, ...]:
        return self.array.shape

    @property
    def dtype(self) -> DType:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return len(self.array.shape)

    def __len__(self) -> Any:
        return self.array.shape[0]


@dataclass
class _Frame:
    """A loop, or the function's own body, while it is traced."""

    body: list[Statement] = field(default_factory=list)
    private: list[Array] = field(default_factory=list)


class _Wrong(Exception):
    """What is wrong in the source, with its line."""


_BINARY: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_div", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.LShift: ("shift_left", operator.lshift),
    ast.RShift: ("shift_right", operator.rshift),
}
_COMPARE: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
}
_MODES = {ast.Add: "add", ast.Sub: "add", ast.Mult: "mul"}
