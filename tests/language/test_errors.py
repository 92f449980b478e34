"""What an error shows: the user's file and line, the line itself with a caret under what failed, the types involved, and what to write instead.

A case is a function in which ``# here`` marks the line that is to be shown. `at` is the piece of that line under which the caret has to begin, `says` what else
has to be shown. Errors of operations and of the program keep the type that they have eagerly; what cannot be compiled is a CompileError.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.base.errors import CompileError, ShapeError
from mycel.core import eager
from mycel.prims import elementwise as E
from mycel.prims.base import Primitive

X = np.arange(6, dtype=np.float32).reshape(2, 3)
CASES: list[Any] = []


def case(error: type[BaseException], at: str, *says: str, args: Any = (X,), caret: bool = True) -> Callable[[Any], Any]:
    """Declare a program that fails; `caret=False` for errors whose line alone is shown."""

    def declare(fn: Any) -> Any:
        CASES.append(pytest.param(fn, args, error, at, says, caret, id=getattr(fn, "__name__", type(fn).__name__)))
        return fn

    return declare


def failure(fn: Any, args: Any) -> BaseException:
    """What compiling a function as one graph raises."""
    given = [ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(BaseException) as found:
        ms.jit(fn, fullgraph=True)(*given)
    return found.value


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def marked_line(fn: Any, mark: str = "# here") -> tuple[int, str]:
    source = type(fn) if isinstance(fn, nn.Cell) else fn
    lines, first = inspect.getsourcelines(source)
    number = next(i for i, text in enumerate(lines) if mark in text)
    return first + number, lines[number].rstrip("\n")


def caret_column(text: str, line: str) -> int:
    """The column of the source line over the first mark of the line of carets below it, where it is last shown."""
    rows = text.split("\n")
    positions = [i for i, row in enumerate(rows) if row.strip() == line.strip()]
    assert positions, text
    below = rows[positions[-1] + 1]
    assert re.fullmatch(r" *[~^]+ *", below), text
    shift = (len(line) - len(line.lstrip())) - (len(rows[positions[-1]]) - len(rows[positions[-1]].lstrip()))
    return len(below) - len(below.lstrip()) + shift


def check_place(error: BaseException, number: int, line: str, at: str, caret: bool) -> None:
    text = shown(error)
    places = (f"{__file__}:{number}", f'"{__file__}", line {number}')
    assert any(p in text for p in places), text
    assert line.strip() in text, text
    if caret and (sys.version_info >= (3, 11) or isinstance(error, CompileError)):
        assert caret_column(text, line) == line.index(at), text


@pytest.mark.parametrize("fn, args, kind, at, says, caret", CASES)
def test_cases(fn: Any, args: Any, kind: Any, at: str, says: tuple[str, ...], caret: bool) -> None:
    error = failure(fn, args)
    assert type(error) is kind, shown(error)
    check_place(error, *marked_line(fn), at, caret)
    for piece in says:
        assert piece in shown(error), shown(error)


# Operations that do not accept their operands.


@case(ShapeError, "(x + 1) @ x", "matmul", "float32[2, 3], float32[2, 3]", "transpose the second argument")
def product_of_wrong_sizes(x: Any) -> Any:
    y = x * 2
    return y + (x + 1) @ x  # here


@case(ShapeError, "x.reshape(4)", "reshape", "float32[2, 3]", "6 elements")
def in_the_second_line_of_an_expression(x: Any) -> Any:
    y = x + (x * 2 +
             x.reshape(4))  # here  # fmt: skip
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


@case(TypeError, "~x", "float32[2, 3]")
def unary_operator_of_a_wrong_type(x: Any) -> Any:
    return 1 + ~x  # here


@case(IndexError, "x[5]", "index 5 is out of range for axis 0 of size 2")
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


class Outer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner(2)

    def construct(self, x: Any) -> Any:
        i = ms.Tensor(0)
        while i < 3:
            if x.sum() > 0:
                x = x + self.inner(x)  # outer
            i = i + 1
        return x


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


# Calls.


def test_the_calls_of_a_refusal_are_shown_innermost_last() -> None:
    """A product in a Cell, called by a Cell in a loop, in a branch."""
    error = failure(Outer(), (X,))
    assert type(error) is CompileError
    outer, line = marked_line(Outer.construct, "# outer")
    inner, _ = marked_line(Inner.construct)
    text = str(error)
    assert text.index(f"{__file__}:{outer}, in construct") < text.index(f"{__file__}:{inner}, in construct")
    check_place(error, *marked_line(Inner.construct), "ops.matmul", True)
    assert caret_column(text.split(f":{inner},")[0].rstrip(), line) == line.index("self.inner(x)")
    for piece in ("ShapeError", "matmul(float32[2, 3], float32[2, 4])", "inner dimensions", "in a branch"):
        assert piece in text


def only(a: Any) -> Any:
    return a


def none() -> Any:
    return 1


def optional(a: Any, b: Any = 1, c: Any = 2) -> Any:
    return a


def keyword_only(a: Any, *, k: Any, m: Any) -> Any:
    return a


def positional_only(a: Any, b: Any, /) -> Any:
    return a


def three(a: Any, b: Any, c: Any) -> Any:
    return a


CALLS: list[Any] = [
    (only, (1, 2), {}), (only, (), {}), (none, (1,), {}), (optional, (1, 2, 3, 4), {}), (optional, (), {}), (optional, (1,), {"a": 2}),
    (optional, (1,), {"z": 2}), (keyword_only, (1,), {}), (keyword_only, (1,), {"k": 1}), (keyword_only, (), {"k": 1, "m": 2}),
    (keyword_only, (1, 2), {"k": 1, "m": 2}), (keyword_only, (1, 2), {"k": 1}), (positional_only, (1,), {}), (positional_only, (), {"a": 1, "b": 2}),
    (three, (), {}), (three, (1,), {}), (three, (1, 2, 3, 4), {}), (three, (1, 2), {"d": 2}),
]  # fmt: skip


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("fn, args, kwargs", CALLS)
def test_arguments_that_do_not_fit(fn: Any, args: Any, kwargs: Any, inner: bool) -> None:
    """In Python's words, whether the compiled function or one that it calls is called wrongly."""

    def outer() -> Any:
        return fn(*args, **kwargs)

    with pytest.raises(TypeError) as plain:
        outer()
    with pytest.raises(TypeError) as found:
        ms.jit(outer)() if inner else ms.jit(fn)(*args, **kwargs)
    assert str(found.value) == str(plain.value)
    assert len(user_entries(found.value)) == (2 if inner else 1)


