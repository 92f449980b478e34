"""Compiled functions: gradients through them, failures, and the ways to write them."""

from __future__ import annotations

import gc
import linecache
import logging
import threading
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.log import logger
from mycel._src.staging.compiled.jit import Jit
from tests.compiled.jit_support import Box, Net, count, refused, tensor

FACTOR = 2.0


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=2)


@pytest.fixture
def warnings_logged() -> Iterator[list[str]]:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: Any) -> None:
            lines.append(record.getMessage())

    handler = Keep(logging.WARNING)
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


# Gradients.


def test_gradients_go_through_compiled_functions() -> None:
    w = ms.Parameter(ms.Tensor([2.0, 3.0]), name="w")
    inner = ms.jit(lambda x: ops.sum(x * x * w), fullgraph=True)

    def loss(x: Any) -> Any:
        return inner(x * 2) + ops.sum(x)

    x = tensor(1.0, 2.0)
    by_input, by_weight = ms.grad(loss, 0, weights=[w])(x)
    np.testing.assert_allclose(by_input.asnumpy(), 8 * x.asnumpy() * w.asnumpy() + 1)
    np.testing.assert_allclose(by_weight[0].asnumpy(), 4 * x.asnumpy() ** 2)
    second = ms.grad(lambda t: ops.sum(ms.grad(loss)(t)))(x)
    np.testing.assert_allclose(second.asnumpy(), 8 * w.asnumpy())


def test_graph_mode_gradients_are_compiled_as_a_whole() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    step = ms.value_and_grad(lambda x: ops.sum(net(x)), None, net.trainable_params())
    value, (slope,) = step(tensor(1.0, 3.0))
    assert float(value) == 18.0
    np.testing.assert_allclose(slope.asnumpy(), [2.0, 6.0])
    assert count(step._compiled) == 1 and not step._compiled.lives


def test_compiled_functions_are_part_of_compiled_functions() -> None:
    inner = ms.jit(lambda x: x * 3)
    outer = ms.jit(lambda x: inner(x) + 1, fullgraph=True)
    assert float(outer(tensor(2.0))) == 7.0
    assert count(inner) == 0


# Failures.


def test_a_fallback_is_visible_and_right(warnings_logged: list[str]) -> None:
    def needs_value(x: Any) -> Any:
        y = x * 2
        return float(y) + 1

    f = ms.jit(needs_value)
    assert f(tensor(2.0)) == 5.0
    assert f(tensor(3.0)) == 7.0
    assert len(warnings_logged) == 1
    text = warnings_logged[0]
    assert "needs_value" in text and "float(y) + 1" in text and "test_jit.py" in text and "compiled segments" in text
    (fallback,) = ms.explain(f, tensor(2.0)).breaks
    assert "float()" in fallback.reason and "^" in str(fallback)


@pytest.mark.parametrize("strict", [False, True])
def test_full_graphs_refuse_instead(strict: bool) -> None:
    f = ms.jit(lambda x: x.item(), fullgraph=not strict)
    if strict:
        ms.set_context(jit_syntax_level=0)
    with pytest.raises(CompileError, match=r"item\(\) needs the value of a tensor(.|\n)*test_jit.py:\d+"):
        f(tensor(2.0))


def test_messages_say_what_differs() -> None:
    def shapes(x: Any) -> Any:
        if ops.sum(x) > 0:
            y = x
        else:
            y = ops.sum(x)
        return y

    def missing(x: Any) -> Any:
        if x > 0:
            y = x
        return y

    def texts(x: Any) -> Any:
        return "a" if x > 0 else "b"

    def growing(x: Any) -> Any:
        items = []
        while x < 3:
            items.append(x)
            x = x + 1
        return items

    def raising(x: Any) -> Any:
        if x > 0:
            raise ValueError("positive")
        return x

    assert "has shape (2,) where the condition holds and ()" in refused(shapes, tensor(1.0, 2.0))
    assert "'y' is set on only one side" in refused(missing, tensor(1.0))
    assert "'a' (str) where the condition holds and 'b' (str)" in refused(texts, tensor(1.0))
    assert "changes its form in a loop" in refused(growing, tensor(1.0))
    assert "whether this is raised is decided by a tensor" in refused(raising, tensor(1.0))
    assert "numpy.random" in refused(lambda x: x * np.random.rand(), tensor(1.0))
    assert "another result at each call" in refused(lambda x: x * np.random.rand(), tensor(1.0))


