"""A U-Net that finds shapes in noise: each pixel is background, disc, square or triangle.

Shapes are drawn on 32x32 pixels, one over another, as bright as each other, and covered by noise: a
single pixel tells little, and the kind of a shape shows only in its outline. The network
(Ronneberger, Fischer and Brox, "U-Net", 2015) goes down to a quarter of the size to see whole
shapes, and up again, where the features of each size from the way down keep the edges sharp.

    python examples/unet.py    # compiled; --mode pynative runs operation by operation

Score: intersection over union, the mean of the four classes over unseen pictures, at least 0.88.
"""

import argparse
import sys
import time

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.common.initializer import HeNormal

TARGET = 0.88
CLASSES = ["background", "disc", "square", "triangle"]
SIZE = 32


def draw(rng):
    """A picture float32 [1, 32, 32] with one or two shapes, and the class of each pixel, int32 [32,
    32].
    """
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    mask = np.zeros((SIZE, SIZE), np.int32)
    for _ in range(rng.integers(1, 3)):
        kind, radius = rng.integers(1, 4), rng.uniform(6, 10)
        turn, (row, column) = rng.uniform(0, 2 * np.pi), rng.uniform(6, SIZE - 6, 2)
        # A regular polygon is where no side's normal leads further out than its distance from the
        # centre.
        sides = {1: 64, 2: 4, 3: 3}[kind]
        angles = turn + 2 * np.pi * np.arange(sides)[:, None, None] / sides
        outwards = np.cos(angles) * (x - column) + np.sin(angles) * (y - row)
        inradius = radius * {1: 0.8, 2: 0.75, 3: 0.6}[kind]
        mask[outwards.max(axis=0) <= inradius] = kind
    picture = (mask > 0) + rng.normal(0, 0.3, mask.shape)
    return picture[None].astype(np.float32), mask


def pictures(count, rng):
    images, masks = zip(*(draw(rng) for _ in range(count)))
    return np.stack(images), np.stack(masks)


def double_convolution(in_channels, channels):
    """Two convolutions of 3x3, each normalised and rectified."""
    layers = []
    for width in (in_channels, channels):
        layers += [
            nn.Conv2d(width, channels, 3, pad_mode="same", weight_init=HeNormal()),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        ]
    return nn.SequentialCell(*layers)


class UNet(nn.Cell):
    """Pictures float32 [B, 1, H, W] to logits float32 [B, classes, H, W].

    H and W are multiples of 4.
    """

    def __init__(self, classes, widths=(16, 32, 64)):
        super().__init__()
        self.pool = nn.MaxPool2d(2, stride=2)
        self.down = nn.CellList([double_convolution(a, b) for a, b in zip((1, *widths), widths)])
        steps = list(zip(widths[::-1], widths[-2::-1]))
        self.up = nn.CellList([nn.Conv2dTranspose(a, b, 2, stride=2) for a, b in steps])
        self.merge = nn.CellList([double_convolution(2 * b, b) for _, b in steps])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def construct(self, x):
        features = [self.down[0](x)]
        for down in self.down[1:]:
            features.append(down(self.pool(features[-1])))
        x = features.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(ops.cat((features.pop(), up(x)), 1))
        return self.head(x)


def intersection_over_union(predicted, masks):
    """For each class: pixels of it in both, by pixels of it in either."""
    both = [np.sum((predicted == c) & (masks == c)) for c in range(len(CLASSES))]
    either = [np.sum((predicted == c) | (masks == c)) for c in range(len(CLASSES))]
    return np.array(both) / np.maximum(either, 1)


def main(argv=None):
    """Train and segment; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A U-Net that finds shapes in noise")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument(
        "--samples", type=int, default=3000, help="pictures to learn from; a tenth as many others are to test with"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    rng = np.random.default_rng(args.seed)
    train_data = ds.NumpySlicesDataset(pictures(args.samples, rng), ["image", "mask"], shuffle=True)
    train_data = train_data.batch(args.batch_size, drop_remainder=True)
    test_images, test_masks = pictures(max(args.samples // 10, 10), rng)
    steps = train_data.get_dataset_size()

    net = UNet(len(CLASSES))
    rates = nn.cosine_decay_lr(1e-5, 5e-3, args.epochs * steps, steps, args.epochs)
    optimizer = nn.Adam(net.trainable_params(), rates)
    train_step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    train_step.set_train(True)
    size = sum(parameter.size for parameter in net.trainable_params())
    print(
        f"U-Net, {size:,} parameters, {args.samples:,} pictures, {args.epochs} epochs of {steps} steps, {args.mode} "
        "mode"
    )

    losses, begun = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        losses += [train_step(image, mask) for image, mask in train_data.create_tuple_iterator(num_epochs=1)]
        recent = float(ops.stack(losses[-steps:]).mean())
        print(f"epoch {epoch:2}/{args.epochs}  loss {recent:.4f}  {time.perf_counter() - begun:.1f} s", flush=True)

    net.set_train(False)
    parts = [net(ms.Tensor(test_images[i : i + 50])).argmax(1).asnumpy() for i in range(0, len(test_images), 50)]
    each = intersection_over_union(np.concatenate(parts), test_masks)
    print(", ".join(f"{name} {value:.3f}" for name, value in zip(CLASSES, each)))
    score = float(each.mean())
    print(f"score: mean intersection over union {score:.4f} (at least {TARGET})")
    return [float(loss) for loss in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
