"""What an error of an operation or of the program itself shows: the user's file and line, the line
with a caret under what failed, and the types involved (`error_cases`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import IndexRangeError, ShapeError
from tests.language.error_cases import Cases, X, failure, marked_line, user_entries

cases = Cases()
case = cases.add


# Operations that do not accept their operands.


@case(ShapeError, "(x + 1) @ x", "matmul", "float32[2, 3], float32[2, 3]", "transpose the second argument")
def product_of_wrong_sizes(x: Any) -> Any:
    y = x * 2
    return y + (x + 1) @ x  # here


@case(ShapeError, "x.reshape(4)", "reshape", "float32[2, 3]", "6 elements")
def in_the_second_line_of_an_expression(x: Any) -> Any:
    y = x + (x * 2 + x.reshape(4))  # here
    return y


@case(ShapeError, "reshape(5)", "reshape", "float32[6]")
def in_a_chain_of_methods(x: Any) -> Any:
    return (
        x.reshape(6)
        .reshape(5)  # here
        .sum()
    )


@case(ShapeError, "x + y", "float32[2, 3]", "float32[2, 2]", "broadcast")
def sum_of_wrong_shapes(x: Any) -> Any:
    y = x[:, :2]
    return x * (x + y)  # here


@case(ShapeError, "x < y", "float32[2, 3]", "float32[2, 2]")
def comparison_of_wrong_shapes(x: Any) -> Any:
    y = x[:, :2]
    return (x < y).any()  # here


@case(ShapeError, "x *= y", "float32[2, 3]", "float32[2, 2]", "broadcast")
def augmented_assignment(x: Any) -> Any:
    y = x[:, 1:]
    x *= y  # here
    return x


@case(ShapeError, "ops.concat", "concat", "float32[2, 3], float32[6]")
def concatenation(x: Any) -> Any:
    return ops.concat((x, x.reshape(-1)))  # here


@case(TypeError, "x.astype(ms.int32) << 1.5", "shift_left", "float32")
def operator_of_a_wrong_type(x: Any) -> Any:
    return x.astype(ms.int32) << 1.5  # here


@case(TypeError, "x & x", "float32[2, 3]")
def bits_of_a_wrong_type(x: Any) -> Any:
    return 1 + (x & x)  # here


@case(IndexRangeError, "x[5]", "index 5 is out of range for axis 0 of size 2")
def index_out_of_range(x: Any) -> Any:
    return x[1], x[5]  # here


@case(IndexError, 'x["a"]', "not str")
def index_of_a_wrong_kind(x: Any) -> Any:
    return 2 * x["a"]  # here


@case(AttributeError, "x.nothing", "nothing")
def attribute_of_a_tensor(x: Any) -> Any:
    return x.sum() + x.nothing  # here


@case(ValueError, "a, b, c", "expected 3, got 2")
def unpacking(x: Any) -> Any:
    a, b, c = x  # here
    return a


@case(ShapeError, "x.sum(5)", "axis 5 is out of range", "use a value in [-2, 2)")
def axis_out_of_range(x: Any) -> Any:
    return 1 / x.sum(5)  # here


@case(ShapeError, "ops.stack", "(2, 3) and (3, 2)", "all must be the same")
def in_a_keyword_of_several_lines(x: Any) -> Any:
    return ops.relu(
        ops.stack((x, x.T))  # here
    )


class Inner(nn.Cell):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.w = ms.Parameter(np.ones((columns, 4), np.float32), name="w")

    def construct(self, x: Any) -> Any:
        return ops.relu(1 + ops.matmul(x, self.w))  # here


class Layer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(5, 2)

    def construct(self, x: Any) -> Any:
        return 1 + self.dense(x)  # here


case(ValueError, "self.dense(x)", "(2, 3)", "5")(Layer())
case(ShapeError, "ops.matmul", "float32[2, 3], float32[2, 4]")(Inner(2))


# Errors of the program itself.


class Refused(Exception):
    pass


@case(KeyError, 'd["k"]', "'k'")
def key_error(x: Any) -> Any:
    d: dict[str, Any] = {}
    return x + d["k"]  # here


@case(Refused, "raise", "no, (2, 3)")
def own_exception(x: Any) -> Any:
    raise Refused(f"no, {x.shape}")  # here


@case(ZeroDivisionError, "x.ndim // n", "zero")
def division_by_zero(x: Any) -> Any:
    n = x.ndim - 2
    return x + x.ndim // n  # here


@case(NameError, "unknown_name", "unknown_name")
def unknown_name_is_used(x: Any) -> Any:
    return x * unknown_name  # noqa: F821 # here


@case(UnboundLocalError, "later", "later")
def local_before_its_assignment(x: Any) -> Any:
    y = x + later  # here  # noqa: F821
    later = y
    return later


@case(TypeError, "helper(x, 1, 2)", "helper", "3")
def wrong_number_of_arguments(x: Any) -> Any:
    def helper(a: Any) -> Any:
        return a

    return 1 + helper(x, 1, 2)  # here


@case(TypeError, "helper(x, c=1)", "unexpected keyword argument 'c'")
def wrong_keyword(x: Any) -> Any:
    def helper(a: Any, b: Any = None) -> Any:
        return a

    return 1 + helper(x, c=1)  # here


@case(IndexError, "sizes[7]", "list index out of range")
def index_of_a_list(x: Any) -> Any:
    sizes = [1, 2]
    return x * sizes[7]  # here


@case(AssertionError, "assert", "three axes")
def assertion(x: Any) -> Any:
    assert x.ndim == 3, "three axes"  # here
    return x


@case(KeyError, "names[k]", "'b'")
def in_a_comprehension(x: Any) -> Any:
    names = {"a": 1}
    return x * sum([names[k] for k in ("a", "b")])  # here


@case(ShapeError, "v @ v.T @ v.T", "matmul")
def in_a_lambda(x: Any) -> Any:
    twice = lambda v: v @ v.T @ v.T + 0  # here
    return twice(x)


@case(ValueError, 'int("3" + s)', "invalid literal")
def in_the_body_of_a_with_statement(x: Any) -> Any:
    with nothing() as s:
        n = 1 + int("3" + s)  # here
    return x + n


@contextmanager
def nothing() -> Any:
    yield "x"


@case(ShapeError, "x.reshape(7)", "reshape")
def before_a_finally(x: Any) -> Any:
    done = []
    try:
        y = 1 + x.reshape(7)  # here
    finally:
        done.append(x * 2)
    return y, done


@case(KeyError, 'd["missing"]', "missing")
def raised_again(x: Any) -> Any:
    d: dict[str, Any] = {}
    try:
        y = x + d["missing"]  # here
    except KeyError:
        x = x * 2
        raise
    return y


@case(Refused, "raise Refused", "wrong", "ZeroDivisionError", "direct cause")
def raised_from_another(x: Any) -> Any:
    try:
        return x / (x.ndim // 0)
    except ZeroDivisionError as error:
        raise Refused("wrong") from error  # here


def test_the_error_behind_another_shows_the_user_s_line() -> None:
    error = failure(raised_from_another, (X,))
    cause = error.__cause__
    assert type(cause) is ZeroDivisionError
    line = marked_line(raised_from_another, "return x / (x.ndim // 0)")[0]
    assert user_entries(cause)[-1].lineno == line


test_cases = cases.test()
test_positions_are_those_of_python = cases.test_positions()
