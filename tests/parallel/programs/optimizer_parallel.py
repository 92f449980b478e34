"""States of an optimizer in parts, recomputation and accumulated gradients, as the tutorials of
MindSpore write them, saved in parts and loaded for inference.

mycel launch -n 4 tests/parallel/programs/optimizer_parallel.py FOLDER
"""

import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.communication.comm_func import barrier
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import GradAccumulation
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint


class Block(nn.Cell):
    def __init__(self, seed, size, cut):
        super().__init__()
        draw = np.random.RandomState(seed)
        self.fc1_weight = Parameter(Tensor(0.1 * draw.randn(size, 2 * size), ms.float32), name="fc1_weight")
        self.fc2_weight = Parameter(Tensor(0.1 * draw.randn(2 * size, size), ms.float32), name="fc2_weight")
        self.matmul1 = ops.MatMul().shard(((cut, 1), (1, 1)))
        self.relu = ops.ReLU().shard(((cut, 1),))
        self.matmul2 = ops.MatMul().shard(((cut, 1), (1, 1)))

    def construct(self, x):
        return x + self.matmul2(self.relu(self.matmul1(x, self.fc1_weight)), self.fc2_weight)


class Network(nn.Cell):
    def __init__(self, cut):
        super().__init__()
        self.blocks = nn.CellList([Block(k, 16, cut) for k in range(2)])
        self.head = nn.Dense(16, 4, weight_init="normal", bias_init="zeros")
        self.blocks[0].recompute(mp_comm_recompute=False)

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def create_dataset():
    draw = np.random.RandomState(3)
    data = (draw.randn(64, 16).astype(np.float32), draw.randint(0, 4, 64).astype(np.int32))
    return ds.NumpySlicesDataset(data, ["x", "y"], shuffle=False).batch(16)


def train(folder):
    rank, size = get_rank(), get_group_size()
    net = Network(size)
    loss = GradAccumulation(nn.WithLossCell(net, nn.CrossEntropyLoss()), 2)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 0.01)
    parallel_net = AutoParallel(loss, parallel_mode="semi_auto")
    parallel_net.hsdp(threshold=0)
    parallel_net.dataset_strategy("full_batch")
    parallel_net.save_param_strategy_file(os.path.join(folder, "strategy", f"strategy_{rank}.ckpt"))
    parallel_net.comm_fusion({"allreduce": {"mode": "auto", "config": None}})
    model = Model(parallel_net, optimizer=optimizer)
    config = CheckpointConfig(save_checkpoint_steps=8, integrated_save=False)
    saved = ModelCheckpoint("parts", os.path.join(folder, f"rank_{rank}"), config)
    model.train(2, create_dataset(), callbacks=[LossMonitor(), saved], dataset_sink_mode=False)
    return net


def infer(folder, trained):
    """Predict with other strategies, by a checkpoint of the parts."""
    rank, size = get_rank(), get_group_size()
    x = Tensor(np.random.RandomState(5).randn(8, 16), ms.float32)
    net = Network(1)
    if size > 1:
        for block in net.blocks:
            block.matmul1.shard(((1, 1), (1, size)))
            block.relu.shard(((1, size),))
            block.matmul2.shard(((1, size), (size, 1)))
    parallel_net = AutoParallel(net, parallel_mode="semi_auto")
    parallel_net.dataset_strategy("full_batch")
    if size > 1:
        files = [os.path.join(folder, f"rank_{r}", "parts-2_4.ckpt") for r in range(size)]
        model = Model(parallel_net)
        layout = model.infer_predict_layout(x)
        strategy = os.path.join(folder, "strategy", "strategy_0.ckpt")
        ms.load_distributed_checkpoint(net, files, layout, strategy)
    else:
        ms.load_param_into_net(net, ms.load_checkpoint(os.path.join(folder, "rank_0", "parts-2_4.ckpt")))
    found = Model(parallel_net).predict(x).asnumpy()
    for name, value in trained.parameters_dict().items():
        np.testing.assert_allclose(net.parameters_dict()[name].asnumpy(), value.asnumpy(), atol=1e-6, err_msg=name)
    print(f"rank {rank} of {size} predicts {found.shape}", flush=True)
    if rank == 0:
        np.save(os.path.join(folder, "predicted.npy"), found)


def main(folder):
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_seed(2)
    trained = train(folder)
    # Each rank reads the files of all.
    barrier()
    infer(folder, trained)


if __name__ == "__main__":
    main(sys.argv[1])
