"""Errors on the way: calls that do not fit, tracebacks, derivatives, passes and running, and
tensors in messages.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive
from mycel._src.foundation.errors import CompileError, ShapeError
from mycel._src.tensors.core import eager
from tests.language.error_cases import X, caret_column, check_place, failure, marked_line, shown, user_entries


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


class Refused(Exception):
    pass


# Calls.


def test_the_calls_of_a_refusal_are_shown_innermost_last() -> None:
    """A product in a Cell, called by a Cell in a loop, in a branch."""
    error = failure(Outer(), (X,))
    assert type(error) is CompileError
    outer, line = marked_line(Outer.construct, "# outer")
    inner, _ = marked_line(Inner.construct)
    text = str(error)
    assert text.index(f"{__file__}:{outer}, in construct") < text.index(f"{__file__}:{inner}, in construct")
    check_place(__file__, error, *marked_line(Inner.construct), "ops.matmul", True)
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
    (only, (1, 2), {}),
    (only, (), {}),
    (none, (1,), {}),
    (optional, (1, 2, 3, 4), {}),
    (optional, (), {}),
    (optional, (1,), {"a": 2}),
    (optional, (1,), {"z": 2}),
    (keyword_only, (1,), {}),
    (keyword_only, (1,), {"k": 1}),
    (keyword_only, (), {"k": 1, "m": 2}),
    (keyword_only, (1, 2), {"k": 1, "m": 2}),
    (keyword_only, (1, 2), {"k": 1}),
    (positional_only, (1,), {}),
    (positional_only, (), {"a": 1, "b": 2}),
    (three, (), {}),
    (three, (1,), {}),
    (three, (1, 2, 3, 4), {}),
    (three, (1, 2), {"d": 2}),
]


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


def test_the_traceback_is_that_of_the_program() -> None:
    """The user's functions one after another, as eagerly, with nothing of the library between or
    behind them.
    """
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
    """What the reference engine raises while a program runs names the operation, its operands and
    the line.
    """
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
