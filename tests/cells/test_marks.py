"""What Cells say of themselves, and marks that MindSpore's programs set on them.

The values are MindSpore 2.10's on a CPU.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn
from mycel._src.tensors.cells.compatibility_methods import MixedPrecisionType


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.pair = ms.ParameterTuple([Parameter(Tensor(1.0), name="u"), Parameter(Tensor(2.0), name="w")])
        self.l = nn.Dense(2, 2)
        self.seq = nn.SequentialCell(nn.ReLU())

    def construct(self, x: Any, scale: Any = 1.0) -> Any:
        return self.seq(self.l(x)) * scale


def test_scopes_are_paths_of_names_and_classes() -> None:
    net = Net()
    assert net.get_scope() is None and net.l.get_scope() is None
    net.generate_scope()
    found = [(path, cell.get_scope()) for path, cell in net.cells_and_names()]
    assert found == [
        ("", None),
        ("l", "Default/l-Dense"),
        ("seq", "Default/seq-SequentialCell"),
        ("seq.0", "Default/seq-SequentialCell/0-ReLU"),
    ]


def test_a_cell_knows_when_it_was_made_and_whether_it_was_compiled() -> None:
    before = time.time_ns()
    net = Net()
    assert before <= net.create_time <= time.time_ns() and not net.compiled
    x = Tensor(np.ones((1, 2), np.float32))
    net(x)
    assert not net.compiled
    net.compile(x)
    assert net.compiled
    assert net.exist_names == {"u", "w"} and nn.ReLU().exist_names == set()
    assert nn.Cell.T_destination.__name__ == "T_destination"


def test_precision_is_set_for_one_cell() -> None:
    net = Net()
    assert net.get_mixed_precision_type() is MixedPrecisionType.NOTSET
    net.l.set_mixed_precision_type(MixedPrecisionType.FP16)
    assert (
        net.l.get_mixed_precision_type() is MixedPrecisionType.FP16
        and net.get_mixed_precision_type() is MixedPrecisionType.NOTSET
    )
    assert net.l(Tensor(np.ones((1, 2), np.float32))).dtype is ms.float16
    net.l.set_mixed_precision_type(MixedPrecisionType.NOTSET)
    assert net.l(Tensor(np.ones((1, 2), np.float32))).dtype is ms.float32
    net.to_float(ms.bfloat16)
    assert net.l.get_mixed_precision_type() is MixedPrecisionType.BF16
    with pytest.raises(TypeError, match="MixedPrecisionType"):
        net.set_mixed_precision_type(ms.float16)


def test_run_construct_runs_hooks_and_casts() -> None:
    net = Net()
    net.register_forward_hook(lambda cell, inputs, output: output + 1)
    x = np.array([[1.0, -2.0]], np.float32)
    want = np.maximum(x @ net.l.weight.asnumpy().T + net.l.bias.asnumpy(), 0) * 3 + 1
    np.testing.assert_allclose(net.run_construct((Tensor(x),), {"scale": 3.0}).asnumpy(), want, rtol=1e-5)


@pytest.mark.parametrize("name", ["pipeline_stage", "pipeline_segment"])
def test_marks_of_pipelines_are_checked_and_kept(name: str) -> None:
    net = Net()
    with pytest.raises(AttributeError, match=name):
        getattr(net, name)
    setattr(net, name, 3)
    assert getattr(net, name) == 3 and not hasattr(net.l, name)
    for value, error in ((True, TypeError), ("a", TypeError), (1.5, TypeError), (-2, ValueError)):
        with pytest.raises(error):
            setattr(net, name, value)
    assert net.parameter_layout_dict == {} and net.parallel_parameter_name_list == ()


def test_offloading_takes_what_the_reference_takes() -> None:
    net = Net()
    for value in ("Auto", 0, 1, 20):
        assert net.offload(value) is None
    for value, error in (("x", ValueError), (-1, ValueError), (True, TypeError), (1.5, TypeError)):
        with pytest.raises(error):
            net.offload(value)