def test_a_cell_that_is_called_wrongly_or_has_no_construct() -> None:
    class Empty(nn.Cell):
        pass

    class Two(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x + y

    for cell in (Empty(), Two()):
        with pytest.raises((AttributeError, TypeError)) as plain:
            cell(ms.Tensor(X))
        error = failure(cell, (X,))
        assert type(error) is plain.type and str(error) == str(plain.value)
        assert not any("frontend" in e.filename for e in traceback.extract_tb(error.__traceback__))


def test_an_error_after_a_break_shows_the_same_lines() -> None:
    def breaks(x: Any) -> Any:
        n = float(x.sum())
        return third(x * n)  # breaks

    with pytest.raises(ShapeError) as found:
        ms.jit(breaks)(ms.Tensor(X))
    entries = list(traceback.extract_tb(found.value.__traceback__))[-2:]
    assert [(e.name, e.lineno) for e in entries] == [
        ("breaks", marked_line(breaks, "# breaks")[0]),
        ("third", marked_line(third, "# third")[0]),
    ]


def third(x: Any) -> Any:
    return x.reshape(4) + 1  # third


def second(x: Any) -> Any:
    return 1 + third(x)  # second


def first(x: Any) -> Any:
    return second(x * 2) * 2  # first


def user_entries(error: BaseException) -> list[Any]:
    return [e for e in traceback.extract_tb(error.__traceback__) if e.filename == __file__]


def test_the_traceback_is_that_of_the_program() -> None:
    """The user's functions one after another, as eagerly, with nothing of the library between or behind them."""
    error = failure(first, (X,))
    with pytest.raises(ShapeError) as eagerly:
        first(ms.Tensor(X))
    assert str(error).split("\n")[0] == str(eagerly.value).split("\n")[0]
    compiled, plain = user_entries(error)[-3:], user_entries(eagerly.value)[-3:]
    assert [(e.name, e.lineno, e.line) for e in compiled] == [(e.name, e.lineno, e.line) for e in plain]
    everything = traceback.extract_tb(error.__traceback__)
    assert list(everything)[-3:] == compiled
    if sys.version_info >= (3, 11):
        assert [(e.colno, e.end_colno) for e in compiled] == [(e.colno, e.end_colno) for e in plain]


def test_frames_of_the_library_are_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_TRACEBACK", "full")
    last = traceback.extract_tb(failure(first, (X,)).__traceback__)[-1]
    assert last.filename.endswith("shape.py") and "mycel" in last.filename


def test_the_variables_are_in_the_frames() -> None:
    """A debugger after the fact shows the variables of each function."""
    error = failure(first, (X,))
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__)]
    assert frames[-1].f_code.co_name == "third"
    assert "Tensor(shape=[2, 3], dtype=Float32" in repr(frames[-1].f_locals["x"])


