"""Functions that recurse over trees: values for trees that are new and for those that come again,
against NumPy, in functions, Cells and gradients.
"""

import random

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, nn, ops

WEIGHT = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32) / 3
WORDS = np.random.default_rng(1).standard_normal((12, 4)).astype(np.float32)


def drawn(draw, leaves):
    parts = list(range(leaves))
    while len(parts) > 1:
        i = draw.randrange(len(parts) - 1)
        parts[i : i + 2] = [(parts[i], parts[i + 1])]
    return parts[0]


def expected(tree):
    if isinstance(tree, int):
        return WORDS[tree].astype(np.float64)
    return np.tanh(np.concatenate([expected(tree[0]), expected(tree[1])]) @ WEIGHT.astype(np.float64))


def encode(tree, words, weight):
    if isinstance(tree, int):
        return words[tree]
    return ops.tanh(ops.matmul(ops.cat([encode(tree[0], words, weight), encode(tree[1], words, weight)]), weight))


def test_new_trees_run_as_python_and_old_ones_are_compiled():
    draw, run = random.Random(0), ms.jit(encode)
    trees = [drawn(draw, n) for n in (5, 7, 3, 9, 4, 6)]
    for _ in range(3):
        for tree in trees:
            found = run(tree, Tensor(WORDS), Tensor(WEIGHT))
            np.testing.assert_allclose(found.asnumpy(), expected(tree), rtol=1e-5, atol=1e-6)
    assert len(run.versions) == len(trees)
    account = ms.explain(run)
    assert account.passed == len(trees) - 1 and "ran operation by operation" in str(account)
    # Other sizes of a tree that was met are sizes.
    assert run(trees[0], Tensor(WORDS[:7]), Tensor(WEIGHT)).shape == (4,)
    assert ms.explain(run).passed == len(trees) - 1


def test_where_most_trees_are_new_a_second_meeting_compiles_nothing():
    draw, run = random.Random(1), ms.jit(encode)
    for k in range(40):
        tree = drawn(draw, 3 + k % 9)
        found = run(tree, Tensor(WORDS), Tensor(WEIGHT))
        np.testing.assert_allclose(found.asnumpy(), expected(tree), rtol=1e-5, atol=1e-6)
    assert len(run.versions) < 10 and ms.explain(run).passed > 20


def test_a_function_that_must_be_one_graph_is_compiled_each_time():
    draw, run = random.Random(2), ms.jit(encode, fullgraph=True)
    for k in range(4):
        run(drawn(draw, 3 + k), Tensor(WORDS), Tensor(WEIGHT))
    assert len(run.versions) == 4 and not ms.explain(run).passed


class Node:
    def __init__(self, tree):
        self.word, self.children = tree if isinstance(tree, int) else None, ()
        if self.word is None:
            self.children = tuple(Node(t) for t in tree)


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(Tensor(WEIGHT), name="weight")
        self.calls = 0

    def construct(self, tree, words):
        if tree.word is not None:
            self.calls = self.calls + 1
            return words[tree.word]
        a, b = [self(t, words) for t in tree.children]
        return mint.tanh(mint.matmul(mint.cat((a, b)), self.weight))


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_a_cell_over_objects_with_gradients(mode):
    ms.set_context(mode=mode)
    try:
        draw, net, leaves = random.Random(3), Encoder(), 0
        gradient = ms.value_and_grad(lambda t, w: net(t, w).sum(), 1, net.trainable_params())
        for k in range(6):
            tree = drawn(draw, 4 + k)
            for _ in range(1 + k % 2):
                value, (by_words, (by_weight,)) = gradient(Node(tree), Tensor(WORDS))
                leaves += 4 + k
            np.testing.assert_allclose(float(value), expected(tree).sum(), rtol=1e-5, atol=1e-6)
            moved = ms.Parameter(Tensor(WEIGHT))
            wanted = ms.grad(lambda w, x, t=tree: encode(t, x, w).sum(), (0, 1))(moved, Tensor(WORDS))
            np.testing.assert_allclose(by_weight.asnumpy(), wanted[0].asnumpy(), rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(by_words.asnumpy(), wanted[1].asnumpy(), rtol=1e-4, atol=1e-6)
        assert net.calls == leaves
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_what_a_new_tree_writes_and_returns_is_what_compiled_code_would():
    total = ms.Parameter(Tensor(np.zeros(4, np.float32)), name="total")

    def leaves(tree):
        return [tree] if isinstance(tree, int) else leaves(tree[0]) + leaves(tree[1])

    @ms.jit
    def add(tree, words):
        found = leaves(tree)
        for i in found:
            total.set_data(total + words[i])
        return map(lambda i: words[i] * 2, tuple(found)), {"n": len(found)}

    wanted = np.zeros(4)
    for tree in ((0, 1), ((2, 3), 4), (5, (6, 7)), ((0, 1), (2, 3))):
        items, count = add(tree, Tensor(WORDS))
        assert type(items) is tuple and count == {"n": len(items)}
        np.testing.assert_allclose(items[0].asnumpy(), WORDS[leaves(tree)[0]] * 2)
        wanted += WORDS[leaves(tree)].sum(0)
        np.testing.assert_allclose(total.asnumpy(), wanted, rtol=1e-5, atol=1e-6)


def test_errors_of_new_trees_are_those_of_python():
    run = ms.jit(encode)
    run((0, 1), Tensor(WORDS), Tensor(WEIGHT))
    with pytest.raises(IndexError):
        run((0, (1, 99)), Tensor(WORDS), Tensor(WEIGHT))
    found = run((0, (1, 2)), Tensor(WORDS), Tensor(WEIGHT))
    np.testing.assert_allclose(found.asnumpy(), expected((0, (1, 2))), rtol=1e-5, atol=1e-6)
