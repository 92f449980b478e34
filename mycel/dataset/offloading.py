"""`map(offload=True)`: last operations of a pipeline, moved into the compiled training step.

The last operations of a `map` on one column, below a single `batch`, leave the pipeline if they are
arithmetic on each row alone: `Rescale`, `Normalize`, `HWC2CHW`, `TypeCast` and `ToType`. The step
applies them to whole batches, and the pipeline hands over bytes instead of floats. Flips of images
stay in the pipeline, as they commute with these to the bit, and so does everything before an
operation that does not leave. A flip after the channels have become the first axis is of another
axis of the image, and holds back what is before it.

Invariants: a node keeps its height and each operation its number, so that rows draw the random
numbers that they drew before; values are those of the pipeline.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation.log import logger
from mycel._src.foundation.logged_once import no_effect
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.dataset import config
from mycel.dataset.arguments import is_hidden
from mycel.dataset.nodes.map_execution import Applied
from mycel.dataset.pipeline import (
    BatchDataset,
    Dataset,
    MapDataset,
    RepeatDataset,
    SkipDataset,
    TakeDataset,
    TransferDataset,
)
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.transforms.base import Transform
from mycel.dataset.transforms.generic import TypeCast
from mycel.dataset.vision.color import Normalize, Rescale, ToType
from mycel.dataset.vision.geometry import HWC2CHW, RandomHorizontalFlip, RandomVerticalFlip

_FLIPS = (RandomHorizontalFlip, RandomVerticalFlip)
_THROUGH = (RepeatDataset, SkipDataset, TakeDataset)
# Types whose values float32 holds exactly.
_EXACT = ("bool", "int8", "uint8", "int16", "uint16", "float16", "float32")


class Stays(Transform):
    """What stands in the place of an operation that has left: rows as they are."""

    vectorised = True

    def compute(self, array: Array, lead: int) -> Array:
        return array


Step = Callable[[Tensor], Tensor]


def _rescaled(operation: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Step | None:
    if dtype.name not in _EXACT or dtype.kind == "b":
        return None
    scale, shift = np.float32(operation.rescale), np.float32(operation.shift)

    def step(x: Tensor) -> Tensor:
        # The product is exact in float64 and rounded once, as in float32: kernels would otherwise
        # round it together with what is added to it.
        x = (x.astype("float64") * float(scale)).astype("float32")
        return x + float(shift) if shift else x

    return step


def _normalised(operation: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Step | None:
    if dtype.name not in _EXACT or dtype.kind == "b" or len(shape) != 3:
        return None
    places = (1, 1, 1, -1) if operation.is_hwc else (1, -1, 1, 1)
    mean = np.array(operation.mean, np.float32).reshape(places)
    std = np.array(operation.std, np.float32).reshape(places)

    def step(x: Tensor) -> Tensor:
        return (x.astype("float32") - Tensor(mean)) / Tensor(std)

    return step


def _turned(operation: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Step | None:
    if len(shape) != 3:
        return None

    def step(x: Tensor) -> Tensor:
        return x.transpose(0, 3, 1, 2)

    return step


def _cast(operation: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Step | None:
    target = operation.data_type
    rounds_alike = dtype.kind in "iuf" and target.name in ("float32", "float64")
    if not rounds_alike and not (dtype.kind in "iu" and target.kind in "iu" and np.can_cast(dtype, target, "safe")):
        return None
    name = target.name

    def step(x: Tensor) -> Tensor:
        return x.astype(name)

    return step


_RULES: dict[type[Any], Callable[[Any, np.dtype[Any], tuple[int, ...]], Step | None]] = {
    Rescale: _rescaled,
    Normalize: _normalised,
    HWC2CHW: _turned,
    TypeCast: _cast,
    ToType: _cast,
}


class Front(Cell):
    """A `network` that applies the `steps` of each column to a batch first."""

    def __init__(self, network: Any, steps: Sequence[Sequence[Step]]) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.steps = tuple(map(tuple, steps))

    def construct(self, *columns: Any) -> Any:
        made = []
        for column, steps in zip(columns, self.steps):
            for step in steps:
                column = step(column)
            made.append(column)
        return self.network(*made)


class Split:
    """A pipeline without its end: the `dataset`, and the `steps` of each of its columns."""

    def __init__(self, dataset: Dataset, steps: list[list[Step]]) -> None:
        self.dataset, self.steps = dataset, steps

    def before(self, network: Any) -> Cell:
        """Return a network that does the end of the pipeline before a Cell or a `Jit`."""
        return Front(network, self.steps)


def _wanted(node: Any) -> bool:
    return isinstance(node, MapDataset) and (config.get_auto_offload() if node.offload is None else node.offload)


def _any_wanted(node: Any) -> bool:
    return _wanted(node) or any(map(_any_wanted, node.children))


def split(dataset: Any, against: str = "") -> Split | None:
    """Return a pipeline without the operations that leave it; None where none do.

    It is said once where some were to leave and cannot: they stay where there is a reason `against`
    it.
    """
    if not isinstance(dataset, Dataset) or not _any_wanted(dataset):
        return None
    found, why = (None, against) if against else _split(dataset)
    if found is None:
        no_effect("map", "offload", True, why)
    return found


def parts(dataset: Any, network: Cell) -> tuple[Any, Cell]:
    """Return a dataset without the operations that leave it, and a network with them first."""
    found = split(dataset)
    return (dataset, network) if found is None else (found.dataset, found.before(network))


def awaits_steps(dataset: Any, function: str) -> bool:
    """Return whether rows of a dataset wait for steps of `function`, which is noted: they run one
    by one.
    """
    waits = bool(getattr(dataset, "awaits_steps", False))
    if waits:
        logger.info("%s: steps run one by one, as the dataset waits for the end of each", function)
    return waits


def _split(dataset: Dataset) -> tuple[Split | None, str]:
    above: list[Any] = []
    node: Any = dataset
    if isinstance(node, TransferDataset):
        return None, "a device queue is sent what the whole pipeline makes; give the dataset itself"
    while isinstance(node, _THROUGH):
        above.append(node)
        node = node.children[0]
    if type(node) is not BatchDataset or node.per_batch_map is not None:
        return None, "its end is no batch without a function, so the operations stay in the pipeline"
    above.append(node)
    node = node.children[0]
    taken: set[str] = set()
    chosen: dict[int, list[int]] = {}
    while isinstance(node, MapDataset) and node.columns == node.children[0]._columns():
        if _wanted(node) and len(node.inputs) == 1 and node.inputs == node.outputs and not taken & set(node.inputs):
            last = _last(node)
            if last and node.cache is None and not node.callbacks:
                chosen[id(node)] = last
        taken |= {*node.inputs, *node.outputs}
        above.append(node)
        node = node.children[0]
    if not chosen:
        return None, "no Rescale, Normalize, HWC2CHW, TypeCast or ToType is the last operation on a column"
    return _rebuilt(above, node, chosen)


def _last(node: Any) -> list[int]:
    """Return the numbers of the operations at the end of a `map` that may leave."""
    numbers: list[int] = []
    flips = False
    for number in range(len(node.operations) - 1, -1, -1):
        operation = node.operations[number]
        if type(operation) in _FLIPS:
            flips = True
        elif type(operation) not in _RULES or flips and _moves_axes(operation):
            break
        else:
            numbers.append(number)
    return numbers[::-1]


def _moves_axes(operation: Any) -> bool:
    """Return whether a flip after an operation is not one of the same axis of the image before it,
    or not of an axis along which the operation is the same everywhere.
    """
    return isinstance(operation, HWC2CHW) or isinstance(operation, Normalize) and not operation.is_hwc


def _rebuilt(above: list[Any], below: Any, chosen: dict[int, list[int]]) -> tuple[Split | None, str]:
    """Return the pipeline with copies of the nodes `above`, from the end down to `below`."""
    leaving: dict[str, list[Any]] = {}
    inputs = {id(node): node.inputs for node in above if id(node) in chosen}
    made: Any = below
    for node in reversed(above):
        other = copy.copy(node)
        other.children = (made,)
        other._counted = None
        if id(node) in chosen:
            other.operations = [
                Stays() if number in chosen[id(node)] else operation for number, operation in enumerate(node.operations)
            ]
            other.applied = Applied(other.operations, node.inputs, node.outputs, node._input_places, node._places)
            leaving[node.inputs[0]] = [node.operations[number] for number in chosen[id(node)]]
        made = other
    batch = made
    while not isinstance(batch, BatchDataset):
        batch = batch.children[0]
    row = batch.children[0]._first_row()
    names = [name for name in made._columns() if not is_hidden(name)]
    steps: list[list[Step]] = []
    for name in names:
        array = np.asarray(row[made._columns().index(name)]) if row else np.zeros(0)
        found = _steps(leaving.get(name, []), array)
        if found is None:
            kept = {key: numbers for key, numbers in chosen.items() if name not in inputs[key]}
            if kept:
                return _rebuilt(above, below, kept)
            return None, f"column {name!r} of type {array.dtype} and shape {list(array.shape)} is not for them"
        steps.append(found)
    return Split(made, steps), ""


def _steps(operations: list[Any], array: Array) -> list[Step] | None:
    """Return what a step does to a column whose rows are like this one; None where it cannot."""
    steps: list[Step] = []
    for operation in operations:
        step = _RULES[type(operation)](operation, array.dtype, array.shape)
        if step is None:
            return None
        steps.append(step)
        array = operation(array)
    return steps
