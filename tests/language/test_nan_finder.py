"""set_context(check_nan=True) names the first operation that gives a NaN or an infinity, and the user's line, in every mode and in derivatives."""

from __future__ import annotations

import inspect
import linecache
import os
import random
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.base.errors import NonFiniteError
from mycel.ir.places import PACKAGE

BIG = np.float32(3e38)


@pytest.fixture(autouse=True)
def checking() -> Iterator[None]:
    ms.set_context(check_nan=True)
    try:
        yield
    finally:
        ms.set_context(check_nan=False, mode=ms.PYNATIVE_MODE)


def t(*values: float, dtype: Any = np.float32) -> ms.Tensor:
    return ms.Tensor(np.array(values, dtype))


def graph_mode(fn: Any) -> Any:
    class Holder(nn.Cell):
        def construct(self, *args: Any) -> Any:
            return fn(*args)

    def run(*args: Any) -> Any:
        ms.set_context(mode=ms.GRAPH_MODE)
        try:
            return Holder()(*args)
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)

    return run


MODES = {"eager": lambda fn: fn, "jit": ms.jit, "graph": graph_mode}
modes = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def failure(run: Any, *args: Any) -> NonFiniteError:
    with pytest.raises(NonFiniteError) as found:
        run(*args)
    return found.value


def check(error: NonFiniteError, fn: Any, operation: str, kind: str, at: str, mark: str = "# here") -> None:
    """Assert what an error names, and that it shows the marked line of a function with a caret under a piece of it."""
    lines, first = inspect.getsourcelines(fn)
    number = next(i for i, text in enumerate(lines) if mark in text)
    assert (error.operation, error.kind) == (operation, kind), str(error)
    assert (error.where.file, error.where.line) == (__file__, first + number), str(error)
    line, text = lines[number].rstrip("\n"), str(error)
    assert f"  {__file__}:{first + number}\n    {line.strip()}\n" in text, text
    if error.where.end_column:
        below = text.split(line.strip() + "\n")[1].split("\n")[0]
        lead = len(line) - len(line.lstrip())
        assert len(below) - len(below.lstrip()) - 4 + lead == line.index(at), text


# Operations.


def logarithm(x: Any) -> Any:
    y = x * 2
    return (y + ops.log(x - 1)).sum()  # here


def quotient(x: Any) -> Any:
    y = x - x
    return (x / y).sum()  # here


def exponential(x: Any) -> Any:
    z = 100 * x
    return ops.tanh(ops.exp(z) * 0)  # here


def difference(x: Any) -> Any:
    y = ops.full_like(x, float("inf"))
    return (y - y) + x  # here


def root(x: Any) -> Any:
    return 1 + ops.sqrt(-x)  # here


def power(x: Any) -> Any:
    return (x - 5) ** 0.5 + 1  # here


def narrow(x: Any) -> Any:
    return (x * 1e6).astype(ms.float16).sum()  # here


def product(x: Any) -> Any:
    y = x * 1e38
    return y @ y.T  # here


def total(x: Any) -> Any:
    return (x * BIG / 3).sum()  # here


def over_two_lines(x: Any) -> Any:
    return x + (
        1 / (x - x)  # here
    )


OPERATIONS = [
    (logarithm, t(2, 1, 3), "log", "infinity", "ops.log"),
    (logarithm, t(2, 0.5, 3), "log", "NaN", "ops.log"),
    (quotient, t(1, 2), "div", "infinity", "x / y"),
    (quotient, t(0, 2), "div", "NaN", "x / y"),
    (exponential, t(1, 2), "exp", "infinity", "ops.exp(z)"),
    (difference, t(1, 2), "sub", "NaN", "y - y"),
    (root, t(1, 2), "sqrt", "NaN", "ops.sqrt"),
    (power, t(1, 2), "pow", "NaN", "(x - 5) **"),
    (narrow, t(1, 2), "cast", "infinity", "(x * 1e6).astype"),
    (product, ms.Tensor(np.ones((2, 2), np.float32)), "matmul", "infinity", "y @ y.T"),
    (total, t(1, 1, 1, 1), "reduce_sum", "infinity", "(x * BIG / 3).sum()"),
    (over_two_lines, t(1), "div", "infinity", "1 / (x - x)"),
]


