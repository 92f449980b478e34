"""Makes a Cell of a MindIR file."""

from __future__ import annotations

import os
from typing import Any

from mycel._src.staging.compiled.jit import Jit
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.mindir.evaluate import Evaluator
from mycel.formats.mindir.external_data import fetch
from mycel.formats.mindir.messages import FROZEN, TENSOR_KINDS, MindIRError, Model, TensorInfo, model_of

__all__ = ["MindIRGraph", "load", "of_content"]


def load(file_name: Any) -> MindIRGraph:
    """Return the network in a MindIR file that MindSpore exported, as a Cell.

    Raises MindIRError for a file that is no MindIR or damaged, and Unsupported, naming the
    operator, for one that Mycel cannot compute.
    """
    path = os.fspath(file_name)
    with open(path, "rb") as file:
        content = file.read()
    return of_content(content, path)


def of_content(content: bytes, path: str) -> MindIRGraph:
    """Return the network in the content of the file at `path`; see `load`.

    Values that MindSpore has written to files beside it are read from there.
    """
    try:
        model = model_of(content)
        fetch(model, os.path.dirname(os.path.abspath(path)))
        return MindIRGraph(model)
    except MindIRError as error:
        raise MindIRError(f"{path}: {error}") from None


class MindIRGraph(Cell):
    """A network of a MindIR file of MindSpore's: its parameters have their names, and it runs,
    compiles and differentiates as any Cell does.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(auto_prefix=False)
        self.model = model
        named: dict[str, Parameter] = {}
        for number, info in enumerate(model.main.parameters):
            value = Tensor.from_numpy(info.array())
            trained = value.dtype.is_floating and info.description != FROZEN
            made = Parameter(value, name=info.parameter or info.name, requires_grad=trained)
            self.insert_param_to_cell(f"parameter{number}", made)
            named[info.name] = made
        self.evaluator = Evaluator(model, named)
        self.compiled_run = Jit(self.evaluator.run)

    def construct(self, *inputs: Any) -> Any:
        """Run the graph.

        Raises ValueError for tensors of other types and sizes than those the file is for.
        """
        taken = self.model.main.inputs
        if len(inputs) != len(taken) or not all(map(_fits, taken, inputs)):
            given = ", ".join(str(x._type) if isinstance(x, Tensor) else repr(x) for x in inputs)
            raise ValueError(f"the loaded network {self.model.main.name!r}: it takes {self._taken()}, not {given}")
        return self.compiled_run(*inputs)

    def extend_repr(self) -> str:
        """Return the name of the graph and the types of its inputs."""
        return f"{self.model.main.name}: {self._taken()}"

    def _taken(self) -> str:
        return ", ".join(map(_described, self.model.main.inputs)) or "no tensors"


def _fits(info: TensorInfo, value: Any) -> bool:
    """Return whether an argument is a tensor as an input is described; any value is where the input
    is no tensor.
    """
    if info.kind not in TENSOR_KINDS:
        return True
    if not isinstance(value, Tensor) or value.dtype is not TENSOR_KINDS[info.kind]:
        return False
    shape = value.shape
    return -2 in info.shape or (len(shape) == len(info.shape) and all(m in (-1, n) for m, n in zip(info.shape, shape)))


def _described(info: TensorInfo) -> str:
    if info.kind not in TENSOR_KINDS:
        return "a value"
    sizes = "..." if -2 in info.shape else ", ".join("?" if d < 0 else str(d) for d in info.shape)
    return f"{TENSOR_KINDS[info.kind].name}[{sizes}]"
