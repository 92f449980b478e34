"""`vmap` called from outside: what it takes and refuses, Cells, random numbers, effects, and other
transformations inside and around it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import CompileError, VmapError
from tests.language.harness import in_graph_mode
from tests.language.vmap_support import close, tensor

A = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -2.0], [-0.25, 0.75, 1.25], [2.5, -0.5, -1.0]], np.float32)
C = np.array([0.5, -1.5, 2.0, 0.25], np.float32)
Y = np.array([0.5, 2.0, -1.0], np.float32)


def modes(fn: Any) -> list[Any]:
    """A function as it is, compiled, and in GRAPH_MODE."""
    return [fn, ms.jit(fn), lambda *args: in_graph_mode(fn, list(args))]


# What it is.


def test_names_are_where_mindspore_has_them() -> None:
    assert ms.vmap is ms.ops.vmap
    import inspect

    parameters = inspect.signature(ms.vmap).parameters
    assert {n: p.default for n, p in parameters.items()} == {"fn": inspect.Parameter.empty, "in_axes": 0, "out_axes": 0}


def test_the_function_keeps_its_name() -> None:
    def scaled(x: Any) -> Any:
        """Twice."""
        return x * 2

    assert (ms.vmap(scaled).__name__, ms.vmap(scaled).__doc__) == ("scaled", "Twice.")


def test_a_function_is_compiled_once() -> None:
    def scaled(x: Any) -> Any:
        return x * 2

    first = ms.vmap(scaled, (0,))
    assert (
        ms.vmap(scaled, (0,)) is first and ms.vmap(scaled, [0]) is not first and ms.vmap(scaled, (0,), 1) is not first
    )
    wrapped = functools.wraps(scaled)(lambda x: x * 3)
    close(ms.vmap(scaled)(tensor(A)), A * 2)
    close(ms.vmap(wrapped)(tensor(A)), A * 3)


def test_keyword_arguments_are_shared() -> None:
    close(ms.vmap(lambda a, k=None: a * k)(tensor(A), k=tensor(Y)), A * Y)


def test_defaults_and_none() -> None:
    def one(a: Any, mask: Any = None, scale: float = 2.0) -> Any:
        return a * scale if mask is None else a * mask

    close(ms.vmap(one)(tensor(A)), A * 2)
    close(ms.vmap(one)(tensor(A), None), A * 2)
    close(ms.vmap(one, (0, 0, None))(tensor(A), tensor(A), 3), A * A)


def test_parameters_and_outside_tensors_of_any_value() -> None:
    p, outside = ms.Parameter(tensor(Y), name="p"), tensor(Y)
    fn = ms.vmap(lambda a: a * p + outside)
    close(fn(tensor(A)), A * Y + Y)
    p.set_data(tensor(Y * 3))
    outside[:] = 1.0
    close(fn(tensor(A)), A * Y * 3 + 1)
    close(ms.vmap(lambda row: row * 2)(ms.Parameter(tensor(A), name="q")), A * 2)


def test_element_types() -> None:
    for kind in (ms.float16, ms.bfloat16, ms.float64, ms.int8, ms.int64, ms.uint8):
        x = tensor(np.arange(6).reshape(2, 3)).astype(kind)
        found = ms.vmap(lambda r: r * 2 + r[0])(x)
        assert found.dtype is kind
        close(found.astype(ms.float64), np.arange(6).reshape(2, 3) * 2 + np.array([[0], [3]]))
    flags = tensor(np.array([[True, False], [True, True]]))
    assert ms.vmap(lambda r: r.all())(flags).asnumpy().tolist() == [False, True]


def test_sizes_may_change_and_be_one_or_none() -> None:
    fn = ms.vmap(lambda r, k: r * r.sum() + k, (0, None))
    for n in (4, 2, 3, 1, 0, 4):
        x = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
        close(fn(tensor(x), tensor(Y)), x * x.sum(1, keepdims=True) + Y)


def test_numbers_become_tensors() -> None:
    value, whole, truth = ms.vmap(lambda a: (2.5, 3, True))(tensor(C))
    assert (value.dtype, whole.dtype, truth.dtype) == (ms.float32, ms.int64, ms.bool_)
    assert value.asnumpy().tolist() == [2.5] * 4 and whole.asnumpy().tolist() == [3] * 4
    pair = ms.vmap(lambda a: (a, None))(tensor(C))
    assert pair[1] is None


# What it refuses.

REFUSED: list[tuple[Any, Any, str]] = [
    (
        lambda x, y: ms.vmap(lambda a, b: a + b)(x, y),
        (A, Y),
        r"differ: 4 on axis 0 of argument 0 \('a'\) of shape \(4, 3\), but 3 on axis 0 of argument 1 \('b'\)",
    ),
    (lambda x, y: ms.vmap(lambda a, b: a + b, (0,))(x, y), (A, A), "has 1 entry for 2 positional arguments"),
    (
        lambda x: ms.vmap(lambda a: a, 2)(x),
        (A,),
        r"axis 2 of argument 0 \('a'\), a tensor of shape \(4, 3\), which is out of range; use a value in \[-2, 2\)",
    ),
    (lambda x: ms.vmap(lambda a: a, -3)(x), (A,), "axis -3"),
    (lambda x: ms.vmap(lambda a: a)(x), (C[0],), "a scalar has no axes: give it None"),
    (lambda x: ms.vmap(lambda a: a, 0, 2)(x), (A,), "axis 2 of output 0, which has 2 dimensions"),
    (
        lambda x: ms.vmap(lambda a: (a, a), 0, (0, None))(x),
        (A,),
        "out_axes is None for output 1, which differs between examples",
    ),
    (
        lambda x: ms.vmap(lambda a: (a, a), 0, (0,))(x),
        (A,),
        r"out_axes has \(0,\), 1 entry, for the output, which is a tuple of 2",
    ),
    (lambda x: ms.vmap(lambda a: a, None)(x), (A,), "in_axes is None, which maps nothing"),
    (lambda x: ms.vmap(lambda a: a, (None,))(x), (A,), "maps nothing"),
    (
        lambda x: ms.vmap(lambda a: a, "0")(x),
        (A,),
        "in_axes must be an int, None, or tuples, lists and dicts of these, not '0'",
    ),
    (lambda x: ms.vmap(lambda a: a, True)(x), (A,), "not True"),
    (lambda x: ms.vmap(lambda a: a, 0, 1.5)(x), (A,), "out_axes must be an int"),
    (
        lambda x: ms.vmap(lambda a, b: a * b)(x, 2.0),
        (A,),
        r"argument 1 \('b'\) holds a float \(2.0\), which has no axis 0; pass a Tensor, or give it None",
    ),
    (lambda x: ms.vmap(lambda a: a)(np.ones((2, 3))), (A,), "holds a ndarray, which has no axis"),
    (
        lambda x: ms.vmap(lambda p: p[0], ((0, 0),))((x,)),
        (A,),
        r"\(0, 0\), 2 entries, for argument 0 \('p'\), which is a tuple of 1",
    ),
    (lambda x: ms.vmap(lambda p: p["k"], ({"j": 0},))({"k": x}), (A,), "which is a dict with the keys"),
    (lambda x: ms.vmap(lambda a: "text")(x), (A,), r"returns a str \('text'\); its outputs must be tensors or numbers"),
    (lambda x: ms.vmap(lambda a: None)(x), (A,), "returns None"),
    (lambda x: ms.vmap(lambda: x)(), (A,), "no argument is mapped"),
    (lambda x: ms.vmap(3), (A,), "fn must be a function, a Cell or a list of Cells, not 3"),
    (lambda x: ms.vmap([]), (A,), "of at least one"),
    (lambda x: ms.vmap([nn.ReLU(), 3]), (A,), "must consist of Cells"),
    (lambda x: ms.vmap(nn.CellList())(x), (A,), "is empty"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c[2][:30])
def test_refused(case: Any) -> None:
    fn, arrays, text = case
    for run in (fn, ms.jit(fn)):
        with pytest.raises(VmapError, match=text):
            run(*map(tensor, arrays))
    assert issubclass(VmapError, RuntimeError)


VALUES: list[tuple[str, Any]] = [
    ("item", lambda a: a[0].item()),
    ("asnumpy", lambda a: a.asnumpy()),
    ("float", lambda a: float(a[0])),
    ("int", lambda a: [1.0, 2.0][int(a[0])]),
    ("the truth of a tensor", lambda a: bool(a[0] > 0)),
    ("tolist", lambda a: a.tolist()),
]


@pytest.mark.parametrize("case", VALUES, ids=lambda c: c[0])
def test_a_value_that_differs_between_examples(case: Any) -> None:
    what, fn = case
    line = fn.__code__.co_firstlineno
    for run in (ms.vmap(fn), ms.jit(ms.vmap(fn)), ms.grad(lambda x: ms.vmap(fn)(x))):
        with pytest.raises(VmapError, match="differs between the examples of vmap") as caught:
            run(tensor(A))
        assert what in str(caught.value) and f"test_vmap_calls.py:{line}" in str(caught.value)


def test_a_size_that_differs_between_examples() -> None:
    for fn in (lambda a: ops.nonzero(a > 0), lambda a: a[a > 0], lambda a: ops.masked_select(a, a > 0)):
        with pytest.raises(VmapError, match="each example would have a size of its own"):
            ms.vmap(fn)(tensor(A))


def test_a_function_without_source() -> None:
    namespace: dict[str, Any] = {"F": ops}
    exec("def curve(a): return F.sin(a) * a.sum()\ndef decides(a): return a if a.sum() > 3 else -a", namespace)
    close(ms.vmap(namespace["curve"])(tensor(A)), np.sin(A) * A.sum(1, keepdims=True))
    with pytest.raises(VmapError, match="the truth of a tensor"):
        ms.vmap(namespace["decides"])(tensor(A))


def test_a_value_that_all_examples_share() -> None:
    scale = tensor(np.float32(3.0))

    def one(a: Any) -> Any:
        return a * scale.item() if Y.sum() > 0 and float(scale) > 1 else a

    close(ms.vmap(one)(tensor(A)), A * 3)
    close(ms.vmap(lambda a: a * (scale * 2).item())(tensor(A)), A * 6)


def test_an_assertion_and_an_exception() -> None:
    def checked(a: Any) -> Any:
        assert a.sum() > 100
        return a

    def shaped(a: Any) -> Any:
        if a.shape != (4,):
            raise ValueError(f"a row of {a.shape[0]}")
        return a

    def decided(a: Any) -> Any:
        if a.sum() > 1:
            raise ValueError("large")
        return a

    with pytest.raises(VmapError, match="an assertion"):
        ms.vmap(checked)(tensor(A))
    with pytest.raises(ValueError, match="a row of 3"):
        ms.vmap(shaped)(tensor(A))
    with pytest.raises(CompileError, match="decided by a tensor"):
        ms.vmap(decided)(tensor(A))


# Effects.


class _Counting(nn.Cell):
    def __init__(self, by_example: bool) -> None:
        super().__init__()
        self.seen = ms.Parameter(tensor(np.zeros(3, np.float32)), name="seen")
        self.by_example = by_example

    def construct(self, a: Any) -> Any:
        self.seen = self.seen + (a if self.by_example else 1.0)
        return a * 2


def test_state_changes_once_for_all_examples() -> None:
    for call in (lambda c: ms.vmap(c), lambda c: ms.jit(lambda x: ms.vmap(c)(x))):
        cell = _Counting(False)
        close(call(cell)(tensor(A)), A * 2)
        assert cell.seen.asnumpy().tolist() == [1.0, 1.0, 1.0]


def test_state_cannot_take_a_value_of_one_example() -> None:
    cell = _Counting(True)
    with pytest.raises(VmapError, match="'seen' is written with a value that differs between examples"):
        ms.vmap(cell)(tensor(A))
    assert cell.seen.asnumpy().tolist() == [0.0, 0.0, 0.0]


def test_normalisation_in_training_needs_statistics_of_all() -> None:
    net = nn.BatchNorm2d(2)
    x = tensor(np.random.default_rng(0).normal(size=(3, 4, 2, 5, 5)).astype(np.float32))
    close(ms.vmap(net)(x), np.stack([net(x[i]).asnumpy() for i in range(3)]))
    net.set_train()
    with pytest.raises(VmapError, match="differs between examples"):
        ms.vmap(net)(x)


def test_a_mapped_argument_is_written_in_place() -> None:
    def one(row: Any) -> Any:
        row[1] = row[0] * 10
        row.add_(1.0)
        return row * 2

    expected = A.copy()
    expected[:, 1] = expected[:, 0] * 10
    expected += 1
    for run in modes(ms.vmap(one)):
        x = tensor(A)
        close(run(x), expected * 2)
        close(x, expected)
    columns = tensor(A.T)
    ms.vmap(one, 1)(columns)
    close(columns, expected.T)


def test_a_view_inside_shares_the_memory_of_the_example() -> None:
    def one(m: Any) -> Any:
        first = m[0]
        first[1] = 9.0
        m.reshape(-1)[2] = 7.0
        return m.sum()

    t = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    x = tensor(t)
    sums = ms.vmap(one)(x)
    t[:, 0, 1:] = [9.0, 7.0]
    close(sums, t.sum((1, 2)))
    close(x, t)


def test_python_objects() -> None:
    kept: list[Any] = []
    count = {"calls": 0}

    def leaks(a: Any) -> Any:
        kept.append(a)
        return a

    def counts(a: Any) -> Any:
        count["calls"] = count["calls"] + 1
        return a

    with pytest.raises(VmapError, match="would keep a tensor"):
        ms.vmap(leaks)(tensor(A))
    assert kept == []
    close(ms.vmap(counts)(tensor(A)), A)
    assert count == {"calls": 1}


def test_containers_of_the_caller_stay_as_they_were() -> None:
    def one(parts: Any) -> Any:
        parts["new"] = parts["a"] * 2
        return parts.pop("a") + parts["new"]

    given = {"a": tensor(A)}
    close(ms.vmap(one)(given), A * 3)
    assert list(given) == ["a"]


def test_print_shows_every_example(capsys: Any) -> None:
    def one(v: Any) -> Any:
        print("value", v, "of", 4)
        return v + 1

    for run in (ms.vmap(one), ms.jit(ms.vmap(one))):
        close(run(tensor(C)), C + 1)
        assert capsys.readouterr().out.splitlines() == [f"value {v} of 4" for v in ("0.5", "-1.5", "2.0", "0.25")]