@modes
@pytest.mark.parametrize("fn, x, operation, kind, at", OPERATIONS, ids=[f"{c[0].__name__}-{c[3]}" for c in OPERATIONS])
def test_operations(mode: Any, fn: Any, x: Any, operation: str, kind: str, at: str) -> None:
    error = failure(mode(fn), x)
    if operation == "pow" and error.operation == "sqrt":
        operation = "sqrt"  # the power 1/2
    check(error, fn, operation, kind, at)
    assert error.gradient_of == "" and error.rounds == ()
    assert isinstance(error, FloatingPointError)


@modes
def test_the_message_shows_operands_and_a_mend(mode: Any) -> None:
    error = failure(mode(logarithm), t(2, 1, 0.5))
    assert str(error).startswith("log gives 1 NaN and 1 infinite value among 3: log(float32[3] in [-0.5, 1])")
    assert "keep the operand above 0" in str(error)


@modes
def test_what_is_finite_passes(mode: Any) -> None:
    assert float(mode(logarithm)(t(2, 3))) == pytest.approx(10 + np.log(2))


@modes
def test_integers(mode: Any) -> None:
    assert mode(lambda x: x // (x - x))(t(1, 2, dtype=np.int32)).asnumpy().tolist() == [0, 0]


# What is looked for.


@modes
def test_only_nan(mode: Any) -> None:
    ms.set_context(check_nan="nan")
    run = mode(logarithm)
    assert run(t(1, 2)).asnumpy() == -np.inf
    check(failure(run, t(0.5, 2)), logarithm, "log", "NaN", "ops.log")


@modes
def test_only_nan_from_an_infinity(mode: Any) -> None:
    ms.set_context(check_nan="nan")

    def fn(x: Any) -> Any:
        y = ops.exp(x * 1000)
        return y - y  # here

    check(failure(mode(fn), t(1, 2)), fn, "sub", "NaN", "y - y")


def test_the_setting_can_be_changed_at_any_time() -> None:
    run = ms.jit(logarithm)
    error = failure(run, t(1, 2))
    ms.set_context(check_nan=False)
    assert run(t(1, 2)).asnumpy() == -np.inf and logarithm(t(1, 2)).asnumpy() == -np.inf
    ms.set_context(check_nan=True)
    assert str(failure(run, t(1, 2))) == str(error)
    failure(logarithm, t(1, 2))


def test_values_of_the_setting() -> None:
    assert ms.get_context("check_nan") is True
    for wrong in ("inf", 1, None):
        with pytest.raises(ValueError, match=r"check_nan must be False, True, or 'nan'"):
            ms.set_context(check_nan=wrong)


@modes
def test_infinite_constants_are_no_failure(mode: Any) -> None:
    """Masks are made of infinities; what is infinite from the start is not found, what becomes NaN of it is."""

    def attention(scores: Any, mask: Any) -> Any:
        hidden = ops.masked_fill(scores, mask, float("-inf"))
        return ops.softmax(hidden)  # here

    scores = ms.Tensor(np.ones((2, 2), np.float32))
    some = ms.Tensor(np.array([[True, False], [False, False]]))
    np.testing.assert_allclose(mode(attention)(scores, some).asnumpy(), [[0, 1], [0.5, 0.5]])
    every = ms.Tensor(np.array([[True, True], [False, False]]))
    error = failure(mode(attention), scores, every)
    assert error.kind == "NaN" and "ops.softmax" in str(error)


def test_inputs_that_are_not_finite_are_told_and_pass(caplog: pytest.LogCaptureFixture) -> None:
    def doubled(values: Any) -> Any:
        return values * 2

    run = ms.jit(doubled)
    with caplog.at_level("WARNING", logger="mycel"):
        assert np.isnan(run(t(1, np.nan)).asnumpy()[1])
        assert np.isnan(doubled(t(1, np.nan)).asnumpy()[1])
    assert caplog.text.count("values float32[2] of doubled already holds a NaN") == 1


def test_compiled_code_may_mask_what_is_not_finite() -> None:
    """Only what reaches a result counts there; eagerly every function's result is one."""

    def masked(x: Any) -> Any:
        return ops.where(x > 0, ops.log(x), x)  # here

    np.testing.assert_array_equal(ms.jit(masked)(t(1, -1)).asnumpy(), [0, -1])
    check(failure(masked, t(1, -1)), masked, "log", "NaN", "ops.log")


def in_the_library(source: str, name: str) -> Any:
    """A function as if it were one of the library's operations."""
    module = types.ModuleType("mycel.ops.for_a_test")
    exec(compile(source, f"{PACKAGE}ops/for_a_test.py", "exec"), module.__dict__)
    return module.__dict__[name]


HIDES = "from mycel import ops\ndef hides(x):\n    y = ops.log(x)\n    return ops.where(x > 0, y, x)\n"
SHOWS = "from mycel import ops\ndef shows(x):\n    y = ops.log(x)\n    z = y + 1\n    return [z, x]\n"


def test_an_eager_operation_counts_by_its_result() -> None:
    """What an operation of several steps hides inside is no failure, and what it shows is one when it returns."""
    hides, shows = in_the_library(HIDES, "hides"), in_the_library(SHOWS, "shows")
    before = sys.getprofile()
    np.testing.assert_array_equal(hides(t(1, -1)).asnumpy(), [0, -1])
    reached = []

    def uses(x: Any) -> Any:
        y = shows(x)  # here
        reached.append(1)
        return y

    check(failure(uses, t(1, -1)), uses, "log", "NaN", "shows(x)")
    assert not reached and sys.getprofile() is before
    np.testing.assert_array_equal(hides(t(1, -1)).asnumpy(), [0, -1])


# Branches and loops.


def branch(x: Any) -> Any:
    y = x * 2
    if x.sum() > 0:
        y = y / (x - x)  # here
    else:
        y = y + 1
    return y


@modes
def test_branches(mode: Any) -> None:
    run = mode(branch)
    assert run(t(-1, -2)).asnumpy().tolist() == [-1, -3]
    check(failure(run, t(1, 2)), branch, "div", "infinity", "y / (x - x)")


def loop(x: Any) -> Any:
    n = ms.Tensor(0)
    while n < 10:
        x = x + ops.exp(x * x)  # here
        n = n + 1
    return x


@modes
def test_loops(mode: Any) -> None:
    """x -> x + exp(x * x) from 0.5 overflows in the fourth round."""
    x, rounds = np.float32(0.5), 0
    with np.errstate(over="ignore"):
        while np.isfinite(x):
            x, rounds = x + np.exp(x * x), rounds + 1
    error = failure(mode(loop), t(0.5))
    check(error, loop, "exp", "infinity", "ops.exp(x * x)")
    if mode is not MODES["eager"]:
        assert error.rounds == (rounds,)
        assert re.search(rf"in round {rounds} of the loop at .*test_nan_finder.py:\d+", str(error))


def nested(x: Any) -> Any:
    n = ms.Tensor(0)
    while n < 5:
        k = ms.Tensor(0)
        while k < 3:
            if n * 3 + k > 6:
                x = x + 1 / (n * 3 + k - 7)  # here
            k = k + 1
        n = n + 1
    return x


@pytest.mark.parametrize("mode", [ms.jit, graph_mode], ids=["jit", "graph"])
def test_nested_loops(mode: Any) -> None:
    error = failure(mode(nested), t(0.5))
    check(error, nested, "div", "infinity", "1 / (n * 3")
    assert error.rounds == (3, 2)


def counted(x: Any, n: Any) -> Any:
    y = x
    for i in range(n):
        y = y + ops.log(x - i)  # here
    return y


@modes
def test_loops_over_a_range(mode: Any) -> None:
    error = failure(mode(counted), t(5, 6), ms.Tensor(20))
    check(error, counted, "log", "infinity", "ops.log")
    if mode is not MODES["eager"]:
        assert error.rounds == (6,)


# Functions that go back to Python.


def segments(x: Any) -> Any:
    n = float(x.sum())
    y = x * n
    return ops.log(y - n)  # here


def other_segments(x: Any) -> Any:
    n = float(x.sum())

    y = x * n
    return ops.log(y - n)  # here


def test_functions_in_segments() -> None:
    """Segments of one structure are compiled once; each failure still shows its own line."""
    for fn in (segments, other_segments, segments):
        check(failure(ms.jit(fn), t(2, 1)), fn, "log", "infinity", "ops.log")


# Derivatives.


def norm(x: Any) -> Any:
    y = x * 3
    return ops.sqrt((y * y).sum())  # here


def other_norm(x: Any) -> Any:
    y = x * 3

    return ops.sqrt((y * y).sum())  # here


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda fn: ms.grad(fn),
    "of jit": lambda fn: ms.grad(ms.jit(fn)),
    "jit": lambda fn: ms.jit(ms.grad(fn)),
    "graph": lambda fn: graph_mode(ms.grad(fn)),
}
gradients = pytest.mark.parametrize("gradient", GRADIENTS.values(), ids=GRADIENTS)


