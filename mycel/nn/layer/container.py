"""Cells that hold cells: in a sequence to run, in a list, or in a dictionary.

Children are registered under their position or key, which begins the names of their parameters
("0.weight"); inserting or removing one renames those that move. A list that became part of a
network knows its place only from the parameter names of its members. A list that was empty at that
time therefore names parameters by position alone, as in MindSpore, whose checkpoints have these
names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell, state_epoch

__all__ = ["CellDict", "CellList", "SequentialCell"]


def _prefix(cells: Mapping[str, Cell]) -> str:
    """Return the beginning of the members' parameter names before their key.

    It ends at the last part of the first name that is the key of its member, or at the first such
    part where the second name has its own key too.
    """
    named = [
        (key, name.split("."))
        for key, name in ((k, next((p.name for p in c.get_parameters()), "")) for k, c in cells.items())
        if name
    ]
    if not named:
        return ""
    key, path = named[0]
    places = [i for i, part in enumerate(path) if part == key]
    if len(named) > 1:
        other, second = named[1]
        places = next((places[: k + 1] for k, i in enumerate(places) if second[i : i + 1] == [other]), places)
    return "".join(part + "." for part in path[: places[-1]]) if places else ""


class _Indexed(Cell):
    """Base of containers with children under the keys "0", "1", ..., or under given names."""

    def _set_children(self, children: Iterable[tuple[str, Cell]]) -> None:
        before = self._cells
        for name in before:
            self.__dict__.pop(name, None)
        self.__dict__["_cells"] = OrderedDict()
        state_epoch.value += 1
        for name, cell in children:
            if before.get(name) is cell:
                self._cells[name] = self.__dict__[name] = cell
            else:
                self._enter(name, cell, before)

    def _renumber(self, cells: Iterable[Cell]) -> None:
        self._set_children((str(i), cell) for i, cell in enumerate(cells))

    def _enter(self, name: str, cell: Cell, known: Mapping[str, Cell]) -> None:
        prefix = _prefix(known)
        setattr(self, name, cell)
        if prefix and self._auto_prefix:
            cell.update_parameters_name(f"{prefix}{name}.")

    def _check(self, cell: Any) -> Cell:
        return arguments.instance(type(self).__name__, "every member", cell, Cell)

    def _position(self, index: Any) -> int:
        if not isinstance(index, int):
            raise TypeError(f"{type(self).__name__}: the index must be an int or a slice, not {type(index).__name__}")
        size = len(self._cells)
        if not -size <= index < size:
            raise IndexError(f"{type(self).__name__}: index {index} is out of range for {size} cells")
        return index % size

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __setitem__(self, index: int, cell: Cell) -> None:
        self._enter(list(self._cells)[self._position(index)], self._check(cell), self._cells)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._cells)
        if isinstance(index, slice):
            gone = set(names[index])
        else:
            gone = {names[self._position(index)]}
        kept = [(name, cell) for name, cell in self._cells.items() if name not in gone]
        if all(name.isdigit() for name in names):
            self._renumber(cell for _, cell in kept)
        else:
            self._set_children(kept)

    def append(self, cell: Cell) -> None:
        """Add a cell at the end."""
        self._enter(str(len(self._cells)), self._check(cell), self._cells)

    def set_grad(self, flag: bool = True) -> Cell:
        """Set whether the cells will be differentiated, and return the container."""
        self.requires_grad = flag
        for cell in self._cells.values():
            cell.set_grad(flag)
        return self


class SequentialCell(_Indexed):
    """Cells that run one after the other, each on the result of the one before.

    The arguments are cells, one list of cells, or one `OrderedDict` of them, whose keys then name
    the parameters. Raises TypeError for other members.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.ReLU())
    >>> [p.name for p in net.get_parameters()], net(ms.ops.ones((2, 3))).shape
    (['0.weight', '0.bias'], (2, 4))
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        members: Any = args
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, cell in args[0].items():
                setattr(self, name, self._check(cell))
            return
        if len(args) == 1 and isinstance(args[0], (list, CellList)):
            members = args[0]
        for i, cell in enumerate(members):
            setattr(self, str(i), self._check(cell))

    @property
    def cell_list(self) -> list[Cell]:
        """The cells, in order.

        >>> import mycel as ms
        >>> net = ms.nn.SequentialCell(ms.nn.ReLU(), ms.nn.Tanh())
        >>> [type(cell).__name__ for cell in net.cell_list]
        ['ReLU', 'Tanh']
        """
        return list(self._cells.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            made = type(self)()
            made.__dict__["_auto_prefix"] = False
            made._set_children(list(self._cells.items())[index])
            return made
        return list(self._cells.values())[self._position(index)]

    def __bool__(self) -> bool:
        return len(self._cells) != 0

    def construct(self, input_data: Any) -> Any:
        """Return the result of the last cell."""
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data


class CellList(_Indexed):
    """A list of cells whose parameters are registered; it cannot be called.

    The arguments are cells or one list of them. Raises TypeError for other members.

    >>> import mycel as ms
    >>> layers = ms.nn.CellList([ms.nn.Dense(2, 3), ms.nn.ReLU()])
    >>> len(layers), layers[-1]
    (2, ReLU())
    """

    __cell_as_list__ = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        members: Any = args
        if len(args) == 1 and isinstance(args[0], (list, CellList)):
            members = args[0]
        for cell in members:
            self.append(cell)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            made = type(self)(auto_prefix=False)
            made._renumber(list(self._cells.values())[index])
            return made
        return list(self._cells.values())[self._position(index)]

    def __bool__(self) -> bool:
        return len(self._cells) != 0

    def insert(self, index: int, cell: Cell) -> None:
        """Insert a cell before position `index`, at most the length; raises IndexError beyond."""
        size = len(self._cells)
        if not -size <= index <= size:
            raise IndexError(f"CellList: index {index} is out of range for an insertion into {size} cells")
        cells = list(self._cells.values())
        cells.insert(index, self._check(cell))
        self._renumber(cells)

    def extend(self, cells: Iterable[Cell]) -> CellList:
        """Add the cells of a list at the end, and return the container."""
        if not isinstance(cells, (list, tuple, CellList)):
            raise TypeError(f"CellList: extend takes a list of cells, not {type(cells).__name__}")
        for cell in list(cells):
            self.append(cell)
        return self

    def __iadd__(self, cells: list[Cell]) -> CellList:
        if not isinstance(cells, list):
            raise TypeError(f"CellList: += takes a list of cells, not {type(cells).__name__}")
        return self.extend(cells)

    def construct(self, *inputs: Any) -> Any:
        """Raise an error: index the list or loop over it instead."""
        raise NotImplementedError("CellList: a list of cells is not called itself; loop over it and call its members")


class CellDict(Cell):
    """A dictionary of cells whose parameters are registered; it cannot be called.

    The argument is a mapping, a `CellDict`, or pairs of a string and a cell. Raises TypeError for
    other keys and members, KeyError for keys that are empty, hold a dot, or are attributes of every
    cell.

    >>> import mycel as ms
    >>> layers = ms.nn.CellDict({"act": ms.nn.ReLU()})
    >>> layers["fc"] = ms.nn.Dense(2, 3)
    >>> list(layers.keys())
    ['act', 'fc']
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        if args:
            self.update(args[0])

    def _check_key(self, key: Any) -> str:
        arguments.text("CellDict", "a key", key)
        if not key or "." in key:
            raise KeyError(f"CellDict: the key {key!r} must not be empty nor hold a dot")
        if key not in self._cells and hasattr(self, key):
            raise KeyError(f"CellDict: the key {key!r} is an attribute of every CellDict; choose another")
        return key

    def __getitem__(self, key: str) -> Cell:
        if key not in self._cells:
            raise KeyError(f"CellDict: there is no cell {key!r}; there are {list(self._cells)}")
        return self._cells[key]

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(cell, Cell):
            raise arguments.wrong_type("CellDict", f"the value of {key!r}", "a Cell", cell)
        setattr(self, self._check_key(key), cell)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def __bool__(self) -> bool:
        return len(self._cells) != 0

    def clear(self) -> None:
        """Remove all cells."""
        for key in list(self._cells):
            delattr(self, key)

    def pop(self, key: str) -> Cell:
        """Remove a cell and return it; raises KeyError where there is none."""
        cell = self[key]
        delattr(self, key)
        return cell

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._cells.keys()

    def values(self) -> Iterable[Cell]:
        """Return the cells."""
        return self._cells.values()

    def items(self) -> Iterable[tuple[str, Cell]]:
        """Return the pairs of key and cell."""
        return self._cells.items()

    def update(self, cells: Any) -> None:
        """Add or replace the cells of a mapping or of pairs."""
        if isinstance(cells, (Mapping, CellDict)):
            pairs = list(cells.items())
        elif isinstance(cells, Iterable):
            pairs = [tuple(pair) for pair in cells]
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError("CellDict: update takes pairs of a key and a cell")
        else:
            raise TypeError(f"CellDict: update takes a mapping or pairs, not {type(cells).__name__}")
        for key, cell in pairs:
            self[key] = cell

    def construct(self, *inputs: Any) -> Any:
        """Raise an error: look a cell up and call it instead."""
        raise NotImplementedError("CellDict: a dictionary of cells is not called itself; call its members")
