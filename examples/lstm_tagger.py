"""A bidirectional LSTM that says who did what to whom: sequence tagging with sentences of different
lengths.

A grammar makes sentences such as `the old cat near a barn was chased by a dog while the fish cut
the light .`, and the role of each word. Roles want context from both sides: whether a noun is an
agent or a patient shows when its verb comes, and words such as `saw`, `cut`, `light` and `fish` are
nouns, verbs or adjectives as their neighbours decide. Sentences are padded within their batch, and
the batches are made of similar lengths; the lengths tell the LSTM where a sentence ends, and
padding counts neither in the loss nor in the score.

    python examples/lstm_tagger.py    # compiled; --mode pynative runs operation by operation

Score: the share of unseen sentences with every word tagged right, at least 0.98.
"""

import argparse
import sys
import time

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops

TARGET = 0.98
NOUNS = "dog cat bird child baker fox farmer light fish saw cut watch".split()
VERBS = "chased met found heard painted saw cut watch fish".split()
ADJECTIVES = "old small red quick light".split()
PLACES = "barn river tree house fish light".split()
FUNCTION_WORDS = "the a was by near behind while and .".split()
WORDS = sorted({*NOUNS, *VERBS, *ADJECTIVES, *PLACES, *FUNCTION_WORDS})
TAGS = ["other", "adjective", "agent", "patient", "place", "verb"]
PADDING = -1  # the tag of what is no word


def noun_phrase(rng, role):
    phrase = [(rng.choice(["the", "a"]), "other")]
    phrase += [(rng.choice(ADJECTIVES), "adjective") for _ in range(rng.integers(0, 3))]
    phrase.append((rng.choice(NOUNS), role))
    if rng.random() < 0.3:
        phrase += [(rng.choice(["near", "behind"]), "other"), (rng.choice(["the", "a"]), "other")]
        phrase.append((rng.choice(PLACES), "place"))
    return phrase


def sentence(rng):
    """Pairs of a word and its tag: one to three clauses, active or passive."""
    pairs = []
    for clause in range(rng.integers(1, 4)):
        if clause:
            pairs.append((rng.choice(["while", "and"]), "other"))
        verb = (rng.choice(VERBS), "verb")
        if rng.random() < 0.5:
            pairs += [*noun_phrase(rng, "agent"), verb, *noun_phrase(rng, "patient")]
        else:
            pairs += [*noun_phrase(rng, "patient"), ("was", "other"), verb, ("by", "other"), *noun_phrase(rng, "agent")]
    return [*pairs, (".", "other")]


def treebank(count, rng):
    """Rows of words int32 [length], tags int32 [length] and the length, int32."""
    rows = []
    for _ in range(count):
        words, tags = zip(*sentence(rng))
        words = np.array([WORDS.index(word) for word in words], np.int32)
        rows.append((words, np.array([TAGS.index(tag) for tag in tags], np.int32), np.int32(len(words))))
    return rows


def batches_of(rows, batch_size, shuffle):
    """Batches of sentences of similar length, padded to one of three lengths."""
    data = ds.GeneratorDataset(rows, ["words", "tags", "length"], shuffle=shuffle)
    # a bucket holds shorter sentences than its boundary; the longest has 54 words
    boundaries = [19, 31, 55]
    padding = {"words": ([None], 0), "tags": ([None], PADDING), "length": ([], 0)}
    return data.bucket_batch_by_length(
        ["words"], boundaries, [batch_size] * (len(boundaries) + 1), pad_info=padding, pad_to_bucket_boundary=True
    )


class Tagger(nn.Cell):
    """Words int32 [B, T] and lengths int32 [B] to logits float32 [B, T, tags]."""

    def __init__(self, width=32, hidden=48, layers=1):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), width)
        self.lstm = nn.LSTM(width, hidden, num_layers=layers, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(p=0.1)
        self.head = nn.Dense(2 * hidden, len(TAGS))

    def construct(self, words, lengths):
        # With lengths given, the backward direction starts at each sentence's last word.
        states, _ = self.lstm(self.embedding(words), seq_length=lengths)
        return self.head(self.dropout(states))


def main(argv=None):
    """Train and tag; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A bidirectional LSTM tagger")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument(
        "--samples", type=int, default=3000, help="sentences to learn from; a third as many others are to test with"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    rng = np.random.default_rng(args.seed)
    train_rows, test_rows = treebank(args.samples, rng), treebank(args.samples // 3, rng)
    train_data = batches_of(train_rows, args.batch_size, shuffle=True)

    net = Tagger()
    optimizer = nn.Adam(net.trainable_params(), 5e-3)
    print(
        f"LSTM tagger, {sum(p.size for p in net.trainable_params()):,} parameters, {len(train_rows):,} sentences, "
        f"{args.mode} mode"
    )
    print("  " + " ".join(f"{WORDS[word]}/{TAGS[tag]}" for word, tag in zip(*train_rows[0][:2])))

    def forward(words, tags, lengths):
        logits = net(words, lengths)
        return ops.cross_entropy(logits.reshape(-1, len(TAGS)), tags.reshape(-1), ignore_index=PADDING)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(words, tags, lengths):
        loss, gradients = gradient(words, tags, lengths)
        optimizer(ops.clip_by_global_norm(gradients, 1.0))
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    net.set_train(True)
    losses, begun = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        before = len(losses)
        losses += [train_step(*batch) for batch in train_data.create_tuple_iterator(num_epochs=1)]
        recent = float(ops.stack(losses[before:]).mean())
        print(f"epoch {epoch}/{args.epochs}  loss {recent:.4f}  {time.perf_counter() - begun:.1f} s", flush=True)

    net.set_train(False)
    right = words_right = words_all = 0
    for words, tags, lengths in batches_of(test_rows, 100, shuffle=False).create_tuple_iterator(num_epochs=1):
        is_word = tags != PADDING
        good = (net(words, lengths).argmax(-1) == tags).logical_and(is_word)
        right += int(good.logical_or(is_word.logical_not()).all(axis=1).sum())
        words_right, words_all = words_right + int(good.sum()), words_all + int(lengths.sum())
    score = right / len(test_rows)
    print(f"words tagged right {words_right / words_all:.4f}")
    print(f"score: unseen sentences right {score:.4f} (at least {TARGET})")
    return [float(loss) for loss in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
