"""Turns operators' strategies (numbers of parts) into divisions of graph nodes on a mesh.

A program says of an operator how its inputs and results are cut. The devices are a mesh with an
axis for each prime factor of their number, and the cuts of one operator are laid along these axes:
each iteration of the operator (a row, a column, what a product sums over) that is cut takes the
first axes that make its number of parts. What is one iteration is found by following the factors of
the nodes in the operator's region. A `Layout` names axes of a mesh of its own, which stand for axes
of primes in the same way.

The marks around the operator (`constrain`) then have divisions, and everything else follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.sharding.division import Division
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.compiler.prims.distributed.sharding_constraint import Mark, Operator, constrain
from mycel._src.compiler.prims.elementwise import cast
from mycel._src.compiler.prims.factors import factors_of
from mycel._src.compiler.transforms.operator_regions import Region, marks_of, regions_of, values_of
from mycel._src.compiler.transforms.partition import Part, Sharding, part_of

__all__ = ["mesh_of", "plan_of"]

Key = tuple[Node, int]
Axes = tuple[str, ...]


def mesh_of(count: int, devices: Sequence[int] = ()) -> Mesh:
    """Return the mesh of `count` devices with an axis for each prime factor, the largest last.

    >>> mesh_of(12).sizes
    (2, 2, 3)
    """
    sizes, rest, prime = [], count, 2
    while rest > 1:
        while rest % prime == 0:
            sizes.append(prime)
            rest //= prime
        prime += 1
    sizes = sizes or [1]
    return Mesh(tuple(sizes), tuple(f"d{k}" for k in range(len(sizes))), tuple(devices))


def plan_of(
    graph: Graph, mesh: Mesh, loaded: Mapping[str, Sequence[Sequence[int]]] | None = None
) -> dict[Node, Sharding]:
    """Return the divisions of the marks in a graph that the program's strategies say, or those in
    `loaded`, by names of operators, for operators without one.

    Those of gradients are the values'. Gradients of the graph's inputs are left open: what they are
    summed to is scattered to the parts of a parameter where it has more of them than the operator
    that reads it.

    Raises ValueError, with the operator and its line, for a strategy that cuts one iteration into
    different numbers of parts, or that the devices cannot carry out.
    """
    said: dict[tuple[Operator, str, int], Sharding] = {}
    for region in regions_of(graph):
        for mark, layout in _laid(region, mesh, (loaded or {}).get(region.operator.name)).items():
            said[_key(mark.params["mark"])] = layout
    for node, value in values_of(graph):
        division = value.division
        if division is not None:
            if division.mesh is not None:
                axes = [_named(names, division, mesh, value.operator) for names in division.axes]
            else:
                axes = _in_turn(division.cuts, mesh, value.operator)
            said[_key(value)] = _layout(node, axes, mesh)
    at_inputs = _keys_at_inputs(graph)
    found = {}
    for node in marks_of(graph):
        mark = node.params["mark"]
        key = _key(mark)
        if key in said and not (mark.gradient and key in at_inputs):
            found[node] = _as_division(node, said[key])
    return found


def _keys_at_inputs(graph: Graph) -> set[tuple[Operator, str, int]]:
    """Return the keys of marks of inputs, and of what casts and views make of them."""
    values: set[Node] = set(graph.inputs)
    found = set()
    for node in graph.nodes:
        if node.prim is None or len(node.inputs) != 1 or node.inputs[0] not in values:
            continue
        if node.prim is constrain and not node.params["mark"].gradient:
            found.add(_key(node.params["mark"]))
            values.add(node)
        elif node.prim.view or node.prim is cast:
            values.add(node)
    return found


def _key(mark: Mark) -> tuple[Operator, str, int]:
    return mark.operator, mark.role, mark.index


def _laid(region: Region, mesh: Mesh, loaded: Sequence[Sequence[int]] | None = None) -> dict[Node, Sharding]:
    """Return the layouts of the marks of one operator, with `loaded` those of a file."""
    inputs: Sequence[Division | None] = region.in_strategy
    if loaded is not None and not region.operator.strategy:
        inputs = _fitting(region, [Division(tuple(cuts)) for cuts in loaded], mesh)
    marks = [(m, m, d) for m, d in zip(region.inputs, inputs) if d is not None]
    results = [(m, m.inputs[0], d) for m, d in zip(region.results, region.out_strategy) if d is not None]
    if not marks and not results:
        return {}
    root = _Classes(region)
    asked: dict[Key, tuple[int, Axes | None]] = {}
    # Axes of results cut further than what they iterate over, as in a sum that is scattered.
    further: dict[Key, tuple[int, Axes | None]] = {}
    for mark, value, division in [*marks, *results]:
        for axis, cut in enumerate(division.cuts):
            if cut == 1:
                continue
            key = root.of((value, axis))
            names = None
            if division.mesh is not None:
                names = _named(division.axes[axis], division, mesh, region.operator)
            before = asked.setdefault(key, (cut, names))
            if before[0] == cut and (not names or not before[1] or names == before[1]):
                continue
            if mark is value or (names is None and cut % before[0]):
                raise _error(
                    region.operator,
                    f"axis {axis} of size {value.type.shape[axis]} is cut into {cut} parts, and what it is "
                    f"multiplied or combined with into {before[0]}; give both the same number",
                )
            further[value, axis] = (cut, names)
    taken: set[str] = {n for _, names in asked.values() for n in names or ()}
    axes: dict[Key, Axes] = {}
    for key, (cut, names) in asked.items():
        axes[key] = names if names is not None else _taken(cut, mesh, taken, region.operator)
        taken.update(axes[key])
    found = {}
    for mark, value, _ in [*marks, *results]:
        own = [axes.get(root.of((value, axis)), ()) for axis in range(mark.type.rank)]
        if mark is not value:
            _cut_further(own, [further.get((value, axis)) for axis in range(mark.type.rank)], axes, mesh, region)
        found[mark] = _layout(mark, own, mesh)
    return found


def _fitting(region: Region, given: Sequence[Division], mesh: Mesh) -> Sequence[Division]:
    if len(given) != len(region.inputs):
        raise _error(region.operator, f"the file has {len(given)} entries, and there are {len(region.inputs)} inputs")
    for mark, division in zip(region.inputs, given):
        reason = division.misfit(mark.type.shape, mesh.size)
        if reason:
            raise _error(region.operator, f"{division} of the file, for {mark.type}: {reason}")
    return given


def _cut_further(
    own: list[Axes],
    further: Sequence[tuple[int, Axes | None] | None],
    axes: Mapping[Key, Axes],
    mesh: Mesh,
    region: Region,
) -> None:
    """Change `own`, the mesh axes of a result's axes, where `further` asks for more parts.

    They are cut along axes that the operator sums over, before others. `axes` are those of what the
    operator iterates over.
    """
    summed = [a for names in axes.values() for a in names]
    order = Mesh(*zip(*sorted(zip(mesh.sizes, mesh.names), key=lambda pair: pair[1] not in summed))) if summed else mesh
    for axis, asked in enumerate(further):
        if asked is None:
            continue
        cut, names = asked
        others = {a for k, known in enumerate(own) if k != axis for a in known}
        if names is None:
            more = _taken(cut // mesh.count(own[axis]), order, others | set(own[axis]), region.operator)
            names = (*own[axis], *more)
        if others & set(names):
            raise _error(
                region.operator, f"its result would be cut twice along {', '.join(sorted(others & set(names)))}"
            )
        own[axis] = names


class _Classes:
    """The axes of a region's values that are one iteration: union and find over factors."""

    def __init__(self, region: Region) -> None:
        self.above: dict[Key, Key] = {}
        for node in region.nodes:
            for factor in factors_of(node):
                values = (*zip(node.inputs, factor.operands), *((node, r) for r in factor.results[:1]))
                keys = [(v, p.axis) for v, p in values if p is not None and p.before == 1]
                for key in keys[1:]:
                    one, two = self.of(keys[0]), self.of(key)
                    if one != two:
                        self.above[one] = two

    def of(self, key: Key) -> Key:
        while key in self.above:
            key = self.above[key]
        return key


