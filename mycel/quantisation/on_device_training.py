"""`learning`: an integer network some of whose parameters go on being trained in floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.base import CONSTANT
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.fake_quantisation import inserted, points, rounded_now, weights_of
from mycel._src.compiler.transforms.quantise.integer_training import lowered_for_training
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.parameter import Parameter
from mycel.formats.exporting import LoadedGraph
from mycel.formats.graph_files.graph_file import Model
from mycel.quantisation.post_training import ROUNDINGS, Batches, Choice, bits_of, observed, rounded_weights
from mycel.quantisation.quantised_network import Report, constant_bytes, float_model

__all__ = ["Learning", "learning"]


class Learning(LoadedGraph):
    """A network of integers whose trained parameters are floats, as any Cell.

    `report` says what became of it. It is made of the `model` whose graph is one of integers, and
    of the graph of `rounded` values.
    """

    report: Report

    def __init__(self, model: Model, rounded: Graph, report: Report) -> None:
        super().__init__(model)
        self.report = report
        # In a tuple, so that its parameters are not among those of this network.
        self._simulated = (LoadedGraph(replace(model, graph=rounded)),)

    @property
    def simulated(self) -> LoadedGraph:
        """The network of floats that rounds as this one does."""
        return self._simulated[0]


def learning(
    net: Any,
    data: Any,
    trained: Sequence[Parameter],
    *,
    method: str = "minmax",
    percentile: float = 99.99,
    per_channel: bool = True,
    rounding: str = "single",
    round_trained: bool = True,
) -> Learning:
    """Return a network that computes with integers of 8 bits, and has gradients of floats.

    It is what a device trains: the forward pass is that of a network of integers, of which a
    training step keeps bytes, and gradients pass straight through the rounding, as through the same
    operations of floats. Parameters that are not trained are constants of 8 bits. Values beyond the
    range that was observed are clipped, and have no gradient where they are computed in floats.
    Where a ReLU gives 0 or less than half the scale, the gradient is 0.

    Args:
        net (Cell): A Cell, which stays as it is; it is taken as it is outside of training.
        data (Tensor | Iterable[Tensor | tuple[Tensor, ...]]): Batches like those of use, on which
            ranges of values are observed, as `quantise` takes them.
        trained (Sequence[Parameter]): Parameters of `net` that are trained: weights, biases or both
            of any layers.
        method (str): As for `quantise`. Default: "minmax".
        percentile (float): As for `quantise`. Default: 99.99.
        per_channel (bool): As for `quantise`. Default: True.
        rounding (str): As for `quantise`. Default: "single".
        round_trained (bool): Whether trained weights are rounded to 8 bits, by the magnitudes that
            they have by then, so that their layers are computed with integers too; else those stay
            in floats. Default: True.

    Returns:
        Learning: The network, which has parameters of its own, with the names and values of those
            of `net` that are trained.

    Raises:
        TypeError, ValueError: For parameters that are none of `net` or are none of float32.
        Unsupported: Where nothing is computed with integers, and as `quantise` does.

    Examples:
        >>> import mycel as ms
        >>> from mycel.quantisation import learning
        >>> net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
        >>> x = ms.ops.rand(16, 4)
        >>> small = learning(net, x, [net[0].bias, net[2].weight])
        >>> [p.name for p in small.trainable_params()], bool(ms.ops.abs(small(x) - net(x)).max(
        ...     ) < 0.05)
        (['0.bias', '2.weight'], True)
        >>> update = ms.nn.SGD(small.trainable_params(), 0.1)
        >>> step = ms.value_and_grad(lambda x: (small(x) ** 2).mean(), None, update.parameters)
        >>> before, gradients = step(x)
        >>> done = update(gradients)
        >>> bool(step(x)[0] < before)
        True
    """
    arguments.one_of("learning", "rounding", rounding, ROUNDINGS)
    arguments.flag("learning", "round_trained", round_trained)
    given = Choice(method=method, percentile=percentile, per_channel=per_channel, rounding=rounding)
    given.check()
    names = _names(net, trained)
    batches = Batches(data)
    model = float_model(net, batches.examples(), trained=names)
    if missing := names - {s.name for s in model.states}:
        raise ValueError(f"learning: the network does not use {', '.join(sorted(missing))}")
    model.states = [replace(s, requires_grad=True) for s in model.states]
    model.graph = fold_normalisations(model.graph)
    own = frozenset(model.graph.inputs[len(model.graph.inputs) - len(model.states) :])
    chosen = rounded_weights(model, batches, given)
    scales = observed(model, points(model.graph, trained=own), batches, given)

    def own_weight(node: Node) -> Node:
        axis = (0 if node.prim is conv else -1) if per_channel else None
        return rounded_now(node.inputs[1], axis) if round_trained else node.inputs[1]

    rounded: Graph = inserted(
        model.graph, scales, lambda node, array: chosen.get(node), trained=own, own_weight=own_weight
    )
    small = lowered_for_training(rounded, own, rounding)
    if not any(n.prim in (int_conv, int_matmul) for n in small.graph.nodes):
        raise Unsupported(
            "learning: nothing of the network is computed with integers; convolutions and products of float32 are"
        )
    floats = [f"{n.op}{'' if n.where is None else f' at {n.where}'}: {why}" for n, why in small.floats]
    sizes = sum(s.value.nbytes for s in model.states)
    # Forward and backward read the same weights.
    held = {(n.value.dtype.str, n.value.tobytes()) for n in small.graph.nodes if n.prim is CONSTANT}
    bits = [bits_of(n.inputs[1]) for n in weights_of(rounded, own)]
    report = Report(sum(len(b) for _, b in held) + sizes, constant_bytes(model.graph) + sizes, floats, bits)
    return Learning(replace(model, graph=small.graph), rounded, report)


def _names(net: Any, trained: Sequence[Parameter]) -> frozenset[str]:
    """Return the names of the parameters that are trained."""
    arguments.function("learning", "net", net, "a Cell")
    if not isinstance(trained, (list, tuple)) or not all(isinstance(p, Parameter) for p in trained):
        raise TypeError(f"learning: trained must be a list of Parameters, not {trained!r:.80}")
    if not trained:
        raise ValueError("learning: trained has no parameter; a network that is not trained is made by quantise")
    known = {id(p) for p in net.get_parameters()} if hasattr(net, "get_parameters") else set()
    for p in trained:
        if id(p) not in known:
            raise ValueError(f"learning: {p.name} is no parameter of {type(net).__name__}")
        if np.dtype(p.dtype.numpy) != np.float32:
            raise TypeError(f"learning: {p.name} is of {p.dtype}; float32 is trained")
    names = [p.name for p in net.get_parameters()]
    twice = sorted({p.name for p in trained if names.count(p.name) > 1})
    if twice:
        raise ValueError(f"learning: several parameters are named {', '.join(twice)}; names must differ")
    return frozenset(p.name for p in trained)
