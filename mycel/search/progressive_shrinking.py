"""Progressive shrinking: trains once-for-all networks (sandwich rule, in-place distillation).

Each step trains the largest sub-network on labels, then the smallest and some drawn at random on
what the largest gave (Yu and Huang, "Universally Slimmable Networks", 2019). Their gradients are
added, and one update follows. Choices open one kind after the other, so that small networks begin
from trained large ones (Cai et al., "Once-for-All", 2020): first the largest alone is trained,
whose channels are then sorted; kernels, depths, channels inside blocks and widths follow.

All that is random depends on the seed and the step alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mycel import nn, ops
from mycel._src.foundation import arguments
from mycel._src.staging.compiled.jit import jit
from mycel._src.staging.derivatives import value_and_grad
from mycel._src.tensors.core.tensor import Tensor
from mycel.search.once_for_all import ElasticNetwork, sort_channels
from mycel.search.search_space import Point

__all__ = ["fit", "train_elastic"]

Array = np.ndarray[Any, Any]
# The share of the steps at which each kind of choice opens; before the first, the largest is alone.
OPENING = {"kernel": 0.1, "resolution": 0.1, "depth": 0.15, "expand": 0.2, "width": 0.25, "stem": 0.25}
SORTED = 0.1


def _rates(rate: float, steps: int) -> list[float]:
    """Return learning rates that fall along half a cosine."""
    return [rate * (1 + math.cos(math.pi * k / steps)) / 2 for k in range(steps)]


def _batches(count: int, batch: int, epochs: int, seed: int) -> Iterator[Array]:
    """Yield rows of batches: every epoch has its own order and leaves out the remainder."""
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(count)
        yield from order[: count // batch * batch].reshape(-1, batch)


def _checked(owner: str, x: Any, y: Any, epochs: int, batch: int) -> tuple[Array, Array, int, int]:
    values, labels = np.asarray(x), np.asarray(y)
    arguments.integer(owner, "epochs", epochs, at_least=1)
    arguments.integer(owner, "batch", batch, at_least=1)
    if len(values) != len(labels):
        raise ValueError(f"{owner}: x and y must have equally many rows, not {len(values)} and {len(labels)}")
    if len(values) < batch:
        raise ValueError(f"{owner}: there must be at least one batch of {batch} rows, not {len(values)}")
    return values, labels, epochs, batch


def fit(
    net: nn.Cell,
    x: Any,
    y: Any,
    loss: Callable[[Any, Any], Any] = ops.cross_entropy,
    epochs: int = 10,
    batch: int = 32,
    rate: float = 3e-3,
    seed: int = 0,
) -> list[float]:
    """Train a network on arrays and return the loss of each step; leave it outside of training.

    Args:
        net (nn.Cell): The network; Adam updates its parameters.
        x (numpy.ndarray[Any, Any]): Inputs.
        y (numpy.ndarray[Any, Any]): What is wanted of each.
        loss (Callable[[Any, Any], Any]): A function of results and of what is wanted. Default:
            cross_entropy.
        epochs (int): Passes over the rows. Default: 10.
        batch (int): Rows of a training step. Default: 32.
        rate (float): The first learning rate, which falls along half a cosine. Default: 0.003.
        seed (int): The seed of the random numbers. Default: 0.

    Returns:
        list[float]: The loss of each training step.

    Examples:
        >>> x, y = np.eye(2, dtype=np.float32), np.array([0, 1], np.int32)
        >>> losses = fit(nn.Dense(2, 2), x, y, batch=2)
        >>> len(losses), losses[-1] < losses[0]
        (10, True)
    """
    values, labels, epochs, batch = _checked("fit", x, y, epochs, batch)
    parameters = net.trainable_params()
    update = nn.Adam(parameters, _rates(rate, len(values) // batch * epochs))
    derive = jit(value_and_grad(lambda a, b: loss(net(a), b), None, update.parameters))
    net.set_train(True)
    losses = []
    for rows in _batches(len(values), batch, epochs, seed):
        found, gradients = derive(Tensor(values[rows]), Tensor(labels[rows]))
        update(gradients)
        losses.append(float(found))
    net.set_train(False)
    return losses


def train_elastic(
    net: ElasticNetwork,
    x: Any,
    y: Any,
    epochs: int = 10,
    batch: int = 32,
    rate: float = 3e-3,
    samples: int = 1,
    seed: int = 0,
) -> list[float]:
    """Train a once-for-all network.

    Args:
        net (ElasticNetwork): The network, which is left outside of training with its largest part
            active. Its statistics are those of the last batch: call `recalibrate` before it is
            used.
        x (numpy.ndarray[Any, Any]): Inputs in the full resolution, float32 [N, channels, height,
            width].
        y (numpy.ndarray[Any, Any]): Labels, int32 [N].
        epochs (int): Passes over the rows. Default: 10.
        batch (int): Rows of a training step. Default: 32.
        rate (float): The first learning rate of Adam, which falls along half a cosine. Default:
            0.003.
        samples (int): How many sub-networks of a training step are drawn at random, beside largest
            and smallest. Default: 1.
        seed (int): The seed of the random numbers. Default: 0.

    Returns:
        list[float]: The loss of the largest sub-network in each training step.
    """
    values, labels, epochs, batch = _checked("train_elastic", x, y, epochs, batch)
    arguments.integer("train_elastic", "samples", samples, at_least=0)
    steps = len(values) // batch * epochs
    update = nn.Adam(net.trainable_params(), _rates(rate, steps))

    def loss_of(given: Any, wanted: Any) -> Any:
        scores = net(given)
        return -ops.mean(ops.sum(wanted * ops.log_softmax(scores, -1), -1)), ops.softmax(scores, -1)

    derive = jit(value_and_grad(loss_of, None, update.parameters, has_aux=True))
    hard = np.eye(net.classes, dtype=np.float32)[labels]
    largest = net.space.extreme(-1)
    is_sorted, losses = False, []
    net.set_train(True)
    for step, rows in enumerate(_batches(len(values), batch, epochs, seed)):
        if not is_sorted and step >= SORTED * steps:
            sort_channels(net)
            is_sorted = True
        net.choose(largest)
        (found, soft), total = derive(Tensor(net.resized(values[rows])), Tensor(hard[rows]))
        losses.append(float(found))
        others = _others(net, step / steps, samples, np.random.default_rng([seed, 1, step]))
        for point in others:
            net.choose(point)
            _, more = derive(Tensor(net.resized(values[rows])), soft)
            total = tuple(one + other for one, other in zip(total, more))
        update(tuple(gradient / (1 + len(others)) for gradient in total))
    net.choose(largest)
    net.set_train(False)
    return losses


def _others(net: ElasticNetwork, share: float, samples: int, random: np.random.Generator) -> list[Point]:
    """Return the sub-networks of a step beside the largest: the smallest that is open, and some."""
    largest = net.space.extreme(-1)
    open_names = [name for name in largest if share >= OPENING[name.rpartition(".")[2]]]
    if not open_names:
        return []
    drawn = [net.space.extreme(0), *[net.space.draw(random) for _ in range(samples)]]
    made = [net.space.plain({**largest, **{name: point[name] for name in open_names}}) for point in drawn]
    return [point for k, point in enumerate(made) if point not in made[:k] and point != largest]