def test_errors_of_the_program_are_the_same_objects() -> None:
    mine = Refused("mine", 3)

    def fails(x: Any) -> Any:
        raise mine

    error = failure(fails, (X,))
    assert error is mine and error.args == ("mine", 3)


def test_a_handler_of_the_program_sees_the_error_that_it_would_see_eagerly() -> None:
    def caught(x: Any) -> Any:
        try:
            return x.reshape(4)
        except ValueError as error:
            return x, str(error).split("\n")[0]

    t = ms.Tensor(X)
    assert ms.jit(caught, fullgraph=True)(t)[1] == caught(t)[1]


def test_the_error_behind_another_shows_the_user_s_line() -> None:
    error = failure(raised_from_another, (X,))
    cause = error.__cause__
    assert type(cause) is ZeroDivisionError
    line = marked_line(raised_from_another, "return x / (x.ndim // 0)")[0]
    assert user_entries(cause)[-1].lineno == line


def test_deep_recursion_shows_its_ends() -> None:
    def endless(x: Any, n: int) -> Any:
        return endless(x, n + 1)

    text = str(failure(endless, (X, 0)))
    assert "calls nest more than" in text and "more calls ..." in text and len(text.split("\n")) < 70


def test_wide_characters_and_tabs_keep_the_caret_in_place() -> None:
    def wide(x: Any) -> Any:
        größe = {"名前": 1}
        return x + größe["名前"] + größe["名"]  # here

    error = failure(wide, (X,))
    assert type(error) is KeyError
    line = marked_line(wide)[1]
    if sys.version_info >= (3, 11):
        assert line.encode()[user_entries(error)[-1].colno :].decode().startswith('größe["名"]')

    def needs(x: Any) -> Any:
        größe = {"名前": x}
        return größe["名前"] + x.sum().item()  # here

    text, line = str(failure(needs, (X,))), marked_line(needs)[1]
    before = line[: line.index("x.sum()")].lstrip()
    assert f"\n    {' ' * (len(before) + 2)}^^^^" in text


def test_what_is_not_one_graph_is_logged_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(x: Any) -> Any:
        return x * float(x.sum())  # here

    with caplog.at_level("WARNING", logger="mycel"):
        assert ms.jit(breaks)(ms.Tensor(X)).asnumpy()[0, 1] == 15
    number, line = marked_line(breaks)
    assert f"{__file__}:{number}" in caplog.text and line.strip() in caplog.text
    assert caret_column(caplog.text, line) == line.index("float(")


# Derivatives, passes and running.


def test_an_operation_without_a_derivative() -> None:
    broken = Primitive("rough", lambda x: x, lambda x: x)

    def value(x: Any) -> Any:
        return eager.apply(broken, x).sum() + 1  # here

    error = failure(ms.grad(value), (X,))
    assert type(error) is NotImplementedError and "rough has no derivative" in str(error)
    number, line = marked_line(value)
    text = shown(error)
    assert "in the derivative of rough" in text and f"{__file__}:{number}" in text
    assert caret_column(text, line) == line.index("eager.apply")


def test_an_operation_that_cannot_be_lowered() -> None:
    def refuse(x: Any) -> Any:
        raise ValueError("no such kernel")

    broken = Primitive("unlowered", lambda x: x, None, expand=refuse)

    def value(x: Any) -> Any:
        return 1 + eager.apply(broken, x)  # here

    text = shown(failure(value, (X,)))
    number, line = marked_line(value)
    assert "no such kernel" in text and f"{__file__}:{number}" in text
    assert caret_column(text, line) == line.index("eager.apply")


def _fails(x: Any) -> Any:
    raise ArithmeticError("cannot compute this")


