"""Products whose strategies the program says, as programs for MindSpore are written.

mycel launch -n 4 tests/parallel/programs/matmul_semi_auto.py FOLDER
"""

import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Callback, CheckpointConfig, LossMonitor, Model, ModelCheckpoint


class Net(nn.Cell):
    def __init__(self, strategy1, strategy2):
        super().__init__()
        draw = np.random.RandomState(2)
        self.weight1 = Parameter(Tensor(0.1 * draw.randn(16, 32), ms.float32), name="weight1")
        self.weight2 = Parameter(Tensor(0.1 * draw.randn(32, 8), ms.float32), name="weight2")
        self.matmul1 = ops.MatMul().shard(strategy1)
        self.relu = ops.ReLU().shard((strategy1[0][:1] + strategy1[1][1:],))
        self.matmul2 = ops.MatMul().shard(strategy2)

    def construct(self, x):
        return self.matmul2(self.relu(self.matmul1(x, self.weight1)), self.weight2)


class Losses(Callback):
    def __init__(self):
        self.found = []

    def on_train_step_end(self, run_context):
        self.found.append(float(run_context.original_args().net_outputs))


def create_dataset():
    draw = np.random.RandomState(3)
    data = (draw.randn(48, 16).astype(np.float32), draw.randn(48, 8).astype(np.float32))
    return ds.NumpySlicesDataset(data, ["x", "y"], shuffle=False).batch(12)


def main(folder):
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    rank, size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(
        parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL,
        device_num=size,
        full_batch=True,
        strategy_ckpt_save_file=os.path.join(folder, "strategy", f"strategy_{rank}.ckpt"),
    )
    half = size // 2 or 1
    net = Net(((half, 1), (1, min(size, 2))), ((1, half), (half, 1)))
    model = Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))
    config = CheckpointConfig(save_checkpoint_steps=8, integrated_save=False)
    losses = Losses()
    saved = ModelCheckpoint("parts", os.path.join(folder, f"rank_{rank}"), config)
    whole = ModelCheckpoint("whole", os.path.join(folder, f"whole_{rank}"), CheckpointConfig(save_checkpoint_steps=8))
    model.train(2, create_dataset(), callbacks=[LossMonitor(), losses, saved, whole], dataset_sink_mode=False)
    print(f"rank {rank} of {size}: {losses.found}", flush=True)
    if rank == 0:
        np.save(os.path.join(folder, "losses.npy"), losses.found)
    ms.reset_auto_parallel_context()


if __name__ == "__main__":
    main(sys.argv[1])
