"""What type checkers see of the package: a user's program has types where they matter, and mistakes
in it are found.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
"""


def test_the_stubs_are_fresh():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr


def test_a_program_has_types_and_its_mistakes_are_found(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file=", "--follow-imports=silent", str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        found = re.match(r"\S*program\.py:(\d+): (?:note: Revealed type is \"(.*)\"|error: .*\[([\w-]+)\])$", line)
        if found:
            said[int(found[1])] = re.sub(r"\b[a-z_.]+\.(?=[A-Za-z])", "", found[2] or f"error: {found[3]}")
    wrong = []
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        code, _, wanted = line.partition("  # ")
        got = said.get(number, "")
        if (wanted or got) and not got.startswith(wanted):
            wrong.append(f"{code}: {got or 'nothing'} instead of {wanted}")
        elif not wanted and got:
            wrong.append(f"{code}: {got}")
    assert not wrong, "\n".join(wrong) + done.stderr
