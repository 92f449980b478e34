"""Python's statements in compiled functions: with, try, raise, assert, match, and generators."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from tests.language.harness import Programs, X, Y
from tests.language.python_support import Mode, Space, Version

programs = Programs()
add = programs.add


# with, try, raise, assert.


class Logged:
    """A context manager that keeps what happened."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __enter__(self) -> Logged:
        self.seen.append("in")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.seen.append("out" if kind is None else kind.__name__)
        return kind is ValueError


@add((X,))
def with_statements(x: Any) -> Any:
    with Logged() as a, Logged() as b:
        y = x * len(a.seen)
        a.seen.append("body")
    with Logged() as c:
        y = y + 1
        raise ValueError("left")
    return y, a.seen, b.seen, c.seen


@contextlib.contextmanager
def scaled(k: float, seen: list[str]) -> Any:
    seen.append("begin")
    try:
        yield k
    finally:
        seen.append("end")


@add((X,))
def context_managers_of_generators(x: Any) -> Any:
    seen: list[str] = []
    with scaled(2.0, seen) as k:
        y = x * k * len(seen)
    try:
        with scaled(3.0, seen) as k:
            raise KeyError("k")
    except KeyError as error:
        return y, seen, error.args


@add((X,))
def leaving_a_with_statement_early(x: Any) -> Any:
    kept = Logged()
    for i in range(5):
        with kept:
            if i == 1:
                continue
            if i == 3:
                break
            x = x * 2
    return x, kept.seen


@add((X, 0), (X, 1), (X, 2), (X, 3))
def try_statements(x: Any, kind: int) -> Any:
    seen = []
    try:
        if kind == 1:
            raise ValueError("one", kind)
        if kind == 2:
            x = x * {"a": 1}["b"]
        if kind == 3:
            x = x / [1, 2][kind]
    except ValueError as error:
        seen.append(str(error.args))
        x = x * 2
    except (KeyError, IndexError) as error:
        seen.append(type(error).__name__)
        x = x * 3
    else:
        x = x * 5
    finally:
        seen.append("end")
    return x, seen


@add((X,))
def nested_tries_and_reraises(x: Any) -> Any:
    seen = []

    def f(y: Any) -> Any:
        try:
            try:
                raise KeyError("inner")
            except KeyError as error:
                seen.append("first")
                raise RuntimeError("outer") from error
            finally:
                seen.append("finally")
        except RuntimeError as error:
            seen.append(type(error.__cause__).__name__)
            return y * 2
        finally:
            seen.append("last")

    return f(x), seen


class Missing(LookupError):
    """An error of the program's own."""

    def __init__(self, name: str, x: Any) -> None:
        super().__init__(f"no {name}")
        self.x = x


@add((X,))
def errors_that_carry_tensors(x: Any) -> Any:
    def find(name: str) -> Any:
        if name != "a":
            raise Missing(name, x * 2)
        return x

    try:
        return find("a") + find("b")
    except LookupError as error:
        return error.x, str(error), isinstance(error, Missing)


@add((X,))
def returns_from_finally_and_loops(x: Any) -> Any:
    def f() -> Any:
        for i in range(3):
            try:
                if i == 1:
                    return x * i
            finally:
                x_seen.append(i)
        return None

    x_seen: list[int] = []
    return f(), x_seen


