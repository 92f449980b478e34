"""The evaluation of graphs of MindIR files with tensors.

A graph's nodes are computed in their order, with Mycel's operations; while a function is being
compiled they become nodes of its graph. Values are tensors and Python's own. A graph that is a
value is a `Closure`, with the arguments that `Partial` gave it.

Branches and loops are calls: ``Switch(condition, f, g)()`` calls one of two closures, and a loop is
a header, a graph whose body calls the header again as the last thing it does. The first call of a
header runs the loop: its body is evaluated until it comes to such a call, whose arguments are those
of the next round (`_Again`). What decides whether a branch leads back to the header is in the
graphs themselves (`_Tails`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from mycel.base.errors import Unsupported
from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor
from mycel.formats.mindir.messages import Function, MindIRError, Model, Node
from mycel.formats.mindir.operators import operator_of
from mycel.formats.mindir.values import MONAD, value_of
from mycel.ops.containers import followed

__all__ = ["Closure", "Evaluator"]

_REF = "REF::"
_DEPENDENT = ("Depend", "Load")


class Closure:
    """A graph with its first arguments."""

    __slots__ = ("function", "given")

    def __init__(self, function: Function, given: tuple[Any, ...] = ()) -> None:
        self.function, self.given = function, given


class _Choice:
    """What ``Switch`` gives: a condition and two closures."""

    __slots__ = ("condition", "true", "false")

    def __init__(self, condition: Any, true: Closure, false: Closure) -> None:
        self.condition, self.true, self.false = condition, true, false


class _Again:
    """The result of a call of the header of a loop that is running: the next round's arguments."""

    __slots__ = ("header", "values")

    def __init__(self, header: Function, values: tuple[Any, ...]) -> None:
        self.header, self.values = header, values


