"""Makes a Cell of an ONNX model (`load`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx import messages
from mycel.formats.onnx import rules as rules
from mycel.formats.onnx.messages import OnnxError, read_model
from mycel.formats.onnx.operation import has_tensor, is_text, tensor
from mycel.formats.onnx.program import Builder, Program, settled
from mycel.formats.onnx.tensors import TYPES

__all__ = ["OnnxNetwork", "load", "loads"]


class OnnxNetwork(Cell):
    """The network of an ONNX model, as `load` returns it.

    A call takes the model's inputs in order and gives its output, or a tuple of its outputs.
    Tensors are tensors; sequences are lists; an optional that holds nothing is None; strings, and
    elements of less than a byte, are arrays of NumPy. Weights are Parameters under the names of the
    model's initializers. `mapped` says how many nodes each operator has.
    """

    def __init__(self, program: Program, inputs: Sequence[messages.Value], mapped: dict[str, int]) -> None:
        super().__init__()
        self.program = program
        self.mapped = mapped
        self._inputs = [(v.name, v.type) for v in inputs]
        self._weights: dict[str, Parameter] = {}
        self.graph_name = program.name
        looked_into = set(_looked_into(program))
        for number, (name, value) in enumerate(list(program.constants.items())):
            if not value.ndim or not has_tensor(value.dtype) or name in looked_into:
                continue
            if from_any(np.dtype(value.dtype)).is_floating:
                del program.constants[name]
                program.captured.add(name)
                self._weights[name] = Parameter(Tensor.from_numpy(np.array(value, order="C")), name=name)
                self.insert_param_to_cell(f"parameter{number}", self._weights[name])
            else:
                program.constants[name] = settled(value)
        _undo_constants(program, set(self._weights))

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return [name for name, _ in self._inputs]

    @property
    def declared(self) -> list[tuple[str, messages.Type | None]]:
        """The inputs with the types that the model declares for them."""
        return list(self._inputs)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self.program.outputs)

    def construct(self, *args: Any) -> Any:
        """Run the model."""
        if len(args) > len(self._inputs) or len(args) < len(self._inputs):
            raise TypeError(f"{self._title()}: takes {len(self._inputs)} inputs {self.input_names}, not {len(args)}")
        values = [self._given(v, name, kind) for v, (name, kind) in zip(args, self._inputs)]
        made = [self._result(v) for v in self.program.run(values, self._weights)]
        return made[0] if len(made) == 1 else tuple(made)

    def _given(self, value: Any, name: str, kind: messages.Type | None) -> Any:
        where = f"{self._title()}: the input {name!r}"
        if value is None or isinstance(value, (list, tuple)):
            return None if value is None else [self._given(v, name, None) for v in value]
        if isinstance(value, np.ndarray) and has_tensor(value.dtype):
            value = Tensor.from_numpy(value)
        if not isinstance(value, (Tensor, np.ndarray)):
            raise TypeError(f"{where} must be a tensor, not {type(value).__name__}")
        if kind is not None and kind.tensor is not None:
            _check(value, kind.tensor, where)
        return value

    def _result(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._result(v) for v in value]
        if (
            isinstance(value, np.ndarray)
            and not is_text(value)
            and (value.dtype.kind == "O" or has_tensor(value.dtype))
        ):
            return tensor(value)
        return value

    def _title(self) -> str:
        return f"the ONNX network {self.graph_name!r}"

    def extend_repr(self) -> str:
        """Return the name of the graph and the number of its nodes."""
        return f"{self.graph_name}: {sum(self.mapped.values())} nodes, {len(self._weights)} parameters"


def _check(value: Any, kind: messages.TensorType, where: str) -> None:
    """Raise an error unless a value has the type that the model declares for it."""
    declared = TYPES.get(kind.element)
    if declared is not None and np.dtype(getattr(value.dtype, "numpy", value.dtype)) != declared:
        raise TypeError(f"{where} must have elements of {declared}, not {value.dtype}")
    if kind.shape is None:
        return
    wanted, shape = [d.value for d in kind.shape.dims], tuple(value.shape)
    fits = len(wanted) == len(shape) and all(w is None or isinstance(d, Dim) or w == d for w, d in zip(wanted, shape))
    if not fits:
        shown = [d.name or "?" if d.value is None else d.value for d in kind.shape.dims]
        raise ValueError(f"{where} must be of shape {shown}, not {list(shape)}")


def _programs(program: Program) -> Iterator[Program]:
    yield program
    for step in program.steps:
        for inner in (*step.bodies.values(), *([step.function] if step.function else [])):
            yield from _programs(inner)


def _looked_into(program: Program) -> Iterator[str]:
    """Yield the names whose content decides what operators do, and what they are made of by
    operators of sizes.
    """
    for inner in _programs(program):
        for step in inner.steps:
            if step.rule is not None:
                yield from (n for i, n in enumerate(step.op.inputs) if n and i in step.rule.known)
            elif step.function is not None:
                yield from (n for n in step.op.inputs if n)


def _undo_constants(program: Program, weights: set[str]) -> None:
    """Mark the steps that depend on parameters: they are computed at each call."""
    changing = set(weights)
    for step in program.steps:
        needed = {*step.op.inputs, *[n for b in step.bodies.values() for n in b.captured]}
        if needed & changing:
            step.is_constant = False
            changing |= {n for n in step.op.outputs if n}


def load(path: Any) -> OnnxNetwork:
    """Return the network in an ONNX file as a Cell.

    Standard operators of versions 7 to 28 are read. What the Cell computes can be compiled,
    differentiated and exported as that of any other. Data in files beside it, which lie in the
    file's folder, are read with it.

    Raises OnnxError (a ValueError) for a file that is missing, damaged, or contradicts itself;
    Unsupported, with the operator, its version and the node's name, for what has no rule here.

    >>> import mycel as ms, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "square.onnx"
    >>> ms.export(ms.ops.square, ms.Tensor([1.0]), file_name=path, file_format="ONNX")
    >>> ms.load(path)(ms.Tensor([3.0])).asnumpy()
    array([9.], dtype=float32)
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise TypeError(f"load: path must be a path, not {path!r}")
    name = str(os.fspath(path))
    if not os.path.isfile(name):
        raise OnnxError(f"load: there is no file {name!r}")
    with open(name, "rb") as file:
        content = file.read()
    return _network(content, os.path.dirname(os.path.abspath(name)), name)


def loads(content: bytes) -> OnnxNetwork:
    """Return the network in the content of an ONNX file as a Cell; see `load`.

    >>> import mycel as ms, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "square.onnx"
    >>> ms.export(ms.ops.square, ms.Tensor([1.0]), file_name=path, file_format="ONNX")
    >>> from mycel.formats import onnx
    >>> onnx.loads(path.read_bytes()).output_names
    ['output0']
    """
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"loads: content must be bytes, not {type(content).__name__}")
    return _network(content, None, "the content")


def _network(content: Any, folder: str | None, name: str) -> OnnxNetwork:
    try:
        model = read_model(content)
        builder = Builder(model, folder, len(content))
        assert model.graph is not None
        program = builder.graph(model.graph)
    except OnnxError as error:
        raise OnnxError(f"{name}: {error}") from None
    except Unsupported as error:
        raise Unsupported(f"{name}: {error}") from None
    made = {t.name for t in model.graph.initializers}
    return OnnxNetwork(program, [v for v in model.graph.inputs if v.name not in made], builder.mapped)
