"""Fine-tuning from a checkpoint: a network that knows the digits 0 to 4 learns 5 to 9 from twenty
images of each.

First a convolutional network is trained on five digits and saved. Its checkpoint is loaded into a
network with a new last layer: the first layers are frozen, those between learn slowly and the last
one fast, as groups of one optimizer. The gradients of several small batches are added up for one
step of it. All that a run has become is written every few batches (weights, sums of gradients, the
state of the optimizer), so that an interrupted run goes on from there and ends in the very same
weights; the program interrupts itself once, and compares with a run that was let alone.

    python examples/finetune.py    # compiled; --mode pynative runs operation by operation

Score: accuracy on all other images of 5 to 9, at least 0.93. The checkpoints are written to
mycel-demo/ (--out).
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import Parameter, nn, ops
from mycel.dataset.digits import load_digits
from mycel.train import Model

TARGET = 0.93
SHOWN = 20  # images of each new digit
ACCUMULATE = 5  # small batches for one step of the optimizer
SAVE_EVERY = 13  # small batches; most of these checkpoints fall between two steps of the optimizer


class Network(nn.Cell):
    """Images float32 [N, 1, 16, 16] to logits float32 [N, 5]."""

    def __init__(self):
        super().__init__()
        self.first = nn.SequentialCell(*self.block(1, 16), *self.block(16, 32))
        self.middle = nn.SequentialCell(*self.block(32, 64), nn.Flatten(), nn.Dense(64 * 2 * 2, 64), nn.ReLU())
        self.last = nn.Dense(64, 5)

    @staticmethod
    def block(before, after):
        convolution = nn.Conv2d(before, after, 3, pad_mode="same", weight_init="HeNormal")
        return convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2, 2)

    def construct(self, x):
        return self.last(self.middle(self.first(x)))


class FineTuning(nn.Cell):
    """A small batch of (image, label) to its loss; every `ACCUMULATE` calls the weights move.

    Its parameters are all its state.
    """

    def __init__(self, checkpoint):
        super().__init__()
        net = Network()
        known = ms.load_checkpoint(str(checkpoint), choice_func=lambda name: not name.startswith("last."))
        missing, _ = ms.load_param_into_net(net, known)
        assert sorted(missing) == ["last.bias", "last.weight"]
        self.net = net  # from here on its parameters are called "net.first.0.weight" and so on
        for parameter in self.net.first.get_parameters():
            parameter.requires_grad = False
        groups = [
            {"params": self.net.middle.trainable_params(), "lr": 1e-3},
            {"params": self.net.last.trainable_params(), "lr": 1e-2},
        ]
        self.optimizer = nn.AdamWeightDecay(groups, weight_decay=1e-2)
        self.weights = self.optimizer.parameters
        self.sums = self.weights.clone("sum", "zeros")
        self.batches = Parameter(ms.Tensor(0, ms.int32), name="batches", requires_grad=False)
        self.loss = nn.CrossEntropyLoss()
        self.gradient = ms.value_and_grad(lambda image, label: self.loss(self.net(image), label), None, self.weights)
        self.net.set_train(True)
        self.net.first.set_train(False)  # the means and variances of frozen layers stay as well

    def construct(self, image, label):
        loss, gradients = self.gradient(image, label)
        for total, gradient in zip(self.sums, gradients):
            ops.assign_add(total, gradient / ACCUMULATE)
        ops.assign_add(self.batches, 1)
        if self.batches % ACCUMULATE == 0:
            self.optimizer(self.sums)
            for total in self.sums:
                ops.assign(total, ops.zeros_like(total))
        return loss


class Interrupted(Exception):
    """Stands for what ends a run at any moment."""


def run(training, images, labels, args, saved, stop=None):
    """Go on to the last batch; gives the losses of the batches taken.

    Raises Interrupted after batch number `stop`.
    """
    losses, begun, per_epoch = [], time.perf_counter(), len(images) // args.batch_size
    for batch in range(int(training.batches), args.epochs * per_epoch):
        epoch, within = divmod(batch, per_epoch)
        # The order is that of the epoch's number alone: nothing of it has to be saved.
        order = np.random.default_rng([args.seed, epoch]).permutation(len(images))
        rows = order[within * args.batch_size : (within + 1) * args.batch_size]
        losses.append(float(training(ms.Tensor(images[rows]), ms.Tensor(labels[rows]))))
        done = batch + 1
        if done % SAVE_EVERY == 0:
            ms.save_checkpoint(training, str(saved))
        if done == stop:
            raise Interrupted
        if done % (5 * per_epoch) == 0:
            recent, seconds = np.mean(losses[-per_epoch:]), time.perf_counter() - begun
            print(f"epoch {epoch + 1:3}/{args.epochs}  loss {recent:.4f}  {seconds:.1f} s", flush=True)
    return losses


def train_first(images, labels, path, epochs):
    """Train a network on the digits 0 to 4 and save it."""
    net = Network()
    data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(32, drop_remainder=True)
    model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-3), metrics={"accuracy"})
    model.train(epochs, data)
    print(f"digits 0 to 4: accuracy {model.eval(data)['accuracy']:.4f} on what was learned, saved as {path}")
    ms.save_checkpoint(net, str(path))


def main(argv=None):
    """Train, interrupt, resume and evaluate; gives the losses of the batches and the score."""
    parser = argparse.ArgumentParser(description="Fine-tuning from a checkpoint")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--first-epochs", type=int, default=10, help="epochs on the digits 0 to 4")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mycel-demo"), help="where to write the checkpoints")
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    first, saved = args.out / "digits-0-4.ckpt", args.out / "finetune.ckpt"

    pixels, labels = load_digits(size=16)
    images = (pixels.transpose(0, 3, 1, 2) / 127.5 - 1).astype(np.float32)
    train_first(images[labels < 5], labels[labels < 5], first, args.first_epochs)

    images, labels = images[labels >= 5], labels[labels >= 5] - 5
    order = np.random.default_rng(args.seed).permutation(len(labels))
    shown = np.concatenate([order[labels[order] == digit][:SHOWN] for digit in range(5)])
    others = np.setdiff1d(order, shown)
    batches = args.epochs * (len(shown) // args.batch_size)

    ms.set_seed(args.seed)
    whole = FineTuning(first)
    frozen = sum(parameter.size for parameter in whole.net.get_parameters() if not parameter.requires_grad)
    learning = sum(weight.size for weight in whole.weights)
    print(f"digits 5 to 9: {len(shown)} images, {learning:,} weights learn, {frozen:,} are frozen, {args.mode} mode")
    losses = run(whole, images[shown], labels[shown], args, saved)

    ms.set_seed(args.seed)
    try:
        run(FineTuning(first), images[shown], labels[shown], args, saved, stop=batches // 2 + 3)
    except Interrupted:
        print(f"the same again, interrupted after batch {batches // 2 + 3}")
    resumed = FineTuning(first)
    missing, unused = ms.load_param_into_net(resumed, ms.load_checkpoint(str(saved)))
    assert not missing and not unused
    print(f"going on from {saved}, written after batch {int(resumed.batches)}")
    rest = run(resumed, images[shown], labels[shown], args, saved)
    alike = rest == losses[-len(rest) :] and all(
        np.array_equal(one.asnumpy(), other.asnumpy())
        for one, other in zip(whole.get_parameters(), resumed.get_parameters())
    )
    print(f"losses and weights as without the interruption: {'yes' if alike else 'no'}")

    resumed.net.set_train(False)
    guesses = resumed.net(ms.Tensor(images[others])).argmax(1).asnumpy()
    accuracy = float((guesses == labels[others]).mean())
    print(f"score: accuracy on the other images of 5 to 9 {accuracy:.4f} (at least {TARGET})")
    return losses, accuracy if alike else 0.0


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
