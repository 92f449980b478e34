"""A TensorFlow Lite file as a network.

Quantised tensors are computed as the real numbers that they stand for: after each operator they are
rounded to the steps of its result. That is TensorFlow Lite's arithmetic up to the rounding of
single steps, which its kernels do in integers; results differ by a step at most where many round
alike, and inputs and outputs are integers as in the file. By option they are computed in integers
and give the kernels' bits (`mycel.formats.tflite.kernels`).
"""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

from mycel import ops
from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import Unsupported
from mycel.cells.cell import Cell
from mycel.compiled.jit import Jit
from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor
from mycel.formats.tflite.kernels import Given, kernel_of
from mycel.formats.tflite.rules import CONSTANTS, RULES
from mycel.formats.tflite.schema import Graph, Operator, TFLiteError, graph_of
from mycel.formats.tflite.schema import Tensor as Info

__all__ = ["TFLiteGraph", "load"]

ROUNDINGS = ("real", "tflite")


def load(file_name: Any, rounding: str = "real") -> TFLiteGraph:
    """Return the network in a TensorFlow Lite file as a Cell.

    With `rounding` "tflite" quantised operators give the bits of its reference kernels, in
    arithmetic of integers; with "real" they are right up to a step, and have gradients.

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
        self.known: dict[int, Any] = {}
        fixed = {o.inputs[k] for o in graph.operators for k in CONSTANTS.get(o.code, ()) if k < len(o.inputs)}
        names: set[str] = set()
        for number, info in enumerate(graph.tensors):
            if info.content is None:
                continue
            array = info.array()
            if number in fixed:
                self.known[number] = array
            elif array.dtype.kind == "f" and array.ndim and array.size:
                name = info.name or f"tensor{number}"
                made = Parameter(Tensor.from_numpy(array), name=name if name not in names else f"{name}.{number}")
                names.add(name)
                self.insert_param_to_cell(f"parameter{number}", made)
                self.known[number] = made
            else:
                held = array if rounding == "tflite" else np.asarray(_real_values(info, array))
                self.known[number] = Tensor.from_numpy(held)
        for o in graph.operators:
            if o.code not in RULES:
                raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite is not supported")
            if rounding == "tflite" and any(graph.tensors[n].is_quantised for n in (*o.inputs, *o.outputs) if n >= 0):
                kernel_of(o)
            for k in CONSTANTS.get(o.code, ()):
                if k < len(o.inputs) and o.inputs[k] >= 0 and o.inputs[k] not in self.known:
                    raise Unsupported(f"load: input {k} of the operator {o.name} must be a constant")
        self.compiled_run = Jit(self.run)

    def construct(self, *inputs: Any) -> Any:
        """Run the graph."""
        return self.compiled_run(*inputs)

    def run(self, *inputs: Any) -> Any:
        """Compute the operators in their order."""
        graph, whole = self.graph, self.rounding == "tflite"
        if len(inputs) != len(graph.inputs):
            raise ValueError(f"the loaded network takes {len(graph.inputs)} inputs, not {len(inputs)}")
        values: dict[int, Any] = dict(self.known)
        for number, x in zip(graph.inputs, inputs):
            info = graph.tensors[number]
            if not isinstance(x, Tensor) or x.dtype.name != info.kind or x.ndim != len(info.shape):
                raise ValueError(
                    f"the loaded network takes {info.kind}{list(info.shape)} as {info.name!r}, not {x!r:.80}"
                )
            values[number] = x if whole else _dequantised(info, x)
        for o in graph.operators:
            given = [_input(o, values, number) for number in o.inputs]
            infos = [graph.tensors[n] if n >= 0 else None for n in (*o.inputs, *o.outputs)]
            exact = whole and any(i is not None and i.is_quantised for i in infos)
            if exact:
                made = Given(o, infos[: len(o.inputs)], [graph.tensors[n] for n in o.outputs])
                found = kernel_of(o)(made, *given)
            else:
                found = RULES[o.code](o, *given)
            several = found if isinstance(found, (tuple, list)) else (found,)
            for number, y in zip(o.outputs, several):
                values[number] = y if whole else _rounded(graph.tensors[number], y)
        results = [values[n] if whole else _quantised(graph.tensors[n], values[n]) for n in graph.outputs]
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def mapped(self) -> dict[str, int]:
        """How many there are of each operator."""
        found: dict[str, int] = {}
        for o in self.graph.operators:
            found[o.name] = found.get(o.name, 0) + 1
        return found

    def extend_repr(self) -> str:
        """Return the numbers of inputs and operators."""
        return f"{len(self.graph.inputs)} inputs, {len(self.graph.operators)} operators"


def _input(o: Operator, values: dict[int, Any], number: int) -> Optional[Any]:
    if number == -1:
        return None
    if number not in values:
        raise TFLiteError(f"the operator {o.name} uses tensor {number}, which nothing computes")
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
    steps = x / info.scales[0]
    whole = ops.floor(ops.abs(steps) + 0.5) * ops.sign(steps)
    return ops.clamp(whole + float(info.zeros[0]), low, high)


def _rounded(info: Info, x: Any) -> Any:
    return (_steps(info, x) - float(info.zeros[0])) * info.scales[0] if info.is_quantised else x


def _quantised(info: Info, x: Any) -> Any:
    return _steps(info, x).astype(getattr(D, info.kind)) if info.is_quantised else x
