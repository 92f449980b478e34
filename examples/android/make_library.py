"""The network of the Android example: learned in a moment, and written as a library.

    python make_library.py --out cpp/lib                           # for Android on 64-bit Arm
    python make_library.py --target x86-64-v2 --out here/lib        # for this machine

It prints the accuracy on held-out digits.
"""

import argparse

import numpy as np

import mycel as ms
from mycel import nn
from mycel.dataset.digits import load_digits, stratified_split
from mycel.deploy import build, cpp


def digits():
    """Images float32 [N, 1, 8, 8] within 0 .. 1 and labels, for training and held out."""
    images, labels = load_digits(size=8)
    images = images.transpose(0, 3, 1, 2).astype(np.float32) / 255
    train, test = stratified_split(labels)
    return images[train], labels[train], images[test], labels[test]


def learned(images, labels, epochs):
    """A small convolutional network that was trained on them."""
    ms.set_seed(0)
    net = nn.SequentialCell(
        nn.Conv2d(1, 16, 3, has_bias=True),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Dense(256, 64),
        nn.ReLU(),
        nn.Dense(64, 10),
    )
    update = nn.Adam(net.trainable_params(), 2e-3)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), update)
    random = np.random.default_rng(0)
    for _ in range(epochs):
        for rows in random.permutation(len(images))[: len(images) // 32 * 32].reshape(-1, 32):
            step(ms.Tensor(images[rows]), ms.Tensor(labels[rows]))
    return net.set_train(False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="cpp/lib")
    parser.add_argument("--target", default="android-arm64")
    parser.add_argument("--epochs", type=int, default=10)
    given = parser.parse_args()
    images, labels, held, held_labels = digits()
    net = learned(images, labels, given.epochs)
    print(f"accuracy {(net(ms.Tensor(held)).asnumpy().argmax(1) == held_labels).mean():.3f}")
    cpp(build(net, ms.Tensor(held[:1]), target=given.target, name="digits_net"), given.out)