class Evaluator:
    """The graphs of a model and what computes their operators.

    Raises Unsupported for a model with an operator that is not supported.
    """

    def __init__(self, model: Model, parameters: dict[str, Parameter]) -> None:
        self.model = model
        self.parameters = parameters
        self.functions = {**model.functions, model.main.name: model.main}
        self.operators: dict[str, Callable[..., Any]] = {}
        self.kinds: dict[str, str] = {}
        self.constants: dict[str, Any] = {}
        self.tails = _Tails(self.functions, model)
        for name, primitive in model.primitives.items():
            self.kinds[name] = primitive.operator
            if primitive.operator not in _SPECIAL:
                self.operators[name] = operator_of(primitive)
        for function in self.functions.values():
            for node in function.nodes:
                if node.operator == "Constant":
                    if len(node.attributes) != 1:
                        raise MindIRError(f"constant {node.output!r} has {len(node.attributes)} values")
                    self.constants[node.output] = value_of(node.attributes[0])

    def run(self, *inputs: Any) -> Any:
        """Return the result of the main graph."""
        return self.call(self.model.main, inputs, ())

    def call(self, function: Function, inputs: Sequence[Any], loops: tuple[Function, ...]) -> Any:
        """Return the result of a graph; `loops` are the headers of the loops that are running."""
        if function in loops:
            return _Again(function, tuple(inputs))
        if self.tails.is_header(function):
            return self.loop(function, tuple(inputs), loops)
        return self.result(function, self.values(function, inputs, loops), loops)

    def values(self, function: Function, inputs: Sequence[Any], loops: tuple[Function, ...]) -> dict[str, Any]:
        """Compute all nodes of a graph but a call that is its result; return all values by name."""
        if len(inputs) != len(function.inputs):
            raise MindIRError(
                f"graph {function.name!r} takes {len(function.inputs)} inputs, and a call has {len(inputs)}"
            )
        found: dict[str, Any] = {info.name: value for info, value in zip(function.inputs, inputs)}
        skipped = self.tails.last(function)
        for node in function.nodes:
            if node.operator != "Constant" and node.output not in skipped:
                found[node.output] = self.node(node, found, loops)
        return found

    def result(self, function: Function, found: dict[str, Any], loops: tuple[Function, ...]) -> Any:
        """Return the result of a graph whose other values are known."""
        call = self.tails.call(function)
        if call is None:
            return self.read(function.outputs[0], found)
        return self.node(call, found, loops)

    def node(self, node: Node, found: dict[str, Any], loops: tuple[Function, ...]) -> Any:
        """Return the value of one node."""
        inputs = [self.read(name, found) for name in node.inputs]
        target = node.operator.removeprefix(_REF)
        kind = self.kinds.get(target)
        if kind is None:
            return self.apply(self.read(target, found), inputs, loops)
        special = _SPECIAL.get(kind)
        return special(*inputs) if special is not None else self.operators[target](*inputs)

    def read(self, name: str, found: dict[str, Any]) -> Any:
        """Return the value of a name: a node, a parameter, a constant or a graph."""
        if name in found:
            return found[name]
        if name in self.parameters:
            return self.parameters[name]
        if name in self.constants:
            return self.constants[name]
        if name in self.functions:
            return Closure(self.functions[name])
        raise MindIRError(f"there is no value {name!r}")

    def apply(self, target: Any, inputs: Sequence[Any], loops: tuple[Function, ...]) -> Any:
        """Call a closure, or one of two."""
        if isinstance(target, Closure):
            return self.call(target.function, (*target.given, *inputs), loops)
        if not isinstance(target, _Choice):
            raise MindIRError(f"a {type(target).__name__} is called, which is no graph")
        branches = [lambda b=b: self.apply(b, inputs, loops) for b in (target.true, target.false)]
        if not isinstance(target.condition, Tensor):
            return branches[0 if target.condition else 1]()
        leads = [self.tails.leads(b.function, loops) for b in (target.true, target.false)]
        if leads[0] is leads[1] is None:
            return followed(_branch, target.condition.reshape(()), *branches)
        if leads[0] is not leads[1]:
            raise Unsupported("load: a loop that is left or continued in the middle is not supported")
        parts = [lambda b=b: b().values for b in branches]
        assert leads[0] is not None
        return _Again(leads[0], followed(_branch, target.condition.reshape(()), *parts))

    def loop(self, header: Function, inputs: tuple[Any, ...], loops: tuple[Function, ...]) -> Any:
        """Run a loop from its header."""
        inside = (*loops, header)

        def begin(values: Sequence[Any]) -> tuple[Any, Any, Any]:
            call = self.tails.call(header)
            assert call is not None
            found = self.values(header, values, inside)
            choice = self.read(call.operator.removeprefix(_REF), found)
            if not isinstance(choice, _Choice) or call.inputs:
                raise Unsupported("load: a loop whose header does not decide whether it goes on is not supported")
            ways = [self.tails.leads(b.function, inside) is header for b in (choice.true, choice.false)]
            if ways[0] == ways[1]:
                raise Unsupported("load: a loop that is left or continued in the middle is not supported")
            body, rest = (choice.true, choice.false) if ways[0] else (choice.false, choice.true)
            kept["body"], kept["rest"] = body.function, rest.function
            condition = choice.condition
            if not ways[0]:
                condition = condition.logical_not() if isinstance(condition, Tensor) else not condition
            if isinstance(condition, Tensor):
                condition = condition.reshape(())
            return condition, body.given, rest.given

        def step(given: Sequence[Any]) -> tuple[Any, Any, Any]:
            again = self.call(kept["body"], given, inside)
            if not isinstance(again, _Again) or again.header is not header:
                raise Unsupported("load: a loop that is left or continued in the middle is not supported")
            return begin(again.values)

        kept: dict[str, Function] = {}
        going, body, rest = begin(inputs)
        going, body, rest = followed(_loop, going, body, rest, step)
        return self.call(kept["rest"], rest, loops)


def _branch(condition: Any, true: Callable[[], Any], false: Callable[[], Any]) -> Any:
    if condition:
        found = true()
    else:
        found = false()
    return found


def _loop(going: Any, body: Any, rest: Any, step: Callable[[Any], Any]) -> Any:
    while going:
        going, body, rest = step(body)
    return going, body, rest


def _partial(target: Any, *given: Any) -> Closure:
    if not isinstance(target, Closure):
        raise MindIRError(f"Partial is applied to a {type(target).__name__}, which is no graph")
    return Closure(target.function, (*target.given, *given))


def _depend(value: Any, *others: Any) -> Any:
    return value


def _load(value: Any, *others: Any) -> Any:
    # A copy: the parameter may be assigned while the value is still used.
    return value.value() if isinstance(value, Parameter) else value


