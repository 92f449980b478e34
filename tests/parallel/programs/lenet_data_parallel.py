"""LeNet trained by data parallelism, as programs for MindSpore are written.

mycel launch -n 2 tests/parallel/programs/lenet_data_parallel.py FOLDER
"""

import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import context, nn
from mindspore.common.initializer import Normal
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint, TimeMonitor

ROWS = 24


class LeNet5(nn.Cell):
    def __init__(self, num_class=10, num_channel=1):
        super().__init__()
        self.conv1 = nn.Conv2d(num_channel, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init=Normal(0.02))
        self.fc2 = nn.Dense(120, 84, weight_init=Normal(0.02))
        self.fc3 = nn.Dense(84, num_class, weight_init=Normal(0.02))

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def create_dataset(batch_size, rank_id, rank_size):
    draw = np.random.RandomState(0)
    images = draw.rand(4 * ROWS, 32, 32, 1).astype(np.float32)
    labels = draw.randint(0, 10, 4 * ROWS).astype(np.int32)
    data = ds.GeneratorDataset(
        list(zip(images, labels)), ["image", "label"], num_shards=rank_size, shard_id=rank_id, shuffle=False
    )
    data = data.map(operations=ds.vision.HWC2CHW(), input_columns="image")
    return data.batch(batch_size, drop_remainder=True)


def main(folder):
    context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
    init()
    rank_id, rank_size = get_rank(), get_group_size()
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(
        parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=rank_size
    )
    ms.set_seed(1)
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = Model(net, loss, opt, metrics={"Accuracy": nn.Accuracy()})
    dataset = create_dataset(ROWS // rank_size, rank_id, rank_size)
    config = CheckpointConfig(save_checkpoint_steps=dataset.get_dataset_size(), keep_checkpoint_max=1)
    saved = ModelCheckpoint(prefix="lenet", directory=os.path.join(folder, f"ckpt_{rank_id}"), config=config)
    model.train(2, dataset, callbacks=[LossMonitor(), TimeMonitor(), saved], dataset_sink_mode=True)
    accuracy = model.eval(dataset)["Accuracy"]
    print(f"rank {rank_id} of {rank_size}: accuracy {accuracy:.3f}", flush=True)
    context.reset_auto_parallel_context()


if __name__ == "__main__":
    main(sys.argv[1])
