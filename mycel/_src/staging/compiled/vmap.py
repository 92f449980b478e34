"""`vmap`: turns a function of one example into a function of a batch of them.

A call stages the function once, for one example, and vectorises its graph (`frontend.vmap_stage`,
`transforms.vmap`). Inside a function that is being staged, the result is part of its graph;
outside, the call is compiled as a whole, so that it runs, and is differentiated, as one graph in
every mode.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation.errors import VmapError
from mycel._src.foundation.pytree import fixed_in, flatten, map_fixed, unflatten
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.frontend.calls.frames import Closure
from mycel._src.staging.frontend.graph_building.stage import Stage, current_stage
from mycel._src.staging.frontend.vmap_stage import Level, Mapped
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, as_tensor, make_staged

__all__ = ["vmap"]

Axis = int | None
_NUMBERS = (bool, int, float, complex, np.generic)


class _Leaf:
    """A mapped tensor among the arguments: its description, its axis, and the tensor that stands
    for one example of it.
    """

    __slots__ = ("name", "tensor", "axis", "example")

    def __init__(self, name: str, tensor: Tensor, axis: int) -> None:
        self.name, self.tensor, self.axis = name, tensor, axis
        self.example: Tensor | None = None

    def __str__(self) -> str:
        return f"{self.tensor.shape[self.axis]} on axis {self.axis} of {self.name} of shape {self.tensor.shape}"


class _Vmap:
    """The vectorised form of a function, or of several Cells of one structure."""

    def __init__(self, fn: Any, in_axes: Any, out_axes: Any) -> None:
        self.cells = _cells(fn)
        if not self.cells and not callable(fn):
            raise VmapError(f"vmap: fn must be a function, a Cell or a list of Cells, not {fn!r:.60}")
        for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
            found = _check_axes(name, axes)
            if not self.cells and all(a is None for a in found):
                raise VmapError(f"vmap: {name} is {axes!r}, which maps nothing; give at least one axis")
        self.fn, self.in_axes, self.out_axes = fn, in_axes, out_axes
        if hasattr(fn, "__name__"):
            functools.update_wrapper(self, fn, assigned=("__name__", "__doc__"), updated=())
        self._compiled: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_stage() is not None:
            return self._run(*args, **kwargs)
        if self._compiled is None:
            self._compiled = Jit(self._run)
            self._compiled.__qualname__ = f"vmap of {getattr(self.fn, '__qualname__', type(self.fn).__name__)}"
        return self._compiled(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        stage = current_stage()
        assert stage is not None
        mapped: list[_Leaf] = []
        arguments = [
            self._argument(i, a, axes, mapped) for i, (a, axes) in enumerate(zip(args, self._per_argument(args)))
        ]
        level = Level(self._size(mapped))
        given: list[Any] = []

        def staged() -> list[Tensor]:
            for m in mapped:
                m.example = level.one_of(stage.node_of(m.tensor), m.axis, m.name)
            inputs = [_rebuilt(stage, structure, [_example(v) for v in leaves]) for leaves, structure in arguments]
            entered = [stage.node_of(m.example) for m in mapped if m.example is not None]
            self._stand_in(stage, level)
            out = stage.invoke(self.cells[0] if self.cells else self.fn, tuple(inputs), kwargs)
            if out is None:
                raise VmapError("vmap: the function returns None; it must return tensors or numbers")
            leaves, structure = flatten(out)
            axes = _spread("out_axes", self.out_axes, out, "the output")
            results = [_output(stage, v, a) for v, a in zip(leaves, axes)]
            written = [
                m for m, n in zip(mapped, entered) if m.example is not None and stage.node_of(m.example) is not n
            ]
            given.extend((results, axes, structure, written))
            fixed = [v for v in fixed_in(structure) if isinstance(v, Tensor)]
            return [t for t in [*results, *[m.example for m in written], *fixed] if t is not None]

        found, stood = level.run(stage, staged)
        results, axes, structure, written = given
        values = iter(found)
        made = [
            None if r is None else self._result(stage, level, next(values), a, i)
            for i, (r, a) in enumerate(zip(results, axes))
        ]
        for m, value in zip(written, values):
            stage.write(m.tensor, _staged(stage, _moved(value, level.size, m.axis)))
        self._write_back(stage, level, stood)
        structure = map_fixed(lambda v: _of_all(stage, v, next(values)) if isinstance(v, Tensor) else v, structure)
        return _rebuilt(stage, structure, made)

    # Arguments.

    def _per_argument(self, args: Sequence[Any]) -> Sequence[Any]:
        axes = self.in_axes
        if not isinstance(axes, (tuple, list)):
            return [axes] * len(args)
        if len(axes) != len(args):
            raise VmapError(
                f"vmap: in_axes {axes!r} has {_count(axes, 'entry', 'entries')} for "
                f"{_count(args, 'positional argument')}; "
                "give one for each, or a single int for all"
            )
        return axes

    def _argument(self, position: int, value: Any, axes: Any, mapped: list[_Leaf]) -> tuple[list[Any], Any]:
        """Return the leaves of an argument, with a `_Leaf` for each mapped tensor, and its
        structure.
        """
        name = f"argument {position}{_named(self.cells[0] if self.cells else self.fn, position)}"
        leaves, structure = flatten(value)
        found: list[Any] = []
        for leaf, axis in zip(leaves, _spread("in_axes", axes, value, name)):
            if axis is None or leaf is None:
                found.append(leaf)
                continue
            if not isinstance(leaf, Tensor):
                raise VmapError(
                    f"vmap: {name} holds a {type(leaf).__name__}{_shown(leaf)}, which has no axis {axis}; "
                    "pass a Tensor, or give it None in in_axes"
                )
            rank = leaf._type.rank
            if not -rank <= axis < rank:
                bounds = f"use a value in [{-rank}, {rank})" if rank else "a scalar has no axes: give it None"
                raise VmapError(
                    f"vmap: in_axes names axis {axis} of {name}, a tensor of shape {leaf.shape}, which is out of "
                    f"range; {bounds}"
                )
            mapped.append(_Leaf(name, leaf, axis % rank))
            found.append(mapped[-1])
        return found, structure

    def _size(self, mapped: Sequence[_Leaf]) -> DimLike:
        sizes: list[DimLike] = [m.tensor._type.shape[m.axis] for m in mapped]
        if self.cells:
            sizes.append(len(self.cells))
        if not sizes:
            raise VmapError(
                "vmap: no argument is mapped, so that the number of examples is not known; pass a tensor with an axis "
                "in in_axes"
            )
        for i, size in enumerate(sizes):
            if size != sizes[0]:
                words = [*map(str, mapped), f"{len(self.cells)} cells"]
                raise VmapError(
                    f"vmap: the numbers of examples differ: {words[0]}, but {words[i]}; mapped axes must have one size"
                )
        return sizes[0]

    # Cells.

    def _stand_in(self, stage: Stage, level: Level) -> None:
        """Let each parameter of the first cell stand for the same parameter of all cells."""
        for cell in self.cells[1:]:
            _check_alike(stage, self.cells[0], cell)
        for group in self._groups():
            rows = [S.reshape(stage.node_of(p), (1, *p._type.shape)) for p in group]
            level.stand_in(stage, group[0], S.concat(rows, 0))

    def _groups(self) -> list[tuple[Tensor, ...]]:
        return list(zip(*[[p for _, p in c.parameters_and_names()] for c in self.cells]))

    def _write_back(self, stage: Stage, level: Level, stood: dict[int, Mapped]) -> None:
        for group in self._groups():
            if id(group[0]) in stood:
                value = _moved(stood[id(group[0])], level.size, 0)
                for i, p in enumerate(group):
                    stage.write(p, _staged(stage, S.reshape(S.slice_axis(value, 0, i, i + 1), p._type.shape)))

    # Results.

    def _result(self, stage: Stage, level: Level, value: Mapped, axis: Axis, number: int) -> Tensor:
        node, place = value
        if axis is None:
            if place is not None:
                raise VmapError(
                    f"vmap: out_axes is None for output {number}, which differs between examples; give it an axis, "
                    "such as 0"
                )
            return _staged(stage, node)
        rank = node.type.rank + (place is None)
        if not -rank <= axis < rank:
            raise VmapError(
                f"vmap: out_axes names axis {axis} of output {number}, which has {_count(range(rank), 'dimension')} "
                "with the mapped one; "
                f"use a value in [{-rank}, {rank})"
            )
        return _staged(stage, _moved(value, level.size, axis % rank))


def _staged(stage: Stage, node: Node) -> Tensor:
    stage.adopt([node])
    return make_staged(node)


def _moved(value: Mapped, size: DimLike, axis: int) -> Node:
    """Return a value with its batch along an axis; a value without a batch is repeated."""
    node, place = value
    if place is None:
        node, place = S.broadcast_to(node, (size, *node.shape)), 0
    return S.move_axis(node, place, axis)


def _of_all(stage: Stage, tensor: Tensor, value: Mapped) -> Tensor:
    """Return a tensor that belongs to the structure of an output and is the same for all examples,
    such as the positions of a sparse tensor's values.
    """
    node, place = value
    if place is not None:
        raise VmapError(
            "vmap: the function returns a sparse tensor whose positions differ between examples; return its parts "
            "instead, or "
            "its to_dense()"
        )
    return tensor if tensor._buf is not None else _staged(stage, node)


def _example(value: Any) -> Any:
    return value.example if isinstance(value, _Leaf) else value


def _output(stage: Stage, value: Any, axis: Axis) -> Tensor | None:
    """Return an output as a tensor; None stays None."""
    if value is None or isinstance(value, Tensor):
        return value
    if isinstance(value, _NUMBERS):
        return stage.created(as_tensor(value))
    raise VmapError(
        f"vmap: the function returns a {type(value).__name__}{_shown(value)}; its outputs must be tensors or numbers, "
        "in tuples, lists or dictionaries"
    )


def _rebuilt(stage: Stage, structure: Any, leaves: Sequence[Any]) -> Any:
    """Return a value of this structure, with new containers for the program to use."""
    made = unflatten(structure, leaves)
    stack = [made]
    while stack:
        value = stack.pop()
        if isinstance(value, (tuple, list)):
            stack.extend(value)
        elif type(value) is dict:
            stack.extend(value.values())
        else:
            continue
        if not isinstance(value, tuple):
            stage.created(value)
    return made


# Axes.


def _check_axes(name: str, axes: Any) -> list[Axis]:
    """Return all axes in nested containers.

    Raises VmapError for what is neither an int nor None.
    """
    if axes is None or isinstance(axes, (int, np.integer)) and not isinstance(axes, bool):
        return [None if axes is None else int(axes)]
    if isinstance(axes, (tuple, list)):
        return [a for v in axes for a in _check_axes(name, v)]
    if isinstance(axes, dict):
        return [a for v in axes.values() for a in _check_axes(name, v)]
    raise VmapError(f"vmap: {name} must be an int, None, or tuples, lists and dicts of these, not {axes!r}")


def _spread(word: str, axes: Any, value: Any, name: str) -> list[Axis]:
    """Return the axis of each leaf of a value.

    An axis for a container is the axis of all its members.
    """
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(flatten(value)[0])
    if isinstance(axes, dict):
        if type(value) is not dict or set(axes) != set(value):
            keys = f"a dict with the keys {list(value)}" if type(value) is dict else f"a {type(value).__name__}"
            raise VmapError(f"vmap: {word} has a dict with the keys {list(axes)} for {name}, which is {keys}")
        return [a for k, v in value.items() for a in _spread(word, axes[k], v, f"{name}[{k!r}]")]
    if not isinstance(value, (tuple, list)) or len(value) != len(axes):
        found = f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, (tuple, list)) else "")
        raise VmapError(f"vmap: {word} has {axes!r}, {_count(axes, 'entry', 'entries')}, for {name}, which is {found}")
    return [a for i, (x, v) in enumerate(zip(axes, value)) for a in _spread(word, x, v, f"{name}[{i}]")]


def _count(items: Any, word: str, plural: str = "") -> str:
    return f"{len(items)} {word if len(items) == 1 else plural or word + 's'}"


def _shown(value: Any) -> str:
    return f" ({value!r:.40})" if isinstance(value, (bool, int, float, complex, str)) else ""


def _named(fn: Any, position: int) -> str:
    """Return the name of the parameter at a position, in brackets, or "" where it is unknown."""
    names: Sequence[str] = ()
    if isinstance(fn, Closure):
        names = fn._code.positional
    else:
        try:
            parameters = inspect.signature(getattr(fn, "construct", fn)).parameters.values()
            names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        except (TypeError, ValueError):
            return ""
    return f" ({names[position]!r})" if position < len(names) else ""


# Cells of one structure.


def _cells(fn: Any) -> list[Any]:
    """Return the members of a list of Cells; an empty list for a function."""
    if isinstance(fn, (list, tuple)):
        found = list(fn)
        if not found or not all(isinstance(c, Cell) for c in found):
            raise VmapError(f"vmap: a list of functions must consist of Cells, and of at least one, not {fn!r:.60}")
        return found
    if getattr(type(fn), "__cell_as_list__", False):
        found = list(fn)
        if not found:
            raise VmapError(f"vmap: the {type(fn).__name__} is empty; give it at least one Cell")
        return found
    return []


def _check_alike(stage: Stage, first: Any, cell: Any) -> None:
    """Raise VmapError where two Cells differ in more than the values of their parameters."""
    for (path, a), (other, b) in zip(first.cells_and_names(), cell.cells_and_names()):
        stage.guards.native_cell(b)
        if path != other or type(a) is not type(b) or a.training is not b.training:
            raise VmapError(
                f"vmap: the cells must have one structure, but {path or 'one'} is a {_word(a)} and "
                f"{other or 'another'} a {_word(b)}"
            )
    kinds = [[(n, p._type) for n, p in c.parameters_and_names()] for c in (first, cell)]
    if kinds[0] != kinds[1]:
        differing = [f"{n} {t}" for n, t in kinds[1] if (n, t) not in kinds[0]] or [
            f"{n} {t}" for n, t in kinds[0] if (n, t) not in kinds[1]
        ]
        raise VmapError(
            f"vmap: the cells must have parameters of the same names and types; {differing[0]} is only in one of them"
        )


def _word(cell: Any) -> str:
    return f"{type(cell).__name__} {'in training' if cell.training else 'not in training'}"


def vmap(fn: Any, in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return the function that applies `fn` to every example of a batch at once.

    `in_axes` says along which axis the examples of the positional arguments lie: one int for all,
    or a tuple or list with an entry for each argument: an int (negative counts from the end), None
    for an argument that is the same for all examples, or nested tuples, lists and dicts for nested
    arguments. All mapped axes have the same size. Keyword arguments and tensors from outside are
    the same for all examples. `out_axes` says in the same way where the examples lie in the
    outputs; None is for an output that is the same for all. Numbers that `fn` returns become
    tensors.

    `fn` is written for one example, with all of Python: conditions and loops decide for each
    example. Each example draws random numbers of its own. A tensor from outside can be written only
    with a value that is the same for all examples. With a list of Cells of one structure (such as
    an nn.CellList), example i goes through cell i. It nests, and mixes with `grad` and `jit` in any
    order.

    Raises VmapError (a RuntimeError) where axes and arguments do not fit, sizes differ, `fn`
    returns something that is no tensor or asks for the value of a tensor that differs between
    examples. Follows `mindspore.vmap`, which draws the same random numbers for all examples.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> print(ms.vmap(lambda row, k: row * k.sum(), in_axes=(1, None))(x, ms.Tensor([1.0, 1.0])))
    [[2. 6.]
     [4. 8.]]
    >>> print(ms.vmap(ms.grad(lambda row: (row * row).sum()))(x))
    [[2. 4.]
     [6. 8.]]
    """
    if type(fn) is not types.FunctionType:
        return _Vmap(fn, in_axes, out_axes)
    # The same function vectorised again, as in a training loop, is not compiled again. Wrappers
    # copy attributes, so the function itself is compared.
    known = fn.__dict__.setdefault("_vectorised", {})
    key = (id(fn), repr((in_axes, out_axes)))
    if key not in known or known[key].fn is not fn:
        known[key] = _Vmap(fn, in_axes, out_axes)
    found: _Vmap = known[key]
    return found
