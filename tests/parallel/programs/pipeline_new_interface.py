"""A pipeline by `AutoParallel`, as the tutorials of MindSpore write it.

mycel launch -n 4 tests/parallel/programs/pipeline_new_interface.py FOLDER
"""

import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.nn.utils import no_init_parameters
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline


class Layer(nn.Cell):
    def __init__(self, seed, rows, columns):
        super().__init__()
        draw = np.random.RandomState(seed)
        self.weight = Parameter(Tensor(0.2 * draw.randn(rows, columns), ms.float32), name="weight")
        self.matmul = ops.MatMul()

    def construct(self, x):
        return self.matmul(x, self.weight)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer1 = Layer(1, 16, 32)
        self.relu1 = nn.ReLU()
        self.layer2 = Layer(2, 32, 32)
        self.relu2 = nn.ReLU()
        self.layer3 = Layer(3, 32, 4)

    def construct(self, x):
        x = self.relu1(self.layer1(x))
        x = self.relu2(self.layer2(x))
        return self.layer3(x)


def create_dataset():
    draw = np.random.RandomState(4)
    data = (draw.randn(48, 16).astype(np.float32), draw.randint(0, 4, 48).astype(np.int32))
    return ds.NumpySlicesDataset(data, ["image", "label"], shuffle=False).batch(16)


def main(folder):
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_seed(1)
    rank, size = get_rank(), get_group_size()
    with no_init_parameters():
        net = Network()
        optimizer = nn.SGD(net.trainable_params(), 1e-1)
    stages = 2 if size > 1 else 1
    if size > 1:
        net.layer1.matmul.shard(((size // 2, 1), (1, 1)))
        net.layer3.matmul.shard(((1, size // 2), (size // 2, 1)))
    names = ("layer1", "relu1", "layer2", "relu2", "layer3")
    config = {f"_backbone.{name}": 0 if k < 2 else stages - 1 for k, name in enumerate(names)}
    net_with_loss = Pipeline(nn.WithLossCell(net, nn.CrossEntropyLoss()), 4, stage_config=config)

    def forward_fn(inputs, target):
        return net_with_loss(inputs, target)

    grad_fn = ops.value_and_grad(forward_fn, None, net.trainable_params())
    reducer = nn.PipelineGradReducer(optimizer.parameters)

    @ms.jit
    def train_one_step(inputs, target):
        loss, grads = grad_fn(inputs, target)
        grads = reducer(grads)
        optimizer(grads)
        return loss, grads

    parallel_net = AutoParallel(train_one_step, parallel_mode="semi_auto")
    parallel_net.pipeline(stages=stages, scheduler="1f1b", output_broadcast=True)
    losses = []
    for _ in range(2):
        for image, label in create_dataset():
            loss, _ = parallel_net(image, label)
            losses.append(float(loss))
    print(f"rank {rank} of {size}: {losses}", flush=True)
    if rank == 0:
        np.save(os.path.join(folder, "losses.npy"), losses)
    ms.save_checkpoint(net, os.path.join(folder, f"whole_{rank}.ckpt"))


if __name__ == "__main__":
    main(sys.argv[1])
