"""Plans: how a graph is divided among devices, found by search, read, changed, saved and loaded.

Each input and node has an *entry*, named by its operation and how many of these come before it, or
by the name of the input. Its layout is one of those that the node can have: a plan never holds
anything that could not be partitioned. What a plan costs is computed by the model of the search,
whatever changed it.

Files are JSON: the mesh, and for each entry its type and layout as they are printed. A file is
written whole or not at all, and read only for a graph whose entries have the same types.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.partition import Sharding
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.files import atomic_files
from mycel._src.foundation.python_runtime import garbage_collection
from mycel._src.planner.named_plans import starts_of
from mycel._src.planner.plan_search import Answer, search
from mycel._src.planner.sharding_problem import Posed, pose
from mycel._src.planner.topology import Topology

__all__ = ["Plan", "Row", "load_plan", "plan"]

ROWS = 40  # rows of a printed table
Layout = Sharding | str
Share = Callable[[Callable[[], Sequence[int]], int], Sequence[int]]


@dataclass(frozen=True)
class Row:
    """An entry of a plan: the seconds of its node and of bringing its operands, and what it holds.

    `layout` is that of an input, or the division of a node by its factors; `where` is the line.
    """

    name: str
    type: str
    layout: Sharding
    where: str
    computing: float
    moving: float
    bytes: float


class Plan:
    """A division of a graph on the mesh of a topology.

    `inputs` has the layouts of the graph's inputs and `divisions` those of its nodes, as
    `partition` takes them. `seconds` and `bytes` are the model's, for a step and for each device;
    `exact` tells whether nothing cheaper exists. Where it was not proved, `named` has the seconds
    of the plans with names that it was compared with, None for those that hold too much.
    """

    def __init__(
        self,
        posed: Posed,
        answer: Answer,
        aliases: Mapping[int, int],
        named: Mapping[str, float | None] | None = None,
    ) -> None:
        """Take the choices of `answer` in `posed`.

        `aliases` are those of the graph, and `named` has the seconds of plans that have names.
        """
        self.posed, self.aliases, self.named = posed, dict(aliases), dict(named or {})
        self.choices = tuple(answer.choices)
        self.seconds, self.bytes, self.exact = answer.seconds, answer.bytes, answer.exact
        self.names = _names(posed)
        chosen = [a[c] for a, c in zip(posed.alternatives, self.choices)]
        count = len(posed.graph.inputs)
        self.inputs = tuple(chosen[:count])
        self.divisions: dict[Node, Sharding] = dict(zip(posed.nodes[count:], chosen[count:]))

    @property
    def sent(self) -> float:
        """The bytes that each rank sends in a step, by the model."""
        return sum(move.sent for _, move in self.posed.moves(self.choices))

    def __getitem__(self, name: str) -> Sharding:
        """Return the layout of an entry."""
        k = self._find(name)
        return self.posed.alternatives[k][self.choices[k]]

    def alternatives(self, name: str) -> tuple[Sharding, ...]:
        """Return the layouts that an entry may have."""
        return self.posed.alternatives[self._find(name)]

    def changed(self, layouts: Mapping[str, Layout]) -> Plan:
        """Return the plan with other layouts of some entries, given as they are or as printed.

        Raises ValueError for entries that there are not, and for layouts that they cannot have.
        """
        choices = list(self.choices)
        for name, layout in layouts.items():
            k = self._find(name)
            can = self.posed.alternatives[k]
            found = next((n for n, s in enumerate(can) if s == layout or str(s) == str(layout)), None)
            if found is None:
                raise ValueError(
                    f"plan: {name} of {self.posed.nodes[k].type} cannot be divided by {str(layout)!r}; it can by "
                    f"{', '.join(repr(str(s)) for s in can)}"
                )
            choices[k] = found
        problem = self.posed.problem
        answer = Answer(choices, problem.seconds(choices), problem.memory(choices)[0], False)
        return Plan(self.posed, answer, self.aliases)

    def _find(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            near = [n for n in self.names if n.split("-")[0] == name.split("-")[0]][:6]
            raise ValueError(f"plan: there is no entry {name!r}" + (f"; there are {', '.join(near)}" if near else ""))
        return found

    @property
    def _numbers(self) -> dict[str, int]:
        return {n: k for k, n in enumerate(self.names)}

    def rows(self) -> list[Row]:
        """Return all entries in the order of the graph, the inputs first."""
        problem, choices = self.posed.problem, self.choices
        moving = [0.0] * len(choices)
        for link in problem.links:
            known: set[int] = set()
            for user, wants in zip(link.users, link.wants):
                wanted = int(wants[choices[user]])
                if wanted not in known:
                    moving[user] += float(link.seconds[choices[link.source], wanted])
                known.add(wanted)
        result = []
        for k, (item, node) in enumerate(zip(problem.items, self.posed.nodes)):
            where = "" if node.where is None else f"{Path(node.where.file).name}:{node.where.line}"
            held = sum(float(h.bytes[choices[k]]) for h in item.holds)
            computing = float(item.seconds[choices[k]])
            layout = self.posed.alternatives[k][choices[k]]
            result.append(Row(self.names[k], _type(node), layout, where, computing, moving[k], held))
        return result

    def __str__(self) -> str:
        """Return a table of the entries that take the most time or memory."""
        rows = self.rows()
        mesh = self.posed.mesh
        axes = " x ".join(f"{n} {s}" for n, s in zip(mesh.names, mesh.sizes))
        computing, moving = sum(r.computing for r in rows), sum(r.moving for r in rows)
        head = [
            f"plan for {mesh.size} devices ({axes}): {_time(self.seconds)} a step, {_time(computing)} of it computing "
            f"and {_time(moving)} moving; {self.bytes / 1e6:.1f} MB a device" + ("; the best" if self.exact else "")
        ]
        most = max(rows, key=lambda r: r.bytes).bytes or 1.0
        whole = self.seconds or 1.0
        ranked = sorted(rows, key=lambda r: -max((r.computing + r.moving) / whole, r.bytes / most / 10))
        shown = {r.name for r in ranked[:ROWS]}
        table = [("entry", "line", "type", "layout", "computing", "moving", "MB")]
        table += [
            (r.name, r.where, r.type, str(r.layout), _time(r.computing), _time(r.moving), f"{r.bytes / 1e6:.2f}")
            for r in rows
            if r.name in shown
        ]
        widths = [max(len(line[c]) for line in table) for c in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in table]
        more = [f"and {len(rows) - len(table) + 1} more"] if len(rows) >= len(table) else []
        return "\n".join(head + lines + more)

    def tensor_maps(self) -> dict[str, tuple[list[int], list[int]]]:
        """Return the layouts of inputs as MindSpore's strategy files have them.

        For each input by name: the sizes of the mesh, and for each axis of the tensor the mesh axis
        counted from the last, -1 for none. Inputs that are not divided along single mesh axes by
        their whole axes are left out, as that form has no word for them.
        """
        mesh, result = self.posed.mesh, {}
        for name, node, layout in zip(self.names, self.posed.graph.inputs, self.inputs):
            if not isinstance(node.type, TensorType):
                continue
            found = [-1] * node.type.rank
            for p in layout.parts:
                if p.before == 1 and len(p.mesh_axes) == 1 and found[p.axis] == -1:
                    found[p.axis] = len(mesh.names) - 1 - mesh.names.index(p.mesh_axes[0])
                else:
                    break
            else:
                result[name] = (list(mesh.sizes), found)
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file, which appears whole or not at all."""
        rows = {r.name: [r.type, str(r.layout)] for r in self.rows()}
        mesh = self.posed.mesh
        text = {"mesh": {"sizes": list(mesh.sizes), "names": list(mesh.names)}, "entries": rows}
        atomic_files.write(path, (json.dumps(text, indent=1) + "\n").encode(), "plan")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2f} us"


