"""Makes a Cell of a TensorFlow Lite file.

Quantised tensors are computed as the real numbers that they stand for: after each operator they are
rounded to the levels of its result. That is TensorFlow Lite's arithmetic up to the rounding of
single levels, which its kernels do in integers; results differ by a level at most where many round
alike, and inputs and outputs are integers as in the file. By option they are computed in integers
and give the kernels' bits (`mycel.formats.tflite.kernels`).

What is computed of sizes and constants alone is known while the network is staged
(`mycel.formats.tflite.static_values`), so that sizes may be open. Branches and loops call other
graphs of the file (`mycel.formats.tflite.control_flow`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.compiled.jit import Jit
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.tflite.array_rules import CONSTANTS, RULES, WHERE_KNOWN
from mycel.formats.tflite.control_flow import SPECIAL, check_calls
from mycel.formats.tflite.kernels import Given, kernel_of
from mycel.formats.tflite.operator_fusion import updates
from mycel.formats.tflite.schema import Graph, Operator, TFLiteError, graph_of
from mycel.formats.tflite.schema import Tensor as Info
from mycel.formats.tflite.static_values import HOST, MOST, RANK, SHAPE, as_known, knowable, sizes_of, tensor

__all__ = ["TFLiteGraph", "load"]

ROUNDINGS = ("real", "tflite")


def load(file_name: Any, rounding: str = "real") -> TFLiteGraph:
    """Return the network in a TensorFlow Lite file as a Cell.

    With `rounding` "tflite" quantised operators give the bits of its reference kernels, in
    arithmetic of integers; with "real" they are right up to a level, and have gradients.

    Raises TFLiteError for a file that is no such model or damaged, and Unsupported, naming the
    operator, for one that Mycel cannot compute, or not with these bits.
    """
    arguments.one_of("load", "rounding", rounding, ROUNDINGS)
    path = os.fspath(file_name)
    with open(path, "rb") as file:
        content = file.read()
    try:
        return TFLiteGraph(graph_of(content), rounding)
    except TFLiteError as error:
        raise TFLiteError(f"{path}: {error}") from None


class TFLiteGraph(Cell):
    """A network of a TensorFlow Lite file: its constants of real numbers are parameters, and where
    it computes in real numbers it is differentiated as any Cell. `rounding` is that of `load`.
    """

    def __init__(self, graph: Graph, rounding: str = "real") -> None:
        super().__init__(auto_prefix=False)
        self.graph, self.rounding = graph, rounding
        self.graphs = [updates(one) for one in graph.all()]
        check_calls(self.graphs)
        # The constants of each graph by number: parameters, tensors, and arrays that decide sizes.
        self.known: list[dict[int, Any]] = []
        self.names: set[str] = set()
        for number, one in enumerate(self.graphs):
            self.known.append(self._constants(number, one))
        for number, one in enumerate(self.graphs):
            self._check(one, self.known[number])
        self.compiled_run = Jit(self.run)

    def _constants(self, place: int, graph: Graph) -> dict[int, Any]:
        """Return the constants of a graph, and enter its parameters."""
        found: dict[int, Any] = {}
        fixed = {o.inputs[k] for o in graph.operators for k in CONSTANTS.get(o.code, ()) if k < len(o.inputs)}
        for number, info in enumerate(graph.tensors):
            if info.content is None:
                continue
            array = info.array()
            sizes = array.dtype in (np.int32, np.int64) and array.size <= MOST and not info.is_quantised
            if number in fixed or sizes:
                found[number] = array
            elif array.dtype.kind == "f" and array.ndim and array.size:
                name = info.name or f"tensor{number}"
                name = name if name not in self.names else f"{name}.{place}.{number}"
                self.names.add(name)
                made = Parameter(Tensor.from_numpy(array), name=name)
                self.insert_param_to_cell(f"parameter{place}_{number}", made)
                found[number] = made
            else:
                held = array if self.rounding == "tflite" else np.asarray(_real_values(info, array))
                found[number] = Tensor.from_numpy(held)
        return found

    def _check(self, graph: Graph, constants: dict[int, Any]) -> None:
        """Raise Unsupported for what cannot be computed."""
        there = knowable(graph, constants)
        made = {*constants, *graph.inputs, *(n for n, info in enumerate(graph.tensors) if info.kept)}
        for o in graph.operators:
            for n in o.inputs:
                if n >= 0 and n not in made:
                    raise TFLiteError(f"the operator {o.name} uses tensor {n}, which nothing computes")
            made.update(o.outputs)
            if not any(o.code in known for known in (RULES, HOST, SPECIAL, (SHAPE, RANK))):
                raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite is not supported")
            if self.rounding == "tflite" and any(
                graph.tensors[n].is_quantised for n in (*o.inputs, *o.outputs) if n >= 0
            ):
                if o.code not in (*SPECIAL, SHAPE, RANK):
                    kernel_of(o, [graph.tensors[n] if n >= 0 else None for n in o.inputs])
            for k in CONSTANTS.get(o.code, ()):
                if k < len(o.inputs) and o.inputs[k] >= 0 and o.inputs[k] not in there:
                    raise Unsupported(
                        f"load: input {k} of the operator {o.name} of TensorFlow Lite must be a constant, or be "
                        "computed of sizes"
                    )

        missing = [n for n in graph.outputs if n not in made]
        if missing:
            raise TFLiteError(f"nothing computes the result {graph.tensors[missing[0]].name!r}")

    def construct(self, *inputs: Any) -> Any:
        """Run the graph."""
        return self.compiled_run(*inputs)

    def run(self, *inputs: Any) -> Any:
        """Compute the main graph for inputs as the file says them."""
        graph, whole = self.graphs[0], self.rounding == "tflite"
        if len(inputs) != len(graph.inputs):
            raise ValueError(f"the loaded network takes {len(graph.inputs)} inputs, not {len(inputs)}")
        given = []
        for number, x in zip(graph.inputs, inputs):
            info = graph.tensors[number]
            if not isinstance(x, Tensor) or x.dtype.name != info.kind or x.ndim != len(info.shape):
                raise ValueError(
                    f"the loaded network takes {info.kind}{list(info.shape)} as {info.name!r}, not {x!r:.80}"
                )
            given.append(x if whole else _dequantised(info, x))
        found = self.values(0, given)
        results = [y if whole else _quantised(graph.tensors[n], y) for n, y in zip(graph.outputs, found)]
        return results[0] if len(results) == 1 else tuple(results)

    def values(self, place: int, inputs: Sequence[Any]) -> list[Any]:
        """Compute the operators of a graph in their order, and return its results."""
        graph, whole = self.graphs[place], self.rounding == "tflite"
        if len(inputs) != len(graph.inputs):
            raise TFLiteError(f"graph {place} takes {len(graph.inputs)} inputs, and a call has {len(inputs)}")
        values: dict[int, Any] = {**self.known[place], **dict(zip(graph.inputs, inputs))}
        for o in graph.operators:
            given = [_input(values, number, graph) for number in o.inputs]
            try:
                found = self._computed(o, given, graph)
            except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
                raise TFLiteError(f"load: the operator {o.name} does not fit its inputs: {error}") from error
            several = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(several) < len(o.outputs):
                raise TFLiteError(f"the operator {o.name} has {len(o.outputs)} results, and gives {len(several)}")
            for number, y in zip(o.outputs, several):
                keeps = whole or isinstance(y, np.ndarray) or o.code in SPECIAL
                values[number] = y if keeps else _rounded(graph.tensors[number], y)
        return [tensor(values[n]) for n in graph.outputs]

    def _computed(self, o: Operator, given: list[Any], graph: Graph) -> Any:
        if o.code in SPECIAL:
            return SPECIAL[o.code](o, [None if x is None else tensor(x) for x in given], self.values)
        if o.code == SHAPE:
            return sizes_of(given[0])
        if o.code == RANK:
            return np.array(given[0].ndim, np.int32)
        if o.code in HOST and all(x is None or isinstance(x, np.ndarray) for x in given):
            found = HOST[o.code](o, *given)
            if found is not NotImplemented:
                return tuple(map(as_known, found)) if isinstance(found, tuple) else as_known(found)
        fixed = CONSTANTS.get(o.code, ())
        for k in fixed:
            if k < len(given) and given[k] is not None and not isinstance(given[k], np.ndarray):
                raise Unsupported(f"load: input {k} of the operator {o.name} must be known, and is computed of values")
        if o.code not in RULES:
            raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite is supported for sizes alone")
        kept = (*fixed, *WHERE_KNOWN.get(o.code, ()))
        given = [x if k in kept else tensor(x) for k, x in enumerate(given)]
        infos = [graph.tensors[n] if n >= 0 else None for n in (*o.inputs, *o.outputs)]
        if self.rounding == "tflite" and any(i is not None and i.is_quantised for i in infos):
            made = Given(o, infos[: len(o.inputs)], [graph.tensors[n] for n in o.outputs])
            return kernel_of(o, infos[: len(o.inputs)])(made, *given)
        return RULES[o.code](o, *given)

    @property
    def mapped(self) -> dict[str, int]:
        """How many there are of each operator."""
        found: dict[str, int] = {}
        for graph in self.graph.all():
            for o in graph.operators:
                found[o.name] = found.get(o.name, 0) + 1
        return found

    def extend_repr(self) -> str:
        """Return the numbers of inputs and operators."""
        return f"{len(self.graph.inputs)} inputs, {sum(self.mapped.values())} operators"


def _input(values: dict[int, Any], number: int, graph: Graph) -> Any | None:
    if number == -1 or (number not in values and graph.tensors[number].kept):
        return None
    return values[number]


def _range(info: Info) -> tuple[int, int]:
    limits = np.iinfo(info.kind)
    return int(limits.min), int(limits.max)


def _along(info: Info, values: tuple[Any, ...], kind: Any) -> Any:
    """Return scales or zero points so that they meet the elements that they belong to."""
    array = np.array(values, kind)
    return array.reshape([-1 if a == info.axis else 1 for a in range(len(info.shape))]) if len(values) > 1 else array[0]


def _real_values(info: Info, array: Any) -> Any:
    if not info.is_quantised:
        return array
    scale, zero = _along(info, info.scales, np.float32), _along(info, info.zeros, np.float32)
    return np.asarray((array.astype(np.float64) - zero) * scale, np.float32)


def _dequantised(info: Info, x: Any) -> Any:
    return (x.astype(D.float32) - float(info.zeros[0])) * info.scales[0] if info.is_quantised else x


def _steps(info: Info, x: Any) -> Any:
    low, high = _range(info)
    levels = x / info.scales[0]
    whole = ops.floor(ops.abs(levels) + 0.5) * ops.sign(levels)
    return ops.clamp(whole + float(info.zeros[0]), low, high)


def _rounded(info: Info, x: Any) -> Any:
    return (_steps(info, x) - float(info.zeros[0])) * info.scales[0] if info.is_quantised else x


def _quantised(info: Info, x: Any) -> Any:
    return _steps(info, x).astype(getattr(D, info.kind)) if info.is_quantised else x