@gradients
def test_derivatives(gradient: Any) -> None:
    """The derivative of the root at 0, with the place of the root."""
    for fn in (norm, other_norm, norm):
        run = gradient(fn)
        np.testing.assert_allclose(run(t(3, 4)).asnumpy(), [1.8, 2.4], rtol=1e-5)
        error = failure(run, t(0, 0))
        check(error, fn, "div", "infinity", "ops.sqrt")
        assert error.gradient_of == "sqrt" and "in the derivative of sqrt" in str(error)


@gradients
def test_masked_operations_fail_in_their_derivative(gradient: Any) -> None:
    """The known trap: where() hides the logarithm at 0, its derivative gives 0 / 0."""

    def masked(x: Any) -> Any:
        return ops.where(x > 0, ops.log(x), x).sum()  # here

    ms.set_context(check_nan="nan")
    error = failure(gradient(masked), t(1, 0))
    check(error, masked, "div", "NaN", "ops.log")
    assert error.gradient_of == "log"


@gradients
def test_derivatives_of_loops(gradient: Any) -> None:
    def fn(x: Any) -> Any:
        n = ms.Tensor(0)
        while n < 3:
            x = ops.sqrt(x) * 0  # here
            n = n + 1
        return x.sum()

    error = failure(gradient(fn), t(1, 4))
    assert error.gradient_of in ("sqrt", "mul"), str(error)
    lines, first = inspect.getsourcelines(fn)
    assert error.where.line == first + next(i for i, text in enumerate(lines) if "# here" in text)