def _type(node: Node) -> str:
    return ", ".join(map(str, node.type)) if isinstance(node.type, tuple) else str(node.type)


def _names(posed: Posed) -> list[str]:
    counts: Counter[str] = Counter()
    result = []
    for node in posed.nodes:
        name = node.op or str(node.params.get("name", "input"))
        counts[name] += 1
        result.append(f"{name}-{counts[name] - 1}" if node.prim is not None or counts[name] > 1 else name)
    return result


def plan(
    graph: Graph,
    topology: Topology,
    inputs: Sequence[Sharding | None] | None = None,
    outputs: Sequence[Sharding | None] | None = None,
    aliases: Mapping[int, int] | None = None,
    limit: float | None = None,
    mode: str = "dynamic_programming",
    share: Share | None = None,
) -> Plan:
    """Return the fastest division of a graph that was found.

    `graph` has known sizes and is the one that will be partitioned. `topology` has the mesh, its
    links and what devices do; `inputs` and `outputs` have the layouts that are given, None for
    those to be found; `aliases` maps outputs to the inputs that they replace. `limit` is the bytes
    that a device may hold, by default those it has, and `mode` one of `search.MODES`. With `share`
    several processes make the same plan: it takes a function that searches, and a number that tells
    problems apart, and returns the choices that one of them found. Raises ShapeError for symbolic
    sizes, ValueError where no plan fits and for modes that there are not.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.sharding.mesh import Mesh
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.planner.topology import A100
    >>> from mycel._src.compiler.prims.matrix_product import matmul
    >>> x, w = (input_node(tensor_type((4096, 4096), float32), name) for name in "xw")
    >>> found = plan(Graph([x, w], [matmul(x, w)]), A100.topology(Mesh((8,), ("data",))))
    >>> print(found["x"], found["w"], found["matmul-0"], found.exact)
    0:data whole 0:data True
    """
    aliases = dict(aliases or {})
    if limit is not None:
        arguments.number("plan", "limit", limit, above=0)
    most = float(topology.device.memory) if limit is None else limit
    with garbage_collection.left_alone():
        posed = pose(graph, topology, inputs, outputs, aliases, most)
        starts = starts_of(posed, aliases)

        def answer() -> Answer:
            with garbage_collection.left_alone():
                return search(posed.problem, mode, list(starts.values()), posed.ties)

        if share is None:
            found = answer()
            return Plan(posed, found, aliases, dict(zip(starts, found.starts)))
    choices = list(share(lambda: answer().choices, _digest(posed)))
    shared = Answer(choices, posed.problem.seconds(choices), posed.problem.memory(choices)[0], False)
    return Plan(posed, shared, aliases)