def _taken(cut: int, mesh: Mesh, taken: set[str], operator: Operator) -> Axes:
    """Return the first free axes of a mesh that make `cut` parts."""
    free = [n for n in mesh.names if n not in taken and mesh.count((n,)) > 1]
    found: list[str] = []
    for name in free:
        if cut % mesh.count((name,)) == 0:
            found.append(name)
            cut //= mesh.count((name,))
    if cut != 1:
        raise _error(operator, f"{mesh.size} devices cannot be divided into the numbers of parts that it asks for")
    return tuple(found)


def _in_turn(cuts: Sequence[int], mesh: Mesh, operator: Operator) -> list[Axes]:
    taken: set[str] = set()
    result = []
    for cut in cuts:
        result.append(_taken(cut, mesh, taken, operator))
        taken.update(result[-1])
    return result


def _named(names: Axes, division: Division, mesh: Mesh, operator: Operator) -> Axes:
    """Return the axes of `mesh` that stand for axes of a layout's own mesh."""
    assert division.mesh is not None
    stands = dict(zip(division.mesh.names, _in_turn(division.mesh.sizes, mesh, operator)))
    return tuple(a for name in names for a in stands[name])


def _layout(node: Node, axes: Sequence[Axes], mesh: Mesh) -> Sharding:
    parts: list[Part] = []
    for axis, names in enumerate(axes):
        parts += part_of(mesh, axis, names, node.type.shape[axis])
    return Sharding(tuple(parts))


def _as_division(node: Node, layout: Sharding) -> Sharding:
    """Return a layout of a mark's value over the mark's factors."""
    number = {f.results[0].axis: k for k, f in enumerate(factors_of(node)) if f.results[0] is not None}
    return Sharding(tuple(Part(number[p.axis], p.before, p.size, p.after, p.mesh_axes, p.count) for p in layout.parts))


def _error(operator: Operator, reason: str) -> ValueError:
    line = "" if operator.where is None else f"\n{excerpt(operator.where)}"
    return ValueError(f"{operator.name}: the strategy of {operator.kind} does not fit: {reason}{line}")
