"""What is shown of what cannot be one graph: the user's line with a caret under what failed, and
what to write instead (`error_cases`).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from mycel import nn, ops
from mycel._src.foundation.errors import CompileError
from tests.language.error_cases import Cases, X

cases = Cases()
case = cases.add


# What cannot be one graph.


@case(CompileError, "y +", "'y' is set on only one side of the condition in line", "give it a value before the if")
def set_on_one_side(x: Any) -> Any:
    if x.sum() > 0:
        y = x
    return 2 * (y + 1)  # here


@case(CompileError, "y", "(2, 3)", "()", "must have one shape")
def shapes_that_do_not_join(x: Any) -> Any:
    if x.sum() > 0:
        y = x
    else:
        y = x.sum()
    return y  # here


@case(CompileError, "while", "'x' has shape (2, 3)", "(4, 3)", "shapes must stay", "final size")
def shape_that_grows_in_a_loop(x: Any) -> Any:
    while x.sum() < 100:  # here
        x = ops.concat((x, x))
    return x


@case(CompileError, "while", "'items' changes its form", "write into a tensor of the final size")
def list_that_grows_in_a_loop(x: Any) -> Any:
    items = [x]
    while x.sum() < 100:  # here
        x = x * 2
        items.append(x)
    return items


@case(CompileError, "while", "'word'", "'up'", "only tensors and numbers")
def text_that_changes_in_a_loop(x: Any) -> Any:
    word = ""
    while x.sum() < 100:  # here
        word, x = "up", x * 2
    return x, word


@case(CompileError, "x.sum().item()", "item()", "float32[]", "keep it a tensor")
def value_of_a_tensor(x: Any) -> Any:
    return x + 2 * x.sum().item()  # here


@case(CompileError, "float(v)", "float()", "float32[]", "astype")
def values_in_a_comprehension(x: Any) -> Any:
    return sum([float(v) for v in x.reshape(-1)])  # here


@case(CompileError, "x.sum() > 0", "an assertion depends on the value of a tensor", "move it outside")
def assertion_on_a_tensor(x: Any) -> Any:
    assert x.sum() > 0, "positive"  # here
    return x


@case(CompileError, "raise", "decided by a tensor", "check the condition outside")
def raise_where_a_tensor_decides(x: Any) -> Any:
    if x.sum() > 100:
        raise ValueError("too large")  # here
    return x


@case(CompileError, "random.random()", "random.random()", "functions of ops")
def function_that_changes_by_itself(x: Any) -> Any:
    return x * random.random()  # here


@case(CompileError, "globals()", "name what you need")
def namespace(x: Any) -> Any:
    return x * len(globals())  # here


@case(CompileError, "x}", "f-string", "float32[2, 3]")
def text_of_a_tensor(x: Any) -> Any:
    return x, f"it is {x}"  # here


@case(CompileError, "x.reshape(5)", "ShapeError in a branch that a tensor decides", "reshape(float32[2, 3])")
def operation_in_a_branch(x: Any) -> Any:
    if x.sum() > 0:
        x = x * 2
        y = 1 + x.reshape(5)  # here
    else:
        y = x.reshape(6)
    return y


@case(CompileError, "x @ x", "ShapeError in a loop that a tensor decides", "matmul(float32[2, 3], float32[2, 3])")
def operation_in_a_loop(x: Any) -> Any:
    while x.sum() < 10:
        x = x + 1
        x = x * (x @ x)  # here
    return x


@case(CompileError, "next(it)", "advanced", "take its items before the condition")
def iterator_in_a_branch(x: Any) -> Any:
    it = iter([1, 2])
    if x.sum() > 0:
        x = x + next(it)  # here
    return x


@case(CompileError, "return", "define it outside")
def function_as_a_result(x: Any) -> Any:
    def inner(a: Any) -> Any:
        return a + x

    y = x * 2
    return y, inner  # here


@case(CompileError, "items.append", "a list that was passed to it", "return the new value instead", args=(X, [1]))
def argument_that_is_changed(x: Any, items: Any) -> Any:
    items.append(2)  # here
    return x


@case(CompileError, "v.sum() > 1", "condition of a comprehension", "ops.where")
def condition_of_a_comprehension(x: Any) -> Any:
    return [v for v in x if v.sum() > 1]  # here


@case(CompileError, "x.sum() > 0", "returns a value or None is decided by a tensor", "return a value on every path")
def value_or_none(x: Any) -> Any:
    if x.sum() > 0:  # here
        return x


class Attribute(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.word = "a"

    def construct(self, x: Any) -> Any:
        if x.sum() > 0:  # here
            self.word = "b"
        return x


case(CompileError, "x.sum() > 0", "attribute 'word' of Attribute is 'b' (str)", "'a' (str)", "the same value")(
    Attribute()
)


@case(CompileError, "range(0, n, n)", "the step of range() must be a Python number", args=(X, np.array(3)))
def step_of_a_range(x: Any, n: Any) -> Any:
    for _ in range(0, n, n):  # here
        x = x + 1
    return x


@case(CompileError, "print(", "print() where a tensor decides", "return the values and call it outside")
def print_in_a_branch(x: Any) -> Any:
    if x.sum() > 0:
        print("yes")  # here
    return x


@case(CompileError, "3:", "a tensor cannot be matched with values", "use if")
def match_of_a_tensor(x: Any) -> Any:
    match x:
        case 3:  # here
            return x
        case _:
            return x + 1


@case(CompileError, "a", "(tuple)", "(list)", "tensors of one type", caret=False)
def containers_that_do_not_join(x: Any) -> Any:
    a: Any = (x, 1)
    if x.sum() > 0:
        a = [x]
    return a  # here


@case(CompileError, "open(", "do it outside")
def file_that_is_opened(x: Any) -> Any:
    with open("/nowhere") as f:  # here
        return x, f.read()


@case(CompileError, "return", "cannot return a list that contains itself", "return its parts", caret=False)
def result_that_contains_itself(x: Any) -> Any:
    items: list[Any] = [x]
    items.append(items)
    return items  # here


@case(CompileError, "np.sin(x)", "conversion to a NumPy array", "float32[2, 3]", "compute with tensors")
def library_of_numpy(x: Any) -> Any:
    return 1 + np.sin(x)  # here


@case(CompileError, "x.reshape(n, -1)", "use as an index", "int64[]", args=(X, np.array(3)))
def size_from_a_tensor(x: Any, n: Any) -> Any:
    return 2 * x.reshape(n, -1)  # here


@case(CompileError, "del", "'y' is deleted", caret=False)
def deletion_in_a_loop(x: Any) -> Any:
    y = x
    while x.sum() < 10:  # here
        x = x + y
        del y
    return x


test_cases = cases.test()