def _digest(posed: Posed) -> int:
    """Return a number that is equal for equal problems, in other processes too."""
    text = "\n".join(f"{n.op} {n.type} {i.count}" for n, i in zip(posed.nodes, posed.problem.items))
    return zlib.crc32(f"{posed.mesh.sizes} {posed.mesh.names}\n{text}".encode())


def load_plan(
    path: str | os.PathLike[str],
    graph: Graph,
    topology: Topology,
    aliases: Mapping[int, int] | None = None,
) -> Plan:
    """Read a plan that `Plan.save` wrote to `path`, for the same graph.

    `graph`, `topology` and `aliases` are as for `plan`. Raises ValueError for a file that is none,
    and where the mesh, the entries or their types differ from those of the graph.
    """
    owner = f"plan {os.fspath(path)!r}"
    try:
        content = json.loads(Path(path).read_bytes())
        mesh, entries = content["mesh"], content["entries"]
        found = {str(name): (str(type), str(layout)) for name, (type, layout) in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{owner} is no plan: {error}") from error
    here = topology.mesh
    if mesh != {"sizes": list(here.sizes), "names": list(here.names)}:
        raise ShapeError(f"{owner} is for the mesh {mesh}, not for one of {here.sizes} with axes {here.names}")
    posed = pose(graph, topology, aliases=aliases, limit=float(topology.device.memory))
    none = Plan(posed, Answer([0] * len(posed.nodes), 0.0, 0.0, False), aliases or {})
    types = {r.name: r.type for r in none.rows()}
    for name in [*types, *found]:
        if name not in types or name not in found or types[name] != found[name][0]:
            raise ValueError(
                f"{owner} is of another graph: {name} is {found.get(name, ('missing',))[0]} in it and "
                f"{types.get(name, 'missing')} in the graph"
            )
    return none.changed({name: layout for name, (_, layout) in found.items()})
