"""Operators in graph files: what is loaded computes the same, and hostile files do no harm."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, te
from mycel.formats.exporting import model_of
from mycel.formats.graph_files.graph_file import GraphFileError
from tests.formats.test_validation import content_of, loaded, sealed
from tests.te.cases import CASES

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


class _Net(nn.Cell):
    """An operator of a case as a network, or the gradients of the sum of its squares."""

    def __init__(self, name: str, gradient: bool) -> None:
        super().__init__()
        self.case, self.gradient = CASES[name], gradient

    def construct(self, *tensors: Any) -> Any:
        if self.gradient:
            return ms.grad(self.total)(*tensors)
        return self.results(*tensors)

    def results(self, *tensors: Any) -> Any:
        rest = iter(tensors)
        return self.case.operator(*[next(rest) if isinstance(a, np.ndarray) else a for a in self.case.arguments])

    def total(self, *tensors: Any) -> Any:
        found = self.results(*tensors)
        return sum([(x * x).sum() for x in (found if isinstance(found, tuple) else (found,))])

    @property
    def inputs(self) -> list[Any]:
        return [ms.Tensor(a) for a in self.case.arguments if isinstance(a, np.ndarray)]


NAMES = ("backward_substitution", "cholesky", "geometric_mean", "scattered", "tridiagonal", "moments", "histogram")


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_loaded_is_what_was_exported(name: str, gradient: bool, tmp_path: Path) -> None:
    if gradient and not CASES[name].smooth:
        return
    net = _Net(name, gradient)
    ms.export(net, *net.inputs, file_name=str(tmp_path / "a"), file_format="MINDIR")
    got, want = nn.GraphCell(ms.load(str(tmp_path / "a.mindir")))(*net.inputs), net(*net.inputs)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-12, atol=1e-14)


@te.operator
def clipped(x):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        y[i] = min(x[i], 1.0)
    return y


@clipped.schedule
def _lanes(s):
    s.vectorize("i")


@clipped.derivative
def _ones(x, y, dy):
    dx = te.empty(x.shape)
    dx[i] = 3 * dy[i]
    return dx


class _Clipped(nn.Cell):
    def construct(self, x: Any) -> Any:
        return clipped(x)


X = ms.Tensor(np.array([0.5, 2.0, -1.0], np.float32))


def test_derivatives_of_the_user_and_other_formats(tmp_path: Path) -> None:
    ms.export(_Clipped(), X, file_name=str(tmp_path / "a"), file_format="MINDIR")
    net = nn.GraphCell(ms.load(str(tmp_path / "a.mindir")))
    assert net(X).tolist() == [0.5, 1.0, -1.0]
    assert ms.grad(lambda x: net(x).sum())(X).tolist() == [3.0, 3.0, 3.0]
    # Without its schedule it is a minimum, which ONNX has.
    ms.export(_Clipped(), X, file_name=str(tmp_path / "a"), file_format="ONNX")
    serial = _Net("cholesky", False)
    with pytest.raises(NotImplementedError, match="the operator cholesky"):
        ms.export(serial, *serial.inputs, file_name=str(tmp_path / "b"), file_format="ONNX")
    with pytest.raises(NotImplementedError, match="the operator cholesky"):
        ms.export(serial, *serial.inputs, file_name=str(tmp_path / "b"), file_format="MINDIR", for_mindspore=True)


def _form(header: dict[str, Any]) -> dict[str, Any]:
    return header["graphs"][-1]["nodes"][0][2]["program"]["program"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.update(name=3), "has not the parts"),
        (lambda f: f["arrays"][0][0].__setitem__(0, "x.0"), "no name"),
        (lambda f: f["arrays"][1][0].__setitem__(0, "x"), "two arrays x"),
        (lambda f: f["arrays"][1][0].__setitem__(2, [-4]), "has the size -4"),
        (lambda f: f["body"][0].__setitem__(2, -2), "may be negative"),
        (lambda f: f["body"][0].__setitem__(3, 1 << 40), "64 bits"),
        (lambda f: f["body"][0].__setitem__(1, "x"), None),
        (lambda f: f["body"][0].__setitem__(1, "other"), "is no index of a loop around"),
        (lambda f: f["body"][0][7][0].__setitem__(1, "x"), "writes float32 to x"),
        (lambda f: f["body"][0][7][0].__setitem__(3, [0, 0]), "of 2 axes"),
        (lambda f: f["formulas"].append(["op", "float32", [0], "host_call", []]), None),
        (lambda f: [x.__setitem__(3, "print") for x in f["formulas"] if x[0] == "op"], "no operation on elements"),
        (lambda f: [x.__setitem__(1, "int32") for x in f["formulas"] if x[0] == "op"], "is no int32"),
        (lambda f: f["formulas"][-1].__setitem__(2, [99]), "has no formula 99"),
        (lambda f: f.update(body=[["for"]]), "in the place of a list"),
        (lambda f: f.update(derivative=f["derivative"] | {"derivative": {}}), "has not the parts"),
    ],
)
def test_forged_operators(change: Any, message: Any, tmp_path: Path) -> None:
    header, rest = content_of(model_of(_Clipped(), (X,)))
    header = copy.deepcopy(header)
    change(_form(header))
    if message is None:
        try:
            loaded(tmp_path, header, rest)
        except GraphFileError:
            pass
        return
    with pytest.raises(GraphFileError, match=message):
        loaded(tmp_path, header, rest)


def test_programs_changed_at_random_stay_in_their_arrays(tmp_path: Path) -> None:
    """In a process with checks of all accesses: a file is refused, or what it holds runs."""
    for name in ("cholesky", "scattered", "histogram"):
        net = _Net(name, False)
        header, rest = content_of(model_of(net, tuple(net.inputs)))
        (tmp_path / f"{name}.mindir").write_bytes(sealed(header, rest))
    program = """
        import json, random, sys
        from pathlib import Path
        import mycel as ms
        from mycel import nn
        from mycel.formats.graph_files.graph_file import GraphFileError
        from tests.formats.test_loop_serialization import _Net, _form
        from tests.formats.test_validation import loaded
        folder, refused, ran = Path(sys.argv[1]), 0, 0
        for name in ("cholesky", "scattered", "histogram"):
            whole = (folder / f"{name}.mindir").read_bytes()
            length = int.from_bytes(whole[12:20], "little")
            text, rest, inputs = whole[20 : 20 + length], whole[20 + length : -32], _Net(name, False).inputs
            for seed in range(60):
                r, header = random.Random(seed), json.loads(text)
                places, stack = [], [_form(header), *header["dims"]]
                while stack:
                    top = stack.pop()
                    for k in range(len(top)) if isinstance(top, list) else top:
                        places.append((top, k))
                        if isinstance(top[k], (list, dict)):
                            stack.append(top[k])
                values = [-1, 0, 1, 2, 7, 1 << 33, "x", "set", "add", None, True, [], {"dim": 0}, {"dim": 1}]
                for _ in range(r.choice((1, 1, 2))):
                    top, k = r.choice(places)
                    top[k] = r.choice([*values, r.choice(places)[0]])
                try:
                    net = nn.GraphCell(loaded(folder, json.loads(json.dumps(header)), rest))
                except (GraphFileError, RecursionError, ValueError):
                    refused += 1
                    continue
                try:
                    found = net(*inputs)
                    [x.asnumpy() for x in (found if isinstance(found, tuple) else (found,))]
                except (ValueError, IndexError, TypeError):
                    pass
                ran += 1
        print(refused, ran)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        env={**os.environ, "MYCEL_CHECK": "bounds", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    refused, ran = map(int, done.stdout.split())
    assert refused > 100 and ran > 5
