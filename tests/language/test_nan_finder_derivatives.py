"""The first operation whose result is not finite, in derivatives, training steps, open sizes and
random programs.
"""

from __future__ import annotations

import inspect
import linecache
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import NonFiniteError
from tests.language.not_finite import check, failure, graph_mode, logarithm, t


@pytest.fixture(autouse=True)
def checking() -> Iterator[None]:
    ms.set_context(check_nan=True)
    try:
        yield
    finally:
        ms.set_context(check_nan=False, mode=ms.PYNATIVE_MODE)


MODES = {"eager": lambda fn: fn, "jit": ms.jit, "graph": graph_mode}
modes = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


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
    """The first step makes the weights negative, the second takes the logarithm of a negative
    number and changes nothing.
    """
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
    "ops.log({a})",
    "ops.sqrt({a})",
    "ops.exp({a})",
    "-{a}",
    "{a} * 3.0",
    "ops.sin({a})",
    "ops.rsqrt({a})",
    "ops.square({a})",
    "ops.reciprocal({a})",
)
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
