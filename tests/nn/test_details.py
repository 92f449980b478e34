"""Details of layers, containers and optimizers that programs written for MindSpore 2.10 rely on."""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn
from mycel.experimental import optim


@pytest.mark.parametrize("kind, shape", [(nn.Conv1d, (3, 2, 3)), (nn.Conv1dTranspose, (2, 3, 3))])
def test_weights_of_line_convolutions_have_three_dimensions(kind: type[nn.Cell], shape: tuple[int, ...]) -> None:
    weight = Tensor(np.arange(18, dtype=np.float32).reshape(shape))
    layer = kind(2, 3, 3, weight_init=weight)
    assert layer.weight.shape == (*shape[:2], 1, 3) and layer.weight.asnumpy().ravel().tolist() == list(range(18))
    for wrong in (weight.expand_dims(2), weight[..., :2]):
        with pytest.raises(ValueError):
            kind(2, 3, 3, weight_init=wrong)


def test_containers_return_nothing_from_append() -> None:
    assert nn.CellList([nn.ReLU()]).append(nn.ReLU()) is None
    assert nn.SequentialCell(nn.ReLU()).append(nn.ReLU()) is None
    cells = nn.CellList()
    assert cells.extend([nn.ReLU()]) is cells


def test_ways_of_dividing_tables_have_names() -> None:
    names = "BATCH_SLICE FIELD_SLICE TABLE_ROW_SLICE TABLE_COLUMN_SLICE".split()
    assert [getattr(nn.EmbeddingLookup, name) for name in names] == [name.lower() for name in names]


def test_groups_are_shown_and_numbered() -> None:
    net = nn.Dense(2, 2)
    optimizer = optim.Adam(net.trainable_params(), lr=0.9)
    assert "    lr: 0.9\n" in repr(optimizer) and optimizer.group_start_id == [0, 2]
    optimizer.add_param_group({"params": [Parameter(Tensor([1.0]), name="z")], "lr": 0.01})
    assert "    lr: 0.01\n" in repr(optimizer) and optimizer.group_start_id == [0, 2, 3]


def test_an_update_returns_the_value() -> None:
    w = Parameter(Tensor([1.0]), name="w")
    value = Tensor([2.0])
    got = nn.ParameterUpdate(w)(value)
    assert got.tolist() == w.tolist() == [2.0] and not isinstance(got, Parameter)


def test_sparse_tensors_are_shown_without_commas() -> None:
    made = ms.COOTensor(Tensor([[0, 1], [1, 2]], ms.int32), Tensor([1.0, 2.0]), (3, 4))
    assert repr(made) == (
        "COOTensor(shape=[3, 4], dtype=Float32, indices=Tensor(shape=[2, 2], dtype=Int32, value=\n[[0 1]\n [1 2]]), "
        "values=Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00]))"
    )


def test_values_with_positions_are_shown_as_pairs() -> None:
    found = ms.mint.max(Tensor([[3.0, 1.0]]), 1)
    assert repr(found).startswith("(Tensor(shape=[1]") and found.values.tolist() == [3.0]


def test_types_of_numpy_functions() -> None:
    mnp = ms.numpy
    assert mnp.bincount(mnp.array([0, 1, 1])).dtype is ms.float32
    assert mnp.copysign(mnp.array([1, -1]), mnp.array([-1.0, 1.0])).dtype is ms.int32
    line = mnp.array([-1.0, 0.0, 1.0])
    assert mnp.piecewise(line, [line < 0, line >= 0], [-1, 1]).dtype is ms.int32
    assert mnp.piecewise(line, [line < 0], [lambda v: v * 2, 1]).tolist() == [-2.0, 1.0, 1.0]
