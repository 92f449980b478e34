"""Two networks against each other: a convolutional GAN that draws digits, judged by a classifier's
features.

The generator makes images of random numbers, the discriminator tells them from the bundled digits,
and each learns from the other in turn, with an optimizer of its own (Goodfellow et al., "Generative
adversarial nets", 2014; layers as of Radford, Metz and Chintala, 2016). What keeps the contest
steady is a penalty on the discriminator's squared slope at real images (Mescheder, Geiger and
Nowozin, "Which training methods for GANs do actually converge?", 2018): its gradient is a second
derivative. Images are drawn by a running mean of the generator's weights.

The score is the Frechet distance (Heusel et al., 2017) of 1,797 drawn digits to the real ones:
between normal distributions fitted to features that a classifier of digits computes, |m - m'|^2 +
tr(C + C' - 2 (C C')^(1/2)). How far off real digits are that lack one of the ten classes is the
stated bound.

    python examples/gan.py    # compiled; --mode pynative runs operation by operation

Score: Frechet distance, at most 0.6 of that of real digits without their least missed class. Where
matplotlib is installed, drawn digits are written to mycel-demo/gan.png (--plot).
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.dataset.digits import load_digits

TARGET = 0.6
LATENTS, PENALTY, MEMORY = 32, 1.0, 0.995


def generator():
    """Random numbers float32 [N, LATENTS] to images float32 [N, 1, 16, 16] in -1 .. 1."""
    return nn.SequentialCell(
        nn.Dense(LATENTS, 64 * 4 * 4),
        nn.Unflatten(1, (64, 4, 4)),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2dTranspose(64, 32, 4, 2, pad_mode="same"),  # 8x8
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2dTranspose(32, 1, 4, 2, pad_mode="same", has_bias=True),  # 16x16
        nn.Tanh(),
    )


def judge(outputs):
    """Images float32 [N, 1, 16, 16] to float32 [N, outputs]; the discriminator, or the classifier
    of the score.
    """
    return nn.SequentialCell(
        nn.Conv2d(1, 32, 4, 2, pad_mode="same", has_bias=True),
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, pad_mode="same", has_bias=True),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Dense(64 * 4 * 4, 64),
        nn.LeakyReLU(0.2),
        nn.Dense(64, outputs),
    )


def train_classifier(images, labels, epochs, batch_size):
    """A network whose inner features tell digits apart."""
    net = judge(10)
    batches = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(batch_size)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 1e-3)
    ).set_train()
    for _ in range(epochs):
        for image, label in batches.create_tuple_iterator(num_epochs=1):
            step(image, label)
    return net.set_train(False)


def frechet(features, others):
    """The Frechet distance of normal distributions fitted to the rows of two arrays."""
    covariance, other = np.cov(features, rowvar=False), np.cov(others, rowvar=False)
    # The trace of a root is the sum of the roots of the eigenvalues: of two covariances' product,
    # none is below 0.
    roots = np.sqrt(np.linalg.eigvals(covariance @ other).real.clip(0)).sum()
    apart = features.mean(0) - others.mean(0)
    return float(apart @ apart + np.trace(covariance) + np.trace(other) - 2 * roots)


def plot(path, drawn):
    """The first drawn digits."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    tiles = np.pad(drawn[:60, 0], ((0, 0), (1, 1), (1, 1)), constant_values=-1).reshape(5, 12, 18, 18)
    plt.imsave(path, tiles.transpose(0, 2, 1, 3).reshape(5 * 18, 12 * 18).repeat(3, 0).repeat(3, 1), cmap="gray")
    print(f"wrote {path}")


def main(argv=None):
    """Train and judge; gives the discriminator's losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A convolutional GAN that draws digits")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--samples", type=int, default=None, help="learn from the first so many images only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", default="mycel-demo/gan.png", help="where to write the picture; '' for nowhere")
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    pixels, labels = load_digits(size=16)
    images = (pixels.transpose(0, 3, 1, 2) / 127.5 - 1).astype(np.float32)
    batches = ds.NumpySlicesDataset(images[: args.samples], ["image"], shuffle=True)
    batches = batches.batch(args.batch_size, drop_remainder=True)

    drawer, critic, steady = generator(), judge(1), generator()
    ms.load_param_into_net(steady, drawer.parameters_dict())
    pairs = list(zip(steady.get_parameters(), drawer.get_parameters()))
    drawing = nn.Adam(drawer.trainable_params(), 2e-3, beta1=0.5, beta2=0.99)
    judging = nn.Adam(critic.trainable_params(), 2e-3, beta1=0.5, beta2=0.99)
    size = sum(parameter.size for parameter in (*drawing.parameters, *judging.parameters))
    print(f"GAN, {size:,} parameters, {args.epochs} epochs of {batches.get_dataset_size()} steps, {args.mode} mode")

    slope = ms.grad(lambda real: critic(real).sum())

    def critic_loss(real, noise):
        told = ops.softplus(-critic(real)).mean() + ops.softplus(critic(drawer(noise))).mean()
        return told + PENALTY / 2 * slope(real).square().sum((1, 2, 3)).mean()

    def drawer_loss(noise):
        return ops.softplus(-critic(drawer(noise))).mean()

    # Each gradient is that of one network's weights: the other's stay as they are.
    critic_gradient = ms.value_and_grad(critic_loss, None, judging.parameters)
    drawer_gradient = ms.value_and_grad(drawer_loss, None, drawing.parameters)

    def train_step(real):
        loss, gradients = critic_gradient(real, ops.randn(real.shape[0], LATENTS))
        judging(gradients)
        drawer_value, gradients = drawer_gradient(ops.randn(real.shape[0], LATENTS))
        drawing(gradients)
        for mean, latest in pairs:
            ops.assign(mean, MEMORY * mean + (1 - MEMORY) * latest)
        return loss, drawer_value

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    drawer.set_train(True)
    losses, begun = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        losses += [train_step(real) for (real,) in batches.create_tuple_iterator(num_epochs=1)]
        if epoch % 10 == 0 or epoch == args.epochs:
            seconds = time.perf_counter() - begun
            both = [float(ops.stack(side[-batches.get_dataset_size() :]).mean()) for side in zip(*losses)]
            print(f"epoch {epoch:3}/{args.epochs}  losses {both[0]:.3f} and {both[1]:.3f}  {seconds:.1f} s", flush=True)

    classifier = train_classifier(images[: args.samples], labels[: args.samples], 15, args.batch_size)
    steady.set_train(False)
    noise = np.random.default_rng(args.seed).standard_normal((len(images), LATENTS), np.float32)
    drawn = steady(ms.Tensor(noise)).asnumpy()
    real, fake = [classifier[:-1](ms.Tensor(some)).asnumpy().astype(np.float64) for some in (images, drawn)]
    lacking = min(frechet(real[labels != digit], real) for digit in range(10))
    sure = ops.softmax(classifier(ms.Tensor(drawn)), -1).asnumpy()
    counts = np.bincount(sure.argmax(1), minlength=10)
    print(f"drawn digits by class {counts.tolist()}, mean confidence of the classifier {sure.max(1).mean():.3f}")
    distance = frechet(fake, real)
    print(f"Frechet distance {distance:.3f}; of real digits without one class at least {lacking:.3f}")
    if args.plot:
        plot(args.plot, drawn)
    score = distance / lacking
    print(f"score: Frechet distance as a share of that of one lacking class {score:.3f} (at most {TARGET})")
    return [float(loss) for loss, _ in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] <= TARGET else 1)
