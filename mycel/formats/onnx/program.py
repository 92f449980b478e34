"""ONNX graphs as programs: checked once, then run as steps that apply rules to named values.

`built` checks a graph once, when it is loaded: every operator has a rule, every name is defined
before it is used, and nothing is defined twice. Functions of the model become programs of their
own, with the attributes of each call put in. A program is run by `Program.run`, at once or while a
function is staged; steps that depend on constants alone run once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx import messages
from mycel.formats.onnx.messages import OnnxError
from mycel.formats.onnx.operation import RULES, Operation, Rule, has_tensor, run_rule
from mycel.formats.onnx.opset_versions import NEWEST, OLDEST, check_version, modernized
from mycel.formats.onnx.tensors import Room, array_of, dense

__all__ = ["Builder", "Program", "Step", "settled"]

_DEEPEST_CALLS = 32
_MOST_STEPS = 524_288
_BODIES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",), "SequenceMap": ("body",)}
# Larger constants are no shapes: they are tensors, which rules do not look into.
_MOST_KNOWN = 4096
Value = Any


@dataclass
class Step:
    """A node: its operator with the rule, or the program of a function."""

    op: Operation
    rule: Rule | None
    function: Program | None = None
    bodies: dict[str, Program] = field(default_factory=dict)
    is_constant: bool = False


@dataclass
class Program:
    """A graph: names of inputs and outputs, constants by name, and steps in order.

    `captured` are names from the graphs around it.
    """

    name: str
    inputs: list[str]
    outputs: list[str]
    constants: dict[str, Value]
    steps: list[Step]
    captured: set[str]
    found: dict[str, Value] = field(default_factory=dict)

    def run(self, values: Sequence[Value], outer: Mapping[str, Value] | None = None) -> list[Value]:
        """Return the values of the outputs for those of the inputs.

        `outer` has the values of the names that are captured, and of parameters.
        """
        names: dict[str, Value] = dict(self.constants)
        names.update(self.found)
        if outer is not None:
            names.update({n: outer[n] for n in self.captured})
        names.update(zip(self.inputs, values))
        for step in self.steps:
            if step.is_constant and step.op.outputs[0] in self.found:
                continue
            made = self._made(step, names)
            for name, value in zip(step.op.outputs, made):
                if name:
                    names[name] = value
            if step.is_constant:
                self._keep(step, made)
        return [names[n] for n in self.outputs]

    def _made(self, step: Step, names: Mapping[str, Value]) -> list[Value]:
        op = step.op
        given = [names[n] if n else None for n in op.inputs]
        if step.function is not None:
            return step.function.run([*given, *[None] * (len(step.function.inputs) - len(given))])
        if step.bodies:
            op = replace(op, bodies={k: partial(_body, body, names) for k, body in step.bodies.items()})
        assert step.rule is not None
        try:
            made = run_rule(step.rule, op, given)
        except (ArithmeticError, AttributeError, LookupError) as error:
            raise OnnxError(f"{op.label}: it does not fit its inputs: {error!r}") from error
        if len(made) < op.count and any(op.outputs[len(made) :]):
            raise op.refused(f"its output {len(made)} is not supported")
        return made

    def _keep(self, step: Step, made: Sequence[Value]) -> None:
        """Keep what a step found that depends on constants alone."""
        if all(isinstance(v, np.ndarray) for v in made):
            self.found.update({n: settled(v) for n, v in zip(step.op.outputs, made) if n})


def _body(program: Program, names: Mapping[str, Value], values: Sequence[Value]) -> list[Value]:
    return program.run(values, names)


class Builder:
    """What turns the messages of one model into programs.

    `folder` is that of the file, which has `size` bytes. `mapped` counts what each operator became:
    the name of an operator to how many nodes it has.
    """

    def __init__(self, model: messages.Model, folder: str | None, size: int) -> None:
        self.folder, self.room = folder, Room(size)
        self.functions = {(_domain(f.domain), f.name, f.overload): f for f in model.functions}
        self.opsets = self._versions(model.opsets)
        self.mapped: dict[str, int] = {}
        self.steps = 0
        self.depth = 0

    def _versions(self, opsets: Sequence[messages.OperatorSet]) -> dict[str, int]:
        return {_domain(o.domain): o.version for o in opsets}

    def graph(
        self,
        graph: messages.Graph,
        outer: frozenset[str] = frozenset(),
        opsets: dict[str, int] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Program:
        """Return the program of a graph.

        `outer` are the names of the graphs around it, `opsets` the versions of operators by domain
        (None: the model's), and `given` the attributes of the function that it is in.
        """
        constants = {}
        for t in graph.initializers:
            constants[t.name] = array_of(t, self.folder, self.room)
        for s in graph.sparse:
            if s.values is not None:
                constants[s.values.name] = dense(s, self.folder, self.room)
        inputs = [v.name for v in graph.inputs if v.name not in constants or outer]
        outputs = [v.name for v in graph.outputs]
        return self._program(graph.name, inputs, outputs, constants, graph.nodes, outer, opsets or self.opsets, given)

    def _program(
        self,
        name: str,
        inputs: list[str],
        outputs: list[str],
        constants: dict[str, Any],
        nodes: Sequence[messages.Node],
        outer: frozenset[str],
        opsets: dict[str, int],
        given: Mapping[str, Any] | None,
    ) -> Program:
        """Return a program of nodes.

        `name`, `inputs`, `outputs` and `constants` are its members; the rest is as in `graph`.
        """
        program = Program(name, inputs, outputs, constants, [], set())
        known, fixed = {*inputs, *constants}, set(constants)
        for node in nodes:
            step = self._step(node, frozenset(known | outer), opsets, given, program)
            needed = {n for n in step.op.inputs if n} | {n for b in step.bodies.values() for n in b.captured}
            for n in needed - known - set(constants):
                if n not in outer:
                    raise OnnxError(f"{step.op.label}: there is no value {n!r} before it")
                program.captured.add(n)
            for n in step.op.outputs:
                if n and n in known:
                    raise OnnxError(f"{step.op.label}: the value {n!r} is made twice")
            step.is_constant = bool(
                step.rule and step.rule.folds and not step.bodies and needed <= fixed | set(constants)
            )
            made = {n for n in step.op.outputs if n}
            known |= made
            if step.is_constant:
                fixed |= made
            program.steps.append(step)
        for n in outputs:
            if n not in known:
                if n not in outer:
                    raise OnnxError(f"ONNX: the graph {name!r} has no value for its output {n!r}")
                program.captured.add(n)
        return program

    def _step(
        self,
        node: messages.Node,
        outer: frozenset[str],
        opsets: dict[str, int],
        given: Mapping[str, Any] | None,
        program: Program,
    ) -> Step:
        """Return the step of a node.

        `outer` are the names that its graphs may capture, `opsets` and `given` as in `graph`, and
        `program` takes new constants.
        """
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise OnnxError(f"ONNX: with its functions called, the model has more than {_MOST_STEPS} nodes")
        domain = _domain(node.domain)
        version = opsets.get(domain, 0)
        op = Operation(domain, node.operator, node.name, version, list(node.inputs), list(node.outputs), {})
        while op.outputs and not op.outputs[-1]:
            op.outputs.pop()
        if not op.outputs:
            raise OnnxError(f"ONNX: the node {node.name!r} of {node.operator} has no outputs")
        bodies: dict[str, Program] = {}
        for attribute in node.attributes:
            self._attribute(op, attribute, outer, opsets, given, bodies)
        label = f"{domain}.{node.operator}" if domain else node.operator
        self.mapped[label] = self.mapped.get(label, 0) + 1
        function = self.functions.get((domain, node.operator, node.overload))
        if function is not None:
            return Step(op, None, self._called(op, function))
        for name in _BODIES.get(node.operator, ()) if not domain else ():
            if name not in bodies:
                raise OnnxError(f"{op.label}: it has no graph {name!r}")
        if (domain, node.operator) not in RULES:
            raise op.refused("there is no rule for this operator")
        if domain not in opsets:
            raise OnnxError(f"{op.label}: the model does not say which version of {domain or 'ai.onnx'} it uses")
        if not domain and not check_version(node.operator, version):
            raise op.refused(f"versions {OLDEST} to {NEWEST} are supported")
        modernized(op, program.constants)
        return Step(op, RULES[domain, node.operator], None, bodies)

    def _attribute(
        self,
        op: Operation,
        attribute: messages.Attribute,
        outer: frozenset[str],
        opsets: dict[str, int],
        given: Mapping[str, Any] | None,
        bodies: dict[str, Program],
    ) -> None:
        """Enter an attribute in `op`, or in `bodies` a graph; the rest is as in `_step`."""
        name = attribute.name
        if attribute.reference:
            if given is None or attribute.reference not in given:
                return
            value = given[attribute.reference]
        else:
            value = self._value(op, attribute)
        if isinstance(value, messages.Graph):
            self.depth += 1
            bodies[name] = self.graph(value, outer, opsets, given)
            op.results[name] = value.outputs
            self.depth -= 1
        else:
            op.attributes[name] = value

    def _value(self, op: Operation, a: messages.Attribute) -> Any:
        kind = a.kind or _guessed(a)
        if kind == 1:
            return a.f
        if kind == 2:
            return a.i
        if kind == 3:
            return bytes(a.s).decode("utf-8", "surrogateescape")
        if kind == 4 and a.t is not None:
            return array_of(a.t, self.folder, self.room)
        if kind == 5 and a.g is not None:
            return a.g
        if kind == 6:
            return list(a.floats)
        if kind == 7:
            return list(a.ints)
        if kind == 8:
            return [bytes(s).decode("utf-8", "surrogateescape") for s in a.strings]
        if kind == 9:
            return [array_of(t, self.folder, self.room) for t in a.tensors]
        if kind == 11 and a.sparse is not None:
            return dense(a.sparse, self.folder, self.room)
        if kind == 13 and a.type is not None:
            return a.type
        raise op.refused(f"the attribute {a.name!r} of kind {kind} is not supported, or is empty")

    def _called(self, op: Operation, function: messages.Function) -> Program:
        """Return the program of a function with the attributes of a call."""
        self.depth += 1
        if self.depth > _DEEPEST_CALLS:
            raise OnnxError(f"{op.label}: functions call each other more than {_DEEPEST_CALLS} deep")
        given = {a.name: self._value(op, a) for a in function.defaults}
        given.update(op.attributes)
        opsets = self._versions(function.opsets) or self.opsets
        made = self._program(
            function.name,
            list(function.inputs),
            list(function.outputs),
            {},
            function.nodes,
            frozenset(),
            {**self.opsets, **opsets},
            given,
        )
        self.depth -= 1
        if len(op.inputs) > len(made.inputs) or len(op.outputs) > len(made.outputs):
            raise OnnxError(f"{op.label}: the function has {len(made.inputs)} inputs and {len(made.outputs)} outputs")
        return made


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _guessed(a: messages.Attribute) -> int:
    """Return the kind of an attribute that does not say it, as files of the first version do."""
    for kind, content in ((4, a.t), (5, a.g), (6, a.floats), (7, a.ints), (8, a.strings), (3, a.s)):
        if content is not None and len(content) if isinstance(content, (list, bytes, memoryview)) else content:
            return kind
    return 1 if a.f else 2


def settled(value: np.ndarray[Any, Any]) -> Value:
    """Return a constant in the form in which a program keeps it: a tensor where it is too large to
    be a shape or the like.
    """
    if value.nbytes <= _MOST_KNOWN or not has_tensor(value.dtype):
        return value
    with eager.use_context(None):
        return Tensor.from_numpy(np.array(value, order="C"))
