"""`summary`: the layers of a network with what they compute, hold and cost, from one run of it.

The network runs once, operation by operation and outside of training, in a context that counts the
products of each operation for the Cells in which it is applied (`engines.reports.work`). So every
call counts, whatever decides it: a layer that is called twice has two calls and its parameters
once. The memory of the compiled program is that of `mycel.estimate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.prims.base import Primitive
from mycel._src.engines.reports import work
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError, NeedsValue, Unsupported
from mycel._src.foundation.pytree import flatten
from mycel._src.staging.compiled.memory_estimate import estimate
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.cells.eval_mode import outside_of_training
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.execution_context import Context
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.generator import get_rng_state, set_rng_state

__all__ = ["LayerSummary", "Summary", "summary"]


@dataclass
class LayerSummary:
    """A Cell of a network, with all Cells inside.

    Args:
        path (str): Its path.
        kind (str): Its class.
        depth (int): How deep it lies.
        outputs (list[tuple[int, ...]]): The shapes of its last call's outputs.
        calls (int): How often it was called. Default: 0.
        parameters (int): The number of elements of its parameters. Default: 0.
        trainable (int): Of these, those that are trained. Default: 0.
        macs (int): The products with their additions. Default: 0.
    """

    path: str
    kind: str
    depth: int
    outputs: list[tuple[int, ...]] = field(default_factory=list)
    calls: int = 0
    parameters: int = 0
    trainable: int = 0
    macs: int = 0


@dataclass
class Summary:
    """What `summary` found of a network.

    Args:
        name (str): The class of the network.
        layers (list[LayerSummary]): Those down to the depth asked for.
        parameters (int): The number of elements of all parameters, each counted once.
        trainable (int): Of these, those that are trained.
        parameter_bytes (int): The bytes of the parameters.
        macs (int): The products with their additions in matrix products, convolutions and
            recurrences of a run.
        output_bytes (int): The results of all Cells that have no Cells inside.
        peak (int | None): The bytes of a compiled run at its peak with arguments and parameters,
            None where the network is not one graph.
    """

    name: str
    layers: list[LayerSummary]
    parameters: int
    trainable: int
    parameter_bytes: int
    macs: int
    output_bytes: int
    peak: int | None

    def __str__(self) -> str:
        head = ("layer", "output", "parameters", "products")
        rows = [head, *[_row(layer) for layer in self.layers]]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [
            f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}".rstrip()
            for row in rows
        ]
        rule = "-" * max(map(len, lines))
        peak = "" if self.peak is None else f", at the peak of a compiled run {_size(self.peak)}"
        return "\n".join(
            [
                lines[0],
                rule,
                *lines[1:],
                rule,
                f"parameters: {self.parameters:,} ({_size(self.parameter_bytes)}), of them trained: {self.trainable:,}",
                f"products: {self.macs:,}",
                f"memory: outputs of layers {_size(self.output_bytes)}{peak}",
            ]
        )

    __repr__ = __str__


def _row(layer: LayerSummary) -> tuple[str, str, str, str]:
    name = layer.path.rpartition(".")[2]
    title = "  " * layer.depth + (f"{name}: {layer.kind}" if name else layer.kind)
    shapes = ", ".join(str(shape) for shape in layer.outputs) if layer.calls else "not called"
    calls = f" x {layer.calls}" if layer.calls > 1 else ""
    fixed = layer.parameters - layer.trainable
    counted = f"{layer.parameters:,}" + (f" ({fixed:,} fixed)" if fixed else "")
    return title, shapes + calls, counted if layer.parameters else "-", f"{layer.macs:,}" if layer.macs else "-"


def _size(count: int) -> str:
    return f"{count / 1e6:,.2f} MB" if count >= 1e4 else f"{count:,} bytes"


class _Counting(Context):
    """A context that runs operations, and counts the products of each for the Cells around it."""

    does = "counts products"

    def __init__(self) -> None:
        self.around: list[LayerSummary] = []
        self.macs = 0

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if primitive.work is not None:
            node: Any = primitive.node(*[input_node(t._type) for t in inputs], **params)
            count = work(node) // 2
            self.macs += count
            for layer in {id(layer): layer for layer in self.around}.values():
                layer.macs += count
        return eager.execute(primitive, inputs, params)

    def write(self, target: Tensor, new: Tensor) -> None:
        target._buf = new._buf


def summary(net: Cell, *inputs: Any, depth: int | None = None) -> Summary:
    """Return the layers of a network with their outputs, parameters, products and memory, for
    arguments like `inputs`; printed, it is a table.

    The network is called once with the arguments, outside of training and operation by operation;
    parameters and the states of random numbers are as before afterwards. Arrays become tensors,
    also in tuples, lists and dicts, and tensors without values are zeros, of size 1 where a size is
    open. `depth` is how many levels of Cells are shown (None: all), of which each includes what is
    inside. Raises TypeError or ValueError for arguments that do not fit, and what the network
    raises.

    >>> import mycel as ms
    >>> from mycel import nn
    >>> net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(256, 10))
    >>> found = nn.summary(net, ms.ops.ones((1, 1, 8, 8)))
    >>> found.macs, found.parameters, found.layers[1].outputs
    (4864, 2606, [(1, 4, 8, 8)])
    >>> print(found)
    layer           output        parameters  products
    --------------------------------------------------
    SequentialCell  (1, 10)            2,606     4,864
      0: Conv2d     (1, 4, 8, 8)          36     2,304
      1: ReLU       (1, 4, 8, 8)           -         -
      2: Flatten    (1, 256)               -         -
      3: Dense      (1, 10)            2,570     2,560
    --------------------------------------------------
    parameters: 2,606 (0.01 MB), of them trained: 2,606
    products: 4,864
    memory: outputs of layers 3,112 bytes, at the peak of a compiled run 0.01 MB
    """
    arguments.instance("summary", "net", net, Cell)
    if depth is not None:
        arguments.integer("summary", "depth", depth, 0)
    given = [_given(x) for x in inputs]
    found: dict[int, LayerSummary] = {}
    for path, cell in net.cells_and_names():
        weights = list(cell.get_parameters())
        level = path.count(".") + 1 if path else 0
        layer = LayerSummary(path, type(cell).__name__, level, parameters=sum(p.size for p in weights))
        layer.trainable = sum(p.size for p in weights if p.requires_grad)
        found[id(cell)] = layer
    context = _Counting()
    total = _run(net, given, found, context)
    weights = list(net.get_parameters())
    return Summary(
        type(net).__name__,
        [layer for layer in found.values() if depth is None or layer.depth <= depth],
        sum(p.size for p in weights),
        sum(p.size for p in weights if p.requires_grad),
        sum(int(p.nbytes) for p in weights),
        context.macs,
        total,
        _peak(net, given),
    )


def _run(net: Cell, given: list[Any], found: dict[int, LayerSummary], context: _Counting) -> int:
    """Call the network, enter what its Cells gave into `found`, and return the bytes of results of
    Cells without Cells inside.
    """
    total = 0

    def enter(cell: Cell, _: Any) -> None:
        context.around.append(found[id(cell)])

    def leave(cell: Cell, _: Any, output: Any) -> None:
        nonlocal total
        layer = context.around.pop()
        tensors = [t for t in flatten(output)[0] if isinstance(t, Tensor)]
        layer.outputs = [t.shape for t in tensors]
        layer.calls += 1
        if not cell._cells:
            total += sum(int(t.nbytes) for t in tensors)

    state = get_rng_state()
    values = [(p, p.asnumpy().copy()) for p in net.get_parameters() if not p.requires_grad]
    handles = []
    try:
        for _, cell in net.cells_and_names():
            handles.append(cell.register_forward_pre_hook(enter, prepend=True))
            handles.append(cell.register_forward_hook(leave))
        with outside_of_training(net), eager.use_context(context):
            net(*given)
    finally:
        for handle in handles:
            handle.remove()
        set_rng_state(state)
        for parameter, value in values:
            if not np.array_equal(parameter.asnumpy(), value, equal_nan=value.dtype.kind in "fc"):
                parameter.set_data(Tensor(value))
    return total


def _given(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Tensor(value)
    if isinstance(value, Tensor):
        open_sizes = not all(isinstance(n, int) and n >= 0 for n in value.shape)
        if open_sizes or value._buf is None and value._node is None and value._view is None:
            return Tensor(np.zeros([n if isinstance(n, int) and n >= 0 else 1 for n in value.shape]), value.dtype)
        return value
    if isinstance(value, dict):
        return {name: _given(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([_given(inner) for inner in value])
    return value


def _peak(net: Cell, given: list[Any]) -> int | None:
    try:
        with outside_of_training(net):
            return estimate(net, *given).total
    except (CompileError, NeedsValue, Unsupported):
        return None