@pytest.mark.parametrize("compiled", [False, True])
def test_a_host_step_that_fails(compiled: bool) -> None:
    """What the reference engine raises while a program runs names the operation, its operands and the line."""
    step = Primitive("hosted", lambda x: x, _fails)

    def value(x: Any) -> Any:
        return 2 * eager.apply(step, x + 1)  # here

    run = ms.jit(value, fullgraph=True) if compiled else value
    with pytest.raises(ArithmeticError) as found:
        run(ms.Tensor(X))
    text = shown(found.value)
    assert "cannot compute this" in text and "hosted(float32[2, 3])" in text
    number, line = marked_line(value)
    assert f"{__file__}:{number}" in text or f'"{__file__}", line {number}' in text
    if compiled:
        assert caret_column(text, line) == line.index("eager.apply")


@pytest.mark.parametrize("compiled", [False, True])
def test_memory_that_runs_out(compiled: bool) -> None:
    def value(x: Any) -> Any:
        return 1 + ops.broadcast_to(x, (1 << 40, 2, 3))  # here

    run = ms.jit(value, fullgraph=True) if compiled else value
    with pytest.raises(MemoryError, match=r"needs more memory(.|\n)*float32\[1099511627776, 2, 3\], 24 TiB") as found:
        run(ms.Tensor(X))
    assert "smaller batches" in str(found.value)
    if compiled:
        number, line = marked_line(value)
        assert f"{__file__}:{number}" in str(found.value)


def test_integers_divided_by_zero_give_zero_everywhere() -> None:
    """No trap of the processor ends the process; a quotient by zero is 0 in every mode."""
    a, b = ms.Tensor(np.array([4, -5], np.int32)), ms.Tensor(np.array([0, 2], np.int32))
    for run in (lambda x, y: x // y, ms.jit(lambda x, y: x // y)):
        assert run(a, b).asnumpy().tolist() == [0, -3]


# Tensors in messages.


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Box({self.value})"


TEXTS: list[Any] = [
    lambda x: "%s" % (x + 1),
    lambda x: "{}, {!r}".format(x + 1, x),  # noqa: UP032
    lambda x: f"{[x + 1]}",
    lambda x: format(x + 1),
    lambda x: (x + 1).__repr__(),
    lambda x: str({"a": (x + 1, 2)}),
    lambda x: repr(Box(x * 2)),
    lambda x: f"{(x + 1).sum():.2f}",
    lambda x: ", ".join([str(v) for v in x.reshape(-1)]),
]


@pytest.mark.parametrize("fn", TEXTS)
def test_the_text_of_a_tensor_is_that_of_its_value(fn: Any) -> None:
    """However the program asks for it; it never becomes a part of the compiled code."""
    run = ms.jit(fn)
    for array in (X, X + 7):
        assert run(ms.Tensor(array)) == fn(ms.Tensor(array))
    assert type(failure(fn, (X,))) is CompileError


def test_the_text_of_a_tensor_without_a_value() -> None:
    """Messages and debuggers show its type."""
    made: list[Any] = []

    def value(x: Any) -> Any:
        made.append(x + 1)
        raise Refused(x * 2)

    error = failure(value, (X,))
    assert repr(error.args[0]) == str(error.args[0]) == "Tensor(shape=[2, 3], dtype=Float32, value=<staged>)"
    assert "value=<staged>" in shown(error)


def test_multiplication_in_the_present_position() -> None:
    """An error in plain eager code shows Python's own traceback."""
    with pytest.raises(ShapeError) as found:
        eager.apply(E.add, ms.Tensor(X), ms.Tensor(X[:, :2]))
    assert user_entries(found.value)[-1].name == "test_multiplication_in_the_present_position"


LIKE_PYTHON = [pytest.param(c.values[:3], id=c.id) for c in CASES if c.values[2] is not CompileError]


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="columns are recorded from 3.11 on, and comprehensions are frames before 3.12"
)
@pytest.mark.parametrize("program", LIKE_PYTHON)
def test_positions_are_those_of_python(program: Any) -> None:
    """Compiled and eagerly the same functions, lines and columns, to the end of the expression."""
    fn, args, kind = program
    with pytest.raises(kind) as eagerly:
        fn(*[ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in args])
    error = failure(fn, args)
    places = [
        [(e.name, e.lineno, e.end_lineno, e.colno, e.end_colno) for e in user_entries(found)]
        for found in (error, eagerly.value)
    ]
    inside = [p[next(i for i, e in enumerate(p) if e[0] not in _AROUND) :] for p in places]
    assert inside[0] == inside[1]


_AROUND = ("failure", "test_positions_are_those_of_python")
