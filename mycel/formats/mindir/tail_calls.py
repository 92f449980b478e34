"""Tail calls between the graphs of a MindIR file, and the loops that they form.

A tail call is the call that is a graph's result.

A loop is a cycle of such calls; its header is the graph of the cycle that others call. A graph that
calls itself in any other way is recursion, which is refused, as are graphs that unfold to more than
`MOST_NODES` nodes: a file of a kilobyte may describe 2**60.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.validation import MOST_NODES
from mycel.formats.mindir.messages import Function, MindIRError, Model, Node

__all__ = ["Tails"]

_REF = "REF::"
_MOST_DEEP = 200


class Tails:
    """Of each graph of a model, the call at its end and the graphs that this may call."""

    def __init__(self, functions: dict[str, Function], model: Model) -> None:
        self.functions = functions
        self.primitives = {name: p.operator for name, p in model.primitives.items()}
        self.nodes = {f.name: {n.output: n for n in f.nodes} for f in functions.values()}
        self.calls: dict[str, Node | None] = {}
        self.skipped: dict[str, frozenset[str]] = {}
        for f in functions.values():
            self._find(f)
        self.targets = {f.name: self._targets(f) for f in functions.values()}
        self.headers: set[str] = set()
        self._find_headers()
        self._check(model.main.name)

    def is_header(self, function: Function) -> bool:
        """Return whether a graph leads back to itself and is where its loop is entered."""
        return function.name in self.headers

    def call(self, function: Function) -> Node | None:
        """Return the call that is a graph's result, if it is one."""
        return self.calls[function.name]

    def last(self, function: Function) -> frozenset[str]:
        """Return the nodes that only that call and the order of effects after it need."""
        return self.skipped[function.name]

    def choice(self, function: Function) -> list[Function]:
        """Return the two graphs of the ``Switch`` that a graph ends with, else nothing."""
        call = self.calls[function.name]
        node = None if call is None else self.nodes[function.name].get(call.operator.removeprefix(_REF))
        if node is None or self._kind(node) != "Switch" or len(node.inputs) != 3:
            return []
        found = [self._closures(function, name) for name in node.inputs[1:]]
        return [self.functions[next(iter(f))] for f in found] if all(len(f) == 1 for f in found) else []

    def ends(self, function: Function, loops: Sequence[Any]) -> set[str]:
        """Return where a graph may lead: the names of headers of running loops, and "" for an end
        of its own.
        """
        return self._ends([function.name], {loop.header.name for loop in loops})

    def ends_of_loop(self, header: Function, loops: Sequence[Any]) -> set[str]:
        """Return where a loop may lead when it is over, as `ends` does."""
        stops = {header.name, *(loop.header.name for loop in loops)}
        return self._ends(sorted(self.targets[header.name]), stops) - {header.name}

    def _ends(self, stack: list[str], stops: set[str]) -> set[str]:
        seen: set[str] = set()
        found: set[str] = set()
        while stack:
            name = stack.pop()
            if name in stops:
                found.add(name)
            elif name not in seen:
                seen.add(name)
                stack.extend(self.targets[name])
                if not self.targets[name]:
                    found.add("")
        return found

    def _find(self, function: Function) -> None:
        nodes = self.nodes[function.name]
        skipped: set[str] = set()
        name = function.outputs[0]
        while name in nodes and name not in skipped and self._kind(nodes[name]) == "Depend" and nodes[name].inputs:
            skipped.add(name)
            name = nodes[name].inputs[0]
        node = nodes.get(name)
        self.calls[function.name], self.skipped[function.name] = None, frozenset()
        if node is None or node.operator == "Constant" or self._kind(node) is not None:
            return
        skipped.add(name)
        # What comes after the call is the order of its effects.
        for later in function.nodes:
            if later.output not in skipped and any(i in skipped for i in later.inputs):
                if self._kind(later) not in ("UpdateState", "Depend"):
                    return
                skipped.add(later.output)
        self.calls[function.name], self.skipped[function.name] = node, frozenset(skipped)

    def _kind(self, node: Node) -> str | None:
        return self.primitives.get(node.operator.removeprefix(_REF))

    def _targets(self, function: Function) -> set[str]:
        """Return the graphs that the last call of a graph may call."""
        call = self.calls[function.name]
        return set() if call is None else self._closures(function, call.operator.removeprefix(_REF))

    def _closures(self, function: Function, name: str) -> set[str]:
        nodes = self.nodes[function.name]
        found: set[str] = set()
        seen: set[str] = set()
        stack = [name]
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.functions:
                found.add(name)
                continue
            node = nodes.get(name)
            kind = None if node is None else self._kind(node)
            if node is not None and kind == "Partial":
                stack.extend(node.inputs[:1])
            elif node is not None and kind == "Switch":
                stack.extend(node.inputs[1:])
        return found

    def _mentioned(self, function: Function) -> list[str]:
        names = [n.operator.removeprefix(_REF) for n in function.nodes]
        names += [i for n in function.nodes for i in n.inputs]
        return [n for n in names if n in self.functions]

    def _find_headers(self) -> None:
        """Find the graphs by which cycles are entered, and those of the cycles that are left
        without them: loops inside of loops.
        """
        callers: dict[str, set[str]] = {name: set() for name in self.functions}
        for f in self.functions.values():
            for other in self._mentioned(f):
                callers[other].add(f.name)
        left = [set(self.functions)]
        while left:
            for cycle in self._cycles(left.pop()):
                entered = {name for name in cycle if callers[name] - cycle}
                self.headers |= entered
                if entered and cycle - entered:
                    left.append(cycle - entered)

    def _cycles(self, within: set[str]) -> list[set[str]]:
        """Return the strongly connected parts of the graphs `within`, by their last calls."""
        order: list[str] = []
        seen: set[str] = set()
        backwards: dict[str, list[str]] = {name: [] for name in within}
        for root in sorted(within):
            stack = [(root, False)]
            while stack:
                name, done = stack.pop()
                if done:
                    order.append(name)
                elif name not in seen:
                    seen.add(name)
                    stack.append((name, True))
                    for other in self.targets[name] & within:
                        backwards[other].append(name)
                        stack.append((other, False))
        found = []
        seen.clear()
        for root in reversed(order):
            part: set[str] = set()
            stack_of_names = [root]
            while stack_of_names:
                name = stack_of_names.pop()
                if name not in seen:
                    seen.add(name)
                    part.add(name)
                    stack_of_names += backwards[name]
            if len(part) > 1 or part and root in self.targets[root]:
                found.append(part)
        return found

    def _check(self, main: str) -> None:
        """Refuse recursion, and graphs that unfold to too many nodes or too deeply.

        Graphs are left in the order in which all that they mention has been left.
        """
        counts: dict[str, int] = {}
        depths: dict[str, int] = {}
        path: list[str] = []
        stack = [(main, False)]
        while stack:
            name, left = stack.pop()
            if left:
                path.pop()
                parts = [m for m in self._mentioned(self.functions[name]) if m in counts]
                counts[name] = len(self.functions[name].nodes) + 1 + sum(counts[m] for m in parts)
                depths[name] = 1 + max((depths[m] for m in parts), default=0)
                if counts[name] > MOST_NODES or depths[name] > _MOST_DEEP:
                    raise MindIRError(f"graph {name!r} unfolds to too many nodes, or too deeply")
                continue
            if name in counts or name in path:
                continue
            path.append(name)
            stack.append((name, True))
            for other in self._mentioned(self.functions[name]):
                if other in path and other not in self.headers:
                    raise Unsupported(f"load: graph {name!r} calls itself; recursion is not supported")
                if other not in counts and other not in path:
                    stack.append((other, False))
