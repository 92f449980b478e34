"""A training that goes on from its last checkpoint, on as many ranks as there are now.

    mycel launch -n 4 tests/parallel/programs/resume.py FOLDER LAST [WAYS [RANK:STEP]]

It trains until step LAST in each of the ways, and saves every second step in a folder for each
rank. The losses of rank 0 are added to FOLDER/WAY.txt, a line for each step. A RANK kills itself
after STEP.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, train
from mycel.communication import get_group_size, get_rank, init

ROWS, STEPS, EPOCHS = 12, 4, 3
random = np.random.RandomState(0)
X = random.randn(ROWS * STEPS, 8).astype("f4")
Y = random.randint(0, 4, ROWS * STEPS).astype("i4")
SHARDED = {"parallel_optimizer_config": {"parallel_optimizer_threshold": 0}, "enable_parallel_optimizer": True}
WAYS = {
    "data": {"parallel_mode": "data_parallel", "gradients_mean": True},
    "parts": {"parallel_mode": "semi_auto_parallel", "dataset_strategy": "data_parallel", **SHARDED},
    "full": {"parallel_mode": "semi_auto_parallel", "dataset_strategy": "full_batch", **SHARDED},
}


def data(way):
    """Shuffled batches: the rank's rows of each, or all of them."""
    ds.config.set_seed(11)
    count, own = (1, 0) if way == "full" else (get_group_size(), get_rank())
    # Any number of shards, be it one, divides the same order; a dataset without shards has another.
    rows = ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=True, num_shards=count, shard_id=own)
    return rows.batch(ROWS // count)


def model(way):
    ms.set_seed(3)
    # Masks are of positions in a batch, and only whole batches have their rows in one order.
    drop = nn.Dropout(p=0.3 if way == "full" else 0.0)
    network = nn.SequentialCell(nn.Dense(8, 24, activation="tanh"), drop, nn.Dense(24, 4))
    schedule = nn.cosine_decay_lr(0.001, 0.02, EPOCHS * STEPS, STEPS, 3)
    manager = train.DynamicLossScaleManager(2.0**10, 2, 3)
    optimizer = nn.Adam(network.trainable_params(), schedule)
    return train.Model(network, nn.CrossEntropyLoss(), optimizer, loss_scale_manager=manager)


def newest(folder):
    """The newest checkpoint of any rank, all of which are whole."""
    found = [
        (int(m[1]), int(m[2]), p) for p in folder.glob("rank_*/*.ckpt") if (m := re.search(r"-(\d+)_(\d+)", p.name))
    ]
    return max(found)[2] if found else None


def run(folder, way, last, victim):
    ms.set_auto_parallel_context(device_num=get_group_size(), **WAYS[way])
    (folder / way).mkdir(parents=True, exist_ok=True)
    made, batches = model(way), data(way)
    saved = newest(folder / way)
    if get_group_size() > 1:
        ms.ops.barrier()
    ms.manual_seed(5)
    if saved is not None:
        values = ms.load_checkpoint(str(saved))
        ms.load_param_into_net(made.train_network, values)
        ms.set_rng_state(values["random"])
        batches.set_init_step(int(values["step_num"]))

    def note(context):
        params = context.original_args()
        loss = params.net_outputs[0]
        if way == "data" and get_group_size() > 1:
            loss = ms.ops.AllReduce()(loss) / get_group_size()
        if get_rank() == 0:
            with open(folder / f"{way}.txt", "a", encoding="utf-8") as file:
                file.write(f"{params.cur_step_num} {float(loss)!r}\n")
        if (get_rank(), params.cur_step_num) == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        if params.cur_step_num == last:
            context.request_stop()

    info = ["epoch_num", "step_num", {"random": ms.default_generator}]
    config = train.CheckpointConfig(save_checkpoint_steps=2, append_info=info)
    keeper = train.ModelCheckpoint("net", str(folder / way / f"rank_{get_rank()}"), config)
    made.train(EPOCHS, batches, [keeper, train.LambdaCallback(on_train_step_end=note)])
    ms.reset_auto_parallel_context()


def main():
    folder, last = Path(sys.argv[1]), int(sys.argv[2])
    ways = sys.argv[3].split(",") if len(sys.argv) > 3 else list(WAYS)
    victim = tuple(map(int, sys.argv[4].split(":"))) if len(sys.argv) > 4 else None
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    for way in ways:
        run(folder, way, last, victim if way == ways[-1] else None)


if __name__ == "__main__":
    main()
