"""A variational autoencoder of handwritten digits, with a likelihood that fits what the pixels are.

A pixel of the bundled digits counts the dark points in a square of 4x4, so it is modelled as 16
draws of one probability: a binomial number. The encoder gives the mean and the scale of a normal
distribution of 8 latent numbers, the decoder the probabilities of the 64 pixels; both learn by the
evidence lower bound (Kingma and Welling, "Auto-encoding variational Bayes", 2014)

    log p(x)  >=  ELBO  =  E[log p(x | z)] - KL(q(z | x) || N(0, 1)),      z ~ q(z | x)

which is exact in nats, binomial coefficients included, as pixels are whole numbers. One probability
a pixel, without latents, reaches -253.

    python examples/vae.py    # compiled; --mode pynative runs operation by operation

Score: the mean evidence lower bound of held-out digits, at least -100 nats. Where matplotlib is
installed, pictures of digits that the decoder makes of random numbers are written to
mycel-demo/vae.png (--plot).
"""

import argparse
import sys
import time
from math import comb, log
from pathlib import Path

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.dataset.digits import load_digits, stratified_split

TARGET = -100.0
POINTS = 16
LOG_CHOICES = np.array([log(comb(POINTS, count)) for count in range(POINTS + 1)], np.float32)


class VAE(nn.Cell):
    """Counts float32 [B, 64] of 0 to 16 and noise float32 [B, latents] to the lower bound of each,
    float32 [B].
    """

    def __init__(self, pixels=64, hidden=256, latents=8):
        super().__init__()
        self.latents = latents
        self.encoder = nn.SequentialCell(
            nn.Dense(pixels, hidden), nn.GELU(), nn.Dense(hidden, hidden), nn.GELU(), nn.Dense(hidden, 2 * latents)
        )
        self.decoder = nn.SequentialCell(
            nn.Dense(latents, hidden), nn.GELU(), nn.Dense(hidden, hidden), nn.GELU(), nn.Dense(hidden, pixels)
        )
        self.log_choices = ms.Tensor(LOG_CHOICES)

    def construct(self, counts, noise):
        mean, log_scale = self.encoder(counts / (POINTS / 2) - 1).chunk(2, axis=1)
        z = mean + ops.exp(log_scale) * noise  # a sample of q(z | x) that can be differentiated
        logits = self.decoder(z)
        # log C(16, k) + k log p + (16 - k) log (1 - p), with p = sigmoid(logit).
        terms = self.log_choices[counts.int()] + counts * logits - POINTS * ops.softplus(logits)
        divergence = 0.5 * (mean.square() + ops.exp(2 * log_scale) - 1) - log_scale
        return terms.sum(1) - divergence.sum(1)

    def sample(self, z):
        """Expected counts float32 [B, 64] for latent numbers float32 [B, latents]."""
        return POINTS * ops.sigmoid(self.decoder(z))


def plot(path, net, images, rng):
    """Held-out digits above, digits of the decoder below."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    made = net.sample(ms.Tensor(rng.standard_normal((24, net.latents), np.float32))).asnumpy()
    figure, axes = plt.subplots(4, 12, figsize=(9, 3.4), layout="constrained")
    for cell, pixels in zip(axes.flat, np.concatenate([images[:24], made])):
        cell.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=POINTS)
        cell.set_axis_off()
    figure.suptitle("held-out digits, and below digits of the decoder")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"wrote {path}")


def main(argv=None):
    """Train and evaluate; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A variational autoencoder of handwritten digits")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--samples", type=int, default=None, help="learn from the first so many images only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", default="mycel-demo/vae.png", help="where to write the picture; '' for nowhere")
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    images, labels = load_digits(size=8)
    counts = np.rint(images.reshape(len(images), 64) * (POINTS / 255)).astype(np.float32)
    train_rows, test_rows = stratified_split(labels)
    batches = ds.NumpySlicesDataset(counts[train_rows[: args.samples]], ["counts"], shuffle=True)
    batches = batches.batch(args.batch_size, drop_remainder=True)
    steps = batches.get_dataset_size()

    net = VAE()
    optimizer = nn.Adam(net.trainable_params(), nn.cosine_decay_lr(1e-5, 2e-3, args.epochs * steps, steps, args.epochs))
    size = sum(parameter.size for parameter in net.trainable_params())
    print(f"VAE, {size:,} parameters, {args.epochs} epochs of {steps} steps, {args.mode} mode")

    def forward(counts):
        return -net(counts, ops.randn(counts.shape[0], net.latents)).mean()

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(counts):
        loss, gradients = gradient(counts)
        optimizer(gradients)
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    net.set_train(True)
    losses, begun = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        losses += [train_step(counts) for (counts,) in batches.create_tuple_iterator(num_epochs=1)]
        if epoch % 10 == 0 or epoch == args.epochs:
            recent = float(ops.stack(losses[-steps:]).mean())
            print(
                f"epoch {epoch:3}/{args.epochs}  loss {recent:.2f} nats  {time.perf_counter() - begun:.1f} s",
                flush=True,
            )

    net.set_train(False)
    rng, held_out = np.random.default_rng(args.seed), ms.Tensor(counts[test_rows])
    noises = [rng.standard_normal((len(test_rows), net.latents), np.float32) for _ in range(16)]
    score = float(np.mean([net(held_out, ms.Tensor(noise)).asnumpy() for noise in noises]))
    if args.plot:
        plot(args.plot, net, counts[test_rows], rng)
    print(f"score: evidence lower bound {score:.2f} nats (at least {TARGET})")
    return [float(loss) for loss in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
