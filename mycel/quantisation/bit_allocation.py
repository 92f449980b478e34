"""Mixed precision of bits: how many bits each layer's weights get, under a budget.

What a layer loses by few bits is measured one layer at a time: the relative change of the results
on data where its weights alone are rounded. Layers begin with the most bits. Then the one whose
next fewer bits lose least for each byte that they save gives them up, until the budget is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, substitute
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.fake_quantisation import weights_of
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.compiler.transforms.quantise.scales import levels_of, weight_scale
from mycel._src.compiler.transforms.quantise.transposed_convolution import with_convolutions
from mycel._src.foundation.errors import Unsupported
from mycel.formats.exporting import LoadedGraph
from mycel.formats.graph_files.graph_file import Model
from mycel.quantisation.post_training import Batches
from mycel.quantisation.quantised_network import float_model

__all__ = ["Mixed", "mixed_bits"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Mixed:
    """Bits for each layer's weights, in their order; `bytes` is what these take together.

    `sensitivity` has, for each layer, the relative change of results by bits.
    """

    bits: tuple[int, ...]
    bytes: float
    sensitivity: tuple[dict[int, float], ...]


def mixed_bits(net: Any, data: Any, *, mean: float, choices: Sequence[int] = (8, 4, 2)) -> Mixed:
    """Return bits for the weights of each layer of a network.

    Args:
        net (Cell): A Cell or function of tensors, as for `quantise`, whose `weight_bits` takes the
            result's `bits`.
        data (Tensor | Iterable[Tensor | tuple[Tensor, ...]]): Batches, as for `quantise`.
        mean (float): The bits a weight at most, over all weights.
        choices (Sequence[int]): The numbers of bits that layers may have, from 2 to 8. Default: (8,
            4, 2).

    Returns:
        Mixed: The bits of each layer.

    Raises:
        ValueError: For a mean below the fewest of these.

    Examples:
        >>> import mycel as ms
        >>> from mycel.quantisation import mixed_bits, quantise
        >>> net = ms.nn.SequentialCell(ms.nn.Dense(16, 32), ms.nn.ReLU(), ms.nn.Dense(32, 4))
        >>> x = ms.ops.rand(8, 16)
        >>> found = mixed_bits(net, x, mean=6)
        >>> len(found.bits), quantise(net, x, weight_bits=found.bits).report.bits == list(
        ...     found.bits)
        (2, True)
    """
    levels = sorted(set(choices), reverse=True)
    if not levels or any(type(b) is not int or not 2 <= b <= 8 for b in levels):
        raise ValueError(f"mixed_bits: choices must be ints from 2 to 8, not {choices!r}")
    if not mean >= levels[-1]:
        raise ValueError(f"mixed_bits: a mean of {mean!r} bits is below the fewest of a layer, {levels[-1]}")
    batches = Batches(data)
    model = float_model(net, batches.examples())
    model.graph = fold_normalisations(with_convolutions(model.graph))
    layers = [n for n in weights_of(model.graph) if array_of(n.inputs[1]) is not None]
    if not layers:
        raise Unsupported("mixed_bits: the network has no product or convolution with weights of its own")
    wanted = _results(model, model.graph, batches)
    losses = [{b: _loss(model, node, b, wanted, batches) for b in levels} for node in layers]
    sizes = [node.inputs[1].type.size for node in layers]
    place = [0] * len(layers)
    while sum(s * levels[p] for s, p in zip(sizes, place)) > mean * sum(sizes):
        options = [
            ((losses[k][levels[p + 1]] - losses[k][levels[p]]) / (sizes[k] * (levels[p] - levels[p + 1])), k)
            for k, p in enumerate(place)
            if p + 1 < len(levels)
        ]
        place[min(options)[1]] += 1
    bits = tuple(levels[p] for p in place)
    return Mixed(bits, sum(s * b for s, b in zip(sizes, bits)) / 8, tuple(losses))


def _results(model: Model, graph: Graph, batches: Batches) -> list[Array]:
    """Return the results of a graph on the batches, in float64."""
    form = {"tuple": [{"tensor": k} for k in range(len(graph.outputs))]}
    network = LoadedGraph(replace(model, graph=graph, result=form))
    return [value.asnumpy().astype(np.float64) for row in batches for value in network(*row)]


def _loss(model: Model, node: Node, bits: int, wanted: list[Array], batches: Batches) -> float:
    """Return the relative change of results where the weights of one layer have few bits."""
    weight = node.inputs[1]
    array = array_of(weight)
    assert array is not None and node.prim is not None
    scale = weight_scale(array, 0 if node.prim is conv else -1, bits)
    rounded = literal((levels_of(array, scale) * scale.size).astype(np.float32), weight)
    changed = Node(node.prim, (node.inputs[0], rounded), node.params, node.type, node.where)
    graph = Graph(model.graph.inputs, substitute(model.graph.outputs, {node: changed}), model.graph.name)
    found = _results(model, graph, batches)
    apart = sum(float(((a - b) ** 2).sum()) for a, b in zip(found, wanted))
    return apart / max(sum(float((b**2).sum()) for b in wanted), 1e-30)
