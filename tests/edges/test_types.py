"""The element types of results, against tables that were read off MindSpore 2.10 on a CPU
(types.json).

A row of the tables is a left operand, a letter a right one (see `letters`), `.` a combination that
MindSpore refuses; behind the bars stand Python numbers on the right and on the left. What we
compute and MindSpore does not, no table speaks of. Where we differ on purpose it is said here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, ops
from tests.edges.support import tensors_of

RECORDED = json.loads((Path(__file__).parent / "types.json").read_text(encoding="utf-8"))
LETTERS: dict[str, str] = RECORDED["letters"]
TYPES = list(LETTERS.values())
NUMBERS = [True, 2, 1.5, 1j]
YES = Tensor([True, False])[:0]
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda a, b: ops.where(YES, a, b),
    "mint_where": lambda a, b: mint.where(YES, a, b),
    "squared_difference": ops.SquaredDifference(),
    "concat": lambda a, b: ops.concat((a, b)),
    "stack": lambda a, b: ops.stack((a, b)),
    "op_add": lambda a, b: a + b,
    "op_sub": lambda a, b: a - b,
    "op_mul": lambda a, b: a * b,
    "op_div": lambda a, b: a / b,
    "op_floordiv": lambda a, b: a // b,
    "op_mod": lambda a, b: a % b,
    "op_pow": lambda a, b: a**b,
    "op_lt": lambda a, b: a < b,
    "op_eq": lambda a, b: a == b,
    "op_and": lambda a, b: a & b,
}
# Differences of booleans are numbers here, and complex numbers have no quotient rounded down, nor a
# remainder. MindSpore gives xlogy of a number and a 16-bit float in float32, which no other
# function of two operands does.
BOOLEANS_COUNT = {"floor_divide", "op_floordiv", "remainder", "op_sub", "mint_sub"}
REFUSING = {"fmod": "bool_", "floor_divide": "complex", "op_floordiv": "complex", "remainder": "complex"}
ROWS = [(name, table["rows"]) for table in RECORDED["binary"] for name in table["functions"].split()]


def function_of(name: str) -> Callable[[Any, Any], Any]:
    found: Callable[[Any, Any], Any] = (
        BINARY.get(name) or getattr(mint, name.removeprefix("mint_"))
        if name.startswith("mint_")
        else BINARY.get(name) or getattr(ops, name)
    )
    return found


def empty(dtype: str, *shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32)).astype(getattr(ms, dtype))


@pytest.mark.parametrize(("name", "rows"), ROWS, ids=[name for name, _ in ROWS])
def test_types_of_two_operands(name: str, rows: list[str]) -> None:
    function, wrong = function_of(name), []
    for left, row in zip(TYPES, rows):
        tensors, right_numbers, left_numbers = row.split("|")
        pairs = [(empty(left, 0), empty(right, 0), letter, right) for right, letter in zip(TYPES, tensors)]
        pairs += [
            (empty(left, 0), n, letter, "bool_" if n is True else "") for n, letter in zip(NUMBERS, right_numbers)
        ]
        pairs += [(n, empty(left, 0), letter, "bool_" if n is True else "") for n, letter in zip(NUMBERS, left_numbers)]
        for a, b, letter, right in pairs:
            if letter == ".":
                continue
            want = getattr(ms, LETTERS[letter])
            if name in BOOLEANS_COUNT and left == right == "bool_":
                want = ms.int32
            if (
                name == "xlogy"
                and left in ("float16", "bfloat16")
                and not (isinstance(a, Tensor) and isinstance(b, Tensor))
            ):
                want = getattr(ms, left)
            if name in REFUSING and want.name.lower().startswith(REFUSING[name].rstrip("_")):
                with pytest.raises(TypeError, match="bool|complex"):
                    function(a, b)
                continue
            got = function(a, b).dtype
            if got is not want:
                wrong.append((getattr(a, "dtype", a), getattr(b, "dtype", b), got, want))
    assert not wrong


# Ours, where MindSpore's are accidents of its kernels: totals of unsigned integers and nansum,
# which wrap there; functions of real numbers, which are rounded to integers there; absolute values,
# which keep complex types; `numpy`'s roundings, which are always float32, and float16 for small
# integers; `any` of uint8.
OURS = set(
    "ops.sum ops.prod ops.nansum mint.sum mint.prod mint.nansum Tensor.sum Tensor.prod Tensor.nansum numpy.sum "
    "numpy.nansum numpy.nanmean numpy.norm "
    "ops.any mint.any Tensor.any ops.frac Tensor.frac ops.hardswish ops.hardsigmoid ops.selu ops.leaky_relu "
    "ops.logsigmoid ops.exp2 numpy.exp2 "
    "numpy.reciprocal numpy.sin numpy.cos numpy.tan numpy.sinh numpy.cosh numpy.tanh numpy.ceil numpy.trunc numpy.sign "
    "numpy.argmin "
    "ops.det Tensor.det ops.cholesky Tensor.cholesky".split()
)
UNARY = [(name, entry["results"].split()) for entry in RECORDED["unary"] for name in entry["functions"].split()]


@pytest.mark.parametrize(("name", "results"), UNARY, ids=[name for name, _ in UNARY])
def test_types_of_one_operand(name: str, results: list[str]) -> None:
    path, _, argument = name.partition(":")
    owner, function = path.split(".")
    arguments = {"": (), "(0,)": ((0,),), "(2,)": ((2,),)}.get(argument) or (
        (int(argument),) if argument.lstrip("-").isdigit() else ()
    )
    wrong = []
    for dtype, letters in zip(TYPES, results):
        if letters == ".":
            continue
        x = Tensor(np.eye(2, dtype=np.float32)).astype(getattr(ms, dtype))
        real = dtype.startswith("float") or dtype == "int32"
        if path in OURS and not real:
            continue
        if path in OURS and path.split(".")[1] in (
            "nansum",
            "det",
            "cholesky",
            "frac",
            "hardswish",
            "hardsigmoid",
            "selu",
            "leaky_relu",
            "norm",
            "nanmean",
        ):
            if dtype in ("int32", "float16"):
                continue
        if path in ("numpy.reciprocal", "numpy.exp2", "numpy.ceil", "numpy.trunc", "numpy.sign", "numpy.argmin"):
            continue
        if path.endswith((".abs", ".norm")) and dtype.startswith("complex"):
            continue
        given = (
            getattr(x, function)
            if owner == "Tensor"
            else getattr({"ops": ops, "mint": mint, "numpy": ms.numpy}[owner], function)
        )
        result = (given(*arguments) if callable(given) else given) if owner == "Tensor" else given(x, *arguments)
        for got, letter in zip(tensors_of(result), letters):
            if letter != "*" and got.dtype is not getattr(ms, LETTERS[letter]):
                wrong.append((dtype, got.dtype, LETTERS[letter]))
    assert not wrong
