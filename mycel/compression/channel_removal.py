"""Removes pruned channels from a network: from its graph, or from its Cells.

In the graph each operation is applied again to what is left, with the parameters that are sizes
changed. In a Cell parameters become smaller, and layers get the sizes that they tell; its program
is not touched, so it must take sizes from its layers or tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at, input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.base import CONSTANT, constant
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input
from mycel._src.compiler.prims.shape import BROADCAST_TO, RESHAPE, SLICE
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.compression.channel_dependences import Dependences
from mycel.formats.graph_files.graph_file import Model
from mycel.nn.layer.basic import Dense, Linear
from mycel.nn.layer.conv import Conv1d, Conv1dTranspose, Conv2d, Conv2dTranspose, Conv3d, Conv3dTranspose
from mycel.nn.layer.embedding import Embedding
from mycel.nn.layer.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm
from mycel.nn.layer.recurrent import GRU, LSTM, RNN

__all__ = ["Removed", "apply_removed", "mask_removed", "removed_positions", "shrunk"]

Array = np.ndarray[Any, Any]
# What is removed: positions by the number of the axis, by the name of the parameter.
Removed = dict[str, dict[int, list[int]]]


def removed_positions(found: Dependences, names: Mapping[Node, str], roots: Array) -> Removed:
    """Return the positions of parameters, called by `names`, whose channels are among `roots`."""
    made: Removed = {}
    gone = found.channels.among(roots)
    for node, name in names.items():
        for axis, stays in enumerate(found.kept(node, gone)):
            if stays is not None:
                made.setdefault(name, {})[axis] = np.flatnonzero(~stays).tolist()
    return made


def shrunk(model: Model, found: Dependences, roots: Array, values: bool = True) -> Model:
    """Return a model without the channels among `roots`; without `values` its states are zeros.

    `model` is whose graph the dependences `found` are of.

    Raises Unsupported where an operation does not follow its operands.
    """
    graph = model.graph
    image: dict[Node, Node] = {}
    gone = found.channels.among(roots)
    for node in graph.inputs:
        kept = found.kept(node, gone)
        image[node] = node
        if any(k is not None for k in kept):
            kind = tensor_type(_sizes(node.type.shape, kept), node.dtype)
            image[node] = input_node(kind, node.params.get("name", "input"), node.where)
    for node in graph.nodes:
        inputs = tuple([image[i] for i in node.inputs])
        with at(node.where):
            image[node] = _applied(node, inputs, found, gone)
    taken = [image[i] for i in graph.inputs]
    given = len(taken) - len(model.states)
    states = []
    for node, state in zip(graph.inputs[given:], model.states):
        value, kept = np.asarray(state.value), found.kept(node, gone)
        left = _left(value, kept) if values else np.broadcast_to(value.dtype.type(0), _sizes(value.shape, kept))
        states.append(replace(state, value=left))
    made = Graph(taken, [image[o] for o in graph.outputs], graph.name)
    return replace(model, graph=made, states=states)


def _sizes(shape: Sequence[Any], kept: Sequence[Array | None]) -> tuple[Any, ...]:
    return tuple([d if k is None else int(k.sum()) for d, k in zip(shape, kept)])


def _left(array: Array, kept: Sequence[Array | None]) -> Array:
    for axis, stays in enumerate(kept):
        if stays is not None:
            array = np.compress(stays, array, axis)
    left: Array = np.ascontiguousarray(array).reshape(array.shape)
    return left


def _applied(node: Node, inputs: tuple[Node, ...], found: Dependences, gone: Array) -> Node:
    """Return a node over what is left of its operands."""
    prim = node.prim
    assert prim is not None
    kept = [found.kept(node, gone, r) for r in range(len(found.values[node]))]
    whole = all(k is None for axes in kept for k in axes)
    if prim is CONSTANT:
        return node if whole else constant(_left(node.value, kept[0]))
    if whole and all(a is b for a, b in zip(inputs, node.inputs)):
        return node
    params = dict(node.params)
    if prim in (RESHAPE, BROADCAST_TO):
        params["shape"] = _sizes(node.type.shape, kept[0])
    elif prim is SLICE:
        ends: dict[str, list[Any]] = {word: list(params[word]) for word in ("starts", "stops")}
        for axis, stays in enumerate(found.kept(node.inputs[0], gone)):
            if stays is not None:
                for places in ends.values():
                    places[axis] = int(stays[: places[axis]].sum())
        params.update({word: tuple(places) for word, places in ends.items()})
    elif prim in (conv, conv_grad_input):
        if prim is conv_grad_input:
            params["input_shape"] = _sizes(node.type.shape, kept[0])
        if params["groups"] != 1 and node.inputs[1].shape[1] == 1:
            # Depthwise: a group is a channel.
            params["groups"] = inputs[0].shape[1]
    made = prim.node(*inputs, **params)
    for new, old, axes in zip(_kinds(made), _kinds(node), kept):
        if isinstance(old, TensorType) and tuple(new.shape) != _sizes(old.shape, axes):
            raise Unsupported(
                f"prune_channels: {node.op} gives {new} of what is left, not {list(_sizes(old.shape, axes))}; "
                "exclude the layers before it"
            )
    return made


def _kinds(node: Node) -> tuple[Any, ...]:
    return node.type if isinstance(node.type, tuple) else (node.type,)


# Cells.


def mask_removed(net: Cell, removed: Removed) -> None:
    """Set what is removed to zero in the parameters of `net`, which keep their shapes."""
    for parameter, axes in _parameters(net, removed):
        array = parameter.asnumpy().copy()
        for axis, positions in axes.items():
            array[(slice(None),) * axis + (positions,)] = 0
        parameter.set_data(Tensor.from_numpy(array))


def apply_removed(net: Cell, removed: Removed) -> None:
    """Take what is removed out of the parameters of `net`, and tell its layers their sizes.

    Raises ValueError where a parameter is not there, or has not these positions.
    """
    for parameter, axes in _parameters(net, removed):
        array = parameter.asnumpy()
        for axis, positions in axes.items():
            array = np.delete(array, positions, axis)
        parameter.set_data(Tensor.from_numpy(np.ascontiguousarray(array)), slice_shape=True)
    changed = {id(p) for p, _ in _parameters(net, removed, check=False)}
    for _, cell in net.cells_and_names():
        own = [p for _, p in cell.parameters_and_names(expand=False)]
        if any(id(p) in changed for p in own):
            _tell(cell)


def _parameters(net: Cell, removed: Removed, check: bool = True) -> list[tuple[Parameter, dict[int, list[int]]]]:
    known = {p.name: p for p in net.get_parameters()}
    made = []
    for name, axes in removed.items():
        if name not in known:
            raise ValueError(f"pruning: the network has no parameter {name!r}; it must be the one that was pruned")
        shape = known[name].shape
        for axis, positions in axes.items():
            if check and (axis >= len(shape) or not positions or max(positions) >= shape[axis]):
                raise ValueError(
                    f"pruning: {name} of shape {tuple(shape)} has no axis {axis} with the pruned positions"
                )
        made.append((known[name], axes))
    return made


def _tell(cell: Cell) -> None:
    """Tell a layer the sizes that its parameters have now."""
    if isinstance(cell, (Dense, Linear)):
        outputs, inputs = cell.weight.shape
        names = ("out_channels", "in_channels") if isinstance(cell, Dense) else ("out_features", "in_features")
        setattr(cell, names[0], outputs)
        setattr(cell, names[1], inputs)
    elif isinstance(cell, (Conv1d, Conv2d, Conv3d, Conv1dTranspose, Conv2dTranspose, Conv3dTranspose)):
        first, second = cell.weight.shape[:2]
        if cell.group != 1 and (cell.out_channels if cell.transposed else cell.in_channels) == cell.group:
            # Depthwise: groups are channels, with `multiplier` results for each.
            multiplier = max(cell.in_channels, cell.out_channels) // cell.group
            cell.group = first if cell.transposed else first // multiplier
        inside, outside = (first, second * cell.group) if cell.transposed else (second * cell.group, first)
        cell.in_channels, cell.out_channels = inside, outside
    elif isinstance(cell, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
        cell.num_features = cell.gamma.shape[0]
    elif isinstance(cell, GroupNorm):
        cell.num_groups = cell.num_groups * cell.gamma.shape[0] // cell.num_channels
        cell.num_channels = cell.gamma.shape[0]
    elif isinstance(cell, LayerNorm):
        cell.normalized_shape = tuple(cell.gamma.shape)
    elif isinstance(cell, (RNN, LSTM, GRU)):
        cell.hidden_size = cell.weight_hh_l0.shape[1]
        cell.input_size = cell.weight_ih_l0.shape[1]
    elif isinstance(cell, Embedding):
        cell.embedding_size = cell.embedding_table.shape[1]
