"""Channel importance (Taylor scores), and group-lasso regularisation.

`taylor_importance` estimates what the loss changes when a parameter becomes zero, by its first
derivative: |w * g|, summed over batches (Molchanov et al., 2019). `GroupLasso` is a term of the
loss that draws whole groups of parameters that go together towards zero: the sum of the Euclidean
norms of groups, times the root of their sizes (Yuan and Lin, 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.staging.derivatives import value_and_grad
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.compression.channel_pruning import Structure

__all__ = ["GroupLasso", "taylor_importance"]

Array = np.ndarray[Any, Any]


def taylor_importance(net: Cell, loss: Callable[..., Tensor], batches: Iterable[Any]) -> dict[str, Array]:
    """Return how much the loss changes to first order when each element of a parameter is zero.

    * `net`: the Cell, whose trainable parameters are asked for.
    * `loss`: a function of a batch that gives the loss, by `net`.
    * `batches`: batches, each a tuple of arguments of `loss`.

    The result has an array of float64 for each parameter by name, for `prune_channels`. Raises
    ValueError without a batch.

    >>> import mycel as ms
    >>> from mycel.compression import taylor_importance
    >>> net = ms.nn.Dense(2, 1, weight_init="ones", has_bias=False)
    >>> taylor_importance(net, lambda x: net(x).sum(), [(ms.Tensor([[1.0, 3.0]]),)])["weight"]
    array([[1., 3.]])
    """
    arguments.instance("taylor_importance", "net", net, Cell, "a Cell")
    arguments.function("taylor_importance", "loss", loss)
    parameters = net.trainable_params()
    graded: Any = value_and_grad(loss, None, parameters)
    found: dict[str, Array] = {}
    for batch in batches:
        _, slopes = graded(*(batch if isinstance(batch, (tuple, list)) else (batch,)))
        for parameter, slope in zip(parameters, slopes):
            value = np.abs(parameter.asnumpy().astype(np.float64) * slope.asnumpy())
            found[parameter.name] = found.get(parameter.name, 0.0) + value
    if not found:
        raise ValueError("taylor_importance: there is no batch, or no trainable parameter")
    return found


class GroupLasso(Cell):
    """A term of the loss: the norms of what `prune_channels` would remove together.

    `net` is the Cell and `inputs` are example arguments; `strength` is the factor of the term. Add
    the result of a call to the loss, and prune after training.

    >>> import mycel as ms
    >>> from mycel.compression import GroupLasso
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(2, 3, "ones", "zeros"), ms.nn.Dense(3, 1, "ones"))
    >>> round(float(GroupLasso(net, ms.ops.ones((1, 2)), strength=1.0)()), 4)
    9.0
    """

    def __init__(self, net: Cell, *inputs: Any, strength: float = 1e-3) -> None:
        super().__init__(auto_prefix=False)
        self.strength = arguments.real("GroupLasso", "strength", strength, at_least=0)
        arguments.instance("GroupLasso", "net", net, Cell, "a Cell")
        structure = Structure(net, inputs)
        if not structure.groups:
            raise ValueError("GroupLasso: the network has no channels that could be removed")
        roots = np.concatenate([g.roots for g in structure.groups])
        known = {p.name: p for p in net.trainable_params()}
        self._of: list[tuple[Any, int, Tensor]] = []
        sizes = np.zeros(len(roots))
        order = np.argsort(roots)
        for node, name in structure.names.items():
            weight = known.get(name)
            for k, axis in enumerate(structure.found.of(node)):
                if axis is None or weight is None or weight.ndim < 2:
                    continue
                own = structure.found.channels.roots(axis.channels)
                inside = np.isin(own, roots)
                if not inside.any():
                    continue
                # What belongs to no group is counted at a place that is cut off.
                places = np.full(len(own), len(roots))
                places[inside] = order[np.searchsorted(roots[order], own[inside])]
                np.add.at(sizes, places[inside], weight.size // len(own))
                self._of.append((weight, k, Tensor.from_numpy(places.astype(np.int32))))
        self._count = len(roots)
        self._factors = Tensor.from_numpy(np.sqrt(sizes).astype(np.float32))

    def construct(self) -> Tensor:
        """Return the term, a float32 scalar."""
        total = ops.zeros((self._count + 1,), D.float32)
        for weight, k, places in self._of:
            along = (weight.astype(D.float32) ** 2).sum(tuple(a for a in range(weight.ndim) if a != k))
            total = ops.index_add(total, places, along, 0)
        # The slope of the norm of a group of zeros is zero.
        squares = total[: self._count]
        norms = ops.where(squares > 0, ops.sqrt(ops.where(squares > 0, squares, ops.ones_like(squares))), 0.0)
        return (norms * self._factors).sum() * self.strength
