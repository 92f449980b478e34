"""Functions that go back to Python on the way: effects on outer objects in program order, and what
`explain`, `fullgraph` and the levels say of it.
"""

from __future__ import annotations

import logging
import math
import random
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import CompileError
from tests.language.harness import X, in_graph_mode

# Effects.


def both_ways(make: Any, *args: Any) -> list[Any]:
    """What a function with effects gives, eagerly and compiled: `make()` returns it with what it
    changes.
    """
    found = []
    for wrap in (lambda f: f, ms.jit):
        fn, state = make()
        run = wrap(fn)
        found.append([[_plain(run(*[ms.Tensor(a) for a in args])) for _ in range(3)], _plain(state)])
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, ms.Tensor):
        return np.round(value.asnumpy().astype(np.float64), 4).tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _appending() -> Any:
    log: list[Any] = []

    def fn(x: Any) -> Any:
        log.append("begin")
        y = x * 2
        log.append(float(y.sum()))
        if y.sum() > 0:
            log.append("positive")
        for i in range(2):
            log.append((i, y.sum().item()))
            y = y - 1
        return y

    return fn, log


def _dictionary() -> Any:
    state: dict[str, Any] = {"n": 0}

    def fn(x: Any) -> Any:
        state["n"] += 1
        state["last"] = x * state["n"]
        state["value"] = x.sum().item()
        return x + state["n"]

    return fn, state


def _nonlocal_count() -> Any:
    n, out = 0, []

    def fn(x: Any) -> Any:
        nonlocal n
        n += 1
        out.append(n * float(x.sum()))
        return x * n

    return fn, out


def _branch_effects() -> Any:
    log: list[Any] = []

    def fn(x: Any) -> Any:
        while x.sum() < 20:
            log.append(x.sum().item())
            x = x * 2 + 1
        return x

    return fn, log


def _tensors_kept() -> Any:
    kept: list[Any] = []

    def fn(x: Any) -> Any:
        y = x * 3
        kept.append(y)
        if float(y.sum()) > 0:
            kept.append(y + 1)
        return kept[-1] * 2

    return fn, kept


@pytest.mark.parametrize("make", [_appending, _dictionary, _nonlocal_count, _branch_effects, _tensors_kept])
def test_effects_happen_in_program_order(make: Any) -> None:
    eager, compiled = both_ways(make, X)
    assert compiled == eager


def test_prints_are_in_program_order(capsys: Any) -> None:
    def fn(x: Any) -> Any:
        print("start", x)
        i = ms.Tensor(0)
        while i < 3:
            print("round", i)
            if x.sum() > i:
                print("larger", (x * i).sum())
            i = i + 1
        print("end", [x.sum(), i])
        return x * i

    fn(ms.Tensor(X))
    eager = capsys.readouterr().out
    jitted = ms.jit(fn)
    for _ in range(2):
        jitted(ms.Tensor(X))
        assert capsys.readouterr().out == eager
    assert ms.explain(jitted).breaks


def test_logging_runs_at_each_call(caplog: Any) -> None:
    logger = logging.getLogger("of a program")

    @ms.jit
    def fn(x: Any) -> Any:
        logger.warning("sum %s", x.sum())
        return x * 2

    with caplog.at_level(logging.WARNING, "of a program"):
        for k in (1.0, 2.0):
            fn(ms.Tensor([k, k]))
    assert [r.getMessage() for r in caplog.records] == ["sum 2.0", "sum 4.0"]


def test_what_changes_by_itself_is_never_frozen() -> None:
    @ms.jit
    def fn(x: Any) -> Any:
        return x * 0 + random.random()

    values = {float(fn(ms.Tensor(0.0))) for _ in range(5)}
    assert len(values) == 5
    assert "random.random()" in str(ms.explain(fn))


def test_unknown_libraries_run_at_each_call() -> None:
    calls = []
    source = "def outside(x):\n    calls.append(1)\n    return x * len(calls)\n"
    namespace: dict[str, Any] = {"calls": calls}
    exec(source, namespace)  # has no source that could be read
    outside = namespace["outside"]
    fn = ms.jit(lambda x: outside(x) + 1)
    assert [float(fn(ms.Tensor(1.0))) for _ in range(3)] == [2.0, 3.0, 4.0]
    assert ms.explain(fn).breaks


# What explain, fullgraph and the levels say.


def test_explain_shows_segments_lines_reasons_and_mends() -> None:
    def fn(x: Any) -> Any:
        y = x * 2
        s = y.sum().item()  # here
        return y * s

    account = ms.explain(fn, ms.Tensor(X))
    assert len(account.segments) == 2 and not account.graphs
    (found,) = account.breaks
    text = str(account)
    assert found.where.file == __file__ and "# here" in text and "^" in text
    assert "item() needs the value" in found.reason and "keep it a tensor" in found.reason
    assert text.count("def segment") == 2


def test_the_refusal_is_logged_once(warnings_logged: list[str]) -> None:
    fn = ms.jit(lambda x: x * float(x.sum()))
    for _ in range(3):
        fn(ms.Tensor(X))
    (message,) = warnings_logged
    assert "is not one graph" in message and "float(x.sum())" in message and "explain()" in message


@pytest.fixture
def warnings_logged() -> Any:
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: Any) -> None:
            found.append(record.getMessage())

    handler = Keep(logging.WARNING)
    logging.getLogger("mycel").addHandler(handler)
    yield found
    logging.getLogger("mycel").removeHandler(handler)


