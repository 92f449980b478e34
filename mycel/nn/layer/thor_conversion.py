"""The replacement of a network's layers by those that second-order optimization needs.

A `Dense`, `Conv2d`, `Embedding` or `EmbeddingLookup` (those classes, not their subclasses) whose
weight is trained is replaced by its counterpart in `mycel.nn.layer.thor`, which computes the same
with the same Parameter objects. As in MindSpore, layers with "wide" in their path stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.tensors.cells.cell import Cell
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.conv import Conv2d
from mycel.nn.layer.embedding import Embedding, EmbeddingLookup
from mycel.nn.layer.thor import Conv2dThor, DenseThor, EmbeddingLookupThor, EmbeddingThor

__all__ = ["convert_to_thor"]


def _dense(cell: Any) -> Cell:
    made = DenseThor(cell.in_channels, cell.out_channels, "zeros", has_bias=cell.bias is not None)
    made.activation = cell.activation
    return _with(made, cell, "weight", "bias")


def _conv(cell: Any) -> Cell:
    made = Conv2dThor(
        cell.in_channels,
        cell.out_channels,
        cell.kernel_size,
        cell.stride,
        cell.pad_mode,
        cell.padding,
        cell.dilation,
        cell.group,
        cell.bias is not None,
        "zeros",
    )
    return _with(made, cell, "weight", "bias")


def _embedding(cell: Any) -> Cell:
    made = EmbeddingThor(cell.vocab_size, cell.embedding_size, cell.use_one_hot, "zeros", padding_idx=cell.padding_idx)
    return _with(made, cell, "embedding_table")


def _lookup(cell: Any) -> Cell:
    made = EmbeddingLookupThor(cell.vocab_size, cell.embedding_size, "zeros", max_norm=cell.max_norm)
    return _with(made, cell, "embedding_table")


_COUNTERPARTS: dict[type, Callable[[Any], Cell]] = {
    Dense: _dense,
    Conv2d: _conv,
    Embedding: _embedding,
    EmbeddingLookup: _lookup,
}


def _with(made: Cell, cell: Cell, *names: str) -> Cell:
    """Return `made` with the parameters of `cell` instead of its own."""
    for name in names:
        if getattr(cell, name) is not None:
            setattr(made, name, getattr(cell, name))
    made.set_train(cell.training)
    return made


def convert_to_thor(net: Cell) -> list[str]:
    """Replace the layers of a network, and return the paths of the replaced ones."""
    replaced: list[str] = []
    made: dict[int, Cell] = {}
    for path, parent in list(net.cells_and_names()):
        for name, cell in parent.name_cells().items():
            place = f"{path}.{name}" if path else name
            convert = _COUNTERPARTS.get(type(cell))
            if convert is None or "wide" in place.lower():
                continue
            weight: Any = cell.weight if hasattr(cell, "weight") else cell.embedding_table
            if not weight.requires_grad:
                continue
            # A layer that is used in several places is replaced by one layer.
            if id(cell) not in made:
                made[id(cell)] = new = convert(cell)
                prefix = weight.name.rpartition(".")[0]
                for parameter in new.get_parameters(expand=False) if prefix else ():
                    if not any(parameter is known for known in cell.get_parameters(expand=False)):
                        parameter.name = f"{prefix}.{parameter.name}"
            parent.insert_child_to_cell(name, made[id(cell)])
            replaced.append(place)
    return replaced