_SPECIAL: dict[str, Callable[..., Any]] = {
    "Depend": _depend,
    "Load": _load,
    "Partial": _partial,
    "Return": _depend,
    "Switch": _Choice,
    "UpdateState": lambda *inputs: MONAD,
}


class _Tails:
    """Where graphs end: the call that is a graph's result, and the headers of loops it leads to."""

    def __init__(self, functions: dict[str, Function], model: Model) -> None:
        self.functions = functions
        self.primitives = {name: p.operator for name, p in model.primitives.items()}
        self.nodes = {f.name: {n.output: n for n in f.nodes} for f in functions.values()}
        self.calls: dict[str, Optional[Node]] = {}
        self.skipped: dict[str, frozenset[str]] = {}
        for f in functions.values():
            self._find(f)
        self.targets = {f.name: self._targets(f) for f in functions.values()}
        self.headers = {name for name in functions if name in self._reached(name)}
        # Of the graphs of a cycle, one is the header: the one that is called from outside.
        entered = {
            t for f in functions.values() for t in self._mentioned(f) if t in self.headers and not self._same(f.name, t)
        }
        self.headers &= entered

    def is_header(self, function: Function) -> bool:
        """Return whether a graph leads back to itself and is where its loop is entered."""
        return function.name in self.headers

    def call(self, function: Function) -> Optional[Node]:
        """Return the call that is a graph's result, if it is one."""
        return self.calls[function.name]

    def last(self, function: Function) -> frozenset[str]:
        """Return the nodes that only that call and the order of effects after it need."""
        return self.skipped[function.name]

    def leads(self, function: Function, loops: Sequence[Function]) -> Optional[Function]:
        """Return the header of a running loop that a graph leads to at its end, None if none."""
        seen, found, stack = set(), set(), [function.name]
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if any(h.name == name for h in loops):
                found.add(name)
            else:
                stack.extend(self.targets[name])
        if len(found) > 1:
            raise Unsupported("load: a loop that leaves two loops at once is not supported")
        return self.functions[found.pop()] if found else None

    def _find(self, function: Function) -> None:
        nodes, skipped = self.nodes[function.name], set()
        name = function.outputs[0]
        while name in nodes and self._kind(nodes[name]) == "Depend" and nodes[name].inputs:
            skipped.add(name)
            name = nodes[name].inputs[0]
        node = nodes.get(name)
        if node is None or node.operator == "Constant" or self._kind(node) is not None:
            self.calls[function.name], self.skipped[function.name] = None, frozenset()
            return
        skipped.add(name)
        # What comes after the call is the order of its effects.
        for later in function.nodes:
            if any(i in skipped for i in later.inputs):
                if self._kind(later) not in ("UpdateState", "Depend"):
                    self.calls[function.name], self.skipped[function.name] = None, frozenset()
                    return
                skipped.add(later.output)
        self.calls[function.name], self.skipped[function.name] = node, frozenset(skipped)

    def _kind(self, node: Node) -> Optional[str]:
        return self.primitives.get(node.operator.removeprefix(_REF))

    def _targets(self, function: Function) -> set[str]:
        """Return the graphs that the last call of a graph may call."""
        call = self.calls[function.name]
        return set() if call is None else self._closures(function, call.operator.removeprefix(_REF))

    def _closures(self, function: Function, name: str) -> set[str]:
        nodes, found, stack = self.nodes[function.name], set(), [name]
        while stack:
            name = stack.pop()
            if name in self.functions:
                found.add(name)
                continue
            node = nodes.get(name)
            kind = None if node is None else self._kind(node)
            if node is not None and kind == "Partial":
                stack.append(node.inputs[0])
            elif node is not None and kind == "Switch":
                stack.extend(node.inputs[1:])
        return found

    def _mentioned(self, function: Function) -> set[str]:
        names = {n.operator.removeprefix(_REF) for n in function.nodes}
        names.update(i for n in function.nodes for i in n.inputs)
        return names & set(self.functions)

    def _reached(self, name: str) -> set[str]:
        seen: set[str] = set()
        stack = list(self.targets[name])
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack.extend(self.targets[name])
        return seen

    def _same(self, one: str, other: str) -> bool:
        return other in self._reached(one) and one in self._reached(other)