def endless(x: Any) -> Any:
    return x if x < 1 else endless(x / 2)


def test_recursion_that_a_tensor_decides_is_one_graph() -> None:
    assert float(ms.jit(endless, fullgraph=True)(tensor(8.0))) == 0.5


def test_errors_of_the_program_show_its_lines() -> None:
    def inner(x: Any) -> Any:
        return ops.matmul(x, x[:1])

    def outer(x: Any) -> Any:
        return inner(x) + 1

    with pytest.raises(ValueError, match="matmul|shape|size") as found:
        ms.jit(outer)(ms.Tensor(np.ones((2, 3), np.float32)))
    shown = "".join(traceback.format_exception(found.type, found.value, found.tb))
    assert "return ops.matmul(x, x[:1])" in shown and "return inner(x) + 1" in shown
    assert "statements.py" not in shown


def test_exceptions_are_the_programs_own() -> None:
    @ms.jit
    def f(x: Any, n: int) -> Any:
        if n > 3:
            raise KeyError("n")
        return x * n

    with pytest.raises(KeyError, match="n"):
        f(tensor(1.0), 5)
    assert float(f(tensor(1.0), 2)) == 2.0


def test_attributes_set_through_object_are_effects() -> None:
    holder = Box(0)

    def keep(x: Any) -> Any:
        y = x * 2
        object.__setattr__(holder, "value", y)
        return y

    f = ms.jit(keep, fullgraph=True)
    for v in (1.0, 2.0, 3.0):
        f(tensor(v))
        assert float(holder.value) == 2 * v
        assert float(ms.jit(lambda x: x + holder.value, fullgraph=True)(tensor(1.0))) == 2 * v + 1


# Ways to write it.


def test_decorator_forms() -> None:
    @ms.jit
    def a(x: Any) -> Any:
        return x + 1

    @ms.jit(jit_level="O1", capture_mode="bytecode", backend="ms_backend", fullgraph=True)
    def b(x: Any) -> Any:
        """Adds two."""
        return x + 2

    class Holder:
        k = 3

        @ms.jit
        def method(self, x: Any) -> Any:
            return x * self.k

        @staticmethod
        @ms.jit
        def static(x: Any) -> Any:
            return x * 4

        @ms.jit
        @classmethod
        def of_class(cls, x: Any) -> Any:
            return x * cls.k

    x = tensor(1.0)
    holder = Holder()
    assert float(a(x)) == 2.0 and float(b(x)) == 3.0 and b.__doc__ == "Adds two." and b.__name__ == "b"
    assert float(holder.method(x)) == 3.0 and float(Holder.static(x)) == 4.0 and float(Holder.of_class(x)) == 3.0
    holder.k = 9
    assert float(holder.method(x)) == 9.0
    assert float(ms.jit(fn=lambda x: x - 1)(x)) == 0.0
    assert float(ms.jit(Net().construct)(tensor(1.0, 1.0))[0]) == 4.0
    with pytest.raises(ValueError, match="jit_level must be one of"):
        ms.jit(a, jit_level="O9")
    with pytest.raises(TypeError, match="must be a function"):
        ms.jit(3)


def test_a_decorated_construct() -> None:
    class Inner(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor(2.0), name="w")

        @ms.jit
        def construct(self, x: Any) -> Any:
            return x * self.w

    net = Inner()
    assert float(net(tensor(3.0))) == 6.0
    assert float(ms.grad(net, None, weights=net.trainable_params())(tensor(3.0))[0]) == 3.0


