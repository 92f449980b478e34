"""Data parallel training in functions, eager and compiled, as the tutorials of MindSpore write it.

mycel launch -n 4 tests/parallel/programs/functional_data_parallel.py FOLDER
"""

import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.distributed import DistributedDataParallel


def network():
    return nn.SequentialCell(nn.Dense(16, 8), nn.ReLU(), nn.Dense(8, 4))


def create_dataset(rank, size):
    draw = np.random.RandomState(3)
    data = (draw.randn(64, 16).astype(np.float32), draw.randint(0, 4, 64).astype(np.int32))
    made = ds.NumpySlicesDataset(data, ["x", "y"], num_shards=size, shard_id=rank, shuffle=False)
    return made.batch(16 // size)


def with_reducer(rank, size):
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True)
    net, loss_fn = network(), nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    reducer = nn.DistributedGradReducer(optimizer.parameters)

    @ms.jit
    def step(x, y):
        loss, grads = grad_fn(x, y)
        grads = reducer(grads)
        optimizer(grads)
        return loss

    for x, y in create_dataset(rank, size):
        step(x, y)
    ms.reset_auto_parallel_context()
    return net


def with_wrapper(rank, size):
    net = DistributedDataParallel(network())
    loss_fn, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1)
    grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    for x, y in create_dataset(rank, size):
        _, grads = grad_fn(x, y)
        optimizer(grads)
        net.zero_grad()
    with net.no_sync():
        own, _ = grad_fn(x, y)
    assert own.shape == ()
    return net.module


def main(folder):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    init()
    rank, size = get_rank(), get_group_size()
    for name, way in (("reducer", with_reducer), ("wrapper", with_wrapper)):
        ms.set_seed(1)
        ms.save_checkpoint(way(rank, size), os.path.join(folder, f"{name}_{rank}.ckpt"))
    print(f"rank {rank} of {size} is done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
