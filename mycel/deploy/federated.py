"""Federated learning (FedAvg): devices train on their own data, a server averages the changes.

A *round* (McMahan et al., 2017) begins with the server's weights w. A client takes some steps of
its optimizer on its own batches and gives how far its weights have moved, d_k, of a norm of at most
C; the server moves by the mean of n clients, weighted by how much data they have:

    d_k = clip(client(w) - w)        clip(d) = d * min(1, C / |d|)
    w   = w + sum(n_k d_k) / sum(n_k)

With an optimizer the server takes the mean for a gradient, -mean, and lets that move the weights
(Reddi et al., 2021). The step that a device runs is the function that the server runs in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import int32
from mycel._src.staging.derivatives import value_and_grad
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.optim.optimizer import Optimizer

__all__ = ["Aggregator", "client_round", "client_step"]


def client_step(loss: Callable[..., Tensor], update: Optimizer, *, clip: float | None = None) -> Callable[..., Any]:
    """Return the function of a client's step, for `build` and for the server alike.

    The function takes the number of the step in its round, an int32 tensor, then a batch, the
    arguments of `loss`, and then the server's weights, in the order of `update.parameters`. It
    returns the loss and, for each weight, how far it has moved in this round by now. The step 0
    begins a round: it takes the server's weights, and the optimizer begins anew, so that nothing of
    one round is left in the next, and a round that was lost is done again from step 0.

    * `loss`: a function of tensors that gives the loss of a batch.
    * `update`: the optimizer of what is trained; it begins each round with the states that it has
      when this function is called.
    * `clip`: the greatest norm, over all weights together, of what is returned; None: any.

    Raises TypeError and ValueError for other arguments.

    >>> import mycel as ms
    >>> from mycel.deploy import build, client_step
    >>> net = ms.nn.Dense(4, 2)
    >>> update = ms.nn.SGD(net.trainable_params(), 0.1)
    >>> step = client_step(lambda x, y: ms.ops.mse_loss(net(x), y), update, clip=1.0)
    >>> weights = [p.copy() for p in update.parameters]
    >>> given = (ms.Tensor(0, ms.int32), ms.ops.ones((8, 4)), ms.ops.zeros((8, 2)), *weights)
    >>> library = build(step, *given, target="cortex-m4", name="client")
    >>> [a.name for a in library.outputs][:2], len(step(*given))
    (['result_0', 'result_1'], 3)
    """
    arguments.function("client_step", "loss", loss, "a function")
    if not isinstance(update, Optimizer):
        raise TypeError(f"client_step: update must be an optimizer, not {update!r:.80}")
    if clip is not None and (type(clip) not in (int, float) or not 0 < clip < math.inf):
        raise ValueError(f"client_step: clip must be None or a finite number above 0, not {clip!r}")
    trained = list(update.parameters)
    own = {id(p) for p in trained}
    states = [(p, Tensor(p.asnumpy().copy())) for p in update.get_parameters() if id(p) not in own]
    derive: Callable[..., Any] = value_and_grad(loss, None, update.parameters)

    def step(number: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        if len(given) < len(trained):
            raise ValueError(f"client_step: give a batch and {len(trained)} weights, not {len(given)} tensors")
        batch, weights = given[: len(given) - len(trained)], given[len(given) - len(trained) :]
        for p, weight in zip(trained, weights):
            if weight.shape != p.shape or weight.dtype != p.dtype:
                raise ValueError(f"client_step: {p.name} has the shape {p.shape}, and {weight.shape} is given for it")
        begins = number == 0
        for p, value in [*zip(trained, weights), *states]:
            ops.assign(p, ops.where(begins, value, p))
        found, gradients = derive(*batch)
        update(gradients)
        moved = [p - weight for p, weight in zip(trained, weights)]
        if clip is not None:
            norm = ops.sqrt(ops.addn([(d * d).sum() for d in moved]))
            factor = clip / ops.maximum(norm, ops.full_like(norm, clip))
            moved = [d * factor for d in moved]
        return (found, *moved)

    return step


def client_round(
    step: Callable[..., Any], batches: Iterable[Sequence[Tensor]], weights: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """Return what the steps of a client's round give here: the losses, and how far weights moved.

    * `step`: what `client_step` gives, or that compiled.
    * `batches`: for each step the arguments of the loss.
    * `weights`: those of the server.

    Raises ValueError where there is no batch.

    >>> import mycel as ms
    >>> from mycel.deploy import Aggregator, client_round, client_step
    >>> net = ms.nn.Dense(4, 2)
    >>> update = ms.nn.SGD(net.trainable_params(), 0.1)
    >>> step = ms.jit(client_step(lambda x, y: ms.ops.mse_loss(net(x), y), update))
    >>> weights = [ms.Parameter(p.copy(), name=p.name) for p in update.parameters]
    >>> batch = (ms.ops.ones((8, 4)), ms.ops.zeros((8, 2)))
    >>> losses, moved = client_round(step, [batch, batch], weights)
    >>> Aggregator(weights)([moved])
    >>> bool(client_round(step, [batch], weights)[0][0] < losses[1])
    True
    """
    losses: list[Tensor] = []
    moved: list[Tensor] = []
    for number, batch in enumerate(batches):
        found, *moved = step(Tensor(number, int32), *batch, *weights)
        losses.append(found)
    if not losses:
        raise ValueError("client_round: there is no batch; a round has at least one step")
    return losses, moved


class Aggregator:
    """The server of a federated training: it moves weights by the mean of what clients moved.

    * `parameters`: the weights, in the order in which clients give theirs.
    * `update`: an optimizer of these parameters that takes the negative mean for a gradient; None:
      weights move by the mean itself.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.ops.zeros((2,)), name="w")
    >>> server = Aggregator([w])
    >>> server([[ms.Tensor([1.0, 2.0])], [ms.Tensor([4.0, 2.0])]], counts=[10, 20])
    >>> w.asnumpy()
    array([3., 2.], dtype=float32)
    """

    def __init__(self, parameters: Sequence[Parameter], update: Optimizer | None = None) -> None:
        self.parameters = list(parameters)
        if not self.parameters or not all(isinstance(p, Parameter) for p in self.parameters):
            raise TypeError(f"Aggregator: parameters must be a list of Parameters, not {parameters!r:.80}")
        if update is not None and not isinstance(update, Optimizer):
            raise TypeError(f"Aggregator: update must be an optimizer or None, not {update!r:.80}")
        if update is not None and [id(p) for p in update.parameters] != [id(p) for p in self.parameters]:
            raise ValueError("Aggregator: the optimizer must have the parameters of the server, in their order")
        self.update = update

    def __call__(self, moved: Sequence[Sequence[Any]], counts: Sequence[float] | None = None) -> None:
        """Move the weights by the mean of what each client `moved` them, tensors or arrays.

        `counts` are the clients' weights in the mean, as their numbers of examples; None: all have
        the same. The mean is computed in float64. Raises ValueError, and moves nothing, where
        shapes are not those of the weights, where a client gives what is not finite, and for counts
        that are no weights.
        """
        if not moved:
            raise ValueError("Aggregator: there is no client")
        weights = np.ones(len(moved)) if counts is None else np.asarray(counts, np.float64)
        if weights.shape != (len(moved),) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum():
            raise ValueError(
                f"Aggregator: counts must be {len(moved)} numbers of at least 0, not all 0, not {counts!r}"
            )
        means = [np.zeros(p.shape) for p in self.parameters]
        for client, (parts, weight) in enumerate(zip(moved, weights / weights.sum())):
            if len(parts) != len(means):
                raise ValueError(
                    f"Aggregator: client {client} gives {len(parts)} tensors; there are {len(means)} weights"
                )
            for p, mean, part in zip(self.parameters, means, parts):
                array = np.asarray(part.asnumpy() if isinstance(part, Tensor) else part)
                if array.shape != p.shape:
                    raise ValueError(
                        f"Aggregator: client {client} moved {p.name}, {p.shape}, by the shape {array.shape}"
                    )
                if not np.isfinite(array).all():
                    raise ValueError(f"Aggregator: client {client} moved {p.name} by what is not finite; leave it out")
                mean += weight * array.astype(np.float64)
        changes = [Tensor(m.astype(p.dtype.numpy)) for p, m in zip(self.parameters, means)]
        if self.update is not None:
            self.update(tuple(-c for c in changes))
            return
        for p, change in zip(self.parameters, changes):
            ops.assign(p, p + change)
