"""The first operation at which two programs part."""

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops

CHECKED = {"diverge": "programs that differ at a known operation"}


def test_equal_programs_agree_in_other_steps(tmp_path):
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3))
    x = ms.Tensor(np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32))
    path = str(tmp_path / "f.mindir")
    ms.export(net, x, file_name=path, file_format="MINDIR", for_mindspore=True)
    found = ms.diverge(net, ms.load(path), [x])
    assert found.agrees and str(found).startswith("the programs agree") and found.results[0] < 1e-6


def test_the_first_difference_is_named():
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])

    def one(x):
        y = ops.sin(x) + 1
        return ops.matmul(y, y) - ops.exp(y)

    def other(x):
        y = 1 + ops.sin(x)
        return ops.matmul(y, y) - ops.exp(y * 1.01)

    found = ms.diverge(one, other, x)
    assert (found.agrees, found.operation, found.nearest, found.shape) == (False, "exp", "exp", (2, 2))
    assert 0 < found.error < 1 and len(found.results) == 1 and "test_program_comparison.py" in found.place
    assert "part at exp[2, 2]" in str(found)
    assert ms.diverge(one, other, x, rtol=1).agrees


def test_a_changed_weight_is_found_in_a_called_graph(tmp_path):
    net = nn.SequentialCell(nn.Dense(3, 3), nn.Tanh(), nn.Dense(3, 2))
    x = ms.Tensor(np.ones((1, 3), np.float32))
    ms.export(net, x, file_name=str(tmp_path / "f"), file_format="MINDIR")
    loaded = ms.load(tmp_path / "f.mindir")
    net[2].weight.set_data(net[2].weight + 1)
    found = ms.diverge(loaded, net, [x])
    assert not found.agrees and found.operation in ("transpose", "matmul")


def test_arguments():
    with pytest.raises(TypeError, match=r"inputs\[0\] must be a Tensor"):
        ms.diverge(ops.exp, ops.sin, [1.0])
    with pytest.raises(ValueError, match="give 1 and 2 tensors"):
        ms.diverge(ops.exp, lambda x: (x, x), ms.Tensor([1.0]))
