"""A residual network that reads handwritten digits, trained by `Model.train` with callbacks and
augmented images.

The network is that of He et al., "Deep residual learning for image recognition" (2016), section
4.2, made small: three stages of residual blocks with 16, 32 and 64 channels on images of 16x16
pixels. Of the 1,797 digits that come with the package four fifths are learned from, each time
cropped and erased at random, and one fifth is held out.

    python examples/resnet.py    # compiled; --mode pynative runs operation by operation

Score: accuracy on the held-out digits, at least 0.985.
"""

import argparse
import sys
import time

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.common.initializer import HeNormal
from mycel.dataset import vision
from mycel.dataset.digits import load_digits, stratified_split
from mycel.train import Callback, LossMonitor, Model

TARGET = 0.985


class ResidualBlock(nn.Cell):
    """relu(x + f(x)), where f is two convolutions of 3x3, each normalised over the batch."""

    def __init__(self, in_channels, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, pad_mode="same", weight_init=HeNormal())
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, pad_mode="same", weight_init=HeNormal())
        # The last scale starts at zero, so that each block begins as the identity (Goyal et al.,
        # 2017, section 5.1).
        self.norm2 = nn.BatchNorm2d(channels, gamma_init="zeros")
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.SequentialCell(
                nn.Conv2d(in_channels, channels, 1, stride, weight_init=HeNormal()), nn.BatchNorm2d(channels)
            )

    def construct(self, x):
        out = ops.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return ops.relu(out + self.shortcut(x))


class ResNet(nn.Cell):
    """Images float32 [N, 1, H, W] to logits float32 [N, classes]."""

    def __init__(self, blocks=(1, 1, 1), channels=(16, 32, 64), classes=10):
        super().__init__()
        self.stem = nn.SequentialCell(
            nn.Conv2d(1, channels[0], 3, pad_mode="same", weight_init=HeNormal()),
            nn.BatchNorm2d(channels[0]),
            nn.ReLU(),
        )
        stages, before = [], channels[0]
        for stage, (count, width) in enumerate(zip(blocks, channels)):
            for block in range(count):
                stages.append(ResidualBlock(before, width, 2 if stage > 0 and block == 0 else 1))
                before = width
        self.stages = nn.SequentialCell(*stages)
        self.head = nn.Dense(before, classes)

    def construct(self, x):
        x = self.stages(self.stem(x))
        return self.head(x.mean(axis=(2, 3)))


class Progress(Callback):
    """One line an epoch; keeps the losses of all steps."""

    def __init__(self):
        super().__init__()
        self.losses, self.begun = [], time.perf_counter()

    def on_train_step_end(self, run_context):
        self.losses.append(float(run_context.original_args().net_outputs))

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        loss, seconds = np.mean(self.losses[-params.batch_num :]), time.perf_counter() - self.begun
        print(f"epoch {params.cur_epoch_num:2}/{params.epoch_num}  loss {loss:.4f}  {seconds:.1f} s", flush=True)


def pipeline(images, labels, batch_size, train):
    """Batches of (image float32 [B, 1, 16, 16], label int32 [B]); for training in random order and
    augmented.
    """
    data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=train)
    operations = [vision.ToTensor(), vision.Normalize([0.3], [0.37], is_hwc=False)]
    if train:
        operations = [vision.RandomCrop(16, padding=2), *operations, vision.RandomErasing(0.3, (0.02, 0.15))]
    return data.map(operations, "image").batch(batch_size, drop_remainder=train)


def main(argv=None):
    """Train and evaluate; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A residual network on handwritten digits")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--samples", type=int, default=None, help="learn from the first so many images only")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    images, labels = load_digits(size=16)
    train_rows, test_rows = stratified_split(labels)
    train_rows = train_rows[: args.samples]
    train_data = pipeline(images[train_rows], labels[train_rows], args.batch_size, train=True)
    test_data = pipeline(images[test_rows], labels[test_rows], 100, train=False)

    network = ResNet()
    steps = train_data.get_dataset_size()
    rates = nn.cosine_decay_lr(1e-4, 0.1, args.epochs * steps, steps, args.epochs)
    optimizer = nn.Momentum(network.trainable_params(), rates, 0.9, weight_decay=5e-4, use_nesterov=True)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    model = Model(network, loss, optimizer, metrics={"accuracy"})
    size = sum(parameter.size for parameter in network.trainable_params())
    print(
        f"ResNet, {size:,} parameters, {len(train_rows):,} images, {args.epochs} epochs of {steps} steps, {args.mode} "
        "mode"
    )

    progress = Progress()
    model.train(
        args.epochs, train_data, callbacks=[progress, LossMonitor(0)]
    )  # LossMonitor stops at a loss that is not finite
    score = model.eval(test_data)["accuracy"]
    print(f"score: held-out accuracy {score:.4f} (at least {TARGET})")
    return progress.losses, score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
