"""What happens when objects are gone: no step of Python's, in which Ctrl-C would be lost."""

from __future__ import annotations

import ast
import gc
import pathlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation import bounded_caches
from mycel._src.foundation.files import fsspec_files
from mycel._src.foundation.python_runtime import finalization, scoped_process_settings
from mycel._src.foundation.system import locks
from mycel.dataset.utils import LineReader
from mycel.mindrecord.tfrecord import _Opened
from mycel.train._background import Ahead, Later

PACKAGE = pathlib.Path(ms.__file__).parent
# What has callbacks written in Python.
CLASSES = {"finalize", "WeakSet", "WeakValueDictionary", "WeakKeyDictionary", "WeakMethod"}
# Methods of C's that take a reference behind their other arguments, and do not fail.
METHODS = {"pop", "discard", "append", "put"}
# Other functions of C's, and the one that hands on what it is given.
FUNCTIONS = {"runtime().end_program", "_DESTROYS(address)", "ref(owner, function)", "_begin"}


def is_of_c(function: ast.expr) -> bool:
    if isinstance(function, ast.Call) and ast.unparse(function.func) in ("partial", "functools.partial"):
        function = function.args[0]
    return isinstance(function, ast.Attribute) and function.attr in METHODS or ast.unparse(function) in FUNCTIONS


def finalizers(source: str) -> list[str]:
    """What of a source is run in Python when an object is gone."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "__del__":
            found.append(f"{node.lineno}: __del__")
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in CLASSES
            or isinstance(node, ast.Name)
            and node.id in CLASSES
        ):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module == "weakref":
            found += [f"{node.lineno}: {a.name}" for a in node.names if a.name in CLASSES]
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            called = ast.unparse(node.func)
            if called in ("ref", "weakref.ref", "_Keyed", "_End", "weakref.proxy", "at_end", "ends.at_end"):
                if not is_of_c(node.args[1]) and ast.unparse(node) not in FUNCTIONS:
                    found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def test_nothing_is_run_in_python_when_objects_are_gone() -> None:
    found = {}
    for file in PACKAGE.rglob("*.py"):
        source = file.read_text()
        if ("weakref" in source or "__del__" in source or "at_end" in source) and (lines := finalizers(source)):
            found[file.relative_to(PACKAGE).as_posix()] = lines
    assert not found, found


@pytest.mark.parametrize(
    "line",
    [
        "class A:\n    def __del__(self): ...",
        "import weakref; weakref.finalize(a, print)",
        "from weakref import WeakSet",
        "import weakref; weakref.ref(a, lambda _: None)",
        "from weakref import ref; ref(a, self.ended)",
        "from mycel._src.foundation.python_runtime import finalization as ends; ends.at_end(a, self.close)",
    ],
)
def test_finalizers_are_seen(line: str) -> None:
    assert finalizers(line)
    assert not finalizers("ref(a, table.discard); weakref.ref(a, functools.partial(table.pop, 1)); weakref.ref(a)")


class Thing:
    pass


def living() -> Any:
    thing = Thing()
    known.add(thing)
    return thing


def interned() -> Any:
    thing = Thing()
    by_name.enter("a", thing)
    return thing


def of_object() -> Any:
    thing = Thing()
    names.of(thing, lambda: "name")
    return thing


def earlier_of_object() -> Any:
    thing = Thing()
    names.of(thing, lambda: "name")
    others.extend(Thing() for _ in range(8))
    for other in others[-8:]:
        names.of(other, lambda: "other")
    return thing


def with_task() -> Any:
    thing = Thing()
    finalization.when_gone(thing, int)
    return thing


def in_block() -> Any:
    block = setting.block()
    block.__enter__()
    return block


def opened() -> Any:
    return _Opened(__file__)


def lines() -> Any:
    reader = LineReader(__file__)
    reader.readline(1)
    return reader


def iterator(debug: bool = False, apart: bool = False) -> Any:
    data = ms.dataset.NumpySlicesDataset(np.arange(100), ["x"], shuffle=False).map(
        int_of, ["x"], num_parallel_workers=2
    )
    made = data.create_tuple_iterator(output_numpy=True)
    if debug:
        made.produce_here()
    next(made)
    return made


def int_of(x: Any) -> Any:
    return x + 1


def later() -> Any:
    made = Later()
    made(int)
    return made


def program() -> Any:
    function = ms.jit(lambda x: ms.ops.tanh(x @ x).sum())
    function(ms.Tensor(np.ones((40, 40), np.float32)))
    return function


class Bound:
    @ms.jit
    def compute(self, x: Any) -> Any:
        return x * 3


def method() -> Any:
    made = Bound()
    made.compute(ms.Tensor([1.0, 2.0]))
    return made


def parameter() -> Any:
    net = ms.nn.Dense(3, 2)
    ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(ms.Tensor(np.ones((2, 3), np.float32)))
    return net


known, by_name, others = finalization.Living[Thing](), finalization.Interned[str, Thing](), []
names = bounded_caches.RememberedOf[str]("names of things in a test", 8)
state = {"level": 1}
setting = scoped_process_settings.WhileOpen(lambda: state["level"], lambda n: state.update(level=n), lambda n: 9)
MAKES: dict[str, Callable[[], Any]] = {
    "living": living,
    "interned": interned,
    "of an object": of_object,
    "earlier of an object": earlier_of_object,
    "a task": with_task,
    "a lock": locks.reentrant,
    "a condition": locks.condition,
    "a block": in_block,
    "a file of records": opened,
    "lines": lines,
    "an iterator": iterator,
    "an iterator of this thread": lambda: iterator(True),
    "ahead": lambda: Ahead(iter([(n, 8) for n in range(100)]), 3),
    "later": later,
    "asker": fsspec_files._Asker,
    "a program": program,
    "a method": method,
    "a parameter": parameter,
}


@pytest.mark.parametrize("kind", MAKES)
def test_objects_end_without_a_step_of_python(kind: str) -> None:
    """A handler of signals runs where a function of Python's begins, and nowhere in those of C."""
    made = [MAKES[kind]()]
    gone = weakref.ref(made[0])
    called = []

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            called.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    gc.collect()
    gc.disable()
    # A thread that is just given an item still has it.
    sys.setprofile(watch)
    try:
        made.clear()
        if gone() is not None:
            gc.collect()
    finally:
        sys.setprofile(None)
        gc.enable()
    ours = [place for place in called if str(PACKAGE) in place or "weakref" in place]
    assert gone() is None and not ours, called
    finalization.settle()
    assert state == {"level": 1}


def test_tasks_are_done_once_by_a_thread() -> None:
    done, over = [], threading.Event()
    thing, kept = Thing(), Thing()
    task = finalization.when_gone(thing, lambda: (done.append(threading.get_ident()), over.set()))
    now, never = finalization.when_gone(kept, done.append, "now"), finalization.when_gone(kept, done.append, "never")
    assert task.alive and now.alive
    del thing
    assert over.wait(60) and done.pop() != threading.get_ident() and not task.alive
    now(), now(), never.cancel()
    del kept
    finalization.settle()
    assert done == ["now"]


def test_a_task_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda found: said.append(found.exc_type))
    thing = Thing()
    finalization.when_gone(thing, lambda: 1 / 0)
    del thing
    finalization.settle()
    assert said == [ZeroDivisionError]
