"""A GPT that learns to add: a causal transformer over characters, and generation with a key-value
cache.

Each text is a sum such as `27+58=58.`, its result written from the ones upwards, the way one adds
by hand. The decoder (Radford et al., "Language models are unsupervised multitask learners", 2019)
sees 4,000 of the 10,000 sums of two two-digit numbers and must add the others. Training is AdamW
with warm-up, half a cosine and clipped gradients; the answers are generated one character at a
time, where a cache of the keys and values of earlier characters saves computing them again.

    python examples/gpt.py    # compiled; --mode pynative runs operation by operation

Score: the share of unseen sums whose generated answer is right in every character, at least 0.99.
"""

import argparse
import math
import sys
import time

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.common.initializer import Normal
from mycel.nn.learning_rate_schedule import LearningRateSchedule

TARGET = 0.99
ALPHABET = "0123456789+=."
CODES = {character: code for code, character in enumerate(ALPHABET)}
QUESTION, ANSWER = len("27+58="), len("580.")


def encode(text):
    return [CODES[character] for character in text]


def decode(codes):
    return "".join(ALPHABET[code] for code in codes)


def sums(samples, rng):
    """Draw all sums in random order, int32 [10000, 10]; the first `samples` are to learn from."""
    order = rng.permutation(10_000)
    texts = [f"{a:02}+{b:02}={f'{a + b:03}'[::-1]}." for a in range(100) for b in range(100)]
    codes = np.array([encode(text) for text in texts], np.int32)[order]
    return codes[:samples], codes[samples:]


class Attention(nn.Cell):
    """Causal attention with several heads; with a cache, of the new characters to all so far."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Dense(width, 3 * width, weight_init=Normal(0.02))
        self.out = nn.Dense(width, width, weight_init=Normal(0.02))

    def construct(self, x, cache=None):
        batch, length, width = x.shape
        # [B, T, 3 * width] to three of [B, heads, T, width / heads].
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = ops.cat((cache[0], k), 2), ops.cat((cache[1], v), 2)
        total = k.shape[2]
        scores = ops.matmul(q, k.swapaxes(2, 3)) / math.sqrt(width // self.heads)
        # The i-th new character is at place total - length + i, and sees what is not behind it.
        future = ops.arange(total) > ops.arange(total - length, total).expand_dims(1)
        weights = ops.softmax(scores.masked_fill(future, -1e9), -1)
        mixed = ops.matmul(weights, v).swapaxes(1, 2).reshape(batch, length, width)
        return self.out(mixed), (k, v)


class Block(nn.Cell):
    """Attention and a two-layer perceptron, each normalised before and added to its input."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm([width]), nn.LayerNorm([width])
        self.attention = Attention(width, heads)
        self.mlp = nn.SequentialCell(
            nn.Dense(width, 4 * width, weight_init=Normal(0.02)),
            nn.GELU(),
            nn.Dense(4 * width, width, weight_init=Normal(0.02)),
        )

    def construct(self, x, cache=None):
        mixed, cache = self.attention(self.norm1(x), cache)
        x = x + mixed
        return x + self.mlp(self.norm2(x)), cache


class GPT(nn.Cell):
    """Codes int32 [B, T] to logits float32 [B, T, characters], and the cache for what follows."""

    def __init__(self, characters, context, width=64, heads=4, layers=2):
        super().__init__()
        self.characters = nn.Embedding(characters, width, embedding_table=Normal(0.02))
        self.places = nn.Embedding(context, width, embedding_table=Normal(0.02))
        self.blocks = nn.CellList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm([width])

    def construct(self, codes, caches=None):
        seen = 0 if caches is None else caches[0][0].shape[2]
        x = self.characters(codes) + self.places(ops.arange(seen, seen + codes.shape[1]))
        following = []
        for index, block in enumerate(self.blocks):
            x, cache = block(x, None if caches is None else caches[index])
            following.append(cache)
        # The output layer is the embedding, transposed (Press and Wolf, 2017).
        return ops.matmul(self.norm(x), self.characters.embedding_table.swapaxes(0, 1)), following


class WarmUpCosine(LearningRateSchedule):
    """Rise in a line to `peak`, then fall along half a cosine to a tenth of it at step `steps`."""

    def __init__(self, peak, warmup, steps):
        super().__init__()
        self.warmup = warmup
        self.rising = nn.WarmUpLR(peak, warmup)
        self.falling = nn.CosineDecayLR(peak / 10, peak, max(steps - warmup, 1))

    def construct(self, global_step):
        return ops.where(global_step < self.warmup, self.rising(global_step), self.falling(global_step - self.warmup))


def generate(net, questions, count):
    """Generate the `count` likeliest characters after each question, int32 [B, count]."""
    logits, caches = net(ms.Tensor(questions))
    codes = [logits[:, -1].argmax(-1)]
    for _ in range(count - 1):
        logits, caches = net(codes[-1].expand_dims(1), caches)
        codes.append(logits[:, -1].argmax(-1))
    return ops.stack(codes, 1).asnumpy()


def main(argv=None):
    """Train and generate; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A GPT that learns to add")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--samples", type=int, default=4000, help="sums to learn from; the others are to test with")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    known, unseen = sums(args.samples, np.random.default_rng(args.seed))
    batches = ds.NumpySlicesDataset(known, ["codes"], shuffle=True).batch(args.batch_size, drop_remainder=True)
    steps = args.epochs * batches.get_dataset_size()

    net = GPT(len(ALPHABET), context=known.shape[1] - 1)
    # Weight decay is for matrices: not for biases, scales and shifts.
    matrices = [parameter for parameter in net.trainable_params() if parameter.ndim > 1]
    vectors = [parameter for parameter in net.trainable_params() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = nn.AdamWeightDecay(groups, WarmUpCosine(3e-3, steps // 20 + 1, steps), beta2=0.99)
    print(
        f"GPT, {sum(p.size for p in net.trainable_params()):,} parameters, {len(known):,} sums, {steps} steps, "
        f"{args.mode} mode"
    )

    def forward(codes):
        logits, _ = net(codes[:, :-1])
        # The answer alone counts: nothing in the question can be foretold.
        return ops.cross_entropy(logits[:, QUESTION - 1 :].reshape(-1, len(ALPHABET)), codes[:, QUESTION:].reshape(-1))

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(codes):
        loss, gradients = gradient(codes)
        optimizer(ops.clip_by_global_norm(gradients, 1.0))
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    net.set_train(True)
    losses, begun = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        losses += [train_step(codes) for (codes,) in batches.create_tuple_iterator(num_epochs=1)]
        recent = float(ops.stack(losses[-batches.get_dataset_size() :]).mean())
        print(f"epoch {epoch:2}/{args.epochs}  loss {recent:.4f}  {time.perf_counter() - begun:.1f} s", flush=True)

    net.set_train(False)
    answers = generate(net, unseen[:, :QUESTION], ANSWER)
    for question, answer in zip(unseen[:5], answers):
        print(f"  {decode(question[:QUESTION])}{decode(answer)}")
    score = float((answers == unseen[:, QUESTION:]).all(axis=1).mean())
    print(f"score: unseen sums right {score:.4f} (at least {TARGET})")
    return [float(loss) for loss in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
