"""The evaluator of MindIR graphs on tensors.

A graph's nodes are computed in their order, with Mycel's operations; while a function is being
compiled they become nodes of its graph. Values are tensors and Python's own. A graph that is a
value is a `Closure`, with the arguments that `Partial` gave it.

Branches and loops are calls: ``Switch(condition, f, g)()`` calls one of two closures, and a loop is
a header, a graph whose body calls the header again as the last thing it does. The first call of a
header runs the loop: its body is evaluated until it comes to such a call, whose arguments are those
of the next round (`_Again`). Where each way leads is in the graphs themselves (`tail_calls`). Where
a tensor decides between another round and the end in the middle of a round, both are carried with a
flag that says which it is (`_Mixed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.control_flow import either
from mycel.formats.mindir.aliased_writes import check_writes
from mycel.formats.mindir.messages import STOPS_GRADIENT, Function, MindIRError, Model, Node
from mycel.formats.mindir.operators import operator_of
from mycel.formats.mindir.tail_calls import Tails
from mycel.formats.mindir.values import MONAD, value_of, zeros_of
from mycel.ops.python_values import followed

__all__ = ["Closure", "Evaluator"]

_REF = "REF::"


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


class _Mixed:
    """The next round's arguments where `again` holds, and the loop's result where it does not."""

    __slots__ = ("again", "values", "result")

    def __init__(self, again: Any, values: tuple[Any, ...], result: Any) -> None:
        self.again, self.values, self.result = again, values, result


class _Loop:
    """A loop that is running: its header, the arguments of this round, and a value of the result's
    type.
    """

    __slots__ = ("header", "values", "result")

    def __init__(self, header: Function, values: tuple[Any, ...], result: Any = None) -> None:
        self.header, self.values, self.result = header, values, result


Loops = tuple[_Loop, ...]


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
        self.tails = Tails(self.functions, model)
        check_writes(self.functions, model, parameters)
        for name, primitive in model.primitives.items():
            if any(a.name == STOPS_GRADIENT for a in primitive.attributes):
                primitive = replace(primitive, operator="StopGradient", attributes=[])
            self.kinds[name] = primitive.operator
            if primitive.operator not in _SPECIAL:
                self.operators[name] = operator_of(primitive)
        for function in self.functions.values():
            for node in function.nodes:
                if node.operator == "Constant":
                    if len(node.attributes) != 1:
                        raise MindIRError(f"constant {node.output!r} has {len(node.attributes)} values")
                    self.constants[node.output] = value_of(node.attributes[0])
        for function in self.functions.values():
            self.check_names(function)

    def check_names(self, function: Function) -> None:
        """Raise MindIRError for a graph with a name that nothing before it has."""
        known = {info.name for info in function.inputs}
        for node in function.nodes:
            if node.operator == "Constant":
                continue
            target = node.operator.removeprefix(_REF)
            for name in (*node.inputs, *([] if target in self.kinds else [target])):
                self.need(name, known)
            known.add(node.output)
        self.need(function.outputs[0], known)

    def need(self, name: str, known: set[str]) -> None:
        """Raise MindIRError for a name that is not among those of a graph, or of all graphs."""
        if not any(name in names for names in (known, self.parameters, self.constants, self.functions)):
            raise MindIRError(f"there is no value {name!r}")

    def run(self, *inputs: Any) -> Any:
        """Return the result of the main graph."""
        return self.call(self.model.main, inputs, ())

    def call(self, function: Function, inputs: Sequence[Any], loops: Loops) -> Any:
        """Return the result of a graph; `loops` are the headers of the loops that are running."""
        if any(loop.header is function for loop in loops):
            return _Again(function, tuple(inputs))
        if self.tails.is_header(function):
            return self.loop(function, tuple(inputs), loops)
        return self.result(function, self.values(function, inputs, loops), loops)

    def values(self, function: Function, inputs: Sequence[Any], loops: Loops) -> dict[str, Any]:
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

    def result(self, function: Function, found: dict[str, Any], loops: Loops) -> Any:
        """Return the result of a graph whose other values are known."""
        call = self.tails.call(function)
        if call is None:
            return self.read(function.outputs[0], found)
        return self.node(call, found, loops)

    def node(self, node: Node, found: dict[str, Any], loops: Loops) -> Any:
        """Return the value of one node."""
        inputs = [self.read(name, found) for name in node.inputs]
        target = node.operator.removeprefix(_REF)
        kind = self.kinds.get(target)
        if kind is None:
            return self.apply(self.read(target, found), inputs, loops)
        if any(isinstance(v, (_Again, _Mixed)) for v in inputs) and kind not in ("Depend", "UpdateState"):
            raise Unsupported("load: a graph that calls itself in the middle is recursion, which is not supported")
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

    def apply(self, target: Any, inputs: Sequence[Any], loops: Loops) -> Any:
        """Call a closure, or one of two."""
        if isinstance(target, Closure):
            return self.call(target.function, (*target.given, *inputs), loops)
        if not isinstance(target, _Choice):
            raise MindIRError(f"a {type(target).__name__} is called, which is no graph")
        ways = (target.true, target.false)
        if not isinstance(target.condition, Tensor):
            return self.apply(ways[0 if target.condition else 1], inputs, loops)
        ends = {e for b in ways for e in self.tails.ends(b.function, loops)}
        branches: list[Callable[[], Any]] = [lambda b=b: self.apply(b, inputs, loops) for b in ways]  # type: ignore[misc]
        condition = target.condition.reshape(())
        if len(ends) == 1:
            (end,) = ends
            if not end:
                return either(condition, *branches)
            parts = [lambda b=b: b().values for b in branches]
            return _Again(self.functions[end], either(condition, *parts))
        if not loops or len(ends - {loops[-1].header.name}) > 1:
            raise Unsupported("load: a loop that ends two loops at once is not supported")
        mixed = [lambda b=b: self.parts(b(), loops[-1]) for b in branches]
        return _Mixed(*either(condition, *mixed))

    def parts(self, found: Any, loop: _Loop) -> tuple[Any, Any, Any]:
        """Return whether another round follows, its arguments, and the loop's result."""
        if isinstance(found, _Mixed):
            return found.again, found.values, found.result
        if isinstance(found, _Again) and found.header is loop.header:
            return Tensor(True), found.values, loop.result
        return Tensor(False), loop.values, found.values if isinstance(found, _Again) else found

    def loop(self, header: Function, inputs: tuple[Any, ...], loops: Loops) -> Any:
        """Run a loop from its header."""
        call = self.tails.call(header)
        assert call is not None
        ways = [self.tails.ends(f, (_Loop(header, inputs), *loops)) for f in self.tails.choice(header)]
        if len(ways) == 2 and not call.inputs and {header.name} in ways and any(header.name not in w for w in ways):
            return self.plain_loop(header, inputs, loops, ways[0] == {header.name})
        return self.mixed_loop(header, inputs, loops)

    def plain_loop(self, header: Function, inputs: tuple[Any, ...], loops: Loops, when: bool) -> Any:
        """Run a loop whose header alone decides: it goes on where its condition is `when`.

        `inputs` are the header's values to begin with, and `loops` those around it.
        """
        call = self.tails.call(header)
        assert call is not None
        name = call.operator.removeprefix(_REF)
        kept: list[Function] = []

        def begin(values: tuple[Any, ...]) -> tuple[Any, Any, Any]:
            choice = self.read(name, self.values(header, values, (*loops, _Loop(header, values))))
            if not isinstance(choice, _Choice):
                raise MindIRError(f"a {type(choice).__name__} is called, which is no graph")
            body, rest = (choice.true, choice.false) if when else (choice.false, choice.true)
            kept[:] = [body.function, rest.function]
            condition = choice.condition
            if isinstance(condition, Tensor):
                condition = condition.reshape(()) if when else condition.reshape(()).logical_not()
            elif not when:
                condition = not condition
            return condition, body.given, rest.given

        def step(given: tuple[Any, ...]) -> tuple[Any, Any, Any]:
            again = self.call(kept[0], given, (*loops, _Loop(header, given)))
            return begin(again.values)

        _, _, rest = followed(_loop, *begin(inputs), step)
        return self.call(kept[1], rest, loops)

    def mixed_loop(self, header: Function, inputs: tuple[Any, ...], loops: Loops) -> Any:
        """Run a loop that may end or go on anywhere in a round."""
        ends = self.tails.ends_of_loop(header, loops)
        if len(ends) != 1:
            raise Unsupported("load: a loop that ends two loops at once is not supported")
        (end,) = ends
        around = next((loop for loop in loops if loop.header.name == end), None)
        nothing = zeros_of(header) if around is None else around.values

        def step(values: tuple[Any, ...]) -> tuple[Any, Any, Any]:
            loop = _Loop(header, values, nothing)
            inside = (*loops, loop)
            return self.parts(self.result(header, self.values(header, values, inside), inside), loop)

        _, _, result = followed(_loop, *step(inputs), step)
        return result if around is None else _Again(around.header, result)


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
