"""Tracebacks end in the user's own lines, where errors are caught, shown, or shown by a thread."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel._src.foundation.python_runtime import tracebacks
from mycel.train import Model

X = ms.Tensor(np.ones((2, 3), np.float32))
Y = ms.Tensor(np.ones((2, 4), np.float32))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 2)

    def construct(self, x):
        return self.dense(x)


def rows(*shapes: tuple[int, ...]) -> Any:
    columns = tuple(np.ones((4, *s), np.float32) for s in shapes)
    return ds.NumpySlicesDataset(columns, ["x", "y"][: len(shapes)]).batch(2)


def fails(row):
    raise ZeroDivisionError("of the user's")


def written() -> None:
    Y[0, 7] = 1.0


def trained(**options: Any) -> None:
    net = Net()
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(1, rows((3,), (2,)), **options)


KINDS: dict[str, Callable[[], Any]] = {
    "operation": lambda: ops.matmul(X, X),
    "operator": lambda: X + Y,
    "reflected": lambda: np.ones((5, 5), np.float32).tolist() + X,
    "comparison": lambda: X < Y,
    "method": lambda: X.reshape(4, 4),
    "index": lambda: X[5],
    "write": written,
    "layer": lambda: nn.Dense(4, 2)(X),
    "network": lambda: Net()(X),
    "loss": lambda: nn.CrossEntropyLoss()(X, ms.Tensor([0, 7], ms.int32)),
    "loss of shapes": lambda: nn.MSELoss()(X, Y),
    "optimizer": lambda: nn.Adam(Net().trainable_params())((X,)),
    "gradient": lambda: ms.value_and_grad(Net())(X),
    "gradient of a function": lambda: ms.grad(lambda a: ops.matmul(a, a).sum())(X),
    "compiled": lambda: ms.jit(lambda a: ops.matmul(a, a))(X),
    "rows": lambda: list(ds.NumpySlicesDataset([1, 2], ["x"]).map(fails, "x").create_tuple_iterator()),
    "named rows": lambda: list(ds.NumpySlicesDataset([1, 2], ["x"]).map(fails, "x").create_dict_iterator()),
    "training": trained,
    "sinking": lambda: trained(dataset_sink_mode=True),
    "evaluation": lambda: Model(Net(), nn.MSELoss(), metrics={"mse"}).eval(rows((3,), (2,))),
    "prediction": lambda: Model(Net()).predict(X),
    "arguments of training": lambda: Model(Net()).train(0, rows((3,))),
}


def inner_frames(error: BaseException) -> list[str]:
    found = [f"{f.filename}:{f.name}" for f in traceback.extract_tb(error.__traceback__)]
    return [f for f in found if tracebacks.is_library(f.rpartition(":")[0])]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_caught_errors_have_no_inner_frames(kind: str, mode: int) -> None:
    ms.set_context(mode=mode)
    with pytest.raises(Exception) as info:
        KINDS[kind]()
    if sys.version_info >= (3, 11):
        assert inner_frames(info.value) == []
    else:
        assert len(inner_frames(info.value)) <= 1
    names = [f.name for f in traceback.extract_tb(info.value.__traceback__)]
    assert "<lambda>" in names or kind in ("write", "training")
    text = "".join(traceback.format_exception(info.value))
    assert "During handling" not in text
    if "rows" in kind:
        assert "in fails" in text and "of the user's" in text


def test_all_frames_are_there_if_asked_for(monkeypatch) -> None:
    monkeypatch.setenv("MYCEL_TRACEBACK", "full")
    with pytest.raises(ValueError) as info:
        ops.matmul(X, X)
    assert len(inner_frames(info.value)) > 5


def test_defects_keep_their_frames() -> None:
    with pytest.raises(AssertionError) as info:
        tracebacks.border(_asserting())()
    assert len(inner_frames(info.value)) >= 1


def _asserting() -> Callable[[], None]:
    """A function whose code lies in a file of the package."""
    namespace: dict[str, Any] = {}
    exec(compile("def broken():\n    assert False", tracebacks.PACKAGE + "core/none.py", "exec"), namespace)
    return namespace["broken"]


PROGRAM = """
import sys, threading
import numpy as np
import mycel as ms
from mycel import nn

def user_function():
    {call}

{run}
"""
CALLS = {
    "constructor": 'nn.Conv2d(1, "a", 3)',
    "function": "ms.numpy.concatenate([ms.numpy.ones((2, 3)), ms.numpy.ones((3, 4))], axis=0)",
    "file": 'ms.load_checkpoint("no-such-file.ckpt")',
}
RUNS = {
    "main": "user_function()",
    "thread": "thread = threading.Thread(target=user_function); thread.start(); thread.join()",
}


@pytest.mark.parametrize(("call", "run"), [("constructor", "main"), ("function", "thread"), ("file", "main")])
def test_what_is_shown_has_no_inner_frames(call: str, run: str, tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM).format(call=CALLS[call], run=RUNS[run]))
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True).stderr
    files = [line for line in shown.split("\n") if line.startswith("  File")]
    assert "user_function" in files[-1] and str(script) in files[-1], shown
    assert not any(tracebacks.PACKAGE in line for line in files), shown


class Shell:
    """What a shell of IPython has: `showtraceback`."""

    def __init__(self) -> None:
        self.shown: Any = None

    def showtraceback(self, exc_tuple: Any = None, tb_offset: Any = None) -> None:
        self.shown = exc_tuple


def test_a_shell_shows_no_inner_frames(monkeypatch) -> None:
    shell = Shell()
    tracebacks._install_in(shell)
    monkeypatch.setattr(sys, "last_traceback", None, raising=False)
    try:
        nn.Conv2d(1, "a", 3)
    except TypeError as error:
        before = error.__traceback__
        shell.showtraceback(tb_offset=1)
        kind, shown, trace = shell.shown
        assert kind is TypeError and shown is error and trace.tb_next is None
    assert sys.last_traceback is before and before.tb_next is not None