def test_forward_before_backward() -> None:
    """Where the value is a result too, its operation is named and not a derivative."""
    value_and_grad = ms.value_and_grad(logarithm)
    for run in (value_and_grad, ms.jit(value_and_grad), graph_mode(value_and_grad)):
        forward_before_backward(run)


def forward_before_backward(run: Any) -> None:
    error = failure(run, t(1, 2))
    check(error, logarithm, "log", "infinity", "ops.log")
    assert error.gradient_of == ""


def test_second_derivatives() -> None:
    def fn(x: Any) -> Any:
        return (x**1.5).sum()

    for run in (ms.grad(ms.grad(fn)), ms.jit(ms.grad(ms.grad(fn)))):
        error = failure(run, t(0, 1))
        lines, first = inspect.getsourcelines(fn)
        assert error.where.line == first + 1 and error.gradient_of


# State and training.


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(np.full((2, 2), 0.5, np.float32), name="w")
        self.count = ms.Parameter(np.zeros((), np.float32), name="count", requires_grad=False)

    def construct(self, x: Any) -> Any:
        self.count += 1
        h = ops.matmul(x, self.w)
        return ops.log(h)  # here


@pytest.mark.parametrize("mode", [ms.jit, graph_mode], ids=["jit", "graph"])
def test_a_failure_leaves_the_state_as_it_was(mode: Any) -> None:
    net = Net()
    run = mode(net)
    run(ms.Tensor(np.ones((1, 2), np.float32)))
    error = failure(run, ms.Tensor(np.zeros((1, 2), np.float32)))
    check(error, Net.construct, "log", "infinity", "ops.log")
    assert float(net.count) == 1
    run(ms.Tensor(np.ones((1, 2), np.float32)))
    assert float(net.count) == 2


