"""MindSpore's primitives on Python values: sequences, scalars and strings."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["NAMED", "SCALARS", "SEQUENCES"]

Work = Callable[..., Any]


def _plain(work: Work) -> Work:
    """Return the work of a primitive without parameters."""
    return lambda p, *inputs: work(*inputs)


def _index(sequence: Any, target: Any, start: Any = None, end: Any = None) -> int:
    low, high, _ = slice(start, end).indices(len(sequence))
    for place in range(low, high):
        if sequence[place] == target:
            return place
    raise ValueError(f"SequenceIndex: {target!r} is not in the sequence")


def _inserted(sequence: Any, index: int, target: Any) -> list[Any]:
    return [*sequence[:index], target, *sequence[index:]]


def _without(sequence: Any, index: int) -> list[Any]:
    place = index % len(sequence)
    return [*sequence[:place], *sequence[place + 1 :]]


def _zeros(value: Any) -> Any:
    return ops.zeros_like(value) if isinstance(value, Tensor) else type(value)(0)


def _all_zeros(sequence: Any) -> Any:
    return type(sequence)(_zeros(v) for v in sequence)


def _slice_grad(dy: Any, x: Any, start: int, stop: int, step: int) -> Any:
    parts = [_zeros(v) for v in x]
    for place, value in zip(range(*slice(start, stop, step).indices(len(x))), dy):
        parts[place] = value
    return type(x)(parts)


def _slice_set(sequence: Any, target: Any, start: int, stop: int, step: int) -> Any:
    parts = list(sequence)
    parts[start:stop:step] = target
    return type(sequence)(parts)


def _offset(first: Sequence[Any], second: Sequence[Any]) -> tuple[int, int]:
    return 0, len(first)


def _product(shape: Sequence[Any]) -> Any:
    return functools.reduce(operator.mul, shape, 1)


def _product_grad(shape: Sequence[Any], dy: Any) -> tuple[Any, ...]:
    return tuple(_product([*shape[:i], *shape[i + 1 :]]) * dy for i in range(len(shape)))


def _unstack(p: Any, x: Any) -> Any:
    return tuple(ops.unstack(x, p.axis))


SEQUENCES: dict[str, Work] = {
    "InSequence": _plain(lambda target, sequence: target in sequence),
    "IsDimUnKnown": _plain(lambda data: False),
    "ListAppend": _plain(lambda sequence, target: [*sequence, target]),
    "ListAppendAndInsertGrad": _plain(_without),
    "ListInsert": _plain(_inserted),
    "ListToTuple": _plain(tuple),
    "ListToTensor": _plain(lambda values, dtype: Tensor(list(values), dtype=dtype)),
    "SequenceAdd": _plain(operator.add),
    "SequenceAddN": _plain(lambda tensors: functools.reduce(operator.add, tensors)),
    "SequenceAddOffset": _plain(_offset),
    "SequenceCount": _plain(lambda sequence, target: sum(v == target for v in sequence)),
    "SequenceIndex": _plain(_index),
    "SequenceMax": _plain(max),
    "SequenceMin": _plain(min),
    "SequenceMul": _plain(operator.mul),
    "SequenceSlice": _plain(lambda sequence, start, stop, step: sequence[start:stop:step]),
    "SequenceSliceGrad": _plain(_slice_grad),
    "SequenceSliceSetItem": _plain(_slice_set),
    "SequenceStack": lambda p, tensors: ops.stack(tensors, p.axis),
    "SequenceUnstack": _unstack,
    "SequenceZerosLike": _plain(_all_zeros),
    "ShapeMulGrad": _plain(_product_grad),
    "TensorToList": _plain(lambda x: x.tolist()),
    "TensorToScalar": _plain(lambda x: x.item()),
    "TensorToTuple": _plain(lambda x: tuple(x.tolist())),
    "TupleToList": _plain(list),
    "TupleToTensor": _plain(lambda values, dtype: Tensor(list(values), dtype=dtype)),
    "list_equal": _plain(operator.eq),
    "list_greater_equal": _plain(operator.ge),
    "list_greater_than": _plain(operator.gt),
    "list_le": _plain(operator.le),
    "list_lt": _plain(operator.lt),
    "make_range": _plain(range),
    "sequence_len": _plain(len),
    "shape_mul": _plain(_product),
    "tuple_equal": _plain(operator.eq),
    "tuple_greater_equal": _plain(operator.ge),
    "tuple_greater_than": _plain(operator.gt),
    "tuple_le": _plain(operator.le),
    "tuple_lt": _plain(operator.lt),
}

SCALARS: dict[str, Work] = {
    "ScalarAdd": _plain(operator.add),
    "ScalarBool": _plain(bool),
    "ScalarDiv": _plain(operator.truediv),
    "ScalarEq": _plain(operator.eq),
    "ScalarFloorDiv": _plain(operator.floordiv),
    "ScalarGe": _plain(operator.ge),
    "ScalarGt": _plain(operator.gt),
    "ScalarLe": _plain(operator.le),
    "ScalarLog": _plain(math.log),
    "ScalarLt": _plain(operator.lt),
    "ScalarMax": _plain(max),
    "ScalarMin": _plain(min),
    "ScalarMod": _plain(operator.mod),
    "ScalarMul": _plain(operator.mul),
    "ScalarPow": _plain(operator.pow),
    "ScalarSub": _plain(operator.sub),
    "ScalarUadd": _plain(operator.pos),
    "ScalarUsub": _plain(operator.neg),
    "bit_and": _plain(operator.and_),
    "bit_or": _plain(operator.or_),
    "bit_xor": _plain(operator.xor),
    "bool_not": _plain(operator.not_),
}

# Objects of `Primitive` that have a name alone.
NAMED: dict[str, Work] = {
    "bit_and": operator.and_,
    "bit_left_shift": operator.lshift,
    "bit_or": operator.or_,
    "bit_right_shift": operator.rshift,
    "bit_xor": operator.xor,
    "string_eq": operator.eq,
    "string_ge": operator.ge,
    "string_getitem": operator.getitem,
    "string_gt": operator.gt,
    "string_in": lambda part, whole: part in whole,
    "string_le": operator.le,
    "string_lt": operator.lt,
    "string_mul": operator.mul,
    "string_not": operator.not_,
}
