"""`convert`: converts a model file from one format to another, with a report of differences.

A format is an entry of `READERS` or `WRITERS` under the suffix of its files. What was written is
read again and both networks are run on the same numbers, so the report says how far they differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.pytree import flatten
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats import onnx, tflite
from mycel.formats.exporting import LoadedGraph, export
from mycel.formats.loading import load
from mycel.formats.mindir.messages import TENSOR_KINDS
from mycel.formats.mindir.network import MindIRGraph
from mycel.formats.onnx.tensors import TYPES

__all__ = ["READERS", "WRITERS", "Input", "Reader", "Report", "convert"]

_ROUNDING = 1e-3
_OPEN = 2  # the size in a trial of an axis whose size is open


class Input(NamedTuple):
    """An input of a network: its name, element type, and sizes (None: open; no sizes: any).

    `words` are the names that the file gives to sizes, "" for those without.
    """

    name: str
    dtype: Any
    shape: tuple[int | None, ...] | None
    words: tuple[str, ...] = ()


class Reader(NamedTuple):
    """A format that is read: what makes a Cell of a file, and what tells of the Cell its inputs and
    how many there are of each operator.
    """

    load: Callable[[str], Cell]
    inputs: Callable[[Any], list[Input]]
    operators: Callable[[Any], Mapping[str, int]]


def _onnx_inputs(net: Any) -> list[Input]:
    found = []
    for name, kind in net.declared:
        if kind is None or kind.tensor is None:
            raise Unsupported(f"convert: the input {name!r} is no tensor")
        shape = kind.tensor.shape
        found.append(
            Input(
                name,
                from_any(TYPES[kind.tensor.element]),
                None if shape is None else tuple(d.value for d in shape.dims),
                () if shape is None else tuple(d.name or "" for d in shape.dims),
            )
        )
    return found


def _mindir_inputs(net: Any) -> list[Input]:
    if isinstance(net, MindIRGraph):
        # The graph's name stands before that of an input.
        return [
            Input(
                t.name.rpartition(":")[2],
                TENSOR_KINDS[t.kind],
                None if -2 in t.shape else tuple(None if d < 0 else d for d in t.shape),
            )
            for t in net.model.main.inputs
        ]
    model = net.model
    given = model.graph.inputs[: len(model.graph.inputs) - len(model.states)]
    return [
        Input(
            str(n.params.get("name", f"input{i}")),
            n.dtype,
            tuple(None if isinstance(d, Dim) else d for d in n.shape),
        )
        for i, n in enumerate(given)
    ]


def _counted(net: Any) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    if isinstance(net, LoadedGraph):
        names = [node.op for node in net.model.graph.nodes]
    else:
        model = net.model
        nodes = [n for function in (model.main, *model.functions.values()) for n in function.nodes]
        # A node refers to a primitive of the file, whose name ends in a number.
        names = [n.operator.removeprefix("REF::").split(":")[0] for n in nodes]
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _tflite_inputs(net: Any) -> list[Input]:
    given = [net.graph.tensors[number] for number in net.graph.inputs]
    return [Input(t.name, from_any(t.kind), tuple(None if d < 0 else d for d in t.shape)) for t in given]


READERS: dict[str, Reader] = {
    ".mindir": Reader(load, _mindir_inputs, _counted),
    ".mycel": Reader(load, _mindir_inputs, _counted),
    ".onnx": Reader(onnx.load, _onnx_inputs, lambda net: net.mapped),
    ".tflite": Reader(tflite.load, _tflite_inputs, lambda net: net.mapped),
}
# The formats that are written, as `export` names them.
WRITERS: dict[str, str] = {".mindir": "MINDIR", ".mycel": "MYCEL", ".onnx": "ONNX"}


@dataclass
class Report:
    """What `convert` did.

    `read` and `written` say how many there are of each operator in the two files, `parameters` and
    `elements` how many weights, and `inputs` what the network takes. `difference` is the largest
    between results of the two networks and `largest` the largest number in these; None where they
    were not run.
    """

    source: str
    target: str
    read: dict[str, int]
    written: dict[str, int]
    inputs: list[Input]
    parameters: int
    elements: int
    difference: float | None = None
    largest: float | None = None
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        takes = ", ".join(
            f"{i.name}: {i.dtype.name}[{', '.join('?' if d is None else str(d) for d in i.shape or ())}]"
            for i in self.inputs
        )
        lines = [
            f"{self.source}: {_listed(self.read)}",
            f"{self.target}: {_listed(self.written)}",
            f"inputs      {takes or 'none'}",
            f"parameters  {self.parameters} of {self.elements} elements",
        ]
        if self.difference is not None:
            lines.append(f"difference  {self.difference:.3g} at most, of numbers up to {self.largest:.3g}")
        return "\n".join([*lines, *self.notes])


def _listed(counts: Mapping[str, int]) -> str:
    whole = sum(counts.values())
    most = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    return f"{whole} nodes: " + ", ".join(f"{n} {name}" for name, n in most)


def convert(
    source: Any,
    target: Any,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    check: bool = True,
    for_mindspore: bool = False,
) -> Report:
    """Write the network in a file as a file of another format.

    Args:
        source (str | os.PathLike[str]): A path whose suffix names the format: ".onnx", ".mindir",
            ".mycel", or ".tflite", which is only read.
        target (str | os.PathLike[str]): A path whose suffix names the format: ".onnx", ".mindir",
            ".mycel", or ".tflite", which is only read.
        shapes (Mapping[str, Sequence[int | None]] | None): The sizes of inputs by name (None in
            them: open); None for those of the source. Default: None.
        check (bool): Whether what was written is read again, and both networks are run on the same
            random numbers, with 2 for open sizes. Default: True.
        for_mindspore (bool): Whether it is an error where a ".mindir" file cannot be one that
            MindSpore loads. Default: False.

    Returns:
        Report: What was written, and how it compares.

    Raises:
        ValueError: For formats that are not known and files that are damaged, and Unsupported,
            naming the operator, for what has no form in the other format.

    Examples:
        >>> import mycel as ms, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> any_vector = ms.Tensor(shape=[None], dtype=ms.float32)
        >>> ms.export(ms.ops.square, any_vector, file_name=folder / "a.onnx", file_format="ONNX")
        >>> report = ms.formats.convert(folder / "a.onnx", folder / "a.mindir")
        >>> report.read["Mul"], report.written["Mul"], report.difference
        (1, 1, 0.0)
    """
    read_from, write_to = str(os.fspath(source)), str(os.fspath(target))
    reader, kind = READERS.get(_suffix(read_from)), WRITERS.get(_suffix(write_to))
    if reader is None:
        raise ValueError(f"convert: {read_from!r} is of no format that is read; those are {', '.join(sorted(READERS))}")
    if kind is None:
        raise ValueError(
            f"convert: {write_to!r} is of no format that is written; those are {', '.join(sorted(WRITERS))}"
        )
    if for_mindspore and kind != "MINDIR":
        raise ValueError(f"convert: for_mindspore is for .mindir files, and {write_to!r} is none")
    net = reader.load(read_from)
    inputs = _sized(reader.inputs(net), shapes or {})
    examples = [Tensor(shape=list(i.shape or ()), dtype=i.dtype) for i in inputs]
    export(net, *examples, file_name=write_to, file_format=kind, **({"for_mindspore": True} if for_mindspore else {}))
    weights = list(net.get_parameters())
    again = READERS[_suffix(write_to)].load(write_to)
    report = Report(
        read_from,
        write_to,
        dict(reader.operators(net)),
        dict(READERS[_suffix(write_to)].operators(again)),
        inputs,
        len(weights),
        sum(int(np.prod(w.shape)) for w in weights),
    )
    if check:
        _compare(net, again, inputs, report)
    return report


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _sized(inputs: list[Input], shapes: Mapping[str, Sequence[int | None]]) -> list[Input]:
    """Return inputs with the sizes that were given."""
    unknown = sorted(set(shapes) - {i.name for i in inputs})
    if unknown:
        raise ValueError(f"convert: there is no input {unknown[0]!r}; the inputs are {[i.name for i in inputs]}")
    found = [i._replace(shape=tuple(shapes[i.name])) if i.name in shapes else i for i in inputs]
    for i in found:
        if i.shape is None:
            raise ValueError(f"convert: the file does not say of which rank the input {i.name!r} is; give its shape")
    return found


def _compare(net: Cell, again: Cell, inputs: list[Input], report: Report) -> None:
    """Run two networks on the same numbers, and enter how far their results differ."""
    draw = np.random.default_rng(0)
    given = []
    for i in inputs:
        shape = [_OPEN if d is None else d for d in i.shape or ()]
        if i.dtype.is_floating:
            array = draw.normal(size=shape).astype(i.dtype.numpy)
        else:
            array = draw.integers(0, 2, size=shape).astype(i.dtype.numpy)
        given.append(Tensor.from_numpy(array))
    first, second = ([t for t in flatten(n(*given))[0] if isinstance(t, Tensor)] for n in (net, again))
    forms = [[(t.shape, t.dtype.name) for t in found] for found in (first, second)]
    if forms[0] != forms[1]:
        raise ValueError(f"convert: the written network gives {forms[1]}, and the one that was read {forms[0]}")
    report.difference = report.largest = 0.0
    for a, b in zip(first, second):
        x, y = (np.asarray(t.asnumpy(), np.complex128 if t.dtype.is_complex else np.float64) for t in (a, b))
        if x.size:
            both = np.isfinite(x) | np.isfinite(y)
            report.difference = max(report.difference, float(np.abs(np.where(both, x - y, 0)).max()))
            report.largest = max(report.largest, float(np.abs(np.where(both, x, 0)).max()))
    if not report.difference <= _ROUNDING * max(report.largest, 1.0):
        report.notes.append(
            "The results differ by more than rounding. mycel.diverge(mycel.load(IN), mycel.load(OUT), inputs) names "
            "the first operation that does."
        )
