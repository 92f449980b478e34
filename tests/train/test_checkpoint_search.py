"""The newest checkpoint is that of the highest epoch and step, of whatever run and rank."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from mycel import nn, train
from mycel.dataset import NumpySlicesDataset

CHECKED = {"train.latest_checkpoint": "the names of files"}


def test_the_newest_is_that_of_the_highest_step(tmp_path: pathlib.Path) -> None:
    names = (
        "rank_0/net-2_3.ckpt rank_1/net-2_4.ckpt rank_0/net-1_900.ckpt rank_2/net_1-10_1.ckpt rank_1/net_1-10_1.ckpt "
        "other-11_1.ckpt net-12_1.txt .net-13_1.ckpt.mycel.tmp .net-13_1.ckpt net-9_x.ckpt net_7-9_8.safetensors"
    ).split()
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "net-99_1.ckpt").mkdir()
    assert train.latest_checkpoint(tmp_path, "net") == str(tmp_path / "rank_1" / "net_1-10_1.ckpt")
    assert train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "other-11_1.ckpt")
    assert train.latest_checkpoint(tmp_path, "n") == train.latest_checkpoint(tmp_path / "none") == ""
    with pytest.raises(TypeError, match="latest_checkpoint: directory must be a path, not int"):
        train.latest_checkpoint(3)  # type: ignore[arg-type]


def test_it_is_found_among_those_of_a_run(tmp_path: pathlib.Path) -> None:
    x = np.arange(3, dtype=np.float32).reshape(3, 1)
    data = NumpySlicesDataset((x, 2 * x), ["x", "y"]).batch(1)
    net = nn.Dense(1, 1)
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    for _ in range(2):
        keeper = train.ModelCheckpoint("net", str(tmp_path), train.CheckpointConfig(save_checkpoint_steps=2))
        model.train(2, data, callbacks=keeper)
    assert pathlib.Path(train.latest_checkpoint(tmp_path, "net")).name in ("net-2_3.ckpt", "net_1-2_3.ckpt")