def step_of(net: Any, rate: float) -> Any:
    optimizer = nn.SGD(net.trainable_params(), rate)
    gradient = ms.value_and_grad(lambda x: net(x).sum() * 10, None, optimizer.parameters)

    def step(x: Any) -> Any:
        loss, grads = gradient(x)
        optimizer(grads)  # here
        return loss

    return step


@modes
def test_training_steps(mode: Any) -> None:
    """The first step makes the weights negative, the second takes the logarithm of a negative number and changes nothing."""
    net = Net()
    run = mode(step_of(net, 0.1))
    x = ms.Tensor(np.ones((1, 2), np.float32))
    run(x)
    np.testing.assert_allclose(net.w.asnumpy(), np.full((2, 2), -0.5), rtol=1e-6)
    check(failure(run, x), Net.construct, "log", "NaN", "ops.log")
    np.testing.assert_allclose(net.w.asnumpy(), np.full((2, 2), -0.5), rtol=1e-6)


@modes
def test_optimizers(mode: Any) -> None:
    """What an optimizer of the library computes shows the line that called it."""
    net = Net()
    step = step_of(net, 1e38)
    error = failure(mode(step), ms.Tensor(np.full((1, 2), 1e-3, np.float32)))
    check(error, step, error.operation, "infinity", "optimizer(grads)")


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_model_train(mode: int) -> None:
    import mycel.dataset as ds

    ms.set_context(mode=mode)
    net = Net()
    rows = [(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32)) for _ in range(3)]
    rows.append((np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)))
    data = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    error = failure(model.train, 1, data)
    check(error, Net.construct, "log", "infinity", "ops.log")
    assert float(net.count) == (3 if mode == ms.GRAPH_MODE else 4)


# Sizes that are symbols, several failures.


def test_symbolic_sizes() -> None:
    run = ms.jit(logarithm)
    for n in (2, 3, 4, 5, 6):
        assert np.isfinite(run(ms.Tensor(np.full(n, 3, np.float32))).asnumpy())
    check(failure(run, ms.Tensor(np.ones(7, np.float32))), logarithm, "log", "infinity", "ops.log")


def masked_values(x: Any) -> Any:
    y = x[x > 0]
    return ops.log(y - 1)  # here


def positions_of_values(x: Any) -> Any:
    i = ops.nonzero(x > 0)
    return x.sum() + ops.log(x[i[:, 0]] - 1)  # here


@pytest.mark.parametrize("fn", [masked_values, positions_of_values])
def test_sizes_that_data_decide(fn: Any) -> None:
    run = ms.jit(fn)
    assert np.isfinite(run(t(3, -1, 4)).asnumpy()).all()
    check(failure(run, t(1, 2, -1)), fn, "log", "infinity", "ops.log")
    ms.set_context(check_nan=False)
    assert np.isinf(run(t(1, 2, -1)).asnumpy()[0])


TRANSFORMED: dict[str, Any] = {
    "vmap": lambda fn: ms.vmap(fn),
    "jit of vmap": lambda fn: ms.jit(ms.vmap(fn)),
    "vmap of jit": lambda fn: ms.vmap(ms.jit(fn)),
    "jvp": lambda fn: lambda x: ms.jvp(fn, (x,), (x,)),
    "vjp": lambda fn: lambda x: ms.vjp(fn, x),
    "jacrev": lambda fn: ms.jacrev(fn),
    "jacfwd": lambda fn: ms.jit(ms.jacfwd(fn)),
    "recompute": lambda fn: ms.value_and_grad(lambda x: ms.recompute(fn, x).sum()),
}