def test_fullgraph_makes_a_break_an_error() -> None:
    fn = ms.jit(lambda x: x * float(x.sum()), fullgraph=True)
    with pytest.raises(CompileError, match="float\\(\\) needs the value"):
        fn(ms.Tensor(X))


def test_fullgraph_holds_for_arguments_that_overlap_with_what_is_written() -> None:
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")

    def fn(x: Any) -> Any:
        w[0] = 5.0
        return x * 2

    assert ms.jit(fn)(ms.Tensor([1.0])).asnumpy().tolist() == [2.0]
    view = w[0:1]
    assert ms.jit(fn)(view).asnumpy().tolist() == [10.0]
    with pytest.raises(CompileError, match="pass a copy"):
        ms.jit(fn, fullgraph=True)(view)


def test_the_strict_level_makes_a_break_an_error_and_lax_does_not() -> None:
    ms.set_context(jit_syntax_level=ms.STRICT)
    try:
        with pytest.raises(CompileError, match="asnumpy"):
            ms.jit(lambda x: x * x.asnumpy())(ms.Tensor(X))
    finally:
        ms.set_context(jit_syntax_level=ms.LAX)
    np.testing.assert_allclose(ms.jit(lambda x: x * ms.Tensor(x.asnumpy()))(ms.Tensor(X)).asnumpy(), X * X)


def test_numbers_that_differ_do_not_compile_again() -> None:
    from mycel._src.staging.frontend.ast_interpreter import graph_breaks as live

    @ms.jit
    def fn(x: Any) -> Any:
        return ops.exp(x * 0.1) * x.sum().item() + 5

    results = []
    for k in range(3):
        results.append(fn(ms.Tensor(X + k)))
    before = len(live._programs)
    for k in range(3, 20):
        expected = np.exp((X + k) * 0.1) * (X + k).sum() + 5
        np.testing.assert_allclose(fn(ms.Tensor(X + k)).asnumpy(), expected, rtol=1e-5)
    assert len(live._programs) == before


def test_an_exception_keeps_what_happened_before_it() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor(1.0), name="w")

        def construct(self, x: Any) -> Any:
            self.w += 1
            if float(x.sum()) > 0:
                self.w *= 5
                raise ValueError("positive")
            return x * self.w

    net = Net()
    in_graph_mode(net, [ms.Tensor(-X)])
    assert float(net.w) == 2.0
    with pytest.raises(ValueError, match="positive"):
        in_graph_mode(net, [ms.Tensor(abs(X))])
    assert float(net.w) == 15.0


def test_training_with_values_in_between() -> None:
    def train(compiled: bool) -> list[float]:
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(3, 8), nn.ReLU(), nn.Dense(8, 1))
        optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        seen: list[float] = []

        def forward(x: Any, y: Any) -> Any:
            loss = ((net(x) - y) ** 2).mean()
            seen.append(float(loss))
            return loss

        gradient = ms.value_and_grad(forward, None, optimizer.parameters)

        def step(x: Any, y: Any) -> Any:
            loss, grads = gradient(x, y)
            norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
            optimizer(tuple([g * min(1.0, 1.0 / norm) for g in grads]))
            return loss

        run = ms.jit(step) if compiled else step
        rng = np.random.default_rng(0)
        for _ in range(8):
            x = rng.normal(size=(16, 3)).astype(np.float32)
            run(ms.Tensor(x), ms.Tensor(x.sum(1, keepdims=True)))
        return seen

    np.testing.assert_allclose(train(True), train(False), rtol=1e-5)


def test_arrays_over_a_tensors_memory_are_seen() -> None:
    def fn(x: Any) -> Any:
        y = x * 1
        a = y.asnumpy()
        before = y + 0
        a[0] = 7.0
        return before, y + 0

    eager = fn(ms.Tensor(X))
    compiled = ms.jit(fn)(ms.Tensor(X))
    for a, e in zip(compiled, eager):
        np.testing.assert_array_equal(a.asnumpy(), e.asnumpy())


def test_second_derivatives_through_values() -> None:
    def fn(x: Any) -> Any:
        y = x * x * x
        if float(y) > 0:
            return y * x
        return y

    second = ms.grad(ms.grad(fn))
    for x, expected in ((2.0, 48.0), (-2.0, -12.0)):
        for run in (second, ms.jit(second), ms.grad(ms.jit(ms.grad(fn))), ms.grad(ms.grad(ms.jit(fn)))):
            assert float(run(ms.Tensor(x))) == pytest.approx(expected)


def test_a_long_python_loop_keeps_no_history() -> None:
    @ms.jit
    def fn(x: Any) -> Any:
        for _ in range(300):
            x = x * 0.5 + 1
            if float(x.sum()) < 0:
                break
        return x

    np.testing.assert_allclose(fn(ms.Tensor(X)).asnumpy(), np.full(3, 2.0), rtol=1e-5)
    assert len({id(g) for g in ms.explain(fn).segments}) <= 3


def test_operations_without_native_code_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from mycel._src.engines.native.lowering.step_rules import STEP_RULES

    monkeypatch.delitem(STEP_RULES, "sort")
    account = ms.explain(lambda x: ops.sort(x)[0] * 2, ms.Tensor(X))
    (step,) = account.host_steps
    assert step[0] == "sort" and step[2].file == __file__
    assert "sort runs in NumPy" in str(account) and not account.breaks