def test_lambdas_on_one_line() -> None:
    fs, gs = [lambda x: x + 1, lambda x: x + 2, lambda x: x + 3], [lambda x, k: x * k, lambda x: (lambda y: y * 5)(x)]
    assert [float(ms.jit(f, fullgraph=True)(tensor(1.0))) for f in fs] == [2.0, 3.0, 4.0]
    assert float(ms.jit(gs[1], fullgraph=True)(tensor(1.0))) == 5.0
    assert [
        float(ms.jit(f)(tensor(1.0)) if True else 0)
        for f in (lambda x: x if x > 0 else -x, lambda x: -x if x > 0 else x)
    ] == [1.0, -1.0]


def test_lambdas_are_told_apart_without_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from mycel._src.staging.frontend.source_code import function_source

    monkeypatch.setattr(function_source, "_by_columns", lambda found, code: [])
    fs = [lambda x: x + 1, lambda x: x - 2, lambda x: x * 3]
    found = [function_source.definition_of(f)[0].body.op.__class__.__name__ for f in fs]
    assert found == ["Add", "Sub", "Mult"]


def test_source_from_a_notebook_cell_and_from_nowhere() -> None:
    text = "def f(x):\n    while x < 10:\n        x = x * 2\n    return x\n"
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    assert float(ms.jit(namespace["f"], fullgraph=True)(tensor(3.0))) == 12.0
    hidden: dict[str, Any] = {}
    exec("def g(x):\n    return x * 2 + 1\n", hidden)
    assert float(ms.jit(hidden["g"])(tensor(3.0))) == 7.0
    exec("def h(x):\n    return x * 2 if x > 0 else x\n", hidden)
    assert float(ms.jit(hidden["h"])(tensor(3.0))) == 6.0
    assert "the truth of a tensor" in ms.explain(hidden["h"], tensor(3.0)).breaks[0].reason


def test_containers_of_arguments() -> None:
    @ms.jit(fullgraph=True)
    def f(d: Any, *rest: Any, scale: Any = 1.0, **more: Any) -> Any:
        return d["x"] * scale + rest[0][1] + more["z"]

    x = tensor(2.0)
    y, z = tensor(5.0), tensor(1.0)
    assert float(f({"x": x}, [1, y], scale=3.0, z=z)) == 12.0
    assert float(f({"x": y}, [1, x], scale=3.0, z=z)) == 18.0
    assert count(f) == 1


def test_changing_an_argument_list_falls_back() -> None:
    @ms.jit
    def f(items: list[Any]) -> Any:
        items.append(items[0] * 2)
        return items[-1]

    items = [tensor(2.0)]
    assert float(f(items)) == 4.0
    assert len(items) == 2


def test_many_shapes_and_types() -> None:
    f = ms.jit(lambda x: x + x)
    for n in (1, 2, 3):
        for dtype in (np.float32, np.int32):
            x = np.arange(n, dtype=dtype)
            found = f(ms.Tensor(x))
            assert found.asnumpy().dtype == dtype
            np.testing.assert_array_equal(found.asnumpy(), 2 * x)
    assert count(f) == 6


def test_threads() -> None:
    f = ms.jit(lambda x: ops.sum(x * 2))
    results: dict[int, float] = {}

    def work(n: int) -> None:
        results[n] = float(f(ms.Tensor(np.full(n + 1, 1.0, np.float32))))

    threads = [threading.Thread(target=work, args=(n % 4,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: 2.0 * (n + 1) for n in range(4)}


def test_instances_are_not_kept_alive() -> None:
    class Holder:
        @ms.jit
        def method(self, x: Any) -> Any:
            return x * 2

    holder = Holder()
    holder.method(tensor(1.0))
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_explain_shows_graph_captures_and_guards() -> None:
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="weight")

    def f(x: Any) -> Any:
        w.set_data(w + x)
        return w * FACTOR

    account = ms.explain(f, tensor(1.0, 1.0))
    assert w.asnumpy().tolist() == [1.0, 2.0]
    assert account.captures == [[w]] and account.writes == [[w]]
    assert (
        "def f(x: float32[2]" in account.text and "FACTOR is 2.0" in account.text and "changes weight" in account.text
    )
    assert account.breaks == []
    assert isinstance(ms.jit(f), Jit)
