"""ONNX's control flow, sequences and optionals.

Where a condition has a value, Python decides. While a function is staged and it has none, a branch
becomes both branches, and a loop that collects nothing becomes one loop of the graph; what else a
loop would need is asked of its tensors, which ends the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation.dtype import from_any
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.control_flow import either, repeated
from mycel.formats.onnx.operation import (
    Operation,
    apply,
    array,
    number,
    reshaped,
    rule,
    shape_values,
    sliced,
    staged,
    tensor,
)
from mycel.formats.onnx.rules.data_movement import axis_of
from mycel.formats.onnx.tensors import TYPES

__all__: list[str] = []
_MOST_ROUNDS = 1 << 24


@rule("If", raw=True)
def _if(op: Operation, condition: Any) -> Any:
    then, otherwise = op.bodies["then_branch"], op.bodies["else_branch"]
    if isinstance(condition, np.ndarray) or not staged():
        return tuple(then(()) if array(condition).reshape(-1)[0] else otherwise(()))

    def tensors(branch: Any) -> Any:
        def values() -> Any:
            return tuple([tensor(v) for v in branch(())])

        return values

    return tuple(either(reshaped(condition, ()), tensors(then), tensors(otherwise)))


@rule("Loop", raw=True)
def _loop(op: Operation, most: Any, condition: Any, *start: Any) -> Any:
    body, count = op.bodies["body"], len(start)
    scans = op.count - count
    rounds = None if most is None else _whole(most)
    if staged() and scans <= 0 and (rounds is None or isinstance(condition, Tensor)):
        return _staged_loop(op, most, condition, start)
    values, collected = list(start), [[] for _ in range(max(scans, 0))]  # type: list[Any], list[list[Any]]
    going = True if condition is None else bool(array(condition).reshape(-1)[0])
    i = 0
    while going and (rounds is None or i < rounds):
        made = body([np.array(i, np.int64), np.array(going), *values])
        going = bool(array(made[0]).reshape(-1)[0])
        values = made[1 : 1 + count]
        for kept, value in zip(collected, made[1 + count :]):
            kept.append(value)
        i += 1
        if i > _MOST_ROUNDS:
            raise op.wrong(f"more than {_MOST_ROUNDS} rounds")
    if not i and collected:
        first = [np.array(0, np.int64), np.array(going), *values]
        return (*values, *_collected_none(op, first, 1 + count, [0] * scans))
    return (*values, *[_stacked(op, c) for c in collected])


def _collected_none(op: Operation, given: list[Any], begin: int, axes: Sequence[int]) -> list[Any]:
    """Return what a loop without rounds has collected: arrays without entries.

    Their other sizes and their types are those that the body declares; where it leaves them open,
    those that it has for `given`, inputs as a round would have. `begin` is the place of the first
    output that is collected, and `axes` are those along which entries would lie.
    """
    declared = [result.type.tensor if result.type is not None else None for result in op.results["body"][begin:]]
    shapes = [None if kind is None or kind.shape is None else [d.value for d in kind.shape.dims] for kind in declared]
    found: list[Any] = []
    made: list[Any] = []
    for k, (kind, shape, axis) in enumerate(zip(declared, shapes, axes)):
        if kind is not None and kind.element in TYPES and shape is not None and None not in shape:
            sizes, element = [int(n) for n in shape if n is not None], TYPES[kind.element]
        else:
            made = made or op.bodies["body"](given)
            value = made[begin + k]
            value = value if isinstance(value, np.ndarray) else tensor(value)
            sizes = [int(n) for n in value.shape]
            element = value.dtype if isinstance(value, np.ndarray) else from_any(value.dtype).numpy
        place = axis % (len(sizes) + 1)
        found.append(np.zeros((*sizes[:place], 0, *sizes[place:]), element))
    return found


def _whole(value: Any) -> Any:
    found = number(array(value))
    if isinstance(found, Dim):
        return int(found)
    return found


def _staged_loop(op: Operation, most: Any, condition: Any, start: Sequence[Any]) -> Any:
    """Return the values that a loop carries, as one loop of a graph."""
    body = op.bodies["body"]
    limit = None if most is None else reshaped(tensor(most), ())
    going = tensor(np.array(True)) if condition is None else reshaped(tensor(condition), ())
    first = (tensor(np.array(0, np.int64)), going, *[tensor(v) for v in start])

    def goes_on(value: Any) -> Any:
        return value[1] if limit is None else (value[0] < limit) & value[1]

    def step(value: Any) -> Any:
        made = body([value[0], value[1], *value[2:]])
        return (value[0] + 1, reshaped(tensor(made[0]), ()), *[tensor(v) for v in made[1:]])

    return tuple(repeated(goes_on, step, first)[2:])


def _stacked(op: Operation, values: list[Any], axis: int = 0) -> Any:
    if not values:
        raise op.wrong("there is nothing in the sequence that could be joined")
    if all(isinstance(v, np.ndarray) for v in values):
        return np.stack(values, axis)
    given = [tensor(v) for v in values]
    place = axis % (given[0].ndim + 1)
    parts = [reshaped(v, (*v.shape[:place], 1, *v.shape[place:])) for v in given]
    return apply(S.CONCAT, *parts, axis=place)


@rule("Scan", raw=True)
def _scan(op: Operation, *values: Any) -> Any:
    body, inputs = op.bodies["body"], op.get("num_scan_inputs")
    count = len(values) - inputs
    if op.get("batched"):
        return _batched_scan(op, values, count)
    return tuple(_scanned(op, body, list(values[:count]), list(values[count:])))


def _batched_scan(op: Operation, values: Sequence[Any], count: int) -> Any:
    """Return what version 8 gives, whose values have one more axis in front, of examples."""
    given = [tensor(v) for v in values]
    rows = []
    if not given[0].shape[0]:
        # What one example would give says the other sizes.
        one = [_zeros(v, v.shape[1:]) for v in given]
        made = [tensor(v) for v in _scanned(op, op.bodies["body"], one[:count], one[count:])]
        return tuple([reshaped(sliced(reshaped(v, (1, *v.shape)), 0, 0, 0), (0, *v.shape)) for v in made])
    for i in range(given[0].shape[0]):
        one = [reshaped(sliced(v, 0, i, i + 1), v.shape[1:]) for v in given]
        rows.append(_scanned(op, op.bodies["body"], one[:count], one[count:]))
    return tuple([_stacked(op, list(column)) for column in zip(*rows)])


def _scanned(op: Operation, body: Any, state: list[Any], over: list[Any]) -> list[Any]:
    inputs = len(over)
    axes = op.get("scan_input_axes") or [0] * inputs
    back = op.get("scan_input_directions") or [0] * inputs
    given = [tensor(v) for v in over]
    along = [axis_of(op, a, v.ndim) for a, v in zip(axes, given)]
    lengths = {v.shape[a] for v, a in zip(given, along)}
    if len(lengths) != 1:
        raise op.wrong(f"the inputs have {sorted(map(str, lengths))} entries")
    length = int(lengths.pop())
    collected: list[list[Any]] = [[] for _ in range(op.count - len(state))]
    for i in range(length):
        entries = []
        for v, axis, turned in zip(given, along, back):
            at = length - 1 - i if turned else i
            entries.append(reshaped(sliced(v, axis, at, at + 1), [n for j, n in enumerate(v.shape) if j != axis]))
        made = body([*state, *entries])
        state = list(made[: len(state)])
        for kept, value in zip(collected, made[len(state) :]):
            kept.append(value)
    axes = op.get("scan_output_axes") or [0] * len(collected)
    if not length and collected:
        entries = [_zeros(v, [n for j, n in enumerate(v.shape) if j != a]) for v, a in zip(given, along)]
        return [*state, *_collected_none(op, [*state, *entries], len(state), axes)]
    turned_out = op.get("scan_output_directions") or [0] * len(collected)
    found = [_stacked(op, c[::-1] if t else c, a) for c, a, t in zip(collected, axes, turned_out)]
    return [*state, *found]


def _zeros(value: Tensor, shape: Sequence[Any]) -> Any:
    return tensor(np.zeros([int(n) for n in shape], from_any(value.dtype).numpy))


# Sequences.


@rule("SequenceEmpty", raw=True)
def _sequence_empty(op: Operation) -> Any:
    return []


@rule("SequenceConstruct", raw=True)
def _sequence_construct(op: Operation, *values: Any) -> Any:
    return list(values)


@rule("SequenceLength", raw=True)
def _sequence_length(op: Operation, values: list[Any]) -> Any:
    return np.array(len(values), np.int64)


def _position(op: Operation, values: list[Any], place: Any, end: int) -> int:
    at = int(_whole(place))
    if not -len(values) <= at < len(values) + end:
        raise op.wrong(f"there is no place {at} in a sequence of {len(values)}")
    return at + len(values) if at < 0 else at


@rule("SequenceAt", raw=True)
def _sequence_at(op: Operation, values: list[Any], place: Any) -> Any:
    return values[_position(op, values, place, 0)]


@rule("SequenceInsert", raw=True)
def _sequence_insert(op: Operation, values: list[Any], value: Any, place: Any = None) -> Any:
    at = len(values) if place is None else _position(op, values, place, 1)
    return [*values[:at], value, *values[at:]]


@rule("SequenceErase", raw=True)
def _sequence_erase(op: Operation, values: list[Any], place: Any = None) -> Any:
    at = len(values) - 1 if place is None else _position(op, values, place, 0)
    return [*values[:at], *values[at + 1 :]]


@rule("SequenceMap", raw=True)
def _sequence_map(op: Operation, first: list[Any], *others: Any) -> Any:
    body, found = op.bodies["body"], []
    for i, value in enumerate(first):
        found.append(body([value, *[o[i] if isinstance(o, list) else o for o in others]]))
    return tuple([list(column) for column in zip(*found)]) if found else tuple([[] for _ in range(op.count)])


@rule("ConcatFromSequence", raw=True)
def _concat_from_sequence(op: Operation, values: list[Any]) -> Any:
    axis = op.get("axis")
    if op.get("new_axis", 0):
        return _stacked(op, values, axis)
    given = [tensor(v) for v in values]
    return apply(S.CONCAT, *given, axis=axis_of(op, axis, given[0].ndim))


@rule("SplitToSequence", raw=True)
def _split_to_sequence(op: Operation, x: Any, sizes: Any = None) -> Any:
    x = tensor(x)
    axis = axis_of(op, op.get("axis", 0), x.ndim)
    whole = int(x.shape[axis])
    if sizes is None:
        parts = [1] * whole
    else:
        given = array(sizes)
        each = shape_values(given)
        if given.ndim == 0:
            parts = [each[0]] * (whole // each[0]) + ([whole % each[0]] if whole % each[0] else [])
        else:
            parts = each
    found, at = [], 0
    for size in parts:
        part = sliced(x, axis, at, at + size)
        if sizes is None and not op.get("keepdims", 1):
            part = reshaped(part, [n for i, n in enumerate(x.shape) if i != axis])
        found.append(part)
        at += size
    return found


# Optionals.


@rule("Optional", raw=True)
def _optional(op: Operation, value: Any = None) -> Any:
    return value


@rule("OptionalHasElement", raw=True)
def _has_element(op: Operation, value: Any = None) -> Any:
    return np.array(value is not None)


@rule("OptionalGetElement", raw=True)
def _get_element(op: Operation, value: Any) -> Any:
    if value is None:
        raise op.wrong("the optional holds nothing")
    return value
