"""Graph convolutions over a sparse matrix: the groups of 3,000 people found from whom they know,
where those of 60 are told.

The network of people is a stochastic block model: two of one group know each other with a higher
probability than others. Each person has features that say little by themselves. Two layers, each
mixing the features of neighbours by the normalised adjacency matrix (Kipf and Welling,
"Semi-supervised classification with graph convolutional networks", 2017),

    H' = relu(A H W),    A = D^(-1/2) (adjacency + I) D^(-1/2),    D the row sums of adjacency + I,

learn from ten known members of each of the six groups. A has 9 million elements, of which a
CSRTensor keeps the 33,000 that are not zero.

    python examples/graph_conv.py    # compiled; --mode pynative runs operation by operation

Score: accuracy on the people whose group is not known, at least 0.9. The same network without the
graph is trained for comparison.
"""

import argparse
import sys
import time

import numpy as np

import mycel as ms
from mycel import nn, ops

TARGET = 0.9
CLASSES, FEATURES, KNOWN = 6, 32, 10
# how many of the own group, and of all others, a person knows on average
INSIDE, OUTSIDE = 7.0, 3.0


def block_model(people, rng):
    """Pairs int32 [E, 2] in both directions, features float32 [people, FEATURES], groups int32
    [people].
    """
    groups = rng.permutation(np.arange(people) % CLASSES).astype(np.int32)
    size = people / CLASSES
    within, between = INSIDE / size, OUTSIDE / (people - size)
    chance = np.where(groups[:, None] == groups, within, between)
    rows, columns = np.nonzero(np.triu(rng.random((people, people)) < chance, 1))
    pairs = np.concatenate([np.stack([rows, columns], 1), np.stack([columns, rows], 1)])
    centres = rng.normal(size=(CLASSES, FEATURES))
    features = 0.25 * centres[groups] + rng.normal(size=(people, FEATURES))
    return pairs.astype(np.int32), features.astype(np.float32), groups


def normalised(pairs, people):
    """The matrix A of the layers, sparse: ones at the pairs and on the diagonal, each divided by
    the root of both degrees.
    """
    diagonal = ops.arange(people).astype(ms.int32)
    places = ops.cat((ms.Tensor(pairs), ops.stack((diagonal, diagonal), 1)))
    adjacency = ms.COOTensor(places, ops.ones(places.shape[0]), (people, people)).to_csr()
    scale = ops.rsqrt(adjacency.sum(1))  # [people, 1]
    return adjacency * scale * scale.reshape(1, -1)


class GraphConv(nn.Cell):
    """Mixes neighbours: features float32 [N, in] to [N, out]; without a graph an ordinary layer."""

    def __init__(self, matrix, before, after):
        super().__init__()
        self.matrix = matrix
        self.dense = nn.Dense(before, after, weight_init="XavierUniform")

    def construct(self, x):
        x = self.dense(x)
        return x if self.matrix is None else self.matrix.mm(x)


class Classifier(nn.Cell):
    """Features float32 [N, FEATURES] of all people to logits float32 [N, CLASSES]."""

    def __init__(self, matrix, hidden=32):
        super().__init__()
        self.first = GraphConv(matrix, FEATURES, hidden)
        self.second = GraphConv(matrix, hidden, CLASSES)
        self.dropout = nn.Dropout(p=0.5)

    def construct(self, x):
        return self.second(self.dropout(ops.relu(self.first(self.dropout(x)))))


def train(net, features, groups, known, args):
    """The losses of all steps; each sees the whole graph, and the groups of the known people."""
    optimizer = nn.Adam(net.trainable_params(), 0.01, weight_decay=5e-4)

    def forward(features, groups, known):
        return ops.cross_entropy(net(features)[known], groups[known])

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(*data):
        loss, gradients = gradient(*data)
        optimizer(gradients)
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    net.set_train(True)
    losses, begun = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        losses.append(train_step(features, groups, known))
        if epoch % 50 == 0 or epoch == args.epochs:
            recent = float(ops.stack(losses[-50:]).mean())
            print(f"epoch {epoch:3}/{args.epochs}  loss {recent:.4f}  {time.perf_counter() - begun:.1f} s", flush=True)
    net.set_train(False)
    return [float(loss) for loss in losses]


def main(argv=None):
    """Train with and without the graph; gives the losses of the steps and the score with it."""
    parser = argparse.ArgumentParser(description="Graph convolutions over a sparse matrix")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--people", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    rng = np.random.default_rng(args.seed)
    pairs, features, groups = block_model(args.people, rng)
    known = np.concatenate([np.flatnonzero(groups == group)[:KNOWN] for group in range(CLASSES)]).astype(np.int32)
    unknown = np.setdiff1d(np.arange(args.people), known)
    matrix = normalised(pairs, args.people)
    print(f"{args.people:,} people, {len(pairs) // 2:,} acquaintances, {len(known)} told groups, {args.mode} mode")

    losses, scores = {}, {}
    for name, graph in (("without the graph", None), ("with the graph", matrix)):
        print(f"{name}:")
        net = Classifier(graph)
        losses[name] = train(net, ms.Tensor(features), ms.Tensor(groups), ms.Tensor(known), args)
        guesses = net(ms.Tensor(features)).argmax(1).asnumpy()
        scores[name] = float((guesses == groups)[unknown].mean())
    print(f"accuracy without the graph {scores['without the graph']:.4f}")
    score = scores["with the graph"]
    print(f"score: accuracy with the graph {score:.4f} (at least {TARGET})")
    return losses["with the graph"], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
