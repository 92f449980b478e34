"""Cost reports of networks: multiply-adds, parameters and bytes, by layer.

The network is staged outside of training, for example inputs, and products and convolutions of its
graph are counted; so everything that a program computes counts, whatever its Cells are called. A
layer is named by the parameter that a product reads. Of a choice the dearer branch counts. A loop
whose number of rounds data decide counts once, and is listed in `once`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.transforms.expansion import without_calls
from mycel._src.engines.reports import work
from mycel._src.tensors.cells.eval_mode import outside_of_training
from mycel.formats.exporting import model_of
from mycel.formats.graph_files.graph_file import Model

__all__ = ["Cost", "LayerCost", "cost_of", "cost_of_graph", "staged"]


@dataclass(frozen=True)
class LayerCost:
    """What one layer costs.

    Args:
        name (str): Its name.
        operation (str): Its operation.
        macs (int): Products with their additions.
        parameters (int): The elements of its parameters.
        bytes (int): Their bytes.
    """

    name: str
    operation: str
    macs: int
    parameters: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.macs:>14,} {self.parameters:>12,} {self.bytes:>12,}  {self.name} {self.operation}"


@dataclass(frozen=True)
class Cost:
    """What a network costs for its example inputs.

    Args:
        macs (int): Products with their additions, in matrix products, convolutions and recurrent
            layers.
        parameters (int): The elements of the parameters that it reads, moving statistics among
            them.
        bytes (int): The bytes of the same.
        layers (tuple[LayerCost, ...]): The costs by layer, in the order of the program. Default:
            ().
        once (tuple[str, ...]): Loops whose rounds are not known, which count once. Default: ().
    """

    macs: int
    parameters: int
    bytes: int
    layers: tuple[LayerCost, ...] = ()
    once: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{'products':>14} {'parameters':>12} {'bytes':>12}"
        total = LayerCost("all layers", "", self.macs, self.parameters, self.bytes)
        return "\n".join([head, *map(str, self.layers), str(total).rstrip()])


def cost_of(net: Any, *inputs: Any) -> Cost:
    """Return what a network costs for arguments such as `inputs`, outside of training.

    `net` is a Cell or a function of tensors; of `inputs` shapes and types count alone. MACs are
    those of all of the batch. Raises CompileError where the network is not one graph.

    >>> import mycel as ms
    >>> from mycel.compression import cost_of
    >>> net = ms.nn.SequentialCell(ms.nn.Conv2d(1, 4, 3), ms.nn.Flatten(), ms.nn.Dense(256, 10))
    >>> found = cost_of(net, ms.ops.ones((1, 1, 8, 8)))
    >>> found.macs, found.parameters, found.bytes, [layer.name for layer in found.layers]
    (4864, 2606, 10424, ['0', '2'])
    """
    return cost_of_graph(staged(net, inputs))


def staged(net: Any, inputs: Sequence[Any]) -> Model:
    """Return the graph of a network outside of training, with its parameters as states.

    `net` and `inputs` are those of `cost_of`; the modes of Cells are as before afterwards.
    """
    with outside_of_training(net):
        model = model_of(net, inputs)
    model.graph = without_calls(model.graph)
    return model


def cost_of_graph(model: Model) -> Cost:
    """Return what the network of a graph costs; see `cost_of`."""
    given = len(model.graph.inputs) - len(model.states)
    states = {n: s for n, s in zip(model.graph.inputs[given:], model.states) if s.kind == "parameter"}
    names = {n: s.name for n, s in states.items()}
    once: list[str] = []
    macs: dict[tuple[str, str], int] = {}
    for place, operation, count in _products(model.graph, names, once):
        macs[place, operation] = macs.get((place, operation), 0) + count
    owned: dict[str, tuple[int, int]] = {}
    for state in states.values():
        layer, array = _layer(state.name), np.asarray(state.value)
        before = owned.get(layer, (0, 0))
        owned[layer] = before[0] + array.size, before[1] + array.nbytes
    layers = []
    for (name, operation), count in macs.items():
        layers.append(LayerCost(name, operation, count, *owned.pop(name, (0, 0))))
    layers += [LayerCost(name, "", 0, *both) for name, both in owned.items()]
    return Cost(
        sum(layer.macs for layer in layers),
        sum(layer.parameters for layer in layers),
        sum(layer.bytes for layer in layers),
        tuple(layers),
        tuple(once),
    )


def _layer(name: str) -> str:
    """Return the path of the Cell that has a parameter."""
    return name.rpartition(".")[0] or name


def _products(graph: Graph, names: Mapping[Node, str], once: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the layer, operation and count of each product, also in graphs that nodes hold."""
    reads: dict[Node, str] = dict(names)
    for node in graph.nodes:
        # A weight that is transposed, cast or masked on its way is still that parameter.
        found = [reads[i] for i in node.inputs if i in reads]
        inner = [g for value in node.params.values() for g in graphs_in(value)]
        if inner:
            yield from _held(node, inner, names, once)
            continue
        count = work(node)
        if count:
            yield _layer(found[-1]) if found else node.op, node.op, count // 2
        elif found and len({i for i in node.inputs if not i.is_constant}) == len(set(found)):
            reads[node] = found[0]


def _held(node: Node, inner: Sequence[Graph], names: Mapping[Node, str], once: list[str]) -> list[tuple[str, str, int]]:
    branches = []
    for held in inner:
        # The last inputs of a held graph are the last operands: what comes before is its own.
        count = min(len(held.inputs), len(node.inputs))
        pairs = zip(held.inputs[-count:], node.inputs[-count:]) if count else ()
        known = {a: names[b] for a, b in pairs if b in names}
        branches.append(list(_products(held, known, once)))
    if node.prim is control.cond:
        return max(branches, key=lambda branch: sum(c for _, _, c in branch))
    if node.prim is control.while_loop and any(branches):
        once.append(f"{node.op}{'' if node.where is None else f' at {node.where}'}")
    return [entry for branch in branches for entry in branch]