@add((X,))
def suppressed_errors(x: Any) -> Any:
    with contextlib.suppress(ZeroDivisionError):
        x = x * (1 // 0)
    return x + 1


@add((X,))
def assertions(x: Any) -> Any:
    assert x.shape == (3,), "the shape"
    try:
        assert len(x) > 5, f"only {len(x)}"
    except AssertionError as error:
        return x * 2, str(error).split("\n")[0]


# Walrus, match, annotations, conditional expressions.


@add((X,), grad=0)
def walrus(x: Any) -> Any:
    if (y := x * 2).sum() > 0:
        z = y + 1
    else:
        z = y - 1
    while (n := len(str(z.shape))) < 3:
        z = z + 1
    return z, y, n, (lambda a: (b := a * 3) + b)(x)


def _matched(x: Any, value: Any) -> Any:
    match value:
        case 0 | 1:
            return x * 2
        case int(n) if n > 10:
            return x * n
        case str() as name:
            return x * len(name)
        case []:
            return x - 1
        case [a]:
            return x + a
        case [a, _, *rest]:
            return x * a + len(rest)
        case {"kind": "scale", "by": k, **rest}:
            return x * k + len(rest)
        case Version(major, minor=m):
            return x * major + m
        case Mode.ADD:
            return x + x
        case (None, b) | {"b": b}:
            return x * b
        case None:
            return x * 0
        case _:
            return x


@add(
    *[
        (X, v)
        for v in (
            0,
            1,
            12,
            5,
            "abc",
            [],
            [2.0],
            [2.0, 1, 2, 3],
            {"kind": "scale", "by": 3.0, "z": 1},
            Version(3, 4),
            Mode.ADD,
            {"b": 7.0},
            None,
            2.5,
        )
    ]
)
def match_statements(x: Any, value: Any) -> Any:
    return _matched(x, value)


@add((X, ("add", X)), (X, ("pair", X, Y)), oracle=lambda x, op: x + X if op[0] == "add" else x * X - Y)
def match_with_tensors_inside(x: Any, op: Any) -> Any:
    match op:
        case ("add", y):
            return x + y
        case ("pair", y, z) if y.shape == z.shape:
            return x * y - z
    return None


@add((X,))
def annotations(x: Any) -> Any:
    k: float = 2.0
    y: Any | None
    items: list[Any] = [x]
    y = items[0] * k

    def f(a: Tensor, *, b: "int" = 3) -> Tensor:  # noqa: UP037
        return a * b

    return f(y)


@add((X, Y), grad=(0, 1))
def conditional_expressions_and_short_circuit(x: Any, y: Any) -> Any:
    table: dict[str, Any] = {}
    a = table.get("none") or x
    b = x.shape and y
    c = None if not table else 1 / 0
    return a * b, c, (x if len(x) > 2 else y), 1 < 2 < 3, not table, x is not None and y is not x


# Generators.


def doubling(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 2
        yield x
    return "done"


def flat(tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from flat(item)
    else:
        yield tree


def averager() -> Any:
    total, count = 0.0, 0
    while True:
        value = yield (total / count if count else None)
        if value is None:
            return
        total, count = total + value, count + 1


@add((X,))
def generators(x: Any) -> Any:
    found = list(doubling(x, 3))
    steps = doubling(x, 5)
    first = next(steps)
    for v in steps:
        if v.shape != (3,):
            break
        first = first + v
    return found, first, sum(flat([x, [x * 2, (x * 3,)]])), dict(enumerate(doubling(x, 2)))


@add((X, Y), grad=(0, 1))
def generators_that_are_sent_values(x: Any, y: Any) -> Any:
    mean = averager()
    next(mean)
    a = mean.send(x)
    b = mean.send(y)
    ended = "no"
    try:
        mean.send(None)
    except StopIteration:
        ended = "yes"
    return a, b, ended


@add((X,))
def generators_with_try_and_results(x: Any) -> Any:
    seen: list[str] = []

    def guarded() -> Any:
        try:
            yield x
            yield x * 2
        except KeyError:
            seen.append("caught")
            yield x * 3
        finally:
            seen.append("closed")

    def outer() -> Any:
        result = yield from doubling(x, 1)
        yield x * len(result)

    g = guarded()
    a = next(g)
    b = g.throw(KeyError("k"))
    g.close()
    return a, b, seen, list(outer())


@add((X, Y), grad=(0, 1))
def closures_over_loop_variables(x: Any, y: Any) -> Any:
    late = [lambda: x * i for i in range(3)]  # noqa: B023
    early = [lambda i=i: y * i for i in range(3)]
    return [f() for f in late], [f() for f in early]


@add((X,))
def globals_and_nested_scopes(x: Any) -> Any:
    def outer(a: Any) -> Any:
        def inner() -> Any:
            nonlocal a
            a = a * 2
            return a

        inner()
        return inner() + a

    return outer(x), [(lambda: v)() for v in range(2)]


@add((X,), breaks=True, oracle=lambda x: (x * 3.0, 5, [("a", 1)]))
def namespaces_as_dicts(x: Any) -> Any:
    space = Space(x, 1)
    k = eval("1 + 2")
    scope: dict[str, Any] = {}
    exec("a = 5", scope)
    return x * k, scope["a"], [(n, v) for n, v in {"a": 1, **{}}.items() if n in vars(space)]


test_programs = programs.test()


def test_errors_of_a_program_are_its_own() -> None:
    def fails(x: Any, kind: int) -> Any:
        if kind == 0:
            raise Missing("it", x)
        if kind == 1:
            return x * undefined_name  # noqa: F821
        if kind == 2:
            a, b = [x, x, x]
            return a + b
        if kind == 3:
            return {"a": x}["b"]
        assert kind != 4, "four"
        return x.no_such_attribute

    f = ms.jit(fails, fullgraph=True)
    for kind, error, text in (
        (0, Missing, "no it"),
        (1, NameError, "undefined_name"),
        (2, ValueError, "too many values to unpack"),
        (3, KeyError, "b"),
        (4, AssertionError, "four"),
        (5, AttributeError, "no_such_attribute"),
    ):
        for call in (fails, f, f):
            with pytest.raises(error, match=text):
                call(Tensor(X), kind)


def test_effects_on_outer_containers_happen_at_each_call() -> None:
    seen: list[Any] = []
    table: dict[str, Any] = {}

    def keep(x: Any) -> Any:
        seen.append(x * 2)
        table.setdefault("n", []).append(len(seen))
        return x

    f = ms.jit(keep)
    for i in range(3):
        f(Tensor(X) + i)
    assert len(seen) == 3 and table["n"] == [1, 2, 3]
    np.testing.assert_allclose(seen[2].asnumpy(), (X + 2) * 2)
