"""Eager programs are plain Python to every tool: debuggers, tracers, profilers, inspection,
tracebacks; and one line switches to compiled code.
"""

from __future__ import annotations

import bdb
import cProfile
import inspect
import io
import logging
import pdb
import pstats
import sys
import trace
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import ShapeError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def line_of(fn: Any, mark: str) -> int:
    lines, first = inspect.getsourcelines(fn)
    return first + next(i for i, text in enumerate(lines) if mark in text)


class Scale(nn.Cell):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.w = ms.Parameter(np.full(3, factor, np.float32), name="w")

    def construct(self, x: Any) -> Any:
        y = x * self.w  # product
        z = y + 1  # sum
        return z


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = Scale(2.0)
        self.second = Scale(0.5)

    def construct(self, x: Any) -> Any:
        h = self.first(x)  # call
        if h.sum() > 0:
            h = self.second(h)  # branch
        return h


class Reshape(nn.Cell):
    def construct(self, x: Any, size: int) -> Any:
        doubled = x * 2
        return doubled.reshape(size)  # inner


class Broken(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Reshape()

    def construct(self, x: Any) -> Any:
        size = 5
        return self.inner(x + 1, size)  # outer


@pytest.fixture(autouse=True)
def no_breakpoints() -> Iterator[None]:
    """Debuggers share their breakpoints."""
    yield
    bdb.Breakpoint.clearBreakpoints()


def t() -> ms.Tensor:
    return ms.Tensor(X)


# Debuggers.


class Session(pdb.Pdb):
    """pdb with a script for a user."""

    def __init__(self, *commands: str, skip: Any = None) -> None:
        self.output = io.StringIO()
        super().__init__(
            stdin=io.StringIO("\n".join(commands) + "\n"), stdout=self.output, skip=skip, nosigint=True, readrc=False
        )
        self.use_rawinput = False
        self.prompt = ""

    @property
    def text(self) -> str:
        return self.output.getvalue()


def test_a_breakpoint_shows_values() -> None:
    def program(x: Any, session: Session) -> Any:
        y = x * 2
        session.set_trace()
        z = y + 1
        return z

    session = Session("p x.shape", "p y", "next", "next", "p float(z.sum())", "continue")
    result = program(t(), session)
    np.testing.assert_array_equal(result.asnumpy(), X * 2 + 1)
    assert "(2, 3)" in session.text
    assert "Tensor(shape=[2, 3], dtype=Float32, value=" in session.text and "8.00000000e+00" in session.text
    assert "36.0" in session.text


def test_a_debugger_changes_a_variable() -> None:
    def program(x: Any, session: Session) -> Any:
        scale = 1.0
        session.set_trace()
        return x * scale

    np.testing.assert_array_equal(program(t(), Session("scale = 3.0", "continue")).asnumpy(), X * 3)


def test_stepping_into_a_cell_reaches_its_construct() -> None:
    """With the library skipped, as debuggers call it "just my code", one step goes from the
    caller's line into the inner construct.
    """
    net, session = (
        Net(),
        Session("step", "step", "step", "p type(self).__name__, self.factor", "where", "continue", skip=["mycel.*"]),
    )
    session.set_break(__file__, line_of(Net.construct, "# call"))
    sys.settrace(None)
    session.runcall(net, t())
    assert "('Scale', 2.0)" in session.text
    assert "in construct" in session.text or "construct()" in session.text


class Recorder(bdb.Bdb):
    """Keeps the variables at a breakpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, Any]]] = []

    def user_line(self, frame: Any) -> None:
        if self.break_here(frame):
            self.seen.append((frame.f_code.co_name, dict(frame.f_locals)))
        self.set_continue()


def test_breakpoints_in_nested_cells() -> None:
    recorder = Recorder()
    assert recorder.set_break(__file__, line_of(Scale.construct, "# sum")) is None
    result = recorder.runcall(Net(), t())
    assert [name for name, _ in recorder.seen] == ["construct", "construct"]
    first, second = (found for _, found in recorder.seen)
    np.testing.assert_array_equal(first["y"].asnumpy(), X * 2)
    np.testing.assert_array_equal(second["x"].asnumpy(), X * 2 + 1)
    assert "z" not in first and second["self"].factor == 0.5
    np.testing.assert_array_equal(result.asnumpy(), (X * 2 + 1) * 0.5 + 1)


def test_a_conditional_breakpoint_in_a_loop() -> None:
    def program(x: Any) -> Any:
        for i in range(5):
            x = x + i  # loop
        return x

    recorder = Recorder()
    recorder.set_break(__file__, line_of(program, "# loop"), cond="float(x.sum()) > 30")
    recorder.runcall(program, t())
    # The sums before the rounds are 15, 15, 21, 33, 51.
    assert [found["i"] for _, found in recorder.seen] == [3, 4]


def test_debugging_after_an_exception() -> None:
    try:
        Broken()(t())
    except ShapeError as error:
        trace_back = error.__traceback__
    user = [(f, n) for f, n in traceback.walk_tb(trace_back) if f.f_code.co_filename == __file__]
    assert [f.f_code.co_name for f, _ in user][-2:] == ["construct", "construct"]
    inner = user[-1][0].f_locals
    np.testing.assert_array_equal(inner["doubled"].asnumpy(), (X + 1) * 2)
    frames = [f for f, _ in traceback.walk_tb(trace_back)]
    above = len(frames) - 1 - frames.index(user[-2][0])
    session = Session(*["up"] * above, "p 'size is', size", "quit")
    session.reset()
    session.interaction(None, trace_back)
    assert "('size is', 5)" in session.text


@pytest.mark.parametrize("compiled", [False, True])
def test_the_breakpoint_builtin_is_called_at_each_call(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hits: list[int] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda *args: hits.append(1))

    def program(x: Any) -> Any:
        y = x * 2
        breakpoint()
        return y + 1

    run = ms.jit(program) if compiled else program
    for count in (1, 2, 3):
        np.testing.assert_array_equal(run(t()).asnumpy(), X * 2 + 1)
        assert len(hits) == count


def test_values_are_there_under_a_gradient() -> None:
    """While a gradient is recorded variables are tensors with values."""
    seen: list[Any] = []

    def program(x: Any) -> Any:
        y = x * x
        seen.append((repr(y), float(y.sum()), inspect.currentframe().f_lineno))  # here
        return y.sum()

    slope = ms.grad(program)(ms.Tensor([1.0, 2.0]))
    assert seen[0][1] == 5.0 and "4.00000000e+00" in seen[0][0] and seen[0][2] == line_of(program, "# here")
    np.testing.assert_array_equal(slope.asnumpy(), [2, 4])


def test_a_debugger_inside_a_bprop() -> None:
    class Square(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * x

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            slope = 3 * x  # not what it is, to see that this is used
            return (dout * slope,)  # back

    recorder = Recorder()
    recorder.set_break(__file__, line_of(Square.bprop, "# back"))
    found = recorder.runcall(ms.grad(Square()), ms.Tensor([1.0, 2.0]))
    np.testing.assert_array_equal(found.asnumpy(), [3, 6])
    assert [name for name, _ in recorder.seen] == ["bprop"]
    np.testing.assert_array_equal(recorder.seen[0][1]["slope"].asnumpy(), [3, 6])


# Prints, logs, warnings.


def test_prints_come_in_the_order_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: Any) -> Any:
        print("start", x.shape)
        for i in range(3):
            x = x + i
            print(i, float(x[0, 0]))
        return x

    program(t())
    assert capsys.readouterr().out == "start (2, 3)\n0 0.0\n1 1.0\n2 3.0\n"


def test_logging_and_formatting(caplog: pytest.LogCaptureFixture) -> None:
    def program(x: Any) -> Any:
        logging.getLogger("test").info("sum %.1f of %s", x.sum(), x[0])
        return x

    with caplog.at_level("INFO", logger="test"):
        program(t())
    assert caplog.messages == ["sum 15.0 of [0. 1. 2.]"]
    assert caplog.records[0].lineno == line_of(program, "logging")


def test_warnings_point_at_the_user_s_line() -> None:
    class Warns(nn.Cell):
        def construct(self, x: Any) -> Any:
            warnings.warn("mind this", stacklevel=1)  # here
            return x

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        Warns()(t())
    assert [(w.filename, w.lineno) for w in found] == [(__file__, line_of(Warns.construct, "# here"))]


def test_hooks_see_values() -> None:
    seen: dict[str, Any] = {}
    net = Net()
    net.first.register_forward_hook(lambda cell, inputs, output: seen.update(first=output.asnumpy().copy()))
    net(t())
    np.testing.assert_array_equal(seen["first"], X * 2 + 1)


# Exceptions.


def test_exceptions_in_nested_cells_show_the_user_s_stack() -> None:
    with pytest.raises(ShapeError) as found:
        Broken()(t())
    entries = [e for e in traceback.extract_tb(found.value.__traceback__) if e.filename == __file__]
    assert [(e.name, e.lineno) for e in entries[-2:]] == [
        ("construct", line_of(Broken.construct, "# outer")),
        ("construct", line_of(Reshape.construct, "# inner")),
    ]
    assert entries[-1].line == "return doubled.reshape(size)  # inner"
    shown = "".join(traceback.format_exception(found.value))
    assert "reshape: float32[2, 3] has 6 elements, the shape [5] wants 5" in shown


def test_few_frames_of_the_library_are_between_those_of_the_user() -> None:
    """Calling a Cell takes two functions of the library, and nothing is wrapped around them."""
    depth: list[int] = []

    class Inner(nn.Cell):
        def construct(self, x: Any) -> Any:
            names = [f.filename == __file__ for f in inspect.stack()]
            depth.append(names.index(True, 1))
            return x

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def construct(self, x: Any) -> Any:
            return self.inner(x)

    Outer()(t())
    assert depth[0] <= 3


def test_exceptions_of_the_program_pass_untouched() -> None:
    class Mine(Exception):
        pass

    mine = Mine("mine", 1)

    class Raises(nn.Cell):
        def construct(self, x: Any) -> Any:
            try:
                return {}["missing"]
            except KeyError as error:
                raise mine from error  # here

    for run in (Raises(), ms.grad(Raises())):
        with pytest.raises(Mine) as found:
            run(t())
        assert found.value is mine and mine.args == ("mine", 1) and type(mine.__cause__) is KeyError
        last = traceback.extract_tb(mine.__traceback__)[-1]
        assert (last.filename, last.lineno) == (__file__, line_of(Raises.construct, "# here"))
        mine.__traceback__ = None


def test_variables_of_a_failed_frame_have_values() -> None:
    with pytest.raises(ShapeError) as found:
        Broken()(t())
    frames = [f for f, _ in traceback.walk_tb(found.value.__traceback__) if f.f_code.co_filename == __file__]
    assert frames[-1].f_locals["size"] == 5
    assert "value=" in repr(frames[-1].f_locals["x"]) and "<staged>" not in repr(frames[-1].f_locals["x"])


# Inspection, tracing, profiling.


def test_inspection() -> None:
    net = Net()
    assert str(inspect.signature(net.construct)) in ("(x: 'Any') -> 'Any'", "(x: Any) -> Any")
    assert "self.second(h)" in inspect.getsource(type(net))
    assert inspect.getfile(type(net)) == __file__
    assert inspect.getdoc(ops.relu) and inspect.signature(ops.relu).parameters
    jitted = ms.jit(net.construct)
    assert jitted.__wrapped__ == net.construct and inspect.unwrap(jitted) == net.construct
    assert list(inspect.signature(jitted).parameters) == ["x"]


def test_the_trace_function_sees_every_line() -> None:
    lines: list[int] = []

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is Net.construct.__code__ or frame.f_code is Scale.construct.__code__:
            if event == "line":
                lines.append(frame.f_lineno)
            return tracer
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        Net()(t())
    finally:
        sys.settrace(before)
    product, total = line_of(Scale.construct, "# product"), line_of(Scale.construct, "# sum")
    call, branch = line_of(Net.construct, "# call"), line_of(Net.construct, "# branch")
    body = [product, total, total + 1]
    assert lines == [call, *body, call + 1, branch, *body, branch + 1]


def test_coverage() -> None:
    """The standard library's coverage tool counts the lines that ran, and not those of the branch
    that did not.
    """
    counter = trace.Trace(count=1, trace=0)
    counter.runfunc(Net(), ms.Tensor(-X))
    counts = {line: n for (file, line), n in counter.results().counts.items() if file == __file__}
    assert counts[line_of(Net.construct, "# call")] == 1
    assert counts[line_of(Scale.construct, "# sum")] == 1
    assert line_of(Net.construct, "# branch") not in counts


def test_profilers() -> None:
    profile = cProfile.Profile()
    try:
        profile.enable()
        Net()(t())
    finally:
        profile.disable()
    stats: Any = pstats.Stats(profile).stats
    calls = {(name, line): found[0] for (file, line, name), found in stats.items() if file == __file__}
    assert calls["construct", Scale.construct.__code__.co_firstlineno] == 2
    assert calls["construct", Net.construct.__code__.co_firstlineno] == 1


def test_a_profiler_survives_compilation() -> None:
    """Compiling in the middle of a profiled program leaves the profiler at work."""

    def after() -> None:
        pass

    names: list[str] = []

    def profiler(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code is after.__code__ and event == "call":
            names.append("after")

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        ms.jit(lambda x: x * 2)(t())
        still = sys.getprofile()
        after()
    finally:
        sys.setprofile(before)
    assert still is profiler and names == ["after"]


# One line switches.


@pytest.fixture
def pynative() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Small(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Dense(3, 8)
        self.out = nn.Dense(8, 1)
        self.steps = ms.Parameter(np.zeros((), np.float32), name="steps", requires_grad=False)

    def construct(self, x: Any) -> Any:
        self.steps += 1
        h = ops.relu(self.hidden(x))
        if h.sum() > 1:
            h = h / h.max()
        return self.out(h)


def trained(decorate: Callable[[Any], Any] = lambda fn: fn) -> tuple[list[float], list[np.ndarray[Any, Any]]]:
    """The losses and the weights after five steps."""
    ms.set_seed(3)
    net = Small()
    for i, p in enumerate(net.trainable_params()):
        values = np.sin(np.arange(p.size, dtype=np.float32) + i).reshape(p.shape) * np.float32(0.5)
        p.set_data(ms.Tensor(values))
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    gradient = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)

    @decorate
    def step(x: Any, y: Any) -> Any:
        loss, grads = gradient(x, y)
        optimizer(grads)
        return loss

    losses = []
    for i in range(5):
        x = np.cos(np.arange(12, dtype=np.float32) * (i + 1)).reshape(4, 3)
        losses.append(float(step(ms.Tensor(x), ms.Tensor(x.sum(1, keepdims=True)))))
    assert float(net.steps) == 5
    return losses, [p.asnumpy().copy() for p in net.trainable_params()]


def assert_equal(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a[0], b[0], rtol=1e-5)
    for x, y in zip(a[1], b[1]):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_one_line_switches_modes(pynative: None) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    eager = trained()
    ms.set_context(mode=ms.GRAPH_MODE)
    compiled = trained()
    assert eager[0][-1] < eager[0][0]
    assert_equal(eager, compiled)


def test_a_decorator_switches_modes() -> None:
    assert_equal(trained(), trained(ms.jit))


def test_an_environment_variable_switches_compilation_off(monkeypatch: pytest.MonkeyPatch, pynative: None) -> None:
    """MS_JIT=0, as in MindSpore: decorated functions and Cells in GRAPH_MODE run as they are."""
    frames: list[str] = []

    def program(x: Any) -> Any:
        frames.append(sys._getframe().f_code.co_name)
        return x * 2

    class Holder(nn.Cell):
        def construct(self, x: Any) -> Any:
            frames.append(sys._getframe().f_code.co_name)
            return x * 2

    expected = trained()
    monkeypatch.setenv("MS_JIT", "0")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        np.testing.assert_array_equal(ms.jit(program)(t()).asnumpy(), X * 2)
        np.testing.assert_array_equal(Holder()(t()).asnumpy(), X * 2)
        assert frames == ["program", "construct"]
        assert_equal(trained(ms.jit), expected)
    finally:
        monkeypatch.undo()
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert ms.explain(ms.jit(lambda x: x * 2), t()).graphs


def test_a_jitted_function_is_debugged_by_its_wrapped_function() -> None:
    """`__wrapped__` is the plain function: one call of it is eager."""

    @ms.jit
    def program(x: Any) -> Any:
        y = x * 2
        return y + 1

    recorder = Recorder()
    recorder.set_break(__file__, line_of(program.__wrapped__, "return y"))
    recorder.runcall(program.__wrapped__, t())
    np.testing.assert_array_equal(recorder.seen[0][1]["y"].asnumpy(), X * 2)
