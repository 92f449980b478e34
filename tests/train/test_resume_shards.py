"""Trainings that go on from a checkpoint with another number of shards: every row once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel.train import CheckpointConfig, LambdaCallback, Model, ModelCheckpoint

ROWS = 67


def trained(folder: Path, shards: int, shard: int, batch: int, steps: int, saved: Any, sink: bool) -> tuple[Any, Any]:
    """Train one shard for some steps of the epoch: its rows, and the newest checkpoint."""
    ds.config.set_seed(5)
    x = np.arange(ROWS, dtype=np.float32)[:, None]
    data = ds.NumpySlicesDataset((x, x), ["x", "y"], num_shards=shards, shard_id=shard)
    data = data.map(lambda row: row + 0, ["x"]).batch(batch)
    if saved is not None:
        values = ms.load_checkpoint(saved)
        data.set_init_state(values["dataset_state"])
    net = nn.Dense(1, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-5))
    begin, rows = data.get_init_step(), []

    def seen(context: Any) -> None:
        facts = context.original_args()
        rows.extend(facts.train_dataset_element[0].asnumpy().ravel().astype(int).tolist())
        if facts.cur_step_num - begin == steps:
            context.request_stop()

    config = CheckpointConfig(save_checkpoint_steps=1, append_info=["dataset_state", "step_num"])
    keeper = ModelCheckpoint("net", str(folder / f"{shards}-{shard}"), config)
    options = {"dataset_sink_mode": True, "sink_size": 1} if sink else {}
    count = data.get_dataset_size() if sink else 1
    model.train(count, data, callbacks=[keeper, LambdaCallback(on_train_step_end=seen)], **options)
    return rows, keeper.latest_ckpt_file_name


@pytest.mark.parametrize("sink", [False, True])
def test_rows_over_four_two_and_three_shards(tmp_path: Path, sink: bool) -> None:
    found: list[int] = []
    saved = None
    for shards, batch, steps in ((4, 3, 2), (2, 5, 2), (3, 2, 1), (3, 2, 100)):
        parts = [trained(tmp_path, shards, n, batch, steps, saved, sink) for n in range(shards)]
        found += [row for rows, _ in parts for row in rows]
        saved = parts[0][1]
    # Three shards of what is left are made equally long.
    assert set(found) == set(range(ROWS)) and len(found) - ROWS == -(ROWS - 24 - 20) % 3
