"""Quantised networks: the result of `quantise`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.prims.base import CONSTANT, Primitive, constant
from mycel._src.compiler.prims.neural.quantisation import dequantize, fake_quant, quantize
from mycel._src.compiler.transforms.quantise.graph_freezing import frozen, literal
from mycel._src.compiler.transforms.quantise.integer_lowering import Lowered
from mycel._src.compiler.transforms.quantise.scales import Scale, levels_of
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.cells.eval_mode import outside_of_training
from mycel.formats.exporting import LoadedGraph, model_of
from mycel.formats.graph_files.graph_file import Model

__all__ = ["Quantised", "Report", "float_model", "run"]

Array = np.ndarray[Any, Any]


@dataclass
class Report:
    """The report on a quantised network.

    Args:
        bytes (int): The bytes of the constants.
        float_bytes (int): Those of the network before.
        floats (list[str]): The operations that stayed in floats although they were asked for, with
            the reason.
        bits (list[int]): The bits of the weights of each layer, in their order.
        measure (float | None): How good the network is, None where nothing was measured. Default:
            None.
        float_measure (float | None): How good the network of floats is, likewise. Default: None.
        speed (float | None): How many times as fast it became, likewise. Default: None.
    """

    bytes: int
    float_bytes: int
    floats: list[str] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)
    measure: float | None = None
    float_measure: float | None = None
    speed: float | None = None


class Quantised(LoadedGraph):
    """A network of integers, which runs, compiles, exports and is built for devices as any Cell.

    `input_scales` and `output_scales` have the scales of inputs and outputs that are integers, by
    number; there are some with ``integer_ends=True`` only.

    Args:
        model (Model): The graph of floats.
        lowered (Lowered): What became of it.
        simulated (LoadedGraph): The network of floats that rounds as this one does, for comparison.
        report (Report): What became of its operations.
    """

    def __init__(self, model: Model, lowered: Lowered, simulated: LoadedGraph, report: Report) -> None:
        super().__init__(replace(model, graph=lowered.graph, states=[], writes=[]))
        self.report, self.simulated = report, simulated
        self.input_scales: dict[int, Scale] = lowered.inputs
        self.output_scales: dict[int, Scale] = lowered.outputs

    def rounded(self) -> LoadedGraph:
        """Return the network of rounded values, with the inputs and outputs of this one.

        ``export(..., file_format="ONNX")`` writes it, as QuantizeLinear and DequantizeLinear.
        """
        graph, inputs = self.simulated.model.graph, list(self.simulated.model.graph.inputs)
        known: dict[Node, Node] = {}
        for number, scale in self.input_scales.items():
            old = inputs[number]
            inputs[number] = input_node(old.type.with_dtype(scale.dtype), old.params["name"])
            size, zero = _ends(scale)
            known[next(n for n in graph.nodes if old in n.inputs)] = dequantize(inputs[number], size, zero)
        outputs = substitute(graph.outputs, known)
        for number, scale in self.output_scales.items():
            x, size, zero = outputs[number].inputs
            params = outputs[number].params
            if outputs[number].prim is fake_quant:
                outputs[number] = quantize(x, size, zero, dtype=scale.dtype, **params)
            else:
                size, zero = _ends(scale)
                ends = {"low": scale.low, "high": scale.high, "ties": "even", "dtype": scale.dtype}
                outputs[number] = quantize(outputs[number], size, zero, **ends)
        return LoadedGraph(replace(self.simulated.model, graph=Graph(inputs, outputs, graph.name)))

    def quantised_input(self, values: Any, number: int = 0) -> Array:
        """Return the integers that stand for `values` of an input of floats.

        Raises ValueError where input `number` is one of floats.
        """
        scale = self._scale(self.input_scales, number, "input")
        return levels_of(np.asarray(values, np.float32), scale)

    def real_output(self, levels: Any, number: int = 0) -> Array:
        """Return the floats that integers of an output stand for.

        Raises ValueError where output `number` is one of floats.
        """
        scale = self._scale(self.output_scales, number, "output")
        whole = np.asarray(getattr(levels, "asnumpy", lambda: levels)())
        real: Array = ((whole.astype(np.float32) - scale.zero) * np.float32(scale.size)).astype(np.float32)
        return real

    def _scale(self, scales: Mapping[int, Scale], number: int, what: str) -> Scale:
        if number not in scales:
            raise ValueError(f"{self._title()}: {what} {number} is no integer; quantise with integer_ends=True")
        return scales[number]


def _ends(scale: Scale) -> tuple[Node, Node]:
    return literal(np.asarray(scale.size, np.float32)), constant(float(scale.zero), float32)


def float_model(
    net: Any, inputs: Sequence[Any], kept: tuple[Primitive, ...] = (), trained: frozenset[str] = frozenset()
) -> Model:
    """Return the network `net` outside of training as a graph whose parameters are constants.

    What applies primitives in `kept` to constants is not computed. Parameters whose names are in
    `trained` stay states of the model. Sizes of batches stay open: the first axis of each tensor in
    `inputs`, if all have the same. Raises CompileError where the network is not one graph,
    Unsupported where it changes state.
    """
    with outside_of_training(net):
        model = model_of(net, inputs)
    if model.writes:
        names = ", ".join(model.states[k].name for k, _ in model.writes)
        raise Unsupported(f"quantise: the network changes {names} when it runs, and a quantised one keeps no state")
    if any(s.kind == "generator" for s in model.states):
        raise Unsupported("quantise: the network draws random numbers outside of training; take that out")
    count = len(model.graph.inputs) - len(model.states)
    values = {i: s.value for i, s in zip(model.graph.inputs[count:], model.states) if s.name not in trained}
    states = [s for s in model.states if s.name in trained]
    return replace(model, graph=frozen(model.graph, values, kept), states=states, writes=[])


def run(model: Model, outputs: Sequence[Node]) -> LoadedGraph:
    """Return a network that gives any nodes of a model's graph, as a tuple."""
    form = {"tuple": [{"tensor": k} for k in range(len(outputs))]}
    return LoadedGraph(replace(model, graph=Graph(model.graph.inputs, outputs, model.graph.name), result=form))


def constant_bytes(graph: Graph) -> int:
    """Return how many bytes the constants of a graph have, and of the graphs in it."""
    found: dict[int, int] = {}
    pending = [graph]
    while pending:
        for node in pending.pop().nodes:
            if node.prim is CONSTANT:
                found[id(node)] = node.value.nbytes
            for value in (node.params or {}).values():
                pending += graphs_in(value)
    return sum(found.values())
