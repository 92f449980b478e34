"""Replaces Cells inside a network by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.tensors.cells.cell import Cell

__all__ = ["chosen_layers", "replace_cells"]


def replace_cells(net: Cell, change: Callable[[Cell], Cell | None]) -> None:
    """Put what `change` gives in the place of cells inside of `net`, where it is not None.

    What is inside of a cell that stays is asked for too. A cell that is used in several places is
    asked for once.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(2, 2), ms.nn.ReLU())
    >>> replace_cells(net, lambda cell: ms.nn.Tanh() if isinstance(cell, ms.nn.ReLU) else None)
    >>> type(net[1]).__name__
    'Tanh'
    """
    _walk(net, change, {id(net): net})


def _walk(owner: Cell, change: Callable[[Cell], Cell | None], done: dict[int, Cell]) -> None:
    for name, inner in list(owner._cells.items()):
        if inner is None:
            continue
        if id(inner) not in done:
            made = change(inner)
            done[id(inner)] = inner if made is None else made
            if made is None:
                _walk(inner, change, done)
        if done[id(inner)] is not inner:
            owner.insert_child_to_cell(name, done[id(inner)])


def chosen_layers(
    function: str, net: Cell, kinds: tuple[type, ...], exclude: Sequence[str], only: Sequence[str] | None = None
) -> Mapping[str, Any]:
    """Return the layers of `net` of some kinds, by name, but those in `exclude` and inside of them.

    `function` is who asks, and `only` names those that are meant, if not all. Raises ValueError for
    names that are not there, where none is left, and where `net` itself is one of them.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(2, 2), ms.nn.Dense(2, 2))
    >>> list(chosen_layers("f", net, (ms.nn.Dense,), ["0"]))
    ['1']
    """
    found = {name: cell for name, cell in net.cells_and_names() if type(cell) in kinds}
    if any(cell is net for cell in found.values()):
        raise ValueError(f"{function}: the network is a single layer; put it into a SequentialCell")
    for word in (*exclude, *(only or ())):
        if not any(_inside(name, word) for name in found):
            raise ValueError(f"{function}: {word!r} is no {_words(kinds)}; there are {', '.join(found) or 'none'}")
    left = {n: c for n, c in found.items() if not any(_inside(n, w) for w in exclude)}
    if only is not None:
        left = {n: c for n, c in left.items() if any(_inside(n, w) for w in only)}
    if not left:
        raise ValueError(f"{function}: {type(net).__name__} has no {_words(kinds)} for it")
    return left


def _inside(name: str, word: str) -> bool:
    return name == word or name.startswith(f"{word}.")


def _words(kinds: tuple[type, ...]) -> str:
    return " or ".join(kind.__name__ for kind in kinds)
