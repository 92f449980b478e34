"""What type checkers see of the package: a user's program has types where they matter, and mistakes
in it are found.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PROGRAM = """\
import numpy as np
import mycel as ms
import mycel.dataset as ds
from mycel import Parameter, Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 3)
        self.relu = ops.ReLU()
        self.scale = Parameter(Tensor(np.ones(3, np.float32)), name="scale")

    def construct(self, x: Tensor) -> Tensor:
        return self.relu(self.dense(x)) * self.scale


x = ops.ones((2, 4), ms.float32)
reveal_type(x)  # Tensor
reveal_type(x.sum())  # Tensor
reveal_type(x.mean(axis=0, keep_dims=True))  # Tensor
reveal_type(x.reshape(4, 2).astype(ms.float16))  # Tensor
reveal_type(x @ x.T)  # Tensor
reveal_type(x[0] + 1)  # Tensor
reveal_type(x > 0)  # Tensor
reveal_type(x.topk(2))  # tuple[Tensor, Tensor]
reveal_type(x.asnumpy())  # ndarray
reveal_type(ops.relu(x))  # Tensor
reveal_type(ops.ReLU()(x))  # Tensor
reveal_type(ops.MatMul(transpose_b=True)(x, x))  # Tensor
reveal_type(ops.matmul(x, x.T))  # Tensor
reveal_type(ms.mint.sort(x).values)  # Tensor
net = Net()
reveal_type(net.trainable_params())  # list[Parameter]
reveal_type(net(x))  # Tensor
reveal_type(net.dense(x))  # Tensor
reveal_type(ms.grad(net)(x))  # Tensor
reveal_type(ms.value_and_grad(net, None, net.trainable_params())(x))  # tuple[Tensor, tuple[Tensor, ...]]
reveal_type(net.scale.add_(1.0))  # Tensor
optimizer = nn.Adam(net.trainable_params(), 1e-3)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
data = ds.NumpySlicesDataset({"x": np.ones((8, 4), np.float32), "y": np.zeros(8, np.int32)}, shuffle=False)
reveal_type(data.map(lambda a: a * 2, "x").batch(2))  # Dataset
model = ms.Model(net, loss, optimizer)
reveal_type(model)  # Model
model.train(1, data.batch(2))


@ms.jit(fullgraph=True)
def double(a: Tensor) -> Tensor:
    return a * 2


reveal_type(double(x))  # Tensor
double(x, x)  # error: call-arg
x.smu()  # error: attr-defined
x.reshap(2, 4)  # error: attr-defined
x.mean(axes=0)  # error: call-arg
ops.ReLUU()  # error: attr-defined
ops.MatMul(transposed=True)  # error: call-arg
ops.MatMul(transpose_a="yes")  # error: arg-type
ops.relu()  # error: call-arg
nn.Dens(3, 4)  # error: attr-defined
ms.grd(net)  # error: attr-defined
data.bach(2)  # error: attr-defined
net(x, x)  # error: call-arg
net.dense("x")  # error: arg-type
"""
# What mypy calls an error, as pyright calls it.
RULES = {"call-arg": "CallIssue", "attr-defined": "AttributeAccessIssue", "arg-type": "ArgumentType"}


def test_the_stubs_are_fresh():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> tuple[Path, Path]:
    """Install the package from a wheel; return the environment's interpreter and a program."""
    folder = tmp_path_factory.mktemp("installed")
    source, environment = folder / "source", folder / "environment"
    shutil.copytree(ROOT / "mycel", source / "mycel", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    (site,) = environment.glob("lib/python*/site-packages")
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = run(*command, "--disable-pip-version-check", "--target", str(site), str(source))
    assert done.returncode == 0, done.stderr
    # What the package needs is taken from the environment of the tests; it comes behind.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    program = folder / "program" / "program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    return python, program


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=environment)


def compare(said: dict[int, str], output: str) -> None:
    """Compare what a type checker said of the program, by line, with the program's comments."""
    wrong = []
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        code, _, wanted = line.partition("  # ")
        got = said.get(number, "")
        if (wanted or got) and (not got.startswith(wanted) or not wanted):
            wrong.append(f"{code}: {got or 'nothing'} instead of {wanted or 'nothing'}")
    assert not wrong, "\n".join(wrong) + output


def test_mypy_types_a_program_and_finds_its_mistakes(installed):
    python, program = installed
    options = ["--no-error-summary", "--config-file=", "--cache-dir", str(program.parent / "cache")]
    done = run("-m", "mypy", *options, "--python-executable", str(python), str(program), cwd=program.parent)
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        found = re.match(r"\S*program\.py:(\d+): (?:note: Revealed type is \"(.*)\"|error: .*\[([\w-]+)\])$", line)
        if found:
            said[int(found[1])] = re.sub(r"\b[a-z_.]+\.(?=[A-Za-z])", "", found[2] or f"error: {found[3]}")
    compare(said, done.stdout + done.stderr)


def test_pyright_types_a_program_and_finds_its_mistakes(installed):
    python, program = installed
    (program.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    options = ["--outputjson", "--pythonpath", str(python)]
    done = run("-m", "basedpyright", *options, str(program), cwd=program.parent)
    names = {f"report{name}": rule for rule, name in RULES.items()}
    said: dict[int, str] = {}
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        revealed = re.match(r'Type of ".*" is "(.*)"$', found["message"])
        told = revealed[1] if revealed else f"error: {names.get(found['rule'], found['rule'])}"
        said[found["range"]["start"]["line"] + 1] = told
    compare(said, done.stdout)