@pytest.mark.parametrize("transform", TRANSFORMED.values(), ids=TRANSFORMED)
def test_transformed_functions(transform: Any) -> None:
    def fn(x: Any) -> Any:
        return ops.log(x - 1)  # here

    error = failure(transform(fn), t(1, 2))
    lines, first = inspect.getsourcelines(fn)
    assert error.where.line == first + 1
    assert error.operation == "log" or error.gradient_of == "log"


def test_recursion() -> None:
    def fn(x: Any, n: Any) -> Any:
        if n == 0:
            return ops.log(x)  # here
        return fn(x - 1, n - 1)

    run = ms.jit(fn)
    np.testing.assert_allclose(run(t(5, 6), ms.Tensor(3)).asnumpy(), np.log([2, 3]), rtol=1e-6)
    check(failure(run, t(3, 4), ms.Tensor(3)), fn, "log", "infinity", "ops.log")


@modes
def test_a_bprop_of_the_program(mode: Any) -> None:
    class Twice(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout / (x - x),)  # here

    error = failure(mode(ms.grad(Twice())), t(1, 2))
    check(error, Twice.bprop, "div", "infinity", "dout / (x - x)")


def test_several_origins() -> None:
    def several(x: Any) -> Any:
        a = ops.log(x)  # here
        b = 1 / x
        return b + a

    error = failure(ms.jit(several), t(0, 1))
    check(error, several, "log", "infinity", "ops.log")
    assert "2 more operations of the same run" in str(error)


# Random programs; the oracle is the eager run, in which operations run in the order of the text.

ONE = (
    "ops.log({a})", "ops.sqrt({a})", "ops.exp({a})", "-{a}", "{a} * 3.0", "ops.sin({a})", "ops.rsqrt({a})", "ops.square({a})",
    "ops.reciprocal({a})",
)  # fmt: skip
TWO = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "ops.maximum({a}, {b})", "ops.pow({a}, {b})")


def random_program(seed: int) -> tuple[Any, list[ms.Tensor]]:
    """A straight program of up to nine operations with some branches, and two arguments."""
    chosen = random.Random(seed)
    names, lines = ["x", "y"], ["def program(x, y):"]
    for i in range(chosen.randint(3, 9)):
        text = chosen.choice(ONE + TWO).format(a=chosen.choice(names), b=chosen.choice(names))
        indent = "    "
        if i and chosen.random() < 0.2:
            lines += [f"    v{i} = {chosen.choice(names)}", f"    if {chosen.choice(names)}.sum() > 0:"]
            indent = "        "
        lines.append(f"{indent}v{i} = {text}")
        names.append(f"v{i}")
    source = "\n".join([*lines, f"    return ({', '.join(names[2:])},)", ""])
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"ops": ops, "__name__": "random_program"}
    exec(compile(source, file, "exec"), namespace)
    numbers = np.random.RandomState(seed)
    args = [(numbers.randn(3) * chosen.choice([1, 3, 30])).round(1).astype(np.float32) for _ in range(2)]
    return namespace["program"], [ms.Tensor(a) for a in args]


def outcome(run: Any, args: Any) -> Any:
    try:
        run(*args)
    except NonFiniteError as error:
        return error.operation, error.kind, error.where.line
    return None


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int) -> None:
    program, args = random_program(seed)
    assert outcome(ms.jit(program), args) == outcome(program, args)


def test_the_environment_turns_it_on() -> None:
    text = "import mycel as ms; print(ms.get_context('check_nan'))"
    for value, expected in (("1", "True"), ("nan", "nan"), ("0", "False")):
        found = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "MYCEL_CHECK_NAN": value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == expected
